//! How a session is set up: checked and complete, in the names of the specification where it has one.

use pitlane_engine::id::{AccountId, Source, StrategyId};
use pitlane_engine::terms::OrderKind;
use pitlane_engine::time::NS_PER_S;

use crate::codes::FixProfile;
use crate::fix::rate_limit::RateLimitSettings;
use crate::fix::schedule::SessionSchedule;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixSessionSettings {
    /// Ours (`SenderCompID`).
    pub sender_comp_id: String,
    /// The client's (`TargetCompID`), without a pattern.
    pub target_comp_id: String,
    /// Who the session is to the shards.
    pub source: Source,
    /// Names this platform in ExecIDs, the same as in the shards.
    pub instance: u64,
    /// `StartTime`, `EndTime`.
    pub schedule: SessionSchedule,
    /// `ResetOnLogon`
    pub reset_on_logon: bool,
    /// `RefreshOnLogon`
    pub refresh_on_logon: bool,
    /// `UseDataDictionary` and `ValidateIncomingMessage` both.
    pub validate: bool,
    /// Whether a Logon must carry a name and a password, which the caller checks.
    pub login: bool,
    /// How far SendingTime may be from now; zero: as far as it likes.
    pub sending_time_ns_max: u64,
    /// Whether NextExpectedMsgSeqNum (789) is looked at and told.
    pub next_expected: bool,
    /// Messages asked for in one Resend Request; zero: all.
    pub resend_chunk: u64,
    /// After a reset by `ResetOnLogon`, one report for each open order.
    pub report_open_orders: bool,
    /// Open orders are cancelled when the client has been away for so long; None: they stay.
    pub cancel_on_disconnect_ns: Option<u64>,
    /// `fix.exec_type`
    pub profile: FixProfile,
    /// `ValidOrderTypes`
    pub order_types: Vec<OrderKind>,
    /// Of an order that names no strategy.
    pub strategy: StrategyId,
    /// Of an order that names no account; None: the only active one of the exchange.
    pub account: Option<AccountId>,
    /// Whether the session may trade at all.
    pub may_trade: bool,
    pub rate_limit: RateLimitSettings,
    /// `message_bytes_max`: longest body of a message.
    pub message_bytes_max: usize,
    /// Finished orders remembered, for whoever asks again; of more the oldest are forgotten.
    pub finished_max: u32,
    /// Orders known at once, finished ones included. It should be at least what the desk knows of one session.
    pub orders_max: u32,
}

impl FixSessionSettings {
    /// The shipped settings of a session, those of the specification's sample.
    pub fn new(sender_comp_id: &str, target_comp_id: &str, source: Source) -> FixSessionSettings {
        FixSessionSettings {
            sender_comp_id: sender_comp_id.to_string(),
            target_comp_id: target_comp_id.to_string(),
            source,
            instance: 0,
            schedule: SessionSchedule::default(),
            reset_on_logon: true,
            refresh_on_logon: true,
            validate: false,
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
            rate_limit: RateLimitSettings::default(),
            message_bytes_max: 64 * 1_024,
            finished_max: 10_000,
            orders_max: 100_000,
        }
    }
}
