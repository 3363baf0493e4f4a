//! What keeps a wake from its work for long and isn't the model's or the remote's: a repository that can't be used, files that can't be
//! written. Nothing else would ever tell of it, so the owner is told in chat, by rule and once a day; answers that were written before go out.

use crate::{
    cycle::{context::WakeError, session::Wake},
    disk,
    repo::RepoError,
    store::UpkeepKind,
};

/// So many wakes in a row fail before it is told: the first trouble may pass by itself.
const TELL_AFTER: u32 = 3;

impl Wake<'_> {
    /// Leaves word of the error that ended this wake, if one did: with its cycle, if it was in the middle of one, and in chat, if it has ended
    /// several. A full disk has no room even for that: nothing depends on it, the cycle is gone on with in any case and none of its tries
    /// is counted.
    pub(in crate::cycle) async fn note_trouble(&mut self, error: Option<&WakeError>) {
        let noted = match error {
            Some(error) => self.note_error(error).await,
            None => self.store.upkeep_recovered(UpkeepKind::Repository).map_err(WakeError::Store),
        };
        if let Err(error) = noted {
            tracing::debug!(%error, "how the wake went was not noted");
        }
    }

    async fn note_error(&mut self, error: &WakeError) -> Result<(), WakeError> {
        let why = self.context.redactor.redact(&error.to_string());
        if let Some(cycle_id) = &self.report.cycle_id {
            self.store.note_trouble(cycle_id, &why)?;
        }
        if is_persons(error) {
            self.count_trouble(&why)?;
            self.deliver().await?;
        }
        Ok(())
    }

    fn count_trouble(&mut self, why: &str) -> Result<(), WakeError> {
        let now = self.now();
        if self.store.upkeep_failed(UpkeepKind::Repository, why, None)?.failures < TELL_AFTER {
            return Ok(());
        }
        let text = format!(
            "I can't answer just now, because I can't use my memory: {why}. Your messages are safe, and I'll keep trying. \
             `health check` on my machine says what to do."
        );
        let today = now.with_timezone(&self.context.config.timezone).date_naive();
        self.alarm(&format!("memory/{today}"), text).map(drop)
    }

    /// A commit still lacks one of its files here. What this wake writes is parked; answering needs none of it.
    pub(in crate::cycle) fn lags_behind(&mut self, error: &RepoError) -> Result<(), WakeError> {
        let (why, now) = (self.context.redactor.redact(&error.to_string()), self.now());
        tracing::warn!(%why, "a commit could not be finished");
        self.report.notes.push(why.clone());
        self.store.upkeep_failed(UpkeepKind::Finish, &why, None)?;
        let text = format!(
            "I can't write a file of my memory: {why}. Nothing is lost, and I can still answer. What I write is kept apart, and \
             I'll bring it in once the file can be written."
        );
        let today = now.with_timezone(&self.context.config.timezone).date_naive();
        self.alarm(&format!("behind/{today}"), text).map(drop)
    }
}

/// Whether a person has to put it right.
fn is_persons(error: &WakeError) -> bool {
    match error {
        WakeError::Repo(error) => !error.is_the_machines(),
        WakeError::Workspace { source, .. } => !disk::is_the_machines(source),
        WakeError::Store(_) | WakeError::Lock(_) | WakeError::NoRandomness(_) => false,
    }
}
