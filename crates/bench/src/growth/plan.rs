//! The users, groups and conversations of a generated store. Names are computed, not stored, so that
//! a kept folder can be used again.

use anyhow::Result;
use nexo_chat::command::Target;
use nexo_chat::ids::{ConversationId, GroupId, LoginId, Millis, Platform, UserId};
use nexo_chat::model::Caller;
use serde::{Deserialize, Serialize};

use crate::options::{GrowthOptions, SMALL};

/// Conversations of each of the two users whose lists are read.
pub(super) const LISTED: u64 = 50;
/// Messages in each conversation of the short list: a full page of history, so that reading a page of
/// a longer one returns no more.
pub(super) const LISTED_SHORT: u64 = 50;
/// Messages of the short conversation.
const SHORT: u64 = 100;
/// Users who were offline, and the conversations in which each missed messages.
pub(super) const MISSED_PEOPLE: u64 = 3;
pub(super) const MISSED_CONVERSATIONS: u64 = 100;
/// Members of an ordinary group.
const GROUP: u64 = 10;

/// The size of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DataPlan {
    pub(super) messages: u64,
    pub(super) conversations: u64,
    pub(super) members: u64,
}

/// A conversation: its users take turns at sending.
#[derive(Clone, Debug)]
pub(super) struct PlannedConversation {
    senders: Vec<(Caller, Target)>,
}

impl PlannedConversation {
    fn one_way(from: &str, to: &str) -> Result<Self> {
        Ok(Self { senders: vec![(caller(from)?, Target::User(UserId::parse(to)?))] })
    }

    fn group(id: &GroupId, members: &[UserId]) -> Self {
        let turn = |user: &UserId| (caller_of(user.clone()), Target::Group(id.clone()));
        Self { senders: members.iter().map(turn).collect() }
    }

    /// The sender of the `n`th message, and where it goes.
    pub(super) fn sender(&self, n: u64) -> &(Caller, Target) {
        &self.senders[usize::try_from(n).unwrap_or_default() % self.senders.len()]
    }
}

/// A group to create.
pub(super) struct PlannedGroup {
    pub(super) id: GroupId,
    pub(super) members: Vec<UserId>,
}

impl PlannedGroup {
    pub(super) fn conversation(&self) -> PlannedConversation {
        PlannedConversation::group(&self.id, &self.members[..self.members.len().min(10)])
    }
}

impl DataPlan {
    pub(super) fn new(options: &GrowthOptions) -> Self {
        let (messages, members) = (options.messages, options.members);
        Self { messages, conversations: options.conversations(), members }
    }

    /// The plan of the small store.
    pub(super) fn small(&self) -> Self {
        Self { messages: SMALL, conversations: self.conversations.min(300), members: GROUP }
    }

    /// Users of the ordinary conversations; each is in several.
    fn pool(&self) -> u64 {
        (self.conversations / 5).max(20)
    }

    /// Messages that an offline user missed in each conversation.
    pub(super) fn missed_each(&self) -> u64 {
        (self.messages / 1000).clamp(1, 100)
    }

    /// The ordinary conversation `k`: three of four are private.
    pub(super) fn ordinary(&self, k: u64) -> Result<PlannedConversation> {
        if let Some(group) = self.group(k)? {
            return Ok(group.conversation());
        }
        let pool = self.pool();
        let (a, b) = (k % pool, (k % pool + 1 + k / pool) % pool);
        let (a, b) = (format!("p-{a}"), format!("p-{b}"));
        let there = PlannedConversation::one_way(&a, &b)?;
        let back = PlannedConversation::one_way(&b, &a)?;
        Ok(PlannedConversation { senders: [there.senders, back.senders].concat() })
    }

    /// The group behind the ordinary conversation `k`, if it is one.
    pub(super) fn group(&self, k: u64) -> Result<Option<PlannedGroup>> {
        if k % 4 != 3 {
            return Ok(None);
        }
        let member = |j| UserId::parse(&format!("p-{}", (k + j) % self.pool()));
        let members: Result<_, _> = (0..GROUP).map(member).collect();
        Ok(Some(PlannedGroup { id: GroupId::parse(&format!("g-{k}"))?, members: members? }))
    }

    /// The group of ten and the large one. The same users send in both.
    pub(super) fn small_and_large_group(&self) -> Result<[PlannedGroup; 2]> {
        let of = |name: &str, count: u64| {
            let members: Result<_, _> =
                (0..count).map(|n| UserId::parse(&format!("m-{n}"))).collect();
            anyhow::Ok(PlannedGroup { id: GroupId::parse(name)?, members: members? })
        };
        Ok([of("group-ten", GROUP)?, of("group-large", self.members)?])
    }

