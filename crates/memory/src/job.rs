//! Standing jobs: `memory/jobs/<name>.md`. The front matter gives a job's schedule, its gate and its allowed tools.
//!
//! Parsing turns text into a [`Job`] or its problems. A file with any unclear part is no job, and nothing of it runs.
//! [`Job::resolve_schedule`] reads the schedule with a clock; `cycle/background/jobs/decide` evaluates the gate.

use std::fmt;

use chrono::DateTime;

use reveille_base::{
    schedule::{
        Missed, Rule, Slot,
        when::{TimeTrouble, When, parse_only_time},
    },
    zone::Tz,
};

use super::{
    Problem,
    front_matter::{Field, check_name, parse_fields, split_front_matter},
};

/// The folder of the jobs, one file per job.
pub const JOBS_DIR: &str = "memory/jobs";
/// The maximum number of jobs read.
pub const MAX_JOBS: usize = 50;
/// The maximum size of a job's file, in bytes.
pub const MAX_JOB_BYTES: usize = 32 * 1024;
/// The default budget of a run with the model, in US dollars.
pub const RUN_BUDGET_USD: f64 = 0.5;
/// The maximum budget a file may allow per run, in US dollars.
pub const MAX_RUN_BUDGET_USD: f64 = 20.0;
/// The minimum interval of a recurring job, in minutes.
pub const MIN_EVERY_MIN: u32 = 5;

/// The message for a file without a front matter.
const BEGINNING: &str = "a job begins with a line `---`, then `when:`, then `---`";
/// The allowed keys.
const KEYS: [&str; 8] = ["when", "if", "watch", "tools", "budget", "notify", "missed", "status"];

/// A job as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The file's name, without `.md`.
    pub name: String,
    /// The schedule, as written.
    pub when: String,
    /// The condition for a run.
    pub gate: Option<JobGate>,
    /// The task for the model. `None` reports the gate's findings by rule, without a model.
    pub body: Option<String>,
    /// The tools a run may use, besides those that only send messages. `None` leaves the choice to the policy.
    pub tools: Option<Vec<String>>,
    /// The budget of one run, in US dollars.
    pub budget_usd: f64,
    /// The reporting of a run.
    pub notify: JobNotify,
    /// The handling of a missed slot.
    pub missed: Missed,
    /// Whether the job is paused.
    pub is_paused: bool,
    /// The line number of `when`.
    when_line: usize,
}

/// The condition that opens a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobGate {
    /// A command with exit status 0.
    If(String),
    /// A target that changed since the last check.
    Watch(WatchTarget),
}

/// The target of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchTarget {
    /// A page or a feed, by URL.
    Page(String),
    /// A file below a granted folder.
    File(String),
    /// A command's output.
    Command(String),
}

/// When the person is told about a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobNotify {
    /// After every run.
    Always,
    /// When the result of a watch or a condition differs from the previous run.
    #[default]
    Changes,
    /// Never; the result is only stored.
    Never,
}

impl JobNotify {
    /// Returns the keyword used in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Changes => "changes",
            Self::Never => "never",
        }
    }
}

impl fmt::Display for WatchTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Page(url) => f.write_str(url),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Command(command) => write!(f, "command: {command}"),
        }
    }
}

impl fmt::Display for JobGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::If(command) => write!(f, "if: {command}"),
            Self::Watch(target) => write!(f, "watch: {target}"),
        }
    }
}

impl JobGate {
    /// Returns the command run by the gate.
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::If(command) | Self::Watch(WatchTarget::Command(command)) => Some(command),
            Self::Watch(WatchTarget::Page(_) | WatchTarget::File(_)) => None,
        }
    }
}

/// The meaning of a job's schedule at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedJob {
    /// The recurrence; `None` for a single run.
    pub rule: Option<Rule>,
    /// The next slot; `None` if the only run is over.
    pub next: Option<Slot>,
}

