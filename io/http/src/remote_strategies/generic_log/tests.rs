//! The log keeps what it promises, across restarts and damage, within its bounds.

use std::fs;
use std::path::PathBuf;

use super::*;

const A: &str = "A";
const B: &str = "B";
const BOUNDS: GenericBounds = GenericBounds { keep_s: 60, count_max: 100, bytes_max: 1 << 20 };

/// A folder that is removed when the test ends.
struct LogFolder(PathBuf);

impl LogFolder {
    fn new(name: &str) -> LogFolder {
        let path = std::env::temp_dir().join(format!("pitlane-generic-log-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        LogFolder(path)
    }

    fn open(&self, at_s: u64) -> GenericLog {
        self.with(BOUNDS, at_s)
    }

    fn with(&self, bounds: GenericBounds, at_s: u64) -> GenericLog {
        GenericLog::open(Some(&self.0), bounds, &[A.to_string(), B.to_string()], seconds(at_s)).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(self.0.join(FOLDER)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }
}

impl Drop for LogFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn seconds(at_s: u64) -> Timestamp {
    Timestamp(at_s * NS_PER_S)
}

fn generic(from: &str, n: u64) -> Generic {
    Generic::new("signal", Bytes::from(n.to_string()), from).unwrap()
}

/// Returns the bodies that a strategy has not handled.
fn waiting(log: &GenericLog, strategy: &str) -> Vec<String> {
    let (mut bodies, mut after) = (Vec::new(), log.position(strategy));
    while let Some(event) = log.next_for(strategy, after) {
        bodies.push(String::from_utf8(event.generic.body.to_vec()).unwrap());
        after = event.number;
    }
    bodies
}

#[test]
fn a_strategy_gets_the_events_of_others_until_it_has_handled_them() {
    let folder = LogFolder::new("others");
    let mut log = folder.open(1);
    for n in 1..=3 {
        assert!(log.append(seconds(2), generic(A, n), Some((7, n))).unwrap());
    }
    log.append(seconds(2), generic("SERVER", 4), None).unwrap();
    assert_eq!((waiting(&log, A), waiting(&log, B).len()), (vec!["4".to_string()], 4));
    let second = log.next_for(B, log.next_for(B, log.position(B)).unwrap().number).unwrap().number;
    log.acknowledge(B, second);
    assert_eq!(waiting(&log, B), ["3", "4"]);
    log.acknowledge(B, 1);
    assert_eq!(waiting(&log, B), ["3", "4"], "an older acknowledgement changes nothing");
    log.acknowledge(B, u64::MAX);
    log.append(seconds(2), generic(A, 5), Some((7, 5))).unwrap();
    assert_eq!(waiting(&log, B), ["5"], "an event that does not exist yet cannot be acknowledged");
}

#[test]
fn events_positions_and_senders_outlive_a_restart() {
    let folder = LogFolder::new("restart");
    let mut log = folder.open(1);
    for n in 1..=3 {
        log.append(seconds(2), generic(A, n), Some((7, n))).unwrap();
    }
    let first = log.next_for(B, log.position(B)).unwrap().number;
    log.acknowledge(B, first);
    drop(log);
    for start in 0..3 {
        let mut log = folder.open(3);
        assert_eq!(waiting(&log, B), ["2", "3"], "at start {start}");
        assert!(!log.append(seconds(3), generic(A, 3), Some((7, 3))).unwrap(), "it was stored before");
    }
    let mut log = folder.open(3);
    assert!(log.append(seconds(3), generic(A, 4), Some((7, 4))).unwrap());
    assert!(
        log.append(seconds(3), generic(A, 1), Some((8, 1))).unwrap(),
        "another process has its own numbers"
    );
    assert_eq!(waiting(&log, B), ["2", "3", "4", "1"]);
}

#[test]
fn a_new_strategy_begins_with_the_next_event_and_numbers_never_repeat() {
    let folder = LogFolder::new("new");
    let mut log = folder.open(5);
    log.append(seconds(5), generic("SERVER", 1), None).unwrap();
    let last = log.next_for(A, 0).unwrap().number;
    drop(log);
    let names = [A.to_string(), "C".to_string()];
    let mut log = GenericLog::open(Some(&folder.0), BOUNDS, &names, seconds(1)).unwrap();
    assert_eq!((waiting(&log, A).len(), waiting(&log, "C").len()), (1, 0));
    log.append(seconds(1), generic("SERVER", 2), None).unwrap();
    assert!(log.next_for("C", log.position("C")).unwrap().number > last, "even if the clock went back");
}

#[test]
fn old_many_and_large_events_are_removed_with_their_files() {
    let folder = LogFolder::new("bounds");
    let bounds = GenericBounds { keep_s: 10, count_max: 4, bytes_max: 300_000 };
    let mut log = folder.with(bounds, 1);
    for n in 1..=6 {
        log.append(seconds(n), generic(A, n), None).unwrap();
    }
    assert_eq!(waiting(&log, B), ["3", "4", "5", "6"]);
    log.expire(seconds(15));
    assert_eq!(waiting(&log, B), ["5", "6"]);
    let large =
        |n: u64| Generic::new("large", Bytes::from(format!("\"{n}{}\"", "x".repeat(100_000))), A).unwrap();
    for n in 0..8 {
        log.append(seconds(15), large(n), None).unwrap();
        assert!(log.bytes <= bounds.bytes_max);
    }
    assert_eq!(log.len(), 2);
    let bytes: u64 = folder.files().iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes < 2 * bounds.bytes_max as u64, "{bytes} bytes in {:?}", folder.files());
    log.expire(seconds(99));
    assert_eq!((log.len(), log.bytes), (0, 0));
    drop(log);
    assert_eq!(folder.with(bounds, 99).len(), 0);
}

#[test]
fn a_damaged_end_loses_only_itself() {
    let folder = LogFolder::new("damage");
    let mut log = folder.open(1);
    for n in 1..=3 {
        log.append(seconds(2), generic(A, n), Some((7, n))).unwrap();
    }
    drop(log);
    let path = folder.files().pop().unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in [1, 9, 20] {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        assert_eq!(waiting(&folder.open(2), B), ["1", "2"], "cut by {cut}");
        folder
            .files()
            .iter()
            .filter(|other| **other != path)
            .for_each(|other| fs::remove_file(other).unwrap());
    }
    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    fs::write(&path, &flipped).unwrap();
    let mut log = folder.open(2);
    assert_eq!(waiting(&log, B), ["1", "2"]);
    assert!(log.append(seconds(3), generic(A, 3), Some((7, 3))).unwrap(), "its sender sends it again");
    assert_eq!(waiting(&folder.open(3), B), ["1", "2", "3"]);
}

#[test]
fn the_last_numbers_of_a_few_processes_are_remembered() {
    let mut log = GenericLog::open(None, BOUNDS, &[B.to_string()], seconds(1)).unwrap();
    for publisher in 1..=PUBLISHERS_MAX as u64 + 1 {
        assert!(log.append(seconds(1), generic(A, publisher), Some((publisher, 1))).unwrap());
    }
    assert_eq!(log.publishers[A].len(), PUBLISHERS_MAX);
    assert!(!log.append(seconds(1), generic(A, 2), Some((2, 1))).unwrap());
}

#[test]
fn an_event_on_which_a_process_crashes_is_skipped_in_the_end() {
    let mut log = GenericLog::open(None, BOUNDS, &[B.to_string()], seconds(1)).unwrap();
    log.append(seconds(1), generic(A, 1), None).unwrap();
    log.append(seconds(1), generic(A, 2), None).unwrap();
    for _ in 0..DELIVERIES_MAX {
        let position = log.position(B);
        assert_eq!(log.begin_delivery(B), position);
        assert_eq!(waiting(&log, B), ["1", "2"]);
    }
    let first = log.next_for(B, 0).unwrap().number;
    assert_eq!(log.begin_delivery(B), first);
    assert_eq!(waiting(&log, B), ["2"]);
    assert_eq!(log.begin_delivery(B), first, "the next event has its own count");
}
