//! `propose_change`: a change of the assistant's own orders (`claude.md`, the skills, the standing jobs). Always asks,
//! because a person decides about orders. The question shows the diff, and the figure that will measure the
//! success; `cycle/run/ask/proposal` keeps both, and binds the approval to exactly these texts.
//!
//! A proposal may neither add nor remove some lines: addresses, settings of `.env`, numbers that could be a chat's,
//! budgets, and sharing between chats (module `fence`). With these, a harmless-looking change could extend the
//! assistant's rights.

mod fence;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::{Aim, Effect, Figure, StatedEffect};
use reveille_memory as memory;
use reveille_memory::{CLAUDE, is_disguised, is_steering, job, skill::Skill};

use super::{Done, Outcome, Refusal, Risk, Tool, Touched, World, check_text, shorten_text};
pub use reveille_base::approval_text::PROPOSE_CHANGE;

/// Maximum length of a title, in characters.
const MAX_TITLE_CHARS: usize = 100;
/// Maximum length of a reason, in characters.
const MAX_WHY_CHARS: usize = 600;
/// Maximum length of an edit's old or new text, in bytes.
const MAX_EDIT_BYTES: usize = 32 * 1024;
/// Maximum number of edits; people don't read longer proposals.
const MAX_EDITS: usize = 12;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// What changes, in one line.
    title: String,
    /// Why it is better for your person.
    why: String,
    /// What it will change: requests to a model or dollars for each answer, questions asked, tasks finished.
    figure: StatedFigure,
    /// Which way that figure will go.
    aim: StatedAim,
    /// The edits, in their order.
    edits: Vec<OrderEdit>,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum StatedFigure {
    Rounds,
    Cost,
    Questions,
    TasksDone,
}

#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum StatedAim {
    Less,
    More,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OrderEdit {
    /// `claude.md`, `skills/<name>/SKILL.md` or `memory/jobs/<name>.md`.
    path: String,
    /// The whole lines to replace, exactly as in the file, where they occur once. Left out: the file is new.
    #[serde(default)]
    old: Option<String>,
    /// The new lines; empty removes the old ones.
    new: String,
}

pub(super) fn define_tool() -> Tool {
    Tool::new(
        PROPOSE_CHANGE,
        "Propose a change of your own orders: claude.md, a skill or a standing job. Your person sees the difference and the effect that you \
         state, and says yes or no. A week later they are told the figure before and after.",
        Effect::Staged,
        propose_change,
    )
    .with_risk(Risk::Caution)
    .for_owner()
    .with_targets(|args: &Args| Touched::Edits {
        names: args.edits.iter().map(|edit| edit.path.clone()).collect(),
        removes: false,
    })
}

fn propose_change(args: &Args, world: &World) -> Outcome {
    let title = check_text(&args.title, "title", MAX_TITLE_CHARS)?;
    check_text(&args.why, "why", MAX_WHY_CHARS)?;
    if args.edits.is_empty() || args.edits.len() > MAX_EDITS {
        return Err(Refusal::new(format!("A proposal has one to {MAX_EDITS} edits. Nothing was done.")));
    }
    let mut edits_by_path: BTreeMap<String, Vec<&OrderEdit>> = BTreeMap::new();
    for edit in &args.edits {
        edits_by_path.entry(check_steering_path(&edit.path)?).or_default().push(edit);
    }
    let mut changes = Vec::new();
    for (path, edits) in &edits_by_path {
        // The person must see a diff to the text they know, not to one that this conversation has changed.
        if world.memory.documents.list_staged_files().iter().any(|file| file.path == *path) {
            return Err(Refusal::new(format!(
                "{path} was changed in this conversation already: propose this in another one. Nothing was done."
            )));
        }
        let before = world.memory.documents.get(path);
        let after = apply_edits(path, edits, before.as_deref())?;
        check_readable(path, &after, world)?;
        fence::check(path, before.as_deref().unwrap_or_default(), &after)?;
        changes.push(world.memory.documents.stage(path, after));
    }
    Ok(Done {
        content: "It takes effect in the next conversation. A week from now your person is told what it changed."
            .to_owned(),
        receipt: Some(format!("Changed my own orders, as agreed: {}", shorten_text(&title))),
        changes,
        ..Done::default()
    })
}

