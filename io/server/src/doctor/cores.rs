//! Checks whether the cores of shards and gateways are reserved for them, and awake.

use pitlane_config::Config;

use super::host::HostFiles;
use super::{HostChange, HostCheck, HostFinding, show};

/// Longest exit latency of an idle state that does not affect response times, in microseconds.
const WAKE_US_MAX: u64 = 10;

const ISOLATION: HostCheck =
    HostCheck { name: "isolation", why: "other threads on a shard's core delay the shard by milliseconds" };
const TICKLESS: HostCheck =
    HostCheck { name: "tickless", why: "the scheduler's tick interrupts a core up to 1,000 times a second" };
const GOVERNOR: HostCheck =
    HostCheck { name: "governor", why: "a core that saves power answers slowly after each pause" };
const SIBLINGS: HostCheck =
    HostCheck { name: "siblings", why: "two threads of one core share its caches and units" };
const IDLE: HostCheck =
    HostCheck { name: "idle-states", why: "leaving a deep idle state takes tens of microseconds" };
const INTERRUPTS: HostCheck =
    HostCheck { name: "interrupts", why: "each interrupt stops the thread on its core for microseconds" };
const NODES: HostCheck =
    HostCheck { name: "numa", why: "access to memory of another node takes twice as long" };

pub(super) fn check(config: &Config, host: &HostFiles) -> Vec<HostFinding> {
    let quick = config.topology.quick_cores();
    vec![
        isolation(host, &quick),
        tickless(host, &quick),
        governor(host, &quick),
        siblings(host, &quick),
        idle_states(host, &quick),
        interrupts(host, &quick),
        nodes(host, &quick),
    ]
}

fn isolation(host: &HostFiles, quick: &[u32]) -> HostFinding {
    let isolated = host.core_list("sys/devices/system/cpu/isolated").unwrap_or_default();
    let wanted = candidates(host, quick);
    let outside: Vec<u32> = quick.iter().copied().filter(|core| !isolated.contains(core)).collect();
    if isolated.is_empty() || !outside.is_empty() {
        let found = match quick {
            [] => "no core is kept free of other threads".to_string(),
            _ => format!("cores {} are configured and not kept free", show(&outside)),
        };
        return boot_with(ISOLATION, found, format!("isolcpus={wanted}"));
    }
    if quick.is_empty() {
        let found = format!("cores {} are kept free, and no thread is pinned to them", show(&isolated));
        let list: Vec<String> = isolated.iter().map(u32::to_string).collect();
        let remedy = format!(
            "set topology.shard_cores and gateway_cores to some of {}; see --config pinned",
            list.join(",")
        );
        return ISOLATION.unfit(found, remedy);
    }
    ISOLATION.fit(format!("cores {} are kept free", show(quick)))
}

fn tickless(host: &HostFiles, quick: &[u32]) -> HostFinding {
    // The kernel writes "(null)" if there are none.
    let tickless = host.core_list("sys/devices/system/cpu/nohz_full").unwrap_or_default();
    let with_tick: Vec<u32> = quick.iter().copied().filter(|core| !tickless.contains(core)).collect();
    if quick.is_empty() && !tickless.is_empty() {
        return TICKLESS.fit(format!("cores {} have no tick", show(&tickless)));
    }
    if quick.is_empty() || !with_tick.is_empty() {
        let found = match quick {
            [] => "no core is without the scheduler's tick".to_string(),
            _ => format!("cores {} have the scheduler's tick", show(&with_tick)),
        };
        let wanted = candidates(host, quick);
        return boot_with(TICKLESS, found, format!("nohz_full={wanted} rcu_nocbs={wanted}"));
    }
    TICKLESS.fit(format!("cores {} have no tick", show(quick)))
}

fn governor(host: &HostFiles, quick: &[u32]) -> HostFinding {
    let file = |core: &u32| format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor");
    let governor = |core: &u32| host.text(&file(core));
    let watched = watched(host, quick);
    let known: Vec<(u32, String)> =
        watched.iter().filter_map(|core| Some((*core, governor(core)?))).collect();
    if known.is_empty() {
        return GOVERNOR.unknown("the kernel does not set frequencies here; the hypervisor may");
    }
    let slow: Vec<u32> =
        known.iter().filter(|(_, name)| name != "performance").map(|(core, _)| *core).collect();
    if slow.is_empty() {
        return GOVERNOR.fit("performance");
    }
    let name = known.iter().find(|(core, _)| *core == slow[0]).map_or("?", |(_, name)| name);
    let list = show(&slow);
    let remedy = format!("cpupower -c {list} frequency-set -g performance");
    let changes = slow.iter().map(|core| HostChange::write(file(core), "performance")).collect();
    GOVERNOR.unfit(format!("{name} on cores {list}"), remedy).corrected_by(changes)
}

