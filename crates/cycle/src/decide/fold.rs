//! Folding: a summary replaces a conversation that has become too long. Pure; the machine carries the steps out.
//!
//! At `FLUSH_PERCENT` the model is asked to write down important facts ([`FoldAsk::Flush`]). A successful call of a memory tool answers
//! that request, and so do the words `NOTHING_TO_KEEP`. At `FOLD_PERCENT` the model is asked for a summary ([`FoldAsk::Summary`]), which
//! begins the new conversation. A model that does other work instead is asked for the flush again. After `FLUSH_ASKS_MAX` requests the
//! conversation is folded by rule, from the journal. Each request follows the results of calls, so earlier content stays unchanged and no
//! call is separated from its result.

use reveille_base::types::{Stop, Usage};
use reveille_store::FoldAsk;

use crate::decide::tokens::{TokenCount, TokenRate};

/// The maximum number of tokens in a conversation, even for larger models, because each turn pays for all of them.
const CONVERSATION_TOKENS_MAX: u64 = 100_000;
/// The share of the window at which the model is asked to write down important facts.
const FLUSH_PERCENT: u64 = 85;
/// The share at which the model is asked for a summary.
const FOLD_PERCENT: u64 = 95;
/// The minimum growth before each of the two requests, in percent of the window, because folding a conversation that began long gains
/// nothing.
const GROWTH_PERCENT: (u64, u64) = (10, 20);
/// The number of requests to write down important facts before folding by rule.
const FLUSH_ASKS_MAX: u32 = 2;
/// The number of requests for a summary before folding without one.
const SUMMARY_ASKS_MAX: u32 = 2;
/// The answer of a model with nothing to write down.
const NOTHING_TO_KEEP: &str = "NOTHING TO KEEP";
/// The tools that write to the memory.
const MEMORY_TOOLS: [&str; 10] = [
    "remember",
    "forget",
    "note",
    "context_update",
    "task_add",
    "task_update",
    "task_touch",
    "task_done",
    "task_move",
    "memory",
];

/// The result of a call made in place of the requested summary.
pub(super) const NO_CALLS_NOW: &str = "This was not run: the summary comes first, as plain text and without calls. Call again when the new conversation has begun.";
/// The reply to an empty or truncated summary.
pub(super) const NO_SUMMARY: &str = "(That wasn't a complete summary.)";
/// The reply to a model with nothing to write down.
pub(super) const NOTED: &str = "(Noted. Go on with your work.)";

/// The maximum number of tokens in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    tokens: u64,
}

impl Window {
    /// Builds the window of a model that accepts this many tokens.
    pub const fn for_model(model_tokens: u64) -> Self {
        let tokens = if model_tokens < CONVERSATION_TOKENS_MAX { model_tokens } else { CONVERSATION_TOKENS_MAX };
        Self { tokens }
    }

    /// Narrows the window if a conversation of this size was too long.
    fn narrow_to(self, too_long: Option<u64>) -> Self {
        Self { tokens: too_long.map_or(self.tokens, |tokens| tokens.min(self.tokens)) }
    }

    fn take_percent(&self, percent: u64) -> u64 {
        self.tokens.saturating_mul(percent) / 100
    }

    /// Returns the token counts for flushing and for folding, given the initial count.
    fn marks(&self, began_with: u64) -> (u64, u64) {
        let (to_flush, to_fold) = GROWTH_PERCENT;
        let mark =
            |percent, growth| self.take_percent(percent).max(began_with.saturating_add(self.take_percent(growth)));
        (mark(FLUSH_PERCENT, to_flush), mark(FOLD_PERCENT, to_fold))
    }
}

/// A completed folding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldedTokens {
    /// The number of messages in the ended conversation.
    pub messages: usize,
    /// The tokens of the ended conversation.
    pub before: u64,
    /// The tokens of the new conversation's first prompt.
    pub after: u64,
}

impl FoldedTokens {
    /// Describes the folding for people.
    pub fn describe(&self) -> String {
        let Self { messages, before, after } = self;
        format!("Folded {messages} messages of my conversation into a summary: {before} tokens before, {after} after")
    }
}

/// The progress of a conversation towards folding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing was asked.
    #[default]
    Open,
    /// Important facts should be written down: the number of requests so far, and whether a turn answered the last one.
    Flushing { asks: u32, is_answered: bool },
    /// The facts were written down, or there were none.
    Flushed,
    /// A summary was requested this many times.
    Summing(u32),
}

