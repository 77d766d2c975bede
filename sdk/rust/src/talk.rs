//! What a client does with conversations and messages.
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::client::Client;
use crate::conversation::Conversation;
use crate::core::Core;
use crate::desk::Desk;
use crate::error::Error;
use crate::http::Ask;
use crate::line::ConversationLine;
use crate::pull;
use crate::types::{Address, Content, Message, Receive, Target};

/// Whether somebody has read a message.
#[derive(Debug, Clone, Deserialize)]
pub struct Reader {
    /// Who.
    pub user_id: String,
    /// Whether they have.
    pub has_read: bool,
}

impl Client {
    /// The list: pinned ones first, then the latest. What has ended or was hidden is not in it.
    pub async fn conversations(&self) -> Result<Vec<ConversationLine>, Error> {
        let list = |core: &mut Core| {
            let all = core.desk.iter().flat_map(|desk| desk.conversations.values());
            all.filter(|one| one.is_listed()).map(Conversation::line).collect::<Vec<_>>()
        };
        let mut lines = self.0.jobs.ask(list).await?;
        lines.sort_by_key(|line| std::cmp::Reverse((line.pinned, line.updated_at)));
        Ok(lines)
    }

    /// One line of it.
    pub async fn conversation(
        &self,
        target: impl Into<Target>,
    ) -> Result<Option<ConversationLine>, Error> {
        let target = target.into();
        self.at_desk(move |desk| desk.find(&target).map(|one| one.line())).await
    }

    /// The messages that are on this device, in order, and those without a place at the end.
    pub async fn messages(&self, target: impl Into<Target>) -> Result<Vec<Arc<Message>>, Error> {
        let target = target.into();
        self.at_desk(move |desk| desk.find(&target).map(|one| one.list()).unwrap_or_default()).await
    }

    /// Says something. It is on its way until it is saved or refused, whatever happens between.
    pub async fn send(
        &self,
        target: impl Into<Target>,
        content: impl Into<Content>,
    ) -> Result<Arc<Message>, Error> {
        let (target, content) = (target.into(), content.into());
        self.at_desk(move |desk| desk.send(&target, content)).await
    }

    /// Waits until a message that was sent is saved; an error if it is refused.
    pub async fn saved(&self, message: &Message) -> Result<Arc<Message>, Error> {
        let (waiter, answer) = oneshot::channel();
        let message = message.clone();
        self.at_desk(move |desk| desk.wait_for(&message, waiter)).await?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Tries a refused message again.
    pub async fn retry(&self, client_msg_id: &str) -> Result<(), Error> {
        let name = client_msg_id.to_owned();
        self.at_desk(move |desk| desk.retry(&name)).await
    }

    /// Forgets a refused message.
    pub async fn discard(&self, client_msg_id: &str) -> Result<(), Error> {
        let name = client_msg_id.to_owned();
        self.at_desk(move |desk| desk.discard(&name)).await
    }

    /// You have read up to this place, or everything that is here.
    pub async fn mark_read(
        &self,
        target: impl Into<Target>,
        seq: Option<u64>,
    ) -> Result<(), Error> {
        let target = target.into();
        let beyond = self.at_desk(move |desk| desk.mark_read(&target, seq)).await?;
        let Some((conversation_id, read_seq)) = beyond else { return Ok(()) };
        let body = json!({ "conversation_id": conversation_id, "read_seq": read_seq });
        self.post("/conversation/mark_read", body).await?;
        self.at_desk(|desk| desk.sync.ask_heads(desk.now)).await
    }

    /// Brings older messages; none if there are none.
    pub async fn load_older(
        &self,
        target: impl Into<Target>,
        limit: u64,
    ) -> Result<Vec<Arc<Message>>, Error> {
        let target = target.into();
        let whose = move |desk: &mut Desk| (target.conversation_id(&desk.me), desk.inside.clone());
        let (id, inside) = self.at_desk(whose).await?;
        pull::older(&inside, &self.0.sign_in, id, limit).await
    }

    /// Takes a message back, for everybody.
    pub async fn recall(&self, server_msg_id: &str) -> Result<(), Error> {
        self.post("/msg/recall", json!({ "server_msg_id": server_msg_id })).await?;
        let name = server_msg_id.to_owned();
        self.at_desk(move |desk| desk.recalled(&name)).await
    }

    /// Who has read a message.
    pub async fn readers(&self, server_msg_id: &str) -> Result<Vec<Reader>, Error> {
        #[derive(Deserialize)]
        struct Page {
            readers: Vec<Reader>,
            next_cursor: Option<String>,
        }
        let (mut readers, mut cursor) = (Vec::new(), None);
        loop {
            let mut query = vec![("server_msg_id", server_msg_id), ("limit", "200")];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: Page = self.0.sign_in.ask(Ask::get("/msg/readers", &query)).await?;
            readers.extend(page.readers);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(readers);
            }
        }
    }

