//! Reads the tool calls and the text of an assistant turn.
//!
//! A turn's content stays the raw JSON that was received, since the same bytes must be sent back. Blocks are selected by type, never by
//! position.

use serde_json::value::RawValue;

use reveille_base::{json::has_repeated_key, types::Stop};

use super::{
    anthropic::object_fields,
    conversation::{ContentBlock, parse_blocks},
};

/// The key that holds invalid arguments, as text, in a tool call's `input`. The provider's documentation suggests this form for telling a
/// model about its own broken arguments.
pub const INVALID_INPUT_KEY: &str = "INVALID_JSON";

/// The fault of an incomplete call.
const CUT_OFF: &str = "This call was cut off before its arguments were complete. It was not run; call again.";
/// The fault of an ambiguous call: a person could be shown something other than what runs.
const KEY_TWICE: &str = "A key occurs twice in the arguments of this call, so they are ambiguous. It was not run; call again with each \
                         key once.";

/// A tool call by the model. Every call needs a `tool_result` in the very next user message, run or not: without it the conversation
/// becomes unusable.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The id that the result must name.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments: a JSON object, byte for byte as received.
    pub input: Box<RawValue>,
    /// The reason against running the call, worded for the model and returned as an error result. `None` if the call may run.
    pub fault: Option<&'static str>,
}

/// Lists the tool calls of a turn in order, with the fault of each that must not run:
/// - a call in the last block, if the turn was cut off ([`Stop::MaxTokens`], [`Stop::ContextExceeded`]) or ended for an unknown reason. Its
///   arguments may parse by chance and still be incomplete.
/// - every call after a [`Stop::Refusal`].
/// - a call with arguments that were no JSON object (kept under [`INVALID_INPUT_KEY`]).
/// - a call with a duplicate key in its arguments, at any depth.
pub fn tool_calls(content: &str, stop: &Stop) -> Vec<ToolCall> {
    let blocks = parse_blocks(content);
    let last = blocks.len().saturating_sub(1);
    let mut calls = Vec::new();
    for (at, block) in blocks.into_iter().enumerate() {
        let ContentBlock::Call { id, name, input } = block else { continue };
        let whole = match stop {
            Stop::EndTurn | Stop::ToolUse | Stop::StopSequence | Stop::PauseTurn => true,
            Stop::MaxTokens | Stop::ContextExceeded | Stop::Unknown(_) => at != last,
            Stop::Refusal(_) => false,
        };
        let input = input.map_or_else(empty_object, RawValue::to_owned);
        let fault = if !whole || !is_usable(&input) {
            Some(CUT_OFF)
        } else {
            has_repeated_key(input.get()).then_some(KEY_TWICE)
        };
        calls.push(ToolCall { id: id.into_owned(), name: name.into_owned(), input, fault });
    }
    calls
}

/// Joins the text blocks of a turn.
pub fn join_text(content: &str) -> String {
    parse_blocks(content).iter().filter_map(ContentBlock::text).collect()
}

/// Builds the message that puts a turn back into its conversation with its content unchanged. `None` if the turn is empty, since the server
/// refuses an empty message.
pub fn assistant_message(content: &str) -> Option<String> {
    let has_blocks = serde_json::from_str::<Vec<&RawValue>>(content).is_ok_and(|blocks| !blocks.is_empty());
    has_blocks.then(|| format!(r#"{{"role":"assistant","content":{content}}}"#))
}

/// Builds a call's `input` from its arguments as text. Empty arguments become an empty object. Invalid JSON, such as a call that was cut
/// off, is kept as text under [`INVALID_INPUT_KEY`], because the block must be sent back as valid JSON.
pub(super) fn build_input(arguments: &str) -> String {
    if arguments.trim().is_empty() {
        return "{}".to_owned();
    }
    match object_fields(arguments) {
        Ok(_) => arguments.to_owned(),
        Err(_) => serde_json::json!({INVALID_INPUT_KEY: arguments}).to_string(),
    }
}

fn empty_object() -> Box<RawValue> {
    serde_json::value::to_raw_value(&serde_json::Map::new()).unwrap_or_default()
}

/// True if the arguments are a JSON object other than our record of broken ones.
fn is_usable(input: &RawValue) -> bool {
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(input.get())
        .is_ok_and(|object| !object.contains_key(INVALID_INPUT_KEY))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: &str = r#"[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"One "},
        {"type":"tool_use","id":"t1","name":"note","input":{"b": 1.50, "a":2}},{"type":"text","text":"two"},
        {"type":"new_thing","text":"no"},{"type":"tool_use","id":"t2","name":"reply","input":{}}]"#;

    fn completeness(content: &str, stop: &Stop) -> Vec<bool> {
        tool_calls(content, stop).iter().map(|call| call.fault.is_none()).collect()
    }

    #[test]
    fn calls_are_found_by_type_and_their_arguments_keep_their_bytes() {
        let calls = tool_calls(TURN, &Stop::ToolUse);
        assert_eq!(
            calls.iter().map(|c| (c.id.as_str(), c.name.as_str())).collect::<Vec<_>>(),
            [("t1", "note"), ("t2", "reply")]
        );
        assert_eq!(calls[0].input.get(), r#"{"b": 1.50, "a":2}"#);
    }

    #[test]
    fn text_is_the_text_blocks_joined() {
        assert_eq!(join_text(TURN), "One two");
        assert_eq!(join_text("no json"), "");
    }

    #[test]
    fn a_call_is_complete_only_when_nothing_can_be_missing() {
        assert_eq!(completeness(TURN, &Stop::ToolUse), [true, true]);
        assert_eq!(completeness(TURN, &Stop::MaxTokens), [true, false]);
        assert_eq!(completeness(TURN, &Stop::ContextExceeded), [true, false]);
        assert_eq!(completeness(TURN, &Stop::Unknown("new".into())), [true, false]);
        assert_eq!(completeness(TURN, &Stop::Refusal("no".into())), [false, false]);
        let broken = r#"[{"type":"tool_use","id":"t","name":"n","input":{"INVALID_JSON":"{\"a\":"}},{"type":"tool_use","id":"u","name":"n","input":[1]}]"#;
        assert_eq!(completeness(broken, &Stop::ToolUse), [false, false]);
    }

    #[test]
    fn a_call_that_can_be_read_in_two_ways_does_not_run() {
        let call = |input: &str| format!(r#"[{{"type":"tool_use","id":"t","name":"n","input":{input}}}]"#);
        let fault = |input: &str| tool_calls(&call(input), &Stop::ToolUse)[0].fault;
        assert_eq!(fault(r#"{"command":"ls","options":{"command":"rm"}}"#), None);
        assert_eq!(fault(r#"{"command":"ls","command":"rm"}"#), Some(KEY_TWICE));
        assert_eq!(fault(r#"{"a":[{"command":"ls","comm\u0061nd":"rm"}]}"#), Some(KEY_TWICE));
        assert_eq!(fault(r#"{"INVALID_JSON":"{"}"#), Some(CUT_OFF));
    }

    #[test]
    fn a_turn_goes_back_as_it_came_and_an_empty_one_does_not() {
        assert_eq!(
            assistant_message("[ {\"type\":\"x\"} ]").unwrap(),
            "{\"role\":\"assistant\",\"content\":[ {\"type\":\"x\"} ]}"
        );
        assert_eq!(assistant_message("[]"), None);
    }
}
