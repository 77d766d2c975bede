//! The devices on which a user is signed in.
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::client::Client;
use crate::error::Error;
use crate::http::ApiRequest;

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Platform {
    Ios,
    Android,
    Windows,
    Macos,
    Web,
    Unknown,
}

/// A number over HTTP.
impl<'de> Deserialize<'de> for Platform {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match i64::deserialize(deserializer)? {
            1 => Self::Ios,
            2 => Self::Android,
            3 => Self::Windows,
            4 => Self::Macos,
            5 => Self::Web,
            _ => Self::Unknown,
        })
    }
}

/// A device on which you are signed in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Device {
    /// Identifies the sign-in, for `end_device`.
    pub login_id: String,
    #[serde(rename = "platform_id")]
    pub platform: Platform,
    /// What the client called the device; often empty.
    pub device_name: String,
    /// The address it signed in from.
    pub address: String,
    /// When it signed in; milliseconds since 1970.
    pub created_at: u64,
    /// When it last refreshed its token; milliseconds since 1970.
    pub last_used_at: u64,
    /// Whether it is this device.
    pub is_current: bool,
    /// Whether it is connected now.
    pub is_online: bool,
}

impl Client {
    /// The devices on which you are signed in, newest sign-in first.
    pub async fn devices(&self) -> Result<Vec<Device>, Error> {
        self.0.sign_in.fetch(ApiRequest::get("/user/devices", &[])).await
    }

    /// Signs a device of yours out, by the `login_id` of `devices`.
    pub async fn end_device(&self, login_id: &str) -> Result<(), Error> {
        self.end_devices(json!({ "login_id": login_id })).await.map(drop)
    }

    /// Signs out all your devices but this one; returns how many.
    pub async fn end_other_devices(&self) -> Result<u64, Error> {
        self.end_devices(json!({ "others": true })).await
    }

    async fn end_devices(&self, which: Value) -> Result<u64, Error> {
        #[derive(Deserialize)]
        struct Ended {
            ended: u64,
        }
        let ended: Ended =
            self.0.sign_in.fetch(ApiRequest::post("/user/devices/end", which)).await?;
        Ok(ended.ended)
    }
}