impl Job {
    /// Parses a job; `name` is the file's name without `.md`.
    ///
    /// # Errors
    /// All problems that keep the job from running, with their lines.
    pub fn parse(name: &str, text: &str) -> Result<Self, Vec<Problem>> {
        if text.len() > MAX_JOB_BYTES {
            let what = format!("the file has {} bytes; at most {MAX_JOB_BYTES} are read", text.len());
            return Err(vec![Problem::new(1, what)]);
        }
        let text = text.trim_start_matches('\u{feff}');
        let read = split_front_matter(text, BEGINNING)
            .and_then(|(front, body)| Ok((parse_fields(&front, &KEYS_AS_STRINGS)?, body)));
        let (fields, body) = read.map_err(|problem| vec![problem])?;
        let mut reader = Reader { fields: &fields, problems: Vec::new() };
        if let Err(what) = check_name(name) {
            reader.problems.push(Problem::new(1, what));
        }
        reader.check_keys();
        let (when, when_line) = reader.read_string("when").unwrap_or_else(|| {
            reader.problems.push(Problem::new(1, "the front matter has no `when`"));
            (String::new(), 1)
        });
        let gate = reader.read_gate();
        let body = Some(body.trim()).filter(|body| !body.is_empty()).map(str::to_owned);
        if gate.is_none() && body.is_none() && reader.problems.is_empty() {
            let what = "there is nothing to do: give `watch` or `if`, or describe the work below the front matter";
            reader.problems.push(Problem::new(1, what));
        }
        // A task for the model wants its answer reported, even if it equals the previous one.
        let without = if body.is_some() { JobNotify::Always } else { JobNotify::Changes };
        let job = Self {
            name: name.to_owned(),
            when,
            when_line,
            gate,
            body,
            tools: reader.read_tools(),
            budget_usd: reader.read_budget(),
            notify: reader
                .parse_choice(
                    "notify",
                    &[("always", JobNotify::Always), ("changes", JobNotify::Changes), ("never", JobNotify::Never)],
                )
                .unwrap_or(without),
            missed: reader.read_word("missed", &[("run", Missed::Run), ("skip", Missed::Skip), ("tell", Missed::Tell)]),
            is_paused: reader.read_word("status", &[("active", false), ("paused", true)]),
        };
        if reader.problems.is_empty() { Ok(job) } else { Err(reader.problems) }
    }

    /// Returns the meaning of the schedule at this moment.
    ///
    /// # Errors
    /// The schedule is unclear, too frequent, or never comes.
    pub fn resolve_schedule(&self, now: DateTime<Tz>) -> Result<PlannedJob, Problem> {
        let problem = |what: String| Problem::new(self.when_line, what);
        let (tz, at) = (now.timezone(), now.with_timezone(&chrono::Utc));
        if let Ok(instant) = DateTime::parse_from_rfc3339(&self.when) {
            let slot = Slot::from_instant(instant.with_timezone(&chrono::Utc), tz);
            return Ok(PlannedJob { rule: None, next: Some(slot).filter(|slot| slot.at > at) });
        }
        match parse_only_time(&self.when, now) {
            None => Err(problem(format!(
                "`when: {}` isn't understood; write something like `every weekday at 8`, `every 2 hours` or `2026-12-24 18:00`",
                self.when
            ))),
            Some(Err(TimeTrouble::Past)) => Ok(PlannedJob { rule: None, next: None }),
            Some(Err(trouble)) => Err(problem(format!("`when: {}` {trouble}", self.when))),
            Some(Ok(When::At(slot))) => Ok(PlannedJob { rule: None, next: Some(slot) }),
            Some(Ok(When::Every(Rule::Interval { minutes, .. }))) if minutes < MIN_EVERY_MIN => Err(problem(format!(
                "`when: {}` comes too often; leave at least {MIN_EVERY_MIN} minutes between two runs",
                self.when
            ))),
            Some(Ok(When::Every(rule))) => match rule.next_after(at, tz) {
                Some(slot) => Ok(PlannedJob { rule: Some(rule), next: Some(slot) }),
                None => Err(problem(format!("`when: {}` never comes", self.when))),
            },
        }
    }

