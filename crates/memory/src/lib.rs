//! Markdown memory that people edit too, as pure values: text in; a value and its problems, or a new text, out.
//!
//! Nothing here does I/O. [`markdown`] finds the blocks of a text, and [`sections`] cuts a file into parts by them. On top, [`tasks`],
//! [`facts`] and [`episodic`] read and edit the documents. An edit changes only its own lines, and everything else keeps every byte.
//! [`merge`] combines a person's edits with a wake's; [`unsettled`] marks the conflicts left to the person. [`view`] limits the memory to
//! the lines one chat may see, [`others`] finds untrusted parts, and [`imported`] handles documents from other programs. [`forgetting`]
//! removes words, [`changes`] compares two versions, and [`typed`] accepts text from a web form. [`quoting`] answers a question with facts.
//! [`decay`] finds quiet tasks, [`preferences`] reads the person's wishes, [`initiative`] picks work worth doing unasked, and [`reflect`]
//! sums up past days. [`project`] is the document of a project, [`steps`] of a long task, and [`job`] of a standing job. [`skill`] reads
//! `SKILL.md`, and [`templates`] holds the files of a new repository. Damage becomes a [`Problem`], never a panic.

pub mod changes;
pub mod claim;
pub mod decay;
pub mod episodic;
pub mod facts;
pub mod forgetting;
mod front_matter;
pub mod giving_back;
pub mod imported;
pub mod initiative;
pub mod job;
pub mod lists;
pub mod lookup;
pub mod markdown;
pub mod merge;
pub mod origin;
pub mod others;
pub mod outside;
pub mod own_name;
pub mod preferences;
pub mod project;
pub mod quoting;
pub mod reflect;
pub mod render;
pub mod sections;
pub mod skill;
pub mod steps;
pub mod tasks;
pub mod templates;
mod text;
pub mod typed;
pub mod undo;
pub mod unsettled;
pub mod view;

use reveille_base::disk;

/// The standing orders. Like all constants here, a path in the repository.
pub const CLAUDE: &str = "claude.md";
/// The current state of the work, rewritten each cycle.
pub const WORKING_MEMORY: &str = "memory/agent-memory/working-memory.md";
/// The append-only log of events.
pub const EPISODIC_MEMORY: &str = "memory/agent-memory/episodic-memory.md";
/// The facts by topic.
pub const SEMANTIC_MEMORY: &str = "memory/agent-memory/semantic-memory.md";
/// The folder for the log's oldest days, one file per month.
pub const ARCHIVE_DIR: &str = "memory/agent-memory/archive";
/// The folder of daily summaries per chat, one file per month.
pub const DAYS_DIR: &str = "memory/agent-memory/days";
/// The person's state: energy, constraints, preferences.
pub const CONTEXT: &str = "memory/project-memory/context.md";
/// The active tasks, at most [`tasks::MAX_ACTIVE_TASKS`].
pub const ACTIVE: &str = "memory/project-memory/active.md";
/// The waiting tasks.
pub const BACKLOG: &str = "memory/project-memory/backlog.md";
/// The folder of the person's state, the tasks and the project documents.
const PROJECTS_DIR: &str = "memory/project-memory";
/// The folder of the steps of long tasks, one file per task: see [`steps`].
pub const PLANS_DIR: &str = "memory/project-memory/plans";
/// The folder with separate documents for each chat other than the owner's.
const CHATS_DIR: &str = "memory/chats";
/// The folder of documents from other programs. All of them are untrusted until a person moves them elsewhere.
pub const IMPORTED_DIR: &str = "memory/imported";
/// The documents read by every wake.
pub const DOCUMENTS: [&str; 6] = [CONTEXT, ACTIVE, BACKLOG, WORKING_MEMORY, SEMANTIC_MEMORY, EPISODIC_MEMORY];

/// Returns whether a document steers the model: the standing orders, the skills and the standing jobs.
pub fn is_steering(path: &str) -> bool {
    path == CLAUDE || path.starts_with("skills/") || is_job(path)
}

