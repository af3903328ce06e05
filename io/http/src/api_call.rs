//! The calls of REST.

use pitlane_engine::terms::OrderKind;

/// All calls. A closed list; [`super::calls`] matches it to a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiCall {
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
    OrdersCancel,
    OrderSubmit(OrderKind),
    OrderModify(OrderKind),
    OrderHistory,
    OrderChanges,
    NextOrderId,
    OrderValidate,
    Alerts,
    Sessions,
    SessionEnd,
    SessionReset,
    Rates,
    RatesChange,
    CashBalances,
    Portfolio,
    PortfolioHistory,
    Profit,
    ProfitDays,
    Report,
    Risk,
    RiskChange,
    LimitUses,
    LogEvents,
    Adapters,
    Cluster,
    StrategyPhase,
    Latency,
    Bars,
    Ticks,
    Quotes,
    Depth,
    KillSwitchOn,
    KillSwitchOff,
    ExitVm,
}

impl ApiCall {
    /// Returns whether the call needs no login. Such calls reveal nothing of the platform's state.
    pub(crate) fn is_public(self) -> bool {
        matches!(
            self,
            ApiCall::Home
                | ApiCall::Asset
                | ApiCall::Docs
                | ApiCall::DocsScript
                | ApiCall::DocsStyle
                | ApiCall::OpenApi
                | ApiCall::Live
                | ApiCall::Ready
        )
    }

    /// Returns whether a supervisor checks the health of the service by this call.
    pub(crate) fn is_health(self) -> bool {
        matches!(self, ApiCall::Live | ApiCall::Ready)
    }
}
