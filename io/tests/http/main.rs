//! The http thread as clients meet it: over real sockets, before real shards.

mod server;

mod guards;
mod life;
mod operation;
mod timeouts;
