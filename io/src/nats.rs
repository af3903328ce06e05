//! The message broker: how it is reached, and how things are called there.
//!
//! ```text
//! pitlane.<installation>.market              prices, from the server to all strategies         core NATS
//! pitlane.<installation>.generic             events between strategies, and with clients       JetStream
//! pitlane.<installation>.life                phases of all strategies, as JSON                 core NATS
//! pitlane.<installation>.events.<strategy>   what shards say of one strategy, numbered         core NATS
//! pitlane.<installation>.ask.<strategy>      its requests, each with an answer                 core NATS
//! pitlane.<installation>.inbox.<strategy>.>  the answers to them, and nowhere else             core NATS
//! pitlane.<installation>.hello.<strategy>    whether the server knows it                       core NATS
//! pitlane.<installation>.canary.<strategy>   where no strategy may publish                     core NATS
//! pitlane.<installation>.standby.<group>.>   the data folder of a group of servers             JetStream
//! pitlane.<cluster>.call.<member>            what a server of a cluster says to all others     core NATS
//! pitlane.<cluster>.letter.<member>.<from>   what one of them says to this one                 core NATS
//! pitlane.<cluster>.again.<member>.<from>    calls that it has missed                          core NATS
//! ```
//!
//! [`rights`] lists who publishes on and subscribes to which of them.
//!
//! Who guarantees what: what an order becomes is in the server's journal, numbered, and whoever missed some of it asks the server; the broker
//! may forget all of it at any time. Prices are replaced by newer ones. Events between strategies have no journal of ours: those
//! JetStream keeps, for one that is away, and takes each once by its id.
//!
//! What is in the messages stands in [`pitlane_engine::strategy::remote_protocol`]; who speaks them are `http/outposts` (the server) and `outpost` (a
//! strategy's process).

pub mod checkup;
pub mod generic;
pub mod link;
pub mod rights;
pub mod subjects;

/// A setting of the broker that should be changed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub found: String,
    pub mend: String,
}
