//! Finds the damage a command can do, by its name: two tables, and a search for commands that are run through others.
//!
//! Such tables are never complete, and needn't be: its rights (`super::Access`), which the sandbox enforces, limit what a command can
//! reach. Still, a command in the tables needs approval, unless it destroys only files and none would be lost: those in the scratch
//! folder are expendable, and the others can be restored from a copy.

mod destroy;
mod git;
pub(super) mod places;
#[cfg(test)]
mod tests;

use reveille_base::words::first_bytes;

use self::destroy::{Destruction, find_destruction};
use super::shell::{MAX_TEXT_BYTES, NotPlain, Simple, guess_commands, parse_plain};

/// The depth to which shell texts nested within words are searched.
const MAX_DEPTH: usize = 3;

/// A classified shell text.
#[derive(Debug)]
pub(super) struct ClassifiedText {
    /// The reason the text isn't plain, if so.
    pub(super) not_plain: Option<NotPlain>,
    /// The words of its commands; guessed if the text isn't plain.
    pub(super) commands: Vec<Vec<String>>,
    /// The worst damage of any command.
    pub(super) destroys: Option<Destruction>,
}

/// Classifies a shell text.
pub(super) fn classify_text(text: &str) -> ClassifiedText {
    let (not_plain, commands) = match parse_plain(text) {
        Ok(commands) => (None, commands.into_iter().map(|Simple { words, .. }| words).collect()),
        Err(why) => {
            let beginning = first_bytes(text, MAX_TEXT_BYTES);
            (Some(why), guess_commands(beginning))
        }
    };
    let destroys = pick_worst(commands.iter().filter_map(|words| find_damage(words, 0)));
    ClassifiedText { not_plain, commands, destroys }
}

/// Returns the first damage that isn't limited to files, or else the first.
fn pick_worst(found: impl Iterator<Item = Destruction>) -> Option<Destruction> {
    found.min_by_key(|found| found.is_files)
}

/// Finds the damage that a command does itself or through the commands it runs.
fn find_damage(words: &[String], depth: usize) -> Option<Destruction> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (name, arguments) = words.split_first()?;
    let itself = find_destruction(base_name(name), arguments);
    let hidden = if TAKES_TEXT.contains(&base_name(name)) { None } else { find_hidden_damage(arguments, depth) };
    pick_worst(itself.into_iter().chain(hidden))
}

/// Programs whose arguments are mere text: a search for `curl` runs no curl.
const TAKES_TEXT: [&str; 6] = ["echo", "printf", "grep", "egrep", "fgrep", "rg"];

/// Programs that run the command in their arguments.
const RUNNERS: [&str; 34] = [
    "sudo", "doas", "su", "runuser", "env", "nice", "ionice", "nohup", "timeout", "time", "xargs", "parallel",
    "command", "builtin", "exec", "eval", "stdbuf", "setsid", "chroot", "unshare", "nsenter", "watch", "strace",
    "ltrace", "script", "ssh", "docker", "busybox", "toybox", "find", "fd", "entr", "flock", "chpst",
];

/// Returns every command that a command may run, itself first, each with its program's plain name. Includes commands run through other
/// programs (`sudo`) and commands within quoted text. Used for rules that deny or ask.
pub(super) fn list_readings(words: &[String]) -> Vec<Vec<String>> {
    let mut readings: Vec<Vec<String>> = Vec::new();
    collect_readings(words, 0, &mut readings);
    readings
}

fn collect_readings(words: &[String], depth: usize, readings: &mut Vec<Vec<String>>) {
    const MAX_READINGS: usize = 512;
    let Some((name, rest)) = words.split_first() else { return };
    if depth > MAX_DEPTH || readings.len() > MAX_READINGS {
        return;
    }
    let reading: Vec<String> = std::iter::once(base_name(name).to_owned()).chain(rest.iter().cloned()).collect();
    if readings.contains(&reading) {
        return;
    }
    readings.push(reading);
    if RUNNERS.contains(&base_name(name)) {
        for from in 0..rest.len() {
            collect_readings(rest.get(from..).unwrap_or_default(), depth + 1, readings);
        }
    }
    if TAKES_TEXT.contains(&base_name(name)) {
        return;
    }
    for text in rest.iter().filter(|word| word.contains(|c: char| !is_name_char(c))) {
        for inner in guess_commands(text) {
            collect_readings(&inner, depth + 1, readings);
        }
    }
}

/// Finds the damage of a command within a command: in the following words (`sudo rm -r x`), or in a text among them (`sh -c 'rm -r x'`).
fn find_hidden_damage(arguments: &[&str], depth: usize) -> Option<Destruction> {
    let behind = (0..arguments.len()).filter_map(|from| {
        let (name, rest) = arguments.get(from..)?.split_first()?;
        find_destruction(base_name(name), rest)
    });
    let words = arguments.iter().filter(|_| depth < MAX_DEPTH);
    // `alias x='rm -r y'`, `--exec='rm -r y'`: the text begins after the `=`.
    let texts = words.flat_map(|word| [Some(*word), word.split_once('=').map(|(_, value)| value)]).flatten();
    let texts = texts.filter(|text| text.contains(|c: char| !is_name_char(c)));
    let within = texts.flat_map(guess_commands).filter_map(|words| find_damage(&words, depth + 1));
    pick_worst(behind.chain(within))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./-".contains(c)
}

/// Returns the last part of a program's path.
pub(super) fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
