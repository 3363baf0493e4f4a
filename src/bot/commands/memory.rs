//! `/memory`: what files there are; with words, the lines that speak of them, each with its file and day.

use super::{bounded, brief, seen::Seen};
use crate::{
    disk::size,
    memory::{
        DocKind,
        search::{MemoryHit, search},
    },
    repo::{CommittedFile, RepoError},
};

/// Files that are listed at most.
const MAX_FILES: usize = 20;
/// Lines that are quoted at most.
const MAX_HITS: usize = 8;
/// How much of a line is quoted, in characters.
const MAX_CHARS: usize = 200;
/// How much is searched, in bytes: what is older stays in the archive's files.
const MAX_SEARCHED_BYTES: usize = 8 << 20;

pub(super) fn answer(memory: &Seen<'_>, words: &str) -> Result<String, RepoError> {
    let files = memory.markdown()?;
    if words.is_empty() {
        return Ok(listing(&files));
    }
    let mut texts = Vec::new();
    let mut room = MAX_SEARCHED_BYTES;
    for file in searched(&files) {
        if let Some(left) = room.checked_sub(file.bytes)
            && let Some(text) = memory.read(&file.path)?
        {
            room = left;
            texts.push((file.path.as_str(), text));
        }
    }
    let docs: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
    Ok(quoted(words, &search(&docs, words, MAX_HITS + 1)))
}

/// What is memory, facts first: not the standing orders, nor skills.
fn searched(files: &[CommittedFile]) -> Vec<&CommittedFile> {
    let rank = |file: &&CommittedFile| match DocKind::of(&file.path) {
        DocKind::Facts => 0,
        DocKind::Tasks => 1,
        DocKind::Text => 2,
        DocKind::Log => 3,
    };
    let mut files: Vec<&CommittedFile> = files.iter().filter(|file| file.path.starts_with("memory/")).collect();
    files.sort_by_key(rank);
    files
}

fn listing(files: &[CommittedFile]) -> String {
    let lines = files.iter().map(|file| format!("- {} ({})", file.path, size(file.bytes as u64)));
    let lines = bounded(lines.collect(), MAX_FILES);
    format!("What I have written down:\n{lines}\n\n/memory with a few words says what I know about them: /memory wifi")
}

fn quoted(words: &str, hits: &[MemoryHit]) -> String {
    let words = brief(words, 60);
    if hits.is_empty() {
        return format!("I have no notes about “{words}”.");
    }
    let lines = hits.iter().take(MAX_HITS).map(|hit| {
        let name = hit.path.rsplit('/').next().unwrap_or(&hit.path);
        let day = hit.date.map(|day| format!(", {day}")).unwrap_or_default();
        let heading = if hit.heading.is_empty() || hit.date.is_some_and(|day| day.to_string() == hit.heading) {
            String::new()
        } else {
            format!("{}: ", brief(&hit.heading, 60))
        };
        format!("- {heading}{} ({name}, line {}{day})", brief(&hit.text, MAX_CHARS), hit.line)
    });
    let more = if hits.len() > MAX_HITS { "\nMore matches; narrow the search." } else { "" };
    format!("About “{words}”:\n{}{more}", lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{EPISODIC_MEMORY, SEMANTIC_MEMORY};

    #[test]
    fn files_are_listed_with_their_sizes() {
        let files: Vec<CommittedFile> =
            (1..=22).map(|n| CommittedFile { path: format!("memory/{n}.md"), bytes: n * 512 }).collect();
        let text = listing(&files);
        assert!(text.contains("- memory/2.md (1.0 KiB)") && text.contains("\nand 2 more\n"), "{text}");
    }

    #[test]
    fn what_is_known_is_quoted_with_its_file_and_day() {
        let facts = "## Home\n- the wifi code is 1234 <!-- wake 20261121T140302Z-812 message 41 -->\n";
        let log = "## 2026-11-20\n- 10:00 told Bob the wifi code\n";
        let docs = [(SEMANTIC_MEMORY, facts), (EPISODIC_MEMORY, log)];
        insta::assert_snapshot!(quoted("wifi code", &search(&docs, "wifi code", 9)), @r"
        About “wifi code”:
        - Home: the wifi code is 1234 (semantic-memory.md, line 2, 2026-11-21)
        - 10:00 told Bob the wifi code (episodic-memory.md, line 2, 2026-11-20)
        ");
        insta::assert_snapshot!(quoted("zebras", &[]), @"I have no notes about “zebras”.");
        let many: String = (0..12).map(|n| format!("- tea {n}\n")).collect();
        let text = quoted("tea", &search(&[(SEMANTIC_MEMORY, &many)], "tea", MAX_HITS + 1));
        assert!(
            text.ends_with("\nMore matches; narrow the search.") && text.matches("- tea").count() == MAX_HITS,
            "{text}"
        );
    }
}
