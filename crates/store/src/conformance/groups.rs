//! Groups: created, changed and ended, by the real rules inside the atomic operation.

use std::sync::Arc;

use nexo_chat::Reason;
use nexo_chat::event::Event;
use nexo_chat::ids::{Millis, Seq};
use nexo_chat::membership::{
    GroupAction, GroupMember, HistoryPolicy, JoinCode, JoinPolicy, MemberProfile,
    MemberProfileChange, Role,
};
use nexo_chat::model::{ChangeKind, Content, CursorKind, Cursors, Draft};
use nexo_chat::policy::recall::may_recall;
use nexo_chat::rules::{GroupRules, Rules};
use nexo_chat::store::{Actor, Appended, Limit, Order, RecallFacts};

use super::Opener;
use super::fixtures::{
    NOW, RecordingListener, act, act_with, all, append, done, draft, group, group_id, group_with,
    join, say, seqs, to_group, user,
};

fn names(members: &[GroupMember]) -> Vec<&str> {
    members.iter().map(|member| member.user.as_str()).collect()
}

pub(super) async fn begins(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    let made = group(&store, "g", &["olga", "max", "mia", "max"]).await;
    assert_eq!((made.group.members, &made.group.owner), (3, &user("olga")));
    let stored = store.group(&group_id("g")).await.unwrap().unwrap();
    assert_eq!(stored, made.group);
    let members = store.group_members(&group_id("g"), None, 9).await.unwrap();
    assert_eq!(names(&members), ["max", "mia", "olga"]);
    assert_eq!(members[0].inviter, Some(user("olga")));
    let max = store.group_member(&group_id("g"), &user("max")).await.unwrap();
    assert_eq!(max.as_ref(), Some(&members[0]));
    assert_eq!(store.group_member(&group_id("g"), &user("zoe")).await.unwrap(), None);
    let users = ["olga", "max", "mia"].map(user).to_vec();
    let received = listener.changes();
    assert_eq!(received, made.changes);
    assert_eq!(received[0].kind, ChangeKind::Joined { users, from: Seq(1) });
    let again = group_with(&store, "h", &["zoe"], JoinPolicy::Invite, HistoryPolicy::All).await;
    assert_eq!((again.group.members, again.group.history), (1, HistoryPolicy::All));
}

pub(super) async fn pages(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["e", "d", "c", "b", "a"]).await;
    group(&store, "g.", &["z"]).await;
    let page = async |after: Option<&str>, limit| {
        let after = after.map(user);
        let found = store.group_members(&group_id("g"), after.as_ref(), limit).await.unwrap();
        names(&found).join("")
    };
    assert_eq!(page(None, 2).await, "ab");
    assert_eq!(page(Some("b"), 2).await, "cd");
    assert_eq!(page(Some("d"), 9).await, "e");
    assert_eq!(page(Some("e"), 9).await, "");
}

pub(super) async fn cursors(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    for client_id in ["1", "2", "3"] {
        say(&store, "olga", "g", client_id).await;
    }
    let at = group_id("g").conversation();
    store.advance_cursor(&user("max"), &at, CursorKind::Read, Seq(2)).await.unwrap();
    store.advance_cursor(&user("max"), &at, CursorKind::Delivered, Seq(3)).await.unwrap();
    done(&store, "zoe", "g", join()).await;
    let found = async |after: Option<&str>, limit| {
        let after = after.map(user);
        let found = store.group_cursors(&group_id("g"), after.as_ref(), limit).await.unwrap();
        let shown = found.into_iter().map(|(member, cursors)| {
            let Cursors { delivered, read } = cursors;
            (member.user.as_str().to_owned(), member.came_after.0, delivered.0, read.0)
        });
        shown.collect::<Vec<_>>()
    };
    let all = [("max", 0, 3, 2), ("mia", 0, 0, 0), ("olga", 0, 3, 3), ("zoe", 3, 3, 3)];
    let all = all.map(|(name, after, delivered, read)| (name.to_owned(), after, delivered, read));
    assert_eq!(found(None, 9).await, all);
    assert_eq!(found(Some("max"), 2).await, all[1..3]);
    done(&store, "mia", "g", GroupAction::Leave).await;
    assert_eq!(found(Some("max"), 1).await, all[2..3]);
    assert_eq!(store.group_cursors(&group_id("h"), None, 9).await.unwrap(), []);
    done(&store, "olga", "g", GroupAction::Dissolve).await;
    assert_eq!(found(None, 9).await, []);
}

