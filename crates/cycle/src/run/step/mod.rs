//! Decide and act: the I/O around the state machine. This asks the model (`turn`), runs calls, records results, and looks for new messages;
//! the machine always chooses the next step.

pub(crate) mod fallback;
pub(crate) mod fold;
pub(crate) mod token_rate;
pub(crate) mod turn;

use chrono::{DateTime, Utc};

use reveille_base::{words, zone::Tz};
use reveille_config::{OFFLINE_MODEL, WhileWorking};
use reveille_store::{Change, Entry, Incoming, MessageOutcome, NewOutgoing};
use reveille_tools::{Refusal, Registry, answer_open_messages};

use crate::run::begin::attached::Allowance;
use crate::{
    background,
    context::WakeError,
    decide::{
        brief::{self, File},
        interrupt::Interrupt,
        limits::{Limits, is_reserved},
        machine::{self, Step, ToolRequest},
        orient::{self, last_channel_id},
        taint,
        uptake::OUTSIDE,
        verify,
    },
    run::{
        ask::approve::{self, Judged, build_call_entry},
        begin::{attached, prepare},
        record,
        step::turn::AskEnd,
    },
    session::{Halt, Live, Session},
};

/// The end of driving a cycle.
pub(crate) enum Driven {
    /// The cycle is complete.
    Complete,
    /// A person is asked about a call, or about continuing.
    Parked,
    /// A background job lets a message go first.
    GivesWay,
    /// Another model has taken over, with its own tools and limits.
    FellBack,
}

/// Runs the machine until it is finished or interrupted.
pub(crate) async fn drive(session: &mut Session<'_>, live: &mut Live) -> Result<Driven, Halt> {
    let driven = loop {
        match run_step(session, live).await {
            Ok(Driven::FellBack) => {}
            driven => break driven,
        }
    };
    // In any case the model now releases whatever it keeps between turns.
    // fault: run-claude-code-goes
    session.context.model.release();
    driven
}

async fn run_step(session: &mut Session<'_>, live: &mut Live) -> Result<Driven, Halt> {
    let tooling = session.tooling();
    let registry = &tooling.registry;
    let limits = if session.context.model.name() == OFFLINE_MODEL { Limits::OFFLINE } else { Limits::STANDARD };
    loop {
        // A server may report its model's window with its first answer.
        let limits = limits.with_window(session.context.model.context_window());
        if let Some(interrupt) = session.find_interrupt()? {
            return Err(interrupt.into());
        }
        session.refresh_models()?;
        let step = match live.state.next(&limits) {
            Step::Call(call) if registry.is_acting(&call.name) => {
                live.state.check_call(&call, &limits).unwrap_or(Step::Call(call))
            }
            step => step,
        };
        match step {
            // The client has taken the only turn.
            Step::Ask if live.cycle.model == OUTSIDE => return Ok(Driven::Complete),
            Step::Ask if background::run::is_over(session, live)? => return Ok(Driven::Complete),
            Step::Ask if should_give_way(session, live)? => return Ok(Driven::GivesWay),
            Step::Ask if live.cycle.model != session.context.model.name() || fallback::is_outgrown(session, live)? => {
                fallback::restart_conversation(session, live)?;
                return Ok(Driven::FellBack);
            }
            Step::Ask => {
                if let AskEnd::TooLong(why) = turn::ask_model(session, live).await?
                    && !fold::shorten(session, live)?
                {
                    return Err(Interrupt::TooLong(why).into());
                }
            }
            Step::Call(request) => match approve::judge(session, live, registry, &request)? {
                Judged::Allowed(entries) => run_call(session, live, registry, &request, entries).await?,
                Judged::Refused(entries, why) => approve::refuse(session, live, &request, entries, why)?,
                Judged::Asked => {
                    approve::ask_ahead(session, live, registry)?;
                    return Ok(Driven::Parked);
                }
            },
            // Such work gets no more than its limit.
            Step::Limit(_) if live.world.asks_nobody() => return Ok(Driven::Complete),
            Step::Limit(request) => {
                approve::ask_to_continue(session, live, &limits, &request)?;
                return Ok(Driven::Parked);
            }
            Step::Await(request) if is_reserved(&request.id) => {
                if !approve::is_continuation_decided(session, live, &request)? {
                    return Ok(Driven::Parked);
                }
            }
            Step::Await(request) => match approve::find_decision(session, live, &request)? {
                Some(decided) => record::record_entry(session, live, &decided, &[])?,
                None => return Ok(Driven::Parked),
            },
            Step::Allowed(request) => approve::run_approved_call(session, live, registry, &request).await?,
            Step::Again { call, was_allowed } => {
                let effect = registry.get(&call.name).map(|tool| tool.effect);
                let doubt = machine::find_doubt(effect, was_allowed && registry.is_acting(&call.name));
                match (doubt, approve::find_prohibition(session, live, registry, &call)) {
                    (None, Some((judged, why))) => approve::refuse(session, live, &call, vec![judged], why)?,
                    (None, None) => run_call(session, live, registry, &call, Vec::new()).await?,
                    (Some(why), _) => record::settle_call(session, live, &call, Err(Refusal::new(why.to_owned())))?,
                }
            }
            Step::Reject { call, why } => record::settle_call(session, live, &call, Err(Refusal::new(why)))?,
            Step::Say(raw) => {
                record::record_entry(
                    session,
                    live,
                    &Entry::Said { raw, messages: Vec::new(), handles: Vec::new(), head: None, taint: None },
                    &[],
                )?;
            }
            Step::Tell(results) => give_results(session, live, &limits, results)?,
            Step::Fold(summary) => {
                if !fold::fold_conversation(session, live, &summary)? {
                    return Err(Interrupt::TooLong("it leaves no room for my AI model's answer".to_owned()).into());
                }
            }
            Step::Fail(why) => return Err(Interrupt::Rejected(why).into()),
            Step::Answer { text, outcome } => send_final_answer(session, live, text, outcome)?,
            Step::Join => {
                if let Some(missing) = background::run::find_missing_report(live) {
                    let raw = machine::build_user_message(missing);
                    let said = Entry::Said { raw, messages: Vec::new(), handles: Vec::new(), head: None, taint: None };
                    record::record_entry(session, live, &said, &[])?;
                } else if !add_new_messages(session, live)? {
                    return Ok(Driven::Complete);
                }
            }
            Step::Finish => return Ok(Driven::Complete),
        }
    }
}

