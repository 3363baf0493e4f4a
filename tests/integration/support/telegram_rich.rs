//! Rich messages as the fake server takes them: with known and balanced tags, within the limits, and without media.

use serde_json::{Value, json};

use super::{
    telegram::{SENT_AT, SentMessage},
    telegram_server::{State, buttons},
};

/// The tags of blocks. The documentation counts list items and rows less strictly.
const BLOCKS: [&str; 16] = [
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "pre",
    "table",
    "tr",
    "ul",
    "ol",
    "li",
    "tg-math-block",
    "hr/",
];
const INLINE: [&str; 9] = ["th", "td", "code", "b", "i", "s", "u", "a", "tg-math"];

/// Takes a rich message.
///
/// # Errors
/// The server's error message.
pub(super) fn send_rich_message(state: &mut State, request: &Value) -> Result<Value, String> {
    let rich = &request["rich_message"];
    let Some(html) = rich["html"].as_str().filter(|_| rich["markdown"].is_null()) else {
        return Err("exactly one of html and markdown must be used".to_owned());
    };
    if rich["skip_entity_detection"] != true {
        state.violations.push("a rich message whose entities are detected".to_owned());
    }
    let visible = read_html(html).map_err(|problem| format!("can't parse rich message: {problem}"))?;
    let message = SentMessage {
        message_id: 5000 + i64::try_from(state.sent.len()).unwrap(),
        chat_id: request["chat_id"].as_i64().unwrap(),
        thread_id: request["message_thread_id"].as_i64(),
        reply_to: request["reply_parameters"]["message_id"].as_i64(),
        text: html.to_owned(),
        visible: visible.clone(),
        html: true,
        silent: request["disable_notification"] == true,
        preview: false,
        buttons: buttons(request)?,
        file: None,
        is_rich: true,
    };
    state.sent.push(message.clone());
    state.standing.push(((message.chat_id, message.message_id), visible));
    Ok(json!({"message_id": message.message_id, "date": SENT_AT,
        "chat": {"id": message.chat_id, "type": "private", "first_name": "Ana"},
        "from": {"id": 99, "is_bot": true, "first_name": "Reveille", "username": "reveille_bot"}}))
}

/// Returns the visible text, with a line for each block.
fn read_html(html: &str) -> Result<String, String> {
    let (mut open, mut blocks, mut columns, mut seen) = (Vec::<&str>::new(), 0, 0, String::new());
    for (index, piece) in html.split('<').enumerate() {
        let text = if index == 0 { piece } else { read_tag(piece, &mut open, &mut blocks, &mut columns, &mut seen)? };
        seen.push_str(&text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"));
    }
    let characters = seen.trim().chars().count();
    match (open.last(), characters) {
        (Some(name), _) => Err(format!("{name} isn't closed")),
        (None, 0) => Err("the message is empty".to_owned()),
        (None, 32_769..) => Err("the message is too long".to_owned()),
        (None, _) if blocks > 500 => Err("too many blocks".to_owned()),
        (None, _) => Ok(seen.trim().to_owned()),
    }
}

/// Reads a tag, and returns the text after it.
fn read_tag<'a>(
    piece: &'a str,
    open: &mut Vec<&'a str>,
    blocks: &mut usize,
    columns: &mut usize,
    seen: &mut String,
) -> Result<&'a str, String> {
    let (tag, text) = piece.split_once('>').ok_or("a tag isn't closed")?;
    let name = tag.split(' ').next().unwrap_or_default();
    if let Some(name) = name.strip_prefix('/') {
        if open.pop() != Some(name) {
            return Err(format!("unmatched end tag {name}"));
        }
        return Ok(text);
    }
    if !BLOCKS.contains(&name) && !INLINE.contains(&name) {
        return Err(format!("unsupported start tag {tag}"));
    }
    if BLOCKS.contains(&name) {
        *blocks += 1;
        seen.push('\n');
    }
    match name {
        "tr" => *columns = 0,
        "td" | "th" => {
            *columns += 1;
            seen.push(if *columns > 1 { '\t' } else { ' ' });
        }
        _ => {}
    }
    if *columns > 20 {
        return Err("too many columns".to_owned());
    }
    if name != "hr/" {
        open.push(name);
    }
    if open.len() > 16 {
        return Err("nested too deeply".to_owned());
    }
    Ok(text)
}
