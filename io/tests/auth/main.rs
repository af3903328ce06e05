//! Who may come in and do what, on the running service with real clients: every role at every call, wrong and missing
//! credentials, lock-out, tokens, and changes while it runs.

// All of it is a test, helpers included.
#![allow(clippy::unwrap_used)]

#[path = "../http/server.rs"]
#[allow(dead_code)]
mod server;
#[path = "../server/service.rs"]
#[allow(dead_code)]
mod service;

mod house;
mod login;
mod verbs;
