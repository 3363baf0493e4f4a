//! Reads a cycle's story from the store. The journal's entries are applied one by one, as in the cycle itself.

use chrono::{DateTime, Utc};

use reveille_base::{
    redact::Redactor,
    types::{Stop, Usage},
};
use reveille_cycle::decide::limits::GO_ON;
use reveille_model::content::{join_text, tool_calls};
use reveille_policy::Verdict;
use reveille_store::{Approval, CycleRow, Entry, NO_MODEL, PaidRequest, Spent, Store, StoreError, WrittenText};
use reveille_tools::unwrap_call;

use super::{
    clean_for_display,
    story::{
        AskedMessage, CallDecision, JournalState, StoryCall, StoryCallResult, StoryRecording, StoryStep, StoryTurn,
        WakeStory,
    },
};

/// Reads the story of a cycle so far.
pub fn load_story(store: &Store, redactor: &Redactor, row: &CycleRow) -> Result<WakeStory, StoreError> {
    store.with_snapshot(|| {
        let id = &row.cycle.id;
        let journal = store.history().dated_journal(id)?;
        let requests = store.history().list_cycle_requests(id)?;
        let has_journal = store.history().has_journal(id)?;
        let damaged = journal.iter().filter(|line| line.entry.is_none()).count();
        let recording = if has_journal { None } else { store.history().find_cycle_recording(id)? };
        let masked = |text: &str| clean_for_display(redactor, text);
        let asked = store.history().list_cycle_messages(std::slice::from_ref(id))?.remove(id).unwrap_or_default();
        let said = store.history().list_cycle_texts(id)?;
        let mut story = WakeStory {
            wake_id: id.clone(),
            state: row.state.as_str(),
            trigger: row.cycle.trigger.clone(),
            reasons: row.cycle.reasons.iter().map(|reason| masked(reason)).collect(),
            chat: row.cycle.chat,
            model: (row.cycle.model != NO_MODEL).then(|| row.cycle.model.clone()),
            started_at: row.started_at,
            ended_at: row.ended_at,
            resumed: row.tries,
            error: row.error.as_deref().map(masked),
            commit: row.commit_id.clone(),
            undone: store.undos().find_undo_state(id)?,
            asked: asked.iter().map(|message| AskedMessage::from_incoming(message, masked)).collect(),
            journal: match (has_journal, damaged) {
                (false, _) => JournalState::Forgotten,
                (true, 0) => JournalState::Whole,
                (true, lines) => JournalState::Damaged { lines },
            },
            taints: Vec::new(),
            plan: None,
            not_done: None,
            steps: Vec::new(),
            said: said.into_iter().map(|text| WrittenText { text: masked(&text.text), ..text }).collect(),
            recording: recording
                .map(|found| StoryRecording { narrative: found.kept.narrative, calls: found.kept.calls }),
            spent: sum_spent(&requests),
            reserved_usd: requests.iter().filter(|paid| paid.is_reserved).map(|paid| paid.spent.cost_usd).sum(),
        };
        let mut builder = StoryBuilder {
            masked: &masked,
            approvals: store.history().list_cycle_approvals(id)?,
            requests,
            asked_at: None,
        };
        for line in journal {
            if let Some(entry) = line.entry {
                builder.add_entry(&mut story, line.at, entry);
            }
        }
        if let Some(at) = builder.asked_at.take() {
            story.steps.push(StoryStep::Asking { at });
        }
        Ok(story)
    })
}

/// Sums the tokens and the cost of requests.
pub(super) fn sum_spent<'a>(requests: impl IntoIterator<Item = &'a PaidRequest>) -> Spent {
    let mut all = Spent::default();
    for paid in requests {
        all.tokens += paid.spent.tokens;
        all.cost_usd += paid.spent.cost_usd;
    }
    all
}

struct StoryBuilder<'a> {
    masked: &'a dyn Fn(&str) -> String,
    approvals: Vec<Approval>,
    /// The paid requests that no turn has matched yet.
    requests: Vec<PaidRequest>,
    /// The time of the pending request; `None` if no request is pending, `Some(None)` if its time is unreadable.
    asked_at: Option<Option<DateTime<Utc>>>,
}

