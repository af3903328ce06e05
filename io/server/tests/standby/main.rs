//! Two servers and a broker, real processes: the leader is killed, paused and cut off, and nothing
//! that was acknowledged is lost.

#![allow(clippy::unwrap_used, reason = "tests may")]

#[path = "../strategies/broker.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod broker;

#[path = "../strategies/raw_client.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "each test uses its part, and all of it is a test")]
mod raw_client;

#[path = "../fix/client.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod client;

#[path = "../http_client/mod.rs"]
mod http_client;

#[path = "../server/service.rs"]
#[allow(dead_code, reason = "each test uses its part")]
mod service;

#[path = "../wire/mod.rs"]
mod wire;

mod fences;
mod foreign;
mod full;
mod kills;
mod limits;
mod load;
mod pair;
mod partition;
mod rollback;
mod link_proxy;
