//! `/memory`: lists the files, or searches the memory and the messages; each match has its place and day.

use reveille_base::disk::format_size;
use reveille_git::{CommittedFile, RepoError};
use reveille_index::{Index, IndexError, IndexPlace, OtherDocuments, SearchHit, SearchQuery};

use super::{Desk, join_first_lines, seen::Seen, shorten_to_line};

/// Maximum number of listed files.
const MAX_FILES: usize = 20;
/// Maximum number of quoted lines.
const MAX_HITS: usize = 8;
/// Maximum characters of a quoted line.
const MAX_CHARS: usize = 200;
/// Minimum score of a quoted line, as a share of the best score.
const LEAST_PART: f32 = 0.3;

pub(super) fn answer(desk: &Desk<'_>, memory: &Seen<'_>, words: &str) -> Result<String, RepoError> {
    if words.is_empty() {
        return Ok(render_file_list(&memory.list_markdown()?));
    }
    // Searches the last commit, since a wake may be half-way through the work tree.
    let texts = memory.read_texts()?;
    Ok(match find_hits(desk, memory, &texts, words) {
        Ok((mut hits, note)) => {
            for hit in &mut hits {
                hit.line = memory.to_view_line(&hit.path, hit.line, &texts);
            }
            let note = note.map(|note| format!("\n{note}")).unwrap_or_default();
            format!("{}{note}", render_hits(words, &hits))
        }
        Err(error) => format!("I couldn't search my memory: {error}."),
    })
}

fn find_hits(
    desk: &Desk<'_>,
    memory: &Seen<'_>,
    texts: &[(String, String)],
    words: &str,
) -> Result<(Vec<SearchHit>, Option<String>), IndexError> {
    let config = desk.config;
    let query = SearchQuery {
        text: words,
        limit: MAX_HITS + 1,
        today: desk.now.with_timezone(&config.timezone).date_naive(),
        reader: memory.reader(),
        owner: config.owner_chat,
        ..SearchQuery::default()
    };
    let ask = |index: &mut Index| index.with_documents(texts, OtherDocuments::Hidden, |index| index.search(&query));
    let (mut hits, note) = IndexPlace::from_config(config).ask(&config.repo_dir(), config.timezone, ask)?;
    let least = hits.first().map_or(0.0, |best| best.score * LEAST_PART);
    hits.retain(|hit| hit.score >= least && hit.speaks_for_itself());
    Ok((hits, note))
}

fn render_file_list(files: &[CommittedFile]) -> String {
    let lines = files.iter().map(|file| format!("- {} ({})", file.path, format_size(file.bytes as u64)));
    let lines = join_first_lines(lines.collect(), MAX_FILES);
    format!("What I have written down:\n{lines}\n\nTo see what I know about something, add a few words: /memory wifi")
}

fn render_hits(words: &str, hits: &[SearchHit]) -> String {
    let words = shorten_to_line(words, 60);
    if hits.is_empty() {
        return format!("I have no notes about “{words}”.");
    }
    let lines = hits.iter().take(MAX_HITS).map(|hit| {
        let day = hit.date.map(|day| format!(", {day}")).unwrap_or_default();
        let text = shorten_to_line(&hit.text, MAX_CHARS);
        if hit.path.starts_with("answers/") {
            return format!("- I said: {text} ({}{day})", hit.path);
        }
        if hit.path.starts_with("messages/") {
            let who = if hit.speaker.is_empty() { "You" } else { &hit.speaker };
            return format!("- {who} said: {text} ({}{day})", hit.path);
        }
        let name = hit.path.rsplit('/').next().unwrap_or(&hit.path);
        let heading = if hit.heading.is_empty() || hit.date.is_some_and(|day| day.to_string() == hit.heading) {
            String::new()
        } else {
            format!("{}: ", shorten_to_line(&hit.heading, 60))
        };
        format!("- {heading}{text} ({name}, line {}{day})", hit.line)
    });
    let more = if hits.len() > MAX_HITS { "\nThere are more matches. Add words to narrow the search." } else { "" };
    format!("About “{words}”:\n{}{more}", lines.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_memory::{EPISODIC_MEMORY, SEMANTIC_MEMORY};

    fn found(docs: &[(&str, &str)], words: &str) -> Vec<SearchHit> {
        let docs: Vec<(String, String)> =
            docs.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let query = SearchQuery { text: words, limit: MAX_HITS + 1, ..SearchQuery::default() };
        Index::open_in_memory()
            .unwrap()
            .with_documents(&docs, OtherDocuments::Hidden, |index| index.search(&query))
            .unwrap()
    }

    #[test]
    fn files_are_listed_with_their_sizes() {
        let files: Vec<CommittedFile> =
            (1..=22).map(|n| CommittedFile { path: format!("memory/{n}.md"), bytes: n * 512 }).collect();
        let text = render_file_list(&files);
        assert!(text.contains("- memory/2.md (1.0 KiB)") && text.contains("\nand 2 more\n"), "{text}");
    }

    #[test]
    fn what_is_known_is_quoted_with_its_file_and_day() {
        let facts = "## Home\n- the wifi code is 1234 <!-- wake 20261121T140302Z-812 message 41 -->\n";
        let log = "## 2026-11-20\n- 10:00 told Bob the wifi code\n";
        let docs = [(SEMANTIC_MEMORY, facts), (EPISODIC_MEMORY, log)];
        insta::assert_snapshot!(render_hits("wifi code", &found(&docs, "wifi code")), @r"
        About “wifi code”:
        - Home: the wifi code is 1234 (semantic-memory.md, line 2, 2026-11-21)
        - 10:00 told Bob the wifi code (episodic-memory.md, line 2, 2026-11-20)
        ");
        insta::assert_snapshot!(render_hits("zebras", &[]), @"I have no notes about “zebras”.");
        let many: String = (0..12).map(|n| format!("- tea {n}\n")).collect();
        let text = render_hits("tea", &found(&[(SEMANTIC_MEMORY, &many)], "tea"));
        assert!(
            text.ends_with("\nThere are more matches. Add words to narrow the search.")
                && text.matches("- tea").count() == MAX_HITS,
            "{text}"
        );
    }
}
