//! The query of the address that a client connects to.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use nexo_chat::Reason;
use nexo_chat::ids::Platform;
use serde::Deserialize;

use super::HANDSHAKE;
use crate::dialect::{Call, Dialect, Echo};

/// Characters of `operation_id` that an answer repeats.
const ECHO_CHARS_MAX: usize = 128;

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
    /// `None` if the query names no caller.
    pub fn handshake(self) -> Result<Option<Handshake>, Reason> {
        let bundle = self.v.as_deref().map(bundle).transpose()?.unwrap_or_default();
        let (token, send_id) = match (self.token.or(bundle.token), self.send_id.or(bundle.send_id))
        {
            (Some(token), Some(send_id)) => (token, send_id),
            (None, None) => return Ok(None),
            _ => return Err(Reason::InvalidParam),
        };
        let wants_answer = match self.is_msg_resp.as_deref() {
            None => bundle.is_msg_resp.unwrap_or_default(),
            Some("true" | "1") => true,
            Some("false" | "0" | "") => false,
            Some(_) => return Err(Reason::InvalidParam),
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
            let read = query(Some(v)).handshake().unwrap().unwrap();
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
            assert_eq!(query(Some(v)).handshake(), Ok(None), "{v}");
            let read =
                HandshakeQuery { v: Some(v.into()), ..known() }.handshake().unwrap().unwrap();
            assert_eq!((&*read.token, &*read.send_id), ("t", "alice"));
        }
        for v in ["2", "{", "[]", "e30", "{\"token\":1}"] {
            let read = HandshakeQuery { v: Some(v.into()), ..known() }.handshake();
            // Base64 of an empty object is one.
            let expect = if v == "e30" { Ok(()) } else { Err(Reason::InvalidParam) };
            assert_eq!(read.map(drop), expect, "{v}");
        }
    }

    #[test]
    fn half_a_name_is_none() {
        let token = Some("t".to_owned());
        assert_eq!(
            HandshakeQuery { token, ..HandshakeQuery::default() }.handshake(),
            Err(Reason::InvalidParam)
        );
        assert_eq!(query(None).handshake(), Ok(None));
        for (said, expect) in
            [("true", Ok(true)), ("1", Ok(true)), ("false", Ok(false)), ("yes", Err(()))]
        {
            let read = HandshakeQuery { is_msg_resp: Some(said.into()), ..known() }.handshake();
            let wants = read.map(|it| it.is_some_and(|it| it.answer.is_some())).map_err(drop);
            assert_eq!(wants, expect, "{said}");
        }
    }
}
