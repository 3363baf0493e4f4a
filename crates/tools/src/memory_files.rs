//! `memory`: the memory's documents as files beneath `/memories`, for models trained on a tool of this name. The
//! commands and arguments are theirs; the effects are ours: a document is staged, merged and committed like any other
//! edit.
//!
//! The tool isn't offered at a cycle's start, but `find_tools` finds it. If the API sees its type, the model is told
//! to search `/memories` first, which costs each cycle a turn for content already in the prompt. Besides, specific
//! tools (`remember`, `task_done`) maintain origins, dates and headings, unlike plain edits.

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_memory as memory;
use reveille_memory::{ARCHIVE_DIR, DOCUMENTS, DocKind, PLANS_DIR, others, shrinks_too_much, view};
use reveille_sandbox::exec::edits;

use super::{
    Done, Outcome, Refusal, Tool, Touched, World, check_text, note,
    read::{self, READ},
};

/// The tool's name.
const NAME: &str = "memory";
/// The model's path of the memory folder.
const ROOT: &str = "/memories";
/// Maximum size of a written document, in bytes.
const MAX_BYTES: usize = 256 * 1024;
/// Maximum bytes of a document shown by one call.
const MAX_SHOWN_BYTES: usize = 20 * 1024;
/// Maximum number of documents listed of one folder.
const MAX_LISTED: usize = 1_000;
/// Maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 200;

#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Command {
    View,
    Create,
    StrReplace,
    Insert,
    Delete,
    Rename,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// view: a document's lines, or a folder's documents. create: a document with this text. str_replace: old_str, which must occur
    /// exactly once, becomes new_str. insert: lines after a line. delete and rename: documents of your own.
    command: Command,
    /// The document or folder, such as `/memories/project-memory/recipes.md`.
    #[serde(default)]
    path: Option<String>,
    /// view: the first and the last line, from 1; -1 is the end.
    #[serde(default)]
    view_range: Option<[i64; 2]>,
    /// create: the document's content.
    #[serde(default)]
    file_text: Option<String>,
    /// str_replace: the text to replace.
    #[serde(default)]
    old_str: Option<String>,
    /// str_replace: the replacement; nothing when left out.
    #[serde(default)]
    new_str: Option<String>,
    /// insert: the line after which to insert; 0 is the beginning.
    #[serde(default)]
    insert_line: Option<usize>,
    /// insert: the lines.
    #[serde(default)]
    insert_text: Option<String>,
    /// rename: the document.
    #[serde(default)]
    old_path: Option<String>,
    /// rename: its new path.
    #[serde(default)]
    new_path: Option<String>,
}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        NAME,
        "The memory's documents as files beneath /memories: view, create, str_replace, insert, delete, rename. For documents that no \
         other tool keeps; facts, tasks, notes and reminders have tools of their own.",
        Effect::Staged,
        run,
    )
    .with_targets(|args: &Args| {
        let names = [&args.path, &args.old_path, &args.new_path].into_iter().flatten().filter_map(|path| parse_name(path));
        match args.command {
            Command::View => Touched::Documents(names.collect()),
            command => {
                let removes = matches!(command, Command::Delete | Command::Rename);
                Touched::Edits { names: names.collect(), removes }
            }
        }
    })
    .with_reading_rules_of(READ)
    // No beta header is needed: Anthropic's SDK accepts this type in its general Messages API (2.12.0).
    .with_trained_type("memory_20250818")
}

/// Converts a path to a document's name in the memory; empty for the root folder, `None` for a path outside of [`ROOT`].
///
/// The standing orders and the skills lie beside the memory's folder, but within it for the model.
fn parse_name(path: &str) -> Option<String> {
    let below = path.strip_prefix(ROOT)?;
    let below = match below.strip_prefix('/') {
        Some(below) => below.trim_end_matches('/'),
        None if below.is_empty() => "",
        None => return None,
    };
    let is_plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    if path.len() > MAX_PATH_BYTES || !(below.is_empty() || below.split('/').all(is_plain)) {
        return None;
    }
    let is_beside = below == memory::CLAUDE || below == "skills" || below.starts_with("skills/");
    Some(if is_beside || below.is_empty() { below.to_owned() } else { format!("memory/{below}") })
}

