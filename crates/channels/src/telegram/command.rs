//! The commands that the bot answers itself, without a model.

use teloxide_core::types::BotCommand;

use reveille_base::words;

/// A command of the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `/start`: sent by Telegram when a person first opens the chat.
    Start,
    /// `/new`: what was said here before is left out from now on.
    New,
    /// `/status`: what the assistant is doing.
    Status,
    /// `/tasks`: what is in hand and what waits.
    Tasks,
    /// `/memory [words]`: what files there are, or what they say.
    Memory,
    /// `/remind [what and when]`: sets a reminder, or lists them.
    Remind,
    /// `/jobs`: what runs by itself, and when next.
    Jobs,
    /// `/cost`: what the model costs.
    Cost,
    /// `/log [n]`: what the last wakes did.
    Log,
    /// `/undo [id]`: takes a wake back.
    Undo,
    /// `/retry [number]`: tries afresh what was put aside.
    Retry,
    /// `/rules [remove n]`: what runs without asking, and what never does.
    Rules,
    /// `/stop`: all work ends, until `/resume`.
    Stop,
    /// `/resume`: work goes on.
    Resume,
    /// `/wake`: look now, whatever was to be waited for.
    Wake,
    /// `/model [name]`: which AI model answers, or which is to.
    Model,
    /// `/local [off]`: this chat is kept off the cloud, or no longer.
    Local,
    /// `/settings`: the settings as they are.
    Settings,
    /// `/restart`: the bot starts anew.
    Restart,
    /// `/whoami`: who is speaking, and what they may do.
    Whoami,
    /// `/help`: what can be said to it.
    Help,
    /// A slip of the pen, and the one of ours that was meant.
    Mistyped(&'static str),
}

/// Names that are called near at most.
const MAX_NEAR: usize = 3;
/// So many letters may differ in a name that is near.
const MAX_CHANGES: usize = 2;
/// So many letters of a name are a beginning of it.
const MIN_BEGINNING: usize = 2;
/// The shortest name that a slip is recognised of: a shorter word is as likely meant.
const MIN_MISTYPED_CHARS: usize = 5;

impl Command {
    /// Every command, in the order of the menu.
    pub const ALL: [Self; 21] = [
        Self::Start,
        Self::Status,
        Self::Tasks,
        Self::Memory,
        Self::Remind,
        Self::Jobs,
        Self::New,
        Self::Cost,
        Self::Log,
        Self::Undo,
        Self::Retry,
        Self::Rules,
        Self::Stop,
        Self::Resume,
        Self::Wake,
        Self::Model,
        Self::Local,
        Self::Settings,
        Self::Restart,
        Self::Whoami,
        Self::Help,
    ];

    /// Its name without the slash.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::New => "new",
            Self::Status => "status",
            Self::Tasks => "tasks",
            Self::Memory => "memory",
            Self::Remind => "remind",
            Self::Jobs => "jobs",
            Self::Cost => "cost",
            Self::Log => "log",
            Self::Undo => "undo",
            Self::Retry => "retry",
            Self::Rules => "rules",
            Self::Stop => "stop",
            Self::Resume => "resume",
            Self::Wake => "wake",
            Self::Model => "model",
            Self::Local => "local",
            Self::Settings => "settings",
            Self::Restart => "restart",
            Self::Whoami => "whoami",
            Self::Help => "help",
            Self::Mistyped(meant) => meant,
        }
    }

    /// Whether only the owner's own chat is answered.
    pub fn is_owners(self) -> bool {
        matches!(self, Self::Jobs | Self::Rules | Self::Model | Self::Settings | Self::Restart)
    }

    /// The commands to register with [`super::Telegram::set_my_commands`]. `/start` isn't offered: Telegram sends it.
    pub fn menu() -> Vec<BotCommand> {
        let offered = Self::ALL.into_iter().filter_map(|command| Some((command, command.description()?)));
        offered.map(|(command, description)| BotCommand::new(command.name(), description)).collect()
    }

    /// A text as one of them, or as a slip of the pen, with what follows it: where nobody is addressed by name.
    pub fn read(text: &str) -> Option<(Self, &str)> {
        match parse(text.trim_start(), "") {
            ParsedCommand::Ours(command, args) => Some((command, args)),
            ParsedCommand::ForAnother | ParsedCommand::NotACommand => None,
        }
    }

    /// Those whose names are near to a word, the nearest first: a few changes away, or with the same beginning.
    pub fn nearest(word: &str) -> Vec<Self> {
        let word = word.to_lowercase();
        let mut near: Vec<(usize, Self)> = Self::ALL
            .into_iter()
            .filter(|command| *command != Self::Start)
            .map(|command| (words::edits(&word, command.name()), command))
            .filter(|(changes, command)| {
                *changes <= MAX_CHANGES
                    || !word.is_empty() && word.starts_with(command.name())
                    || word.len() >= MIN_BEGINNING && command.name().starts_with(&word)
            })
            .collect();
        near.sort_by_key(|(changes, _)| *changes);
        near.into_iter().map(|(_, command)| command).take(MAX_NEAR).collect()
    }

    /// Whether a text is one of them, for the bot of this name.
    pub fn is_one_of_ours(text: &str, username: &str) -> bool {
        matches!(parse(text, username), ParsedCommand::Ours(..))
    }

    /// What the menu says of it; none: it isn't offered.
    pub fn description(self) -> Option<&'static str> {
        match self {
            Self::Start | Self::Mistyped(_) => None,
            Self::New => Some("Start afresh: leave out what was said here before"),
            Self::Status => Some("What I am doing, and what waits"),
            Self::Tasks => Some("Your tasks: in hand, and waiting"),
            Self::Memory => Some("What I remember; with words: what I know about them"),
            Self::Remind => Some("Your reminders; with a text and a time: a new one"),
            Self::Jobs => Some("What runs by itself, and when next"),
            Self::Cost => Some("What AI models have cost, today and this month"),
            Self::Log => Some("What I did last"),
            Self::Undo => Some("Take back what I did last"),
            Self::Retry => Some("Try again what was undone or given up"),
            Self::Rules => Some("Your rules for what I may do unasked"),
            Self::Stop => Some("Stop all work until /resume"),
            Self::Resume => Some("Continue after /stop"),
            Self::Wake => Some("Check now whether anything is due"),
            Self::Model => Some("Which AI model answers; with a name: choose it"),
            Self::Local => Some("Keep this chat off the cloud; with off: no longer"),
            Self::Settings => Some("The settings as they are, and what is wrong with them"),
            Self::Restart => Some("Start me anew, with the settings as they are now"),
            Self::Whoami => Some("Who you are to me, and what you may do"),
            Self::Help => Some("What you can say to me"),
        }
    }
}

