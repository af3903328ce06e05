//! Disturbances of a platform while it runs, besides its end.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use pitlane_engine::rng::Rng;
use pitlane_testkit::disk_image::sh;
use pitlane_testkit::service::ServiceProcess;
use pitlane_testkit::stomp_client::StompClient;

use crate::hostile::{self, HostileProtocol};
use crate::site::TestSite;
use crate::subscribers::{self, SubscriberTransport};
use crate::traders::{RunningClients, ServiceAddresses, wire};

/// Connections of a burst, to each listener.
const STORM: usize = 200;
const SLOW_READERS: usize = 8;
/// Hostile sessions, to each listener.
const HOSTILE: u64 = 40;
/// Memory in bytes beyond the current use when the limit is set.
const SPARE_BYTES: u64 = 2 << 20;
/// Lost packets, in percent.
const LOSS_PERCENT: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    Nothing,
    /// SIGSTOP, and SIGCONT after so many milliseconds.
    Pause(u64),
    /// The wall clock is set by so many seconds.
    Clock(i64),
    /// This sync of a file fails.
    BadSync(u64),
    /// Connections that open and close.
    Storm,
    /// Clients that send requests and do not read.
    SlowReaders,
    Hostile,
    /// No more memory for the process: by its address space, which every user may limit.
    AddressSpace,
    /// The same by a control group, whose process is killed at the limit.
    Memory,
    /// No room on the disk for a while.
    FullDisk,
    /// Lost packets.
    Loss,
    /// No traffic to FIX and STOMP for a while.
    Partition,
}

/// What this machine and its user permit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Abilities {
    /// A file system can be mounted.
    pub image: bool,
    /// The network is separate, so that its rules may be changed.
    pub net: bool,
    pub groups: bool,
}

impl Abilities {
    #[cfg(test)]
    pub(crate) fn all() -> Abilities {
        Abilities { image: true, net: true, groups: true }
    }
}

impl Disturbance {
    /// Returns each kind once, as far as it is possible here.
    pub(crate) fn all(able: Abilities, dice: &mut Rng) -> Vec<Disturbance> {
        let hour = 3_600;
        let mut all = vec![
            Disturbance::Nothing,
            Disturbance::Pause(50 + dice.below(400)),
            Disturbance::Clock(1 + dice.below(hour) as i64),
            Disturbance::Clock(-1 - dice.below(hour) as i64),
            Disturbance::BadSync(5 + dice.below(60)),
            Disturbance::Storm,
            Disturbance::SlowReaders,
            Disturbance::Hostile,
            Disturbance::AddressSpace,
        ];
        if able.groups {
            all.push(Disturbance::Memory);
        }
        if able.image {
            all.push(Disturbance::FullDisk);
        }
        if able.net {
            all.extend([Disturbance::Loss, Disturbance::Partition]);
        }
        all
    }

    /// Returns the fault that the process injects itself.
    pub(crate) fn fault(self) -> Option<String> {
        // Some readings of the clock belong to the start.
        if let Disturbance::Clock(seconds) = self {
            return Some(format!("clock:30:{seconds}"));
        }
        let Disturbance::BadSync(at) = self else { return None };
        Some(format!("sync:{at}"))
    }

    pub(crate) fn settings(self) -> &'static [&'static str] {
        // Only this level waits for syncs.
        if matches!(self, Disturbance::BadSync(_)) {
            return &["journal.level=disk"];
        }
        // Prices fill the journal, so that it needs room soon.
        if matches!(self, Disturbance::FullDisk) {
            return &["feed.rate=20000"];
        }
        // A disconnected peer is closed soon.
        if matches!(self, Disturbance::Partition) { &["net.user_timeout_ms=1000"] } else { &[] }
    }

    /// Returns whether a process may end by itself under this disturbance.
    pub(crate) fn may_end_it(self) -> bool {
        matches!(self, Disturbance::AddressSpace | Disturbance::Memory)
    }

    /// Returns whether the disturbance may come before the start is complete: then the service
    /// reports why, and ends.
    pub(crate) fn may_prevent_a_start(self) -> bool {
        matches!(self, Disturbance::BadSync(_))
    }

    /// Applies the disturbance. The returned value lasts until the process ends.
    pub(crate) fn strike(self, context: &DisturbanceContext<'_>, dice: &mut Rng) -> Aftermath {
        let addresses = &context.addresses;
        let mut aftermath = Aftermath::default();
        match self {
            Disturbance::Nothing | Disturbance::Clock(_) | Disturbance::BadSync(_) => {}
            Disturbance::Pause(ms) => {
                context.service.pause();
                context.running.idle(Duration::from_millis(ms));
                context.service.signal("CONT");
            }
            Disturbance::Storm => {
                for address in [addresses.fix, addresses.stomp, addresses.http] {
                    let running = (0..STORM).filter_map(|_| wire(address).ok());
                    aftermath.sockets.extend(running);
                    // Half of them close at once.
                    aftermath.sockets.truncate(aftermath.sockets.len() - STORM / 2);
                }
            }
            Disturbance::SlowReaders => aftermath.read_slowly(addresses),
            Disturbance::Hostile => {
                for protocol in HostileProtocol::ALL {
                    hostile::visit(protocol, addresses, HOSTILE, dice);
                }
            }
            Disturbance::AddressSpace => {
                let limit = address_space(context.service.id()) + SPARE_BYTES;
                sh(&format!("prlimit --pid {} --as={limit}", context.service.id()));
                aftermath.read_slowly(addresses);
            }
            Disturbance::Memory => {
                aftermath.group = MemoryGroup::around(context.service.id());
                aftermath.read_slowly(addresses);
            }
            Disturbance::FullDisk => {
                let ballast = context.site.ballast();
                // As much as there is room for; the command is meant to fail.
                sh(&format!("dd if=/dev/zero of={} bs=1M 2>/dev/null", ballast.display()));
                context.running.wait(context.acts);
                let _ = fs::remove_file(ballast);
            }
            Disturbance::Loss => {
                aftermath.rules = PacketRules::set(&[&format!(
                    "-i lo -m statistic --mode random --probability 0.{LOSS_PERCENT:02} -j DROP"
                )]);
            }
            Disturbance::Partition => {
                let shut = |port: u16| format!("-i lo -p tcp --dport {port} -j DROP");
                let rules = PacketRules::set(&[&shut(addresses.fix.port()), &shut(addresses.stomp.port())]);
                context.running.idle(Duration::from_millis(500 + dice.below(1_500)));
                drop(rules);
            }
        }
        aftermath
    }
}

