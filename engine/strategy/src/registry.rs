//! The kinds of strategies that settings can name. A program builds one [`Registry`] and passes it
//! to every part that creates strategies; there is no global list.

use std::fmt;
use std::sync::Arc;

use super::context::Context;
use super::examples::{MarketMaker, MovingAverage};
use super::host::StrategyFactory;
use super::parameters::{BadParameter, FromParameters, Parameter, Parameters};
use super::{Failure, Strategy};
use pitlane_engine::command::StrategyPhase;
use pitlane_engine::id::SecurityId;

/// Longest name of a kind: it is shown in tables.
pub const KIND_NAME_BYTES_MAX: usize = 64;

/// Checks securities and parameters, and returns a factory that creates the strategy at each start.
type MakeFactory = dyn Fn(&[SecurityId], &Parameters) -> Result<StrategyFactory, BadParameter> + Send + Sync;

/// One kind of strategy: its name, its parameters, and how it is created.
#[derive(Clone)]
pub struct StrategyKind {
    name: String,
    /// Declared parameters; `None`: the maker checks the names itself.
    parameters: Option<Vec<Parameter>>,
    make: Arc<MakeFactory>,
}

impl StrategyKind {
    /// Creates a kind from a function or closure that returns a factory. This is the general form;
    /// most programs use [`Registry::with`] or [`Registry::add`].
    pub fn new(
        name: impl Into<String>,
        make: impl Fn(&[SecurityId], &Parameters) -> Result<StrategyFactory, BadParameter> + Send + Sync + 'static,
    ) -> StrategyKind {
        StrategyKind { name: name.into(), parameters: None, make: Arc::new(make) }
    }

    /// Declares the parameters: defaults are filled in, and other names are refused.
    pub fn with_parameters(self, parameters: &[Parameter]) -> StrategyKind {
        StrategyKind { parameters: Some(parameters.to_vec()), ..self }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the declared parameters; `None` if the kind declares none.
    pub fn parameters(&self) -> Option<&[Parameter]> {
        self.parameters.as_deref()
    }

    /// Checks the parameters and returns a factory for the strategy.
    pub fn make(
        &self,
        securities: &[SecurityId],
        parameters: &Parameters,
    ) -> Result<StrategyFactory, BadParameter> {
        match &self.parameters {
            Some(declared) => (self.make)(securities, &parameters.declared(declared)?),
            None => (self.make)(securities, parameters),
        }
    }
}

impl fmt::Debug for StrategyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StrategyKind { name, parameters, .. } = self;
        f.debug_struct("StrategyKind").field("name", name).field("parameters", parameters).finish()
    }
}

/// The kinds of strategies of one program, in the order in which they were added.
///
/// The methods that add a kind can be chained. A name that cannot be added is remembered, and
/// [`Registry::check`] reports it; `pitlane::run` does so before anything else.
///
/// ```
/// use pitlane_strategy::prelude::*;
///
/// struct Idle;
/// impl Strategy for Idle {}
///
/// let registry = Registry::with_examples().add("idle", |_, parameters| {
///     parameters.only(&[])?;
///     Ok(Idle)
/// });
/// assert!(registry.check().is_ok());
/// let names: Vec<&str> = registry.names().collect();
/// assert_eq!(names, ["moving-average-cross", "market-maker", "idle"]);
/// assert!(registry.add("idle", |_, _| Ok(Idle)).check().is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    kinds: Vec<StrategyKind>,
    /// The first kind that could not be added.
    fault: Option<RegistryError>,
}

impl Registry {
    /// Creates a registry without any kind.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Creates a registry with the kinds that Pitlane ships: `moving-average-cross` and
    /// `market-maker`.
    pub fn with_examples() -> Registry {
        Registry::new().with::<MovingAverage>().with::<MarketMaker>()
    }

    /// Adds a strategy type under its own name, with its declared parameters.
    pub fn with<S: FromParameters>(self) -> Registry {
        let kind = StrategyKind::new(S::KIND, made_at_each_start(S::from_parameters));
        self.add_kind(kind.with_parameters(S::PARAMETERS))
    }

    /// Adds a function or closure that creates a strategy. It is called once to check the settings
    /// and at each start. It refuses unknown parameters with [`Parameters::only`].
    pub fn add<S: Strategy + 'static>(
        self,
        name: impl Into<String>,
        make: impl Fn(&[SecurityId], &Parameters) -> Result<S, BadParameter> + Send + Sync + 'static,
    ) -> Registry {
        self.add_kind(StrategyKind::new(name, made_at_each_start(make)))
    }

    /// Adds a kind. If its name is taken or malformed, the registry remembers that.
    pub fn add_kind(mut self, kind: StrategyKind) -> Registry {
        if let Err(error) = self.try_add(kind) {
            self.fault.get_or_insert(error);
        }
        self
    }

    /// Adds a kind, or returns why it cannot be added.
    pub fn try_add(&mut self, kind: StrategyKind) -> Result<(), RegistryError> {
        let name = kind.name.as_str();
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !is_plain || !(1..=KIND_NAME_BYTES_MAX).contains(&name.len()) {
            return Err(RegistryError::Malformed(kind.name));
        }
        if self.find(name).is_some() {
            return Err(RegistryError::Duplicate(kind.name));
        }
        self.kinds.push(kind);
        Ok(())
    }

    /// Returns the first error of the kinds that were added.
    pub fn check(&self) -> Result<(), RegistryError> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Returns the kind with a name.
    pub fn find(&self, name: &str) -> Option<&StrategyKind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// Returns all kinds.
    pub fn kinds(&self) -> &[StrategyKind] {
        &self.kinds
    }

    /// Returns the names of all kinds.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(StrategyKind::name)
    }
}

