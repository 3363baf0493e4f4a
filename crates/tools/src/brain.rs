//! `brain_log`, `brain_diff`, `brain_revert`: the history of the memory, and undoing a wake. The undo itself is that
//! of `/undo`, done by the next wake. Rules that exclude files of the memory also exclude their history.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use reveille_base::types::Effect;
use reveille_git::{Commit, Repo, RepoError};
use reveille_memory as memory;
use reveille_policy::{Reach, Risk};
use reveille_store::Change;

use super::{Done, Outcome, Refusal, Tool, World, check_text, read::READ, shorten_text};

/// The tools' names.
const LOG: &str = "brain_log";
const DIFF: &str = "brain_diff";
const REVERT: &str = "brain_revert";
/// Default number of listed commits.
const DEFAULT_LISTED: usize = 10;
/// Replaces the words of a commit that changed excluded files.
const KEPT_BACK: &str = "(it changed files that your person's rules exclude, so its message isn't shown)";
/// Maximum number of listed commits.
const MAX_LISTED: usize = 50;
/// Maximum number of commits searched for words.
const MAX_SEARCHED: usize = 2_000;
/// Maximum number of diff lines shown by one call.
const MAX_LINES: usize = 300;
/// The name of the latest step.
const LAST: &str = "last";
/// Minimum length of an id prefix.
const MIN_PREFIX: usize = 4;
/// The origin of a commit's text, which a tainted wake may have written.
const HISTORY: &str = "the memory's history";
/// Maximum number of wakes known as undoable.
pub const MAX_UNDOABLE: u32 = 500;

/// A step that can be undone: a wake, or a person's own command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undoable {
    /// The id for undoing: a wake's id, or the name of a person's own step.
    pub wake: String,
    /// The commit's id; `None` if the memory wasn't changed.
    pub commit: Option<String>,
    /// A description; `None` if not requested.
    pub what: Option<String>,
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
    /// The wake's id or its commit's, or how it begins; four characters at least. A person's own change by its commit. `last`: what
    /// was changed last here, by you or by them.
    wake: String,
}

