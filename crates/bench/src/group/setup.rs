//! People, the group they are in, and their connections.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::accounts::{Account, register, sign_up};
use crate::bare::Bare;
use crate::dialect::Dialect;
use crate::group::{Member, Room};
use crate::http::post;
use crate::options::GroupOptions;
use crate::progress::{Progress, all};
use crate::socket::{CONNECTING_AT_ONCE, connect};
use crate::speech::To;

/// People whom one request may invite.
const LOT: usize = 500;

/// A group and those of its members who may connect.
pub(crate) struct People {
    pub(crate) authority: String,
    pub(crate) accounts: Vec<Account>,
    pub(crate) group: String,
}

/// Registers everybody and puts them into a new group. Those who will be online come first.
pub(crate) async fn gather(
    authority: &str,
    options: &GroupOptions,
    progress: Progress,
) -> Result<People> {
    let connecting = options.online() + options.readers.count();
    let accounts = sign_up(authority, connecting, progress).await?;
    let away = register(authority, options.members - options.online(), progress).await?;
    let owner = accounts.first().context("a group needs somebody")?;
    let ask = async |path: &str, body: Value| post(authority, path, &owner.token, &body).await;
    let made = ask("/group/create", json!({ "name": "bench", "member_ids": [] })).await?;
    let group = made["group_id"].as_str().context("the answer to /group/create has no group_id")?;
    let users: Vec<&str> = accounts[1..]
        .iter()
        .map(|it| it.user.as_str())
        .chain(away.iter().map(String::as_str))
        .collect();
    let bar = progress.counting("members invited", users.len());
    for lot in users.chunks(LOT) {
        ask("/group/invite", json!({ "group_id": group, "user_ids": lot })).await?;
        bar.inc(lot.len() as u64);
    }
    bar.finish_and_clear();
    Ok(People { authority: authority.to_owned(), group: group.to_owned(), accounts })
}

impl People {
    /// Those who read as they should connect.
    pub(crate) async fn room(&self, options: &GroupOptions, progress: Progress) -> Result<Room> {
        let speech = options.dialect;
        let dialect = speech.dialect(To::Group(&self.group), options.flow.size);
        let connecting = self.accounts[..options.online()].iter().map(|account| {
            let dialect = Arc::clone(&dialect);
            async move { Ok(Member::new(dialect, speech.connect(&self.authority, account).await?)) }
        });
        let members = all(connecting, CONNECTING_AT_ONCE, "members connected", progress).await?;
        Ok(Room::new(members, options.senders))
    }
}

/// As many connections in a room of a bare relay.
pub(crate) async fn bare_room(
    authority: &str,
    options: &GroupOptions,
    progress: Progress,
) -> Result<Vec<Member>> {
    let dialect: Arc<dyn Dialect> = Arc::new(Bare::room(1, options.flow.size));
    let connecting = (0..options.online()).map(|number| {
        let dialect = Arc::clone(&dialect);
        async move {
            let socket = connect(authority, &format!("/room/1/{number}")).await?;
            Ok(Member::new(dialect, socket))
        }
    });
    all(connecting, CONNECTING_AT_ONCE, "bare connections", progress).await
}
