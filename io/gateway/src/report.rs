//! Text on standard output: a line for every change of an order, as long as there are not too many,
//! and a last line with the totals.
//! The recorder of the market also receives its events here.

use std::fmt::Write as _;

use pitlane_engine::event::{Event, ExecType};
use pitlane_engine::id::Currency;
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::view::View;
use pitlane_market_data::record::MarketRecorder;
use pitlane_protocols::order_line::OrderLine;

use crate::event_counts::EventCounts;
use crate::printer::Printer;

/// Currency of the summary.
const BASE: &[u8] = b"USD";
/// Lines printed in one second. More would cost a third of the core, and no person reads so fast.
const PRINTED_LINES_MAX: u32 = 1_000;

/// Bounds the lines of a second.
#[derive(Debug, Default)]
struct LineBudget {
    /// The second of the last line, by the time of the shards.
    second: u64,
    lines: u32,
    /// Lines of that second that were left out.
    left_out: u64,
}

impl LineBudget {
    /// Returns whether another line may be printed at this time. If a second with too many lines is
    /// over, adds a line that counts them.
    fn take(&mut self, at: Timestamp, lines: &mut String) -> bool {
        let second = at.0 / NS_PER_S;
        // Shards may be a little behind each other.
        if second > self.second {
            self.close(lines);
            (self.second, self.lines) = (second, 0);
        }
        let fits = self.lines < PRINTED_LINES_MAX;
        self.lines += u32::from(fits);
        self.left_out += u64::from(!fits);
        fits
    }

    fn close(&mut self, lines: &mut String) {
        if self.left_out > 0 {
            let count = std::mem::take(&mut self.left_out);
            writeln!(lines, "… {count} lines left out: at most {PRINTED_LINES_MAX} are printed in a second")
                .expect("a string takes everything");
        }
    }
}

/// Lines of one cycle.
#[derive(Debug)]
pub struct OrderReportPrinter {
    printer: Printer,
    quiet: bool,
    budget: LineBudget,
    /// Lines that the printer does not have yet.
    lines: String,
    recorder: MarketRecorder,
}

impl OrderReportPrinter {
    pub fn new(printer: Printer, quiet: bool, recorder: MarketRecorder) -> OrderReportPrinter {
        OrderReportPrinter { printer, quiet, budget: LineBudget::default(), lines: String::new(), recorder }
    }

    /// Returns whether the levels of books are recorded.
    pub fn records_levels(&self) -> bool {
        self.recorder.records_levels()
    }

    /// Receives an event that the view has applied.
    pub fn handle_event(&mut self, view: &View, reference: &RefData, event: &Event) {
        self.recorder.handle_event(event);
        if self.quiet {
            return;
        }
        let Some(report) = event.report().filter(|report| report.what != ExecType::Snapshot) else { return };
        if !self.budget.take(event.at, &mut self.lines) {
            return;
        }
        let symbol = reference.security(report.security).map_or("?", |row| row.symbol.as_str());
        let order = view.order(report.order);
        if let Some(line) = OrderLine::of_event(event, order.as_ref().map(|order| &order.terms), symbol) {
            writeln!(self.lines, "{line}").expect("a string takes everything");
        }
    }

    /// Gives the lines of this cycle to the printer.
    pub fn flush(&mut self) {
        self.printer.print(&mut self.lines);
        self.recorder.flush();
    }

    /// Prints the last line, after all others.
    pub fn end(mut self, view: &View, reference: &RefData, counts: EventCounts) {
        let EventCounts { ticks, orders, rejected, fills, .. } = counts;
        let base = Currency::parse(BASE).expect("the base currency is one");
        let portfolio = view.portfolio(None, base, reference);
        let positions = view.positions().filter(|position| !position.state.qty.is_zero()).count();
        let shown =
            |amount: Option<Money>| amount.map_or("uncountable".to_string(), |money| money.to_string());
        self.budget.close(&mut self.lines);
        writeln!(
            self.lines,
            "stopped ticks={ticks} orders={orders} rejected={rejected} fills={fills} open={} positions={positions} \
             realized={} unrealized={} {base}",
            view.open_orders_len(),
            shown(portfolio.realized),
            shown(portfolio.unrealized),
        )
        .expect("a string takes everything");
        self.printer.print_last(self.lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_those_of_a_second_are_counted() {
        let (mut budget, mut lines) = (LineBudget::default(), String::new());
        let at = |ms: u64| Timestamp(1_000 * NS_PER_S + ms * 1_000_000);
        let printed = (0..PRINTED_LINES_MAX + 5).filter(|_| budget.take(at(1), &mut lines)).count();
        assert_eq!((printed, lines.as_str()), (1_000, ""));
        assert!(!budget.take(at(999), &mut lines));
        assert!(budget.take(at(1_000), &mut lines));
        assert_eq!(lines, "… 6 lines left out: at most 1000 are printed in a second\n");
        // A shard that is a little behind counts for the second of the others.
        assert!(budget.take(at(900), &mut lines));
        assert_eq!(lines.lines().count(), 1);
        assert_eq!((budget.lines, budget.left_out), (2, 0));
    }
}
