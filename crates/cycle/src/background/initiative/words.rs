//! The opening of initiative's cycle: the request and the candidates.

use reveille_memory::initiative::{InitiativeCandidate, Weighed};

use crate::decide::brief::escape;

/// The question to the model.
const ASKED: &str = "\
Nobody has asked for anything. A written rule has weighed your person's tasks and projects; these are worth something, the best first. Do \
one of these three:
1. The one most useful thing that you may do unasked. What would have to ask is refused here: nobody is there to answer.
2. Propose it in one message with `tell`: what you would do, and what for. They answer, and another wake does it. A question as your \
last words is told, too.
3. End without a word, if nothing is worth their attention.
Take few steps. What you do is read in the log, so don't report it.";

fn render_candidate(candidate: &InitiativeCandidate) -> String {
    let next = match (&candidate.next, candidate.is_project) {
        (Some(goal), true) => format!("\nIts goal: {}\nIt has no open task.", escape(goal)),
        (Some(next), false) => format!("\nIts next step: {}", escape(next)),
        (None, _) => String::new(),
    };
    format!("\n<candidate>\n{}{next}\n</candidate>", escape(&candidate.describe()))
}

/// Renders the opening's block with the worthwhile candidates, the best first.
pub(crate) fn render_opening(weighed: &Weighed) -> String {
    let mut block = format!("<initiative>\n{ASKED}");
    for candidate in weighed.worthwhile_candidates() {
        block.push_str(&render_candidate(candidate));
    }
    block.push_str("\n</initiative>");
    block
}

/// The note for a slot without an available model.
pub(crate) const NO_MODEL: &str = "no AI model was available, so this time is skipped";

/// The note for a slot without a worthy candidate.
pub(crate) const NOTHING: &str = "nothing was worth it";
