//! Adapters to real venues: `[[adapter]]`, and `[adapter_defaults]` for keys that most of them
//! omit.

use std::path::PathBuf;

use pitlane_engine::time::TimeOfDay;

use super::fix::read_comp_id;
use super::section::Section;
use super::tree::ConfigTable;
use super::venue_profile::{VenueKeyConfig, VenueProfileConfig};
use super::words::Secret;

/// The protocol of a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterKind {
    Fix,
    BinanceSpot,
}

/// Levels of each side that a shard publishes, so that more are not requested by number.
const MARKET_DEPTH_MAX: u16 = 200;

const KINDS: [(&str, AdapterKind); 2] =
    [("FIX", AdapterKind::Fix), ("BINANCE-SPOT", AdapterKind::BinanceSpot)];

/// An adapter to a real venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Name of the adapter in the reference data.
    pub name: String,
    pub kind: AdapterKind,
    /// The CompIDs and the address are empty unless the venue speaks FIX.
    pub sender_comp_id: String,
    pub target_comp_id: String,
    pub socket_connect_host: String,
    pub socket_connect_port: u16,
    pub usual: AdapterDefaults,
}

/// Settings that have a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterDefaults {
    pub heart_bt_int_s: u32,
    pub reconnect_interval_s: u32,
    pub start_time: TimeOfDay,
    pub end_time: TimeOfDay,
    pub reset_on_logon: bool,
    pub tls: bool,
    /// Certificate authorities of the venue; needed with `tls`.
    pub tls_ca: Option<PathBuf>,
    pub username: Option<String>,
    pub password: Option<Secret>,
    /// Name of our account at the venue.
    pub account: Option<String>,
    /// Whether the venue supports Order Status Request.
    pub status_request: bool,
    /// Whether the venue provides market data.
    pub market_data: bool,
    /// Levels of each side that are requested: 1 for the best prices, 0 for all.
    pub market_depth: u16,
    /// None: `venue` in the data folder.
    pub file_store_path: Option<PathBuf>,
    pub file_log_path: Option<PathBuf>,
    pub key: VenueKeyConfig,
    pub profile: VenueProfileConfig,
    pub binance: BinanceConfig,
}

/// Settings of venues of the type BINANCE-SPOT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinanceConfig {
    pub is_production: bool,
    /// Whether the operator has confirmed that orders are real.
    pub i_understand: bool,
    /// None: the address of the environment.
    pub url: Option<String>,
    pub stream_url: Option<String>,
    pub api_key: Option<Secret>,
    pub receive_window_ms: u32,
}

impl AdapterConfig {
    pub(super) fn read(section: &mut Section<'_>) -> AdapterConfig {
        let kind = section.word("type", &KINDS);
        let name = section.name("name", 32);
        let usual = AdapterDefaults::read(section);
        match kind {
            AdapterKind::Fix => AdapterConfig {
                name,
                kind,
                sender_comp_id: read_comp_id(section, "SenderCompID", false),
                target_comp_id: read_comp_id(section, "TargetCompID", false),
                socket_connect_host: section.text("SocketConnectHost"),
                socket_connect_port: section.number("SocketConnectPort", 1..=u16::MAX),
                usual,
            },
            AdapterKind::BinanceSpot => AdapterConfig {
                name,
                kind,
                sender_comp_id: String::new(),
                target_comp_id: String::new(),
                socket_connect_host: String::new(),
                socket_connect_port: 0,
                usual,
            },
        }
    }
}

impl BinanceConfig {
    fn read(section: &mut Section<'_>) -> BinanceConfig {
        BinanceConfig {
            is_production: section.word("environment", &[("testnet", false), ("production", true)]),
            i_understand: section.flag("i_understand"),
            url: section.optional("url"),
            stream_url: section.optional("stream_url"),
            api_key: section.secret("api_key"),
            receive_window_ms: section.number("receive_window_ms", 100..=60_000),
        }
    }
}

impl AdapterDefaults {
    /// Reads the defaults, checked as strictly as the adapters themselves.
    pub(super) fn read_defaults(section: &mut Section<'_>) -> ConfigTable {
        let like = section.like();
        section.word("type", &KINDS);
        AdapterDefaults::read(section);
        like
    }

    fn read(section: &mut Section<'_>) -> AdapterDefaults {
        AdapterDefaults {
            heart_bt_int_s: section.number("HeartBtInt", 1..=3_600),
            reconnect_interval_s: section.number("ReconnectInterval", 1..=3_600),
            start_time: section.time_of_day("StartTime"),
            end_time: section.time_of_day("EndTime"),
            reset_on_logon: section.yes("ResetOnLogon"),
            tls: section.flag("tls"),
            tls_ca: section.path("tls_ca"),
            username: section.optional("username"),
            password: section.secret("password"),
            account: section.optional("account"),
            status_request: section.flag("status_request"),
            market_data: section.flag("market_data"),
            market_depth: section.number("market_depth", 0..=MARKET_DEPTH_MAX),
            file_store_path: section.path("FileStorePath"),
            file_log_path: section.path("FileLogPath"),
            key: VenueKeyConfig::read(section),
            profile: VenueProfileConfig::read(section),
            binance: BinanceConfig::read(section),
        }
    }
}
