//! Decides if a change of a setting widens authority: what the assistant may do, spend, reach or reveal. The table of settings says it
//! for each setting.

use super::{
    GivenSettings, SettingChanges,
    model_name::Provider,
    table::{find_default, find_setting},
    types::Autonomy,
    values,
};

/// The changes of a setting that widen authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// None of them.
    Unrelated,
    /// Every new value: an address, a program, a file or a place.
    Any,
    /// Every new value, and the removal: without a value, something else is reached.
    AnyOrNone,
    /// Whatever happens to a key that is set: its account reads what it is sent. The first key is free, so that setting up stays easy.
    Replaced,
    /// A higher amount or level.
    Higher,
    /// A further entry of the list of people and groups, and the removal of the last person: nobody else would be asked.
    People,
    /// A further provider of models.
    Providers,
}

impl Authority {
    /// Compares two written values, of which an empty one means none.
    fn is_widened(self, name: &str, before: &str, after: &str) -> bool {
        match self {
            _ if before == after => false,
            Self::Unrelated => false,
            Self::AnyOrNone => true,
            // A removal counts, too: after it, another key would be the first.
            Self::Replaced => !before.is_empty(),
            // What is taken away reaches nothing.
            Self::Any => !after.is_empty(),
            Self::Higher => match (measure(name, before), measure(name, after)) {
                (Some(before), Some(after)) => after > before,
                _ => true,
            },
            Self::People => {
                let known: Vec<&str> = list_entries(before).collect();
                let is_further = list_entries(after).any(|entry| !known.contains(&entry));
                is_further || (known.iter().any(is_person) && !list_entries(after).any(|entry| is_person(&entry)))
            }
            Self::Providers => {
                let known: Vec<Provider> = list_providers(before).collect();
                list_providers(after).any(|provider| provider != Provider::Offline && !known.contains(&provider))
            }
        }
    }
}

/// Measures a level or an amount. `None` for an invalid one.
fn measure(name: &str, value: &str) -> Option<f64> {
    match name {
        "AUTONOMY" => values::parse_autonomy(value).ok().map(|level| match level {
            Autonomy::AskAll => 0.0,
            Autonomy::Smart => 1.0,
            Autonomy::Full => 2.0,
        }),
        // No amount means no limit.
        _ if value.is_empty() => Some(f64::INFINITY),
        _ => values::parse_budget_usd(value).ok(),
    }
}

fn list_entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

/// Returns true for the id of a person. Groups have negative ones.
fn is_person(entry: &&str) -> bool {
    !entry.starts_with('-')
}

/// Lists the settings in whose place a key is used.
fn list_superseded(name: &str) -> &'static [&'static str] {
    match name {
        "ANTHROPIC_API_KEY" => &["CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN_FILE"],
        "AWS_BEARER_TOKEN_BEDROCK" => &["AWS_ACCESS_KEY_ID"],
        _ => &[],
    }
}

fn list_providers(models: &str) -> impl Iterator<Item = Provider> + '_ {
    list_entries(models).map(Provider::from_model)
}

