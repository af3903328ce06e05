//! Guessing gets slower with every guess: after some failures a login, or an address, must wait, and twice as long each time.
//!
//! Both are counted. A login, so that many machines together guess no faster than one; an address, so that one machine does not
//! try one password on many logins. Logins that do not exist are counted like those that do, so that nobody learns which is which.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use pitlane_engine::time::{NS_PER_S, Timestamp};

/// Logins and addresses remembered. Each takes some hundred bytes; the one that failed longest ago makes room.
pub const MARKS_MAX: usize = 16_384;
/// Failures without a wait: people mistype.
const LOGIN: Patience = Patience { failures_free: 5, wait_s_max: 60 };
/// Behind one address may be an office, so it may fail more often; and then waits longer, since it harms itself alone.
const ADDRESS: Patience = Patience { failures_free: 20, wait_s_max: 900 };
/// After so long without a failure all is forgiven.
const FORGIVEN_NS: u64 = 3_600 * NS_PER_S;

struct Patience {
    failures_free: u32,
    wait_s_max: u64,
}

impl Patience {
    fn wait_ns(&self, failures: u32) -> u64 {
        match failures.checked_sub(self.failures_free) {
            None => 0,
            Some(beyond) => (1u64 << beyond.min(32)).min(self.wait_s_max) * NS_PER_S,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Login(Box<str>),
    Address(IpAddr),
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    failures: u32,
    failed: Timestamp,
    /// Until then nothing is even looked at.
    until: Timestamp,
}

#[derive(Debug, Default)]
pub struct Lockout {
    marks: BTreeMap<Key, Mark>,
    /// The keys again, by when they failed last.
    by_time: BTreeMap<(Timestamp, Key), ()>,
}

impl Lockout {
    /// Seconds to wait, rounded up; none: go on.
    pub fn wait_s(&self, now: Timestamp, login: Option<&str>, peer: IpAddr) -> Option<u32> {
        let until = keys(login, peer).filter_map(|key| Some(self.marks.get(&key)?.until)).max()?;
        let wait_ns = until.since(now);
        (wait_ns > 0).then(|| wait_ns.div_ceil(NS_PER_S) as u32)
    }

    /// Whether somebody comes in whose proof was found right or wrong. While he must wait, even the right one is of no use to him:
    /// otherwise guessing would go on as fast as before.
    pub fn admit(&mut self, now: Timestamp, login: &str, peer: IpAddr, right: bool) -> bool {
        if self.wait_s(now, Some(login), peer).is_some() {
            return false;
        }
        if right {
            self.succeeded(Some(login));
            return true;
        }
        self.failed(now, Some(login), peer);
        if let Some(wait_s) = self.wait_s(now, Some(login), peer) {
            tracing::warn!(login, %peer, wait_s, "locked out: too many failed logins");
        }
        false
    }

    pub fn failed(&mut self, now: Timestamp, login: Option<&str>, peer: IpAddr) {
        for key in keys(login, peer) {
            let patience = match key {
                Key::Login(_) => LOGIN,
                Key::Address(_) => ADDRESS,
            };
            let before = self.remove(&key).filter(|mark| now.since(mark.failed) < FORGIVEN_NS);
            let failures = before.map_or(0, |mark| mark.failures).saturating_add(1);
            let until = now.plus(patience.wait_ns(failures));
            self.insert(key, Mark { failures, failed: now, until });
        }
    }

    /// Forgives the login, not the address: who has one account of his own could guess at others for ever.
    pub fn succeeded(&mut self, login: Option<&str>) {
        if let Some(login) = login {
            self.remove(&Key::Login(login.into()));
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Mark> {
        let mark = self.marks.remove(key)?;
        self.by_time.remove(&(mark.failed, key.clone()));
        Some(mark)
    }

    fn insert(&mut self, key: Key, mark: Mark) {
        if self.marks.len() == MARKS_MAX
            && let Some(((_, oldest), ())) = self.by_time.pop_first()
        {
            self.marks.remove(&oldest);
        }
        self.by_time.insert((mark.failed, key.clone()), ());
        self.marks.insert(key, mark);
    }
}

/// What is counted of an attempt. Loopback is not: behind it stand a proxy's clients, or everybody on this machine, and one of
/// them must not lock out the others.
fn keys(login: Option<&str>, peer: IpAddr) -> impl Iterator<Item = Key> {
    let login = login.map(|login| Key::Login(login.into()));
    let peer = peer.to_canonical();
    let address = (!peer.is_loopback()).then(|| Key::Address(network(peer)));
    login.into_iter().chain(address)
}

/// Whom an address counts as: whoever has one of IPv6 has 2^64.
pub fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) if address.is_loopback() => IpAddr::V6(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_700_000_000 * NS_PER_S);
    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn at(seconds: u64) -> Timestamp {
        Timestamp(START.0 + seconds * NS_PER_S)
    }

    fn far(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[test]
    fn a_login_waits_longer_with_each_failure_wherever_it_comes_from() {
        let mut lockout = Lockout::default();
        for n in 0..4 {
            lockout.failed(START, Some("alice"), far(n));
            assert_eq!(lockout.wait_s(START, Some("alice"), HERE), None);
        }
        let mut now = START;
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            lockout.failed(now, Some("alice"), far(9));
            assert_eq!(lockout.wait_s(now, Some("alice"), HERE), Some(wait));
            assert_eq!(lockout.wait_s(now, Some("bob"), HERE), None);
            now = Timestamp(now.0 + wait as u64 * NS_PER_S - 1);
            assert_eq!(lockout.wait_s(now, Some("alice"), HERE), Some(1));
            now = Timestamp(now.0 + 1);
            assert_eq!(lockout.wait_s(now, Some("alice"), HERE), None);
        }
        lockout.succeeded(Some("alice"));
        lockout.failed(now, Some("alice"), HERE);
        assert_eq!(lockout.wait_s(now, Some("alice"), HERE), None);
    }

    #[test]
    fn the_right_proof_is_of_no_use_while_one_must_wait() {
        let mut lockout = Lockout::default();
        for _ in 0..5 {
            assert!(!lockout.admit(START, "PITLANE-A", HERE, false));
        }
        assert!(!lockout.admit(START, "PITLANE-A", HERE, true));
        assert!(lockout.admit(START, "PITLANE-B", HERE, true), "others come in");
        assert!(lockout.admit(at(1), "PITLANE-A", HERE, true));
        assert!(!lockout.admit(at(1), "PITLANE-A", HERE, false), "and it is forgotten");
        assert!(lockout.admit(at(1), "PITLANE-A", HERE, true));
    }

    #[test]
    fn an_address_waits_whichever_login_it_tries() {
        let mut lockout = Lockout::default();
        for n in 0..19 {
            lockout.failed(START, Some(&format!("user{n}")), far(1));
            lockout.failed(START, None, HERE);
        }
        assert_eq!(lockout.wait_s(START, None, far(1)), None);
        lockout.failed(START, None, far(1));
        assert_eq!(lockout.wait_s(START, Some("new"), far(1)), Some(1));
        assert_eq!(lockout.wait_s(START, Some("new"), far(2)), None);
        // A login of one's own does not help.
        lockout.succeeded(Some("mine"));
        lockout.failed(START, None, far(1));
        assert_eq!(lockout.wait_s(START, None, far(1)), Some(2));
        for _ in 0..30 {
            lockout.failed(START, None, far(1));
            lockout.failed(START, None, HERE);
        }
        assert_eq!(lockout.wait_s(START, None, far(1)), Some(900));
        assert_eq!(lockout.wait_s(START, None, HERE), None, "loopback is everybody");
        lockout.failed(at(3_600), None, far(1));
        assert_eq!(lockout.wait_s(at(3_600), None, far(1)), None, "forgiven");
    }

    #[test]
    fn a_network_of_version_six_counts_as_one() {
        let mut lockout = Lockout::default();
        for n in 0..20u16 {
            lockout.failed(START, None, IpAddr::from([0x2001, 0xdb8, 0, 1, n, 0, 0, n]));
        }
        let of = |net: u16| IpAddr::from([0x2001, 0xdb8, 0, net, 9, 9, 9, 9]);
        assert_eq!((lockout.wait_s(START, None, of(1)), lockout.wait_s(START, None, of(2))), (Some(1), None));
    }

    #[test]
    fn the_table_does_not_grow_and_forgets_the_oldest() {
        let mut lockout = Lockout::default();
        for _ in 0..6 {
            lockout.failed(START, Some("alice"), HERE);
        }
        for n in 0..MARKS_MAX - 1 {
            lockout.failed(at(1), Some(&n.to_string()), HERE);
        }
        assert!(lockout.wait_s(START, Some("alice"), HERE).is_some());
        for n in 0..10 {
            lockout.failed(at(2), Some(&format!("more{n}")), HERE);
            assert_eq!((lockout.marks.len(), lockout.by_time.len()), (MARKS_MAX, MARKS_MAX));
        }
        assert!(lockout.wait_s(START, Some("alice"), HERE).is_none());
    }
}