/// The foldings of a cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Folding {
    count: TokenCount,
    stage: Stage,
    /// The completed foldings.
    pub done: Vec<FoldedTokens>,
    /// The number of foldings whose token counts are final. The current model's turns belong to later conversations.
    settled: usize,
    /// The tokens of the shortest conversation rejected by the model.
    too_long: Option<u64>,
}

impl Folding {
    pub(super) fn new(system: &str, tools: &str) -> Self {
        Self { count: TokenCount::new(TokenRate::default(), system, tools), ..Self::default() }
    }

    /// The bytes per token of the model, as last measured.
    pub fn rate(&self) -> TokenRate {
        self.count.rate()
    }

    /// The tokens of the conversation.
    pub fn tokens(&self) -> u64 {
        self.count.total()
    }

    /// The tokens of the conversation with a further message.
    pub fn count_with(&self, raw: &str) -> u64 {
        self.count.count_with(raw)
    }

    /// The tokens of a new conversation with this beginning.
    pub fn count_new_conversation(&self, system: &str, tools: &str, raw: &str) -> u64 {
        TokenCount::new(self.count.rate(), system, tools).count_with(raw)
    }

    pub(super) fn add_message(&mut self, raw: &str) {
        self.count.add_message(raw);
    }

    pub(super) fn add_answer(&mut self, content: &str, usage: &Usage) {
        self.count.add_answer(content, usage);
        if let Stage::Flushing { is_answered, .. } = &mut self.stage {
            *is_answered = true;
        }
        // The measured size of the first prompt replaces the estimate.
        if let (Some(first), Some(last)) = (self.count.first(), self.done.iter_mut().skip(self.settled).last()) {
            last.after = first;
        }
    }

    pub(super) fn record_ask(&mut self, ask: FoldAsk) {
        self.stage = match (ask, self.stage) {
            (FoldAsk::Flush, Stage::Flushing { asks, .. }) => {
                Stage::Flushing { asks: asks.saturating_add(1), is_answered: false }
            }
            (FoldAsk::Flush, _) => Stage::Flushing { asks: 1, is_answered: false },
            (FoldAsk::Summary, Stage::Summing(times)) => Stage::Summing(times.saturating_add(1)),
            (FoldAsk::Summary, _) => Stage::Summing(1),
        };
    }

    /// Records a successful tool call.
    pub(super) fn record_call(&mut self, tool: &str) {
        if self.is_flushing() && MEMORY_TOOLS.contains(&tool) {
            self.stage = Stage::Flushed;
        }
    }

    /// Returns `true` if this turn says that there is nothing to write down, and records that.
    pub(super) fn accept_empty_flush(&mut self, text: &str) -> bool {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let says_nothing = words.map(str::to_uppercase).eq(NOTHING_TO_KEEP.split(' ').map(str::to_owned));
        let is_flushed = self.is_flushing() && says_nothing;
        if is_flushed {
            self.stage = Stage::Flushed;
        }
        is_flushed
    }

    fn is_flushing(&self) -> bool {
        matches!(self.stage, Stage::Flushing { .. })
    }

    /// Returns `true` if every request to write down facts was answered with other work.
    fn is_refused(&self) -> bool {
        matches!(self.stage, Stage::Flushing { asks: FLUSH_ASKS_MAX.., is_answered: true })
    }

    /// Returns `true` if the conversation must be folded by rule: the model was asked often enough, and the size for folding is reached.
    pub(super) fn is_overdue(&self, window: &Window) -> bool {
        self.is_refused() && self.tokens() >= self.marks(window).1
    }

    fn marks(&self, window: &Window) -> (u64, u64) {
        window.narrow_to(self.too_long).marks(self.count.first().unwrap_or_default())
    }

    /// Returns `true` if a summary was requested.
    pub(super) fn is_summing(&self) -> bool {
        matches!(self.stage, Stage::Summing(_))
    }

    /// Cancels the request for a summary because messages arrived in its place.
    pub(super) fn cancel_summary(&mut self) {
        if self.is_summing() {
            self.stage = Stage::Flushed;
        }
    }

    /// Returns `true` if this turn is the summary. An empty or truncated text is accepted after enough requests, or if nothing more can be
    /// asked.
    pub(super) fn accepts_as_summary(&self, text: &str, stop: &Stop) -> bool {
        let Stage::Summing(times) = self.stage else { return false };
        let is_whole = *stop != Stop::MaxTokens && !text.trim().is_empty();
        is_whole || *stop == Stop::ContextExceeded || times >= SUMMARY_ASKS_MAX
    }

