//! The settings: the only crate that reads the environment.
//!
//! Settings are read in two stages. `raw` gathers the given values with their sources (the environment, `.env`, a secret's own
//! file); `resolve` turns them into the typed [`Config`]. All problems are collected, so that a person corrects them at once.
//! Nothing here changes while the program runs: state lives in the workspace.

mod authority;
mod cloud;
mod env_file;
mod error;
mod files;
mod given;
mod initiative;
mod lease;
mod model_name;
mod old;
mod raw;
mod resolve;
mod table;
mod telegram_rich;
#[cfg(test)]
mod tests;
mod types;
mod values;
mod while_working;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, NaiveTime, Utc};
use tracing_subscriber::filter::Targets;

use reveille_base::{
    clock::{Clock, FixedClock, SystemClock},
    disk::Reserve,
    redact::Secret,
    types::ChatRef,
    words::quote_for_shell,
    zone::Tz,
};

pub use self::resolve::DEFAULT_OPENAI_BASE_URL;
pub use self::{
    authority::Authority,
    cloud::{BedrockSettings, VertexSettings},
    env_file::EditError,
    error::{ConfigError, SettingProblem},
    given::{GivenSettings, SettingChanges, check_value, file_setting, is_secret},
    initiative::InitiativeLevel,
    lease::{LeaseHome, LeaseSettings, UnrequestedWork},
    model_name::Provider,
    old::OldSetting,
    raw::Source,
    table::{SETTINGS, Setting, VARIABLES, describe_setting, find_setting, render_example},
    telegram_rich::TelegramRich,
    types::{Autonomy, EmbedModel, LogFormat, QuietHours, RepoUrl},
    while_working::WhileWorking,
};
pub use {
    files::{MAX_BYTES, read_private},
    lease::{MAX_NAME_CHARS, MAX_TERM_S},
    values::{is_forwarded_to_cloud, is_loopback, parse_server_url as safe_server_url, runs_on_this_machine},
};

/// The name of the fallback grammar, which needs no key and no network.
pub const OFFLINE_MODEL: &str = "offline";

/// The name of the Claude Code command as a model.
pub const CLAUDE_CODE: &str = "claude-code";

