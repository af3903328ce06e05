//! The broker of this thread: what WebSocket clients listen to. Events reach it after the view; each client has a task of its
//! own, which is woken when there is something to write.
//!
//! ```text
//! Floor ─ Event ─► Hall: Broker ─ active ─► tasks of connections (`websocket`)
//!                    └─ deadlines ─► keep_time
//! ```

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::access::{Access, Secret};
use pitlane_protocols::stomp::broker::{Broker, Command, SessionId};
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::Settings;
use pitlane_protocols::stomp::throttle::Throttle;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::auth::Credentials;
use crate::bulletin::{Kind, Note, Row};
use crate::clock::Clock;
use crate::config;
use crate::wake::Bell;

/// Notes that wait to be passed on. They are taken in every turn, so that only a flood comes so far, and it ends here.
const NOTES_MAX: usize = 4_096;
/// Longest time without a look at the deadlines, for want of any.
const LONG: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub struct Hall {
    broker: RefCell<Broker>,
    clock: RefCell<Clock>,
    /// By slot of the session.
    chairs: RefCell<Vec<Option<Chair>>>,
    /// Connections so far.
    number: Cell<u64>,
    /// What clients say to all, for other threads.
    notes: RefCell<VecDeque<Note>>,
    /// Of this thread: whoever passes notes on may be asleep.
    bell: Bell,
    /// The deadline that is waited for.
    due: Cell<Timestamp>,
    /// There is an earlier one.
    sooner: Notify,
}

/// Where a client sits.
#[derive(Debug)]
struct Chair {
    session: SessionId,
    number: u64,
    peer: SocketAddr,
    since: Timestamp,
    name: Option<Arc<str>>,
    /// The task that writes to it.
    task: Option<Waker>,
    /// Somebody must find out who this is.
    login: Option<Credentials>,
}

impl Hall {
    pub fn new(settings: Settings, reference: Arc<RefData>, bell: Bell) -> Hall {
        Hall {
            broker: RefCell::new(Broker::new(settings, reference)),
            clock: RefCell::new(Clock::new()),
            chairs: RefCell::default(),
            number: Cell::new(0),
            notes: RefCell::default(),
            bell,
            due: Cell::new(Timestamp::MAX),
            sooner: Notify::new(),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.borrow_mut().now()
    }

    /// Not to be held over an await.
    pub fn broker(&self) -> RefMut<'_, Broker> {
        self.broker.borrow_mut()
    }

    /// To be followed by [`Hall::settle`] when all of a turn was heard.
    pub fn hear(&self, now: Timestamp, shard: ShardId, event: &Event) {
        self.broker().handle_event(now, shard, event);
    }

    pub fn enter(&self, peer: SocketAddr) -> Option<SessionId> {
        let since = self.now();
        let session = self.broker().open(since, Transport::WebSocket)?;
        let number = self.number.get() + 1;
        self.number.set(number);
        let mut chairs = self.chairs.borrow_mut();
        if chairs.len() <= session.slot() {
            chairs.resize_with(session.slot() + 1, || None);
        }
        let (name, task, login) = (None, None, None);
        chairs[session.slot()] = Some(Chair { session, number, peer, since, name, task, login });
        drop(chairs);
        self.settle();
        Some(session)
    }

    pub fn leave(&self, session: SessionId) {
        self.with_chair(session, |chair| *chair = None);
        self.broker().close(session);
        self.settle();
    }

    /// Who writes to a session, from now on.
    pub fn set_task(&self, session: SessionId, task: &Waker) {
        self.with_chair(session, |chair| {
            if let Some(chair) = chair {
                chair.task = Some(task.clone());
            }
        });
    }

    /// A login that is to be looked at, once.
    pub fn take_login(&self, session: SessionId) -> Option<Credentials> {
        self.with_chair(session, |chair| chair.as_mut()?.login.take())?
    }

    /// What came of it; none: refused.
    pub fn handle_verdict(&self, session: SessionId, known: Option<(Arc<str>, Access)>) {
        let name = known.as_ref().map(|(name, _)| name.clone());
        self.with_chair(session, |chair| {
            if let Some(chair) = chair {
                chair.name = name;
            }
        });
        let now = self.now();
        self.broker().handle_verdict(now, session, known.map(|(_, access)| access));
        self.settle();
    }

