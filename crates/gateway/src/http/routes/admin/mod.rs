//! `/admin/…`: what operators and backends do with an API key.

mod audit;
mod backup;
pub(crate) mod broadcast;
mod groups;
mod keys;
mod messages;
mod users;

use crate::http::openapi::paths::Paths;

pub(in crate::http) fn paths(paths: &mut Paths) {
    paths.group("Administration", "For operators and backends, with an API key.");
    keys::paths(paths);
    users::paths(paths);
    groups::paths(paths);
    messages::paths(paths);
    broadcast::paths(paths);
    audit::paths(paths);
    backup::paths(paths);
}
