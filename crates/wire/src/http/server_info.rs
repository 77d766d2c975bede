//! `GET /server/info`.

use serde::Serialize;
use utoipa::ToSchema;

use crate::dialect::ClientLimits;
use crate::field_schemas;

/// The server: what it is, what it speaks, and what one must keep to.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServerInfo {
    /// What it is called.
    pub name: &'static str,
    /// Which version of it.
    pub version: String,
    /// The dialects of its WebSocket.
    pub dialects: [&'static str; 3],
    /// How many devices of one person may be there at once.
    #[schema(schema_with = field_schemas::session_policy)]
    pub session_policy: &'static str,
    /// Whether people make accounts by themselves.
    #[schema(schema_with = field_schemas::registration)]
    pub registration: &'static str,
    pub sign_in: SignInWays,
    /// The limits, as `AUTH_OK` tells them.
    pub limits: ClientLimits,
}

/// How people sign in.
#[derive(Debug, Serialize, ToSchema)]
pub struct SignInWays {
    /// With a password.
    pub password: bool,
    /// With a token of the operator's own identity provider (`POST /auth/token`).
    pub token: bool,
    /// Through the browser (`GET /auth/oidc/start`); left out if there is no provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcWay>,
}

/// An `OpenID` Connect provider.
#[derive(Debug, Serialize, ToSchema)]
pub struct OidcWay {
    /// What to write on the button.
    pub name: String,
}
