//! The wake-ups of all threads, by shard and by port.

use pitlane_engine::id::{PortId, PortMask};
use pitlane_engine::mesh::ShardMask;

use crate::wakeup::{Wakeup, wake_all};

/// The wake-ups of all threads. A thread with several ports or shards occurs several times.
#[derive(Debug)]
pub struct Wakeups {
    /// By shard.
    pub shards: Vec<Wakeup>,
    /// By port.
    pub ports: Vec<Wakeup>,
    /// Wake-up of the thread that communicates with other servers.
    pub link: Wakeup,
}

impl Wakeups {
    /// Returns wake-ups without effect, for a platform that one thread steps and in which no thread
    /// blocks.
    pub fn silent(shards: u8, ports: usize) -> Wakeups {
        let bell = Wakeup::new(|| {});
        Wakeups { shards: vec![bell.clone(); shards as usize], ports: vec![bell.clone(); ports], link: bell }
    }

    pub fn wake_shards(&self, called: ShardMask) {
        if !called.is_empty() {
            wake_all(called.shards().map(|shard| &self.shards[shard.0 as usize]));
        }
    }

    /// Unblocks the threads of these ports unconditionally.
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
