//! Terms that few orders have: ExecInst, MinQty and MaxFloor, as FIX names them. They are passed on
//! to the venue.
//!
//! ```text
//! port ─ CommandKind::SpecialTerms, then Submit or Modify with `Terms::special` ─► shard
//! shard ─ EventKind::SpecialTerms, then Order or ToVenue with `Terms::special` ─► reader, adapter
//! ```
//!
//! A command and an event have no room for them beside the terms of every order, so they travel in
//! front of these, and an order without them costs nothing.

use std::collections::BTreeMap;
use std::fmt;

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec};
use crate::id::{OrderHandle, PortId, ShardId, Source};
use crate::index::index_u8;
use crate::number::Qty;
use crate::reason::Reason;
use crate::terms::Terms;

/// Instructions in one ExecInst. Venues document two or three that go together.
pub const EXEC_INST_CODES_MAX: usize = 16;

/// Instructions for the handling of an order (FIX 18): letters and digits, in the order given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExecInst {
    /// Followed by zeros.
    codes: [u8; EXEC_INST_CODES_MAX],
}

impl ExecInst {
    /// Not held, and held. Both leave the order to the venue.
    const WITHOUT_EFFECT: [u8; 2] = [b'1', b'5'];

    /// Parses codes with a space between each two. Returns `None` if there is no code, if there are
    /// more than [`EXEC_INST_CODES_MAX`], or if one is not a letter or a digit.
    pub fn parse(text: &[u8]) -> Option<ExecInst> {
        let mut made = ExecInst::default();
        for (at, code) in text.split(|&byte| byte == b' ').enumerate() {
            let [code] = code else { return None };
            *made.codes.get_mut(at).filter(|_| code.is_ascii_alphanumeric())? = *code;
        }
        Some(made)
    }

    pub fn codes(&self) -> impl Iterator<Item = u8> {
        self.codes.into_iter().take_while(|code| *code != 0)
    }

    pub fn is_empty(&self) -> bool {
        self.codes[0] == 0
    }

    /// Calls `write` with the codes, a space between each two.
    pub fn with_text(&self, write: impl FnOnce(&[u8])) {
        let mut text = [b' '; 2 * EXEC_INST_CODES_MAX];
        let mut len = 0;
        for code in self.codes() {
            text[len] = code;
            len += 2;
        }
        write(&text[..len.saturating_sub(1)]);
    }
}

impl fmt::Display for ExecInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut written = Ok(());
        self.with_text(|text| written = f.write_str(std::str::from_utf8(text).unwrap_or_default()));
        written
    }
}

/// ExecInst, MinQty and MaxFloor of one order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpecialTerms {
    /// Empty if none was given.
    pub exec_inst: ExecInst,
    /// Smallest quantity to be filled (FIX 110).
    pub min_qty: Option<Qty>,
    /// Largest quantity that the venue shows (FIX 111).
    pub max_floor: Option<Qty>,
}

impl SpecialTerms {
    pub fn is_empty(&self) -> bool {
        *self == SpecialTerms::default()
    }

    /// Returns why a venue refuses them that takes only those of them which change nothing. To
    /// ignore the others would be worse: a hidden quantity would be shown, and a part of an order
    /// filled that is wanted whole.
    pub fn check_plain(&self, qty: Qty) -> Result<(), Reason> {
        if !self.exec_inst.codes().all(|code| ExecInst::WITHOUT_EFFECT.contains(&code)) {
            return Err(Reason::ExecInstNotTaken);
        }
        if self.min_qty.is_some_and(|least| !least.is_zero()) {
            return Err(Reason::MinQtyNotTaken);
        }
        if self.hides_quantity(qty) {
            return Err(Reason::MaxFloorNotTaken);
        }
        Ok(())
    }

    /// Returns whether a part of this quantity is not to be shown.
    pub fn hides_quantity(&self, qty: Qty) -> bool {
        self.max_floor.is_some_and(|shown| shown < qty)
    }
}

/// The special terms of orders and of pending modifications, by slot. Only orders that have some
/// are here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTermsTable {
    current: BTreeMap<u32, SpecialTerms>,
    requested: BTreeMap<u32, SpecialTerms>,
}

impl SpecialTermsTable {
    pub fn is_empty(&self) -> bool {
        self.current.is_empty() && self.requested.is_empty()
    }

    /// Returns the number of orders and modifications with special terms.
    pub fn len(&self) -> usize {
        self.current.len() + self.requested.len()
    }

    pub fn current(&self, slot: u32) -> Option<SpecialTerms> {
        self.current.get(&slot).copied()
    }

    /// Returns those of the pending modification.
    pub fn requested(&self, slot: u32) -> Option<SpecialTerms> {
        self.requested.get(&slot).copied()
    }

    /// Sets those of an order.
    pub fn set(&mut self, slot: u32, special: Option<SpecialTerms>) {
        put(&mut self.current, slot, special);
    }

