//! The STOMP clients of the STOMP tests.

#[path = "../stomp/client.rs"]
#[allow(dead_code)]
pub mod client;
#[path = "../stomp/socket.rs"]
#[allow(dead_code)]
pub mod socket;
