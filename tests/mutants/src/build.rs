//! One build of the tests with all mutants in it. What the compiler refuses is left out.

use crate::list::Mutant;
use crate::rewrite::{SWITCH, Written, rewrite};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The part of .cargo/mutants.toml that says what is built.
#[derive(Deserialize)]
pub struct Settings {
    profile: String,
    test_package: Vec<String>,
    no_default_features: bool,
    additional_cargo_test_args: Vec<String>,
}

/// A test binary and the folder in which it runs.
#[derive(Clone)]
pub struct Binary {
    pub path: PathBuf,
    pub folder: PathBuf,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    message: Option<Diagnostic>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    rendered: Option<String>,
    spans: Vec<DiagnosticSpan>,
    children: Vec<Diagnostic>,
}

#[derive(Deserialize)]
struct DiagnosticSpan {
    file_name: String,
    byte_start: usize,
    is_primary: bool,
}

/// What a build left out of a list of mutants.
#[derive(Deserialize, Serialize)]
struct LeftOut {
    names: Vec<String>,
    refused: BTreeSet<u32>,
    keep_const: BTreeSet<String>,
}

pub struct Tree<'a> {
    root: &'a Path,
    folder: PathBuf,
    settings: Settings,
    mutants: &'a [(u32, Mutant)],
    /// Mutants that are not in the build.
    pub refused: BTreeSet<u32>,
    keep_const: BTreeSet<String>,
    written: BTreeMap<String, Written>,
}

fn put(path: &Path, content: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|found| found == content) {
        return Ok(());
    }
    let folder = path.parent().ok_or("a file without a folder")?;
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    fs::write(path, content).map_err(|error| format!("{}: {error}", path.display()))
}

impl<'a> Tree<'a> {
    /// Copies what git knows of `root` to `folder`.
    pub fn new(
        root: &'a Path,
        folder: PathBuf,
        mutants: &'a [(u32, Mutant)],
        is_unit: bool,
    ) -> Result<Self, String> {
        let path = root.join(".cargo/mutants.toml");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let settings = toml::from_str(&text);
        let mut settings: Settings = settings.map_err(|error| format!("{}: {error}", path.display()))?;
        if is_unit {
            let packages: BTreeSet<&String> = mutants.iter().map(|(_, mutant)| &mutant.package).collect();
            settings.test_package = packages.into_iter().cloned().collect();
            settings.additional_cargo_test_args = vec!["--lib".into()];
        }
        Ok(Self {
            root,
            folder,
            settings,
            mutants,
            refused: BTreeSet::new(),
            keep_const: BTreeSet::new(),
            written: BTreeMap::new(),
        })
    }

    /// Builds until the compiler accepts all that is left.
    pub fn build(&mut self) -> Result<Vec<Binary>, String> {
        let state = self.folder.join("left-out.json");
        self.begin_with(&state);
        loop {
            self.write()?;
            let (binaries, errors) = self.compile()?;
            if errors.is_empty() {
                let names = self.mutants.iter().map(|(_, mutant)| mutant.name.clone()).collect();
                let left_out =
                    LeftOut { names, refused: self.refused.clone(), keep_const: self.keep_const.clone() };
                let text = serde_json::to_vec(&left_out).map_err(|error| error.to_string())?;
                put(&state, &text)?;
                return Ok(binaries);
            }
            let before = (self.refused.len(), self.keep_const.len());
            for error in &errors {
                self.refuse(error);
            }
            let after = (self.refused.len(), self.keep_const.len());
            eprintln!("{} errors: {} mutants left out", errors.len(), after.0);
            if before == after {
                let texts = errors.iter().filter_map(|error| error.rendered.clone());
                return Err(texts.collect::<Vec<_>>().join("\n"));
            }
        }
    }

    /// The same list as in the last build has the same mutants that the compiler refuses.
    fn begin_with(&mut self, state: &Path) {
        let Ok(text) = fs::read(state) else { return };
        let Ok(last) = serde_json::from_slice::<LeftOut>(&text) else { return };
        if last.names.iter().eq(self.mutants.iter().map(|(_, mutant)| &mutant.name)) {
            (self.refused, self.keep_const) = (last.refused, last.keep_const);
        }
    }

