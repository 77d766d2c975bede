//! The task that receives what other nodes publish to this one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use nexo_redis_link::{Backoff, answer_within};
use redis::aio::PubSubStream;
use redis::{Client, RedisResult};
use tokio::time::{Instant, sleep_until};

use super::node::BusNode;
use super::sequence_check::{SequenceCheck, SequenceOutcome};

/// Waits a moment before a loss is reported: gaps of several senders at about the same time are one
/// loss.
const LOSS_DELAY: Duration = Duration::from_millis(50);
const WARN_EVERY: Duration = Duration::from_mins(1);
/// After so many heartbeats that did not come back the subscription counts as dead, even if the
/// socket is open.
const HEARTBEATS_MISSED: u32 = 3;

pub(crate) struct Subscriber {
    node: Arc<BusNode>,
    sequences: SequenceCheck,
    /// When the listener is told that events were lost.
    report_loss_at: Option<Instant>,
    warned_at: Option<Instant>,
}

impl Subscriber {
    pub(crate) fn new(node: Arc<BusNode>) -> Self {
        Self { node, sequences: SequenceCheck::default(), report_loss_at: None, warned_at: None }
    }

    /// Runs until it is aborted.
    pub(crate) async fn run(mut self) {
        let node = Arc::clone(&self.node);
        let mut pause = Backoff::new(node.id());
        // Tries one node of a cluster after the other: some may be down.
        for client in node.addresses.subscription.iter().cycle() {
            let why = match self.subscribe(client).await {
                Ok(stream) => {
                    pause.reset();
                    self.sequences.ignore_next_gaps();
                    node.route_refresh.request_after_absence(&node.local_routes, || {
                        node.breaker.set_subscription(Ok(()));
                    });
                    let why = self.listen(stream).await;
                    node.breaker.request_check(); // All of Redis may be down.
                    why
                }
                Err(why) => why,
            };
            node.breaker.set_subscription(Err(&why));
            pause.wait().await;
        }
    }

    async fn subscribe(&self, client: &Client) -> Result<PubSubStream, String> {
        let channel = self.node.keys.channel(self.node.id());
        let limit = self.node.options.redis.connect_timeout;
        let subscribed = answer_within(limit, async {
            let mut pubsub = client.get_async_pubsub().await?;
            pubsub.subscribe(channel).await?;
            RedisResult::Ok(pubsub.into_on_message())
        });
        subscribed.await
    }

    /// Receives payloads until the subscription ends, or is silent although this node's own
    /// heartbeats should come. Returns the reason.
    async fn listen(&mut self, mut stream: PubSubStream) -> String {
        let silence = self.node.options.heartbeat * HEARTBEATS_MISSED;
        let mut until = Instant::now() + silence;
        loop {
            let lost_at = self.report_loss_at;
            tokio::select! {
                message = stream.next() => {
                    let Some(message) = message else { return "the subscription ended".into() };
                    until = Instant::now() + silence;
                    self.receive(message.get_payload_bytes());
                }
                () = sleep_until(lost_at.unwrap_or(until)), if lost_at.is_some() => self.report_loss(),
                () = sleep_until(until) => return "the subscription is silent".into(),
            }
        }
    }

    fn receive(&mut self, payload: &[u8]) {
        let node = Arc::clone(&self.node);
        let payload = match node.codec.decode(node.id(), payload) {
            Ok(payload) if payload.from == node.id() => return, // The heartbeat.
            Ok(payload) => payload,
            Err(why) => return self.refuse(&why.to_string()),
        };
        match self.sequences.check(payload.from, payload.number, payload.events.is_empty()) {
            SequenceOutcome::Next => {}
            SequenceOutcome::Gap => {
                self.report_loss_at.get_or_insert_with(|| Instant::now() + LOSS_DELAY);
            }
            SequenceOutcome::Repeated => return self.refuse("it was received before"),
        }
        if let Some(listener) = node.listener.get()
            && !payload.events.is_empty()
        {
            listener.on_events(&payload.events);
        }
    }

    fn report_loss(&mut self) {
        self.report_loss_at = None;
        self.node.report_loss();
    }

    fn refuse(&mut self, why: &str) {
        self.node.meters.refused.increment(1);
        let now = Instant::now();
        if self.warned_at.is_none_or(|at| now.duration_since(at) >= WARN_EVERY) {
            self.warned_at = Some(now);
            tracing::warn!(target: "nexo::bus", why, "a payload was refused");
        }
    }
}
