//! The STOMP broker without a socket: dialogues as data, and any octets at all.

pub mod dialogue;
pub mod fuzz;
pub mod wire;
