//! The http thread as clients see it: over real sockets, with real shards.

// Everything here is a test, helpers included.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod server;

mod guards;
mod lifecycle;
mod operation;
mod timeouts;
