//! A single trade of the market.

use crate::id::SecurityId;
use crate::number::{Price, Qty};
use crate::terms::Side;

/// Number of a trade: the number of the command that caused it in its shard, and its place among
/// the trades of that command in its security. It rises with every trade of a security, also over
/// restarts, and is the same in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TradeNumber(pub u64);

impl TradeNumber {
    /// Bits of the place. A command has fewer trades: each fills at least one order.
    const PLACE_BITS: u32 = 24;

    pub fn new(command: u64, place: u32) -> TradeNumber {
        TradeNumber(command << TradeNumber::PLACE_BITS | place.min((1 << TradeNumber::PLACE_BITS) - 1) as u64)
    }
}

/// See the module's comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketTrade {
    pub number: TradeNumber,
    pub security: SecurityId,
    pub price: Price,
    /// Zero if the feed does not say it.
    pub qty: Qty,
    /// Side of the order that took; absent in an auction, and if the feed does not say it.
    pub aggressor: Option<Side>,
}
