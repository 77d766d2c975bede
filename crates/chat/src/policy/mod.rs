//! Decisions as pure functions of facts: no await, no clock, no log.

pub mod account;
mod common_passwords;
pub mod delivery;
pub mod group;
pub mod name;
pub mod password;
pub mod read;
pub mod recall;
pub mod send;
pub mod session;
