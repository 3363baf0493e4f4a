//! `memory_search`: searches the memory and all conversations by the index.

use std::cell::OnceCell;

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::{ChatRef, Effect};
use reveille_index::{
    Index, IndexError, OtherDocuments, SearchHit, SearchQuery, Sources,
    embed::{EmbedError, Meant},
};
use reveille_memory::{is_job, others};
use reveille_store::Store;

use super::{Done, Outcome, Refusal, Tool, World, check_text, read};

/// The name of the tool that searches the memory.
pub(super) const SEARCH: &str = "memory_search";
/// Default and maximum number of hits for one query.
const HITS: usize = 10;
const MAX_HITS: usize = 30;
/// Maximum number of queries in one call.
const MAX_QUERIES: usize = 5;
/// Maximum characters shown of a hit.
const MAX_CHARS: usize = 600;
/// The minimum score of a shown hit, as a share of the best hit's score.
const MIN_SCORE_SHARE: f32 = 0.2;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// A question, or words.
    query: String,
    /// Further questions, asked at the same time: other words for the same, or the steps of one that needs several.
    #[serde(default)]
    more_queries: Vec<String>,
    /// Hits for each, 10 when left out.
    #[serde(default)]
    limit: Option<usize>,
}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        SEARCH,
        "Search all memory files, the archive and what was said in earlier conversations; gives path, line, text and day, the best \
         first.",
        Effect::Read,
        search_memory,
    )
}

fn search_memory(args: &Search, world: &World) -> Outcome {
    let queries: Vec<String> = std::iter::once(&args.query)
        .chain(&args.more_queries)
        .map(|query| check_text(query, "query", 500))
        .collect::<Result<_, _>>()?;
    if queries.len() > MAX_QUERIES {
        return Err(Refusal::new(format!(
            "At most {MAX_QUERIES} queries are asked at once; {} were named.",
            queries.len()
        )));
    }
    let limit = args.limit.unwrap_or(HITS).clamp(1, MAX_HITS);
    let Searched { answers, note, .. } =
        find_hits(world, None, &queries, None, limit).map_err(|error| refuse_failed_search(&error))?;
    let (mut lines, mut taint) = (Vec::new(), None);
    let mut shown: Vec<(String, usize)> = Vec::new();
    for (query, hits) in queries.iter().zip(answers) {
        if queries.len() > 1 {
            lines.push(format!("About {query:?}:"));
        }
        let before = lines.len();
        for hit in hits {
            let place = (hit.path.clone(), hit.line);
            if shown.contains(&place) {
                continue;
            }
            let is_message = is_message_path(&hit.path);
            if hit.taint.is_some() && !is_message {
                taint = Some(others::ORIGIN.to_owned());
            }
            lines.push(format_hit(&hit, is_message, world));
            shown.push(place);
        }
        if lines.len() == before {
            lines.push(if queries.len() > 1 { "Nothing else was found." } else { "Nothing was found." }.to_owned());
        }
    }
    lines.extend(note);
    let kept_back = read::count_excluded_files(world);
    if kept_back > 0 {
        lines.push(format!("(Files that your person's rules keep from a search: {kept_back}.)"));
    }
    Ok(Done { taint, ..Done::from_text(lines.join("\n")) })
}

/// Formats a hit. Possibly untrusted messages are withheld.
fn format_hit(hit: &SearchHit, is_message: bool, world: &World) -> String {
    let day = hit.date.map(|day| format!(" ({day})")).filter(|_| is_message).unwrap_or_default();
    match &hit.taint {
        Some(taint) if is_message => {
            format!("{}: withheld{day}, because it may hold untrusted text ({taint}); read_exchange shows it", hit.path)
        }
        _ => {
            let line = if is_message { hit.line } else { world.memory.documents.to_visible_line(&hit.path, hit.line) };
            let speaker = match hit.speaker.as_str() {
                "" => String::new(),
                speaker if hit.text.contains(speaker) => String::new(),
                speaker => format!("{speaker}: "),
            };
            format!("{}:{line}: {speaker}{}{day}", hit.path, reveille_base::words::truncate_text(&hit.text, MAX_CHARS))
        }
    }
}

/// Returns true for the path of a message.
pub(super) fn is_message_path(path: &str) -> bool {
    path.starts_with("messages/") || path.starts_with("answers/")
}

/// The hits of each query, the embedded queries, and a note if the search was incomplete.
pub struct Searched {
    pub answers: Vec<Vec<SearchHit>>,
    pub meant: Option<Meant>,
    pub(crate) note: Option<String>,
}

/// Searches for each query, in all that the asking chat may see, including this cycle's staged files. Opens the store if none is given.
pub fn find_hits(
    world: &World,
    store: Option<&Store>,
    queries: &[String],
    within: Option<&str>,
    limit: usize,
) -> Result<Searched, IndexError> {
    let reader: Option<ChatRef> = world.memory.documents.reader();
    let is_hidden = |path: &str| path.starts_with("skills/") || is_job(path) || read::is_kept_back(world, path);
    let staged: Vec<(String, String)> =
        world.memory.documents.list_staged_files().into_iter().map(|file| (file.path, file.content)).collect();
    let search = |index: &mut Index, meant: Option<&Meant>| {
        let mut all = Vec::with_capacity(queries.len());
        for (nth, query) in queries.iter().enumerate() {
            let mut hits = index.search(&SearchQuery {
                text: query,
                limit,
                today: world.local_time().date_naive(),
                within,
                reader,
                owner: world.unasked.owner_chat,
                without_chats: &world.conversation.other_local_chats,
                hidden: Some(&is_hidden),
                vector: meant.and_then(|meant| meant.vector(nth)),
                ..SearchQuery::default()
            })?;
            let min_score = hits.first().map_or(0.0, |best| best.score * MIN_SCORE_SHARE);
            hits.retain(|hit| hit.score >= min_score && hit.speaks_for_itself());
            all.push(hits);
        }
        Ok(all)
    };
    let meant = OnceCell::new();
    let embed_and_search = |index: &mut Index| {
        let meant: &Result<Option<Meant>, EmbedError> =
            meant.get_or_init(|| world.memory.meaning.embed_questions(queries, index));
        index.with_documents(&staged, OtherDocuments::Shown, |index| {
            search(index, meant.as_ref().ok().and_then(Option::as_ref))
        })
    };
    let (brain, zone) = (world.memory.documents.dir(), world.clock.tz);
    let (answers, index_note) = match store {
        Some(_) => world.memory.index.ask_with_sources(&Sources { brain, store, zone }, embed_and_search)?,
        None => world.memory.index.ask(brain, zone, embed_and_search)?,
    };
    let (meant, embedding_note) = match meant.into_inner().transpose() {
        Ok(meant) => (meant.flatten(), None),
        Err(error) => {
            tracing::warn!(%error, "searched by keywords");
            (None, Some("Searched by words alone: the embedding model can't be reached just now.".to_owned()))
        }
    };
    let notes: Vec<String> = index_note.into_iter().chain(embedding_note).collect();
    let note = (!notes.is_empty()).then(|| format!("({})", notes.join(" ")));
    Ok(Searched { answers, meant, note })
}

/// Returns the refusal for a failed search.
pub(super) fn refuse_failed_search(error: &IndexError) -> Refusal {
    Refusal::new(format!("It couldn't be searched: {error}."))
}
