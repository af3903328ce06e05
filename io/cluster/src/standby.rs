//! A warm standby: two servers with the same settings, each with its own data folder. One leads and
//! serves clients; the other follows, and takes over when the first is silent for a lease.
//!
//! ```text
//!  leader                                   broker (JetStream)                   follower
//!  journal, notes, stores ── messages ──►  one stream: the folder  ── messages ──►  the same files
//!        ▲                                        │                              in its own folder
//!        └── shipped: acknowledge ◄── stored ─────┘
//! ```
//!
//! - **The stream contains the folder.** Every change of a file that a start needs is a
//!   [`message`]. The follower writes the same files, so that taking over is an ordinary start on
//!   its own folder. Files that a snapshot makes unnecessary are removed from the stream too.
//! - **The stream is the fence.** Every message is stored under the condition that it directly
//!   follows the last message that the sender knows. A server takes the lead by storing a lead
//!   message with the next epoch. From then on the broker refuses the previous leader, however long
//!   that was paused or cut off.
//! - **The messages are the lease.** The leader stores a message three times per lease, a heartbeat
//!   if there is nothing else. The follower takes the lead when it has read everything and received
//!   nothing for a lease. The leader stops when none of its messages was stored for a lease,
//!   counted from the time of sending. No two clocks are compared, and safety depends on the fence
//!   alone.
//! - **The journal is the record.** It is on the leader's own disk as with level `disk`; the stream
//!   is a copy. A leader that restarts and finds that no other server has led since continues with
//!   its own folder, and sends what the stream lacks. If another server has led, it reads the
//!   stream beside its folder, and follows once the stream contains everything that it had
//!   acknowledged; the folder is then in `DATA/standby/before`.
//! - **A copy is kept until the stream contains it.** A broker may come back with older data, or
//!   with none. Then the copy of a follower, or the folder of the last leader, is longer than the
//!   stream: that server leads and restores the stream. The server that led before goes first; a
//!   follower waits four leases for it. If each has records that the other lacks, the server ends
//!   with instructions, and an operator decides with `pitlane standby`. [`verdict`] has the table.
//! - **A server that led waits, too.** When it starts, the stream may name it as the last leader
//!   only because the broker has lost that another server led since. So it leads at once only while
//!   its last own lease runs; otherwise it waits two leases for the other. A follower that has not
//!   seen a leader alive since the broker is connected waits three.
//!   A follower that restarts continues from the position of its copy, if the stream still has the
//!   same history up to there.
//!
//! **Messages from outside the group are ignored.** A broker stores everything that is published on
//! the subjects of a stream. Readers skip messages that no server of the group sent, and the leader
//! continues behind them; they neither end nor renew a lease. [`origin`] identifies them.
//!
//! A leader that must not continue restarts its process, as if it had been killed: no
//! unacknowledged output leaves it.
//!
//! **Requirements on the broker.** The broker acknowledges a message when it has written it, and by
//! default syncs its files every two minutes (`sync_interval`). `sync_interval: always`
//! (nats-server 2.10 or later) syncs before the acknowledgement; three replicas
//! (`standby.replicas`) make it unlikely that all lose the same message. A client can see the
//! replicas, storage and limits of the stream, but not `sync_interval`. Therefore the start and
//! `pitlane doctor` warn of a single replica at level `replicated` until the operator confirms
//! `standby.broker_syncs`. [`broker`] has the checks.
//!
//! **When the broker's storage is full,** its error is logged, orders are refused and cancels are
//! accepted: two megabytes of the stream are reserved for them. When there is space again, orders
//! are accepted again. If not even a cancel can be stored for a lease, the leader stops, and leads
//! again when it can store a lead message. A snapshot is sent only when the reserve is complete, so
//! that it does not take this space; a new leader sends it before it serves only if a copy is not
//! usable without it.
//!
//! Possible losses, in addition to those described in `journal`:
//!
//! | failure | level `replicated` | lower levels |
//! |---|---|---|
//! | the leader, or its machine | nothing that was acknowledged | what was not sent yet: some milliseconds |
//! | the path from the leader to the broker | nothing; the leader acknowledges nothing more and stops after a lease | the same as above |
//! | the broker for a while | nothing; no server serves until it is back, then the same server leads | the same |
//! | the broker comes back with older data, or none | nothing: the leader sends it again | the same |
//! | the same, and the leader is gone | what the follower had not read: some milliseconds. The follower leads; the old leader requires an operator when it is back | the same as above |
//!
//! When a leader's machine loses its power, up to a second of what the broker acknowledged is not
//! recorded in its folder. At level `replicated` all of its records then count as acknowledged: if
//! the stream lacks one of them, the server requires an operator. Whenever a leader's folder is
//! replaced, the log has the number of records that the stream lacks.
//!
//! This holds for two servers. In a larger group, a follower that lags may lead before one with a
//! longer copy; the latter then requires an operator.
//!
//! The follower's copy of FIX sessions lags by some ten milliseconds. Therefore it starts as after
//! a loss of power: with higher sequence numbers, which a gap fill explains, and with reports that
//! may be sent twice. After an orderly shutdown of the leader this is not needed, because
//! everything was sent. Each server has its own log, certificate, users and audit log; reference
//! data comes from its own files.
//!
//! Rules: docs/operations.md#standby.

