//! FIX 4.4 for clients that connect to us and for venues that we connect to: from bytes to requests
//! and from events to bytes, without a socket.
//!
//! ```text
//! bytes ─► frame ─► fields ─┬─► session: sequence numbers, gaps, heartbeats ─► encode ─► bytes
//!                           └─► order ─► entry ─► ClientRequest ─► Desk
//!                                  Event ─► report ─► session ─► encode ─► bytes
//! ```
//!
//! For a venue the direction is reversed: an instruction of a shard ─► session ─► bytes, and bytes
//! ─► session ─► report for the shard.

// Wire format.
mod fix50;
pub mod groups;
pub mod tag;
pub mod msg_type;
pub mod ord_status;
pub mod exec_type;
pub mod frame;
pub mod fields;
pub mod timestamp;
pub mod encode;
pub mod order;

// Parts of a session.
pub mod store;
pub mod schedule;
pub mod rate_limit;

// Orders of clients.
pub mod orders;
pub mod reject;
pub mod resolve;
pub mod entry;
pub mod report;
mod terms_text;
pub mod drop_copy;
pub mod positions;
pub mod market_data;

// Orders at a venue.
pub mod venue;

// The session.
pub mod dictionary;
pub mod version;
pub mod session;
pub mod logon_probe;