fn format_shown_path(name: &str) -> String {
    format!("{ROOT}/{}", name.strip_prefix("memory/").unwrap_or(name))
}

fn run(args: &Args, world: &World) -> Outcome {
    match args.command {
        Command::View => view_path(args, world),
        Command::Create => {
            let name = check_writable(require_argument(args.path.as_deref(), "path")?, world)?;
            let text = check_text(require_argument(args.file_text.as_deref(), "file_text")?, "file_text", MAX_BYTES)?;
            let text = format!("{text}\n");
            if world.memory.documents.get(&name).is_some_and(|old| shrinks_too_much(&old, &text)) {
                return Err(Refusal::new(format!(
                    "{} is there and says more than twice as much; a document isn't overwritten by that little. Edit it with \
                     str_replace. Nothing was done.",
                    format_shown_path(&name)
                )));
            }
            let done = stage_document(world, &name, text, "Wrote")?;
            match done.changes.first().and_then(|change| note::find_reverted_line(world, change)) {
                Some((line, _)) => Err(Refusal::new(format!(
                    "That would undo what your person did there by hand: {line:?}. Edit it with str_replace. Nothing was done."
                ))),
                None => Ok(done),
            }
        }
        Command::StrReplace => edit_document(args, world, |text| {
            let old = require_argument(args.old_str.as_deref(), "old_str")?;
            Ok(edits::replace_once(text, old, args.new_str.as_deref().unwrap_or_default()).map(|(text, _)| text))
        }),
        Command::Insert => edit_document(args, world, |text| {
            let line = args.insert_line.ok_or_else(|| refuse_missing("insert_line"))?;
            Ok(edits::insert_lines(text, line, require_argument(args.insert_text.as_deref(), "insert_text")?))
        }),
        Command::Delete => {
            let name = check_removable(require_argument(args.path.as_deref(), "path")?, world)?;
            let mut done = stage_document(world, &name, String::new(), "Emptied")?;
            done.content =
                format!("{} says nothing any more. What it said stays in the history.", format_shown_path(&name));
            Ok(done)
        }
        Command::Rename => rename_document(args, world),
    }
}

fn require_argument<'a>(argument: Option<&'a str>, name: &str) -> Result<&'a str, Refusal> {
    argument.ok_or_else(|| refuse_missing(name))
}

fn refuse_missing(name: &str) -> Refusal {
    Refusal::new(format!("{name} is missing, which this command needs. Nothing was done."))
}

fn refuse_path(path: &str) -> Refusal {
    Refusal::new(format!(
        "{path:?} isn't a path of the memory: those begin with {ROOT}/, in plain letters, digits, dots and dashes. Nothing was done."
    ))
}

fn view_path(args: &Args, world: &World) -> Outcome {
    let path = args.path.as_deref().unwrap_or(ROOT);
    let name = parse_name(path).ok_or_else(|| refuse_path(path))?;
    if let Some(text) = world.memory.documents.get(&name) {
        let lines = edits::number_lines(&text, args.view_range, MAX_SHOWN_BYTES);
        let lines = lines.map_err(|why| Refusal::new(format!("{why} Nothing was done.")))?;
        let [first, last] = args.view_range.unwrap_or([1, -1]);
        let last = usize::try_from(last).unwrap_or(usize::MAX);
        let is_theirs =
            others::has_untrusted_lines(&name, &text, world.foreign_chat(), usize::try_from(first).unwrap_or(1), last);
        return Ok(Done { taint: is_theirs.then(|| others::ORIGIN.to_owned()), ..Done::from_text(lines) });
    }
    let folder = if name.is_empty() { String::new() } else { format!("{name}/") };
    let is_there = |name: &String| name.starts_with(&folder) && !world.memory.documents.text(name).is_empty();
    let names: Vec<String> = world.memory.documents.list().into_iter().filter(is_there).collect();
    // Others have named the imported documents, so listing them reads untrusted text.
    let (taint, names) = match memory::is_imported(&folder) {
        true => (Some(others::ORIGIN.to_owned()), names.join("\n")),
        false => (None, read::render_names(names)),
    };
    let names: Vec<String> = names.lines().take(MAX_LISTED).map(format_shown_path).collect();
    match names.is_empty() && !name.is_empty() {
        true => Err(Refusal::new(format!("There is nothing at {path}. {ROOT} lists what there is."))),
        false => Ok(Done { taint, ..Done::from_text(format!("The documents in {path}:\n{}", names.join("\n"))) }),
    }
}

