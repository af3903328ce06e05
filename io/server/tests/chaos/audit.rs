//! Compares what each client was acknowledged with the state of the platform, and checks that the
//! books are consistent: over REST, like any client.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use pitlane_engine::number::{ContractSize, Money, Notional, Price};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_protocols::rest::Moment;
use pitlane_runtime::clock::Clock;
use pitlane_testkit::http_client::HttpClient;
use serde_json::Value;

use crate::findings::{ChaosFindings, FindingKind};
use crate::received::{CheckScope, FINAL, LastStatus, OPEN, ReceivedState, qty, text};
use crate::site::HOURS_EXCHANGE;
use crate::traders::{ServiceAddresses, wire};

/// Trading continues while the books are read; they are read again until they agree, at most this
/// often.
const READS_MAX: usize = 50;
/// A running service ends its orders at the close, but not at the exact nanosecond.
const CLOSE_GRACE_NS: u64 = NS_PER_S;

/// State of the platform after its start.
pub(crate) struct Audit<'a> {
    client: HttpClient,
    /// Name of the process, for the findings.
    site: &'a str,
    findings: ChaosFindings,
}

impl Audit<'_> {
    /// Collects the findings. Returns an error if the service was gone before the end: then there
    /// is no result.
    pub(crate) fn look(
        addresses: &ServiceAddresses,
        received: &[&ReceivedState],
        how: CheckScope,
        site: &str,
        close: Option<Timestamp>,
    ) -> io::Result<ChaosFindings> {
        let mut audit = Audit {
            client: HttpClient::new(wire(addresses.http)?),
            site,
            findings: ChaosFindings::default(),
        };
        let now = Clock::new().now();
        let orders = audit.orders()?;
        if let Some(close) = close.filter(|close| close.plus(CLOSE_GRACE_NS) < now) {
            audit.check_session(&orders, close);
        }
        let transactions = audit.transactions()?;
        for received in received {
            audit.check_orders(&orders, received, how)?;
            audit.check_transactions(&transactions, received);
        }
        audit.check_books()?;
        Ok(audit.findings)
    }

    fn find(&mut self, kind: FindingKind, what: String) {
        let site = self.site;
        self.findings.add(kind, format!("{site}: {what}"));
    }

    fn rows(&mut self, path: &str) -> io::Result<Vec<Value>> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.client.send_bytes(request.as_bytes())?;
        let answer = self.client.try_receive(false)?;
        match answer.status {
            200 => {
                let json = answer.json();
                Ok(if let Value::Array(rows) = json { rows } else { vec![json] })
            }
            404 => Ok(Vec::new()),
            _ => Err(io::Error::other(format!("{path}: {answer:?}"))),
        }
    }

    /// Returns all orders by their current id.
    fn orders(&mut self) -> io::Result<BTreeMap<String, Value>> {
        let mut orders = BTreeMap::new();
        // An order that ends between the two requests is in both.
        for path in ["/rest/execution/order", "/rest/ext/order/history"] {
            let mut ids = BTreeSet::new();
            for row in self.rows(path)? {
                let id = text(&row, "intId");
                if !ids.insert(id.clone()) {
                    self.find(FindingKind::Doubled, format!("order {id} in {path}"));
                }
                orders.insert(id, row);
            }
        }
        Ok(orders)
    }

    /// Checks that no DAY order of the exchange with hours is open after the close of its session.
    fn check_session(&mut self, orders: &BTreeMap<String, Value>, close: Timestamp) {
        for (id, row) in orders {
            let is_open =
                !FINAL.contains(&row["status"].as_str().unwrap_or_default()) && row["status"] != "REJECTED";
            let submitted = Moment::parse(&text(row, "dateTime")).expect("an instant");
            let is_concerned = row["tif"] == "DAY" && row["exchangeId"] == HOURS_EXCHANGE;
            if is_open && is_concerned && submitted.0 < close {
                self.find(FindingKind::Broken, format!("order {id} outlives its session: {row}"));
            }
        }
    }

    fn check_orders(
        &mut self,
        orders: &BTreeMap<String, Value>,
        received: &ReceivedState,
        how: CheckScope,
    ) -> io::Result<()> {
        for (id, last_status) in received.orders(how) {
            let mut found = self.order(orders, id)?;
            for alias in received.aliases(id) {
                if found.is_some() {
                    break;
                }
                found = self.order(orders, alias)?;
            }
            match found {
                Some(row) => self.check_order(&row, id, last_status),
                // A refusal is reported, and need not be stored.
                None if last_status.status == "REJECTED" => {}
                None => self.find(FindingKind::Lost, format!("order {id}, received as {last_status:?}")),
            }
        }
        for id in &received.cancelled {
            let row = self.order(orders, id)?;
            if let Some(row) = row.filter(|row| OPEN.contains(&text(row, "status").as_str())) {
                self.find(FindingKind::Lost, format!("the cancel of {id}: {row}"));
            }
        }
        Ok(())
    }

    /// Finds an order by its current id, or any earlier one.
    fn order(&mut self, orders: &BTreeMap<String, Value>, id: &str) -> io::Result<Option<Value>> {
        if let Some(row) = orders.get(id) {
            return Ok(Some(row.clone()));
        }
        let mut found = self.rows(&format!("/rest/execution/order/{id}"))?;
        if found.len() > 1 {
            self.find(FindingKind::Doubled, format!("order {id}: {found:?}"));
        }
        Ok(found.pop())
    }

    fn check_order(&mut self, row: &Value, id: &str, received: &LastStatus) {
        let (status, filled) = (text(row, "status"), qty(row, "filledQuantity"));
        let is_final = FINAL.contains(&received.status.as_str());
        if filled < received.filled || is_final && (filled != received.filled || status != received.status) {
            self.find(FindingKind::Lost, format!("what was received of {id}, {received:?}: {row}"));
        }
    }

    fn transactions(&mut self) -> io::Result<Vec<Value>> {
        self.rows("/rest/transaction/daily")
    }

    fn check_transactions(&mut self, transactions: &[Value], received: &ReceivedState) {
        let mut by_uuid: BTreeMap<String, &Value> = BTreeMap::new();
        for row in transactions {
            if by_uuid.insert(text(row, "uuid"), row).is_some() {
                self.find(FindingKind::Doubled, format!("transaction {row}"));
            }
        }
        for (uuid, written) in &received.transactions {
            match by_uuid.get(uuid) {
                None => self.find(FindingKind::Lost, format!("transaction {uuid}, received as {written:?}")),
                Some(row) if (row["quantity"].to_string(), row["price"].to_string()) != *written => {
                    self.find(
                        FindingKind::Lost,
                        format!("what was received of transaction {uuid}, {written:?}: {row}"),
                    );
                }
                Some(_) => {}
            }
        }
    }

    /// Contract sizes by security.
    fn contract_sizes(&mut self) -> io::Result<BTreeMap<u64, ContractSize>> {
        let size = |row: Value| {
            let size = ContractSize::parse(row["contractSize"].to_string().as_bytes()).ok()?;
            Some((row["id"].as_u64()?, size))
        };
        Ok(self.rows("/rest/security")?.into_iter().filter_map(size).collect())
    }

    /// Checks that positions and cash are the sums of transactions, and so is the filled quantity
    /// of an order.
    fn check_books(&mut self) -> io::Result<()> {
        let sizes = self.contract_sizes()?;
        let mut differences = Vec::new();
        for _ in 0..READS_MAX {
            let transactions = self.transactions()?;
            let positions = self.rows("/rest/position")?;
            let cash = self.rows("/rest/ext/cash-balance")?;
            let orders = self.orders()?;
            differences = TransactionSums::of(&transactions, &sizes).differ(&positions, &cash, &orders);
            if differences.is_empty() {
                break;
            }
        }
        for difference in differences {
            self.find(FindingKind::Unbalanced, difference);
        }
        Ok(())
    }
}

