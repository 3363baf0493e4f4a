//! The texts that were typed into secret fields, masked in everything that is reported.

use crate::{error::BrowserError, verb::BrowserOutcome};

/// Minimum length of a typed secret that is masked wherever it appears, in characters.
const MIN_SECRET_CHARS: usize = 4;
/// What stands in the place of a typed secret.
const MASK: &str = "•••";

/// The secrets typed so far.
#[derive(Debug, Default)]
pub(crate) struct SecretMask {
    typed: Vec<String>,
}

impl SecretMask {
    /// Remembers a text that was typed into a secret field. Very short ones would mask too much.
    pub(crate) fn remember(&mut self, text: &str) {
        if text.chars().count() >= MIN_SECRET_CHARS && !self.typed.iter().any(|known| known == text) {
            self.typed.push(text.to_owned());
        }
    }

    /// Masks what was typed into secret fields.
    pub(crate) fn mask_text(&self, text: String) -> String {
        self.typed.iter().fold(text, |text, secret| {
            let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            text.replace(secret, MASK).replace(&encoded, MASK)
        })
    }

    /// Masks the report of a verb.
    pub(crate) fn mask_outcome(&self, outcome: BrowserOutcome) -> BrowserOutcome {
        let changes = outcome.changes.into_iter().map(|change| self.mask_text(change)).collect();
        BrowserOutcome { text: self.mask_text(outcome.text), changes, ..outcome }
    }

    /// Masks the words of an error.
    pub(crate) fn mask_error(&self, error: BrowserError) -> BrowserError {
        match error {
            BrowserError::ChooseFromLook { why, look } => {
                BrowserError::ChooseFromLook { why: self.mask_text(why), look: self.mask_text(look) }
            }
            BrowserError::ChangePageFirst(why) => BrowserError::ChangePageFirst(self.mask_text(why)),
            BrowserError::CorrectCall(why) => BrowserError::CorrectCall(self.mask_text(why)),
            BrowserError::TryOnce(why) => BrowserError::TryOnce(self.mask_text(why)),
            BrowserError::OpenAgain(why) => BrowserError::OpenAgain(self.mask_text(why)),
            BrowserError::AnswerDialog { kind, message } => {
                BrowserError::AnswerDialog { kind, message: self.mask_text(message) }
            }
            BrowserError::StartAgain => BrowserError::StartAgain,
        }
    }
}
