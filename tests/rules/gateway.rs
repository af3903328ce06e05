//! The gateway of the service, with its sockets, on the test's own thread and under the test's
//! clock: STOMP over TCP and TLS. Events come over its lanes from shards, and as notifications from
//! other threads.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pitlane_auth::{Auth, Role};
use pitlane_config::{Config, Machine, Setting, Sources, load};
use pitlane_engine::index::index_usize;
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_gateway::gateway::Gateway;
use pitlane_gateway::gateway::listeners::GatewayListeners;
use pitlane_gateway::gateway::stomp::StompEndpoint;
use pitlane_gateway::notifications::{Notification, SessionKind, channels};
use pitlane_gateway::stomp::Logins;
use pitlane_net::Net;
use pitlane_net::settings::NetSettings;
use pitlane_net::tls::Tls;
use pitlane_protocols::stomp::session::{BufferUsage, StompCounters};
use pitlane_protocols::stomp::throttle::Throttle;
use pitlane_runtime::lifecycle::LifecyclePhase;
use pitlane_runtime::wakeup::Wakeup;
use pitlane_runtime::wakeups::Wakeups;
use pitlane_tests::stomp::host::{HostPlan, StompHost};
use pitlane_tests::test_market;
use rustls::ClientConfig;

use super::client::{CLOG_BYTES, RuleClient};
use super::wired::{HostParts, OverSockets, SocketHost};
use super::{PATIENCE, PORT, SHARDS, auth_settings, row_look};

/// Waits of a millisecond in which nothing moves, after which nothing will: a session that is not
/// read leaves bytes in the system, so that the bytes written and the bytes read need not be equal.
const IDLE_MAX: u32 = 5;
/// The same while something waits for a client that reads: the system may take some time to
/// acknowledge.
const PENDING_MAX: u32 = 500;

pub(crate) struct GatewayHost {
    gateway: Gateway,
    net: Net,
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    parts: HostParts,
}

impl GatewayHost {
    pub(crate) fn open(
        plan: HostPlan,
        folder: &Path,
        tls: Option<(&Tls, Arc<ClientConfig>)>,
    ) -> Box<dyn StompHost> {
        let mut settings = plan.settings;
        if plan.stalls {
            settings.limits.mark_bytes += CLOG_BYTES;
        }
        let silent = Wakeup::new(|| {});
        let (mut ports, shards) = mesh(&[PortClass::Control, PortClass::Client], SHARDS, Depths::default());
        let port = ports.pop().expect("there are two");
        assert_eq!(port.id(), PORT);
        let doors =
            GatewayListeners::bind(&config(tls.is_some()), tls.as_ref().map(|(tls, _)| *tls)).unwrap();
        let address = doors.listeners()[0].address;
        let mut auth =
            Auth::open(auth_settings(folder, &plan.users, settings.anonymous_access.is_none())).unwrap();
        let logins = Logins::new(Some(auth.client(silent.clone())), Role::Trade);
        let room = StompEndpoint::new(settings, test_market::reference(), logins);
        let (theirs, post) = channels(silent.clone(), silent);
        let mut gateway = Gateway::new(port, Arc::new(Wakeups::silent(SHARDS, 2)), None);
        gateway.attach_clients(doors, Some(room), None, theirs);
        Box::new(OverSockets(GatewayHost {
            gateway,
            net: Net::open(NetSettings::default()).unwrap(),
            address,
            tls: tls.map(|(_, config)| config),
            parts: HostParts::new(shards, post, auth.into_parts().0),
        }))
    }

    fn step(&mut self, now: Timestamp) -> bool {
        let mut work = self.gateway.poll(now, LifecyclePhase::Open, Some(&mut self.net));
        work += self.parts.poll();
        self.parts.ignore();
        work > 0
    }

    /// Returns whether everything that was written on one side was read on the other.
    fn is_even(&mut self) -> bool {
        let counts = self.net.sockets().counts();
        let written: u64 = self.parts.clients.iter().map(|client| client.written).sum();
        let received: u64 = self.parts.clients.iter().map(|client| client.received).sum();
        counts.received_bytes == written && counts.sent_bytes == received
    }

    /// Returns whether something waits for a client that reads.
    fn is_pending(&self) -> bool {
        let reads = |number: u64| {
            self.parts.clients.get(index_usize(number) - 1).is_some_and(|client| !client.is_stalled)
        };
        self.gateway.rows(Timestamp::ZERO).any(|row| row.queue_bytes > 0 && reads(row.number))
    }
}

impl SocketHost for GatewayHost {
    fn parts(&mut self) -> &mut HostParts {
        &mut self.parts
    }

    fn connect(&mut self, now: Timestamp) -> Result<(), String> {
        self.settle(now);
        let before = self.gateway.rows(now).count();
        let socket = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        self.parts.clients.push(match &self.tls {
            Some(config) => RuleClient::tls(socket, config.clone()),
            None => RuleClient::plain(socket),
        });
        let late = Instant::now() + PATIENCE;
        while self.gateway.rows(now).count() == before {
            if Instant::now() > late {
                return Err("there is no room for a session".to_string());
            }
            self.settle(now);
        }
        Ok(())
    }

    fn settle(&mut self, now: Timestamp) {
        let mut idle = 0;
        loop {
            if self.step(now) {
                idle = 0;
                continue;
            }
            let is_pending = self.is_pending();
            let most = if is_pending { PENDING_MAX } else { IDLE_MAX };
            if idle == most || !is_pending && self.is_even() {
                return;
            } else {
                idle += 1;
                self.net.wait(now, Duration::from_millis(1));
            }
        }
    }

    /// Advances from deadline to deadline, as the thread of a gateway sleeps.
    fn wait(&mut self, from: Timestamp, to: Timestamp) {
        let mut now = from;
        loop {
            let next = self.gateway.deadline(LifecyclePhase::Open).max(now.plus(NS_PER_MS));
            if next >= to {
                break;
            }
            now = next;
            self.settle(now);
        }
        self.settle(to);
    }

    fn settle_end(&mut self, now: Timestamp, _: usize) {
        self.settle(now);
    }

    fn kick(&mut self, client: usize) {
        self.parts.post.send(Notification::Kick { kind: SessionKind::Stomp, number: client as u64 + 1 });
    }

    fn set_rates(&mut self, _: &Throttle) {
        unreachable!("only WebSocket is throttled");
    }

    fn look(&mut self, client: usize) -> Option<(StompCounters, BufferUsage)> {
        self.gateway
            .rows(Timestamp::ZERO)
            .find(|row| row.number == client as u64 + 1)
            .map(|row| row_look(&row))
    }
}

fn config(tls: bool) -> Config {
    let (used, unused) =
        if tls { ("stomp.tls_listen", "stomp.listen") } else { ("stomp.listen", "stomp.tls_listen") };
    let settings = [
        format!("{used}=127.0.0.1:0"),
        format!("{unused}="),
        "fix.listen=".to_string(),
        "net.send_kernel_bytes=16384".to_string(),
    ];
    let options = settings.iter().map(|setting| Setting::parse(setting).unwrap()).collect();
    let sources = Sources { options, ..Sources::default() };
    load(&sources, &Machine::of(Path::new("/"))).unwrap().config
}
