//! The broker of this thread: what WebSocket clients listen to. Events reach it after the view; each client has a task of its
//! own, which is woken when there is something to write.
//!
//! ```text
//! Floor ─ Event ─► Hall: Broker ─ active ─► tasks of connections (`websocket`)
//!                    └─ deadlines ─► keep_time
//! ```

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::broker::{Broker, Command, SessionId};
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::Settings;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::clock::Clock;

/// Longest time without a look at the deadlines, for want of any.
const LONG: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub struct Hall {
    broker: RefCell<Broker>,
    clock: RefCell<Clock>,
    /// By slot of the session: the task that writes to it.
    tasks: RefCell<Vec<Option<Waker>>>,
    /// The deadline that is waited for.
    due: Cell<Timestamp>,
    /// There is an earlier one.
    sooner: Notify,
}

impl Hall {
    pub fn new(settings: Settings, reference: Arc<RefData>) -> Hall {
        Hall {
            broker: RefCell::new(Broker::new(settings, reference)),
            clock: RefCell::new(Clock::new()),
            tasks: RefCell::default(),
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

    pub fn enter(&self) -> Option<SessionId> {
        let session = self.broker().open(self.now(), Transport::WebSocket);
        self.settle();
        session
    }

    pub fn leave(&self, session: SessionId) {
        if let Some(task) = self.tasks.borrow_mut().get_mut(session.slot()) {
            *task = None;
        }
        self.broker().close(session);
        self.settle();
    }

    /// Who writes to a session, from now on.
    pub fn set_task(&self, session: SessionId, task: &Waker) {
        let mut tasks = self.tasks.borrow_mut();
        if tasks.len() <= session.slot() {
            tasks.resize(session.slot() + 1, None);
        }
        match &mut tasks[session.slot()] {
            Some(known) => known.clone_from(task),
            none => *none = Some(task.clone()),
        }
    }

    /// After anything that happened to the broker: does what it asks for, wakes those who have something to write.
    pub fn settle(&self) {
        let mut broker = self.broker();
        while let Some(command) = broker.poll_command() {
            self.obey(&mut broker, command);
        }
        let tasks = self.tasks.borrow();
        while let Some(session) = broker.poll_active() {
            if let Some(Some(task)) = tasks.get(session.slot()) {
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
            // Nobody is asked while guests may come in.
            Command::Login { session, .. } => broker.handle_verdict(now, session, None),
            Command::Generic { name, body, .. } => broker.publish_generic_event(now, &name, &body),
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
