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

mod reserve;
mod resolve;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, mpsc};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::cargo::Cargo;
use super::manifest::Manifest;
use super::message::{Piece, ReplicationMessage, What};
use super::position::Acked;
use super::scan::Scan;
use super::state::{Stand, State};
use super::stream::{Place, Stream};
use super::window::{Sent, Window};
use crate::journal::Health;
use crate::nats::link::BrokerHealth;
use crate::wakeup::Wakeup;

/// Ticks between two checks for removed files.
const TICKS_PER_SWEEP: u64 = 20;
/// Pause before repeating a request that the broker did not answer.
const AGAIN: Duration = Duration::from_millis(20);
/// Heartbeats that a leader sends per lease.
const BEATS_PER_LEASE: u32 = 3;
/// Longest time that an orderly shutdown waits for the broker.
const END_MAX: Duration = Duration::from_secs(2);

const NOT_HEARD: &str = "the broker was not heard for a lease";

/// A request from main.
#[derive(Debug)]
pub enum Order {
    /// Ships the journal, which is open now.
    Ship(Vec<Arc<Health>>),
    /// Sets the wake-ups for acknowledged records, by shard.
    Ring(Vec<Wakeup>),
    /// Ends: everything is written; send the rest, and let the next server lead.
    End,
}

/// The reason why the server no longer leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Main asked it to end.
    Ended,
    /// It must not continue.
    Deposed(String),
}

/// The start of a lead.
#[derive(Debug)]
pub struct Beginning {
    pub node: u128,
    pub epoch: u64,
    /// Lead message: its sequence number, its id, and the time at which it was sent.
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    /// Contents of the stream.
    pub manifest: Manifest,
}

pub struct Shipper {
    stream: Stream,
    data: PathBuf,
    node: u128,
    epoch: u64,
    lease: Duration,
    /// Time until which no other server takes the lead.
    lease_until: Instant,
    weather: Arc<BrokerHealth>,
    state: Arc<State>,
    manifest: Manifest,
    /// Last message sent, and its id.
    seq: u64,
    last_id: String,
    /// Id of the last acknowledged message.
    acked_id: String,
    /// Last foreign message that was passed.
    passed: u64,
    window: Window,
    spoke: Instant,
    cargo: Option<Cargo>,
    bells: Vec<Wakeup>,
    /// Callback for the moment when the whole folder is with the broker; called once.
    shipped: Option<Box<dyn FnOnce() + Send>>,
    /// Whether a `Complete` message was sent in this epoch.
    told_complete: bool,
    acked: Acked,
    /// Sequence number last written to the `acked` file; written from the moment when the whole
    /// folder is with the broker.
    acked_written: u64,
    /// Sequence number last synced to the `acked` file.
    acked_synced: u64,
    /// Number of stored reserve messages.
    reserved: u8,
    /// Whether the reserve of the previous leader was released.
    has_cleared: bool,
    /// Whether the broker had no space, and the reserve is not complete again.
    is_full: bool,
    /// Error with which the broker refused the last message.
    refused: Option<String>,
}

impl Shipper {
    pub fn new(
        beginning: Beginning,
        stream: Stream,
        data: &Path,
        lease: Duration,
        weather: Arc<BrokerHealth>,
    ) -> Shipper {
        let Beginning { node, epoch, seq, id, at, manifest } = beginning;
        Shipper {
            stream,
            data: data.to_path_buf(),
            node,
            epoch,
            lease,
            lease_until: at + lease,
            weather,
            state: Arc::default(),
            manifest,
            seq,
            last_id: id.clone(),
            acked_id: id,
            passed: 0,
            window: Window::default(),
            spoke: at,
            cargo: None,
            bells: Vec::new(),
            shipped: None,
            told_complete: false,
            acked: Acked { epoch, lead: seq, seq, ends: Vec::new() },
            acked_written: seq,
            acked_synced: seq,
            reserved: 0,
            has_cleared: false,
            is_full: false,
            refused: None,
        }
    }

    /// Sets the state to update, and the callback for the moment when everything is with the
    /// broker.
    pub fn telling(self, state: Arc<State>, shipped: Box<dyn FnOnce() + Send>) -> Shipper {
        state.set_stand(Stand::Leading);
        state.set_epoch(self.epoch);
        Shipper { state, shipped: Some(shipped), ..self }
    }

