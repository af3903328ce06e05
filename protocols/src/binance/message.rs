//! Messages of the venue: answers to requests, events of the account, and market data.
//!
//! Texts are borrowed from the message. Numbers with decimals are texts on this wire, and become
//! scaled integers without a float between.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use pitlane_engine::number::{Notional, Price, Qty};
use pitlane_engine::text::SCALE;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// Any message.
#[derive(Debug, Deserialize)]
pub(super) struct Inbound<'a> {
    #[serde(default)]
    pub id: Option<u64>,
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(borrow, default)]
    pub result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub error: Option<ErrorBody<'a>>,
    #[serde(borrow, default, rename = "rateLimits")]
    pub rate_limits: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub event: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ErrorBody<'a> {
    pub code: i64,
    #[serde(borrow, default)]
    pub msg: Cow<'a, str>,
    #[serde(borrow, default)]
    pub data: Option<ErrorData<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErrorData<'a> {
    /// Milliseconds since 1970.
    #[serde(default)]
    pub retry_after: Option<u64>,
    #[serde(borrow, default)]
    pub cancel_result: Option<&'a str>,
    #[serde(borrow, default)]
    pub new_order_result: Option<&'a str>,
    /// The new order, or why the venue did not take it.
    #[serde(borrow, default)]
    pub new_order_response: Option<&'a RawValue>,
}

/// One limit, as every answer reports it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimit<'a> {
    pub rate_limit_type: &'a str,
    pub interval: &'a str,
    pub interval_num: u64,
    pub limit: u64,
    pub count: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct ServerTime {
    #[serde(rename = "serverTime")]
    pub server_time: u64,
}

/// Answer to `order.place`, `order.cancel` and `order.status`. An acknowledgement has only the ids.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OrderBody<'a> {
    pub order_id: u64,
    #[serde(borrow, default)]
    pub price: Option<&'a str>,
    #[serde(borrow, default)]
    pub orig_qty: Option<&'a str>,
    #[serde(borrow, default)]
    pub iceberg_qty: Option<&'a str>,
    #[serde(borrow, default)]
    pub executed_qty: Option<&'a str>,
    /// The venue spells it so.
    #[serde(borrow, default)]
    pub cummulative_quote_qty: Option<&'a str>,
    #[serde(borrow, default)]
    pub status: Option<&'a str>,
    #[serde(borrow, default)]
    pub time_in_force: Option<&'a str>,
    #[serde(borrow, default, rename = "type")]
    pub order_type: Option<&'a str>,
    /// When the order was placed, in milliseconds of the venue's time.
    #[serde(default)]
    pub time: Option<u64>,
}

/// One row of `myTrades`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TradeBody<'a> {
    pub id: u64,
    pub price: &'a str,
    pub qty: &'a str,
    #[serde(borrow, default)]
    pub commission: Cow<'a, str>,
    #[serde(borrow, default)]
    pub commission_asset: Option<Cow<'a, str>>,
}

/// An event of the account; only some kinds have a meaning here.
#[derive(Debug, Deserialize)]
pub(super) struct EventHead<'a> {
    #[serde(rename = "e")]
    pub kind: &'a str,
}

/// The event `executionReport`. The venue's names of the fields are single letters.
#[derive(Debug, Deserialize)]
pub(super) struct ExecutionBody<'a> {
    #[serde(rename = "s")]
    pub symbol: &'a str,
    #[serde(rename = "c")]
    pub client_order_id: &'a str,
    #[serde(rename = "C", default)]
    pub orig_client_order_id: &'a str,
    #[serde(rename = "x")]
    pub execution_type: &'a str,
    #[serde(rename = "X")]
    pub status: &'a str,
    #[serde(rename = "o", default)]
    pub order_type: &'a str,
    #[serde(rename = "f", default)]
    pub time_in_force: &'a str,
    /// Quantity and price of this execution.
    #[serde(rename = "l")]
    pub last_qty: &'a str,
    #[serde(rename = "L")]
    pub last_price: &'a str,
    /// Filled quantity of the order, and its value.
    #[serde(rename = "z")]
    pub cum_qty: &'a str,
    #[serde(rename = "Z", default)]
    pub cum_quote: &'a str,
    /// Minus one if nothing was traded.
    #[serde(rename = "t")]
    pub trade_id: i64,
    /// Fee of this execution, and the asset in which it was charged.
    #[serde(rename = "n", borrow, default)]
    pub commission: Cow<'a, str>,
    #[serde(rename = "N", borrow, default)]
    pub commission_asset: Option<Cow<'a, str>>,
}

