//! Strategies as an operator sees them: the real binary, embedded and simulated.

#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "../server/service.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod service;

#[path = "../stomp/client.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod client;

#[path = "../authority/mod.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod authority;
#[allow(dead_code, reason = "each test uses its part")]
mod broker;
mod data;
mod distributed;
mod embedded;
mod entry;
mod kills;
mod link;
mod replay;
mod simulation;
#[allow(dead_code, reason = "each test uses its part")]
mod raw_client;
mod hostile_clients;