pub(super) async fn profiles(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    let made = group(&store, "g", &["olga", "max"]).await;
    assert_eq!(made.group.profile.group_type, 7);
    let change = MemberProfileChange {
        nickname: Some("小明".into()),
        extra: Some("{}".into()),
        ..MemberProfileChange::default()
    };
    let set = done(&store, "max", "g", GroupAction::SetProfile(change.clone())).await;
    assert_eq!(set.changes[0].kind, ChangeKind::MemberUpdated(change.clone()));
    assert_eq!(listener.changes()[1..], set.changes[..]);
    let avatar = MemberProfileChange { avatar: Some("a".into()), ..MemberProfileChange::default() };
    done(&store, "max", "g", GroupAction::SetProfile(avatar)).await;
    // Changes by others leave the profile as it is.
    done(&store, "olga", "g", GroupAction::Mute(user("max"), NOW.plus(9))).await;
    let max = store.group_member(&group_id("g"), &user("max")).await.unwrap().unwrap();
    let seen = MemberProfile { nickname: "小明".into(), avatar: "a".into(), extra: "{}".into() };
    assert_eq!((&max.profile, max.muted_until), (&seen, NOW.plus(9)));
    let listed = store.group_members(&group_id("g"), None, 9).await.unwrap();
    assert_eq!((&listed[0], &listed[1].profile), (&max, &MemberProfile::default()));
    let changes = store.changes(&group_id("g").conversation(), Seq(1), 1).await.unwrap();
    assert_eq!(changes, set.changes);
}

pub(super) async fn codes(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let made = group(&store, "g", &["olga"]).await;
    let code = made.group.code.clone();
    assert_eq!(store.group_by_code(&code).await.unwrap(), Some(group_id("g")));
    let other = JoinCode::random([9; 8]);
    assert_eq!(store.group_by_code(&other).await.unwrap(), None);
    let rules = GroupRules { code_cooldown_ms: 0, ..GroupRules::default() };
    let reset = |code: &JoinCode| GroupAction::ResetCode(code.clone());
    let taken = act_with(&store, "olga", "g", reset(&code), rules).await.unwrap();
    assert_eq!(taken, Err(Reason::ServerBusy));
    let new = act_with(&store, "olga", "g", reset(&other), rules).await.unwrap().unwrap();
    assert_eq!(new.group.code, other);
    assert_eq!(store.group_by_code(&code).await.unwrap(), None);
    assert_eq!(store.group_by_code(&other).await.unwrap(), Some(group_id("g")));
    done(&store, "olga", "g", GroupAction::Dissolve).await;
    assert_eq!(store.group_by_code(&other).await.unwrap(), None);
}

pub(super) async fn wishes(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    group_with(&store, "g", &["olga"], JoinPolicy::Approval, HistoryPolicy::Joined).await;
    let mut told = Vec::new();
    for who in ["max", "mia", "zoe", "mia"] {
        let asked = done(&store, who, "g", join()).await;
        assert!(asked.joined.is_empty() && asked.changes.is_empty());
        told.extend(asked.asked.into_iter().map(|request| request.user));
    }
    assert_eq!(told, ["max", "mia", "zoe"].map(user), "a repeated wish is no news");
    let waiting = store.join_requests(&group_id("g"), None, 9).await.unwrap();
    assert_eq!(
        waiting.iter().map(|it| it.user.as_str()).collect::<Vec<_>>(),
        ["max", "mia", "zoe"]
    );
    let answer = |who: &str, accept| GroupAction::AnswerRequest { user: user(who), accept };
    let accepted = done(&store, "olga", "g", answer("max", true)).await;
    assert_eq!((accepted.joined, &accepted.settled), (vec![user("max")], &waiting[..1].to_vec()));
    let rejected = done(&store, "olga", "g", answer("mia", false)).await;
    assert_eq!((rejected.joined, &rejected.settled), (vec![], &waiting[1..2].to_vec()));
    let again = act(&store, "olga", "g", answer("mia", true)).await.unwrap();
    assert_eq!(again, Err(Reason::JoinRequestNotFound));
    let received = listener
        .0
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, Event::JoinRequested { .. }))
        .count();
    assert_eq!(received, 3, "those who decide are told of each wish once");
    // An invitation settles the join request too.
    let invited = done(&store, "olga", "g", GroupAction::Invite(vec![user("zoe")])).await;
    assert_eq!((invited.settled.len(), invited.group.requests), (1, 0));
    assert!(store.join_requests(&group_id("g"), None, 9).await.unwrap().is_empty());
}

