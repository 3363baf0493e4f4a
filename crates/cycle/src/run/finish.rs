//! The end of a cycle: its entry in the episodic memory, its one commit, then delivery, in this order. Slow work comes after all answers,
//! and only committed effects are reported.

use reveille_base::{types::ChatRef, words};
use reveille_git as repo;
use reveille_git::{HOLDS_SECRET, Oid, Parked, Parking, Publish, Published, Repo, RepoError};
use reveille_memory as memory;
use reveille_memory::{episodic, others, outside, view};
use reveille_store::{CycleEnd, CycleState, HEAD_SEEN, NO_MODEL, StagedFile};
use reveille_tools::Documents;

use crate::{
    context::{Reply, WakeError},
    decide::{machine::Cycle, merge::merge_texts, verify::Account},
    look::observe,
    maintain::{alarms, sync},
    plan_file::PlanFile,
    run::record::recordings,
    session::{Ending, Session},
};

/// Writes the entry, commits, and ends the cycle.
pub(crate) async fn run(session: &mut Session<'_>, repo: &Repo, mut ending: Ending) -> Result<(), WakeError> {
    let repairs = session.store.maintenance().unnoted_repairs()?;
    ending.account.notes.extend(repairs.iter().map(|(_, what)| format_repair(what)));
    note_damaged_files(repo, &mut ending);
    let staged = with_entry(session, repo, &ending)?;
    let message = build_commit_message(session, &ending)?;
    let (mut writable, mut damaged) = (Vec::new(), Vec::new());
    for change in to_changes(&staged).into_iter().chain(ending.removed.iter().cloned()) {
        match repo.check_writable(&change.path) {
            Ok(()) => writable.push(change),
            Err(error) if error.is_file_fault() => damaged.push(change),
            Err(error) => return Err(error.into()),
        }
    }
    // Parking comes first, because after the commit a resumption only ends the cycle.
    park_damaged_files(session, repo, &ending, &damaged)?;
    let redactor = session.context.redactor;
    let publish = Publish {
        changes: &writable,
        message: &message,
        now: session.now(),
        merge: &merge_texts,
        is_secret: &|text| redactor.contains_secret(text),
    };
    let published = repo.publish(&publish);
    let commit = match published {
        Ok(published) => {
            report_publication(session, &published)?;
            published.commit.to_string()
        }
        Err(RepoError::Unfinished { commit, source }) => {
            session.report.notes.push(format!("Commit {commit} is made; its files follow at the next wake: {source}"));
            commit.to_string()
        }
        Err(
            error @ (RepoError::NotOnBranch { .. }
            | RepoError::Locked { .. }
            | RepoError::Moved
            | RepoError::Behind { .. }
            | RepoError::UnsafePath { .. }),
        ) => park_work(session, repo, &ending, &publish, &error)?,
        Err(error) => return Err(error.into()),
    };
    let ids: Vec<i64> = repairs.iter().map(|(id, _)| *id).collect();
    let head_seen = find_seen_commit(session, repo, ending.head_shown.as_deref())?;
    let recording = recordings::record_cycle(session, &ending.cycle, &ending.messages)?;
    let end = CycleEnd {
        commit_id: Some(&commit),
        recording: recording.as_ref(),
        handled: &ending.handled,
        head_seen: head_seen.as_deref(),
        repairs: &ids,
        has_copies: session.has_copies(&ending.cycle.id),
        ..CycleEnd::new(CycleState::Done)
    };
    session.store.cycles_mut().end_cycle(&ending.cycle.id, &end)?;
    session.note_clean(&ending.cycle.id)?;
    close_cycle(session, &commit, &ending.plan_file).await
}

