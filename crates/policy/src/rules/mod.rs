//! A person's own rules, from `policy.toml`: calls allowed, asked or denied beyond the built-in table, and granted folders and hosts. The
//! strictest matching rule applies.

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

pub(crate) use self::exact::DescribedRule;
use self::pattern::Word;
use super::{Access, Decision, FREE, classify, folders::FolderAccess, shell};

/// The shell's name in rules.
pub const SHELL: &str = "bash";

/// A problem of `policy.toml`, which is then not used at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesProblem {
    /// The line, from 1; 0 for the whole file.
    pub line: usize,
    /// The problem, as a sentence.
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

/// A host in reach of sandboxed commands, through the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name in lower case, or the address.
    pub name: String,
    /// The only port.
    pub port: u16,
}

/// The rules of a person's `policy.toml`. The default has no rules and no grants, as without a file.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    readable: Vec<String>,
    writable: Vec<String>,
    hosts: Vec<Host>,
    shell_timeout: Option<Duration>,
    home: Option<PathBuf>,
    /// The base of relative paths.
    scratch: Option<PathBuf>,
    /// The memory's work tree, and the folder of files left in the scratch: file tools may read both.
    own: Vec<PathBuf>,
    refusal: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    line: usize,
    /// A pattern of tool names.
    tool: Option<String>,
    target: Target,
    decision: Decision,
    why: Option<String>,
    /// The time of its creation, if known.
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

