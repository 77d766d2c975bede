//! What a handler's types tell: its parameters, its body, whether it needs a token, its answer. The
//! document is made from this, so it cannot say anything else than the handlers do.

use std::sync::Arc;

use axum::extract::State;
use nexo_chat::Reason;
use serde_json::{Value, json};
use utoipa::openapi::RefOr;
use utoipa::openapi::path::ParameterIn;
use utoipa::openapi::schema::Schema;
use utoipa::{IntoParams, ToSchema};

use super::answer::{Answer, Answers, Asked};
use super::operations::Operator;
use super::taken::{Authenticated, Body, Given, NoBody, Params};
use crate::gateway::Gateway;

/// An operation, as far as it is known.
#[derive(Default)]
pub(super) struct Told {
    /// Whether it is asked with a body.
    pub(super) has_body: bool,
    pub(super) parameters: Vec<Value>,
    /// The body's form, and whether there must be one.
    pub(super) body: Option<(Value, bool)>,
    /// The kind of token it needs.
    pub(super) security: Option<&'static str>,
    /// What the envelope of a success is called, and what it has beside what all have.
    pub(super) success: (String, Value),
    /// What it may be refused for.
    pub(super) reasons: Vec<Reason>,
    /// The forms it speaks of by name.
    pub(super) schemas: Vec<Named>,
}

/// A form by its name, and whether the server says it (else it is said to the server).
pub(super) struct Named {
    pub(super) name: String,
    pub(super) schema: RefOr<Schema>,
    pub(super) is_said: bool,
}

impl Told {
    /// A form, by its name unless it is a list.
    fn form<T: ToSchema>(&mut self, is_said: bool) -> Value {
        let mut found = Vec::new();
        T::schemas(&mut found);
        let name = name_of(std::any::type_name::<T>());
        let form = if name.ends_with(LIST) {
            json!(T::schema())
        } else {
            found.push((name.clone(), T::schema()));
            json!({ "$ref": format!("#/components/schemas/{name}") })
        };
        let named = |(name, schema)| Named { name, schema, is_said };
        self.schemas.extend(found.into_iter().map(named));
        form
    }

    fn query<T: IntoParams>(&mut self) {
        let parameters = T::into_params(|| Some(ParameterIn::Query));
        self.parameters.extend(parameters.into_iter().map(|it| json!(it)));
        self.reasons.push(Reason::InvalidParam);
    }

    fn body<T: ToSchema>(&mut self, is_needed: bool) {
        self.body = Some((self.form::<T>(false), is_needed));
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

/// How the name of a list ends.
const LIST: &str = "List";

/// What a type is called: `Page<Member>` is a `MemberPage`.
fn name_of(type_name: &str) -> String {
    let (outer, inner) = type_name.split_once('<').unwrap_or((type_name, ""));
    let outer = outer.rsplit("::").next().unwrap_or(outer);
    let outer = if outer == "Vec" { LIST } else { outer };
    let inner = inner.strip_suffix('>').unwrap_or(inner);
    if inner.is_empty() { outer.to_owned() } else { name_of(inner) + outer }
}

/// Something a handler takes.
pub(super) trait Takes {
    fn tell(_told: &mut Told) {}
}

impl Takes for Asked {}
impl Takes for State<Arc<Gateway>> {}

impl Takes for Operator {
    fn tell(told: &mut Told) {
        told.security = Some("operator");
        told.reasons.push(Reason::Unauthorized);
    }
}

impl Takes for Authenticated {
    fn tell(told: &mut Told) {
        told.security = Some("bearer");
        told.reasons.extend([
            Reason::MissingToken,
            Reason::InvalidToken,
            Reason::TokenExpired,
            Reason::SessionInvalid,
            Reason::TooManyRequests,
        ]);
    }
}

impl<T: ToSchema> Takes for Body<T> {
    fn tell(told: &mut Told) {
        told.body::<T>(true);
    }
}

impl Takes for NoBody {
    fn tell(told: &mut Told) {
        told.reads_body();
    }
}

impl<T: IntoParams> Takes for Params<T> {
    fn tell(told: &mut Told) {
        told.query::<T>();
    }
}

impl<T: IntoParams + ToSchema> Takes for Given<T> {
    fn tell(told: &mut Told) {
        if told.has_body {
            told.body::<T>(false);
        }
        told.query::<T>();
    }
}

/// What a handler gives.
pub(super) trait Gives {
    fn tell(told: &mut Told);
}

impl<T: ToSchema> Gives for Answer<T> {
    fn tell(told: &mut Told) {
        let data = told.form::<T>(true);
        let name = name_of(std::any::type_name::<T>()) + "Answer";
        told.success = (name, json!({ "data": data }));
    }
}

impl<T: ToSchema> Gives for Answers<T> {
    fn tell(told: &mut Told) {
        let data = json!({ "type": "array", "items": told.form::<T>(true) });
        let more = json!({ "type": "boolean", "description": "Whether more follow." });
        let name = name_of(std::any::type_name::<T>()) + LIST + "Answer";
        told.success = (name, json!({ "data": data, "has_more": more }));
    }
}

/// A handler, described by its types. `T` is what it takes, in the form axum has it.
pub(super) trait Tells<T> {
    fn tell(told: &mut Told);
}

macro_rules! tells {
    ($($taken:ident)*) => {
        impl<F, Future, Given, Marker, $($taken,)*> Tells<(Marker, $($taken,)*)> for F
        where
            F: FnOnce($($taken),*) -> Future,
            Future: std::future::Future<Output = Given>,
            Given: Gives,
            $($taken: Takes,)*
        {
            fn tell(told: &mut Told) {
                $($taken::tell(told);)*
                Given::tell(told);
            }
        }
    };
}

tells!(A B);
tells!(A B C);
tells!(A B C D);
tells!(A B C D E);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_types_has_a_name_too() {
        assert_eq!(name_of("nexo::http::Info"), "Info");
        assert_eq!(name_of("nexo::Page<nexo::Member>"), "MemberPage");
        assert_eq!(name_of("alloc::vec::Vec<nexo::Page<nexo::Member>>"), "MemberPageList");
    }
}
