//! How far the other members of a group have received and read.
use std::collections::HashMap;

use crate::events::Receipt;
use crate::group::MemberReadState;
use crate::types::{Change, Message, MessageState};

/// The operator's voice: it speaks in groups without being a member, and reads nothing.
const SYSTEM: &str = "system";

/// What receipts say about one of our own messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) state: MessageState,
    pub(crate) read_by: Option<u64>,
}

impl Progress {
    pub(crate) fn of(message: &Message) -> Self {
        Self { state: message.state, read_by: message.read_by }
    }

    pub(crate) fn put(self, message: &mut Message) {
        (message.state, message.read_by) = (self.state, self.read_by);
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Member {
    /// The first message they were there for.
    from: u64,
    delivered: u64,
    read: u64,
}

/// How far the other members of a group have received and read.
pub(crate) struct GroupReads {
    me: String,
    members: HashMap<String, Member>,
    /// Whether everybody is known; until then nobody can say that all have read.
    is_complete: bool,
}

impl GroupReads {
    pub(crate) fn new(me: &str) -> Self {
        Self { me: me.to_owned(), members: HashMap::new(), is_complete: false }
    }

    /// The server told everybody's cursors; receipts that came meanwhile are not lost.
    pub(crate) fn learn(&mut self, members: Vec<MemberReadState>) {
        let before = std::mem::take(&mut self.members);
        for MemberReadState { user_id, from_seq: from, delivered_seq, read_seq } in members {
            if user_id == self.me {
                continue;
            }
            let known = before.get(&user_id).copied().unwrap_or_default();
            let (delivered, read) = (delivered_seq.max(known.delivered), read_seq.max(known.read));
            self.members.insert(user_id, Member { from, delivered, read });
        }
        self.is_complete = true;
    }

    /// A receipt: up to where it had been known before. Once everybody is known, whoever is not among
    /// them has left, or was never in it.
    pub(crate) fn hear(&mut self, user_id: &str, kind: Receipt, seq: u64) -> u64 {
        if user_id == SYSTEM || (self.is_complete && !self.members.contains_key(user_id)) {
            return seq;
        }
        let member = self.members.entry(user_id.to_owned()).or_default();
        let before = if kind == Receipt::Read { member.read } else { member.delivered };
        if kind == Receipt::Read {
            member.read = member.read.max(seq);
        }
        member.delivered = member.delivered.max(seq);
        before
    }

    /// Whoever came sees what is said from this place on. The server may have told us of them before we
    /// heard of this; then they stay as far as they are.
    pub(crate) fn join(&mut self, change: &Change, from: u64) {
        for id in change.user_ids.iter().filter(|id| **id != self.me) {
            let member = self.members.entry(id.clone()).or_default();
            member.from = member.from.max(from);
        }
    }

    pub(crate) fn leave(&mut self, change: &Change) {
        for id in &change.user_ids {
            self.members.remove(id);
        }
    }

    /// How far one of ours at this place has come: read means by everybody who was there for it.
    pub(crate) fn at(&self, seq: u64) -> Progress {
        let (mut there, mut delivered, mut read) = (0, 0, 0);
        for member in self.members.values().filter(|member| member.from <= seq) {
            there += 1;
            delivered += u64::from(member.delivered >= seq);
            read += u64::from(member.read >= seq);
        }
        let state = if self.is_complete && there > 0 && read == there {
            MessageState::Read
        } else if delivered > 0 {
            MessageState::Delivered
        } else {
            MessageState::Saved
        };
        Progress { state, read_by: Some(read) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(user_id: &str, from_seq: u64, read_seq: u64) -> MemberReadState {
        let user_id = user_id.to_owned();
        MemberReadState { user_id, from_seq, delivered_seq: read_seq, read_seq }
    }

    fn about(user_id: &str) -> Change {
        Change {
            conversation_id: "sg_g".to_owned(),
            change_seq: 1,
            kind: String::new(),
            by: String::new(),
            at: 0,
            user_ids: vec![user_id.to_owned()],
            role: None,
            muted_until: None,
            on: None,
            group: None,
            seq: None,
            server_msg_id: None,
        }
    }

    fn at(reads: &GroupReads, seq: u64) -> (MessageState, u64) {
        let Progress { state, read_by } = reads.at(seq);
        (state, read_by.unwrap())
    }

    #[test]
    fn read_means_by_everybody_who_was_there_and_is_said_once_everybody_is_known() {
        let mut reads = GroupReads::new("me");
        assert_eq!(at(&reads, 1), (MessageState::Saved, 0));
        assert_eq!(reads.hear("ann", Receipt::Read, 1), 0);
        assert_eq!(at(&reads, 1), (MessageState::Delivered, 1));
        reads.learn(vec![
            told("me", 1, 1),
            told("ann", 1, 0),
            told("ben", 1, 0),
            told("zoe", 2, 1),
        ]);
        assert_eq!(at(&reads, 1), (MessageState::Delivered, 1));
        assert_eq!(reads.hear("ben", Receipt::Delivered, 1), 0);
        assert_eq!(at(&reads, 1), (MessageState::Delivered, 1));
        assert_eq!(reads.hear("ben", Receipt::Read, 1), 0);
        assert_eq!(at(&reads, 1), (MessageState::Read, 2));
        assert_eq!(at(&reads, 2), (MessageState::Saved, 0));
        reads.leave(&about("ben"));
        assert_eq!(at(&reads, 1), (MessageState::Read, 1));
    }

    #[test]
    fn whoever_is_in_no_group_does_not_count() {
        let mut reads = GroupReads::new("me");
        reads.hear("system", Receipt::Read, 1);
        assert_eq!(at(&reads, 1), (MessageState::Saved, 0));
        reads.learn(vec![told("ann", 1, 1), told("ben", 1, 1)]);
        reads.leave(&about("ben"));
        reads.hear("ben", Receipt::Delivered, 2); // said before it was heard that he left
        reads.hear("ann", Receipt::Read, 3);
        assert_eq!(at(&reads, 3), (MessageState::Read, 1));
    }

    #[test]
    fn a_join_that_is_heard_late_takes_nothing_back() {
        let mut reads = GroupReads::new("me");
        reads.learn(vec![told("ann", 2, 3)]);
        reads.join(&about("ann"), 2);
        assert_eq!(at(&reads, 3), (MessageState::Read, 1));
        reads.join(&about("zoe"), 4);
        assert_eq!(at(&reads, 3), (MessageState::Read, 1));
        assert_eq!(at(&reads, 4), (MessageState::Saved, 0));
    }
}
