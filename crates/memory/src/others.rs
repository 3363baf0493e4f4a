//! Finds the untrusted parts of the memory: parts written by a tainted cycle and never confirmed by a person.
//!
//! Instructions from others could hide there for a later cycle unaware of their origin. A cycle therefore starts without these parts, and
//! reading them later taints it. These parts are untrusted: facts in quarantine under [`UNCONFIRMED`], log entries without a mark that
//! their wake was clean, imports from other programs ([`super::imported`]), and everything written for another chat than the reader's. The
//! module reads by lines as well as by Markdown, so that damage makes more of a document count as untrusted, never less. Text a person
//! writes or moves elsewhere is trusted.

use std::ops::Range;

use reveille_base::types::ChatRef;

use super::{
    CHATS_DIR, DocKind, imported, is_disguised, is_imported,
    sections::Document,
    steps,
    text::{fold_text, is_blank, slice, split_comment, split_lines},
};

/// The heading of facts learnt by a tainted cycle.
pub const UNCONFIRMED: &str = "Unconfirmed";

/// The name of these parts as an origin.
pub const ORIGIN: &str = "unconfirmed parts of the memory";

/// The mark of a clean wake, after the wake's id in an entry's comment. Entries older than these marks carry neither.
const OWN: &str = "own";
/// The mark of a clean wake, as it follows the wake's id and chat in the comment of a log entry.
pub const OWN_MARK: &str = " own";
/// The mark of a tainted wake, in the same place.
pub const TAINTED_MARK: &str = " after others";
/// The mark of a tainted wake; in the comment of a fact, the origins follow.
pub(super) const AFTER: &str = "after";

/// Returns the mark that follows a wake's id and chat in the comment of its log entry.
pub fn format_mark(has_read_others: bool) -> &'static str {
    if has_read_others { TAINTED_MARK } else { OWN_MARK }
}

/// Returns the untrusted parts of a document as byte ranges of whole lines, in order and apart. `reader` is the reading chat, if not the
/// owner's.
pub fn find_untrusted(path: &str, text: &str, reader: Option<ChatRef>) -> Vec<Range<usize>> {
    if let Some(below) = path.strip_prefix(CHATS_DIR).filter(|below| below.starts_with('/')) {
        let is_own = reader.is_some_and(|chat| below.starts_with(&format!("/{chat}/")));
        return if is_own || text.is_empty() { Vec::new() } else { std::iter::once(0..text.len()).collect() };
    }
    // A disk could resolve this path to any document, so the owner of each line is unknown.
    // fault: another-program-holds-persons
    if is_disguised(path) || is_imported(path) {
        return if text.is_empty() { Vec::new() } else { std::iter::once(0..text.len()).collect() };
    }
    match DocKind::from_path(path) {
        DocKind::Facts => {
            let unconfirmed = unconfirmed_sections(text).into_iter().chain(unconfirmed_lines(text));
            join_ranges(unconfirmed.chain(facts_of_guests(text, reader)).collect())
        }
        DocKind::Log => join_ranges(find_untrusted_entries(text, reader)),
        DocKind::Tasks => join_ranges(tasks_of_others(text, reader)),
        DocKind::Text => Vec::new(),
    }
}

/// Returns whether a document at this path may have untrusted parts.
pub fn may_have_untrusted(path: &str) -> bool {
    path.starts_with(CHATS_DIR) || is_imported(path) || DocKind::from_path(path) != DocKind::Text || is_disguised(path)
}

/// Returns the document without its untrusted parts, and the number of facts, entries or tasks left out.
pub fn remove_untrusted(path: &str, text: &str, reader: Option<ChatRef>) -> (String, usize) {
    let mut left = String::with_capacity(text.len());
    let (mut at, mut count) = (0, 0);
    let is_task = |line: &&str| parse_heading(line).is_some_and(|(level, _)| level == 2);
    let is_entry = |line: &&str| is_item(line) || words_of_wake(line).is_some();
    let are_tasks = DocKind::from_path(path) == DocKind::Tasks;
    for part in find_untrusted(path, text, reader) {
        left.push_str(slice(text, at..part.start));
        let counted = |line: &&str| if are_tasks { is_task(line) } else { is_entry(line) };
        count += split_lines(slice(text, part.clone())).filter(counted).count().max(1);
        at = part.end;
    }
    left.push_str(slice(text, at..text.len()));
    (left, count)
}

/// Returns whether any line from `first` to `last`, counted from 1, is untrusted.
pub fn has_untrusted_lines(path: &str, text: &str, reader: Option<ChatRef>, first: usize, last: usize) -> bool {
    let lines_before = |at: usize| slice(text, 0..at).lines().count();
    find_untrusted(path, text, reader)
        .iter()
        .any(|part| lines_before(part.start) < last && first <= lines_before(part.end))
}

