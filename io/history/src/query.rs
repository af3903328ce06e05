//! Questions to the history, and their answers as JSON, CSV, Parquet or an Arrow stream.
//!
//! Beyond JSON, bars and ticks have the columns of the files that `pitlane simulate` and the replay
//! read.

use std::io;

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::time::Timestamp;
use pitlane_market_data::column_format::ColumnFormat;
use pitlane_market_data::row_layout::{QUOTE_NUMBERS, QUOTES, QuoteRow, RowLayout};
use pitlane_protocols::json::{push_decimal, push_number, push_time};
use pitlane_protocols::rest::{BarVO, Decimal, Moment, QuoteVO, TickVO};
use serde::Serialize;

use super::interval::BarInterval;
use super::rows::{HistoryRow, StoredBar, StoredTick};
use super::series::RowRange;
use super::store::{DayQuote, HistoryStore};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryQuery {
    Bars {
        security: SecurityId,
        interval: BarInterval,
        page: PageQuery,
    },
    Ticks {
        security: SecurityId,
        page: PageQuery,
    },
    /// The newest prices; of all securities if the list is empty.
    Quotes {
        securities: Vec<SecurityId>,
    },
}

/// A page of rows. With `from` it is the first of the range, otherwise the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageQuery {
    pub from: Option<Timestamp>,
    /// End of the range, which is not part of it.
    pub to: Timestamp,
    /// Maximum number of rows.
    pub limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    Json,
    Csv,
    Columns(ColumnFormat),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryAnswer {
    pub body: Vec<u8>,
    /// Begin of the page that follows this one.
    pub next_from: Option<Timestamp>,
    /// End of the page before this one.
    pub previous_to: Option<Timestamp>,
}

/// Answers a question at a time.
pub(crate) fn answer(
    store: &HistoryStore,
    query: &HistoryQuery,
    format: RowFormat,
    now: Timestamp,
) -> io::Result<HistoryAnswer> {
    match query {
        HistoryQuery::Bars { security, interval, page } => {
            let (mut rows, in_progress) = store.bars(*security, *interval, range_of(page))?;
            let mut answer = cut(&mut rows, page);
            answer.body = match format {
                RowFormat::Json => json(rows.iter().map(|bar| bar_vo(*security, bar, in_progress))),
                RowFormat::Csv => csv(RowLayout::Bars.header(), &rows, |out, bar| {
                    row_line(out, *security, bar, bar_cells(bar))
                }),
                RowFormat::Columns(format) => columns(format, RowLayout::Bars, *security, &rows, bar_cells)?,
            };
            Ok(answer)
        }
        HistoryQuery::Ticks { security, page } => {
            let mut rows = store.ticks(*security, range_of(page))?;
            let mut answer = cut(&mut rows, page);
            if format != RowFormat::Json {
                // The readers of such files refuse a row with neither a quote nor a trade.
                rows.retain(|tick| tick.has_trade || is_quoted(tick));
            }
            answer.body = match format {
                RowFormat::Json => json(rows.iter().map(|tick| tick_vo(*security, tick))),
                RowFormat::Csv => csv(RowLayout::Ticks.header(), &rows, |out, tick| {
                    row_line(out, *security, tick, tick_cells(tick));
                }),
                RowFormat::Columns(format) => {
                    columns(format, RowLayout::Ticks, *security, &rows, tick_cells)?
                }
            };
            Ok(answer)
        }
        HistoryQuery::Quotes { securities } => {
            let all: Vec<SecurityId> = match securities.is_empty() {
                true => store.securities().collect(),
                false => securities.clone(),
            };
            let quote = |security| quote_vo(security, &store.quote(security, now));
            let quotes: Vec<QuoteVO> = all.into_iter().map(quote).collect();
            let body = match format {
                RowFormat::Json => json(quotes.iter()),
                RowFormat::Csv => csv(QUOTES, &quotes, quote_line),
                RowFormat::Columns(format) => format.encode_quotes(quotes.iter().map(quote_row))?,
            };
            Ok(HistoryAnswer { body, ..HistoryAnswer::default() })
        }
    }
}

/// Returns the range of a page and of one row more, which tells whether there is another page.
fn range_of(page: &PageQuery) -> RowRange {
    RowRange {
        from: page.from.unwrap_or(Timestamp::ZERO),
        to: page.to,
        limit: page.limit.saturating_add(1),
        is_backwards: page.from.is_none(),
    }
}

/// Removes the row beyond the page, and notes where the next page begins or ends.
fn cut<R: HistoryRow>(rows: &mut Vec<R>, page: &PageQuery) -> HistoryAnswer {
    let mut answer = HistoryAnswer::default();
    if rows.len() <= page.limit {
        return answer;
    }
    match page.from {
        Some(_) => answer.next_from = rows.pop().map(|row| row.at()),
        None => {
            rows.remove(0);
            answer.previous_to = rows.first().map(HistoryRow::at);
        }
    }
    answer
}

fn json<T: Serialize>(rows: impl Iterator<Item = T>) -> Vec<u8> {
    let rows: Vec<T> = rows.collect();
    // Serialization fails only for maps whose keys are no text, and these values have none.
    serde_json::to_vec(&rows).expect("value types can be written as JSON")
}

fn csv<T>(header: &str, rows: &[T], mut line: impl FnMut(&mut Vec<u8>, &T)) -> Vec<u8> {
    let mut out = header.as_bytes().to_vec();
    out.push(b'\n');
    for row in rows {
        line(&mut out, row);
        out.push(b'\n');
    }
    out
}

