//! Figures of the whole server, for the operator.

use crate::chat::Chat;
use crate::ids::{GroupId, UserId};
use crate::keys::{Operator, Scope};
use crate::model::AccountStatus;
use crate::reason::Error;

const READ_PAGE: usize = 1000;

/// How much there is. Counted by reading, so it takes a while on a large server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    pub users: u64,
    pub disabled_users: u64,
    pub deleted_users: u64,
    pub bots: u64,
    pub groups: u64,
    pub ended_groups: u64,
}

pub async fn statistics(chat: &Chat, operator: &Operator) -> Result<Statistics, Error> {
    operator.require(Scope::Admin)?;
    let mut counted = Statistics::default();
    count_users(chat, &mut counted).await?;
    count_groups(chat, &mut counted).await?;
    Ok(counted)
}

async fn count_users(chat: &Chat, counted: &mut Statistics) -> Result<(), Error> {
    let now = chat.clock.now();
    let mut after: Option<UserId> = None;
    loop {
        let users = chat.store.users(after.as_ref(), READ_PAGE).await?;
        for user in &users {
            match &user.details.status {
                AccountStatus::Deleted { .. } => counted.deleted_users += 1,
                status if status.is_active_at(now) => counted.users += 1,
                _ => counted.disabled_users += 1,
            }
            counted.bots += u64::from(user.details.is_bot);
        }
        match users.last() {
            Some(last) if users.len() == READ_PAGE => after = Some(last.id.clone()),
            _ => return Ok(()),
        }
    }
}

async fn count_groups(chat: &Chat, counted: &mut Statistics) -> Result<(), Error> {
    let mut after: Option<GroupId> = None;
    loop {
        let groups = chat.store.groups(after.as_ref(), READ_PAGE).await?;
        let ended = groups.iter().filter(|group| group.ended.is_some()).count() as u64;
        counted.ended_groups += ended;
        counted.groups += groups.len() as u64 - ended;
        match groups.last() {
            Some(last) if groups.len() == READ_PAGE => after = Some(last.id.clone()),
            _ => return Ok(()),
        }
    }
}
