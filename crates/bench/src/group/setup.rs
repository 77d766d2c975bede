//! Creates users and their group, and connects them.

use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::accounts::{Account, register, sign_up};
use crate::bare::BareCodec;
use crate::codec::Codec;
use crate::dialects::Recipient;
use crate::group::{GroupMember, Room};
use crate::http::post;
use crate::options::GroupOptions;
use crate::progress::{ProgressDisplay, run_all};
use crate::socket::{CONNECTING_AT_ONCE, connect};

/// Users that one request may invite.
const INVITE_BATCH: usize = 500;

/// A group, and the accounts of its members who will connect.
pub(crate) struct BenchGroup {
    pub(crate) authority: String,
    pub(crate) accounts: Vec<Account>,
    pub(crate) group: String,
}

/// Registers all users and invites them to a new group. Users who will be online come first.
pub(crate) async fn create_group(
    authority: &str,
    options: &GroupOptions,
    progress: ProgressDisplay,
) -> Result<BenchGroup> {
    let connecting = options.online() + options.readers.count();
    let accounts = sign_up(authority, connecting, progress).await?;
    let away = register(authority, options.members - options.online(), progress).await?;
    let owner = accounts.first().context("a group needs a member")?;
    let ask = async |path: &str, body: Value| post(authority, path, &owner.token, &body).await;
    let made = ask("/group/create", json!({ "name": "bench", "member_ids": [] })).await?;
    let group = made["group_id"].as_str().context("the answer to /group/create has no group_id")?;
    let users: Vec<&str> = accounts[1..]
        .iter()
        .map(|it| it.user.as_str())
        .chain(away.iter().map(String::as_str))
        .collect();
    let bar = progress.counting("members invited", users.len());
    for batch in users.chunks(INVITE_BATCH) {
        ask("/group/invite", json!({ "group_id": group, "user_ids": batch })).await?;
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    Ok(BenchGroup { authority: authority.to_owned(), group: group.to_owned(), accounts })
}

impl BenchGroup {
    /// Connects the members who read properly.
    pub(crate) async fn connect_members(
        &self,
        options: &GroupOptions,
        progress: ProgressDisplay,
    ) -> Result<Room> {
        let dialect = options.dialect;
        let codec = dialect.codec(Recipient::Group(&self.group), options.flow.size);
        let connecting =
            self.accounts[..options.online()].iter().map(|account| {
                let codec = Arc::clone(&codec);
                async move {
                    Ok(GroupMember::new(codec, dialect.connect(&self.authority, account).await?))
                }
            });
        let members =
            run_all(connecting, CONNECTING_AT_ONCE, "members connected", progress).await?;
        Ok(Room::new(members, options.senders))
    }
}

/// Opens as many connections in a room of a bare relay.
pub(crate) async fn connect_bare_room(
    authority: &str,
    options: &GroupOptions,
    progress: ProgressDisplay,
) -> Result<Vec<GroupMember>> {
    let codec: Arc<dyn Codec> = Arc::new(BareCodec::room(1, options.flow.size));
    let connecting = (0..options.online()).map(|number| {
        let codec = Arc::clone(&codec);
        async move {
            let socket = connect(authority, &format!("/room/1/{number}")).await?;
            Ok(GroupMember::new(codec, socket))
        }
    });
    run_all(connecting, CONNECTING_AT_ONCE, "bare connections", progress).await
}
