//! The grid of a search: parameters and the values that each of them takes.
//!
//! ```text
//! fast=10..50:10,slow=100|200|400,MOMENTUM.qty=1..3
//! ```

use std::fmt;

use pitlane_config::{Config, StrategyConfig};
use pitlane_engine::number::Money;

use super::PlannedRun;
use super::walk_forward::Window;

/// Most points of a grid: each is a whole run.
pub const POINTS_MAX: usize = 100_000;

/// A parameter of a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterName {
    /// None: every strategy whose settings have the parameter, or the only strategy.
    pub strategy: Option<String>,
    pub name: String,
}

impl fmt::Display for ParameterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.strategy {
            Some(strategy) => write!(f, "{strategy}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl ParameterName {
    /// Parses `fast`, or `MOMENTUM.fast`.
    pub fn parse(text: &str) -> Result<ParameterName, String> {
        let (strategy, name) = match text.rsplit_once('.') {
            Some((strategy, name)) => (Some(strategy.to_string()), name),
            None => (None, text),
        };
        let is_name = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
        match is_name(name) && strategy.as_deref().is_none_or(is_name) {
            true => Ok(ParameterName { strategy, name: name.to_string() }),
            false => Err(format!("{text:?} is not the name of a parameter")),
        }
    }

    /// Returns whether it is a parameter of this strategy among these.
    fn is_of(&self, strategy: &StrategyConfig, all: &[StrategyConfig]) -> bool {
        match &self.strategy {
            Some(name) => strategy.name == *name,
            None => all.len() == 1 || strategy.parameters.contains_key(&self.name),
        }
    }
}

/// A parameter and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweptParameter {
    pub parameter: ParameterName,
    pub values: Vec<String>,
}

/// Values of some parameters, in the order in which they were named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterSet(pub Vec<(ParameterName, String)>);

impl fmt::Display for ParameterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (parameter, value)) in self.0.iter().enumerate() {
            write!(f, "{}{parameter}={value}", if nth > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

impl ParameterSet {
    /// Parses values such as `fast=10,slow=100`.
    pub fn parse(text: &str) -> Result<ParameterSet, String> {
        let grid = Grid::parse(text)?;
        match grid.parameters.iter().find(|parameter| parameter.values.len() != 1) {
            Some(several) => Err(format!("{} must have one value here", several.parameter)),
            None => Ok(grid.point(0)),
        }
    }

    /// Returns settings with these values.
    pub fn apply(&self, config: &Config) -> Result<Config, String> {
        let mut config = config.clone();
        for (parameter, value) in &self.0 {
            let all = config.strategies.clone();
            let mut is_known = false;
            for strategy in config.strategies.iter_mut().filter(|strategy| parameter.is_of(strategy, &all)) {
                strategy.parameters.insert(parameter.name.clone(), value.clone());
                is_known = true;
            }
            if !is_known {
                return Err(unknown(parameter, &all));
            }
        }
        Ok(config)
    }
}

fn unknown(parameter: &ParameterName, all: &[StrategyConfig]) -> String {
    let names: Vec<&str> = all.iter().map(|strategy| strategy.name.as_str()).collect();
    let (name, names) = (&parameter.name, names.join(", "));
    match &parameter.strategy {
        Some(strategy) => format!("there is no strategy {strategy} in the settings, only {names}"),
        None => {
            format!("no strategy has the parameter {name} in its settings; name one of {names}: NAME.{name}")
        }
    }
}

/// All combinations of the values of some parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    pub parameters: Vec<SweptParameter>,
}

impl Grid {
    /// Parses a grid. The ends of a range belong to it.
    pub fn parse(text: &str) -> Result<Grid, String> {
        Grid::new(text.split(',').map(|part| parse_parameter(part.trim())).collect::<Result<_, _>>()?)
    }

    /// Creates a grid. Each parameter has at least one value.
    pub fn new(parameters: Vec<SweptParameter>) -> Result<Grid, String> {
        for (at, swept) in parameters.iter().enumerate() {
            if swept.values.is_empty() {
                return Err(format!("{} has no values", swept.parameter));
            }
            if parameters[..at].iter().any(|other| other.parameter == swept.parameter) {
                return Err(format!("{} is named twice", swept.parameter));
            }
        }
        let mut sizes = parameters.iter().map(|swept| swept.values.len());
        let points = sizes.try_fold(1usize, usize::checked_mul).filter(|points| *points <= POINTS_MAX);
        match points {
            Some(_) => Ok(Grid { parameters }),
            None => Err(format!("there are more than {POINTS_MAX} combinations")),
        }
    }

    /// Returns the number of combinations.
    pub fn len(&self) -> usize {
        self.parameters.iter().map(|swept| swept.values.len()).product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a combination; the last parameter changes fastest.
    pub fn point(&self, nth: usize) -> ParameterSet {
        let mut left = nth;
        let mut values: Vec<(ParameterName, String)> = self
            .parameters
            .iter()
            .rev()
            .map(|swept| {
                let value = &swept.values[left % swept.values.len()];
                left /= swept.values.len();
                (swept.parameter.clone(), value.clone())
            })
            .collect();
        values.reverse();
        ParameterSet(values)
    }

    /// Returns a run for each combination.
    pub(super) fn plan(&self, window: Option<Window>) -> impl Iterator<Item = PlannedRun> {
        (0..self.len()).map(move |point| PlannedRun { point, parameters: self.point(point), window })
    }

    /// Returns the name of the first strategy that a parameter of the grid belongs to.
    pub fn first_strategy<'a>(&self, config: &'a Config) -> Option<&'a str> {
        let all = &config.strategies;
        let swept = |strategy: &&StrategyConfig| {
            self.parameters.iter().any(|swept| swept.parameter.is_of(strategy, all))
        };
        all.iter().find(swept).map(|strategy| strategy.name.as_str())
    }
}