impl StoryBuilder<'_> {
    fn add_entry(&mut self, story: &mut WakeStory, at: Option<DateTime<Utc>>, entry: Entry) {
        match entry {
            Entry::Said { messages, taint, .. } => {
                let is_opening = !story.steps.iter().any(|step| matches!(step, StoryStep::Turn(_)));
                if !messages.is_empty() && !is_opening {
                    story.steps.push(StoryStep::Heard { at, messages });
                }
                self.add_taint(story, taint);
            }
            Entry::Asked => self.asked_at = Some(at),
            Entry::Discarded { why, usage } => {
                let cost_usd = self.find_cost(&usage);
                self.asked_at = None;
                story.steps.push(StoryStep::Discarded { at, why: (self.masked)(&why), usage, cost_usd });
            }
            Entry::Turn { content, stop, usage } => self.add_turn(story, at, &content, stop, usage),
            Entry::Judged { call, verdict } if is_limit(&call) => {
                story.steps.push(StoryStep::Limit { at, reasons: self.mask_all(&verdict.reasons), decided: None });
            }
            Entry::Judged { call, verdict } => {
                let verdict = Verdict { reasons: self.mask_all(&verdict.reasons), ..verdict };
                if let Some(found) = find_call(story, &call) {
                    found.verdict = Some(verdict);
                }
            }
            Entry::Decided { call, is_approved, why } => {
                let row = self.approvals.iter().find(|approval| approval.call == call);
                let decision = CallDecision {
                    is_approved,
                    by: row.and_then(|row| row.decided_by.clone()),
                    at: row.and_then(|row| row.decided_at).or(at),
                    why: (self.masked)(&why),
                };
                add_decision(story, &call, decision);
            }
            Entry::Called { call, .. } => {
                if let Some(found) = find_call(story, &call) {
                    found.began_at = at;
                }
            }
            Entry::Outcome { call, name, content, is_error, receipt, taint, image, .. } => {
                self.add_taint(story, taint.clone());
                let result = StoryCallResult {
                    at,
                    content: (self.masked)(&content),
                    is_error,
                    receipt: receipt.map(|receipt| (self.masked)(&receipt)),
                    taint,
                    has_image: image.is_some(),
                };
                let plan = find_call(story, &call).and_then(|found| {
                    found.took_ms = Some(at?.signed_duration_since(found.began_at?).num_milliseconds());
                    (name == "plan" && !is_error).then(|| found.input.clone())
                });
                if let Some(found) = find_call(story, &call) {
                    found.result = Some(result);
                }
                story.plan = plan.and_then(|input| serde_json::from_str(&input).ok()).or(story.plan.take());
            }
            Entry::Answered { messages, .. } => story.steps.push(StoryStep::Answered { at, messages }),
            Entry::Folded { messages, before, after, .. } => {
                story.steps.push(StoryStep::Folded { at, messages, before, after });
            }
            Entry::Handed { from, model, .. } => story.steps.push(StoryStep::Handed { at, from, model }),
            Entry::Verified { not_done } => story.not_done = Some(self.mask_all(&not_done)),
            Entry::ByRule { receipts, .. } => {
                story.steps.push(StoryStep::ByRule { at, receipts: self.mask_all(&receipts) });
            }
            Entry::Worked { .. } | Entry::FoldAsked { .. } => {}
        }
    }

    fn add_turn(&mut self, story: &mut WakeStory, at: Option<DateTime<Utc>>, content: &str, stop: Stop, usage: Usage) {
        let cost_usd = self.find_cost(&usage);
        let asked_at = self.asked_at.take().flatten();
        let approvals = &self.approvals;
        let calls = tool_calls(content, &stop).into_iter().map(|call| {
            // A call through `use_tool` is shown as the wrapped call.
            let (tool, input) = unwrap_call(&call.name, call.input.get())
                .unwrap_or_else(|| (call.name.clone(), call.input.get().to_owned()));
            StoryCall {
                question: approvals.iter().find(|approval| approval.call == call.id).map(|approval| approval.id),
                input: (self.masked)(&input),
                id: call.id,
                tool,
                verdict: None,
                decided: None,
                began_at: None,
                result: None,
                took_ms: None,
            }
        });
        let number = story.turns().count() + 1;
        story.steps.push(StoryStep::Turn(StoryTurn {
            number,
            asked_at,
            at,
            took_ms: at.zip(asked_at).map(|(at, asked)| at.signed_duration_since(asked).num_milliseconds()),
            calls: calls.collect(),
            text: (self.masked)(&join_text(content)),
            stop,
            usage,
            cost_usd,
        }));
    }

    /// The cost of a request in US dollars, from the ledger's row with the same time and tokens. A request without tokens has no row.
    fn find_cost(&mut self, usage: &Usage) -> Option<f64> {
        if *usage == Usage::default() {
            return Some(0.0);
        }
        let at = self.asked_at.flatten();
        let place = self.requests.iter().position(|paid| paid.at == at && paid.spent.tokens == *usage)?;
        Some(self.requests.remove(place).spent.cost_usd)
    }

    fn add_taint(&self, story: &mut WakeStory, taint: Option<String>) {
        let taint = taint.map(|taint| (self.masked)(&taint));
        story.taints.extend(taint.filter(|taint| !story.taints.contains(taint)));
    }

    fn mask_all(&self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| (self.masked)(text)).collect()
    }
}

/// Returns true if the id belongs to a question whether to continue at a limit, rather than to a tool call.
fn is_limit(call: &str) -> bool {
    call.strip_prefix(GO_ON).is_some_and(|rest| rest.starts_with('/'))
}

/// Adds a person's decision to its call, or to the limit that it was asked about.
fn add_decision(story: &mut WakeStory, call: &str, decision: CallDecision) {
    if is_limit(call) {
        let limits = story.steps.iter_mut().rev();
        let open = limits.filter_map(|step| match step {
            StoryStep::Limit { decided, .. } => Some(decided),
            _ => None,
        });
        open.take(1).for_each(|decided| *decided = Some(decision.clone()));
    } else if let Some(found) = find_call(story, call) {
        found.decided = Some(decision);
    }
}

/// Finds the latest call with this id.
fn find_call<'a>(story: &'a mut WakeStory, id: &str) -> Option<&'a mut StoryCall> {
    let turns = story.steps.iter_mut().rev().filter_map(|step| match step {
        StoryStep::Turn(turn) => Some(turn),
        _ => None,
    });
    turns.flat_map(|turn| &mut turn.calls).find(|call| call.id == id)
}