/// Returns `true` if a background job should let messages and due reminders go first.
fn should_give_way(session: &Session<'_>, live: &Live) -> Result<bool, WakeError> {
    if !orient::is_own_work(&live.cycle) {
        return Ok(false);
    }
    let now = session.now();
    if session.store.reminders().list_reminders()?.iter().any(|reminder| reminder.what.next_at <= now) {
        return Ok(true);
    }
    let (queued, open_cycles) = (session.store.inbox().list_queued_messages()?, session.store.cycles().open_cycles()?);
    Ok(orient::is_any_due(&queued, &open_cycles, &session.models(), now))
}

/// Runs one call: journalled before with its permission, and afterwards with outcome and changes in one transaction. An interrupted call
/// has no outcome; the resumed cycle decides whether to repeat it.
async fn run_call(
    session: &mut Session<'_>,
    live: &mut Live,
    registry: &Registry,
    request: &ToolRequest,
    mut entries: Vec<Entry>,
) -> Result<(), Halt> {
    entries.push(build_call_entry(live, registry, request));
    record::record_all(session, live, &entries, &[])?;
    record::execute_call(session, live, registry, request).await
}

/// Sends a text as the answer to the open messages.
fn send_final_answer(
    session: &mut Session<'_>,
    live: &mut Live,
    text: String,
    outcome: MessageOutcome,
) -> Result<(), WakeError> {
    live.world.conversation.open_messages.clone_from(&live.state.open);
    let changes = match live.world.conversation.chat {
        Some(_) => answer_open_messages(&live.world, text, outcome),
        None if live.world.asks_nobody() => Vec::new(),
        // Nobody asked for this work, so the owner is told why it ended.
        None => vec![Change::Send(NewOutgoing {
            key: Some(format!("ended/{}", live.cycle.id)),
            ..NewOutgoing::notice(live.world.unasked.owner_chat, text)
        })],
    };
    let changes = record::mask_changes(session, changes);
    let messages = record::list_closed_messages(&changes);
    let verb = if outcome == MessageOutcome::Refused { "Declined to answer" } else { "Answered" };
    let receipt = match messages.len() {
        0 if live.world.asks_nobody() => "Ended without a word".to_owned(),
        0 => "Told why the work ended".to_owned(),
        n => format!("{verb} {}", words::format_count(n, "message")),
    };
    record::record_entry(session, live, &Entry::Answered { messages, receipt }, &changes)
}

/// Adds new messages of this chat to the conversation.
fn add_new_messages(session: &mut Session<'_>, live: &mut Live) -> Result<bool, WakeError> {
    say_with_news(session, live, |new, files, now, tz| Some(brief::render_new_messages(new, files, now, tz)))
}

