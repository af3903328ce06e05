//! What all hosts with sockets have in common: clients on the wire, and behind the host the shards
//! that publish events, a thread with notifications, and the authenticator that verifies logins.

use pitlane_auth::Authenticator;
use pitlane_engine::mesh::ShardEnd;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::notifications::{Notification, NotificationChannel};
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters};
use pitlane_protocols::stomp::throttle::Throttle;
use pitlane_tests::stomp::host::{ConnectionEnd, LoginVerdict, Publication, ReceivedFrames, StompHost};

use super::client::{ClientStep, Clog, RuleClient};
use super::{PORT, log_note};

/// Everything around a host.
pub(crate) struct HostParts {
    pub clients: Vec<RuleClient>,
    pub shards: Vec<ShardEnd>,
    pub post: NotificationChannel,
    pub authenticator: Authenticator,
}

impl HostParts {
    pub(crate) fn new(
        shards: Vec<ShardEnd>,
        post: NotificationChannel,
        authenticator: Authenticator,
    ) -> HostParts {
        HostParts { clients: Vec::new(), shards, post, authenticator }
    }

    /// Lets every client write and read, and returns how many of them did.
    pub(crate) fn poll(&mut self) -> usize {
        self.clients.iter_mut().filter_map(|client| client.poll().then_some(())).count()
    }

    /// Discards what the host sends to shards and other threads.
    pub(crate) fn ignore(&mut self) {
        self.shards.iter_mut().for_each(|shard| while shard.poll_command().is_some() {});
        while self.post.poll().is_some() {}
    }
}

/// A host with sockets.
pub(crate) trait SocketHost {
    fn parts(&mut self) -> &mut HostParts;

    fn connect(&mut self, now: Timestamp) -> Result<(), String>;

    /// Runs until nothing moves any more at this time.
    fn settle(&mut self, now: Timestamp);

    fn wait(&mut self, from: Timestamp, to: Timestamp);

    /// Runs until the connection of a client that reads again has ended, if it ends.
    fn settle_end(&mut self, now: Timestamp, client: usize);

    /// Ends the session of this client, as an operator does.
    fn kick(&mut self, client: usize);

    /// Sets other rates, as an operator does.
    fn set_rates(&mut self, throttle: &Throttle);

    fn look(&mut self, client: usize) -> Option<(StompCounters, BufferUsage)>;
}

/// A dialogue played over sockets.
pub(crate) struct OverSockets<W>(pub W);

impl<W: SocketHost> OverSockets<W> {
    fn client(&mut self, client: usize) -> &mut RuleClient {
        &mut self.0.parts().clients[client]
    }

    fn out_bytes(&mut self, client: usize) -> usize {
        self.0.look(client).map_or(0, |(_, fill)| fill.out_bytes)
    }
}

impl<W: SocketHost> StompHost for OverSockets<W> {
    fn connect(&mut self, now: Timestamp) -> Result<(), String> {
        self.0.connect(now)
    }

    fn send(&mut self, now: Timestamp, client: usize, bytes: &[u8]) {
        self.client(client).send(bytes);
        self.0.settle(now);
    }

    fn publish(&mut self, now: Timestamp, publications: &[Publication]) {
        for publications in publications {
            let HostParts { shards, post, .. } = self.0.parts();
            match publications {
                Publication::Event(shard, event) => shards[shard.0 as usize].send(PORT, *event).unwrap(),
                Publication::Log { level, message, fields } => {
                    post.send(log_note(now, *level, message, fields))
                }
                Publication::Link { name, link } => {
                    post.send(Notification::Link { name: name.as_str().into(), link: *link });
                }
                Publication::Ended(client) => self.0.kick(*client),
                Publication::Rates(throttle) => self.0.set_rates(throttle),
            }
        }
        self.0.settle(now);
    }

    fn wait(&mut self, from: Timestamp, to: Timestamp) {
        self.0.wait(from, to);
    }

    fn stall(&mut self, now: Timestamp, client: usize) -> Result<(), String> {
        self.client(client).is_stalled = true;
        let mut clog = Clog::default();
        loop {
            match clog.next(self.out_bytes(client))? {
                ClientStep::Say(bytes) => self.send(now, client, &bytes),
                ClientStep::Look => self.0.settle(now),
                ClientStep::Done => return Ok(()),
            }
        }
    }

    fn read(&mut self, now: Timestamp, client: usize, bytes_max: Option<usize>) {
        if bytes_max.is_none() {
            self.client(client).is_stalled = false;
            return self.0.settle(now);
        }
        // The system accepts more for the bytes that were read, but in pieces of its own size.
        let before = self.out_bytes(client);
        while before > 0 && self.out_bytes(client) == before {
            self.client(client).read(4_096);
            self.0.settle(now);
        }
    }

    fn hang_up(&mut self, now: Timestamp, client: usize) {
        self.client(client).hang_up();
        self.0.settle(now);
    }

    fn received(&mut self, client: usize) -> &mut ReceivedFrames {
        &mut self.client(client).incoming
    }

    fn end(&mut self, now: Timestamp, client: usize) -> Option<ConnectionEnd> {
        self.client(client).is_stalled = false;
        self.0.settle_end(now, client);
        self.client(client).incoming.end.take()
    }

    fn login(&mut self) -> Option<String> {
        None
    }

    fn decide(&mut self, now: Timestamp, _: &LoginVerdict) -> Result<(), String> {
        if self.0.parts().authenticator.poll(now) == 0 {
            return Err("the authenticator was not asked".to_string());
        }
        self.0.settle(now);
        Ok(())
    }

    fn look(&mut self, client: usize) -> Option<(StompCounters, BufferUsage)> {
        self.0.look(client)
    }
}
