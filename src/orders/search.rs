//! Searching what is remembered and what was said, for a person: the terminal and the page ask the same, and get the same.

use std::cell::OnceCell;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use reveille_base::redact::Redactor;
use reveille_config::Config;
use reveille_cycle::decide::budget::Budget;
use reveille_git as repo;
use reveille_git::RepoError;
use reveille_index::{
    Index, IndexError, IndexPlace, Recalled, Refreshed, SearchQuery,
    embed::{Meaning, Meant},
};
use reveille_store::database;

/// What is told once.
const BY_KEYWORDS: &str =
    "Searched by keywords alone, since EMBED_MODEL isn't set. With one, what means the same is found, too.";

/// What a person looks for.
#[derive(Debug, Clone, Copy)]
pub struct MemoryQuestion<'a> {
    /// A question, or words.
    pub text: &'a str,
    /// Hits at most.
    pub limit: usize,
    /// As it was known on that day, its evening included.
    pub as_of: Option<NaiveDate>,
    /// Only in this file or folder; `messages` and `answers` are what was said.
    pub within: Option<&'a str>,
    /// Whether a note says that keywords alone serve, the first time that a search with this asks.
    pub tells_of_keywords: bool,
}

/// How long a search waits for the index.
pub enum IndexWait<'a> {
    /// Two seconds: what isn't indexed by then is found by a later search.
    Briefly,
    /// Until it is complete. It hears every two seconds what was written since.
    ToTheEnd(&'a mut dyn FnMut(&Refreshed)),
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryFound {
    /// The hits, the best first: those too that are only found for what stands around them.
    pub hits: Vec<Recalled>,
    /// What a person should know of how it was searched, a sentence or two each.
    pub notes: Vec<String>,
}

/// Why nothing can be searched.
#[derive(Debug, thiserror::Error)]
pub enum MemorySearchError {
    /// The index.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The memory's past.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// Searches.
///
/// # Errors
/// The index can't be used, or the memory's past can't be read.
pub fn search(
    config: &Config,
    redactor: &Redactor,
    question: &MemoryQuestion<'_>,
    wait: IndexWait<'_>,
) -> Result<MemoryFound, MemorySearchError> {
    let mut found = MemoryFound::default();
    let meant = OnceCell::new();
    let query = SearchQuery {
        text: question.text,
        limit: question.limit,
        today: question.as_of.unwrap_or_else(|| today(config)),
        as_of: question.as_of,
        within: question.within,
        owner: config.owner_chat,
        ..SearchQuery::default()
    };
    let then = question.as_of.map(|day| repo::texts_as_of(&config.repo_dir(), end_of(day, config))).transpose()?;
    let notes = &mut found.notes;
    let tells = question.tells_of_keywords && config.embed_model.is_none();
    let ask = |index: &mut Index| {
        if tells && index.is_first("told_of_keywords") {
            notes.push(BY_KEYWORDS.to_owned());
        }
        let meant: &Option<Meant> =
            meant.get_or_init(|| self::meant(config, redactor, question.text, (index, &mut *notes)));
        let query = SearchQuery { vector: meant.as_ref().and_then(|meant| meant.of(0)), ..query };
        match &then {
            None => index.search(&query),
            Some(Some(texts)) => index.with_documents(texts, true, |index| index.search(&query)),
            // The memory wasn't kept by then: what says that it is from then counts.
            Some(None) => index.search(&SearchQuery { only_dated: true, ..query }),
        }
    };
    let (place, brain) = (IndexPlace::of(config), config.repo_dir());
    let (hits, note) = match wait {
        IndexWait::Briefly => place.ask(&brain, config.timezone, ask)?,
        IndexWait::ToTheEnd(tell) => place.ask_all(&brain, config.timezone, tell, ask)?,
    };
    found.hits = hits;
    found.notes.extend(note);
    Ok(found)
}

/// What the question means; where that can't be told, keywords serve, and it is noted why.
fn meant(
    config: &Config,
    redactor: &Redactor,
    text: &str,
    (index, notes): (&Index, &mut Vec<String>),
) -> Option<Meant> {
    config.embed_model.as_ref()?;
    let caps = database::look(config).and_then(|store| {
        let budget = store.map(|store| Budget::look(&store, config, config.clock().now())).transpose()?;
        Ok(budget.map_or_else(Vec::new, |budget| budget.caps()))
    });
    let caps = match caps {
        Ok(caps) => caps,
        Err(error) => {
            notes.push(format!("Searched by keywords: {error}."));
            return None;
        }
    };
    match Meaning::new(config, redactor, caps).of(&[text.to_owned()], index) {
        Ok(Some(meant)) => Some(meant),
        Ok(None) => {
            notes.push(
                "Searched by keywords: nothing is embedded yet. Wakes do it by and by; `wake memory reindex --embed` does it now."
                    .to_owned(),
            );
            None
        }
        Err(error) => {
            notes.push(format!("Searched by keywords: {error}."));
            None
        }
    }
}

fn today(config: &Config) -> NaiveDate {
    config.clock().now().with_timezone(&config.timezone).date_naive()
}

/// When a day is over.
fn end_of(day: NaiveDate, config: &Config) -> DateTime<Utc> {
    let next = day.succ_opt().unwrap_or(day).and_time(NaiveTime::MIN);
    next.and_local_timezone(config.timezone).earliest().map_or_else(|| next.and_utc(), |at| at.to_utc())
}
