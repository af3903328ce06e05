//! Builds a platform: shards, gateways, control, market source, demo trader and runner, connected
//! by lanes, and a port for the http thread.
//!
//! ```text
//! gateway: control ─┐                    ┌─► control, trader, runner
//!          market ──┼─► lanes ─► shards ─┤
//!          trader ──┘                    └─► http: the read model
//! ```
//!
//! Each part receives the time as an argument and does a bounded amount of work per poll.
//! `pitlane::topology` runs the parts on threads; [`Platform`] steps all of them on one thread,
//! for tests and with a virtual clock.

pub mod binance;
pub mod event_counts;
pub mod fix;
pub mod notifications;
pub mod printer;
pub mod random_trader;
pub mod report;
mod signing_key;
pub mod stomp;
pub mod strategies;
pub mod control;
pub mod gateway;
pub mod market_source;
pub mod reload;
pub mod strategy_runner;
pub mod shard_thread;
pub mod demo_trader;

use std::net::IpAddr;
use std::sync::Arc;

use pitlane_engine::command::{CommandKind, WatchTarget};
use pitlane_engine::desk::IdBlock;
use pitlane_engine::event::{Event, Tick};
use pitlane_engine::id::{AdapterId, Origin, PortId, PortMask, ShardId, Source};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::{Depths, PortClass, PortEnd, ShardEnd, link, mesh};
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::refdata::RefData;
use pitlane_engine::sender::SenderAddress;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::view::{View, ViewSettings};
use pitlane_engine::worker::Worker;
use pitlane_strategy::Operation;
use pitlane_strategy::host::HostSettings;
use pitlane_strategy::runner::Runner;

use self::control::{Control, ControlSettings, session_states};

use pitlane_config::{Config, GATEWAYS_MAX, ServiceMode, StrategyConfig};
use pitlane_journal::Writer;
use pitlane_runtime::lifecycle::LifecyclePhase;
use pitlane_runtime::mailbox::{MailboxSender, mailbox};
use pitlane_runtime::metrics::Registry;
use pitlane_runtime::stages::{self, LatencyRecorder, stages};
use pitlane_runtime::wakeups::Wakeups;

use self::demo_trader::DemoTrader;
use self::gateway::Gateway;
use self::market_source::MarketSource;
use self::reload::{RELOADS_MAX, ReloadedRefData};
use self::shard_thread::{CommandJournaling, ShardDuty};
use self::strategy_runner::RunnerDuty;

/// Maximum number of events that one port reads per poll, so that the other ports are polled too.
pub const EVENTS_PER_POLL_MAX: usize = 4_096;

/// The ports of the mesh. Orders store their port, so the meaning of a number never changes: new
/// ports get higher numbers.
pub const CONTROL: PortId = PortId(0);
pub const HTTP: PortId = PortId::HTTP;
pub const FEED: PortId = PortId(2);
pub const TRADER: PortId = PortId(3);
/// Port of the strategies that run in this process.
pub const RUNNER: PortId = PortId(4);
/// First of the gateways' own ports.
pub const GATEWAYS: u8 = 5;
const _: () = assert!(GATEWAYS + GATEWAYS_MAX <= PortId::MAX + 1);

const FIXED_PORTS: [PortClass; GATEWAYS as usize] =
    [PortClass::Control, PortClass::Client, PortClass::Feed, PortClass::Client, PortClass::Client];

/// The thread that polls a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortThread {
    Gateway(u8),
    Http,
}

pub fn port_thread(port: usize) -> PortThread {
    match PortId(index_u8(port)) {
        HTTP => PortThread::Http,
        PortId(port) => PortThread::Gateway(port.saturating_sub(GATEWAYS)),
    }
}

pub fn ports_len(gateways: u8) -> usize {
    FIXED_PORTS.len() + gateways as usize
}

