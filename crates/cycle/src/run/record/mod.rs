//! Recording the results of calls, and messages, as journal entries together with their changes.

pub(crate) mod effects;
pub(crate) mod lasting;
pub(crate) mod recordings;

use std::path::PathBuf;

use tracing::{Instrument as _, field::Empty};

use reveille_base::clock::format_rfc3339;
use reveille_memory::outside;
use reveille_store::{Change, Entry, NewOutgoing, NewReminder, OutgoingKind, ShownTask, SpokenRows, StagedFile};
use reveille_tools::{Assignment, Done, Outcome, Refusal, Registry};

use crate::{
    context::{Reply, WakeError},
    decide::{machine::ToolRequest, taint},
    run::ask::proposal,
    session::{Halt, Live, Session, TAINTED_WRITE},
    stop,
};

/// Runs a journalled call, and journals its result.
pub(crate) async fn execute_call(
    session: &mut Session<'_>,
    live: &mut Live,
    registry: &Registry,
    request: &ToolRequest,
) -> Result<(), Halt> {
    note_tainted_write(session, live, registry, request)?;
    let Live { state, world, exec, .. } = live;
    world.clock.now = session.context.clock.now();
    world.conversation.open_messages.clone_from(&state.open);
    world.cycle.replies = state.replies;
    world.cycle.taint = taint::join_taints(&state.taints);
    if world.cycle.taint.is_some() {
        let said = session.store.inbox().said_by_people(SpokenRows::These(&state.messages))?;
        world.conversation.own_words =
            said.into_iter().filter(|said| said.taint.is_none()).map(|said| said.text).collect();
    }
    exec.set_sees_untrusted(world.cycle.taint.is_some());
    if let Some(Assignment::Step(hand)) = &mut world.cycle.assignment {
        hand.done = state.receipts.iter().map(|receipt| receipt.tool.clone()).collect();
    }
    live.work.start();
    // The name of an unknown tool is the model's own text, so it isn't logged.
    let tool = registry.get(&request.name).map_or("unknown", |tool| &*tool.name);
    let span = tracing::info_span!("call", tool, failed = Empty);
    let call = registry.run(&request.name, &request.input, world, exec);
    let outcome = stop::run_unless_interrupted(session, call).instrument(span.clone()).await?;
    span.record("failed", outcome.as_ref().map_or(true, |done| done.is_failure));
    drop(span);
    crate::context::check_readable(&live.world.memory.documents)?;
    let outcome = match outcome.and_then(|done| refuse_secrets(session, done)) {
        Ok(done) => proposal::check_approved_texts(session, &live.cycle.id, request, done)?,
        refused => refused,
    };
    Ok(settle_call(session, live, request, outcome)?)
}

/// Records, before a call runs, that it writes to granted folders in a tainted cycle. Permanent rules for commands in those folders no
/// longer count then.
fn note_tainted_write(
    session: &mut Session<'_>,
    live: &Live,
    registry: &Registry,
    request: &ToolRequest,
) -> Result<(), WakeError> {
    if live.state.taints.is_empty() {
        return Ok(());
    }
    // fault: misled-cycle-writes-isnt
    let folders = registry.list_writable_folders(&request.name, &request.input, &live.world);
    let at = format_rfc3339(session.now());
    let noted =
        |folder: PathBuf| Change::Handled { key: format!("{TAINTED_WRITE}{}", folder.display()), value: at.clone() };
    let changes: Vec<Change> = folders.into_iter().map(noted).collect();
    Ok(session.store.journal_mut().apply_changes(&live.cycle.id, &changes)?)
}

/// Refuses to write a secret into the memory, even as a document's name, because the file could never be committed again.
fn refuse_secrets(session: &Session<'_>, done: Done) -> Outcome {
    let redactor = session.context.redactor;
    let is_new_in = |file: &StagedFile| match file.base.as_deref() {
        Some(base) => redactor.contains_secret(&file.content) && !redactor.contains_secret(base),
        // fault: wake-names-document-secret
        None => redactor.contains_secret(&file.content) || redactor.contains_secret(&file.path),
    };
    let writes_secret = |change: &Change| matches!(change, Change::File(file) if is_new_in(file));
    // fault: call-writes-secret-into
    if done.changes.iter().any(writes_secret) {
        return Err(Refusal::new("This holds a key or token, which is not written down. Nothing was done.".to_owned()));
    }
    Ok(done)
}

/// Journals a call's result, together with its changes.
pub(crate) fn settle_call(
    session: &mut Session<'_>,
    live: &mut Live,
    request: &ToolRequest,
    outcome: Outcome,
) -> Result<(), WakeError> {
    settle_with_entries(session, live, request, Vec::new(), outcome)
}

