//! The doctor on made-up machines: a fit one, and one fault at a time.

mod tune;

use std::fs;
use std::path::PathBuf;

use pitlane::doctor::{self, HostFinding, HostVerdict, PortProbe, Probes};
use pitlane_cluster::standby::broker::BrokerFacts;
use pitlane_config::{Config, Machine, Setting, Sources};
use pitlane_testkit::temp_folder::TestFolder;

/// A machine without faults for `--config pinned`: six cores, of which 2 to 5 are isolated.
const FIT: &[(&str, &str)] = &[
    ("sys/devices/system/cpu/online", "0-5\n"),
    ("sys/devices/system/cpu/isolated", "2-5\n"),
    ("sys/devices/system/cpu/nohz_full", "2-5\n"),
    ("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n"),
    ("sys/devices/system/cpu/cpu2/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu5/cpufreq/scaling_governor", "performance\n"),
    ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "2\n"),
    ("sys/devices/system/cpu/cpu2/cpuidle/state1/name", "C1\n"),
    ("sys/devices/system/cpu/cpu2/cpuidle/state1/latency", "2\n"),
    ("sys/devices/system/cpu/cpu2/cpuidle/state1/disable", "0\n"),
    ("sys/devices/system/cpu/cpu2/cpuidle/state2/name", "C6\n"),
    ("sys/devices/system/cpu/cpu2/cpuidle/state2/latency", "133\n"),
    ("sys/devices/system/cpu/cpu2/cpuidle/state2/disable", "1\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm\n"),
    ("sys/devices/system/node/node0/cpulist", "0-5\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    (
        "proc/cpuinfo",
        "processor : 0\nflags : fpu constant_tsc nonstop_tsc avx2\nprocessor : 1\nflags : constant_tsc nonstop_tsc\n",
    ),
    ("proc/stat", "cpu  100 0 50 10000 5 0 1 0 0 0\ncpu0 1 2 3\n"),
    ("proc/swaps", "Filename Type Size Used Priority\n"),
    ("proc/irq/24/smp_affinity_list", "0-1\n"),
    ("proc/irq/default_smp_affinity", "3f\n"),
    ("proc/sys/net/core/busy_poll", "50\n"),
    ("proc/sys/net/core/busy_read", "50\n"),
    (
        "proc/self/limits",
        "Limit Soft Limit Hard Limit Units\nMax open files            65536                65536                files\nMax locked memory         unlimited            unlimited            bytes\n",
    ),
    ("proc/self/mountinfo", "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"),
    ("proc/sys/kernel/io_uring_disabled", "0\n"),
];

/// Creates the made-up machine with some files changed; an empty text removes the file.
fn machine(name: &str, changes: &[(&str, &str)]) -> TestFolder {
    let root = TestFolder::new("machines", name);
    for (path, text) in FIT.iter().chain(changes) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder for the test");
        match *text {
            "" => fs::remove_file(&path).expect("it was there"),
            text => fs::write(&path, text).expect("a file for the test"),
        }
    }
    root
}

fn pinned(settings: &[&str]) -> Config {
    let options = settings.iter().map(|setting| Setting::parse(setting).expect("key=value")).collect();
    let sources = Sources { files: vec!["pinned".to_string()], options, ..Sources::default() };
    let machine = Machine { cores: (0..6).collect(), cores_usable: 6 };
    pitlane_config::load(&sources, &machine).expect("the preset is sound").config
}

fn well() -> Probes {
    Probes {
        data_dir: PathBuf::from("/var/lib/pitlane"),
        free_bytes: Some(1 << 40),
        sync_us: Ok(60),
        ring: Ok(()),
        has_slices: Ok(true),
        // The kernel of the machine is older.
        busy_poll: Err("it has no such request".to_string()),
        clock_synchronized: Some(true),
        ports: Vec::new(),
        broker: None,
        rights: None,
    }
}

/// Returns the one finding that is not fit.
fn only(findings: Vec<HostFinding>) -> HostFinding {
    let mut wrong: Vec<HostFinding> =
        findings.into_iter().filter(|finding| finding.verdict != HostVerdict::Fit).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    wrong.remove(0)
}

/// Checks a machine with one fault: this check reports it, with this text and this command.
fn wrong(check: &str, changes: &[(&str, &str)], found: &str, remedy: &str) {
    let root = machine(check, changes);
    let finding = only(doctor::examine(&pinned(&[]), &root, &well()));
    assert_eq!((finding.check, finding.verdict), (check, HostVerdict::Unfit), "{finding}");
    assert!(finding.found.contains(found), "{finding}");
    assert!(finding.remedy.contains(remedy), "{finding}");
    assert!(!finding.why.is_empty());
}