/// Returns the size of a process's address space; zero where the system does not show it.
fn address_space(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

/// Context of a disturbance.
pub(crate) struct DisturbanceContext<'a> {
    pub service: &'a ServiceProcess,
    pub addresses: ServiceAddresses,
    pub running: &'a RunningClients,
    pub site: &'a TestSite,
    /// Actions that are still to come.
    pub acts: u64,
}

/// Lasts until the process ends.
#[derive(Default)]
pub(crate) struct Aftermath {
    sockets: Vec<TcpStream>,
    sessions: Vec<StompClient>,
    group: Option<MemoryGroup>,
    rules: Option<PacketRules>,
}

impl Aftermath {
    /// Opens clients that request everything and read nothing.
    fn read_slowly(&mut self, addresses: &ServiceAddresses) {
        for over in [SubscriberTransport::Tcp, SubscriberTransport::WebSocket] {
            for _ in 0..SLOW_READERS {
                let Ok(mut client) = subscribers::connect(over, addresses) else { continue };
                for topic in ["tick.*", "pitlane.>", "order.>", "transaction.>", "book.>"] {
                    let _ = client
                        .try_send_message(&format!("SUBSCRIBE|id:{topic}|destination:/topic/{topic}||"));
                }
                self.sessions.push(client);
            }
        }
        for _ in 0..SLOW_READERS {
            let Ok(mut socket) = wire(addresses.http) else { continue };
            for _ in 0..SLOW_READERS {
                let _ = socket.write_all(b"GET /rest/ext/order/history HTTP/1.1\r\nHost: localhost\r\n\r\n");
            }
            self.sockets.push(socket);
        }
    }
}

/// Rules of the packet filter, in force while this exists. They apply to our separate network only.
struct PacketRules;

impl PacketRules {
    fn set(rules: &[&str]) -> Option<PacketRules> {
        let set = rules.iter().all(|rule| sh(&format!("iptables -A INPUT {rule}")));
        set.then_some(PacketRules)
    }
}

impl Drop for PacketRules {
    fn drop(&mut self) {
        sh("iptables -F INPUT");
    }
}

/// A control group with little memory, while this exists.
struct MemoryGroup {
    folder: &'static str,
    limit: &'static str,
}

/// Locations of control groups that can limit memory: version 2 of the interface, or version 1.
const GROUPS: [MemoryGroup; 2] = [
    MemoryGroup { folder: "/sys/fs/cgroup/chaos", limit: "memory.max" },
    MemoryGroup { folder: "/sys/fs/cgroup/memory/chaos", limit: "memory.limit_in_bytes" },
];

impl MemoryGroup {
    fn new() -> Option<MemoryGroup> {
        GROUPS.into_iter().find(|MemoryGroup { folder, limit }| {
            fs::create_dir_all(folder).is_ok() && fs::metadata(format!("{folder}/{limit}")).is_ok()
        })
    }

    /// The memory the process already has is counted where it was allocated; new memory is counted
    /// here.
    fn around(process: u32) -> Option<MemoryGroup> {
        let group = MemoryGroup::new()?;
        let MemoryGroup { folder, limit } = group;
        fs::write(format!("{folder}/cgroup.procs"), process.to_string()).ok()?;
        fs::write(format!("{folder}/{limit}"), SPARE_BYTES.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.folder);
    }
}

/// Returns whether control groups can be created here.
pub(crate) fn can_limit_memory() -> bool {
    MemoryGroup::new().is_some()
}
