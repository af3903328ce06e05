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

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::sync::{Notify, mpsc};
use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{Instant, sleep, sleep_until};

use super::cursor::Cursor;
use super::manifest::Manifest;
use super::parcel::{Parcel, Piece, What};
use super::position::Acked;
use super::scan::Scan;
use super::state::{Stand, State};
use super::stream::{Behind, Kept, Place, Stream};
use crate::journal::Health;
use crate::journal::disk::Disk;
use crate::nats::link::Weather;
use crate::wake::Bell;

/// Messages sent and not acknowledged, and bytes of them: what a line of 10 Gbit/s holds in some milliseconds.
const WINDOW_MAX: usize = 128;
const WINDOW_BYTES_MAX: usize = 8 << 20;
/// How often stores and snapshots are looked at.
const TICK: Duration = Duration::from_millis(50);
/// Of these, how many until it is looked for what was removed.
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
    Ring(Vec<Bell>),
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
    /// The message that says so, and when it was sent.
    pub seq: u64,
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
    weather: Arc<Weather>,
    state: Arc<State>,
    manifest: Manifest,
    /// The last message that was sent.
    seq: u64,
    window: Window,
    spoke: Instant,
    cargo: Option<Cargo>,
    bells: Vec<Bell>,
    /// Told once, when all of the folder is with the broker.
    shipped: Option<Box<dyn FnOnce() + Send>>,
    /// Whether it was said in this epoch that all of the folder is there.
    told_complete: bool,
    acked: Acked,
    /// What was last written of it; it is kept from when all of the folder is with the broker.
    acked_written: u64,
}

/// What was sent and not acknowledged, the first one first. Files that are sent as a whole may go beyond its bounds by one of them.
#[derive(Default)]
struct Window {
    sent: VecDeque<Sent>,
    bytes: usize,
}

impl Window {
    fn has_room(&self) -> bool {
        self.sent.len() < WINDOW_MAX && self.bytes < WINDOW_BYTES_MAX
    }

    fn push(&mut self, sent: Sent) {
        self.bytes += sent.bytes.len();
        self.sent.push_back(sent);
    }

    fn pop(&mut self) -> Option<Sent> {
        let sent = self.sent.pop_front()?;
        self.bytes -= sent.bytes.len();
        Some(sent)
    }
}

/// A message on its way.
struct Sent {
    parcel: Parcel,
    bytes: Bytes,
    seq: u64,
    at: Instant,
    /// The last record that it brings, by shard.
    mark: Option<(usize, u64)>,
    /// None: it could not even be sent.
    kept: Option<Kept>,
}

/// What is sent.
struct Cargo {
    healths: Vec<Arc<Health>>,
    cursors: Vec<Cursor>,
    scan: Scan,
    /// Pages that have changed; they go when the records that they may tell of have gone.
    pages: VecDeque<Piece>,
    pages_after: Vec<u64>,
    /// There was no room for a file that others build on.
    is_held_up: bool,
    tick: Instant,
    ticks: u64,
}

