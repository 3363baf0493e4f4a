//! Findings of checks, and the reasons why a check could not look.

use reveille_base::{approval_text::remove_hidden, process::ProcessError};
use reveille_git::RepoError;
use reveille_store::{StoreError, wake_lock::LockError};

use super::remedy::Remedy;

/// The severity; the worst is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// In order.
    Ok,
    /// Working, but a person should know, or the next wake repairs it.
    Warn,
    /// Not working until someone acts.
    Critical,
}

/// The finding of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The severity.
    pub status: Status,
    /// The state in a sentence.
    pub detail: String,
    /// Advice for a person.
    pub fix: Option<String>,
    /// The action of this program, worded to follow "would be repaired:".
    pub repair: Option<String>,
    /// Further actions of `--fix`.
    pub remedies: Vec<Remedy>,
}

impl Finding {
    /// Creates a finding without a problem.
    pub(super) fn ok(detail: impl Into<String>) -> Self {
        let detail = remove_hidden(&detail.into()).into_owned();
        Self { status: Status::Ok, detail, fix: None, repair: None, remedies: Vec::new() }
    }

    /// Creates a finding that a person should know about.
    pub(super) fn warn(detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Warn, fix: Some(fix.into()), ..Self::ok(detail) }
    }

    /// Creates a finding of a broken part.
    pub(super) fn critical(detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Critical, ..Self::warn(detail, fix) }
    }

    /// Creates a finding that the next wake resolves; `--fix` can start one.
    pub(super) fn warn_for_wake(detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::warn(detail, fix).with_remedy(Remedy::Wake)
    }

    /// Creates a finding that this program can repair while no wake runs.
    pub(super) fn repairable(detail: impl Into<String>, repair: impl Into<String>) -> Self {
        Self { repair: Some(repair.into()), ..Self::warn(detail, "health check repairs it when no wake runs") }
    }

    /// Adds an action of `--fix`.
    pub(super) fn with_remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// The finding before the first wake, which creates what is missing.
    pub(super) fn nothing_yet() -> Self {
        Self::ok("nothing yet: no wake has run here")
    }

    /// Combines the findings of one check: the worst status, and all sentences.
    pub(super) fn merge_all(findings: Vec<Self>, otherwise: Self) -> Self {
        findings.into_iter().reduce(Self::merge).unwrap_or(otherwise)
    }

    /// Combines two findings of one check: the worse status, and both sentences.
    pub(super) fn merge(self, other: Self) -> Self {
        let join = |a: Option<String>, b: Option<String>| match (a, b) {
            (Some(a), Some(b)) if a != b => Some(format!("{a}; {b}")),
            (a, b) => a.or(b),
        };
        Self {
            status: self.status.max(other.status),
            detail: format!("{}; {}", self.detail, other.detail),
            fix: join(self.fix, other.fix),
            repair: join(self.repair, other.repair),
            remedies: [self.remedies, other.remedies].concat(),
        }
    }

    /// Adds the planned repair, for a dry run.
    pub(super) fn announce_repair(&mut self) {
        if let Some(repair) = &self.repair {
            self.detail.push_str(&format!(" (would be repaired: {repair})"));
        }
    }

    /// Adds the reasons why a repair failed.
    pub(super) fn add_failures<'f>(&mut self, failures: impl Iterator<Item = &'f str>) {
        for failure in failures {
            self.status = self.status.max(Status::Warn);
            self.detail.push_str(&format!(" (the repair did not work: {failure})"));
        }
    }
}

/// The reason why a check or a repair failed to run.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository failed.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The wake lock's file failed.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A called program failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The file system failed.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action with its path.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// Something can't be used, and another check explains it.
    #[error("{what} can't be used")]
    Unusable {
        /// Its name.
        what: &'static str,
        /// The explaining check.
        see: &'static str,
    },
}

impl Trouble {
    /// Builds the error for `map_err`, with the attempted action and its path.
    pub(super) fn io<E: Into<std::io::Error>>(what: &str, path: &std::path::Path) -> impl FnOnce(E) -> Self {
        let what = format!("{what} {}", path.display());
        move |source| Self::Io { what, source: source.into() }
    }

    /// Converts the trouble into a finding.
    pub(super) fn to_finding(&self) -> Finding {
        match self {
            // The problem is reported once, by its own check.
            Self::Unusable { see, .. } => Finding::ok(format!("not checked: {self} (see the check `{see}`)")),
            _ => Finding::warn(
                format!("could not be checked: {self}"),
                "run health check again; if this persists, fix what it names",
            ),
        }
    }
}
