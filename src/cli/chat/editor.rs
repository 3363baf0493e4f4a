//! Lines as a person types them: edited, remembered, and continued after a backslash.

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

/// What stands before a message.
const PROMPT: &str = "> ";
/// Messages that are remembered.
const MAX_REMEMBERED: usize = 1_000;
/// Where they are, below the workspace.
const HISTORY: &str = "chat-history";

/// What a person did at the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// They wrote this.
    Text(String),
    /// They cleared the line by Ctrl-C.
    Cleared,
    /// There is no more.
    End,
}

/// The prompt.
pub(super) struct MessageEditor {
    messages: Editor<Continued, FileHistory>,
    decisions: Editor<(), MemHistory>,
    /// Writes above the line that is being typed.
    above: Arc<Mutex<Option<Box<dyn ExternalPrinter + Send>>>>,
    history: PathBuf,
}

impl MessageEditor {
    /// Reads what was typed before. What can't be read is as if it weren't there.
    pub(super) fn open(config: &Config) -> Result<Self, ReadlineError> {
        let settings = settings()?;
        let mut messages = Editor::with_history(settings.clone(), FileHistory::with_config(&settings))?;
        messages.set_helper(Some(Continued));
        let history = config.workspace_dir.join(HISTORY);
        messages.load_history(&history).ok();
        let above = messages.create_external_printer().ok();
        let above = Arc::new(Mutex::new(above.map(|above| Box::new(above) as Box<dyn ExternalPrinter + Send>)));
        let forgotten = MemHistory::with_config(&settings);
        let decisions = Editor::with_history(settings, forgotten)?;
        Ok(Self { messages, decisions, above, history })
    }

    /// Waits for a message, and shows meanwhile what others' wakes say.
    pub(super) fn message(&mut self, news: News) -> Typed {
        let above = Arc::clone(&self.above);
        let watching = news.watch(move |text| {
            let mut above = above.lock().unwrap_or_else(PoisonError::into_inner);
            above.as_mut().is_some_and(|above| above.print(text).is_ok())
        });
        let typed = self.messages.readline(PROMPT);
        drop(watching);
        match typed {
            Ok(text) => Typed::Text(joined(&text)),
            Err(ReadlineError::Interrupted) => Typed::Cleared,
            Err(ReadlineError::Eof) => Typed::End,
            Err(error) => {
                super::complain(&format!("The terminal can't be read: {error}."));
                Typed::End
            }
        }
    }

    /// Keeps a message for later chats, readable by its owner alone. A disk that is full keeps nobody from talking.
    pub(super) fn remember(&mut self, text: &str) {
        if self.messages.add_history_entry(text).unwrap_or(false)
            && let Err(error) = self.messages.append_history(&self.history)
        {
            tracing::debug!(%error, "what was typed is not remembered");
        }
    }

    /// Asks for a yes or a no. Where `is_grave` the word `yes` has to be written out; `may_stand`: it can be allowed for good, too.
    pub(super) fn decision(&mut self, is_grave: bool, may_stand: bool) -> TypedDecision {
        let always = if may_stand { "`always` to see a rule for it, " } else { "" };
        let prompt = match is_grave {
            true => format!("Type `yes` to allow it once, `n` to refuse, {always}Enter to decide later: "),
            false => format!("Allow it once? y or n, {always}Enter to decide later: "),
        };
        loop {
            let Ok(typed) = self.decisions.readline(&prompt) else { return TypedDecision::Later };
            match decided(&typed, is_grave, may_stand) {
                Some(decision) => return decision,
                None if is_grave => super::complain("Only the whole word `yes` allows this."),
                None => super::complain("Please answer y or n."),
            }
        }
    }

    /// Asks for a yes to what was just shown; anything else is a no.
    pub(super) fn is_agreed(&mut self, prompt: &str) -> bool {
        self.decisions.readline(prompt).is_ok_and(|typed| approvals::is_yes(&typed))
    }
}

/// What is decided at the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypedDecision {
    /// Nothing, for now.
    Later,
    /// A no.
    No,
    /// A yes to this once.
    Once,
    /// The rule is to be seen that allows it for good.
    Always,
}

/// What an answer means; none where it is no answer.
fn decided(typed: &str, is_grave: bool, may_stand: bool) -> Option<TypedDecision> {
    match typed.trim().to_lowercase().as_str() {
        "" | "later" | "\x1b" => Some(TypedDecision::Later),
        "n" | "no" => Some(TypedDecision::No),
        "yes" => Some(TypedDecision::Once),
        "y" if !is_grave => Some(TypedDecision::Once),
        "always" if may_stand => Some(TypedDecision::Always),
        _ => None,
    }
}

fn settings() -> Result<LineConfig, ReadlineError> {
    let builder: Builder = LineConfig::builder().max_history_size(MAX_REMEMBERED)?.history_ignore_dups(true)?;
    Ok(builder.history_ignore_space(true).build())
}

/// The lines that backslashes continue, as one text of several lines.
fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Goes on with the next line after a backslash.
struct Continued;

impl Validator for Continued {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
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
        assert_eq!(joined("one\\\ntwo\\\n\nthree"), "one\ntwo\n\nthree");
        assert_eq!(joined("C:\\temp"), "C:\\temp");
    }

    #[test]
    fn only_the_whole_word_allows_what_is_grave() {
        let said = |typed| [false, true].map(|is_grave| decided(typed, is_grave, false));
        let (yes, no, later) = (Some(TypedDecision::Once), Some(TypedDecision::No), Some(TypedDecision::Later));
        assert_eq!(["Y ", "yes", "yep"].map(said), [[yes, None], [yes, yes], [None, None]]);
        assert_eq!(["n", "no", "", " "].map(said), [[no, no], [no, no], [later, later], [later, later]]);
        assert_eq!((said("always"), decided("always", true, true)), ([None, None], Some(TypedDecision::Always)));
    }
}
