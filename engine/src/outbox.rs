//! Events that a shard has emitted and the worker has not yet delivered.

use std::collections::VecDeque;

use crate::event::{Booking, EVENTS_PER_COMMAND_MAX, Event, EventKind};
use crate::id::{PortId, PortMask};
use crate::time::{Day, Timestamp};

/// Events that may wait for their commands to be stored. A common disk stores a group of commands
/// in some 2 ms; these are the events of the thousands of commands that a shard applies in that
/// time. They take 1.6 MB. A shard that does not wait uses only the first few places.
pub const EVENTS_WAITING_MAX: usize = 8_192;

const _: () = assert!(EVENTS_WAITING_MAX >= 2 * EVENTS_PER_COMMAND_MAX, "one step can wait behind another");

/// Events in the order of emission, each with its recipient ports. The outbox numbers them, so that
/// every event of a shard has its number, and an event without recipients costs nothing else.
///
/// ```text
///   delivered │ may be delivered │ held: their commands are not stored yet │ being emitted
///             └ taken            └ ready                                    └ the last end in `held`
/// ```
#[derive(Debug)]
pub struct Outbox {
    /// As many places as there is room.
    events: Box<[(PortMask, Event)]>,
    /// Number of events in `events`.
    written: usize,
    /// Number of those that were delivered.
    taken: usize,
    /// Number of those that may be delivered.
    ready: usize,
    /// Steps of commands that are not stored yet.
    held: VecDeque<HeldStep>,
    /// Number of the last event.
    seq: u64,
    /// Number of the last event before the held ones.
    ready_seq: u64,
}

#[derive(Debug)]
struct HeldStep {
    /// Number of its command.
    command: u64,
    /// Number of `events` up to its last.
    end: usize,
    /// Number of its last event.
    seq: u64,
}

impl Outbox {
    /// Creates an outbox for one step of a shard whose last event had this number.
    pub fn new(seq: u64) -> Outbox {
        Outbox::with_room(seq, EVENTS_PER_COMMAND_MAX)
    }

    /// Creates an outbox in which events can wait.
    pub fn for_waiting(seq: u64) -> Outbox {
        let mut outbox = Outbox::with_room(seq, EVENTS_WAITING_MAX);
        // Each held entry has at least one event.
        outbox.held.reserve(EVENTS_WAITING_MAX);
        outbox
    }

    fn with_room(seq: u64, events: usize) -> Outbox {
        const NOTHING: Event =
            Event { seq: 0, at: Timestamp::ZERO, body: EventKind::TradingDay { day: Day(0) } };
        let events = vec![(PortMask::NONE, NOTHING); events].into_boxed_slice();
        Outbox { events, written: 0, taken: 0, ready: 0, held: VecDeque::new(), seq, ready_seq: seq }
    }

    #[inline(always)]
    pub fn emit(&mut self, to: PortMask, at: Timestamp, body: EventKind) {
        if let Some(place) = self.next_place(to, at) {
            *place = body;
        }
    }

    /// Numbers an event, and returns the place for its content if it has recipients. The caller
    /// writes the content at once. An event that is created elsewhere and emitted is copied twice.
    #[inline(always)]
    pub(crate) fn next_place(&mut self, to: PortMask, at: Timestamp) -> Option<&mut EventKind> {
        self.seq += 1;
        if to.is_empty() {
            return None;
        }
        let (ports, event) = &mut self.events[self.written];
        self.written += 1;
        (*ports, event.seq, event.at) = (to, self.seq, at);
        Some(&mut event.body)
    }

    /// Emits a transaction.
    #[inline]
    pub(crate) fn emit_booked(&mut self, to: PortMask, at: Timestamp, booking: &Booking) {
        if let Some(place) = self.next_place(to, at) {
            write_booked(place, booking);
        }
    }

    /// Emits an event without a new number: it carries the number of the last one. Snapshots do not
    /// advance the numbers, so a replay without them gives every event the same number.
    pub fn emit_unnumbered(&mut self, to: PortMask, at: Timestamp, body: EventKind) {
        if !to.is_empty() {
            self.events[self.written] = (to, Event { seq: self.seq, at, body });
            self.written += 1;
        }
    }

    /// Emits a snapshot item. On the link to other servers it is flagged, so that only members that
    /// requested a snapshot receive it.
    pub fn emit_snapshot_item(&mut self, to: PortMask, at: Timestamp, body: EventKind) {
        let before = self.written;
        self.emit_unnumbered(to, at, body);
        if to == PortMask::one(PortId::LINK) {
            self.events[before].1.seq |= Event::SNAPSHOT;
        }
    }

