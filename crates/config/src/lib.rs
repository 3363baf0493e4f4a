//! The only place that reads the environment.
//!
//! Settings are read in two stages: `raw` gathers what was said, and where (the environment, `.env`, a secret's own
//! file); `resolve` turns it into the typed [`Config`] that the rest of the program is handed. Every problem is
//! collected, so that a person corrects all of them at once. Nothing here changes while the program runs: state lives
//! in the workspace.

mod cloud;
mod env_file;
mod error;
mod files;
mod initiative;
mod lease;
mod model_name;
mod old;
mod raw;
mod resolve;
mod said;
#[cfg(test)]
mod tests;
mod types;
mod values;

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
    words::in_shell,
    zone::Tz,
};

pub use self::resolve::DEFAULT_OPENAI_BASE_URL;
pub use self::{
    cloud::{BedrockSettings, VertexSettings},
    env_file::EditError,
    error::{ConfigError, SettingProblem},
    initiative::InitiativeLevel,
    lease::{Duty, LeaseHome, LeaseSettings},
    model_name::Provider,
    old::OldSetting,
    raw::{Source, VARIABLES},
    said::{SaidSettings, SettingChanges, check_value, file_setting, is_secret},
    types::{Autonomy, EmbedModel, LogFormat, QuietHours, RepoUrl},
};
pub use {
    files::{MAX_BYTES, read_private},
    lease::{MAX_NAME_CHARS, MAX_TERM_S},
    values::{is_loopback, is_passed_on, server_url as safe_server_url, works_here},
};

/// The name of the model that needs no key and no network.
pub const OFFLINE_MODEL: &str = "offline";

/// The name of the model that is the Claude Code command.
pub const CLAUDE_CODE: &str = "claude-code";

