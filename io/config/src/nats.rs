//! Strategies in their own processes: the broker between them and the server, `[nats]`, and their
//! supervision, `[remote_strategies]`.

use std::net::IpAddr;
use std::path::PathBuf;

use super::section::Section;
use super::words::Secret;

/// Longest time without a message from a strategy: ten minutes.
const LEASE_MS_MAX: u32 = 600_000;
/// Smallest and largest size of kept events between strategies: one event, and what fits in memory.
const GENERIC_BYTES_MIN: usize = 2 << 20;
const GENERIC_BYTES_MAX: usize = 4 << 30;
/// Longest retention of events between strategies: thirty days.
const GENERIC_KEEP_S_MAX: u64 = 30 * 86_400;

/// Connection to the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsConfig {
    /// URL of one server, or of several servers of a broker cluster, separated by commas.
    pub url: String,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub token: Option<Secret>,
    pub credentials_file: Option<PathBuf>,
    /// Login of connections between servers; None: the login above.
    pub peer_user: Option<String>,
    pub peer_password: Option<Secret>,
    pub peer_credentials_file: Option<PathBuf>,
    pub tls: bool,
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Prefix of all our subjects, before the name of the installation.
    pub prefix: String,
}

impl NatsConfig {
    pub(super) fn read(section: &mut Section<'_>) -> NatsConfig {
        NatsConfig {
            url: section.text_as("url", parse_url, String::clone).unwrap_or_default(),
            user: section.optional("user"),
            password: section.secret("password"),
            token: section.secret("token"),
            credentials_file: section.path("credentials_file"),
            peer_user: section.optional("peer_user"),
            peer_password: section.secret("peer_password"),
            peer_credentials_file: section.path("peer_credentials_file"),
            tls: section.flag("tls"),
            ca: section.path("ca"),
            cert: section.path("cert"),
            key: section.path("key"),
            prefix: section.name("prefix", 32),
        }
    }

    /// Returns the connection of servers of a standby group or a cluster to each other, with a
    /// login that strategies do not have.
    pub fn between_servers(&self) -> NatsConfig {
        if !self.has_peer_login() {
            return self.clone();
        }
        NatsConfig {
            user: self.peer_user.clone(),
            password: self.peer_password.clone(),
            token: None,
            credentials_file: self.peer_credentials_file.clone(),
            ..self.clone()
        }
    }

    /// Returns whether connections between servers have a separate login.
    pub fn has_peer_login(&self) -> bool {
        self.peer_user.is_some() || self.peer_credentials_file.is_some()
    }

    /// Returns whether every server of the broker is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.servers().all(|url| {
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            let host = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                Some((host, _)) => host,
                None => rest.rsplit_once(':').map_or(rest, |(host, _)| host),
            };
            // A host name other than localhost may point to any machine, whatever it begins with.
            host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        })
    }

    /// Returns whether all connections to the broker are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.tls || self.servers().all(|url| url.starts_with("tls://"))
    }

    fn servers(&self) -> impl Iterator<Item = &str> {
        self.url.split(',').map(str::trim)
    }
}

/// Parses a URL. Clients with the role read can see the settings, so a password has a separate key.
pub fn parse_url(text: &str) -> Result<String, String> {
    let is_sound = |url: &str| {
        let url = url.trim();
        let host = url.strip_prefix("nats://").or_else(|| url.strip_prefix("tls://"));
        host.is_some_and(|host| !host.is_empty() && !host.contains('/') && !host.contains(' '))
    };
    if text.contains('@') {
        return Err(
            "it must not contain a password: there are nats.user, nats.password and nats.token".into()
        );
    }
    match text.split(',').all(is_sound) {
        true => Ok(text.to_string()),
        false => Err(format!("it must be such as nats://127.0.0.1:4222, not {text:?}")),
    }
}

/// What happens to a strategy that was stopped because its process was silent, when the process is
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnReturn {
    /// The strategy stays stopped until an operator starts it.
    StayStopped,
    /// The strategy is started again.
    Start,
}

/// Supervision of remote strategies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteStrategiesConfig {
    pub lease_ms: u32,
    pub on_return: OnReturn,
    /// Events kept in memory for each strategy.
    pub events_kept: usize,
    pub generic_keep_s: u64,
    pub generic_max: u64,
    /// Bytes of events between strategies that the server keeps without a broker.
    pub generic_bytes_max: usize,
    /// Folder in which the process of a strategy records the events it receives; None: no record.
    pub record_dir: Option<PathBuf>,
}

impl RemoteStrategiesConfig {
    pub(super) fn read(section: &mut Section<'_>) -> RemoteStrategiesConfig {
        RemoteStrategiesConfig {
            lease_ms: section.number("lease_ms", 100..=LEASE_MS_MAX),
            on_return: section
                .word("on_return", &[("stay_stopped", OnReturn::StayStopped), ("start", OnReturn::Start)]),
            events_kept: section.number("events_kept", 1_024..=10_000_000),
            generic_keep_s: section.number("generic_keep_s", 1..=GENERIC_KEEP_S_MAX),
            generic_max: section.number("generic_max", 1..=100_000_000),
            generic_bytes_max: section.number("generic_bytes_max", GENERIC_BYTES_MIN..=GENERIC_BYTES_MAX),
            record_dir: section.path("record_dir"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_and_tls_are_known_for_all_servers_of_a_broker() {
        let with = |url: &str| NatsConfig { url: url.to_string(), ..crate::Config::default().nats };
        for here in ["nats://127.0.0.1:4222", "tls://localhost:1", "nats://[::1]:4222", "nats://127.8.8.8"] {
            assert!(with(here).is_loopback(), "{here}");
        }
        let elsewhere = ["nats://127.example.com:1", "nats://10.0.0.1:4222", "nats://127.0.0.1:1,nats://b:2"];
        for there in elsewhere {
            assert!(!with(there).is_loopback(), "{there}");
        }
        assert!(with("tls://a:1, tls://b:1").is_encrypted());
        assert!(!with("tls://a:1,nats://b:1").is_encrypted() && !with("nats://a:1").is_encrypted());
        assert!(NatsConfig { tls: true, ..with("nats://a:1") }.is_encrypted());
    }

    #[test]
    fn an_address_of_a_broker_is_a_scheme_and_a_host_and_no_secret() {
        for good in ["nats://127.0.0.1:4222", "tls://broker.example.com:4222", "nats://a:1,nats://b:2"] {
            assert_eq!(parse_url(good).as_deref(), Ok(good));
        }
        for bad in ["", "127.0.0.1:4222", "http://a:1", "nats://", "nats://a/b", "nats://me:secret@a:1"] {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
    }
}
