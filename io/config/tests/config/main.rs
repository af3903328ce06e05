//! Settings from every source: the effective values, and the messages about faults.

mod hostile;
mod layouts;
mod rules;

use std::fs;
use std::path::PathBuf;

use pitlane_config::diagnostics::FAULTS_MAX;
use pitlane_config::refdata;
use pitlane_config::{
    Config, ConfigFaults, DemoConfig, Durability, EventsPerSecond, IdleBy, Layout, Loaded, Machine, PRESETS,
    SecondLogon, ServiceMode, Setting, Sources,
};
use pitlane_engine::mesh::Depths;
use pitlane_engine::number::Money;
use pitlane_engine::settings::{QuoteSizes, ShardSettings, VenueSettings};
use pitlane_engine::view::ViewSettings;
use pitlane_strategy::Registry;

const DEFAULT: &str = include_str!("../../../../config/default.toml");

fn machine() -> Machine {
    Machine { cores: (0..8).collect(), cores_usable: 8 }
}

fn load(sources: &Sources) -> Result<Loaded, ConfigFaults> {
    pitlane_config::load(sources, &machine())
}

fn file(name: &str, text: &str) -> Sources {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).expect("a file for the test");
    Sources { files: vec![path.display().to_string()], ..Sources::default() }
}

fn options(settings: &[&str]) -> Sources {
    let options = settings.iter().map(|setting| Setting::parse(setting).expect("key=value")).collect();
    Sources { options, ..Sources::default() }
}

fn variables(pairs: &[(&str, &str)]) -> Sources {
    let environment = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    Sources { environment, ..Sources::default() }
}

/// Returns the faults of a file, without its folder.
fn faults_of(name: &str, text: &str) -> Vec<String> {
    let faults = load(&file(name, text)).expect_err("something is wrong");
    let folder = format!("{}/", env!("CARGO_TARGET_TMPDIR"));
    faults.to_string().lines().map(|line| line.replace(&folder, "")).collect()
}

#[test]
fn settings_beyond_their_limits_are_refused() {
    let large = format!("# {}\n", "x".repeat(1 << 20));
    let faults = faults_of("limits-large.toml", &large);
    assert!(faults[0].contains("it is larger than 1048576 bytes"), "{faults:?}");
    let at_the_end = &large[..1 << 20];
    assert!(load(&file("limits-size.toml", at_the_end)).is_ok(), "as large as it may be");
    let many = format!("[topology]\nshard_cores = [{}]\n", "1,".repeat(10_001));
    let faults = faults_of("limits-many.toml", &many);
    assert!(faults[0].contains("it may have 10000 items, not 10001"), "{faults:?}");
    let long = faults_of("limits-long.toml", &format!("[service]\nname = \"{}\"\n", "x".repeat(5_000)));
    assert!(long[0].contains("service.name"), "{long:?}");
    let names = format!("[[fix.session]]\nSenderCompID = \"A\"\nTargetCompID = \"{}\"\n", "B".repeat(33));
    let faults = faults_of("limits-names.toml", &names);
    assert!(faults[0].contains("TargetCompID"), "{faults:?}");
    let session = "[[fix.session]]\nSenderCompID = \"A\"\nTargetCompID = \"B\"\n";
    for (line, key) in [
        ("orders_max = 0", "orders_max"),
        ("orders_max = 1_048_577", "orders_max"),
        ("second_logon = \"ask\"", "second_logon"),
    ] {
        let faults = faults_of("limits-session.toml", &format!("{session}{line}\n"));
        assert!(faults[0].contains(key), "{faults:?}");
    }
}

