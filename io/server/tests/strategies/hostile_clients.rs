//! Access to the broker, and what hostile clients can achieve there.

use std::fs;
use std::process;

use async_nats::HeaderMap;
use futures_util::StreamExt;
use pitlane_engine::command::{Command, CommandKind, Scope, StrategyPhase};
use pitlane_engine::id::{IntId, OrderHandle, Source, StrategyId};
use pitlane_engine::terms::Terms;
use pitlane_protocols::remote::strategy::{Blob, RemoteReply, RemoteRequest};
use pitlane_testkit::certificates::TestAuthority;
use pitlane_testkit::nats_server::{NatsBroker, StrategyProcess, serve};
use pitlane_testkit::paths;
use pitlane_testkit::raw_nats_client::{RawNatsClient, guarded, password};
use pitlane_testkit::service::{TestFolder, folder};
use pitlane_testkit::stomp_client::body;
use serde_json::{Value, json};

use super::data::{MAKER, MOMENTUM};
use super::distributed::{is_connected, is_present};
use super::embedded::{get, open_orders, strategy, subscriber, until};

/// A broker that also requires a certificate, with the shipped rights.
const TLS: &str = r#"
tls { cert_file: "FOLDER/broker.pem", key_file: "FOLDER/broker.key", ca_file: "FOLDER/ca.pem", verify: true }
"#;

/// Returns the settings of a login.
fn shown(place: &TestFolder, user: &str, password: &str) -> Vec<String> {
    let file = |key: &str, name: &str| format!("nats.{key}={}", place.join(name).display());
    vec![
        "nats.tls=true".to_string(),
        file("ca", "ca.pem"),
        file("cert", "client.pem"),
        file("key", "client.key"),
        format!("nats.user={user}"),
        format!("nats.password={password}"),
    ]
}

fn parts(settings: &[String]) -> Vec<&str> {
    settings.iter().map(String::as_str).collect()
}

#[test]
fn a_strategy_needs_certificate_and_login_and_speaks_only_for_itself() {
    let place = folder("strangers-guarded");
    let authority = TestAuthority::generate();
    for (name, who) in [("broker", "127.0.0.1"), ("client", "client")] {
        let (chain, key) = authority.sign(who);
        fs::write(place.join(format!("{name}.pem")), chain).unwrap();
        fs::write(place.join(format!("{name}.key")), key).unwrap();
    }
    fs::write(place.join("ca.pem"), &authority.pem).unwrap();
    let tls = TLS.replace("FOLDER", place.to_str().unwrap());
    let broker = NatsBroker::with(&place, &(guarded() + &tls));
    let own = shown(&place, "server", &password("server"));
    let both = format!("{MAKER}{MOMENTUM}");
    let service = serve(&place, &broker, &both, &[&parts(&own)[..], &["feed.rate=2000"]].concat());
    until(|| is_connected(&service));
    let own_settings = shown(&place, "market-maker", &password("market-maker"));
    let maker = StrategyProcess::with(&place, &broker, "MARKET_MAKER", &parts(&own_settings));
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    let broker_state = get(&service, "/health/ready")["broker"].clone();
    assert_eq!((&broker_state["missingRights"], &broker_state["wideLogins"]), (&json!([]), &json!([])));

    // Without the password, without the certificate, without either and without TLS: the broker
    // disconnects.
    let log = place.join("MOMENTUM.log");
    let output = |parts: &str| fs::read_to_string(&log).unwrap_or_default().to_lowercase().contains(parts);
    let wrong = shown(&place, "market-maker", "guessed");
    let is_own = |part: &&str| part.starts_with("nats.cert") || part.starts_with("nats.key");
    let bare: Vec<&str> = parts(&own_settings).into_iter().filter(|part| !is_own(part)).collect();
    for settings in [&parts(&wrong)[..], &bare, &[]] {
        let _stranger = StrategyProcess::with(&place, &broker, "MOMENTUM", settings);
        until(|| output("\"message\":\"the broker reports an error\""));
        assert!(!output("connected to the broker") && !is_present(&service, "MOMENTUM"), "{settings:?}");
        fs::remove_file(&log).unwrap();
    }
    // With the login of another strategy.
    let _stranger = StrategyProcess::with(&place, &broker, "MOMENTUM", &parts(&own_settings));
    until(|| output("permissions violation"));
    assert!(!is_present(&service, "MOMENTUM") && is_present(&service, "MARKET_MAKER"));
    assert_eq!(maker.end(), Some(0));
    assert!(!service.ask("GET /rest/config-params").1.contains(&password("server")), "a secret is shown");
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly() && !ended.log_text.contains(&password("server")), "{}", ended.log_text);
}

