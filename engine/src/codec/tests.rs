use super::*;
use crate::command::{
    AuditAnchor, BudgetAct, BudgetChange, BudgetKind, CancelFilter, CommandKind, ExecRef, FeedLevel,
    Movement, MovementKind, Quote, RiskLimits, Scope, StrategyPhase, Trade, TradingSession, VenueLevels,
    VenueReport, WatchTarget,
};
use crate::directive::{Directive, DirectiveVersion};
use crate::id::{
    AccountId, AdapterId, Currency, ExchangeId, INT_ID_BYTES, IntId, OrderHandle, Origin, PortId, SecurityId,
    Source, StrategyId, Uuid,
};
use crate::number::{Money, Price, Qty};
use crate::reason::Reason;
use crate::sender::{Protocol, SenderAddress, SenderId, SenderPart, SenderText};
use crate::settings::{QuoteSizes, ShardSettings, VenueSettings};
use crate::terms::{Changes, ExecInst, OrderKind, Side, SpecialTerms, Terms, Tif};
use crate::time::{Day, Timestamp};

fn full_levels(security: SecurityId) -> VenueLevels {
    let mut levels = VenueLevels::new(security, true);
    while !levels.is_full() {
        levels.push(Side::Sell, Price::MAX, Qty::MAX);
    }
    levels
}

