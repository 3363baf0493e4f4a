//! The second stage: turns raw values into typed ones, adds defaults, and checks settings against each other. All errors are
//! collected.

use std::{path::Path, time::Duration};

use chrono::NaiveTime;

use reveille_base::{disk::Reserve, redact::Secret, types::ChatRef, zone::Tz};

use super::{
    Autonomy, BedrockSettings, Config, ConfigError, EmbedModel, LogFormat, OFFLINE_MODEL, Provider, QuietHours,
    SettingProblem, VertexSettings, cloud, initiative, lease, lease::LeaseSettings, raw::Raw, values,
};

const DEFAULT_TELEGRAM_API_URL: &str = "https://api.telegram.org";
const DEFAULT_ANTHROPIC_BASE_URL: &str = "https://api.anthropic.com";
const DEFAULT_MODEL: &str = "claude-sonnet-5-5";
const DEFAULT_CLAUDE_CODE: &str = "claude";
/// OpenAI's own server.
pub const DEFAULT_OPENAI_BASE_URL: &str = "https://api.openai.com/v1";
const DEFAULT_GEMINI_BASE_URL: &str = "https://generativelanguage.googleapis.com";
/// The location that leaves the choice of data centre to Google.
const DEFAULT_LOCATION: &str = "global";
const DEFAULT_REPO_NAME: &str = "brain";
const DEFAULT_BUDGET_USD: f64 = 5.0;
const DEFAULT_WAKE_TIMEOUT: Duration = Duration::from_secs(60 * 60);
const DEFAULT_STALE_LOCK: Duration = Duration::from_secs(15 * 60);
const DEFAULT_PULL_EVERY: Duration = Duration::from_secs(30 * 60);
const DEFAULT_TELL_PER_DAY: u32 = 5;
const DEFAULT_IMAGES_MAX: usize = 8;
const DEFAULT_DISK_RESERVE: Reserve = Reserve::from_mib(100);
const DEFAULT_KEEP: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub(super) fn resolve_config(raw: Raw, system_zone: Option<&str>) -> Result<Config, ConfigError> {
    let (home, proxy_secrets) = (raw.home.clone(), raw.proxy_secrets.clone());
    let mut settings = Settings(raw);

    let telegram_token = settings.parse_setting("TELEGRAM_BOT_TOKEN", values::bot_token);
    let anthropic_key = settings.parse_setting("ANTHROPIC_API_KEY", values::api_key);
    let brave_key = settings.parse_setting("BRAVE_API_KEY", values::api_key);
    let embed_model = settings.parse_setting("EMBED_MODEL", |value| values::embed_model(value, home.as_deref()));
    let openai_key = settings.parse_setting("OPENAI_API_KEY", values::api_key);
    let openai_base_url = settings.parse_setting("OPENAI_BASE_URL", values::server_url);
    let openai_price = settings.parse_setting("OPENAI_PRICE", values::token_price);
    let gemini_key = settings.parse_setting("GEMINI_API_KEY", values::api_key);
    let gemini_base_url = settings.parse_setting("GEMINI_BASE_URL", values::server_url);
    let telegram_api_url = settings.parse_setting("TELEGRAM_API_URL", values::server_url);
    let anthropic_base_url = settings.parse_setting("ANTHROPIC_BASE_URL", values::server_url);
    let model = settings.parse_setting("MODEL", values::parse_models).unwrap_or_else(|| DEFAULT_MODEL.to_owned());
    let model_simple = settings.parse_setting("MODEL_SIMPLE", values::parse_model);
    let model_reflect = settings.parse_setting("MODEL_REFLECT", values::parse_model);
    let bedrock = settings.parse_bedrock();
    let vertex = settings.parse_vertex(home.as_deref());
    let claude_code = settings.parse_setting("CLAUDE_CODE", |value| values::parse_program(value, home.as_deref()));
    let claude_code_model = settings.parse_setting("CLAUDE_CODE_MODEL", values::parse_model);
    let claude_code_token = settings.parse_setting("CLAUDE_CODE_OAUTH_TOKEN", values::api_key);
    let allowed_chats = settings.parse_setting("ALLOWED_CHAT_IDS", values::parse_chats).unwrap_or_default();
    let owner_chat = settings.choose_owner(&allowed_chats);
    let is_owner_chosen = settings.0.get("OWNER_CHAT_ID").is_some();
    let repo_name = settings.parse_setting("REPO_NAME", values::repo_name);
    let repo_url = settings.parse_setting("REPO_URL", values::repo_url);
    let database_url = settings.parse_setting("DATABASE_URL", values::database_url);
    let database_password = settings.parse_setting("DATABASE_PASSWORD", values::parse_password);
    let media_dir = settings.parse_setting("MEDIA_DIR", |value| values::absolute_path(value, home.as_deref()));
    let lease = settings.parse_lease(repo_url.is_some());
    let timezone =
        settings.parse_setting("TIMEZONE", values::parse_timezone).unwrap_or_else(|| settings.choose_zone(system_zone));
    let autonomy = settings.parse_setting("AUTONOMY", values::parse_autonomy).unwrap_or(Autonomy::Smart);
    let initiative = settings.parse_setting("INITIATIVE", initiative::parse_initiative).unwrap_or_default();
    let daily_budget_usd = settings.parse_setting("DAILY_BUDGET_USD", values::budget_usd).unwrap_or(DEFAULT_BUDGET_USD);
    let monthly_budget_usd = settings.parse_setting("MONTHLY_BUDGET_USD", values::budget_usd);
    let wake_timeout =
        settings.parse_setting("WAKE_TIMEOUT_MIN", values::parse_minutes).unwrap_or(DEFAULT_WAKE_TIMEOUT);
    let stale_lock = settings.parse_setting("STALE_LOCK_MIN", values::parse_minutes).unwrap_or(DEFAULT_STALE_LOCK);
    let pull_every = settings.parse_setting("PULL_EVERY_MIN", values::parse_minutes).unwrap_or(DEFAULT_PULL_EVERY);
    let disk_reserve = settings.parse_setting("DISK_RESERVE_MB", values::disk_reserve).unwrap_or(DEFAULT_DISK_RESERVE);
    let keep = settings.parse_setting("KEEP_DAYS", values::parse_retention).unwrap_or(Some(DEFAULT_KEEP));
    let whisper_model = settings.parse_setting("WHISPER_MODEL", |value| values::absolute_path(value, home.as_deref()));
    let quiet_hours = settings.parse_setting("QUIET_HOURS", values::quiet_hours).unwrap_or_else(default_quiet_hours);
    let reflect_at =
        settings.parse_setting("REFLECT_AT", values::time_or_none).unwrap_or_else(|| NaiveTime::from_hms_opt(3, 30, 0));
    let tell_per_day = settings.parse_setting("TELL_PER_DAY", values::tell_per_day).unwrap_or(DEFAULT_TELL_PER_DAY);
    let images_max = settings.parse_setting("IMAGES_MAX", values::images_max).unwrap_or(DEFAULT_IMAGES_MAX);
    let log_level = settings.parse_setting("REVEILLE_LOG", values::log_level);
    let log_format = settings.parse_setting("LOG_FORMAT", values::log_format).unwrap_or(LogFormat::Text);
    // RUST_LOG belongs to all programs, so a bad value must not fail the start.
    let log_targets = settings.0.rust_log.take().and_then(|said| match values::log_targets(&said) {
        Ok(targets) => Some(targets),
        Err(expected) => {
            settings.0.notes.push(format!("RUST_LOG is ignored, because its value is wrong. Expected {expected}."));
            None
        }
    });
    let fixed_now = settings.parse_setting("REVEILLE_NOW", values::parse_now);

    let lack = |name: &str| match Provider::from_model(name) {
        Provider::Anthropic if anthropic_key.is_none() => Some("there is no ANTHROPIC_API_KEY"),
        Provider::OpenAi if openai_key.is_none() && openai_base_url.is_none() => {
            Some("neither OPENAI_API_KEY nor (for a server of your own) OPENAI_BASE_URL is set")
        }
        Provider::Bedrock => bedrock.describe_missing(),
        Provider::Vertex => vertex.describe_missing(),
        Provider::Anthropic | Provider::OpenAi | Provider::ClaudeCode | Provider::Offline => None,
    };
    // Without MODEL, the default model is no request, so a missing key needs no note.
    let said = if settings.0.get("MODEL").is_some() { model.as_str() } else { OFFLINE_MODEL };
    let is_chain = said.contains(',');
    let mut notes: Vec<String> = said
        .split(',')
        .filter_map(|name| {
            let lack = lack(name)?;
            Some(match is_chain {
                true => format!("MODEL names {name}, but {lack}, so I don't use it."),
                false => format!("MODEL is {name}, but {lack}, so I answer without an AI model."),
            })
        })
        .collect();
    for (setting, model) in [("MODEL_SIMPLE", &model_simple), ("MODEL_REFLECT", &model_reflect)] {
        let lacking = model.as_deref().and_then(|name| Some((name, lack(name)?)));
        notes.extend(lacking.map(|(name, lack)| format!("{setting} is {name}, but {lack}, so I don't use it.")));
    }
    settings.0.notes.extend(notes);
    if matches!(embed_model, Some(EmbedModel::Gemini(_))) && gemini_key.is_none() {
        let note = "EMBED_MODEL is a Gemini model, but there is no GEMINI_API_KEY, so I search the memory by keywords.";
        settings.0.notes.push(note.to_owned());
    }
    for (name, limit) in [
        ("DAILY_BUDGET_USD", format!("the limit is {DEFAULT_BUDGET_USD} USD a day")),
        ("MONTHLY_BUDGET_USD", "there is no monthly limit".to_owned()),
    ] {
        if settings.0.is_empty(name) {
            settings.0.notes.push(format!("{name} is empty: {limit}. Give an amount, or remove the line."));
        }
    }
    if let Some(now) = fixed_now {
        settings.0.notes.push(format!("REVEILLE_NOW is set, so the clock stands still at {}.", now.to_rfc3339()));
    }

    let Raw { workspace_dir, home, no_color, has_desktop, env_file, key_files, notes, problems, .. } = settings.0;
    let workspace_dir = match workspace_dir {
        Some(dir) if problems.is_empty() => dir,
        _ => return Err(ConfigError { problems }),
    };
    Ok(Config {
        media_dir: media_dir.unwrap_or_else(|| workspace_dir.clone()),
        workspace_dir,
        repo_name: repo_name.unwrap_or_else(|| DEFAULT_REPO_NAME.to_owned()),
        repo_url,
        database_url,
        database_password: database_password.map(Secret::new),
        lease,
        telegram_token: telegram_token.map(Secret::new),
        telegram_api_url: telegram_api_url.unwrap_or_else(|| DEFAULT_TELEGRAM_API_URL.to_owned()),
        allowed_chats,
        owner_chat,
        is_owner_chosen,
        anthropic_key: anthropic_key.map(Secret::new),
        anthropic_base_url: anthropic_base_url.unwrap_or_else(|| DEFAULT_ANTHROPIC_BASE_URL.to_owned()),
        bedrock,
        vertex,
        model,
        model_simple,
        model_reflect,
        chosen_model: None,
        claude_code: claude_code.unwrap_or_else(|| DEFAULT_CLAUDE_CODE.into()),
        images_max,
        claude_code_model: claude_code_model.unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
        claude_code_token: claude_code_token.map(Secret::new),
        brave_key: brave_key.map(Secret::new),
        embed_model,
        openai_base_url: openai_base_url.unwrap_or_else(|| DEFAULT_OPENAI_BASE_URL.to_owned()),
        openai_key: openai_key.map(Secret::new),
        openai_price,
        gemini_base_url: gemini_base_url.unwrap_or_else(|| DEFAULT_GEMINI_BASE_URL.to_owned()),
        gemini_key: gemini_key.map(Secret::new),
        proxy_secrets,
        timezone,
        autonomy,
        initiative,
        daily_budget_usd,
        monthly_budget_usd,
        wake_timeout,
        stale_lock,
        pull_every,
        disk_reserve,
        keep,
        whisper_model,
        quiet_hours,
        reflect_at,
        tell_per_day,
        fixed_now,
        log_level,
        log_targets,
        log_format,
        has_desktop: has_desktop || cfg!(target_os = "macos"),
        no_color,
        env_file,
        named_env_file: None,
        key_files,
        home,
        notes,
    })
}

