//! The strategy link: strategies in their own processes connect to this server itself.
//! docs/strategy-link.md describes the protocol.
//!
//! ```text
//! accept ─► TLS ─► LOGIN ─► connection: read ─► handle_request ─► RemoteStrategies
//!   │       └── 5 s ──┘                 write ◄─ take_frame ◄───────────┘
//!   └ at most 32 without login: a new one closes the oldest of the address that has the most
//! ```
//!
//! The end of a connection changes nothing about its strategy: the process keeps its lease,
//! connects again and resumes.

mod listeners;
mod session;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pitlane_auth::{Identity, RevocationWatch, Role, network};
use pitlane_cluster::frames::{FrameReadError, FrameReader};
use pitlane_protocols::remote::link::{
    FRAME_BYTES_MAX, LINK_VERSION, LOGIN_BYTES_MAX, LinkRefusal, ServerFrame, StrategyFrame,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, interval, sleep, timeout, timeout_at};
use tokio_rustls::TlsAcceptor;

pub(crate) use self::listeners::{KEY, LinkListeners};
use self::session::LinkSession;
use crate::app_state::AppState;
use crate::remote_strategies::{RemoteStrategies, count};

/// Time from the opening of a connection to the end of its LOGIN, with the TLS handshake.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections without a login. Each takes some 40 KB; a process logs in within a round trip.
const LOGINS_MAX: usize = 32;
/// Leases without a frame after which a connection is closed.
const IDLE_LEASES: u32 = 3;
/// Time for the last frame of a refused connection, and bytes that are read meanwhile.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 1 << 20;
/// Pause after the system had no descriptor or memory for a connection.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Interval at which revoked tokens are looked for.
const REVOKE_INTERVAL: Duration = Duration::from_millis(500);
/// Interval between two log lines about refused connections: a client can cause many.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The server's side of all connections.
struct LinkServer {
    app: Rc<AppState>,
    remote_strategies: Rc<RemoteStrategies>,
    idle: Duration,
    /// Connections without a login, the oldest first.
    logins: RefCell<VecDeque<PendingLogin>>,
    next_login: Cell<u64>,
    revocations: RefCell<RevocationWatch>,
    /// By connection: name and generation of its login.
    identities: RefCell<BTreeMap<u64, (Arc<str>, u64)>>,
    logged_at: Cell<Option<Instant>>,
}

/// A connection that has not logged in.
struct PendingLogin {
    id: u64,
    /// Address, or the /64 network of an IPv6 address.
    network: IpAddr,
    task: AbortHandle,
}

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
enum LinkPeer {
    Address(IpAddr),
    /// A process of this machine; whether it belongs to the user of the service, or to root.
    Unix {
        is_trusted: bool,
    },
}

impl LinkPeer {
    /// Returns the address under which logins are counted.
    fn address(self) -> IpAddr {
        match self {
            LinkPeer::Address(address) => address,
            LinkPeer::Unix { .. } => Ipv4Addr::LOCALHOST.into(),
        }
    }
}

/// A process that has logged in.
struct LinkLogin {
    strategy: Arc<str>,
    slot: usize,
    /// Name and generation of the login; `None` where none is required.
    identity: Option<(Arc<str>, u64)>,
}

pub(super) async fn serve(
    app: Rc<AppState>,
    remote_strategies: Rc<RemoteStrategies>,
    listeners: LinkListeners,
) {
    let lease = Duration::from_millis(remote_strategies.settings.lease_ms as u64);
    let server = Rc::new(LinkServer {
        idle: lease * IDLE_LEASES,
        logins: RefCell::default(),
        next_login: Cell::new(0),
        revocations: RefCell::new(app.access.authorizer.login_queue.revocations()),
        identities: RefCell::default(),
        logged_at: Cell::new(None),
        app,
        remote_strategies,
    });
    let LinkListeners { tcp, unix } = listeners;
    if let Some((listener, tls)) = tcp {
        match TcpListener::from_std(listener) {
            Ok(listener) => {
                spawn_local(accept_tcp(server.clone(), listener, tls.map(TlsAcceptor::from)));
            }
            Err(error) => tracing::error!(%error, "strategies cannot connect over TCP"),
        }
    }
    // The socket's file is removed when this task ends.
    let mut _socket_file = None;
    if let Some((listener, file)) = unix {
        match UnixListener::from_std(listener) {
            Ok(listener) => {
                spawn_local(accept_unix(server.clone(), listener));
            }
            Err(error) => tracing::error!(%error, "strategies cannot connect over the Unix socket"),
        }
        _socket_file = Some(file);
    }
    server.watch_revocations().await;
}

