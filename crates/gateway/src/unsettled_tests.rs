use nexo_chat::ids::{ConnectionId, LoginId, Platform, Seq};
use nexo_chat::model::{Caller, Content, Draft};

use super::*;
use crate::outbox::Outbox;

#[expect(clippy::default_trait_access, reason = "how it speaks does not matter")]
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

fn named(it: &Message) -> Named<'_> {
    let Message { id, conversation, sender, client_id, .. } = it;
    Named { id: *id, conversation, sender, client_id }
}

fn told(unsettled: &Unsettled, it: &Arc<Message>) -> Vec<u64> {
    unsettled
        .take(it.id, &Fate::Saved(Arc::clone(it)))
        .iter()
        .map(|told| told.connection.id.0)
        .collect()
}

#[test]
fn who_was_told_hears_of_it_once() {
    let (unsettled, it) = (Unsettled::default(), message());
    let (sender, other) = (socket(1), socket(2));
    assert!(unsettled.ask(&named(&it), &sender, Millis(1)));
    let mut said = 0;
    assert!(unsettled.accepted(it.id, &sender, || said += 1).is_none());
    unsettled.show(&named(&it), &other, Millis(1), || true);
    unsettled.show(&named(&it), &other, Millis(1), || panic!("it knows"));
    assert_eq!(said, 1);
    assert_eq!(told(&unsettled, &it), [1, 2]);
    assert!(told(&unsettled, &it).is_empty());
    unsettled.show(&named(&it), &other, Millis(1), || panic!("it is settled"));
}

#[test]
fn who_is_not_answered_yet_hears_it_as_the_answer() {
    let (unsettled, it, sender) = (Unsettled::default(), message(), socket(1));
    unsettled.ask(&named(&it), &sender, Millis(1));
    assert!(told(&unsettled, &it).is_empty());
    let saved = unsettled.accepted(it.id, &sender, || panic!("it is saved"));
    assert_eq!(saved, Some(Fate::Saved(Arc::clone(&it))));
    assert!(unsettled.state().messages.is_empty(), "nothing is left behind");
}

#[test]
fn who_is_accepted_after_it_was_dropped_knows_both() {
    let (unsettled, it, sender) = (Unsettled::default(), message(), socket(1));
    unsettled.ask(&named(&it), &sender, Millis(1));
    let Message { id, conversation, sender: from, client_id, .. } = (*it).clone();
    let reason = nexo_chat::Reason::NotGroupMember;
    let dropped = Dropped { id, conversation, sender: from, client_id, reason, at: Millis(2) };
    let fate = Fate::Dropped(dropped);
    assert!(unsettled.take(it.id, &fate).is_empty());
    let mut said = 0;
    assert_eq!(unsettled.accepted(it.id, &sender, || said += 1), Some(fate));
    assert_eq!(said, 1);
    assert_eq!(told(&unsettled, &it), [1], "it may have been sent again");
}

#[test]
fn another_answer_takes_nothing_away_from_what_was_accepted() {
    let (unsettled, it) = (Unsettled::default(), message());
    let (sender, phone) = (socket(1), socket(2));
    for socket in [&sender, &phone] {
        unsettled.ask(&named(&it), socket, Millis(1));
    }
    unsettled.accepted(it.id, &sender, || {});
    // The same name with other words is refused, on the same socket and on another one.
    unsettled.ask(&named(&it), &sender, Millis(1));
    unsettled.answered(it.id, &sender);
    unsettled.answered(it.id, &phone);
    assert_eq!(told(&unsettled, &it), [1]);
    assert!(unsettled.state().messages.is_empty(), "nothing is left behind");
}

#[test]
fn what_could_not_be_shown_is_not_known() {
    let (unsettled, it, other) = (Unsettled::default(), message(), socket(2));
    unsettled.show(&named(&it), &other, Millis(1), || false);
    assert!(unsettled.state().messages.is_empty());
    assert!(told(&unsettled, &it).is_empty());
}

#[test]
fn whoever_is_gone_is_forgotten() {
    let (unsettled, it, other) = (Unsettled::default(), message(), socket(2));
    unsettled.show(&named(&it), &other, Millis(1), || true);
    assert_eq!(unsettled.due(Millis(100), 50, 10).len(), 1);
    assert!(unsettled.due(Millis(120), 50, 10).is_empty(), "it was looked for");
    drop(other);
    assert!(unsettled.due(Millis(500), 50, 10).is_empty());
    assert!(unsettled.state().messages.is_empty());
}
