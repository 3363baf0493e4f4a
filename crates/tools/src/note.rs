//! `note` and `context_update`: the two small documents that are rewritten as things change: the current activity, and the person's state.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_git::Repo;
use reveille_memory as memory;
use reveille_memory::shrinks_too_much;
use reveille_policy::Reach;
use reveille_store::StagedFile;

use super::{Change, Done, Outcome, Refusal, Tool, World, check_text, shorten_text};

/// Maximum length of the working memory or the context, in characters.
const MAX_CHARS: usize = 12_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The whole new text of the document, in Markdown.
    text: String,
    /// Say `true` to shorten the document by more than half on purpose.
    #[serde(default)]
    shorten: bool,
    /// Say `true` to change what your person wrote there by hand, because they said that it no longer holds.
    #[serde(default)]
    over_theirs: bool,
}

pub(super) fn define_note() -> Tool {
    Tool::new(
        "note",
        "Rewrite your working memory: what is going on now, what you are in the middle of, what to look at next time. Give the whole \
         text; keep it under a page.",
        Effect::Idempotent,
        |args: &Args, world| rewrite_document(args, world, memory::WORKING_MEMORY, "Rewrote the working memory"),
    ).with_reach(Reach::Persists)
    .never_ask()
}

pub(super) fn context_update() -> Tool {
    Tool::new(
        "context_update",
        "Rewrite the context: your person's energy, constraints and preferences as they are now. Give the whole text, keeping what still \
         holds.",
        Effect::Idempotent,
        |args: &Args, world| rewrite_document(args, world, memory::CONTEXT, "Updated the context"),
    ).with_reach(Reach::Persists)
    .never_ask()
}

fn rewrite_document(args: &Args, world: &World, path: &str, verb: &str) -> Outcome {
    let text = check_text(&args.text, "text", MAX_CHARS)?;
    let old = world.memory.documents.text(path);
    let new = format!("{text}\n");
    if !args.shorten && shrinks_too_much(&old, &new) {
        return Err(Refusal::new(format!(
            "This would shrink {path} from {} to {} bytes, by more than half. Nothing was done. Keep what still holds, or say `shorten: true`.",
            old.len(),
            new.len()
        )));
    }
    if old == new {
        return Ok(Done::from_text(format!("{path} says just that already.")));
    }
    let change = world.memory.documents.stage(path, new);
    let theirs = if args.over_theirs { None } else { find_reverted_line(world, &change) };
    if let Some((line, is_back)) = theirs {
        return Err(refuse_undoing_person_edit(path, &(line, is_back)));
    }
    let last_line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Ok(Done {
        content: format!("{path} is rewritten."),
        receipt: Some(format!("{verb}: {}", shorten_text(last_line.trim_start_matches(['#', '-', ' '])))),
        changes: vec![change],
        ..Done::default()
    })
}

/// Returns the refusal to overwrite a person's own edit: the line, and true if a removed line would return.
pub(super) fn refuse_undoing_person_edit(path: &str, (line, is_back): &(String, bool)) -> Refusal {
    let (what, how) = match is_back {
        true => ("took this out", "Leave it out"),
        false => ("wrote this", "Keep it unchanged"),
    };
    Refusal::new(format!(
        "By hand, your person {what} since you last wrote {path}: {line:?}. Nothing was done. {how}; only if they said that it no longer \
         holds, say `over_theirs: true`."
    ))
}

/// Finds a line written by the person since our last write that would be lost, or a line removed by them that would return (`true`).
pub(super) fn find_reverted_line(world: &World, change: &Change) -> Option<(String, bool)> {
    let Change::File(StagedFile { path, base: Some(now), content }) = change else { return None };
    // Without a history, the author of a line is unknown.
    let ours = Repo::open(world.memory.documents.dir())
        .and_then(|repo| repo.history().read_last_own_version(path))
        .ok()
        .flatten()?;
    let lines =
        |text: &'_ str| text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect();
    let [ours, now, new]: [BTreeSet<String>; 3] = [&ours, now, content].map(|text| lines(text));
    let gone = now.iter().find(|line| !ours.contains(*line) && !new.contains(*line));
    let back = || ours.iter().find(|line| !now.contains(*line) && new.contains(*line));
    gone.map(|line| (line.clone(), false)).or_else(|| Some((back()?.clone(), true)))
}
