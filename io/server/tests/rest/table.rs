//! Checks that every row of the specification's table of endpoints has its response.

use crate::service::RestService;

/// Method and path of each row, as in the specification.
const TABLE: &str = include_str!("endpoints.txt");

/// Values for a path's parameter, and a body that the call accepts.
const SAMPLES: [(&str, &str, &str); 12] = [
    ("GET /forex", "/forex?baseCurrency=EUR&transactionCurrency=USD", ""),
    ("GET /security/{id}", "/security/1", ""),
    ("GET /security-family/{id}", "/security-family/1", ""),
    ("GET /account/{name}", "/account/NEWYORK", ""),
    ("POST /execution/order/market", "", r#"{"securityId":1,"side":"BUY","quantity":1}"#),
    ("POST /execution/order/limit", "", r#"{"securityId":1,"side":"BUY","quantity":1,"limit":1}"#),
    ("POST /execution/order/stop", "", r#"{"securityId":1,"side":"BUY","quantity":1,"stop":900}"#),
    (
        "POST /execution/order/stoplimit",
        "",
        r#"{"securityId":1,"side":"BUY","quantity":1,"stop":900,"limit":901}"#,
    ),
    (
        "PUT /subscription/marketdata/subscribe",
        "",
        r#"{"strategyName":"SERVER","securityId":1,"subscribe":true}"#,
    ),
    (
        "PUT /subscription/marketdata/unsubscribe",
        "",
        r#"{"strategyName":"SERVER","securityId":1,"subscribe":false}"#,
    ),
    ("POST /next-order-id", "", "1"),
    ("POST /transaction", "", r#"{"type":"CREDIT","price":100,"currency":"USD"}"#),
];
/// Calls about unknown objects: refused as such, which only the right call does.
const REFUSED: [(&str, &str, &str, u16, &str); 8] = [
    ("DELETE /position/{id}", "/position/65536", "", 404, "unknown-position"),
    ("POST /position/reduce/{id}", "/position/reduce/65536", "1", 404, "unknown-position"),
    ("GET /transaction/{id}", "/transaction/1", "", 404, "unknown-transaction"),
    ("GET /execution/order/{intId}", "/execution/order/none", "", 404, "unknown-order"),
    ("DELETE /execution/order/{intId}", "/execution/order/none", "", 404, "unknown-order"),
    ("POST /execution/modify/order/market", "", r#"{"intId":"none"}"#, 404, "unknown-order"),
    ("POST /execution/modify/order/limit", "", r#"{"intId":"none"}"#, 404, "unknown-order"),
    ("POST /execution/modify/order/stop", "", r#"{"intId":"none"}"#, 404, "unknown-order"),
];

#[test]
fn every_endpoint_of_the_specification_answers() {
    let mut service = RestService::start("table");
    let rows: Vec<_> = TABLE.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 38, "the specification has so many rows");
    let mut last = None;
    for row in rows {
        let (method, path) = row.split_once(' ').unwrap();
        if path == "/runtime/exit-vm" {
            last = Some((method, path));
            continue;
        }
        let refused = REFUSED.iter().find(|(name, ..)| *name == row);
        if let Some((_, sample, body, status, code)) = refused {
            let path = format!("/rest{}", if sample.is_empty() { path } else { sample });
            service.refuse(method, &path, body, *status, code);
            continue;
        }
        if row == "POST /execution/modify/order/stoplimit" {
            service.refuse(method, &format!("/rest{path}"), r#"{"intId":"none"}"#, 404, "unknown-order");
            continue;
        }
        let sample = SAMPLES.iter().find(|(name, ..)| *name == row);
        let (sample, body) = sample.map_or(("", ""), |(_, sample, body)| (sample, body));
        let path = format!("/rest{}", if sample.is_empty() { path } else { sample });
        let answer = service.ask(method, &path, "", body);
        assert_eq!(answer.status, 200, "{row}: {answer:?}");
        let has_output = method == "GET" || row == "POST /next-order-id";
        match has_output {
            true => {
                assert_eq!(answer.header("content-type"), Some("application/json"), "{row}");
                assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{row}");
                answer.json();
            }
            false => {
                assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("0"), ""), "{row}")
            }
        }
        // The same path lists its methods, and responds to HEAD where it responds to GET.
        let options = service.ask("OPTIONS", &path, "", "");
        assert!(
            options.status == 200 && options.header("allow").unwrap().contains(method),
            "{row}: {options:?}"
        );
        if method == "GET" {
            let head = service.ask("HEAD", &path, "", "");
            assert_eq!((head.status, head.header("content-type")), (200, Some("application/json")), "{row}");
        }
    }
    let (method, path) = last.unwrap();
    let answer = service.ask(method, &format!("/rest{path}"), "", "");
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("0")));
    assert!(service.ends_well());
}