/// The settings of one run, checked and resolved.
#[derive(Debug, Clone)]
pub struct Config {
    /// Everything that Reveille keeps is below this absolute path (`WORKSPACE_DIR`), but for what other settings name a place for.
    pub workspace_dir: PathBuf,
    /// The plain name of the git repository's directory in the workspace (`REPO_NAME`).
    pub repo_name: String,
    /// Where the repository is cloned from at the first run, and what `origin` must then be (`REPO_URL`).
    pub repo_url: Option<RepoUrl>,
    /// A PostgreSQL that several machines share, in place of the workspace's own database (`DATABASE_URL`).
    pub database_url: Option<String>,
    /// The password to it (`DATABASE_PASSWORD`).
    pub database_password: Option<Secret>,
    /// Where the files that come with messages are kept (`MEDIA_DIR`): the workspace, or a folder that all machines of one database see.
    pub media_dir: PathBuf,
    /// Who works when several machines share this memory (`LEASE` and its like).
    pub lease: LeaseSettings,
    /// The bot's token, shaped `<bot id>:<secret>` (`TELEGRAM_BOT_TOKEN`).
    pub telegram_token: Option<Secret>,
    /// Telegram's server, without a slash at the end (`TELEGRAM_API_URL`).
    pub telegram_api_url: String,
    /// The chats, and in groups the people, who are listened to; each once, in the order given (`ALLOWED_CHAT_IDS`). Those who
    /// paired are joined by `reveille_store::access::admitted`.
    pub allowed_chats: Vec<ChatRef>,
    /// The one chat that is spoken to unasked; [`ChatRef::TERMINAL`] when nobody is allowed yet (`OWNER_CHAT_ID`).
    pub owner_chat: ChatRef,
    /// Whether `OWNER_CHAT_ID` says so: nobody who pairs becomes the owner then.
    pub is_owner_chosen: bool,
    /// The key to the Messages API (`ANTHROPIC_API_KEY`).
    pub anthropic_key: Option<Secret>,
    /// The Messages API's server, without a slash at the end (`ANTHROPIC_BASE_URL`).
    pub anthropic_base_url: String,
    /// Claude on Amazon Bedrock.
    pub bedrock: BedrockSettings,
    /// Claude on Google Cloud.
    pub vertex: VertexSettings,
    /// The models that were asked for, the preferred one first, with commas between (`MODEL`); what is used is [`Config::chain`].
    pub model: String,
    /// The model that begins what somebody asks, and keeps what its plan calls quick (`MODEL_SIMPLE`).
    pub model_simple: Option<String>,
    /// The model that looks back at days (`MODEL_REFLECT`).
    pub model_reflect: Option<String>,
    /// The model that the owner has chosen in a chat in its place; see `reveille_store::in_force`.
    pub chosen_model: Option<String>,
    /// The Claude Code command, by its path or its name (`CLAUDE_CODE`).
    pub claude_code: PathBuf,
    /// How many pictures one conversation begins with, the newest (`IMAGES_MAX`).
    pub images_max: usize,
    /// The model that Claude Code asks (`CLAUDE_CODE_MODEL`).
    pub claude_code_model: String,
    /// The long-lived token of a subscription, as `claude setup-token` gives it (`CLAUDE_CODE_OAUTH_TOKEN`).
    pub claude_code_token: Option<Secret>,
    /// The key to Brave's search; without one DuckDuckGo is asked (`BRAVE_API_KEY`).
    pub brave_key: Option<Secret>,
    /// What makes vectors of what is searched; none: keywords alone serve (`EMBED_MODEL`).
    pub embed_model: Option<EmbedModel>,
    /// An OpenAI-compatible API, without a slash at the end (`OPENAI_BASE_URL`).
    pub openai_base_url: String,
    /// The key to it, which nobody else gets; servers on this machine need none (`OPENAI_API_KEY`).
    pub openai_key: Option<Secret>,
    /// What that server's models cost, in US dollars for a million tokens in and out; none: it isn't known (`OPENAI_PRICE`).
    pub openai_price: Option<(f64, f64)>,
    /// The Gemini API's server, without a slash at the end (`GEMINI_BASE_URL`).
    pub gemini_base_url: String,
    /// The key to it (`GEMINI_API_KEY`).
    pub gemini_key: Option<Secret>,
    /// Passwords in the addresses of proxies (`HTTPS_PROXY` and the like). They are for the programs that dial, and masked elsewhere.
    pub proxy_secrets: Vec<Secret>,
    /// The zone in which the person lives (`TIMEZONE`).
    pub timezone: Tz,
    /// How much may be done without asking (`AUTONOMY`).
    pub autonomy: Autonomy,
    /// What model calls may cost a day, in US dollars (`DAILY_BUDGET_USD`).
    pub daily_budget_usd: f64,
    /// What model calls may cost in a civil month, in US dollars; `None`: no bound (`MONTHLY_BUDGET_USD`).
    pub monthly_budget_usd: Option<f64>,
    /// The longest that one wake may take (`WAKE_TIMEOUT_MIN`).
    pub wake_timeout: Duration,
    /// A wake that shows no life for so long is replaced by the next one. Health tells of one that outlives its time-out by
    /// as much, and of a cycle or a reply that lies about for as long (`STALE_LOCK_MIN`).
    pub stale_lock: Duration,
    /// The shortest time between two fetches without another reason (`PULL_EVERY_MIN`).
    pub pull_every: Duration,
    /// The room on the workspace's disk that is left for answering what is queued (`DISK_RESERVE_MB`).
    pub disk_reserve: Reserve,
    /// For how long what is only looked back at is kept; `None`: for ever (`KEEP_DAYS`).
    pub keep: Option<Duration>,
    /// The file of the speech model (`WHISPER_MODEL`).
    pub whisper_model: Option<PathBuf>,
    /// When nobody is spoken to unasked; `None` if there is no such time (`QUIET_HOURS`).
    pub quiet_hours: Option<QuietHours>,
    /// From when on in the day it looks back at the days before; `None`: never (`REFLECT_AT`).
    pub reflect_at: Option<NaiveTime>,
    /// How often it looks for something worth doing that nobody asked for (`INITIATIVE`).
    pub initiative: InitiativeLevel,
    /// How often a day the person may be spoken to unasked (`TELL_PER_DAY`).
    pub tell_per_day: u32,
    /// The time at which this process's clock stands still (`REVEILLE_NOW`).
    pub fixed_now: Option<DateTime<Utc>>,
    /// What is logged (`REVEILLE_LOG`); none: whatever suits the program.
    pub log_level: Option<tracing::Level>,
    /// The same by module, and before it (`RUST_LOG`).
    pub log_targets: Option<Targets>,
    /// In which form the files of the log are kept (`LOG_FORMAT`).
    pub log_format: LogFormat,
    /// Whether this process can reach a desktop that shows notifications.
    pub has_desktop: bool,
    /// Whether `NO_COLOR` asks for plain output, or the terminal shows nothing else (`TERM=dumb`).
    pub no_color: bool,
    /// The `.env` that was read, if any.
    pub env_file: Option<PathBuf>,
    /// The same, if `--env-file` named it: what we start has to be given it, too.
    pub named_env_file: Option<PathBuf>,
    /// The files that hold keys, as `TELEGRAM_BOT_TOKEN_FILE` and its like name them.
    pub key_files: Vec<PathBuf>,
    /// The person's home directory, for `~/` in their policy.
    pub home: Option<PathBuf>,
    /// What a person may want to know although it isn't wrong, a sentence each.
    pub notes: Vec<String>,
}

