//! Settings of a session, checked and complete, under the specification's names where it has one.

use std::sync::Arc;

use pitlane_engine::id::{AccountId, Source, StrategyId};
use pitlane_engine::terms::OrderKind;
use pitlane_engine::time::NS_PER_S;

use super::stream::OUTPUT_BYTES_MAX;
use crate::codes::FixProfile;
use crate::fix::dictionary::{self, DictionarySettings};
use crate::fix::rate_limit::RateLimitSettings;
use crate::fix::schedule::SessionSchedule;
use crate::fix::version::FixVersion;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixSessionSettings {
    /// `BeginString`, and with FIXT the version of the application messages.
    pub version: FixVersion,
    /// Our CompID (`SenderCompID`).
    pub sender_comp_id: String,
    /// The client's CompID (`TargetCompID`), without a pattern.
    pub target_comp_id: String,
    /// Source of the session's orders for the shards.
    pub source: Source,
    /// Id of this installation in ExecIDs, the same as in the shards.
    pub instance: u64,
    /// `StartTime`, `EndTime`.
    pub schedule: SessionSchedule,
    /// `ResetOnLogon`.
    pub reset_on_logon: bool,
    /// `RefreshOnLogon`.
    pub refresh_on_logon: bool,
    /// `UseDataDictionary` and `ValidateIncomingMessage` together.
    pub validate: bool,
    /// What the operator adds to the dictionary. All sessions with the same additions share it.
    pub dictionary: Arc<DictionarySettings>,
    /// Whether a Logon must carry username and password, which the caller checks.
    pub login: bool,
    /// Largest difference of SendingTime from the current time, in nanoseconds; zero means no
    /// bound.
    pub sending_time_ns_max: u64,
    /// Whether NextExpectedMsgSeqNum (789) is read and sent.
    pub next_expected: bool,
    /// Messages requested by one Resend Request; zero means all.
    pub resend_chunk: u64,
    /// Whether a reset by `ResetOnLogon` is followed by one report for each open order.
    pub report_open_orders: bool,
    /// Time without a connection after which open orders are cancelled; `None` means never.
    pub cancel_on_disconnect_ns: Option<u64>,
    /// `fix.exec_type`.
    pub profile: FixProfile,
    /// `ValidOrderTypes`.
    pub order_types: Vec<OrderKind>,
    /// Strategy of an order that names none.
    pub strategy: StrategyId,
    /// Account of an order that names none; `None` means the only active account of the exchange.
    pub account: Option<AccountId>,
    /// Whether the session may trade at all.
    pub may_trade: bool,
    /// Whether the session may ask for positions, which are of all strategies.
    pub may_see_positions: bool,
    pub rate_limit: RateLimitSettings,
    /// Securities of all market data subscriptions together; zero means that none is permitted.
    pub market_data_max: usize,
    /// Whether market data carries RptSeq (83), which FIX 4.4 does not list there.
    pub market_data_rpt_seq: bool,
    /// `message_bytes_max`: longest body of a message, in bytes.
    pub message_bytes_max: usize,
    /// `out_buffer_bytes`: unsent output at which the peer is disconnected.
    pub output_bytes_max: usize,
    /// Finished orders that are remembered for repeated requests; above it the oldest are
    /// forgotten.
    pub finished_max: u32,
    /// Orders known at once, finished ones included. It should be at least what the desk knows of
    /// one session.
    pub orders_max: u32,
}

impl FixSessionSettings {
    /// Returns whether a session of this version may receive a message of this type. Only FIX 4.2
    /// lacks some of those that an acceptor handles.
    #[inline]
    pub(super) fn takes(&self, msg_type: &[u8]) -> bool {
        self.version != FixVersion::Fix42 || dictionary::is_msg_type(self.version, msg_type)
    }

    /// Returns the default settings, those of the specification's sample.
    pub fn new(sender_comp_id: &str, target_comp_id: &str, source: Source) -> FixSessionSettings {
        FixSessionSettings {
            version: FixVersion::default(),
            sender_comp_id: sender_comp_id.to_string(),
            target_comp_id: target_comp_id.to_string(),
            source,
            instance: 0,
            schedule: SessionSchedule::default(),
            reset_on_logon: true,
            refresh_on_logon: true,
            validate: false,
            dictionary: Arc::default(),
            login: false,
            sending_time_ns_max: 120 * NS_PER_S,
            next_expected: false,
            resend_chunk: 0,
            report_open_orders: true,
            cancel_on_disconnect_ns: None,
            profile: FixProfile::Spec,
            order_types: OrderKind::ALL.to_vec(),
            strategy: StrategyId::SERVER,
            account: None,
            may_trade: true,
            may_see_positions: true,
            rate_limit: RateLimitSettings::default(),
            market_data_max: 1_000,
            market_data_rpt_seq: false,
            message_bytes_max: 64 * 1_024,
            output_bytes_max: OUTPUT_BYTES_MAX,
            finished_max: 10_000,
            orders_max: 100_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::{Origin, PortId};

    use super::*;

    #[test]
    fn only_an_old_version_lacks_types_of_messages() {
        let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
        let mut settings = FixSessionSettings::new("PITLANE", "CLIENT1", source);
        assert!(settings.takes(b"D") && settings.takes(b"AN") && settings.takes(b"ZZ"));
        settings.version = FixVersion::Fix42;
        assert!(settings.takes(b"D") && !settings.takes(b"AN") && !settings.takes(b"ZZ"));
    }
}
