//! FIX 4.4, for clients that come to us and for venues that we go to: from bytes to requests and from events to bytes, without a socket.
//!
//! ```text
//! bytes ─► frame ─► fields ─┬─► session: numbers, gaps, heartbeats, rejects ─► encode ─► bytes
//!                           └─► order ─► entry ─► Request ─► Desk
//!                                  Event ─► report ─► session ─► encode ─► bytes
//! ```
//!
//! The other way round for a venue: an instruction of a shard ─► session ─► bytes, and bytes ─► session ─► report for the shard.

// Bytes.
pub mod tag;
pub mod msg_type;
pub mod ord_status;
pub mod exec_type;
pub mod frame;
pub mod fields;
pub mod timestamp;
pub mod encode;
pub mod order;

// What a session stands on.
pub mod store;
pub mod schedule;
pub mod rate_limit;

// Orders.
pub mod orders;
pub mod reject;
pub mod resolve;
pub mod entry;
pub mod report;

// Orders that go on to a venue.
pub mod venue;

// The session.
pub mod dictionary;
pub mod session;
pub mod logon_probe;