    /// Records a folding and starts the count of the new conversation.
    pub(super) fn record_fold(&mut self, (system, tools): (&str, &str), raw: &str, folded: FoldedTokens) {
        // Folding by rule says nothing about the model's limit.
        if !self.is_summing() && !self.is_refused() {
            self.too_long = Some(self.too_long.map_or(folded.before, |known| known.min(folded.before)));
        }
        self.count = TokenCount::new(self.count.rate(), system, tools);
        self.count.add_message(raw);
        self.stage = Stage::Open;
        self.done.push(folded);
    }

    /// Starts the count of a new conversation with another model, whose bytes per token are still unknown.
    pub(super) fn restart_count(&mut self, (system, tools): (&str, &str), raw: &str) {
        self.count = TokenCount::new(TokenRate::default(), system, tools);
        self.count.add_message(raw);
        self.stage = Stage::Open;
        self.too_long = None;
        self.settled = self.done.len();
    }

    /// Returns the request to be added after this message.
    pub(super) fn choose_ask(&self, window: &Window, raw: &str) -> Option<FoldAsk> {
        let (flush_at, fold_at) = self.marks(window);
        let tokens = self.count.count_with(raw);
        match self.stage {
            Stage::Open if tokens >= flush_at => Some(FoldAsk::Flush),
            Stage::Flushing { .. } if tokens >= fold_at && !self.is_refused() => Some(FoldAsk::Flush),
            Stage::Flushed if tokens >= fold_at => Some(FoldAsk::Summary),
            Stage::Summing(_) => Some(FoldAsk::Summary),
            Stage::Open | Stage::Flushing { .. } | Stage::Flushed => None,
        }
    }
}

