//! Content from another program, brought in by `wake import`. It is untrusted until a person confirms it.
//!
//! Documents lie in a folder of their own ([`super::IMPORTED_DIR`]), facts under [`UNCONFIRMED`], and tasks carry a marking line. A person
//! confirms a document by moving it elsewhere, a fact by repeating or moving it, and a task by deleting that line.

use chrono::{DateTime, NaiveDate, Utc};

use super::{
    facts::{self, MAX_ORIGIN_CHARS, NewFact},
    others::{AFTER, UNCONFIRMED},
    tasks::{TaskDraft, TaskError, TaskList},
    text::one_line,
};

/// The key that marks an imported task as unconfirmed.
pub const UNCONFIRMED_KEY: &str = "unconfirmed";
/// The beginning of the key's value: a person's own line `unconfirmed:` means something else.
const IMPORTED: &str = "imported";
/// The word in place of a wake's id in a fact's origin.
pub const AS_WAKE: &str = "import";
/// First words of meaningful comments: a section's audience, a line's author, an unsettled conflict.
const MEANT: [&str; 3] = ["for:", "wake", "unsettled"];

/// Returns whether a line of a task marks the task as unconfirmed.
pub(super) fn is_mark(line: &str) -> bool {
    let key = line.trim_start_matches(['-', '*', '+', ' ', '\t']).to_lowercase();
    let value = key.strip_prefix(UNCONFIRMED_KEY).and_then(|rest| rest.trim_start().strip_prefix(':'));
    value.is_some_and(|value| value.trim_start().starts_with(IMPORTED))
}

/// Builds the origin of an imported fact: a source in place of a wake's id.
pub fn format_origin(from: &str, now: DateTime<Utc>) -> String {
    let from = one_line(&from.replace("--", "-"), MAX_ORIGIN_CHARS / 2);
    format!("wake {AS_WAKE} {} {AFTER} {from}", now.format("%Y%m%dT%H%M%SZ"))
}

/// Breaks comments that would have a meaning here. Only a person may set a section's audience, and only a wake may mark its own lines.
pub fn break_comments(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        let word = after.trim_start().to_lowercase();
        let is_meant = MEANT.iter().any(|meant| word.starts_with(meant));
        safe.push_str(before);
        safe.push_str(if is_meant { "<! --" } else { "<!--" });
        rest = after;
    }
    safe.push_str(rest);
    safe
}

/// Adds facts to the quarantine section. Returns the new text and the number of facts known already.
pub fn with_facts(text: &str, new: &[NewFact]) -> (String, usize) {
    facts::add_all(text, UNCONFIRMED, new)
}

/// Adds an unconfirmed task. The task has no time of its own: imported tasks must never start a wake.
///
/// # Errors
/// As [`TaskList::add`].
pub fn with_task(
    list: &TaskList,
    draft: &TaskDraft,
    due: Option<&str>,
    from: &str,
    day: NaiveDate,
) -> Result<String, TaskError> {
    // Another program can't assign a task to a chat.
    let says_chat = |line: &&str| {
        let key = line.trim_start_matches(['-', '*', '+', ' ', '\t']).get(..5).unwrap_or_default();
        key.eq_ignore_ascii_case("chat:")
    };
    let body = draft.body.lines().filter(|line| !says_chat(line)).collect::<Vec<_>>().join("\n");
    let draft = TaskDraft { at: None, touched: None, body, ..draft.clone() };
    let mut text = list.add(&draft)?;
    let mut keys = vec![(UNCONFIRMED_KEY, format!("{IMPORTED} {day} from {from}"))];
    keys.extend(due.map(|due| ("due", due.to_owned())));
    for (key, value) in keys {
        let added = TaskList::parse(&text).0;
        let title = added.tasks().last().map(|task| format!("“{}”", task.title)).unwrap_or_default();
        text = added.set(&title, key, Some(&value))?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BACKLOG, IMPORTED_DIR, SEMANTIC_MEMORY, others, view::View};
    use reveille_base::types::ChatRef;

    fn day() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, 25).unwrap()
    }

    #[test]
    fn a_document_is_others_words_whoever_looks_and_shows_guests_nothing() {
        let path = format!("{IMPORTED_DIR}/notes/a.md");
        let text = "# CANARY\n<!-- for: all -->\n- x <!-- wake 1 chat 5 -->\n";
        for reader in [None, Some(ChatRef::from_telegram(5))] {
            assert_eq!(others::remove_untrusted(&path, text, reader).0, "");
        }
        let view = View::for_chat(ChatRef::from_telegram(5));
        assert_eq!((view.find_path(&path), view.visible_text(&path, text)), (None, String::new()));
        assert!(crate::view::find_marked_chats(&path, text).is_empty() && others::may_have_untrusted(&path));
    }

    #[test]
    fn a_task_waits_for_its_confirmation_and_brings_no_time_along() {
        let draft = TaskDraft {
            title: "CANARY\n- chat: 5".into(),
            at: Some("2026-11-26 09:00".into()),
            body: "<!-- for: all -->\n- chat: 5".into(),
            ..TaskDraft::default()
        };
        let list = TaskList::parse("# Backlog\n\n## Mine\n- status: waiting\n").0;
        let text = with_task(&list, &draft, Some("2026-12-01"), "reminders.json", day()).unwrap();
        let tasks = TaskList::parse(&text).0;
        let task = tasks.tasks().last().unwrap();
        assert!(task.is_unconfirmed() && task.step_time().is_none(), "{text}");
        assert_eq!((task.get("due"), task.chat()), (Some("2026-12-01"), None));
        assert!(!tasks.tasks()[0].is_unconfirmed());
        let shown = others::remove_untrusted(BACKLOG, &text, None).0;
        assert!(shown.contains("## Mine") && !shown.contains("CANARY"), "{shown}");
        assert!(!text.contains("<!--"), "{text}");
        let title = format!("“{}”", task.title);
        let confirmed = tasks.set(&title, UNCONFIRMED_KEY, None).unwrap();
        assert!(others::remove_untrusted(BACKLOG, &confirmed, None).0.contains("CANARY"));
        // Their own line of that name hides nothing.
        assert!(!is_mark("- unconfirmed: the venue"));
    }

    #[test]
    fn facts_come_into_quarantine_once_each() {
        let now = day().and_hms_opt(13, 5, 0).unwrap().and_utc();
        let fact = |text: &str| NewFact { text: text.to_owned(), origin: format_origin("knowledge.json --> x", now) };
        let known = "# Facts\n\n## Home\n- The gate is green.\n";
        let new = [
            fact("the gate is green"),
            fact("CANARY one"),
            fact("CANARY one"),
            fact("CANARY two\n## Home"),
            fact(" - "),
        ];
        let (text, skipped) = with_facts(known, &new);
        assert_eq!(skipped, 2);
        assert!(text.starts_with(known), "{text}");
        assert!(text.contains("- CANARY one <!-- wake import 20261125T130500Z after knowledge.json"), "{text}");
        assert!(!others::remove_untrusted(SEMANTIC_MEMORY, &text, None).0.contains("CANARY"), "{text}");
        let (again, skipped) = with_facts(&text, &new);
        assert_eq!((again.as_str(), skipped), (text.as_str(), 4));
    }

    #[test]
    fn comments_that_mean_something_here_are_broken_and_others_stay() {
        assert_eq!(
            break_comments("a <!--  for: all --> <!-- note --> <!--\nWAKE 1 --> <!-- unsettled 1"),
            "a <! --  for: all --> <!-- note --> <! --\nWAKE 1 --> <! -- unsettled 1"
        );
    }
}
