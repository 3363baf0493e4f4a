//! A search: parse the question, gather candidates and their neighbours, rank them, and add their sources.

use std::collections::{HashMap, HashSet};

use chrono::NaiveDate;
use rusqlite::{OptionalExtension as _, Row};

use reveille_base::types::ChatRef;
use reveille_memory::EPISODIC_MEMORY;

use super::{
    ChatNumber, ChunkKind, ChunkOrigin, Index, IndexError, SearchHit, SearchQuery,
    chunk::BETWEEN_HEADINGS,
    hash::{ByNumber, KeySet},
    recorded::RECORDINGS,
    scope::{Scope, find_guest_name},
    score::{self, Candidate},
    sql_list,
    terms::{is_stop_word, split_words},
    vectors::{Cosines, Direction},
    weights,
    write::date_from_number,
};

/// The maximum number of candidates with neighbours.
const MAX_WITH_NEIGHBOURS: usize = 100;
/// The number of lines before and after a candidate.
const NEIGHBOURS: i64 = 2;

/// The log's verbs for recording what was said. Any other verb, such as "finished", adds information.
const NOTING_VERBS: &str = "Remembered Put Added Set Noted Answered";
/// The minimum number of words in a repetition; shorter lines could match by chance.
const MIN_REPEATED_WORDS: usize = 3;

/// The columns read for a chunk.
const COLUMNS: &str =
    "id, document, ord, line, last_line, kind, message, key, date, chat, taint, guest_taint, speaker, heading, above,
    origin, text";

impl Index {
    /// Returns the best hits, best first.
    ///
    /// # Errors
    /// The index can't be read, or the query's vector has other dimensions than its model.
    pub fn search(&mut self, query: &SearchQuery<'_>) -> Result<Vec<SearchHit>, IndexError> {
        if !self.conn.is_autocommit() {
            return self.search_within(query);
        }
        // One transaction for hundreds of statements, because each alone would lock the file again.
        self.conn.execute_batch("BEGIN")?;
        let found = self.search_within(query);
        if !self.conn.is_autocommit() {
            self.conn.execute_batch("ROLLBACK")?;
        }
        found
    }

    fn search_within(&mut self, query: &SearchQuery<'_>) -> Result<Vec<SearchHit>, IndexError> {
        let wanted = self.parse_query(query)?;
        let direction = query.vector.map(|vector| self.find_direction(vector)).transpose()?.flatten();
        if wanted.words.is_empty() && wanted.span.is_none() && direction.is_none() {
            return Ok(Vec::new());
        }
        let scope = self.build_scope(query)?;
        let (ids, cosines) = self.gather_candidates(&wanted, &scope, direction.as_ref())?;
        let mut candidates = self.with_neighbours(&ids, &scope)?;
        if let Some(direction) = &direction {
            self.add_cosines(&mut candidates, direction, &cosines);
        }
        let features = score::compute_features(&wanted, &candidates);
        let mut ranked: Vec<Ranked> = candidates
            .into_iter()
            .zip(features)
            // A candidate without a vector is ranked by words, among those with one.
            .map(|(candidate, features)| {
                let weights = weights::select_weights(candidate.cosine.is_some());
                (weights::compute_score(&features, weights), candidate, features)
            })
            .collect();
        rank_facts_before_sources(&mut ranked);
        ranked.sort_by(|(one, a, _), (other, b, _)| other.total_cmp(one).then(b.id.cmp(&a.id)));
        let mut shown_messages = HashSet::new();
        let mut shown_texts = WordsByDay::default();
        let mut found = Vec::new();
        for (score, candidate, features) in ranked {
            if found.len() >= query.limit {
                break;
            }
            // A message is found once, by its best part.
            if candidate
                .message
                .is_some_and(|message| !shown_messages.insert((message, candidate.kind == ChunkKind::Answer)))
            {
                continue;
            }
            let path = match candidate.message {
                Some(message) if candidate.kind == ChunkKind::Answer => format!("answers/{message}"),
                Some(message) => format!("messages/{message}"),
                None => {
                    let Some(path) = self.find_path(candidate.document)? else { continue };
                    // A guest's recordings are visible only to that guest.
                    let is_owners = |chat: ChatRef| chat == query.owner || chat.is_terminal();
                    let is_a_guests = candidate.chat.is_some_and(|chat| !is_owners(chat));
                    if path.starts_with(RECORDINGS) && is_a_guests && candidate.chat != query.reader {
                        continue;
                    }
                    match query.reader {
                        Some(reader) => find_guest_name(&path, reader).unwrap_or(path),
                        None => path,
                    }
                }
            };
            if shown_texts.is_repeat_or_add(&candidate, &path) {
                continue;
            }
            found.push(to_hit(*candidate, path, score, features, query));
        }
        Ok(found)
    }

