//! A model and its tools, drawn from a seed: turns that call, speak, break off or make no sense, and the effects of the calls.

use chrono::TimeDelta;
use fastrand::Rng;

use reveille_base::{schedule::Rule, types::ChatRef, types::Stop};
use reveille_cycle::decide::machine::{Cycle, ToolRequest};
use reveille_store::{Change, Entry, MessageOutcome, NewCycle, NewOutgoing, NewReminder, OutgoingKind, StagedFile};

use super::{
    command::Temper,
    scene::{OWNER, Scene},
};

/// The end of a request.
pub(super) enum Answer {
    Turn { content: String, stop: Stop },
    CutOff,
    Unavailable,
    Rejected,
    Stopped,
    OutOfTime,
}

/// The answer to a request of this cycle; a calm model just answers.
pub(super) fn turn(random: &mut Rng, cycle: &str, state: &Cycle, scene: &Scene) -> Answer {
    if scene.is_calm {
        return Answer::Turn { content: r#"[{"type":"text","text":"So it is."}]"#.to_owned(), stop: Stop::EndTurn };
    }
    if scene.temper == Temper::Refusing && random.u32(0..3) == 0 {
        return Answer::Rejected;
    }
    match random.u32(0..100) {
        0..5 => return Answer::CutOff,
        5..10 => return Answer::Unavailable,
        10..14 => return Answer::Rejected,
        14..18 => return Answer::Stopped,
        18..22 => return Answer::OutOfTime,
        _ => {}
    }
    let mut blocks = Vec::new();
    if random.bool() {
        blocks.push(serde_json::json!({"type": "text", "text": format!("Words of turn {}.", state.turns)}));
    }
    for n in 0..random.u32(0..4) {
        const TOOLS: [&str; 8] =
            ["reply", "tell", "note", "note", "reminder_set", "reminder_done", "keep", "no_such_tool"];
        // Sometimes an id is used again.
        let turn = if random.u32(0..20) == 0 { 0 } else { state.turns };
        let name = random.choice(&TOOLS).copied().unwrap_or_default();
        let id = format!("call-{cycle}-{turn}-{n}");
        blocks.push(serde_json::json!({"type": "tool_use", "id": id, "name": name, "input": {}}));
    }
    let stop = match random.u32(0..20) {
        0 => Stop::MaxTokens,
        1 => Stop::PauseTurn,
        2 => Stop::Refusal("no".to_owned()),
        3 => Stop::ContextExceeded,
        _ => Stop::EndTurn,
    };
    Answer::Turn { content: serde_json::Value::from(blocks).to_string(), stop }
}

/// The effect of a call: its outcome's entry, and the changes that come with it.
pub(super) fn outcome(
    scene: &Scene,
    cycle: &NewCycle,
    state: &Cycle,
    call: &ToolRequest,
    random: &mut Rng,
) -> (Entry, Vec<Change>) {
    let changes = match call.name.as_str() {
        "reply" => answer(cycle.chat, &long_or_short(random, &call.id), &state.open, MessageOutcome::Answered),
        "tell" => {
            let key = Some(format!("tell/{}", random.u32(0..6)));
            vec![Change::Send(NewOutgoing { key, ..outgoing(OWNER, &call.id, OutgoingKind::Tell) })]
        }
        "note" => vec![note(scene, &cycle.id, call, random)],
        "reminder_set" => {
            let at = scene.now + TimeDelta::seconds(random.i64(0..7_200));
            let rule = random.bool().then_some(Rule::Interval { minutes: 60, anchor: at });
            let (text, zone) = (call.id.clone(), "UTC".to_owned());
            let slot = at.naive_utc();
            vec![Change::AddReminder(NewReminder {
                chat: OWNER,
                thread_id: None,
                text,
                rule,
                zone,
                slot,
                next_at: at,
                missed: reveille_base::schedule::Missed::Run,
            })]
        }
        "reminder_done" => {
            let id = random.i64(1..6);
            vec![Change::EndReminder { id }]
        }
        "keep" => hold_messages(scene, cycle, state, random),
        _ => Vec::new(),
    };
    if changes.is_empty() {
        return (failed(call, "Nothing was done."), Vec::new());
    }
    let closed = changes.iter().flat_map(|change| match change {
        Change::Done { messages, .. } | Change::Hold { messages, .. } => messages.clone(),
        _ => Vec::new(),
    });
    let entry = Entry::Outcome {
        call: call.id.clone(),
        name: call.name.clone(),
        content: "Done.".to_owned(),
        is_error: false,
        receipt: Some(format!("Did {}", call.id)),
        closed: closed.collect(),
        taint: None,
        image: None,
    };
    (entry, changes)
}

/// A text as the answer to messages.
pub(super) fn answer(chat: Option<ChatRef>, text: &str, open: &[i64], outcome: MessageOutcome) -> Vec<Change> {
    let Some(chat) = chat else { return Vec::new() };
    let done = (!open.is_empty()).then(|| Change::Done { messages: open.to_vec(), outcome });
    [Change::Send(outgoing(chat, text, OutgoingKind::Reply))].into_iter().chain(done).collect()
}

/// A notice that a chat gets once.
pub(super) fn notice(chat: ChatRef, text: &str, key: String) -> Change {
    Change::Send(NewOutgoing { key: Some(key), ..NewOutgoing::notice(chat, text.to_owned()) })
}

/// The outcome of a failed call.
pub(super) fn failed(call: &ToolRequest, why: &str) -> Entry {
    Entry::Outcome {
        call: call.id.clone(),
        name: call.name.clone(),
        content: why.to_owned(),
        is_error: true,
        receipt: None,
        closed: Vec::new(),
        taint: None,
        image: None,
    }
}

/// Adds a line to one of two files.
fn note(scene: &Scene, cycle: &str, call: &ToolRequest, random: &mut Rng) -> Change {
    let path = if random.bool() { "memory/a.md" } else { "memory/b.md" };
    let staged = scene.model.cycles.get(cycle).and_then(|cycle| cycle.staged.get(path));
    let base = scene.outside.files.get(path).cloned();
    let text = staged.map_or_else(|| base.clone().unwrap_or_default(), |file| file.content.clone());
    Change::File(StagedFile { path: path.to_owned(), base, content: format!("{text}- {}\n", call.id) })
}

/// Holds some of the open messages for another model.
fn hold_messages(scene: &Scene, cycle: &NewCycle, state: &Cycle, random: &mut Rng) -> Vec<Change> {
    let count = random.usize(0..=state.open.len());
    let messages: Vec<i64> = state.open.iter().take(count).copied().collect();
    let (Some(chat), Some(first)) = (cycle.chat, messages.first()) else { return Vec::new() };
    let notice = notice(chat, &format!("I keep message {first}."), format!("kept/{first}"));
    vec![notice, Change::Hold { messages, model: scene.model_name.to_owned() }]
}

/// A text of one part or of several.
pub(super) fn long_or_short(random: &mut Rng, text: &str) -> String {
    if random.u32(0..6) == 0 { format!("{text} {}", "word ".repeat(900)) } else { text.to_owned() }
}

/// A message to be sent.
pub(super) fn outgoing(chat: ChatRef, text: &str, kind: OutgoingKind) -> NewOutgoing {
    NewOutgoing { chat, text: text.to_owned(), kind, ..NewOutgoing::default() }
}
