//! Describes the settings without secrets: which are set, where they are set, and the values that reveal nothing personal.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use reveille_config::{GivenSettings, SettingProblem, Source, VARIABLES, check_value};

/// Settings whose values are included if valid. An invalid value may be a key pasted into the wrong line.
const INCLUDED: [&str; 30] = [
    "MODEL",
    "MODEL_SIMPLE",
    "MODEL_REFLECT",
    "CLAUDE_CODE_MODEL",
    "OPENAI_PRICE",
    "AWS_REGION",
    "GOOGLE_CLOUD_LOCATION",
    "IMAGES_MAX",
    "DAILY_BUDGET_USD",
    "MONTHLY_BUDGET_USD",
    "LEASE",
    "LEASE_TERM_S",
    "LEASE_DUTY",
    "TIMEZONE",
    "AUTONOMY",
    "INITIATIVE",
    "QUIET_HOURS",
    "REFLECT_AT",
    "TELL_PER_DAY",
    "WAKE_TIMEOUT_MIN",
    "STALE_LOCK_MIN",
    "PULL_EVERY_MIN",
    "DISK_RESERVE_MB",
    "KEEP_DAYS",
    "REVEILLE_LOG",
    "LOG_FORMAT",
    "REVEILLE_NOW",
    "ANTHROPIC_BASE_URL",
    "OPENAI_BASE_URL",
    "TELEGRAM_API_URL",
];
/// The included settings that are addresses. Of an address only the location is told: on this machine, or elsewhere.
const ADDRESSES: [&str; 3] = ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "TELEGRAM_API_URL"];
/// Maximum bytes of an included value.
const MAX_VALUE_BYTES: usize = 100;

/// Describes the settings, and names the invalid ones.
pub(super) fn describe_settings(given: &GivenSettings, problems: &[SettingProblem]) -> Value {
    let mut settings = BTreeMap::new();
    for name in VARIABLES {
        let Some((value, source)) = given.get(name) else { continue };
        let place = match source {
            Source::Environment => "environment",
            Source::File(_) => "file",
        };
        settings.insert(name, json!({"is_set": true, "in": place, "value": build_value(name, value, given)}));
    }
    let unset: Vec<&str> = VARIABLES.into_iter().filter(|name| !settings.contains_key(name)).collect();
    // The subject of a problem may be any text from an unreadable line, so only known names are included.
    let wrong: Vec<&str> = problems
        .iter()
        .map(|problem| VARIABLES.into_iter().find(|name| *name == problem.subject).unwrap_or("something else"))
        .collect();
    json!({"set": settings, "not_set": unset, "wrong": wrong})
}

/// Returns the value to include; null if it must stay private.
fn build_value(name: &'static str, value: &str, given: &GivenSettings) -> Value {
    if !INCLUDED.contains(&name) {
        return Value::Null;
    }
    if value.len() > MAX_VALUE_BYTES || check_value(name, value, given.home()).is_err() {
        return "(an invalid value)".into();
    }
    if ADDRESSES.contains(&name) {
        let host =
            reqwest::Url::parse(value).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        let is_local = ["localhost", "127.0.0.1", "[::1]"].contains(&host.as_str());
        return (if is_local { "(an address on this machine)" } else { "(an address elsewhere)" }).into();
    }
    value.into()
}
