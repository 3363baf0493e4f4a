//! The request form for small models. The prompt lists the tools briefly, and a JSON schema limits the answer to `{"say": …}` or `{"tool":
//! …, "arguments": …}`. This works with any model's template and rules out other answers. Sampling is greedy: the likeliest token each
//! time.

use serde_json::{Map, Value, json};

use reveille_base::growing_json::GrowingField;

use super::{
    encode::{self, Dialect},
    stream::ReadAnswer,
};
use crate::{
    Conversation, TurnPiece,
    conversation::{ContentBlock, SpokenMessage, ToolDefinition},
};

/// Schema keys to leave out: useless for a grammar, or perhaps unknown to the server's schema parser.
const LEFT_OUT: [&str; 6] = ["description", "title", "default", "format", "examples", "$schema"];
/// Longest text argument in characters, unless its tool sets a limit.
const MAX_TEXT_CHARS: u64 = 2_000;
/// The field of an answer to the person.
pub(super) const SAY: &str = "say";
/// The answer's form, explained to the model.
const FORM: &str = "Answer with one JSON object and nothing else: {\"say\": \"…\"} says something to your person and ends your turn; \
     {\"tool\": \"…\", \"arguments\": {…}} calls one of these tools, and you are told its result:";

/// Builds the request body.
pub(super) fn build_body(model: &str, conversation: &Conversation, dialect: Dialect, max_tokens: u64) -> String {
    let tools = conversation.tool_definitions();
    let mut head = dialect.build_head(model, max_tokens);
    if dialect.knows_temperature {
        head.insert("temperature".to_owned(), 0.into());
    }
    if dialect.binds {
        let schema = json!({"name": "answer", "strict": true, "schema": build_schema(&tools)});
        head.insert("response_format".to_owned(), json!({"type": "json_schema", "json_schema": schema}));
    }
    let said = conversation.parse_messages().map(|message| encode_message(&message));
    encode::with_messages(&head, &build_system(conversation, &tools), said, dialect)
}

fn build_system(conversation: &Conversation, tools: &[ToolDefinition]) -> String {
    let tool = |tool: &ToolDefinition| {
        let brief = tool.description.split_inclusive(". ").next().unwrap_or_default().trim();
        let schema: Value = serde_json::from_str(tool.schema.get()).unwrap_or_default();
        format!("- {}: {brief} Arguments: {}", tool.name, list_arguments(&schema))
    };
    let tools: Vec<String> = tools.iter().map(tool).collect();
    format!("{}\n\n{FORM}\n{}", conversation.system_text(), tools.join("\n"))
}

/// Lists the arguments with their types; optional ones have a question mark.
fn list_arguments(schema: &Value) -> String {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let named = properties.into_iter().flatten().map(|(name, property)| {
        let mark = if required.contains(&name.as_str()) { "" } else { "?" };
        format!("{name}{mark} ({})", kind(property))
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}

fn kind(property: &Value) -> String {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
        return values.join("|");
    }
    match property.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("text").to_owned()
        }
        _ => "text".to_owned(),
    }
}

/// Builds the schema of an answer.
fn build_schema(tools: &[ToolDefinition]) -> Value {
    let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let say = object(json!({"say": {"type": "string"}}), json!(["say"]));
    let call = |tool: &ToolDefinition| {
        let arguments = serde_json::from_str(tool.schema.get()).unwrap_or_default();
        let name = json!({"type": "string", "enum": [tool.name]});
        object(json!({"tool": name, "arguments": bound_schema(arguments)}), json!(["tool", "arguments"]))
    };
    let forms: Vec<Value> = [say].into_iter().chain(tools.iter().map(call)).collect();
    json!({"anyOf": forms})
}

/// Strips a schema for use as a grammar and limits the length of texts, since a small model may never end one.
fn bound_schema(schema: Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let is_named = fields.contains_key("type") || fields.contains_key("anyOf") || fields.contains_key("oneOf");
            // Keys below `properties` are names of arguments, so all of them stay.
            let kept = |name: &String| !is_named || !LEFT_OUT.contains(&name.as_str());
            let mut fields: Map<String, Value> = fields
                .into_iter()
                .filter(|(name, _)| kept(name))
                .map(|(name, value)| (name, bound_schema(value)))
                .collect();
            if fields.get("type").is_some_and(|kind| kind == "string") && !fields.contains_key("enum") {
                fields.entry("maxLength").or_insert(MAX_TEXT_CHARS.into());
            }
            fields.into()
        }
        Value::Array(items) => items.into_iter().map(bound_schema).collect(),
        other => other,
    }
}

