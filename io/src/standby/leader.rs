//! Leading: whatever changes in the data folder is sent, in an order in which every part of it is a folder that can be gone on with; and
//! the lease is kept.
//!
//! ```text
//!  notes, reference data ─► records ─► snapshots, stores ─► what was removed        again and again
//!                               │
//!                  acknowledged │  Health::shipped: the writer tells what it said up to there
//! ```
//!
//! Messages are numbered by the stream, one after the other, so what was sent and not acknowledged is known by its number: after a lost
//! connection the end of the stream says which of it was stored, and the rest is sent again, under the same numbers.

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

/// Ticks until it is looked for what was removed.
const TICKS_PER_SWEEP: u64 = 20;
/// Between two tries of something that the broker did not answer.
const AGAIN: Duration = Duration::from_millis(20);
/// He who leads speaks so often within his lease.
const BEATS_PER_LEASE: u32 = 3;
/// How long an end in good order waits for the broker.
const END_MAX: Duration = Duration::from_secs(2);

const NOT_HEARD: &str = "the broker was not heard for a lease";

/// What main asks of it.
#[derive(Debug)]
pub enum Order {
    /// The journal is open: from here on it is sent.
    Ship(Vec<Arc<Health>>),
    /// Whom to wake when something of a shard was acknowledged.
    Ring(Vec<Wakeup>),
    /// Everything is written: send the rest, and let the next one lead.
    End,
}

/// Why it leads no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// It was asked to end.
    Ended,
    /// It must not go on.
    Deposed(String),
}

/// Where a lead begins.
#[derive(Debug)]
pub struct Beginning {
    pub node: u128,
    pub epoch: u64,
    /// The message that says so, its id, and when it was sent.
    pub seq: u64,
    pub id: String,
    pub at: Instant,
    /// What the stream holds.
    pub manifest: Manifest,
}

pub struct Shipper {
    stream: Stream,
    data: PathBuf,
    node: u128,
    epoch: u64,
    lease: Duration,
    /// Up to when nobody else takes the lead.
    lease_until: Instant,
    weather: Arc<BrokerHealth>,
    state: Arc<State>,
    manifest: Manifest,
    /// The last message that was sent, and its id.
    seq: u64,
    last_id: String,
    /// The id of the last message that was acknowledged.
    acked_id: String,
    /// The last foreign message that was passed.
    passed: u64,
    window: Window,
    spoke: Instant,
    cargo: Option<Cargo>,
    bells: Vec<Wakeup>,
    /// Told once, when all of the folder is with the broker.
    shipped: Option<Box<dyn FnOnce() + Send>>,
    /// Whether it was said in this epoch that all of the folder is there.
    told_complete: bool,
    acked: Acked,
    /// What was last written of it; it is kept from when all of the folder is with the broker.
    acked_written: u64,
    /// What was last synced of it.
    acked_synced: u64,
    /// Messages of the reserve that are stored.
    reserved: u8,
    /// Whether the reserve of the leader before was given back.
    has_cleared: bool,
    /// Whether the broker had no room, and the reserve is not whole again.
    is_full: bool,
    /// Why the broker has refused the last message.
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

    /// Who is told how it goes, and when everything that was there is with the broker.
    pub fn telling(self, state: Arc<State>, shipped: Box<dyn FnOnce() + Send>) -> Shipper {
        state.set_stand(Stand::Leading);
        state.set_epoch(self.epoch);
        Shipper { state, shipped: Some(shipped), ..self }
    }

    /// Leads until it is asked to end, or must not go on.
    pub async fn run(
        mut self,
        orders: &mut mpsc::Receiver<Order>,
        rung: &Notify,
        bell: &Wakeup,
    ) -> Result<Over, String> {
        let mut risen = self.weather.risen();
        loop {
            bell.prepare_sleep();
            // A server that was paused may find a broker that has forgotten who leads since: it sends nothing any more.
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
                // The connection has its turn.
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

    /// Sends what there is room for; says whether that was anything.
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
        // In this order: whatever these records build on was on disk before them.
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
        // A snapshot would take the room that is left for cancels.
        if self.has_room()
            && !self.is_full
            && let Some(piece) = cargo.scan.next_of_snapshot()?
        {
            self.send(What::Whole(piece), None).await;
        }
        self.tell_if_shipped(cargo, &written).await
    }

    /// Files that have changed or were made, one after the other. False: there is no room for more, and what builds on them has to wait.
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

    /// Tells of files that were removed, and has the broker forget those of long ago.
    async fn sweep(&mut self, cargo: &Cargo) {
        while self.has_room()
            && let Some(path) = cargo.scan.gone(&self.manifest).map(str::to_string)
        {
            self.send(What::Removed(path), None).await;
        }
        while let Some(path) = self.manifest.next_forgotten() {
            // Reference data may have come back under their name.
            if !self.manifest.has(&path) {
                let stream = self.stream.clone();
                tokio::spawn(async move { stream.forget(&path).await });
            }
        }
    }

    /// When all that was there at the beginning is on its way, this is said; when it has arrived, whoever waits is told.
    async fn tell_if_shipped(&mut self, cargo: &Cargo, written: &[u64]) -> io::Result<()> {
        if self.shipped.is_none() {
            return Ok(());
        }
        let is_sent = cargo.cursors.iter().zip(written).all(|(cursor, written)| cursor.seq >= *written);
        // The first round through the stores finds out which there are, the second looks at them.
        if !is_sent || cargo.scan.rounds < 2 || cargo.scan.has_snapshots() || !cargo.pages.is_empty() {
            return Ok(());
        }
        // In each epoch: a server whose folder is longer than the stream waits for it before it compares the two.
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
        // The one before is always ours. After a roll-back another server may have given the same number to another message.
        let after = Some(std::mem::replace(&mut self.last_id, id.clone()));
        let place = Place { seq: self.seq, id: id.clone(), after };
        let kept = self.stream.send(&parcel, bytes.clone(), place).await.ok();
        self.spoke = Instant::now();
        self.window.push(Sent { parcel, bytes, seq: self.seq, id, at: self.spoke, mark, kept });
    }

    /// Takes every answer that is there. An error: something was not stored, or nobody knows.
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

    /// The first of the window was stored, or not.
    fn settle(&mut self, stored: bool) -> bool {
        // A lease that has run out is not renewed: another server may have led meanwhile.
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
            // After a failed sync records are written again, and sent again.
            health.set_shipped(seq.max(health.shipped()));
            if let Some(bell) = self.bells.get(shard) {
                bell.wake();
            }
        }
        true
    }

    /// Says that the next one may lead; true: it is stored.
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

    /// Sends the rest, and says that the next one may lead.
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
            // A foreign message may have come in between.
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
