//! Checks values: ranges, choices, and settings that contradict each other.

use std::net::SocketAddr;

use nexo_backup::Target;

use super::Config;
use super::identity_check::identity_problems;
use super::options::strategy;
use super::reference_check::reference_problems;
use crate::logs;

/// Each shard has a worker on one of the nodes; more shards only add workers.
pub(crate) const SHARDS_MAX: usize = 64;

/// Collects the problems of settings that are not right.
#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn require(&mut self, is_right: bool, problem: &str) {
        if !is_right {
            self.0.push(problem.to_owned());
        }
    }
}

impl Config {
    /// Everything that is wrong with the settings.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Problems::default();
        self.check_addresses(&mut problems);
        self.check_choices(&mut problems);
        self.check_ranges(&mut problems);
        self.check_two_phase(&mut problems);
        self.check_backup(&mut problems);
        let mut problems = problems.0;
        problems.extend(logs::level_problem(&self.log.level));
        problems.extend(reference_problems(self));
        problems.extend(identity_problems(self));
        problems
    }

    fn check_addresses(&self, problems: &mut Problems) {
        let is_address = |text: &str| text.parse::<SocketAddr>().is_ok();
        let has_database = self.store.starts_with("mysql://");
        problems.require(is_address(&self.listen), "listen is an address such as 127.0.0.1:8080");
        problems.require(
            self.metrics.listen.is_empty() || is_address(&self.metrics.listen),
            "metrics.listen is empty or an address such as 127.0.0.1:9100",
        );
        problems.require(
            has_database || matches!(self.store.as_str(), "embedded" | "memory"),
            "store is `embedded`, `memory`, or mysql://user:password@host:3306/database",
        );
        problems.require(
            self.redis.is_empty() || has_database,
            "redis connects nodes that share a database: it needs store = \"mysql://…\"",
        );
        problems.require(
            self.redis.is_empty() || !self.auth.jwt_secret.is_empty(),
            "auth.jwt_secret must be set, to the same value on every node, where redis is used",
        );
    }

    fn check_choices(&self, problems: &mut Problems) {
        problems.require(
            matches!(self.session.policy.as_str(), "multi" | "per_platform" | "single"),
            "session.policy is `multi`, `per_platform` or `single`",
        );
        problems.require(
            matches!(self.auth.registration.as_str(), "open" | "closed" | "invite"),
            "auth.registration is `open`, `invite` or `closed`",
        );
        problems.require(
            (1..=1000).contains(&self.accounts.broadcast_per_second),
            "accounts.broadcast_per_second is 1 to 1000",
        );
        problems.require(
            matches!(self.auth.invites_by.as_str(), "operator" | "members"),
            "auth.invites_by is `operator` or `members`",
        );
        problems.require(
            strategy(&self.groups.strategy).is_some(),
            "groups.strategy is `push`, `notify`, `none` or `auto`",
        );
        problems.require(
            matches!(self.log.format.as_str(), "text" | "json"),
            "log.format is `text` or `json`",
        );
    }

    fn check_ranges(&self, problems: &mut Problems) {
        let secret = self.auth.jwt_secret.len();
        problems.require(
            secret == 0 || secret >= nexo_chat::token::SECRET_BYTES_MIN,
            "auth.jwt_secret needs at least 32 bytes (leave it empty to have one generated)",
        );
        let at_least_one = [
            ("session.connections_max", self.session.connections_max > 0),
            ("limits.connections_max", self.limits.connections_max > 0),
            ("limits.text_chars", self.limits.text_chars > 0),
            ("auth.access_token_seconds", self.auth.access_token_seconds > 0),
            ("auth.argon2_passes", self.auth.argon2_passes > 0),
            ("auth.password_jobs_max", self.auth.password_jobs_max > 0),
            ("groups.members_max", self.groups.members_max > 0),
            ("groups.batch_max", self.groups.batch_max > 0),
            ("mysql.committers", self.mysql.committers > 0),
            ("mysql.patience_ms", self.mysql.patience_ms > 0),
            ("mysql.statement_ms", self.mysql.statement_ms > 0),
        ];
        for (setting, is_right) in at_least_one {
            problems.require(is_right, &format!("{setting} is at least 1"));
        }
        problems.require(self.limits.frame_bytes >= 1_024, "limits.frame_bytes is at least 1024");
        problems.require(self.auth.argon2_memory_kib >= 8, "auth.argon2_memory_kib is at least 8");
        problems.require(
            (8..=128).contains(&self.auth.password_min_chars),
            "auth.password_min_chars is 8 to 128",
        );
        problems.require((1..=10_000).contains(&self.resend.page), "resend.page is 1 to 10000");
        problems.require(
            (1..=4096).contains(&self.embedded.memtable_mib),
            "embedded.memtable_mib is 1 to 4096",
        );
        problems.require(
            (1..self.gateway.outbox_high_bytes).contains(&self.gateway.outbox_low_bytes),
            "gateway.outbox_low_bytes is at least 1 and below gateway.outbox_high_bytes",
        );
        problems.require(
            (1..=86_400_000).contains(&self.gateway.write_timeout_ms),
            "gateway.write_timeout_ms is 1 to 86400000",
        );
        problems.require(self.receipts.delay_ms <= 1000, "receipts.delay_ms is 0 to 1000");
        problems.require(
            self.gateway.ping_after_ms < self.gateway.idle_timeout_ms,
            "gateway.ping_after_ms is below gateway.idle_timeout_ms",
        );
        problems.require(
            self.mysql.connections_max >= self.mysql.committers.saturating_add(4),
            "mysql.connections_max is at least mysql.committers + 4",
        );
    }

    fn check_backup(&self, problems: &mut Problems) {
        let backup = &self.backup;
        if backup.target.is_empty() {
            problems.require(
                backup.every_seconds == 0 && backup.archive_log_seconds == 0,
                "backup.every_seconds and backup.archive_log_seconds need a backup.target",
            );
            return;
        }
        problems.require(
            self.store == "embedded",
            "backup.target is for the embedded store: back up a database with its own tools",
        );
        problems.require(
            Target::parse(&backup.target).is_ok(),
            "backup.target is a folder or s3://bucket/prefix",
        );
        problems.require(
            backup.s3_access_key_id.is_empty() == backup.s3_secret_access_key.is_empty(),
            "backup.s3_access_key_id and backup.s3_secret_access_key belong together",
        );
        problems.require(backup.keep_days <= 36_500, "backup.keep_days is at most 36500");
    }

    fn check_two_phase(&self, problems: &mut Problems) {
        let two_phase = &self.two_phase;
        problems
            .require((1..=SHARDS_MAX).contains(&two_phase.shards), "two_phase.shards is 1 to 64");
        problems.require(
            (1..=5_000).contains(&two_phase.batch_size),
            "two_phase.batch_size is 1 to 5000",
        );
        problems
            .require((1..=5_000).contains(&two_phase.block_ms), "two_phase.block_ms is 1 to 5000");
        problems.require(
            (two_phase.shards..=200_000).contains(&two_phase.backlog_max),
            "two_phase.backlog_max is two_phase.shards to 200000",
        );
        problems.require(two_phase.tries_max > 0, "two_phase.tries_max is at least 1");
        problems.require(
            (500..=60_000).contains(&two_phase.lease_ms),
            "two_phase.lease_ms is 500 to 60000",
        );
        problems.require(two_phase.preview_seconds > 0, "two_phase.preview_seconds is at least 1");
    }
}
