//! A person's own rules, from `policy.toml`: what is allowed, asked or denied beyond the table, and which folders and hosts are
//! granted. Of several rules that match the strictest holds.

mod exact;
mod pattern;
mod read;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use reveille_base::{disk, types::VerbGroup};

use self::pattern::Word;
use super::{Access, Decision, FREE, classify, shell};

/// The shell, as rules name it.
pub const SHELL: &str = "bash";

/// Why `policy.toml` isn't used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesProblem {
    /// The line, from 1 on; 0 when it is about the file.
    pub line: usize,
    /// A sentence's worth of what is wrong.
    pub what: String,
}

impl std::fmt::Display for RulesProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

/// A host that commands in the sandbox may reach, through its proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name in lower case, or its address.
    pub name: String,
    /// The one port.
    pub port: u16,
}

/// What a person's `policy.toml` says. The default is that of no file: nothing is ruled or granted.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    readable: Vec<String>,
    writable: Vec<String>,
    hosts: Vec<Host>,
    shell_timeout: Option<Duration>,
    home: Option<PathBuf>,
    /// Where relative paths begin.
    scratch: Option<PathBuf>,
    /// The memory's work tree, and the directory of what was left in the scratch: the tools for files may read these.
    own: Vec<PathBuf>,
    refusal: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    line: usize,
    /// A pattern of tools' names.
    tool: Option<String>,
    target: Target,
    decision: Decision,
    why: Option<String>,
    /// When it was made, as far as that is known.
    made_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// Every call of the tool.
    Any,
    Command(Vec<Word>),
    Path(String),
    Host(String),
    /// Calls with exactly these arguments, an object.
    Arguments(Value),
}

