//! Settings of the platform: `config/default.toml` and the layers above it, checked and typed.
//!
//! ```text
//! built in < files and presets < PITLANE_… < --set        layers: one tree, each value with its origin
//!                    │
//!                    ▼
//!     sections read their keys, one by one                 types and ranges; unknown keys
//!                    │
//!                    ▼
//!     Config ──► rules over several keys ──► names, once the reference data are loaded
//! ```
//!
//! All faults are reported at once, with file, line, column and key, or with the variable or option
//! they came from. Parts of the platform are meant to receive the structs of their own sections,
//! not the whole; ARCHITECTURE.md lists the modules that still read all of it.

pub mod diagnostics;
pub mod pages;
pub mod refdata;
pub mod role;
pub mod time_zone;
pub mod trading_hours;
mod adapter;
mod auth;
mod calendar;
mod cluster;
mod data_files;
mod fault;
mod fix;
mod history;
mod http;
mod journal;
mod layers;
mod log;
mod machine;
mod names;
mod nats;
mod net;
mod origin;
mod params;
mod risk;
mod rules;
mod section;
mod service;
mod settlement;
mod standby;
mod stomp;
mod simulation;
mod strategies;
mod strategy;
mod topology;
mod tree;
mod venue;
mod venue_profile;
mod venue_url;
mod words;

use pitlane_engine::id::{AdapterId, ShardId};
use pitlane_engine::mesh::{Depths, ShardMask};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::view::ViewSettings;

pub use adapter::{AdapterConfig, AdapterDefaults, AdapterKind, BinanceConfig};
pub use auth::{AuthConfig, AuthMode, TlsConfig};
pub use calendar::{CalendarConfig, HoursBy, TradingHoursConfig};
pub use cluster::{ClusterConfig, MemberConfig};
pub use data_files::{DATA_LEVELS_MAX, DataFilesConfig, DataFormat};
pub use fault::{ConfigFault, ConfigFaults};
pub use fix::{AllowedAddress, ExecTypes, FixConfig, FixSessionConfig, SecondLogon, SessionPurpose};
pub use history::HistoryConfig;
pub use http::{HttpConfig, HttpsConfig};
pub use journal::{Durability, JournalConfig};
pub use layers::{PRESETS, Setting, Sources};
pub use log::{LogConfig, LogFormat, MetricsConfig};
pub use machine::{Machine, parse_cores};
pub use names::AdditionNote;
pub use nats::{NatsConfig, OnReturn, RemoteStrategiesConfig, parse_url};
pub use net::{NetConfig, NetDriver, SendFirst};
pub use origin::SettingOrigin;
pub use params::{EffectiveSetting, Params};
pub use risk::{Restricted, RiskConfig, RiskRules};
pub use service::{DemoConfig, FeedConfig, RefDataConfig, ServiceConfig, ServiceMode};
pub use settlement::{SettleBy, SettlementConfig};
pub use simulation::{FeeBasis, FeeTier, LatencyModel, SimulationConfig};
pub use standby::StandbyConfig;
pub use stomp::{BrokerConfig, StompConfig};
pub use strategies::{StrategiesConfig, StrategyAddress, StrategyTransport, is_direct_address};
pub use strategy::{RecordConfig, ReplayConfig, StrategyConfig};
pub use topology::{GATEWAYS_MAX, IdleBy, Layout, TopologyConfig};
pub use venue::VenueConfig;
pub use venue_profile::{SecretEncoding, VenueKeyConfig, VenueProfileConfig};
pub use venue_url::VenueUrl;
pub use words::{EventsPerSecond, Secret};

use section::{Section, SectionFindings};
use tree::{ConfigEntry, ConfigTable, ConfigValue};

/// Name of the built-in settings.
pub const BUILT_IN: &str = layers::DEFAULT.0;

/// All settings, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub service: ServiceConfig,
    pub topology: TopologyConfig,
    pub lanes: Depths,
    pub net: NetConfig,
    pub journal: JournalConfig,
    pub refdata: RefDataConfig,
    pub http: HttpConfig,
    pub https: HttpsConfig,
    pub stomp: StompConfig,
    pub broker: BrokerConfig,
    pub fix: FixConfig,
    pub adapters: Vec<AdapterConfig>,
    pub strategies: Vec<StrategyConfig>,
    pub nats: NatsConfig,
    pub remote_strategies: RemoteStrategiesConfig,
    /// The link between strategies in their own processes and this server.
    pub strategies_link: StrategiesConfig,
    pub cluster: ClusterConfig,
    /// Members of the cluster; empty: this server is alone.
    pub members: Vec<MemberConfig>,
    pub standby: StandbyConfig,
    pub tls: TlsConfig,
    pub auth: AuthConfig,
    pub risk: RiskConfig,
    pub venue: VenueConfig,
    pub calendar: CalendarConfig,
    pub settlement: SettlementConfig,
    pub feed: FeedConfig,
    pub demo: DemoConfig,
    pub replay: ReplayConfig,
    pub record: RecordConfig,
    pub history: HistoryConfig,
    pub simulation: SimulationConfig,
    /// Settings of a shard without those of single exchanges; see [`Config::shard_settings`].
    pub shard: ShardSettings,
    pub view: ViewSettings,
    pub log: LogConfig,
    pub metrics: MetricsConfig,
}

/// Settings, the origin of each, and warnings.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    pub params: Params,
    pub warnings: Vec<String>,
}

