//! The rules of groups, as tables of cases.

use super::*;
use crate::ids::{ClientMsgId, Seq};
use crate::membership::{GroupChange, GroupEnd, HistoryPolicy, JoinCode, MemberProfileChange};
use crate::model::{Content, WindowEnd};

const NOW: Millis = Millis(1_000_000);

fn user(id: &str) -> UserId {
    UserId::parse(id).unwrap()
}

fn id() -> GroupId {
    GroupId::parse("g").unwrap()
}

fn member(name: &str) -> GroupMember {
    GroupMember {
        user: user(name),
        joined_at: Millis(1),
        join_seq: Seq(1),
        came_after: Seq(0),
        inviter: None,
        muted_until: Millis(0),
        profile: MemberProfile::default(),
    }
}

/// Olga owns it, Ada and Abe are admins, Max and Mia members; ten messages, five changes.
fn facts() -> GroupFacts {
    let group = Group {
        id: id(),
        profile: GroupProfile { name: "Group".into(), ..GroupProfile::default() },
        creator: user("olga"),
        owner: user("olga"),
        admins: vec![user("ada"), user("abe")],
        joining: JoinPolicy::Open,
        history: HistoryPolicy::Joined,
        is_muted: false,
        members: 5,
        requests: 0,
        code: JoinCode::random([1; 8]),
        code_at: Millis(0),
        created_at: Millis(1),
        updated_at: Millis(1),
        ended: None,
    };
    let names = ["olga", "ada", "abe", "max", "mia"];
    GroupFacts {
        group: Some(group),
        members: names.map(|name| (user(name), member(name))).into(),
        was_member: false,
        requests: std::collections::BTreeMap::new(),
        mutes: std::collections::BTreeMap::new(),
        code_is_taken: false,
        head: Seq(10),
        change_seq: Seq(5),
    }
}

fn with(change: impl FnOnce(&mut Group)) -> GroupFacts {
    let mut facts = facts();
    change(facts.group.as_mut().unwrap());
    facts
}

fn decided(facts: &GroupFacts, by: &str, act: &GroupAction) -> Result<GroupDecision, Reason> {
    let rules = GroupRules { members_max: 7, admins_max: 2, ..GroupRules::default() };
    decide(&rules, facts, &id(), &user(by), act, NOW)
}

fn check(facts: &GroupFacts, by: &str, act: &GroupAction, expect: Result<usize, Reason>) {
    let decision = decided(facts, by, act).map(|decision| decision.changes.len());
    assert_eq!(decision, expect, "{by} {act:?}");
}

#[test]
fn who_kicks_whom() {
    let kick = |who: &str| GroupAction::Kick(user(who));
    for (by, whom, expect) in [
        ("olga", "ada", Ok(1)),
        ("olga", "max", Ok(1)),
        ("ada", "max", Ok(1)),
        ("ada", "abe", Err(Reason::CannotTouchAdmin)),
        ("ada", "olga", Err(Reason::CannotTouchOwner)),
        ("max", "mia", Err(Reason::NotGroupAdmin)),
        ("max", "olga", Err(Reason::NotGroupAdmin)),
        ("olga", "olga", Err(Reason::TargetIsSelf)),
        ("olga", "zoe", Err(Reason::TargetNotMember)),
        ("zoe", "max", Err(Reason::NotGroupMember)),
    ] {
        check(&facts(), by, &kick(whom), expect);
        check(&facts(), by, &GroupAction::Mute(user(whom), Millis(u64::MAX)), expect);
    }
}

#[test]
fn only_the_owner_gives_roles_the_group_and_its_end() {
    for by in ["ada", "max"] {
        for act in [
            GroupAction::SetRole(user("mia"), Role::Admin),
            GroupAction::Transfer(user("mia")),
            GroupAction::Dissolve,
            GroupAction::Dismiss,
        ] {
            check(&facts(), by, &act, Err(Reason::NotGroupOwner));
        }
    }
    check(&facts(), "olga", &GroupAction::SetRole(user("ada"), Role::Member), Ok(1));
    check(&facts(), "olga", &GroupAction::SetRole(user("ada"), Role::Admin), Ok(0));
    check(
        &facts(),
        "olga",
        &GroupAction::SetRole(user("max"), Role::Owner),
        Err(Reason::InvalidParam),
    );
    let third = GroupAction::SetRole(user("max"), Role::Admin);
    check(&facts(), "olga", &third, Err(Reason::TooManyAdmins));
}

#[test]
fn the_old_owner_becomes_a_member_and_an_owner_does_not_leave() {
    let decision = decided(&facts(), "olga", &GroupAction::Transfer(user("ada"))).unwrap();
    assert_eq!(decision.group.role(&user("ada")), Role::Owner);
    assert_eq!(decision.group.role(&user("olga")), Role::Member);
    check(&facts(), "olga", &GroupAction::Leave, Err(Reason::OwnerMustTransfer));
    check(&facts(), "ada", &GroupAction::Leave, Ok(1));
    let left = decided(&facts(), "ada", &GroupAction::Leave).unwrap();
    assert_eq!((left.group.members, left.group.admins), (4, vec![user("abe")]));
    let edge = WindowEnd { seq: Seq(10), change_seq: Seq(6), at: NOW };
    assert_eq!(left.left, [(user("ada"), edge)]);
}

