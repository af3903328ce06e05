//! The STOMP broker of this thread, for WebSocket clients. Events reach it after the view. Each
//! client has a task of its own, which is woken when there is something to write.
//!
//! ```text
//! ShardClient ─ Event ─► WebSocketBroker: BrokerHost ─ active ─► client tasks (`websocket`)
//!                           └─ deadlines ─► keep_time
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
use crate::stages::{CounterStamp, LatencyRecorder, LatencyStage};
use crate::stomp::BrokerHost;
use crate::wakeup::Wakeup;

/// Longest wait between two checks of the deadlines, when there are none.
const LONG: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub struct WebSocketBroker {
    company: RefCell<BrokerHost>,
    clock: RefCell<Clock>,
    /// Latency recorder; `None`: nothing is stamped.
    recorder: RefCell<Option<LatencyRecorder>>,
    /// Tasks of the clients, by slot of the session.
    chairs: RefCell<Vec<Option<ClientTask>>>,
    /// Wakes this thread, which forwards notifications and watches and may be parked.
    bell: Wakeup,
    /// The deadline that is waited for.
    due: Cell<Timestamp>,
    /// Notified when there is an earlier deadline.
    sooner: Notify,
}

/// What serves a client.
#[derive(Debug)]
struct ClientTask {
    session: SessionId,
    /// The task that writes to the client.
    task: Option<Waker>,
    /// Credentials that the task has yet to send for verification.
    login: Option<Credentials>,
}

impl WebSocketBroker {
    pub fn new(
        settings: BrokerSettings,
        reference: Arc<RefData>,
        bell: Wakeup,
        clock: Clock,
        recorder: Option<LatencyRecorder>,
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

    /// Returns the current stamp if this cycle is sampled.
    pub fn sample(&self) -> Option<CounterStamp> {
        self.recorder.borrow_mut().as_mut().and_then(LatencyRecorder::sample_cycle)
    }

    /// Records the duration of a stage if its begin was stamped.
    pub fn count(&self, stage: LatencyStage, from: Option<CounterStamp>) {
        if let (Some(from), Some(recorder)) = (from, self.recorder.borrow_mut().as_mut()) {
            recorder.count(stage, from, recorder.stamp());
        }
    }

    /// Hands over the recorded durations when it is time.
    pub fn poll_stages(&self) {
        if let Some(recorder) = self.recorder.borrow_mut().as_mut() {
            recorder.poll(self.now());
        }
    }

    /// Returns the broker. It must not be held across an await.
    pub fn broker(&self) -> RefMut<'_, StompBroker> {
        RefMut::map(self.company.borrow_mut(), |company| &mut company.broker)
    }

    /// Replaces the reference data by data that is in force in all shards.
    pub fn adopt(&self, reference: &Arc<RefData>) {
        self.company.borrow_mut().adopt(reference);
    }

    /// Handles one event. [`WebSocketBroker::settle`] must follow once all events of a cycle are
    /// handled.
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

    /// Sets the task that writes to a session from now on.
    pub fn set_task(&self, session: SessionId, task: &Waker) {
        self.with_chair(session, |chair| {
            if let Some(chair) = chair {
                chair.task = Some(task.clone());
            }
        });
    }

    /// Takes the credentials that are to be verified, once.
    pub fn take_login(&self, session: SessionId) -> Option<Credentials> {
        self.with_chair(session, |chair| chair.as_mut()?.login.take())?
    }

    /// Handles the result of a login; `None` means refused.
    pub fn handle_verdict(&self, session: SessionId, known: Option<(Arc<str>, StompAccess)>) {
        self.company.borrow_mut().handle_verdict(self.now(), session, known);
        self.settle();
    }

    /// Sends a notification to its subscribers. [`WebSocketBroker::settle`] must follow.
    pub fn tell(&self, note: &Notification) {
        self.company.borrow_mut().handle_notification(self.now(), note);
    }

    /// Takes a notification that a client here sends to all.
    pub fn take_note(&self) -> Option<Notification> {
        self.company.borrow_mut().take_notification()
    }

    /// Returns the number of notifications of clients that were dropped for lack of room.
    pub fn dropped(&self) -> u64 {
        self.company.borrow().dropped()
    }

    /// Sends the subscriptions of the clients here to the shards.
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

    /// Calls `show` for every session here.
    pub fn each(&self, show: impl FnMut(SessionInfo)) {
        self.company.borrow().rows().for_each(show);
    }

    /// Ends the session that `is_meant` selects; returns false if there is none.
    pub fn kick(&self, is_meant: impl Fn(&SessionInfo) -> bool) -> bool {
        let mut company = self.company.borrow_mut();
        let Some(number) = company.rows().find(is_meant).map(|row| row.number) else { return false };
        let is_here = company.kick(self.now(), number);
        drop(company);
        self.settle();
        is_here
    }

    /// Disconnects the clients whose credentials were revoked, and returns how many there were.
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

    /// Executes the broker's requests and wakes the tasks that have something to write. Must follow
    /// every change of the broker.
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

    /// Gives a login to the task of its client, which has it verified.
    fn ask(&self, session: SessionId, credentials: Credentials) -> bool {
        let given = self.with_chair(session, |chair| {
            let chair = chair.as_mut()?;
            chair.login = Some(credentials);
            chair.task.iter().for_each(Waker::wake_by_ref);
            Some(())
        });
        given.flatten().is_some()
    }

    /// Handles a deadline that has passed and returns whether there was one. A thread that was
    /// woken for another reason checks the clock too.
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

/// Calls the broker when its deadlines have come.
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
