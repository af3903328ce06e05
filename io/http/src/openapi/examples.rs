//! Examples of value objects.

use serde_json::{Value, json};

pub(super) fn account() -> Value {
    json!({ "id": 1, "name": "EQUITIES", "active": true, "adapterType": "SIM", "broker": "SIM" })
}

pub(super) fn security() -> Value {
    json!({
        "id": 1, "symbol": "AAPL", "description": "Apple Inc.", "type": "STOCK", "securityFamilyId": 1, "exchangeId": 1,
        "currency": "USD", "isin": "US0378331005", "tickSize": 0.01, "lotSize": 1, "contractSize": 1, "tradeable": true,
    })
}

pub(super) fn forex() -> Value {
    json!({
        "id": 20, "symbol": "EUR.USD", "description": "Euro in US dollars", "type": "FOREX", "securityFamilyId": 3, "exchangeId": 2,
        "currency": "USD", "baseCurrency": "EUR", "tickSize": 0.00001, "lotSize": 1000, "contractSize": 1, "tradeable": true,
        "transactionCurrency": "USD",
    })
}

pub(super) fn family() -> Value {
    json!({
        "id": 1, "name": "US stocks", "symbolRoot": "", "exchangeId": 1, "currency": "USD", "contractSize": 1, "tickSize": 0.01,
        "lotSize": 1, "commission": 0.005, "tradeable": true, "expirable": false,
    })
}

pub(super) fn exchange() -> Value {
    json!({ "id": 1, "name": "Nasdaq", "mic": "XNAS", "timeZone": "UTC", "open": "00:00:00", "close": "00:00:00", "adapterType": "SIM" })
}

pub(super) fn bar() -> Value {
    json!({
        "securityId": 1, "dateTime": "2026-11-14T09:30:00Z", "open": 100.25, "high": 100.5, "low": 100, "close": 100.25,
        "volume": 1200, "trades": 17, "complete": true,
    })
}

pub(super) fn tick() -> Value {
    json!({
        "securityId": 1, "dateTime": "2026-11-14T09:30:00.123456789Z", "bid": 100.25, "bidSize": 300, "ask": 100.26, "askSize": 200,
        "last": 100.25, "lastSize": 100,
    })
}

pub(super) fn depth() -> Value {
    json!({
        "type": "SNAPSHOT", "seq": 17, "ts": 1794816000000000000u64, "securityId": 1, "symbol": "AAPL", "feed": "SIM",
        "bids": [[100.25, 300], [100.24, 500]], "asks": [[100.26, 200]], "checksum": 3084227492u32,
        "dateTime": "2026-11-16T08:00:00Z",
    })
}

pub(super) fn quote() -> Value {
    json!({
        "securityId": 1, "dateTime": "2026-11-14T09:30:00.123456789Z", "bid": 100.25, "bidSize": 300, "ask": 100.26, "askSize": 200,
        "last": 100.25, "lastSize": 100, "open": 100, "high": 100.5, "low": 99.75, "volume": 1200, "previousClose": 99.5,
        "previousDay": "2026-11-13T00:00:00Z",
    })
}

pub(super) fn order() -> Value {
    json!({
        "intId": "R1-1", "type": "LIMIT", "side": "BUY", "quantity": 10, "limit": 100.25, "tif": "DAY", "strategyId": 0, "strategyName": "SERVER",
        "accountId": 1, "securityId": 1, "symbol": "AAPL", "exchangeId": 1, "venue": "SIM", "exchangeOrder": false, "status": "NEW", "filledQuantity": 0,
        "remainingQuantity": 10, "source": "REST", "dateTime": "2026-11-14T09:30:00.123456789Z", "lastUpdate": "2026-11-14T09:30:00.123456789Z",
    })
}

pub(super) fn order_changes() -> Value {
    json!({
        "intId": "R1-1", "dateTime": "2026-11-14T09:30:00.123456789Z", "complete": true, "changes": [
            { "dateTime": "2026-11-14T09:30:00.123456789Z", "execType": "PENDING_NEW", "status": "PENDING_NEW", "quantity": 10, "filledQuantity": 0, "limit": 100.25 },
            { "dateTime": "2026-11-14T09:30:00.123458Z", "execType": "TRADE", "status": "FILLED", "quantity": 10, "filledQuantity": 10, "lastQuantity": 10, "lastPrice": 100.2, "limit": 100.25 },
        ],
    })
}

pub(super) fn alert() -> Value {
    json!({
        "dateTime": "2026-11-14T09:30:00Z", "alert": "IN_DOUBT", "shard": 0, "intId": "my-1", "strategyName": "SERVER",
        "securityId": 1, "symbol": "AAPL", "reason": "venue-unavailable", "detail": "the venue is not connected",
    })
}

pub(super) fn session() -> Value {
    json!({
        "id": "stomp-gateway-0-1", "kind": "STOMP", "name": "alice", "peer": "127.0.0.1:50000", "since": "2026-11-14T09:30:00Z",
        "state": "CONNECTED", "bytesIn": 120, "bytesOut": 48000, "messagesIn": 3, "messagesOut": 240, "queueBytes": 0,
        "conflated": 0, "slots": 0, "backlog": 0, "backlogBytes": 0, "subscriptions": 1,
    })
}

pub(super) fn rates() -> Value {
    json!({ "maxRatePerConnection": 50, "minRatePerConsumer": 0.1 })
}

pub(super) fn position() -> Value {
    json!({
        "id": 1, "strategyId": 0, "strategyName": "SERVER", "securityId": 1, "symbol": "AAPL", "quantity": 10, "avgPrice": 100.25,
        "marketPrice": 100.5, "marketValue": 1005, "realizedPL": 0, "unrealizedPL": 2.5, "currency": "USD",
    })
}

pub(super) fn transaction() -> Value {
    json!({
        "id": 7, "uuid": "0f7a3c1e-5d7b-4c52-9a43-2f6f6a1c9b10", "dateTime": "2026-11-14T09:30:00.123456789Z", "type": "BUY", "strategyId": 0,
        "strategyName": "SERVER", "accountId": 1, "securityId": 1, "quantity": 10, "price": 100.25, "commission": 0.05, "currency": "USD",
        "orderIntId": "R1-1", "description": "BUY 10 AAPL at 100.25 USD",
    })
}

pub(super) fn portfolio() -> Value {
    json!({
        "strategyName": "SERVER", "baseCurrency": "USD", "netLiquidationValue": 2005.25, "cash": 1000.25, "marketValue": 1005, "realizedPL": 0,
        "unrealizedPL": 2.5, "holdings": [{ "currency": "USD", "cash": 1000.25, "marketValue": 1005, "realizedPL": 0, "unrealizedPL": 2.5 }],
        "missing": [],
    })
}

pub(super) fn limits() -> Value {
    json!({
        "strategyName": "PAIRS", "tradingEnabled": true, "maxOrderQty": 0, "maxOrderValue": 0, "priceCollarPct": 0, "maxOpenOrders": 1000,
        "maxPosition": 0, "maxOrdersPerS": 100, "duplicateWindowMs": 0,
    })
}
