//! What is stored besides a message: sends without read, mentions, settings, last seen.

use std::sync::Arc;

use nexo_chat::event::Event;
use nexo_chat::ids::{Millis, Seq};
use nexo_chat::model::{
    Content, CursorKind, Cursors, Draft, HiddenChange, HiddenMark, Message, Receive, ReplyTo,
    Settings, SettingsChange, Window,
};
use nexo_chat::store::{Appended, Store};

use super::Opener;
use super::fixtures::{
    NOW, RecordingListener, all, append, draft, group, group_id, in_group, pair, send, standing,
    to_group, user,
};

async fn quietly(store: &Arc<dyn Store>, from: &str, to: &str, client_id: &str) {
    let draft = Draft { marks_read: false, ..draft(from, to, client_id, client_id) };
    assert!(matches!(append(store, draft).await.unwrap(), Appended::Stored(_)));
}

pub(super) async fn quiet(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send(&store, "bob", "alice", "b1").await;
    quietly(&store, "alice", "bob", "a1").await;
    quietly(&store, "alice", "bob", "a2").await;
    send(&store, "bob", "alice", "b2").await;
    quietly(&store, "alice", "bob", "a3").await;
    let alice = standing(&store, "alice", "bob").await;
    assert_eq!((alice.cursors.read, alice.own_unread), (Seq(0), 3), "nothing was marked read");
    assert_eq!(alice.unread(), 2, "only what bob said");
    assert_eq!(standing(&store, "bob", "alice").await.unread(), 1, "bob's own send read two");
    let conversation = pair("alice", "bob");
    store.advance_cursor(&user("alice"), &conversation, CursorKind::Read, Seq(2)).await.unwrap();
    assert_eq!(standing(&store, "alice", "bob").await.unread(), 1);
    send(&store, "alice", "bob", "a4").await;
    assert_eq!(standing(&store, "alice", "bob").await.unread(), 0);
    quietly(&store, "alice", "bob", "a5").await;
    assert_eq!(standing(&store, "alice", "bob").await.unread(), 0);
}

pub(super) async fn quiet_ranges(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for i in 1..=12 {
        let name = format!("m{i}");
        if i % 3 == 0 {
            quietly(&store, "alice", "bob", &name).await;
        } else {
            send(&store, "bob", "alice", &name).await;
        }
    }
    let (alice, conversation) = (user("alice"), pair("alice", "bob"));
    for (from, to, expect) in [(0, 99, 4), (1, 12, 4), (3, 3, 1), (4, 5, 0), (4, 9, 2), (9, 4, 0)] {
        let found =
            store.sent_without_read(&alice, &conversation, Seq(from)..=Seq(to)).await.unwrap();
        assert_eq!(found, expect, "{from} to {to}");
    }
    assert_eq!(store.sent_without_read(&user("bob"), &conversation, all()).await.unwrap(), 0);
    assert_eq!(store.sent_without_read(&user("carol"), &conversation, all()).await.unwrap(), 0);
}

