//! The questions in their order. Each is a value: the wording, the possible answers, and the changes that an answer makes.

use std::path::PathBuf;

use reveille_base::{redact::is_like_a_key, zone::Tz};
use reveille_config::{
    Autonomy, Config, GivenSettings, InitiativeLevel, OFFLINE_MODEL, Provider, SettingChanges, VARIABLES, check_value,
    file_setting, is_secret,
};
use reveille_media::speech;
use reveille_model::openai;

use super::{
    local_models::FoundServer,
    models::{
        build_model_changes, build_model_question, build_server_changes, find_server_conflict, has_own_server,
        parse_server_choice,
    },
    names::{AssistantNames, DEFAULT_NAME, check_name},
    servers::{EXAMPLE_URL, KnownServer, is_elsewhere, only_model},
    shown::find_value,
};

/// The answer for "none".
const NONE: &str = "none";
/// The directory of speech models from `scripts/fetch-model`, below the home directory.
const MODELS_DIR: &str = ".cache/reveille";
/// Environment variables that aren't copied to the file: its location, and settings for this run only.
const NOT_KEPT: [&str; 3] = ["WORKSPACE_DIR", "REVEILLE_NOW", "REVEILLE_LOG"];

/// A step of the set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SetupStep {
    /// The workspace directory.
    Workspace,
    /// The AI model.
    Model,
    /// The Anthropic API key.
    Key,
    /// The address of an OpenAI-compatible server.
    ServerUrl,
    /// The key of that server.
    ServerKey,
    /// The model of that server.
    ServerModel,
    /// The price of that model.
    ServerPrice,
    /// The Telegram bot's token.
    Bot,
    /// The person's time zone.
    Zone,
    /// The git remote of the memory.
    Remote,
    /// The daily budget.
    Budget,
    /// How much it may do without asking.
    Autonomy,
    /// How much it may do unasked.
    Initiative,
    /// The speech model for voice notes.
    Voice,
    /// The assistant's name.
    Assistant,
    /// The person's name.
    Person,
}

/// The form of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupQuestion {
    /// A line of text. An empty one means the default.
    Line {
        /// The default.
        default: String,
    },
    /// A hidden line. An empty one keeps the present secret, if any.
    Secret {
        /// True if a secret is already set.
        is_set: bool,
    },
    /// The number of an option, from 1.
    Choice {
        /// The options, each with its answer and its label.
        options: Vec<(String, String)>,
        /// The default option, from 1.
        default: usize,
    },
}

/// The meaning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedAnswer {
    /// Changes of settings; possibly none.
    Changes(SettingChanges),
    /// The workspace directory.
    Workspace(String),
    /// The new names.
    Names(AssistantNames),
    /// An invalid answer, with a description of valid ones.
    Wrong(String),
}

impl SetupStep {
    /// Every step, in order.
    pub const ALL: [Self; 16] = [
        Self::Workspace,
        Self::Model,
        Self::Key,
        Self::ServerUrl,
        Self::ServerKey,
        Self::ServerModel,
        Self::ServerPrice,
        Self::Bot,
        Self::Zone,
        Self::Remote,
        Self::Budget,
        Self::Autonomy,
        Self::Initiative,
        Self::Voice,
        Self::Assistant,
        Self::Person,
    ];

    /// The steps after [`Self::Model`], asked if they apply.
    pub const OF_A_MODEL: [Self; 5] =
        [Self::Key, Self::ServerUrl, Self::ServerKey, Self::ServerModel, Self::ServerPrice];

