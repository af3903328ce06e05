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
//! of them itself, see [`pitlane_gateway`].

pub mod worker_thread;

use std::sync::Arc;

use pitlane_config::{Layout, TopologyConfig};
use pitlane_engine::id::ShardId;
use pitlane_gateway::PortThread;
use pitlane_gateway::gateway::Gateway;
use pitlane_gateway::shard_thread::ShardDuty;
use pitlane_net::settings::NetSettings;
use pitlane_runtime::thread_class::ThreadClass;
use pitlane_runtime::thread_wakeup::ThreadWakeup;
use pitlane_runtime::wakeup::Wakeup;
use pitlane_runtime::wakeups::Wakeups;

use self::worker_thread::{Duty, ThreadSpec};

/// The planned threads and their wake-ups.
#[derive(Debug)]
pub struct ThreadPlan {
    settings: TopologyConfig,
    /// Name, wake-up slot and wake-up, by thread.
    threads: Vec<(String, ThreadWakeup, Wakeup)>,
    pub wakeups: Arc<Wakeups>,
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
            let wakeup_slot = ThreadWakeup::default();
            let wakeup = wakeup_slot.wakeup();
            (name, wakeup_slot, wakeup)
        };
        let threads: Vec<_> = names.into_iter().map(with_wakeup).collect();
        let wakeup = |thread: usize| match settings.layout {
            Layout::Shared => threads[0].2.clone(),
            Layout::Dedicated => threads[thread].2.clone(),
        };
        let shard_wakeup = |shard: u8| match own.iter().position(|own| own.0 == shard) {
            Some(thread) => wakeup(thread),
            None => http.clone(),
        };
        let shard_wakeups: Vec<Wakeup> = (0..settings.shards).map(shard_wakeup).collect();
        let gateway_wakeup = |gateway: usize| wakeup(shards + gateway);
        let port_wakeups =
            (0..pitlane_gateway::ports_len(gateways)).map(|port| match pitlane_gateway::port_thread(port) {
                PortThread::Gateway(gateway) => gateway_wakeup(gateway as usize),
                PortThread::Http => http.clone(),
            });
        let wakeups =
            Arc::new(Wakeups { ports: port_wakeups.collect(), shards: shard_wakeups, link: http.clone() });
        ThreadPlan { settings, threads, wakeups }
    }

    /// Returns the threads of shards and gateways, each with its duties.
    pub fn thread_specs(
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
        let thread_specs = self.threads.into_iter().zip(cores).map(|((name, wakeup_slot, wakeup), core)| {
            let duties: Vec<Duty> = match self.settings.layout {
                Layout::Shared => duties.by_ref().collect(),
                Layout::Dedicated => duties.by_ref().take(1).collect(),
            };
            let has_gateway = duties.iter().any(|duty| matches!(duty, Duty::Gateway(_)));
            let net = has_gateway.then(|| net.clone());
            ThreadSpec { name, duties, idle, core, wakeup_slot, wakeup, net, class: ThreadClass::Orders }
        });
        thread_specs.collect()
    }
}
