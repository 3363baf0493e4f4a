//! Upkeep without a model: delivering, pushing, fetching. Each has a time limit and its own back-off, so that a dead remote or network
//! never delays an answer.

use std::{cell::OnceCell, time::Duration};

use chrono::TimeDelta;

use reveille_base::types::ChatRef;
use reveille_channels::delivery;
use reveille_config::{Config, TelegramRich};
use reveille_git::{
    BroughtIn, Integrated, MAINTAIN_TIMEOUT, Patience, PersonEdits, Pushed, REMOTE_TIMEOUT, RemoteError, Repo,
    RepoError,
};
use reveille_memory::outside;
use reveille_store::{RichConsent, RichRule, UpkeepKind};

use crate::{
    context::{Terminal, WakeError},
    decide::{
        merge::merge_texts,
        orient,
        situation::{Reason, Situation},
        verify::Account,
    },
    look::observe,
    maintain::{alarms, index},
    session::Session,
    sharing::Sharing,
};

/// The maximum duration of a fetch before an answer. A slower remote is fetched from as upkeep.
const PULL_BOUND: Duration = Duration::from_secs(5);
/// The maximum number of edited files committed before an answer, since more would delay it.
const FEW: usize = 200;
/// The pause after ineffective housekeeping: the remaining loose objects are too young to be removed.
const MAINTAIN_EVERY: TimeDelta = TimeDelta::days(1);
/// The number of consecutive failures before a person is told that commits can't be taken in, since the first may be temporary.
const TELL_AFTER: u32 = 3;

/// The urgency of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgency {
    /// An answer may wait for the operation: slow work is put off.
    BeforeAnswer,
    /// No person waits: the operation is complete, and gives way to new work.
    Unhurried,
}

impl Urgency {
    fn fetch_bound(self) -> Duration {
        match self {
            Self::BeforeAnswer => PULL_BOUND,
            Self::Unhurried => REMOTE_TIMEOUT,
        }
    }
}

/// Delivers written messages. Returns `true` if there were any.
pub(crate) async fn deliver_pending(session: &mut Session<'_>) -> Result<bool, WakeError> {
    let has_deliverable = session.context.channel.is_some() && session.store.outbox().has_deliverable(session.now())?;
    if !has_deliverable && !observe::has_texts_for_owner(&session.store, session.context)? {
        return Ok(false);
    }
    deliver(session).await?;
    Ok(true)
}

/// Does slow work when nothing else is due: work put off for answers, then due fetching and pushing. All obey their back-offs, and give way
/// to new work. Returns `true` if anything was done.
///
/// The caller has just found nothing due; see [`has_due_work`].
pub(crate) fn run_slow_work(session: &mut Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    if session.find_interrupt()?.is_some() {
        return Ok(false);
    }
    let mut has_worked = false;
    let mut account = Account::default();
    if std::mem::take(&mut session.sync.has_put_off) {
        take_in_edits(session, repo, &mut account, Urgency::Unhurried)?;
        has_worked = true;
    }
    if std::mem::take(&mut session.sync.has_put_off_commits) {
        take_in_edits(session, repo, &mut account, Urgency::Unhurried)?;
        integrate(session, repo, &mut account, Urgency::Unhurried)?;
        has_worked = true;
    }
    if may_ask_remote(session)? && observe::is_fetch_due(&session.store, repo.has_remote(), session.context)? {
        say_saving(session);
        fetch(session, repo, &mut account, Urgency::Unhurried)?;
        has_worked = true;
    }
    session.report.notes.extend(account.notes);
    // Work on newly fetched changes is committed first, so that one push carries everything.
    if may_ask_remote(session)?
        && !(has_worked && has_due_work(session, repo)?)
        && session.sharing.may_push()
        && observe::is_push_due(&session.store, repo, session.now())?
    {
        say_saving(session);
        push(session, repo)?;
        has_worked = true;
    }
    Ok(has_worked)
}

/// Returns `false` for a remote that failed last time while a person waits. Wakes without a waiting person ask it again.
fn may_ask_remote(session: &Session<'_>) -> Result<bool, WakeError> {
    let failures = |kind| Ok::<_, WakeError>(session.store.maintenance().read_upkeep(kind)?.failures);
    let is_awaited = matches!(session.context.terminal, Terminal::AtEnd);
    Ok(!is_awaited || failures(UpkeepKind::Fetch)? + failures(UpkeepKind::Push)? == 0)
}