/// Size of the block of id numbers that each start takes. A process never uses up a block, and the
/// blocks suffice for a billion starts.
pub const NUMBERS: u64 = 1 << 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformSettings {
    pub shards: u8,
    /// The shards of this server, in ascending order; other servers own the others.
    pub own: Vec<ShardId>,
    pub gateways: u8,
    pub shard: ShardSettings,
    pub depths: Depths,
    pub control_settings: ControlSettings,
    /// Seed of the market source, the demo trader and the strategies.
    pub seed: u64,
    /// Mean time between two market events of one security, in nanoseconds; zero disables them.
    pub interval_ns: u64,
    /// Adapters of venues that publish prices themselves.
    pub quoted: Vec<AdapterId>,
    /// Mean time between two actions of the demo trader, in nanoseconds; zero disables it.
    pub pause_ns: u64,
    /// Id numbers for the orders of the demo trader and of the strategies.
    pub numbers: IdBlock,
    /// The strategies that run in this process.
    pub strategies: Vec<StrategyConfig>,
    /// Whether the threads measure stage latencies.
    pub stages: bool,
}

impl PlatformSettings {
    /// Builds the settings from the config. The ids start at one; a server that keeps its state
    /// across restarts sets `numbers` to another block.
    pub fn of(config: &Config, reference: &RefData) -> PlatformSettings {
        let Config { topology, lanes, feed, demo, .. } = config;
        PlatformSettings {
            shards: topology.shards,
            own: config.own_shards(),
            gateways: topology.gateways,
            shard: config.shard_settings(reference),
            depths: *lanes,
            control_settings: ControlSettings::of(config, reference),
            seed: feed.seed,
            interval_ns: if feed.on { feed.interval_ns(reference.securities().len()) } else { 0 },
            quoted: config.quoting().map(|(id, _)| id).collect(),
            pause_ns: if demo.on { NS_PER_S / demo.rate } else { 0 },
            numbers: IdBlock { next: 1, end: 1 << 48 },
            // In distributed mode the strategies run in processes of their own.
            strategies: match config.service.mode {
                ServiceMode::Embedded | ServiceMode::Simulation => config.strategies.clone(),
                ServiceMode::Distributed => Vec::new(),
            },
            stages: config.metrics.stages,
        }
    }

    /// Returns the number of this server start: each start takes the next [`NUMBERS`] ids.
    fn start(&self) -> u64 {
        self.numbers.next / NUMBERS
    }
}

/// A shard at start-up: new, or recovered from its journal.
#[derive(Debug)]
pub struct RecoveredShard {
    pub shard: Shard,
    /// Sequence number of the shard's last event.
    pub seq: u64,
    /// Time of the shard's last command.
    pub at: Timestamp,
    /// The shard's journal; `None` if nothing is persisted.
    pub writer: Option<Writer>,
}

/// Everything that runs on the threads of shards and gateways, and the port of the http thread.
#[derive(Debug)]
pub struct PlatformParts {
    pub shards: Vec<ShardDuty>,
    pub gateways: Vec<Gateway>,
    pub http: PortEnd,
    /// The connection to other servers; `None` if this server owns all shards.
    pub remote_shards: Option<RemoteShards>,
    /// The recorder of the http thread's own latencies.
    pub http_recorder: Option<LatencyRecorder>,
    /// The readers of stage latencies, by thread name.
    pub stages: Vec<(String, stages::LatencyReader)>,
    pub reloads: ReloadSenders,
}

/// The connection to other servers: their shards' ends of our lanes, and the port through which our
/// shards' events reach them.
#[derive(Debug)]
pub struct RemoteShards {
    pub link: PortEnd,
    pub shards: Vec<ShardEnd>,
}

/// The mailboxes that carry reference data to the threads after a reload.
#[derive(Debug)]
pub struct ReloadSenders {
    pub shards: Vec<MailboxSender<ReloadedRefData>>,
    pub gateways: Vec<MailboxSender<ReloadedRefData>>,
}

impl PlatformParts {
    /// Returns shards without any state.
    pub fn fresh_shards(reference: &Arc<RefData>, settings: &PlatformSettings) -> Vec<RecoveredShard> {
        let shards = settings.shards;
        let recovered = |end| Shard::new(ShardId(end), shards, reference.clone(), settings.shard.clone());
        let recovered =
            |end| RecoveredShard { shard: recovered(end), seq: 0, at: Timestamp::ZERO, writer: None };
        settings.own.iter().map(|shard| recovered(shard.0)).collect()
    }

