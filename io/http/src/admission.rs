//! Limits connections: in all, and from each address. Decides which one is closed when there is no
//! room.
//!
//! ```text
//! general = max - reserve
//!
//! new connection ─┬─ its address is at its limit ──► close the oldest resting one of that address,
//!                 │                                  or refuse
//!                 ├─ fewer than `general` ─────────► accept it
//!                 ├─ a resting one without login ──► close it, accept the new one
//!                 ├─ fewer than `max` ─────────────► accept on probation: only the reserve is left
//!                 └─ any resting one ──────────────► close the oldest, on probation before known;
//!                                                    or refuse
//! ```
//!
//! A connection rests while no request of it is being answered: it is idle, or the head of a
//! request has not arrived completely. A connection on probation may request the health of the
//! service and may log in. Anything else is answered with 503. A connection that has sent a valid
//! login is known; connections without login never evict it while another one rests. So many
//! connections without login keep out neither clients with a login nor health checks.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use pitlane_auth::network;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// Divisor of `max` that gives the number of connections closed at a time when room is needed.
/// Finding the oldest scans all of them, so the scan is paid for once per batch and not by every
/// new connection.
const BATCH_SHARE: usize = 64;
/// Maximum number of networks that are remembered to have logged in. A trading desk has hundreds;
/// the oldest are forgotten.
const KNOWN_MAX: usize = 4_096;

/// Limits of the number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpConnectionLimits {
    pub max: usize,
    /// Maximum from one address; for IPv6 from one /64 network.
    pub per_peer_max: usize,
    /// Part of `max` that is reserved for known clients and health checks.
    pub reserve: usize,
}

/// All connections of the http thread. Belongs to that thread.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    shared: Rc<AdmissionState>,
}

#[derive(Debug)]
struct AdmissionState {
    limits: HttpConnectionLimits,
    table: RefCell<ConnectionTable>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    next_id: u64,
    connections: BTreeMap<u64, Rc<ConnectionRecord>>,
    by_network: BTreeMap<IpAddr, usize>,
    /// Networks with a successful login, and the number of that login: the lowest is the oldest.
    known: BTreeMap<IpAddr, u64>,
    logins: u64,
}

/// State of a connection.
#[derive(Debug)]
struct ConnectionRecord {
    network: IpAddr,
    /// Time since which no request is being answered; `None` if one is, or the connection is no
    /// longer HTTP.
    rests_since: Cell<Option<Instant>>,
    trust: Cell<Trust>,
    task: RefCell<Option<AbortHandle>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// Only the reserve was left when it was accepted.
    Probation,
    Anonymous,
    /// It has sent a valid login.
    Known,
}

/// A connection's slot, held for as long as the connection lasts, also after an upgrade.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    admission: Admission,
    id: u64,
    connection: Rc<ConnectionRecord>,
}

/// A connection that was accepted, and how many were closed for it.
#[derive(Debug)]
pub(crate) struct AdmittedConnection {
    pub slot: ConnectionSlot,
    pub evicted: usize,
}

impl Admission {
    pub(crate) fn new(limits: HttpConnectionLimits) -> Admission {
        let shared = AdmissionState { limits, table: RefCell::default(), freed: Notify::new() };
        Admission { shared: Rc::new(shared) }
    }

    /// Accepts a new connection, if need be in place of others; `None` if there is no room.
    pub(crate) fn admit(&self, peer: IpAddr, now: Instant) -> Option<AdmittedConnection> {
        let network = network(peer);
        let mut table = self.shared.table.borrow_mut();
        let (trust, evicted) = table.make_room(&self.shared.limits, network)?;
        let rests_since = Cell::new(Some(now));
        let (trust, task) = (Cell::new(trust), RefCell::default());
        let connection = Rc::new(ConnectionRecord { network, rests_since, trust, task });
        let id = table.insert(connection.clone());
        Some(AdmittedConnection { slot: ConnectionSlot { admission: self.clone(), id, connection }, evicted })
    }

    /// Records that a client at this address has logged in, by whatever protocol.
    pub(crate) fn remember(&self, peer: IpAddr) {
        self.shared.table.borrow_mut().remember(network(peer));
    }

    pub(crate) fn len(&self) -> usize {
        self.shared.table.borrow().connections.len()
    }

    pub(crate) async fn all_free(&self) {
        while self.len() > 0 {
            self.shared.freed.notified().await;
        }
    }
}

