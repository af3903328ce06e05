//! Venues that we call: the FIX sessions of this thread's adapters, between its sockets and its lanes.
//!
//! ```text
//! shard ─ instruction ─► Link: Session ─► one write ─► venue
//! shard ◄─ report ◄───── Link: Session ◄─ Received ◄── venue       stored? ─► the message's number is behind us
//! ```
//!
//! An adapter lives on one gateway for ever. Orders come to it from the shards, whoever sent them; what the venue says goes to the
//! shards, and from there to whoever wants to hear it.

mod link;
mod stored;

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::event::{Event, EventKind, VenueRequest};
use pitlane_engine::id::{AdapterId, OrderHandle, Origin, PortId, ShardId, Source};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::fix::session::{DisconnectReason, FixSession};
use pitlane_protocols::fix::store::{MemoryStore, MessageStore};

use self::link::Link;
use super::fix::Unreported;
use crate::fix::caller::Caller;
use crate::fix::message_log;
use crate::fix::store::{FileStore, Place, path_of};
use crate::journal::disk::Disk;
use crate::journal::{Fault, Level};
use crate::net::ConnectionId;
use crate::net::event::SocketEvent;
use crate::net::sockets::Sockets;
use crate::notifications::{Kind, Notification, SessionInfo};

/// How long the last words may take when the service stops.
const WIND_DOWN_NS_MAX: u64 = 1_500 * NS_PER_MS;

/// Sessions of the port that are adapters, in what they send to shards; clients have lower numbers.
const FIRST_SESSION: u16 = 0xff00;

/// What this thread's venues are made of.
#[derive(Debug)]
pub struct VenueParts {
    pub port: PortId,
    pub callers: Vec<Caller>,
    pub reference: Arc<RefData>,
    pub level: Level,
    /// Last event of each shard when this life began.
    pub heard: Vec<u64>,
    /// Instructions of the last life of which no message was kept.
    pub missed: Vec<Unreported>,
    /// Of the data folder.
    pub birth: u64,
    pub clerk: message_log::FixLogHandle,
}

#[derive(Debug)]
pub struct VenueConnector {
    links: Vec<Link>,
    clerk: message_log::FixLogHandle,
    /// Whether venues are called.
    is_open: bool,
    /// Since when everybody is being logged out.
    ending: Option<Timestamp>,
}

impl VenueConnector {
    pub fn new(now: Timestamp, parts: VenueParts) -> Result<VenueConnector, Fault> {
        let VenueParts { port, callers, reference, level, heard, missed, birth, mut clerk } = parts;
        let mut links = Vec::new();
        for caller in callers {
            let source = source_of(port, caller.id);
            let (store, certain) = open_store(now, &caller, level, &heard, &mut clerk)?;
            // Without power some messages may be lost that were sent: then nothing is certain.
            let never_sent = if certain { never_sent(&missed, caller.id) } else { BTreeSet::new() };
            let (settings, venue) = (caller.session(now, source), caller.venue(birth));
            let session = FixSession::initiator(settings, venue, store, reference.clone(), never_sent);
            let logged = caller.log_folder.as_ref().is_some_and(|folder| {
                clerk.open_log(source.session, folder.join(format!("{}.log", caller.name())))
            });
            links.push(Link::new(caller, source, session, logged));
        }
        Ok(VenueConnector { links, clerk, is_open: false, ending: None })
    }

    /// The adapters that live here: what leaves for them is to be told to this thread.
    pub fn adapters(&self) -> impl Iterator<Item = AdapterId> {
        self.links.iter().map(|link| link.caller.id)
    }

    pub fn set_reference(&mut self, reference: &Arc<RefData>) {
        self.links.iter_mut().for_each(|link| link.session.set_reference(reference.clone()));
    }

    pub fn owns(&self, id: ConnectionId) -> bool {
        self.links.iter().any(|link| link.connection == Some(id))
    }

    pub fn handle(&mut self, now: Timestamp, sockets: &mut Sockets, happening: SocketEvent) {
        let VenueConnector { links, clerk, .. } = self;
        let id = match happening {
            SocketEvent::Received { id } | SocketEvent::Drained { id } | SocketEvent::Closed { id, .. } => id,
            SocketEvent::Accepted { .. } | SocketEvent::Timeout { .. } | SocketEvent::EndOfCycle => return,
        };
        let Some(link) = links.iter_mut().find(|link| link.connection == Some(id)) else { return };
        link.awake = true;
        match happening {
            SocketEvent::Received { .. } => link.receive(now, id, sockets, clerk),
            SocketEvent::Closed { why, .. } => link.lose(now, Some(why)),
            _ => {}
        }
    }

