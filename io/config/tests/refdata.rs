//! The reader of reference data: the shipped set, every kind of fault, and arbitrary bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pitlane_config::diagnostics::FAULTS_MAX;
use pitlane_config::refdata::{
    self, ImportSummary, ImportedVenue, RECORDS_MAX, TEXT_BYTES_MAX, TableSource, VenueInstrument, import,
};
use pitlane_engine::id::Currency;
use pitlane_engine::index::{index_u8, index_usize};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::refdata::{NotionalLimit, OrderKinds, OrderLimits, RefDataTable, SecurityKind};
use pitlane_engine::terms::OrderKind;

const EXCHANGES: &str = "\
id,name,mic,timeZone,open,close,auctions,adapterType
1,Home,XHOM,UTC,00:00,24:00,false,SIM
";
const FAMILIES: &str = "\
id,name,symbolRoot,exchangeId,currency,contractSize,tickSize,lotSize,commission,tradeable,expirable
1,Stocks,,1,USD,1,0.01,1,0.005,true,false
2,Options,,1,USD,100,0.05,1,0.65,true,true
";
const SECURITIES: &str = "\
id,symbol,description,type,securityFamilyId,isin,underlyingId,expiration,strike,optionType,baseCurrency,startPrice,tradeable
1,ACME,\"Acme, Inc.\",STOCK,1,US0378331005,,,,,,10,true
2,ACME C9,Acme 9 Call,OPTION,2,,1,2028-01-21,9,CALL,,1.05,true
";
const ACCOUNTS: &str = "\
id,name,active,adapterType,exchangeIds
1,MAIN,true,SIM,1
";
const STRATEGIES: &str = "\
id,name,autoActivate
1,MOMENTUM,true
";

fn sources() -> [TableSource; 5] {
    let texts = [EXCHANGES, FAMILIES, SECURITIES, ACCOUNTS, STRATEGIES];
    std::array::from_fn(|at| TableSource {
        name: format!("{}.csv", RefDataTable::ALL[at].name()),
        bytes: texts[at].as_bytes().to_vec(),
    })
}

/// Replaces the first `from` in a table by `to` and expects these faults.
fn check(table: RefDataTable, from: &str, to: &str, expected: &[&str]) {
    let mut sources = sources();
    let source = &mut sources[table as usize];
    let text = String::from_utf8(source.bytes.clone()).expect("the sound set is text");
    assert!(text.contains(from), "{from:?} is not in {text}");
    source.bytes = text.replacen(from, to, 1).into_bytes();
    let faults_text =
        refdata::parse(&sources, &[]).err().map(|faults| faults.to_string()).unwrap_or_default();
    assert_eq!(faults_text.lines().collect::<Vec<_>>(), expected, "{to:?}");
}

use RefDataTable::{Accounts, Exchanges, Families, Securities, Strategies};

#[test]
fn the_shipped_set_is_sound_and_large_enough() {
    let data = refdata::shipped().unwrap();
    let count = |kind| data.securities().iter().filter(|row| row.kind == kind).count();
    assert!(count(SecurityKind::Stock) >= 8);
    assert!(count(SecurityKind::Forex) >= 6);
    assert!(count(SecurityKind::Future) >= 4);
    assert!(count(SecurityKind::Option) >= 4);
    assert!(count(SecurityKind::Crypto) >= 3);
    assert_eq!(data.exchanges().len(), 3);
    assert_eq!(data.accounts().iter().map(|row| row.active).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(data.strategies().len(), 4, "three and SERVER");
    assert_eq!(data.strategies()[0].name, "SERVER");
    assert!(data.securities().iter().all(|row| row.tradeable && row.start_price.is_some()));
    let homes: BTreeSet<_> =
        data.exchanges().iter().map(|row| data.default_account(row).unwrap().id).collect();
    assert_eq!(homes.len(), 2);
}

#[test]
fn the_folder_reads_as_what_is_built_in() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/refdata");
    assert_eq!(refdata::read(&folder, &[]), refdata::shipped());
}

#[test]
fn a_folder_without_files_names_each() {
    let faults = refdata::read(Path::new("no/such/folder"), &[]).unwrap_err();
    assert_eq!(faults.reported().len(), 5);
    assert!(faults.to_string().starts_with("no/such/folder/exchanges.csv: cannot be opened: "), "{faults}");
}

