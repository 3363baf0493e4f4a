//! `wake memory forget`: lists the affected text, asks, and reports where copies remain.

use std::{
    io::{BufRead as _, IsTerminal as _},
    path::Path,
    process::ExitCode,
};

use reveille_account::provenance::{
    forget::{self, Forgetting},
    hand::HandTools,
    purge::{self, PurgedHistory},
};
use reveille_base::words::{count, local, one_line, shortened};
use reveille_config::Config;
use reveille_git::{HoldingCommits, Repo};
use reveille_memory::forgetting::SoughtWords;

use super::{MAX_SHOWN_CHARS, database, memory, refused, told_commit, too_short, with_hand};
use crate::{
    cli::{EXIT_FAILED, complain, print},
    setup::install::DATABASE_COPY,
};

/// Maximum listed numbers of one kind.
const MAX_NAMED: usize = 12;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ForgetArguments {
    /// The words; case and line ends don't matter.
    #[arg(required = true)]
    words: Vec<String>,
    /// Don't ask: take out what is listed.
    #[arg(long)]
    yes: bool,
    /// Say what would be taken out, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Take it out of git's history, too, here and at the remote, whose history is replaced by force.
    #[arg(long)]
    purge: bool,
}

/// Carries out `wake memory forget`.
pub(in crate::cli) fn forget(config: &Config, arguments: &ForgetArguments) -> ExitCode {
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
        // An interrupted run may have left the words in the index or in free pages.
        let is_there = !arguments.dry_run && database(config).is_some();
        if is_there && let Err(error) = with_hand(config, |hand| forget::carry_out(hand, &sought, &plan)) {
            return refused(&error);
        }
        complain("Nothing that is searched holds these words.");
        show_copy(config);
        if arguments.purge && !arguments.dry_run {
            return purged(config, &repo, &sought, arguments.yes);
        }
        show_history(&repo, &sought, &words);
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
            let logs = reveille_base::words::in_shell(&config.logs_dir());
            complain(&format!(
                "Not reached: the logs in {logs} (`rm` removes them), backups and copies of yours, what stands in the chats themselves, \
                 and what a model or an embedder was sent."
            ));
            show_copy(config);
            if arguments.purge {
                return purged(config, &repo, &sought, arguments.yes);
            }
            show_history(&repo, &sought, &words);
            ExitCode::SUCCESS
        }
        Err(error) => refused(&error),
    }
}

/// Removes the words from git's history after the person has agreed, and reports the result.
fn purged(config: &Config, repo: &Repo, sought: &SoughtWords, is_agreed: bool) -> ExitCode {
    let holding = match forget::history(repo, sought) {
        Ok(found) => found.commits.len(),
        Err(error) => {
            complain(&format!("What git's history holds couldn't be looked at: {error}."));
            return ExitCode::from(EXIT_FAILED);
        }
    };
    let was_cut_off = purge::was_cut_off(config);
    // fault: purge-cut-off-taken
    if holding == 0 && !was_cut_off {
        complain("Git's history doesn't hold these words.");
        return ExitCode::SUCCESS;
    }
    if was_cut_off {
        complain("The last purge isn't finished: going on with it, here and at the remote.");
    }
    if holding > 0 {
        complain(&purge::warning(holding));
    }
    if asked(is_agreed, "Rewrite the history? [y/N]") != Some(true) {
        complain("The history stays as it is.");
        return ExitCode::from(EXIT_FAILED);
    }
    let (clock, redactor) = (config.clock(), crate::cli::redactor(config));
    let tools = HandTools { config, clock: clock.as_ref(), redactor: &redactor };
    match with_hand(config, |hand| purge::purge(hand, tools, sought)) {
        Ok(PurgedHistory { commits: 0, .. }) => {
            complain("Git's history doesn't hold these words any more.");
            ExitCode::SUCCESS
        }
        Ok(PurgedHistory { commits, backup, pushed }) => {
            complain(&format!("The history was rewritten: {} got another id.", count(commits, "commit")));
            match pushed {
                Some(Ok(())) => complain(
                    "The remote's history was replaced by force. Its own caches and forks may still hold the words.",
                ),
                Some(Err(error)) => complain(&format!(
                    "The remote still has the old history: {error}. I merge nothing of it and push nothing to it. The same command once \
                     more replaces it there."
                )),
                None => {}
            }
            if let Some(backup) = backup {
                let path = reveille_base::words::in_shell(&backup);
                complain(&format!(
                    "For 7 days the history is kept as it was, outside of git, and holds the words: {path}. `rm` removes it at once."
                ));
            }
            ExitCode::SUCCESS
        }
        Err(error) => refused(&error),
    }
}

/// Asks for agreement. `None` if nobody can be asked.
fn agreed(is_said: bool) -> Option<bool> {
    asked(is_said, "Take it out? It can't be brought back from the database. [y/N]")
}

fn asked(is_said: bool, question: &str) -> Option<bool> {
    if is_said {
        return Some(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    complain(question);
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
            let at = reveille_base::clock::parse_time(&row.at).map_or_else(|| row.at.clone(), |at| local(at, tz));
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
    let of_jobs = rows.job_runs.len() + rows.jobs.len();
    if of_jobs > 0 {
        more.push(format!("what {} saw or came to", count(of_jobs, "look of a job")));
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
        let path = reveille_base::words::in_shell(&config.media_dir.join(file));
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
    if !rows.pressed.is_empty() {
        let pressed = numbers(&rows.pressed);
        complain(&format!("Not done yet: what a button under text {pressed} says. `wake --once` does it."));
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

/// Names the database copy of the last upgrade, if there is one.
fn show_copy(config: &Config) {
    let copy = config.workspace_dir.join(DATABASE_COPY);
    if copy.exists() {
        let path = reveille_base::words::in_shell(&copy);
        complain(&format!("Not reached either: the copy that the last upgrade made may hold it. rm {path}"));
    }
}

fn show_history(repo: &Repo, sought: &SoughtWords, words: &str) {
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
    let words = reveille_base::words::in_shell(Path::new(words));
    complain(&format!(
        "`wake memory forget {words} --purge` takes it out of there, too. {}",
        purge::warning(commits.len())
    ));
}
