//! Searches for files by name and by content, breadth first and within limits. Names of keys and of our own state are skipped.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use regex_lite::{Regex, RegexBuilder};

use reveille_base::words::{first_bytes, first_chars, last_chars};
use reveille_media::content;
use reveille_policy as policy;

use super::beneath::{BeneathKind, MAX_DEPTH, Place};

/// Maximum duration of one search.
pub const MAX_TIME: Duration = Duration::from_secs(10);
/// Maximum number of reported hits.
pub const MAX_HITS: usize = 200;
/// Maximum number of reported hits in one file.
const MAX_HITS_IN_FILE: usize = 20;
/// Maximum number of files and folders examined.
const MAX_SEEN: usize = 100_000;
/// Maximum size of a file whose content is searched, in bytes.
const MAX_FILE_BYTES: u64 = 2 << 20;
/// Maximum bytes of a line that are searched; longer lines are machine-made.
const MAX_LINE_BYTES: usize = 20_000;
/// Maximum characters of a line that are reported.
const MAX_TOLD_CHARS: usize = 300;

/// A search for names, for text, or for text in files with matching names.
#[derive(Debug, Clone)]
pub struct Query {
    name: Option<Regex>,
    text: Option<Regex>,
}

impl Query {
    /// Builds a query. `pattern` is a glob for names, or with a slash for paths below the folder. `text` is a regular
    /// expression for a line. Both ignore case.
    ///
    /// # Errors
    /// A sentence that names the invalid part.
    pub fn new(pattern: Option<&str>, text: Option<&str>) -> Result<Self, String> {
        let regex = |source: &str| RegexBuilder::new(source).case_insensitive(true).build();
        let name = pattern
            .map(|pattern| regex(&translate_glob(pattern)).map_err(|error| format!("pattern isn't a glob: {error}.")));
        let text = text.map(|text| regex(text).map_err(|error| format!("text isn't a regular expression: {error}.")));
        Ok(Self { name: name.transpose()?, text: text.transpose()? })
    }
}