#[test]
fn the_valid_set_is_valid_in_other_formats_too() {
    assert!(refdata::parse(&sources(), &[]).is_ok());
    // Columns in another order.
    check(Strategies, "id,name,autoActivate\n1,MOMENTUM,true", "autoActivate,name,id\ntrue,MOMENTUM,1", &[]);
    // A byte order mark, carriage returns, empty lines, no line end at the end.
    check(Strategies, STRATEGIES, "\u{feff}id,name,autoActivate\r\n\r\n1,MOMENTUM,true", &[]);
    // Quoted cells.
    check(Strategies, "1,MOMENTUM", "\"1\",\"MOMENTUM\"", &[]);
    // A table without rows.
    check(Strategies, "1,MOMENTUM,true\n", "", &[]);
}

#[test]
fn the_header_has_each_column_once_and_no_other() {
    check(
        Families,
        "tickSize",
        "ticksize",
        &[
            "families.csv:1: \"ticksize\": there is no such column (did you mean tickSize?)",
            "families.csv:1: tickSize: the column is missing",
        ],
    );
    check(Strategies, ",autoActivate", "", &["strategies.csv:1: autoActivate: the column is missing"]);
    check(Strategies, "id,", "id,id,", &["strategies.csv:1: id: the column stands there twice"]);
    check(Strategies, STRATEGIES, "", &["strategies.csv: it has no header line"]);
    check(Strategies, "id,", "\"id\"x,", &["strategies.csv:1: text after a closing quote"]);
}

#[test]
fn a_record_has_as_many_cells_as_the_header() {
    check(Strategies, ",true", "", &["strategies.csv:2: 2 cells where the header has 3"]);
    check(Strategies, ",true", ",true,", &["strategies.csv:2: 4 cells where the header has 3"]);
}

#[test]
fn quotes_are_closed_and_text_is_utf_8() {
    check(
        Strategies,
        "MOMENTUM",
        "MO\"MENTUM",
        &["strategies.csv:2: a quote within a cell that does not begin with one"],
    );
    check(Strategies, "MOMENTUM", "\"MOMENTUM", &["strategies.csv:2: a quote is opened and never closed"]);
    let mut sources = sources();
    sources[4].bytes.extend(b"2,\xff,true\n");
    assert_eq!(refdata::parse(&sources, &[]).unwrap_err().to_string(), "strategies.csv:3: it is not UTF-8");
}

#[test]
fn a_number_is_a_number() {
    check(Families, "0.01,", "0.0.1,", &["families.csv:2: tickSize: \"0.0.1\" is not a decimal"]);
    check(Families, "0.01,", ",", &["families.csv:2: tickSize: it is empty where a decimal is wanted"]);
    check(
        Families,
        "0.01,",
        "0.000000001,",
        &["families.csv:2: tickSize: \"0.000000001\" has more than 8 decimals"],
    );
    check(
        Families,
        "0.01,",
        "92233720369,",
        &["families.csv:2: tickSize: \"92233720369\" is out of range for a decimal"],
    );
    check(
        Exchanges,
        "\n1,",
        "\n65536,",
        &["exchanges.csv:2: id: \"65536\" is out of range for a whole number"],
    );
    check(
        Securities,
        "\n1,",
        "\n1048576,",
        &["securities.csv:2: id: \"1048576\" is out of range for a whole number"],
    );
    check(Accounts, "\n1,", "\n-1,", &["accounts.csv:2: id: \"-1\" is not a whole number"]);
    check(Accounts, "SIM,1", "SIM,1 x", &["accounts.csv:2: exchangeIds: \"x\" is not the id of an exchange"]);
}

#[test]
fn a_keyword_is_one_of_its_list() {
    check(
        Securities,
        "STOCK",
        "STOK",
        &[
            "securities.csv:2: type: \"STOK\" is not one of STOCK, FUTURE, OPTION, FOREX, INDEX, COMMODITY, BOND, \
         FUND, CRYPTO (did you mean STOCK?)",
        ],
    );
    check(
        Securities,
        "CALL",
        "call",
        &["securities.csv:3: optionType: \"call\" is not one of CALL, PUT (did you mean CALL?)"],
    );
    check(Strategies, "true", "yes", &["strategies.csv:2: autoActivate: \"yes\" is not one of true, false"]);
    check(
        Accounts,
        "SIM",
        "CIM",
        &["accounts.csv:2: adapterType: \"CIM\" is not one of SIM (did you mean SIM?)"],
    );
}

