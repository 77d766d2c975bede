//! The domain: what can be said, who may say it, and what is promised about it.
//!
//! No sockets, no disk, no runtime. In reading order:
//!
//! - [`ids`]: names of things, each its own type
//! - [`model`], [`standing`], [`change`], [`membership`]: the things themselves; [`progress`]: how cursors move
//! - [`command`]: everything a person can ask and everything they can hear
//! - [`reason`]: everything they can be refused for
//! - [`rules`]: the numbers and choices an operator may set
//! - [`invariants`]: the promises as predicates, called by tests and by the code
//! - [`store`], [`bus`], [`intake`], [`clock`], [`passwords`]: the contracts the domain needs from others
//! - [`policy`]: pure decisions
//! - [`chat`]: puts the features together: [`auth`], [`reset`], [`devices`], [`token`], [`people`], [`profile`],
//!   [`presence`], [`group`], [`send`], [`words`], [`read`],
//!   [`conversations`], [`recall`], [`query`], [`sync`], [`announce`]
//! - `trail`, `meters`: what is logged and counted of acknowledgements

pub mod announce;
pub mod auth;
pub mod bus;
pub mod change;
pub mod chat;
pub mod clock;
pub mod command;
pub mod conversations;
pub mod devices;
mod failed;
pub mod group;
pub mod ids;
pub mod intake;
pub mod invariants;
pub mod membership;
mod meters;
pub mod model;
pub mod passwords;
pub mod people;
pub mod policy;
pub mod presence;
pub mod profile;
pub mod progress;
pub mod query;
pub mod read;
pub mod reason;
pub mod recall;
pub mod reset;
pub mod rules;
pub mod send;
pub mod standing;
pub mod store;
pub mod sync;
pub mod throttle;
pub mod token;
mod trail;
mod tries;
pub mod words;

pub use chat::Chat;
pub use reason::{Error, Reason};

/// A future that a contract returns: boxed, because the contracts are used as trait objects.
pub type Boxed<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
