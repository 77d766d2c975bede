//! The messages of one conversation.

use std::collections::{HashMap, HashSet};

use mysql_async::Value;
use nexo_chat::ids::{ClientMsgId, ConversationId, MessageId, Millis, Seq, UserId};
use nexo_chat::model::{Content, ContentKind, CursorKind, Message, Recall};
use nexo_chat::progress::Progress;
use nexo_chat::store::StoreError;

use super::Reader;
use super::old::{Cells, Key};
use super::report::Note;
use crate::archive::Item;

/// Messages read at a time.
const PAGE: usize = 1000;
/// The state of a message that was taken back.
const REVOKED: i64 = 4;
/// What begins a client id that we made: nobody else's may.
const MADE: &str = "mini-im-";

/// A conversation on its way over.
pub(super) struct Talk {
    pub(super) conversation: ConversationId,
    /// The ids of the messages by their seqs.
    ids: Vec<Key>,
    /// When each came, never before the one before it.
    times: Vec<Millis>,
    /// How far people came by what they said.
    progress: HashMap<UserId, Progress>,
}

/// Which rows of `t_message` they are.
pub(super) struct Place<'a> {
    pub(super) condition: &'a str,
    pub(super) keys: Vec<Value>,
    /// The group, if it is one.
    pub(super) group: Option<&'a Key>,
}

/// Who is mentioned by a message, and how.
type Mentions = HashMap<Key, Vec<(Key, i64)>>;

impl Talk {
    fn new(conversation: ConversationId) -> Self {
        Self { conversation, ids: Vec::new(), times: Vec::new(), progress: HashMap::new() }
    }

    fn head(&self) -> Seq {
        Seq(self.ids.len() as u64)
    }

    /// The place of the newest message up to an id; the message itself may be left out.
    fn seq_of(&self, id: Option<&Key>) -> Seq {
        Seq(id.map_or(0, |id| self.ids.partition_point(|known| known <= id)) as u64)
    }

    /// The newest message before a time.
    pub(super) fn newest_at(&self, time: Millis) -> Seq {
        Seq(self.times.partition_point(|known| *known < time) as u64)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Where somebody's cursors are: as far as they had come, and at what they said themselves.
    pub(super) fn progress(
        &self,
        user: &UserId,
        delivered: Option<&Key>,
        read: Option<&Key>,
    ) -> Progress {
        let mut progress = self.progress.get(user).copied().unwrap_or_default();
        progress.acknowledged(CursorKind::Delivered, self.seq_of(delivered));
        progress.acknowledged(CursorKind::Read, self.seq_of(read));
        progress
    }
}

impl Reader {
    /// Brings all messages of a conversation over.
    pub(super) async fn talk(
        &mut self,
        conversation: ConversationId,
        place: &Place<'_>,
    ) -> Result<Talk, StoreError> {
        let mut talk = Talk::new(conversation);
        let [created_at, updated_at] =
            ["created_at", "updated_at"].map(|column| self.old.time("t_message", column));
        let mut last: Option<Key> = None;
        loop {
            let after = if last.is_some() { "AND id > ?" } else { "" };
            let sql = format!(
                "SELECT id, from_user_id, msg_type, content, status, client_msg_id, {created_at}, \
                 {updated_at} FROM t_message WHERE {} {after} ORDER BY id LIMIT {PAGE}",
                place.condition,
            );
            let mut params = place.keys.clone();
            params.extend(last.iter().map(Key::value));
            let rows = self.old.rows(sql, params).await?;
            let is_last = rows.len() < PAGE;
            let rows: Vec<(Key, Cells)> =
                rows.into_iter().filter_map(|mut row| Some((row.key()?, row))).collect();
            let mentions = self.mentions(place.group, &rows).await?;
            for (id, row) in rows {
                self.visited += 1;
                last = Some(id.clone());
                self.message(&mut talk, id, row, &mentions).await?;
            }
            if is_last {
                return Ok(talk);
            }
        }
    }

