//! A shard with a journal on a disk that a test may ruin: told the same deeds as in the simulation, stopped wherever the test
//! likes, and begun again. What it was told is remembered beside the journal, so that every state it comes
//! back with can be compared with the replay of what it was told up to there.

use std::path::Path;

use pitlane::journal::disk::Disk;
use pitlane::journal::simulated_disk::Simulated;
use pitlane::journal::{
    self, Class, Fault, JournalSettings, Level, NotTaken, SegmentManager, Setup, Syncer, WriteMode, Writer,
    class_of,
};
use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::event::{EventKind, ExecType};
use pitlane_engine::id::OrderHandle;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_tests::dice::Dice;
use pitlane_tests::keep::{Entry, image};
use pitlane_tests::pair::source;
use pitlane_tests::workload::{Deed, Profile, Workload};
use pitlane_tests::world;

pub const DATA: &str = "data";

pub fn settings(level: Level) -> JournalSettings {
    JournalSettings {
        level,
        segment_bytes: journal::SEGMENT_BYTES_MIN,
        spares: 2,
        sync_interval_ns: NS_PER_S / 100,
        snapshot_bytes: 3 * journal::SEGMENT_BYTES_MIN as u64,
        ..JournalSettings::default()
    }
}

pub fn shard_settings() -> ShardSettings {
    ShardSettings {
        orders_max: 1_000,
        transactions_max: 64,
        executions_max: 1_000,
        ..ShardSettings::default()
    }
}

/// What a journal holds, as its writers remember it: one entry for each record.
pub type History = Vec<Entry>;

#[derive(Debug)]
pub struct Rig {
    pub disk: Simulated,
    pub writer: Writer,
    pub keeper: Syncer,
    pub steward: SegmentManager,
    pub shard: Shard,
    pub now: Timestamp,
    pub history: History,
    /// The snapshot it began with.
    pub snapshot: Option<u64>,
    /// Last record that a client may have been told of.
    pub told: u64,
    /// Commands that were not taken, and why.
    pub refused: Vec<(Class, WriteMode)>,
    outbox: Outbox,
    dice: Dice,
    workload: Workload,
    handles: Vec<OrderHandle>,
    opening: Vec<Deed>,
    token: u32,
}

impl Rig {
    /// Begins a life on this disk, after the lives that `history` tells of. Everything found must be a prefix of it, with
    /// the state that this prefix gives, and nothing up to `told` may be missing.
    pub fn begin(
        disk: Simulated,
        journal: JournalSettings,
        mut history: History,
        told: u64,
        seed: u64,
    ) -> Result<Rig, String> {
        let now = last_time(&history).plus(NS_PER_S);
        let handle = Disk::Simulated(disk.clone());
        let setup = Setup {
            disk: &handle,
            data: Path::new(DATA),
            journal,
            shards: 1,
            reference: (*world::reference()).clone(),
            settings: shard_settings(),
            unheard: Default::default(),
        };
        let mut opened =
            journal::open(setup, now, &mut |_| {}).map_err(|fault| format!("refused: {fault}"))?;
        let life = opened.shards.remove(0);
        let found = life.found.seq;
        if found < told {
            return Err(format!("told of {told} records, and only {found} are there: {:?}", life.found));
        }
        if found > history.len() as u64 {
            return Err(format!("{found} records are there, and only {} were written", history.len()));
        }
        history.truncate(found as usize);
        history.push(Entry::Began(life.now, opened.reference.clone(), shard_settings()));
        same_state(&history, &life.shard, life.event)?;
        let mut dice = Dice::new(seed);
        let profile = Profile { reports: true, ..Profile::random(&mut dice) };
        let mut rig = Rig {
            writer: life.writer,
            keeper: opened.keeper,
            steward: opened.steward,
            shard: life.shard,
            now: life.now,
            // That it began counts unless it ended within.
            told: if disk.is_wrecked() { told } else { history.len() as u64 },
            history,
            snapshot: life.found.snapshot,
            refused: Vec::new(),
            outbox: Outbox::new(life.event),
            workload: Workload::new(dice.fork(), profile),
            handles: Vec::new(),
            opening: Workload::opening(),
            token: 0,
            dice,
            disk,
        };
        rig.opening.reverse();
        Ok(rig)
    }

