//! Positions as a FIX client sees them: which ones a Request For Positions (AN) means, and the
//! Position Report (AP) of each.
//!
//! Rules: docs/fix-rules.md#positions.

use std::sync::Arc;

use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::refdata::RefData;
use pitlane_engine::text::date_of;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::View;

use super::encode::Draft;
use super::report;
use super::tag::prefix;

/// The positions that a client asks for. A session has one query at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionQuery {
    /// Number of the query within its session.
    pub token: u32,
    pub security: Option<SecurityId>,
    pub strategy: Option<StrategyId>,
}

/// A position at market prices. What cannot be counted is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PositionRow {
    pub strategy: StrategyId,
    pub security: SecurityId,
    /// Above zero long, below zero short, never zero.
    pub qty: Qty,
    pub avg_price: Option<Price>,
    pub market_price: Option<Price>,
    pub unrealized: Option<Money>,
}

impl PositionQuery {
    /// Returns the positions that the query means, by security and strategy, without flat ones.
    pub fn rows(&self, view: &View, reference: &RefData) -> Arc<[PositionRow]> {
        let is_meant = |security: SecurityId, strategy: StrategyId| {
            self.security.is_none_or(|only| only == security)
                && self.strategy.is_none_or(|only| only == strategy)
        };
        let held = view.positions().filter(|position| {
            !position.state.qty.is_zero() && is_meant(position.id.security(), position.id.strategy())
        });
        let row = |position| {
            let valuation = view.valuation(&position, reference);
            PositionRow {
                strategy: position.id.strategy(),
                security: position.id.security(),
                qty: position.state.qty,
                avg_price: valuation.and_then(|value| value.avg_price),
                market_price: valuation.and_then(|value| value.market_price),
                unrealized: valuation.and_then(|value| value.unrealized),
            }
        };
        held.map(row).collect()
    }
}

/// What every report of one request has.
#[derive(Clone, Copy, Debug)]
pub struct PositionReportHead<'a> {
    /// PosReqID (710).
    pub id: &'a [u8],
    /// Account (1) and AccountType (581) as the client sent them.
    pub account: &'a [u8],
    pub account_type: u8,
    /// TotalNumPosReports (727).
    pub total: u64,
}

/// PosReqResult (728).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PosReqResult {
    Valid = 0,
    NoneFound = 2,
    NotAuthorized = 3,
    NotSupported = 4,
    Other = 99,
}

/// PartyIDSource (447): a code that the counterparties have agreed on.
const PROPRIETARY: u8 = b'D';
/// PartyRole (452): order origination trader.
const ORDER_ORIGINATION_TRADER: u64 = 11;
/// SettlPriceType (731): a price that no one has settled at.
const THEORETICAL: u8 = b'2';
/// PosType (703): the sum of all transactions.
const TOTAL_TRANSACTION_QTY: &[u8] = b"TOT";
/// PosAmtType (707): the difference between the market value and the price paid.
const TRADE_VARIATION: &[u8] = b"TVAR";
/// PosReqStatus (729).
const COMPLETED: u8 = b'0';
const REJECTED: u8 = b'2';

/// Writes Position Report (AP); `nth` counts the reports of a request from one.
pub fn report(
    draft: &mut Draft,
    reference: &RefData,
    now: Timestamp,
    head: &PositionReportHead,
    nth: u64,
    row: &PositionRow,
) {
    let number = nth.to_string();
    draft.pieces(prefix::POS_MAINT_RPT_ID, &[head.id, b"-", number.as_bytes()]);
    draft.text(prefix::POS_REQ_ID, head.id);
    draft.code(prefix::POS_REQ_TYPE, b'0');
    draft.number(prefix::TOTAL_NUM_POS_REPORTS, head.total);
    draft.number(prefix::POS_REQ_RESULT, PosReqResult::Valid as u64);
    let (year, month, day) = date_of(now.day().0);
    draft.text(prefix::CLEARING_BUSINESS_DATE, format!("{year:04}{month:02}{day:02}").as_bytes());
    draft.number(prefix::NO_PARTY_IDS, 1);
    let strategy = reference.strategy(row.strategy);
    draft.text(prefix::PARTY_ID, report::echo(strategy.map(|strategy| strategy.name.as_bytes())));
    draft.code(prefix::PARTY_ID_SOURCE, PROPRIETARY);
    draft.number(prefix::PARTY_ROLE, ORDER_ORIGINATION_TRADER);
    draft.text(prefix::ACCOUNT, head.account);
    draft.code(prefix::ACCOUNT_TYPE, head.account_type);
    report::instrument(draft, reference, row.security);
    if let Some(security) = reference.security(row.security) {
        draft.text(prefix::CURRENCY, reference.family_of(security).currency.as_str().as_bytes());
    }
    // Both are required. Without a price of the market the price paid is the best one known.
    let paid = row.avg_price.unwrap_or_default();
    draft.scaled(prefix::SETTL_PRICE, row.market_price.unwrap_or(paid).raw());
    draft.code(prefix::SETTL_PRICE_TYPE, THEORETICAL);
    draft.scaled(prefix::PRIOR_SETTL_PRICE, paid.raw());
    draft.number(prefix::NO_POSITIONS, 1);
    draft.text(prefix::POS_TYPE, TOTAL_TRANSACTION_QTY);
    // A quantity has a positive counterpart, because no position reaches the smallest number.
    let size = row.qty.raw().saturating_abs();
    draft.scaled(prefix::LONG_QTY, if row.qty.is_positive() { size } else { 0 });
    draft.scaled(prefix::SHORT_QTY, if row.qty.is_positive() { 0 } else { size });
    if let Some(unrealized) = row.unrealized {
        draft.number(prefix::NO_POS_AMT, 1);
        draft.text(prefix::POS_AMT_TYPE, TRADE_VARIATION);
        draft.scaled(prefix::POS_AMT, unrealized.raw());
    }
}

