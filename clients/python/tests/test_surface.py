"""Every operation that the service describes has a method, and both clients have the same ones."""

import inspect
import re
from datetime import date
from decimal import Decimal

import pytest
from conftest import wait_until_finished
from pitlane import (
    AsyncPitlane,
    Limits,
    MarketOrder,
    NewTransaction,
    NotFound,
    Phase,
    Pitlane,
    Problem,
    Rates,
    Side,
    StopOrder,
    SwitchState,
    TransactionType,
    market_values,
    operation_values,
    requests,
    values,
    wire,
)

# The web page and the documentation, which are not calls.
PAGES = {"/", "/assets/{file}", "/docs", "/docs/viewer.css", "/docs/viewer.js", "/favicon.svg"}


def operations(description):
    return {
        (method.upper(), path) for path, item in description["paths"].items() for method in item if path not in PAGES
    }


class Log:
    """Records the described operations that a client has called."""

    def __init__(self, client, described):
        self.called = set()
        # Literal paths before paths with parameters.
        self.described = sorted(described, key=lambda operation: operation[1].count("{"))
        self.send, client._http.request = client._http.request, self.record

    def record(self, called, target, headers, body):
        path = target.partition("?")[0]
        for method, template in self.described:
            pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template))
            if method == called and re.fullmatch(pattern, path):
                self.called.add((method, template))
                return self.send(called, target, headers, body)
        raise AssertionError(f"{called} {path} is not described")


def test_every_operation_has_a_method(new_service):
    with Pitlane(new_service().start().url) as client:
        described = operations(client.description())
        assert len(described) > 60
        log = Log(client, described)
        call_everything(client)
        assert described - log.called == set()


def call_everything(client):
    assert client.is_live() and client.health().ready
    assert client.version().name == "pitlane"
    assert client.identity().role == "admin"
    assert "pitlane_" in client.metrics()
    client.description()
    assert client.config_params()["broker.maxRatePerConnection"] == "50"
    reference(client)
    orders(client)
    ledger(client)
    operation(client)
    client.shut_down()


def reference(client):
    assert len(client.securities(limit=5)) == 5
    assert client.security(1).tick_size == Decimal("0.01")
    assert [found.symbol for found in client.search("apple type:STOCK")] == ["AAPL"]
    assert client.forex("EUR", "USD").transaction_currency == "USD"
    assert client.family(client.families()[0].id).currency == "USD"
    assert client.account(client.accounts()[0].name).id == client.accounts()[0].id
    assert {exchange.mic for exchange in client.exchanges()} >= {"XNAS"}
    assert client.strategies()[0].name == "SERVER"
    client.set_phase("PAIRS", Phase.STOP)
    assert {strategy.name: strategy.phase for strategy in client.strategies()}["PAIRS"] is Phase.STOP
    client.clear_caches()


def orders(client):
    assert client.next_order_id(1) != client.next_order_id(1)
    client.validate(MarketOrder(1, Side.BUY, 1))
    (market,) = wait_until_finished(client, client.buy(1, 10))
    limit = client.modify(client.buy(1, 1, limit=100), limit="100.5")
    stop = client.modify(client.submit(StopOrder(1, Side.SELL, 1, 10)), stop="10.5")
    both = client.modify(client.sell(1, 1, limit=10, stop="10.5"), quantity=2)
    with pytest.raises(Problem):
        client.modify(market, quantity=5)
    for order in (limit, stop, both):
        client.cancel(order)
        assert client.order(order.int_id).status == "CANCELED"
    assert client.open_orders() == []
    assert len(client.order_history()) == 4
    assert client.order_changes(market).changes[-1].status == "FILLED"
    # An id may look like another path.
    for odd in ("market", "limit", "stop", "stoplimit"):
        with pytest.raises(NotFound):
            client.order(odd)
        with pytest.raises(NotFound):
            client.cancel(odd)
    assert client.cancel_all(side=Side.SELL).complete


def ledger(client):
    (position,) = client.positions()
    (reducing,) = wait_until_finished(client, client.reduce_position(position, 4))
    assert reducing.quantity == reducing.filled_quantity == 4
    (closing,) = wait_until_finished(client, client.close_position(position))
    assert closing.quantity == closing.filled_quantity == 6
    client.reset_positions()
    assert client.positions()[0].quantity == 0
    booked = client.record(NewTransaction(TransactionType.CREDIT, "1000.5", currency="USD"))
    assert booked.price == Decimal("1000.5")
    assert client.transactions(limit=1) == [client.transaction(booked.id)] == [booked]
    client.reset_cash_balances()
    client.reset_cache_balances()
    assert client.cash()[0].currency == "USD"
    assert client.portfolio("SERVER").base_currency == "USD"


