//! What to do with a message that arrives during a cycle of the same chat: `WHILE_WORKING`.

/// What to do with messages that arrive during a cycle of the same chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhileWorking {
    /// Add them to the conversation: the model reads them after its current call.
    #[default]
    Join,
    /// Let them wait, and answer them after the cycle.
    Wait,
}

impl WhileWorking {
    /// The value of `WHILE_WORKING`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Join => "join",
            Self::Wait => "wait",
        }
    }
}

pub(super) fn parse_while_working(value: &str) -> Result<WhileWorking, String> {
    let found = [WhileWorking::Join, WhileWorking::Wait].into_iter().find(|it| value.eq_ignore_ascii_case(it.as_str()));
    found.ok_or_else(|| "join or wait".to_owned())
}