/// Returns whether a document is in the folder of the standing jobs, which belong to the owner alone.
pub fn is_job(path: &str) -> bool {
    is_in_folder(job::JOBS_DIR, path)
}

/// Returns whether a disk might resolve this path to one of the documents we recognise by path, although the path differs. Disks ignore
/// empty and dot steps, and some ignore case ([`disk::fold_name`]).
pub fn is_disguised(path: &str) -> bool {
    let folded = disk::fold_name(path);
    let steps: Vec<&str> = folded.split('/').filter(|step| !matches!(*step, "" | ".")).collect();
    let plain = steps.join("/");
    let leads_into = |folder: &&str| {
        let is_in = |path: &str| path.strip_prefix(*folder).is_some_and(|rest| rest.starts_with('/'));
        is_in(&plain) && !is_in(path)
    };
    DOCUMENTS.contains(&&*plain) && plain != path
        || [CHATS_DIR, ARCHIVE_DIR, DAYS_DIR, IMPORTED_DIR, job::JOBS_DIR, PLANS_DIR].iter().any(leads_into)
}

/// Files of up to this many bytes may shrink freely: see [`shrinks_too_much`].
pub const SMALL_FILE_BYTES: usize = 512;

/// A part of a document with an unclear meaning. Reveille reports problems and never repairs them silently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The affected line, counted from 1.
    pub line: usize,
    /// The fault and its present reading, for a person.
    pub what: String,
}

