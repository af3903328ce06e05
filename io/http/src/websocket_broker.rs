//! The STOMP broker of this thread, for WebSocket clients. Events reach it after the view. Each
//! client has a task of its own, which is woken when there is something to write.
//!
//! ```text
//! ShardClient ─ Event ─► WebSocketBroker: BrokerHost ─ active ─► client tasks (`websocket`)
//!                           └─ deadlines ─► run_timers
//! ```

use std::cell::{Cell, RefCell, RefMut};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use pitlane_auth::{Credentials, RevocationWatch};
use pitlane_engine::event::Event;
use pitlane_engine::id::{SecurityId, ShardId};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::refdata::RefData;
use pitlane_engine::slot_table::SlotTable;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::notifications::{Notification, SessionInfo};
use pitlane_gateway::stomp::BrokerHost;
use pitlane_protocols::stomp::access::StompAccess;
use pitlane_protocols::stomp::broker::{SessionId, StompBroker};
use pitlane_protocols::stomp::session::Transport;
use pitlane_protocols::stomp::settings::BrokerSettings;
use pitlane_protocols::stomp::throttle::Throttle;
use pitlane_runtime::clock::Clock;
use pitlane_runtime::stages::{CounterStamp, LatencyRecorder, LatencyStage};
use pitlane_runtime::wakeup::Wakeup;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::depth_watches::DepthWatches;

/// Longest wait between two checks of the deadlines, when there are none.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub(crate) struct WebSocketBroker {
    broker_host: RefCell<BrokerHost>,
    clock: RefCell<Clock>,
    /// Latency recorder; `None`: nothing is stamped.
    recorder: RefCell<Option<LatencyRecorder>>,
    client_tasks: RefCell<SlotTable<SessionId, ClientTask>>,
    /// Wakes this thread, which forwards notifications and watches and may be parked.
    wakeup: Wakeup,
    /// The deadline that is waited for.
    due: Cell<Timestamp>,
    /// Notified when there is an earlier deadline.
    earlier_deadline: Notify,
    /// Books of clients that poll them over REST.
    pub(crate) depth_watches: DepthWatches,
}

/// What serves a client.
#[derive(Debug, Default)]
struct ClientTask {
    /// The task that writes to the client.
    task: Option<Waker>,
    /// Credentials that the task has yet to send for verification.
    login: Option<Credentials>,
}

impl WebSocketBroker {
    pub(crate) fn new(
        settings: BrokerSettings,
        reference: Arc<RefData>,
        wakeup: Wakeup,
        clock: Clock,
        recorder: Option<LatencyRecorder>,
        revocations: RevocationWatch,
    ) -> WebSocketBroker {
        WebSocketBroker {
            broker_host: RefCell::new(BrokerHost::new(
                settings,
                reference,
                Transport::WebSocket,
                Some(revocations),
            )),
            clock: RefCell::new(clock),
            recorder: RefCell::new(recorder),
            client_tasks: RefCell::default(),
            wakeup,
            due: Cell::new(Timestamp::MAX),
            earlier_deadline: Notify::new(),
            depth_watches: DepthWatches::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.borrow_mut().now()
    }

    pub(crate) fn has_clients(&self) -> bool {
        !self.client_tasks.borrow().is_empty()
    }

    /// Returns the current stamp if this cycle is sampled.
    pub(crate) fn sample(&self) -> Option<CounterStamp> {
        self.recorder.borrow_mut().as_mut().and_then(LatencyRecorder::sample_cycle)
    }

    /// Records the duration of a stage if its begin was stamped.
    pub(crate) fn count(&self, stage: LatencyStage, from: Option<CounterStamp>) {
        if let (Some(from), Some(recorder)) = (from, self.recorder.borrow_mut().as_mut()) {
            recorder.count(stage, from, recorder.stamp());
        }
    }

    /// Hands over the recorded durations when it is time.
    pub(crate) fn poll_stages(&self) {
        if let Some(recorder) = self.recorder.borrow_mut().as_mut() {
            recorder.poll(self.now());
        }
    }

    /// Returns the broker. It must not be held across an await.
    pub(crate) fn broker(&self) -> RefMut<'_, StompBroker> {
        RefMut::map(self.broker_host.borrow_mut(), |broker_host| &mut broker_host.broker)
    }

    /// Replaces the reference data by data that is in force in all shards.
    pub(crate) fn set_reference(&self, reference: &Arc<RefData>) {
        self.broker_host.borrow_mut().set_reference(reference);
    }

    /// Receives the depth of all securities from now on, for a recording.
    pub(crate) fn keep_depths(&self) {
        self.broker_host.borrow_mut().keep_depths();
    }

    /// Handles one event. [`WebSocketBroker::flush`] must follow once all events of a cycle are
    /// handled.
    pub(crate) fn handle_event(&self, now: Timestamp, shard: ShardId, event: &Event) {
        self.broker().handle_event(now, shard, event);
    }

    pub(crate) fn add_client(&self, peer: SocketAddr) -> Option<SessionId> {
        let session = self.broker_host.borrow_mut().enter(self.now(), peer)?;
        self.client_tasks.borrow_mut().insert(session, ClientTask::default());
        self.flush();
        Some(session)
    }

    pub(crate) fn remove_client(&self, session: SessionId) {
        self.client_tasks.borrow_mut().remove(session);
        self.broker_host.borrow_mut().leave(session);
        self.flush();
    }

    /// Sets the task that writes to a session from now on.
    pub(crate) fn set_task(&self, session: SessionId, task: &Waker) {
        if let Some(client_task) = self.client_tasks.borrow_mut().get_mut(session) {
            client_task.task = Some(task.clone());
        }
    }