    /// Leads until main asks it to end, or until it must not continue.
    pub async fn run(
        mut self,
        orders: &mut mpsc::Receiver<Order>,
        rung: &Notify,
        bell: &Wakeup,
    ) -> Result<Over, String> {
        let mut risen = self.weather.risen();
        loop {
            bell.prepare_sleep();
            // A server that was paused may reach a broker that has forgotten the newer leader, so
            // it sends nothing after its lease.
            if Instant::now() >= self.lease_until {
                return Ok(Over::Deposed(self.silence()));
            }
            let worked =
                self.cycle().await.map_err(|error| format!("the journal cannot be sent: {error}"))?;
            let settled = self.settle_ready();
            let is_new = std::mem::replace(&mut risen, self.weather.risen()) != self.weather.risen();
            if (settled.is_err() || is_new)
                && let Err(why) = self.resolve().await
            {
                return Ok(Over::Deposed(why));
            }
            if Instant::now() >= self.lease_until {
                return Ok(Over::Deposed(self.silence()));
            }
            if worked && self.has_room() {
                // Lets the connection's task run.
                yield_now().await;
                continue;
            }
            let due = self.due();
            let acked = async {
                match self.window.sent.front_mut().and_then(|sent| sent.kept.as_mut()) {
                    Some(kept) => kept.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                acked = acked => {
                    let is_stored = self.is_stored(&acked);
                    if !self.settle(is_stored) && let Err(why) = self.resolve().await {
                        return Ok(Over::Deposed(why));
                    }
                },
                order = orders.recv() => match order {
                    Some(Order::Ship(healths)) => {
                        self.cargo = Some(Cargo::new(&self.data, healths));
                        self.set_full(self.is_full);
                    }
                    Some(Order::Ring(bells)) => self.bells = bells,
                    Some(Order::End) | None => return Ok(self.end().await),
                },
                () = rung.notified() => {}
                () = self.weather.changed() => {}
                () = sleep_until(due) => {}
            }
            bell.finish_sleep();
        }
    }

    fn has_room(&self) -> bool {
        self.window.has_room()
    }

    fn due(&self) -> Instant {
        let tick = self.cargo.as_ref().map_or(self.lease_until, |cargo| cargo.tick);
        self.lease_until.min(tick).min(self.beat_due())
    }

    fn beat_due(&self) -> Instant {
        self.spoke + self.lease / BEATS_PER_LEASE
    }

    /// Sends what the window has room for; returns whether anything was sent.
    async fn cycle(&mut self) -> io::Result<bool> {
        let before = self.seq;
        if let Some(mut cargo) = self.cargo.take() {
            let before = cargo.ticks;
            let done = self.load(&mut cargo).await;
            let ticks = Some(cargo.ticks).filter(|ticks| *ticks != before);
            self.cargo = Some(cargo);
            done?;
            if let Some(ticks) = ticks {
                self.keep_reserve(ticks).await;
            }
        }
        if Instant::now() >= self.beat_due() && self.has_room() {
            self.send(What::Beat, None).await;
        }
        Ok(self.seq != before)
    }

    async fn load(&mut self, cargo: &mut Cargo) -> io::Result<()> {
        // The counters are read first: everything that these records depend on was on disk before
        // them.
        let written: Vec<u64> = cargo.healths.iter().map(|health| health.appended()).collect();
        let is_due = Instant::now() >= cargo.tick;
        let is_new = cargo.cursors.iter().zip(&written).any(|(cursor, written)| cursor.seq < *written);
        let is_idle = !cargo.scan.has_snapshots() && cargo.pages.is_empty() && !cargo.is_held_up;
        if !is_due && !is_new && is_idle {
            return Ok(());
        }
        cargo.is_held_up = !(self.load_files(cargo, Scan::next_small, What::Whole).await?
            && self.load_files(cargo, Scan::next_new_store, What::Page).await?);
        if cargo.is_held_up {
            return Ok(());
        }
        for (shard, cursor) in cargo.cursors.iter_mut().enumerate() {
            while self.has_room()
                && let Some(portion) = cursor.next(written[shard], &self.manifest)?
            {
                let last = portion.pieces.len() - 1;
                for (at, piece) in portion.pieces.into_iter().enumerate() {
                    let mark = (at == last).then_some((shard, portion.seq));
                    self.send(What::Append(piece), mark).await;
                }
            }
        }
        self.load_pages(cargo).await;
        if is_due {
            cargo.tick(&self.manifest)?;
            self.state.behind.set(cargo.behind());
            self.keep_acked(cargo.ticks)?;
            if cargo.ticks.is_multiple_of(TICKS_PER_SWEEP) {
                self.sweep(cargo).await;
            }
        }
        // A snapshot would take the space that is left for cancels.
        if self.has_room()
            && !self.is_full
            && let Some(piece) = cargo.scan.next_of_snapshot()?
        {
            self.send(What::Whole(piece), None).await;
        }
        self.tell_if_shipped(cargo, &written).await
    }

    /// Sends changed and new files, one after the other. Returns false if there is no room for
    /// more, and dependent records must wait.
    async fn load_files(
        &mut self,
        cargo: &mut Cargo,
        next: fn(&mut Scan, &Manifest) -> io::Result<Option<Vec<Piece>>>,
        what: fn(Piece) -> What,
    ) -> io::Result<bool> {
        while self.has_room() {
            let Some(pieces) = next(&mut cargo.scan, &self.manifest)? else { return Ok(true) };
            for piece in pieces {
                self.send(what(piece), None).await;
            }
        }
        Ok(false)
    }

    async fn load_pages(&mut self, cargo: &mut Cargo) {
        let is_told =
            cargo.cursors.iter().zip(&cargo.pages_after).all(|(cursor, after)| cursor.seq >= *after);
        while is_told
            && self.has_room()
            && let Some(piece) = cargo.pages.pop_front()
        {
            self.send(What::Page(piece), None).await;
        }
    }

    /// Sends the removals of files, and makes the broker forget those of long ago.
    async fn sweep(&mut self, cargo: &Cargo) {
        while self.has_room()
            && let Some(path) = cargo.scan.gone(&self.manifest).map(str::to_string)
        {
            self.send(What::Removed(path), None).await;
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
    /// when all of them are acknowledged.
    async fn tell_if_shipped(&mut self, cargo: &Cargo, written: &[u64]) -> io::Result<()> {
        if self.shipped.is_none() {
            return Ok(());
        }
        let is_sent = cargo.cursors.iter().zip(written).all(|(cursor, written)| cursor.seq >= *written);
        // The first round through the stores finds out which exist, the second reads them.
        if !is_sent || cargo.scan.rounds < 2 || cargo.scan.has_snapshots() || !cargo.pages.is_empty() {
            return Ok(());
        }
        // `Complete` is sent in each epoch: a server whose folder is longer than the stream waits
        // for it before it compares the two.
        if !std::mem::replace(&mut self.told_complete, true) {
            self.send(What::Complete, None).await;
        }
        if self.window.sent.is_empty()
            && let Some(shipped) = self.shipped.take()
        {
            let stream = self.stream.clone();
            tokio::spawn(async move { stream.forget_leaders().await });
            self.state.set_complete(true);
            self.acked.write(&self.data)?;
            self.acked_written = self.acked.seq;
            shipped();
        }
        Ok(())
    }

    async fn send(&mut self, what: What, mark: Option<(usize, u64)>) {
        let fits = self.manifest.note(&what);
        assert!(fits.is_ok(), "what is sent follows from what was sent: {what:?}");
        let parcel = ReplicationMessage { epoch: self.epoch, what };
        let bytes = parcel.encode();
        self.seq += 1;
        let id = self.stream.id(&parcel, &bytes, self.node, self.seq);
        // The preceding message is always ours. After a rollback another server may have given the
        // same number to another message.
        let after = Some(std::mem::replace(&mut self.last_id, id.clone()));
        let place = Place { seq: self.seq, id: id.clone(), after };
        let kept = self.stream.send(&parcel, bytes.clone(), place).await.ok();
        self.spoke = Instant::now();
        self.window.push(Sent { parcel, bytes, seq: self.seq, id, at: self.spoke, mark, kept });
    }

    /// Handles every answer that has arrived. An error means that a message was not stored, or that
    /// this is unknown.
    fn settle_ready(&mut self) -> Result<(), ()> {
        loop {
            let Some(sent) = self.window.sent.front_mut() else { return Ok(()) };
            match sent.kept.as_mut().map(|kept| kept.now_or_never()) {
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
        self.acked_id.clone_from(&sent.id);
        self.reserved += u8::from(sent.is_reserve());
        if let What::Append(piece) = &sent.parcel.what {
            self.acked.note(&piece.path, piece.end());
        }
        if let (Some((shard, seq)), Some(cargo)) = (sent.mark, &self.cargo) {
            let health = &cargo.healths[shard];
            // After a failed sync, records are written again and sent again.
            health.set_shipped(seq.max(health.shipped()));
            if let Some(bell) = self.bells.get(shard) {
                bell.wake();
            }
        }
        true
    }

    /// Releases the lead; returns whether the release is stored.
    async fn release(&self) -> bool {
        let parcel = ReplicationMessage { epoch: self.epoch, what: What::Release { node: self.node } };
        let (bytes, seq) = (parcel.encode(), self.seq + 1);
        let id = self.stream.id(&parcel, &bytes, self.node, seq);
        let place = Place { seq, id, after: Some(self.last_id.clone()) };
        match self.stream.send(&parcel, bytes, place).await {
            Ok(kept) => kept.await.is_ok(),
            Err(_) => false,
        }
    }

    /// Sends the rest, and releases the lead.
    async fn end(mut self) -> Over {
        let until = Instant::now() + END_MAX;
        if let Some(cargo) = &mut self.cargo {
            cargo.scan.begin_whole_round();
        }
        let all = async {
            loop {
                self.cargo.iter_mut().for_each(|cargo| cargo.tick = Instant::now());
                let worked = self.cycle().await.unwrap_or(false);
                while let Some(sent) = self.window.sent.front_mut() {
                    let stored = match sent.kept.as_mut() {
                        Some(kept) => {
                            let answer = kept.await;
                            self.is_stored(&answer)
                        }
                        None => false,
                    };
                    if !self.settle(stored) && self.resolve().await.is_err() {
                        return;
                    }
                }
                if !worked && self.cargo.as_ref().is_none_or(Cargo::is_all_looked_at) {
                    break;
                }
                yield_now().await;
            }
            // A foreign message may have been stored in between.
            if !self.release().await && self.resolve().await.is_ok() {
                self.release().await;
            }
        };
        tokio::select! {
            () = all => {}
            () = sleep_until(until) => tracing::warn!("the standby could not be told all: the broker does not answer"),
        }
        Over::Ended
    }
}
