//! The FIX acceptor: `[fix]` and `[[fix.session]]`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use pitlane_engine::time::TimeOfDay;
use pitlane_protocols::fix::dictionary::CustomField;
use pitlane_protocols::fix::session::{LOGON_BYTES_MAX, OUTPUT_BYTES_HIGH};
use pitlane_protocols::fix::version::FixVersion;

use super::section::{Section, text_of};
use super::tree::{ConfigTable, ConfigValue};
use super::words::Secret;

/// Largest `orders_max`: the orders of all sessions of a gateway.
const SESSION_ORDERS_MAX: u32 = 1 << 20;

/// Longest CompID, in bytes; longer ones are a mistake.
const COMP_ID_BYTES_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixConfig {
    pub listen: Option<SocketAddr>,
    pub tls_listen: Option<SocketAddr>,
    pub exec_type: ExecTypes,
    pub message_bytes_max: usize,
    pub logon_timeout_ms: u32,
    pub logon_bytes_max: usize,
    /// 0: any.
    pub sending_time_s_max: u32,
    pub out_buffer_bytes: usize,
    /// Bytes of each session's store.
    pub store_bytes: usize,
    /// Fields beyond FIX 4.4 for the sessions that validate.
    pub custom_fields: Vec<CustomField>,
    pub sessions: Vec<FixSessionConfig>,
}

/// How cancels, replacements and expiry are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecTypes {
    /// As the specification lists them.
    Spec,
    /// As FIX 4.4 defines them.
    Strict44,
}

/// What happens to a Logon for a session that is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondLogon {
    /// Its connection is closed.
    Refuse,
    /// Its connection takes the place of the first one if that does not answer a Test Request.
    Replace,
}

/// What a session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionPurpose {
    /// Orders and market data.
    All,
    Orders,
    MarketData,
    /// Copies of the reports of other sessions and interfaces.
    DropCopy,
}

impl SessionPurpose {
    pub fn has_orders(self) -> bool {
        matches!(self, SessionPurpose::All | SessionPurpose::Orders)
    }

