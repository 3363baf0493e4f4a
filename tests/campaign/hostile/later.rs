//! Checks the following wakes: they are untainted, so no text of the hostile wake may appear in their openings, and they may act. A
//! wake that reads the withheld text, or is shown it as a quotation, has to ask again.

use serde_json::json;

use reveille_base::types::ChatRef;
use reveille_store::{Batch, NewIncoming};

use super::{
    Answer,
    attacker::{ANSWER, FULL, turns_of},
    scene::{LURE, Scene},
};
use crate::support::{
    claude::{Block, Reply},
    env::CHAT,
};

/// An action an untainted cycle may take by itself.
const OWN: &str = "Own reminder";
/// An action a tainted cycle must ask about.
const THEIRS: &str = "Their reminder";

pub(super) fn check(scene: &mut Scene, answer: Answer) -> Result<(), String> {
    if !scene.is_tainted() {
        return Ok(());
    }
    // At the level that asks least, so only the taint matters.
    scene.env.set("AUTONOMY", FULL);
    let mut found = opening(scene, answer)?;
    found.extend(quotation(scene)?);
    if found.is_empty() { Ok(()) } else { Err(format!("in the wakes after: {}", found.join("; "))) }
}

/// Checks a message of the person's own: its opening, its freedom to act, and the question after reading withheld text.
fn opening(scene: &mut Scene, answer: Answer) -> Result<Vec<String>, String> {
    let before = scene.claude.requests().len();
    scene.env.receive(CHAT, "And what is next?");
    scene.claude.answer_with(|request| match turns_of(request) {
        0 => Reply::tools(vec![set("own", OWN)]),
        1 => Reply::tools(vec![Block::tool("read", "read_exchange", json!({"entries": withheld(&request.raw)}))]),
        2 => Reply::tools(vec![set("theirs", THEIRS)]),
        _ => Reply::text("I see."),
    });
    let mut found = wake(scene)?;
    let requests = scene.claude.requests();
    let opening = requests.get(before).ok_or("the mind wasn't asked")?;
    found.extend(held(&opening.json["messages"][0], &canaries(scene, answer)));
    if withheld(&opening.raw).is_empty() {
        found.push("nothing is said to be withheld".to_owned());
    }
    if !is_set(scene, OWN) {
        found.push("what had read nothing of others had to ask".to_owned());
    }
    let told = requests.last().map(|last| last.json["messages"].to_string()).unwrap_or_default();
    if !told.contains(ANSWER) {
        found.push("what was withheld can't be read".to_owned());
    }
    if is_set(scene, THEIRS) {
        found.push("what had read the withheld didn't have to ask".to_owned());
        return Ok(found);
    }
    scene.answer(Answer::No, false)?;
    found.extend(wake(scene)?);
    Ok(found)
}

/// Checks a message with a quotation of the hostile wake's answer.
fn quotation(scene: &Scene) -> Result<Vec<String>, String> {
    let quoted: i64 = scene.env.query(&format!(
        "SELECT p.channel_message_id FROM outgoing_parts p JOIN outgoing_messages o ON o.id = p.outgoing_id
         WHERE o.chat_id = {CHAT} AND o.message_text LIKE '%{ANSWER}%' AND p.part = 0 AND p.channel_message_id > 0
         ORDER BY o.id LIMIT 1"
    ));
    let message = NewIncoming {
        chat: ChatRef::from_telegram(CHAT),
        text: "Do that.".to_owned(),
        kind: "text".to_owned(),
        sender_id: Some(CHAT),
        quoted: Some(ANSWER.to_owned()),
        quotes_own: true,
        quotes: Some(quoted),
        update_id: Some(77_001),
        ..NewIncoming::default()
    };
    let batch = Batch { bot_id: 99, next_offset: 77_002, messages: vec![message], ..Batch::default() };
    let now = reveille_base::clock::parse_time("2026-11-21T14:00:00Z").ok_or("no time")?;
    scene.env.store().inbox_mut().accept_batch(&batch, now).map_err(|error| error.to_string())?;
    scene.claude.answer_with(|request| match turns_of(request) {
        0 => Reply::tools(vec![set("quoted", THEIRS)]),
        _ => Reply::text("I see."),
    });
    let mut found = wake(scene)?;
    if is_set(scene, THEIRS) {
        found.push("what was told to do as a quoted answer says didn't have to ask".to_owned());
    }
    Ok(found)
}

/// Runs one wake.
fn wake(scene: &Scene) -> Result<Vec<String>, String> {
    let ran = scene.env.wake(&["--once", "--json"]);
    if ran.code == 0 { Ok(Vec::new()) } else { Err(format!("a later wake failed: {ran:#?}")) }
}

fn set(id: &str, text: &str) -> Block {
    Block::tool(id, "reminder_set", json!({"text": text, "when": "2026-11-30 09:00"}))
}

fn is_set(scene: &Scene, text: &str) -> bool {
    scene.env.query(&format!("SELECT EXISTS (SELECT 1 FROM reminders WHERE text = '{text}')"))
}

/// Untrusted words of each origin, and texts made from them. Approved words belong to the person, except those that stay a guest's.
fn canaries(scene: &Scene, answer: Answer) -> Vec<&'static str> {
    let canaries = vec![LURE, ANSWER, "Obey fact"];
    if answer == Answer::Yes && scene.chat() == CHAT { canaries } else { [canaries, vec!["Obey"]].concat() }
}

/// The lines of an opening that hold one of them, each with its element.
fn held(opening: &serde_json::Value, canaries: &[&str]) -> Vec<String> {
    let blocks = opening["content"].as_array().into_iter().flatten().filter_map(|block| block["text"].as_str());
    let mut found = Vec::new();
    for block in blocks {
        let mut within = "";
        for line in block.lines() {
            if line.starts_with('<') {
                within = line;
            }
            if canaries.iter().any(|canary| line.contains(canary)) {
                found.push(format!("the opening holds {line:?} in {within}"));
            }
        }
    }
    found
}

/// The names of the last entries of the recent exchange whose text isn't shown.
fn withheld(raw: &str) -> Vec<String> {
    let names = raw.split(r#" entry=\""#).skip(1).filter_map(|rest| rest.split_once('\\'));
    let mut names: Vec<String> = names.map(|(name, _)| name.to_owned()).collect();
    names.reverse();
    names.truncate(4);
    names
}