    /// Connects all parts. They do nothing until they are polled. `hosts` are the strategies that
    /// run in this process.
    pub fn new(
        now: Timestamp,
        reference: &Arc<RefData>,
        settings: &PlatformSettings,
        recovered: Vec<RecoveredShard>,
        wakeups: &Arc<Wakeups>,
        registry: &Arc<Registry>,
        hosts: Vec<HostSettings>,
    ) -> PlatformParts {
        assert!(
            recovered.iter().map(|recovered| recovered.shard.id()).eq(settings.own.iter().copied()),
            "every shard is there"
        );
        assert!((1..=GATEWAYS_MAX).contains(&settings.gateways), "there is a gateway, and room for it");
        let mut classes = FIXED_PORTS.to_vec();
        classes.resize(ports_len(settings.gateways), PortClass::Client);
        let (mut ports, mut ends) = mesh(&classes, settings.shards, settings.depths);
        ports.iter_mut().for_each(|port| port.begin_senders(settings.start()));
        let is_shared = settings.own.len() < settings.shards as usize;
        let link = is_shared.then(|| link(&mut ends, settings.depths));
        let (ends, remote_shards): (Vec<_>, Vec<_>) =
            ends.into_iter().partition(|end| settings.own.contains(&end.id()));
        let remote_shards = link.map(|link| RemoteShards { link, shards: remote_shards });
        let own = ports.split_off(GATEWAYS as usize);
        let [control, http, feed, trader, runner] =
            <[PortEnd; FIXED_PORTS.len()]>::try_from(ports).expect("the mesh has an end for each port");
        let mut readers = Vec::new();
        let mut recorder = |name: String| {
            let (recorder, reader) = settings.stages.then(stages)?;
            readers.push((name, reader));
            Some(recorder)
        };
        let session_states = session_states(recovered.iter().map(|recovered| &recovered.shard));
        let ticks: Vec<Tick> = recovered.iter().flat_map(|recovered| recovered.shard.ticks()).collect();
        let (mut shard_reloads, mut gateway_reloads) = (Vec::new(), Vec::new());
        let shards = recovered.into_iter().zip(ends).map(|(recovered, end): (RecoveredShard, ShardEnd)| {
            let recorder = recorder(format!("shard-{}", end.id().0));
            let wakeup = wakeups.shards[usize::from(end.id().0)].clone();
            let worker = Worker::restored(recovered.shard, end, recovered.seq, recovered.at);
            let (sender, reloads) = mailbox(RELOADS_MAX, wakeup);
            shard_reloads.push(sender);
            let keeping = CommandJournaling { journal: recovered.writer, recorder, reloads: Some(reloads) };
            ShardDuty::new(worker, keeping, wakeups.clone(), registry.clone())
        });
        let shards = shards.collect();
        let mut gateway = |(at, port)| Gateway::new(port, wakeups.clone(), recorder(format!("gateway-{at}")));
        let mut gateways: Vec<Gateway> = own.into_iter().enumerate().map(&mut gateway).collect();
        for (gateway, wakeup) in gateways.iter_mut().zip(&wakeups.ports[usize::from(GATEWAYS)..]) {
            let (sender, reloads) = mailbox(RELOADS_MAX, wakeup.clone());
            gateway_reloads.push(sender);
            gateway.reloads = Some(reloads);
        }
        let http_recorder = recorder("http".to_string());
        let first = &mut gateways[0];
        first.control = Some(Control::new(control, now, settings.control_settings.clone(), session_states));
        let (seed, interval_ns) = (settings.seed, settings.interval_ns);
        let mut market = MarketSource::new(feed, reference, seed, interval_ns, settings.quoted.clone());
        market.resume(&ticks);
        first.market = Some(market);
        first.trader = (settings.pause_ns > 0).then(|| {
            let (running, chance) =
                (settings.control_settings.running.clone(), (settings.seed, settings.pause_ns));
            DemoTrader::new(trader, reference.clone(), running, chance, settings.numbers)
        });
        first.runner = (!hosts.is_empty()).then(|| {
            let run = strategies::runner_settings(Operation::RealTime, settings.numbers, settings.seed);
            Box::new(RunnerDuty::new(Runner::new(runner, reference.clone(), run, hosts)))
        });
        let reloads = ReloadSenders { shards: shard_reloads, gateways: gateway_reloads };
        PlatformParts { shards, gateways, http, remote_shards, http_recorder, stages: readers, reloads }
    }
}

