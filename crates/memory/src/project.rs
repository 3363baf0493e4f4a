//! Projects: `memory/project-memory/<name>.md` holds a project's goal, context and log. Its tasks are only in the task lists,
//! with `- project: <name>`, to keep each task in a single place.
//!
//! An edit changes only the lines of its own section. [`find_mentioned_projects`] finds the projects named in a text, by their name or a
//! task's title, as whole words.

use chrono::NaiveDate;
use icu_normalizer::ComposingNormalizerBorrowed;

use reveille_base::{disk, words::truncate_text};

use super::{
    ACTIVE, BACKLOG, CONTEXT, PROJECTS_DIR, facts,
    sections::{Document, Spacing},
    tasks::{Task, safe_body},
    text::{
        detect_line_ending, ends_line, escape_start, fold_text, format_comment, is_blank, one_line, slice,
        split_comment, split_lines, split_words,
    },
};

/// The maximum length of a project's name, in characters.
pub const MAX_PROJECT_NAME_CHARS: usize = 60;
/// The maximum length of a goal or a context, in characters.
pub const MAX_PROJECT_TEXT_CHARS: usize = 4_000;
/// The maximum length of a line of a project's log, in characters.
pub const MAX_PROJECT_LOG_CHARS: usize = 500;
/// The maximum length of a log line's origin, in characters.
const MAX_ORIGIN_CHARS: usize = 200;
/// Names reserved for the memory's own documents.
const RESERVED: [&str; 4] = ["context", "active", "backlog", "plans"];
/// The sections, in order.
const SECTIONS: [&str; 3] = [GOAL, ABOUT, LOG];
const GOAL: &str = "Goal";
const ABOUT: &str = "Context";
const LOG: &str = "Log";

/// The reason a project's name is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectError {
    /// The name has other characters: use letters, digits, `-` and `_`.
    #[error("“{0}” can't name a project: use letters, digits, - and _, at most {MAX_PROJECT_NAME_CHARS} characters")]
    BadName(String),
    /// The name is reserved: choose another.
    #[error("“{0}” is reserved for the memory's own documents: give the project another name")]
    Reserved(String),
}

/// Normalises a project's name for paths and tasks: lower case, with `-` for blanks.
///
/// # Errors
/// [`ProjectError`].
pub fn project_name(given: &str) -> Result<String, ProjectError> {
    let composed = ComposingNormalizerBorrowed::new_nfc().normalize(given).to_lowercase();
    let name = composed.split_whitespace().collect::<Vec<_>>().join("-");
    let fits = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        && name.chars().any(char::is_alphanumeric)
        && !name.starts_with('-')
        && name.chars().count() <= MAX_PROJECT_NAME_CHARS;
    if !fits {
        return Err(ProjectError::BadName(one_line(given, MAX_PROJECT_NAME_CHARS)));
    }
    if is_reserved(&name) {
        return Err(ProjectError::Reserved(name));
    }
    Ok(name)
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&disk::fold_name(name).as_str())
}

/// Returns the path of a project's document.
pub fn project_path(name: &str) -> String {
    format!("{PROJECTS_DIR}/{name}.md")
}

/// Returns the file name without its ending, for a document directly in the folder of projects.
fn find_stem(path: &str) -> Option<&str> {
    path.strip_prefix(PROJECTS_DIR)?.strip_prefix('/')?.strip_suffix(".md").filter(|stem| !stem.contains('/'))
}

/// Returns the project whose document has this path.
pub fn project_from_path(path: &str) -> Option<String> {
    project_name(find_stem(path)?).ok()
}

/// Returns the problem of a document that looks like a project's but has a reserved name.
pub fn project_problem(path: &str) -> Option<String> {
    let is_own = [CONTEXT, ACTIVE, BACKLOG].contains(&path);
    let name = find_stem(path).filter(|stem| !is_own && is_reserved(stem))?;
    Some(format!(
        "{path}: “{name}” is reserved for the memory's own documents, so no project is read from it; rename it"
    ))
}

/// A project's document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// The goal.
    pub goal: String,
    /// The background needed for the work.
    pub context: String,
    /// The log without comments, one line per event, oldest first.
    pub log: Vec<String>,
}

impl Project {
    /// Parses a document. Unknown parts are skipped.
    pub fn parse(text: &str) -> Self {
        let document = Document::split(text);
        let body = |title: &str| {
            let part = document.sections().find(|part| fold_text(&part.title) == fold_text(title));
            part.map(|part| slice(text, part.body_start..part.range.end).trim().to_owned()).unwrap_or_default()
        };
        let log = document.sections().find(|part| fold_text(&part.title) == fold_text(LOG));
        let log = log.map(|part| part.items.iter().map(|item| format_log_line(document.slice(item))).collect());
        Self { goal: body(GOAL), context: body(ABOUT), log: log.unwrap_or_default() }
    }
}

