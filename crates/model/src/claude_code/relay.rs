//! Parses the command's output, a JSON object per line: the Messages API's events and some information on the run. Pure.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use reveille_base::types::Usage;

use crate::{
    Turn, TurnPiece,
    anthropic::object_fields,
    content::{INVALID_INPUT_KEY, tool_calls},
};

/// Our server's name in the command's configuration.
pub(super) const SERVER: &str = "reveille";
/// Prefix of our tools' names in the command.
const PREFIX: &str = "mcp__reveille__";

/// Gives a tool of ours its own name.
pub(super) fn name_own_tool(piece: TurnPiece) -> TurnPiece {
    match piece {
        TurnPiece::Call(tool) => TurnPiece::Call(tool.strip_prefix(PREFIX).unwrap_or(&tool).to_owned()),
        piece => piece,
    }
}
/// Appended to the name of a foreign tool. No tool of ours can have such a name.
const FOREIGN: &str = " (not offered)";

/// A line of output.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RelayLine {
    /// The run has started.
    Begun {
        /// The tools' names in the command.
        tools: Vec<String>,
        /// True if the command reached our server.
        is_connected: bool,
    },
    /// An event of the Messages API's stream.
    Event {
        /// The event as raw JSON.
        raw: String,
        /// The model that takes the turn, if the event begins one.
        begins: Option<String>,
    },
    /// A fault, by the command's own name for it.
    Fault(String),
    /// The run has ended.
    Ended(Ended),
    /// Any other line.
    Other,
}

/// The end of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Ended {
    /// True if the run failed.
    pub(super) is_error: bool,
    /// The API's HTTP status, if that ended the run.
    pub(super) status: Option<u16>,
    /// The last message.
    pub(super) said: String,
    /// Cost of all turns in US dollars.
    pub(super) cost_usd: Option<f64>,
    /// Tokens of all turns.
    pub(super) usage: Usage,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    subtype: Option<Cow<'a, str>>,
    /// The call of a command's own tool, such as a subagent, that caused the event. Our tools never cause any.
    #[serde(default, borrow)]
    parent_tool_use_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    event: Option<&'a RawValue>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    mcp_servers: Vec<Server>,
    #[serde(default)]
    error: serde_json::Value,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    api_error_status: Option<u16>,
    #[serde(default)]
    result: serde_json::Value,
    #[serde(default)]
    total_cost_usd: Option<f64>,
    #[serde(default)]
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Server {
    name: String,
    #[serde(default)]
    status: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    message: serde_json::Value,
}

impl RelayLine {
    /// Parses a line. Unreadable and unknown lines become [`RelayLine::Other`].
    pub(super) fn parse(line: &str) -> Self {
        let Ok(raw) = serde_json::from_str::<Raw<'_>>(line) else { return Self::Other };
        match (&*raw.kind, raw.subtype.as_deref(), raw.event) {
            ("system", Some("init"), _) => Self::Begun {
                is_connected: raw.mcp_servers.iter().any(|it| it.name == SERVER && it.status == "connected"),
                tools: raw.tools,
            },
            ("stream_event", _, Some(event)) if raw.parent_tool_use_id.is_none() => Self::parse_event(event.get()),
            ("assistant", ..) => raw.error.as_str().map_or(Self::Other, |kind| Self::Fault(kind.to_owned())),
            ("result", ..) => Self::Ended(Ended {
                is_error: raw.is_error,
                status: raw.api_error_status,
                said: raw.result.as_str().unwrap_or_default().to_owned(),
                cost_usd: raw.total_cost_usd.filter(|usd| usd.is_finite() && *usd >= 0.0),
                usage: raw.usage.unwrap_or_default().into(),
            }),
            _ => Self::Other,
        }
    }

