//! Measures a search in 100,000 entries: indexing their words, then a query in a running process and as a whole command, with and
//! without vectors. The yardstick is SQLite's own full-text search of the same entries.

use rusqlite::Connection;
use std::{fmt::Write as _, path::Path};

use reveille_base::zone::Tz;
use reveille_index::{Index, QueryVector, SearchQuery, Sources};

use super::{
    measure::{Pair, milliseconds, timed},
    support::env::TestEnv,
    table::{Bound, Row},
};

const ENTRIES: usize = 100_000;
const ENTRIES_PER_FILE: usize = 2_000;
const DIMS: usize = 384;
const HITS: usize = 10;
const PLAIN: &str = "SQLite's FTS5, BM25";
/// The name under which the random vectors are stored.
const MODEL: &str = "benchmark";
/// The number of different words. A few of them are far more frequent than the rest, as in any language.
const VOCABULARY: usize = 30_000;
const SPEAKERS: [&str; 6] = ["Caroline", "Melanie", "Anna", "Bob", "Eve", "Novak"];

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let mut dice = Dice(7);
    let mut plain = PlainSearch::create(&env.workspace().join("plain.db"));
    for file in 0..ENTRIES / ENTRIES_PER_FILE {
        let folder = env.brain().join("memory/talks");
        std::fs::create_dir_all(&folder).unwrap();
        let text = talk(file, &mut dice);
        plain.add(&text);
        std::fs::write(folder.join(format!("{file}.md")), text).unwrap();
    }
    let path = env.workspace().join("index.db");
    std::fs::remove_file(&path).ok();
    let brain = env.brain();
    let sources = Sources { brain: &brain, store: None, zone: Tz::UTC };
    let mut index = Index::open(&path).unwrap();
    let built = timed(|| assert!(!index.refresh(&sources, None).unwrap().is_partial));
    let rate = ENTRIES as f64 / built.as_secs_f64();
    let again = milliseconds(timed(|| assert!(!index.refresh(&sources, None).unwrap().is_partial)));
    let (mut words, mut plain_words, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let asked = question(&mut dice);
        words.push(milliseconds(timed(|| assert!(search(&mut index, &asked, None) <= HITS))));
        plain_words.push(milliseconds(timed(|| assert!(plain.search(&asked) > 0))));
        whole.push(milliseconds(timed(|| drop(env.wake(&["memory", "search", "--json", &asked]).ok()))));
    }
    loop {
        let missing = index.list_unembedded(MODEL, 4_096).unwrap();
        if missing.is_empty() {
            break;
        }
        let vectors: Vec<_> = missing.into_iter().map(|(key, _)| (key, dice.vector())).collect();
        index.put_vectors(MODEL, DIMS, &vectors).unwrap();
    }
    search(&mut index, "warm", Some(&dice.vector()));
    let (mut both, mut plain_both, mut cold) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (asked, vector) = (question(&mut dice), dice.vector());
        both.push(milliseconds(timed(|| assert!(search(&mut index, &asked, Some(&vector)) <= HITS))));
        plain_both.push(milliseconds(timed(|| assert!(plain.search(&asked) > 0))));
    }
    for _ in 0..rounds {
        let (asked, vector) = (question(&mut dice), dice.vector());
        // Like a whole command without the start of its process: nothing is in memory.
        cold.push(milliseconds(timed(|| {
            assert!(search(&mut Index::open(&path).unwrap(), &asked, Some(&vector)) <= HITS);
        })));
    }
    // One question after another without a pause, as in a process that is asked repeatedly.
    let mut warm = Vec::new();
    for _ in 0..4 * rounds {
        let (asked, vector) = (question(&mut dice), dice.vector());
        warm.push(milliseconds(timed(|| assert!(search(&mut index, &asked, Some(&vector)) <= HITS))));
    }
    let median = |values: Vec<f64>| Ok(vec![super::measure::Spread::new(values).median()]);
    vec![
        Row::alone("100,000 entries, indexed by words", "/s", Ok(vec![rate]), Bound::AtLeast(20_000.0)),
        Row::alone("the same, when nothing changed", "ms", Ok(vec![again]), Bound::None),
        Row::pair("a question, by words", PLAIN, Pair::of(words, plain_words), Bound::Ratio(1.0)),
        Row::pair("a question, by words and vectors", PLAIN, Pair::of(both, plain_both), Bound::Ratio(1.0)),
        Row::alone("the same, in a warm process (median)", "ms", median(warm), Bound::Max(5.0)),
        Row::alone("the same, with nothing in memory (median)", "ms", median(cold), Bound::Max(30.0)),
        Row::alone("wake memory search (median)", "ms", median(whole), Bound::Max(30.0)),
    ]
}

