//! The messages of one conversation.

use std::collections::{HashMap, HashSet};

use mysql_async::Value;
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{Content, ContentKind, CursorKind, Message, Recall};
use nexo_chat::progress::Progress;
use nexo_chat::store::StoreError;

use super::MiniImReader;
use super::report::ImportNote;
use super::source::{SourceId, SourceRow};
use crate::archive::Item;

/// Messages read at a time.
const PAGE: usize = 1000;
/// The state of a recalled message.
const REVOKED: i64 = 4;
/// The prefix of client ids that are generated: no client's own may have it.
const GENERATED_PREFIX: &str = "mini-im-";

/// A conversation that was imported.
pub(super) struct ImportedHistory {
    pub(super) conversation: ConversationId,
    /// The ids of the messages in mini-im, by seq.
    ids: Vec<SourceId>,
    /// When each was sent, but never before the one before it.
    times: Vec<Millis>,
    /// Cursors of users by the messages they sent.
    progress: HashMap<UserId, Progress>,
}

/// Selects the rows of a conversation in `t_message`.
pub(super) struct MessageSource<'a> {
    pub(super) condition: &'a str,
    pub(super) keys: Vec<Value>,
    /// The group, if it is a group conversation.
    pub(super) group: Option<&'a SourceId>,
}

/// The users a message mentions, and the type of each mention.
type SourceMentions = HashMap<SourceId, Vec<(SourceId, i64)>>;

impl ImportedHistory {
    fn new(conversation: ConversationId) -> Self {
        Self { conversation, ids: Vec::new(), times: Vec::new(), progress: HashMap::new() }
    }

    fn head(&self) -> Seq {
        Seq(self.ids.len() as u64)
    }

    /// Returns the seq of the newest message up to an id; the message with that id may not be
    /// imported.
    fn seq_of(&self, id: Option<&SourceId>) -> Seq {
        Seq(id.map_or(0, |id| self.ids.partition_point(|known| known <= id)) as u64)
    }

    /// Returns the seq of the newest message before a time.
    pub(super) fn newest_before(&self, time: Millis) -> Seq {
        Seq(self.times.partition_point(|known| *known < time) as u64)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Returns a user's cursors: as far as they were in mini-im, and at their own messages.
    pub(super) fn progress(
        &self,
        user: &UserId,
        delivered: Option<&SourceId>,
        read: Option<&SourceId>,
    ) -> Progress {
        let mut progress = self.progress.get(user).copied().unwrap_or_default();
        progress.acknowledged(CursorKind::Delivered, self.seq_of(delivered));
        progress.acknowledged(CursorKind::Read, self.seq_of(read));
        progress
    }
}

impl MiniImReader {
    /// Imports all messages of a conversation.
    pub(super) async fn history(
        &mut self,
        conversation: ConversationId,
        source: &MessageSource<'_>,
    ) -> Result<ImportedHistory, StoreError> {
        let mut history = ImportedHistory::new(conversation);
        let [created_at, updated_at] =
            ["created_at", "updated_at"].map(|column| self.source.time("t_message", column));
        let mut last: Option<SourceId> = None;
        loop {
            let after = if last.is_some() { "AND id > ?" } else { "" };
            let sql = format!(
                "SELECT id, from_user_id, msg_type, content, status, client_msg_id, {created_at}, \
                 {updated_at} FROM t_message WHERE {} {after} ORDER BY id LIMIT {PAGE}",
                source.condition,
            );
            let mut params = source.keys.clone();
            params.extend(last.iter().map(SourceId::value));
            let rows = self.source.rows(sql, params).await?;
            let is_last = rows.len() < PAGE;
            let rows: Vec<(SourceId, SourceRow)> =
                rows.into_iter().filter_map(|mut row| Some((row.key()?, row))).collect();
            let mentions = self.mentions(source.group, &rows).await?;
            for (id, row) in rows {
                self.visited += 1;
                last = Some(id.clone());
                self.message(&mut history, id, row, &mentions).await?;
            }
            if is_last {
                return Ok(history);
            }
        }
    }

    async fn mentions(
        &mut self,
        group: Option<&SourceId>,
        rows: &[(SourceId, SourceRow)],
    ) -> Result<SourceMentions, StoreError> {
        let mut mentions = SourceMentions::new();
        let (Some(group), Some((first, _)), Some((last, _))) = (group, rows.first(), rows.last())
        else {
            return Ok(mentions);
        };
        if !self.source.has("t_message_mention") {
            return Ok(mentions);
        }
        let sql = "SELECT message_id, mentioned_user_id, mention_type FROM t_message_mention \
             WHERE group_id = ? AND message_id BETWEEN ? AND ? ORDER BY id";
        let params = [group, first, last].map(SourceId::value).to_vec();
        for mut row in self.source.rows(sql, params).await? {
            let (message, whom, how) = (row.key(), row.key(), row.number());
            if let (Some(message), Some(whom), Some(how)) = (message, whom, how) {
                mentions.entry(message).or_default().push((whom, how));
            }
        }
        Ok(mentions)
    }

