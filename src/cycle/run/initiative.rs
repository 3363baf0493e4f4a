//! A look for the one most useful thing: what the model is shown, and what stands in the log whatever it makes of it.

use super::deeds::Deeds;
use crate::{
    cycle::{
        context::WakeError,
        decide::brief::escape,
        look::initiative,
        run::own_work_begun::Begun,
        session::{Live, Session},
    },
    memory::initiative::InitiativeCandidate,
    repo::Repo,
    tool::Documents,
};

/// Turns of the model that it takes at most.
const ROUNDS_MAX: u32 = 8;
/// What it may cost, in US dollars. One request may pass that; none is begun after it.
const BUDGET_USD: f64 = 0.10;

/// What is asked of the model.
const ASKED: &str = "\
Nobody has asked for anything. A written rule has weighed your person's tasks and projects; these are worth something, the best first. Do \
one of these three:
1. The one most useful thing that you may do unasked. What would have to ask is refused here: nobody is there to answer.
2. Propose it in one message with `tell`: what you would do, and what for. They answer, and another wake does it.
3. End without a word, if nothing is worth their attention.
Take few steps. What you do is read in the log, so don't report it.";

/// The block, and the choice's line for the log.
pub(in crate::cycle) fn begin(session: &Session<'_>, repo: &Repo) -> Result<Begun, WakeError> {
    let config = session.context.config;
    let documents = Documents::new(repo.root(), Vec::new());
    let weighed = initiative::weighed(&session.store, config, &documents, session.now())?;
    crate::cycle::context::check_readable(&documents)?;
    let mut block = format!("<initiative>\n{ASKED}");
    for candidate in weighed.worthy() {
        block.push_str(&element(candidate));
    }
    block.push_str("\n</initiative>");
    let rule = Deeds::noted(vec![format!("Weighed what to do unasked: {}", weighed.told())]);
    Ok(Begun { block, rule, ..Begun::default() })
}

fn element(candidate: &InitiativeCandidate) -> String {
    let next = match (&candidate.next, candidate.is_project) {
        (Some(goal), true) => format!("\nIts goal: {}\nIt has no open task.", escape(goal)),
        (Some(next), false) => format!("\nIts next step: {}", escape(next)),
        (None, _) => String::new(),
    };
    format!("\n<candidate>\n{}{next}\n</candidate>", escape(&candidate.told()))
}

/// Whether it has taken what it may.
pub(in crate::cycle) fn is_over(session: &Session<'_>, live: &Live) -> Result<bool, WakeError> {
    let spent = session.store.spent_by(&live.cycle.id)?;
    Ok(live.state.meter.taken.rounds >= ROUNDS_MAX || spent.cost_usd >= BUDGET_USD)
}
