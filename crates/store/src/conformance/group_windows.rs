//! What a member of a group may see: from the join on, up to the end.

use std::sync::Arc;

use nexo_chat::event::Event;
use nexo_chat::ids::{Seq, UserId};
use nexo_chat::invariants::is_dense;
use nexo_chat::membership::{GroupAction, HistoryPolicy, JoinPolicy};
use nexo_chat::model::{ChangeKind, CursorKind};
use nexo_chat::store::{Appended, Limit, Order, Store};

use super::Opener;
use super::fixtures::{
    RecordingListener, act, all, append, done, group, group_id, group_with, in_group, join, say,
    to_group, user,
};

async fn say_many(store: &Arc<dyn Store>, from: &str, name: &str, count: u64) {
    for i in 1..=count {
        say(store, from, "g", &format!("{name}{i}")).await;
    }
}

pub(super) async fn newcomer(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga"]).await;
    say_many(&store, "olga", "m", 3).await;
    done(&store, "max", "g", join()).await;
    let fresh = in_group(&store, "max", "g").await;
    assert_eq!((fresh.window.min, fresh.window.change_min), (Seq(4), Seq(2)));
    assert_eq!((fresh.unread(), fresh.visible_max()), (0, Seq(3)));
    say_many(&store, "olga", "n", 2).await;
    let max = in_group(&store, "max", "g").await;
    assert_eq!((max.unread(), max.cursors.delivered, max.cursors.read), (2, Seq(3), Seq(3)));
    let listed = store.standings(&user("max"), None, 9).await.unwrap();
    assert_eq!(listed, [max]);
}

pub(super) async fn whole_history(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group_with(&store, "g", &["olga"], JoinPolicy::Open, HistoryPolicy::All).await;
    say_many(&store, "olga", "m", 3).await;
    done(&store, "max", "g", join()).await;
    let max = in_group(&store, "max", "g").await;
    assert_eq!((max.window.min, max.unread()), (Seq(1), 0), "all of it, none of it unread");
}

pub(super) async fn former_member(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    say_many(&store, "olga", "m", 3).await;
    done(&store, "olga", "g", GroupAction::Kick(user("max"))).await;
    done(&store, "mia", "g", GroupAction::Leave).await;
    say_many(&store, "olga", "n", 4).await;
    let max = in_group(&store, "max", "g").await;
    assert_eq!((max.visible_max(), max.unread(), max.is_active()), (Seq(3), 3, false));
    assert_eq!(max.visible_change_max(), Seq(2), "the kick is the last they hear of");
    assert_eq!(in_group(&store, "mia", "g").await.visible_change_max(), Seq(3));
    let conversation = group_id("g").conversation();
    let moved = store.advance_cursor(&user("max"), &conversation, CursorKind::Read, Seq(7)).await;
    assert_eq!(moved.unwrap().unwrap().after.read, Seq(3));
    assert_eq!(in_group(&store, "max", "g").await.unread(), 0);
    assert_eq!(store.group_members(&group_id("g"), None, 9).await.unwrap().len(), 1);
}

pub(super) async fn again(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max"]).await;
    say_many(&store, "olga", "m", 2).await;
    say(&store, "max", "g", "own").await;
    done(&store, "max", "g", GroupAction::Leave).await;
    say_many(&store, "olga", "n", 2).await;
    done(&store, "max", "g", join()).await;
    say_many(&store, "olga", "o", 1).await;
    let max = in_group(&store, "max", "g").await;
    assert_eq!((max.window.min, max.window.end), (Seq(6), None));
    assert_eq!((max.unread(), max.cursors.read), (1, Seq(5)));
    assert_eq!(say(&store, "max", "g", "back").await.seq, Seq(7));
    assert_eq!(in_group(&store, "max", "g").await.unread(), 0);
}

pub(super) async fn dissolved(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    say_many(&store, "olga", "m", 2).await;
    done(&store, "mia", "g", GroupAction::Leave).await;
    say_many(&store, "olga", "n", 1).await;
    let ended = done(&store, "olga", "g", GroupAction::Dismiss).await;
    assert_eq!((ended.group.members, ended.group.profile.name.as_str()), (0, ""));
    for (who, max, changes) in [("olga", 3, 3), ("max", 3, 3), ("mia", 2, 2)] {
        let standing = in_group(&store, who, "g").await;
        let ends = (standing.visible_max(), standing.visible_change_max());
        assert_eq!((ends, standing.is_active()), ((Seq(max), Seq(changes)), false), "{who}");
    }
    assert!(store.group_members(&group_id("g"), None, 9).await.unwrap().is_empty());
    assert_eq!(store.group_member(&group_id("g"), &user("max")).await.unwrap(), None);
    let conversation = group_id("g").conversation();
    let kept = store
        .messages(&conversation, all(), Limit::of(9), Order::Ascending)
        .await
        .unwrap()
        .messages;
    assert_eq!(kept.len(), 3, "what was said stays");
    let id = group_id("g");
    assert!(store.group(&id).await.unwrap().unwrap().ended.is_some(), "the id stays taken");
}