/// Returns messages that an attacker with access to the broker and to our source could write. None
/// is from the connected process.
fn forged() -> Vec<Vec<u8>> {
    let incarnation = 7;
    let command =
        |body| RemoteRequest::Command { incarnation, command: Command::new(Source::default(), 1, body) };
    let terms = Terms { strategy: StrategyId(1), ..Terms::default() };
    let letters = [
        RemoteRequest::Resume { incarnation, received: vec![u64::MAX; 1_000] },
        RemoteRequest::Piece { incarnation, of: Blob::State, at: u32::MAX },
        RemoteRequest::Fetch { incarnation, received: Vec::new() },
        RemoteRequest::Heartbeat { incarnation, prices: u64::MAX, received: vec![0; 50_000], idle: true },
        RemoteRequest::Failed { incarnation, reason: "it\nERROR forged".repeat(1_000) },
        RemoteRequest::Bye { incarnation },
        command(CommandKind::Submit { id: IntId::NONE, terms }),
        command(CommandKind::Cancel { order: OrderHandle::NONE, id: IntId::numbered(b'x', 1) }),
        command(CommandKind::Phase { strategy: StrategyId(1), phase: StrategyPhase::Exit }),
        command(CommandKind::Kill { scope: Scope::Global, on: true }),
    ];
    let mut bytes: Vec<Vec<u8>> = letters.iter().map(RemoteRequest::encode).collect();
    // Lengths beyond the end, another version, and no bytes at all.
    bytes.extend([
        vec![],
        vec![0],
        vec![1],
        vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255],
        vec![255; 4_000],
    ]);
    bytes
}

/// A client on an open broker that knows all names. It receives everything, and could take the
/// place of a strategy that is away; what it sends meanwhile breaks nothing.
#[test]
fn no_message_on_the_broker_breaks_the_service() {
    let place = folder("strangers-open");
    let broker = NatsBroker::start(&place);
    let service = serve(&place, &broker, MAKER, &["feed.rate=2000"]);
    let mut client = subscriber(&service, "generic-event.*");
    let _process = StrategyProcess::start(&place, &broker, "MARKET_MAKER");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let raw_client = async_nats::connect(broker.url()).await.unwrap();
        let inbox = "pitlane.pitlane.inbox.MARKET_MAKER.stranger";
        let mut answers = raw_client.subscribe(inbox).await.unwrap();
        let ask = "pitlane.pitlane.ask.MARKET_MAKER";
        for request in forged() {
            raw_client.publish_with_reply(ask, inbox, request.into()).await.unwrap();
            let answer = RemoteReply::decode(&answers.next().await.unwrap().payload).unwrap();
            let is_nothing = matches!(
                answer,
                RemoteReply::UnknownSession
                    | RemoteReply::Refused { .. }
                    | RemoteReply::Gone
                    | RemoteReply::Accepted
            );
            assert!(is_nothing, "{answer:?}");
        }
        // A second process waits while the first is connected.
        let hello =
            RemoteRequest::Hello { incarnation: 7, host: "x".repeat(100_000), received: vec![1; 50_000] };
        raw_client.publish_with_reply(ask, inbox, hello.encode().into()).await.unwrap();
        let answer = RemoteReply::decode(&answers.next().await.unwrap().payload).unwrap();
        assert!(matches!(answer, RemoteReply::Wait { .. }), "{answer:?}");
        // There is no response anywhere else: neither to us nor to other subscribers.
        for elsewhere in [ask, "pitlane.pitlane.market", "pitlane.pitlane.inbox.MOMENTUM.x", "answers"] {
            raw_client.publish_with_reply(ask, elsewhere, vec![0].into()).await.unwrap();
        }
        for (name, output) in [("a", "{\"forged\":"), ("a", "1},{"), ("", "1"), ("x", "2")] {
            let mut headers = HeaderMap::new();
            headers.insert("Pitlane-Event", name);
            headers.insert("Pitlane-From", "STRANGER");
            raw_client.publish_with_headers("pitlane.pitlane.generic", headers, output.into()).await.unwrap();
        }
        raw_client.publish("pitlane.pitlane.generic", "bare".into()).await.unwrap();
        raw_client.flush().await.unwrap();
    });
    until(|| service.metric("pitlane_remote_strategy_misrouted_messages_total") == 4);
    // Only the last of the events is valid.
    let event: Value = serde_json::from_str(body(&client.receive_until("MESSAGE"))).unwrap();
    assert_eq!((&event["name"], &event["data"]), (&"x".into(), &2.into()), "{event}");
    let quotes = || get(&service, "/rest/execution/order").as_array().unwrap().len();
    until(|| quotes() == 2);
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "RUNNING");
    assert!(is_present(&service, "MARKET_MAKER"));

    // A name of two lines once ended the server: that of a client, which would have become two
    // headers.
    client.send_message("SEND|destination:/topic/generic-event.a\\nb|receipt:r||1");
    assert!(client.receive_until("ERROR").contains("SEND is not permitted"));
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.is_orderly(), "{}", ended.log_text);
    assert!(!ended.log_text.lines().any(|line| line.starts_with("ERROR forged")), "{}", ended.log_text);
}

