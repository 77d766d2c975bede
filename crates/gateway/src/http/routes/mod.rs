//! The handlers, each below its row in the table of paths.

pub(super) mod accounts;
pub(super) mod admin;
pub(super) mod conversations;
pub(super) mod devices;
pub(super) mod groups;
pub(super) mod history;
pub(super) mod invites;
pub(super) mod joining;
pub(super) mod members;
pub(super) mod messages;
pub(super) mod oidc;
pub(super) mod privacy;
pub(super) mod server;
pub(super) mod socket;
pub(super) mod sync;
pub(super) mod web_client;
