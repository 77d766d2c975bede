//! The sections of the settings file. `config.example.toml` says what each setting means.

use serde::{Deserialize, Serialize};

/// Tokens and passwords.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthSettings {
    pub(crate) registration: String,
    pub(crate) invites_by: String,
    pub(crate) jwt_secret: String,
    pub(crate) access_token_seconds: u64,
    pub(crate) refresh_token_seconds: u64,
    pub(crate) refresh_grace_seconds: u64,
    pub(crate) argon2_memory_kib: u32,
    pub(crate) argon2_passes: u32,
    pub(crate) password_jobs_max: usize,
    pub(crate) password_min_chars: usize,
    pub(crate) password_common: bool,
    pub(crate) token: TokenSettings,
    pub(crate) oidc: OidcSettings,
}

/// Signing in to the web client with an `OpenID` Connect provider.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OidcSettings {
    pub(crate) issuer: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) redirect_url: String,
    pub(crate) name: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) user_claim: String,
    pub(crate) name_claim: String,
    pub(crate) create: bool,
    pub(crate) leeway_seconds: u64,
}

/// Tokens of the app's own identity provider.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenSettings {
    pub(crate) algorithm: String,
    pub(crate) secret: String,
    pub(crate) public_key_file: String,
    pub(crate) jwks_url: String,
    pub(crate) jwks_refresh_seconds: u64,
    pub(crate) issuer: String,
    pub(crate) audience: String,
    pub(crate) user_claim: String,
    pub(crate) name_claim: String,
    pub(crate) create: bool,
    pub(crate) leeway_seconds: u64,
}

/// What users may do to each other.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountSettings {
    pub(crate) tell_blocked: bool,
    pub(crate) strangers_per_hour: u32,
    pub(crate) broadcast_per_second: u32,
}

/// Devices and sockets per user.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionSettings {
    pub(crate) policy: String,
    pub(crate) connections_max: usize,
}

/// Size and rate limits.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitSettings {
    pub(crate) frame_bytes: usize,
    pub(crate) text_chars: usize,
    pub(crate) content_bytes: usize,
    pub(crate) extra_entries: usize,
    pub(crate) connection_frames_per_second: u32,
    pub(crate) connection_frames_burst: u32,
    pub(crate) user_sends_per_second: u32,
    pub(crate) user_sends_burst: u32,
    pub(crate) user_requests_per_second: u32,
    pub(crate) user_requests_burst: u32,
    pub(crate) registrations_per_minute: u32,
    pub(crate) connections_max: usize,
    pub(crate) connections_per_address: usize,
    pub(crate) unauthenticated_max: usize,
}

/// Timeouts and buffers of sockets.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GatewaySettings {
    pub(crate) auth_timeout_ms: u64,
    pub(crate) header_timeout_ms: u64,
    pub(crate) ping_after_ms: u64,
    pub(crate) idle_timeout_ms: u64,
    pub(crate) outbox_low_bytes: usize,
    pub(crate) outbox_high_bytes: usize,
    pub(crate) unwritable_close_ms: u64,
    pub(crate) write_timeout_ms: u64,
    pub(crate) drain_ms: u64,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) trusted_proxies: Vec<String>,
    pub(crate) token_in_query: bool,
}

/// Recall and the word filter.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageSettings {
    pub(crate) recall_seconds: u64,
    pub(crate) words_file: String,
}

/// Sizes of groups, and how their messages are delivered.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupSettings {
    pub(crate) members_max: u32,
    pub(crate) admins_max: usize,
    pub(crate) per_user_max: usize,
    pub(crate) by_strangers_per_hour: u32,
    pub(crate) batch_max: usize,
    pub(crate) join_requests_max: u32,
    pub(crate) mentions_max: usize,
    pub(crate) code_cooldown_seconds: u64,
    pub(crate) strategy: String,
    pub(crate) notify_members: u32,
    pub(crate) notify_online: usize,
    pub(crate) none_members: u32,
    pub(crate) none_online: usize,
}

/// Receipts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReceiptSettings {
    pub(crate) group_members_max: u32,
    pub(crate) delay_ms: u64,
}

/// Page sizes of catching up.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResendSettings {
    pub(crate) page: usize,
    pub(crate) page_bytes: usize,
}

/// The embedded store.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "a setting names its unit")]
pub(crate) struct EmbeddedSettings {
    pub(crate) cache_mib: u64,
    pub(crate) memtable_mib: u64,
    pub(crate) reserve_mib: u64,
}

/// The database behind `store = "mysql://…"`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MySqlSettings {
    pub(crate) connections_max: usize,
    pub(crate) committers: usize,
    pub(crate) patience_ms: u64,
    pub(crate) statement_ms: u64,
    pub(crate) ca_file: String,
}

/// How nodes reach each other through `redis`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterSettings {
    pub(crate) prefix: String,
    pub(crate) ca_file: String,
    pub(crate) node_ttl_ms: u64,
}

/// Two-phase acknowledgement.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of the operator")]
pub(crate) struct TwoPhaseSettings {
    pub(crate) enabled: bool,
    pub(crate) deliver_before_saved: bool,
    pub(crate) fail_open: bool,
    pub(crate) groups: bool,
    pub(crate) shards: usize,
    pub(crate) batch_size: usize,
    pub(crate) block_ms: u64,
    pub(crate) backlog_max: usize,
    pub(crate) tries_max: u32,
    pub(crate) lease_ms: u64,
    pub(crate) preview_seconds: u64,
}

/// Backups of the embedded store.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BackupSettings {
    pub(crate) target: String,
    pub(crate) every_seconds: u64,
    pub(crate) archive_log_seconds: u64,
    pub(crate) keep_last: usize,
    pub(crate) keep_days: u64,
    pub(crate) mib_per_second: u64,
    pub(crate) with_secrets: bool,
    pub(crate) s3_endpoint: String,
    pub(crate) s3_region: String,
    pub(crate) s3_access_key_id: String,
    pub(crate) s3_secret_access_key: String,
}

/// Access to `/metrics`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsSettings {
    pub(crate) token: String,
    pub(crate) listen: String,
}

/// Access to `/system/send`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SystemSettings {
    pub(crate) token: String,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    pub(crate) format: String,
    pub(crate) level: String,
}
