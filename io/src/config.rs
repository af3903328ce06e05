//! How the platform is set up: `config/default.toml` and what is laid over it, checked and typed.
//!
//! ```text
//! built in < files and presets < PITLANE_… < --set        layers: one tree, each value with its origin
//!                    │
//!                    ▼
//!     sections ask for their keys, one by one              types and ranges; unknown keys
//!                    │
//!                    ▼
//!     Config ──► rules over several keys ──► names, once the reference data are there
//! ```
//!
//! Whatever is wrong is told at once, with file, line, column and key, or the variable or option it came from. Parts of
//! the platform are given the structs of their own sections, never the whole.

mod adapter;
mod auth;
mod calendar;
mod cluster;
mod fault;
mod fix;
mod http;
mod journal;
mod layers;
mod log;
mod machine;
mod names;
mod nats;
mod net;
mod params;
mod risk;
mod rules;
mod section;
mod service;
mod settlement;
mod standby;
mod stomp;
mod strategy;
mod topology;
mod tree;
mod venue;
mod words;

use pitlane_engine::id::{AdapterId, ShardId};
use pitlane_engine::mesh::{Depths, ShardMask};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::view::ViewSettings;

pub use adapter::{Adapter, Usual};
pub use auth::{Auth, AuthMode, Tls};
pub use calendar::{Calendar, Hours, HoursBy};
pub use cluster::{Cluster, Member};
pub use fault::{Fault, Faults};
pub use fix::{Addresses, ExecTypes, Fix, FixSession};
pub use http::{Http, Https};
pub use journal::{Durability, Journal};
pub use layers::{PRESETS, Setting, Sources};
pub use log::{Format, Log, Metrics};
pub use machine::{Machine, parse_cores};
pub use nats::{Nats, OnReturn, RemoteStrategySettings, parse_url};
pub use net::{Driver, Net};
pub use params::{Param, Params};
pub use risk::{Restricted, Risk, Rules};
pub use service::{Demo, Feed, Mode, Refdata, Service};
pub use settlement::{SettleBy, Settlement};
pub use standby::Standby;
pub use stomp::{Broker, Stomp};
pub use strategy::{Record, Replay, Simulation, Strategy};
pub use topology::{GATEWAYS_MAX, IdleBy, Layout, Topology};
pub use tree::Origin;
pub use venue::Venue;
pub use words::{Rate, Secret};

use section::{Findings, Section};
use tree::{Entry, Table, Value};

/// Name of the settings that are built in.
pub const BUILT_IN: &str = layers::DEFAULT.0;

/// Every setting, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub service: Service,
    pub topology: Topology,
    pub lanes: Depths,
    pub net: Net,
    pub journal: Journal,
    pub refdata: Refdata,
    pub http: Http,
    pub https: Https,
    pub stomp: Stomp,
    pub broker: Broker,
    pub fix: Fix,
    pub adapters: Vec<Adapter>,
    pub strategies: Vec<Strategy>,
    pub nats: Nats,
    pub remote_strategies: RemoteStrategySettings,
    pub cluster: Cluster,
    /// Of the cluster; empty: it is alone.
    pub members: Vec<Member>,
    pub standby: Standby,
    pub tls: Tls,
    pub auth: Auth,
    pub risk: Risk,
    pub venue: Venue,
    pub calendar: Calendar,
    pub settlement: Settlement,
    pub feed: Feed,
    pub demo: Demo,
    pub replay: Replay,
    pub record: Record,
    pub simulation: Simulation,
    /// Without the exchanges that differ: see [`Config::shard_settings`].
    pub shard: ShardSettings,
    pub view: ViewSettings,
    pub log: Log,
    pub metrics: Metrics,
}

/// Settings, where each of them came from, and what should be looked at.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    pub params: Params,
    pub warnings: Vec<String>,
}

/// Lays the sources over the built-in settings and checks everything but the names of reference data.
pub fn load(sources: &Sources, machine: &Machine) -> Result<Loaded, Faults> {
    let mut findings = Findings::default();
    let mut warnings = Vec::new();
    let tree = layers::read(sources, &mut findings.faults, &mut warnings);
    let config = Config::read(tree, &mut findings);
    let Findings { mut faults, mut params } = findings;
    if faults.is_empty() {
        rules::check(&config, machine, &params, &mut faults, &mut warnings);
        let level = config.durability().to_string();
        params.add("journal.level.effective".to_string(), level, params.origin("journal.level"));
    }
    if faults.is_empty() { Ok(Loaded { config, params, warnings }) } else { Err(faults) }
}

impl Config {
    fn read(tree: Table, findings: &mut Findings) -> Config {
        let whole = Entry { value: Value::Table(tree), origin: Origin::file(layers::DEFAULT.0) };
        section::read("", whole, findings, Config::ask)
    }

