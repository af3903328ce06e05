//! Replay: applies records to a shard. The state of a shard is the result of its replay.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::codec;
use pitlane_engine::command::CommandKind;
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{AdapterId, ShardId, Source};
use pitlane_engine::index::index_u8;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::fix::drop_copy::CopyFilter;
use pitlane_protocols::remote;
use pitlane_protocols::remote::cluster;

use super::disk::Disk;
use super::fault::{Fault, FaultKind};
use super::header::{Owner, RULES};
use super::record::{JournalRecord, kind};
use super::reference;
use super::scan::{RecordVisitor, SegmentFile};
use super::snapshot::{Snapshot, snapshot_path};

/// Encodes the payload of a start record: the format version, the reference data and the settings.
pub(crate) fn encode_start(reference: u64, settings: &ShardSettings) -> Vec<u8> {
    let mut payload = codec::FORMAT.to_le_bytes().to_vec();
    payload.extend_from_slice(&reference.to_le_bytes());
    settings.save(&mut payload);
    payload
}

/// Decodes a start record into the name of the reference data and the encoded settings.
pub(crate) fn decode_start(payload: &[u8]) -> Option<(u64, &[u8])> {
    let (format, rest) = payload.split_first_chunk::<4>()?;
    let (reference, settings) = rest.split_first_chunk::<8>()?;
    (u32::from_le_bytes(*format) == codec::FORMAT).then(|| (u64::from_le_bytes(*reference), settings))
}

/// A shard that is being replayed.
#[derive(Debug)]
pub(crate) struct ShardReplay {
    disk: Disk,
    references: PathBuf,
    owner: Owner,
    state: Option<ReplayState>,
    /// Last record applied to the state.
    seq: u64,
    time: u64,
    counts: ReplayCounts,
    /// Replayed events that a receiver wants.
    collector: EventCollector,
}

/// Receivers that may have missed events when the process ended: the last event of each shard that
/// each of them received.
#[derive(Clone, Debug, Default)]
pub struct EventReceivers {
    pub sources: ReceivedSeqs,
    /// Sessions that receive copies of the reports of others.
    pub copies: Vec<CopyReceiver>,
    /// Last instruction received by each venue adapter, by shard.
    pub venues: BTreeMap<AdapterId, Vec<u64>>,
    /// Strategies in other processes, which report themselves what they received: all of their
    /// events that the journal still contains are kept.
    pub elsewhere: Vec<Source>,
    /// Whether clients of other servers of the cluster exist; their events are kept in the same
    /// way.
    pub abroad: bool,
    /// Maximum number of such events by shard; beyond it the oldest are dropped.
    pub elsewhere_max: usize,
}

/// A session that receives copies of reports.
#[derive(Clone, Debug)]
pub struct CopyReceiver {
    /// Last event of each shard that it received.
    pub received: Vec<u64>,
    pub filter: CopyFilter,
}

/// The last event of each shard that a source received, looked up when an event of the source is
/// replayed: a start does not read the stores of all sessions that ever existed.
#[derive(Clone, Default)]
pub struct ReceivedSeqs {
    lookup: Option<Arc<ReceivedLookup>>,
    /// Results of the lookup; `None` if the source stores nothing.
    known: BTreeMap<Source, Option<Vec<u64>>>,
}

type ReceivedLookup = dyn Fn(Source) -> Option<Vec<u64>> + Send + Sync;

impl ReceivedSeqs {
    pub fn by(lookup: impl Fn(Source) -> Option<Vec<u64>> + Send + Sync + 'static) -> ReceivedSeqs {
        ReceivedSeqs { lookup: Some(Arc::new(lookup)), known: BTreeMap::new() }
    }

    fn get(&mut self, source: Source) -> Option<&Vec<u64>> {
        let lookup = self.lookup.as_ref()?;
        self.known.entry(source).or_insert_with(|| lookup(source)).as_ref()
    }

    fn is_empty(&self) -> bool {
        self.lookup.is_none()
    }
}

impl std::fmt::Debug for ReceivedSeqs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceivedSeqs").field("known", &self.known).finish_non_exhaustive()
    }
}

impl EventReceivers {
    fn wants(&mut self, shard: ShardId, event: &Event) -> bool {
        let misses = |received: &Vec<u64>| event.seq > received.get(shard.0 as usize).copied().unwrap_or(0);
        let wants_copy = |copy: &CopyReceiver| misses(&copy.received) && copy.filter.wants(event);
        let received = if let EventKind::ToVenue(instruction) = &event.body {
            self.venues.get(&instruction.adapter)
        } else {
            event.body.report_source().and_then(|source| self.sources.get(source))
        };
        received.is_some_and(misses) || self.copies.iter().any(wants_copy)
    }

    fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.venues.is_empty() && self.copies.is_empty()
    }

    /// Returns whether a receiver will ask for past events.
    pub fn wants_past(&self) -> bool {
        self.abroad || !self.elsewhere.is_empty()
    }

    fn is_past(&self, event: &Event) -> bool {
        self.abroad && cluster::concerns_remote_client(event)
            || self.elsewhere.iter().any(|source| remote::strategy::concerns(*source, event))
    }
}

/// Past events that a receiver missed.
#[derive(Debug, Default)]
struct EventCollector {
    receivers: EventReceivers,
    events: VecDeque<Event>,
    past: PastEvents,
}

/// Events of a shard about strategies in other processes, oldest first: all events after number
/// `from`.
#[derive(Clone, Debug, Default)]
pub struct PastEvents {
    pub from: u64,
    pub events: VecDeque<Event>,
    /// Number of the last event of any kind.
    seen: u64,
}

impl PastEvents {
    fn collect(&mut self, receivers: &EventReceivers, event: &Event) {
        // A snapshot item carries the number of the last event, and was never emitted as an event.
        let is_emitted = event.seq > self.seen;
        self.seen = event.seq.max(self.seen);
        if !is_emitted || !receivers.is_past(event) {
            return;
        }
        if self.events.len() >= receivers.elsewhere_max {
            self.from = self.events.pop_front().map_or(event.seq, |oldest| oldest.seq);
        }
        self.events.push_back(*event);
    }
}

/// Events of one shard kept for receivers that missed them. A lane holds far fewer; beyond this the
/// oldest are dropped.
const ECHO_MAX: usize = 1 << 18;

impl EventCollector {
    fn collect(&mut self, shard: ShardId, outbox: &Outbox) {
        // Snapshot items for other servers are marked in their number; they were never emitted as
        // events.
        let emitted = || outbox.waiting().iter().filter(|(_, event)| event.seq & Event::SNAPSHOT == 0);
        if self.receivers.wants_past() {
            emitted().for_each(|(_, event)| self.past.collect(&self.receivers, event));
        }
        if self.receivers.is_empty() {
            return;
        }
        for (_, event) in emitted() {
            if !self.receivers.wants(shard, event) {
                continue;
            }
            if self.events.len() == ECHO_MAX {
                self.events.pop_front();
            }
            self.events.push_back(*event);
        }
    }
}

#[derive(Debug)]
struct ReplayState {
    shard: Shard,
    outbox: Outbox,
    settings: ShardSettings,
    reference: u64,
}

/// Statistics of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayCounts {
    pub commands: u64,
    pub starts: u64,
    pub segments: u64,
    /// Segments that another version wrote under other rules.
    pub old_segments: u64,
    /// Digests in segment headers that matched.
    pub digests: u64,
}

/// A shard as it was after some record.
#[derive(Debug)]
pub struct Restored {
    pub shard: Shard,
    pub seq: u64,
    /// Number of the last event.
    pub event: u64,
    pub time: Timestamp,
    pub reference: u64,
    /// Past events that a receiver asked for, oldest first.
    pub missed: Vec<Event>,
    pub past: PastEvents,
}

impl ShardReplay {
    /// Returns a replay without state.
    pub(crate) fn new(disk: &Disk, references: &Path, owner: Owner) -> ShardReplay {
        ShardReplay {
            disk: disk.clone(),
            references: references.to_path_buf(),
            owner,
            state: None,
            seq: 0,
            time: 0,
            counts: ReplayCounts::default(),
            collector: EventCollector::default(),
        }
    }

    /// Loads the state of a snapshot and checks its digest.
    pub(crate) fn from_snapshot(
        disk: &Disk,
        references: &Path,
        folder: &Path,
        snapshot: &Snapshot,
    ) -> Result<ShardReplay, Fault> {
        let path = snapshot_path(folder, snapshot.seq);
        let damaged = |damage: codec::DecodeError| {
            Fault::new(
                &path,
                damage.at,
                FaultKind::StateDamaged(format!("the snapshot cannot be read: {damage}")),
            )
        };
        let reference = reference::read(disk, references, snapshot.reference)?;
        let settings = load_settings(&snapshot.settings).map_err(damaged)?;
        let mut replay = ShardReplay::new(disk, references, snapshot.owner);
        let (id, shards) = replay.place();
        let shard = Shard::load(&snapshot.state, id, shards, reference, settings.clone()).map_err(damaged)?;
        check_digest(&path, snapshot.seq, snapshot.digest, &shard)?;
        let outbox = Outbox::new(snapshot.event);
        replay.state = Some(ReplayState { shard, outbox, settings, reference: snapshot.reference });
        (replay.seq, replay.time) = (snapshot.seq, snapshot.time);
        Ok(replay)
    }