/// Returns an item of the log on one line, without its mark and comment.
fn format_log_line(item: &str) -> String {
    let text = split_lines(item).map(|line| split_comment(line).0.trim()).collect::<Vec<_>>().join(" ");
    text.trim_start_matches(['-', '*', '+']).trim().to_owned()
}

/// An edit of a project's document.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProjectEdit<'a> {
    /// The new goal.
    pub goal: Option<&'a str>,
    /// The new context.
    pub context: Option<&'a str>,
    /// A new line for the log.
    pub log: Option<&'a str>,
}

/// Applies an edit, creating the document if `text` is `None`. `title` names a new document. `origin` is the author of a log line, for its
/// comment; empty for a person.
pub fn edited_project(
    text: Option<&str>,
    title: &str,
    edit: &ProjectEdit<'_>,
    (day, origin): (NaiveDate, &str),
) -> String {
    let title = one_line(title, MAX_PROJECT_NAME_CHARS);
    let mut text = text.map_or_else(|| format!("# {title}\n"), str::to_owned);
    for (section, new) in [(GOAL, edit.goal), (ABOUT, edit.context)] {
        if let Some(new) = new {
            text = with_section(&text, section, new);
        }
    }
    match edit.log {
        Some(line) => with_log_line(&text, line, day, origin),
        None => text,
    }
}

/// Returns the text with the body of one section replaced.
fn with_section(text: &str, title: &str, body: &str) -> String {
    let (document, eol) = (Document::split(text), detect_line_ending(text));
    let body: String = safe_body(&truncate_text(body, MAX_PROJECT_TEXT_CHARS))
        .iter()
        .skip(1)
        .map(|line| format!("{line}{eol}"))
        .collect();
    let Some(part) = document.sections().find(|part| fold_text(&part.title) == fold_text(title)) else {
        return with_new_section(&document, title, &format!("## {title}{eol}{body}"));
    };
    let end = document.content_end(part).max(part.body_start);
    let old = slice(text, part.body_start..end);
    // Keep the blank lines below the heading as they are.
    let blank: usize = split_lines(old).take_while(|line| is_blank(line)).map(str::len).sum();
    if old.trim() == body.trim() {
        return text.to_owned();
    }
    let lead = if ends_line(slice(text, 0..part.body_start)) { "" } else { eol };
    document.splice(part.body_start + blank..end, &format!("{lead}{body}"))
}

/// Adds a missing section, before those that follow it in order.
fn with_new_section(document: &Document<'_>, title: &str, block: &str) -> String {
    let after = SECTIONS.iter().skip_while(|section| **section != title).skip(1);
    let after: Vec<String> = after.map(|section| fold_text(section)).collect();
    let next = document.parts.iter().position(|part| part.level == 2 && after.contains(&fold_text(&part.title)));
    match next.and_then(|at| Some((document.parts.get(at.checked_sub(1)?)?, document.parts.get(at)?))) {
        Some((before, next)) => document.insert(before, next.range.start, block, Spacing::BlankLine),
        None => document.append(block),
    }
}

/// Appends a line to the log, unless the same line exists for this day.
fn with_log_line(text: &str, line: &str, day: NaiveDate, origin: &str) -> String {
    let line = one_line(line, MAX_PROJECT_LOG_CHARS);
    let (document, eol) = (Document::split(text), detect_line_ending(text));
    let entry = format!("{day} {}", escape_start(&line));
    let comment =
        if origin.is_empty() { String::new() } else { format!(" {}", format_comment(origin, MAX_ORIGIN_CHARS)) };
    let item = format!("- {entry}{comment}{eol}");
    match document.sections().find(|part| fold_text(&part.title) == fold_text(LOG)) {
        Some(part)
            if part.items.iter().any(|item| fold_text(&format_log_line(document.slice(item))) == fold_text(&entry)) =>
        {
            text.to_owned()
        }
        Some(part) => facts::add_item(&document, part, &item),
        None => document.append(&format!("## {LOG}{eol}{item}")),
    }
}

