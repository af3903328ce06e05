//! The bells of all threads, by whom they are rung for.

use pitlane_engine::id::{PortId, PortMask};
use pitlane_engine::mesh::ShardMask;

use crate::wakeup::{Wakeup, wake_all};

/// Threads that have several ports or shards have their bell here several times.
#[derive(Debug)]
pub struct Wakeups {
    /// By shard.
    pub shards: Vec<Wakeup>,
    /// By port.
    pub ports: Vec<Wakeup>,
    /// Of the thread that speaks to other servers.
    pub link: Wakeup,
}

impl Wakeups {
    /// For a platform that is stepped by one thread, where nobody sleeps.
    pub fn silent(shards: u8, ports: usize) -> Wakeups {
        let bell = Wakeup::new(|| {});
        Wakeups { shards: vec![bell.clone(); shards as usize], ports: vec![bell.clone(); ports], link: bell }
    }

    pub fn wake_shards(&self, called: ShardMask) {
        if !called.is_empty() {
            wake_all(called.shards().map(|shard| &self.shards[shard.0 as usize]));
        }
    }

    /// Calls whether they doze or not.
    pub fn call_ports(&self, awaited: PortMask) {
        awaited.ports().for_each(|port| self.port(port).call());
    }

    pub fn wake_ports(&self, called: PortMask) {
        if !called.is_empty() {
            wake_all(called.ports().map(|port| self.port(port)));
        }
    }

    fn port(&self, port: PortId) -> &Wakeup {
        self.ports.get(port.0 as usize).unwrap_or(&self.link)
    }
}
