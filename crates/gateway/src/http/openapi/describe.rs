//! Describes an operation from the types of its handler: parameters, body, token, answer. The document is
//! generated from these types, so it cannot differ from what the handlers do.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::Reason;
use nexo_wire::http::damaged::DamagedRangeText;
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::schema::Schema;
use utoipa::{IntoParams, ToSchema};

use crate::gateway::Gateway;
use crate::http::extract::{Authenticated, Body, BodyOrQuery, EmptyBody, Params};
use crate::http::openapi::refusals::DAMAGED;
use crate::http::response::{ApiListResponse, ApiResponse, RequestContext};
use crate::http::routes::oidc::SignInCookie;
use crate::http::with_key::{KeyScope, WithKey};

/// An operation of the document.
#[derive(Default)]
pub(in crate::http) struct Operation {
    /// Whether the method has a request body.
    pub(in crate::http) has_body: bool,
    pub(in crate::http) parameters: Vec<Value>,
    /// The schema of the body, and whether it is required.
    pub(in crate::http) body: Option<(Value, bool)>,
    /// The schema of a body of lines.
    pub(in crate::http) lines: Option<Value>,
    /// The security scheme.
    pub(in crate::http) security: Option<&'static str>,
    /// The schema name of the success envelope, and its fields beside those of every envelope.
    pub(in crate::http) success: (String, Value),
    pub(in crate::http) reasons: Vec<Reason>,
    /// The schemas it refers to.
    pub(in crate::http) schemas: Vec<NamedSchema>,
}

pub(in crate::http) struct NamedSchema {
    pub(in crate::http) name: String,
    pub(in crate::http) schema: RefOr<Schema>,
    /// Whether it is part of an answer; else of a request.
    pub(in crate::http) is_answer: bool,
}

impl Operation {
    /// Adds the schemas of `T`; returns a reference to it, or the schema itself if it is a list.
    fn schema<T: ToSchema>(&mut self, is_answer: bool) -> Value {
        let mut found = Vec::new();
        T::schemas(&mut found);
        let name = schema_name::<T>();
        let schema = if name.ends_with(LIST) {
            json!(T::schema())
        } else {
            found.push((name.clone(), T::schema()));
            json!({ "$ref": format!("#/components/schemas/{name}") })
        };
        let named = |(name, schema)| NamedSchema { name, schema, is_answer };
        self.schemas.extend(found.into_iter().map(named));
        schema
    }

    fn query<T: IntoParams>(&mut self) {
        let parameters = T::into_params(|| Some(ParameterIn::Query));
        self.parameters.extend(parameters.into_iter().map(|it| json!(it)));
        self.reasons.push(Reason::InvalidParam);
    }

    fn body<T: ToSchema>(&mut self, is_required: bool) {
        self.body = Some((self.schema::<T>(false), is_required));
        self.reads_body();
    }

    fn reads_body(&mut self) {
        self.reasons.extend([
            Reason::BadJson,
            Reason::InvalidParam,
            Reason::FrameTooLarge,
            Reason::IdleTimeout,
        ]);
    }
}

/// Suffix of the schema name of a list.
const LIST: &str = "List";

/// The name of a schema. A list is called after its items.
fn schema_name<T: ToSchema>() -> String {
    let item = std::any::type_name::<T>().strip_prefix("alloc::vec::Vec<");
    let item = item.and_then(|item| item.trim_end_matches('>').rsplit("::").next());
    item.map_or_else(|| T::name().into_owned(), |item| item.to_owned() + LIST)
}

/// An extractor of a handler.
pub(in crate::http) trait DescribeExtractor {
    fn describe(_operation: &mut Operation) {}
}

impl DescribeExtractor for RequestContext {}
impl DescribeExtractor for State<Arc<Gateway>> {}
impl DescribeExtractor for SignInCookie {}