#[test]
fn who_comes_in_and_what_they_see() {
    let join = GroupAction::Join { message: String::new(), inviter: None };
    check(&facts(), "zoe", &join, Ok(1));
    check(&facts(), "max", &join, Err(Reason::AlreadyMember));
    let full = with(|group| group.members = 7);
    check(&full, "zoe", &join, Err(Reason::GroupFull));
    let closed = with(|group| group.joining = JoinPolicy::Invite);
    check(&closed, "zoe", &join, Err(Reason::JoinNotAllowed));
    let window = |facts: &GroupFacts| decided(facts, "zoe", &join).unwrap().joined[0].1;
    assert_eq!((window(&facts()).min, window(&facts()).change_min), (Seq(11), Seq(6)));
    let all = with(|group| group.history = HistoryPolicy::All);
    assert_eq!((window(&all).min, window(&all).change_min), (Seq(1), Seq(1)));
}

#[test]
fn who_brought_somebody_is_believed_of_members() {
    let brought_by = |inviter: &str| {
        let join = GroupAction::Join { message: String::new(), inviter: Some(user(inviter)) };
        decided(&facts(), "zoe", &join).unwrap().joined[0].0.inviter.clone()
    };
    assert_eq!(brought_by("max"), Some(user("max")));
    assert_eq!(brought_by("yan"), None);
}

#[test]
fn an_invitation_skips_who_is_in() {
    let invite = |names: &[&str]| GroupAction::Invite(names.iter().copied().map(user).collect());
    let decision = decided(&facts(), "max", &invite(&["mia", "zoe", "zoe", "yan"])).unwrap();
    let come: Vec<_> = decision.joined.iter().map(|(member, _)| member.user.as_str()).collect();
    assert_eq!((come, decision.group.members), (vec!["zoe", "yan"], 7));
    check(&facts(), "max", &invite(&["mia"]), Ok(0));
    check(&facts(), "max", &invite(&["x1", "x2", "x3"]), Err(Reason::GroupFull));
    for joining in [JoinPolicy::Approval, JoinPolicy::Invite] {
        let closed = with(|group| group.joining = joining);
        check(&closed, "max", &invite(&["zoe"]), Err(Reason::NotGroupAdmin));
        check(&closed, "ada", &invite(&["zoe"]), Ok(1));
    }
}

#[test]
fn a_wish_waits_until_it_is_answered() {
    let mut facts = with(|group| group.joining = JoinPolicy::Approval);
    let ask = GroupAction::Join { message: "please".into(), inviter: None };
    let decision = decided(&facts, "zoe", &ask).unwrap();
    assert!(decision.joined.is_empty() && decision.changes.is_empty());
    assert_eq!((decision.new_requests.len(), decision.group.requests), (1, 1));
    let answer = |accept| GroupAction::AnswerRequest { user: user("zoe"), accept };
    check(&facts, "ada", &answer(true), Err(Reason::JoinRequestNotFound));
    facts.requests.insert(user("zoe"), decision.new_requests[0].clone());
    facts.group.as_mut().unwrap().requests = 1;
    check(&facts, "max", &answer(true), Err(Reason::NotGroupAdmin));
    let accepted = decided(&facts, "ada", &answer(true)).unwrap();
    assert_eq!((accepted.joined.len(), accepted.group.requests), (1, 0));
    assert_eq!(accepted.closed_requests, [user("zoe")]);
    let rejected = decided(&facts, "ada", &answer(false)).unwrap();
    assert!(rejected.joined.is_empty() && rejected.changes.is_empty());
    assert_eq!((rejected.closed_requests, rejected.group.requests), (vec![user("zoe")], 0));
    let long = GroupAction::Join { message: "x".repeat(257), inviter: None };
    check(&facts, "yan", &long, Err(Reason::BodyTooLong));
}

#[test]
fn a_new_group_has_its_creator_and_enough_people() {
    let new = |members: &[&str], least| {
        GroupAction::Create(NewGroup {
            profile: GroupProfile { name: "New".into(), ..GroupProfile::default() },
            joining: JoinPolicy::Open,
            history: HistoryPolicy::Joined,
            members: members.iter().copied().map(user).collect(),
            members_min: least,
            code: JoinCode::random([2; 8]),
        })
    };
    let none = GroupFacts { group: None, members: [].into(), head: Seq(0), ..facts() };
    check(&none, "zoe", &new(&[], 1), Ok(1));
    check(&none, "zoe", &new(&["zoe", "max", "max"], 3), Err(Reason::GroupTooSmall));
    let made = decided(&none, "zoe", &new(&["max", "mia"], 3)).unwrap();
    assert_eq!((made.group.members, made.group.owner), (3, user("zoe")));
    check(&facts(), "zoe", &new(&[], 1), Err(Reason::ServerBusy));
}