#[test]
fn a_fit_machine_has_no_findings() {
    let findings = doctor::examine(&pinned(&[]), &machine("fit", &[]), &well());
    for finding in &findings {
        assert_eq!(finding.verdict, HostVerdict::Fit, "{finding}");
        assert_eq!(finding.remedy, "", "{finding}");
    }
    assert_eq!((doctor::unfit(&findings), findings.len()), (0, 21));
    assert_eq!(doctor::to_json(&findings)["fit"], true);
}

#[test]
fn cores_that_are_not_isolated_are_reported() {
    let isolated = "sys/devices/system/cpu/isolated";
    wrong("isolation", &[(isolated, "2-4\n")], "cores 5 are configured and not kept free", "isolcpus=2-5");
    wrong("isolation", &[(isolated, "\n")], "cores 2-5 are configured", "isolcpus=2-5");
    let tickless = "sys/devices/system/cpu/nohz_full";
    wrong(
        "tickless",
        &[(tickless, "(null)\n")],
        "cores 2-5 have the scheduler's tick",
        "nohz_full=2-5 rcu_nocbs=2-5",
    );
}

#[test]
fn cores_that_sleep_or_are_shared_are_reported() {
    let governor = "sys/devices/system/cpu/cpu5/cpufreq/scaling_governor";
    wrong(
        "governor",
        &[(governor, "powersave\n")],
        "powersave on cores 5",
        "cpupower -c 5 frequency-set -g performance",
    );
    let siblings = "sys/devices/system/cpu/cpu2/topology/thread_siblings_list";
    wrong(
        "siblings",
        &[(siblings, "1-2\n")],
        "cores 1 are second threads",
        "echo 0 > /sys/devices/system/cpu/cpu1/online",
    );
    let deep = "sys/devices/system/cpu/cpu2/cpuidle/state2/disable";
    wrong(
        "idle-states",
        &[(deep, "0\n")],
        "C6 takes 133 us to leave (driver intel_idle)",
        "cpupower idle-set -D 10",
    );
}

#[test]
fn interrupts_go_where_the_kernel_says_they_go() {
    let may = ("proc/irq/25/smp_affinity_list", "0-5\n");
    let remedy = "for irq in 25; do echo 0-1 > /proc/irq/$irq/smp_affinity_list";
    wrong("interrupts", &[may], "1 interrupts may come to cores 2-5", remedy);
    let root = machine("interrupts-elsewhere", &[may, ("proc/irq/25/effective_affinity_list", "0\n")]);
    assert_eq!(doctor::unfit(&doctor::examine(&pinned(&[]), &root, &well())), 0);
}

#[test]
fn cores_of_two_nodes_are_reported() {
    let nodes = [
        ("sys/devices/system/node/node0/cpulist", "0-3\n"),
        ("sys/devices/system/node/node1/cpulist", "4-5\n"),
    ];
    wrong("numa", &nodes, "spread over 2 nodes", "from node0: 0-3");
    let nodes = [
        ("sys/devices/system/node/node0/cpulist", "0-1\n"),
        ("sys/devices/system/node/node1/cpulist", "2-5\n"),
    ];
    let findings = doctor::examine(&pinned(&[]), &machine("numa-one", &nodes), &well());
    assert_eq!(doctor::unfit(&findings), 0, "{findings:#?}");
}

#[test]
fn clocks_and_memory_are_checked() {
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    wrong(
        "clock-source",
        &[(clock, "hpet\n")],
        "hpet rather than tsc",
        "echo tsc > /sys/devices/system/clocksource",
    );
    wrong("clock-source", &[("proc/cpuinfo", "flags : fpu constant_tsc\n")], "lacks nonstop_tsc", "steady");
    let pages = "sys/kernel/mm/transparent_hugepage/enabled";
    wrong("huge-pages", &[(pages, "[always] madvise never\n")], "always on", "echo madvise > /sys/kernel/mm");
    wrong("swap", &[("proc/swaps", "Filename Type\n/swap.img file 1 0 -2\n")], "/swap.img", "swapoff -a");
    wrong(
        "virtual",
        &[("proc/stat", "cpu  100 0 50 800 0 0 0 50 0 0\n")],
        "lost 50 of 1,000",
        "dedicated cores",
    );
}

