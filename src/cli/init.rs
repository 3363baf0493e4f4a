//! `wake init`: asks for settings, checks each answer at once, and writes all settings at the end. Then it pairs, and
//! starts a first conversation. `setup` defines the questions and checks; this module is the terminal side.

mod after;
mod ask;
mod overview;

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use reveille_config::{Config, GivenSettings, SettingChanges, is_secret};

use super::{
    EXIT_CONFIG, EXIT_FAILED, EXIT_USAGE, OutputFormat, SettingsArguments, complain, config_failure,
    out::Working,
    prompt::{Prompter, Unanswered},
    report_failure,
};
use crate::setup::{self, AssistantNames, CheckReach, CheckTools, Checked, SetupStep};

/// The text after the help.
pub(super) const HELP: &str = "\
On a terminal, it asks, and writes nothing before you say yes to all of it: Ctrl-C leaves everything as it was. Run it again to see
what is set and what fails, and to change it. Answers go to .env in the workspace, which only you can read.

For scripts: --non-interactive takes the settings from the environment (their names are in .env.example; a secret also as a file that
NAME_FILE names), checks them and keeps them in .env. Secrets are never arguments.
Exit codes: 0 done · 1 a check failed, or you cancelled; nothing was changed · 2 there is no terminal to ask at · 78 a setting is wrong.

Examples:
  wake init                          asks
  wake init --check                  what is set, and whether it works
  TELEGRAM_BOT_TOKEN_FILE=/run/secrets/bot TIMEZONE=Europe/Berlin wake init --non-interactive";

#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    /// Show what is set and whether it works; ask nothing and change nothing.
    #[arg(long, conflicts_with = "non_interactive")]
    check: bool,
    /// Ask nothing: keep the environment's settings.
    #[arg(long)]
    non_interactive: bool,
    /// Don't ask servers and programs whether the answers work.
    #[arg(long, requires = "non_interactive")]
    no_check: bool,
    /// With --check or --non-interactive: print one JSON object per line: step, settings, state, told.
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn run(settings: &SettingsArguments, arguments: &InitArguments, format: OutputFormat) -> ExitCode {
    let given = GivenSettings::gather(settings.env_file.as_deref());
    if let Some(problem) = given.file_problem() {
        complain(&format!("{problem}\nNothing was changed. Correct it, or move the file away, and run this again."));
        return ExitCode::from(EXIT_CONFIG);
    }
    let runtime = match super::build_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return report_failure(&error),
    };
    if arguments.check {
        return runtime.block_on(overview::print_overview(&given, format));
    }
    if arguments.non_interactive {
        let reach = if arguments.no_check { CheckReach::Local } else { CheckReach::Others };
        return runtime.block_on(save_environment(&given, reach, format));
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        complain(
            "`wake init` asks questions, and there is no terminal to ask them at. Nothing was changed. For scripts: `wake init \
             --non-interactive` takes the settings from the environment.",
        );
        return ExitCode::from(EXIT_USAGE);
    }
    let stop = match super::stop_signal() {
        Ok(stop) => stop,
        Err(error) => return report_failure(&error),
    };
    let prompter = match Prompter::start(stop) {
        Ok(prompter) => prompter,
        Err(error) => return report_failure(&error),
    };
    let Some(wizard) = Wizard::new(given, prompter) else {
        complain(
            "I don't know where to keep my files, because HOME isn't set. Please set WORKSPACE_DIR. Nothing was changed.",
        );
        return ExitCode::from(EXIT_CONFIG);
    };
    let ended = runtime.block_on(Box::pin(wizard.run())).unwrap_or_else(|ended| ended);
    drop(runtime);
    ended.into_exit_code()
}

/// How the set-up ended, with the next action.
enum Ended {
    Done(ExitCode),
    /// Start the first conversation with these settings. `true` if the system should start wakes from then on.
    Ready(Box<Config>, bool),
}

impl Ended {
    /// Starts the first conversation if the set-up is ready for it, outside its runtime, as `wake say` does.
    fn into_exit_code(self) -> ExitCode {
        match self {
            Self::Done(code) => code,
            Self::Ready(config, starts_automatically) => after::first_exchange(&config, starts_automatically),
        }
    }
}

impl From<Unanswered> for Ended {
    fn from(why: Unanswered) -> Self {
        let how = match why {
            Unanswered::Cancelled => "Cancelled",
            Unanswered::NoMoreInput => "The input ended",
        };
        complain(&format!("\n{how}: nothing was changed."));
        Self::Done(ExitCode::from(EXIT_FAILED))
    }
}

