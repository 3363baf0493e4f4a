//! What a command can do, from its words alone: tables of what is known, and dangerous for all else.
//!
//! Known means the program and each of its options: an option that isn't listed makes a command dangerous, so that a new version
//! of a program, or its BSD cousin, can't bring in an option that writes or runs something. What destroys is looked for
//! generously, also behind programs that run others; it can only be found too often.

mod awk;
mod destroy;
mod find;
mod git;
mod options;
pub(super) mod places;
mod readers;
mod sed;
mod special;
#[cfg(test)]
mod tests;

use super::{
    Risk,
    shell::{MAX_TEXT_BYTES, NotPlain, Simple, guess, plain},
};

/// How deep text within words is looked into.
const MAX_DEPTH: usize = 3;

/// A risk, and a sentence for it when it isn't safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rated {
    pub(super) risk: Risk,
    pub(super) why: Option<String>,
}

impl Rated {
    fn safe() -> Self {
        Self { risk: Risk::Safe, why: None }
    }

    fn new(risk: Risk, why: impl Into<String>) -> Self {
        Self { risk, why: Some(why.into()) }
    }

    fn dangerous(why: impl Into<String>) -> Self {
        Self::new(Risk::Dangerous, why)
    }
}

/// A shell text that was read.
#[derive(Debug)]
pub(super) struct Line {
    /// Why it isn't plain, if it isn't.
    pub(super) not_plain: Option<NotPlain>,
    /// Its commands, each with its risk; what was guessed of it when it isn't plain.
    pub(super) commands: Vec<(Vec<String>, Rated)>,
    /// The worst of them; dangerous at least when it isn't plain.
    pub(super) worst: Rated,
}

/// Reads a shell text and rates its commands.
pub(super) fn line(text: &str) -> Line {
    let (not_plain, words, mut worst) = match plain(text) {
        Ok(commands) => (None, commands.into_iter().map(|Simple { words, .. }| words).collect(), Rated::safe()),
        Err(why) => {
            let guessed = guess(text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default());
            let floor = match (&why, guessed.overwrites) {
                (NotPlain::Redirection, true) => Rated::new(Risk::Destructive, "It overwrites a file."),
                _ => Rated::dangerous("It isn't a list of plain commands, so I can't tell what it does."),
            };
            (Some(why), guessed.commands, floor)
        }
    };
    let commands: Vec<(Vec<String>, Rated)> = words
        .into_iter()
        .map(|words| {
            let rated = command(&words);
            (words, rated)
        })
        .collect();
    for (_, rated) in &commands {
        if rated.risk > worst.risk {
            worst = rated.clone();
        }
    }
    Line { not_plain, commands, worst }
}

/// Rates one command by its words.
pub(super) fn command(words: &[String]) -> Rated {
    rate(&words.iter().map(String::as_str).collect::<Vec<_>>(), 0)
}

fn rate(words: &[&str], depth: usize) -> Rated {
    let [name, arguments @ ..] = words else { return Rated::safe() };
    if let Some(why) = destroy::why(base(name), arguments) {
        return Rated::new(Risk::Destructive, why);
    }
    let known = system_name(name).map_or_else(
        || Rated::dangerous(format!("`{name}` is a program at a place of its own: it isn't known what it does.")),
        |name| by_tables(name, arguments, depth),
    );
    match known.risk {
        Risk::Safe | Risk::Caution => match words.iter().find_map(|word| places::why(word)) {
            Some(why) if !matches!(*name, "echo" | "printf") => Rated::dangerous(why),
            _ => known,
        },
        _ => hidden(arguments, depth).unwrap_or(known),
    }
}

fn by_tables(name: &str, arguments: &[&str], depth: usize) -> Rated {
    if let Some(inner) = wrapped(name, arguments) {
        return match inner {
            Some(inner) if depth < MAX_DEPTH => rate(inner, depth + 1),
            _ => Rated::dangerous(format!("`{name}` runs another program in a way that isn't known to be harmless.")),
        };
    }
    match name {
        "git" => git::rate(arguments),
        "find" => find::rate(arguments),
        "sed" => sed::rate(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => awk::rate(arguments),
        _ => special::rate(name, arguments).or_else(|| readers::rate(name, arguments)).unwrap_or_else(|| {
            Rated::dangerous(format!("`{name}` isn't among the commands that are known to do no harm."))
        }),
    }
}

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
    // What only reads takes texts for texts: to look for `curl` runs no curl.
    if command(words).risk <= Risk::Caution {
        return;
    }
    for text in rest.iter().filter(|word| word.contains(|c: char| !is_name_char(c))) {
        for inner in guess(text).commands {
            collect(&inner, depth + 1, readings);
        }
    }
}

/// For programs that do nothing but run another one: that one's words, or `None` if they aren't certain.
fn wrapped<'w>(name: &str, arguments: &'w [&'w str]) -> Option<Option<&'w [&'w str]>> {
    let after = match (name, arguments) {
        ("timeout", [time, inner @ ..]) if is_duration(time) => Some(inner),
        ("timeout", ["-k" | "-s", value, time, inner @ ..])
            if is_duration(time) && value.chars().all(|c| c.is_ascii_alphanumeric()) =>
        {
            Some(inner)
        }
        ("nice", ["-n", value, inner @ ..]) if is_number(value) => Some(inner),
        ("stdbuf", ["-o0" | "-oL" | "-i0" | "-e0" | "-eL", inner @ ..]) => Some(inner),
        ("nice" | "command" | "builtin", inner) => Some(inner),
        ("timeout" | "stdbuf", _) => None,
        _ => return None,
    };
    if name == "command" && matches!(arguments, ["-v" | "-V", ..]) {
        return None;
    }
    Some(after.filter(|inner| inner.first().is_some_and(|name| !name.starts_with('-'))))
}

/// What is destroyed by a command within a command: in the words that follow (`sudo rm -r x`), or in a text among them
/// (`sh -c 'rm -r x'`).
fn hidden(arguments: &[&str], depth: usize) -> Option<Rated> {
    let behind = (0..arguments.len()).find_map(|from| {
        let (name, rest) = arguments.get(from..)?.split_first()?;
        destroy::why(base(name), rest)
    });
    let within = || {
        let words = arguments.iter().filter(|_| depth < MAX_DEPTH);
        // `alias x='rm -r y'`, `--exec='rm -r y'`: the text begins after the sign.
        let texts = words.flat_map(|word| [Some(*word), word.split_once('=').map(|(_, value)| value)]).flatten();
        let texts = texts.filter(|text| text.contains(|c: char| !is_name_char(c)));
        texts.flat_map(|text| guess(text).commands).find_map(|words| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let rated = rate(&words, depth + 1);
            (rated.risk == Risk::Destructive).then_some(rated.why).flatten()
        })
    };
    behind.or_else(within).map(|why| Rated::new(Risk::Destructive, why))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_./-".contains(c)
}

/// The last part of a program's path.
pub(super) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The name of a program that the system brings: one without a path, or in the system's own directories.
fn system_name(name: &str) -> Option<&str> {
    let plain = name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/")).unwrap_or(name);
    (!plain.contains('/')).then_some(plain)
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
    !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_duration(word: &str) -> bool {
    let number = word.strip_suffix(['s', 'm', 'h']).unwrap_or(word);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