pub mod broker;
mod changes;
mod cursor;
mod follower;
mod manifest;
mod node;
mod origin;
mod overlap;
mod message;
mod health_server;
mod position;
mod reading;
mod replica;
mod scan;
mod leader;
pub mod state;
mod stream;
pub mod cli;
mod verdict;
mod window;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self as lanes, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pitlane_config::{Config, Durability};
use pitlane_journal::Health;
use pitlane_runtime::lifecycle::{Lifecycle, StopReason};
use pitlane_runtime::thread_class::ThreadClass;
use pitlane_runtime::wakeup::Wakeup;
use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use self::follower::{Follower, WonLead};
use self::health_server::StandbyHealthServer;
use self::leader::{LeadEnd, Shipper, ShipperCommand};
use self::node::{GroupMember, Takeover};
use self::state::StandbyState;
use self::stream::GroupStream;
use crate::nats::link::{self, BrokerHealth};
use crate::nats::rights;
use crate::nats::subjects::Subjects;

/// Capacity of the command channel. A process sends three commands.
const COMMANDS_MAX: usize = 4;
/// Pause between two attempts to open the stream.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// Divisor of the lease that gives the timeout of the broker's answers.
const TIMEOUTS_PER_LEASE: u32 = 3;

/// The main thread's handle to the thread `standby`.
#[derive(Debug)]
pub struct StandbyHandle {
    state: Arc<StandbyState>,
    events: lanes::Receiver<StandbyEvent>,
    commands: mpsc::Sender<ShipperCommand>,
    wakeup: Wakeup,
    thread: Option<JoinHandle<()>>,
    /// Lock on the folder: while it is held no other process opens the folder.
    member: Option<GroupMember>,
}

/// An event from the thread to main.
#[derive(Debug)]
enum StandbyEvent {
    /// The server follows, and serves its health at this address.
    Follows(Option<std::net::SocketAddr>),
    /// The server leads: what must be on disk before the folder is opened.
    Leads(Box<Lead>),
    /// The whole folder is with the broker.
    Shipped,
}

#[derive(Debug)]
struct Lead {
    epoch: u64,
    /// Sequence number of the lead message.
    seq: u64,
    member: GroupMember,
    takeover: Takeover,
}

/// Progress, as [`StandbyHandle::poll_event`] reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyProgress {
    Waiting,
    /// The server follows; the address of the health server.
    Follows(Option<std::net::SocketAddr>),
    /// The folder may be opened.
    Leads,
    /// The whole folder is with the broker.
    Shipped,
}

