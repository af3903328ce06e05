//! What a client has said within transactions and not committed yet.

use super::subscription::MessageId;

/// Open at once; a client that needs more has forgotten some.
pub const TRANSACTIONS_MAX: usize = 16;
/// Acknowledgements and events in one.
pub const DEEDS_MAX: usize = 1_000;
/// Octets of events in all open ones.
pub const EVENT_BYTES_MAX: usize = 256 * 1_024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Acknowledge(MessageId),
    Send { name: String, body: Vec<u8> },
}

impl Deed {
    fn bytes(&self) -> usize {
        match self {
            Deed::Acknowledge(_) => 0,
            Deed::Send { name, body } => name.len() + body.len(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionError {
    Unknown,
    InUse,
    TooMany,
    TooLarge,
}

#[derive(Debug, Default)]
pub struct Transactions {
    open: Vec<(String, Vec<Deed>)>,
    bytes: usize,
}

impl Transactions {
    pub fn begin(&mut self, name: &str) -> Result<(), TransactionError> {
        if self.find(name).is_ok() {
            return Err(TransactionError::InUse);
        }
        if self.open.len() == TRANSACTIONS_MAX {
            return Err(TransactionError::TooMany);
        }
        self.open.push((name.to_string(), Vec::new()));
        Ok(())
    }

    pub fn add(&mut self, name: &str, deed: Deed) -> Result<(), TransactionError> {
        let at = self.find(name)?;
        let bytes = self.bytes + deed.bytes();
        if self.open[at].1.len() == DEEDS_MAX || bytes > EVENT_BYTES_MAX {
            return Err(TransactionError::TooLarge);
        }
        self.bytes = bytes;
        self.open[at].1.push(deed);
        Ok(())
    }

    /// Ends a transaction and gives what was said in it.
    pub fn end(&mut self, name: &str) -> Result<Vec<Deed>, TransactionError> {
        let at = self.find(name)?;
        let (_, deeds) = self.open.remove(at);
        self.bytes -= deeds.iter().map(Deed::bytes).sum::<usize>();
        Ok(deeds)
    }

    fn find(&self, name: &str) -> Result<usize, TransactionError> {
        self.open.iter().position(|(other, _)| other == name).ok_or(TransactionError::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_are_few_and_small() {
        let mut transactions = Transactions::default();
        for number in 0..TRANSACTIONS_MAX {
            transactions.begin(&number.to_string()).unwrap();
        }
        assert_eq!(transactions.begin("3"), Err(TransactionError::InUse));
        assert_eq!(transactions.begin("x"), Err(TransactionError::TooMany));
        assert_eq!(transactions.end("x"), Err(TransactionError::Unknown));
        let ack = Deed::Acknowledge(MessageId { place: 0, number: 1 });
        for _ in 0..DEEDS_MAX {
            transactions.add("0", ack.clone()).unwrap();
        }
        assert_eq!(transactions.add("0", ack.clone()), Err(TransactionError::TooLarge));
        let send = Deed::Send { name: String::new(), body: vec![0; EVENT_BYTES_MAX / 4] };
        for _ in 0..4 {
            transactions.add("1", send.clone()).unwrap();
        }
        assert_eq!(transactions.add("2", send.clone()), Err(TransactionError::TooLarge));
        assert_eq!(transactions.end("1").unwrap().len(), 4);
        transactions.add("2", send.clone()).unwrap();
        assert_eq!(transactions.end("2"), Ok(vec![send]));
        assert_eq!(transactions.bytes, 0);
    }
}
