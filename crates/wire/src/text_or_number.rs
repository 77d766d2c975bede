//! Fields that may come as a string or as a number.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A string; a whole number is read as the string of its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextOrNumber<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for TextOrNumber<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

impl PartialSchema for TextOrNumber<'_> {
    fn schema() -> RefOr<Schema> {
        let either = OneOfBuilder::new().item(String::schema()).item(u64::schema());
        RefOr::T(either.into())
    }
}

impl ToSchema for TextOrNumber<'_> {
    fn name() -> Cow<'static, str> {
        "Text".into()
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = TextOrNumber<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a whole number")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(TextOrNumber(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(TextOrNumber(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(TextOrNumber(Cow::Owned(number.to_string())))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(TextOrNumber(Cow::Owned(number.to_string())))
    }
}