    /// Keeps events that a receiver has missed, from now on.
    pub(crate) fn listen(&mut self, receivers: EventReceivers) {
        self.collector.receivers = receivers;
        let from = self.state.as_ref().map_or(0, |state| state.outbox.seq());
        (self.collector.past.from, self.collector.past.seen) = (from, from);
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn counts(&self) -> ReplayCounts {
        self.counts
    }

    /// Returns the shard, or `None` before the first start.
    pub(crate) fn shard(&self) -> Option<&Shard> {
        self.state.as_ref().map(|state| &state.shard)
    }

    /// Checks that a snapshot of the same record has the same state.
    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), Fault> {
        let Some(ours) = self.snapshot() else { return Ok(()) };
        if ours == *snapshot {
            return Ok(());
        }
        let what = FaultKind::Digest { seq: ours.seq, recorded: snapshot.digest, found: ours.digest };
        Err(Fault::new(Path::new("snapshot"), 72, what))
    }

    /// Returns a snapshot of the current state.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let ReplayState { shard, outbox, settings, reference } = self.state.as_ref()?;
        let mut snapshot = Snapshot {
            owner: self.owner,
            seq: self.seq,
            time: self.time,
            event: outbox.seq(),
            digest: shard.digest(),
            reference: *reference,
            settings: Vec::new(),
            state: Vec::new(),
        };
        settings.save(&mut snapshot.settings);
        shard.save(&mut snapshot.state);
        Some(snapshot)
    }

    pub(crate) fn finish(self) -> Option<Restored> {
        let ReplayState { shard, outbox, reference, .. } = self.state?;
        let time = Timestamp(self.time);
        let EventCollector { events, past, .. } = self.collector;
        let missed = events.into();
        Some(Restored { shard, seq: self.seq, event: outbox.seq(), time, reference, missed, past })
    }

    /// Applies the start of a process; the first one creates the shard.
    fn start(&mut self, time: Timestamp, name: u64, settings: ShardSettings) -> Result<(), Fault> {
        let reference: Arc<RefData> = match &self.state {
            Some(state) if state.reference == name => state.shard.reference().clone(),
            _ => reference::read(&self.disk, &self.references, name)?,
        };
        let (id, shards) = self.place();
        let state = self.state.get_or_insert_with(|| ReplayState {
            shard: Shard::new(id, shards, reference.clone(), settings.clone()),
            outbox: Outbox::new(0),
            settings: settings.clone(),
            reference: name,
        });
        state.shard.begin(time, reference, settings.clone(), &mut state.outbox);
        settle(&mut state.shard, &mut state.outbox, &mut self.collector);
        (state.settings, state.reference) = (settings, name);
        Ok(())
    }

    fn place(&self) -> (ShardId, u8) {
        (self.owner.shard_id(), index_u8(self.owner.shards.into()))
    }
}

/// Starts a shard and completes all resulting work. The events go only to receivers elsewhere, as
/// part of their past.
pub(crate) fn begin(
    shard: &mut Shard,
    time: Timestamp,
    reference: Arc<RefData>,
    settings: ShardSettings,
    outbox: &mut Outbox,
    (receivers, past): (&EventReceivers, &mut PastEvents),
) {
    let (sources, venues) = (ReceivedSeqs::default(), BTreeMap::new());
    let receivers = EventReceivers { sources, venues, copies: Vec::new(), ..receivers.clone() };
    let mut collector = EventCollector { receivers, past: std::mem::take(past), ..EventCollector::default() };
    shard.begin(time, reference, settings, outbox);
    settle(shard, outbox, &mut collector);
    *past = collector.past;
}

fn settle(shard: &mut Shard, outbox: &mut Outbox, collector: &mut EventCollector) {
    collector.collect(shard.id(), outbox);
    outbox.clear();
    while shard.has_work() {
        shard.resume(outbox);
        collector.collect(shard.id(), outbox);
        outbox.clear();
    }
}

