//! STOMP as clients see it: the real binary and real sockets, with clients of our own and common
//! libraries.

#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "../server/service.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod service;

mod caps;
mod client;
mod conformance;
mod limits;
mod other_clients;
mod platform;
mod rules;
mod scenarios;
mod sessions;
mod socket;
mod values;
mod websocket;