/// The object of a call, for matching rules.
#[derive(Debug)]
pub(super) enum RuleQuestion<'a> {
    /// A call without a further object.
    Tool,
    /// One command of a shell text. `is_certain` is `false` if its words are guessed.
    Command {
        words: &'a [String],
        is_certain: bool,
    },
    Path(&'a Path),
    Url(&'a str),
}

impl Rules {
    /// Reads the text of a `policy.toml`, and tests each rule's own examples.
    ///
    /// # Errors
    /// All problems of the file, each with its line. A file with a problem isn't used at all.
    pub fn parse(text: &str) -> Result<Self, Vec<RulesProblem>> {
        read::parse_rules(text)
    }

    /// Returns the rules of an unusable file: every call that isn't free needs approval.
    pub fn from_problems(problems: &[RulesProblem]) -> Self {
        let first = problems.first().map_or_else(String::new, |problem| format!(" ({problem})"));
        let why = format!(
            "policy.toml has a problem{first} and isn't in use. Until you fix it, I ask before everything, and commands can see what it \
             denies."
        );
        Self { refusal: Some(why), ..Self::default() }
    }

    /// Sets the home folder for `~/`. Without it, such paths match nothing.
    #[must_use]
    pub fn with_home(self, home: Option<&Path>) -> Self {
        Self { home: home.map(Path::to_owned), ..self }
    }

    /// Adds our scratch folder for reading and writing; relative paths start there.
    #[must_use]
    pub fn with_scratch(mut self, folder: &Path) -> Self {
        self.writable.push(folder.to_string_lossy().into_owned());
        Self { scratch: Some(folder.to_owned()), ..self }
    }

    /// Adds the memory's work tree, which file tools may read. Programs get it from the sandbox, not from these rules.
    #[must_use]
    pub fn with_brain(self, folder: &Path) -> Self {
        self.with_own(folder)
    }

    /// Adds a folder of ours that file tools may read.
    #[must_use]
    pub fn with_own(mut self, folder: &Path) -> Self {
        self.own.push(folder.to_owned());
        self
    }

    /// Removes the hosts granted by a person: guests reach only the public web.
    #[must_use]
    pub fn without_hosts(self) -> Self {
        Self { hosts: Vec::new(), ..self }
    }

    /// Returns the reason the file isn't used, as a sentence.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Returns the folders granted for reading, including those for writing.
    pub fn readable_folders(&self) -> Vec<PathBuf> {
        self.readable.iter().chain(&self.writable).filter_map(|root| self.resolve_path(root)).collect()
    }

    /// Returns the folders granted for writing.
    pub fn writable_folders(&self) -> Vec<PathBuf> {
        self.writable.iter().filter_map(|root| self.resolve_path(root)).collect()
    }

    /// Returns the granted folders as written.
    pub(super) fn folders(&self, access: FolderAccess) -> &[String] {
        match access {
            FolderAccess::Read => &self.readable,
            FolderAccess::Write => &self.writable,
        }
    }

    /// Returns `true` if two files say the same apart from their folders. Their rules may stand on other lines.
    pub(super) fn is_same_except_folders(&self, other: &Self) -> bool {
        let place = |rule: &Rule| Rule { line: 0, ..rule.clone() };
        self.rules.iter().map(place).eq(other.rules.iter().map(place))
            && self.hosts == other.hosts
            && self.shell_timeout == other.shell_timeout
    }

    /// Returns the hosts in reach of sandboxed commands.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Returns the time limit of a command.
    pub fn shell_timeout(&self) -> Option<Duration> {
        self.shell_timeout
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns `true` if there is no rule.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Limits a command's wanted rights to the granted ones. A command that destroys files according to the built-in
    /// tables, and names a folder granted for writing, gets the right to write as well.
    pub fn limit_access(&self, text: &str, wanted: Access) -> Access {
        let granted = self.granted_folders();
        let is_named = |root: &PathBuf| {
            let short = self.home.as_ref().and_then(|home| root.strip_prefix(home).ok());
            text.contains(&*root.to_string_lossy())
                || short.is_some_and(|rest| text.contains(&format!("~/{}", rest.display())))
        };
        let destroys = || {
            granted.iter().any(is_named) && classify::classify_text(text).destroys.is_some_and(|found| found.is_files)
        };
        Access {
            writes: !granted.is_empty() && (wanted.writes || destroys()),
            network: !self.hosts.is_empty() && wanted.network,
        }
    }

    /// Returns the person's folders open for writing by commands, if they get the right.
    pub fn granted_folders(&self) -> Vec<PathBuf> {
        let mut roots = self.writable_folders();
        roots.retain(|root| Some(root) != self.scratch.as_ref());
        roots
    }

    /// Describes each rule in a line, for people.
    pub fn describe_rules(&self) -> Vec<String> {
        self.rules.iter().map(Rule::to_string).collect()
    }

    /// Returns `true` if an absolute path is in or at a granted folder, by its text alone: tools open files beneath a folder's handle.
    pub(super) fn is_granted(&self, path: &Path, is_write: bool) -> bool {
        let roots = if is_write { self.writable_folders() } else { self.readable_folders() };
        let own = self.own.iter().filter(|_| !is_write);
        roots.iter().chain(own).any(|root| path.starts_with(root))
    }

    /// Sets the time of each rule, by its line from 1.
    #[must_use]
    pub(super) fn with_rule_times(mut self, made: impl Fn(usize) -> Option<DateTime<Utc>>) -> Self {
        self.rules.iter_mut().for_each(|rule| rule.made_at = made(rule.line));
        self
    }

    /// Returns `true` if a rule that allows the call was made after `since`.
    pub(super) fn allows_since(&self, since: DateTime<Utc>, tool: &str, asked: &RuleQuestion<'_>) -> bool {
        let allowing = self.rules.iter().filter(|rule| rule.decision == Decision::Allow);
        allowing.filter(|rule| self.is_match(rule, tool, asked)).any(|rule| rule.is_since(since))
    }

    /// Returns the strictest decision of the matching rules, with the rule's wording.
    pub(super) fn decide(&self, tool: &str, asked: &RuleQuestion<'_>) -> Option<(Decision, String)> {
        let matching = self.rules.iter().filter(|rule| self.is_match(rule, tool, asked));
        find_strictest(matching).map(|rule| (rule.decision, rule.sentence()))
    }

    /// Decides for a tool that acts on several documents, or that names none.
    pub(super) fn decide_paths(&self, tool: &str, paths: &[PathBuf]) -> Option<(Decision, String)> {
        let asked = paths.iter().map(|path| RuleQuestion::Path(path)).chain([RuleQuestion::Tool]);
        let decisions = asked.filter_map(|asked| self.decide(tool, &asked));
        decisions.reduce(|best, other| if other.0 > best.0 { other } else { best })
    }

    /// Returns `true` if a rule about paths denies or asks about this document: a tool that goes through all documents skips it.
    pub fn keeps_back(&self, tool: &str, document: &Path) -> bool {
        self.rules_of_path(tool, document).any(|rule| rule.decision > Decision::Allow)
    }

    /// Returns `true` if a rule about paths denies this path to a tool, even after an approval of its surroundings.
    pub fn is_denied(&self, tool: &str, path: &Path) -> bool {
        self.rules_of_path(tool, path).any(|rule| rule.decision == Decision::Deny)
    }

    /// Returns the reason to refuse a redirect to the URL `to`; `None` if it may be followed. A rule that denies the host refuses it. A
    /// rule that asks refuses it unless the same rule asked about the `judged` URL, since the person has then approved.
    pub fn refuse_redirect(&self, tool: &str, to: &str, judged: &str) -> Option<String> {
        if let Some(why) = self.refusal() {
            // From http to https the port differs, but the host is the same.
            let name = |url| web_host(url).ok().map(|host| host.name);
            let is_elsewhere = name(to) != name(judged);
            return is_elsewhere.then(|| why.to_owned());
        }
        let says_no = |rule: &&Rule| match (&rule.target, rule.decision) {
            (Target::Host(_), Decision::Deny) => true,
            (Target::Host(_), Decision::Ask) => !self.is_match(rule, tool, &RuleQuestion::Url(judged)),
            _ => false,
        };
        let about_it = self.rules.iter().filter(|rule| self.is_match(rule, tool, &RuleQuestion::Url(to)));
        find_strictest(about_it.filter(says_no)).map(Rule::sentence)
    }

    /// Returns the places that rules deny entirely to programs (the shell, MCP servers), which are hidden from them, since a program opens
    /// any file it likes. These are paths without a wildcard except `/**` at the end, in a rule without a tool, or for the shell or a tool
    /// that begins with `mcp`. Other patterns can't be hidden.
    pub fn hidden_places(&self) -> Vec<PathBuf> {
        let runs_programs = |tool: &String| tool.starts_with("mcp") || pattern::is_text_match(tool, SHELL);
        let denying = self.rules.iter().filter(|rule| rule.decision == Decision::Deny);
        let of_programs = denying.filter(|rule| rule.tool.as_ref().is_none_or(runs_programs));
        let place = |rule: &Rule| match &rule.target {
            Target::Path(path) => {
                let place = match path.strip_suffix("/**").unwrap_or(path) {
                    "" => Some(PathBuf::from("/")),
                    "~" => self.home.clone(),
                    place => self.resolve_path(place),
                };
                place.filter(|place| !place.to_string_lossy().contains('*') && place.is_absolute())
            }
            _ => None,
        };
        of_programs.filter_map(place).collect()
    }

    /// Returns `true` if a rule about commands denies or asks about some command of this tool.
    pub(super) fn restrains_commands(&self, tool: &str) -> bool {
        self.rules.iter().any(|rule| {
            matches!(rule.target, Target::Command(_))
                && rule.decision > Decision::Allow
                && rule.tool.as_ref().is_none_or(|pattern| is_tool_match(pattern, tool))
        })
    }

    fn rules_of_path(&self, tool: &str, path: &Path) -> impl Iterator<Item = &Rule> {
        let about_paths = self.rules.iter().filter(|rule| matches!(rule.target, Target::Path(_)));
        about_paths.filter(move |rule| self.is_match(rule, tool, &RuleQuestion::Path(path)))
    }

    fn is_match(&self, rule: &Rule, tool: &str, asked: &RuleQuestion<'_>) -> bool {
        if rule.tool.as_ref().is_some_and(|pattern| !is_tool_match(pattern, tool)) {
            return false;
        }
        match (&rule.target, asked) {
            (Target::Any, _) => true,
            (Target::Command(pattern), RuleQuestion::Command { words, is_certain: true })
                if rule.decision == Decision::Allow =>
            {
                is_command_start(pattern, words)
            }
            (Target::Command(_), RuleQuestion::Command { .. }) if rule.decision == Decision::Allow => false,
            // Rules that forbid also look inside programs that run other commands.
            (Target::Command(pattern), RuleQuestion::Command { words, .. }) => {
                classify::list_readings(words).iter().any(|words| is_command_start(pattern, words))
            }
            (Target::Path(pattern), RuleQuestion::Path(path)) => {
                let pattern = self.resolve_path(pattern);
                let path = self.scratch.as_deref().map_or_else(|| path.to_path_buf(), |scratch| scratch.join(path));
                pattern.is_some_and(|pattern| rule.is_path_match(&pattern.to_string_lossy(), &path.to_string_lossy()))
            }
            (Target::Host(pattern), RuleQuestion::Url(url)) => {
                web_host(url).is_ok_and(|host| is_host_match(pattern, &host))
            }
            _ => false,
        }
    }

    fn resolve_path(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(rest) => Some(self.home.as_ref()?.join(rest)),
            None => Some(PathBuf::from(path)),
        }
    }
}

/// Returns `true` if a pattern of tool names covers a tool, by its own name or by its group's full name. A pattern with a `*` doesn't match
/// group names, so that patterns older than the groups cover no more tools than before.
fn is_tool_match(pattern: &str, tool: &str) -> bool {
    pattern::is_text_match(pattern, tool) || VerbGroup::find_by_tool(tool).is_some_and(|group| group.name == pattern)
}

/// Returns the strictest rule, the first of equals.
fn find_strictest<'a>(rules: impl Iterator<Item = &'a Rule>) -> Option<&'a Rule> {
    rules.reduce(|best, rule| if rule.decision > best.decision { rule } else { best })
}