#[test]
fn fields_of_the_operator_are_read_and_wrong_ones_are_refused_with_the_reason() {
    let text = "[fix]\ncustom_fields = [\"9001 INT D,G!\", \"167 STRING - CRYPTO\"]\n";
    let fields = load(&file("fields.toml", text)).expect("they are well written").config.fix.custom_fields;
    assert_eq!(
        fields.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["9001 INT D,G!", "167 STRING - CRYPTO"]
    );
    for (list, reason) in [
        ("[\"9001 INT\"]", "it must be tag, type, messages and values"),
        ("[\"9001 INT 8\"]", "is not the MsgType of a message that a client may send"),
        ("[9001]", "it must be a text in quotes"),
        ("\"9001 INT D\"", "it must be a list"),
    ] {
        let faults = faults_of("fields-wrong.toml", &format!("[fix]\ncustom_fields = {list}\n"));
        assert!(faults[0].contains("fix.custom_fields") && faults[0].contains(reason), "{faults:?}");
    }
}

#[test]
fn a_cluster_has_so_many_members_and_keeps_so_much_for_them() {
    let settings = |members: usize, window_mb: usize| {
        let mut text = format!(
            "[nats]\nurl = \"nats://127.0.0.1:4222\"\n[topology]\nshards = {members}\n\
             [cluster]\nname = \"c\"\nmember = \"m0\"\nwindow_mb = {window_mb}\n"
        );
        for n in 0..members {
            text += &format!("[[member]]\nname = \"m{n}\"\nshards = [{n}]\n");
        }
        text
    };
    let loaded = load(&file("cluster-most.toml", &settings(7, 4_096))).unwrap();
    assert_eq!((loaded.config.members.len(), loaded.config.cluster.window_bytes), (7, 4_096 << 20));
    let faults = faults_of("cluster-more.toml", &settings(8, 4_096));
    assert!(faults[0].contains("a cluster has 2 to 7 tables [[member]]"), "{faults:?}");
    let faults = faults_of("cluster-larger.toml", &settings(7, 4_097));
    assert!(faults[0].contains("cluster.window_mb"), "{faults:?}");
}

/// Collects every plain setting of a document as a dotted key and a text.
fn flat(at: &str, value: &toml::Value, out: &mut Vec<(String, String)>) {
    let dotted = |key: &str| if at.is_empty() { key.to_string() } else { format!("{at}.{key}") };
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(key, value)| flat(&dotted(key), value, out)),
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(number, value)| flat(&dotted(&number.to_string()), value, out));
        }
        toml::Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(shown).collect();
            out.push((at.to_string(), texts.join(",")));
        }
        plain @ (toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_)) => out.push((at.to_string(), shown(plain))),
    }
}

