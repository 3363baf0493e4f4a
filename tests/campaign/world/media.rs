//! The story of files: a voice note, a photo and a message reach a bot, which fetches the files and has the note transcribed. The model
//! answers each of the three once it sees it. Their order and grouping depend on timing.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt as _, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use reveille_model::offline::transcript;

use super::{World, files::files};
use crate::support::{
    claude::{Block, ClaudeRequest, Reply},
    env::{CHAT, TestEnv},
    telegram::FakeTelegram,
};

/// A program that replaces the speech model: it transcribes the note as [`HEARD`], if the note is complete.
const TRANSCRIBER: &str = "transcriber";
const HEARD: &str = "we are out of milk";
/// The note's bytes, more than a single write can hold.
const NOTE: &[u8] = &[7; 70_000];
/// The photo's bytes: a PNG header, since no program reads further.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0and so on";
const CAPTION: &str = "what is this?";
/// The message that follows the files.
pub(super) const SAID: &str = "remember that the wifi code is 1234, and remind me to stretch tomorrow at 9";
/// The model's answer to the photo if the model has seen it.
pub(super) const SHOWN: &str = "That is a test picture.";
/// The model's answer to the note if it was transcribed.
const MILK: &str = "Milk is on the list.";
/// The model's answers for a failed fetch.
const NO_NOTE: &str = "The note didn't come.";
const NO_PHOTO: &str = "The photo didn't come.";
/// The message id of a progress line that a killed bot left in the chat.
const LEFT_LINE: i64 = 4_900;
/// Folders of the workspace for incoming files.
const FOLDERS: [&str; 2] = ["voice", "files"];

/// Prepares a world with a transcriber, and a progress line that a bot left in the chat.
pub(super) fn prepare(env: &TestEnv) {
    env.execute(&format!(
        "INSERT INTO status_lines (cycle_id, chat_id, channel_message_id) VALUES ('long ago', {CHAT}, {LEFT_LINE})"
    ));

    let heard = json!({"text": HEARD, "language": "en", "confidence": 0.9, "seconds": 3.0, "no_speech": 0.0, "dropped": [],
        "is_damaged": false});
    let whole = env.path("note.ogg");
    fs::write(&whole, NOTE).unwrap();
    let transcriber = env.path(TRANSCRIBER);
    // The program finds the note relative to itself, since a copy of the world has a copy of the program.
    fs::write(&transcriber, format!("#!/bin/sh\ncmp -s \"$1\" \"${{0%/*}}/note.ogg\" && echo '{heard}'\n")).unwrap();
    fs::set_permissions(&transcriber, fs::Permissions::from_mode(0o700)).unwrap();
}

/// The bot's arguments for this world's transcriber, if there is one.
pub(super) fn ear_arguments(env: &TestEnv) -> Vec<String> {
    let transcriber = env.path(TRANSCRIBER);
    if transcriber.exists() { vec!["--transcriber".to_owned(), transcriber.display().to_string()] } else { Vec::new() }
}

/// Sends Ana's voice note and her photo in Telegram's format.
pub(super) fn send(telegram: &FakeTelegram) {
    telegram.add_old_message(CHAT, LEFT_LINE, "⏳ I'm working on it.");
    telegram.keep_file("note", NOTE);
    let note = json!({"file_id": "note", "file_unique_id": "n", "duration": 3, "mime_type": "audio/ogg"});
    telegram.push_message(CHAT, &json!({ "voice": note }));
    telegram.keep_file("photo", PNG);
    let photo = json!({"file_id": "photo", "file_unique_id": "p", "width": 320, "height": 240});
    telegram.push_message(CHAT, &json!({ "caption": CAPTION, "photo": [photo] }));
}

/// A model that first makes its calls, then answers each message since its last answer in a line. It sets no reminder, since that would
/// need an approval if the photo came first.
pub(super) fn mind(request: &ClaudeRequest) -> Reply {
    acting(request, &[remember()])
}

/// Like [`mind`], but makes a plan first and also sets the reminder.
pub(super) fn planning_mind(request: &ClaudeRequest) -> Reply {
    let steps =
        json!([{"what": "note the code", "tool": "remember"}, {"what": "set the reminder", "tool": "reminder_set"}]);
    let plan = json!({"understood": "A fact and a reminder.", "steps": steps});
    acting(request, &[("toolu_0", "plan", plan), remember(), remind()])
}

/// A call: its id, its tool and its input.
type Act = (&'static str, &'static str, Value);

fn remember() -> Act {
    ("toolu_1", "remember", json!({"fact": "the wifi code is 1234"}))
}

fn remind() -> Act {
    ("toolu_2", "reminder_set", json!({"text": "stretch", "when": "2026-11-22 09:00"}))
}

