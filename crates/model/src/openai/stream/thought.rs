//! Strips thinking from a model's text, for servers that don't know the model's tags. Pure.

/// The opening and closing tags that models put around their thinking.
const MARKS: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
];
/// The opening mark of the final channel, and its possible closing marks, for a model that writes in channels.
const FINAL: (&str, [&str; 2]) = ("<|channel|>final<|message|>", ["<|return|>", "<|end|>"]);

/// Removes thinking at the beginning of a text. The prompt may have opened the thinking, so a closing tag alone is enough. A text that was
/// cut off inside thinking becomes empty.
pub(super) fn without_thought(text: String, is_cut: bool) -> String {
    let (channel, ends) = FINAL;
    if let Some((_, answer)) = text.rsplit_once(channel) {
        return ends.iter().fold(answer.trim(), |answer, end| answer.trim_end_matches(end)).to_owned();
    }
    let pair = MARKS.iter().find(|(begin, _)| text.trim_start().starts_with(begin));
    match pair {
        Some((begin, end)) => match text.split_once(end) {
            Some((_, answer)) => answer.trim_start().to_owned(),
            None if is_cut => String::new(),
            // The model may have forgotten the closing tag: keep the words.
            None => text.trim_start().strip_prefix(begin).unwrap_or(&text).trim_start().to_owned(),
        },
        None => match MARKS.first().and_then(|(begin, end)| Some((begin, text.split_once(end)?))) {
            Some((begin, (thought, answer))) if !thought.contains(begin) => answer.trim_start().to_owned(),
            _ => text,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_stripped_whatever_tags_the_model_uses() {
        for (name, text, is_cut, wanted) in [
            ("a pair", "<think>\nhm</think>\n\nHi", false, "Hi"),
            ("a closing tag alone", "hm\n</think>\nHi", false, "Hi"),
            ("quoted", "Say <think>x</think>.", false, "Say <think>x</think>."),
            ("another tag", "<thinking>hm</thinking>Hi", false, "Hi"),
            ("in brackets", "[THINK]hm[/THINK]Hi", false, "Hi"),
            ("cut off inside the thinking", " <think>hm, so", true, ""),
            ("never ended", "<think>It is 7.", false, "It is 7."),
            ("cut off after the thinking", "<think>hm</think>It is", true, "It is"),
            (
                "channels",
                "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>",
                false,
                "Hi",
            ),
            ("none", "Hi", true, "Hi"),
        ] {
            assert_eq!(without_thought(text.to_owned(), is_cut), wanted, "{name}");
        }
    }
}