/// Returns the untrusted parts as first and last line numbers, counted from 1. Linear in the text's length.
pub fn line_ranges(path: &str, text: &str, reader: Option<ChatRef>) -> Vec<(usize, usize)> {
    super::text::line_ranges(text, find_untrusted(path, text, reader))
}

/// Returns the quarantine sections according to the Markdown.
fn unconfirmed_sections(text: &str) -> Vec<Range<usize>> {
    let document = Document::split(text);
    document.parts.iter().filter(|part| is_quarantine(&part.title)).map(|part| part.range.clone()).collect()
}

/// Returns the lines below a quarantine heading, judged by lines alone, and facts that a merge moved into a quote.
fn unconfirmed_lines(text: &str) -> Vec<Range<usize>> {
    let mut depth = None;
    let is_hidden = |line: &str| {
        if let Some((level, title)) = parse_heading(line) {
            depth = depth.filter(|outer| level > *outer);
            if depth.is_none() && is_quarantine(title) {
                depth = Some(level);
            }
        }
        depth.is_some() || line.trim_start().starts_with('>') && is_tainted_line(line)
    };
    find_matching_lines(text, is_hidden)
}

/// Returns entries of tainted wakes, of wakes without a mark, and for other chats.
fn find_untrusted_entries(text: &str, reader: Option<ChatRef>) -> Vec<Range<usize>> {
    items_of_wakes(text, |words| !is_own(words, reader))
}

/// Returns facts learnt in another chat. A topic with only such facts is included, since its name is the guest's word too.
fn facts_of_guests(text: &str, reader: Option<ChatRef>) -> Vec<Range<usize>> {
    let document = Document::split(text);
    let mut hidden = items_of_wakes(text, |words| is_of_another_chat(words, reader));
    let is_theirs = |part: &&super::sections::Part| {
        let (mut at, mut some) = (part.body_start, false);
        part.level == 2
            && split_lines(slice(text, part.body_start..part.range.end)).all(|line| {
                let is_hidden = hidden.iter().any(|item| item.contains(&at));
                some |= is_hidden;
                at += line.len();
                is_hidden || is_blank(line)
            })
            && some
    };
    let topics: Vec<_> = document.parts.iter().filter(is_theirs).map(|part| part.range.clone()).collect();
    hidden.extend(topics);
    hidden
}

/// Returns the tasks of another chat, unconfirmed imports, and tainted steps, each whole.
fn tasks_of_others(text: &str, reader: Option<ChatRef>) -> Vec<Range<usize>> {
    let document = Document::split(text);
    let names_another = |line: &str| {
        let key = line.trim_start_matches(['-', '*', '+', ' ']).to_lowercase();
        let chat = key.strip_prefix("chat:").and_then(|chat| split_comment(chat).0.trim().parse::<ChatRef>().ok());
        chat.is_some_and(|chat| Some(chat) != reader)
    };
    // fault: task-came-stands-next
    let is_theirs = |line: &str| names_another(line) || imported::is_mark(line) || steps::is_tainted_mark(line);
    let theirs = document.sections().filter(|part| split_lines(document.slice(&part.range)).any(is_theirs));
    theirs.map(|part| part.range.clone()).collect()
}

/// Returns the items of matching wakes, each up to the next item, heading or line of a person.
fn items_of_wakes(text: &str, is_such: impl Fn(&[&str]) -> bool) -> Vec<Range<usize>> {
    let mut is_hidden = false;
    find_matching_lines(text, |line| {
        let wake = words_of_wake(line);
        if wake.is_some() || is_item(line) || parse_heading(line).is_some() {
            is_hidden = wake.is_some_and(|words| is_such(&words));
        }
        is_hidden
    })
}

/// Returns the byte ranges of the matching lines.
fn find_matching_lines(text: &str, mut is_such: impl FnMut(&str) -> bool) -> Vec<Range<usize>> {
    let mut at = 0;
    let ranges = split_lines(text).filter_map(|line| {
        let range = at..at + line.len();
        at = range.end;
        is_such(line).then_some(range)
    });
    ranges.collect()
}

fn join_ranges(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut all: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match all.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => all.push(range),
        }
    }
    all
}

pub(super) fn is_quarantine(title: &str) -> bool {
    // fault: facts-quarantine-stand-next
    fold_text(title) == fold_text(UNCONFIRMED)
}

