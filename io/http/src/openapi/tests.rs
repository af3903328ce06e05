use std::collections::BTreeSet;

use hyper::StatusCode;
use pitlane_protocols::rest::{
    self, AnyOrderVO, LimitOrderChangeVO, LimitOrderVO, LimitsVO, MarketDataSubscriptionVO,
    MarketOrderChangeVO, MarketOrderVO, PhaseVO, RatesVO, StopLimitOrderChangeVO, StopLimitOrderVO,
    StopOrderChangeVO, StopOrderVO, TransactionRequestVO,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::problem::Problem;
use super::*;

fn read() -> Value {
    serde_json::from_slice(&document(true)).unwrap()
}

/// Returns every method of every path of the document.
fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    let items = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (path.clone(), method.to_ascii_uppercase(), operation.clone()))
    });
    items.collect()
}

#[test]
fn every_route_is_described_and_everything_described_is_a_route() {
    let document = read();
    let described: BTreeSet<(String, String)> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| {
            let bare = path.split('/').map(|segment| if segment.starts_with('{') { "{}" } else { segment });
            (bare.collect::<Vec<_>>().join("/"), method)
        })
        .collect();
    let routed: BTreeSet<(String, String)> =
        routes::all().map(|(path, method, _, _)| (path.to_string(), method.method().to_string())).collect();
    assert_eq!(described, routed);
}

#[test]
fn a_description_has_all_that_a_client_must_know() {
    let document = read();
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let what = format!("{method} {path}");
        assert!(ids.insert(operation["operationId"].to_string()), "{what}");
        assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 5), "{what}");
        assert!(
            document["tags"].as_array().unwrap().iter().any(|tag| tag["name"] == operation["tags"][0]),
            "{what}"
        );
        let names: Vec<&str> =
            path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect();
        let given = operation["parameters"].as_array().cloned().unwrap_or_default();
        let in_path: Vec<&str> = given
            .iter()
            .filter(|param| param["in"] == "path")
            .map(|param| param["name"].as_str().unwrap())
            .collect();
        assert_eq!(in_path, names, "{what}");
        assert!(
            given.iter().all(|param| param["description"].is_string() && !param["example"].is_null()),
            "{what}"
        );
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key("200") && responses.contains_key("default"), "{what}");
        let is_public = operation["security"] == serde_json::json!([{}]);
        assert_eq!(responses.contains_key("401"), !is_public, "{what}");
        for (status, response) in
            responses.iter().filter(|(status, _)| status.as_str() >= "400" && *status != "default")
        {
            let content = &response["content"]["application/problem+json"];
            assert_eq!(content["example"]["status"].to_string(), *status, "{what}");
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(name) = object.get("$ref").and_then(Value::as_str) {
                found.insert(name.strip_prefix("#/components/schemas/").unwrap().to_string());
            }
            object.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_referenced_schema_exists_and_every_schema_is_referenced() {
    let document = read();
    let mut named = BTreeSet::new();
    references(&document, &mut named);
    let there: BTreeSet<String> =
        document["components"]["schemas"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(named, there);
}

#[test]
fn values_in_responses_are_never_null() {
    let schemas = read()["components"]["schemas"].clone();
    for name in ["OrderVO", "SecurityVO", "PositionVO", "Ready"] {
        assert!(!schemas[name].to_string().contains("null"), "{}", schemas[name]);
    }
    assert!(schemas["LimitOrderVO"].to_string().contains("null"), "in a request it is as good as nothing");
    assert_eq!(schemas["LimitOrderVO"]["additionalProperties"], false);
    assert_eq!(schemas["OrderVO"]["properties"]["limit"]["$ref"], "#/components/schemas/Decimal");
    assert!(
        schemas["OrderVO"]["properties"]["quantity"]["description"].is_string(),
        "comments become descriptions"
    );
}

#[test]
fn the_schema_of_a_problem_matches_its_json() {
    let document = read();
    let schema = &document["components"]["schemas"]["Problem"];
    let text = |list: &Value| BTreeSet::from_iter(list.as_array().unwrap().iter().map(Value::to_string));
    let written = |problem: &Problem| {
        let body: Value = serde_json::from_slice(&problem.to_json("/", "1")).unwrap();
        let names = body.as_object().unwrap().keys().map(|name| Value::from(name.as_str()));
        BTreeSet::from_iter(names.map(|name| name.to_string()))
    };
    let plain = Problem::new(StatusCode::NOT_FOUND, "not-found", "nothing");
    assert_eq!(written(&plain), text(&schema["required"]));
    let names = schema["properties"].as_object().unwrap().keys().map(|name| Value::from(name.as_str()));
    let full = plain.with("field", "limit").with("intId", "a").with("candidates", Vec::<Value>::new());
    assert_eq!(written(&full), BTreeSet::from_iter(names.map(|name| name.to_string())));
}

fn takes<T: DeserializeOwned>(example: &Value) -> bool {
    rest::read::<T>(example.to_string().as_bytes()).is_ok()
}

#[test]
fn every_example_of_a_body_is_accepted() {
    for (path, method, operation) in operations(&read()) {
        let Some(content) = operation["requestBody"]["content"].get("application/json") else { continue };
        let example = &content["example"];
        let schema = content["schema"]["$ref"].as_str().and_then(|name| name.rsplit('/').next());
        let taken = match schema {
            Some("MarketOrderVO") => takes::<MarketOrderVO>(example),
            Some("LimitOrderVO") => takes::<LimitOrderVO>(example),
            Some("StopOrderVO") => takes::<StopOrderVO>(example),
            Some("StopLimitOrderVO") => takes::<StopLimitOrderVO>(example),
            Some("MarketOrderChangeVO") => takes::<MarketOrderChangeVO>(example),
            Some("LimitOrderChangeVO") => takes::<LimitOrderChangeVO>(example),
            Some("StopOrderChangeVO") => takes::<StopOrderChangeVO>(example),
            Some("StopLimitOrderChangeVO") => takes::<StopLimitOrderChangeVO>(example),
            Some("MarketDataSubscriptionVO") => takes::<MarketDataSubscriptionVO>(example),
            Some("TransactionRequestVO") => takes::<TransactionRequestVO>(example),
            Some("AnyOrderVO") => takes::<AnyOrderVO>(example),
            Some("LimitsVO") => takes::<LimitsVO>(example),
            Some("RatesVO") => takes::<RatesVO>(example),
            Some("PhaseVO") => takes::<PhaseVO>(example),
            Some(other) => panic!("no schema refers to {other}"),
            None => rest::quantity(example.to_string().as_bytes()).is_ok(),
        };
        assert!(taken, "{method} {path}: {example}");
    }
}

#[test]
fn without_required_login_the_document_requires_none() {
    let document: Value = serde_json::from_slice(&document(false)).unwrap();
    assert_eq!(document["security"][0], serde_json::json!({}));
    assert!(document["paths"]["/rest/account"]["get"]["security"].is_null());
}