/// What rules are asked about.
#[derive(Debug)]
pub(super) enum RuleQuestion<'a> {
    /// A call with nothing else to look at.
    Tool,
    /// One command of a shell text; whether its words are certain or only guessed.
    Command {
        words: &'a [String],
        is_certain: bool,
    },
    Path(&'a Path),
    Url(&'a str),
}

impl Rules {
    /// Reads the text of a `policy.toml`. Each rule's own examples are tried.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its line. A file with a problem is not used in part.
    pub fn parse(text: &str) -> Result<Self, Vec<RulesProblem>> {
        read::read(text)
    }

    /// Of a file that can't be used: everything that isn't free asks.
    pub fn refused(problems: &[RulesProblem]) -> Self {
        let first = problems.first().map_or_else(String::new, |problem| format!(" ({problem})"));
        let why = format!(
            "policy.toml has a problem{first} and isn't used; until it is mended everything asks, and what it denies isn't hidden from commands."
        );
        Self { refusal: Some(why), ..Self::default() }
    }

    /// The same, with what `~/` stands for. Without it, what begins so matches nothing.
    #[must_use]
    pub fn at_home(self, home: Option<&Path>) -> Self {
        Self { home: home.map(Path::to_owned), ..self }
    }

    /// The same, with folders of our own that files may be read and written in: the scratch folder, in which relative paths begin.
    #[must_use]
    pub fn with_scratch(mut self, folder: &Path) -> Self {
        self.writable.push(folder.to_string_lossy().into_owned());
        Self { scratch: Some(folder.to_owned()), ..self }
    }

    /// The same, with the memory's work tree, which the tools for files may read; programs are granted it elsewhere.
    #[must_use]
    pub fn with_brain(self, folder: &Path) -> Self {
        self.with_own(folder)
    }

    /// The same, with a folder of our own that the tools for files may read.
    #[must_use]
    pub fn with_own(mut self, folder: &Path) -> Self {
        self.own.push(folder.to_owned());
        self
    }

    /// The same without the hosts that a person granted: whoever isn't the owner reaches the public web alone.
    #[must_use]
    pub fn without_hosts(self) -> Self {
        Self { hosts: Vec::new(), ..self }
    }

    /// Why the file isn't used, in a sentence.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Folders that files may be read in, those that may be written included.
    pub fn readable(&self) -> Vec<PathBuf> {
        self.readable.iter().chain(&self.writable).filter_map(|root| self.absolute(root)).collect()
    }

    /// Folders that files may be written in.
    pub fn writable(&self) -> Vec<PathBuf> {
        self.writable.iter().filter_map(|root| self.absolute(root)).collect()
    }

    /// Hosts that commands in the sandbox may reach.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// How long a command may take.
    pub fn shell_timeout(&self) -> Option<Duration> {
        self.shell_timeout
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What a command is given that asks for so much: nothing that isn't granted, and to write also when a table names it as destroying
    /// files and it names a folder that is granted for writing.
    pub fn access(&self, text: &str, wanted: Access) -> Access {
        let granted = self.granted();
        let is_named = |root: &PathBuf| {
            let short = self.home.as_ref().and_then(|home| root.strip_prefix(home).ok());
            text.contains(&*root.to_string_lossy())
                || short.is_some_and(|rest| text.contains(&format!("~/{}", rest.display())))
        };
        let destroys =
            || granted.iter().any(is_named) && classify::line(text).destroys.is_some_and(|found| found.is_files);
        Access {
            writes: !granted.is_empty() && (wanted.writes || destroys()),
            network: !self.hosts.is_empty() && wanted.network,
        }
    }

    /// Folders of the person's that commands may be let write to.
    pub fn granted(&self) -> Vec<PathBuf> {
        let mut roots = self.writable();
        roots.retain(|root| Some(root) != self.scratch.as_ref());
        roots
    }

    /// Each rule in a line, for people.
    pub fn described(&self) -> Vec<String> {
        self.rules.iter().map(Rule::to_string).collect()
    }

    /// Whether an absolute path is in a granted folder, or is one. By its words alone: tools open beneath a folder's handle.
    pub(super) fn grants(&self, path: &Path, is_write: bool) -> bool {
        let roots = if is_write { self.writable() } else { self.readable() };
        let own = self.own.iter().filter(|_| !is_write);
        roots.iter().chain(own).any(|root| path.starts_with(root))
    }

    /// The same, with when its rules were made: each by what `made` says of its line, from 1.
    #[must_use]
    pub(super) fn made(mut self, made: impl Fn(usize) -> Option<DateTime<Utc>>) -> Self {
        self.rules.iter_mut().for_each(|rule| rule.made_at = made(rule.line));
        self
    }

    /// Whether a rule that allows it was made after that time.
    pub(super) fn allows_since(&self, since: DateTime<Utc>, tool: &str, asked: &RuleQuestion<'_>) -> bool {
        let allowing = self.rules.iter().filter(|rule| rule.decision == Decision::Allow);
        allowing.filter(|rule| self.matches(rule, tool, asked)).any(|rule| rule.is_since(since))
    }

    /// The strictest decision of the rules that match, and what is said of it.
    pub(super) fn decide(&self, tool: &str, asked: &RuleQuestion<'_>) -> Option<(Decision, String)> {
        let matching = self.rules.iter().filter(|rule| self.matches(rule, tool, asked));
        strictest_of(matching).map(|rule| (rule.decision, rule.sentence()))
    }

    /// The same for a tool that acts on several documents, or on none by name.
    pub(super) fn strictest(&self, tool: &str, paths: &[PathBuf]) -> Option<(Decision, String)> {
        let asked = paths.iter().map(|path| RuleQuestion::Path(path)).chain([RuleQuestion::Tool]);
        let said = asked.filter_map(|asked| self.decide(tool, &asked));
        said.reduce(|best, other| if other.0 > best.0 { other } else { best })
    }

    /// Whether a rule about paths denies this one to a tool, or asks about it: who goes through all documents by itself leaves it out.
    pub fn keeps_back(&self, tool: &str, document: &Path) -> bool {
        self.rules_of_path(tool, document).any(|rule| rule.decision > Decision::Allow)
    }

    /// Whether a rule about paths denies this one to a tool: not even who was asked about what is around it gets it.
    pub fn denies(&self, tool: &str, path: &Path) -> bool {
        self.rules_of_path(tool, path).any(|rule| rule.decision == Decision::Deny)
    }

    /// Why a redirect isn't followed to a URL: a rule about hosts denies it, or asks about it and hasn't asked about the URL that was
    /// judged (who said yes to that one said it to its host). None: it may be followed.
    pub fn keeps_from(&self, tool: &str, to: &str, judged: &str) -> Option<String> {
        if let Some(why) = self.refusal() {
            // From http to https, which is another port, it is the same host.
            let name = |url| web_host(url).ok().map(|host| host.name);
            let is_elsewhere = name(to) != name(judged);
            return is_elsewhere.then(|| why.to_owned());
        }
        let says_no = |rule: &&Rule| match (&rule.target, rule.decision) {
            (Target::Host(_), Decision::Deny) => true,
            (Target::Host(_), Decision::Ask) => !self.matches(rule, tool, &RuleQuestion::Url(judged)),
            _ => false,
        };
        let about_it = self.rules.iter().filter(|rule| self.matches(rule, tool, &RuleQuestion::Url(to)));
        strictest_of(about_it.filter(says_no)).map(Rule::sentence)
    }

    /// Places that rules deny whole to what runs as a program (the shell, MCP servers): a path without a wildcard, or with `/**` at its end
    /// alone, of a rule without a tool, or whose tool is the shell or begins with `mcp`. A program opens what it likes, so these are hidden
    /// from it; of other patterns nothing can be hidden.
    pub fn hidden_places(&self) -> Vec<PathBuf> {
        let runs_programs = |tool: &String| tool.starts_with("mcp") || pattern::text(tool, SHELL);
        let denying = self.rules.iter().filter(|rule| rule.decision == Decision::Deny);
        let of_programs = denying.filter(|rule| rule.tool.as_ref().is_none_or(runs_programs));
        let place = |rule: &Rule| match &rule.target {
            Target::Path(path) => {
                let place = match path.strip_suffix("/**").unwrap_or(path) {
                    "" => Some(PathBuf::from("/")),
                    "~" => self.home.clone(),
                    place => self.absolute(place),
                };
                place.filter(|place| !place.to_string_lossy().contains('*') && place.is_absolute())
            }
            _ => None,
        };
        of_programs.filter_map(place).collect()
    }

    /// Whether a rule about commands denies this tool one, or asks about one.
    pub(super) fn restrains_commands(&self, tool: &str) -> bool {
        self.rules.iter().any(|rule| {
            matches!(rule.target, Target::Command(_))
                && rule.decision > Decision::Allow
                && rule.tool.as_ref().is_none_or(|pattern| is_named(pattern, tool))
        })
    }

    fn rules_of_path(&self, tool: &str, path: &Path) -> impl Iterator<Item = &Rule> {
        let about_paths = self.rules.iter().filter(|rule| matches!(rule.target, Target::Path(_)));
        about_paths.filter(move |rule| self.matches(rule, tool, &RuleQuestion::Path(path)))
    }

    fn matches(&self, rule: &Rule, tool: &str, asked: &RuleQuestion<'_>) -> bool {
        if rule.tool.as_ref().is_some_and(|pattern| !is_named(pattern, tool)) {
            return false;
        }
        match (&rule.target, asked) {
            (Target::Any, _) => true,
            (Target::Command(pattern), RuleQuestion::Command { words, is_certain: true })
                if rule.decision == Decision::Allow =>
            {
                begins(pattern, words)
            }
            (Target::Command(_), RuleQuestion::Command { .. }) if rule.decision == Decision::Allow => false,
            // What forbids looks through what runs other commands, too.
            (Target::Command(pattern), RuleQuestion::Command { words, .. }) => {
                classify::readings(words).iter().any(|words| begins(pattern, words))
            }
            (Target::Path(pattern), RuleQuestion::Path(path)) => {
                let pattern = self.absolute(pattern);
                let path = self.scratch.as_deref().map_or_else(|| path.to_path_buf(), |scratch| scratch.join(path));
                pattern.is_some_and(|pattern| rule.leads_to(&pattern.to_string_lossy(), &path.to_string_lossy()))
            }
            (Target::Host(pattern), RuleQuestion::Url(url)) => web_host(url).is_ok_and(|host| is_host(pattern, &host)),
            _ => false,
        }
    }

    fn absolute(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(rest) => Some(self.home.as_ref()?.join(rest)),
            None => Some(PathBuf::from(path)),
        }
    }
}

/// Whether a pattern of tools' names means a tool: by its own name, or by that of its group, written out. A pattern with a `*` that is
/// older than the groups means no more tools than it did.
fn is_named(pattern: &str, tool: &str) -> bool {
    pattern::text(pattern, tool) || VerbGroup::with(tool).is_some_and(|group| group.name == pattern)
}

/// Of the equally strict the first one.
fn strictest_of<'a>(rules: impl Iterator<Item = &'a Rule>) -> Option<&'a Rule> {
    rules.reduce(|best, rule| if rule.decision > best.decision { rule } else { best })
}

