//! Describes the calls about limits, profit and the log.

use serde_json::json;

use super::about::{
    CallDescription, DAY, FROM_DAY, LIMIT, POSITIONS, RISK, ResponseSpec, SERVICE, STRATEGY, SchemaRef,
    TO_DAY, input, plain, write,
};
use super::examples::limits;

pub(super) fn risk() -> CallDescription {
    let example = json!({
        "killSwitch": false,
        "killSwitchState": "NONE",
        "limits": [limits()],
        "restrictions": [{ "strategyName": "PAIRS", "securityId": 1 }],
        "unconfirmed": [{ "directive": "LIMITS", "strategyName": "PAIRS", "shards": [1] }],
    });
    plain(RISK, "Limits, switches and restrictions", ResponseSpec::Json(SchemaRef::One("RiskVO"), example))
}

pub(super) fn change() -> CallDescription {
    CallDescription {
        more: "Of one strategy or account, until the next start. Absent members stay unchanged.",
        ..write(
            RISK,
            "Change limits",
            input("LimitsVO", json!({ "strategyName": "PAIRS", "maxOrderQty": 500 })),
            ResponseSpec::Confirmation,
        )
    }
}

pub(super) fn uses() -> CallDescription {
    let example = json!([{
        "strategyName": "PAIRS",
        "openOrders": 12,
        "position": 300,
        "positionSecurityId": 1,
        "refusals": [{
            "reason": "max-order-qty",
            "detail": "the quantity is above the limit for one order",
            "count": 2,
            "dateTime": "2026-11-14T09:30:00.123456789Z",
            "securityId": 1,
        }],
    }, {
        "accountName": "NEWYORK",
        "openOrders": 12,
        "position": 500,
        "positionSecurityId": 1,
        "credit": 93450.5,
        "refusals": [],
    }]);
    CallDescription {
        more: "Of every strategy that the login may see; of accounts if it may see all strategies. \
               The refusals are those of the trading day, as far as the service has seen them since \
               its start.",
        ..plain(
            RISK,
            "Use of the limits, and what they refused",
            ResponseSpec::Json(SchemaRef::List("LimitUseVO"), example),
        )
    }
}

pub(super) fn profit() -> CallDescription {
    let sum = json!({ "grossPL": 12.5, "fees": 0.05, "netPL": 12.45, "missing": 0 });
    let mut of_strategy = sum.clone();
    of_strategy["strategyName"] = "SERVER".into();
    let example = json!({
        "tradingDay": "2026-11-14",
        "baseCurrency": "USD",
        "total": sum,
        "strategies": [of_strategy],
        "rows": [{
            "strategyId": 0, "strategyName": "SERVER", "securityId": 1, "symbol": "AAPL", "currency": "USD", "quantity": 10, "trades": 1,
            "grossPL": 12.5, "fees": 0.05, "netPL": 12.45,
        }],
    });
    CallDescription {
        query: &[STRATEGY, DAY],
        refusals: &[404],
        more: "Against the prices at the end of the day before, realised or not. A day that has ended is \
               shown as it was when it ended, with the exchange rates of then.",
        ..plain(
            POSITIONS,
            "Profit of the trading day by strategy and security, before and after fees",
            ResponseSpec::Json(SchemaRef::One("ProfitVO"), example),
        )
    }
}

pub(super) fn profit_days() -> CallDescription {
    let example = json!([{
        "tradingDay": "2026-11-13",
        "baseCurrency": "USD",
        "total": { "grossPL": 12.5, "fees": 0.05, "netPL": 12.45, "missing": 0 },
    }]);
    CallDescription {
        query: &[STRATEGY],
        refusals: &[404],
        more: "Of the trading days that have ended while the service kept them, newest first: those of 400 \
               days, or as many as have 100,000 rows. A file keeps them across restarts.",
        ..plain(
            POSITIONS,
            "Profit of past trading days, before and after fees",
            ResponseSpec::Json(SchemaRef::List("ProfitDayVO"), example),
        )
    }
}

pub(super) fn report() -> CallDescription {
    CallDescription {
        query: &[STRATEGY, FROM_DAY, TO_DAY],
        refusals: &[404],
        more: "Equity, draw-downs, returns and statistics of live trading, as a page like that of a \
               simulation: of all strategies together, and of each of the first sixteen with a profit or a loss.",
        ..plain(POSITIONS, "Report of live trading, with plots", ResponseSpec::Text("text/html"))
    }
}

pub(super) fn portfolio_history() -> CallDescription {
    let example = json!([{
        "dateTime": "2026-11-14T09:30:00Z", "netLiquidationValue": 2005.25, "marketValue": 1005, "grossExposure": 1005, "realizedPL": 0,
        "unrealizedPL": 2.5,
    }]);
    CallDescription {
        query: &[STRATEGY],
        refusals: &[404],
        more: "A value every five seconds while the service runs, those of four hours at most, oldest first. \
               A file keeps them across restarts.",
        ..plain(
            POSITIONS,
            "Portfolio over time",
            ResponseSpec::Json(SchemaRef::List("PortfolioSampleVO"), example),
        )
    }
}

pub(super) fn log_events() -> CallDescription {
    let example = json!([{
        "dateTime": "2026-11-14T09:30:00.123456789Z", "ts": "1794648600123456789", "level": "WARN", "logger": "pitlane_http", "message": "alert",
        "fields": { "security": "1" },
    }]);
    CallDescription {
        query: &[LIMIT],
        more: "The newest first, at most 1,000 since the start. The written log has all of them.",
        ..plain(
            SERVICE,
            "Warnings and errors of the service",
            ResponseSpec::Json(SchemaRef::List("LogEventVO"), example),
        )
    }
}
