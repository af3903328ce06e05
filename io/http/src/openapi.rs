//! `/openapi.json`: the API described for machines, and for readers at `/docs`.
//!
//! ```text
//! routes: paths, methods, roles ─┐
//! calls: what each is for ───────┼─► document
//! schemas: the value types ──────┘
//! ```
//!
//! Every call of the table must be described, or [`calls`] does not compile; a description without
//! a route is impossible.

mod about;
mod calls;
mod examples;
mod orders;
mod risk;
mod schemas;

use bytes::Bytes;
use pitlane_auth::Role;
use pitlane_history::RowFormat;
use serde_json::{Map, Value, json};

use self::about::{CallDescription, ParamSpec, RequestSpec, ResponseSpec, SchemaRef};
use super::api_call::ApiCall;
use super::history::{FORMATS, media_type};
use super::routes::{self, RouteMethod};

/// Refusals that every call may answer with, whatever it is about.
const ALWAYS: [u16; 4] = [400, 421, 429, 503];

/// Returns the whole document. Where no login is required, a login is described as possible and not
/// needed.
pub(crate) fn document(login_required: bool) -> Bytes {
    let mut paths = Map::new();
    for (path, method, role, call) in routes::all() {
        let about = calls::about(call);
        let item = paths.entry(named(path, &about)).or_insert_with(|| json!({}));
        item[method.method().to_ascii_lowercase()] =
            operation(path, method, role, call, &about, login_required);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Pitlane",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "REST interface of a low-latency trading platform. Prices and quantities are exact decimals, times are RFC 3339 in UTC, \
                absent values are left out. Errors are application/problem+json with a stable code. Unknown members of a body and unknown \
                parameters are refused.",
        },
        "servers": [{ "url": "/" }],
        "tags": about::TAGS.map(|(name, text)| json!({ "name": name, "description": text })),
        "security": security(login_required),
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "basic": { "type": "http", "scheme": "basic", "description": "A user and a password, or a token under its name." },
                "bearer": { "type": "http", "scheme": "bearer", "description": "A token made by `pitlane token create`." },
            },
        },
    });
    document.to_string().into()
}

fn security(login_required: bool) -> Value {
    match login_required {
        true => json!([{ "basic": [] }, { "bearer": [] }]),
        false => json!([{}, { "basic": [] }, { "bearer": [] }]),
    }
}

/// Returns the path with names for its variable segments.
fn named(path: &str, about: &CallDescription) -> String {
    about
        .path
        .iter()
        .fold(path.to_string(), |path, param| path.replacen("{}", &format!("{{{}}}", param.name), 1))
}

