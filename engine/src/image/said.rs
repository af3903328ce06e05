//! Images of what shards say, for processes that hear of it from afar.

use super::words::{SENDER_FLAG, decode_flagged, decode_sender};
use super::{Damage, Image, Problem, Reader, Sink, image};
use crate::event::{
    Adjustment, Alert, BudgetUse, DEPTH_LEVELS_MAX, Depth, Event, EventKind, ExecType, Instruction, Level,
    OrderReport, OrderTerms, Refusal, Request,
};
use crate::sender::SenderId;
use crate::terms::Status;
use crate::used_ids::UsedIds;

image!(Event { seq, at, body });
image!(enum EventKind {
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
});
/// A sender is told as in a command: by the highest bit of what has happened, and behind all else.
impl Image for OrderTerms {
    fn encode(&self, out: &mut impl Sink) {
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

    fn decode(from: &mut Reader<'_>) -> Result<OrderTerms, Damage> {
        let (order, id, orig_id) = (Image::decode(from)?, Image::decode(from)?, Image::decode(from)?);
        let source = Image::decode(from)?;
        let (has_sender, what) = decode_flagged(from)?;
        let (status, reason, terms) = (Image::decode(from)?, Image::decode(from)?, Image::decode(from)?);
        let sender = decode_sender(has_sender, from)?;
        Ok(OrderTerms { order, id, orig_id, source, what, status, reason, sender, terms })
    }
}

fn encode_what(what: ExecType, sender: SenderId, out: &mut impl Sink) {
    let flag = if sender == SenderId::NONE { 0 } else { SENDER_FLAG };
    out.put(&[flag | what as u8]);
}

fn encode_sender(sender: SenderId, out: &mut impl Sink) {
    if sender != SenderId::NONE {
        sender.encode(out);
    }
}

impl Image for OrderReport {
    fn encode(&self, out: &mut impl Sink) {
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

    fn decode(from: &mut Reader<'_>) -> Result<OrderReport, Damage> {
        let (order, id, orig_id) = (Image::decode(from)?, Image::decode(from)?, Image::decode(from)?);
        let (qty, cum_qty, avg_price) = (Image::decode(from)?, Image::decode(from)?, Image::decode(from)?);
        let (last_qty, last_price) = (Image::decode(from)?, Image::decode(from)?);
        let (source, security) = (Image::decode(from)?, Image::decode(from)?);
        let (strategy, account) = (Image::decode(from)?, Image::decode(from)?);
        let (has_sender, what) = decode_flagged(from)?;
        let (status, reason) = (Image::decode(from)?, Image::decode(from)?);
        let (side, kind) = (Image::decode(from)?, Image::decode(from)?);
        let (tif, in_doubt) = (Image::decode(from)?, Image::decode(from)?);
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
image!(enum ExecType {
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
    11 = Image,
});
image!(enum Status {
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
image!(Refusal { order, id, request_id, source, request, status, reason });
image!(enum Request { 0 = Cancel, 1 = Replace });
image!(enum Adjustment {
    0 = Position { security, before, after },
    1 = Cash { currency, before, after },
});
image!(Level { price, qty });
image!(enum Alert {
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
image!(Instruction { adapter, order, ask, id, request_id, terms });
image!(BudgetUse { scope, kind, granted, used, returned, wanting });

/// The levels that are shown, and no others.
impl Image for Depth {
    fn encode(&self, out: &mut impl Sink) {
        self.security.encode(out);
        self.side.encode(out);
        out.put(&[self.levels().len() as u8]);
        self.levels().iter().for_each(|level| level.encode(out));
    }

    fn decode(from: &mut Reader<'_>) -> Result<Depth, Damage> {
        let (security, side) = (Image::decode(from)?, Image::decode(from)?);
        let [count] = from.array()?;
        from.check(count as usize <= DEPTH_LEVELS_MAX, Problem::Value)?;
        let mut levels = [Level::default(); DEPTH_LEVELS_MAX];
        for level in &mut levels[..count as usize] {
            *level = Image::decode(from)?;
        }
        Ok(Depth { levels, security, side, count })
    }
}

impl Image for UsedIds {
    fn encode(&self, out: &mut impl Sink) {
        self.source.encode(out);
        out.put(&[self.hashes().len() as u8]);
        self.hashes().iter().for_each(|hash| hash.encode(out));
    }

    fn decode(from: &mut Reader<'_>) -> Result<UsedIds, Damage> {
        let source = Image::decode(from)?;
        let [count] = from.array()?;
        from.check(count as usize <= UsedIds::COUNT_MAX, Problem::Value)?;
        let mut hashes = [0; UsedIds::COUNT_MAX];
        for hash in &mut hashes[..count as usize] {
            *hash = Image::decode(from)?;
        }
        Ok(UsedIds { hashes, source, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Scope;
    use crate::directive::{Directive, Version};
    use crate::id::{IntId, OrderHandle, PortId, SecurityId, Source, StrategyId};
    use crate::image::decode_whole;
    use crate::number::{Price, Qty};
    use crate::reason::Reason;
    use crate::sender::{Sender, SentBy};
    use crate::terms::{Side, Terms};
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
        let mut levels = [Level::default(); DEPTH_LEVELS_MAX];
        levels[0] = Level { price: Price::from_raw(1), qty: Qty::from_raw(2) };
        let refusal = Refusal {
            order,
            id,
            request_id: id,
            source,
            request: Request::Replace,
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
            EventKind::Subscription {
                strategy: StrategyId(1),
                security: SecurityId(4),
                on: true,
                subscribers: 2,
            },
            EventKind::Done { source, token: 9, reason: Reason::PositionFlat },
            EventKind::UsedIds(UsedIds { hashes: std::array::from_fn(|n| n as u64), source, count: 19 }),
            EventKind::Directed {
                version: Version(9),
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
        assert_eq!(decode_whole::<Event>(&bytes).unwrap_err().problem, Problem::Value);
    }
}
