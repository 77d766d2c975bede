//! HTTP bodies and query parameters, requests and answers of a subject together.
//!
//! The `snake_case` paths write seqs as numbers; the camelCase paths of [`history`] write ids and seqs as
//! strings. Doc comments of types that derive `ToSchema` or `IntoParams` are descriptions in `docs/openapi.json`.

pub mod accounts;
pub mod admin;
pub mod conversations;
pub mod damaged;
pub mod envelope;
pub mod groups;
pub mod history;
pub mod invites;
pub mod joining;
pub mod members;
pub mod messages;
pub mod privacy;
pub mod server_info;
pub mod session_type;
pub mod sync;
