//! An older assistant's `.env`: what it says, for the person to look at. Nothing of it is taken over, and no secret is shown.

use reveille_base::redact::Secret;

use super::{
    env_file::{self, EnvLine},
    raw::{SECRETS, VARIABLES},
    types::without_userinfo,
    values::looks_secret,
};

/// Words in names of settings whose values are secrets.
const SECRET_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"];

/// A setting of an older assistant. It can't be printed with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldSetting {
    /// Its name.
    pub name: String,
    /// Its value.
    value: Secret,
}

impl OldSetting {
    /// As it stands there.
    pub fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: Secret::new(value) }
    }

    /// Reads a file of settings; and how many lines aren't understood.
    pub fn read(text: &str) -> (Vec<Self>, usize) {
        let (mut settings, mut unreadable) = (Vec::new(), 0);
        for line in text.lines() {
            match env_file::read(line) {
                EnvLine::Said(name, value) => settings.push(Self::new(name, value)),
                EnvLine::Nothing => {}
                EnvLine::Unreadable => unreadable += 1,
            }
        }
        (settings, unreadable)
    }

    /// Whether there is a setting of this name here.
    pub fn is_known(&self) -> bool {
        VARIABLES.contains(&self.name.as_str())
    }

    /// Whether its value is a secret, by its name or its look.
    pub fn is_secret(&self) -> bool {
        let name = self.name.to_uppercase();
        SECRETS.iter().any(|(secret, _)| *secret == name)
            || SECRET_WORDS.iter().any(|word| name.contains(word))
            || looks_secret(self.value.expose())
    }

    /// The value, to be masked wherever else it stands.
    pub fn secret(&self) -> Option<Secret> {
        self.is_secret().then(|| self.value.clone())
    }

    /// The value, where it may be shown: that of a setting that is known here and no secret.
    pub fn shown(&self) -> Option<String> {
        let is_shown = self.is_known() && !self.is_secret() && !self.value.expose().is_empty();
        is_shown.then(|| without_userinfo(self.value.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_where_it_is_known_and_no_secret() {
        let (settings, unreadable) = OldSetting::read(
            "# old\nTELEGRAM_BOT_TOKEN=1:CANARY\nALLOWED_CHAT_IDS=1,2\nMY_PASSWORD=CANARY\nOTHER=CANARY\nREPO_URL=https://a:CANARY@h/r\nbroken\n",
        );
        assert_eq!(unreadable, 1);
        let shown: Vec<_> =
            settings.iter().map(|old| (old.name.as_str(), old.shown(), old.secret().is_some())).collect();
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
