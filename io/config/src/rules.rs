//! Rules over several keys. A fault refuses the start; a warning is logged.

mod binance;
mod venue_profile;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use pitlane_protocols::stomp::topic::{ALIASES_MAX, NamingError};

use super::fault::ConfigFaults;
use super::journal::PAGE_BYTES;
use super::machine::Machine;
use super::params::Params;
use super::{
    AdapterKind, AuthMode, Config, Durability, IdleBy, Layout, ServiceMode, StrategyAddress,
    StrategyTransport,
};

/// Shortest secret of a standby group: 128 bits, if they are random.
const SECRET_BYTES_MIN: usize = 16;
/// Adapter name of the simulated venue, which is no adapter.
const SIMULATED: &str = "SIM";

pub(crate) fn check(
    config: &Config,
    machine: &Machine,
    params: &Params,
    faults: &mut ConfigFaults,
    warnings: &mut Vec<String>,
) {
    let mut rules = RuleCheck { config, machine, params, faults, warnings };
    rules.listeners();
    rules.login();
    rules.tls();
    rules.cores();
    rules.spinning();
    rules.durability();
    rules.fix_sessions();
    rules.adapters();
    rules.nats();
    rules.strategies();
    rules.cluster();
    rules.standby();
    rules.topics();
    rules.origins();
    rules.bounds();
}

struct RuleCheck<'a> {
    config: &'a Config,
    machine: &'a Machine,
    params: &'a Params,
    faults: &'a mut ConfigFaults,
    warnings: &'a mut Vec<String>,
}

/// A listener for clients.
struct ConfiguredListener {
    key: &'static str,
    address: SocketAddr,
    tls: bool,
}

impl Config {
    /// Returns every listening address with its key; true for TLS.
    pub fn listeners(&self) -> Vec<(&'static str, SocketAddr, bool)> {
        let all = [
            ("http.listen", self.http.listen, false),
            ("https.listen", self.https.listen, true),
            ("stomp.listen", self.stomp.listen, false),
            ("stomp.tls_listen", self.stomp.tls_listen, true),
            ("fix.listen", self.fix.listen, false),
            ("fix.tls_listen", self.fix.tls_listen, true),
        ];
        let strategies = self.strategy_listener().map(|(address, tls)| ("strategies.listen", address, tls));
        let all =
            all.into_iter().filter_map(|(key, address, tls)| address.map(|address| (key, address, tls)));
        all.chain(strategies).collect()
    }

    /// Returns whether strategies in their own processes connect through this transport.
    pub fn has_remote_strategies(&self, transport: StrategyTransport) -> bool {
        self.service.mode == ServiceMode::Distributed && self.strategies_link.transport == transport
    }

    /// Returns the listener for strategies in their own processes, and whether it uses TLS.
    pub fn strategy_listener(&self) -> Option<(SocketAddr, bool)> {
        self.strategies_link.listener().filter(|_| self.has_remote_strategies(StrategyTransport::Direct))
    }

    /// Returns whether clients must log in.
    pub fn login_required(&self) -> bool {
        match self.auth.mode {
            AuthMode::Auto => self.listeners().iter().any(|(_, address, _)| !address.ip().is_loopback()),
            AuthMode::Required => true,
            AuthMode::Off => false,
        }
    }
}

