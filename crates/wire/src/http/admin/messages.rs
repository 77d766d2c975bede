//! Messages, as the operator sees them, and figures of the whole server.

use nexo_chat::admin::statistics::Statistics;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::messages::MessageInfo;

#[derive(Deserialize, IntoParams)]
pub struct AroundParams {
    /// How many before it: up to 100.
    #[param(minimum = 0, default = 10)]
    pub before: Option<usize>,
    /// How many after it: up to 100.
    #[param(minimum = 0, default = 10)]
    pub after: Option<usize>,
}

/// Messages of one conversation, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessagesAround {
    pub messages: Vec<MessageInfo>,
}

/// How much there is.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct ServerStatistics {
    /// Accounts that can sign in.
    pub users: u64,
    pub disabled_users: u64,
    pub deleted_users: u64,
    pub bots: u64,
    pub groups: u64,
    pub ended_groups: u64,
}

impl From<Statistics> for ServerStatistics {
    fn from(counted: Statistics) -> Self {
        let Statistics { users, disabled_users, deleted_users, bots, groups, ended_groups } =
            counted;
        Self { users, disabled_users, deleted_users, bots, groups, ended_groups }
    }
}
