//! Describes each call in words and examples. A call that is missing here does not compile.

use pitlane_runtime::metrics::exposition;
use serde_json::json;

use super::super::api_call::ApiCall;
use super::about::{
    ACCOUNT, ALL_ORDERS, CallDescription, FROM, HANDLE, HEALTH, INT_ID, INTERVAL, LIMIT, MARKET,
    OF_SECURITIES, OF_SECURITY, ORDERS, PAGE_LIMIT, PAGES, POSITION_ID, POSITIONS, PREFER, ParamKind,
    ParamSpec, RETURN, RISK, RequestSpec, ResponseSpec, SECURITY_ID, SERVICE, SESSION_ID, SIDE, SINCE,
    SOURCE, STRATEGIES, STRATEGY, STRATEGY_ID, STRATEGY_NAME, SchemaRef, TO, id, input, media, number_or,
    plain, ready, reference, text, text_list, write,
};
use super::examples::{
    account, alert, bar, depth, exchange, family, forex, order, order_changes, portfolio, position, quote,
    rates, security, session, tick, transaction,
};
use super::orders::{modify, submit};
use super::risk;

const HISTORY: &str = "In order of time. With `from` the page is the first of the range, otherwise the last; the header `Link` leads to the next or the previous page. `Accept` selects JSON, CSV, Parquet or an Arrow stream; but for JSON the columns are those of the files that `pitlane simulate` reads. A build without Parquet has JSON and CSV only.";
const QUOTES: &str =
    "`Accept` selects JSON, CSV, Parquet or an Arrow stream. A build without Parquet has JSON and CSV only.";