/// The settings of one run, checked and resolved.
#[derive(Debug, Clone)]
pub struct Config {
    /// The absolute path of the workspace, which holds every file that no other setting places elsewhere (`WORKSPACE_DIR`).
    pub workspace_dir: PathBuf,
    /// The name of the repository's directory in the workspace (`REPO_NAME`).
    pub repo_name: String,
    /// The remote to clone the repository from, and the required `origin` afterwards (`REPO_URL`).
    pub repo_url: Option<RepoUrl>,
    /// A PostgreSQL database shared by several machines, in place of the workspace's SQLite file (`DATABASE_URL`).
    pub database_url: Option<String>,
    /// The password of this database (`DATABASE_PASSWORD`).
    pub database_password: Option<Secret>,
    /// The folder for files from messages: the workspace, or a folder shared by all machines of one database (`MEDIA_DIR`).
    pub media_dir: PathBuf,
    /// The settings for sharing work among several machines with one memory (`LEASE` and related settings).
    pub lease: LeaseSettings,
    /// The bot's token in the form `<bot id>:<secret>` (`TELEGRAM_BOT_TOKEN`).
    pub telegram_token: Option<Secret>,
    /// Telegram's server, without a trailing slash (`TELEGRAM_API_URL`).
    pub telegram_api_url: String,
    /// The allowed chats (in groups: the allowed people), in the given order without duplicates (`ALLOWED_CHAT_IDS`).
    /// `reveille_store::access::admit_paired_people` adds paired people.
    pub allowed_chats: Vec<ChatRef>,
    /// The only chat that gets unasked messages; [`ChatRef::TERMINAL`] if the list of allowed chats is empty (`OWNER_CHAT_ID`).
    pub owner_chat: ChatRef,
    /// True if `OWNER_CHAT_ID` is set. Then pairing can't choose another owner.
    pub is_owner_chosen: bool,
    /// The key for the Messages API (`ANTHROPIC_API_KEY`).
    pub anthropic_key: Option<Secret>,
    /// The Messages API's server, without a trailing slash (`ANTHROPIC_BASE_URL`).
    pub anthropic_base_url: String,
    /// Claude on Amazon Bedrock.
    pub bedrock: BedrockSettings,
    /// Claude on Google Cloud.
    pub vertex: VertexSettings,
    /// The requested models, separated by commas, preferred first (`MODEL`). [`Config::list_usable_models`] lists the usable ones.
    pub model: String,
    /// The model for the first turns of a request and for plans marked as quick (`MODEL_SIMPLE`).
    pub model_simple: Option<String>,
    /// The model for reflection (`MODEL_REFLECT`).
    pub model_reflect: Option<String>,
    /// The model that the owner chose in a chat, which takes precedence over `model`; see `reveille_store::in_force`.
    pub chosen_model: Option<String>,
    /// The Claude Code command, by path or name (`CLAUDE_CODE`).
    pub claude_code: PathBuf,
    /// The maximum number of pictures in the first prompt of a conversation, newest first (`IMAGES_MAX`).
    pub images_max: usize,
    /// The model that Claude Code uses (`CLAUDE_CODE_MODEL`).
    pub claude_code_model: String,
    /// The long-lived subscription token from `claude setup-token` (`CLAUDE_CODE_OAUTH_TOKEN`).
    pub claude_code_token: Option<Secret>,
    /// The key for Brave's search; without a key, DuckDuckGo is used (`BRAVE_API_KEY`).
    pub brave_key: Option<Secret>,
    /// The model that embeds searched texts; `None` for search by keywords alone (`EMBED_MODEL`).
    pub embed_model: Option<EmbedModel>,
    /// An OpenAI-compatible API, without a trailing slash (`OPENAI_BASE_URL`).
    pub openai_base_url: String,
    /// The key for this API, sent only there; servers on this machine need none (`OPENAI_API_KEY`).
    pub openai_key: Option<Secret>,
    /// The price of this API's models in US dollars per million tokens, input and output; `None` if unknown (`OPENAI_PRICE`).
    pub openai_price: Option<(f64, f64)>,
    /// The Gemini API's server, without a trailing slash (`GEMINI_BASE_URL`).
    pub gemini_base_url: String,
    /// The key for the Gemini API (`GEMINI_API_KEY`).
    pub gemini_key: Option<Secret>,
    /// Passwords from proxy URLs (`HTTPS_PROXY` and the like). Programs that connect get them; elsewhere they are masked.
    pub proxy_secrets: Vec<Secret>,
    /// The person's time zone (`TIMEZONE`).
    pub timezone: Tz,
    /// The risk up to which acts need no approval (`AUTONOMY`).
    pub autonomy: Autonomy,
    /// The daily budget for model calls in US dollars (`DAILY_BUDGET_USD`).
    pub daily_budget_usd: f64,
    /// The budget for model calls in a civil month in US dollars; `None` for no limit (`MONTHLY_BUDGET_USD`).
    pub monthly_budget_usd: Option<f64>,
    /// The time-out of one wake (`WAKE_TIMEOUT_MIN`).
    pub wake_timeout: Duration,
    /// The time a wake may be silent before the next one replaces it. The health check reports a wake that exceeds its time-out by
    /// this much, and a cycle or a reply that waits this long (`STALE_LOCK_MIN`).
    pub stale_lock: Duration,
    /// The minimum time between two routine fetches from the remote (`PULL_EVERY_MIN`).
    pub pull_every: Duration,
    /// The free disk space reserved for answering queued messages (`DISK_RESERVE_MB`).
    pub disk_reserve: Reserve,
    /// The time for which history is kept; `None` for ever (`KEEP_DAYS`).
    pub keep: Option<Duration>,
    /// The file of the speech model (`WHISPER_MODEL`).
    pub whisper_model: Option<PathBuf>,
    /// The hours without unasked messages; `None` for no such hours (`QUIET_HOURS`).
    pub quiet_hours: Option<QuietHours>,
    /// The time of day from which the program reflects on the days before; `None` for never (`REFLECT_AT`).
    pub reflect_at: Option<NaiveTime>,
    /// How often the assistant looks for useful work that nobody asked for (`INITIATIVE`).
    pub initiative: InitiativeLevel,
    /// The use of rich Telegram messages (`TELEGRAM_RICH`).
    pub telegram_rich: TelegramRich,
    /// What to do with messages that arrive during a cycle of the same chat (`WHILE_WORKING`).
    pub while_working: WhileWorking,
    /// The maximum number of unasked messages a day (`TELL_PER_DAY`).
    pub tell_per_day: u32,
    /// The fixed time of this process's clock (`REVEILLE_NOW`).
    pub fixed_now: Option<DateTime<Utc>>,
    /// The level of the log; `None` for the program's default (`REVEILLE_LOG`).
    pub log_level: Option<tracing::Level>,
    /// Log levels by module, which override `log_level` (`RUST_LOG`).
    pub log_targets: Option<Targets>,
    /// The format of log files (`LOG_FORMAT`).
    pub log_format: LogFormat,
    /// True if this process can reach a desktop for notifications.
    pub has_desktop: bool,
    /// True if `NO_COLOR` asks for plain output, or the terminal supports only that (`TERM=dumb`).
    pub no_color: bool,
    /// The `.env` file in use, if any.
    pub env_file: Option<PathBuf>,
    /// The same file if `--env-file` named it, to be passed on to our own child programs.
    pub named_env_file: Option<PathBuf>,
    /// The files with keys, named by `TELEGRAM_BOT_TOKEN_FILE` and the like.
    pub key_files: Vec<PathBuf>,
    /// The person's home directory, for `~/` in the policy.
    pub home: Option<PathBuf>,
    /// Remarks on valid but surprising settings, a sentence each.
    pub notes: Vec<String>,
}

