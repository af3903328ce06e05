//! Settings that are refused, or cause a warning, because of each other.

use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::KnownStrategies;
use pitlane_strategy::Strategy;
use pitlane_strategy::parameters::{BadParameter, Parameters};

use super::*;

fn refused(words: &[&str]) -> String {
    load(&options(words)).expect_err("it does not fit together").to_string()
}

fn warned(words: &[&str]) -> Vec<String> {
    load(&options(words)).unwrap_or_else(|faults| panic!("{faults}")).warnings
}

/// Returns a non-empty file, for settings that need an existing file.
pub(super) fn present() -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("present");
    fs::write(&path, "something").expect("a file for the test");
    path.display().to_string()
}

#[test]
fn an_address_other_than_loopback_needs_users_and_tls() {
    let text = refused(&["http.listen=0.0.0.0:9090"]);
    assert_eq!(
        text,
        "--set: http.listen: 0.0.0.0:9090 is not loopback: set auth.users_file or auth.tokens_file\n\
         --set: http.listen: 0.0.0.0:9090 is not loopback and has no TLS: set auth.allow_plaintext to permit it"
    );
    let users = format!("auth.users_file={}", present());
    assert_eq!(refused(&["http.listen=0.0.0.0:9090", &users]).lines().count(), 1);
    assert_eq!(refused(&["http.listen=0.0.0.0:9090", "auth.allow_plaintext=true"]).lines().count(), 1);
    assert_eq!(warned(&["http.listen=0.0.0.0:9090", "auth.allow_plaintext=true", &users]), [""; 0]);
    assert_eq!(warned(&["https.listen=0.0.0.0:9443", &users]), [""; 0]);
    assert_eq!(refused(&["https.listen=[::]:9443"]).lines().count(), 1);
    assert_eq!(warned(&["https.listen=[::1]:9443"]), [""; 0]);
}

#[test]
fn the_addresses_decide_whether_login_is_required() {
    let users = format!("auth.users_file={}", present());
    let required = |words: &[&str]| load(&options(words)).expect("it is sound").config.login_required();
    assert!(!required(&[]));
    assert!(required(&["https.listen=10.0.0.1:9443", &users]));
    assert!(required(&["auth.mode=required", &users]));
    assert!(refused(&["auth.mode=required"]).contains("no user can log in"));
    assert!(!required(&["auth.mode=off"]));
    // Without login every listener must be on loopback, whatever else is set.
    let text = refused(&["auth.mode=off", "auth.allow_plaintext=true", "http.listen=10.0.0.1:9090", &users]);
    assert_eq!(
        text,
        "--set: http.listen: 10.0.0.1:9090 is not loopback: every client that reaches it can trade, because auth.mode is off"
    );
}

#[test]
fn two_listeners_cannot_share_a_port() {
    assert!(refused(&["stomp.listen=127.0.0.1:9090"]).contains("127.0.0.1:9090 is taken by http.listen"));
    assert_eq!(warned(&["stomp.listen=127.0.0.1:0", "http.listen=127.0.0.1:0"]), [""; 0]);
    assert_eq!(warned(&["stomp.listen=127.0.0.2:9090"]), [""; 0]);
}

