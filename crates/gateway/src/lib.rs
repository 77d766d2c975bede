//! Sockets and HTTP: everything between the network and the domain. In reading order:
//!
//! - [`options`]: the limits of a connection
//! - [`listen`]: accepts connections and speaks HTTP on them; `head_watch`: whether a head is clear
//! - `opening`: a socket that has not said who it is
//! - [`session`]: one WebSocket: reads frames, asks `chat`, writes answers and pushes
//! - [`outbox`]: what waits to be written to one socket, bounded
//! - [`connection`]: what others may know of a socket
//! - [`roster`]: which sockets a user has here
//! - [`groups`]: which of them hear a group; `online`: how many do on all nodes
//! - [`delivery`]: an event finds those who hear it; `parcel`: it becomes frames
//! - `behind`: what waits for the news of who may hear it
//! - `relearn`: what every socket does after a silence of the bus
//! - [`recalls`]: what must not be written any more
//! - [`sweep`]: the clockwork all sockets share: silence, expiry, slowness
//! - `perf`: times of single messages, for those who look
//! - [`http`]: the HTTP surface

mod beginning;
mod behind;
pub mod connection;
pub mod delivery;
mod farewell;
pub mod gateway;
pub mod groups;
mod head_watch;
pub mod http;
pub mod listen;
pub mod measure;
mod online;
mod opening;
pub mod options;
pub mod outbox;
mod parcel;
mod perf;
mod present;
mod pump;
pub mod recalls;
mod relearn;
pub mod roster;
pub mod session;
mod settling;
mod strikes;
pub mod sweep;
mod unsettled;
mod wakes;

pub use gateway::Gateway;
pub use options::Options;
