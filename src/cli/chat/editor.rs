//! Reads messages from a person: with editing, history, and continuation after a backslash.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use rustyline::{
    Editor, ExternalPrinter,
    config::{Builder, Config as LineConfig},
    error::ReadlineError,
    history::{FileHistory, MemHistory},
    validate::{ValidationContext, ValidationResult, Validator},
};

use reveille_config::Config;

use super::News;
use crate::cli::approvals;

/// The prompt for a message.
const PROMPT: &str = "> ";
/// Maximum messages in the history.
const MAX_REMEMBERED: usize = 1_000;
/// The history file, below the workspace.
const HISTORY: &str = "chat-history";

/// The person's input at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A message.
    Text(String),
    /// Ctrl-C, which cleared the line.
    Cleared,
    /// The end of the input.
    End,
}

/// The line editor.
pub(super) struct MessageEditor {
    messages: Editor<Continued, FileHistory>,
    decisions: Editor<(), MemHistory>,
    /// Prints above the line in progress.
    above: Arc<Mutex<Option<Box<dyn ExternalPrinter + Send>>>>,
    history: PathBuf,
}

impl MessageEditor {
    /// Creates the editor with the earlier history, if that can be read.
    pub(super) fn open(config: &Config) -> Result<Self, ReadlineError> {
        let settings = build_settings()?;
        let mut messages = Editor::with_history(settings.clone(), FileHistory::with_config(&settings))?;
        messages.set_helper(Some(Continued));
        let history = config.workspace_dir.join(HISTORY);
        messages.load_history(&history).ok();
        let above = messages.create_external_printer().ok();
        let above = Arc::new(Mutex::new(above.map(|above| Box::new(above) as Box<dyn ExternalPrinter + Send>)));
        let decision_history = MemHistory::with_config(&settings);
        let decisions = Editor::with_history(settings, decision_history)?;
        Ok(Self { messages, decisions, above, history })
    }

    /// Reads a message, and prints news of other wakes meanwhile.
    pub(super) fn read_message(&mut self, news: News) -> Typed {
        let above = Arc::clone(&self.above);
        let watching = news.watch(move |text| {
            let mut above = above.lock().unwrap_or_else(PoisonError::into_inner);
            above.as_mut().is_some_and(|above| above.print(text).is_ok())
        });
        let typed = self.messages.readline(PROMPT);
        drop(watching);
        match typed {
            Ok(text) => Typed::Text(join_lines(&text)),
            Err(ReadlineError::Interrupted) => Typed::Cleared,
            Err(ReadlineError::Eof) => Typed::End,
            Err(error) => {
                super::complain(&format!("The terminal can't be read: {error}."));
                Typed::End
            }
        }
    }

    /// Adds a message to the history file, readable by its owner only. Failures are ignored, so a full disk stops no
    /// conversation.
    pub(super) fn remember(&mut self, text: &str) {
        if self.messages.add_history_entry(text).unwrap_or(false)
            && let Err(error) = self.messages.append_history(&self.history)
        {
            tracing::debug!(%error, "the message was not added to the history");
        }
    }

    /// Reads a decision.
    pub(super) fn read_decision(&mut self, asked: DecisionPrompt) -> TypedDecision {
        let always = if asked.offers_rule { "`always` to see a rule for it, " } else { "" };
        let prompt = match asked.is_grave {
            true => format!("Type `yes` to allow it once, `n` to refuse, {always}Enter to decide later: "),
            false => format!("Allow it once? y or n, {always}Enter to decide later: "),
        };
        loop {
            let Ok(typed) = self.decisions.readline(&prompt) else { return TypedDecision::Later };
            match parse_decision(&typed, asked) {
                Some(decision) => return decision,
                None if asked.is_grave => super::complain("Only the whole word `yes` allows this."),
                None => super::complain("Please answer y or n."),
            }
        }
    }

    /// Asks for a yes to the text just shown. Any other answer counts as a no.
    pub(super) fn confirm(&mut self, prompt: &str) -> bool {
        self.decisions.readline(prompt).is_ok_and(|typed| approvals::is_yes(&typed))
    }
}

/// The decisions that are offered at the prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecisionPrompt {
    /// `true` if the word `yes` must be typed in full.
    pub(super) is_grave: bool,
    /// `true` to offer a permanent rule too.
    pub(super) offers_rule: bool,
}

/// A decision at the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypedDecision {
    /// Decide later.
    Later,
    /// Refuse.
    No,
    /// Allow once.
    Once,
    /// Show the rule that would allow it permanently.
    Always,
}

/// Parses a decision. `None` if it isn't understood.
fn parse_decision(typed: &str, asked: DecisionPrompt) -> Option<TypedDecision> {
    match typed.trim().to_lowercase().as_str() {
        "" | "later" | "\x1b" => Some(TypedDecision::Later),
        "n" | "no" => Some(TypedDecision::No),
        "yes" => Some(TypedDecision::Once),
        "y" if !asked.is_grave => Some(TypedDecision::Once),
        "always" if asked.offers_rule => Some(TypedDecision::Always),
        _ => None,
    }
}

fn build_settings() -> Result<LineConfig, ReadlineError> {
    let builder: Builder = LineConfig::builder().max_history_size(MAX_REMEMBERED)?.history_ignore_dups(true)?;
    Ok(builder.history_ignore_space(true).build())
}

/// Joins the lines continued by backslashes into one text.
fn join_lines(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Continues the input with the next line after a backslash.
struct Continued;

impl Validator for Continued {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let is_continued = context.input().ends_with('\\');
        Ok(if is_continued { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl rustyline::completion::Completer for Continued {
    type Candidate = String;
}

impl rustyline::hint::Hinter for Continued {
    type Hint = String;
}

impl rustyline::highlight::Highlighter for Continued {}

impl rustyline::Helper for Continued {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_continues_a_line() {
        assert_eq!(join_lines("one\\\ntwo\\\n\nthree"), "one\ntwo\n\nthree");
        assert_eq!(join_lines("C:\\temp"), "C:\\temp");
    }

    #[test]
    fn a_grave_question_needs_the_whole_word_yes() {
        let parsed = |typed| {
            [false, true].map(|is_grave| parse_decision(typed, DecisionPrompt { is_grave, offers_rule: false }))
        };
        let with_rule = DecisionPrompt { is_grave: true, offers_rule: true };
        let (yes, no, later) = (Some(TypedDecision::Once), Some(TypedDecision::No), Some(TypedDecision::Later));
        assert_eq!(["Y ", "yes", "yep"].map(parsed), [[yes, None], [yes, yes], [None, None]]);
        assert_eq!(["n", "no", "", " "].map(parsed), [[no, no], [no, no], [later, later], [later, later]]);
        assert_eq!(
            (parsed("always"), parse_decision("always", with_rule)),
            ([None, None], Some(TypedDecision::Always))
        );
    }
}
