//! REST as clients see it: the real binary, over real sockets.

// Everything here is a test, helpers included.
#![allow(clippy::unwrap_used)]

#[path = "../http_client/mod.rs"]
mod client;
#[path = "../server/service.rs"]
#[allow(dead_code, reason = "the suites of the server use all of it")]
mod process;
mod service;

mod cache;
mod decimals;
mod earlier;
mod hostile;
mod hours;
mod restarts;
mod lists;
mod money;
mod operation;
mod orders;
mod readme;
mod reference;
mod table;
mod wire;
