//! Every setting, in one tree. Its page is `config.example.toml`, which a test holds equal.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::cli::Settings;
use crate::cluster_settings::{Cluster, MySql};
use crate::environment;
use crate::group_settings::{Groups, Receipts};
use crate::table_check::take_out_unfit;
use crate::two_phase_settings::TwoPhase;
use crate::{logs, place_problems};

/// The example file: every setting with its default and what it means.
pub(crate) const EXAMPLE: &str = include_str!("../../../config.example.toml");

/// All settings.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) listen: String,
    pub(crate) data: String,
    pub(crate) store: String,
    pub(crate) redis: String,
    pub(crate) auth: Auth,
    pub(crate) session: Session,
    pub(crate) limits: Limits,
    pub(crate) gateway: Gateway,
    pub(crate) messages: Messages,
    pub(crate) groups: Groups,
    pub(crate) receipts: Receipts,
    pub(crate) resend: Resend,
    pub(crate) embedded: Embedded,
    pub(crate) mysql: MySql,
    pub(crate) cluster: Cluster,
    pub(crate) two_phase: TwoPhase,
    pub(crate) metrics: Metrics,
    pub(crate) system: System,
    pub(crate) log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            data: "./data".into(),
            store: "embedded".into(),
            redis: String::new(),
            auth: Auth::default(),
            session: Session::default(),
            limits: Limits::default(),
            gateway: Gateway::default(),
            messages: Messages::default(),
            groups: Groups::default(),
            receipts: Receipts::default(),
            resend: Resend::default(),
            embedded: Embedded::default(),
            mysql: MySql::default(),
            cluster: Cluster::default(),
            two_phase: TwoPhase::default(),
            metrics: Metrics::default(),
            system: System::default(),
            log: Log::default(),
        }
    }
}

/// Tokens and passwords.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Auth {
    pub(crate) registration: String,
    pub(crate) jwt_secret: String,
    pub(crate) access_token_seconds: u64,
    pub(crate) refresh_token_seconds: u64,
    pub(crate) refresh_grace_seconds: u64,
    pub(crate) argon2_memory_kib: u32,
    pub(crate) argon2_passes: u32,
    pub(crate) password_jobs_max: usize,
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            registration: "open".into(),
            jwt_secret: String::new(),
            access_token_seconds: 1_800,
            refresh_token_seconds: 2_592_000,
            refresh_grace_seconds: 60,
            argon2_memory_kib: 19_456,
            argon2_passes: 2,
            password_jobs_max: 2,
        }
    }
}

/// How many devices at once.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Session {
    pub(crate) policy: String,
    pub(crate) connections_max: usize,
}

impl Default for Session {
    fn default() -> Self {
        Self { policy: "multi".into(), connections_max: 16 }
    }
}

/// Sizes and rates.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) frame_bytes: usize,
    pub(crate) text_chars: usize,
    pub(crate) content_bytes: usize,
    pub(crate) extra_entries: usize,
    pub(crate) connection_frames_per_second: u32,
    pub(crate) connection_frames_burst: u32,
    pub(crate) user_sends_per_second: u32,
    pub(crate) user_sends_burst: u32,
    pub(crate) user_requests_per_second: u32,
    pub(crate) user_requests_burst: u32,
    pub(crate) registrations_per_minute: u32,
    pub(crate) connections_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: 131_072,
            text_chars: 4_096,
            content_bytes: 65_536,
            extra_entries: 32,
            connection_frames_per_second: 60,
            connection_frames_burst: 0,
            user_sends_per_second: 30,
            user_sends_burst: 0,
            user_requests_per_second: 50,
            user_requests_burst: 0,
            registrations_per_minute: 600,
            connections_max: 100_000,
        }
    }
}

/// Timers and buffers of sockets.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Gateway {
    pub(crate) auth_timeout_ms: u64,
    pub(crate) header_timeout_ms: u64,
    pub(crate) ping_after_ms: u64,
    pub(crate) idle_timeout_ms: u64,
    pub(crate) outbox_low_bytes: usize,
    pub(crate) outbox_high_bytes: usize,
    pub(crate) unwritable_close_ms: u64,
    pub(crate) write_timeout_ms: u64,
    pub(crate) drain_ms: u64,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) trusted_proxies: Vec<String>,
}

