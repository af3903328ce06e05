//! Checks of clocks, memory and virtualisation.

use pitlane_config::Config;

use super::host::{HostFiles, chosen};
use super::probes::Probes;
use super::{HostChange, HostCheck, HostFinding};

/// Highest acceptable steal time of a virtual machine, in thousandths.
const STEAL_PERMILLE_MAX: u64 = 1;

const CLOCK: HostCheck = HostCheck {
    name: "clock-source",
    why: "a clock that is not the time-stamp counter costs a system call for each reading",
};
const SYNC: HostCheck =
    HostCheck { name: "clock-sync", why: "times in reports and journal must agree with other systems" };
const PAGES: HostCheck =
    HostCheck { name: "huge-pages", why: "the kernel stops a thread while it puts large pages together" };
const SWAP: HostCheck =
    HostCheck { name: "swap", why: "memory that was swapped out comes back in milliseconds" };
const BUSY_POLL: HostCheck = HostCheck {
    name: "busy-poll",
    why: "without CAP_NET_ADMIN a socket polls its network card no longer than the kernel's default",
};
const SLICES: HostCheck = HostCheck {
    name: "slices",
    why: "on a shared core a thread on which orders wait gets its turn milliseconds later",
};
const VIRTUAL: HostCheck =
    HostCheck { name: "virtual", why: "a hypervisor can take the core away at any time" };

pub(super) fn check(config: &Config, host: &HostFiles, probes: &Probes) -> Vec<HostFinding> {
    vec![
        clock_source(host),
        clock_sync(host, probes),
        huge_pages(host),
        swap(host),
        busy_poll(config, host, probes),
        slices(config, probes),
        virtual_machine(host),
    ]
}

fn clock_source(host: &HostFiles) -> HostFinding {
    let folder = "sys/devices/system/clocksource/clocksource0";
    let Some(current) = host.text(&format!("{folder}/current_clocksource")) else {
        return CLOCK.unknown("the kernel does not report its clock source");
    };
    let steady = ["constant_tsc", "nonstop_tsc"].into_iter().filter(|flag| !host.has_flag(flag));
    let missing: Vec<&str> = steady.collect();
    if !missing.is_empty() {
        let found = format!("{current}; the processor lacks {}", missing.join(" and "));
        return CLOCK.unfit(
            found,
            "choose a processor, or a kind of virtual machine, with a steady time-stamp counter",
        );
    }
    if current == "tsc" {
        return CLOCK.fit("tsc, constant and never stopping");
    }
    let offered = host.text(&format!("{folder}/available_clocksource")).unwrap_or_default();
    let found = format!("{current} rather than tsc");
    if offered.split_whitespace().any(|name| name == "tsc") {
        let file = format!("{folder}/current_clocksource");
        let finding = CLOCK.unfit(found, format!("echo tsc > /{file}"));
        return finding.corrected_by(vec![HostChange::write(file, "tsc")]);
    }
    CLOCK
        .unfit(found, "add tsc=reliable to the kernel command line and reboot")
        .corrected_by(vec![HostChange::BootParameters("tsc=reliable".to_string())])
}

fn clock_sync(host: &HostFiles, probes: &Probes) -> HostFinding {
    // Where the tools are missing, the marker file of systemd is used.
    let marked = host.text("run/systemd/timesync/synchronized").map(|_| true);
    match probes.clock_synchronized.or(marked) {
        Some(true) => SYNC.fit("the clock follows a time server"),
        Some(false) => {
            SYNC.unfit("the clock follows no time server", "apt install chrony; or timedatectl set-ntp true")
        }
        None => SYNC.unknown("neither timedatectl nor chronyc gives an answer"),
    }
}

fn huge_pages(host: &HostFiles) -> HostFinding {
    let file = "sys/kernel/mm/transparent_hugepage/enabled";
    match host.text(file) {
        None => PAGES.fit("the kernel has no transparent huge pages"),
        Some(text) if text.contains("[always]") => PAGES
            .unfit("transparent huge pages are always on", format!("echo madvise > /{file}"))
            .corrected_by(vec![HostChange::write(file, "madvise")]),
        Some(text) => PAGES.fit(format!("transparent huge pages: {}", chosen(&text))),
    }
}