/// Lays the sources over the built-in settings and checks everything except names of reference
/// data.
pub fn load(sources: &Sources, machine: &Machine) -> Result<Loaded, ConfigFaults> {
    let mut findings = SectionFindings::default();
    let mut warnings = Vec::new();
    let tree = layers::read(sources, &mut findings.faults, &mut warnings);
    let config = Config::read(tree, &mut findings);
    let SectionFindings { mut faults, mut params } = findings;
    if faults.is_empty() {
        rules::check(&config, machine, &params, &mut faults, &mut warnings);
        let level = config.durability().to_string();
        params.add("journal.level.effective".to_string(), level, params.origin("journal.level"));
    }
    if faults.is_empty() { Ok(Loaded { config, params, warnings }) } else { Err(faults) }
}

impl Config {
    fn read(tree: ConfigTable, findings: &mut SectionFindings) -> Config {
        let whole =
            ConfigEntry { value: ConfigValue::Table(tree), origin: SettingOrigin::file(layers::DEFAULT.0) };
        section::read("", whole, findings, Config::ask)
    }

    fn ask(root: &mut Section<'_>) -> Config {
        let session = first_session();
        let service = root.section("service", ServiceConfig::read);
        let usual = root.section("adapter_defaults", AdapterDefaults::read_defaults);
        let strategy_defaults = root.section("strategy_defaults", StrategyConfig::read_defaults);
        let venue = root.section("venue", |section| VenueConfig::read(section, &service));
        let shard = root.section("shard", |section| venue::read_shard(section, &service, &venue));
        Config {
            topology: root.section("topology", TopologyConfig::read),
            lanes: root.section("lanes", topology::read_lanes),
            net: root.section("net", NetConfig::read),
            journal: root.section("journal", JournalConfig::read),
            refdata: root.section("refdata", RefDataConfig::read),
            http: root.section("http", HttpConfig::read),
            https: root.section("https", HttpsConfig::read),
            stomp: root.section("stomp", StompConfig::read),
            broker: root.section("broker", BrokerConfig::read),
            fix: root.section("fix", |section| FixConfig::read(section, &session)),
            adapters: root.list("adapter", &usual, AdapterConfig::read),
            strategies: root.list("strategy", &strategy_defaults, StrategyConfig::read),
            nats: root.section("nats", NatsConfig::read),
            remote_strategies: root.section("remote_strategies", RemoteStrategiesConfig::read),
            strategies_link: root.section("strategies", StrategiesConfig::read),
            cluster: root.section("cluster", ClusterConfig::read),
            members: root.list("member", &ConfigTable::new(), MemberConfig::read),
            standby: root.section("standby", StandbyConfig::read),
            tls: root.section("tls", TlsConfig::read),
            auth: root.section("auth", AuthConfig::read),
            risk: root.section("risk", RiskConfig::read),
            calendar: root.section("calendar", CalendarConfig::read),
            settlement: root.section("settlement", SettlementConfig::read),
            feed: root.section("feed", |section| FeedConfig::read(section, &service)),
            demo: root.section("demo", DemoConfig::read),
            replay: root.section("replay", ReplayConfig::read),
            record: root.section("record", RecordConfig::read),
            history: root.section("history", HistoryConfig::read),
            simulation: root.section("simulation", SimulationConfig::read),
            view: root.section("view", |section| venue::read_view(section, &service, &shard)),
            log: root.section("log", LogConfig::read),
            metrics: root.section("metrics", MetricsConfig::read),
            venue,
            shard,
            service,
        }
    }

    /// Returns the names of the adapters to real venues.
    pub fn adapter_names(&self) -> Vec<&str> {
        self.adapters.iter().map(|adapter| adapter.name.as_str()).collect()
    }

    /// Returns the adapters that provide market data.
    pub fn quoting(&self) -> impl Iterator<Item = (AdapterId, &AdapterConfig)> {
        // Number 0 is the simulated venue.
        let numbered = (1..).map(AdapterId).zip(&self.adapters);
        numbered.filter(|(_, adapter)| adapter.usual.market_data)
    }

    /// Returns the shards of this server: all, unless other members own some.
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

    /// Returns the shards that other members own.
    pub fn far_shards(&self) -> ShardMask {
        let own = self.own_shards();
        (0..self.topology.shards).map(ShardId).filter(|shard| !own.contains(shard)).collect()
    }

    /// Returns the guarantee behind an acknowledgement. With `auto`: `replicated` with a standby,
    /// `disk` with real venues, else `os`.
    pub fn durability(&self) -> Durability {
        let by_itself = match (&self.standby.group, self.adapters.is_empty()) {
            (Some(_), _) => Durability::Replicated,
            (None, false) => Durability::Disk,
            (None, true) => Durability::Os,
        };
        self.journal.level.unwrap_or(by_itself)
    }
}

/// The built-in settings.
impl Default for Config {
    fn default() -> Config {
        let mut findings = SectionFindings::default();
        let tree = layers::builtin(&mut findings.faults);
        let config = Config::read(tree, &mut findings);
        assert!(findings.faults.is_empty(), "the built-in settings are sound: {}", findings.faults);
        config
    }
}

/// Returns the defaults of a FIX session: the first built-in session without its names.
fn first_session() -> ConfigTable {
    let tree = layers::builtin(&mut ConfigFaults::default());
    let Some(ConfigValue::Table(fix)) = tree.get("fix").map(|entry| &entry.value) else {
        return ConfigTable::new();
    };
    let Some(ConfigValue::List(sessions)) = fix.get("session").map(|entry| &entry.value) else {
        return ConfigTable::new();
    };
    let Some(ConfigValue::Table(first)) = sessions.first().map(|entry| &entry.value) else {
        return ConfigTable::new();
    };
    let named = |key: &str| matches!(key, "SenderCompID" | "TargetCompID");
    first.iter().filter(|(key, _)| !named(key)).map(|(key, entry)| (key.clone(), entry.clone())).collect()
}