fn say_saving(session: &Session<'_>) {
    if let Terminal::AtOnce(screen) = session.context.terminal {
        screen.announce_saving();
    }
}

/// Returns `true` if there is due work, or all work must end.
pub(crate) fn has_due_work(session: &Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    if *session.context.stop.borrow() || session.is_stopped()? {
        return Ok(true);
    }
    let observation = Situation::read(&session.store, Some(repo), session.context)?;
    let due = orient::list_due_reasons(&observation);
    Ok(orient::choose(due, &observation.model, session.context.config.owner_chat).is_some())
}

/// Returns `true` if a person waits for due work, which isn't a background job.
pub(crate) fn is_somebody_waiting(session: &Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    if *session.context.stop.borrow() || session.is_stopped()? {
        return Ok(true);
    }
    let observation = Situation::read(&session.store, Some(repo), session.context)?;
    let due = orient::list_due_reasons(&observation);
    let work = orient::choose(due, &observation.model, session.context.config.owner_chat);
    Ok(work.is_some_and(|work| !orient::is_background_job(&work, &observation.open_cycles)))
}

/// Shows and sends as many messages as possible. The rest waits in the outbox.
pub(crate) async fn deliver(session: &mut Session<'_>) -> Result<(), WakeError> {
    if let Terminal::AtOnce(screen) = session.context.terminal
        && let Err(error) = screen.show(session.store.unfenced())
    {
        // The text is shown again at the end, and a failure is reported there.
        tracing::warn!(%error, "not all could be shown yet");
    }
    if let Some(owner) = session.context.find_terminal_fallback() {
        session.store.terminals_mut().send_to_owner(owner)?;
    }
    if let Some(channel) = session.context.channel {
        let (clock, redactor) = (session.context.clock, session.context.redactor);
        let sharing = &session.sharing;
        let may_send = || !sharing.is_lost();
        let rich = find_rich_rule(session.context.config);
        let delivered =
            delivery::deliver_in_wake(&mut session.store, channel, (&may_send, rich), &session.me, clock, redactor)
                .await?;
        tracing::info!(sent = delivered.sent, left = delivered.left, "delivered");
    }
    Ok(())
}

/// Returns the chat that may get rich messages: the owner's private chat. Others are never asked how a sample shows.
fn find_rich_rule(config: &Config) -> Option<RichRule> {
    let consent = match config.telegram_rich {
        TelegramRich::Auto => RichConsent::Sampled,
        TelegramRich::Always => RichConsent::Given,
        TelegramRich::Never => return None,
    };
    let chat = config.owner_chat;
    (chat != ChatRef::TERMINAL && !chat.is_group()).then_some(RichRule { chat, consent })
}

/// Returns `true` if a person waits for an answer that the current model can give.
pub(crate) fn is_answer_awaited(session: &Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    let due = orient::list_due_reasons(&Situation::read(&session.store, Some(repo), session.context)?);
    Ok(due.iter().any(|reason| matches!(reason, Reason::Messages { .. })))
}

/// Does housekeeping in the repository if due, as the last step of a wake that worked. An idle wake skips this, so that it writes nothing.
pub(crate) fn maintain_repo(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    let now = session.now();
    let upkeep = session.store.maintenance().read_upkeep(UpkeepKind::Maintain)?;
    let is_time = upkeep.last_ok_at.is_none_or(|at| now.signed_duration_since(at) >= MAINTAIN_EVERY);
    if !is_time
        || !upkeep.may_try(now)
        || !repo.housekeeping().count_stock().is_large()
        || is_answer_awaited(session, repo)?
    {
        return Ok(());
    }
    match repo.housekeeping().maintain(MAINTAIN_TIMEOUT) {
        Ok(()) => Ok(session.store.maintenance_mut().upkeep_ok(UpkeepKind::Maintain)?),
        Err(error) => {
            let why = session.context.redactor.redact(&error.to_string());
            tracing::warn!(%why, "housekeeping did not work");
            session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Maintain, &why, Some(MAINTAIN_EVERY))?;
            Ok(())
        }
    }
}

