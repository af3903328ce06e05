//! Adapters to real venues: `[[adapter]]`, and `[adapter_defaults]` for keys that most of them
//! omit.

use std::path::PathBuf;

use pitlane_engine::time::TimeOfDay;

use super::fix::read_comp_id;
use super::section::Section;
use super::tree::ConfigTable;
use super::words::Secret;

/// An adapter to a real venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Name of the adapter in the reference data.
    pub name: String,
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
    /// None: `venue` in the data folder.
    pub file_store_path: Option<PathBuf>,
    pub file_log_path: Option<PathBuf>,
}

impl AdapterConfig {
    pub(super) fn read(section: &mut Section<'_>) -> AdapterConfig {
        section.word("type", &[("FIX", ())]);
        AdapterConfig {
            name: section.name("name", 32),
            sender_comp_id: read_comp_id(section, "SenderCompID", false),
            target_comp_id: read_comp_id(section, "TargetCompID", false),
            socket_connect_host: section.text("SocketConnectHost"),
            socket_connect_port: section.number("SocketConnectPort", 1..=u16::MAX),
            usual: AdapterDefaults::read(section),
        }
    }
}

impl AdapterDefaults {
    /// Reads the defaults, checked as strictly as the adapters themselves.
    pub(super) fn read_defaults(section: &mut Section<'_>) -> ConfigTable {
        let like = section.like();
        section.word("type", &[("FIX", ())]);
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
            file_store_path: section.path("FileStorePath"),
            file_log_path: section.path("FileLogPath"),
        }
    }
}
