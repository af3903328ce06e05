//! Replaces one set of reference data by another, while orders and positions of the old one
//! continue.

use super::{RefData, RefDataRows, RefDataTable, RowError};

impl RefData {
    /// Returns this set, made fit to follow `old`. Rows that vanished stay but are inactive
    /// (securities and families not tradeable, accounts inactive, strategies not started), since
    /// orders, positions and cash may still refer to them. It refuses an id that changes its
    /// meaning, and a name that moves to another id. Row numbers of the errors refer to this set.
    pub fn succeed(self, old: &RefData) -> Result<RefData, Vec<RowError>> {
        let changed = changes(&self.rows, &old.rows);
        if !changed.is_empty() {
            return Err(changed);
        }
        let mut rows = vanished(&self, old);
        let kept = counts(&rows);
        rows.exchanges.extend(self.rows.exchanges);
        rows.families.extend(self.rows.families);
        rows.securities.extend(self.rows.securities);
        rows.accounts.extend(self.rows.accounts);
        rows.strategies.extend(self.rows.strategies);
        // The kept rows come first, so that a name they share with a new row is the new row's
        // error.
        RefData::check(rows).map_err(|mut errors| {
            for error in &mut errors {
                error.row = error.row.saturating_sub(kept[error.table as usize]);
            }
            errors
        })
    }
}

/// Returns an error for each id that changes its meaning.
fn changes(new: &RefDataRows, old: &RefDataRows) -> Vec<RowError> {
    let mut errors = Vec::new();
    let mut compare = |table, row, column, same: bool, was: &str| {
        if !same {
            let problem = format!("an id never changes its meaning: it stood for {was}");
            errors.push(RowError { table, row, column, problem });
        }
    };
    for (at, row, was) in pairs(&new.exchanges, &old.exchanges, |row| row.id) {
        compare(RefDataTable::Exchanges, at, "name", row.name == was.name, &was.name);
        compare(RefDataTable::Exchanges, at, "adapterType", row.adapter == was.adapter, &was.adapter_type);
    }
    for (at, row, was) in pairs(&new.families, &old.families, |row| row.id) {
        let mut compare = |column, same, was: &str| compare(RefDataTable::Families, at, column, same, was);
        compare("name", row.name == was.name, &was.name);
        compare("exchangeId", row.exchange == was.exchange, &was.exchange.to_string());
        compare("currency", row.currency == was.currency, was.currency.as_str());
        compare("contractSize", row.contract_size == was.contract_size, &was.contract_size.to_string());
        compare("expirable", row.expirable == was.expirable, &was.expirable.to_string());
    }
    for (at, row, was) in pairs(&new.securities, &old.securities, |row| row.id) {
        let mut compare = |column, same| compare(RefDataTable::Securities, at, column, same, &was.symbol);
        compare("symbol", row.symbol == was.symbol);
        compare("type", row.kind == was.kind);
        compare("securityFamilyId", row.family == was.family);
        compare("underlyingId", row.underlying == was.underlying);
        compare("expiration", row.expiration == was.expiration);
        compare("strike", row.strike == was.strike);
        compare("optionType", row.option == was.option);
        compare("baseCurrency", row.base_currency == was.base_currency);
    }
    for (at, row, was) in pairs(&new.accounts, &old.accounts, |row| row.id) {
        compare(RefDataTable::Accounts, at, "name", row.name == was.name, &was.name);
        compare(
            RefDataTable::Accounts,
            at,
            "adapterType",
            row.adapter_type == was.adapter_type,
            &was.adapter_type,
        );
    }
    for (at, row, was) in pairs(&new.strategies, &old.strategies, |row| row.id) {
        compare(RefDataTable::Strategies, at, "name", row.name == was.name, &was.name);
    }
    errors
}

/// Returns the rows that are in both tables, with the index in the new one. Both are sorted by id.
fn pairs<'a, T, K: Ord>(
    new: &'a [T],
    old: &'a [T],
    id: impl Fn(&T) -> K + Copy,
) -> impl Iterator<Item = (usize, &'a T, &'a T)> {
    new.iter().enumerate().filter_map(move |(at, row)| {
        let found = old.binary_search_by_key(&id(row), id).ok()?;
        Some((at, row, &old[found]))
    })
}

/// Returns the rows of the old set that are not in the new one, made inactive.
fn vanished(new: &RefData, old: &RefData) -> RefDataRows {
    let mut rows = old.rows.clone();
    rows.exchanges.retain(|row| new.exchange(row.id).is_none());
    rows.families.retain(|row| new.family(row.id).is_none());
    rows.securities.retain(|row| new.security(row.id).is_none());
    rows.accounts.retain(|row| new.account(row.id).is_none());
    rows.strategies.retain(|row| new.strategy(row.id).is_none());
    rows.families.iter_mut().for_each(|row| row.tradeable = false);
    rows.accounts.iter_mut().for_each(|row| row.active = false);
    rows.strategies.iter_mut().for_each(|row| row.auto_activate = false);
    for row in &mut rows.securities {
        row.tradeable = false;
        // No market starts here any more, and the family's grid may differ.
        row.start_price = None;
    }
    rows
}