impl StandbyHandle {
    /// Starts the thread; returns `None` if no group is configured.
    pub fn open(config: &Config, lifecycle: &Arc<Lifecycle>) -> io::Result<Option<StandbyHandle>> {
        let Some(group) = config.standby.group.clone() else { return Ok(None) };
        let member = GroupMember::open(&config.service.data_dir)?;
        let state = Arc::new(StandbyState::default());
        let (event_sender, events) = lanes::sync_channel(COMMANDS_MAX);
        let (commands, received) = mpsc::channel(COMMANDS_MAX);
        let notify = Arc::new(Notify::new());
        let notified = notify.clone();
        let wakeup = Wakeup::new(move || notified.notify_one());
        let task = StandbyTask {
            config: config.clone(),
            group,
            data: config.service.data_dir.clone(),
            lease: Duration::from_millis(config.standby.lease_ms as u64),
            state: state.clone(),
            events: event_sender,
            wakeup: wakeup.clone(),
            notify,
            lifecycle: lifecycle.clone(),
        };
        let thread = thread::Builder::new().name("standby".to_string()).spawn(move || {
            // At the level `replicated` orders wait for it.
            ThreadClass::Orders.apply();
            task.run(member, received);
        })?;
        Ok(Some(StandbyHandle { state, events, commands, wakeup, thread: Some(thread), member: None }))
    }

    pub fn state(&self) -> &Arc<StandbyState> {
        &self.state
    }

    /// Returns the wake-up to trigger when something was written.
    pub fn wakeup(&self) -> &Wakeup {
        &self.wakeup
    }

    /// Returns the next event, if any. The thread wakes main for each event.
    pub fn poll_event(&mut self) -> io::Result<StandbyProgress> {
        match self.events.try_recv() {
            Ok(StandbyEvent::Follows(address)) => Ok(StandbyProgress::Follows(address)),
            Ok(StandbyEvent::Leads(lead)) => {
                let Lead { epoch, seq, mut member, takeover } = *lead;
                member.lead(epoch, seq, takeover)?;
                tracing::info!(epoch, "this server leads");
                self.member = Some(member);
                Ok(StandbyProgress::Leads)
            }
            Ok(StandbyEvent::Shipped) => Ok(StandbyProgress::Shipped),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(StandbyProgress::Waiting),
        }
    }

    /// Starts shipping the journal, which is open now.
    pub fn ship(&self, healths: Vec<Arc<Health>>) {
        self.send_command(ShipperCommand::Ship(healths));
    }

    /// Sets the wake-ups that are triggered when records of a shard are acknowledged.
    pub fn set_shard_wakeups(&self, shards: Vec<Wakeup>) {
        self.send_command(ShipperCommand::SetWakeups(shards));
    }

    fn send_command(&self, command: ShipperCommand) {
        // If sending fails, the thread has ended and reported the reason.
        let _ = self.commands.try_send(command);
    }
}