impl Config {
    /// Reads the settings of this process. `env_file` replaces the workspace's `.env`.
    ///
    /// # Errors
    /// Lists every wrong setting by name. Binaries print the list and exit with `cli::EXIT_CONFIG`.
    pub fn load(env_file: Option<&Path>) -> Result<Self, ConfigError> {
        let absolute = env_file.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let zone = iana_time_zone::get_timezone().ok();
        let mut config = Self::from_sources(&read_environment(), absolute.as_deref(), zone.as_deref())?;
        if let Ok(cwd) = std::env::current_dir() {
            config.note_ignored_env_file(&cwd);
        }
        Ok(config)
    }

    /// Reads the settings from a given environment, a file in place of the workspace's `.env`, and the name of the system's time
    /// zone.
    ///
    /// # Errors
    /// Lists every wrong setting by name.
    pub fn from_sources(
        env: &BTreeMap<String, String>,
        env_file: Option<&Path>,
        system_zone: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let mut config = resolve::resolve_config(raw::Raw::gather(env, env_file), system_zone)?;
        config.named_env_file = env_file.map(Path::to_owned);
        Ok(config)
    }

    /// Adds a note about an ignored `.env` in the current directory, which earlier versions read. Somebody else's folder must not
    /// decide where the key and the memory are sent, or keep the program from starting.
    fn note_ignored_env_file(&mut self, cwd: &Path) {
        let Some((path, names)) = raw::find_ignored_env_file(cwd).filter(|_| self.env_file.is_none()) else { return };
        let own = self.workspace_dir.join(".env");
        let command = if names.contains(&"WORKSPACE_DIR") {
            format!("start with --env-file {}", quote_for_shell(&path))
        } else {
            format!(
                "mkdir -p -m 700 {} && mv {} {}",
                quote_for_shell(&self.workspace_dir),
                quote_for_shell(&path),
                quote_for_shell(&own)
            )
        };
        let names = names.join(", ");
        self.notes.push(format!(
            "{} isn't read: settings come from the environment and from {}. It sets {names}. If these are your settings: {command}",
            path.display(),
            own.display(),
        ));
        // The file may hold keys, so programs that the model runs must not read it either.
        self.key_files.push(path);
    }

    /// The bot's token. No allowed chats are required, because pairing can add people.
    ///
    /// # Errors
    /// Names the missing setting.
    pub fn require_telegram(&self) -> Result<&Secret, ConfigError> {
        let what = "the bot needs a token: ask @BotFather on Telegram for one";
        let missing = || ConfigError { problems: vec![SettingProblem::new("TELEGRAM_BOT_TOKEN", what)] };
        self.telegram_token.as_ref().ok_or_else(missing)
    }

    /// The bot's numeric id, from its token.
    pub fn bot_id(&self) -> Option<i64> {
        self.telegram_token.as_ref().and_then(|token| values::bot_id(token.expose()))
    }

    /// The requested models in order.
    pub fn requested_models(&self) -> impl Iterator<Item = &str> {
        self.model.split(',').map(str::trim)
    }

