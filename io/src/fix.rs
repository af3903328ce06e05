//! What FIX sessions need of the system beside their sockets: `store` keeps numbers and messages over a restart, `ledger` remembers
//! which session is which, `clerk` writes message logs and syncs stores off the hot path, `settings` turns the config into sessions
//! of clients and `caller` into sessions with venues.

pub mod caller;
pub mod message_log;
pub mod session_registry;
pub mod handoff;
pub mod settings;
pub mod store;
