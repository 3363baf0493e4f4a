//! `wake memory forget`: lists the affected text, asks, and reports where copies remain.

use std::{
    io::{BufRead as _, IsTerminal as _},
    path::Path,
    process::ExitCode,
};

use reveille_account::provenance::{
    forget::{self, Forgetting},
    hand::PersonSessionTools,
    purge::{self, PurgedHistory},
};
use reveille_base::words::{format_count, format_local_time, one_line, truncate_text};
use reveille_config::Config;
use reveille_git::{HoldingCommits, Repo};
use reveille_memory::forgetting::SoughtWords;

use super::{
    MAX_SHOWN_CHARS, open_database, open_memory, report_commit, report_refusal, too_short, with_person_session,
};
use crate::{
    cli::{EXIT_FAILED, complain, print},
    setup::install::DATABASE_COPY,
};

/// Maximum number of ids or names listed of one kind.
const MAX_NAMED: usize = 12;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ForgetArguments {
    /// The words; case and line ends don't matter.
    #[arg(required = true)]
    words: Vec<String>,
    /// Don't ask: remove what is listed.
    #[arg(long)]
    yes: bool,
    /// Show what would be removed, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Remove it from git's history too, here and at the remote (by a forced push).
    #[arg(long)]
    purge: bool,
}

/// Carries out `wake memory forget`.
pub(in crate::cli) fn forget(config: &Config, arguments: &ForgetArguments) -> ExitCode {
    let words = arguments.words.join(" ");
    let Some(sought) = SoughtWords::new(&words) else { return too_short() };
    let repo = match open_memory(config) {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    let plan = match forget::plan(&repo, open_database(config).as_ref(), &sought) {
        Ok(plan) => plan,
        Err(error) => return report_refusal(&error),
    };
    let consent = if arguments.yes { PurgeConsent::Given } else { PurgeConsent::Missing };
    show_plan(config, &plan);
    if plan.rows.is_blocked() || !plan.unwritable.is_empty() {
        show_blocks(&plan);
        return ExitCode::from(EXIT_FAILED);
    }
    if plan.is_empty() {
        // An interrupted run may have left the words in the index or in free pages.
        let has_database = !arguments.dry_run && open_database(config).is_some();
        if has_database && let Err(error) = with_person_session(config, |hand| forget::carry_out(hand, &sought, &plan))
        {
            return report_refusal(&error);
        }
        complain("Nothing that is searched holds these words.");
        show_copy(config);
        if arguments.purge && !arguments.dry_run {
            return purge_history(config, &repo, &sought, consent);
        }
        show_history(&repo, &sought, &words);
        return ExitCode::SUCCESS;
    }
    if arguments.dry_run {
        complain("Nothing was removed.");
        return ExitCode::SUCCESS;
    }
    match confirm_removal(consent) {
        Some(true) => {}
        Some(false) => {
            complain("Nothing was removed.");
            return ExitCode::from(EXIT_FAILED);
        }
        None => {
            complain("Nothing was removed: there is no terminal to ask at. Use --yes to do it without asking.");
            return ExitCode::from(EXIT_FAILED);
        }
    }
    match with_person_session(config, |hand| forget::carry_out(hand, &sought, &plan)) {
        Ok((made, is_rewritten)) => {
            complain("It is removed from everything that is searched.");
            if !is_rewritten {
                complain(
                    "Free pages of messages.db may still hold it, because another program was reading. To rewrite the file, stop \
                     the bot, then run: sqlite3 messages.db VACUUM",
                );
            }
            if let Some(made) = made {
                let id: String = made.commit.to_string().chars().take(8).collect();
                complain(&format!("The memory's lines were removed in commit {id}, which is yours."));
                report_commit(&made);
            }
            let logs = reveille_base::words::quote_for_shell(&config.logs_dir());
            complain(&format!(
                "It may still be in the logs in {logs} (`rm` removes them), in your own backups and copies, in the chats \
                 themselves, and in what a model or an embedder was sent."
            ));
            show_copy(config);
            if arguments.purge {
                return purge_history(config, &repo, &sought, consent);
            }
            show_history(&repo, &sought, &words);
            ExitCode::SUCCESS
        }
        Err(error) => report_refusal(&error),
    }
}

/// The person's consent before anything is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PurgeConsent {
    /// Given by `--yes`.
    Given,
    /// Still to be asked for.
    Missing,
}

