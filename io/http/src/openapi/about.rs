//! The parts of a call's description: its texts, its parameters, its input and output.

use serde_json::{Value, json};

pub(super) struct CallDescription {
    pub tag: &'static str,
    pub summary: &'static str,
    /// Further description; may be empty.
    pub more: &'static str,
    /// Names of the variable segments of the path, in their order.
    pub path: &'static [ParamSpec],
    pub query: &'static [ParamSpec],
    pub headers: &'static [ParamSpec],
    pub input: Option<RequestSpec>,
    pub output: ResponseSpec,
    /// Statuses of refusals beyond those that every such call has.
    pub refusals: &'static [u16],
    pub has_etag: bool,
}

pub(super) struct ParamSpec {
    pub name: &'static str,
    pub about: &'static str,
    pub required: bool,
    pub kind: ParamKind,
}

/// Type of a parameter, with an example each.
pub(super) enum ParamKind {
    Text(&'static str),
    /// Any text, also one that has no meaning to us.
    Any(&'static str),
    /// The only value it may have.
    Word(&'static str),
    /// A number, with its minimum and an example.
    Count(u64, u64),
}

impl ParamSpec {
    pub(super) fn schema(&self) -> Value {
        match self.kind {
            ParamKind::Text(_) => json!({ "type": "string", "minLength": 1 }),
            ParamKind::Any(_) => json!({ "type": "string" }),
            ParamKind::Word(word) => json!({ "type": "string", "enum": [word] }),
            ParamKind::Count(min, _) => json!({ "type": "integer", "minimum": min }),
        }
    }

    pub(super) fn example(&self) -> Value {
        match self.kind {
            ParamKind::Text(example) | ParamKind::Any(example) | ParamKind::Word(example) => example.into(),
            ParamKind::Count(_, example) => example.into(),
        }
    }
}

pub(super) struct RequestSpec {
    pub schema: SchemaRef,
    pub example: Value,
}

pub(super) enum ResponseSpec {
    Empty,
    /// The response to requests that write orders.
    Order,
    Json(SchemaRef, Value),
    /// The same in further formats, of which the client selects one.
    Rows(SchemaRef, Value),
    /// The response to an operator's directives.
    Confirmation,
    /// Text of this media type.
    Text(&'static str),
}

pub(super) enum SchemaRef {
    One(&'static str),
    List(&'static str),
    Plain(Value),
}

/// Groups of calls, in the order they are shown.
pub(super) const TAGS: [(&str, &str); 9] = [
    (ORDERS, "Orders: submitted, modified, cancelled, read."),
    (POSITIONS, "Positions, transactions, cash."),
    (MARKET, "Market data: subscriptions, bars, ticks and quotes."),
    (REFERENCE, "Securities, families, exchanges, accounts. Answers carry an ETag."),
    (STRATEGIES, "Strategies and their phases."),
    (RISK, "Limits, switches and restrictions that orders must pass."),
    (SERVICE, "The service itself."),
    (HEALTH, "For operators and their machines."),
    (PAGES, "Pages and this description."),
];

pub(super) const ORDERS: &str = "Orders";
pub(super) const POSITIONS: &str = "Positions and cash";
pub(super) const MARKET: &str = "Market data";
pub(super) const REFERENCE: &str = "Reference data";
pub(super) const STRATEGIES: &str = "Strategies";
pub(super) const RISK: &str = "Risk";
pub(super) const SERVICE: &str = "Service";
pub(super) const HEALTH: &str = "Health";
pub(super) const PAGES: &str = "Pages";

pub(super) const LIMIT: ParamSpec = ParamSpec {
    name: "limit",
    about: "Maximum number of rows.",
    required: false,
    kind: ParamKind::Count(1, 100),
};
pub(super) const ACCOUNT: ParamSpec = ParamSpec {
    name: "accountId",
    about: "The account, where it is ambiguous.",
    required: false,
    kind: ParamKind::Count(0, 1),
};
pub(super) const HANDLE: ParamSpec = ParamSpec {
    name: "handle",
    about: "The order, where several open ones have the id: as the refusal lists it.",
    required: false,
    kind: ParamKind::Text("72057594037927936"),
};
pub(super) const STRATEGY_ID: ParamSpec = ParamSpec {
    name: "strategyId",
    about: "The strategy of the orders.",
    required: false,
    kind: ParamKind::Count(0, 1),
};
pub(super) const STRATEGY_NAME: ParamSpec = ParamSpec {
    name: "strategyName",
    about: "The name of the strategy, instead of its id.",
    required: false,
    kind: ParamKind::Text("SERVER"),
};
pub(super) const SECURITY_ID: ParamSpec = ParamSpec {
    name: "securityId",
    about: "The security of the orders.",
    required: false,
    kind: ParamKind::Count(0, 1),
};
pub(super) const SIDE: ParamSpec = ParamSpec {
    name: "side",
    about: "The side of the orders: BUY or SELL.",
    required: false,
    kind: ParamKind::Text("BUY"),
};
pub(super) const SOURCE: ParamSpec = ParamSpec {
    name: "source",
    about: "What sent the orders: REST, FIX, STRATEGY or SERVER.",
    required: false,
    kind: ParamKind::Text("FIX"),
};
pub(super) const ALL_ORDERS: ParamSpec = ParamSpec {
    name: "all",
    about: "Selects all orders, or all that the other parameters select.",
    required: false,
    kind: ParamKind::Word("true"),
};
pub(super) const OF_SECURITY: ParamSpec = ParamSpec {
    name: "securityId",
    about: "The id of the security.",
    required: true,
    kind: ParamKind::Count(0, 1),
};
pub(super) const OF_SECURITIES: ParamSpec = ParamSpec {
    name: "securityId",
    about: "Ids of securities, with commas between them; without it, all that have ever had a price.",
    required: false,
    kind: ParamKind::Text("1,2"),
};
pub(super) const SINCE: ParamSpec = ParamSpec {
    name: "since",
    about: "The `seq` of the answer before, to get only what has changed.",
    required: false,
    kind: ParamKind::Count(0, 17),
};
pub(super) const INTERVAL: ParamSpec = ParamSpec {
    name: "interval",
    about: "Length of the bars: 1s, 1m (the default) or 1d, a trading day of the exchange.",
    required: false,
    kind: ParamKind::Text("1m"),
};
pub(super) const FROM: ParamSpec = ParamSpec {
    name: "from",
    about: "Begin of the range, as RFC 3339 or as a date in UTC.",
    required: false,
    kind: ParamKind::Text("2026-11-14T09:30:00Z"),
};
pub(super) const TO: ParamSpec = ParamSpec {
    name: "to",
    about: "End of the range, which is not part of it.",
    required: false,
    kind: ParamKind::Text("2026-11-14T16:00:00Z"),
};
pub(super) const PAGE_LIMIT: ParamSpec = ParamSpec {
    name: "limit",
    about: "Rows of a page, at most 10000; 1000 without it.",
    required: false,
    kind: ParamKind::Count(1, 100),
};
pub(super) const RETURN: ParamSpec = ParamSpec {
    name: "return",
    about: "`order` requests the order in the response, as the shard has accepted it.",
    required: false,
    kind: ParamKind::Word("order"),
};
pub(super) const PREFER: ParamSpec = ParamSpec {
    name: "Prefer",
    about: "`return=representation` requests the order in the response.",
    required: false,
    kind: ParamKind::Any("return=representation"),
};
pub(super) const INT_ID: ParamSpec = ParamSpec {
    name: "intId",
    about: "Any id the order has had.",
    required: true,
    kind: ParamKind::Text("R1-1"),
};
pub(super) const SESSION_ID: ParamSpec = ParamSpec {
    name: "id",
    about: "As the list of sessions has it.",
    required: true,
    kind: ParamKind::Text("stomp-gateway-0-1"),
};
pub(super) const POSITION_ID: ParamSpec =
    ParamSpec { name: "id", about: "The position's id.", required: true, kind: ParamKind::Count(0, 1) };
pub(super) const DAY: ParamSpec = ParamSpec {
    name: "day",
    about: "Only of this trading day; absent: of the running one.",
    required: false,
    kind: ParamKind::Text("2026-11-13"),
};

pub(super) const FROM_DAY: ParamSpec = ParamSpec {
    name: "from",
    about: "The first trading day; absent: the oldest that is kept.",
    required: false,
    kind: ParamKind::Text("2026-11-02"),
};
pub(super) const TO_DAY: ParamSpec = ParamSpec {
    name: "to",
    about: "The last trading day; absent: the running one.",
    required: false,
    kind: ParamKind::Text("2026-11-13"),
};

pub(super) const STRATEGY: ParamSpec = ParamSpec {
    name: "strategy",
    about: "Only of this strategy.",
    required: false,
    kind: ParamKind::Text("PAIRS"),
};

pub(super) const fn id(about: &'static str) -> ParamSpec {
    ParamSpec { name: "id", about, required: true, kind: ParamKind::Count(0, 1) }
}

pub(super) fn plain(tag: &'static str, summary: &'static str, output: ResponseSpec) -> CallDescription {
    CallDescription {
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

pub(super) fn reference(summary: &'static str, output: ResponseSpec) -> CallDescription {
    CallDescription { has_etag: true, ..plain(REFERENCE, summary, output) }
}

/// Describes a call with input that shards may refuse.
pub(super) fn write(
    tag: &'static str,
    summary: &'static str,
    input: Option<RequestSpec>,
    output: ResponseSpec,
) -> CallDescription {
    CallDescription { input, refusals: &[409, 422], ..plain(tag, summary, output) }
}

pub(super) fn text_list(example: Value) -> ResponseSpec {
    ResponseSpec::Json(SchemaRef::Plain(json!({ "type": "array", "items": { "type": "string" } })), example)
}

pub(super) fn text(example: &str) -> ResponseSpec {
    ResponseSpec::Json(SchemaRef::Plain(json!({ "type": "string" })), example.into())
}

pub(super) fn input(schema: &'static str, example: Value) -> Option<RequestSpec> {
    Some(RequestSpec { schema: SchemaRef::One(schema), example })
}

pub(super) fn media(content_type: &'static str) -> &'static str {
    content_type.split(';').next().unwrap_or(content_type)
}

/// Returns the schema of the bare number, or of an object with nothing else in it.
pub(super) fn number_or(name: &str, kind: &str) -> SchemaRef {
    let number = json!({ "type": kind, "minimum": 0 });
    let object = json!({ "type": "object", "required": [name], "additionalProperties": false, "properties": { (name): number } });
    SchemaRef::Plain(json!({ "oneOf": [number, object] }))
}

pub(super) fn ready() -> SchemaRef {
    let either = ["Ready", "Brief"].map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    SchemaRef::Plain(json!({ "anyOf": either }))
}
