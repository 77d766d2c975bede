//! What a client says in the query of the address it connects to.

use data_encoding::{BASE64, BASE64URL_NOPAD};
use nexo_chat::Reason;
use nexo_chat::ids::Platform;
use serde::Deserialize;

use super::HANDSHAKE;
use crate::dialect::{Call, Dialect, Echo};

/// Characters of what is repeated.
const ECHO_CHARS_MAX: usize = 128;

/// The query as it is written. What is not known is not looked at.
#[derive(Debug, Default, Deserialize)]
pub struct Query {
    token: Option<String>,
    send_id: Option<String>,
    platform_id: Option<i32>,
    operation_id: Option<String>,
    sdk_type: Option<String>,
    is_msg_resp: Option<String>,
    /// All of these together as JSON, or as base64 of it; or the version, of which there is one.
    v: Option<String>,
}

/// The same in one parameter.
#[derive(Default, Deserialize)]
struct Bundle {
    token: Option<String>,
    send_id: Option<String>,
    platform_id: Option<i32>,
    operation_id: Option<String>,
    sdk_type: Option<String>,
    is_msg_resp: Option<bool>,
}

/// Who connects, and how they want to speak.
#[derive(Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Their token.
    pub token: String,
    /// Who they say they are.
    pub send_id: String,
    /// Their device, if it is to be checked.
    pub platform: Option<Platform>,
    /// How they speak.
    pub dialect: Dialect,
    /// What the answer repeats, if they want one as a frame: a browser does not see the status of a
    /// handshake that was refused.
    pub answer: Option<Echo>,
}

impl Query {
    /// Reads it; `None` if it names nobody.
    pub fn read(self) -> Result<Option<Handshake>, Reason> {
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

fn bundle(v: &str) -> Result<Bundle, Reason> {
    if matches!(v, "" | "1") {
        return Ok(Bundle::default());
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

    fn query(v: Option<&str>) -> Query {
        Query { v: v.map(str::to_owned), ..Query::default() }
    }

    fn known() -> Query {
        let (token, send_id) = (Some("t".to_owned()), Some("alice".to_owned()));
        Query { token, send_id, ..Query::default() }
    }

    #[test]
    fn everything_may_be_in_v() {
        let json = r#"{"token":"t","send_id":"alice","platform_id":5,"operation_id":"o",
            "sdk_type":"js","is_msg_resp":true,"more":1}"#;
        let (plain, url) =
            (BASE64.encode(json.as_bytes()), BASE64URL_NOPAD.encode(json.as_bytes()));
        for v in [json, &plain, &url] {
            let read = query(Some(v)).read().unwrap().unwrap();
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
            assert_eq!(query(Some(v)).read(), Ok(None), "{v}");
            let read = Query { v: Some(v.into()), ..known() }.read().unwrap().unwrap();
            assert_eq!((&*read.token, &*read.send_id), ("t", "alice"));
        }
        for v in ["2", "{", "[]", "e30", "{\"token\":1}"] {
            let read = Query { v: Some(v.into()), ..known() }.read();
            // Base64 of an empty object is one.
            let expect = if v == "e30" { Ok(()) } else { Err(Reason::InvalidParam) };
            assert_eq!(read.map(drop), expect, "{v}");
        }
    }

    #[test]
    fn half_a_name_is_none() {
        let token = Some("t".to_owned());
        assert_eq!(Query { token, ..Query::default() }.read(), Err(Reason::InvalidParam));
        assert_eq!(query(None).read(), Ok(None));
        for (said, expect) in
            [("true", Ok(true)), ("1", Ok(true)), ("false", Ok(false)), ("yes", Err(()))]
        {
            let read = Query { is_msg_resp: Some(said.into()), ..known() }.read();
            let wants = read.map(|it| it.is_some_and(|it| it.answer.is_some())).map_err(drop);
            assert_eq!(wants, expect, "{said}");
        }
    }
}
