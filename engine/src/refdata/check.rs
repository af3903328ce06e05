//! Validates the rows of reference data and their references. It reports every error, not only the
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::{
    Exchange, OrderLimits, RefData, RefDataRows, RefDataTable, RowError, Security, SecurityFamily,
    SecurityKind, StrategyInfo, TradingAccount,
};
use crate::id::{ExchangeId, FamilyId, SecurityId, StrategyId};

/// The name of [`StrategyId::SERVER`].
const SERVER: &str = "SERVER";

impl RefData {
    /// Sorts and checks rows, and adds SERVER if it is missing. It returns all errors at once, in
    /// the order of the tables.
    pub fn check(mut rows: RefDataRows) -> Result<RefData, Vec<RowError>> {
        let mut errors = RowErrors::default();
        let index = Index::of(&rows);
        check_exchanges(&rows.exchanges, &mut errors);
        check_families(&rows.families, &index, &mut errors);
        check_securities(&rows.securities, &index, &mut errors);
        check_accounts(&rows.accounts, &index, &mut errors);
        check_permitted(&rows, &mut errors);
        check_strategies(&rows.strategies, &mut errors);
        if !errors.0.is_empty() {
            return Err(errors.0);
        }

        if rows.strategies.iter().all(|row| row.id != StrategyId::SERVER) {
            rows.strategies.push(StrategyInfo {
                id: StrategyId::SERVER,
                name: SERVER.to_string(),
                auto_activate: true,
            });
        }
        rows.exchanges.sort_by_key(|row| row.id);
        rows.families.sort_by_key(|row| row.id);
        rows.securities.sort_by_key(|row| row.id);
        rows.accounts.sort_by_key(|row| row.id);
        rows.strategies.sort_by_key(|row| row.id);
        let mut symbols: BTreeMap<Vec<u8>, Vec<SecurityId>> = BTreeMap::new();
        for row in &rows.securities {
            symbols.entry(row.symbol.clone().into_bytes()).or_default().push(row.id);
        }
        Ok(RefData { rows, symbols })
    }
}

fn check_exchanges(rows: &[Exchange], errors: &mut RowErrors) {
    errors.repeated(RefDataTable::Exchanges, "id", rows.iter().map(|row| row.id));
    errors.names(RefDataTable::Exchanges, "name", rows.iter().map(|row| row.name.as_str()));
}

fn check_families(rows: &[SecurityFamily], index: &Index<'_>, errors: &mut RowErrors) {
    errors.repeated(RefDataTable::Families, "id", rows.iter().map(|row| row.id));
    errors.names(RefDataTable::Families, "name", rows.iter().map(|row| row.name.as_str()));
    for (at, row) in rows.iter().enumerate() {
        let mut report = |column, problem| errors.add(RefDataTable::Families, at, column, problem);
        if !index.exchanges.contains_key(&row.exchange) {
            report("exchangeId", format!("there is no exchange {}", row.exchange));
        }
        if !row.contract_size.is_positive() {
            report("contractSize", format!("{} is not above zero", row.contract_size));
        }
        if !row.tick_size.is_positive() {
            report("tickSize", format!("{} is not above zero", row.tick_size));
        }
        if !row.lot_size.is_positive() {
            report("lotSize", format!("{} is not above zero", row.lot_size));
        }
        if row.commission.is_negative() {
            report("commission", format!("{} is below zero", row.commission));
        }
        check_limits(&row.limits, &mut report);
    }
}