/// Returns every kind of command, each as long as possible.
fn longest() -> Vec<Command> {
    let id = IntId::parse("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKL".as_bytes()).unwrap();
    let order = OrderHandle::from_raw(0x0102_0304_0506_0708);
    let (qty, price, at) = (Qty::from_raw(-3), Price::from_raw(i64::MIN), Timestamp(u64::MAX - 1));
    let (security, strategy, account) = (SecurityId(0xfffff), StrategyId(515), AccountId(1_029));
    let usdt = Currency::parse(b"USDT").unwrap();
    let quote = Quote { bid: price, bid_size: qty, ask: Price::from_raw(7), ask_size: Qty::MAX, at };
    let trade = Trade { price, size: Qty::from_raw(9), at };
    let terms = Terms {
        qty: Qty::MAX,
        limit: price,
        stop: Price::from_raw(1),
        tif_date: at,
        security,
        strategy,
        account,
        side: Side::Sell,
        kind: OrderKind::StopLimit,
        tif: Tif::Gtd,
        limit_given: true,
        stop_given: true,
        exchange_order: false,
        reduce_only: true,
        special: false,
    };
    let changes = Changes::default().with_qty(qty).with_limit(price).with_stop(price).with_tif(Tif::Atc);
    let special = SpecialTerms {
        exec_inst: ExecInst::parse(b"0 1 2 3 4 5 6 7 8 9 A B C D E F").unwrap(),
        min_qty: Some(Qty::MAX),
        max_floor: Some(Qty::MIN),
    };
    let limits = RiskLimits {
        max_order_qty: qty,
        max_order_value: Money::MAX,
        price_collar_bp: 1,
        max_open_orders: 2,
        max_position: qty,
        max_orders_per_s: 3,
        duplicate_window_ms: 4,
        credit: Money::MIN,
        credit_currency: usdt,
        trading_enabled: false,
    };
    let movement = Movement {
        kind: MovementKind::Rebalance,
        strategy,
        account,
        security: Some(security),
        qty,
        price,
        commission: Money::MIN,
        currency: Currency::parse(b"CHF").unwrap(),
        uuid: Uuid(u128::MAX - 5),
    };
    let scope = Scope::Security(security);
    let (exec, on, port) = (ExecRef(1 << 100), true, PortId(31));
    let bodies = [
        CommandKind::Submit { id, terms },
        CommandKind::Modify { order, id, changes: changes.with_tif_date(at) },
        CommandKind::Cancel { order, id },
        CommandKind::Close { id, strategy, account, security, qty },
        CommandKind::Subscribe { strategy, security, on },
        CommandKind::Quote { security, quote },
        CommandKind::Trade { security, trade },
        CommandKind::Tick { security, quote, trade },
        CommandKind::Report { order, report: VenueReport::Filled { exec, qty, price } },
        CommandKind::Adapter { adapter: AdapterId(255), connected: true },
        CommandKind::Transaction(movement),
        CommandKind::Expire { security, price },
        CommandKind::ResetPositions,
        CommandKind::ResetCash,
        CommandKind::Limits { scope, limits },
        CommandKind::Restrict { scope, security, on },
        CommandKind::Kill { scope, on },
        CommandKind::Phase { strategy, phase: StrategyPhase::Exit },
        CommandKind::Halt { security, on },
        CommandKind::Budget(BudgetChange {
            scope,
            kind: BudgetKind::Credit,
            act: BudgetAct::Recall(i64::MIN),
        }),
        CommandKind::Session { exchange: ExchangeId(65_535), session: TradingSession::ClosingAuction },
        CommandKind::TradingDay { day: Day(-2) },
        CommandKind::Timer,
        CommandKind::Watch { port, what: WatchTarget::Ticks(security), on },
        CommandKind::Snapshot { port },
        CommandKind::Reference { name: u64::MAX },
        CommandKind::Validate { terms },
        CommandKind::Direct {
            version: DirectiveVersion::MAX,
            directive: Directive::Limits { scope, limits },
        },
        CommandKind::Schedule {
            exchange: ExchangeId(7),
            session: TradingSession::ClosingAuction,
            since: Timestamp(5),
            has_hours: true,
        },
        CommandKind::Expiry { exchange: ExchangeId(7), day: Day(20_000) },
        CommandKind::Sender {
            id: SenderId(u32::MAX),
            part: SenderPart::Login {
                protocol: Protocol::Strategy,
                address: SenderAddress([9; 16]),
                login: SenderText::new(&"x".repeat(64)),
            },
        },
        CommandKind::CancelOrders { id, filter: CancelFilter::default() },
        CommandKind::CancelOrders {
            id,
            filter: CancelFilter {
                strategy: Some(StrategyId(3)),
                security: Some(SecurityId(u32::MAX)),
                side: Some(Side::Sell),
                origin: Some(Origin::Fix),
                source: Some(Source { origin: Origin::Rest, port, session: 9 }),
            },
        },
        CommandKind::AuditAnchor(AuditAnchor { log: u64::MAX, line: 7, hash: [9; 32] }),
        CommandKind::Level {
            security,
            level: FeedLevel { side: Side::Sell, price: Price::MAX, size: Qty::MAX, at: Timestamp::MAX },
        },
        CommandKind::VenueLevels(full_levels(security)),
        CommandKind::VenueBook { security, is_known: true },
        CommandKind::Sender { id: SenderId(77), part: SenderPart::Session(SenderText::new("S")) },
        CommandKind::SpecialTerms(special),
        CommandKind::SpecialTerms(SpecialTerms::default()),
        CommandKind::Submit { id, terms: Terms { special: true, ..terms } },
        CommandKind::Modify { order, id, changes: changes.with_special(true) },
        CommandKind::Modify { order, id, changes: Changes::default().with_special(false) },
    ];
    let source = Source { origin: Origin::Strategy, port, session: 65_535 };
    let plain = bodies.iter().map(|body| Command::new(source, u32::MAX, *body));
    let sent =
        bodies.iter().map(|body| Command { sender: SenderId(0x0200_0010), ..Command::new(source, 1, *body) });
    plain.chain(sent).collect()
}

fn bytes_of(command: &Command) -> Vec<u8> {
    let mut bytes = vec![0xee; COMMAND_BYTES_MAX];
    let len = encode_command(command, &mut bytes);
    bytes.truncate(len);
    bytes
}

#[test]
fn a_command_decodes_to_itself() {
    for command in longest() {
        let bytes = bytes_of(&command);
        assert_eq!(decode_command(&bytes), Ok(command));
        for cut in 0..bytes.len() {
            assert_eq!(
                decode_command(&bytes[..cut]).unwrap_err().problem,
                DecodeProblem::Short,
                "{cut}: {command:?}"
            );
        }
        let longer = [&bytes[..], &[0]].concat();
        let damage = DecodeError { at: bytes.len(), problem: DecodeProblem::Left };
        assert_eq!(decode_command(&longer), Err(damage));
    }
}

/// The length is found without reading each character, so every length is tested.
#[test]
fn ids_of_every_length_decode_to_themselves() {
    for len in 0..=INT_ID_BYTES {
        let id = IntId::parse(&vec![b'~'; len]).unwrap_or_default();
        let mut bytes = Vec::new();
        id.encode(&mut bytes);
        assert_eq!((bytes[0] as usize, bytes.len()), (len, len + 1));
        assert_eq!(decode_whole(&bytes), Ok(id));
    }
}

