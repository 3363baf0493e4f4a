//! The view of the memory for one chat, which hides what other chats said.
//!
//! The memory is the owner's, and so is each line without a mark, whoever wrote it. A wake marks the lines it writes for another chat: a
//! fact and a log entry in their HTML comment (`chat 5555`), a task in a line `- chat: 5555`. A cycle of that chat sees the memory through
//! a [`View`], which shows only these lines. It also shows sections that a person marked `<!-- for: all -->`, except lines that a wake
//! wrote for others. The documents rewritten as a whole (working memory, context) exist once per chat. The standing orders can turn this
//! separation off.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use reveille_base::types::ChatRef;

use super::{
    CHATS_DIR, CONTEXT, DocKind, WORKING_MEMORY, is_disguised, is_imported, is_job, is_steering, merge,
    others::{self, AFTER},
    sections::{Document, Part},
    tasks::raw_task,
    text::{fold_text, is_blank, slice, split_comment, split_lines},
};

/// The line in the standing orders that turns the separation off. It counts only before the first section, and outside comments and code.
/// Any line that looks like a section heading ends this area. A Markdown parser could miss a heading in a damaged document, and damage must
/// never reveal more.
const SHARE: &str = "share between chats:";
/// The mark with which a person shows a section to every chat, placed after its heading or on a line of its own below.
pub const FOR_ALL: &str = "<!-- for: all -->";

/// A chat that doesn't exist; it sees only the parts marked for all.
pub const NOBODY: ChatRef = ChatRef::from_telegram(i64::MIN);

/// The memory as seen by one chat other than the owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    chat: ChatRef,
}

/// Returns the chat if it isn't the owner's: neither their own nor the terminal.
pub fn foreign_chat(chat: Option<ChatRef>, owner_chat: ChatRef) -> Option<ChatRef> {
    chat.filter(|chat| *chat != owner_chat && !chat.is_terminal())
}

/// Returns the text after a wake's id in the comment of a line for this chat.
pub fn format_origin(chat: Option<ChatRef>) -> String {
    chat.map(|chat| format!(" chat {chat}")).unwrap_or_default()
}

/// Returns whether the standing orders share memory between chats: a line `Share between chats: yes` before their first section.
pub fn is_shared(standing_orders: &str) -> bool {
    let document = Document::split(standing_orders);
    let mut at = 0;
    let front = split_lines(standing_orders).take_while(|line| !line.starts_with("## ")).filter(|line| {
        let range = at..at + line.len();
        at = range.end;
        !document.is_comment(&range) && !document.is_fenced(&range)
    });
    let mut values = front.filter_map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']).to_lowercase();
        line.strip_prefix(SHARE).map(|value| value.trim() == "yes")
    });
    // If the line appears twice with different values, the narrower counts.
    values.next().is_some_and(|first| first && values.all(|other| other))
}

/// Returns whether a comment shows its section to every chat.
pub(super) fn is_for_all(comment: &str) -> bool {
    comment.split_whitespace().eq(["for:", "all"])
}

/// Returns whether an edit would show a new line to a chat other than the owner's, or change the order of its lines. Only a person may do
/// this.
pub fn is_revealing(path: &str, old: &str, new: &str) -> bool {
    // Each chat has its own version of these or sees them unchanged, and a person approves each edit.
    if is_whole(path) {
        return false;
    }
    // Check each chat that a mark names, and one that no mark names.
    let mut views: BTreeSet<ChatRef> = split_lines(new).flat_map(find_named_chats).collect();
    views.insert(NOBODY);
    views.into_iter().map(View::for_chat).any(|view| {
        let (was, is) = (view.visible_text(path, old), view.visible_text(path, new));
        let mut was = split_lines(&was).filter(|line| !is_blank(line));
        // Removing lines reveals nothing; the remaining lines must keep their order.
        !split_lines(&is).filter(|line| !is_blank(line)).all(|line| was.any(|other| other == line))
    })
}

/// Returns whether a guest sees all of the document with this name: a version of their own, or one valid in every chat.
fn is_whole(path: &str) -> bool {
    matches!(path, WORKING_MEMORY | CONTEXT) || is_steering(path) && !is_job(path)
}