    /// Sets those of a pending modification.
    pub fn request(&mut self, slot: u32, special: Option<SpecialTerms>) {
        put(&mut self.requested, slot, special);
    }

    /// Gives an order those of its modification, which is done.
    pub fn apply_requested(&mut self, slot: u32) {
        let special = self.requested.remove(&slot);
        self.set(slot, special);
    }

    /// Forgets an order.
    pub fn remove(&mut self, slot: u32) {
        self.current.remove(&slot);
        self.requested.remove(&slot);
    }

    /// Returns whether the slots are exactly these, first of the orders, then of the modifications.
    pub(crate) fn is_of(
        &self,
        orders: impl Iterator<Item = u32>,
        modifications: impl Iterator<Item = u32>,
    ) -> bool {
        self.current.keys().copied().eq(orders) && self.requested.keys().copied().eq(modifications)
    }
}

fn put(table: &mut BTreeMap<u32, SpecialTerms>, slot: u32, special: Option<SpecialTerms>) {
    match special {
        Some(special) => _ = table.insert(slot, special),
        None => _ = table.remove(&slot),
    }
}

/// Special terms that were received before their request, at most one of each port: a port sends
/// its request directly behind them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnnouncedTerms(BTreeMap<PortId, Announcement>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Announcement {
    source: Source,
    token: u32,
    special: SpecialTerms,
}

impl AnnouncedTerms {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps the special terms of the next request of a source.
    pub fn put(&mut self, source: Source, token: u32, special: SpecialTerms) {
        self.0.insert(source.port, Announcement { source, token, special });
    }

    /// Takes the special terms of a request, which has the source and the token of these.
    pub fn take(&mut self, source: Source, token: u32) -> Option<SpecialTerms> {
        let announced = self.0.remove(&source.port)?;
        (announced.source == source && announced.token == token).then_some(announced.special)
    }
}

/// The special terms of an order, in front of the event that reports its terms or sends them to its
/// venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderSpecialTerms {
    /// None if the order was refused and is in no table.
    pub order: OrderHandle,
    pub source: Source,
    /// Whether the event that follows only gives the current state of the order.
    pub is_snapshot: bool,
    pub special: SpecialTerms,
}

/// The newest special terms of each shard, until the event with the terms of their order follows.
#[derive(Clone, Debug, Default)]
pub struct ReportedTerms(BTreeMap<ShardId, OrderSpecialTerms>);

impl ReportedTerms {
    pub fn put(&mut self, shard: ShardId, special: &OrderSpecialTerms) {
        self.0.insert(shard, *special);
    }

    /// Takes the special terms of the order of an event, if its terms say that it has some.
    #[inline]
    pub fn take(&mut self, shard: ShardId, order: OrderHandle, terms: &Terms) -> Option<OrderSpecialTerms> {
        if !terms.special {
            return None;
        }
        self.0.remove(&shard).filter(|reported| reported.order == order)
    }
}

codec!(SpecialTerms { exec_inst, min_qty, max_floor });
codec!(SpecialTermsTable { current, requested });
codec!(AnnouncedTerms(announced));
codec!(Announcement { source, token, special });
codec!(OrderSpecialTerms { order, source, is_snapshot, special });