pub(super) async fn kick_races(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max"]).await;
    let mut sends = Vec::new();
    let mut kick = None;
    for i in 0..40 {
        sends.push(append_task(&store, "max", format!("m{i}")));
        if i == 20 {
            let store = Arc::clone(&store);
            kick = Some(tokio::spawn(async move {
                act(&store, "olga", "g", GroupAction::Kick(user("max"))).await
            }));
        }
    }
    let mut stored = Vec::new();
    for send in sends {
        if let Appended::Stored(message) = send.await.unwrap() {
            stored.push(message.seq);
        }
    }
    kick.unwrap().await.unwrap().unwrap().unwrap();
    let max = in_group(&store, "max", "g").await;
    stored.sort_unstable();
    assert!(is_dense(stored.iter().copied()), "a refused send takes no place");
    assert_eq!(max.window.end.unwrap().seq, Seq(stored.len() as u64), "all of it was before");
    assert_eq!(max.unread(), 0);
}

/// A standing that is read during a kick shows either the open window or its end, never the newer
/// head with a window that seems open.
pub(super) async fn kick_and_look(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max"]).await;
    let conversation = group_id("g").conversation();
    for round in 0..40 {
        let looking = {
            let (store, conversation) = (Arc::clone(&store), conversation.clone());
            tokio::spawn(async move {
                let mut seen = Vec::new();
                loop {
                    let standing = store.standing(&user("max"), &conversation).await.unwrap();
                    let standing = standing.unwrap();
                    let is_over = !standing.is_active();
                    seen.push(standing.visible_max());
                    if is_over {
                        return seen;
                    }
                    tokio::task::yield_now().await;
                }
            })
        };
        let kick = act(&store, "olga", "g", GroupAction::Kick(user("max")));
        let sends: Vec<_> =
            (0..20).map(|i| append_task(&store, "olga", format!("m{round}-{i}"))).collect();
        kick.await.unwrap().unwrap();
        for send in sends {
            assert!(matches!(send.await.unwrap(), Appended::Stored(_)));
        }
        let end = in_group(&store, "max", "g").await.window.end.unwrap().seq;
        let seen = looking.await.unwrap();
        assert!(seen.iter().all(|max| *max <= end), "saw {seen:?}, the window ends at {end}");
        done(&store, "max", "g", join()).await;
    }
}

fn append_task(
    store: &Arc<dyn Store>,
    from: &'static str,
    client_id: String,
) -> tokio::task::JoinHandle<Appended> {
    let store = Arc::clone(store);
    tokio::spawn(async move { append(&store, to_group(from, "g", &client_id)).await.unwrap() })
}

pub(super) async fn join_races(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    group(&store, "g", &["olga"]).await;
    let mut tasks = Vec::new();
    for i in 0..60 {
        tasks.push(append_task(&store, "olga", format!("m{i}")));
        if i % 6 == 0 {
            let store = Arc::clone(&store);
            tokio::spawn(async move { act(&store, &format!("u{i}"), "g", join()).await })
                .await
                .unwrap()
                .unwrap()
                .unwrap();
        }
    }
    for task in tasks {
        assert!(matches!(task.await.unwrap(), Appended::Stored(_)));
    }
    // Messages received before a join are before its window, those received after it are in it.
    let mut head = Seq(0);
    let mut came: Vec<(UserId, Seq)> = Vec::new();
    for event in listener.0.lock().unwrap().iter() {
        match event {
            Event::Message { message, members, .. } => {
                assert_eq!(message.seq, head.next());
                assert_eq!(*members as usize, came.len());
                head = message.seq;
            }
            Event::Change { change, .. } => {
                let ChangeKind::Joined { users, from } = &change.kind else { panic!("{change:?}") };
                assert_eq!(*from, head.next());
                came.push((users[0].clone(), *from));
            }
            other => panic!("{other:?}"),
        }
    }
    let conversation = group_id("g").conversation();
    for (who, from) in came {
        let standing = store.standing(&who, &conversation).await.unwrap().unwrap();
        assert_eq!((standing.window.min, standing.max_seq), (from, Seq(60)));
    }
}

pub(super) async fn survives_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    say_many(&store, "olga", "m", 2).await;
    done(&store, "olga", "g", GroupAction::Kick(user("max"))).await;
    say(&store, "mia", "g", "last").await;
    done(&store, "zoe", "g", join()).await;
    done(&store, "olga", "g", GroupAction::Mute(user("mia"), super::fixtures::NOW.plus(5))).await;
    let made = group_with(&store, "h", &["olga"], JoinPolicy::Approval, HistoryPolicy::All).await;
    done(&store, "max", "h", join()).await;
    let mut before = Vec::new();
    for who in ["olga", "max", "mia", "zoe"] {
        before.push(in_group(&store, who, "g").await);
    }
    let members = store.group_members(&group_id("g"), None, 9).await.unwrap();
    let changes = store.changes(&group_id("g").conversation(), Seq(0), 9).await.unwrap();
    let found = opener.open_after_crash();
    for (who, before) in ["olga", "max", "mia", "zoe"].into_iter().zip(before) {
        assert_eq!(in_group(&found, who, "g").await, before, "{who}");
    }
    assert_eq!(found.group_members(&group_id("g"), None, 9).await.unwrap(), members);
    assert_eq!(found.changes(&group_id("g").conversation(), Seq(0), 9).await.unwrap(), changes);
    assert_eq!(found.join_requests(&group_id("h"), None, 9).await.unwrap().len(), 1);
    assert_eq!(found.group_by_code(&made.group.code).await.unwrap(), Some(group_id("h")));
    let muted = append(&found, to_group("mia", "g", "x")).await.unwrap();
    assert!(matches!(muted, Appended::Refused(_)));
}