fn columns<R: HistoryRow, const CELLS: usize>(
    format: ColumnFormat,
    layout: RowLayout,
    security: SecurityId,
    rows: &[R],
    cells: impl Fn(&R) -> [Option<Decimal>; CELLS],
) -> io::Result<Vec<u8>> {
    let raw = |row: &R| cells(row).map(|cell| cell.map(|value| value.raw));
    format.encode(layout, rows.iter().map(|row| (row.at(), security, raw(row))))
}

fn bar_vo(security: SecurityId, bar: &StoredBar, in_progress: Timestamp) -> BarVO {
    BarVO {
        security_id: security.0,
        date_time: Moment(bar.at),
        open: bar.open.into(),
        high: bar.high.into(),
        low: bar.low.into(),
        close: bar.close.into(),
        volume: bar.volume.into(),
        trades: bar.trades,
        complete: bar.at < in_progress,
    }
}

/// Returns the cells after `time` and `security`; `tick_cells` likewise.
fn bar_cells(bar: &StoredBar) -> [Option<Decimal>; 5] {
    let price = |price: Price| Some(price.into());
    [price(bar.open), price(bar.high), price(bar.low), price(bar.close), Some(bar.volume.into())]
}

fn tick_vo(security: SecurityId, tick: &StoredTick) -> TickVO {
    let [bid, bid_size, ask, ask_size, last, last_size] = tick_cells(tick);
    let date_time = Moment(tick.at);
    TickVO { security_id: security.0, date_time, bid, bid_size, ask, ask_size, last, last_size }
}

fn tick_cells(tick: &StoredTick) -> [Option<Decimal>; 6] {
    let [bid, bid_size] = side(tick.bid, tick.bid_size);
    let [ask, ask_size] = side(tick.ask, tick.ask_size);
    let trade = |value: Decimal| tick.has_trade.then_some(value);
    [bid, bid_size, ask, ask_size, trade(tick.last.into()), trade(tick.traded.into())]
}

fn quote_vo(security: SecurityId, quote: &DayQuote) -> QuoteVO {
    let DayQuote { last, today, before } = quote;
    let tick = last.unwrap_or_default();
    let [bid, bid_size] = side(tick.bid, tick.bid_size);
    let [ask, ask_size] = side(tick.ask, tick.ask_size);
    // Without a tick the last price is the close of the last bar.
    let has_last = !tick.last_size.is_zero() || !tick.last.is_zero();
    let close = today.or(*before).map(|bar| bar.close.into());
    QuoteVO {
        security_id: security.0,
        date_time: last.map(|tick| Moment(tick.at)),
        bid,
        bid_size,
        ask,
        ask_size,
        last: if has_last { Some(tick.last.into()) } else { close },
        last_size: has_last.then(|| tick.last_size.into()),
        open: today.map(|bar| bar.open.into()),
        high: today.map(|bar| bar.high.into()),
        low: today.map(|bar| bar.low.into()),
        volume: today.map_or(Qty::ZERO, |bar| bar.volume).into(),
        previous_close: before.map(|bar| bar.close.into()),
        previous_day: before.map(|bar| Moment(bar.at)),
    }
}

fn quote_line(out: &mut Vec<u8>, quote: &QuoteVO) {
    begin_line(out, quote.date_time, quote.security_id);
    quote_cells(quote).into_iter().for_each(|value| cell(out, value));
    out.push(b',');
    if let Some(day) = quote.previous_day {
        push_time(out, day.0);
    }
}

fn quote_row(quote: &QuoteVO) -> QuoteRow {
    QuoteRow {
        at: quote.date_time.map(|at| at.0),
        security: SecurityId(quote.security_id),
        numbers: quote_cells(quote).map(|cell| cell.map(|value| value.raw)),
        previous_day: quote.previous_day.map(|day| day.0),
    }
}

/// Returns the cells between `security` and `previousDay`.
fn quote_cells(quote: &QuoteVO) -> [Option<Decimal>; QUOTE_NUMBERS] {
    let QuoteVO { bid, bid_size, ask, ask_size, last, last_size, open, high, low, .. } = *quote;
    let (volume, previous_close) = (Some(quote.volume), quote.previous_close);
    [bid, bid_size, ask, ask_size, last, last_size, open, high, low, volume, previous_close]
}

/// Returns price and size of a side of a quote; a side without a size does not exist.
fn side(price: Price, size: Qty) -> [Option<Decimal>; 2] {
    let is_there = size.is_positive();
    [is_there.then(|| price.into()), is_there.then(|| size.into())]
}

fn is_quoted(tick: &StoredTick) -> bool {
    tick.bid_size.is_positive() || tick.ask_size.is_positive()
}

fn row_line<R: HistoryRow, const CELLS: usize>(
    out: &mut Vec<u8>,
    security: SecurityId,
    row: &R,
    cells: [Option<Decimal>; CELLS],
) {
    begin_line(out, Some(Moment(row.at())), security.0);
    cells.into_iter().for_each(|value| cell(out, value));
}

fn begin_line(out: &mut Vec<u8>, at: Option<Moment>, security: u32) {
    if let Some(at) = at {
        push_time(out, at.0);
    }
    out.push(b',');
    push_number(out, security.into());
}

fn cell(out: &mut Vec<u8>, value: Option<Decimal>) {
    out.push(b',');
    if let Some(value) = value {
        push_decimal(out, value.raw);
    }
}
