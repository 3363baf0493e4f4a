//! What a command destroys, by what it is called: a table of names, and what may stand behind others.
//!
//! No such table is complete, and none has to be: what a command can reach is decided by what it is given (`super::Access`), and the
//! sandbox holds it to that. Who is named here is asked about all the same, unless a copy gives back what it can change.

mod destroy;
mod git;
pub(super) mod places;
#[cfg(test)]
mod tests;

use super::shell::{MAX_TEXT_BYTES, NotPlain, Simple, guess, plain};

/// How deep text within words is looked into.
const MAX_DEPTH: usize = 3;

/// A shell text that was read.
#[derive(Debug)]
pub(super) struct Line {
    /// Why it isn't plain, if it isn't.
    pub(super) not_plain: Option<NotPlain>,
    /// The words of its commands; what was guessed of it when it isn't plain.
    pub(super) commands: Vec<Vec<String>>,
    /// What one of them destroys, in a sentence.
    pub(super) destroys: Option<String>,
}

/// Reads a shell text.
pub(super) fn line(text: &str) -> Line {
    let (not_plain, commands) = match plain(text) {
        Ok(commands) => (None, commands.into_iter().map(|Simple { words, .. }| words).collect()),
        Err(why) => {
            let beginning = text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default();
            (Some(why), guess(beginning))
        }
    };
    let destroys = commands.iter().find_map(|words| destroys(words));
    Line { not_plain, commands, destroys }
}

/// A sentence about what a command destroys, if it does, itself or by what it runs.
fn destroys(words: &[String]) -> Option<String> {
    named(&words.iter().map(String::as_str).collect::<Vec<_>>(), 0)
}

fn named(words: &[&str], depth: usize) -> Option<String> {
    let (name, arguments) = words.split_first()?;
    let itself = destroy::why(base(name), arguments);
    itself.or_else(|| if TAKES_TEXT.contains(&base(name)) { None } else { hidden(arguments, depth) })
}

/// Programs to which a text is a text: to look for `curl` runs no curl.
const TAKES_TEXT: [&str; 6] = ["echo", "printf", "grep", "egrep", "fgrep", "rg"];

/// Programs that run the command in their arguments.
const RUNNERS: [&str; 34] = [
    "sudo", "doas", "su", "runuser", "env", "nice", "ionice", "nohup", "timeout", "time", "xargs", "parallel",
    "command", "builtin", "exec", "eval", "stdbuf", "setsid", "chroot", "unshare", "nsenter", "watch", "strace",
    "ltrace", "script", "ssh", "docker", "busybox", "toybox", "find", "fd", "entr", "flock", "chpst",
];

/// Every command that a command may come to, itself first: by its plain name, behind what runs others, and in texts among its
/// words. For rules that forbid.
pub(super) fn readings(words: &[String]) -> Vec<Vec<String>> {
    let mut readings: Vec<Vec<String>> = Vec::new();
    collect(words, 0, &mut readings);
    readings
}

fn collect(words: &[String], depth: usize, readings: &mut Vec<Vec<String>>) {
    const MAX_READINGS: usize = 512;
    let Some((name, rest)) = words.split_first() else { return };
    if depth > MAX_DEPTH || readings.len() > MAX_READINGS {
        return;
    }
    let reading: Vec<String> = std::iter::once(base(name).to_owned()).chain(rest.iter().cloned()).collect();
    if readings.contains(&reading) {
        return;
    }
    readings.push(reading);
    if RUNNERS.contains(&base(name)) {
        for from in 0..rest.len() {
            collect(rest.get(from..).unwrap_or_default(), depth + 1, readings);
        }
    }
    if TAKES_TEXT.contains(&base(name)) {
        return;
    }
    for text in rest.iter().filter(|word| word.contains(|c: char| !is_name_char(c))) {
        for inner in guess(text) {
            collect(&inner, depth + 1, readings);
        }
    }
}

/// What is destroyed by a command within a command: in the words that follow (`sudo rm -r x`), or in a text among them
/// (`sh -c 'rm -r x'`).
fn hidden(arguments: &[&str], depth: usize) -> Option<String> {
    let behind = (0..arguments.len()).find_map(|from| {
        let (name, rest) = arguments.get(from..)?.split_first()?;
        destroy::why(base(name), rest)
    });
    let within = || {
        let words = arguments.iter().filter(|_| depth < MAX_DEPTH);
        // `alias x='rm -r y'`, `--exec='rm -r y'`: the text begins after the sign.
        let texts = words.flat_map(|word| [Some(*word), word.split_once('=').map(|(_, value)| value)]).flatten();
        let texts = texts.filter(|text| text.contains(|c: char| !is_name_char(c)));
        let mut inner = texts.flat_map(guess);
        inner.find_map(|words| named(&words.iter().map(String::as_str).collect::<Vec<_>>(), depth + 1))
    };
    behind.or_else(within)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./-".contains(c)
}

/// The last part of a program's path.
pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
