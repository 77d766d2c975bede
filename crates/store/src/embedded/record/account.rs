//! Accounts, reset codes and logins on disk.

use std::borrow::Cow;

use nexo_chat::ids::{LoginId, Millis, Platform, UserId};
use nexo_chat::model::{Login, Profile, ResetCode, User};
use serde::{Deserialize, Serialize};

use super::{impossible, user_id};
use crate::details;
use crate::embedded::keys::Keyspace;
use crate::embedded::poison::EngineFault;

#[derive(Serialize, Deserialize)]
pub(crate) struct UserRecord<'a> {
    nickname: &'a str,
    avatar: &'a str,
    extra: &'a str,
    created_at: u64,
    password_hash: &'a str,
    session_version: u64,
    /// Since version 2.
    updated_at: u64,
    /// Since version 3: see [`details`].
    #[serde(borrow)]
    details: Cow<'a, [u8]>,
}

impl<'a> From<&'a User> for UserRecord<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            nickname: &user.profile.nickname,
            avatar: &user.profile.avatar,
            extra: &user.profile.extra,
            created_at: user.created_at.0,
            password_hash: &user.password_hash,
            session_version: user.session_version,
            updated_at: user.updated_at.0,
            details: details::encode(&user.details).into(),
        }
    }
}

impl UserRecord<'_> {
    pub(crate) fn user(&self, id: &UserId) -> Result<User, EngineFault> {
        let details = details::decode(&self.details);
        Ok(User {
            id: id.clone(),
            profile: Profile {
                nickname: self.nickname.into(),
                avatar: self.avatar.into(),
                extra: self.extra.into(),
            },
            created_at: Millis(self.created_at),
            updated_at: Millis(self.updated_at.max(self.created_at)),
            password_hash: self.password_hash.into(),
            session_version: self.session_version,
            details: details
                .map_err(|_| impossible(Keyspace::Users, "the details make no sense"))?,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ResetRecord {
    hash: [u8; 32],
    expires_at: u64,
}

impl From<ResetCode> for ResetRecord {
    fn from(code: ResetCode) -> Self {
        Self { hash: code.hash, expires_at: code.expires_at.0 }
    }
}

impl From<ResetRecord> for ResetCode {
    fn from(record: ResetRecord) -> Self {
        Self { hash: record.hash, expires_at: Millis(record.expires_at) }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct LoginRecord<'a> {
    user: &'a str,
    platform: i32,
    created_at: u64,
    expires_at: u64,
    refresh_hash: [u8; 32],
    generation: u64,
    rotated_at: u64,
    ended: bool,
    /// Since version 3: see [`details`].
    #[serde(borrow)]
    device: Cow<'a, [u8]>,
}

impl<'a> From<&'a Login> for LoginRecord<'a> {
    fn from(login: &'a Login) -> Self {
        Self {
            user: login.user.as_str(),
            platform: login.platform.0,
            created_at: login.created_at.0,
            expires_at: login.expires_at.0,
            refresh_hash: login.refresh_hash,
            generation: login.generation,
            rotated_at: login.rotated_at.0,
            ended: login.ended,
            device: details::encode(&login.device).into(),
        }
    }
}

impl LoginRecord<'_> {
    pub(crate) fn login(&self, id: LoginId) -> Result<Login, EngineFault> {
        Ok(Login {
            id,
            user: user_id(self.user)?,
            platform: Platform(self.platform),
            created_at: Millis(self.created_at),
            expires_at: Millis(self.expires_at),
            refresh_hash: self.refresh_hash,
            generation: self.generation,
            rotated_at: Millis(self.rotated_at),
            ended: self.ended,
            device: details::decode(&self.device)
                .map_err(|_| impossible(Keyspace::Logins, "the device makes no sense"))?,
        })
    }
}
