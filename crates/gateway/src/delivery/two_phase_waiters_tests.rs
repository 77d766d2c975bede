//! Sockets that know a message before it is saved learn what became of it, once.

use nexo_chat::ids::{ConnectionId, LoginId, Platform, Seq};
use nexo_chat::model::{Caller, Content, Draft};

use super::*;
use crate::socket::outbox::Outbox;

#[expect(clippy::default_trait_access, reason = "any dialect will do")]
fn socket(number: u64) -> Arc<Connection> {
    let caller = Caller {
        user: UserId::parse("ann").unwrap(),
        login: LoginId([1; 16]),
        platform: Platform(5),
        signed_in_at: Millis(0),
        expires_at: Millis(9),
        connection: None,
    };
    let outbox = Outbox::new(100, 200);
    Arc::new(Connection::new(ConnectionId(number), &caller, Default::default(), outbox, Millis(0)))
}

fn message() -> Arc<Message> {
    let (ann, bob) = (UserId::parse("ann").unwrap(), UserId::parse("bob").unwrap());
    let draft = Draft {
        conversation: ConversationId::private(&ann, &bob),
        sender: ann,
        client_id: ClientMsgId::parse("c1").unwrap(),
        content: Content::text("words"),
        cleaned: None,
        sent_at: Millis(1),
        origin: None,
        marks_read: true,
    };
    let id = MessageId::of(&draft.sender, &draft.client_id);
    Arc::new(draft.into_message(id, Seq(1)))
}

fn message_ref(it: &Message) -> MessageRef<'_> {
    let Message { id, conversation, sender, client_id, .. } = it;
    MessageRef { id: *id, conversation, sender, client_id }
}

fn times() -> SendTimes {
    SendTimes { received_at: std::time::Instant::now(), check_us: None }
}

fn resolve(waiters: &TwoPhaseWaiters, it: &Arc<Message>) -> Vec<u64> {
    waiters
        .resolve(it.id, &Resolution::Saved(Arc::clone(it)))
        .iter()
        .map(|socket| socket.connection.id.0)
        .collect()
}

#[test]
fn a_told_socket_gets_the_resolution_once() {
    let (waiters, it) = (TwoPhaseWaiters::default(), message());
    let (sender, other) = (socket(1), socket(2));
    assert!(waiters.add_sender(&message_ref(&it), &sender, Millis(1)));
    let mut pushed = 0;
    assert!(waiters.accept(it.id, &sender, times(), || pushed += 1).is_none());
    waiters.show_preview(&message_ref(&it), &other, Millis(1), || true);
    waiters.show_preview(&message_ref(&it), &other, Millis(1), || panic!("it was told"));
    assert_eq!(pushed, 1);
    assert_eq!(resolve(&waiters, &it), [1, 2]);
    assert!(resolve(&waiters, &it).is_empty());
    waiters.show_preview(&message_ref(&it), &other, Millis(1), || panic!("it is resolved"));
}

#[test]
fn an_unanswered_send_gets_the_resolution_as_its_answer() {
    let (waiters, it, sender) = (TwoPhaseWaiters::default(), message(), socket(1));
    waiters.add_sender(&message_ref(&it), &sender, Millis(1));
    assert!(resolve(&waiters, &it).is_empty());
    let saved = waiters.accept(it.id, &sender, times(), || panic!("it is saved"));
    assert_eq!(saved, Some(Resolution::Saved(Arc::clone(&it))));
    assert!(waiters.messages().waiting.is_empty(), "nothing is left behind");
}

#[test]
fn a_send_accepted_after_a_drop_is_told_both() {
    let (waiters, it, sender) = (TwoPhaseWaiters::default(), message(), socket(1));
    waiters.add_sender(&message_ref(&it), &sender, Millis(1));
    let Message { id, conversation, sender: from, client_id, .. } = (*it).clone();
    let reason = nexo_chat::Reason::NotGroupMember;
    let dropped = Dropped { id, conversation, sender: from, client_id, reason, at: Millis(2) };
    let resolution = Resolution::Dropped(dropped);
    assert!(waiters.resolve(it.id, &resolution).is_empty());
    let mut pushed = 0;
    assert_eq!(waiters.accept(it.id, &sender, times(), || pushed += 1), Some(resolution));
    assert_eq!(pushed, 1);
    assert_eq!(resolve(&waiters, &it), [1], "it may have been sent again");
}

#[test]
fn a_refused_repeat_leaves_the_accepted_send_waiting() {
    let (waiters, it) = (TwoPhaseWaiters::default(), message());
    let (sender, phone) = (socket(1), socket(2));
    for socket in [&sender, &phone] {
        waiters.add_sender(&message_ref(&it), socket, Millis(1));
    }
    waiters.accept(it.id, &sender, times(), || {});
    // The same client id with another text is refused, on the same socket and on another one.
    waiters.add_sender(&message_ref(&it), &sender, Millis(1));
    waiters.end_send(it.id, &sender);
    waiters.end_send(it.id, &phone);
    assert_eq!(resolve(&waiters, &it), [1]);
    assert!(waiters.messages().waiting.is_empty(), "nothing is left behind");
}

#[test]
fn a_preview_that_was_not_pushed_has_no_waiter() {
    let (waiters, it, other) = (TwoPhaseWaiters::default(), message(), socket(2));
    waiters.show_preview(&message_ref(&it), &other, Millis(1), || false);
    assert!(waiters.messages().waiting.is_empty());
    assert!(resolve(&waiters, &it).is_empty());
}

#[test]
fn closed_sockets_are_removed() {
    let (waiters, it, other) = (TwoPhaseWaiters::default(), message(), socket(2));
    waiters.show_preview(&message_ref(&it), &other, Millis(1), || true);
    assert_eq!(waiters.take_overdue(Millis(100), 50, 10).len(), 1);
    assert!(waiters.take_overdue(Millis(120), 50, 10).is_empty(), "it was checked");
    drop(other);
    assert!(waiters.take_overdue(Millis(500), 50, 10).is_empty());
    assert!(waiters.messages().waiting.is_empty());
}