    fn parse_event(raw: &str) -> Self {
        let begins = serde_json::from_str::<Event<'_>>(raw).ok().filter(|event| event.kind == "message_start");
        let model = |event: Event<'_>| {
            event.message.get("model").and_then(|model| model.as_str()).unwrap_or_default().to_owned()
        };
        Self::Event { raw: raw.to_owned(), begins: begins.map(model) }
    }
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Self {
        Self {
            input: counts.input_tokens,
            output: counts.output_tokens,
            cache_read: counts.cache_read_input_tokens,
            cache_write: counts.cache_creation_input_tokens,
        }
    }
}

/// Lists the command's tools besides the offered ones.
pub(super) fn list_foreign_tools<'a>(tools: &'a [String], offered: &[String]) -> Vec<&'a str> {
    let is_ours = |tool: &&String| own_name(tool).is_some_and(|name| offered.iter().any(|known| known == name));
    tools.iter().filter(|tool| !is_ours(tool)).map(String::as_str).collect()
}

fn own_name(tool: &str) -> Option<&str> {
    tool.strip_prefix(PREFIX)
}

/// Restores our names of tools in a turn. A call of any other tool gets a name that no tool of ours can have.
pub(super) fn with_own_names(turn: Turn, offered: &[String]) -> Turn {
    let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(&turn.content) else { return turn };
    let blocks: Vec<String> = blocks.into_iter().map(|block| with_own_name(block.get(), offered)).collect();
    Turn { content: format!("[{}]", blocks.join(",")), ..turn }
}