impl ConnectionTable {
    /// Finds room for a connection from this network. Returns its trust, and how many were closed
    /// for it.
    fn make_room(&mut self, limits: &HttpConnectionLimits, network: IpAddr) -> Option<(Trust, usize)> {
        let HttpConnectionLimits { max, per_peer_max, reserve } = *limits;
        let mut evicted = 0;
        if self.by_network.get(&network).is_some_and(|present| *present >= per_peer_max) {
            evicted = self.evict(1, |connection| connection.network == network);
            if evicted == 0 {
                return None;
            }
        }
        let batch = (max / BATCH_SHARE).max(1);
        let general = max.saturating_sub(reserve).max(1);
        let is_anonymous = |connection: &ConnectionRecord| connection.trust.get() == Trust::Anonymous;
        if self.connections.len() < general {
            return Some((Trust::Anonymous, evicted));
        }
        evicted += self.evict(batch, is_anonymous);
        if self.connections.len() < general {
            return Some((Trust::Anonymous, evicted));
        }
        if self.connections.len() >= max {
            let is_on_probation = |connection: &ConnectionRecord| connection.trust.get() == Trust::Probation;
            let mut more = self.evict(1, is_on_probation);
            if more == 0 {
                more = self.evict(1, |_| true);
            }
            evicted += more;
        }
        (self.connections.len() < max).then_some((Trust::Probation, evicted))
    }

    /// Closes up to `count` resting connections that `is_selected` selects: those of the address
    /// with the most connections first, and among them the ones that have rested longest. So an
    /// address with many connections loses its own before those of others.
    fn evict(&mut self, count: usize, is_selected: impl Fn(&ConnectionRecord) -> bool) -> usize {
        let selected = self.connections.iter().filter(|(_, connection)| is_selected(connection));
        let mut resting: Vec<(Reverse<usize>, Instant, u64)> = selected
            .filter_map(|(id, connection)| {
                let since = connection.rests_since.get()?;
                let present = self.by_network.get(&connection.network).copied().unwrap_or_default();
                Some((Reverse(present), since, *id))
            })
            .collect();
        let count = count.min(resting.len());
        if count < resting.len() {
            resting.select_nth_unstable(count);
        }
        for (_, _, id) in &resting[..count] {
            if let Some(connection) = self.remove(*id)
                && let Some(task) = connection.task.take()
            {
                task.abort();
            }
        }
        count
    }

    fn insert(&mut self, connection: Rc<ConnectionRecord>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        *self.by_network.entry(connection.network).or_default() += 1;
        self.connections.insert(id, connection);
        id
    }

    /// Releases the slot, once.
    fn remove(&mut self, id: u64) -> Option<Rc<ConnectionRecord>> {
        let connection = self.connections.remove(&id)?;
        if let Some(present) = self.by_network.get_mut(&connection.network) {
            *present -= 1;
            if *present == 0 {
                self.by_network.remove(&connection.network);
            }
        }
        Some(connection)
    }

    fn remember(&mut self, network: IpAddr) {
        self.logins += 1;
        self.known.insert(network, self.logins);
        if self.known.len() > KNOWN_MAX
            && let Some(oldest) =
                self.known.iter().min_by_key(|(_, login)| **login).map(|(network, _)| *network)
        {
            self.known.remove(&oldest);
        }
    }
}

impl ConnectionSlot {
    /// Returns a function that sets the task serving the connection. The task is aborted when room
    /// is needed.
    pub(crate) fn task_setter(&self) -> impl FnOnce(AbortHandle) + use<> {
        let connection = self.connection.clone();
        move |task| *connection.task.borrow_mut() = Some(task)
    }

    /// Sets the time since which no request of the connection is being answered; `None` if one is.
    pub(crate) fn set_resting(&self, since: Option<Instant>) {
        self.connection.rests_since.set(since);
    }

    /// Marks the connection as no longer HTTP: it has deadlines and limits of its own and is not
    /// closed for others.
    pub(crate) fn set_upgraded(&self) {
        self.connection.rests_since.set(None);
        self.connection.task.take();
    }

    /// Records that a valid login came over this connection.
    pub(crate) fn set_known(&self) {
        if self.connection.trust.replace(Trust::Known) != Trust::Known {
            self.admission.shared.table.borrow_mut().remember(self.connection.network);
        }
    }

    /// Returns whether only the reserve was left for the connection and it has not sent a login.
    pub(crate) fn is_on_probation(&self) -> bool {
        self.connection.trust.get() == Trust::Probation
    }

