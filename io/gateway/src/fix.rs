//! Parts of FIX sessions outside the gateway's sockets. `store` persists sequence numbers and
//! messages across restarts; `session_registry` assigns the numbers of sessions; `message_log`
//! writes message logs and syncs stores off the hot path; `handoff` moves a connection to another
//! gateway; `settings` builds client sessions and `caller` builds venue sessions from the config.

pub mod venue;
pub mod message_log;
pub mod session_registry;
pub mod handoff;
pub mod settings;
pub mod store;
