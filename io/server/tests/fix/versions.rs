//! Sessions of FIX 4.2 and FIX 5.0 SP2 beside those of FIX 4.4, on one port.

use std::process::Command;

use pitlane_testkit::fix_client::{FixClient, now, plain};
use pitlane_testkit::fix_fields;
use pitlane_testkit::quickfix::QuickFixProcess;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};

use crate::quickfix::BINARY;
use crate::{fix, start_with};

const CONFIG: &str = r#"
[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "FOURTWO"
BeginString = "FIX.4.2"
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "FOURFOUR"
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "FIFTY"
BeginString = "FIXT.1.1"
ResetOnLogon = "N"

[[fix.session]]
SenderCompID = "PITLANE"
TargetCompID = "COPIES"
BeginString = "FIX.4.2"
purpose = "drop-copy"
ResetOnLogon = "N"
"#;

fn quickfix(
    service: &ServiceProcess,
    data: &TestFolder,
    (name, begin_string): (&str, &str),
) -> QuickFixProcess {
    let mut command = Command::new(&*BINARY);
    command.args([&fix(service).port().to_string(), name, "PITLANE"]).arg(data.join(name)).arg("N");
    let mut client = QuickFixProcess::start(command.env("BEGIN_STRING", begin_string));
    client.wait(&["logon"]);
    client
}

#[test]
fn quickfix_trades_in_every_version_and_gets_what_it_missed() {
    let data = folder("quickfix-versions");
    let service = start_with(&data, CONFIG, &[]);
    let versions = [("FOURTWO", "FIX.4.2"), ("FOURFOUR", "FIX.4.4"), ("FIFTY", "FIXT.1.1")];
    let mut copies = quickfix(&service, &data, ("COPIES", "FIX.4.2"));
    for (name, begin_string) in versions {
        let mut client = quickfix(&service, &data, (name, begin_string));
        let begin = format!("8={begin_string}|");
        let is_old = begin_string == "FIX.4.2";
        let (kind, fill, done) = match is_old {
            true => ("|20=0|", "|150=2|", "|150=4|"),
            false => ("|", "|150=F|", "|150=I|"),
        };
        client.send_message("send 35=D|11=m|21=1|55=AAPL|54=1|38=10|40=1|59=0|1=NEWYORK");
        client.wait(&["app", &begin, "35=8", "|150=A|", kind, "|11=m|"]);
        client.wait(&["app", &begin, fill, "|39=2|", kind, "|11=m|"]);
        copies.wait(&[
            "app",
            "8=FIX.4.2|",
            "35=8",
            "|20=0|",
            "|150=2|",
            "|39=2|",
            "|11=m|",
            &format!("|115={name}|"),
        ]);
        let order = format!("{name}-limit");
        let (cl_ord_id, order_id) = (format!("|11={order}|"), format!("|37={order}|"));
        client
            .send_message(&format!("send 35=D|11={order}|21=1|55=AAPL|54=1|38=10|40=2|44=1|59=1|1=NEWYORK"));
        client.wait(&["app", &begin, "|150=0|", "|39=0|", &cl_ord_id]);
        // A report that the client has missed is resent in its version.
        client.send_message("logout");
        client.wait(&["logout"]);
        let (status, body) = service.ask(&format!("DELETE /rest/execution/order/{order}"));
        assert!(status < 300, "{status} {body}");
        client.send_message("logon");
        client.wait(&["app", &begin, "|43=Y|", done, "|39=4|", &order_id]);
        client.send_message(&format!("send 35=H|11={order}|55=AAPL|54=1"));
        let status = if is_old { "|20=3|" } else { "|150=I|" };
        client.wait(&["app", &begin, status, "|39=4|", &cl_ord_id]);
        client.send_message("send 35=q|11=q|530=7");
        match is_old {
            true => client.wait(&["app", "35=j", "|372=q|", "|380=3|"]),
            false => client.wait(&["app", "35=r", "|531=7|", "|533=0|"]),
        };
        client.send_message("logout");
        client.wait(&["logout"]);
        client.quit();
    }
    copies.quit();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_logon_of_another_version_gets_no_answer_and_the_session_stays_free() {
    let data = folder("fix-other-version");
    let service = start_with(&data, CONFIG, &["feed.on=false"]);
    for (name, right) in [("FOURTWO", "FIX.4.2"), ("FOURFOUR", "FIX.4.4"), ("FIFTY", "FIXT.1.1")] {
        let logon = |begin_string: &str| {
            let body = format!("35=A|34=1|49={name}|56=PITLANE|52={}|98=0|108=30|141=Y|1137=9|", now());
            fix_fields::sealed(begin_string, &body)
        };
        for wrong in ["FIX.4.2", "FIX.4.3", "FIX.4.4", "FIXT.1.1"].into_iter().filter(|wrong| *wrong != right)
        {
            let mut client = FixClient::new(name);
            client.take(Box::new(plain(fix(&service))));
            client.write(&logon(wrong));
            assert!(client.read().is_err(), "{name} {wrong}");
        }
        let mut client = FixClient::new(name);
        client.take(Box::new(plain(fix(&service))));
        client.write(&logon(right));
        let answer = client.read().expect("a Logon");
        assert_eq!((answer.get(8), answer.get(35)), (right, "A"), "{}", answer.text());
        // Another BeginString in mid session is answered with a Logout in the session's version.
        let other = if right == "FIX.4.4" { "FIX.4.2" } else { "FIX.4.4" };
        let body = format!("35=0|34=2|49={name}|56=PITLANE|52={}|", now());
        client.write(&fix_fields::sealed(other, &body));
        let logout = client.read().expect("a Logout");
        assert_eq!((logout.get(8), logout.get(35)), (right, "5"), "{}", logout.text());
        assert_eq!(logout.get(58), "Incorrect BeginString");
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
}
