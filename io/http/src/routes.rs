//! The table of paths: the methods of each, the calls they make, the required role, and the CORS
//! rule.
//!
//! Rules: docs/rest.md#paths.

use std::collections::HashMap;

use hyper::Method;
use pitlane_auth::Role;
use pitlane_engine::terms::OrderKind;

use super::api_call::ApiCall;
use super::cors::Cors;

/// Methods with a meaning here. HEAD is a GET without its body; OPTIONS is answered from the table
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteMethod {
    Get,
    Post,
    Put,
    Delete,
}

impl RouteMethod {
    fn of(method: &Method) -> Option<RouteMethod> {
        match *method {
            Method::GET | Method::HEAD => Some(RouteMethod::Get),
            Method::POST => Some(RouteMethod::Post),
            Method::PUT => Some(RouteMethod::Put),
            Method::DELETE => Some(RouteMethod::Delete),
            _ => None,
        }
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            RouteMethod::Get => "GET",
            RouteMethod::Post => "POST",
            RouteMethod::Put => "PUT",
            RouteMethod::Delete => "DELETE",
        }
    }

    fn allow_text(self) -> &'static str {
        match self {
            RouteMethod::Get => "GET, HEAD",
            RouteMethod::Post => "POST",
            RouteMethod::Put => "PUT",
            RouteMethod::Delete => "DELETE",
        }
    }
}

/// A path, in which a segment `{}` matches any one segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpRoute {
    pub path: &'static str,
    pub cors: Cors,
    pub calls: &'static [(RouteMethod, Role, ApiCall)],
}

impl HttpRoute {
    const fn new(path: &'static str, calls: &'static [(RouteMethod, Role, ApiCall)]) -> HttpRoute {
        HttpRoute { path, cors: Cors::Listed, calls }
    }

    const fn open_to(self, cors: Cors) -> HttpRoute {
        HttpRoute { cors, ..self }
    }

    /// Returns the value of the Allow header.
    pub(crate) fn allow(&self) -> String {
        let mut methods: Vec<_> = self.calls.iter().map(|(method, _, _)| method.allow_text()).collect();
        methods.push("OPTIONS");
        methods.join(", ")
    }
}

