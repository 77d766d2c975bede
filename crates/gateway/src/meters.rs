//! The gateway's metrics. The handles are made once; the hot path only adds.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use nexo_chat::Reason;
use nexo_wire::codes;

use crate::admission::NoPlace;

pub(crate) struct Meters {
    /// Sockets that are open now, authenticated or not.
    pub(crate) connections: Gauge,
    /// Connections that have not authenticated, sampled twice a second.
    pub(crate) unauthenticated: Gauge,
    pub(crate) frames_in: Counter,
    pub(crate) frames_out: Counter,
    /// Pushes put into an outbox.
    pub(crate) pushed: Counter,
    /// Pushes dropped because an outbox was full.
    pub(crate) dropped: Counter,
    pub(crate) acks_saved: Counter,
    pub(crate) acks_accepted: Counter,
    /// Messages that were accepted or previewed and then lost before they were saved.
    pub(crate) expired: Counter,
    /// Messages queued for sockets by resend pages.
    pub(crate) resent: Counter,
    /// Seconds from reading a send to queueing its ACK(saved).
    pub(crate) save_seconds: Histogram,
    /// Seconds from reading a send to queueing its ACK(accepted).
    pub(crate) accept_seconds: Histogram,
    /// Bytes in each outbox that is not empty, sampled twice a second.
    pub(crate) outbox_bytes: Histogram,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            connections: gauge!("nexo_connections"),
            unauthenticated: gauge!("nexo_unauthenticated_connections"),
            frames_in: counter!("nexo_frames_in_total"),
            frames_out: counter!("nexo_frames_out_total"),
            pushed: counter!("nexo_pushes_total", "result" => "queued"),
            dropped: counter!("nexo_pushes_total", "result" => "dropped"),
            acks_saved: counter!("nexo_acks_total", "type" => "saved", "result" => "ok"),
            acks_accepted: counter!("nexo_acks_total", "type" => "accepted", "result" => "ok"),
            expired: counter!("nexo_two_phase_expired_total"),
            resent: counter!("nexo_resent_total"),
            save_seconds: histogram!("nexo_save_seconds"),
            accept_seconds: histogram!("nexo_accept_seconds"),
            outbox_bytes: histogram!("nexo_outbox_bytes"),
        }
    }
}

impl Meters {
    /// Records the duration and the status of an HTTP request.
    pub(crate) fn record_http(route: String, status: u16, elapsed: Duration) {
        histogram!("nexo_http_seconds", "route" => route.clone()).record(elapsed);
        let status = status.to_string();
        counter!("nexo_http_requests_total", "route" => route, "status" => status).increment(1);
    }

    /// Counts a refused request; `via` is `http` or the name of the dialect.
    pub(crate) fn count_refusal(via: &'static str, reason: Reason) {
        let reason = codes::row(reason).typed;
        counter!("nexo_refusals_total", "via" => via, "reason" => reason).increment(1);
    }

    /// Counts a connection that was refused because there was no place for it.
    pub(crate) fn count_no_place(why: NoPlace) {
        let reason = match why {
            NoPlace::Full => "full",
            NoPlace::Address => "address",
        };
        counter!("nexo_connections_refused_total", "reason" => reason).increment(1);
    }

    /// Counts a connection that made room for another before it authenticated.
    pub(crate) fn count_eviction() {
        counter!("nexo_connections_refused_total", "reason" => "evicted").increment(1);
    }

    pub(crate) fn count_session_end(reason: &'static str) {
        counter!("nexo_sessions_ended_total", "reason" => reason).increment(1);
    }
}
