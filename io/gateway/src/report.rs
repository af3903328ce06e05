//! Text on standard output: a line for every change of an order, and a last line with the totals.
//! The recorder of the market also receives its events here.

use std::fmt::Write as _;

use pitlane_engine::event::{Event, ExecType};
use pitlane_engine::id::Currency;
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::view::View;
use pitlane_market_data::record::MarketRecorder;
use pitlane_protocols::order_line::OrderLine;

use crate::event_counts::EventCounts;
use crate::printer::Printer;

/// Currency of the summary.
const BASE: &[u8] = b"USD";

/// Lines of one cycle.
#[derive(Debug)]
pub struct OrderReportPrinter {
    printer: Printer,
    quiet: bool,
    /// Lines that the printer does not have yet.
    lines: String,
    recorder: MarketRecorder,
}

impl OrderReportPrinter {
    pub fn new(printer: Printer, quiet: bool, recorder: MarketRecorder) -> OrderReportPrinter {
        OrderReportPrinter { printer, quiet, lines: String::new(), recorder }
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
