//! Settings of the http thread, validated and complete: the modules below never read a config file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pitlane_auth::Role;
use pitlane_config::{Config, Params, ServiceMode};
use pitlane_engine::id::{Currency, ShardId};
use pitlane_engine::number::Money;
use pitlane_engine::view::ViewSettings;
use pitlane_gateway::stomp;
use pitlane_protocols::stomp::settings::BrokerSettings;

use super::admission::HttpConnectionLimits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// The first shard of this server, whose journal has the anchors of the audit log.
    pub anchor_shard: ShardId,
    /// Address of the HTTP listener; `None` if it is off, as for `https`.
    pub http: Option<SocketAddr>,
    pub https: Option<SocketAddr>,
    /// Host names, without port, by which clients reach us beyond `localhost` and the addresses of
    /// the listeners.
    pub public_hosts: Vec<String>,
    /// Origins (`https://desk.example:8443`) whose pages may call us.
    pub cors_origins: Vec<String>,
    /// Largest request body. The largest of our requests, an order, has 500 bytes.
    pub body_bytes_max: usize,
    /// Largest request head: room for long tokens and the cookies of other services on the same
    /// host.
    pub head_bytes_max: usize,
    /// Time from the first byte of a request, or the opening of a connection, to the end of the
    /// head.
    pub head_timeout: Duration,
    /// Longest time without any request.
    pub idle_timeout: Duration,
    /// Longest time without a byte, in either direction, while a request is being answered.
    pub stall_timeout: Duration,
    /// Time for the whole body of a request.
    pub body_timeout: Duration,
    /// Time for the response of the shards. They respond in microseconds unless the disk is slow.
    pub answer_timeout: Duration,
    /// Time for connections to finish when the server stops; main waits 5 s in all.
    pub drain_timeout: Duration,
    /// Maximum number of connections. Each takes some 20 KB and a file descriptor.
    pub connections_max: usize,
    /// Maximum number of connections from one address; for IPv6 from one /64 network.
    pub connections_per_peer_max: usize,
    /// Percentage of all connections reserved for clients that have logged in and for health
    /// checks.
    pub connections_reserved_percent: usize,
    /// Requests per second; zero means no limit.
    pub rate_per_peer: u32,
    pub rate_per_login: u32,
    /// Maximum number of REST orders known at once, finished ones included.
    pub orders_max: u32,
    pub view: ViewSettings,
    /// Lowest role that may send events to other strategies.
    pub generic_event_role: Role,
    /// Settings of the broker behind `/stomp`.
    pub broker: BrokerSettings,
    /// The host in addresses we give out; `None`: the host the client used.
    pub public_host: Option<String>,
    /// Address of STOMP over TCP, unless the gateway threads have reported theirs.
    pub stomp: Option<SocketAddr>,
    /// Address of STOMP over TCP behind TLS, likewise.
    pub stomp_tls: Option<SocketAddr>,
    /// Number of this installation, from which UUIDs are derived.
    pub instance: u64,
    /// Currency in which portfolios are summed up.
    pub base_currency: Currency,
    /// Trading days of a year, by which the figures of a report are annualised.
    pub year_days: u32,
    /// Cash of a strategy that begins, in the base currency.
    pub deposit: Money,
    /// Folder of the file that keeps the past of the portfolios; `None`: no file.
    pub data_dir: Option<PathBuf>,
    /// Whether `/metrics` is served.
    pub metrics: bool,
    /// Whether strategies run in a simulation.
    pub simulation: bool,
    /// Names of the market data feeds.
    pub feeds: Vec<String>,
    /// Every setting as it is shown.
    pub params: BTreeMap<String, String>,
}

impl HttpSettings {
    /// Builds the settings from the configuration.
    pub fn of(config: &Config, params: &Params) -> HttpSettings {
        let Config { http, https, view, .. } = config;
        let ms = |ms: u32| Duration::from_millis(ms as u64);
        HttpSettings {
            anchor_shard: config.own_shards().first().copied().unwrap_or_default(),
            http: http.listen,
            https: https.listen,
            public_hosts: http.hosts_allowed.iter().chain(&http.public_host).cloned().collect(),
            cors_origins: http.cors_origins.clone(),
            body_bytes_max: http.body_bytes_max,
            head_bytes_max: http.head_bytes_max,
            head_timeout: ms(http.head_timeout_ms),
            idle_timeout: ms(http.idle_timeout_ms),
            connections_max: http.connections_max as usize,
            connections_per_peer_max: http.per_peer_max as usize,
            connections_reserved_percent: http.reserved_percent as usize,
            rate_per_peer: http.rate_per_peer,
            rate_per_login: http.rate_per_login,
            orders_max: http.orders_max,
            view: *view,
            generic_event_role: config.stomp.generic_event_role,
            broker: stomp::settings(config),
            public_host: http.public_host.clone(),
            stomp: config.stomp.listen,
            stomp_tls: config.stomp.tls_listen,
            instance: config.shard.instance,
            base_currency: config.service.base_currency,
            year_days: config.simulation.year_days,
            deposit: config.demo.cash,
            data_dir: Some(config.service.data_dir.clone()),
            metrics: config.metrics.on,
            simulation: config.service.mode == ServiceMode::Simulation,
            feeds: feeds(config),
            params: params.iter().map(|(name, param)| (name.to_string(), param.text.clone())).collect(),
            ..HttpSettings::default()
        }
    }

    /// Returns how many connections there may be, and how many of them are reserved for known
    /// clients.
    pub(super) fn connection_limits(&self) -> HttpConnectionLimits {
        HttpConnectionLimits {
            max: self.connections_max,
            per_peer_max: self.connections_per_peer_max,
            reserve: self.connections_max * self.connections_reserved_percent / 100,
        }
    }
}

impl Default for HttpSettings {
    fn default() -> HttpSettings {
        HttpSettings {
            anchor_shard: ShardId(0),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 9090))),
            https: Some(SocketAddr::from(([127, 0, 0, 1], 9443))),
            public_hosts: Vec::new(),
            cors_origins: Vec::new(),
            body_bytes_max: 64 * 1_024,
            head_bytes_max: 16 * 1_024,
            head_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            stall_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(4),
            connections_max: 4_096,
            connections_per_peer_max: 1_024,
            connections_reserved_percent: 10,
            rate_per_peer: 200_000,
            rate_per_login: 200_000,
            orders_max: 10_000,
            view: ViewSettings::default(),
            broker: BrokerSettings::default(),
            public_host: None,
            generic_event_role: Role::Trade,
            stomp: None,
            stomp_tls: None,
            instance: 0,
            base_currency: Currency::default(),
            year_days: 252,
            deposit: Money::ZERO,
            data_dir: None,
            metrics: true,
            simulation: false,
            feeds: vec!["SIM".to_string()],
            params: BTreeMap::new(),
        }
    }
}

/// Returns the simulated market, or the files replayed instead of it, then the venues.
fn feeds(config: &Config) -> Vec<String> {
    let market = match (config.replay.data.is_empty(), config.feed.on) {
        (false, _) => Some("REPLAY"),
        (true, true) => Some("SIM"),
        (true, false) => None,
    };
    let venues = config.quoting().map(|(_, adapter)| adapter.name.as_str());
    market.into_iter().chain(venues).map(str::to_string).collect()
}
