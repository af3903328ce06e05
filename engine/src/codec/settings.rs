//! Codecs of the data that a shard gets at its start: settings and reference data.

use super::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec, decode_whole};
use crate::id::{AccountId, ExchangeId, FamilyId, StrategyId};
use crate::order::NIL;
use crate::pages::LargePages;
use crate::refdata::{
    Exchange, NotionalLimit, OptionKind, OrderKinds, OrderLimits, RefDataRows, Security, SecurityFamily,
    SecurityKind, StrategyInfo, TradingAccount,
};
use crate::settings::{Delays, FillModel, QuoteSizes, SelfTrade, ShardSettings, TriggerBy, VenueSettings};

impl ShardSettings {
    /// Appends the encoding of these settings to `out`.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.encode(out);
    }

    /// Decodes settings from exactly these bytes.
    pub fn load(bytes: &[u8]) -> Result<ShardSettings, DecodeError> {
        decode_whole(bytes)
    }
}

/// The venues with varied sizes come last, and only where there is one: settings without them have
/// the same bytes as before this field existed.
impl Codec for ShardSettings {
    fn encode(&self, out: &mut impl ByteSink) {
        let ShardSettings {
            instance,
            orders_max,
            finished_max,
            finished_outside_max,
            transactions_max,
            executions_max,
            trigger,
            venue,
            venues,
            // A hook of this process, which is not stored.
            pages: _,
        } = self;
        instance.encode(out);
        let bounds = [orders_max, finished_max, finished_outside_max, transactions_max, executions_max];
        bounds.iter().for_each(|max| max.encode(out));
        trigger.encode(out);
        venue.encode(out);
        venues.encode(out);
        let varied = VariedVenues::of(self);
        if !varied.is_empty() {
            varied.encode(out);
        }
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<ShardSettings, DecodeError> {
        let instance = Codec::decode(from)?;
        let [orders_max, finished_max, finished_outside_max, transactions_max, executions_max] =
            Codec::decode(from)?;
        // A shard cannot be created with more.
        from.check(orders_max < NIL, DecodeProblem::Value)?;
        let mut settings = ShardSettings {
            instance,
            orders_max,
            finished_max,
            finished_outside_max,
            transactions_max,
            executions_max,
            trigger: Codec::decode(from)?,
            venue: Codec::decode(from)?,
            venues: Codec::decode(from)?,
            pages: LargePages::NONE,
        };
        if from.left() > 0 {
            let varied = VariedVenues::decode(from)?;
            varied.apply(&mut settings);
            // Anything else is not what such settings are encoded to.
            let is_canonical = !varied.is_empty() && VariedVenues::of(&settings) == varied;
            from.check(is_canonical, DecodeProblem::Contradiction)?;
        }
        Ok(settings)
    }
}

/// Venues whose sizes are [`QuoteSizes::Varied`].
#[derive(Debug, PartialEq, Eq)]
struct VariedVenues {
    /// Whether the settings of all exchanges without their own are among them.
    is_common: bool,
    /// Exchanges with settings of their own, in their order.
    exchanges: Vec<ExchangeId>,
}

codec!(VariedVenues { is_common, exchanges });

impl VariedVenues {
    fn of(settings: &ShardSettings) -> VariedVenues {
        let is_varied = |venue: &VenueSettings| venue.quote_sizes == QuoteSizes::Varied;
        let exchanges = settings.venues.iter().filter(|(_, venue)| is_varied(venue)).map(|(id, _)| *id);
        VariedVenues { is_common: is_varied(&settings.venue), exchanges: exchanges.collect() }
    }

    fn is_empty(&self) -> bool {
        !self.is_common && self.exchanges.is_empty()
    }

