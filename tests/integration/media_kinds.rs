//! Each kind of file that people send, from Telegram to the mind: video notes and audio files are heard, pictures that come as files are
//! seen, and what can't be made out is told and kept.

use std::fs;

use serde_json::{Value, json};

use crate::{
    support::story::{wait_for_request, with_claude},
    support::{
        bot::assert_token_hidden,
        claude::{ClaudeRequest, FakeClaude, Reply},
        env::{CHAT, Running, TestEnv, eventually},
        speech,
        telegram::FakeTelegram,
    },
};

/// A picture of 320 by 240 pixels, as far as anybody looks.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02\0\0\0and so on";

/// A world whose bot fetches files and starts real wakes, with Claude for a mind.
pub(crate) struct Scene {
    telegram: FakeTelegram,
    pub(crate) claude: FakeClaude,
    env: TestEnv,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let (telegram, claude, env) = with_claude();
        claude.expect(Reply::text("Seen."));
        Self { telegram, claude, env }
    }

    /// The same, whose mind reads the file before it answers.
    pub(crate) fn reading() -> Self {
        let (telegram, claude, env) = with_claude();
        claude.expect(Reply::tool("t1", "read_attachment", json!({"id": 1}))).expect(Reply::text("Seen."));
        Self { telegram, claude, env }
    }

    /// With a real speech model, or none, which is said.
    fn hearing() -> Option<Self> {
        let (model, _) = speech::found("jfk.ogg")?;
        let mut scene = Self::new();
        scene.env.set("WHISPER_MODEL", &model.display().to_string());
        Some(scene)
    }

    /// Somebody sends a file of this kind.
    pub(crate) fn send(&self, kind: &str, bytes: &[u8], mut about: Value) {
        self.telegram.keep_file("sent", bytes);
        about["file_id"] = json!("sent");
        about["file_unique_id"] = json!("u");
        self.telegram.push_message(CHAT, &json!({ kind: about }));
    }

    /// Lets the bot and its wakes work until the mind was asked and has answered; what it was shown.
    pub(crate) fn shown(&self) -> ClaudeRequest {
        let bot = self.env.start(env!("CARGO_BIN_EXE_bot"), &["run"]);
        wait_for_request(&self.claude, 1);
        eventually("it is answered", || self.said().iter().any(|text| text == "Seen."));
        self.end(bot);
        self.claude.requests().remove(0)
    }

    fn end(&self, bot: Running) {
        bot.signal(rustix::process::Signal::TERM);
        assert_token_hidden(&bot.end().ok());
        self.env.wait_for_end_of_wake();
        self.env.check_sound();
    }

    pub(crate) fn env(&self) -> &TestEnv {
        &self.env
    }

    fn said(&self) -> Vec<String> {
        self.telegram.sent().into_iter().map(|message| message.visible).collect()
    }

    /// The file as it is kept: its path, and that its bytes are these.
    #[track_caller]
    pub(crate) fn is_kept(&self, path: &str, bytes: &[u8]) {
        assert_eq!(self.env.attachments()[0].path.clone().unwrap(), path);
        assert!(fs::read(self.env.workspace().join(path)).unwrap() == bytes, "{path} isn't what was sent");
    }
}

pub(crate) fn words_of(request: &ClaudeRequest) -> String {
    let blocks = request.json["messages"][0]["content"].as_array().unwrap();
    let messages = blocks.iter().filter_map(|block| block["text"].as_str());
    messages.filter(|text| text.starts_with("<messages>")).collect()
}

fn pictures(request: &ClaudeRequest) -> usize {
    let blocks = request.json["messages"][0]["content"].as_array().unwrap();
    blocks.iter().filter(|block| block["type"] == "image").count()
}

/// The line under this description, held against what was said.
#[track_caller]
fn was_heard(request: &ClaudeRequest, description: &str, said: &str) {
    let words = words_of(request);
    let mut lines = words.lines().skip_while(|line| !line.contains(description));
    let (told, heard) = (lines.next(), lines.next().unwrap_or_default());
    assert!(told.is_some_and(|line| line.contains(", machine transcript, en, ")), "{words}");
    let rate = speech::word_error_rate(said, heard);
    eprintln!("{description}: word error rate {:.1} %: {heard}", rate * 100.0);
    assert!(rate <= 0.1, "{rate:.2} of the words are wrong: {heard}");
}

/// H.264 and AAC in MP4, as Telegram's are.
#[test]
fn a_video_note_is_heard() {
    let Some(scene) = Scene::hearing() else { return };
    let bytes = fs::read(speech::kept("note.mp4")).unwrap();
    scene.send("video_note", &bytes, json!({"length": 240, "duration": 7}));
    was_heard(&scene.shown(), "[video note, 7 s", speech::NOTE);
    scene.is_kept("voice/1.mp4", &bytes);
}

#[test]
fn audio_files_are_heard_whatever_they_are_made_of() {
    for (recording, mime, kept) in [("jfk.ogg", "audio/ogg", "voice/1.ogg"), ("jfk.wav", "audio/x-wav", "voice/1.wav")]
    {
        let Some(scene) = Scene::hearing() else { return };
        let Some((_, sample)) = speech::found(recording) else { return };
        let bytes = fs::read(sample).unwrap();
        let about =
            json!({"duration": 11, "mime_type": mime, "file_name": recording, "performer": "JFK", "title": "Ask not"});
        scene.send("audio", &bytes, about);
        was_heard(&scene.shown(), &format!("[audio file &quot;JFK – Ask not – {recording}&quot;, 11 s"), speech::JFK);
        scene.is_kept(kept, &bytes);
    }
}

/// The sender's word that it is a recording makes none of it.
#[test]
fn what_holds_no_sound_is_told_kept_and_answered() {
    let Some(scene) = Scene::hearing() else { return };
    let bytes = [&fs::read(speech::kept("note.mp4")).unwrap()[..600], &[0; 600]].concat();
    scene.send("video_note", &bytes, json!({"length": 240, "duration": 11}));
    let words = words_of(&scene.shown());
    assert!(words.contains("[video note, 11 s: not transcribed ("), "{words}");
    scene.is_kept("voice/1.mp4", &bytes);
    let told =
        scene.said().into_iter().find(|text| text.starts_with("I couldn't transcribe your video note from 15:00"));
    let told = told.unwrap_or_else(|| panic!("{:#?}", scene.said()));
    assert!(told.contains("It's saved at voice/1.mp4. Please send it again, or write what it says."), "{told}");
}

#[test]
fn a_picture_that_comes_as_a_file_is_seen() {
    let scene = Scene::new();
    scene.send("document", PNG, json!({"file_name": "scan.png", "mime_type": "image/png"}));
    let request = scene.shown();
    let words = words_of(&request);
    assert!(
        words.contains("name=\"scan.png\" type=\"image/png\"") && words.contains("shown behind the messages"),
        "{words}"
    );
    assert_eq!(pictures(&request), 1);
    scene.is_kept("files/1.png", PNG);
}

#[test]
fn what_is_only_called_a_picture_is_described_and_none_is_shown() {
    let scene = Scene::new();
    scene.send("document", b"PK\x03\x04 and so on\0", json!({"file_name": "scan.png", "mime_type": "image/png"}));
    let request = scene.shown();
    assert_eq!(pictures(&request), 0);
    let words = words_of(&request);
    assert!(words.contains("<attachment id=\"1\" kind=\"document\" name=\"scan.png\""), "{words}");
    scene.is_kept("files/1.png", b"PK\x03\x04 and so on\0");
}