/// Renders the request for the model.
pub fn render_ask(ask: FoldAsk, tokens: u64) -> String {
    match ask {
        FoldAsk::Flush => format!(
            "(This conversation is about {tokens} tokens long. Soon a summary of it will begin a new one, and what stands nowhere else \
             is lost. Write down now what matters, with your memory tools: `remember` for facts and decisions, tasks, `note` for what \
             you are in the middle of. If there is nothing, say {NOTHING_TO_KEEP} and no more. Then go on with your work.)"
        ),
        FoldAsk::Summary => format!(
            "(This conversation is about {tokens} tokens long, and your next turn ends it. Write its summary now, for yourself: plain \
             text, no calls, nothing to your person. It opens the new conversation, in which you go on. What your person said, the plan \
             and what was done are kept without you. Tell what you found out, to the letter where that matters (paths, addresses, numbers); \
             what was decided, and why; what failed and needn't be tried again; what is half done, and the next step.)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window::for_model(1_000_000);

    fn heard(folding: &mut Folding, tokens: u64) {
        folding.add_answer("", &Usage { cache_read: tokens, ..Usage::default() });
    }

    /// A conversation with a first request of 10,000 tokens and a last one of `tokens`.
    fn at(tokens: u64) -> Folding {
        let mut folding = Folding::new("", "");
        heard(&mut folding, 10_000);
        heard(&mut folding, tokens);
        folding
    }

    #[test]
    fn a_window_has_marks_for_flushing_and_folding_and_an_upper_bound() {
        assert_eq!(WINDOW.marks(0), (85_000, 95_000));
        assert_eq!(Window::for_model(32_000).marks(4_000), (27_200, 30_400));
        assert_eq!(
            WINDOW.marks(90_000),
            (100_000, 110_000),
            "a conversation that began long must grow before it is folded"
        );
        assert_eq!(Window::for_model(u64::MAX).marks(u64::MAX), (u64::MAX, u64::MAX));
    }

    #[test]
    fn a_rejected_conversation_lowers_the_mark_of_the_next_one() {
        let mut folding = at(40_000);
        folding.record_fold(("", ""), "", FoldedTokens { messages: 9, before: 40_000, after: 1 });
        heard(&mut folding, 5_000);
        heard(&mut folding, 33_999);
        assert_eq!(folding.choose_ask(&WINDOW, ""), None);
        heard(&mut folding, 34_000);
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Flush));
        folding.restart_count(("", ""), "");
        heard(&mut folding, 34_000);
        assert_eq!(folding.choose_ask(&WINDOW, ""), None, "another model may accept more");
    }

    #[test]
    fn the_next_message_counts_towards_the_mark() {
        assert_eq!(at(84_999).choose_ask(&WINDOW, ""), None);
        assert_eq!(at(85_000).choose_ask(&WINDOW, ""), Some(FoldAsk::Flush));
        assert_eq!(at(80_000).choose_ask(&WINDOW, &"x".repeat(30_000)), Some(FoldAsk::Flush));
    }

    #[test]
    fn facts_are_written_down_before_a_conversation_is_folded() {
        let mut folding = at(96_000);
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Flush), "even if it is long enough to be folded");
        folding.record_ask(FoldAsk::Flush);
        folding.record_call("bash");
        folding.record_call("reply");
        assert!(!folding.accept_empty_flush("There is nothing to keep about Anna, is there?"));
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Flush), "it is asked for again");
        folding.record_call("remember");
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Summary));
    }

    #[test]
    fn a_conversation_is_folded_by_rule_if_the_model_never_writes_facts_down() {
        let mut folding = at(96_000);
        for _ in 0..FLUSH_ASKS_MAX {
            assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Flush));
            folding.record_ask(FoldAsk::Flush);
            assert!(!folding.is_overdue(&WINDOW), "a request waits for its answer");
            heard(&mut folding, 97_000);
            folding.record_call("bash");
        }
        assert_eq!((folding.choose_ask(&WINDOW, ""), folding.is_overdue(&WINDOW)), (None, true));
        let mut shorter = folding.clone();
        heard(&mut shorter, 90_000);
        assert!(!shorter.is_overdue(&WINDOW), "it isn't folded by rule before it is long enough");
        let mut flushed = folding.clone();
        flushed.record_call("remember");
        assert_eq!((flushed.choose_ask(&WINDOW, ""), flushed.is_overdue(&WINDOW)), (Some(FoldAsk::Summary), false));
        folding.record_fold(("", ""), "", FoldedTokens { messages: 9, before: 97_000, after: 1 });
        heard(&mut folding, 5_000);
        heard(&mut folding, 84_999);
        assert_eq!(folding.choose_ask(&WINDOW, ""), None, "folding by rule doesn't narrow the next conversation");
    }

    #[test]
    fn below_the_mark_for_folding_the_flush_is_requested_once() {
        let mut folding = at(86_000);
        folding.record_ask(FoldAsk::Flush);
        assert_eq!(folding.choose_ask(&WINDOW, ""), None);
        folding.record_call("note");
        assert_eq!(folding.choose_ask(&WINDOW, ""), None, "once facts are written down, it goes on until it is folded");
        heard(&mut folding, 95_000);
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Summary));
    }

    #[test]
    fn nothing_to_keep_counts_only_as_plain_words_after_a_request() {
        let mut folding = at(96_000);
        assert!(!folding.accept_empty_flush(NOTHING_TO_KEEP));
        folding.record_ask(FoldAsk::Flush);
        assert!(folding.accept_empty_flush("  **Nothing to keep.**\n"));
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Summary));
    }

    #[test]
    fn a_memory_written_before_the_request_does_not_count() {
        let mut folding = at(96_000);
        folding.record_call("remember");
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Flush));
    }

    #[test]
    fn a_summary_is_whole_text_and_requested_twice_at_most() {
        let mut folding = at(96_000);
        assert!(!folding.accepts_as_summary("words", &Stop::EndTurn));
        folding.record_ask(FoldAsk::Summary);
        assert!(
            folding.accepts_as_summary("words", &Stop::ToolUse)
                && folding.accepts_as_summary("", &Stop::ContextExceeded)
        );
        assert!(
            !folding.accepts_as_summary(" ", &Stop::EndTurn) && !folding.accepts_as_summary("wor", &Stop::MaxTokens)
        );
        assert_eq!(folding.choose_ask(&WINDOW, ""), Some(FoldAsk::Summary));
        folding.record_ask(FoldAsk::Summary);
        assert!(folding.accepts_as_summary(" ", &Stop::MaxTokens), "after two requests it is folded without a summary");
    }

    #[test]
    fn a_new_conversation_is_measured_by_its_first_answer() {
        let mut folding = at(96_000);
        folding.record_ask(FoldAsk::Summary);
        folding.record_fold(("", ""), &"x".repeat(3_000), FoldedTokens { messages: 9, before: 96_000, after: 1 });
        assert_eq!(folding.choose_ask(&WINDOW, ""), None);
        assert!(folding.tokens() < 5_000, "{}", folding.tokens());
        heard(&mut folding, 12_000);
        heard(&mut folding, 20_000);
        assert_eq!(
            folding.done.iter().map(FoldedTokens::describe).collect::<Vec<_>>(),
            ["Folded 9 messages of my conversation into a summary: 96000 tokens before, 12000 after"]
        );
    }
}