/// Returns the number of rows in each table, in the order of [`RefDataTable`].
fn counts(rows: &RefDataRows) -> [usize; 5] {
    [
        rows.exchanges.len(),
        rows.families.len(),
        rows.securities.len(),
        rows.accounts.len(),
        rows.strategies.len(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AccountId, AdapterId, ExchangeId, FamilyId, SecurityId, StrategyId};
    use crate::number::{ContractSize, Price};
    use crate::refdata::sample::{price, sound};

    fn data(change: impl FnOnce(&mut RefDataRows)) -> RefData {
        let mut rows = sound();
        change(&mut rows);
        RefData::check(rows).unwrap()
    }

    /// Checks that the next set is refused with exactly these errors: table, row (from 1), column.
    fn check(change: impl FnOnce(&mut RefDataRows), expected: &[(RefDataTable, usize, &str)]) {
        let errors = data(change).succeed(&data(|_| {})).err().unwrap_or_default();
        let found: Vec<_> = errors.iter().map(|error| (error.table, error.row + 1, error.column)).collect();
        assert_eq!(found, expected, "{errors:#?}");
    }

    #[test]
    fn the_same_reference_data_can_follow_themselves() {
        assert_eq!(data(|_| {}).succeed(&data(|_| {})), Ok(data(|_| {})));
    }

    #[test]
    fn vanished_rows_stay_inactive() {
        let next = data(|rows| *rows = RefDataRows::default()).succeed(&data(|_| {})).unwrap();
        assert!(next.securities().iter().all(|row| !row.tradeable && row.start_price.is_none()));
        assert_eq!(next.securities().len(), 3);
        assert!(next.families().iter().all(|row| !row.tradeable));
        assert!(next.accounts().iter().all(|row| !row.active));
        let awake: Vec<_> = next.strategies().iter().filter(|row| row.auto_activate).collect();
        assert_eq!(awake.len(), 1, "SERVER is there in any set");
        let option = next.security(SecurityId(2)).unwrap();
        assert_eq!(next.exchange_of(option).id, ExchangeId(1));
        assert_eq!(next.by_symbol("ACME"), [SecurityId(1)]);
    }

    #[test]
    fn a_vanished_security_stays_inactive_in_its_family() {
        let next = data(|rows| {
            rows.securities.pop();
            rows.families[2].tick_size = price("0.3");
        });
        let next = next.succeed(&data(|_| {})).unwrap();
        assert!(!next.security(SecurityId(3)).unwrap().tradeable);
        assert!(next.family(FamilyId(3)).unwrap().tradeable);
        // It is active again when it is listed again.
        let again = data(|rows| rows.families[2].tick_size = Price::from_raw(1)).succeed(&next).unwrap();
        assert!(again.security(SecurityId(3)).unwrap().tradeable);
    }

    #[test]
    fn numbers_that_do_not_change_what_a_thing_is_may_change() {
        check(
            |rows| {
                rows.families[0].tick_size = price("0.5");
                rows.securities[0].tradeable = false;
                rows.securities[0].description = "Acme & Sons".into();
                rows.accounts[1].active = true;
            },
            &[],
        );
    }

    #[test]
    fn an_id_keeps_its_meaning() {
        use RefDataTable::{Accounts, Exchanges, Families, Securities, Strategies};
        check(|rows| rows.exchanges[0].name = "Else".into(), &[(Exchanges, 1, "name")]);
        check(|rows| rows.exchanges[1].adapter = AdapterId(3), &[(Exchanges, 2, "adapterType")]);
        check(|rows| rows.families[0].name = "Else".into(), &[(Families, 1, "name")]);
        check(|rows| rows.families[2].exchange = ExchangeId(1), &[(Families, 3, "exchangeId")]);
        let two = ContractSize::whole(2).unwrap();
        check(|rows| rows.families[0].contract_size = two, &[(Families, 1, "contractSize")]);
        check(|rows| rows.securities[0].symbol = "ELSE".into(), &[(Securities, 1, "symbol")]);
        check(|rows| rows.securities[1].strike = Some(price("11")), &[(Securities, 2, "strike")]);
        check(
            |rows| {
                rows.accounts[0].adapter_type = "FIX".into();
                rows.accounts[0].exchanges.clear();
            },
            &[(Accounts, 1, "adapterType")],
        );
        check(|rows| rows.strategies[1].name = "else".into(), &[(Strategies, 2, "name")]);
    }

    #[test]
    fn a_name_cannot_move_to_another_id() {
        use RefDataTable::{Accounts, Securities, Strategies};
        check(
            |rows| {
                rows.securities[2].id = SecurityId(7);
                rows.accounts[0].id = AccountId(9);
                rows.strategies[1].id = StrategyId(9);
            },
            &[(Securities, 3, "symbol"), (Accounts, 2, "name"), (Strategies, 2, "name")],
        );
    }
}
