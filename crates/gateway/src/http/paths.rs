//! Paths, as a router and as a document at once: what is added here is both or neither.

use std::future::ready;
use std::sync::Arc;

use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use axum::{Extension, Router};
use nexo_chat::Reason;
use serde_json::Value;

use super::answer::KnownQuery;
use super::document::Document;
use super::told::{Tells, Told};
use crate::gateway::Gateway;

/// The paths so far.
#[derive(Default)]
pub(super) struct Paths {
    pub(super) router: Router<Arc<Gateway>>,
    pub(super) document: Document,
    group: &'static str,
}

/// A table of paths: method, path, handler, what it does, and what only it may be refused for
/// (a set with a name may come first).
macro_rules! paths {
    ($paths:ident: $($method:ident $path:literal $handler:path, $summary:literal
        $(, $set:ident)? [$($reason:ident)*])*) => {
        $($paths.add(
            &axum::http::Method::$method,
            $path,
            $handler,
            $summary,
            &[$(&$set[..],)? &[$(nexo_chat::Reason::$reason),*]],
        );)*
    };
}
pub(super) use paths;

impl Paths {
    /// What follows belongs to this group.
    pub(super) fn group(&mut self, name: &'static str, description: &'static str) {
        self.group = name;
        self.document.tag(name, description);
    }

    /// A path whose handler tells by its types what it takes and gives.
    pub(super) fn add<H, T>(
        &mut self,
        method: &Method,
        path: &'static str,
        handler: H,
        summary: &'static str,
        reasons: &[&[Reason]],
    ) where
        H: Handler<T, Arc<Gateway>> + Tells<T>,
        T: 'static,
    {
        let mut told = Told { has_body: *method != Method::GET, ..Told::default() };
        H::tell(&mut told);
        told.reasons.extend(reasons.concat());
        told.reasons.extend([Reason::InvalidParam, Reason::ServerBusy, Reason::InternalError]);
        let query = told.parameters.iter().filter_map(|it| it["name"].as_str().map(str::to_owned));
        let query = KnownQuery { names: query.collect(), needs_token: told.security.is_some() };
        self.route(method, path, handler, &told.reasons, Some(query));
        self.document.add(method, path, self.group, summary, told);
    }

    /// A path that answers with no envelope unless it refuses, so somebody has to say with what. Its
    /// query is its own: pages and probes are asked with anything.
    pub(super) fn plain<H, T>(
        &mut self,
        path: &'static str,
        handler: H,
        summary: &'static str,
        reasons: &[Reason],
        operation: Value,
    ) where
        H: Handler<T, Arc<Gateway>>,
        T: 'static,
    {
        self.route(&Method::GET, path, handler, reasons, None);
        self.document.add_plain(path, self.group, summary, reasons, operation);
    }

    fn route<H, T>(
        &mut self,
        method: &Method,
        path: &'static str,
        handler: H,
        reasons: &[Reason],
        query: Option<KnownQuery>,
    ) where
        H: Handler<T, Arc<Gateway>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("a method of HTTP");
        let mut route = on(filter, handler);
        if let Some(known) = query {
            route = route.layer(Extension(known));
        }
        // Tests ask the debug build: there, a refusal that is not in the document stands out.
        if cfg!(debug_assertions) {
            let reasons = reasons.to_vec();
            route = route.layer(map_response(move |response: Response| {
                if let Some(reason) = response.extensions().get::<Reason>() {
                    assert!(reasons.contains(reason), "{path} does not tell of {reason:?}");
                }
                ready(response)
            }));
        }
        self.router = std::mem::take(&mut self.router).route(path, route);
    }
}
