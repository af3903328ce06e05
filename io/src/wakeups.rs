//! The bells of all threads, by whom they are rung for.

use pitlane_engine::id::{PortId, PortMask};
use pitlane_engine::mesh::ShardMask;

use crate::wake::{Bell, wake_all};

/// Threads that have several ports or shards have their bell here several times.
#[derive(Debug)]
pub struct Bells {
    /// By shard.
    pub shards: Vec<Bell>,
    /// By port.
    pub ports: Vec<Bell>,
    /// Of the thread that speaks to other servers.
    pub link: Bell,
}

impl Bells {
    /// For a platform that is stepped by one thread, where nobody sleeps.
    pub fn silent(shards: u8, ports: usize) -> Bells {
        let bell = Bell::new(|| {});
        Bells { shards: vec![bell.clone(); shards as usize], ports: vec![bell.clone(); ports], link: bell }
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

    fn port(&self, port: PortId) -> &Bell {
        self.ports.get(port.0 as usize).unwrap_or(&self.link)
    }
}