impl Problem {
    pub(crate) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The shape of a document, which decides how it is read and merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocKind {
    /// `## Title` sections with `- key: value` lines: [`tasks`].
    Tasks,
    /// `## Topic` sections of `- ` facts: [`facts`].
    Facts,
    /// `## 2026-11-21` days of `- 14:03 …` entries: [`episodic`].
    Log,
    /// Any other Markdown.
    Text,
}

impl DocKind {
    /// Returns the kind of the document at a path in the repository.
    pub fn from_path(path: &str) -> Self {
        match path {
            ACTIVE | BACKLOG => Self::Tasks,
            SEMANTIC_MEMORY => Self::Facts,
            EPISODIC_MEMORY => Self::Log,
            _ if is_in_folder(PLANS_DIR, path) => Self::Tasks,
            _ if is_in_folder(ARCHIVE_DIR, path) || is_in_folder(DAYS_DIR, path) => Self::Log,
            _ => Self::Text,
        }
    }
}

/// Returns whether this is the log, which keeps everything. Daily summaries of the log can be undone.
pub fn is_log(path: &str) -> bool {
    DocKind::from_path(path) == DocKind::Log && !is_in_folder(DAYS_DIR, path)
}

/// Returns whether a document came from another program and still lies in the import folder.
pub fn is_imported(path: &str) -> bool {
    is_in_folder(IMPORTED_DIR, path)
}

/// Returns whether a path lies below a folder.
pub fn is_in_folder(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether a rewrite would shrink a file by more than half. Such a rewrite is more often a slip than a wish, and is refused. Files
/// of up to [`SMALL_FILE_BYTES`] bytes are exempt.
pub fn shrinks_too_much(old: &str, new: &str) -> bool {
    old.len() > SMALL_FILE_BYTES && new.len() < old.len().div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_tells_the_kind() {
        assert_eq!(DocKind::from_path(ACTIVE), DocKind::Tasks);
        assert_eq!(DocKind::from_path(BACKLOG), DocKind::Tasks);
        assert_eq!(DocKind::from_path(SEMANTIC_MEMORY), DocKind::Facts);
        assert_eq!(DocKind::from_path(EPISODIC_MEMORY), DocKind::Log);
        assert_eq!(DocKind::from_path("memory/agent-memory/archive/2026-11.md"), DocKind::Log);
        assert_eq!(DocKind::from_path("memory/agent-memory/archived.md"), DocKind::Text);
        assert_eq!(DocKind::from_path(CLAUDE), DocKind::Text);
    }

    #[test]
    fn no_other_spelling_of_a_documents_path_is_taken_for_another_document() {
        for path in [
            "memory/agent-memory/Semantic-memory.md",
            "memory/Agent-Memory/semantic-memory.md",
            "memory/agent-memory/EPISODIC-MEMORY.MD",
            "memory/agent-memory/\u{17f}emantic-memory.md",
            "memory/agent-memory/wor\u{212a}ing-memory.md",
            "memory/agent-memory/semantic\u{ad}-memory.md",
            "memory/agent-memory/semantic-memory.md\u{200d}",
            "memory/agent-memory/./semantic-memory.md",
            "memory//agent-memory/semantic-memory.md",
            "memory/agent-memory/Archive/2026-11.md",
            "memory/Chats/77/context.md",
            "memory/project-memory/Active.md",
            "memory/Imported/notes/a.md",
            "memory/Jobs/a.md",
            "memory//jobs/a.md",
        ] {
            assert!(is_disguised(path), "{path}");
        }
        let plain = [
            "memory/agent-memory/archive/2026-11.md",
            "memory/chats/77/context.md",
            "memory/imported/notes/a.md",
            "memory/jobs/a.md",
            "memory/Notizen/Müller.md",
        ];
        for path in DOCUMENTS.into_iter().chain(plain).chain([CLAUDE, "skills/Tea/SKILL.md", "memory/Active.md"]) {
            assert!(!is_disguised(path), "{path}");
        }
    }

    #[test]
    fn half_may_go_but_not_more() {
        let old = "x".repeat(1_001);
        assert!(!shrinks_too_much(&old, &"y".repeat(501)));
        assert!(shrinks_too_much(&old, &"y".repeat(500)));
        assert!(!shrinks_too_much(&"x".repeat(SMALL_FILE_BYTES), ""));
        assert!(!shrinks_too_much("", "anything"));
    }
}

/// Files of ten thousand lines, through every document's way: what is quadratic shows here as a hanging test.
#[cfg(test)]
mod large {
    use chrono::{NaiveDate, NaiveTime};

    use super::*;

    #[test]
    fn ten_thousand_lines_are_read_edited_merged_and_quoted() {
        let day = NaiveDate::from_ymd_opt(2026, 11, 21).unwrap();
        let tasks: String = (0..3_334).map(|n| format!("## Task {n}\n- status: active\n\n")).collect();
        let list = tasks::TaskList::parse(&tasks).0;
        let ours = list.touch("Task 3333", day).unwrap();
        let person = list.set("Task 0", "status", Some("done")).unwrap();
        let merged = merge::merge(DocKind::Tasks, &tasks, &person, &ours);
        assert_eq!((merged.conflicts.len(), merged.text.len()), (0, tasks.len() + "- touched: 2026-11-21\n".len() - 2));

        let facts: String = (0..10_000).map(|n| format!("- fact {n}\n")).collect();
        let facts = format!("## Notes\n{facts}");
        let facts::Added::New { text: ours, .. } = facts::add(&facts, None, "new", "wake 1").unwrap() else { panic!() };
        let ours = facts::forget(&ours, "fact 5000").unwrap().text;
        let person = facts.replace("- fact 0\n", "").replace("- fact 9999\n", "");
        let merged = merge::merge(DocKind::Facts, &facts, &person, &ours);
        assert_eq!((merged.conflicts.len(), facts::Facts::parse(&merged.text).0.iter().count()), (0, 9_998));

        let log: String = (0..10_000).map(|n| format!("- 10:00 did {n} <!-- wake {n} -->\n")).collect();
        let log = format!("## 2026-11-20\n{log}");
        let ours = episodic::append_entry(&log, day, NaiveTime::MIN, &["x"], "1");
        let person = episodic::append_entry(&log, day, NaiveTime::MIN, &["y"], "2");
        let merged = merge::merge(DocKind::Log, &log, &person, &ours).text;
        assert_eq!(episodic::Log::parse(&merged).0.days[1].entries.len(), 2);
        assert_eq!(episodic::archive(&merged, 2_000).unwrap().1.len(), 1);
        let quoted = quoting::quote(&[(SEMANTIC_MEMORY, facts.as_str())], "fact 77").unwrap();
        assert_eq!(quoted[0].line, 79);
    }
}

#[cfg(test)]
mod strategies;
