//! The query of the address that a client connects to.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use nexo_chat::ids::Platform;
use nexo_chat::{DetailedReason, Reason};
use serde::Deserialize;

use super::HANDSHAKE;
use crate::dialect::{Call, Dialect, Echo};

/// Characters of `operation_id` that an answer repeats.
const ECHO_CHARS_MAX: usize = 128;

const QUERY_TOKEN_REFUSED: &str = "this server takes no token in the query: send it as `Authorization: Bearer …`, \
    or offer the WebSocket protocols `nexo` and `nexo.token.…`";

/// The query as written. Unknown parameters are ignored.
#[derive(Debug, Default, Deserialize)]
pub struct HandshakeQuery {
    token: Option<String>,
    send_id: Option<String>,
    platform_id: Option<i32>,
    operation_id: Option<String>,
    sdk_type: Option<String>,
    is_msg_resp: Option<String>,
    /// The other parameters as JSON or base64 of JSON, or the version `1`.
    v: Option<String>,
}

/// The parameters inside `v`.
#[derive(Default, Deserialize)]
struct HandshakeBundle {
    token: Option<String>,
    send_id: Option<String>,
    platform_id: Option<i32>,
    operation_id: Option<String>,
    sdk_type: Option<String>,
    is_msg_resp: Option<bool>,
}

/// The caller that the query names, and the dialect of the connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Handshake {
    pub token: String,
    /// The user id that the client claims.
    pub send_id: String,
    /// If given, it must be the platform of the token.
    pub platform: Option<Platform>,
    pub dialect: Dialect,
    /// Set if the client wants the answer as a frame: a browser does not see the status of a refused handshake.
    pub answer: Option<Echo>,
}

impl HandshakeQuery {
    /// `None` if the query names no caller. The token may also be in a header of the request; in the query it is
    /// refused unless `takes_query_token`, since proxies log queries.
    pub fn handshake(
        self,
        header_token: Option<&str>,
        takes_query_token: bool,
    ) -> Result<Option<Handshake>, DetailedReason> {
        let bundle = self.v.as_deref().map(bundle).transpose()?.unwrap_or_default();
        let query_token = self.token.or(bundle.token);
        if query_token.is_some() && !takes_query_token {
            return Err(DetailedReason::new(Reason::InvalidParam, QUERY_TOKEN_REFUSED));
        }
        let send_id = self.send_id.or(bundle.send_id);
        // Without `send_id` a token in a header is not meant for this dialect.
        let header_token = header_token.filter(|_| send_id.is_some());
        let token = query_token.or_else(|| header_token.map(str::to_owned));
        let (token, send_id) = match (token, send_id) {
            (Some(token), Some(send_id)) => (token, send_id),
            (None, None) => return Ok(None),
            _ => return Err(Reason::InvalidParam.into()),
        };
        let wants_answer = match self.is_msg_resp.as_deref() {
            None => bundle.is_msg_resp.unwrap_or_default(),
            Some("true" | "1") => true,
            Some("false" | "0" | "") => false,
            Some(_) => return Err(Reason::InvalidParam.into()),
        };
        let sdk_type = self.sdk_type.or(bundle.sdk_type);
        let nested = sdk_type.is_some_and(|sdk| sdk.eq_ignore_ascii_case("js"));
        let operation_id = self.operation_id.or(bundle.operation_id).unwrap_or_default();
        let call = Call::Numbered {
            req_identifier: HANDSHAKE,
            msg_incr: String::new(),
            operation_id: operation_id.chars().take(ECHO_CHARS_MAX).collect(),
        };
        Ok(Some(Handshake {
            token,
            send_id,
            platform: self.platform_id.or(bundle.platform_id).map(Platform),
            dialect: Dialect::Numbered { nested },
            answer: wants_answer.then(|| Echo { call, ..Echo::default() }),
        }))
    }
}

