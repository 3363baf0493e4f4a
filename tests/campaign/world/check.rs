//! The final checks of a world, after any harm.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use super::{
    Program, Story, World, changes,
    files::{files, locks, without_comments},
    media,
};
use crate::support::{claude::API_KEY, telegram::TOKEN};

const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";
/// The mark at the end of a possible repeat.
const REPEAT_MARK: &str = "\n\n↻ This may be a repeat: the first try wasn't confirmed.";
/// The beginnings of notices about trouble, besides the answers.
const NOTICES: [&str; 1] = ["I couldn't send my memory to its remote: "];

/// The beginnings of the log's lines about the wakes themselves. They depend on the harm, so they aren't compared.
const NOTES: [&str; 4] =
    ["Resumed the wake ", "Merged with the remote.", "Repaired: ", "Couldn't merge the remote's commits: "];

/// Allowed differences of a trial from an undisturbed run.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    /// Tells whether a text to a person is about the trouble.
    pub(crate) notice: &'a dyn Fn(&str) -> bool,
    /// Texts that Telegram has refused for good.
    pub(crate) refused: usize,
    /// Files that Telegram has refused for good.
    pub(crate) unfetched: usize,
    /// A progress line may still be in a chat.
    pub(crate) line: bool,
    /// The work may be divided differently among wakes, and so among texts.
    pub(crate) regrouped: bool,
    /// Unfinished work may be left on a branch, once: its model has refused to continue.
    pub(crate) parked: bool,
    /// The same story without an AI model, since the fallback grammar may have answered.
    pub(crate) grammar: Option<&'a Story>,
}

impl Default for Allowed<'_> {
    fn default() -> Self {
        Self {
            notice: &|_| false,
            refused: 0,
            unfetched: 0,
            line: false,
            regrouped: false,
            parked: false,
            grammar: None,
        }
    }
}

/// The required final state after any harm.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The end of each message, oldest first.
    pub(super) messages: Vec<String>,
    /// The Markdown of the memory, without the comments that hold wakes' ids; the log's lines sorted.
    pub(super) memory: BTreeMap<String, String>,
    /// Every reminder with its state and its number of firings.
    reminders: Vec<String>,
    /// Commits by people, sorted.
    pub(super) people: Vec<String>,
    /// The final state of the sent files.
    files: Vec<String>,
    /// Branches and references with kept work, each with its tree: unfinished work, and commits a remote has lost.
    pub(super) kept: Vec<String>,
    /// Unfinished cycles.
    open_cycles: i64,
    /// Undelivered messages to people.
    undelivered: i64,
}

impl Story {
    /// Checks a world of this story after its recovery.
    pub(crate) fn check(&self, world: &World) -> Result<(), String> {
        self.check_but(world, Allowed { regrouped: self.has_files, ..Allowed::default() })
    }

    /// As [`Story::check`], where people may also get notices of the trouble.
    pub(crate) fn check_with(&self, world: &World, notice: &dyn Fn(&str) -> bool) -> Result<(), String> {
        self.check_but(world, Allowed { regrouped: self.has_files, notice, ..Allowed::default() })
    }

    /// As [`Story::check`], with differences the trial allows.
    pub(crate) fn check_but(&self, world: &World, allowed: Allowed<'_>) -> Result<(), String> {
        // A person who asked in a closed terminal gets the result in the chat.
        let is_notice = |text: &str| {
            (allowed.notice)(text) || world.program == Program::Changing && text.starts_with("I've undone ")
        };
        let allowed = Allowed { notice: &is_notice, ..allowed };
        let mut outcome = world.outcome();
        if (outcome.undelivered == 0) != (allowed.refused == 0) {
            let status = world.env.health(&["status"]).stdout;
            return Err(format!(
                "{} texts were refused, {} are undelivered\n{status}",
                allowed.refused, outcome.undelivered
            ));
        }
        outcome.undelivered = 0;
        let unfetched: Vec<String> = outcome.files.iter().filter(|file| file.ends_with(" failed -")).cloned().collect();
        if unfetched.len() == allowed.unfetched {
            outcome.files.clone_from(&self.expected.files);
        }
        if allowed.parked && outcome.kept.len() == self.expected.kept.len() + 1 {
            outcome.kept.retain(|kept| !kept.starts_with("refs/heads/recovered/"));
        }
        if outcome != self.expected {
            let status = world.env.health(&["status"]).stdout;
            return Err(format!("it ended as {outcome:#?}\ninstead of {:#?}\n{status}", self.expected));
        }
        let lines: Vec<String> = world.telegram.standing().into_iter().filter(|text| text.starts_with('⏳')).collect();
        if !allowed.line && !lines.is_empty() {
            return Err(format!("lines that tell of progress are left: {lines:?}"));
        }
        if self.has_files {
            world.check_files()?;
        }
        if let Some(word) = self.word {
            world.check_asked(word)?;
        }
        if world.program == Program::Changing {
            world.check_given_back()?;
        }
        if !allowed.regrouped {
            let sent: Vec<_> = world.telegram.sent().into_iter().map(|sent| self.read(world, &sent.visible)).collect();
            let is_by = |grammar: &&Story| grammar.texts.iter().all(|text| sent.contains(text));
            let (texts, mut log) = allowed.grammar.filter(is_by).unwrap_or(self).of_question(world);
            let noted = world.log_lines();
            log.retain(|line| noted.contains(line) || !world.was_shown(line));
            if self.has_files {
                // The grouping of answers into texts depends on timing.
                let lines = self.texts.iter().flat_map(|text| lines_of(text)).collect::<Vec<_>>();
                let lines = media::without(lines, &unfetched);
                check_sent(&lines, &sent.iter().flat_map(|text| lines_of(text)).collect::<Vec<_>>(), allowed)?;
            } else {
                check_sent(&texts, &sent, allowed)?;
            }
            check_log(&log, &world.log_lines()).map_err(|why| format!("{why}\n{}", world.history()))?;
        }
        world.check_sound()
    }
}

