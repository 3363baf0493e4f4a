//! Switches to a fallback model while the preferred one is unavailable, and back.
//!
//! A conversation that one model has signed is never sent to another. If a cycle has no conversation yet, only its model changes. Otherwise
//! a new conversation begins from the journal's account: requests stand unchanged, effects come from receipts, and failed calls are listed.
//! The switch is one journal entry, so that a crash leaves one conversation or the other. The asking chat is told once per period of
//! trouble.

use reveille_base::types::ChatRef;
use reveille_config::OFFLINE_MODEL;
use reveille_store::{Change, Entry, NewOutgoing};
use reveille_tools::Complexity;

use crate::{
    context::{WakeError, WakeOutcome},
    decide::{
        brief::{self, FoldedBrief},
        budget::Budget,
        interrupt::Interrupt,
        lineup::ModelState,
        orient,
    },
    run::{begin::prepare, record},
    session::{Live, Session},
};

/// Returns `true` if the simple model's work turns out to be more than quick. The session then uses the next model.
pub(crate) fn is_outgrown(session: &mut Session<'_>, live: &Live) -> Result<bool, WakeError> {
    if live.state.plan.as_ref().is_none_or(|plan| plan.complexity == Complexity::Quick) {
        return Ok(false);
    }
    let lineup = session.models();
    let Some(model) = lineup.find_larger_model(&live.cycle.model, live.cycle.chat) else { return Ok(false) };
    Ok(session.try_model(model)?.is_none())
}

/// Tells a chat once that its message waits because no configured model can be created. If another model can answer, nothing is said: the
/// answer itself names the fallback.
pub(crate) fn say_unusable(
    session: &mut Session<'_>,
    asking: Option<(ChatRef, Option<i64>)>,
    message: Option<i64>,
    why: &str,
) -> Result<(), WakeError> {
    let lineup = session.models();
    let goes_on = asking.map_or(lineup.find_background_model(), |(chat, _)| lineup.find_model(chat)).is_some();
    if goes_on {
        return Ok(());
    }
    session.report.outcome = WakeOutcome::Failed;
    session.report.error = Some(why.to_owned());
    if let Some(((chat, thread_id), message)) = asking.zip(message) {
        let text = Interrupt::for_unusable_model(why.to_owned()).render_notice();
        let key = Some(format!("waits/{message}"));
        session.store.outbox_mut().plan_wake_message(&NewOutgoing {
            key,
            thread_id,
            ..NewOutgoing::notice(chat, text)
        })?;
    }
    Ok(())
}

/// Begins a new conversation with the session's current model.
pub(crate) fn restart_conversation(session: &mut Session<'_>, live: &mut Live) -> Result<(), WakeError> {
    let model = session.context.model.name().to_owned();
    let Live { cycle, state, world, .. } = &*live;
    let (system, tools) = prepare::rebuild_fixed_parts(session, cycle, world, state)?;
    let raw = brief::render_folded_opening(&FoldedBrief {
        state,
        summary: None,
        now: session.now(),
        tz: world.clock.tz,
        documents: &world.memory.documents,
        reader: world.foreign_chat(),
    });
    let raw = session.context.redactor.redact_json(&raw);
    // The content went through the redactor when it arrived.
    let raw = brief::carry_over_blocks(&raw, &state.conversation.messages, &state.open).unwrap_or(raw);
    let from = cycle.model.clone();
    let lineup = session.models();
    let notice =
        cycle.chat.map(|chat| build_notice(session, &lineup, (chat, cycle.thread_id), &model)).transpose()?.flatten();
    let entry = Entry::Handed { from: from.clone(), model: model.clone(), system, tools, raw };
    record::record_entry(session, live, &entry, &notice.into_iter().collect::<Vec<_>>())?;
    tracing::info!(%from, %model, "another model continues");
    if let Err(error) = live.plan_file.append_progress(session.now(), &format!("{model} replaces {from}")) {
        tracing::warn!(%error, "the plan file could not be written");
    }
    live.world.cycle.model.clone_from(&model);
    live.cycle.model = model;
    Ok(())
}

/// Builds the notice that a fallback model answers a chat, once per period of its trouble or of a spent budget.
pub(crate) fn build_notice(
    session: &Session<'_>,
    lineup: &ModelState,
    (chat, thread_id): (ChatRef, Option<i64>),
    answering: &str,
) -> Result<Option<Change>, WakeError> {
    let is_in_line = lineup.lineup.iter().any(|model| model.name == answering);
    // The simple model starts without a notice, unless it answers for lack of money.
    let stands_in = || lineup.find_model(chat).is_some_and(|asked| asked.name == answering);
    // The person of a local chat has chosen the model.
    let is_wanted = lineup.name() == answering || lineup.is_local(Some(chat));
    if !(is_in_line || stands_in()) || is_wanted || lineup.is_fallback_grammar(answering) {
        return Ok(None);
    }
    let Some((key, why)) = explain_fallback(session, lineup, chat)? else { return Ok(None) };
    let preferred = lineup.name();
    let text = match answering {
        OFFLINE_MODEL => format!(
            "No AI model is available for now, so I only understand plain sentences: {why}. I'll keep anything else and answer it when \
             I can."
        ),
        other => format!("`{other}` answers for now instead of `{preferred}`: {why}."),
    };
    let text = session.context.redactor.redact(&text);
    Ok(Some(Change::Send(NewOutgoing {
        key: Some(format!("stands-in/{chat}/{key}")),
        thread_id,
        ..NewOutgoing::notice(chat, text)
    })))
}

/// Returns the reason why the preferred model isn't asked for a chat, with a key per period.
fn explain_fallback(
    session: &Session<'_>,
    lineup: &ModelState,
    chat: ChatRef,
) -> Result<Option<(String, String)>, WakeError> {
    let now = session.now();
    let preferred = lineup.name();
    if let Some(breaker) = session.store.maintenance().find_breaker(preferred)?.filter(|breaker| !breaker.may_try(now))
    {
        let since = breaker.since.map(|at| at.to_rfc3339()).unwrap_or_default();
        let ends = if breaker.fault.needs_person() { "" } else { "; I'll try again on my own" };
        let why = format!("I can't reach it right now ({}){ends}", breaker.error.trim_end_matches('.'));
        return Ok(Some((format!("{preferred}/{since}"), why)));
    }
    let budget = Budget::read(&session.store, session.context.config, now)?;
    let cap = lineup.over_budget.or_else(|| lineup.no_room.get(&Some(chat)).copied());
    Ok(cap.zip(budget.find_obstacle(Some(chat))).map(|(cap, why)| {
        let key = orient::budget_key(chat, [], cap, now, session.context.config.timezone);
        (key, why)
    }))
}