/// Ends a cycle whose commit was made before the interruption.
pub(crate) async fn conclude_cycle(
    session: &mut Session<'_>,
    repo: &Repo,
    state: &Cycle,
    cycle_id: &str,
    commit: repo::Oid,
    plan_file: &PlanFile,
) -> Result<(), WakeError> {
    let repairs = list_mentioned_repairs(session, &repo.history().read_message(commit)?)?;
    let commit = &commit.to_string();
    let head_seen = find_seen_commit(session, repo, state.head_shown.as_deref())?;
    let recording = match session.store.cycles().find_cycle(cycle_id)? {
        Some(row) => recordings::record_cycle(session, &row.cycle, &state.messages)?,
        None => None,
    };
    let end = CycleEnd {
        commit_id: Some(commit),
        recording: recording.as_ref(),
        handled: &state.handles,
        head_seen: head_seen.as_deref(),
        repairs: &repairs,
        has_copies: session.has_copies(cycle_id),
        ..CycleEnd::new(CycleState::Done)
    };
    session.store.cycles_mut().end_cycle(cycle_id, &end)?;
    session.note_clean(cycle_id)?;
    close_cycle(session, commit, plan_file).await
}

/// Returns the repairs mentioned in our commit message. Later repairs remain to be reported.
fn list_mentioned_repairs(session: &Session<'_>, message: &str) -> Result<Vec<i64>, WakeError> {
    let is_told = |what: &str| {
        let alone = Account { notes: vec![format_repair(what)], ..Account::default() };
        let alone = session.context.redactor.redact(&alone.commit_message());
        alone.lines().last().is_some_and(|line| message.lines().any(|told| told == line))
    };
    let repairs = session.store.maintenance().unnoted_repairs()?;
    Ok(repairs.into_iter().filter(|(_, what)| is_told(what)).map(|(id, _)| id).collect())
}

async fn close_cycle(session: &mut Session<'_>, commit: &str, plan_file: &PlanFile) -> Result<(), WakeError> {
    session.report.commit = Some(commit.to_owned());
    session.remove_cycle_from_lock();
    sync::deliver(session).await?;
    session.remove_plan_file(plan_file);
    Ok(())
}

/// Returns the last seen commit after the end of a cycle that was shown commits up to `head_shown`. A person's commits during the cycle
/// were not shown and stay a reason; commits that other cycles saw meanwhile stay seen.
pub(crate) fn find_seen_commit(
    session: &Session<'_>,
    repo: &Repo,
    head_shown: Option<&str>,
) -> Result<Option<String>, WakeError> {
    let seen = observe::find_current_seen_head(&session.store, repo)?;
    // A lost commit says nothing about later ones.
    let is_behind = |shown: &Oid| seen.is_some_and(|seen| repo.contains(seen, *shown).unwrap_or(false));
    let shown = head_shown.and_then(|head| Oid::from_str(head).ok()).filter(|shown| !is_behind(shown));
    let seen = shown.or(seen);
    let is_all_seen = match seen {
        Some(seen) => observe::list_person_commits_since(repo, seen)?.is_empty(),
        None => true,
    };
    if is_all_seen { observe::read_head(repo) } else { Ok(seen.map(|seen| seen.to_string())) }
}

/// Marks all commits so far as seen, so that none is a reason any more.
pub(crate) fn mark_head_as_seen(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    if let Some(head) = repo.head()? {
        session.store.maintenance_mut().set_handled_value(HEAD_SEEN, &head.to_string())?;
    }
    Ok(())
}

