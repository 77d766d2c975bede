//! Keys and kinds of values of a settings table, looked at one by one, so that every mistake is told
//! at once and not only the first.

use toml::{Table, Value};

use crate::config::Config;

/// Takes out what is no setting or has a value of the wrong kind, and says so of each. What is left
/// can be read.
pub(crate) fn take_out_unfit(table: &mut Table, defaults: &Table) -> Vec<String> {
    let mut problems = Vec::new();
    let mut unfit = Vec::new();
    for (key, value) in &mut *table {
        match (defaults.get(key), value) {
            (None, _) => problems.push(not_a_setting(key)),
            (Some(Value::Table(inner)), Value::Table(section)) => {
                problems.extend(section_problems(key, section, inner));
                continue;
            }
            (Some(Value::Table(_)), _) => {
                problems.push(format!("{key} is a section: write [{key}]"));
            }
            (Some(default), value) => match problem(default, value, &[key]) {
                Some(problem) => problems.push(problem),
                None => continue,
            },
        }
        unfit.push(key.clone());
    }
    for key in unfit {
        table.remove(&key);
    }
    problems
}

fn section_problems(name: &str, section: &mut Table, defaults: &Table) -> Vec<String> {
    let mut problems = Vec::new();
    section.retain(|key, value| {
        let found = match defaults.get(key) {
            None => Some(not_a_setting(&format!("{name}.{key}"))),
            Some(default) => problem(default, value, &[name, key]),
        };
        let fits = found.is_none();
        problems.extend(found);
        fits
    });
    problems
}

fn not_a_setting(name: &str) -> String {
    format!("{name} is not a setting (`nexo config default` lists them all)")
}

/// What is wrong with one value. It is not repeated unless it is a number: it may be a secret.
fn problem(default: &Value, value: &Value, path: &[&str]) -> Option<String> {
    let name = path.join(".");
    let is_kind = match (default, value) {
        (Value::Array(_), Value::Array(items)) => items.iter().all(Value::is_str),
        _ => default.same_type(value),
    };
    if !is_kind {
        return Some(format!("{name} needs {}", kind(default)));
    }
    // Whether a number fits only the field itself knows.
    let alone = path.iter().rev().fold(value.clone(), |value, &key| {
        Value::Table(Table::from_iter([(key.to_owned(), value)]))
    });
    alone.try_into::<Config>().err().map(|_| format!("{name} cannot be {value}"))
}

/// What a setting wants, in words.
pub(crate) fn kind(default: &Value) -> &'static str {
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

    #[test]
    fn every_mistake_is_named_and_the_rest_can_be_read() {
        let text = "nonsense = 1\nlisten = 8080\nauth = 3\n[limits]\ntext_charts = 5\n\
                    text_chars = 'many'\nuser_sends_per_second = -1\nframe_bytes = 4096\n\
                    [gateway]\nallowed_origins = [1]\n[messages.more]\nx = 1";
        let mut table: Table = text.parse().unwrap();
        let defaults = Table::try_from(Config::default()).unwrap();
        let mut problems = take_out_unfit(&mut table, &defaults);
        problems.sort();
        assert_eq!(
            problems,
            [
                "auth is a section: write [auth]",
                "gateway.allowed_origins needs a list of texts in quotes",
                "limits.text_chars needs a whole number",
                "limits.text_charts is not a setting (`nexo config default` lists them all)",
                "limits.user_sends_per_second cannot be -1",
                "listen needs a text in quotes",
                "messages.more is not a setting (`nexo config default` lists them all)",
                "nonsense is not a setting (`nexo config default` lists them all)",
            ]
        );
        assert_eq!(table.try_into::<Config>().unwrap().limits.frame_bytes, 4096);
    }
}