pub(super) async fn refused(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    let made = group(&store, "g", &["olga", "max", "mia"]).await;
    for (by, what, expect) in [
        ("max", GroupAction::Kick(user("mia")), Reason::NotGroupAdmin),
        ("max", GroupAction::SetRole(user("max"), Role::Admin), Reason::NotGroupOwner),
        ("zoe", GroupAction::Leave, Reason::NotGroupMember),
        ("max", GroupAction::Dismiss, Reason::NotGroupOwner),
    ] {
        assert_eq!(act(&store, by, "g", what).await.unwrap(), Err(expect));
    }
    let unknown = act(&store, "max", "unknown", join()).await.unwrap();
    assert_eq!(unknown, Err(Reason::GroupNotFound));
    assert_eq!(store.group(&group_id("g")).await.unwrap(), Some(made.group));
    assert_eq!(listener.changes().len(), 1);
    assert_eq!(store.group(&group_id("unknown")).await.unwrap(), None);
}

pub(super) async fn without_effect(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let made = group(&store, "g", &["olga", "max"]).await;
    for what in [
        GroupAction::Invite(vec![user("max")]),
        GroupAction::SetRole(user("max"), Role::Member),
        GroupAction::MuteAll(false),
        GroupAction::Mute(user("max"), Millis(0)),
    ] {
        let nothing = done(&store, "olga", "g", what).await;
        assert_eq!((&nothing.group, nothing.changes.len()), (&made.group, 0));
    }
    let changes = store.changes(&group_id("g").conversation(), Seq(0), 9).await.unwrap();
    assert_eq!(changes.len(), 1);
}

