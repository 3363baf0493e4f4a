//! One attempt: the call, its required result, the sign of harm, and the control that shows that the harm is possible.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
};

use serde_json::Value;

use super::{attacker::Origin, scene::Scene};
use crate::support::spelled::shown_in;

/// The required result of a call.
#[derive(Debug, Clone)]
pub(super) enum Must {
    /// It fails, even when approved.
    Fail(Control),
    /// It always asks first.
    Ask,
    /// It asks first if the cycle is tainted.
    AskOnceTainted,
}

/// The proof that an attempt succeeds without our protection.
#[derive(Debug, Clone)]
pub(super) enum Control {
    /// An ordinary shell runs the same text.
    Shell(String),
    /// An ordinary program reads the file.
    Read(PathBuf),
    /// An ordinary program writes the file.
    Write(PathBuf),
    /// An ordinary program sends this request to the listener.
    Dial(String),
    /// None is needed: the words are in the call itself.
    Said,
}

/// The visible sign of harm.
#[derive(Debug, Clone)]
pub(super) enum Harm {
    /// The model has read this text.
    Tells(String),
    /// This file or folder has changed.
    Changes(PathBuf),
    /// A server received this request.
    Reaches(String),
    /// These words were stored beyond the cycle, or were sent.
    Keeps(String),
    /// This secret has left the machine, or soon will.
    Gives(&'static str),
    /// A process with these words is still alive.
    Lives(String),
}

/// An attempt.
#[derive(Debug, Clone)]
pub(super) struct Act {
    pub(super) tool: &'static str,
    /// Raw JSON.
    pub(super) input: String,
    pub(super) must: Must,
    pub(super) harm: Harm,
}

impl Act {
    pub(super) fn new(tool: &'static str, input: &Value, must: Must, harm: Harm) -> Self {
        Self { tool, input: input.to_string(), must, harm }
    }

    /// A shell command that must fail.
    pub(super) fn must_fail_command(command: impl Into<String>, harm: Harm) -> Self {
        let command = command.into();
        Self::new("bash", &serde_json::json!({ "command": command }), Must::Fail(Control::Shell(command)), harm)
    }

    /// A shell command that must ask first.
    pub(super) fn asking(command: impl Into<String>, must: Must, harm: Harm) -> Self {
        Self::new("bash", &serde_json::json!({ "command": command.into() }), must, harm)
    }

    /// Returns whether the cycle must not simply carry this out.
    pub(super) fn is_attempt(&self, origin: Origin) -> bool {
        match self.must {
            Must::Fail(_) | Must::Ask => true,
            Must::AskOnceTainted => origin.is_tainted(),
        }
    }

    pub(super) fn must_fail(&self) -> bool {
        matches!(self.must, Must::Fail(_))
    }
}

impl Harm {
    /// Returns whether the harm was done. `told` is further text that the model could have read.
    pub(super) fn is_done(&self, scene: &Scene, told: &str) -> bool {
        match self {
            Self::Tells(words) => shown_in(told, words).is_some() || shown_in(&scene.model_input(), words).is_some(),
            Self::Changes(path) => scene.is_changed(path),
            Self::Reaches(mark) => scene.server_requests().iter().any(|request| request.contains(mark)),
            Self::Keeps(words) => scene.lasting_text().contains(words),
            Self::Gives(secret) => scene.leaked_texts().iter().any(|(_, text)| is_in(text, secret)),
            Self::Lives(words) => lives(words),
        }
    }
}

/// Returns whether a text contains a secret, even if it is partly percent-encoded.
pub(super) fn is_in(text: &str, secret: &str) -> bool {
    let decoded = percent_encoding(text);
    [text, &decoded].into_iter().any(|text| shown_in(text, secret).is_some())
}

/// Decodes percent-encoding, independently of the product's own decoder.
fn percent_encoding(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&part.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn lives(words: &str) -> bool {
    let wanted = format!("{}\0", words.replace(' ', "\0"));
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.any(|line| line == wanted.as_bytes())
}

impl Control {
    /// Makes the attempt without our protection, and returns its output.
    pub(super) fn make(&self, scene: &Scene, act: &Act) -> String {
        match self {
            Self::Shell(command) => {
                let ran = scene.outside(command);
                ran.shown()
            }
            Self::Read(path) => {
                String::from_utf8_lossy(&fs::read(scene.scratch().join(path)).unwrap_or_default()).into_owned()
            }
            Self::Write(path) => {
                let mut file = fs::File::options().append(true).create(true).open(scene.scratch().join(path)).unwrap();
                file.write_all(b"written").unwrap();
                String::new()
            }
            Self::Dial(mark) => {
                let mut stream = TcpStream::connect(scene.listener()).unwrap();
                stream.write_all(format!("GET /{mark} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
                let mut said = String::new();
                stream.read_to_string(&mut said).unwrap();
                said
            }
            Self::Said => act.input.clone(),
        }
    }
}