/// Returns the chats that parts of a document may be marked for. Includes [`NOBODY`] if parts may be marked for all. Empty if
/// nothing is marked.
pub fn find_marked_chats(path: &str, text: &str) -> BTreeSet<ChatRef> {
    let is_marked = |mark: &str| text.as_bytes().windows(mark.len()).any(|at| at.eq_ignore_ascii_case(mark.as_bytes()));
    // Marks in untrusted documents come from their authors, and don't count.
    if is_whole(path) || is_imported(path) || is_job(path) {
        return BTreeSet::new();
    }
    let named =
        if is_marked("chat") { split_lines(text).flat_map(find_named_chats).collect() } else { BTreeSet::new() };
    let for_all = is_marked("for:").then_some(NOBODY);
    named.into_iter().chain(for_all).collect()
}

/// Returns the chats that the marks of a line may name.
fn find_named_chats(line: &str) -> impl Iterator<Item = ChatRef> {
    let words = line.split([' ', '\t', '\n', '\r', ':']).filter(|word| !word.is_empty());
    let mut after_chat = false;
    words.filter_map(move |word| {
        let is_named = std::mem::replace(&mut after_chat, word.eq_ignore_ascii_case("chat"));
        is_named.then(|| word.parse().ok()).flatten()
    })
}

impl View {
    /// Creates the view of a cycle's chat.
    pub fn for_chat(chat: ChatRef) -> Self {
        Self { chat }
    }

