//! Writes Snapshot (W), Incremental Refresh (X) and Request Reject (Y).

use pitlane_engine::event::{DEPTH_LEVELS_MAX, DepthLevel, Tick};
use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Price;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;

use super::{MarketDataTerms, MarketImage, MdRejectReason, ShownMarket, SideLevels};
use crate::fix::encode::Draft;
use crate::fix::report;
use crate::fix::tag::prefix;
use crate::fix::timestamp::{TIMESTAMP_BYTES, TimestampText};

/// MDEntryType (269) of the two sides, of a trade, and of the volume of the trading day.
const SIDES: [u8; 2] = [b'0', b'1'];
const TRADE: u8 = b'2';
const VOLUME: u8 = b'B';

/// MDUpdateAction (279).
const NEW: u8 = b'0';
const CHANGE: u8 = b'1';
const DELETE: u8 = b'2';

/// Writes a Snapshot (W): everything that the subscription shows. `rpt_seq` says whether RptSeq
/// (83) is written, which FIX 4.4 does not list for this message.
pub fn snapshot(
    draft: &mut Draft,
    reference: &RefData,
    (id, terms, rpt_seq): (&[u8], &MarketDataTerms, bool),
    image: &MarketImage,
    shown: &ShownMarket,
) {
    let tick = &image.tick;
    draft.text(prefix::MD_REQ_ID, id);
    report::instrument(draft, reference, tick.security);
    if rpt_seq {
        draft.number(prefix::RPT_SEQ, shown.seq);
    }
    let has_trade = terms.trades && tick.traded;
    let levels: usize = shown.sides.iter().map(|side| side.as_slice().len()).sum();
    let count = levels + usize::from(has_trade) + usize::from(terms.volume);
    draft.number(prefix::NO_MD_ENTRIES, count as u64);
    let time = EntryTime::of(tick.at);
    for (kind, side) in SIDES.into_iter().zip(&shown.sides) {
        for (level, position) in side.as_slice().iter().zip(1..) {
            draft.code(prefix::MD_ENTRY_TYPE, kind);
            write_level(draft, level);
            time.write(draft);
            draft.number(prefix::MD_ENTRY_POSITION_NO, position);
        }
    }
    if has_trade {
        draft.code(prefix::MD_ENTRY_TYPE, TRADE);
        write_level(draft, &last_trade(tick));
        time.write(draft);
    }
    if terms.volume {
        draft.code(prefix::MD_ENTRY_TYPE, VOLUME);
        draft.scaled(prefix::MD_ENTRY_SIZE, shown.volume.raw());
        time.write(draft);
    }
}

/// A change of one level, or a trade.
#[derive(Clone, Copy, Debug, Default)]
struct RefreshEntry {
    action: u8,
    kind: u8,
    level: DepthLevel,
}

/// Returns the content of an Incremental Refresh (X): what differs from what the client knows, or
/// `None` if nothing differs.
///
/// With one level, the best price of a side is one entry, which changes. With more, the entries of
/// a side are its prices: one comes, changes its size, or goes.
pub fn refresh(
    terms: &MarketDataTerms,
    known: &ShownMarket,
    shown: &ShownMarket,
    tick: &Tick,
) -> Option<MarketRefresh> {
    let mut refresh = MarketRefresh {
        entries: [RefreshEntry::default(); ENTRIES_MAX],
        count: 0,
        seq: shown.seq,
        security: tick.security,
        at: tick.at,
    };
    for (kind, (before, after)) in SIDES.into_iter().zip(known.sides.iter().zip(&shown.sides)) {
        match terms.needs_book() {
            true => refresh.compare_levels(kind, before, after),
            false => refresh.compare_best(kind, before, after),
        }
    }
    if terms.trades && tick.traded && known.volume != shown.volume {
        refresh.push(NEW, TRADE, &last_trade(tick));
    }
    if terms.volume && known.volume != shown.volume {
        refresh.push(CHANGE, VOLUME, &DepthLevel { price: Price::ZERO, qty: shown.volume });
    }
    (refresh.count > 0).then_some(refresh)
}

