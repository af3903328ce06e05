//! REST as clients see it: the real binary, over real sockets.

// Everything here is a test, helpers included.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod service;

mod bulk_cancel;
mod cache;
mod compression;
mod decimals;
mod depth;
mod earlier;
mod hostile;
mod history;
mod hours;
mod restarts;
mod limits;
mod lists;
mod money;
mod operation;
mod order_changes;
mod orders;
mod profit;
mod reference;
mod table;
mod wire;