/// Gives the model the results of its calls together with new messages of the person, who may no longer want the current work. The offline
/// model takes no time, so it handles messages in batches instead.
///
/// A long conversation also gets the folding request, unless there are new messages.
fn give_results(session: &mut Session<'_>, live: &mut Live, limits: &Limits, results: String) -> Result<(), WakeError> {
    let with_news =
        |new: &[&Incoming], files: &[File], now, tz| brief::append_new_messages(&results, new, files, now, tz);
    let hears_news = session.context.model.name() != OFFLINE_MODEL && live.cycle.model != OUTSIDE;
    if hears_news && say_with_news(session, live, with_news)? {
        return Ok(());
    }
    let (raw, asked) = fold::append_fold_request(live, limits, results);
    let said = Entry::Said { raw, messages: Vec::new(), handles: Vec::new(), head: None, taint: None };
    record::record_all(session, live, &[vec![said], asked].concat(), &[])
}

/// Journals a user message that `say` builds from new messages of this chat. `false` if there are none.
fn say_with_news(
    session: &mut Session<'_>,
    live: &mut Live,
    say: impl Fn(&[&Incoming], &[File], DateTime<Utc>, Tz) -> Option<String>,
) -> Result<bool, WakeError> {
    if session.context.config.while_working == WhileWorking::Wait {
        return Ok(false);
    }
    let (queued, open_cycles) = (session.store.inbox().list_queued_messages()?, session.store.cycles().open_cycles()?);
    let now = session.now();
    let terminal = session.store.terminals().find_cycle_session(&live.cycle.id)?;
    let (terminal, knows) = (terminal.as_deref(), &live.state.messages);
    let mut new =
        orient::list_new_messages(&queued, &live.cycle, terminal, knows, &open_cycles, &session.models(), now);
    // A message after `/new` gets a cycle of its own, because this conversation belongs to the time before.
    if let Some(chat) = live.cycle.chat.filter(|_| !new.is_empty())
        && let Some(start) = session.store.inbox().fresh_start(chat, live.cycle.thread_id)?
        && live.state.messages.iter().any(|id| *id <= start.incoming_id)
    {
        new.retain(|message| message.id <= start.incoming_id);
    }
    if new.is_empty() {
        return Ok(false);
    }
    let allowance = Allowance::from_conversation(&live.state.conversation.messages, session.context.config.images_max);
    let files = attached::read_files(session, &new, allowance)?;
    let Some(raw) = say(&new, &files, now, live.world.clock.tz) else {
        return Ok(false);
    };
    let ids: Vec<i64> = new.iter().map(|message| message.id).collect();
    let reply_to = last_channel_id(&queued, &ids);
    let raw = brief::with_images(session.context.redactor.redact_json(&raw), &files);
    let taint = taint::find_origins(&new, &files);
    let said = Entry::Said { raw, messages: ids, handles: Vec::new(), head: None, taint };
    // A message edited just now joins with the next turn, or gets a cycle of its own.
    if !session.store.cycles_mut().append_messages(&live.cycle.id, &said, &new)? {
        return Ok(false);
    }
    live.state.apply(&said);
    for message in &new {
        live.feed.borrow_mut().note_joined(&message.text);
    }
    if let Some(chat) = &mut live.world.conversation.chat {
        chat.reply_to = reply_to.or(chat.reply_to);
    }
    live.world.conversation.attachments = prepare::list_attachments(session, &live.cycle)?;
    Ok(true)
}

/// Compares the plan with the receipts, and records and reports the missing steps.
pub(crate) fn verify(session: &mut Session<'_>, live: &mut Live) -> Result<Vec<String>, WakeError> {
    let Some(plan) = &live.state.plan else {
        return Ok(Vec::new());
    };
    let not_done = verify::list_missing_steps(plan, &live.state.receipts);
    let world = &live.world;
    let (chat, thread_id) =
        world.conversation.chat.map_or((world.unasked.owner_chat, None), |chat| (chat.id, chat.thread_id));
    let notice = verify::render_notice(&not_done).filter(|_| !live.world.asks_nobody()).map(|text| {
        Change::Send(NewOutgoing {
            key: Some(format!("not-done/{}", live.cycle.id)),
            thread_id,
            ..NewOutgoing::notice(chat, text)
        })
    });
    let changes = record::mask_changes(session, notice.into_iter().collect());
    record::record_entry(session, live, &Entry::Verified { not_done: not_done.clone() }, &changes)?;
    Ok(not_done)
}
