//! `pitlane refdata import binance` with a venue over HTTPS and with files: what it writes is what
//! a start accepts, and bad answers are named.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use pitlane_testkit::certificates::TestAuthority;
use pitlane_testkit::fix_client::now;
use pitlane_testkit::paths;
use pitlane_testkit::service::folder;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::binance_standin::BinanceStandIn;
use crate::market::{VenueAddress, await_connected, client, get, start_with};
use crate::orders::report;

/// Exchange information in the form of `rest-api.md`: two symbols with one pair of filters, one
/// with another, one that is not traded, one with a long code of an asset, and one whose asset is
/// no currency of ours.
fn exchange_info() -> String {
    let symbols = [
        ("BTCUSDT", "TRADING", "BTC", "USDT", "0.01000000", "1.00000000"),
        ("ETHUSDT", "TRADING", "ETH", "USDT", "0.01000000", "1.00000000"),
        ("ETHBTC", "TRADING", "ETH", "BTC", "0.00001000", "0.00010000"),
        ("LUNAUSDT", "BREAK", "LUNA", "USDT", "0.00010000", "0.01000000"),
        ("BTCFDUSD", "TRADING", "BTC", "FDUSD", "0.01000000", "1.00000000"),
        ("1000CHEEMSTRY", "TRADING", "1000CHEEMS", "TRY", "0.01000000", "1.00000000"),
    ];
    let symbol = |(symbol, status, base, quote, tick, lot): &(&str, &str, &str, &str, &str, &str)| {
        format!(
            r#"{{"symbol":"{symbol}","status":"{status}","baseAsset":"{base}","quoteAsset":"{quote}",
            "orderTypes":["LIMIT","LIMIT_MAKER","MARKET"],"isSpotTradingAllowed":true,"filters":[
            {{"filterType":"PRICE_FILTER","minPrice":"{tick}","maxPrice":"1000000.00","tickSize":"{tick}"}},
            {{"filterType":"LOT_SIZE","minQty":"{lot}","maxQty":"9000.00","stepSize":"{lot}"}},
            {{"filterType":"NOTIONAL","minNotional":"5.00000000","applyMinToMarket":true}}]}}"#
        )
    };
    let list: Vec<String> = symbols.iter().map(symbol).collect();
    format!(r#"{{"timezone":"UTC","serverTime":1,"rateLimits":[],"symbols":[{}]}}"#, list.join(","))
}

fn import(folder: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(paths::binary());
    command.args(["refdata", "import", "binance"]).arg(folder).args(options);
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Answers one request with these bytes, and returns the address.
fn answer_once(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("the importer connects");
        serve(stream, &answer);
    });
    format!("http://{address}/api/v3/exchangeInfo")
}

/// Reads the head of a request and answers it. The client may close before it has read everything.
fn serve(mut stream: impl std::io::Read + Write, answer: &[u8]) -> String {
    let mut reader = BufReader::new(&mut stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).expect("a request is text") > 0 {}
    let _ = stream.write_all(answer).and_then(|()| stream.flush());
    head
}

fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[test]
fn imported_symbols_are_traded_by_the_service() {
    let data = folder("refdata-import");
    let refdata = data.join("imported");
    let authority = TestAuthority::generate();
    fs::write(data.join("ca.pem"), &authority.pem).expect("a file for the test");
    let (chain, key) = authority.sign("localhost");
    let chain = vec![CertificateDer::from_pem_slice(chain.as_bytes()).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let config = Arc::new(config.expect("a certificate with its key"));
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = listener.local_addr().expect("it has an address").port();
    let server = std::thread::spawn(move || {
        let (stream, _): (TcpStream, _) = listener.accept().expect("the importer connects");
        let session = ServerConnection::new(config).expect("a session");
        let body = exchange_info();
        let (front, back) = body.split_at(body.len() / 2);
        let chunks = format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{front}\r\n{:x}\r\n{back}\r\n0\r\n\r\n",
            front.len(),
            back.len()
        );
        serve(StreamOwned::new(session, stream), chunks.as_bytes())
    });
    let url = format!("https://localhost:{port}/api/v3/exchangeInfo");
    let ca = data.join("ca.pem").display().to_string();
    let done = import(&refdata, &["--url", &url, "--tls-ca", &ca, "--adapter", "BINA"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(
        text(&done.stdout).ends_with(": 4 securities and 3 families added, 0 kept\n"),
        "{}",
        text(&done.stdout)
    );
    assert!(text(&done.stderr).contains("LUNAUSDT") && text(&done.stderr).contains("1000CHEEMSTRY"));
    let head = server.join().expect("the server has answered");
    assert!(head.starts_with("GET /api/v3/exchangeInfo?showPermissionSets=false HTTP/1.1\r\n"), "{head}");

    let standin = BinanceStandIn::start(0);
    let table = standin.table(20_000);
    let venues = [VenueAddress { name: "BINA", port: 0, more: &table }];
    let service = start_with(&data, &refdata, &venues, &[]);
    await_connected(&service, "BINA", true);
    let mut client = client(&service, "KEEP1");
    client.order("a", "ETHUSDT", 1, 3, "201");
    report(&mut client, &[(11, "a"), (39, "2"), (14, "3"), (30, "XXXX")]);
    client.send("D", &format!("11=t|21=1|55=ETHUSDT|54=1|38=3|40=2|44=201.005|59=1|60={}|", now()));
    assert!(report(&mut client, &[(11, "t"), (39, "8")]).contains("58=bad-tick"));
    // Three at this price have a value below the minimum, which the venue never sees.
    client.order("m", "ETHUSDT", 1, 3, "1.66");
    assert!(report(&mut client, &[(11, "m"), (39, "8")]).contains("58=min-notional"));
    let families = get(&service, "/rest/security-family");
    assert_eq!((&families[0]["minNotional"], &families[0]["orderTypes"]), (&json!(5), &json!(null)));
    let securities = get(&service, "/rest/security");
    assert_eq!(securities.as_array().expect("a list").len(), 4, "{securities}");
    // The code of an asset is as long as that of the venue everywhere.
    client.send("D", &format!("11=f|21=1|55=BTCFDUSD|15=FDUSD|54=1|38=3|40=2|44=201|59=1|60={}|", now()));
    report(&mut client, &[(11, "f"), (39, "2"), (14, "3")]);
    let cash = get(&service, "/rest/ext/cash-balance");
    let has_cash = |row: &Value| row["currency"] == "FDUSD" && row["amount"] != 0;
    assert!(cash.as_array().expect("a list").iter().any(has_cash), "{cash}");
    service.signal("TERM");
    assert!(service.end().is_orderly());
    // Again, from a file and with the same options, nothing is new.
    fs::write(data.join("info.json"), exchange_info()).expect("a file for the test");
    let file = data.join("info.json").display().to_string();
    let done = import(&refdata, &["--file", &file, "--adapter", "BINA"]);
    assert!(
        text(&done.stdout).ends_with(": 0 securities and 0 families added, 4 kept\n"),
        "{}",
        text(&done.stdout)
    );
}

#[test]
fn symbols_are_chosen_by_name_and_by_quote_asset() {
    let data = folder("refdata-chosen");
    fs::write(data.join("info.json"), exchange_info()).expect("a file for the test");
    let file = data.join("info.json").display().to_string();
    for (name, options, wanted) in [
        ("symbols", ["--symbols", "BTCUSDT,ETHBTC"], "2 securities and 2 families"),
        ("quotes", ["--quotes", "BTC"], "1 securities and 1 families"),
    ] {
        let done = import(&data.join(name), &[&["--file", &file], &options[..]].concat());
        assert!(text(&done.stdout).contains(wanted), "{}{}", text(&done.stdout), text(&done.stderr));
    }
    for (options, wanted) in [
        (["--symbols", "BTCUSDT,DOGEUSDT"], "the venue has no symbol \"DOGEUSDT\""),
        (["--quotes", "USD"], "the venue has no symbol that is priced in \"USD\""),
    ] {
        let done = import(&data.join("none"), &[&["--file", &file], &options[..]].concat());
        assert_eq!(done.status.code(), Some(1));
        assert!(text(&done.stderr).contains(wanted), "{}", text(&done.stderr));
        assert!(!data.join("none").exists());
    }
}

#[test]
fn bad_answers_of_the_venue_are_named_and_nothing_is_written() {
    let data = folder("refdata-refused");
    let info = exchange_info();
    let ban = r#"{"code":-1003,"msg":"Way too many requests;\u001b[2J IP banned."}"#;
    let answers = [
        (
            response("429 Too Many Requests", "Retry-After: 30\r\n", ""),
            "429: the venue has too many requests",
        ),
        (
            response("418 I'm a teapot", "Retry-After: 600\r\n", ban),
            "banned this address; try again in 600 s: Way",
        ),
        (response("451 Unavailable", "", "<html>"), "451: the venue does not serve this location"),
        (response("302 Found", "Location: https://evil/\r\n", ""), "the venue answers with status 302"),
        (response("200 OK", "", &info[..info.len() / 2]), "it is not exchange information: EOF"),
        (response("200 OK", "", "{\"symbols\":7}"), "it is not exchange information: invalid type"),
        (response("200 OK", "", "\u{0}"), "it is not exchange information"),
        (
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{info}", info.len() + 1).into(),
            "is truncated",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{".to_vec(), "the answer is larger than"),
        (b"220 mail.example.com ESMTP\r\n".to_vec(), "the answer is not HTTP"),
        (Vec::new(), "the answer is truncated"),
    ];
    for (answer, wanted) in answers {
        let done = import(&data.join("none"), &["--url", &answer_once(answer)]);
        let error = text(&done.stderr);
        assert!(done.status.code() == Some(1) && error.contains(wanted), "{wanted}: {error}");
        assert!(!error.contains('\u{1b}'), "{error}");
    }
    for (options, wanted) in [
        (["--url", "http://api.binance.com/x"], "use https://"),
        (["--url", "https://127.0.0.1:1/x"], "127.0.0.1:1: "),
        (["--file", "/nonexistent/info.json"], "/nonexistent/info.json: "),
    ] {
        let done = import(&data.join("none"), &options);
        assert!(text(&done.stderr).contains(wanted), "{wanted}: {}", text(&done.stderr));
    }
    assert!(!data.join("none").exists());
}