/// Removes the words from git's history after the person has agreed, and reports the result.
fn purge_history(config: &Config, repo: &Repo, sought: &SoughtWords, consent: PurgeConsent) -> ExitCode {
    let holding = match forget::find_holding_commits(repo, sought) {
        Ok(found) => found.commits.len(),
        Err(error) => {
            complain(&format!("I couldn't search git's history: {error}."));
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
        complain("The last purge isn't finished: continuing it, here and at the remote.");
    }
    if holding > 0 {
        complain(&purge::describe_consequences(holding));
    }
    if confirm(consent, "Rewrite the history? [y/N]") != Some(true) {
        complain("The history wasn't changed.");
        return ExitCode::from(EXIT_FAILED);
    }
    let (clock, redactor) = (config.clock(), crate::cli::build_redactor(config));
    let tools = PersonSessionTools { config, clock: clock.as_ref(), redactor: &redactor };
    match with_person_session(config, |hand| purge::purge_history(hand, tools, sought)) {
        Ok(PurgedHistory { commits: 0, .. }) => {
            complain("Git's history doesn't hold these words any more.");
            ExitCode::SUCCESS
        }
        Ok(PurgedHistory { commits, backup, pushed }) => {
            complain(&format!("The history was rewritten: {} got a new id.", format_count(commits, "commit")));
            match pushed {
                Some(Ok(())) => complain(
                    "The remote's history was replaced by force. Its own caches and forks may still hold the words.",
                ),
                Some(Err(error)) => complain(&format!(
                    "The remote still has the old history: {error}. I won't merge it or push to it. To replace it there, run the \
                     same command again."
                )),
                None => {}
            }
            if let Some(backup) = backup {
                let path = reveille_base::words::quote_for_shell(&backup);
                complain(&format!(
                    "A copy of the old history, with the words, is kept outside git for 7 days: {path}. `rm` removes it at once."
                ));
            }
            ExitCode::SUCCESS
        }
        Err(error) => report_refusal(&error),
    }
}

/// Asks before the words are removed. `None` if nobody can be asked.
fn confirm_removal(consent: PurgeConsent) -> Option<bool> {
    confirm(consent, "Remove it? It can't be restored in the database. [y/N]")
}

fn confirm(consent: PurgeConsent, question: &str) -> Option<bool> {
    if consent == PurgeConsent::Given {
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
            print(&format!("  {number}: {}\n", truncate_text(line, MAX_SHOWN_CHARS)));
        }
    }
    for (what, held) in [("message", &rows.incoming), ("answer", &rows.outgoing)] {
        for row in held.iter() {
            let at = reveille_base::clock::parse_time(&row.at)
                .map_or_else(|| row.at.clone(), |at| format_local_time(at, tz));
            print(&format!("{what} {} of {at}: {}\n", row.id, truncate_text(&one_line(&row.text), MAX_SHOWN_CHARS)));
        }
    }
    let mut more = Vec::new();
    if !rows.quoting.is_empty() {
        more.push(format!(
            "text that {} quoted: {}",
            format_count(rows.quoting.len(), "message"),
            format_ids(&rows.quoting)
        ));
    }
    if !rows.named.is_empty() {
        more.push(format!("the sender of {}: {}", format_count(rows.named.len(), "message"), format_ids(&rows.named)));
    }
    if !rows.recordings.is_empty() {
        more.push(format!("{}: {}", format_count(rows.recordings.len(), "recording"), format_ids(&rows.recordings)));
    }
    if !rows.cycles.is_empty() {
        more.push(format!(
            "the full records of {}: {}",
            format_count(rows.cycles.len(), "wake"),
            format_names(&rows.cycles)
        ));
    }
    let of_jobs = rows.job_runs.len() + rows.jobs.len();
    if of_jobs > 0 {
        more.push(format!("observations and results of {}", format_count(of_jobs, "job run")));
    }
    if !rows.old_reminders.is_empty() {
        more.push(format!("{} in the past", format_count(rows.old_reminders.len(), "reminder")));
    }
    more.iter().for_each(|line| print(&format!("{line}\n")));
    for row in &rows.reminders {
        complain(&format!(
            "Stays: reminder {} “{}”. To remove it, cancel it first.",
            row.id,
            truncate_text(&row.text, MAX_SHOWN_CHARS)
        ));
    }
    for file in &rows.files {
        let path = reveille_base::words::quote_for_shell(&config.media_dir.join(file));
        complain(&format!("Stays: the file that came with one of these messages. `rm {path}` removes it."));
    }
    for message in sources {
        let said = truncate_text(&one_line(&message.text), MAX_SHOWN_CHARS);
        complain(&format!(
            "Stays: message {}, the source of a line: “{said}”. To remove it, forget its own words, too.",
            message.id
        ));
    }
}

