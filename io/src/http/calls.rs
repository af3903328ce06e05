//! Maps each call to its handler.

use std::rc::Rc;

use super::app_state::AppState;
use super::body::Input;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{Answer, Kind};
use super::routes::Call;
use super::{
    about, cache, cluster, health, latency, operator, order_entry, orders, page, portfolio, position,
    reference, risk, sessions, subscription, transaction,
};

pub async fn handle(
    house: &Rc<AppState>,
    ask: &RequestContext<'_>,
    call: Call,
    body: Input,
) -> Result<Answer, Problem> {
    match call {
        Call::Home | Call::Asset => page::show(house, ask),
        Call::Docs => Ok(file("text/html; charset=utf-8", include_str!("docs/index.html"))),
        Call::DocsScript => Ok(file("text/javascript; charset=utf-8", include_str!("docs/viewer.js"))),
        Call::DocsStyle => Ok(file("text/css; charset=utf-8", include_str!("docs/viewer.css"))),
        Call::OpenApi => Ok(Answer::made(house.description.clone())),
        Call::Identity => about::identity(ask),
        Call::Live => Ok(health::live()),
        Call::Ready => Ok(health::ready(house, ask.who)),
        Call::Version => Ok(health::version(house)),
        Call::Metrics => Ok(health::metrics(house)),
        Call::BrokerMain => about::broker_main(house, ask),
        Call::BrokerWs => about::broker_ws(house, ask),
        Call::ConfigParams => about::params(house, ask),
        Call::CacheClear => cache::clear_all(house, ask, body).await,
        Call::Accounts => reference::accounts(house, ask),
        Call::Account => reference::account(house, ask),
        Call::Securities => reference::securities(house, ask),
        Call::SecuritySearch => reference::search(house, ask),
        Call::Security => reference::security(house, ask),
        Call::Forex => reference::forex(house, ask),
        Call::Families => reference::families(house, ask),
        Call::Family => reference::family(house, ask),
        Call::Strategies => reference::strategies(house, ask),
        Call::Exchanges => reference::exchanges(house, ask),
        Call::Positions => position::all(house, ask),
        Call::PositionClose => position::close(house, ask, body).await,
        Call::PositionReduce => position::reduce(house, ask, body).await,
        Call::PositionsReset => position::reset(house, ask, body).await,
        Call::TransactionRecord => transaction::record(house, ask, body).await,
        Call::Transaction => transaction::one(house, ask),
        Call::TransactionsDaily => transaction::daily(house, ask),
        Call::CashReset => transaction::reset_cash(house, ask, body).await,
        Call::Feeds => subscription::feeds(house, ask),
        Call::Subscribe => subscription::subscribe(house, ask, true, body).await,
        Call::Unsubscribe => subscription::subscribe(house, ask, false, body).await,
        Call::OrdersOpen => orders::open(house, ask).await,
        Call::Order => orders::one(house, ask),
        Call::OrderCancel => order_entry::cancel(house, ask, body).await,
        Call::OrderSubmit(kind) => order_entry::submit(house, ask, kind, body).await,
        Call::OrderModify(kind) => order_entry::modify(house, ask, kind, body).await,
        Call::OrderHistory => orders::history(house, ask).await,
        Call::NextOrderId => order_entry::next_id(house, ask, body).await,
        Call::OrderValidate => order_entry::validate(house, ask, body).await,
        Call::CashBalances => portfolio::cash(house, ask),
        Call::Portfolio => portfolio::portfolio(house, ask),
        Call::Sessions => sessions::all(house, ask),
        Call::SessionEnd => sessions::end(house, ask, body).await,
        Call::SessionReset => sessions::reset(house, ask, body).await,
        Call::Rates => sessions::rates(house, ask),
        Call::RatesChange => sessions::change_rates(house, ask, body).await,
        Call::Risk => risk::show(house, ask),
        Call::RiskChange => risk::change(house, ask, body).await,
        Call::Adapters => about::adapters(house, ask),
        Call::Cluster => cluster::shown::all(house, ask),
        Call::StrategyPhase => risk::phase(house, ask, body).await,
        Call::Latency => Ok(latency::stages(house)),
        Call::KillSwitchOn => operator::kill_switch(house, ask, true, body).await,
        Call::KillSwitchOff => operator::kill_switch(house, ask, false, body).await,
        Call::ExitVm => operator::exit_vm(house, ask, body).await,
    }
}

/// Returns a file whose content may change in the next version.
fn file(content_type: &'static str, text: &'static str) -> Answer {
    Answer::text(Kind::Asset { content_type, is_immutable: false }, text)
}
