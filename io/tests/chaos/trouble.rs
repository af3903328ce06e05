//! Disturbances of a platform while it runs, besides its end.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use pitlane_engine::rng::Rng;

use crate::ears::{self, Over};
use crate::hostile::{self, Protocol};
use crate::image::sh;
use crate::people::{Crowd, Doors, wire};
use crate::place::Place;
use crate::service::Service;
use crate::stomp::client::Client;

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
pub enum Trouble {
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
pub struct Abilities {
    /// A file system can be mounted.
    pub image: bool,
    /// The network is separate, so that its rules may be changed.
    pub net: bool,
    pub groups: bool,
}

impl Abilities {
    #[cfg(test)]
    pub fn all() -> Abilities {
        Abilities { image: true, net: true, groups: true }
    }
}

impl Trouble {
    /// Returns each kind once, as far as it is possible here.
    pub fn all(able: Abilities, dice: &mut Rng) -> Vec<Trouble> {
        let hour = 3_600;
        let mut all = vec![
            Trouble::Nothing,
            Trouble::Pause(50 + dice.below(400)),
            Trouble::Clock(1 + dice.below(hour) as i64),
            Trouble::Clock(-1 - dice.below(hour) as i64),
            Trouble::BadSync(5 + dice.below(60)),
            Trouble::Storm,
            Trouble::SlowReaders,
            Trouble::Hostile,
            Trouble::AddressSpace,
        ];
        if able.groups {
            all.push(Trouble::Memory);
        }
        if able.image {
            all.push(Trouble::FullDisk);
        }
        if able.net {
            all.extend([Trouble::Loss, Trouble::Partition]);
        }
        all
    }

    /// Returns the fault that the process injects itself.
    pub fn fault(self) -> Option<String> {
        match self {
            // Some readings of the clock belong to the start.
            Trouble::Clock(seconds) => Some(format!("clock:30:{seconds}")),
            Trouble::BadSync(at) => Some(format!("sync:{at}")),
            _ => None,
        }
    }

    pub fn settings(self) -> &'static [&'static str] {
        match self {
            // Only this level waits for syncs.
            Trouble::BadSync(_) => &["journal.level=disk"],
            // Prices fill the journal, so that it needs room soon.
            Trouble::FullDisk => &["feed.rate=20000"],
            // A disconnected peer is closed soon.
            Trouble::Partition => &["net.user_timeout_ms=1000"],
            _ => &[],
        }
    }

    /// Returns whether a process may end by itself under this disturbance.
    pub fn may_end_it(self) -> bool {
        matches!(self, Trouble::AddressSpace | Trouble::Memory)
    }

    /// Returns whether the disturbance may come before the start is complete: then the service
    /// reports why, and ends.
    pub fn may_prevent_a_start(self) -> bool {
        matches!(self, Trouble::BadSync(_))
    }