impl World {
    pub(super) fn outcome(&self) -> Outcome {
        let lines = |sql: &str| -> Vec<String> {
            let text: Option<String> = self.env.query(&format!("SELECT group_concat(line, char(10)) FROM ({sql})"));
            text.unwrap_or_default().lines().map(str::to_owned).collect()
        };
        let mut people: Vec<String> = self
            .env
            .git(&["log", "--format=%an: %s", "--perl-regexp", "--author=^(?!Reveille)"])
            .lines()
            .map(str::to_owned)
            .collect();
        people.sort();
        Outcome {
            messages: lines(
                "SELECT processed || ' ' || ifnull(outcome, '-') AS line FROM incoming_messages ORDER BY id",
            ),
            memory: self.memory(),
            reminders: lines(
                "SELECT text || ' ' || state || ' ' || slot || ' ' || (SELECT count(*) FROM reminder_firings
                 WHERE reminder_id = reminders.id) AS line FROM reminders ORDER BY text",
            ),
            people,
            files: self.files_sent(),
            kept: self
                .env
                .git(&["for-each-ref", "--format=%(refname) %(tree)", "refs/reveille/rescue", "refs/heads/recovered"])
                .lines()
                .map(str::to_owned)
                .collect(),
            open_cycles: self.env.query("SELECT count(*) FROM cycles WHERE state IN ('running', 'waiting', 'parked')"),
            undelivered: self
                .env
                .query("SELECT count(*) FROM outgoing_messages WHERE sent_at IS NULL AND taken_back_at IS NULL AND chat_id <> 0"),
        }
    }

    /// Every memory file without its comments. [`World::log_lines`] compares the log.
    fn memory(&self) -> BTreeMap<String, String> {
        let files = self.env.git(&["ls-files", "memory"]);
        let markdown = files.lines().filter(|path| path.ends_with(".md") && *path != EPISODIC);
        // The order of a fact and the picture, and so the fact's section, depends on timing.
        let text = |path| without_comments(&self.env.memory(path)).replace("## Unconfirmed\n", "## Notes\n");
        markdown.map(|path| (path.to_owned(), text(path))).collect()
    }

    /// The actions in the log: the lines below each entry's first line, which names the reasons of the wake.
    pub(super) fn log_lines(&self) -> Vec<String> {
        let log = without_comments(&self.env.memory(EPISODIC));
        // An entry starts with the wake's reasons. If a wake has two entries, the second starts with its first tainted action.
        let begun = |line: &'_ str| {
            let (_, text) = line.strip_prefix("- ")?.split_once(' ')?;
            (!text.starts_with("Woke for")).then_some(text.len())
        };
        let receipts = log
            .lines()
            .filter_map(|line| line.strip_prefix("  ").or_else(|| line.get(line.len().saturating_sub(begun(line)?)..)));
        let is_note = |line: &str| NOTES.iter().any(|note| line.starts_with(note));
        receipts
            .filter(|line| !is_note(line))
            .map(|line| line.trim().replace("Kept “", "Remembered “").replace("” as unconfirmed", "”"))
            .flat_map(|line| each_answered(&line))
            .filter_map(|line| if self.program == Program::Changing { changes::comparable(line) } else { Some(line) })
            .collect()
    }

    /// Tells whether the line is about a person's commit a model saw with its messages; no wake notes such a commit.
    fn was_shown(&self, line: &str) -> bool {
        let Some(subject) = line.strip_prefix("Noted a person's commit: ") else { return false };
        let shown = format!("SELECT count(*) FROM cycle_journal WHERE seq = 1 AND instr(body, '{subject}') > 0");
        self.env.query::<i64>(&shown) > 0
    }

    /// The cycles and commits, for a person who looks for the faulty wake.
    fn history(&self) -> String {
        let cycles: Option<String> = self.env.query(
            "SELECT group_concat(id || ' ' || state || ' ' || reasons || ' ' || ifnull(error, ''), char(10)) FROM cycles",
        );
        let commits = self.env.git(&["log", "--graph", "--format=%h %an: %s"]);
        format!("{}\n{commits}", cycles.unwrap_or_default())
    }

    /// The checks for any world.
    fn check_sound(&self) -> Result<(), String> {
        let remote = self.env.path("remote.git");
        self.env.check_sound();
        self.env.git_in(&remote, &["fsck", "--strict", "--no-dangling"]);
        let locks = locks(&self.env.brain().join(".git"));
        if !locks.is_empty() {
            return Err(format!("lock files are left: {locks:?}"));
        }
        self.env.git(&["push", "-q", "origin", "HEAD"]);
        self.check_remote_moved_forward(&remote)?;
        self.check_commits()?;
        self.check_secrets()
    }

    /// Checks that each wake committed once.
    fn check_commits(&self) -> Result<(), String> {
        let ids = self.env.git(&["log", "--format=%(trailers:key=Wake-Id,valueonly,separator=%x20)"]);
        let mut seen = BTreeSet::new();
        match ids.lines().map(str::trim).find(|id| !id.is_empty() && !seen.insert(*id)) {
            Some(id) => Err(format!("the wake {id} has committed twice")),
            None => Ok(()),
        }
    }

    /// Reads the remote's own log of its branch.
    fn check_remote_moved_forward(&self, remote: &Path) -> Result<(), String> {
        let log = fs::read_to_string(remote.join("logs/refs/heads/main")).map_err(|error| error.to_string())?;
        for line in log.lines() {
            let mut ids = line.split(' ');
            let (old, new) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
            // A line torn by a kill runs into the next one.
            let is_id = |id: &str| id.len() == 40 && id.chars().all(|c| c.is_ascii_hexdigit());
            if !is_id(old) || !is_id(new) {
                continue;
            }
            let is_forward = old.chars().all(|c| c == '0') || self.env.git_in(remote, &["merge-base", old, new]) == old;
            if !is_forward {
                return Err(format!("the remote went from {old} to {new}"));
            }
        }
        Ok(())
    }

    /// Checks that no file holds a secret: databases, logs and messages are not compressed.
    fn check_secrets(&self) -> Result<(), String> {
        for path in files(&self.env.workspace()) {
            let bytes = fs::read(&path).unwrap_or_default();
            for secret in [TOKEN, API_KEY] {
                if bytes.windows(secret.len()).any(|piece| piece == secret.as_bytes()) {
                    return Err(format!("a secret is in {}", path.display()));
                }
            }
        }
        Ok(())
    }
}

