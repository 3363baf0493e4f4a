//! A conversation that is folded, or handed to another model: a new one begins, and the rest of the state holds on.

use super::{Cycle, Phase, calls::Pending, step::Summary};
use crate::{
    cycle::decide::{
        fold::{self, FoldedTokens},
        limits::Limits,
    },
    model::Conversation,
    store::FoldAsk,
    types::Stop,
};

impl Cycle {
    /// What is to be asked of the model behind the results `raw`, so that its conversation can be folded.
    pub fn fold_ask(&self, limits: &Limits, raw: &str) -> Option<FoldAsk> {
        let window = limits.window.as_ref().filter(|_| !self.is_full)?;
        self.folding.ask(window, raw)
    }

    /// Begins a new conversation. Nothing else begins anew: what was asked, allowed, done, read and counted holds on.
    pub(super) fn fold(&mut self, raw: &str, folded: FoldedTokens) {
        let Conversation { system, tools, .. } = &self.conversation;
        self.folding.folded((system, tools), raw, folded);
        self.begin_anew(raw);
    }

    /// Another model goes on. It is sent no byte of what the one before was told or said; all else holds on, as in [`Self::fold`].
    pub(super) fn hand_over(&mut self, from: &str, (system, tools): (&str, &str), raw: &str) {
        self.folding.handed((system, tools), raw);
        (self.conversation.system, self.conversation.tools) = (system.to_owned(), tools.to_owned());
        if !self.models_before.iter().any(|known| known == from) {
            self.models_before.push(from.to_owned());
        }
        (self.continuations, self.was_asked_for_answer) = (0, false);
        self.begin_anew(raw);
    }

    fn begin_anew(&mut self, raw: &str) {
        self.conversation.messages = vec![raw.to_owned()];
        self.text.clear();
        self.is_going_on = false;
        self.is_full = false;
        self.phase = Phase::Asking;
    }

    /// Takes a turn for what folding has asked for; false if it is one like any other.
    pub(super) fn fold_turn(&mut self, text: &str, stop: &Stop, called: &[Pending]) -> bool {
        if self.folding.takes_as_summary(text, stop) {
            let not_run = called.iter().map(|call| call.request.name.clone()).collect();
            self.phase = Phase::Summed(Summary { text: text.trim().to_owned(), not_run });
        } else if self.folding.takes_as_flushed(text) && called.is_empty() {
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
