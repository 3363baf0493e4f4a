//! Checks that the settings work. Each check asks the server or program itself, costs nothing, and changes nothing.

use std::{io::Read as _, path::Path, time::Duration};

use rustix::fs::{Access, access};

use reveille_base::{
    approval_text::remove_hidden,
    disk,
    process::{self, Spec},
    words::{format_count, one_line, truncate_text},
};
use reveille_channels::telegram::{Telegram, TelegramError};
use reveille_config::{CLAUDE_CODE, Config, OFFLINE_MODEL, Provider};
use reveille_git as repo;
use reveille_git::{Patience, REMOTE_TIMEOUT, RemoteError, RemoteFound};
use reveille_model::{
    ModelError,
    anthropic::{Anthropic, AnthropicOptions, ClaudeRoute},
    offered,
    openai::{self, OpenAiOptions, ServedModel},
};
use reveille_sandbox::Sandbox;

use super::{
    SetupStep,
    servers::{EXAMPLE_URL, KnownServer},
};

/// Longest wait for a server.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Longest wait for the Claude Code command to report on itself.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum characters quoted from a program.
const MAX_SAID_CHARS: usize = 200;
/// Maximum characters of a list of a server's models.
const MAX_NAMES_CHARS: usize = 600;
/// Error messages of shells that find no ssh. Git starts ssh through a shell.
const NO_SSH: [&str; 2] = ["ssh: not found", "ssh: command not found"];
/// The first bytes of a whisper.cpp model.
const SPEECH_MAGIC: [u8; 4] = *b"lmgg";

/// The result of a check, worded for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The setting works.
    Good(String),
    /// The setting doesn't work, with the reason.
    Wrong(String),
    /// The result is unknown at present, for example without a network.
    Unknown(String),
}

impl Checked {
    /// True if the setting works.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Good(_))
    }

    /// Returns the wording.
    pub fn text(&self) -> &str {
        match self {
            Self::Good(told) | Self::Wrong(told) | Self::Unknown(told) => told,
        }
    }
}

/// How far checks reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckReach {
    /// They look only at this machine's files.
    Local,
    /// They also ask servers and programs.
    Others,
}

impl CheckReach {
    /// Returns `true` if servers and programs are asked.
    pub fn asks_others(self) -> bool {
        self == Self::Others
    }
}

/// The context of checks besides the settings.
#[derive(Clone, Copy)]
pub struct CheckTools<'a> {
    /// A directory for temporary files.
    pub temporary: &'a Path,
    /// Returns true once the person has given up; called several times a second.
    pub is_over: &'a dyn Fn() -> bool,
    /// How far the checks reach.
    pub reach: CheckReach,
}

/// Checks the settings of a step.
pub async fn check_step(step: SetupStep, config: &Config, tools: CheckTools<'_>) -> Checked {
    match step {
        SetupStep::Workspace => check_workspace(config),
        SetupStep::Model if config.effective_model() == CLAUDE_CODE => check_claude_code(config, tools),
        SetupStep::Model if Provider::from_model(config.effective_model()) == Provider::OpenAi => {
            let url = &config.openai_base_url;
            match KnownServer::find_by_url(url) {
                Some(server) => Checked::Good(format!("{} at {url}", server.name)),
                None if url == EXAMPLE_URL => Checked::Good("a server of yours".to_owned()),
                None if SetupStep::ServerModel.is_applicable(config) => Checked::Good(format!("the server at {url}")),
                None => check_server_model(config, tools).await,
            }
        }
        SetupStep::Model => check_model(config),
        SetupStep::Key => check_key(config, tools).await,
        SetupStep::ServerUrl if config.openai_base_url == EXAMPLE_URL => {
            Checked::Wrong("this is only an example: give the address of your server".to_owned())
        }
        SetupStep::ServerUrl => Checked::Good(config.openai_base_url.clone()),
        SetupStep::ServerKey => check_server_key(config, tools).await,
        SetupStep::ServerModel => check_server_model(config, tools).await,
        SetupStep::ServerPrice => Checked::Good(describe_server_price(config)),
        SetupStep::Bot => check_bot(config, tools).await,
        SetupStep::Zone => Checked::Good(config.timezone.to_string()),
        SetupStep::Remote => check_remote(config, tools),
        SetupStep::Budget if config.daily_budget_usd == 0.0 => {
            Checked::Good("nothing: it uses no paid model".to_owned())
        }
        SetupStep::Budget => Checked::Good(format!("at most {:.2} USD a day", config.daily_budget_usd)),
        SetupStep::Autonomy => check_autonomy(config, tools),
        SetupStep::Initiative => Checked::Good(config.initiative.describe().to_owned()),
        SetupStep::Voice => check_voice(config),
        SetupStep::Assistant | SetupStep::Person => Checked::Good(String::new()),
    }
}

