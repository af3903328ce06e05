//! `pitlane serve`: a platform on the real clock, a line for every change of an order, and an end in good order.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pitlane_engine::event::{Body, Event, What};
use pitlane_engine::id::Currency;
use pitlane_engine::number::Money;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::view::View;
use pitlane_protocols::line::Line;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::clock::Clock;
use crate::config::Config;
use crate::idle::Idle;
use crate::platform::{Platform, PlatformSettings};

/// What the summary is counted in.
const BASE: &[u8] = b"USD";
/// At the end: rounds without any work after which nothing is under way any more.
const QUIET_ROUNDS: u32 = 3;
/// Longest wait for that. The delays of a venue are shorter.
const END_NS_MAX: u64 = 5 * NS_PER_S;

#[derive(Clone, Debug)]
pub struct ServeSettings {
    pub config: Config,
    /// Print the first and the last line only.
    pub quiet: bool,
    /// End after so long.
    pub time: Option<Duration>,
}

/// Runs until the time is up or a signal asks for the end; a second signal ends the process at once.
pub fn serve(settings: &ServeSettings, reference: Arc<RefData>, out: &mut impl Write) -> io::Result<()> {
    let stop = stop_by_signal()?;
    let mut clock = Clock::new();
    let start = clock.now();
    let end = settings
        .time
        .map_or(Timestamp::MAX, |time| start.plus(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    let platform = platform_settings(&settings.config, &reference);
    let mut report = Report::new(settings.quiet, out);
    report.begin(&platform, &reference)?;
    let mut platform = Platform::new(start, reference.clone(), platform);

    let mut idle = Idle::default();
    loop {
        let now = clock.now();
        if now >= end || stop.load(Ordering::Relaxed) {
            break;
        }
        idle.after(report.step(&mut platform, now)?);
    }
    platform.wind_down();
    let deadline = clock.now().plus(END_NS_MAX);
    let mut quiet = 0;
    while quiet < QUIET_ROUNDS && clock.now() < deadline {
        quiet = if report.step(&mut platform, clock.now())? == 0 { quiet + 1 } else { 0 };
    }
    report.end(platform.view(), &reference)
}

fn platform_settings(config: &Config, reference: &RefData) -> PlatformSettings {
    PlatformSettings {
        shards: config.topology.shards,
        seed: config.service.seed,
        interval_ns: config.feed.interval_ns(reference.securities().len()),
        depths: config.lanes,
    }
}

fn stop_by_signal() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// What is printed and counted on the way.
struct Report<'a, W: Write> {
    out: &'a mut W,
    quiet: bool,
    tally: Tally,
    /// Not yet printed.
    lines: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    ticks: u64,
    orders: u64,
    rejected: u64,
    fills: u64,
}

impl Tally {
    fn count(&mut self, event: &Event) {
        if matches!(event.body, Body::Tick(_)) {
            self.ticks += 1;
        }
        match event.report().map(|report| report.what) {
            Some(What::Entered) => self.orders += 1,
            Some(What::Rejected) => self.rejected += 1,
            Some(What::Filled) => self.fills += 1,
            Some(
                What::Accepted
                | What::CancelPending
                | What::Canceled
                | What::Expired
                | What::ReplacePending
                | What::Replaced
                | What::Triggered
                | What::Corrected
                | What::Image,
            )
            | None => {}
        }
    }
}

impl<'a, W: Write> Report<'a, W> {
    fn new(quiet: bool, out: &'a mut W) -> Report<'a, W> {
        Report { out, quiet, tally: Tally::default(), lines: String::new() }
    }

    fn begin(&mut self, settings: &PlatformSettings, reference: &RefData) -> io::Result<()> {
        let (securities, exchanges) = (reference.securities().len(), reference.exchanges().len());
        let (shards, seed) = (settings.shards, settings.seed);
        writeln!(
            self.out,
            "ready securities={securities} exchanges={exchanges} shards={shards} seed={seed} durability=none"
        )?;
        self.out.flush()
    }

    /// One round of the platform; what was said is printed at its end.
    fn step(&mut self, platform: &mut Platform, now: Timestamp) -> io::Result<usize> {
        let work = platform.poll(now, |view, reference, event| {
            self.tally.count(event);
            if !self.quiet {
                write_line(&mut self.lines, event, view, reference);
            }
        });
        if !self.lines.is_empty() {
            self.out.write_all(self.lines.as_bytes())?;
            self.out.flush()?;
            self.lines.clear();
        }
        Ok(work)
    }

    fn end(&mut self, view: &View, reference: &RefData) -> io::Result<()> {
        let Tally { ticks, orders, rejected, fills } = self.tally;
        let base = Currency::parse(BASE).expect("the base currency is one");
        let portfolio = view.portfolio(None, base, reference);
        let positions = view.positions().filter(|position| !position.state.qty.is_zero()).count();
        let shown =
            |amount: Option<Money>| amount.map_or("uncountable".to_string(), |money| money.to_string());
        writeln!(
            self.out,
            "stopped ticks={ticks} orders={orders} rejected={rejected} fills={fills} open={} positions={positions} \
             realized={} unrealized={} {base}",
            view.open_orders_len(),
            shown(portfolio.realized),
            shown(portfolio.unrealized),
        )?;
        self.out.flush()
    }
}

/// A line about the order that an event is about, if it is about one.
fn write_line(lines: &mut String, event: &Event, view: &View, reference: &RefData) {
    let Some(report) = event.report() else { return };
    let symbol = reference.security(report.security).map_or("?", |row| row.symbol.as_str());
    let order = view.order(report.order);
    if let Some(line) = Line::of_event(event, order.as_ref().map(|order| &order.terms), symbol) {
        writeln!(lines, "{line}").expect("a string takes everything");
    }
}
