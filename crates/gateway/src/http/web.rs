//! The web client: files that were built with the program, and nothing from elsewhere.

use std::sync::OnceLock;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;

/// Path and content of every file; none if the web client was not built.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/web_files.rs"));

/// What stands for the program's files: another build has another one.
static TAG: OnceLock<String> = OnceLock::new();

/// Files below this path have a name of their own for every content.
const NAMED_BY_CONTENT: &str = "/assets/";

/// The page one sees first: the web client, or how to do without it.
pub(super) async fn page(headers: HeaderMap) -> Response {
    match find("/index.html") {
        Some(content) => serve("/index.html", content, &headers),
        None => welcome(&headers),
    }
}

/// A file of the web client, if that is what somebody asks for.
pub(super) fn file(method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Response> {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let content = find(uri.path()).filter(|_| is_read && uri.path() != "/index.html")?;
    Some(serve(uri.path(), content, headers))
}

fn find(path: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, content)| *content)
}

fn tag() -> &'static str {
    TAG.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        for (name, content) in FILES {
            hasher.update(name.as_bytes()).update(content);
        }
        format!("\"{}\"", &hasher.finalize().to_hex()[..16])
    })
}

fn serve(path: &str, content: &'static [u8], headers: &HeaderMap) -> Response {
    let is_lasting = path.starts_with(NAMED_BY_CONTENT);
    let cache = if is_lasting { "public, max-age=31536000, immutable" } else { "no-cache" };
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known == tag());
    let mut response = if is_known && !is_lasting {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind(path))], Bytes::from_static(content)).into_response()
    };
    let told = response.headers_mut();
    told.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if !is_lasting && let Ok(tag) = HeaderValue::from_str(tag()) {
        told.insert(header::ETAG, tag);
    }
    guard(response, &policy(headers))
}

fn kind(path: &str) -> &'static str {
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

/// Only our own script, style and pictures, and connections only to ourselves. Not every browser
/// takes `'self'` for a socket, so the address it was asked by is named.
fn policy(headers: &HeaderMap) -> String {
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

/// The address a request was sent to, if it is one that may be repeated.
fn host(headers: &HeaderMap) -> Option<&str> {
    let is_plain = |host: &&str| {
        host.bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']'))
    };
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).filter(is_plain)
}

fn guard(mut response: Response, policy: &str) -> Response {
    let told = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(policy) {
        told.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    told.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    told.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// What a program without the web client shows, with the address it was asked by.
fn welcome(headers: &HeaderMap) -> Response {
    let page = include_str!("welcome.html");
    let page = page.replace("localhost:8080", host(headers).unwrap_or("localhost:8080"));
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    guard(Html(page).into_response(), policy)
}
