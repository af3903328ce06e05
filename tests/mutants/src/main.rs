//! `make mutants`: changes one thing at a time in the lines of a change, and tells which changes no
//! test notices. cargo-mutants lists the changes; all of them are in one build, so that the tests
//! are compiled once and not for each.

mod build;
mod list;
mod rewrite;
mod trial;

use build::Tree;
use list::Mutant;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use trial::{Outcome, Trial, side_by_side};

const USAGE: &str =
    "pitlane-mutants FOLDER CHANGE [--only PART]... [--again FILE]... [--longest SECONDS] [--unit]
FOLDER: for the build and the results. CHANGE: a diff.
--only: only mutants whose name contains this, such as a path.
--again: only mutants that this file names, wherever their lines are now.
--longest: without tests that take longer.
--unit: with the unit tests of the mutated crates alone.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<bool, String> {
    let (Some(folder), Some(change)) = (arguments.first(), arguments.get(1)) else {
        return Err(USAGE.into());
    };
    let mut only = Vec::new();
    let mut again = Vec::new();
    let mut is_unit = false;
    let mut longest = f64::INFINITY;
    let mut rest = arguments[2..].iter();
    while let Some(option) = rest.next() {
        match (option.as_str(), rest.as_slice().first()) {
            ("--unit", _) => is_unit = true,
            ("--only", Some(part)) => {
                only.push(part.clone());
                rest.next();
            }
            ("--longest", Some(seconds)) => {
                longest = seconds.parse().map_err(|_| USAGE)?;
                rest.next();
            }
            ("--again", Some(file)) => {
                let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
                again.extend(text.lines().map(list::without_place));
                rest.next();
            }
            _ => return Err(USAGE.into()),
        }
    }
    let root = std::env::current_dir().map_err(|error| error.to_string())?;
    fs::create_dir_all(folder).map_err(|error| format!("{folder}: {error}"))?;
    let folder = PathBuf::from(folder).canonicalize().map_err(|error| error.to_string())?;
    let mut mutants = list::mutants_of(&root, Path::new(change))?;
    mutants.retain(|mutant| {
        (only.is_empty() || only.iter().any(|part| mutant.name.contains(part)))
            && (again.is_empty() || again.contains(&list::without_place(&mutant.name)))
    });
    // Zero means: no mutant.
    let mutants: Vec<(u32, Mutant)> = (1..).zip(mutants).collect();
    eprintln!("{} mutants", mutants.len());
    let mut tree = Tree::new(&root, folder.clone(), &mutants, is_unit)?;
    let binaries = tree.build()?;
    eprintln!("{} mutants are in the build", mutants.len() - tree.refused.len());
    let scratch = folder.join("scratch");
    fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let scratch = scratch.canonicalize().map_err(|error| error.to_string())?;
    let trial = Trial::new(&binaries, &scratch, longest)?;
    eprintln!("{} tests", trial.tests());
    let tried: Vec<&(u32, Mutant)> = mutants.iter().filter(|(id, _)| !tree.refused.contains(id)).collect();
    let outcomes = Mutex::new(BTreeMap::new());
    side_by_side(tried.len(), |at| {
        let outcome = trial.outcome(tried[at].0);
        let Ok(mut outcomes) = outcomes.lock() else { return };
        outcomes.insert(tried[at].0, outcome);
        if matches!(outcome, Outcome::Missed | Outcome::Unreached) {
            println!("{}", tried[at].1.name);
        }
        if outcomes.len() % 200 == 0 {
            eprintln!("{} of {} tried", outcomes.len(), tried.len());
        }
    });
    let outcomes = outcomes.into_inner().map_err(|error| error.to_string())?;
    let mut is_clean = true;
    let files = [
        ("caught.txt", vec![Outcome::Caught, Outcome::Timeout]),
        ("missed.txt", vec![Outcome::Missed, Outcome::Unreached]),
    ];
    for (file, wanted) in files {
        let of_file = mutants.iter().filter_map(|(id, mutant)| {
            let outcome = outcomes.get(id).filter(|outcome| wanted.contains(outcome))?;
            Some(match outcome {
                Outcome::Timeout => format!("{} (time limit)\n", mutant.name),
                Outcome::Unreached => format!("{} (no test reaches it)\n", mutant.name),
                Outcome::Caught | Outcome::Missed => format!("{}\n", mutant.name),
            })
        });
        let names: Vec<String> = of_file.collect();
        eprintln!("{file}: {}", names.len());
        is_clean &= file == "caught.txt" || names.is_empty();
        let path = folder.join(file);
        fs::write(&path, names.concat()).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let refused = mutants.iter().filter(|(id, _)| tree.refused.contains(id));
    let refused: Vec<String> = refused.map(|(_, mutant)| format!("{}\n", mutant.name)).collect();
    let path = folder.join("refused.txt");
    fs::write(&path, refused.concat()).map_err(|error| format!("{}: {error}", path.display()))?;
    eprintln!("refused.txt: {}", refused.len());
    Ok(is_clean)
}
