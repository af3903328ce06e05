//! The table of paths: the methods of each, the calls they make, the required role, and the CORS
//! rule.
//!
//! Rules: docs/rest.md#paths.

use std::collections::HashMap;

use hyper::Method;
use pitlane_engine::terms::OrderKind;

use super::cors::Cors;
use crate::auth::Role;

/// All calls. A closed list; [`super::calls`] matches it to a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Home,
    Docs,
    DocsScript,
    DocsStyle,
    OpenApi,
    /// A file of the page.
    Asset,
    Identity,
    Live,
    Ready,
    Version,
    Metrics,
    BrokerMain,
    BrokerWs,
    ConfigParams,
    CacheClear,
    Accounts,
    Account,
    Securities,
    SecuritySearch,
    Security,
    Forex,
    Families,
    Family,
    Strategies,
    Exchanges,
    Positions,
    PositionClose,
    PositionReduce,
    PositionsReset,
    TransactionRecord,
    Transaction,
    TransactionsDaily,
    CashReset,
    Feeds,
    Subscribe,
    Unsubscribe,
    OrdersOpen,
    Order,
    OrderCancel,
    OrderSubmit(OrderKind),
    OrderModify(OrderKind),
    OrderHistory,
    NextOrderId,
    OrderValidate,
    Sessions,
    SessionEnd,
    SessionReset,
    Rates,
    RatesChange,
    CashBalances,
    Portfolio,
    Risk,
    RiskChange,
    Adapters,
    Cluster,
    StrategyPhase,
    Latency,
    KillSwitchOn,
    KillSwitchOff,
    ExitVm,
}

/// Methods with a meaning here. HEAD is a GET without its body; OPTIONS is answered from the table
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Post,
    Put,
    Delete,
}

impl Verb {
    fn of(method: &Method) -> Option<Verb> {
        match *method {
            Method::GET | Method::HEAD => Some(Verb::Get),
            Method::POST => Some(Verb::Post),
            Method::PUT => Some(Verb::Put),
            Method::DELETE => Some(Verb::Delete),
            _ => None,
        }
    }

    pub fn method(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Delete => "DELETE",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Verb::Get => "GET, HEAD",
            Verb::Post => "POST",
            Verb::Put => "PUT",
            Verb::Delete => "DELETE",
        }
    }
}

/// A path, in which a segment `{}` matches any one segment.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    pub path: &'static str,
    pub cors: Cors,
    pub calls: &'static [(Verb, Role, Call)],
}

impl Route {
    const fn new(path: &'static str, calls: &'static [(Verb, Role, Call)]) -> Route {
        Route { path, cors: Cors::Listed, calls }
    }

    const fn open_to(self, cors: Cors) -> Route {
        Route { cors, ..self }
    }

    /// Returns the value of the Allow header.
    pub fn allow(&self) -> String {
        let mut words: Vec<_> = self.calls.iter().map(|(verb, _, _)| verb.words()).collect();
        words.push("OPTIONS");
        words.join(", ")
    }
}

