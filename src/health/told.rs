//! Remembers the findings that `health check --quiet` has reported. cron mails all output, and nobody reads the same
//! trouble every quarter of an hour. A finding is reported when it appears, and again if it has been gone or has become
//! worse.

use std::{collections::BTreeSet, io, path::Path};

use reveille_base::file::replace_unsynced;

use super::{CheckReport, HealthReport, Status};

/// Maximum bytes of the file. A larger one is damaged and is ignored.
const MAX_BYTES: u64 = 64 * 1024;

/// The findings and notes that weren't reported before.
pub struct HealthNews {
    /// The new findings.
    pub report: HealthReport,
    /// The new notes.
    pub notes: Vec<String>,
    /// The set to remember from now on.
    pub told: BTreeSet<String>,
}

impl HealthReport {
    /// Returns the findings and notes that aren't among `told`.
    pub fn find_news(&self, notes: &[String], told: &BTreeSet<String>) -> HealthNews {
        let wrong: Vec<&CheckReport> = self.checks.iter().filter(|check| check.status != Status::Ok).collect();
        let to_remember =
            wrong.iter().map(|check| format_key(check)).chain(notes.iter().map(|note| note_key(note))).collect();
        let new = wrong.into_iter().filter(|check| !told.contains(&format_key(check))).cloned().collect();
        let notes = notes.iter().filter(|note| !told.contains(&note_key(note))).cloned().collect();
        HealthNews { report: Self::new(new, Vec::new()), notes, told: to_remember }
    }
}

fn format_key(check: &CheckReport) -> String {
    let how_bad = if check.status == Status::Critical { "critical" } else { "warn" };
    // A changed number alone is no news, such as "3 messages wait, 5 minutes" after 2 and 4.
    let what: String = check.detail.replace('\n', " ").split(|c: char| c.is_ascii_digit()).collect();
    format!("{} {how_bad} {what}", check.id)
}

fn note_key(note: &str) -> String {
    format!("note {}", note.replace('\n', " "))
}

/// Reads the remembered findings. A missing or foreign file counts as empty.
pub fn read_findings(path: &Path) -> BTreeSet<String> {
    let is_small = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= MAX_BYTES);
    let text = if is_small { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    text.lines().map(str::to_owned).collect()
}

/// Writes the findings in one step.
///
/// # Errors
/// If the file can't be written; then the same findings are reported again.
pub fn write_findings(path: &Path, told: &BTreeSet<String>) -> io::Result<()> {
    let text: String = told.iter().map(|line| format!("{line}\n")).collect();
    replace_unsynced(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(checks: &[(&'static str, Status)]) -> HealthReport {
        let check = |(id, status): &(&'static str, Status)| CheckReport {
            id,
            status: *status,
            detail: format!("what {id} is"),
            fix: None,
            repair: None,
            why: None,
            remedies: Vec::new(),
        };
        HealthReport::new(checks.iter().map(check).collect(), vec!["lock"])
    }

    #[test]
    fn a_problem_is_reported_when_it_appears_and_when_it_gets_worse() {
        let mut told = BTreeSet::new();
        let mut tell = |checks: &[(&'static str, Status)], notes: &[&str]| {
            let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
            let HealthNews { report, notes, told: now_told } = report(checks).find_news(&notes, &told);
            told = now_told;
            let ids: Vec<_> = report.checks.iter().map(|check| check.id).collect();
            (ids.join(" "), notes.join(" "), report.repaired.len())
        };
        let (ok, warn, bad) = (Status::Ok, Status::Warn, Status::Critical);
        let said = |ids: &str, notes: &str| (ids.to_owned(), notes.to_owned(), 0);
        assert_eq!(tell(&[("disk", ok), ("due", warn), ("lock", warn)], &["a note"]), said("due lock", "a note"));
        assert_eq!(tell(&[("disk", ok), ("due", warn), ("lock", warn)], &["a note"]), said("", ""));
        assert_eq!(tell(&[("disk", bad), ("due", bad), ("lock", ok)], &["a note"]), said("disk due", ""));
        assert_eq!(tell(&[("disk", bad), ("due", bad), ("lock", warn)], &[]), said("lock", ""));
        assert_eq!(tell(&[], &["a note"]), said("", "a note"));
    }

    #[test]
    fn the_record_of_reports_is_read_back_and_a_damaged_one_counts_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".health-told");
        assert_eq!(read_findings(&path), BTreeSet::new());
        let told = BTreeSet::from(["disk warn".to_owned(), "note a b".to_owned()]);
        write_findings(&path, &told).unwrap();
        assert_eq!(read_findings(&path), told);
        std::fs::write(&path, vec![b'x'; 70_000]).unwrap();
        assert_eq!(read_findings(&path), BTreeSet::new());
    }
}
