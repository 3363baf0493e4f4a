//! What one chat may see of the memory: what another chat said isn't quoted in it.
//!
//! The memory is the owner's. What a wake writes for another chat says so: a fact and an entry of the log in the HTML comment that
//! they end with anyway (`chat 5555`), a task in a line `- chat: 5555`. In a cycle of that chat the memory is seen through a
//! [`View`]: lines that a wake wrote for somebody else are left out, a person's own lines are everybody's, and the documents that
//! are rewritten as a whole (working memory, context) are the chat's own. The standing orders can lift it.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use super::{
    CHATS_DIR, CLAUDE, CONTEXT, DocKind, WORKING_MEMORY, is_disguised, merge,
    others::AFTER,
    sections::Document,
    text::{folded, is_blank, lines, slice},
};

/// How the standing orders lift it, in the part before their first section.
const SHARE: &str = "share between chats:";

/// The memory as one chat that isn't the owner's may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    chat_id: i64,
}

/// The chat, if it isn't the owner's: neither their own nor the console.
pub fn foreign_chat(chat_id: Option<i64>, owner_chat_id: i64) -> Option<i64> {
    chat_id.filter(|id| *id != owner_chat_id && *id != crate::config::CONSOLE_CHAT_ID)
}

/// What follows a wake's id in the comment of what it wrote for this chat.
pub fn origin(chat_id: Option<i64>) -> String {
    chat_id.map(|id| format!(" chat {id}")).unwrap_or_default()
}

/// Whether the standing orders let chats see each other's: a line `Share between chats: yes` before their first section.
pub fn is_shared(standing_orders: &str) -> bool {
    let front = lines(standing_orders).take_while(|line| !line.starts_with("## "));
    let mut said = front.filter_map(|line| {
        let line = line.trim().trim_start_matches(['-', '*', ' ']).to_lowercase();
        line.strip_prefix(SHARE).map(|value| value.trim() == "yes")
    });
    // Said twice and differently: the narrower counts.
    said.next().is_some_and(|first| first && said.all(|other| other))
}

impl View {
    /// For the chat of a cycle.
    pub fn of(chat_id: i64) -> Self {
        Self { chat_id }
    }

    /// Where a document of this name is kept for this chat; `None` for one that is another chat's, and for a name in disguise.
    pub fn path<'a>(&self, path: &'a str) -> Option<Cow<'a, str>> {
        let own = |name: &str| Some(Cow::Owned(format!("{CHATS_DIR}/{}/{name}.md", self.chat_id)));
        match path {
            WORKING_MEMORY => own("working-memory"),
            CONTEXT => own("context"),
            _ if path.starts_with(CHATS_DIR) || is_disguised(path) => None,
            _ => Some(Cow::Borrowed(path)),
        }
    }

    /// The documents that there are for this chat, under the names that it knows them by.
    pub fn list(&self, paths: &BTreeSet<String>) -> Vec<String> {
        let names = paths.iter().map(String::as_str).chain([WORKING_MEMORY, CONTEXT]).collect::<BTreeSet<_>>();
        let is_there = |name: &&str| self.path(name).is_some_and(|kept_at| paths.contains(&*kept_at));
        names.into_iter().filter(is_there).map(str::to_owned).collect()
    }

    /// The document without what was written for others.
    pub fn shown(&self, path: &str, text: &str) -> String {
        if !path.starts_with("memory/") || path.starts_with(CHATS_DIR) || path == CLAUDE {
            return text.to_owned();
        }
        let document = Document::split(text);
        let mut hidden = match DocKind::of(path) {
            DocKind::Tasks => self.others_tasks(&document),
            _ => self.others_items(&document),
        };
        hidden.extend(self.others_lines(text));
        without(text, hidden)
    }

    /// The document with the edit that turned what this chat is shown into `edited`: what it wasn't shown stays as it is.
    pub fn edited(&self, path: &str, text: &str, edited: String) -> String {
        let shown = self.shown(path, text);
        if shown == text {
            return edited;
        }
        let edited = match DocKind::of(path) {
            DocKind::Tasks => self.told_apart(text, &edited),
            _ => edited,
        };
        merge::merge(DocKind::of(path), &shown, text, &edited).text
    }

    /// Facts and entries for others, and sections that have nothing else in them: a topic's name tells something, too.
    fn others_items(&self, document: &Document<'_>) -> Vec<Range<usize>> {
        let mut hidden = Vec::new();
        for part in &document.parts {
            let (others, own): (Vec<_>, Vec<_>) =
                part.items.iter().cloned().partition(|item| !self.may_see(document.slice(item)));
            let body = part.body_start..part.range.end;
            let is_bare = || {
                let relative = others.iter().map(|item| item.start - body.start..item.end - body.start).collect();
                is_blank_text(&without(document.slice(&body), relative))
            };
            if part.level == 2 && own.is_empty() && !others.is_empty() && is_bare() {
                hidden.push(part.range.clone());
            } else {
                hidden.extend(others);
            }
        }
        hidden
    }

    /// Tasks that aren't this chat's.
    fn others_tasks(&self, document: &Document<'_>) -> Vec<Range<usize>> {
        let mark = format!("chat: {}", self.chat_id);
        let is_own = |section: &str| {
            lines(section)
                .any(|line| line.trim_start_matches(['-', '*', '+', ' ']).trim_end().eq_ignore_ascii_case(&mark))
        };
        let sections = document.sections().map(|part| part.range.clone());
        sections.filter(|range| !is_own(document.slice(range))).collect()
    }

    /// The edit with another title for each task that is called like one that isn't shown: merged by its title, that one would
    /// become this chat's, with all that stands in it.
    fn told_apart(&self, text: &str, edited: &str) -> String {
        let document = Document::split(text);
        let hidden = self.others_tasks(&document);
        let others = document.sections().filter(|part| hidden.contains(&part.range));
        let taken: BTreeSet<String> = others.map(|part| folded(&part.title)).collect();
        let edit = Document::split(edited);
        let mut apart = String::with_capacity(edited.len());
        let mut at = 0;
        for part in edit.sections().filter(|part| taken.contains(&folded(&part.title))) {
            let heading = slice(edited, part.range.start..part.body_start).trim_end();
            let end = part.range.start + heading.len();
            apart.push_str(&format!("{} (chat {})", slice(edited, at..end), self.chat_id));
            at = end;
        }
        apart.push_str(slice(edited, at..edited.len()));
        apart
    }

    /// Lines elsewhere that a wake wrote for others, such as those that a merge has put into a quote.
    fn others_lines(&self, text: &str) -> Vec<Range<usize>> {
        let mut at = 0;
        let mut hidden = Vec::new();
        for line in lines(text) {
            let range = at..at + line.len();
            at = range.end;
            if !self.may_see(line) {
                hidden.push(range);
            }
        }
        hidden
    }

    /// Whether all that says which wake wrote it says that it was for this chat. A person's own lines say nothing of the kind.
    fn may_see(&self, raw: &str) -> bool {
        raw.split("<!--").skip(1).all(|comment| {
            let inside = comment.split("-->").next().unwrap_or_default();
            // Behind it stand origins, which others may have named.
            let mut words = inside.split_whitespace().take_while(|word| *word != AFTER);
            if words.next() != Some("wake") {
                return true;
            }
            let chat = words.skip_while(|word| *word != "chat").nth(1);
            chat.is_some_and(|chat| chat.parse() == Ok(self.chat_id))
        })
    }
}