    /// Returns a short title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Workspace => "Folder",
            Self::Model => "AI model",
            Self::Key | Self::ServerKey => "API key",
            Self::ServerUrl => "Server",
            Self::ServerModel => "Its model",
            Self::ServerPrice => "Its price",
            Self::Bot => "Telegram",
            Self::Zone => "Time zone",
            Self::Remote => "Git remote",
            Self::Budget => "Budget",
            Self::Autonomy => "Autonomy",
            Self::Initiative => "Initiative",
            Self::Voice => "Voice",
            Self::Assistant => "Its name",
            Self::Person => "Your name",
        }
    }

    /// Returns the step's settings, the main one first.
    pub fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Workspace => &["WORKSPACE_DIR"],
            Self::Model => &["MODEL", "CLAUDE_CODE"],
            Self::ServerUrl => &["OPENAI_BASE_URL"],
            Self::ServerKey => &["OPENAI_API_KEY", "OPENAI_API_KEY_FILE"],
            Self::ServerModel => &["MODEL"],
            Self::ServerPrice => &["OPENAI_PRICE"],
            Self::Key => &["ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY_FILE", "ANTHROPIC_BASE_URL"],
            Self::Bot => &["TELEGRAM_BOT_TOKEN", "TELEGRAM_BOT_TOKEN_FILE", "TELEGRAM_API_URL"],
            Self::Zone => &["TIMEZONE"],
            Self::Remote => &["REPO_URL"],
            Self::Budget => &["DAILY_BUDGET_USD"],
            Self::Autonomy => &["AUTONOMY"],
            Self::Initiative => &["INITIATIVE"],
            Self::Voice => &["WHISPER_MODEL"],
            Self::Assistant | Self::Person => &[],
        }
    }

    /// Returns the question and an explanation.
    pub fn question(self) -> (&'static str, &'static str) {
        match self {
            Self::Workspace => (
                "Where should Reveille keep its files?",
                "One folder holds the memory, the messages and the settings (.env). Only you can read it.",
            ),
            Self::Model => (
                "Which AI model should it use?",
                "An AI model understands anything you write. Without one, it still handles reminders, tasks and notes.",
            ),
            Self::Key => (
                "Your Anthropic API key?",
                "You get one at https://console.anthropic.com. Checking it costs nothing. Press Enter to do this later.",
            ),
            Self::ServerUrl => (
                "What is the server's address?",
                "It has to be OpenAI-compatible. The address usually ends in /v1; your key goes there and nowhere else.",
            ),
            Self::ServerKey => (
                "Your API key for this server?",
                "You get one on the server's website. Press Enter for none, as with a server of your own.",
            ),
            Self::ServerModel => (
                "Which of its models?",
                "Its name, as the server spells it. If the name is wrong, you'll see the available names.",
            ),
            Self::ServerPrice => (
                "What does this model cost?",
                "US dollars per million tokens, in/out, such as 0.28/0.42. Without it, a high price is assumed, so that your budget holds.",
            ),
            Self::Bot => (
                "The token of your Telegram bot?",
                "On Telegram, write /newbot to @BotFather and paste the token it gives you. Press Enter to go without Telegram.",
            ),
            Self::Zone => {
                ("Which time zone are you in?", "Reminders and quiet hours use it. Type a name such as Europe/Berlin.")
            }
            Self::Remote => (
                "Where should the memory be pushed?",
                "The address of an empty private git repository (ssh, https or a path), used with your own git keys; or none.",
            ),
            Self::Budget => {
                ("How much may it spend a day, in US dollars?", "When it is spent, messages wait until midnight.")
            }
            Self::Autonomy => (
                "How much may it do without asking you?",
                "It always asks before what can't be undone. Questions come to your chat, and no answer means no.",
            ),
            Self::Initiative => (
                "How much may it do unasked?",
                "A written rule weighs your tasks and projects. It proposes what needs your approval, and nothing new while a proposal is unanswered.",
            ),
            Self::Voice => (
                "Which speech model should understand voice notes?",
                "The path of a model, or none. `scripts/fetch-model base` downloads one and prints its path. Recordings stay on this machine.",
            ),
            Self::Assistant => ("What is your assistant called?", "The name goes into its standing orders, claude.md."),
            Self::Person => ("And what should it call you?", "Press Enter for no name."),
        }
    }

    /// True if the step applies with these settings.
    pub fn is_applicable(self, config: &Config) -> bool {
        match self {
            Self::Key => config.requested_models().any(|name| Provider::from_model(name) == Provider::Anthropic),
            // Initiative needs a model.
            Self::Initiative => config.requested_models().any(|name| name != OFFLINE_MODEL),
            Self::ServerUrl => has_own_server(config) && KnownServer::find_by_url(&config.openai_base_url).is_none(),
            Self::ServerKey => has_own_server(config) && config.openai_base_url != EXAMPLE_URL,
            Self::ServerModel => Self::ServerKey.is_applicable(config) && only_model(config).is_some(),
            Self::ServerPrice => {
                is_elsewhere(config) && config.openai_base_url != EXAMPLE_URL && only_model(config).is_some()
            }
            Self::Voice => speech::IS_BUILT,
            // Free models need no budget.
            Self::Budget => config.requested_models().any(|name| !config.is_free(name)),
            _ => true,
        }
    }

    /// Returns the step's variable that is set in the environment, which must be changed there.
    pub fn find_environment_setting(self, said: &GivenSettings) -> Option<&'static str> {
        // A server's address in the environment answers only the questions about an address.
        let is_answer = |name: &&&str| !name.ends_with("_URL") || matches!(self, Self::Remote | Self::ServerUrl);
        let mut names = self.settings().iter().filter(is_answer);
        names.find(|name| said.is_from_environment(name)).copied()
    }

    /// Returns the form of the answer, with its default.
    pub fn build_question(
        self,
        said: &GivenSettings,
        config: &Config,
        names: &AssistantNames,
        servers: &[FoundServer],
    ) -> SetupQuestion {
        let line = |default: String| SetupQuestion::Line { default };
        match self {
            Self::Workspace => line(config.workspace_dir.display().to_string()),
            Self::Model => build_model_question(said, config, servers),
            Self::Key => SetupQuestion::Secret { is_set: config.anthropic_key.is_some() },
            Self::ServerUrl => line(config.openai_base_url.clone()),
            Self::ServerKey => SetupQuestion::Secret { is_set: config.openai_key.is_some() },
            Self::ServerModel => line(only_model(config).unwrap_or_default().to_owned()),
            Self::ServerPrice => {
                line(config.openai_price.map_or_else(|| NONE.to_owned(), |(input, output)| format!("{input}/{output}")))
            }
            Self::Bot => SetupQuestion::Secret { is_set: config.telegram_token.is_some() },
            Self::Zone => line(config.timezone.to_string()),
            Self::Remote => line(config.repo_url.as_ref().map_or_else(|| NONE.to_owned(), ToString::to_string)),
            Self::Budget => line(config.daily_budget_usd.to_string()),
            Self::Autonomy => {
                let levels = [Autonomy::AskAll, Autonomy::Smart, Autonomy::Full];
                let at = levels.iter().position(|level| *level == config.autonomy).unwrap_or(1);
                let options = levels.map(|level| (level.as_str().to_owned(), level.describe().to_owned())).into_iter();
                SetupQuestion::Choice { options: options.collect(), default: at + 1 }
            }
            Self::Initiative => {
                let levels = InitiativeLevel::ALL;
                let at = levels.iter().position(|level| *level == config.initiative).unwrap_or(0);
                let options = levels
                    .map(|level| (level.as_str().to_owned(), format!("{}: {}", level.as_str(), level.describe())));
                SetupQuestion::Choice { options: options.into_iter().collect(), default: at + 1 }
            }
            Self::Voice => {
                let path = config.whisper_model.clone().or_else(|| find_fetched_model(said));
                line(path.map_or_else(|| NONE.to_owned(), |path| path.display().to_string()))
            }
            Self::Assistant => line(names.assistant.clone()),
            Self::Person => line(names.person.clone().unwrap_or_default()),
        }
    }

    /// Interprets an answer. For a choice, `answer` is the chosen option's answer, not its number.
    pub fn parse_answer(
        self,
        answer: &str,
        said: &GivenSettings,
        config: &Config,
        names: &AssistantNames,
    ) -> ParsedAnswer {
        let answer = answer.trim();
        match self {
            Self::Workspace => match check_value("WORKSPACE_DIR", answer, said.home()) {
                Ok(()) => ParsedAnswer::Workspace(answer.to_owned()),
                Err(what) => ParsedAnswer::Wrong(what),
            },
            Self::Model => match parse_server_choice(answer).and_then(|url| find_server_conflict(url, said, config)) {
                Some(why) => ParsedAnswer::Wrong(why),
                None => ParsedAnswer::Changes(build_model_changes(answer, said, config)),
            },
            Self::Key => build_secret_change("ANTHROPIC_API_KEY", answer),
            Self::ServerUrl => match check_value("OPENAI_BASE_URL", answer, said.home()) {
                Ok(()) => match find_server_conflict(answer, said, config) {
                    Some(why) => ParsedAnswer::Wrong(why),
                    None => ParsedAnswer::Changes(build_server_changes(answer, None, config)),
                },
                Err(what) => ParsedAnswer::Wrong(what),
            },
            Self::ServerKey => build_secret_change("OPENAI_API_KEY", answer),
            Self::ServerModel => {
                let model = format!("{}{answer}", openai::PREFIX);
                let is_same = model == config.model;
                match build_setting_change("MODEL", &model, is_same, said) {
                    // The price belonged to the previous model.
                    ParsedAnswer::Changes(changes) if !is_same => {
                        ParsedAnswer::Changes(changes.into_iter().chain([("OPENAI_PRICE", None)]).collect())
                    }
                    taken => taken,
                }
            }
            Self::ServerPrice => {
                let is_same = config.openai_price.is_some_and(|(input, output)| format!("{input}/{output}") == answer);
                build_setting_change("OPENAI_PRICE", answer, is_same, said)
            }
            Self::Bot => build_secret_change("TELEGRAM_BOT_TOKEN", answer),
            Self::Zone => {
                let answer = Tz::find_name(answer).unwrap_or(answer);
                build_setting_change("TIMEZONE", answer, answer == config.timezone.to_string(), said)
            }
            Self::Remote => {
                let is_as_shown = config.repo_url.as_ref().is_some_and(|url| url.to_string() == answer);
                build_setting_change("REPO_URL", answer, is_as_shown, said)
            }
            Self::Budget => {
                build_setting_change("DAILY_BUDGET_USD", answer, answer == config.daily_budget_usd.to_string(), said)
            }
            Self::Autonomy => build_setting_change("AUTONOMY", answer, answer == config.autonomy.as_str(), said),
            Self::Initiative => build_setting_change("INITIATIVE", answer, answer == config.initiative.as_str(), said),
            Self::Voice => {
                let is_set = config.whisper_model.as_ref().is_some_and(|path| path.display().to_string() == answer);
                build_setting_change("WHISPER_MODEL", answer, is_set, said)
            }
            Self::Assistant => match check_name(answer) {
                Ok(()) => ParsedAnswer::Names(AssistantNames { assistant: answer.to_owned(), ..names.clone() }),
                Err(expected) => ParsedAnswer::Wrong(format!("expected {expected}")),
            },
            Self::Person if answer.is_empty() => ParsedAnswer::Names(names.clone()),
            Self::Person => match check_name(answer) {
                Ok(()) => ParsedAnswer::Names(AssistantNames { person: Some(answer.to_owned()), ..names.clone() }),
                Err(expected) => ParsedAnswer::Wrong(format!("expected {expected}")),
            },
        }
    }
}

