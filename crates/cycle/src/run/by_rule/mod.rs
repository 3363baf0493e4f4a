//! Cycles without a model: immediate work that costs nothing. The wake sends reminders. With the offline model it also reports decay and
//! the time of a task, and notes a person's commits. With any model it tells guests about their tasks this way, in their own chat.
//!
//! The work is decided first, then done and journalled in the transaction that begins the cycle. So an interrupted cycle either hasn't
//! begun, or only lacks its commit and its end.

pub(crate) mod pressed;
pub(crate) mod remind;
pub(crate) mod undo;

use reveille_base::{
    types::ChatRef,
    words::{day_and_time, format_count},
};
use reveille_git::Repo;
use reveille_memory::{
    decay,
    tasks::{Task, due_in_words},
};
use reveille_store::{Change, Entry, Incoming, MessageOutcome, NO_MODEL, NewNudge, NewOutgoing, OutgoingKind};

use crate::{
    background::reflection,
    context::WakeError,
    decide::{
        budget::{Budget, Waits},
        machine::Cycle,
        situation::{Reason, Situation},
        stale,
        verify::Account,
    },
    maintain::sync,
    run::{ask::proposal, finish, record::effects::RuleEffects},
    session::{Ending, Session},
};

/// Returns the messages concerned by a reason.
fn list_messages<'a>(reason: &Reason, observation: &'a Situation) -> Vec<&'a Incoming> {
    observation.messages.iter().filter(|message| reason.messages().contains(&message.id)).collect()
}

/// Runs a cycle without a model: sends reminders, reports decay and a task's time, notes a person's commits.
pub(crate) async fn run(
    session: &mut Session<'_>,
    repo: &Repo,
    observation: &Situation,
    reasons: &[Reason],
) -> Result<(), WakeError> {
    let reported = (session.report.cycle_id.clone(), session.report.reasons.len());
    let cycle = session.new_cycle(reasons, NO_MODEL)?;
    let plan_file = session.open_plan_file(&cycle, &[])?;
    let mut account = Account::default();
    sync::take_in_person_edits(session, repo, &mut account)?;
    let mut effects = remind::build_effects(session, reasons, observation)?;
    for reason in reasons {
        let (reason, chat) = match reason {
            Reason::OfGuest { chat, what } => (&**what, *chat),
            owners => (owners, session.context.config.owner_chat),
        };
        effects = effects.merge(match reason {
            Reason::Pressed { nudge } => {
                match pressed::compute_effects(session, repo, (&cycle, &observation.model), nudge) {
                    // The button's answer stays open without delaying other work. Alone, it fails the cycle.
                    Err(error @ WakeError::Workspace { .. }) if reasons.len() > 1 => {
                        tracing::warn!(%error, "a button's order can't be carried out now; a later wake tries again");
                        RuleEffects::default()
                    }
                    done => done?,
                }
            }
            Reason::Reflection { from, until, .. } => {
                reflection::run::apply_rules(session, repo, &cycle, &(*from..*until))?.0
            }
            reason => apply_rule(session, repo, reason, chat, observation)?,
        });
    }
    let sees_commits = reasons.iter().any(|reason| matches!(reason, Reason::PersonCommits { .. }));
    let done = Entry::ByRule {
        receipts: effects.receipts.iter().map(|what| session.context.redactor.redact(what)).collect(),
        handles: reasons.iter().filter_map(Reason::handled_key).chain(effects.handles).collect(),
        head: observation.head.clone().filter(|_| sees_commits),
    };
    let seen: Vec<&Incoming> = reasons.iter().flat_map(|reason| list_messages(reason, observation)).collect();
    if !session.store.cycles_mut().begin_by_rule(&cycle, &done, &effects.changes, &seen)? {
        return session.drop_unstarted_cycle(&plan_file, reported);
    }
    let state = Cycle::replay(cycle.system.clone(), cycle.tools.clone(), &[done]);
    let staged = session.store.journal().list_staged_files(&cycle.id)?;
    finish::run(session, repo, Ending { staged, ..Ending::new(cycle, state, plan_file, account) }).await
}

