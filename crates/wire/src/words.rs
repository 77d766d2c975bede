//! What the domain's choices are called, in every dialect that speaks of them in words or numbers.

use nexo_chat::membership::{History, Joining, Role};
use nexo_chat::model::Receive;
use nexo_chat::rules::{Registration, SessionPolicy};

pub(crate) const JOININGS: [(&str, Joining); 3] =
    [("open", Joining::Open), ("approval", Joining::Approval), ("invite", Joining::Invite)];

pub(crate) const HISTORIES: [(&str, History); 2] =
    [("joined", History::Joined), ("all", History::All)];

/// A role's word, in the order of its numbers over HTTP.
pub(crate) const ROLES: [(&str, Role); 3] =
    [("member", Role::Member), ("admin", Role::Admin), ("owner", Role::Owner)];

/// A receive option's word, in the order of its numbers over HTTP.
pub(crate) const RECEIVES: [(&str, Receive); 3] =
    [("normal", Receive::Normal), ("silent", Receive::Silent), ("blocked", Receive::Blocked)];

pub(crate) const SESSION_POLICIES: [(&str, SessionPolicy); 3] = [
    ("multi", SessionPolicy::Multi),
    ("per_platform", SessionPolicy::PerPlatform),
    ("single", SessionPolicy::Single),
];

pub(crate) const REGISTRATIONS: [(&str, Registration); 2] =
    [("open", Registration::Open), ("closed", Registration::Closed)];

fn read<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|(known, _)| *known == word).map(|(_, value)| *value)
}

fn at<T: Copy>(table: &[(&str, T)], number: i64) -> Option<T> {
    table.get(usize::try_from(number).ok()?).map(|(_, value)| *value)
}

fn say<T: PartialEq>(table: &[(&'static str, T)], value: &T) -> &'static str {
    table.iter().find(|(_, known)| known == value).map_or("", |(word, _)| word)
}

fn number<T: PartialEq>(table: &[(&str, T)], value: &T) -> i32 {
    (0..).zip(table).find(|(_, (_, known))| known == value).map_or(0, |(number, _)| number)
}

/// How one comes into a group, by its word.
pub fn read_joining(word: &str) -> Option<Joining> {
    read(&JOININGS, word)
}

/// The word for how one comes into a group.
pub fn joining(joining: Joining) -> &'static str {
    say(&JOININGS, &joining)
}

/// What a newcomer sees, by its word.
pub fn read_history(word: &str) -> Option<History> {
    read(&HISTORIES, word)
}

/// The word for what a newcomer sees.
pub fn history(history: History) -> &'static str {
    say(&HISTORIES, &history)
}

/// A role by its word.
pub fn read_role(word: &str) -> Option<Role> {
    read(&ROLES, word)
}

/// A role by its number.
pub fn role_at(number: i64) -> Option<Role> {
    at(&ROLES, number)
}

/// A role's word.
pub fn role(role: Role) -> &'static str {
    say(&ROLES, &role)
}

/// A role's number: 0 member, 1 admin, 2 owner.
pub fn role_number(role: Role) -> i32 {
    number(&ROLES, &role)
}

/// A receive option by its number.
pub fn receive_at(number: i64) -> Option<Receive> {
    at(&RECEIVES, number)
}

/// A receive option's word.
pub fn receive(receive: Receive) -> &'static str {
    say(&RECEIVES, &receive)
}

/// A receive option's number: 0 normal, 1 silent, 2 blocked.
pub fn receive_number(receive: Receive) -> i32 {
    number(&RECEIVES, &receive)
}

/// The word for how many devices of one person may be there.
pub fn session_policy(policy: SessionPolicy) -> &'static str {
    say(&SESSION_POLICIES, &policy)
}

/// The word for who may make an account.
pub fn registration(registration: Registration) -> &'static str {
    say(&REGISTRATIONS, &registration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_a_word_that_leads_back() {
        for choice in [Joining::Open, Joining::Approval, Joining::Invite] {
            assert_eq!(read_joining(joining(choice)), Some(choice));
        }
        for choice in [History::Joined, History::All] {
            assert_eq!(read_history(history(choice)), Some(choice));
        }
        for choice in [Role::Member, Role::Admin, Role::Owner] {
            assert_eq!(read_role(role(choice)), Some(choice));
            assert_eq!(role_at(role_number(choice).into()), Some(choice));
        }
        for choice in [Receive::Normal, Receive::Silent, Receive::Blocked] {
            assert!(!receive(choice).is_empty());
            assert_eq!(receive_at(receive_number(choice).into()), Some(choice));
        }
    }

    #[test]
    fn numbers_are_those_of_document_003() {
        assert_eq!([Role::Member, Role::Admin, Role::Owner].map(role_number), [0, 1, 2]);
        let receives = [Receive::Normal, Receive::Silent, Receive::Blocked];
        assert_eq!(receives.map(receive_number), [0, 1, 2]);
        assert_eq!(role_at(3), None);
        assert_eq!(receive_at(-1), None);
    }
}
