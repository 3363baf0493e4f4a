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

use super::News;
use crate::config::Config;

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

    /// Asks for a yes or a no; none: later. Where `is_grave` the word `yes` has to be written out.
    pub(super) fn decision(&mut self, is_grave: bool) -> Option<bool> {
        let prompt = match is_grave {
            true => "Type `yes` to allow it once, `n` to refuse, Enter to decide later: ",
            false => "Allow it once? y or n, Enter to decide later: ",
        };
        loop {
            let typed = self.decisions.readline(prompt).ok()?;
            match decided(&typed, is_grave) {
                Some(decision) => return decision,
                None if is_grave => super::complain("Only the whole word `yes` allows this."),
                None => super::complain("Please answer y or n."),
            }
        }
    }
}

/// What an answer means: a decision, or that it is put off; none where it is neither.
#[expect(clippy::option_option, reason = "no answer is something else than an answer that puts it off")]
fn decided(typed: &str, is_grave: bool) -> Option<Option<bool>> {
    match typed.trim().to_lowercase().as_str() {
        "" | "later" | "\x1b" => Some(None),
        "n" | "no" => Some(Some(false)),
        "yes" => Some(Some(true)),
        "y" if !is_grave => Some(Some(true)),
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
        assert_eq!(
            (decided("y", false), decided("Y ", false), decided("yes", true)),
            (Some(Some(true)), Some(Some(true)), Some(Some(true)))
        );
        assert_eq!((decided("y", true), decided("yep", false)), (None, None));
        assert_eq!((decided("n", true), decided("no", false)), (Some(Some(false)), Some(Some(false))));
        assert_eq!((decided("", true), decided(" ", false)), (Some(None), Some(None)));
    }
}
