use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use pitlane_engine::index::{index_u32, index_usize};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_runtime::wakeup::Wakeup;

use super::chain::{AuditEntry, ChainEnd, LINE_BYTES_MAX};
use super::client::{Failed, REQUESTS_MAX};
use super::files::{AuditFile, FILE_BYTES_MAX, FILES_MAX};
use super::*;

const NOW: Timestamp = Timestamp(1_700_000_000 * NS_PER_S);

struct AuditFolder(PathBuf);

impl AuditFolder {
    fn new() -> AuditFolder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pitlane-audit-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        AuditFolder(std::env::temp_dir().join(name))
    }

    fn file(&self, number: u32) -> PathBuf {
        self.0.join(format!("audit/{number:06}.jsonl"))
    }

    fn verify(&self) -> (bool, String) {
        self.verify_against(&verify::Against::default())
    }

    fn verify_against(&self, against: &verify::Against) -> (bool, String) {
        let mut out = Vec::new();
        let sound = verify::verify(&self.0, against, &mut out).unwrap();
        (sound, String::from_utf8(out).unwrap())
    }

    /// Removes the anchor file.
    fn remove_anchor(&self) {
        fs::remove_file(super::anchor::path(&self.0)).unwrap();
    }

    fn writer(&self) -> (AuditWriter, AuditClient) {
        let mut writer = AuditWriter::open(&self.0, NOW).unwrap();
        let client = writer.client(Wakeup::new(|| {}), Wakeup::new(|| {}));
        (writer, client)
    }
}

impl Drop for AuditFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn act(what: &str) -> Act {
    Act {
        who: "alice".into(),
        role: Role::Admin,
        from: [10, 0, 0, 7].into(),
        via: "REST",
        body: String::new(),
        what: what.to_string(),
    }
}

/// Submits an act, and records its outcome.
fn perform(writer: &mut AuditWriter, client: &mut AuditClient, what: &str) -> u64 {
    client.note(3, act(what)).unwrap();
    writer.poll(NOW);
    let (3, Ok(seq)) = client.poll().unwrap() else { panic!("it must be noted") };
    client.conclude(seq, "200");
    writer.poll(NOW);
    seq
}

/// Checks that acts are refused, repeatedly.
fn refuse(writer: &mut AuditWriter, client: &mut AuditClient) {
    for _ in 0..2 {
        client.note(4, act("b")).unwrap();
        writer.poll(NOW);
        assert_eq!(client.poll(), Some((4, Err(Failed))));
    }
}

#[test]
fn an_act_is_on_disk_before_its_number_is_returned_and_its_outcome_follows() {
    let folder = AuditFolder::new();
    let (mut writer, mut client) = folder.writer();
    client.note(9, act("POST /rest/runtime/exit-vm")).unwrap();
    assert_eq!(client.poll(), None);
    writer.poll(NOW);
    let line = fs::read_to_string(folder.file(1)).unwrap();
    let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&entry["seq"], &entry["who"], &entry["role"]), (&1.into(), &"alice".into(), &"admin".into()));
    assert_eq!((&entry["from"], &entry["via"]), (&"10.0.0.7".into(), &"REST".into()));
    assert_eq!(entry["act"], "POST /rest/runtime/exit-vm");
    assert_eq!(entry["time"], "2023-11-14T22:13:20Z");
    assert_eq!(client.poll(), Some((9, Ok(1))));
    client.conclude(1, "200");
    writer.poll(NOW);
    let text = fs::read_to_string(folder.file(1)).unwrap();
    let entry: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&entry["of"], &entry["outcome"], &entry["seq"]), (&1.into(), &"200".into(), &2.into()));
    let (sound, output) = folder.verify();
    assert!(sound && output.starts_with("ok: 2 lines in 1 files, the last is 2 with hash "), "{output}");
}

