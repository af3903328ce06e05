//! The STOMP broker: dialogues as data, played with a broker alone or behind sockets; and arbitrary
//! bytes.

pub mod dialogue;
pub mod host;
pub mod bare;
pub mod fuzz;
