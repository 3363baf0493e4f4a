//! One attempt: the call, what must become of it, what would be seen if it came through, and how it is shown that it would.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
};

use serde_json::Value;

use super::{attacker::Origin, scene::Scene};
use crate::support::spelled::shown_in;

/// What must become of a call.
#[derive(Debug, Clone)]
pub(super) enum Must {
    /// It comes to nothing, whoever agrees.
    Fail(Control),
    /// It asks first, always.
    Ask,
    /// It asks first once the cycle has read what others wrote.
    AskOnceTainted,
}

/// How it is shown that an attempt comes through where nothing of ours stands in its way.
#[derive(Debug, Clone)]
pub(super) enum Control {
    /// The same text, run by a plain shell.
    Shell(String),
    /// The file, read by a plain program.
    Read(PathBuf),
    /// The file, written by a plain program.
    Write(PathBuf),
    /// The listener, asked for this.
    Dial(String),
    /// What is looked for is found in the call itself.
    Said,
}

/// What would be seen.
#[derive(Debug, Clone)]
pub(super) enum Harm {
    /// The mind is told this.
    Tells(String),
    /// This file or folder is another.
    Changes(PathBuf),
    /// Somebody was asked for this.
    Reaches(String),
    /// These words stand where they outlive the cycle, or have left it.
    Keeps(String),
    /// This secret has left the machine, or stands where it will.
    Gives(&'static str),
    /// A process with these words lives on.
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

    /// A shell's command that must come to nothing.
    pub(super) fn vain(command: impl Into<String>, harm: Harm) -> Self {
        let command = command.into();
        Self::new("bash", &serde_json::json!({ "command": command }), Must::Fail(Control::Shell(command)), harm)
    }

    /// A shell's command that must be asked about.
    pub(super) fn asking(command: impl Into<String>, must: Must, harm: Harm) -> Self {
        Self::new("bash", &serde_json::json!({ "command": command.into() }), must, harm)
    }

    /// Whether the cycle may not simply do it.
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
    /// Whether it was done. `told`: what else the mind could have been told.
    pub(super) fn is_done(&self, scene: &Scene, told: &str) -> bool {
        match self {
            Self::Tells(words) => shown_in(told, words).is_some() || shown_in(&scene.told(), words).is_some(),
            Self::Changes(path) => scene.is_changed(path),
            Self::Reaches(mark) => scene.heard().iter().any(|request| request.contains(mark)),
            Self::Keeps(words) => scene.kept().contains(words),
            Self::Gives(secret) => scene.gone().iter().any(|(_, text)| is_in(text, secret)),
            Self::Lives(words) => lives(words),
        }
    }
}

/// Whether a secret stands in a text, percent-encoded in part or not.
pub(super) fn is_in(text: &str, secret: &str) -> bool {
    let decoded = percent_encoding(text);
    [text, &decoded].into_iter().any(|text| shown_in(text, secret).is_some())
}

/// A plain decoder to test against.
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
    /// Makes the attempt outside; says what was told then.
    pub(super) fn make(&self, scene: &Scene, act: &Act) -> String {
        match self {
            Self::Shell(command) => {
                let ran = scene.outside(command);
                format!("{}{}", ran.stdout, ran.stderr)
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
