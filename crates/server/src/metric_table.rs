//! Every metric with its kind and meaning: the `# HELP` lines of `/metrics` come from here, and a test
//! compares the table in `docs/operating.md`.

use metrics::{describe_counter, describe_gauge, describe_histogram};

use self::MetricKind::{Counter, Gauge, Histogram};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

/// The metrics that are recorded as events happen.
pub(crate) const RECORDED: &[(MetricKind, &str, &str)] = &[
    (Gauge, "nexo_connections", "Open WebSockets, those that have not signed in yet included"),
    (Gauge, "nexo_unauthenticated_connections", "Open connections that have not signed in"),
    (
        Counter,
        "nexo_connections_refused_total",
        "Connections without a place, by reason: full, address, or evicted by a newer one",
    ),
    (
        Counter,
        "nexo_sign_in_failures_total",
        "Sign-ins, password changes and resets that failed, by what was tried and by reason",
    ),
    (Counter, "nexo_frames_in_total", "Frames read from WebSockets"),
    (Counter, "nexo_frames_out_total", "Frames written to WebSockets"),
    (
        Counter,
        "nexo_pushes_total",
        "Pushes to sockets, by result: queued, or dropped by a full outbox",
    ),
    (
        Counter,
        "nexo_acks_total",
        "Acknowledgements by type (saved, accepted, delivered, read, revoked) and result",
    ),
    (Counter, "nexo_resent_total", "Messages sent again after a time away or a full outbox"),
    (Counter, "nexo_refusals_total", "Refusals by reason and by protocol: http or a dialect"),
    (Counter, "nexo_panics_total", "Panics: bugs of the server that ended a request or a socket"),
    (Counter, "nexo_sessions_ended_total", "WebSockets that ended, by reason"),
    (Histogram, "nexo_save_seconds", "Seconds from reading a send to queueing its ACK saved"),
    (Histogram, "nexo_accept_seconds", "Seconds from reading a send to queueing its ACK accepted"),
    (
        Histogram,
        "nexo_saved_to_delivered_seconds",
        "Seconds from a message being saved to its delivery being acknowledged, by chat_type and the newest of each ACK",
    ),
    (
        Histogram,
        "nexo_delivered_to_read_seconds",
        "Seconds from the delivery of a message to its reading, both acknowledged on this node, by chat_type and the newest of each ACK",
    ),
    (
        Histogram,
        "nexo_outbox_bytes",
        "Bytes waiting in outboxes that are not empty, looked at twice a second",
    ),
    (Histogram, "nexo_http_seconds", "Seconds a request over HTTP took, by route"),
    (Counter, "nexo_http_requests_total", "Requests over HTTP by route and status"),
    (Histogram, "nexo_store_commit_seconds", "Seconds until a batch of messages was durable"),
    (Histogram, "nexo_store_batch_messages", "New messages per batch"),
    (Counter, "nexo_store_saved_total", "Messages stored"),
    (Counter, "nexo_store_duplicates_total", "Sends that were duplicates of stored messages"),
    (Gauge, "nexo_store_queue", "Writes that wait for the store"),
    (Gauge, "nexo_store_damaged_places", "Places of the stored data that were found damaged"),
    (Counter, "nexo_store_damaged_reads_total", "Reads that met damaged data"),
    (
        Gauge,
        "nexo_backup_last_success_timestamp_seconds",
        "The moment whose data the newest backup has, in seconds since 1970",
    ),
    (Gauge, "nexo_backup_duration_seconds", "Seconds the newest backup took"),
    (Gauge, "nexo_backup_written_bytes", "Bytes the newest backup had to write"),
    (
        Counter,
        "nexo_backup_failures_total",
        "Backups and their parts that failed, by kind: backup, log, prune, and damage of the data folder",
    ),
    (Gauge, "nexo_bus_up", "1 while this node can publish to other nodes and receive from them"),
    (Counter, "nexo_bus_published_total", "Events published to other nodes, once per node"),
    (Counter, "nexo_bus_dropped_total", "Events that other nodes may not have received"),
    (Counter, "nexo_bus_refused_total", "Payloads from Redis that failed authentication"),
    (Counter, "nexo_bus_lost_total", "Times that this node may have missed events of other nodes"),
    (Histogram, "nexo_bus_payload_events", "Events per payload to another node"),
    (Counter, "nexo_two_phase_accepted_total", "Messages accepted before they were saved"),
    (
        Counter,
        "nexo_two_phase_fallbacks_total",
        "Messages saved the ordinary way because the log was away",
    ),
    (
        Counter,
        "nexo_two_phase_failures_total",
        "Steps that failed and were tried again, by kind: publish, save, deliver",
    ),
    (Counter, "nexo_two_phase_dup_db_total", "Accepted messages that were found saved"),
    (
        Counter,
        "nexo_two_phase_refused_total",
        "Accepted messages that were refused when they were to be saved",
    ),
    (
        Counter,
        "nexo_two_phase_dead_total",
        "Messages moved to the dead letters because they could not be saved",
    ),
    (
        Counter,
        "nexo_two_phase_rescued_total",
        "Messages saved from memory because the log had lost them",
    ),
    (
        Counter,
        "nexo_two_phase_expired_total",
        "Messages that were previewed or accepted and never saved",
    ),
    (Histogram, "nexo_two_phase_save_lag_seconds", "Seconds from being accepted to being saved"),
    (Gauge, "nexo_two_phase_stream_length", "Messages in a shard of the log, by shard"),
    (
        Gauge,
        "nexo_two_phase_pending",
        "Messages of a shard that a worker has taken and not finished, by shard",
    ),
];

/// Registers the help text of each metric.
pub(crate) fn describe() {
    for (kind, name, help) in RECORDED {
        match kind {
            Counter => describe_counter!(*name, *help),
            Gauge => describe_gauge!(*name, *help),
            Histogram => describe_histogram!(*name, *help),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::process_metrics::SAMPLED;

    #[test]
    fn the_page_of_operators_names_every_metric_and_no_other() {
        let page = include_str!("../../../docs/operating.md");
        let rows = page
            .lines()
            .filter(|line| line.starts_with("| `nexo_") || line.starts_with("| `process_"));
        let first = rows.filter_map(|row| row.split('|').nth(1));
        let named: Vec<&str> = first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        let unique: BTreeSet<&str> = named.iter().copied().collect();
        assert_eq!(unique.len(), named.len(), "each has one row");
        let counted = RECORDED.iter().map(|(_, name, _)| *name);
        let known: BTreeSet<&str> =
            counted.chain(SAMPLED.iter().map(|(_, name, _)| *name)).collect();
        assert_eq!(unique, known);
    }

    #[test]
    fn a_name_says_what_is_counted() {
        for (kind, name, help) in RECORDED.iter().chain(SAMPLED) {
            assert_eq!(*kind == Counter, name.ends_with("_total"), "{name}");
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}: {help}");
        }
    }
}