#[test]
fn nothing_is_done_to_a_group_that_ended() {
    let edge = WindowEnd { seq: Seq(10), change_seq: Seq(5), at: NOW };
    let ended =
        with(|group| group.ended = Some(GroupEnd { is_dismissed: false, window_end: edge }));
    for act in [
        GroupAction::Join { message: String::new(), inviter: None },
        GroupAction::Leave,
        GroupAction::Kick(user("max")),
        GroupAction::Dissolve,
        GroupAction::MuteAll(true),
    ] {
        check(&ended, "olga", &act, Err(Reason::GroupDissolved));
    }
    check(
        &GroupFacts { group: None, ..facts() },
        "olga",
        &GroupAction::Leave,
        Err(Reason::GroupNotFound),
    );
}

#[test]
fn names_have_a_length_and_codes_a_cooldown() {
    let name = |name: &str| {
        GroupAction::Update(GroupChange { name: Some(name.into()), ..GroupChange::default() })
    };
    check(&facts(), "ada", &name("New"), Ok(1));
    check(&facts(), "ada", &name("Group"), Ok(0));
    check(&facts(), "max", &name("New"), Err(Reason::NotGroupAdmin));
    for bad in ["", "  ", "a\nb", "\u{200b}\u{2060}", "\u{202e}\u{3164}", &"x".repeat(129)] {
        check(&facts(), "ada", &name(bad), Err(Reason::BadGroupName));
    }
    let code = GroupAction::ResetCode(JoinCode::random([3; 8]));
    check(&facts(), "ada", &code, Err(Reason::CooldownNotReached));
}

#[test]
fn a_mute_outlasts_leaving_and_an_owner_speaks() {
    let mut facts = facts();
    facts.members.get_mut(&user("max")).unwrap().muted_until = NOW.plus(9);
    let left = decided(&facts, "max", &GroupAction::Leave).unwrap();
    assert_eq!(left.mutes, [(user("max"), NOW.plus(9))]);
    facts.members.remove(&user("max"));
    facts.mutes.insert(user("max"), NOW.plus(9));
    let back = decided(&facts, "max", &GroupAction::Join { message: String::new(), inviter: None })
        .unwrap();
    assert_eq!(back.joined[0].0.muted_until, NOW.plus(9));
}

#[test]
fn a_member_is_seen_as_they_like() {
    let set = |nickname: &str, extra: &str| {
        GroupAction::SetProfile(MemberProfileChange {
            nickname: Some(nickname.into()),
            extra: Some(extra.into()),
            ..MemberProfileChange::default()
        })
    };
    let decision = decided(&facts(), "max", &set("Maximilian", "{}")).unwrap();
    assert_eq!(decision.changed_members[0].profile.nickname, "Maximilian");
    assert_eq!((decision.changes.len(), &decision.group), (1, facts().group.as_ref().unwrap()));
    check(&facts(), "max", &set("", ""), Ok(0));
    check(&facts(), "max", &set(&"é".repeat(128), ""), Ok(1));
    for bad in ["  ", "a\nb", &"x".repeat(129)] {
        check(&facts(), "max", &set(bad, ""), Err(Reason::BadNickname));
    }
    check(&facts(), "max", &set("Max", &"x".repeat(4097)), Err(Reason::BadGroupProfile));
    check(&facts(), "zoe", &set("Zoe", ""), Err(Reason::NotGroupMember));
}

#[test]
fn who_may_speak() {
    let speak = |facts: &GroupFacts, by: &str, to_all: bool| {
        let draft = Draft {
            conversation: id().conversation(),
            sender: user(by),
            client_id: ClientMsgId::parse("c").unwrap(),
            content: Content { mentions_all: to_all, ..Content::text("hi") },
            cleaned: None,
            sent_at: NOW,
            origin: None,
            marks_read: true,
        };
        let sender = MembershipStatus::new(facts.members.get(&user(by)), facts.was_member);
        may_speak(facts.group.as_ref(), sender, &draft)
    };
    assert_eq!(speak(&facts(), "max", false), Ok(()));
    assert_eq!(speak(&facts(), "zoe", false), Err(Reason::NotGroupMember));
    let left = GroupFacts { was_member: true, ..facts() };
    assert_eq!(speak(&left, "zoe", false), Err(Reason::MemberNotActive));
    check(&left, "zoe", &GroupAction::Leave, Err(Reason::MemberNotActive));
    check(&left, "zoe", &GroupAction::Join { message: String::new(), inviter: None }, Ok(1));
    assert_eq!(speak(&facts(), "max", true), Err(Reason::NotGroupAdmin));
    assert_eq!(speak(&facts(), "ada", true), Ok(()));
    let muted = with(|group| group.is_muted = true);
    assert_eq!(speak(&muted, "max", false), Err(Reason::GroupMuted));
    assert_eq!(speak(&muted, "ada", false), Ok(()));
    let mut facts = facts();
    facts.members.get_mut(&user("max")).unwrap().muted_until = NOW.plus(1);
    assert_eq!(speak(&facts, "max", false), Err(Reason::GroupSpeakMuted));
    facts.members.get_mut(&user("max")).unwrap().muted_until = NOW;
    assert_eq!(speak(&facts, "max", false), Ok(()));
}
