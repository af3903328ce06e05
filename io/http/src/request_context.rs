//! A request as its handler sees it: the parts of its head as values.

use hyper::header::{HeaderValue, IF_NONE_MATCH};
use hyper::http::request::Parts as Head;
use pitlane_engine::refdata::RefData;
use pitlane_engine::sender::{Protocol, Sender, SenderId, SenderText};
use pitlane_gateway::address_of;
use pitlane_protocols::rest::{Query, percent_decode};

use super::caller::RequestCaller;
use super::connection_info::ConnectionInfo;
use super::problem::Problem;
use super::routes::Segments;
use super::scope::StrategyScope;
use super::shard_client::ShardClient;

/// Query parameter that requests the order in the response, and its value.
const RETURN: &str = "return";
const RETURN_ORDER: &str = "order";

#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub connection: &'a ConnectionInfo,
    pub head: &'a Head,
    pub caller: &'a RequestCaller,
    /// Segments matched by each `{}` of the path, still percent-encoded.
    pub segments: Segments<'a>,
}

impl RequestContext<'_> {
    /// Returns the strategies whose orders, positions and money the caller may see and change.
    pub(crate) fn scope(&self, reference: &RefData) -> StrategyScope {
        StrategyScope::of(self.caller, reference)
    }

    /// Returns the sender of an order in this request.
    pub(crate) fn sender(&self, shard_client: &ShardClient) -> SenderId {
        let login = match self.caller {
            RequestCaller::Known(identity) => SenderText::new(&identity.name),
            RequestCaller::Anonymous => SenderText::EMPTY,
        };
        shard_client.register_sender(Sender {
            protocol: Protocol::Rest,
            address: address_of(self.connection.peer.ip()),
            login,
            session: SenderText::EMPTY,
        })
    }

    /// Returns the query, of which only these names are known.
    pub(crate) fn query(&self, known: &[&str]) -> Result<Query, Problem> {
        let text = self.head.uri.query().unwrap_or_default();
        Query::parse(text, known).map_err(|bad| Problem::bad_request("bad-query", bad.to_string()))
    }

    /// Returns the maximum number of rows that the client wants.
    pub(crate) fn limit(&self, known: &[&str]) -> Result<usize, Problem> {
        let limit = self.query(known)?.count("limit");
        let limit = limit.map_err(|bad| Problem::bad_request("bad-query", bad.to_string()))?;
        Ok(limit.unwrap_or(usize::MAX))
    }

    /// Checks a call without parameters: a misspelt parameter must not pass as absent.
    pub(crate) fn no_query(&self) -> Result<(), Problem> {
        self.query(&[]).map(|_nothing| ())
    }

    /// Returns the id in the path; `None` if it is not a number.
    pub(crate) fn id(&self) -> Option<u64> {
        let text = self.segments[0];
        let is_plain = !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
        text.parse().ok().filter(|_| is_plain)
    }

    /// Returns the name in the path.
    pub(crate) fn name(&self) -> Result<String, Problem> {
        let bad = || Problem::bad_request("bad-path", "the path is not percent-encoded UTF-8");
        percent_decode(self.segments[0]).ok_or_else(bad)
    }

    /// Returns the query of a request that writes an order: these names, and `return`.
    pub(crate) fn order_query(&self, known: &[&str]) -> Result<Query, Problem> {
        let query = self.query(&[known, &[RETURN]].concat())?;
        match query.get(RETURN) {
            None | Some(RETURN_ORDER) => Ok(query),
            Some(_) => Err(Problem::bad_request("bad-query", "`return` must be `order`")),
        }
    }

    /// Returns whether the response to an order request shall contain the order: `?return=order`,
    /// or the header of RFC 7240.
    pub(crate) fn wants_representation(&self) -> bool {
        let mut pairs = self.head.uri.query().unwrap_or_default().split('&');
        // The query was checked, so each name occurs at most once.
        let is_asked = |pair| percent_decode(pair).is_some_and(|pair| pair == "return=order");
        if pairs.any(is_asked) {
            return true;
        }
        let values = self.head.headers.get_all("prefer").iter();
        let mut preferences =
            values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split([',', ';']));
        preferences.any(|preference| preference.trim().eq_ignore_ascii_case("return=representation"))
    }

    /// Returns whether the client has this state already.
    pub(crate) fn has(&self, etag: &HeaderValue) -> bool {
        // Most requests have no such header.
        if !self.head.headers.contains_key(IF_NONE_MATCH) {
            return false;
        }
        let values = self.head.headers.get_all(IF_NONE_MATCH).iter();
        let mut tags = values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        let etag = etag.to_str().unwrap_or_default();
        tags.any(|tag| {
            let tag = tag.trim();
            tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
        })
    }
}
