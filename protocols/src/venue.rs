//! The seam between a venue adapter and its gateway. An adapter is a state machine without I/O: the
//! gateway gives it bytes, time and instructions, and takes bytes, reports and prices from it.
//!
//! ```text
//! instruction of a shard ──► adapter ──► poll_transmit ──► connections
//! report to a shard ◄── poll_report ◄── adapter ◄── handle_bytes ◄── connections
//!                                       ▲ handle_timeout, poll_timeout
//! ```
//!
//! What every adapter must keep:
//!
//! - An order is sent only while the adapter is synchronized, and never twice. A request without an
//!   answer is looked up at the venue; it is not repeated.
//! - The id of an order at the venue leads back to our order without a table
//!   ([`crate::fix::venue::id`]).
//! - After each reconnect the shards query every open order ([`VenueRequest::Query`]); the adapter
//!   answers with [`VenueReport::Unsure`] until it knows the state, then with the missed fills and
//!   [`VenueReport::Standing`].
//! - Each execution has the venue's id, so that a shard books it once.
//! - Limits of the venue are kept before the venue complains: an order above them is refused with
//!   `venue-rate`.
//!
//! `docs/guide/adapters.md` explains how to write one.
//!
//! [`VenueRequest::Query`]: pitlane_engine::event::VenueRequest::Query

pub mod depth_book;

use std::fmt;
use std::sync::Arc;

use pitlane_engine::command::{CommandKind, VenueReport};
use pitlane_engine::event::Instruction;
use pitlane_engine::id::{OrderHandle, ShardId};
use pitlane_engine::refdata::RefData;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use crate::fix::schedule::SessionSchedule;
use crate::websocket::client::WebSocketKey;

/// Report of the venue about an order, for the order's shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboundReport {
    pub order: OrderHandle,
    pub report: VenueReport,
    /// Token to give back once the shard has stored the report ([`VenueReports::handle_stored`]);
    /// zero means that nothing waits for it.
    pub token: u32,
}

/// Counters of the venue's answers since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VenueCounts {
    /// Answers with a value that we do not know; they are ignored.
    pub unknown_values: u64,
    /// Answers about no order of ours.
    pub unknown_orders: u64,
    /// Answers without a required field; they are ignored.
    pub incomplete: u64,
    pub orders_out: u64,
    pub executions: u64,
    /// Requests refused by us because the venue did not take them.
    pub refused: u64,
    /// Quotes and trades taken from the venue's market data.
    pub prices: u64,
}

/// The side of an adapter that faces the shards.
pub trait VenueReports {
    /// Handles an instruction, which is event `seq` of this shard. A new order and a replacement
    /// may have special terms. An adapter whose venue cannot keep them refuses the instruction.
    fn handle_instruction(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        seq: u64,
        instruction: &Instruction,
        special: Option<&SpecialTerms>,
    );

    /// Returns the next report, in the order in which the venue sent them.
    fn poll_report(&mut self, now: Timestamp) -> Option<InboundReport>;

    /// Returns the next quote, trade, or part of a book ([`depth_book::DepthBook`]). It is called
    /// when there is no report.
    fn poll_price(&mut self) -> Option<CommandKind>;

    /// Handles the confirmation that a shard has stored the report with this token.
    fn handle_stored(&mut self, token: u32);

    /// Returns how often the adapter became synchronized with the venue, if it is now. The shards
    /// query their orders after each change.
    fn synchronizations(&self) -> Option<u64>;
}

/// Returns whether it is a quote or a trade, and not a part of a book.
pub(crate) fn is_price(price: &CommandKind) -> bool {
    matches!(price, CommandKind::Quote { .. } | CommandKind::Trade { .. })
}

/// A connection of an adapter: its index among those that the adapter has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkIndex(pub usize);

/// Random values for one connection, which a pure state machine cannot make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectRandom {
    pub key: WebSocketKey,
    pub seed: u64,
}

/// State of an adapter, for operators.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdapterStatus {
    pub state: &'static str,
    pub messages_in: u64,
    pub messages_out: u64,
    pub counts: VenueCounts,
    pub health: VenueHealth,
}

/// How well the connection to a venue works. Values that a protocol does not have are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VenueHealth {
    /// Newest round trip to the venue, in microseconds.
    pub round_trip_us: Option<u64>,
    /// Time of the venue less our time, in microseconds.
    pub clock_offset_us: Option<i64>,
    /// Last error that the venue reported, or for which the connection ended.
    pub last_error: Option<Arc<str>>,
    /// Used and allowed amount of each limit.
    pub limits: Vec<LimitUse>,
}

/// Use of one limit of a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUse {
    pub name: &'static str,
    pub interval_s: u64,
    pub used: u64,
    pub allowed: u64,
}

/// The side of an adapter that faces the connections, which a gateway owns.
pub trait VenueAdapter: VenueReports + fmt::Debug + Send {
    /// Returns the number of connections that the adapter has.
    fn links(&self) -> usize;

    /// Returns whether the gateway must open this connection now.
    fn wants_connection(&self, link: LinkIndex, now: Timestamp) -> bool;

    /// Handles that the gateway opens the connection. Output may be taken at once.
    fn handle_connect(&mut self, link: LinkIndex, now: Timestamp, random: ConnectRandom);

    /// Handles the end of the connection, or that it could not be opened.
    fn handle_disconnect(&mut self, link: LinkIndex, now: Timestamp);

    /// Handles all received bytes, which it may change.
    fn handle_bytes(&mut self, link: LinkIndex, now: Timestamp, bytes: &mut [u8]);

    /// Returns the output that is not transmitted yet.
    fn poll_transmit(&mut self, link: LinkIndex) -> &[u8];

    fn handle_transmitted(&mut self, link: LinkIndex, count: usize);

    /// Returns whether the gateway must end the connection after the output.
    fn wants_close(&self, link: LinkIndex) -> bool;

    /// Returns when to call [`VenueAdapter::handle_timeout`].
    fn poll_timeout(&self) -> Timestamp;

    fn handle_timeout(&mut self, now: Timestamp);

    /// Ends all connections in an orderly way.
    fn log_out(&mut self, now: Timestamp, text: &str);

    fn set_reference(&mut self, reference: Arc<RefData>);

    /// Sets when trading days begin. It is called before each connection, because local time may
    /// change between two of them.
    fn set_trading_day(&mut self, trading_day: SessionSchedule);

    fn status(&self, now: Timestamp) -> AdapterStatus;

    /// Returns a line for the log, once.
    fn take_log_text(&mut self) -> Option<String>;
}
