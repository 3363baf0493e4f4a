//! The projects mentioned in a cycle's words, in its opening: each document with its open tasks. Other projects are found by searching.
//! Pure.

use reveille_base::{
    types::ChatRef,
    words::{one_line, truncate_text},
};
use reveille_memory as memory;
use reveille_memory::{
    others,
    project::{find_mentioned_projects, project_path},
    tasks::{Task, TaskList},
    unsettled::find_conflicts,
};
use reveille_tools::{Documents, known_projects};

use crate::decide::brief::{
    memories::{UNSETTLED, take_first_lines},
    text::{escape, escape_attribute},
};

/// The maximum number of projects shown.
const PROJECTS_MAX: usize = 3;
/// The maximum size of all shown projects, in tokens.
pub(super) const PROJECTS_TOKENS: u64 = 2_500;
/// The same for a small model.
pub(super) const SHORT_PROJECTS_TOKENS: u64 = 400;
/// The maximum number of open tasks shown per project.
const TASKS_MAX: usize = 10;
/// The maximum length of a shown next step, in characters.
const NEXT_CHARS: usize = 100;

/// A shown project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MentionedProject {
    /// The name.
    pub name: String,
    /// The path of its document, which may not exist.
    pub path: String,
}

/// Finds the projects mentioned in these words. Projects belong to the owner, so a guest's chat gets none.
pub fn list_mentioned_projects(documents: &Documents, reader: Option<ChatRef>, words: &str) -> Vec<MentionedProject> {
    if reader.is_some() {
        return Vec::new();
    }
    let known = known_projects(documents);
    let names: Vec<String> = known.iter().map(|(name, _)| name.clone()).collect();
    let tasks: Vec<Task> = list_open_tasks(documents).into_iter().map(|(_, task)| task).collect();
    let spoken = find_mentioned_projects(words, &names, &tasks).into_iter().take(PROJECTS_MAX);
    let path_of = |name: &str| known.iter().find(|(other, _)| other == name).map(|(_, path)| path.clone());
    spoken.map(|name| MentionedProject { path: path_of(&name).unwrap_or_else(|| project_path(&name)), name }).collect()
}

/// Lists the owner's open tasks, each with its list's name. Tasks with untrusted text are left out.
fn list_open_tasks(documents: &Documents) -> Vec<(&'static str, Task)> {
    let lists = [(memory::ACTIVE, "in hand"), (memory::BACKLOG, "waiting")];
    let of_list = |(path, list): (&str, &'static str)| {
        let text = others::remove_untrusted(path, &documents.text(path), None).0;
        let tasks = TaskList::parse(&text).0.tasks().to_vec();
        tasks.into_iter().filter(|task| !task.is_done()).map(move |task| (list, task)).collect::<Vec<_>>()
    };
    lists.into_iter().flat_map(of_list).collect()
}

/// Renders the projects' documents and tasks, with this many bytes for the documents. `None` if no project is mentioned.
pub(super) fn render_projects(documents: &Documents, spoken: &[MentionedProject], room: usize) -> Option<String> {
    let room = room / spoken.len().max(1);
    let tasks = list_open_tasks(documents);
    let mut text = String::from("<projects note=\"spoken of\">");
    for MentionedProject { name, path } in spoken {
        text.push_str(&format!("\n<project name=\"{}\" path=\"{}\"", escape_attribute(name), escape_attribute(path)));
        match documents.get(path) {
            None => text.push_str(" missing=\"true\">"),
            Some(document) => {
                let (document, withheld) = others::remove_untrusted(path, &document, None);
                let shown = fit_document(&document, room);
                let cut = if shown.len() < document.len() { " cut=\"look_up shows the rest\"" } else { "" };
                let withheld = if withheld > 0 { " withheld=\"look_up shows the rest\"" } else { "" };
                let unsettled = if find_conflicts(&document).is_empty() { "" } else { UNSETTLED };
                text.push_str(&format!("{cut}{withheld}{unsettled}>\n{}", escape(shown.trim_end())));
            }
        }
        let own: Vec<_> = tasks.iter().filter(|(_, task)| task.project().as_ref() == Some(name)).collect();
        for (list, task) in own.iter().take(TASKS_MAX) {
            let next = task.get("next").map(|next| format!(", next: {}", truncate_text(&one_line(next), NEXT_CHARS)));
            let due = task.get("due").map(|due| format!(", due {}", one_line(due)));
            let said = format!("{} ({list}{}{})", task.title, due.unwrap_or_default(), next.unwrap_or_default());
            text.push_str(&format!("\n<task>{}</task>", escape(&said)));
        }
        if own.len() > TASKS_MAX {
            text.push_str(&format!("\nand {} more tasks", own.len() - TASKS_MAX));
        }
        text.push_str("\n</project>");
    }
    text.push_str("\n</projects>");
    (!spoken.is_empty()).then_some(text)
}

