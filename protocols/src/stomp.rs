//! STOMP 1.0, 1.1 and 1.2 for a broker: topics in, frames out. Modules are in reading order.

pub mod frame;
pub mod escape;
pub mod decode;
pub mod inbox;

pub mod topic;
pub mod pattern;
pub mod index;

pub mod body_format;
pub mod payload;
pub mod encode;
pub mod rendered;
pub mod held_updates;
pub mod depth;
pub mod order_book;
pub mod market;
pub mod bars;

pub mod settings;
pub mod access;
pub mod close_reason;
pub mod heartbeat;
pub mod throttle;
pub mod conflation;
pub mod slot_queue;
pub mod slots;
pub mod outbox;
pub mod subscription;
pub mod transaction;
pub mod session;

pub mod broker;
pub mod sub_protocol;
