//! Leading: sends every change of the data folder, in an order in which every prefix is a usable
//! folder, and renews the lease.
//!
//! ```text
//!  notes, reference data ─► records ─► snapshots, stores ─► removed files        repeatedly
//!                               │
//!                  acknowledged │  Health::shipped: the writer releases events up to there
//! ```
//!
//! The stream numbers messages consecutively, so unacknowledged messages are identified by their
//! numbers: after a lost connection the end of the stream shows which of them were stored, and the
//! rest is sent again, under the same numbers.

mod end;
mod reserve;
mod resolve;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use pitlane_journal::Health;
use pitlane_journal::disk::Disk;
use pitlane_runtime::wakeup::Wakeup;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep_until};

use super::changes::FolderChanges;
use super::manifest::Manifest;
use super::message::{FilePiece, ReplicationKind, ReplicationMessage};
use super::position::Acked;
use super::scan::Scan;
use super::state::{StandbyPhase, StandbyState};
use super::stream::{ExpectedPosition, GroupStream};
use super::window::{SendWindow, SentMessage};
use crate::nats::link::BrokerHealth;

/// Ticks between two checks for removed files.
const TICKS_PER_SWEEP: u64 = 20;
/// Pause before repeating a request that the broker did not answer.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// Heartbeats that a leader sends per lease.
const BEATS_PER_LEASE: u32 = 3;

const NO_ANSWER: &str = "the broker has not answered for a lease";

/// A request from main.
#[derive(Debug)]
pub(super) enum ShipperCommand {
    /// Ships the journal, which is open now.
    Ship(Vec<Arc<Health>>),
    /// Sets the wake-ups for acknowledged records, by shard.
    SetWakeups(Vec<Wakeup>),
    /// Ends: everything is written; send the rest, and let the next server lead.
    End,
}

/// The reason why the server no longer leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LeadEnd {
    /// Main asked it to end.
    Ended,
    /// It must not continue.
    Deposed(String),
}

/// The start of a lead.
#[derive(Debug)]
pub(super) struct LeadStart {
    pub node: u128,
    pub epoch: u64,
    /// Lead message: its sequence number, its id, and the time at which it was sent.
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    /// Contents of the stream.
    pub manifest: Manifest,
}

pub(super) struct Shipper {
    stream: GroupStream,
    data: PathBuf,
    node: u128,
    epoch: u64,
    lease: Duration,
    /// Time until which no other server takes the lead.
    lease_until: Instant,
    broker_health: Arc<BrokerHealth>,
    state: Arc<StandbyState>,
    manifest: Manifest,
    /// Last message sent, and its id.
    seq: u64,
    last_id: String,
    /// Id of the last acknowledged message.
    acked_id: String,
    /// Last foreign message that was passed.
    passed: u64,
    window: SendWindow,
    last_sent: Instant,
    changes: Option<FolderChanges>,
    shard_wakeups: Vec<Wakeup>,
    /// Callback for the moment when the whole folder is with the broker; called once.
    shipped: Option<Box<dyn FnOnce() + Send>>,
    /// Whether a `Complete` message was sent in this epoch.
    sent_complete: bool,
    acked: Acked,
    /// When the last acknowledged message was sent.
    acked_sent: Instant,
    /// Task that syncs the `acked` file.
    acked_sync: Option<JoinHandle<io::Result<()>>>,
    /// Sequence number last written to the `acked` file; written from the moment when the whole
    /// folder is with the broker.
    acked_written: u64,
    /// Sequence number last synced to the `acked` file.
    acked_synced: u64,
    /// Number of stored reserve messages.
    reserved: u8,
    /// Whether the reserve of the previous leader was released.
    has_cleared: bool,
    /// Whether a reserve message is sent next; nothing else is sent before it.
    is_reserve_due: bool,
    /// Whether the broker had no space, and the reserve is not complete again.
    is_full: bool,
    /// Error with which the broker refused the last message.
    refused: Option<String>,
}

