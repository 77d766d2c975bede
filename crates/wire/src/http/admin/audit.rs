//! The audit log.

use std::collections::BTreeMap;

use nexo_chat::audit::{AuditEntry, Verification};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Deserialize, IntoParams)]
pub struct AuditParams {
    /// `next_cursor` of the page before.
    pub cursor: Option<u64>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}

/// A recorded act.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AuditRow {
    /// 1, 2, 3 … without gaps.
    pub number: u64,
    pub at: u64,
    /// `user:alice`, `key:<id> <name>`, `command line` or `nobody`.
    pub actor: String,
    pub action: String,
    /// Such as `user:bob` or `group:…`.
    pub target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    pub details: BTreeMap<String, String>,
    /// The hash of the entry before.
    pub previous: String,
    pub hash: String,
}

impl From<&AuditEntry> for AuditRow {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            number: entry.number,
            at: entry.at.0,
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            target: entry.target.clone(),
            address: entry.address.map(|address| address.to_string()),
            details: entry.details.clone(),
            previous: entry.previous.clone(),
            hash: entry.hash.clone(),
        }
    }
}

#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AuditPage {
    /// Newest first.
    pub entries: Vec<AuditRow>,
    pub has_more: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<u64>,
}

/// The result of checking the chain.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct AuditVerification {
    /// Entries from the first on that are what was recorded.
    pub entries: u64,
    /// The hash of the last of them: kept elsewhere, it also shows whether the end was cut off.
    pub newest: String,
    pub is_intact: bool,
    /// The first entry that is not, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl From<Verification> for AuditVerification {
    fn from(found: Verification) -> Self {
        Self {
            entries: found.entries,
            newest: found.newest,
            is_intact: found.broken.is_none(),
            broken_at: found.broken.map(|(number, _)| number),
            problem: found.broken.map(|(_, why)| why.to_owned()),
        }
    }
}
