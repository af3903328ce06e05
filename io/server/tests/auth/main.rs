//! Authentication and authorization on the running service with real clients: every role at every
//! call of REST, STOMP and FIX, wrong and missing credentials, certificates, lock-out, tokens, and
//! changes while it runs.

// Everything here is a test, helpers included.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod attribution;
mod audit;
mod certificates;
mod crowd;
mod guesses;
mod hostile;
mod interfaces;
mod login;
mod scope;
mod verbs;
mod wires;
