//! What must be so whatever the page says: a change that breaks one of these is a hole, not a change of the page.

use serde_json::Value;

use crate::callers::{CALLERS, Caller};
use crate::{Cell, Matrix, Row};

/// Rows that succeed for no caller: private conversations cannot be deleted, and a group by invitation not be joined.
const NEVER_DONE: [&str; 2] =
    ["POST /conversation/delete private chat", "POST /group/join group by invitation"];

pub(crate) fn assert_hold(document: &Value, matrix: &Matrix) {
    let mut broken = Vec::new();
    for (row, cells) in matrix {
        let operation = &document["paths"][row.path()][row.method().to_lowercase()];
        let scheme = operation["security"][0].as_object().and_then(|it| it.keys().next());
        let scheme = scheme.map(String::as_str);
        let name = format!("{} {}", row.operation, row.about);
        for (caller, cell) in CALLERS.iter().zip(cells) {
            for rule in [of_any(row, *caller, cell), of_scheme(row, scheme, *caller, cell)] {
                if let Err(rule) = rule {
                    broken.push(format!("{name} by {caller:?}: {}: {rule}", cell.result));
                }
            }
        }
        if !NEVER_DONE.contains(&&*name) && !cells.iter().any(Cell::is_done) {
            broken.push(format!("{name}: the request succeeds for no caller"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let cells = || matrix.iter().flat_map(|(_, cells)| cells);
    assert!(cells().any(|cell| cell.shows_private_chat), "no cell shows the private chat");
    assert!(cells().any(|cell| cell.shows_group), "no cell shows the group");
}

/// Rules that hold even if the document is wrong.
fn of_any(row: &Row, caller: Caller, cell: &Cell) -> Result<(), &'static str> {
    if cell.shows_private_chat && !caller.reads_private_chat() {
        return Err("it shows a message of the private chat");
    }
    if cell.shows_group && !caller.reads_group() {
        return Err("it shows a message of the group");
    }
    let is_operator = matches!(caller, Caller::Key("admin" | "backend"));
    if row.path().starts_with("/admin/") && cell.is_done() && !is_operator {
        return Err("only keys with the scopes `admin` and `backend` open /admin");
    }
    // The request is well-formed, no limit is reached and nothing fails: only the caller can be refused. For a socket
    // that names its user the token is one of the parameters that must be there.
    if row.path() != "/ws"
        && ["400", "408", "413", "429", "5"].iter().any(|status| cell.result.starts_with(status))
    {
        return Err("the refusal is not about the caller");
    }
    Ok(())
}

/// Rules of the security scheme that the document names.
fn of_scheme(
    row: &Row,
    scheme: Option<&str>,
    caller: Caller,
    cell: &Cell,
) -> Result<(), &'static str> {
    let Some(scheme) = scheme else {
        // A socket that names its user is the only thing that looks at a token which the document does not ask for.
        let is_named = row.path() == "/ws" && !matches!(caller, Caller::User(_));
        return if cell.is_done() || is_named { Ok(()) } else { Err("it asks for no token") };
    };
    let is_unknown =
        ["401 missing_token", "401 invalid_token", "401 unauthorized"].contains(&&*cell.result);
    match (caller.fits(scheme), caller) {
        (true, Caller::Key(_)) if !cell.is_done() => Err("the scope does not open it"),
        (true, _) if is_unknown => Err("the caller's token is not accepted"),
        (false, _) if cell.is_done() => Err("the document does not allow it"),
        (false, Caller::Key(_)) if is_unknown || cell.result == "403 scope_missing" => Ok(()),
        (false, _) if !is_unknown => Err("the caller is refused for another reason than the token"),
        _ => Ok(()),
    }
}
