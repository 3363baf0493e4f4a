//! The cycle's state machine: a journal folded into what to do next. Pure and total.
//!
//! [`Cycle::apply`] takes entries in the order in which they were journalled, [`Cycle::next`] says what follows. A fresh
//! cycle and one that is resumed after a crash differ only in where their entries come from.

mod calls;
mod folding;
mod step;

use std::collections::BTreeSet;

use reveille_base::{
    types::{Stop, Usage},
    words::shortened,
};
use reveille_model::{
    Conversation,
    content::{assistant_message, text_of, tool_calls},
};
use reveille_policy::Decision;
use reveille_store::{Entry, MessageOutcome};
use reveille_tools::Plan;

use self::calls::{CallResult, Pending, results};
pub use self::{
    calls::{ToolRequest, doubt},
    step::{FailedCall, Receipt, Step, Summary},
};
use super::{
    fold::{self, FoldedTokens, Folding},
    limits::{GO_ON, Limits, Meter, Reached, Repeated, Repeats, is_reserved},
};

/// A cut-off text is continued at most this often.
const MAX_CONTINUATIONS: u32 = 2;

/// Calls that came to nothing which are kept, the last.
const MAX_FAILED: usize = 20;

/// The longest arguments that are shown of a call that was made again and again, in characters.
const ARGUMENTS_CHARS_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// The conversation waits for the model.
    Asking,
    /// Calls of the last turn wait for outcomes.
    Acting(Vec<Pending>),
    /// The last turn called nothing, or was refused.
    Spoken(Stop),
    /// The last turn can't be sent back: it is left out of the conversation and asked for anew.
    Unusable,
    /// The last turn was none that goes on with the work: the model is told this, and asked behind it for what is still needed.
    Noted(&'static str),
    /// The last turn was the conversation's summary.
    Summed(Summary),
}

/// The state of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// What the model has been told and has said.
    pub conversation: Conversation,
    /// Messages in the conversation that are neither answered nor put aside.
    pub open: Vec<i64>,
    /// All messages that were ever in the conversation.
    pub messages: Vec<i64>,
    /// Messages that were put aside for another model.
    pub kept: Vec<i64>,
    /// Keys of the reasons that it was told of, which are reasons no more once it has ended.
    pub handles: Vec<String>,
    /// The commit up to which it was shown what people committed.
    pub head_shown: Option<String>,
    /// Texts sent to the asking chat.
    pub replies: usize,
    /// The last plan.
    pub plan: Option<Plan>,
    /// What really happened, in order.
    pub receipts: Vec<Receipt>,
    /// Of these so many came before it had read anything of others, if it has.
    pub own_receipts: Option<usize>,
    /// Tokens of all turns, discarded ones included.
    pub usage: Usage,
    /// Turns received.
    pub turns: u32,
    /// How far it has gone, of how far it may go.
    pub meter: Meter,
    /// Whose bytes the conversation holds besides its person's and the memory's, in the order in which they came.
    pub taints: Vec<String>,
    /// How long the conversation is, and how often it was folded.
    pub folding: Folding,
    /// The last calls that came to nothing: refused, failed, or of unknown end.
    pub failed: Vec<FailedCall>,
    /// The models that had it before the present one.
    pub models_before: Vec<String>,
    phase: Phase,
    continuations: u32,
    was_asked_for_answer: bool,
    /// Text of the last turn, and of those it continues.
    text: String,
    /// Whether the next turn goes on with that text: the last one was cut off or paused.
    is_going_on: bool,
    /// Whether the conversation has reached the context's limit: nothing more can be asked.
    is_full: bool,
    /// Foldings since the model's last turn that had room, none of which it was asked for a summary for.
    forced: u32,
    /// Ids of all tool calls in the conversation: each is to be used once.
    call_ids: BTreeSet<String>,
    /// What its calls have come to.
    repeats: Repeats,
    /// Whether a text was sent as the answer since the model's last turn.
    has_spoken: bool,
}

