//! Reference data: exchanges, families, securities, accounts, strategies. Read-only once built; a
//! change replaces the whole set. The `io` crates read the files. The module `check` validates the
//! rows and their references, `limits` has what a venue limits per order, `addition` adds the
//! strategies of the settings, and `succession` validates one set against the next.

mod addition;
mod check;
mod codec;
mod limits;
pub mod sample;
mod succession;

use std::collections::BTreeMap;
use std::fmt;

pub use self::addition::{AdditionError, KnownStrategies};
pub use self::limits::{NotionalLimit, OrderKinds, OrderLimits};
use crate::id::{AccountId, AdapterId, Currency, ExchangeId, FamilyId, SecurityId, StrategyId};
use crate::number::{ContractSize, Money, Price, Qty};
use crate::time::{Day, TimeOfDay};

/// A market place: its hours, and the adapter that leads to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    pub id: ExchangeId,
    pub name: String,
    /// ISO 10383 market identifier.
    pub mic: String,
    /// IANA name of the time zone of its hours.
    pub time_zone: String,
    pub open: TimeOfDay,
    pub close: TimeOfDay,
    /// Whether the day begins and ends with a call auction.
    pub auctions: bool,
    pub adapter: AdapterId,
    /// The adapter's name as the interfaces show it, `SIM` for the simulated venue.
    pub adapter_type: String,
}

/// Properties that securities of one family share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityFamily {
    pub id: FamilyId,
    pub name: String,
    pub symbol_root: String,
    pub exchange: ExchangeId,
    pub currency: Currency,
    pub contract_size: ContractSize,
    /// Above zero.
    pub tick_size: Price,
    /// Above zero.
    pub lot_size: Qty,
    /// Per unit of quantity.
    pub commission: Money,
    /// What its venue limits per order.
    pub limits: OrderLimits,
    pub tradeable: bool,
    pub expirable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecurityKind {
    Stock,
    Future,
    Option,
    Forex,
    Index,
    Commodity,
    Bond,
    Fund,
    Crypto,
}

impl SecurityKind {
    pub const ALL: [SecurityKind; 9] = [
        SecurityKind::Stock,
        SecurityKind::Future,
        SecurityKind::Option,
        SecurityKind::Forex,
        SecurityKind::Index,
        SecurityKind::Commodity,
        SecurityKind::Bond,
        SecurityKind::Fund,
        SecurityKind::Crypto,
    ];

    pub fn name(self) -> &'static str {
        match self {
            SecurityKind::Stock => "STOCK",
            SecurityKind::Future => "FUTURE",
            SecurityKind::Option => "OPTION",
            SecurityKind::Forex => "FOREX",
            SecurityKind::Index => "INDEX",
            SecurityKind::Commodity => "COMMODITY",
            SecurityKind::Bond => "BOND",
            SecurityKind::Fund => "FUND",
            SecurityKind::Crypto => "CRYPTO",
        }
    }

    pub fn from_name(name: &str) -> Option<SecurityKind> {
        SecurityKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether it expires on a date.
    pub fn expires(self) -> bool {
        matches!(self, SecurityKind::Future | SecurityKind::Option)
    }

    /// Returns whether it is one currency priced in another.
    pub fn is_pair(self) -> bool {
        matches!(self, SecurityKind::Forex | SecurityKind::Crypto)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    Call,
    Put,
}

impl OptionKind {
    pub fn name(self) -> &'static str {
        match self {
            OptionKind::Call => "CALL",
            OptionKind::Put => "PUT",
        }
    }

    pub fn from_name(name: &str) -> Option<OptionKind> {
        [OptionKind::Call, OptionKind::Put].into_iter().find(|kind| kind.name() == name)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Security {
    pub id: SecurityId,
    pub symbol: String,
    pub description: String,
    pub kind: SecurityKind,
    pub family: FamilyId,
    pub isin: Option<String>,
    pub underlying: Option<SecurityId>,
    pub expiration: Option<Day>,
    pub strike: Option<Price>,
    pub option: Option<OptionKind>,
    /// For a currency pair: the currency bought with the family's currency.
    pub base_currency: Option<Currency>,
    /// First price of the simulated market.
    pub start_price: Option<Price>,
    pub tradeable: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradingAccount {
    pub id: AccountId,
    pub name: String,
    pub active: bool,
    pub adapter_type: String,
    /// Exchanges on which it may trade. An empty list means all exchanges of its adapter.
    pub exchanges: Vec<ExchangeId>,
    /// Strategies that may use it. An empty list means all.
    pub strategies: Vec<StrategyId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrategyInfo {
    pub id: StrategyId,
    pub name: String,
    pub auto_activate: bool,
}

/// An error in a row. The reader of the files adds file and line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    pub table: RefDataTable,
    /// Index of the row in its table.
    pub row: usize,
    /// The column at fault, as spelled in the files and the REST interface.
    pub column: &'static str,
    pub problem: String,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} row {}: {}: {}", self.table.name(), self.row + 1, self.column, self.problem)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefDataTable {
    Exchanges,
    Families,
    Securities,
    Accounts,
    Strategies,
}

impl RefDataTable {
    pub const ALL: [RefDataTable; 5] = [
        RefDataTable::Exchanges,
        RefDataTable::Families,
        RefDataTable::Securities,
        RefDataTable::Accounts,
        RefDataTable::Strategies,
    ];

    pub fn name(self) -> &'static str {
        match self {
            RefDataTable::Exchanges => "exchanges",
            RefDataTable::Families => "families",
            RefDataTable::Securities => "securities",
            RefDataTable::Accounts => "accounts",
            RefDataTable::Strategies => "strategies",
        }
    }
}

/// The rows as they were read, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefDataRows {
    pub exchanges: Vec<Exchange>,
    pub families: Vec<SecurityFamily>,
    pub securities: Vec<Security>,
    pub accounts: Vec<TradingAccount>,
    pub strategies: Vec<StrategyInfo>,
}

