//! Values on disk: a version byte, a checksum over keyspace, key and payload, and the payload.
//!
//! The key is in the checksum, so that a value that got under a wrong key is noticed. The payload
//! is postcard of the private structs below; the domain's own types know nothing of the disk.
//!
//! A struct only ever grows at its end, and [`VERSION`] is raised with it. A record of an older
//! version ends before the new fields; they are read as zeros (0, false, nothing, empty), so a new
//! field says with its zero what was true before there was such a field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use nexo_chat::ids::{
    ClientMsgId, ConversationId, LoginId, MessageId, Millis, Platform, Seq, UserId,
};
use nexo_chat::model::{
    Content, ContentKind, Cursors, Edge, Fingerprint, Hidden, Login, Message, Profile, Recall,
    Receive, ReplyTo, ResetCode, Settings, User, Window,
};
use nexo_chat::progress::Progress;

use super::keys::Space;
use super::padded::Padded;
use super::poison::Fault;

/// The version that is written; older ones are read too.
const VERSION: u8 = 2;
const HEADER: usize = 5;

/// The bytes of a record for this place.
pub(crate) fn encode(space: Space, key: &[u8], record: &impl Serialize) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::with_capacity(64);
    bytes.extend_from_slice(&[VERSION, 0, 0, 0, 0]);
    let mut bytes = postcard::to_extend(record, bytes).map_err(|error| {
        Fault::new(format!("cannot write a record of {}: {error}", space.name()))
    })?;
    let checksum = checksum(VERSION, space, key, &bytes[HEADER..]);
    bytes[1..HEADER].copy_from_slice(&checksum.to_be_bytes());
    Ok(bytes)
}

/// The record in these bytes, or the damage.
pub(crate) fn decode<'a, T: Deserialize<'a>>(
    space: Space,
    key: &[u8],
    bytes: &'a [u8],
) -> Result<T, Fault> {
    let damaged = |what: &str| Fault::new(format!("damaged record in {}: {what}", space.name()));
    let (header, payload) =
        bytes.split_first_chunk::<HEADER>().ok_or_else(|| damaged("too short"))?;
    let [version, stored @ ..] = *header;
    if u32::from_be_bytes(stored) != checksum(version, space, key, payload) {
        return Err(damaged("wrong checksum"));
    }
    let read = match version {
        VERSION => postcard::take_from_bytes(payload),
        1..VERSION => Padded::take(payload),
        _ => return Err(damaged("unknown version")),
    };
    match read {
        Ok((record, [])) => Ok(record),
        Ok(_) => Err(damaged("bytes left over")),
        Err(error) => Err(damaged(&error.to_string())),
    }
}

fn checksum(version: u8, space: Space, key: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[version, space as u8]);
    hasher.update(key);
    hasher.update(payload);
    hasher.finalize()
}

/// A damage that the checksum cannot see: the record is whole but says something impossible.
pub(crate) fn impossible(space: Space, what: &str) -> Fault {
    Fault::new(format!("damaged record in {}: {what}", space.name()))
}

#[derive(Serialize, Deserialize)]
pub(crate) struct MessageRecord<'a> {
    id: [u8; 16],
    sender: &'a str,
    client_id: &'a str,
    sent_at: u64,
    kind: i32,
    body: &'a [u8],
    #[serde(borrow)]
    extra: BTreeMap<&'a str, &'a str>,
    #[serde(borrow)]
    mentions: Vec<&'a str>,
    mentions_all: bool,
    /// What it answers, and who had said that.
    #[serde(borrow)]
    reply_to: Option<([u8; 16], &'a str)>,
    /// Who recalled it, and when.
    #[serde(borrow)]
    recalled: Option<(&'a str, u64)>,
}

impl<'a> From<&'a Message> for MessageRecord<'a> {
    fn from(message: &'a Message) -> Self {
        let content = &message.content;
        Self {
            id: message.id.0,
            sender: message.sender.as_str(),
            client_id: message.client_id.as_str(),
            sent_at: message.sent_at.0,
            kind: content.kind.0,
            body: &content.body,
            extra: content.extra.iter().map(|(key, value)| (&**key, &**value)).collect(),
            mentions: content.mentions.iter().map(UserId::as_str).collect(),
            mentions_all: content.mentions_all,
            reply_to: content.reply_to.as_ref().map(|it| (it.message.0, it.sender.as_str())),
            recalled: message.recalled.as_ref().map(|recall| (recall.by.as_str(), recall.at.0)),
        }
    }
}