impl Drop for StandbyHandle {
    /// Sends the rest, and lets the next server lead at once.
    fn drop(&mut self) {
        self.send_command(ShipperCommand::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The state of the thread `standby`.
struct StandbyTask {
    config: Config,
    group: String,
    data: PathBuf,
    lease: Duration,
    state: Arc<StandbyState>,
    events: lanes::SyncSender<StandbyEvent>,
    wakeup: Wakeup,
    notify: Arc<Notify>,
    lifecycle: Arc<Lifecycle>,
}

impl StandbyTask {
    fn run(self, member: GroupMember, commands: mpsc::Receiver<ShipperCommand>) {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                return self.lifecycle.stop(StopReason::Failed(format!("the thread standby: {error}")));
            }
        };
        match runtime.block_on(self.serve(member, commands)) {
            Ok(LeadEnd::Ended) => {}
            Ok(LeadEnd::Deposed(why)) => self.lifecycle.stop(StopReason::Deposed(why)),
            Err(why) => self.lifecycle.stop(StopReason::Failed(format!("standby: {why}"))),
        }
    }

    async fn serve(
        &self,
        member: GroupMember,
        mut commands: mpsc::Receiver<ShipperCommand>,
    ) -> Result<LeadEnd, String> {
        let name = format!("pitlane {} standby {}", self.config.service.name, self.group);
        let subjects = Subjects::of(&self.config.nats, &self.config.service);
        let opened = link::open(&self.config.nats.between_servers(), &name, subjects.server_inbox()).await;
        let (client, broker_health) = opened.map_err(|error| error.to_string())?;
        let health_server = self.open_health_server().await;
        self.send_event(StandbyEvent::Follows(
            health_server.as_ref().and_then(|health_server| health_server.address().ok()),
        ));
        let following = self.follow(&client, broker_health.clone(), member);
        let serving = async {
            match health_server {
                Some(health_server) => health_server.serve(self.state.clone()).await,
                None => std::future::pending().await,
            }
        };
        let won = tokio::select! {
            won = following => Some(won?),
            () = serving => return Err("the health server of the standby has stopped".to_string()),
            // Before the lead is won, the only possible command is to end.
            _ = commands.recv() => None,
        };
        let Some((stream, won)) = won else {
            // The next start can then continue with the copy even after a reboot of the machine.
            let synced = replica::sync(&self.data).and_then(|()| position::mark_synced(&self.data));
            return synced.map(|()| LeadEnd::Ended).map_err(|error| error.to_string());
        };
        let node = won.member.node;
        let takeover = Takeover { is_copy: won.is_copy, released: won.released };
        let lead = Lead { epoch: won.epoch, seq: won.seq, member: won.member, takeover };
        let shipper = Shipper::new(
            leader::LeadStart {
                node,
                epoch: won.epoch,
                seq: won.seq,
                id: won.id,
                at: won.at,
                manifest: won.manifest,
            },
            stream,
            &self.data,
            self.lease,
            broker_health,
        );
        self.send_event(StandbyEvent::Leads(Box::new(lead)));
        let (events, lifecycle) = (self.events.clone(), self.lifecycle.clone());
        let shipped = Box::new(move || {
            let _ = events.try_send(StandbyEvent::Shipped);
            lifecycle.wake_main();
        });
        let shipper = shipper.reporting_to(self.state.clone(), shipped);
        shipper.run(&mut commands, &self.notify, &self.wakeup).await
    }

    /// Opens the health server. A failure does not affect anything else.
    async fn open_health_server(&self) -> Option<StandbyHealthServer> {
        let address = self.config.http.listen?;
        let opened = StandbyHealthServer::open(address).await;
        opened
            .inspect_err(
                |error| tracing::warn!(%address, %error, "the health server cannot listen at http.listen"),
            )
            .ok()
    }

    async fn follow(
        &self,
        client: &async_nats::Client,
        broker_health: Arc<BrokerHealth>,
        member: GroupMember,
    ) -> Result<(GroupStream, WonLead), String> {
        let names = Subjects::of(&self.config.nats, &self.config.service).standby(&self.group);
        let (replicas, timeout) = (self.config.standby.replicas, self.lease / TIMEOUTS_PER_LEASE);
        let secret = self.config.standby.secret.as_ref();
        let mut logged = String::new();
        let stream = loop {
            match GroupStream::open(client, names.clone(), replicas, timeout, secret).await {
                Ok(stream) => break stream,
                // While the broker is unreachable, this waits. An error that the broker returns
                // needs an operator.
                Err(error) => {
                    if broker_health.is_up() && error != logged {
                        tracing::error!(%error, "the stream of the standby cannot be opened: the server tries again");
                        logged = error;
                    }
                    sleep(RETRY_PAUSE).await;
                }
            }
        };
        self.check_rights(client, &broker_health).await;
        match stream.facts().await {
            Ok(facts) => facts.warnings(&self.config).into_iter().for_each(|warning| {
                tracing::warn!(remedy = warning.remedy, "{}", warning.found);
            }),
            Err(error) => tracing::debug!(%error, "the broker does not report its limits"),
        }
        let follower = Follower {
            stream: stream.clone(),
            member,
            data: self.data.clone(),
            lease: self.lease,
            broker_health,
            state: self.state.clone(),
            is_replicated: self.config.durability() == Durability::Replicated,
        };
        Ok((stream, follower.follow().await?))
    }

    /// Checks that this login has the rights it needs. A server of strategies that receives one of
    /// the probes detects that both are in one account.
    async fn check_rights(&self, client: &async_nats::Client, broker_health: &BrokerHealth) {
        let subjects = Subjects::of(&self.config.nats, &self.config.service);
        rights::standby(&subjects, &self.group).probe(client).await;
        for violation in broker_health.violations() {
            tracing::error!(
                violation,
                "the login for the standby lacks a right: see config/nats/pitlane.conf"
            );
        }
        if !client.server_info().auth_required && !self.config.nats.is_loopback() {
            tracing::warn!("the broker requires no login: see config/nats/pitlane.conf");
        }
    }

    fn send_event(&self, event: StandbyEvent) {
        let _ = self.events.try_send(event);
        self.lifecycle.wake_main();
    }
}
