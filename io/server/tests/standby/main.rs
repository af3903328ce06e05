//! Two servers and a broker, real processes: the leader is killed, paused and cut off, and nothing
//! that was acknowledged is lost.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod fences;
mod foreign;
mod full;
mod kills;
mod limits;
mod load;
mod pair;
mod partition;
mod rollback;
mod strategies;
mod link_proxy;