    pub fn has_market_data(self) -> bool {
        matches!(self, SessionPurpose::All | SessionPurpose::MarketData)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixSessionConfig {
    pub version: FixVersion,
    pub sender_comp_id: String,
    /// CompID of the client; may end in `*`.
    pub target_comp_id: String,
    pub heart_bt_int_s: u32,
    pub start_time: TimeOfDay,
    pub end_time: TimeOfDay,
    pub reset_on_logon: bool,
    pub refresh_on_logon: bool,
    pub use_data_dictionary: bool,
    pub validate_incoming_message: bool,
    pub validate_user_defined_fields: bool,
    /// Allowed order types, by OrdType less one: Market, Limit, Stop, Stop Limit.
    pub valid_order_types: [bool; 4],
    /// None: `fix` in the data folder.
    pub file_store_path: Option<PathBuf>,
    pub file_log_path: Option<PathBuf>,
    /// None: every FIX listener.
    pub socket_accept_port: Option<u16>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    /// Empty: any address.
    pub addresses_allowed: Vec<AllowedAddress>,
    /// None: the strategy SERVER.
    pub strategy: Option<String>,
    /// Seconds after which the orders of a disconnected session are cancelled.
    pub cancel_on_disconnect_s: Option<u32>,
    pub report_open_orders: bool,
    pub second_logon: SecondLogon,
    /// Time for the first connection to answer before a second one replaces it.
    pub replace_after_ms: u32,
    pub orders_max: u32,
    /// 0: no limit.
    pub orders_per_s_max: u32,
    pub cancels_per_s_max: u32,
    pub queries_per_s_max: u32,
    pub purpose: SessionPurpose,
    /// Securities of all market data subscriptions together.
    pub market_data_max: usize,
    /// Whether market data carries RptSeq (83).
    pub market_data_rpt_seq: bool,
    /// Filters of copies: names of accounts, names of strategies, CompIDs of clients. Empty: all.
    pub copy_accounts: Vec<String>,
    pub copy_strategies: Vec<String>,
    pub copy_sessions: Vec<String>,
}

impl FixConfig {
    /// Reads the section. `like` is the first session of the built-in settings.
    pub(super) fn read(section: &mut Section<'_>, like: &ConfigTable) -> FixConfig {
        FixConfig {
            listen: section.address("listen"),
            tls_listen: section.address("tls_listen"),
            exec_type: section
                .word("exec_type", &[("spec", ExecTypes::Spec), ("strict44", ExecTypes::Strict44)]),
            message_bytes_max: section.number("message_bytes_max", 1_024..=16 << 20),
            logon_timeout_ms: section.number("logon_timeout_ms", 100..=600_000),
            logon_bytes_max: section.number("logon_bytes_max", 512..=LOGON_BYTES_MAX),
            sending_time_s_max: section.number("sending_time_s_max", 0..=86_400),
            out_buffer_bytes: section.number("out_buffer_bytes", 2 * OUTPUT_BYTES_HIGH..=1 << 30),
            store_bytes: section.number::<usize>("store_bytes", 1 << 20..=1 << 32).next_multiple_of(4_096),
            custom_fields: section.items(
                "custom_fields",
                |value| CustomField::parse(text_of(value)?),
                CustomField::to_string,
            ),
            sessions: section.list("session", like, FixSessionConfig::read),
        }
    }
}

/// `BeginString`, the default first.
const VERSIONS: [(&str, FixVersion); 3] =
    [("FIX.4.4", FixVersion::Fix44), ("FIX.4.2", FixVersion::Fix42), ("FIXT.1.1", FixVersion::Fix50Sp2)];

impl FixSessionConfig {
    fn read(section: &mut Section<'_>) -> FixSessionConfig {
        section.word("ConnectionType", &[("acceptor", ())]);
        let port: u16 = section.number("SocketAcceptPort", 0..=u16::MAX);
        let cancel = section.flag("cancel_on_disconnect");
        let grace_s = section.number("cancel_grace_s", 0..=86_400);
        FixSessionConfig {
            version: section.word("BeginString", &VERSIONS),
            sender_comp_id: read_comp_id(section, "SenderCompID", false),
            target_comp_id: read_comp_id(section, "TargetCompID", true),
            heart_bt_int_s: section.number("HeartBtInt", 0..=3_600),
            start_time: section.time_of_day("StartTime"),
            end_time: section.time_of_day("EndTime"),
            reset_on_logon: section.yes("ResetOnLogon"),
            refresh_on_logon: section.yes("RefreshOnLogon"),
            use_data_dictionary: section.yes("UseDataDictionary"),
            validate_incoming_message: section.yes("ValidateIncomingMessage"),
            validate_user_defined_fields: section.yes("ValidateUserDefinedFields"),
            valid_order_types: section
                .text_as("ValidOrderTypes", parse_order_types, show_order_types)
                .unwrap_or_default(),
            file_store_path: section.path("FileStorePath"),
            file_log_path: section.path("FileLogPath"),
            socket_accept_port: (port > 0).then_some(port),
            username: section.optional("username"),
            password: section.secret("password"),
            addresses_allowed: section.items("addresses_allowed", AllowedAddress::read, AllowedAddress::show),
            strategy: section.optional("strategy"),
            cancel_on_disconnect_s: cancel.then_some(grace_s),
            report_open_orders: section.flag("report_open_orders"),
            second_logon: section
                .word("second_logon", &[("refuse", SecondLogon::Refuse), ("replace", SecondLogon::Replace)]),
            replace_after_ms: section.number("replace_after_ms", 100..=60_000),
            orders_max: section.number("orders_max", 1..=SESSION_ORDERS_MAX),
            orders_per_s_max: section.number("orders_per_s_max", 0..=10_000_000),
            cancels_per_s_max: section.number("cancels_per_s_max", 0..=10_000_000),
            queries_per_s_max: section.number("queries_per_s_max", 0..=10_000_000),
            purpose: section.word(
                "purpose",
                &[
                    ("all", SessionPurpose::All),
                    ("orders", SessionPurpose::Orders),
                    ("market-data", SessionPurpose::MarketData),
                    ("drop-copy", SessionPurpose::DropCopy),
                ],
            ),
            market_data_max: section.number("market_data_max", 0..=100_000),
            market_data_rpt_seq: section.flag("market_data_rpt_seq"),
            copy_accounts: section.texts("copy_accounts"),
            copy_strategies: section.texts("copy_strategies"),
            copy_sessions: section.texts("copy_sessions"),
        }
    }
}

impl FixSessionConfig {
    /// Returns whether a client with this CompID belongs to the session.
    fn accepts(&self, client: &str) -> bool {
        match self.target_comp_id.strip_suffix('*') {
            Some(stem) => client.starts_with(stem),
            None => client == self.target_comp_id,
        }
    }

    /// Returns what is wrong with the keys of copies, by key.
    pub(super) fn copy_faults(&self, fix: &FixConfig, in_cluster: bool) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        let lists = [
            ("copy_accounts", &self.copy_accounts),
            ("copy_strategies", &self.copy_strategies),
            ("copy_sessions", &self.copy_sessions),
        ];
        if self.purpose != SessionPurpose::DropCopy {
            let given = lists.into_iter().filter(|(_, list)| !list.is_empty());
            faults.extend(given.map(|(key, _)| (key, "it needs purpose = \"drop-copy\"".to_string())));
            return faults;
        }
        if self.target_comp_id.ends_with('*') {
            let problem = "a drop-copy session has one client: copies begin before its first Logon";
            faults.push(("TargetCompID", problem.to_string()));
        }
        if self.reset_on_logon {
            let problem = "a drop-copy session needs \"N\": a reset deletes what its client has missed";
            faults.push(("ResetOnLogon", problem.to_string()));
        }
        if in_cluster {
            let problem =
                "a server of a cluster has no drop-copy sessions: it lacks past events of the others";
            faults.push(("purpose", problem.to_string()));
        }
        let orders = |session: &&FixSessionConfig| session.purpose.has_orders();
        for client in &self.copy_sessions {
            if !fix.sessions.iter().filter(orders).any(|session| session.accepts(client)) {
                faults.push(("copy_sessions", format!("there is no session for the client {client}")));
            }
        }
        faults
    }
}

pub(super) fn read_comp_id(section: &mut Section<'_>, key: &'static str, family: bool) -> String {
    let parse = |text: &str| {
        let stem = if family { text.strip_suffix('*').unwrap_or(text) } else { text };
        let plain = stem.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
        if plain && !text.is_empty() && text.len() <= COMP_ID_BYTES_MAX {
            return Ok(text.to_string());
        }
        let star = if family { ", with * at the end for a family" } else { "" };
        Err(format!("it must be 1 to {COMP_ID_BYTES_MAX} letters, digits and -_.:{star}, not {text:?}"))
    };
    section.text_as(key, parse, String::clone).unwrap_or_default()
}

fn parse_order_types(text: &str) -> Result<[bool; 4], String> {
    let mut types = [false; 4];
    for word in text.split(',') {
        match word.trim() {
            "1" => types[0] = true,
            "2" => types[1] = true,
            "3" => types[2] = true,
            "4" => types[3] = true,
            _ => return Err(format!("it must be some of 1,2,3,4, not {text:?}")),
        }
    }
    Ok(types)
}

fn show_order_types(types: &[bool; 4]) -> String {
    let listed = (1..=4).zip(types).filter(|(_, on)| **on).map(|(number, _)| number.to_string());
    listed.collect::<Vec<_>>().join(",")
}

/// An address, or a network of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedAddress {
    base: IpAddr,
    prefix_bits: u8,
}