async fn accept_tcp(server: Rc<LinkServer>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    loop {
        let Ok((socket, peer)) = listener.accept().await else {
            sleep(RETRY_PAUSE).await;
            continue;
        };
        if socket.set_nodelay(true).is_err() {
            continue;
        }
        let peer = LinkPeer::Address(peer.ip());
        match &tls {
            Some(tls) => server.admit(tls.accept(socket), peer),
            None => server.admit(async { Ok(socket) }, peer),
        }
    }
}

async fn accept_unix(server: Rc<LinkServer>, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let peer = LinkPeer::Unix { is_trusted: is_same_user(&socket) };
                server.admit(async { Ok(socket) }, peer);
            }
            Err(_) => sleep(RETRY_PAUSE).await,
        }
    }
}

/// Returns whether the other end belongs to the user of this process, or to root.
fn is_same_user(socket: &UnixStream) -> bool {
    let own = std::fs::metadata("/proc/self").map(|about| about.uid());
    let theirs = socket.peer_cred().map(|peer| peer.uid());
    matches!((own, theirs), (Ok(own), Ok(theirs)) if theirs == own || theirs == 0)
}

impl LinkServer {
    /// Serves a new connection in a task of its own, if need be in place of one that has not logged
    /// in: the oldest of the address that has the most, so that one host does not keep others out.
    fn admit<S>(self: &Rc<LinkServer>, opening: impl Future<Output = io::Result<S>> + 'static, peer: LinkPeer)
    where
        S: AsyncRead + AsyncWrite + 'static,
    {
        let id = self.next_login.get();
        self.next_login.set(id + 1);
        let task = spawn_local(self.clone().serve_connection(id, opening, peer));
        let mut logins = self.logins.borrow_mut();
        logins.push_back(PendingLogin { id, network: network(peer.address()), task: task.abort_handle() });
        if logins.len() > LOGINS_MAX
            && let Some(excess) = oldest_of_most(&logins).and_then(|at| logins.remove(at))
        {
            count(&self.remote_strategies.counts.refused_links);
            excess.task.abort();
        }
    }

    async fn serve_connection<S>(
        self: Rc<LinkServer>,
        id: u64,
        opening: impl Future<Output = io::Result<S>>,
        peer: LinkPeer,
    ) where
        S: AsyncRead + AsyncWrite + 'static,
    {
        let deadline = Instant::now() + LOGIN_TIMEOUT;
        let stream = timeout_at(deadline, opening).await;
        let Ok(Ok(stream)) = stream else {
            count(&self.remote_strategies.counts.refused_links);
            return self.leave_logins(id);
        };
        let (from, mut to) = tokio::io::split(stream);
        let mut from = FrameReader::new(from, LOGIN_BYTES_MAX);
        let login = self.log_in(&mut from, deadline, peer).await;
        self.leave_logins(id);
        let end = match login {
            Ok(login) => self.converse(login, &mut from, &mut to).await,
            Err(end) => end,
        };
        if let Some(refusal) = end {
            self.refuse(refusal, peer, &mut from, &mut to).await;
        }
    }

    fn leave_logins(&self, id: u64) {
        self.logins.borrow_mut().retain(|login| login.id != id);
    }

    /// Reads the login; an error is a refusal, or `None` if the client is gone.
    async fn log_in<R: AsyncRead + Unpin>(
        &self,
        from: &mut FrameReader<R>,
        deadline: Instant,
        peer: LinkPeer,
    ) -> Result<LinkLogin, Option<LinkRefusal>> {
        let frame = match timeout_at(deadline, from.next(StrategyFrame::decode)).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(FrameReadError::Frame(error))) => return Err(Some(LinkRefusal::BadFrame(error))),
            Ok(Err(FrameReadError::Closed | FrameReadError::Socket(_))) => return Err(None),
            Err(_elapsed) => return Err(Some(LinkRefusal::LoginTimeout)),
        };
        let StrategyFrame::Login { version, strategy, token } = frame else {
            return Err(Some(LinkRefusal::LoginRequired));
        };
        if version != LINK_VERSION {
            return Err(Some(LinkRefusal::BadVersion(version)));
        }
        self.authorize(&strategy, &token, peer).map_err(Some)
    }

    /// Checks whether a login may run a strategy. What exists is revealed to valid logins only.
    fn authorize(&self, strategy: &str, token: &str, peer: LinkPeer) -> Result<LinkLogin, LinkRefusal> {
        let login_queue = &self.app.access.authorizer.login_queue;
        let generation = self.revocations.borrow().generation();
        let identity = match login_queue.default_identity() {
            Some(_) if matches!(peer, LinkPeer::Unix { is_trusted: false }) => {
                return Err(LinkRefusal::Forbidden);
            }
            Some(_) => None,
            None => {
                let found = login_queue.find_token(token, peer.address());
                Some(found.ok_or(LinkRefusal::BadToken)?)
            }
        };
        if identity.as_ref().is_some_and(|identity| !may_run(identity, strategy)) {
            return Err(LinkRefusal::Forbidden);
        }
        let names = self.remote_strategies.names();
        let slot = names.iter().position(|name| **name == *strategy).ok_or(LinkRefusal::UnknownStrategy)?;
        let identity = identity.map(|identity| (identity.name, generation));
        Ok(LinkLogin { strategy: names[slot].clone(), slot, identity })
    }

    /// Serves a process that has logged in, and returns why the connection ends; `None` if the
    /// process is gone.
    async fn converse<R, W>(
        &self,
        login: LinkLogin,
        from: &mut FrameReader<R>,
        to: &mut W,
    ) -> Option<LinkRefusal>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let LinkLogin { strategy, slot, identity } = login;
        let (connection, signals) = match self.remote_strategies.open_connection(slot) {
            Ok(opened) => opened,
            Err(refusal) => return Some(refusal),
        };
        if let Some(identity) = identity {
            self.identities.borrow_mut().insert(connection, identity);
        }
        from.set_max(FRAME_BYTES_MAX);
        let session = LinkSession {
            app: &self.app,
            remote_strategies: &self.remote_strategies,
            strategy,
            connection,
            signals: &signals,
            idle: self.idle,
        };
        let end = session.run(from, to).await;
        self.identities.borrow_mut().remove(&connection);
        self.remote_strategies.close_connection(connection);
        end
    }

    /// Tells a client why its connection ends, and closes it.
    async fn refuse<R, W>(&self, refusal: LinkRefusal, peer: LinkPeer, from: &mut FrameReader<R>, to: &mut W)
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        count(&self.remote_strategies.counts.refused_links);
        self.log_refusal(refusal, peer);
        let frame = refusal.frame().encode();
        let ending = async {
            if to.write_all(&frame).await.is_ok() && to.shutdown().await.is_ok() {
                from.drain(LINGER_BYTES_MAX).await;
            }
        };
        // A client that takes longer is disconnected.
        let _ = timeout(LINGER, ending).await;
    }

    fn log_refusal(&self, refusal: LinkRefusal, peer: LinkPeer) {
        let now = Instant::now();
        if self.logged_at.get().is_some_and(|at| now.duration_since(at) < LOG_INTERVAL) {
            return;
        }
        self.logged_at.set(Some(now));
        let refused = self.remote_strategies.counts.refused_links.get();
        tracing::warn!(peer = %peer.address(), code = refusal.code(), %refusal, refused, "a strategy link was refused");
    }

    /// Ends connections whose token was removed or changed.
    async fn watch_revocations(&self) {
        let mut ticks = interval(REVOKE_INTERVAL);
        loop {
            ticks.tick().await;
            let mut revocations = self.revocations.borrow_mut();
            if !revocations.has_changed() {
                continue;
            }
            for (connection, (name, generation)) in &*self.identities.borrow() {
                if revocations.is_revoked(name, *generation) {
                    self.remote_strategies.end_connection(*connection, LinkRefusal::Revoked);
                }
            }
        }
    }
}

/// Returns the position of the oldest connection of the address that has the most.
fn oldest_of_most(logins: &VecDeque<PendingLogin>) -> Option<usize> {
    let count = |network: IpAddr| logins.iter().filter(|login| login.network == network).count();
    let most = logins.iter().map(|login| count(login.network)).max()?;
    logins.iter().position(|login| count(login.network) == most)
}

/// Returns whether an identity may run the process of a strategy.
fn may_run(identity: &Identity, strategy: &str) -> bool {
    matches!(identity.role, Role::Strategy | Role::Admin) && identity.strategies.sees(strategy)
}

/// Returns the answer to a login.
fn welcome(server: &str, idle: Duration) -> Vec<u8> {
    let idle_ms = u32::try_from(idle.as_millis()).unwrap_or(u32::MAX);
    ServerFrame::LoggedIn { version: LINK_VERSION, server: server.to_string(), idle_ms }.encode()
}
