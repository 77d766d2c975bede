//! The methods of a client for conversations and messages.
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::account_state::AccountState;
use crate::client::Client;
use crate::conversation::Conversation;
use crate::conversation_summary::ConversationSummary;
use crate::core::Core;
use crate::error::Error;
use crate::http::ApiRequest;
use crate::pull;
use crate::types::{Address, Content, Message, Receive, Target};

/// Whether a member has read a message.
#[derive(Debug, Clone, Deserialize)]
pub struct Reader {
    pub user_id: String,
    pub has_read: bool,
}

impl Client {
    /// The list: pinned conversations first, then the latest; without ended and hidden ones.
    pub async fn conversations(&self) -> Result<Vec<ConversationSummary>, Error> {
        let list = |core: &mut Core| {
            let all = core.account.iter().flat_map(|account| account.conversations.values());
            all.filter(|one| one.is_listed()).map(Conversation::summary).collect::<Vec<_>>()
        };
        let mut summaries = self.0.jobs.call(list).await?;
        summaries.sort_by_key(|summary| std::cmp::Reverse((summary.is_pinned, summary.updated_at)));
        Ok(summaries)
    }

    /// The summary of one conversation.
    pub async fn conversation(
        &self,
        target: impl Into<Target>,
    ) -> Result<Option<ConversationSummary>, Error> {
        let target = target.into();
        self.with_account(move |account| account.find(&target).map(|one| one.summary())).await
    }

    /// The messages on this device in order, those without a seq at the end.
    pub async fn messages(&self, target: impl Into<Target>) -> Result<Vec<Arc<Message>>, Error> {
        let target = target.into();
        self.with_account(move |account| {
            account.find(&target).map(|one| one.list()).unwrap_or_default()
        })
        .await
    }

    /// Sends a message. It stays in the outbox until the server saves or refuses it, across
    /// connections and restarts.
    pub async fn send(
        &self,
        target: impl Into<Target>,
        content: impl Into<Content>,
    ) -> Result<Arc<Message>, Error> {
        let (target, content) = (target.into(), content.into());
        self.with_account(move |account| account.send(&target, content)).await
    }

    /// Waits until a sent message is saved; fails if it is refused.
    pub async fn saved(&self, message: &Message) -> Result<Arc<Message>, Error> {
        let (sender, receiver) = oneshot::channel();
        let message = message.clone();
        self.with_account(move |account| account.notify_when_saved(&message, sender)).await?;
        receiver.await.map_err(|_| Error::Closed)?
    }

    /// Sends a refused message again.
    pub async fn retry(&self, client_msg_id: &str) -> Result<(), Error> {
        let id = client_msg_id.to_owned();
        self.with_account(move |account| account.retry(&id)).await
    }

    /// Deletes a refused message.
    pub async fn discard(&self, client_msg_id: &str) -> Result<(), Error> {
        let id = client_msg_id.to_owned();
        self.with_account(move |account| account.discard(&id)).await
    }

    /// Marks everything up to `seq` as read, or everything on this device.
    pub async fn mark_read(
        &self,
        target: impl Into<Target>,
        seq: Option<u64>,
    ) -> Result<(), Error> {
        let target = target.into();
        let over_http = self.with_account(move |account| account.mark_read(&target, seq)).await?;
        let Some((conversation_id, read_seq)) = over_http else { return Ok(()) };
        let body = json!({ "conversation_id": conversation_id, "read_seq": read_seq });
        self.post("/conversation/mark_read", body).await?;
        self.with_account(|account| account.sync.schedule_heads(account.now)).await
    }

    /// Loads older messages; empty if there are none.
    pub async fn load_older(
        &self,
        target: impl Into<Target>,
        limit: u64,
    ) -> Result<Vec<Arc<Message>>, Error> {
        let target = target.into();
        let ids = move |account: &mut AccountState| {
            (target.conversation_id(&account.me), account.jobs.clone())
        };
        let (id, account_jobs) = self.with_account(ids).await?;
        pull::older(&account_jobs, &self.0.sign_in, id, limit).await
    }

    /// Recalls a message for all members.
    pub async fn recall(&self, server_msg_id: &str) -> Result<(), Error> {
        self.post("/msg/recall", json!({ "server_msg_id": server_msg_id })).await?;
        let id = server_msg_id.to_owned();
        self.with_account(move |account| account.recall_anywhere(&id)).await
    }

