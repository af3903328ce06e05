use pitlane_engine::rng::Rng;
use pitlane_journal::simulated_disk::Simulated;

use super::*;

const BYTES: usize = 8 * PAGE_BYTES;

fn location(disk: &Disk) -> StoreLocation<'_> {
    StoreLocation { disk, path: "fix/A-B.store".into(), name: "A-B", bytes: BYTES, level: Level::Os }
}

fn open(disk: &Disk) -> FileStore {
    FileStore::open(&location(disk), Timestamp(1), &[7]).unwrap()
}

fn numbers(next_target_msg_seq_num: u64, next_sender_msg_seq_num: u64) -> SequenceNumbers {
    SequenceNumbers {
        next_target_msg_seq_num,
        next_sender_msg_seq_num,
        ..SequenceNumbers::fresh(Timestamp(1))
    }
}

fn message(number: u64) -> Vec<u8> {
    format!("message {number} {}", "x".repeat(index_usize(number % 97))).into_bytes()
}

fn content(store: &FileStore) -> Vec<u64> {
    let (mut found, mut into, mut next) = (Vec::new(), Vec::new(), 0);
    while let Some(number) = store.next_message(next, u64::MAX, &mut into) {
        assert_eq!(into, message(number));
        found.push(number);
        next = number + 1;
    }
    found
}

#[test]
fn stored_messages_survive_a_crash_at_any_moment() {
    let simulated = Simulated::new(1);
    let disk = Disk::Simulated(simulated.clone());
    let mut store = open(&disk);
    assert_eq!(
        (store.sequence_numbers(), store.last_reported_event(ShardId(0))),
        (SequenceNumbers::fresh(Timestamp(1)), 7)
    );
    for number in 1..3_000u64 {
        let cause = (number % 3 != 0).then_some(ReportedEvent { shard: ShardId(1), seq: number });
        store.save(number, &message(number), cause).unwrap();
        if number % 41 == 0 {
            // Between the message and its number.
            let again = open(&disk);
            assert_eq!(again.sequence_numbers().next_sender_msg_seq_num, number + 1);
            store = again;
        }
        store.set_sequence_numbers(numbers(number / 2, number + 1)).unwrap();
        if number % 37 == 0 {
            let again = open(&disk);
            assert_eq!(again.sequence_numbers(), numbers(number / 2, number + 1));
            assert_eq!(content(&again), content(&store));
            assert_eq!(again.last_reported_event(ShardId(1)), number - (number % 3 == 0) as u64);
            assert_eq!(content(&again).last(), Some(&number));
            store = again;
        }
    }
    let last = content(&store);
    assert!(last.len() > 100 && last.len() < 1_000, "the ring holds the newest: {}", last.len());
    store.reset(numbers(1, 1)).unwrap();
    let again = open(&disk);
    assert_eq!((content(&again), again.sequence_numbers()), (Vec::new(), numbers(1, 1)));
    assert_eq!(again.last_reported_event(ShardId(1)), 2_999);
}

#[test]
fn a_torn_end_is_dropped_and_a_torn_slot_leaves_the_previous_one() {
    let simulated = Simulated::new(1);
    let disk = Disk::Simulated(simulated.clone());
    let mut store = open(&disk);
    for number in 1..=5 {
        store.save(number, &message(number), None).unwrap();
        store.set_sequence_numbers(numbers(1, number + 1)).unwrap();
    }
    let last = store.index[4];
    simulated.meddle(Path::new("fix/A-B.store"), |bytes| bytes[RING_AT + index_usize(last.at) + 50] ^= 1);
    let again = open(&disk);
    assert_eq!(content(&again), [1, 2, 3, 4]);
    assert_eq!(again.sequence_numbers(), numbers(1, 6), "its number was used");
    let slot_writes = again.slot_writes % 2;
    simulated.meddle(Path::new("fix/A-B.store"), |bytes| {
        bytes[SLOT_AT + index_usize(slot_writes) * SLOT_BYTES + 8] ^= 1
    });
    assert_eq!(open(&disk).sequence_numbers().next_sender_msg_seq_num, 6);
    simulated.meddle(Path::new("fix/A-B.store"), |bytes| bytes[SLOT_AT..SLOT_AT + 128].fill(7));
    let fault = FileStore::open(&location(&disk), Timestamp(1), &[]).unwrap_err().to_string();
    assert!(fault.contains("A-B.store") && fault.contains("numbers"), "{fault}");
}

#[test]
fn a_loss_of_answers_is_kept_and_a_slot_without_it_is_read() {
    let simulated = Simulated::new(1);
    let disk = Disk::Simulated(simulated.clone());
    let mut store = open(&disk);
    let lost = SequenceNumbers { answers_lost_before: 4, ..numbers(9, 5) };
    store.set_sequence_numbers(lost).unwrap();
    assert_eq!(open(&disk).sequence_numbers(), lost);
    // A torn slot, and slots as the previous version has written them.
    let slot_at = |write: u64| SLOT_AT + index_usize(write % 2) * SLOT_BYTES;
    let mut store = open(&disk);
    store.set_sequence_numbers(numbers(10, 5)).unwrap();
    let newest = slot_at(store.slot_writes);
    simulated.meddle(Path::new("fix/A-B.store"), |bytes| bytes[newest + 52] ^= 1);
    let mut store = open(&disk);
    assert_eq!(store.sequence_numbers(), lost);
    store.set_sequence_numbers(lost).unwrap();
    simulated.meddle(Path::new("fix/A-B.store"), |bytes| {
        for write in 0..2 {
            bytes[slot_at(write) + 52..slot_at(write) + SLOT_BYTES].fill(0);
        }
    });
    assert_eq!(open(&disk).sequence_numbers(), numbers(9, 5));
}