/// Encodes a message in this module's form, without pictures.
fn encode_message(message: &SpokenMessage<'_>) -> Value {
    let block = |block: &ContentBlock<'_>| match block {
        ContentBlock::Text(text) if message.is_models => Some(json!({"say": text}).to_string()),
        ContentBlock::Text(text) => Some(text.to_string()),
        ContentBlock::Call { name, input, .. } => {
            let arguments = input.map_or("{}", |input| input.get());
            Some(format!(r#"{{"tool":{},"arguments":{arguments}}}"#, Value::from(&**name)))
        }
        ContentBlock::Result(result) => Some(format!("What came of it: {}", encode::result_text(result))),
        ContentBlock::Image(_) => Some("(A picture, which you can't see.)".to_owned()),
        ContentBlock::Opaque(_) => None,
    };
    let texts: Vec<String> = message.blocks.iter().filter_map(block).collect();
    json!({"role": if message.is_models { "assistant" } else { "user" }, "content": texts.join("\n\n")})
}

/// Keeps the words to the person of a growing answer in this form, whose raw text is JSON.
pub(super) fn list_spoken(spoken: &mut GrowingField, pieces: Vec<TurnPiece>) -> Vec<TurnPiece> {
    let mut shown = Vec::new();
    for piece in pieces {
        if let TurnPiece::Text(json) = piece {
            shown.push(TurnPiece::Text(spoken.push(&json)));
        }
    }
    shown.retain(|piece| *piece != TurnPiece::Text(String::new()));
    shown
}

/// Parses an answer in this form. `is_cut`: the output limit ended it. `None` for any other text, since not every server enforces the
/// schema.
pub(super) fn parse_answer(text: &str, offered: &[String], is_cut: bool) -> Option<ReadAnswer> {
    let inner = text.trim().trim_start_matches("```json").trim_matches('`').trim();
    let whole = serde_json::from_str::<Map<String, Value>>(inner);
    // Text that was cut off still counts as text.
    let whole = whole.or_else(|error| if is_cut { serde_json::from_str(&format!("{inner}\"}}")) } else { Err(error) });
    let answer = whole.ok()?;
    if let Some(said) = answer.get(SAY).and_then(Value::as_str) {
        return Some(ReadAnswer { text: said.to_owned(), calls: Vec::new() });
    }
    let name = answer.get("tool")?.as_str().filter(|name| offered.iter().any(|known| known == name))?;
    let arguments = answer.get("arguments").map(Value::to_string).unwrap_or_default();
    Some(ReadAnswer { text: String::new(), calls: vec![(name.to_owned(), arguments)] })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = r#"[{"name":"remember","description":"Keeps a fact. At length: more.","input_schema":{"type":"object","properties":
        {"text":{"type":"string","description":"What."},"format":{"type":["string","null"],"format":"date"},"kind":{"enum":["a","b"],"type":"string"}},"required":["text"]}}]"#;

    fn conversation(messages: &[&str]) -> Conversation {
        let messages = messages.iter().map(|raw| (*raw).to_owned()).collect();
        let system = r#"[{"type":"text","text":"Orders."}]"#.to_owned();
        Conversation { system, tools: TOOLS.to_owned(), messages, is_tainted: false }
    }

    #[test]
    fn tools_stand_in_the_prompt_in_few_words_and_answers_are_bound() {
        let said = r#"{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"image","source":{}}]}"#;
        let turn =
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"remember","input":{"text":"x"}}]}"#;
        let results = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"Kept."}]}"#;
        let body: Value =
            serde_json::from_str(&build_body("m", &conversation(&[said, turn, results]), Dialect::default(), 9))
                .unwrap();
        assert_eq!((&body["temperature"], &body["tools"]), (&json!(0), &Value::Null));
        let system = body["messages"][0]["content"].as_str().unwrap();
        assert!(system.starts_with("Orders.\n\n"), "{system}");
        assert!(
            system.ends_with("- remember: Keeps a fact. Arguments: text (string), format? (string), kind? (a|b)"),
            "{system}"
        );
        assert_eq!(
            body["messages"].as_array().unwrap()[1..],
            [
                json!({"role": "user", "content": "Hi\n\n(A picture, which you can't see.)"}),
                json!({"role": "assistant", "content": r#"{"tool":"remember","arguments":{"text":"x"}}"#}),
                json!({"role": "user", "content": "What came of it: Kept."}),
            ]
        );
        let call = &body["response_format"]["json_schema"]["schema"]["anyOf"][1];
        assert_eq!(
            call["properties"]["arguments"],
            json!({"type": "object", "required": ["text"], "properties": {
                "text": {"type": "string", "maxLength": MAX_TEXT_CHARS}, "format": {"type": ["string", "null"]},
                "kind": {"type": "string", "enum": ["a", "b"]}}})
        );
        assert_eq!(call["properties"]["tool"]["enum"], json!(["remember"]));
    }

    #[test]
    fn only_words_to_the_person_are_previewed() {
        let preview = |pieces: &[&str]| {
            let mut spoken = GrowingField::new(SAY);
            let pieces = pieces.iter().map(|piece| TurnPiece::Text((*piece).to_owned())).collect();
            list_spoken(&mut spoken, pieces)
        };
        let text = |text: &str| TurnPiece::Text(text.to_owned());
        assert_eq!(preview(&["{\"sa", "y\": \"Go", "od\\n", "day\"}"]), [text("Go"), text("od\n"), text("day")]);
        assert_eq!(preview(&[r#"{"tool": "remember", "arguments": {"say": "no"}}"#]), []);
    }

    #[test]
    fn an_answer_is_a_call_or_words_and_nothing_is_lost() {
        let offered = ["remember".to_owned()];
        let read = |text: &str, is_cut| parse_answer(text, &offered, is_cut).map(|spoken| (spoken.text, spoken.calls));
        assert_eq!(read(r#" {"say": "Hi"}"#, false), Some(("Hi".to_owned(), Vec::new())));
        let call = vec![("remember".to_owned(), r#"{"text":"x"}"#.to_owned())];
        assert_eq!(read(r#"{"tool":"remember","arguments":{"text":"x"}}"#, false), Some((String::new(), call.clone())));
        assert_eq!(
            read("```json\n{\"tool\":\"remember\",\"arguments\":{\"text\":\"x\"}}\n```", false),
            Some((String::new(), call))
        );
        assert_eq!(read(r#"{"say": "Half a sent"#, true), Some(("Half a sent".to_owned(), Vec::new())));
        for other in [
            "Hi",
            r#"{"tool":"bash","arguments":{}}"#,
            r#"{"say": "Half"#,
            r#"{"tool":"remember","arguments":{"text":"x"#,
        ] {
            assert_eq!(read(other, false), None, "{other}");
        }
    }
}