    /// The members of the conversation and whether each has read the message.
    pub async fn readers(&self, server_msg_id: &str) -> Result<Vec<Reader>, Error> {
        #[derive(Deserialize)]
        struct ReadersPage {
            readers: Vec<Reader>,
            next_cursor: Option<String>,
        }
        let (mut readers, mut cursor) = (Vec::new(), None);
        loop {
            let mut query = vec![("server_msg_id", server_msg_id), ("limit", "200")];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page: ReadersPage =
                self.0.sign_in.fetch(ApiRequest::get("/msg/readers", &query)).await?;
            readers.extend(page.readers);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(readers);
            }
        }
    }

    /// Loads the read cursors of the members of a group and updates `state` and `read_by` of your
    /// messages; receipts keep them current from then on. Call it when the user opens the group,
    /// and again after a lost connection.
    pub async fn load_reads(&self, target: impl Into<Target>) -> Result<(), Error> {
        let target = target.into();
        let group = move |account: &mut AccountState| {
            let conversation = account.find(&target)?;
            let id = conversation.id.clone();
            match &conversation.address {
                Address::Group { group_id } => Some((id, group_id.clone(), account.jobs.clone())),
                Address::To { .. } => None,
            }
        };
        let Some((id, group_id, account_jobs)) = self.with_account(group).await? else {
            return Ok(());
        };
        let Some(members) = self.groups().read_state(&group_id).await? else { return Ok(()) };
        account_jobs.call(move |account| account.apply_read_states(&id, members)).await
    }

    /// Reports that the user is typing. Call it at every key; it is sent at most once per
    /// `typing_every_ms`.
    pub fn typing(&self, target: impl Into<Target>) {
        let target = target.into();
        self.0.jobs.put(move |core| {
            let is_online = core.is_online();
            if let Some(account) = core.account.as_mut().filter(|_| is_online) {
                account.send_typing(&target);
            }
        });
    }

    /// Pins a conversation to the top of the list, or unpins it. A private one needs no message
    /// for it.
    pub async fn pin(&self, target: impl Into<Target>, is_pinned: bool) -> Result<(), Error> {
        self.update_settings(target.into(), json!({ "is_pinned": is_pinned })).await
    }

    /// Sets how you are notified of a conversation. A private one needs no message for it: a user
    /// can be blocked before they write. Then `conversation` has the setting, and the list nothing.
    pub async fn receive(&self, target: impl Into<Target>, receive: Receive) -> Result<(), Error> {
        self.update_settings(target.into(), json!({ "recv_msg_opt": receive as u8 })).await
    }

    /// Hides a conversation from the list until its next message, or shows it again.
    pub async fn hide(&self, target: impl Into<Target>, is_hidden: bool) -> Result<(), Error> {
        let target = target.into();
        let current = move |account: &mut AccountState| {
            let id = target.conversation_id(&account.me);
            let conversation = account.get_or_create(&id);
            let seen = conversation.has_begun.then(|| conversation.arrived.last());
            (id, seen)
        };
        let (id, seen) = self.with_account(current).await?;
        // A message that arrives during the request was not seen, so the seq from before is what is
        // hidden.
        let mut body = json!({ "conversation_id": id, "hidden": is_hidden });
        if let Some(seq) = seen {
            body["seq"] = json!(seq);
        }
        self.post("/conversation/hide", body).await?;
        let hide = move |account: &mut AccountState| {
            account.get_or_create(&id).details.hidden_seq = is_hidden.then_some(seen.unwrap_or(0));
            account.touch(&id);
        };
        self.with_account(hide).await
    }

    async fn update_settings(&self, target: Target, mut choice: Value) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct ConversationSettings {
            is_pinned: bool,
            recv_msg_opt: u8,
        }
        let id = self.with_account(move |account| target.conversation_id(&account.me)).await?;
        choice["conversation_id"] = json!(id);
        let now: ConversationSettings =
            self.0.sign_in.fetch(ApiRequest::put("/conversation/update", choice)).await?;
        let choose = move |account: &mut AccountState| {
            account.get_or_create(&id).set_settings(now.is_pinned, now.recv_msg_opt);
            account.touch(&id);
            account.sync.schedule_heads(account.now); // fetches what came while it was blocked
        };
        self.with_account(choose).await
    }
}