fn with_own_name(block: &str, offered: &[String]) -> String {
    let Ok(mut fields) = object_fields(block) else { return block.to_owned() };
    let is_call = fields.iter().any(|(key, value)| key == "type" && value == r#""tool_use""#);
    if !is_call {
        return block.to_owned();
    }
    for (_, value) in fields.iter_mut().filter(|(key, _)| key == "name") {
        let called: String = serde_json::from_str(value).unwrap_or_default();
        // fault: call-anothers-tool-under
        let own = own_name(&called).filter(|name| offered.iter().any(|known| known == name));
        *value = serde_json::Value::from(own.map_or_else(|| format!("{called}{FOREIGN}"), str::to_owned)).to_string();
    }
    let fields = fields.iter().map(|(key, value)| format!("{}:{value}", serde_json::Value::from(key.as_str())));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Returns the ids of a turn's calls if the command will request all their results from us. `None` if it handles some call by itself: a
/// foreign tool, or unreadable arguments.
pub(super) fn list_awaited_calls(turn: &Turn) -> Option<Vec<String>> {
    let calls = tool_calls(&turn.content, &turn.stop);
    let is_ours = |name: &str| !name.ends_with(FOREIGN);
    let is_readable = |input: &str| input.starts_with('{') && !input.contains(INVALID_INPUT_KEY);
    let all = calls.iter().all(|call| call.fault.is_none() && is_ours(&call.name) && is_readable(call.input.get()));
    (all && !calls.is_empty()).then(|| calls.into_iter().map(|call| call.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::types::Stop;

    fn turn(content: &str) -> Turn {
        let (stop, usage) = (Stop::ToolUse, Usage::default());
        Turn { content: content.to_owned(), stop, usage, cost_usd: None, request_id: None }
    }

    fn offered() -> Vec<String> {
        ["note", "bash"].map(str::to_owned).to_vec()
    }

    #[test]
    fn lines_are_told_apart() {
        let begun = RelayLine::parse(
            r#"{"type":"system","subtype":"init","tools":["Bash"],"mcp_servers":[{"name":"reveille","status":"connected"}],"new":1}"#,
        );
        assert_eq!(begun, RelayLine::Begun { tools: vec!["Bash".to_owned()], is_connected: true });
        let pending = r#"{"type":"system","subtype":"init","mcp_servers":[{"name":"reveille","status":"pending"},{"name":"x","status":"connected"}]}"#;
        assert_eq!(RelayLine::parse(pending), RelayLine::Begun { tools: Vec::new(), is_connected: false });
        let event = r#"{"type":"stream_event","event":{"type":"message_start","message":{"model":"m"}},"parent_tool_use_id":null}"#;
        let raw = r#"{"type":"message_start","message":{"model":"m"}}"#.to_owned();
        assert_eq!(RelayLine::parse(event), RelayLine::Event { raw, begins: Some("m".to_owned()) });
        let fault = r#"{"type":"assistant","message":{},"error":"rate_limit"}"#;
        assert_eq!(RelayLine::parse(fault), RelayLine::Fault("rate_limit".to_owned()));
        for other in [
            "",
            "no json",
            "[]",
            r#"{"type":"user"}"#,
            r#"{"type":"assistant","message":{}}"#,
            r#"{"type":"system","subtype":"status"}"#,
            r#"{"type":"stream_event","event":{"type":"message_stop"},"parent_tool_use_id":"x"}"#,
        ] {
            assert_eq!(RelayLine::parse(other), RelayLine::Other, "{other}");
        }
    }

    #[test]
    fn an_end_tells_what_it_cost() {
        let line = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"no","total_cost_usd":0.5,
            "usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":3,"cache_creation_input_tokens":4,"server_tool_use":{}}}"#;
        let RelayLine::Ended(ended) = RelayLine::parse(line) else { panic!() };
        let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4 };
        assert_eq!(
            ended,
            Ended { is_error: true, status: Some(429), said: "no".to_owned(), cost_usd: Some(0.5), usage }
        );
        let RelayLine::Ended(ended) = RelayLine::parse(r#"{"type":"result","total_cost_usd":-1}"#) else { panic!() };
        assert_eq!(ended, Ended::default());
    }

    #[test]
    fn our_tools_get_their_names_back_and_no_other_gets_one_of_them() {
        let content = r#"[{"type":"text","text":"mcp__reveille__note"},{"type":"tool_use","id":"a","name":"mcp__reveille__note","input":{"n": 1.50}},
            {"type":"tool_use","id":"b","name":"bash","input":{}},{"type":"tool_use","id":"c","name":"mcp__reveille__other","input":{}},
            {"type":"tool_use","id":"d","name":"mcp__else__note","input":{}}]"#;
        let renamed = with_own_names(turn(content), &offered());
        let calls = tool_calls(&renamed.content, &renamed.stop);
        let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(
            names,
            ["note", "bash (not offered)", "mcp__reveille__other (not offered)", "mcp__else__note (not offered)"]
        );
        assert_eq!(calls[0].input.get(), r#"{"n": 1.50}"#, "arguments keep their bytes");
        assert!(renamed.content.contains(r#"{"type":"text","text":"mcp__reveille__note"}"#));
    }

    #[test]
    fn only_a_turn_whose_calls_are_all_ours_is_waited_for() {
        let of = |content: &str| list_awaited_calls(&with_own_names(turn(content), &offered()));
        let ours = r#"{"type":"tool_use","id":"a","name":"mcp__reveille__note","input":{}}"#;
        assert_eq!(of(&format!("[{ours}]")), Some(vec!["a".to_owned()]));
        assert_eq!(of(&format!(r#"[{ours},{{"type":"tool_use","id":"b","name":"Bash","input":{{}}}}]"#)), None);
        assert_eq!(
            of(&format!(
                r#"[{ours},{{"type":"tool_use","id":"b","name":"mcp__reveille__note","input":{{"INVALID_JSON":"x"}}}}]"#
            )),
            None
        );
        assert_eq!(of(r#"[{"type":"text","text":"t"}]"#), None);
    }

    #[test]
    fn tools_that_are_not_ours_are_seen() {
        let tools = ["mcp__reveille__note", "Bash", "mcp__reveille__x", "note"].map(str::to_owned);
        assert_eq!(list_foreign_tools(&tools, &offered()), ["Bash", "mcp__reveille__x", "note"]);
    }
}
