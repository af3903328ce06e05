//! Slows down guessing at passwords, without letting a stranger lock a user out.
//!
//! ```text
//! failures of          slow down                                          from    wait in s
//! address and login    this login from this address                       5       1 to 60
//! address              every login that never succeeded from there        20      1 to 60
//! login                addresses from which this login never succeeded    20      1 to 30
//! ```
//!
//! - A login that has succeeded from an address is *known* there: only failures of the same login
//!   from the same address slow it down. So nothing that another address does delays it.
//! - A login counts at most [`PAIR`]`.failures_free` failures of one address. So one guesser does
//!   not slow down the login for others; many addresses that guess at one login do, since they
//!   would otherwise guess as fast as they are many.
//! - Each address serves the wait of a login separately, starting with its first attempt: the
//!   password of an address that has waited is verified, whatever other addresses do meanwhile. So
//!   the wait is a delay and not a lock.
//! - Tokens are not counted at all: 256 random bits cannot be guessed.
//!
//! Logins that do not exist are counted like those that do, so that an attempt does not reveal
//! which logins exist.

use std::net::{IpAddr, Ipv6Addr};

use pitlane_engine::time::{NS_PER_S, Timestamp};

use super::recent::Recent;

/// Maximum number of failure counters. Each takes some hundred bytes; the one with the oldest
/// failure is evicted.
pub(crate) const MARKS_MAX: usize = 16_384;
/// Maximum number of pairs of address and login that have succeeded: more than an organisation has
/// users and locations. Only a right password adds one, so a stranger cannot evict others.
pub(crate) const KNOWN_MAX: usize = 16_384;
/// Failures of a pair without a wait: people mistype.
const PAIR: LockoutLimits = LockoutLimits { failures_free: 5, wait_s_max: 60 };
/// An address may be that of an office, so it may fail more often.
const ADDRESS: LockoutLimits = LockoutLimits { failures_free: 20, wait_s_max: 60 };
/// Four addresses reach this together. A user at a new address waits for `wait_s_max` at most.
const LOGIN: LockoutLimits = LockoutLimits { failures_free: 20, wait_s_max: 30 };
/// Time without a failure after which a counter expires.
const FORGIVEN_NS: u64 = 3_600 * NS_PER_S;
/// Maximum number of cache look-ups while a known pair waits. A logged-in client keeps working
/// while its login is attacked from its own address, and the attacker has few guesses.
const RECALLS_MAX: u32 = 100;

struct LockoutLimits {
    failures_free: u32,
    wait_s_max: u64,
}

