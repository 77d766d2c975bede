//! The bus over a real Redis: a single server and a cluster, with outages and forged payloads.

mod away;
mod conforms;
mod nodes;
mod proxy;
mod scene;
mod server;
mod speed;
mod trust;
