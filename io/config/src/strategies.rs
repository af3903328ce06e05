//! The connection of strategies in their own processes to their server: `[strategies]`.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::section::Section;
use super::words::Secret;

/// Most addresses of one server: a leader, its standby, and a spare for each.
const ADDRESSES_MAX: usize = 4;

/// How strategies in their own processes reach their server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyTransport {
    /// They connect to the server itself.
    Direct,
    /// The broker of `[nats]` is between them and the server.
    Nats,
}

impl StrategyTransport {
    const WORDS: [(&str, StrategyTransport); 2] =
        [("direct", StrategyTransport::Direct), ("nats", StrategyTransport::Nats)];

    pub fn word(self) -> &'static str {
        StrategyTransport::WORDS[self as usize].0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategiesConfig {
    pub transport: StrategyTransport,
    /// Address of the server's listener; None: no listener.
    pub listen: Option<SocketAddr>,
    /// Whether a listener on loopback uses TLS; other listeners always do.
    pub tls: bool,
    /// Whether the server listens on a Unix socket in its data folder.
    pub unix_socket: bool,
    /// Addresses that a process tries in turn.
    pub connect: Vec<StrategyAddress>,
    pub token: Option<Secret>,
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

impl StrategiesConfig {
    pub(super) fn read(section: &mut Section<'_>) -> StrategiesConfig {
        let show = |addresses: &Vec<StrategyAddress>| {
            addresses.iter().map(StrategyAddress::to_string).collect::<Vec<_>>().join(",")
        };
        StrategiesConfig {
            transport: section.word("transport", &StrategyTransport::WORDS),
            listen: section.address("listen"),
            tls: section.flag("tls"),
            unix_socket: section.flag("unix_socket"),
            connect: section.text_as("connect", parse_addresses, show).unwrap_or_default(),
            token: section.secret("token"),
            ca: section.path("ca"),
            cert: section.path("cert"),
            key: section.path("key"),
        }
    }

    /// Returns the listener, and whether it uses TLS.
    pub fn listener(&self) -> Option<(SocketAddr, bool)> {
        self.listen.map(|address| (address, self.tls || !address.ip().is_loopback()))
    }
}

/// Address of a server, as the process of a strategy names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategyAddress {
    Tcp { host: String, port: u16 },
    Tls { host: String, port: u16 },
    Unix(PathBuf),
}

const TCP: &str = "pitlane://";
const TLS: &str = "pitlanes://";
const UNIX: &str = "unix:";

impl StrategyAddress {
    /// Parses `pitlane://HOST:PORT`, `pitlanes://HOST:PORT` or `unix:PATH`.
    pub fn parse(text: &str) -> Result<StrategyAddress, String> {
        let text = text.trim();
        let bad =
            || format!("it must be pitlane://HOST:PORT, pitlanes://HOST:PORT or unix:PATH, not {text:?}");
        if text.contains('@') {
            return Err("it must not contain a login: there is strategies.token".to_string());
        }
        if let Some(path) = text.strip_prefix(UNIX) {
            // Both unix:/path and the form of a URL, unix:///path, are in use.
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(bad()) } else { Ok(StrategyAddress::Unix(path.into())) };
        }
        let (rest, is_tls) = match (text.strip_prefix(TCP), text.strip_prefix(TLS)) {
            (Some(rest), _) => (rest, false),
            (None, Some(rest)) => (rest, true),
            (None, None) => return Err(bad()),
        };
        let (host, port) = rest.rsplit_once(':').ok_or_else(bad)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        // An IPv6 address has brackets, since its colons would otherwise end the host.
        let is_host = |host: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !host.is_empty() && host.bytes().all(is_plain)
        };
        let host = match bracketed {
            Some(address) => address.parse::<IpAddr>().map_err(|_| bad())?.to_string(),
            None if is_host(host) => host.to_string(),
            None => return Err(bad()),
        };
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?;
        Ok(if is_tls { StrategyAddress::Tls { host, port } } else { StrategyAddress::Tcp { host, port } })
    }

    /// Returns whether orders would travel to another machine without encryption.
    pub fn is_exposed(&self) -> bool {
        match self {
            StrategyAddress::Tcp { host, .. } => {
                host != "localhost" && !host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
            }
            StrategyAddress::Tls { .. } | StrategyAddress::Unix(_) => false,
        }
    }
}

