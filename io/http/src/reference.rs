//! Reference data: accounts, securities, families, exchanges, strategies. All but the strategies'
//! phases change only when the whole set is replaced, so responses have an ETag, and short lists
//! are rendered once.

use bytes::Bytes;
use hyper::StatusCode;
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::id::{FamilyId, SecurityId, StrategyId};
use pitlane_protocols::rest::{
    AccountVO, BadQuery, ExchangeVO, ForexVO, Search, SecurityFamilyVO, SecurityVO, StrategyVO,
};

use super::notification_hub::NotificationHub;
use super::problem::Problem;
use super::ref_data_cache::{RefDataCache, RefDataList};
use super::request_context::RequestContext;
use super::response::{HttpResponse, ResponseKind};
use super::trading::Trading;

/// Maximum length of a list that is rendered once and cached; a longer one is streamed each time.
const CACHED_ROWS_MAX: usize = 1_024;

/// Returns the response, or 304 if the client has it already.
fn unless_known(
    cache: &RefDataCache,
    ctx: &RequestContext<'_>,
    answer: impl FnOnce(&RefDataCache) -> Result<HttpResponse, Problem>,
) -> Result<HttpResponse, Problem> {
    if ctx.has(&cache.etag) {
        let unchanged =
            HttpResponse::text(ResponseKind::Empty, Bytes::new()).with_status(StatusCode::NOT_MODIFIED);
        return Ok(unchanged.with_etag(cache.etag.clone()));
    }
    answer(cache)
}

pub(crate) fn accounts(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let rows = |cache: &RefDataCache| {
        cache.list(RefDataList::Accounts, cache.reference.accounts().iter().map(AccountVO::of))
    };
    unless_known(cache, ctx, |cache| Ok(rows(cache)))
}

pub(crate) fn account(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let name = ctx.name()?;
    unless_known(cache, ctx, |cache| {
        let row = cache.reference.accounts().iter().find(|row| row.name == name);
        let row =
            row.ok_or_else(|| Problem::unknown("unknown-account", "there is no account of this name"))?;
        Ok(HttpResponse::json(&AccountVO::of(row)).with_etag(cache.etag.clone()))
    })
}

pub(crate) fn securities(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let limit = ctx.limit(&["limit"])?;
    unless_known(cache, ctx, |cache| {
        let rows = cache.reference.securities();
        if limit >= rows.len() && rows.len() <= CACHED_ROWS_MAX {
            let rows = rows.iter().map(|row| SecurityVO::of(row, &cache.reference));
            return Ok(cache.list(RefDataList::Securities, rows));
        }
        Ok(cache.securities(Search::default(), limit))
    })
}

pub(crate) fn search(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["query", "limit"])?;
    let limit = ctx.limit(&["query", "limit"])?;
    let search = Search::parse(query.get("query").unwrap_or_default())
        .map_err(|error| Problem::bad_request("bad-search", error.to_string()))?;
    unless_known(cache, ctx, |cache| Ok(cache.securities(search, limit)))
}

pub(crate) fn security(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(cache, ctx, |cache| {
        let id = ctx.id().and_then(|id| u32::try_from(id).ok());
        let row = id.and_then(|id| cache.reference.security(SecurityId(id)));
        let row =
            row.ok_or_else(|| Problem::unknown("unknown-security", "there is no security with this id"))?;
        Ok(HttpResponse::json(&SecurityVO::of(row, &cache.reference)).with_etag(cache.etag.clone()))
    })
}

pub(crate) fn forex(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let query = ctx.query(&["baseCurrency", "transactionCurrency"])?;
    let bad = |bad: BadQuery| Problem::bad_request("bad-query", bad.to_string());
    let base = query.required("baseCurrency").map_err(bad)?;
    let transaction = query.required("transactionCurrency").map_err(bad)?;
    unless_known(cache, ctx, |cache| {
        let pair = ForexVO::find(&cache.reference, base, transaction);
        let pair = pair.ok_or_else(|| Problem::unknown("unknown-pair", "there is no such currency pair"))?;
        Ok(HttpResponse::json(&pair).with_etag(cache.etag.clone()))
    })
}

pub(crate) fn families(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(cache, ctx, |cache| {
        Ok(cache.list(RefDataList::Families, cache.reference.families().iter().map(SecurityFamilyVO::of)))
    })
}

pub(crate) fn family(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(cache, ctx, |cache| {
        let id = ctx.id().and_then(|id| u32::try_from(id).ok());
        let row = id.and_then(|id| cache.reference.family(FamilyId(id)));
        let row = row.ok_or_else(|| Problem::unknown("unknown-family", "there is no family with this id"))?;
        Ok(HttpResponse::json(&SecurityFamilyVO::of(row)).with_etag(cache.etag.clone()))
    })
}

pub(crate) fn exchanges(cache: &RefDataCache, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    unless_known(cache, ctx, |cache| {
        Ok(cache.list(RefDataList::Exchanges, cache.reference.exchanges().iter().map(ExchangeVO::of)))
    })
}

/// Lists the strategies. Their phases change, so there is no ETag.
pub(crate) fn strategies(
    trading: &Trading,
    hub: &NotificationHub,
    simulation: bool,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (reference, view) = (trading.shard_client.reference(), trading.shard_client.view());
    let rows = reference.strategies().iter().map(|row| {
        // The server itself always runs.
        let phase = match row.id {
            StrategyId::SERVER => StrategyPhase::Running,
            id => view.phase(id).unwrap_or_default(),
        };
        let failure = hub.failure(&row.name);
        StrategyVO::of(row, phase, simulation, failure.as_deref())
    });
    Ok(HttpResponse::list(rows))
}