/// Checks that a document may be written by this tool, and returns its name.
fn check_writable(path: &str, world: &World) -> Result<String, Refusal> {
    let name = parse_name(path).filter(|name| name.ends_with(".md"));
    let name = name.ok_or_else(|| {
        Refusal::new(format!(
            "{path:?} can't be a document: their paths begin with {ROOT}/ and end in .md. Nothing was done."
        ))
    })?;
    if world.foreign_chat().is_some() {
        return Err(Refusal::new(
            "In this chat only the tools for notes, facts and tasks write to the memory. Nothing was done.",
        ));
    }
    if memory::is_disguised(&name) {
        return Err(Refusal::new(format!(
            "{path} is another spelling of a document's path: some disks take it for that one. Nothing was done."
        )));
    }
    if DocKind::from_path(&name) == DocKind::Log || name.starts_with(ARCHIVE_DIR) {
        return Err(Refusal::new("The log is made from your receipts and never edited. Nothing was done."));
    }
    if memory::is_imported(&name) {
        return Err(Refusal::new(format!(
            "{path} came in from another program. It counts as your person's once they move it elsewhere, by hand. Nothing was done."
        )));
    }
    if memory::is_in_folder(PLANS_DIR, &name) {
        return Err(Refusal::new(
            "The steps of a long task and their budget change by `long_tasks`, or by your person's hand. Nothing was done.",
        ));
    }
    if name.starts_with("memory/chats/") {
        return Err(Refusal::new("What is kept for another chat is written in that chat. Nothing was done."));
    }
    Ok(name)
}

/// Checks that a document may be removed or renamed: wakes neither rely on nor are steered by it.
fn check_removable(path: &str, world: &World) -> Result<String, Refusal> {
    let name = check_writable(path, world)?;
    if memory::is_job(&name) {
        return Err(Refusal::new(format!(
            "{path} is a standing job, which a person takes away. `status: paused` in it lets it rest. Nothing was done."
        )));
    }
    if DOCUMENTS.contains(&name.as_str()) || memory::is_steering(&name) {
        return Err(Refusal::new(format!("Each wake relies on {path}; it stays, under this name. Nothing was done.")));
    }
    match world.memory.documents.get(&name).is_some_and(|text| !text.is_empty()) {
        true => Ok(name),
        false => Err(Refusal::new(format!("There is nothing at {path}. Nothing was done."))),
    }
}

/// Edits an existing document.
fn edit_document(
    args: &Args,
    world: &World,
    edit: impl FnOnce(&str) -> Result<Result<String, String>, Refusal>,
) -> Outcome {
    let path = require_argument(args.path.as_deref(), "path")?;
    let name = check_writable(path, world)?;
    let Some(old) = world.memory.documents.get(&name) else {
        return Err(Refusal::new(format!("There is nothing at {path}. Nothing was done.")));
    };
    let new = edit(&old)?.map_err(|why| Refusal::new(format!("{why} Nothing was done.")))?;
    if new.len() > MAX_BYTES {
        return Err(Refusal::new(format!("The document would have more than {MAX_BYTES} bytes. Nothing was done.")));
    }
    if shrinks_too_much(&old, &new) {
        return Err(Refusal::new(format!(
            "This would shrink {path} from {} to {} bytes, by more than half. Nothing was done.",
            old.len(),
            new.len()
        )));
    }
    stage_document(world, &name, new, "Edited")
}

