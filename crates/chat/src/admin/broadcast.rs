//! Messages from the operator to many users: paced, with progress, and continued after a restart. Each message has an id
//! made of the broadcast and its receiver, so nobody gets it twice, however often it is continued and on however many nodes.

use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};

use crate::audit::{self, Act};
use crate::chat::Chat;
use crate::command::{NewMessage, Target};
use crate::documents;
use crate::ids::{ClientMsgId, Millis, UserId};
use crate::keys::{Operator, Scope};
use crate::model::Content;
use crate::reason::{DetailedReason, Error, Reason};
use crate::send;
use crate::store::{Collection, DocumentId, DocumentPage};

/// Users that one broadcast can name; without names it goes to everybody.
pub const NAMED_MAX: usize = 10_000;
/// Messages between two records of the progress, and users read at a time.
const STEP: usize = 50;
/// Broadcasts read at a time.
const READ_PAGE: usize = 100;

/// A broadcast and how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broadcast {
    pub id: String,
    pub text: String,
    /// `None`: everybody.
    pub users: Option<Vec<UserId>>,
    pub created_by: String,
    pub created_at: Millis,
    pub sent: u64,
    /// Receivers who do not exist, or whom it could not be sent to.
    pub failed: u64,
    pub is_done: bool,
    /// The last receiver that was reached, if it goes to everybody; else how many of the list were.
    after: Option<UserId>,
    reached: usize,
}

/// Stores a broadcast. [`run`] sends it.
pub async fn create(
    chat: &Chat,
    operator: &Operator,
    text: String,
    users: Option<Vec<UserId>>,
) -> Result<Broadcast, Error> {
    operator.require(Scope::Admin)?;
    let chars = text.chars().count();
    if text.trim().is_empty() || chars > chat.rules.text_chars_max {
        return Err(DetailedReason::field("text").into());
    }
    if users.as_ref().is_some_and(|users| users.is_empty() || users.len() > NAMED_MAX) {
        return Err(DetailedReason::field("user_ids").into());
    }
    let mut bytes = [0; 10];
    chat.rng.fill(&mut bytes);
    let broadcast = Broadcast {
        id: BASE32_NOPAD.encode(&bytes).to_lowercase(),
        text,
        users,
        created_by: operator.name.clone(),
        created_at: chat.clock.now(),
        sent: 0,
        failed: 0,
        is_done: false,
        after: None,
        reached: 0,
    };
    save(chat, broadcast.clone()).await?;
    let act = Act::by(operator, "broadcast_created", format!("broadcast:{}", broadcast.id));
    let named =
        broadcast.users.as_ref().map_or_else(|| "all".to_owned(), |it| it.len().to_string());
    audit::record_now(chat, &act.with("users", named)).await?;
    Ok(broadcast)
}

fn document_of(id: &str) -> Option<DocumentId> {
    DocumentId::parse(Collection::Broadcasts, id)
}

async fn save(chat: &Chat, broadcast: Broadcast) -> Result<(), Error> {
    let id = DocumentId::new(Collection::Broadcasts, broadcast.id.clone());
    // Two nodes may continue it at once: the one that is further counts.
    documents::change(&*chat.store, &id, move |stored: Option<Broadcast>| {
        let further =
            stored.filter(|stored| stored.sent + stored.failed > broadcast.sent + broadcast.failed);
        Ok((Some(further.unwrap_or_else(|| broadcast.clone())), ()))
    })
    .await
}

/// A broadcast and its progress.
pub async fn get(chat: &Chat, operator: &Operator, id: &str) -> Result<Broadcast, Error> {
    operator.require(Scope::Admin)?;
    let id = document_of(id).ok_or(Reason::NotFound)?;
    Ok(documents::get(&*chat.store, &id).await?.ok_or(Reason::NotFound)?)
}

/// The broadcasts that a stopped server did not finish.
pub async fn unfinished(chat: &Chat) -> Result<Vec<String>, Error> {
    let mut unfinished = Vec::new();
    let mut page = DocumentPage::first(Collection::Broadcasts, READ_PAGE);
    loop {
        let found: Vec<(String, Broadcast)> = documents::list(&*chat.store, page.clone()).await?;
        let is_last = found.len() < READ_PAGE;
        page.after = found.last().map(|(id, _)| id.clone());
        unfinished.extend(found.into_iter().filter(|(_, it)| !it.is_done).map(|(id, _)| id));
        if is_last {
            return Ok(unfinished);
        }
    }
}

/// Sends a broadcast to the end, from where it stopped.
pub async fn run(chat: &Chat, id: &str) -> Result<(), Error> {
    let id = document_of(id).ok_or(Reason::NotFound)?;
    let found: Option<Broadcast> = documents::get(&*chat.store, &id).await?;
    let mut broadcast = found.ok_or(Reason::NotFound)?;
    while !broadcast.is_done {
        let receivers = next_receivers(chat, &mut broadcast).await?;
        for user in receivers {
            match send_to(chat, &broadcast, user).await {
                Ok(()) => broadcast.sent += 1,
                Err(error @ (Error::Unavailable(_) | Error::Internal(_))) => return Err(error),
                Err(_) => broadcast.failed += 1,
            }
            chat.clock.sleep(1000 / u64::from(chat.rules.broadcast_per_second.max(1))).await;
        }
        save(chat, broadcast.clone()).await?;
    }
    Ok(())
}

/// The next receivers. Deleted accounts are not among everybody.
async fn next_receivers(chat: &Chat, broadcast: &mut Broadcast) -> Result<Vec<UserId>, Error> {
    if let Some(users) = &broadcast.users {
        let next: Vec<UserId> = users.iter().skip(broadcast.reached).take(STEP).cloned().collect();
        broadcast.reached += next.len();
        broadcast.is_done = next.len() < STEP;
        return Ok(next);
    }
    let users = chat.store.users(broadcast.after.as_ref(), STEP).await?;
    broadcast.is_done = users.len() < STEP;
    broadcast.after = users.last().map(|user| user.id.clone()).or(broadcast.after.take());
    let existing = users.iter().filter(|user| !user.details.status.is_deleted());
    Ok(existing.map(|user| user.id.clone()).collect())
}

async fn send_to(chat: &Chat, broadcast: &Broadcast, user: UserId) -> Result<(), Error> {
    let client_id = ClientMsgId::parse(&format!("broadcast-{}-{user}", broadcast.id))?;
    let message = NewMessage {
        to: Target::User(user),
        client_id,
        content: Content::text(broadcast.text.clone()),
        reply_to: None,
        marks_read: true,
    };
    send::send_from_system(chat, message).await?;
    Ok(())
}
