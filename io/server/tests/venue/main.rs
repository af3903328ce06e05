//! The running service and its venues: QuickFIX as an acceptor, a second Pitlane, several of them
//! beside a simulated one, and either side killed while orders are in flight.

#[path = "../fix/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "../http_client/mod.rs"]
#[allow(clippy::unwrap_used)]
mod http_client;
mod kills;
mod market;
mod operation;
mod orders;
mod outages;
#[path = "../fix/peer.rs"]
#[allow(dead_code)]
mod peer;
mod prices;
mod several;
#[path = "../server/service.rs"]
#[allow(dead_code)]
mod service;
mod venue;