/// Reason why a kind cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryError {
    /// Another kind has the name.
    Duplicate(String),
    /// The name is empty, too long, or has other characters.
    Malformed(String),
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryError::Duplicate(name) => write!(f, "two kinds of strategy have the name {name:?}"),
            RegistryError::Malformed(name) => write!(
                f,
                "the name of a kind of strategy must have 1 to {KIND_NAME_BYTES_MAX} letters, digits, '-', '_' or '.', \
                 and {name:?} has not"
            ),
        }
    }
}

impl std::error::Error for RegistryError {}

/// Returns a maker of factories that call `make` at each start.
fn made_at_each_start<S: Strategy + 'static>(
    make: impl Fn(&[SecurityId], &Parameters) -> Result<S, BadParameter> + Send + Sync + 'static,
) -> impl Fn(&[SecurityId], &Parameters) -> Result<StrategyFactory, BadParameter> + Send + Sync + 'static {
    let make = Arc::new(make);
    move |securities, parameters| {
        make(securities, parameters)?;
        let (make, securities, parameters) = (make.clone(), securities.to_vec(), parameters.clone());
        Ok(Box::new(move || match make(&securities, &parameters) {
            Ok(strategy) => Box::new(strategy) as Box<dyn Strategy>,
            Err(bad) => Box::new(FailsAtStart(bad)),
        }))
    }
}

/// Takes the place of a strategy whose maker accepted the parameters once and refuses them now.
struct FailsAtStart(BadParameter);

impl Strategy for FailsAtStart {
    fn on_phase(&mut self, _: StrategyPhase, _: &mut Context<'_>) -> Result<(), Failure> {
        Err(Failure::new(self.0.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::testing::TestMarket;

    struct Idle;

    impl Strategy for Idle {}

    impl FromParameters for Idle {
        const KIND: &'static str = "idle";
        const PARAMETERS: &'static [Parameter] =
            &[Parameter::required("fast"), Parameter::with_default("slow", "20")];

        fn from_parameters(_: &[SecurityId], parameters: &Parameters) -> Result<Idle, BadParameter> {
            let (fast, slow) = (parameters.count("fast", 1..=100)?, parameters.count("slow", 1..=100)?);
            if fast < slow { Ok(Idle) } else { Err(BadParameter::new("fast", "it must be below slow")) }
        }
    }

    fn parameters(texts: &[(&str, &str)]) -> Parameters {
        Parameters::new(texts.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect())
    }

    #[test]
    fn declared_parameters_have_defaults_and_no_other_name_is_accepted() {
        let registry = Registry::new().with::<Idle>();
        let kind = registry.find("idle").unwrap();
        assert_eq!((registry.kinds().len(), kind.name()), (1, "idle"));
        assert_eq!(kind.parameters(), Some(Idle::PARAMETERS));
        let fault = |texts: &[(&str, &str)]| {
            kind.make(&[], &parameters(texts)).err().map(|bad| (bad.name, bad.problem))
        };
        assert_eq!(fault(&[("fast", "3")]), None);
        assert_eq!(fault(&[("fast", "30"), ("slow", "31")]), None);
        assert_eq!(fault(&[("fast", "30")]), Some(("fast".into(), "it must be below slow".into())));
        assert_eq!(fault(&[]), Some(("fast".into(), "it is missing".into())));
        let unknown = "there is no such parameter; there are fast, slow";
        assert_eq!(fault(&[("fast", "3"), ("slwo", "4")]), Some(("slwo".into(), unknown.into())));
    }

    #[test]
    fn a_name_is_added_once_and_has_a_form() {
        let taken = Registry::with_examples().add("market-maker", |_, _| Ok(Idle));
        assert_eq!(taken.check(), Err(RegistryError::Duplicate("market-maker".into())));
        assert_eq!(taken.names().count(), 2);
        assert!(taken.check().unwrap_err().to_string().contains("\"market-maker\""));
        for name in ["", "two words", "a\nb", "käse", &"x".repeat(KIND_NAME_BYTES_MAX + 1)] {
            let registry = Registry::new().add(name, |_, _| Ok(Idle));
            assert_eq!(registry.check(), Err(RegistryError::Malformed(name.into())));
            assert!(registry.kinds().is_empty());
        }
        let longest = "x".repeat(KIND_NAME_BYTES_MAX);
        assert_eq!(Registry::new().add(longest, |_, _| Ok(Idle)).check(), Ok(()));
        assert_eq!(Registry::new().add("idle", |_, _| Ok(Idle)).kinds()[0].parameters(), None);
    }

    #[test]
    fn a_maker_is_called_for_the_check_and_at_each_start() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = calls.clone();
        let registry = Registry::new().add("idle", move |_, _| {
            // The third call, the second start, is refused.
            match counted.fetch_add(1, Ordering::Relaxed) {
                0 | 1 => Ok(Idle),
                _ => Err(BadParameter::new("qty", "it is gone")),
            }
        });
        let make = registry.find("idle").unwrap().make(&[], &Parameters::default()).ok().unwrap();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        let mut market = TestMarket::from_factory(make);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!((market.phase(), market.failure()), (StrategyPhase::Running, None));
        market.set_phase(StrategyPhase::Stop);
        market.set_phase(StrategyPhase::Running);
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        assert_eq!((market.phase(), market.failure()), (StrategyPhase::Stop, Some("qty: it is gone")));
    }
}