/// Applies the rule for one reason. `recipient` is the chat concerned.
fn apply_rule(
    session: &Session<'_>,
    repo: &Repo,
    reason: &Reason,
    recipient: ChatRef,
    observation: &Situation,
) -> Result<RuleEffects, WakeError> {
    Ok(match reason {
        Reason::Task { title, next, missed_at, key } => {
            let next = next.as_deref().unwrap_or("it has no next step yet");
            let late = missed_at.map(|at| format!(" (It was due {}.)", day_and_time(at)));
            let late = late.unwrap_or_default();
            tell_by_rule(session, recipient, key, &format!("It is time for “{title}”: {next}.{late}"), (title, false))
        }
        Reason::MissedTask { title, at, is_told: false, .. } => {
            RuleEffects::from_receipts(vec![format!("Skipped the next step of “{title}”: its time {at} was missed")])
        }
        Reason::MissedTask { title, at, is_told: true, key } => {
            let text = format!("I missed “{title}” at {at} because I wasn't running. I won't do it late.");
            tell_by_rule(session, recipient, key, &text, (title, false))
        }
        Reason::Due { title, day, next, key } => {
            let today = session.now().with_timezone(&session.context.config.timezone).date_naive();
            let next = next.as_ref().map(|next| format!(" Next: {next}.")).unwrap_or_default();
            let what = match due_in_words(*day, today) {
                was if *day < today => format!("{was} and isn't done. Do it now, or give it another day?"),
                is => format!("is {is}."),
            };
            let text = format!("“{title}” {what}{next}");
            tell_by_rule(session, recipient, key, &text, (title, false))
        }
        Reason::Decay { title, stage, key } => {
            let task = observation.tasks.iter().find(|task| task.title == *title);
            let today = session.now().with_timezone(&session.context.config.timezone).date_naive();
            let days = task.and_then(|task| task.touched).map_or(0, |touched| decay::quiet_days(touched, today));
            let due = task.and_then(Task::due_date).map(|due| format!(" It is {}.", due_in_words(due, today)));
            // Only the owner may turn nudges off.
            let may_stop = recipient == session.context.config.owner_chat;
            let text = format!("{}{}", stage.format_reminder(title, days), due.unwrap_or_default());
            tell_by_rule(session, recipient, key, &text, (title, may_stop))
        }
        Reason::InitiativePassed { told, .. } => {
            RuleEffects::from_receipts(vec![format!("Looked for something useful unasked; {told}")])
        }
        Reason::PersonCommits { subjects } => RuleEffects::from_receipts(
            subjects.iter().map(|subject| format!("Noted a person's commit: {subject}")).collect(),
        ),
        Reason::OverBudget { cap, chat, thread_id, key } => {
            let budget = Budget::read(&session.store, session.context.config, session.now())?;
            let notice = NewOutgoing {
                key: Some(key.clone()),
                thread_id: *thread_id,
                ..NewOutgoing::notice(*chat, budget.render_notice(*cap, 0.0, Waits::Message))
            };
            let told = format!("Told chat {chat} that the {}'s budget is spent", cap.name());
            RuleEffects { changes: vec![Change::Send(notice)], ..RuleEffects::from_receipts(vec![told]) }
        }
        Reason::Stale { chat, thread_id, ids } => {
            let closed = list_messages(reason, observation);
            let text = session.context.redactor.redact(&stale::render_notice(&closed, *chat));
            let notice = NewOutgoing { thread_id: *thread_id, ..NewOutgoing::notice(*chat, text) };
            let n = format_count(ids.len(), "message");
            let told =
                format!("Closed {n} in chat {chat} without an answer: over a day old, and their moment has passed");
            let done = Change::Done { messages: ids.clone(), outcome: MessageOutcome::Stale };
            RuleEffects { changes: vec![done, Change::Send(notice)], ..RuleEffects::from_receipts(vec![told]) }
        }
        Reason::AgreedChange { proposal } => proposal::report_effect(session, repo, proposal)?,
        // Reminders fire together, so that one message reports all missed ones. Reflection has a rule of its own.
        Reason::Reminder { .. }
        | Reason::Pressed { .. }
        | Reason::Messages { .. }
        | Reason::Resume { .. }
        | Reason::Undo { .. }
        | Reason::Reflection { .. }
        | Reason::Own { .. }
        | Reason::OfGuest { .. } => RuleEffects::default(),
    })
}

/// Builds an unasked message by rule, once per key, about a task. `may_stop` is true if the reader can refuse further ones.
fn tell_by_rule(
    session: &Session<'_>,
    chat: ChatRef,
    key: &str,
    text: &str,
    (title, may_stop): (&str, bool),
) -> RuleEffects {
    let zone = session.context.config.timezone.name().to_owned();
    let message = NewOutgoing {
        chat,
        text: session.context.redactor.redact(text),
        kind: OutgoingKind::Tell,
        key: Some(format!("tell/{key}")),
        nudge: Some(NewNudge { task: Some(title.to_owned()), zone, may_stop, proposal: None }),
        ..NewOutgoing::default()
    };
    let whom = if chat == session.context.config.owner_chat { String::new() } else { format!(" chat {chat}") };
    RuleEffects {
        changes: vec![Change::Send(message)],
        ..RuleEffects::from_receipts(vec![format!("Told{whom}: {text}")])
    }
}
