//! Indented JSON in which every value that fits on a line is on one line.

use serde_json::Value;

const WIDTH: usize = 160;

pub(super) fn to_string(document: &Value) -> String {
    let mut text = String::new();
    write(document, 0, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value that starts at column `used`.
fn write(value: &Value, depth: usize, used: usize, text: &mut String) {
    let short = value.to_string();
    let is_short = used + short.chars().count() <= WIDTH;
    match value {
        Value::Array(items) if !is_short => {
            let items = items.iter().map(|item| (String::new(), item));
            write_lines(['[', ']'], items, depth, text);
        }
        Value::Object(fields) if !is_short => {
            let fields = fields
                .iter()
                .map(|(name, field)| (format!("{}: ", Value::from(name.as_str())), field));
            write_lines(['{', '}'], fields, depth, text);
        }
        _ => text.push_str(&short),
    }
}

fn write_lines<'a>(
    [open, close]: [char; 2],
    parts: impl Iterator<Item = (String, &'a Value)>,
    depth: usize,
    text: &mut String,
) {
    text.push(open);
    for (index, (name, value)) in parts.enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        let indent = "  ".repeat(depth + 1);
        text.push_str(&indent);
        text.push_str(&name);
        write(value, depth + 1, indent.len() + name.chars().count() + 1, text);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
    text.push(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_the_document() {
        let long = "x".repeat(WIDTH);
        let document = json!({ "a": [1, 2], "b\"": { "long": long, "c": [] }, "d": [long, {}] });
        let text = to_string(&document);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
        assert!(text.contains("  \"a\": [1,2],\n"), "{text}");
        assert_eq!(text.lines().count(), 11, "{text}");
    }
}