impl RuleCheck<'_> {
    fn fault(&mut self, key: &str, problem: impl Into<String>) {
        self.faults.add(&self.params.origin(key), key, problem);
    }

    fn listeners(&mut self) {
        let listeners = self.config.listeners();
        for (at, (key, address, _)) in listeners.iter().enumerate() {
            let taken = listeners[..at].iter().find(|(_, other, _)| collide(*address, *other));
            if let Some((other, _, _)) = taken {
                self.fault(key, format!("{address} is taken by {other}"));
            }
        }
    }

    /// Checks the names of order topics with the rules of topics.
    fn topics(&mut self) {
        let problem = match self.config.broker.naming().err() {
            None => return,
            Some(NamingError::NotASegment) => "it must be one segment of a topic's name".to_string(),
            Some(NamingError::Taken) => "it is the name of other topics, or occurs twice".to_string(),
            Some(NamingError::TooMany) => format!("there may be {ALIASES_MAX} at most"),
        };
        self.fault("broker.orderTopicAliases", format!("with broker.orderTopicPrefix: {problem}"));
    }

    fn login(&mut self) {
        let auth = &self.config.auth;
        let known = auth.users_file.is_some() || auth.tokens_file.is_some();
        if auth.mode == AuthMode::Required && !known {
            self.fault("auth.mode", "no user can log in: set auth.users_file or auth.tokens_file");
        }
        let listeners = self.config.listeners().into_iter().map(|(key, address, tls)| ConfiguredListener {
            key,
            address,
            tls,
        });
        for listener in listeners.filter(|listener| !listener.address.ip().is_loopback()) {
            self.beyond_loopback(&listener, known);
        }
    }

    fn beyond_loopback(&mut self, listener: &ConfiguredListener, known: bool) {
        let ConfiguredListener { key, address, tls } = *listener;
        let auth = &self.config.auth;
        if auth.mode == AuthMode::Auto && !known {
            let problem = format!("{address} is not loopback: set auth.users_file or auth.tokens_file");
            self.fault(key, problem);
        }
        if auth.mode == AuthMode::Off {
            let problem = format!(
                "{address} is not loopback: every client that reaches it can trade, because auth.mode is off"
            );
            self.fault(key, problem);
        }
        if !tls && !auth.allow_plaintext {
            let problem =
                format!("{address} is not loopback and has no TLS: set auth.allow_plaintext to permit it");
            self.fault(key, problem);
        }
    }

    fn tls(&mut self) {
        let tls = &self.config.tls;
        match (&tls.cert, &tls.key) {
            (Some(_), None) => self.fault("tls.cert", "it needs tls.key"),
            (None, Some(_)) => self.fault("tls.key", "it needs tls.cert"),
            _ => {}
        }
        for (key, file) in [("tls.cert", &tls.cert), ("tls.key", &tls.key), ("tls.client_ca", &tls.client_ca)]
        {
            if let Some(path) = file {
                self.file(key, path);
            }
        }
    }

    /// Checks that a named file exists and is not empty.
    fn file(&mut self, key: &str, path: &Path) {
        match fs::metadata(path) {
            Ok(about) if about.is_file() && about.len() > 0 => {}
            Ok(_) => self.fault(key, format!("{} is empty or not a file", path.display())),
            Err(error) => self.fault(key, format!("{}: {error}", path.display())),
        }
    }

    fn cores(&mut self) {
        let mut users: BTreeMap<u32, &str> = BTreeMap::new();
        for (key, cores, threads) in self.config.topology.core_lists() {
            if cores.is_empty() {
                continue;
            }
            if cores.len() != threads {
                let layout = match self.config.topology.layout {
                    Layout::Shared => "shared",
                    Layout::Dedicated => "dedicated",
                };
                let problem =
                    format!("it names {} cores; the {layout} layout has {threads} such threads", cores.len());
                self.fault(key, problem);
            }
            for core in cores {
                if !self.machine.cores.contains(core) {
                    let there = show_cores(&self.machine.cores);
                    self.fault(key, format!("there is no core {core}; this machine has {there}"));
                }
                let quick = self.config.topology.quick_cores().contains(core);
                if let Some(other) = users.insert(*core, key).filter(|_| quick) {
                    self.warnings.push(format!("{key}: core {core} is used by {other} too"));
                }
            }
        }
    }

    /// Isolated cores are not among the usable ones, unless a setting names them: so pinned threads
    /// count against all cores, the others against the usable ones.
    fn spinning(&mut self) {
        let topology = &self.config.topology;
        let (shards, gateways) = topology.threads();
        let loose = |cores: &[u32], threads: usize| if cores.is_empty() { threads } else { 0 };
        let loose = loose(&topology.shard_cores, shards) + loose(&topology.gateway_cores, gateways);
        let all = (shards + gateways, self.machine.cores.len());
        for (threads, cores) in [(loose, self.machine.cores_usable), all] {
            if topology.idle == IdleBy::Spin && threads > cores {
                let text =
                    format!("topology.idle: {threads} threads spin on {cores} cores and hinder each other");
                self.warnings.push(text);
                return;
            }
        }
    }

    fn durability(&mut self) {
        let real = !self.config.adapters.is_empty();
        let level = self.config.durability();
        if level == Durability::None {
            self.warnings.push("journal.level: nothing survives the end of the process".to_string());
        } else if real && !level.is_synced() {
            let text = "journal.level: orders at real venues may be missing after a power failure";
            self.warnings.push(text.to_string());
        }
    }

    fn fix_sessions(&mut self) {
        let fix = &self.config.fix;
        let ports = [fix.listen, fix.tls_listen].map(|address| address.map(|address| address.port()));
        let mut pairs = BTreeMap::new();
        for (at, session) in fix.sessions.iter().enumerate() {
            let key = |name: &str| format!("fix.session.{at}.{name}");
            let pair = (&session.sender_comp_id, &session.target_comp_id);
            if let Some(other) = pairs.insert(pair, at) {
                self.fault(&key("TargetCompID"), format!("fix.session.{other} has the same pair"));
            }
            if session.socket_accept_port.is_some_and(|port| !ports.contains(&Some(port))) {
                self.fault(&key("SocketAcceptPort"), "it is not the port of fix.listen or fix.tls_listen");
            }
            if session.username.is_some() != session.password.is_some() {
                self.fault(&key("username"), "username and password belong together");
            }
            for (name, problem) in session.copy_faults(fix, self.config.cluster.is_on()) {
                self.fault(&key(name), problem);
            }
        }
    }

    fn adapters(&mut self) {
        let mut names = BTreeMap::new();
        for (at, adapter) in self.config.adapters.iter().enumerate() {
            let key = format!("adapter.{at}.name");
            if adapter.name == SIMULATED {
                self.fault(&key, format!("{SIMULATED} is the simulated venue"));
            }
            if let Some(other) = names.insert(&adapter.name, at) {
                self.fault(&key, format!("it is the name of adapter.{other} too"));
            }
            let key = |name: &str| format!("adapter.{at}.{name}");
            let usual = &adapter.usual;
            match adapter.kind {
                AdapterKind::BinanceSpot => self.binance(at, usual),
                AdapterKind::Fix => self.venue_profile(at, usual),
            }
            if let Some(path) = &usual.tls_ca {
                self.file(&key("tls_ca"), path);
            }
            if usual.password.is_some() && !usual.tls {
                let text = format!("{}: without tls the password is sent unencrypted", key("password"));
                self.warnings.push(text);
            }
        }
    }

    /// Checks that all state of the server is in its data folder; otherwise the standby would lack
    /// a part of it.
    fn standby(&mut self) {
        let level = self.config.durability();
        if self.config.standby.group.is_none() {
            if level == Durability::Replicated {
                self.fault("journal.level", "level replicated needs standby.group");
            }
            return;
        }
        if level == Durability::None {
            self.fault("journal.level", "a standby needs a journal");
        } else if level != Durability::Replicated {
            let text =
                "journal.level: the last acknowledged commands may be lost when the standby takes over";
            self.warnings.push(text.to_string());
        }
        if self.config.cluster.is_on() {
            self.fault("standby.group", "a server of a cluster has no standby");
        }
        match &self.config.standby.secret {
            Some(secret) if secret.reveal().len() < SECRET_BYTES_MIN => {
                self.fault("standby.secret", format!("it has fewer than {SECRET_BYTES_MIN} bytes"));
            }
            None if !self.config.nats.is_loopback() => {
                let text = "standby.secret: without it, every client that may publish in the stream of the standby can take the lead";
                self.warnings.push(text.to_string());
            }
            Some(_) | None => {}
        }
        let elsewhere = "with standby.group stores lie in service.data_dir";
        for (at, session) in self.config.fix.sessions.iter().enumerate() {
            if session.file_store_path.is_some() {
                self.fault(&format!("fix.session.{at}.FileStorePath"), elsewhere);
            }
        }
        for (at, adapter) in self.config.adapters.iter().enumerate() {
            if adapter.usual.file_store_path.is_some() {
                self.fault(&format!("adapter.{at}.FileStorePath"), elsewhere);
            }
        }
    }

    fn nats(&mut self) {
        let is_used = self.config.cluster.is_on() || self.config.standby.group.is_some();
        let has_strategies = self.config.has_remote_strategies(StrategyTransport::Nats);
        if !has_strategies && !is_used {
            return;
        }
        let nats = &self.config.nats;
        if nats.cert.is_some() != nats.key.is_some() {
            self.fault("nats.cert", "nats.cert and nats.key belong together");
        }
        if nats.user.is_some() != nats.password.is_some() {
            self.fault("nats.user", "nats.user and nats.password belong together");
        }
        let proofs = [nats.user.is_some(), nats.token.is_some(), nats.credentials_file.is_some()];
        let proofs = proofs.into_iter().filter(|given| *given).count();
        if proofs > 1 {
            self.fault("nats.user", "one of a password, a token and a file of credentials is enough");
        }
        if nats.peer_user.is_some() != nats.peer_password.is_some() {
            self.fault("nats.peer_user", "nats.peer_user and nats.peer_password belong together");
        }
        if nats.peer_user.is_some() && nats.peer_credentials_file.is_some() {
            self.fault("nats.peer_user", "one of a password and a file of credentials is enough");
        }
        if nats.peer_user.is_some() && nats.peer_user == nats.user {
            self.fault(
                "nats.peer_user",
                "it is the same as nats.user: servers need a login that is not used for strategies",
            );
        }
        if is_used && has_strategies && proofs > 0 && !nats.has_peer_login() {
            let text = "nats.peer_user: servers and strategies share a login at the broker: see config/nats/pitlane.conf";
            self.warnings.push(text.to_string());
        }
        let files = [
            ("nats.credentials_file", &nats.credentials_file),
            ("nats.peer_credentials_file", &nats.peer_credentials_file),
            ("nats.ca", &nats.ca),
            ("nats.cert", &nats.cert),
            ("nats.key", &nats.key),
        ];
        for (key, file) in files {
            if let Some(path) = file {
                self.file(key, path);
            }
        }
        if !nats.is_loopback() && !nats.is_encrypted() {
            self.warnings.push("nats.url: orders travel to another machine without TLS".to_string());
        }
        if !nats.is_loopback() && proofs == 0 && nats.cert.is_none() {
            let text = "nats.url: every client that reaches the broker can trade, because the broker requires no login";
            self.warnings.push(text.to_string());
        }
    }

    /// Checks the link without a broker.
    fn strategies(&mut self) {
        if !self.config.has_remote_strategies(StrategyTransport::Direct) {
            return;
        }
        let link = &self.config.strategies_link;
        if link.listen.is_none() && !link.unix_socket {
            self.fault("strategies.listen", "no strategy can connect: set it, or strategies.unix_socket");
        }
        if link.cert.is_some() != link.key.is_some() {
            self.fault("strategies.cert", "strategies.cert and strategies.key belong together");
        }
        let is_tls = |address: &StrategyAddress| matches!(address, StrategyAddress::Tls { .. });
        if link.connect.iter().any(is_tls) && link.ca.is_none() {
            self.fault(
                "strategies.ca",
                "pitlanes:// needs the certificates that the server's must come from",
            );
        }
        for (key, file) in
            [("strategies.ca", &link.ca), ("strategies.cert", &link.cert), ("strategies.key", &link.key)]
        {
            if let Some(path) = file {
                self.file(key, path);
            }
        }
        if let Some(address) = link.connect.iter().find(|address| address.is_exposed()) {
            let text = format!("strategies.connect: orders travel to {address} without TLS: use pitlanes://");
            self.warnings.push(text);
        }
    }

    fn cluster(&mut self) {
        let Config { cluster, members, topology, .. } = self.config;
        if !cluster.is_on() {
            return;
        }
        if let Some(fault) = super::cluster::find_fault(cluster, members, topology.shards) {
            self.fault("member", fault);
        }
        if self.config.service.mode == ServiceMode::Simulation {
            self.fault("cluster.name", "a simulation cannot join a cluster");
        }
        if self.config.durability() == Durability::None {
            let text = "journal.level: after a restart this server lacks results that it has sent to the other servers";
            self.warnings.push(text.to_string());
        }
    }

    /// Checks that an origin is `https://host` or `http://host:port`. `null` is refused above all:
    /// every sandboxed frame and every local file has that origin, so any page could call the
    /// service.
    fn origins(&mut self) {
        for origin in &self.config.http.cors_origins {
            let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
            let is_origin = host.is_some_and(|host| {
                !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
            });
            if !is_origin {
                let problem =
                    format!("\"{origin}\" is no origin of a page, such as \"https://desk.example.com\"");
                self.fault("http.cors_origins", problem);
            }
        }
    }

    fn bounds(&mut self) {
        let Config { net, http, stomp, fix, journal, .. } = self.config;
        if !journal.segment_bytes.is_multiple_of(PAGE_BYTES) {
            self.fault("journal.segment_bytes", format!("it is not a multiple of {PAGE_BYTES}"));
        }
        if net.per_peer_max > net.connections_max {
            self.fault("net.per_peer_max", "it is more than net.connections_max");
        }
        if http.per_peer_max > http.connections_max {
            self.fault("http.per_peer_max", "it is more than http.connections_max");
        }
        if stomp.header_line_bytes_max > stomp.head_bytes_max {
            self.fault("stomp.header_line_bytes_max", "it is more than stomp.head_bytes_max");
        }
        if fix.out_buffer_bytes < fix.message_bytes_max {
            self.fault("fix.out_buffer_bytes", "it is less than one message, fix.message_bytes_max");
        }
    }
}

/// Returns whether two listeners need the same port of the same address.
fn collide(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (everywhere || one.ip() == other.ip())
}

fn show_cores(cores: &[u32]) -> String {
    match cores {
        [] => "none".to_string(),
        [one] => one.to_string(),
        [first, .., last] if (last - first) as usize == cores.len() - 1 => format!("{first} to {last}"),
        _ => cores.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}
