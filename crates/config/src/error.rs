//! Problems with the settings. Each has what a person needs to correct it: name, expected value and given value.

use super::raw::Source;

/// All problems with the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", format_problems(problems))]
pub struct ConfigError {
    /// The wrong settings, at least one.
    pub problems: Vec<SettingProblem>,
}

/// A wrong setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingProblem {
    /// The variable, or the unusable file.
    pub subject: String,
    /// The source of the value; `None` if obvious or missing.
    pub source: Option<Source>,
    /// The expected and the given value; never the value of a secret.
    pub what: String,
}

impl SettingProblem {
    pub(super) fn new(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self { subject: subject.into(), source: None, what: what.into() }
    }
}

impl std::fmt::Display for SettingProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{} ({source}): {}", self.subject, self.what),
            None => write!(f, "{}: {}", self.subject, self.what),
        }
    }
}

fn format_problems(problems: &[SettingProblem]) -> String {
    let mut text = match problems.len() {
        1 => "One setting needs correcting:".to_owned(),
        n => format!("{n} settings need correcting:"),
    };
    for problem in problems {
        text.push_str(&format!("\n  {problem}"));
    }
    text.push_str("\nNothing was started and nothing was changed. The settings are explained in .env.example.");
    text
}
