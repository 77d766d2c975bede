//! A window of messages that knows its gaps.

use super::*;
use crate::types::{MessageState, MessageType};

fn message(seq: u64, mine: bool, important: bool) -> Arc<Message> {
    Arc::new(Message {
        conversation_id: "si_me_you".to_owned(),
        client_msg_id: format!("c{seq}"),
        server_msg_id: format!("s{seq}"),
        seq,
        from: if mine { "me" } else { "you" }.to_owned(),
        is_mine: mine,
        kind: MessageType::Text,
        body: seq.to_string(),
        extra: None,
        mentions: None,
        reply_to: None,
        is_important: important,
        is_recalled: false,
        is_damaged: false,
        at: seq,
        state: if mine { MessageState::Saved } else { MessageState::Received },
        read_by: None,
        reason: None,
        after: None,
    })
}

fn theirs(seq: u64) -> Arc<Message> {
    message(seq, false, false)
}

fn window_of(after: u64, until: u64) -> MessageWindow {
    let mut window = MessageWindow::new(after);
    (after + 1..=until).for_each(|seq| window.append(theirs(seq)));
    window
}

#[test]
fn unread_are_the_messages_of_others_above_the_read_cursor() {
    let mut run = window_of(0, 4);
    run.append(message(5, true, false));
    run.append(message(6, false, true));
    assert_eq!((run.unread(), run.mentions()), (5, 1));
    run.read_to(4);
    assert_eq!((run.unread(), run.mentions()), (1, 1));
    run.read_to(2);
    assert_eq!(run.unread(), 3);
    run.read_to(9);
    run.append(theirs(7));
    assert_eq!((run.unread(), run.mentions()), (0, 0));
}

#[test]
fn what_is_unread_before_the_run_comes_from_the_count_of_the_server() {
    let mut run = window_of(90, 95);
    run.read_to(50);
    run.set_server_unread(ServerUnread { up_to: 100, read: 50, count: 40 });
    assert_eq!(run.unread(), 5);
    (96..=101).for_each(|seq| run.append(theirs(seq)));
    assert_eq!(run.unread(), 41);
    run.prepend(&[message(89, true, false), theirs(90)]);
    assert_eq!(run.unread(), 41);
    run.read_to(101);
    assert_eq!(run.unread(), 0);
}

#[test]
fn what_speaks_to_us_is_counted_once_even_if_it_comes_after_its_count() {
    let mut run = window_of(90, 95);
    run.read_to(50);
    run.set_server_mentions(ServerUnread { up_to: 98, read: 50, count: 3 });
    assert_eq!(run.mentions(), 0);
    (96..=98).for_each(|seq| run.append(message(seq, false, true)));
    assert_eq!(run.mentions(), 3);
    run.append(message(99, false, true));
    assert_eq!(run.mentions(), 4);
    run.set_server_mentions(ServerUnread { up_to: 98, read: 50, count: 7 });
    assert_eq!(run.mentions(), 8);
    run.prepend(&[message(90, false, true)]);
    assert_eq!(run.mentions(), 8);
}

#[test]
fn letting_go_of_the_oldest_changes_no_count() {
    let mut run = window_of(0, 20);
    run.trim(5);
    assert_eq!((run.first(), run.last(), run.unread()), (16, 20, 20));
    assert!(run.at(15).is_none());
    assert_eq!(run.find("s16").unwrap().seq, 16);
    run.prepend(&[theirs(14), theirs(15)]);
    assert_eq!(run.unread(), 20);
    run.read_to(20);
    assert_eq!(run.unread(), 0);
}

#[test]
fn a_new_window_begins_without_what_was_before_it() {
    let mut run = window_of(0, 20);
    run.cut_before(15);
    assert_eq!((run.first(), run.last(), run.unread()), (15, 20, 6));
    run.cut_before(31);
    assert_eq!((run.first(), run.last(), run.unread()), (31, 30, 0));
}
