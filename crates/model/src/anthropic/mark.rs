//! Marks for the prompt cache. Marks in our own blocks are rewritten for servers that support only the plain form.

use std::borrow::Cow;

/// The field that marks the end of a cacheable prefix in a block.
pub(super) const CACHE_MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
/// The mark of our blocks, cached for an hour, and the plain mark that every server supports.
const HOUR_MARK: &str = r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#;
const SHORT_MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;
/// Beginning of a model's message, as written by `assistant_message`.
const MODELS_MESSAGE: &str = r#"{"role":"assistant""#;

/// Rewrites our blocks for a server without the one-hour cache. A mark quoted in text has escaped quotes, so only real marks change.
pub(super) fn shorten_marks(ours: &str) -> Cow<'_, str> {
    if ours.contains(HOUR_MARK) { Cow::from(ours.replace(HOUR_MARK, SHORT_MARK)) } else { Cow::from(ours) }
}

/// Rewrites a message of ours. The model's messages stay byte for byte, since a call's arguments may look like a mark.
pub(super) fn shorten_message_marks(message: &str) -> Cow<'_, str> {
    if message.starts_with(MODELS_MESSAGE) { Cow::from(message) } else { shorten_marks(message) }
}

/// Marks the last block of the last message, which is always the user's, as the end of the cacheable conversation.
pub(super) fn mark_last_block(body: &mut String) {
    const END: &str = "}]}";
    if body.ends_with(END) {
        body.truncate(body.len() - END.len());
        body.push_str(CACHE_MARK);
        body.push_str(END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::assistant_message;

    #[test]
    fn a_mark_is_changed_where_we_wrote_it_and_never_in_a_turn_of_the_models() {
        let call = format!(r#"[{{"type":"tool_use","id":"a","name":"n","input":{{{HOUR_MARK}}}}}]"#);
        let turn = assistant_message(&call).unwrap();
        assert_eq!(shorten_message_marks(&turn), turn);
        let ours = format!(r#"{{"role":"user","content":[{{"type":"text","text":"S",{HOUR_MARK}}}]}}"#);
        assert_eq!(shorten_message_marks(&ours), ours.replace(HOUR_MARK, SHORT_MARK));
    }
}
