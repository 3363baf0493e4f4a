//! Parses calls that a model wrote as text because its server doesn't know its format. Only unambiguous calls of offered tools count. Never
//! used on tainted conversations, where the model may repeat untrusted text.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::stream::ReadAnswer;

/// Tags of Qwen and Hermes.
const TOOL_CALL: (&str, &str) = ("<tool_call>", "</tool_call>");
/// Mistral's tag, and the separator between name and arguments in its newer form.
const MISTRAL: (&str, &str) = ("[TOOL_CALLS]", "[ARGS]");
/// The fence of a code block.
const FENCE: &str = "```";

/// A call in the forms that models write.
#[derive(Deserialize)]
struct WrittenCall<'a> {
    #[serde(alias = "tool", alias = "function")]
    name: String,
    #[serde(default, borrow, alias = "parameters")]
    arguments: Option<&'a RawValue>,
}

/// Parses the calls in a text, with the text before them. `None` if there are no calls or any is unreadable.
pub(super) fn parse_calls(text: &str, offered: &[String]) -> Option<ReadAnswer> {
    let (before, calls) = parse_marked(text)
        .or_else(|| parse_mistral(text))
        .or_else(|| parse_fenced(text))
        .or_else(|| Some((String::new(), vec![parse_whole(text)?])))?;
    let is_offered = |(name, _): &(String, String)| offered.contains(name);
    (!calls.is_empty() && calls.iter().all(is_offered)).then_some(ReadAnswer { text: before, calls })
}

/// Parses a series of `<tool_call>{…}</tool_call>`; the last closing tag may be missing.
fn parse_marked(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let (begin, end) = TOOL_CALL;
    let (before, rest) = text.split_once(begin)?;
    let calls = rest.split(begin).map(|piece| {
        let (call, behind) = piece.split_once(end).unwrap_or((piece, ""));
        behind.trim().is_empty().then(|| parse_whole(call)).flatten()
    });
    Some((before.trim().to_owned(), calls.collect::<Option<_>>()?))
}

/// Parses `[TOOL_CALLS][{…},…]` or `[TOOL_CALLS]name[ARGS]{…}`.
fn parse_mistral(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let (mark, args) = MISTRAL;
    let (before, rest) = text.split_once(mark)?;
    let before = before.trim().to_owned();
    if let Ok(calls) = serde_json::from_str::<Vec<WrittenCall<'_>>>(rest.trim()) {
        return Some((before, calls.into_iter().map(WrittenCall::into_pair).collect()));
    }
    let calls = rest.split(mark).map(|call| {
        let (name, arguments) = call.split_once(args)?;
        let arguments: &RawValue = serde_json::from_str(arguments.trim()).ok()?;
        Some((name.trim().to_owned(), arguments.get().to_owned()))
    });
    Some((before, calls.collect::<Option<_>>()?))
}

/// Parses a code block at the text's end that contains just a call.
fn parse_fenced(text: &str) -> Option<(String, Vec<(String, String)>)> {
    let inner = text.trim().strip_suffix(FENCE)?;
    let (before, block) = inner.rsplit_once(FENCE)?;
    let code = block.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    Some((before.trim().to_owned(), vec![parse_whole(code)?]))
}

/// Parses a text that consists of just a call.
fn parse_whole(text: &str) -> Option<(String, String)> {
    let text = text.trim();
    if !text.starts_with('{') {
        return None;
    }
    serde_json::from_str::<WrittenCall<'_>>(text).ok().map(WrittenCall::into_pair)
}

impl WrittenCall<'_> {
    fn into_pair(self) -> (String, String) {
        let arguments = self.arguments.map(RawValue::get).filter(|raw| *raw != "null").unwrap_or_default();
        // Arguments may be a JSON string, as in the protocol.
        let arguments = serde_json::from_str::<String>(arguments).unwrap_or_else(|_| arguments.to_owned());
        (self.name, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(String, Vec<(String, String)>)> {
        parse_calls(text, &["note".to_owned(), "look".to_owned()]).map(|spoken| (spoken.text, spoken.calls))
    }

    fn calls(calls: &[(&str, &str)]) -> Vec<(String, String)> {
        calls.iter().map(|(name, input)| ((*name).to_owned(), (*input).to_owned())).collect()
    }

    #[test]
    fn the_formats_of_models_are_known() {
        for text in [
            r#"I look. <tool_call>{"name": "note", "arguments": {"n": 1.50}}</tool_call>"#,
            "I look.\n<tool_call>\n{\"name\": \"note\", \"arguments\": {\"n\": 1.50}}\n",
            r#"I look.[TOOL_CALLS] [{"name": "note", "arguments": {"n": 1.50}}]"#,
            r#"I look.[TOOL_CALLS]note[ARGS]{"n": 1.50}"#,
            "I look.\n```json\n{\"name\": \"note\", \"arguments\": {\"n\": 1.50}}\n```",
        ] {
            assert_eq!(found(text), Some(("I look.".to_owned(), calls(&[("note", r#"{"n": 1.50}"#)]))), "{text}");
        }
        let bare = r#"{"name": "note", "parameters": {"a": 1}}"#;
        assert_eq!(found(bare), Some((String::new(), calls(&[("note", r#"{"a": 1}"#)]))));
        let two =
            r#"<tool_call>{"name":"note","arguments":"{\"a\":1}"}</tool_call> <tool_call>{"name":"look"}</tool_call>"#;
        assert_eq!(found(two), Some((String::new(), calls(&[("note", r#"{"a":1}"#), ("look", "")]))));
    }

    #[test]
    fn what_may_be_meant_otherwise_stays_text() {
        for text in [
            "",
            "A plain answer.",
            r#"{"name": "bash", "arguments": {}}"#,
            r#"<tool_call>{"name":"note"}</tool_call><tool_call>{"name":"bash"}</tool_call>"#,
            r#"<tool_call>{"name":"note"}</tool_call> is what I would have called."#,
            r#"<tool_call>{"name":"no"#,
            "Such a call is\n```json\n{\"name\":\"note\"}\n```\nand does nothing.",
            r#"Call {"name":"note","arguments":{}}"#,
            r#"[TOOL_CALLS]"#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
