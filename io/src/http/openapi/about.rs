//! The parts of a call's description: its texts, its parameters, its input and output.

use serde_json::{Value, json};

pub struct About {
    pub tag: &'static str,
    pub summary: &'static str,
    /// Further description; may be empty.
    pub more: &'static str,
    /// Names of the variable segments of the path, in their order.
    pub path: &'static [Param],
    pub query: &'static [Param],
    pub headers: &'static [Param],
    pub input: Option<Input>,
    pub output: Output,
    /// Statuses of refusals beyond those that every such call has.
    pub refusals: &'static [u16],
    pub has_etag: bool,
}

pub struct Param {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    pub kind: Kind,
}

/// Type of a parameter, with an example each.
pub enum Kind {
    Text(&'static str),
    /// Any text, also one that has no meaning to us.
    Any(&'static str),
    /// A number, with its minimum and an example.
    Count(u64, u64),
}

impl Param {
    pub fn schema(&self) -> Value {
        match self.kind {
            Kind::Text(_) => json!({ "type": "string", "minLength": 1 }),
            Kind::Any(_) => json!({ "type": "string" }),
            Kind::Count(min, _) => json!({ "type": "integer", "minimum": min }),
        }
    }

    pub fn example(&self) -> Value {
        match self.kind {
            Kind::Text(example) | Kind::Any(example) => example.into(),
            Kind::Count(_, example) => example.into(),
        }
    }
}

pub struct Input {
    pub schema: Shape,
    pub example: Value,
}

pub enum Output {
    Empty,
    /// The response to requests that write orders.
    Order,
    Json(Shape, Value),
    /// The response to an operator's directives.
    Confirmation,
    /// Text of this media type.
    Text(&'static str),
}

pub enum Shape {
    One(&'static str),
    List(&'static str),
    Plain(Value),
}

/// Groups of calls, in the order they are shown.
pub const TAGS: [(&str, &str); 9] = [
    (ORDERS, "Orders: submitted, modified, cancelled, read."),
    (POSITIONS, "Positions, transactions, cash."),
    (MARKET, "Market data subscriptions."),
    (REFERENCE, "Securities, families, exchanges, accounts. Answers carry an ETag."),
    (STRATEGIES, "Strategies and their lives."),
    (RISK, "What stands between an order and its venue."),
    (SERVICE, "The service itself."),
    (HEALTH, "For operators and their machines."),
    (PAGES, "Pages and this description."),
];

pub const ORDERS: &str = "Orders";
pub const POSITIONS: &str = "Positions and cash";
pub const MARKET: &str = "Market data";
pub const REFERENCE: &str = "Reference data";
pub const STRATEGIES: &str = "Strategies";
pub const RISK: &str = "Risk";
pub const SERVICE: &str = "Service";
pub const HEALTH: &str = "Health";
pub const PAGES: &str = "Pages";

pub const LIMIT: Param = Param {
    name: "limit",
    about: "The most rows that are wanted.",
    required: false,
    kind: Kind::Count(1, 100),
};
pub const ACCOUNT: Param = Param {
    name: "accountId",
    about: "Which account is meant, where that is not clear.",
    required: false,
    kind: Kind::Count(0, 1),
};
pub const HANDLE: Param = Param {
    name: "handle",
    about: "Which order is meant, where several open ones have the id: as the refusal lists it.",
    required: false,
    kind: Kind::Text("72057594037927936"),
};
pub const PREFER: Param = Param {
    name: "Prefer",
    about: "`return=representation` asks for the order as it stands then.",
    required: false,
    kind: Kind::Any("return=representation"),
};
pub const INT_ID: Param =
    Param { name: "intId", about: "Any id the order has had.", required: true, kind: Kind::Text("R1-1") };
pub const SESSION_ID: Param = Param {
    name: "id",
    about: "As the list of sessions has it.",
    required: true,
    kind: Kind::Text("stomp-gateway-0-1"),
};
pub const POSITION_ID: Param =
    Param { name: "id", about: "The position's id.", required: true, kind: Kind::Count(0, 1) };
pub const STRATEGY: Param =
    Param { name: "strategy", about: "Only of this strategy.", required: false, kind: Kind::Text("PAIRS") };

pub const fn id(about: &'static str) -> Param {
    Param { name: "id", about, required: true, kind: Kind::Count(0, 1) }
}

pub fn plain(tag: &'static str, summary: &'static str, output: Output) -> About {
    About {
        tag,
        summary,
        more: "",
        path: &[],
        query: &[],
        headers: &[],
        input: None,
        output,
        refusals: &[],
        has_etag: false,
    }
}

pub fn reference(summary: &'static str, output: Output) -> About {
    About { has_etag: true, ..plain(REFERENCE, summary, output) }
}

/// Describes a call with input that shards may refuse.
pub fn write(tag: &'static str, summary: &'static str, input: Option<Input>, output: Output) -> About {
    About { input, refusals: &[409, 422], ..plain(tag, summary, output) }
}

pub fn text_list(example: Value) -> Output {
    Output::Json(Shape::Plain(json!({ "type": "array", "items": { "type": "string" } })), example)
}

pub fn text(example: &str) -> Output {
    Output::Json(Shape::Plain(json!({ "type": "string" })), example.into())
}

pub fn input(schema: &'static str, example: Value) -> Option<Input> {
    Some(Input { schema: Shape::One(schema), example })
}

pub fn media(content_type: &'static str) -> &'static str {
    content_type.split(';').next().unwrap_or(content_type)
}

/// Returns the schema of the bare number, or of an object with nothing else in it.
pub fn number_or(name: &str, kind: &str) -> Shape {
    let number = json!({ "type": kind, "minimum": 0 });
    let object = json!({ "type": "object", "required": [name], "additionalProperties": false, "properties": { (name): number } });
    Shape::Plain(json!({ "oneOf": [number, object] }))
}

pub fn ready() -> Shape {
    let either = ["Ready", "Brief"].map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    Shape::Plain(json!({ "anyOf": either }))
}