    /// Emits an event before all held ones: it exposes nothing of a command that is not stored. It
    /// has no new number, but that of the event before the held ones, so that numbers never fall.
    pub fn emit_before_held(&mut self, to: PortMask, at: Timestamp, body: EventKind) {
        if !to.is_empty() {
            self.events[self.written] = (to, Event { seq: self.ready_seq, at, body });
            self.events[self.ready..=self.written].rotate_right(1);
            self.written += 1;
            self.ready += 1;
            self.held.iter_mut().for_each(|step| step.end += 1);
        }
    }

    /// Counts an event without recipients, without creating it.
    pub fn skip(&mut self) {
        self.seq += 1;
    }

    /// Returns the number of the last event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the events not yet delivered.
    #[inline]
    pub fn waiting(&self) -> &[(PortMask, Event)] {
        &self.events[self.taken..self.written]
    }

    /// Returns the number of events not yet delivered.
    #[inline]
    pub fn waiting_count(&self) -> usize {
        self.written - self.taken
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == self.written
    }

    /// Returns whether an event may be delivered.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.taken < self.ready
    }

    /// Ends a step of the command with this number. Its events may be delivered if the command and
    /// all before it are stored.
    #[inline]
    pub fn end_step(&mut self, number: u64, stored: u64) {
        let step = HeldStep { command: number, end: self.written, seq: self.seq };
        if number <= stored && self.held.is_empty() {
            (self.ready, self.ready_seq) = (step.end, step.seq);
        } else if step.end > self.held.back().map_or(self.ready, |last| last.end) {
            match self.held.back_mut() {
                Some(last) if last.command == number => *last = step,
                _ => self.held.push_back(step),
            }
        }
    }

    /// Releases the events of all commands up to this number, which are stored.
    #[inline]
    pub fn release(&mut self, stored: u64) {
        while let Some(step) = self.held.front()
            && step.command <= stored
        {
            (self.ready, self.ready_seq) = (step.end, step.seq);
            self.held.pop_front();
        }
    }

    /// Returns whether there is room for the most that a step may emit; delivered events make room
    /// for waiting ones.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if self.written + EVENTS_PER_COMMAND_MAX > self.events.len() && self.taken > 0 {
            self.compact();
        }
        self.written + EVENTS_PER_COMMAND_MAX <= self.events.len()
    }

    #[cold]
    fn compact(&mut self) {
        self.events.copy_within(self.taken..self.written, 0);
        self.written -= self.taken;
        self.ready -= self.taken;
        self.held.iter_mut().for_each(|step| step.end -= self.taken);
        self.taken = 0;
    }

    /// Returns the next event that may be delivered, and the ports that have not received it; the
    /// caller removes the ports it has served.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut (PortMask, Event)> {
        self.events[..self.ready].get_mut(self.taken)
    }

    /// Removes the next event. The outbox is empty after the last one.
    #[inline]
    pub fn pop_front(&mut self) {
        self.taken += 1;
        if self.taken == self.written {
            self.clear();
        }
    }

    #[inline]
    pub fn clear(&mut self) {
        self.held.clear();
        (self.written, self.taken, self.ready) = (0, 0, 0);
    }
}

