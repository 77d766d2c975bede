//! The envelope of every HTTP answer: `{code, message, data, request_id}`, and `reason` on errors.

use std::borrow::Cow;

use nexo_chat::Reason;
use serde::{Serialize, Serializer};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::codes;
use crate::http::damaged::DamagedRangeText;

/// The envelope of every answer.
#[derive(Debug, Serialize)]
pub struct HttpEnvelope<T> {
    /// Zero, or the code of the numbered dialect.
    pub code: i32,
    /// `ok`, or the text of the reason.
    pub message: String,
    /// The name of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<T>,
    /// Only of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Only of lists of messages: those of the page that cannot be read any more.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<DamagedRangeText>,
    pub request_id: String,
}

impl<T> HttpEnvelope<T> {
    pub fn ok(data: T, request_id: String) -> Self {
        let message = "ok".to_owned();
        let (data, damaged) = (Some(data), Vec::new());
        Self { code: 0, message, reason: None, data, has_more: None, damaged, request_id }
    }
}

impl HttpEnvelope<()> {
    pub fn refused(reason: Reason, request_id: String) -> Self {
        let row = codes::row(reason);
        Self {
            code: row.numbered,
            message: reason.to_string(),
            reason: Some(row.typed),
            data: None,
            has_more: None,
            damaged: Vec::new(),
            request_id,
        }
    }
}

/// The data of a request that only succeeds: `{}`.
#[derive(Debug, Default)]
pub struct NoData;

impl PartialSchema for NoData {
    fn schema() -> RefOr<Schema> {
        RefOr::T(Schema::Object(Object::with_type(Type::Object)))
    }
}

impl ToSchema for NoData {
    fn name() -> Cow<'static, str> {
        "Nothing".into()
    }
}

impl Serialize for NoData {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        serializer.serialize_map(Some(0))?.end()
    }
}
