//! Initiative in its cycle: the start, the limits, and the proposal at the end.

use reveille_base::words::{one_line, truncate_text};
use reveille_git::Repo;
use reveille_policy::Decision;
use reveille_store::{Change, Entry};
use reveille_tools::{Documents, Refusal};

use crate::run::record::effects::RuleEffects;
use crate::{
    background::{begun::StartedJob, initiative},
    context::WakeError,
    decide::taint,
    run::record,
    session::{Live, Session},
};

/// The maximum number of the model's turns.
const ROUNDS_MAX: u32 = 8;
/// The maximum cost, in US dollars. One request may exceed it; none starts afterwards.
const BUDGET_USD: f64 = 0.10;

/// The maximum length of a failed proposal in the log, in characters.
const MAX_LOGGED_CHARS: usize = 300;
/// The tool that sends a proposal.
const TELL: &str = "tell";

/// Builds the block for the opening message, and the line for the log.
pub(crate) fn begin(session: &Session<'_>, repo: &Repo) -> Result<StartedJob, WakeError> {
    let config = session.context.config;
    let documents = Documents::new(repo.root(), Vec::new());
    let weighed = initiative::look::weigh_candidates(&session.store, config, &documents, session.now())?;
    crate::context::check_readable(&documents)?;
    let block = initiative::words::render_opening(&weighed);
    let rule = RuleEffects::from_receipts(vec![format!("Weighed what to do unasked: {}", weighed.describe())]);
    Ok(StartedJob { block, rule, ..StartedJob::default() })
}

/// Returns `true` if the turns or the budget are used up.
pub(crate) fn is_over(session: &Session<'_>, live: &Live) -> Result<bool, WakeError> {
    let spent = session.store.ledger().sum_cycle_cost(&live.cycle.id)?;
    Ok(live.state.meter.taken.rounds >= ROUNDS_MAX || spent.cost_usd >= BUDGET_USD)
}

/// Sends a proposal that the model made as plain text, as `tell` would. If the model neither did nor proposed anything, the same question
/// isn't asked again until something changes.
pub(crate) fn conclude(session: &mut Session<'_>, live: &mut Live) -> Result<(), WakeError> {
    let has_done =
        |live: &Live| live.state.receipts.iter().any(|receipt| !receipt.tool.is_empty() && receipt.what.is_some());
    let has_told = live.state.receipts.iter().any(|receipt| receipt.tool == TELL);
    if !has_told && live.state.is_at_rest() && initiative::decide::is_proposal(live.state.last_text()) {
        return send_proposal(session, live);
    }
    if !has_done(live) {
        let (config, now) = (session.context.config, session.now());
        let documents = Documents::new(&config.repo_dir(), Vec::new());
        let weighed = initiative::look::weigh_candidates(&session.store, config, &documents, now)?;
        let value = initiative::look::digest_question(&weighed, config, now);
        session
            .store
            .journal_mut()
            .apply_changes(&live.cycle.id, &[Change::Handled { key: initiative::look::ASKED.to_owned(), value }])?;
    }
    Ok(())
}

/// Sends the model's last words, if the policy allows it.
fn send_proposal(session: &mut Session<'_>, live: &mut Live) -> Result<(), WakeError> {
    let tooling = session.tooling();
    let text = live.state.last_text().to_owned();
    let input = serde_json::json!({"key": "initiative", "text": text}).to_string();
    live.world.clock.now = session.now();
    let taint = taint::join_taints(&live.state.taints);
    let verdict = tooling.registry.judge(TELL, &input, &live.world, taint.as_deref());
    let is_allowed = verdict.is_some_and(|verdict| verdict.decision == Decision::Allow);
    let refused = || Refusal::new("It would need approval first.".to_owned());
    let told = if is_allowed { tooling.registry.call(TELL, &input, &live.world) } else { Err(refused()) };
    let (receipt, changes) = match told {
        Ok(done) => (done.receipt.unwrap_or_default(), done.changes),
        Err(why) => (
            format!("Didn't send the proposal “{}”: {}", truncate_text(&one_line(&text), MAX_LOGGED_CHARS), why.why),
            Vec::new(),
        ),
    };
    let receipt = session.context.redactor.redact(&receipt);
    let done = Entry::ByRule { receipts: vec![receipt], handles: Vec::new(), head: live.state.head_shown.clone() };
    let changes = record::mask_changes(session, changes);
    record::record_entry(session, live, &done, &changes)
}