/// Removes hidden characters from another program's text.
fn clean_text(why: impl std::fmt::Display) -> String {
    remove_hidden(&why.to_string()).into_owned()
}

fn check_workspace(config: &Config) -> Checked {
    let dir = &config.workspace_dir;
    let nearest_existing = dir.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    if !nearest_existing.is_dir() {
        return Checked::Wrong(format!("{} isn't a folder", nearest_existing.display()));
    }
    if access(nearest_existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Checked::Wrong(format!("you can't write to {}", nearest_existing.display()));
    }
    let free = disk::free_bytes(dir).unwrap_or(u64::MAX);
    if config.disk_reserve.is_undercut_by(free) {
        let reserve = disk::format_size(config.disk_reserve.bytes());
        return Checked::Wrong(format!("its disk has {} left, and it needs {reserve}", disk::format_size(free)));
    }
    let state = if nearest_existing == dir { "exists" } else { "it will be created" };
    Checked::Good(format!("{} ({state}; {} free)", dir.display(), disk::format_size(free)))
}

fn check_model(config: &Config) -> Checked {
    let chain = config.list_usable_models();
    match (chain.as_slice(), config.model.as_str(), &config.chosen_model) {
        ([OFFLINE_MODEL], OFFLINE_MODEL, _) => Checked::Good("no AI model: it understands simple sentences".to_owned()),
        ([OFFLINE_MODEL], model, None)
            if matches!(Provider::from_model(model), Provider::Bedrock | Provider::Vertex) =>
        {
            Checked::Wrong(config.describe_missing(model).unwrap_or_default().to_owned())
        }
        ([OFFLINE_MODEL], _, None) => Checked::Good("no AI model until there is an API key".to_owned()),
        ([chosen, ..], configured, Some(_)) => {
            Checked::Good(format!("{chosen}, chosen in a chat with /model (MODEL says {configured})"))
        }
        (chain, _, None) => {
            let unused = config.requested_models().find(|name| !config.can_use(name));
            let why = |name| format!(" ({name} isn't used: {})", config.describe_missing(name).unwrap_or_default());
            let unused = unused.map(why).unwrap_or_default();
            Checked::Good(format!("{}{unused}", chain.join(", then ")))
        }
        ([], _, Some(_)) => Checked::Good("no AI model".to_owned()),
    }
}

/// Describes the autonomy, which is limited where commands can't be confined.
fn check_autonomy(config: &Config, tools: CheckTools<'_>) -> Checked {
    let level = config.autonomy.describe();
    if tools.reach.asks_others() && config.effective_model() != OFFLINE_MODEL {
        let launcher = process::resolve_sibling_program("wake");
        if let Sandbox::None { why } = Sandbox::detect(&launcher, tools.temporary) {
            return Checked::Good(format!("{level}, and before each command: {why}"));
        }
    }
    Checked::Good(level.to_owned())
}

async fn check_key(config: &Config, tools: CheckTools<'_>) -> Checked {
    let Some(api_key) = config.anthropic_key.clone() else {
        return Checked::Good("none yet: it answers without an AI model".to_owned());
    };
    if !tools.reach.asks_others() {
        return Checked::Unknown("not tried".to_owned());
    }
    let names: Vec<&str> =
        config.requested_models().filter(|name| Provider::from_model(name) == Provider::Anthropic).collect();
    for name in &names {
        let options = AnthropicOptions {
            route: ClaudeRoute::Api { base_url: config.anthropic_base_url.clone(), api_key: api_key.clone() },
            model: (*name).to_owned(),
            max_tokens: 1,
            idle_timeout: CALL_TIMEOUT,
            total_timeout: CALL_TIMEOUT,
            effort: None,
        };
        let asked = match Anthropic::new(options) {
            Ok(model) => model.look_up().await,
            Err(error) => return Checked::Wrong(error.to_string()),
        };
        match asked {
            Ok(()) => {}
            Err(ModelError::Rejected { status: 404, .. }) => {
                return Checked::Wrong(format!("the key is good, but Claude has no model {name}: see MODEL"));
            }
            Err(ModelError::Account { why } | ModelError::Rejected { why, .. }) => {
                return Checked::Wrong(clean_text(why));
            }
            Err(error) => return Checked::Unknown(clean_text(error)),
        }
    }
    Checked::Good(format!("Claude accepts the key, and has {}", names.join(", ")))
}