static ROUTES: &[Route] = &[
    Route::new("/", &[(Verb::Get, Role::Read, Call::Home)]),
    Route::new("/docs", &[(Verb::Get, Role::Read, Call::Docs)]),
    Route::new("/docs/viewer.js", &[(Verb::Get, Role::Read, Call::DocsScript)]),
    Route::new("/docs/viewer.css", &[(Verb::Get, Role::Read, Call::DocsStyle)]),
    Route::new("/openapi.json", &[(Verb::Get, Role::Read, Call::OpenApi)]),
    Route::new("/favicon.svg", &[(Verb::Get, Role::Read, Call::Asset)]),
    Route::new("/assets/{}", &[(Verb::Get, Role::Read, Call::Asset)]),
    Route::new("/rest/ext/identity", &[(Verb::Get, Role::Read, Call::Identity)]),
    Route::new("/health/live", &[(Verb::Get, Role::Read, Call::Live)]),
    Route::new("/health/ready", &[(Verb::Get, Role::Read, Call::Ready)]),
    Route::new("/version", &[(Verb::Get, Role::Read, Call::Version)]),
    Route::new("/metrics", &[(Verb::Get, Role::Read, Call::Metrics)]),
    // The paths of the specification, in its order.
    Route::new("/rest/broker/url/main", &[(Verb::Get, Role::Read, Call::BrokerMain)]),
    Route::new("/rest/broker/url/ws", &[(Verb::Get, Role::Read, Call::BrokerWs)]),
    Route::new("/rest/config-params", &[(Verb::Get, Role::Read, Call::ConfigParams)]),
    Route::new("/rest/cache/clear-all", &[(Verb::Post, Role::Admin, Call::CacheClear)]),
    Route::new("/rest/security", &[(Verb::Get, Role::Read, Call::Securities)]),
    Route::new("/rest/security-family", &[(Verb::Get, Role::Read, Call::Families)]),
    Route::new("/rest/security.search", &[(Verb::Get, Role::Read, Call::SecuritySearch)]),
    Route::new("/rest/forex", &[(Verb::Get, Role::Read, Call::Forex)]),
    Route::new("/rest/security/{}", &[(Verb::Get, Role::Read, Call::Security)]),
    Route::new("/rest/security-family/{}", &[(Verb::Get, Role::Read, Call::Family)]),
    Route::new("/rest/strategy", &[(Verb::Get, Role::Read, Call::Strategies)]),
    Route::new("/rest/account", &[(Verb::Get, Role::Read, Call::Accounts)]).open_to(Cors::Anyone),
    Route::new("/rest/account/{}", &[(Verb::Get, Role::Read, Call::Account)]),
    Route::new("/rest/exchange", &[(Verb::Get, Role::Read, Call::Exchanges)]),
    Route::new("/rest/position", &[(Verb::Get, Role::Read, Call::Positions)]),
    Route::new("/rest/position/{}", &[(Verb::Delete, Role::Trade, Call::PositionClose)]),
    Route::new("/rest/position/reduce/{}", &[(Verb::Post, Role::Trade, Call::PositionReduce)]),
    Route::new("/rest/position/reset-positions", &[(Verb::Post, Role::Admin, Call::PositionsReset)]),
    Route::new("/rest/transaction", &[(Verb::Post, Role::Admin, Call::TransactionRecord)]),
    Route::new("/rest/transaction/{}", &[(Verb::Get, Role::Read, Call::Transaction)]),
    Route::new("/rest/transaction/daily", &[(Verb::Get, Role::Read, Call::TransactionsDaily)]),
    Route::new("/rest/transaction/reset-cache-balances", &[(Verb::Post, Role::Admin, Call::CashReset)]),
    Route::new("/rest/transaction/reset-cash-balances", &[(Verb::Post, Role::Admin, Call::CashReset)]),
    Route::new("/rest/subscription/marketdata/supported-feed", &[(Verb::Get, Role::Read, Call::Feeds)]),
    Route::new("/rest/subscription/marketdata/subscribe", &[(Verb::Put, Role::Trade, Call::Subscribe)]),
    Route::new("/rest/subscription/marketdata/unsubscribe", &[(Verb::Put, Role::Trade, Call::Unsubscribe)]),
    Route::new("/rest/execution/order", &[(Verb::Get, Role::Read, Call::OrdersOpen)]),
    Route::new(
        "/rest/execution/order/{}",
        &[(Verb::Get, Role::Read, Call::Order), (Verb::Delete, Role::Trade, Call::OrderCancel)],
    ),
    Route::new(
        "/rest/execution/order/market",
        &[
            (Verb::Post, Role::Trade, Call::OrderSubmit(OrderKind::Market)),
            (Verb::Get, Role::Read, Call::Order),
            (Verb::Delete, Role::Trade, Call::OrderCancel),
        ],
    ),
    Route::new(
        "/rest/execution/modify/order/market",
        &[(Verb::Post, Role::Trade, Call::OrderModify(OrderKind::Market))],
    ),
    Route::new(
        "/rest/execution/order/limit",
        &[
            (Verb::Post, Role::Trade, Call::OrderSubmit(OrderKind::Limit)),
            (Verb::Get, Role::Read, Call::Order),
            (Verb::Delete, Role::Trade, Call::OrderCancel),
        ],
    ),
    Route::new(
        "/rest/execution/modify/order/limit",
        &[(Verb::Post, Role::Trade, Call::OrderModify(OrderKind::Limit))],
    ),
    Route::new(
        "/rest/execution/order/stop",
        &[
            (Verb::Post, Role::Trade, Call::OrderSubmit(OrderKind::Stop)),
            (Verb::Get, Role::Read, Call::Order),
            (Verb::Delete, Role::Trade, Call::OrderCancel),
        ],
    ),
    Route::new(
        "/rest/execution/modify/order/stop",
        &[(Verb::Post, Role::Trade, Call::OrderModify(OrderKind::Stop))],
    ),
    Route::new(
        "/rest/execution/order/stoplimit",
        &[
            (Verb::Post, Role::Trade, Call::OrderSubmit(OrderKind::StopLimit)),
            (Verb::Get, Role::Read, Call::Order),
            (Verb::Delete, Role::Trade, Call::OrderCancel),
        ],
    ),
    Route::new(
        "/rest/execution/modify/order/stoplimit",
        &[(Verb::Post, Role::Trade, Call::OrderModify(OrderKind::StopLimit))],
    ),
    Route::new("/rest/next-order-id", &[(Verb::Post, Role::Trade, Call::NextOrderId)]),
    Route::new("/rest/runtime/exit-vm", &[(Verb::Post, Role::Admin, Call::ExitVm)]),
    // Paths beyond it.
    Route::new("/rest/ext/cash-balance", &[(Verb::Get, Role::Read, Call::CashBalances)]),
    Route::new("/rest/ext/portfolio", &[(Verb::Get, Role::Read, Call::Portfolio)]),
    Route::new("/rest/ext/execution/order/validate", &[(Verb::Post, Role::Trade, Call::OrderValidate)]),
    Route::new("/rest/ext/order/history", &[(Verb::Get, Role::Read, Call::OrderHistory)]),
    Route::new(
        "/rest/ext/risk",
        &[(Verb::Get, Role::Read, Call::Risk), (Verb::Put, Role::Admin, Call::RiskChange)],
    ),
    Route::new(
        "/rest/ext/kill-switch",
        &[(Verb::Post, Role::Admin, Call::KillSwitchOn), (Verb::Delete, Role::Admin, Call::KillSwitchOff)],
    ),
    Route::new("/rest/ext/session", &[(Verb::Get, Role::Read, Call::Sessions)]),
    Route::new("/rest/ext/session/{}", &[(Verb::Delete, Role::Admin, Call::SessionEnd)]),
    Route::new("/rest/ext/session/{}/reset", &[(Verb::Post, Role::Admin, Call::SessionReset)]),
    Route::new(
        "/rest/ext/broker/rate",
        &[(Verb::Get, Role::Read, Call::Rates), (Verb::Put, Role::Admin, Call::RatesChange)],
    ),
    Route::new("/rest/ext/latency", &[(Verb::Get, Role::Read, Call::Latency)]),
    Route::new("/rest/ext/adapter", &[(Verb::Get, Role::Read, Call::Adapters)]),
    Route::new("/rest/ext/cluster", &[(Verb::Get, Role::Read, Call::Cluster)]),
    Route::new("/rest/ext/strategy/{}/phase", &[(Verb::Put, Role::Admin, Call::StrategyPhase)]),
];

