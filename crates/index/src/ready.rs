//! An index ready for searching: opened, updated, and repaired if needed.

use std::{path::Path, time::Duration};

use super::{Index, IndexError, Refreshed, Sources};

/// An updated index.
pub struct Ready {
    /// The index.
    pub index: Index,
    /// The changes of the update.
    pub refreshed: Refreshed,
    /// A note for the person: the index was damaged, or can't be stored here.
    pub note: Option<String>,
}

impl Ready {
    /// Opens the index at a path and updates it, within a time limit if given. A damaged index is rebuilt. If none can be written, all
    /// content is indexed in memory.
    ///
    /// # Errors
    /// Another process is writing to the index, or the conversations can't be read.
    pub fn open(path: &Path, sources: &Sources<'_>, within: Option<Duration>) -> Result<Self, IndexError> {
        match Self::try_open(path, sources, within) {
            Err(IndexError::Damaged(why)) => {
                tracing::debug!(why, "the index is damaged");
                Self::rebuild(path, sources, within)
            }
            Err(error @ (IndexError::Full | IndexError::ReadOnly(_) | IndexError::File(_))) => {
                let mut index = Index::open_in_memory()?;
                let refreshed = index.refresh(sources, within)?;
                let note = Some(format!("{error}. I searched without it, which takes longer."));
                Ok(Self { index, refreshed, note })
            }
            ready => ready,
        }
    }

    /// Continues an incomplete update as long as `may_continue` agrees, which gets the progress.
    ///
    /// # Errors
    /// As [`Index::refresh`].
    pub(super) fn continue_update(
        &mut self,
        sources: &Sources<'_>,
        within: Duration,
        may_continue: &mut dyn FnMut(&Refreshed) -> bool,
    ) -> Result<(), IndexError> {
        while self.refreshed.is_partial && may_continue(&self.refreshed) {
            self.refreshed = self.index.refresh(sources, Some(within))?;
        }
        Ok(())
    }

    /// Rebuilds the index, within a time limit if given. Readable vectors are kept, because they cost hours or money.
    ///
    /// # Errors
    /// The file can't be replaced, or the conversations can't be read.
    pub fn rebuild(path: &Path, sources: &Sources<'_>, within: Option<Duration>) -> Result<Self, IndexError> {
        match Index::open(path).and_then(Index::clear) {
            Ok(index) => drop(index),
            Err(_) => super::file::remove(path)?,
        }
        let mut ready = Self::try_open(path, sources, within)?;
        ready.note = Some(REBUILT.to_owned());
        Ok(ready)
    }

    fn try_open(path: &Path, sources: &Sources<'_>, within: Option<Duration>) -> Result<Self, IndexError> {
        Self::from_index(Index::open(path)?, sources, within)
    }

    /// Updates an open index, within a time limit if given.
    pub(super) fn from_index(
        mut index: Index,
        sources: &Sources<'_>,
        within: Option<Duration>,
    ) -> Result<Self, IndexError> {
        let refreshed = index.refresh(sources, within)?;
        let note = index.was_rebuilt().then(|| REBUILT.to_owned());
        Ok(Self { index, refreshed, note })
    }
}

/// The note about a rebuilt index.
const REBUILT: &str = "The memory's index was damaged or from another version, so I rebuilt it. Nothing else was lost.";