#[test]
fn the_strategy_link_is_a_listener_in_the_mode_distributed_without_a_broker() {
    const MODE: &str = "service.mode=distributed";
    let with = |words: &[&'static str]| [&[MODE], words].concat();
    let listeners = |words: &[&str]| {
        let config = load(&options(words)).expect("it is sound").config;
        config.listeners().into_iter().find(|(key, ..)| *key == "strategies.listen").map(|found| found.2)
    };
    assert_eq!(listeners(&[]), None);
    assert_eq!(listeners(&with(&["strategies.transport=nats"])), None);
    assert_eq!(listeners(&with(&[])), Some(false));
    assert_eq!(listeners(&with(&["strategies.tls=true"])), Some(true));
    assert!(refused(&with(&["strategies.listen=127.0.0.1:9090"])).contains("is taken by http.listen"));
    // Beyond loopback it has TLS, and clients must log in.
    let tokens = format!("auth.tokens_file={}", present());
    let open = "strategies.listen=0.0.0.0:9882";
    assert_eq!(refused(&with(&[open])).lines().count(), 1);
    assert_eq!(warned(&[MODE, open, &tokens]), [""; 0]);
    assert!(load(&options(&[MODE, open, &tokens])).expect("it is sound").config.login_required());
    let nowhere = with(&["strategies.listen=", "strategies.unix_socket=false"]);
    assert!(refused(&nowhere).contains("no strategy can connect"));
    assert_eq!(warned(&with(&["strategies.listen="])), [""; 0]);
}

#[test]
fn a_process_needs_to_know_whom_it_trusts() {
    let with = |words: &[&str]| {
        ["service.mode=distributed"].iter().chain(words).map(|word| word.to_string()).collect::<Vec<_>>()
    };
    let refused = |words: &[&str]| {
        let words = with(words);
        refused(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let warned = |words: &[&str]| {
        let words = with(words);
        warned(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let tls = "strategies.connect=pitlanes://desk:9882";
    assert!(refused(&[tls]).contains("strategies.ca: pitlanes:// needs the certificates"));
    let ca = format!("strategies.ca={}", present());
    assert_eq!(warned(&[tls, &ca]), [""; 0]);
    let cert = format!("strategies.cert={}", present());
    assert!(refused(&[&cert]).contains("strategies.cert and strategies.key belong together"));
    assert!(refused(&["strategies.ca=/nowhere"]).contains("strategies.ca: /nowhere"));
    let plain = warned(&["strategies.connect=pitlane://desk:9882"]);
    assert!(plain.len() == 1 && plain[0].contains("without TLS"), "{plain:?}");
    assert!(refused(&["strategies.connect=desk:9882"]).contains("it must be pitlane://HOST:PORT"));
    assert_eq!(warned(&["strategies.connect=unix:data/strategies.sock"]), [""; 0]);
}

#[test]
fn cores_must_exist_and_suffice() {
    let dedicated = ["topology.layout=dedicated", "topology.shards=2"];
    let with = |cores| [dedicated[0], dedicated[1], cores];
    assert_eq!(warned(&with("topology.shard_cores=2,3")), [""; 0]);
    assert!(
        refused(&with("topology.shard_cores=2,9")).contains("there is no core 9; this machine has 0 to 7")
    );
    assert!(
        refused(&with("topology.shard_cores=2")).contains("it names 1 cores; the dedicated layout has 2")
    );
    assert!(refused(&["topology.gateway_cores=2"]).contains("the shared layout has 0 such threads"));
    assert_eq!(warned(&with("topology.shard_cores=2,2")).len(), 1);
}

#[test]
fn more_spinning_threads_than_cores_cause_a_warning() {
    let spinning = |shards: &str| {
        warned(&["topology.layout=dedicated", "topology.idle=spin", &format!("topology.shards={shards}")])
    };
    assert_eq!(spinning("7"), [""; 0]);
    assert_eq!(spinning("8"), ["topology.idle: 9 threads spin on 8 cores and hinder each other"]);
    // With isolated cores a process may use few cores by itself, and pins its threads to the
    // others.
    let isolated = Machine { cores: (0..6).collect(), cores_usable: 2 };
    let pinned = Sources { files: vec!["pinned".to_string()], ..Sources::default() };
    assert_eq!(pitlane_config::load(&pinned, &isolated).expect("it is sound").warnings, [""; 0]);
}

#[test]
fn a_real_venue_selects_level_disk() {
    let adapter = "adapter=[{ name = \"V\", type = \"FIX\", SenderCompID = \"A\", TargetCompID = \"B\", \
                   SocketConnectHost = \"h\", SocketConnectPort = 1, HeartBtInt = 30, ReconnectInterval = 5, \
                   StartTime = \"00:00:00\", EndTime = \"00:00:00\" }]";
    let level = |words: &[&str]| {
        let Loaded { config, params, .. } = load(&options(words)).expect("it is sound");
        let shown = params.get("journal.level.effective").map(|param| param.text.clone());
        assert_eq!(shown, Some(config.durability().to_string()));
        config.durability()
    };
    assert_eq!(level(&[]), Durability::Os);
    assert_eq!(level(&[adapter]), Durability::Disk);
    assert_eq!(level(&[adapter, "journal.level=os"]), Durability::Os);
    assert_eq!(warned(&[adapter, "journal.level=os"]).len(), 1);
    assert_eq!(warned(&["journal.level=none"]).len(), 1);
    assert!(refused(&["adapter=[{ name = \"V\" }]"]).contains("adapter.0.SocketConnectHost: it is missing"));
    assert!(refused(&[&adapter.replace("\"V\"", "\"SIM\"")]).contains("SIM is the simulated venue"));
    let with = |more: &str| adapter.replace(" }]", &format!(", {more} }}]"));
    assert!(
        refused(&[&adapter.replace("\"V\"", "\"a/b\"")])
            .contains("adapter.0.name: it must be 1 to 32 letters")
    );
    assert!(
        refused(&[&with("username = \"me\"")]).contains("adapter.0.username: username and password belong")
    );
    assert!(refused(&[&with("tls = true")]).contains("adapter.0.tls_ca: tls needs the certificates"));
    assert!(refused(&[&with("tls_ca = \"/nowhere/ca\"")]).contains("/nowhere/ca: No such file"));
    assert!(refused(&[&with("HeartBtIn = 3")]).contains("did you mean HeartBtInt?"));
    let plain = with("username = \"me\", password = \"sesame\"");
    assert!(warned(&[&plain]).iter().any(|text| text.contains("adapter.0.password")));
}

#[test]
fn a_dialect_of_a_venue_is_checked() {
    let with = |more: &str| {
        format!(
            "adapter=[{{ name = \"V\", SenderCompID = \"US\", TargetCompID = \"V\", SocketConnectHost = \"h\", \
             SocketConnectPort = 1{more} }}]"
        )
    };
    let is_accepted = |table: &str| warned(&[table]).iter().all(|text| !text.contains("adapter"));
    let signed = ", username = \"k\", secret = \"s\", logon_signed_tags = [35, 49, 56, 34, 52]";
    assert!(is_accepted(&with(signed)));
    assert!(is_accepted(
        &with(", logon_fields = [\"25035=2\"], order_fields = [\"7=7\"], omit_tags = [21]")
            .replace("7=7", "7000=7")
    ));
    let many: Vec<String> = (0..17).map(|at| format!("\"{}=x\"", 5_000 + at)).collect();
    let many = format!(", order_fields = [{}]", many.join(", "));
    for (more, problem) in [
        (", username = \"k\"", "adapter.0.username: username and password belong together"),
        (", password = \"p\"", "adapter.0.username: a password needs a username"),
        (", logon_signed_tags = [35]", "adapter.0.secret: either secret or secret_file"),
        (
            ", secret = \"s\", logon_signed_tags = [35, 11]",
            "adapter.0.logon_signed_tags: 11 is not one of 34",
        ),
        (", omit_tags = [40]", "adapter.0.omit_tags: 40 is not one of 18, 21"),
        (", logon_fields = [\"554=x\"]", "adapter.0.logon_fields: the service writes tag 554 itself"),
        (", order_fields = [\"x\"]", "adapter.0.order_fields: \"x\" is not TAG=VALUE"),
        (many.as_str(), "adapter.0.order_fields: it may have 16 fields, not 17"),
        (", secret_encoding = \"hex\"", "adapter.0.secret_encoding: it must be one of text, base64"),
    ] {
        let text = refused(&[&with(more)]);
        assert!(text.contains(problem), "{problem}: {text}");
    }
}

#[test]
fn binance_needs_a_key_and_real_money_a_confirmation() {
    let with = |more: &str| format!("adapter=[{{ name = \"V\", type = \"BINANCE-SPOT\"{more} }}]");
    let keys = ", api_key = \"k\", secret = \"s\"";
    let is_accepted = |table: &str| warned(&[table]).iter().all(|text| !text.contains("adapter"));
    assert!(is_accepted(&with(keys)));
    let text = refused(&[&with("")]);
    assert!(text.contains("adapter.0.api_key: it is needed"), "{text}");
    assert!(text.contains("adapter.0.secret: either secret or secret_file"), "{text}");
    let production = format!("{keys}, environment = \"production\"");
    let text = refused(&[&with(&production)]);
    assert!(text.contains("adapter.0.environment: production trades with real money"), "{text}");
    assert!(is_accepted(&with(&format!("{production}, i_understand = true"))));
    let live = ", url = \"wss://ws-api.binance.com:443/ws-api/v3\"";
    assert!(is_accepted(&with(&format!("{production}, i_understand = true{live}"))));
    for host in ["ws-api.testnet.binance.vision", "127.0.0.1:1"] {
        assert!(is_accepted(&with(&format!("{keys}, url = \"wss://{host}/x\""))), "{host}");
    }
    for (more, problem) in [
        (live, "adapter.0.url: it is not an address of the testnet"),
        (
            ", url = \"wss://mytestnet.binance.vision/x\"",
            "adapter.0.url: it is not an address of the testnet",
        ),
        (", url = \"ws://example.com/x\"", "adapter.0.url: ws:// is allowed for loopback"),
        (", url = \"example.com\"", "adapter.0.url: it must be wss://"),
        (", stream_url = \"ws://example.com/x\"", "adapter.0.stream_url: ws:// is allowed for loopback"),
        (", environment = \"test\"", "adapter.0.environment: it must be one of"),
        (", receive_window_ms = 60001", "adapter.0.receive_window_ms"),
        (", SenderCompID = \"A\"", "adapter.0.SenderCompID"),
    ] {
        let text = refused(&[&with(&format!("{keys}{more}"))]);
        assert!(text.contains(problem), "{more}: {text}");
    }
}

#[test]
fn named_files_must_exist() {
    assert!(refused(&["tls.client_ca=/nowhere/ca"]).contains("/nowhere/ca: No such file"));
    let cert = format!("tls.cert={}", present());
    assert!(refused(&[&cert]).contains("tls.cert: it needs tls.key"));
    assert_eq!(warned(&[&cert, &format!("tls.key={}", present())]), [""; 0]);
}

#[test]
fn fix_sessions_have_distinct_comp_id_pairs() {
    let two = "fix.session=[{ SenderCompID = \"A\", TargetCompID = \"B\" }, { SenderCompID = \"A\", TargetCompID = \"B\" }]";
    assert!(refused(&[two]).contains("fix.session.1.TargetCompID: fix.session.0 has the same pair"));
    let with = |more: &str| format!("fix.session=[{{ SenderCompID = \"A\", TargetCompID = \"B\", {more} }}]");
    assert!(refused(&[&with("SocketAcceptPort = 1")]).contains("it is not the port of fix.listen"));
    assert_eq!(warned(&[&with("SocketAcceptPort = 9880")]), [""; 0]);
    assert!(refused(&[&with("username = \"u\"")]).contains("belong together"));
    assert!(refused(&["fix.session=[{ SenderCompID = \"A\" }]"]).contains("TargetCompID: it is missing"));
}

#[test]
fn a_drop_copy_session_has_one_client_and_never_forgets() {
    let with = |client: &str, more: &str| {
        format!(
            "fix.session=[{{ SenderCompID = \"A\", TargetCompID = \"B*\" }}, \
             {{ SenderCompID = \"A\", TargetCompID = \"{client}\", {more} }}]"
        )
    };
    let copy = |client: &str, more: &str| {
        with(client, &format!("purpose = \"drop-copy\", ResetOnLogon = \"N\"{more}"))
    };
    assert_eq!(warned(&[&copy("C", ", copy_sessions = [\"B1\"]")]), [""; 0]);
    assert!(
        refused(&[&with("C", "purpose = \"copy\"")])
            .contains("it must be one of all, orders, market-data, drop-copy")
    );
    assert!(
        refused(&[&with("C", "purpose = \"drop-copy\"")])
            .contains("fix.session.1.ResetOnLogon: a drop-copy session needs")
    );
    assert!(refused(&[&copy("C*", "")]).contains("fix.session.1.TargetCompID: a drop-copy session has one"));
    assert!(
        refused(&[&copy("C", ", copy_sessions = [\"X\"]")])
            .contains("fix.session.1.copy_sessions: there is no session for the client X")
    );
    assert!(
        refused(&[&with("C", "copy_accounts = [\"NEWYORK\"]")])
            .contains("fix.session.1.copy_accounts: it needs purpose")
    );
    assert!(
        refused(&[&copy("C", ""), "cluster.name=c"])
            .contains("fix.session.1.purpose: a server of a cluster has no drop-copy sessions")
    );
}

#[test]
fn the_filters_of_a_drop_copy_session_name_accounts_and_strategies() {
    let text = "[[fix.session]]\nSenderCompID = \"A\"\nTargetCompID = \"C\"\nResetOnLogon = \"N\"\n\
                purpose = \"drop-copy\"\ncopy_accounts = [\"NEWYORK\", \"NEWYORC\"]\ncopy_strategies = [\"TRENT\"]\n";
    let faults = name_faults("copies.toml", text);
    assert_eq!(faults.len(), 2, "{faults:?}");
    let strategy = "copies.toml:7:1: fix.session.0.copy_strategies: there is no strategy TRENT";
    assert!(faults[0].starts_with(strategy), "{faults:?}");
    let account =
        "copies.toml:6:1: fix.session.0.copy_accounts: there is no account NEWYORC (did you mean NEWYORK?)";
    assert_eq!(faults[1], account);
}

#[test]
fn an_origin_that_any_page_could_have_is_refused() {
    for origin in ["null", "*", "desk.example.com", "https://", "https://desk.example.com/", "file://"] {
        let words = format!("http.cors_origins=[\"{origin}\"]");
        assert!(refused(&[&words]).contains("http.cors_origins: "), "{origin}");
    }
    let good = "http.cors_origins=[\"https://desk.example.com\", \"http://[::1]:3000\"]";
    assert_eq!(warned(&[good]), [""; 0]);
}

#[test]
fn related_bounds_are_consistent() {
    for (words, key) in [
        ("net.per_peer_max=20000", "net.per_peer_max"),
        ("journal.segment_bytes=2000000", "journal.segment_bytes"),
        ("http.per_peer_max=20000", "http.per_peer_max"),
        ("stomp.head_bytes_max=1024", "stomp.header_line_bytes_max"),
        ("fix.message_bytes_max=8388608", "fix.out_buffer_bytes"),
        // Values without an effect.
        ("fix.logon_bytes_max=4097", "fix.logon_bytes_max"),
        ("fix.out_buffer_bytes=524287", "fix.out_buffer_bytes"),
    ] {
        assert!(refused(&[words]).contains(key), "{words}");
    }
    assert_eq!(warned(&["fix.logon_bytes_max=512", "fix.out_buffer_bytes=524288"]), [""; 0]);
    assert!(refused(&["risk.accounts.credit=5"]).contains("it needs a credit_currency"));
}

#[test]
fn names_must_be_known_to_the_reference_data() {
    let text = "[risk.strategy.TRENT]\nmax_order_qty = 1\n[risk.account.NEWYORK]\nrestricted = [\"AAPL\", \"NOPE\", 99999]\n\
                [venue.exchange.XNAS]\nfill_model = \"touch\"\n[venue.exchange.XXXX]\n\
                [[fix.session]]\nSenderCompID = \"A\"\nTargetCompID = \"B\"\nstrategy = \"NOBODY\"\n";
    let Loaded { config, params, .. } = load(&file("names.toml", text)).expect("it is well-formed");
    let reference = refdata::shipped().expect("the shipped set is sound");
    let faults = config
        .check_names(&reference, &Registry::with_examples(), &params)
        .expect_err("names are wrong")
        .to_string();
    let folder = format!("{}/", env!("CARGO_TARGET_TMPDIR"));
    let lines: Vec<String> = faults.lines().map(|line| line.replace(&folder, "")).collect();
    assert!(
        lines[0].starts_with("names.toml:1:16: risk.strategy.TRENT: there is no strategy TRENT"),
        "{faults}"
    );
    assert!(
        lines[1].starts_with("names.toml:7:17: venue.exchange.XXXX: there is no exchange XXXX"),
        "{faults}"
    );
    assert_eq!(lines[2], "names.toml:4:1: risk.account.NEWYORK.restricted: there is no security NOPE");
    assert_eq!(lines[3], "names.toml:4:1: risk.account.NEWYORK.restricted: there is no security 99999");
    assert!(
        lines[4].starts_with("names.toml:11:1: fix.session.0.strategy: there is no strategy NOBODY"),
        "{faults}"
    );
    assert_eq!(lines.len(), 5, "{faults}");

    let venues = config.shard_settings(&reference).venues;
    let touch = venues.get(&reference.exchanges()[0].id).expect("the exchange differs");
    assert_eq!((venues.len(), touch.fill_model), (1, pitlane_engine::settings::FillModel::Touch));
    assert_eq!(touch.quote_levels, VenueSettings::default().quote_levels);
    assert_eq!(config.risk.of_account("NEWYORK").restricted_ids(&reference).len(), 1);
}

/// Returns the faults of names in a file, without its folder.
fn name_faults(name: &str, text: &str) -> Vec<String> {
    let Loaded { config, params, .. } = load(&file(name, text)).expect("it is well-formed");
    let reference = refdata::shipped().expect("the shipped set is sound");
    let faults = config
        .check_names(&reference, &Registry::with_examples(), &params)
        .expect_err("names are wrong")
        .to_string();
    let folder = format!("{}/", env!("CARGO_TARGET_TMPDIR"));
    faults.lines().map(|line| line.replace(&folder, "")).collect()
}

#[test]
fn faults_of_strategy_parameters_are_reported_at_their_line() {
    let head =
        "[[strategy]]\nname = \"MOMENTUM\"\nkind = \"moving-average-cross\"\nsecurities = [\"AAPL\"]\n";
    let text = format!("{head}[strategy.parameters]\nslow = 50\nfast = 60\n");
    let below = "strategy.0.parameters.fast: it must be below slow";
    assert_eq!(name_faults("parameter.toml", &text), [format!("parameter.toml:7:1: {below}")]);
    // The parameter at fault is a default: the table is the nearest place.
    let text = format!("{head}parameters = {{ slow = 10 }}\n");
    assert_eq!(
        name_faults("parameter-default.toml", &text),
        [format!("parameter-default.toml:5:1: {below}")]
    );
    let text = format!("{head}parameters = {{ qtty = 10 }}\n");
    let faults = name_faults("parameter-unknown.toml", &text);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with(
            "parameter-unknown.toml:5:16: strategy.0.parameters.qtty: there is no such parameter; there are fast,"
        ),
        "{faults:?}"
    );
}

#[test]
fn a_strategy_needs_only_name_kind_and_securities() {
    let text = "[strategy_defaults]\nstart = false\n[[strategy]]\nname = \"MOMENTUM\"\n\
                kind = \"market-maker\"\nsecurities = [\"AAPL\"]\n";
    let Loaded { config, params, .. } = load(&file("strategy.toml", text)).expect("it is enough");
    let reference = refdata::shipped().expect("the shipped set is sound");
    assert!(config.check_names(&reference, &Registry::with_examples(), &params).is_ok());
    let strategy = &config.strategies[0];
    assert_eq!((strategy.start, strategy.cancel_on_failure), (false, true));
    assert!(strategy.make(&reference, &Registry::with_examples()).is_ok(), "every parameter has a default");
    let faults =
        load(&file("strategy-less.toml", "[[strategy]]\nname = \"MOMENTUM\"\n")).unwrap_err().to_string();
    assert!(faults.contains("strategy.0.kind: it is missing"), "{faults}");
    assert!(faults.contains("strategy.0.securities: it is missing"), "{faults}");
}

#[test]
fn strategies_that_only_the_settings_name_are_added() {
    let section =
        |name: &str| format!("[[strategy]]\nname = {name:?}\nkind = \"market-maker\"\nsecurities = [1]\n");
    let text = ["DIP", "MOMENTUM", "ALPHA"].map(section).join("");
    let Loaded { config, params, .. } = load(&file("added.toml", &text)).expect("it is well-formed");
    let files = refdata::shipped().expect("the shipped set is sound");
    let added = config.add_strategies(&files, &KnownStrategies::default(), &params).expect("they fit");
    let names: Vec<&str> =
        added.strategies()[files.strategies().len()..].iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["ALPHA", "DIP"]);
    assert!(config.check_names(&added, &Registry::with_examples(), &params).is_ok());
    let notes = config.addition_notes(&files);
    assert!(notes.iter().all(|note| !note.is_suspect) && notes.len() == 2, "{notes:?}");
    assert_eq!(notes[0].text, "the settings add the strategy DIP to the reference data");
    // A name that was there before keeps its id.
    let mut known = KnownStrategies::default();
    known.learn(&added);
    let Loaded { config, params, .. } =
        load(&file("added-again.toml", &section("DIP"))).expect("it is well-formed");
    let again = config.add_strategies(&files, &known, &params).expect("it fits");
    assert_eq!(again.strategies().last(), added.strategies().last());
}

#[test]
fn a_strategy_that_cannot_be_added_is_reported_at_its_line() {
    let text = "[[strategy]]\nkind = \"market-maker\"\nname = \"A.B\"\nsecurities = [1]\n";
    let Loaded { config, params, .. } = load(&file("unfit.toml", text)).expect("it is well-formed");
    let files = refdata::shipped().expect("the shipped set is sound");
    let faults =
        config.add_strategies(&files, &KnownStrategies::default(), &params).expect_err("it has a dot");
    let faults = faults.to_string();
    assert!(faults.contains("unfit.toml:3:1: strategy.0.name: \"A.B\" has a dot"), "{faults}");
    // A name close to one of the files may be a typing error.
    let text = text.replace("A.B", "MOMENTUN");
    let Loaded { config, .. } = load(&file("close.toml", &text)).expect("it is well-formed");
    let notes = config.addition_notes(&files);
    assert!(notes[0].is_suspect && notes[0].text.ends_with("(did you mean MOMENTUM?)"), "{notes:?}");
}

#[test]
fn a_cluster_adds_no_strategies() {
    let text = "[[strategy]]\nname = \"DIP\"\nkind = \"market-maker\"\nsecurities = [1]\n";
    let Loaded { mut config, params, .. } =
        load(&file("cluster-added.toml", text)).expect("it is well-formed");
    let files = refdata::shipped().expect("the shipped set is sound");
    config.cluster.name = "c".to_string();
    assert!(config.cluster.is_on());
    let same = config.add_strategies(&files, &KnownStrategies::default(), &params).expect("nothing is added");
    assert_eq!(same, files);
    let faults = config.check_names(&same, &Registry::with_examples(), &params).expect_err("DIP is missing");
    let hint =
        "there is no strategy DIP; all members of a cluster must have it in strategies.csv, with the same id";
    assert!(faults.to_string().contains(hint), "{faults}");
}

#[test]
fn only_the_process_of_a_strategy_needs_its_kind() {
    let text = "[[strategy]]\nname = \"MOMENTUM\"\nkind = \"mine\"\nsecurities = [\"AAPL\"]\n";
    let faults = name_faults("kind.toml", text);
    assert!(faults.len() == 1 && faults[0].contains("strategy.0.kind: there is no kind mine"), "{faults:?}");
    let Loaded { mut config, params, .. } =
        load(&file("kind-elsewhere.toml", text)).expect("it is well-formed");
    config.service.mode = ServiceMode::Distributed;
    let reference = refdata::shipped().expect("the shipped set is sound");
    assert!(config.check_names(&reference, &Registry::with_examples(), &params).is_ok());
}

#[test]
fn a_kind_can_refuse_the_securities() {
    struct Idle;
    impl Strategy for Idle {}
    let one = |securities: &[SecurityId], _: &Parameters| match securities.len() {
        1 => Ok(Idle),
        _ => Err(BadParameter::securities("it trades one security")),
    };
    let text = "[[strategy]]\nname = \"MOMENTUM\"\nkind = \"one\"\nsecurities = [1, 2]\n";
    let Loaded { config, params, .. } = load(&file("securities.toml", text)).expect("it is well-formed");
    let reference = refdata::shipped().expect("the shipped set is sound");
    let faults = config.check_names(&reference, &Registry::new().add("one", one), &params).expect_err("two");
    let expected = "securities.toml:4:1: strategy.0.securities: it trades one security";
    assert!(faults.to_string().contains(expected), "{faults}");
}

#[test]
fn the_number_of_levels_is_bounded() {
    for section in ["simulation", "replay"] {
        let levels = |count: usize| format!("{section}.levels={count}");
        assert_eq!(warned(&[&levels(pitlane_config::DATA_LEVELS_MAX)]), [""; 0]);
        let text = refused(&[&levels(pitlane_config::DATA_LEVELS_MAX + 1)]);
        assert!(text.contains(&format!("{section}.levels: ")) && text.contains("64"), "{text}");
    }
}