    /// Returns the path of a document's version for this chat. `None` for another chat's documents and for disguised names.
    pub fn find_path<'a>(&self, path: &'a str) -> Option<Cow<'a, str>> {
        let own = |name: &str| Some(Cow::Owned(format!("{CHATS_DIR}/{}/{name}.md", self.chat)));
        match path {
            WORKING_MEMORY => own("working-memory"),
            CONTEXT => own("context"),
            _ if path.starts_with(CHATS_DIR) || is_disguised(path) || is_imported(path) || is_job(path) => None,
            _ => Some(Cow::Borrowed(path)),
        }
    }

    /// Returns the documents that may exist for this chat, by the names used there. Their text decides whether anything is shown.
    pub fn list_documents(&self, paths: &BTreeSet<String>) -> Vec<String> {
        let names = paths.iter().map(String::as_str).chain([WORKING_MEMORY, CONTEXT]).collect::<BTreeSet<_>>();
        let is_there = |name: &&str| self.find_path(name).is_some_and(|kept_at| paths.contains(&*kept_at));
        names.into_iter().filter(is_there).map(str::to_owned).collect()
    }

    /// Returns the visible text of a document. `None` if the document doesn't exist for this chat.
    pub fn find_visible_text(&self, path: &str, text: &str) -> Option<String> {
        Some(self.visible_text(path, text)).filter(|shown| is_steering(path) && !is_job(path) || !is_blank_text(shown))
    }

    /// Returns the visible text of a document: the chat's own lines and those for all. The standing orders and the skills hold in every
    /// chat.
    pub fn visible_text(&self, path: &str, text: &str) -> String {
        if is_whole(path) {
            return text.to_owned();
        }
        self.shown_parts(path, text).into_iter().map(|part| slice(text, part)).collect()
    }

    /// Returns the chat.
    pub fn chat(&self) -> ChatRef {
        self.chat
    }

    /// Converts a line number of the whole document to one of the visible text, both counted from 1.
    pub fn find_visible_line(&self, path: &str, text: &str, line: usize) -> usize {
        if is_whole(path) {
            return line;
        }
        let before = self.shown_lines(path, text).into_iter().take_while(|(first, _)| *first <= line);
        before.map(|(first, last)| last.min(line) + 1 - first).sum::<usize>().max(1)
    }

    /// Returns the visible lines of a document as first and last line numbers, counted from 1.
    pub fn shown_lines(&self, path: &str, text: &str) -> Vec<(usize, usize)> {
        super::text::line_ranges(text, self.shown_parts(path, text))
    }

    fn shown_parts(&self, path: &str, text: &str) -> Vec<Range<usize>> {
        if is_imported(path) || is_job(path) {
            return Vec::new();
        }
        let document = Document::split(text);
        let shown = match DocKind::from_path(path) {
            DocKind::Tasks => self.own_tasks(&document),
            kind => self.own_lines(&document, kind),
        };
        let mut at = 0;
        let parts = shown.into_iter().map(|(start, end)| {
            let part = start.max(at)..end.max(at);
            at = at.max(end);
            part
        });
        parts.collect()
    }

    /// Applies to the whole document the edit that turned the visible text into `edited`. Hidden lines stay unchanged.
    pub fn apply_edit(&self, path: &str, text: &str, edited: String) -> String {
        let shown = self.visible_text(path, text);
        if shown == text {
            return edited;
        }
        let edited = match DocKind::from_path(path) {
            DocKind::Tasks => self.rename_clashing_tasks(text, &edited),
            _ => edited,
        };
        merge::merge(DocKind::from_path(path), &shown, text, &edited).text
    }

    /// Returns this chat's lines, and the lines of sections marked for all, except those written for others. Includes the headings that a
    /// merge needs to match sections.
    fn own_lines(&self, document: &Document<'_>, kind: DocKind) -> BTreeMap<usize, usize> {
        let mut shown = Shown::default();
        let mut quarantine: Option<(usize, Range<usize>)> = None;
        for (nth, part) in document.parts.iter().enumerate() {
            let of_others = self.others_items(document, part);
            let of_wakes = match kind {
                DocKind::Log => self.own_items(document, part),
                _ => Vec::new(),
            };
            let is_for_all = is_marked_for_all(document, part);
            let (mut at, mut is_any) = (part.range.start, false);
            for line in split_lines(document.slice(&part.range)) {
                let range = at..at + line.len();
                at = range.end;
                if let Some((level, title)) = others::parse_heading(line) {
                    quarantine = quarantine.filter(|(outer, _)| level > *outer);
                    if quarantine.is_none() && others::is_quarantine(title) {
                        quarantine = Some((level, range.clone()));
                    }
                }
                let stands_in = |items: &[Range<usize>]| items.iter().any(|item| item.contains(&range.start));
                // fault: guest-shown-isnt-marked
                let is_public = is_for_all && !stands_in(&of_others) && self.is_for_others(line) != Some(true);
                if is_public || stands_in(&of_wakes) || self.is_for_others(line) == Some(false) {
                    // Unconfirmed lines keep their quarantine heading.
                    shown.extend(quarantine.as_ref().map(|(_, heading)| heading.clone()));
                    shown.add(range);
                    is_any = true;
                }
            }
            if is_any {
                shown.add_heading(document, nth);
            }
        }
        shown.0
    }

    /// Returns the log entries of this chat's wakes, with all their lines, because only a wake writes them.
    fn own_items(&self, document: &Document<'_>, part: &Part) -> Vec<Range<usize>> {
        let is_own = |item: &&Range<usize>| {
            let first = split_lines(document.slice(item)).next();
            first.and_then(|line| self.is_for_others(line)) == Some(false) && !self.names_others(document.slice(item))
        };
        part.items.iter().filter(is_own).cloned().collect()
    }

    /// Returns the items that a wake wrote for others, with all their lines.
    fn others_items(&self, document: &Document<'_>, part: &Part) -> Vec<Range<usize>> {
        part.items.iter().filter(|item| self.names_others(document.slice(item))).cloned().collect()
    }

    fn names_others(&self, item: &str) -> bool {
        split_lines(item).any(|line| self.is_for_others(line) == Some(true))
    }

    /// Returns the tasks marked for this chat, except lines that a wake wrote for others.
    fn own_tasks(&self, document: &Document<'_>) -> BTreeMap<usize, usize> {
        let is_own = |part: &&Part| {
            let task = raw_task(document.slice(&part.range));
            let mut chats =
                task.keys.iter().filter(|key| key.name == "chat").map(|key| key.value.trim().parse::<ChatRef>());
            chats.next().is_some_and(|chat| chat == Ok(self.chat)) && chats.all(|chat| chat == Ok(self.chat))
        };
        let mut shown = Shown::default();
        for part in document.sections().filter(is_own) {
            let mut at = part.range.start;
            for line in split_lines(document.slice(&part.range)) {
                let range = at..at + line.len();
                at = range.end;
                if self.is_for_others(line) != Some(true) {
                    shown.add(range);
                }
            }
        }
        shown.0
    }

    /// Renames tasks in the edit that share a title with a hidden task. A merge by title would otherwise give the hidden task, with its
    /// content, to this chat.
    fn rename_clashing_tasks(&self, text: &str, edited: &str) -> String {
        let document = Document::split(text);
        let own = self.own_tasks(&document);
        let others = document.sections().filter(|part| !own.contains_key(&part.range.start));
        let taken: BTreeSet<String> = others.map(|part| fold_text(&part.title)).collect();
        let edit = Document::split(edited);
        let mut apart = String::with_capacity(edited.len());
        let mut at = 0;
        for part in edit.sections().filter(|part| taken.contains(&fold_text(&part.title))) {
            let heading = slice(edited, part.range.start..part.body_start).trim_end();
            let end = part.range.start + heading.len();
            apart.push_str(&format!("{} (chat {})", slice(edited, at..end), self.chat));
            at = end;
        }
        apart.push_str(slice(edited, at..edited.len()));
        apart
    }

    /// Returns whether a wake's comment assigns the line to another chat. `None` without such a comment.
    fn is_for_others(&self, line: &str) -> Option<bool> {
        let mut chats = line.split("<!--").skip(1).filter_map(|comment| {
            let inside = comment.split("-->").next().unwrap_or_default();
            // The words after this one describe origins, and untrusted text may have chosen them.
            let mut words = inside.split_whitespace().take_while(|word| *word != AFTER);
            let is_of_wake = words.next() == Some("wake");
            is_of_wake
                .then(|| words.skip_while(|word| *word != "chat").nth(1).and_then(|chat| chat.parse::<ChatRef>().ok()))
        });
        let first = chats.next()?;
        Some(first != Some(self.chat) || chats.any(|chat| chat != Some(self.chat)))
    }
}

