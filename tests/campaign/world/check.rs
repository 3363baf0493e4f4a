//! What must hold of a world in the end, whatever was done to it.

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
/// Stands at the end of a message that may have come before.
const REPEAT_MARK: &str = "\n\n↻ This may be a repeat: the first try wasn't confirmed.";
/// What a person is told of trouble, besides the answers: how such a message begins.
const NOTICES: [&str; 1] = ["I couldn't send my memory to its remote: "];

/// What the log tells of the wakes themselves: how such a line begins. It isn't what was done, and differs with the harm.
const NOTES: [&str; 4] =
    ["Went on with the wake ", "Merged with the remote.", "Repaired: ", "Could not take in the remote's commits: "];

/// What a trial may leave that an undisturbed run doesn't.
#[derive(Clone, Copy)]
pub(crate) struct Allowed<'a> {
    /// Whether a text to a person is about the trouble.
    pub(crate) notice: &'a dyn Fn(&str) -> bool,
    /// Texts that Telegram has refused for good.
    pub(crate) refused: usize,
    /// Files that Telegram has refused for good.
    pub(crate) unfetched: usize,
    /// Whether a line that tells of a cycle's progress may still stand in a chat.
    pub(crate) line: bool,
    /// Whether the work may be shared out among wakes, and so among texts, in another way.
    pub(crate) regrouped: bool,
    /// Whether unfinished work may be left on a branch, once: its model has refused to go on with it.
    pub(crate) parked: bool,
    /// The same story without an AI model: the grammar may have answered in its place.
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

/// What must be the same in the end, whatever happened on the way.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// How each message ended, oldest first.
    pub(super) messages: Vec<String>,
    /// The Markdown of the memory, without the comments that hold wakes' ids; the log's lines sorted.
    pub(super) memory: BTreeMap<String, String>,
    /// Every reminder with its state, and how often it fired.
    reminders: Vec<String>,
    /// Commits by people, sorted.
    pub(super) people: Vec<String>,
    /// What became of files that were sent, and what was heard in them.
    files: Vec<String>,
    /// What is kept on branches and references of its own, with all that is there: unfinished work, what a remote has lost.
    pub(super) kept: Vec<String>,
    /// Cycles that didn't end.
    open_cycles: i64,
    /// Messages to people that didn't arrive.
    undelivered: i64,
}

impl Story {
    /// What must hold of a world of this story once it has recovered.
    pub(crate) fn check(&self, world: &World) -> Result<(), String> {
        self.check_but(world, Allowed { regrouped: self.has_files, ..Allowed::default() })
    }

    /// As [`Story::check`], where people may be told of the trouble besides.
    pub(crate) fn check_with(&self, world: &World, notice: &dyn Fn(&str) -> bool) -> Result<(), String> {
        self.check_but(world, Allowed { regrouped: self.has_files, notice, ..Allowed::default() })
    }