    fn write(&mut self) -> Result<(), String> {
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(self.root)
            .output()
            .map_err(|error| format!("cannot start git: {error}"))?;
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        for file in listed.lines() {
            let Ok(mut content) = fs::read(self.root.join(file)) else { continue };
            let in_file = |(id, mutant): &&(u32, Mutant)| mutant.file == file && !self.refused.contains(id);
            let mutants: Vec<(u32, &Mutant)> =
                self.mutants.iter().filter(in_file).map(|(id, mutant)| (*id, mutant)).collect();
            self.written.remove(file);
            if !mutants.is_empty() {
                let source = String::from_utf8_lossy(&content);
                let written = rewrite(&source, &mutants, &self.keep_const)
                    .map_err(|error| format!("{file}: {error}"))?;
                self.refused.extend(&written.impossible);
                content = written.text.clone().into_bytes();
                self.written.insert(file.to_owned(), written);
            }
            let has_switch = ["engine/src/lib.rs", "engine/strategy/src/lib.rs", "protocols/src/lib.rs"];
            if has_switch.contains(&file) {
                content.extend_from_slice(SWITCH.as_bytes());
            }
            put(&self.folder.join("tree").join(file), &content)?;
        }
        Ok(())
    }

    fn compile(&self) -> Result<(Vec<Binary>, Vec<Diagnostic>), String> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--no-run", "--message-format=json", "--profile"]);
        cargo.arg(&self.settings.profile);
        for package in &self.settings.test_package {
            cargo.args(["--package", package]);
        }
        if self.settings.no_default_features {
            cargo.arg("--no-default-features");
        }
        cargo.args(&self.settings.additional_cargo_test_args);
        cargo.current_dir(self.folder.join("tree")).env("CARGO_TARGET_DIR", self.folder.join("built"));
        cargo.env("RUSTFLAGS", "--cap-lints=allow").stderr(Stdio::inherit());
        cargo.arg("--quiet");
        let output = cargo.output().map_err(|error| format!("cannot start cargo: {error}"))?;
        let (mut binaries, mut errors) = (Vec::new(), Vec::new());
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let Ok(message) = serde_json::from_slice::<Message>(line) else { continue };
            if message.reason == "compiler-message" {
                errors.extend(message.message.filter(|message| message.level == "error"));
            } else if let (Some(path), Some(manifest)) = (message.executable, message.manifest_path) {
                let folder = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
                binaries.push(Binary { path, folder });
            }
        }
        errors.retain(|error| !error.spans.is_empty());
        match output.status.success() || !errors.is_empty() {
            true => Ok((binaries, errors)),
            false => Err("cargo test --no-run failed without an error in a file".into()),
        }
    }

    /// Leaves out the mutant that an error is about.
    fn refuse(&mut self, error: &Diagnostic) {
        let non_const = error.message.strip_prefix("cannot call non-const ");
        if let Some(name) = non_const.and_then(|rest| rest.split('`').nth(1)) {
            // `Type::<T>::function::<N>`
            let mut parts = name.rsplit("::").filter(|part| !part.contains(['<', '>']));
            let name = parts.next().unwrap_or(name);
            if name != "__m" && self.keep_const.insert(name.to_owned()) {
                return;
            }
        }
        let primary = error.spans.iter().filter(|span| span.is_primary);
        let others = error.spans.iter().filter(|span| !span.is_primary);
        let children = error.children.iter().flat_map(|child| &child.spans);
        for span in primary.chain(others).chain(children) {
            let Some(written) = self.written.get(&span.file_name) else { continue };
            let is_about = |mark: &&crate::rewrite::Mark| mark.range.contains(&span.byte_start);
            let smallest = written.marks.iter().filter(is_about).min_by_key(|mark| mark.range.len());
            if let Some(mark) = smallest {
                self.refused.extend(&mark.mutants);
                return;
            }
        }
    }
}