fn operation(
    path: &str,
    method: RouteMethod,
    role: Role,
    call: ApiCall,
    about: &CallDescription,
    login_required: bool,
) -> Value {
    let mut operation = json!({
        "operationId": operation_id(path, method),
        "tags": [about.tag],
        "summary": about.summary,
        "responses": responses(about, role, call.is_public()),
    });
    if !about.more.is_empty() {
        operation["description"] = about.more.into();
    }
    // Some paths have a fixed segment where others have the id of an order: these have no
    // parameter.
    let in_path = if path.contains("{}") { about.path } else { &[] };
    let params: Vec<Value> = [("path", in_path), ("query", about.query), ("header", about.headers)]
        .into_iter()
        .flat_map(|(location, params)| params.iter().map(move |param| parameter(location, param)))
        .collect();
    if !params.is_empty() {
        operation["parameters"] = params.into();
    }
    if let Some(RequestSpec { schema, example }) = &about.input {
        let content = json!({ "application/json": { "schema": schema_of(schema), "example": example } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    if call.is_public() {
        operation["security"] = json!([{}]);
    } else if login_required {
        operation["security"] = security(true);
    }
    if !call.is_public() {
        operation["x-role"] = role.to_string().into();
    }
    operation
}

/// Returns `get_rest_security_by` and the like: unique, since a path has a method once.
fn operation_id(path: &str, method: RouteMethod) -> String {
    let text = path.split(['/', '.', '-']).filter(|segment| !segment.is_empty());
    let text = text.map(|segment| if segment == "{}" { "by" } else { segment });
    [method.method().to_ascii_lowercase().as_str()].into_iter().chain(text).collect::<Vec<_>>().join("_")
}

fn parameter(location: &str, param: &ParamSpec) -> Value {
    json!({
        "name": param.name,
        "in": location,
        "required": location == "path" || param.required,
        "description": param.about,
        "schema": param.schema(),
        "example": param.example(),
    })
}

fn schema_of(shape: &SchemaRef) -> Value {
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    match shape {
        SchemaRef::One(name) => reference(name),
        SchemaRef::List(name) => json!({ "type": "array", "items": reference(name) }),
        SchemaRef::Plain(schema) => schema.clone(),
    }
}

fn responses(about: &CallDescription, role: Role, is_public: bool) -> Value {
    let mut responses = Map::new();
    responses.insert("200".to_string(), success(&about.output));
    if let ResponseSpec::Confirmation = about.output {
        let text = "Taken, and applied by the shards that can be reached. The others apply it when their servers are back.";
        let example = json!({ "confirmed": "SOME", "unconfirmedShards": [1] });
        responses.insert("202".to_string(), confirmation(text, &example));
    }
    let mut refusals: Vec<u16> = ALWAYS.iter().chain(about.refusals).copied().collect();
    if !is_public {
        refusals.push(401);
    }
    if role > Role::Read {
        refusals.push(403);
    }
    if !about.path.is_empty() {
        refusals.push(404);
    }
    if about.input.is_some() {
        refusals.extend([408, 413, 415]);
    }
    if about.has_etag {
        let unchanged = json!({ "description": "The client has it already: If-None-Match names its ETag." });
        responses.insert("304".to_string(), unchanged);
    }
    for status in refusals {
        responses.insert(status.to_string(), problem(status));
    }
    responses.insert("default".to_string(), problem(0));
    Value::Object(responses)
}

fn success(output: &ResponseSpec) -> Value {
    match output {
        ResponseSpec::Empty => json!({ "description": "Done." }),
        // The body is usually empty, and a description cannot express an optional body.
        ResponseSpec::Order => json!({
            "description": "Taken. Empty; an OrderVO with `?return=order` or `Prefer: return=representation`.",
            "headers": { "Location": { "description": "Where the order is read.", "schema": { "type": "string" } } },
        }),
        ResponseSpec::Json(shape, example) => json!({
            "description": "Found.",
            "content": { "application/json": { "schema": schema_of(shape), "example": example } },
        }),
        ResponseSpec::Rows(shape, example) => {
            let content = FORMATS.iter().map(|format| match format {
                RowFormat::Json => json!({ "schema": schema_of(shape), "example": example }),
                RowFormat::Csv => json!({ "schema": { "type": "string" } }),
                // Bytes have no schema.
                RowFormat::Columns(_) => json!({}),
            });
            let names = FORMATS.iter().map(|format| media_type(*format).to_string());
            let content: Map<String, Value> = names.zip(content).collect();
            json!({ "description": "Found.", "content": content })
        }
        ResponseSpec::Confirmation => {
            let example = json!({ "confirmed": "ALL", "unconfirmedShards": [] });
            confirmation("Applied by every shard.", &example)
        }
        ResponseSpec::Text(media) => json!({
            "description": "Text.",
            "content": { (*media): { "schema": { "type": "string" } } },
        }),
    }
}

fn confirmation(text: &str, example: &Value) -> Value {
    let schema = schema_of(&SchemaRef::One("ConfirmationVO"));
    json!({
        "description": text,
        "content": { "application/json": { "schema": schema, "example": example } },
    })
}

fn problem(status: u16) -> Value {
    let text = match status {
        400 => "The request is malformed; the detail says where.",
        401 => "A login is needed, or it is wrong.",
        403 => {
            "The role is too low, the strategy is not the login's, or the request comes from a page of another origin."
        }
        404 => "The resource does not exist.",
        408 => "The body did not arrive in time.",
        409 => "Not possible in the current state.",
        413 => "The body is too large.",
        415 => "The body is not application/json.",
        421 => "The Host is not one of this server.",
        422 => "Refused by validation or risk; nothing was sent to a venue.",
        429 => "Too many requests, or too many failed logins; Retry-After says how long to wait.",
        503 => "Starting, stopping or full; Retry-After says how long to wait.",
        _ => "Any other refusal.",
    };
    let schema = schema_of(&SchemaRef::One("Problem"));
    let mut content = json!({ "schema": schema });
    if status != 0 {
        content["example"] = schemas::problem_example(status);
    }
    let mut problem = json!({ "description": text, "content": { "application/problem+json": content } });
    if matches!(status, 429 | 503) {
        let header =
            json!({ "description": "Seconds to wait.", "schema": { "type": "integer", "minimum": 0 } });
        problem["headers"] = json!({ "Retry-After": header });
    }
    problem
}

#[cfg(test)]
mod tests;
