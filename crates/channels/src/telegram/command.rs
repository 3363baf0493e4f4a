//! The commands that the bot answers without a model.

use teloxide_core::types::BotCommand;

use reveille_base::words;

/// A command of the bot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// `/start`: sent by Telegram when a person first opens the chat.
    Start,
    /// `/new`: starts afresh, without earlier messages of this chat.
    New,
    /// `/status`: shows present work.
    Status,
    /// `/tasks`: lists active and waiting tasks.
    Tasks,
    /// `/memory [words]`: lists files, or known facts about the words.
    Memory,
    /// `/remind [what and when]`: sets a reminder, or lists them.
    Remind,
    /// `/jobs`: lists standing jobs with their next times.
    Jobs,
    /// `/cost`: shows the cost of AI models.
    Cost,
    /// `/log [n]`: lists the latest wakes.
    Log,
    /// `/undo [id]`: undoes a wake.
    Undo,
    /// `/retry [number]`: retries a message that was put aside.
    Retry,
    /// `/rules [remove n]`: lists the rules that allow or forbid acts without asking.
    Rules,
    /// `/stop`: stops all work until `/resume`.
    Stop,
    /// `/resume`: continues work.
    Resume,
    /// `/wake`: checks now for due work, without waiting.
    Wake,
    /// `/model [name]`: shows or chooses the AI model.
    Model,
    /// `/local [off]`: keeps this chat off the cloud, or ends that.
    Local,
    /// `/settings`: shows the settings.
    Settings,
    /// `/restart`: restarts the bot.
    Restart,
    /// `/whoami`: shows the speaker's identity and rights.
    Whoami,
    /// `/help`: lists what a person can ask for.
    Help,
    /// A command with a typing error; holds the intended command's name.
    Mistyped(&'static str),
}

/// The maximum number of similar names.
const MAX_NEAR: usize = 3;
/// The maximum edit distance of a similar name.
const MAX_CHANGES: usize = 2;
/// The minimum number of letters for a match by the beginning of a name.
const MIN_BEGINNING: usize = 2;
/// The minimum length of a command's name for recognising typing errors. A word similar to a shorter name is as likely meant literally.
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

    /// The name without the slash.
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

    /// Returns true if only the owner's own chat may use the command.
    pub fn is_owners(self) -> bool {
        matches!(self, Self::Jobs | Self::Rules | Self::Model | Self::Settings | Self::Restart)
    }

    /// The commands to register with [`super::Telegram::set_my_commands`]. Excludes `/start`, which Telegram sends itself.
    pub fn menu() -> Vec<BotCommand> {
        let offered = Self::ALL.into_iter().filter_map(|command| Some((command, command.description()?)));
        offered.map(|(command, description)| BotCommand::new(command.name(), description)).collect()
    }

    /// Parses a text as a command, possibly misspelt, with its arguments. For channels where commands don't name a bot.
    pub fn parse_unaddressed(text: &str) -> Option<(Self, &str)> {
        match parse(text.trim_start(), "") {
            ParsedCommand::Ours(command, args) => Some((command, args)),
            ParsedCommand::ForAnother | ParsedCommand::NotACommand => None,
        }
    }

    /// Finds the commands most similar to a word: a few edits away, or with the same beginning.
    pub fn find_nearest(word: &str) -> Vec<Self> {
        let word = word.to_lowercase();
        let mut near: Vec<(usize, Self)> = Self::ALL
            .into_iter()
            .filter(|command| *command != Self::Start)
            .map(|command| (words::count_edits(&word, command.name()), command))
            .filter(|(changes, command)| {
                *changes <= MAX_CHANGES
                    || !word.is_empty() && word.starts_with(command.name())
                    || word.len() >= MIN_BEGINNING && command.name().starts_with(&word)
            })
            .collect();
        near.sort_by_key(|(changes, _)| *changes);
        near.into_iter().map(|(_, command)| command).take(MAX_NEAR).collect()
    }

    /// Returns true if a text is a command for the bot of this name.
    pub fn is_one_of_ours(text: &str, username: &str) -> bool {
        matches!(parse(text, username), ParsedCommand::Ours(..))
    }

    /// The description in the menu; `None` if the menu doesn't offer the command.
    pub fn description(self) -> Option<&'static str> {
        match self {
            Self::Start | Self::Mistyped(_) => None,
            Self::New => Some("Start afresh, leaving out what was said here before"),
            Self::Status => Some("What I'm doing, and what's waiting"),
            Self::Tasks => Some("Your tasks: in hand, and waiting"),
            Self::Memory => Some("What I remember; add words to search it"),
            Self::Remind => Some("Your reminders; add a text and a time to set one"),
            Self::Jobs => Some("Your standing jobs, and when they run next"),
            Self::Cost => Some("What AI models have cost, today and this month"),
            Self::Log => Some("What I did last"),
            Self::Undo => Some("Take back what I did last"),
            Self::Retry => Some("Retry a message that was undone or given up"),
            Self::Rules => Some("Your rules for what I may do without asking"),
            Self::Stop => Some("Stop all work until /resume"),
            Self::Resume => Some("Continue after /stop"),
            Self::Wake => Some("Check now whether anything is due"),
            Self::Model => Some("Which AI model answers; add a name to choose it"),
            Self::Local => Some("Keep this chat off the cloud; add “off” to end that"),
            Self::Settings => Some("The current settings, and any errors in them"),
            Self::Restart => Some("Restart me with the current settings"),
            Self::Whoami => Some("Who you are to me, and what you may do"),
            Self::Help => Some("What you can say to me"),
        }
    }
}

/// A text parsed as a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParsedCommand<'a> {
    /// A command of ours with its arguments.
    Ours(Command, &'a str),
    /// A command for another bot.
    ForAnother,
    /// Not a command of ours.
    NotACommand,
}

/// Parses `/name`, `/name@bot` and the arguments, for the bot of this name.
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
    let command = command.or_else(|| find_mistyped(name));
    command.map_or(ParsedCommand::NotACommand, |command| ParsedCommand::Ours(command, args.trim()))
}

/// Returns true if a text is a command, known or unknown, that names this bot.
pub(super) fn is_addressed_to(text: &str, username: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let addressee = word.strip_prefix('/').and_then(|word| word.split_once('@'));
    addressee.is_some_and(|(_, addressee)| addressee.eq_ignore_ascii_case(username))
}

/// Finds the command that differs from a word by one typing error: an extra, missing or wrong letter, or two swapped ones.
fn find_mistyped(name: &str) -> Option<Command> {
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
    fn commands_are_distinguished_from_text() {
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
    fn a_typing_error_in_a_command_is_recognised() {
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
        assert_eq!(["kitten", "", "sitting"].map(|word| words::count_edits(word, "sitting")), [3, 7, 0]);
        assert_eq!(Command::find_nearest("reminder"), [Command::Remind]);
        assert_eq!(Command::find_nearest("logs"), [Command::Log, Command::Jobs]);
        assert_eq!(Command::find_nearest("re").into_iter().filter(|near| *near == Command::Retry).count(), 1);
        assert_eq!(Command::find_nearest("xyzzy"), []);
    }

    #[test]
    fn the_menu_follows_telegrams_rules() {
        for BotCommand { command, description } in Command::menu() {
            assert!((1..=32).contains(&command.len()) && command.chars().all(|c| c.is_ascii_lowercase()));
            assert!((1..=256).contains(&description.chars().count()));
        }
    }
}