pub(super) fn about(call: ApiCall) -> CallDescription {
    match call {
        ApiCall::Home => plain(PAGES, "The page", ResponseSpec::Text("text/html")),
        ApiCall::Asset => CallDescription {
            path: &[ParamSpec {
                name: "file",
                about: "As the page names it.",
                required: true,
                kind: ParamKind::Text("index.js"),
            }],
            ..plain(PAGES, "A file of the page", ResponseSpec::Text("*/*"))
        },
        ApiCall::Docs => plain(PAGES, "This description for people", ResponseSpec::Text("text/html")),
        ApiCall::DocsScript => {
            plain(PAGES, "Script of the description", ResponseSpec::Text("text/javascript"))
        }
        ApiCall::DocsStyle => plain(PAGES, "Style sheet of the description", ResponseSpec::Text("text/css")),
        ApiCall::OpenApi => {
            let shape = SchemaRef::Plain(json!({ "type": "object", "required": ["openapi", "paths"] }));
            plain(
                PAGES,
                "This description for machines",
                ResponseSpec::Json(shape, json!({ "openapi": "3.1.0", "paths": {} })),
            )
        }
        ApiCall::Live => plain(
            HEALTH,
            "Whether the process serves",
            ResponseSpec::Json(SchemaRef::One("Live"), json!({ "status": "LIVE" })),
        ),
        ApiCall::Ready => CallDescription {
            more: "200 when orders would be accepted, 503 otherwise. Without a login the body has no details.",
            ..plain(
                HEALTH,
                "Whether orders would be accepted",
                ResponseSpec::Json(ready(), json!({ "ready": true })),
            )
        },
        ApiCall::Version => {
            let example = json!({ "name": "pitlane", "version": "0.1.0", "commit": "unknown", "formats": { "image": 1, "journal": 1, "state": 2 } });
            plain(HEALTH, "Version of the build", ResponseSpec::Json(SchemaRef::One("Version"), example))
        }
        ApiCall::Metrics => plain(
            HEALTH,
            "Counters and gauges for Prometheus",
            ResponseSpec::Text(media(exposition::CONTENT_TYPE)),
        ),
        ApiCall::Bars => CallDescription {
            more: HISTORY,
            query: &[OF_SECURITY, INTERVAL, FROM, TO, PAGE_LIMIT],
            refusals: &[404, 406],
            ..plain(
                MARKET,
                "Bars of a security",
                ResponseSpec::Rows(SchemaRef::List("BarVO"), json!([bar()])),
            )
        },
        ApiCall::Ticks => CallDescription {
            more: HISTORY,
            query: &[OF_SECURITY, FROM, TO, PAGE_LIMIT],
            refusals: &[404, 406],
            ..plain(
                MARKET,
                "Recent ticks of a security",
                ResponseSpec::Rows(SchemaRef::List("TickVO"), json!([tick()])),
            )
        },
        ApiCall::Quotes => CallDescription {
            more: QUOTES,
            query: &[OF_SECURITIES],
            refusals: &[404, 406],
            ..plain(
                MARKET,
                "Newest prices, those of the trading day, and the close of the one before",
                ResponseSpec::Rows(SchemaRef::List("QuoteVO"), json!([quote()])),
            )
        },
        ApiCall::Depth => CallDescription {
            more: "Without `since`, or if the server does not hold the updates since then, the answer is a SNAPSHOT; else an UPDATE from that sequence number, perhaps without changes. `docs/stomp.md#depth` has the rules.",
            path: &[OF_SECURITY],
            query: &[SINCE],
            refusals: &[404],
            ..plain(
                MARKET,
                "Price levels of a security, or what has changed since a sequence number",
                ResponseSpec::Json(SchemaRef::One("Depth"), depth()),
            )
        },
        ApiCall::Latency => {
            let example = json!([{ "thread": "shard-0", "stage": "apply", "count": 812, "p50Ns": 310, "p90Ns": 420, "p99Ns": 900, "p999Ns": 2100, "maxNs": 8000 }]);
            plain(
                HEALTH,
                "Percentiles of each stage in each thread, over its last second with work",
                ResponseSpec::Json(SchemaRef::List("StageVO"), example),
            )
        }
        ApiCall::BrokerMain => plain(SERVICE, "Address of STOMP over TCP", text("stomp://127.0.0.1:61613")),
        ApiCall::BrokerWs => {
            plain(SERVICE, "Address of STOMP over WebSocket", text("ws://127.0.0.1:9090/stomp"))
        }
        ApiCall::ConfigParams => {
            let shape =
                SchemaRef::Plain(json!({ "type": "object", "additionalProperties": { "type": "string" } }));
            let example = json!({ "broker.maxRatePerConnection": "50", "service.mode": "embedded" });
            plain(SERVICE, "Every effective setting; secrets are ***", ResponseSpec::Json(shape, example))
        }
        ApiCall::Identity => {
            let example = json!({ "name": "alice", "role": "trade" });
            plain(
                SERVICE,
                "Name and role of the caller",
                ResponseSpec::Json(SchemaRef::One("IdentityVO"), example),
            )
        }
        ApiCall::Alerts => CallDescription {
            query: &[LIMIT],
            more: "The newest first. Each is also a warning in the log, at most 20 in ten seconds.",
            ..plain(
                SERVICE,
                "Conditions that an operator should look at",
                ResponseSpec::Json(SchemaRef::List("AlertVO"), json!([alert()])),
            )
        },
        ApiCall::Sessions => plain(
            SERVICE,
            "Connected sessions, as of the last second",
            ResponseSpec::Json(SchemaRef::List("SessionVO"), json!([session()])),
        ),
        ApiCall::SessionEnd => CallDescription {
            path: &[SESSION_ID],
            ..plain(SERVICE, "Disconnect a client", ResponseSpec::Empty)
        },
        ApiCall::SessionReset => CallDescription {
            path: &[SESSION_ID],
            more: "A client that is logged on is logged out.",
            ..plain(SERVICE, "Reset both sequence numbers of a FIX session to one", ResponseSpec::Empty)
        },
        ApiCall::Rates => plain(
            SERVICE,
            "Rates of market data over WebSocket",
            ResponseSpec::Json(SchemaRef::One("RatesVO"), rates()),
        ),
        ApiCall::RatesChange => CallDescription {
            more: "For every connection, immediately, until the next start.",
            input: Some(RequestSpec { schema: SchemaRef::One("RatesVO"), example: rates() }),
            ..plain(SERVICE, "Change the rates of market data over WebSocket", ResponseSpec::Empty)
        },
        ApiCall::Adapters => {
            let example = json!([{ "id": 0, "name": "SIM", "connected": true, "killed": false, "exchanges": ["XNAS"] }]);
            plain(SERVICE, "Adapters to venues", ResponseSpec::Json(SchemaRef::List("AdapterVO"), example))
        }
        ApiCall::Cluster => {
            let example = json!([{ "name": "zurich", "shards": [1], "state": "UP", "ageMs": 112, "inDoubt": 0, "doubts": [], "routed": 12, "refused": 0, "events": 3012, "gaps": 0, "snapshots": 1 }]);
            plain(
                SERVICE,
                "The other servers of the cluster",
                ResponseSpec::Json(SchemaRef::List("MemberVO"), example),
            )
        }
        ApiCall::CacheClear => CallDescription {
            more: "Open orders and positions are untouched. Invalid reference data change nothing; the response names the faults with file and line.",
            ..write(SERVICE, "Reload the reference data", None, ResponseSpec::Empty)
        },
        ApiCall::ExitVm => CallDescription {
            more: "Responds, then the service shuts down in order within five seconds.",
            ..plain(SERVICE, "Stop the service", ResponseSpec::Empty)
        },
        ApiCall::Accounts => {
            reference("All accounts", ResponseSpec::Json(SchemaRef::List("AccountVO"), json!([account()])))
        }
        ApiCall::Account => CallDescription {
            path: &[ParamSpec {
                name: "name",
                about: "The account's name.",
                required: true,
                kind: ParamKind::Text("EQUITIES"),
            }],
            ..reference("An account by name", ResponseSpec::Json(SchemaRef::One("AccountVO"), account()))
        },
        ApiCall::Securities => CallDescription {
            query: &[LIMIT],
            ..reference(
                "All securities",
                ResponseSpec::Json(SchemaRef::List("SecurityVO"), json!([security()])),
            )
        },
        ApiCall::SecuritySearch => CallDescription {
            more: "Every word must occur in symbol, description or ISIN. `type:FOREX`, `currency:USD`, `exchange:XNAS` and \
                   `expires<2027-01-01` narrow. Empty: all. A mistake is reported with its position.",
            query: &[
                ParamSpec {
                    name: "query",
                    about: "What to look for.",
                    required: false,
                    kind: ParamKind::Any("type:STOCK currency:USD"),
                },
                LIMIT,
            ],
            ..reference(
                "Securities that match",
                ResponseSpec::Json(SchemaRef::List("SecurityVO"), json!([security()])),
            )
        },
        ApiCall::Security => CallDescription {
            path: const { &[id("The security's id.")] },
            ..reference("A security", ResponseSpec::Json(SchemaRef::One("SecurityVO"), security()))
        },
        ApiCall::Forex => CallDescription {
            query: &[
                ParamSpec {
                    name: "baseCurrency",
                    about: "What is bought.",
                    required: true,
                    kind: ParamKind::Text("EUR"),
                },
                ParamSpec {
                    name: "transactionCurrency",
                    about: "What it is paid with.",
                    required: true,
                    kind: ParamKind::Text("USD"),
                },
            ],
            refusals: &[404],
            ..reference("A currency pair", ResponseSpec::Json(SchemaRef::One("ForexVO"), forex()))
        },
        ApiCall::Families => reference(
            "All security families",
            ResponseSpec::Json(SchemaRef::List("SecurityFamilyVO"), json!([family()])),
        ),
        ApiCall::Family => CallDescription {
            path: const { &[id("The family's id.")] },
            ..reference("A security family", ResponseSpec::Json(SchemaRef::One("SecurityFamilyVO"), family()))
        },
        ApiCall::Exchanges => {
            reference("All exchanges", ResponseSpec::Json(SchemaRef::List("ExchangeVO"), json!([exchange()])))
        }
        ApiCall::Strategies => {
            let example = json!([{ "id": 0, "name": "SERVER", "autoActivate": true, "phase": "RUNNING", "mode": "REAL_TIME" }]);
            plain(STRATEGIES, "All strategies", ResponseSpec::Json(SchemaRef::List("StrategyVO"), example))
        }
        ApiCall::StrategyPhase => CallDescription {
            more: "Passes through the phases between. A stopped strategy may start again.",
            path: &[ParamSpec {
                name: "name",
                about: "The strategy's name.",
                required: true,
                kind: ParamKind::Text("PAIRS"),
            }],
            ..write(
                STRATEGIES,
                "Move a strategy to another phase",
                input("PhaseVO", json!({ "phase": "RUNNING" })),
                ResponseSpec::Empty,
            )
        },
        ApiCall::Positions => plain(
            POSITIONS,
            "All positions, at the market's prices",
            ResponseSpec::Json(SchemaRef::List("PositionVO"), json!([position()])),
        ),
        ApiCall::PositionClose => CallDescription {
            more: "Sends a market order of the opposite side for all of it, one at a time.",
            path: &[POSITION_ID],
            query: &[ACCOUNT, RETURN],
            headers: &[PREFER],
            ..write(POSITIONS, "Close a position", None, ResponseSpec::Order)
        },
        ApiCall::PositionReduce => CallDescription {
            more: "Sends a market order of the opposite side for a part of it.",
            path: &[POSITION_ID],
            query: &[ACCOUNT, RETURN],
            headers: &[PREFER],
            ..write(
                POSITIONS,
                "Reduce a position",
                Some(RequestSpec { schema: number_or("quantity", "number"), example: json!(10) }),
                ResponseSpec::Order,
            )
        },
        ApiCall::PositionsReset => {
            write(POSITIONS, "Count every position again from the transactions", None, ResponseSpec::Empty)
        }
        ApiCall::Transaction => CallDescription {
            path: const { &[id("The transaction's id.")] },
            ..plain(
                POSITIONS,
                "A transaction of today",
                ResponseSpec::Json(SchemaRef::One("TransactionVO"), transaction()),
            )
        },
        ApiCall::TransactionsDaily => CallDescription {
            query: &[STRATEGY, LIMIT],
            refusals: &[404],
            ..plain(
                POSITIONS,
                "Today's transactions, newest first",
                ResponseSpec::Json(SchemaRef::List("TransactionVO"), json!([transaction()])),
            )
        },
        ApiCall::TransactionRecord => {
            let example =
                json!({ "type": "CREDIT", "price": 1000, "currency": "USD", "strategyName": "SERVER" });
            write(
                POSITIONS,
                "Record a transaction by hand",
                input("TransactionRequestVO", example),
                ResponseSpec::Empty,
            )
        }
        ApiCall::CashReset => write(
            POSITIONS,
            "Count every cash balance again from the transactions",
            None,
            ResponseSpec::Empty,
        ),
        ApiCall::CashBalances => {
            let example =
                json!([{ "strategyId": 0, "strategyName": "SERVER", "currency": "USD", "amount": 1000.25 }]);
            plain(
                POSITIONS,
                "Cash of every strategy in every currency",
                ResponseSpec::Json(SchemaRef::List("CashBalanceVO"), example),
            )
        }
        ApiCall::Portfolio => CallDescription {
            query: &[STRATEGY],
            refusals: &[404],
            ..plain(
                POSITIONS,
                "Portfolio of one strategy, or of all strategies",
                ResponseSpec::Json(SchemaRef::One("PortfolioVO"), portfolio()),
            )
        },
        ApiCall::Feeds => plain(MARKET, "Names of the market data feeds", text_list(json!(["SIM"]))),
        ApiCall::Subscribe => {
            write(MARKET, "Subscribe to market data of a security", subscription(), ResponseSpec::Empty)
        }
        ApiCall::Unsubscribe => {
            write(MARKET, "Unsubscribe from market data of a security", subscription(), ResponseSpec::Empty)
        }
        ApiCall::OrdersOpen => CallDescription {
            query: &[LIMIT],
            ..plain(ORDERS, "Open orders", ResponseSpec::Json(SchemaRef::List("OrderVO"), json!([order()])))
        },
        ApiCall::OrderHistory => CallDescription {
            query: &[LIMIT],
            ..plain(
                ORDERS,
                "Orders that finished today, the last one first",
                ResponseSpec::Json(SchemaRef::List("OrderVO"), json!([order()])),
            )
        },
        ApiCall::OrderChanges => CallDescription {
            more: "The oldest first, at most the newest 1,000 of the trading day. Of several orders with the id, those of the one that was submitted last.",
            query: &[INT_ID, ACCOUNT],
            refusals: &[404],
            ..plain(
                ORDERS,
                "What happened to an order",
                ResponseSpec::Json(SchemaRef::One("OrderChangesVO"), order_changes()),
            )
        },
        ApiCall::Order => CallDescription {
            more: "A list of one; of several, where clients have used the same id.",
            path: &[INT_ID],
            ..plain(
                ORDERS,
                "An order by any id it has had",
                ResponseSpec::Json(SchemaRef::List("OrderVO"), json!([order()])),
            )
        },
        ApiCall::OrderCancel => CallDescription {
            more: "Answered when the request was accepted; its result follows by topic and in the order's status. Where several open orders have the id, the refusal lists them with their handles.",
            path: &[INT_ID],
            query: &[ACCOUNT, HANDLE, RETURN],
            headers: &[PREFER],
            ..write(ORDERS, "Cancel an order", None, ResponseSpec::Order)
        },
        ApiCall::OrdersCancel => CallDescription {
            more: "One command per shard, so the number of orders does not matter. A request without a parameter is refused; `all=true` selects every open order, for a login with strategies every open order of these. Answered when each order has its result, or after the time-out with the orders still pending.",
            query: &[STRATEGY_ID, STRATEGY_NAME, SECURITY_ID, SIDE, SOURCE, ALL_ORDERS],
            refusals: &[422],
            ..write(
                ORDERS,
                "Cancel all open orders that the parameters select",
                None,
                ResponseSpec::Json(
                    SchemaRef::One("CanceledOrdersVO"),
                    json!({ "canceled": 12, "refused": 0, "finished": 1, "pending": 0, "complete": true, "reasons": [] }),
                ),
            )
        },
        ApiCall::OrderSubmit(kind) => CallDescription {
            more: "Idempotent on `intId`: the same body again gives the same response and no second order. An id stays used to the end of the trading day, also after a restart.",
            query: &[RETURN],
            headers: &[PREFER],
            ..submit(kind)
        },
        ApiCall::OrderModify(kind) => CallDescription {
            more: "Absent members stay unchanged. The order's id becomes `newIntId`, or an id that the service generates. A quantity at or below what is filled ends the order as FILLED.",
            query: &[RETURN],
            headers: &[PREFER],
            refusals: &[404, 409, 422],
            ..modify(kind)
        },
        ApiCall::OrderValidate => {
            let example =
                json!({ "type": "LIMIT", "securityId": 1, "side": "BUY", "quantity": 10, "limit": 100.25 });
            CallDescription {
                more: "Makes every check that an order of any type must pass, and sends nothing.",
                ..write(
                    ORDERS,
                    "Check an order without sending it",
                    input("AnyOrderVO", example),
                    ResponseSpec::Empty,
                )
            }
        }
        ApiCall::NextOrderId => CallDescription {
            refusals: &[404],
            ..write(
                ORDERS,
                "An order id that is never given out again",
                Some(RequestSpec { schema: number_or("accountId", "integer"), example: json!(1) }),
                text("R1-2"),
            )
        },
        ApiCall::Risk => risk::risk(),
        ApiCall::RiskChange => risk::change(),
        ApiCall::LimitUses => risk::uses(),
        ApiCall::PortfolioHistory => risk::portfolio_history(),
        ApiCall::Profit => risk::profit(),
        ApiCall::ProfitDays => risk::profit_days(),
        ApiCall::Report => risk::report(),
        ApiCall::LogEvents => risk::log_events(),
        ApiCall::KillSwitchOn => {
            write(RISK, "Cancel every open order and refuse new ones", None, ResponseSpec::Confirmation)
        }
        ApiCall::KillSwitchOff => write(RISK, "Switch the kill switch off", None, ResponseSpec::Confirmation),
    }
}

fn subscription() -> Option<RequestSpec> {
    input("MarketDataSubscriptionVO", json!({ "strategyName": "SERVER", "securityId": 1, "subscribe": true }))
}
