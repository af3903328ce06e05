//! Maps each call to its handler.

use std::rc::Rc;

use super::api_call::ApiCall;
use super::app_state::AppState;
use super::body::RequestBody;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{HttpResponse, ResponseKind};
use super::{
    about, alerts, bulk_cancel, cache, cluster_members, depth, health, history, latency, log_history,
    operator, order_changes, order_entry, orders, page, portfolio, position, profit, reference, report, risk,
    sessions, subscription, transaction,
};

pub(crate) async fn handle(
    app: &Rc<AppState>,
    ctx: &RequestContext<'_>,
    call: ApiCall,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let trading = &app.trading;
    match call {
        ApiCall::Home | ApiCall::Asset => page::show(&app.content.page, ctx),
        ApiCall::Docs => Ok(file("text/html; charset=utf-8", include_str!("docs/index.html"))),
        ApiCall::DocsScript => Ok(file("text/javascript; charset=utf-8", include_str!("docs/viewer.js"))),
        ApiCall::DocsStyle => Ok(file("text/css; charset=utf-8", include_str!("docs/viewer.css"))),
        ApiCall::OpenApi => Ok(HttpResponse::from_json(app.content.description.clone())),
        ApiCall::Identity => about::identity(ctx),
        ApiCall::Live => Ok(health::live()),
        ApiCall::Ready => Ok(health::ready(app, ctx.caller)),
        ApiCall::Version => Ok(health::version(&app.monitoring.service_status)),
        ApiCall::Metrics if app.settings.metrics => Ok(health::metrics(app)),
        ApiCall::Metrics => Err(Problem::not_found()),
        ApiCall::BrokerMain => about::broker_main(&app.settings, &app.monitoring.service_status, ctx),
        ApiCall::BrokerWs => about::broker_ws(&app.settings, ctx),
        ApiCall::ConfigParams => about::params(&app.settings, &app.notifications.ws_broker, ctx),
        ApiCall::CacheClear => cache::clear_all(app, ctx, body).await,
        ApiCall::Accounts => reference::accounts(&app.ref_data.cache(), ctx),
        ApiCall::Account => reference::account(&app.ref_data.cache(), ctx),
        ApiCall::Securities => reference::securities(&app.ref_data.cache(), ctx),
        ApiCall::SecuritySearch => reference::search(&app.ref_data.cache(), ctx),
        ApiCall::Security => reference::security(&app.ref_data.cache(), ctx),
        ApiCall::Forex => reference::forex(&app.ref_data.cache(), ctx),
        ApiCall::Families => reference::families(&app.ref_data.cache(), ctx),
        ApiCall::Family => reference::family(&app.ref_data.cache(), ctx),
        ApiCall::Strategies => {
            let (hub, simulation) = (&app.notifications.hub, app.settings.simulation);
            reference::strategies(trading, hub, simulation, ctx)
        }
        ApiCall::Exchanges => reference::exchanges(&app.ref_data.cache(), ctx),
        ApiCall::Positions => position::all(trading, ctx),
        ApiCall::PositionClose => position::close(trading, ctx, body).await,
        ApiCall::PositionReduce => position::reduce(trading, ctx, body).await,
        ApiCall::PositionsReset => position::reset(trading, ctx, body).await,
        ApiCall::TransactionRecord => transaction::record(trading, ctx, body).await,
        ApiCall::Transaction => transaction::one(trading, app.settings.instance, ctx),
        ApiCall::TransactionsDaily => transaction::daily(trading, app.settings.instance, ctx),
        ApiCall::CashReset => transaction::reset_cash(trading, ctx, body).await,
        ApiCall::Feeds => subscription::feeds(&app.settings.feeds, ctx),
        ApiCall::Subscribe => subscription::subscribe(trading, ctx, true, body).await,
        ApiCall::Unsubscribe => subscription::subscribe(trading, ctx, false, body).await,
        ApiCall::OrdersOpen => orders::open(&app.order_lists, ctx).await,
        ApiCall::Order => orders::one(&app.order_lists, ctx),
        ApiCall::OrderCancel => order_entry::cancel(trading, ctx, body).await,
        ApiCall::OrdersCancel => bulk_cancel::cancel_orders(trading, ctx, body).await,
        ApiCall::OrderSubmit(kind) => order_entry::submit(trading, ctx, kind, body).await,
        ApiCall::OrderModify(kind) => order_entry::modify(trading, ctx, kind, body).await,
        ApiCall::OrderHistory => orders::history(&app.order_lists, ctx).await,
        ApiCall::OrderChanges => order_changes::show(&app.order_lists, ctx),
        ApiCall::NextOrderId => order_entry::next_id(trading, ctx, body).await,
        ApiCall::OrderValidate => order_entry::validate(trading, ctx, body).await,
        ApiCall::CashBalances => portfolio::cash(trading, ctx),
        ApiCall::Portfolio => portfolio::portfolio(trading, app.settings.base_currency, ctx),
        ApiCall::Alerts => alerts::all(&trading.shard_client, ctx),
        ApiCall::Sessions => sessions::all(&app.notifications, ctx),
        ApiCall::SessionEnd => sessions::end(&app.notifications, trading, ctx, body).await,
        ApiCall::SessionReset => sessions::reset(&app.notifications, trading, ctx, body).await,
        ApiCall::Rates => sessions::rates(&app.notifications, ctx),
        ApiCall::RatesChange => sessions::change_rates(&app.notifications, trading, ctx, body).await,
        ApiCall::PortfolioHistory => app.portfolio_history.show(&trading.shard_client, ctx),
        ApiCall::Profit => profit::show(app, ctx).await,
        ApiCall::ProfitDays => app.profit_history.show_days(&trading.shard_client, ctx),
        ApiCall::Report => report::show(app, ctx).await,
        ApiCall::LogEvents => log_history::show(&app.notifications.hub.log_history(), ctx),
        ApiCall::LimitUses => risk::uses(&app.credit_use, trading, ctx).await,
        ApiCall::Risk => risk::show(trading, ctx),
        ApiCall::RiskChange => risk::change(trading, ctx, body).await,
        ApiCall::Adapters => about::adapters(&trading.shard_client, ctx),
        ApiCall::Cluster => cluster_members::all(trading, ctx),
        ApiCall::StrategyPhase => risk::phase(trading, ctx, body).await,
        ApiCall::Bars => history::bars(app.history.as_ref(), trading, ctx).await,
        ApiCall::Ticks => history::ticks(app.history.as_ref(), trading, ctx).await,
        ApiCall::Quotes => history::quotes(app.history.as_ref(), trading, ctx).await,
        ApiCall::Depth => depth::since(&app.notifications.ws_broker, trading, ctx).await,
        ApiCall::Latency => Ok(latency::stages(&app.monitoring)),
        ApiCall::KillSwitchOn => operator::kill_switch(trading, ctx, true, body).await,
        ApiCall::KillSwitchOff => operator::kill_switch(trading, ctx, false, body).await,
        ApiCall::ExitVm => operator::exit_vm(trading, &app.lifecycle, ctx, body).await,
    }
}

/// Returns a file whose content may change in the next version.
fn file(content_type: &'static str, text: &'static str) -> HttpResponse {
    HttpResponse::text(ResponseKind::Asset { content_type, is_immutable: false }, text)
}
