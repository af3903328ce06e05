//! Several venues at once: two FIX venues, one of them a second Pitlane, and a simulated one, with
//! orders of a FIX client to each.

use pitlane_testkit::fix_client::now;
use pitlane_testkit::service::{ServiceProcess, command, folder};

use crate::market::{VenueAddress, await_connected, client, fix, free_port, start};
use crate::orders::report;
use crate::venue;

/// Starts a Pitlane that is the venue BETA of the others: its shipped market, and a session for us.
fn second_pitlane(
    name: &str,
    mic: &str,
    more: &[&str],
) -> (ServiceProcess, pitlane_testkit::service::TestFolder) {
    let exchanges = format!(
        "id,name,mic,timeZone,open,close,auctions,adapterType\n1,Beta,{mic},UTC,00:00,24:00,false,SIM\n"
    );
    let data = folder(name);
    let config = data.join("service.toml");
    let session = "[[fix.session]]\nSenderCompID = \"BETA\"\nTargetCompID = \"US\"\nResetOnLogon = \"N\"\n";
    std::fs::write(&config, session).expect("a file for the test");
    let refdata = data.join("refdata");
    std::fs::create_dir_all(&refdata).expect("a folder for the test");
    let files = [
        ("exchanges", exchanges.as_str()),
        (
            "families",
            "id,name,symbolRoot,exchangeId,currency,contractSize,tickSize,lotSize,commission,tradeable,expirable\n\
             1,Shares,,1,USD,1,0.01,1,0,true,false\n",
        ),
        (
            "securities",
            "id,symbol,description,type,securityFamilyId,isin,underlyingId,expiration,strike,optionType,baseCurrency,startPrice,tradeable\n\
             1,BETA,Share,STOCK,1,,,,,,,200,true\n",
        ),
        ("accounts", "id,name,active,adapterType,exchangeIds\n1,ALL,true,SIM,1\n"),
        ("strategies", "id,name,autoActivate\n0,SERVER,true\n"),
    ];
    for (name, text) in files {
        std::fs::write(refdata.join(format!("{name}.csv")), text).expect("a file for the test");
    }
    let dir = format!("refdata.dir={}", refdata.display());
    let settings =
        ["demo.on=false", "feed.on=false", "fix.store_bytes=4194304", &dir, "venue.self_trade=allow"];
    let mut command = command(&data, &[&settings[..], more].concat());
    command.arg("--config").arg(&config);
    let service = ServiceProcess::on(&data, command);
    if !service.is_ready() {
        panic!("{}", service.end().log_text);
    }
    (service, data)
}

#[test]
fn two_fix_venues_and_a_simulated_one_trade_side_by_side() {
    let data = folder("venue-several");
    let alpha_port = free_port();
    let mut alpha = venue::start(alpha_port, "ALPHA", &data.join("venue-store"));
    let (beta, _beta_data) = second_pitlane("venue-several-beta", "X002", &[]);
    let venues = [
        VenueAddress { name: "ALPHA", port: alpha_port, more: "" },
        VenueAddress { name: "BETA", port: fix(&beta).port(), more: "" },
    ];
    let service = start(&data, &venues, &["topology.shards=2", "venue.self_trade=allow"]);
    await_connected(&service, "ALPHA", true);
    await_connected(&service, "BETA", true);
    let mut client = client(&service, "KEEP1");
    for symbol in ["ALPHA", "BETA", "SIM"] {
        let (buy, sell) = (format!("{symbol}-buy"), format!("{symbol}-sell"));
        client.order(&buy, symbol, 1, 5, "190");
        report(&mut client, &[(11, &buy), (150, "0")]);
        if symbol == "ALPHA" {
            // It fills by price only.
            let entered = alpha.wait(&["app", "35=D", "|38=5|"]);
            alpha.send_message(&format!("fill {} 5 190", crate::venue::field(&entered, "11=")));
        } else {
            // The other side comes from the same client.
            client.order(&sell, symbol, 2, 5, "190");
        }
        report(&mut client, &[(11, &buy), (39, "2"), (14, "5")]);
        // And one that is replaced and cancelled.
        let (open, more, gone) = (format!("{symbol}-o"), format!("{symbol}-m"), format!("{symbol}-g"));
        client.order(&open, symbol, 1, 5, "100");
        report(&mut client, &[(11, &open), (150, "0")]);
        client
            .send("G", &format!("11={more}|41={open}|55={symbol}|54=1|38=8|40=2|44=101|59=1|60={}|", now()));
        report(&mut client, &[(11, &more), (150, "I"), (38, "8")]);
        client.send("F", &format!("11={gone}|41={more}|55={symbol}|54=1|60={}|", now()));
        report(&mut client, &[(11, &gone), (39, "4")]);
    }
    service.signal("TERM");
    assert!(service.end().is_orderly());
    beta.signal("TERM");
    assert!(beta.end().is_orderly());
}

/// Over TLS, with the self-signed certificate of the venue, with both drivers.
#[test]
fn a_second_pitlane_is_a_venue_over_tls() {
    let (beta, beta_data) = second_pitlane("venue-tls-beta", "X001", &["fix.tls_listen=127.0.0.1:0"]);
    let part = beta.ready.split_whitespace().find_map(|part| part.strip_prefix("fix+tls="));
    let port = part.and_then(|part| part.rsplit_once(':')).expect("it listens").1.parse().expect("a port");
    let data = folder("venue-tls");
    let more = format!("tls = true\ntls_ca = \"{}\"", beta_data.join("self-signed.pem").display());
    for (at, driver) in ["net.driver=epoll", "net.driver=uring"].into_iter().enumerate() {
        let venues = [VenueAddress { name: "BETA", port, more: &more }];
        let service = start(&data, &venues, &[driver]);
        await_connected(&service, "BETA", true);
        let mut client = client(&service, &format!("KEEP{at}"));
        let id = format!("a{at}");
        client.order(&id, "BETA", 1, 5, "190");
        report(&mut client, &[(11, &id), (150, "0")]);
        service.signal("TERM");
        assert!(service.end().is_orderly());
    }
    beta.signal("TERM");
    assert!(beta.end().is_orderly());
}