    /// Tells a note to those who want it. To be followed by [`Hall::settle`].
    pub fn tell(&self, note: &Note) {
        let now = self.now();
        note.tell(now, &mut self.broker());
    }

    /// What a client here says to all.
    pub fn take_note(&self) -> Option<Note> {
        self.notes.borrow_mut().pop_front()
    }

    pub fn throttle(&self) -> Throttle {
        self.broker().throttle()
    }

    pub fn set_throttle(&self, throttle: Throttle) {
        let now = self.now();
        self.broker().set_throttle(now, throttle);
        self.settle();
    }

    /// Everybody who is here.
    pub fn each(&self, mut show: impl FnMut(Row)) {
        let broker = self.broker();
        for chair in self.chairs.borrow().iter().flatten() {
            let Some(look) = broker.look(chair.session) else { continue };
            let row = Row::of_stomp(Kind::WebSocket, chair.number, chair.since, look);
            show(Row { name: chair.name.clone(), peer: Some(chair.peer), ..row });
        }
    }

    /// Ends the session that is meant; false if there is none.
    pub fn kick(&self, is_meant: impl Fn(&Row) -> bool) -> bool {
        let mut number = None;
        self.each(|row| {
            if is_meant(&row) {
                number = Some(row.number);
            }
        });
        let chairs = self.chairs.borrow();
        let meant = chairs.iter().flatten().find(|chair| Some(chair.number) == number);
        let Some(session) = meant.map(|chair| chair.session) else { return false };
        drop(chairs);
        let now = self.now();
        self.broker().end(now, session);
        self.settle();
        true
    }

    fn with_chair<R>(&self, session: SessionId, act: impl FnOnce(&mut Option<Chair>) -> R) -> Option<R> {
        let mut chairs = self.chairs.borrow_mut();
        let chair = chairs.get_mut(session.slot())?;
        let is_his = chair.as_ref().is_some_and(|chair| chair.session == session);
        is_his.then(|| act(chair))
    }

    /// After anything that happened to the broker: does what it asks for, wakes those who have something to write.
    pub fn settle(&self) {
        let mut broker = self.broker();
        while let Some(command) = broker.poll_command() {
            self.obey(&mut broker, command);
        }
        let chairs = self.chairs.borrow();
        while let Some(session) = broker.poll_active() {
            if let Some(Some(Chair { task: Some(task), .. })) = chairs.get(session.slot()) {
                task.wake_by_ref();
            }
        }
        if broker.poll_timeout().is_some_and(|next| next < self.due.get()) {
            self.sooner.notify_one();
        }
    }

    fn obey(&self, broker: &mut Broker, command: Command) {
        let now = self.now();
        match command {
            // This thread hears everything.
            Command::Watch { .. } => {}
            Command::Login { session, login, passcode, .. } => {
                let shown = self.with_chair(session, |chair| {
                    let (chair, Secret(passcode)) = (chair.as_mut()?, passcode?);
                    let secret = config::Secret::new(&passcode);
                    chair.login = Some(Credentials { login, secret, peer: chair.peer.ip() });
                    // Its task takes it from here.
                    chair.task.iter().for_each(Waker::wake_by_ref);
                    Some(())
                });
                if shown.flatten().is_none() {
                    broker.handle_verdict(now, session, None);
                }
            }
            Command::Generic { name, body, .. } => {
                let note = Note::Generic { name: name.into(), body: body.into() };
                note.tell(now, broker);
                let mut notes = self.notes.borrow_mut();
                if notes.len() < NOTES_MAX {
                    notes.push_back(note);
                }
                self.bell.wake();
            }
        }
    }

    fn handle_timeout(&self) {
        let now = self.now();
        self.broker().handle_timeout(now);
        self.settle();
    }
}

/// Lets the broker know when its deadlines have come.
pub async fn keep_time(hall: Rc<Hall>) {
    loop {
        let next = hall.broker().poll_timeout().unwrap_or(Timestamp::MAX);
        hall.due.set(next);
        let wait = Duration::from_nanos(next.since(hall.now())).min(LONG);
        if timeout(wait, hall.sooner.notified()).await.is_err() {
            hall.handle_timeout();
        }
    }
}
