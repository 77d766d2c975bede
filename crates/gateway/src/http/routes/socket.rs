//! The WebSocket upgrade.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use nexo_chat::model::Caller;
use nexo_chat::{DetailedReason, Reason, auth};
use nexo_wire::numbered::{self, Handshake};

use crate::admission::Place;
use crate::gateway::Gateway;
use crate::http::extract::bearer;
use crate::http::response::RequestContext;
use crate::meters::Meters;
use crate::socket::serve::{UpgradeAuth, serve};
use crate::websocket::{NotAnUpgrade, Upgrade};

/// The protocol that is chosen if a client offers it. A browser, which cannot set headers, offers its token beside it.
const PROTOCOL: &str = "nexo";
const TOKEN_PROTOCOL: &str = "nexo.token.";

/// The numbered dialect names its caller in the query; the others send a first frame instead.
fn query_handshake(
    gateway: &Gateway,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Option<Handshake>, DetailedReason> {
    let Ok(Query(query)) = Query::<numbered::HandshakeQuery>::try_from_uri(uri) else {
        return Err(Reason::InvalidParam.into());
    };
    let token = bearer(headers).or_else(|| token_protocol(headers));
    query.handshake(token, gateway.options.token_in_query)
}

fn offered_protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    offered.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(',')).map(str::trim)
}

/// The token among the protocols that a client offers.
fn token_protocol(headers: &HeaderMap) -> Option<&str> {
    offered_protocols(headers).find_map(|protocol| protocol.strip_prefix(TOKEN_PROTOCOL))
}

/// Checks that token, sender and device match.
async fn authenticate(gateway: &Gateway, handshake: &Handshake) -> Result<Caller, Reason> {
    let caller = auth::authenticate(&gateway.chat, &handshake.token).await;
    let caller = caller.map_err(|error| error.reason())?;
    if !caller.user.as_str().eq_ignore_ascii_case(&handshake.send_id) {
        return Err(Reason::ReauthUidMismatch);
    }
    if handshake.platform.is_some_and(|platform| caller.platform != platform) {
        return Err(Reason::InvalidToken);
    }
    Ok(caller)
}

pub(in crate::http) async fn upgrade(
    State(gateway): State<Arc<Gateway>>,
    context: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    Extension(place): Extension<Arc<Place>>,
    upgrade: Result<Upgrade, NotAnUpgrade>,
) -> Response {
    if !is_origin_allowed(&headers, &gateway.options.allowed_origins) {
        return context.refuse(Reason::OriginNotAllowed);
    }
    if gateway.is_draining() {
        return context.refuse(Reason::ShuttingDown);
    }
    let Ok(upgrade) = upgrade else {
        return NotAnUpgrade::add_version(context.refuse(Reason::InvalidParam));
    };
    if let Err(no_place) = place.count_socket(context.client_ip) {
        Meters::count_no_place(no_place);
        return context.refuse(Reason::TooManyConnections);
    }
    let upgrade_auth = match query_handshake(&gateway, &uri, &headers) {
        Err(refused) => {
            return context.refuse_with_detail(refused.reason, refused.detail.as_deref());
        }
        Ok(None) => UpgradeAuth::Missing(context.client_ip),
        Ok(Some(handshake)) => match (authenticate(&gateway, &handshake).await, handshake.answer) {
            (Ok(caller), answer) => {
                UpgradeAuth::Authenticated(caller, handshake.dialect, answer.unwrap_or_default())
            }
            (Err(reason), Some(answer)) => UpgradeAuth::Refused(reason, handshake.dialect, answer),
            (Err(reason), None) => return context.refuse(reason),
        },
    };
    let protocol = offered_protocols(&headers).any(|it| it == PROTOCOL).then_some(PROTOCOL);
    let message_bytes_max = gateway.options.frame_bytes_max;
    upgrade.respond(protocol, message_bytes_max, move |socket| {
        serve(gateway, socket, upgrade_auth, place)
    })
}

/// A browser sends the origin of the page: it must be this server or one of `allowed_origins`. Other clients send none.
fn is_origin_allowed(headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    if allowed.iter().any(|one| one.eq_ignore_ascii_case(origin)) {
        return true;
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let page = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    matches!((page, host), (Some(page), Some(host)) if page.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(origin: Option<&str>, expect: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "chat.example.com:8080".parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let allowed = ["https://app.example.com".to_owned()];
        assert_eq!(is_origin_allowed(&headers, &allowed), expect, "{origin:?}");
    }

    #[test]
    fn a_browser_offers_its_token_as_a_protocol() {
        for (offered, expect) in [
            ("nexo, nexo.token.a.b-c_d", Some("a.b-c_d")),
            ("nexo.token.x,nexo", Some("x")),
            ("nexo, other", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, offered.parse().unwrap());
            assert_eq!(token_protocol(&headers), expect, "{offered}");
        }
    }

    #[test]
    fn only_our_own_and_allowed_pages_may_open_a_socket() {
        check(None, true);
        check(Some("http://chat.example.com:8080"), true);
        check(Some("https://chat.example.com:8080"), true);
        check(Some("https://app.example.com"), true);
        check(Some("https://app.example.com.evil.com"), false);
        check(Some("http://chat.example.com"), false);
        check(Some("null"), false);
        check(Some("https://evil.com"), false);
    }
}
