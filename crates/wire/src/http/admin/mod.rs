//! `/admin/…`: what operators and backends ask of a running server.

pub mod audit;
pub mod backup;
pub mod broadcast;
pub mod groups;
pub mod keys;
pub mod messages;
pub mod users;

use serde::Deserialize;
use utoipa::IntoParams;

/// A page of a list.
#[derive(Deserialize, IntoParams)]
pub struct PageParams {
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
    /// How many at most: up to 1,000, more is cut to that; 0 is the default.
    #[param(minimum = 0, default = 100)]
    pub limit: Option<usize>,
}