    async fn message(
        &mut self,
        history: &mut ImportedHistory,
        id: SourceId,
        mut row: SourceRow,
        mentions: &SourceMentions,
    ) -> Result<(), StoreError> {
        let Some(from) = row.key() else {
            self.report.note(ImportNote::NoSender, id.text());
            return Ok(());
        };
        let sender = self.person(&from).await?;
        if history.conversation.group().is_none() && history.conversation.peer_of(&sender).is_none()
        {
            self.report.note(ImportNote::SenderOutside, id.text());
            return Ok(());
        }
        let kind = self.kind(&id, row.number());
        let body = row.text().unwrap_or_default();
        let status = row.number();
        let client_id = self.client_id(&from, &id, row.bytes());
        let (sent_at, updated_at) = (row.millis(), row.millis());
        let mut content = Content { kind, ..Content::text(body) };
        let seq = history.head().next();
        let said = mentions.get(&id).map_or(&[][..], Vec::as_slice);
        let marks = self.marks(&mut content, said, &sender);
        let fingerprint = content.fingerprint(&history.conversation);
        let conversation = history.conversation.clone();
        let mut message = Message {
            id: MessageId::of(&sender, &client_id),
            conversation: conversation.clone(),
            seq,
            sender: sender.clone(),
            client_id,
            sent_at,
            content,
            recalled: None,
        };
        if status == Some(REVOKED) {
            // In mini-im only the sender could recall.
            message = message.recalled(Recall { by: sender.clone(), at: updated_at });
        }
        history.ids.push(id);
        history.times.push(history.times.last().map_or(sent_at, |last| sent_at.max(*last)));
        history.progress.entry(sender.clone()).or_default().sent(seq, true);
        self.send(Item::Message { message: Box::new(message), fingerprint }).await?;
        for whom in marks {
            let (conversation, sender) = (conversation.clone(), sender.clone());
            self.send(Item::Mention { whom, conversation, seq, sender }).await?;
        }
        Ok(())
    }

    fn kind(&mut self, id: &SourceId, number: Option<i64>) -> ContentKind {
        let number = number.and_then(|number| i32::try_from(number).ok()).map(ContentKind);
        number.filter(|kind| kind.is_known()).unwrap_or_else(|| {
            self.report.note(ImportNote::UnknownKind, id.text());
            ContentKind::CUSTOM
        })
    }

    /// Returns the client id of a message, or one that is generated from its id and so always the
    /// same.
    fn client_id(
        &mut self,
        from: &SourceId,
        id: &SourceId,
        member: Option<Vec<u8>>,
    ) -> ClientMsgId {
        let is_first = |member: &Vec<u8>| {
            self.repeated_client_ids
                .get(&(from.clone(), member.clone()))
                .is_none_or(|first| first == id)
        };
        let member = member.filter(is_first).and_then(|member| String::from_utf8(member).ok());
        let member = member.filter(|member| !member.starts_with(GENERATED_PREFIX));
        if let Some(member) = member.and_then(|member| ClientMsgId::parse(&member).ok()) {
            return member;
        }
        self.report.note(ImportNote::ClientId, id.text());
        let made = ClientMsgId::parse(&format!("{GENERATED_PREFIX}{}", id.text()));
        made.unwrap_or_else(|_| {
            // A text id may have any characters; its hash has none that are not allowed.
            let hash = blake3::hash(id.text().as_bytes()).to_hex();
            ClientMsgId::parse(&format!("{GENERATED_PREFIX}{hash}"))
                .expect("a hash is short and plain")
        })
    }

    /// Returns the users a message mentions. Mentions go into its content; of a reply only the
    /// replied-to user is known, not the message.
    fn marks(
        &mut self,
        content: &mut Content,
        said: &[(SourceId, i64)],
        sender: &UserId,
    ) -> Vec<Option<UserId>> {
        let mut whom = HashSet::new();
        for (key, how) in said {
            if *how == 3 {
                content.mentions_all = true;
                whom.insert(None);
                continue;
            }
            let Some(user) = self.users.get(key) else {
                self.report.note(ImportNote::UnknownMention, key.text());
                continue;
            };
            if *how == 1 && !content.mentions.contains(&user) {
                content.mentions.push(user.clone());
            }
            if user != *sender {
                whom.insert(Some(user));
            }
        }
        let mut whom: Vec<_> = whom.into_iter().collect();
        whom.sort();
        whom
    }
}