/// Takes in parked work before the memory is read. Returns `true` if there was any.
pub(crate) fn commit_parked_work(session: &mut Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    let now = session.now();
    if !observe::is_parked_work_due(&session.store, repo, now)? {
        return Ok(false);
    }
    let mut account = Account::default();
    take_in_person_edits(session, repo, &mut account)?;
    session.report.notes.extend(account.notes);
    if session.sync.has_put_off {
        return Ok(false);
    }
    match repo.parked_work().merge_parked_branches(now, &merge_texts) {
        Ok(brought) => {
            for BroughtIn { branch, conflicts } in brought {
                session.report.notes.push(format!("Brought in {branch}."));
                session.report.notes.extend(conflicts.iter().map(describe_merge));
            }
            session.store.maintenance_mut().record_upkeep_recovery(UpkeepKind::Parked)?;
        }
        Err(error) => {
            let why = session.context.redactor.redact(&error.to_string());
            tracing::warn!(%why, "parked work could not be brought in");
            let failed = session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Parked, &why, None)?;
            let first =
                repo.parked_work().list_parked_branches()?.into_iter().next().filter(|_| failed.failures == TELL_AFTER);
            if let Some((branch, _)) = first {
                let text = format!(
                    "What I couldn't save is still on the branch `{branch}`: {why}. I'll keep trying. `git merge {branch}` brings it in \
                     by hand, `git branch -D {branch}` drops it."
                );
                session.alarm(&format!("still-{branch}"), text)?;
            }
        }
    }
    Ok(true)
}

/// Takes in the remote's commits once per wake before the memory is read, if the remote worked last time. An answer may wait for this, so a
/// failing remote is asked later. A person's uncommitted edits are taken in anyway, and first.
pub(crate) fn pull(session: &mut Session<'_>, repo: &Repo, account: &mut Account) -> Result<(), WakeError> {
    let last = session.store.maintenance().read_upkeep(UpkeepKind::Fetch)?;
    let is_well = last.last_ok_at.is_some() && last.failures == 0;
    let may_fetch = repo.has_remote() && !session.sync.has_fetched && is_well;
    if may_fetch && fetch(session, repo, account, Urgency::BeforeAnswer)? {
        return Ok(());
    }
    take_in_person_edits(session, repo, account)
}

/// Fetches from the remote, then takes in a person's edits and the remote's commits. Returns `false` if all work is stopped.
fn fetch(session: &mut Session<'_>, repo: &Repo, account: &mut Account, urgency: Urgency) -> Result<bool, WakeError> {
    if session.is_stopped()? {
        return Ok(false);
    }
    session.sync.has_fetched = true;
    // Before an answer the fetch ends soon by itself.
    let is_over = || urgency == Urgency::Unhurried && has_due_work(session, repo).unwrap_or(true);
    let edits = OnceCell::new();
    let meanwhile = || {
        // Edits become a commit before the remote's commits come in, so they are merged like any commit and block nothing.
        edits.get_or_init(|| commit_person_edits(session, repo, urgency));
        // The next step before an answer needs all three.
        if urgency == Urgency::BeforeAnswer {
            session.context.redactor.get_ready();
            session.tooling();
            index::update_index(session, repo);
        }
    };
    let fetched =
        repo.remote().fetch(Patience { timeout: urgency.fetch_bound(), is_over: &is_over, meanwhile: &meanwhile });
    let edits = edits.into_inner().unwrap_or_else(|| commit_person_edits(session, repo, urgency));
    note_person_edits(session, account, edits)?;
    match fetched {
        Ok(()) => integrate(session, repo, account, urgency)?,
        Err(error) => record_remote_failure(session, repo, UpkeepKind::Fetch, &error)?,
    }
    Ok(true)
}