    /// Returns the candidates, and the lines around the first ones, sorted by position.
    #[expect(clippy::vec_box, reason = "hundreds of bytes each, and they are sorted twice")]
    fn with_neighbours(&self, ids: &[i64], scope: &Scope) -> Result<Vec<Box<Candidate>>, IndexError> {
        let mut found = CandidatesById::default();
        self.read_chunks(ids.to_vec(), &mut found)?;
        let first = ids.get(..MAX_WITH_NEIGHBOURS).unwrap_or(ids);
        let mut near = KeySet::default();
        // Positions in a document are consecutive, so one query finds both sides for all candidates. In a conversation they are times.
        let mut around = self.conn.prepare_cached(&format!(
            "SELECT id FROM
                (SELECT document AS of, ord AS at FROM (SELECT value AS sought FROM json_each(?1))
                 CROSS JOIN chunks ON id = sought WHERE message IS NULL)
             CROSS JOIN chunks ON document = of AND ord BETWEEN at - {NEIGHBOURS} AND at + {NEIGHBOURS}"
        ))?;
        let mut rows = around.query([sql_list(first)])?;
        while let Some(row) = rows.next()? {
            near.insert(row.get(0)?);
        }
        let [before, after] = [("<", "DESC"), (">", "ASC")].map(|(side, order)| {
            format!(
                "SELECT id FROM chunks WHERE document = ?1 AND (ord, id) {side} (?2, ?3)
                 ORDER BY ord {order}, id {order} LIMIT {NEIGHBOURS}"
            )
        });
        for candidate in first.iter().filter_map(|id| found.get(id)).filter(|candidate| candidate.message.is_some()) {
            for look in [&before, &after] {
                let mut statement = self.conn.prepare_cached(look)?;
                let mut rows = statement.query((candidate.document, candidate.ord, candidate.id))?;
                while let Some(row) = rows.next()? {
                    near.insert(row.get(0)?);
                }
            }
        }
        near.retain(|id| scope.is_allowed(*id) && !found.contains_key(id));
        self.read_chunks(near.into_iter().collect(), &mut found)?;
        let mut all: Vec<Box<Candidate>> = found.into_values().collect();
        all.sort_by_key(|candidate| (candidate.document, candidate.ord, candidate.id));
        Ok(all)
    }

    /// Reads chunks with a single statement in storage order, because hundreds of separate ones take longer than the reading. Candidates
    /// are large and often moved, so each is boxed.
    fn read_chunks(&self, mut ids: Vec<i64>, found: &mut CandidatesById) -> Result<(), IndexError> {
        ids.sort_unstable();
        let mut by_id = self.conn.prepare_cached(&format!(
            "SELECT {COLUMNS} FROM (SELECT value AS sought FROM json_each(?1)) CROSS JOIN chunks ON id = sought"
        ))?;
        let mut rows = by_id.query([sql_list(&ids)])?;
        while let Some(row) = rows.next()? {
            found.insert(row.get(0)?, Box::new(read_candidate(row)?));
        }
        Ok(())
    }

    fn add_cosines(&self, candidates: &mut [Box<Candidate>], direction: &Direction, known: &Cosines) {
        // An estimate is enough for distant vectors: it needs only their bits, which are in memory, and no read of their bytes.
        let keys = candidates.iter().map(|candidate| candidate.key).filter(|key| !known.contains_key(key)).collect();
        let estimated = self.estimate_cosines(direction, &keys);
        for candidate in candidates {
            candidate.cosine = known.get(&candidate.key).or_else(|| estimated.get(&candidate.key)).copied();
        }
    }

    fn find_path(&self, document: i64) -> Result<Option<String>, IndexError> {
        let mut statement = self.conn.prepare_cached("SELECT path FROM documents WHERE id = ?1")?;
        Ok(statement.query_row([document], |row| row.get(0)).optional()?)
    }
}

type CandidatesById = HashMap<i64, Box<Candidate>, ByNumber>;
type Ranked = (f32, Box<Candidate>, weights::Features);

/// The words of the hits so far, by day.
#[derive(Default)]
struct WordsByDay(HashMap<Option<NaiveDate>, Vec<HashSet<String>>>);

impl WordsByDay {
    /// Returns whether a line of the log or of a recording only repeats an earlier hit: a single text of that day contains every word
    /// except the verb. Any other text is added, for comparison with later lines.
    fn is_repeat_or_add(&mut self, candidate: &Candidate, path: &str) -> bool {
        let is_record = path == EPISODIC_MEMORY || path.starts_with(RECORDINGS);
        let texts = self.0.entry(candidate.date).or_default();
        if is_record {
            let words: Vec<String> = content_words(strip_log_frame(&candidate.text)).collect();
            let verbs: HashSet<String> = content_words(NOTING_VERBS).collect();
            let repeats = |text: &HashSet<String>| words.iter().all(|word| text.contains(word) || verbs.contains(word));
            return candidate.date.is_some() && words.len() >= MIN_REPEATED_WORDS && texts.iter().any(repeats);
        }
        texts.push(content_words(&candidate.text).collect());
        false
    }
}