impl MessageRecord<'_> {
    pub(crate) fn sent_at(&self) -> Millis {
        Millis(self.sent_at)
    }

    pub(crate) fn message(
        &self,
        conversation: &ConversationId,
        seq: Seq,
    ) -> Result<Message, Fault> {
        let mentions: Result<_, _> = self.mentions.iter().copied().map(user_id).collect();
        let owned = |(key, value): (&&str, &&str)| ((*key).to_owned(), (*value).to_owned());
        Ok(Message {
            id: MessageId(self.id),
            conversation: conversation.clone(),
            seq,
            sender: user_id(self.sender)?,
            client_id: ClientMsgId::parse(self.client_id)
                .map_err(|_| impossible(Space::Messages, "not a client id"))?,
            sent_at: Millis(self.sent_at),
            content: Content {
                kind: ContentKind(self.kind),
                body: self.body.to_vec().into(),
                extra: self.extra.iter().map(owned).collect(),
                mentions: mentions?,
                mentions_all: self.mentions_all,
                reply_to: match self.reply_to {
                    Some((message, sender)) => {
                        Some(ReplyTo { message: MessageId(message), sender: user_id(sender)? })
                    }
                    None => None,
                },
            },
            recalled: match self.recalled {
                Some((by, at)) => Some(Recall { by: user_id(by)?, at: Millis(at) }),
                None => None,
            },
        })
    }
}

pub(crate) fn user_id(text: &str) -> Result<UserId, Fault> {
    UserId::parse(text).map_err(|_| Fault::new(format!("damaged record: {text:?} is no user id")))
}

/// Where a message id is found, and what content it stood for.
#[derive(Serialize, Deserialize)]
pub(crate) struct IdRecord<'a> {
    pub(crate) conversation: &'a str,
    pub(crate) seq: u64,
    fingerprint: [u8; 16],
}