    /// What a shard says: instructions, and that something is stored.
    pub fn hear(&mut self, now: Timestamp, shard: ShardId, event: &Event) {
        match &event.body {
            EventKind::ToVenue(instruction) => {
                if let Some(link) = self.links.iter_mut().find(|link| link.caller.id == instruction.adapter) {
                    link.awake = true;
                    link.session.handle_instruction(now, shard, event.seq, instruction);
                }
            }
            EventKind::Done { source, token, reason } if source.session >= FIRST_SESSION => {
                if let Some(link) = self.links.iter_mut().find(|link| link.source == *source) {
                    link.awake = true;
                    link.handle_done(now, shard, *token, *reason);
                }
            }
            _ => {}
        }
    }

    /// What other threads tell: an operator ends a session, which comes back by itself, or has its numbers begin anew.
    pub fn handle_note(&mut self, now: Timestamp, note: &Notification) {
        let (number, resets) = match *note {
            Notification::Kick { kind: Kind::Venue, number } => (number, false),
            Notification::Reset { number } => (number, true),
            _ => return,
        };
        let Some(link) = self.links.iter_mut().find(|link| link.source.session as u64 == number) else {
            return;
        };
        link.awake = true;
        if resets {
            link.session.reset(now);
        } else {
            link.session.log_out(now, b"Ended by the operator", DisconnectReason::EndedByUs);
        }
    }

    /// Every venue, connected or not.
    pub fn rows(&self) -> impl Iterator<Item = SessionInfo> {
        self.links.iter().map(Link::row)
    }

    /// Does what is due, tells the shards what was heard, and writes what is to be said. While the shards take commands, `port` is there;
    /// venues are called while the service is open.
    pub fn poll(
        &mut self,
        now: Timestamp,
        sockets: &mut Sockets,
        mut port: Option<&mut PortEnd>,
        is_open: bool,
    ) -> usize {
        let mut work = 0;
        self.is_open = is_open;
        let VenueConnector { links, clerk, ending, .. } = self;
        let is_late = ending.is_some_and(|since| now >= since.plus(WIND_DOWN_NS_MAX));
        for link in links {
            work += link.poll(now, sockets, port.as_deref_mut(), clerk, is_open);
            if is_late && let Some(id) = link.connection {
                sockets.close(id);
                link.lose(now, None);
            }
        }
        work
    }

    /// Whether something waits for room.
    pub fn is_waiting(&self) -> bool {
        self.links.iter().any(Link::is_waiting)
    }

    pub fn deadline(&self) -> Timestamp {
        let cut = self.ending.map_or(Timestamp::MAX, |since| since.plus(WIND_DOWN_NS_MAX));
        self.links.iter().map(|link| link.deadline(self.is_open)).fold(cut, Timestamp::min)
    }

    /// Every venue hears that we leave.
    pub fn wind_down(&mut self, now: Timestamp) {
        self.ending = Some(now);
        for link in self.links.iter_mut().filter(|link| link.connection.is_some()) {
            link.session.log_out(now, b"The service stops", DisconnectReason::EndedByUs);
            link.awake = true;
        }
    }

    pub fn is_done(&self) -> bool {
        self.links.iter().all(|link| link.connection.is_none())
    }
}

/// Who an adapter is to the shards.
fn source_of(port: PortId, adapter: AdapterId) -> Source {
    Source { origin: Origin::Server, port, session: FIRST_SESSION + adapter.0 as u16 }
}

/// New orders that never left.
fn never_sent(missed: &[Unreported], adapter: AdapterId) -> BTreeSet<OrderHandle> {
    let news = missed.iter().filter_map(|missed| match &missed.event.body {
        EventKind::ToVenue(told) if told.adapter == adapter && told.ask == VenueRequest::New => {
            Some(told.order)
        }
        _ => None,
    });
    news.collect()
}

/// The store, and whether it has all that was ever sent.
fn open_store(
    now: Timestamp,
    caller: &Caller,
    level: Level,
    heard: &[u64],
    clerk: &mut message_log::FixLogHandle,
) -> Result<(Box<dyn MessageStore>, bool), Fault> {
    if level == Level::None {
        return Ok((Box::new(MemoryStore::new(now)), true));
    }
    let (disk, folder) = (Disk::Real, &caller.store_folder);
    disk.make_folder(folder).map_err(Fault::io(folder))?;
    let store = FileStore::open(&place_of(&disk, caller, level), now, heard)?;
    if store.lost_power {
        tracing::warn!(
            venue = caller.name(),
            "the machine stopped: numbers of the session were passed over, and new orders of the last moment are in doubt"
        );
    }
    if level.is_synced() && !clerk.sync(Arc::clone(store.file())) {
        tracing::error!(venue = caller.name(), "the store is not synced: too many at once");
    }
    let certain = !store.lost_power;
    Ok((Box::new(store), certain))
}

/// Where the store of a venue lies.
pub fn place_of<'a>(disk: &'a Disk, caller: &'a Caller, level: Level) -> Place<'a> {
    let path = path_of(&caller.store_folder, caller.name());
    Place { disk, path, name: caller.name(), bytes: caller.store_bytes, level }
}
