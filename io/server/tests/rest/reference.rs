//! Reference data: every list, every single object, unknown objects, search, and revalidation of
//! cached responses.

use serde_json::json;

use crate::service::{RestService, column};

#[test]
fn accounts_are_those_of_the_specification() {
    let mut service = RestService::start("accounts");
    let accounts = service.read("/rest/account");
    assert_eq!(
        accounts[0],
        json!({ "id": 1, "name": "NEWYORK", "active": true, "adapterType": "SIM", "broker": "SIM" })
    );
    assert_eq!(column(&accounts, "name"), ["NEWYORK", "GLOBAL", "RESERVE"]);
    assert_eq!(service.get("/rest/account").header("access-control-allow-origin"), Some("*"));
    assert_eq!(service.read("/rest/account/RESERVE")["active"], false);
    assert_eq!(service.read("/rest/account/GLOB%41L")["id"], 2);
    service.refuse("GET", "/rest/account/newyork", "", 404, "unknown-account");
    service.refuse("GET", "/rest/account/%FF", "", 400, "bad-path");
    service.refuse("GET", "/rest/account/a%2", "", 400, "bad-path");
    service.refuse("POST", "/rest/account", "", 405, "method-not-allowed");
}

#[test]
fn securities_show_the_constraints_of_orders() {
    let mut service = RestService::start("securities");
    let all = service.read("/rest/security");
    assert_eq!(all.as_array().unwrap().len(), 27);
    assert_eq!(
        service.read("/rest/security/20"),
        json!({
            "id": 20, "symbol": "AAPL280121C00250000", "description": "Apple Jan 2028 250 Call", "type": "OPTION",
            "securityFamilyId": 2, "exchangeId": 1, "currency": "USD", "underlyingId": 1, "expiration": "2028-01-21",
            "strike": 250, "optionType": "CALL", "tickSize": 0.05, "lotSize": 1, "contractSize": 100, "tradeable": true
        })
    );
    assert_eq!(service.read("/rest/security/1")["isin"], "US0378331005");
    assert_eq!(service.read("/rest/security?limit=3").as_array().unwrap().len(), 3);
    for id in ["0", "11", "abc", "-1", "99999999999999999999", "1.0", "%31x"] {
        service.refuse("GET", &format!("/rest/security/{id}"), "", 404, "unknown-security");
    }
    service.refuse("GET", "/rest/security/", "", 404, "not-found");
    service.refuse("GET", "/rest/security?limit=0", "", 400, "bad-query");
    service.refuse("GET", "/rest/security?limt=5", "", 400, "bad-query");
    let families = service.read("/rest/security-family");
    assert_eq!(families.as_array().unwrap().len(), 13);
    assert_eq!(
        service.read("/rest/security-family/3"),
        json!({
            "id": 3, "name": "E-mini S&P 500", "symbolRoot": "ES", "exchangeId": 2, "currency": "USD", "contractSize": 50,
            "tickSize": 0.25, "lotSize": 1, "commission": 2.25, "tradeable": true, "expirable": true
        })
    );
    service.refuse("GET", "/rest/security-family/99", "", 404, "unknown-family");
}

#[test]
fn a_search_finds_what_its_words_and_fields_say() {
    let mut service = RestService::start("search");
    let mut found = |query: &str| {
        let rows = service.read(&format!("/rest/security.search?query={query}"));
        column(&rows, "symbol").into_iter().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(found("").len(), 27);
    assert_eq!(found("apple%20inc"), ["AAPL"]);
    assert_eq!(found("us0378331005"), ["AAPL"]);
    assert_eq!(found("type:FOREX+currency:JPY"), ["USDJPY"]);
    assert_eq!(found("type:future+expires%3C2027-12-01"), ["CLZ7"]);
    assert_eq!(found("underlying:AAPL+option:PUT"), ["AAPL280121P00200000"]);
    assert_eq!(found("exchange:XCME+gold"), ["GCZ7"]);
    assert_eq!(found("nothing-of-the-kind"), [""; 0]);
    assert_eq!(found("type:STOCK&limit=2"), ["AAPL", "MSFT"]);
    for (query, place) in [("type:SHARE", 6), ("apple%20tpye:STOCK", 7), ("%22open", 1)] {
        let path = format!("/rest/security.search?query={query}");
        let problem = service.refuse("GET", &path, "", 400, "bad-search");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("character {place}:")), "{detail}");
    }
    let long = "a".repeat(300);
    service.refuse("GET", &format!("/rest/security.search?query={long}"), "", 400, "bad-search");
    assert_eq!(service.read("/rest/security.search").as_array().unwrap().len(), 27);
}