def operation(client):
    # The list is empty in the first second.
    assert all(row.p99_ns >= row.p50_ns > 0 for row in client.latency())
    assert client.adapters()[0].name == "SIM"
    assert client.quote(1).last is not None
    assert all(bar.low <= bar.open <= bar.high for bar in client.bars(1, "1s", limit=5))
    assert len(client.tick_history(1, limit=1)) == 1
    depth = client.depth(1)
    assert client.depth(1, since=depth).seq >= depth.seq
    assert client.members() == []
    assert client.alerts(limit=5) == []
    with pytest.raises(NotFound):
        client.end_session("stomp-0-99")
    with pytest.raises(NotFound):
        client.reset_session("fix-0-99")
    # The list may contain the session of this client: it is updated once per second.
    assert {session.kind for session in client.sessions()} <= {"STOMP"}
    client.set_limits(Limits(strategy_name="MOMENTUM", max_order_qty=Decimal(7)))
    limits = {row.strategy_name: row for row in client.risk().limits}
    assert limits["MOMENTUM"].max_order_qty == 7
    uses = {row.strategy_name: row for row in client.limit_uses()}
    assert uses["MOMENTUM"].refusals == ()
    assert client.profit("MOMENTUM").total.net_pl == 0
    assert client.profit("MOMENTUM", day="2026-01-02").rows == ()
    assert client.profit_days("MOMENTUM") == []
    assert "<h2>MOMENTUM</h2>" in client.report("MOMENTUM")
    assert "There is no trading day" in client.report(end="2020-01-02", start=date(2020, 1, 1))
    # The first value is taken a moment after the start.
    assert {row.realized_pl for row in client.portfolio_history("MOMENTUM")} <= {Decimal(0)}
    assert isinstance(client.log_events(limit=5), list)
    assert client.kill_switch() == operation_values.Confirmation(SwitchState.ALL, ())
    assert client.health().kill_switch_state is SwitchState.ALL
    client.lift_kill_switch()
    assert client.feeds() == ["SIM"]
    client.unsubscribe_market_data(1)
    client.subscribe_market_data(1)
    client.set_rates(Rates(max_rate_per_connection=Decimal("12.5")))
    assert client.rates().max_rate_per_connection == Decimal("12.5")
    assert client.broker_url().startswith("stomp://")
    assert client.websocket_url().startswith("ws://")


def test_both_clients_have_the_same_methods():
    def surface(kind):
        members = inspect.getmembers(kind, inspect.isfunction)
        return {name: str(inspect.signature(member)).replace("Async", "") for name, member in members if name[0] != "_"}

    assert surface(Pitlane) == surface(AsyncPitlane)
    assert len(surface(Pitlane)) > 60


NAMES = {
    "AccountVO": values.Account,
    "AdapterVO": operation_values.Adapter,
    "CanceledOrdersVO": values.CanceledOrders,
    "CashBalanceVO": values.CashBalance,
    "ConfirmationVO": operation_values.Confirmation,
    "Depth": market_values.DepthMessage,
    "DurabilityVO": operation_values.Durability,
    "ExchangeVO": values.Exchange,
    "HoldingVO": values.Holding,
    "IdentityVO": operation_values.Identity,
    "LimitRefusalsVO": operation_values.LimitRefusals,
    "LimitUseVO": operation_values.LimitUse,
    "LimitsVO": operation_values.Limits,
    "ListenerVO": operation_values.Listener,
    "LogEventVO": operation_values.LoggedEvent,
    "MissingVO": values.MissingAmount,
    "OrderVO": values.Order,
    "OrderChangesVO": values.OrderChanges,
    "StatusChangeVO": values.StatusChange,
    "PortfolioSampleVO": values.PortfolioSample,
    "PortfolioVO": values.Portfolio,
    "PositionVO": values.Position,
    "ProfitRowVO": values.ProfitRow,
    "ProfitDayVO": values.ProfitDay,
    "ProfitSumVO": values.ProfitSum,
    "ProfitVO": values.Profit,
    "RatesVO": operation_values.Rates,
    "Ready": operation_values.Health,
    "RestrictionVO": operation_values.Restriction,
    "RiskVO": operation_values.Risk,
    "SecurityFamilyVO": values.SecurityFamily,
    "SecurityVO": values.Security,
    "SenderVO": values.Sender,
    "AlertVO": operation_values.Alert,
    "BarVO": market_values.HistoryBar,
    "QuoteVO": market_values.Quote,
    "TickVO": market_values.HistoryTick,
    "SessionVO": operation_values.Session,
    "VenueLimitVO": operation_values.VenueLimit,
    "ShardVO": operation_values.ShardHealth,
    "StageVO": operation_values.Latency,
    "StrategyVO": values.StrategyInfo,
    "TransactionVO": values.Transaction,
    "UnconfirmedVO": operation_values.Unconfirmed,
    "Version": operation_values.Version,
    "AdapterHealthVO": operation_values.AdapterHealth,
    "BrokerVO": operation_values.Broker,
    "RemoteStrategyVO": operation_values.RemoteStrategy,
    "MemberVO": operation_values.Member,
    "StandbyVO": operation_values.Standby,
    "MarketOrderVO": requests.MarketOrder,
    "LimitOrderVO": requests.LimitOrder,
    "StopOrderVO": requests.StopOrder,
    "StopLimitOrderVO": requests.StopLimitOrder,
    "TransactionRequestVO": requests.NewTransaction,
}
# Schemas without a class of the client, or with several.
OTHERS = {
    "AnyOrderVO",
    "Brief",
    "Decimal",
    "ForexVO",
    "LimitOrderChangeVO",
    "Live",
    "MarketDataSubscriptionVO",
    "MarketOrderChangeVO",
    "Moment",
    "OrderStatus",
    "OrderType",
    "Phase",
    "PhaseVO",
    "Problem",
    "Side",
    "StopLimitOrderChangeVO",
    "StopOrderChangeVO",
    "SwitchStateVO",
    "TimeInForce",
    "TransactionType",
}


def test_every_value_has_all_members_of_its_schema(client):
    schemas = client.description()["components"]["schemas"]
    assert set(schemas) == set(NAMES) | OTHERS
    for name, kind in NAMES.items():
        ours = {wire.json_name(field) for field in kind.__dataclass_fields__}
        ours -= {"type"} if name.endswith("OrderVO") and kind.__module__.endswith("requests") else set()
        assert set(schemas[name]["properties"]) <= ours, name
