//! The message broker: how it is reached, and how things are called there.
//!
//! ```text
//! pitlane.<installation>.market              prices, from the server to all strategies         core NATS
//! pitlane.<installation>.generic             events between strategies, and with clients       JetStream
//! pitlane.<installation>.life                phases of all strategies, as JSON                 core NATS
//! pitlane.<installation>.events.<strategy>   what shards say of one strategy, numbered         core NATS
//! pitlane.<installation>.ask.<strategy>      its requests, each with an answer                 core NATS
//! pitlane.<cluster>.call.<member>            what a server of a cluster says to all others     core NATS
//! pitlane.<cluster>.letter.<member>          what one of them says to this one                 core NATS
//! pitlane.<cluster>.again.<member>           calls that it has missed                          core NATS
//! ```
//!
//! Who guarantees what: what an order becomes is in the server's journal, numbered, and whoever missed some of it asks the server; the broker
//! may forget all of it at any time. Prices are replaced by newer ones. Events between strategies have no journal of ours: those
//! JetStream keeps, for one that is away, and takes each once by its id.
//!
//! What is in the messages stands in [`pitlane_engine::strategy::letters`]; who speaks them are `http/outposts` (the server) and `outpost` (a
//! strategy's process).

pub mod generic;
pub mod link;
pub mod subjects;
