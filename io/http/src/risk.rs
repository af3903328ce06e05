//! Pre-trade limits and the phases of strategies: what an operator changes.

use pitlane_engine::command::{CommandKind, Scope};
use pitlane_engine::directive::Directive;
use pitlane_engine::id::StrategyId;
use pitlane_engine::reason::Reason;
use pitlane_protocols::codes::WireName;
use pitlane_protocols::rest::{self, LimitUseVO, LimitsVO, PhaseVO, RiskVO};
use pitlane_strategy::lifecycle::{self, WrongPhase};

use super::body::RequestBody;
use super::credit_use::CreditUse;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::scope::StrategyScope;
use super::trading::Trading;

pub(crate) fn show(trading: &Trading, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    Ok(HttpResponse::json(&RiskVO::of(&trading.shard_client.view(), &trading.shard_client.reference())))
}

/// Returns what strategies and accounts use of their limits. The use of an account shows orders of
/// every strategy, so it is for callers that see all of them.
pub(crate) async fn uses(
    credit_use: &CreditUse,
    trading: &Trading,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let reference = trading.shard_client.reference();
    let caller_scope = ctx.scope(&reference);
    if caller_scope == StrategyScope::All {
        credit_use.refresh(&trading.shard_client, trading.now()).await;
    }
    let is_visible = |scope| match scope {
        Scope::Strategy(strategy) => caller_scope.contains(strategy),
        Scope::Account(_) | Scope::Global | Scope::Security(_) | Scope::Adapter(_) => {
            caller_scope == StrategyScope::All
        }
    };
    let credit_of = |account| credit_use.of(&trading.shard_client, account);
    let uses = LimitUseVO::all(&trading.shard_client.view(), &reference, is_visible, credit_of);
    Ok(HttpResponse::list(uses.into_iter()))
}

/// Changes the limits of one strategy or account. They hold until the next start, which takes them
/// from the settings again; in a cluster they hold until the next change.
pub(crate) async fn change(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let bytes = body.read().await?;
    let request: LimitsVO = rest::read(&bytes).map_err(Problem::bad_body)?;
    let scope = scope_of(trading, &request)?;
    let caller_scope = ctx.scope(&trading.shard_client.reference());
    match scope {
        Scope::Strategy(strategy) => caller_scope.authorize(strategy)?,
        Scope::Account(_) | Scope::Global | Scope::Security(_) | Scope::Adapter(_) => {
            caller_scope.authorize_all()?
        }
    }
    let old = trading.shard_client.view().limits(scope).copied().unwrap_or_default();
    if matches!(scope, Scope::Strategy(_)) && (request.credit.is_some() || request.credit_currency.is_some())
    {
        return Err(Problem::unprocessable("bad-limits", "credit is a limit of accounts"));
    }
    let limits = request.applied_to(&old).map_err(|detail| Problem::unprocessable("bad-limits", detail))?;
    trading.send_directive(Directive::Limits { scope, limits }).await
}

fn scope_of(trading: &Trading, request: &LimitsVO) -> Result<Scope, Problem> {
    let reference = trading.shard_client.reference();
    match (&request.strategy_name, &request.account_name) {
        (Some(name), None) => {
            let row = reference.strategies().iter().find(|row| row.name == *name);
            Ok(Scope::Strategy(row.ok_or_else(|| Problem::refused(Reason::UnknownStrategy))?.id))
        }
        (None, Some(name)) => {
            let row = reference.accounts().iter().find(|row| row.name == *name);
            Ok(Scope::Account(row.ok_or_else(|| Problem::refused(Reason::UnknownAccount))?.id))
        }
        _ => Err(Problem::unprocessable(
            "bad-limits",
            "name a strategy by `strategyName` or an account by `accountName`",
        )),
    }
}

/// Moves a strategy to another phase, through those between: `INIT → PREFEED → START → RUNNING →
/// STOP → EXIT`. One that has stopped may start again.
pub(crate) async fn phase(
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let name = ctx.name()?;
    let bytes = body.read().await?;
    let PhaseVO { phase } = rest::read(&bytes).map_err(Problem::bad_body)?;
    let reference = trading.shard_client.reference();
    let row = reference.strategies().iter().find(|row| row.name == name);
    let strategy =
        row.ok_or_else(|| Problem::unknown("unknown-strategy", "there is no strategy of this name"))?.id;
    ctx.scope(&reference).authorize(strategy)?;
    if strategy == StrategyId::SERVER {
        return Err(Problem::unprocessable("server-runs", "the server itself always runs"));
    }
    let now = trading.shard_client.view().phase(strategy).unwrap_or_default();
    for phase in lifecycle::path(now, phase.0).map_err(wrong_phase)? {
        trading.execute(CommandKind::Phase { strategy, phase }).await?;
    }
    Ok(HttpResponse::empty())
}

fn wrong_phase(WrongPhase { from, to }: WrongPhase) -> Problem {
    let detail =
        format!("a strategy cannot change from {} to {}: stop it first", from.wire_name(), to.wire_name());
    Problem::conflict("phase-order", detail)
}