/// Checks that each text was sent once, or twice with the second one marked, or only marked, or refused, and that nothing else was
/// sent.
fn check_sent(texts: &[String], sent: &[String], allowed: Allowed<'_>) -> Result<(), String> {
    let mut refused = 0;
    let mut left = sent.to_vec();
    for text in texts {
        let of_it: Vec<String> = left.extract_if(.., |sent| sent.trim_end_matches(REPEAT_MARK) == text).collect();
        let marked = format!("{text}{REPEAT_MARK}");
        let is_right = match of_it.as_slice() {
            [one] => one == text || *one == marked,
            // The server may accept a killed program's text after the next program's.
            [one, two] => (one == text && *two == marked) || (*one == marked && two == text),
            [] if refused < allowed.refused => {
                refused += 1;
                true
            }
            _ => false,
        };
        if !is_right {
            return Err(format!("{text:?} was sent as {of_it:#?} among {sent:#?}"));
        }
    }
    // A progress line is no message; another check covers it.
    left.retain(|text| !text.starts_with('⏳'));
    left.retain(|text| !NOTICES.iter().any(|notice| text.starts_with(notice)) && !(allowed.notice)(text));
    if left.is_empty() { Ok(()) } else { Err(format!("nobody asked for {left:#?} among {sent:#?}")) }
}

/// Splits a line about several answered messages into one line each, since the grouping depends on timing.
fn each_answered(line: &str) -> Vec<String> {
    let number = line.strip_prefix("Answered ").and_then(|rest| rest.strip_suffix(" messages"));
    match number.and_then(|number| number.parse().ok()) {
        Some(number) => vec!["Answered 1 message".to_owned(); number],
        None => vec![line.to_owned()],
    }
}

/// Checks that each action is in the log once, and nothing else; the acting wake may differ.
fn check_log(expected: &[String], log: &[String]) -> Result<(), String> {
    let mut left = log.to_vec();
    for line in expected {
        let Some(at) = left.iter().position(|found| found == line) else {
            return Err(format!("the log lacks {line:?}: {log:#?}"));
        };
        left.remove(at);
    }
    // A cycle has nothing to note about a commit it was shown, and the first cycle to see it depends on timing.
    let noted = |line: &String| line.starts_with("Noted a person's commit: ");
    left.retain(|line| !noted(line) || log.iter().filter(|other| *other == line).count() > 1);
    if left.is_empty() { Ok(()) } else { Err(format!("the log has too much: {left:#?} in {log:#?}")) }
}

/// The lines of a text; each line of a repeat gets the mark.
fn lines_of(text: &str) -> Vec<String> {
    let (said, mark) = text.strip_suffix(REPEAT_MARK).map_or((text, ""), |said| (said, REPEAT_MARK));
    said.lines().map(|line| format!("{line}{mark}")).collect()
}