#[test]
fn dates_hours_codes_and_zones_are_real() {
    check(
        Securities,
        "2028-01-21",
        "2028-02-30",
        &["securities.csv:3: expiration: \"2028-02-30\" is out of range for a date (YYYY-MM-DD)"],
    );
    check(
        Securities,
        "2028-01-21",
        "soon",
        &["securities.csv:3: expiration: \"soon\" is not a date (YYYY-MM-DD)"],
    );
    check(
        Exchanges,
        "24:00",
        "24:01",
        &["exchanges.csv:2: close: \"24:01\" is out of range for a time of day (HH:MM)"],
    );
    check(
        Exchanges,
        "24:00",
        "00:00",
        &["exchanges.csv:2: close: it opens and closes at once; the whole day is 00:00 to 24:00"],
    );
    check(
        Exchanges,
        "XHOM",
        "xhom",
        &["exchanges.csv:2: mic: \"xhom\" is not a market identifier of four capitals or digits"],
    );
    check(
        Exchanges,
        "UTC",
        "Zurich",
        &["exchanges.csv:2: timeZone: \"Zurich\" is not UTC or a zone such as Europe/Zurich"],
    );
    check(
        Securities,
        "US0378331005",
        "US0378331006",
        &["securities.csv:2: isin: \"US0378331006\" is not an ISIN, or its check digit is wrong"],
    );
    check(
        Families,
        "USD",
        "dollars",
        &["families.csv:2: currency: \"dollars\" is not a currency of one to eight capitals or digits"],
    );
}

#[test]
fn a_text_is_present_clean_and_short() {
    check(Accounts, "MAIN", "", &["accounts.csv:2: name: it is empty"]);
    check(Accounts, "MAIN", " MAIN", &["accounts.csv:2: name: \" MAIN\" has blanks around it"]);
    check(
        Accounts,
        "MAIN",
        "\"MA\nIN\"",
        &["accounts.csv:2: name: \"MA\\nIN\" has a control character in it"],
    );
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    check(Accounts, "MAIN", &long, &["accounts.csv:2: name: it is longer than 256 bytes"]);
}

#[test]
fn faults_between_rows_have_their_line_too() {
    // Below an empty line, so that the numbers of rows and lines differ.
    check(
        Families,
        "\n2,Options",
        "\n\n2,Stocks",
        &["families.csv:4: name: Stocks is already used in an earlier row"],
    );
    check(Securities, "STOCK,1", "STOCK,7", &["securities.csv:2: securityFamilyId: there is no family 7"]);
    check(Securities, "9,CALL", ",CALL", &["securities.csv:3: strike: an option has a strike"]);
    check(
        Securities,
        "1.05",
        "1.06",
        &["securities.csv:3: startPrice: 1.06 is not a multiple of the tick size 0.05"],
    );
    check(Accounts, "SIM,1", "SIM,4", &["accounts.csv:2: exchangeIds: there is no exchange 4"]);
    check(
        Strategies,
        "MOMENTUM",
        "MO.MENTUM",
        &["strategies.csv:2: name: \"MO.MENTUM\" has a dot, star, angle or space in it"],
    );
}

#[test]
fn all_faults_are_reported_up_to_a_bound() {
    let mut sources = sources();
    sources[1].bytes = FAMILIES.replace("0.01", "a").replace("0.65", "b").into_bytes();
    sources[4].bytes = STRATEGIES.replace("true", "c").into_bytes();
    let faults = refdata::parse(&sources, &[]).unwrap_err();
    let places: Vec<_> = faults.reported().iter().map(|fault| (fault.line, fault.column.as_str())).collect();
    assert_eq!(places, [(2, "tickSize"), (3, "commission"), (2, "autoActivate")]);

    sources[4].bytes.extend("x,y,z\n".repeat(1_000).into_bytes());
    let faults = refdata::parse(&sources, &[]).unwrap_err();
    assert_eq!(faults.reported().len(), FAULTS_MAX);
    assert!(faults.to_string().contains("\nand "), "{faults}");
}

/// Returns the families with the columns of limits, the second row with these cells.
fn limited_families(cells: &str) -> String {
    let columns = "minNotional,applyMinToMarket,maxNotional,applyMaxToMarket,orderTypes";
    let lines: Vec<&str> = FAMILIES.lines().collect();
    format!("{},{columns}\n{},,,,,\n{},{cells}\n", lines[0], lines[1], lines[2])
}

