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
    /// A higher amount or level.
    Higher,
    /// A further entry of the list.
    Further,
    /// A further provider of models.
    Providers,
}

impl Authority {
    /// Compares two written values, of which an empty one means none.
    fn is_widened(self, name: &str, before: &str, after: &str) -> bool {
        match self {
            _ if before == after => false,
            Self::Unrelated => false,
            // What is taken away reaches nothing.
            Self::Any => !after.is_empty(),
            Self::Higher => match (measure(name, before), measure(name, after)) {
                (Some(before), Some(after)) => after > before,
                _ => true,
            },
            Self::Further => {
                let known: Vec<&str> = before.split(',').map(str::trim).collect();
                after.split(',').map(str::trim).any(|entry| !entry.is_empty() && !known.contains(&entry))
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

fn list_providers(models: &str) -> impl Iterator<Item = Provider> + '_ {
    models.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Provider::from_model)
}

impl GivenSettings {
    /// Lists the settings among these changes that would widen authority.
    pub fn list_widened(&self, changes: &SettingChanges) -> Vec<&'static str> {
        let is_widened = |name: &&'static str, value: &Option<String>| {
            let before = self.get(name).map_or_else(|| find_default(name), |(value, _)| value);
            let after = value.as_deref().unwrap_or_else(|| find_default(name));
            find_setting(name).is_none_or(|setting| setting.authority.is_widened(name, before, after))
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
                "AWS_ACCESS_KEY_ID",
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
        // A key goes only where its address says.
        let secrets = SETTINGS.iter().filter(|setting| setting.file.is_some());
        assert!(secrets.clone().count() > 5 && secrets.into_iter().all(|s| s.authority == Authority::Unrelated));
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
            ("OPENAI_API_KEY_FILE", "", "/home/ana/.ssh/id_ed25519"),
        ] {
            assert!(is_widened(name, before, after), "{name} {before} {after}");
            if name != "OPENAI_BASE_URL" && name != "ALLOWED_CHAT_IDS" {
                assert!(!is_widened(name, after, before), "{name} {after} {before}");
            }
        }
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
}