/// Writes Request For Positions Ack (AO), the answer to a request without a report.
pub fn acknowledgement(draft: &mut Draft, head: &PositionReportHead, result: PosReqResult, words: &str) {
    let is_served = matches!(result, PosReqResult::Valid | PosReqResult::NoneFound);
    draft.text(prefix::POS_MAINT_RPT_ID, head.id);
    draft.text(prefix::POS_REQ_ID, head.id);
    draft.number(prefix::TOTAL_NUM_POS_REPORTS, head.total);
    draft.number(prefix::POS_REQ_RESULT, result as u64);
    draft.code(prefix::POS_REQ_STATUS, if is_served { COMPLETED } else { REJECTED });
    draft.text(prefix::ACCOUNT, head.account);
    draft.code(prefix::ACCOUNT_TYPE, head.account_type);
    draft.text(prefix::TEXT, words.as_bytes());
}

#[cfg(test)]
mod tests {
    use pitlane_engine::command::{ExecRef, MovementKind};
    use pitlane_engine::event::{Booking, Event, EventKind, PositionState};
    use pitlane_engine::id::{AccountId, IntId, OrderHandle, ShardId, TransactionId};
    use pitlane_engine::refdata::sample;
    use pitlane_engine::view::ViewSettings;

    use super::*;

    /// Returns a fill after which a position has this quantity, at 10 each.
    fn booking(number: u32, (security, strategy, qty): (u32, u16, i64)) -> Event {
        let qty = Qty::whole(qty).unwrap();
        let position = PositionState { qty, cost: Money::from_raw(10 * qty.raw()), realized: Money::ZERO };
        let booking = Booking {
            id: TransactionId::of_security(SecurityId(security), number),
            order: OrderHandle::NONE,
            order_id: IntId::NONE,
            exec: ExecRef(number as u128),
            kind: MovementKind::Buy,
            strategy: StrategyId(strategy),
            account: AccountId(1),
            security: Some(SecurityId(security)),
            qty,
            price: sample::price("10"),
            commission: Money::ZERO,
            currency: sample::usd(),
            position,
            cash: Money::ZERO,
        };
        Event { seq: number as u64, at: Timestamp(number as u64), body: EventKind::Booked(booking) }
    }

    #[test]
    fn a_query_means_positions_that_are_not_flat_of_its_security_and_strategy() {
        let reference = RefData::check(sample::sound()).unwrap();
        let mut view = View::new(1, ViewSettings::default());
        let held = [(1, 0, 5), (1, 1, -7), (2, 1, 0), (3, 0, 4)];
        for (number, position) in (1..).zip(held) {
            view.apply(ShardId(0), &booking(number, position));
        }
        let rows = |security: Option<u32>, strategy: Option<u16>| {
            let (security, strategy) = (security.map(SecurityId), strategy.map(StrategyId));
            PositionQuery { token: 1, security, strategy }.rows(&view, &reference)
        };
        for (security, strategy, expected) in [
            (None, None, &[(1, 0, 5), (1, 1, -7), (3, 0, 4)][..]),
            (Some(1), None, &[(1, 0, 5), (1, 1, -7)]),
            (None, Some(0), &[(1, 0, 5), (3, 0, 4)]),
            (Some(1), Some(1), &[(1, 1, -7)]),
            (Some(3), Some(1), &[]),
            (Some(2), None, &[]),
        ] {
            let found = rows(security, strategy);
            let found: Vec<_> = found.iter().map(|row| (row.security, row.strategy, row.qty)).collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|&(security, strategy, qty)| {
                    (SecurityId(security), StrategyId(strategy), Qty::whole(qty).unwrap())
                })
                .collect();
            assert_eq!(found, expected, "{security:?} {strategy:?}");
        }
        assert_eq!(rows(Some(3), None)[0].avg_price, Some(sample::price("10")));
    }
}
