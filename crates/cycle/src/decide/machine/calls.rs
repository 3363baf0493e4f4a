//! The calls of one turn: the state of each, and the message with their results. Pure.

use reveille_base::types::Effect;
use reveille_model::content::ToolCall;
use reveille_policy::Decision;
use reveille_store::ApprovedAction;
use reveille_tools::unwrap_call;

/// The result reported for a call with an uncertain effect.
const UNCERTAIN: &str = "The wake was cut off while this call ran: it is uncertain whether it happened. It was not run again. Find out \
                         before you repeat it, and tell your person if you can't.";

/// A tool call without an outcome yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolRequest {
    /// The id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as raw JSON.
    pub input: String,
}

impl ToolRequest {
    /// Returns what an approval of this call has to cover.
    pub fn approved_action(&self) -> ApprovedAction<'_> {
        ApprovedAction { call: &self.id, tool: &self.name, action: &self.input }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) request: ToolRequest,
    /// The reason why the call must not run.
    pub(super) fault: Option<&'static str>,
    /// True if the call has started. Within one wake its outcome follows at once.
    pub(super) was_begun: bool,
    /// The policy's decision.
    pub(super) verdict: Option<Decision>,
    /// The person's decision: approval, and the result for the model otherwise.
    pub(super) decided: Option<(bool, String)>,
    pub(super) outcome: Option<CallResult>,
}

/// The result of a call, as the model sees it.
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
            unwrap_call(&call.name, call.input.get()).unwrap_or_else(|| (call.name, call.input.get().to_owned()));
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

/// Returns the reason not to repeat a started call without an outcome. `None` if it may run again, because it changes nothing, changes the
/// same again, or leaves no trace without its outcome. A call isn't repeated if it may take effect twice, if its tool no longer exists
/// (`effect` is `None`), or if it used up a person's approval to act outside our stores (`is_yes_used`), since an approval covers one
/// request.
pub fn find_doubt(effect: Option<Effect>, is_yes_used: bool) -> Option<&'static str> {
    match effect {
        Some(Effect::Staged) => None,
        // fault: yes-good-same-again
        Some(Effect::Read | Effect::Idempotent) if !is_yes_used => None,
        _ => Some(UNCERTAIN),
    }
}

/// Builds one user message with all results of a turn, as the API requires.
pub(super) fn render_results(calls: &[Pending]) -> String {
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
