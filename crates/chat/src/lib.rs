//! The domain: commands, the policies that allow or refuse them, and the contracts they need.
//!
//! No sockets, no disk, no runtime. In reading order:
//!
//! - [`ids`]: ids, sequence numbers and times, each its own type
//! - [`model`]: the nouns, from [`account`], [`message`], [`standing`] and [`change`]; [`membership`] and
//!   [`group_action`]: those of groups; [`progress`]: how cursors move
//! - [`command`]: every request of a session and its reply; [`event`]: everything pushed without a request
//! - [`reason`]: every reason for a refusal
//! - [`rules`]: limits and choices that an operator sets
//! - [`invariants`]: the promises as predicates, called by tests and by the engines
//! - [`store`], [`bus`], [`two_phase`], [`clock`], [`passwords`]: the contracts the domain needs from others
//! - [`policy`]: pure decisions
//! - [`chat`]: routes each command to a feature: [`auth`], [`password_reset`], [`devices`], [`token`],
//!   [`external_token`], [`external_login`] and [`oidc`] (the app's own identity provider), [`user_lookup`], [`profile`], [`presence`], [`group`], [`send`], [`word_filter`], [`read`],
//!   [`conversations`], [`recall`], [`query`], [`sync`]; [`throttle`], `delay_limit`: rate limits; `steady_time`: a
//!   clock that does not go back; [`second_factor`]: a code after the password, [`totp`]: codes of authenticator apps; [`form_encoding`]: addresses and forms
//! - [`blocks`], [`consent`], `strangers`: whom a user does not want to hear from
//! - [`invites`]: links that let people register; [`keys`]: API keys; [`admin`]: what operators and backends do with them; [`audit`]: the log of it;
//!   `documents`: how such things are stored
//! - [`cursor_audit`], `meters`: log lines and metrics of acknowledgements

pub mod account;
pub mod admin;
pub mod audit;
pub mod auth;
pub mod blocks;
pub mod bus;
pub mod change;
pub mod chat;
pub mod clock;
pub mod command;
pub mod consent;
pub mod conversations;
pub mod cursor_audit;
mod delay_limit;
pub mod devices;
mod documents;
pub mod event;
pub mod external_login;
pub mod external_token;
mod failed_logins;
pub mod form_encoding;
pub mod group;
pub mod group_action;
pub mod ids;
pub mod invariants;
pub mod invites;
pub mod keys;
mod login_throttle;
pub mod membership;
pub mod message;
mod meters;
pub mod model;
pub mod oidc;
pub mod password_reset;
pub mod passwords;
pub mod policy;
pub mod presence;
pub mod profile;
pub mod progress;
pub mod query;
pub mod read;
pub mod reason;
pub mod recall;
pub mod rules;
pub mod second_factor;
pub mod send;
pub mod standing;
mod steady_time;
pub mod store;
mod strangers;
pub mod sync;
pub mod throttle;
pub mod token;
pub mod totp;
pub mod two_phase;
pub mod user_lookup;
pub mod word_filter;

pub use chat::Chat;
pub use reason::{DetailedReason, Error, Reason};

/// A future that a contract returns: boxed, because the contracts are used as trait objects.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
