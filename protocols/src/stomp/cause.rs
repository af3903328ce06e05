//! Why a session ends, with its answer on the wire.

use super::decode::FrameError;
use super::pattern::PatternError;
use super::transaction::TransactionError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The client said DISCONNECT.
    Disconnected,
    Frame(FrameError),
    NotConnected,
    ConnectedTwice,
    NoCommonVersion,
    NoGreeting,
    LoginRefused,
    BadHeartbeat,
    Silence,
    /// A header that the frame must have.
    Missing(&'static str),
    Destination(PatternError),
    NotPermitted,
    SubscriptionInUse,
    UnknownSubscription,
    TooManySubscriptions,
    BadAckMode,
    BadPrefetch,
    UnknownMessage,
    Transaction(TransactionError),
    SendNotPermitted,
    SendNotJson,
    SlowConsumer,
    /// Octets wait, and none was taken for too long.
    Stuck,
    /// The service is stopping, or the session was ended by an administrator.
    Ended,
}

impl Cause {
    pub fn words(self) -> &'static str {
        match self {
            Cause::Disconnected => "disconnected",
            Cause::Frame(error) => error.words(),
            Cause::NotConnected => "the first frame must be CONNECT or STOMP",
            Cause::ConnectedTwice => "already connected",
            Cause::NoCommonVersion => "supported versions are 1.0, 1.1 and 1.2",
            Cause::NoGreeting => "no CONNECT in time",
            Cause::LoginRefused => "login or passcode is wrong",
            Cause::BadHeartbeat => "heart-beat is not two numbers of milliseconds",
            Cause::Silence => "no heart-beat within twice the agreed interval",
            Cause::Missing("destination") => "the header destination is missing",
            Cause::Missing("transaction") => "the header transaction is missing",
            Cause::Missing("message-id") => "the header message-id is missing",
            Cause::Missing("subscription") => "the header subscription is missing",
            Cause::Missing(_) => "the header id is missing",
            Cause::Destination(error) => error.words(),
            Cause::NotPermitted => "not permitted to read this destination",
            Cause::SubscriptionInUse => "a subscription with this id exists",
            Cause::UnknownSubscription => "there is no such subscription",
            Cause::TooManySubscriptions => "too many subscriptions",
            Cause::BadAckMode => "ack is auto, client or client-individual",
            Cause::BadPrefetch => "the prefetch count is not a number above zero",
            Cause::UnknownMessage => "no such message waits for an acknowledgement",
            Cause::Transaction(TransactionError::Unknown) => "there is no such transaction",
            Cause::Transaction(TransactionError::InUse) => "a transaction of this name is open",
            Cause::Transaction(TransactionError::TooMany) => "more than 16 open transactions",
            Cause::Transaction(TransactionError::TooLarge) => "the transaction is too large",
            Cause::SendNotPermitted => "SEND is not permitted",
            Cause::SendNotJson => "the body of a generic event must be JSON",
            Cause::SlowConsumer => "slow consumer",
            Cause::Stuck => "slow consumer, nothing was read for too long",
            Cause::Ended => "the service ends this session",
        }
    }

    /// The code with which a WebSocket is closed.
    pub fn close_code(self) -> u16 {
        const NORMAL: u16 = 1000;
        const GOING_AWAY: u16 = 1001;
        const PROTOCOL: u16 = 1002;
        const NOT_UTF8: u16 = 1007;
        const POLICY: u16 = 1008;
        const TOO_BIG: u16 = 1009;
        match self {
            Cause::Disconnected => NORMAL,
            Cause::Ended => GOING_AWAY,
            Cause::Frame(FrameError::Utf8) => NOT_UTF8,
            Cause::Frame(
                FrameError::LineTooLong
                | FrameError::TooManyHeaders
                | FrameError::HeadTooLong
                | FrameError::BodyTooLong
                | FrameError::GreetingTooLong,
            ) => TOO_BIG,
            Cause::LoginRefused
            | Cause::NotPermitted
            | Cause::TooManySubscriptions
            | Cause::SendNotPermitted
            | Cause::SlowConsumer
            | Cause::Stuck
            | Cause::NoGreeting
            | Cause::Silence => POLICY,
            Cause::Frame(_)
            | Cause::NotConnected
            | Cause::ConnectedTwice
            | Cause::NoCommonVersion
            | Cause::BadHeartbeat
            | Cause::Missing(_)
            | Cause::Destination(_)
            | Cause::SubscriptionInUse
            | Cause::UnknownSubscription
            | Cause::BadAckMode
            | Cause::BadPrefetch
            | Cause::UnknownMessage
            | Cause::Transaction(_)
            | Cause::SendNotJson => PROTOCOL,
        }
    }
}

impl From<TransactionError> for Cause {
    fn from(error: TransactionError) -> Cause {
        Cause::Transaction(error)
    }
}
