//! The index, ready to be searched: opened, brought up to date, and mended where that is needed.

use std::{path::Path, time::Duration};

use super::{Index, IndexError, Refreshed, Sources};

/// An index that is up to date.
pub struct Ready {
    /// The index.
    pub index: Index,
    /// What was written anew.
    pub refreshed: Refreshed,
    /// What a person should know of it: it was damaged, or can't be kept here.
    pub note: Option<String>,
}

impl Ready {
    /// Opens the index at a path and brings it up to date, within a time if one is given. A damaged one is made anew. Where none can
    /// be written, what was found at the last refresh is searched, or else all of it in memory.
    ///
    /// # Errors
    /// Another process is writing to it, or what was said can't be read.
    pub fn at(path: &Path, sources: &Sources<'_>, within: Option<Duration>) -> Result<Self, IndexError> {
        match Self::attempt(path, sources, within) {
            Err(IndexError::Damaged(why)) => {
                tracing::debug!(why, "the index is damaged");
                Self::anew(path, sources, within)
            }
            Err(error @ (IndexError::Full | IndexError::ReadOnly(_) | IndexError::File(_))) => {
                let mut index = Index::in_memory()?;
                let refreshed = index.refresh(sources, within)?;
                let note = Some(format!("{error}. I searched without it, which takes longer."));
                Ok(Self { index, refreshed, note })
            }
            ready => ready,
        }
    }

    /// Goes on while something is left and `goes_on` says so, which hears what was written of it.
    ///
    /// # Errors
    /// As of [`Index::refresh`].
    pub(super) fn go_on(
        &mut self,
        sources: &Sources<'_>,
        within: Duration,
        goes_on: &mut dyn FnMut(&Refreshed) -> bool,
    ) -> Result<(), IndexError> {
        while self.refreshed.is_partial && goes_on(&self.refreshed) {
            self.refreshed = self.index.refresh(sources, Some(within))?;
        }
        Ok(())
    }

    /// Makes the index anew, within a time if one is given. Vectors that can still be read are kept: they took hours or money.
    ///
    /// # Errors
    /// The file can't be replaced, or what was said can't be read.
    pub fn anew(path: &Path, sources: &Sources<'_>, within: Option<Duration>) -> Result<Self, IndexError> {
        match Index::open(path).and_then(Index::clear) {
            Ok(index) => drop(index),
            Err(_) => super::file::remove(path)?,
        }
        let mut ready = Self::attempt(path, sources, within)?;
        ready.note = Some(REBUILT.to_owned());
        Ok(ready)
    }

    fn attempt(path: &Path, sources: &Sources<'_>, within: Option<Duration>) -> Result<Self, IndexError> {
        Self::of(Index::open(path)?, sources, within)
    }

    /// Brings an open index up to date, within a time if one is given.
    pub(super) fn of(mut index: Index, sources: &Sources<'_>, within: Option<Duration>) -> Result<Self, IndexError> {
        let refreshed = index.refresh(sources, within)?;
        let note = index.was_rebuilt().then(|| REBUILT.to_owned());
        Ok(Self { index, refreshed, note })
    }
}

/// What is said of an index that had to go.
const REBUILT: &str =
    "The index of the memory was damaged or of another version, so I built it anew. Nothing else was lost.";
