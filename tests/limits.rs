//! Checks `tests/LIMITS.md` against the code: each test, constant and key that it names exists, and
//! no `…_MAX` of the code is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Endings of constants that bound a time or a ratio, not memory. Constants of other types than
/// `NUMBERS` are not bounds either.
const NO_MEMORY: [&str; 5] = ["_NS_MAX", "_US_MAX", "_MS_MAX", "_S_MAX", "_BP_MAX"];
const NUMBERS: [&str; 6] = ["usize", "u8", "u16", "u32", "u64", "i64"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns everything between backticks, with its line.
fn quoted(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.lines().flat_map(|line| line.split('`').skip(1).step_by(2).map(move |cells| (line, cells)))
}

#[test]
fn every_test_of_the_page_exists() {
    let page = text(&root().join("tests/LIMITS.md"));
    let crates = fs::read_dir(root().join("io")).expect("the crates of io");
    let mut folders = vec![root(), root().join("tests")];
    folders.extend(crates.map(|entry| entry.expect("an entry of io").path().join("tests")));
    let mut count = 0;
    for (_, cells) in quoted(&page) {
        let Some((file, tests)) = cells.split_once(".rs: ") else { continue };
        let places: Vec<PathBuf> = folders
            .iter()
            .map(|folder| folder.join(format!("{file}.rs")))
            .filter(|place| place.is_file())
            .collect();
        let [place] = &places[..] else { panic!("{file}.rs should be in one place, not {places:?}") };
        for test in tests.split(", ") {
            assert!(text(place).contains(&format!("fn {test}()")), "{file}.rs has no test {test}");
            count += 1;
        }
    }
    assert!(count > 50, "the page is read");
    let rows = page.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| test |"));
    let untested: Vec<&str> = rows.filter(|row| !row.ends_with("` |") || !row.contains(".rs: ")).collect();
    assert!(untested.is_empty(), "no test goes to these: {untested:?}");
}

#[test]
fn every_key_of_the_page_exists() {
    let (page, settings) = (text(&root().join("tests/LIMITS.md")), text(&root().join("config/default.toml")));
    for (_, cells) in quoted(&page) {
        let Some((section, key)) =
            cells.split_once('.').filter(|_| !cells.contains([':', '/', '*', ' ', '…']))
        else {
            continue;
        };
        let part = settings.split_once(&format!("\n[{section}]\n")).map(|(_, part)| part);
        let part = part.unwrap_or_else(|| panic!("there is no section {section}"));
        let part = part.split("\n[").next().unwrap_or_default();
        assert!(part.contains(&format!("\n{key} = ")), "there is no key {cells}");
    }
}

/// Collects the constants with such names, by file. Test modules are skipped.
fn constants(folder: &Path, found: &mut BTreeSet<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            constants(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            let source = text(&path);
            let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let name = path.strip_prefix(root()).expect("it is in the repository").display().to_string();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                let Some((_, rest)) = line.split_once("const ") else { continue };
                let Some((constant, kind)) = rest.split_once(':') else { continue };
                let kind = kind.split('=').next().unwrap_or_default().trim();
                let is_bound = constant.ends_with("_MAX") && NUMBERS.contains(&kind);
                if is_bound && !NO_MEMORY.iter().any(|end| constant.ends_with(end)) {
                    found.insert((name.clone(), constant.to_string()));
                }
            }
        }
    }
}

/// Reads lines such as `A_MAX`, `B_MAX` a/b.rs; `C_MAX` c.rs: each constant with the next file
/// behind it.
fn named(page: &str) -> BTreeSet<(String, String)> {
    let mut named = BTreeSet::new();
    for line in page.lines() {
        let mut waiting = Vec::new();
        let list = line.strip_prefix("- ").and_then(|list| list.split_once(": "));
        for cells in line.split(['`', ' ', ',', ';', '|']).filter(|cells| !cells.is_empty()) {
            if cells.ends_with("_MAX") {
                match list {
                    Some((file, _)) => _ = named.insert((file.to_string(), cells.to_string())),
                    None => waiting.push(cells.to_string()),
                }
            } else if cells.ends_with(".rs") {
                named.extend(waiting.drain(..).map(|constant| (cells.to_string(), constant)));
            }
        }
    }
    named
}

#[test]
fn every_bound_of_the_code_is_on_the_page_and_no_other() {
    let mut found = BTreeSet::new();
    let crates = fs::read_dir(root().join("io")).expect("the crates of io");
    let crates = crates.map(|entry| entry.expect("an entry of io").path().join("src"));
    let pure = ["engine/src", "engine/strategy/src", "protocols/src"].map(|folder| root().join(folder));
    for folder in crates.filter(|folder| folder.is_dir()).chain(pure) {
        constants(&folder, &mut found);
    }
    let named = named(&text(&root().join("tests/LIMITS.md")));
    let missing: Vec<_> = found.difference(&named).collect();
    assert!(
        missing.is_empty(),
        "enter them in tests/LIMITS.md, with a test or as what else they bound: {missing:?}"
    );
    let gone: Vec<_> = named.difference(&found).collect();
    assert!(gone.is_empty(), "tests/LIMITS.md names what is not there: {gone:?}");
}