/// The set-up in progress, with earlier settings and pending changes.
struct Wizard {
    said: GivenSettings,
    changes: SettingChanges,
    config: Config,
    names: AssistantNames,
    new_names: AssistantNames,
    /// `true` if the standing orders have a sentence for the names.
    has_place_for_names: bool,
    /// The default workspace.
    usual_workspace: Option<PathBuf>,
    prompter: Prompter,
    /// `true` if every question is asked in turn.
    asks_all: bool,
}

impl Wizard {
    fn new(said: GivenSettings, prompter: Prompter) -> Option<Self> {
        let changes = SettingChanges::new();
        let usual_workspace = said.workspace().map(Path::to_owned);
        let config = said.with_valid_settings(&changes).0?;
        let names = setup::read_names(&config);
        let can_wipe = !config.no_color;
        let new_names = names.clone().unwrap_or_default();
        Some(Self {
            said,
            changes,
            config,
            has_place_for_names: names.is_some(),
            names: new_names.clone(),
            usual_workspace,
            new_names,
            prompter: prompter.with_wiping(can_wipe),
            asks_all: false,
        })
    }

    async fn run(mut self) -> Result<Ended, Ended> {
        let is_new = !self.said.file_path().is_some_and(|file| file.exists());
        if is_new {
            complain(
                "Let's set up Reveille. I check each answer at once and write nothing before the end.\n\
                 Enter keeps the value in brackets; Ctrl-C leaves everything as it was.",
            );
            self.asks_all = true;
            for step in SetupStep::ALL {
                self.ask_step(step).await?;
            }
        } else {
            for step in self.choose_steps().await? {
                self.ask_step(step).await?;
            }
        }
        self.finish(is_new).await
    }

    /// Shows the settings, and asks which to change.
    async fn choose_steps(&mut self) -> Result<Vec<SetupStep>, Ended> {
        let file = self.said.file_path().unwrap_or_default();
        complain(&format!("Your settings in {}:", file.display()));
        let (states, problems) = {
            let working = Working::start("checking…");
            let states = overview::check_steps(&self.said, &SettingChanges::new(), CheckReach::Others, &|| {
                self.prompter.is_stopped()
            })
            .await;
            drop(working);
            states
        };
        let steps: Vec<SetupStep> = states.iter().map(|(step, _)| *step).chain(self.name_steps()).collect();
        for (at, (step, checked)) in (1..).zip(&states) {
            complain(&format!("  {at:>2} {}", overview::render_step(*step, checked)));
        }
        for (at, step) in (states.len() + 1..).zip(self.name_steps()) {
            complain(&format!("  {at:>2} ✓ {:<11} {}", step.title(), self.find_name(step)));
        }
        for problem in problems {
            complain(&format!("   ✗ {problem}"));
        }
        loop {
            let answer = self
                .prompter
                .read_line("\nWhat do you want to change? Numbers such as 2 3, all, or Enter for nothing: ")
                .await?;
            if answer.eq_ignore_ascii_case("all") {
                return Ok(steps);
            }
            let words = answer.split([' ', ',']).filter(|word| !word.is_empty());
            let numbers: Option<Vec<SetupStep>> =
                words.map(|word| steps.get(word.parse::<usize>().ok()?.checked_sub(1)?).copied()).collect();
            if let Some(mut chosen) = numbers {
                // Choosing the model includes its key and its server's settings.
                if chosen.contains(&SetupStep::Model) {
                    chosen.extend(SetupStep::OF_A_MODEL);
                }
                chosen.sort_unstable();
                chosen.dedup();
                return Ok(chosen);
            }
            complain(&format!("  ✗ “{answer}” isn't a list of numbers from 1 to {}", steps.len()));
        }
    }

    fn name_steps(&self) -> Vec<SetupStep> {
        if self.has_place_for_names { vec![SetupStep::Assistant, SetupStep::Person] } else { Vec::new() }
    }

    fn find_name(&self, step: SetupStep) -> &str {
        match step {
            SetupStep::Assistant => &self.new_names.assistant,
            _ => self.new_names.person.as_deref().unwrap_or("not told"),
        }
    }

