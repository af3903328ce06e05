//! Lists that are compressed for clients that accept it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use pitlane_testkit::http_client::Response;

use crate::service::{RestService, folder};

/// Securities of the test: few enough for a cached list, and more than are cached.
const FEW: u32 = 500;
const MANY: u32 = 3_000;
/// Time limit; a later result never comes.
const PATIENCE: Duration = Duration::from_secs(120);
const LIST: &str = "/rest/security";

fn start(name: &str, securities: u32) -> RestService {
    let data = folder(name);
    let files = data.join("refdata");
    fs::create_dir_all(&files).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/refdata");
    for file in ["accounts.csv", "exchanges.csv", "families.csv", "strategies.csv"] {
        fs::copy(shipped.join(file), files.join(file)).unwrap();
    }
    let head = fs::read_to_string(shipped.join("securities.csv")).unwrap();
    let row = |id: u32| format!("\n{id},S{id},Stock {id},STOCK,1,,,,,,,{}.50,true", 10 + id);
    let rows: String = (1..=securities).map(row).collect();
    fs::write(files.join("securities.csv"), format!("{}{rows}\n", head.lines().next().unwrap())).unwrap();
    RestService::with(&data, &[&format!("refdata.dir={}", files.display())])
}

fn accepting(service: &mut RestService, path: &str, codings: &str) -> Response {
    let answer = service.ask("GET", path, &format!("Accept-Encoding: {codings}\r\n"), "");
    assert_eq!(answer.status, 200, "{path} {codings}: {answer:?}");
    answer
}

#[test]
fn a_large_list_comes_in_the_coding_that_the_client_prefers() {
    for (name, securities) in [("coded-few", FEW), ("coded-many", MANY)] {
        let mut service = start(name, securities);
        let plain = service.get(LIST);
        assert_eq!((plain.header("content-encoding"), plain.sent_bytes), (None, plain.body.len()));
        assert_eq!(plain.header("vary"), Some("accept-encoding"));
        let strong = plain.header("etag").unwrap().to_string();
        for (codings, coding) in [
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("gzip", Some("gzip")),
            ("zstd;q=0.1, gzip;q=0.2", Some("gzip")),
            ("*;q=0.5", Some("zstd")),
            ("identity", None),
            ("identity, zstd;q=0.9", None),
            ("gzip;q=0", None),
            ("br", None),
            ("gzip;q=nonsense", None),
            ("{[;,;]}", None),
        ] {
            let answer = accepting(&mut service, LIST, codings);
            assert_eq!(answer.header("content-encoding"), coding, "{codings}");
            assert_eq!(answer.header("vary"), Some("accept-encoding"), "{codings}");
            assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{codings}");
            assert!(answer.body == plain.body, "{codings}: the list is another one");
            let etag = answer.header("etag").unwrap();
            if coding.is_some() {
                assert!(answer.sent_bytes < plain.sent_bytes / 4, "{codings}: {} bytes", answer.sent_bytes);
                assert_eq!(etag, format!("W/{strong}"), "{codings}");
            } else {
                assert_eq!((answer.sent_bytes, etag), (plain.sent_bytes, strong.as_str()), "{codings}");
            }
            // What the client has is still valid, under either form of the ETag.
            let known = format!("If-None-Match: {etag}\r\nAccept-Encoding: {codings}\r\n");
            let unchanged = service.ask("GET", LIST, &known, "");
            assert_eq!((unchanged.status, unchanged.header("etag")), (304, Some(etag)), "{codings}");
            assert_eq!(unchanged.header("vary"), Some("accept-encoding"));
        }
    }
}

#[test]
fn what_is_small_or_an_error_is_sent_as_it_is() {
    let mut service = start("coded-small", FEW);
    for path in ["/rest/account", "/rest/security/1", "/rest/security?limit=3", "/rest/transaction/daily"] {
        let answer = accepting(&mut service, path, "gzip, zstd");
        assert_eq!(answer.header("content-encoding"), None, "{path}");
    }
    let missing = service.ask("GET", "/rest/nothing", "Accept-Encoding: gzip, zstd\r\n", "");
    assert_eq!((missing.status, missing.header("content-encoding")), (404, None));
}

#[test]
fn many_clients_get_the_same_list_at_once() {
    let mut service = start("coded-crowd", MANY);
    let plain = service.get(LIST).body;
    let address = service.address();
    // More than are compressed at once. All of them ask before the first one reads.
    let mut clients: Vec<_> = (0..40).map(|_| service.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let coding = if number % 2 == 0 { "zstd" } else { "gzip" };
        client.send(&format!("GET {LIST} HTTP/1.1\r\nHost: {address}\r\nAccept-Encoding: {coding}\r\n\r\n"));
    }
    let mut coded = 0;
    for client in &mut clients {
        let answer = client.receive(false);
        assert!(answer.status == 200 && answer.body == plain, "another list");
        coded += usize::from(answer.header("content-encoding").is_some());
    }
    assert!(coded >= 16, "only {coded} were compressed");
    // Clients that leave without reading free their places.
    for client in &mut clients {
        client.send(&format!("GET {LIST} HTTP/1.1\r\nHost: {address}\r\nAccept-Encoding: gzip\r\n\r\n"));
    }
    drop(clients);
    let end = Instant::now() + PATIENCE;
    while accepting(&mut service, LIST, "zstd").header("content-encoding") != Some("zstd") {
        assert!(Instant::now() < end, "no place becomes free");
    }
}
