//! What was done and what it cost, for people who look back.
//!
//! Reading and telling are apart. `read`, `log` and `cost` make values of what the store keeps; `tell` and the values' own texts show
//! them. The terminal, the chat and a page show the same values. Secrets are masked and the marks of [`reveille_memory::outside`] are
//! taken out as a value is read; what others may have written is named beside their words.

pub mod cost;
pub mod days;
pub mod find;
pub mod log;
pub mod parts;
pub mod provenance;
pub mod raw;
pub mod read;
pub mod since;
pub mod story;
pub mod tell;
pub mod units;
pub mod whole;

use std::borrow::Cow;

use reveille_base::redact::Redactor;
use reveille_memory::outside;

/// A text as it may be shown: without secrets and unseen marks.
pub fn shown(redactor: &Redactor, text: &str) -> String {
    let text: Cow<'_, str> = outside::unmarked(text);
    redactor.redact(&text)
}