    /// The wanted models: the chosen one, then the requested ones.
    fn wanted_models(&self) -> impl Iterator<Item = &str> {
        self.chosen_model.as_deref().into_iter().chain(self.requested_models())
    }

    /// The usable models, preferred first and without duplicates. The chain ends at [`OFFLINE_MODEL`], which always answers. Without any
    /// usable model, the chain consists of [`OFFLINE_MODEL`] alone.
    pub fn list_usable_models(&self) -> Vec<&str> {
        let mut chain: Vec<&str> = Vec::new();
        for name in self.wanted_models().filter(|name| self.can_use(name)) {
            if !chain.contains(&name) {
                chain.push(name);
            }
            if name == OFFLINE_MODEL {
                break;
            }
        }
        if chain.is_empty() { vec![OFFLINE_MODEL] } else { chain }
    }

    /// The first model of the chain.
    pub fn effective_model(&self) -> &str {
        self.wanted_models().find(|name| self.can_use(name)).unwrap_or(OFFLINE_MODEL)
    }

    /// Returns true if the model runs on this machine, costs nothing and sends nothing elsewhere.
    pub fn is_local(&self, name: &str) -> bool {
        match Provider::from_model(name) {
            Provider::Offline => true,
            Provider::OpenAi => runs_on_this_machine(&self.openai_base_url, name, self.openai_key.is_some()),
            Provider::Anthropic | Provider::Bedrock | Provider::Vertex | Provider::ClaudeCode => false,
        }
    }

    /// Returns true if the model costs nothing: local, or with a price of zero.
    pub fn is_free(&self, name: &str) -> bool {
        self.is_local(name) || Provider::from_model(name) == Provider::OpenAi && self.openai_price == Some((0.0, 0.0))
    }

    /// Returns true if the model's required settings are present. [`CLAUDE_CODE`] needs none, because it may have its own login.
    pub fn can_use(&self, name: &str) -> bool {
        self.describe_missing(name).is_none()
    }

