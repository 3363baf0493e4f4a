//! A model's turn.

/// The reason for the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model finished its answer.
    EndTurn,
    /// The model waits for the results of its tool calls.
    ToolUse,
    /// The output limit cut the turn off: an unfinished last tool call must not run.
    MaxTokens,
    /// The context limit cut the turn off; treated like [`Stop::MaxTokens`].
    ContextExceeded,
    /// The model reached a stop sequence.
    StopSequence,
    /// The server paused a long turn: send the content back to continue.
    PauseTurn,
    /// The model declined; holds the reason it gave.
    Refusal(String),
    /// The name of a reason unknown to this program.
    Unknown(String),
}

/// Tokens of one or more requests. The size of the prompt is the sum of the three inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Uncached input tokens.
    pub input: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// Input tokens read from the prompt cache.
    pub cache_read: u64,
    /// Input tokens written to the prompt cache.
    pub cache_write: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}
