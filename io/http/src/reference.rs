//! Reference data: accounts, securities, families, exchanges, strategies. All but the strategies'
//! phases change only when the whole set is replaced, so responses have an ETag, and short lists
//! are rendered once.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::id::{FamilyId, SecurityId, StrategyId};
use pitlane_engine::refdata::RefData;
use pitlane_journal::name_of;
use pitlane_protocols::rest::{
    AccountVO, BadQuery, ExchangeVO, ForexVO, Search, SecurityFamilyVO, SecurityVO, StrategyVO,
};
use serde::Serialize;

use super::app_state::AppState;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{HttpResponse, JsonRows, ResponseKind};
use super::streamed_list::{ROWS_PER_PORTION, StreamedList};

/// Maximum length of a list that is rendered once and cached; a longer one is streamed each time.
const CACHED_ROWS_MAX: usize = 1_024;

/// Rendered responses for one set of reference data.
pub struct RefDataCache {
    reference: Arc<RefData>,
    /// Hash of this set, by which the journal identifies it too.
    pub name: u64,
    etag: HeaderValue,
    lists: RefCell<[Option<Bytes>; 4]>,
}

/// The lists that are cached.
#[derive(Clone, Copy)]
enum RefDataList {
    Accounts,
    Securities,
    Families,
    Exchanges,
}

impl RefDataCache {
    pub fn new(reference: Arc<RefData>) -> RefDataCache {
        let name = name_of(&reference);
        let etag = HeaderValue::try_from(format!("\"{name:016x}\"")).expect("digits in quotation marks");
        RefDataCache { reference, name, etag, lists: RefCell::default() }
    }

    /// Returns a list from the cache, and renders it first if need be.
    fn list<T: Serialize>(&self, list: RefDataList, rows: impl Iterator<Item = T>) -> HttpResponse {
        let mut lists = self.lists.borrow_mut();
        let made = lists[list as usize].get_or_insert_with(|| {
            let mut bytes = Vec::new();
            JsonRows::default().push(&mut bytes, rows, true);
            bytes.into()
        });
        HttpResponse::from_json(made.clone()).with_etag(self.etag.clone())
    }

    /// Streams the securities that match a search, or all.
    fn securities(&self, search: Search, limit: usize) -> HttpResponse {
        let reference = self.reference.clone();
        let (mut at, mut left, mut rows) = (0, limit, JsonRows::default());
        let portions = StreamedList::new(move |bytes| {
            let portion = &reference.securities()[at..];
            let portion = &portion[..portion.len().min(ROWS_PER_PORTION)];
            at += portion.len();
            let found = portion.iter().filter(|row| search.matches(row, &reference));
            let found: Vec<_> = found.take(left).map(|row| SecurityVO::of(row, &reference)).collect();
            left -= found.len();
            let goes_on = at < reference.securities().len() && left > 0;
            rows.push(bytes, found.iter(), !goes_on);
            goes_on
        });
        HttpResponse::streamed(portions).with_etag(self.etag.clone())
    }
}

/// Returns the response, or 304 if the client has it already.
fn unless_known(
    app: &AppState,
    ctx: &RequestContext<'_>,
    answer: impl FnOnce(&RefDataCache) -> Result<HttpResponse, Problem>,
) -> Result<HttpResponse, Problem> {
    let cache = app.ref_data_cache();
    if ctx.has(&cache.etag) {
        let unchanged =
            HttpResponse::text(ResponseKind::Empty, Bytes::new()).with_status(StatusCode::NOT_MODIFIED);
        return Ok(unchanged.with_etag(cache.etag.clone()));
    }
    answer(&cache)
}

pub fn accounts(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let rows = |cache: &RefDataCache| {
        cache.list(RefDataList::Accounts, cache.reference.accounts().iter().map(AccountVO::of))
    };
    unless_known(app, ctx, |cache| Ok(rows(cache)))
}