fn shown(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

#[test]
fn the_default_file_has_every_key_and_no_other_and_is_what_is_read() {
    let Loaded { config, params, warnings } =
        load(&Sources::default()).expect("the built-in settings are sound");
    assert_eq!(config, Config::default());
    assert_eq!(warnings, [""; 0]);

    let mut written = Vec::new();
    flat("", &DEFAULT.parse::<toml::Table>().expect("it is TOML").into(), &mut written);
    assert!(written.len() > 150, "{}", written.len());
    for (name, text) in &written {
        // An empty list of tables has no settings.
        if matches!(name.as_str(), "adapter" | "strategy" | "member") {
            continue;
        }
        let read = params.get(name).unwrap_or_else(|| panic!("{name} is written and not read"));
        assert_eq!(&read.text, text, "{name}");
    }
    // Keys that the second session inherits, and values that follow from other settings.
    let inherited = |name: &str| name.starts_with("fix.session.1.") || name == "journal.level.effective";
    for (name, _) in params.iter().filter(|(name, _)| !inherited(name)) {
        assert!(written.iter().any(|(known, _)| known == name), "{name} is read and not written");
    }
}

#[test]
fn the_defaults_are_those_of_the_engine() {
    let config = Config::default();
    let reference = refdata::shipped().expect("the shipped set is sound");
    // The book of a server looks like one of an exchange; that of the engine alone is simple.
    let venue = VenueSettings { quote_sizes: QuoteSizes::Varied, ..VenueSettings::default() };
    assert_eq!(config.venue.settings, venue);
    assert_eq!(config.shard_settings(&reference), ShardSettings { venue, ..ShardSettings::default() });
    assert_eq!(config.view, ViewSettings { seed: 1, ..ViewSettings::default() });
    assert_eq!(config.lanes, Depths::default());
    assert_eq!(config.feed.interval_ns(27), 200_000_000);
}

#[test]
fn the_shipped_fix_sessions_are_the_specifications() {
    let sessions = Config::default().fix.sessions;
    let pairs: Vec<_> =
        sessions.iter().map(|at| (at.sender_comp_id.as_str(), at.target_comp_id.as_str())).collect();
    assert_eq!(pairs, [("PITLANE", "CLIENT1")], "a family without a password is in the preset bench only");
    for session in sessions {
        assert_eq!(
            (session.heart_bt_int_s, session.start_time, session.end_time),
            (30, <_>::default(), <_>::default())
        );
        assert!(session.reset_on_logon && session.refresh_on_logon && session.use_data_dictionary);
        assert!(!session.validate_incoming_message && session.report_open_orders);
        assert!(session.validate_user_defined_fields && session.orders_max == 100_000);
        assert_eq!((session.second_logon, session.replace_after_ms), (SecondLogon::Refuse, 3_000));
        assert_eq!(session.valid_order_types, [true; 4]);
        assert_eq!((session.socket_accept_port, session.cancel_on_disconnect_s), (None, None));
    }
}

#[test]
fn every_preset_is_sound_and_changes_something() {
    let named = |name: &str| load(&Sources { files: vec![name.to_string()], ..Sources::default() });
    let reference = refdata::shipped().expect("the shipped set is sound");
    for (name, path, _) in PRESETS {
        let Loaded { config, params, .. } = named(name).unwrap_or_else(|faults| panic!("{name}: {faults}"));
        assert_ne!(config, Config::default(), "{name}");
        config
            .check_names(&reference, &Registry::with_examples(), &params)
            .unwrap_or_else(|faults| panic!("{name}: {faults}"));
        assert!(params.iter().any(|(_, param)| param.origin.to_string().starts_with(path)), "{name}");
    }
    let pinned = named("pinned").expect("it is sound");
    assert_eq!(pinned.warnings, [""; 0]);
    assert_eq!(
        (pinned.config.topology.layout, pinned.config.topology.idle),
        (Layout::Dedicated, IdleBy::Spin)
    );
    assert_eq!(named("simulation").expect("it is sound").config.service.mode, ServiceMode::Simulation);
    assert!(named("dev").expect("it is sound").config.demo.on);
    assert_eq!(named("distributed").expect("it is sound").config.durability(), Durability::Disk);
    let unknown = named("pined").expect_err("there is no such preset").to_string();
    assert!(
        unknown.starts_with("pined: neither a file nor a preset: ")
            && unknown.ends_with(
                " (did you mean pinned?); the presets are dev, bench, pinned, simulation, distributed"
            ),
        "{unknown}"
    );
}

#[test]
fn the_command_line_wins_over_the_environment_and_that_over_files() {
    let mut sources =
        file("order.toml", "[demo]\nrate = 7\non = true\n[lanes]\nevents = 9\n[net]\nbacklog = 3");
    sources.environment =
        variables(&[("PITLANE_DEMO__RATE", "8"), ("pitlane_lanes__events", "10")]).environment;
    sources.options = options(&["lanes.events=11"]).options;
    let Loaded { config, params, warnings } = load(&sources).expect("all is well");
    assert_eq!(config.demo, DemoConfig { on: true, rate: 8, cash: Money::ZERO });
    assert_eq!((config.lanes.events, config.lanes.commands, config.net.backlog), (11, 1_024, 3));
    assert_eq!(warnings, [""; 0]);
    let origin = |name: &str| params.get(name).expect("it is a setting").origin.to_string();
    assert!(origin("net.backlog").ends_with("order.toml:7:1"), "{}", origin("net.backlog"));
    assert_eq!(origin("demo.rate"), "PITLANE_DEMO__RATE");
    assert_eq!(origin("lanes.events"), "--set");
    assert!(origin("lanes.commands").starts_with("config/default.toml:"));
}

#[test]
fn of_two_files_the_later_wins() {
    let mut sources = file("one.toml", "[demo]\nrate = 7\n[net]\nbacklog = 3");
    sources.files.extend(file("two.toml", "[demo]\nrate = 8").files);
    let config = load(&sources).expect("all is well").config;
    assert_eq!((config.demo.rate, config.net.backlog), (8, 3));
}

#[test]
fn the_environment_knows_every_kind_of_value() {
    let Loaded { config, .. } = load(&variables(&[
        ("PITLANE_BROKER__MAXRATEPERCONNECTION", "12.5"),
        ("PITLANE_SERVICE__NAME", "42"),
        ("PITLANE_TOPOLOGY__MAIN_CORES", "3"),
        ("PITLANE_HTTP__CORS_ORIGINS", "https://a.example, https://b.example"),
        ("PITLANE_DEMO__ON", "true"),
        ("PITLANE_RISK__STRATEGY__TREND__MAX_ORDER_QTY", "0.5"),
        ("PITLANE_LOG__TARGETS__pitlane::net", "debug"),
        ("PITLANE_FIX__SESSION", "[{ SenderCompID = \"A\", TargetCompID = \"B\", HeartBtInt = 5 }]"),
        ("HOME", "/root"),
    ]))
    .expect("all is well");
    assert_eq!(config.broker.max_rate_per_connection, EventsPerSecond::from_raw(1_250_000_000));
    assert_eq!(config.service.name, "42");
    assert_eq!(config.topology.main_cores, [3]);
    assert_eq!(config.http.cors_origins, ["https://a.example", "https://b.example"]);
    assert!(config.demo.on);
    let rules = config.risk.of_strategy("TREND");
    assert_eq!(
        (rules.limits.max_order_qty.to_string().as_str(), rules.limits.max_open_orders),
        ("0.5", 1_000)
    );
    assert_eq!(config.log.targets.keys().collect::<Vec<_>>(), ["pitlane::net"]);
    let session = &config.fix.sessions[0];
    assert_eq!((config.fix.sessions.len(), session.heart_bt_int_s, session.reset_on_logon), (1, 5, true));
}

#[test]
fn a_variable_that_is_no_setting_causes_a_warning() {
    let loaded = load(&variables(&[("PITLANE_FIX_LISTEN", "127.0.0.1:1")])).expect("it is left alone");
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.warnings.len() == 1 && loaded.warnings[0].starts_with("PITLANE_FIX_LISTEN: "));
}

