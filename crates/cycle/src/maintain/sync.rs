//! What is looked after without a model: delivering, pushing, fetching. Each is bounded in time and backs off by itself, so
//! that a dead remote or a dead network never holds up an answer.

use std::{cell::OnceCell, time::Duration};

use chrono::TimeDelta;

use reveille_channels::delivery;
use reveille_git::{
    BroughtIn, Integrated, MAINTAIN_TIMEOUT, Patience, PersonEdits, Pushed, REMOTE_TIMEOUT, RemoteError, Repo,
    RepoError,
};
use reveille_memory::outside;
use reveille_store::UpkeepKind;

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

/// How long a fetch may take that somebody's answer waits for. A remote that is slower is fetched from as upkeep.
const PULL_BOUND: Duration = Duration::from_secs(5);
/// Files that are taken in before an answer at most: more of them would delay it.
const FEW: usize = 200;
/// Housekeeping that didn't help isn't done again for so long: what is loose then is young and reached by nothing.
const MAINTAIN_EVERY: TimeDelta = TimeDelta::days(1);
/// After so many failures in a row a person is told that something can't be brought in: the first may pass by itself.
const TELL_AFTER: u32 = 3;

/// Whether somebody waits for what comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Urgency {
    /// An answer may wait for it: what takes long is put off.
    BeforeAnswer,
    /// Nobody waits: it is done whole, and gives way to whatever comes.
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

/// Delivers what is written. Says whether there was any.
pub(crate) async fn upkeep(session: &mut Session<'_>) -> Result<bool, WakeError> {
    let has_deliverable = session.context.channel.is_some() && session.store.has_deliverable(session.now())?;
    if !has_deliverable && !observe::is_owner_to_be_sent(&session.store, session.context)? {
        return Ok(false);
    }
    deliver(session).await?;
    Ok(true)
}

