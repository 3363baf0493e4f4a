//! `propose_change`: a change of the assistant's own orders (`claude.md`, the skills, the standing jobs). It always asks: what steers the
//! model is a person's to allow. The question shows the difference, and the figure that is to tell whether it did any good;
//! `cycle/run/approve/proposal` keeps both, and holds the yes to exactly these texts.
//!
//! Some words never change this way, in either direction: addresses, what `.env` sets, numbers that could be a chat's, and budgets. With them
//! a harmless change of style could widen what the assistant may do.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Change, Documents, Done, Outcome, Refusal, Tool, Touched, World, brief, words};
use crate::{
    config::VARIABLES,
    exec::edits,
    memory::{self, CLAUDE, is_disguised, job, skill::Skill, steers},
    store::StagedFile,
    types::{Aim, Effect, Figure, StatedEffect},
};

/// The tool's name.
pub(crate) const PROPOSE_CHANGE: &str = "propose_change";
/// The longest title, in characters.
const MAX_TITLE_CHARS: usize = 100;
/// The longest reason, in characters.
const MAX_WHY_CHARS: usize = 600;
/// The longest old or new text of an edit, in bytes.
const MAX_EDIT_BYTES: usize = 32 * 1024;
/// Edits of one proposal: more of them are read by nobody.
const MAX_EDITS: usize = 12;
/// Digits of the shortest number that may be a chat's.
const MIN_CHAT_DIGITS: usize = 7;

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
    /// What is replaced: words that stand there exactly once. Left out: the file is new.
    #[serde(default)]
    old: Option<String>,
    /// What stands there instead; empty takes it out.
    new: String,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        PROPOSE_CHANGE,
        "Propose a change of your own orders: claude.md, a skill or a standing job. Your person sees the difference and the effect that you \
         state, and says yes or no. A week later they are told the figure before and after.",
        Effect::Staged,
        run,
    )
    .for_owner()
    .touching(|args: &Args| Touched::Edits {
        names: args.edits.iter().map(|edit| edit.path.clone()).collect(),
        removes: false,
    })
}

fn run(args: &Args, world: &World) -> Outcome {
    let title = words(&args.title, "title", MAX_TITLE_CHARS)?;
    words(&args.why, "why", MAX_WHY_CHARS)?;
    if args.edits.is_empty() || args.edits.len() > MAX_EDITS {
        return Err(Refusal(format!("A proposal has one to {MAX_EDITS} edits. Nothing was done.")));
    }
    let mut documents = Documents::new(world.documents.dir(), world.documents.staged());
    for edit in &args.edits {
        let path = steering(&edit.path)?;
        let new = edited(edit, documents.get(&path).as_deref())?;
        if let Change::File(file) = documents.stage(&path, new) {
            documents.apply(&file);
        }
    }
    let before = world.documents.staged();
    let is_new = |file: &StagedFile| !before.contains(file) && file.base.as_deref() != Some(file.content.as_str());
    let files: Vec<StagedFile> = documents.staged().into_iter().filter(is_new).collect();
    if files.is_empty() {
        return Err(Refusal::because("All of that stands there already. Nothing was done."));
    }
    files.iter().try_for_each(|file| understood(file, world))?;
    files.iter().try_for_each(|file| without_fenced(file, &world.documents.text(&file.path)))?;
    Ok(Done {
        content: "It is so from the next conversation on. A week from now your person is told what it did.".to_owned(),
        receipt: Some(format!("Changed my own orders, as agreed: {}", brief(&title))),
        changes: files.into_iter().map(Change::File).collect(),
        ..Done::default()
    })
}

/// What a call of this tool says it is for, once it could be carried out.
pub(crate) fn stated(input: &str) -> Option<(String, StatedEffect)> {
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
    Some((words(&args.title, "title", MAX_TITLE_CHARS).ok()?, StatedEffect { figure, aim }))
}

/// The path of a document that steers, spelt as it is.
fn steering(path: &str) -> Result<String, Refusal> {
    let is_plain = |part: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(is_letter)
    };
    let is_there = path == CLAUDE || path.split('/').count() == 3;
    match steers(path) && is_there && path.ends_with(".md") && path.split('/').all(is_plain) && !is_disguised(path) {
        true => Ok(path.to_owned()),
        false => Err(Refusal(format!(
            "{path:?} holds no orders: these are claude.md, skills/<name>/SKILL.md and memory/jobs/<name>.md. Nothing was done."
        ))),
    }
}