#[test]
fn all_faults_are_reported_with_their_position() {
    let text = "\
[net]
conections_max = 5
backlog = \"many\"
busy_poll_us = -1
driver = \"epol\"

[htttp]
listen = 1

[http]
listen = \"localhost\"
cors_origins = [1]

[broker]
maxRatePerConnection = \"fast\"
minRatePerConsumer = 0.123456789

[service]
mode = \"Embedded\"
trading_day_rollover = \"25:00\"
base_currency = \"\"
seed = 99999999999999999999

[risk.strategies]
price_collar_pct = 0.001
restricted = [true]

[journal]
retention_days = 2024-01-01

[demo]
on = 1
";
    let faults = faults_of("wrong.toml", text);
    for line in [
        "wrong.toml:2:1: net.conections_max: there is no such key (did you mean connections_max?)",
        "wrong.toml:3:1: net.backlog: it must be a whole number, not a text",
        "wrong.toml:4:1: net.busy_poll_us: it must be 0 to 1000, not -1",
        "wrong.toml:5:1: net.driver: it must be one of epoll, uring, not \"epol\" (did you mean epoll?)",
        "wrong.toml:7:2: htttp: there is no such key (did you mean http?)",
        "wrong.toml:11:1: http.listen: it must be host:port with the host as a number, such as 127.0.0.1:9090, not \"localhost\"",
        "wrong.toml:12:1: http.cors_origins: it must be a text in quotes, not a whole number",
        "wrong.toml:15:1: broker.maxRatePerConnection: \"fast\" is not a decimal with at most eight places",
        "wrong.toml:16:1: broker.minRatePerConsumer: \"0.123456789\" is not a decimal with at most eight places",
        "wrong.toml:19:1: service.mode: it must be one of embedded, simulation, distributed, not \"Embedded\" (did you mean embedded?)",
        "wrong.toml:20:1: service.trading_day_rollover: it must be HH:MM or HH:MM:SS, not \"25:00\"",
        "wrong.toml:21:1: service.base_currency: \"\" is not a currency",
        "wrong.toml:22:1: service.seed: it must be a whole number, not one of more than 64 bits",
        "wrong.toml:25:1: risk.strategies.price_collar_pct: it must be 0 to 100 with at most two decimals",
        "wrong.toml:26:1: risk.strategies.restricted: it must be a list of ids and symbols",
        "wrong.toml:29:1: journal.retention_days: it must be a whole number, not a date",
        "wrong.toml:32:1: demo.on: it must be true or false, not a whole number",
    ] {
        assert!(faults.iter().any(|output| output == line), "{line}\nis not among\n{}", faults.join("\n"));
    }
    assert_eq!(faults.len(), 17, "{}", faults.join("\n"));
}

