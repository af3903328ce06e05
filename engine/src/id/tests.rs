use super::*;

#[test]
fn an_int_id_admits_48_printable_characters_without_space() {
    let longest = "x".repeat(48);
    assert_eq!(IntId::parse(longest.as_bytes()).unwrap().as_str(), longest);
    assert_eq!(IntId::parse(b""), Err(TextError::Empty));
    assert_eq!(IntId::parse("x".repeat(49).as_bytes()), Err(TextError::TooLong));
    for bad in [&b"a b"[..], b"a\0", b"\x7f", "é".as_bytes()] {
        assert_eq!(IntId::parse(bad), Err(TextError::Character));
    }
    for len in 1..=INT_ID_BYTES {
        let distinct: Vec<u8> = (b'A'..).take(len).collect();
        let id = IntId::parse(&distinct).unwrap();
        assert_eq!(id.as_bytes(), distinct);
        assert!(id.padded()[len..].iter().all(|&byte| byte == 0), "only zeros follow the text");
        for at in 0..len {
            let mut text = vec![b'~'; len];
            assert_eq!(IntId::parse(&text).map(|id| id.text_len()), Ok(len));
            for byte in 0..=255u8 {
                text[at] = byte;
                assert_eq!(IntId::parse(&text).is_ok(), byte.is_ascii_graphic(), "{byte} of {text:?}");
            }
        }
    }
}

#[test]
fn a_modification_raises_the_version_behind_the_root() {
    let next = |id: &str| IntId::parse(id.as_bytes()).unwrap().next_version().map(|id| id.to_string());
    assert_eq!(next("n17").as_deref(), Some("n17.1"));
    assert_eq!(next("n17.9").as_deref(), Some("n17.10"));
    assert_eq!(next("a.b").as_deref(), Some("a.b.1"));
    assert_eq!(next(&"x".repeat(47)), None);
    for number in [0, 7, 10, 12_345, 99_999_999, 100_000_000, 100_000_001, u64::MAX] {
        assert_eq!(IntId::numbered(b'n', number).as_str(), format!("n{number}"));
    }
}

#[test]
fn a_handle_keeps_its_parts() {
    let handle = OrderHandle::new(ShardId(127), GENERATIONS - 1, u32::MAX);
    assert_eq!(
        (handle.shard(), handle.generation(), handle.slot()),
        (ShardId(127), GENERATIONS - 1, u32::MAX)
    );
    assert_eq!(OrderHandle::from_raw(handle.raw()), handle);
    assert_ne!(handle, OrderHandle::NONE);
    assert_eq!(format!("{handle:?}"), "127:16777215:4294967295");
}

#[test]
fn a_port_mask_is_a_set() {
    let mask = PortMask::one(PortId(0)).with(PortMask::one(PortId(31)));
    assert_eq!(mask.ports().collect::<Vec<_>>(), [PortId(0), PortId(31)]);
    assert!(mask.contains(PortId(31)) && !mask.contains(PortId(1)));
    assert!(mask.without(mask).is_empty());
    assert_eq!(PortMask::NONE.ports().count(), 0);
}

#[test]
fn position_and_transaction_ids_stay_exact_in_a_javascript_number() {
    let position = PositionId::new(StrategyId(7), SecurityId(9));
    assert_eq!((position.strategy(), position.security()), (StrategyId(7), SecurityId(9)));
    let highest = TransactionId::of_cash(StrategyId(u16::MAX), u32::MAX);
    assert!(highest.0 < 1 << 53);
    assert!(TransactionId::of_security(SecurityId(SecurityId::MAX), u32::MAX) < highest);
}

#[test]
fn a_derived_uuid_is_well_formed_and_differs_with_each_input() {
    let uuid = TransactionId(5).uuid(1);
    let text = uuid.to_string();
    assert_eq!((text.len(), &text[14..15]), (36, "8"));
    assert!(matches!(&text[19..20], "8" | "9" | "a" | "b"), "{text}");
    assert_eq!(uuid, TransactionId(5).uuid(1));
    let mut seen: Vec<Uuid> = (0..10_000).map(|n| TransactionId(n).uuid(1)).collect();
    seen.push(TransactionId(5).uuid(2));
    seen.push(Uuid::derived(1, 2, 5));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 10_002);
}

#[test]
fn a_currency_has_up_to_eight_capitals_or_digits() {
    assert_eq!(Currency::parse(b"USD").unwrap().to_string(), "USD");
    assert_eq!(format!("{:?}", Currency::parse(b"USDT").unwrap()), "USDT");
    for good in ["T", "OP", "FDUSD", "1INCH", "1000SATS"] {
        assert_eq!(Currency::parse(good.as_bytes()).unwrap().as_str(), good);
    }
    for bad in [&b"usd"[..], b"US D", b"US\0"] {
        assert_eq!(Currency::parse(bad), Err(TextError::Character));
    }
    assert_eq!(Currency::parse(b""), Err(TextError::Empty));
    assert_eq!(Currency::parse(b"1000000SA"), Err(TextError::TooLong));
}

#[test]
fn ports_beyond_the_link_belong_to_other_servers() {
    let ports = [0, PortId::MAX - 1, PortId::MAX, PortId::MAX + 1, u8::MAX].map(PortId);
    assert_eq!(ports.map(PortId::is_remote), [false, false, false, true, true]);
}
