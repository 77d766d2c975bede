//! The bus over a real Redis: alone and as a cluster, and with everything that can happen to it.

mod away;
mod conforms;
mod nodes;
mod passage;
mod scene;
mod server;
mod speed;
mod trust;
