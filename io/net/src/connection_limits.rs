//! Counts and limits of connections: in total and from each peer.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

#[derive(Debug)]
pub(super) struct PeerLimits {
    all: u32,
    all_max: u32,
    peers: BTreeMap<IpAddr, u32>,
    per_peer_max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitReached {
    All,
    Peer,
}

impl PeerLimits {
    pub(super) fn new(all_max: u32, per_peer_max: u32) -> PeerLimits {
        PeerLimits { all: 0, all_max, peers: BTreeMap::new(), per_peer_max }
    }

    pub(super) fn admits(&self, peer: IpAddr) -> Result<(), LimitReached> {
        if self.all >= self.all_max {
            return Err(LimitReached::All);
        }
        let present = self.peers.get(&network_of(peer)).copied().unwrap_or(0);
        if present >= self.per_peer_max { Err(LimitReached::Peer) } else { Ok(()) }
    }

    pub(super) fn enter(&mut self, peer: IpAddr) {
        self.all += 1;
        *self.peers.entry(network_of(peer)).or_insert(0) += 1;
    }

    pub(super) fn leave(&mut self, peer: IpAddr) {
        self.all -= 1;
        let network_of = network_of(peer);
        if let Some(count) = self.peers.get_mut(&network_of) {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&network_of);
            }
        }
    }
}

/// Returns an IPv4 address as such, even if it is mapped to IPv6; or the /64 network of an IPv6
/// address, which is what one host has.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_one_address_or_one_network() {
        let mut limits = PeerLimits::new(100, 1);
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        limits.enter(ip("10.0.0.1"));
        assert_eq!(limits.admits(ip("::ffff:10.0.0.1")), Err(LimitReached::Peer));
        assert_eq!(limits.admits(ip("10.0.0.2")), Ok(()));
        limits.enter(ip("2001:db8::1"));
        assert_eq!(limits.admits(ip("2001:db8::2")), Err(LimitReached::Peer));
        assert_eq!(limits.admits(ip("2001:db8:0:1::1")), Ok(()));
        limits.leave(ip("10.0.0.1"));
        assert_eq!(limits.admits(ip("10.0.0.1")), Ok(()));
        limits.leave(ip("2001:db8::7"));
        assert!(limits.peers.is_empty());
    }

    #[test]
    fn the_total_is_limited() {
        let mut limits = PeerLimits::new(1, 10);
        limits.enter("10.0.0.1".parse().unwrap());
        assert_eq!(limits.admits("10.0.0.2".parse().unwrap()), Err(LimitReached::All));
    }
}