fn search(index: &mut Index, text: &str, vector: Option<&[f32]>) -> usize {
    let vector = vector.map(|values| QueryVector { model: MODEL, values });
    index.search(&SearchQuery { text, limit: HITS, vector, ..SearchQuery::default() }).unwrap().len()
}

/// The obvious alternative: the entries in FTS5, searched for any of a question's words, the best by BM25 first.
struct PlainSearch(Connection);

impl PlainSearch {
    fn create(path: &Path) -> Self {
        let db = Connection::open(path).unwrap();
        db.execute_batch("CREATE VIRTUAL TABLE entry USING fts5(text, tokenize = 'porter unicode61')").unwrap();
        Self(db)
    }

    fn add(&mut self, text: &str) {
        let tx = self.0.transaction().unwrap();
        for line in text.lines().filter(|line| !line.is_empty()) {
            tx.prepare_cached("INSERT INTO entry VALUES (?1)").unwrap().execute([line]).unwrap();
        }
        tx.commit().unwrap();
    }

    fn search(&self, question: &str) -> usize {
        let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let any = words.map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" OR ");
        let sql = "SELECT text FROM entry WHERE entry MATCH ?1 ORDER BY bm25(entry) LIMIT 10";
        let mut found = self.0.prepare_cached(sql).unwrap();
        found.query_map([any], |row| row.get::<_, String>(0)).unwrap().count()
    }
}

fn talk(file: usize, dice: &mut Dice) -> String {
    let mut text = format!("# Talk {file}\n");
    for entry in 0..ENTRIES_PER_FILE {
        if entry % 40 == 0 {
            writeln!(text, "\n## Session {} ({} May, 20{:02})\n", entry / 40, 1 + entry / 40 % 28, file % 26).unwrap();
        }
        let speaker = SPEAKERS[(file + entry % 2) % SPEAKERS.len()];
        let words: Vec<String> = (0..8 + dice.below(16)).map(|_| dice.word()).collect();
        writeln!(text, "{speaker}: {}.", words.join(" ")).unwrap();
    }
    text
}

fn question(dice: &mut Dice) -> String {
    let words: Vec<String> = (0..3 + dice.below(4)).map(|_| dice.word()).collect();
    format!("What did {} say of {}?", SPEAKERS[dice.below(SPEAKERS.len())], words.join(" "))
}

/// A generator of random numbers, the same in each run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// A random word; the n-th most common one is about n times rarer than the most common.
    fn word(&mut self) -> String {
        let share = (self.next() % 1_000_000) as f64 / 1e6;
        let rank = (VOCABULARY as f64).powf(share) as usize;
        let letters = ["ba", "ko", "ri", "te", "mu", "sa", "lo", "ne", "di", "fa"];
        let mut rest = rank * 7 + 13;
        let mut word = String::new();
        while rest > 0 {
            word.push_str(letters[rest % 10]);
            rest /= 10;
        }
        word
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMS).map(|_| (self.next() % 2_001) as f32 / 1_000.0 - 1.0).collect()
    }
}
