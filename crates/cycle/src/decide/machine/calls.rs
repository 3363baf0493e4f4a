//! The calls of one turn: what each waits for, and the message that takes their results back. Pure.

use reveille_base::types::Effect;
use reveille_model::content::ToolCall;
use reveille_policy::Decision;
use reveille_tools::unwrapped;

/// What is told of a call that may have happened.
const UNCERTAIN: &str = "The wake was cut off while this call ran: it is uncertain whether it happened. It was not run again. Find out \
                         before you repeat it, and tell your person if you can't.";

/// A tool call that waits for its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRequest {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Raw JSON arguments.
    pub input: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) request: ToolRequest,
    /// Why it must not run.
    pub(super) fault: Option<&'static str>,
    /// Whether somebody began to run it. Within one wake its outcome follows at once.
    pub(super) was_begun: bool,
    /// What the policy said.
    pub(super) verdict: Option<Decision>,
    /// What a person said: whether it may run, and what the model is told if not.
    pub(super) decided: Option<(bool, String)>,
    pub(super) outcome: Option<CallResult>,
}

/// What the model is told of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CallResult {
    pub(super) content: String,
    pub(super) is_error: bool,
    /// A raw JSON image block.
    pub(super) image: Option<String>,
}

impl Pending {
    pub(super) fn new(call: ToolCall) -> Self {
        let (name, input) =
            unwrapped(&call.name, call.input.get()).unwrap_or_else(|| (call.name, call.input.get().to_owned()));
        Self {
            fault: call.fault,
            request: ToolRequest { id: call.id, name, input },
            was_begun: false,
            verdict: None,
            decided: None,
            outcome: None,
        }
    }
}

/// Why a call that was begun and has no outcome isn't run again; none if it is. What changes nothing, changes the same again,
/// or leaves nothing without its outcome, is. What may have happened, and would then happen twice, isn't; nor is a call of a tool
/// that is not there any more (`effect` is none), nor one that had used up a person's yes to act outside our stores
/// (`is_yes_used`): a yes is to one request.
pub fn doubt(effect: Option<Effect>, is_yes_used: bool) -> Option<&'static str> {
    match effect {
        Some(Effect::Staged) => None,
        // fault: yes-good-same-again
        Some(Effect::Read | Effect::Idempotent) if !is_yes_used => None,
        _ => Some(UNCERTAIN),
    }
}

/// All results of one turn in one user message, as the API wants them.
pub(super) fn results(calls: &[Pending]) -> String {
    let blocks: Vec<_> = calls
        .iter()
        .map(|pending| {
            let CallResult { content, is_error, image } = pending.outcome.clone().unwrap_or_default();
            let content = match image.and_then(|block| serde_json::from_str::<serde_json::Value>(&block).ok()) {
                Some(image) => serde_json::json!([{"type": "text", "text": content}, image]),
                None => content.into(),
            };
            let mut block =
                serde_json::json!({"type": "tool_result", "tool_use_id": pending.request.id, "content": content});
            if is_error && let Some(block) = block.as_object_mut() {
                block.insert("is_error".to_owned(), true.into());
            }
            block
        })
        .collect();
    serde_json::json!({"role": "user", "content": blocks}).to_string()
}