/// The visible byte ranges: the end of each line by its start.
#[derive(Default)]
struct Shown(BTreeMap<usize, usize>);

impl Shown {
    fn add(&mut self, range: Range<usize>) {
        self.0.insert(range.start, range.end);
    }

    fn extend(&mut self, ranges: impl IntoIterator<Item = Range<usize>>) {
        ranges.into_iter().for_each(|range| self.add(range));
    }

    /// Adds the heading of a part, its trailing blank lines, and earlier headings with the same title, because a merge numbers such parts.
    fn add_heading(&mut self, document: &Document<'_>, nth: usize) {
        let Some(part) = document.parts.get(nth) else { return };
        let namesakes = document.parts.iter().take(nth + 1);
        let namesakes =
            namesakes.filter(|other| other.level == part.level && fold_text(&other.title) == fold_text(&part.title));
        self.extend(namesakes.filter(|other| other.level > 0).map(|other| other.range.start..other.body_start));
        let end = part.range.end;
        self.add(document.content_end(part).max(part.body_start)..end);
    }
}

/// Returns whether a person marked a part for all: after its heading, or on the first line below.
fn is_marked_for_all(document: &Document<'_>, part: &Part) -> bool {
    let heading = slice(document.text, part.range.start..part.body_start);
    let first = split_lines(slice(document.text, part.body_start..part.range.end)).find(|line| !is_blank(line));
    let says_so = |line: &str| split_comment(line).1.is_some_and(is_for_all);
    says_so(heading) || first.is_some_and(|line| split_comment(line).0.is_empty() && says_so(line))
}