    /// Describes the job's unattended behaviour, for the person asked to approve it.
    pub fn describe(&self) -> String {
        let mut parts = vec![format!("when: {}", self.when)];
        parts.extend(self.gate.as_ref().map(ToString::to_string));
        match (&self.body, &self.tools) {
            (None, _) => parts.push("you get what it finds, without a model".to_owned()),
            (Some(_), Some(tools)) => parts.push(format!("tools: {}", tools.join(", "))),
            (Some(_), None) => parts.push("tools: everything your rules allow".to_owned()),
        }
        if self.body.is_some() {
            parts.push(format!("budget: ${:.2} a run", self.budget_usd));
        }
        parts.push(format!("notify: {}", self.notify.name()));
        if self.is_paused {
            parts.push("status: paused".to_owned());
        }
        format!("It would run on its own as the job `{}`: {}.", self.name, parts.join(" · "))
    }
}

/// The keys read as strings; `tools` may be a list.
const KEYS_AS_STRINGS: [&str; 7] = ["when", "if", "watch", "budget", "notify", "missed", "status"];

struct Reader<'a> {
    fields: &'a [Field],
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn add_problem(&mut self, line: usize, what: impl Into<String>) {
        self.problems.push(Problem::new(line, what));
    }

    /// Reports unknown and repeated keys. An unknown key could have been meant as a limit.
    fn check_keys(&mut self) {
        for (nth, field) in self.fields.iter().enumerate() {
            if !KEYS.contains(&field.key.as_str()) {
                self.add_problem(field.line, format!("`{}` isn't known; allowed are {}", field.key, KEYS.join(", ")));
            }
            if self.fields.iter().take(nth).any(|other| other.key == field.key) {
                self.add_problem(field.line, format!("`{}` is given twice", field.key));
            }
        }
    }

    /// Returns a key's value on one line, and its line number. `None` if the key is missing or invalid.
    fn read_string(&mut self, key: &str) -> Option<(String, usize)> {
        let field = self.fields.iter().find(|field| field.key == key)?;
        let (line, value) = (field.line, field.value.trim().to_owned());
        match &field.wrong {
            Some(wrong) => self.add_problem(line, format!("`{key}`: {wrong}")),
            None if value.is_empty() => self.add_problem(line, format!("`{key}` is empty")),
            None => return Some((value, line)),
        }
        None
    }

    fn read_gate(&mut self) -> Option<JobGate> {
        let (condition, watch) = (self.read_string("if"), self.read_string("watch"));
        match (condition, watch) {
            (Some(_), Some((_, line))) => {
                self.add_problem(line, "give `if` or `watch`, not both");
                None
            }
            (Some((command, _)), None) => Some(JobGate::If(command)),
            (None, Some((target, line))) => match WatchTarget::parse(&target) {
                Ok(target) => Some(JobGate::Watch(target)),
                Err(what) => {
                    self.add_problem(line, what);
                    None
                }
            },
            (None, None) => None,
        }
    }

    /// Reads tool names in any common list notation.
    fn read_tools(&mut self) -> Option<Vec<String>> {
        let field = self.fields.iter().find(|field| field.key == "tools")?;
        let text = format!("{} {}", field.value, field.under);
        let names = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '"' | '\''));
        let names: Vec<String> = names.filter(|name| !matches!(*name, "" | "-")).map(str::to_owned).collect();
        let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        if let Some(odd) = names.iter().find(|name| !is_plain(name)) {
            self.add_problem(field.line, format!("`tools`: `{odd}` can't be the name of a tool"));
        }
        if names.is_empty() {
            self.add_problem(field.line, "`tools` is empty; `tools: none` allows none");
        }
        Some(names.into_iter().filter(|name| name != "none").collect())
    }

    fn read_budget(&mut self) -> f64 {
        let Some((text, line)) = self.read_string("budget") else { return RUN_BUDGET_USD };
        let number = text.trim_start_matches('$').trim_end_matches("USD").trim();
        match number.parse::<f64>() {
            Ok(usd) if usd > 0.0 && usd <= MAX_RUN_BUDGET_USD => usd,
            _ => {
                let what =
                    format!("`budget: {text}` isn't an amount in US dollars above 0, at most {MAX_RUN_BUDGET_USD}");
                self.add_problem(line, what);
                RUN_BUDGET_USD
            }
        }
    }

    /// Reads one of a few words, or the default if the key is missing.
    fn read_word<T: Copy + Default>(&mut self, key: &str, words: &[(&str, T)]) -> T {
        self.parse_choice(key, words).unwrap_or_default()
    }

    /// Reads one of a few words. `None` if the key is missing or invalid.
    fn parse_choice<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Option<T> {
        let (text, line) = self.read_string(key)?;
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(&text)).map(|(_, value)| *value);
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.add_problem(line, format!("`{key}: {text}` isn't one of {}", known.join(", ")));
        }
        found
    }
}

