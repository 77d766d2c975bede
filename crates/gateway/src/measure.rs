//! What is counted and timed about sockets. Handles are made once; the hot path only adds.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use nexo_chat::Reason;
use nexo_wire::codes;

/// The gateway's metrics.
pub struct Measures {
    /// Sockets that are authenticated now.
    pub connections: Gauge,
    /// Frames read.
    pub frames_in: Counter,
    /// Frames written.
    pub frames_out: Counter,
    /// Pushes put into an outbox.
    pub pushed: Counter,
    /// Pushes dropped because an outbox was full.
    pub dropped: Counter,
    /// ACK(saved) answers.
    pub acks_saved: Counter,
    /// ACK(accepted) answers.
    pub acks_accepted: Counter,
    /// Messages that were shown or accepted and never saved, because what kept them lost them.
    pub expired: Counter,
    /// Messages sent again.
    pub resent: Counter,
    /// Seconds from reading a send to queueing its ACK(saved).
    pub save_seconds: Histogram,
    /// Seconds from reading a send to queueing its ACK(accepted).
    pub accept_seconds: Histogram,
    /// Bytes waiting in an outbox, of those in which something waits, twice a second.
    pub outbox_bytes: Histogram,
}

impl Default for Measures {
    fn default() -> Self {
        Self {
            connections: gauge!("nexo_connections"),
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

impl Measures {
    /// A request over HTTP: how long it took, and what came of it.
    pub fn answered(route: String, status: u16, elapsed: Duration) {
        histogram!("nexo_http_seconds", "route" => route.clone()).record(elapsed);
        let status = status.to_string();
        counter!("nexo_http_requests_total", "route" => route, "status" => status).increment(1);
    }

    /// Counts something that was refused, by its reason and the way it was asked.
    pub fn refused(via: &'static str, reason: Reason) {
        let reason = codes::row(reason).typed;
        counter!("nexo_refusals_total", "via" => via, "reason" => reason).increment(1);
    }

    /// Counts the end of a session by its reason.
    pub fn ended(reason: &'static str) {
        counter!("nexo_sessions_ended_total", "reason" => reason).increment(1);
    }
}