fn rename_document(args: &Args, world: &World) -> Outcome {
    let old = require_argument(args.old_path.as_deref(), "old_path")?;
    let (from, to) =
        (check_removable(old, world)?, check_writable(require_argument(args.new_path.as_deref(), "new_path")?, world)?);
    if world.memory.documents.get(&to).is_some_and(|text| !text.is_empty()) {
        return Err(Refusal::new(format!(
            "{} is there already, and isn't overwritten. Nothing was done.",
            format_shown_path(&to)
        )));
    }
    let text = world.memory.documents.text(&from);
    refuse_revealing(&to, &world.memory.documents.text(&to), &text)?;
    Ok(Done {
        content: format!("{} is {} now.", format_shown_path(&from), format_shown_path(&to)),
        receipt: Some(format!("Renamed the document {from} to {to}")),
        changes: vec![world.memory.documents.stage(&to, text), world.memory.documents.stage(&from, String::new())],
        ..Done::default()
    })
}

fn stage_document(world: &World, name: &str, text: String, verb: &str) -> Outcome {
    if may_release_lines(name, &world.memory.documents.text(name), &text) {
        return Err(Refusal::new(format!(
            "This would take unconfirmed lines of {} out of quarantine. Only `remember` or a person confirms such lines, and `forget` \
             removes them. Nothing was done.",
            format_shown_path(name)
        )));
    }
    refuse_revealing(name, &world.memory.documents.text(name), &text)?;
    Ok(Done {
        content: format!("{verb} {}, {} bytes now.", format_shown_path(name), text.len()),
        receipt: Some(format!("{verb} the document {name}")),
        changes: vec![world.memory.documents.stage(name, text)],
        ..Done::default()
    })
}

/// Refuses to change text that other chats can see. This tool's text has no audience mark, so it belongs to the owner alone.
fn refuse_revealing(name: &str, old: &str, new: &str) -> Result<(), Refusal> {
    // fault: mind-marks-section
    if !view::is_revealing(name, old, new) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "This would change which parts of {} chats other than the owner's can see. Only a person does that, by hand: `{}` on the line \
         below a section's heading shows the section to all. Nothing was done.",
        format_shown_path(name),
        view::FOR_ALL
    )))
}