impl GivenSettings {
    /// Lists the settings among these changes that would widen authority.
    pub fn list_widened(&self, changes: &SettingChanges) -> Vec<&'static str> {
        let is_widened = |name: &&'static str, value: &Option<String>| {
            let before = self.get(name).map_or_else(|| find_default(name), |(value, _)| value);
            let after = value.as_deref().unwrap_or_else(|| find_default(name));
            find_setting(name).is_none_or(|setting| {
                let others = setting.file.iter().chain(list_superseded(name));
                let is_first = before.is_empty() && !others.into_iter().any(|other| self.get(other).is_some());
                match setting.authority {
                    Authority::Replaced if before != after => !is_first,
                    authority => authority.is_widened(name, before, after),
                }
            })
        };
        changes.iter().filter(|(name, value)| is_widened(name, value)).map(|(name, _)| *name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::SETTINGS;
    use super::*;

    fn is_widened(name: &str, before: &str, after: &str) -> bool {
        find_setting(name).unwrap().authority.is_widened(name, before, after)
    }

    #[test]
    fn every_setting_is_classified_and_whatever_reaches_elsewhere_needs_a_code() {
        let unrelated: Vec<&str> = SETTINGS
            .iter()
            .filter(|setting| setting.authority == Authority::Unrelated && setting.file.is_none())
            .map(|setting| setting.name)
            .collect();
        // Whoever adds a setting here decides that a page may change it without a code.
        assert_eq!(
            unrelated,
            [
                "TELEGRAM_RICH",
                "IMAGES_MAX",
                "CLAUDE_CODE_MODEL",
                "LEASE",
                "LEASE_NAME",
                "LEASE_TERM_S",
                "LEASE_DUTY",
                "TIMEZONE",
                "INITIATIVE",
                "WHILE_WORKING",
                "QUIET_HOURS",
                "REFLECT_AT",
                "TELL_PER_DAY",
                "WAKE_TIMEOUT_MIN",
                "STALE_LOCK_MIN",
                "PULL_EVERY_MIN",
                "DISK_RESERVE_MB",
                "KEEP_DAYS",
                "REVEILLE_LOG",
                "LOG_FORMAT"
            ]
        );
        // The account of a key reads what it is sent. Nobody reads anything by these two.
        let secrets =
            SETTINGS.iter().filter(|setting| setting.file.is_some() && setting.authority != Authority::Replaced);
        let free: Vec<&str> = secrets.map(|setting| setting.name).collect();
        assert_eq!(free, ["BRAVE_API_KEY", "DATABASE_PASSWORD"]);
    }

    #[test]
    fn more_widens_and_less_does_not() {
        for (name, before, after) in [
            ("AUTONOMY", "1", "2"),
            ("AUTONOMY", "0", "1"),
            ("DAILY_BUDGET_USD", "5", "$6"),
            ("MONTHLY_BUDGET_USD", "50", ""),
            ("ALLOWED_CHAT_IDS", "1,2", "2,3"),
            ("MODEL", "claude-sonnet-5-5", "claude-sonnet-5-5,openai:qwen3:8b"),
            ("MODEL", "offline", "claude-sonnet-5-5"),
            ("OPENAI_BASE_URL", "https://a.example/v1", "https://b.example/v1"),
            ("REPO_URL", "", "https://a.example/x.git"),
        ] {
            assert!(is_widened(name, before, after), "{name} {before} {after}");
            if name != "OPENAI_BASE_URL" && name != "ALLOWED_CHAT_IDS" {
                assert!(!is_widened(name, after, before), "{name} {after} {before}");
            }
        }
        // A removal that leads elsewhere.
        for (name, before) in [
            ("DATABASE_URL", "postgres://a@db.example/a"),
            ("OWNER_CHAT_ID", "1"),
            ("BEDROCK_BASE_URL", "https://a.example"),
            ("VERTEX_BASE_URL", "https://a.example"),
            ("VERTEX_WORKSPACE", "wrkspc_1"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/ana/key.json"),
            ("OPENAI_API_KEY_FILE", "/home/ana/key"),
            ("ALLOWED_CHAT_IDS", "1"),
        ] {
            assert!(is_widened(name, before, "") && is_widened(name, "", before), "{name} {before}");
        }
        assert!(is_widened("ALLOWED_CHAT_IDS", "1,-100", "-100") && !is_widened("ALLOWED_CHAT_IDS", "-100", ""));
        for (name, before, after) in [
            ("MODEL", "claude-sonnet-5-5", "claude-haiku-5-5"),
            ("MODEL", "openai:a,claude-sonnet-5-5", "offline"),
            ("ALLOWED_CHAT_IDS", "1, 2", "2"),
            ("REPO_URL", "https://a.example/x.git", ""),
            ("TELL_PER_DAY", "1", "100"),
        ] {
            assert!(!is_widened(name, before, after), "{name} {before} {after}");
        }
    }

    #[test]
    fn the_first_key_is_free_and_another_one_is_not() {
        let widened = |file: &str, name: &'static str, value: Option<&str>| {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(".env"), file).unwrap();
            let env = [("WORKSPACE_DIR".to_owned(), dir.path().display().to_string())].into();
            let given = GivenSettings::from_sources(env, None, None);
            !given.list_widened(&SettingChanges::from([(name, value.map(str::to_owned))])).is_empty()
        };
        for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "TELEGRAM_BOT_TOKEN"] {
            let file = format!("{name}=first\n");
            assert!(!widened("", name, Some("first")), "{name}");
            assert!(!widened(&file, name, Some("first")), "{name}");
            assert!(widened(&file, name, Some("second")), "{name}");
            // Else the second would be a first one.
            assert!(widened(&file, name, None), "{name}");
        }
        assert!(widened("OPENAI_API_KEY_FILE=/home/ana/key\n", "OPENAI_API_KEY", Some("second")));
        assert!(widened("CLAUDE_CODE_OAUTH_TOKEN=first\n", "ANTHROPIC_API_KEY", Some("second")));
        assert!(widened("AWS_ACCESS_KEY_ID=first\n", "AWS_BEARER_TOKEN_BEDROCK", Some("second")));
        assert!(!widened("AWS_ACCESS_KEY_ID=first\n", "AWS_SECRET_ACCESS_KEY", Some("first")));
        assert!(!widened("BRAVE_API_KEY=first\n", "BRAVE_API_KEY", Some("second")));
    }
}