    /// As [`Story::check`], but for what the trial may leave.
    pub(crate) fn check_but(&self, world: &World, allowed: Allowed<'_>) -> Result<(), String> {
        // Whoever asked for it in a terminal that is gone is told in the chat.
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
                // Which answers share a text is a matter of moments.
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

    /// Every memory file without its comments. The log is compared by [`World::log_lines`].
    fn memory(&self) -> BTreeMap<String, String> {
        let files = self.env.git(&["ls-files", "memory"]);
        let markdown = files.lines().filter(|path| path.ends_with(".md") && *path != EPISODIC);
        // Whether a fact was learnt before or after the picture came is a matter of moments.
        let text = |path| without_comments(&self.env.memory(path)).replace("## Unconfirmed\n", "## Notes\n");
        markdown.map(|path| (path.to_owned(), text(path))).collect()
    }

    /// What the log says was done: the lines beneath each entry's first, which says what the wake woke for.
    pub(super) fn log_lines(&self) -> Vec<String> {
        let log = without_comments(&self.env.memory(EPISODIC));
        // An entry begins with why it woke, or, where a wake has two, with the first thing that it did after it had read others.
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

    /// Whether the line tells of a person's commit that a mind was shown with its messages: nobody notes that one.
    fn was_shown(&self, line: &str) -> bool {
        let Some(subject) = line.strip_prefix("Noted a person's commit: ") else { return false };
        let shown = format!("SELECT count(*) FROM cycle_journal WHERE seq = 1 AND instr(body, '{subject}') > 0");
        self.env.query::<i64>(&shown) > 0
    }

    /// Who did what, for a person who looks for the wake that went wrong.
    fn history(&self) -> String {
        let cycles: Option<String> = self.env.query(
            "SELECT group_concat(id || ' ' || state || ' ' || reasons || ' ' || ifnull(error, ''), char(10)) FROM cycles",
        );
        let commits = self.env.git(&["log", "--graph", "--format=%h %an: %s"]);
        format!("{}\n{commits}", cycles.unwrap_or_default())
    }

    /// What must hold of any world, whatever its story.
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

    /// One wake, one commit.
    fn check_commits(&self) -> Result<(), String> {
        let ids = self.env.git(&["log", "--format=%(trailers:key=Wake-Id,valueonly,separator=%x20)"]);
        let mut seen = BTreeSet::new();
        match ids.lines().map(str::trim).find(|id| !id.is_empty() && !seen.insert(*id)) {
            Some(id) => Err(format!("the wake {id} has committed twice")),
            None => Ok(()),
        }
    }

    /// By the remote's own log of where its branch was.
    fn check_remote_moved_forward(&self, remote: &Path) -> Result<(), String> {
        let log = fs::read_to_string(remote.join("logs/refs/heads/main")).map_err(|error| error.to_string())?;
        for line in log.lines() {
            let mut ids = line.split(' ');
            let (old, new) = (ids.next().unwrap_or_default(), ids.next().unwrap_or_default());
            // A line that was torn when its writer was killed runs into the next one.
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

    /// The token is in no file: databases, logs and messages are not compressed.
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

/// Each of these texts was sent once; or twice, the second time marked; or only marked; or refused. Nothing else was.
fn check_sent(texts: &[String], sent: &[String], allowed: Allowed<'_>) -> Result<(), String> {
    let mut refused = 0;
    let mut left = sent.to_vec();
    for text in texts {
        let of_it: Vec<String> = left.extract_if(.., |sent| sent.trim_end_matches(REPEAT_MARK) == text).collect();
        let marked = format!("{text}{REPEAT_MARK}");
        let is_right = match of_it.as_slice() {
            [one] => one == text || *one == marked,
            // What a killed program sent may be taken by the server after what the next one sent.
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
    // A line that tells of progress is no message; whether it stands is looked at elsewhere.
    left.retain(|text| !text.starts_with('⏳'));
    left.retain(|text| !NOTICES.iter().any(|notice| text.starts_with(notice)) && !(allowed.notice)(text));
    if left.is_empty() { Ok(()) } else { Err(format!("nobody asked for {left:#?} among {sent:#?}")) }
}

/// A line that tells of several answered messages as so many of one: which were answered together is a matter of moments.
fn each_answered(line: &str) -> Vec<String> {
    let number = line.strip_prefix("Answered ").and_then(|rest| rest.strip_suffix(" messages"));
    match number.and_then(|number| number.parse().ok()) {
        Some(number) => vec!["Answered 1 message".to_owned(); number],
        None => vec![line.to_owned()],
    }
}

/// What was done is in the log once, and nothing else is: which wake did it may differ.
fn check_log(expected: &[String], log: &[String]) -> Result<(), String> {
    let mut left = log.to_vec();
    for line in expected {
        let Some(at) = left.iter().position(|found| found == line) else {
            return Err(format!("the log lacks {line:?}: {log:#?}"));
        };
        left.remove(at);
    }
    // A cycle that is shown a person's commit has nothing to note of it: which cycle saw it first is a matter of moments, too.
    let noted = |line: &String| line.starts_with("Noted a person's commit: ");
    left.retain(|line| !noted(line) || log.iter().filter(|other| *other == line).count() > 1);
    if left.is_empty() { Ok(()) } else { Err(format!("the log has too much: {left:#?} in {log:#?}")) }
}

/// The lines of a text; those of a repeat bear its mark, each.
fn lines_of(text: &str) -> Vec<String> {
    let (said, mark) = text.strip_suffix(REPEAT_MARK).map_or((text, ""), |said| (said, REPEAT_MARK));
    said.lines().map(|line| format!("{line}{mark}")).collect()
}