/// Entries of one refresh: all levels of both sides go, others come, there is a trade and a volume.
const ENTRIES_MAX: usize = 4 * DEPTH_LEVELS_MAX + 2;

/// The entries of an Incremental Refresh.
#[derive(Debug)]
pub struct MarketRefresh {
    entries: [RefreshEntry; ENTRIES_MAX],
    count: usize,
    seq: u64,
    security: SecurityId,
    at: Timestamp,
}

impl MarketRefresh {
    pub fn write(&self, draft: &mut Draft, reference: &RefData, id: &[u8], rpt_seq: bool) {
        draft.text(prefix::MD_REQ_ID, id);
        draft.number(prefix::NO_MD_ENTRIES, self.count as u64);
        let time = EntryTime::of(self.at);
        for RefreshEntry { action, kind, level } in &self.entries[..self.count] {
            draft.code(prefix::MD_UPDATE_ACTION, *action);
            draft.code(prefix::MD_ENTRY_TYPE, *kind);
            report::instrument(draft, reference, self.security);
            match *kind {
                VOLUME => draft.scaled(prefix::MD_ENTRY_SIZE, level.qty.raw()),
                _ => write_level(draft, level),
            }
            time.write(draft);
            if rpt_seq {
                draft.number(prefix::RPT_SEQ, self.seq);
            }
        }
    }

    fn push(&mut self, action: u8, kind: u8, level: &DepthLevel) {
        self.entries[self.count] = RefreshEntry { action, kind, level: *level };
        self.count += 1;
    }