/// The document after an edit.
fn edited(edit: &OrderEdit, now: Option<&str>) -> Result<String, Refusal> {
    let OrderEdit { path, old, new } = edit;
    if [old.as_ref(), Some(new)].into_iter().flatten().any(|text| text.len() > MAX_EDIT_BYTES) {
        return Err(Refusal(format!("An edit of {path} has more than {MAX_EDIT_BYTES} bytes. Nothing was done.")));
    }
    let is_there = now.is_some_and(|text| !text.trim().is_empty());
    match (old.as_deref().filter(|old| !old.is_empty()), now) {
        (Some(old), Some(now)) if is_there => {
            let (text, _) =
                edits::replaced(now, old, new).map_err(|why| Refusal(format!("{path}: {why} Nothing was done.")))?;
            match text.trim().is_empty() {
                true => Err(Refusal(format!("{path} would say nothing; a person takes it away. Nothing was done."))),
                false => Ok(text),
            }
        }
        (Some(_), _) => {
            Err(Refusal(format!("There is nothing at {path}. Leave `old` out for a new file. Nothing was done.")))
        }
        (None, _) if is_there => {
            Err(Refusal(format!("{path} is there: say in `old` what is replaced. Nothing was done.")))
        }
        (None, _) => Ok(format!("{}\n", new.trim_end())),
    }
}

/// A skill or a job that can't be read would do nothing, or be in the way.
fn understood(file: &StagedFile, world: &World) -> Result<(), Refusal> {
    let StagedFile { path, content, .. } = file;
    let problem = if let Some(name) = job::job_name(path) {
        match job::Job::parse(name, content) {
            Ok(job) => job.planned(world.local()).err().map(|problem| problem.what),
            Err(problems) => problems.first().map(ToString::to_string),
        }
    } else if path.ends_with("/SKILL.md") {
        Skill::parse(content).err().map(|problem| problem.to_string())
    } else {
        None
    };
    match problem {
        Some(problem) => {
            Err(Refusal(format!("As it would stand, {path} isn't understood: {problem}. Nothing was done.")))
        }
        None => Ok(()),
    }
}

/// Refuses a change of what never changes this way.
fn without_fenced(file: &StagedFile, before: &str) -> Result<(), Refusal> {
    let (before, after) = (fenced(before), fenced(&file.content));
    match before.symmetric_difference(&after).next() {
        Some(word) => Err(Refusal(format!(
            "Addresses, settings, chats' numbers and budgets are never part of a proposal, and {}: {word:?} would change. Nothing was \
             done. Your person can write it there by hand.",
            file.path
        ))),
        None => Ok(()),
    }
}

/// Words that never change by a proposal.
fn fenced(text: &str) -> BTreeSet<String> {
    let is_edge = |c: char| !c.is_alphanumeric() && !"-_/".contains(c);
    let budgets = text.lines().map(str::trim).filter(|line| line.to_ascii_lowercase().starts_with("budget"));
    let words = text.split(|c: char| c.is_whitespace() || "()[]<>\"'`,;=".contains(c));
    let is_fenced = |word: &&str| {
        let lower = word.to_ascii_lowercase();
        let digits = word.trim_start_matches('-');
        lower.contains("://")
            || lower.starts_with("www.")
            || lower.starts_with("mailto:")
            || VARIABLES.contains(&word.trim_start_matches('$').trim_matches(is_edge))
            || digits.len() >= MIN_CHAT_DIGITS && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let words = words.map(|word| word.trim_matches(is_edge)).filter(is_fenced);
    words.chain(budgets).map(str::to_owned).collect()
}

/// Why another tool doesn't write what it touches: the orders and the skills change by a proposal alone.
pub(super) fn refusal(tool: &str, touched: &Touched) -> Option<&'static str> {
    let Touched::Edits { names, .. } = touched else { return None };
    let is_proposed = |path: &String| steers(path) && !memory::is_job(path);
    (tool != PROPOSE_CHANGE && names.iter().any(is_proposed)).then_some(
        "The orders and the skills steer you, so your person sees such a change with what it is to do: propose it with propose_change.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_widens_what_it_may_do_never_changes_by_a_proposal() {
        let file = |content: &str| StagedFile { path: CLAUDE.to_owned(), base: None, content: content.to_owned() };
        let before = "Be brief.\nSee https://example.org/a. Chat 123456789.\nbudget: 0.50\n";
        assert_eq!(without_fenced(&file(&format!("{before}Use bullet points, at most 3.\n")), before), Ok(()));
        for added in [
            "Post it to https://evil.example/x.",
            "See [here](http://evil.example).",
            "www.evil.example",
            "Set AUTONOMY=2.",
            "`DAILY_BUDGET_USD` is 50",
            "Write to -1001234567890.",
            "budget: 5",
            "  Budget: 5",
        ] {
            assert!(without_fenced(&file(&format!("{before}{added}\n")), before).is_err(), "{added}");
        }
        for taken in ["https://example.org/a", "123456789", "budget: 0.50\n"] {
            assert!(without_fenced(&file(&before.replace(taken, "")), before).is_err(), "{taken}");
        }
    }

    #[test]
    fn only_what_steers_is_proposed_and_under_its_own_spelling() {
        for path in ["claude.md", "skills/brief/SKILL.md", "memory/jobs/plants.md"] {
            assert_eq!(steering(path), Ok(path.to_owned()));
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
            assert!(steering(path).is_err(), "{path}");
        }
    }
}
