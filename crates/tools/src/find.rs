//! `find_files`: a search by name, by text, or both. The results are untrusted text, since anybody may have written the files.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_memory as memory;
use reveille_memory::others;
use reveille_sandbox::exec::{
    Exec,
    beneath::{BeneathKind, PathUse, Place, Whose},
    search::{self, Found, Hit, Query, Wanted},
};

use super::{Done, Outcome, Refusal, Tool, Touched, World, files, read::READ, search::SEARCH};

/// The tool's name.
const NAME: &str = "find_files";
/// The tools whose read rules exclude a file from this search: this tool, and the two reading tools of the memory.
const READING_TOOLS: [&str; 3] = [NAME, READ, SEARCH];

/// Maximum length of a pattern, in characters.
const MAX_PATTERN_CHARS: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Find {
    /// A glob for names, such as `*.pdf`; with a slash in it for paths below the folder, such as `notes/**/*.md`.
    #[serde(default)]
    pattern: Option<String>,
    /// A regular expression that a line of the file matches. Capitals don't matter.
    #[serde(default)]
    text: Option<String>,
    /// Where to look; without it in every folder that you may read.
    #[serde(default)]
    path: Option<String>,
}

pub(super) fn define_tool() -> Tool {
    Tool::new_acting(
        NAME,
        "Find files by name, by the text in them, or both, in the folders that you may read.",
        Effect::Read,
        |args: Find, world, exec| Box::pin(find_files(args, world, exec)),
    )
    .for_owner()
    .with_targets(|args: &Find| Touched::Path { path: args.path.as_deref().unwrap_or(".").into(), is_write: false })
}

async fn find_files(args: Find, world: &World, exec: &Exec) -> Outcome {
    let Find { pattern, text, path } = args;
    let given = [pattern.as_deref(), text.as_deref()];
    if given.iter().flatten().all(|part| part.trim().is_empty()) {
        return Err(Refusal::new("Say what is looked for: pattern, text, or both."));
    }
    if given.iter().flatten().any(|part| part.chars().count() > MAX_PATTERN_CHARS) {
        return Err(Refusal::new(format!("pattern and text have {MAX_PATTERN_CHARS} characters at most.")));
    }
    let query = Query::new(pattern.as_deref(), text.as_deref()).map_err(Refusal::new)?;
    let starts = list_starts(path.as_deref(), world, exec)?;
    let is_outside_memory = starts.iter().any(|start| start.folder_owner() != Whose::Brain);
    // Cancels the search if this call is dropped.
    let cancel_guard = Wanted::default();
    let flag = cancel_guard.flag();
    let is_kept_back = files::build_exclusion(world.means.rules.clone(), &READING_TOOLS, path.as_deref());
    let found = tokio::task::spawn_blocking(move || search::search_folders(starts, &query, &is_kept_back, &flag))
        .await
        .map_err(|error| Refusal::new(format!("The search was interrupted ({error}). It gave no result.")))?;
    drop(cancel_guard);
    let taint = match found.hits.iter().any(|hit| may_be_untrusted(hit, world)) {
        _ if is_outside_memory && !found.hits.is_empty() => Some("names and lines of files".to_owned()),
        true => Some(others::ORIGIN.to_owned()),
        false => None,
    };
    Ok(Done { content: render_hits(&found), taint, ..Done::default() })
}

/// Returns true for possibly untrusted hits in the memory. Judges whole files; `memory_search` judges single lines.
fn may_be_untrusted(hit: &Hit, world: &World) -> bool {
    let path = files::strip_memory_root(Path::new(&hit.path), world);
    path.is_some_and(|path| hit.line.is_some() && others::may_have_untrusted(path) || memory::is_imported(path))
}

/// Returns the places to search: the path, or each outermost readable folder.
fn list_starts(path: Option<&str>, world: &World, exec: &Exec) -> Result<Vec<Place>, Refusal> {
    let roots = files::list_roots(world, exec)?;
    if let Some(path) = path {
        let place = roots.resolve(path, PathUse::Read)?;
        return match place.kind()? {
            Some(BeneathKind::File | BeneathKind::Folder) => Ok(vec![place]),
            Some(BeneathKind::Other) => {
                Err(Refusal::new(format!("{path} is a link or a device, which isn't followed. Nothing was found out.")))
            }
            None => Err(Refusal::new(format!("There is no {path}. Nothing was found out."))),
        };
    }
    let folders: Vec<_> = roots.list_folders().map(|(path, ..)| path).collect();
    let outermost = folders.iter().enumerate().filter(|(at, folder)| {
        !folders
            .iter()
            .enumerate()
            .any(|(other, path)| other != *at && folder.starts_with(path) && (**folder != *path || other < *at))
    });
    // Missing folders are skipped.
    Ok(outermost.filter_map(|(_, folder)| roots.resolve(folder.to_str()?, PathUse::Read).ok()).collect())
}

fn render_hits(found: &Found) -> String {
    let mut lines: Vec<String> = found.hits.iter().map(format_hit).collect();
    if lines.is_empty() {
        lines.push(format!("Nothing was found among {} files and folders.", found.seen));
    }
    if let Some(why) = found.is_cut {
        lines.push(format!("(Not everything was looked at: {why}. Look for less, or in one folder.)"));
    }
    if found.passed_by > 0 {
        lines.push(format!("({} names of keys or private state were passed by.)", found.passed_by));
    }
    if found.kept_back > 0 {
        lines.push(format!("(Files and folders that your person's rules keep from a search: {}.)", found.kept_back));
    }
    lines.join("\n")
}

fn format_hit(hit: &Hit) -> String {
    let path = hit.path.escape_debug();
    match &hit.line {
        Some((number, text)) => format!("{path}:{number}: {text}"),
        None if hit.is_folder => format!("{path}/"),
        None => path.to_string(),
    }
}
