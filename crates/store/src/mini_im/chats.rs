//! Private chats.

use std::collections::{BTreeMap, HashMap};

use nexo_chat::ids::{ConversationId, UserId};
use nexo_chat::model::{Receive, Settings, Window};
use nexo_chat::store::StoreError;

use super::MiniImReader;
use super::history::{ImportedHistory, MessageSource};
use super::report::ImportNote;
use super::source::SourceId;
use crate::archive::Item;

/// A member's cursors and mute in a chat or group.
#[derive(Default)]
pub(super) struct SourceMember {
    pub(super) delivered: Option<SourceId>,
    pub(super) read: Option<SourceId>,
    pub(super) is_muted: bool,
}

impl MiniImReader {
    /// Imports all chats. Two rows of the same two users are one conversation.
    pub(super) async fn chats(&mut self) -> Result<(), StoreError> {
        let mut chats: BTreeMap<ConversationId, Vec<SourceId>> = BTreeMap::new();
        let sql = "SELECT id, user1_id, user2_id FROM t_single_chat ORDER BY id";
        for mut row in self.source.rows(sql, Vec::new()).await? {
            let (Some(id), Some(one), Some(other)) = (row.key(), row.key(), row.key()) else {
                self.report.note(ImportNote::NotTwo, "one without people");
                continue;
            };
            if one == other {
                self.report.note(ImportNote::NotTwo, id.text());
                continue;
            }
            let (one, other) = (self.person(&one).await?, self.person(&other).await?);
            chats.entry(ConversationId::private(&one, &other)).or_default().push(id);
        }
        for (conversation, ids) in chats {
            self.chat(conversation, &ids).await?;
        }
        Ok(())
    }

    async fn chat(
        &mut self,
        conversation: ConversationId,
        ids: &[SourceId],
    ) -> Result<(), StoreError> {
        let list = vec!["?"; ids.len()].join(", ");
        let source = MessageSource {
            condition: &format!("chat_type = 1 AND single_chat_id IN ({list})"),
            keys: ids.iter().map(SourceId::value).collect(),
            group: None,
        };
        let history = self.history(conversation, &source).await?;
        if history.is_empty() {
            self.report.note(ImportNote::EmptyChat, ids[0].text());
            return Ok(());
        }
        let member = self.source_members(ids).await?;
        let Some((one, other)) = history.conversation.pair() else { return Ok(()) };
        for user in [one, other] {
            let member = member.get(&user);
            self.member(&history, user, member.unwrap_or(&SourceMember::default()), Window::ALL)
                .await?;
        }
        Ok(())
    }

    /// Reads the members of a chat.
    async fn source_members(
        &mut self,
        ids: &[SourceId],
    ) -> Result<HashMap<UserId, SourceMember>, StoreError> {
        let mut all: HashMap<UserId, SourceMember> = HashMap::new();
        if !self.source.has("t_single_chat_member") {
            return Ok(all);
        }
        let muted = self.source.column("t_single_chat_member", "mute_until");
        let list = vec!["?"; ids.len()].join(", ");
        let sql = format!(
            "SELECT user_id, last_delivered_msg_id, last_read_msg_id, {muted} > NOW() \
             FROM t_single_chat_member WHERE single_chat_id IN ({list})"
        );
        for mut row in self.source.rows(sql, ids.iter().map(SourceId::value).collect()).await? {
            let Some(user) = row.key().and_then(|user| self.users.get(&user)) else {
                self.report.note(ImportNote::NoMember, ids[0].text());
                continue;
            };
            let member = all.entry(user).or_default();
            // Of two rows, the cursor that is further.
            member.delivered = row.key().max(member.delivered.take());
            member.read = row.key().max(member.read.take());
            member.is_muted |= row.number() == Some(1);
        }
        Ok(all)
    }

    /// Sends a member of a conversation.
    pub(super) async fn member(
        &mut self,
        history: &ImportedHistory,
        user: UserId,
        member: &SourceMember,
        window: Window,
    ) -> Result<(), StoreError> {
        let progress = history.progress(&user, member.delivered.as_ref(), member.read.as_ref());
        let mut settings = Settings::default();
        if member.is_muted {
            settings.receive = Receive::Silent;
            self.report.note(ImportNote::Silent, history.conversation.as_str());
        }
        let conversation = history.conversation.clone();
        self.send(Item::Member { user, conversation, window, progress, settings }).await
    }
}