/// Lists the models of the configured server.
async fn list_served_models(config: &Config) -> Result<Vec<ServedModel>, Checked> {
    let server = openai::OpenAi::new(OpenAiOptions {
        base_url: config.openai_base_url.clone(),
        api_key: config.openai_key.clone(),
        model: config.model.clone(),
        usd_per_million: config.openai_price,
        idle_timeout: CALL_TIMEOUT,
        total_timeout: CALL_TIMEOUT,
    });
    match server.map_err(Checked::Wrong)?.list_models().await {
        Ok(served) => Ok(served),
        Err(ModelError::Account { why } | ModelError::Rejected { why, .. }) => Err(Checked::Wrong(clean_text(why))),
        Err(error) => Err(Checked::Unknown(clean_text(error))),
    }
}

/// Checks that the configured server accepts the key.
async fn check_server_key(config: &Config, tools: CheckTools<'_>) -> Checked {
    let known = KnownServer::find_by_url(&config.openai_base_url);
    match (known, &config.openai_key) {
        (Some(server), None) => {
            return Checked::Wrong(format!("none yet, and {} doesn't answer without one", server.name));
        }
        (None, None) => return Checked::Good("none: the server is used without a key".to_owned()),
        (Some(server), Some(_)) if server.lists_without_key => {
            return Checked::Good(format!("saved; the first message will show whether {} accepts it", server.name));
        }
        (_, Some(_)) if !tools.reach.asks_others() => return Checked::Unknown("not tried".to_owned()),
        (_, Some(_)) => {}
    }
    match list_served_models(config).await {
        Ok(served) => {
            let name = known.map_or("the server", |server| server.name);
            Checked::Good(format!("{name} accepts the key, and has {}", format_count(served.len(), "model")))
        }
        Err(checked) => checked,
    }
}

/// Checks that the configured server has the model.
async fn check_server_model(config: &Config, tools: CheckTools<'_>) -> Checked {
    // The configured model, regardless of a choice in a chat.
    let name = config.model.as_str();
    if !tools.reach.asks_others() {
        return Checked::Unknown("not tried".to_owned());
    }
    let served = match list_served_models(config).await {
        Ok(served) => served,
        Err(checked) => return checked,
    };
    let wanted = name.strip_prefix(openai::PREFIX).unwrap_or(name);
    let url = &config.openai_base_url;
    // Gemini lists its models with a directory before the name.
    if served.iter().any(|model| model.id == wanted || model.id.strip_prefix("models/") == Some(wanted)) {
        return Checked::Good(format!("{name} at {url}: {}", describe_server_price(config)));
    }
    // Some servers also accept other names for their models.
    let names: Vec<&str> = served.iter().map(|model| model.id.as_str()).collect();
    let has = match nearest_names(wanted, &names) {
        near if near.is_empty() => String::new(),
        near => clean_text(format!(". It has {}", truncate_text(&near.join(", "), MAX_NAMES_CHARS))),
    };
    Checked::Unknown(format!("{url} answers, but doesn't list this model{has}"))
}

/// Lists the names that share a word with the wanted one, or all names without a match.
fn nearest_names<'a>(wanted: &str, names: &[&'a str]) -> Vec<&'a str> {
    let words = |name: &str| -> Vec<String> {
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).map(str::to_lowercase).collect()
    };
    let wanted = words(wanted);
    let near: Vec<&str> =
        names.iter().copied().filter(|name| words(name).iter().any(|word| wanted.contains(word))).collect();
    if near.is_empty() { names.to_vec() } else { near }
}

/// Describes the price of the server's model.
fn describe_server_price(config: &Config) -> String {
    match config.openai_price {
        _ if config.is_local(&config.model) => "free, and nothing leaves this machine".to_owned(),
        Some(price) => offered::per_million(price),
        None => "its price isn't known (set OPENAI_PRICE), so a high one is assumed".to_owned(),
    }
}

async fn check_bot(config: &Config, tools: CheckTools<'_>) -> Checked {
    let Some(token) = &config.telegram_token else {
        return Checked::Good("none: no Telegram".to_owned());
    };
    if !tools.reach.asks_others() {
        return Checked::Unknown("not tried".to_owned());
    }
    let telegram = match Telegram::new(&config.telegram_api_url, token.expose().to_owned()) {
        Ok(telegram) => telegram,
        Err(error) => return Checked::Wrong(error.to_string()),
    };
    let me = match telegram.get_me().await {
        Ok(me) => me,
        Err(TelegramError::Unauthorized(_)) => {
            return Checked::Wrong(
                "Telegram doesn't know this token. Copy all of it again from @BotFather, including the digits before the colon"
                    .to_owned(),
            );
        }
        Err(error) => return Checked::Unknown(clean_text(error)),
    };
    let name = one_line(&me.first_name);
    // A webhook keeps the bot from receiving messages.
    match telegram.get_webhook_info().await.map(|info| info.host()) {
        Ok(Some(host)) => Checked::Wrong(format!(
            "@{} ({name}) exists, but a webhook at {host} takes its messages: `bot webhook delete` removes it",
            me.username
        )),
        _ => Checked::Good(format!("@{} ({name})", me.username)),
    }
}

