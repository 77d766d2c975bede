//! The HTTP surface: the same port, the same domain, real status codes. The paths are in tables next
//! to their handlers; router and document are made from them together.

mod accounts;
mod answer;
mod conversations;
mod cors;
mod document;
mod flat;
mod group_joining;
mod group_members;
mod group_reading;
mod groups;
mod head;
mod layout;
mod manual;
mod messages;
mod named;
mod naming;
mod operations;
mod origin;
mod paths;
mod reading;
mod refusals;
mod socket;
mod taken;
mod told;
mod web;

use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::get;
use nexo_chat::Reason;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use crate::gateway::Gateway;
use answer::Asked;
use paths::Paths;

pub(crate) use head::TwoLengths;

/// Answers above this many bytes are compressed for those who ask for it.
const COMPRESS_ABOVE: u64 = 1024;

/// Every path there is.
fn all() -> Paths {
    let mut all = Paths::default();
    for paths in [
        accounts::paths,
        messages::paths,
        conversations::paths,
        reading::paths,
        groups::paths,
        group_members::paths,
        group_joining::paths,
        group_reading::paths,
        operations::paths,
        socket_path,
        manual::paths,
    ] {
        paths(&mut all);
    }
    all
}

fn socket_path(paths: &mut Paths) {
    manual::socket(paths, socket::upgrade);
}

/// All paths.
pub fn router(gateway: Arc<Gateway>) -> Router {
    conventions(all().router, gateway)
}

/// `/metrics` and all that `/readyz` knows, open: for a listener that the operator keeps private.
pub fn metrics_router(gateway: Arc<Gateway>) -> Router {
    let router = Router::new()
        .route("/metrics", get(operations::open_metrics))
        .route("/readyz", get(operations::open_readyz));
    conventions(router, gateway)
}

/// What holds for every request: a name, refusals in the one form, and what other pages may ask.
fn conventions(router: Router<Arc<Gateway>>, gateway: Arc<Gateway>) -> Router {
    let compression = CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(COMPRESS_ABOVE));
    router
        .fallback(async |asked: Asked, method: Method, uri: Uri, headers: HeaderMap| -> Response {
            web::file(&method, &uri, &headers).unwrap_or_else(|| asked.refuse(Reason::NotFound))
        })
        .method_not_allowed_fallback(async |asked: Asked| -> Response {
            asked.refuse(Reason::MethodNotAllowed)
        })
        .layer(compression)
        .layer(from_fn_with_state(Arc::clone(&gateway), cors::allow))
        .layer(from_fn_with_state(Arc::clone(&gateway), head::check))
        .layer(from_fn_with_state(Arc::clone(&gateway), naming::name))
        .with_state(gateway)
}
