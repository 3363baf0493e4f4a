//! Folding a conversation, or falling back to another model: a new conversation begins, and the cycle's other state stays.

use reveille_base::{types::Stop, words::last_chars};
use reveille_model::{Conversation, conversation::SpokenMessage};
use reveille_store::FoldAsk;

use crate::decide::machine::{
    Cycle, Phase,
    calls::Pending,
    step::{Step, Summary},
};
use crate::decide::{
    fold::{self, FoldedTokens},
    limits::Limits,
};

/// The answer's text if the context limit is reached.
const FULL: &str = "This conversation became too long for me to continue.";
/// The number of consecutive foldings that may leave no room for an answer.
const MAX_WITHOUT_ROOM: u32 = 2;
/// The maximum length of the kept text of a model without a summary, in characters; the end is kept.
const MAX_SAID_CHARS: usize = 8_000;

impl Cycle {
    /// Returns the folding request to be added after the results `raw`.
    pub fn fold_ask(&self, limits: &Limits, raw: &str) -> Option<FoldAsk> {
        let window = limits.window.as_ref().filter(|_| !self.is_full)?;
        self.folding.choose_ask(window, raw)
    }

    /// Returns `true` if the conversation must be folded without a summary. If the last turn is still being continued, it ends first.
    pub(super) fn is_to_fold_by_rule(&self, limits: &Limits) -> bool {
        !self.is_continuing && limits.window.as_ref().is_some_and(|window| self.folding.is_overdue(window))
    }

    /// Builds the replacement for a summary that can't be requested any more: the model's earlier texts.
    pub fn forced_summary(&self) -> Summary {
        let read = self.conversation.parse_messages();
        let said = read.filter(|message| message.is_models).flat_map(|message| own_words(&message));
        let said = said.collect::<Vec<_>>().join("\n\n");
        Summary { text: last_chars(&said, MAX_SAID_CHARS).to_owned(), not_run: Vec::new(), is_forced: true }
    }

    /// Returns the number of forced foldings since the last turn that had room.
    pub fn forced_in_a_row(&self) -> u32 {
        self.forced
    }

    /// Folds a full conversation, unless earlier foldings gained nothing.
    pub(super) fn make_room(&self) -> Step {
        if self.open.is_empty() {
            return Step::Finish;
        }
        if self.forced < MAX_WITHOUT_ROOM {
            return Step::Fold(self.forced_summary());
        }
        self.end_or_fail(FULL, "this conversation is too long for my AI model, however much I shorten it")
    }

    /// Begins a new conversation. All questions, approvals, receipts, taints and counts stay.
    pub(super) fn fold(&mut self, raw: &str, folded: FoldedTokens) {
        let Conversation { system, tools, .. } = &self.conversation;
        self.forced = if self.folding.is_summing() { 0 } else { self.forced.saturating_add(1) };
        self.folding.record_fold((system, tools), raw, folded);
        self.restart_conversation(raw);
    }

    /// Continues with another model, which receives nothing of the old conversation. All other state stays, as in [`Self::fold`].
    pub(super) fn fall_back(&mut self, from: &str, (system, tools): (&str, &str), raw: &str) {
        self.folding.restart_count((system, tools), raw);
        (self.conversation.system, self.conversation.tools) = (system.to_owned(), tools.to_owned());
        if !self.models_before.iter().any(|known| known == from) {
            self.models_before.push(from.to_owned());
        }
        (self.continuations, self.was_asked_for_answer) = (0, false);
        self.restart_conversation(raw);
    }

    fn restart_conversation(&mut self, raw: &str) {
        self.conversation.messages = vec![raw.to_owned()];
        self.text.clear();
        self.is_continuing = false;
        self.is_full = false;
        self.phase = Phase::Asking;
    }

    /// Handles a turn that answers a folding request. Returns `false` for any other turn.
    pub(super) fn fold_turn(&mut self, text: &str, stop: &Stop, called: &[Pending]) -> bool {
        if self.folding.accepts_as_summary(text, stop) {
            let not_run = called.iter().map(|call| call.request.name.clone()).collect();
            self.phase = Phase::Summed(Summary { text: text.trim().to_owned(), not_run, is_forced: false });
        } else if self.folding.accept_empty_flush(text) && called.is_empty() {
            self.phase = Phase::Noted(fold::NOTED);
        } else if self.folding.is_summing() && called.is_empty() {
            self.phase = Phase::Noted(fold::NO_SUMMARY);
        } else {
            return false;
        }
        self.text.clear();
        true
    }
}

fn own_words(message: &SpokenMessage<'_>) -> Vec<String> {
    let texts = message.texts().map(str::trim).filter(|text| !text.is_empty());
    texts.map(str::to_owned).collect()
}
