//! The http thread as clients see it: over real sockets, with real shards.

// Everything here is a test, helpers included.
#![allow(clippy::unwrap_used)]

#[path = "../authority/mod.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod authority;
#[path = "../http_client/mod.rs"]
mod client;
#[path = "../folder/mod.rs"]
mod folder;
mod server;

mod guards;
mod lifecycle;
mod operation;
mod timeouts;