pub(super) fn define_tools() -> Vec<Tool> {
    vec![
        Tool::new(LOG, "List the memory's commits, the newest first: by which wake or person, and when.", Effect::Read, list_commits),
        Tool::new(DIFF, "Show what one wake or commit changed in the memory, line by line.", Effect::Read, show_diff),
        Tool::new(
            REVERT,
            "Undo a whole wake, or a change that a person made by a command: what it wrote into the memory, its reminders, what it hasn't \
             sent yet. Later edits stay. The next wake does it and reports the result.",
            Effect::Staged,
            revert_wake,
        )
        .with_risk(Risk::Dangerous)
        .with_reach(Reach::Persists),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Builds the offline model's tool to undo the last step, called only for an explicit request.
pub(super) fn undo_last() -> Tool {
    Tool::new(
        "undo_last",
        "Undo the last change made for this chat.",
        Effect::Staged,
        |_: &Nothing, world| match &world.conversation.last_undoable {
            Some(last) => {
                let what = last.what.as_deref().unwrap_or("the last step");
                let content = format!("Undoing {what}. I'll tell you when it's done.");
                Ok(Done { content, ..request_undo(&last.wake, world) })
            }
            None => Err(Refusal::new("There's nothing left that I could undo.")),
        },
    )
    .with_reach(Reach::Persists)
}

/// Opens the repository and returns its work tree. Reserved for chats that see the whole memory, since the history
/// contains other chats' words.
fn open_repo(world: &World) -> Result<(Repo, &Path), Refusal> {
    let root: &Path = world.memory.documents.root().ok_or_else(|| {
        Refusal::new("The memory's history is told in the chat of the one whose memory it is. Nothing was done.")
    })?;
    Ok((Repo::open(root).map_err(|error| refuse_unreadable(&error))?, root))
}

fn refuse_unreadable(error: &RepoError) -> Refusal {
    Refusal::new(format!("The memory's history can't be read: {error}."))
}

/// Returns true if a rule of the person's forbids reading this file of the memory, or reporting it by this tool.
fn is_kept_back(world: &World, tool: &str, place: &Path) -> bool {
    // fault: memorys-history-tells-rule
    [tool, READ].iter().any(|tool| world.means.rules.keeps_back(tool, place))
}

fn list_commits(args: &Log, world: &World) -> Outcome {
    let n = args.n.unwrap_or(DEFAULT_LISTED);
    if !(1..=MAX_LISTED).contains(&n) {
        return Err(Refusal::new(format!("n is {n}; 1 to {MAX_LISTED} can be listed.")));
    }
    let wanted: Vec<String> =
        args.words.as_deref().unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let searched = if wanted.is_empty() { n } else { MAX_SEARCHED };
    let (repo, root) = open_repo(world)?;
    let commits = repo.history().list_commits(searched).map_err(|error| refuse_unreadable(&error))?;
    let fits = |commit: &&Commit| {
        let text = format!("{} {} {}", commit.subject, commit.author, commit.wake_id.as_deref().unwrap_or_default())
            .to_lowercase();
        wanted.iter().all(|word| text.contains(word))
    };
    let (mut lines, mut taint) = (Vec::new(), None);
    for commit in commits.iter().filter(fits) {
        let is_quiet =
            changes_excluded_files((&repo, root), commit, world).map_err(|error| refuse_unreadable(&error))?;
        // Showing the commit would reveal that it contains the words.
        if is_quiet && !wanted.is_empty() {
            continue;
        }
        lines.push(format_commit(commit, is_quiet, world));
        // A wake's commit describes the wake, which may have been tainted.
        taint = taint.or_else(|| commit.wake_id.is_some().then(|| HISTORY.to_owned()));
        if lines.len() == n {
            break;
        }
    }
    let content = if lines.is_empty() { "No such commit was found.".to_owned() } else { lines.join("\n") };
    Ok(Done { taint, ..Done::from_text(content) })
}

/// Returns true if a commit changed excluded files, which its message may reveal.
fn changes_excluded_files((repo, root): (&Repo, &Path), commit: &Commit, world: &World) -> Result<bool, RepoError> {
    if world.means.rules.is_empty() {
        return Ok(false);
    }
    Ok(repo.history().list_changed_paths(commit.id)?.iter().any(|path| is_kept_back(world, LOG, &root.join(path))))
}

/// Formats a commit in one line. A quiet commit is shown without its message.
fn format_commit(commit: &Commit, is_quiet: bool, world: &World) -> String {
    let id: String = commit.id.to_string().chars().take(10).collect();
    let at = commit.at.with_timezone(&world.clock.tz).format("%a %-d %b %Y, %H:%M");
    let who = match &commit.wake_id {
        Some(wake) => format!("wake {wake}"),
        None => shorten_text(&commit.author),
    };
    let said = if is_quiet { KEPT_BACK.to_owned() } else { shorten_text(&commit.subject) };
    format!("{id} {at}, {who}: {said}")
}

fn show_diff(args: &Diff, world: &World) -> Outcome {
    let id = check_prefix(&args.id, "id")?;
    let (repo, root) = open_repo(world)?;
    let is_left_out = |path: &Path| is_kept_back(world, DIFF, &root.join(path));
    let shown = repo.history().find_full_commit(&id, is_left_out).map_err(|error| refuse_unreadable(&error))?;
    let Some(shown) = shown else {
        return Err(Refusal::new(format!(
            "There is no wake or commit whose id begins with {id:?}. brain_log lists them."
        )));
    };
    let head = format_commit(&shown.commit, shown.left_out > 0, world);
    let text = match shown.left_out {
        0 => format!("{head}\n{}\n{}\n{}", shown.message.trim(), shown.stat.trim_end(), shown.diff),
        n => format!("{head}\n(Files that your person's rules exclude, left out here: {n}.)\n{}", shown.diff),
    };
    let total = text.lines().count();
    let from = args.from_line.unwrap_or(1).max(1);
    if from > total {
        return Err(Refusal::new(format!("There are {total} lines; {from} was asked for.")));
    }
    let lines: Vec<&str> = text.lines().skip(from - 1).take(MAX_LINES).collect();
    let end = from - 1 + lines.len();
    let more = if end < total {
        format!("\n(Lines {from} to {end} of {total}; go on with from_line {}.)", end + 1)
    } else {
        String::new()
    };
    // A person's commit contains context lines that may be untrusted.
    Ok(Done { taint: Some(HISTORY.to_owned()), ..Done::from_text(format!("{}{more}", lines.join("\n"))) })
}

fn revert_wake(args: &Revert, world: &World) -> Outcome {
    let id = check_prefix(&args.wake, "wake")?;
    let is_called = |known: &&Undoable| {
        known.wake.starts_with(&id) || known.commit.as_deref().is_some_and(|commit| commit.starts_with(&id))
    };
    let mut called = world.conversation.undoable.iter().filter(is_called);
    let known = match (called.next(), called.next()) {
        _ if id == LAST => world
            .conversation
            .last_undoable
            .as_ref()
            .ok_or_else(|| Refusal::new("There's nothing left that could be undone here. Nothing was done."))?,
        (Some(known), None) => known,
        (None, _) => {
            return Err(Refusal::new(format!(
                "No wake that begins with {id:?} can be undone: it has to be over, to have committed something, and not to be undone \
                 already. Nothing was done."
            )));
        }
        (Some(_), Some(_)) => {
            return Err(Refusal::new("Several wakes have an id that begins so: give more of it. Nothing was done."));
        }
    };
    let wake = known.wake.clone();
    let changed = match known.commit.as_deref().map(|commit| world.memory.documents.list_changed_files(commit)) {
        None => Vec::new(),
        // Without rules nothing is at stake, and the undo itself reports unreadable commits.
        Some(Err(_)) if world.means.rules.is_empty() => Vec::new(),
        Some(changed) => changed.map_err(|error| refuse_unreadable(&error))?,
    };
    let of_orders = |place: &PathBuf| {
        place
            .strip_prefix(world.memory.documents.dir())
            .is_ok_and(|path| path.to_str().is_some_and(memory::is_steering))
    };
    if changed.iter().any(of_orders) {
        return Err(Refusal::new(format!(
            "The wake {wake} changed what steers you; only your person undoes that, with /undo. Nothing was done."
        )));
    }
    if !world.means.rules.is_empty() && changed.iter().any(|place| is_kept_back(world, REVERT, place)) {
        return Err(Refusal::new(format!(
            "The wake {wake} changed files that your person's rules exclude; they can undo it themselves, with /undo. Nothing was done."
        )));
    }
    let done = request_undo(&wake, world);
    Ok(match &known.what {
        Some(what) => Done { content: format!("It is {what}. {}", done.content), ..done },
        None => done,
    })
}

/// Requests the undo of a wake.
fn request_undo(wake: &str, world: &World) -> Done {
    let wake = wake.to_owned();
    let (chat, thread_id, reply_to) = world
        .conversation
        .chat
        .map_or((world.unasked.owner_chat, None, None), |chat| (chat.id, chat.thread_id, chat.reply_to));
    Done {
        content: format!(
            "The wake {wake} will be undone as soon as this one is over, and the chat will then be told the result. Don't say yet that it \
             is done."
        ),
        receipt: Some(format!("Asked for the wake {wake} to be undone")),
        changes: vec![Change::Undo { wake, chat, thread_id, reply_to }],
        ..Done::default()
    }
}

fn check_prefix(argument: &str, name: &str) -> Result<String, Refusal> {
    let id = check_text(argument, name, 100)?;
    if id.len() < MIN_PREFIX {
        return Err(Refusal::new(format!("{name} has {MIN_PREFIX} characters at least. Nothing was done.")));
    }
    Ok(id)
}