    fn ask(root: &mut Section<'_>) -> Config {
        let session = first_session();
        let service = root.section("service", Service::read);
        let usual = root.section("adapter_defaults", Usual::read_defaults);
        let venue = root.section("venue", |section| Venue::read(section, &service));
        Config {
            topology: root.section("topology", Topology::read),
            lanes: root.section("lanes", topology::read_lanes),
            net: root.section("net", Net::read),
            journal: root.section("journal", Journal::read),
            refdata: root.section("refdata", Refdata::read),
            http: root.section("http", Http::read),
            https: root.section("https", Https::read),
            stomp: root.section("stomp", Stomp::read),
            broker: root.section("broker", Broker::read),
            fix: root.section("fix", |section| Fix::read(section, &session)),
            adapters: root.list("adapter", &usual, Adapter::read),
            strategies: root.list("strategy", &Table::new(), Strategy::read),
            nats: root.section("nats", Nats::read),
            remote_strategies: root.section("remote_strategies", RemoteStrategySettings::read),
            cluster: root.section("cluster", Cluster::read),
            members: root.list("member", &Table::new(), Member::read),
            standby: root.section("standby", Standby::read),
            tls: root.section("tls", Tls::read),
            auth: root.section("auth", Auth::read),
            risk: root.section("risk", Risk::read),
            calendar: root.section("calendar", Calendar::read),
            settlement: root.section("settlement", Settlement::read),
            feed: root.section("feed", |section| Feed::read(section, &service)),
            demo: root.section("demo", Demo::read),
            replay: root.section("replay", Replay::read),
            record: root.section("record", Record::read),
            simulation: root.section("simulation", Simulation::read),
            shard: root.section("shard", |section| venue::read_shard(section, &service, &venue)),
            view: root.section("view", |section| venue::read_view(section, &service)),
            log: root.section("log", Log::read),
            metrics: root.section("metrics", Metrics::read),
            venue,
            service,
        }
    }

    /// Ways to real venues, by name.
    pub fn adapter_names(&self) -> Vec<&str> {
        self.adapters.iter().map(|adapter| adapter.name.as_str()).collect()
    }

    /// Those of them that give market data.
    pub fn quoting(&self) -> impl Iterator<Item = (AdapterId, &Adapter)> {
        // The simulated venue is the first.
        let numbered = (1..).map(AdapterId).zip(&self.adapters);
        numbered.filter(|(_, adapter)| adapter.usual.market_data)
    }

    /// The shards that this server has itself: all, unless others own some.
    pub fn own_shards(&self) -> Vec<ShardId> {
        let member = self.members.iter().find(|member| member.name == self.cluster.member);
        match member.filter(|_| self.cluster.is_on()) {
            Some(member) => {
                let mut own: Vec<ShardId> = member.shards.iter().map(|shard| ShardId(*shard)).collect();
                own.sort_unstable();
                own
            }
            None => (0..self.topology.shards).map(ShardId).collect(),
        }
    }

    /// Those that others own.
    pub fn far_shards(&self) -> ShardMask {
        let own = self.own_shards();
        (0..self.topology.shards).map(ShardId).filter(|shard| !own.contains(shard)).collect()
    }

    /// What is safe when a client hears of it. By itself: where there is a standby all that it needs to go on, and the
    /// disk as soon as real venues are configured.
    pub fn durability(&self) -> Durability {
        let by_itself = match (&self.standby.group, self.adapters.is_empty()) {
            (Some(_), _) => Durability::Replicated,
            (None, false) => Durability::Disk,
            (None, true) => Durability::Os,
        };
        self.journal.level.unwrap_or(by_itself)
    }
}

/// The settings that are built in.
impl Default for Config {
    fn default() -> Config {
        let mut findings = Findings::default();
        let tree = layers::builtin(&mut findings.faults);
        let config = Config::read(tree, &mut findings);
        assert!(findings.faults.is_empty(), "the built-in settings are sound: {}", findings.faults);
        config
    }
}

/// What a FIX session is made of if it does not say: the first one that is built in, without its names.
fn first_session() -> Table {
    let tree = layers::builtin(&mut Faults::default());
    let Some(Value::Table(fix)) = tree.get("fix").map(|entry| &entry.value) else { return Table::new() };
    let Some(Value::List(sessions)) = fix.get("session").map(|entry| &entry.value) else {
        return Table::new();
    };
    let Some(Value::Table(first)) = sessions.first().map(|entry| &entry.value) else { return Table::new() };
    let named = |key: &str| matches!(key, "SenderCompID" | "TargetCompID");
    first.iter().filter(|(key, _)| !named(key)).map(|(key, entry)| (key.clone(), entry.clone())).collect()
}
