//! Frames of a client in transactions that are not committed yet.

use super::subscription::MessageId;

/// Transactions open at once. A client that needs more has forgotten some.
pub const TRANSACTIONS_MAX: usize = 16;
/// Acknowledgements and events in one transaction.
pub const STEPS_MAX: usize = 1_000;
/// Octets of events in all open transactions.
pub const EVENT_BYTES_MAX: usize = 256 * 1_024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStep {
    Acknowledge(MessageId),
    Send { name: String, body: Vec<u8> },
}

impl TransactionStep {
    fn bytes(&self) -> usize {
        match self {
            TransactionStep::Acknowledge(_) => 0,
            TransactionStep::Send { name, body } => name.len() + body.len(),
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
pub struct StompTransactions {
    open: Vec<(String, Vec<TransactionStep>)>,
    bytes: usize,
}

impl StompTransactions {
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

    pub fn add(&mut self, name: &str, step: TransactionStep) -> Result<(), TransactionError> {
        let at = self.find(name)?;
        let bytes = self.bytes + step.bytes();
        if self.open[at].1.len() == STEPS_MAX || bytes > EVENT_BYTES_MAX {
            return Err(TransactionError::TooLarge);
        }
        self.bytes = bytes;
        self.open[at].1.push(step);
        Ok(())
    }

    /// Ends a transaction and returns its steps.
    pub fn end(&mut self, name: &str) -> Result<Vec<TransactionStep>, TransactionError> {
        let at = self.find(name)?;
        let (_, deeds) = self.open.remove(at);
        self.bytes -= deeds.iter().map(TransactionStep::bytes).sum::<usize>();
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
    fn transactions_are_bounded() {
        let mut transactions = StompTransactions::default();
        for number in 0..TRANSACTIONS_MAX {
            transactions.begin(&number.to_string()).unwrap();
        }
        assert_eq!(transactions.begin("3"), Err(TransactionError::InUse));
        assert_eq!(transactions.begin("x"), Err(TransactionError::TooMany));
        assert_eq!(transactions.end("x"), Err(TransactionError::Unknown));
        let ack = TransactionStep::Acknowledge(MessageId { place: 0, number: 1 });
        for _ in 0..STEPS_MAX {
            transactions.add("0", ack.clone()).unwrap();
        }
        assert_eq!(transactions.add("0", ack.clone()), Err(TransactionError::TooLarge));
        let send = TransactionStep::Send { name: String::new(), body: vec![0; EVENT_BYTES_MAX / 4] };
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