/// A pattern of a command, as it is written.
fn shown(words: &[Word]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| match word {
            Word::Many => "**".to_owned(),
            Word::OneOf(any) => any.join("|"),
        })
        .collect();
    words.join(" ")
}

fn begins(pattern: &[Word], words: &[String]) -> bool {
    pattern::command(pattern, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Whether a host is the pattern's, which may name a port.
fn is_host(pattern: &str, host: &Host) -> bool {
    pattern::text(pattern, &host.name) || pattern::text(pattern, &format!("{}:{}", host.name, host.port))
}

/// The host of a web address.
///
/// # Errors
/// A sentence that says why it isn't a plain web address.
pub(super) fn web_host(url: &str) -> Result<Host, String> {
    let parsed = reqwest::Url::parse(url).map_err(|_| "It isn't a web address.".to_owned())?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(format!("`{}` isn't a web address: only http and https are.", parsed.scheme()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("The address holds a name or a password.".to_owned());
    }
    match (parsed.host_str(), parsed.port_or_known_default()) {
        (Some(name), Some(port)) => Ok(Host { name: name.trim_end_matches('.').to_lowercase(), port }),
        _ => Err("The address names no host.".to_owned()),
    }
}

impl Rule {
    /// Whether it was made after that time. One of an unknown time may have been made before.
    fn is_since(&self, since: DateTime<Utc>) -> bool {
        self.made_at.is_some_and(|made| made > since)
    }

    /// Whether an example of the rule's own is matched by it, whatever the tool.
    fn fits(&self, example: &str) -> bool {
        match &self.target {
            Target::Any => self.tool.as_ref().is_some_and(|pattern| pattern::text(pattern, example)),
            Target::Command(pattern) => {
                let plain = shell::plain(example).map(|commands| commands.into_iter().map(|command| command.words));
                match (plain, self.decision) {
                    (Ok(mut commands), Decision::Allow) => commands.all(|words| begins(pattern, &words)),
                    (Err(_), Decision::Allow) => false,
                    (Ok(commands), _) => {
                        commands.flat_map(|words| classify::readings(&words)).any(|words| begins(pattern, &words))
                    }
                    (Err(_), _) => {
                        let guessed = shell::guess(example);
                        guessed.iter().flat_map(|words| classify::readings(words)).any(|words| begins(pattern, &words))
                    }
                }
            }
            Target::Path(pattern) => self.leads_to(pattern, example),
            // It needs no example: it is one.
            Target::Arguments(_) => false,
            Target::Host(pattern) => {
                let host = web_host(example).or_else(|_| web_host(&format!("https://{example}")));
                host.is_ok_and(|host| is_host(pattern, &host))
            }
        }
    }

    /// Whether a path is the pattern's. What forbids holds for whatever a disk may take for such a path, too.
    fn leads_to(&self, pattern: &str, path: &str) -> bool {
        // fault: path-another-letter-case
        let forbids = self.decision > Decision::Allow;
        pattern::path(pattern, path) || forbids && pattern::path(&disk::folded(pattern), &disk::folded(path))
    }

    /// Tools that it names by a pattern and can't make ask.
    fn spared(&self) -> Vec<&'static str> {
        let pattern = self.tool.as_deref().filter(|_| self.decision == Decision::Ask && self.target == Target::Any);
        pattern.map_or_else(Vec::new, |pattern| FREE.into_iter().filter(|tool| is_named(pattern, tool)).collect())
    }

    fn sentence(&self) -> String {
        let why = self.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        format!("Your rule in policy.toml, line {}, says {}{why}.", self.line, self.decision.name())
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.decision.name())?;
        if let Some(tool) = &self.tool {
            write!(f, " tool {tool}")?;
        }
        match &self.target {
            Target::Any => {}
            Target::Command(words) => {
                write!(f, " command {} …", shown(words))?;
            }
            Target::Arguments(arguments) => write!(f, " with exactly {arguments}")?,
            Target::Path(pattern) => write!(f, " path {pattern}")?,
            Target::Host(pattern) => write!(f, " host {pattern}")?,
        }
        if let Some(why) = &self.why {
            write!(f, " ({why})")?;
        }
        match self.spared() {
            spared if spared.is_empty() => Ok(()),
            spared => write!(f, "; {} never ask, whatever it says", spared.join(", ")),
        }
    }
}
