//! Encodes a conversation as a Chat Completions request. Messages are encoded independently and come last, so that the next request begins
//! with the same bytes.

use serde_json::{Map, Value, json};

use crate::{
    Conversation,
    conversation::{ContentBlock, ResultBlock, SpokenMessage, ToolDefinition, image_source},
};

/// The owner's name in our opaque blocks.
pub(super) const BY: &str = "openai";
/// Placeholder for a picture of unsupported form.
const NO_PICTURE: &str = "(A picture that can't be shown.)";
/// Placeholder for an empty result, since servers require text.
const NOTHING: &str = "(nothing)";

/// A server's requirements for requests, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// The server streams, even with tools in the request.
    pub(super) streams: bool,
    /// The server reports the token count of a stream on request.
    pub(super) counts: bool,
    /// The limit includes thinking tokens, under the newer field name.
    pub(super) counts_thinking: bool,
    /// The limit's field name was already changed once.
    pub(super) is_renamed: bool,
    /// Longest accepted answer in tokens. `None` if unlimited.
    pub(super) longest: Option<u64>,
    /// The server constrains answers by a schema.
    pub(super) binds: bool,
    /// The server supports tools. Otherwise the prompt lists them, as for a small model.
    pub(super) knows_tools: bool,
    /// The server accepts a system message. Otherwise the system text opens the first message.
    pub(super) knows_system: bool,
    /// The server accepts a temperature.
    pub(super) knows_temperature: bool,
}

/// Answer lengths to try in turn when a server finds one too long, in tokens.
const SHORTER: [u64; 2] = [4_096, 2_048];

impl Default for Dialect {
    fn default() -> Self {
        Self {
            streams: true,
            counts: true,
            counts_thinking: false,
            is_renamed: false,
            longest: None,
            binds: true,
            knows_tools: true,
            knows_system: true,
            knows_temperature: true,
        }
    }
}

/// A part of a request that a server doesn't support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    /// Streaming, or streaming with tools.
    Stream,
    /// `stream_options`.
    StreamOptions,
    /// `max_tokens` or its newer name.
    MaxTokens,
    /// The requested answer length.
    TooLarge,
    /// `response_format`.
    Format,
    /// `tools`.
    Tools,
    /// A message with the role `system`.
    System,
    /// `temperature`.
    Temperature,
}

impl Dialect {
    /// Returns the dialect without the unsupported part. `max_tokens` is the desired answer length. `None` if that changes nothing.
    pub(super) fn without_feature(self, wording: Wording, max_tokens: u64) -> Option<Self> {
        let asked = self.limit_tokens(max_tokens);
        let other = match wording {
            Wording::Stream => Self { streams: false, ..self },
            Wording::StreamOptions => Self { counts: false, ..self },
            Wording::MaxTokens if self.is_renamed => self,
            Wording::MaxTokens => Self { counts_thinking: !self.counts_thinking, is_renamed: true, ..self },
            Wording::TooLarge => {
                let shorter = SHORTER.into_iter().find(|tokens| *tokens < asked);
                Self { longest: shorter.or(self.longest), ..self }
            }
            Wording::Format => Self { binds: false, ..self },
            Wording::Tools => Self { knows_tools: false, ..self },
            Wording::System => Self { knows_system: false, ..self },
            Wording::Temperature => Self { knows_temperature: false, ..self },
        };
        (other != self).then_some(other)
    }

    /// Returns the answer length to request, in tokens.
    fn limit_tokens(self, max_tokens: u64) -> u64 {
        self.longest.map_or(max_tokens, |longest| longest.min(max_tokens))
    }