    /// Returns whether a client of its network has logged in before.
    pub(crate) fn is_from_known_network(&self) -> bool {
        self.admission.shared.table.borrow().known.contains_key(&self.connection.network)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let shared = &self.admission.shared;
        // An evicted connection has been removed already.
        shared.table.borrow_mut().remove(self.id);
        shared.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn peer(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    fn admission(max: usize, per_peer_max: usize, reserve: usize) -> Admission {
        Admission::new(HttpConnectionLimits { max, per_peer_max, reserve })
    }

    fn is_open(admission: &Admission, slot: &ConnectionSlot) -> bool {
        admission.shared.table.borrow().connections.contains_key(&slot.id)
    }

    /// Opens connections one after the other, each from the next address, which rest unless busy.
    fn open_connections(admission: &Admission, count: u8, busy: bool) -> Vec<ConnectionSlot> {
        let start = Instant::now();
        let one = |n: u8| {
            let since = start + Duration::from_secs(n.into());
            let slot = admission.admit(peer(n), since).unwrap().slot;
            slot.set_resting((!busy).then_some(since));
            slot
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn slots_are_counted_in_all_and_by_network_and_released() {
        let admission = admission(3, 2, 0);
        let busy = |peer| {
            let slot = admission.admit(peer, Instant::now())?.slot;
            slot.set_resting(None);
            Some(slot)
        };
        let first = busy(peer(1)).unwrap();
        let _second = busy(peer(1)).unwrap();
        assert!(busy(peer(1)).is_none());
        let third = busy(peer(2)).unwrap();
        assert!(busy(peer(3)).is_none());
        assert_eq!(admission.len(), 3);
        drop(first);
        drop(third);
        assert_eq!(admission.shared.table.borrow().by_network.len(), 1, "an empty network is forgotten");
        assert!(busy(peer(1)).is_some());
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let admission = admission(10, 2, 0);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let slots: Vec<_> = ["2001:db8::1", "2001:db8::2"]
            .map(|text| admission.admit(address(text), Instant::now()).unwrap().slot)
            .into();
        slots.iter().for_each(|slot| slot.set_resting(None));
        assert!(admission.admit(address("2001:db8::ffff:3"), Instant::now()).is_none());
        assert!(admission.admit(address("2001:db8:0:1::1"), Instant::now()).is_some());
    }

    #[test]
    fn the_connection_that_rested_longest_is_closed_first() {
        let admission = admission(4, 4, 0);
        let slots = open_connections(&admission, 4, false);
        slots[0].set_resting(None);
        let admitted = admission.admit(peer(9), Instant::now()).unwrap();
        assert_eq!(admitted.evicted, 1);
        let present: Vec<_> = slots.iter().map(|slot| is_open(&admission, slot)).collect();
        assert_eq!(present, [true, false, true, true], "a busy one stays");
        assert_eq!(admission.len(), 4);
        drop(slots);
        assert_eq!(admission.len(), 1, "an evicted one is not given back twice");
    }

    #[test]
    fn the_address_with_the_most_connections_loses_one_first() {
        let admission = admission(4, 4, 0);
        let lone = open_connections(&admission, 1, false);
        let late = Instant::now() + Duration::from_secs(99);
        let many: Vec<_> = (0..3).map(|_| admission.admit(peer(8), late).unwrap().slot).collect();
        assert_eq!(admission.admit(peer(9), late).unwrap().evicted, 1);
        assert!(is_open(&admission, &lone[0]) && !is_open(&admission, &many[0]));
    }

    #[test]
    fn an_address_at_its_limit_evicts_only_its_own_connections() {
        let admission = admission(10, 2, 0);
        let others = open_connections(&admission, 3, false);
        let own = admission.admit(peer(0), Instant::now() + Duration::from_secs(99)).unwrap().slot;
        assert_eq!(admission.admit(peer(0), Instant::now()).unwrap().evicted, 1);
        assert!(!is_open(&admission, &others[0]) && is_open(&admission, &own));
        assert!(others[1..].iter().all(|slot| is_open(&admission, slot)));
    }

    #[test]
    fn the_reserve_is_taken_on_probation_and_a_login_ends_that() {
        let admission = admission(4, 4, 2);
        let busy = open_connections(&admission, 2, true);
        assert!(busy.iter().all(|slot| !slot.is_on_probation()));
        let client = admission.admit(peer(7), Instant::now()).unwrap().slot;
        assert!(client.is_on_probation() && !client.is_from_known_network());
        client.set_known();
        assert!(!client.is_on_probation() && client.is_from_known_network());
        // Connections without login take the rest of the reserve in turns, and do not evict the
        // known one.
        let mut anonymous: Vec<ConnectionSlot> = Vec::new();
        for n in 20..40 {
            anonymous.push(admission.admit(peer(n), Instant::now()).unwrap().slot);
        }
        assert!(is_open(&admission, &client));
        assert_eq!(admission.len(), 4);
    }

    #[test]
    fn a_large_table_evicts_a_batch_at_once() {
        let admission = admission(640, 640, 0);
        let start = Instant::now();
        let slots: Vec<ConnectionSlot> =
            (0..640).map(|_| admission.admit(peer(1), start).unwrap().slot).collect();
        assert_eq!(admission.admit(peer(2), start).unwrap().evicted, 10);
        assert_eq!(admission.admit(peer(2), start).unwrap().evicted, 0);
        drop(slots);
    }

    #[test]
    fn the_number_of_remembered_networks_is_bounded() {
        let mut table = ConnectionTable::default();
        let address = |n: usize| IpAddr::from((n as u32).to_be_bytes());
        (0..=KNOWN_MAX).for_each(|n| table.remember(address(n)));
        assert_eq!(table.known.len(), KNOWN_MAX);
        assert!(!table.known.contains_key(&address(0)) && table.known.contains_key(&address(KNOWN_MAX)));
    }
}