#[test]
fn a_number_that_may_be_ahead_of_the_journal_loses_answers() {
    for (level, is_copy, is_lost) in [
        (Level::Os, false, true),
        (Level::Os, true, true),
        (Level::Disk, false, false),
        (Level::Disk, true, true),
        (Level::Replicated, false, false),
        (Level::Replicated, true, false),
    ] {
        let simulated = Simulated::new(1);
        let disk = Disk::Simulated(simulated.clone());
        let mut store = open(&disk);
        store.save(1, &message(1), None).unwrap();
        store.set_sequence_numbers(numbers(4, 2)).unwrap();
        // The boot id of another start of the machine, or of none.
        let boot = if is_copy { 0 } else { !disk.boot() };
        simulated.meddle(Path::new("fix/A-B.store"), |bytes| {
            bytes[8..24].copy_from_slice(&boot.to_le_bytes());
        });
        let location = StoreLocation { level, ..location(&disk) };
        let found = FileStore::open(&location, Timestamp(1), &[]).unwrap().sequence_numbers();
        assert_eq!(found.next_sender_msg_seq_num, 2 + NUMBERS_SKIPPED);
        let expected = if is_lost { found.next_sender_msg_seq_num } else { 0 };
        assert_eq!(found.answers_lost_before, expected, "{level} {is_copy}");
        // The next start is an ordinary one, and the loss stays known.
        let again = FileStore::open(&location, Timestamp(1), &[]).unwrap().sequence_numbers();
        assert_eq!(again, found);
    }
}

#[test]
fn after_a_power_loss_no_sequence_number_is_used_twice() {
    let simulated = Simulated::new(1);
    let disk = Disk::Simulated(simulated.clone());
    let mut store =
        FileStore::open(&StoreLocation { level: Level::Disk, ..location(&disk) }, Timestamp(1), &[]).unwrap();
    store.save(1, &message(1), Some(ReportedEvent { shard: ShardId(0), seq: 9 })).unwrap();
    store.set_sequence_numbers(numbers(4, 2)).unwrap();
    store.file().sync().unwrap();
    store.save(2, &message(2), Some(ReportedEvent { shard: ShardId(0), seq: 10 })).unwrap();
    store.set_sequence_numbers(numbers(5, 3)).unwrap();
    let after = Disk::Simulated(simulated.power_loss());
    let again = FileStore::open(&location(&after), Timestamp(1), &[]).unwrap();
    assert!(again.lost_power && again.sequence_numbers().next_sender_msg_seq_num > NUMBERS_SKIPPED);
    assert!(content(&again).contains(&1) && (9..=10).contains(&again.last_reported_event(ShardId(0))));
}

#[test]
fn after_a_power_loss_at_any_moment_no_report_is_missing_or_invented() {
    for seed in 0..300 {
        let (simulated, mut chance) = (Simulated::new(seed), Rng::new(seed));
        let disk = Disk::Simulated(simulated.clone());
        let location = StoreLocation { level: Level::Disk, ..location(&disk) };
        let mut store = FileStore::open(&location, Timestamp(1), &[]).unwrap();
        let last = 1 + chance.below(2_000);
        let mut synced = 0;
        for number in 1..=last {
            store
                .save(number, &message(number), Some(ReportedEvent { shard: ShardId(0), seq: number }))
                .unwrap();
            if chance.below(3) == 0 {
                store.set_sequence_numbers(numbers(number, number + 1)).unwrap();
            }
            if chance.below(10) == 0 {
                store.file().sync().unwrap();
                synced = number;
            }
        }
        let held = content(&store);
        let after = Disk::Simulated(simulated.power_loss());
        let location = StoreLocation { disk: &after, ..location };
        let again = FileStore::open(&location, Timestamp(1), &[]).unwrap();
        assert!(
            again.sequence_numbers().next_sender_msg_seq_num > last,
            "a number is used twice with seed {seed}"
        );
        let (reported, found) = (again.last_reported_event(ShardId(0)), content(&again));
        assert!((synced..=last).contains(&reported), "{reported} of {synced}..={last} with seed {seed}");
        let lost = held.iter().find(|&&number| number <= reported && !found.contains(&number));
        assert_eq!(lost, None, "it counts as reported, and is not there, with seed {seed}");
    }
}

#[test]
fn numbers_above_those_of_the_messages_are_kept() {
    let disk = Disk::Simulated(Simulated::new(1));
    let mut store = open(&disk);
    store.save(1, &message(1), None).unwrap();
    store.set_sequence_numbers(numbers(4, 9)).unwrap();
    assert_eq!(open(&disk).sequence_numbers(), numbers(4, 9));
}