impl Config {
    /// Reads the settings of this process; `env_file` is read in place of the workspace's `.env`.
    ///
    /// # Errors
    /// Every setting that is wrong, by name. Binaries print it and exit with `cli::EXIT_CONFIG`.
    pub fn load(env_file: Option<&Path>) -> Result<Self, ConfigError> {
        let absolute = env_file.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
        let zone = iana_time_zone::get_timezone().ok();
        let mut config = Self::from_sources(&environment(), absolute.as_deref(), zone.as_deref())?;
        if let Ok(cwd) = std::env::current_dir() {
            config.pass_over(&cwd);
        }
        Ok(config)
    }

    /// Reads the settings from a given environment, a file that is read in place of the workspace's `.env`, and the name of the
    /// system's time zone.
    ///
    /// # Errors
    /// Every setting that is wrong, by name.
    pub fn from_sources(
        env: &BTreeMap<String, String>,
        env_file: Option<&Path>,
        system_zone: Option<&str>,
    ) -> Result<Self, ConfigError> {
        let mut config = resolve::resolve(raw::Raw::gather(env, env_file), system_zone)?;
        config.named_env_file = env_file.map(Path::to_owned);
        Ok(config)
    }

    /// Tells of an `.env` in the current directory, which counted once where the workspace has none. What a folder from elsewhere
    /// says must choose neither where the key and the memory are sent nor whether we start.
    fn pass_over(&mut self, cwd: &Path) {
        let Some((path, names)) = raw::passed_over(cwd).filter(|_| self.env_file.is_none()) else { return };
        let own = self.workspace_dir.join(".env");
        let command = if names.contains(&"WORKSPACE_DIR") {
            format!("start with --env-file {}", in_shell(&path))
        } else {
            format!("mkdir -p -m 700 {} && mv {} {}", in_shell(&self.workspace_dir), in_shell(&path), in_shell(&own))
        };
        let names = names.join(", ");
        self.notes.push(format!(
            "{} isn't read: settings come from the environment and from {}. It sets {names}. If these are your settings: {command}",
            path.display(),
            own.display(),
        ));
        // It may hold keys: it stays as hidden from programs as if it counted.
        self.key_files.push(path);
    }

    /// What the bot can't do without: a token. Whom it listens to can be settled by pairing.
    ///
    /// # Errors
    /// Names what is missing.
    pub fn require_telegram(&self) -> Result<&Secret, ConfigError> {
        let what = "the bot needs a token: ask @BotFather on Telegram for one";
        let missing = || ConfigError { problems: vec![SettingProblem::new("TELEGRAM_BOT_TOKEN", what)] };
        self.telegram_token.as_ref().ok_or_else(missing)
    }

    /// The bot's own numeric id, which its token begins with.
    pub fn bot_id(&self) -> Option<i64> {
        self.telegram_token.as_ref().and_then(|token| values::bot_id(token.expose()))
    }

    /// The models that were asked for, in their order.
    pub fn said_models(&self) -> impl Iterator<Item = &str> {
        self.model.split(',').map(str::trim)
    }

