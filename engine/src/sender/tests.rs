use super::*;
use crate::codec::decode_whole;

fn sender(login: &str, address: u8) -> Sender {
    Sender {
        protocol: Protocol::Rest,
        address: SenderAddress([address; 16]),
        login: SenderText::new(login),
        session: SenderText::EMPTY,
    }
}

#[test]
fn a_text_is_printable_and_has_its_length() {
    assert_eq!(SenderText::new("a b\u{e9}\n").as_str(), "a?b??");
    assert_eq!(SenderText::new(&"x".repeat(80)).as_str().len(), SENDER_TEXT_BYTES_MAX);
    assert!(SenderText::new("").is_empty());
}

#[test]
fn a_sender_number_contains_its_port() {
    let id = SenderId(3 << PORT_SHIFT | COUNT_FIRST);
    assert_eq!((id.port(), id.with_port(PortId(40)).port()), (PortId(3), PortId(40)));
    for id in [SenderId::NONE, SenderId::INTERNAL, SenderId::UNLISTED] {
        assert_eq!((id.is_named(), id.with_port(PortId(40))), (false, id));
    }
}

#[test]
fn a_table_forgets_the_oldest_beyond_its_bound_and_decodes_to_itself() {
    let mut table = SenderTable::default();
    for count in 0..SENDERS_MAX as u32 + 2 {
        table.insert(SenderId(COUNT_FIRST + count), sender("a", 1));
    }
    assert_eq!((table.len(), table.get(SenderId(COUNT_FIRST + 1))), (SENDERS_MAX, None));
    let mut small = SenderTable::default();
    small.insert(SenderId::INTERNAL, sender("a", 1));
    small.insert(SenderId(90), sender("b", 1));
    small.insert(SenderId(20), sender("a", 1));
    small.apply_part(SenderId(90), SenderPart::Session(SenderText::new("S")));
    let mut bytes = Vec::new();
    small.encode(&mut bytes);
    let back: SenderTable = decode_whole(&bytes).unwrap();
    assert_eq!((back.len(), back.at(0)), (2, small.at(0)));
    assert_eq!(back.at(1), Some((SenderId(20), &sender("a", 1))));
    assert_eq!((back.at(2), back.is_empty()), (None, false));
    assert_eq!(back.get(SenderId(90)).unwrap().session.as_str(), "S");
    for cut in 0..bytes.len() {
        assert!(decode_whole::<SenderTable>(&bytes[..cut]).is_err());
    }
}

#[test]
fn a_table_keeps_only_the_senders_that_are_asked_for() {
    let mut table = SenderTable::default();
    (20..24).for_each(|id| table.insert(SenderId(id), sender("a", 1)));
    table.retain(|id| id.0 % 2 == 1);
    let kept: Vec<SenderId> = (0..table.len()).map(|at| table.at(at).unwrap().0).collect();
    assert_eq!(kept, [SenderId(21), SenderId(23)]);
    assert_eq!((table.get(SenderId(20)), table.get(SenderId(23))), (None, Some(&sender("a", 1))));
}

#[test]
fn a_stored_table_has_named_senders_each_once_within_the_bound() {
    let problem = |count: u32, rows: &[(SenderId, Sender)]| {
        let mut bytes = Vec::new();
        count.encode(&mut bytes);
        rows.iter().for_each(|row| row.encode(&mut bytes));
        decode_whole::<SenderTable>(&bytes).err().map(|damage| (damage.at, damage.problem))
    };
    let row = |id| (SenderId(id), sender("a", 1));
    assert_eq!(problem(2, &[row(20), row(21)]), None);
    let row_bytes = 4 + 1 + 16 + 2 + 1;
    assert_eq!(problem(2, &[row(20), row(20)]), Some((4 + 2 * row_bytes, DecodeProblem::Value)));
    assert_eq!(problem(1, &[row(COUNT_FIRST - 1)]), Some((4 + row_bytes, DecodeProblem::Value)));
    assert_eq!(problem(1, &[]), Some((4, DecodeProblem::Value)));
    let many = SENDERS_MAX as u32 + 1;
    let rows: Vec<(SenderId, Sender)> = (0..many).map(|count| row(COUNT_FIRST + count)).collect();
    assert_eq!(problem(many, &rows), Some((4, DecodeProblem::Value)));
}

#[test]
fn an_address_of_version_four_is_written_as_such() {
    let mut mapped = [0; 16];
    mapped[10..].copy_from_slice(&[0xff, 0xff, 192, 0, 2, 7]);
    assert_eq!(SenderAddress(mapped).to_string(), "192.0.2.7");
    assert_eq!(SenderAddress::NONE.to_string(), "::");
}

#[test]
fn an_order_has_no_senders_until_one_of_its_requests_has() {
    assert!(SentBy::default().is_empty());
    assert!(!SentBy { canceled: SenderId(20), ..SentBy::default() }.is_empty());
}

#[test]
fn a_port_registers_a_sender_once_and_describes_it_to_every_shard() {
    let mut log = SenderLog::new(PortId(2));
    (0..2).for_each(|_| log.add_shard());
    let id = log.register(Sender { session: SenderText::new("S"), ..sender("a", 1) });
    assert_eq!(log.register(Sender { session: SenderText::new("S"), ..sender("a", 1) }), id);
    for shard in 0..2 {
        assert_eq!(log.next(shard).map(|(next, _)| next), Some(id));
        log.advance(shard);
        assert!(matches!(log.next(shard), Some((_, SenderPart::Session(_)))));
        log.advance(shard);
        assert!(!log.has_unsent(shard));
    }
    assert!(log.parts.is_empty());
    assert_eq!(id, SenderId(2 << PORT_SHIFT | COUNT_FIRST));
    assert_eq!(log.register(sender("a", 2)), SenderId(id.0 + 1));
    assert!(log.has_unsent(0) && log.has_unsent(1));
}

#[test]
fn beyond_the_bound_a_sender_is_registered_without_its_address() {
    let mut log = SenderLog::new(PortId(2));
    log.begin(3);
    let named = |log: &mut SenderLog, login: &str, address: u32| {
        let mut sender = sender(login, 0);
        sender.address.0[..4].copy_from_slice(&address.to_le_bytes());
        log.register(sender)
    };
    let with_address = SENDERS_PER_PORT_MAX - SENDERS_WITHOUT_ADDRESS_MAX;
    let first = named(&mut log, "a", 1);
    assert_eq!(first.0 & COUNT_MASK, COUNT_FIRST + 3 * SENDERS_PER_PORT_MAX);
    (2..=with_address).for_each(|address| _ = named(&mut log, "a", address));
    let alone = named(&mut log, "a", 1_000_000);
    assert_eq!(named(&mut log, "a", 1_000_001), alone);
    assert_ne!(named(&mut log, "b", 1_000_001), alone);
    (0..SENDERS_PER_PORT_MAX).for_each(|n| _ = named(&mut log, &n.to_string(), 9));
    assert_eq!(named(&mut log, "z", 9), SenderId::UNLISTED);
    assert_eq!(named(&mut log, "a", 1), first);
}
