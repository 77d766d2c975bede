//! API keys.

use std::collections::BTreeSet;

use nexo_chat::DetailedReason;
use nexo_chat::keys::{ApiKey, NewKey, Scope};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "shop backend", "scopes": ["backend"] }))]
pub struct NewKeyBody {
    /// What it is for, up to 64 characters.
    pub name: String,
    /// `backend`, `admin`, `metrics`, `system`.
    #[schema(min_items = 1)]
    pub scopes: Vec<String>,
    /// Seconds until it expires; without it works until it is revoked.
    #[schema(minimum = 1)]
    pub expires_in: Option<u64>,
}

impl NewKeyBody {
    pub fn into_request(self) -> Result<NewKey, DetailedReason> {
        let scopes = self.scopes.iter().map(|name| Scope::parse(name));
        let scopes: Option<BTreeSet<Scope>> = scopes.collect();
        let scopes = scopes.ok_or_else(|| DetailedReason::field("scopes"))?;
        if self.expires_in == Some(0) {
            return Err(DetailedReason::field("expires_in"));
        }
        let expires_in_ms = self.expires_in.map(|seconds| seconds.saturating_mul(1000));
        Ok(NewKey { name: self.name, scopes, expires_in_ms })
    }
}

/// A key without its secret.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct KeyInfo {
    pub key_id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub created_at: u64,
    /// The name of the key that made it, or `command line`.
    pub created_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// When it was last used, to about a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<u64>,
}

impl From<&ApiKey> for KeyInfo {
    fn from(key: &ApiKey) -> Self {
        Self {
            key_id: key.id.clone(),
            name: key.name.clone(),
            scopes: key.scopes.iter().map(|scope| scope.name().to_owned()).collect(),
            created_at: key.created_at.0,
            created_by: key.created_by.clone(),
            expires_at: key.expires_at.map(|at| at.0),
            last_used_at: key.last_used_at.map(|at| at.0),
        }
    }
}

/// A new key. `key` is shown this once; only its hash is stored.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct CreatedKey {
    pub key: String,
    #[serde(flatten)]
    pub info: KeyInfo,
}
