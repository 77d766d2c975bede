//! The table of paths. Adding a path adds its route and its operation in the document, so neither can be missing.

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

use crate::gateway::Gateway;
use crate::http::openapi::describe::{DescribeHandler, Operation};
use crate::http::openapi::document::Document;
use crate::http::response::AllowedQuery;

#[derive(Default)]
pub(in crate::http) struct Paths {
    pub(in crate::http) router: Router<Arc<Gateway>>,
    pub(in crate::http) document: Document,
    group: &'static str,
}

/// Adds rows of method, path, handler, summary and the reasons only it may be refused for (optionally with a
/// named set of reasons first).
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
pub(in crate::http) use paths;

impl Paths {
    /// Starts a tag: the paths added from here on belong to it.
    pub(in crate::http) fn group(&mut self, name: &'static str, description: &'static str) {
        self.group = name;
        self.document.tag(name, description);
    }

    /// Adds a path that is described by the types of its handler.
    pub(in crate::http) fn add<H, T>(
        &mut self,
        method: &Method,
        path: &'static str,
        handler: H,
        summary: &'static str,
        reasons: &[&[Reason]],
    ) where
        H: Handler<T, Arc<Gateway>> + DescribeHandler<T>,
        T: 'static,
    {
        let mut described = Operation { has_body: *method != Method::GET, ..Operation::default() };
        H::describe(&mut described);
        described.reasons.extend(reasons.concat());
        let any =
            [Reason::InvalidParam, Reason::Damaged, Reason::ServerBusy, Reason::InternalError];
        described.reasons.extend(any);
        let in_query = described.parameters.iter().filter(|it| it["in"] == "query");
        let query = in_query.filter_map(|it| it["name"].as_str().map(str::to_owned));
        let query =
            AllowedQuery { names: query.collect(), needs_token: described.security.is_some() };
        self.route(method, path, handler, &described.reasons, Some(query));
        self.document.add(method, path, self.group, summary, described);
    }

    /// Adds a path whose success has no envelope, described by `operation`. Its query is not checked: browsers and
    /// probes add parameters of their own.
    pub(in crate::http) fn plain<H, T>(
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
        query: Option<AllowedQuery>,
    ) where
        H: Handler<T, Arc<Gateway>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("a method of HTTP");
        let mut route = on(filter, handler);
        if let Some(known) = query {
            route = route.layer(Extension(known));
        }
        // Tests run the debug build: there, a refusal that the document does not list panics.
        if cfg!(debug_assertions) {
            let reasons = reasons.to_vec();
            route = route.layer(map_response(move |response: Response| {
                if let Some(reason) = response.extensions().get::<Reason>() {
                    assert!(
                        reasons.contains(reason),
                        "the document of {path} does not list {reason:?}"
                    );
                }
                ready(response)
            }));
        }
        self.router = std::mem::take(&mut self.router).route(path, route);
    }
}