pub fn account(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let name = ctx.name()?;
    unless_known(app, ctx, |cache| {
        let row = cache.reference.accounts().iter().find(|row| row.name == name);
        let row =
            row.ok_or_else(|| Problem::unknown("unknown-account", "there is no account of this name"))?;
        Ok(HttpResponse::json(&AccountVO::of(row)).with_etag(cache.etag.clone()))
    })
}

pub fn securities(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let limit = limit_of(ctx, &["limit"])?;
    unless_known(app, ctx, |cache| {
        let rows = cache.reference.securities();
        if limit >= rows.len() && rows.len() <= CACHED_ROWS_MAX {
            let rows = rows.iter().map(|row| SecurityVO::of(row, &cache.reference));
            return Ok(cache.list(RefDataList::Securities, rows));
        }
        Ok(cache.securities(Search::default(), limit))
    })
}

pub fn search(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["query", "limit"])?;
    let limit = limit_of(ctx, &["query", "limit"])?;
    let search = Search::parse(query.get("query").unwrap_or_default())
        .map_err(|error| Problem::bad_request("bad-search", error.to_string()))?;
    unless_known(app, ctx, |cache| Ok(cache.securities(search, limit)))
}

pub fn security(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(app, ctx, |cache| {
        let id = ctx.id().and_then(|id| u32::try_from(id).ok());
        let row = id.and_then(|id| cache.reference.security(SecurityId(id)));
        let row =
            row.ok_or_else(|| Problem::unknown("unknown-security", "there is no security with this id"))?;
        Ok(HttpResponse::json(&SecurityVO::of(row, &cache.reference)).with_etag(cache.etag.clone()))
    })
}

pub fn forex(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["baseCurrency", "transactionCurrency"])?;
    let bad = |bad: BadQuery| Problem::bad_request("bad-query", bad.to_string());
    let base = query.required("baseCurrency").map_err(bad)?;
    let transaction = query.required("transactionCurrency").map_err(bad)?;
    unless_known(app, ctx, |cache| {
        let pair = ForexVO::find(&cache.reference, base, transaction);
        let pair = pair.ok_or_else(|| Problem::unknown("unknown-pair", "there is no such currency pair"))?;
        Ok(HttpResponse::json(&pair).with_etag(cache.etag.clone()))
    })
}

pub fn families(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(app, ctx, |cache| {
        Ok(cache.list(RefDataList::Families, cache.reference.families().iter().map(SecurityFamilyVO::of)))
    })
}

pub fn family(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(app, ctx, |cache| {
        let id = ctx.id().and_then(|id| u32::try_from(id).ok());
        let row = id.and_then(|id| cache.reference.family(FamilyId(id)));
        let row = row.ok_or_else(|| Problem::unknown("unknown-family", "there is no family with this id"))?;
        Ok(HttpResponse::json(&SecurityFamilyVO::of(row)).with_etag(cache.etag.clone()))
    })
}

pub fn exchanges(app: &AppState, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(app, ctx, |cache| {
        Ok(cache.list(RefDataList::Exchanges, cache.reference.exchanges().iter().map(ExchangeVO::of)))
    })
}

/// Lists the strategies. Their phases change, so there is no ETag.
pub fn strategies(app: &Rc<AppState>, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (reference, view) = (app.shard_client.reference(), app.shard_client.view());
    let rows = reference.strategies().iter().map(|row| {
        // The server itself always runs.
        let phase = match row.id {
            StrategyId::SERVER => StrategyPhase::Running,
            id => view.phase(id).unwrap_or_default(),
        };
        let failure = app.notification_hub.failure(&row.name);
        StrategyVO::of(row, phase, app.settings.simulation, failure.as_deref())
    });
    Ok(HttpResponse::list(rows))
}

/// Returns the maximum number of rows that the client wants.
pub fn limit_of(ctx: &RequestContext<'_>, known: &[&str]) -> Result<usize, Problem> {
    let limit = ctx.query(known)?.count("limit");
    let limit = limit.map_err(|bad| Problem::bad_request("bad-query", bad.to_string()))?;
    Ok(limit.unwrap_or(usize::MAX))
}