#[test]
fn limits_of_a_venue_are_optional_and_their_faults_have_a_place() {
    let mut sources = sources();
    sources[Families as usize].bytes = limited_families("5,,9000000.5,false,STOP_LIMIT LIMIT").into_bytes();
    let data = refdata::parse(&sources, &[]).expect("valid limits");
    assert_eq!(data.families()[0].limits, OrderLimits::NONE);
    let OrderLimits { min_notional, max_notional, kinds } = data.families()[1].limits;
    let bound = |text: &str, to_market| {
        Some(NotionalLimit { amount: Money::parse(text.as_bytes()).unwrap(), to_market })
    };
    assert_eq!((min_notional, max_notional), (bound("5", true), bound("9000000.5", false)));
    assert_eq!(kinds.iter().collect::<Vec<_>>(), [OrderKind::Limit, OrderKind::StopLimit]);
    // Some of the columns are enough.
    let some = FAMILIES.replace("expirable\n", "expirable,minNotional\n").replace("e\n", "e,\n");
    let some = some.replace("minNotional,\n", "minNotional\n");
    check(Families, FAMILIES, &some, &[]);
    for (cells, expected) in [
        (",,,,MARKET LIMIT STOP STOP_LIMIT", &[][..]),
        ("many,,,,", &["families.csv:3: minNotional: \"many\" is not a decimal"]),
        ("0,,,,", &["families.csv:3: minNotional: 0 is not above zero"]),
        (",,-1,,", &["families.csv:3: maxNotional: -1 is not above zero"]),
        ("2,,1,,", &["families.csv:3: maxNotional: 1 is below minNotional 2"]),
        ("0.000000001,,,,", &["families.csv:3: minNotional: \"0.000000001\" has more than 8 decimals"]),
        (",true,,,", &["families.csv:3: applyMinToMarket: there is no minNotional that could apply"]),
        ("1,,,false,", &["families.csv:3: applyMaxToMarket: there is no maxNotional that could apply"]),
        ("1,no,,,", &["families.csv:3: applyMinToMarket: \"no\" is not one of true, false"]),
        (
            ",,,,LIMIT MARKT",
            &[
                "families.csv:3: orderTypes: \"MARKT\" is not one of MARKET, LIMIT, STOP, STOP_LIMIT (did you mean MARKET?)",
            ],
        ),
        (",,,,LIMIT LIMIT", &["families.csv:3: orderTypes: LIMIT is named twice"]),
    ] {
        check(Families, FAMILIES, &limited_families(cells), expected);
    }
}

#[test]
fn a_file_has_no_more_lines_than_there_can_be_rows() {
    let mut sources = sources();
    sources[4].bytes.extend("1,A,true\n".repeat(RECORDS_MAX).into_bytes());
    let faults = refdata::parse(&sources, &[]).unwrap_err();
    assert_eq!(faults.to_string(), "strategies.csv: it has more than 1048577 lines");
}

#[test]
fn any_bytes_are_read_or_refused() {
    let mut random = Random(7);
    for round in 0..3_000 {
        let mut sources = sources();
        let source = &mut sources[round % 5];
        match round % 3 {
            0 => source.bytes = (0..random.below(300)).map(|_| random.byte()).collect(),
            _ => spoil(&mut source.bytes, &mut random),
        }
        let _ = refdata::parse(&sources, &[]).map_err(|faults| faults.to_string());
    }
}

/// Changes, removes or doubles a few bytes, mostly into ones with a meaning.
fn spoil(bytes: &mut Vec<u8>, random: &mut Random) {
    const TELLING: &[u8] = b",\"\r\n-.0159:*> aZ\xef\xbb\xbf\xff\0";
    for _ in 0..=random.below(4) {
        if bytes.is_empty() {
            return;
        }
        let at = random.index(bytes.len());
        match random.below(4) {
            0 => _ = bytes.remove(at),
            1 => bytes.insert(at, bytes[at]),
            2 => bytes.truncate(at + 1),
            _ => bytes[at] = TELLING[random.index(TELLING.len())],
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) % bound
    }

    fn index(&mut self, len: usize) -> usize {
        index_usize(self.below(len as u64))
    }

    fn byte(&mut self) -> u8 {
        index_u8(self.index(256))
    }
}

const VENUE: ImportedVenue<'_> = ImportedVenue { exchange: "Coins, Inc.", mic: "XXXX", adapter: "COINS" };

fn instrument(symbol: &str, currency: &str, tick: &str, lot: &str) -> VenueInstrument {
    VenueInstrument {
        symbol: symbol.to_string(),
        description: format!("{symbol}, imported"),
        kind: SecurityKind::Crypto,
        base: Currency::parse(&symbol.as_bytes()[..3]).expect("a currency"),
        currency: Currency::parse(currency.as_bytes()).expect("a currency"),
        tick_size: Price::parse(tick.as_bytes()).expect("a price"),
        lot_size: Qty::parse(lot.as_bytes()).expect("a quantity"),
        limits: OrderLimits::NONE,
    }
}

