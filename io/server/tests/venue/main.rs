//! The running service and its venues: QuickFIX as an acceptor, a second Pitlane, a stand-in of
//! Binance Spot, several of them beside a simulated one, and either side killed while orders are in
//! flight.

mod binance;
mod binance_standin;
mod books;
mod cluster;
mod dialect;
mod fees;
mod hostile_venue;
mod isolation;
mod kills;
mod market;
mod operation;
mod orders;
mod outages;
mod prices;
mod refdata_import;
mod several;
mod venue;
