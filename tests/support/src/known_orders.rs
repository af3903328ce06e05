//! What a FIX client knows from its reports, and whether they agree: no report comes twice, no fill
//! is missing, no request is answered twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::fix_client::ReceivedFix;

/// A contradiction, with the message.
#[derive(Debug)]
pub enum Contradiction {
    /// Reported or answered before.
    Repeated(String),
    /// An earlier message is missing.
    Missing(String),
}

#[derive(Default)]
pub struct KnownOrders {
    exec_ids: BTreeSet<String>,
    /// Last report by the order's first id.
    pub last: BTreeMap<String, ReceivedFix>,
    pub filled: BTreeMap<String, u64>,
    /// Number of responses by kind and the request's id.
    answers: BTreeMap<(String, String), u32>,
    /// Requests that were refused (Business Message Reject).
    pub refused: BTreeSet<String>,
}

impl KnownOrders {
    /// Processes the next message.
    pub fn take(&mut self, message: &ReceivedFix) -> Result<(), Contradiction> {
        match message.get(35) {
            "8" => self.report(message),
            "j" => {
                self.refused.insert(message.get(379).to_string());
                self.answered(("j", 379), message)
            }
            kind => self.answered((kind, 11), message),
        }
    }

    fn report(&mut self, message: &ReceivedFix) -> Result<(), Contradiction> {
        if !self.exec_ids.insert(message.get(17).to_string()) {
            return Err(Contradiction::Repeated(format!("ExecID of {}", message.text())));
        }
        let root = message.get(37).to_string();
        if matches!(message.get(150), "A" | "6" | "E") {
            self.answered((message.get(150), 11), message)?;
        }
        if message.get(150) == "F" {
            let filled = self.filled.entry(root.clone()).or_default();
            *filled += whole(message.get(32));
            if *filled != whole(message.get(14)) {
                return Err(Contradiction::Missing(message.text()));
            }
        }
        if message.get(150) != "8" || !self.last.contains_key(&root) {
            self.last.insert(root, message.clone());
        }
        Ok(())
    }

    /// Counts a response of a kind, with the request's id under a tag.
    fn answered(&mut self, (kind, tag): (&str, u32), message: &ReceivedFix) -> Result<(), Contradiction> {
        let count = self.answers.entry((kind.to_string(), message.get(tag).to_string())).or_default();
        *count += 1;
        match *count {
            1 => Ok(()),
            _ => Err(Contradiction::Repeated(format!("answer {}", message.text()))),
        }
    }
}

fn whole(value: &str) -> u64 {
    value.parse().unwrap_or_else(|_| panic!("a whole number: {value:?}"))
}
