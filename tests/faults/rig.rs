//! A shard with a journal on a simulated disk: it gets the same actions as in the simulation, is
//! stopped wherever the test wants, and is started again. The commands are also recorded beside the
//! journal, so that every recovered state can be compared with the replay of the commands up to
//! that point.

use std::path::Path;

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::OrderHandle;
use pitlane_engine::index::index_usize;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_journal::disk::Disk;
use pitlane_journal::simulated_disk::Simulated;
use pitlane_journal::{
    Class, Fault, JournalSettings, JournalSetup, Level, NotTaken, SegmentManager, Syncer, WriteMode, Writer,
    class_of,
};
use pitlane_tests::dice::Dice;
use pitlane_tests::replay::{ShardInput, image};
use pitlane_tests::shard_and_twin::source;
use pitlane_tests::test_market;
use pitlane_tests::workload::{Action, ActionGenerator, Profile};

pub(crate) const DATA: &str = "data";

pub(crate) fn settings(level: Level) -> JournalSettings {
    JournalSettings {
        level,
        segment_bytes: pitlane_journal::SEGMENT_BYTES_MIN,
        spares: 2,
        sync_interval_ns: NS_PER_S / 100,
        snapshot_bytes: 3 * pitlane_journal::SEGMENT_BYTES_MIN as u64,
        ..JournalSettings::default()
    }
}

pub(crate) fn shard_settings() -> ShardSettings {
    ShardSettings {
        orders_max: 1_000,
        transactions_max: 64,
        executions_max: 1_000,
        ..ShardSettings::default()
    }
}

/// The contents of a journal as its writers recorded them: one entry for each record.
pub(crate) type History = Vec<ShardInput>;

#[derive(Debug)]
pub(crate) struct JournalRig {
    pub disk: Simulated,
    pub writer: Writer,
    pub syncer: Syncer,
    pub segment_manager: SegmentManager,
    pub shard: Shard,
    pub now: Timestamp,
    pub history: History,
    /// The snapshot that it began with.
    pub snapshot: Option<u64>,
    /// Last record that may have been acknowledged to a client.
    pub acknowledged: u64,
    /// Commands that the journal rejected, and why.
    pub refused: Vec<(Class, WriteMode)>,
    outbox: Outbox,
    dice: Dice,
    workload: ActionGenerator,
    handles: Vec<OrderHandle>,
    opening: Vec<Action>,
    token: u32,
}

impl JournalRig {
    /// Starts on this disk, after the runs in `history`. The recovered records must be a prefix of
    /// `history`, with the state of this prefix, and nothing up to `acknowledged` may be missing.
    pub(crate) fn begin(
        disk: Simulated,
        journal: JournalSettings,
        mut history: History,
        acknowledged: u64,
        seed: u64,
    ) -> Result<JournalRig, String> {
        let now = last_time(&history).plus(NS_PER_S);
        let handle = Disk::Simulated(disk.clone());
        let setup = JournalSetup {
            disk: &handle,
            data: Path::new(DATA),
            journal,
            shards: 1,
            reference: (*test_market::reference()).clone(),
            settings: shard_settings(),
            receivers: Default::default(),
        };
        let mut opened =
            pitlane_journal::open(setup, now, &mut |_| {}).map_err(|fault| format!("refused: {fault}"))?;
        let opened_shard = opened.shards.remove(0);
        let found = opened_shard.found.seq;
        if found < acknowledged {
            return Err(format!(
                "{acknowledged} records were acknowledged, and only {found} exist: {:?}",
                opened_shard.found
            ));
        }
        if found > history.len() as u64 {
            return Err(format!("{found} records are there, and only {} were written", history.len()));
        }
        history.truncate(index_usize(found));
        history.push(ShardInput::Began(opened_shard.now, opened.reference.clone(), shard_settings()));
        same_state(&history, &opened_shard.shard, opened_shard.event)?;
        let mut dice = Dice::new(seed);
        let profile = Profile { reports: true, ..Profile::random(&mut dice) };
        let mut rig = JournalRig {
            writer: opened_shard.writer,
            syncer: opened.syncer,
            segment_manager: opened.segment_manager,
            shard: opened_shard.shard,
            now: opened_shard.now,
            // The start itself counts unless the disk crashed during it.
            acknowledged: if disk.is_wrecked() { acknowledged } else { history.len() as u64 },
            history,
            snapshot: opened_shard.found.snapshot,
            refused: Vec::new(),
            outbox: Outbox::new(opened_shard.event),
            workload: ActionGenerator::new(dice.fork(), profile),
            handles: Vec::new(),
            opening: ActionGenerator::opening(),
            token: 0,
            dice,
            disk,
        };
        rig.opening.reverse();
        Ok(rig)
    }

    /// Performs one action, and a little work on the journal.
    pub(crate) fn step(&mut self) {
        let action = self.opening.pop().unwrap_or_else(|| self.workload.next(self.now));
        self.now = self.now.plus(1_000);
        match action {
            Action::Wait(ns) => self.wait(ns),
            Action::Plain(body) => self.send_command(body),
            Action::Modify { nth, id, changes } => {
                self.send_command(CommandKind::Modify { order: self.handle(nth), id, changes })
            }
            Action::Cancel { nth, id } => {
                self.send_command(CommandKind::Cancel { order: self.handle(nth), id })
            }
            Action::Report { nth, report } => {
                self.send_command(CommandKind::Report { order: self.handle(nth), report })
            }
        }
        // Syncs come late and cover many records, as in the service.
        if self.dice.percent(20) {
            self.poll();
        }
        self.drain_events();
    }