/// Checks that bounds of the value are above zero, and that an order can keep both.
fn check_limits(limits: &OrderLimits, report: &mut impl FnMut(&'static str, String)) {
    let OrderLimits { min_notional, max_notional, kinds: _ } = limits;
    for (column, limit) in [("minNotional", min_notional), ("maxNotional", max_notional)] {
        if let Some(limit) = limit.filter(|limit| !limit.amount.is_positive()) {
            report(column, format!("{} is not above zero", limit.amount));
        }
    }
    if let (Some(min), Some(max)) = (min_notional, max_notional)
        && min.amount > max.amount
    {
        report("maxNotional", format!("{} is below minNotional {}", max.amount, min.amount));
    }
}

fn check_securities(rows: &[Security], index: &Index<'_>, errors: &mut RowErrors) {
    errors.repeated(RefDataTable::Securities, "id", rows.iter().map(|row| row.id));
    check_symbols(rows, index, errors);
    for (at, row) in rows.iter().enumerate() {
        let mut report = |column, problem| errors.add(RefDataTable::Securities, at, column, problem);
        if row.id.0 > SecurityId::MAX {
            report("id", format!("{} is above {}", row.id, SecurityId::MAX));
        }
        if let Some(problem) = name_problem(&row.symbol) {
            report("symbol", problem);
        }
        match row.underlying {
            Some(id) if id == row.id => report("underlyingId", "a security is not its own underlying".into()),
            Some(id) if !index.securities.contains(&id) => {
                report("underlyingId", format!("there is no security {id}"))
            }
            _ => {}
        }
        check_option(row, &mut report);
        match index.families.get(&row.family) {
            Some(family) => check_in_family(row, family, &mut report),
            None => report("securityFamilyId", format!("there is no family {}", row.family)),
        }
    }
}

/// Checks that a symbol names one security on its exchange.
fn check_symbols(rows: &[Security], index: &Index<'_>, errors: &mut RowErrors) {
    let mut seen: BTreeMap<(ExchangeId, &str), SecurityId> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(family) = index.families.get(&row.family) else { continue };
        if let Some(first) = seen.insert((family.exchange, &row.symbol), row.id) {
            let problem =
                format!("{:?} is security {first} on exchange {} already", row.symbol, family.exchange);
            errors.add(RefDataTable::Securities, at, "symbol", problem);
        }
    }
}