impl WatchTarget {
    /// Parses the target of a watch.
    ///
    /// # Errors
    /// An explanation of the notation, fit for the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let after = |kind: &str| lower.starts_with(kind).then(|| text.get(kind.len()..).unwrap_or_default().trim());
        if lower.starts_with("https://") || lower.starts_with("http://") {
            return Ok(Self::Page(text.to_owned()));
        }
        match (after("file:"), after("command:")) {
            (Some(path), _) if path.starts_with("~/") || path.starts_with('/') => Ok(Self::File(path.to_owned())),
            (_, Some(command)) if !command.is_empty() => Ok(Self::Command(command.to_owned())),
            _ if text.starts_with("~/") || text.starts_with('/') => Ok(Self::File(text.to_owned())),
            _ => {
                Err(format!("`watch: {text}` isn't understood; write `https://…`, `file:~/notes/x.md` or `command: …`"))
            }
        }
    }
}

/// All jobs of a memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Jobs {
    /// The valid jobs, by name.
    pub usable: Vec<Job>,
    /// The invalid jobs with their problems.
    pub damaged: Vec<DamagedJob>,
}

/// A job file that can't run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedJob {
    /// The path in the repository.
    pub path: String,
    /// The problems of the file.
    pub problems: Vec<Problem>,
}

impl fmt::Display for DamagedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problems: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        write!(f, "The job {} isn't run: {}", self.path, problems.join("; "))
    }
}

impl Jobs {
    /// Reads the jobs among the files of a memory. `text` returns a file's content by path, and `now` resolves the schedules.
    pub fn collect(paths: &[String], text: impl Fn(&str) -> String, now: DateTime<Tz>) -> Self {
        let mut jobs = Self::default();
        for path in paths.iter().filter(|path| super::is_job(path)) {
            let read = match job_name(path) {
                Some(_) if jobs.usable.len() >= MAX_JOBS => {
                    Err(vec![Problem::new(1, format!("there are more than {MAX_JOBS} jobs"))])
                }
                Some(name) => Job::parse(name, &text(path))
                    .and_then(|job| job.resolve_schedule(now).map(|_| job).map_err(|problem| vec![problem])),
                None => Err(vec![Problem::new(1, format!("a job is a file `{JOBS_DIR}/<name>.md`"))]),
            };
            match read {
                Ok(job) => jobs.usable.push(job),
                Err(problems) => jobs.damaged.push(DamagedJob { path: path.clone(), problems }),
            }
        }
        jobs
    }

    /// Returns the usable job of this name.
    pub fn get(&self, name: &str) -> Option<&Job> {
        self.usable.iter().find(|job| job.name == name)
    }
}

/// Returns the name of the job stored at a path.
pub fn job_name(path: &str) -> Option<&str> {
    let name = path.strip_prefix(JOBS_DIR)?.strip_prefix('/')?.strip_suffix(".md")?;
    (!name.contains('/')).then_some(name)
}

/// Returns the file path of the job of this name.
pub fn job_path(name: &str) -> String {
    format!("{JOBS_DIR}/{name}.md")
}

/// The status of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobStatus {
    /// It runs at its times.
    Active,
    /// It doesn't run.
    Paused,
}

