//! `wake memory why`, `diff`, `restore` and `forget`: where what is remembered comes from, and a person's own hand in it.

use std::{
    io::{BufRead as _, IsTerminal as _},
    process::ExitCode,
};

use super::{EXIT_FAILED, EXIT_USAGE, complain, failed, print, print_json};
use crate::{
    config::Config,
    index::IndexPlace,
    memory::forgetting::{MIN_CHARS, SoughtWords},
    provenance::{
        ProvenanceError,
        changed::{self, DocumentFate, MemoryChanges},
        forget::{self, Forgetting},
        hand::{Hand, HandTools, PersonsCommit},
        point::WallClock,
        restore::{self, GivingBack, WantedBack},
        why::{self, LineStory, LineWriter, SaidMessage, Stories},
    },
    repo::{Commit, HoldingCommits, Repo},
    store::Store,
    words::{count, local, one_line, shortened},
};

/// Characters of a message that are shown.
const MAX_SHOWN_CHARS: usize = 300;
/// Numbers that are named of one kind.
const MAX_NAMED: usize = 12;

#[derive(Debug, clap::Args)]
pub(super) struct WhyArguments {
    /// Words of the fact, as it stands in the memory.
    #[arg(required = true)]
    words: Vec<String>,
    /// Print a JSON object a line.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct DiffArguments {
    /// Since when: today, yesterday, 2026-11-20, or a wake's id or a commit; since the last wake when left out.
    since: Option<String>,
    /// Print a JSON object a line: path, is, section, is_added, line, text.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArguments {
    /// A document (its path, or the end of it), or for the whole memory a day, a wake's id or a commit.
    what: String,
    /// As it was then: yesterday, 2026-11-20 (its evening), or after that wake or commit; before its last change when left out.
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
    /// Only the lines with these words; all else stays as it is.
    #[arg(long, value_name = "TEXT")]
    lines: Option<String>,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ForgetArguments {
    /// The words; case and line ends don't matter.
    #[arg(required = true)]
    words: Vec<String>,
    /// Don't ask: take out what is listed.
    #[arg(long)]
    yes: bool,
    /// Say what would be taken out, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// A line's story as JSON. The names are relied on.
#[derive(serde::Serialize)]
struct WhyLine<'a> {
    path: &'a str,
    line: usize,
    text: &'a str,
    heading: &'a str,
    written_by: LineWriter,
    commit: Option<CommitLine>,
    wake: Option<&'a str>,
    wake_commit: Option<CommitLine>,
    messages: &'a [SaidMessage],
    taint: Option<&'a str>,
    is_near: bool,
}

/// A commit in a line of JSON.
#[derive(serde::Serialize)]
struct CommitLine {
    commit: String,
    at: chrono::DateTime<chrono::Utc>,
    author: String,
    subject: String,
    wake_id: Option<String>,
}

impl From<&Commit> for CommitLine {
    fn from(commit: &Commit) -> Self {
        let Commit { id, author, subject, wake_id, at, .. } = commit.clone();
        Self { commit: id.to_string(), at, author, subject, wake_id }
    }
}

/// A changed line as JSON. The names are relied on.
#[derive(serde::Serialize)]
struct DiffLine<'a> {
    path: &'a str,
    is: DocumentFate,
    #[serde(flatten)]
    line: &'a crate::memory::changes::ChangedLine,
}

fn wall(config: &Config) -> WallClock {
    WallClock { tz: config.timezone, now: config.clock().now() }
}

fn memory(config: &Config) -> Result<Repo, ExitCode> {
    super::history::open_repo(config)
}

/// The database to look at, if it is there and can be read.
fn database(config: &Config) -> Option<Store> {
    Store::open_read_only(&config.db_path()).ok().flatten()
}

fn refused(error: &ProvenanceError) -> ExitCode {
    match error {
        ProvenanceError::Busy(why) | ProvenanceError::Refused(why) => {
            complain(why);
            ExitCode::from(EXIT_FAILED)
        }
        ProvenanceError::Point(error) => {
            complain(&format!("{error}."));
            ExitCode::from(EXIT_USAGE)
        }
        error => failed(error),
    }
}

