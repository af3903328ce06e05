//! STOMP as clients see it: the real binary and real sockets, with clients of our own and common
//! libraries.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod caps;
mod conformance;
mod fairness;
mod limits;
mod order_books;
mod other_clients;
mod platform;
mod rules;
mod scenarios;
mod sessions;
mod shared_frames;
mod values;
mod websocket;
