//! The wakes after: they have read nothing of others, so nothing that the hostile one has left stands in their openings, and they may act.
//! Once one of them reads what is withheld, or is shown it as a quotation, it has to ask again.

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

/// What a cycle may do by itself that has read nothing of others.
const OWN: &str = "Own reminder";
/// What one may not that has.
const THEIRS: &str = "Their reminder";

pub(super) fn check(scene: &mut Scene, answer: Answer) -> Result<(), String> {
    if !scene.is_tainted() {
        return Ok(());
    }
    // What an owner's cycle may do that has read nothing of others is what is looked at now.
    scene.env.set("AUTONOMY", FULL);
    let mut found = opening(scene, answer)?;
    found.extend(quotation(scene)?);
    if found.is_empty() { Ok(()) } else { Err(format!("in the wakes after: {}", found.join("; "))) }
}

/// A message of the person's own: what its opening holds, what it may do, and what after reading what was withheld.
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

/// A message that quotes the answer of the hostile wake.
fn quotation(scene: &Scene) -> Result<Vec<String>, String> {
    let quoted: i64 = scene.env.query(&format!(
        "SELECT p.channel_message_id FROM outgoing_parts p JOIN outgoing_messages o ON o.id = p.outgoing_id
         WHERE o.chat_id = {CHAT} AND o.message_text LIKE '%{ANSWER}%' AND p.part = 0 AND p.channel_message_id > 0
         ORDER BY o.id LIMIT 1"
    ));
    let message = NewIncoming {
        chat: ChatRef::telegram(CHAT),
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
    scene.env.store().accept(&batch, now).map_err(|error| error.to_string())?;
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

/// One wake; what is wrong with it.
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

/// Words of others, of each origin, and of what was made of them. What its person has agreed to is theirs, but for what stays a guest's.
fn canaries(scene: &Scene, answer: Answer) -> Vec<&'static str> {
    let canaries = vec![LURE, ANSWER, "Obey fact"];
    if answer == Answer::Yes && scene.chat() == CHAT { canaries } else { [canaries, vec!["Obey"]].concat() }
}

/// The lines of an opening that hold one of them, each with what it stands in.
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
