//! The one task that hears what other nodes say to this one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::aio::PubSubStream;
use redis::{Client, RedisResult};
use tokio::time::{Instant, sleep_until, timeout};

use super::backoff::Backoff;
use super::breaker::no_answer;
use super::heard::{Heard, Turn};
use super::node::Node;
use super::payload::Refusal;

/// Gaps of several senders at about the same time are one loss to those here.
const LOSSES_TOGETHER: Duration = Duration::from_millis(50);
const WARN_EVERY: Duration = Duration::from_mins(1);
/// So many heartbeats unheard mean that the subscription is dead, whatever the socket says.
const HEARTBEATS_MISSED: u32 = 3;

/// The ear's own state.
pub(crate) struct Ear {
    node: Arc<Node>,
    heard: Heard,
    /// When those here are told that they missed something.
    lost_at: Option<Instant>,
    warned_at: Option<Instant>,
}

impl Ear {
    pub(crate) fn new(node: Arc<Node>) -> Self {
        Self { node, heard: Heard::default(), lost_at: None, warned_at: None }
    }

    /// Works until it is stopped.
    pub(crate) async fn work(mut self) {
        let node = Arc::clone(&self.node);
        let mut pause = Backoff::new(node.id());
        // If one node of a cluster is gone, another one may be there.
        for client in node.addresses.subscription.iter().cycle() {
            let why = match self.subscribe(client).await {
                Ok(stream) => {
                    pause.reset();
                    self.heard.excuse_gaps();
                    node.renewal.after_absence(&node.own, || node.breaker.hears(Ok(())));
                    let why = self.listen(stream).await;
                    node.breaker.doubt(); // Perhaps all of Redis is gone.
                    why
                }
                Err(why) => why,
            };
            node.breaker.hears(Err(&why));
            pause.wait().await;
        }
    }

    async fn subscribe(&self, client: &Client) -> Result<PubSubStream, String> {
        let channel = self.node.names.channel(self.node.id());
        let limit = self.node.options.connect_timeout;
        let subscribed = timeout(limit, async {
            let mut pubsub = client.get_async_pubsub().await?;
            pubsub.subscribe(channel).await?;
            RedisResult::Ok(pubsub.into_on_message())
        });
        match subscribed.await {
            Ok(stream) => stream.map_err(|e| e.to_string()),
            Err(_) => Err(no_answer(limit)),
        }
    }

    /// Hears until nothing comes any more, not even this node's own heartbeat; tells why.
    async fn listen(&mut self, mut stream: PubSubStream) -> String {
        let silence = self.node.options.heartbeat * HEARTBEATS_MISSED;
        let mut until = Instant::now() + silence;
        loop {
            let lost_at = self.lost_at;
            tokio::select! {
                message = stream.next() => {
                    let Some(message) = message else { return "the subscription ended".into() };
                    until = Instant::now() + silence;
                    self.hear(message.get_payload_bytes());
                }
                () = sleep_until(lost_at.unwrap_or(until)), if lost_at.is_some() => self.tell_lost(),
                () = sleep_until(until) => return "the subscription is silent".into(),
            }
        }
    }

    fn hear(&mut self, payload: &[u8]) {
        let node = Arc::clone(&self.node);
        let opened = match node.seal.open(node.id(), payload) {
            Ok(opened) if opened.from == node.id() => return, // The heartbeat.
            Ok(opened) => opened,
            Err(why) => return self.refuse(why),
        };
        match self.heard.note(opened.from, opened.number, opened.events.is_empty()) {
            Turn::Next => {}
            Turn::Gap => {
                self.lost_at.get_or_insert_with(|| Instant::now() + LOSSES_TOGETHER);
            }
            Turn::Repeated => return self.refuse(Refusal::Repeated),
        }
        if let Some(listener) = node.listener.get()
            && !opened.events.is_empty()
        {
            listener.hear_all(&opened.events);
        }
    }

    fn tell_lost(&mut self) {
        self.lost_at = None;
        self.node.lost();
    }

    fn refuse(&mut self, why: Refusal) {
        self.node.meters.refused.increment(1);
        let now = Instant::now();
        if self.warned_at.is_none_or(|at| now.duration_since(at) >= WARN_EVERY) {
            self.warned_at = Some(now);
            tracing::warn!(target: "nexo::bus", %why, "a payload was refused");
        }
    }
}
