//! Addresses for servers of other processes, which cannot report the port that the system chose.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

/// Returns addresses of loopback that were free a moment ago. They differ, because each stays taken
/// until the last one is found.
pub(crate) fn free_addresses<const N: usize>() -> io::Result<[SocketAddr; N]> {
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    let mut taken = Vec::new();
    for address in &mut addresses {
        let listener = TcpListener::bind(*address)?;
        *address = listener.local_addr()?;
        taken.push(listener);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ() {
        let mut ports = free_addresses::<50>().unwrap().map(|address| address.port());
        ports.sort_unstable();
        assert!(ports[0] > 0 && ports.windows(2).all(|pair| pair[0] < pair[1]), "{ports:?}");
    }
}
