//! The STOMP broker: dialogues as data, played with a broker alone or behind sockets; and any octets at all.

pub mod dialogue;
pub mod host;
pub mod bare;
pub mod fuzz;
pub mod wire;