/// Checks options: they have a strike, a kind and an underlying; no other security has the first
/// two.
fn check_option(row: &Security, report: &mut impl FnMut(&'static str, String)) {
    if row.kind == SecurityKind::Option {
        match row.strike {
            None => report("strike", "an option has a strike".into()),
            Some(strike) if !strike.is_positive() => report("strike", format!("{strike} is not above zero")),
            Some(_) => {}
        }
        if row.option.is_none() {
            report("optionType", "an option is a CALL or a PUT".into());
        }
        if row.underlying.is_none() {
            report("underlyingId", "an option has an underlying".into());
        }
        return;
    }
    if row.strike.is_some() {
        report("strike", "only an option has a strike".into());
    }
    if row.option.is_some() {
        report("optionType", "only an option is a CALL or a PUT".into());
    }
}

/// Checks what a security needs because of its family: a date, a base currency, a price on the
/// grid.
fn check_in_family(row: &Security, family: &SecurityFamily, report: &mut impl FnMut(&'static str, String)) {
    if row.kind.expires() && !family.expirable {
        report("securityFamilyId", format!("family {} does not expire, but this does", family.id));
    }
    match row.expiration {
        None if family.expirable || row.kind.expires() => {
            report("expiration", "it has no date to expire on".into())
        }
        Some(_) if !family.expirable && !row.kind.expires() => {
            report("expiration", format!("family {} does not expire", family.id))
        }
        _ => {}
    }
    match row.base_currency {
        None if row.kind.is_pair() => report("baseCurrency", "a pair has a base currency".into()),
        Some(_) if !row.kind.is_pair() => report("baseCurrency", "only a pair has a base currency".into()),
        Some(base) if base == family.currency => {
            report("baseCurrency", format!("{base} is what the pair is priced in"))
        }
        _ => {}
    }
    let Some(start) = row.start_price else { return };
    if !start.is_positive() {
        report("startPrice", format!("{start} is not above zero"));
    } else if family.tick_size.is_positive() && start.ticks(family.tick_size).is_none() {
        report("startPrice", format!("{start} is not a multiple of the tick size {}", family.tick_size));
    }
}

fn check_accounts(rows: &[TradingAccount], index: &Index<'_>, errors: &mut RowErrors) {
    errors.repeated(RefDataTable::Accounts, "id", rows.iter().map(|row| row.id));
    errors.names(RefDataTable::Accounts, "name", rows.iter().map(|row| row.name.as_str()));
    for (at, row) in rows.iter().enumerate() {
        check_homes(row, index, &mut |problem| {
            errors.add(RefDataTable::Accounts, at, "exchangeIds", problem)
        });
    }
}

/// Checks that the strategies that may use an account exist. SERVER always does.
fn check_permitted(rows: &RefDataRows, errors: &mut RowErrors) {
    for (at, row) in rows.accounts.iter().enumerate() {
        for (place, &id) in row.strategies.iter().enumerate() {
            let problem = if row.strategies[..place].contains(&id) {
                format!("strategy {id} is named twice")
            } else if rows.strategies.iter().all(|strategy| strategy.id != id) && id != StrategyId::SERVER {
                format!("there is no strategy {id}")
            } else {
                continue;
            };
            errors.add(RefDataTable::Accounts, at, "strategyIds", problem);
        }
    }
}

fn check_homes(account: &TradingAccount, index: &Index<'_>, report: &mut impl FnMut(String)) {
    for (at, &id) in account.exchanges.iter().enumerate() {
        if account.exchanges[..at].contains(&id) {
            report(format!("exchange {id} is named twice"));
            continue;
        }
        match index.exchanges.get(&id) {
            None => report(format!("there is no exchange {id}")),
            Some(exchange) if exchange.adapter_type != account.adapter_type => report(format!(
                "exchange {id} is reached by {}, the account by {}",
                exchange.adapter_type, account.adapter_type
            )),
            Some(_) => {}
        }
    }
}

fn check_strategies(rows: &[StrategyInfo], errors: &mut RowErrors) {
    errors.repeated(RefDataTable::Strategies, "id", rows.iter().map(|row| row.id));
    errors.names(RefDataTable::Strategies, "name", rows.iter().map(|row| row.name.as_str()));
    for (at, row) in rows.iter().enumerate() {
        let mut report = |column, problem| errors.add(RefDataTable::Strategies, at, column, problem);
        // A strategy's name is a segment of topics, where these characters have a meaning.
        if row.name.contains(['.', '*', '>', ' ']) {
            report("name", format!("{:?} has a dot, star, angle or space in it", row.name));
        }
        let is_server = row.id == StrategyId::SERVER;
        if is_server && row.name != SERVER {
            report("name", format!("strategy {} is named {SERVER}, not {:?}", row.id, row.name));
        }
        if !is_server && row.name == SERVER {
            report("id", format!("{SERVER} is strategy {}, not {}", StrategyId::SERVER, row.id));
        }
    }
}

/// Rows by id, before they are known to be unique: of several with one id, the last one counts.
struct Index<'a> {
    exchanges: BTreeMap<ExchangeId, &'a Exchange>,
    families: BTreeMap<FamilyId, &'a SecurityFamily>,
    securities: BTreeSet<SecurityId>,
}

impl Index<'_> {
    fn of(rows: &RefDataRows) -> Index<'_> {
        Index {
            exchanges: rows.exchanges.iter().map(|row| (row.id, row)).collect(),
            families: rows.families.iter().map(|row| (row.id, row)).collect(),
            securities: rows.securities.iter().map(|row| row.id).collect(),
        }
    }
}

#[derive(Default)]
struct RowErrors(Vec<RowError>);

impl RowErrors {
    fn add(&mut self, table: RefDataTable, row: usize, column: &'static str, problem: String) {
        self.0.push(RowError { table, row, column, problem });
    }

    /// Reports every row whose key occurred in an earlier one.
    fn repeated<K: Ord + Display>(
        &mut self,
        table: RefDataTable,
        column: &'static str,
        keys: impl Iterator<Item = K>,
    ) {
        let mut seen = BTreeSet::new();
        for (row, key) in keys.enumerate() {
            if seen.contains(&key) {
                self.add(table, row, column, format!("{key} is already used in an earlier row"));
            }
            seen.insert(key);
        }
    }

    /// Reports rows whose name is invalid or repeated.
    fn names<'a>(
        &mut self,
        table: RefDataTable,
        column: &'static str,
        names: impl Iterator<Item = &'a str> + Clone,
    ) {
        self.repeated(table, column, names.clone());
        for (row, name) in names.enumerate() {
            if let Some(problem) = name_problem(name) {
                self.add(table, row, column, problem);
            }
        }
    }
}

fn name_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("it is empty".to_string());
    }
    name.chars().any(char::is_control).then(|| format!("{name:?} has a control character in it"))
}

#[cfg(test)]
mod tests;