    /// One deed of somebody, and a little work on the journal.
    pub fn step(&mut self) {
        let deed = self.opening.pop().unwrap_or_else(|| self.workload.next(self.now));
        self.now = self.now.plus(1_000);
        match deed {
            Deed::Wait(ns) => self.wait(ns),
            Deed::Plain(body) => self.tell(body),
            Deed::Modify { nth, id, changes } => {
                self.tell(CommandKind::Modify { order: self.handle(nth), id, changes })
            }
            Deed::Cancel { nth, id } => self.tell(CommandKind::Cancel { order: self.handle(nth), id }),
            Deed::Report { nth, report } => {
                self.tell(CommandKind::Report { order: self.handle(nth), report })
            }
        }
        // Syncs come late and for many, as they do.
        if self.dice.percent(20) {
            self.poll();
        }
        self.hear();
    }

    /// Runs for so many deeds, or until the disk has been copied by its fuse.
    pub fn run(&mut self, deeds: usize) {
        for _ in 0..deeds {
            if self.disk.is_wrecked() {
                break;
            }
            self.step();
        }
    }

    /// The journal's other owners do what they have to.
    pub fn poll(&mut self) {
        self.writer.tend();
        self.keeper.poll(self.now);
        self.writer.tend();
        self.steward.poll(self.now);
        self.hear();
    }

    /// Lets everything that waits be done.
    pub fn settle(&mut self) {
        for _ in 0..200 {
            self.now = self.now.plus(NS_PER_S);
            self.poll();
        }
    }

    pub fn door(&self) -> WriteMode {
        self.writer.health().door()
    }

    /// What is safe may be told; but nothing is told by a process that is no more.
    fn hear(&mut self) {
        if !self.disk.is_wrecked() {
            self.told = self.told.max(self.writer.safe());
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

    pub fn tell(&mut self, body: CommandKind) {
        let taken = self.offer(body);
        if !taken && matches!(body, CommandKind::Submit { .. } | CommandKind::Close { .. }) {
            self.handles.push(OrderHandle::NONE);
        }
    }

    /// Tells the shard, if the journal takes it.
    pub fn offer(&mut self, body: CommandKind) -> bool {
        self.token += 1;
        let command = Command::new(source(), self.token, body);
        for attempt in 0.. {
            match self.writer.offer(self.now, &command, &self.shard) {
                Ok(seq) => {
                    self.history.push(Entry::Told(self.now, command));
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
        let handle = self.outbox.waiting().iter().find_map(|(_, event)| match &event.body {
            EventKind::Order(order) if matches!(order.what, ExecType::Entered | ExecType::Rejected) => {
                Some(order.order)
            }
            _ => None,
        });
        self.outbox.clear();
        handle
    }

    pub fn handle(&self, nth: usize) -> OrderHandle {
        self.handles.get(nth).copied().unwrap_or(OrderHandle::NONE)
    }
}

/// Whether the shard is what these entries give.
pub fn same_state(history: &[Entry], shard: &Shard, event: u64) -> Result<(), String> {
    let (replayed, said) = played(history);
    shard.assert_consistent();
    if said != event {
        return Err(format!("its last event is {event}, and a replay says {said}"));
    }
    match image(&replayed) == image(shard) {
        true => Ok(()),
        false => Err(format!("after {} records it is in another state than their replay", history.len())),
    }
}

/// A shard that was told all this.
pub fn played(history: &[Entry]) -> (Shard, u64) {
    let Some(Entry::Began(_, reference, settings)) = history.first() else { panic!("a start comes first") };
    let mut shard = Shard::new(pitlane_engine::id::ShardId(0), 1, reference.clone(), settings.clone());
    let mut outbox = Outbox::new(0);
    history.iter().for_each(|entry| entry.play(&mut shard, &mut outbox));
    (shard, outbox.seq())
}

fn last_time(history: &[Entry]) -> Timestamp {
    match history.last() {
        Some(Entry::Told(now, _) | Entry::Began(now, ..)) => *now,
        None => world::start(),
    }
}

/// Reads a disk back without changing it.
pub fn read_back(disk: &Simulated) -> Result<Vec<journal::Recovered>, Fault> {
    journal::read_back(&Disk::Simulated(disk.clone()), Path::new(DATA))
}