#[test]
fn a_syntax_error_is_reported_beside_other_faults() {
    let faults = faults_of("broken.toml", "[demo]\nrate = = 5\n[lanes]\nevents = 0\n");
    assert!(faults.iter().any(|line| line.starts_with("broken.toml:2:8: ")), "{faults:?}");
    assert!(
        faults.contains(&"broken.toml:4:1: lanes.events: it must be 1 to 1048576, not 0".to_string()),
        "{faults:?}"
    );
}

#[test]
fn faults_name_the_variable_or_option() {
    for (sources, expected) in [
        (
            variables(&[("PITLANE_FIX__LISTN", "x")]),
            "PITLANE_FIX__LISTN: FIX.LISTN: there is no such key (did you mean listen?)",
        ),
        (
            variables(&[("PITLANE_LANES__EVENTS", "0")]),
            "PITLANE_LANES__EVENTS: lanes.events: it must be 1 to 1048576, not 0",
        ),
        (options(&["lanes.event=5"]), "--set: lanes.event: there is no such key (did you mean events?)"),
        (options(&["lanes.events=many"]), "--set: lanes.events: it must be a whole number, not a text"),
        (
            options(&["fix.session.HeartBtInt=5"]),
            "--set: fix.session.HeartBtInt: fix.session is not a table; give all of it as one TOML value",
        ),
        (options(&["lanes=5"]), "--set: lanes: it must be a table, not a whole number"),
        (
            options(&["risk.strategy.X.max_order=5"]),
            "--set: risk.strategy.X.max_order: there is no such key (did you mean max_order_qty?)",
        ),
    ] {
        assert_eq!(load(&sources).expect_err(expected).to_string(), expected);
    }
    assert!(Setting::parse("lanes.events").is_err());
}

#[test]
fn faults_of_a_file_are_reported_up_to_a_bound() {
    let text: String = (0..FAULTS_MAX + 20).map(|number| format!("[x{number}]\n")).collect();
    let faults = faults_of("full.toml", &text);
    assert_eq!((faults.len(), faults[FAULTS_MAX].as_str()), (FAULTS_MAX + 1, "and 20 more"));
}

#[test]
fn secrets_are_never_shown() {
    let text = "[[fix.session]]\nSenderCompID = \"A\"\nTargetCompID = \"B\"\nusername = \"u\"\npassword = \"hunter2\"";
    let loaded = load(&file("secret.toml", text)).expect("all is well");
    assert_eq!(loaded.params.get("fix.session.0.password").map(|param| param.text.as_str()), Some("***"));
    assert!(!format!("{loaded:?}").contains("hunter2"));
    assert_eq!(
        loaded.config.fix.sessions[0].password.as_ref().map(|secret| secret.reveal()),
        Some("hunter2")
    );
}
