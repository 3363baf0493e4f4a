//! The cycle's state machine: it reduces a journal to the next step. Pure, and defined for every journal.
//!
//! [`Cycle::apply`] takes entries in the order of the journal; [`Cycle::next`] returns the next step. A new cycle and one resumed after a
//! crash differ only in the source of their entries.

mod calls;
mod folding;
mod step;

use std::collections::BTreeSet;

use reveille_base::{
    types::{Stop, Usage},
    words::truncate_text,
};
use reveille_model::{
    Conversation,
    content::{assistant_message, join_text, tool_calls},
};
use reveille_policy::Decision;
use reveille_store::{Entry, MessageOutcome};
use reveille_tools::Plan;

use self::calls::{CallResult, Pending, render_results};
pub use self::{
    calls::{ToolRequest, find_doubt},
    step::{FailedCall, Receipt, Step, Summary},
};
use crate::decide::{
    fold::{self, FoldedTokens, Folding},
    limits::{GO_ON, Limits, Meter, Reached, Repeated, Repeats, is_reserved},
};

/// The maximum number of continuations of a truncated text.
const MAX_CONTINUATIONS: u32 = 2;

/// The number of failed calls kept, newest last.
const MAX_FAILED: usize = 20;

/// The maximum length at which a repeated call's arguments are shown, in characters.
const ARGUMENTS_CHARS_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// It is the model's turn.
    Asking,
    /// The calls of the last turn wait for their outcomes.
    Acting(Vec<Pending>),
    /// The last turn made no calls, or was refused.
    Spoken(Stop),
    /// The last turn isn't acceptable in a conversation: it is left out and requested again.
    Unusable,
    /// The last turn did no work. The model gets this reply, followed by the next request.
    Noted(&'static str),
    /// The last turn was the conversation's summary.
    Summed(Summary),
}

/// The state of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The conversation with the model.
    pub conversation: Conversation,
    /// Messages in the conversation that are neither answered nor put aside.
    pub open: Vec<i64>,
    /// All messages ever in the conversation.
    pub messages: Vec<i64>,
    /// Messages put aside for another model.
    pub kept: Vec<i64>,
    /// Keys of the reasons given to the model, to be marked as handled at the end.
    pub handles: Vec<String>,
    /// The last commit up to which the model was shown people's commits.
    pub head_shown: Option<String>,
    /// The number of texts sent to the asking chat.
    pub replies: usize,
    /// The last plan.
    pub plan: Option<Plan>,
    /// Completed effects, in order.
    pub receipts: Vec<Receipt>,
    /// The number of receipts from before the cycle was tainted. `None` if it is untainted.
    pub own_receipts: Option<usize>,
    /// The tokens of all turns, including discarded ones.
    pub usage: Usage,
    /// The number of turns received.
    pub turns: u32,
    /// The cycle's work, for its limits.
    pub meter: Meter,
    /// The origins of untrusted text in the conversation, in order of arrival.
    pub taints: Vec<String>,
    /// The conversation's length and its foldings.
    pub folding: Folding,
    /// The last calls that were refused, failed, or ended in an unknown way.
    pub failed: Vec<FailedCall>,
    /// The models that worked on the cycle before the current one.
    pub models_before: Vec<String>,
    phase: Phase,
    continuations: u32,
    was_asked_for_answer: bool,
    /// The text of the last turn, with the turns it continues.
    text: String,
    /// True if the next turn continues that text, because the last turn was truncated or paused.
    is_continuing: bool,
    /// True if the conversation has reached the context limit, so that nothing more can be asked.
    is_full: bool,
    /// The number of forced foldings since the last turn that had room.
    forced: u32,
    /// The ids of all tool calls in the conversation. Each id may occur once.
    call_ids: BTreeSet<String>,
    /// Counts identical results of the same call.
    repeats: Repeats,
    /// True if an answer was sent since the model's last turn.
    has_spoken: bool,
}