fn bundle(v: &str) -> Result<HandshakeBundle, Reason> {
    if matches!(v, "" | "1") {
        return Ok(HandshakeBundle::default());
    }
    let bad = Reason::InvalidParam;
    let json = if v.starts_with('{') {
        v.as_bytes().to_vec()
    } else {
        let url = || BASE64URL_NOPAD.decode(v.trim_end_matches('=').as_bytes());
        BASE64.decode(v.as_bytes()).or_else(|_| url()).map_err(|_| bad)?
    };
    serde_json::from_slice(&json).map_err(|_| bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(v: Option<&str>) -> HandshakeQuery {
        HandshakeQuery { v: v.map(str::to_owned), ..HandshakeQuery::default() }
    }

    fn known() -> HandshakeQuery {
        let (token, send_id) = (Some("t".to_owned()), Some("alice".to_owned()));
        HandshakeQuery { token, send_id, ..HandshakeQuery::default() }
    }

    #[test]
    fn everything_may_be_in_v() {
        let json = r#"{"token":"t","send_id":"alice","platform_id":5,"operation_id":"o",
            "sdk_type":"js","is_msg_resp":true,"more":1}"#;
        let (plain, url) =
            (BASE64.encode(json.as_bytes()), BASE64URL_NOPAD.encode(json.as_bytes()));
        for v in [json, &plain, &url] {
            let read = query(Some(v)).handshake(None, true).unwrap().unwrap();
            let call = Call::Numbered {
                req_identifier: HANDSHAKE,
                msg_incr: String::new(),
                operation_id: "o".into(),
            };
            let expect = Handshake {
                token: "t".into(),
                send_id: "alice".into(),
                platform: Some(Platform(5)),
                dialect: Dialect::Numbered { nested: true },
                answer: Some(Echo { call, ..Echo::default() }),
            };
            assert_eq!(read, expect, "{v}");
        }
    }

    #[test]
    fn v_is_also_the_version_of_which_there_is_one() {
        for v in ["", "1"] {
            assert_eq!(query(Some(v)).handshake(None, true), Ok(None), "{v}");
            let read = HandshakeQuery { v: Some(v.into()), ..known() }
                .handshake(None, true)
                .unwrap()
                .unwrap();
            assert_eq!((&*read.token, &*read.send_id), ("t", "alice"));
        }
        for v in ["2", "{", "[]", "e30", "{\"token\":1}"] {
            let read = HandshakeQuery { v: Some(v.into()), ..known() }.handshake(None, true);
            // Base64 of an empty object is one.
            let expect = if v == "e30" { Ok(()) } else { Err(Reason::InvalidParam) };
            assert_eq!(read.map(drop).map_err(Reason::from), expect, "{v}");
        }
    }

    #[test]
    fn half_a_name_is_none() {
        let token = Some("t".to_owned());
        assert_eq!(
            HandshakeQuery { token, ..HandshakeQuery::default() }.handshake(None, true),
            Err(Reason::InvalidParam.into())
        );
        assert_eq!(query(None).handshake(None, true), Ok(None));
        for (said, expect) in
            [("true", Ok(true)), ("1", Ok(true)), ("false", Ok(false)), ("yes", Err(()))]
        {
            let read =
                HandshakeQuery { is_msg_resp: Some(said.into()), ..known() }.handshake(None, true);
            let wants = read.map(|it| it.is_some_and(|it| it.answer.is_some())).map_err(drop);
            assert_eq!(wants, expect, "{said}");
        }
    }

    #[test]
    fn the_token_may_be_in_a_header_and_must_be_where_the_query_takes_none() {
        let named = || HandshakeQuery { token: None, ..known() };
        let token = |read: Result<Option<Handshake>, DetailedReason>| read.unwrap().unwrap().token;
        for takes_query_token in [true, false] {
            assert_eq!(token(named().handshake(Some("h"), takes_query_token)), "h");
            assert!(named().handshake(None, takes_query_token).is_err(), "no token at all");
            // Another dialect's, whose first frame has the token.
            assert_eq!(query(None).handshake(Some("h"), takes_query_token), Ok(None));
        }
        assert_eq!(token(known().handshake(Some("h"), true)), "t");
        let in_v = query(Some(r#"{"token":"t","send_id":"alice"}"#));
        for refused in [known(), in_v] {
            let refused = refused.handshake(Some("h"), false).unwrap_err();
            assert_eq!(refused.reason, Reason::InvalidParam);
            assert!(refused.detail.unwrap().contains("Authorization"));
        }
    }
}