/// Returns the settings of a login.
fn login(user: &str) -> [String; 2] {
    [format!("nats.user={user}"), format!("nats.password={}", password(user))]
}

/// Returns the findings of `pitlane doctor` about rights at the broker.
fn examine(place: &TestFolder, broker: &NatsBroker, user: &str) -> String {
    let mut command = process::Command::new(paths::binary());
    command.args(["doctor", "--config", "distributed", "--data"]).arg(place.join("data"));
    [broker.server_settings(), login(user).to_vec()]
        .concat()
        .iter()
        .for_each(|setting| _ = command.args(["--set", setting]));
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8_lossy(&output.stderr);
    text.lines().skip_while(|line| !line.contains("broker-rights")).collect::<Vec<_>>().join("\n")
}

#[test]
fn missing_and_excessive_rights_are_reported_with_their_subject() {
    let place = folder("strangers-rights");
    let events = "\"pitlane.pitlane.events.MARKET_MAKER\"\n";
    let ask = "\"pitlane.pitlane.ask.MARKET_MAKER\"\n          \"pitlane.pitlane.hello.MARKET_MAKER\"";
    let rights = guarded().replacen(events, "", 1).replacen(ask, &format!("\"pitlane.pitlane.>\"\n{ask}"), 1);
    let broker = NatsBroker::with(&place, &rights);
    let own = login("server");
    let service = serve(
        &place,
        &broker,
        &format!("{MAKER}{MOMENTUM}"),
        &[&parts(&own)[..], &["feed.rate=2000"]].concat(),
    );
    let state = || get(&service, "/health/ready")["broker"].clone();
    until(|| state()["missingRights"] == json!(["Publish to \"pitlane.pitlane.events.MARKET_MAKER\""]));
    let _process = StrategyProcess::with(&place, &broker, "MARKET_MAKER", &parts(&login("market-maker")));
    until(|| state()["wideLogins"] == json!(["MARKET_MAKER"]));
    assert!(examine(&place, &broker, "server").contains("pitlane.pitlane.events.MARKET_MAKER"));
    service.signal("TERM");
    let ended = service.end();
    assert!(ended.log_text.contains("pitlane.pitlane.events.MARKET_MAKER"), "{}", ended.log_text);

    let place = folder("strangers-rights-right");
    let broker = NatsBroker::with(&place, &guarded());
    let text = examine(&place, &broker, "server");
    assert!(text.contains("rights that they need"), "{text}");
    assert!(examine(&place, &broker, "market-maker").contains("pitlane.pitlane.market"));
}

/// A strategy that sends what ends a connection ends only its own.
#[test]
fn unreadable_headers_affect_only_the_strategy_that_sends_them() {
    let place = folder("strangers-headers");
    let broker = NatsBroker::with(&place, &guarded());
    let own = login("server");
    let service = serve(
        &place,
        &broker,
        &format!("{MAKER}{MOMENTUM}"),
        &[&parts(&own)[..], &["feed.rate=2000"]].concat(),
    );
    let maker = StrategyProcess::with(&place, &broker, "MARKET_MAKER", &parts(&login("market-maker")));
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    let mut raw_client = RawNatsClient::connect(broker.port, Some("momentum"));
    for _ in 0..50 {
        for subject in ["ask.MOMENTUM", "hello.MOMENTUM", "generic"] {
            let subject = format!("pitlane.pitlane.{subject}");
            raw_client.publish_with(&subject, "", b"NATS/1.0\r\nno colon\r\n\r\n", b"1");
        }
        raw_client.settle();
        assert!(is_connected(&service) && is_present(&service, "MARKET_MAKER"));
    }
    assert_eq!(strategy(&service, "MARKET_MAKER")["phase"], "RUNNING");
    until(|| open_orders(&service, "MARKET_MAKER") == 2);
    assert_eq!(maker.end(), Some(0));
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