impl fmt::Display for StrategyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            StrategyAddress::Tcp { host, port } => (TCP, host, port),
            StrategyAddress::Tls { host, port } => (TLS, host, port),
            StrategyAddress::Unix(path) => return write!(f, "{UNIX}{}", path.display()),
        };
        match host.contains(':') {
            true => write!(f, "{scheme}[{host}]:{port}"),
            false => write!(f, "{scheme}{host}:{port}"),
        }
    }
}

fn parse_addresses(text: &str) -> Result<Vec<StrategyAddress>, String> {
    let addresses: Vec<StrategyAddress> =
        text.split(',').map(StrategyAddress::parse).collect::<Result<_, _>>()?;
    if addresses.len() > ADDRESSES_MAX {
        return Err(format!("there may be {ADDRESSES_MAX} addresses"));
    }
    Ok(addresses)
}

/// Returns whether an address leads to a server itself and not to a broker.
pub fn is_direct_address(text: &str) -> bool {
    let first = text.trim_start();
    [TCP, TLS, UNIX].iter().any(|scheme| first.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_a_host_and_a_port_or_is_a_path() {
        for good in [
            "pitlane://127.0.0.1:9882",
            "pitlanes://desk.example.com:9882",
            "pitlane://[::1]:1",
            "unix:data/strategies.sock",
        ] {
            assert_eq!(StrategyAddress::parse(good).map(|address| address.to_string()).as_deref(), Ok(good));
        }
        let path = StrategyAddress::parse("unix:///run/pitlane.sock");
        assert_eq!(path, Ok(StrategyAddress::Unix("/run/pitlane.sock".into())));
        for bad in [
            "",
            "127.0.0.1:9882",
            "pitlane://",
            "pitlane://a",
            "pitlane://a:0",
            "pitlane://a:65536",
            "pitlane://:1",
            "pitlane://a/b:1",
            "pitlane://::1:1",
            "pitlane://[a]:1",
            "pitlane://me@a:1",
            "unix:",
            "unix://",
            "nats://127.0.0.1:4222",
        ] {
            assert!(StrategyAddress::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_process_tries_a_few_addresses_at_most() {
        let addresses = |count: usize| vec!["pitlane://a:1"; count].join(",");
        assert_eq!(parse_addresses(&addresses(ADDRESSES_MAX)).map(|all| all.len()), Ok(ADDRESSES_MAX));
        assert!(parse_addresses(&addresses(ADDRESSES_MAX + 1)).is_err());
    }

    #[test]
    fn only_tcp_to_another_machine_is_exposed() {
        let is_exposed = |text| StrategyAddress::parse(text).unwrap().is_exposed();
        for safe in ["pitlane://127.0.0.1:1", "pitlane://localhost:1", "pitlane://[::1]:1", "unix:a"] {
            assert!(!is_exposed(safe), "{safe}");
        }
        assert!(is_exposed("pitlane://10.0.0.1:1") && is_exposed("pitlane://127.example.com:1"));
        assert!(!is_exposed("pitlanes://10.0.0.1:1"));
    }

    #[test]
    fn the_scheme_of_an_address_tells_the_transport() {
        for direct in ["pitlane://a:1", "pitlanes://a:1", "unix:a"] {
            assert!(is_direct_address(direct), "{direct}");
        }
        assert!(!is_direct_address("nats://a:1") && !is_direct_address("tls://a:1"));
    }

    #[test]
    fn a_listener_uses_tls_beyond_loopback_and_where_it_is_asked_for() {
        let with = |listen: &str, tls| StrategiesConfig {
            listen: Some(listen.parse().unwrap()),
            tls,
            ..crate::Config::default().strategies_link
        };
        let is_tls = |config: StrategiesConfig| config.listener().map(|(_, tls)| tls);
        assert_eq!(is_tls(with("127.0.0.1:1", false)), Some(false));
        assert_eq!(is_tls(with("127.0.0.1:1", true)), Some(true));
        assert_eq!(is_tls(with("0.0.0.0:1", false)), Some(true));
    }
}
