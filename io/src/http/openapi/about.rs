//! What each call is for, in words and examples. A call that is not here does not compile.

use pitlane_engine::terms::OrderKind;
use serde_json::{Value, json};

use super::super::routes::Call;
use crate::metrics::exposition;

pub struct About {
    pub tag: &'static str,
    pub summary: &'static str,
    /// More of it; may be empty.
    pub more: &'static str,
    /// Names for what varies in the path, in its order.
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

/// With an example each.
pub enum Kind {
    Text(&'static str),
    /// Also what means nothing to us.
    Any(&'static str),
    /// Not below this.
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
    /// What order writes answer.
    Order,
    Json(Shape, Value),
    /// Of this media type.
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

const ORDERS: &str = "Orders";
const POSITIONS: &str = "Positions and cash";
const MARKET: &str = "Market data";
const REFERENCE: &str = "Reference data";
const STRATEGIES: &str = "Strategies";
const RISK: &str = "Risk";
const SERVICE: &str = "Service";
const HEALTH: &str = "Health";
const PAGES: &str = "Pages";

const LIMIT: Param = Param {
    name: "limit",
    about: "The most rows that are wanted.",
    required: false,
    kind: Kind::Count(1, 100),
};
const ACCOUNT: Param = Param {
    name: "accountId",
    about: "Which account is meant, where that is not clear.",
    required: false,
    kind: Kind::Count(0, 1),
};
const PREFER: Param = Param {
    name: "Prefer",
    about: "`return=representation` asks for the order as it stands then.",
    required: false,
    kind: Kind::Any("return=representation"),
};
const INT_ID: Param =
    Param { name: "intId", about: "Any id the order has had.", required: true, kind: Kind::Text("R1-1") };
const SESSION_ID: Param = Param {
    name: "id",
    about: "As the list of sessions has it.",
    required: true,
    kind: Kind::Text("stomp-gateway-0-1"),
};
const POSITION_ID: Param =
    Param { name: "id", about: "The position's id.", required: true, kind: Kind::Count(0, 1) };
const STRATEGY: Param =
    Param { name: "strategy", about: "Only of this strategy.", required: false, kind: Kind::Text("PAIRS") };

const fn id(about: &'static str) -> Param {
    Param { name: "id", about, required: true, kind: Kind::Count(0, 1) }
}

fn plain(tag: &'static str, summary: &'static str, output: Output) -> About {
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

fn reference(summary: &'static str, output: Output) -> About {
    About { has_etag: true, ..plain(REFERENCE, summary, output) }
}

/// A call with input that shards may refuse.
fn write(tag: &'static str, summary: &'static str, input: Option<Input>, output: Output) -> About {
    About { input, refusals: &[409, 422], ..plain(tag, summary, output) }
}

fn text_list(example: Value) -> Output {
    Output::Json(Shape::Plain(json!({ "type": "array", "items": { "type": "string" } })), example)
}

fn text(example: &str) -> Output {
    Output::Json(Shape::Plain(json!({ "type": "string" })), example.into())
}

pub fn about(call: Call) -> About {
    match call {
        Call::Home => plain(PAGES, "The page", Output::Text("text/html")),
        Call::Asset => About {
            path: &[Param {
                name: "file",
                about: "As the page names it.",
                required: true,
                kind: Kind::Text("index.js"),
            }],
            ..plain(PAGES, "A file of the page", Output::Text("*/*"))
        },
        Call::Docs => plain(PAGES, "This description for people", Output::Text("text/html")),
        Call::DocsScript => {
            plain(PAGES, "What makes the description searchable", Output::Text("text/javascript"))
        }
        Call::DocsStyle => plain(PAGES, "How the description looks", Output::Text("text/css")),
        Call::OpenApi => {
            let shape = Shape::Plain(json!({ "type": "object", "required": ["openapi", "paths"] }));
            plain(
                PAGES,
                "This description for machines",
                Output::Json(shape, json!({ "openapi": "3.1.0", "paths": {} })),
            )
        }
        Call::Live => plain(
            HEALTH,
            "Whether the process serves",
            Output::Json(Shape::One("Live"), json!({ "status": "LIVE" })),
        ),
        Call::Ready => About {
            more: "200 when orders would be taken, 503 otherwise. Without a login the body says no more than that.",
            ..plain(HEALTH, "Whether orders would be taken", Output::Json(ready(), json!({ "ready": true })))
        },
        Call::Version => {
            let example =
                json!({ "name": "pitlane", "version": "0.1.0", "formats": { "image": 1, "journal": 1 } });
            plain(HEALTH, "What was built", Output::Json(Shape::One("Version"), example))
        }
        Call::Metrics => {
            plain(HEALTH, "Counters and gauges for Prometheus", Output::Text(media(exposition::CONTENT_TYPE)))
        }
        Call::Latency => {
            let example = json!([{ "thread": "shard-0", "stage": "apply", "count": 812, "p50Ns": 310, "p90Ns": 420, "p99Ns": 900, "p999Ns": 2100, "maxNs": 8000 }]);
            plain(
                HEALTH,
                "Percentiles of each stage in each thread, over its last second with work",
                Output::Json(Shape::List("StageVO"), example),
            )
        }
        Call::BrokerMain => plain(SERVICE, "Where STOMP is spoken over TCP", text("stomp://127.0.0.1:61613")),
        Call::BrokerWs => {
            plain(SERVICE, "Where STOMP is spoken over WebSocket", text("ws://127.0.0.1:9090/stomp"))
        }
        Call::ConfigParams => {
            let shape =
                Shape::Plain(json!({ "type": "object", "additionalProperties": { "type": "string" } }));
            let example = json!({ "broker.maxRatePerConnection": "50", "service.mode": "embedded" });
            plain(SERVICE, "Every setting that holds; secrets are ***", Output::Json(shape, example))
        }
        Call::Identity => {
            let example = json!({ "name": "alice", "role": "trade" });
            plain(SERVICE, "Who one is here", Output::Json(Shape::One("IdentityVO"), example))
        }
        Call::Sessions => plain(
            SERVICE,
            "Who is connected, as of the last second",
            Output::Json(Shape::List("SessionVO"), json!([session()])),
        ),
        Call::SessionEnd => {
            About { path: &[SESSION_ID], ..plain(SERVICE, "Send a client away", Output::Empty) }
        }
        Call::SessionReset => About {
            path: &[SESSION_ID],
            more: "Whoever is logged on is logged out.",
            ..plain(SERVICE, "Have both numbers of a FIX session begin with one", Output::Empty)
        },
        Call::Rates => plain(
            SERVICE,
            "How fast market data goes over WebSocket",
            Output::Json(Shape::One("RatesVO"), rates()),
        ),
        Call::RatesChange => About {
            more: "For every connection and at once, until the next start.",
            input: Some(Input { schema: Shape::One("RatesVO"), example: rates() }),
            ..plain(SERVICE, "Change how fast market data goes over WebSocket", Output::Empty)
        },
        Call::Adapters => {
            let example = json!([{ "id": 0, "name": "SIM", "connected": true, "killed": false, "exchanges": ["XNAS"] }]);
            plain(SERVICE, "The ways to venues", Output::Json(Shape::List("AdapterVO"), example))
        }
        Call::CacheClear => About {
            more: "Open orders and positions are untouched. Reference data that are not sound change nothing; what is wrong is told with file and line.",
            ..write(SERVICE, "Read the reference data again", None, Output::Empty)
        },
        Call::ExitVm => About {
            more: "Answers, then everything stops in good order within five seconds.",
            ..plain(SERVICE, "Stop the service", Output::Empty)
        },
        Call::Accounts => {
            reference("All accounts", Output::Json(Shape::List("AccountVO"), json!([account()])))
        }
        Call::Account => About {
            path: &[Param {
                name: "name",
                about: "The account's name.",
                required: true,
                kind: Kind::Text("EQUITIES"),
            }],
            ..reference("An account by name", Output::Json(Shape::One("AccountVO"), account()))
        },
        Call::Securities => About {
            query: &[LIMIT],
            ..reference("All securities", Output::Json(Shape::List("SecurityVO"), json!([security()])))
        },
        Call::SecuritySearch => About {
            more: "Words are looked for in symbol, description and ISIN, all of them. `type:FOREX`, `currency:USD`, `exchange:XNAS` and \
                   `expires<2027-01-01` narrow. Empty: all. A mistake is told with its position.",
            query: &[
                Param {
                    name: "query",
                    about: "What to look for.",
                    required: false,
                    kind: Kind::Any("type:STOCK currency:USD"),
                },
                LIMIT,
            ],
            ..reference("Securities that match", Output::Json(Shape::List("SecurityVO"), json!([security()])))
        },
        Call::Security => About {
            path: const { &[id("The security's id.")] },
            ..reference("A security", Output::Json(Shape::One("SecurityVO"), security()))
        },
        Call::Forex => About {
            query: &[
                Param {
                    name: "baseCurrency",
                    about: "What is bought.",
                    required: true,
                    kind: Kind::Text("EUR"),
                },
                Param {
                    name: "transactionCurrency",
                    about: "What it is paid with.",
                    required: true,
                    kind: Kind::Text("USD"),
                },
            ],
            refusals: &[404],
            ..reference("A currency pair", Output::Json(Shape::One("ForexVO"), forex()))
        },
        Call::Families => reference(
            "All security families",
            Output::Json(Shape::List("SecurityFamilyVO"), json!([family()])),
        ),
        Call::Family => About {
            path: const { &[id("The family's id.")] },
            ..reference("A security family", Output::Json(Shape::One("SecurityFamilyVO"), family()))
        },
        Call::Exchanges => {
            reference("All exchanges", Output::Json(Shape::List("ExchangeVO"), json!([exchange()])))
        }
        Call::Strategies => {
            let example = json!([{ "id": 0, "name": "SERVER", "autoActivate": true, "phase": "RUNNING", "mode": "REAL_TIME" }]);
            plain(STRATEGIES, "All strategies", Output::Json(Shape::List("StrategyVO"), example))
        }
        Call::StrategyPhase => About {
            more: "Leads it there through the phases between. One that has stopped may begin again.",
            path: &[Param {
                name: "name",
                about: "The strategy's name.",
                required: true,
                kind: Kind::Text("PAIRS"),
            }],
            ..write(
                STRATEGIES,
                "Lead a strategy to another phase of its life",
                input("PhaseVO", json!({ "phase": "RUNNING" })),
                Output::Empty,
            )
        },
        Call::Positions => plain(
            POSITIONS,
            "All positions, at the market's prices",
            Output::Json(Shape::List("PositionVO"), json!([position()])),
        ),
        Call::PositionClose => About {
            more: "Sends a market order of the opposite side for all of it, one at a time.",
            path: &[POSITION_ID],
            query: &[ACCOUNT],
            headers: &[PREFER],
            ..write(POSITIONS, "Close a position", None, Output::Order)
        },
        Call::PositionReduce => About {
            more: "Sends a market order of the opposite side for a part of it.",
            path: &[POSITION_ID],
            query: &[ACCOUNT],
            headers: &[PREFER],
            ..write(
                POSITIONS,
                "Reduce a position",
                Some(Input { schema: number_or("quantity", "number"), example: json!(10) }),
                Output::Order,
            )
        },
        Call::PositionsReset => {
            write(POSITIONS, "Count every position again from the transactions", None, Output::Empty)
        }
        Call::Transaction => About {
            path: const { &[id("The transaction's id.")] },
            ..plain(
                POSITIONS,
                "A transaction of today",
                Output::Json(Shape::One("TransactionVO"), transaction()),
            )
        },
        Call::TransactionsDaily => About {
            query: &[STRATEGY, LIMIT],
            refusals: &[404],
            ..plain(
                POSITIONS,
                "Today's transactions, newest first",
                Output::Json(Shape::List("TransactionVO"), json!([transaction()])),
            )
        },
        Call::TransactionRecord => {
            let example =
                json!({ "type": "CREDIT", "price": 1000, "currency": "USD", "strategyName": "SERVER" });
            write(
                POSITIONS,
                "Record a transaction by hand",
                input("TransactionRequestVO", example),
                Output::Empty,
            )
        }
        Call::CashReset => {
            write(POSITIONS, "Count every cash balance again from the transactions", None, Output::Empty)
        }
        Call::CashBalances => {
            let example =
                json!([{ "strategyId": 0, "strategyName": "SERVER", "currency": "USD", "amount": 1000.25 }]);
            plain(
                POSITIONS,
                "Cash of every strategy in every currency",
                Output::Json(Shape::List("CashBalanceVO"), example),
            )
        }
        Call::Portfolio => About {
            query: &[STRATEGY],
            refusals: &[404],
            ..plain(
                POSITIONS,
                "What a strategy, or all of them, own",
                Output::Json(Shape::One("PortfolioVO"), portfolio()),
            )
        },
        Call::Feeds => plain(MARKET, "Names of the market data feeds", text_list(json!(["SIM"]))),
        Call::Subscribe => write(MARKET, "Want market data of a security", subscription(), Output::Empty),
        Call::Unsubscribe => write(MARKET, "Want them no longer", subscription(), Output::Empty),
        Call::OrdersOpen => About {
            query: &[LIMIT],
            ..plain(ORDERS, "Open orders", Output::Json(Shape::List("OrderVO"), json!([order()])))
        },
        Call::OrderHistory => About {
            query: &[LIMIT],
            ..plain(
                ORDERS,
                "Orders that ended today, the last one first",
                Output::Json(Shape::List("OrderVO"), json!([order()])),
            )
        },
        Call::Order => About {
            more: "A list of one; of several, where clients have used the same id.",
            path: &[INT_ID],
            ..plain(
                ORDERS,
                "An order by any id it has had",
                Output::Json(Shape::List("OrderVO"), json!([order()])),
            )
        },
        Call::OrderCancel => About {
            more: "Answered when the request was taken; what came of it is told by topic, and by the order's status.",
            path: &[INT_ID],
            query: &[ACCOUNT],
            headers: &[PREFER],
            ..write(ORDERS, "Cancel an order", None, Output::Order)
        },
        Call::OrderSubmit(kind) => About {
            more: "Idempotent on `intId`: the same body again gives the same answer and no second order.",
            headers: &[PREFER],
            ..submit(kind)
        },
        Call::OrderModify(kind) => About {
            more: "What is absent stays as it is. The order's id becomes `newIntId`, or one that the service makes.",
            headers: &[PREFER],
            refusals: &[404, 409, 422],
            ..modify(kind)
        },
        Call::OrderValidate => {
            let example =
                json!({ "type": "LIMIT", "securityId": 1, "side": "BUY", "quantity": 10, "limit": 100.25 });
            About {
                more: "Every check that an order of any type would meet, and nothing is sent.",
                ..write(
                    ORDERS,
                    "Check an order without sending it",
                    input("AnyOrderVO", example),
                    Output::Empty,
                )
            }
        }
        Call::NextOrderId => About {
            refusals: &[404],
            ..write(
                ORDERS,
                "An id that nobody else will ever be given",
                Some(Input { schema: number_or("accountId", "integer"), example: json!(1) }),
                text("R1-2"),
            )
        },
        Call::Risk => {
            let example = json!({ "killSwitch": false, "limits": [limits()], "restrictions": [{ "strategyName": "PAIRS", "securityId": 1 }] });
            plain(RISK, "Limits, switches and restrictions", Output::Json(Shape::One("RiskVO"), example))
        }
        Call::RiskChange => About {
            more: "Of one strategy or account, until the next start. What is absent stays as it is.",
            ..write(
                RISK,
                "Change limits",
                input("LimitsVO", json!({ "strategyName": "PAIRS", "maxOrderQty": 500 })),
                Output::Empty,
            )
        },
        Call::KillSwitchOn => write(RISK, "Cancel every open order and refuse new ones", None, Output::Empty),
        Call::KillSwitchOff => write(RISK, "Lift the kill switch", None, Output::Empty),
    }
}

fn input(schema: &'static str, example: Value) -> Option<Input> {
    Some(Input { schema: Shape::One(schema), example })
}

fn media(content_type: &'static str) -> &'static str {
    content_type.split(';').next().unwrap_or(content_type)
}

/// The bare number, or an object with nothing else in it.
fn number_or(name: &str, kind: &str) -> Shape {
    let number = json!({ "type": kind, "minimum": 0 });
    let object = json!({ "type": "object", "required": [name], "additionalProperties": false, "properties": { (name): number } });
    Shape::Plain(json!({ "oneOf": [number, object] }))
}

fn ready() -> Shape {
    let either = ["Ready", "Brief"].map(|name| json!({ "$ref": format!("#/components/schemas/{name}") }));
    Shape::Plain(json!({ "anyOf": either }))
}

fn submit(kind: OrderKind) -> About {
    let (schema, summary, prices) = match kind {
        OrderKind::Market => ("MarketOrderVO", "Submit a market order", json!({})),
        OrderKind::Limit => ("LimitOrderVO", "Submit a limit order", json!({ "limit": 100.25 })),
        OrderKind::Stop => ("StopOrderVO", "Submit a stop order", json!({ "stop": 99.5 })),
        OrderKind::StopLimit => {
            ("StopLimitOrderVO", "Submit a stop limit order", json!({ "limit": 100.25, "stop": 99.5 }))
        }
    };
    let mut example =
        json!({ "securityId": 1, "side": "BUY", "quantity": 10, "strategyName": "SERVER", "tif": "DAY" });
    merge(&mut example, prices);
    write(ORDERS, summary, input(schema, example), Output::Order)
}

fn modify(kind: OrderKind) -> About {
    let (schema, summary, prices) = match kind {
        OrderKind::Market => ("MarketOrderChangeVO", "Modify a market order", json!({})),
        OrderKind::Limit => ("LimitOrderChangeVO", "Modify a limit order", json!({ "limit": 100.5 })),
        OrderKind::Stop => ("StopOrderChangeVO", "Modify a stop order", json!({ "stop": 99.25 })),
        OrderKind::StopLimit => {
            ("StopLimitOrderChangeVO", "Modify a stop limit order", json!({ "limit": 100.5 }))
        }
    };
    let mut example = json!({ "intId": "R1-1", "quantity": 20 });
    merge(&mut example, prices);
    write(ORDERS, summary, input(schema, example), Output::Order)
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}

fn subscription() -> Option<Input> {
    input("MarketDataSubscriptionVO", json!({ "strategyName": "SERVER", "securityId": 1, "subscribe": true }))
}

fn account() -> Value {
    json!({ "id": 1, "name": "EQUITIES", "active": true, "adapterType": "SIM", "broker": "SIM" })
}

fn security() -> Value {
    json!({
        "id": 1, "symbol": "AAPL", "description": "Apple Inc.", "type": "STOCK", "securityFamilyId": 1, "exchangeId": 1,
        "currency": "USD", "isin": "US0378331005", "tickSize": 0.01, "lotSize": 1, "contractSize": 1, "tradeable": true,
    })
}

fn forex() -> Value {
    json!({
        "id": 20, "symbol": "EUR.USD", "description": "Euro in US dollars", "type": "FOREX", "securityFamilyId": 3, "exchangeId": 2,
        "currency": "USD", "baseCurrency": "EUR", "tickSize": 0.00001, "lotSize": 1000, "contractSize": 1, "tradeable": true,
        "transactionCurrency": "USD",
    })
}

fn family() -> Value {
    json!({
        "id": 1, "name": "US stocks", "symbolRoot": "", "exchangeId": 1, "currency": "USD", "contractSize": 1, "tickSize": 0.01,
        "lotSize": 1, "commission": 0.005, "tradeable": true, "expirable": false,
    })
}

fn exchange() -> Value {
    json!({ "id": 1, "name": "Nasdaq", "mic": "XNAS", "timeZone": "UTC", "open": "00:00:00", "close": "00:00:00", "adapterType": "SIM" })
}

fn order() -> Value {
    json!({
        "intId": "R1-1", "type": "LIMIT", "side": "BUY", "quantity": 10, "limit": 100.25, "tif": "DAY", "strategyId": 0, "strategyName": "SERVER",
        "accountId": 1, "securityId": 1, "symbol": "AAPL", "exchangeId": 1, "exchangeOrder": false, "status": "NEW", "filledQuantity": 0,
        "remainingQuantity": 10, "source": "REST", "dateTime": "2026-11-14T09:30:00.123456789Z", "lastUpdate": "2026-11-14T09:30:00.123456789Z",
    })
}

fn session() -> Value {
    json!({
        "id": "stomp-gateway-0-1", "kind": "STOMP", "name": "alice", "peer": "127.0.0.1:50000", "since": "2026-11-14T09:30:00Z",
        "state": "CONNECTED", "bytesIn": 120, "bytesOut": 48000, "messagesIn": 3, "messagesOut": 240, "queueBytes": 0,
        "conflated": 0, "slots": 0, "backlog": 0, "backlogBytes": 0, "subscriptions": 1,
    })
}

fn rates() -> Value {
    json!({ "maxRatePerConnection": 50, "minRatePerConsumer": 0.1 })
}

fn position() -> Value {
    json!({
        "id": 1, "strategyId": 0, "strategyName": "SERVER", "securityId": 1, "symbol": "AAPL", "quantity": 10, "avgPrice": 100.25,
        "marketPrice": 100.5, "marketValue": 1005, "realizedPL": 0, "unrealizedPL": 2.5, "currency": "USD",
    })
}

fn transaction() -> Value {
    json!({
        "id": 7, "uuid": "0f7a3c1e-5d7b-4c52-9a43-2f6f6a1c9b10", "dateTime": "2026-11-14T09:30:00.123456789Z", "type": "BUY", "strategyId": 0,
        "strategyName": "SERVER", "accountId": 1, "securityId": 1, "quantity": 10, "price": 100.25, "commission": 0.05, "currency": "USD",
        "orderIntId": "R1-1",
    })
}

fn portfolio() -> Value {
    json!({
        "strategyName": "SERVER", "baseCurrency": "USD", "netLiquidationValue": 2005.25, "cash": 1000.25, "marketValue": 1005, "realizedPL": 0,
        "unrealizedPL": 2.5, "holdings": [{ "currency": "USD", "cash": 1000.25, "marketValue": 1005, "realizedPL": 0, "unrealizedPL": 2.5 }],
        "missing": [],
    })
}

fn limits() -> Value {
    json!({
        "strategyName": "PAIRS", "tradingEnabled": true, "maxOrderQty": 0, "maxOrderValue": 0, "priceCollarPct": 0, "maxOpenOrders": 1000,
        "maxPosition": 0, "maxOrdersPerS": 100, "duplicateWindowMs": 0,
    })
}
