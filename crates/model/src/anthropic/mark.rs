//! Marks of what is worth caching. Not every server knows all that ours say: those of what we wrote are put in words that it knows.

use std::borrow::Cow;

/// What says, in a block, that the conversation up to it is worth caching.
pub(super) const CACHE_MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;
/// The mark of what is kept for an hour, as our blocks have it, and the one that every server knows.
const HOUR_MARK: &str = r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#;
const SHORT_MARK: &str = r#""cache_control":{"type":"ephemeral"}"#;
/// How a message of the model's begins, as `assistant_message` writes it.
const MODELS_MESSAGE: &str = r#"{"role":"assistant""#;

/// What we wrote, for a server that keeps nothing for an hour. Within a text the mark's quotes would be escaped: only marks change.
pub(super) fn known(ours: &str) -> Cow<'_, str> {
    if ours.contains(HOUR_MARK) { Cow::from(ours.replace(HOUR_MARK, SHORT_MARK)) } else { Cow::from(ours) }
}

/// The same of a message. The model's own go back byte for byte: what a call was given may look like a mark.
pub(super) fn known_in(message: &str) -> Cow<'_, str> {
    if message.starts_with(MODELS_MESSAGE) { Cow::from(message) } else { known(message) }
}

/// Marks the last block of the last message, which is ours: how far the conversation is to be cached.
pub(super) fn last_block(body: &mut String) {
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
        assert_eq!(known_in(&turn), turn);
        let ours = format!(r#"{{"role":"user","content":[{{"type":"text","text":"S",{HOUR_MARK}}}]}}"#);
        assert_eq!(known_in(&ours), ours.replace(HOUR_MARK, SHORT_MARK));
    }
}
