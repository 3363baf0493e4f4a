//! What becomes of a message that comes while another of its chat is worked on: `WHILE_WORKING`.

/// The handling of messages that come during a cycle of their chat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WhileWorking {
    /// They join the conversation: the model reads them after its present call.
    #[default]
    Join,
    /// They wait, and are answered afterwards.
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
