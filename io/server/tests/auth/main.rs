//! Authentication and authorization on the running service with real clients: every role at every
//! call of REST, STOMP and FIX, wrong and missing credentials, certificates, lock-out, tokens, and
//! changes while it runs.

// Everything here is a test, helpers included.
#![allow(clippy::unwrap_used)]

#[path = "../addresses/mod.rs"]
mod addresses;
#[path = "../authority/mod.rs"]
mod authority;
#[path = "../http_client/mod.rs"]
mod client;
#[path = "../server/service.rs"]
#[allow(dead_code)]
mod service;

mod attribution;
mod audit;
mod certificates;
mod crowd;
mod guesses;
mod hostile;
mod secured;
mod interfaces;
mod login;
mod scope;
mod verbs;
#[allow(dead_code, reason = "each test uses its part")]
mod wires;
