//! The worker: a shard's duty cycle. It takes a command when everything said before has been handed on, and asks
//! nothing of the thread around it but to be called.
//!
//! ```text
//! lanes of the ports ─► ShardEnd ─► journal, Shard::apply ─► Outbox ─► ShardEnd ─► lanes of the ports
//! ```

use crate::command::{Body, Command};
use crate::event::{EVENTS_PER_COMMAND_MAX, Event};
use crate::id::{Origin, PortId, PortMask, Source};
use crate::mesh::ShardEnd;
use crate::outbox::Outbox;
use crate::shard::Shard;
use crate::time::Timestamp;

/// Most steps of a shard in one [`Worker::poll`]. Where a gateway shares the thread it waits no longer than these
/// take, some 20 µs; and a cycle's fixed cost is spread over enough of them.
pub const STEPS_PER_POLL_MAX: usize = 64;

/// A shard with its lanes.
///
/// No poll needs the heap: commands and events are copied from slot to slot, and the outbox was given room for the
/// most that a step may say. The assertion in [`Worker::step`] holds the shard to that.
#[derive(Debug)]
pub struct Worker {
    shard: Shard,
    end: ShardEnd,
    outbox: Outbox,
    /// The latest time this worker was told.
    now: Timestamp,
    counts: Counts,
}

const _: () = {
    const fn is_plain<T: Copy>() {}
    is_plain::<Command>();
    is_plain::<Event>();
};

/// What a worker has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands applied, timers among them.
    pub commands: u64,
    pub timers: u64,
    /// Steps that went on with the work of an earlier command.
    pub resumed: u64,
    /// Events handed on, once for each port.
    pub events: u64,
    /// Polls that ended at a full lane.
    pub stalls: u64,
}

impl Worker {
    pub fn new(shard: Shard, end: ShardEnd) -> Worker {
        Worker::restored(shard, end, 0, Timestamp::ZERO)
    }

    /// A worker for a shard that has lived before: its last event had this number, its last command this time.
    pub fn restored(shard: Shard, end: ShardEnd, seq: u64, now: Timestamp) -> Worker {
        assert_eq!(shard.id(), end.id(), "a shard works at its own end of the mesh");
        Worker { shard, end, outbox: Outbox::new(seq), now, counts: Counts::default() }
    }

    pub fn shard(&self) -> &Shard {
        &self.shard
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of the last event.
    pub fn seq(&self) -> u64 {
        self.outbox.seq()
    }

    /// Whether there is something to do that needs no new command: events wait for room, or a command is half done.
    pub fn has_work(&self) -> bool {
        !self.outbox.is_empty() || self.shard.has_work() || self.shard.has_background()
    }

    /// When this worker wants to be polled even if no command comes.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.shard.deadline()
    }

    /// Does a bounded amount of work and says how much.
    pub fn poll(&mut self, now: Timestamp) -> usize {
        self.poll_with(now, |_, _| {})
    }

    /// The same, for a journal: `journal` sees each command and its time before it is applied, so before anybody
    /// hears of it. Applying the same commands at the same times to an equal shard says the same.
    pub fn poll_with(&mut self, now: Timestamp, mut journal: impl FnMut(Timestamp, &Command)) -> usize {
        // A clock that was put back must not turn the order of things.
        self.now = self.now.max(now);
        let mut work = self.hand_on();
        for _ in 0..STEPS_PER_POLL_MAX {
            if !self.outbox.is_empty() {
                self.counts.stalls += 1;
                break;
            }
            if !self.step(&mut journal) {
                break;
            }
            work += 1 + self.hand_on();
        }
        work
    }

    /// One step of the shard, if there is one to take.
    fn step(&mut self, journal: &mut impl FnMut(Timestamp, &Command)) -> bool {
        if self.shard.has_work() {
            self.counts.resumed += 1;
            self.shard.resume(&mut self.outbox);
        } else if let Some(command) = self.next_command() {
            self.counts.commands += 1;
            journal(self.now, &command);
            self.look_ahead();
            self.shard.apply(self.now, &command, &mut self.outbox);
        } else if self.shard.has_background() {
            self.shard.resume(&mut self.outbox);
        } else {
            return false;
        }
        assert!(
            self.outbox.waiting().len() <= EVENTS_PER_COMMAND_MAX,
            "a step says no more than the outbox holds"
        );
        true
    }

