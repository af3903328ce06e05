//! A third-party client: QuickFIX.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use pitlane_testkit::quickfix::{QuickFixProcess, compile};
use pitlane_testkit::service::folder;

use crate::{fix, start};

pub(crate) static BINARY: LazyLock<PathBuf> = LazyLock::new(|| compile("client"));

pub(crate) fn quickfix(port: u16, name: &str, store: &Path, reset: bool) -> QuickFixProcess {
    let mut command = Command::new(&*BINARY);
    command.args([&port.to_string(), name, "PITLANE"]).arg(store).arg(if reset { "Y" } else { "N" });
    QuickFixProcess::start(&mut command)
}

#[test]
fn four_kinds_of_orders_a_change_and_a_cancel() {
    let data = folder("quickfix-orders");
    let service = start(&data, &["feed.on=false"]);
    let mut client = quickfix(fix(&service).port(), "CLIENT1", &data.join("client"), true);
    client.wait(&["logon"]);
    let orders = [("m", "40=1"), ("l", "40=2|44=150"), ("s", "40=3|99=500"), ("sl", "40=4|44=510|99=500")];
    for (id, terms) in orders {
        client.send_message(&format!("send 35=D|11={id}|55=AAPL|54=1|38=10|{terms}|59=0"));
        let first = client.wait(&["app", "35=8", &format!("|11={id}|")]);
        assert!(first.contains("|150=A|") || first.contains("|150=8|"), "{first}");
    }
    client.send_message("send 35=G|11=l2|41=l|55=AAPL|54=1|38=20|40=2|44=151");
    client.wait(&["app", "|150=E|", "|11=l2|", "|41=l|"]);
    client.wait(&["app", "|150=I|", "|11=l2|", "|38=20|", "|44=151|"]);
    client.send_message("send 35=F|11=l3|41=l2|55=AAPL|54=1");
    client.wait(&["app", "|150=6|", "|11=l3|"]);
    client.wait(&["app", "|150=I|", "|39=4|", "|11=l3|", "|37=l|"]);
    client.send_message("send 35=F|11=x|41=nobody|55=AAPL|54=1");
    client.wait(&["app", "35=9", "|102=1|"]);
    client.send_message("send 35=R|131=1");
    client.wait(&["app", "35=j", "|380=3|"]);
    client.send_message("logout");
    client.wait(&["logout"]);
    client.quit();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn status_requests_and_a_mass_cancel() {
    let data = folder("quickfix-mass");
    let service = start(&data, &["feed.on=false"]);
    let mut client = quickfix(fix(&service).port(), "CLIENT1", &data.join("client"), true);
    client.wait(&["logon"]);
    for (id, symbol) in [("a", "AAPL"), ("b", "MSFT"), ("c", "AAPL")] {
        client.send_message(&format!("send 35=D|11={id}|55={symbol}|54=1|38=10|40=2|44=150|59=0"));
        client.wait(&["app", "|150=0|", &format!("|11={id}|")]);
    }
    client.send_message("send 35=H|11=b|55=MSFT|54=1|790=asked");
    client.wait(&["app", "35=8", "|150=I|", "|37=b|", "|790=asked|"]);
    client.send_message("send 35=AF|584=all|585=7");
    client.wait(&["app", "35=8", "|584=all|", "|911=3|", "|912=Y|"]);
    client.send_message("send 35=q|11=q1|530=1|55=AAPL");
    client.wait(&["app", "35=r", "|11=q1|", "|531=1|", "|533=2|"]);
    client.send_message("send 35=q|11=q2|530=7");
    client.wait(&["app", "35=r", "|11=q2|", "|531=7|", "|533=1|"]);
    client.send_message("send 35=AF|584=none|585=7");
    client.wait(&["app", "35=8", "|39=8|", "|584=none|", "|911=0|", "|912=Y|"]);
    client.send_message("send 35=Q|37=a|17=e|127=D|55=AAPL|54=1");
    client.send_message("logout");
    client.wait(&["logout"]);
    client.quit();
    service.signal("TERM");
    let end = service.end();
    assert!(end.is_orderly());
    assert!(end.log_text.contains("the client does not know this trade"), "{}", end.log_text);
}

/// Either side is killed while orders are in flight; the other reconnects by itself and recovers
/// what it missed.
#[test]
fn either_side_may_be_killed_in_mid_flow() {
    let data = folder("quickfix-restart");
    let store = data.join("client");
    let settings = ["feed.on=false"];
    let service = start(&data, &settings);
    let port = fix(&service).port();
    let mut client = quickfix(port, "KEEP1", &store, false);
    client.wait(&["logon"]);
    client.send_message("send 35=D|11=a|55=AAPL|54=1|38=10|40=2|44=150|59=1");
    client.wait(&["app", "|150=0|", "|11=a|"]);

    // The service is killed with an order in flight, and restarts on the same port.
    client.send_message("send 35=D|11=b|55=AAPL|54=1|38=10|40=2|44=150|59=1");
    client.wait(&["sent", "|11=b|"]);
    service.signal("KILL");
    service.end();
    client.wait(&["logout"]);
    // Sent while the service is down: the service will request it.
    client.send_message("send 35=D|11=c|55=MSFT|54=1|38=10|40=2|44=150|59=1");
    let listen = format!("fix.listen=127.0.0.1:{port}");
    let service = start(&data, &["feed.on=false", &listen]);
    client.wait(&["logon"]);
    // They belong to two shards, so either may be first.
    let accepted = |message: &[String], id: &str| {
        message.iter().any(|line| line.starts_with("app") && line.contains("|150=0|") && line.contains(id))
    };
    while !["|11=b|", "|11=c|"].iter().all(|id| accepted(&client.received, id)) {
        client.wait(&["app", "|150=0|"]);
    }
    let both = |message: &[String], id: &str| {
        let count = |kind: &str| {
            message
                .iter()
                .filter(|line| line.starts_with("app") && line.contains(kind) && line.contains(id))
                .count()
        };
        (count("|150=A|"), count("|150=0|"))
    };
    for id in ["|11=a|", "|11=b|", "|11=c|"] {
        assert_eq!(both(&client.received, id), (1, 1), "{id}\n{}", client.received.join("\n"));
    }

    // The client is killed with a report in flight, and restarts with its store. Only what is
    // answered has certainly left it.
    client.send_message("send 35=D|11=d|55=AAPL|54=1|38=10|40=2|44=150|59=1");
    client.wait(&["app", "|150=A|", "|11=d|"]);
    client.kill();
    let mut client = quickfix(port, "KEEP1", &store, false);
    client.wait(&["logon"]);
    client.send_message("send 35=F|11=d2|41=d|55=AAPL|54=1");
    client.wait(&["app", "|39=4|", "|11=d2|"]);
    // And once more with an empty store.
    client.send_message("logout");
    client.wait(&["logout"]);
    client.quit();
    let mut client = quickfix(port, "KEEP1", &data.join("other"), true);
    client.wait(&["logon"]);
    client.wait(&["app", "|150=I|", "|37=a|"]);
    client.quit();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// The sequence numbers are set apart on purpose: both sides recover.
#[test]
fn gaps_are_filled_both_ways() {
    let data = folder("quickfix-gaps");
    let service = start(&data, &["feed.on=false"]);
    let mut client = quickfix(fix(&service).port(), "KEEP2", &data.join("client"), false);
    client.wait(&["logon"]);
    client.send_message("send 35=D|11=a|55=AAPL|54=1|38=10|40=2|44=150|59=1");
    client.wait(&["app", "|150=0|"]);
    client.send_message("logout");
    client.wait(&["logout"]);
    // It has sent more than we know of, and forgets what it received: both sides request a resend.
    client.send_message("next 30 2");
    client.send_message("logon");
    client.wait(&["logon"]);
    client.wait(&["admin", "35=2", "|16=0|"]);
    client.wait(&["app", "|150=A|", "|43=Y|", "|11=a|"]);
    client.wait(&["app", "|150=0|", "|43=Y|", "|11=a|"]);
    client.send_message("send 35=F|11=b|41=a|55=AAPL|54=1");
    client.wait(&["app", "|39=4|", "|11=b|"]);
    client.quit();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