/// Returns the staged files with the wake's entry, and with the archive if the log has become too long.
fn with_entry(session: &Session<'_>, repo: &Repo, ending: &Ending) -> Result<Vec<StagedFile>, WakeError> {
    let mut documents = Documents::new(repo.root(), ending.staged.clone());
    let local = session.now().with_timezone(&session.context.config.timezone);
    let redactor = session.context.redactor;
    let foreign = view::foreign_chat(ending.cycle.chat, session.context.config.owner_chat);
    let has_read_others = session.store.outbox().find_cycle_taints(&ending.cycle.id)?.is_some();
    // Text from outside within an error is untrusted too.
    let (of_others, own): (Vec<_>, Vec<_>) = ending
        .account
        .episodic_lines(&ending.cycle.reasons)
        .into_iter()
        .map(|(line, is_of_others)| {
            let line = redactor.redact(&words::one_line(&line));
            (outside::strip_marks(&line).into_owned(), is_of_others || outside::describe_origins(&line).is_some())
        })
        .partition(|(_, is_of_others)| *is_of_others || has_read_others && ending.account.own_receipts.is_none());
    let mut log = documents.text(memory::EPISODIC_MEMORY);
    // fault: marked-wake-did-stands
    for (lines, mark) in [(own, others::OWN_MARK), (of_others, others::TAINTED_MARK)] {
        let lines: Vec<&str> = lines.iter().map(|(line, _)| line.as_str()).collect();
        if !lines.is_empty() {
            let wake = format!("{}{}{mark}", ending.cycle.id, view::format_origin(foreign));
            log = episodic::append_entry(&log, local.date_naive(), local.time(), &lines, &wake);
        }
    }
    let (log, archived) = episodic::archive(&log, episodic::MAX_LOG_LINES).unwrap_or((log, Vec::new()));
    let mut files = vec![(memory::EPISODIC_MEMORY.to_owned(), log)];
    for (path, days) in archived {
        let text = episodic::append_days(&documents.text(&path), &days);
        files.push((path, text));
    }
    for (path, content) in files {
        if let reveille_store::Change::File(file) = documents.stage(&path, content) {
            documents.apply(&file);
        }
    }
    crate::context::check_readable(&documents)?;
    Ok(documents.list_staged_files())
}

fn build_commit_message(session: &Session<'_>, ending: &Ending) -> Result<String, WakeError> {
    let spent = session.store.ledger().sum_cycle_cost(&ending.cycle.id)?;
    let row = session.store.cycles().find_cycle(&ending.cycle.id)?;
    let model = row.map_or_else(|| NO_MODEL.to_owned(), |row| row.cycle.model);
    let model = ending.models_before.iter().chain([&model]).cloned().collect::<Vec<_>>().join(", ");
    let messages: Vec<String> = ending.messages.iter().map(i64::to_string).collect();
    let tokens = spent.tokens;
    let tokens = format!(
        "in={} out={} cache-read={} cache-write={}",
        tokens.input, tokens.output, tokens.cache_read, tokens.cache_write
    );
    let cost = format!("{:.4}", spent.cost_usd);
    let message = session.context.redactor.redact(&outside::strip_marks(&ending.account.commit_message()));
    let messages = if messages.is_empty() { "none".to_owned() } else { messages.join(",") };
    let mut trailers = vec![
        ("Wake-Id", ending.cycle.id.as_str()),
        ("Trigger", session.trigger),
        ("Messages", &messages),
        ("Model", &model),
        ("Tokens", &tokens),
        ("Cost-USD", &cost),
    ];
    trailers.extend(ending.undoes.as_deref().map(|wake| ("Undoes", wake)));
    Ok(repo::append_trailers(&message, &trailers))
}

fn report_publication(session: &mut Session<'_>, published: &Published) -> Result<(), WakeError> {
    for path in &published.merged {
        session.report.notes.push(format!("{path} was edited while I worked; it now has both versions."));
    }
    for left in &published.left_alone {
        alarms::report_refused_file(session, left)?;
        session.report.notes.push(format!("{} was written but not committed: it {}", left.path, left.why));
    }
    Ok(())
}

/// Notes in the wake's account unwritable files.
fn note_damaged_files(repo: &Repo, ending: &mut Ending) {
    let paths = ending.staged.iter().map(|file| file.path.as_str());
    for path in paths.chain([memory::EPISODIC_MEMORY]) {
        if let Err(error) = repo.check_writable(path)
            && error.is_file_fault()
        {
            ending.account.notes.push(format!("Not written: {error}."));
        }
    }
}

