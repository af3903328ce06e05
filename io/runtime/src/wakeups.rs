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
        let wakeup = Wakeup::new(|| {});
        Wakeups {
            shards: vec![wakeup.clone(); shards as usize],
            ports: vec![wakeup.clone(); ports],
            link: wakeup,
        }
    }

    pub fn wake_shards(&self, woken: ShardMask) {
        if !woken.is_empty() {
            wake_all(woken.shards().map(|shard| &self.shards[shard.0 as usize]));
        }
    }

    /// Unblocks the threads of these ports unconditionally.
    pub fn call_ports(&self, blocking: PortMask) {
        blocking.ports().for_each(|port| self.port(port).call());
    }

    pub fn wake_ports(&self, woken: PortMask) {
        if !woken.is_empty() {
            wake_all(woken.ports().map(|port| self.port(port)));
        }
    }

    fn port(&self, port: PortId) -> &Wakeup {
        self.ports.get(port.0 as usize).unwrap_or(&self.link)
    }
}