fn check_digest(path: &Path, seq: u64, recorded: u64, shard: &Shard) -> Result<(), Fault> {
    let found = shard.digest();
    if found == recorded {
        Ok(())
    } else {
        Err(Fault::new(path, 72, FaultKind::Digest { seq, recorded, found }))
    }
}

impl RecordVisitor for ShardReplay {
    fn segment(&mut self, piece: &SegmentFile) -> Result<(), Fault> {
        let header = &piece.header;
        // If the state is ahead of the segment's first record, or there is no digest, nothing can
        // be compared.
        if let Some(state) = &self.state
            && header.first == self.seq + 1
            && header.digest != 0
        {
            let is_same = check_digest(&piece.path, self.seq, header.digest, &state.shard);
            if is_same.is_err() && header.rules != RULES {
                return Err(Fault::new(&piece.path, 72, FaultKind::OldRules { seq: self.seq }));
            }
            is_same?;
            self.counts.digests += 1;
        }
        self.counts.segments += 1;
        self.counts.old_segments += u64::from(header.rules != RULES);
        Ok(())
    }

    fn record(
        &mut self,
        piece: &SegmentFile,
        offset: usize,
        record: &JournalRecord<'_>,
    ) -> Result<(), Fault> {
        let seq = record.seq;
        if seq <= self.seq {
            return Ok(());
        }
        let fault = |what: FaultKind| Fault::new(&piece.path, offset, what);
        match (record.kind, &mut self.state) {
            (kind::COMMAND, Some(state)) => {
                let command = codec::decode_command(record.payload);
                let command = command.map_err(|_| fault(FaultKind::CommandUnknown { seq }))?;
                if let CommandKind::Reference { name } = command.body {
                    state.shard.stage(name, reference::read(&self.disk, &self.references, name)?);
                    state.reference = name;
                }
                state.shard.apply(Timestamp(record.time), &command, &mut state.outbox);
                settle(&mut state.shard, &mut state.outbox, &mut self.collector);
                self.counts.commands += 1;
            }
            (kind::START, _) => {
                let start = decode_start(record.payload)
                    .and_then(|(name, settings)| Some((name, load_settings(settings).ok()?)));
                let (name, settings) = start.ok_or_else(|| fault(FaultKind::CommandUnknown { seq }))?;
                self.start(Timestamp(record.time), name, settings)?;
                self.counts.starts += 1;
            }
            (kind, _) => return Err(fault(FaultKind::RecordUnknown { seq, kind })),
        }
        (self.seq, self.time) = (seq, record.time);
        Ok(())
    }
}

/// Decodes stored settings; the hook for large pages is the one of this process.
fn load_settings(bytes: &[u8]) -> Result<ShardSettings, codec::DecodeError> {
    Ok(ShardSettings { pages: LARGE_PAGES, ..ShardSettings::load(bytes)? })
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{Instruction, VenueRequest};
    use pitlane_engine::id::{IntId, OrderHandle, PortId, PortMask};
    use pitlane_engine::terms::Terms;

    use super::*;

    #[test]
    fn missed_events_are_kept_up_to_the_bound_and_the_oldest_are_dropped() {
        let adapter = AdapterId(1);
        // The first two were received.
        let receivers = EventReceivers { venues: [(adapter, vec![2])].into(), ..EventReceivers::default() };
        let mut collector = EventCollector { receivers, ..EventCollector::default() };
        let mut outbox = Outbox::new(0);
        let mut say = |collector: &mut EventCollector| {
            let (order, id) = (OrderHandle::NONE, IntId::NONE);
            let (request, terms) = (VenueRequest::New, Terms::default());
            let instruction = Instruction { adapter, order, request, id, request_id: id, terms };
            outbox.emit(PortMask::one(PortId(1)), Timestamp(1), EventKind::ToVenue(instruction));
            collector.collect(ShardId(0), &outbox);
            outbox.clear();
        };
        let numbers = |collector: &EventCollector| {
            (collector.events.front().map(|event| event.seq), collector.events.back().map(|event| event.seq))
        };
        let last = ECHO_MAX as u64 + 2;
        (0..last).for_each(|_| say(&mut collector));
        assert_eq!((collector.events.len(), numbers(&collector)), (ECHO_MAX, (Some(3), Some(last))));
        say(&mut collector);
        assert_eq!((collector.events.len(), numbers(&collector)), (ECHO_MAX, (Some(4), Some(last + 1))));
    }
}