    /// Writes everything after one yes, then continues.
    async fn finish(mut self, is_new: bool) -> Result<Ended, Ended> {
        // The settings have to name a workspace that isn't the default one.
        if self.is_elsewhere()
            || self.said.named_file().is_some() && self.said.workspace() != self.usual_workspace.as_deref()
        {
            let workspace = self.said.workspace().map(|dir| dir.display().to_string());
            self.changes.insert("WORKSPACE_DIR", workspace);
        }
        if !self.changes.is_empty() || self.has_new_names() || is_new {
            self.show_summary();
            if !self.confirm_and_write().await? {
                complain("Nothing was changed.");
                return Ok(Ended::Done(ExitCode::from(EXIT_FAILED)));
            }
        } else {
            complain("Nothing to change.");
        }
        self.run_later_steps(is_new).await
    }

    /// Writes after a yes, and returns `true` if there was one. After a failure it asks again, so a full disk loses no
    /// answers.
    async fn confirm_and_write(&mut self) -> Result<bool, Ended> {
        let mut question = "Write this? [Y/n] ";
        loop {
            match self.prompter.read_line(question).await?.to_lowercase().as_str() {
                "" | "y" | "yes" => match setup::save_changes(&self.said, &self.changes) {
                    Ok(file) => {
                        complain(&format!("Written to {}.", file.display()));
                        return Ok(true);
                    }
                    Err(why) => {
                        complain(&format!("  ✗ {why}. Nothing was changed, and your answers are still here."));
                        question = "Try again? [Y/n] ";
                    }
                },
                "n" | "no" => return Ok(false),
                other => complain(&format!("  ✗ I didn't understand “{other}”. Please answer y or n.")),
            }
        }
    }

    fn has_new_names(&self) -> bool {
        self.names != self.new_names
    }

    /// Returns `true` if other programs would look for the settings elsewhere by default.
    fn is_elsewhere(&self) -> bool {
        self.said.named_file().is_none() && self.said.workspace() != self.usual_workspace.as_deref()
    }

    fn show_summary(&self) {
        let file = self.said.file_path().unwrap_or_default();
        complain(&format!("\nTo be written to {}, which only you can read:", file.display()));
        if self.changes.is_empty() {
            complain("  (nothing: the defaults apply)");
        }
        for (name, value) in &self.changes {
            let shown = match value {
                None if self.said.get(name).is_none() => continue,
                None => "(removed)".to_owned(),
                Some(_) if is_secret(name) => "*** (a secret)".to_owned(),
                Some(value) => mask_secret(name, value),
            };
            complain(&format!("  {name:<20} {shown}"));
        }
        if self.has_new_names() {
            let person =
                self.new_names.person.as_deref().map_or_else(String::new, |name| format!(", and you are {name}"));
            complain(&format!("And in its standing orders: it is called {}{person}.", self.new_names.assistant));
        }
    }
}

/// Hides secrets in a value.
fn mask_secret(name: &str, value: &str) -> String {
    if name == "REPO_URL" { reveille_config::RepoUrl::new(value).to_string() } else { value.to_owned() }
}

/// Writes the environment's settings to the file.
async fn save_environment(given: &GivenSettings, reach: CheckReach, format: OutputFormat) -> ExitCode {
    let changes = setup::copy_environment(given);
    if let Err(error) = given.resolve_with_changes(&changes) {
        return config_failure(&error);
    }
    let (states, _) = overview::check_steps(given, &changes, reach, &|| false).await;
    overview::print_states(&states, format);
    let fails = |checked: &Checked| match reach {
        CheckReach::Others => !checked.is_good(),
        CheckReach::Local => matches!(checked, Checked::Wrong(_)),
    };
    if states.iter().any(|(_, checked)| fails(checked)) {
        complain("A check failed, so nothing was written. Correct it, or use --no-check if there is no network yet.");
        return ExitCode::from(EXIT_FAILED);
    }
    if changes.is_empty() {
        complain("The environment has no settings, so nothing was written.");
        return ExitCode::SUCCESS;
    }
    match setup::save_changes(given, &changes) {
        Ok(file) => {
            let names: Vec<&str> = changes.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| *name).collect();
            complain(&format!("Written to {}: {}.", file.display(), names.join(", ")));
            ExitCode::SUCCESS
        }
        Err(why) => {
            complain(&format!("failed: {why}. Nothing was changed."));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

/// Builds the tools for a check.
fn build_check_tools<'a>(temporary: &'a Path, reach: CheckReach, is_over: &'a dyn Fn() -> bool) -> CheckTools<'a> {
    CheckTools { temporary, is_over, reach }
}