/// Builds the change of any setting from what a person typed. An empty answer keeps a secret, and means the default elsewhere.
///
/// # Errors
/// A description of valid values, without the given one if that is a secret.
pub fn parse_setting(
    name: &'static str,
    answer: &str,
    said: &GivenSettings,
    config: &Config,
) -> Result<SettingChanges, String> {
    let answer = answer.trim();
    if find_value(config, name).is_some_and(|value| value == answer) && !is_secret(name) {
        return Ok(SettingChanges::new());
    }
    if name == "WORKSPACE_DIR" {
        return Err("the workspace can't be changed while it is in use".to_owned());
    }
    let taken = match SetupStep::ALL.into_iter().find(|step| step.settings() == [name]) {
        _ if is_secret(name) => build_secret_change(name, answer),
        _ if is_like_a_key(answer) => {
            ParsedAnswer::Wrong("that looks like a key, which doesn't belong here".to_owned())
        }
        // For some settings, “none” is a value of its own and not the default.
        _ if answer.eq_ignore_ascii_case(NONE) && check_value(name, NONE, said.home()).is_ok() => {
            ParsedAnswer::Changes(SettingChanges::from([(name, Some(NONE.to_owned()))]))
        }
        Some(step) if step != SetupStep::ServerModel && step != SetupStep::Model => {
            step.parse_answer(answer, said, config, &AssistantNames::default())
        }
        _ => build_setting_change(name, answer, said.get(name).is_some_and(|(value, _)| value == answer), said),
    };
    match taken {
        ParsedAnswer::Changes(changes) => Ok(drop_unchanged(changes, said)),
        ParsedAnswer::Wrong(what) => Err(what),
        ParsedAnswer::Workspace(_) | ParsedAnswer::Names(_) => Ok(SettingChanges::new()),
    }
}

