//! Codecs of ids, numbers, instants, terms, and the commands and events built from them.

use super::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec};
use crate::command::{
    AuditAnchor, BudgetAct, BudgetChange, BudgetKind, CancelFilter, Command, CommandKind, ExecRef, FeedLevel,
    Movement, MovementKind, Quote, RiskLimits, Scope, StrategyPhase, Trade, TradingSession, VenueFee,
    VenueReport, VenueState, WatchTarget,
};
use crate::event::{Booking, PositionState, Tick, VenueRequest};
use crate::id::{
    AccountId, AdapterId, CURRENCY_BYTES, Currency, ExchangeId, FamilyId, INT_ID_BYTES, IntId, OrderHandle,
    Origin, PortId, PortMask, SecurityId, ShardId, Source, StrategyId, TransactionId, Uuid,
};
use crate::index::index_u8;
use crate::number::{ContractSize, Money, Notional, Price, Qty};
use crate::reason::Reason;
use crate::sender::SenderId;
use crate::terms::{Changes, OrderKind, Side, Terms, Tif};
use crate::time::{Day, TimeOfDay, Timestamp};

codec!(SecurityId(id));
codec!(FamilyId(id));
codec!(ExchangeId(id));
codec!(AccountId(id));
codec!(StrategyId(id));
codec!(AdapterId(id));
codec!(ShardId(id));
codec!(PortId(id));
codec!(PortMask(ports));
codec!(TransactionId(id));
codec!(Uuid(bits));
codec!(ExecRef(bits));
codec!(Timestamp(ns));
codec!(Day(days));
codec!(enum Origin { 0 = Server, 1 = Rest, 2 = Fix, 3 = Strategy });
codec!(Source { origin, port, session });

macro_rules! raw {
    ($($name:ident),+) => {
        $(impl Codec for $name {
            #[inline]
            fn encode(&self, out: &mut impl ByteSink) {
                self.raw().encode(out);
            }

            #[inline]
            fn decode(from: &mut ByteReader<'_>) -> Result<$name, DecodeError> {
                Codec::decode(from).map($name::from_raw)
            }
        })+
    };
}

raw!(Price, Qty, Money, ContractSize, Notional, OrderHandle);

codec!(enum Side { 0 = Buy, 1 = Sell });
codec!(enum OrderKind { 0 = Market, 1 = Limit, 2 = Stop, 3 = StopLimit });
codec!(enum Tif { 0 = Day, 1 = Gtc, 2 = Ato, 3 = Ioc, 4 = Fok, 5 = Gtd, 6 = Atc });

/// The last byte has a bit for `reduce_only` and one for `special`. Terms without the latter have
/// the same bytes as before there were special terms.
impl Codec for Terms {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        let Terms { qty, limit, stop, tif_date, security, strategy, account, side, kind, tif, .. } = self;
        let Terms { limit_given, stop_given, exchange_order, reduce_only, special, .. } = self;
        qty.encode(out);
        limit.encode(out);
        stop.encode(out);
        tif_date.encode(out);
        security.encode(out);
        strategy.encode(out);
        account.encode(out);
        side.encode(out);
        kind.encode(out);
        tif.encode(out);
        limit_given.encode(out);
        stop_given.encode(out);
        exchange_order.encode(out);
        out.put(&[*reduce_only as u8 | (*special as u8) << 1]);
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<Terms, DecodeError> {
        let mut terms = Terms {
            qty: Codec::decode(from)?,
            limit: Codec::decode(from)?,
            stop: Codec::decode(from)?,
            tif_date: Codec::decode(from)?,
            security: Codec::decode(from)?,
            strategy: Codec::decode(from)?,
            account: Codec::decode(from)?,
            side: Codec::decode(from)?,
            kind: Codec::decode(from)?,
            tif: Codec::decode(from)?,
            limit_given: Codec::decode(from)?,
            stop_given: Codec::decode(from)?,
            exchange_order: Codec::decode(from)?,
            reduce_only: false,
            special: false,
        };
        let [flags] = from.array()?;
        from.check(flags < 1 << 2, DecodeProblem::Value)?;
        (terms.reduce_only, terms.special) = (flags & 1 != 0, flags & 2 != 0);
        Ok(terms)
    }
}

