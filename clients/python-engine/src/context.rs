//! What a Python strategy sees and may do: the `Core` that `pitlane.strategy_context` describes, on
//! top of the context of the engine.

use std::sync::Arc;

use pitlane_engine::id::{AccountId, Currency, IntId, SecurityId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::Security;
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::codes::WireName;
use pitlane_strategy::detached::DetachedContext;
use pitlane_strategy::market::MarketCache;
use pitlane_strategy::{Context, Operation};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::tick::{NativeTick, TickFormat};

/// A security by its id or by its symbol.
#[derive(FromPyObject)]
enum SecurityKey {
    Id(u32),
    Symbol(String),
}

/// Security, side, type; quantity, limit, stop; time in force and its date; account; whether it is
/// an order for the exchange.
type SubmitRow = (u32, String, String, i64, Option<i64>, Option<i64>, String, u64, u16, bool);
/// Quantity, limit, stop; time in force and its date.
type ChangesRow = (Option<i64>, Option<i64>, Option<i64>, Option<String>, Option<u64>);
/// Id, symbol, currency; tick, lot and contract size.
type InstrumentRow = (u32, String, String, i64, i64, i64);
/// Id, security, symbol, side, status; quantity, filled quantity, limit, stop.
type OrderRow = (String, u32, String, &'static str, &'static str, i64, i64, Option<i64>, Option<i64>);

/// The part of a context that depends on where the strategy runs; here, in a back-test.
#[pyclass(module = "pitlane_engine")]
pub(crate) struct Core {
    detached: DetachedContext,
    /// Whether a callback is running: only then the state of the strategy is here.
    is_open: bool,
    /// The newest ticks of the securities that the strategy follows.
    market: MarketCache,
    format: Arc<TickFormat>,
    name: String,
    base_currency: Currency,
}

impl Core {
    pub(crate) fn new(name: String, base_currency: Currency, format: Arc<TickFormat>) -> Core {
        let (detached, market) = (DetachedContext::default(), MarketCache::default());
        Core { detached, is_open: false, market, format, name, base_currency }
    }

    /// Exchanges the state with that of a call: before the callback, and after it.
    #[inline]
    pub(crate) fn swap(&mut self, context: &mut Context<'_>) {
        context.swap(&mut self.detached);
        self.is_open = !self.is_open;
    }

    pub(crate) fn put_tick(&mut self, tick: &pitlane_engine::event::Tick) {
        self.market.put(tick);
    }

    fn context(&mut self, py: Python<'_>) -> PyResult<Context<'_>> {
        if !self.is_open {
            return Err(self.format.names.closed(py));
        }
        Ok(self.detached.context(&self.market, &self.format.reference))
    }

    fn refused(&self, py: Python<'_>, reason: Reason) -> PyErr {
        self.format.names.refused(py, reason.code(), reason.text())
    }

    /// Calls a request of the context; a refusal becomes an exception.
    fn request<T>(
        &mut self,
        py: Python<'_>,
        request: impl FnOnce(&mut Context<'_>) -> Result<T, Reason>,
    ) -> PyResult<T> {
        let answer = request(&mut self.context(py)?);
        answer.map_err(|reason| self.refused(py, reason))
    }

    fn find(&self, py: Python<'_>, key: &SecurityKey) -> PyResult<&Security> {
        let reference = &self.format.reference;
        let refused = |problem: String| {
            let text = format!("{}: {problem}", Reason::UnknownSecurity.text());
            self.format.names.refused(py, Reason::UnknownSecurity.code(), &text)
        };
        let id = match key {
            SecurityKey::Id(id) => SecurityId(*id),
            SecurityKey::Symbol(symbol) => match reference.by_symbol(symbol) {
                [id] => *id,
                [] => return Err(refused(format!("no security has the symbol {symbol:?}"))),
                _ => return Err(refused(format!("several exchanges trade {symbol:?}; its id is needed"))),
            },
        };
        reference.security(id).ok_or_else(|| refused(format!("no security has the id {id}")))
    }

    fn symbol(&self, security: SecurityId) -> String {
        self.format.reference.security(security).map(|row| row.symbol.clone()).unwrap_or_default()
    }
}

#[pymethods]
impl Core {
    fn now_ns(&mut self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.context(py)?.now().0)
    }

    fn phase(&mut self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.context(py)?.phase().wire_name())
    }

    fn mode(&mut self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match self.context(py)?.operation() {
            Operation::Simulation => "SIMULATION",
            Operation::RealTime => "REAL_TIME",
        })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn base_currency(&self) -> String {
        self.base_currency.to_string()
    }

    fn security(&self, py: Python<'_>, key: SecurityKey) -> PyResult<InstrumentRow> {
        let row = self.find(py, &key)?;
        let family = self.format.reference.family_of(row);
        let sizes = (family.tick_size.raw(), family.lot_size.raw(), family.contract_size.raw());
        Ok((row.id.0, row.symbol.clone(), family.currency.to_string(), sizes.0, sizes.1, sizes.2))
    }

    fn subscribe(&mut self, py: Python<'_>, security_id: u32, on: bool) -> PyResult<()> {
        let security = SecurityId(security_id);
        self.request(py, |context| match on {
            true => context.subscribe(security),
            false => context.unsubscribe(security),
        })?;
        self.market.follow(security, 0, on);
        Ok(())
    }

    fn subscribe_bars(&mut self, py: Python<'_>, security_id: u32, interval_ns: u64) -> PyResult<()> {
        let security = SecurityId(security_id);
        self.request(py, |context| context.subscribe_bars(security, interval_ns))?;
        self.market.follow(security, 0, true);
        Ok(())
    }

    fn submit(&mut self, py: Python<'_>, order: SubmitRow) -> PyResult<String> {
        let (security, side, kind, qty, limit, stop, tif, tif_date, account, exchange_order) = order;
        let terms = Terms {
            security: SecurityId(security),
            side: named::<Side>("side", &side)?,
            kind: named::<OrderKind>("type", &kind)?,
            qty: Qty::from_raw(qty),
            limit: Price::from_raw(limit.unwrap_or(0)),
            limit_given: limit.is_some(),
            stop: Price::from_raw(stop.unwrap_or(0)),
            stop_given: stop.is_some(),
            tif: named::<Tif>("tif", &tif)?,
            tif_date: Timestamp(tif_date),
            account: AccountId(account),
            exchange_order,
            ..Terms::default()
        };
        self.request(py, |context| context.submit(terms)).map(|id| id.to_string())
    }

    fn modify(&mut self, py: Python<'_>, int_id: &str, changes: ChangesRow) -> PyResult<()> {
        let id = self.order_id(py, int_id)?;
        let (qty, limit, stop, tif, tif_date) = changes;
        let mut changes = Changes::default();
        if let Some(qty) = qty {
            changes = changes.with_qty(Qty::from_raw(qty));
        }
        if let Some(limit) = limit {
            changes = changes.with_limit(Price::from_raw(limit));
        }
        if let Some(stop) = stop {
            changes = changes.with_stop(Price::from_raw(stop));
        }
        if let Some(tif) = tif {
            changes = changes.with_tif(named::<Tif>("tif", &tif)?);
        }
        if let Some(date) = tif_date {
            changes = changes.with_tif_date(Timestamp(date));
        }
        self.request(py, |context| context.modify(&id, changes))
    }

    fn cancel(&mut self, py: Python<'_>, int_id: &str) -> PyResult<()> {
        let id = self.order_id(py, int_id)?;
        self.request(py, |context| context.cancel(&id))
    }

    fn cancel_all(&mut self, py: Python<'_>) -> PyResult<()> {
        self.context(py)?.cancel_all();
        Ok(())
    }

    /// Returns quantity, average price and realised profit.
    fn position(&mut self, py: Python<'_>, security_id: u32) -> PyResult<(i64, Option<i64>, i64)> {
        let size = {
            let row = self.find(py, &SecurityKey::Id(security_id))?;
            self.format.reference.family_of(row).contract_size
        };
        let position = self.context(py)?.position(SecurityId(security_id));
        let average = position.cost.per(position.qty, size).map(Price::raw);
        Ok((position.qty.raw(), average, position.realized.raw()))
    }

    fn orders(&mut self, py: Python<'_>) -> PyResult<Vec<OrderRow>> {
        let open = self.context(py)?.open_orders().to_vec();
        let price = |price: Price| (!price.is_zero()).then_some(price.raw());
        let row = |order: &pitlane_strategy::OpenOrder| {
            let (side, status) = (order.side.wire_name(), order.status.wire_name());
            let (qty, filled) = (order.qty.raw(), order.cum_qty.raw());
            let symbol = self.symbol(order.security);
            let (limit, stop) = (price(order.limit), price(order.stop));
            (order.id.to_string(), order.security.0, symbol, side, status, qty, filled, limit, stop)
        };
        Ok(open.iter().map(row).collect())
    }

    fn cash(&mut self, py: Python<'_>, currency: &str) -> PyResult<Option<i64>> {
        let currency = Currency::parse(currency.as_bytes())
            .map_err(|error| PyValueError::new_err(format!("{currency:?} is not a currency: {error}")))?;
        Ok(self.context(py)?.cash(currency).map(|cash| cash.raw()))
    }

    fn tick(&mut self, py: Python<'_>, security_id: u32) -> PyResult<Option<NativeTick>> {
        let tick = self.context(py)?.tick(SecurityId(security_id)).copied();
        Ok(tick.map(|tick| NativeTick::new(tick, self.format.clone())))
    }

    fn set_timer(&mut self, py: Python<'_>, timer: u32, at_ns: u64) -> PyResult<()> {
        self.request(py, |context| context.set_timer(timer, Timestamp(at_ns)))
    }

    fn clear_timer(&mut self, py: Python<'_>, timer: u32) -> PyResult<()> {
        self.context(py)?.clear_timer(timer);
        Ok(())
    }

    fn send_generic(&mut self, py: Python<'_>, name: &str, body: &[u8]) -> PyResult<()> {
        self.request(py, |context| context.send_generic(name, body))
    }
}

impl Core {
    fn order_id(&self, py: Python<'_>, int_id: &str) -> PyResult<IntId> {
        IntId::parse(int_id.as_bytes()).map_err(|_| self.refused(py, Reason::UnknownOrder))
    }
}

/// Returns the value of a name such as `BUY`.
fn named<T: WireName>(field: &str, name: &str) -> PyResult<T> {
    let names = || T::VALUES.iter().map(|value| value.wire_name()).collect::<Vec<_>>().join(", ");
    T::from_wire_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("{field} {name:?} is not one of {}", names())))
}
