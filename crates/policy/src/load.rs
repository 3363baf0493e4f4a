//! The only reader of `policy.toml`. The file is trusted only if nobody else can have written it.

use std::path::Path;

use chrono::{DateTime, Utc};

use reveille_config::read_private;

use super::{Rules, RulesProblem, amend};

/// The content of `policy.toml`.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The rules in force.
    pub rules: Rules,
    /// The reasons the file isn't used. Every call that isn't free then needs approval.
    pub problems: Vec<RulesProblem>,
    /// `true` if there is such a file.
    pub exists: bool,
}

/// Reads the policy file; without one, no rules are in force. `home` replaces `~/`.
pub fn load(path: &Path, home: Option<&Path>) -> Loaded {
    if matches!(std::fs::symlink_metadata(path), Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
        return Loaded { rules: Rules::default(), problems: Vec::new(), exists: false };
    }
    let read = read_private(path).map_err(|what| vec![RulesProblem { line: 0, what }]).and_then(|file| {
        Rules::parse(&file.text).map(|rules| rules.with_rule_times(|line| find_rule_time(path, &file.text, line)))
    });
    match read {
        Ok(rules) => Loaded { rules: rules.with_home(home), problems: Vec::new(), exists: true },
        Err(problems) => Loaded { rules: Rules::from_problems(&problems), problems, exists: true },
    }
}

/// Returns the time of the rule in this line: from the comment above it if the program added the rule, else the file's last change.
fn find_rule_time(path: &Path, text: &str, line: usize) -> Option<DateTime<Utc>> {
    amend::find_rule_time(text, line).or_else(|| Some(std::fs::metadata(path).ok()?.modified().ok()?.into()))
}

/// Returns the text of the policy file, empty without a file.
///
/// # Errors
/// The reason it can't be trusted, in a sentence.
pub fn read_text(path: &Path) -> Result<String, String> {
    if matches!(std::fs::symlink_metadata(path), Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
        return Ok(String::new());
    }
    read_private(path).map(|file| file.text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn file(mode: u32, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn no_file_is_no_rules_and_no_problem() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = load(&dir.path().join("policy.toml"), None);
        assert!(loaded.problems.is_empty() && !loaded.exists && loaded.rules.refusal().is_none());
    }

    #[test]
    fn a_file_that_others_can_write_is_refused_whole() {
        let (_dir, path) = file(0o620, "");
        let loaded = load(&path, None);
        assert!(loaded.problems.first().unwrap().what.contains("0620"));
        assert!(loaded.rules.refusal().unwrap().contains("policy.toml"));
        let (_dir, path) = file(0o600, "");
        assert!(load(&path, None).problems.is_empty());
    }

    #[test]
    fn a_file_with_a_mistake_is_refused_whole() {
        let (_dir, path) = file(0o600, "[shell]\ntimeout = 5\n");
        let loaded = load(&path, None);
        assert_eq!(loaded.problems.first().unwrap().line, 2);
        assert!(loaded.rules.refusal().is_some());
    }

    #[test]
    fn a_link_to_nowhere_is_a_problem_and_not_the_absence_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        std::os::unix::fs::symlink(dir.path().join("gone"), &path).unwrap();
        assert!(load(&path, None).rules.refusal().is_some());
    }
}