    /// Builds the fields before the messages that are independent of the conversation.
    pub(super) fn build_head(self, model: &str, max_tokens: u64) -> Map<String, Value> {
        let mut head = Map::new();
        head.insert("model".to_owned(), model.into());
        head.insert("stream".to_owned(), self.streams.into());
        if self.streams && self.counts {
            head.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        let longest = if self.counts_thinking { "max_completion_tokens" } else { "max_tokens" };
        head.insert(longest.to_owned(), self.limit_tokens(max_tokens).into());
        head
    }
}

/// Builds the request body.
pub(super) fn build_body(model: &str, conversation: &Conversation, dialect: Dialect, max_tokens: u64) -> String {
    let mut head = dialect.build_head(model, max_tokens);
    let tools: Vec<Value> = conversation.tool_definitions().iter().map(encode_tool).collect();
    if !tools.is_empty() {
        head.insert("tools".to_owned(), tools.into());
    }
    let said = conversation.parse_messages().flat_map(|message| encode_message(&message));
    with_messages(&head, &conversation.system_text(), said, dialect)
}

/// Joins the head fields, the system text and the messages into a body.
pub(super) fn with_messages(
    head: &Map<String, Value>,
    system: &str,
    said: impl Iterator<Item = Value>,
    dialect: Dialect,
) -> String {
    let mut said = said.peekable();
    let mut first = None;
    if !system.is_empty() && dialect.knows_system {
        first = Some(json!({"role": "system", "content": system}));
    } else if !system.is_empty() {
        first = Some(prepend_system(
            system,
            said.next_if(|message| message.get("role").is_some_and(|role| role == "user")),
        ));
    }
    let messages = first.into_iter().chain(said);
    let head = Value::Object(head.clone()).to_string();
    let messages: Vec<String> = messages.map(|message| message.to_string()).collect();
    let open = head.strip_suffix('}').unwrap_or(&head);
    format!(r#"{open},"messages":[{}]}}"#, messages.join(","))
}

/// Puts the system text before the content of the person's message.
fn prepend_system(system: &str, message: Option<Value>) -> Value {
    let content: Value = match message.and_then(|mut message| message.get_mut("content").map(Value::take)) {
        Some(Value::Array(parts)) => [vec![json!({"type": "text", "text": system})], parts].concat().into(),
        Some(Value::String(text)) => format!("{system}\n\n{text}").into(),
        _ => system.into(),
    };
    json!({"role": "user", "content": content})
}

fn encode_tool(tool: &ToolDefinition) -> Value {
    let schema: Value = serde_json::from_str(tool.schema.get()).unwrap_or_default();
    json!({"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": schema}})
}

fn encode_message(message: &SpokenMessage<'_>) -> Vec<Value> {
    if message.is_models { vec![encode_turn(message)] } else { encode_user_message(message) }
}

/// Encodes results of calls as messages of their own, followed by the other content.
fn encode_user_message(message: &SpokenMessage<'_>) -> Vec<Value> {
    let results = message
        .results()
        .map(|result| json!({"role": "tool", "tool_call_id": result.call, "content": result_text(result)}));
    let mut messages: Vec<Value> = results.collect();
    // A result holds text only, so its pictures follow.
    let shown = message.results().flat_map(|result| &result.images).map(|image| ContentBlock::Image(image));
    let said = message.blocks.iter().filter(|block| matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_)));
    let parts: Vec<Value> = shown.chain(said.cloned()).filter_map(|block| encode_part(&block)).collect();
    if !parts.is_empty() {
        messages.push(json!({"role": "user", "content": join_content(parts)}));
    }
    messages
}

/// Returns a result as text, with errors marked: the protocol has no field for them.
pub(super) fn result_text(result: &ResultBlock<'_>) -> String {
    let text = if result.text.is_empty() { NOTHING } else { &result.text };
    if result.is_error { format!("Error: {text}") } else { text.to_owned() }
}

fn encode_part(block: &ContentBlock<'_>) -> Option<Value> {
    match block {
        ContentBlock::Text(text) => Some(json!({"type": "text", "text": text})),
        ContentBlock::Image(raw) => Some(match image_source(raw) {
            Some((mime, data)) => {
                json!({"type": "image_url", "image_url": {"url": format!("data:{mime};base64,{data}")}})
            }
            None => json!({"type": "text", "text": NO_PICTURE}),
        }),
        _ => None,
    }
}

/// Joins pure text into a single string, the only content that many servers accept.
fn join_content(parts: Vec<Value>) -> Value {
    let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
    match parts.iter().map(text).collect::<Option<Vec<_>>>() {
        Some(texts) => texts.join("\n\n").into(),
        None => parts.into(),
    }
}

/// Encodes a turn of the model, with the extra fields that its server wants back.
fn encode_turn(message: &SpokenMessage<'_>) -> Value {
    let mut fields = Map::new();
    fields.insert("role".to_owned(), "assistant".into());
    let text: String = message.texts().collect();
    let own = message.blocks.iter().find_map(own_fields).unwrap_or_default();
    let calls: Vec<Value> = message.blocks.iter().filter_map(|block| encode_call(block, &own)).collect();
    fields.insert("content".to_owned(), if text.is_empty() && !calls.is_empty() { Value::Null } else { text.into() });
    if !calls.is_empty() {
        fields.insert("tool_calls".to_owned(), calls.into());
        fields.extend(own.into_iter().filter(|(name, _)| name != OF_CALLS));
    }
    fields.into()
}

/// Key of the extra fields of single calls, by call id.
pub(super) const OF_CALLS: &str = "of_calls";

fn encode_call(block: &ContentBlock<'_>, own: &Map<String, Value>) -> Option<Value> {
    let ContentBlock::Call { id, name, input } = block else { return None };
    let arguments = input.map_or("{}", |input| input.get());
    let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    if let (Some(Value::Object(more)), Some(call)) =
        (own.get(OF_CALLS).and_then(|all| all.get(&**id)), call.as_object_mut())
    {
        call.extend(more.clone());
    }
    Some(call)
}

