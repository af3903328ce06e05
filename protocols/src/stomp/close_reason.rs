//! Why a session ends, and the answer on the wire.

use super::decode::StompFrameError;
use super::pattern::PatternError;
use super::transaction::TransactionError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StompCloseReason {
    /// The client sent DISCONNECT.
    Disconnected,
    Frame(StompFrameError),
    NotConnected,
    ConnectedTwice,
    NoCommonVersion,
    ConnectTimeout,
    LoginRefused,
    BadHeartbeat,
    Silence,
    /// A required header is missing.
    Missing(&'static str),
    Destination(PatternError),
    NotPermitted,
    SubscriptionInUse,
    UnknownSubscription,
    TooManySubscriptions,
    BadAckMode,
    BadPrefetch,
    BadResume,
    BadConflate,
    BadAccept,
    BadBatch,
    UnknownMessage,
    Transaction(TransactionError),
    SendNotPermitted,
    SendNotJson,
    SlowConsumer,
    /// Octets wait, and none was taken for too long.
    Stalled,
    /// The service stops, or an administrator ended the session.
    Ended,
}

impl StompCloseReason {
    pub fn text(self) -> &'static str {
        match self {
            StompCloseReason::Disconnected => "disconnected",
            StompCloseReason::Frame(error) => error.text(),
            StompCloseReason::NotConnected => "the first frame must be CONNECT or STOMP",
            StompCloseReason::ConnectedTwice => "already connected",
            StompCloseReason::NoCommonVersion => "supported versions are 1.0, 1.1 and 1.2",
            StompCloseReason::ConnectTimeout => "no CONNECT in time",
            StompCloseReason::LoginRefused => "login or passcode is wrong",
            StompCloseReason::BadHeartbeat => "heart-beat is not two numbers of milliseconds",
            StompCloseReason::Silence => "no heart-beat within twice the agreed interval",
            StompCloseReason::Missing("destination") => "the header destination is missing",
            StompCloseReason::Missing("transaction") => "the header transaction is missing",
            StompCloseReason::Missing("message-id") => "the header message-id is missing",
            StompCloseReason::Missing("subscription") => "the header subscription is missing",
            StompCloseReason::Missing(_) => "the header id is missing",
            StompCloseReason::Destination(error) => error.text(),
            StompCloseReason::NotPermitted => "not permitted to read this destination",
            StompCloseReason::SubscriptionInUse => "a subscription with this id exists",
            StompCloseReason::UnknownSubscription => "there is no such subscription",
            StompCloseReason::TooManySubscriptions => "too many subscriptions",
            StompCloseReason::BadAckMode => "ack is auto, client or client-individual",
            StompCloseReason::BadPrefetch => "the prefetch count is not a number above zero",
            StompCloseReason::BadResume => "resume is a sequence number, for one depth topic",
            StompCloseReason::BadConflate => "conflate is 10 to 60000 milliseconds, for market data",
            StompCloseReason::BadAccept => "accept is application/json or application/x-pitlane-sbe",
            StompCloseReason::BadBatch => {
                "batch is true or false; true needs market data and accept application/x-pitlane-sbe"
            }
            StompCloseReason::UnknownMessage => "no such message waits for an acknowledgement",
            StompCloseReason::Transaction(TransactionError::Unknown) => "there is no such transaction",
            StompCloseReason::Transaction(TransactionError::InUse) => "a transaction of this name is open",
            StompCloseReason::Transaction(TransactionError::TooMany) => "more than 16 open transactions",
            StompCloseReason::Transaction(TransactionError::TooLarge) => "the transaction is too large",
            StompCloseReason::SendNotPermitted => "SEND is not permitted",
            StompCloseReason::SendNotJson => "the body of a generic event must be JSON",
            StompCloseReason::SlowConsumer => "slow consumer",
            StompCloseReason::Stalled => "slow consumer, nothing was read for too long",
            StompCloseReason::Ended => "the service ends this session",
        }
    }

    /// Returns the close code for a WebSocket.
    pub fn close_code(self) -> u16 {
        const NORMAL: u16 = 1000;
        const GOING_AWAY: u16 = 1001;
        const PROTOCOL: u16 = 1002;
        const NOT_UTF8: u16 = 1007;
        const POLICY: u16 = 1008;
        const TOO_BIG: u16 = 1009;
        match self {
            StompCloseReason::Disconnected => NORMAL,
            StompCloseReason::Ended => GOING_AWAY,
            StompCloseReason::Frame(StompFrameError::Utf8) => NOT_UTF8,
            StompCloseReason::Frame(
                StompFrameError::LineTooLong
                | StompFrameError::TooManyHeaders
                | StompFrameError::HeadTooLong
                | StompFrameError::BodyTooLong
                | StompFrameError::ConnectTooLong,
            ) => TOO_BIG,
            StompCloseReason::LoginRefused
            | StompCloseReason::NotPermitted
            | StompCloseReason::TooManySubscriptions
            | StompCloseReason::SendNotPermitted
            | StompCloseReason::SlowConsumer
            | StompCloseReason::Stalled
            | StompCloseReason::ConnectTimeout
            | StompCloseReason::Silence => POLICY,
            StompCloseReason::Frame(_)
            | StompCloseReason::NotConnected
            | StompCloseReason::ConnectedTwice
            | StompCloseReason::NoCommonVersion
            | StompCloseReason::BadHeartbeat
            | StompCloseReason::Missing(_)
            | StompCloseReason::Destination(_)
            | StompCloseReason::SubscriptionInUse
            | StompCloseReason::UnknownSubscription
            | StompCloseReason::BadAckMode
            | StompCloseReason::BadPrefetch
            | StompCloseReason::BadResume
            | StompCloseReason::BadConflate
            | StompCloseReason::BadAccept
            | StompCloseReason::BadBatch
            | StompCloseReason::UnknownMessage
            | StompCloseReason::Transaction(_)
            | StompCloseReason::SendNotJson => PROTOCOL,
        }
    }
}

impl From<TransactionError> for StompCloseReason {
    fn from(error: TransactionError) -> StompCloseReason {
        StompCloseReason::Transaction(error)
    }
}