/// Checked reference data. Invariant: ids are unique, references resolve, rows are sorted by id,
/// SERVER exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefData {
    rows: RefDataRows,
    symbols: BTreeMap<Vec<u8>, Vec<SecurityId>>,
}

impl RefData {
    pub fn exchanges(&self) -> &[Exchange] {
        &self.rows.exchanges
    }

    pub fn families(&self) -> &[SecurityFamily] {
        &self.rows.families
    }

    pub fn securities(&self) -> &[Security] {
        &self.rows.securities
    }

    pub fn accounts(&self) -> &[TradingAccount] {
        &self.rows.accounts
    }

    pub fn strategies(&self) -> &[StrategyInfo] {
        &self.rows.strategies
    }

    pub fn exchange(&self, id: ExchangeId) -> Option<&Exchange> {
        self.rows.exchanges.binary_search_by_key(&id, |row| row.id).ok().map(|at| &self.rows.exchanges[at])
    }

    pub fn family(&self, id: FamilyId) -> Option<&SecurityFamily> {
        self.rows.families.binary_search_by_key(&id, |row| row.id).ok().map(|at| &self.rows.families[at])
    }

    pub fn security(&self, id: SecurityId) -> Option<&Security> {
        self.rows.securities.binary_search_by_key(&id, |row| row.id).ok().map(|at| &self.rows.securities[at])
    }

    pub fn account(&self, id: AccountId) -> Option<&TradingAccount> {
        self.rows.accounts.binary_search_by_key(&id, |row| row.id).ok().map(|at| &self.rows.accounts[at])
    }

    pub fn strategy(&self, id: StrategyId) -> Option<&StrategyInfo> {
        self.rows.strategies.binary_search_by_key(&id, |row| row.id).ok().map(|at| &self.rows.strategies[at])
    }

    /// Returns the same data with auctions only where they actually take place.
    pub fn with_auctions_where(mut self, take_place: impl Fn(&Exchange) -> bool) -> RefData {
        for row in &mut self.rows.exchanges {
            row.auctions &= take_place(row);
        }
        self
    }

    /// Returns the same data without commissions, for a simulation with fees of its own.
    pub fn without_commissions(mut self) -> RefData {
        for row in &mut self.rows.families {
            row.commission = Money::ZERO;
        }
        self
    }

    /// Returns the family of a security of this reference data.
    pub fn family_of(&self, security: &Security) -> &SecurityFamily {
        self.family(security.family).expect("references were checked")
    }

    /// Returns the exchange of a security of this reference data.
    pub fn exchange_of(&self, security: &Security) -> &Exchange {
        self.exchange(self.family_of(security).exchange).expect("references were checked")
    }

    /// Returns whether an account may trade on an exchange.
    pub fn admits(&self, account: &TradingAccount, exchange: &Exchange) -> bool {
        account.adapter_type == exchange.adapter_type
            && (account.exchanges.is_empty() || account.exchanges.contains(&exchange.id))
    }

    /// Returns the one active account that may trade on an exchange; `None` if there is none, or
    /// more than one.
    pub fn default_account(&self, exchange: &Exchange) -> Option<&TradingAccount> {
        let mut fitting = self.rows.accounts.iter().filter(|row| row.active && self.admits(row, exchange));
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first)
    }

    /// Returns the securities with this symbol, on any exchange.
    pub fn by_symbol(&self, symbol: &(impl AsRef<[u8]> + ?Sized)) -> &[SecurityId] {
        self.symbols.get(symbol.as_ref()).map_or(&[], Vec::as_slice)
    }
}
