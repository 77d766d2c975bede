//! Panics on request, so that tests can see what a panic ends. Only in debug builds, and only with the variable
//! `TEST_PANICS` in the environment; a release has neither this code nor the variable.

use std::sync::LazyLock;

use axum::http::HeaderMap;
use nexo_wire::dialect::Packet;

static IS_ON: LazyLock<bool> = LazyLock::new(|| std::env::var_os("TEST_PANICS").is_some());

/// Panics in the handling of a request that asks for it by a header.
pub(crate) fn on_request(headers: &HeaderMap) {
    assert!(!*IS_ON || !headers.contains_key("x-test-panic"), "a test wants this request to panic");
}

/// Panics in the handling of a frame that asks for it.
pub(crate) fn on_frame(packet: &Packet<'_>) {
    let asks = matches!(packet, Packet::Text(text) if text.contains("TEST_PANIC"));
    assert!(!*IS_ON || !asks, "a test wants this frame to panic");
}