#[test]
fn the_chain_continues_after_a_restart_and_in_the_next_file() {
    let folder = AuditFolder::new();
    for round in 0..3 {
        let (mut writer, mut client) = folder.writer();
        assert_eq!(perform(&mut writer, &mut client, "a"), round * 2 + 1);
    }
    let mut file = AuditFile::open(&folder.0).unwrap();
    let long = AuditEntry::Remark("x".repeat(2_000));
    while !folder.file(3).exists() {
        let (mut lines, mut end) = (String::new(), file.end);
        for _ in 0..2_000 {
            let (line, next) = end.append(NOW, &long);
            (lines, end) = (lines + &line + "\n", next);
        }
        file.make_room().unwrap();
        file.write(&lines, end).unwrap();
    }
    assert!(fs::metadata(folder.file(1)).unwrap().len() >= FILE_BYTES_MAX);
    drop(file);
    let (sound, output) = folder.verify();
    assert!(sound && output.contains("in 3 files"), "{output}");
    // The removal of a middle file is detected, the removal of the oldest is not.
    let middle = fs::read(folder.file(2)).unwrap();
    fs::remove_file(folder.file(2)).unwrap();
    assert!(folder.verify().1.contains("000003.jsonl:1: its number does not follow"));
    fs::write(folder.file(2), middle).unwrap();
    fs::remove_file(folder.file(1)).unwrap();
    let (sound, output) = folder.verify();
    assert!(!sound && output.starts_with("missing: lines 1 to "), "{output}");
    let begins_with = output.split("--begins-with ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let begins_with = Some(begins_with.parse().unwrap());
    let against = verify::Against { begins_with, ..verify::Against::default() };
    let (sound, output) = folder.verify_against(&against);
    assert!(sound && output.starts_with("ok: "), "{output}");
}

#[test]
fn every_change_is_detected() {
    let folder = AuditFolder::new();
    let (mut writer, mut client) = folder.writer();
    for n in 0..3 {
        perform(&mut writer, &mut client, &format!("act {n} \"quoted\" \u{e9}\n"));
    }
    drop((writer, client));
    let good = fs::read(folder.file(1)).unwrap();
    let broken = |bytes: &[u8]| {
        fs::write(folder.file(1), bytes).unwrap();
        !folder.verify().0
    };
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        // A last line without its line end looks torn, and is reported as such.
        assert!(broken(&bad) || at == good.len() - 1, "byte {at}");
    }
    let lines: Vec<&[u8]> = good.split_inclusive(|byte| *byte == b'\n').collect();
    for at in 0..lines.len() - 1 {
        let mut fewer = lines.clone();
        fewer.remove(at);
        assert!(broken(&fewer.concat()), "line {at} left out");
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        assert!(broken(&swapped.concat()), "line {at} swapped");
        let mut twice = lines.clone();
        twice.insert(at, lines[at]);
        assert!(broken(&twice.concat()), "line {at} twice");
    }
    // A broken log is not continued.
    let mut bad = good.clone();
    bad[10] ^= 1;
    fs::write(folder.file(1), &bad).unwrap();
    assert!(matches!(AuditWriter::open(&folder.0, NOW), Err(AuditError::Broken(_, 1, _))));
    fs::write(folder.file(1), vec![b'x'; LINE_BYTES_MAX + 1]).unwrap();
    assert!(!folder.verify().0);
}