/// Writes a transaction into an event. Not part of its callers: there it would become two copies.
#[inline(never)]
fn write_booked(place: &mut EventKind, booking: &Booking) {
    *place = EventKind::Booked(*booking);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PortId;

    #[test]
    fn events_are_numbered_even_without_a_receiver() {
        const DAY: EventKind = EventKind::TradingDay { day: crate::time::Day(1) };
        let mut outbox = Outbox::new(7);
        outbox.emit(PortMask::NONE, Timestamp(1), DAY);
        outbox.emit(PortMask::one(PortId(2)), Timestamp(1), DAY);
        assert_eq!(outbox.waiting().len(), 1);
        outbox.end_step(1, 1);
        assert_eq!(outbox.front_mut().unwrap().1.seq, 9);
        outbox.pop_front();
        assert!(outbox.is_empty() && outbox.front_mut().is_none());
        assert_eq!(outbox.seq(), 9);
    }
    const DONE: EventKind = EventKind::TradingDay { day: crate::time::Day(2) };

    /// Emits this many events in one step of a command.
    fn step(outbox: &mut Outbox, events: usize, number: u64, stored: u64) {
        for _ in 0..events {
            outbox.emit(PortMask::one(PortId(1)), Timestamp(1), DONE);
        }
        outbox.end_step(number, stored);
    }

    fn hand_on(outbox: &mut Outbox) -> Vec<u64> {
        std::iter::from_fn(|| {
            let seq = outbox.front_mut()?.1.seq;
            outbox.pop_front();
            Some(seq)
        })
        .collect()
    }

    #[test]
    fn events_of_unstored_commands_are_held_in_order() {
        let mut outbox = Outbox::for_waiting(0);
        step(&mut outbox, 1, 1, 1);
        step(&mut outbox, 2, 2, 1);
        // A second step of the same command, one without events, and one whose command is stored
        // but follows others.
        step(&mut outbox, 1, 2, 1);
        step(&mut outbox, 0, 3, 1);
        step(&mut outbox, 1, 4, 4);
        assert_eq!(hand_on(&mut outbox), [1]);
        assert!(!outbox.is_ready() && !outbox.is_empty());
        outbox.emit_before_held(PortMask::one(PortId(1)), Timestamp(1), DONE);
        assert_eq!(hand_on(&mut outbox), [1], "before the held ones, with a number that is not above theirs");
        outbox.release(1);
        assert_eq!(hand_on(&mut outbox), []);
        outbox.release(3);
        outbox.emit_before_held(PortMask::one(PortId(1)), Timestamp(1), DONE);
        assert_eq!(hand_on(&mut outbox), [2, 3, 4, 4]);
        outbox.release(4);
        assert_eq!(hand_on(&mut outbox), [5]);
        assert!(outbox.is_empty());
        step(&mut outbox, 1, 5, u64::MAX);
        assert_eq!(hand_on(&mut outbox), [6]);
    }

    #[test]
    fn there_is_room_for_a_step_or_none_is_taken() {
        let mut outbox = Outbox::for_waiting(0);
        let (mut number, mut written, mut received) = (0, 0, Vec::new());
        let place = outbox.events.as_ptr();
        for round in 0..200 {
            while outbox.has_room() {
                number += 1;
                step(&mut outbox, EVENTS_PER_COMMAND_MAX, number, 0);
                written += EVENTS_PER_COMMAND_MAX as u64;
            }
            assert!(outbox.waiting().len() > EVENTS_WAITING_MAX - EVENTS_PER_COMMAND_MAX);
            outbox.release(number - round % 60);
            received.extend(hand_on(&mut outbox));
        }
        assert!(received.iter().copied().eq(1..=received.len() as u64), "in order, none twice, none lost");
        assert!(written - received.len() as u64 == outbox.waiting().len() as u64);
        assert_eq!(outbox.events.as_ptr(), place, "and never in other memory");
    }

    #[test]
    fn ready_and_held_events_stay_so_when_delivered_ones_make_room() {
        let mut outbox = Outbox::new(0);
        step(&mut outbox, EVENTS_PER_COMMAND_MAX / 2, 1, 3);
        step(&mut outbox, 2, 2, 3);
        step(&mut outbox, 1, 4, 3);
        (0..EVENTS_PER_COMMAND_MAX / 2).for_each(|_| outbox.pop_front());
        assert!(!outbox.has_room() && outbox.taken == 0, "the delivered events are gone");
        assert_eq!((outbox.waiting_count(), outbox.ready), (3, 2));
        assert_eq!(hand_on(&mut outbox).len(), 2);
        outbox.release(4);
        assert_eq!(hand_on(&mut outbox).len(), 1);
    }

    #[test]
    fn a_snapshot_item_has_a_flag_only_on_the_link_alone() {
        let mut outbox = Outbox::new(7);
        let (link, port) = (PortMask::one(PortId::LINK), PortMask::one(PortId(2)));
        for to in [link, PortMask::NONE, port, link.with(port), link] {
            outbox.emit_snapshot_item(to, Timestamp(1), DONE);
        }
        let numbers: Vec<u64> = outbox.waiting().iter().map(|(_, event)| event.seq).collect();
        assert_eq!(numbers, [7 | Event::SNAPSHOT, 7, 7, 7 | Event::SNAPSHOT]);
        assert_eq!((outbox.seq(), outbox.waiting_count()), (7, 4));
    }

    #[test]
    fn delivered_events_make_room_for_a_step() {
        let mut outbox = Outbox::new(0);
        step(&mut outbox, EVENTS_PER_COMMAND_MAX / 2, 1, 1);
        assert!(!outbox.has_room(), "a step may emit more than is left");
        step(&mut outbox, EVENTS_PER_COMMAND_MAX / 2, 2, 1);
        while outbox.is_ready() {
            outbox.pop_front();
        }
        assert_eq!(outbox.waiting_count(), EVENTS_PER_COMMAND_MAX / 2);
        assert!(!outbox.has_room());
        outbox.release(2);
        let rest = EVENTS_PER_COMMAND_MAX as u64 / 2 + 1..=EVENTS_PER_COMMAND_MAX as u64;
        assert!(hand_on(&mut outbox).into_iter().eq(rest), "in order, though they were moved");
        assert!(outbox.has_room() && outbox.waiting_count() == 0);
    }

    #[test]
    fn a_step_without_events_does_not_change_what_is_held() {
        let mut outbox = Outbox::for_waiting(0);
        step(&mut outbox, 1, 1, 0);
        step(&mut outbox, 1, 1, 0);
        step(&mut outbox, 0, 2, 0);
        assert_eq!(outbox.held.len(), 1, "one entry for both steps of a command");
        outbox.release(1);
        assert_eq!((hand_on(&mut outbox), outbox.held.len()), (vec![1, 2], 0));
    }
}
