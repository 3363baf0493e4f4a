//! The initial files of a new repository: the project's own top-level `claude.md`, `memory/` and `skills/`, embedded in the binary.

use std::borrow::Cow;

/// Returns the files of a new repository as pairs of path and text.
pub fn list_files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("claude.md", include_str!("../../../claude.md")),
        ("memory/agent-memory/working-memory.md", include_str!("../../../memory/agent-memory/working-memory.md")),
        ("memory/agent-memory/episodic-memory.md", include_str!("../../../memory/agent-memory/episodic-memory.md")),
        ("memory/agent-memory/semantic-memory.md", include_str!("../../../memory/agent-memory/semantic-memory.md")),
        ("memory/project-memory/context.md", include_str!("../../../memory/project-memory/context.md")),
        ("memory/project-memory/active.md", include_str!("../../../memory/project-memory/active.md")),
        ("memory/project-memory/backlog.md", include_str!("../../../memory/project-memory/backlog.md")),
        ("skills/weekly-review/SKILL.md", include_str!("../../../skills/weekly-review/SKILL.md")),
        ("skills/memory-consolidation/SKILL.md", include_str!("../../../skills/memory-consolidation/SKILL.md")),
        ("skills/tdd/SKILL.md", include_str!("../../../skills/tdd/SKILL.md")),
    ]
}

/// Removes the explanatory comments that come from a document's template. All other text stays.
pub fn without_explanation<'t>(path: &str, text: &'t str) -> Cow<'t, str> {
    let mut left = Cow::Borrowed(text);
    let template = list_files().into_iter().find(|(other, _)| *other == path).map_or("", |(_, template)| template);
    let mut rest = template;
    while let Some((_, from)) = rest.split_once(COMMENT.0) {
        let Some((comment, behind)) = from.split_once(COMMENT.1) else { break };
        rest = behind;
        let comment = format!("{}{comment}{}\n", COMMENT.0, COMMENT.1);
        if let Some((before, after)) = left.split_once(&*comment) {
            // The empty line after the comment goes too.
            left = Cow::Owned(format!("{before}{}", after.strip_prefix('\n').unwrap_or(after)));
        }
    }
    left
}

const COMMENT: (&str, &str) = ("<!--", "-->");

#[cfg(test)]
mod tests {
    use chrono::{NaiveDate, NaiveTime};

    use super::{list_files, without_explanation};
    use crate::{
        ACTIVE, BACKLOG, CLAUDE, CONTEXT, EPISODIC_MEMORY, SEMANTIC_MEMORY, WORKING_MEMORY, episodic, facts,
        sections::Document, skill::Skill, tasks::TaskList,
    };

    fn text(path: &str) -> &'static str {
        list_files().into_iter().find(|(other, _)| *other == path).unwrap().1
    }

    #[test]
    fn every_document_exists_and_is_valid() {
        for path in [CLAUDE, WORKING_MEMORY, CONTEXT] {
            assert_eq!(Document::split(text(path)).find_problems(), [], "{path}");
        }
        for path in [ACTIVE, BACKLOG] {
            let (list, problems) = TaskList::parse(text(path));
            assert_eq!((list.tasks().len(), problems), (0, vec![]), "{path}");
        }
        assert_eq!(facts::Facts::parse(text(SEMANTIC_MEMORY)), (facts::Facts::default(), vec![]));
        assert_eq!(episodic::Log::parse(text(EPISODIC_MEMORY)), (episodic::Log::default(), vec![]));
    }

    #[test]
    fn template_comments_are_removed_and_nothing_else() {
        for path in [WORKING_MEMORY, CONTEXT, ACTIVE, BACKLOG, SEMANTIC_MEMORY, EPISODIC_MEMORY] {
            let shown = without_explanation(path, text(path));
            assert!(shown.starts_with("# ") && !shown.contains("<!--"), "{path}: {shown}");
        }
        assert_eq!(without_explanation(CONTEXT, text(CONTEXT)), "# Context\n\n- energy: normal\n");
        let own = "# Context\n\n<!-- mine -->\n\n- tired <!-- wake 1 -->\n";
        assert_eq!(without_explanation(CONTEXT, own), own);
        assert_eq!(without_explanation("memory/notes.md", text(CONTEXT)), text(CONTEXT));
    }

    #[test]
    fn skills_are_valid_and_named_like_their_folders() {
        let mut seen = 0;
        for (path, text) in list_files() {
            let Some(folder) = path.strip_prefix("skills/").and_then(|path| path.strip_suffix("/SKILL.md")) else {
                continue;
            };
            let skill = Skill::parse(text).unwrap();
            assert_eq!(skill.check_folder(folder), None);
            seen += 1;
        }
        assert_eq!(seen, 3);
    }

    #[test]
    fn a_first_entry_and_a_first_fact_can_be_added() {
        let day = NaiveDate::from_ymd_opt(2026, 11, 21).unwrap();
        let time = NaiveTime::from_hms_opt(14, 3, 0).unwrap();
        let log = text(EPISODIC_MEMORY);
        assert_eq!(
            episodic::append_entry(log, day, time, &["woke"], "1"),
            format!("{log}\n## 2026-11-21\n- 14:03 woke <!-- wake 1 -->\n")
        );
        let Ok(facts::Added::New { text: known, .. }) = facts::add(text(SEMANTIC_MEMORY), None, "x", "wake 1") else {
            panic!()
        };
        assert_eq!(facts::Facts::parse(&known).0.iter().count(), 1);
    }
}
