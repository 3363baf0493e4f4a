//! A model's turn.

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model has said what it wanted to say.
    EndTurn,
    /// It waits for the results of its tool calls.
    ToolUse,
    /// Cut off at the output limit: a last, unfinished tool call must not run.
    MaxTokens,
    /// Cut off at the context's limit, to be treated like [`Stop::MaxTokens`].
    ContextExceeded,
    /// A stop sequence was met.
    StopSequence,
    /// The server paused a long turn: send the content back to go on.
    PauseTurn,
    /// The model declined, with what it said of the reason.
    Refusal(String),
    /// A reason this program doesn't know, by name.
    Unknown(String),
}

/// Tokens of one or more requests. The prompt's size is the sum of the three inputs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the cache.
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