impl<S: KeyScope> DescribeExtractor for WithKey<S> {
    fn describe(operation: &mut Operation) {
        operation.security = Some(S::SCHEME);
        operation.reasons.extend([
            Reason::Unauthorized,
            Reason::ScopeMissing,
            Reason::TooManyRequests,
        ]);
    }
}

impl DescribeExtractor for Authenticated {
    fn describe(operation: &mut Operation) {
        operation.security = Some("bearer");
        operation.reasons.extend([
            Reason::MissingToken,
            Reason::InvalidToken,
            Reason::TokenExpired,
            Reason::SessionInvalid,
            Reason::AccountDisabled,
            Reason::TooManyRequests,
        ]);
    }
}

impl<T: ToSchema> DescribeExtractor for Body<T> {
    fn describe(operation: &mut Operation) {
        operation.body::<T>(true);
    }
}

impl DescribeExtractor for EmptyBody {
    fn describe(operation: &mut Operation) {
        operation.reads_body();
    }
}

impl<T: IntoParams> DescribeExtractor for Params<T> {
    fn describe(operation: &mut Operation) {
        operation.query::<T>();
    }
}

impl<T: IntoParams + ToSchema> DescribeExtractor for BodyOrQuery<T> {
    fn describe(operation: &mut Operation) {
        if operation.has_body {
            operation.body::<T>(false);
        }
        operation.query::<T>();
    }
}

/// The return type of a handler.
pub(in crate::http) trait DescribeResponse {
    fn describe(operation: &mut Operation);
}

impl<T: ToSchema> DescribeResponse for ApiResponse<T> {
    fn describe(operation: &mut Operation) {
        let data = operation.schema::<T>(true);
        let name = schema_name::<T>() + "Answer";
        operation.success = (name, json!({ "data": data }));
    }
}

impl<T: ToSchema> DescribeResponse for ApiListResponse<T> {
    fn describe(operation: &mut Operation) {
        let data = json!({ "type": "array", "items": operation.schema::<T>(true) });
        let more = json!({ "type": "boolean", "description": "Whether more follow." });
        let name = schema_name::<T>() + LIST + "Answer";
        let ranges = operation.schema::<DamagedRangeText>(true);
        let damaged = json!({ "type": "array", "items": ranges,
            "description": "Messages of the page that cannot be read any more; left out if there are none." });
        operation.success = (name, json!({ "data": data, "has_more": more, DAMAGED: damaged }));
    }
}

/// A handler, described by its types. `T` is the tuple of its extractors, as in `axum::handler::Handler`.
pub(in crate::http) trait DescribeHandler<T> {
    fn describe(operation: &mut Operation);
}

macro_rules! describe_handlers {
    ($($extractor:ident)*) => {
        impl<F, Future, Output, Marker, $($extractor,)*> DescribeHandler<(Marker, $($extractor,)*)> for F
        where
            F: FnOnce($($extractor),*) -> Future,
            Future: std::future::Future<Output = Output>,
            Output: DescribeResponse,
            $($extractor: DescribeExtractor,)*
        {
            fn describe(operation: &mut Operation) {
                $($extractor::describe(operation);)*
                Output::describe(operation);
            }
        }
    };
}

describe_handlers!(A B);
describe_handlers!(A B C);
describe_handlers!(A B C D);
describe_handlers!(A B C D E);
describe_handlers!(A B C D E G);

#[cfg(test)]
mod tests {
    use nexo_wire::http::accounts::OnlineStatus;
    use nexo_wire::http::groups::GroupPage;
    use nexo_wire::http::members::MemberInfo;

    use super::*;

    #[test]
    fn pages_and_lists_are_named_after_their_items() {
        assert_eq!(schema_name::<MemberInfo>(), "MemberInfo");
        assert_eq!(schema_name::<GroupPage<MemberInfo>>(), "MemberInfoGroupPage");
        assert_eq!(schema_name::<Vec<OnlineStatus>>(), "OnlineStatusList");
    }
}