#[test]
fn a_torn_line_is_dropped_and_reported() {
    let folder = AuditFolder::new();
    let (mut writer, mut client) = folder.writer();
    perform(&mut writer, &mut client, "a");
    drop((writer, client));
    let good = fs::read(folder.file(1)).unwrap();
    let start = good[..good.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [start + 1, good.len() - 1] {
        // The line was being written, so no anchor refers to it.
        folder.remove_anchor();
        fs::write(folder.file(1), &good[..cut]).unwrap();
        assert!(folder.verify().1.contains("the last line is cut off"));
        drop(folder.writer());
        let text = fs::read_to_string(folder.file(1)).unwrap();
        assert!(text.lines().last().unwrap().contains("a line was cut off"), "{text}");
        assert!(folder.verify().0);
    }
}

/// Covers each way to tamper with the files.
#[test]
fn anchors_detect_removed_or_recomputed_lines_and_the_writer_does_not_start() {
    let folder = AuditFolder::new();
    let (mut writer, mut client) = folder.writer();
    for n in 0..3 {
        perform(&mut writer, &mut client, &format!("act {n}"));
    }
    let anchor = writer.anchor();
    assert_eq!(anchor.line, 6);
    drop((writer, client));
    let journal = verify::Against { journal: vec![anchor], ..verify::Against::default() };
    let (sound, output) = folder.verify_against(&journal);
    assert!(sound && output.ends_with("2 anchors\n"), "{output}");
    let good = fs::read_to_string(folder.file(1)).unwrap();
    let lines: Vec<&str> = good.split_inclusive('\n').collect();
    let (mut again, mut end) = (String::new(), ChainEnd::default());
    for n in 0..6 {
        let (line, next) = end.append(NOW, &AuditEntry::Remark(n.to_string()));
        (again, end) = (again + &line + "\n", next);
    }
    let cases = [
        (lines[..4].concat(), "missing: lines 5 to 6: ", "lines 5 to 6 were written and are missing"),
        (again, "rewritten: line 6 has hash ", "line 6 has another hash than was written"),
    ];
    for (text, expected, refused) in cases {
        fs::write(folder.file(1), text).unwrap();
        let (sound, output) = folder.verify();
        assert!(!sound && output.contains(expected) && output.contains("the file audit-anchor"), "{output}");
        let error = AuditWriter::open(&folder.0, NOW).unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }
    fs::write(folder.file(1), lines[2..].concat()).unwrap();
    let (sound, output) = folder.verify();
    assert!(!sound && output.contains("missing: lines 1 to 2; if these were archived"), "{output}");
    fs::remove_dir_all(folder.0.join("audit")).unwrap();
    let (sound, output) = folder.verify();
    assert!(!sound && output.contains("missing: lines 1 to 6: "), "{output}");
    assert!(AuditWriter::open(&folder.0, NOW).is_err());
    // Without the anchor file, the anchor in the journal detects the loss.
    folder.remove_anchor();
    let (sound, output) = folder.verify_against(&journal);
    assert!(!sound && output.contains("missing: lines 1 to 6: the journal has line 6"), "{output}");
    // The creation time identifies a log.
    let mut writer = AuditWriter::open(&folder.0, NOW.plus(1)).unwrap();
    let mut client = writer.client(Wakeup::new(|| {}), Wakeup::new(|| {}));
    perform(&mut writer, &mut client, "a new log");
    drop((writer, client));
    let (sound, output) = folder.verify_against(&journal);
    assert!(!sound && output.contains("missing: a whole log: the journal has its line 6"), "{output}");
    let pair = verify::Against { is_standby: true, ..journal };
    assert!(folder.verify_against(&pair).0, "the other server of a pair has a log of its own");
}

/// The anchor is written after the line, so a crash between the two leaves a longer chain.
#[test]
fn a_chain_that_is_longer_than_its_anchor_continues() {
    let folder = AuditFolder::new();
    let (mut writer, mut client) = folder.writer();
    perform(&mut writer, &mut client, "a");
    let before = fs::read(super::anchor::path(&folder.0)).unwrap();
    perform(&mut writer, &mut client, "b");
    drop((writer, client));
    fs::write(super::anchor::path(&folder.0), before).unwrap();
    assert!(folder.verify().0);
    let (writer, _client) = folder.writer();
    assert_eq!(writer.anchor().line, 4);
    assert_eq!(super::anchor::Anchor::read(&folder.0).unwrap(), Some(writer.anchor()));
}

#[test]
fn anchors_go_to_one_thread_which_reads_the_newest() {
    let folder = AuditFolder::new();
    let mut writer = AuditWriter::open(&folder.0, NOW).unwrap();
    let mut client = writer.client_with_anchors(Wakeup::new(|| {}), Wakeup::new(|| {}));
    assert_eq!(client.poll_anchor(), None, "there is nothing to anchor");
    for _ in 0..super::client::ANCHORS_MAX {
        perform(&mut writer, &mut client, "a");
    }
    assert!(client.poll_anchor().is_some());
    // An anchor that did not fit is sent when there is space.
    writer.poll(NOW);
    assert_eq!(client.poll_anchor(), Some(writer.anchor()));
    assert_eq!(client.poll_anchor(), None);
}

#[test]
fn two_processes_do_not_write_one_log() {
    let folder = AuditFolder::new();
    let first = folder.writer();
    assert!(
        AuditWriter::open(&folder.0, NOW).is_err_and(|error| error.to_string().contains("another process"))
    );
    drop(first);
    folder.writer();
}

/// Returns lines of a first file with at least this total size.
fn lines_of(bytes: u64) -> String {
    let (mut lines, mut end) = (String::new(), ChainEnd::default());
    while (lines.len() as u64) < bytes {
        let (line, next) = end.append(NOW, &AuditEntry::Remark("x".repeat(2_000)));
        lines.push_str(&line);
        lines.push('\n');
        end = next;
    }
    lines
}

#[test]
fn the_number_of_files_is_bounded_and_acts_beyond_it_are_refused() {
    let folder = AuditFolder::new();
    drop(folder.writer());
    fs::write(folder.file(1), lines_of(FILE_BYTES_MAX - 5_000)).unwrap();
    let (mut writer, mut client) = folder.writer();
    // The second file does not exist yet.
    let others = 3..index_u32(FILES_MAX) + 2;
    others.clone().for_each(|number| fs::write(folder.file(number), "").unwrap());
    client.note(3, act("slow")).unwrap();
    writer.poll(NOW);
    let Some((3, Ok(slow))) = client.poll() else { panic!("there is room for it") };
    while fs::metadata(folder.file(1)).unwrap().len() < FILE_BYTES_MAX {
        perform(&mut writer, &mut client, "a");
    }
    // An outcome is written even in the same batch as a refused act.
    client.conclude(slow, "204");
    refuse(&mut writer, &mut client);
    let text = fs::read_to_string(folder.file(1)).unwrap();
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["of"], &last["outcome"]), (&slow.into(), &"204".into()));
    // When an older file is archived, the log accepts acts again, and the chain continues.
    fs::remove_file(folder.file(3)).unwrap();
    perform(&mut writer, &mut client, "c");
    assert!(folder.file(2).exists());
    drop((writer, client));
    others.skip(1).for_each(|number| fs::remove_file(folder.file(number)).unwrap());
    let (sound, output) = folder.verify();
    assert!(sound && output.contains("in 2 files"), "{output}");
}