/// The default quiet hours: 22:00 to 07:00.
fn default_quiet_hours() -> Option<QuietHours> {
    let (from, until) = (NaiveTime::from_hms_opt(22, 0, 0)?, NaiveTime::from_hms_opt(7, 0, 0)?);
    Some(QuietHours { from, until })
}

/// Raw settings being parsed. Wrong values are collected as problems.
struct Settings(Raw);

impl Settings {
    /// Parses a setting; `None` if the value is missing or wrong.
    fn parse_setting<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let said = self.0.get(name)?;
        match parse(&said.value) {
            Ok(value) => Some(value),
            Err(expected) => {
                let what = format!("expected {expected}; got {}", Raw::format_value(name, &said.value));
                let source = Some(said.source.clone());
                self.0.problems.push(SettingProblem { subject: name.to_owned(), source, what });
                None
            }
        }
    }

    fn parse_bedrock(&mut self) -> BedrockSettings {
        BedrockSettings {
            region: self.parse_setting("AWS_REGION", values::aws_region),
            base_url: self.parse_setting("BEDROCK_BASE_URL", values::server_url),
            bearer_token: self.parse_setting("AWS_BEARER_TOKEN_BEDROCK", values::api_key).map(Secret::new),
            access_key_id: self.parse_setting("AWS_ACCESS_KEY_ID", values::aws_key_id),
            secret_access_key: self.parse_setting("AWS_SECRET_ACCESS_KEY", values::api_key).map(Secret::new),
            session_token: self.parse_setting("AWS_SESSION_TOKEN", values::api_key).map(Secret::new),
        }
    }

    fn parse_vertex(&mut self, home: Option<&Path>) -> VertexSettings {
        let location = self.parse_setting("GOOGLE_CLOUD_LOCATION", values::google_location);
        let login = self.parse_setting("GOOGLE_APPLICATION_CREDENTIALS", |value| values::absolute_path(value, home));
        // Hide the file from programs that the model runs. The folder of the `gcloud` tool is hidden from them anyway.
        self.0.key_files.extend(login.clone());
        let login = login.or_else(|| cloud::gcloud_login(home));
        VertexSettings {
            project: self.parse_setting("GOOGLE_CLOUD_PROJECT", values::google_project),
            location: location.unwrap_or_else(|| DEFAULT_LOCATION.to_owned()),
            login,
            workspace: self.parse_setting("VERTEX_WORKSPACE", values::vertex_workspace),
            base_url: self.parse_setting("VERTEX_BASE_URL", values::server_url),
        }
    }

    /// Parses the lease settings. Several machines meet at the remote, so `LEASE=remote` requires one.
    fn parse_lease(&mut self, has_remote: bool) -> LeaseSettings {
        let default = LeaseSettings::default();
        let needs_remote = "local; or also set REPO_URL, the remote that the machines share".to_owned();
        let home = self.parse_setting("LEASE", |value| match lease::parse_home(value)? {
            lease::LeaseHome::Remote if !has_remote => Err(needs_remote),
            home => Ok(home),
        });
        LeaseSettings {
            home: home.unwrap_or_default(),
            reference: self.parse_setting("LEASE_REF", lease::parse_reference).unwrap_or(default.reference),
            name: self.parse_setting("LEASE_NAME", lease::name),
            term: self.parse_setting("LEASE_TERM_S", lease::parse_term).unwrap_or(default.term),
            duty: self.parse_setting("LEASE_DUTY", lease::parse_duty).unwrap_or_default(),
        }
    }

    /// Chooses the chat for unasked messages, always an allowed one.
    fn choose_owner(&mut self, allowed: &[ChatRef]) -> ChatRef {
        let first_person = allowed.iter().copied().find(|chat| !chat.is_group()).unwrap_or(ChatRef::TERMINAL);
        let chosen = self.parse_setting("OWNER_CHAT_ID", |value| {
            let chat = values::owner_chat(value)?;
            if chat.is_terminal() || allowed.contains(&chat) {
                Ok(chat)
            } else {
                Err("one of ALLOWED_CHAT_IDS, or 0 for the terminal".to_owned())
            }
        });
        chosen.unwrap_or(first_person)
    }

    /// The system's zone, or UTC with a note if the system's zone is unknown.
    fn choose_zone(&mut self, system_zone: Option<&str>) -> Tz {
        system_zone.and_then(|name| name.parse().ok()).unwrap_or_else(|| {
            let note = "I don't know the system's time zone, so times are in UTC until you set TIMEZONE.";
            self.0.notes.push(note.to_owned());
            Tz::UTC
        })
    }
}
