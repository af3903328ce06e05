//! Who may come in and do what, on the running service with real clients: every role at every call, wrong and missing
//! credentials, lock-out, tokens, and changes while it runs.

// All of it is a test, helpers included.
#![allow(clippy::unwrap_used)]

#[path = "../http_client/mod.rs"]
mod client;
#[path = "../server/service.rs"]
#[allow(dead_code)]
mod service;

mod audit;
mod house;
mod login;
mod sight;
mod verbs;
