//! One turn of the model. Its possible cost is reserved before the request, and the actual cost is booked afterwards. Before a
//! retry the wake waits as long as the error says. An order to stop takes effect at once.

use std::{cell::RefCell, rc::Rc, time::Duration};

use reveille_base::{types::Usage, words};
use reveille_live::LiveFeed;
use reveille_model::{Known, ModelError, Progress, TOO_LONG, Turn, TurnPiece, Watcher, anthropic::retry};
use reveille_store::{Entry, Reservation, Settlement, Spent, StoreError};

use crate::{
    context::{Context, WakeError},
    decide::{
        budget::Budget,
        interrupt::Interrupt,
        lineup::{ModelState, WorkStage},
        machine::Cycle,
    },
    session::{Halt, Live, Session},
    stop,
};

/// How long to wait within a turn for a shared database's server to come back. A restart takes seconds.
const SERVER_PATIENCE: Duration = Duration::from_secs(15);
/// The number of further attempts to update a reservation after the server cut one off.
const UPDATE_RETRIES: usize = 3;
/// Minimum tokens charged for an answer that has started.
const FIRST_ALLOWANCE: u64 = 512;
/// The number of rounds between two progress lines in the plan file.
const CHECKPOINT_ROUNDS: u32 = 25;

/// The reservation for a request.
#[derive(Debug, Clone, Copy)]
struct CostReservation {
    reservation: Reservation,
    most_usd: f64,
}

impl CostReservation {
    /// Limits an estimated cost to the reserved maximum.
    fn limit_cost(self, spent: Spent) -> Spent {
        Spent { cost_usd: spent.cost_usd.min(self.most_usd), ..spent }
    }
}

/// Returns the number of output tokens to charge before the next update. It doubles each time, so a long answer takes a handful of updates.
fn compute_allowance(output_tokens: u64) -> u64 {
    output_tokens.saturating_mul(2).max(FIRST_ALLOWANCE)
}

/// Waits until the answer has more tokens than were charged in advance.
async fn wait_past_allowance(progress: &Progress, allowed: Option<u64>) -> Usage {
    loop {
        if let Known::Told(usage) = progress.state()
            && allowed.is_none_or(|allowed| usage.output > allowed)
        {
            return usage;
        }
        progress.wait_for_news().await;
    }
}

/// The result of a request for a turn.
pub(crate) enum AskEnd {
    /// The turn is recorded.
    Answered,
    /// The server says that the conversation is too long for the model.
    TooLong(String),
}

/// Requests the next turn, with the retries allowed for the error, and records it.
pub(crate) async fn ask_model(session: &mut Session<'_>, live: &mut Live) -> Result<AskEnd, Halt> {
    // A turn in progress would be lost with its wake, and paid for again.
    session.store.wait_for_server(SERVER_PATIENCE);
    let asked = ask_with_retries(session, live).await;
    session.store.wait_for_server(Duration::ZERO);
    asked
}

