//! Checks of the limits of this process: memory, files, rings, ports.

use pitlane_config::{Config, NetDriver};

use super::host::HostFiles;
use super::probes::Probes;
use super::{HostCheck, HostFinding};

/// Memory that a ring locks, for each gateway: its queues, 200 KiB, and a reserve. The kernel does
/// not lock the buffers.
const LOCKED_BYTES_PER_GATEWAY: u64 = 1 << 20;
/// Files besides connections: journals, logs, stores, pollers.
const FILES_BESIDES: u64 = 256;

const LOCKED: HostCheck =
    HostCheck { name: "memlock", why: "io_uring needs locked memory, or falls back to epoll" };
const FILES: HostCheck = HostCheck {
    name: "open-files",
    why: "each connection is an open file; without one left, clients are refused",
};
const RING: HostCheck =
    HostCheck { name: "io_uring", why: "without it net.driver = \"uring\" falls back to epoll" };
const PORTS: HostCheck = HostCheck { name: "ports", why: "a listener whose port is taken refuses to start" };

pub(super) fn check(config: &Config, host: &HostFiles, probes: &Probes) -> Vec<HostFinding> {
    vec![locked_memory(config, host), open_files(config, host), ring(config, host, probes), ports(probes)]
}

fn locked_memory(config: &Config, host: &HostFiles) -> HostFinding {
    let wanted = LOCKED_BYTES_PER_GATEWAY * config.topology.gateways as u64;
    match host.limit("Max locked memory") {
        None => LOCKED.unknown("the system does not report the limit"),
        Some(u64::MAX) => LOCKED.fit("unlimited"),
        Some(bytes) if bytes >= wanted || config.net.driver == NetDriver::Epoll => {
            LOCKED.fit(format!("{} KiB{}", bytes >> 10, not_needed(config)))
        }
        Some(bytes) => {
            let found = format!("{} KiB of at least {}", bytes >> 10, wanted >> 10);
            LOCKED.unfit(found, "ulimit -l unlimited; in a systemd unit: LimitMEMLOCK=infinity")
        }
    }
}

fn open_files(config: &Config, host: &HostFiles) -> HostFinding {
    let wanted = config.net.connections_max as u64 + config.http.connections_max as u64 + FILES_BESIDES;
    match host.limit("Max open files") {
        None => FILES.unknown("the system does not report the limit"),
        Some(files) if files >= wanted => FILES.fit(format!("{files} of at least {wanted}")),
        Some(files) => {
            let found = format!("{files} of at least {wanted}, for the connections that are permitted");
            FILES.unfit(found, format!("ulimit -n {wanted}; in a systemd unit: LimitNOFILE={wanted}"))
        }
    }
}

fn ring(config: &Config, host: &HostFiles, probes: &Probes) -> HostFinding {
    let disabled = host.text("proc/sys/kernel/io_uring_disabled").unwrap_or("0".to_string());
    let trouble = match (&probes.ring, disabled.as_str()) {
        (Ok(()), _) => return RING.fit("a ring could be made"),
        (Err(problem), "0") => (
            format!("no ring could be made: {problem}"),
            "let the container's seccomp profile permit io_uring_setup",
        ),
        (Err(_), _) => {
            (format!("kernel.io_uring_disabled is {disabled}"), "sysctl -w kernel.io_uring_disabled=0")
        }
    };
    match config.net.driver {
        NetDriver::Epoll => RING.fit(format!("{}{}", trouble.0, not_needed(config))),
        NetDriver::Uring => RING.unfit(trouble.0, trouble.1),
    }
}

fn not_needed(config: &Config) -> &'static str {
    match config.net.driver {
        NetDriver::Epoll => "; not needed with net.driver = \"epoll\"",
        NetDriver::Uring => "",
    }
}

fn ports(probes: &Probes) -> HostFinding {
    let taken: Vec<String> = probes
        .ports
        .iter()
        .filter_map(|port| Some(format!("{} {}: {}", port.key, port.address, port.trouble.as_ref()?)))
        .collect();
    if taken.is_empty() {
        return PORTS.fit(format!("{} listeners find their ports free", probes.ports.len()));
    }
    let first = probes.ports.iter().find(|port| port.trouble.is_some()).map_or(0, |port| port.address.port());
    PORTS.unfit(
        taken.join("; "),
        format!("ss -ltnp 'sport = :{first}' shows the process that has it; or choose another port"),
    )
}
