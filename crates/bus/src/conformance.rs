//! The promises of every bus, as test cases that run on each engine.

use std::sync::{Arc, Mutex};

use nexo_chat::bus::{Bus, Listener, Registration};
use nexo_chat::event::{Event, Logins};
use nexo_chat::ids::{ConnectionId, LoginId, Platform, UserId};
use nexo_chat::{Boxed, Reason};

/// A promise and the code that tries to break it.
pub struct Case {
    pub name: &'static str,
    /// Panics if the bus breaks the promise.
    pub run: fn(Arc<dyn Bus>) -> Boxed<'static, ()>,
}

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

fn registration(id: &str, connection: u64) -> Registration {
    Registration {
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
    assert_eq!(bus.register(registration("alice", 1)).await, []);
    assert_eq!(bus.register(registration("alice", 2)).await, [registration("alice", 1)]);
    assert_eq!(bus.register(registration("bob", 3)).await, []);
    assert_eq!(
        bus.registrations(&user("alice")).await,
        [registration("alice", 1), registration("alice", 2)]
    );
}

async fn releases(bus: Arc<dyn Bus>) {
    bus.register(registration("alice", 1)).await;
    bus.register(registration("alice", 2)).await;
    bus.unregister(&user("alice"), ConnectionId(1));
    bus.unregister(&user("alice"), ConnectionId(1));
    bus.unregister(&user("carol"), ConnectionId(9));
    assert_eq!(bus.registrations(&user("alice")).await, [registration("alice", 2)]);
    bus.unregister(&user("alice"), ConnectionId(2));
    assert_eq!(bus.registrations(&user("alice")).await, []);
}

#[derive(Default)]
struct RecordingListener(Mutex<Vec<String>>);

impl Listener for RecordingListener {
    fn on_event(&self, event: &Event) {
        if let Event::Ended { user, .. } = event {
            self.0.lock().expect("not poisoned").push(user.to_string());
        }
    }
}

async fn order(bus: Arc<dyn Bus>) {
    let received = Arc::new(RecordingListener::default());
    bus.set_listener(Arc::clone(&received) as Arc<dyn Listener>);
    bus.register(registration("alice", 1)).await;
    let names: Vec<String> = (0..100).map(|i| format!("u{i}")).collect();
    for name in &names {
        bus.publish(ended(name));
    }
    assert_eq!(*received.0.lock().expect("not poisoned"), names);
}
