//! Fields: typing with reading back, and choosing options.

use reveille_base::words::truncate_text;
use serde_json::json;

use super::point::CheckMode;
use crate::{
    browser::Browser,
    error::{Fault, blocked, wrong},
    fields::MessageFields as _,
    look::clean::clean_line,
    scripts,
    verb::BrowserOutcome,
};

/// Maximum length of a text that is typed key by key, in characters. A longer one is inserted at once.
const MAX_KEYED_CHARS: usize = 120;

/// A text for a field.
pub(crate) struct TypedText<'a> {
    pub(crate) text: &'a str,
    pub(crate) mode: TypeMode,
    pub(crate) ending: FieldEnding,
}

/// What becomes of the text that a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeMode {
    Replace,
    Append,
}

/// What follows the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldEnding {
    Stay,
    Enter,
}

impl Browser {
    /// Types into a field and reads it back.
    pub(crate) async fn type_text(&mut self, reference: &str, typed: &TypedText<'_>) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let address = self.find_node(reference).await?;
        let is_secret = self.secrets.contains(&address);
        if is_secret {
            self.mask.remember(typed.text);
        }
        self.find_box(reference, CheckMode::Act).await?;
        let mode = if typed.mode == TypeMode::Append { "append" } else { "replace" };
        let focused = self.call_on_reference(reference, scripts::FOCUS_FIELD, &[json!(mode)]).await?;
        self.check_problem(reference, &focused).await?;
        if focused.at("kind") == "whole" {
            self.set_whole(reference, typed.text).await?;
        } else if typed.text.is_empty() && typed.mode == TypeMode::Replace {
            if !focused.is_true("isEmpty") {
                self.press_delete().await?;
            }
        } else {
            self.insert_text(typed.text).await?;
        }
        let mut done = match is_secret {
            true => "Typed into a secret field, which isn't read back.".to_owned(),
            false if self.open_dialog().is_some() => "Typed.".to_owned(),
            false => self.read_back(reference, typed).await?,
        };
        if typed.ending == FieldEnding::Enter {
            self.press_enter().await?;
            done.push_str(" Pressed Enter.");
        }
        self.report(&before, &done).await
    }

    async fn insert_text(&mut self, text: &str) -> Result<(), Fault> {
        let is_plain = text.chars().count() <= MAX_KEYED_CHARS && !text.chars().any(char::is_control);
        if is_plain {
            for char in text.chars() {
                self.type_char(char).await?;
            }
            return Ok(());
        }
        self.call_page(&self.tab_session()?, "Input.insertText", json!({"text": text})).await?;
        Ok(())
    }

    async fn set_whole(&mut self, reference: &str, text: &str) -> Result<(), Fault> {
        let value = self.call_on_reference(reference, scripts::SET_WHOLE, &[json!(text)]).await?;
        if value.as_str() == Some(text) {
            return Ok(());
        }
        Err(wrong(format!(
            "{reference} doesn't take \"{}\". Dates are written 2026-11-30, times 14:05, both 2026-11-30T14:05, months \
             2026-11, weeks 2026-W48, colours #rrggbb.",
            truncate_text(text, 60)
        )))
    }

    async fn read_back(&mut self, reference: &str, typed: &TypedText<'_>) -> Result<String, Fault> {
        let value = match self.call_on_reference(reference, scripts::READ_FIELD, &[]).await {
            Ok(value) => value,
            // The page replaced the field while it was typed into.
            Err(Fault::Told(_)) => return Ok("Typed, but the page has replaced the field since.".to_owned()),
            Err(error) => return Err(error),
        };
        let holds = value.as_str().unwrap_or_default().replace("\r\n", "\n");
        let is_as_typed = match typed.mode {
            TypeMode::Replace => holds.trim_end_matches('\n') == typed.text.trim_end_matches('\n'),
            TypeMode::Append => holds.ends_with(typed.text),
        };
        if is_as_typed {
            return Ok("Typed.".to_owned());
        }
        if holds.is_empty() {
            return Err(blocked(format!("{reference} doesn't take this text: it is still empty.")));
        }
        Ok(format!("Typed, but the field now holds \"{}\".", clean_line(&holds, 200)))
    }

    /// Chooses options of a list.
    pub(crate) async fn select(&mut self, reference: &str, options: &[String]) -> Result<BrowserOutcome, Fault> {
        let before = self.note_state();
        let answer = self.call_on_reference(reference, scripts::SELECT_OPTIONS, &[json!(options)]).await?;
        let want = clean_line(answer.text("want"), 80);
        match answer.at("problem").as_str() {
            Some("no-option") => {
                let labels = answer.list("labels").iter().filter_map(|label| label.as_str());
                let labels: Vec<String> = labels.map(|label| clean_line(label, 60)).collect();
                return Err(wrong(format!("{reference} has no option \"{want}\". It has: {}.", labels.join(", "))));
            }
            Some("disabled-option") => return Err(blocked(format!("The option \"{want}\" is disabled."))),
            Some("one") => return Err(wrong(format!("{reference} takes exactly one option."))),
            _ => self.check_problem(reference, &answer).await?,
        }
        let selected = answer.list("selected").iter().filter_map(|label| label.as_str());
        let selected: Vec<String> = selected.map(|label| clean_line(label, 60)).collect();
        self.report(&before, &format!("Selected: {}.", selected.join(", "))).await
    }
}