/// `wake memory why`.
pub(super) fn why(config: &Config, arguments: &WhyArguments, as_json: bool) -> ExitCode {
    let words = arguments.words.join(" ");
    let index = IndexPlace::of(config);
    let why = |repo| why::why(&repo, database(config).as_ref(), (&index, config.timezone), &words);
    let stories = match memory(config).map(why) {
        Ok(Ok(stories)) => stories,
        Ok(Err(error)) => return refused(&error),
        Err(code) => return code,
    };
    if stories.lines.is_empty() {
        complain(&format!("The memory has no line about “{}”.", shortened(&one_line(&words), MAX_SHOWN_CHARS)));
        return ExitCode::from(EXIT_FAILED);
    }
    let Stories { lines, are_near, more } = stories;
    if are_near && !as_json {
        complain("No line has these words. The nearest:");
    }
    for story in &lines {
        if as_json {
            print_json(&WhyLine {
                path: &story.path,
                line: story.line,
                text: &story.text,
                heading: &story.heading,
                written_by: story.writer,
                commit: story.commit.as_ref().map(CommitLine::from),
                wake: wake_of(story),
                wake_commit: story.wake_commit.as_ref().map(CommitLine::from),
                messages: &story.messages,
                taint: story.taint.as_deref(),
                is_near: are_near,
            });
        } else {
            print(&format!("{}\n", told(config, story)));
        }
    }
    if more > 0 {
        complain(&format!("{} more have these words; more of them find fewer.", count(more, "line")));
    }
    ExitCode::SUCCESS
}

fn wake_of(story: &LineStory) -> Option<&str> {
    let named = story.origin.as_ref().map(|origin| origin.wake.as_str());
    let own = story.commit.as_ref().filter(|_| story.writer == LineWriter::Wake);
    named.or(own.and_then(|commit| commit.wake_id.as_deref()))
}

fn told(config: &Config, story: &LineStory) -> String {
    let tz = config.timezone;
    let commit = |commit: &Commit| {
        let id: String = commit.id.to_string().chars().take(8).collect();
        format!("commit {id}, {}: {}", local(commit.at, tz), commit.subject)
    };
    let heading = if story.heading.is_empty() { String::new() } else { format!(" ({})", story.heading) };
    let mut text = format!("{}:{}{heading}\n  {}\n", story.path, story.line, story.text);
    let wake = wake_of(story);
    text.push_str(&match (story.writer, &story.commit) {
        (LineWriter::Wake, Some(made)) => format!("  A wake wrote it: {}.\n", commit(made)),
        (LineWriter::Person, Some(made)) => {
            format!("  A person wrote it ({}): {}.\n", made.author, commit(made))
        }
        (LineWriter::Program, Some(made)) => format!("  It came with {}.\n", commit(made)),
        (_, _) => "  A person wrote it; it isn't committed yet.\n".to_owned(),
    });
    if let Some(made) = &story.wake_commit {
        let then = if story.writer == LineWriter::Wake { "It first came with" } else { "Before that a wake wrote it:" };
        text.push_str(&format!("  {then} {}.\n", commit(made)));
    } else if let (Some(wake), true) = (wake, story.writer != LineWriter::Wake) {
        text.push_str(&format!("  It carries the mark of the wake {wake}, which this memory has no commit of.\n"));
    }
    for message in &story.messages {
        let at = message.at.map_or_else(|| "?".to_owned(), |at| local(at, tz));
        let from = message.from.as_deref().unwrap_or("you");
        let chat =
            if message.chat.is_terminal() { "the terminal".to_owned() } else { format!("chat {}", message.chat) };
        let said = shortened(&one_line(&message.text), MAX_SHOWN_CHARS);
        text.push_str(&format!("  Message {}, {at}, {from} in {chat}: “{said}”\n", message.id));
        if let Some(taint) = &message.taint {
            text.push_str(&format!("    Not all of it are their own words: {taint}.\n"));
        }
    }
    if let (Some(wake), true) = (wake, story.messages.is_empty()) {
        text.push_str(&format!("  No message is known that said it; `wake show {wake}` tells what that wake did.\n"));
    }
    if let Some(taint) = &story.taint {
        text.push_str(&format!("  By then the wake had read what others wrote: {taint}.\n"));
    }
    text
}