impl Shipper {
    pub(super) fn new(
        start: LeadStart,
        stream: GroupStream,
        data: &Path,
        lease: Duration,
        broker_health: Arc<BrokerHealth>,
    ) -> Shipper {
        let LeadStart { node, epoch, seq, id, at, manifest } = start;
        Shipper {
            stream,
            data: data.to_path_buf(),
            node,
            epoch,
            lease,
            lease_until: at + lease,
            broker_health,
            state: Arc::default(),
            manifest,
            seq,
            last_id: id.clone(),
            acked_id: id,
            passed: 0,
            window: SendWindow::default(),
            last_sent: at,
            changes: None,
            shard_wakeups: Vec::new(),
            shipped: None,
            sent_complete: false,
            acked: Acked {
                epoch,
                lead: seq,
                seq,
                boot: Some(Disk::Real.boot()),
                sent_at: None,
                ends: Vec::new(),
            },
            acked_sent: at,
            acked_sync: None,
            acked_written: seq,
            acked_synced: seq,
            reserved: 0,
            has_cleared: false,
            is_reserve_due: false,
            is_full: false,
            refused: None,
        }
    }

    /// Sets the state to update, and the callback for the moment when everything is with the
    /// broker.
    pub(super) fn reporting_to(self, state: Arc<StandbyState>, shipped: Box<dyn FnOnce() + Send>) -> Shipper {
        state.set_phase(StandbyPhase::Leading);
        state.set_epoch(self.epoch);
        Shipper { state, shipped: Some(shipped), ..self }
    }