fn format_ids(ids: &[i64]) -> String {
    format_names(&ids.iter().map(i64::to_string).collect::<Vec<_>>())
}

fn format_names(names: &[String]) -> String {
    let mut shown: Vec<&str> = names.iter().take(MAX_NAMED).map(String::as_str).collect();
    let more = format!("and {} more", names.len().saturating_sub(MAX_NAMED));
    if names.len() > MAX_NAMED {
        shown.push(&more);
    }
    shown.join(", ")
}

fn show_blocks(plan: &Forgetting) {
    let rows = &plan.rows;
    complain("Nothing was removed: this has to be finished first.");
    if !rows.open.is_empty() {
        complain(&format!(
            "Unfinished: {}. `wake --once` continues; if one waits for your answer, `wake approvals list` shows the question.",
            format_names(&rows.open)
        ));
    }
    if !rows.waiting.is_empty() {
        complain(&format!(
            "Not answered yet: {}. `wake --once` answers; `wake queue drop {}` takes it out of the queue.",
            format_ids(&rows.waiting),
            rows.waiting.first().copied().unwrap_or_default()
        ));
    }
    if !rows.unsent.is_empty() {
        complain(&format!("Not sent yet: answer {}. `wake --once` sends what it can.", format_ids(&rows.unsent)));
    }
    if !rows.pressed.is_empty() {
        let pressed = format_ids(&rows.pressed);
        complain(&format!("Not done yet: a button pressed under message {pressed}. `wake --once` does it."));
    }
    if !rows.on_hold.is_empty() {
        complain(&format!(
            "On hold: message {}. The record of its work would be removed. `wake queue retry {1}` runs it again, `wake queue drop \
             {1}` drops it.",
            format_ids(&rows.on_hold),
            rows.on_hold.first().copied().unwrap_or_default()
        ));
    }
    for path in &plan.unwritable {
        complain(&format!("{path} holds it and isn't writable. Please correct that first."));
    }
}

/// Warns about the database copy of the last upgrade, if there is one.
fn show_copy(config: &Config) {
    let copy = config.workspace_dir.join(DATABASE_COPY);
    if copy.exists() {
        let path = reveille_base::words::quote_for_shell(&copy);
        complain(&format!("The database copy of the last upgrade may also hold it. To remove it: rm {path}"));
    }
}

fn show_history(repo: &Repo, sought: &SoughtWords, words: &str) {
    let HoldingCommits { commits, on_remote, is_cut } = match forget::find_holding_commits(repo, sought) {
        Ok(found) => found,
        Err(error) => return complain(&format!("I couldn't search git's history: {error}.")),
    };
    if commits.is_empty() {
        return complain("Git's history doesn't hold these words.");
    }
    let ids: Vec<String> = commits.iter().map(|commit| commit.id.to_string().chars().take(8).collect()).collect();
    let cut = if is_cut { " (I searched only the newest)" } else { "" };
    complain(&format!(
        "Git's history still holds it, in {}{cut}: {}.",
        format_count(commits.len(), "commit"),
        format_names(&ids)
    ));
    match (repo.has_remote(), on_remote) {
        (false, _) => complain("There is no remote."),
        (true, 0) => complain("The remote had none of them when I last checked."),
        (true, n) => complain(&format!(
            "The remote had {n} of them when I last checked. Other clones, forks and its own caches may have them, too."
        )),
    }
    let words = reveille_base::words::quote_for_shell(Path::new(words));
    complain(&format!(
        "`wake memory forget {words} --purge` removes it there, too. {}",
        purge::describe_consequences(commits.len())
    ));
}
