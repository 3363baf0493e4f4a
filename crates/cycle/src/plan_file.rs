//! The flight recorder: a Markdown file in the workspace that describes a running cycle. The cycle removes the file at its end, so a
//! leftover file tells people and `health` of a crash.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    file::{append_private, create_or_truncate_private, remove_if_there},
    redact::Redactor,
};
use reveille_tools::Plan;

/// The beginning of a plan file's name.
const PREFIX: &str = "plan-";

/// The plan file of a running cycle.
#[derive(Debug)]
pub struct PlanFile {
    path: PathBuf,
}

impl PlanFile {
    /// Starts the record of a cycle.
    pub fn create(workspace: &Path, cycle_id: &str, reasons: &[String], now: DateTime<Utc>) -> std::io::Result<Self> {
        let recorder = Self { path: build_path(workspace, cycle_id) };
        let mut text = format!("# Wake {cycle_id}\n\nBegun {}.\n\n## Reasons\n\n", now.format("%Y-%m-%d %H:%M:%S UTC"));
        for reason in reasons {
            text.push_str(&format!("- {reason}\n"));
        }
        create_or_truncate_private(&recorder.path)?.write_all(text.as_bytes())?;
        Ok(recorder)
    }

    /// Returns the record of a resumed cycle.
    pub fn reopen(workspace: &Path, cycle_id: &str) -> Self {
        Self { path: build_path(workspace, cycle_id) }
    }

    /// Appends the model's plan before the model acts.
    pub fn append_plan(&self, plan: &Plan, redactor: &Redactor) -> std::io::Result<()> {
        let complexity = plan.complexity.name();
        let mut text = format!("\n## Plan ({complexity})\n\n{}\n\n", plan.understood.trim());
        for step in &plan.steps {
            text.push_str(&format!("- {} (`{}`)\n", step.what, step.tool));
        }
        for deferred in &plan.deferred {
            text.push_str(&format!("- later: {deferred}\n"));
        }
        append_private(&self.path, redactor.redact(&text).as_bytes())
    }

    /// Appends a progress line.
    pub fn append_progress(&self, now: DateTime<Utc>, what: &str) -> std::io::Result<()> {
        append_private(&self.path, format!("{} {what}\n", now.format("%H:%M:%S")).as_bytes())
    }

    /// Removes the file at the end of the cycle.
    pub fn remove(&self) -> std::io::Result<()> {
        remove_if_there(&self.path).map(drop)
    }
}

fn build_path(workspace: &Path, cycle_id: &str) -> PathBuf {
    workspace.join(format!("{PREFIX}{cycle_id}.md"))
}

/// Lists the plan files in a workspace as (path, cycle id), sorted.
pub fn left_over(workspace: &Path) -> std::io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(workspace)? {
        let path = entry?.path();
        let id = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(".md"))
            .map(str::to_owned);
        found.extend(id.map(|id| (path, id)));
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use reveille_base::clock::parse_time;
    use reveille_tools::PlanStep;

    #[test]
    fn the_record_of_a_cycle_is_written_as_it_goes_and_removed_at_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let now = parse_time("2026-11-21T14:00:00Z").unwrap();
        let file = PlanFile::create(dir.path(), "20261121T140000Z-812", &["1 message".into()], now).unwrap();
        let plan = Plan {
            understood: " Keep a fact. ".to_owned(),
            steps: vec![PlanStep { what: "keep it".to_owned(), tool: "remember".to_owned() }],
            deferred: vec!["the rest".to_owned()],
            complexity: Default::default(),
        };
        file.append_plan(&plan, &Redactor::new([&reveille_base::redact::Secret::new("the rest")])).unwrap();
        // After a crash the next wake continues in the same file.
        PlanFile::reopen(dir.path(), "20261121T140000Z-812").append_progress(now, "remember").unwrap();
        let path = dir.path().join("plan-20261121T140000Z-812.md");
        insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r"
        # Wake 20261121T140000Z-812

        Begun 2026-11-21 14:00:00 UTC.

        ## Reasons

        - 1 message

        ## Plan (medium)

        Keep a fact.

        - keep it (`remember`)
        - later: ***
        14:00:00 remember
        ");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(left_over(dir.path()).unwrap(), [(path.clone(), "20261121T140000Z-812".to_owned())]);
        file.remove().unwrap();
        file.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn only_plan_files_are_left_over_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["plan-b.md", "plan-a.md", "plan-a.txt", "my-plan-c.md", "plans.md"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let ids: Vec<String> = left_over(dir.path()).unwrap().into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids, ["a", "b"]);
        assert!(left_over(&dir.path().join("nowhere")).is_err());
    }
}