    /// Leads until main asks it to end, or until it must not continue.
    pub(super) async fn run(
        mut self,
        commands: &mut mpsc::Receiver<ShipperCommand>,
        notify: &Notify,
        wakeup: &Wakeup,
    ) -> Result<LeadEnd, String> {
        let mut connection_count = self.broker_health.connection_count();
        loop {
            wakeup.prepare_sleep();
            // A server that was paused may reach a broker that has forgotten the newer leader, so
            // it sends nothing after its lease.
            if Instant::now() >= self.lease_until {
                return Ok(LeadEnd::Deposed(self.silence_reason()));
            }
            let worked =
                self.cycle().await.map_err(|error| format!("the journal cannot be sent: {error}"))?;
            let was_held = !self.has_room();
            let settled = self.settle_ready();
            let is_new = std::mem::replace(&mut connection_count, self.broker_health.connection_count())
                != self.broker_health.connection_count();
            if (settled.is_err() || is_new)
                && let Err(why) = self.resolve().await
            {
                return Ok(LeadEnd::Deposed(why));
            }
            if Instant::now() >= self.lease_until {
                return Ok(LeadEnd::Deposed(self.silence_reason()));
            }
            if (worked || was_held) && (self.has_room() || self.can_send_reserve()) {
                // Lets the connection's task run.
                yield_now().await;
                continue;
            }
            let due = self.due();
            let acked = async {
                match self.window.sent.front_mut().and_then(|sent| sent.pending_ack.as_mut()) {
                    Some(pending_ack) => pending_ack.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                acked = acked => {
                    let is_stored = self.is_stored(&acked);
                    if !self.settle(is_stored) && let Err(why) = self.resolve().await {
                        return Ok(LeadEnd::Deposed(why));
                    }
                },
                command = commands.recv() => match command {
                    Some(ShipperCommand::Ship(healths)) => {
                        self.changes = Some(FolderChanges::new(&self.data, healths));
                        self.set_full(self.is_full);
                    }
                    Some(ShipperCommand::SetWakeups(shard_wakeups)) => self.shard_wakeups = shard_wakeups,
                    Some(ShipperCommand::End) | None => return Ok(self.end().await),
                },
                () = notify.notified() => {}
                () = self.broker_health.changed() => {}
                () = sleep_until(due) => {}
            }
            wakeup.finish_sleep();
        }
    }

    fn has_room(&self) -> bool {
        self.window.has_room() && !self.is_reserve_due
    }

    fn due(&self) -> Instant {
        // Without room nothing is sent before the answer to the oldest message arrives.
        let is_awaited = self.window.sent.front().is_some_and(|sent| sent.pending_ack.is_some());
        if is_awaited && !self.has_room() {
            return self.lease_until;
        }
        let tick = self.changes.as_ref().map_or(self.lease_until, |changes| changes.tick);
        self.lease_until.min(tick).min(self.beat_due())
    }

    fn beat_due(&self) -> Instant {
        self.last_sent + self.lease / BEATS_PER_LEASE
    }

    /// Sends what the window has room for; returns whether anything was sent.
    async fn cycle(&mut self) -> io::Result<bool> {
        let before = self.seq;
        self.keep_reserve().await;
        if let Some(mut changes) = self.changes.take() {
            let before = changes.ticks;
            let done = self.send_changes(&mut changes).await;
            let ticks = Some(changes.ticks).filter(|ticks| *ticks != before);
            self.changes = Some(changes);
            done?;
            if let Some(ticks) = ticks {
                self.plan_reserve(ticks);
                self.keep_reserve().await;
            }
        }
        if Instant::now() >= self.beat_due() && self.has_room() {
            self.send(ReplicationKind::Beat, None).await;
        }
        Ok(self.seq != before)
    }

    async fn send_changes(&mut self, changes: &mut FolderChanges) -> io::Result<()> {
        // The counters are read first: everything that these records depend on was on disk before
        // them.
        let written: Vec<u64> = changes.healths.iter().map(|health| health.appended()).collect();
        let is_due = Instant::now() >= changes.tick;
        let is_new = changes.cursors.iter().zip(&written).any(|(cursor, written)| cursor.seq < *written);
        let is_idle = !changes.scan.has_snapshots() && changes.pages.is_empty() && !changes.is_held_up;
        if !is_due && !is_new && is_idle {
            return Ok(());
        }
        changes.is_held_up = !(self.send_files(changes, Scan::next_small, ReplicationKind::Whole).await?
            && self.send_files(changes, Scan::next_new_store, ReplicationKind::Page).await?);
        if changes.is_held_up {
            return Ok(());
        }
        for (shard, cursor) in changes.cursors.iter_mut().enumerate() {
            while self.has_room()
                && let Some(batch) = cursor.next(written[shard], &self.manifest)?
            {
                let last = batch.pieces.len() - 1;
                for (at, piece) in batch.pieces.into_iter().enumerate() {
                    let last_record = (at == last).then_some((shard, batch.seq));
                    self.send(ReplicationKind::Append(piece), last_record).await;
                }
            }
        }
        self.send_pages(changes).await;
        if is_due {
            changes.tick(&self.manifest)?;
            self.state.behind.set(changes.behind());
            self.keep_acked(changes.ticks)?;
            if changes.ticks.is_multiple_of(TICKS_PER_SWEEP) {
                self.sweep(changes).await;
            }
        }
        if self.has_room()
            && self.may_send_snapshots(changes)
            && let Some(piece) = changes.scan.next_of_snapshot()?
        {
            let is_last = piece.end() == piece.total;
            self.send(ReplicationKind::Whole(piece), None).await;
            if is_last {
                changes.find_needed_snapshots(&self.manifest)?;
            }
        }
        self.report_if_shipped(changes, &written).await
    }

    /// Sends changed and new files, one after the other. Returns false if there is no room for
    /// more, and dependent records must wait.
    async fn send_files(
        &mut self,
        changes: &mut FolderChanges,
        next: fn(&mut Scan, &Manifest) -> io::Result<Option<Vec<FilePiece>>>,
        kind: fn(FilePiece) -> ReplicationKind,
    ) -> io::Result<bool> {
        while self.has_room() {
            let Some(pieces) = next(&mut changes.scan, &self.manifest)? else { return Ok(true) };
            for piece in pieces {
                self.send(kind(piece), None).await;
            }
        }
        Ok(false)
    }

    async fn send_pages(&mut self, changes: &mut FolderChanges) {
        let is_sent =
            changes.cursors.iter().zip(&changes.pages_after).all(|(cursor, after)| cursor.seq >= *after);
        while is_sent
            && self.has_room()
            && let Some(piece) = changes.pages.pop_front()
        {
            self.send(ReplicationKind::Page(piece), None).await;
        }
    }

    /// Sends the removals of files, and makes the broker forget those of long ago.
    async fn sweep(&mut self, changes: &FolderChanges) {
        while self.has_room()
            && let Some(path) = changes.scan.next_removed(&self.manifest).map(str::to_string)
        {
            self.send(ReplicationKind::Removed(path), None).await;
        }
        while let Some(path) = self.manifest.next_forgotten() {
            // Reference data may have been created again under the same name.
            if !self.manifest.has(&path) {
                let stream = self.stream.clone();
                tokio::spawn(async move { stream.forget(&path).await });
            }
        }
    }

    /// Sends `Complete` when the initial contents of the folder are sent, and calls the callback
    /// when all of them are acknowledged. A snapshot that no copy needs is sent later: a broker
    /// without space for it must not keep this server from accepting cancels.
    async fn report_if_shipped(&mut self, changes: &FolderChanges, written: &[u64]) -> io::Result<()> {
        if self.shipped.is_none() {
            return Ok(());
        }
        let is_sent = changes.cursors.iter().zip(written).all(|(cursor, written)| cursor.seq >= *written);
        // The first round through the stores finds out which exist, the second reads them.
        if !is_sent || changes.scan.rounds < 2 || changes.needs_snapshots || !changes.pages.is_empty() {
            return Ok(());
        }
        // `Complete` is sent in each epoch: a server whose folder is longer than the stream waits
        // for it before it compares the two.
        if !std::mem::replace(&mut self.sent_complete, true) {
            self.send(ReplicationKind::Complete, None).await;
        }
        if self.window.sent.is_empty()
            && let Some(shipped) = self.shipped.take()
        {
            let stream = self.stream.clone();
            tokio::spawn(async move { stream.forget_leaders().await });
            self.state.set_complete(true);
            // Everything that was sent is acknowledged, also by earlier leaders.
            self.manifest.growing().for_each(|(path, end)| self.acked.note(path, end));
            self.write_acked()?;
            shipped();
        }
        Ok(())
    }

    async fn send(&mut self, kind: ReplicationKind, last_record: Option<(usize, u64)>) {
        let fits = self.manifest.note(&kind);
        assert!(fits.is_ok(), "a sent change continues the changes before it: {kind:?}");
        let message = ReplicationMessage { epoch: self.epoch, kind };
        let bytes = message.encode();
        self.seq += 1;
        let id = self.stream.id(&message, &bytes, self.node, self.seq);
        // The preceding message is always ours. After a rollback another server may have given the
        // same number to another message.
        let after = Some(std::mem::replace(&mut self.last_id, id.clone()));
        let expected = ExpectedPosition { seq: self.seq, id: id.clone(), after };
        let pending_ack = self.stream.send(&message, bytes.clone(), expected).await.ok();
        self.last_sent = Instant::now();
        let (seq, at) = (self.seq, self.last_sent);
        self.window.push(SentMessage { message, bytes, seq, id, at, last_record, pending_ack });
    }

    /// Handles every answer that has arrived. An error means that a message was not stored, or that
    /// this is unknown.
    fn settle_ready(&mut self) -> Result<(), ()> {
        loop {
            let Some(sent) = self.window.sent.front_mut() else { return Ok(()) };
            match sent.pending_ack.as_mut().map(|pending_ack| pending_ack.now_or_never()) {
                Some(None) => return Ok(()),
                Some(Some(answer)) => {
                    let is_stored = self.is_stored(&answer);
                    if !self.settle(is_stored) {
                        return Err(());
                    }
                }
                None => return Err(()),
            }
        }
    }

    /// Handles the outcome of the oldest message in the window.
    fn settle(&mut self, stored: bool) -> bool {
        // An expired lease is not renewed: another server may have led in the meantime.
        if !stored || Instant::now() >= self.lease_until {
            return false;
        }
        let Some(sent) = self.window.pop() else { return true };
        self.lease_until = self.lease_until.max(sent.at + self.lease);
        self.state.count(sent.bytes.len());
        self.acked.seq = sent.seq;
        self.acked_sent = sent.at;
        self.acked_id.clone_from(&sent.id);
        self.reserved += u8::from(sent.is_reserve());
        if let ReplicationKind::Append(piece) = &sent.message.kind {
            self.acked.note(&piece.path, piece.end());
        }
        if let (Some((shard, seq)), Some(changes)) = (sent.last_record, &self.changes) {
            let health = &changes.healths[shard];
            // After a failed sync, records are written again and sent again.
            health.set_shipped(seq.max(health.shipped()));
            if let Some(wakeup) = self.shard_wakeups.get(shard) {
                wakeup.wake();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests;
