//! A client of a Nexo server.
//!
//! A message you send is stored once and in order, whatever the network does meanwhile. Messages you
//! receive are complete, in order, and emitted once. After a restart the client resumes.
//!
//! The modules, in the order of the data flow:
//! - `client`, `messaging`, `devices` and `privacy` are the API; they send `jobs` to the task that
//!   owns the state, `core`;
//! - `tokens` refreshes the sign-in, `http` sends requests, `dial` opens connections;
//! - `link` keeps the client connected, with one `socket` after the other;
//! - `account_state` is the state of the signed-in user: `outbox` and `lane` send messages until they
//!   are saved; `dispatcher` and `inbox` put incoming messages into their `conversation`, which has a
//!   `contiguous` sequence and a `message_window`, shown in the order of `arrange`; `reads` has the
//!   cursors of group members; `acks` sends our own cursors; `sync` finds what is missing and `pull`
//!   fetches it; `own_joins` emits joins that a new conversation skipped.

mod account_state;
mod acks;
mod arrange;
mod backoff;
mod client;
mod clock;
mod contiguous;
mod conversation;
mod conversation_summary;
mod core;
mod cursors;
mod devices;
mod dial;
mod dispatcher;
mod error;
mod events;
mod file;
mod frame_sender;
mod frames;
mod group;
mod groups;
mod http;
mod inbox;
mod jobs;
mod lane;
mod link;
mod message_window;
mod messages;
mod messaging;
mod options;
mod outbox;
mod outbox_entry;
mod own_joins;
mod people;
mod privacy;
mod pull;
mod rate_limiter;
mod reads;
mod reason;
mod socket;
mod storage;
mod sync;
mod timing;
mod tokens;
mod types;
mod typing;
mod unsequenced;

pub use client::Client;
pub use conversation_summary::ConversationSummary;
pub use devices::{Device, Platform};
pub use error::{Error, Refused};
pub use events::{Event, Events, Receipt, State};
pub use file::FileStore;
pub use group::{
    Group, GroupProfile, JoinRequest, Joined, Member, MemberProfile, MemberReadState, Page, Role,
};
pub use groups::Groups;
pub use http::Reply;
pub use messaging::Reader;
pub use options::Options;
pub use people::{NewUser, People, Presence, Profile, User};
pub use privacy::{Audience, Consent, ConsentChange};
pub use reason::{Close, Reason};
pub use storage::{MemoryStore, Store};
pub use timing::Timing;
pub use tokens::LoginTokens;
pub use types::{
    Address, Change, ChangeKind, Content, Extra, Message, MessageState, MessageType, Receive,
    Target,
};
