//! Codecs of events, for processes that receive them from another process.

use super::commands::{SENDER_FLAG, decode_flagged, decode_sender};
use super::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec};
use crate::event::{
    Adjustment, Alert, BookOrder, BudgetUse, DEPTH_LEVELS_MAX, Depth, DepthLevel, Event, EventKind, ExecType,
    Instruction, LEVEL_CHANGES_MAX, LevelChange, LevelChanges, LevelsKind, MarketTrade, ORDER_CHANGES_MAX,
    OrderAction, OrderChange, OrderChanges, OrderNumber, OrderReport, OrderTerms, RequestKind,
    RequestRefusal, TradeNumber,
};
use crate::index::index_u8;
use crate::sender::SenderId;
use crate::terms::Status;
use crate::used_ids::UsedIds;

codec!(Event { seq, at, body });
codec!(enum EventKind {
    0 = Order(order),
    1 = Status(report),
    2 = Refused(refusal),
    3 = Forgotten { order, source, id },
    4 = Booked(booking),
    5 = Adjusted { strategy, what },
    6 = Tick(tick),
    7 = Depth(depth),
    8 = Subscription { strategy, security, on, subscribers },
    9 = Session { exchange, session },
    10 = Halt { security, on },
    11 = TradingDay { day },
    12 = Phase { strategy, phase },
    13 = Adapter { adapter, connected },
    14 = Limits { scope, limits },
    15 = Restrict { scope, security, on },
    16 = Kill { scope, on },
    17 = Alert { alert, order, security, reason },
    18 = ToVenue(instruction),
    19 = Budget(usage),
    20 = Done { source, token, reason },
    21 = SnapshotBegin { port },
    22 = SnapshotEnd { port },
    23 = UsedIds(used),
    24 = Directed { version, directive },
    25 = Sender { id, sender },
    26 = Sent { order, sent },
    27 = Levels(levels),
    28 = BookOrders(orders),
    29 = MarketTrade(trade),
    30 = SpecialTerms(terms),
    31 = Exposure { account, security, qty },
});
/// Encodes a sender as in a command: the highest bit of the ExecType flags it, and it comes last.
impl Codec for OrderTerms {
    fn encode(&self, out: &mut impl ByteSink) {
        let OrderTerms { order, id, orig_id, source, what, status, reason, sender, terms } = self;
        order.encode(out);
        id.encode(out);
        orig_id.encode(out);
        source.encode(out);
        encode_what(*what, *sender, out);
        status.encode(out);
        reason.encode(out);
        terms.encode(out);
        encode_sender(*sender, out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<OrderTerms, DecodeError> {
        let (order, id, orig_id) = (Codec::decode(from)?, Codec::decode(from)?, Codec::decode(from)?);
        let source = Codec::decode(from)?;
        let (has_sender, what) = decode_flagged(from)?;
        let (status, reason, terms) = (Codec::decode(from)?, Codec::decode(from)?, Codec::decode(from)?);
        let sender = decode_sender(has_sender, from)?;
        Ok(OrderTerms { order, id, orig_id, source, what, status, reason, sender, terms })
    }
}

fn encode_what(what: ExecType, sender: SenderId, out: &mut impl ByteSink) {
    let flag = if sender == SenderId::NONE { 0 } else { SENDER_FLAG };
    out.put(&[flag | what as u8]);
}

fn encode_sender(sender: SenderId, out: &mut impl ByteSink) {
    if sender != SenderId::NONE {
        sender.encode(out);
    }
}

impl Codec for OrderReport {
    fn encode(&self, out: &mut impl ByteSink) {
        let OrderReport { order, id, orig_id, qty, cum_qty, avg_price, last_qty, last_price, .. } = self;
        order.encode(out);
        id.encode(out);
        orig_id.encode(out);
        qty.encode(out);
        cum_qty.encode(out);
        avg_price.encode(out);
        last_qty.encode(out);
        last_price.encode(out);
        let OrderReport { source, security, strategy, account, what, status, reason, .. } = self;
        source.encode(out);
        security.encode(out);
        strategy.encode(out);
        account.encode(out);
        encode_what(*what, self.sender, out);
        status.encode(out);
        reason.encode(out);
        let OrderReport { side, kind, tif, in_doubt, .. } = self;
        side.encode(out);
        kind.encode(out);
        tif.encode(out);
        in_doubt.encode(out);
        encode_sender(self.sender, out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<OrderReport, DecodeError> {
        let (order, id, orig_id) = (Codec::decode(from)?, Codec::decode(from)?, Codec::decode(from)?);
        let (qty, cum_qty, avg_price) = (Codec::decode(from)?, Codec::decode(from)?, Codec::decode(from)?);
        let (last_qty, last_price) = (Codec::decode(from)?, Codec::decode(from)?);
        let (source, security) = (Codec::decode(from)?, Codec::decode(from)?);
        let (strategy, account) = (Codec::decode(from)?, Codec::decode(from)?);
        let (has_sender, what) = decode_flagged(from)?;
        let (status, reason) = (Codec::decode(from)?, Codec::decode(from)?);
        let (side, kind) = (Codec::decode(from)?, Codec::decode(from)?);
        let (tif, in_doubt) = (Codec::decode(from)?, Codec::decode(from)?);
        let sender = decode_sender(has_sender, from)?;
        Ok(OrderReport {
            order,
            id,
            orig_id,
            qty,
            cum_qty,
            avg_price,
            last_qty,
            last_price,
            source,
            sender,
            security,
            strategy,
            account,
            what,
            status,
            reason,
            side,
            kind,
            tif,
            in_doubt,
        })
    }
}
codec!(enum ExecType {
    0 = Entered,
    1 = Rejected,
    2 = Accepted,
    3 = Filled,
    4 = CancelPending,
    5 = Canceled,
    6 = Expired,
    7 = ReplacePending,
    8 = Replaced,
    9 = Triggered,
    10 = Corrected,
    11 = Snapshot,
});
codec!(enum Status {
    0 = PendingNew,
    1 = New,
    2 = PartiallyFilled,
    3 = Filled,
    4 = PendingCancel,
    5 = Canceled,
    6 = PendingReplace,
    7 = Rejected,
    8 = Expired,
});
codec!(RequestRefusal { order, id, request_id, source, request, status, reason });
codec!(enum RequestKind { 0 = Cancel, 1 = Replace });
codec!(enum Adjustment {
    0 = Position { security, before, after },
    1 = Cash { currency, before, after },
});
codec!(DepthLevel { price, qty });
codec!(enum Alert {
    0 = LateFill,
    1 = Overfill,
    2 = DuplicateExecution,
    3 = UnknownReport,
    4 = BookingOverflow,
    5 = InDoubt,
    6 = LateReject,
    7 = UnexpectedReport,
    8 = ExecutionsFull,
    9 = Unsettled,
});
codec!(Instruction { adapter, order, request, id, request_id, terms });
codec!(BudgetUse { scope, kind, granted, used, returned, wanting });

/// Encodes only the levels in use.
impl Codec for Depth {
    fn encode(&self, out: &mut impl ByteSink) {
        self.security.encode(out);
        self.side.encode(out);
        out.put(&[index_u8(self.levels().len())]);
        self.levels().iter().for_each(|level| level.encode(out));
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<Depth, DecodeError> {
        let (security, side) = (Codec::decode(from)?, Codec::decode(from)?);
        let [count] = from.array()?;
        from.check(count as usize <= DEPTH_LEVELS_MAX, DecodeProblem::Value)?;
        let mut levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
        for level in &mut levels[..count as usize] {
            *level = Codec::decode(from)?;
        }
        Ok(Depth { levels, security, side, count })
    }
}

codec!(LevelChange { side, price, qty });
codec!(enum LevelsKind { 0 = Snapshot, 1 = Update });

impl Codec for LevelChanges {
    fn encode(&self, out: &mut impl ByteSink) {
        self.security.encode(out);
        self.kind.encode(out);
        self.prev_seq.encode(out);
        self.seq.encode(out);
        self.is_last.encode(out);
        out.put(&[index_u8(self.changes().count())]);
        self.changes().for_each(|change| change.encode(out));
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<LevelChanges, DecodeError> {
        let (security, kind) = (Codec::decode(from)?, Codec::decode(from)?);
        let (prev_seq, seq) = (Codec::decode(from)?, Codec::decode(from)?);
        let mut levels = LevelChanges::new(security, kind, prev_seq, seq);
        levels.is_last = Codec::decode(from)?;
        let [count] = from.array()?;
        from.check(count as usize <= LEVEL_CHANGES_MAX, DecodeProblem::Value)?;
        for _ in 0..count {
            levels.push(Codec::decode(from)?);
        }
        Ok(levels)
    }
}

codec!(OrderNumber(number));
codec!(BookOrder { number, price, qty });
codec!(enum OrderAction { 0 = Add, 1 = Change, 2 = Remove, 3 = Trade });
codec!(OrderChange { action, side, order });

impl Codec for OrderChanges {
    fn encode(&self, out: &mut impl ByteSink) {
        self.security.encode(out);
        self.kind.encode(out);
        self.prev_seq.encode(out);
        self.seq.encode(out);
        self.is_first.encode(out);
        self.is_last.encode(out);
        out.put(&[index_u8(self.changes().count())]);
        self.changes().for_each(|change| change.encode(out));
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<OrderChanges, DecodeError> {
        let (security, kind) = (Codec::decode(from)?, Codec::decode(from)?);
        let (prev_seq, seq) = (Codec::decode(from)?, Codec::decode(from)?);
        let mut orders = OrderChanges::new(security, kind, prev_seq, seq);
        (orders.is_first, orders.is_last) = (Codec::decode(from)?, Codec::decode(from)?);
        let [count] = from.array()?;
        from.check(count as usize <= ORDER_CHANGES_MAX, DecodeProblem::Value)?;
        for _ in 0..count {
            orders.push(&Codec::decode(from)?);
        }
        Ok(orders)
    }
}

codec!(TradeNumber(number));
codec!(MarketTrade { number, security, price, qty, aggressor });

impl Codec for UsedIds {
    fn encode(&self, out: &mut impl ByteSink) {
        self.source.encode(out);
        out.put(&[index_u8(self.hashes().len())]);
        self.hashes().iter().for_each(|hash| hash.encode(out));
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<UsedIds, DecodeError> {
        let source = Codec::decode(from)?;
        let [count] = from.array()?;
        from.check(count as usize <= UsedIds::COUNT_MAX, DecodeProblem::Value)?;
        let mut hashes = [0; UsedIds::COUNT_MAX];
        for hash in &mut hashes[..count as usize] {
            *hash = Codec::decode(from)?;
        }
        Ok(UsedIds { hashes, source, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::decode_whole;
    use crate::command::Scope;
    use crate::directive::{Directive, DirectiveVersion};
    use crate::id::{AccountId, IntId, OrderHandle, PortId, SecurityId, Source, StrategyId};
    use crate::number::{Price, Qty};
    use crate::reason::Reason;
    use crate::sender::{Sender, SentBy};
    use crate::terms::{OrderSpecialTerms, Side, SpecialTerms, Terms};
    use crate::time::Timestamp;

    fn bodies() -> Vec<EventKind> {
        let id = IntId::parse(b"s42").unwrap();
        let order = OrderHandle::new(crate::id::ShardId(1), 3, 7);
        let source = Source { port: PortId(1), session: 2, ..Source::default() };
        let terms = OrderTerms {
            order,
            id,
            orig_id: IntId::NONE,
            source,
            what: ExecType::Entered,
            status: Status::PendingNew,
            reason: Reason::None,
            sender: SenderId(0x300_0123),
            terms: Terms { qty: Qty::from_raw(5), ..Terms::default() },
        };
        let report = Event { seq: 1, at: Timestamp(1), body: EventKind::Order(terms) }.report().unwrap();
        let plain = OrderTerms { sender: SenderId::NONE, ..terms };
        let mut levels = [DepthLevel::default(); DEPTH_LEVELS_MAX];
        levels[0] = DepthLevel { price: Price::from_raw(1), qty: Qty::from_raw(2) };
        let mut changes = LevelChanges::new(SecurityId(4), LevelsKind::Update, 3, 9);
        changes.push(LevelChange { side: Side::Sell, price: Price::from_raw(1), qty: Qty::from_raw(2) });
        let mut order_changes = OrderChanges::new(SecurityId(4), LevelsKind::Snapshot, 9, 9);
        for action in OrderAction::ALL {
            let (price, qty) = (Price::from_raw(1), Qty::from_raw(2));
            let order = BookOrder { number: OrderNumber(7), price, qty };
            order_changes.push(&OrderChange { action, side: Side::Sell, order });
        }
        order_changes.is_first = true;
        let trade = MarketTrade {
            number: TradeNumber::new(3, 1),
            security: SecurityId(4),
            price: Price::from_raw(1),
            qty: Qty::from_raw(2),
            aggressor: Some(Side::Sell),
        };
        let special = SpecialTerms { min_qty: Some(Qty::from_raw(3)), ..SpecialTerms::default() };
        let refusal = RequestRefusal {
            order,
            id,
            request_id: id,
            source,
            request: RequestKind::Replace,
            status: Status::Filled,
            reason: Reason::OrderFinished,
        };
        vec![
            EventKind::Order(terms),
            EventKind::Order(plain),
            EventKind::Status(report),
            EventKind::Status(OrderReport { sender: SenderId::NONE, ..report }),
            EventKind::Sender { id: SenderId(77), sender: Sender::default() },
            EventKind::Sent { order, sent: SentBy { submitted: SenderId(77), ..SentBy::default() } },
            EventKind::Refused(refusal),
            EventKind::Forgotten { order, source, id },
            EventKind::Depth(Depth { levels, security: SecurityId(4), side: Side::Sell, count: 1 }),
            EventKind::Levels(changes),
            EventKind::BookOrders(order_changes),
            EventKind::MarketTrade(trade),
            EventKind::SpecialTerms(OrderSpecialTerms { order, source, is_snapshot: true, special }),
            EventKind::Exposure {
                account: Some(AccountId(3)),
                security: SecurityId(4),
                qty: Qty::from_raw(-5),
            },
            EventKind::Subscription {
                strategy: StrategyId(1),
                security: SecurityId(4),
                on: true,
                subscribers: 2,
            },
            EventKind::Done { source, token: 9, reason: Reason::PositionFlat },
            EventKind::UsedIds(UsedIds { hashes: std::array::from_fn(|n| n as u64), source, count: 19 }),
            EventKind::Directed {
                version: DirectiveVersion(9),
                directive: Directive::Kill { scope: Scope::Strategy(StrategyId(1)), on: true },
            },
        ]
    }

    #[test]
    fn events_come_back_and_no_part_of_one_is_another() {
        for body in bodies() {
            let event = Event { seq: 77, at: Timestamp(5), body };
            let mut bytes = Vec::new();
            event.encode(&mut bytes);
            assert_eq!(decode_whole::<Event>(&bytes), Ok(event));
            for cut in 0..bytes.len() {
                assert!(decode_whole::<Event>(&bytes[..cut]).is_err(), "{body:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn more_levels_than_there_can_be_are_damage() {
        let event = Event { seq: 1, at: Timestamp(1), body: bodies()[8] };
        let mut bytes = Vec::new();
        event.encode(&mut bytes);
        let count = 8 + 8 + 1 + 4 + 1;
        bytes[count] = DEPTH_LEVELS_MAX as u8 + 1;
        assert_eq!(decode_whole::<Event>(&bytes).unwrap_err().problem, DecodeProblem::Value);
    }
}