/// Returns the title and the stated effect of a call; `None` if the arguments are invalid.
pub fn parse_stated_effect(input: &str) -> Option<(String, StatedEffect)> {
    let args: Args = serde_json::from_str(input).ok()?;
    let figure = match args.figure {
        StatedFigure::Rounds => Figure::Rounds,
        StatedFigure::Cost => Figure::Cost,
        StatedFigure::Questions => Figure::Questions,
        StatedFigure::TasksDone => Figure::TasksDone,
    };
    let aim = match args.aim {
        StatedAim::Less => Aim::Less,
        StatedAim::More => Aim::More,
    };
    Some((check_text(&args.title, "title", MAX_TITLE_CHARS).ok()?, StatedEffect { figure, aim }))
}

/// Checks that a path names a document with orders, in its canonical spelling.
fn check_steering_path(path: &str) -> Result<String, Refusal> {
    let is_plain = |part: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(is_letter)
    };
    let has_expected_depth = path == CLAUDE || path.split('/').count() == 3;
    match is_steering(path)
        && has_expected_depth
        && path.ends_with(".md")
        && path.split('/').all(is_plain)
        && !is_disguised(path)
    {
        true => Ok(path.to_owned()),
        false => Err(Refusal::new(format!(
            "{path:?} holds no orders: these are claude.md, skills/<name>/SKILL.md and memory/jobs/<name>.md. Nothing was done."
        ))),
    }
}

/// Applies the edits to a document. Each edit replaces whole lines, and no line twice, so that the shown edits are the complete change.
fn apply_edits(path: &str, edits: &[&OrderEdit], current: Option<&str>) -> Result<String, Refusal> {
    let refuse = |why: &str| Err(Refusal::new(format!("{path}: {why} Nothing was done.")));
    let texts = edits.iter().flat_map(|edit| edit.old.iter().chain([&edit.new]));
    if texts.map(String::len).any(|bytes| bytes > MAX_EDIT_BYTES) {
        return refuse(&format!("an edit has more than {MAX_EDIT_BYTES} bytes."));
    }
    let current = current.filter(|text| !text.trim().is_empty());
    let replaced_text = |edit: &OrderEdit| edit.old.clone().filter(|old| !old.trim().is_empty());
    let Some(current) = current else {
        return match edits {
            [edit] if replaced_text(edit).is_none() => Ok(format!("{}\n", edit.new.trim_end())),
            _ => refuse("there is no such file. Leave `old` out for a new file, in one edit."),
        };
    };
    let lines: Vec<&str> = current.split_inclusive('\n').collect();
    let bare = |line: &str| line.trim_end_matches(['\n', '\r']).to_owned();
    let mut replaced: BTreeMap<usize, (usize, &str)> = BTreeMap::new();
    for edit in edits {
        let Some(old) = replaced_text(edit) else {
            return refuse("the file exists: say in `old` which lines to replace.");
        };
        let old: Vec<&str> = old.trim_end_matches(['\n', '\r']).lines().collect();
        let matches_at = |at: &usize| {
            let found = lines.get(*at..at + old.len());
            found.is_some_and(|found| found.iter().zip(&old).all(|(line, old)| bare(line) == *old))
        };
        let places: Vec<usize> = (0..lines.len()).filter(matches_at).collect();
        let [at] = places.as_slice() else {
            return refuse(&format!("`old` occurs {} times as whole lines; it must occur exactly once.", places.len()));
        };
        let is_free = |(from, (n, _)): (&usize, &(usize, &str))| at + old.len() <= *from || from + n <= *at;
        if !replaced.iter().all(is_free) {
            return refuse("two edits change the same lines.");
        }
        replaced.insert(*at, (old.len(), &edit.new));
    }
    let ending = if current.contains("\r\n") { "\r\n" } else { "\n" };
    let (mut text, mut at) = (String::new(), 0);
    while let Some(line) = lines.get(at) {
        match replaced.get(&at) {
            Some((n, new)) => {
                let new = new.trim_end_matches(['\n', '\r']);
                new.lines().for_each(|line| text.extend([line, ending]));
                at += n;
            }
            None => {
                text.push_str(line);
                at += 1;
            }
        }
    }
    if !current.ends_with('\n') {
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
    }
    match text {
        text if text == current => refuse("the file says all of that already."),
        text if text.trim().is_empty() => refuse("the document would be empty; only a person deletes one."),
        text => Ok(text),
    }
}