#[test]
fn limits_are_measured_by_what_the_settings_permit() {
    let limits = "Max open files            1024                 1024\nMax locked memory         unlimited            unlimited            bytes\n";
    wrong("open-files", &[("proc/self/limits", limits)], "1024 of at least 14352", "ulimit -n 14352");

    let locked = "Max open files  65536  65536\nMax locked memory         65536                65536                bytes\n";
    let root = machine("memlock", &[("proc/self/limits", locked)]);
    assert_eq!(doctor::unfit(&doctor::examine(&pinned(&[]), &root, &well())), 0, "epoll locks nothing");
    let finding = only(doctor::examine(&pinned(&["net.driver=uring"]), &root, &well()));
    assert_eq!((finding.check, finding.found.as_str()), ("memlock", "64 KiB of at least 1024"));
}

#[test]
fn a_ring_is_needed_only_with_the_uring_driver() {
    let root = machine("ring", &[("proc/sys/kernel/io_uring_disabled", "2\n")]);
    let probes = Probes { ring: Err("Operation not permitted".to_string()), ..well() };
    assert_eq!(doctor::unfit(&doctor::examine(&pinned(&[]), &root, &probes)), 0);
    let finding = only(doctor::examine(&pinned(&["net.driver=uring"]), &root, &probes));
    assert_eq!(
        (finding.check, finding.remedy.as_str()),
        ("io_uring", "sysctl -w kernel.io_uring_disabled=0")
    );
    let finding = only(doctor::examine(&pinned(&["net.driver=uring"]), &machine("seccomp", &[]), &probes));
    assert!(
        finding.found.ends_with("Operation not permitted") && finding.remedy.contains("seccomp"),
        "{finding}"
    );
}

#[test]
fn equal_time_slices_matter_where_threads_share_cores() {
    let root = machine("slices", &[]);
    let probes = Probes { has_slices: Ok(false), ..well() };
    assert_eq!(doctor::unfit(&doctor::examine(&pinned(&[]), &root, &probes)), 0);
    let shared = pinned(&["topology.shard_cores=[]", "topology.gateway_cores=[]"]);
    let of = |probes: &Probes| {
        let findings = doctor::examine(&shared, &root, probes);
        findings.into_iter().find(|finding| finding.check == "slices").expect("it is checked")
    };
    assert!(of(&probes).verdict == HostVerdict::Unfit && of(&probes).remedy.contains("6.12"));
    let refused = of(&Probes { has_slices: Err("Operation not permitted".to_string()), ..well() });
    assert!(refused.verdict == HostVerdict::Unknown && refused.found.ends_with("not permitted"), "{refused}");
}

#[test]
fn a_driver_that_polls_network_cards_itself_does_not_need_the_setting_of_the_kernel() {
    let root = machine("driver-polls", &[("proc/sys/net/core/busy_poll", "0\n")]);
    let finding = only(doctor::examine(&pinned(&[]), &root, &well()));
    assert_eq!((finding.check, finding.remedy.as_str()), ("busy-poll", "sysctl -w net.core.busy_poll=50"));
    let probes = Probes { busy_poll: Ok(()), ..well() };
    assert_eq!(doctor::unfit(&doctor::examine(&pinned(&[]), &root, &probes)), 0);
    // A socket still polls as long as the kernel permits.
    let root = machine("socket-polls", &[("proc/sys/net/core/busy_read", "0\n")]);
    let finding = only(doctor::examine(&pinned(&[]), &root, &probes));
    assert_eq!((finding.check, finding.remedy.as_str()), ("busy-poll", "sysctl -w net.core.busy_read=50"));
}

#[test]
fn a_broker_that_cannot_keep_the_promise_of_a_standby_is_reported() {
    let root = machine("broker", &[]);
    let settings = ["standby.group=pair", "nats.url=nats://127.0.0.1:1"];
    let findings_of = |broker: Result<BrokerFacts, String>, settings: &[&str]| {
        let probes = Probes { broker: Some(broker), ..well() };
        let findings = doctor::examine(&pinned(settings), &root, &probes);
        findings.into_iter().find(|finding| finding.check == "broker").unwrap()
    };
    let alone =
        BrokerFacts { replicas: Some(1), is_in_memory: false, forgets: false, free_bytes: None, foreign: 0 };
    let finding = findings_of(Ok(alone), &settings);
    assert_eq!(finding.verdict, HostVerdict::Unfit);
    assert!(finding.remedy.contains("sync_interval: always"), "{finding}");
    let confirmed = [&settings[..], &["standby.broker_syncs=true"]].concat();
    assert_eq!(findings_of(Ok(alone), &confirmed).verdict, HostVerdict::Fit);
    assert_eq!(findings_of(Err("it does not answer".to_string()), &settings).verdict, HostVerdict::Unfit);
    let without = doctor::examine(&pinned(&[]), &root, &well());
    assert!(without.iter().all(|finding| finding.check != "broker"), "there is no standby");
}

