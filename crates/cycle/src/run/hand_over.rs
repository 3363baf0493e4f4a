//! Another model goes on: the preferred one can't be asked, or can again no longer be.
//!
//! A conversation that one model has signed is sent to no other. Where a cycle has none yet, its model is simply another one. Else
//! a new conversation begins from the journal's account: what was asked stands as it stood, what was done comes from receipts, what came
//! to nothing is told. It is one entry of the journal, so that a crash leaves either conversation and never half of one.
//! Whoever asked is told once for each stretch of trouble.

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
    look::observe,
    run::{prepare, record},
    session::{Live, Session},
};

/// Whether what the simple model has begun is more than it calls quick: then the session uses the model that goes on.
pub(crate) fn is_outgrown(session: &mut Session<'_>, live: &Live) -> Result<bool, WakeError> {
    if live.state.plan.as_ref().is_none_or(|plan| plan.complexity == Complexity::Quick) {
        return Ok(false);
    }
    let lineup = observe::model_state_of(&session.store, session.context)?;
    let Some(model) = lineup.outgrown(&live.cycle.model, live.cycle.chat) else { return Ok(false) };
    Ok(session.try_model(model)?.is_none())
}

/// Tells a chat, once, that its message waits because no model can be asked that could be made. Where another one can, nothing is
/// said: who answers in its place is told with the answer.
pub(crate) fn say_unusable(
    session: &mut Session<'_>,
    asking: Option<(ChatRef, Option<i64>)>,
    message: Option<i64>,
    why: &str,
) -> Result<(), WakeError> {
    let lineup = observe::model_state_of(&session.store, session.context)?;
    let goes_on = asking.map_or(lineup.for_own_work(), |(chat, _)| lineup.asked(chat)).is_some();
    if goes_on {
        return Ok(());
    }
    session.report.outcome = WakeOutcome::Failed;
    session.report.error = Some(why.to_owned());
    if let Some(((chat, thread_id), message)) = asking.zip(message) {
        let text = Interrupt::unusable(why.to_owned()).notice();
        let key = Some(format!("waits/{message}"));
        session.store.tell(&NewOutgoing { key, thread_id, ..NewOutgoing::notice(chat, text) })?;
    }
    Ok(())
}

/// Begins a new conversation with the model that the session uses now.
pub(crate) fn begin_anew(session: &mut Session<'_>, live: &mut Live) -> Result<(), WakeError> {
    let model = session.context.model.name().to_owned();
    let Live { cycle, state, world, .. } = &*live;
    let (system, tools) = prepare::fixed_parts_again(session, cycle, world, state)?;
    let raw = brief::folded(&FoldedBrief {
        state,
        summary: None,
        now: session.now(),
        tz: world.tz,
        documents: &world.documents,
        reader: world.foreign_chat(),
    });
    let raw = session.context.redactor.redact_json(&raw);
    // What was in it went through the redactor when it came.
    let raw = brief::carried(&raw, &state.conversation.messages, &state.open).unwrap_or(raw);
    let from = cycle.model.clone();
    let lineup = observe::model_state_of(&session.store, session.context)?;
    let notice =
        cycle.chat.map(|chat| notice(session, &lineup, (chat, cycle.thread_id), &model)).transpose()?.flatten();
    let entry = Entry::Handed { from: from.clone(), model: model.clone(), system, tools, raw };
    record::record(session, live, &entry, &notice.into_iter().collect::<Vec<_>>())?;
    tracing::info!(%from, %model, "another model goes on");
    if let Err(error) = live.plan_file.progress(session.now(), &format!("{model} goes on in place of {from}")) {
        tracing::warn!(%error, "the plan file could not be written");
    }
    live.world.model.clone_from(&model);
    live.cycle.model = model;
    Ok(())
}

/// What a chat is told when another model than the preferred one answers it: once for each stretch of its trouble, or of a budget's.
pub(crate) fn notice(
    session: &Session<'_>,
    lineup: &ModelState,
    (chat, thread_id): (ChatRef, Option<i64>),
    answering: &str,
) -> Result<Option<Change>, WakeError> {
    let is_in_line = lineup.lineup.iter().any(|model| model.name == answering);
    // The simple one begins without a word, unless it answers for want of money.
    let stands_in = || lineup.asked(chat).is_some_and(|asked| asked.name == answering);
    // Where a chat is kept local its person has chosen who answers.
    let is_wanted = lineup.name() == answering || lineup.is_local(Some(chat));
    if !(is_in_line || stands_in()) || is_wanted || lineup.is_stood_in_for(answering) {
        return Ok(None);
    }
    let Some((key, why)) = why_not(session, lineup, chat)? else { return Ok(None) };
    let preferred = lineup.name();
    let text = match answering {
        OFFLINE_MODEL => format!(
            "No AI model answers for now, so I understand plain sentences only: {why}. Anything else is kept, and answered when I can."
        ),
        other => format!("`{other}` answers for now, in place of `{preferred}`: {why}."),
    };
    let text = session.context.redactor.redact(&text);
    Ok(Some(Change::Send(NewOutgoing {
        key: Some(format!("stands-in/{chat}/{key}")),
        thread_id,
        ..NewOutgoing::notice(chat, text)
    })))
}

/// Why the preferred model isn't asked for a chat, with a key of its own for each stretch of that.
fn why_not(session: &Session<'_>, lineup: &ModelState, chat: ChatRef) -> Result<Option<(String, String)>, WakeError> {
    let now = session.now();
    let preferred = lineup.name();
    if let Some(breaker) = session.store.breaker(preferred)?.filter(|breaker| !breaker.may_try(now)) {
        let since = breaker.since.map(|at| at.to_rfc3339()).unwrap_or_default();
        let ends = if breaker.fault.needs_person() { "" } else { "; I try it again by myself" };
        let why = format!("I can't reach it right now ({}){ends}", breaker.error.trim_end_matches('.'));
        return Ok(Some((format!("{preferred}/{since}"), why)));
    }
    let budget = Budget::look(&session.store, session.context.config, now)?;
    let cap = lineup.over_budget.or_else(|| lineup.no_room.get(&Some(chat)).copied());
    Ok(cap.zip(budget.in_the_way(Some(chat))).map(|(cap, why)| {
        let key = orient::budget_key(chat, [], cap, now, session.context.config.timezone);
        (key, why)
    }))
}