/// Renders a command pattern as in the file.
fn render_pattern(words: &[Word]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| match word {
            Word::Many => "**".to_owned(),
            Word::OneOf(any) => any.join("|"),
        })
        .collect();
    words.join(" ")
}

fn is_command_start(pattern: &[Word], words: &[String]) -> bool {
    pattern::is_command_match(pattern, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns `true` if a host matches the pattern, which may name a port.
fn is_host_match(pattern: &str, host: &Host) -> bool {
    pattern::is_text_match(pattern, &host.name)
        || pattern::is_text_match(pattern, &format!("{}:{}", host.name, host.port))
}

/// Parses the host of a web address.
///
/// # Errors
/// The reason it isn't a plain web address, as a sentence.
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
    /// Returns `true` if the rule was made after `since`; `false` for an unknown time.
    fn is_since(&self, since: DateTime<Utc>) -> bool {
        self.made_at.is_some_and(|made| made > since)
    }

    /// Returns `true` if the rule matches one of its examples, for any tool.
    fn is_example_match(&self, example: &str) -> bool {
        match &self.target {
            Target::Any => self.tool.as_ref().is_some_and(|pattern| pattern::is_text_match(pattern, example)),
            Target::Command(pattern) => {
                let plain =
                    shell::parse_plain(example).map(|commands| commands.into_iter().map(|command| command.words));
                match (plain, self.decision) {
                    (Ok(mut commands), Decision::Allow) => commands.all(|words| is_command_start(pattern, &words)),
                    (Err(_), Decision::Allow) => false,
                    (Ok(commands), _) => commands
                        .flat_map(|words| classify::list_readings(&words))
                        .any(|words| is_command_start(pattern, &words)),
                    (Err(_), _) => {
                        let guessed = shell::guess_commands(example);
                        guessed
                            .iter()
                            .flat_map(|words| classify::list_readings(words))
                            .any(|words| is_command_start(pattern, &words))
                    }
                }
            }
            Target::Path(pattern) => self.is_path_match(pattern, example),
            // Exact arguments need no example.
            Target::Arguments(_) => false,
            Target::Host(pattern) => {
                let host = web_host(example).or_else(|_| web_host(&format!("https://{example}")));
                host.is_ok_and(|host| is_host_match(pattern, &host))
            }
        }
    }

    /// Returns `true` if a path matches the pattern. A rule that forbids also covers every spelling that a disk may take for such a path.
    fn is_path_match(&self, pattern: &str, path: &str) -> bool {
        // fault: path-another-letter-case
        let forbids = self.decision > Decision::Allow;
        pattern::is_path_match(pattern, path)
            || forbids && pattern::is_path_match(&disk::fold_name(pattern), &disk::fold_name(path))
    }

    /// Returns the free tools that an asking rule's pattern covers: they never ask, so the rule has no effect on them.
    fn list_spared_tools(&self) -> Vec<&'static str> {
        let pattern = self.tool.as_deref().filter(|_| self.decision == Decision::Ask && self.target == Target::Any);
        pattern.map_or_else(Vec::new, |pattern| FREE.into_iter().filter(|tool| is_tool_match(pattern, tool)).collect())
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
                write!(f, " command {} …", render_pattern(words))?;
            }
            Target::Arguments(arguments) => write!(f, " with exactly {arguments}")?,
            Target::Path(pattern) => write!(f, " path {pattern}")?,
            Target::Host(pattern) => write!(f, " host {pattern}")?,
        }
        if let Some(why) = &self.why {
            write!(f, " ({why})")?;
        }
        match self.list_spared_tools() {
            spared if spared.is_empty() => Ok(()),
            spared => write!(f, "; {} never ask, whatever it says", spared.join(", ")),
        }
    }
}
