//! The same commands at a terminal of this machine, whose user is the owner.

use chrono::{DateTime, Utc};

use reveille_base::{types::ChatRef, words};
use reveille_channels::telegram::{Command, NewMessage};
use reveille_config::Config;
use reveille_store::{Order, Result, Store};

use super::{CommandReply, Desk};
use crate::bot::batch::Asked;

/// The reading of a text from a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtTerminal {
    /// A message for a model.
    Words,
    /// A command, or something that looks like one.
    Command {
        /// Markdown.
        answer: String,
        /// The change to carry out.
        order: Option<Order>,
    },
}

/// Reads a text from a terminal, and answers it if it is a command. Writes nothing.
///
/// # Errors
/// If the store fails.
pub fn answer_at_terminal(store: &Store, config: &Config, now: DateTime<Utc>, text: &str) -> Result<AtTerminal> {
    let Some(name) = command_name(text) else { return Ok(AtTerminal::Words) };
    let Some((command, args)) = Command::parse_unaddressed(text) else {
        return Ok(AtTerminal::Command { answer: describe_unknown(name), order: None });
    };
    let message = NewMessage {
        chat: ChatRef::TERMINAL,
        thread_id: None,
        telegram_message_id: None,
        sender_id: ChatRef::TERMINAL.number(),
        sender_name: String::new(),
        text: text.to_owned(),
        kind: "text",
        reply_to: None,
        forwarded_from: None,
        album: None,
        attachment: None,
        is_for_us: true,
        date: now,
    };
    let asked = Asked { command, args: args.to_owned(), message, update_id: 0 };
    let CommandReply { text: answer, order } = Desk::open(store, config, now)?.answer(&asked)?;
    Ok(AtTerminal::Command { answer, order })
}

/// Returns the name in `/name …`. `None` for a path such as `/etc/hosts`.
fn command_name(text: &str) -> Option<&str> {
    let word = text.trim_start().strip_prefix('/')?.split_whitespace().next().unwrap_or_default();
    word.chars().all(|c| c.is_alphanumeric() || "-_@".contains(c)).then_some(word)
}

fn describe_unknown(name: &str) -> String {
    let near = Command::find_nearest(name);
    let near: Vec<String> = near.iter().map(|command| format!("`/{}`", command.name())).collect();
    let meant = match near.as_slice() {
        [] => String::new(),
        near => format!(" Did you mean {}?", words::join_alternatives(near)),
    };
    format!("There's no command `/{name}`, so nothing was done.{meant} `/help` lists them all.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_no_command() {
        let names =
            ["/tasks", " /tasks now", "/", "/foo-bar", "/etc/hosts is broken", "/a.b", "tasks", ""].map(command_name);
        assert_eq!(names, [Some("tasks"), Some("tasks"), Some(""), Some("foo-bar"), None, None, None, None]);
    }

    #[test]
    fn the_nearest_ones_are_named() {
        assert_eq!(
            describe_unknown("reminder"),
            "There's no command `/reminder`, so nothing was done. Did you mean `/remind`? `/help` lists them all."
        );
        assert_eq!(
            describe_unknown("xyzzy"),
            "There's no command `/xyzzy`, so nothing was done. `/help` lists them all."
        );
    }
}
