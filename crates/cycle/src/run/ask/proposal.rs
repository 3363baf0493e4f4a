//! A proposed change of the assistant's own orders, from the call to the approval.
//!
//! For the question, the change is committed on a branch that a person can inspect. Its row stores each text before and after, and the
//! figure that the change should improve. The approval applies exactly these texts, or nothing if a file has changed meanwhile. The branch
//! is deleted once the cycle is over.

use reveille_base::{
    approval_text::escape_hidden,
    words::{self, format_figure, format_stated_effect, truncate_text},
};
use reveille_git::{Parking, Publish, Repo};
use reveille_memory::{
    changes::{ChangePlace, find_change_places},
    job::job_name,
};
use reveille_store::{COMPARED_OVER, Change, NewNudge, NewOutgoing, NewProposal, OutgoingKind, Proposal, StagedFile};
use reveille_tools::{Done, Outcome, PROPOSE_CHANGE, Refusal, Registry, parse_stated_effect};

use crate::{
    context::WakeError,
    decide::{machine::ToolRequest, merge::merge_texts},
    run::{finish, record::effects::RuleEffects},
    session::{Live, Session},
};

/// The maximum length of a branch name made from a title, in characters.
const MAX_SLUG_CHARS: usize = 40;
/// The maximum length of a shown line next to a change, in characters.
const MAX_PLACE_CHARS: usize = 80;

/// Builds the proposal of a call, or the reason for refusing it. `None` if the call is no proposal.
pub(crate) fn build_proposal(
    session: &mut Session<'_>,
    live: &Live,
    registry: &Registry,
    request: &ToolRequest,
) -> Result<Option<Result<NewProposal, String>>, WakeError> {
    if request.name != PROPOSE_CHANGE {
        return Ok(None);
    }
    let done = registry.call(&request.name, &request.input, &live.world);
    crate::context::check_readable(&live.world.memory.documents)?;
    let files = match done {
        Ok(done) => extract_files(&done.changes),
        Err(refusal) => return Ok(Some(Err(refusal.to_string()))),
    };
    let now = session.now();
    if session.store.proposals().has_open_proposal(now)? {
        return Ok(Some(Err(
            "Another proposal waits for your person's answer, and only one can wait at a time. Nothing was done."
                .to_owned(),
        )));
    }
    let Some((title, effect)) = parse_stated_effect(&request.input) else {
        return Ok(Some(Err("The arguments don't fit. Nothing was done.".to_owned())));
    };
    let jobs: Vec<Option<&str>> = files.iter().map(|file| job_name(&file.path)).collect();
    let job = match jobs.as_slice() {
        [Some(name)] => Some((*name).to_owned()),
        _ => None,
    };
    // The proposing cycle is still running, so it counts neither before nor after the change.
    let began = session.store.cycles().find_cycle(&live.cycle.id)?.and_then(|row| row.started_at).unwrap_or(now);
    let before = session.store.history().measure_figure(effect.figure, job.as_deref(), began - COMPARED_OVER, began)?;
    let redactor = session.context.redactor;
    let publish = Publish {
        changes: &finish::to_changes(&files),
        message: &format!("Proposal: {title}\n\n{}\n", format_stated_effect(effect)),
        now,
        merge: &merge_texts,
        is_secret: &|text| redactor.contains_secret(text),
    };
    let repo = Repo::open(live.world.memory.documents.root().unwrap_or(&session.context.config.repo_dir()))?;
    let parked =
        repo.parked_work().park(&format!("proposed/{}", format_slug(&title)), &publish, Parking::ForAPerson)?;
    let (branch, commit) = (parked.branch, parked.commit.to_string());
    if let Some(path) = parked.left_out.first() {
        repo.parked_work().delete_proposal_branch(&branch, &commit)?;
        let why =
            format!("{path} holds what looks like a key or token, so it can't be shown as a whole. Nothing was done.");
        return Ok(Some(Err(why)));
    }
    Ok(Some(Ok(NewProposal { title, files, effect, job, before, branch, commit })))
}

/// Renders the text that a question shows beside the diff: the stated effect, the places of the changes, and the current figure.
pub(crate) fn describe_effect(proposal: &NewProposal) -> Vec<String> {
    let NewProposal { effect, job, before, files, .. } = proposal;
    let mut lines = vec![format!("Stated effect: {}.", format_stated_effect(*effect))];
    lines.extend(files.iter().flat_map(describe_places));
    lines.extend([
        format!("In the last 7 days: {}.", format_figure(effect.figure, job.as_deref(), *before)),
        "A week after you agree, I'll compare the week before with the week since, and you can undo the change with one tap."
            .to_owned(),
    ]);
    lines
}

