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

pub(super) fn parse_while_working(value: &str) -> Result<WhileWorking, String> {
    match value.to_ascii_lowercase().as_str() {
        "join" => Ok(WhileWorking::Join),
        "wait" => Ok(WhileWorking::Wait),
        _ => Err("join or wait".to_owned()),
    }
}