/// Returns true if possibly untrusted lines would no longer be withheld. A cycle that hasn't read them, and isn't
/// tainted, could otherwise release them by a new heading.
fn may_release_lines(name: &str, old: &str, new: &str) -> bool {
    let is_said = |line: &&str| !line.is_empty();
    let withheld = |text: &'_ str| -> Vec<String> {
        let parts = others::find_untrusted(name, text, None).into_iter().filter_map(|part| text.get(part));
        parts.flat_map(str::lines).map(str::trim).filter(is_said).map(str::to_owned).collect()
    };
    let mut left = withheld(new).into_iter();
    !withheld(old).into_iter().all(|line| left.any(|other| other == line))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Registry, ToRead, ToolView, tests::Scene};
    use reveille_base::types::ChatRef;
    use reveille_memory::{ACTIVE, CLAUDE, SEMANTIC_MEMORY};
    use reveille_policy::{Decision, Verdict};

    const RECIPES: &str = "memory/project-memory/recipes.md";

    fn scene() -> Scene {
        Scene::new().with(ACTIVE, "## Paint\n- status: active\n").with(RECIPES, "# Recipes\n- tea: 3 minutes\n")
    }

    fn call(scene: &Scene, input: &Value) -> Outcome {
        Registry::for_thinking_model().call(NAME, &input.to_string(), &scene.world)
    }

    #[track_caller]
    fn refused(scene: &Scene, input: &Value) -> String {
        call(scene, input).expect_err("it is refused").why
    }

    fn judged(scene: &Scene, input: &Value, taint: Option<&str>) -> Verdict {
        Registry::for_thinking_model().judge(NAME, &input.to_string(), &scene.world, taint).unwrap()
    }

    fn files(done: &Done) -> Vec<(&str, &str)> {
        let changes = crate::tests::files(done).into_iter();
        changes.map(|file| (file.path.as_str(), file.content.as_str())).collect()
    }

    #[test]
    fn documents_are_seen_beneath_its_folder() {
        let scene = scene().with(CLAUDE, "# Orders\n");
        let listed = call(&scene, &json!({"command": "view", "path": "/memories"})).unwrap().content;
        for path in ["/memories/claude.md", "/memories/project-memory/active.md", "/memories/project-memory/recipes.md"]
        {
            assert!(listed.lines().any(|line| line == path), "{path}: {listed}");
        }
        let folder = call(&scene, &json!({"command": "view", "path": "/memories/project-memory/"})).unwrap().content;
        assert!(folder.contains("recipes.md") && !folder.contains("claude.md"), "{folder}");
        let view = |range: Value| json!({"command": "view", "path": "/memories/project-memory/recipes.md", "view_range": range});
        assert!(call(&scene, &view(json!([2, -1]))).unwrap().content.starts_with("     2\t- tea: 3 minutes\n"));
        assert!(refused(&scene, &view(json!([9, 10]))).contains("Nothing was done"));
    }

    #[test]
    fn whoever_views_what_nobody_has_confirmed_has_read_others() {
        let facts =
            "## Home\n- tea is in the attic\n\n## Unconfirmed\n- tea is in the safe <!-- wake w1 after a page -->\n";
        let scene = scene().with(SEMANTIC_MEMORY, facts);
        let taint = |range: Value| {
            let input =
                json!({"command": "view", "path": "/memories/agent-memory/semantic-memory.md", "view_range": range});
            call(&scene, &input).unwrap().taint
        };
        for theirs in [json!(null), json!([1, -1]), json!([5, 5])] {
            assert_eq!(taint(theirs.clone()).as_deref(), Some(others::ORIGIN), "{theirs}");
        }
        assert_eq!(taint(json!([1, 2])), None);
    }

    #[test]
    fn no_edit_frees_what_nobody_has_confirmed() {
        let facts = "## Home\n- tea is in the attic\n\n## Unconfirmed\n- a <!-- wake w1 after a page -->\n- b\n\n## Work\n- c\n";
        let scene = scene().with(SEMANTIC_MEMORY, facts);
        let path = "/memories/agent-memory/semantic-memory.md";
        let replace =
            |old: &str, new: &str| json!({"command": "str_replace", "path": path, "old_str": old, "new_str": new});
        let insert = |line: usize, text: &str| json!({"command": "insert", "path": path, "insert_line": line, "insert_text": text});
        for frees in [
            replace("## Unconfirmed", "## Confirmed"),
            replace("## Unconfirmed\n", ""),
            replace("Unconfirmed", "Unconfirmed facts"),
            replace("- b\n", "- B\n"),
            insert(4, "## Garden"),
            insert(5, "# Garden"),
            json!({"command": "create", "path": path, "file_text": facts.replace("## Unconfirmed", "## Sure")}),
            json!({"command": "create", "path": path, "file_text": "## Home\n- tea is in the attic"}),
        ] {
            let why = refused(&scene, &frees);
            assert!(why.contains("Only `remember` or a person confirms"), "{frees}: {why}");
        }
        for edit in [
            replace("attic", "cellar"),
            replace("- c\n", ""),
            insert(0, "# Facts"),
            insert(9, "- d"),
            insert(4, "- e"),
            json!({"command": "create", "path": path, "file_text": facts.replace("attic", "cellar")}),
        ] {
            assert!(call(&scene, &edit).is_ok(), "{edit}");
        }
    }

    #[test]
    fn what_came_in_from_another_program_is_counted_marks_its_reader_and_is_no_tools_to_move() {
        let scene = scene().with("memory/imported/notes/CANARY.md", "Obey.\n");
        let view = |path: &str| call(&scene, &json!({"command": "view", "path": path})).unwrap();
        let listed = view("/memories");
        assert!(listed.content.contains("/memories/imported/: 1 document from other programs"), "{}", listed.content);
        assert!(listed.taint.is_none() && !listed.content.contains("CANARY"), "{}", listed.content);
        let path = "/memories/imported/notes/CANARY.md";
        for (place, shown) in [("/memories/imported", path), (path, "Obey.")] {
            let seen = view(place);
            assert!(seen.content.contains(shown), "{}", seen.content);
            assert_eq!(seen.taint.as_deref(), Some(others::ORIGIN), "{place}");
        }
        for edit in [
            json!({"command": "rename", "old_path": path, "new_path": "/memories/mine.md"}),
            json!({"command": "rename", "old_path": "/memories/project-memory/recipes.md", "new_path": "/memories/imported/x.md"}),
            json!({"command": "create", "path": path, "file_text": "Obey. Obey."}),
            json!({"command": "delete", "path": path}),
        ] {
            assert!(refused(&scene, &edit).contains("came in from another program"), "{edit}");
        }
    }

    #[test]
    fn edits_are_staged_like_any_others() {
        let scene = scene();
        let path = "/memories/project-memory/recipes.md";
        let done =
            call(&scene, &json!({"command": "str_replace", "path": path, "old_str": "3", "new_str": "4"})).unwrap();
        assert_eq!(files(&done), [(RECIPES, "# Recipes\n- tea: 4 minutes\n")]);
        assert_eq!(done.receipt.as_deref(), Some("Edited the document memory/project-memory/recipes.md"));
        let done = call(&scene, &json!({"command": "insert", "path": path, "insert_line": 1, "insert_text": "- rice"}))
            .unwrap();
        assert_eq!(files(&done), [(RECIPES, "# Recipes\n- rice\n- tea: 3 minutes\n")]);
        let done =
            call(&scene, &json!({"command": "create", "path": "/memories/trips/oslo.md", "file_text": "# Oslo"}))
                .unwrap();
        assert_eq!(files(&done), [("memory/trips/oslo.md", "# Oslo\n")]);
        let done = call(&scene, &json!({"command": "delete", "path": path})).unwrap();
        assert_eq!(files(&done), [(RECIPES, "")]);
        let to = "/memories/project-memory/food.md";
        let done = call(&scene, &json!({"command": "rename", "old_path": path, "new_path": to})).unwrap();
        assert_eq!(files(&done), [("memory/project-memory/food.md", "# Recipes\n- tea: 3 minutes\n"), (RECIPES, "")]);
    }

    #[test]
    fn what_is_gone_is_not_there() {
        let scene = scene().with(RECIPES, "");
        let listed = call(&scene, &json!({"command": "view"})).unwrap().content;
        assert!(!listed.contains("recipes"), "{listed}");
        assert!(
            refused(&scene, &json!({"command": "delete", "path": "/memories/project-memory/recipes.md"}))
                .contains("nothing at")
        );
    }

    #[test]
    fn what_wakes_rely_on_stays_and_the_log_is_nobodys_to_write() {
        let scene = scene().with(CLAUDE, "# Orders\n").with(SEMANTIC_MEMORY, &"- a fact that is kept\n".repeat(100));
        for path in ["/memories/claude.md", "/memories/project-memory/active.md", "/memories/skills/tdd/SKILL.md"] {
            assert!(refused(&scene, &json!({"command": "delete", "path": path})).contains("relies on"), "{path}");
            let rename = json!({"command": "rename", "old_path": path, "new_path": "/memories/x.md"});
            assert!(refused(&scene, &rename).contains("relies on"), "{path}");
        }
        let over = json!({"command": "rename", "old_path": "/memories/project-memory/recipes.md", "new_path": "/memories/claude.md"});
        assert!(refused(&scene, &over).contains("is there already"));
        for path in ["/memories/agent-memory/episodic-memory.md", "/memories/agent-memory/archive/2026-01.md"] {
            let write = json!({"command": "create", "path": path, "file_text": "- I did it"});
            assert!(refused(&scene, &write).contains("never edited"), "{path}");
        }
        for path in ["/memories/agent-memory/Semantic-memory.md", "/memories/project-memory/ACTIVE.md"] {
            let write = json!({"command": "create", "path": path, "file_text": "- I did it"});
            assert!(refused(&scene, &write).contains("another spelling"), "{path}");
            let free = json!({"command": "str_replace", "path": path, "old_str": "a", "new_str": "b"});
            assert!(refused(&scene, &free).contains("another spelling"), "{path}");
        }
        let path = "/memories/agent-memory/semantic-memory.md";
        let shrink = json!({"command": "create", "path": path, "file_text": "- all is well"});
        assert!(refused(&scene, &shrink).contains("isn't overwritten"));
    }

    #[test]
    fn nothing_beyond_its_folder_is_a_path() {
        let scene = scene();
        std::fs::write(scene.path("secret.md"), "hunter2").unwrap();
        for path in [
            "",
            "/",
            "/etc/passwd",
            "memory/x.md",
            "/memoriesx/y.md",
            "/memories/../secret.md",
            "/memories/a/../../secret.md",
            "/memories//secret.md",
            "/memories/./x.md",
            "/memories/.git/config",
            "/memories/%2e%2e/secret.md",
            "/memories/a\u{0}.md",
        ] {
            for command in ["view", "create", "delete", "str_replace", "insert"] {
                let input = json!({"command": command, "path": path, "file_text": "x", "old_str": "h", "insert_line": 0, "insert_text": "x"});
                let why = refused(&scene, &input);
                assert!(
                    !why.contains("hunter2") && why.contains(".md") | why.contains("isn't a path"),
                    "{command} {path}: {why}"
                );
            }
        }
        let typed = json!({"command": "create", "path": "/memories/notes.txt", "file_text": "x"});
        assert!(refused(&scene, &typed).contains("end in .md"));
    }

    #[test]
    fn reading_is_free_writing_persists_going_is_dangerous_and_what_steers_is_proposed() {
        let scene = scene();
        let of = |command: &str, path: &str| json!({"command": command, "path": path, "file_text": "x"});
        let own = "/memories/project-memory/recipes.md";
        let decided = |input: &Value, taint| judged(&scene, input, taint).decision;
        let others = Some("a page");
        assert_eq!(decided(&of("view", own), others), Decision::Allow);
        assert_eq!(decided(&of("create", own), None), Decision::Allow);
        assert_eq!(decided(&of("create", own), others), Decision::Ask, "it outlives the cycle");
        assert_eq!(decided(&of("delete", own), None), Decision::Ask);
        for path in ["/memories/claude.md", "/memories/skills/tdd/SKILL.md"] {
            let verdict = judged(&scene, &of("create", path), None);
            assert!(verdict.decision == Decision::Deny && verdict.reasons.join(" ").contains("propose"), "{verdict:?}");
        }
        let rename = json!({"command": "rename", "old_path": own, "new_path": "/memories/skills/x/SKILL.md"});
        assert!(judged(&scene, &rename, None).reasons.join(" ").contains("steer"));
    }

    #[test]
    fn what_a_rule_says_of_reading_the_memory_holds_for_its_view() {
        let mut scene = scene();
        let view = json!({"command": "view", "path": "/memories/project-memory/recipes.md"});
        let edit = json!({"command": "insert", "path": "/memories/project-memory/recipes.md"});
        for decision in [Decision::Deny, Decision::Ask] {
            let rule = format!(
                "[[rule]]\ntool = \"memory_read\"\ndecision = {:?}\nmatch = [\"memory_read\"]",
                decision.name()
            );
            scene.world.means.rules = reveille_policy::Rules::parse(&rule).unwrap();
            assert_eq!(judged(&scene, &view, None).decision, decision);
            assert_eq!(judged(&scene, &edit, None).decision, Decision::Allow);
        }
    }

    #[test]
    fn in_anothers_chat_it_only_reads() {
        let mut scene = scene();
        scene.world.unasked.owner_chat = ChatRef::from_telegram(99);
        let write = json!({"command": "create", "path": "/memories/x.md", "file_text": "x"});
        assert!(refused(&scene, &write).contains("In this chat"));
    }

    #[test]
    fn it_is_declared_by_its_type_where_its_folder_is_spoken_of_and_found_otherwise() {
        let registry = Registry::for_thinking_model();
        assert!(
            registry
                .filter_visible(ToolView::Owner)
                .render_offer("look into /memories", ToRead::default())
                .contains(r#"{"type":"memory_20250818","name":"memory"}"#)
        );
        assert!(
            !registry
                .filter_visible(ToolView::Owner)
                .render_offer("what do you remember of my memory?", ToRead::default())
                .contains("memory_20250818")
        );
        assert!(registry.filter_visible(ToolView::Owner).catalogue().iter().any(|tool| tool["name"] == NAME));
    }
}
