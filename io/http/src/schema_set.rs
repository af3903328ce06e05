//! The schemas of value types, collected for the API description.

use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Schemas collected so far. Those of responses never have `null`: absent values are omitted.
#[derive(Default)]
pub(crate) struct SchemaSet {
    schemas: Map<String, Value>,
}

impl SchemaSet {
    /// Adds the schema of a response.
    pub(crate) fn add_response<T: ToSchema>(&mut self) {
        self.add::<T>(without_null);
    }

    /// Adds the schema of a request, where `null` means absent.
    pub(crate) fn add_request<T: ToSchema>(&mut self) {
        self.add::<T>(|schema| schema);
    }

    /// Adds a schema that is written by hand.
    pub(crate) fn insert(&mut self, name: &str, schema: Value) {
        self.schemas.insert(name.to_string(), schema);
    }

    pub(crate) fn into_json(self) -> Value {
        Value::Object(self.schemas)
    }

    fn add<T: ToSchema>(&mut self, change: impl Fn(Value) -> Value) {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        for (name, schema) in found {
            let schema = serde_json::to_value(schema).expect("a schema is JSON");
            self.schemas.entry(name).or_insert_with(|| change(schema));
        }
    }
}

/// Returns a schema without `null`, in whichever form it was allowed.
fn without_null(schema: Value) -> Value {
    let is_null = |part: &Value| part.get("type").is_some_and(|kind| kind == "null") || part == "null";
    match schema {
        Value::Object(mut object) => {
            if let Some(Value::Array(kinds)) = object.get_mut("type") {
                kinds.retain(|kind| !is_null(kind));
                if let [one] = &kinds[..] {
                    let one = one.clone();
                    object.insert("type".to_string(), one);
                }
            }
            if let Some(Value::Array(parts)) = object.get_mut("oneOf") {
                parts.retain(|part| !is_null(part));
                if let [Value::Object(one)] = &parts[..] {
                    let one = one.clone();
                    object.remove("oneOf");
                    object.extend(one);
                }
            }
            Value::Object(object.into_iter().map(|(name, value)| (name, without_null(value))).collect())
        }
        Value::Array(parts) => Value::Array(parts.into_iter().map(without_null).collect()),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}