impl Shipper {
    pub fn new(
        beginning: Beginning,
        stream: Stream,
        data: &Path,
        lease: Duration,
        weather: Arc<Weather>,
    ) -> Shipper {
        let Beginning { node, epoch, seq, at, manifest } = beginning;
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
            window: Window::default(),
            spoke: at,
            cargo: None,
            bells: Vec::new(),
            shipped: None,
            told_complete: false,
            acked: Acked { epoch, lead: seq, seq, ends: Vec::new() },
            acked_written: seq,
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
        bell: &Bell,
    ) -> Result<Over, String> {
        let mut risen = self.weather.risen();
        loop {
            bell.doze();
            // A server that was paused may find a broker that has forgotten who leads since: it sends nothing any more.
            if Instant::now() >= self.lease_until {
                return Ok(Over::Deposed(NOT_HEARD.to_string()));
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
                return Ok(Over::Deposed(NOT_HEARD.to_string()));
            }
            if worked && self.has_room() {
                // The connection has its turn.
                yield_now().await;
                continue;
            }
            let due = self.due();
            let acked = async {
                match self.window.sent.front_mut().and_then(|sent| sent.kept.as_mut()) {
                    Some(kept) => Some(kept.await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                acked = acked => if !self.settle(acked.is_some_and(|acked| acked.is_ok())) && let Err(why) = self.resolve().await {
                    return Ok(Over::Deposed(why));
                },
                order = orders.recv() => match order {
                    Some(Order::Ship(healths)) => self.cargo = Some(Cargo::new(&self.data, healths)),
                    Some(Order::Ring(bells)) => self.bells = bells,
                    Some(Order::End) | None => return Ok(self.end().await),
                },
                () = rung.notified() => {}
                () = self.weather.changed() => {}
                () = sleep_until(due) => {}
            }
            bell.rise();
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
            let done = self.load(&mut cargo).await;
            self.cargo = Some(cargo);
            done?;
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
        if self.has_room()
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

    /// Keeps how much was acknowledged, for the day when the broker has lost it. Once all of the folder is with the broker: until then what
    /// was acknowledged before counts.
    fn keep_acked(&mut self, ticks: u64) -> io::Result<()> {
        if self.shipped.is_some() || self.acked_written == self.acked.seq {
            return Ok(());
        }
        self.acked_written = self.acked.seq;
        if ticks.is_multiple_of(TICKS_PER_SWEEP) {
            let (path, text) = (Acked::path(&self.data), self.acked.encode());
            // A sync takes milliseconds, in which records would not be sent.
            spawn_blocking(move || Disk::Real.put(&path, text.as_bytes()));
            return Ok(());
        }
        self.acked.write(&self.data)
    }

    async fn send(&mut self, what: What, mark: Option<(usize, u64)>) {
        let fits = self.manifest.note(&what);
        assert!(fits.is_ok(), "what is sent follows from what was sent: {what:?}");
        let parcel = Parcel { epoch: self.epoch, what };
        let bytes = parcel.encode();
        self.seq += 1;
        // The one before is always ours. After a roll-back another server may have given the same number to another message.
        let place = Place { node: self.node, seq: self.seq, behind: Behind::Sent };
        let kept = self.stream.send(&parcel, bytes.clone(), place).await.ok();
        self.spoke = Instant::now();
        self.window.push(Sent { parcel, bytes, seq: self.seq, at: self.spoke, mark, kept });
    }

    /// Takes every answer that is there. An error: something was not stored, or nobody knows.
    fn settle_ready(&mut self) -> Result<(), ()> {
        loop {
            let Some(sent) = self.window.sent.front_mut() else { return Ok(()) };
            match sent.kept.as_mut().map(|kept| kept.now_or_never()) {
                Some(None) => return Ok(()),
                Some(Some(Ok(_))) if self.settle(true) => {}
                Some(Some(Ok(_) | Err(_))) | None => return Err(()),
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

    /// Finds out what was stored, and sends the rest again. An error: why this server must not lead any longer.
    async fn resolve(&mut self) -> Result<(), String> {
        while Instant::now() < self.lease_until {
            let Ok(end) = self.stream.end().await else {
                sleep(AGAIN).await;
                continue;
            };
            let acked = self.window.sent.front().map_or(self.seq, |sent| sent.seq - 1);
            match end.epoch {
                Some(epoch) if epoch > self.epoch => {
                    return Err(format!("another server has taken the lead in epoch {epoch}"));
                }
                Some(epoch) if epoch == self.epoch && end.seq >= acked && end.node == Some(self.node) => {}
                Some(_) | None => {
                    return Err("the broker has lost what it had acknowledged: it is sent again from this server's folder"
                        .to_string());
                }
            }
            while self.window.sent.front().is_some_and(|sent| sent.seq <= end.seq) {
                if !self.settle(true) {
                    return Err(NOT_HEARD.to_string());
                }
            }
            let mut behind = Behind::Stored;
            for sent in &mut self.window.sent {
                let place = Place { node: self.node, seq: sent.seq, behind };
                sent.kept = self.stream.send(&sent.parcel, sent.bytes.clone(), place).await.ok();
                behind = Behind::Sent;
            }
            return Ok(());
        }
        Err(NOT_HEARD.to_string())
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
                        Some(kept) => kept.await.is_ok(),
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
            let parcel = Parcel { epoch: self.epoch, what: What::Release { node: self.node } };
            let place = Place { node: self.node, seq: self.seq + 1, behind: Behind::Stored };
            if let Ok(kept) = self.stream.send(&parcel, parcel.encode(), place).await {
                let _ = kept.await;
            }
        };
        tokio::select! {
            () = all => {}
            () = sleep_until(until) => tracing::warn!("the standby could not be told all: the broker does not answer"),
        }
        Over::Ended
    }
}

impl Cargo {
    fn new(data: &Path, healths: Vec<Arc<Health>>) -> Cargo {
        Cargo {
            cursors: (0..healths.len()).map(|shard| Cursor::new(data, shard)).collect(),
            healths,
            scan: Scan::new(data),
            pages: VecDeque::new(),
            pages_after: Vec::new(),
            is_held_up: false,
            tick: Instant::now(),
            ticks: 0,
        }
    }

    /// Looks at what nobody rings for.
    fn tick(&mut self, sent: &Manifest) -> io::Result<()> {
        self.tick = Instant::now() + TICK;
        self.ticks += 1;
        self.scan.find_snapshots(self.healths.len(), sent)?;
        if self.pages.is_empty() {
            self.pages = self.scan.changed_pages(sent)?.into();
            // What a store tells of was written before.
            self.pages_after = self.healths.iter().map(|health| health.appended()).collect();
        }
        Ok(())
    }

    /// Whether the whole round is done that was begun at the end.
    fn is_all_looked_at(&self) -> bool {
        self.scan.is_whole_round_over() && self.pages.is_empty() && !self.scan.has_snapshots()
    }

    /// Records that were written and not acknowledged.
    fn behind(&self) -> u64 {
        self.healths.iter().map(|health| health.appended().saturating_sub(health.shipped())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: usize) -> Sent {
        let parcel = Parcel { epoch: 1, what: What::Beat };
        Sent { parcel, bytes: vec![0; bytes].into(), seq: 1, at: Instant::now(), mark: None, kept: None }
    }

    #[test]
    fn so_much_is_on_its_way_and_the_rest_waits() {
        for (bytes, count) in [(0, WINDOW_MAX), (WINDOW_BYTES_MAX / 16, 16)] {
            let mut window = Window::default();
            for _ in 0..count {
                assert!(window.has_room());
                window.push(sent(bytes));
            }
            assert!(!window.has_room());
            window.pop();
            assert!(window.has_room(), "what was acknowledged makes room");
            while window.pop().is_some() {}
            assert_eq!(window.bytes, 0);
        }
    }
}