#[test]
fn acts_are_refused_when_the_log_cannot_be_written() {
    let folder = AuditFolder::new();
    let (mut writer, mut client) = folder.writer();
    perform(&mut writer, &mut client, "a");
    drop((writer, client));
    fs::write(folder.file(1), lines_of(FILE_BYTES_MAX)).unwrap();
    folder.remove_anchor();
    let (mut writer, mut client) = folder.writer();
    // The file is full, and no other can be created in the folder.
    fs::remove_dir_all(folder.0.join("audit")).unwrap();
    refuse(&mut writer, &mut client);
}

#[test]
fn a_client_reserves_a_slot_for_the_outcome_of_each_act() {
    let folder = AuditFolder::new();
    let (mut writer, mut client) = folder.writer();
    let mut noted = 0;
    while client.note(noted, act("a")).is_ok() {
        noted += 1;
    }
    assert_eq!(index_usize(noted), REQUESTS_MAX / 2);
    writer.poll(NOW);
    let numbers: Vec<u64> = std::iter::from_fn(|| client.poll()).map(|(_, noted)| noted.unwrap()).collect();
    assert_eq!(numbers.len(), REQUESTS_MAX / 2);
    while client.note(noted, act("a")).is_ok() {
        noted += 1;
    }
    // The reserved slots suffice, no matter how many acts followed.
    numbers.iter().for_each(|seq| client.conclude(*seq, "200"));
    writer.poll(NOW);
    assert!(folder.verify().0);
}

#[test]
fn a_long_text_is_truncated_at_a_character_boundary() {
    let (line, end) = ChainEnd::default().append(NOW, &AuditEntry::Act(act(&"\u{e9}\u{1}".repeat(5_000))));
    assert!(line.len() < LINE_BYTES_MAX, "{}", line.len());
    assert_eq!(ChainEnd::default().follow(&line), Ok(end));
}