async fn ask_with_retries(session: &mut Session<'_>, live: &mut Live) -> Result<AskEnd, Halt> {
    let is_probe = session.store.maintenance().find_breaker(&live.cycle.model)?.is_some();
    for attempt in 1.. {
        // A new reservation per try, because an aborted one costs something too.
        let reserved = reserve_cost(session, live)?;
        let reservation = reserved.reservation;
        live.work.start();
        if !live.state.taints.is_empty() {
            live.feed.borrow_mut().taint();
        }
        live.feed.borrow_mut().begin_turn();
        let progress = Progress::watched_by(watch_turn(&live.feed));
        let error = match request_turn(session, &live.state, reserved, &progress).await {
            Ok(Ok(turn)) => {
                session.store.maintenance_mut().record_model_answer(&live.cycle.model)?;
                let Turn { content, stop, usage, cost_usd, .. } = turn;
                tracing::info!(model = %live.cycle.model, attempt, ?usage, "the model answered");
                let mut entries = vec![Entry::Turn { content, stop, usage }];
                entries.extend(live.work.stop());
                let spent = price_usage(session, usage, cost_usd);
                book_cost(session, live, Settlement::kept(reservation, spent), &entries)?;
                live.feed.borrow_mut().end_turn();
                checkpoint(session, live);
                return Ok(AskEnd::Answered);
            }
            Ok(Err(error)) => {
                live.feed.borrow_mut().withdraw_turn();
                error
            }
            Err(halt) => {
                live.feed.borrow_mut().withdraw_turn();
                if matches!(halt, Halt::Interrupted(_)) {
                    book_abandoned_request(session, live, reserved, progress.state())?;
                }
                return Err(halt);
            }
        };
        // An order to stop ends our child processes, possibly the model's own, so its error means nothing.
        if let Some(interrupt) = session.find_interrupt()? {
            book_abandoned_request(session, live, reserved, progress.state())?;
            return Err(interrupt.into());
        }
        let why = session.context.redactor.redact(&error.to_string());
        tracing::warn!(attempt, %why, "the model did not answer");
        if let ModelError::Transient { spent, .. } = &error {
            let discarded = Entry::Discarded { why: why.clone(), usage: *spent };
            let settlement = Settlement::discarded(reservation, price_usage(session, *spent, None));
            // fault: turn-broke-off-booked
            book_cost(session, live, settlement, &[discarded])?;
        } else {
            book_cost(session, live, Settlement::discarded(reservation, Spent::default()), &[])?;
        }
        if let ModelError::Rejected { status: TOO_LONG, .. } = &error {
            session.store.maintenance_mut().record_model_answer(&live.cycle.model)?;
            return Ok(AskEnd::TooLong(why));
        }
        match retry::choose_backoff(&error, attempt, fastrand::f64()) {
            Some(_) if is_retry_useless(session, live, is_probe, progress.state())? => {
                return Err(Interrupt::from_error(&error, why, &live.cycle.model).into());
            }
            Some(wait) => stop::run_unless_interrupted(session, tokio::time::sleep(wait)).await?,
            None => return Err(Interrupt::from_error(&error, why, &live.cycle.model).into()),
        }
    }
    Err(Interrupt::OutOfTime.into())
}

/// Passes the pieces of a turn on to the cycle's preview.
fn watch_turn(feed: &Rc<RefCell<LiveFeed>>) -> Watcher {
    let feed = Rc::clone(feed);
    Box::new(move |piece| {
        let mut feed = feed.borrow_mut();
        match piece {
            TurnPiece::Text(text) => feed.add_text(&text),
            TurnPiece::Call(tool) => feed.begin_call(&tool),
            TurnPiece::Arguments(json) => feed.add_arguments(&json),
            TurnPiece::Restart => feed.withdraw_turn(),
        }
    })
}

/// Returns `true` if a retry would only delay others: this model was in trouble before and another is available; or there is no network,
/// and the fallback grammar can answer.
fn is_retry_useless(session: &Session<'_>, live: &Live, is_probe: bool, known: Known) -> Result<bool, WakeError> {
    let is_unsent = known == Known::Unsent;
    if !(is_probe || is_unsent) {
        return Ok(false);
    }
    let lineup = session.models();
    let stage = if live.state.turns > 0 { WorkStage::Begun } else { WorkStage::New };
    let has_other = is_probe && lineup.without_model(&live.cycle.model).has_other_model(stage, live.cycle.chat);
    Ok(has_other || is_unsent && live.state.turns == 0 && is_all_understood(session, live, &lineup)?)
}

/// Returns `true` if the fallback grammar surely understands all unanswered messages.
pub(crate) fn is_all_understood(session: &Session<'_>, live: &Live, lineup: &ModelState) -> Result<bool, WakeError> {
    let queued = session.store.inbox().list_queued_messages()?;
    let open = |id: &i64| queued.iter().any(|message| message.id == *id && lineup.is_understood(message));
    Ok(!live.state.open.is_empty() && live.state.open.iter().all(open))
}

/// Reserves the next request's possible cost, and journals that it is about to be sent.
fn reserve_cost(session: &mut Session<'_>, live: &mut Live) -> Result<CostReservation, Halt> {
    let Context { model, config, .. } = session.context;
    let most_usd = model.most_usd(&live.state.conversation);
    let now = session.now();
    // A free request needs no room in the budget.
    let caps = if most_usd > 0.0 { Budget::read(&session.store, config, now)?.caps() } else { Vec::new() };
    let for_whom = (live.cycle.id.as_str(), live.cycle.model.as_str());
    let reserved = session.store.ledger_mut().reserve_cost(for_whom, most_usd, &caps)?;
    let reservation = reserved.map_err(|cap| Interrupt::OverBudget { cap, most_usd })?;
    live.state.apply(&Entry::Asked);
    Ok(CostReservation { reservation, most_usd })
}