static ROUTES: &[HttpRoute] = &[
    HttpRoute::new("/", &[(RouteMethod::Get, Role::Read, ApiCall::Home)]),
    HttpRoute::new("/docs", &[(RouteMethod::Get, Role::Read, ApiCall::Docs)]),
    HttpRoute::new("/docs/viewer.js", &[(RouteMethod::Get, Role::Read, ApiCall::DocsScript)]),
    HttpRoute::new("/docs/viewer.css", &[(RouteMethod::Get, Role::Read, ApiCall::DocsStyle)]),
    HttpRoute::new("/openapi.json", &[(RouteMethod::Get, Role::Read, ApiCall::OpenApi)]),
    HttpRoute::new("/favicon.svg", &[(RouteMethod::Get, Role::Read, ApiCall::Asset)]),
    HttpRoute::new("/assets/{}", &[(RouteMethod::Get, Role::Read, ApiCall::Asset)]),
    HttpRoute::new("/rest/ext/identity", &[(RouteMethod::Get, Role::Read, ApiCall::Identity)]),
    HttpRoute::new("/health/live", &[(RouteMethod::Get, Role::Read, ApiCall::Live)]),
    HttpRoute::new("/health/ready", &[(RouteMethod::Get, Role::Read, ApiCall::Ready)]),
    HttpRoute::new("/version", &[(RouteMethod::Get, Role::Read, ApiCall::Version)]),
    HttpRoute::new("/metrics", &[(RouteMethod::Get, Role::Read, ApiCall::Metrics)]),
    // The paths of the specification, in its order.
    HttpRoute::new("/rest/broker/url/main", &[(RouteMethod::Get, Role::Read, ApiCall::BrokerMain)]),
    HttpRoute::new("/rest/broker/url/ws", &[(RouteMethod::Get, Role::Read, ApiCall::BrokerWs)]),
    HttpRoute::new("/rest/config-params", &[(RouteMethod::Get, Role::Read, ApiCall::ConfigParams)]),
    HttpRoute::new("/rest/cache/clear-all", &[(RouteMethod::Post, Role::Admin, ApiCall::CacheClear)]),
    HttpRoute::new("/rest/security", &[(RouteMethod::Get, Role::Read, ApiCall::Securities)]),
    HttpRoute::new("/rest/security-family", &[(RouteMethod::Get, Role::Read, ApiCall::Families)]),
    HttpRoute::new("/rest/security.search", &[(RouteMethod::Get, Role::Read, ApiCall::SecuritySearch)]),
    HttpRoute::new("/rest/forex", &[(RouteMethod::Get, Role::Read, ApiCall::Forex)]),
    HttpRoute::new("/rest/security/{}", &[(RouteMethod::Get, Role::Read, ApiCall::Security)]),
    HttpRoute::new("/rest/security-family/{}", &[(RouteMethod::Get, Role::Read, ApiCall::Family)]),
    HttpRoute::new("/rest/strategy", &[(RouteMethod::Get, Role::Read, ApiCall::Strategies)]),
    HttpRoute::new("/rest/account", &[(RouteMethod::Get, Role::Read, ApiCall::Accounts)]).open_to(Cors::Any),
    HttpRoute::new("/rest/account/{}", &[(RouteMethod::Get, Role::Read, ApiCall::Account)]),
    HttpRoute::new("/rest/exchange", &[(RouteMethod::Get, Role::Read, ApiCall::Exchanges)]),
    HttpRoute::new("/rest/position", &[(RouteMethod::Get, Role::Read, ApiCall::Positions)]),
    HttpRoute::new("/rest/position/{}", &[(RouteMethod::Delete, Role::Trade, ApiCall::PositionClose)]),
    HttpRoute::new("/rest/position/reduce/{}", &[(RouteMethod::Post, Role::Trade, ApiCall::PositionReduce)]),
    HttpRoute::new(
        "/rest/position/reset-positions",
        &[(RouteMethod::Post, Role::Admin, ApiCall::PositionsReset)],
    ),
    HttpRoute::new("/rest/transaction", &[(RouteMethod::Post, Role::Admin, ApiCall::TransactionRecord)]),
    HttpRoute::new("/rest/transaction/{}", &[(RouteMethod::Get, Role::Read, ApiCall::Transaction)]),
    HttpRoute::new("/rest/transaction/daily", &[(RouteMethod::Get, Role::Read, ApiCall::TransactionsDaily)]),
    HttpRoute::new(
        "/rest/transaction/reset-cache-balances",
        &[(RouteMethod::Post, Role::Admin, ApiCall::CashReset)],
    ),
    HttpRoute::new(
        "/rest/transaction/reset-cash-balances",
        &[(RouteMethod::Post, Role::Admin, ApiCall::CashReset)],
    ),
    HttpRoute::new(
        "/rest/subscription/marketdata/supported-feed",
        &[(RouteMethod::Get, Role::Read, ApiCall::Feeds)],
    ),
    HttpRoute::new(
        "/rest/subscription/marketdata/subscribe",
        &[(RouteMethod::Put, Role::Trade, ApiCall::Subscribe)],
    ),
    HttpRoute::new(
        "/rest/subscription/marketdata/unsubscribe",
        &[(RouteMethod::Put, Role::Trade, ApiCall::Unsubscribe)],
    ),
    HttpRoute::new(
        "/rest/execution/order",
        &[
            (RouteMethod::Get, Role::Read, ApiCall::OrdersOpen),
            (RouteMethod::Delete, Role::Trade, ApiCall::OrdersCancel),
        ],
    ),
    HttpRoute::new(
        "/rest/execution/order/{}",
        &[
            (RouteMethod::Get, Role::Read, ApiCall::Order),
            (RouteMethod::Delete, Role::Trade, ApiCall::OrderCancel),
        ],
    ),
    HttpRoute::new(
        "/rest/execution/order/market",
        &[
            (RouteMethod::Post, Role::Trade, ApiCall::OrderSubmit(OrderKind::Market)),
            (RouteMethod::Get, Role::Read, ApiCall::Order),
            (RouteMethod::Delete, Role::Trade, ApiCall::OrderCancel),
        ],
    ),
    HttpRoute::new(
        "/rest/execution/modify/order/market",
        &[(RouteMethod::Post, Role::Trade, ApiCall::OrderModify(OrderKind::Market))],
    ),
    HttpRoute::new(
        "/rest/execution/order/limit",
        &[
            (RouteMethod::Post, Role::Trade, ApiCall::OrderSubmit(OrderKind::Limit)),
            (RouteMethod::Get, Role::Read, ApiCall::Order),
            (RouteMethod::Delete, Role::Trade, ApiCall::OrderCancel),
        ],
    ),
    HttpRoute::new(
        "/rest/execution/modify/order/limit",
        &[(RouteMethod::Post, Role::Trade, ApiCall::OrderModify(OrderKind::Limit))],
    ),
    HttpRoute::new(
        "/rest/execution/order/stop",
        &[
            (RouteMethod::Post, Role::Trade, ApiCall::OrderSubmit(OrderKind::Stop)),
            (RouteMethod::Get, Role::Read, ApiCall::Order),
            (RouteMethod::Delete, Role::Trade, ApiCall::OrderCancel),
        ],
    ),
    HttpRoute::new(
        "/rest/execution/modify/order/stop",
        &[(RouteMethod::Post, Role::Trade, ApiCall::OrderModify(OrderKind::Stop))],
    ),
    HttpRoute::new(
        "/rest/execution/order/stoplimit",
        &[
            (RouteMethod::Post, Role::Trade, ApiCall::OrderSubmit(OrderKind::StopLimit)),
            (RouteMethod::Get, Role::Read, ApiCall::Order),
            (RouteMethod::Delete, Role::Trade, ApiCall::OrderCancel),
        ],
    ),
    HttpRoute::new(
        "/rest/execution/modify/order/stoplimit",
        &[(RouteMethod::Post, Role::Trade, ApiCall::OrderModify(OrderKind::StopLimit))],
    ),
    HttpRoute::new("/rest/next-order-id", &[(RouteMethod::Post, Role::Trade, ApiCall::NextOrderId)]),
    HttpRoute::new("/rest/runtime/exit-vm", &[(RouteMethod::Post, Role::Admin, ApiCall::ExitVm)]),
    // Paths beyond it.
    HttpRoute::new("/rest/ext/cash-balance", &[(RouteMethod::Get, Role::Read, ApiCall::CashBalances)]),
    HttpRoute::new("/rest/ext/portfolio", &[(RouteMethod::Get, Role::Read, ApiCall::Portfolio)]),
    HttpRoute::new(
        "/rest/ext/portfolio/history",
        &[(RouteMethod::Get, Role::Read, ApiCall::PortfolioHistory)],
    ),
    HttpRoute::new("/rest/ext/profit", &[(RouteMethod::Get, Role::Read, ApiCall::Profit)]),
    HttpRoute::new("/rest/ext/profit/days", &[(RouteMethod::Get, Role::Read, ApiCall::ProfitDays)]),
    HttpRoute::new("/rest/ext/report", &[(RouteMethod::Get, Role::Read, ApiCall::Report)]),
    HttpRoute::new("/rest/ext/log", &[(RouteMethod::Get, Role::Read, ApiCall::LogEvents)]),
    HttpRoute::new(
        "/rest/ext/execution/order/validate",
        &[(RouteMethod::Post, Role::Trade, ApiCall::OrderValidate)],
    ),
    HttpRoute::new("/rest/ext/order/history", &[(RouteMethod::Get, Role::Read, ApiCall::OrderHistory)]),
    HttpRoute::new("/rest/ext/order/changes", &[(RouteMethod::Get, Role::Read, ApiCall::OrderChanges)]),
    HttpRoute::new(
        "/rest/ext/risk",
        &[
            (RouteMethod::Get, Role::Read, ApiCall::Risk),
            (RouteMethod::Put, Role::Admin, ApiCall::RiskChange),
        ],
    ),
    HttpRoute::new("/rest/ext/risk/use", &[(RouteMethod::Get, Role::Read, ApiCall::LimitUses)]),
    HttpRoute::new(
        "/rest/ext/kill-switch",
        &[
            (RouteMethod::Post, Role::Admin, ApiCall::KillSwitchOn),
            (RouteMethod::Delete, Role::Admin, ApiCall::KillSwitchOff),
        ],
    ),
    HttpRoute::new("/rest/ext/alert", &[(RouteMethod::Get, Role::Read, ApiCall::Alerts)]),
    HttpRoute::new("/rest/ext/session", &[(RouteMethod::Get, Role::Read, ApiCall::Sessions)]),
    HttpRoute::new("/rest/ext/session/{}", &[(RouteMethod::Delete, Role::Admin, ApiCall::SessionEnd)]),
    HttpRoute::new("/rest/ext/session/{}/reset", &[(RouteMethod::Post, Role::Admin, ApiCall::SessionReset)]),
    HttpRoute::new(
        "/rest/ext/broker/rate",
        &[
            (RouteMethod::Get, Role::Read, ApiCall::Rates),
            (RouteMethod::Put, Role::Admin, ApiCall::RatesChange),
        ],
    ),
    HttpRoute::new("/rest/ext/latency", &[(RouteMethod::Get, Role::Read, ApiCall::Latency)]),
    HttpRoute::new("/rest/ext/bars", &[(RouteMethod::Get, Role::Read, ApiCall::Bars)]),
    HttpRoute::new("/rest/ext/ticks", &[(RouteMethod::Get, Role::Read, ApiCall::Ticks)]),
    HttpRoute::new("/rest/ext/quote", &[(RouteMethod::Get, Role::Read, ApiCall::Quotes)]),
    HttpRoute::new("/rest/ext/depth/{}", &[(RouteMethod::Get, Role::Read, ApiCall::Depth)]),
    HttpRoute::new("/rest/ext/adapter", &[(RouteMethod::Get, Role::Read, ApiCall::Adapters)]),
    HttpRoute::new("/rest/ext/cluster", &[(RouteMethod::Get, Role::Read, ApiCall::Cluster)]),
    HttpRoute::new("/rest/ext/strategy/{}/phase", &[(RouteMethod::Put, Role::Admin, ApiCall::StrategyPhase)]),
];

