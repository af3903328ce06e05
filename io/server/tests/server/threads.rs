//! How the threads of the running service compete for cores, as the kernel shows it.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use pitlane_testkit::service::{ServiceProcess, folder};

use super::STILL;

/// Numbers of classes in `/proc/PID/task/TID/stat`.
const OTHER: i32 = 0;
const BATCH: i32 = 3;

/// Class and nice value of a thread.
type Scheduling = (i32, i32);

/// Returns class and nice value of the threads by name, and for each name the slices in nanoseconds
/// where the kernel shows them.
fn threads(process: u32) -> (BTreeMap<String, Scheduling>, BTreeMap<String, u64>) {
    let (mut schedulings, mut slices) = (BTreeMap::new(), BTreeMap::new());
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let text = |name| fs::read_to_string(task.as_ref().unwrap().path().join(name));
        // A thread may end meanwhile.
        let (Ok(name), Ok(stat)) = (text("comm"), text("stat")) else { continue };
        let name = name.trim().to_string();
        let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
        // Fields 19 and 41 of proc_pid_stat(5); the first one here is field 3.
        let field = |number: usize| fields[number - 3].trim().parse::<i32>().unwrap();
        schedulings.insert(name.clone(), (field(41), field(19)));
        let sched = text("sched").unwrap_or_default();
        let slice = sched.lines().find_map(|line| line.strip_prefix("se.slice")?.split(':').nth(1));
        if let Some(slice) = slice {
            slices.insert(name, slice.trim().parse().unwrap());
        }
    }
    (schedulings, slices)
}

/// Starts the service with these settings, and compares its threads with `wanted`: a thread sets
/// its scheduling when it begins to run, which may be after the service is ready.
fn check(name: &str, settings: &[&str], wanted: &[(&str, Scheduling)]) {
    let service = ServiceProcess::start(&folder(name), &[&STILL[..], settings].concat(), None);
    let (process, own) = (service.id(), threads(std::process::id()).0);
    // The nice value of this process is that of the service.
    let nice = own.values().next().unwrap().1;
    let end = Instant::now() + Duration::from_secs(30);
    for (thread, (class, added)) in wanted {
        let wanted = Some((*class, (nice + added).min(19)));
        let of = || threads(process).0.get(*thread).copied();
        while of() != wanted {
            assert!(Instant::now() < end, "{thread} has {:?}, not {wanted:?}: {:?}", of(), threads(process));
            assert_eq!(service.ask("GET /health/live").0, 200);
        }
    }
    // Before Linux 6.12 all slices are equal.
    let slices = threads(process).1;
    let slice = |thread: &str| slices.get(thread).copied();
    assert!(slice("http") <= slice("log"), "{slices:?}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn housekeeping_gives_way_to_the_threads_on_which_orders_wait() {
    let wanted = [
        ("shard-0", (OTHER, 0)),
        ("gateway-0", (OTHER, 0)),
        ("http", (OTHER, 0)),
        ("journal", (BATCH, 5)),
        ("segments", (BATCH, 5)),
        ("printer", (BATCH, 5)),
        ("log", (BATCH, 5)),
        ("fix-log", (BATCH, 5)),
        ("history", (BATCH, 5)),
        ("auth", (BATCH, 10)),
    ];
    check("threads", &["journal.level=os", "history.on=true", "topology.layout=dedicated"], &wanted);
}

#[test]
fn the_journal_is_no_housekeeping_where_orders_wait_for_the_disk() {
    check("threads-disk", &["journal.level=disk"], &[("journal", (OTHER, 0)), ("segments", (BATCH, 5))]);
}