/// What a text is, read as a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParsedCommand<'a> {
    /// One of ours, with what follows it.
    Ours(Command, &'a str),
    /// Addressed to another bot by name.
    ForAnother,
    /// No command that the bot answers itself.
    NotACommand,
}

/// Reads `/name`, `/name@bot` and what follows, for the bot of this name.
pub(super) fn parse<'a>(text: &'a str, username: &str) -> ParsedCommand<'a> {
    let Some(text) = text.strip_prefix('/') else {
        return ParsedCommand::NotACommand;
    };
    let (word, args) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let (name, addressee) = word.split_once('@').map_or((word, None), |(name, addressee)| (name, Some(addressee)));
    if addressee.is_some_and(|addressee| !addressee.eq_ignore_ascii_case(username)) {
        return ParsedCommand::ForAnother;
    }
    let command = Command::ALL.into_iter().find(|command| command.name().eq_ignore_ascii_case(name));
    let command = command.or_else(|| mistyped(name));
    command.map_or(ParsedCommand::NotACommand, |command| ParsedCommand::Ours(command, args.trim()))
}

/// Whether a text is some command that names this bot, one of its own or not.
pub(super) fn is_addressed_to(text: &str, username: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let addressee = word.strip_prefix('/').and_then(|word| word.split_once('@'));
    addressee.is_some_and(|(_, addressee)| addressee.eq_ignore_ascii_case(username))
}

/// The command that a word is one slip away from: a letter too many, too few, another one, or two the wrong way round.
fn mistyped(name: &str) -> Option<Command> {
    let name = name.to_lowercase();
    let candidates = Command::ALL.into_iter().map(Command::name).filter(|ours| ours.len() >= MIN_MISTYPED_CHARS);
    candidates.filter(|ours| is_one_slip(name.as_bytes(), ours.as_bytes())).map(Command::Mistyped).next()
}

fn is_one_slip(a: &[u8], b: &[u8]) -> bool {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(head..).unwrap_or_default(), b.get(head..).unwrap_or_default());
    match (a, b) {
        ([x, y, a @ ..], [v, w, b @ ..]) if (x, y) == (w, v) && a == b => true,
        ([_, a @ ..], [_, b @ ..]) if a == b => true,
        ([_, a @ ..], b) if a == b => true,
        (a, [_, b @ ..]) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_text() {
        assert_eq!(parse("/status", "reveille_bot"), ParsedCommand::Ours(Command::Status, ""));
        assert_eq!(
            parse("/Status@Reveille_Bot now \n please ", "reveille_bot"),
            ParsedCommand::Ours(Command::Status, "now \n please")
        );
        assert_eq!(parse("/status@other_bot", "reveille_bot"), ParsedCommand::ForAnother);
        for text in
            ["status", " /status", "/statusquo", "/", "/etc/hosts is broken", "", "/make tea", "/logs", "/stops"]
        {
            assert_eq!(parse(text, "reveille_bot"), ParsedCommand::NotACommand, "{text:?}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        for (text, meant) in [
            ("/staus", "status"),
            ("/satus", "status"),
            ("/tatsks", "tasks"),
            ("/task", "tasks"),
            ("/memroy x", "memory"),
            ("/Rsume", "resume"),
        ] {
            assert!(
                matches!(parse(text, "bot"), ParsedCommand::Ours(Command::Mistyped(name), _) if name == meant),
                "{text}"
            );
        }
    }

    #[test]
    fn the_nearest_commands_are_found() {
        assert_eq!(["kitten", "", "sitting"].map(|word| words::edits(word, "sitting")), [3, 7, 0]);
        assert_eq!(Command::nearest("reminder"), [Command::Remind]);
        assert_eq!(Command::nearest("logs"), [Command::Log, Command::Jobs]);
        assert_eq!(Command::nearest("re").into_iter().filter(|near| *near == Command::Retry).count(), 1);
        assert_eq!(Command::nearest("xyzzy"), []);
    }

    #[test]
    fn the_menu_keeps_to_telegrams_rules() {
        for BotCommand { command, description } in Command::menu() {
            assert!((1..=32).contains(&command.len()) && command.chars().all(|c| c.is_ascii_lowercase()));
            assert!((1..=256).contains(&description.chars().count()));
        }
    }
}