/// Returns the projects mentioned in a text, each once: those named directly first, then those of named tasks. `known` lists the projects
/// with a document.
pub fn find_mentioned_projects(text: &str, known: &[String], tasks: &[Task]) -> Vec<String> {
    let words = split_words(text);
    let has_name = |name: &str| {
        let name = split_words(name);
        !name.is_empty() && words.windows(name.len()).any(|window| window == name)
    };
    let named = known.iter().cloned().chain(tasks.iter().filter_map(Task::project)).filter(|name| has_name(name));
    let by_task = tasks.iter().filter(|task| has_name(&task.title)).filter_map(Task::project);
    let mut found: Vec<String> = Vec::new();
    for name in named.chain(by_task) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{strategies::document, tasks::TaskList};

    fn day() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, 25).unwrap()
    }

    fn edit<'a>(goal: &'a str, context: &'a str, log: &'a str) -> ProjectEdit<'a> {
        let given = |text: &'a str| Some(text).filter(|text| !text.is_empty());
        ProjectEdit { goal: given(goal), context: given(context), log: given(log) }
    }

    #[test]
    fn a_name_is_one_step_of_a_path_and_none_of_the_memorys_own() {
        for (said, name) in [
            ("Greenhouse", "greenhouse"),
            (" Summer  House ", "summer-house"),
            ("Mu\u{308}ller_2", "müller_2"),
            ("2027", "2027"),
        ] {
            assert_eq!(project_name(said).as_deref(), Ok(name));
        }
        for said in ["", "  ", "-", "_", "a/b", "../x", ".git", "a.md", "x\0y", "a:b", "-x", &"a".repeat(61)] {
            assert!(matches!(project_name(said), Err(ProjectError::BadName(_))), "{said:?}");
        }
        for said in ["context", "Active", "BACKLOG", "plans", "plan\u{17f}"] {
            assert!(matches!(project_name(said), Err(ProjectError::Reserved(_))), "{said:?}");
        }
        assert_eq!(project_from_path("memory/project-memory/Summer House.md").as_deref(), Some("summer-house"));
        for path in ["memory/project-memory/active.md", "memory/project-memory/a/b.md", "memory/notes/a.md", "a.md"] {
            assert_eq!(project_from_path(path), None, "{path}");
        }
        let named = project_problem("memory/project-memory/Plans.md").unwrap();
        assert!(named.contains("reserved for the memory's own documents"), "{named}");
        for fine in [CONTEXT, ACTIVE, BACKLOG, "memory/project-memory/greenhouse.md", "memory/plans.md"] {
            assert_eq!(project_problem(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_document_is_made_and_edited_by_its_own_lines() {
        let made = edited_project(None, "Greenhouse", &edit("", "South wall.", "Measured it"), (day(), "wake 1"));
        assert_eq!(
            made,
            "# Greenhouse\n\n## Context\nSouth wall.\n\n## Log\n- 2026-11-25 Measured it <!-- wake 1 -->\n"
        );
        let with_goal = edited_project(Some(&made), "x", &edit("Tomatoes in May.\n## No heading", "", ""), (day(), ""));
        insta::assert_snapshot!(with_goal, @r"
        # Greenhouse

        ## Goal
        Tomatoes in May.
        \## No heading

        ## Context
        South wall.

        ## Log
        - 2026-11-25 Measured it <!-- wake 1 -->
        ");
        let by_hand =
            with_goal.replace("South wall.", "South wall.\n\n### Sizes\n- 2 by 3\n").replacen("# G", "# My g", 1);
        let again = edited_project(Some(&by_hand), "x", &edit("Figs.", "", "Bought glass"), (day(), ""));
        let expected = by_hand.replace("Tomatoes in May.\n\\## No heading", "Figs.") + "- 2026-11-25 Bought glass\n";
        assert_eq!(again, expected, "what a person wrote elsewhere keeps every byte");
        let twice = edited_project(Some(&again), "x", &edit("Figs.", "", "bought glass."), (day(), "wake 2"));
        assert_eq!(twice, again);
        let read = Project::parse(&again);
        assert_eq!((read.goal.as_str(), read.log.len()), ("Figs.", 2));
        assert_eq!(read.log[1], "2026-11-25 Bought glass");
        assert!(read.context.contains("### Sizes"), "{}", read.context);
    }

    #[test]
    fn a_project_is_spoken_of_by_its_name_or_a_tasks_title_in_whole_words() {
        let tasks =
            "## Order the glass\n- project: Summer House\n\n## Call Bob\n- status: active\n\n## Sail\n- project: art\n";
        let tasks = TaskList::parse(tasks).0.tasks().to_vec();
        let known = ["greenhouse".to_owned(), "art".to_owned()];
        let of = |said: &str| find_mentioned_projects(said, &known, &tasks).join(" ");
        assert_eq!(of("How is the Greenhouse?"), "greenhouse");
        assert_eq!(of("where do we start, and call Bob"), "", "`art` isn't in `start`");
        assert_eq!(of("my art, and the summer-house"), "art summer-house");
        assert_eq!(of("task \"Order the glass\" has its next step now"), "summer-house");
        assert_eq!(of("order glass"), "");
        assert_eq!(of("sail to the greenhouse"), "greenhouse art");
        assert_eq!(of(""), "");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back_whatever_stood_there(text in document(), goal in "[a-z]{3,20}", line in "[a-z]{3,20}") {
            let new = edited_project(Some(&text), "x", &edit(&goal, "", &line), (day(), "wake 1"));
            let read = Project::parse(&new);
            prop_assert!(read.goal.contains(&goal), "{:?}", new);
            prop_assert!(read.log.iter().any(|said| said == &format!("2026-11-25 {line}")), "{:?}", new);
            // All other sections stand as they stood.
            let old = Document::split(&text);
            for part in old.sections().filter(|part| !["goal", "log"].contains(&fold_text(&part.title).as_str())) {
                let kept = old.slice(&part.range).trim_end();
                prop_assert!(new.contains(kept), "{:?} is gone from {:?}", kept, new);
            }
        }
    }
}
