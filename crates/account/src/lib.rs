//! Reports on past work and its cost.
//!
//! Reading and rendering are separate. `read`, `log` and `cost` turn stored rows into values; `tell` and the values' own methods
//! render them. Terminal, chat and page show the same values. Secrets are masked and the marks of [`reveille_memory::outside`]
//! removed when a value is read; untrusted text is labelled with its origin.

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

/// Prepares a text for display: without secrets and invisible marks.
pub fn clean_for_display(redactor: &Redactor, text: &str) -> String {
    let text: Cow<'_, str> = outside::strip_marks(text);
    redactor.redact(&text)
}
