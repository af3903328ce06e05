//! Adds strategies that settings name to the reference data of the files.

use std::collections::BTreeMap;
use std::fmt;

use super::{RefData, RefDataTable, StrategyInfo};
use crate::id::StrategyId;

/// The ids that strategies had in earlier sets of reference data, by name. A name keeps its id even
/// after the strategy was gone for a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownStrategies {
    ids: BTreeMap<String, StrategyId>,
}

impl KnownStrategies {
    /// Adds the strategies of a set that a shard may have used.
    pub fn learn(&mut self, reference: &RefData) {
        for row in reference.strategies() {
            self.ids.insert(row.name.clone(), row.id);
        }
    }

    fn highest(&self) -> StrategyId {
        self.ids.values().copied().max().unwrap_or(StrategyId::SERVER)
    }
}

/// Reason why a strategy cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdditionError {
    pub name: String,
    pub problem: String,
}

impl fmt::Display for AdditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "strategy {:?}: {}", self.name, self.problem)
    }
}

impl RefData {
    /// Returns this set with a strategy for each of the names. A strategy that is missing gets the
    /// id that it had before, or else the next free one: above every id of this set and of the
    /// earlier ones. New names get their ids in alphabetical order, so that the order in which the
    /// settings name them does not matter.
    ///
    /// An added strategy is not started by the platform, because its section in the settings says
    /// when it starts.
    pub fn with_strategies<'a>(
        self,
        names: impl IntoIterator<Item = &'a str>,
        known: &KnownStrategies,
    ) -> Result<RefData, Vec<AdditionError>> {
        let is_missing = |name: &&str| self.rows.strategies.iter().all(|row| row.name != **name);
        let mut missing: Vec<&str> = names.into_iter().filter(is_missing).collect();
        missing.sort_unstable();
        missing.dedup();
        if missing.is_empty() {
            return Ok(self);
        }
        let mut rows = self.rows;
        let (first, mut errors) = (rows.strategies.len(), Vec::new());
        let highest = rows.strategies.iter().map(|row| row.id).max().unwrap_or(StrategyId::SERVER);
        let mut last = highest.max(known.highest());
        for name in missing {
            let id = match known.ids.get(name) {
                Some(id) => Ok(*id),
                None => last
                    .0
                    .checked_add(1)
                    .map(StrategyId)
                    .ok_or("no id is left above those in use".to_string()),
            };
            let taken = |id: StrategyId| rows.strategies.iter().find(|row| row.id == id);
            match id.and_then(|id| match taken(id) {
                Some(row) => Err(format!("it had the id {id} before, which is now the id of {}", row.name)),
                None => Ok(id),
            }) {
                Ok(id) => {
                    last = last.max(id);
                    rows.strategies.push(StrategyInfo { id, name: name.to_string(), auto_activate: false });
                }
                Err(problem) => errors.push(AdditionError { name: name.to_string(), problem }),
            }
        }
        let added: Vec<String> = rows.strategies[first..].iter().map(|row| row.name.clone()).collect();
        let checked = RefData::check(rows).map_err(|faults| {
            // The other rows were checked before, so every error is of an added row.
            errors.extend(faults.into_iter().map(|fault| {
                debug_assert_eq!(fault.table, RefDataTable::Strategies);
                let name = added.get(fault.row.saturating_sub(first)).cloned().unwrap_or_default();
                AdditionError { name, problem: fault.problem }
            }));
        });
        match checked {
            Ok(reference) if errors.is_empty() => Ok(reference),
            Ok(_) | Err(()) => Err(errors),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refdata::sample::sound;

    fn data() -> RefData {
        RefData::check(sound()).unwrap()
    }

    fn ids(reference: &RefData, names: &[&str]) -> Vec<Option<u16>> {
        let id =
            |name: &&str| reference.strategies().iter().find(|row| row.name == **name).map(|row| row.id.0);
        names.iter().map(id).collect()
    }

    fn learned(sets: &[&RefData]) -> KnownStrategies {
        let mut known = KnownStrategies::default();
        sets.iter().for_each(|reference| known.learn(reference));
        known
    }

    fn only_error(names: &[&str], known: &KnownStrategies) -> (String, String) {
        let errors = data().with_strategies(names.iter().copied(), known).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:?}");
        (errors[0].name.clone(), errors[0].problem.clone())
    }

    #[test]
    fn new_names_get_the_next_ids_whatever_their_order() {
        let (highest, none) = (data().strategies().last().unwrap().id.0, KnownStrategies::default());
        for names in [["DIP", "BETA", "momentum"], ["momentum", "BETA", "DIP"], ["BETA", "DIP", "BETA"]] {
            let reference = data().with_strategies(names, &none).unwrap();
            assert_eq!(ids(&reference, &["BETA", "DIP"]), [Some(highest + 1), Some(highest + 2)]);
            assert_eq!(reference.strategies().len(), data().strategies().len() + 2);
        }
        let added = data().with_strategies(["DIP"], &none).unwrap();
        assert!(!added.strategies().last().unwrap().auto_activate);
        assert_eq!(data().with_strategies(["momentum", "SERVER"], &none), Ok(data()));
    }

    #[test]
    fn a_name_keeps_its_id_after_others_came_and_it_was_gone() {
        let none = KnownStrategies::default();
        let first = data().with_strategies(["DIP"], &none).unwrap();
        let dip = ids(&first, &["DIP"]);
        // A name that sorts before it comes.
        let second = data().with_strategies(["ALPHA", "DIP"], &learned(&[&first])).unwrap();
        assert_eq!(ids(&second, &["DIP"]), dip);
        // It is gone: the set that is in force keeps its row.
        let third =
            data().with_strategies(["ALPHA"], &learned(&[&second])).unwrap().succeed(&second).unwrap();
        assert_eq!(ids(&third, &["DIP"]), dip);
        let fourth = data().with_strategies(["NEW", "DIP"], &learned(&[&third])).unwrap();
        assert_eq!(ids(&fourth, &["DIP"]), dip);
        assert!(ids(&fourth, &["NEW"]) > ids(&second, &["ALPHA"]), "no id is used twice");
        assert!(fourth.succeed(&third).is_ok());
    }

    #[test]
    fn an_id_that_the_files_gave_away_is_reported() {
        let earlier = data().with_strategies(["DIP"], &KnownStrategies::default()).unwrap();
        let mut rows = sound();
        let id = earlier.strategies().last().unwrap().id;
        rows.strategies.push(StrategyInfo { id, name: "OTHER".into(), auto_activate: true });
        let errors =
            RefData::check(rows).unwrap().with_strategies(["DIP"], &learned(&[&earlier])).unwrap_err();
        assert_eq!((errors.len(), errors[0].name.as_str()), (1, "DIP"));
        assert!(errors[0].problem.contains("now the id of OTHER"), "{errors:?}");
    }

    #[test]
    fn names_and_ids_have_their_bounds() {
        let none = KnownStrategies::default();
        for (name, words) in [("a.b", "dot"), ("", "empty"), ("two words", "space"), ("\u{7}", "control")] {
            let (at, problem) = only_error(&["DIP", name], &none);
            assert!(at == name && problem.contains(words), "{name:?}: {problem}");
        }
        let mut rows = sound();
        rows.strategies[1].id = StrategyId(u16::MAX);
        let full = RefData::check(rows).unwrap();
        let (at, problem) = only_error(&["DIP"], &learned(&[&full]));
        assert!(at == "DIP" && problem.contains("no id is left"), "{problem}");
        let errors = full.with_strategies(["DIP"], &none).unwrap_err();
        assert_eq!(errors[0].to_string(), "strategy \"DIP\": no id is left above those in use");
    }
}
