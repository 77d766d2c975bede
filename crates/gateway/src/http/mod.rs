//! The HTTP routes. The tables of paths stand above their handlers; router and `OpenAPI` document are both made
//! from them.

mod client_ip;
mod cors;
mod extract;
mod lines;
mod openapi;
mod paging;
mod path_id;
mod pretty_json;
mod request_head;
mod request_id;
mod response;
mod routes;
mod with_key;

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
use openapi::docs_page;
use openapi::paths::Paths;
use response::RequestContext;

pub(crate) use request_head::AmbiguousLength;
pub(crate) use routes::admin::broadcast::resume as resume_broadcasts;

/// Answers above this many bytes are compressed for clients that accept it.
const COMPRESS_ABOVE: u64 = 1024;

fn all_paths() -> Paths {
    let mut all = Paths::default();
    for paths in [
        routes::accounts::paths,
        routes::oidc::paths,
        routes::messages::paths,
        routes::conversations::paths,
        routes::history::paths,
        routes::sync::paths,
        routes::groups::paths,
        routes::members::paths,
        routes::joining::paths,
        routes::history::group_paths,
        routes::devices::paths,
        routes::privacy::paths,
        routes::invites::paths,
        routes::admin::paths,
        routes::server::paths,
        socket_path,
        docs_page::paths,
    ] {
        paths(&mut all);
    }
    all
}

fn socket_path(paths: &mut Paths) {
    docs_page::socket(paths, routes::socket::upgrade);
}

/// The routes of clients.
pub(crate) fn router(gateway: Arc<Gateway>) -> Router {
    with_middleware(all_paths().router.fallback(web_file), gateway)
}

/// `/healthz`, `/metrics`, and `/readyz` in full, without a token: for a listener that the operator keeps private.
pub(crate) fn metrics_router(gateway: Arc<Gateway>) -> Router {
    let router = Router::new()
        .route("/healthz", get(routes::server::healthz))
        .route("/metrics", get(routes::server::open_metrics))
        .route("/readyz", get(routes::server::open_readyz))
        .fallback(web_file);
    with_middleware(router, gateway)
}

/// What is answered while all places of clients are taken: health checks and metrics. Everything else is refused.
pub(crate) fn probe_router(gateway: Arc<Gateway>) -> Router {
    let router = Router::new()
        .route("/healthz", get(routes::server::healthz))
        .route("/metrics", get(routes::server::metrics))
        .route("/readyz", get(routes::server::readyz))
        .fallback(async |context: RequestContext| context.refuse(Reason::ServerBusy));
    with_middleware(router, gateway)
}

/// A file of the web client, for paths that nothing else has.
async fn web_file(
    context: RequestContext,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    routes::web_client::file(&method, &uri, &headers)
        .unwrap_or_else(|| context.refuse(Reason::NotFound))
}

/// Adds what every request gets: a request id, refusals in the envelope, CORS, compression.
fn with_middleware(router: Router<Arc<Gateway>>, gateway: Arc<Gateway>) -> Router {
    let compression = CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::new(COMPRESS_ABOVE));
    router
        .method_not_allowed_fallback(async |context: RequestContext| -> Response {
            context.refuse(Reason::MethodNotAllowed)
        })
        .layer(compression)
        .layer(from_fn_with_state(Arc::clone(&gateway), cors::allow))
        .layer(from_fn_with_state(Arc::clone(&gateway), request_head::check))
        .layer(from_fn_with_state(Arc::clone(&gateway), request_id::assign))
        .with_state(gateway)
}