    /// The models that are wanted: the one chosen, then those asked for.
    fn wanted_models(&self) -> impl Iterator<Item = &str> {
        self.chosen_model.as_deref().into_iter().chain(self.said_models())
    }

    /// The models that may be asked, the preferred one first: those wanted, without any whose needs aren't set. Where that leaves none, or
    /// [`OFFLINE_MODEL`] is reached, which always answers, the chain ends with that. Each once, never empty.
    pub fn chain(&self) -> Vec<&str> {
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

    /// The model that is asked first.
    pub fn effective_model(&self) -> &str {
        self.wanted_models().find(|name| self.can_use(name)).unwrap_or(OFFLINE_MODEL)
    }

    /// Whether the model of this name works on this machine, costs nothing and sends nothing elsewhere.
    pub fn is_local(&self, name: &str) -> bool {
        match Provider::of(name) {
            Provider::Offline => true,
            Provider::OpenAi => works_here(&self.openai_base_url, name, self.openai_key.is_some()),
            Provider::Anthropic | Provider::Bedrock | Provider::Vertex | Provider::ClaudeCode => false,
        }
    }

    /// Whether nothing is paid for the model of this name: it works here, or its price is none.
    pub fn is_free(&self, name: &str) -> bool {
        self.is_local(name) || Provider::of(name) == Provider::OpenAi && self.openai_price == Some((0.0, 0.0))
    }

    /// Whether what the model of this name needs is set. [`CLAUDE_CODE`] may have a login of its own.
    pub fn can_use(&self, name: &str) -> bool {
        self.lack(name).is_none()
    }

    /// What the model of this name needs and isn't set, in words; none: it can be used.
    pub fn lack(&self, name: &str) -> Option<&'static str> {
        match Provider::of(name) {
            Provider::Anthropic if self.anthropic_key.is_none() => Some("there is no ANTHROPIC_API_KEY"),
            // OpenAI itself wants a key; another server may not.
            Provider::OpenAi
                if self.openai_key.is_none() && self.openai_base_url == resolve::DEFAULT_OPENAI_BASE_URL =>
            {
                Some("there is neither OPENAI_API_KEY nor, for a server of your own, OPENAI_BASE_URL")
            }
            Provider::Bedrock => self.bedrock.lack(),
            Provider::Vertex => self.vertex.lack(),
            Provider::Anthropic | Provider::OpenAi | Provider::ClaudeCode | Provider::Offline => None,
        }
    }

    /// The clock of this process: the machine's, or one that stands still at `REVEILLE_NOW`.
    pub fn clock(&self) -> Box<dyn Clock> {
        match self.fixed_now {
            Some(now) => Box::new(FixedClock(now)),
            None => Box::new(SystemClock),
        }
    }

    /// What a program of ours has to be started with so that it reads the settings that we read.
    pub fn settings_arguments(&self) -> Vec<OsString> {
        self.named_env_file.iter().flat_map(|path| ["--env-file".into(), path.clone().into_os_string()]).collect()
    }

    /// Everything that must not reach a log, a message, a prompt or a commit.
    pub fn secrets(&self) -> Vec<Secret> {
        let passwords = self.repo_url.iter().flat_map(RepoUrl::secrets);
        let keys = self.telegram_token.iter().chain(&self.anthropic_key).chain(&self.claude_code_token);
        let keys = keys.chain(&self.brave_key).chain(&self.openai_key).chain(&self.gemini_key);
        let keys = keys.chain(self.bedrock.secrets()).chain(&self.database_password);
        keys.chain(&self.proxy_secrets).cloned().chain(passwords).collect()
    }

    /// The queue, the journal, the ledger: one SQLite file, unless [`Config::database_url`] names a database.
    pub fn db_path(&self) -> PathBuf {
        self.workspace_dir.join("messages.db")
    }

    /// The index of the memory: derived, and made anew when it is gone.
    pub fn index_path(&self) -> PathBuf {
        self.workspace_dir.join("index.db")
    }

    /// Locked while a wake runs; never unlinked.
    pub fn lock_path(&self) -> PathBuf {
        self.workspace_dir.join(".wake-lock")
    }

