//! Runs with a real model, stored with the workspace's other files and compared with the last run of the same model and cases.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    file,
};

use super::CaseScore;

/// The maximum number of stored runs.
const MAX_RUNS: usize = 50;

/// A run of cases with one model.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct KeptRun {
    /// Its start time in RFC 3339.
    pub at: String,
    /// The program's version.
    pub version: String,
    /// The model.
    pub model: String,
    /// The folder of the cases.
    pub cases: String,
    /// The scores of the cases run.
    pub scores: Vec<CaseScore>,
}

/// The differences from the previous run.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// The time of that run.
    pub before: String,
    /// Cases that failed then and pass now.
    pub better: Vec<String>,
    /// Cases that passed then and fail now.
    pub worse: Vec<String>,
    /// The cost of the shared cases then, in US dollars.
    pub cost_before_usd: f64,
    /// Their cost now.
    pub cost_now_usd: f64,
}

impl KeptRun {
    /// Compares this run with an earlier one. A case that only one of them has is ignored.
    pub fn compare(&self, before: &Self) -> Comparison {
        let mut comparison = Comparison { before: before.at.clone(), ..Comparison::default() };
        for now in &self.scores {
            let Some(then) = before.scores.iter().find(|then| then.case == now.case) else { continue };
            comparison.cost_before_usd += then.cost_usd;
            comparison.cost_now_usd += now.cost_usd;
            match (then.passed, now.passed) {
                (false, true) => comparison.better.push(now.case.clone()),
                (true, false) => comparison.worse.push(now.case.clone()),
                _ => {}
            }
        }
        comparison
    }

    /// Stores the run in a folder, readable by its owner alone, and removes the oldest.
    ///
    /// # Errors
    /// The file system's error.
    pub fn save(&self, dir: &Path, at: DateTime<Utc>) -> io::Result<PathBuf> {
        file::create_private_dirs(dir)?;
        let path = dir.join(format!("{}.json", at.format("%Y%m%dT%H%M%S%3fZ")));
        file::write_private(&path, serde_json::to_string_pretty(self)?.as_bytes())?;
        let kept = list_files(dir)?;
        for old in kept.iter().take(kept.len().saturating_sub(MAX_RUNS)) {
            fs::remove_file(old)?;
        }
        Ok(path)
    }

    /// Returns the newest stored run of a model with the cases of a folder; unreadable runs are skipped.
    pub fn load_last(dir: &Path, model: &str, cases: &str) -> Option<Self> {
        let read = |path: &PathBuf| serde_json::from_str::<Self>(&fs::read_to_string(path).ok()?).ok();
        list_files(dir).ok()?.iter().rev().filter_map(read).find(|run| run.model == model && run.cases == cases)
    }

    /// Creates a run at its start.
    pub fn begin(at: DateTime<Utc>, version: &str, model: &str, cases: &str) -> Self {
        let (at, version) = (format_rfc3339(at), version.to_owned());
        Self { at, version, model: model.to_owned(), cases: cases.to_owned(), scores: Vec::new() }
    }
}

impl Comparison {
    /// Describes the comparison for people: a line on the cost, and one each for worse and better cases.
    pub fn describe(&self) -> String {
        let day = parse_time(&self.before).map_or(self.before.clone(), |at| at.format("%Y-%m-%d %H:%M").to_string());
        let mut text =
            format!("Since the run of {day} UTC: ${:.2} then, ${:.2} now.\n", self.cost_before_usd, self.cost_now_usd);
        for (what, cases) in [("Worse", &self.worse), ("Better", &self.better)] {
            let named = if cases.is_empty() { "none".to_owned() } else { cases.join(", ") };
            text.push_str(&format!("{what}: {named}\n"));
        }
        text
    }
}

/// Lists the stored files, oldest first: their names are their times.
fn list_files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = entries.collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(case: &str, passed: bool, cost_usd: f64) -> CaseScore {
        let about = String::new();
        let (why, model) = (Vec::new(), "m".to_owned());
        let (rounds, tokens) = (1, reveille_base::types::Usage::default());
        CaseScore { case: case.to_owned(), about, passed, why, model, rounds, tokens, cost_usd }
    }

    #[test]
    fn a_run_is_compared_with_the_last_one_of_its_model_and_cases() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("evals");
        let at = |minute: u32| parse_time(&format!("2026-11-21T14:{minute:02}:00Z")).unwrap();
        assert_eq!(KeptRun::load_last(&dir, "m", "live"), None);
        let mut first = KeptRun::begin(at(0), "1.0", "m", "live");
        first.scores = vec![score("a", true, 0.01), score("b", false, 0.02), score("gone", true, 0.5)];
        first.save(&dir, at(0)).unwrap();
        KeptRun::begin(at(1), "1.0", "other", "live").save(&dir, at(1)).unwrap();
        KeptRun::begin(at(2), "1.0", "m", "others").save(&dir, at(2)).unwrap();
        fs::write(dir.join("20270101T000000000Z.json"), "no run").unwrap();
        let last = KeptRun::load_last(&dir, "m", "live").unwrap();
        assert_eq!(last, first);
        let mut now = KeptRun::begin(at(3), "1.0", "m", "live");
        now.scores = vec![score("a", false, 0.01), score("b", true, 0.01), score("new", false, 0.5)];
        insta::assert_snapshot!(now.compare(&last).describe(), @r"
        Since the run of 2026-11-21 14:00 UTC: $0.03 then, $0.02 now.
        Worse: a
        Better: b
        ");
        for minute in 4..60 {
            now.save(&dir, at(minute)).unwrap();
        }
        assert_eq!(list_files(&dir).unwrap().len(), MAX_RUNS);
    }
}