/// Returns a job's text with another status: changes the line, or adds one after the first line. `None` without a front matter.
pub fn with_status(text: &str, status: JobStatus) -> Option<String> {
    let word = match status {
        JobStatus::Active => "active",
        JobStatus::Paused => "paused",
    };
    let (front, _) = split_front_matter(text.trim_start_matches('\u{feff}'), BEGINNING).ok()?;
    let at = front.iter().position(|line| line.split_once(':').is_some_and(|(key, _)| key == "status"));
    let mut new = String::with_capacity(text.len() + word.len());
    for (nth, line) in super::text::split_lines(text).enumerate() {
        let ending = line.get(line.trim_end_matches(['\n', '\r']).len()..).unwrap_or("\n");
        match at {
            Some(at) if nth == at + 1 => new.push_str(&format!("status: {word}{ending}")),
            None if nth == 0 => new.push_str(&format!("{line}status: {word}{ending}")),
            _ => new.push_str(line),
        }
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use reveille_base::clock::parse_time;

    fn now() -> DateTime<Tz> {
        parse_time("2026-11-21T14:00:00Z").unwrap().with_timezone(&"Europe/Berlin".parse::<Tz>().unwrap())
    }

    fn read(front: &str, body: &str) -> Result<Job, String> {
        Job::parse("a-job", &format!("---\n{front}\n---\n{body}"))
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn a_job_is_read_with_all_that_it_says() {
        let job = read(
            "# mine\nwhen: every weekday at 8\nif: test -e ~/inbox && ls ~/inbox\ntools: [memory_search, task_add]\n\
             budget: $0.25\nnotify: always\nmissed: skip\nstatus: paused",
            "\nSort the inbox.\n",
        )
        .unwrap();
        assert_eq!(job.gate, Some(JobGate::If("test -e ~/inbox && ls ~/inbox".to_owned())));
        assert_eq!(job.body.as_deref(), Some("Sort the inbox."));
        assert_eq!(job.tools.as_deref(), Some(["memory_search".to_owned(), "task_add".to_owned()].as_slice()));
        assert_eq!(
            (job.budget_usd, job.notify, job.missed, job.is_paused),
            (0.25, JobNotify::Always, Missed::Skip, true)
        );
        assert_snapshot!(job.describe(), @"It would run on its own as the job `a-job`: when: every weekday at 8 · if: test -e ~/inbox && ls ~/inbox · tools: memory_search, task_add · budget: $0.25 a run · notify: always · status: paused.");
        let plain = read("when: every day at 9", "Do it.").unwrap();
        assert_eq!(
            (plain.tools, plain.budget_usd, plain.notify, plain.missed),
            (None, RUN_BUDGET_USD, JobNotify::Always, Missed::Run)
        );
        let watching = read("when: every day at 9\nwatch: https://a.example", "").unwrap();
        assert_eq!(watching.notify, JobNotify::Changes);
        let list = read("when: every day at 9\ntools:\n  - a\n  - b_c", "Do it.").unwrap();
        assert_eq!(list.tools.unwrap(), ["a", "b_c"]);
        assert_eq!(read("when: every day at 9\ntools: none", "Do it.").unwrap().tools.unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_watched_is_told_by_how_it_begins() {
        let target =
            |text: &str| read(&format!("when: every 2 hours\nwatch: {text}"), "").unwrap().gate.unwrap().to_string();
        assert_eq!(target("https://example.org/feed.xml"), "watch: https://example.org/feed.xml");
        assert_eq!(target("file:~/notes/x.md"), "watch: file:~/notes/x.md");
        assert_eq!(target("~/notes/x.md"), "watch: file:~/notes/x.md");
        assert_eq!(target("'command: df -h | tail -n 1'"), "watch: command: df -h | tail -n 1");
        assert_eq!(target("command: df -h"), "watch: command: df -h");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_nothing_of_it_runs() {
        let wrong = |front: &str| read(front, "").unwrap_err();
        assert_snapshot!(Job::parse("x", "Do it.").unwrap_err()[0], @"line 1: a job begins with a line `---`, then `when:`, then `---`");
        assert_snapshot!(wrong("if: true"), @"line 1: the front matter has no `when`");
        assert_snapshot!(wrong("when: every day"), @"line 1: there is nothing to do: give `watch` or `if`, or describe the work below the front matter");
        assert_snapshot!(wrong("when: daily at 9\nif: true\nwatch: https://a.example"), @"line 4: give `if` or `watch`, not both");
        assert_snapshot!(wrong("when: daily at 9\nwatch: example.org"), @"line 3: `watch: example.org` isn't understood; write `https://…`, `file:~/notes/x.md` or `command: …`");
        assert_snapshot!(wrong("when: daily at 9\nif: true\ntool: bash"), @"line 4: `tool` isn't known; allowed are when, if, watch, tools, budget, notify, missed, status");
        assert_snapshot!(wrong("when: daily at 9\nif: true\nbudget: lots\nnotify: often\nmissed: maybe"), @"line 4: `budget: lots` isn't an amount in US dollars above 0, at most 20; line 5: `notify: often` isn't one of always, changes, never; line 6: `missed: maybe` isn't one of run, skip, tell");
        assert_snapshot!(wrong("when: daily at 9\nif: \"true"), @"line 3: `if`: the closing quote is missing");
        assert_snapshot!(wrong("when: daily at 9\nwhen: daily at 10\nif: true"), @"line 3: `when` is given twice");
        assert_snapshot!(wrong("when: daily at 9\nif: true\ntools: a/b"), @"line 4: `tools`: `a/b` can't be the name of a tool");
        assert!(
            Job::parse("A job", "---\nwhen: daily at 9\n---\nDo it.").unwrap_err()[0]
                .to_string()
                .contains("can't be a name")
        );
    }

    #[test]
    fn a_time_is_understood_or_its_line_named() {
        let planned = |when: &str| read(&format!("when: {when}"), "x").unwrap().resolve_schedule(now());
        let next = |when: &str| planned(when).unwrap().next.unwrap().civil.to_string();
        assert_eq!(next("every weekday at 8"), "2026-11-23 08:00:00");
        assert_eq!(next("2026-11-22 09:00"), "2026-11-22 09:00:00");
        assert_eq!(next("every 2 hours"), "2026-11-21 16:00:00");
        assert_eq!(planned("2026-11-20 09:00").unwrap(), PlannedJob { rule: None, next: None });
        assert_snapshot!(planned("whenever").unwrap_err(), @"line 2: `when: whenever` isn't understood; write something like `every weekday at 8`, `every 2 hours` or `2026-12-24 18:00`");
        assert_snapshot!(planned("every minute").unwrap_err(), @"line 2: `when: every minute` comes too often; leave at least 5 minutes between two runs");
    }

    #[test]
    fn a_damaged_file_is_named_and_the_others_are_read() {
        let files = [
            ("memory/jobs/good.md", "---\nwhen: every day at 9\n---\nDo it."),
            ("memory/jobs/bad.md", "---\nwhen: whenever\n---\nDo it."),
            ("memory/jobs/deep/er.md", "---\nwhen: every day at 9\n---\nDo it."),
            ("memory/notes.md", "x"),
        ];
        let paths: Vec<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        let text = |path: &str| files.iter().find(|(other, _)| *other == path).unwrap().1.to_owned();
        let jobs = Jobs::collect(&paths, text, now());
        assert_eq!(jobs.usable.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["good"]);
        assert_snapshot!(jobs.damaged.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"), @r"
        The job memory/jobs/bad.md isn't run: line 2: `when: whenever` isn't understood; write something like `every weekday at 8`, `every 2 hours` or `2026-12-24 18:00`
        The job memory/jobs/deep/er.md isn't run: line 1: a job is a file `memory/jobs/<name>.md`
        ");
    }

    #[test]
    fn pausing_changes_one_line() {
        let text = "---\r\nwhen: every day at 9\r\n---\r\nstatus: mine\r\n";
        let paused = with_status(text, JobStatus::Paused).unwrap();
        assert_eq!(paused, "---\r\nstatus: paused\r\nwhen: every day at 9\r\n---\r\nstatus: mine\r\n");
        assert_eq!(with_status(&paused, JobStatus::Active).unwrap(), paused.replace("paused", "active"));
        assert!(Job::parse("x", &paused).unwrap().is_paused);
        assert_eq!(with_status("no front", JobStatus::Paused), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(front in "(when|if|watch|tools|x)?: ?[\"'>|a\\\\ #\\[-]{0,6}\n?( [a\"']\n)?.{0,9}", any in any::<String>()) {
            for text in [format!("---\n{front}\n---\n"), any] {
                if let Ok(job) = Job::parse("a", &text) {
                    drop(job.resolve_schedule(now()));
                    prop_assert!(job.gate.is_some() || job.body.is_some());
                }
            }
        }
    }
}