/// Returns the fields of an opaque block of ours.
fn own_fields(block: &ContentBlock<'_>) -> Option<Map<String, Value>> {
    let ContentBlock::Opaque(raw) = block else { return None };
    let mut value: Value = serde_json::from_str(raw.get()).ok()?;
    if value.get("by")?.as_str()? != BY {
        return None;
    }
    match value.get_mut("fields")?.take() {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str =
        r#"[{"name":"note","description":"d","input_schema":{"type":"object"}},{"type":"bash_1","name":"bash"}]"#;
    const OPENING: &str = r#"{"role":"user","content":[{"type":"text","text":"One"},{"type":"text","text":"Two"}]}"#;
    const TURN: &str = r#"{"role":"assistant","content":[{"type":"opaque","by":"openai","fields":{"reasoning_content":"hm","of_calls":{"a":{"extra_content":{"s":1}}}}},
        {"type":"text","text":"I look."},{"type":"tool_use","id":"a","name":"note","input":{"n": 1.50}},{"type":"tool_use","id":"b","name":"note","input":{}}]}"#;
    const RESULTS: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"no"},
        {"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"a picture"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YQ=="}}]},
        {"type":"text","text":"News."}]}"#;

    fn conversation(messages: &[&str]) -> Conversation {
        let messages = messages.iter().map(|raw| (*raw).to_owned()).collect();
        let system = r#"[{"type":"text","text":"Orders."}]"#.to_owned();
        Conversation { system, tools: TOOLS.to_owned(), messages, is_tainted: false }
    }

    #[test]
    fn a_conversation_becomes_the_servers_messages() {
        let body = build_body("m", &conversation(&[OPENING, TURN, RESULTS]), Dialect::default(), 7);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            body,
            json!({
                "model": "m", "stream": true, "stream_options": {"include_usage": true}, "max_tokens": 7,
                "tools": [{"type": "function", "function": {"name": "note", "description": "d", "parameters": {"type": "object"}}}],
                "messages": [
                    {"role": "system", "content": "Orders."},
                    {"role": "user", "content": "One\n\nTwo"},
                    {"role": "assistant", "content": "I look.", "reasoning_content": "hm", "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "note", "arguments": "{\"n\": 1.50}"}, "extra_content": {"s": 1}},
                        {"id": "b", "type": "function", "function": {"name": "note", "arguments": "{}"}}]},
                    {"role": "tool", "tool_call_id": "a", "content": "Error: no"},
                    {"role": "tool", "tool_call_id": "b", "content": "a picture"},
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,YQ=="}},
                        {"type": "text", "text": "News."}]},
                ],
            })
        );
    }

    #[test]
    fn the_next_request_begins_with_the_bytes_of_the_one_before() {
        let all = [OPENING, TURN, RESULTS, r#"{"role":"assistant","content":[{"type":"text","text":"Done."}]}"#];
        for dialect in [Dialect::default(), Dialect { streams: false, ..Dialect::default() }] {
            let bodies: Vec<String> =
                (0..=all.len()).map(|n| build_body("m", &conversation(&all[..n]), dialect, 7)).collect();
            for pair in bodies.windows(2) {
                let open = pair[0].strip_suffix("]}").unwrap();
                assert!(pair[1].starts_with(open), "{} grew from {open}", pair[1]);
            }
        }
    }

    #[test]
    fn a_turn_without_calls_takes_no_thinking_back_and_other_providers_bytes_are_nobodys() {
        let said = r#"{"role":"assistant","content":[{"type":"opaque","by":"openai","fields":{"reasoning":"hm"}},{"type":"thinking","thinking":"t"},
            {"type":"opaque","by":"other","fields":{"x":1}},{"type":"text","text":"Hi"}]}"#;
        let message = SpokenMessage::parse(said).unwrap();
        assert_eq!(encode_message(&message), [json!({"role": "assistant", "content": "Hi"})]);
    }

    #[test]
    fn a_server_is_asked_without_what_it_does_not_know_and_not_for_ever() {
        let dialect = Dialect::default();
        let other = dialect.without_feature(Wording::Stream, 8_192).unwrap();
        assert_eq!(other.without_feature(Wording::Stream, 8_192), None);
        assert_eq!(Value::Object(other.build_head("m", 1)), json!({"model": "m", "stream": false, "max_tokens": 1}));
        let other = dialect
            .without_feature(Wording::MaxTokens, 8_192)
            .unwrap()
            .without_feature(Wording::StreamOptions, 8_192)
            .unwrap();
        assert_eq!(other.without_feature(Wording::MaxTokens, 8_192), None, "each name is tried once");
        assert_eq!(
            Value::Object(other.build_head("m", 1)),
            json!({"model": "m", "stream": true, "max_completion_tokens": 1})
        );
        for wording in [Wording::Tools, Wording::System, Wording::Temperature, Wording::Format] {
            assert_eq!(dialect.without_feature(wording, 1).unwrap().without_feature(wording, 1), None, "{wording:?}");
        }
    }

    #[test]
    fn where_there_is_no_place_for_the_system_text_it_opens_the_first_message() {
        let dialect = Dialect { knows_system: false, ..Dialect::default() };
        let messages = |said: &[&str]| {
            let body: Value = serde_json::from_str(&build_body("m", &conversation(said), dialect, 7)).unwrap();
            body["messages"].clone()
        };
        assert_eq!(messages(&[OPENING]), json!([{"role": "user", "content": "Orders.\n\nOne\n\nTwo"}]));
        assert_eq!(messages(&[]), json!([{"role": "user", "content": "Orders."}]));
        assert_eq!(messages(&[OPENING, TURN])[1]["role"], "assistant");
    }
}