/// `wake memory diff`.
pub(super) fn diff(config: &Config, arguments: &DiffArguments, as_json: bool) -> ExitCode {
    let found = memory(config).map(|repo| changed::changed(&repo, arguments.since.as_deref(), wall(config)));
    let MemoryChanges { since, commits, has_edits, documents } = match found {
        Ok(Ok(changes)) => changes,
        Ok(Err(error)) => return refused(&error),
        Err(code) => return code,
    };
    if as_json {
        for document in &documents {
            for line in &document.lines {
                print_json(&DiffLine { path: &document.path, is: document.is, line });
            }
        }
        return ExitCode::SUCCESS;
    }
    let edits = if has_edits { ", and edits that aren't committed yet" } else { "" };
    if documents.is_empty() {
        complain(&format!("Nothing has changed since {}. `wake show` tells what a wake changed itself.", since.name));
        return ExitCode::SUCCESS;
    }
    print(&format!("Since {}: {}{edits}.\n", since.name, count(commits.len(), "commit")));
    for document in &documents {
        let is = match document.is {
            DocumentFate::New => " (new)",
            DocumentFate::Gone => " (gone)",
            DocumentFate::Changed => "",
        };
        print(&format!("\n{}{is}\n", document.path));
        let mut section = None;
        for line in &document.lines {
            if section != Some(&line.section) {
                section = Some(&line.section);
                if !line.section.is_empty() {
                    print(&format!("  {}\n", line.section));
                }
            }
            print(&format!("  {} {}\n", if line.is_added { '+' } else { '-' }, line.text));
        }
    }
    ExitCode::SUCCESS
}