/// What may take long, when nothing else is to be done: what was put off for answers, then what is due of fetching and pushing.
/// All obey their back-offs, and give way to whatever comes. Says whether anything was done.
///
/// The caller has just looked and found nothing due; see [`is_wanted`].
pub(crate) fn after_answers(session: &mut Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    if session.is_to_end()?.is_some() {
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
    // What was taken in may be something to work on: that goes along then.
    if may_ask_remote(session)?
        && !(has_worked && is_wanted(session, repo)?)
        && session.sharing.may_push()
        && observe::is_push_due(&session.store, repo, session.now())?
    {
        say_saving(session);
        push(session, repo)?;
        has_worked = true;
    }
    Ok(has_worked)
}

/// A remote that failed when it was last asked is left to the wakes that nobody waits for.
fn may_ask_remote(session: &Session<'_>) -> Result<bool, WakeError> {
    let failures = |kind| Ok::<_, WakeError>(session.store.upkeep(kind)?.failures);
    let is_awaited = matches!(session.context.terminal, Terminal::AtEnd);
    Ok(!is_awaited || failures(UpkeepKind::Fetch)? + failures(UpkeepKind::Push)? == 0)
}

fn say_saving(session: &Session<'_>) {
    if let Terminal::AtOnce(screen) = session.context.terminal {
        screen.saving();
    }
}

/// Whether there is anything to work on, or all work is to end.
pub(crate) fn is_wanted(session: &Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    if *session.context.stop.borrow() || session.is_stopped()? {
        return Ok(true);
    }
    let observation = Situation::look(&session.store, Some(repo), session.context)?;
    let due = orient::due(&observation);
    Ok(orient::choose(due, &observation.model, session.context.config.owner_chat).is_some())
}

/// Whether somebody waits for what is due: it is no work of its own.
pub(crate) fn is_somebody_waiting(session: &Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    if *session.context.stop.borrow() || session.is_stopped()? {
        return Ok(true);
    }
    let observation = Situation::look(&session.store, Some(repo), session.context)?;
    let due = orient::due(&observation);
    let work = orient::choose(due, &observation.model, session.context.config.owner_chat);
    Ok(work.is_some_and(|work| !orient::is_own(&work, &observation.open_cycles)))
}

/// Shows and sends what may be. What can't be waits in the outbox.
pub(crate) async fn deliver(session: &mut Session<'_>) -> Result<(), WakeError> {
    if let Terminal::AtOnce(screen) = session.context.terminal
        && let Err(error) = screen.show(&mut session.store)
    {
        // It is shown once more at the end, where a failure is told.
        tracing::warn!(%error, "not all could be shown yet");
    }
    if let Some(owner) = session.context.instead_of_terminal() {
        session.store.send_to_owner(owner)?;
    }
    if let Some(channel) = session.context.channel {
        let (clock, redactor) = (session.context.clock, session.context.redactor);
        let sharing = &session.sharing;
        let may_send = || !sharing.is_lost();
        let delivered =
            delivery::deliver_in_wake(&mut session.store, channel, &may_send, &session.me, clock, redactor).await?;
        tracing::info!(sent = delivered.sent, left = delivered.left, "delivered");
    }
    Ok(())
}

/// Whether somebody waits for an answer that the present model can give.
pub(crate) fn is_waited_for(session: &Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
    let due = orient::due(&Situation::look(&session.store, Some(repo), session.context)?);
    Ok(due.iter().any(|reason| matches!(reason, Reason::Messages { .. })))
}

/// Housekeeping, if it is time for it: the last thing of a wake that worked, when all is said, sent and committed. An idle
/// wake does none, so that it writes nothing.
pub(crate) fn maintain(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    let now = session.now();
    let upkeep = session.store.upkeep(UpkeepKind::Maintain)?;
    let is_time = upkeep.last_ok_at.is_none_or(|at| now.signed_duration_since(at) >= MAINTAIN_EVERY);
    if !is_time || !upkeep.may_try(now) || !repo.stock().is_large() || is_waited_for(session, repo)? {
        return Ok(());
    }
    match repo.maintain(MAINTAIN_TIMEOUT) {
        Ok(()) => Ok(session.store.upkeep_ok(UpkeepKind::Maintain)?),
        Err(error) => {
            let why = session.context.redactor.redact(&error.to_string());
            tracing::warn!(%why, "housekeeping did not work");
            session.store.upkeep_failed(UpkeepKind::Maintain, &why, Some(MAINTAIN_EVERY))?;
            Ok(())
        }
    }
}

/// Brings in what was parked while HEAD was elsewhere, before the memory is read. Says whether there was any.
pub(crate) fn bring_in_parked(session: &mut Session<'_>, repo: &Repo) -> Result<bool, WakeError> {
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
    match repo.bring_in(now, &merge_texts) {
        Ok(brought) => {
            for BroughtIn { branch, conflicts } in brought {
                session.report.notes.push(format!("Brought in {branch}."));
                session.report.notes.extend(conflicts.iter().map(both_changed));
            }
            session.store.upkeep_recovered(UpkeepKind::Parked)?;
        }
        Err(error) => {
            let why = session.context.redactor.redact(&error.to_string());
            tracing::warn!(%why, "parked work could not be brought in");
            let failed = session.store.upkeep_failed(UpkeepKind::Parked, &why, None)?;
            let first = repo.parked()?.into_iter().next().filter(|_| failed.failures == TELL_AFTER);
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

/// Takes in what the remote has, once a wake, before the memory is read: if it was well when it was last asked. Somebody may wait for
/// an answer; any other remote is asked after that. Edits that a person hasn't committed are taken in first, whatever the remote says.
pub(crate) fn pull(session: &mut Session<'_>, repo: &Repo, account: &mut Account) -> Result<(), WakeError> {
    let last = session.store.upkeep(UpkeepKind::Fetch)?;
    let is_well = last.last_ok_at.is_some() && last.failures == 0;
    let may_fetch = repo.has_remote() && !session.sync.has_fetched && is_well;
    if may_fetch && fetch(session, repo, account, Urgency::BeforeAnswer)? {
        return Ok(());
    }
    take_in_person_edits(session, repo, account)
}

/// Asks the remote, and takes in a person's edits and what it has. Says whether it did so: not while all is stopped.
fn fetch(session: &mut Session<'_>, repo: &Repo, account: &mut Account, urgency: Urgency) -> Result<bool, WakeError> {
    if session.is_stopped()? {
        return Ok(false);
    }
    session.sync.has_fetched = true;
    // Before an answer it is over soon by itself.
    let is_over = || urgency == Urgency::Unhurried && is_wanted(session, repo).unwrap_or(true);
    let edits = OnceCell::new();
    let meanwhile = || {
        // Before what the remote has: they are then merged like any commit, and never in the way.
        edits.get_or_init(|| commit_person_edits(session, repo, urgency));
        // Before an answer, what comes next needs all three.
        if urgency == Urgency::BeforeAnswer {
            session.context.redactor.get_ready();
            session.tooling();
            index::keep_current(session, repo);
        }
    };
    let fetched = repo.fetch(Patience { timeout: urgency.fetch_bound(), is_over: &is_over, meanwhile: &meanwhile });
    let edits = edits.into_inner().unwrap_or_else(|| commit_person_edits(session, repo, urgency));
    note_person_edits(session, account, edits)?;
    match fetched {
        Ok(()) => integrate(session, repo, account, urgency)?,
        Err(error) => remote_trouble(session, repo, UpkeepKind::Fetch, &error)?,
    }
    Ok(true)
}

/// Brings our branch and the remote's together; nothing of either side is thrown away. The caller has taken a person's
/// edits in.
fn integrate(session: &mut Session<'_>, repo: &Repo, account: &mut Account, urgency: Urgency) -> Result<(), WakeError> {
    // What is wrong with it shows when it is taken in.
    if session.sync.has_put_off || urgency == Urgency::BeforeAnswer && repo.has_much_to_take_in(FEW).unwrap_or(false) {
        session.sync.has_put_off_commits = true;
        return Ok(());
    }
    match repo.integrate(session.now(), &merge_texts) {
        Ok(Integrated::Merged { conflicts, .. }) => {
            account.notes.push("Merged with the remote.".to_owned());
            account.notes.extend(conflicts.iter().map(both_changed));
            alarms::tell_unsettled(session, repo, &conflicts)?;
        }
        Ok(Integrated::RewoundRemote { rescue_ref }) => alarms::alarm_of_rewound(session, repo, &rescue_ref)?,
        Ok(Integrated::PurgedElsewhere) => alarms::alarm_of_purged(session, repo)?,
        // A merge that was cut off before it was told of.
        Ok(_) => alarms::tell_unsettled(session, repo, &[])?,
        // The one is told where the work is parked for it, the other is over in a moment.
        Err(error @ (RepoError::NotOnBranch { .. } | RepoError::Locked { .. })) => {
            account.notes.push(left_out(&error.to_string()));
        }
        // Taken in, but for files here: the next wake finishes that.
        Err(error @ RepoError::Unfinished { .. }) => return Err(error.into()),
        Err(error) if error.is_the_machines() => return Err(error.into()),
        Err(error) => return leave_out(session, repo, account, &error),
    }
    Ok(session.store.upkeep_ok(UpkeepKind::Fetch)?)
}

/// What the remote has stays where it was fetched to, for as long as something is in the way: no answer waits for that.
fn leave_out(
    session: &mut Session<'_>,
    repo: &Repo,
    account: &mut Account,
    error: &RepoError,
) -> Result<(), WakeError> {
    let why = session.context.redactor.redact(&error.to_string());
    tracing::warn!(%why, "the remote's commits are not taken in");
    account.notes.push(left_out(&why));
    let failures = session.store.upkeep_failed(UpkeepKind::Fetch, &why, None)?.failures;
    let key = match error {
        RepoError::Unrelated => return alarms::alarm_of_unrelated(session, repo),
        RepoError::Blocked { path, .. } => session.context.redactor.redact(path),
        // The rest may pass by itself.
        _ if failures >= TELL_AFTER => String::new(),
        _ => return Ok(()),
    };
    let week = session.now().with_timezone(&session.context.config.timezone).format("%G-W%V");
    let text = format!(
        "I can't take in what the remote of my memory has: {why}. Nothing is lost: its commits wait here, in {}. I can still \
         answer and save, and I'll keep trying.",
        repo.root().display()
    );
    session.alarm(&format!("left-out/{key}/{week}"), text).map(drop)
}

/// Sends our commits. A remote that moved, or that somebody else is moving, is taken in first, once.
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
            Ok(session.store.upkeep_ok(UpkeepKind::Push)?)
        }
        Err(error) => remote_trouble(session, repo, UpkeepKind::Push, &error),
    }
}

fn push_once(session: &Session<'_>, repo: &Repo) -> Result<Pushed, RemoteError> {
    let is_over = || is_wanted(session, repo).unwrap_or(true);
    // All is answered, and what was done is committed.
    let meanwhile = || {
        index::keep_current(session, repo);
        session.sync.is_indexed.set(true);
    };
    let patience = Patience { timeout: REMOTE_TIMEOUT, is_over: &is_over, meanwhile: &meanwhile };
    let secrets_in = |text: &str| session.context.redactor.secrets_in(text);
    match &session.sharing {
        Sharing::Unshared => repo.push(patience, &secrets_in),
        Sharing::Held(keeper) => keeper.lease().push(&mut |beside| repo.push_beside(patience, &secrets_in, beside)),
        Sharing::Cut { .. } => Ok(Pushed::UpToDate),
    }
}

/// A remote that can't be used is no error of the wake: it is noted and tried again later. What only a person can mend
/// is told once.
fn remote_trouble(
    session: &mut Session<'_>,
    repo: &Repo,
    kind: UpkeepKind,
    error: &RemoteError,
) -> Result<(), WakeError> {
    // Something came up here, which says little of the remote: a fetch waits a little once, and nothing adds up.
    let is_known = || Ok::<_, WakeError>(session.store.upkeep(kind)?.failures > 0);
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
    let upkeep = session.store.upkeep_failed(kind, &why, None)?;
    // Nor would it answer the pull before an answer.
    if kind == UpkeepKind::Push && matches!(error, RemoteError::Unreachable { .. } | RemoteError::TimedOut) {
        session.store.upkeep_failed(UpkeepKind::Fetch, &why, None)?;
    }
    if let RemoteError::Rewound { rescue_ref } = error {
        return alarms::alarm_of_rewound(session, repo, rescue_ref);
    }
    if let RemoteError::HoldsSecret { commit, .. } = error {
        return alarms::alarm_of_secret(session, repo, commit, &why);
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

/// Commits a person's uncommitted edits as theirs, before anything of the wake's own; many of them only when nobody waits. What
/// a cycle writes meanwhile goes beside them: publishing looks at each file for itself.
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

/// What became of a person's edits, in the wake's account.
fn note_person_edits(
    session: &mut Session<'_>,
    account: &mut Account,
    edits: Result<PersonEdits, RepoError>,
) -> Result<(), WakeError> {
    match edits {
        Ok(edits) => {
            session.sync.has_put_off |= edits.put_off;
            for left in edits.left_alone {
                alarms::tell_refused(session, &left)?;
                // Without a mark: it would withhold each entry for as long as the file lies there.
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
    format!("Could not take in the remote's commits: {why}")
}

fn both_changed(path: &String) -> String {
    format!("Both sides had changed {}; both are kept in it.", outside::name(path))
}
