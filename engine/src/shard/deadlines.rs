//! Deadlines of a shard: dates of orders, and what is in transit to or from the simulated venue.

use std::sync::Arc;

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError};
use crate::command::VenueReport;
use crate::event::VenueRequest;
use crate::id::OrderHandle;
use crate::settings::{DelayTable, Delays};
use crate::time::Timestamp;
use crate::timers::{DelayLine, Timed, Timers};

#[derive(Debug, Default)]
pub(super) struct Deadlines {
    timers: Timers,
    /// By security: the transit to and from the venue.
    delay_lines: Vec<[DelayLine; 2]>,
    /// Whether any transit takes time.
    is_delayed: bool,
    /// Number of open GTD orders.
    dated: usize,
    /// Distributions of the transit times, if a simulation has set them.
    drawn: Option<Box<DrawnDelays>>,
}

/// Transit times of a simulation. They are not stored: a simulation has no journal.
#[derive(Debug, Default)]
struct DrawnDelays {
    entry: Option<Arc<DelayTable>>,
    response: Option<Arc<DelayTable>>,
    /// Time and security of the last report, and its delay: reports of one instant travel together.
    last: Option<(Timestamp, u32, u64)>,
}

/// Timers.
impl Deadlines {
    /// Returns the next deadline.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.timers.deadline()
    }

    /// Returns the next timer that is due.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<Timed> {
        self.timers.pop(now)
    }

    /// Returns all timers, in no order.
    pub(super) fn timed(&self) -> impl Iterator<Item = &Timed> {
        self.timers.iter()
    }

    pub(super) fn push(&mut self, at: Timestamp, what: Timed) {
        self.timers.push(at, what);
    }

    /// Returns the number of open GTD orders.
    pub(super) fn dated(&self) -> usize {
        self.dated
    }

    /// Counts an open order that has a date.
    pub(super) fn add_dated(&mut self) {
        self.dated += 1;
    }

    /// Removes an order from the count that has ended or has no date any more.
    pub(super) fn remove_dated(&mut self) {
        self.dated -= 1;
    }

    /// Adds a timer at an order's date. If there are too many timers of orders that are no longer
    /// open, they are removed.
    pub(super) fn push_date(
        &mut self,
        at: Timestamp,
        order: OrderHandle,
        is_open: impl Fn(OrderHandle) -> bool,
    ) {
        self.timers.sweep(self.dated, is_open);
        self.timers.push(at, Timed::Date(order));
    }
}

/// Transit.
impl Deadlines {
    /// Adds a security, whose random delays begin with this seed.
    pub(super) fn add_security(&mut self, seed: u64, delays: Delays) {
        self.is_delayed |= delays != Delays::default();
        self.delay_lines.push([DelayLine::new(seed ^ 1), DelayLine::new(seed ^ 2)]);
    }

    /// Returns the number of securities.
    pub(super) fn securities(&self) -> usize {
        self.delay_lines.len()
    }

    /// Returns whether any transit takes time.
    #[inline]
    pub(super) fn is_delayed(&self) -> bool {
        self.is_delayed
    }

    /// Sends a request to the simulated venue with the delay of the entry.
    pub(super) fn send_to_venue(
        &mut self,
        now: Timestamp,
        local: u32,
        delays: &Delays,
        order: OrderHandle,
        request: VenueRequest,
    ) {
        let [entry, _] = &mut self.delay_lines[local as usize];
        let at = match self.drawn.as_ref().and_then(|drawn| drawn.entry.as_ref()) {
            None => entry.arrival(now, delays.entry_ns, delays.entry_jitter_ns),
            Some(table) => {
                let delay_ns = entry.draw(table);
                entry.arrival_after(now, delay_ns)
            }
        };
        self.timers.push(at, Timed::ToVenue { order, request });
    }

    /// Sends a report of the simulated venue with the delay of the response.
    pub(super) fn send_from_venue(
        &mut self,
        now: Timestamp,
        local: u32,
        delays: &Delays,
        order: OrderHandle,
        report: VenueReport,
    ) {
        let [_, response] = &mut self.delay_lines[local as usize];
        let at = match self.drawn.as_mut().and_then(|drawn| drawn.response_delay(now, local, response)) {
            None => response.arrival(now, delays.response_ns, delays.response_jitter_ns),
            Some(delay_ns) => response.arrival_after(now, delay_ns),
        };
        self.timers.push(at, Timed::FromVenue { order, report });
    }

    /// Sets the distributions from which transit times are drawn from now on.
    pub(super) fn set_tables(&mut self, entry: Option<Arc<DelayTable>>, response: Option<Arc<DelayTable>>) {
        self.is_delayed |= entry.is_some() || response.is_some();
        self.drawn = Some(Box::new(DrawnDelays { entry, response, last: None }));
    }

    /// Lets everything in transit arrive now.
    pub(super) fn deliver_all(&mut self, now: Timestamp) {
        self.timers.deliver_all(now);
        self.delay_lines.iter_mut().flatten().for_each(|line| line.clear(now));
    }

    /// Sets the values that follow from the orders and the settings.
    pub(super) fn set_derived(&mut self, dated: usize, is_delayed: bool) {
        (self.dated, self.is_delayed) = (dated, is_delayed);
    }
}

impl DrawnDelays {
    /// Returns the delay of a report; `None` without a distribution.
    fn response_delay(&mut self, now: Timestamp, local: u32, line: &mut DelayLine) -> Option<u64> {
        let table = self.response.as_ref()?;
        if let Some((_, _, delay_ns)) = self.last.filter(|last| (last.0, last.1) == (now, local)) {
            return Some(delay_ns);
        }
        let delay_ns = line.draw(table);
        self.last = Some((now, local, delay_ns));
        Some(delay_ns)
    }
}

/// Bytes.
impl Deadlines {
    pub(super) fn save(&self, out: &mut impl ByteSink) {
        self.encode_lines(out);
        self.timers.encode(out);
    }

    /// Decodes the deadlines of so many securities. The caller sets what follows from the orders.
    pub(super) fn load(from: &mut ByteReader<'_>, securities: usize) -> Result<Deadlines, DecodeError> {
        let mut delay_lines = Vec::with_capacity(securities);
        for _ in 0..securities {
            delay_lines.push([DelayLine::decode(from)?, DelayLine::decode(from)?]);
        }
        Ok(Deadlines { timers: Timers::decode(from)?, delay_lines, ..Deadlines::default() })
    }

    /// Adds the numbers of timers and of dated orders to a checksum.
    pub(super) fn encode_counts(&self, out: &mut impl ByteSink) {
        (self.dated, (self.timers.len(), self.timers.deadline())).encode(out);
    }

    pub(super) fn encode_lines(&self, out: &mut impl ByteSink) {
        self.delay_lines.iter().flatten().for_each(|line| line.encode(out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_distribution_makes_a_delay() {
        let table = || Some(Arc::new(DelayTable::new(vec![5])));
        for (entry, response, is_delayed) in
            [(None, None, false), (table(), None, true), (None, table(), true)]
        {
            let mut deadlines = Deadlines::default();
            deadlines.set_tables(entry, response);
            assert_eq!(deadlines.is_delayed(), is_delayed);
        }
    }
}
