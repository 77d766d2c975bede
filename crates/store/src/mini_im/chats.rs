//! Chats of two people.

use std::collections::{BTreeMap, HashMap};

use nexo_chat::ids::{ConversationId, UserId};
use nexo_chat::model::{Receive, Settings, Window};
use nexo_chat::store::StoreError;

use super::Reader;
use super::old::Key;
use super::report::Note;
use super::talk::{Place, Talk};
use crate::archive::Item;

/// What was kept of somebody in a chat or group.
#[derive(Default)]
pub(super) struct Kept {
    pub(super) delivered: Option<Key>,
    pub(super) read: Option<Key>,
    pub(super) is_quiet: bool,
}

impl Reader {
    /// All chats. Two rows of the same two people are one conversation.
    pub(super) async fn chats(&mut self) -> Result<(), StoreError> {
        let mut chats: BTreeMap<ConversationId, Vec<Key>> = BTreeMap::new();
        let sql = "SELECT id, user1_id, user2_id FROM t_single_chat ORDER BY id";
        for mut row in self.old.rows(sql, Vec::new()).await? {
            let (Some(id), Some(one), Some(other)) = (row.key(), row.key(), row.key()) else {
                self.report.note(Note::NotTwo, "one without people");
                continue;
            };
            if one == other {
                self.report.note(Note::NotTwo, id.text());
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

    async fn chat(&mut self, conversation: ConversationId, ids: &[Key]) -> Result<(), StoreError> {
        let list = vec!["?"; ids.len()].join(", ");
        let place = Place {
            condition: &format!("chat_type = 1 AND single_chat_id IN ({list})"),
            keys: ids.iter().map(Key::value).collect(),
            group: None,
        };
        let talk = self.talk(conversation, &place).await?;
        if talk.is_empty() {
            self.report.note(Note::EmptyChat, ids[0].text());
            return Ok(());
        }
        let kept = self.kept(ids).await?;
        let Some((one, other)) = talk.conversation.pair() else { return Ok(()) };
        for user in [one, other] {
            let kept = kept.get(&user);
            self.member(&talk, user, kept.unwrap_or(&Kept::default()), Window::ALL).await?;
        }
        Ok(())
    }

    /// What was kept of the people of a chat.
    async fn kept(&mut self, ids: &[Key]) -> Result<HashMap<UserId, Kept>, StoreError> {
        let mut all: HashMap<UserId, Kept> = HashMap::new();
        if !self.old.has("t_single_chat_member") {
            return Ok(all);
        }
        let muted = self.old.column("t_single_chat_member", "mute_until");
        let list = vec!["?"; ids.len()].join(", ");
        let sql = format!(
            "SELECT user_id, last_delivered_msg_id, last_read_msg_id, {muted} > NOW() \
             FROM t_single_chat_member WHERE single_chat_id IN ({list})"
        );
        for mut row in self.old.rows(sql, ids.iter().map(Key::value).collect()).await? {
            let Some(user) = row.key().and_then(|user| self.people.get(&user)) else {
                self.report.note(Note::NoMember, ids[0].text());
                continue;
            };
            let kept = all.entry(user).or_default();
            // Of two rows, the one that is further.
            kept.delivered = row.key().max(kept.delivered.take());
            kept.read = row.key().max(kept.read.take());
            kept.is_quiet |= row.number() == Some(1);
        }
        Ok(all)
    }

    /// Somebody's place.
    pub(super) async fn member(
        &mut self,
        talk: &Talk,
        user: UserId,
        kept: &Kept,
        window: Window,
    ) -> Result<(), StoreError> {
        let progress = talk.progress(&user, kept.delivered.as_ref(), kept.read.as_ref());
        let mut settings = Settings::default();
        if kept.is_quiet {
            settings.receive = Receive::Silent;
            self.report.note(Note::Silent, talk.conversation.as_str());
        }
        let conversation = talk.conversation.clone();
        self.give(Item::Member { user, conversation, window, progress, settings }).await
    }
}