/// Returns the whole table, a call at a time.
pub fn all() -> impl Iterator<Item = (&'static str, Verb, Role, Call)> {
    ROUTES
        .iter()
        .flat_map(|route| route.calls.iter().map(|(verb, role, call)| (route.path, *verb, *role, *call)))
}

/// Returns every call of the table: its method, its path, and the lowest role that it requires.
pub fn table() -> impl Iterator<Item = (&'static str, &'static str, Role)> {
    all().map(|(path, verb, role, _)| (verb.method(), path, role))
}

/// Result of a lookup by path and method.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'a> {
    Call {
        route: &'static Route,
        /// The lowest role that is required.
        role: Role,
        call: Call,
        segments: Segments<'a>,
    },
    /// The method is OPTIONS.
    Options(&'static Route),
    WrongMethod(&'static Route),
    Nothing,
}

/// Segments matched by each `{}`, still percent-encoded. No path has more than two.
pub type Segments<'a> = [&'a str; 2];

/// The table, with one lookup for paths without `{}`, whatever their number.
#[derive(Debug)]
pub struct Routes {
    plain: HashMap<&'static str, &'static Route>,
    open: Vec<&'static Route>,
}

impl Routes {
    pub fn new() -> Routes {
        Routes::of(ROUTES)
    }

    fn of(table: &'static [Route]) -> Routes {
        let (open, plain): (Vec<_>, Vec<_>) = table.iter().partition(|route| route.path.contains('{'));
        Routes { plain: plain.into_iter().map(|route| (route.path, route)).collect(), open }
    }

