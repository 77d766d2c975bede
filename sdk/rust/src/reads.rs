//! The delivered and read cursors of the other members of a group.
use std::collections::HashMap;

use crate::events::Receipt;
use crate::group::MemberReadState;
use crate::types::{Change, Message, MessageState};

/// The operator's account: it posts in groups without being a member, and reads nothing.
const SYSTEM: &str = "system";

/// The state of one of our messages by its receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MessageProgress {
    pub(crate) state: MessageState,
    pub(crate) read_by: Option<u64>,
}

impl MessageProgress {
    pub(crate) fn of(message: &Message) -> Self {
        Self { state: message.state, read_by: message.read_by }
    }

    pub(crate) fn apply_to(self, message: &mut Message) {
        (message.state, message.read_by) = (self.state, self.read_by);
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct MemberCursors {
    /// The first message the member may see.
    from: u64,
    delivered: u64,
    read: u64,
}

/// The delivered and read cursors of the other members of a group.
pub(crate) struct GroupReads {
    me: String,
    members: HashMap<String, MemberCursors>,
    /// Whether all members are loaded; until then "read by all" is unknown.
    is_complete: bool,
}

impl GroupReads {
    pub(crate) fn new(me: &str) -> Self {
        Self { me: me.to_owned(), members: HashMap::new(), is_complete: false }
    }

    /// Loads the cursors of all members; receipts that came meanwhile are kept.
    pub(crate) fn load(&mut self, members: Vec<MemberReadState>) {
        let before = std::mem::take(&mut self.members);
        for MemberReadState { user_id, from_seq: from, delivered_seq, read_seq } in members {
            if user_id == self.me {
                continue;
            }
            let known = before.get(&user_id).copied().unwrap_or_default();
            let (delivered, read) = (delivered_seq.max(known.delivered), read_seq.max(known.read));
            self.members.insert(user_id, MemberCursors { from, delivered, read });
        }
        self.is_complete = true;
    }

    /// Applies a receipt; returns the previous cursor. Once all members are loaded, receipts of
    /// others are ignored: they have left or never were members.
    pub(crate) fn apply_receipt(&mut self, user_id: &str, kind: Receipt, seq: u64) -> u64 {
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

    /// Adds new members, who see messages from this seq on. If the server has listed them before,
    /// their cursors stay.
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

    /// The progress of our message at this seq: read if every member who may see it has read it.
    pub(crate) fn at(&self, seq: u64) -> MessageProgress {
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
        MessageProgress { state, read_by: Some(read) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ChangeKind;

    fn read_state(user_id: &str, from_seq: u64, read_seq: u64) -> MemberReadState {
        let user_id = user_id.to_owned();
        MemberReadState { user_id, from_seq, delivered_seq: read_seq, read_seq }
    }

    fn change_of(user_id: &str) -> Change {
        Change {
            conversation_id: "sg_g".to_owned(),
            change_seq: 1,
            kind: ChangeKind::Joined,
            by: String::new(),
            at: 0,
            user_ids: vec![user_id.to_owned()],
            role: None,
            muted_until: None,
            is_muted: None,
            group: None,
            seq: None,
            server_msg_id: None,
        }
    }

    fn at(reads: &GroupReads, seq: u64) -> (MessageState, u64) {
        let MessageProgress { state, read_by } = reads.at(seq);
        (state, read_by.unwrap())
    }

    #[test]
    fn read_means_by_everybody_who_was_there_and_is_said_once_everybody_is_known() {
        let mut reads = GroupReads::new("me");
        assert_eq!(at(&reads, 1), (MessageState::Saved, 0));
        assert_eq!(reads.apply_receipt("ann", Receipt::Read, 1), 0);
        assert_eq!(at(&reads, 1), (MessageState::Delivered, 1));
        reads.load(vec![
            read_state("me", 1, 1),
            read_state("ann", 1, 0),
            read_state("ben", 1, 0),
            read_state("zoe", 2, 1),
        ]);
        assert_eq!(at(&reads, 1), (MessageState::Delivered, 1));
        assert_eq!(reads.apply_receipt("ben", Receipt::Delivered, 1), 0);
        assert_eq!(at(&reads, 1), (MessageState::Delivered, 1));
        assert_eq!(reads.apply_receipt("ben", Receipt::Read, 1), 0);
        assert_eq!(at(&reads, 1), (MessageState::Read, 2));
        assert_eq!(at(&reads, 2), (MessageState::Saved, 0));
        reads.leave(&change_of("ben"));
        assert_eq!(at(&reads, 1), (MessageState::Read, 1));
    }

    #[test]
    fn whoever_is_in_no_group_does_not_count() {
        let mut reads = GroupReads::new("me");
        reads.apply_receipt("system", Receipt::Read, 1);
        assert_eq!(at(&reads, 1), (MessageState::Saved, 0));
        reads.load(vec![read_state("ann", 1, 1), read_state("ben", 1, 1)]);
        reads.leave(&change_of("ben"));
        reads.apply_receipt("ben", Receipt::Delivered, 2); // sent before the leave was received
        reads.apply_receipt("ann", Receipt::Read, 3);
        assert_eq!(at(&reads, 3), (MessageState::Read, 1));
    }

    #[test]
    fn a_join_that_is_heard_late_takes_nothing_back() {
        let mut reads = GroupReads::new("me");
        reads.load(vec![read_state("ann", 2, 3)]);
        reads.join(&change_of("ann"), 2);
        assert_eq!(at(&reads, 3), (MessageState::Read, 1));
        reads.join(&change_of("zoe"), 4);
        assert_eq!(at(&reads, 3), (MessageState::Read, 1));
        assert_eq!(at(&reads, 4), (MessageState::Saved, 0));
    }
}
