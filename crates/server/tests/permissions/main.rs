//! Every operation of the `OpenAPI` document by every kind of caller: `docs/permissions.md` is what a server answers.

#![allow(clippy::unwrap_used, reason = "only tests are here")]

mod callers;
mod page;
mod request;
mod rows;
mod rules;
mod world;

use std::collections::BTreeSet;

use futures_util::StreamExt;
use serde_json::Value;

use crate::callers::CALLERS;
use crate::rows::Row;
use crate::world::{GROUP_TEXT, PRIVATE_TEXT, Site, World};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/permissions.md");

/// Cells that are asked at the same time.
const AT_ONCE: usize = 16;

/// The rows, each with a cell per caller.
type Matrix = Vec<(Row, Vec<Cell>)>;

/// What a caller gets.
struct Cell {
    /// The status, and the reason of a refusal.
    result: String,
    shows_private_chat: bool,
    shows_group: bool,
}

impl Cell {
    async fn measure(row: &Row, world: &World<'_>) -> Self {
        let request = row.request(world).await;
        let path = request.path(row.path(), &world.params());
        let bytes = request.bytes(row.method(), &path, &world.token, &world.address());
        let answer = world.site.server.http.raw(&bytes).await;
        // Only the first value: a refused upgrade is followed by the answer to the frame behind it.
        let mut values = serde_json::Deserializer::from_str(&answer.text).into_iter::<Value>();
        let body = values.next().and_then(Result::ok).unwrap_or_default();
        let reason = body["reason"].as_str().unwrap_or_default();
        Self {
            result: format!("{} {reason}", answer.status).trim_end().to_owned(),
            shows_private_chat: answer.text.contains(PRIVATE_TEXT),
            shows_group: answer.text.contains(GROUP_TEXT),
        }
    }

    fn is_done(&self) -> bool {
        ["101", "200", "302"].contains(&&*self.result)
    }
}

async fn measure(site: &Site) -> Matrix {
    let mut worlds = Vec::new();
    for caller in CALLERS {
        worlds.push(site.world(caller).await);
    }
    let (rows, worlds) = (rows::all(), &worlds);
    let cells = rows.iter().flat_map(|row| CALLERS.iter().zip(worlds).map(move |at| (row, at)));
    let cells = cells.map(async |(row, (caller, world))| {
        if row.only_reads() {
            return Cell::measure(row, world).await;
        }
        Cell::measure(row, &site.world(*caller).await).await
    });
    let cells: Vec<Cell> = futures_util::stream::iter(cells).buffered(AT_ONCE).collect().await;
    let mut cells = cells.into_iter();
    let matrix = rows.into_iter().map(|row| (row, cells.by_ref().take(CALLERS.len()).collect()));
    matrix.collect()
}

#[tokio::test]
async fn the_documentation_says_who_may_do_what() {
    let site = Site::start().await;
    let document = site.server.http.get("/openapi.json", "").await.body;
    assert_complete(&document);
    let matrix = measure(&site).await;
    rules::assert_hold(&document, &matrix);
    let page = page::render(&document, &matrix);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let committed = std::fs::read_to_string(PAGE).unwrap_or_default();
    let known: BTreeSet<&str> = committed.lines().collect();
    let new: Vec<&str> = page.lines().filter(|line| !known.contains(line)).collect();
    let hint = "docs/permissions.md is stale: if these lines are as they should be, run `make gen`";
    assert!(committed == page, "{hint}\n{}", new.join("\n"));
}

/// The table has all operations of the document, and no others.
fn assert_complete(document: &Value) {
    let paths = document["paths"].as_object().unwrap().iter();
    let documented: BTreeSet<String> = paths
        .flat_map(|(path, item)| {
            let methods = item.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let rows = rows::all();
    let listed: BTreeSet<String> = rows.iter().map(|row| row.operation.to_owned()).collect();
    let missing: Vec<&String> = documented.difference(&listed).collect();
    assert!(missing.is_empty(), "the table in rows/ has no {missing:?}");
    let unknown: Vec<&String> = listed.difference(&documented).collect();
    assert!(unknown.is_empty(), "the document has no {unknown:?}");
    let names: BTreeSet<_> = rows.iter().map(|row| (row.operation, row.about)).collect();
    assert_eq!(names.len(), rows.len(), "two rows of an operation are called the same");
}