    /// Applies the disturbance. The returned value lasts until the process ends.
    pub fn strike(self, scene: &Scene<'_>, dice: &mut Rng) -> Aftermath {
        let doors = &scene.doors;
        let mut aftermath = Aftermath::default();
        match self {
            Trouble::Nothing | Trouble::Clock(_) | Trouble::BadSync(_) => {}
            Trouble::Pause(ms) => {
                scene.service.pause();
                scene.crowd.idle(Duration::from_millis(ms));
                scene.service.signal("CONT");
            }
            Trouble::Storm => {
                for address in [doors.fix, doors.stomp, doors.http] {
                    let crowd = (0..STORM).filter_map(|_| wire(address).ok());
                    aftermath.sockets.extend(crowd);
                    // Half of them close at once.
                    aftermath.sockets.truncate(aftermath.sockets.len() - STORM / 2);
                }
            }
            Trouble::SlowReaders => aftermath.read_slowly(doors),
            Trouble::Hostile => {
                for protocol in Protocol::ALL {
                    hostile::visit(protocol, doors, HOSTILE, dice);
                }
            }
            Trouble::AddressSpace => {
                let limit = address_space(scene.service.id()) + SPARE_BYTES;
                sh(&format!("prlimit --pid {} --as={limit}", scene.service.id()));
                aftermath.read_slowly(doors);
            }
            Trouble::Memory => {
                aftermath.group = Group::around(scene.service.id());
                aftermath.read_slowly(doors);
            }
            Trouble::FullDisk => {
                let ballast = scene.place.ballast();
                // As much as there is room for; the command is meant to fail.
                sh(&format!("dd if=/dev/zero of={} bs=1M 2>/dev/null", ballast.display()));
                scene.crowd.wait(scene.acts);
                let _ = fs::remove_file(ballast);
            }
            Trouble::Loss => {
                aftermath.rules = Rules::set(&[&format!(
                    "-i lo -m statistic --mode random --probability 0.{LOSS_PERCENT:02} -j DROP"
                )]);
            }
            Trouble::Partition => {
                let shut = |port: u16| format!("-i lo -p tcp --dport {port} -j DROP");
                let rules = Rules::set(&[&shut(doors.fix.port()), &shut(doors.stomp.port())]);
                scene.crowd.idle(Duration::from_millis(500 + dice.below(1_500)));
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
pub struct Scene<'a> {
    pub service: &'a Service,
    pub doors: Doors,
    pub crowd: &'a Crowd,
    pub place: &'a Place,
    /// Actions that are still to come.
    pub acts: u64,
}

/// Lasts until the process ends.
#[derive(Default)]
pub struct Aftermath {
    sockets: Vec<TcpStream>,
    sessions: Vec<Client>,
    group: Option<Group>,
    rules: Option<Rules>,
}

impl Aftermath {
    /// Opens clients that request everything and read nothing.
    fn read_slowly(&mut self, doors: &Doors) {
        for over in [Over::Tcp, Over::WebSocket] {
            for _ in 0..SLOW_READERS {
                let Ok(mut client) = ears::connect(over, doors) else { continue };
                for topic in ["tick.*", "pitlane.>", "order.>", "transaction.>", "book.>"] {
                    let _ = client.try_say(&format!("SUBSCRIBE|id:{topic}|destination:/topic/{topic}||"));
                }
                self.sessions.push(client);
            }
        }
        for _ in 0..SLOW_READERS {
            let Ok(mut socket) = wire(doors.http) else { continue };
            for _ in 0..SLOW_READERS {
                let _ = socket.write_all(b"GET /rest/ext/order/history HTTP/1.1\r\nHost: localhost\r\n\r\n");
            }
            self.sockets.push(socket);
        }
    }
}

/// Rules of the packet filter, in force while this exists. They apply to our separate network only.
struct Rules;

impl Rules {
    fn set(rules: &[&str]) -> Option<Rules> {
        let set = rules.iter().all(|rule| sh(&format!("iptables -A INPUT {rule}")));
        set.then_some(Rules)
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        sh("iptables -F INPUT");
    }
}

/// A control group with little memory, while this exists.
struct Group {
    folder: &'static str,
    limit: &'static str,
}

/// Locations of control groups that can limit memory: version 2 of the interface, or version 1.
const GROUPS: [Group; 2] = [
    Group { folder: "/sys/fs/cgroup/chaos", limit: "memory.max" },
    Group { folder: "/sys/fs/cgroup/memory/chaos", limit: "memory.limit_in_bytes" },
];

impl Group {
    fn new() -> Option<Group> {
        GROUPS.into_iter().find(|Group { folder, limit }| {
            fs::create_dir_all(folder).is_ok() && fs::metadata(format!("{folder}/{limit}")).is_ok()
        })
    }

    /// The memory the process already has is counted where it was allocated; new memory is counted
    /// here.
    fn around(process: u32) -> Option<Group> {
        let group = Group::new()?;
        let Group { folder, limit } = group;
        fs::write(format!("{folder}/cgroup.procs"), process.to_string()).ok()?;
        fs::write(format!("{folder}/{limit}"), SPARE_BYTES.to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(self.folder);
    }
}

/// Returns whether control groups can be created here.
pub fn can_limit_memory() -> bool {
    Group::new().is_some()
}
