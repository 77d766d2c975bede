//! The outbox against a simulated connection and clock.

use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::advance;

use super::*;
use crate::events::Listeners;
use crate::storage::MemoryStore;
use crate::types::{Address, MessageType};

/// An outbox whose frames the test reads.
struct World {
    outbox: Outbox,
    frame_sender: FrameSender,
    written: UnboundedReceiver<String>,
    store: BestEffortStore,
    limits: Limits,
}

impl World {
    fn new() -> Self {
        let store = BestEffortStore::new(Arc::new(MemoryStore::default()), Listeners::default());
        let (sender, written) = unbounded_channel();
        let mut frame_sender = FrameSender::new(Instant::now());
        frame_sender.connect(sender);
        let limits = Limits { frame_bytes_max: 1000, ..Limits::default() };
        Self { outbox: open(&store), frame_sender, written, store, limits }
    }

    fn online(&mut self) {
        self.outbox.online(&self.limits, Instant::now());
    }

    fn say(&mut self, name: &str) {
        self.say_to("you", name, name);
    }

    fn say_to(&mut self, to: &str, name: &str, body: &str) {
        let entry = OutboxEntry {
            order: 0,
            client_msg_id: name.to_owned(),
            conversation_id: format!("si_me_{to}"),
            address: Address::To { to: to.to_owned() },
            kind: MessageType::Text,
            body: body.to_owned(),
            extra: None,
            mentions: None,
            reply_to: None,
            at: 0,
            reason: None,
            after: None,
        };
        self.outbox.add(entry, Instant::now());
    }

    /// As an answer of the server.
    fn saved(&mut self, name: &str) {
        self.outbox.answered(name);
        self.outbox.saved(name);
    }

    fn refused(&mut self, name: &str, reason: Reason) {
        self.outbox.refused(name, reason, |_| 7, Instant::now());
    }

    /// The client message ids written since the last call.
    fn written(&mut self) -> String {
        self.outbox.tick(&mut self.frame_sender, |_| 7, Instant::now());
        let mut names = Vec::new();
        while let Ok(text) = self.written.try_recv() {
            let frame: serde_json::Value = serde_json::from_str(&text).unwrap();
            names.push(frame["clientMsgId"].as_str().unwrap().to_owned());
        }
        names.join(" ")
    }

    /// The same, after this time in small steps.
    async fn written_after(&mut self, wait: u64) -> String {
        let mut names = Vec::new();
        for _ in 0..wait {
            advance(Duration::from_millis(1)).await;
            names.push(self.written());
        }
        names.retain(|names| !names.is_empty());
        names.join(" ")
    }

    fn given_up(&mut self) -> Vec<(String, Reason)> {
        let given_up = self.outbox.take_newly_refused().into_iter();
        given_up.map(|entry| (entry.client_msg_id, entry.reason.unwrap())).collect()
    }

    fn kept(&self) -> usize {
        self.store.list::<OutboxEntry>("outbox/me/").len()
    }

    /// The `after` of the stored entries.
    fn kept_after(&self) -> Vec<Option<u64>> {
        self.store
            .list::<OutboxEntry>("outbox/me/")
            .into_iter()
            .map(|(_, entry)| entry.after)
            .collect()
    }
}