#[test]
fn a_currency_of_up_to_four_characters_has_the_bytes_that_it_always_had() {
    for (code, bytes) in [
        ("T", &b"T\0\0\0"[..]),
        ("USDT", b"USDT"),
        ("FDUSD", b"\xc6DUSD\0\0\0"),
        ("1000SATS", b"\xb1000SATS"),
    ] {
        let code = Currency::parse(code.as_bytes()).unwrap();
        let mut found = Vec::new();
        code.encode(&mut found);
        assert_eq!((found.as_slice(), decode_whole::<Currency>(bytes)), (bytes, Ok(code)));
    }
}

#[test]
fn invalid_values_are_decode_errors() {
    fn flawed<T: Codec + std::fmt::Debug>(bytes: &[u8]) {
        let damage = decode_whole::<T>(bytes).unwrap_err();
        assert_eq!(damage.problem, DecodeProblem::Value, "{bytes:?}");
    }
    flawed::<bool>(&[2]);
    flawed::<Option<u8>>(&[2, 0]);
    flawed::<Side>(&[2]);
    flawed::<Tif>(&[7]);
    flawed::<Reason>(&[Reason::ALL.len() as u8]);
    flawed::<IntId>(b"\x02a ");
    flawed::<IntId>(&[&[49][..], &[b'x'; 49]].concat());
    flawed::<Currency>(b"usd\0");
    flawed::<Currency>(b"U\0D\0");
    flawed::<Currency>(b"\xd5SD\0\0\0\0\0");
    flawed::<Currency>(b"\xc6DUS\0\0\0\0");
    flawed::<Currency>(b"\xc6DUSD\0X\0");
    flawed::<Currency>(b"\x80DUSD\0\0\0");
    flawed::<Currency>(b"\0USD");
    flawed::<Changes>(&[64]);
    flawed::<Changes>(&[128]);
    flawed::<Terms>(&[&[0; 46][..], &[4]].concat());
    flawed::<crate::time::TimeOfDay>(&86_401u32.to_le_bytes());
    flawed::<String>(b"\x02\0\0\0\xc3\x28");
    // A map has its keys in order, each once.
    flawed::<std::collections::BTreeMap<u8, u8>>(&[2, 0, 0, 0, 5, 0, 5, 0]);
}

#[test]
fn a_count_is_trusted_only_as_far_as_there_are_bytes() {
    let damage = DecodeError { at: 4, problem: DecodeProblem::Short };
    assert_eq!(decode_whole::<Vec<Terms>>(&[0xff, 0xff, 0xff, 0xff, 0, 0]), Err(damage));
    assert_eq!(decode_whole::<Vec<u8>>(&[2, 0, 0, 0, 7, 8]), Ok(vec![7, 8]));
}

#[test]
fn a_list_reserves_no_more_memory_than_there_are_bytes() {
    let bytes = [&1_000u32.to_le_bytes()[..], &[0xff; 1_000]].concat();
    let mut list: Vec<Terms> = Vec::new();
    assert!(decode_into(&mut list, &mut ByteReader::new(&bytes)).is_err());
    assert!(list.capacity() * size_of::<Terms>() <= 1_000, "{}", list.capacity());
}

/// Stored data is read for years. If this fails, either undo the change, or raise [`FORMAT`] and
/// make sure that data stored before is still read.
#[test]
fn the_stored_format_does_not_change() {
    // Commands and reasons are stored by their number: new ones come last, old ones stay.
    const COMMANDS: usize = 25;
    const REASONS: usize = 74;
    let mut bytes: Vec<u8> = longest()[..COMMANDS].iter().flat_map(bytes_of).collect();
    bytes.extend(Reason::ALL[..REASONS].iter().flat_map(|reason| reason.code().bytes()));
    let sum = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum: u64, &byte| (sum ^ byte as u64).wrapping_mul(0x100_0000_01b3));
    assert_eq!((FORMAT, bytes.len(), sum), (1, 1852, 7_914_410_799_653_330_828));
}