/// Strips a log entry's frame: the wake's reason, the note of an answer, and the duration.
fn strip_log_frame(record: &str) -> &str {
    let frames = [("Woke for ", ". "), ("Answered ", ": ")];
    let done = frames.into_iter().fold(record, |text, (head, end)| {
        let after = text.split_once(head).and_then(|(_, rest)| rest.split_once(end));
        after.map_or(text, |(_, after)| after)
    });
    done.split(" It took ").next().unwrap_or(done)
}

/// Returns the stems of the meaningful words in a text.
fn content_words(text: &str) -> impl Iterator<Item = String> {
    split_words(text).into_iter().filter(|word| !is_stop_word(&word.folded)).map(|word| word.stem)
}

/// Ranks a fact before its source message and the answer, which say the same at greater length.
fn rank_facts_before_sources(ranked: &mut [Ranked]) {
    let mut best_by_wake: HashMap<String, f32> = HashMap::new();
    for (score, candidate, _) in ranked.iter().filter(|(_, candidate, _)| candidate.message.is_some()) {
        if let Some(wake) = parse_origin(candidate).wake {
            let best = best_by_wake.entry(wake).or_insert(*score);
            *best = best.max(*score);
        }
    }
    for (score, candidate, features) in ranked.iter_mut().filter(|(_, candidate, _)| candidate.kind == ChunkKind::Fact)
    {
        let best_source = parse_origin(candidate).wake.and_then(|wake| best_by_wake.get(&wake));
        if let Some(best_source) = best_source.filter(|best| *best >= score && weights::speaks_for_itself(features)) {
            *score = best_source + f32::EPSILON * best_source.abs().max(1.0) * 8.0;
        }
    }
}

fn read_candidate(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    Ok(Candidate {
        id: row.get(0)?,
        document: row.get(1)?,
        ord: row.get(2)?,
        line: row.get(3)?,
        last_line: row.get(4)?,
        kind: ChunkKind::from_number(row.get(5)?),
        message: row.get(6)?,
        key: row.get(7)?,
        date: date_from_number(row.get(8)?),
        chat: row.get(9)?,
        taint: row.get(10)?,
        is_untrusted_to_guest: row.get(11)?,
        speaker: row.get(12)?,
        heading: row.get(13)?,
        above: row.get(14)?,
        origin: row.get(15)?,
        text: row.get(16)?,
        cosine: None,
    })
}

fn to_hit(
    candidate: Candidate,
    path: String,
    score: f32,
    features: weights::Features,
    query: &SearchQuery<'_>,
) -> SearchHit {
    let number = |line: i64| usize::try_from(line).unwrap_or(1).max(1);
    let origin = parse_origin(&candidate);
    let taint = describe_taint(&candidate, query);
    // The date has its own field. A heading that only repeats it is replaced by the one above, such as an imported chat's title.
    let title = candidate.above.rsplit(BETWEEN_HEADINGS).next().filter(|title| !title.is_empty());
    let heading = match (title, candidate.date) {
        (Some(title), Some(day)) if candidate.heading == day.to_string() => title.to_owned(),
        _ => candidate.heading,
    };
    SearchHit {
        path,
        line: number(candidate.line),
        last_line: number(candidate.last_line),
        kind: candidate.kind,
        text: candidate.text,
        heading,
        speaker: candidate.speaker,
        date: candidate.date,
        origin,
        taint,
        score,
        features,
        has_vector: candidate.cosine.is_some(),
    }
}

/// Returns the untrusted sources of a candidate, from the reader's point of view.
fn describe_taint(candidate: &Candidate, query: &SearchQuery<'_>) -> Option<String> {
    if candidate.message.is_none() {
        return match query.reader {
            Some(_) => candidate.is_untrusted_to_guest.then(|| reveille_memory::others::ORIGIN.to_owned()),
            None => candidate.taint.clone(),
        };
    }
    let is_own = |chat: ChatRef| match query.reader {
        Some(reader) => chat == reader,
        None => chat == query.owner || chat.is_terminal(),
    };
    let of_chat = candidate.chat.filter(|chat| !is_own(*chat)).map(|chat| format!("what chat {chat} said"));
    match (candidate.taint.clone(), of_chat) {
        (Some(taint), Some(of_chat)) => Some(format!("{taint}, {of_chat}")),
        (taint, of_chat) => taint.or(of_chat),
    }
}

/// Returns the source of a candidate, from the wake's comment or the message's row.
fn parse_origin(candidate: &Candidate) -> ChunkOrigin {
    let words: Vec<&str> = candidate.origin.split_whitespace().take_while(|word| *word != "after").collect();
    let after = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    let number = |name: &str| after(name).and_then(|number| number.trim_end_matches(',').parse().ok());
    let is_from_wake = words.first() == Some(&"wake");
    ChunkOrigin {
        wake: after("wake").filter(|_| is_from_wake).map(|wake| wake.trim_end_matches(',').to_owned()),
        message: candidate.message.or_else(|| number("message").filter(|_| is_from_wake)),
        chat: candidate.chat.map(ChatNumber),
    }
}