#[test]
fn a_message_that_is_too_long_and_a_foreign_file_are_rejected() {
    let disk = Disk::Simulated(Simulated::new(1));
    let mut store = open(&disk);
    assert_eq!(store.save(1, &[0; BYTES], None), Err(StoreFailed));
    drop(store);
    let other = StoreLocation { name: "A-C", ..location(&disk) };
    assert!(FileStore::open(&other, Timestamp(1), &[]).unwrap_err().to_string().contains("another"));
}

/// Larger than a new store, so that it grows.
const LONG_BYTES: usize = 128 * PAGE_BYTES;

fn long_place(disk: &Disk) -> StoreLocation<'_> {
    StoreLocation { bytes: LONG_BYTES, level: Level::Disk, ..location(disk) }
}

#[test]
fn a_store_grows_up_to_its_limit_and_keeps_its_messages() {
    let simulated = Simulated::new(1);
    let disk = Disk::Simulated(simulated.clone());
    let path = Path::new("fix/A-B.store");
    let mut store = FileStore::open(&long_place(&disk), Timestamp(1), &[]).unwrap();
    assert_eq!(disk.len(path).unwrap(), FIRST_BYTES as u64, "a new one is small");
    let mut sizes = vec![FIRST_BYTES as u64];
    for number in 1..12_000 {
        store.save(number, &message(number), None).unwrap();
        let bytes = disk.len(path).unwrap();
        if sizes.last() != Some(&bytes) {
            sizes.push(bytes);
        }
        if number.is_multiple_of(1_500) {
            store = FileStore::open(&long_place(&disk), Timestamp(1), &[]).unwrap();
            assert_eq!(content(&store).last(), Some(&number));
        }
        if bytes < LONG_BYTES as u64 {
            assert_eq!(store.index.len() as u64, number, "nothing gives way before the limit");
        }
    }
    assert_eq!(sizes.last(), Some(&(LONG_BYTES as u64)));
    assert!(sizes.len() > 4, "{sizes:?}");
    // It does not shrink.
    store.reset(numbers(1, 1)).unwrap();
    drop(FileStore::open(&long_place(&disk), Timestamp(1), &[]).unwrap());
    assert_eq!(disk.len(path).unwrap(), LONG_BYTES as u64);
}

#[test]
fn on_a_full_disk_the_oldest_messages_are_evicted_earlier() {
    let simulated = Simulated::new(1);
    let disk = Disk::Simulated(simulated.clone());
    let mut store = FileStore::open(&long_place(&disk), Timestamp(1), &[]).unwrap();
    simulated.set_bytes_max(simulated.bytes_used());
    for number in 1..5_000 {
        store.save(number, &message(number), None).unwrap();
    }
    assert!(
        content(&store).len() > 100 && disk.len(Path::new("fix/A-B.store")).unwrap() == FIRST_BYTES as u64
    );
    assert_eq!(store.save(5_000, &[b'x'; FIRST_BYTES], None), Err(StoreFailed));
}

#[test]
fn after_a_power_loss_a_growing_store_has_what_was_synced() {
    for seed in 0..200 {
        let (simulated, mut chance) = (Simulated::new(seed), Rng::new(seed));
        let disk = Disk::Simulated(simulated.clone());
        let mut store = FileStore::open(&long_place(&disk), Timestamp(1), &[]).unwrap();
        let last = 1 + chance.below(4_000);
        let mut synced = 0;
        for number in 1..=last {
            store
                .save(number, &message(number), Some(ReportedEvent { shard: ShardId(0), seq: number }))
                .unwrap();
            if chance.below(3) == 0 {
                store.set_sequence_numbers(numbers(number, number + 1)).unwrap();
            }
            // Rarely, so that more than half of a young store lies between two syncs.
            if chance.below(900) == 0 {
                store.file().sync().unwrap();
                synced = number;
            }
        }
        let after = Disk::Simulated(simulated.power_loss());
        let again = FileStore::open(&long_place(&after), Timestamp(1), &[]).unwrap();
        assert!(
            again.sequence_numbers().next_sender_msg_seq_num > last,
            "a number is used twice with seed {seed}"
        );
        let found = content(&again);
        if store.head <= store.capacity {
            let lost = (1..=synced).find(|number| !found.contains(number));
            assert_eq!(lost, None, "of {synced} that were synced, with seed {seed}");
        }
    }
}

#[test]
fn the_first_page_holds_the_last_reported_events() {
    let disk = Disk::Simulated(Simulated::new(1));
    assert_eq!(FileStore::peek_head(&location(&disk)).unwrap(), None);
    let mut store = open(&disk);
    store.save(1, &message(1), Some(ReportedEvent { shard: ShardId(2), seq: 9 })).unwrap();
    let reported = FileStore::peek_head(&location(&disk)).unwrap().unwrap();
    assert_eq!((reported[0], reported[2]), (7, 9));
    assert_eq!(FileStore::peek(&location(&disk)).unwrap().unwrap(), reported);
}
