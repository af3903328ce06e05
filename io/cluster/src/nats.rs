//! The message broker: how to reach it, and the subjects used there.
//!
//! ```text
//! pitlane.<installation>.market              prices, from the server to all strategies         core NATS
//! pitlane.<installation>.generic             events between strategies, and with clients       JetStream
//! pitlane.<installation>.life                phases of all strategies, as JSON                 core NATS
//! pitlane.<installation>.events.<strategy>   shard events of one strategy, numbered            core NATS
//! pitlane.<installation>.ask.<strategy>      its requests, each with an answer                 core NATS
//! pitlane.<installation>.inbox.<strategy>.>  the answers to them, and nowhere else             core NATS
//! pitlane.<installation>.hello.<strategy>    asks whether the server knows it                  core NATS
//! pitlane.<installation>.canary.<strategy>   a subject on which no strategy may publish        core NATS
//! pitlane.<installation>.standby.<group>.>   the data folder of a group of servers             JetStream
//! pitlane.<cluster>.call.<member>            messages of a cluster member to all others        core NATS
//! pitlane.<cluster>.letter.<member>.<from>   messages of one member to another                 core NATS
//! pitlane.<cluster>.again.<member>.<from>    requests for missed calls                         core NATS
//! ```
//!
//! [`rights`] lists which login publishes on and subscribes to which of them.
//!
//! Guarantees: order events are in the server's journal, numbered, and a process that missed some
//! of them asks the server; the broker may lose all of them at any time. Prices are replaced by
//! newer ones. Events between strategies are not in a journal: JetStream keeps them for a strategy
//! that is away, and stores each once by its id.
//!
//! [`pitlane_protocols::remote::strategy`] defines the contents of the messages. The two
//! sides are `http/remote_strategies` (the server) and `strategy_process` (a strategy's process).

pub mod checkup;
pub mod generic;
pub mod link;
pub mod rights;
pub mod subjects;

/// A setting of the broker that should be changed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub found: String,
    pub remedy: String,
}