/// A command with a sender has the highest bit of its first byte set, and the sender's number after
/// the token. Commands without a sender have the same bytes as before senders existed.
impl Codec for Command {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        let Command { source, token, sender, body } = self;
        if *sender == SenderId::NONE {
            source.encode(out);
            token.encode(out);
        } else {
            out.put(&[SENDER_FLAG | source.origin as u8]);
            source.port.encode(out);
            source.session.encode(out);
            token.encode(out);
            sender.encode(out);
        }
        body.encode(out);
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<Command, DecodeError> {
        let (has_sender, origin) = decode_flagged(from)?;
        let source = Source { origin, port: Codec::decode(from)?, session: Codec::decode(from)? };
        let token = Codec::decode(from)?;
        let sender = decode_sender(has_sender, from)?;
        Ok(Command { source, token, sender, body: Codec::decode(from)? })
    }
}

/// Flags a tag that the number of a sender follows.
pub(super) const SENDER_FLAG: u8 = 0x80;

/// Decodes a tag, and whether a sender follows.
pub(super) fn decode_flagged<T: Codec>(from: &mut ByteReader<'_>) -> Result<(bool, T), DecodeError> {
    let [tag] = from.array()?;
    let plain = [tag & !SENDER_FLAG];
    let value = T::decode(&mut ByteReader::new(&plain)).map_err(|error| from.error(error.problem))?;
    Ok((tag & SENDER_FLAG != 0, value))
}

/// Decodes the number of a sender, if there is one; the number of no sender is never written.
pub(super) fn decode_sender(has_sender: bool, from: &mut ByteReader<'_>) -> Result<SenderId, DecodeError> {
    if !has_sender {
        return Ok(SenderId::NONE);
    }
    let sender = SenderId::decode(from)?;
    from.check(sender != SenderId::NONE, DecodeProblem::Value)?;
    Ok(sender)
}