/// Leaves out what is set already.
fn drop_unchanged(changes: SettingChanges, said: &GivenSettings) -> SettingChanges {
    changes.into_iter().filter(|(name, value)| said.get(name).map(|(value, _)| value) != value.as_deref()).collect()
}

/// Builds the change of a setting after checking its value.
fn build_setting_change(name: &'static str, answer: &str, is_same: bool, said: &GivenSettings) -> ParsedAnswer {
    if is_same {
        return ParsedAnswer::Changes(SettingChanges::new());
    }
    if answer.is_empty() || answer.eq_ignore_ascii_case(NONE) {
        let removal = said.get(name).map(|_| (name, None));
        return ParsedAnswer::Changes(removal.into_iter().collect());
    }
    match check_value(name, answer, said.home()) {
        Ok(()) => ParsedAnswer::Changes(SettingChanges::from([(name, Some(answer.to_owned()))])),
        Err(what) => ParsedAnswer::Wrong(what),
    }
}

/// Builds the change of a secret, which also replaces one in a file of its own.
fn build_secret_change(name: &'static str, answer: &str) -> ParsedAnswer {
    if answer.is_empty() {
        return ParsedAnswer::Changes(SettingChanges::new());
    }
    match check_value(name, answer, None) {
        Ok(()) => {
            let file = file_setting(name).map(|file| (file, None));
            ParsedAnswer::Changes([(name, Some(answer.to_owned()))].into_iter().chain(file).collect())
        }
        Err(what) => ParsedAnswer::Wrong(what),
    }
}