    fn apply(&self, settings: &mut ShardSettings) {
        if self.is_common {
            settings.venue.quote_sizes = QuoteSizes::Varied;
        }
        for id in &self.exchanges {
            if let Some(venue) = settings.venues.get_mut(id) {
                venue.quote_sizes = QuoteSizes::Varied;
            }
        }
    }
}

/// The sizes of quotes are encoded with the settings of the shard.
impl Codec for VenueSettings {
    fn encode(&self, out: &mut impl ByteSink) {
        let VenueSettings {
            fill_model,
            slippage_ticks,
            quote_levels,
            quote_sizes: _,
            self_trade,
            band_bp,
            reject_permille,
            partial_fill,
            seed,
            delays,
        } = self;
        fill_model.encode(out);
        slippage_ticks.encode(out);
        quote_levels.encode(out);
        self_trade.encode(out);
        band_bp.encode(out);
        reject_permille.encode(out);
        partial_fill.encode(out);
        seed.encode(out);
        delays.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<VenueSettings, DecodeError> {
        Ok(VenueSettings {
            fill_model: Codec::decode(from)?,
            slippage_ticks: Codec::decode(from)?,
            quote_levels: Codec::decode(from)?,
            quote_sizes: QuoteSizes::Equal,
            self_trade: Codec::decode(from)?,
            band_bp: Codec::decode(from)?,
            reject_permille: Codec::decode(from)?,
            partial_fill: Codec::decode(from)?,
            seed: Codec::decode(from)?,
            delays: Codec::decode(from)?,
        })
    }
}

codec!(enum TriggerBy { 0 = Last, 1 = Quote });
codec!(enum FillModel { 0 = Queue, 1 = Through, 2 = Touch, 3 = QueueBack, 4 = QueueTraded });
codec!(enum SelfTrade { 0 = CancelNewest, 1 = Allow });
codec!(Delays { entry_ns, entry_jitter_ns, response_ns, response_jitter_ns, feed_ns });

/// The strategies that may use an account and the limits of families come last, and only where rows
/// have some: reference data without them have the same bytes as before these fields existed.
impl Codec for RefDataRows {
    fn encode(&self, out: &mut impl ByteSink) {
        let RefDataRows { exchanges, families, securities, accounts, strategies } = self;
        exchanges.encode(out);
        families.encode(out);
        securities.encode(out);
        accounts.encode(out);
        strategies.encode(out);
        let permitted: Vec<(AccountId, Vec<StrategyId>)> = accounts
            .iter()
            .filter(|row| !row.strategies.is_empty())
            .map(|row| (row.id, row.strategies.clone()))
            .collect();
        let limits: Vec<(FamilyId, OrderLimits)> = families
            .iter()
            .filter(|row| row.limits != OrderLimits::NONE)
            .map(|row| (row.id, row.limits))
            .collect();
        if !permitted.is_empty() || !limits.is_empty() {
            permitted.encode(out);
        }
        if !limits.is_empty() {
            limits.encode(out);
        }
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<RefDataRows, DecodeError> {
        let mut rows = RefDataRows {
            exchanges: Codec::decode(from)?,
            families: Codec::decode(from)?,
            securities: Codec::decode(from)?,
            accounts: Codec::decode(from)?,
            strategies: Codec::decode(from)?,
        };
        if from.left() == 0 {
            return Ok(rows);
        }
        let permitted: Vec<(AccountId, Vec<StrategyId>)> = Codec::decode(from)?;
        from.check(!permitted.is_empty() || from.left() > 0, DecodeProblem::Value)?;
        let mut accounts = rows.accounts.iter_mut();
        for (id, strategies) in permitted {
            // In account order, each account once.
            let account = accounts.find(|row| row.id == id);
            let Some(account) = account.filter(|_| !strategies.is_empty()) else {
                return Err(from.error(DecodeProblem::Contradiction));
            };
            account.strategies = strategies;
        }
        if from.left() == 0 {
            return Ok(rows);
        }
        let limits: Vec<(FamilyId, OrderLimits)> = Codec::decode(from)?;
        from.check(!limits.is_empty(), DecodeProblem::Value)?;
        let mut families = rows.families.iter_mut();
        for (id, limits) in limits {
            // In family order, each family once.
            let family = families.find(|row| row.id == id);
            let Some(family) = family.filter(|_| limits != OrderLimits::NONE) else {
                return Err(from.error(DecodeProblem::Contradiction));
            };
            family.limits = limits;
        }
        Ok(rows)
    }
}

codec!(OrderLimits { min_notional, max_notional, kinds });
codec!(NotionalLimit { amount, to_market });

/// One bit for each type.
impl Codec for OrderKinds {
    fn encode(&self, out: &mut impl ByteSink) {
        self.bits().encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<OrderKinds, DecodeError> {
        OrderKinds::from_bits(u8::decode(from)?).ok_or_else(|| from.error(DecodeProblem::Value))
    }
}

impl Codec for TradingAccount {
    fn encode(&self, out: &mut impl ByteSink) {
        let TradingAccount { id, name, active, adapter_type, exchanges, strategies: _ } = self;
        id.encode(out);
        name.encode(out);
        active.encode(out);
        adapter_type.encode(out);
        exchanges.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<TradingAccount, DecodeError> {
        let (id, name) = Codec::decode(from)?;
        let (active, adapter_type) = Codec::decode(from)?;
        Ok(TradingAccount {
            id,
            name,
            active,
            adapter_type,
            exchanges: Codec::decode(from)?,
            strategies: Vec::new(),
        })
    }
}

codec!(Exchange { id, name, mic, time_zone, open, close, auctions, adapter, adapter_type });
/// Without its limits, see [`RefDataRows`].
impl Codec for SecurityFamily {
    fn encode(&self, out: &mut impl ByteSink) {
        let SecurityFamily {
            id,
            name,
            symbol_root,
            exchange,
            currency,
            contract_size,
            tick_size,
            lot_size,
            commission,
            limits: _,
            tradeable,
            expirable,
        } = self;
        id.encode(out);
        name.encode(out);
        symbol_root.encode(out);
        exchange.encode(out);
        currency.encode(out);
        contract_size.encode(out);
        tick_size.encode(out);
        lot_size.encode(out);
        commission.encode(out);
        tradeable.encode(out);
        expirable.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<SecurityFamily, DecodeError> {
        Ok(SecurityFamily {
            id: Codec::decode(from)?,
            name: Codec::decode(from)?,
            symbol_root: Codec::decode(from)?,
            exchange: Codec::decode(from)?,
            currency: Codec::decode(from)?,
            contract_size: Codec::decode(from)?,
            tick_size: Codec::decode(from)?,
            lot_size: Codec::decode(from)?,
            commission: Codec::decode(from)?,
            limits: OrderLimits::NONE,
            tradeable: Codec::decode(from)?,
            expirable: Codec::decode(from)?,
        })
    }
}
codec!(enum SecurityKind {
    0 = Stock,
    1 = Future,
    2 = Option,
    3 = Forex,
    4 = Index,
    5 = Commodity,
    6 = Bond,
    7 = Fund,
    8 = Crypto,
});
codec!(enum OptionKind { 0 = Call, 1 = Put });
codec!(Security {
    id,
    symbol,
    description,
    kind,
    family,
    isin,
    underlying,
    expiration,
    strike,
    option,
    base_currency,
    start_price,
    tradeable
});
codec!(StrategyInfo { id, name, auto_activate });