/// Sums of transactions.
#[derive(Default)]
struct TransactionSums {
    /// By strategy and security.
    positions: BTreeMap<(u64, u64), i64>,
    /// By strategy and currency.
    cash: BTreeMap<(u64, String), i64>,
    filled: BTreeMap<String, i64>,
}

impl TransactionSums {
    fn of(transactions: &[Value], sizes: &BTreeMap<u64, ContractSize>) -> TransactionSums {
        let mut books = TransactionSums::default();
        transactions.iter().for_each(|row| books.take(row, sizes));
        books
    }

    fn take(&mut self, row: &Value, sizes: &BTreeMap<u64, ContractSize>) {
        let strategy = row["strategyId"].as_u64().unwrap_or_default();
        let price = Price::parse(row["price"].to_string().as_bytes()).expect("a price is a decimal");
        let money = match row["securityId"].as_u64() {
            Some(security) => {
                let traded = qty(row, "quantity");
                *self.positions.entry((strategy, security)).or_default() += traded.raw();
                if let Some(order) = row["orderIntId"].as_str() {
                    *self.filled.entry(order.to_string()).or_default() += traded.abs().raw();
                }
                let paid = Notional::of(price, traded).money(sizes[&security]).expect("it is not so much");
                -paid.raw() - money(row, "commission").raw()
            }
            // The only manual transaction here is a credit.
            None => price.raw(),
        };
        *self.cash.entry((strategy, text(row, "currency"))).or_default() += money;
    }

    fn differ(&self, positions: &[Value], cash: &[Value], orders: &BTreeMap<String, Value>) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: String, sum: i64, shown: i64| {
            if sum != shown {
                differences.push(format!("{what}: transactions make {sum}, it shows {shown} (in 10⁻⁸)"));
            }
        };
        let mut shown: BTreeMap<(u64, u64), i64> = BTreeMap::new();
        for row in positions {
            let key = (
                row["strategyId"].as_u64().unwrap_or_default(),
                row["securityId"].as_u64().unwrap_or_default(),
            );
            shown.insert(key, qty(row, "quantity").raw());
        }
        for key in self.positions.keys().chain(shown.keys()).collect::<BTreeSet<_>>() {
            let of = |map: &BTreeMap<_, i64>| map.get(key).copied().unwrap_or_default();
            compare(format!("position {key:?}"), of(&self.positions), of(&shown));
        }
        let mut shown: BTreeMap<(u64, String), i64> = BTreeMap::new();
        for row in cash {
            let key = (row["strategyId"].as_u64().unwrap_or_default(), text(row, "currency"));
            shown.insert(key, money(row, "amount").raw());
        }
        for key in self.cash.keys().chain(shown.keys()).collect::<BTreeSet<_>>() {
            let of = |map: &BTreeMap<_, i64>| map.get(key).copied().unwrap_or_default();
            compare(format!("cash {key:?}"), of(&self.cash), of(&shown));
        }
        for (id, row) in orders {
            // A transaction has the id that the order had at that time.
            if row.get("origIntId").is_none() {
                let sum = self.filled.get(id).copied().unwrap_or_default();
                compare(format!("filled of {id}"), sum, qty(row, "filledQuantity").raw());
            }
        }
        differences
    }
}

fn money(row: &Value, name: &str) -> Money {
    Money::parse(row[name].to_string().as_bytes()).unwrap_or_else(|_| panic!("{name} of {row}"))
}