/// Converts a glob to a regular expression for a whole path: `*` and `?` stay within a name, `**` crosses folders.
fn translate_glob(pattern: &str) -> String {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    // A name without a slash matches in any folder.
    let mut source = if pattern.contains('/') { "^".to_owned() } else { "^(?:.*/)?".to_owned() };
    let mut rest = pattern;
    let mut alternatives = 0;
    while let Some(c) = rest.chars().next() {
        let (part, length) = match c {
            _ if rest.starts_with("**/") => ("(?:.*/)?", 3),
            _ if rest.starts_with("**") => (".*", 2),
            '*' => ("[^/]*", 1),
            '?' => ("[^/]", 1),
            '{' => {
                alternatives += 1;
                ("(?:", 1)
            }
            ',' if alternatives > 0 => ("|", 1),
            '}' if alternatives > 0 => {
                alternatives -= 1;
                (")", 1)
            }
            _ => ("", c.len_utf8()),
        };
        match part {
            "" => source.push_str(&regex_lite::escape(c.encode_utf8(&mut [0; 4]))),
            part => source.push_str(part),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    source.push('$');
    source
}

/// One match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The absolute path.
    pub path: String,
    /// True for a folder.
    pub is_folder: bool,
    /// The line's number and text, in a search for text.
    pub line: Option<(usize, String)>,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Found {
    /// The hits.
    pub hits: Vec<Hit>,
    /// The number of files and folders examined.
    pub seen: usize,
    /// The number of skipped names of keys and private state.
    pub passed_by: usize,
    /// The number of files and folders skipped because of the person's rules.
    pub kept_back: usize,
    /// Why the search ended early.
    pub is_cut: Option<&'static str>,
}

/// A search's cancellation guard: dropping it cancels the search.
#[derive(Debug, Default)]
pub struct Wanted(Arc<AtomicBool>);

impl Wanted {
    /// Returns the flag polled by the search.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Searches folders. Blocks for a while, so don't call this on the main thread.
pub fn search_folders(
    starts: Vec<Place>,
    query: &Query,
    is_kept_back: &dyn Fn(&Path) -> bool,
    is_unwanted: &AtomicBool,
) -> Found {
    let end = Instant::now() + MAX_TIME;
    let mut search = Search { query, is_kept_back, is_unwanted, end, found: Found::default() };
    for start in starts {
        if is_kept_back(start.path()) {
            search.found.kept_back += 1;
        } else {
            search.from(start);
        }
    }
    search.found
}

struct Search<'a> {
    query: &'a Query,
    is_kept_back: &'a dyn Fn(&Path) -> bool,
    is_unwanted: &'a AtomicBool,
    end: Instant,
    found: Found,
}

impl Search<'_> {
    fn from(&mut self, start: Place) {
        if matches!(start.kind(), Ok(Some(BeneathKind::File))) {
            let name = start.name();
            return self.search_place(&start, &name, BeneathKind::File);
        }
        let mut folders = VecDeque::from([(start, String::new(), 0)]);
        while let Some((folder, below, depth)) = folders.pop_front() {
            // Unreadable folders are skipped.
            for entry in folder.list().unwrap_or_default() {
                if self.is_over() {
                    return;
                }
                let relative = if below.is_empty() { entry.name.clone() } else { format!("{below}/{}", entry.name) };
                if policy::is_sensitive(&relative) {
                    self.found.passed_by += 1;
                    continue;
                }
                let Ok(inner) = folder.join(&entry.name) else { continue };
                self.found.seen += 1;
                if (self.is_kept_back)(inner.path()) {
                    self.found.kept_back += 1;
                    continue;
                }
                self.search_place(&inner, &relative, entry.kind);
                if entry.kind == BeneathKind::Folder && depth < MAX_DEPTH {
                    folders.push_back((inner, relative, depth + 1));
                }
            }
        }
    }

    fn is_over(&mut self) -> bool {
        if self.found.is_cut.is_none() {
            self.found.is_cut = if self.found.hits.len() >= MAX_HITS {
                Some("there are more hits")
            } else if self.found.seen >= MAX_SEEN {
                Some("there are too many files")
            } else if Instant::now() >= self.end || self.is_unwanted.load(Ordering::Relaxed) {
                Some("it took too long")
            } else {
                None
            };
        }
        self.found.is_cut.is_some()
    }

    fn search_place(&mut self, place: &Place, relative: &str, kind: BeneathKind) {
        if kind == BeneathKind::Other || !self.query.name.as_ref().is_none_or(|name| name.is_match(relative)) {
            return;
        }
        let path = || place.path().display().to_string();
        match (&self.query.text, kind) {
            (None, _) => self.found.hits.push(Hit { path: path(), is_folder: kind == BeneathKind::Folder, line: None }),
            (Some(text), BeneathKind::File) => {
                let Some(content) = read_text(place) else { return };
                let mut in_file = 0;
                for (number, line) in (1..).zip(content.lines()) {
                    if in_file >= MAX_HITS_IN_FILE || number % 100 == 0 && self.is_over() {
                        return;
                    }
                    let looked_at = first_bytes(line, MAX_LINE_BYTES);
                    let Some(hit) = text.find(looked_at) else { continue };
                    in_file += 1;
                    let line = Some((number, cut_excerpt(looked_at, hit.start())));
                    self.found.hits.push(Hit { path: path(), is_folder: false, line });
                }
            }
            (Some(_), _) => {}
        }
    }
}

/// Reads a text file; `None` if the file is too large, binary or unreadable.
fn read_text(place: &Place) -> Option<String> {
    let (bytes, _) = place.read(MAX_FILE_BYTES).ok()?;
    let head = bytes.get(..bytes.len().min(content::HEAD_BYTES))?;
    content::is_text(head).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Shortens a line to an excerpt around the hit.
fn cut_excerpt(line: &str, hit: usize) -> String {
    let before = line.get(..hit).map_or(0, |before| before.chars().count());
    let skipped = before.saturating_sub(MAX_TOLD_CHARS / 3);
    let rest = last_chars(line, line.chars().count().saturating_sub(skipped));
    let shown = first_chars(rest, MAX_TOLD_CHARS);
    let begin = if skipped > 0 { "…" } else { "" };
    let end = if shown.len() < rest.len() { "…" } else { "" };
    format!("{begin}{}{end}", shown.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::beneath::{PathUse, Roots};

    #[test]
    fn globs_are_for_names_or_for_paths() {
        let matches = |pattern: &str, path: &str| Query::new(Some(pattern), None).unwrap().name.unwrap().is_match(path);
        for (pattern, path, is_match) in [
            ("*.md", "a.md", true),
            ("*.md", "deep/er/A.MD", true),
            ("*.md", "a.md.txt", false),
            ("notes/*.md", "notes/a.md", true),
            ("notes/*.md", "notes/deep/a.md", false),
            ("notes/**/*.md", "notes/deep/er/a.md", true),
            ("notes/**/*.md", "notes/a.md", true),
            ("notes/**", "notes/deep/a", true),
            ("*.{png,jpg}", "x/a.jpg", true),
            ("*.{png,jpg}", "a.gif", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("a.c", "abc", false),
            ("(a+)[b]", "(a+)[b]", true),
            ("a,b", "a,b", true),
            ("grün*", "Grün.txt", true),
        ] {
            assert_eq!(matches(pattern, path), is_match, "{pattern} {path}");
        }
        assert!(Query::new(Some("{a"), None).unwrap_err().contains("isn't a glob"));
        assert!(Query::new(None, Some("(a")).unwrap_err().contains("isn't a regular expression"));
    }

    fn found(dir: &std::path::Path, pattern: Option<&str>, text: Option<&str>) -> Found {
        let roots = Roots::new(dir, &dir.join("nowhere"));
        let start = roots.resolve(".", PathUse::Read).unwrap();
        search_folders(vec![start], &Query::new(pattern, text).unwrap(), &|_| false, &AtomicBool::new(false))
    }

    fn names(found: &Found, dir: &std::path::Path) -> Vec<String> {
        let short = |hit: &Hit| hit.path.replace(&format!("{}/", dir.display()), "");
        found
            .hits
            .iter()
            .map(|hit| hit.line.as_ref().map_or_else(|| short(hit), |(n, _)| format!("{}:{n}", short(hit))))
            .collect()
    }

    #[test]
    fn keys_links_and_binaries_are_passed_by() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::write(outside.path().join("secret.txt"), "the word").unwrap();
        for (path, text) in [
            ("a.txt", "nothing\nThe Word stands here\n"),
            ("deep/b.txt", "the word\nthe word\n"),
            ("deep/binary.txt", "the word \0"),
            (".git/config", "the word"),
            (".SSH/id", "the word"),
            (".config/gh/hosts.yml", "the word"),
            (".env", "the word"),
        ] {
            let full = dir.join(path);
            std::fs::create_dir_all(full.parent().unwrap()).unwrap();
            std::fs::write(full, text).unwrap();
        }
        std::os::unix::fs::symlink(outside.path(), dir.join("out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret.txt"), dir.join("secret.txt")).unwrap();
        assert!(std::fs::read_to_string(dir.join("out/secret.txt")).unwrap().contains("the word"), "the control");

        let by_text = found(dir, None, Some("the w[aeiou]rd"));
        assert_eq!(names(&by_text, dir), ["a.txt:2", "deep/b.txt:1", "deep/b.txt:2"]);
        assert_eq!((by_text.passed_by, by_text.is_cut), (4, None));
        let by_name = found(dir, Some("*.txt"), None);
        assert_eq!(names(&by_name, dir), ["a.txt", "deep/b.txt", "deep/binary.txt"]);
        assert_eq!(names(&found(dir, Some("a*"), Some("word")), dir), ["a.txt:2"]);
    }

    #[test]
    fn hits_are_bounded_and_long_lines_are_cut_around_them() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..20 {
            std::fs::write(dir.path().join(format!("{n}.txt")), "word\n".repeat(30)).unwrap();
        }
        let many = found(dir.path(), None, Some("word"));
        assert!((MAX_HITS..MAX_HITS + MAX_HITS_IN_FILE).contains(&many.hits.len()), "{}", many.hits.len());
        assert_eq!(many.is_cut, Some("there are more hits"));
        let long = format!("{}word{}", "ä".repeat(900), "ö".repeat(900));
        let shown = cut_excerpt(&long, long.find("word").unwrap());
        assert!(shown.starts_with("…ä") && shown.contains("word") && shown.ends_with("ö…"), "{shown}");
        assert_eq!(shown.chars().count(), MAX_TOLD_CHARS + 2);
    }

    #[test]
    fn a_search_that_nobody_wants_any_more_ends() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "").unwrap();
        let start = Roots::new(dir.path(), dir.path()).resolve(".", PathUse::Read).unwrap();
        let wanted = Wanted::default();
        let flag = wanted.flag();
        drop(wanted);
        let found = search_folders(vec![start], &Query::new(Some("*"), None).unwrap(), &|_| false, &flag);
        assert_eq!((found.hits.len(), found.is_cut), (0, Some("it took too long")));
    }
}
