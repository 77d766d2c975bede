//! The web client: its files are part of the binary, and it loads nothing from other hosts.

use std::sync::OnceLock;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;

/// Path and content of every file; empty if the web client was not built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web_files.rs"));

/// Hash of all files, so every build has another one.
static ETAG: OnceLock<String> = OnceLock::new();

/// File names below this path contain a hash of the content.
const HASHED_NAMES: &str = "/assets/";

/// The start page: the web client, or a page about the API if it was not built.
pub(in crate::http) async fn page(headers: HeaderMap) -> Response {
    match find("/index.html") {
        Some(content) => serve("/index.html", content, &headers),
        None => welcome(&headers),
    }
}

/// A file of the web client, if the path is one.
pub(in crate::http) fn file(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let content = find(uri.path()).filter(|_| is_read && uri.path() != "/index.html")?;
    Some(serve(uri.path(), content, headers))
}

fn find(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, content)| *content)
}

fn etag() -> &'static str {
    ETAG.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        for (name, content) in FILES {
            hasher.update(name.as_bytes()).update(content);
        }
        format!("\"{}\"", &hasher.finalize().to_hex()[..16])
    })
}

fn serve(path: &str, content: &'static [u8], headers: &HeaderMap) -> Response {
    let is_immutable = path.starts_with(HASHED_NAMES);
    let cache = if is_immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == etag());
    let mut response = if is_known && !is_immutable {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, content_type(path))], Bytes::from_static(content)).into_response()
    };
    let answer = response.headers_mut();
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if !is_immutable && let Ok(etag) = HeaderValue::from_str(etag()) {
        answer.insert(header::ETAG, etag);
    }
    with_security_headers(response, &security_policy(headers))
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webp") => "image/webp",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

/// Scripts, styles, pictures and connections only of this server. Some browsers do not take `'self'` for a WebSocket,
/// so the policy names the host of the request.
fn security_policy(headers: &HeaderMap) -> String {
    let sockets = match host(headers) {
        Some(host) => format!(" ws://{host} wss://{host}"),
        None => String::new(),
    };
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'{sockets}; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

/// The host of the request, if it has no characters that could end the policy.
fn host(headers: &HeaderMap) -> Option<&str> {
    let is_plain = |host: &&str| {
        host.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']'))
    };
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(is_plain)
}

fn with_security_headers(mut response: Response, policy: &str) -> Response {
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// The page of a build without the web client, with the host of the request in its examples.
fn welcome(headers: &HeaderMap) -> Response {
    let page = include_str!("welcome.html");
    let page = page.replace("localhost:8080", host(headers).unwrap_or("localhost:8080"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    with_security_headers(Html(page).into_response(), policy)
}
