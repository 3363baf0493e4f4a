//! The settings for display: each with its value in force, the source of the value, and any problem. Secrets are never shown. A chat
//! (`/settings`) and a page use the same list.

use std::time::Duration;

use reveille_base::redact::Secret;
use reveille_config::{Config, EmbedModel, GivenSettings, SettingChanges, Source, VARIABLES, is_secret};

/// The subject of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingGroup {
    /// The bot and its chats.
    Telegram,
    /// The AI model.
    Model,
    /// Spending limits.
    Budget,
    /// Search in the memory and the web.
    Search,
    /// Storage locations and retention.
    Storage,
    /// Behaviour and permissions.
    Manners,
    /// Durations and intervals.
    Timing,
    /// Temporary settings.
    Trial,
}

/// A setting for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// The variable's name.
    pub name: &'static str,
    /// The subject.
    pub group: SettingGroup,
    /// The value in force, as written in `.env`. A secret shows only that it is set.
    pub shown: String,
    /// The source of the value. `None` for the default.
    pub source: Option<Source>,
    /// The problem with the configured value; the default is in force then.
    pub problem: Option<String>,
}

impl SettingGroup {
    /// Every group, in order.
    pub const ALL: [Self; 8] = [
        Self::Telegram,
        Self::Model,
        Self::Budget,
        Self::Search,
        Self::Storage,
        Self::Manners,
        Self::Timing,
        Self::Trial,
    ];

    /// Returns the heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Telegram => "Telegram",
            Self::Model => "AI model",
            Self::Budget => "Budget",
            Self::Search => "Search",
            Self::Storage => "Where things are",
            Self::Manners => "How I behave",
            Self::Timing => "Limits",
            Self::Trial => "For trials",
        }
    }

    /// Returns a setting's group. `None` for a variable that only names a secret's file.
    pub fn for_setting(name: &str) -> Option<Self> {
        Some(match name {
            "TELEGRAM_BOT_TOKEN" | "ALLOWED_CHAT_IDS" | "OWNER_CHAT_ID" | "TELEGRAM_API_URL" | "TELEGRAM_RICH" => {
                Self::Telegram
            }
            "ANTHROPIC_API_KEY"
            | "ANTHROPIC_BASE_URL"
            | "MODEL"
            | "MODEL_SIMPLE"
            | "MODEL_REFLECT"
            | "AWS_REGION"
            | "AWS_BEARER_TOKEN_BEDROCK"
            | "AWS_ACCESS_KEY_ID"
            | "AWS_SECRET_ACCESS_KEY"
            | "AWS_SESSION_TOKEN"
            | "BEDROCK_BASE_URL"
            | "GOOGLE_CLOUD_PROJECT"
            | "GOOGLE_CLOUD_LOCATION"
            | "GOOGLE_APPLICATION_CREDENTIALS"
            | "VERTEX_WORKSPACE"
            | "VERTEX_BASE_URL"
            | "IMAGES_MAX"
            | "CLAUDE_CODE"
            | "CLAUDE_CODE_MODEL"
            | "CLAUDE_CODE_OAUTH_TOKEN"
            | "OPENAI_API_KEY"
            | "OPENAI_BASE_URL"
            | "OPENAI_PRICE" => Self::Model,
            "DAILY_BUDGET_USD" | "MONTHLY_BUDGET_USD" => Self::Budget,
            "BRAVE_API_KEY" | "EMBED_MODEL" | "GEMINI_API_KEY" | "GEMINI_BASE_URL" => Self::Search,
            "WORKSPACE_DIR" | "REPO_NAME" | "REPO_URL" | "DATABASE_URL" | "DATABASE_PASSWORD" | "MEDIA_DIR"
            | "WHISPER_MODEL" | "KEEP_DAYS" | "DISK_RESERVE_MB" | "LEASE" | "LEASE_REF" | "LEASE_NAME"
            | "LEASE_TERM_S" | "LEASE_DUTY" => Self::Storage,
            "TIMEZONE" | "AUTONOMY" | "INITIATIVE" | "WHILE_WORKING" | "QUIET_HOURS" | "REFLECT_AT"
            | "TELL_PER_DAY" => Self::Manners,
            "WAKE_TIMEOUT_MIN" | "STALE_LOCK_MIN" | "PULL_EVERY_MIN" => Self::Timing,
            "REVEILLE_LOG" | "LOG_FORMAT" | "REVEILLE_NOW" => Self::Trial,
            _ => return None,
        })
    }
}