    /// Locked while a bot runs: one poller per workspace.
    pub fn bot_lock_path(&self) -> PathBuf {
        self.workspace_dir.join(".bot-lock")
    }

    /// What this machine knows of the leases that it shares with others.
    pub fn lease_dir(&self) -> PathBuf {
        self.workspace_dir.join("lease")
    }

    /// Empty, and touched whenever a program has a wake look (`cycle::waker`).
    pub fn look_path(&self) -> PathBuf {
        self.workspace_dir.join(".last-look")
    }

    /// What `health check --quiet` has told.
    pub fn health_told_path(&self) -> PathBuf {
        self.workspace_dir.join(".health-told")
    }

    /// The git repository: the memory and the standing orders.
    pub fn repo_dir(&self) -> PathBuf {
        self.workspace_dir.join(&self.repo_name)
    }

    /// The folder in which histories are kept as they were before a purge.
    pub fn purged_dir(&self) -> PathBuf {
        self.workspace_dir.join("purged")
    }

    /// Where logs go.
    pub fn logs_dir(&self) -> PathBuf {
        self.workspace_dir.join("logs")
    }

    /// Where a webhook leaves updates, for the next turn.
    pub fn inbox_dir(&self) -> PathBuf {
        self.workspace_dir.join("inbox")
    }

    /// Where voice messages are kept.
    pub fn voice_dir(&self) -> PathBuf {
        self.media_dir.join("voice")
    }

    /// Where other files that came with messages are kept.
    pub fn files_dir(&self) -> PathBuf {
        self.media_dir.join("files")
    }

    /// Locked while recordings are listened to: one at a time, it takes memory.
    pub fn voice_lock_path(&self) -> PathBuf {
        self.workspace_dir.join(".voice-lock")
    }

    /// What a run of the Claude Code command is given; there while one runs.
    pub fn claude_code_dir(&self) -> PathBuf {
        self.workspace_dir.join("claude-code")
    }

    /// What programs that the model runs may write to.
    pub fn scratch_dir(&self) -> PathBuf {
        self.workspace_dir.join("scratch")
    }

    /// Copies of what a command could change in granted folders, for undoing it.
    pub fn copies_dir(&self) -> PathBuf {
        self.workspace_dir.join("copies")
    }

    /// Files as they were when a yes was asked for, while the command runs that it allows.
    pub fn snapshots_dir(&self) -> PathBuf {
        self.workspace_dir.join("snapshots")
    }

    /// The MCP servers whose tools may be used, written by a person alone.
    pub fn mcp_path(&self) -> PathBuf {
        self.workspace_dir.join("mcp.toml")
    }

    /// Where those servers that are commands run, a folder each: apart from the scratch, where a command could plant what they load.
    pub fn mcp_dir(&self) -> PathBuf {
        // fault: servers-folder-lies-commands
        self.workspace_dir.join("mcp")
    }

    /// What was accepted of those servers.
    pub fn mcp_pins_dir(&self) -> PathBuf {
        self.workspace_dir.join("mcp-pins")
    }

    /// Whoever knows what stands here may use our own MCP server.
    pub fn mcp_token_path(&self) -> PathBuf {
        self.workspace_dir.join("mcp-token")
    }

    /// What a running page is found by: its lock and its socket.
    pub fn page_dir(&self) -> PathBuf {
        self.workspace_dir.join("page")
    }

    /// Locked while the page is served.
    pub fn page_lock_path(&self) -> PathBuf {
        self.page_dir().join("lock")
    }

    /// What Reveille may do, written by a person alone.
    pub fn policy_path(&self) -> PathBuf {
        self.workspace_dir.join("policy.toml")
    }
}

/// The whole environment as text. What isn't UTF-8 becomes replacement characters, which `raw` refuses in a setting.
fn environment() -> BTreeMap<String, String> {
    let text = |part: std::ffi::OsString| part.to_string_lossy().into_owned();
    // Without a HOME there is the one that the system has for the user: the keys in it are to be hidden all the same.
    let home = std::env::home_dir().map(|home| ("HOME".to_owned(), text(home.into_os_string())));
    home.into_iter().chain(std::env::vars_os().map(|(name, value)| (text(name), text(value)))).collect()
}