/// Lets gateways with drop-copy sessions receive the events of all orders from the first one on.
pub fn connect_copies(gateways: &[Gateway], shards: &mut [ShardDuty]) {
    let ports = gateways.iter().filter_map(Gateway::copies_port);
    let ports = ports.fold(PortMask::NONE, |ports, port| ports.with(PortMask::one(port)));
    shards.iter_mut().for_each(|shard| shard.set_copies(ports));
}

/// Returns an address as a [`SenderAddress`]; IPv4 is mapped to IPv6.
pub fn address_of(address: IpAddr) -> SenderAddress {
    let mapped = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    SenderAddress(mapped.octets())
}

/// A whole platform on one thread, stepped by its owner.
#[derive(Debug)]
pub struct Platform {
    shards: Vec<ShardDuty>,
    gateways: Vec<Gateway>,
    reference: Arc<RefData>,
    port: PortEnd,
    pending_commands: PendingCommands,
    view: View,
    phase: LifecyclePhase,
}

impl Platform {
    /// Creates a platform without any state, with strategies of the shipped kinds. It does nothing
    /// until it is polled.
    pub fn new(now: Timestamp, reference: Arc<RefData>, settings: &PlatformSettings) -> Platform {
        let wakeups = Arc::new(Wakeups::silent(settings.shards, ports_len(settings.gateways)));
        let recovered = PlatformParts::fresh_shards(&reference, settings);
        let registry = Arc::new(Registry::new(settings.shards));
        let kinds = pitlane_strategy::Registry::with_examples();
        let hosts = strategies::hosts(&settings.strategies, &reference, &kinds);
        let PlatformParts { shards, gateways, http, .. } =
            PlatformParts::new(now, &reference, settings, recovered, &wakeups, &registry, hosts);
        let mut pending_commands =
            PendingCommands::new(Source { origin: Origin::Server, port: HTTP, session: 0 });
        pending_commands.push_all(CommandKind::Watch { port: HTTP, what: WatchTarget::Everything, on: true });
        pending_commands.push_all(CommandKind::Snapshot { port: HTTP });
        let view =
            View::new(settings.shards, ViewSettings { seed: settings.seed, ..ViewSettings::default() });
        Platform {
            shards,
            gateways,
            reference,
            port: http,
            pending_commands,
            view,
            phase: LifecyclePhase::Opening,
        }
    }

    pub fn reference(&self) -> &RefData {
        &self.reference
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    /// Stops new orders and prices; work in progress is completed.
    pub fn wind_down(&mut self) {
        self.phase = LifecyclePhase::Closing;
    }

    /// Does a bounded amount of work and returns its amount. Calls `on_event` with every event,
    /// after the view has applied it.
    pub fn poll(&mut self, now: Timestamp, mut on_event: impl FnMut(&View, &RefData, &Event)) -> usize {
        let phase = self.phase;
        let mut work = self.pending_commands.poll(&mut self.port);
        work += self.gateways.iter_mut().map(|gateway| gateway.poll(now, phase, None)).sum::<usize>();
        work += self.shards.iter_mut().map(|shard| shard.poll(now, phase)).sum::<usize>();
        while let Some((shard, event)) = self.port.poll_event() {
            self.view.apply(shard, &event);
            on_event(&self.view, &self.reference, &event);
            work += 1;
        }
        let is_ready = self.gateways.iter().all(|gateway| gateway.is_done(LifecyclePhase::Opening));
        if self.phase == LifecyclePhase::Opening && is_ready {
            self.phase = LifecyclePhase::Open;
            work += 1;
        }
        work
    }
}
