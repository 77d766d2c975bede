//! The one timer that all sockets share: it checks every socket twice a second. A timer per socket
//! would cost each idle socket memory.

use std::sync::Arc;
use std::time::Duration;

use nexo_chat::Reason;

use crate::delivery::resync::ResyncCause;
use crate::gateway::Gateway;
use crate::socket::connection::Connection;
use crate::socket::outbox::OutFrame;

const TICK: Duration = Duration::from_millis(500);
/// How often sockets are compared with the store while the bus is down.
const RESYNC_TICKS: u64 = 30;
/// How often two-phase messages are checked that were not resolved in time.
const OVERDUE_TICKS: u64 = 2;
/// How often other nodes are told again which members are online here.
const ONLINE_TICKS: u64 = 20;

/// Checks every socket until the shutdown begins.
pub async fn sweep(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for tick in 1_u64.. {
        tokio::select! {
            _ = ticks.tick() => {
                gateway.fanout.connections.for_each(|connection| check(&gateway, connection));
                #[expect(clippy::cast_precision_loss, reason = "there are fewer connections than 2⁵³")]
                gateway.meters.unauthenticated.set(gateway.admission.unauthenticated() as f64);
            }
            () = gateway.drain_started() => return,
        }
        let delivery = &gateway.delivery;
        if tick.is_multiple_of(OVERDUE_TICKS) && delivery.two_phase.waiters.is_used() {
            delivery.two_phase.check_overdue();
        }
        if tick.is_multiple_of(ONLINE_TICKS) {
            gateway.fanout.subscriptions.republish_online(gateway.chat.clock.ticks());
        }
        // Events of other nodes do not arrive now, so their effects are read from the store.
        if tick.is_multiple_of(RESYNC_TICKS) && gateway.chat.bus.health().is_err() {
            delivery.resync.request(ResyncCause::BusDown);
        }
    }
}

/// Closes a socket that is expired, slow or idle, and pings one that is silent.
fn check(gateway: &Gateway, connection: &Connection) {
    let options = &gateway.options;
    let now = gateway.chat.clock.ticks();
    let outbox_bytes = connection.outbox.bytes();
    if outbox_bytes > 0 {
        #[expect(clippy::cast_precision_loss, reason = "an outbox is small")]
        gateway.meters.outbox_bytes.record(outbox_bytes as f64);
    }
    let full_for = connection.outbox.full_since().map(|since| now.since(since));
    let silent_for = now.since(connection.last_activity());
    if connection.expires_at() <= gateway.chat.clock.now() {
        connection.close(Reason::TokenExpired);
    } else if full_for.is_some_and(|ms| ms >= options.unwritable_close_ms) {
        connection.close(Reason::SlowConsumer);
    } else if silent_for >= options.idle_timeout_ms {
        connection.close(Reason::IdleTimeout);
    } else if silent_for >= options.ping_after_ms && connection.mark_pinged() {
        // Both kinds: a browser answers the WebSocket ping without its page knowing, and some apps
        // know only the ping of their dialect.
        connection.outbox.push(OutFrame::Ping, || now);
        if let Some(ping) = connection.dialect.ping(gateway.chat.clock.now()) {
            connection.outbox.push(ping.into(), || now);
        }
    }
}
