//! The second stage: turns raw values into typed ones and checks settings against each other. All errors are collected.

use std::path::Path;

use reveille_base::{redact::Secret, types::ChatRef, zone::Tz};

use super::{
    BedrockSettings, Config, ConfigError, EmbedModel, SettingProblem, VertexSettings, cloud, initiative, lease,
    lease::LeaseSettings, raw::Raw, table, telegram_rich, values, while_working,
};

/// OpenAI's own server.
pub const DEFAULT_OPENAI_BASE_URL: &str = table::OPENAI_BASE_URL;

pub(super) fn resolve_config(raw: Raw, system_zone: Option<&str>) -> Result<Config, ConfigError> {
    let mut settings = Settings(raw);
    let config = settings.build_config(system_zone);
    let Settings(mut raw) = settings;
    match config {
        Some(config) if raw.problems.is_empty() => {
            raw.notes.extend(list_notes(&config, &raw));
            Ok(Config { notes: raw.notes, key_files: raw.key_files, ..config })
        }
        _ => Err(ConfigError { problems: raw.problems }),
    }
}

/// Lists remarks on valid settings that don't do what one may expect.
fn list_notes(config: &Config, raw: &Raw) -> Vec<String> {
    let mut notes = Vec::new();
    // Without MODEL, no model is wanted yet.
    if raw.get("MODEL").is_some() {
        let is_chain = config.model.contains(',');
        notes.extend(config.requested_models().filter_map(|name| {
            let missing = config.describe_missing(name)?;
            Some(match is_chain {
                true => format!("MODEL names {name}, but {missing}, so I don't use it."),
                false => format!("MODEL is {name}, but {missing}, so I answer without an AI model."),
            })
        }));
    }
    for (setting, model) in [("MODEL_SIMPLE", &config.model_simple), ("MODEL_REFLECT", &config.model_reflect)] {
        let missing = model.as_deref().and_then(|name| Some((name, config.describe_missing(name)?)));
        notes.extend(missing.map(|(name, missing)| format!("{setting} is {name}, but {missing}, so I don't use it.")));
    }
    if matches!(config.embed_model, Some(EmbedModel::Gemini(_))) && config.gemini_key.is_none() {
        let note = "EMBED_MODEL is a Gemini model, but there is no GEMINI_API_KEY, so I search the memory by keywords.";
        notes.push(note.to_owned());
    }
    for (name, limit) in [
        ("DAILY_BUDGET_USD", format!("the limit is {} USD a day", table::find_default("DAILY_BUDGET_USD"))),
        ("MONTHLY_BUDGET_USD", "there is no monthly limit".to_owned()),
    ] {
        if raw.is_empty(name) {
            notes.push(format!("{name} is empty: {limit}. Give an amount, or remove the line."));
        }
    }
    if let Some(now) = config.fixed_now {
        notes.push(format!("REVEILLE_NOW is set, so the clock stands still at {}.", now.to_rfc3339()));
    }
    notes
}

/// Raw settings being parsed. Wrong values are collected as problems.
struct Settings(Raw);

