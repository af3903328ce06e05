use super::*;

#[test]
fn runs_and_groups_are_in_rising_order() {
    let are_rising = |runs: &[TagRun]| {
        runs.iter().all(|run| run.first <= run.last)
            && runs.windows(2).all(|pair| pair[0].last < pair[1].first)
    };
    let mut counts = Vec::new();
    for line in 0..GROUPS.starts.len() {
        let [counting, _, others @ ..] = GROUPS.line(line).unwrap() else { panic!("line {line}") };
        assert!(are_rising(others), "{counting:?}");
        counts.push(counting.first);
    }
    assert!(counts.is_sorted() && counts.len() > 300, "{}", counts.len());
    for msg_type in ["D", "F", "G", "H", "Q", "q", "AF", "V", "x", "c", "g", "AN", "j", "0", "1", "A"] {
        let tags = message(msg_type.as_bytes()).unwrap();
        assert!(are_rising(tags.all) && are_rising(tags.required), "{msg_type}");
        assert!(tags.required.iter().all(|run| run.first == run.last && tags.has(run.first)), "{msg_type}");
        assert!(!tags.has(0), "{msg_type}: the colon is no tag");
    }
    for msg_type in ["", "8", "FIXT", "AE", "B", "D "] {
        assert!(message(msg_type.as_bytes()).is_none(), "{msg_type}");
    }
}

#[test]
fn a_group_is_found_with_the_places_of_its_tags() {
    let parties = group(453).unwrap();
    assert_eq!(parties.first, 448);
    assert_eq!(
        [448, 447, 452, 802, 2376, 803].map(|tag| parties.place(tag)),
        [Some(0), Some(1), Some(2), Some(3), Some(4), None]
    );
    assert!(group(0).is_none() && group(454).is_some() && group(455).is_none() && group(u32::MAX).is_none());
    for line in 0..GROUPS.starts.len() {
        let found = group(GROUPS.words[GROUPS.starts[line]].first).unwrap();
        let mut places: Vec<usize> = found
            .others
            .iter()
            .flat_map(|run| run.first..=run.last)
            .filter_map(|tag| found.place(tag))
            .collect();
        assert!(places.iter().all(|&place| place < MEMBER_TAGS_MAX), "{}", found.count);
        let count = places.len();
        places.sort_unstable();
        assert_eq!(places, (1..=count).collect::<Vec<_>>(), "{}", found.count);
    }
}

#[test]
fn types_and_values_are_found_by_their_tag() {
    assert_eq!(
        [1, 38, 453, 957, 1138, 2376, 40_000].map(type_letter),
        [Some(b'T'), Some(b'D'), Some(b'N'), Some(b'N'), Some(b'D'), Some(b'I'), Some(b'N')]
    );
    assert_eq!([0, 101, 2_999, 5_000, 7_001, 39_999, 43_199, u32::MAX].map(type_letter), [None; 8]);
    let permitted = |tag, value: &str| permits(tag, value.as_bytes());
    assert_eq!(permitted(58, "any"), None);
    for (tag, value, is_permitted) in [
        (54, "1", true),
        (54, "H", true),
        (54, "?", false),
        (59, "C", true),
        (13, "8", true),
        (13, "9", false),
        (13, "0", false),
        (13, "01", false),
        (13, "1..8", false),
        (452, "127", true),
        (452, "108", false),
        (452, "", false),
        (18, "z", true),
        (235, "VALUE1_32", true),
        (167, "XMISSION", true),
        (167, "FXSPO", false),
        (1_815, "9", false),
    ] {
        assert_eq!(permitted(tag, value), Some(is_permitted), "{tag}={value}");
    }
}

#[test]
fn the_length_of_raw_data_names_its_tag() {
    assert_eq!(
        [1_525, 1_401, 2_372, 43_110, 41_873].map(data_of),
        [Some(1_527), Some(1_402), Some(2_371), Some(42_486), Some(41_874)]
    );
    assert_eq!([383, 1_138, 5_000].map(data_of), [None; 3]);
}
