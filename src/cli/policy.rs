//! `wake policy`: shows the policy in force, and judges shell commands for this machine without running them. It writes
//! nothing and reads an existing database only. It finds out if there is a sandbox as a wake does.

use std::{
    io::{BufRead, Read as _},
    path::PathBuf,
    process::ExitCode,
};

use chrono::{DateTime, Utc};
use clap::Subcommand;

use reveille_base::types::Effect;
use reveille_config::{Autonomy, Config};
use reveille_cycle as cycle;
use reveille_cycle::standing;
use reveille_policy as policy;
use reveille_policy::{
    Access, Circumstances, Decision, Loaded, Risk, Rules, SHELL, Subject, Verdict, What, amend::ListedRule,
};
use reveille_sandbox::{Sandbox, exec::Shelter};
use reveille_tools::mcp::client::{self, settings::Settings};

use super::{EXIT_CONFIG, EXIT_FAILED, OutputFormat, complain, print, print_exactly, print_json, report_failure};

/// Maximum bytes of a line from stdin; a longer one is judged as too long.
const MAX_LINE_BYTES: u64 = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(super) enum PolicyAction {
    /// Show how a shell command would be judged now on this machine, and why. It is not run.
    #[command(after_help = "\
Examples:
  wake policy test 'git push'
  wake policy test --writes 'cd ~/work && cargo fmt'
  history | cut -c8- | wake policy test - --json")]
    Test {
        /// The command, as one argument; `-` reads one per line from stdin, also as JSON strings.
        #[arg(value_name = "COMMAND", allow_hyphen_values = true)]
        command: String,
        /// Judge as on a machine without a sandbox.
        #[arg(long)]
        unsandboxed: bool,
        /// Judge as a command that asks to change files in granted folders.
        #[arg(long)]
        writes: bool,
        /// Judge as a command that asks to reach granted hosts.
        #[arg(long)]
        network: bool,
        /// Print a JSON object for each command: command, decision, risk, reasons, sandboxed, write, read_only, network.
        #[arg(long)]
        json: bool,
    },
    /// Show the policy in force: autonomy, rules and grants.
    #[command(after_help = "Example: wake policy show")]
    Show {
        /// Print it as one JSON document.
        #[arg(long)]
        json: bool,
    },
    /// List your rules in plain words, or remove one.
    #[command(after_help = "\
Examples:
  wake policy rules
  wake policy rules remove 2")]
    Rules {
        #[command(subcommand)]
        action: Option<RulesAction>,
        /// Print a JSON object for each rule: number, line, rule, added.
        #[arg(long)]
        json: bool,
    },
    /// Print a commented policy.toml to start from.
    #[command(after_help = "Example: wake policy example > policy.toml")]
    Example {
        /// Print one JSON document with the file's text.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum RulesAction {
    /// List the rules, numbered.
    #[command(after_help = "Example: wake policy rules list --json")]
    List {
        /// Print a JSON object for each rule: number, line, rule, added.
        #[arg(long)]
        json: bool,
    },
    /// Remove a rule that “Always allow this” added. To change your own rules, edit policy.toml.
    #[command(after_help = "Example: wake policy rules remove 2")]
    Remove {
        /// Number of the rule, from the list.
        number: usize,
    },
}

impl PolicyAction {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Test { json, .. } | Self::Show { json } | Self::Example { json } => *json,
            Self::Rules { action, json } => *json || matches!(action, Some(RulesAction::List { json: true })),
        }
    }
}

pub(super) fn run(config: &Config, action: Option<&PolicyAction>, format: OutputFormat) -> ExitCode {
    let loaded = policy::load(&config.policy_path(), config.home.as_deref());
    match action {
        Some(PolicyAction::Test { command, unsandboxed, writes, network, .. }) => {
            let shelter = build_shelter(config, &loaded.rules).with_tainted_writes(tainted_writes(config));
            let no_sandbox =
                if *unsandboxed { Some("as assumed by --unsandboxed".to_owned()) } else { no_sandbox(&shelter) };
            let wanted = Access { writes: *writes, network: *network };
            let bench = Bench { loaded: &loaded, autonomy: config.autonomy, no_sandbox, shelter, wanted };
            bench.run(command, format)
        }
        Some(PolicyAction::Example { .. }) => {
            if format.is_json() {
                print_json(&serde_json::json!({ "policy_toml": policy::EXAMPLE }));
            } else {
                print(policy::EXAMPLE);
            }
            ExitCode::SUCCESS
        }
        Some(PolicyAction::Rules { action: Some(RulesAction::Remove { number }), .. }) => remove(config, *number),
        Some(PolicyAction::Rules { .. }) => list_rules(config, format),
        Some(PolicyAction::Show { .. }) | None => show_policy(config, &loaded, format),
    }
}

