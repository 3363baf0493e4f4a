//! Asks one question: shows it, reads the answer, checks it at once, and explains what is wrong.

use reveille_base::redact::is_like_a_key;

use super::{super::prompt::Unanswered, Ended, Wizard, build_check_tools, complain};
use crate::{
    cli::out::Working,
    setup::{self, CheckReach, Checked, FoundServer, ParsedAnswer, SetupQuestion, SetupStep},
};

/// Minimum width of a terminal.
const COLUMNS: usize = 80;

/// The reaction to an answer that fails its check.
enum Then {
    Again,
    Keep,
    Skip,
}

impl Wizard {
    /// Asks the question of a step until an answer is accepted, kept or skipped.
    pub(super) async fn ask_step(&mut self, step: SetupStep) -> Result<(), Ended> {
        if !self.is_asked(step) {
            return Ok(());
        }
        let (question, purpose) = step.question();
        complain(&format!("\n{}{}: {question}", self.render_progress(step), step.title()));
        if let Some(name) = step.find_environment_setting(&self.said) {
            complain(&format!("  {name} is set in the environment, which takes precedence: change it there."));
            let checked = self.check_step(step).await;
            complain(&format!("  {}", render_check(&checked)));
            return Ok(());
        }
        complain(&wrap_text(purpose));
        loop {
            let answer = self.read_answer(step).await?;
            if !matches!(step, SetupStep::Key | SetupStep::ServerKey | SetupStep::Bot) && is_like_a_key(&answer) {
                complain("  ✗ that looks like a key, which isn't what I asked for, so I didn't keep it");
                continue;
            }
            let before = (self.changes.clone(), self.said.workspace().map(std::path::Path::to_owned));
            match step.parse_answer(&answer, &self.said, &self.config, &self.new_names) {
                ParsedAnswer::Wrong(what) => {
                    complain(&format!("  ✗ {what}"));
                    continue;
                }
                ParsedAnswer::Names(names) => {
                    self.new_names = names;
                    return Ok(());
                }
                ParsedAnswer::Workspace(workspace) => self.switch_workspace(&workspace),
                ParsedAnswer::Changes(changes) => self.changes.extend(changes),
            }
            self.resolve();
            let checked = self.check_step(step).await;
            if self.prompter.is_stopped() {
                return Err(Unanswered::Cancelled.into());
            }
            complain(&format!("  {}", render_check(&checked)));
            if checked.is_good() {
                return Ok(());
            }
            match self.ask_after_failure().await? {
                Then::Keep if !(step == SetupStep::ServerUrl && setup::is_example_server(&self.config)) => {
                    return Ok(());
                }
                then => {
                    self.changes = before.0;
                    if let Some(workspace) = before.1.filter(|_| step == SetupStep::Workspace) {
                        self.switch_workspace(&workspace.display().to_string());
                    }
                    self.resolve();
                    if !matches!(then, Then::Again) {
                        self.drop_example_server();
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Drops the server's settings and its model if no address was given.
    fn drop_example_server(&mut self) {
        if setup::is_example_server(&self.config) {
            let is_of_server = |name: &str| name == "MODEL" || name.starts_with("OPENAI_");
            self.changes.retain(|name, _| !is_of_server(name));
            self.resolve();
        }
    }

    fn is_asked(&self, step: SetupStep) -> bool {
        step.is_applicable(&self.config) && (self.has_place_for_names || !step.settings().is_empty())
    }

    /// Renders the progress, such as "3 of 9 · ", as far as known from the answers so far.
    fn render_progress(&self, step: SetupStep) -> String {
        let asked: Vec<SetupStep> = SetupStep::ALL.into_iter().filter(|step| self.is_asked(*step)).collect();
        match asked.iter().position(|other| *other == step) {
            Some(at) if self.asks_all => format!("{} of {} · ", at + 1, asked.len()),
            _ => String::new(),
        }
    }

    /// Reads the answer to a question; Enter returns the default.
    async fn read_answer(&mut self, step: SetupStep) -> Result<String, Ended> {
        let servers = if step == SetupStep::Model { FoundServer::find_all(&self.said).await } else { Vec::new() };
        match step.build_question(&self.said, &self.config, &self.new_names, &servers) {
            SetupQuestion::Line { default } => {
                let shown = if default.is_empty() { "> ".to_owned() } else { format!("[{default}] > ") };
                let line = self.prompter.read_line(&format!("  {shown}")).await?;
                Ok(if line.is_empty() { default } else { line })
            }
            SetupQuestion::Secret { is_set } => {
                let shown = if is_set { "[the current one] " } else { "" };
                Ok(self.prompter.read_secret(&format!("  {shown}(not shown while you type) > ")).await?)
            }
            SetupQuestion::Choice { options, default } => {
                for (at, (_, label)) in (1..).zip(&options) {
                    complain(&format!("    {at}  {label}"));
                }
                loop {
                    let line = self.prompter.read_line(&format!("  [{default}] > ")).await?;
                    let number = if line.is_empty() { Some(default) } else { line.parse::<usize>().ok() };
                    let chosen = number.and_then(|number| options.get(number.checked_sub(1)?));
                    if let Some((id, _)) = chosen {
                        return Ok(id.clone());
                    }
                    complain(&format!(
                        "  ✗ I didn't understand “{line}”. Please type a number from 1 to {}.",
                        options.len()
                    ));
                }
            }
        }
    }

    async fn ask_after_failure(&mut self) -> Result<Then, Ended> {
        loop {
            let line = self.prompter.read_line("  Try again, keep it anyway, or skip this? [T/k/s] > ").await?;
            match line.to_lowercase().as_str() {
                "" | "t" | "try" | "again" => return Ok(Then::Again),
                "k" | "keep" => return Ok(Then::Keep),
                "s" | "skip" => return Ok(Then::Skip),
                _ => complain(&format!("  ✗ I didn't understand “{line}”. Please type t, k or s.")),
            }
        }
    }

    pub(super) async fn check_step(&self, step: SetupStep) -> Checked {
        let is_over = || self.prompter.is_stopped();
        let temporary = std::env::temp_dir();
        let working = Working::start("  checking…");
        let checked =
            setup::check_step(step, &self.config, build_check_tools(&temporary, CheckReach::Others, &is_over));
        let mut stop = self.prompter.stop_receiver();
        let checked = tokio::select! {
            biased;
            checked = checked => checked,
            _ = stop.wait_for(|stop| *stop) => Checked::Unknown(String::new()),
        };
        drop(working);
        checked
    }

    /// Switches to the workspace in another folder, with its settings.
    fn switch_workspace(&mut self, workspace: &str) {
        if self.said.workspace() != Some(std::path::Path::new(workspace)) {
            self.said = self.said.with_workspace(workspace);
        }
    }

    /// Recomputes the settings with the pending changes.
    pub(super) fn resolve(&mut self) {
        if let (Some(config), _) = self.said.with_valid_settings(&self.changes) {
            self.config = config;
        }
    }
}

/// Wraps a text for the narrowest usual terminal.
fn wrap_text(text: &str) -> String {
    let (mut shown, mut column) = (String::from(" "), 1);
    for word in text.split(' ') {
        let chars = word.chars().count();
        if column + 1 + chars > COLUMNS {
            shown.push_str("\n ");
            column = 1;
        }
        shown.push(' ');
        shown.push_str(word);
        column += 1 + chars;
    }
    shown
}

fn render_check(checked: &Checked) -> String {
    match checked {
        Checked::Good(told) => format!("✓ {told}"),
        Checked::Wrong(told) => format!("✗ {told}"),
        Checked::Unknown(told) => format!("? {told}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_purpose_is_cut_by_the_terminal() {
        for step in SetupStep::ALL {
            let (_, purpose) = step.question();
            let shown = wrap_text(purpose);
            assert!(shown.lines().all(|line| line.starts_with("  ") && line.chars().count() <= COLUMNS), "{shown}");
            assert_eq!(shown.split_whitespace().collect::<Vec<_>>().join(" "), purpose);
        }
    }
}
