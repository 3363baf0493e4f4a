//! The location of the index, and its sources.

use std::{
    cell::RefCell,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use reveille_base::zone::Tz;
use reveille_config::Config;
use reveille_store::{Store, StoreError, StorePlace, database};

use super::{Index, IndexError, Ready, Refreshed, Sources};

/// How long a search updates the index before answering; later searches do the rest.
const PATIENCE: Duration = Duration::from_secs(2);
/// The note added to hits while the index is incomplete.
const INCOMPLETE: &str =
    "The memory's index isn't complete yet, so results may be missing. Later searches will find more.";

/// The location of the index and of the database with the conversations.
#[derive(Clone, Default)]
pub struct IndexPlace {
    /// The index's file.
    index: PathBuf,
    /// The location of the store.
    database: StorePlace,
    /// The open index between questions, if it stays open.
    open: Option<Rc<RefCell<Option<Index>>>>,
}

impl IndexPlace {
    /// Returns the places of a workspace. Each question opens the index.
    pub fn from_config(config: &Config) -> Self {
        Self::new(
            config.index_path(),
            database::locate_store(config).unwrap_or_else(|_| StorePlace::File(config.db_path())),
        )
    }

    /// Creates a place from an index's file and a store's location.
    pub fn new(index: PathBuf, database: impl Into<StorePlace>) -> Self {
        Self { index, database: database.into(), open: None }
    }

    /// Keeps the index open between the questions of this place and its clones. Saves the first opener's reading of the whole log, and the
    /// reading of the schema at each opening.
    #[must_use]
    pub fn kept_open(self) -> Self {
        Self { open: Some(Rc::default()), ..self }
    }

    /// Returns the index, updated as by [`Ready::open`]. Return the index with [`IndexPlace::keep_index`] afterwards.
    ///
    /// # Errors
    /// As [`Ready::open`].
    pub fn prepare_index(&self, sources: &Sources<'_>, within: Option<Duration>) -> Result<Ready, IndexError> {
        let open = self.open.as_ref().and_then(|open| open.borrow_mut().take());
        // Another process may have rebuilt the file; the old one would be written for nobody.
        match open.filter(Index::is_in_place).map(|index| Ready::from_index(index, sources, within)) {
            Some(ready @ (Ok(_) | Err(IndexError::Busy | IndexError::Store(_)))) => ready,
            Some(Err(_)) | None => Ready::open(&self.index, sources, within),
        }
    }

    /// Takes an index back for the next question.
    pub fn keep_index(&self, index: Index) {
        if let Some(open) = &self.open {
            open.replace(index.into_reusable());
        }
    }

    /// Opens the store read-only. `None` if it doesn't exist.
    ///
    /// # Errors
    /// The store can't be read.
    pub fn open_store(&self) -> Result<Option<Store>, StoreError> {
        self.database.open_read_only()
    }

    /// Queries the index after updating it from a work tree and the conversations for at most two seconds. An index found damaged is
    /// rebuilt once. Returns the answer and a note for the person.
    ///
    /// # Errors
    /// Another process is writing to the index, the conversations can't be read, or `ask` fails.
    pub fn ask<T>(
        &self,
        brain: &Path,
        zone: Tz,
        ask: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<(T, Option<String>), IndexError> {
        let store = self.open_store()?;
        self.ask_with_sources(&Sources { brain, store: store.as_ref(), zone }, ask)
    }

    /// Queries the index like [`IndexPlace::ask`], with sources already open.
    ///
    /// # Errors
    /// As [`IndexPlace::ask`].
    pub fn ask_with_sources<T>(
        &self,
        sources: &Sources<'_>,
        ask: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<(T, Option<String>), IndexError> {
        self.ask_within(sources, PATIENCE, &mut |_| false, ask)
    }

    /// Queries the index after a complete update, however long it takes. `tell` gets the progress every two seconds.
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
        let mut may_continue = |refreshed: &Refreshed| {
            tell(refreshed);
            true
        };
        let store = self.open_store()?;
        self.ask_within(&Sources { brain, store: store.as_ref(), zone }, PATIENCE, &mut may_continue, ask)
    }

    fn ask_within<T>(
        &self,
        sources: &Sources<'_>,
        within: Duration,
        may_continue: &mut dyn FnMut(&Refreshed) -> bool,
        mut ask: impl FnMut(&mut Index) -> Result<T, IndexError>,
    ) -> Result<(T, Option<String>), IndexError> {
        let mut ready = self.prepare_index(sources, Some(within))?;
        ready.continue_update(sources, within, may_continue)?;
        match ask(&mut ready.index) {
            Err(IndexError::Damaged(_)) => {
                drop(ready);
                let mut ready = Ready::rebuild(&self.index, sources, Some(within))?;
                ready.continue_update(sources, within, may_continue)?;
                Ok((ask(&mut ready.index)?, self.finish_query(ready)))
            }
            answer => Ok((answer?, self.finish_query(ready))),
        }
    }

    /// Returns the note about a queried index for the person, and keeps the index.
    fn finish_query(&self, Ready { index, refreshed, note }: Ready) -> Option<String> {
        self.keep_index(index);
        let incomplete = refreshed.is_partial.then(|| INCOMPLETE.to_owned());
        let notes: Vec<String> = note.into_iter().chain(incomplete).collect();
        (!notes.is_empty()).then(|| notes.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SearchQuery;

    #[test]
    fn what_is_not_indexed_in_time_is_said_and_a_command_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        for n in 0..9 {
            std::fs::write(dir.path().join(format!("memory/{n}.md")), format!("- tea of kind {n}\n")).unwrap();
        }
        let place = IndexPlace::new(dir.path().join("index.db"), dir.path().join("messages.db"));
        let here = &Sources { brain: dir.path(), store: None, zone: Tz::UTC };
        let tea = SearchQuery { text: "tea", limit: 20, ..SearchQuery::default() };
        let found = |index: &mut Index| Ok(index.search(&tea)?.len());
        let (hits, note) = place.ask_within(here, Duration::ZERO, &mut |_| false, found).unwrap();
        assert_eq!((hits, note.as_deref()), (1, Some(INCOMPLETE)), "what is there is searched");
        let mut told = 0;
        let mut may_continue = |_: &Refreshed| {
            told += 1;
            true
        };
        let (hits, note) = place.ask_within(here, Duration::ZERO, &mut may_continue, found).unwrap();
        assert_eq!((hits, note, told), (9, None, 7));
    }

    #[test]
    fn an_index_that_stays_open_is_left_for_one_that_was_made_anew_and_tells_its_note_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        std::fs::write(dir.path().join("memory/a.md"), "- tea\n").unwrap();
        let path = dir.path().join("index.db");
        let place = IndexPlace::new(path.clone(), dir.path().join("messages.db")).kept_open();
        let (here, clone) = (Sources { brain: dir.path(), store: None, zone: Tz::UTC }, place.clone());
        let name = |index: &mut Index| {
            let is_first = index.record_first("asked");
            Ok((is_first, index.search(&SearchQuery { text: "tea", limit: 2, ..SearchQuery::default() })?.len()))
        };
        assert_eq!(place.ask_with_sources(&here, name).unwrap(), ((true, 1), None));
        assert!(place.open.as_ref().unwrap().borrow().is_some(), "it was closed");
        assert_eq!(clone.ask_with_sources(&here, name).unwrap(), ((false, 1), None), "a clone asks the same");
        // Whoever forgets something makes it anew.
        Index::scrub(&path, &here).unwrap();
        assert_eq!(
            place.ask_with_sources(&here, name).unwrap(),
            ((true, 1), None),
            "the file that nobody else reads was asked"
        );
        std::fs::write(&path, "no index").unwrap();
        std::fs::remove_file(dir.path().join("index.db-wal")).unwrap();
        drop(place.open.as_ref().unwrap().take());
        let (_, note) = place.ask_with_sources(&here, name).unwrap();
        assert!(note.is_some(), "a person isn't told");
        assert_eq!(place.ask_with_sources(&here, name).unwrap(), ((false, 1), None), "told twice");
    }
}