/// Parses a line that looks like a heading into level and title. A Markdown parser would be wrong here: damage such as an unclosed fence
/// would hide the quarantine heading and release the facts below.
pub(super) fn parse_heading(line: &str) -> Option<(usize, &str)> {
    let marks = line.trim_start_matches(['\u{feff}', ' ']);
    let title = marks.trim_start_matches('#');
    let level = marks.len() - title.len();
    let is_apart = title.is_empty() || title.starts_with([' ', '\t', '\n', '\r']);
    (level > 0 && is_apart).then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

fn is_item(line: &str) -> bool {
    line.starts_with(['-', '*', '+'])
}

/// Returns the words of a line's trailing comment, if a wake wrote it.
fn words_of_wake(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = split_comment(line).1?.split_whitespace().collect();
    (words.first() == Some(&"wake")).then_some(words)
}

/// Returns whether the comment is exactly `wake ID own`, or `wake ID chat N own` for the reader.
fn is_own(words: &[&str], reader: Option<ChatRef>) -> bool {
    matches!(words, [_, _, OWN] | [_, _, "chat", _, OWN]) && !is_of_another_chat(words, reader)
}

/// Returns whether the words before the origins, which others may have named, assign the line to a chat other than the reader's.
fn is_of_another_chat(words: &[&str], reader: Option<ChatRef>) -> bool {
    let mut chats = words.iter().take_while(|word| **word != AFTER).skip_while(|word| **word != "chat").skip(1);
    chats.next().is_some_and(|chat| reader.is_none() || chat.parse().ok() != reader)
}

fn is_tainted_line(line: &str) -> bool {
    words_of_wake(line).is_some_and(|words| words.contains(&AFTER))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{EPISODIC_MEMORY, SEMANTIC_MEMORY, episodic, facts, strategies::document};

    const FACTS: &str = "# Facts\n\n## Family\n- Anna is my sister <!-- wake 1 message 2 -->\n\n## Unconfirmed\n- Eve may do all <!-- wake 2 after a page -->\n- by hand\n\n## Home\n- moved here <!-- wake 3 after a page -->\n";

    fn shown(path: &str, text: &str) -> String {
        remove_untrusted(path, text, None).0
    }

    #[test]
    fn under_a_name_that_a_disk_may_take_for_its_own_a_document_is_all_others() {
        for path in ["memory/agent-memory/Semantic-memory.md", "memory/Chats/77/context.md"] {
            assert_eq!(
                find_untrusted(path, FACTS, None),
                std::iter::once(0..FACTS.len()).collect::<Vec<_>>(),
                "{path}"
            );
            assert!(may_have_untrusted(path), "{path}");
        }
        assert!(find_untrusted("memory/diary.md", FACTS, None).is_empty());
    }

    #[test]
    fn facts_in_quarantine_are_left_out_and_what_a_person_moved_is_theirs() {
        let (shown, count) = remove_untrusted(SEMANTIC_MEMORY, FACTS, None);
        assert_eq!(count, 2);
        assert_eq!(
            shown,
            "# Facts\n\n## Family\n- Anna is my sister <!-- wake 1 message 2 -->\n\n## Home\n- moved here <!-- wake 3 after a page -->\n"
        );
        assert_eq!(remove_untrusted("memory/notes.md", FACTS, None), (FACTS.to_owned(), 0));
    }

    #[test]
    fn damage_and_other_spellings_free_nothing() {
        for text in [
            "```\n## Unconfirmed\n- CANARY\n",
            "<!-- never closed\n\n## Unconfirmed\n- CANARY\n",
            "##  unconfirmed. ##\n- CANARY\n",
            "# Unconfirmed\n- CANARY\n",
            "## Unconfirmed\n```\n## Home\n```\n- CANARY\n",
            "## Unconfirmed\n### More\n- CANARY\n",
            "\u{feff}## Unconfirmed\r\n- CANARY\r\n",
            "## Home\n> - CANARY <!-- wake 2 chat 5 after a page -->\n",
            "## A\n- a\n\n## Unconfirmed\n- CANARY\n## B\n- b\n## UNCONFIRMED\n- CANARY\n",
        ] {
            assert!(!shown(SEMANTIC_MEMORY, text).contains("CANARY"), "{text:?}");
        }
    }

    #[test]
    fn entries_of_the_log_are_shown_when_their_wake_had_read_nothing_of_others() {
        let log = "## 2026-11-20\n- 09:00 CANARY <!-- wake 1 -->\n  CANARY\n- by hand\n- 10:00 b <!-- wake 2 own -->\n  more\n\n\
                   ## 2026-11-21\n- 11:00 CANARY <!-- wake 3 after others -->\n\n  CANARY\n- 12:00 c <!-- wake 4 own -->\n\
                   > - 13:00 CANARY <!-- wake 5 own after others -->\n> CANARY\n- 14:00 CANARY <!-- wake own -->\n";
        let (shown, count) = remove_untrusted(EPISODIC_MEMORY, log, None);
        assert!(!shown.contains("CANARY"), "{shown}");
        assert_eq!(count, 4);
        assert!(
            ["- by hand\n", "b <!--", "  more\n", "c <!--", "## 2026-11-21\n"].iter().all(|own| shown.contains(own))
        );
        assert_eq!(remove_untrusted("memory/agent-memory/archive/2026-11.md", log, None).0, shown);
    }

    #[test]
    fn what_was_written_for_another_chat_is_a_guests_word() {
        let facts = "# Facts\n\n## Family\n- Anna is my sister <!-- wake 1 message 2 -->\n- CANARY <!-- wake 3 message 4 chat 5 -->\n  \
                     CANARY\n- by hand\n\n## CANARY obey\n- CANARY <!-- wake 3 message 4 chat 5 -->\n\n- CANARY <!-- wake 4 chat 5 after a \
                     page -->\n\n## Home\nby hand\n> - CANARY <!-- wake 3 chat 5 -->\n";
        let log =
            "## 2026-11-20\n- 09:00 CANARY <!-- wake 1 chat 5 own -->\n  CANARY\n- 10:00 mine <!-- wake 2 own -->\n";
        let tasks = "# Active\n\n## Mine\n- status: active\n\nchat: with mum\n\n## CANARY\n- status: active\n- chat: 5\n\n## CANARY two\n\
                     - Chat: 5 <!-- x -->\n\n## More\n- status: active\n";
        for (path, text, count, own) in [
            (SEMANTIC_MEMORY, facts, 4, &["my sister", "- by hand\n", "\n## Home\nby hand\n"] as &[&str]),
            (EPISODIC_MEMORY, log, 1, &["10:00 mine"]),
            (crate::ACTIVE, tasks, 2, &["## Mine", "with mum", "## More\n- status: active\n"]),
            ("memory/chats/5/context.md", "CANARY\n", 1, &[]),
        ] {
            let (shown, withheld) = remove_untrusted(path, text, None);
            assert!(!shown.contains("CANARY") && own.iter().all(|own| shown.contains(own)), "{path}: {shown}");
            assert_eq!(withheld, count, "{path}: {shown}");
            // To a third chat it is as foreign, and to the guest it is their own.
            assert_eq!(remove_untrusted(path, text, Some(ChatRef::from_telegram(55))).0, shown, "{path}");
            assert!(remove_untrusted(path, text, Some(ChatRef::from_telegram(5))).0.contains("CANARY"), "{path}");
            let line = text.lines().position(|line| line.contains("CANARY")).unwrap() + 1;
            assert!(
                line_ranges(path, text, None).iter().any(|(first, last)| (first..=last).contains(&&line)),
                "{path}"
            );
            assert!(
                has_untrusted_lines(path, text, None, line, line)
                    && !has_untrusted_lines(path, text, Some(ChatRef::from_telegram(5)), line, line),
                "{path}"
            );
        }
        assert!(may_have_untrusted("memory/chats/5/context.md") && !may_have_untrusted("memory/notes.md"));
    }

    #[test]
    fn what_is_read_is_told_by_its_lines() {
        let among = |first, last| has_untrusted_lines(SEMANTIC_MEMORY, FACTS, None, first, last);
        assert!(!among(1, 5) && among(1, 6) && among(7, 7) && among(8, 99) && !among(10, 11));
        assert!(!has_untrusted_lines(SEMANTIC_MEMORY, "", None, 1, 9));
    }

    proptest! {
        #[test]
        fn what_a_marked_cycle_writes_is_never_shown_and_the_rest_always_is(
            text in document(), canary in "[a-z]{12}", words in ".{0,30}",
        ) {
            prop_assume!(!text.contains(&canary));
            let fact = format!("{canary} {words}");
            let origin = format!("wake 1 message 2 {AFTER} a page");
            if let Ok(facts::Added::New { text: new, .. }) = facts::add(&text, Some(UNCONFIRMED), &fact, &origin) {
                prop_assert!(!shown(SEMANTIC_MEMORY, &new).contains(&canary), "{:?}", new);
            }
            let day = chrono::NaiveDate::from_ymd_opt(2026, 11, 21).unwrap();
            let log = |mark: &str| episodic::append_entry(&text, day, chrono::NaiveTime::MIN, &["Woke", &fact, &canary], &format!("1{mark}"));
            let (theirs, own) = (log(TAINTED_MARK), log(OWN_MARK));
            prop_assert!(!shown(EPISODIC_MEMORY, &theirs).contains(&canary), "{:?}", theirs);
            prop_assert!(shown(EPISODIC_MEMORY, &own).contains(&canary), "{:?}", own);
        }
    }
}
