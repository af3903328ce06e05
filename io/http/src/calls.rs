//! Maps each call to its handler.

use std::rc::Rc;

use super::app_state::AppState;
use super::body::RequestBody;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{HttpResponse, ResponseKind};
use super::routes::ApiCall;
use super::{
    about, cache, cluster_members, health, latency, operator, order_entry, orders, page, portfolio, position,
    reference, risk, sessions, subscription, transaction,
};

pub async fn handle(
    app: &Rc<AppState>,
    ctx: &RequestContext<'_>,
    call: ApiCall,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    match call {
        ApiCall::Home | ApiCall::Asset => page::show(app, ctx),
        ApiCall::Docs => Ok(file("text/html; charset=utf-8", include_str!("docs/index.html"))),
        ApiCall::DocsScript => Ok(file("text/javascript; charset=utf-8", include_str!("docs/viewer.js"))),
        ApiCall::DocsStyle => Ok(file("text/css; charset=utf-8", include_str!("docs/viewer.css"))),
        ApiCall::OpenApi => Ok(HttpResponse::from_json(app.description.clone())),
        ApiCall::Identity => about::identity(ctx),
        ApiCall::Live => Ok(health::live()),
        ApiCall::Ready => Ok(health::ready(app, ctx.caller)),
        ApiCall::Version => Ok(health::version(app)),
        ApiCall::Metrics if app.settings.metrics => Ok(health::metrics(app)),
        ApiCall::Metrics => Err(Problem::not_found()),
        ApiCall::BrokerMain => about::broker_main(app, ctx),
        ApiCall::BrokerWs => about::broker_ws(app, ctx),
        ApiCall::ConfigParams => about::params(app, ctx),
        ApiCall::CacheClear => cache::clear_all(app, ctx, body).await,
        ApiCall::Accounts => reference::accounts(app, ctx),
        ApiCall::Account => reference::account(app, ctx),
        ApiCall::Securities => reference::securities(app, ctx),
        ApiCall::SecuritySearch => reference::search(app, ctx),
        ApiCall::Security => reference::security(app, ctx),
        ApiCall::Forex => reference::forex(app, ctx),
        ApiCall::Families => reference::families(app, ctx),
        ApiCall::Family => reference::family(app, ctx),
        ApiCall::Strategies => reference::strategies(app, ctx),
        ApiCall::Exchanges => reference::exchanges(app, ctx),
        ApiCall::Positions => position::all(app, ctx),
        ApiCall::PositionClose => position::close(app, ctx, body).await,
        ApiCall::PositionReduce => position::reduce(app, ctx, body).await,
        ApiCall::PositionsReset => position::reset(app, ctx, body).await,
        ApiCall::TransactionRecord => transaction::record(app, ctx, body).await,
        ApiCall::Transaction => transaction::one(app, ctx),
        ApiCall::TransactionsDaily => transaction::daily(app, ctx),
        ApiCall::CashReset => transaction::reset_cash(app, ctx, body).await,
        ApiCall::Feeds => subscription::feeds(app, ctx),
        ApiCall::Subscribe => subscription::subscribe(app, ctx, true, body).await,
        ApiCall::Unsubscribe => subscription::subscribe(app, ctx, false, body).await,
        ApiCall::OrdersOpen => orders::open(app, ctx).await,
        ApiCall::Order => orders::one(app, ctx),
        ApiCall::OrderCancel => order_entry::cancel(app, ctx, body).await,
        ApiCall::OrderSubmit(kind) => order_entry::submit(app, ctx, kind, body).await,
        ApiCall::OrderModify(kind) => order_entry::modify(app, ctx, kind, body).await,
        ApiCall::OrderHistory => orders::history(app, ctx).await,
        ApiCall::NextOrderId => order_entry::next_id(app, ctx, body).await,
        ApiCall::OrderValidate => order_entry::validate(app, ctx, body).await,
        ApiCall::CashBalances => portfolio::cash(app, ctx),
        ApiCall::Portfolio => portfolio::portfolio(app, ctx),
        ApiCall::Sessions => sessions::all(app, ctx),
        ApiCall::SessionEnd => sessions::end(app, ctx, body).await,
        ApiCall::SessionReset => sessions::reset(app, ctx, body).await,
        ApiCall::Rates => sessions::rates(app, ctx),
        ApiCall::RatesChange => sessions::change_rates(app, ctx, body).await,
        ApiCall::Risk => risk::show(app, ctx),
        ApiCall::RiskChange => risk::change(app, ctx, body).await,
        ApiCall::Adapters => about::adapters(app, ctx),
        ApiCall::Cluster => cluster_members::all(app, ctx),
        ApiCall::StrategyPhase => risk::phase(app, ctx, body).await,
        ApiCall::Latency => Ok(latency::stages(app)),
        ApiCall::KillSwitchOn => operator::kill_switch(app, ctx, true, body).await,
        ApiCall::KillSwitchOff => operator::kill_switch(app, ctx, false, body).await,
        ApiCall::ExitVm => operator::exit_vm(app, ctx, body).await,
    }
}

/// Returns a file whose content may change in the next version.
fn file(content_type: &'static str, text: &'static str) -> HttpResponse {
    HttpResponse::text(ResponseKind::Asset { content_type, is_immutable: false }, text)
}