pub(super) async fn may_speak(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    let check = async |from: &str, to: &str, id: &str, expect: Reason| {
        let refused = append(&store, to_group(from, to, id)).await.unwrap();
        assert_eq!(refused, Appended::Refused(expect), "{from} {id}");
    };
    say(&store, "max", "g", "1").await;
    check("zoe", "g", "2", Reason::NotGroupMember).await;
    check("max", "unknown", "3", Reason::GroupNotFound).await;
    done(&store, "olga", "g", GroupAction::Mute(user("max"), NOW.plus(1))).await;
    check("max", "g", "4", Reason::GroupSpeakMuted).await;
    done(&store, "olga", "g", GroupAction::MuteAll(true)).await;
    check("mia", "g", "5", Reason::GroupMuted).await;
    say(&store, "olga", "g", "6").await;
    done(&store, "olga", "g", GroupAction::MuteAll(false)).await;
    let to_all = Content { mentions_all: true, ..Content::text("all") };
    let refused = append(&store, Draft { content: to_all, ..to_group("mia", "g", "7") }).await;
    assert_eq!(refused.unwrap(), Appended::Refused(Reason::NotGroupAdmin));
    done(&store, "olga", "g", GroupAction::Kick(user("mia"))).await;
    check("mia", "g", "8", Reason::MemberNotActive).await;
    let left = act(&store, "mia", "g", GroupAction::Leave).await.unwrap();
    assert_eq!(left, Err(Reason::MemberNotActive), "who was in is told so");
    done(&store, "olga", "g", GroupAction::Dissolve).await;
    check("olga", "g", "9", Reason::GroupDissolved).await;
    let conversation = group_id("g").conversation();
    let read = store
        .messages(&conversation, all(), Limit::of(9), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(seqs(&read), [1, 2], "a refused send takes no place");
}

pub(super) async fn mutes_last(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max"]).await;
    done(&store, "olga", "g", GroupAction::Mute(user("max"), NOW.plus(5))).await;
    for (by, out) in [("max", GroupAction::Leave), ("olga", GroupAction::Kick(user("max")))] {
        done(&store, by, "g", out).await;
        done(&store, "max", "g", join()).await;
        let refused = append(&store, to_group("max", "g", by)).await.unwrap();
        assert_eq!(refused, Appended::Refused(Reason::GroupSpeakMuted));
    }
    done(&store, "olga", "g", GroupAction::Mute(user("max"), Millis(0))).await;
    say(&store, "max", "g", "free").await;
    done(&store, "max", "g", GroupAction::Leave).await;
    done(&store, "max", "g", join()).await;
    say(&store, "max", "g", "still free").await;
}

pub(super) async fn share_conversation(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    group(&store, "h", &["olga", "zoe"]).await;
    super::fixtures::send(&store, "max", "yan", "m").await;
    let check = async |who: &str, expect: [bool; 5]| {
        let others = ["olga", "max", "mia", "zoe", "yan"].map(user).to_vec();
        assert_eq!(store.share_conversation(&user(who), others).await.unwrap(), expect, "{who}");
    };
    check("olga", [true, true, true, true, false]).await;
    check("max", [true, true, true, false, true]).await;
    check("zoe", [true, false, false, true, false]).await;
    done(&store, "olga", "h", GroupAction::Dissolve).await;
    done(&store, "olga", "g", GroupAction::Kick(user("mia"))).await;
    check("olga", [true, true, false, false, false]).await;
    check("mia", [false, false, true, false, false]).await;
}

pub(super) async fn retry_after_kick(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max"]).await;
    let said = say(&store, "max", "g", "1").await;
    done(&store, "olga", "g", GroupAction::Kick(user("max"))).await;
    let retry = append(&store, to_group("max", "g", "1")).await.unwrap();
    assert_eq!(retry, Appended::Duplicate(said));
    let other = append(&store, draft("max", "olga", "1", "other")).await.unwrap();
    assert_eq!(other, Appended::Conflict);
}

pub(super) async fn two_transfers(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    let to_max = act(&store, "olga", "g", GroupAction::Transfer(user("max")));
    let to_mia = act(&store, "olga", "g", GroupAction::Transfer(user("mia")));
    let outcomes = (to_max.await.unwrap().is_ok(), to_mia.await.unwrap());
    assert_eq!(outcomes, (true, Err(Reason::NotGroupOwner)), "the first call wins");
    let group = store.group(&group_id("g")).await.unwrap().unwrap();
    assert_eq!((group.role(&user("max")), group.role(&user("olga"))), (Role::Owner, Role::Member));
}

pub(super) async fn last_owner(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max"]).await;
    let alone = act(&store, "olga", "g", GroupAction::Leave).await.unwrap();
    assert_eq!(alone, Err(Reason::OwnerMustTransfer));
    // Max becomes the owner while he is leaving: whichever is first, the group keeps an owner.
    let transfer = act(&store, "olga", "g", GroupAction::Transfer(user("max")));
    let leave = act(&store, "max", "g", GroupAction::Leave);
    assert!(transfer.await.unwrap().is_ok());
    assert_eq!(leave.await.unwrap(), Err(Reason::OwnerMustTransfer));
    let gone = act(&store, "olga", "g", GroupAction::Leave);
    let back = act(&store, "max", "g", GroupAction::Transfer(user("olga")));
    assert!(gone.await.unwrap().is_ok());
    assert_eq!(back.await.unwrap(), Err(Reason::TargetNotMember));
}

pub(super) async fn never_overfull(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga"]).await;
    let rules = GroupRules { members_max: 5, ..GroupRules::default() };
    let calls: Vec<_> =
        (0..20).map(|n| act_with(&store, &format!("u{n}"), "g", join(), rules)).collect();
    let mut came = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(_) => came += 1,
            Err(reason) => assert_eq!(reason, Reason::GroupFull),
        }
    }
    assert_eq!(came, 4);
    assert_eq!(store.group_members(&group_id("g"), None, 99).await.unwrap().len(), 5);
    assert_eq!(store.group(&group_id("g")).await.unwrap().unwrap().members, 5);
}

pub(super) async fn admin_recalls(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "ada", "max"]).await;
    done(&store, "olga", "g", GroupAction::SetRole(user("ada"), Role::Admin)).await;
    let (of_max, of_olga) =
        (say(&store, "max", "g", "1").await, say(&store, "olga", "g", "2").await);
    let late = NOW.plus(1_000_000);
    let recall = async |by: &'static str, id| {
        let asker = Actor { user: user(by), at: late, origin: None };
        let may = Box::new(move |facts: RecallFacts<'_>| {
            may_recall(&Rules::default(), &user(by), facts, late)
        });
        store.recall(id, asker, may).await.unwrap().map(|message| message.content.body.len())
    };
    assert_eq!(recall("zoe", of_max.id).await, Err(Reason::MessageNotFound));
    assert_eq!(recall("max", of_max.id).await, Err(Reason::RevokeTimeout));
    assert_eq!(recall("max", of_olga.id).await, Err(Reason::NotMessageSender));
    assert_eq!(recall("ada", of_olga.id).await, Err(Reason::NotMessageSender));
    assert_eq!(recall("ada", of_max.id).await, Ok(0));
    assert_eq!(recall("olga", of_olga.id).await, Err(Reason::RevokeTimeout));
}
