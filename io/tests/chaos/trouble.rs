//! What happens to a platform in the middle of a life, beside its end.

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

/// Connections of a storm, to each door.
const STORM: usize = 200;
const SLOW_READERS: usize = 8;
/// Hostile sessions, to each door.
const HOSTILE: u64 = 40;
/// Memory beyond what is in use when the limit comes.
const SPARE_BYTES: u64 = 2 << 20;
/// Packets lost, of a hundred.
const LOSS_PERCENT: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Nothing,
    /// SIGSTOP, and SIGCONT after so many milliseconds.
    Pause(u64),
    /// The wall clock is put by so many seconds.
    Clock(i64),
    /// This sync of a file fails.
    BadSync(u64),
    /// Connections that come and go.
    Storm,
    /// People who ask and do not read.
    SlowReaders,
    Hostile,
    /// Not a byte more for the process: by its address space, which everybody may limit.
    AddressSpace,
    /// The same by a control group, whose owner is killed at the limit.
    Memory,
    /// No room on the disk for a while.
    FullDisk,
    /// Packets are lost on the way.
    Loss,
    /// Nothing gets through to FIX and STOMP for a while.
    Partition,
}

/// What this machine and whoever runs it permit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Abilities {
    /// A file system of our own can be mounted.
    pub image: bool,
    /// The network is ours alone, so that its rules may be changed.
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
    /// Each kind once, as far as it is possible here.
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

    /// What the process is asked to do to itself.
    pub fn fault(self) -> Option<String> {
        match self {
            // Some looks at the clock are of the start.
            Trouble::Clock(seconds) => Some(format!("clock:30:{seconds}")),
            Trouble::BadSync(at) => Some(format!("sync:{at}")),
            _ => None,
        }
    }

    pub fn settings(self) -> &'static [&'static str] {
        match self {
            // Only there somebody waits for syncs.
            Trouble::BadSync(_) => &["journal.level=disk"],
            // Prices fill the journal, so that it wants room soon.
            Trouble::FullDisk => &["feed.rate=20000"],
            // Who is cut off is given up soon.
            Trouble::Partition => &["net.user_timeout_ms=1000"],
            _ => &[],
        }
    }

    /// Whether a process that ends by itself has only done what it could.
    pub fn may_end_it(self) -> bool {
        matches!(self, Trouble::AddressSpace | Trouble::Memory)
    }

    /// Whether it may happen so early that nothing is begun: then the service says why, and ends.
    pub fn may_prevent_a_start(self) -> bool {
        matches!(self, Trouble::BadSync(_))
    }

    /// Lets it happen. What is given back lasts until the life ends.
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
                    // Half of them go at once.
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
                // As much as there is; it is meant to fail.
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

/// Bytes of a process's address space; none where the system does not tell.
fn address_space(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1_024
}

/// Where it happens.
pub struct Scene<'a> {
    pub service: &'a Service,
    pub doors: Doors,
    pub crowd: &'a Crowd,
    pub place: &'a Place,
    /// Acts that are still to come.
    pub acts: u64,
}

/// Lasts until the life ends.
#[derive(Default)]
pub struct Aftermath {
    sockets: Vec<TcpStream>,
    sessions: Vec<Client>,
    group: Option<Group>,
    rules: Option<Rules>,
}

impl Aftermath {
    /// Some who ask for everything and read nothing of it.
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

/// Rules of the packet filter, as long as this lives. They hold in our own network only.
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

/// A control group with little memory, as long as this lives.
struct Group {
    folder: &'static str,
    limit: &'static str,
}

/// Where groups are made that can limit memory: by the second version of the interface, or the first.
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

    /// What the process has already is counted where it was taken; what it asks for from now on is counted here.
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

/// Whether groups can be made here.
pub fn can_limit_memory() -> bool {
    Group::new().is_some()
}