/// Lists all current settings by group, and any other problems, such as one with the whole file.
pub fn list_settings(given: &GivenSettings) -> (Vec<ShownSetting>, Vec<String>) {
    let (config, mut problems) = given.with_valid_settings(&SettingChanges::new());
    let mut all: Vec<ShownSetting> = Vec::new();
    for (name, group) in VARIABLES.into_iter().filter_map(|name| Some((name, SettingGroup::for_setting(name)?))) {
        let file = reveille_config::file_setting(name);
        let mut own = Vec::new();
        problems.retain(|problem| {
            let is_own = problem.subject == name || file.is_some_and(|file| problem.subject == file);
            if is_own {
                own.push(problem.what.clone());
            }
            !is_own
        });
        let is_valid = own.is_empty();
        let shown = config.as_ref().and_then(|config| find_value(config, name)).unwrap_or_else(|| "none".to_owned());
        let source = given.get(name).map(|(_, source)| source.clone()).filter(|_| is_valid);
        all.push(ShownSetting { name, group, shown, source, problem: (!is_valid).then(|| own.join("; ")) });
    }
    all.sort_by_key(|setting| setting.group);
    (all, problems.iter().map(ToString::to_string).collect())
}

/// Lists the settings that differ from those of a running process.
pub fn changed_since(running: &Config, given: &GivenSettings) -> Vec<&'static str> {
    let (Some(now), _) = given.with_valid_settings(&SettingChanges::new()) else { return Vec::new() };
    let is_changed = |name: &&'static str| match *name {
        // A running process also knows chats that paired later.
        "ALLOWED_CHAT_IDS" => now.allowed_chats.iter().any(|chat| !running.allowed_chats.contains(chat)),
        "OWNER_CHAT_ID" => now.is_owner_chosen && now.owner_chat != running.owner_chat,
        name if is_secret(name) => find_secret(running, name) != find_secret(&now, name),
        name => find_value(running, name) != find_value(&now, name),
    };
    VARIABLES.into_iter().filter(|name| SettingGroup::for_setting(name).is_some()).filter(is_changed).collect()
}

fn find_secret<'c>(config: &'c Config, name: &str) -> Option<&'c Secret> {
    match name {
        "TELEGRAM_BOT_TOKEN" => config.telegram_token.as_ref(),
        "ANTHROPIC_API_KEY" => config.anthropic_key.as_ref(),
        "AWS_BEARER_TOKEN_BEDROCK" => config.bedrock.bearer_token.as_ref(),
        "AWS_SECRET_ACCESS_KEY" => config.bedrock.secret_access_key.as_ref(),
        "AWS_SESSION_TOKEN" => config.bedrock.session_token.as_ref(),
        "CLAUDE_CODE_OAUTH_TOKEN" => config.claude_code_token.as_ref(),
        "BRAVE_API_KEY" => config.brave_key.as_ref(),
        "OPENAI_API_KEY" => config.openai_key.as_ref(),
        "GEMINI_API_KEY" => config.gemini_key.as_ref(),
        "DATABASE_PASSWORD" => config.database_password.as_ref(),
        _ => None,
    }
}