fn siblings(host: &HostFiles, quick: &[u32]) -> HostFinding {
    let of = |core: &u32| {
        let path = format!("sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        let others = host.core_list(&path).unwrap_or_default().into_iter().filter(|other| other != core);
        others.filter(|other| host.cores.contains(other)).collect::<Vec<u32>>()
    };
    let mut beside: Vec<u32> = watched(host, quick).iter().flat_map(of).collect();
    beside.sort_unstable();
    beside.dedup();
    if beside.is_empty() {
        return SIBLINGS.fit("each core runs one thread");
    }
    if quick.is_empty() {
        let file = "sys/devices/system/cpu/smt/control";
        let finding = SIBLINGS.unfit("cores run two threads each", format!("echo off > /{file}"));
        return finding.corrected_by(vec![HostChange::write(file, "off")]);
    }
    let online: Vec<String> =
        beside.iter().map(|core| format!("sys/devices/system/cpu/cpu{core}/online")).collect();
    let remedy: Vec<String> = online.iter().map(|file| format!("echo 0 > /{file}")).collect();
    SIBLINGS
        .unfit(format!("cores {} are second threads of configured ones", show(&beside)), remedy.join("; "))
        .corrected_by(online.into_iter().map(|file| HostChange::write(file, "0")).collect())
}

fn idle_states(host: &HostFiles, quick: &[u32]) -> HostFinding {
    let mut deepest: Option<(u64, String)> = None;
    let mut changes = Vec::new();
    for core in watched(host, quick) {
        let folder = format!("sys/devices/system/cpu/cpu{core}/cpuidle");
        for state in host.names(&folder) {
            let about = |file: &str| host.text(&format!("{folder}/{state}/{file}"));
            let wake_us = about("latency").and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
            let enabled = about("disable").is_none_or(|text| text == "0");
            if enabled && wake_us > WAKE_US_MAX {
                changes.push(HostChange::write(format!("{folder}/{state}/disable"), "1"));
            }
            if enabled && deepest.as_ref().is_none_or(|(us, _)| wake_us > *us) {
                deepest = Some((wake_us, about("name").unwrap_or(state)));
            }
        }
    }
    let driver = host.text("sys/devices/system/cpu/cpuidle/current_driver").unwrap_or("none".to_string());
    match deepest {
        None => IDLE.fit(format!("no idle states (driver {driver})")),
        Some((wake_us, name)) if wake_us > WAKE_US_MAX => {
            let found = format!("{name} takes {wake_us} us to leave (driver {driver})");
            IDLE.unfit(found, format!("cpupower idle-set -D {WAKE_US_MAX}")).corrected_by(changes)
        }
        Some((wake_us, name)) => IDLE.fit(format!("deepest is {name}, {wake_us} us (driver {driver})")),
    }
}

fn interrupts(host: &HostFiles, quick: &[u32]) -> HostFinding {
    if quick.is_empty() {
        return INTERRUPTS.fit("no core is configured that could be disturbed");
    }
    let touches = |irq: &String| {
        let core_list = |file: &str| host.core_list(&format!("proc/irq/{irq}/{file}"));
        // The effective target, if the kernel shows it; otherwise the permitted ones.
        let cores = core_list("effective_affinity_list")
            .or_else(|| core_list("smp_affinity_list"))
            .unwrap_or_default();
        cores.iter().any(|core| quick.contains(core))
    };
    let numbered = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    let disturbing: Vec<String> =
        host.names("proc/irq").into_iter().filter(numbered).filter(touches).collect();
    if disturbing.is_empty() {
        return INTERRUPTS.fit(format!("none on cores {}", show(quick)));
    }
    let rest: Vec<u32> = host.cores.iter().copied().filter(|core| !quick.contains(core)).collect();
    let elsewhere = if rest.is_empty() { "0".to_string() } else { show(&rest) };
    let remedy = format!(
        "systemctl stop irqbalance; for irq in {}; do echo {elsewhere} > /proc/irq/$irq/smp_affinity_list; done",
        disturbing.join(" "),
    );
    let change =
        |irq: &String| HostChange::write(format!("proc/irq/{irq}/smp_affinity_list"), elsewhere.as_str());
    INTERRUPTS
        .unfit(format!("{} interrupts may come to cores {}", disturbing.len(), show(quick)), remedy)
        .corrected_by(disturbing.iter().map(change).collect())
}

fn nodes(host: &HostFiles, quick: &[u32]) -> HostFinding {
    let is_node = |name: &String| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let nodes: Vec<String> = host.names("sys/devices/system/node").into_iter().filter(is_node).collect();
    if nodes.len() < 2 {
        return NODES.fit("one node");
    }
    let cores_of = |node: &String| {
        host.core_list(&format!("sys/devices/system/node/{node}/cpulist")).unwrap_or_default()
    };
    let used: Vec<&String> =
        nodes.iter().filter(|node| cores_of(node).iter().any(|core| quick.contains(core))).collect();
    match used[..] {
        [] => NODES.fit(format!("{} nodes, and no core is configured", nodes.len())),
        [one] => NODES.fit(format!("all configured cores are on {one}")),
        [one, ..] => {
            let found = format!("the configured cores are spread over {} nodes", used.len());
            let remedy = format!("choose shard_cores and gateway_cores from {one}: {}", show(&cores_of(one)));
            NODES.unfit(found, remedy)
        }
    }
}

/// Returns the cores to check: the configured ones, or all.
fn watched<'a>(host: &'a HostFiles, quick: &'a [u32]) -> &'a [u32] {
    if quick.is_empty() { &host.cores } else { quick }
}

/// Returns the cores to isolate: the configured ones, or the second half of the machine's cores.
fn candidates(host: &HostFiles, quick: &[u32]) -> String {
    let upper = &host.cores[host.cores.len() / 2..];
    show(if quick.is_empty() { upper } else { quick })
}

fn boot_with(check: HostCheck, found: String, parameters: String) -> HostFinding {
    let remedy =
        format!("add {parameters} to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub and reboot");
    check.unfit(found, remedy).corrected_by(vec![HostChange::BootParameters(parameters)])
}