/// Parks changes to unwritable files on a separate branch. The person is told once per day and file.
fn park_damaged_files(
    session: &mut Session<'_>,
    repo: &Repo,
    ending: &Ending,
    damaged: &[repo::FileChange],
) -> Result<(), WakeError> {
    if damaged.is_empty() {
        return Ok(());
    }
    let (id, now, redactor) = (&ending.cycle.id, session.now(), session.context.redactor);
    let publish = Publish {
        changes: damaged,
        // Without trailers: if a person merges it, it must not count as the wake's commit.
        message: &format!("What the wake {id} could not write\n"),
        now,
        merge: &merge_texts,
        is_secret: &|text| redactor.contains_secret(text),
    };
    let Parked { branch, .. } = repo.parked_work().park(&format!("unwritten/{id}"), &publish, Parking::ForAPerson)?;
    let today = now.with_timezone(&session.context.config.timezone).date_naive();
    for change in damaged {
        let why = repo.check_writable(&change.path).err().map(|error| error.to_string());
        let why = why.unwrap_or_else(|| outside::name(&change.path));
        let text = format!(
            "I couldn't write to my memory: {why}. The file is as you left it. What I wanted to write is kept on the branch \
             `{branch}`. Please correct the file; `git log -p` shows what it was."
        );
        session.report.notes.push(text.clone());
        session.alarm(&format!("damaged/{}/{today}", change.path), text)?;
    }
    Ok(())
}

/// Parks work that can't be committed at the current HEAD on a separate branch until it can, and tells the person.
fn park_work(
    session: &mut Session<'_>,
    repo: &Repo,
    ending: &Ending,
    publish: &Publish<'_>,
    error: &RepoError,
) -> Result<String, WakeError> {
    let is_persons = matches!(error, RepoError::UnsafePath { .. });
    let parking = if is_persons { Parking::ForAPerson } else { Parking::UntilHeadIsBack };
    let parked = repo.parked_work().park(&format!("parked/{}", ending.cycle.id), publish, parking)?;
    for path in &parked.left_out {
        session.report.notes.push(format!("{path} was not kept on {}: it {HOLDS_SECRET}", parked.branch));
    }
    session.report.notes.push(format!("What this wake wrote is kept on the branch {}: {error}", parked.branch));
    report_parked_branch(session, repo, &parked.branch, ending.cycle.chat, &error.to_string())?;
    Ok(parked.commit.to_string())
}

/// Tells the person about a parked branch and its cause, once for all parked work until it can be taken in.
pub(crate) fn report_parked_branch(
    session: &mut Session<'_>,
    repo: &Repo,
    branch: &str,
    chat: Option<ChatRef>,
    why: &str,
) -> Result<(), WakeError> {
    let waiting = repo.parked_work().list_parked_branches()?;
    let is_waiting = waiting.iter().any(|(waiting, _)| waiting == branch);
    let (key, next) = if is_waiting {
        let next = format!(
            "Until then I keep what I write on separate branches, which I can't read: `{branch}` is the first. I'll bring \
             them in afterwards; `git branch -D {branch}` drops this one."
        );
        (waiting.first().map_or(branch, |(first, _)| first), next)
    } else {
        let main = repo.branch();
        let next = format!(
            "What I wrote just now is kept on the branch `{branch}`; `git merge {branch}` on `{main}` brings it in."
        );
        (branch, next)
    };
    let text = format!("I couldn't save to my memory: {why}. {next}");
    if session.alarm(key, text.clone())? {
        session.report.replies.push(Reply { chat: chat.unwrap_or(session.context.config.owner_chat), text });
    }
    Ok(())
}

/// The account's sentence about a repair.
fn format_repair(what: &str) -> String {
    format!("Repaired: {what}")
}

/// Converts staged files to the repository's changes.
pub(crate) fn to_changes(staged: &[StagedFile]) -> Vec<repo::FileChange> {
    staged
        .iter()
        .map(|file| repo::FileChange {
            path: file.path.clone(),
            base: file.base.clone(),
            content: Some(file.content.clone()),
        })
        .collect()
}
