//! A description of this build and its setup, for the assistant's answers about its abilities.
//!
//! Only names are included: no key, address or chat number.

use reveille_config::{Config, EmbedModel, OFFLINE_MODEL};
use reveille_index::embed;
use reveille_media::speech;

/// The build and its setup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The version, with the commit if known.
    pub version: String,
    /// The optional parts of the build, a sentence each.
    pub build: Vec<String>,
    /// The setup, a sentence each; only for the owner.
    pub set_up: Vec<String>,
}

impl About {
    /// Describes a build of this version with these settings.
    pub fn new(version: &str, config: &Config) -> Self {
        Self {
            version: version.to_owned(),
            build: vec![describe_speech(config), describe_memory_search(config)],
            set_up: describe_setup(config),
        }
    }
}

fn describe_speech(config: &Config) -> String {
    match (speech::IS_BUILT, &config.whisper_model) {
        (false, _) => "Voice notes are kept but not understood: this build has no speech recognition.",
        (true, None) => "Voice notes are kept but not understood: no speech model is set (WHISPER_MODEL).",
        (true, Some(_)) => "Voice notes are transcribed on this machine.",
    }
    .to_owned()
}

fn describe_memory_search(config: &Config) -> String {
    match &config.embed_model {
        None => "The memory is searched by words, not by meaning (EMBED_MODEL isn't set).",
        Some(EmbedModel::Folder(_)) if !embed::IS_BUILT => {
            "The memory is searched by words: this build can't make vectors itself."
        }
        Some(EmbedModel::Folder(_)) => "The memory is searched by words and by meaning, on this machine.",
        Some(EmbedModel::OpenAi(_) | EmbedModel::Gemini(_)) => {
            "The memory is searched by words, and by meaning with a model elsewhere where the owner has allowed that."
        }
    }
    .to_owned()
}

fn describe_setup(config: &Config) -> Vec<String> {
    let chain = config.list_usable_models();
    let mut lines = Vec::new();
    if chain == [OFFLINE_MODEL] {
        lines.push("No AI model is set: plain sentences are understood, and reminders work.".to_owned());
    } else {
        lines.push(format!("AI models, in order of preference: {}.", chain.join(", ")));
    }
    let models_by_use = [("quick tasks", &config.model_simple), ("reflection", &config.model_reflect)];
    lines.extend(models_by_use.iter().filter_map(|(usage, model)| Some(format!("For {usage}: {}.", model.as_ref()?))));
    let telegram = if config.telegram_token.is_some() { "Telegram, " } else { "" };
    lines.push(format!("Ways to talk: {telegram}the terminal (`wake chat`), the page (`wake page`)."));
    if config.telegram_token.is_none() {
        lines.push("Telegram isn't set up (`wake init`).".to_owned());
    }
    let month = config.monthly_budget_usd.map(|usd| format!(", {usd:.2} a month")).unwrap_or_default();
    lines.push(format!("Budget: {:.2} US dollars a day{month}.", config.daily_budget_usd));
    lines.push(format!("Without asking (AUTONOMY={}): {}.", config.autonomy.as_str(), config.autonomy.describe()));
    lines.push(format!(
        "Of its own accord (INITIATIVE={}): {}.",
        config.initiative.as_str(),
        config.initiative.describe()
    ));
    let quiet = config
        .quiet_hours
        .map(|hours| format!(", never from {} to {}", hours.from.format("%H:%M"), hours.until.format("%H:%M")));
    lines.push(format!("It speaks unasked {} times a day at most{}.", config.tell_per_day, quiet.unwrap_or_default()));
    let reflection =
        config.reflect_at.map_or_else(|| "never".to_owned(), |at| format!("daily from {}", at.format("%H:%M")));
    lines.push(format!("Nightly reflection: {reflection}."));
    let remote = if config.repo_url.is_some() { "is pushed to a remote" } else { "stays on this machine alone" };
    lines.push(format!("The memory {remote}."));
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_description_shows_the_setup_without_secrets_chat_numbers_or_addresses() {
        let settings = [
            ("WORKSPACE_DIR", "/w"),
            ("TELEGRAM_BOT_TOKEN", "12345:AAcanaryCanaryCanaryCanary-Canary_0123"),
            ("ALLOWED_CHAT_IDS", "4242"),
            ("ANTHROPIC_API_KEY", "sk-ant-canary"),
            ("OPENAI_BASE_URL", "https://models.example.org/v1"),
            ("MODEL", "claude-sonnet-5-5,offline"),
            ("MODEL_REFLECT", "claude-haiku-5-5"),
            ("REPO_URL", "https://ana:canary@git.example.org/memory.git"),
            ("INITIATIVE", "low"),
            ("QUIET_HOURS", "22:00-07:00"),
        ];
        let env: BTreeMap<String, String> = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let about = About::new("1.0", &Config::from_sources(&env, None, Some("UTC")).unwrap());
        let text = [about.build, about.set_up].concat().join("\n");
        for shown in
            ["claude-sonnet-5-5, offline", "claude-haiku-5-5", "Telegram, the terminal", "INITIATIVE=low", "22:00"]
        {
            assert!(text.contains(shown), "{shown} in {text}");
        }
        for secret in ["canary", "4242", "example.org", "12345", "/w"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
