//! Brings what is missing.
use std::sync::Arc;

use serde::Deserialize;

use crate::conversation::Head;
use crate::desk::Desk;
use crate::error::Error;
use crate::http::Ask;
use crate::inbox::ConversationInfo;
use crate::jobs::Inside;
use crate::messages::{ChangeInfo, MessageInfo};
use crate::tokens::SignIn;
use crate::types::Message;

const PAGE: u64 = 100;
const HEADS_PAGE: &str = "1000";

#[derive(Deserialize)]
struct HeadsPage {
    heads: Vec<Head>,
    has_more: bool,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Names {
    list: Vec<ConversationInfo>,
}

#[derive(Deserialize)]
struct Pulled {
    messages: Vec<MessageInfo>,
    max_seq: u64,
}

/// Compares every conversation with what the server has; for the first time when the device has just
/// come.
pub(crate) async fn heads(inside: &Inside, sign_in: &SignIn, is_first: bool) -> Result<(), Error> {
    let mut cursor = None;
    loop {
        let mut query = vec![("limit", HEADS_PAGE)];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page: HeadsPage = sign_in.ask(Ask::get("/conversation/heads", &query)).await?;
        inside.ask(move |desk| desk.hear_heads(&page.heads, is_first)).await?;
        cursor = page.next_cursor.filter(|_| page.has_more);
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// The names of everything.
pub(crate) async fn names(inside: &Inside, sign_in: &SignIn) -> Result<(), Error> {
    let query = [("with_last_message", "true"), ("limit", HEADS_PAGE)];
    let names: Names = sign_in.ask(Ask::get("/conversation/all", &query)).await?;
    let learn = |desk: &mut Desk| {
        desk.hear_infos(names.list);
        desk.sync.names_at = Some(desk.now);
        // Beyond the first thousand nobody looks.
        let listed = desk.conversations.values_mut().filter(|one| one.has_begun && one.is_listed());
        for one in listed {
            one.about.is_known = true;
        }
    };
    inside.ask(learn).await
}

/// The name of one.
pub(crate) async fn name(inside: &Inside, sign_in: &SignIn, id: String) -> Result<(), Error> {
    match sign_in.ask(Ask::get("/conversation/info", &[("conversation_id", &id)])).await {
        Ok(info) => inside.ask(move |desk| desk.hear_infos(vec![info])).await,
        Err(error) if error.is_passing() => Err(error),
        Err(_) => inside.ask(move |desk| desk.open(&id).about.is_known = true).await, // there is none
    }
}

/// Fills the holes of a conversation as far as the server can.
pub(crate) async fn fill(inside: &Inside, sign_in: &SignIn, id: &str) -> Result<(), Error> {
    fill_messages(inside, sign_in, id).await?;
    fill_changes(inside, sign_in, id).await
}

async fn fill_messages(inside: &Inside, sign_in: &SignIn, id: &str) -> Result<(), Error> {
    let conversation_id = id.to_owned();
    let hole = inside.ask(move |desk| desk.open(&conversation_id).arrived.hole()).await?;
    let Some((mut from, to)) = hole else { return Ok(()) };
    while from <= to {
        let page = pull(sign_in, id, from, to).await?;
        let id = id.to_owned();
        let next = inside.ask(move |desk| desk.take_page(&id, from, page)).await?;
        let Some(next) = next else { return Ok(()) };
        from = next;
    }
    Ok(())
}

async fn fill_changes(inside: &Inside, sign_in: &SignIn, id: &str) -> Result<(), Error> {
    loop {
        let conversation_id = id.to_owned();
        let since = move |desk: &mut Desk| {
            let changes = &desk.open(&conversation_id).changes;
            changes.hole().map(|_| changes.last())
        };
        let Some(since) = inside.ask(since).await? else { return Ok(()) };
        let (from, limit) = (since.to_string(), PAGE.to_string());
        let query = [("conversation_id", id), ("since", &from), ("limit", &limit)];
        let page: Vec<ChangeInfo> = sign_in.ask(Ask::get("/conversation/changes", &query)).await?;
        let id = id.to_owned();
        if !inside.ask(move |desk| desk.take_changes(&id, since, page)).await? {
            return Ok(());
        }
    }
}

/// Older messages than those that are here.
pub(crate) async fn older(
    inside: &Inside,
    sign_in: &SignIn,
    id: String,
    limit: u64,
) -> Result<Vec<Arc<Message>>, Error> {
    let conversation_id = id.clone();
    let range = move |desk: &mut Desk| {
        let conversation = desk.conversations.get(&conversation_id)?;
        Some((conversation.min, conversation.held.first() - 1))
    };
    let Some((min, end)) = inside.ask(range).await? else { return Ok(Vec::new()) };
    let begin = min.max((end + 1).saturating_sub(limit));
    let mut found: Vec<MessageInfo> = Vec::new();
    let mut next = begin;
    while next <= end {
        let page = pull(sign_in, &id, next, end).await?;
        if page.messages.first().is_none_or(|info| info.seq != next) {
            break;
        }
        next += page.messages.len() as u64;
        found.extend(page.messages);
    }
    inside.ask(move |desk| desk.take_older(&id, found)).await
}

async fn pull(sign_in: &SignIn, id: &str, begin: u64, end: u64) -> Result<Pulled, Error> {
    let limit = PAGE.min(end + 1 - begin).to_string();
    let (begin, end) = (begin.to_string(), end.to_string());
    let place = [("begin_seq", begin.as_str()), ("end_seq", &end), ("limit", &limit)];
    let query = [&[("conversation_id", id)], &place[..]].concat();
    sign_in.ask(Ask::get("/msg/pull", &query)).await
}

impl Desk {
    /// Takes a page of a hole; where to go on, unless nothing came for the place we asked for.
    fn take_page(&mut self, id: &str, from: u64, page: Pulled) -> Option<u64> {
        let is_empty = page.messages.is_empty();
        for info in page.messages {
            let message = Message::pulled(info, &self.me);
            self.take(message);
        }
        let arrived = &mut self.open(id).arrived;
        if arrived.last() >= from {
            return Some(arrived.last() + 1);
        }
        // It is not ours to see, or not there.
        arrived.ends_at(page.max_seq);
        if !is_empty {
            self.sync.ask_heads(self.now);
        }
        None
    }

    /// Takes changes after a place; whether there were any.
    fn take_changes(&mut self, id: &str, since: u64, page: Vec<ChangeInfo>) -> bool {
        let changes = &mut self.open(id).changes;
        let Some(first) = page.first().map(|info| info.change_seq) else {
            changes.ends_at(since);
            return false;
        };
        changes.skip_to(first.saturating_sub(1)); // what was before we came is not ours to see
        for info in page {
            self.take_change(info.into());
        }
        true
    }

    fn take_older(&mut self, id: &str, found: Vec<MessageInfo>) -> Vec<Arc<Message>> {
        let me = self.me.clone();
        let conversation = self.open(id);
        let first = conversation.held.first();
        // Somebody else may have loaded them meanwhile.
        let missing = found.into_iter().filter(|info| info.seq < first);
        let missing: Vec<Message> = missing.map(|info| Message::pulled(info, &me)).collect();
        let places = missing.iter().rev().map(|message| message.seq);
        if missing.is_empty() || !places.eq((1..first).rev().take(missing.len())) {
            return Vec::new();
        }
        let fresh = conversation.take_older(missing);
        self.touch(id);
        fresh
    }
}