/// Describes the places of a file's changes. The diff shows only the edits, and the same words can mean something else in another place.
fn describe_places(file: &StagedFile) -> Vec<String> {
    let Some(base) = &file.base else { return vec![format!("`{}` is new.", file.path)] };
    let quoted = |line: &str| format!("“{}”", truncate_text(&escape_hidden(line.trim()), MAX_PLACE_CHARS));
    let describe = |place: &ChangePlace<'_>| {
        let around = match (place.above, place.below) {
            (Some(above), Some(below)) => format!("between {} and {}", quoted(above), quoted(below)),
            (Some(above), None) => format!("at the end, after {}", quoted(above)),
            (None, Some(below)) => format!("at the beginning, before {}", quoted(below)),
            (None, None) => "all of it".to_owned(),
        };
        format!("It changes `{}` in line {}, {around}.", file.path, place.line)
    };
    find_change_places(base, &file.content).iter().map(describe).collect()
}

/// Refuses a completed call whose texts differ from the approved ones. Calls of other tools pass unchanged.
pub(crate) fn check_approved_texts(
    session: &Session<'_>,
    cycle_id: &str,
    request: &ToolRequest,
    mut done: Done,
) -> Result<Outcome, WakeError> {
    if request.name != PROPOSE_CHANGE {
        return Ok(Ok(done));
    }
    let refuse =
        |why: &str| Ok(Err(Refusal::new(format!("{why} Nothing was done; propose it anew if it still holds."))));
    match session.store.proposals().find_call_proposal(cycle_id, &request.id)? {
        Some(proposal) if proposal.new.files == extract_files(&done.changes) => {
            done.changes.push(Change::Agree { proposal: proposal.id });
            Ok(Ok(done))
        }
        Some(_) => refuse("A file has changed since your person was asked."),
        None => refuse("Nobody was asked about this."),
    }
}

/// Reports the effect of an agreed change: the figure in the week before and since, with a button to undo it.
pub(crate) fn report_effect(session: &Session<'_>, repo: &Repo, proposal: &Proposal) -> Result<RuleEffects, WakeError> {
    let Proposal { id, cycle_id, new: NewProposal { title, effect, job, before, .. }, agreed_at } = proposal;
    let (now, config) = (session.now(), session.context.config);
    let mark_reported = Change::ToldOfProposal { proposal: *id };
    if repo.history().wake_commit(cycle_id)?.is_none() {
        let receipts = vec![format!("The change “{title}” isn't in the memory, so there is nothing to report")];
        return Ok(RuleEffects { changes: vec![mark_reported], ..RuleEffects::from_receipts(receipts) });
    }
    let since = agreed_at.unwrap_or(now - COMPARED_OVER);
    let after = session.store.history().measure_figure(
        effect.figure,
        job.as_deref(),
        since,
        (since + COMPARED_OVER).min(now),
    )?;
    let describe = |figure| format_figure(effect.figure, job.as_deref(), figure);
    let hint = format!("To undo it, run `wake undo {}`.", Proposal::undone_as(*id));
    let day = since.with_timezone(&config.timezone).format("%a %-d %b");
    let text = format!(
        "On {day} you agreed to “{title}”. It was meant to bring {}.\n- The week before: {}.\n- The week since: {}.\n\n{hint}",
        format_stated_effect(*effect),
        describe(*before),
        describe(after),
    );
    let message = NewOutgoing {
        chat: config.owner_chat,
        text: session.context.redactor.redact(&text),
        kind: OutgoingKind::Tell,
        key: Some(format!("tell/{}", Proposal::undone_as(*id))),
        nudge: Some(NewNudge {
            task: None,
            zone: config.timezone.name().to_owned(),
            may_stop: false,
            proposal: Some(*id),
        }),
        ..NewOutgoing::default()
    };
    let changes = vec![Change::Send(message), mark_reported];
    Ok(RuleEffects { changes, ..RuleEffects::from_receipts(vec![format!("Told what the change “{title}” did")]) })
}

/// Deletes the branches of proposals whose cycle is over. A branch with a person's further commits stays.
pub(crate) fn delete_old_branches(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    for proposal in session.store.proposals().proposals_with_branch()? {
        if let Err(error) = repo.parked_work().delete_proposal_branch(&proposal.new.branch, &proposal.new.commit) {
            tracing::warn!(%error, branch = proposal.new.branch, "a proposal's branch could not be deleted");
        }
        session.store.proposals_mut().clear_proposal_branch(proposal.id)?;
    }
    Ok(())
}

fn extract_files(changes: &[Change]) -> Vec<StagedFile> {
    let files = changes.iter().filter_map(|change| match change {
        Change::File(file) => Some(file.clone()),
        _ => None,
    });
    files.collect()
}

fn format_slug(title: &str) -> String {
    Some(words::make_slug(title, MAX_SLUG_CHARS)).filter(|slug| !slug.is_empty()).unwrap_or_else(|| "change".to_owned())
}