fn is_blank_text(text: &str) -> bool {
    split_lines(text).all(is_blank)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{ACTIVE, CLAUDE, EPISODIC_MEMORY, SEMANTIC_MEMORY, facts, strategies::document, tasks::TaskList};

    const BOB: View = View { chat: ChatRef::from_telegram(5555) };
    const FACTS: &str = "\
# Facts

## Family
- Anna is ill <!-- wake 20261121T140000Z-1 message 4 -->
- Everybody meets on Sunday
- Bob likes tea <!-- wake 20261121T140000Z-2 message 5 chat 5555 -->

## Surgery
- It is on Monday <!-- wake 20261121T140000Z-1 message 4 -->

## Work
- The code is 55 <!-- wake 20261121T140000Z-3 message 6 chat 77 -->
  and nobody knows
";

    #[test]
    fn a_chats_own_lines_are_shown_and_no_others() {
        insta::assert_snapshot!(BOB.visible_text(SEMANTIC_MEMORY, FACTS), @"
        ## Family
        - Bob likes tea <!-- wake 20261121T140000Z-2 message 5 chat 5555 -->
        ");
        let log = "# Log\n\n## 2026-11-20\n- 10:00 Remembered “x” <!-- wake a -->\n  more of it\n\n## 2026-11-21\n\
                   - 10:00 for Bob <!-- wake b chat 5555 -->\n  and more\n- 11:00 for Eve <!-- wake c chat 55551 -->\n- by hand\n";
        let shown = "## 2026-11-21\n- 10:00 for Bob <!-- wake b chat 5555 -->\n  and more\n";
        assert_eq!(BOB.visible_text(EPISODIC_MEMORY, log), shown);
        assert_eq!(BOB.visible_text("memory/agent-memory/archive/2026-11.md", log), shown);
        let tasks = "# Active\n\n## Mine\n- status: active\n\n## Bob's\n- status: active\n- chat: 5555\n\n## Eve's\n- chat: 55\n\n\
                     ## Whose\n- chat: 5555\n- chat: 55\n\n## Surgery\n- status: active\n\nchat: 5555\n- chat: 5555\n";
        assert_eq!(BOB.visible_text(ACTIVE, tasks), "## Bob's\n- status: active\n- chat: 5555\n\n");
        for unmarked in [
            "A note.\n\n> - Anna is ill <!-- wake a -->\n\n<!-- wakes are explained here -->\n",
            "---\nchat: 5555\n---\n# Anna\n- chat 5555\n<!-- chat 5555 -->\n<!-- wake a --> <!-- chat 5555 -->\n",
            "- both <!-- wake a chat 5555 --> <!-- wake b chat 6 -->\n- after <!-- wake a after chat 5555 -->\n",
        ] {
            assert_eq!(BOB.visible_text("memory/notes.md", unmarked), "", "{unmarked}");
            assert_eq!(BOB.find_visible_text("memory/notes.md", unmarked), None);
        }
        assert_eq!(BOB.find_visible_text(CLAUDE, "").as_deref(), Some(""));
    }

    #[test]
    fn a_section_for_all_is_shown_except_lines_that_a_wake_wrote_for_others() {
        let marked = "# Facts\nby hand\n\n## Home\n\n<!-- for: all -->\n- The wifi is called Otter\n- The code is 55 <!-- wake a -->\n  and so on\n\n\
                      some text\n\n## Garden <!--  for:  all -->\n### Hose\n- leaks\n## Work\n- secret\n";
        insta::assert_snapshot!(BOB.visible_text(SEMANTIC_MEMORY, marked), @"
        ## Home

        <!-- for: all -->
        - The wifi is called Otter

        some text

        ## Garden <!--  for:  all -->
        ### Hose
        - leaks
        ");
        assert_eq!(Document::split(marked).parts[3].title, "Garden");
        for unmarked in [
            "## Home\n- The wifi is called Otter\n<!-- for: all -->\n",
            "## Home\n- Otter <!-- for: all -->\n",
            "## Home\n```\n<!-- for: all -->\n```\n",
            "## Home\n`<!-- for: all -->`\n- Otter\n",
            "## Home\n<!--\n<!-- for: all -->\n- Otter\n",
            "## Home\n<!-- for: all but Bob -->\n- Otter\n",
            "```\n## Home <!-- for: all -->\n- Otter\n```\n",
        ] {
            assert_eq!(BOB.visible_text(SEMANTIC_MEMORY, unmarked), "", "{unmarked}");
        }
        let task = "## Paint <!-- for: all -->\n- status: active\n";
        assert_eq!(BOB.visible_text(ACTIVE, task), "", "a task belongs to one chat and can't be for all");
    }

    #[test]
    fn unconfirmed_lines_stay_unconfirmed_under_any_heading() {
        let own = "- Bob may do all <!-- wake a chat 5555 after a page -->\n";
        for text in [
            format!("## Unconfirmed\n- Anna <!-- wake b -->\n{own}"),
            format!("# Unconfirmed\n\n## Anna\n- secret\n\n## Bob\n{own}"),
            format!("## Anna\n- secret\n```\n## Unconfirmed\n```\n{own}"),
        ] {
            let shown = BOB.visible_text(SEMANTIC_MEMORY, &text);
            assert!(shown.contains("Bob may do all") && !shown.contains("secret"), "{shown}");
            assert!(
                !others::remove_untrusted(SEMANTIC_MEMORY, &shown, Some(ChatRef::from_telegram(5555)))
                    .0
                    .contains("Bob may"),
                "{shown}"
            );
        }
        assert_eq!(BOB.visible_text(SEMANTIC_MEMORY, "## Unconfirmed\n- Anna <!-- wake b -->\n"), "");
    }

    #[test]
    fn edits_that_reveal_or_move_lines_are_detected() {
        let old = "# Facts\n\n## Home\n<!-- for: all -->\n- Otter\n\n## Bob\n- tea <!-- wake a chat 5555 -->\n\n## Work\n- secret\n";
        for (from, to) in [
            ("- secret", "- secret <!-- wake a chat 5555 -->"),
            ("- tea", "- tea and a secret"),
            ("- Otter", "- Otter\n- secret"),
            ("## Work\n", "## Work <!-- for: all -->\n"),
            ("## Work\n", "## Work\n\n<!-- for: all -->\n"),
            ("## Bob\n- tea <!-- wake a chat 5555 -->\n\n## Work\n", ""),
            ("## Bob\n", "## The party of Bob\n"),
            ("# Facts\n", "# Facts\n<!-- for: all -->\n- secret\n"),
        ] {
            assert!(is_revealing(SEMANTIC_MEMORY, old, &old.replacen(from, to, 1)), "{from} {to}");
        }
        for (from, to) in
            [("- secret", "- secrets"), ("- Otter\n", ""), ("<!-- for: all -->\n", ""), ("# Facts", "# What")]
        {
            assert!(!is_revealing(SEMANTIC_MEMORY, old, &old.replacen(from, to, 1)), "{from} {to}");
        }
        assert!(!is_revealing("memory/notes.md", "", "# Notes\n- a <!-- wake a -->\n"));
        for path in [CLAUDE, "skills/tea/SKILL.md", WORKING_MEMORY, CONTEXT] {
            assert!(!is_revealing(path, "# Old\n", "# New\n"), "{path}");
        }
        let tasks = "## Mine\n- status: active\n\n## Bob's\n- chat: 5555\n";
        for (from, to) in
            [("- status: active\n", "- chat: 5555\n"), ("- chat: 5555\n", "- chat: 5555\n- next: secret\n")]
        {
            assert!(is_revealing(ACTIVE, tasks, &tasks.replacen(from, to, 1)), "{from} {to}");
        }
        assert!(!is_revealing(ACTIVE, tasks, &tasks.replacen("active", "done", 1)));
    }

    #[test]
    fn a_chat_has_its_own_working_memory_and_context_and_sees_no_others() {
        assert_eq!(BOB.find_path(WORKING_MEMORY).as_deref(), Some("memory/chats/5555/working-memory.md"));
        assert_eq!(BOB.find_path(CONTEXT).as_deref(), Some("memory/chats/5555/context.md"));
        assert_eq!(BOB.find_path(SEMANTIC_MEMORY).as_deref(), Some(SEMANTIC_MEMORY));
        assert_eq!(BOB.find_path("memory/chats/77/context.md"), None);
        let there = [CONTEXT, SEMANTIC_MEMORY, "memory/chats/77/context.md", "memory/chats/5555/working-memory.md"];
        let there = there.map(str::to_owned).into();
        assert_eq!(BOB.list_documents(&there), [SEMANTIC_MEMORY, WORKING_MEMORY]);
    }

    #[test]
    fn no_other_spelling_of_a_path_leads_to_hidden_documents() {
        for path in [
            "memory//chats/77/context.md",
            "memory/./chats/77/context.md",
            "memory/Chats/77/context.md",
            "memory/chat\u{17f}/77/context.md",
            "memory/./agent-memory/working-memory.md",
            "memory/agent-memory//working-memory.md",
            "memory/project-memory/Context.md",
            "memory/project-memory/./active.md",
            "memory/project-memory/BACKLOG.md",
        ] {
            assert_eq!(BOB.find_path(path), None, "{path}");
        }
        for path in [SEMANTIC_MEMORY, ACTIVE, "memory/Notes.md", "skills/tea/SKILL.md"] {
            assert_eq!(BOB.find_path(path).as_deref(), Some(path));
        }
    }

    #[test]
    fn an_edit_keeps_hidden_lines() {
        let shown = BOB.visible_text(SEMANTIC_MEMORY, FACTS);
        for topic in ["Family", "Surgery", "New"] {
            let added = facts::add(&shown, Some(topic), "Bob is tall", "wake d chat 5555").unwrap();
            let facts::Added::New { text, .. } = added else { panic!("{added:?}") };
            let whole = BOB.apply_edit(SEMANTIC_MEMORY, FACTS, text);
            assert_eq!(BOB.visible_text(SEMANTIC_MEMORY, &whole).matches("Bob is tall").count(), 1, "{whole}");
            for line in FACTS.lines() {
                assert_eq!(
                    whole.lines().filter(|other| *other == line).count(),
                    FACTS.lines().filter(|other| *other == line).count()
                        + usize::from(line.is_empty() && topic == "New"),
                    "{line:?} in {whole}"
                );
            }
        }
        let gone = facts::forget(&shown, "Bob likes tea").unwrap().text;
        let whole = BOB.apply_edit(SEMANTIC_MEMORY, FACTS, gone);
        assert_eq!(whole, FACTS.replace("- Bob likes tea <!-- wake 20261121T140000Z-2 message 5 chat 5555 -->\n", ""));
        let tasks = "# Active\n\n## Mine\n- status: active\n\n## Bob's\n- status: active\n- chat: 5555\n";
        let done = TaskList::parse(&BOB.visible_text(ACTIVE, tasks)).0.take("Bob's").unwrap().0;
        assert!(BOB.apply_edit(ACTIVE, tasks, done).contains("## Mine\n- status: active\n"));
    }

    #[test]
    fn a_hidden_task_with_the_same_title_is_not_given_to_the_chat() {
        let tasks = "# Active\n\n## Surgery\n- status: active\n- next: call the clinic\n\nof the knee\n";
        for title in ["Surgery", "surgery.", "Surgery ##"] {
            let edited = format!("{}## {title}\n- status: active\n- chat: 5555\n", BOB.visible_text(ACTIVE, tasks));
            let whole = BOB.apply_edit(ACTIVE, tasks, edited);
            let theirs = tasks.strip_prefix("# Active\n\n").unwrap();
            assert!(whole.contains(theirs), "{whole}");
            let shown = BOB.visible_text(ACTIVE, &whole);
            assert!(shown.contains("(chat 5555)") && !shown.contains("clinic") && !shown.contains("knee"), "{shown}");
            let done = TaskList::parse(&shown).0.take("Surgery").unwrap().0;
            assert_eq!(BOB.apply_edit(ACTIVE, &whole, done).trim_end(), tasks.trim_end());
        }
    }

    #[test]
    fn only_a_line_before_the_first_section_turns_the_separation_off() {
        for (orders, shared) in [
            ("# Orders\n\nShare between chats: yes\n\n## A wake\n", true),
            ("- **share between chats:** YES\n", false),
            ("- Share Between Chats: YES\n", true),
            ("Share between chats: no\n", false),
            ("Share between chats: yes\nShare between chats: no\n", false),
            ("Share between chats: yes, please\n", false),
            ("# Orders\n\n## Privacy\n\nShare between chats: yes\n", false),
            ("Write `Share between chats: yes` to lift it.\n", false),
            ("<!--\nShare between chats: yes\n-->\n", false),
            ("```\nShare between chats: yes\n```\n", false),
            ("<!-- never closed\n\n## Privacy\nShare between chats: yes\n", false),
            ("", false),
        ] {
            assert_eq!(is_shared(orders), shared, "{orders}");
        }
    }

    #[test]
    fn the_owner_and_the_terminal_are_not_foreign() {
        assert_eq!(
            [None, Some(0), Some(7), Some(8)].map(|chat| foreign_chat(
                chat.map(ChatRef::from_number),
                ChatRef::from_telegram(7)
            )
            .map(ChatRef::number)),
            [None, None, None, Some(8)]
        );
        assert_eq!(format_origin(None), "");
    }

    proptest! {
        #[test]
        fn lines_of_others_are_never_shown_and_no_edit_loses_them(
            text in document(), secret in "[a-z]{12}", edit in "[a-z]{12}",
            mark in proptest::sample::select(&["", " <!-- wake 1 message 2 -->", " <!-- wake 1 message 2 chat 77 -->"][..]),
        ) {
            for path in [SEMANTIC_MEMORY, EPISODIC_MEMORY, "memory/notes.md"] {
                let with = format!("{text}\n- {secret}{mark}\n");
                let shown = BOB.visible_text(path, &with);
                prop_assert!(!shown.contains(&secret));
                let whole = BOB.apply_edit(path, &with, format!("{shown}\n- {edit}\n"));
                prop_assert!(whole.contains(&secret), "{whole}");
            }
        }
    }
}