fn is_blank_text(text: &str) -> bool {
    lines(text).all(is_blank)
}

/// The text without these ranges, which may overlap.
fn without(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| range.start);
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        left.push_str(slice(text, at..range.start.max(at)));
        at = at.max(range.end);
    }
    left.push_str(slice(text, at..text.len()));
    left
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memory::{ACTIVE, EPISODIC_MEMORY, SEMANTIC_MEMORY, facts, strategies::document, tasks::TaskList};

    const BOB: View = View { chat_id: 5555 };
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
    fn lines_for_others_are_left_out_and_peoples_own_are_shared() {
        insta::assert_snapshot!(BOB.shown(SEMANTIC_MEMORY, FACTS), @"
        # Facts

        ## Family
        - Everybody meets on Sunday
        - Bob likes tea <!-- wake 20261121T140000Z-2 message 5 chat 5555 -->
        ");
        let log = "## 2026-11-20\n- 10:00 Remembered “x” <!-- wake a -->\n  more of it\n\n## 2026-11-21\n\
                   - 10:00 for Bob <!-- wake b chat 5555 -->\n- 11:00 for Eve <!-- wake c chat 55551 -->\n- by hand\n";
        let shown = "## 2026-11-21\n- 10:00 for Bob <!-- wake b chat 5555 -->\n- by hand\n";
        assert_eq!(BOB.shown(EPISODIC_MEMORY, log), shown);
        assert_eq!(BOB.shown("memory/agent-memory/archive/2026-11.md", log), shown);
        let tasks = "# Active\n\n## Mine\n- status: active\n\n## Bob's\n- status: active\n- chat: 5555\n\n## Eve's\n- chat: 55\n";
        assert_eq!(BOB.shown(ACTIVE, tasks), "# Active\n\n## Bob's\n- status: active\n- chat: 5555\n\n");
        let quoted = "A note.\n\n> - Anna is ill <!-- wake a -->\n\n<!-- wakes are explained here -->\n";
        assert_eq!(BOB.shown("memory/notes.md", quoted), "A note.\n\n\n<!-- wakes are explained here -->\n");
    }

    #[test]
    fn a_chat_has_its_own_working_memory_and_context_and_sees_no_other() {
        assert_eq!(BOB.path(WORKING_MEMORY).as_deref(), Some("memory/chats/5555/working-memory.md"));
        assert_eq!(BOB.path(CONTEXT).as_deref(), Some("memory/chats/5555/context.md"));
        assert_eq!(BOB.path(SEMANTIC_MEMORY).as_deref(), Some(SEMANTIC_MEMORY));
        assert_eq!(BOB.path("memory/chats/77/context.md"), None);
        let there = [CONTEXT, SEMANTIC_MEMORY, "memory/chats/77/context.md", "memory/chats/5555/working-memory.md"];
        let there = there.map(str::to_owned).into();
        assert_eq!(BOB.list(&there), [SEMANTIC_MEMORY, WORKING_MEMORY]);
    }

    #[test]
    fn no_other_spelling_leads_to_what_is_not_shown() {
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
            assert_eq!(BOB.path(path), None, "{path}");
        }
        for path in [SEMANTIC_MEMORY, ACTIVE, "memory/Notes.md", "skills/tea/SKILL.md"] {
            assert_eq!(BOB.path(path).as_deref(), Some(path));
        }
    }

    #[test]
    fn an_edit_leaves_what_was_not_shown() {
        let shown = BOB.shown(SEMANTIC_MEMORY, FACTS);
        for topic in ["Family", "Surgery", "New"] {
            let added = facts::add(&shown, Some(topic), "Bob is tall", "wake d chat 5555").unwrap();
            let facts::Added::New { text, .. } = added else { panic!("{added:?}") };
            let whole = BOB.edited(SEMANTIC_MEMORY, FACTS, text.clone());
            assert_eq!(BOB.shown(SEMANTIC_MEMORY, &whole).matches("Bob is tall").count(), 1, "{whole}");
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
        let whole = BOB.edited(SEMANTIC_MEMORY, FACTS, gone);
        assert_eq!(whole, FACTS.replace("- Bob likes tea <!-- wake 20261121T140000Z-2 message 5 chat 5555 -->\n", ""));
        let tasks = "# Active\n\n## Mine\n- status: active\n\n## Bob's\n- status: active\n- chat: 5555\n";
        let done = TaskList::parse(&BOB.shown(ACTIVE, tasks)).0.take("Bob's").unwrap().0;
        assert!(BOB.edited(ACTIVE, tasks, done).contains("## Mine\n- status: active\n"));
    }

    #[test]
    fn a_task_of_the_same_title_does_not_become_the_chats() {
        let tasks = "# Active\n\n## Surgery\n- status: active\n- next: call the clinic\n\nof the knee\n";
        for title in ["Surgery", "surgery.", "Surgery ##"] {
            let edited = format!("{}## {title}\n- status: active\n- chat: 5555\n", BOB.shown(ACTIVE, tasks));
            let whole = BOB.edited(ACTIVE, tasks, edited);
            let theirs = tasks.strip_prefix("# Active\n\n").unwrap();
            assert!(whole.contains(theirs), "{whole}");
            let shown = BOB.shown(ACTIVE, &whole);
            assert!(shown.contains("(chat 5555)") && !shown.contains("clinic") && !shown.contains("knee"), "{shown}");
            let done = TaskList::parse(&shown).0.take("Surgery").unwrap().0;
            assert_eq!(BOB.edited(ACTIVE, &whole, done).trim_end(), tasks.trim_end());
        }
    }

    #[test]
    fn only_the_front_of_the_standing_orders_lifts_it() {
        for (orders, shared) in [
            ("# Orders\n\nShare between chats: yes\n\n## A wake\n", true),
            ("- **share between chats:** YES\n", false),
            ("- Share Between Chats: YES\n", true),
            ("Share between chats: no\n", false),
            ("Share between chats: yes\nShare between chats: no\n", false),
            ("Share between chats: yes, please\n", false),
            ("# Orders\n\n## Privacy\n\nShare between chats: yes\n", false),
            ("Write `Share between chats: yes` to lift it.\n", false),
            ("", false),
        ] {
            assert_eq!(is_shared(orders), shared, "{orders}");
        }
    }

    #[test]
    fn the_owner_and_the_console_are_not_foreign() {
        assert_eq!([None, Some(0), Some(7), Some(8)].map(|chat| foreign_chat(chat, 7)), [None, None, None, Some(8)]);
        assert_eq!(origin(None), "");
    }

    proptest! {
        #[test]
        fn nothing_of_others_is_ever_shown_and_nothing_is_lost_by_an_edit(
            text in document(), secret in "[a-z]{12}", edit in "[a-z]{12}",
        ) {
            for path in [SEMANTIC_MEMORY, EPISODIC_MEMORY, "memory/notes.md"] {
                let with = format!("{text}\n- {secret} <!-- wake 1 message 2 chat 77 -->\n");
                let shown = BOB.shown(path, &with);
                prop_assert!(!shown.contains(&secret));
                let whole = BOB.edited(path, &with, format!("{shown}\n- {edit}\n"));
                prop_assert!(whole.contains(&secret), "{whole}");
            }
        }
    }
}
