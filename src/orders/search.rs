//! Searches the memory and the conversations for a person. The terminal and the page share it, so their results agree.

use std::cell::OnceCell;

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

use reveille_base::redact::Redactor;
use reveille_config::Config;
use reveille_cycle::decide::budget::Budget;
use reveille_git as repo;
use reveille_git::RepoError;
use reveille_index::{
    Index, IndexError, IndexPlace, OtherDocuments, Refreshed, SearchHit, SearchQuery,
    embed::{Meaning, Meant},
};
use reveille_store::database;

/// The note on keyword search, shown only once.
const BY_KEYWORDS: &str =
    "Searched by keywords only, because EMBED_MODEL isn't set. With it, I also find text that means the same.";

/// A person's search.
#[derive(Debug, Clone, Copy)]
pub struct MemoryQuestion<'a> {
    /// A question or some words.
    pub text: &'a str,
    /// Maximum number of hits.
    pub limit: usize,
    /// Search the knowledge of that day, up to its evening.
    pub as_of: Option<NaiveDate>,
    /// Restriction to a file or folder; `messages` and `answers` are the conversations.
    pub within: Option<&'a str>,
    /// `true` to add a note about keyword search, the first time it happens.
    pub tells_of_keywords: bool,
}

/// The time to wait for the index.
pub enum IndexWait<'a> {
    /// Two seconds; a later search finds the texts that aren't indexed by then.
    Briefly,
    /// Until the index is complete. The callback gets the progress every two seconds.
    UntilComplete(&'a mut dyn FnMut(&Refreshed)),
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemoryFound {
    /// Hits, best first, including those found only through the lines around them.
    pub hits: Vec<SearchHit>,
    /// Notes for the person about the search, one or two sentences each.
    pub notes: Vec<String>,
}

/// The reason why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum MemorySearchError {
    /// The index can't be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The memory's history can't be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// Searches the memory and the conversations.
///
/// # Errors
/// If the index can't be used, or the memory's history can't be read.
pub fn search_memory(
    config: &Config,
    redactor: &Redactor,
    question: &MemoryQuestion<'_>,
    wait: IndexWait<'_>,
) -> Result<MemoryFound, MemorySearchError> {
    let mut found = MemoryFound::default();
    let embedded = OnceCell::new();
    let query = SearchQuery {
        text: question.text,
        limit: question.limit,
        today: question.as_of.unwrap_or_else(|| today(config)),
        as_of: question.as_of,
        within: question.within,
        owner: config.owner_chat,
        ..SearchQuery::default()
    };
    let past_texts =
        question.as_of.map(|day| repo::read_texts_before(&config.repo_dir(), day_end(day, config))).transpose()?;
    let notes = &mut found.notes;
    let tells = question.tells_of_keywords && config.embed_model.is_none();
    let ask = |index: &mut Index| {
        if tells && index.record_first("told_of_keywords") {
            notes.push(BY_KEYWORDS.to_owned());
        }
        let embedded: &Option<Meant> =
            embedded.get_or_init(|| embed_question(config, redactor, question.text, (index, &mut *notes)));
        let query = SearchQuery { vector: embedded.as_ref().and_then(|embedded| embedded.vector(0)), ..query };
        match &past_texts {
            None => index.search(&query),
            Some(Some(texts)) => index.with_documents(texts, OtherDocuments::Hidden, |index| index.search(&query)),
            // The memory didn't exist then, so only texts with a date of their own count.
            Some(None) => index.search(&SearchQuery { only_dated: true, ..query }),
        }
    };
    let (place, repo_dir) = (IndexPlace::from_config(config), config.repo_dir());
    let (hits, note) = match wait {
        IndexWait::Briefly => place.ask(&repo_dir, config.timezone, ask)?,
        IndexWait::UntilComplete(tell) => place.ask_all(&repo_dir, config.timezone, tell, ask)?,
    };
    found.hits = hits;
    found.notes.extend(note);
    Ok(found)
}

/// Embeds the question. `None` with a note if that isn't possible, so keywords have to do.
fn embed_question(
    config: &Config,
    redactor: &Redactor,
    text: &str,
    (index, notes): (&Index, &mut Vec<String>),
) -> Option<Meant> {
    config.embed_model.as_ref()?;
    let caps = database::open_read_only(config).and_then(|store| {
        let budget = store.map(|store| Budget::read(&store, config, config.clock().now())).transpose()?;
        Ok(budget.map_or_else(Vec::new, |budget| budget.caps()))
    });
    let caps = match caps {
        Ok(caps) => caps,
        Err(error) => {
            notes.push(format!("Searched by keywords: {error}."));
            return None;
        }
    };
    match Meaning::new(config, redactor, caps).embed_questions(&[text.to_owned()], index) {
        Ok(Some(meant)) => Some(meant),
        Ok(None) => {
            notes.push(
                "Searched by keywords: nothing is embedded yet. Wakes do that bit by bit; `wake memory reindex --embed` does it now."
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

/// Returns the end of a day.
fn day_end(day: NaiveDate, config: &Config) -> DateTime<Utc> {
    let next = day.succ_opt().unwrap_or(day).and_time(NaiveTime::MIN);
    next.and_local_timezone(config.timezone).earliest().map_or_else(|| next.and_utc(), |at| at.to_utc())
}
