//! The process that listens on a port, as far as the kernel shows it: for the message about a port
//! in use.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// State of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// Who listens on an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortOwner {
    Process {
        id: u32,
        name: String,
    },
    /// The processes of this user are not visible to ours.
    User(u32),
}

impl fmt::Display for PortOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortOwner::Process { id, name } => write!(f, "process {id} ({name}) listens there"),
            PortOwner::User(uid) => {
                write!(f, "a process of user {uid} listens there (`sudo ss -ltnp` shows it)")
            }
        }
    }
}

impl PortOwner {
    /// Finds the owner below a root folder; `/` is this machine.
    pub fn find(root: &Path, address: SocketAddr) -> Option<PortOwner> {
        let tables = ["proc/net/tcp", "proc/net/tcp6"].map(|file| fs::read_to_string(root.join(file)));
        let mut sockets = tables.iter().flatten().flat_map(|table| table.lines()).filter_map(parse);
        let socket = sockets.find(|socket| socket.blocks(address))?;
        Some(process_with(root, &socket).unwrap_or(PortOwner::User(socket.uid)))
    }
}

/// A listening socket.
struct ListeningSocket<'a> {
    address: SocketAddr,
    uid: u32,
    inode: &'a str,
}

impl ListeningSocket<'_> {
    /// Returns whether no other socket can listen on this address.
    fn blocks(&self, address: SocketAddr) -> bool {
        let (own, other) = (self.address.ip().to_canonical(), address.ip().to_canonical());
        self.address.port() == address.port()
            && (own == other || own.is_unspecified() || other.is_unspecified())
    }
}

/// Parses a line of `/proc/net/tcp`: number, local and remote address, state, queues, timer,
/// retransmissions, user, timeout, inode.
fn parse(line: &str) -> Option<ListeningSocket<'_>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, LISTEN, _, _, _, uid, _, inode, ..] = fields[..] else { return None };
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(ListeningSocket { address: SocketAddr::new(parse_ip(ip)?, port), uid: uid.parse().ok()?, inode })
}

/// Parses an address: words of 32 bits in the byte order of this machine.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(hex.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut octets = [0; 16];
            for (at, part) in octets.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(8 * at)?);
            }
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

/// Returns the process that has this socket open, if its files are visible to us.
fn process_with(root: &Path, socket: &ListeningSocket<'_>) -> Option<PortOwner> {
    let wanted = format!("socket:[{}]", socket.inode);
    let processes = fs::read_dir(root.join("proc")).ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for id in ids {
        let folder = root.join(format!("proc/{id}"));
        let mut files = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        let has_it = |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| to == Path::new(&wanted));
        if files.any(has_it) {
            let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            return Some(PortOwner::Process { id, name: name.trim().to_string() });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::process;

    use super::*;

    #[test]
    fn the_process_that_listens_is_found() {
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::1]:0", "[::]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(bound) else { continue };
            let port = listener.local_addr().unwrap().port();
            let here = SocketAddr::new(listener.local_addr().unwrap().ip(), port);
            let owner = PortOwner::find(Path::new("/"), here);
            assert!(
                matches!(owner, Some(PortOwner::Process { id, .. }) if id == process::id()),
                "{bound} {owner:?}"
            );
            drop(listener);
            assert_eq!(PortOwner::find(Path::new("/"), here), None, "{bound}");
        }
    }

    #[test]
    fn an_owner_whose_files_are_hidden_is_named_by_its_user() {
        let root = std::env::temp_dir().join(format!("pitlane-ports-{}", process::id()));
        fs::create_dir_all(root.join("proc/net")).unwrap();
        let local = format!("{:08X}", u32::from_ne_bytes([127, 0, 0, 1]));
        let text = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \x20  0: {local}:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100\n\
             \x20  1: {local}:2383 {local}:0050 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0 100\n"
        );
        fs::write(root.join("proc/net/tcp"), text).unwrap();
        let find = |address: &str| PortOwner::find(&root, address.parse().unwrap());
        assert_eq!(find("127.0.0.1:9090"), Some(PortOwner::User(1000)));
        assert_eq!(find("0.0.0.0:9090"), Some(PortOwner::User(1000)));
        assert_eq!(find("127.0.0.2:9090"), None, "another address");
        assert_eq!(find("127.0.0.1:9091"), None, "a connection is no listener");
        fs::remove_dir_all(root).unwrap();
    }
}