impl Settings {
    /// Parses all settings. Wrong values are recorded as problems and replaced by their defaults, so that all are found. `None` if the
    /// workspace is unknown, which is a problem already recorded.
    fn build_config(&mut self, system_zone: Option<&str>) -> Option<Config> {
        let home = self.0.home.clone();
        let home = home.as_deref();
        let allowed_chats = self.parse_given("ALLOWED_CHAT_IDS", values::parse_chats).unwrap_or_default();
        let repo_url = self.parse_given("REPO_URL", values::parse_repo_url);
        let media_dir = self.parse_given("MEDIA_DIR", |value| values::parse_absolute_path(value, home));
        let timezone = self.parse_given("TIMEZONE", values::parse_timezone);
        let config = Config {
            repo_name: self.parse("REPO_NAME", values::parse_repo_name)?,
            database_url: self.parse_given("DATABASE_URL", values::parse_database_url),
            database_password: self.parse_secret("DATABASE_PASSWORD", values::parse_password),
            lease: self.parse_lease(repo_url.is_some())?,
            repo_url,
            telegram_token: self.parse_secret("TELEGRAM_BOT_TOKEN", values::parse_bot_token),
            telegram_api_url: self.parse("TELEGRAM_API_URL", values::parse_server_url)?,
            owner_chat: self.choose_owner(&allowed_chats),
            is_owner_chosen: self.0.get("OWNER_CHAT_ID").is_some(),
            allowed_chats,
            anthropic_key: self.parse_secret("ANTHROPIC_API_KEY", values::parse_api_key),
            anthropic_base_url: self.parse("ANTHROPIC_BASE_URL", values::parse_server_url)?,
            bedrock: self.parse_bedrock(),
            vertex: self.parse_vertex(home)?,
            model: self.parse("MODEL", values::parse_models)?,
            model_simple: self.parse_given("MODEL_SIMPLE", values::parse_model),
            model_reflect: self.parse_given("MODEL_REFLECT", values::parse_model),
            chosen_model: None,
            claude_code: self.parse("CLAUDE_CODE", |value| values::parse_program(value, home))?,
            images_max: self.parse("IMAGES_MAX", values::parse_images_max)?,
            claude_code_model: self.parse("CLAUDE_CODE_MODEL", values::parse_model)?,
            claude_code_token: self.parse_secret("CLAUDE_CODE_OAUTH_TOKEN", values::parse_api_key),
            brave_key: self.parse_secret("BRAVE_API_KEY", values::parse_api_key),
            embed_model: self.parse_given("EMBED_MODEL", |value| values::parse_embed_model(value, home)),
            openai_base_url: self.parse("OPENAI_BASE_URL", values::parse_server_url)?,
            openai_key: self.parse_secret("OPENAI_API_KEY", values::parse_api_key),
            openai_price: self.parse_given("OPENAI_PRICE", values::parse_token_price),
            gemini_base_url: self.parse("GEMINI_BASE_URL", values::parse_server_url)?,
            gemini_key: self.parse_secret("GEMINI_API_KEY", values::parse_api_key),
            proxy_secrets: self.0.proxy_secrets.clone(),
            timezone: timezone.unwrap_or_else(|| self.choose_zone(system_zone)),
            autonomy: self.parse("AUTONOMY", values::parse_autonomy)?,
            initiative: self.parse("INITIATIVE", initiative::parse_initiative)?,
            telegram_rich: self.parse("TELEGRAM_RICH", telegram_rich::parse_telegram_rich)?,
            while_working: self.parse("WHILE_WORKING", while_working::parse_while_working)?,
            daily_budget_usd: self.parse("DAILY_BUDGET_USD", values::parse_budget_usd)?,
            monthly_budget_usd: self.parse_given("MONTHLY_BUDGET_USD", values::parse_budget_usd),
            wake_timeout: self.parse("WAKE_TIMEOUT_MIN", values::parse_minutes)?,
            stale_lock: self.parse("STALE_LOCK_MIN", values::parse_minutes)?,
            pull_every: self.parse("PULL_EVERY_MIN", values::parse_minutes)?,
            disk_reserve: self.parse("DISK_RESERVE_MB", values::parse_disk_reserve)?,
            keep: self.parse("KEEP_DAYS", values::parse_retention)?,
            whisper_model: self.parse_given("WHISPER_MODEL", |value| values::parse_absolute_path(value, home)),
            quiet_hours: self.parse("QUIET_HOURS", values::parse_quiet_hours)?,
            reflect_at: self.parse("REFLECT_AT", values::parse_optional_time)?,
            tell_per_day: self.parse("TELL_PER_DAY", values::parse_tell_per_day)?,
            fixed_now: self.parse_given("REVEILLE_NOW", values::parse_now),
            // Its default holds for files alone: a terminal shows less.
            log_level: self.parse_given("REVEILLE_LOG", values::parse_log_level),
            log_targets: self.parse_log_targets(),
            log_format: self.parse("LOG_FORMAT", values::parse_log_format)?,
            has_desktop: self.0.has_desktop || cfg!(target_os = "macos"),
            no_color: self.0.no_color,
            env_file: self.0.env_file.clone(),
            named_env_file: None,
            home: self.0.home.clone(),
            key_files: Vec::new(),
            notes: Vec::new(),
            workspace_dir: self.0.workspace_dir.clone()?,
            media_dir: media_dir.or_else(|| self.0.workspace_dir.clone())?,
        };
        Some(config)
    }

