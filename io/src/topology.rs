//! The threads of the server and their connections: the one place that builds the mesh, its ports
//! and the threads.
//!
//! ```text
//!             shared                              dedicated
//! shared      shards and gateways                 shard-0 … shard-n     a shard each
//!                                                 gateway-0 … gateway-m a gateway each
//! http        readers, requests, the page         the same
//! main        start, signals, stop                the same
//! ```
//!
//! Both layouts run the same duties and differ only in the threads that step them. A test steps all
//! of them itself, see [`crate::platform`].

pub mod worker_thread;

use std::sync::Arc;

use pitlane_engine::id::ShardId;

use self::worker_thread::{Duty, ThreadSpec};
use crate::config::{Layout, TopologyConfig};
use crate::net::settings::NetSettings;
use crate::platform::gateway::Gateway;
use crate::platform::shard_thread::ShardDuty;
use crate::platform::{self, PortThread};
use crate::thread_wakeup::ThreadWakeup;
use crate::wakeup::Wakeup;
use crate::wakeups::Wakeups;

/// The planned threads and their wake-ups.
#[derive(Debug)]
pub struct ThreadPlan {
    settings: TopologyConfig,
    /// Name, wake-up slot and wake-up, by thread.
    wakeups: Vec<(String, ThreadWakeup, Wakeup)>,
    pub bells: Arc<Wakeups>,
}

impl ThreadPlan {
    /// Plans the configured threads for the shards in `own`. `http` wakes the http thread, which
    /// forwards commands to the shards of other servers.
    pub fn new(settings: TopologyConfig, own: &[ShardId], http: Wakeup) -> ThreadPlan {
        let (shards, gateways) = (own.len(), settings.gateways);
        let names: Vec<String> = match settings.layout {
            Layout::Shared => vec!["shared".to_string()],
            Layout::Dedicated => {
                let shards = own.iter().map(|shard| format!("shard-{shard}"));
                shards.chain((0..gateways).map(|gateway| format!("gateway-{gateway}"))).collect()
            }
        };
        let with_wakeup = |name: String| {
            let wakeup = ThreadWakeup::default();
            let bell = wakeup.bell();
            (name, wakeup, bell)
        };
        let wakeups: Vec<_> = names.into_iter().map(with_wakeup).collect();
        let bell = |thread: usize| match settings.layout {
            Layout::Shared => wakeups[0].2.clone(),
            Layout::Dedicated => wakeups[thread].2.clone(),
        };
        let shard_bell = |shard: u8| match own.iter().position(|own| own.0 == shard) {
            Some(thread) => bell(thread),
            None => http.clone(),
        };
        let shard_bells: Vec<Wakeup> = (0..settings.shards).map(shard_bell).collect();
        let gateway_bell = |gateway: usize| bell(shards + gateway);
        let port_bells = (0..platform::ports_len(gateways)).map(|port| match platform::home(port) {
            PortThread::Gateway(gateway) => gateway_bell(gateway as usize),
            PortThread::Http => http.clone(),
        });
        let bells =
            Arc::new(Wakeups { ports: port_bells.collect(), shards: shard_bells, link: http.clone() });
        ThreadPlan { settings, wakeups, bells }
    }

    /// Returns the threads of shards and gateways, each with its duties.
    pub fn members(
        self,
        shards: Vec<ShardDuty>,
        gateways: Vec<Gateway>,
        net: &NetSettings,
    ) -> Vec<ThreadSpec> {
        let TopologyConfig { shard_cores, gateway_cores, .. } = &self.settings;
        let cores: Vec<Option<u32>> = match self.settings.layout {
            Layout::Shared => vec![shard_cores.first().copied()],
            Layout::Dedicated => {
                let of = |cores: &[u32], count: usize| -> Vec<Option<u32>> {
                    (0..count).map(|at| cores.get(at).copied()).collect()
                };
                [of(shard_cores, shards.len()), of(gateway_cores, gateways.len())].concat()
            }
        };
        let mut duties: Vec<Duty> = shards.into_iter().map(|shard| Duty::Shard(Box::new(shard))).collect();
        duties.extend(gateways.into_iter().map(|gateway| Duty::Gateway(Box::new(gateway))));
        let mut duties = duties.into_iter();
        let idle = self.settings.idle;
        let members = self.wakeups.into_iter().zip(cores).map(|((name, wakeup, bell), core)| {
            let duties: Vec<Duty> = match self.settings.layout {
                Layout::Shared => duties.by_ref().collect(),
                Layout::Dedicated => duties.by_ref().take(1).collect(),
            };
            let has_gateway = duties.iter().any(|duty| matches!(duty, Duty::Gateway(_)));
            let net = has_gateway.then(|| net.clone());
            ThreadSpec { name, duties, idle, core, wakeup, bell, net }
        });
        members.collect()
    }
}