/// Returns the whole table, a call at a time.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, RouteMethod, Role, ApiCall)> {
    ROUTES
        .iter()
        .flat_map(|route| route.calls.iter().map(|(method, role, call)| (route.path, *method, *role, *call)))
}

/// Returns every call of the table: its method, its path, and the lowest role that it requires.
pub fn table() -> impl Iterator<Item = (&'static str, &'static str, Role)> {
    all().map(|(path, method, role, _)| (method.method(), path, role))
}

/// Result of a lookup by path and method.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch<'a> {
    ApiCall {
        route: &'static HttpRoute,
        /// The lowest role that is required.
        role: Role,
        call: ApiCall,
        segments: Segments<'a>,
    },
    /// The method is OPTIONS.
    Options(&'static HttpRoute),
    WrongMethod(&'static HttpRoute),
    Nothing,
}

/// Segments matched by each `{}`, still percent-encoded. No path has more than two.
pub(crate) type Segments<'a> = [&'a str; 2];

/// The table, with one lookup for paths without `{}`, whatever their number.
#[derive(Debug)]
pub(crate) struct Routes {
    plain: HashMap<&'static str, &'static HttpRoute>,
    open: Vec<&'static HttpRoute>,
}

impl Routes {
    pub(crate) fn new() -> Routes {
        Routes::of(ROUTES)
    }