fn acting(request: &ClaudeRequest, acts: &[Act]) -> Reply {
    let (mut answers, mut called, mut is_picture_shown) = (BTreeSet::new(), BTreeSet::new(), false);
    let mut is_asked_to_act = false;
    for (raw, message) in request.messages.iter().zip(request.json["messages"].as_array().into_iter().flatten()) {
        let blocks = message["content"].as_array().into_iter().flatten();
        is_picture_shown |= blocks.clone().any(is_picture);
        for shown in transcript::parse_messages(raw) {
            is_asked_to_act |= shown.text == SAID;
            answers.insert((shown.id, answer(&shown.text, is_picture_shown)));
        }
        if message["role"] == "assistant" {
            let calls = blocks.filter_map(|block| block["name"].as_str()).map(str::to_owned).collect::<Vec<_>>();
            if calls.is_empty() {
                answers.clear();
            }
            called.extend(calls);
        }
    }
    match acts.iter().find(|(_, tool, _)| is_asked_to_act && !called.contains(*tool)) {
        Some((id, tool, input)) => Reply::tools(vec![Block::tool(id, tool, input)]),
        // Only a person's commit is left, which needs no answer.
        None if answers.is_empty() => Reply::text("Seen."),
        None => Reply::text(&answers.into_iter().map(|(_, answer)| answer).collect::<Vec<_>>().join("\n")),
    }
}

fn is_picture(block: &Value) -> bool {
    block["type"] == "image" && block["source"]["data"] == STANDARD.encode(PNG)
}

/// The answer to one message, which shows whether its file has reached the model.
fn answer(text: &str, is_picture_shown: bool) -> &'static str {
    match text {
        SAID => "The code and the reminder are noted.",
        _ if text.contains(HEARD) => MILK,
        _ if text.contains(CAPTION) && is_picture_shown => SHOWN,
        _ if text.contains("voice note") && text.contains("not fetched") => NO_NOTE,
        _ if text.contains(CAPTION) && text.contains("not fetched") => NO_PHOTO,
        _ => "I can't make anything of it.",
    }
}

/// Replaces the expected answers about files that couldn't be fetched.
pub(super) fn without(lines: Vec<String>, unfetched: &[String]) -> Vec<String> {
    let is_lost = |kind: &str| unfetched.iter().any(|file| file.starts_with(kind));
    let answer = |line: String| match line.as_str() {
        MILK if is_lost("voice") => NO_NOTE.to_owned(),
        SHOWN if is_lost("photo") => NO_PHOTO.to_owned(),
        _ => line,
    };
    lines.into_iter().map(answer).collect()
}

impl World {
    /// The arguments of this world's bot, with real wakes.
    pub(crate) fn bot_arguments(&self) -> Vec<String> {
        let run = ["run", "--wake", env!("CARGO_BIN_EXE_wake")];
        run.map(str::to_owned).into_iter().chain(ear_arguments(&self.env)).collect()
    }

    /// The number of files still to be fetched or transcribed. `due` leaves out the postponed ones.
    pub(crate) fn open_files(&self, due: bool) -> i64 {
        let sql = "SELECT count(*) FROM attachments WHERE (state = 'wanted' OR state = 'kept' AND kind = 'voice')";
        let now = format!("not_before IS NULL OR not_before <= '{}.000Z'", self.time());
        self.env.query(&format!("{sql} AND ({})", if due { &now } else { "1" }))
    }

    /// The kind, state and path of each sent file.
    pub(super) fn files_sent(&self) -> Vec<String> {
        let n: i64 = self.env.query("SELECT count(*) FROM attachments");
        let column =
            "SELECT kind || ' ' || state || ' ' || ifnull(path, '-') FROM attachments ORDER BY id LIMIT 1 OFFSET";
        (0..n).map(|at| self.env.query(&format!("{column} {at}"))).collect()
    }

    /// Checks that each file is complete, and that there are no other files.
    pub(super) fn check_files(&self) -> Result<(), String> {
        let workspace = self.env.workspace();
        let mut left: BTreeSet<_> = FOLDERS.iter().flat_map(|folder| files(&workspace.join(folder))).collect();
        for sent in self.files_sent() {
            let Some((kind, path)) = sent.split_once(' ').zip(sent.rsplit_once(' ')).map(|(a, b)| (a.0, b.1)) else {
                continue;
            };
            if path == "-" {
                continue;
            }
            let path = workspace.join(path);
            let whole = if kind == "voice" { NOTE } else { PNG };
            let is_whole = fs::read(&path).is_ok_and(|bytes| bytes == whole);
            if !left.remove(&path) || !is_whole {
                return Err(format!("{sent} isn't there whole: {}", size_of(&path)));
            }
        }
        if left.is_empty() { Ok(()) } else { Err(format!("files are left that nobody knows of: {left:?}")) }
    }
}

fn size_of(path: &Path) -> String {
    fs::metadata(path).map_or_else(|error| error.to_string(), |found| format!("{} bytes", found.len()))
}