impl Default for Gateway {
    fn default() -> Self {
        Self {
            auth_timeout_ms: 3_000,
            header_timeout_ms: 10_000,
            ping_after_ms: 60_000,
            idle_timeout_ms: 90_000,
            outbox_low_bytes: 262_144,
            outbox_high_bytes: 524_288,
            unwritable_close_ms: 3_000,
            write_timeout_ms: 30_000,
            drain_ms: 10_000,
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
        }
    }
}

/// What may be done to messages.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Messages {
    pub(crate) recall_seconds: u64,
    pub(crate) words_file: String,
}

impl Default for Messages {
    fn default() -> Self {
        Self { recall_seconds: 120, words_file: String::new() }
    }
}

/// Catching up after a time away.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Resend {
    pub(crate) page: usize,
    pub(crate) page_bytes: usize,
}

impl Default for Resend {
    fn default() -> Self {
        Self { page: 200, page_bytes: 1_048_576 }
    }
}

/// The embedded store.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "a setting names its unit")]
pub(crate) struct Embedded {
    pub(crate) cache_mib: u64,
    pub(crate) memtable_mib: u64,
    pub(crate) reserve_mib: u64,
}

impl Default for Embedded {
    fn default() -> Self {
        Self { cache_mib: 256, memtable_mib: 64, reserve_mib: 256 }
    }
}

/// Who may read `/metrics`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Metrics {
    pub(crate) token: String,
    pub(crate) listen: String,
}

/// Who may speak with the system's voice.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct System {
    pub(crate) token: String,
}

/// What is logged and how.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) format: String,
    pub(crate) level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: "text".into(), level: "info".into() }
    }
}

impl Config {
    /// The file, then the environment, then the flags; refuses whatever is not known or not right,
    /// and tells of all of it at once.
    pub(crate) fn load(settings: &Settings) -> anyhow::Result<Self> {
        let defaults = toml::Table::try_from(Self::default()).context("the defaults")?;
        let (mut table, mut problems) = match settings.config.as_deref().map(read_file) {
            None => (toml::Table::new(), Vec::new()),
            Some(Ok(table)) => (table, Vec::new()),
            Some(Err(problem)) => (toml::Table::new(), vec![problem]),
        };
        problems.extend(take_out_unfit(&mut table, &defaults));
        problems.extend(environment::overlay(&mut table, &defaults, std::env::vars()));
        // A variable may hold a number that does not fit.
        problems.extend(take_out_unfit(&mut table, &defaults));
        let mut config: Self = table.try_into().context("the settings cannot be read")?;
        let flags = [
            (&settings.data, &mut config.data),
            (&settings.listen, &mut config.listen),
            (&settings.store, &mut config.store),
            (&settings.redis, &mut config.redis),
            (&settings.log, &mut config.log.format),
        ];
        for (flag, setting) in flags {
            if let Some(value) = flag {
                setting.clone_from(value);
            }
        }
        problems.extend(config.problems());
        match problems.as_slice() {
            [] => Ok(config),
            [problem] => bail!("the settings are not right: {problem}"),
            _ => bail!(
                "the settings are not right, {} problems:\n  - {}",
                problems.len(),
                problems.join("\n  - ")
            ),
        }
    }

