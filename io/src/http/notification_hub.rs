//! The hub of notifications: a notification of a gateway goes to the other gateways and to the
//! clients of this thread; log events go to all. The hub also has the list of all sessions at the
//! gateways.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pitlane_engine::id::{Origin, PortId, Source};

use super::remote_strategies::RemoteStrategies;
use super::websocket_broker::WebSocketBroker;
use crate::log::Events;
use crate::notifications::{Kind, Notification, NotificationChannel, SessionInfo};

/// Name of this thread in the ids of sessions.
pub const HERE: &str = "http";
/// Maximum number of notifications forwarded in one cycle, for each source; the rest wait for the
/// next.
const NOTES_PER_TURN_MAX: usize = 256;

#[derive(Debug)]
pub struct NotificationHub {
    lines: RefCell<Vec<Line>>,
    log: RefCell<Option<Events>>,
    names: RefCell<Names>,
    /// By strategy: the reason of its last failure.
    failures: RefCell<BTreeMap<Arc<str>, Arc<str>>>,
}

/// Names of FIX sessions.
#[derive(Debug, Default)]
pub struct Names {
    by_session: BTreeMap<(PortId, u16), Arc<str>>,
    changes: u64,
}

impl Names {
    /// Returns a counter that grows with each name received.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    fn insert(&mut self, port: PortId, session: u16, name: Arc<str>) {
        self.by_session.insert((port, session), name);
        self.changes += 1;
    }

    /// Returns the name of the FIX session that is the source.
    pub fn of(&self, source: &Source) -> Option<&str> {
        let key = (source.port, source.session);
        if source.origin == Origin::Fix { self.by_session.get(&key).map(|name| &**name) } else { None }
    }
}

/// Channel to one gateway.
#[derive(Debug)]
struct Line {
    name: String,
    post: NotificationChannel,
    sessions: Arc<[SessionInfo]>,
}

impl NotificationHub {
    /// Creates a hub with the channels of the gateways.
    pub fn new(posts: Vec<NotificationChannel>, log: Option<Events>) -> NotificationHub {
        let line = |(at, post): (usize, NotificationChannel)| Line {
            name: at.to_string(),
            post,
            sessions: Arc::new([]),
        };
        let lines = posts.into_iter().enumerate().map(line).collect();
        let (lines, log) = (RefCell::new(lines), RefCell::new(log));
        NotificationHub { lines, log, names: RefCell::default(), failures: RefCell::default() }
    }

    /// Sends a notification of this thread to all.
    pub fn announce(&self, hall: &Rc<WebSocketBroker>, note: Notification) {
        if let Notification::Failed { strategy, reason } = &note {
            self.failures.borrow_mut().insert(strategy.clone(), reason.clone());
        }
        tell_all(&mut self.lines.borrow_mut(), None, hall, note);
        hall.settle();
    }

    /// Forwards notifications, up to a bound, and returns how many. Events between strategies also
    /// go to remote strategies.
    pub fn poll(&self, hall: &Rc<WebSocketBroker>, outposts: Option<&RemoteStrategies>) -> usize {
        let mut lines = self.lines.borrow_mut();
        let mut work = 0;
        while let Some(event) = self.log.borrow_mut().as_mut().and_then(Events::poll) {
            tell_all(&mut lines, None, hall, Notification::Log(Arc::new(event)));
            work += 1;
            if work == NOTES_PER_TURN_MAX {
                break;
            }
        }
        for from in 0..lines.len() {
            for _ in 0..NOTES_PER_TURN_MAX {
                let Some(note) = lines[from].post.poll() else { break };
                work += 1;
                match note {
                    Notification::Sessions(sessions) => lines[from].sessions = sessions,
                    note => {
                        if let Notification::Named { port, session, name } = &note {
                            self.names.borrow_mut().insert(*port, *session, name.clone());
                        }
                        tell_outposts(outposts, &note);
                        if let Notification::Failed { strategy, reason } = &note {
                            self.failures.borrow_mut().insert(strategy.clone(), reason.clone());
                        }
                        tell_all(&mut lines, Some(from), hall, note);
                    }
                }
            }
        }
        // Notifications that clients of this thread send to all.
        while let Some(note) = hall.take_note() {
            tell_outposts(outposts, &note);
            lines.iter_mut().for_each(|line| line.post.send(note.clone()));
            work += 1;
        }
        if work > 0 {
            hall.settle();
        }
        work
    }

    pub fn each(&self, mut show: impl FnMut(&str, &SessionInfo)) {
        for line in self.lines.borrow().iter() {
            line.sessions.iter().for_each(|row| show(&line.name, row));
        }
    }

    /// Returns the number of log events that were dropped for lack of room.
    pub fn dropped_log(&self) -> u64 {
        self.log.borrow().as_ref().map_or(0, Events::dropped)
    }

    /// Calls `show` for each gateway with the number of notifications dropped for lack of room.
    pub fn each_post(&self, mut show: impl FnMut(&str, u64)) {
        self.lines.borrow().iter().for_each(|line| show(&line.name, line.post.dropped()));
    }

    /// Returns the reason of a strategy's last failure, if there was one.
    pub fn failure(&self, strategy: &str) -> Option<Arc<str>> {
        self.failures.borrow().get(strategy).cloned()
    }

    pub fn names(&self) -> Ref<'_, Names> {
        self.names.borrow()
    }

    /// Resets the sequence numbers of the FIX session that `is_meant` selects; returns false if
    /// there is none.
    pub fn reset(&self, is_meant: impl Fn(&str, &SessionInfo) -> bool) -> bool {
        for line in self.lines.borrow_mut().iter_mut() {
            let is_it =
                |row: &&SessionInfo| matches!(row.kind, Kind::Fix | Kind::Venue) && is_meant(&line.name, row);
            if let Some(number) = line.sessions.iter().find(is_it).map(|row| row.number) {
                line.post.send(Notification::Reset { number });
                return true;
            }
        }
        false
    }

    /// Ends the session that `is_meant` selects; returns false if there is none.
    pub fn kick(&self, is_meant: impl Fn(&str, &SessionInfo) -> bool) -> bool {
        for line in self.lines.borrow_mut().iter_mut() {
            let found = line.sessions.iter().find(|row| is_meant(&line.name, row));
            if let Some(row) = found {
                let (kind, number) = (row.kind, row.number);
                line.post.send(Notification::Kick { kind, number });
                return true;
            }
        }
        false
    }
}

fn tell_outposts(outposts: Option<&RemoteStrategies>, note: &Notification) {
    if let (Some(outposts), Notification::Generic { name, body }) = (outposts, note) {
        outposts.hear_generic(name, body);
    }
}

/// Sends a notification to all but the gateway it comes from, which has informed its own clients
/// already.
fn tell_all(lines: &mut [Line], from: Option<usize>, hall: &WebSocketBroker, note: Notification) {
    for (at, line) in lines.iter_mut().enumerate() {
        if Some(at) != from {
            line.post.send(note.clone());
        }
    }
    hall.tell(&note);
}
