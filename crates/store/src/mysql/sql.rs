//! Statements with lists. Only few sizes of lists are used, so that a connection prepares few
//! statements: lists of keys repeat their last key up to a power of two, lists of rows are split
//! into two, of which one has a multiple of sixteen rows.

use mysql_async::{Params, Value};

pub(crate) const LIST_MAX: usize = 256;
/// Rows come in multiples of this, and the rest.
const CHUNK: usize = 16;

/// A list of `rows` rows of `width` values, as it stands in the statement.
fn list(rows: usize, width: usize) -> String {
    let row = match width {
        1 => "?".to_owned(),
        _ => format!("({})", vec!["?"; width].join(",")),
    };
    vec![row; rows].join(",")
}

/// Statements that select by these keys; `{}` stands for the list. The parameters `before` go in
/// front of it.
pub(crate) fn select_in(
    sql: &str,
    before: &[Value],
    keys: &[Vec<Value>],
) -> impl Iterator<Item = (String, Params)> {
    keys.chunks(LIST_MAX).map(move |some| {
        let size = some.len().next_power_of_two();
        let width = some.first().map_or(1, Vec::len);
        let last = some.last().into_iter().cycle();
        let padded = some.iter().chain(last).take(size);
        let values = before.iter().chain(padded.flatten()).cloned().collect();
        (sql.replace("{}", &format!("({})", list(size, width))), Params::Positional(values))
    })
}

/// Statements that insert these rows; `{}` stands for the list. No row is repeated, since not every
/// statement could take that.
pub(crate) fn insert_rows(sql: &str, rows: Vec<Vec<Value>>) -> Vec<(String, Params)> {
    let mut statements = Vec::new();
    let width = rows.first().map_or(1, Vec::len);
    let mut left = rows.len();
    let mut rows = rows.into_iter();
    while left > 0 {
        let size = match left / CHUNK * CHUNK {
            0 => left,
            size => size.min(LIST_MAX),
        };
        let values: Vec<Value> = rows.by_ref().take(size).flatten().collect();
        statements.push((sql.replace("{}", &wide(size, width)), Params::Positional(values)));
        left -= size;
    }
    statements
}

fn wide(rows: usize, width: usize) -> String {
    vec![format!("({})", vec!["?"; width].join(",")); rows].join(",")
}

/// A vector of values: `values![a, b]`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$(mysql_async::Value::from($value)),*] };
}
pub(crate) use values;

#[cfg(test)]
mod tests {
    use super::*;

    fn values_of(params: &Params) -> Vec<u64> {
        let Params::Positional(values) = params else { panic!("not by position") };
        values.iter().map(|value| mysql_async::from_value(value.clone())).collect()
    }

    #[test]
    fn lists_to_look_for_repeat_their_last_thing() {
        let keys: Vec<Vec<Value>> = (1..=3_u64).map(|key| values![key]).collect();
        let found: Vec<_> = select_in("a IN {}", &[Value::from(9_u64)], &keys).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "a IN (?,?,?,?)");
        assert_eq!(values_of(&found[0].1), [9, 1, 2, 3, 3]);
    }

    #[test]
    fn rows_to_write_are_cut_into_two_pieces() {
        for (count, expect) in
            [(1, &[1][..]), (7, &[7]), (16, &[16]), (50, &[48, 2]), (259, &[256, 3])]
        {
            let rows: Vec<Vec<Value>> = (0..count).map(|n| values![n, n]).collect();
            let pieces = insert_rows("VALUES {}", rows);
            let sizes: Vec<_> =
                pieces.iter().map(|(_, params)| values_of(params).len() / 2).collect();
            assert_eq!(sizes, expect);
            let all: Vec<u64> = pieces.iter().flat_map(|(_, params)| values_of(params)).collect();
            assert_eq!(all, (0..count).flat_map(|n| [n, n]).collect::<Vec<_>>());
        }
        let two = insert_rows("VALUES {}", vec![values![1_u64, 1_u64], values![2_u64, 2_u64]]);
        assert_eq!(two[0].0, "VALUES (?,?),(?,?)");
    }
}
