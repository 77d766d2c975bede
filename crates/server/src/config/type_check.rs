//! Checks the keys and the types of values one by one, so that one run reports every mistake and not
//! only the first.

use toml::{Table, Value};

use super::Config;

/// Removes unknown keys and values of the wrong type, and returns a problem for each. What is left
/// can be deserialized.
pub(crate) fn remove_invalid(given: &mut Table, defaults: &Table) -> Vec<String> {
    remove_invalid_in(&[], given, defaults, defaults)
}

/// The same for the section at `path`, whose defaults are `known`.
fn remove_invalid_in(
    path: &[&str],
    section: &mut Table,
    known: &Table,
    defaults: &Table,
) -> Vec<String> {
    let mut problems = Vec::new();
    section.retain(|key, value| {
        let path: Vec<&str> = path.iter().copied().chain([key]).collect();
        let name = path.join(".");
        let found = match (known.get(key), value) {
            (None, _) => Some(not_a_setting(&name)),
            (Some(Value::Table(known)), Value::Table(section)) => {
                problems.extend(remove_invalid_in(&path, section, known, defaults));
                None
            }
            (Some(Value::Table(_)), _) => Some(format!("{name} is a section: write [{name}]")),
            (Some(default), value) => problem(default, value, &path, defaults),
        };
        let is_valid = found.is_none();
        problems.extend(found);
        is_valid
    });
    problems
}

fn not_a_setting(name: &str) -> String {
    format!("{name} is not a setting (`nexo config default` lists them all)")
}

/// What is wrong with one value. Only numbers are repeated in the text: a string may be a secret.
fn problem(default: &Value, value: &Value, path: &[&str], defaults: &Table) -> Option<String> {
    let name = path.join(".");
    let is_type = match (default, value) {
        (Value::Array(_), Value::Array(items)) => items.iter().all(Value::is_str),
        _ => default.same_type(value),
    };
    if !is_type {
        return Some(format!("{name} needs {}", type_name(default)));
    }
    // Only the field's Rust type knows its range: deserialize this value among the defaults.
    let alone = path.iter().rev().fold(value.clone(), |value, &key| {
        Value::Table(Table::from_iter([(key.to_owned(), value)]))
    });
    let alone = alone.as_table().cloned().unwrap_or_default();
    Config::from_table(alone, defaults).err().map(|_| format!("{name} cannot be {value}"))
}

/// The type of a setting, in words.
pub(crate) fn type_name(default: &Value) -> &'static str {
    match default {
        Value::Integer(_) => "a whole number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "a list of texts in quotes",
        _ => "a text in quotes",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::defaults;

    #[test]
    fn every_mistake_is_named_and_the_rest_can_be_read() {
        let text = "nonsense = 1\nlisten = 8080\nsession = 3\n[limits]\ntext_charts = 5\n\
                    text_chars = 'many'\nuser_sends_per_second = -1\nframe_bytes = 4096\n\
                    [gateway]\nallowed_origins = [1]\n[messages.more]\nx = 1\n\
                    [auth.token]\nissuer = 1\nissuers = 'x'\naudience = 'a'";
        let mut table: Table = text.parse().unwrap();
        let defaults = defaults().unwrap();
        let mut problems = remove_invalid(&mut table, &defaults);
        problems.sort();
        assert_eq!(
            problems,
            [
                "auth.token.issuer needs a text in quotes",
                "auth.token.issuers is not a setting (`nexo config default` lists them all)",
                "gateway.allowed_origins needs a list of texts in quotes",
                "limits.text_chars needs a whole number",
                "limits.text_charts is not a setting (`nexo config default` lists them all)",
                "limits.user_sends_per_second cannot be -1",
                "listen needs a text in quotes",
                "messages.more is not a setting (`nexo config default` lists them all)",
                "nonsense is not a setting (`nexo config default` lists them all)",
                "session is a section: write [session]",
            ]
        );
        let config = Config::from_table(table, &defaults).unwrap();
        assert_eq!((config.limits.frame_bytes, &*config.auth.token.audience), (4096, "a"));
    }
}