impl<'a> IdRecord<'a> {
    pub(crate) fn new(
        conversation: &'a ConversationId,
        seq: Seq,
        fingerprint: Fingerprint,
    ) -> Self {
        Self { conversation: conversation.as_str(), seq: seq.0, fingerprint: fingerprint.0 }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.fingerprint)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WindowRecord {
    min: u64,
    change_min: u64,
    since: u64,
    end: Option<EdgeRecord>,
}

impl From<Window> for WindowRecord {
    fn from(window: Window) -> Self {
        Self {
            min: window.min.0,
            change_min: window.change_min.0,
            since: window.since.0,
            end: window.end.map(EdgeRecord::from),
        }
    }
}

impl From<WindowRecord> for Window {
    fn from(record: WindowRecord) -> Self {
        Self {
            min: Seq(record.min),
            change_min: Seq(record.change_min),
            since: Millis(record.since),
            end: record.end.map(Edge::from),
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct EdgeRecord {
    seq: u64,
    change_seq: u64,
    at: u64,
}

impl From<Edge> for EdgeRecord {
    fn from(edge: Edge) -> Self {
        Self { seq: edge.seq.0, change_seq: edge.change_seq.0, at: edge.at.0 }
    }
}

impl From<EdgeRecord> for Edge {
    fn from(record: EdgeRecord) -> Self {
        let (seq, change_seq) = (Seq(record.seq), Seq(record.change_seq));
        Self { seq, change_seq, at: Millis(record.at) }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SettingsRecord<'a> {
    pinned: bool,
    /// 0 normal, 1 silent, 2 blocked.
    receive: u8,
    /// Since version 2: up to which message, and in which window.
    hidden: Option<(u64, u64)>,
    extra: &'a str,
}

impl<'a> From<&'a Settings> for SettingsRecord<'a> {
    fn from(settings: &'a Settings) -> Self {
        let receive = match settings.receive {
            Receive::Normal => 0,
            Receive::Silent => 1,
            Receive::Blocked => 2,
        };
        let hidden = settings.hidden.map(|hidden| (hidden.seq.0, hidden.since.0));
        Self { pinned: settings.pinned, receive, hidden, extra: &settings.extra }
    }
}

impl SettingsRecord<'_> {
    pub(crate) fn settings(&self) -> Result<Settings, Fault> {
        let receive = match self.receive {
            0 => Receive::Normal,
            1 => Receive::Silent,
            2 => Receive::Blocked,
            _ => return Err(impossible(Space::Settings, "an unknown receive option")),
        };
        let hidden = |(seq, since)| Hidden { seq: Seq(seq), since: Millis(since) };
        Ok(Settings {
            pinned: self.pinned,
            receive,
            hidden: self.hidden.map(hidden),
            extra: self.extra.to_owned(),
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct CursorRecord {
    delivered: u64,
    read: u64,
    own: Option<(u64, u64)>,
    quiet: u64,
}

impl From<Progress> for CursorRecord {
    fn from(Progress { cursors, own, quiet }: Progress) -> Self {
        let own = own.map(|(first, last)| (first.0, last.0));
        Self { delivered: cursors.delivered.0, read: cursors.read.0, own, quiet: quiet.0 }
    }
}

impl From<CursorRecord> for Progress {
    fn from(record: CursorRecord) -> Self {
        let cursors = Cursors { delivered: Seq(record.delivered), read: Seq(record.read) };
        let own = record.own.map(|(first, last)| (Seq(first), Seq(last)));
        Self { cursors, own, quiet: Seq(record.quiet) }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct UserRecord<'a> {
    nickname: &'a str,
    avatar: &'a str,
    extra: &'a str,
    created_at: u64,
    password_hash: &'a str,
    session_version: u64,
    /// Since version 2.
    updated_at: u64,
}

impl<'a> From<&'a User> for UserRecord<'a> {
    fn from(user: &'a User) -> Self {
        Self {
            nickname: &user.profile.nickname,
            avatar: &user.profile.avatar,
            extra: &user.profile.extra,
            created_at: user.created_at.0,
            password_hash: &user.password_hash,
            session_version: user.session_version,
            updated_at: user.updated_at.0,
        }
    }
}

impl UserRecord<'_> {
    pub(crate) fn user(&self, id: &UserId) -> User {
        User {
            id: id.clone(),
            profile: Profile {
                nickname: self.nickname.into(),
                avatar: self.avatar.into(),
                extra: self.extra.into(),
            },
            created_at: Millis(self.created_at),
            updated_at: Millis(self.updated_at.max(self.created_at)),
            password_hash: self.password_hash.into(),
            session_version: self.session_version,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct ResetRecord {
    hash: [u8; 32],
    expires_at: u64,
}

impl From<ResetCode> for ResetRecord {
    fn from(code: ResetCode) -> Self {
        Self { hash: code.hash, expires_at: code.expires_at.0 }
    }
}

impl From<ResetRecord> for ResetCode {
    fn from(record: ResetRecord) -> Self {
        Self { hash: record.hash, expires_at: Millis(record.expires_at) }
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct LoginRecord<'a> {
    user: &'a str,
    platform: i32,
    created_at: u64,
    expires_at: u64,
    refresh_hash: [u8; 32],
    generation: u64,
    rotated_at: u64,
    ended: bool,
}

impl<'a> From<&'a Login> for LoginRecord<'a> {
    fn from(login: &'a Login) -> Self {
        Self {
            user: login.user.as_str(),
            platform: login.platform.0,
            created_at: login.created_at.0,
            expires_at: login.expires_at.0,
            refresh_hash: login.refresh_hash,
            generation: login.generation,
            rotated_at: login.rotated_at.0,
            ended: login.ended,
        }
    }
}

impl LoginRecord<'_> {
    pub(crate) fn login(&self, id: LoginId) -> Result<Login, Fault> {
        Ok(Login {
            id,
            user: user_id(self.user)?,
            platform: Platform(self.platform),
            created_at: Millis(self.created_at),
            expires_at: Millis(self.expires_at),
            refresh_hash: self.refresh_hash,
            generation: self.generation,
            rotated_at: Millis(self.rotated_at),
            ended: self.ended,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record as an earlier version wrote it.
    fn written(version: u8, record: &impl Serialize) -> Vec<u8> {
        let payload = postcard::to_allocvec(record).unwrap();
        let checksum = checksum(version, Space::Seen, b"key", &payload);
        [&[version][..], &checksum.to_be_bytes(), &payload].concat()
    }

    #[test]
    fn an_older_record_is_read_with_zeros_for_what_it_does_not_have() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Grown<'a> {
            name: &'a str,
            at: u64,
            note: &'a str,
            rest: (bool, Option<u8>, Vec<u8>),
        }
        let read = |bytes: &[u8]| {
            decode::<Grown<'_>>(Space::Seen, b"key", bytes).map(|it| (it.name.to_owned(), it.at))
        };
        let old = written(1, &("alice", 300_u64));
        let grown: Grown<'_> = decode(Space::Seen, b"key", &old).unwrap();
        let rest = (false, None, Vec::new());
        assert_eq!(grown, Grown { name: "alice", at: 300, note: "", rest });
        // What is written today is whole, and nothing is left over in either.
        assert!(read(&written(VERSION, &("alice", 300_u64, "note", [0_u8; 3]))).is_ok());
        assert!(read(&written(VERSION, &("alice", 300_u64))).is_err());
        assert!(read(&written(1, &("alice", 300_u64, "note", [0_u8; 3], 9_u8))).is_err());
        // A text that says it is longer than the record is damage, not the end of an old one.
        assert!(read(&written(1, &b'\x05')).is_err());
        assert!(read(&written(VERSION + 1, &("alice", 300_u64, "", [0_u8; 3]))).is_err());
    }

    #[test]
    fn every_flipped_bit_and_every_wrong_place_is_noticed() {
        let record = CursorRecord { delivered: 300, read: 2, own: Some((301, 302)), quiet: 7 };
        let good = encode(Space::Cursors, b"key", &record).unwrap();
        assert!(decode::<CursorRecord>(Space::Cursors, b"key", &good).is_ok());
        assert!(decode::<CursorRecord>(Space::Members, b"key", &good).is_err());
        assert!(decode::<CursorRecord>(Space::Cursors, b"kez", &good).is_err());
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<CursorRecord>(Space::Cursors, b"key", &bad).is_err(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(decode::<CursorRecord>(Space::Cursors, b"key", &good[..cut]).is_err());
        }
    }
}
