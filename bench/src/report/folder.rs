//! A folder of results: `result.json` with all results, and the files of each recording beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::recording::Recording;
use super::waterfall::waterfall;
use super::{counts, curves, hgrm};
use crate::conditions::Conditions;
use crate::goals::GoalVerdict;
use crate::noise::Noise;

/// Folder for the results of one run.
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    /// Conditions of the run, printed on each drawing, so that none is seen without them.
    notes: Vec<String>,
    recordings: Vec<Value>,
    /// Further members of `result.json`, by key.
    other_members: Map<String, Value>,
}

impl ResultFolder {
    pub fn make(path: &Path, conditions: &Conditions) -> io::Result<ResultFolder> {
        fs::create_dir_all(path)?;
        let notes = conditions.to_string().lines().map(str::to_owned).collect();
        Ok(ResultFolder { path: path.to_owned(), notes, recordings: Vec::new(), other_members: Map::new() })
    }

    /// Writes four files: the histogram, its counts, by percentile, over time; and a fifth if the
    /// server reported its stages.
    pub fn add(&mut self, title: &str, recording: &Recording) -> io::Result<()> {
        let name = &recording.name;
        self.write(&format!("{name}.hgrm"), &hgrm::text(&recording.all))?;
        self.write(&format!("{name}.csv"), &counts::text(recording))?;
        self.write(&format!("{name}.svg"), &curves::by_percentile(title, &self.notes, &[recording]))?;
        self.write(&format!("{name}-time.svg"), &curves::over_time(title, &self.notes, recording))?;
        if !recording.stages.is_empty() {
            let title = format!("{title}: the server's own stages in its last second");
            self.write(&format!("{name}-stages.svg"), &waterfall(&title, &self.notes, &recording.stages))?;
        }
        self.recordings.push(json!(recording.summary()));
        Ok(())
    }

    /// Writes a drawing of several recordings.
    pub fn draw(&self, name: &str, svg: &str) -> io::Result<()> {
        self.write(&format!("{name}.svg"), svg)
    }

    /// Adds a member to `result.json`.
    pub fn add_member(&mut self, key: &str, value: Value) {
        self.other_members.insert(key.to_string(), value);
    }

    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Writes `result.json`.
    pub fn close(self, conditions: &Conditions, noise: &Noise, goals: &[GoalVerdict]) -> io::Result<()> {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let mut result = json!({
            "command": command.join(" "),
            "conditions": conditions,
            "noise": {
                "part": noise.part,
                "gapsPerS": noise.gaps.len() as f64 * 1e9 / noise.for_ns.max(1) as f64,
                "p99Ns": noise.gaps.value_at_quantile(0.99),
                "maxNs": noise.gaps.max(),
            },
            "recordings": self.recordings,
            "goals": goals,
        });
        if let Some(members) = result.as_object_mut() {
            members.extend(self.other_members.clone());
        }
        self.write("result.json", &format!("{result:#}\n"))
    }

    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        fs::write(self.path.join(name), text)
    }
}