    /// Parses a setting's value; its default if the value is missing or wrong. `None` if the table's default is wrong.
    fn parse<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        self.parse_given(name, &parse).or_else(|| parse(table::find_default(name)).ok())
    }

    /// Parses a secret; `None` if the value is missing or wrong.
    fn parse_secret(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<String, String>) -> Option<Secret> {
        self.parse_given(name, parse).map(Secret::new)
    }

    /// Parses `RUST_LOG`. It belongs to all programs, so a bad value must not fail the start.
    fn parse_log_targets(&mut self) -> Option<tracing_subscriber::filter::Targets> {
        let given = self.0.rust_log.take()?;
        let parsed = values::parse_log_targets(&given);
        if let Err(expected) = &parsed {
            self.0.notes.push(format!("RUST_LOG is ignored, because its value is wrong. Expected {expected}."));
        }
        parsed.ok()
    }

    /// Parses a setting; `None` if the value is missing or wrong.
    fn parse_given<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let given = self.0.get(name)?;
        match parse(&given.value) {
            Ok(value) => Some(value),
            Err(expected) => {
                let what = format!("expected {expected}; got {}", Raw::format_value(name, &given.value));
                let source = Some(given.source.clone());
                self.0.problems.push(SettingProblem { subject: name.to_owned(), source, what });
                None
            }
        }
    }

    fn parse_bedrock(&mut self) -> BedrockSettings {
        BedrockSettings {
            region: self.parse_given("AWS_REGION", values::parse_aws_region),
            base_url: self.parse_given("BEDROCK_BASE_URL", values::parse_server_url),
            bearer_token: self.parse_secret("AWS_BEARER_TOKEN_BEDROCK", values::parse_api_key),
            access_key_id: self.parse_given("AWS_ACCESS_KEY_ID", values::parse_aws_key_id),
            secret_access_key: self.parse_secret("AWS_SECRET_ACCESS_KEY", values::parse_api_key),
            session_token: self.parse_secret("AWS_SESSION_TOKEN", values::parse_api_key),
        }
    }

    fn parse_vertex(&mut self, home: Option<&Path>) -> Option<VertexSettings> {
        let login =
            self.parse_given("GOOGLE_APPLICATION_CREDENTIALS", |value| values::parse_absolute_path(value, home));
        // Hide the file from programs that the model runs. The folder of the `gcloud` tool is hidden from them anyway.
        self.0.key_files.extend(login.clone());
        Some(VertexSettings {
            project: self.parse_given("GOOGLE_CLOUD_PROJECT", values::parse_google_project),
            location: self.parse("GOOGLE_CLOUD_LOCATION", values::parse_google_location)?,
            login: login.or_else(|| cloud::gcloud_login(home)),
            workspace: self.parse_given("VERTEX_WORKSPACE", values::parse_vertex_workspace),
            base_url: self.parse_given("VERTEX_BASE_URL", values::parse_server_url),
        })
    }

    /// Parses the lease settings. Several machines meet at the remote, so `LEASE=remote` requires one.
    fn parse_lease(&mut self, has_remote: bool) -> Option<LeaseSettings> {
        let needs_remote = "local; or also set REPO_URL, the remote that the machines share";
        Some(LeaseSettings {
            home: self.parse("LEASE", |value| match lease::parse_home(value)? {
                lease::LeaseHome::Remote if !has_remote => Err(needs_remote.to_owned()),
                home => Ok(home),
            })?,
            reference: self.parse("LEASE_REF", lease::parse_reference)?,
            name: self.parse_given("LEASE_NAME", lease::parse_name),
            term: self.parse("LEASE_TERM_S", lease::parse_term)?,
            duty: self.parse("LEASE_DUTY", lease::parse_duty)?,
        })
    }

    /// Chooses the chat for unasked messages, always an allowed one.
    fn choose_owner(&mut self, allowed: &[ChatRef]) -> ChatRef {
        let first_person = allowed.iter().copied().find(|chat| !chat.is_group()).unwrap_or(ChatRef::TERMINAL);
        let chosen = self.parse_given("OWNER_CHAT_ID", |value| {
            let chat = values::parse_owner_chat(value)?;
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