/// Returns an instrument whose venue limits orders.
fn limited(symbol: &str, min: &str, kinds: &[OrderKind]) -> VenueInstrument {
    let amount = Money::parse(min.as_bytes()).expect("an amount");
    let limits = OrderLimits {
        min_notional: Some(NotionalLimit { amount, to_market: false }),
        kinds: OrderKinds::of(kinds.iter().copied()).expect("some types"),
        ..OrderLimits::NONE
    };
    VenueInstrument { limits, ..instrument(symbol, "USDT", "0.01", "0.00001") }
}

fn import_folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("import").join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn texts(folder: &Path) -> Vec<String> {
    let path = |table: RefDataTable| folder.join(format!("{}.csv", table.name()));
    RefDataTable::ALL.iter().map(|table| fs::read_to_string(path(*table)).expect("a file")).collect()
}

#[test]
fn an_import_makes_a_folder_that_a_start_accepts() {
    let folder = import_folder("fresh");
    let first = [
        instrument("BTCUSDT", "USDT", "0.01", "0.00001"),
        instrument("ETHUSDT", "USDT", "0.01", "0.0001"),
        instrument("BNBUSDT", "USDT", "0.01", "0.0001"),
    ];
    let summary = import(&folder, &VENUE, &first).expect("an import");
    assert_eq!(summary, ImportSummary { families: 2, securities: 3, ..ImportSummary::default() });
    let data = refdata::read(&folder, &["COINS"]).expect("sound files");
    let bitcoin = data.securities().iter().find(|row| row.symbol == "BTCUSDT").expect("it is there");
    let family = data.family_of(bitcoin);
    assert_eq!(
        (family.tick_size.to_string(), family.lot_size.to_string()),
        ("0.01".into(), "0.00001".into())
    );
    assert_eq!((family.commission.to_string(), family.currency.as_str()), ("0".into(), "USDT"));
    assert_eq!((bitcoin.description.as_str(), bitcoin.kind), ("BTCUSDT, imported", SecurityKind::Crypto));
    let account = &data.accounts()[0];
    assert_eq!(
        (account.adapter_type.as_str(), account.exchanges.as_slice()),
        ("COINS", &[family.exchange][..])
    );
}

#[test]
fn ids_and_rows_stay_when_an_import_is_repeated() {
    let folder = import_folder("again");
    let bitcoin = instrument("BTCUSDT", "USDT", "0.01", "0.00001");
    import(&folder, &VENUE, std::slice::from_ref(&bitcoin)).expect("an import");
    let before = texts(&folder);
    import(&folder, &VENUE, std::slice::from_ref(&bitcoin)).expect("the same again");
    assert_eq!(texts(&folder), before, "nothing is new");
    // A new symbol comes first at the venue, and the terms of the known one have changed.
    let ether = instrument("ETHUSDT", "USDT", "0.01", "0.00001");
    let changed = instrument("BTCUSDT", "USDT", "0.1", "0.00001");
    let summary = import(&folder, &VENUE, &[ether, changed]).expect("more of it");
    assert_eq!((summary.families, summary.securities, summary.kept), (0, 1, 1));
    assert_eq!(summary.changed_terms, ["BTCUSDT"]);
    for (after, before) in texts(&folder).iter().zip(&before) {
        assert!(after.starts_with(before.as_str()), "{before}{after}");
    }
    assert!(texts(&folder)[2].ends_with("\n2,ETHUSDT,\"ETHUSDT, imported\",CRYPTO,1,,,,,,ETH,,true\n"));
}