    fn compare_best(&mut self, kind: u8, before: &SideLevels, after: &SideLevels) {
        match (before.as_slice().first(), after.as_slice().first()) {
            (None, Some(level)) => self.push(NEW, kind, level),
            (Some(known), Some(level)) if known != level => self.push(CHANGE, kind, level),
            (Some(known), None) => self.push(DELETE, kind, known),
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn compare_levels(&mut self, kind: u8, before: &SideLevels, after: &SideLevels) {
        let at = |side: &SideLevels, level: &DepthLevel| {
            side.as_slice().iter().find(|other| other.price == level.price).copied()
        };
        for level in before.as_slice().iter().filter(|level| at(after, level).is_none()) {
            self.push(DELETE, kind, level);
        }
        for level in after.as_slice() {
            match at(before, level) {
                None => self.push(NEW, kind, level),
                Some(known) if known.qty != level.qty => self.push(CHANGE, kind, level),
                Some(_) => {}
            }
        }
    }
}

/// Writes a Market Data Request Reject (Y).
pub fn reject(draft: &mut Draft, id: &[u8], reason: MdRejectReason) {
    draft.text(prefix::MD_REQ_ID, id);
    draft.code(prefix::MD_REQ_REJ_REASON, reason.code());
    draft.text(prefix::TEXT, reason.text().as_bytes());
}

fn write_level(draft: &mut Draft, level: &DepthLevel) {
    draft.scaled(prefix::MD_ENTRY_PX, level.price.raw());
    draft.scaled(prefix::MD_ENTRY_SIZE, level.qty.raw());
}

fn last_trade(tick: &Tick) -> DepthLevel {
    DepthLevel { price: tick.last, qty: tick.last_size }
}

/// MDEntryDate (272) and MDEntryTime (273).
struct EntryTime([u8; TIMESTAMP_BYTES]);

impl EntryTime {
    fn of(at: Timestamp) -> EntryTime {
        EntryTime(*TimestampText::default().text(at))
    }

    fn write(&self, draft: &mut Draft) {
        let (date, time) = self.0.split_at(DATE_BYTES);
        draft.text(prefix::MD_ENTRY_DATE, date);
        draft.text(prefix::MD_ENTRY_TIME, &time[1..]);
    }
}

/// `20261116`
const DATE_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use pitlane_engine::number::Qty;
    use pitlane_engine::refdata::sample;

    use super::*;
    use crate::fix::encode::Encoder;
    use crate::fix::version::FixVersion;

    /// Returns a bid of 5 at 1, and a trade of 4 at 3 that makes the volume 7.
    fn tick() -> Tick {
        Tick {
            security: SecurityId(1),
            bid: Price::from_raw(100_000_000),
            bid_size: qty(5),
            last: Price::from_raw(300_000_000),
            last_size: qty(4),
            traded: true,
            volume: qty(7),
            at: Timestamp(1_800_000_000_123_000_000),
            ..Tick::default()
        }
    }

    fn qty(whole: i64) -> Qty {
        Qty::whole(whole).unwrap()
    }

    const ALL: MarketDataTerms = MarketDataTerms {
        depth: 1,
        is_incremental: true,
        bids: true,
        offers: true,
        trades: true,
        volume: true,
    };

    /// Returns the fields that are written, with `|` for SOH.
    fn written(write: impl FnOnce(&mut Draft, &RefData)) -> String {
        let reference = RefData::check(sample::sound()).unwrap();
        let (mut encoder, mut out) = (Encoder::new(FixVersion::Fix44, "S", "T"), Vec::new());
        let mut draft = encoder.begin(&mut out, b'W', 1, Timestamp(0));
        write(&mut draft, &reference);
        draft.finish();
        let text = String::from_utf8(out).unwrap().replace('\x01', "|");
        let (_, fields) = text.split_once("|262=").unwrap();
        format!("262={}", fields.rsplit_once("10=").unwrap().0)
    }

    #[test]
    fn a_snapshot_counts_its_levels_the_trade_and_the_volume() {
        let time = "272=20270115|273=08:00:00.123|";
        let (bid, trade, volume) = (
            format!("269=0|270=1|271=5|{time}290=1|"),
            format!("269=2|270=3|271=4|{time}"),
            format!("269=B|271=7|{time}"),
        );
        let untraded = Tick { traded: false, ..tick() };
        for (terms, tick, entries) in [
            (ALL, tick(), vec![&bid, &trade, &volume]),
            (ALL, untraded, vec![&bid, &volume]),
            (MarketDataTerms { volume: false, ..ALL }, tick(), vec![&bid, &trade]),
            (MarketDataTerms { trades: false, bids: false, ..ALL }, tick(), vec![&volume]),
        ] {
            let image = MarketImage { seq: 5, tick, book: None, is_book_settled: true };
            let shown = ShownMarket::of(&image, &terms);
            let fields = written(|draft, reference| {
                snapshot(draft, reference, (b"r", &terms, false), &image, &shown);
            });
            let head = format!("262=r|55=ACME|48=1|22=8|167=CS|268={}|", entries.len());
            let entries: String = entries.into_iter().map(String::as_str).collect();
            assert_eq!(fields, head + &entries);
        }
    }

    #[test]
    fn a_refresh_has_the_trade_and_the_volume_if_they_are_new_and_wanted() {
        let known = ShownMarket { volume: qty(1), ..ShownMarket::default() };
        let traded = ShownMarket { volume: qty(7), ..known };
        let (trade, volume) = ("279=0|269=2|", "279=1|269=B|");
        let only = |trades, volume| MarketDataTerms { trades, volume, ..ALL };
        for (terms, tick, shown, expected) in [
            (only(true, true), tick(), traded, vec![trade, volume]),
            (only(true, false), tick(), traded, vec![trade]),
            (only(false, true), tick(), traded, vec![volume]),
            (only(false, false), tick(), traded, vec![]),
            (only(true, true), Tick { traded: false, ..tick() }, traded, vec![volume]),
            (only(true, true), tick(), known, vec![]),
        ] {
            let found = refresh(&terms, &known, &shown, &tick);
            assert_eq!(found.is_some(), !expected.is_empty());
            let Some(found) = found else { continue };
            let fields = written(|draft, reference| found.write(draft, reference, b"r", false));
            let starts: Vec<&str> =
                fields.match_indices("279=").map(|(at, _)| &fields[at..at + 12]).collect();
            assert_eq!(starts, expected);
            assert_eq!(fields.matches("|272=20270115|273=08:00:00.123|").count(), expected.len(), "{fields}");
        }
    }
}