fn check_claude_code(config: &Config, tools: CheckTools<'_>) -> Checked {
    let Some(program) = process::find_program(&config.claude_code) else {
        return Checked::Wrong(format!(
            "{} isn't installed: npm install -g @anthropic-ai/claude-code",
            config.claude_code.display()
        ));
    };
    if !tools.reach.asks_others() {
        return Checked::Unknown("not tried".to_owned());
    }
    let run = |args: &[&str]| {
        let spec = Spec::new(program.clone()).args(args).timeout(COMMAND_TIMEOUT);
        process::run_unless(&spec, tools.is_over)
    };
    let version = match run(&["--version"]) {
        Ok(output) if output.status.success() => one_line(&String::from_utf8_lossy(&output.stdout)),
        Ok(output) => {
            let said = truncate_text(&one_line(&String::from_utf8_lossy(&output.stderr)), MAX_SAID_CHARS);
            return Checked::Wrong(format!("{} can't be run: {said}", program.display()));
        }
        Err(error) => return Checked::Wrong(error.to_string()),
    };
    let version = truncate_text(&version, MAX_SAID_CHARS);
    if config.anthropic_key.is_some() || config.claude_code_token.is_some() {
        return Checked::Good(format!("{version}, with the key or token that is set"));
    }
    let status = run(&["auth", "status"]).ok();
    let status = status.and_then(|output| serde_json::from_slice::<serde_json::Value>(&output.stdout).ok());
    match status.and_then(|status| status.get("loggedIn")?.as_bool()) {
        Some(true) => Checked::Good(format!("{version}, logged in")),
        Some(false) => {
            Checked::Wrong(format!("{version} is installed, but nobody is logged in: run `claude`, then /login"))
        }
        None => Checked::Unknown(format!("{version} is installed; its first use will show whether it is logged in")),
    }
}

fn check_remote(config: &Config, tools: CheckTools<'_>) -> Checked {
    let Some(url) = &config.repo_url else {
        return Checked::Good("none: the memory stays on this machine".to_owned());
    };
    if !tools.reach.asks_others() {
        return Checked::Unknown("not tried".to_owned());
    }
    let patience = Patience { is_over: tools.is_over, ..Patience::from(REMOTE_TIMEOUT) };
    // Otherwise a missing path would look like a temporarily unavailable remote.
    if url.expose().starts_with('/') && !Path::new(url.expose()).exists() {
        return Checked::Wrong(format!(
            "there is nothing at {url}: `git init --bare {url}` creates an empty repository"
        ));
    }
    match repo::try_remote(url.expose(), tools.temporary, patience) {
        Ok(RemoteFound::Empty) => Checked::Good(format!("{url} can be pushed to, and is empty")),
        Ok(RemoteFound::Branches(n)) => {
            Checked::Good(format!("{url} can be pushed to; it has {} already", format_count(n, "branch")))
        }
        Err(error @ RemoteError::Auth { .. }) => Checked::Wrong(format!(
            "{}. Git can't ask for a password here: set up an SSH key or a credential helper, so that `git push` works without one",
            clean_text(error)
        )),
        Err(error @ (RemoteError::Refused { .. } | RemoteError::Local { .. })) => Checked::Wrong(clean_text(error)),
        Err(RemoteError::Unreachable { why }) if NO_SSH.iter().any(|said| why.to_string().contains(said)) => {
            Checked::Wrong(
                "git needs the program ssh for this address, and it isn't installed. Install it (Debian: apt-get install openssh-client), \
                 or give an https address"
                    .to_owned(),
            )
        }
        Err(error) => Checked::Unknown(clean_text(error)),
    }
}

fn check_voice(config: &Config) -> Checked {
    let Some(path) = &config.whisper_model else {
        return Checked::Good("none: voice notes are kept, not understood".to_owned());
    };
    let mut magic = [0; SPEECH_MAGIC.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    match read {
        Ok(()) if magic == SPEECH_MAGIC => Checked::Good(path.display().to_string()),
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Checked::Wrong(format!(
            "{} can't be read: {error}. `scripts/fetch-model base` downloads a model",
            path.display()
        )),
        _ => Checked::Wrong(format!(
            "{} isn't a whisper.cpp speech model. `scripts/fetch-model base` downloads one",
            path.display()
        )),
    }
}
