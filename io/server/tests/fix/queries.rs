//! Positions over FIX, with QuickFIX, which checks every message against a dictionary; trading
//! sessions on a gateway with and without STOMP.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use pitlane_testkit::fix_client::FixClient;
use pitlane_testkit::paths;
use pitlane_testkit::service::folder;

use crate::market_data::quickfix;
use crate::{CONFIG, begin, command_with, fix, start_priced};

/// 2027-01-14T20:30:00Z, a Thursday, half an hour before XNAS closes.
const BEFORE_CLOSE_S: i64 = 1_799_958_600;

#[test]
fn quickfix_asks_for_the_positions_after_its_own_fills() {
    let data = folder("quickfix-positions");
    let service = start_priced(&data);
    let mut client = quickfix(&service, &data.join("client"));
    let request = "724=0|453=1|448=me|447=D|452=1|1=NEWYORK|581=1|715=20261116";
    client.send_message(&format!("send 35=AN|710=flat|{request}"));
    client.wait(&["app", "35=AO", "|710=flat|", "|728=2|", "|729=0|"]);
    for (id, symbol, side, qty) in [("a", "AAPL", 1, 30), ("b", "AAPL", 2, 10), ("c", "MSFT", 2, 7)] {
        client.send_message(&format!("send 35=D|11={id}|55={symbol}|54={side}|38={qty}|40=1|59=0|1=NEWYORK"));
        client.wait(&["app", "|150=F|", "|39=2|", &format!("|11={id}|")]);
    }
    // The reports say it, so the positions have it.
    client.send_message(&format!("send 35=AN|710=all|{request}"));
    client.wait(&[
        "app",
        "35=AP",
        "|710=all|",
        "|727=2|",
        "|55=AAPL|",
        "|704=20|",
        "|705=0|",
        "|448=SERVER|",
    ]);
    client.wait(&["app", "35=AP", "|710=all|", "|727=2|", "|55=MSFT|", "|704=0|", "|705=7|"]);
    client.send_message(&format!("send 35=AN|710=one|{request}|55=MSFT"));
    client.wait(&["app", "35=AP", "|710=one|", "|727=1|", "|55=MSFT|"]);
    client.send_message("send 35=g|335=all|263=0");
    client.wait(&["app", "35=h", "|335=all|", "|336=XNAS|", "|340=2|"]);
    client.send_message(&format!("send 35=AN|710=bad|{request}|55=NOPE"));
    client.wait(&["app", "35=AO", "|710=bad|", "|728=2|", "|58=Unknown security|"]);
    client.quit();
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

#[test]
fn a_change_of_hours_reaches_a_client_that_has_subscribed_trading_sessions() {
    hours_change("trading-sessions", &[]);
}

/// Such a gateway receives no events of trading sessions from the shards.
#[test]
fn a_gateway_without_stomp_knows_the_trading_sessions() {
    hours_change("trading-sessions-alone", &["stomp.listen=", "stomp.tls_listen="]);
}

/// Subscribes the trading sessions; then the reference data get other hours.
fn hours_change(name: &str, settings: &[&str]) {
    let data = folder(name);
    let refdata = data.join("refdata");
    fs::create_dir_all(&refdata).expect("a folder for the test");
    for file in ["accounts.csv", "exchanges.csv", "families.csv", "securities.csv", "strategies.csv"] {
        let shipped = paths::repository().join("config/refdata").join(file);
        fs::copy(shipped, refdata.join(file)).expect("the shipped set is complete");
    }
    let from = format!("refdata.dir={}", refdata.display());
    let common = ["calendar.hours=exchange", "fix.sending_time_s_max=0", &from];
    let mut command = command_with(&data, CONFIG, &[&common, settings].concat());
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).expect("later than 1970").as_secs();
    let ahead_s = BEFORE_CLOSE_S - i64::try_from(now_s).expect("a time of this age");
    command.env("PITLANE_FAULT", format!("clock:0:{ahead_s}"));
    let service = begin(&data, command);
    // QuickFIX would refuse our messages, because their time is not now.
    let mut client = FixClient::new("CLIENT1");
    client.connect(fix(&service));
    client.log_on(true);
    client.send("g", "335=all|263=1|");
    expect_status(&mut client, ["all", "2", "N"]);
    let file = refdata.join("exchanges.csv");
    let rows = fs::read_to_string(&file).expect("there are exchanges");
    fs::write(&file, rows.replace("XNAS,America/New_York,09:30,16:00", "XNAS,America/New_York,09:30,15:00"))
        .expect("a file for the test");
    let (status, body) = service.ask("POST /rest/cache/clear-all");
    assert_eq!(status, 200, "{body}");
    expect_status(&mut client, ["all", "3", "Y"]);
    client.send("g", "335=one|336=XNAS|263=0|");
    expect_status(&mut client, ["one", "3", "N"]);
    service.signal("TERM");
    assert!(service.end().is_orderly());
}

/// Reads up to the next status of XNAS, which must have these 335, 340 and 325.
fn expect_status(client: &mut FixClient, expected: [&str; 3]) {
    loop {
        let message = client.next_message().expect("the service answers");
        if message.get(35) == "h" && message.get(336) == "XNAS" {
            return assert_eq!([335, 340, 325].map(|tag| message.get(tag)), expected, "{}", message.text());
        }
    }
}
