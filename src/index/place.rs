//! Where the index is kept, and what it is made of.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{Index, IndexError, Ready, Refreshed, Sources};
use crate::{
    config::Config,
    store::{Store, StoreError},
    zone::Tz,
};

/// How long a search brings the index up to date before it answers: what is left then is found by a later one.
const PATIENCE: Duration = Duration::from_secs(2);
/// What is told with hits while something is left.
const INCOMPLETE: &str =
    "The index of the memory isn't complete yet, so something may be missing here. The next searches find more.";

/// Where the index is kept, and the database whose messages are in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexPlace {
    /// The index's file.
    pub index: PathBuf,
    /// The store's file.
    pub database: PathBuf,
}

impl IndexPlace {
    /// The places of a workspace.
    pub fn of(config: &Config) -> Self {
        Self { index: config.index_path(), database: config.db_path() }
    }

    /// The store, for looking only; none while there is none.
    ///
    /// # Errors
    /// It can't be read.
    pub fn store(&self) -> Result<Option<Store>, StoreError> {
        Store::open_read_only(&self.database)
    }

    /// Asks the index, brought up to date with the memory in a work tree and with what was said, for two seconds at most. Where it turns out
    /// to be damaged it is made anew, once. With the answer comes what a person should know of the index.
    ///
    /// # Errors
    /// Another process is writing to it, what was said can't be read, or `ask` fails.
    pub fn ask<T>(
        &self,
        brain: &Path,
        zone: Tz,
        ask: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<(T, Option<String>), IndexError> {
        self.ask_within((brain, zone), PATIENCE, &mut |_| false, ask)
    }

    /// The same, however long it takes. `tell` hears every two seconds what was written since.
    ///
    /// # Errors
    /// As [`IndexPlace::ask`].
    pub fn ask_all<T>(
        &self,
        brain: &Path,
        zone: Tz,
        tell: &mut dyn FnMut(&Refreshed),
        ask: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<(T, Option<String>), IndexError> {
        let mut goes_on = |refreshed: &Refreshed| {
            tell(refreshed);
            true
        };
        self.ask_within((brain, zone), PATIENCE, &mut goes_on, ask)
    }

    fn ask_within<T>(
        &self,
        (brain, zone): (&Path, Tz),
        within: Duration,
        goes_on: &mut dyn FnMut(&Refreshed) -> bool,
        mut ask: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<(T, Option<String>), IndexError> {
        let store = self.store()?;
        let sources = Sources { brain, store: store.as_ref(), zone };
        let mut ready = Ready::at(&self.index, &sources, Some(within))?;
        ready.go_on(&sources, within, goes_on)?;
        match ask(&mut ready.index) {
            Err(IndexError::Damaged(_)) => {
                drop(ready);
                let mut ready = Ready::anew(&self.index, &sources, Some(within))?;
                ready.go_on(&sources, within, goes_on)?;
                Ok((ask(&mut ready.index)?, told(ready)))
            }
            answer => Ok((answer?, told(ready))),
        }
    }
}

fn told(ready: Ready) -> Option<String> {
    let incomplete = ready.refreshed.is_partial.then(|| INCOMPLETE.to_owned());
    let notes: Vec<String> = ready.note.into_iter().chain(incomplete).collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::SearchQuery;

    #[test]
    fn what_is_not_indexed_in_time_is_said_and_a_command_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        for n in 0..9 {
            std::fs::write(dir.path().join(format!("memory/{n}.md")), format!("- tea of kind {n}\n")).unwrap();
        }
        let place = IndexPlace { index: dir.path().join("index.db"), database: dir.path().join("messages.db") };
        let here = (dir.path(), Tz::UTC);
        let tea = SearchQuery { text: "tea", limit: 20, ..SearchQuery::default() };
        let found = |index: &mut Index| Ok(index.search(&tea)?.len());
        let (hits, note) = place.ask_within(here, Duration::ZERO, &mut |_| false, found).unwrap();
        assert_eq!((hits, note.as_deref()), (1, Some(INCOMPLETE)), "what is there is searched");
        let mut told = 0;
        let mut goes_on = |_: &Refreshed| {
            told += 1;
            true
        };
        let (hits, note) = place.ask_within(here, Duration::ZERO, &mut goes_on, found).unwrap();
        assert_eq!((hits, note, told), (9, None, 7));
    }
}