    /// Has memory brought near for the two commands behind the one that is about to be applied.
    #[inline]
    fn look_ahead(&mut self) {
        let shard = &self.shard;
        self.end.look_ahead(2, |distance, command| match distance {
            0 => shard.approach(command),
            _ => shard.foresee(command),
        });
    }

    fn next_command(&mut self) -> Option<Command> {
        if self.shard.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.counts.timers += 1;
            return Some(TIMER);
        }
        self.end.poll_command()
    }

    /// Hands events on in their order, each to those of its ports that have room. One that is not through stops all
    /// behind it: every port hears the events in the same order.
    fn hand_on(&mut self) -> usize {
        let mut handed = 0;
        while let Some((ports, event)) = self.outbox.front_mut() {
            for port in ports.ports() {
                if self.end.send(port, *event).is_ok() {
                    *ports = ports.without(PortMask::one(port));
                    handed += 1;
                }
            }
            if !ports.is_empty() {
                break;
            }
            self.outbox.pop_front();
        }
        self.counts.events += handed as u64;
        handed
    }
}

/// The clock's command is nobody's: its consequences find their listeners by themselves.
const TIMER: Command = Command {
    source: Source { origin: Origin::Server, port: PortId(0), session: 0 },
    token: 0,
    body: Body::Timer,
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::command::Watch;
    use crate::event::Body as Said;
    use crate::id::ShardId;
    use crate::mesh::{Depths, PortClass, PortEnd, mesh};
    use crate::refdata::{RefData, Rows};
    use crate::settings::ShardSettings;

    fn platform(ports: usize, depths: Depths) -> (Vec<PortEnd>, Worker) {
        let (ports, mut shards) = mesh(&vec![PortClass::Client; ports], 1, depths);
        (ports, Worker::new(shard(), shards.remove(0)))
    }

    fn shard() -> Shard {
        let reference = RefData::check(Rows::default()).unwrap();
        Shard::new(ShardId(0), 1, Arc::new(reference), ShardSettings::default())
    }

    fn depths(commands: usize, events: usize) -> Depths {
        Depths { commands, events }
    }

    /// A command that is answered with nothing but that it is done.
    fn command(port: u8, token: u32) -> Command {
        let port = PortId(port);
        let source = Source { port, ..Source::default() };
        Command { source, token, body: Body::Watch { port, what: Watch::Budgets, on: false } }
    }

    fn send(port: &mut PortEnd, tokens: std::ops::Range<u32>) {
        for token in tokens {
            port.send(ShardId(0), command(port.id().0, token)).unwrap();
        }
    }

    /// Tokens of all that is said to be done, with their event numbers and times.
    fn done(port: &mut PortEnd) -> Vec<(u32, u64, u64)> {
        let said = std::iter::from_fn(|| port.poll_event());
        said.filter_map(|(_, event)| match event.body {
            Said::Done { token, .. } => Some((token, event.seq, event.at.0)),
            _ => None,
        })
        .collect()
    }

    #[test]
    fn a_command_is_answered_in_the_poll_that_takes_it() {
        let (mut ports, mut worker) = platform(2, Depths::default());
        assert_eq!(worker.poll(Timestamp(5)), 0);
        send(&mut ports[1], 7..9);
        assert_eq!(worker.poll(Timestamp(5)), 4);
        assert_eq!(done(&mut ports[1]), [(7, 1, 5), (8, 2, 5)]);
        assert_eq!(done(&mut ports[0]), []);
        assert_eq!(worker.counts(), Counts { commands: 2, events: 2, ..Counts::default() });
        assert_eq!((worker.seq(), worker.has_work(), worker.shard().id()), (2, false, ShardId(0)));
    }

    #[test]
    fn a_poll_takes_no_more_than_its_bound() {
        let (mut ports, mut worker) = platform(1, depths(1_000, 1_000));
        send(&mut ports[0], 0..1_000);
        let mut steps = Vec::new();
        while steps.last() != Some(&0) {
            steps.push(worker.poll(Timestamp(1)) / 2);
        }
        assert_eq!(steps[..15], [STEPS_PER_POLL_MAX; 15]);
        assert_eq!(steps[15..], [1_000 - 15 * STEPS_PER_POLL_MAX, 0]);
        assert_eq!(done(&mut ports[0]).len(), 1_000);
    }

    #[test]
    fn a_full_lane_stops_the_shard_and_loses_nothing() {
        for depth in [1, 2, 3, 7] {
            let (mut ports, mut worker) = platform(2, depths(16, depth));
            send(&mut ports[0], 0..16);
            send(&mut ports[1], 100..116);
            let mut heard = Vec::new();
            // Nobody listens at first: the worker comes to rest at the full lane.
            while worker.poll(Timestamp(1)) > 0 {}
            let taken = worker.counts().commands;
            assert!(worker.has_work());
            assert!(taken <= 2 * depth as u64 + 1, "{taken} taken at depth {depth}");
            assert_eq!(worker.poll(Timestamp(1)), 0);
            assert!(worker.counts().stalls >= 2);
            for _ in 0..100 {
                for port in &mut ports {
                    heard.extend(port.poll_event().map(|(_, event)| event.seq));
                }
                worker.poll(Timestamp(1));
            }
            heard.sort_unstable();
            assert!(heard.iter().copied().eq(1..=32), "every event once at depth {depth}");
            assert!(!worker.has_work());
        }
    }

    #[test]
    fn a_port_with_room_does_not_wait_for_one_without_but_for_the_order() {
        let (mut ports, mut worker) = platform(2, depths(4, 1));
        let day = Said::TradingDay { day: crate::time::Day(1) };
        let both = PortMask::one(PortId(0)).with(PortMask::one(PortId(1)));
        worker.outbox.say(PortMask::one(PortId(0)), Timestamp(1), day);
        worker.outbox.say(both, Timestamp(1), day);
        worker.outbox.say(PortMask::one(PortId(1)), Timestamp(1), day);
        assert_eq!(worker.poll(Timestamp(1)), 2);
        assert_eq!(ports[1].poll_event().unwrap().1.seq, 2);
        assert_eq!(worker.poll(Timestamp(1)), 0);
        assert!(ports[1].poll_event().is_none(), "the third waits behind the second");
        assert_eq!(ports[0].poll_event().unwrap().1.seq, 1);
        assert_eq!(worker.poll(Timestamp(1)), 2);
        assert_eq!(ports[0].poll_event().unwrap().1.seq, 2);
        assert_eq!(ports[1].poll_event().unwrap().1.seq, 3);
        assert!(worker.outbox.is_empty());
    }

    #[test]
    fn the_journal_sees_each_command_before_anybody_hears_of_it() {
        let (mut ports, mut worker) = platform(2, Depths::default());
        send(&mut ports[1], 0..3);
        let listener = &mut ports[1];
        let mut journal = Vec::new();
        worker.poll_with(Timestamp(9), |now, command| {
            let heard = std::iter::from_fn(|| listener.poll_event()).last();
            let heard = heard.map(|(_, event)| event.seq);
            journal.push((now, command.token, heard));
        });
        let at = Timestamp(9);
        assert_eq!(journal, [(at, 0, None), (at, 1, Some(1)), (at, 2, Some(2))]);
    }

    #[test]
    fn time_never_goes_back() {
        let (mut ports, mut worker) = platform(1, Depths::default());
        for now in [5, 3, 6] {
            send(&mut ports[0], 0..1);
            worker.poll(Timestamp(now));
        }
        let times: Vec<_> = done(&mut ports[0]).into_iter().map(|(_, _, at)| at).collect();
        assert_eq!(times, [5, 5, 6]);
    }

    #[test]
    fn a_restored_worker_goes_on_from_number_and_time() {
        let (mut ports, mut shards) = mesh(&[PortClass::Client], 1, Depths::default());
        let mut worker = Worker::restored(shard(), shards.remove(0), 41, Timestamp(8));
        send(&mut ports[0], 0..1);
        worker.poll(Timestamp(2));
        assert_eq!(done(&mut ports[0]), [(0, 42, 8)]);
        assert_eq!(worker.deadline(), None);
    }

    /// A full lane keeps an event in the outbox, so that its place in memory can be seen: it is the same after a
    /// thousand polls as after the first, so the outbox was never given other memory.
    #[test]
    fn polling_needs_no_memory() {
        let (mut ports, mut worker) = platform(1, depths(1, 1));
        let mut place = None;
        for token in 0..1_000 {
            let _ = ports[0].send(ShardId(0), command(0, token));
            worker.poll(Timestamp(1));
            if worker.outbox.is_empty() {
                continue;
            }
            let here = worker.outbox.waiting().as_ptr();
            assert_eq!(*place.get_or_insert(here), here);
            ports[0].poll_event();
        }
        assert!(place.is_some());
    }
}