impl AllowedAddress {
    pub fn parse(text: &str) -> Option<AllowedAddress> {
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base: IpAddr = base.parse().ok()?;
        let width = if base.is_ipv4() { 32 } else { 128 };
        let prefix_bits = bits.map_or(Some(width), |bits| bits.parse().ok().filter(|bits| *bits <= width))?;
        Some(AllowedAddress { base, prefix_bits })
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(other)) => {
                let differ = base.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= self.prefix_bits as u32
            }
            (IpAddr::V6(base), IpAddr::V6(other)) => {
                let differ = base.to_bits() ^ other.to_bits();
                differ.leading_zeros() >= self.prefix_bits as u32
            }
            _ => false,
        }
    }

    fn read(value: &ConfigValue) -> Result<AllowedAddress, String> {
        let ConfigValue::Text(text) = value else {
            return Err(format!("it must be a list of texts, not of {}", value.kind()));
        };
        AllowedAddress::parse(text)
            .ok_or_else(|| format!("{text:?} is not an address such as 10.1.2.3 or 10.1.0.0/16"))
    }

    fn show(&self) -> String {
        format!("{}/{}", self.base, self.prefix_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_one_or_a_network() {
        let inside = |network: &str, address: &str| {
            AllowedAddress::parse(network).unwrap().contains(address.parse().unwrap())
        };
        assert!(inside("10.1.0.0/16", "10.1.255.3") && !inside("10.1.0.0/16", "10.2.0.1"));
        assert!(inside("10.1.2.3", "10.1.2.3") && !inside("10.1.2.3", "10.1.2.4"));
        assert!(inside("10.1.2.3", "::ffff:10.1.2.3"));
        assert!(inside("0.0.0.0/0", "8.8.8.8") && !inside("0.0.0.0/0", "::1"));
        assert!(inside("fe80::/10", "fe80::1") && !inside("fe80::/10", "2001:db8::1"));
        for text in ["", "10.1.0.0/33", "10.1.0.0/", "host", "::/129"] {
            assert_eq!(AllowedAddress::parse(text), None, "{text}");
        }
    }
}