/// Merges our branch and the remote's; neither side loses anything. The caller has taken in a person's edits.
fn integrate(session: &mut Session<'_>, repo: &Repo, account: &mut Account, urgency: Urgency) -> Result<(), WakeError> {
    // An error here shows up again when the commits are taken in.
    if session.sync.has_put_off
        || urgency == Urgency::BeforeAnswer && repo.remote().has_large_fetch(FEW).unwrap_or(false)
    {
        session.sync.has_put_off_commits = true;
        return Ok(());
    }
    match repo.remote().integrate(session.now(), &merge_texts) {
        Ok(Integrated::Merged { conflicts, .. }) => {
            account.notes.push("Merged with the remote.".to_owned());
            account.notes.extend(conflicts.iter().map(describe_merge));
            alarms::report_contradictions(session, repo, &conflicts)?;
        }
        Ok(Integrated::RewoundRemote { rescue_ref }) => alarms::report_rewound_remote(session, repo, &rescue_ref)?,
        Ok(Integrated::PurgedElsewhere) => alarms::report_purged_history(session, repo)?,
        // An earlier merge may have been cut off before its report.
        Ok(_) => alarms::report_contradictions(session, repo, &[])?,
        // The first is reported when the work is parked for it; the second is over in a moment.
        Err(error @ (RepoError::NotOnBranch { .. } | RepoError::Locked { .. })) => {
            account.notes.push(left_out(&error.to_string()));
        }
        // Taken in except for some files; the next wake completes them.
        Err(error @ RepoError::Unfinished { .. }) => return Err(error.into()),
        Err(error) if error.is_machine_fault() => return Err(error.into()),
        Err(error) => return leave_out(session, repo, account, &error),
    }
    Ok(session.store.maintenance_mut().upkeep_ok(UpkeepKind::Fetch)?)
}

/// Leaves the remote's commits fetched but not merged while something is in the way. No answer waits for that.
fn leave_out(
    session: &mut Session<'_>,
    repo: &Repo,
    account: &mut Account,
    error: &RepoError,
) -> Result<(), WakeError> {
    let why = session.context.redactor.redact(&error.to_string());
    tracing::warn!(%why, "the remote's commits are not taken in");
    account.notes.push(left_out(&why));
    let failures = session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Fetch, &why, None)?.failures;
    let key = match error {
        RepoError::Unrelated => return alarms::report_unrelated_history(session, repo),
        RepoError::Blocked { path, .. } => session.context.redactor.redact(path),
        // Other errors may be temporary.
        _ if failures >= TELL_AFTER => String::new(),
        _ => return Ok(()),
    };
    let week = session.now().with_timezone(&session.context.config.timezone).format("%G-W%V");
    let text = format!(
        "I can't merge what the remote of my memory has: {why}. Nothing is lost: its commits wait here, in {}. I can still \
         answer and save, and I'll keep trying.",
        repo.root().display()
    );
    session.alarm(&format!("left-out/{key}/{week}"), text).map(drop)
}

/// Pushes our commits. If the remote has moved or is being moved, its commits are taken in first, once.
fn push(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    if !repo.has_remote() || session.is_stopped()? || !session.sharing.may_push() {
        return Ok(());
    }
    let mut pushed = push_once(session, repo);
    if matches!(pushed, Err(RemoteError::Moved | RemoteError::Locked)) {
        let mut account = Account::default();
        fetch(session, repo, &mut account, Urgency::Unhurried)?;
        session.report.notes.extend(account.notes);
        pushed = push_once(session, repo);
    }
    match pushed {
        Ok(_) => {
            session.report.pushed = true;
            Ok(session.store.maintenance_mut().upkeep_ok(UpkeepKind::Push)?)
        }
        Err(error) => record_remote_failure(session, repo, UpkeepKind::Push, &error),
    }
}

fn push_once(session: &Session<'_>, repo: &Repo) -> Result<Pushed, RemoteError> {
    let is_over = || has_due_work(session, repo).unwrap_or(true);
    // Everything is answered and committed by now.
    let meanwhile = || {
        index::update_index(session, repo);
        session.sync.is_indexed.set(true);
    };
    let patience = Patience { timeout: REMOTE_TIMEOUT, is_over: &is_over, meanwhile: &meanwhile };
    let secrets_in = |text: &str| session.context.redactor.find_secrets(text);
    match &session.sharing {
        Sharing::Unshared => repo.remote().push(patience, &secrets_in),
        Sharing::Held(keeper) => {
            keeper.lease().push(&mut |beside| repo.remote().push_with_reference(patience, &secrets_in, beside))
        }
        Sharing::Cut { .. } => Ok(Pushed::UpToDate),
    }
}

