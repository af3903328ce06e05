//! Describes each call in words and examples. A call that is missing here does not compile.

use serde_json::json;

use super::super::routes::Call;
use super::about::{
    ACCOUNT, About, HANDLE, HEALTH, INT_ID, Input, Kind, LIMIT, MARKET, ORDERS, Output, PAGES, POSITION_ID,
    POSITIONS, PREFER, Param, RISK, SERVICE, SESSION_ID, STRATEGIES, STRATEGY, Shape, id, input, media,
    number_or, plain, ready, reference, text, text_list, write,
};
use super::examples::{
    account, exchange, family, forex, limits, order, portfolio, position, rates, security, session,
    transaction,
};
use super::orders::{modify, submit};
use crate::metrics::exposition;

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
            let example = json!({ "name": "pitlane", "version": "0.1.0", "commit": "unknown", "formats": { "image": 1, "journal": 1, "state": 2 } });
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
        Call::Cluster => {
            let example = json!([{ "name": "zurich", "shards": [1], "state": "UP", "ageMs": 112, "inDoubt": 0, "doubts": [], "routed": 12, "refused": 0, "events": 3012, "gaps": 0, "snapshots": 1 }]);
            plain(SERVICE, "The other servers of the cluster", Output::Json(Shape::List("MemberVO"), example))
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
            more: "Answered when the request was taken; what came of it is told by topic, and by the order's status. Where several open orders have the id, the refusal lists them with their handles.",
            path: &[INT_ID],
            query: &[ACCOUNT, HANDLE],
            headers: &[PREFER],
            ..write(ORDERS, "Cancel an order", None, Output::Order)
        },
        Call::OrderSubmit(kind) => About {
            more: "Idempotent on `intId`: the same body again gives the same answer and no second order. An id stays used to the end of the trading day, also after a restart.",
            headers: &[PREFER],
            ..submit(kind)
        },
        Call::OrderModify(kind) => About {
            more: "What is absent stays as it is. The order's id becomes `newIntId`, or one that the service makes. A quantity at or below what is filled ends the order as FILLED.",
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
            let example = json!({
                "killSwitch": false,
                "killSwitchState": "NONE",
                "limits": [limits()],
                "restrictions": [{ "strategyName": "PAIRS", "securityId": 1 }],
                "unconfirmed": [{ "directive": "LIMITS", "strategyName": "PAIRS", "shards": [1] }],
            });
            plain(RISK, "Limits, switches and restrictions", Output::Json(Shape::One("RiskVO"), example))
        }
        Call::RiskChange => About {
            more: "Of one strategy or account, until the next start. What is absent stays as it is.",
            ..write(
                RISK,
                "Change limits",
                input("LimitsVO", json!({ "strategyName": "PAIRS", "maxOrderQty": 500 })),
                Output::Confirmation,
            )
        },
        Call::KillSwitchOn => {
            write(RISK, "Cancel every open order and refuse new ones", None, Output::Confirmation)
        }
        Call::KillSwitchOff => write(RISK, "Lift the kill switch", None, Output::Confirmation),
    }
}

fn subscription() -> Option<Input> {
    input("MarketDataSubscriptionVO", json!({ "strategyName": "SERVER", "securityId": 1, "subscribe": true }))
}