impl Cycle {
    /// Creates a cycle without entries. Its conversation has only the fixed parts.
    pub fn new(system: String, tools: String) -> Self {
        Self {
            folding: Folding::new(&system, &tools),
            conversation: Conversation { system, tools, ..Conversation::default() },
            open: Vec::new(),
            messages: Vec::new(),
            kept: Vec::new(),
            handles: Vec::new(),
            head_shown: None,
            replies: 0,
            plan: None,
            receipts: Vec::new(),
            own_receipts: None,
            usage: Usage::default(),
            turns: 0,
            meter: Meter::default(),
            taints: Vec::new(),
            failed: Vec::new(),
            models_before: Vec::new(),
            phase: Phase::Asking,
            continuations: 0,
            was_asked_for_answer: false,
            text: String::new(),
            is_continuing: false,
            is_full: false,
            forced: 0,
            call_ids: BTreeSet::new(),
            repeats: Repeats::default(),
            has_spoken: false,
        }
    }

    /// The last text of the model.
    pub fn last_text(&self) -> &str {
        self.text.trim()
    }

    /// Returns `true` if the model has ended its turn by itself, so that nothing remains to be asked.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Spoken(Stop::EndTurn | Stop::StopSequence))
    }

    /// Returns `true` if the model has ended a turn too early, and was asked for more.
    pub fn was_asked_for_more(&self) -> bool {
        self.was_asked_for_answer
    }

    /// Rebuilds a cycle from its journal.
    pub fn replay(system: String, tools: String, journal: &[Entry]) -> Self {
        let mut cycle = Self::new(system, tools);
        for entry in journal {
            cycle.apply(entry);
        }
        cycle
    }

    /// Applies an entry.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Said { raw, messages, handles, head, taint } => {
                self.add_taint(taint.as_deref());
                self.handles.extend(handles.iter().cloned());
                self.head_shown = head.clone().or(self.head_shown.take());
                self.conversation.messages.push(raw.clone());
                self.folding.add_message(raw);
                self.open.extend(messages);
                self.messages.extend(messages);
                match &self.phase {
                    Phase::Spoken(Stop::MaxTokens) => {
                        self.continuations += 1;
                        self.is_continuing = true;
                    }
                    Phase::Spoken(_) if messages.is_empty() => self.was_asked_for_answer = true,
                    _ => {}
                }
                if !messages.is_empty() {
                    self.was_asked_for_answer = false;
                    self.text.clear();
                    self.is_continuing = false;
                    self.repeats.forget();
                    self.folding.cancel_summary();
                }
                self.phase = Phase::Asking;
            }
            Entry::Discarded { usage, .. } => self.usage += *usage,
            Entry::Turn { content, stop, usage } => self.apply_turn(content, stop, *usage),
            // A request without an answer is no round, so an unavailable model doesn't use up the limit.
            Entry::Asked | Entry::Verified { .. } => {}
            Entry::FoldAsked { ask, .. } => self.folding.record_ask(*ask),
            Entry::Folded { raw, messages, before, after } => {
                self.fold(raw, FoldedTokens { messages: *messages, before: *before, after: *after });
            }
            Entry::Handed { from, system, tools, raw, .. } => self.fall_back(from, (system, tools), raw),
            Entry::Worked { ms } => self.meter.add_work(*ms),
            Entry::Judged { call, .. } if *call == self.meter.question_id() => self.meter.mark_asked(),
            Entry::Decided { call, is_approved, why } if *call == self.meter.question_id() => {
                self.meter.record_decision(*is_approved, why);
            }
            Entry::Judged { call, verdict } => {
                if let Some(pending) = self.find_pending(call) {
                    pending.verdict = Some(verdict.decision);
                }
            }
            Entry::Decided { call, is_approved, why } => {
                if let Some(pending) = self.find_pending(call) {
                    pending.decided = Some((*is_approved, why.clone()));
                }
            }
            Entry::Called { call, taint, .. } => {
                self.add_taint(taint.as_deref());
                if let Some(pending) = self.find_pending(call) {
                    pending.was_begun = true;
                }
            }
            Entry::Outcome { call, name, content, is_error, receipt, closed, taint, image } => {
                self.add_taint(taint.as_deref());
                if *is_error {
                    self.note_failure(call, name, taint.is_none().then_some(content));
                }
                self.apply_outcome(
                    call,
                    name,
                    CallResult { content: content.clone(), is_error: *is_error, image: image.clone() },
                );
                if !is_error {
                    // A memory lookup has no receipt, since nothing was written.
                    if receipt.is_some() {
                        self.folding.record_call(name);
                    }
                    self.receipts.push(Receipt { tool: name.clone(), what: receipt.clone() });
                    self.replies += usize::from(name == "reply");
                    if name == "keep" {
                        self.kept.extend(closed);
                    }
                }
                self.open.retain(|id| !closed.contains(id));
            }
            Entry::Answered { messages, receipt } => {
                self.receipts.push(Receipt { tool: "reply".to_owned(), what: Some(receipt.clone()) });
                self.replies += 1;
                self.has_spoken = true;
                self.open.retain(|id| !messages.contains(id));
            }
            Entry::ByRule { receipts, handles, head } => {
                let receipt = |what: &String| Receipt { tool: String::new(), what: Some(what.clone()) };
                self.receipts.extend(receipts.iter().map(receipt));
                self.handles.extend(handles.iter().cloned());
                self.head_shown.clone_from(head);
            }
        }
    }

    /// Returns the next step.
    pub fn next(&self, limits: &Limits) -> Step {
        if let Some(repeated) = self.repeats.find_excessive_repeat(limits) {
            return self.end_loop(repeated);
        }
        match &self.phase {
            Phase::Asking if self.is_full => self.make_room(),
            Phase::Asking if self.is_to_fold_by_rule(limits) => Step::Fold(self.forced_summary()),
            Phase::Asking => self.ask_model(limits),
            Phase::Acting(calls) => next_call(calls),
            Phase::Spoken(stop) => self.decide_after_text(stop),
            Phase::Noted(reply) => Step::Tell(build_user_message(reply)),
            Phase::Summed(summary) => Step::Fold(summary.clone()),
            Phase::Unusable => Step::Say(build_user_message(
                "(Your last turn gave a tool call an id that another call has. None of its calls was run. Call again.)",
            )),
        }
    }

    /// Lists the calls of the last turn that the policy hasn't judged yet, in their order.
    pub fn unjudged_calls(&self) -> Vec<ToolRequest> {
        let Phase::Acting(calls) = &self.phase else { return Vec::new() };
        let is_open = |pending: &&Pending| {
            pending.outcome.is_none() && pending.fault.is_none() && !pending.was_begun && pending.verdict.is_none()
        };
        calls.iter().filter(is_open).map(|pending| pending.request.clone()).collect()
    }

    /// Requests the model's next turn, unless a limit is reached.
    fn ask_model(&self, limits: &Limits) -> Step {
        if let Some(why) = self.meter.refusal() {
            return self.end_with_reason(&format!("I stopped after {}. {why}", self.meter.taken.describe()));
        }
        match self.meter.find_reached_limit(limits) {
            Some(reached) if self.meter.is_asked() => Step::Await(self.build_question(&reached)),
            Some(reached) => Step::Limit(self.build_question(&reached)),
            None => Step::Ask,
        }
    }

    /// Returns the step that comes before a slow call once the working time is over: to ask whether to continue, to wait for the answer, or
    /// to reject the call. `None` if the call may begin. The check is needed because a turn can hold many slow calls.
    pub fn check_call(&self, call: &ToolRequest, limits: &Limits) -> Option<Step> {
        if let Some(why) = self.meter.refusal() {
            let why = format!("{why} This was not run; tell your person what is left undone.");
            return Some(Step::Reject { call: call.clone(), why });
        }
        let reached = self.meter.find_reached_limit(limits).filter(Reached::is_of_time)?;
        let question = self.build_question(&reached);
        Some(if self.meter.is_asked() { Step::Await(question) } else { Step::Limit(question) })
    }

    /// Builds the question whether to continue.
    fn build_question(&self, reached: &Reached) -> ToolRequest {
        let more = serde_json::json!({ "more": reached.stretch.describe() });
        ToolRequest { id: self.meter.question_id(), name: GO_ON.to_owned(), input: more.to_string() }
    }

    /// Ends a cycle that repeats itself. The person is told even if all messages are answered, since nothing else would tell them.
    fn end_loop(&self, Repeated { name, input, times }: &Repeated) -> Step {
        if self.has_spoken {
            return Step::Finish;
        }
        let input = truncate_text(&input.replace('`', "'"), ARGUMENTS_CHARS_MAX);
        let why = format!(
            "I stopped because I was going round in circles: I made the same call {times} times with the same result \
             (`{name} {input}`)."
        );
        Step::Answer { text: self.render_closing(&why), outcome: MessageOutcome::Answered }
    }

    /// Ends a stuck cycle with an account of its work, or fails with `failure` if there is nothing to report.
    fn end_or_fail(&self, why: &str, failure: &str) -> Step {
        let has_done = self.receipts.iter().any(|receipt| receipt.what.is_some());
        if self.open.is_empty() || has_done || !self.text.trim().is_empty() {
            return self.end_with_reason(why);
        }
        Step::Fail(failure.to_owned())
    }

    /// Ends a stuck cycle: open messages are answered with the reason.
    pub fn end_with_reason(&self, why: &str) -> Step {
        if self.open.is_empty() {
            return Step::Finish;
        }
        Step::Answer { text: self.render_closing(why), outcome: MessageOutcome::Answered }
    }

    /// Builds the final text of a stuck cycle: the model's last words, the reason, and the completed work.
    fn render_closing(&self, why: &str) -> String {
        let done: Vec<_> = self.receipts.iter().filter_map(|receipt| receipt.what.as_deref()).collect();
        let done = if done.is_empty() {
            "Nothing was changed.".to_owned()
        } else {
            format!("Done so far:\n{}", done.iter().map(|what| format!("- {what}")).collect::<Vec<_>>().join("\n"))
        };
        let said = if self.text.trim().is_empty() { String::new() } else { format!("{}\n\n", self.text.trim()) };
        format!("{said}{why} {done}")
    }

    /// Records a failed call for a model that continues later. `result` is the call's result, unless it contains untrusted text.
    fn note_failure(&mut self, call: &str, tool: &str, result: Option<&String>) {
        let Some(pending) = self.find_pending(call) else { return };
        let input = pending.request.input.clone();
        self.failed.push(FailedCall { tool: tool.to_owned(), input, why: result.cloned() });
        let before = self.failed.len().saturating_sub(MAX_FAILED);
        self.failed.drain(..before);
    }

    fn apply_turn(&mut self, content: &str, stop: &Stop, usage: Usage) {
        self.usage += usage;
        self.turns += 1;
        self.meter.count_round();
        self.has_spoken = false;
        self.folding.add_answer(content, &usage);
        let calls = tool_calls(content, stop);
        let has_new_ids = calls.iter().all(|call| !is_reserved(&call.id) && self.call_ids.insert(call.id.clone()));
        if !std::mem::take(&mut self.is_continuing) {
            self.text.clear();
        }
        if !has_new_ids {
            self.phase = Phase::Unusable;
            return;
        }
        self.conversation.messages.extend(assistant_message(content));
        let text = join_text(content);
        let mut calls: Vec<_> = calls.into_iter().map(Pending::new).collect();
        if !matches!(stop, Stop::Refusal(_)) && self.fold_turn(&text, stop, &calls) {
            return;
        }
        if self.folding.is_summing() {
            calls.iter_mut().for_each(|call| call.fault = Some(fold::NO_CALLS_NOW));
        }
        self.text.push_str(&text);
        self.is_full |= *stop == Stop::ContextExceeded;
        self.forced = if self.is_full { self.forced } else { 0 };
        self.phase = match stop {
            // A refused turn ends the cycle, since the model would refuse another request in this conversation too.
            Stop::Refusal(_) => Phase::Spoken(stop.clone()),
            _ if !calls.is_empty() => Phase::Acting(calls),
            Stop::PauseTurn => {
                self.is_continuing = true;
                Phase::Asking
            }
            _ => Phase::Spoken(stop.clone()),
        };
    }

    fn apply_outcome(&mut self, call: &str, name: &str, result: CallResult) {
        let Some(pending) = self.find_pending(call) else { return };
        let input = pending.request.input.clone();
        pending.outcome = Some(result.clone());
        if name == "plan" && !result.is_error {
            self.plan = serde_json::from_str(&input).ok();
            self.plan.iter().for_each(|plan| self.meter.record_plan(plan.complexity));
        }
        let CallResult { content, is_error, image } = result;
        let digest = format!("{is_error} {content}{}", image.unwrap_or_default());
        self.repeats.record_result(name, &input, &digest);
    }

    fn add_taint(&mut self, origin: Option<&str>) {
        if let Some(origin) = origin
            && !self.taints.iter().any(|known| known == origin)
        {
            self.own_receipts.get_or_insert(self.receipts.len());
            self.taints.push(origin.to_owned());
            self.conversation.is_tainted = true;
        }
    }

    /// Finds the call with this id that waits for its outcome.
    fn find_pending(&mut self, call: &str) -> Option<&mut Pending> {
        let Phase::Acting(calls) = &mut self.phase else { return None };
        calls.iter_mut().find(|pending| pending.request.id == call && pending.outcome.is_none())
    }

    fn decide_after_text(&self, stop: &Stop) -> Step {
        let text = self.text.trim();
        match stop {
            Stop::Refusal(_) if self.open.is_empty() => Step::Finish,
            Stop::Refusal(why) => {
                let why = match why.trim().trim_end_matches('.') {
                    "" => " and gave no reason".to_owned(),
                    why => format!(": {why}"),
                };
                Step::Answer {
                    text: format!("The AI model declined this{why}. Try rephrasing it."),
                    outcome: MessageOutcome::Refused,
                }
            }
            Stop::MaxTokens if self.continuations < MAX_CONTINUATIONS => Step::Say(build_user_message(
                "(Your last turn was cut off at the output limit. Go on exactly where it stopped.)",
            )),
            Stop::MaxTokens => self.end_or_fail(
                "(My answer was cut off here: it was too long.)",
                "my AI model reached its output limit before it said a word",
            ),
            Stop::ContextExceeded => self.make_room(),
            _ if self.open.is_empty() => Step::Join,
            _ if !text.is_empty() => Step::Answer { text: text.to_owned(), outcome: MessageOutcome::Answered },
            _ if !self.was_asked_for_answer => Step::Say(build_user_message(
                "(Your person has had no answer yet. Answer with `reply`, or with plain text; if you can't, say why.)",
            )),
            _ => self.end_or_fail(
                "I worked on this but found no words for an answer.",
                "my AI model answered twice without a word",
            ),
        }
    }
}

fn next_call(calls: &[Pending]) -> Step {
    let Some(pending) = calls.iter().find(|pending| pending.outcome.is_none()) else {
        return Step::Tell(render_results(calls));
    };
    let call = pending.request.clone();
    match pending {
        Pending { fault: Some(why), .. } => Step::Reject { call, why: (*why).to_owned() },
        Pending { was_begun: true, decided, .. } => {
            Step::Again { call, was_allowed: matches!(decided, Some((true, _))) }
        }
        Pending { decided: Some((true, _)), .. } => Step::Allowed(call),
        Pending { decided: Some((false, why)), .. } => Step::Reject { call, why: why.clone() },
        Pending { verdict: Some(Decision::Ask), .. } => Step::Await(call),
        _ => Step::Call(call),
    }
}

/// Builds a user message with one text block.
pub fn build_user_message(text: &str) -> String {
    serde_json::json!({"role": "user", "content": [{"type": "text", "text": text}]}).to_string()
}

#[cfg(test)]
mod tests;