    /// Describes the missing settings of a model; `None` if the model can be used.
    pub fn describe_missing(&self, name: &str) -> Option<&'static str> {
        match Provider::from_model(name) {
            Provider::Anthropic if self.anthropic_key.is_none() => Some("there is no ANTHROPIC_API_KEY"),
            // OpenAI itself needs a key; another server may not.
            Provider::OpenAi
                if self.openai_key.is_none() && self.openai_base_url == resolve::DEFAULT_OPENAI_BASE_URL =>
            {
                Some("neither OPENAI_API_KEY nor (for a server of your own) OPENAI_BASE_URL is set")
            }
            Provider::Bedrock => self.bedrock.describe_missing(),
            Provider::Vertex => self.vertex.describe_missing(),
            Provider::Anthropic | Provider::OpenAi | Provider::ClaudeCode | Provider::Offline => None,
        }
    }

    /// The clock of this process: the machine's, or a fixed one at `REVEILLE_NOW`.
    pub fn clock(&self) -> Box<dyn Clock> {
        match self.fixed_now {
            Some(now) => Box::new(FixedClock(now)),
            None => Box::new(SystemClock),
        }
    }

    /// The arguments that make a child program of ours read the same settings.
    pub fn settings_arguments(&self) -> Vec<OsString> {
        self.named_env_file.iter().flat_map(|path| ["--env-file".into(), path.clone().into_os_string()]).collect()
    }

    /// All secrets, which must stay out of logs, messages, prompts and commits.
    pub fn secrets(&self) -> Vec<Secret> {
        let passwords = self.repo_url.iter().flat_map(RepoUrl::secrets);
        let keys = self.telegram_token.iter().chain(&self.anthropic_key).chain(&self.claude_code_token);
        let keys = keys.chain(&self.brave_key).chain(&self.openai_key).chain(&self.gemini_key);
        let keys = keys.chain(self.bedrock.secrets()).chain(&self.database_password);
        keys.chain(&self.proxy_secrets).cloned().chain(passwords).collect()
    }

    /// The SQLite file for queue, journal and ledger, unless [`Config::database_url`] names a database.
    pub fn db_path(&self) -> PathBuf {
        self.workspace_dir.join("messages.db")
    }

    /// The index of the memory, which can be rebuilt.
    pub fn index_path(&self) -> PathBuf {
        self.workspace_dir.join("index.db")
    }

    /// The lock file of a running wake; never unlinked.
    pub fn lock_path(&self) -> PathBuf {
        self.workspace_dir.join(".wake-lock")
    }

    /// The preview of what a wake writes.
    pub fn live_path(&self) -> PathBuf {
        self.workspace_dir.join(".live")
    }

    /// The lock file of a running bot, which allows one poller per workspace.
    pub fn bot_lock_path(&self) -> PathBuf {
        self.workspace_dir.join(".bot-lock")
    }

    /// The local state of leases shared with other machines.
    pub fn lease_dir(&self) -> PathBuf {
        self.workspace_dir.join("lease")
    }

    /// An empty file, touched by programs that request a wake (`reveille_store::wake_lock::waker`).
    pub fn wake_request_path(&self) -> PathBuf {
        self.workspace_dir.join(".last-look")
    }

    /// The last report of `health check --quiet`.
    pub fn health_told_path(&self) -> PathBuf {
        self.workspace_dir.join(".health-told")
    }

    /// The git repository with the memory and the standing orders.
    pub fn repo_dir(&self) -> PathBuf {
        self.workspace_dir.join(&self.repo_name)
    }

    /// The folder of backups made before a purge.
    pub fn purged_dir(&self) -> PathBuf {
        self.workspace_dir.join("purged")
    }

    /// The folder of logs.
    pub fn logs_dir(&self) -> PathBuf {
        self.workspace_dir.join("logs")
    }

    /// The folder in which a webhook leaves updates.
    pub fn inbox_dir(&self) -> PathBuf {
        self.workspace_dir.join("inbox")
    }

    /// The folder of voice messages.
    pub fn voice_dir(&self) -> PathBuf {
        self.media_dir.join("voice")
    }

    /// The folder of other files from messages.
    pub fn files_dir(&self) -> PathBuf {
        self.media_dir.join("files")
    }

    /// The lock file for transcription, which needs much memory and runs once at a time.
    pub fn voice_lock_path(&self) -> PathBuf {
        self.workspace_dir.join(".voice-lock")
    }

    /// The folder with the input of a running Claude Code command.
    pub fn claude_code_dir(&self) -> PathBuf {
        self.workspace_dir.join("claude-code")
    }

    /// The folder that programs run by the model may write to.
    pub fn scratch_dir(&self) -> PathBuf {
        self.workspace_dir.join("scratch")
    }

    /// Copies of files that a command could change in granted folders, for undo.
    pub fn copies_dir(&self) -> PathBuf {
        self.workspace_dir.join("copies")
    }

    /// Files as they were at the time of approval, kept while the approved command runs.
    pub fn snapshots_dir(&self) -> PathBuf {
        self.workspace_dir.join("snapshots")
    }

    /// The list of allowed MCP servers, written only by a person.
    pub fn mcp_path(&self) -> PathBuf {
        self.workspace_dir.join("mcp.toml")
    }

    /// The working folders of MCP servers that are commands. They lie outside the scratch folder, so that other commands can't plant files
    /// there.
    pub fn mcp_dir(&self) -> PathBuf {
        // fault: servers-folder-lies-commands
        self.workspace_dir.join("mcp")
    }

    /// The accepted versions of MCP servers' tools.
    pub fn mcp_pins_dir(&self) -> PathBuf {
        self.workspace_dir.join("mcp-pins")
    }

    /// The token that grants use of our own MCP server.
    pub fn mcp_token_path(&self) -> PathBuf {
        self.workspace_dir.join("mcp-token")
    }

    /// The folder with the lock and the socket of a running page.
    pub fn page_dir(&self) -> PathBuf {
        self.workspace_dir.join("page")
    }

    /// The lock file of the served page.
    pub fn page_lock_path(&self) -> PathBuf {
        self.page_dir().join("lock")
    }

    /// The policy, written only by a person.
    pub fn policy_path(&self) -> PathBuf {
        self.workspace_dir.join("policy.toml")
    }
}

/// The whole environment as text. Invalid UTF-8 becomes replacement characters, which `raw` refuses in a setting.
fn read_environment() -> BTreeMap<String, String> {
    let text = |part: std::ffi::OsString| part.to_string_lossy().into_owned();
    // Without HOME, take the user's home from the system: its keys must be hidden as well.
    let home = std::env::home_dir().map(|home| ("HOME".to_owned(), text(home.into_os_string())));
    home.into_iter().chain(std::env::vars_os().map(|(name, value)| (text(name), text(value)))).collect()
}