codec!(enum CommandKind {
    0 = Submit { id, terms },
    1 = Modify { order, id, changes },
    2 = Cancel { order, id },
    3 = Close { id, strategy, account, security, qty },
    4 = Subscribe { strategy, security, on },
    5 = Quote { security, quote },
    6 = Trade { security, trade },
    7 = Tick { security, quote, trade },
    8 = Report { order, report },
    9 = Adapter { adapter, connected },
    10 = Transaction(movement),
    11 = Expire { security, price },
    12 = ResetPositions,
    13 = ResetCash,
    14 = Limits { scope, limits },
    15 = Restrict { scope, security, on },
    16 = Kill { scope, on },
    17 = Phase { strategy, phase },
    18 = Halt { security, on },
    19 = Budget(budget),
    20 = Session { exchange, session },
    21 = TradingDay { day },
    22 = Timer,
    23 = Watch { port, what, on },
    24 = Snapshot { port },
    25 = Reference { name },
    26 = Validate { terms },
    27 = Direct { version, directive },
    28 = Schedule { exchange, session, since, has_hours },
    29 = Expiry { exchange, day },
    30 = Sender { id, part },
    31 = AuditAnchor(anchor),
    32 = CancelOrders { id, filter },
    33 = Level { security, level },
    34 = VenueLevels(part),
    35 = VenueBook { security, is_known },
    36 = SpecialTerms(special),
});
codec!(CancelFilter { strategy, security, side, origin, source });
codec!(AuditAnchor { log, line, hash });
codec!(Quote { bid, bid_size, ask, ask_size, at });
codec!(Trade { price, size, at });
codec!(FeedLevel { side, price, size, at });
codec!(enum VenueReport {
    0 = Accepted,
    1 = Rejected(reason),
    2 = Filled { exec, qty, price },
    3 = Canceled(reason),
    4 = Expired(reason),
    5 = CancelRefused(reason),
    6 = Replaced,
    7 = ReplaceRefused(reason),
    8 = Busted { exec },
    9 = Corrected { exec, qty, price },
    10 = Reconciled,
    11 = FilledTo { exec, qty, price, cum },
    12 = Amended { exec_ref, exec, qty, price, is_open },
    13 = Standing { cum, average, state },
    14 = Unsure,
    15 = FilledWithFee { exec, qty, price, cum, fee },
});
codec!(VenueFee { amount, currency });
codec!(enum VenueState {
    0 = Open,
    1 = Filled,
    2 = Canceled(reason),
    3 = Expired(reason),
    4 = Rejected(reason),
});
codec!(Movement { kind, strategy, account, security, qty, price, commission, currency, uuid });
codec!(enum MovementKind {
    0 = Buy,
    1 = Sell,
    2 = Expiration,
    3 = Credit,
    4 = Debit,
    5 = Interest,
    6 = Fees,
    7 = Refund,
    8 = Rebalance,
});
codec!(enum Scope {
    0 = Global,
    1 = Strategy(id),
    2 = Account(id),
    3 = Security(id),
    4 = Adapter(id),
});
codec!(RiskLimits {
    max_order_qty,
    max_order_value,
    price_collar_bp,
    max_open_orders,
    max_position,
    max_orders_per_s,
    duplicate_window_ms,
    credit,
    credit_currency,
    trading_enabled
});
codec!(BudgetChange { scope, kind, act });
codec!(enum BudgetKind { 0 = OpenOrders, 1 = OrdersPerSecond, 2 = Credit });
codec!(enum BudgetAct { 0 = Lift, 1 = Set(amount), 2 = Grant(amount), 3 = Recall(amount) });
codec!(enum StrategyPhase { 0 = Init, 1 = Prefeed, 2 = Start, 3 = Running, 4 = Stop, 5 = Exit });
codec!(enum TradingSession { 0 = Closed, 1 = OpeningAuction, 2 = Continuous, 3 = ClosingAuction });
codec!(enum WatchTarget { 0 = Ticks(security), 1 = Orders, 2 = Everything, 3 = Venue(adapter), 4 = Budgets, 5 = Depth(security), 6 = Levels(security), 7 = BookOrders(security), 8 = Trades(security) });

codec!(PositionState { qty, cost, realized });
codec!(Booking {
    id,
    order,
    order_id,
    exec,
    kind,
    strategy,
    account,
    security,
    qty,
    price,
    commission,
    currency,
    position,
    cash
});
codec!(Tick { security, bid, bid_size, ask, ask_size, last, last_size, traded, volume, at });
codec!(enum VenueRequest { 0 = New, 1 = Cancel, 2 = Replace, 3 = Query, 4 = Status });

/// A byte for the length, then the characters; a length of zero is no id.
impl Codec for IntId {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        let len = text_len(self);
        out.put(&[index_u8(len)]);
        out.put(&self.padded()[..len]);
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<IntId, DecodeError> {
        let [len] = from.array()?;
        if len == 0 {
            return Ok(IntId::NONE);
        }
        let text = from.take(len as usize)?;
        IntId::parse(text).map_err(|_| from.error(DecodeProblem::Value))
    }
}

/// Returns the length of an id, found by whole words: only zeros follow the text.
#[inline]
fn text_len(id: &IntId) -> usize {
    let words = id.padded().as_chunks::<8>().0;
    let used = words.iter().position(|word| word[7] == 0).unwrap_or(words.len());
    match words.get(used) {
        Some(word) => used * 8 + 8 - u64::from_le_bytes(*word).leading_zeros() as usize / 8,
        None => INT_ID_BYTES,
    }
}

/// Bytes of a code of up to four characters. Once no code was longer.
const SHORT_CURRENCY_BYTES: usize = 4;
/// Set in the first byte of a longer code.
const LONG_CURRENCY: u8 = 0x80;

