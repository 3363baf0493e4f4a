//! Reads an older assistant's `.env` for viewing. Nothing is imported, and no secret is shown.

use reveille_base::redact::Secret;

use super::{
    env_file::{self, EnvLine},
    table::{VARIABLES, list_secrets},
    types::without_userinfo,
    values::looks_secret,
};

/// Words in the names of secret settings.
const SECRET_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// A setting of an older assistant. Its value can't be printed by accident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldSetting {
    /// The name.
    pub name: String,
    /// The value.
    value: Secret,
}

impl OldSetting {
    /// Creates a setting from its name and value.
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: Secret::new(value) }
    }

    /// Parses a file of settings. Also returns the number of invalid lines.
    pub fn parse_file(text: &str) -> (Vec<Self>, usize) {
        let (mut settings, mut unreadable) = (Vec::new(), 0);
        for line in text.lines() {
            match env_file::parse_line(line) {
                EnvLine::Setting(name, value) => settings.push(Self::new(name, value)),
                EnvLine::Nothing => {}
                EnvLine::Unreadable => unreadable += 1,
            }
        }
        (settings, unreadable)
    }

    /// Returns true if Reveille has a setting of this name.
    pub fn is_known(&self) -> bool {
        VARIABLES.contains(&self.name.as_str())
    }

    /// Returns true if the value is a secret, judged by its name or its form.
    pub fn is_secret(&self) -> bool {
        let name = self.name.to_uppercase();
        list_secrets().any(|(secret, _)| secret == name)
            || SECRET_WORDS.iter().any(|word| name.contains(word))
            || looks_secret(self.value.expose())
    }

    /// The secret value, to be masked elsewhere.
    pub fn secret(&self) -> Option<Secret> {
        self.is_secret().then(|| self.value.clone())
    }

    /// The value if it may be shown: a known setting that isn't secret.
    pub fn visible_value(&self) -> Option<String> {
        let is_shown = self.is_known() && !self.is_secret() && !self.value.expose().is_empty();
        is_shown.then(|| without_userinfo(self.value.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_settings_without_secrets_are_shown() {
        let (settings, unreadable) = OldSetting::parse_file(
            "# old\nTELEGRAM_BOT_TOKEN=1:CANARY\nALLOWED_CHAT_IDS=1,2\nMY_PASSWORD=CANARY\nOTHER=CANARY\nREPO_URL=https://a:CANARY@h/r\nbroken\n",
        );
        assert_eq!(unreadable, 1);
        let shown: Vec<_> =
            settings.iter().map(|old| (old.name.as_str(), old.visible_value(), old.secret().is_some())).collect();
        assert_eq!(
            shown,
            [
                ("TELEGRAM_BOT_TOKEN", None, true),
                ("ALLOWED_CHAT_IDS", Some("1,2".to_owned()), false),
                ("MY_PASSWORD", None, true),
                ("OTHER", None, false),
                ("REPO_URL", Some("https://***@h/r".to_owned()), false),
            ]
        );
        assert!(!format!("{settings:?}").contains("CANARY"));
    }
}