#[test]
fn an_import_writes_the_limits_of_the_venue() {
    let folder = import_folder("limits");
    let all = OrderKind::ALL;
    let first = [
        instrument("BTCUSDT", "USDT", "0.01", "0.00001"),
        limited("ETHUSDT", "5", &all),
        limited("BNBUSDT", "5", &all),
        limited("XRPUSDT", "5", &all[..2]),
    ];
    let summary = import(&folder, &VENUE, &first).expect("an import");
    assert_eq!((summary.families, summary.securities), (3, 4));
    let check = |folder: &Path| {
        let data = refdata::read(folder, &["COINS"]).expect("sound files");
        for wanted in &first {
            let row = data.securities().iter().find(|row| row.symbol == wanted.symbol).expect("it is there");
            assert_eq!(data.family_of(row).limits, wanted.limits);
        }
    };
    check(&folder);
    let changed = [first[0].clone(), limited("ETHUSDT", "6", &all)];
    let summary = import(&folder, &VENUE, &changed).expect("the same again");
    assert_eq!(
        (summary.kept, &summary.changed_terms, &summary.changed_limits),
        (2, &vec![], &vec!["ETHUSDT".to_string()])
    );
    // A file of an earlier version has no such columns. Its rows stay.
    let old = import_folder("limits-later");
    import(&old, &VENUE, &first[..1]).expect("an import");
    let families = fs::read_to_string(old.join("families.csv")).expect("a file");
    let families: String = families
        .lines()
        .map(|line| line.rsplitn(6, ',').last().unwrap_or_default().to_string() + "\r\n")
        .collect();
    assert!(families.ends_with(",true,false\r\n") && !families.contains("Notional"), "{families}");
    fs::write(old.join("families.csv"), &families).expect("a file");
    import(&old, &VENUE, &first).expect("an import");
    check(&old);
    let added = fs::read_to_string(old.join("families.csv")).expect("a file");
    let kept = families.lines().nth(1).expect("a row");
    assert_eq!(added.lines().nth(1), Some(format!("{kept},,,,,").as_str()));
}

#[test]
fn an_import_adds_to_files_of_any_column_order_and_changes_no_other_exchange() {
    let folder = import_folder("beside");
    fs::create_dir_all(&folder).expect("a folder");
    for source in sources() {
        fs::write(folder.join(&source.name), &source.bytes).expect("a file");
    }
    // Another adapter, and no line end behind the last row.
    let exchanges = "adapterType,id,name,mic,timeZone,open,close,auctions\nSIM,1,Home,XHOM,UTC,00:00,24:00,false\n\
                     EUREKA,7,Away,XAWY,UTC,00:00,24:00,false";
    fs::write(folder.join("exchanges.csv"), exchanges).expect("a file");
    let summary = import(&folder, &VENUE, &[instrument("BTCUSDT", "USDT", "0.01", "1")]).expect("an import");
    assert_eq!((summary.families, summary.securities), (1, 1));
    let added = format!("{exchanges}\nCOINS,8,\"Coins, Inc.\",XXXX,UTC,00:00,24:00,false\n");
    assert_eq!(texts(&folder)[0], added);
    let data = refdata::read(&folder, &["EUREKA", "COINS"]).expect("sound files");
    assert_eq!(data.securities().iter().map(|row| row.id.0).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn an_import_that_cannot_be_sound_writes_nothing() {
    let folder = import_folder("broken");
    fs::create_dir_all(&folder).expect("a folder");
    let mut broken = sources();
    broken[1].bytes.extend_from_slice(b"x,y\n");
    for source in &broken {
        fs::write(folder.join(&source.name), &source.bytes).expect("a file");
    }
    let coins = [instrument("BTCUSDT", "USDT", "0.01", "1")];
    let faults = import(&folder, &VENUE, &coins).expect_err("a row with two cells").to_string();
    assert!(faults.contains("families.csv:4: 2 cells where the header has 11"), "{faults}");
    for source in sources() {
        fs::write(folder.join(&source.name), &source.bytes).expect("a file");
    }
    let before = texts(&folder);
    let taken = ImportedVenue { exchange: "Home", ..VENUE };
    let faults = import(&folder, &taken, &coins).expect_err("another adapter's").to_string();
    assert!(faults.contains("\"Home\" is reached by SIM, not by COINS"), "{faults}");
    let wrong = ImportedVenue { mic: "coins", ..VENUE };
    let faults = import(&folder, &wrong, &coins).expect_err("no market identifier").to_string();
    assert!(faults.contains("exchanges.csv:3: mic"), "{faults}");
    assert_eq!(texts(&folder), before);
    // More adapters than any settings have.
    let row = |at: usize| format!("{},Exchange {at},XHOM,UTC,00:00,24:00,false,ADAPTER{at}\n", at + 2);
    let exchanges = EXCHANGES.to_string() + &(0..65).map(row).collect::<String>();
    fs::write(folder.join("exchanges.csv"), exchanges).expect("a file");
    let faults = import(&folder, &VENUE, &coins).expect_err("too many adapters").to_string();
    assert!(faults.contains("exchanges.csv:67: adapterType: \"ADAPTER64\" is not one of"), "{faults}");
}
