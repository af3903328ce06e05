//! The http thread as clients meet it: over real sockets, before real shards.

// All of it is a test, helpers included.
#![allow(clippy::unwrap_used)]

#[path = "../http_client/mod.rs"]
mod client;
#[path = "../folder/mod.rs"]
mod folder;
mod server;

mod guards;
mod life;
mod operation;
mod timeouts;