/// A byte for the number of codes, then the codes.
impl Codec for ExecInst {
    fn encode(&self, out: &mut impl ByteSink) {
        let len = self.codes().count();
        out.put(&[index_u8(len)]);
        out.put(&self.codes[..len]);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<ExecInst, DecodeError> {
        let [len] = from.array()?;
        from.check(len as usize <= EXEC_INST_CODES_MAX, DecodeProblem::Value)?;
        let codes = from.take(len as usize)?;
        from.check(codes.iter().all(u8::is_ascii_alphanumeric), DecodeProblem::Value)?;
        let mut made = ExecInst::default();
        made.codes[..codes.len()].copy_from_slice(codes);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::decode_whole;

    #[test]
    fn codes_are_parsed_and_shown_as_given() {
        for given in ["G", "1 6", "0 1 2 3 4 5 6 7 8 9 A B C D E F"] {
            assert_eq!(ExecInst::parse(given.as_bytes()).unwrap().to_string(), given);
        }
        assert_eq!(ExecInst::default().to_string(), "");
        for bad in ["", " ", "G ", "GG", "G  6", "!", "0 1 2 3 4 5 6 7 8 9 A B C D E F G"] {
            assert_eq!(ExecInst::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn terms_that_change_nothing_are_plain() {
        let qty = Qty::from_raw(10);
        let plain = SpecialTerms {
            exec_inst: ExecInst::parse(b"1 5").unwrap(),
            min_qty: Some(Qty::ZERO),
            max_floor: Some(qty),
        };
        assert_eq!(plain.check_plain(qty), Ok(()));
        assert_eq!(SpecialTerms::default().check_plain(qty), Ok(()));
        let exec_inst = ExecInst::parse(b"1 G").unwrap();
        let (min_qty, max_floor) = (Some(Qty::from_raw(1)), Some(Qty::from_raw(9)));
        for (special, reason) in [
            (SpecialTerms { exec_inst, ..plain }, Reason::ExecInstNotTaken),
            (SpecialTerms { min_qty, ..plain }, Reason::MinQtyNotTaken),
            (SpecialTerms { max_floor, ..plain }, Reason::MaxFloorNotTaken),
        ] {
            assert_eq!(special.check_plain(qty), Err(reason));
        }
    }

    #[test]
    fn reported_terms_are_those_of_the_next_order_of_their_shard() {
        let (order, other) = (OrderHandle::new(ShardId(1), 1, 5), OrderHandle::new(ShardId(1), 1, 6));
        let special = SpecialTerms { min_qty: Some(Qty::from_raw(2)), ..SpecialTerms::default() };
        let event = OrderSpecialTerms { order, source: Source::default(), is_snapshot: false, special };
        let (plain, with) = (Terms::default(), Terms { special: true, ..Terms::default() });
        let mut reported = ReportedTerms::default();
        reported.put(ShardId(1), &event);
        assert_eq!(reported.take(ShardId(1), other, &plain), None, "it has none");
        assert_eq!(reported.take(ShardId(2), order, &with), None, "of another shard");
        assert_eq!(reported.take(ShardId(1), order, &with), Some(event));
        assert_eq!(reported.take(ShardId(1), order, &with), None, "they were taken");
        reported.put(ShardId(1), &event);
        assert_eq!(reported.take(ShardId(1), other, &with), None, "of another order");
        assert_eq!(reported.take(ShardId(1), order, &with), None, "they were before another event");
    }

    #[test]
    fn announced_terms_are_those_of_the_next_request_only() {
        let source = Source { session: 1, ..Source::default() };
        let special = SpecialTerms { min_qty: Some(Qty::from_raw(1)), ..SpecialTerms::default() };
        let mut announced = AnnouncedTerms::default();
        announced.put(source, 7, special);
        assert!(!announced.is_empty());
        assert_eq!(announced.take(source, 7), Some(special));
        assert_eq!(announced.take(source, 7), None);
        announced.put(source, 7, special);
        assert_eq!(announced.take(source, 8), None, "of another request");
        announced.put(source, 7, special);
        assert_eq!(announced.take(Source { session: 2, ..source }, 7), None, "of another source");
        assert!(announced.is_empty());
    }

    #[test]
    fn bytes_decode_to_the_same_terms_and_no_others() {
        let special = SpecialTerms {
            exec_inst: ExecInst::parse(b"1 6").unwrap(),
            min_qty: None,
            max_floor: Some(Qty::from_raw(9)),
        };
        let mut table = SpecialTermsTable::default();
        table.set(3, Some(special));
        table.request(3, Some(SpecialTerms::default()));
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        assert_eq!(decode_whole::<SpecialTermsTable>(&bytes).unwrap(), table);
        for cut in 0..bytes.len() {
            assert!(decode_whole::<SpecialTermsTable>(&bytes[..cut]).is_err());
        }
        for bad in [&[17; 18][..], &[1, b' ', 0, 0], &[2, b'1', 0, 0, 0]] {
            assert!(decode_whole::<SpecialTerms>(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_table_has_the_terms_of_orders_and_of_their_modifications() {
        let with = |floor| SpecialTerms { max_floor: Some(Qty::from_raw(floor)), ..SpecialTerms::default() };
        let mut table = SpecialTermsTable::default();
        assert!(table.is_empty());
        table.request(3, Some(with(2)));
        assert_eq!((table.len(), table.is_empty()), (1, false));
        table.set(3, Some(with(1)));
        table.set(5, Some(with(5)));
        assert_eq!((table.len(), table.is_empty()), (3, false));
        let is_of = |orders: &[u32], modifications: &[u32]| {
            table.is_of(orders.iter().copied(), modifications.iter().copied())
        };
        assert!(is_of(&[3, 5], &[3]));
        assert!(!is_of(&[3], &[3]) && !is_of(&[3, 5], &[]) && !is_of(&[3, 5], &[3, 5]));
        table.apply_requested(3);
        assert_eq!((table.current(3), table.requested(3)), (Some(with(2)), None));
        table.apply_requested(5);
        assert_eq!(table.current(5), None, "the modification had none");
        table.request(3, Some(with(4)));
        table.remove(3);
        assert_eq!((table.len(), table.is_empty()), (0, true));
    }

    #[test]
    fn terms_are_empty_if_none_was_given() {
        assert!(SpecialTerms::default().is_empty() && ExecInst::default().is_empty());
        let exec_inst = ExecInst::parse(b"G").unwrap();
        assert!(!exec_inst.is_empty());
        assert!(!SpecialTerms { exec_inst, ..SpecialTerms::default() }.is_empty());
        assert!(!SpecialTerms { min_qty: Some(Qty::ZERO), ..SpecialTerms::default() }.is_empty());
    }
}
