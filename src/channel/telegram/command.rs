//! The commands that the bot answers itself, without a mind.

use serde::Serialize;

/// A command of the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `/start`: sent by Telegram when a person first opens the chat.
    Start,
    /// `/status`: what the assistant is doing.
    Status,
    /// `/help`: what can be said to it.
    Help,
}

/// A command as Telegram offers it to people while they type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MenuCommand {
    /// Its name without the slash.
    pub command: &'static str,
    /// What it does, in a few words.
    pub description: &'static str,
}

impl Command {
    /// Every command.
    pub const ALL: [Self; 3] = [Self::Start, Self::Status, Self::Help];

    /// Its name without the slash.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Status => "status",
            Self::Help => "help",
        }
    }

    /// The commands to register with [`super::Telegram::set_my_commands`]. `/start` isn't offered: Telegram sends it.
    pub fn menu() -> Vec<MenuCommand> {
        let offered = Self::ALL.into_iter().filter_map(|command| Some((command, command.description()?)));
        offered.map(|(command, description)| MenuCommand { command: command.name(), description }).collect()
    }

    /// Whether a text is one of them, for the bot of this name.
    pub fn is_one_of_ours(text: &str, username: &str) -> bool {
        matches!(parse(text, username), Parsed::Ours(..))
    }

    fn description(self) -> Option<&'static str> {
        match self {
            Self::Start => None,
            Self::Status => Some("What I am doing, and what waits"),
            Self::Help => Some("What you can say to me"),
        }
    }
}

/// What a text is, read as a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// One of ours, with what follows it.
    Ours(Command, &'a str),
    /// Addressed to another bot by name.
    ForAnother,
    /// No command that the bot answers itself.
    NotACommand,
}

/// Reads `/name`, `/name@bot` and what follows, for the bot of this name.
pub(super) fn parse<'a>(text: &'a str, username: &str) -> Parsed<'a> {
    let Some(text) = text.strip_prefix('/') else {
        return Parsed::NotACommand;
    };
    let (word, args) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (name, addressee) = word.split_once('@').map_or((word, None), |(name, addressee)| (name, Some(addressee)));
    if addressee.is_some_and(|addressee| !addressee.eq_ignore_ascii_case(username)) {
        return Parsed::ForAnother;
    }
    let command = Command::ALL.into_iter().find(|command| command.name().eq_ignore_ascii_case(name));
    command.map_or(Parsed::NotACommand, |command| Parsed::Ours(command, args.trim()))
}

/// Whether a text is some command that names this bot, one of its own or not.
pub(super) fn is_addressed_to(text: &str, username: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let addressee = word.strip_prefix('/').and_then(|word| word.split_once('@'));
    addressee.is_some_and(|(_, addressee)| addressee.eq_ignore_ascii_case(username))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_text() {
        assert_eq!(parse("/status", "reveille_bot"), Parsed::Ours(Command::Status, ""));
        assert_eq!(
            parse("/Status@Reveille_Bot now \n please ", "reveille_bot"),
            Parsed::Ours(Command::Status, "now \n please")
        );
        assert_eq!(parse("/status@other_bot", "reveille_bot"), Parsed::ForAnother);
        for text in ["status", " /status", "/statusquo", "/", "/etc/hosts is broken", ""] {
            assert_eq!(parse(text, "reveille_bot"), Parsed::NotACommand, "{text:?}");
        }
    }

    #[test]
    fn the_menu_keeps_to_telegrams_rules() {
        for MenuCommand { command, description } in Command::menu() {
            assert!((1..=32).contains(&command.len()) && command.chars().all(|c| c.is_ascii_lowercase()));
            assert!((1..=256).contains(&description.chars().count()));
        }
    }
}
