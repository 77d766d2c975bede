//! The clockwork all sockets share. One look at everybody twice a second, instead of timers for
//! each: an idle socket costs nothing else.

use std::sync::Arc;
use std::time::Duration;

use nexo_chat::Reason;

use crate::connection::Connection;
use crate::gateway::Gateway;
use crate::outbox::Frame;
use crate::relearn::Why;

const EVERY: Duration = Duration::from_millis(500);
/// While other nodes cannot be heard, one looks what they did this often.
const SILENCE_TICKS: u64 = 30;

/// Messages of which nobody heard whether they were saved are looked for this often.
const UNSETTLED_TICKS: u64 = 2;

/// Other nodes are told this often who hears which group here, beside when it changes.
const ONLINE_TICKS: u64 = 20;

/// Looks at every socket until the gateway goes down.
pub async fn sweep(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for tick in 1_u64.. {
        tokio::select! {
            _ = ticks.tick() => gateway.roster.each(|connection| look(&gateway, connection)),
            () = gateway.drained() => return,
        }
        if tick.is_multiple_of(UNSETTLED_TICKS) && gateway.unsettled.is_used() {
            gateway.delivery.look_for_unsettled();
        }
        if tick.is_multiple_of(ONLINE_TICKS) {
            gateway.groups.tell_online(gateway.chat.clock.ticks());
        }
        // Ends and messages of other nodes are not heard now, so they are looked for.
        if tick.is_multiple_of(SILENCE_TICKS) && gateway.chat.bus.health().is_err() {
            gateway.delivery.look_again(Why::Silence);
        }
    }
}

fn look(gateway: &Gateway, connection: &Connection) {
    let options = &gateway.options;
    let now = gateway.chat.clock.ticks();
    let waiting = connection.outbox.bytes();
    if waiting > 0 {
        #[expect(clippy::cast_precision_loss, reason = "an outbox is small")]
        gateway.measures.outbox_bytes.record(waiting as f64);
    }
    let full_for = connection.outbox.full_since().map(|since| now.since(since));
    let silent_for = now.since(connection.heard_at());
    if connection.expires_at() <= gateway.chat.clock.now() {
        connection.end(Reason::TokenExpired);
    } else if full_for.is_some_and(|ms| ms >= options.unwritable_close_ms) {
        connection.end(Reason::SlowConsumer);
    } else if silent_for >= options.idle_timeout_ms {
        connection.end(Reason::IdleTimeout);
    } else if silent_for >= options.ping_after_ms && connection.should_ping() {
        // Browsers answer the one without their page knowing, apps may know only the other.
        connection.outbox.push(Frame::Ping, now);
        if let Some(ping) = connection.dialect.ping(gateway.chat.clock.now()) {
            connection.outbox.push(ping.into(), now);
        }
    }
}
