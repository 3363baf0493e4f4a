//! One wake in full: its story, its commit and its requests. Terminal and page show the same.

use reveille_base::redact::Redactor;
use reveille_git::{Commit, CommitInFull, Repo};
use reveille_store::{CycleRow, Store, StoreError};

use super::{clean_for_display, find::FindError, raw, read, story::WakeStory};

/// The sources of a wake's data.
#[derive(Clone, Copy)]
pub struct WakeSources<'a> {
    /// The database; `None` before the first wake.
    pub store: Option<&'a Store>,
    /// The memory; `None` if unreadable.
    pub repo: Option<&'a Repo>,
    /// Masks secrets.
    pub redactor: &'a Redactor,
}

/// The requests of a wake as sent, or the reason for their absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptRequests {
    /// The requests, each as raw JSON.
    Lines(Vec<String>),
    /// No requests; holds the reason for people.
    None(&'static str),
}

impl WakeSources<'_> {
    /// Reads the story of a cycle and the changes of a commit, without secrets.
    pub fn read_wake(
        &self,
        row: Option<&CycleRow>,
        commit: Option<&str>,
    ) -> Result<(Option<WakeStory>, Option<CommitInFull>), FindError> {
        let story = match (self.store, row) {
            (Some(store), Some(row)) => Some(read::load_story(store, self.redactor, row)?),
            _ => None,
        };
        let commit = match (self.repo, commit) {
            // The change is shown in full: no file is left out.
            (Some(repo), Some(commit)) => repo.history().find_full_commit(commit, |_| false)?,
            _ => None,
        };
        Ok((story, commit.map(|commit| self.mask_commit(commit))))
    }

    /// Reads the requests of a cycle. A person's commit has none.
    pub fn read_requests(&self, row: Option<&CycleRow>) -> Result<KeptRequests, StoreError> {
        let (Some(store), Some(row)) = (self.store, row) else {
            return Ok(KeptRequests::None("A person's commit has no requests."));
        };
        let lines = raw::render_requests(row, &store.history().dated_journal(&row.cycle.id)?, self.redactor);
        Ok(match (lines.is_empty(), store.history().has_journal(&row.cycle.id)?) {
            (false, _) => KeptRequests::Lines(lines),
            (true, false) => KeptRequests::None("Its requests are older than KEEP_DAYS and were deleted."),
            (true, true) => KeptRequests::None("It asked no model."),
        })
    }

    fn mask_commit(&self, shown_commit: CommitInFull) -> CommitInFull {
        let masked = |text: &str| clean_for_display(self.redactor, text);
        let CommitInFull { commit, message, stat, diff, left_out } = shown_commit;
        CommitInFull {
            message: masked(&message),
            stat: masked(&stat),
            diff: masked(&diff),
            commit: Commit { author: masked(&commit.author), subject: masked(&commit.subject), ..commit },
            left_out,
        }
    }
}
