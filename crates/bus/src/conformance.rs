//! What every bus keeps, as cases that run on each engine.

use std::sync::{Arc, Mutex};

use nexo_chat::bus::{Bus, Listener, Place};
use nexo_chat::command::{Event, Logins};
use nexo_chat::ids::{ConnectionId, LoginId, Platform, UserId};
use nexo_chat::{Boxed, Reason};

/// A promise and the code that tries to catch it broken.
pub struct Case {
    /// The promise, in words.
    pub name: &'static str,
    /// Panics if the bus breaks it.
    pub run: fn(Arc<dyn Bus>) -> Boxed<'static, ()>,
}

/// All of them.
pub const CASES: &[Case] = &[
    Case { name: "a_claim_sees_the_claims_before_it", run: |bus| Box::pin(claims(bus)) },
    Case { name: "a_release_can_be_repeated", run: |bus| Box::pin(releases(bus)) },
    Case { name: "events_are_heard_in_the_order_of_publishing", run: |bus| Box::pin(order(bus)) },
    Case {
        name: "publishing_to_nobody_does_nothing",
        run: |bus| Box::pin(async move { bus.publish(ended("nobody")) }),
    },
];

fn user(id: &str) -> UserId {
    UserId::parse(id).expect("a good id")
}

fn place(id: &str, connection: u64) -> Place {
    Place {
        user: user(id),
        connection: ConnectionId(connection),
        login: LoginId([1; 16]),
        platform: Platform(5),
    }
}

fn ended(id: &str) -> Event {
    Event::Ended { user: user(id), logins: Logins::All, reason: Reason::Kicked }
}

async fn claims(bus: Arc<dyn Bus>) {
    assert_eq!(bus.claim(place("alice", 1)).await, []);
    assert_eq!(bus.claim(place("alice", 2)).await, [place("alice", 1)]);
    assert_eq!(bus.claim(place("bob", 3)).await, []);
    assert_eq!(bus.places(&user("alice")).await, [place("alice", 1), place("alice", 2)]);
}

async fn releases(bus: Arc<dyn Bus>) {
    bus.claim(place("alice", 1)).await;
    bus.claim(place("alice", 2)).await;
    bus.release(&user("alice"), ConnectionId(1));
    bus.release(&user("alice"), ConnectionId(1));
    bus.release(&user("carol"), ConnectionId(9));
    assert_eq!(bus.places(&user("alice")).await, [place("alice", 2)]);
    bus.release(&user("alice"), ConnectionId(2));
    assert_eq!(bus.places(&user("alice")).await, []);
}

#[derive(Default)]
struct Notebook(Mutex<Vec<String>>);

impl Listener for Notebook {
    fn hear(&self, event: &Event) {
        if let Event::Ended { user, .. } = event {
            self.0.lock().expect("not poisoned").push(user.to_string());
        }
    }
}

async fn order(bus: Arc<dyn Bus>) {
    let notebook = Arc::new(Notebook::default());
    bus.subscribe(Arc::clone(&notebook) as Arc<dyn Listener>);
    bus.claim(place("alice", 1)).await;
    let names: Vec<String> = (0..100).map(|i| format!("u{i}")).collect();
    for name in &names {
        bus.publish(ended(name));
    }
    assert_eq!(*notebook.0.lock().expect("not poisoned"), names);
}