fn swap(host: &HostFiles) -> HostFinding {
    let Some(text) = host.text("proc/swaps") else { return SWAP.fit("the kernel has no swap") };
    let areas: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    match areas[..] {
        [] => SWAP.fit("none"),
        [..] => SWAP
            .unfit(format!("swap is on: {}", areas.join(", ")), "swapoff -a, and take it out of /etc/fstab"),
    }
}

/// Each socket polls as long as `busy_read`, or as the process may ask for. The driver polls by its
/// own parameters where the kernel has them, and as long as `busy_poll` elsewhere.
fn busy_poll(config: &Config, host: &HostFiles, probes: &Probes) -> HostFinding {
    let wanted = config.net.busy_poll_us;
    if wanted == 0 {
        return BUSY_POLL.fit("not configured (net.busy_poll_us)");
    }
    let value = |name: &str| host.text(&format!("proc/sys/net/core/{name}"))?.parse::<u32>().ok();
    let (names, shown): (&[&str], &str) = match probes.busy_poll {
        Ok(()) => (&["busy_read"], "the driver polls, and net.core.busy_read is"),
        Err(_) => (&["busy_poll", "busy_read"], "net.core.busy_poll and busy_read are"),
    };
    let values: Vec<(&str, u32)> = names.iter().filter_map(|name| Some((*name, value(name)?))).collect();
    if values.len() < names.len() {
        return BUSY_POLL.unknown(format!("the kernel does not show net.core.{}", names.join(" and ")));
    }
    let low: Vec<(&str, u32)> = values.into_iter().filter(|(_, us)| *us < wanted).collect();
    if low.is_empty() {
        return BUSY_POLL.fit(format!("{shown} at least {wanted} us"));
    }
    let found: Vec<String> = low.iter().map(|(name, us)| format!("net.core.{name} is {us} us")).collect();
    let remedy: Vec<String> = low.iter().map(|(name, _)| format!("net.core.{name}={wanted}")).collect();
    let change =
        |(name, _): &(&str, u32)| HostChange::write(format!("proc/sys/net/core/{name}"), wanted.to_string());
    BUSY_POLL
        .unfit(
            format!("{}; net.busy_poll_us is {wanted}", found.join(", ")),
            format!("sysctl -w {}", remedy.join(" ")),
        )
        .corrected_by(low.iter().map(change).collect())
}

fn slices(config: &Config, probes: &Probes) -> HostFinding {
    match &probes.has_slices {
        Ok(true) => SLICES.fit("a thread keeps a time slice of its own"),
        Ok(false) if !config.topology.quick_cores().is_empty() => {
            SLICES.fit("all threads have the same time slice; shards and gateways have cores of their own")
        }
        Ok(false) => SLICES.unfit(
            "all threads have the same time slice",
            "Linux 6.12 or newer; or cores of their own for shards and gateways, see --config pinned",
        ),
        Err(error) => SLICES.unknown(format!("a thread may not set its scheduling: {error}")),
    }
}

fn virtual_machine(host: &HostFiles) -> HostFinding {
    let text = host.text("proc/stat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are counted in the first two.
    let (all, stolen) = (ticks.iter().take(8).sum::<u64>(), ticks.get(7).copied().unwrap_or(0));
    let permille = (stolen * 1_000).checked_div(all).unwrap_or(0);
    if permille >= STEAL_PERMILLE_MAX {
        let found = format!("a virtual machine that lost {permille} of 1,000 time slices to others");
        return VIRTUAL.unfit(found, "ask for dedicated cores, or use a physical machine");
    }
    match host.has_flag("hypervisor") {
        true => VIRTUAL.fit("a virtual machine, hardly disturbed by others so far"),
        false => VIRTUAL.fit("not a virtual machine"),
    }
}