/// Fits a document into its room: its beginning and the end of its log if it is too long.
fn fit_document(document: &str, room: usize) -> String {
    if document.len() <= room {
        return document.to_owned();
    }
    let begins = take_first_lines(document, room / 2);
    let mut left = room.saturating_sub(begins.len());
    let behind = document.get(begins.len()..).unwrap_or_default();
    let last: Vec<&str> = behind
        .split_inclusive('\n')
        .rev()
        .take_while(|line| {
            let fits = line.len() <= left;
            left = left.saturating_sub(line.len());
            fits
        })
        .collect();
    begins + "[…]\n" + &last.into_iter().rev().collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::tokens::TokenRate;

    fn room() -> usize {
        TokenRate::default().count_fitting_bytes(PROJECTS_TOKENS)
    }

    const DOCUMENT: &str = "# Greenhouse\n\n## Goal\nTomatoes & figs\n\n## Log\n- 2026-11-20 Measured\n";
    const TASKS: &str = "## Order the glass\n- project: Greenhouse\n- next: ask Bob\n\n## Old\n- status: done\n- project: greenhouse\n\n\
                         ## Of a guest\n- project: greenhouse\n- chat: 5\n\n## Sail\n- status: active\n";

    fn documents(dir: &tempfile::TempDir) -> Documents {
        let folder = dir.path().join("memory/project-memory");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("greenhouse.md"), DOCUMENT).unwrap();
        std::fs::write(folder.join("boat.md"), "# Boat\n").unwrap();
        std::fs::write(folder.join("active.md"), TASKS).unwrap();
        Documents::new(dir.path(), Vec::new())
    }

    #[test]
    fn only_mentioned_projects_are_shown_with_their_open_tasks() {
        let dir = tempfile::tempdir().unwrap();
        let documents = documents(&dir);
        let spoken = list_mentioned_projects(&documents, None, "How is the greenhouse?");
        insta::assert_snapshot!(render_projects(&documents, &spoken, room()).unwrap(), @r#"
        <projects note="spoken of">
        <project name="greenhouse" path="memory/project-memory/greenhouse.md">
        # Greenhouse

        ## Goal
        Tomatoes &amp; figs

        ## Log
        - 2026-11-20 Measured
        <task>Order the glass (in hand, next: ask Bob)</task>
        </project>
        </projects>
        "#);
        assert_eq!(list_mentioned_projects(&documents, None, "How are you?"), []);
        assert_eq!(list_mentioned_projects(&documents, Some(ChatRef::from_telegram(5)), "How is the greenhouse?"), []);
        assert_eq!(render_projects(&documents, &[], room()), None);
        let by_task = list_mentioned_projects(&documents, None, "order the glass");
        assert_eq!(by_task, spoken);
    }

    #[test]
    fn a_long_document_shows_its_beginning_and_what_happened_last() {
        let log: String = (0..2_000).map(|n| format!("- 2026-11-20 step {n}\n")).collect();
        let shown = fit_document(&format!("# Boat\n\n## Goal\nSail\n\n## Log\n{log}"), 4_000);
        assert!(shown.starts_with("# Boat\n\n## Goal\nSail\n") && shown.ends_with("step 1999\n"), "{shown}");
        assert!(shown.len() <= 4_010 && shown.contains("[…]"), "{}", shown.len());
    }
}