    /// All users.
    pub(super) fn people(&self) -> Vec<String> {
        let mut people: Vec<String> = (0..self.pool()).map(|n| format!("p-{n}")).collect();
        people.extend((0..self.members).map(|n| format!("m-{n}")));
        for length in Length::BOTH {
            people.extend([length.talker(), length.reader(), length.lister()]);
            people.extend((0..LISTED).map(|n| length.peer(n)));
        }
        people.extend((0..MISSED_PEOPLE).map(missed));
        people.extend((0..MISSED_CONVERSATIONS).map(missed_peer));
        people
    }

    /// Conversations of fixed length and their lengths. Written first, so that they lie in the deepest level.
    pub(super) fn fixed_length_conversations(&self) -> Result<Vec<(PlannedConversation, u64)>> {
        let mut conversations = vec![(Length::Short.conversation()?, SHORT)];
        for n in 0..LISTED {
            conversations.push((Length::Short.listed_conversation(n)?, LISTED_SHORT));
        }
        for person in 0..MISSED_PEOPLE {
            for n in 0..MISSED_CONVERSATIONS {
                let conversation = PlannedConversation::one_way(&missed_peer(n), &missed(person))?;
                conversations.push((conversation, self.missed_each()));
            }
        }
        Ok(conversations)
    }
}

/// Conversations that differ only in their length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    Short,
    Long,
}

impl Length {
    pub(super) const BOTH: [Self; 2] = [Self::Short, Self::Long];

    fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Long => "long",
        }
    }

    fn talker(self) -> String {
        format!("{}-talker", self.name())
    }

    /// Has read nothing of the one conversation.
    pub(super) fn reader(self) -> String {
        format!("{}-reader", self.name())
    }

    /// Has many such conversations.
    pub(super) fn lister(self) -> String {
        format!("{}-lister", self.name())
    }

    fn peer(self, n: u64) -> String {
        format!("{}-peer-{n}", self.name())
    }

    pub(super) fn conversation(self) -> Result<PlannedConversation> {
        PlannedConversation::one_way(&self.talker(), &self.reader())
    }

    pub(super) fn listed_conversation(self, n: u64) -> Result<PlannedConversation> {
        PlannedConversation::one_way(&self.peer(n), &self.lister())
    }

    pub(super) fn conversation_id(self) -> Result<ConversationId> {
        private(&self.talker(), &self.reader())
    }

    pub(super) fn listed_conversation_id(self, n: u64) -> Result<ConversationId> {
        private(&self.peer(n), &self.lister())
    }
}

/// A user who was offline.
pub(super) fn missed(person: u64) -> String {
    format!("missed-{person}")
}

fn missed_peer(n: u64) -> String {
    format!("missed-peer-{n}")
}

fn private(a: &str, b: &str) -> Result<ConversationId> {
    Ok(ConversationId::private(&UserId::parse(a)?, &UserId::parse(b)?))
}

/// A caller in this process: no token, no socket.
pub(super) fn caller(user: &str) -> Result<Caller> {
    Ok(caller_of(UserId::parse(user)?))
}

fn caller_of(user: UserId) -> Caller {
    Caller {
        user,
        login: LoginId([0; 16]),
        platform: Platform(5),
        signed_in_at: Millis(0),
        expires_at: Millis(u64::MAX),
        connection: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ordinary_conversations_are_all_different_and_between_known_people() {
        let plan = DataPlan { messages: 10_000, conversations: 300, members: 10 };
        let people: BTreeSet<String> = plan.people().into_iter().collect();
        assert_eq!(people.len(), plan.people().len(), "nobody is named twice");
        let mut seen = BTreeSet::new();
        for k in 0..plan.conversations {
            let conversation = plan.ordinary(k).unwrap();
            let (caller, to) = conversation.sender(0);
            assert!(people.contains(caller.user.as_str()));
            assert!(seen.insert(to.conversation(&caller.user)), "{k} was there before");
            assert_ne!(to, &Target::User(caller.user.clone()));
        }
    }

    #[test]
    fn what_is_exact_leaves_room_for_the_rest() {
        let small = DataPlan { messages: SMALL, conversations: 300, members: 10 };
        let exact: u64 =
            small.fixed_length_conversations().unwrap().iter().map(|(_, count)| count).sum();
        assert!(exact < SMALL * 2 / 3, "{exact}");
    }
}