/// Journals a call's result after `entries`.
pub(crate) fn settle_with_entries(
    session: &mut Session<'_>,
    live: &mut Live,
    request: &ToolRequest,
    mut entries: Vec<Entry>,
    outcome: Outcome,
) -> Result<(), WakeError> {
    let redactor = session.context.redactor;
    let is_error = outcome.as_ref().map_or(true, |done| done.is_failure);
    let mut done = outcome.unwrap_or_else(|refusal| Done { content: refusal.to_string(), ..Done::default() });
    // A refusal is in our own words, except for text added by an outside error.
    if let Some(outside) = is_error.then(|| outside::describe_origins(&done.content)).flatten() {
        done.taint = taint::join_origins(done.taint.into_iter().chain([outside]));
        done.content = outside::strip_marks(&done.content).into_owned();
    }
    let changes = mask_changes(session, done.changes);
    let receipt = done.receipt.map(|what| redactor.redact(&what));
    let entry = Entry::Outcome {
        call: request.id.clone(),
        name: request.name.clone(),
        content: redactor.redact(&done.content),
        is_error,
        receipt: receipt.clone(),
        closed: list_closed_messages(&changes),
        taint: done.taint.map(|origin| redactor.redact(&origin)),
        image: done.image,
    };
    entries.push(entry);
    entries.extend(live.work.stop());
    record_all(session, live, &entries, &changes)?;
    let written = match &live.state.plan {
        _ if is_error => Ok(()),
        Some(plan) if request.name == "plan" => live.plan_file.append_plan(plan, redactor),
        _ => live.plan_file.append_progress(session.now(), receipt.as_deref().unwrap_or(&request.name)),
    };
    if let Err(error) = written {
        tracing::warn!(%error, "the plan file could not be written");
    }
    Ok(())
}

/// Calls without a line in the preview: they speak, and what they say is shown.
const SPEAKING: [&str; 2] = ["plan", "reply"];

/// Shows calls and results in the preview.
pub(crate) fn preview_entries(live: &Live, entries: &[Entry]) {
    let mut feed = live.feed.borrow_mut();
    if !live.state.taints.is_empty() {
        feed.taint();
    }
    for entry in entries {
        match entry {
            Entry::Called { call, name, .. } if !SPEAKING.contains(&name.as_str()) => {
                feed.note_call(call, &name.trim_start_matches("mcp__").replace("__", ": ").replace('_', " "));
            }
            Entry::Outcome { call, is_error, .. } => feed.note_result(call, *is_error),
            _ => {}
        }
    }
}

/// Journals an entry with its changes, and updates the state and the world.
pub(crate) fn record_entry(
    session: &mut Session<'_>,
    live: &mut Live,
    entry: &Entry,
    changes: &[Change],
) -> Result<(), WakeError> {
    record_all(session, live, std::slice::from_ref(entry), changes)
}

/// Journals entries with their changes in one transaction.
pub(crate) fn record_all(
    session: &mut Session<'_>,
    live: &mut Live,
    entries: &[Entry],
    changes: &[Change],
) -> Result<(), WakeError> {
    // fault: couldnt-journalled-taken-done
    session.store.journal_mut().record_all(&live.cycle.id, entries, changes)?;
    entries.iter().for_each(|entry| live.state.apply(entry));
    preview_entries(live, entries);
    for change in changes {
        match change {
            Change::File(file) => live.world.memory.documents.apply(file),
            Change::Send(message) => {
                live.world.unasked.told_keys.extend(message.key.clone());
                live.world.unasked.told_today += u32::from(message.kind == OutgoingKind::Tell);
                session.report.replies.push(Reply { chat: message.chat, text: message.text.clone() });
            }
            Change::AddReminder(_) | Change::EndReminder { .. } => {
                // Reflection adds a reminder only to ask a question after quiet hours.
                live.world.unasked.told_today += u32::from(live.world.person_edits().is_some());
                live.world.memory.reminders = session.store.reminders().list_reminders()?;
            }
            Change::ShowTasks { tasks, .. } => live.world.conversation.shown_tasks.clone_from(tasks),
            Change::Undo { wake, .. } => live.world.conversation.undoable.retain(|known| known.wake != *wake),
            Change::Done { .. }
            | Change::Hold { .. }
            | Change::Handled { .. }
            | Change::Fire(_)
            | Change::TakeUpJob { .. }
            | Change::EndJob(_)
            | Change::Agree { .. }
            | Change::ToldOfProposal { .. }
            | Change::NudgeDone { .. } => {}
        }
    }
    Ok(())
}

/// Masks the secrets in use in all texts that changes write or send. The outbox decides about links.
pub(crate) fn mask_changes(session: &Session<'_>, changes: Vec<Change>) -> Vec<Change> {
    let redactor = session.context.redactor;
    let fit = |change| match change {
        Change::Send(message) => Change::Send(NewOutgoing { text: redactor.redact(&message.text), ..message }),
        Change::AddReminder(reminder) => {
            Change::AddReminder(NewReminder { text: redactor.redact(&reminder.text), ..reminder })
        }
        Change::ShowTasks { chat, tasks } => {
            let fit = |task: ShownTask| ShownTask { title: redactor.redact(&task.title), ..task };
            Change::ShowTasks { chat, tasks: tasks.into_iter().map(fit).collect() }
        }
        other => other,
    };
    changes.into_iter().map(fit).collect()
}

/// Lists the messages that changes answer or put aside.
pub(crate) fn list_closed_messages(changes: &[Change]) -> Vec<i64> {
    changes
        .iter()
        .flat_map(|change| match change {
            Change::Done { messages, .. } | Change::Hold { messages, .. } => messages.clone(),
            _ => Vec::new(),
        })
        .collect()
}
