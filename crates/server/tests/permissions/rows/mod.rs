//! The table: for each operation of the document a request that succeeds for those who may. Where it matters whom or
//! what an operation is about, it has several rows.

mod accounts;
mod admin;
mod conversations;
mod groups;
mod messages;
mod server;
mod settings;

use futures_util::future::LocalBoxFuture;

use crate::request::Request;
use crate::world::World;

pub(crate) struct Row {
    /// Method and path, as the document writes them.
    pub(crate) operation: &'static str,
    /// What tells the row from others of the operation; may be empty.
    pub(crate) about: &'static str,
    ask: Ask,
}

enum Ask {
    Plain(Box<dyn Fn(&World) -> Request>),
    /// Other requests come first, such as the one that makes what is to be deleted.
    Prepared(for<'a> fn(&'a World) -> LocalBoxFuture<'a, Request>),
}

pub(crate) fn all() -> Vec<Row> {
    let parts = [
        accounts::rows(),
        messages::rows(),
        conversations::rows(),
        groups::rows(),
        settings::rows(),
        admin::rows(),
        server::rows(),
    ];
    parts.into_iter().flatten().collect()
}

/// The only row of an operation.
fn row(operation: &'static str, ask: impl Fn(&World) -> Request + 'static) -> Row {
    row_about(operation, "", ask)
}

fn row_about(
    operation: &'static str,
    about: &'static str,
    ask: impl Fn(&World) -> Request + 'static,
) -> Row {
    Row { operation, about, ask: Ask::Plain(Box::new(ask)) }
}

fn prepared(
    operation: &'static str,
    about: &'static str,
    ask: for<'a> fn(&'a World) -> LocalBoxFuture<'a, Request>,
) -> Row {
    Row { operation, about, ask: Ask::Prepared(ask) }
}

/// Two rows of an operation that takes a conversation: for the private chat and for the group.
fn in_both(operation: &'static str, ask: fn(&str) -> Request) -> [Row; 2] {
    [
        row_about(operation, "private chat", move |world| ask(&world.private_chat)),
        row_about(operation, "group", move |world| ask(&world.group_chat())),
    ]
}

impl Row {
    pub(crate) fn method(&self) -> &'static str {
        self.operation.split_once(' ').expect("a method and a path").0
    }

    pub(crate) fn path(&self) -> &'static str {
        self.operation.split_once(' ').expect("a method and a path").1
    }

    /// Whether cells of other rows may have the same world: nothing is changed there.
    pub(crate) fn only_reads(&self) -> bool {
        self.method() == "GET" && matches!(self.ask, Ask::Plain(_))
    }

    pub(crate) async fn request(&self, world: &World<'_>) -> Request {
        match &self.ask {
            Ask::Plain(ask) => ask(world),
            Ask::Prepared(ask) => ask(world).await,
        }
    }
}
