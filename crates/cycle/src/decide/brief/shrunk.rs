//! Shortens a conversation's first message if its model finds even that too long. Pure.
//!
//! Parts that a tool can show again go first; people's words go last, and from their end. Each call aims to remove half of the rest.

use serde_json::{Value, json};

use reveille_base::words::first_chars;
use reveille_model::anthropic::price::message_bytes;

use crate::decide::brief::blocks::text_block;

/// The size below which nothing more is left out, in bytes.
const MIN_BYTES: usize = 2_000;
/// The length below which a run of lines stays whole, in characters.
const MIN_RUN_CHARS: usize = 200;
/// Blocks that are left out before anyone's words, the least important first: how each begins, and its name.
const SPARED: [(&str, &str); 5] = [
    ("<recalled ", "what fits from the memory"),
    ("<similar_work", "similar work"),
    ("<projects ", "projects"),
    ("<memory>", "the memory's documents"),
    ("<recent_exchange>", "what was said before"),
];

/// Returns a shorter message, aiming at half the size. `None` if less than a tenth can be left out.
pub fn shrink_message(raw: &str) -> Option<String> {
    let (bytes, counted) = (raw.len(), message_bytes(raw));
    let message: Value = serde_json::from_str(raw).ok()?;
    let mut blocks = message.get("content")?.as_array()?.clone();
    if counted < MIN_BYTES {
        return None;
    }
    // A picture may be most of a request's bytes but few of its tokens.
    let gain = |blocks: &[Value]| {
        let raw = json!({"role": "user", "content": blocks}).to_string();
        (message_bytes(&raw) < counted / 10 * 9 || raw.len() < bytes / 10 * 9).then_some(raw)
    };
    for fewer in [remove_pictures, remove_spare_blocks, halve_blocks] {
        blocks = fewer(blocks, counted / 2);
        if let Some(raw) = gain(&blocks) {
            return Some(raw);
        }
    }
    None
}

fn remove_pictures(blocks: Vec<Value>, _: usize) -> Vec<Value> {
    let is_picture = |block: &Value| {
        block.get("type").and_then(Value::as_str).is_some_and(|kind| matches!(kind, "image" | "document"))
    };
    let placeholder = || text_block("(Not shown: this conversation became too long for it.)");
    blocks.into_iter().map(|block| if is_picture(&block) { placeholder() } else { block }).collect()
}

/// Removes blocks of the dispensable kinds until the rest is at most this long.
fn remove_spare_blocks(mut blocks: Vec<Value>, max_bytes: usize) -> Vec<Value> {
    for (beginning, name) in SPARED {
        if blocks.iter().map(|block| block.to_string().len()).sum::<usize>() <= max_bytes {
            break;
        }
        for block in blocks.iter_mut().filter(|block| extract_text(block).starts_with(beginning)) {
            *block = text_block(&format!(
                "(Left out, since this conversation became too long: {name}. Look it up if you need it.)"
            ));
        }
    }
    blocks
}

fn halve_blocks(blocks: Vec<Value>, _: usize) -> Vec<Value> {
    blocks.into_iter().map(halve_runs).collect()
}

/// Halves each long run of lines without an element of ours. Such lines are escaped words, so no element loses its end and no quoted text
/// leaves its element.
fn halve_runs(block: Value) -> Value {
    let text = extract_text(&block);
    if text.is_empty() {
        return block;
    }
    let mut kept: Vec<String> = Vec::new();
    let mut run: Vec<&str> = Vec::new();
    for line in text.split('\n') {
        if line.contains('<') {
            kept.extend(halve_run(&run));
            run.clear();
            kept.push(line.to_owned());
        } else {
            run.push(line);
        }
    }
    kept.extend(halve_run(&run));
    text_block(&kept.join("\n"))
}

fn halve_run(run: &[&str]) -> Option<String> {
    let words = run.join("\n");
    let chars = words.chars().count();
    if run.is_empty() || chars <= MIN_RUN_CHARS {
        return (!run.is_empty()).then_some(words);
    }
    let kept = first_chars(&words, chars / 2);
    let left_out = chars - kept.chars().count();
    Some(format!("{kept}\n<left_out characters=\"{left_out}\" why=\"too long for this AI model\"/>"))
}

fn extract_text(block: &Value) -> &str {
    block.get("text").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(texts: &[&str]) -> String {
        let blocks: Vec<Value> = texts.iter().map(|text| text_block(text)).collect();
        json!({"role": "user", "content": blocks}).to_string()
    }

    fn texts(raw: &str) -> Vec<String> {
        let message: Value = serde_json::from_str(raw).unwrap();
        message["content"].as_array().unwrap().iter().map(|block| extract_text(block).to_owned()).collect()
    }

    #[test]
    fn pictures_go_first_then_the_memory_and_last_half_of_what_was_said() {
        let said = format!(
            "<messages>\n<message id=\"1\">\n<quoted>old</quoted>\n{}\n</message>\n</messages>",
            "word ".repeat(1_000)
        );
        let memory = format!("<memory>\n{}\n</memory>", "fact\n".repeat(1_000));
        let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(90_000)}});
        let mut first: Value = serde_json::from_str(&message(&[&memory, &said])).unwrap();
        first["content"].as_array_mut().unwrap().push(picture);

        let without_picture = shrink_message(&first.to_string()).unwrap();
        assert!(
            without_picture.contains("Not shown") && texts(&without_picture)[..2] == [memory.clone(), said.clone()]
        );
        let without_memory = shrink_message(&without_picture).unwrap();
        assert!(texts(&without_memory)[0].starts_with("(Left out") && texts(&without_memory)[1] == said);
        let halved = texts(&shrink_message(&without_memory).unwrap())[1].clone();
        assert!(halved.starts_with("<messages>\n<message id=\"1\">\n<quoted>old</quoted>\nword word"), "{halved}");
        assert!(halved.ends_with("too long for this AI model\"/>\n</message>\n</messages>"), "{halved}");
        assert!(halved.len() < said.len() / 2 + 200);
    }

    #[test]
    fn if_the_memory_is_small_messages_are_halved_at_once() {
        let said = format!("<messages>\n<message id=\"1\">\n{}\n</message>\n</messages>", "word ".repeat(5_000));
        let shorter = texts(&shrink_message(&message(&["<memory>\nlittle\n</memory>", &said])).unwrap());
        assert!(shorter[0].starts_with("(Left out") && shorter[1].len() < said.len() / 2 + 200, "{shorter:#?}");
    }

    #[test]
    fn a_message_that_cant_be_shortened_gives_none() {
        for raw in [message(&["short"]), message(&[&"<x/>\n".repeat(2_000)]), "no json".to_owned()] {
            assert_eq!(shrink_message(&raw), None);
        }
    }

    proptest! {
        #[test]
        fn it_ends_soon_and_no_element_loses_its_end(bodies in prop::collection::vec("[a-z&;\n]{0,3000}", 1..6)) {
            let message_of = |body: &String| format!("\n<message id=\"1\">\n<quoted>q</quoted>\n{body}\n</message>");
            let text = format!("<messages>{}\n</messages>", bodies.iter().map(message_of).collect::<String>());
            let mut raw = message(&[&text]);
            for times in 0.. {
                prop_assert!(times < 20);
                let now = texts(&raw)[0].clone();
                for tag in ["<message id=\"1\">", "</message>", "<quoted>q</quoted>"] {
                    prop_assert_eq!(now.matches(tag).count(), bodies.len());
                }
                let Some(shorter) = shrink_message(&raw) else { break };
                prop_assert!(shorter.len() < raw.len());
                raw = shorter;
            }
        }
    }
}