impl LockoutLimits {
    fn wait_ns(&self, failures: u32) -> u64 {
        match failures.checked_sub(self.failures_free) {
            None => 0,
            Some(beyond) => (1u64 << beyond.min(32)).min(self.wait_s_max) * NS_PER_S,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LockoutKey {
    Pair(IpAddr, Box<str>),
    Address(IpAddr),
    Login(Box<str>),
}

#[derive(Clone, Copy, Debug, Default)]
struct FailureCount {
    failures: u32,
    /// No password is verified before this time. Unused for a login, whose wait each address serves
    /// separately.
    until: Timestamp,
    /// Cache look-ups since the last failure.
    recalls: u32,
}

#[derive(Debug)]
pub(crate) struct Lockout {
    marks: Recent<LockoutKey, FailureCount>,
    known: Recent<(IpAddr, Box<str>), ()>,
}

impl Default for Lockout {
    fn default() -> Lockout {
        Lockout { marks: Recent::new(MARKS_MAX), known: Recent::new(KNOWN_MAX) }
    }
}

impl Lockout {
    /// Returns whether a password of this login from this address may be verified now; if not, the
    /// seconds to wait, rounded up.
    pub(crate) fn check(&mut self, now: Timestamp, login: Option<&str>, peer: IpAddr) -> Result<(), u32> {
        let network = network(peer);
        let is_known = login.is_some_and(|login| self.is_known(login, peer));
        let mut until = Timestamp::ZERO;
        if let Some(login) = login {
            let pair = LockoutKey::Pair(network, login.into());
            let delay_ns = if is_known {
                0
            } else {
                LOGIN.wait_ns(self.failures(now, &LockoutKey::Login(login.into())))
            };
            if delay_ns > 0 && self.mark(now, &pair).is_none() {
                // The wait of this address starts now.
                self.marks.put(
                    now,
                    pair.clone(),
                    FailureCount { until: now.plus(delay_ns), ..FailureCount::default() },
                );
            }
            until = self.until(now, &pair);
        }
        if !is_known && is_counted(network) {
            until = until.max(self.until(now, &LockoutKey::Address(network)));
        }
        match until.since(now) {
            0 => Ok(()),
            wait_ns => Err(u32::try_from(wait_ns.div_ceil(NS_PER_S)).unwrap_or(u32::MAX)),
        }
    }

    /// Counts a wrong password. Returns the seconds to wait from now on, if any.
    pub(crate) fn failed(&mut self, now: Timestamp, login: Option<&str>, peer: IpAddr) -> Option<u32> {
        let network = network(peer);
        if let Some(login) = login {
            let is_known = self.is_known(login, peer);
            let (pair, name) = (LockoutKey::Pair(network, login.into()), LockoutKey::Login(login.into()));
            let failures = self.failures(now, &pair).saturating_add(1);
            let mut wait_ns = PAIR.wait_ns(failures);
            if !is_known {
                let mut of_login = self.failures(now, &name);
                if failures <= PAIR.failures_free {
                    of_login = of_login.saturating_add(1);
                    self.marks.put(now, name, FailureCount { failures: of_login, ..FailureCount::default() });
                }
                wait_ns = wait_ns.max(LOGIN.wait_ns(of_login));
            }
            self.marks.put(now, pair, FailureCount { failures, until: now.plus(wait_ns), recalls: 0 });
        }
        if is_counted(network) {
            let address = LockoutKey::Address(network);
            let failures = self.failures(now, &address).saturating_add(1);
            let until = now.plus(ADDRESS.wait_ns(failures));
            self.marks.put(now, address, FailureCount { failures, until, recalls: 0 });
        }
        self.check(now, login, peer).err()
    }

    /// Records a right password: the login is known at this address from now on. Failures of the
    /// address and of the login stay: a client with an account of its own could otherwise guess at
    /// others without limit.
    pub(crate) fn succeeded(&mut self, now: Timestamp, login: &str, peer: IpAddr) {
        let pair: (IpAddr, Box<str>) = (network(peer), login.into());
        self.marks.remove(&LockoutKey::Pair(pair.0, pair.1.clone()));
        self.known.put(now, pair, ());
    }

    /// Returns whether this login has succeeded from this address.
    pub(crate) fn is_known(&self, login: &str, peer: IpAddr) -> bool {
        self.known.get(&(network(peer), login.into())).is_some()
    }

    /// Returns whether cached credentials may be looked up, even if a password may not be verified
    /// now.
    pub(crate) fn may_recall(&mut self, now: Timestamp, login: &str, peer: IpAddr) -> bool {
        let pair = LockoutKey::Pair(network(peer), login.into());
        if self.check(now, Some(login), peer).is_ok() {
            return true;
        }
        let is_known = self.is_known(login, peer);
        let Some(mark) = self.marks.get_mut(&pair).filter(|_| is_known) else { return false };
        mark.recalls = mark.recalls.saturating_add(1);
        mark.recalls <= RECALLS_MAX
    }

    fn mark(&self, now: Timestamp, key: &LockoutKey) -> Option<&FailureCount> {
        self.marks.get(key).filter(|(failed, _)| now.since(*failed) < FORGIVEN_NS).map(|(_, mark)| mark)
    }

    fn failures(&self, now: Timestamp, key: &LockoutKey) -> u32 {
        self.mark(now, key).map_or(0, |mark| mark.failures)
    }

    fn until(&self, now: Timestamp, key: &LockoutKey) -> Timestamp {
        self.mark(now, key).map_or(Timestamp::ZERO, |mark| mark.until)
    }
}

/// Returns whether an address has a counter of its own. Loopback has none: it stands for the
/// clients of a proxy, or for all users of this machine.
fn is_counted(network: IpAddr) -> bool {
    !network.is_loopback()
}

/// Returns the network that an address is counted under: a host with IPv6 usually has a /64 of its
/// own.
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

    /// Counts this number of failures.
    fn guess(lockout: &mut Lockout, now: Timestamp, login: &str, peer: IpAddr, times: usize) {
        for _ in 0..times {
            lockout.failed(now, Some(login), peer);
        }
    }

    #[test]
    fn a_login_from_one_address_waits_longer_with_each_failure() {
        let mut lockout = Lockout::default();
        guess(&mut lockout, START, "alice", HERE, 4);
        assert_eq!(lockout.check(START, Some("alice"), HERE), Ok(()));
        let mut now = START;
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(lockout.failed(now, Some("alice"), HERE), Some(wait));
            assert_eq!(lockout.check(now, Some("bob"), HERE), Ok(()));
            now = Timestamp(now.0 + wait as u64 * NS_PER_S - 1);
            assert_eq!(lockout.check(now, Some("alice"), HERE), Err(1));
            now = Timestamp(now.0 + 1);
            assert_eq!(lockout.check(now, Some("alice"), HERE), Ok(()));
        }
        lockout.succeeded(now, "alice", HERE);
        assert_eq!(lockout.failed(now, Some("alice"), HERE), None, "the earlier failures were removed");
    }

    #[test]
    fn one_guesser_does_not_slow_down_others() {
        let mut lockout = Lockout::default();
        for n in 0..1_000 {
            lockout.failed(at(n), Some("alice"), far(1));
            assert_eq!(lockout.check(at(n), Some("alice"), far(2)), Ok(()), "a client that never connected");
        }
        assert!(lockout.check(at(1_000), Some("alice"), far(1)).is_err());
    }

    #[test]
    fn many_addresses_that_guess_at_one_login_are_slowed_down_and_a_known_one_is_not() {
        let mut lockout = Lockout::default();
        lockout.succeeded(START, "alice", far(100));
        for n in 0..50 {
            guess(&mut lockout, START, "alice", far(n), 5);
        }
        assert_eq!(lockout.check(START, Some("alice"), far(100)), Ok(()));
        assert_eq!(lockout.check(START, Some("bob"), far(101)), Ok(()));
        // A new address waits from its first attempt on, and failures of others do not prolong its
        // wait.
        assert_eq!(lockout.check(START, Some("alice"), far(101)), Err(30));
        for n in 0..29_u32 {
            lockout.failed(at(n.into()), Some("alice"), far(200));
            assert_eq!(lockout.check(at(n.into()), Some("alice"), far(101)), Err(30 - n));
        }
        assert_eq!(lockout.check(at(30), Some("alice"), far(101)), Ok(()));
        assert_eq!(lockout.failed(at(30), Some("alice"), far(101)), Some(30), "one attempt in 30 s");
        assert_eq!(lockout.check(at(60), Some("alice"), far(101)), Ok(()));
        lockout.succeeded(at(60), "alice", far(101));
        guess(&mut lockout, at(61), "alice", far(102), 5);
        assert_eq!(lockout.check(at(61), Some("alice"), far(101)), Ok(()), "it is known from now on");
    }

    #[test]
    fn an_address_waits_whichever_login_it_tries_but_for_one_that_is_known_there() {
        let mut lockout = Lockout::default();
        lockout.succeeded(START, "mine", far(1));
        for n in 0..19 {
            lockout.failed(START, Some(&format!("user{n}")), far(1));
            lockout.failed(START, None, HERE);
        }
        assert_eq!(lockout.check(START, None, far(1)), Ok(()));
        assert_eq!(lockout.failed(START, None, far(1)), Some(1));
        assert_eq!(lockout.check(START, Some("new"), far(1)), Err(1));
        assert_eq!(lockout.check(START, Some("new"), far(2)), Ok(()));
        assert_eq!(lockout.check(START, Some("mine"), far(1)), Ok(()));
        // A login of its own does not help an address with other logins.
        lockout.succeeded(START, "mine", far(1));
        assert_eq!(lockout.failed(START, None, far(1)), Some(2));
        for _ in 0..30 {
            lockout.failed(START, None, far(1));
            lockout.failed(START, None, HERE);
        }
        assert_eq!(lockout.check(START, None, far(1)), Err(60));
        assert_eq!(lockout.check(START, None, HERE), Ok(()), "loopback stands for every client");
        assert_eq!(lockout.failed(at(3_600), None, far(1)), None, "forgiven");
    }

    #[test]
    fn cache_look_ups_are_bounded_while_their_pair_waits() {
        let mut lockout = Lockout::default();
        guess(&mut lockout, START, "alice", HERE, 5);
        assert!(!lockout.may_recall(START, "alice", HERE), "it was never right here");
        lockout.succeeded(START, "alice", HERE);
        guess(&mut lockout, START, "alice", HERE, 9);
        for _ in 0..RECALLS_MAX {
            assert!(lockout.may_recall(START, "alice", HERE));
        }
        assert!(!lockout.may_recall(START, "alice", HERE));
        assert!(lockout.may_recall(at(60), "alice", HERE));
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let mut lockout = Lockout::default();
        for n in 0..20u16 {
            lockout.failed(START, None, IpAddr::from([0x2001, 0xdb8, 0, 1, n, 0, 0, n]));
        }
        let of = |net: u16| IpAddr::from([0x2001, 0xdb8, 0, net, 9, 9, 9, 9]);
        assert_eq!(lockout.check(START, None, of(1)), Err(1));
        assert_eq!(lockout.check(START, None, of(2)), Ok(()));
        lockout.succeeded(START, "alice", of(1));
        assert!(lockout.is_known("alice", IpAddr::from([0x2001, 0xdb8, 0, 1, 7, 7, 7, 7])));
    }

    #[test]
    fn the_tables_are_bounded_and_evict_the_oldest() {
        let mut lockout = Lockout::default();
        guess(&mut lockout, START, "alice", HERE, 6);
        for n in 0..MARKS_MAX {
            lockout.failed(at(1), Some(&n.to_string()), HERE);
            assert!(lockout.marks.len() <= MARKS_MAX);
        }
        assert_eq!(lockout.check(START, Some("alice"), HERE), Ok(()));
        for n in 0..=KNOWN_MAX {
            lockout.succeeded(at(n as u64), &n.to_string(), HERE);
            assert!(lockout.known.len() <= KNOWN_MAX);
        }
        assert!(!lockout.is_known("0", HERE) && lockout.is_known("1", HERE));
    }
}