/// Journals the end of a request, and books its actual cost in place of the reservation.
fn book_cost(
    session: &mut Session<'_>,
    live: &mut Live,
    settlement: Settlement,
    entries: &[Entry],
) -> Result<(), WakeError> {
    session.store.ledger_mut().settle_reservation(&live.cycle.id, &settlement, entries)?;
    session.report.tokens += settlement.spent.tokens;
    session.report.cost_usd += settlement.spent.cost_usd;
    entries.iter().for_each(|entry| live.state.apply(entry));
    Ok(())
}

/// Books an abandoned request as far as it got. If it was sent and reported no usage, its reservation stays charged.
fn book_abandoned_request(
    session: &mut Session<'_>,
    live: &mut Live,
    reserved: CostReservation,
    known: Known,
) -> Result<(), WakeError> {
    let spent = match known {
        Known::Sent => return Ok(()),
        Known::Unsent => Spent::default(),
        Known::Told(usage) => reserved.limit_cost(price_usage(session, usage, None)),
    };
    book_cost(session, live, Settlement::discarded(reserved.reservation, spent), &[])
}

fn price_usage(session: &Session<'_>, tokens: Usage, cost_usd: Option<f64>) -> Spent {
    Spent { tokens, cost_usd: cost_usd.unwrap_or_else(|| session.context.model.cost_usd(&tokens)) }
}

/// Writes a progress line into the plan file from time to time. A resumption uses the journal, not this line.
fn checkpoint(session: &Session<'_>, live: &Live) {
    let taken = live.state.meter.taken;
    if !taken.rounds.is_multiple_of(CHECKPOINT_ROUNDS) {
        return;
    }
    let done = words::format_count(live.state.receipts.len(), "call");
    let line = format!("checkpoint: {}, {done} done", taken.describe());
    if let Err(error) = live.plan_file.append_progress(session.now(), &line) {
        tracing::warn!(%error, "the plan file could not be written");
    }
}

/// Sends one request. During its answer the reservation is updated to the known usage, which remains charged if this process is killed.
async fn request_turn(
    session: &mut Session<'_>,
    state: &Cycle,
    reserved: CostReservation,
    progress: &Progress,
) -> Result<Result<Turn, ModelError>, Halt> {
    let model = session.context.model;
    let mut turn = model.request_turn(&state.conversation, progress);
    let mut allowed = None;
    loop {
        // The future ends at each update, because each round looks for a stop again.
        let news = async {
            tokio::select! {
                biased;
                turn = &mut turn => Ok(turn),
                usage = wait_past_allowance(progress, allowed) => Err(usage),
            }
        };
        let usage = match stop::run_unless_kept_local(session, news).await? {
            Ok(turn) => return Ok(turn),
            Err(usage) => usage,
        };
        let output = compute_allowance(usage.output);
        allowed = Some(output);
        let most = reserved.limit_cost(price_usage(session, Usage { output, ..usage }, None));
        // The update can be repeated: one cut off by a server's restart is written again. A stopping server may cut off the next one too.
        let mut updated = session.store.ledger_mut().bring_along(reserved.reservation, &most);
        for _ in 0..UPDATE_RETRIES {
            if !matches!(updated, Err(StoreError::Server(_))) {
                break;
            }
            updated = session.store.ledger_mut().bring_along(reserved.reservation, &most);
        }
        updated?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_charged_in_a_handful_of_updates_and_always_in_advance() {
        let (mut allowed, mut writes) = (None, 0);
        for output in 1..=128_000 {
            if allowed.is_none_or(|allowed| output > allowed) {
                allowed = Some(compute_allowance(output));
                writes += 1;
            }
            assert!(allowed.is_some_and(|allowed| output <= allowed && allowed <= (2 * output).max(FIRST_ALLOWANCE)));
        }
        assert_eq!(writes, 9);
    }
}