/// `wake memory restore`.
pub(super) fn restore(config: &Config, arguments: &RestoreArguments) -> ExitCode {
    let sought = match arguments.lines.as_deref().map(SoughtWords::new) {
        None => None,
        Some(Some(sought)) => Some(sought),
        Some(None) => return too_short(),
    };
    let repo = match memory(config) {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    let RestoreArguments { what, at, dry_run, .. } = arguments;
    let is_document = at.is_some() || sought.is_some() || is_document(&repo, what);
    let wanted = match is_document {
        true => WantedBack::Document { path: what, at: at.as_deref(), lines: sought.as_ref() },
        false => WantedBack::All { at: what },
    };
    if *dry_run {
        return match restore::plan(&repo, wanted, wall(config)) {
            Ok(giving) => given(&giving, None),
            Err(error) => refused(&error),
        };
    }
    drop(repo);
    let done = with_hand(config, |hand| restore::carry_out(hand, wanted, wall(config)));
    match done {
        Ok((giving, made)) => given(&giving, made.as_ref().map(|made| (made, config))),
        Err(error) => refused(&error),
    }
}

/// Whether a word names a document rather than a time or a commit.
fn is_document(repo: &Repo, what: &str) -> bool {
    let known = repo.all_markdown().unwrap_or_default();
    what.contains('/') || what.ends_with(".md") || known.iter().any(|path| path.ends_with(&format!("/{what}.md")))
}

fn given(giving: &GivingBack, made: Option<(&PersonsCommit, &Config)>) -> ExitCode {
    let then = &giving.point.name;
    if giving.changes.is_empty() {
        complain(&format!("Nothing to do: it is as it was at {then}."));
        return ExitCode::SUCCESS;
    }
    for change in &giving.changes {
        let lines = crate::memory::changes::changes(
            change.base.as_deref().unwrap_or_default(),
            change.content.as_deref().unwrap_or_default(),
        );
        let came = lines.iter().filter(|line| line.is_added).count();
        let gone = if change.content.is_none() { "; it is gone, as it was then" } else { "" };
        print(&format!("{}: +{came} -{} lines{gone}\n", change.path, lines.len() - came));
    }
    match made {
        None => complain(&format!("As of {then}. Nothing was changed yet: leave out --dry-run to do it.")),
        Some((made, _)) => {
            let id: String = made.commit.to_string().chars().take(8).collect();
            complain(&format!(
                "Restored as of {then}, in commit {id}. What stood there is in the history: `git revert {id}` brings it back."
            ));
            told_commit(made);
        }
    }
    ExitCode::SUCCESS
}

fn told_commit(made: &PersonsCommit) {
    if !made.before.is_empty() {
        complain(&format!("Before that your edits were committed: {}.", made.before.join(", ")));
    }
    for left in &made.left_alone {
        complain(&format!("{} was written but not committed: it {}.", left.path, left.why));
    }
}

/// `wake memory forget`.
pub(super) fn forget(config: &Config, arguments: &ForgetArguments) -> ExitCode {
    let words = arguments.words.join(" ");
    let Some(sought) = SoughtWords::new(&words) else { return too_short() };
    let repo = match memory(config) {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    let plan = match forget::plan(&repo, database(config).as_ref(), &sought) {
        Ok(plan) => plan,
        Err(error) => return refused(&error),
    };
    show_plan(config, &plan);
    if plan.rows.is_blocked() || !plan.unwritable.is_empty() {
        show_blocks(&plan);
        return ExitCode::from(EXIT_FAILED);
    }
    if plan.is_empty() {
        // One that was cut off before may have left them in the index or in free pages.
        let is_there = !arguments.dry_run && database(config).is_some();
        if is_there && let Err(error) = with_hand(config, |hand| forget::carry_out(hand, &sought, &plan)) {
            return refused(&error);
        }
        complain("Nothing that is searched holds these words.");
        show_history(config, &repo, &sought, &words);
        return ExitCode::SUCCESS;
    }
    if arguments.dry_run {
        complain("Nothing was taken out.");
        return ExitCode::SUCCESS;
    }
    match agreed(arguments.yes) {
        Some(true) => {}
        Some(false) => {
            complain("Nothing was taken out.");
            return ExitCode::from(EXIT_FAILED);
        }
        None => {
            complain("Nothing was taken out: nobody can be asked here. With --yes it is done.");
            return ExitCode::from(EXIT_FAILED);
        }
    }
    match with_hand(config, |hand| forget::carry_out(hand, &sought, &plan)) {
        Ok((made, is_rewritten)) => {
            complain("It is out of everything that is searched.");
            if !is_rewritten {
                complain(
                    "Free pages of messages.db may still hold it, since another program was reading. To write the file anew: stop the bot, \
                     then sqlite3 messages.db VACUUM",
                );
            }
            if let Some(made) = made {
                let id: String = made.commit.to_string().chars().take(8).collect();
                complain(&format!("The memory's lines went with commit {id}, which is yours."));
                told_commit(&made);
            }
            let logs = crate::words::in_shell(&config.logs_dir());
            complain(&format!(
                "Not reached: the logs in {logs} (`rm` removes them), backups and copies of yours, what stands in the chats themselves, \
                 and what a model or an embedder was sent."
            ));
            show_history(config, &repo, &sought, &words);
            ExitCode::SUCCESS
        }
        Err(error) => refused(&error),
    }
}

fn too_short() -> ExitCode {
    complain(&format!("That is too little to look for: name {MIN_CHARS} characters at least. Nothing was changed."));
    ExitCode::from(EXIT_USAGE)
}

/// Whether the person agrees; none: nobody can be asked.
fn agreed(is_said: bool) -> Option<bool> {
    if is_said {
        return Some(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    complain("Take it out? It can't be brought back from the database. [y/N]");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).ok()?;
    Some(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn show_plan(config: &Config, plan: &Forgetting) {
    let tz = config.timezone;
    let Forgetting { documents, rows, sources, .. } = plan;
    for document in documents {
        print(&format!("{}\n", document.change.path));
        for (number, line) in &document.lines {
            print(&format!("  {number}: {}\n", shortened(line, MAX_SHOWN_CHARS)));
        }
    }
    for (what, held) in [("message", &rows.incoming), ("answer", &rows.outgoing)] {
        for row in held.iter() {
            let at = crate::clock::parse_time(&row.at).map_or_else(|| row.at.clone(), |at| local(at, tz));
            print(&format!("{what} {} of {at}: {}\n", row.id, shortened(&one_line(&row.text), MAX_SHOWN_CHARS)));
        }
    }
    let mut more = Vec::new();
    if !rows.quoting.is_empty() {
        more.push(format!("what {} quoted: {}", count(rows.quoting.len(), "message"), numbers(&rows.quoting)));
    }
    if !rows.named.is_empty() {
        more.push(format!("who wrote {}: {}", count(rows.named.len(), "message"), numbers(&rows.named)));
    }
    if !rows.recordings.is_empty() {
        more.push(format!("{}: {}", count(rows.recordings.len(), "recording"), numbers(&rows.recordings)));
    }
    if !rows.cycles.is_empty() {
        more.push(format!(
            "the records of {} that ended, whole: {}",
            count(rows.cycles.len(), "wake"),
            named(&rows.cycles)
        ));
    }
    if !rows.old_reminders.is_empty() {
        more.push(format!("{} that are over", count(rows.old_reminders.len(), "reminder")));
    }
    more.iter().for_each(|line| print(&format!("{line}\n")));
    for row in &rows.reminders {
        complain(&format!(
            "Stays: reminder {} “{}”. Cancel it first, if it is to go.",
            row.id,
            shortened(&row.text, MAX_SHOWN_CHARS)
        ));
    }
    for file in &rows.files {
        let path = crate::words::in_shell(&config.workspace_dir.join(file));
        complain(&format!("Stays: the file that came with such a message. `rm {path}` removes it."));
    }
    for message in sources {
        let said = shortened(&one_line(&message.text), MAX_SHOWN_CHARS);
        complain(&format!(
            "Stays: message {}, which a line comes from, says “{said}”. Forget its own words, too, if it is to go.",
            message.id
        ));
    }
}

fn numbers(ids: &[i64]) -> String {
    named(&ids.iter().map(i64::to_string).collect::<Vec<_>>())
}

fn named(names: &[String]) -> String {
    let mut shown: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
    let more = format!("and {} more", names.len().saturating_sub(MAX_NAMED));
    if names.len() > MAX_NAMED {
        shown.push(&more);
    }
    shown.join(", ")
}

fn show_blocks(plan: &Forgetting) {
    let rows = &plan.rows;
    complain("Nothing was taken out: this has to be finished first.");
    if !rows.open.is_empty() {
        complain(&format!(
            "Open: {}. `wake --once` goes on with it; where it waits for your word, `wake approvals list` shows the question.",
            named(&rows.open)
        ));
    }
    if !rows.waiting.is_empty() {
        complain(&format!(
            "Not answered yet: {}. `wake --once` answers; `wake queue drop {}` takes it out of the queue.",
            numbers(&rows.waiting),
            rows.waiting.first().copied().unwrap_or_default()
        ));
    }
    if !rows.unsent.is_empty() {
        complain(&format!("Not sent yet: answer {}. `wake --once` sends what it can.", numbers(&rows.unsent)));
    }
    if !rows.on_hold.is_empty() {
        complain(&format!(
            "On hold: message {}. What was done for it stands in a record that would go. `wake queue retry {1}` has it done, \
             `wake queue drop {1}` takes it out.",
            numbers(&rows.on_hold),
            rows.on_hold.first().copied().unwrap_or_default()
        ));
    }
    for path in &plan.unwritable {
        complain(&format!("{path} holds it and can't be written. Please put that right."));
    }
}

fn show_history(config: &Config, repo: &Repo, sought: &SoughtWords, words: &str) {
    let HoldingCommits { commits, on_remote, is_cut } = match forget::history(repo, sought) {
        Ok(found) => found,
        Err(error) => return complain(&format!("What git's history holds couldn't be looked at: {error}.")),
    };
    if commits.is_empty() {
        return complain("Git's history doesn't hold these words.");
    }
    let ids: Vec<String> = commits.iter().map(|commit| commit.id.to_string().chars().take(8).collect()).collect();
    let cut = if is_cut { " (of the newest that I looked through)" } else { "" };
    complain(&format!("Git's history still holds it, in {}{cut}: {}.", count(commits.len(), "commit"), named(&ids)));
    match (repo.has_remote(), on_remote) {
        (false, _) => complain("There is no remote."),
        (true, 0) => complain("The remote had none of them when I last looked."),
        (true, n) => complain(&format!(
            "The remote has {n} of them, as far as I last saw. Other clones, forks and its own caches may have them, too."
        )),
    }
    complain(
        "This purges it: every commit since gets another id. Commit or stash first what isn't committed. In any shell:\n",
    );
    match forget::purge(repo, database(config).as_ref(), words) {
        Ok(commands) => complain(&commands),
        Err(error) => complain(&format!("They can't be told: {error}.")),
    }
}

/// Does something under the wake lock, with the memory and the database.
fn with_hand<T>(
    config: &Config,
    work: impl FnOnce(&mut Hand<'_>) -> Result<T, ProvenanceError>,
) -> Result<T, ProvenanceError> {
    let (clock, redactor) = (config.clock(), super::redactor(config));
    let mut hand = Hand::take(HandTools { config, clock: clock.as_ref(), redactor: &redactor })?;
    let done = work(&mut hand);
    let ended = hand.put_down();
    let done = done?;
    ended.map(|()| done)
}
