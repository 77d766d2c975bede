//! Every setting of the server. `config.example.toml` documents each one and holds its default:
//! the program reads the defaults from that file, so no other place repeats them.
//!
//! In reading order:
//!
//! - `sections`: the sections of the file as structs;
//! - `environment`: settings from `NEXO_…` variables;
//! - `type_check`: unknown keys and values of the wrong type;
//! - `value_check`, `reference_check`, `identity_check`: values that are out of range, and addresses, files
//!   and keys that cannot be used;
//! - `options`: the settings as options of the crates that use them.

pub(crate) mod environment;
mod identity_check;
mod options;
mod reference_check;
mod sections;
mod type_check;
mod value_check;

use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

pub(crate) use self::sections::{LogSettings, OidcSettings, TokenSettings, TwoPhaseSettings};
pub(crate) use self::value_check::SHARDS_MAX;

use self::sections::{
    AccountSettings, AuthSettings, BackupSettings, ClusterSettings, EmbeddedSettings,
    GatewaySettings, GroupSettings, LimitSettings, MessageSettings, MetricsSettings, MySqlSettings,
    ReceiptSettings, ResendSettings, SessionSettings, SystemSettings,
};
use self::type_check::remove_invalid;
use crate::cli::ConfigArgs;

/// Every setting with its default and its meaning.
pub(crate) const EXAMPLE: &str = include_str!("../../../../config.example.toml");

/// All settings. No field has a default here: those of the example file fill in what is not given.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) listen: String,
    pub(crate) data: String,
    pub(crate) store: String,
    pub(crate) redis: String,
    pub(crate) auth: AuthSettings,
    pub(crate) accounts: AccountSettings,
    pub(crate) session: SessionSettings,
    pub(crate) limits: LimitSettings,
    pub(crate) gateway: GatewaySettings,
    pub(crate) messages: MessageSettings,
    pub(crate) groups: GroupSettings,
    pub(crate) receipts: ReceiptSettings,
    pub(crate) resend: ResendSettings,
    pub(crate) embedded: EmbeddedSettings,
    pub(crate) mysql: MySqlSettings,
    pub(crate) cluster: ClusterSettings,
    pub(crate) two_phase: TwoPhaseSettings,
    pub(crate) backup: BackupSettings,
    pub(crate) metrics: MetricsSettings,
    pub(crate) system: SystemSettings,
    pub(crate) log: LogSettings,
}

/// The defaults of all settings.
pub(crate) fn defaults() -> anyhow::Result<Table> {
    EXAMPLE.parse().context("the built-in defaults cannot be read")
}

impl Config {
    /// Reads the file, then the environment, then the flags; each overrides the one before.
    /// Fails with a list of everything that is wrong, not only the first problem.
    pub(crate) fn load(args: &ConfigArgs) -> anyhow::Result<Self> {
        let defaults = defaults()?;
        let (mut given, mut problems) = match args.config.as_deref().map(read_file) {
            None => (Table::new(), Vec::new()),
            Some(Ok(table)) => (table, Vec::new()),
            Some(Err(problem)) => (Table::new(), vec![problem]),
        };
        problems.extend(remove_invalid(&mut given, &defaults));
        problems.extend(environment::overlay(&mut given, &defaults, std::env::vars()));
        // A variable may hold a number that its setting cannot.
        problems.extend(remove_invalid(&mut given, &defaults));
        let mut config =
            Self::from_table(given, &defaults).context("the settings cannot be read")?;
        let flags = [
            (&args.data, &mut config.data),
            (&args.listen, &mut config.listen),
            (&args.store, &mut config.store),
            (&args.redis, &mut config.redis),
            (&args.log, &mut config.log.format),
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

    /// The given settings, and the defaults of all others.
    pub(crate) fn from_table(given: Table, defaults: &Table) -> Result<Self, toml::de::Error> {
        let mut table = defaults.clone();
        merge(&mut table, given);
        table.try_into()
    }
}

/// Overrides values by those that are given, in sections within sections too.
fn merge(table: &mut Table, given: Table) {
    for (key, value) in given {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(section)), Value::Table(given)) => merge(section, given),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Returns the file's settings, or what is wrong with the file.
fn read_file(path: &Path) -> Result<Table, String> {
    let shown = path.display();
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
    text.parse().map_err(|error| format!("{shown} is not valid TOML: {error}"))
}

#[cfg(test)]
impl Default for Config {
    fn default() -> Self {
        defaults().unwrap().try_into().unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_names_every_setting_with_its_default() {
        let example: Table = EXAMPLE.parse().unwrap();
        assert_eq!(example, Table::try_from(Config::default()).unwrap());
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let given = "data = 'x'\n[session]\npolicy = 'single'\n[auth.token]\nissuer = 'i'";
        let config = Config::from_table(given.parse().unwrap(), &defaults().unwrap()).unwrap();
        let mut expected = Config { data: "x".into(), ..Config::default() };
        expected.session.policy = "single".into();
        expected.auth.token.issuer = "i".into();
        assert_eq!(config, expected);
    }

    #[test]
    fn unknown_settings_are_refused() {
        for bad in ["nonsense = 1", "[auth]\nsecret = 'x'", "[session]\npolicy = 3"] {
            let table: Table = bad.parse().unwrap();
            assert!(Config::from_table(table, &defaults().unwrap()).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_number_has_a_unit_on_the_page_of_operators() {
        let page = include_str!("../../../../docs/operating.md");
        let table = page.split("| ends in | is in |").nth(1).unwrap().split("\n\n").next().unwrap();
        let rows = table.lines().filter_map(|row| row.split('|').nth(1));
        let ends: Vec<&str> = rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
        let mut sections = vec![defaults().unwrap()];
        while let Some(section) = sections.pop() {
            for (name, value) in section {
                let has_unit = ends.iter().any(|end| name.ends_with(end));
                assert!(has_unit || !value.is_integer(), "{name} has no unit in docs/operating.md");
                sections.extend(value.as_table().cloned());
            }
        }
    }

    #[test]
    fn backups_need_a_target_and_the_embedded_store() {
        let problems = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.problems()
        };
        assert_eq!(problems(|it| it.backup.target = "/mnt/backups".into()), Vec::<String>::new());
        assert_eq!(problems(|it| it.backup.target = "s3://bucket/a".into()), Vec::<String>::new());
        assert_eq!(problems(|it| it.backup.every_seconds = 60).len(), 1, "no target");
        assert_eq!(problems(|it| it.backup.target = "https://bucket".into()).len(), 1);
        let elsewhere = problems(|it| {
            it.backup.target = "/mnt/backups".into();
            it.store = "memory".into();
        });
        assert_eq!(elsewhere.len(), 1, "{elsewhere:?}");
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut config = Config::default();
        assert_eq!(config.problems(), Vec::<String>::new());
        config.auth.jwt_secret = "short".into();
        config.session.policy = "any".into();
        config.listen = "nowhere".into();
        config.auth.registration = "invite".into();
        assert_eq!(config.problems().len(), 3);
        config.auth.registration = "maybe".into();
        assert_eq!(config.problems().len(), 4);
    }
}
