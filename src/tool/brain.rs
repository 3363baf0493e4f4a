//! `brain_log`, `brain_diff`, `brain_revert`: what became of the memory, wake by wake, and taking a wake back. The undo itself is
//! the one that `/undo` asks for: the next wake does it.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Done, Effect, Outcome, Refusal, Tool, World, brief, words};
use crate::{
    policy::{Reach, Risk},
    queue::Change,
    repo::{Commit, Repo, RepoError},
};

/// Commits that are listed when no number is given.
const DEFAULT_LISTED: usize = 10;
/// Commits that are listed at most.
const MAX_LISTED: usize = 50;
/// How many commits back words are looked for.
const MAX_SEARCHED: usize = 2_000;
/// Lines of a diff that one call shows at most.
const MAX_LINES: usize = 300;
/// The shortest beginning of an id that is looked up.
const MIN_PREFIX: usize = 4;
/// How what a commit tells is called as an origin: others may have had a hand in what wakes wrote.
const HISTORY: &str = "the memory's history";
/// Wakes that can be taken back are known so far back.
pub const MAX_UNDOABLE: u32 = 500;

/// A wake that can be taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undoable {
    /// Its id.
    pub wake: String,
    /// Its commit's.
    pub commit: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Log {
    /// How many commits, 50 at most; 10 when left out.
    #[serde(default)]
    n: Option<usize>,
    /// Only commits whose first line or author has all of these words.
    #[serde(default)]
    words: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Diff {
    /// The id of a wake or of a commit, or how it begins; four characters at least.
    id: String,
    /// The first line to show, from 1.
    #[serde(default)]
    from_line: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Revert {
    /// The wake's id or its commit's, or how it begins; four characters at least.
    wake: String,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("brain_log", "List what was committed to the memory, the newest first: by which wake or person, and when.", Effect::Read, log),
        Tool::new("brain_diff", "Show what one wake or commit changed in the memory, line by line.", Effect::Read, diff),
        Tool::new(
            "brain_revert",
            "Take a whole wake back: what it wrote into the memory, its reminders, what it hasn't sent yet. Later edits stay. The next \
             wake does it and says what became of it.",
            Effect::Staged,
            revert,
        )
        .risking(Risk::Dangerous)
        .reaching(Reach::Persists),
    ]
}

/// The whole memory's history is its person's: another chat would see in it what others said.
fn repo(world: &World) -> Result<Repo, Refusal> {
    let root: &Path = world.documents.root().ok_or_else(|| {
        Refusal::because("The memory's history is told in the chat of the one whose memory it is. Nothing was done.")
    })?;
    Repo::open(root).map_err(|error| unreadable(&error))
}

fn unreadable(error: &RepoError) -> Refusal {
    Refusal(format!("The memory's history can't be read: {error}."))
}

fn log(args: &Log, world: &World) -> Outcome {
    let n = args.n.unwrap_or(DEFAULT_LISTED);
    if !(1..=MAX_LISTED).contains(&n) {
        return Err(Refusal(format!("n is {n}; 1 to {MAX_LISTED} can be listed.")));
    }
    let wanted: Vec<String> =
        args.words.as_deref().unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let searched = if wanted.is_empty() { n } else { MAX_SEARCHED };
    let commits = repo(world)?.log(searched).map_err(|error| unreadable(&error))?;
    let fits = |commit: &&Commit| {
        let text = format!("{} {} {}", commit.subject, commit.author, commit.wake_id.as_deref().unwrap_or_default())
            .to_lowercase();
        wanted.iter().all(|word| text.contains(word))
    };
    let commits: Vec<&Commit> = commits.iter().filter(fits).take(n).collect();
    let lines: Vec<String> = commits.iter().map(|commit| line(commit, world)).collect();
    let content = if lines.is_empty() { "No such commit was found.".to_owned() } else { lines.join("\n") };
    // A wake's commit says what the wake did, and what it had read by then isn't known.
    let taint = commits.iter().any(|commit| commit.wake_id.is_some()).then(|| HISTORY.to_owned());
    Ok(Done { taint, ..Done::told(content) })
}

fn line(commit: &Commit, world: &World) -> String {
    let id: String = commit.id.to_string().chars().take(10).collect();
    let at = commit.at.with_timezone(&world.tz).format("%a %-d %b %Y, %H:%M");
    let who = match &commit.wake_id {
        Some(wake) => format!("wake {wake}"),
        None => brief(&commit.author),
    };
    format!("{id} {at}, {who}: {}", brief(&commit.subject))
}

fn diff(args: &Diff, world: &World) -> Outcome {
    let id = prefix(&args.id, "id")?;
    let shown = repo(world)?.show(&id).map_err(|error| unreadable(&error))?;
    let Some(shown) = shown else {
        return Err(Refusal(format!("There is no wake or commit whose id begins with {id:?}. brain_log lists them.")));
    };
    let text =
        format!("{}\n{}\n{}\n{}", line(&shown.commit, world), shown.message.trim(), shown.stat.trim_end(), shown.diff);
    let total = text.lines().count();
    let from = args.from_line.unwrap_or(1).max(1);
    if from > total {
        return Err(Refusal(format!("There are {total} lines; {from} was asked for.")));
    }
    let lines: Vec<&str> = text.lines().skip(from - 1).take(MAX_LINES).collect();
    let end = from - 1 + lines.len();
    let more = if end < total {
        format!("\n(Lines {from} to {end} of {total}; go on with from_line {}.)", end + 1)
    } else {
        String::new()
    };
    // A person's has lines beside theirs, which may be anybody's.
    Ok(Done { taint: Some(HISTORY.to_owned()), ..Done::told(format!("{}{more}", lines.join("\n"))) })
}

fn revert(args: &Revert, world: &World) -> Outcome {
    let id = prefix(&args.wake, "wake")?;
    let mut called = world.undoable.iter().filter(|known| known.wake.starts_with(&id) || known.commit.starts_with(&id));
    let wake = match (called.next(), called.next()) {
        (Some(known), None) => known.wake.clone(),
        (None, _) => {
            return Err(Refusal(format!(
                "There is no wake that begins with {id:?} and can be taken back: it has to be over, to have committed something, and not \
                 to be undone already. Nothing was done."
            )));
        }
        (Some(_), Some(_)) => {
            return Err(Refusal::because(
                "Several wakes have an id that begins so: give more of it. Nothing was done.",
            ));
        }
    };
    let (chat_id, thread_id, reply_to) =
        world.chat.map_or((world.owner_chat_id, None, None), |chat| (chat.id, chat.thread_id, chat.reply_to));
    Ok(Done {
        content: format!(
            "The wake {wake} is taken back as soon as this one is over; the chat is told then what became of it. Don't say yet that it is \
             done."
        ),
        receipt: Some(format!("Asked for the wake {wake} to be undone")),
        changes: vec![Change::Undo { wake, chat_id, thread_id, reply_to }],
        ..Done::default()
    })
}

fn prefix(argument: &str, name: &str) -> Result<String, Refusal> {
    let id = words(argument, name, 100)?;
    if id.len() < MIN_PREFIX {
        return Err(Refusal(format!("{name} has {MIN_PREFIX} characters at least. Nothing was done.")));
    }
    Ok(id)
}