/// Journals contain checksums of states, and a replay compares them.
#[test]
fn the_checksum_of_a_state_does_not_change() {
    for (bytes, expected) in [
        (&b""[..], 0xd6e8_feb8_b0b1_032b),
        (b"\0", 0x3ae7_1b09_84fe_33e6),
        (b"0123456789abc", 0x0597_d1f4_7997_a072),
    ] {
        let mut digest = Digest::new();
        digest.put(bytes);
        assert_eq!(digest.sum(), expected, "{bytes:?}");
    }
}

#[test]
fn an_error_names_the_position_and_the_problem() {
    let text = |problem| DecodeError { at: 17, problem }.to_string();
    assert_eq!(text(DecodeProblem::Short), "byte 17: the bytes end before the value does");
    assert_eq!(text(DecodeProblem::Left), "byte 17: the value ends before the bytes do");
    assert_eq!(text(DecodeProblem::Value), "byte 17: the bytes stand for no value");
    assert_eq!(text(DecodeProblem::Contradiction), "byte 17: the values contradict each other");
}

fn settings_bytes(settings: &ShardSettings) -> Vec<u8> {
    let mut bytes = Vec::new();
    settings.save(&mut bytes);
    bytes
}

#[test]
fn settings_with_equal_sizes_have_the_bytes_from_before_there_were_others() {
    let varied = VenueSettings { quote_sizes: QuoteSizes::Varied, ..VenueSettings::default() };
    let venues = [(ExchangeId(2), VenueSettings::default()), (ExchangeId(5), varied.clone())].into();
    let equal = ShardSettings::default();
    assert_eq!(settings_bytes(&equal).len(), 100);
    let each = [
        ShardSettings { venue: varied.clone(), ..equal.clone() },
        ShardSettings { venues, ..equal.clone() },
        ShardSettings { venues: [(ExchangeId(2), varied.clone())].into(), venue: varied, ..equal.clone() },
        equal,
    ];
    for settings in &each {
        assert_eq!(ShardSettings::load(&settings_bytes(settings)).as_ref(), Ok(settings));
    }
    // Settings with equal sizes only, followed by a list of the others that is not the canonical
    // one: empty, with an exchange without settings of its own, with one that comes twice.
    let [_, one, _, equal] = each.map(|settings| settings_bytes(&settings));
    let listed = |bytes: &[u8], exchanges: &[ExchangeId]| {
        let mut bytes = bytes.to_vec();
        false.encode(&mut bytes);
        exchanges.to_vec().encode(&mut bytes);
        ShardSettings::load(&bytes).map_err(|damage| damage.problem)
    };
    let without_list = &one[..one.len() - 7];
    assert!(listed(without_list, &[ExchangeId(5)]).is_ok());
    assert_eq!(listed(without_list, &[ExchangeId(5); 2]), Err(DecodeProblem::Contradiction));
    assert_eq!(listed(&equal, &[]), Err(DecodeProblem::Contradiction));
    assert_eq!(listed(&equal, &[ExchangeId(5)]), Err(DecodeProblem::Contradiction));
}

#[test]
fn a_boxed_value_has_the_bytes_of_the_value() {
    let mut bytes = Vec::new();
    Some(Box::new(0x0102_0304_u32)).encode(&mut bytes);
    let mut plain = Vec::new();
    Some(0x0102_0304_u32).encode(&mut plain);
    assert_eq!(bytes, plain);
    assert_eq!(decode_whole::<Option<Box<u32>>>(&bytes), Ok(Some(Box::new(0x0102_0304))));
}

#[test]
fn a_queue_is_encoded_as_a_list() {
    let queue: std::collections::VecDeque<u8> = [7, 8, 9].into();
    let mut bytes = Vec::new();
    queue.encode(&mut bytes);
    assert_eq!(bytes, [3, 0, 0, 0, 7, 8, 9]);
    assert_eq!(decode_whole(&bytes), Ok(queue));
}

#[test]
fn settings_with_more_orders_than_a_shard_can_number_are_refused() {
    let load = |orders_max| {
        let settings = ShardSettings { orders_max, ..ShardSettings::default() };
        ShardSettings::load(&settings_bytes(&settings)).map_err(|damage| damage.problem)
    };
    assert_eq!(load(crate::order::NIL).err(), Some(DecodeProblem::Value));
    assert_eq!(load(crate::order::NIL - 1).map(|settings| settings.orders_max), Ok(crate::order::NIL - 1));
}