/// Records a failing remote, which doesn't fail the wake, for a later attempt. A problem that only a person can solve is reported once.
fn record_remote_failure(
    session: &mut Session<'_>,
    repo: &Repo,
    kind: UpkeepKind,
    error: &RemoteError,
) -> Result<(), WakeError> {
    // Local work interrupted the request, which says little about the remote: a fetch waits briefly once, and failures don't add up.
    let is_known = || Ok::<_, WakeError>(session.store.maintenance().read_upkeep(kind)?.failures > 0);
    // The next wake with the lease pushes.
    if matches!(error, RemoteError::LeaseLost) {
        session.report.notes.push(error.to_string());
        return Ok(());
    }
    if matches!(error, RemoteError::BrokenOff) && (kind == UpkeepKind::Push || is_known()?) {
        return Ok(());
    }
    let name = kind.as_str();
    let why = session.context.redactor.redact(&error.to_string());
    tracing::warn!(%why, "{name} did not work");
    session.report.notes.push(format!("{name}: {why}"));
    let now = session.now();
    let upkeep = session.store.maintenance_mut().record_upkeep_failure(kind, &why, None)?;
    // A fetch before an answer would fail too.
    if kind == UpkeepKind::Push && matches!(error, RemoteError::Unreachable { .. } | RemoteError::TimedOut) {
        session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Fetch, &why, None)?;
    }
    if let RemoteError::Rewound { rescue_ref } = error {
        return alarms::report_rewound_remote(session, repo, rescue_ref);
    }
    if let RemoteError::HoldsSecret { commit, .. } = error {
        return alarms::report_secret(session, repo, commit, &why);
    }
    let needs_person = matches!(error, RemoteError::Refused { .. } | RemoteError::Auth { .. });
    if needs_person && upkeep.failures == 1 {
        let today = now.date_naive();
        let text = format!(
            "I couldn't send my memory to its remote: {why}. Everything is saved here, and I'll send it as soon as I can."
        );
        session.alarm(&format!("{name}/{today}"), text)?;
    }
    Ok(())
}

/// Commits a person's uncommitted edits as theirs, before the wake's own changes. Many edits wait until no person waits. The cycle's later
/// changes go beside them, since publishing checks each file.
pub(crate) fn take_in_person_edits(
    session: &mut Session<'_>,
    repo: &Repo,
    account: &mut Account,
) -> Result<(), WakeError> {
    take_in_edits(session, repo, account, Urgency::BeforeAnswer)
}

fn take_in_edits(
    session: &mut Session<'_>,
    repo: &Repo,
    account: &mut Account,
    urgency: Urgency,
) -> Result<(), WakeError> {
    let edits = commit_person_edits(session, repo, urgency);
    note_person_edits(session, account, edits)
}

fn commit_person_edits(session: &Session<'_>, repo: &Repo, urgency: Urgency) -> Result<PersonEdits, RepoError> {
    let redactor = session.context.redactor;
    let max = if urgency == Urgency::Unhurried { usize::MAX } else { FEW };
    let is_secret = |text: &str| redactor.contains_secret(text);
    repo.commit_few_person_edits(max, session.now(), &is_secret, &merge_texts)
}

/// Records the result of taking in a person's edits in the wake's account.
fn note_person_edits(
    session: &mut Session<'_>,
    account: &mut Account,
    edits: Result<PersonEdits, RepoError>,
) -> Result<(), WakeError> {
    match edits {
        Ok(edits) => {
            session.sync.has_put_off |= edits.put_off;
            for left in edits.left_alone {
                alarms::report_refused_file(session, &left)?;
                // Without the mark for untrusted text, which would withhold each entry as long as the file exists.
                account.notes.push(format!("Left alone, not committed: {} ({})", left.path, left.why));
            }
            Ok(())
        }
        Err(error @ (RepoError::NotOnBranch { .. } | RepoError::Locked { .. } | RepoError::Behind { .. })) => {
            account.notes.push(error.to_string());
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn left_out(why: &str) -> String {
    format!("Couldn't merge the remote's commits: {why}")
}

fn describe_merge(path: &String) -> String {
    format!("Both sides had changed {}; both are kept in it.", outside::name(path))
}
