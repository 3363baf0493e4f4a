//! What a check found, and why one could not look.

use reveille_base::{approval_text::without_hidden, process::ProcessError};
use reveille_git::RepoError;
use reveille_store::{StoreError, wake_lock::LockError};

use super::remedy::Remedy;

/// How bad it is; the worst is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// It works, but a person should know, or the next wake mends it.
    Warn,
    /// It doesn't work until somebody does something.
    Critical,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub status: Status,
    /// What there is, in a sentence.
    pub detail: String,
    /// What a person can do.
    pub fix: Option<String>,
    /// What this program can do about it, to follow on "would be repaired:".
    pub repair: Option<String>,
    /// What else can be done about it, by `--fix`.
    pub remedies: Vec<Remedy>,
}

impl Finding {
    /// All is well.
    pub(super) fn ok(detail: impl Into<String>) -> Self {
        let detail = without_hidden(&detail.into()).into_owned();
        Self { status: Status::Ok, detail, fix: None, repair: None, remedies: Vec::new() }
    }

    /// A person should know.
    pub(super) fn warn(detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Warn, fix: Some(fix.into()), ..Self::ok(detail) }
    }

    /// It doesn't work.
    pub(super) fn critical(detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { status: Status::Critical, ..Self::warn(detail, fix) }
    }

    /// The next wake mends it, and `--fix` can start one.
    pub(super) fn left_to_a_wake(detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::warn(detail, fix).mended_by(Remedy::Wake)
    }

    /// This program can mend it, as soon as no wake runs.
    pub(super) fn repairable(detail: impl Into<String>, repair: impl Into<String>) -> Self {
        Self { repair: Some(repair.into()), ..Self::warn(detail, "health check repairs it when no wake runs") }
    }

    /// Something can be done about it beside what the check repairs.
    pub(super) fn mended_by(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// The first wake makes it.
    pub(super) fn nothing_yet() -> Self {
        Self::ok("nothing yet: no wake has run here")
    }

    /// Several findings of one check as one: the worst status, every sentence.
    pub(super) fn all(findings: Vec<Self>, otherwise: Self) -> Self {
        findings.into_iter().reduce(Self::and).unwrap_or(otherwise)
    }

    /// Two findings of one check as one: the worse status, both sentences.
    pub(super) fn and(self, other: Self) -> Self {
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

    /// For a dry run: says what would be done.
    pub(super) fn announce_repair(&mut self) {
        if let Some(repair) = &self.repair {
            self.detail.push_str(&format!(" (would be repaired: {repair})"));
        }
    }

    /// Says why a repair didn't work.
    pub(super) fn add_failures<'f>(&mut self, failures: impl Iterator<Item = &'f str>) {
        for failure in failures {
            self.status = self.status.max(Status::Warn);
            self.detail.push_str(&format!(" (the repair did not work: {failure})"));
        }
    }
}

/// Why a check or a repair could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The repository.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The wake lock's file.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A program that was asked.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The file system.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the path.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another check already says why.
    #[error("{what} can't be used")]
    Unusable {
        /// What.
        what: &'static str,
        /// The check that says why.
        see: &'static str,
    },
}

impl Trouble {
    /// For `map_err`: names what was tried on which path.
    pub(super) fn io<E: Into<std::io::Error>>(what: &str, path: &std::path::Path) -> impl FnOnce(E) -> Self {
        let what = format!("{what} {}", path.display());
        move |source| Self::Io { what, source: source.into() }
    }

    /// The finding of a check that could not look.
    pub(super) fn finding(&self) -> Finding {
        match self {
            // What is wrong is one finding, where it is.
            Self::Unusable { see, .. } => Finding::ok(format!("not looked at: {self} (see the check `{see}`)")),
            _ => Finding::warn(
                format!("could not be checked: {self}"),
                "run health check again; if this stays, fix what it names",
            ),
        }
    }
}
