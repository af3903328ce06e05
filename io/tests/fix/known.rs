//! What a FIX client knows from its reports, and whether they agree with each other: none comes twice, no fill is missing, no request
//! is answered twice.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Message;

/// What does not agree, with the message.
#[derive(Debug)]
pub enum Broken {
    /// Told or answered before.
    Repeated(String),
    /// Something must have come before it and did not.
    Missing(String),
}

#[derive(Default)]
pub struct Known {
    exec_ids: BTreeSet<String>,
    /// By the order's first id.
    pub last: BTreeMap<String, Message>,
    pub filled: BTreeMap<String, u64>,
    /// By kind of answer and the request's id.
    answers: BTreeMap<(String, String), u32>,
    /// Requests that were not taken (Business Message Reject).
    pub refused: BTreeSet<String>,
}

impl Known {
    /// Takes the next message in.
    pub fn take(&mut self, message: &Message) -> Result<(), Broken> {
        match message.get(35) {
            "8" => self.report(message),
            "j" => {
                self.refused.insert(message.get(379).to_string());
                self.answered(("j", 379), message)
            }
            kind => self.answered((kind, 11), message),
        }
    }

    fn report(&mut self, message: &Message) -> Result<(), Broken> {
        if !self.exec_ids.insert(message.get(17).to_string()) {
            return Err(Broken::Repeated(format!("ExecID of {}", message.text())));
        }
        let root = message.get(37).to_string();
        if matches!(message.get(150), "A" | "6" | "E") {
            self.answered((message.get(150), 11), message)?;
        }
        if message.get(150) == "F" {
            let filled = self.filled.entry(root.clone()).or_default();
            *filled += whole(message.get(32));
            if *filled != whole(message.get(14)) {
                return Err(Broken::Missing(message.text()));
            }
        }
        if message.get(150) != "8" || !self.last.contains_key(&root) {
            self.last.insert(root, message.clone());
        }
        Ok(())
    }

    /// An answer of a kind, with the request's id under a tag.
    fn answered(&mut self, (kind, tag): (&str, u32), message: &Message) -> Result<(), Broken> {
        let count = self.answers.entry((kind.to_string(), message.get(tag).to_string())).or_default();
        *count += 1;
        match *count {
            1 => Ok(()),
            _ => Err(Broken::Repeated(format!("answer {}", message.text()))),
        }
    }
}

fn whole(value: &str) -> u64 {
    value.parse().unwrap_or_else(|_| panic!("a whole number: {value:?}"))
}