    /// Performs this many actions, or stops when the disk has crashed.
    pub(crate) fn run(&mut self, actions: usize) {
        for _ in 0..actions {
            if self.disk.is_wrecked() {
                break;
            }
            self.step();
        }
    }

    /// Polls the syncer and the segment manager.
    pub(crate) fn poll(&mut self) {
        self.writer.maintain();
        self.syncer.poll(self.now);
        self.writer.maintain();
        self.segment_manager.poll(self.now);
        self.drain_events();
    }

    /// Lets all pending work finish.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            self.now = self.now.plus(NS_PER_S);
            self.poll();
        }
    }

    pub(crate) fn write_mode(&self) -> WriteMode {
        self.writer.health().write_mode()
    }

    /// Safe records may be acknowledged; but a crashed process acknowledges nothing.
    fn drain_events(&mut self) {
        if !self.disk.is_wrecked() {
            self.acknowledged = self.acknowledged.max(self.writer.safe());
        }
    }

    fn wait(&mut self, ns: u64) {
        let end = self.now.plus(ns);
        while let Some(deadline) = self.shard.deadline().filter(|&deadline| deadline <= end) {
            self.now = self.now.max(deadline);
            if !self.offer(CommandKind::Timer) {
                break;
            }
        }
        self.now = end;
    }

    pub(crate) fn send_command(&mut self, body: CommandKind) {
        let taken = self.offer(body);
        if !taken && matches!(body, CommandKind::Submit { .. } | CommandKind::Close { .. }) {
            self.handles.push(OrderHandle::NONE);
        }
    }

    /// Applies a command to the shard if the journal accepts it.
    pub(crate) fn offer(&mut self, body: CommandKind) -> bool {
        self.token += 1;
        let command = Command::new(source(), self.token, body);
        for attempt in 0.. {
            match self.writer.offer(self.now, &command, &self.shard) {
                Ok(seq) => {
                    self.history.push(ShardInput::Command(self.now, command));
                    assert_eq!(seq, self.history.len() as u64, "every record has its entry");
                    break;
                }
                Err(NotTaken::Wait) if attempt < 10_000 => self.poll(),
                Err(NotTaken::Wait) => panic!("it waits for ever: {:?}", self.writer.health().report()),
                Err(NotTaken::Refused(door)) => {
                    self.refused.push((class_of(&body), door));
                    return false;
                }
            }
        }
        self.shard.apply(self.now, &command, &mut self.outbox);
        let mut entered = self.entered();
        while self.shard.has_work() {
            self.shard.resume(&mut self.outbox);
            entered = entered.or(self.entered());
        }
        if matches!(body, CommandKind::Submit { .. } | CommandKind::Close { .. }) {
            self.handles.push(entered.unwrap_or(OrderHandle::NONE));
        }
        true
    }

    fn entered(&mut self) -> Option<OrderHandle> {
        let mut waiting = self.outbox.waiting().iter();
        let handle = waiting.find_map(|(_, event)| Some(event.body.answered_order()?.order));
        self.outbox.clear();
        handle
    }

    pub(crate) fn handle(&self, nth: usize) -> OrderHandle {
        self.handles.get(nth).copied().unwrap_or(OrderHandle::NONE)
    }
}

/// Checks that the shard has the state of these entries.
pub(crate) fn same_state(history: &[ShardInput], shard: &Shard, event: u64) -> Result<(), String> {
    let (replayed, replayed_event) = played(history);
    shard.assert_consistent();
    if replayed_event != event {
        return Err(format!("its last event is {event}, and a replay gives {replayed_event}"));
    }
    match image(&replayed) == image(shard) {
        true => Ok(()),
        false => Err(format!("after {} records it is in another state than their replay", history.len())),
    }
}

/// Returns a shard to which all these entries were applied.
pub(crate) fn played(history: &[ShardInput]) -> (Shard, u64) {
    let Some(ShardInput::Began(_, reference, settings)) = history.first() else {
        panic!("a start comes first")
    };
    let mut shard = Shard::new(pitlane_engine::id::ShardId(0), 1, reference.clone(), settings.clone());
    let mut outbox = Outbox::new(0);
    history.iter().for_each(|entry| entry.apply(&mut shard, &mut outbox));
    (shard, outbox.seq())
}

fn last_time(history: &[ShardInput]) -> Timestamp {
    match history.last() {
        Some(ShardInput::Command(now, _) | ShardInput::Began(now, ..)) => *now,
        None => test_market::start(),
    }
}

/// Reads a disk back without changing it.
pub(crate) fn read_back(disk: &Simulated) -> Result<Vec<pitlane_journal::Recovered>, Fault> {
    pitlane_journal::read_back(&Disk::Simulated(disk.clone()), Path::new(DATA))
}