    pub fn find<'a>(&self, method: &Method, path: &'a str) -> Found<'a> {
        // The last segment of a plain path may be the id of an order, see
        // `/rest/execution/order/market`.
        let plain = self.plain.get(path).map(|route| {
            let last = memchr::memrchr(b'/', path.as_bytes()).map_or("", |at| &path[at + 1..]);
            (*route, [last, ""])
        });
        let open = || self.open.iter().find_map(|route| Some((*route, fits(route.path, path)?)));
        let Some((route, segments)) = plain.or_else(open) else { return Found::Nothing };
        if *method == Method::OPTIONS {
            return Found::Options(route);
        }
        let verb = Verb::of(method);
        let call = route.calls.iter().find(|(other, _, _)| Some(*other) == verb);
        match call {
            Some(&(_, role, call)) => Found::Call { route, role, call, segments },
            None => Found::WrongMethod(route),
        }
    }
}

/// Returns the segments for each `{}` of the pattern, if the path matches it. An empty segment
/// matches no `{}`.
fn fits<'a>(pattern: &str, path: &'a str) -> Option<Segments<'a>> {
    let mut segments = Segments::default();
    let mut found = 0;
    let mut path = path.split('/');
    for wanted in pattern.split('/') {
        let given = path.next()?;
        if wanted == "{}" && !given.is_empty() {
            *segments.get_mut(found)? = given;
            found += 1;
        } else if wanted != given {
            return None;
        }
    }
    path.next().is_none().then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    static SAMPLE: [Route; 4] = [
        Route::new("/a", &[(Verb::Get, Role::Read, Call::Live)]),
        Route::new("/a/{}", &[(Verb::Get, Role::Read, Call::Ready), (Verb::Put, Role::Admin, Call::Version)]),
        Route::new("/a/{}/b/{}", &[(Verb::Delete, Role::Admin, Call::Home)]),
        Route::new("/a/fixed", &[(Verb::Get, Role::Read, Call::Metrics)]),
    ];

    fn called(method: Method, path: &str) -> Option<(Call, Vec<&str>)> {
        match Routes::of(&SAMPLE).find(&method, path) {
            Found::Call { call, segments, .. } => {
                Some((call, segments.into_iter().filter(|segment| !segment.is_empty()).collect()))
            }
            Found::Options(_) | Found::WrongMethod(_) | Found::Nothing => None,
        }
    }

    #[test]
    fn a_path_finds_its_call_and_its_segments() {
        assert_eq!(called(Method::GET, "/a"), Some((Call::Live, vec!["a"])), "it may be an id too");
        assert_eq!(called(Method::HEAD, "/a"), Some((Call::Live, vec!["a"])));
        assert_eq!(called(Method::PUT, "/a/x%20y"), Some((Call::Version, vec!["x%20y"])));
        assert_eq!(called(Method::DELETE, "/a/1/b/2"), Some((Call::Home, vec!["1", "2"])));
        assert_eq!(
            called(Method::GET, "/a/fixed"),
            Some((Call::Metrics, vec!["fixed"])),
            "the plain path goes first"
        );
        for path in ["", "/", "/a/", "/b", "/a/1/b", "/a/1/b/", "/a/1/c/2", "/a/1/b/2/3", "a", "//a", "*"] {
            assert_eq!(called(Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn a_path_with_a_wrong_method_lists_the_allowed_ones() {
        let routes = Routes::of(&SAMPLE);
        let Found::WrongMethod(route) = routes.find(&Method::POST, "/a/1") else { panic!() };
        assert_eq!(route.allow(), "GET, HEAD, PUT, OPTIONS");
        assert_eq!(routes.find(&Method::OPTIONS, "/a/1"), Found::Options(route));
        assert!(matches!(routes.find(&Method::CONNECT, "/a"), Found::WrongMethod(_)));
        assert_eq!(routes.find(&Method::OPTIONS, "/x"), Found::Nothing);
    }

    #[test]
    fn the_real_table_has_each_path_and_method_once() {
        let mut paths: Vec<_> = ROUTES.iter().map(|route| route.path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), ROUTES.len());
        for route in ROUTES {
            for (at, (verb, _, _)) in route.calls.iter().enumerate() {
                assert!(route.calls[..at].iter().all(|(other, _, _)| other != verb), "{}", route.path);
            }
        }
    }
}