/// A rule as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct RuleLine<'a> {
    number: usize,
    line: usize,
    rule: &'a str,
    /// The origin of the rule; null if the person wrote it.
    added: Option<&'a str>,
}

fn list_rules(config: &Config, format: OutputFormat) -> ExitCode {
    let rules = match standing::list_rules(config) {
        Ok(rules) => rules,
        Err(error) => {
            complain(&format!("{error}. Until then I ask about everything."));
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    if format.is_json() {
        for (at, rule) in rules.iter().enumerate() {
            let ListedRule { line, words, added, .. } = rule;
            let rule = RuleLine { number: at + 1, line: *line, rule: words, added: added.as_deref() };
            print_exactly(&format!("{}\n", serde_json::to_string(&rule).unwrap_or_default()));
        }
        return ExitCode::SUCCESS;
    }
    match standing::render_rules(&rules) {
        Some(list) => print(&list),
        None => complain("There are no rules. `wake policy example` prints a policy.toml to start from."),
    }
    ExitCode::SUCCESS
}

fn remove(config: &Config, number: usize) -> ExitCode {
    let removed = standing::list_rules(config).map_err(|error| format!("{error}.")).and_then(|rules| {
        let rule = standing::find_removable(&rules, number)?;
        standing::remove(config, rule).map_err(|error| format!("Rule {number} stays: {error}."))
    });
    match removed {
        Ok(said) => {
            print(&format!("I took this rule back, so I'll ask again:\n{said}"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            complain(&why);
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// The circumstances in which commands are judged.
struct Bench<'a> {
    loaded: &'a Loaded,
    autonomy: Autonomy,
    /// The reason for a missing sandbox.
    no_sandbox: Option<String>,
    shelter: Shelter,
    /// The access that commands are assumed to request.
    wanted: Access,
}

/// A judgement as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct Answer<'a> {
    command: &'a str,
    #[serde(flatten)]
    verdict: &'a Verdict,
    #[serde(flatten)]
    given: &'a Given,
}

/// The access that a command would get.
#[derive(serde::Serialize)]
struct Given {
    /// `true` if it would run in the sandbox.
    sandboxed: bool,
    /// Granted folders that are writable, besides the scratch folder.
    write: Vec<PathBuf>,
    /// Granted folders that are only readable.
    read_only: Vec<PathBuf>,
    /// Granted hosts that are reachable.
    network: Vec<String>,
}

impl std::fmt::Display for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.sandboxed {
            return f.write_str("Without a sandbox, as you");
        }
        let paths =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        f.write_str("In the sandbox: writes in the scratch folder")?;
        if !self.write.is_empty() {
            write!(f, ", {}", paths(&self.write))?;
        }
        if !self.read_only.is_empty() {
            write!(f, "; read-only: {}", paths(&self.read_only))?;
        }
        if self.network.is_empty() {
            return f.write_str("; no network");
        }
        write!(f, "; network: {}", self.network.join(", "))
    }
}

impl Bench<'_> {
    fn run(&self, command: &str, format: OutputFormat) -> ExitCode {
        report_problems(self.loaded);
        if let Some(why) = &self.no_sandbox {
            complain(&format!("There is no sandbox: {why}. Until there is one, I ask before every command."));
        }
        if command != "-" {
            let (verdict, given) = (self.judge(command), self.collect_grants(command));
            print_exactly(&if format.is_json() {
                line_of_json(command, &verdict, &given)
            } else {
                render_details(command, &verdict, &given)
            });
            return ExitCode::SUCCESS;
        }
        let mut lines = std::io::stdin().lock();
        loop {
            match next_line(&mut lines) {
                Ok(Some(line)) => {
                    let command = serde_json::from_str::<String>(&line).unwrap_or(line);
                    let verdict = self.judge(&command);
                    print_exactly(&if format.is_json() {
                        line_of_json(&command, &verdict, &self.collect_grants(&command))
                    } else {
                        render_line(&command, &verdict)
                    });
                }
                Ok(None) => return ExitCode::SUCCESS,
                Err(error) => return report_failure(&error),
            }
        }
    }

    fn collect_grants(&self, command: &str) -> Given {
        let (rules, sandboxed) = (&self.loaded.rules, self.no_sandbox.is_none());
        let access = rules.limit_access(command, self.wanted);
        let granted = if sandboxed { rules.granted_folders() } else { Vec::new() };
        let (write, read_only) = if access.writes { (granted, Vec::new()) } else { (Vec::new(), granted) };
        let hosts = rules.hosts().iter().filter(|_| sandboxed && access.network);
        let network = hosts.map(|host| format!("{}:{}", host.name, host.port)).collect();
        Given { sandboxed, write, read_only, network }
    }

    /// Renders the arguments of a model's call for this command.
    fn render_arguments(&self, command: &str) -> String {
        let mut arguments = serde_json::Map::from_iter([("command".to_owned(), command.into())]);
        for (name, is_wanted) in [("writes", self.wanted.writes), ("network", self.wanted.network)] {
            if is_wanted {
                arguments.insert(name.to_owned(), true.into());
            }
        }
        serde_json::Value::Object(arguments).to_string()
    }

    fn judge(&self, command: &str) -> Verdict {
        let access = self.loaded.rules.limit_access(command, self.wanted);
        let arguments = self.render_arguments(command);
        let subject = Subject {
            tool: SHELL,
            risk: Risk::Dangerous,
            effect: Effect::Once,
            is_free: false,
            reach: access.reach(),
            what: What::Shell { text: command, access },
            arguments: &arguments,
        };
        let is_sandboxed = self.no_sandbox.is_none();
        let uncovered =
            if access.writes && is_sandboxed { self.shelter.find_copy_obstacle(&self.loaded.rules) } else { None };
        let circumstances = Circumstances {
            autonomy: self.autonomy,
            taint: None,
            is_sandboxed,
            uncovered: uncovered.as_deref(),
            tainted_write: self.shelter.tainted_write(&self.loaded.rules),
        };
        policy::judge(&subject, &self.loaded.rules, &circumstances)
    }
}

/// Returns the reason why commands would run without a sandbox. `None` if there is one.
fn no_sandbox(shelter: &Shelter) -> Option<String> {
    match shelter.detect_sandbox() {
        Sandbox::None { why } => Some(why),
        Sandbox::Bubblewrap { .. } | Sandbox::Seatbelt { .. } => None,
    }
}

/// Returns the folders that tainted cycles have written to. Without a database there are none, and this command creates
/// none.
fn tainted_writes(config: &Config) -> Vec<(PathBuf, DateTime<Utc>)> {
    let has_store = config.db_path().exists();
    let store = has_store.then(|| cycle::open_store(config).ok()).flatten();
    store.and_then(|store| cycle::tainted_writes(&store).ok()).unwrap_or_default()
}

fn build_shelter(config: &Config, rules: &Rules) -> Shelter {
    client::build_shelter(config, rules, &Settings::for_workspace(config))
}

/// Reads the next line without its end, cut at the limit.
fn next_line(lines: &mut impl BufRead) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else {
        lines.skip_until(b'\n')?;
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn line_of_json(command: &str, verdict: &Verdict, given: &Given) -> String {
    format!("{}\n", serde_json::to_string(&Answer { command, verdict, given }).unwrap_or_default())
}

fn render_line(command: &str, verdict: &Verdict) -> String {
    let (decision, risk) = (verdict.decision.name(), verdict.risk.name());
    format!("{decision:5}  {risk:11}  {}  {}\n", render_command(command), verdict.reasons.join(" "))
}

fn render_details(command: &str, verdict: &Verdict, given: &Given) -> String {
    let what = match verdict.decision {
        Decision::Allow => "would run without asking",
        Decision::Ask => "would ask first",
        Decision::Deny => "wouldn't run",
    };
    let reasons: String = verdict.reasons.iter().map(|reason| format!("  - {reason}\n")).collect();
    format!(
        "{}\n{}: it {what}. Risk: {}.\n{reasons}  - {given}.\n",
        render_command(command),
        verdict.decision.name(),
        verdict.risk.name()
    )
}

/// Renders a command on one line, without terminal controls and invisible characters.
fn render_command(command: &str) -> String {
    if command.chars().all(|c| c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric()) {
        return command.to_owned();
    }
    format!("\"{}\"", command.escape_default())
}

fn report_problems(loaded: &Loaded) {
    if loaded.problems.is_empty() {
        return;
    }
    let problems: String = loaded.problems.iter().map(|problem| format!("  {problem}\n")).collect();
    complain(&format!("I don't use policy.toml as it is, and ask about everything until it is corrected:\n{problems}"));
}

/// The policy in force as JSON. Scripts rely on the field names.
#[derive(serde::Serialize)]
struct InForce {
    autonomy: u8,
    file: PathBuf,
    exists: bool,
    /// If there are problems, the file isn't used and everything asks.
    problems: Vec<String>,
    rules: Vec<String>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    network: Vec<String>,
    sandboxed: bool,
    /// The reason for a missing sandbox.
    no_sandbox: Option<String>,
    shell_timeout_s: Option<u64>,
}

impl InForce {
    fn from_loaded(config: &Config, loaded: &Loaded) -> Self {
        let (rules, no_sandbox) = (&loaded.rules, no_sandbox(&build_shelter(config, &loaded.rules)));
        Self {
            autonomy: match config.autonomy {
                Autonomy::AskAll => 0,
                Autonomy::Smart => 1,
                Autonomy::Full => 2,
            },
            file: config.policy_path(),
            exists: loaded.exists,
            problems: loaded.problems.iter().map(ToString::to_string).collect(),
            rules: rules.describe_rules(),
            read: rules.readable_folders(),
            write: rules.writable_folders(),
            network: rules.hosts().iter().map(|host| format!("{}:{}", host.name, host.port)).collect(),
            sandboxed: no_sandbox.is_none(),
            no_sandbox,
            shell_timeout_s: rules.shell_timeout().map(|timeout| timeout.as_secs()),
        }
    }
}

fn show_policy(config: &Config, loaded: &Loaded, format: OutputFormat) -> ExitCode {
    if format.is_json() {
        print_json(&InForce::from_loaded(config, loaded));
    } else {
        show_in_words(config, loaded);
    }
    report_problems(loaded);
    if loaded.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_CONFIG) }
}

fn show_in_words(config: &Config, loaded: &Loaded) {
    let level = match config.autonomy {
        Autonomy::AskAll => "0: I ask before everything except planning, replying, notes and reading memory",
        Autonomy::Smart => "1: I do what is safe or can be undone, and ask before what is dangerous",
        Autonomy::Full => "2: I ask only before what can't be undone",
    };
    let file = config.policy_path();
    let mut text = format!("autonomy  {level}\n");
    let rules = &loaded.rules;
    text += &match (loaded.exists, loaded.problems.is_empty()) {
        (false, _) => format!("rules     none: there is no {}; `wake policy example` prints one\n", file.display()),
        (true, true) => format!("rules     {} in {}\n", rules.len(), file.display()),
        (true, false) => format!("rules     refused: {}\n", file.display()),
    };
    let indented = |items: Vec<String>| -> String { items.iter().map(|item| format!("          {item}\n")).collect() };
    text += &indented(rules.describe_rules());
    let paths = |paths: Vec<std::path::PathBuf>| match paths.as_slice() {
        [] => "nothing beyond the scratch folder".to_owned(),
        paths => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    };
    text += &format!("read      {}\nwrite     {}\n", paths(rules.readable_folders()), paths(rules.writable_folders()));
    let hosts: Vec<String> = rules.hosts().iter().map(|host| format!("{}:{}", host.name, host.port)).collect();
    text +=
        &format!("network   {}\n", if hosts.is_empty() { "none for commands".to_owned() } else { hosts.join(", ") });
    text += &match no_sandbox(&build_shelter(config, rules)) {
        None => "sandbox   there is one: commands run confined\n".to_owned(),
        Some(why) => format!("sandbox   none, so I ask before every command: {why}\n"),
    };
    if let Some(timeout) = rules.shell_timeout() {
        text += &format!("shell     {} s per command\n", timeout.as_secs());
    }
    text += "always    I ask before what can't be undone, and before changes to claude.md and skills/\n";
    print(&text);
}
