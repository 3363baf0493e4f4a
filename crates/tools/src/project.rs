//! `project_note` writes a project's document: its goal, its context, a line of its log. The project's tasks are in the task lists.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_memory::{
    others,
    project::{
        MAX_PROJECT_LOG_CHARS, MAX_PROJECT_TEXT_CHARS, ProjectEdit, edited_project, project_from_path, project_name,
        project_path,
    },
};
use reveille_policy::Reach;

use super::{Change, Documents, Done, Outcome, Refusal, Tool, World, check_text, note, shorten_text};

/// The name of the tool that writes a project's document.
pub(super) const PROJECT_NOTE: &str = "project_note";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Its name; a new one makes the document.
    project: String,
    /// Its goal, which replaces the present one.
    #[serde(default)]
    goal: Option<String>,
    /// What one has to know for it, which replaces the present text.
    #[serde(default)]
    context: Option<String>,
    /// What happened, one line: it is added with today's date.
    #[serde(default)]
    log: Option<String>,
    /// Say `true` to change what your person wrote there by hand, because they said that it no longer holds.
    #[serde(default)]
    over_theirs: bool,
}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        PROJECT_NOTE,
        "Write down of a project: its goal, its context, what happened. Its tasks are `tasks` with its name as `project`.",
        Effect::Idempotent,
        run,
    )
    .with_reach(Reach::Persists)
    .for_owner()
}

/// Returns the projects with a document: name and path. If two documents have the same name, the first counts.
pub fn known_projects(documents: &Documents) -> Vec<(String, String)> {
    let mut known: Vec<(String, String)> = Vec::new();
    for path in documents.list() {
        if let Some(name) = project_from_path(&path).filter(|name| known.iter().all(|(other, _)| other != name)) {
            known.push((name, path));
        }
    }
    known
}

fn run(args: &Args, world: &World) -> Outcome {
    if world.foreign_chat().is_some() {
        return Err(Refusal::new("Projects are the owner's alone. Nothing was done.".to_owned()));
    }
    let name = project_name(&args.project).map_err(|error| Refusal::new(format!("{error}. Nothing was done.")))?;
    let checked =
        |text: &Option<String>, what, max| text.as_deref().map(|text| check_text(text, what, max)).transpose();
    let goal = checked(&args.goal, "goal", MAX_PROJECT_TEXT_CHARS)?;
    let context = checked(&args.context, "context", MAX_PROJECT_TEXT_CHARS)?;
    let log = checked(&args.log, "log", MAX_PROJECT_LOG_CHARS)?;
    let edit = ProjectEdit { goal: goal.as_deref(), context: context.as_deref(), log: log.as_deref() };
    let parts = [("its goal", edit.goal), ("its context", edit.context), ("its log", edit.log)];
    let written: Vec<&str> = parts.iter().filter(|(_, text)| text.is_some()).map(|(what, _)| *what).collect();
    let Some(said) = parts.iter().rev().find_map(|(_, text)| *text) else {
        return Err(Refusal::new("Give a goal, a context or a line for the log. Nothing was done.".to_owned()));
    };
    let (path, old) = read_document(&name, world);
    let new =
        edited_project(old.as_deref(), &args.project, &edit, (world.local_time().date_naive(), &format_origin(world)));
    if old.as_ref() == Some(&new) {
        return Ok(Done::from_text(format!("{path} says just that already.")));
    }
    let change = world.memory.documents.stage(&path, new);
    if !args.over_theirs
        && let Some(theirs) = note::find_reverted_line(world, &change)
    {
        return Err(note::refuse_undoing_person_edit(&path, &theirs));
    }
    let verb = if old.is_some() { "Wrote" } else { "Began the project and wrote" };
    Ok(Done {
        content: format!("{path} is written: {}.", written.join(", ")),
        receipt: Some(format!("{verb} {} of the project {name}: {}", written.join(", "), shorten_text(said))),
        changes: vec![change],
        ..Done::default()
    })
}

fn read_document(name: &str, world: &World) -> (String, Option<String>) {
    let known = known_projects(&world.memory.documents).into_iter().find(|(other, _)| other == name);
    let path = known.map_or_else(|| project_path(name), |(_, path)| path);
    let text = world.memory.documents.get(&path);
    (path, text)
}

/// Returns the origin noted at the end of a log line: the wake, or nothing for a person's order.
fn format_origin(world: &World) -> String {
    let mark = if world.cycle.taint.is_some() { others::TAINTED_MARK } else { "" };
    if world.cycle.id.is_empty() { String::new() } else { format!("wake {}{mark}", world.cycle.id) }
}

/// Logs a finished or dropped task in its project's document, if there is one. A guest's order adds no entry.
pub(super) fn stage_log_entry(name: &str, what: &str, world: &World) -> Option<Change> {
    if world.foreign_chat().is_some() {
        return None;
    }
    let (path, old) = read_document(name, world);
    let old = old?;
    let edit = ProjectEdit { log: Some(what), ..ProjectEdit::default() };
    let new = edited_project(Some(&old), name, &edit, (world.local_time().date_naive(), &format_origin(world)));
    (new != old).then(|| world.memory.documents.stage(&path, new))
}