    async fn mentions(
        &mut self,
        group: Option<&Key>,
        rows: &[(Key, Cells)],
    ) -> Result<Mentions, StoreError> {
        let mut mentions = Mentions::new();
        let (Some(group), Some((first, _)), Some((last, _))) = (group, rows.first(), rows.last())
        else {
            return Ok(mentions);
        };
        if !self.old.has("t_message_mention") {
            return Ok(mentions);
        }
        let sql = "SELECT message_id, mentioned_user_id, mention_type FROM t_message_mention \
             WHERE group_id = ? AND message_id BETWEEN ? AND ? ORDER BY id";
        let params = [group, first, last].map(Key::value).to_vec();
        for mut row in self.old.rows(sql, params).await? {
            let (message, whom, how) = (row.key(), row.key(), row.number());
            if let (Some(message), Some(whom), Some(how)) = (message, whom, how) {
                mentions.entry(message).or_default().push((whom, how));
            }
        }
        Ok(mentions)
    }

    async fn message(
        &mut self,
        talk: &mut Talk,
        id: Key,
        mut row: Cells,
        mentions: &Mentions,
    ) -> Result<(), StoreError> {
        let Some(from) = row.key() else {
            self.report.note(Note::NoSender, id.text());
            return Ok(());
        };
        let sender = self.person(&from).await?;
        if talk.conversation.group().is_none() && talk.conversation.peer_of(&sender).is_none() {
            self.report.note(Note::SenderOutside, id.text());
            return Ok(());
        }
        let kind = self.kind(&id, row.number());
        let body = row.text().unwrap_or_default();
        let status = row.number();
        let client_id = self.client_id(&from, &id, row.bytes());
        let (sent_at, updated_at) = (row.millis(), row.millis());
        let mut content = Content { kind, ..Content::text(body) };
        let seq = talk.head().next();
        let said = mentions.get(&id).map_or(&[][..], Vec::as_slice);
        let marks = self.marks(&mut content, said, &sender);
        let fingerprint = content.fingerprint(&talk.conversation);
        let conversation = talk.conversation.clone();
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
            // Only senders could.
            message = message.recalled(Recall { by: sender.clone(), at: updated_at });
        }
        talk.ids.push(id);
        talk.times.push(talk.times.last().map_or(sent_at, |last| sent_at.max(*last)));
        talk.progress.entry(sender.clone()).or_default().sent(seq, true);
        self.give(Item::Message { message: Box::new(message), fingerprint }).await?;
        for whom in marks {
            let (conversation, sender) = (conversation.clone(), sender.clone());
            self.give(Item::Mention { whom, conversation, seq, sender }).await?;
        }
        Ok(())
    }

    fn kind(&mut self, id: &Key, number: Option<i64>) -> ContentKind {
        let number = number.and_then(|number| i32::try_from(number).ok()).map(ContentKind);
        number.filter(|kind| kind.is_known()).unwrap_or_else(|| {
            self.report.note(Note::UnknownKind, id.text());
            ContentKind::CUSTOM
        })
    }

    /// The sender's name for a message, or one that is made of its id and so always the same.
    fn client_id(&mut self, from: &Key, id: &Key, kept: Option<Vec<u8>>) -> ClientMsgId {
        let is_first = |kept: &Vec<u8>| {
            self.repeated.get(&(from.clone(), kept.clone())).is_none_or(|first| first == id)
        };
        let kept = kept.filter(is_first).and_then(|kept| String::from_utf8(kept).ok());
        let kept = kept.filter(|kept| !kept.starts_with(MADE));
        if let Some(kept) = kept.and_then(|kept| ClientMsgId::parse(&kept).ok()) {
            return kept;
        }
        self.report.note(Note::ClientId, id.text());
        let made = ClientMsgId::parse(&format!("{MADE}{}", id.text()));
        made.unwrap_or_else(|_| {
            // An id of letters may be anything; its hash is not.
            let hash = blake3::hash(id.text().as_bytes()).to_hex();
            ClientMsgId::parse(&format!("{MADE}{hash}")).expect("a hash is short and plain")
        })
    }

    /// Whom a message speaks to. Mentions go into its content; of an answer only whom it answers is
    /// known, and not what.
    fn marks(
        &mut self,
        content: &mut Content,
        said: &[(Key, i64)],
        sender: &UserId,
    ) -> Vec<Option<UserId>> {
        let mut whom = HashSet::new();
        for (key, how) in said {
            if *how == 3 {
                content.mentions_all = true;
                whom.insert(None);
                continue;
            }
            let Some(user) = self.people.get(key) else {
                self.report.note(Note::UnknownMention, key.text());
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