#[test]
fn a_currency_pair_needs_both_its_currencies() {
    let mut service = RestService::start("forex");
    let pair = service.read("/rest/forex?baseCurrency=EUR&transactionCurrency=USD");
    assert_eq!(
        (&pair["symbol"], &pair["baseCurrency"], &pair["transactionCurrency"]),
        (&json!("EURUSD"), &json!("EUR"), &json!("USD"))
    );
    assert_eq!(pair["type"], "FOREX");
    service.refuse("GET", "/rest/forex?baseCurrency=EUR", "", 400, "bad-query");
    service.refuse("GET", "/rest/forex?transactionCurrency=EUR", "", 400, "bad-query");
    service.refuse("GET", "/rest/forex?baseCurrency=&transactionCurrency=USD", "", 400, "bad-query");
    service.refuse("GET", "/rest/forex?baseCurrency=USD&transactionCurrency=EUR", "", 404, "unknown-pair");
    service.refuse(
        "GET",
        "/rest/forex?baseCurrency=EUR&baseCurrency=USD&transactionCurrency=USD",
        "",
        400,
        "bad-query",
    );
}

#[test]
fn exchanges_and_strategies_are_listed() {
    let mut service = RestService::start("exchanges");
    let exchanges = service.read("/rest/exchange");
    assert_eq!(
        exchanges[0],
        json!({
            "id": 1, "name": "NASDAQ", "mic": "XNAS", "timeZone": "America/New_York", "open": "09:30:00", "close": "16:00:00",
            "adapterType": "SIM"
        })
    );
    assert_eq!(
        column(&exchanges, "close"),
        ["16:00:00", "16:00:00", "00:00:00"],
        "times that every clock has"
    );
    let strategies = service.read("/rest/strategy");
    assert_eq!(
        strategies[0],
        json!({ "id": 0, "name": "SERVER", "autoActivate": true, "phase": "RUNNING", "mode": "REAL_TIME" })
    );
    assert_eq!(column(&strategies, "phase"), ["RUNNING"; 4]);
}

#[test]
fn a_cached_response_is_not_sent_again() {
    let mut service = RestService::start("etag");
    let paths = [
        "/rest/account",
        "/rest/security",
        "/rest/security/1",
        "/rest/security-family",
        "/rest/exchange",
        "/rest/security.search?query=a",
    ];
    let mut tags = Vec::new();
    for path in paths {
        let first = service.get(path);
        let etag = first.header("etag").unwrap().to_string();
        for header in [etag.clone(), format!("W/{etag}"), format!("\"x\", {etag}"), "*".to_string()] {
            let again = service.ask("GET", path, &format!("If-None-Match: {header}\r\n"), "");
            assert_eq!(
                (again.status, again.body.as_str(), again.header("etag")),
                (304, "", Some(etag.as_str())),
                "{path}"
            );
        }
        let other = service.ask("GET", path, "If-None-Match: \"0\"\r\n", "");
        assert_eq!((other.status, &other.body), (200, &first.body));
        tags.push(etag);
    }
    tags.dedup();
    assert_eq!(tags.len(), 1, "one set of reference data, one name");
    assert_eq!(service.get("/rest/strategy").header("etag"), None, "phases change");
}