impl Cycle {
    /// A cycle before its first entry, with the fixed parts of its conversation.
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
            is_going_on: false,
            is_full: false,
            forced: 0,
            call_ids: BTreeSet::new(),
            repeats: Repeats::default(),
            has_spoken: false,
        }
    }

    /// What the model has said last.
    pub fn last_text(&self) -> &str {
        self.text.trim()
    }

    /// Whether the model has ended its turn by itself: nothing is to be asked.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Spoken(Stop::EndTurn | Stop::StopSequence))
    }

    /// Whether the model has ended its turn before with something missing, and was told so.
    pub fn was_asked_for_more(&self) -> bool {
        self.was_asked_for_answer
    }

    /// A cycle as its journal left it.
    pub fn replay(system: String, tools: String, journal: &[Entry]) -> Self {
        let mut cycle = Self::new(system, tools);
        for entry in journal {
            cycle.apply(entry);
        }
        cycle
    }

    /// Takes an entry into account.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Said { raw, messages, handles, head, taint } => {
                self.taint(taint.as_deref());
                self.handles.extend(handles.iter().cloned());
                self.head_shown = head.clone().or(self.head_shown.take());
                self.conversation.messages.push(raw.clone());
                self.folding.said(raw);
                self.open.extend(messages);
                self.messages.extend(messages);
                match &self.phase {
                    Phase::Spoken(Stop::MaxTokens) => {
                        self.continuations += 1;
                        self.is_going_on = true;
                    }
                    Phase::Spoken(_) if messages.is_empty() => self.was_asked_for_answer = true,
                    _ => {}
                }
                if !messages.is_empty() {
                    self.was_asked_for_answer = false;
                    self.text.clear();
                    self.is_going_on = false;
                    self.repeats.forget();
                    self.folding.interrupted();
                }
                self.phase = Phase::Asking;
            }
            Entry::Discarded { usage, .. } => self.usage += *usage,
            Entry::Turn { content, stop, usage } => self.turn(content, stop, *usage),
            // A request that had no answer is no round: however long a model is out of reach, its work is not cut short.
            Entry::Asked | Entry::Verified { .. } => {}
            Entry::FoldAsked { ask, .. } => self.folding.asked(*ask),
            Entry::Folded { raw, messages, before, after } => {
                self.fold(raw, FoldedTokens { messages: *messages, before: *before, after: *after });
            }
            Entry::Handed { from, system, tools, raw, .. } => self.hand_over(from, (system, tools), raw),
            Entry::Worked { ms } => self.meter.worked(*ms),
            Entry::Judged { call, .. } if *call == self.meter.question() => self.meter.asked(),
            Entry::Decided { call, is_approved, why } if *call == self.meter.question() => {
                self.meter.decided(*is_approved, why);
            }
            Entry::Judged { call, verdict } => {
                if let Some(pending) = self.pending(call) {
                    pending.verdict = Some(verdict.decision);
                }
            }
            Entry::Decided { call, is_approved, why } => {
                if let Some(pending) = self.pending(call) {
                    pending.decided = Some((*is_approved, why.clone()));
                }
            }
            Entry::Called { call, taint, .. } => {
                self.taint(taint.as_deref());
                if let Some(pending) = self.pending(call) {
                    pending.was_begun = true;
                }
            }
            Entry::Outcome { call, name, content, is_error, receipt, closed, taint, image } => {
                self.taint(taint.as_deref());
                if *is_error {
                    self.note_failure(call, name, taint.is_none().then_some(content));
                }
                self.outcome(
                    call,
                    name,
                    CallResult { content: content.clone(), is_error: *is_error, image: image.clone() },
                );
                if !is_error {
                    // A look at the memory has no receipt: it wrote nothing down.
                    if receipt.is_some() {
                        self.folding.did(name);
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

    /// What follows from the state.
    pub fn next(&self, limits: &Limits) -> Step {
        if let Some(repeated) = self.repeats.too_many(limits) {
            return self.go_round_no_more(repeated);
        }
        match &self.phase {
            Phase::Asking if self.is_full => self.make_room(),
            Phase::Asking if self.is_to_fold_by_rule(limits) => Step::Fold(self.forced_summary()),
            Phase::Asking => self.ask(limits),
            Phase::Acting(calls) => next_call(calls),
            Phase::Spoken(stop) => self.after_text(stop),
            Phase::Noted(told) => Step::Tell(user_text(told)),
            Phase::Summed(summary) => Step::Fold(summary.clone()),
            Phase::Unusable => Step::Say(user_text(
                "(Your last turn gave a tool call an id that another call has. None of its calls was run. Call again.)",
            )),
        }
    }

    /// Calls of the last turn of which nothing is known yet, in their order.
    pub fn unjudged_calls(&self) -> Vec<ToolRequest> {
        let Phase::Acting(calls) = &self.phase else { return Vec::new() };
        let is_open = |pending: &&Pending| {
            pending.outcome.is_none() && pending.fault.is_none() && !pending.was_begun && pending.verdict.is_none()
        };
        calls.iter().filter(is_open).map(|pending| pending.request.clone()).collect()
    }

    /// The model's next turn, if it may still take one.
    fn ask(&self, limits: &Limits) -> Step {
        if let Some(why) = self.meter.refusal() {
            return self.end_with(&format!("I stopped after {}. {why}", self.meter.taken.describe()));
        }
        match self.meter.reached(limits) {
            Some(reached) if self.meter.is_asked() => Step::Await(self.question(&reached)),
            Some(reached) => Step::Limit(self.question(&reached)),
            None => Step::Ask,
        }
    }

    /// What comes before a call that takes time, once the working time is over: the question whether to go on, or its answer. None:
    /// the call may begin. A turn can hold many calls, and each can take as long as its tool lets it.
    pub fn before_call(&self, call: &ToolRequest, limits: &Limits) -> Option<Step> {
        if let Some(why) = self.meter.refusal() {
            let why = format!("{why} This was not run; tell your person what is left undone.");
            return Some(Step::Reject { call: call.clone(), why });
        }
        let reached = self.meter.reached(limits).filter(Reached::is_of_time)?;
        let question = self.question(&reached);
        Some(if self.meter.is_asked() { Step::Await(question) } else { Step::Limit(question) })
    }

    /// The question whether to go on.
    fn question(&self, reached: &Reached) -> ToolRequest {
        let more = serde_json::json!({ "more": reached.stretch.describe() });
        ToolRequest { id: self.meter.question(), name: GO_ON.to_owned(), input: more.to_string() }
    }

    /// Ends a cycle that goes round in circles. Its person is told even if all is answered: nobody else would notice.
    fn go_round_no_more(&self, Repeated { name, input, times }: &Repeated) -> Step {
        if self.has_spoken {
            return Step::Finish;
        }
        let input = shortened(&input.replace('`', "'"), ARGUMENTS_CHARS_MAX);
        let why = format!(
            "I stopped because I was going round in circles: I made the same call {times} times and it came to the same each time \
             (`{name} {input}`)."
        );
        Step::Answer { text: self.closing(&why), outcome: MessageOutcome::Answered }
    }

    /// Ends a cycle that can't go on with an account of what there is; one that has nothing to say fails, for this reason.
    fn end_with_words(&self, why: &str, failure: &str) -> Step {
        let has_done = self.receipts.iter().any(|receipt| receipt.what.is_some());
        if self.open.is_empty() || has_done || !self.text.trim().is_empty() {
            return self.end_with(why);
        }
        Step::Fail(failure.to_owned())
    }

    /// Ends a cycle that can't go on: open messages get a reason as their answer.
    pub fn end_with(&self, why: &str) -> Step {
        if self.open.is_empty() {
            return Step::Finish;
        }
        Step::Answer { text: self.closing(why), outcome: MessageOutcome::Answered }
    }

    /// The last words of a cycle that can't go on: what the model has said last, why it ends, and what was done.
    fn closing(&self, why: &str) -> String {
        let done: Vec<_> = self.receipts.iter().filter_map(|receipt| receipt.what.as_deref()).collect();
        let done = if done.is_empty() {
            "Nothing was changed.".to_owned()
        } else {
            format!("Done so far:\n{}", done.iter().map(|what| format!("- {what}")).collect::<Vec<_>>().join("\n"))
        };
        let said = if self.text.trim().is_empty() { String::new() } else { format!("{}\n\n", self.text.trim()) };
        format!("{said}{why} {done}")
    }

    /// Keeps of a call that came to nothing what another model has to know. `told`: in our own words.
    fn note_failure(&mut self, call: &str, tool: &str, told: Option<&String>) {
        let Some(pending) = self.pending(call) else { return };
        let input = pending.request.input.clone();
        self.failed.push(FailedCall { tool: tool.to_owned(), input, why: told.cloned() });
        let before = self.failed.len().saturating_sub(MAX_FAILED);
        self.failed.drain(..before);
    }

    fn turn(&mut self, content: &str, stop: &Stop, usage: Usage) {
        self.usage += usage;
        self.turns += 1;
        self.meter.round();
        self.has_spoken = false;
        self.folding.heard(content, &usage);
        let calls = tool_calls(content, stop);
        let has_own_ids = calls.iter().all(|call| !is_reserved(&call.id) && self.call_ids.insert(call.id.clone()));
        if !std::mem::take(&mut self.is_going_on) {
            self.text.clear();
        }
        if !has_own_ids {
            self.phase = Phase::Unusable;
            return;
        }
        self.conversation.messages.extend(assistant_message(content));
        let text = text_of(content);
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
            // A refused turn ends the cycle: asking again on top of it is refused again.
            Stop::Refusal(_) => Phase::Spoken(stop.clone()),
            _ if !calls.is_empty() => Phase::Acting(calls),
            Stop::PauseTurn => {
                self.is_going_on = true;
                Phase::Asking
            }
            _ => Phase::Spoken(stop.clone()),
        };
    }

    fn outcome(&mut self, call: &str, name: &str, told: CallResult) {
        let Some(pending) = self.pending(call) else { return };
        let input = pending.request.input.clone();
        pending.outcome = Some(told.clone());
        if name == "plan" && !told.is_error {
            self.plan = serde_json::from_str(&input).ok();
            self.plan.iter().for_each(|plan| self.meter.planned(plan.complexity));
        }
        let CallResult { content, is_error, image } = told;
        let result = format!("{is_error} {content}{}", image.unwrap_or_default());
        self.repeats.note(name, &input, &result);
    }

    fn taint(&mut self, origin: Option<&str>) {
        if let Some(origin) = origin
            && !self.taints.iter().any(|known| known == origin)
        {
            self.own_receipts.get_or_insert(self.receipts.len());
            self.taints.push(origin.to_owned());
            self.conversation.is_tainted = true;
        }
    }

    /// The call of this id, if it waits for its outcome.
    fn pending(&mut self, call: &str) -> Option<&mut Pending> {
        let Phase::Acting(calls) = &mut self.phase else { return None };
        calls.iter_mut().find(|pending| pending.request.id == call && pending.outcome.is_none())
    }

    fn after_text(&self, stop: &Stop) -> Step {
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
            Stop::MaxTokens if self.continuations < MAX_CONTINUATIONS => Step::Say(user_text(
                "(Your last turn was cut off at the output limit. Go on exactly where it stopped.)",
            )),
            Stop::MaxTokens => self.end_with_words(
                "(My answer was cut off here: it was too long.)",
                "my AI model used up its longest answer before it said a word",
            ),
            Stop::ContextExceeded => self.make_room(),
            _ if self.open.is_empty() => Step::Join,
            _ if !text.is_empty() => Step::Answer { text: text.to_owned(), outcome: MessageOutcome::Answered },
            _ if !self.was_asked_for_answer => Step::Say(user_text(
                "(Your person has had no answer yet. Answer with `reply`, or with plain text; if you can't, say why.)",
            )),
            _ => self.end_with_words(
                "I worked on this but found no words for an answer.",
                "my AI model answered twice without a word",
            ),
        }
    }
}

fn next_call(calls: &[Pending]) -> Step {
    let Some(pending) = calls.iter().find(|pending| pending.outcome.is_none()) else {
        return Step::Tell(results(calls));
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

/// A user message of one text block.
pub fn user_text(text: &str) -> String {
    serde_json::json!({"role": "user", "content": [{"type": "text", "text": text}]}).to_string()
}

#[cfg(test)]
mod tests;
