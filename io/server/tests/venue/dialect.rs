//! A FIX venue with a dialect: its Logon is signed, and OpenSSL verifies the signature; messages
//! have the fields that the venue wants and lack those that it does not take.

use std::fs;
use std::path::Path;
use std::process::Command;

use pitlane_testkit::paths;
use pitlane_testkit::quickfix::QuickFixProcess;
use pitlane_testkit::service::{TestFolder, folder};
use pitlane_testkit::stomp_client::{StompClient, body, plain};
use serde_json::Value;

use crate::market::{
    VenueAddress, await_connected, await_special_terms, client, fix, free_port, listener, special_terms,
    start,
};
use crate::orders::report;
use crate::venue::{self, field};

/// Runs OpenSSL, and returns what it prints.
fn openssl(arguments: &[&str]) -> String {
    let output = Command::new("openssl").args(arguments).output().expect("OpenSSL is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Writes what was signed according to these tags of a Logon, and the signature, each to a file.
fn write_signed(data: &TestFolder, logon: &str, tags: &[&str]) -> (String, String) {
    let values: Vec<&str> = tags.iter().map(|tag| field(logon, tag)).collect();
    let (payload, signature) = (path(data, "payload"), path(data, "signature"));
    fs::write(&payload, values.join("\u{1}")).expect("a file for the test");
    let encoded = path(data, "encoded");
    let text = field(logon, "96=");
    assert_eq!(field(logon, "95="), text.len().to_string(), "{logon}");
    fs::write(&encoded, text).expect("a file for the test");
    openssl(&["base64", "-d", "-A", "-in", &encoded, "-out", &signature]);
    (payload, signature)
}

/// Starts venue and service with these keys of the adapter, and returns the Logon.
fn logon(
    data: &TestFolder,
    keys: &str,
) -> (String, QuickFixProcess, pitlane_testkit::service::ServiceProcess) {
    let port = free_port();
    let mut venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    let more = format!("{keys}\nFileLogPath = \"{}\"", path(data, "log"));
    let service = start(data, &[VenueAddress { name: "ALPHA", port, more: &more }], &[]);
    await_connected(&service, "ALPHA", true);
    let logon = venue.wait(&["admin", "35=A"]);
    (logon, venue, service)
}

#[test]
fn a_logon_is_signed_with_ed25519_and_orders_have_the_fields_of_the_venue() {
    let data = folder("venue-dialect");
    let (private, public) = (path(&data, "key.pem"), path(&data, "public.pem"));
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", &private]);
    openssl(&["pkey", "-in", &private, "-pubout", "-out", &public]);
    let keys = format!(
        "username = \"the-key\"\nsecret_file = \"{private}\"\nlogon_signed_tags = [35, 49, 56, 34, 52]\n\
         logon_fields = [\"25035=2\"]\norder_fields = [\"25001=1\", \"7940=12\"]\nomit_tags = [21, 38, 54, 60, 207]"
    );
    let (logon, mut venue, service) = logon(&data, &keys);
    assert!(logon.contains("|553=the-key|") && logon.contains("|25035=2|"), "{logon}");
    assert!(!logon.contains("|554="), "{logon}");
    let (payload, signature) = write_signed(&data, &logon, &["35=", "49=", "56=", "34=", "52="]);
    let verify = ["pkeyutl", "-verify", "-pubin", "-inkey", &public, "-rawin", "-in", &payload, "-sigfile"];
    openssl(&[&verify[..], &[&signature]].concat());
    let mut client = client(&service, "KEEP1");
    client.order("a", "ALPHA", 1, 10, "150");
    report(&mut client, &[(11, "a"), (150, "0")]);
    let order = venue.wait(&["app", "35=D"]);
    assert!(order.contains("|25001=1|") && order.contains("|7940=12|"), "{order}");
    assert!(order.contains("|54=1|") && order.contains("|38=10|"), "{order}");
    for tag in ["21=", "60=", "207="] {
        assert!(!order.contains(&format!("|{tag}")), "{tag} in {order}");
    }
    client.send("F", &format!("11=a2|41=a|55=ALPHA|54=1|60={}|", pitlane_testkit::fix_client::now()));
    report(&mut client, &[(11, "a2"), (39, "4")]);
    let cancel = venue.wait(&["app", "35=F"]);
    for tag in ["21=", "38=", "54=", "60=", "207=", "25001="] {
        assert!(!cancel.contains(&format!("|{tag}")), "{tag} in {cancel}");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn special_terms_reach_the_venue_and_survive_a_kill() {
    let data = folder("venue-special");
    let port = free_port();
    let mut venue = venue::start(port, "ALPHA", &data.join("venue-store"));
    let start = || {
        let service = start(&data, &[VenueAddress { name: "ALPHA", port, more: "omit_tags = [18]" }], &[]);
        await_connected(&service, "ALPHA", true);
        service
    };
    let service = start();
    let mut client = client(&service, "KEEP1");
    let now = pitlane_testkit::fix_client::now;
    let order =
        |id: &str, special: &str| format!("11={id}|55=ALPHA|54=1|38=10|40=2|44=150|60={}|{special}", now());
    let mut topic = StompClient::new(plain(listener(&service, "stomp=")));
    topic.connect();
    topic.subscribe("1", "order.>");
    let mut published = || -> Value {
        serde_json::from_str(body(&topic.receive_until("MESSAGE"))).expect("an order as JSON")
    };
    client.send("D", &order("a", "110=2|111=4|"));
    report(&mut client, &[(11, "a"), (150, "0"), (110, "2"), (111, "4")]);
    let both = [Value::Null, 2.into(), 4.into()];
    assert_eq!(special_terms(&published()), both);
    await_special_terms(&service, "a", &both);
    let sent = venue.wait(&["app", "35=D"]);
    assert!(sent.contains("|110=2|") && sent.contains("|111=4|"), "{sent}");
    client.send("D", &order("b", "18=G|"));
    report(&mut client, &[(11, "b"), (150, "8"), (103, "11"), (18, "G")]);
    assert_eq!(special_terms(&published()), ["G".into(), Value::Null, Value::Null]);
    service.signal("KILL");
    _ = service.end();
    let service = start();
    client.disconnect();
    client.connect(fix(&service));
    client.log_on(false);
    client.send("H", "11=a|55=ALPHA|54=1|");
    report(&mut client, &[(11, "a"), (150, "I"), (110, "2"), (111, "4")]);
    await_special_terms(&service, "a", &both);
    client.send("G", &format!("41=a|{}", order("a2", "111=5|").replace("38=10", "38=12")));
    report(&mut client, &[(11, "a2"), (150, "I"), (38, "12"), (111, "5")]);
    let replaced = venue.wait(&["app", "35=G"]);
    assert!(replaced.contains("|111=5|") && !replaced.contains("|110="), "{replaced}");
    await_special_terms(&service, "a2", &[Value::Null, Value::Null, 5.into()]);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_logon_is_signed_with_hmac_and_the_secret_is_not_shown() {
    let data = folder("venue-hmac");
    // A secret in base64, as some venues give it.
    let (secret, key) = ("c2VjcmV0LW9mLXRoZS10ZXN0", "secret-of-the-test");
    let keys = format!(
        "username = \"me\"\npassword = \"open-sesame\"\nsecret = \"{secret}\"\nsecret_encoding = \"base64\"\n\
         logon_signed_tags = [52, 35, 34, 49, 56, 554]"
    );
    let (logon, _venue, service) = logon(&data, &keys);
    let (payload, signature) = write_signed(&data, &logon, &["52=", "35=", "34=", "49=", "56=", "554="]);
    let expected = path(&data, "expected");
    let sign = ["dgst", "-sha256", "-mac", "HMAC", "-binary", "-out", &expected, "-macopt"];
    openssl(&[&sign[..], &[&format!("key:{key}"), &payload]].concat());
    let read = |path: &str| fs::read(path).expect("a file of the test");
    assert_eq!(read(&signature), read(&expected));
    let config = path(&data, "service.toml");
    let mut show = Command::new(paths::binary());
    let shown = show.args(["config", "show", "--config", &config]).output().expect("the binary starts");
    assert!(shown.status.success());
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("logon_signed_tags = 52,35,34,49,56,554"), "{shown}");
    service.signal("TERM");
    let ended = service.end();
    let messages = fs::read_to_string(data.join("log/ALPHA.log")).expect("the log of the messages");
    assert!(messages.contains("|96=***|"), "{messages}");
    for text in [&shown, &ended.log_text, &ended.output, &messages] {
        assert!(!text.contains(secret) && !text.contains(key) && !text.contains("open-sesame"), "{text}");
    }
}