    /// Takes the credentials that are to be verified, once.
    pub(crate) fn take_login(&self, session: SessionId) -> Option<Credentials> {
        self.client_tasks.borrow_mut().get_mut(session)?.login.take()
    }

    /// Handles the result of a login; `None` means refused.
    pub(crate) fn handle_verdict(&self, session: SessionId, known: Option<(Arc<str>, StompAccess)>) {
        self.broker_host.borrow_mut().handle_verdict(self.now(), session, known);
        self.flush();
    }

    /// Sends a notification to its subscribers. [`WebSocketBroker::flush`] must follow.
    pub(crate) fn handle_notification(&self, notification: &Notification) {
        self.broker_host.borrow_mut().handle_notification(self.now(), notification);
    }

    /// Takes a notification that a client here sends to all.
    pub(crate) fn take_notification(&self) -> Option<Notification> {
        self.broker_host.borrow_mut().take_notification()
    }

    /// Returns the number of notifications of clients that were dropped for lack of room.
    pub(crate) fn dropped(&self) -> u64 {
        self.broker_host.borrow().dropped()
    }

    /// Returns the number of sessions closed because the client did not read fast enough.
    pub(crate) fn closed_slow(&self) -> u64 {
        self.broker_host.borrow().closed_slow()
    }

    /// Returns what a client misses whose book of a security has the sequence number `since`, as
    /// JSON; `None` while the book is not known here.
    pub(crate) fn depth(&self, security: SecurityId, since: Option<u64>) -> Option<Vec<u8>> {
        let (is_new, ended) = self.depth_watches.begin(security, self.now());
        if let Some(ended) = ended {
            self.broker().keep_levels(ended, false);
        }
        if is_new {
            self.broker().keep_levels(security, true);
            self.flush();
        }
        self.broker().depth_since(security, since).map(<[u8]>::to_vec)
    }

    /// Ends the watches of books that no client has polled for a while.
    pub(crate) fn end_unused_depths(&self) {
        let now = self.now();
        while let Some(security) = self.depth_watches.take_unused(now) {
            self.broker().keep_levels(security, false);
            self.flush();
        }
    }

    /// Sends the subscriptions of the clients here to the shards.
    pub(crate) fn poll_watches(&self, port: &mut PortEnd) -> usize {
        self.broker_host.borrow_mut().poll_watches(port)
    }

    pub(crate) fn throttle(&self) -> Throttle {
        self.broker().throttle()
    }

    pub(crate) fn set_throttle(&self, throttle: Throttle) {
        let now = self.now();
        self.broker().set_throttle(now, throttle);
        self.flush();
    }

    /// Calls `visit` for every session here.
    pub(crate) fn for_each_session(&self, visit: impl FnMut(SessionInfo)) {
        self.broker_host.borrow().rows().for_each(visit);
    }

    /// Ends the session that `is_selected` selects; returns false if there is none.
    pub(crate) fn kick(&self, is_selected: impl Fn(&SessionInfo) -> bool) -> bool {
        let mut broker_host = self.broker_host.borrow_mut();
        let Some(number) = broker_host.rows().find(is_selected).map(|row| row.number) else { return false };
        let is_ended = broker_host.kick(self.now(), number);
        drop(broker_host);
        self.flush();
        is_ended
    }

    /// Disconnects the clients whose credentials were revoked, and returns how many there were.
    pub(crate) fn revoke(&self) -> usize {
        let revoked = self.broker_host.borrow_mut().revoke(self.now());
        if revoked > 0 {
            self.flush();
        }
        revoked
    }

    /// Executes the broker's requests and wakes the tasks that have something to write. Must follow
    /// every change of the broker.
    pub(crate) fn flush(&self) {
        let mut broker_host = self.broker_host.borrow_mut();
        broker_host.dispatch(self.now(), |session, credentials| self.pass_login(session, credentials));
        if broker_host.is_waiting() {
            self.wakeup.wake();
        }
        let client_tasks = self.client_tasks.borrow();
        while let Some(session) = broker_host.broker.poll_active() {
            if let Some(ClientTask { task: Some(task), .. }) = client_tasks.get(session) {
                task.wake_by_ref();
            }
        }
        if broker_host.broker.poll_timeout().is_some_and(|next| next < self.due.get()) {
            self.earlier_deadline.notify_one();
        }
        self.depth_watches.notify();
    }

    /// Gives a login to the task of its client, which has it verified.
    fn pass_login(&self, session: SessionId, credentials: Credentials) -> bool {
        let mut client_tasks = self.client_tasks.borrow_mut();
        let Some(client_task) = client_tasks.get_mut(session) else { return false };
        client_task.login = Some(credentials);
        client_task.task.iter().for_each(Waker::wake_by_ref);
        true
    }

    /// Handles a deadline that has passed and returns whether there was one. A thread that was
    /// woken for another reason checks the clock too.
    pub(crate) fn poll_timeout(&self) -> usize {
        let is_due = self.broker().poll_timeout().is_some_and(|due| due <= self.now());
        if is_due {
            self.handle_timeout();
        }
        usize::from(is_due)
    }

    fn handle_timeout(&self) {
        let now = self.now();
        self.broker().handle_timeout(now);
        self.flush();
    }
}

/// Calls the broker when its deadlines have come.
pub(crate) async fn run_timers(ws_broker: Rc<WebSocketBroker>) {
    loop {
        let next = ws_broker.broker().poll_timeout().unwrap_or(Timestamp::MAX);
        ws_broker.due.set(next);
        let wait = Duration::from_nanos(next.since(ws_broker.now())).min(WAIT_MAX);
        if timeout(wait, ws_broker.earlier_deadline.notified()).await.is_err() {
            ws_broker.handle_timeout();
        }
    }
}
