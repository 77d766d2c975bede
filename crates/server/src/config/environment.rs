//! Settings from the environment: `NEXO_SESSION__POLICY=single` sets `session.policy`. A secret can
//! also be read from a file: `NEXO_AUTH__JWT_SECRET_FILE` names it.

use std::path::PathBuf;

use toml::{Table, Value};

use super::type_check::type_name;

const PREFIX: &str = "NEXO_";
const SECRETS: &[&str] = &[
    "auth.jwt_secret",
    "auth.oidc.client_secret",
    "auth.token.secret",
    "backup.s3_secret_access_key",
    "metrics.token",
    "system.token",
    "store",
    "redis",
];

/// Overrides settings in `given` with the `NEXO_…` variables. Returns a problem for each variable that
/// is no setting, has a value of the wrong type, or names a file that cannot be read.
pub(crate) fn overlay(
    given: &mut Table,
    defaults: &Table,
    variables: impl Iterator<Item = (String, String)>,
) -> Vec<String> {
    let set = |(name, text): (String, String)| {
        let path = name.strip_prefix(PREFIX)?;
        set_one(given, defaults, path, text).err().map(|problem| format!("{name} {problem}"))
    };
    variables.filter_map(set).collect()
}

/// The files that variables name for secrets.
pub(crate) fn secret_files(variables: impl Iterator<Item = (String, String)>) -> Vec<PathBuf> {
    let named = variables.filter_map(|(name, file)| {
        let path = name.strip_prefix(PREFIX)?.to_lowercase().replace("__", ".");
        path.strip_suffix("_file").filter(|path| SECRETS.contains(path))?;
        Some(PathBuf::from(file))
    });
    named.collect()
}

fn set_one(
    given: &mut Table,
    defaults: &Table,
    path: &str,
    mut text: String,
) -> Result<(), String> {
    let mut path = path.to_lowercase().replace("__", ".");
    if let Some(secret) = path.strip_suffix("_file").filter(|path| SECRETS.contains(path)) {
        text = std::fs::read_to_string(&text)
            .map_err(|error| format!("names {text}, which cannot be read: {error}"))?;
        text.truncate(text.trim_end().len());
        path = secret.to_owned();
    }
    let value = parse_as(find(defaults, &path), &text)?;
    insert(given, &path, value)
}

fn find<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((section, rest)) => find(table.get(section)?.as_table()?, rest),
        None => table.get(path),
    }
}

/// Parses text as a value of the default's type.
fn parse_as(default: Option<&Value>, text: &str) -> Result<Value, String> {
    let Some(default) = default.filter(|default| !default.is_table()) else {
        return Err("is not a setting (`nexo config default` lists them all)".to_owned());
    };
    let value = match default {
        Value::Integer(_) => text.trim().parse().ok().map(Value::Integer),
        Value::Boolean(_) => text.trim().parse().ok().map(Value::Boolean),
        Value::Array(_) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Some(Value::Array(parts.map(|part| Value::String(part.to_owned())).collect()))
        }
        _ => Some(Value::String(text.to_owned())),
    };
    value.ok_or_else(|| format!("needs {}", type_name(default)))
}

fn insert(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let Some((section, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    let Some(inner) = inner.as_table_mut() else {
        return Err(format!("belongs to `{section}`, which the file does not use as a section"));
    };
    insert(inner, rest, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, defaults};

    fn overlaid(variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let mut table = Table::new();
        let defaults = defaults().unwrap();
        let owned = variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let problems = overlay(&mut table, &defaults, owned);
        if problems.is_empty() {
            Ok(Config::from_table(table, &defaults).unwrap())
        } else {
            Err(problems)
        }
    }

    #[test]
    fn values_are_read_as_their_setting_is() {
        let config = overlaid(&[
            ("NEXO_SESSION__POLICY", "single"),
            ("NEXO_LIMITS__USER_SENDS_PER_SECOND", "7"),
            ("NEXO_AUTH__JWT_SECRET", "12345678901234567890123456789012"),
            ("NEXO_GATEWAY__ALLOWED_ORIGINS", "https://a.example, https://b.example"),
            ("HOME", "/elsewhere"),
        ])
        .unwrap();
        assert_eq!(config.session.policy, "single");
        assert_eq!(config.limits.user_sends_per_second, 7);
        assert_eq!(config.auth.jwt_secret, "12345678901234567890123456789012");
        assert_eq!(config.gateway.allowed_origins, ["https://a.example", "https://b.example"]);
    }

    #[test]
    fn a_secret_may_be_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "from a file, long enough to be one\n").unwrap();
        let path = file.path().to_str().unwrap();
        let config = overlaid(&[("NEXO_AUTH__JWT_SECRET_FILE", path)]).unwrap();
        assert_eq!(config.auth.jwt_secret, "from a file, long enough to be one");
        let config = overlaid(&[("NEXO_BACKUP__S3_SECRET_ACCESS_KEY_FILE", path)]).unwrap();
        assert!(!config.backup.s3_secret_access_key.is_empty());
        let config = overlaid(&[("NEXO_AUTH__TOKEN__SECRET_FILE", path)]).unwrap();
        assert!(!config.auth.token.secret.is_empty());
        assert_eq!(config.auth.token.user_claim, "sub", "the others of its section stay");
        assert!(overlaid(&[("NEXO_LISTEN_FILE", path)]).is_err(), "only secrets");
    }

    #[test]
    fn what_is_no_setting_is_an_error() {
        for bad in ["NEXO_NONSENSE", "NEXO_AUTH", "NEXO_AUTH__SECRET", "NEXO_AUTH__JWT_SECRET__X"] {
            let problems = overlaid(&[(bad, "1")]).unwrap_err();
            assert!(problems[0].starts_with(&format!("{bad} is not a setting")), "{problems:?}");
        }
        let both = [("NEXO_LIMITS__TEXT_CHARS", "many"), ("NEXO_STORE_FILE", "/nowhere/at/all")];
        let problems = overlaid(&both).unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(problems[0], "NEXO_LIMITS__TEXT_CHARS needs a whole number");
        assert!(problems[1].starts_with("NEXO_STORE_FILE names /nowhere/at/all"), "{problems:?}");
    }
}
