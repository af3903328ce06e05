//! Strategies as an operator sees them: the real binary, embedded and simulated.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod added;
mod data;
mod direct;
mod distributed;
mod embedded;
mod entry;
mod formats;
mod kills;
mod link;
mod replay;
mod simulation;
mod sweep;
mod hostile_clients;