    /// Asks how far everybody in a group has read, and lets `state` and `read_by` of your messages
    /// follow; from then on receipts keep them. Call it when somebody looks, and again when the line was
    /// away.
    pub async fn load_reads(&self, target: impl Into<Target>) -> Result<(), Error> {
        let target = target.into();
        let which = move |desk: &mut Desk| {
            let conversation = desk.find(&target)?;
            let id = conversation.id.clone();
            match &conversation.address {
                Address::Group { group_id } => Some((id, group_id.clone(), desk.inside.clone())),
                Address::To { .. } => None,
            }
        };
        let Some((id, group_id, inside)) = self.at_desk(which).await? else { return Ok(()) };
        let Some(members) = self.groups().read_state(&group_id).await? else { return Ok(()) };
        inside.ask(move |desk| desk.learn_reads(&id, members)).await
    }

    /// You are writing. Call it at every key; the others hear of it now and then.
    pub fn typing(&self, target: impl Into<Target>) {
        let target = target.into();
        self.0.jobs.put(move |core| {
            let is_online = core.is_online();
            if let Some(desk) = core.desk.as_mut().filter(|_| is_online) {
                desk.write_to(&target);
            }
        });
    }

    /// Keeps a conversation on top of the list, or not.
    pub async fn pin(&self, target: impl Into<Target>, pinned: bool) -> Result<(), Error> {
        self.choose(target.into(), json!({ "is_pinned": pinned })).await
    }

    /// Chooses what you hear of a conversation.
    pub async fn receive(&self, target: impl Into<Target>, receive: Receive) -> Result<(), Error> {
        self.choose(target.into(), json!({ "recv_msg_opt": receive as u8 })).await
    }

    /// Takes a conversation out of the list until something is said in it, or puts it back.
    pub async fn hide(&self, target: impl Into<Target>, hidden: bool) -> Result<(), Error> {
        let target = target.into();
        let known = move |desk: &mut Desk| {
            let id = target.conversation_id(&desk.me);
            let conversation = desk.open(&id);
            let seen = conversation.has_begun.then(|| conversation.arrived.last());
            (id, seen)
        };
        let (id, seen) = self.at_desk(known).await?;
        // What comes while we ask was not seen, and is not hidden.
        let mut body = json!({ "conversation_id": id, "hidden": hidden });
        if let Some(seq) = seen {
            body["seq"] = json!(seq);
        }
        self.post("/conversation/hide", body).await?;
        let hide = move |desk: &mut Desk| {
            desk.open(&id).about.hidden_seq = hidden.then_some(seen.unwrap_or(0));
            desk.touch(&id);
        };
        self.at_desk(hide).await
    }

    async fn choose(&self, target: Target, mut choice: Value) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Chosen {
            is_pinned: bool,
            recv_msg_opt: u8,
        }
        let id = self.at_desk(move |desk| target.conversation_id(&desk.me)).await?;
        choice["conversation_id"] = json!(id);
        let now: Chosen = self.0.sign_in.ask(Ask::put("/conversation/update", choice)).await?;
        let choose = move |desk: &mut Desk| {
            desk.open(&id).choose(now.is_pinned, now.recv_msg_opt);
            desk.touch(&id);
            desk.sync.ask_heads(desk.now); // what was said while it was blocked
        };
        self.at_desk(choose).await
    }
}