#[test]
fn probes_are_reported() {
    let root = machine("tried", &[]);
    let findings_of =
        |probes: Probes, settings: &[&str]| only(doctor::examine(&pinned(settings), &root, &probes));

    let finding = findings_of(Probes { free_bytes: Some(1 << 20), ..well() }, &[]);
    assert_eq!(
        (finding.check, finding.found.as_str()),
        ("free-space", "1 MiB of at least 1344 for 3 shards")
    );

    let finding = findings_of(Probes { sync_us: Ok(9_000), ..well() }, &["journal.level=disk"]);
    assert_eq!(
        (finding.check, finding.found.as_str()),
        ("sync-speed", "an fdatasync of 4 KiB takes 9000 us")
    );
    let slow = Probes { sync_us: Ok(9_000), ..well() };
    assert_eq!(doctor::unfit(&doctor::examine(&pinned(&[]), &root, &slow)), 0, "no client waits for it");

    let finding = findings_of(Probes { clock_synchronized: Some(false), ..well() }, &[]);
    assert_eq!((finding.check, finding.verdict), ("clock-sync", HostVerdict::Unfit));
    let finding = findings_of(Probes { clock_synchronized: None, ..well() }, &[]);
    assert_eq!((finding.check, finding.verdict), ("clock-sync", HostVerdict::Unknown));
    let marked = machine("marked", &[("run/systemd/timesync/synchronized", " ")]);
    let nobody = Probes { clock_synchronized: None, ..well() };
    assert!(doctor::examine(&pinned(&[]), &marked, &nobody).iter().all(|at| at.verdict == HostVerdict::Fit));

    let address = "127.0.0.1:9090".parse().expect("an address");
    let port = PortProbe { key: "http.listen", address, trouble: Some("Address already in use".to_string()) };
    let finding = findings_of(Probes { ports: vec![port], ..well() }, &[]);
    assert_eq!(
        (finding.check, finding.found.as_str()),
        ("ports", "http.listen 127.0.0.1:9090: Address already in use")
    );
    assert!(finding.remedy.contains("sport = :9090"), "{finding}");
}

#[test]
fn a_journal_in_memory_or_on_a_network_is_reported() {
    let mounts = |kind: &str| {
        format!("21 1 8:1 / / rw - ext4 /dev/sda1 rw\n22 21 0:5 / /var/lib rw - {kind} none rw\n")
    };
    let mount = "proc/self/mountinfo";
    wrong(
        "file-system",
        &[(mount, &mounts("tmpfs"))],
        "on tmpfs (/var/lib), which is gone",
        "service.data_dir",
    );
    wrong("file-system", &[(mount, &mounts("nfs4"))], "travel over a network", "service.data_dir");
}

#[test]
fn without_configured_cores_the_whole_machine_is_checked() {
    let machine_of_two = Machine { cores: (0..6).collect(), cores_usable: 6 };
    let config =
        pitlane_config::load(&Sources::default(), &machine_of_two).expect("the defaults are sound").config;
    let finding = only(doctor::examine(&config, &machine("unpinned", &[]), &well()));
    assert!(finding.found.contains("cores 2-5 are kept free, and no thread is pinned"), "{finding}");
    let nothing = [("sys/devices/system/cpu/isolated", "\n"), ("sys/devices/system/cpu/nohz_full", "\n")];
    let findings = doctor::examine(&config, &machine("plain", &nothing), &well());
    assert_eq!(doctor::unfit(&findings), 2, "{findings:#?}");
    assert!(findings[0].remedy.contains("isolcpus=3-5"), "{}", findings[0]);
}

#[test]
fn a_machine_that_reveals_nothing_is_not_reported_as_fit() {
    let root = TestFolder::new("machines", "nothing");
    let findings = doctor::examine(&pinned(&[]), &root, &well());
    let unknown =
        |check: &str| findings.iter().any(|at| at.check == check && at.verdict == HostVerdict::Unknown);
    for check in ["governor", "clock-source", "memlock", "open-files", "file-system"] {
        assert!(unknown(check), "{check}: {findings:#?}");
    }
}
