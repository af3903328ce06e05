//! The broker of this thread: what WebSocket clients listen to. Events reach it after the view; each client has a task of its
//! own, which is woken when there is something to write.
//!
//! ```text
//! Floor ─ Event ─► Hall: Company ─ active ─► tasks of connections (`websocket`)
//!                    └─ deadlines ─► keep_time
//! ```

use std::cell::{Cell, RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use pitlane_engine::event::Event;
use pitlane_engine::id::ShardId;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::time::Timestamp;
use pitlane_protocols::stomp::access::StompAccess;
use pitlane_protocols::stomp::broker::{SessionId, StompBroker};
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_protocols::stomp::throttle::Throttle;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::auth::{Credentials, RevocationWatch};
use crate::clock::Clock;
use crate::notifications::{Notification, SessionInfo};
use crate::stages::{Recorder, Stage, Stamp};
use crate::stomp::BrokerHost;
use crate::wakeup::Wakeup;

/// Longest time without a look at the deadlines, for want of any.
const LONG: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub struct WebSocketBroker {
    company: RefCell<BrokerHost>,
    clock: RefCell<Clock>,
    /// None: nothing is stamped.
    recorder: RefCell<Option<Recorder>>,
    /// By slot of the session.
    chairs: RefCell<Vec<Option<ClientTask>>>,
    /// Of this thread: whoever passes notes and wishes on may be asleep.
    bell: Wakeup,
    /// The deadline that is waited for.
    due: Cell<Timestamp>,
    /// There is an earlier one.
    sooner: Notify,
}

/// What serves a client.
#[derive(Debug)]
struct ClientTask {
    session: SessionId,
    /// The task that writes to it.
    task: Option<Waker>,
    /// The task has somebody find out who this is.
    login: Option<Credentials>,
}

impl WebSocketBroker {
    pub fn new(
        settings: BrokerSettings,
        reference: Arc<RefData>,
        bell: Wakeup,
        clock: Clock,
        recorder: Option<Recorder>,
        roll: RevocationWatch,
    ) -> WebSocketBroker {
        WebSocketBroker {
            company: RefCell::new(BrokerHost::new(settings, reference, Transport::WebSocket, Some(roll))),
            clock: RefCell::new(clock),
            recorder: RefCell::new(recorder),
            chairs: RefCell::default(),
            bell,
            due: Cell::new(Timestamp::MAX),
            sooner: Notify::new(),
        }
    }

    pub fn now(&self) -> Timestamp {
        self.clock.borrow_mut().now()
    }

    pub fn has_guests(&self) -> bool {
        self.chairs.borrow().iter().any(Option::is_some)
    }

    /// The moment, if this turn is one of those that are looked at.
    pub fn sample(&self) -> Option<Stamp> {
        self.recorder.borrow_mut().as_mut().and_then(Recorder::sample_turn)
    }

    /// Counts what a stage took, if its begin was stamped.
    pub fn count(&self, stage: Stage, from: Option<Stamp>) {
        if let (Some(from), Some(recorder)) = (from, self.recorder.borrow_mut().as_mut()) {
            recorder.count(stage, from, recorder.stamp());
        }
    }

    /// Hands over what was counted when it is time.
    pub fn poll_stages(&self) {
        if let Some(recorder) = self.recorder.borrow_mut().as_mut() {
            recorder.poll(self.now());
        }
    }

    /// Not to be held over an await.
    pub fn broker(&self) -> RefMut<'_, StompBroker> {
        RefMut::map(self.company.borrow_mut(), |company| &mut company.broker)
    }

    /// New reference data, in force in all shards.
    pub fn adopt(&self, reference: &Arc<RefData>) {
        self.company.borrow_mut().adopt(reference);
    }

    /// To be followed by [`WebSocketBroker::settle`] when all of a turn was heard.
    pub fn hear(&self, now: Timestamp, shard: ShardId, event: &Event) {
        self.broker().handle_event(now, shard, event);
    }

    pub fn enter(&self, peer: SocketAddr) -> Option<SessionId> {
        let session = self.company.borrow_mut().enter(self.now(), peer)?;
        let mut chairs = self.chairs.borrow_mut();
        if chairs.len() <= session.slot() {
            chairs.resize_with(session.slot() + 1, || None);
        }
        chairs[session.slot()] = Some(ClientTask { session, task: None, login: None });
        drop(chairs);
        self.settle();
        Some(session)
    }

    pub fn leave(&self, session: SessionId) {
        self.with_chair(session, |chair| *chair = None);
        self.company.borrow_mut().leave(session);
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
    pub fn handle_verdict(&self, session: SessionId, known: Option<(Arc<str>, StompAccess)>) {
        self.company.borrow_mut().handle_verdict(self.now(), session, known);
        self.settle();
    }

    /// Tells a note to those who want it. To be followed by [`WebSocketBroker::settle`].
    pub fn tell(&self, note: &Notification) {
        self.company.borrow_mut().handle_note(self.now(), note);
    }

    /// What a client here says to all.
    pub fn take_note(&self) -> Option<Notification> {
        self.company.borrow_mut().take_note()
    }

    /// Notes of clients for which there was no room.
    pub fn dropped(&self) -> u64 {
        self.company.borrow().dropped()
    }

    /// Tells the shards what clients here want to see.
    pub fn poll_watches(&self, port: &mut PortEnd) -> usize {
        self.company.borrow_mut().poll_watches(port)
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
    pub fn each(&self, show: impl FnMut(SessionInfo)) {
        self.company.borrow().rows().for_each(show);
    }

    /// Ends the session that is meant; false if there is none.
    pub fn kick(&self, is_meant: impl Fn(&SessionInfo) -> bool) -> bool {
        let mut company = self.company.borrow_mut();
        let Some(number) = company.rows().find(is_meant).map(|row| row.number) else { return false };
        let is_here = company.kick(self.now(), number);
        drop(company);
        self.settle();
        is_here
    }

    /// Whoever was struck off the books is sent away. Says how many that were.
    pub fn revoke(&self) -> usize {
        let struck = self.company.borrow_mut().revoke(self.now());
        if struck > 0 {
            self.settle();
        }
        struck
    }

    fn with_chair<R>(&self, session: SessionId, act: impl FnOnce(&mut Option<ClientTask>) -> R) -> Option<R> {
        let mut chairs = self.chairs.borrow_mut();
        let chair = chairs.get_mut(session.slot())?;
        let is_his = chair.as_ref().is_some_and(|chair| chair.session == session);
        is_his.then(|| act(chair))
    }

    /// After anything that happened to the broker: does what it asks for, wakes those who have something to write.
    pub fn settle(&self) {
        let mut company = self.company.borrow_mut();
        company.dispatch(self.now(), |session, credentials| self.ask(session, credentials));
        if company.is_waiting() {
            self.bell.wake();
        }
        let chairs = self.chairs.borrow();
        while let Some(session) = company.broker.poll_active() {
            if let Some(Some(ClientTask { task: Some(task), .. })) = chairs.get(session.slot()) {
                task.wake_by_ref();
            }
        }
        if company.broker.poll_timeout().is_some_and(|next| next < self.due.get()) {
            self.sooner.notify_one();
        }
    }

    /// Gives a login to the task of its client; from there it goes on.
    fn ask(&self, session: SessionId, credentials: Credentials) -> bool {
        let given = self.with_chair(session, |chair| {
            let chair = chair.as_mut()?;
            chair.login = Some(credentials);
            chair.task.iter().for_each(Waker::wake_by_ref);
            Some(())
        });
        given.flatten().is_some()
    }

    /// What is due is done; whoever is called for something else looks at the clock too, and says whether it was late.
    pub fn poll_timeout(&self) -> usize {
        let is_due = self.broker().poll_timeout().is_some_and(|due| due <= self.now());
        if is_due {
            self.handle_timeout();
        }
        usize::from(is_due)
    }

    fn handle_timeout(&self) {
        let now = self.now();
        self.broker().handle_timeout(now);
        self.settle();
    }
}

/// Lets the broker know when its deadlines have come.
pub async fn keep_time(hall: Rc<WebSocketBroker>) {
    loop {
        let next = hall.broker().poll_timeout().unwrap_or(Timestamp::MAX);
        hall.due.set(next);
        let wait = Duration::from_nanos(next.since(hall.now())).min(LONG);
        if timeout(wait, hall.sooner.notified()).await.is_err() {
            hall.handle_timeout();
        }
    }
}
