//! Settings from the environment: `NEXO_SESSION__POLICY=single` is `session.policy`, and a secret
//! may also be given as the name of a file: `NEXO_AUTH__JWT_SECRET_FILE`.

use anyhow::{Context, bail};
use toml::{Table, Value};

use crate::config::Config;

const PREFIX: &str = "NEXO_";
const SECRETS: &[&str] = &["auth.jwt_secret", "metrics.token", "system.token", "store", "redis"];

/// Lays the `NEXO_…` variables over a table. A name that is no setting is an error.
pub(crate) fn overlay(
    table: &mut Table,
    variables: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<()> {
    let defaults = Table::try_from(Config::default()).context("defaults")?;
    for (name, text) in variables {
        let Some(path) = name.strip_prefix(PREFIX) else { continue };
        let mut path = path.to_lowercase().replace("__", ".");
        let mut text = text;
        if let Some(secret) = path.strip_suffix("_file").filter(|path| SECRETS.contains(path)) {
            text = std::fs::read_to_string(&text)
                .with_context(|| format!("{name} names {text}, which cannot be read"))?;
            text.truncate(text.trim_end().len());
            path = secret.to_owned();
        }
        let value = like(find(&defaults, &path), &text)
            .with_context(|| format!("the environment variable {name}"))?;
        put(table, &path, value)?;
    }
    Ok(())
}

fn find<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        Some((section, rest)) => find(table.get(section)?.as_table()?, rest),
        None => table.get(path),
    }
}

/// Reads text as the kind of value the default is.
fn like(default: Option<&Value>, text: &str) -> anyhow::Result<Value> {
    Ok(match default {
        Some(Value::String(_)) => Value::String(text.to_owned()),
        Some(Value::Integer(_)) => {
            Value::Integer(text.trim().parse().context("needs a whole number")?)
        }
        Some(Value::Boolean(_)) => {
            Value::Boolean(text.trim().parse().context("needs true or false")?)
        }
        Some(Value::Array(_)) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Value::Array(parts.map(|part| Value::String(part.to_owned())).collect())
        }
        Some(_) | None => bail!("is not a setting (`nexo config default` lists them all)"),
    })
}

fn put(table: &mut Table, path: &str, value: Value) -> anyhow::Result<()> {
    let Some((section, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return Ok(());
    };
    let inner = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    let Some(inner) = inner.as_table_mut() else { bail!("`{section}` is not a section") };
    put(inner, rest, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlaid(variables: &[(&str, &str)]) -> anyhow::Result<Config> {
        let mut table = Table::new();
        let owned = variables.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        overlay(&mut table, owned)?;
        Ok(table.try_into()?)
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
        assert!(overlaid(&[("NEXO_LISTEN_FILE", path)]).is_err(), "only secrets");
    }

    #[test]
    fn what_is_no_setting_is_an_error() {
        for bad in ["NEXO_NONSENSE", "NEXO_AUTH", "NEXO_AUTH__SECRET", "NEXO_AUTH__JWT_SECRET__X"] {
            let error = overlaid(&[(bad, "1")]).unwrap_err();
            assert!(format!("{error:#}").contains(bad), "{error:#}");
        }
        assert!(overlaid(&[("NEXO_LIMITS__TEXT_CHARS", "many")]).is_err());
    }
}