/// Refuses a change after which a skill or job would be unreadable, because such a document would do nothing or do harm.
fn check_readable(path: &str, after: &str, world: &World) -> Result<(), Refusal> {
    let problem = if let Some(name) = job::job_name(path) {
        match job::Job::parse(name, after) {
            Ok(job) => job.resolve_schedule(world.local_time()).err().map(|problem| problem.what),
            Err(problems) => problems.first().map(ToString::to_string),
        }
    } else if path.ends_with("/SKILL.md") {
        Skill::parse(after).err().map(|problem| problem.to_string())
    } else {
        None
    };
    match problem {
        Some(problem) => {
            Err(Refusal::new(format!("After the change {path} couldn't be read: {problem}. Nothing was done.")))
        }
        None => Ok(()),
    }
}

/// Returns the refusal for another tool that would edit orders or skills, since these change only by a proposal.
pub(super) fn find_refusal(tool: &str, touched: &Touched) -> Option<&'static str> {
    let Touched::Edits { names, .. } = touched else { return None };
    let is_proposed = |path: &String| is_steering(path) && !memory::is_job(path);
    (tool != PROPOSE_CHANGE && names.iter().any(is_proposed)).then_some(
        "The orders and the skills steer you, so your person sees each change and its intended effect: propose it with propose_change.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_replaces_whole_lines_once_and_keeps_all_other_bytes() {
        let now = "# Style\r\nBe kind.\r\nBe kind and brief.\r\nEnd.";
        let edit = |old: Option<&str>, new: &str| OrderEdit {
            path: CLAUDE.to_owned(),
            old: old.map(str::to_owned),
            new: new.to_owned(),
        };
        let done = |edits: &[OrderEdit]| apply_edits(CLAUDE, &edits.iter().collect::<Vec<_>>(), Some(now));
        assert_eq!(
            done(&[edit(Some("Be kind.\n"), "Be brief.\nBe warm."), edit(Some("# Style"), "# Tone\n")]),
            Ok("# Tone\r\nBe brief.\r\nBe warm.\r\nBe kind and brief.\r\nEnd.".to_owned())
        );
        assert_eq!(done(&[edit(Some("Be kind."), "")]), Ok("# Style\r\nBe kind and brief.\r\nEnd.".to_owned()));
        for (edits, why) in [
            (vec![edit(Some("kind"), "rude")], "0 times as whole lines"),
            (vec![edit(Some("Be kind."), "a"), edit(Some("# Style\nBe kind."), "b")], "the same lines"),
            (vec![edit(None, "x")], "say in `old`"),
            (vec![edit(Some("End."), "End.\n")], "says all of that already"),
        ] {
            let told = done(&edits).unwrap_err().why;
            assert!(told.contains(why), "{why}: {told}");
        }
        assert!(apply_edits(CLAUDE, &[&edit(Some("x"), "y")], None).is_err());
        assert_eq!(apply_edits(CLAUDE, &[&edit(None, "x\n\n")], Some(" \n")), Ok("x\n".to_owned()));
    }

    #[test]
    fn only_orders_in_their_canonical_spelling_may_be_proposed() {
        for path in ["claude.md", "skills/brief/SKILL.md", "memory/jobs/plants.md"] {
            assert_eq!(check_steering_path(path), Ok(path.to_owned()));
        }
        for path in [
            "memory/agent-memory/semantic-memory.md",
            "skills/../claude.md",
            "./claude.md",
            "Claude.md",
            "skills/brief/run.sh",
            "skills/SKILL.md",
            "memory/jobs//plants.md",
            "policy.toml",
            "/etc/passwd",
        ] {
            assert!(check_steering_path(path).is_err(), "{path}");
        }
    }
}
