//! Reads the JSON of a request; a refusal names the field that is wrong.

use nexo_chat::{DetailedReason, Reason};
use serde::de::DeserializeOwned;

/// `bad_json` if it is not JSON, `invalid_param` with the path of the field if it has another form.
pub fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DetailedReason> {
    serde_json::from_slice(bytes).map_err(|error| {
        if !error.is_data() {
            return Reason::BadJson.into();
        }
        // Read once more to learn the path: only a refused request pays for tracking it.
        let mut again = serde_json::Deserializer::from_slice(bytes);
        let path = serde_path_to_error::deserialize::<_, T>(&mut again)
            .map_err(|error| error.path().to_string());
        let problem = error.to_string();
        let problem = problem.rsplit_once(" at line ").map_or(&*problem, |(problem, _)| problem);
        let detail = match path {
            Err(path) if path != "." => format!("`{path}`: {problem}"),
            _ => problem.to_owned(), // the body itself, or a field that is missing in it
        };
        DetailedReason::new(Reason::InvalidParam, detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::messages::SendBody;

    #[test]
    fn a_refusal_names_the_path_of_the_wrong_field() {
        let check = |fields: &str, expect: &str| {
            let body = format!(r#"{{"client_msg_id":"1","session_type":1,"msg_type":1,{fields}}}"#);
            let refused = from_json::<SendBody>(body.as_bytes()).err().unwrap();
            assert_eq!(refused.reason, Reason::InvalidParam, "{body}");
            let detail = refused.detail.unwrap();
            assert!(detail.starts_with(expect), "{body}: {detail}");
            assert!(!detail.contains(" column "), "{detail}");
        };
        check(r#""content":{},"extra":{"a":1}"#, "`extra.a`: invalid type: integer `1`");
        check(r#""content":{"text":["hi"]}"#, "`content.text`: invalid type: sequence");
        check(r#""content":"hi""#, "`content`: invalid type: string \"hi\"");
        check(r#""content":{},"mentions":["a",2]"#, "`mentions[1]`: invalid type: integer `2`");
        check(r#""content":{},"colour":1"#, "`colour`: unknown field `colour`");
        check(r#""extra":{}"#, "missing field `content`");
        let broken = from_json::<SendBody>(b"{").err().unwrap();
        assert_eq!(broken, DetailedReason::from(Reason::BadJson));
    }
}