/// Returns a setting's value as written in `.env`. `None` if unset.
pub fn find_value(config: &Config, name: &str) -> Option<String> {
    let minutes = |time: Duration| Some((time.as_secs() / 60).to_string());
    let time = |time: chrono::NaiveTime| time.format("%H:%M").to_string();
    let usd = |usd: f64| format!("{usd:.2}");
    match name {
        _ if is_secret(name) => Some(if find_secret(config, name).is_some() { "set" } else { "not set" }.to_owned()),
        "ALLOWED_CHAT_IDS" => {
            let chats: Vec<String> = config.allowed_chats.iter().map(ToString::to_string).collect();
            (!chats.is_empty()).then(|| chats.join(","))
        }
        "OWNER_CHAT_ID" => Some(config.owner_chat.to_string()),
        "TELEGRAM_API_URL" => Some(config.telegram_api_url.clone()),
        "TELEGRAM_RICH" => Some(config.telegram_rich.as_str().to_owned()),
        "ANTHROPIC_BASE_URL" => Some(config.anthropic_base_url.clone()),
        "MODEL" => Some(config.model.clone()),
        "MODEL_SIMPLE" => config.model_simple.clone(),
        "MODEL_REFLECT" => config.model_reflect.clone(),
        "AWS_REGION" => config.bedrock.region.clone(),
        "AWS_ACCESS_KEY_ID" => config.bedrock.access_key_id.clone(),
        "BEDROCK_BASE_URL" => config.bedrock.base_url.clone(),
        "GOOGLE_CLOUD_PROJECT" => config.vertex.project.clone(),
        "GOOGLE_CLOUD_LOCATION" => Some(config.vertex.location.clone()),
        "GOOGLE_APPLICATION_CREDENTIALS" => config.vertex.login.as_ref().map(|path| path.display().to_string()),
        "VERTEX_WORKSPACE" => config.vertex.workspace.clone(),
        "VERTEX_BASE_URL" => config.vertex.base_url.clone(),
        "IMAGES_MAX" => Some(config.images_max.to_string()),
        "CLAUDE_CODE" => Some(config.claude_code.display().to_string()),
        "CLAUDE_CODE_MODEL" => Some(config.claude_code_model.clone()),
        "DAILY_BUDGET_USD" => Some(usd(config.daily_budget_usd)),
        "MONTHLY_BUDGET_USD" => config.monthly_budget_usd.map(usd),
        "EMBED_MODEL" => config.embed_model.as_ref().map(|model| match model {
            EmbedModel::Folder(path) => path.display().to_string(),
            EmbedModel::OpenAi(name) => format!("openai:{name}"),
            EmbedModel::Gemini(name) => format!("gemini:{name}"),
        }),
        "OPENAI_BASE_URL" => Some(config.openai_base_url.clone()),
        "OPENAI_PRICE" => config.openai_price.map(|(input, output)| format!("{input}/{output}")),
        "GEMINI_BASE_URL" => Some(config.gemini_base_url.clone()),
        "WORKSPACE_DIR" => Some(config.workspace_dir.display().to_string()),
        "REPO_NAME" => Some(config.repo_name.clone()),
        "REPO_URL" => config.repo_url.as_ref().map(ToString::to_string),
        "DATABASE_URL" => config.database_url.clone(),
        "MEDIA_DIR" => Some(config.media_dir.display().to_string()),
        "LEASE" => Some(config.lease.home.as_str().to_owned()),
        "LEASE_REF" => Some(config.lease.reference.clone()),
        "LEASE_NAME" => config.lease.name.clone(),
        "LEASE_TERM_S" => Some(config.lease.term.as_secs().to_string()),
        "LEASE_DUTY" => Some(config.lease.duty.as_str().to_owned()),
        "WHISPER_MODEL" => config.whisper_model.as_ref().map(|path| path.display().to_string()),
        "TIMEZONE" => Some(config.timezone.to_string()),
        "AUTONOMY" => Some(config.autonomy.as_str().to_owned()),
        "INITIATIVE" => Some(config.initiative.as_str().to_owned()),
        "WHILE_WORKING" => Some(config.while_working.as_str().to_owned()),
        "QUIET_HOURS" => config.quiet_hours.map(|hours| format!("{}-{}", time(hours.from), time(hours.until))),
        "REFLECT_AT" => config.reflect_at.map(time),
        "TELL_PER_DAY" => Some(config.tell_per_day.to_string()),
        "WAKE_TIMEOUT_MIN" => minutes(config.wake_timeout),
        "STALE_LOCK_MIN" => minutes(config.stale_lock),
        "PULL_EVERY_MIN" => minutes(config.pull_every),
        "DISK_RESERVE_MB" => Some((config.disk_reserve.bytes() >> 20).to_string()),
        "KEEP_DAYS" => Some(config.keep.map_or(0, |keep| keep.as_secs() / 86_400).to_string()),
        "REVEILLE_LOG" => config.log_level.map(|level| level.to_string().to_lowercase()),
        "LOG_FORMAT" => Some(config.log_format.as_str().to_owned()),
        "REVEILLE_NOW" => config.fixed_now.map(|now| now.to_rfc3339()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn given_settings(dir: &std::path::Path, file: &str) -> GivenSettings {
        std::fs::write(dir.join(".env"), file).unwrap();
        let env = BTreeMap::from([
            ("HOME".to_owned(), "/home/ana".to_owned()),
            ("WORKSPACE_DIR".to_owned(), dir.display().to_string()),
            ("AUTONOMY".to_owned(), "2".to_owned()),
        ]);
        GivenSettings::from_sources(env, None, Some("Europe/Berlin".to_owned()))
    }

    #[test]
    fn each_setting_is_shown_once_with_its_source_and_without_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let file = "ANTHROPIC_API_KEY=sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaa\nTELL_PER_DAY=many\nKEEP_DAYS=7\n";
        let (all, other_problems) = list_settings(&given_settings(dir.path(), file));
        let named = VARIABLES.into_iter().filter(|name| !name.ends_with("_FILE"));
        assert_eq!(all.len(), named.count(), "each has a group");
        assert_eq!(other_problems, [""; 0]);
        let one = |name: &str| all.iter().find(|setting| setting.name == name).unwrap();
        assert_eq!((one("AUTONOMY").shown.as_str(), &one("AUTONOMY").source), ("2", &Some(Source::Environment)));
        assert_eq!((one("KEEP_DAYS").shown.as_str(), one("TIMEZONE").shown.as_str()), ("7", "Europe/Berlin"));
        assert_eq!(one("KEEP_DAYS").source, Some(Source::File(dir.path().join(".env"))));
        assert_eq!((one("QUIET_HOURS").shown.as_str(), &one("QUIET_HOURS").source), ("22:00-07:00", &None));
        let wrong = one("TELL_PER_DAY");
        assert_eq!((wrong.shown.as_str(), &wrong.source), ("5", &None));
        assert!(wrong.problem.as_ref().unwrap().contains("\"many\""), "{wrong:?}");
        assert_eq!((one("ANTHROPIC_API_KEY").shown.as_str(), one("BRAVE_API_KEY").shown.as_str()), ("set", "not set"));
        assert!(!format!("{all:?}").contains("sk-ant"));
    }

    #[test]
    fn settings_changed_since_a_process_started_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let running = given_settings(dir.path(), "TELL_PER_DAY=3\nALLOWED_CHAT_IDS=7\n")
            .resolve_with_changes(&SettingChanges::new())
            .unwrap();
        let now = given_settings(
            dir.path(),
            "TELL_PER_DAY=4\nALLOWED_CHAT_IDS=7\nBRAVE_API_KEY=BSAaaaaaaaaaaaaaaaaaaaaaaaa\n",
        );
        assert_eq!(changed_since(&running, &now), ["BRAVE_API_KEY", "TELL_PER_DAY"]);
        assert_eq!(
            changed_since(&running, &given_settings(dir.path(), "TELL_PER_DAY=3\nALLOWED_CHAT_IDS=7\n")),
            [""; 0]
        );
    }
}