async fn speak(store: &Arc<dyn Store>, from: &str, id: &str, content: Content) -> Arc<Message> {
    let draft = Draft { content, ..to_group(from, "g", id) };
    match append(store, draft).await.unwrap() {
        Appended::Stored(message) => message,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn mentions(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max", "mia"]).await;
    let text = |body: &'static str| Content::text(body);
    let one = speak(&store, "max", "1", text("plain")).await;
    let names = Content { mentions: vec![user("max"), user("mia")], ..text("names two") };
    speak(&store, "olga", "2", names).await;
    speak(&store, "olga", "3", Content { mentions_all: true, ..text("all") }).await;
    let reply = Some(ReplyTo { message: one.id, sender: user("max") });
    speak(&store, "mia", "4", Content { reply_to: reply.clone(), ..text("answers max") }).await;
    let both =
        Content { mentions: vec![user("max")], mentions_all: true, reply_to: reply, ..text("x") };
    speak(&store, "olga", "5", both).await;
    speak(&store, "max", "6", Content { mentions: vec![user("max")], ..text("me") }).await;
    let conversation = group_id("g").conversation();
    for (who, from, to, limit, expect) in [
        ("max", 0, 99, 99, vec![2, 3, 4, 5]),
        ("max", 3, 4, 99, vec![3, 4]),
        ("max", 0, 99, 2, vec![2, 3]),
        ("mia", 0, 99, 99, vec![2, 3, 5]),
        ("olga", 0, 99, 99, vec![]),
        ("max", 9, 3, 99, vec![]),
    ] {
        let found =
            store.mentions(&user(who), &conversation, Seq(from)..=Seq(to), limit).await.unwrap();
        assert_eq!(found, expect.into_iter().map(Seq).collect::<Vec<_>>(), "{who} {from} {to}");
    }
}

pub(super) async fn settings(opener: Arc<dyn Opener>) {
    let store = opener.open();
    send(&store, "alice", "bob", "m").await;
    let (alice, conversation) = (user("alice"), pair("alice", "bob"));
    let change = SettingsChange::default;
    let pin = SettingsChange { pinned: Some(true), ..change() };
    let now = store.update_settings(&alice, &conversation, pin.clone()).await.unwrap();
    assert_eq!(now, Some(Settings { pinned: true, ..Settings::default() }));
    let block = SettingsChange { receive: Some(Receive::Blocked), ..change() };
    let now = store.update_settings(&alice, &conversation, block).await.unwrap().unwrap();
    let blocked = Settings { pinned: true, receive: Receive::Blocked, ..Settings::default() };
    assert_eq!(now, blocked);
    let hidden = HiddenMark { seq: Seq(1), since: Millis(0) };
    let extra = "{\"colour\":\"红\"}".to_owned();
    let hiding = Some(HiddenChange::Hide(hidden));
    let hide = SettingsChange { hidden: hiding, extra: Some(extra.clone()), ..change() };
    let now = store.update_settings(&alice, &conversation, hide).await.unwrap().unwrap();
    assert_eq!(now, Settings { hidden: Some(hidden), extra, ..blocked.clone() });
    assert_eq!(standing(&store, "alice", "bob").await.settings, now);
    let plain = Some(String::new());
    let show = SettingsChange { hidden: Some(HiddenChange::Show), extra: plain, ..change() };
    let now = store.update_settings(&alice, &conversation, show).await.unwrap();
    assert_eq!(now, Some(blocked));
    assert_eq!(standing(&store, "bob", "alice").await.settings, Settings::default());
    let carol = store.update_settings(&user("carol"), &conversation, pin).await.unwrap();
    assert_eq!(carol, None);
}

fn block() -> SettingsChange {
    let receive = Some(Receive::Blocked);
    SettingsChange { pinned: Some(true), receive, ..SettingsChange::default() }
}

fn blocked() -> Settings {
    Settings { pinned: true, receive: Receive::Blocked, ..Settings::default() }
}

pub(super) async fn settings_before_first_message(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let listener = Arc::new(RecordingListener::default());
    store.set_commit_listener(Arc::clone(&listener) as _);
    let (alice, conversation) = (user("alice"), pair("alice", "bob"));
    let pin = SettingsChange { pinned: Some(true), ..SettingsChange::default() };
    let now = store.update_settings(&alice, &conversation, pin).await.unwrap();
    assert_eq!(now, Some(Settings { pinned: true, ..Settings::default() }));
    let now = store.update_settings(&alice, &conversation, block()).await.unwrap();
    assert_eq!(now, Some(blocked()));
    let settings = blocked();
    let event = Event::Settings { user: alice.clone(), conversation, settings };
    let heard = format!("{:?}", listener.0.lock().unwrap().last());
    assert_eq!(heard, format!("{:?}", Some(event)));
    let before = standing(&store, "alice", "bob").await;
    assert_eq!((before.window, before.cursors), (Window::ALL, Cursors::default()));
    assert_eq!((before.max_seq, before.unread(), before.settings.clone()), (Seq(0), 0, blocked()));
    assert!(!before.has_begun() && !before.is_listed());
    assert_eq!(store.standings(&alice, None, 9).await.unwrap(), [before]);
    let moved = store.advance_cursor(&alice, &pair("alice", "bob"), CursorKind::Read, Seq(9)).await;
    assert_eq!(moved.unwrap().unwrap().after, Cursors::default(), "there is nothing to read");

    let first = send(&store, "bob", "alice", "one").await;
    assert_eq!(first.seq, Seq(1));
    let after = standing(&store, "alice", "bob").await;
    assert_eq!((after.max_seq, after.unread(), after.settings.clone()), (Seq(1), 1, blocked()));
    assert!(after.has_begun() && after.is_listed());
    assert_eq!(standing(&store, "bob", "alice").await.settings, Settings::default());
    // The same if they send the first message themselves.
    store.update_settings(&alice, &pair("alice", "carol"), block()).await.unwrap();
    send(&store, "alice", "carol", "two").await;
    let after = standing(&store, "alice", "carol").await;
    let read = Cursors { delivered: Seq(1), read: Seq(1) };
    assert_eq!((after.cursors, after.settings), (read, blocked()));
    assert_eq!(standing(&store, "carol", "alice").await.unread(), 1);
}

pub(super) async fn settings_are_ones_own(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let (alice, bob) = (user("alice"), user("bob"));
    let conversation = pair("alice", "bob");
    store.update_settings(&alice, &conversation, block()).await.unwrap();
    assert_eq!(store.standing(&bob, &conversation).await.unwrap(), None);
    assert!(store.standings(&bob, None, 9).await.unwrap().is_empty());
    let moved = store.advance_cursor(&bob, &conversation, CursorKind::Read, Seq(1)).await.unwrap();
    assert_eq!(moved, None);
    // Nothing was said, so neither may see whether the other is online.
    for (who, other) in [(&alice, &bob), (&bob, &alice)] {
        let shares = store.share_conversation(who, vec![other.clone()]).await.unwrap();
        assert_eq!(shares, [false], "{who}");
    }
    let mute = SettingsChange { receive: Some(Receive::Silent), ..SettingsChange::default() };
    store.update_settings(&bob, &conversation, mute).await.unwrap();
    assert_eq!(standing(&store, "alice", "bob").await.settings, blocked());
    assert_eq!(standing(&store, "bob", "alice").await.settings.receive, Receive::Silent);
    let shares = store.share_conversation(&alice, vec![bob]).await.unwrap();
    assert_eq!(shares, [false], "both chose, and still nothing was said");
    // Only the two of them, and only in private.
    let carol = store.update_settings(&user("carol"), &conversation, block()).await.unwrap();
    assert_eq!(carol, None);
    group(&store, "g", &["olga", "max"]).await;
    for id in ["g", "nowhere"] {
        let conversation = group_id(id).conversation();
        assert_eq!(store.update_settings(&alice, &conversation, block()).await.unwrap(), None);
        assert_eq!(store.standing(&alice, &conversation).await.unwrap(), None);
    }
}

/// Both users choose while both send the first message: nobody's choice is lost.
pub(super) async fn settings_race(opener: Arc<dyn Opener>) {
    let store = opener.open();
    for n in 0..20 {
        let (a, b) = (format!("a{n}"), format!("b{n}"));
        let conversation = pair(&a, &b);
        let choose = |who: &str| {
            let (store, who, conversation) = (Arc::clone(&store), user(who), conversation.clone());
            tokio::spawn(async move { store.update_settings(&who, &conversation, block()).await })
        };
        let say = |from: &str, to: &str| {
            let (store, draft) = (Arc::clone(&store), draft(from, to, "m", "hi"));
            tokio::spawn(async move { append(&store, draft).await })
        };
        let (first, one, second, two) = (choose(&a), say(&a, &b), choose(&b), say(&b, &a));
        for choice in [first, second] {
            assert_eq!(choice.await.unwrap().unwrap(), Some(blocked()));
        }
        for sent in [one, two] {
            assert!(matches!(sent.await.unwrap().unwrap(), Appended::Stored(_)));
        }
        for (who, with) in [(&a, &b), (&b, &a)] {
            let standing = standing(&store, who, with).await;
            assert_eq!((standing.max_seq, &standing.settings), (Seq(2), &blocked()), "{who}");
        }
    }
}

pub(super) async fn settings_before_first_message_survive(opener: Arc<dyn Opener>) {
    let store = opener.open();
    let conversation = pair("alice", "bob");
    store.update_settings(&user("alice"), &conversation, block()).await.unwrap();
    let before = standing(&store, "alice", "bob").await;
    let found = opener.open_after_crash();
    assert_eq!(standing(&found, "alice", "bob").await, before);
    assert_eq!(found.standing(&user("bob"), &conversation).await.unwrap(), None);
    send(&found, "bob", "alice", "one").await;
    assert_eq!(standing(&found, "alice", "bob").await.settings, blocked());
}

pub(super) async fn last_seen(opener: Arc<dyn Opener>) {
    let store = opener.open();
    assert_eq!(store.last_seen(&user("alice")).await.unwrap(), None);
    store.record_seen(&user("alice"), Millis(5)).await.unwrap();
    store.record_seen(&user("alice"), Millis(7)).await.unwrap();
    assert_eq!(store.last_seen(&user("alice")).await.unwrap(), Some(Millis(7)));
}

pub(super) async fn survive_crash(opener: Arc<dyn Opener>) {
    let store = opener.open();
    group(&store, "g", &["olga", "max"]).await;
    speak(&store, "max", "1", Content { mentions: vec![user("olga")], ..Content::text("x") }).await;
    let quiet = Draft { marks_read: false, ..to_group("olga", "g", "2") };
    append(&store, quiet).await.unwrap();
    let change = SettingsChange {
        pinned: Some(true),
        receive: Some(Receive::Silent),
        hidden: Some(HiddenChange::Hide(HiddenMark { seq: Seq(2), since: NOW })),
        extra: Some("mine".into()),
    };
    let conversation = group_id("g").conversation();
    store.update_settings(&user("olga"), &conversation, change).await.unwrap();
    let before = in_group(&store, "olga", "g").await;
    assert_eq!((before.unread(), before.own_unread), (1, 1));
    let found = opener.open_after_crash();
    assert_eq!(in_group(&found, "olga", "g").await, before);
    let mentions = found.mentions(&user("olga"), &conversation, all(), 9).await.unwrap();
    assert_eq!(mentions, [Seq(1)]);
}
