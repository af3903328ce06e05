//! The clients of STOMP, as its own tests have them.

#[path = "../stomp/client.rs"]
#[allow(dead_code)]
pub mod client;
#[path = "../stomp/socket.rs"]
#[allow(dead_code)]
pub mod socket;