/// Any message of a market stream: prices of a stream, the answer to a request, or an event of the
/// connection.
#[derive(Debug, Deserialize)]
pub(super) struct StreamMessage<'a> {
    #[serde(borrow, default)]
    pub stream: Option<&'a str>,
    #[serde(borrow, default)]
    pub data: Option<&'a RawValue>,
    #[serde(default)]
    pub id: Option<u64>,
    /// A refused request has either an error, or its text alone.
    #[serde(borrow, default)]
    pub error: Option<ErrorBody<'a>>,
    #[serde(borrow, default)]
    pub msg: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "e")]
    pub kind: Option<&'a str>,
}

impl StreamMessage<'_> {
    /// Returns why the venue has refused a request.
    pub(super) fn problem(&self) -> Option<&str> {
        self.error.as_ref().map(|error| &*error.msg).or(self.msg.as_deref())
    }
}

/// Data of the stream `@trade`.
#[derive(Debug, Deserialize)]
pub(super) struct MarketTradeBody<'a> {
    #[serde(rename = "s")]
    pub symbol: &'a str,
    #[serde(rename = "t")]
    pub id: u64,
    #[serde(rename = "p")]
    pub price: &'a str,
    #[serde(rename = "q")]
    pub qty: &'a str,
    #[serde(rename = "T")]
    pub time_ms: u64,
}

/// Data of the stream `@bookTicker`.
#[derive(Debug, Deserialize)]
pub(super) struct BestPricesBody<'a> {
    #[serde(rename = "u")]
    pub update_id: u64,
    #[serde(rename = "s")]
    pub symbol: &'a str,
    #[serde(rename = "b")]
    pub bid: &'a str,
    #[serde(rename = "B")]
    pub bid_qty: &'a str,
    #[serde(rename = "a")]
    pub ask: &'a str,
    #[serde(rename = "A")]
    pub ask_qty: &'a str,
}

/// Data of the stream `@depth@100ms`.
#[derive(Debug, Deserialize)]
pub(super) struct DepthEventBody<'a> {
    /// Ids of the first and of the last change in this event.
    #[serde(rename = "U")]
    pub first: u64,
    #[serde(rename = "u")]
    pub last: u64,
    #[serde(borrow, rename = "b")]
    pub bids: Vec<(&'a str, &'a str)>,
    #[serde(borrow, rename = "a")]
    pub asks: Vec<(&'a str, &'a str)>,
}

/// Answer to `depth`.
#[derive(Debug, Deserialize)]
pub(super) struct DepthSnapshotBody<'a> {
    #[serde(rename = "lastUpdateId")]
    pub last_update_id: u64,
    #[serde(borrow)]
    pub bids: Vec<(&'a str, &'a str)>,
    #[serde(borrow)]
    pub asks: Vec<(&'a str, &'a str)>,
}

pub(super) fn qty(text: &str) -> Option<Qty> {
    Qty::parse(text.as_bytes()).ok().filter(|qty| !qty.is_negative())
}

pub(super) fn price(text: &str) -> Option<Price> {
    Price::parse(text.as_bytes()).ok().filter(|price| !price.is_negative())
}

/// Returns the average price of fills with this value. Zero if the venue does not give the value,
/// which it marks by a negative number.
pub(super) fn average(quote: &str, cum: Qty) -> Price {
    match Qty::parse(quote.as_bytes()) {
        Ok(quote) if quote.is_positive() && cum.is_positive() => {
            Notional::from_raw(i128::from(quote.raw()) * i128::from(SCALE)).average(cum)
        }
        _ => Price::ZERO,
    }
}

/// Reads a list without collecting it. Returns whether it is a list of such elements.
pub(super) fn for_each<'a, T: Deserialize<'a>>(list: &'a RawValue, on_element: impl FnMut(T)) -> bool {
    serde_json::Deserializer::from_str(list.get())
        .deserialize_seq(ListVisitor(on_element, PhantomData))
        .is_ok()
}

struct ListVisitor<F, T>(F, PhantomData<T>);

impl<'a, T: Deserialize<'a>, F: FnMut(T)> Visitor<'a> for ListVisitor<F, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut list: A) -> Result<(), A::Error> {
        while let Some(element) = list.next_element()? {
            self.0(element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_needs_a_value_and_a_quantity() {
        let average =
            |quote: &str, cum: &str| average(quote, Qty::parse(cum.as_bytes()).unwrap()).to_string();
        for (quote, cum, expected) in [
            ("30.75", "3", "10.25"),
            ("0.5", "0.25", "2"),
            ("0", "3", "0"),
            ("-1.00000000", "3", "0"),
            ("30.75", "0", "0"),
            ("", "3", "0"),
        ] {
            assert_eq!(average(quote, cum), expected, "{quote} {cum}");
        }
    }

    #[test]
    fn a_list_is_read_up_to_the_first_element_of_another_form() {
        let mut sum = 0;
        let mut read =
            |text: &str| for_each(serde_json::from_str(text).unwrap(), |number: u64| sum += number);
        assert!(read("[1,2,3]") && read("[]"));
        assert!(!read("[10,\"x\",20]") && !read("7"));
        assert_eq!(sum, 16);
    }
}