fn open(store: &BestEffortStore) -> Outbox {
    let timing = Timing { silence_ms: 1000, send_window: 4, ..Timing::default() };
    Outbox::new("me", Arc::new(timing), store.clone(), Instant::now())
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_connection_then_keeps_a_window_on_the_wire() {
    let mut world = World::new();
    for name in ["1", "2", "3", "4", "5", "6"] {
        world.say(name);
    }
    assert_eq!(world.written(), "");
    world.online();
    assert_eq!(world.written(), "1 2 3 4");
    world.saved("1");
    world.saved("2");
    assert_eq!(world.written(), "5 6");
}

#[tokio::test(start_paused = true)]
async fn after_a_new_connection_everything_unanswered_goes_again_in_order() {
    let mut world = World::new();
    world.online();
    for name in ["1", "2", "3"] {
        world.say(name);
    }
    assert_eq!(world.written(), "1 2 3");
    world.saved("2");
    world.outbox.offline();
    world.say("4");
    assert_eq!(world.written(), "");
    world.online();
    assert_eq!(world.written(), "1 3 4");
}

#[tokio::test(start_paused = true)]
async fn after_a_silence_everything_unanswered_goes_again_each_time_later() {
    let mut world = World::new();
    world.online();
    world.say("1");
    world.say("2");
    assert_eq!(world.written(), "1 2");
    assert_eq!(world.written_after(999).await, "");
    assert_eq!(world.written_after(1).await, "1 2");
    assert_eq!(world.written_after(1999).await, "");
    assert_eq!(world.written_after(1).await, "1 2");
    world.saved("1");
    world.saved("2");
    assert_eq!(world.written_after(60_000).await, "");
}

#[tokio::test(start_paused = true)]
async fn an_answer_out_of_turn_shows_what_was_lost_but_that_of_a_second_try_shows_nothing() {
    let mut world = World::new();
    world.online();
    for name in ["1", "2", "3"] {
        world.say(name);
    }
    assert_eq!(world.written(), "1 2 3");
    world.saved("2");
    assert_eq!(world.written(), "1");
    world.say("4");
    assert_eq!(world.written(), "4");
    world.saved("4");
    assert_eq!(world.written(), "1 3");
    world.saved("3");
    assert_eq!(world.written(), "");
}

#[tokio::test(start_paused = true)]
async fn what_a_pull_shows_to_be_saved_proves_nothing_about_the_wire() {
    let mut world = World::new();
    world.online();
    world.say("1");
    world.say("2");
    assert_eq!(world.written(), "1 2");
    assert!(world.outbox.saved("2"));
    assert!(!world.outbox.saved("2"));
    assert_eq!(world.written(), "");
    assert_eq!(world.kept(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_given_time_and_the_conversation_goes_again_in_order() {
    let mut world = World::new();
    world.online();
    for name in ["1", "2", "3"] {
        world.say(name);
    }
    world.say_to("other", "x", "x");
    world.written();
    world.refused("1", Reason::ServerBusy);
    world.saved("x");
    assert_eq!(world.written(), "");
    assert_eq!(world.written_after(1_000).await, "1");
    world.saved("1");
    assert_eq!(world.written(), "2 3");
    assert!(world.given_up().is_empty());
}

#[tokio::test(start_paused = true)]
async fn however_many_were_on_the_wire_a_busy_server_is_given_time_once_and_then_one_at_a_time() {
    let mut world = World::new();
    world.online();
    for name in ["1", "2", "3", "4"] {
        world.say(name);
    }
    assert_eq!(world.written(), "1 2 3 4");
    for name in ["1", "2", "3", "4"] {
        world.refused(name, Reason::ServerBusy);
    }
    // Half a second, and up to half a second more.
    assert_eq!(world.written_after(499).await, "");
    assert_eq!(world.written_after(501).await, "1");
    world.saved("1");
    assert_eq!(world.written(), "2 3 4");
}

#[tokio::test(start_paused = true)]
async fn other_refusals_are_final_are_kept_and_can_be_tried_again_or_forgotten() {
    let mut world = World::new();
    world.online();
    world.say("1");
    world.say("2");
    world.written();
    let reason = Reason::NotGroupMember;
    world.refused("1", reason);
    world.refused("1", reason);
    assert_eq!(world.given_up(), [("1".to_owned(), reason)]);
    assert_eq!(world.kept(), 2);
    assert_eq!(world.kept_after(), [Some(7), None]);
    assert!(world.outbox.retry("1", Instant::now()).is_some());
    assert_eq!(world.kept_after(), [None, None]);
    assert_eq!(world.written(), "1");
    world.refused("1", reason);
    assert!(world.outbox.discard("1").is_some());
    world.saved("2");
    assert_eq!(world.kept(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_is_too_large_is_refused_here_not_tried_for_ever() {
    let mut world = World::new();
    world.online();
    world.say_to("you", "1", &"é".repeat(600));
    world.say("2");
    assert_eq!(world.written(), "2");
    assert_eq!(world.given_up(), [("1".to_owned(), Reason::FrameTooLarge)]);
}

#[tokio::test(start_paused = true)]
async fn accepted_is_not_saved_it_is_asked_after() {
    let mut world = World::new();
    world.online();
    world.say("1");
    assert_eq!(world.written(), "1");
    assert_eq!(world.written_after(900).await, "");
    assert!(world.outbox.accepted("1", Instant::now()));
    assert_eq!(world.written_after(900).await, "");
    assert_eq!(world.written_after(200).await, "1");
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_on_in_order_with_the_same_names() {
    let mut world = World::new();
    for name in ["1", "2", "3"] {
        world.say(name);
    }
    world.saved("2");
    world.outbox = open(&world.store);
    let left = world.outbox.load(Instant::now());
    assert_eq!(
        left.iter().map(|entry| entry.client_msg_id.as_str()).collect::<Vec<_>>(),
        ["1", "3"]
    );
    world.say("4");
    world.online();
    assert_eq!(world.written(), "1 3 4");
}

#[tokio::test(start_paused = true)]
async fn keeps_below_the_rate_of_the_server_and_serves_conversations_in_turn() {
    let mut world = World::new();
    world.limits.user_sends_per_second = 4;
    world.online();
    for name in ["a1", "a2", "a3", "a4"] {
        world.say_to("a", name, name);
    }
    world.say_to("b", "b1", "b1");
    assert_eq!(world.written(), "a1 b1 a2");
    assert_eq!(world.written_after(600).await, "a3 a4");
}
