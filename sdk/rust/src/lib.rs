//! Talks to a Nexo server.
//!
//! What you send arrives once, in order, whatever the network does between; what you get is complete,
//! in order, and told once. A restart goes on where it was.
//!
//! In the order in which things happen:
//! - `client` is the face: it gives jobs to the one task that owns everything, `core`;
//! - `tokens` keeps the sign-in fresh, `http` asks, `dial` opens connections;
//! - `link` stays connected, one `socket` after the other;
//! - `desk` is what belongs to the person who is signed in: `outbox` and `lane` say things until they
//!   are saved, `ear` and `inbox` put what arrives into its `conversation`, which is a `prefix` and
//!   what is `held` of it, shown in the order of `arrange`; `reads` count who has
//!   read ours in a group; `acks` tell the server how far we are; `sync` finds what is missing and
//!   `pull` brings it.

mod acks;
mod arrange;
mod backoff;
mod chance;
mod client;
mod conversation;
mod core;
mod cursors;
mod desk;
mod dial;
mod ear;
mod entry;
mod error;
mod events;
mod file;
mod frames;
mod group;
mod groups;
mod held;
mod http;
mod inbox;
mod jobs;
mod lane;
mod line;
mod link;
mod messages;
mod options;
mod outbox;
mod pace;
mod people;
mod prefix;
mod pull;
mod reads;
mod reason;
mod socket;
mod storage;
mod sync;
mod talk;
mod timing;
mod tokens;
mod types;
mod typing;
mod unplaced;
mod wire;

pub use client::Client;
pub use error::{Error, Refused};
pub use events::{Event, Events, Receipt, State};
pub use file::FileStore;
pub use group::{
    Group, GroupProfile, JoinRequest, Joined, Member, MemberProfile, MemberReadState, Page, Role,
};
pub use groups::Groups;
pub use http::Reply;
pub use line::ConversationLine;
pub use options::Options;
pub use people::{NewUser, People, Presence, Profile, User};
pub use reason::{Close, Reason};
pub use storage::{MemoryStore, Store};
pub use talk::Reader;
pub use timing::Timing;
pub use types::{
    Address, Change, Content, Extra, Message, MessageState, MessageType, Receive, Target,
};