/// Four characters, padded with zeros. A longer code has eight, and a mark in the first.
impl Codec for Currency {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        let mut code = [0; CURRENCY_BYTES];
        let text = self.as_str().as_bytes();
        code[..text.len()].copy_from_slice(text);
        if text.len() <= SHORT_CURRENCY_BYTES {
            return out.put(&code[..SHORT_CURRENCY_BYTES]);
        }
        code[0] |= LONG_CURRENCY;
        out.put(&code);
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<Currency, DecodeError> {
        let front: [u8; SHORT_CURRENCY_BYTES] = from.array()?;
        if front == [0; SHORT_CURRENCY_BYTES] {
            return Ok(Currency::default());
        }
        let mut code = [0; CURRENCY_BYTES];
        code[..SHORT_CURRENCY_BYTES].copy_from_slice(&front);
        let is_long = code[0] & LONG_CURRENCY != 0;
        if is_long {
            code[0] &= !LONG_CURRENCY;
            code[SHORT_CURRENCY_BYTES..]
                .copy_from_slice(&from.array::<{ CURRENCY_BYTES - SHORT_CURRENCY_BYTES }>()?);
        }
        let len = code.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        // One code has one encoding.
        from.check(is_long == (len > SHORT_CURRENCY_BYTES), DecodeProblem::Value)?;
        Currency::parse(&code[..len]).map_err(|_| from.error(DecodeProblem::Value))
    }
}

/// Its number in the list, which only grows at its end.
impl Codec for Reason {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        out.put(&[*self as u8]);
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<Reason, DecodeError> {
        let [number] = from.array()?;
        Reason::ALL.get(number as usize).copied().ok_or_else(|| from.error(DecodeProblem::Value))
    }
}

/// Flags of a modification that replaces or removes the special terms.
const SPECIAL_TERMS: u8 = 1 << 5;
const SPECIAL_TERMS_GIVEN: u8 = 1 << 6;

/// A byte that flags the fields present, then those fields.
impl Codec for Changes {
    #[inline]
    fn encode(&self, out: &mut impl ByteSink) {
        let (qty, limit, stop, tif, date) =
            (self.qty(), self.limit(), self.stop(), self.tif(), self.tif_date());
        let named = [qty.is_some(), limit.is_some(), stop.is_some(), tif.is_some(), date.is_some()];
        let flags = named.iter().enumerate().map(|(bit, &is)| (is as u8) << bit);
        let special = match self.special() {
            None => 0,
            Some(false) => SPECIAL_TERMS,
            Some(true) => SPECIAL_TERMS | SPECIAL_TERMS_GIVEN,
        };
        out.put(&[flags.sum::<u8>() | special]);
        qty.inspect(|qty| qty.encode(out));
        limit.inspect(|limit| limit.encode(out));
        stop.inspect(|stop| stop.encode(out));
        tif.inspect(|tif| tif.encode(out));
        date.inspect(|date| date.encode(out));
    }

    #[inline]
    fn decode(from: &mut ByteReader<'_>) -> Result<Changes, DecodeError> {
        let [named] = from.array()?;
        let special = named & (SPECIAL_TERMS | SPECIAL_TERMS_GIVEN);
        from.check(named < 1 << 7 && special != SPECIAL_TERMS_GIVEN, DecodeProblem::Value)?;
        let mut changes = Changes::default();
        if named & 1 != 0 {
            changes = changes.with_qty(Codec::decode(from)?);
        }
        if named & 2 != 0 {
            changes = changes.with_limit(Codec::decode(from)?);
        }
        if named & 4 != 0 {
            changes = changes.with_stop(Codec::decode(from)?);
        }
        if named & 8 != 0 {
            changes = changes.with_tif(Codec::decode(from)?);
        }
        if named & 16 != 0 {
            changes = changes.with_tif_date(Codec::decode(from)?);
        }
        if special != 0 {
            changes = changes.with_special(special & SPECIAL_TERMS_GIVEN != 0);
        }
        Ok(changes)
    }
}

impl Codec for TimeOfDay {
    fn encode(&self, out: &mut impl ByteSink) {
        self.0.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<TimeOfDay, DecodeError> {
        let seconds = u32::decode(from)?;
        from.check(seconds <= 86_400, DecodeProblem::Value)?;
        Ok(TimeOfDay(seconds))
    }
}
