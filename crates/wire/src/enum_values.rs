//! The domain's enums as the words and numbers of the wire.

use nexo_chat::membership::{HistoryPolicy, JoinPolicy, Role};
use nexo_chat::model::{ContentKind, Receive};
use nexo_chat::rules::{RegistrationPolicy, SessionPolicy};

pub(crate) const JOIN_POLICIES: [(&str, JoinPolicy); 3] = [
    ("open", JoinPolicy::Open),
    ("approval", JoinPolicy::Approval),
    ("invite", JoinPolicy::Invite),
];

pub(crate) const HISTORY_POLICIES: [(&str, HistoryPolicy); 2] =
    [("joined", HistoryPolicy::Joined), ("all", HistoryPolicy::All)];

/// The position is the number over HTTP.
pub(crate) const ROLES: [(&str, Role); 3] =
    [("member", Role::Member), ("admin", Role::Admin), ("owner", Role::Owner)];

/// The position is the number over HTTP.
pub(crate) const RECEIVE_OPTIONS: [(&str, Receive); 3] =
    [("normal", Receive::Normal), ("silent", Receive::Silent), ("blocked", Receive::Blocked)];

pub(crate) const SESSION_POLICIES: [(&str, SessionPolicy); 3] = [
    ("multi", SessionPolicy::Multi),
    ("per_platform", SessionPolicy::PerPlatform),
    ("single", SessionPolicy::Single),
];

pub(crate) const REGISTRATIONS: [(&str, RegistrationPolicy); 3] = [
    ("open", RegistrationPolicy::Open),
    ("invite", RegistrationPolicy::Invite),
    ("closed", RegistrationPolicy::Closed),
];

/// Content types as fields and media types call them.
pub(crate) const CONTENT_KINDS: [(&str, ContentKind); 6] = [
    ("text", ContentKind::TEXT),
    ("image", ContentKind::IMAGE),
    ("video", ContentKind::VIDEO),
    ("audio", ContentKind::AUDIO),
    ("file", ContentKind::FILE),
    ("custom", ContentKind::CUSTOM),
];

fn parse<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
}

fn from_number<T: Copy>(table: &[(&str, T)], number: i64) -> Option<T> {
    table.get(usize::try_from(number).ok()?).map(|(_, value)| *value)
}

fn name<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}

fn number<T: PartialEq>(table: &[(&str, T)], value: &T) -> i32 {
    (0..).zip(table).find(|(_, (_, known))| known == value).map_or(0, |(number, _)| number)
}

pub fn parse_join_policy(word: &str) -> Option<JoinPolicy> {
    parse(&JOIN_POLICIES, word)
}

pub fn join_policy(policy: JoinPolicy) -> &'static str {
    name(&JOIN_POLICIES, &policy)
}

pub fn parse_history_policy(word: &str) -> Option<HistoryPolicy> {
    parse(&HISTORY_POLICIES, word)
}

pub fn history_policy(policy: HistoryPolicy) -> &'static str {
    name(&HISTORY_POLICIES, &policy)
}

pub fn parse_role(word: &str) -> Option<Role> {
    parse(&ROLES, word)
}

pub fn role_from_number(number: i64) -> Option<Role> {
    from_number(&ROLES, number)
}

pub fn role(role: Role) -> &'static str {
    name(&ROLES, &role)
}

/// 0 member, 1 admin, 2 owner.
pub fn role_number(role: Role) -> i32 {
    number(&ROLES, &role)
}

pub fn receive_from_number(number: i64) -> Option<Receive> {
    from_number(&RECEIVE_OPTIONS, number)
}

pub fn receive(receive: Receive) -> &'static str {
    name(&RECEIVE_OPTIONS, &receive)
}

/// 0 normal, 1 silent, 2 blocked.
pub fn receive_number(receive: Receive) -> i32 {
    number(&RECEIVE_OPTIONS, &receive)
}

pub fn session_policy(policy: SessionPolicy) -> &'static str {
    name(&SESSION_POLICIES, &policy)
}

pub fn registration(registration: RegistrationPolicy) -> &'static str {
    name(&REGISTRATIONS, &registration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_a_word_that_leads_back() {
        for choice in [JoinPolicy::Open, JoinPolicy::Approval, JoinPolicy::Invite] {
            assert_eq!(parse_join_policy(join_policy(choice)), Some(choice));
        }
        for choice in [HistoryPolicy::Joined, HistoryPolicy::All] {
            assert_eq!(parse_history_policy(history_policy(choice)), Some(choice));
        }
        for choice in [Role::Member, Role::Admin, Role::Owner] {
            assert_eq!(parse_role(role(choice)), Some(choice));
            assert_eq!(role_from_number(role_number(choice).into()), Some(choice));
        }
        for choice in [Receive::Normal, Receive::Silent, Receive::Blocked] {
            assert!(!receive(choice).is_empty());
            assert_eq!(receive_from_number(receive_number(choice).into()), Some(choice));
        }
    }

    #[test]
    fn numbers_are_those_of_the_http_api() {
        assert_eq!([Role::Member, Role::Admin, Role::Owner].map(role_number), [0, 1, 2]);
        let receives = [Receive::Normal, Receive::Silent, Receive::Blocked];
        assert_eq!(receives.map(receive_number), [0, 1, 2]);
        assert_eq!(role_from_number(3), None);
        assert_eq!(receive_from_number(-1), None);
    }
}