    /// Everything that is wrong, at once.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut check = |is_fine: bool, problem: &str| {
            if !is_fine {
                problems.push(problem.to_owned());
            }
        };
        let secret = self.auth.jwt_secret.len();
        check(
            secret == 0 || secret >= nexo_chat::token::SECRET_BYTES_MIN,
            "auth.jwt_secret needs at least 32 bytes (leave it empty to have one made)",
        );
        check(
            self.listen.parse::<SocketAddr>().is_ok(),
            "listen is an address such as 127.0.0.1:8080",
        );
        check(
            self.metrics.listen.is_empty() || self.metrics.listen.parse::<SocketAddr>().is_ok(),
            "metrics.listen is empty or an address such as 127.0.0.1:9100",
        );
        check(
            matches!(self.store.as_str(), "embedded" | "memory")
                || self.store.starts_with("mysql://"),
            "store is `embedded`, `memory`, or mysql://user:password@host:3306/database",
        );
        check(
            matches!(self.session.policy.as_str(), "multi" | "per_platform" | "single"),
            "session.policy is `multi`, `per_platform` or `single`",
        );
        check(
            self.auth.registration != "invite",
            "auth.registration = \"invite\" is not there yet: choose `open` or `closed`",
        );
        check(
            matches!(self.auth.registration.as_str(), "open" | "closed" | "invite"),
            "auth.registration is `open` or `closed`",
        );
        check(
            matches!(self.log.format.as_str(), "text" | "json"),
            "log.format is `text` or `json`",
        );
        check(self.session.connections_max > 0, "session.connections_max is at least 1");
        check(self.limits.connections_max > 0, "limits.connections_max is at least 1");
        check(self.limits.frame_bytes >= 1_024, "limits.frame_bytes is at least 1024");
        check(self.limits.text_chars > 0, "limits.text_chars is at least 1");
        check((1..=10_000).contains(&self.resend.page), "resend.page is 1 to 10000");
        check(
            (1..=4096).contains(&self.embedded.memtable_mib),
            "embedded.memtable_mib is 1 to 4096",
        );
        check(self.auth.access_token_seconds > 0, "auth.access_token_seconds is at least 1");
        check(self.auth.argon2_memory_kib >= 8, "auth.argon2_memory_kib is at least 8");
        check(self.auth.argon2_passes > 0, "auth.argon2_passes is at least 1");
        check(self.auth.password_jobs_max > 0, "auth.password_jobs_max is at least 1");
        check(
            (1..self.gateway.outbox_high_bytes).contains(&self.gateway.outbox_low_bytes),
            "gateway.outbox_low_bytes is at least 1 and below gateway.outbox_high_bytes",
        );
        check(
            (1..=86_400_000).contains(&self.gateway.write_timeout_ms),
            "gateway.write_timeout_ms is 1 to 86400000",
        );
        check(
            self.gateway.ping_after_ms < self.gateway.idle_timeout_ms,
            "gateway.ping_after_ms is below gateway.idle_timeout_ms",
        );
        check(
            self.redis.is_empty() || self.store.starts_with("mysql://"),
            "redis lets nodes that share a database hear each other: it needs store = \"mysql://…\"",
        );
        check(
            self.redis.is_empty() || secret > 0,
            "auth.jwt_secret is given, the same on every node, where redis is used",
        );
        problems.extend(logs::problem(&self.log.level));
        problems.extend(place_problems::of(self));
        problems.extend(self.mysql.problems());
        problems.extend(self.two_phase.problems());
        problems.extend(self.groups.problems());
        problems
    }
}

/// The settings of a file, or why there are none.
fn read_file(path: &Path) -> Result<toml::Table, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    text.parse().map_err(|error| format!("{shown} is not valid TOML: {error}"))
}

/// A burst that was left open is two seconds' worth.
pub(crate) fn burst(burst: u32, per_second: u32) -> u32 {
    if burst == 0 { per_second.saturating_mul(2) } else { burst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_names_every_setting_with_its_default() {
        let example: toml::Table = EXAMPLE.parse().unwrap();
        let default = toml::Table::try_from(Config::default()).unwrap();
        assert_eq!(example, default);
    }

    #[test]
    fn unknown_settings_are_refused() {
        for bad in ["nonsense = 1", "[auth]\nsecret = 'x'", "[session]\npolicy = 3"] {
            let table: toml::Table = bad.parse().unwrap();
            assert!(table.try_into::<Config>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_number_has_a_unit_on_the_page_of_operators() {
        let page = include_str!("../../../docs/operating.md");
        let table = page.split("| ends in | is in |").nth(1).unwrap().split("\n\n").next().unwrap();
        let rows = table.lines().filter_map(|row| row.split('|').nth(1));
        let ends: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        for (section, value) in toml::Table::try_from(Config::default()).unwrap() {
            for (name, _) in value.as_table().into_iter().flatten().filter(|it| it.1.is_integer()) {
                let is_told = ends.iter().any(|end| name.ends_with(end));
                assert!(is_told, "{section}.{name} has no unit in docs/operating.md");
            }
        }
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut config = Config::default();
        assert_eq!(config.problems(), Vec::<String>::new());
        config.auth.jwt_secret = "short".into();
        config.session.policy = "any".into();
        config.listen = "nowhere".into();
        config.auth.registration = "invite".into();
        assert_eq!(config.problems().len(), 4);
        config.auth.registration = "maybe".into();
        assert_eq!(config.problems().len(), 4);
    }
}