/// Finds a speech model downloaded by `scripts/fetch-model`.
fn find_fetched_model(said: &GivenSettings) -> Option<PathBuf> {
    let entries = std::fs::read_dir(said.home()?.join(MODELS_DIR)).ok()?;
    let is_model = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("ggml-") && name.ends_with(".bin")
    };
    entries.flatten().map(|entry| entry.path()).filter(is_model).max()
}

/// Copies settings from the environment into the file, since cron and the bot's unit have another environment. A secret in a file of
/// its own stays there.
pub fn copy_environment(said: &GivenSettings) -> SettingChanges {
    let mut changes = SettingChanges::new();
    for name in VARIABLES {
        let kept = !NOT_KEPT.contains(&name) && said.is_from_environment(name);
        let Some((value, _)) = said.get(name).filter(|_| kept) else { continue };
        changes.insert(name, Some(value.to_owned()));
        let other = file_setting(name).or_else(|| {
            name.strip_suffix("_FILE").and_then(|secret| VARIABLES.into_iter().find(|known| *known == secret))
        });
        if let Some(other) = other.filter(|other| !said.is_from_environment(other)) {
            changes.insert(other, None);
        }
    }
    changes
}

impl Default for AssistantNames {
    fn default() -> Self {
        Self { assistant: DEFAULT_NAME.to_owned(), person: None }
    }
}