    fn of(table: &'static [HttpRoute]) -> Routes {
        let (open, plain): (Vec<_>, Vec<_>) = table.iter().partition(|route| route.path.contains('{'));
        Routes { plain: plain.into_iter().map(|route| (route.path, route)).collect(), open }
    }

    pub(crate) fn find<'a>(&self, method: &Method, path: &'a str) -> RouteMatch<'a> {
        // The last segment of a plain path may be the id of an order, see
        // `/rest/execution/order/market`.
        let plain = self.plain.get(path).map(|route| {
            let last = memchr::memrchr(b'/', path.as_bytes()).map_or("", |at| &path[at + 1..]);
            (*route, [last, ""])
        });
        let open = || self.open.iter().find_map(|route| Some((*route, segments_of(route.path, path)?)));
        let Some((route, segments)) = plain.or_else(open) else { return RouteMatch::Nothing };
        if *method == Method::OPTIONS {
            return RouteMatch::Options(route);
        }
        let method = RouteMethod::of(method);
        let call = route.calls.iter().find(|(other, _, _)| Some(*other) == method);
        match call {
            Some(&(_, role, call)) => RouteMatch::ApiCall { route, role, call, segments },
            None => RouteMatch::WrongMethod(route),
        }
    }
}

/// Returns the segments for each `{}` of the pattern, if the path matches it. An empty segment
/// matches no `{}`.
fn segments_of<'a>(pattern: &str, path: &'a str) -> Option<Segments<'a>> {
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

    static SAMPLE: [HttpRoute; 4] = [
        HttpRoute::new("/a", &[(RouteMethod::Get, Role::Read, ApiCall::Live)]),
        HttpRoute::new(
            "/a/{}",
            &[
                (RouteMethod::Get, Role::Read, ApiCall::Ready),
                (RouteMethod::Put, Role::Admin, ApiCall::Version),
            ],
        ),
        HttpRoute::new("/a/{}/b/{}", &[(RouteMethod::Delete, Role::Admin, ApiCall::Home)]),
        HttpRoute::new("/a/fixed", &[(RouteMethod::Get, Role::Read, ApiCall::Metrics)]),
    ];

    fn called(method: Method, path: &str) -> Option<(ApiCall, Vec<&str>)> {
        match Routes::of(&SAMPLE).find(&method, path) {
            RouteMatch::ApiCall { call, segments, .. } => {
                Some((call, segments.into_iter().filter(|segment| !segment.is_empty()).collect()))
            }
            RouteMatch::Options(_) | RouteMatch::WrongMethod(_) | RouteMatch::Nothing => None,
        }
    }

    #[test]
    fn a_path_finds_its_call_and_its_segments() {
        assert_eq!(called(Method::GET, "/a"), Some((ApiCall::Live, vec!["a"])), "it may be an id too");
        assert_eq!(called(Method::HEAD, "/a"), Some((ApiCall::Live, vec!["a"])));
        assert_eq!(called(Method::PUT, "/a/x%20y"), Some((ApiCall::Version, vec!["x%20y"])));
        assert_eq!(called(Method::DELETE, "/a/1/b/2"), Some((ApiCall::Home, vec!["1", "2"])));
        assert_eq!(
            called(Method::GET, "/a/fixed"),
            Some((ApiCall::Metrics, vec!["fixed"])),
            "the plain path goes first"
        );
        for path in ["", "/", "/a/", "/b", "/a/1/b", "/a/1/b/", "/a/1/c/2", "/a/1/b/2/3", "a", "//a", "*"] {
            assert_eq!(called(Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn a_path_with_a_wrong_method_lists_the_allowed_ones() {
        let routes = Routes::of(&SAMPLE);
        let RouteMatch::WrongMethod(route) = routes.find(&Method::POST, "/a/1") else { panic!() };
        assert_eq!(route.allow(), "GET, HEAD, PUT, OPTIONS");
        assert_eq!(routes.find(&Method::OPTIONS, "/a/1"), RouteMatch::Options(route));
        assert!(matches!(routes.find(&Method::CONNECT, "/a"), RouteMatch::WrongMethod(_)));
        assert_eq!(routes.find(&Method::OPTIONS, "/x"), RouteMatch::Nothing);
    }

    #[test]
    fn the_real_table_has_each_path_and_method_once() {
        let mut paths: Vec<_> = ROUTES.iter().map(|route| route.path).collect();
        paths.sort_unstable();
        paths.dedup();
        assert_eq!(paths.len(), ROUTES.len());
        for route in ROUTES {
            for (at, (method, _, _)) in route.calls.iter().enumerate() {
                assert!(route.calls[..at].iter().all(|(other, _, _)| other != method), "{}", route.path);
            }
        }
    }
}