fn parse_parameter(text: &str) -> Result<SweptParameter, String> {
    let form = || format!("{text:?} must be such as fast=10..50:10, fast=10|20|40 or fast=10");
    let (name, values) = text.split_once('=').ok_or_else(form)?;
    let values = match values.split_once("..") {
        Some((from, rest)) => range(from, rest).ok_or_else(form)??,
        None => values.split('|').map(|value| value.trim().to_string()).collect(),
    };
    if values.iter().any(String::is_empty) {
        return Err(form());
    }
    Ok(SweptParameter { parameter: ParameterName::parse(name.trim())?, values })
}

/// Returns the numbers of a range; `None` if its parts are no numbers. Numbers have eight decimals,
/// so that steps of 0.1 are exact.
fn range(from: &str, rest: &str) -> Option<Result<Vec<String>, String>> {
    let number = |text: &str| Money::parse(text.trim().as_bytes()).ok();
    let (to, step) = rest.split_once(':').unwrap_or((rest, "1"));
    let (from, to, step) = (number(from)?, number(to)?, number(step)?);
    if !step.is_positive() || to < from {
        return Some(Err(format!("the range {from}..{to}:{step} has no values")));
    }
    let count = (i128::from(to.raw()) - i128::from(from.raw())) / i128::from(step.raw()) + 1;
    if count > POINTS_MAX as i128 {
        return Some(Err(format!("the range {from}..{to}:{step} has more than {POINTS_MAX} values")));
    }
    let values = std::iter::successors(Some(from), |value| value.checked_add(step));
    Some(Ok(values.take_while(|value| *value <= to).map(|value| value.to_string()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Grid::parse(text).unwrap().plan(None).map(|run| run.parameters.to_string()).collect()
    }

    #[test]
    fn a_grid_has_all_combinations_and_the_last_parameter_changes_fastest() {
        let expected = ["fast=10,slow=100", "fast=10,slow=400", "fast=20,slow=100", "fast=20,slow=400"];
        assert_eq!(values("fast=10..20:10,slow=100|400"), expected);
        assert_eq!(values("x=0.1..0.3:0.1"), ["x=0.1", "x=0.2", "x=0.3"]);
        assert_eq!(values("x=-1..1"), ["x=-1", "x=0", "x=1"]);
        assert_eq!(values("x=1..10:4"), ["x=1", "x=5", "x=9"], "the end belongs to it if a step meets it");
        assert_eq!(values("A.short=true|false"), ["A.short=true", "A.short=false"]);
    }

    #[test]
    fn grids_that_are_none_are_refused_with_the_reason() {
        let cases = [
            ("", "must be such as"),
            ("fast", "must be such as"),
            ("fast=", "must be such as"),
            ("fast=1|", "must be such as"),
            ("fast=a..b", "must be such as"),
            ("fast=5..1", "has no values"),
            ("fast=1..5:0", "has no values"),
            ("fast=1..5:-1", "has no values"),
            ("=1", "is not the name"),
            ("A.=1", "is not the name"),
            ("fast=1,fast=2", "is named twice"),
            ("a=1..1000000", "more than 100000 values"),
            ("a=1..1000,b=1..1000", "more than 100000 combinations"),
        ];
        for (text, problem) in cases {
            let found = Grid::parse(text).unwrap_err();
            assert!(found.contains(problem), "{text:?}: {found}");
        }
        assert!(ParameterSet::parse("fast=1..2").unwrap_err().contains("one value"));
        let parameter = ParameterName::parse("fast").unwrap();
        let without = Grid::new(vec![SweptParameter { parameter, values: Vec::new() }]);
        assert_eq!(without, Err("fast has no values".to_string()));
    }

    fn config(strategies: &[(&str, &[&str])]) -> Config {
        let strategies = strategies
            .iter()
            .map(|(name, parameters)| StrategyConfig {
                name: (*name).to_string(),
                kind: String::new(),
                securities: Vec::new(),
                start: true,
                cancel_on_failure: true,
                parameters: parameters.iter().map(|name| ((*name).to_string(), "1".to_string())).collect(),
            })
            .collect();
        Config { strategies, ..Config::default() }
    }

    #[test]
    fn a_value_goes_to_the_strategies_that_have_the_parameter() {
        let apply = |text: &str, config: &Config| {
            let applied = ParameterSet::parse(text).unwrap().apply(config)?;
            let value =
                |strategy: &StrategyConfig| strategy.parameters.get("fast").cloned().unwrap_or_default();
            Ok::<_, String>(applied.strategies.iter().map(value).collect::<Vec<_>>())
        };
        let two = config(&[("A", &["fast"]), ("B", &["slow"])]);
        assert_eq!(apply("fast=7", &two).unwrap(), ["7", ""]);
        assert_eq!(apply("B.fast=7", &two).unwrap(), ["1", "7"]);
        assert!(apply("qty=7", &two).unwrap_err().contains("name one of A, B: NAME.qty"));
        assert!(apply("C.fast=7", &two).unwrap_err().contains("there is no strategy C"));
        assert_eq!(apply("fast=7", &config(&[("A", &[])])).unwrap(), ["7"], "the only one");
        assert_eq!(Grid::parse("slow=1").unwrap().first_strategy(&two), Some("B"));
    }
}
