//! Replaces missing or repeated ids of calls, which occur with proxies for other models. Claude's own ids and all other bytes stay
//! unchanged.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::block::object_fields;
use crate::{
    Conversation,
    conversation::{ContentBlock, SpokenMessage},
    openai::CallIds,
};

/// Gives each call in a turn's content an id that is unique in the conversation.
pub(super) fn with_own_ids(content: String, conversation: &Conversation) -> String {
    let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(&content) else { return content };
    let calls: Vec<Option<String>> = blocks.iter().map(|block| id_of_call(block.get())).collect();
    if calls.iter().all(Option::is_none) {
        return content;
    }
    let messages = conversation.parse_messages().filter(|message| message.is_models);
    let mut known: BTreeSet<String> = messages.flat_map(|message| list_call_ids(&message)).collect();
    let is_own = |id: &String, known: &mut BTreeSet<String>| !id.is_empty() && known.insert(id.clone());
    let own: Vec<bool> = calls.iter().flatten().map(|id| is_own(id, &mut known)).collect();
    if own.iter().all(|is_own| *is_own) {
        return content;
    }
    let (mut new_ids, mut own) = (CallIds::for_conversation(conversation), own.into_iter());
    let blocks = blocks.iter().zip(&calls).map(|(block, call)| match call {
        Some(_) if own.next() == Some(false) => with_id(block.get(), &new_ids.next()),
        _ => block.get().to_owned(),
    });
    format!("[{}]", blocks.collect::<Vec<_>>().join(","))
}

/// Returns the id of a call, empty if missing. `None` if the block isn't a call.
fn id_of_call(block: &str) -> Option<String> {
    let fields = object_fields(block).ok()?;
    let text = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, raw)| raw.as_str());
    let id = || text("id").and_then(|raw| serde_json::from_str::<String>(raw).ok()).unwrap_or_default();
    (text("type") == Some("\"tool_use\"") && text("name").is_some()).then(id)
}

fn list_call_ids(message: &SpokenMessage<'_>) -> Vec<String> {
    let id = |block: &ContentBlock<'_>| match block {
        ContentBlock::Call { id, .. } => Some(id.to_string()),
        _ => None,
    };
    message.blocks.iter().filter_map(id).collect()
}

fn with_id(block: &str, id: &str) -> String {
    let fields = object_fields(block).unwrap_or_default();
    let others = fields.iter().filter(|(name, _)| name != "id");
    let others = others.map(|(name, raw)| format!("{}:{raw}", serde_json::Value::from(name.as_str())));
    let id = format!(r#""id":"{id}""#);
    format!("{{{}}}", others.chain([id]).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::assistant_message;

    #[test]
    fn only_what_has_no_id_of_its_own_gets_one() {
        let call = |id: &str| format!(r#"{{"type":"tool_use",{id}"name":"n","input":{{"a": 1.50}}}}"#);
        let before = format!("[{}]", call(r#""id":"call_0","#));
        let messages = vec![assistant_message(&before).unwrap()];
        let conversation = Conversation { messages, ..Conversation::default() };
        let own = format!(r#"[ {{"type":"thinking","thinking":"","signature":"s"}}, {}]"#, call(r#""id":"call_1","#));
        assert_eq!(with_own_ids(own.clone(), &conversation), own, "to the byte");
        for ids in [
            [r#""id":"call_0","#, r#""id":"x","#],
            ["", r#""id":"","#],
            [r#""id":"x","#, r#""id":"x","#],
            [r#""id":null,"#, ""],
        ] {
            let content = format!(r#"[{{"type":"text","text":"x"}},{},{}]"#, call(ids[0]), call(ids[1]));
            let content = with_own_ids(content, &conversation);
            let found = crate::content::tool_calls(&content, &reveille_base::types::Stop::ToolUse);
            let found: BTreeSet<&str> = found.iter().map(|call| call.id.as_str()).collect();
            assert!(found.len() == 2 && !found.contains("call_0") && !found.contains(""), "{content}");
            assert_eq!(content.matches(r#""input":{"a": 1.50}"#).count(), 2, "{content}");
        }
    }
}
