//! Fields of the forms. A secret's field is always empty; a setting from the environment has no field.

use std::collections::BTreeMap;

use maud::{Markup, html};

use reveille_base::{redact::is_like_a_key, zone::Tz};
use reveille_config::{SettingChanges, is_secret};

use super::{CurrentSettings, change::format_value};
use crate::setup::{find_value, parse_setting};

/// What a form sent, by field.
pub(super) type SentFields = BTreeMap<String, String>;

/// The form of a field.
pub(super) enum FieldKind {
    Line,
    /// A time zone, with suggestions.
    Zone,
    /// A time of day; empty for none.
    Time,
    Choice(Vec<(String, String)>),
}

/// A field of a setting.
pub(super) struct SettingField {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: Markup,
    pub(super) kind: FieldKind,
}

/// A refused answer, by field.
pub(super) type Problems = BTreeMap<&'static str, String>;

impl SettingField {
    pub(super) fn line(name: &'static str, label: &'static str, hint: &str) -> Self {
        Self { name, label, hint: html! { (hint) }, kind: FieldKind::Line }
    }

    /// Renders the field with the present value, or with what was sent.
    pub(super) fn render(&self, current: &CurrentSettings, sent: Option<&SentFields>, problems: &Problems) -> Markup {
        let Self { name, label, .. } = self;
        let is_settled = current.given.is_from_environment(name);
        let present = find_value(&current.config, name).unwrap_or_default();
        // A key that was typed into the wrong field doesn't come out either.
        let typed = sent.and_then(|sent| sent.get(*name)).filter(|typed| !is_secret(name) && !is_like_a_key(typed));
        let value = typed.cloned().unwrap_or(present);
        let hint_id = format!("{name}-hint");
        html! {
            div .field {
                @match &self.kind {
                    FieldKind::Choice(options) if !is_settled => {
                        fieldset aria-describedby=(hint_id) {
                            legend { (label) }
                            p .meta id=(hint_id) { (self.hint) }
                            @for (answer, words) in options {
                                label .set-choice {
                                    input type="radio" name=(name) value=(answer) checked[*answer == value];
                                    span { (words) }
                                }
                            }
                        }
                    }
                    _ if is_settled => {
                        p .set-label { (label) }
                        p { code { (self.shown_value(current)) } }
                        p .meta { code { (name) } " is set in the environment, which takes precedence: change it there." }
                    }
                    kind => {
                        label for=(name) {
                            (label)
                            @if is_secret(name) { " " (render_state(current, name)) }
                        }
                        p .meta id=(hint_id) {
                            (self.hint)
                            @if is_secret(name) && current.given.get(name).is_some() { " Leave it empty to keep what is set." }
                        }
                        @if is_secret(name) {
                            input id=(name) name=(name) type="password" value="" autocomplete="off" spellcheck="false"
                                aria-describedby=(hint_id) aria-invalid=[problems.get(name).map(|_| "true")];
                        } @else {
                            input id=(name) name=(name) type=(if matches!(kind, FieldKind::Time) { "time" } else { "text" })
                                value=(value) autocomplete="off" spellcheck="false" aria-describedby=(hint_id)
                                list=[matches!(kind, FieldKind::Zone).then_some("zones")]
                                aria-invalid=[problems.get(name).map(|_| "true")];
                            @if matches!(kind, FieldKind::Zone) {
                                datalist #zones { @for zone in Tz::list_all() { option value=(zone.name()) {} } }
                            }
                        }
                    }
                }
                @if let Some(problem) = problems.get(name) { p .set-problem role="alert" { (problem) } }
            }
        }
    }

    fn shown_value(&self, current: &CurrentSettings) -> String {
        match find_value(&current.config, self.name) {
            Some(value) if !is_secret(self.name) => format_value(self.name, &value),
            Some(value) => value,
            None => "none".to_owned(),
        }
    }
}

/// Renders if a secret is set.
pub(super) fn render_state(current: &CurrentSettings, name: &str) -> Markup {
    html! {
        @if current.given.get(name).is_some() { span .badge.ok { "set" } } @else { span .badge { "not set" } }
    }
}

/// Marks a setting whose wider values need a code.
pub(super) fn render_code_badge() -> Markup {
    html! { span .badge title="Changing it needs a code from the terminal" { "needs a code" } }
}

/// Renders the line below a form.
pub(super) fn render_form_end(current: &CurrentSettings) -> Markup {
    let file = current.given.file_path().unwrap_or_default();
    html! {
        p .actions { button type="submit" { "Check and save" } }
        p .meta { "Goes to " code { (file.display()) } ", which only you can read." }
    }
}

/// Parses what was sent for these settings into changes, or says what is wrong by field.
pub(super) fn parse_fields(
    names: impl IntoIterator<Item = &'static str>,
    sent: &SentFields,
    current: &CurrentSettings,
) -> Result<SettingChanges, Problems> {
    let (mut changes, mut problems) = (SettingChanges::new(), Problems::new());
    for name in names {
        let Some(answer) = sent.get(name).filter(|_| !current.given.is_from_environment(name)) else { continue };
        match parse_setting(name, answer, &current.given, &current.config) {
            Ok(more) => changes.extend(more),
            Err(what) => {
                problems.insert(name, format!("{}. Nothing was changed.", capitalize(&what)));
            }
        }
    }
    if problems.is_empty() { Ok(changes) } else { Err(problems) }
}

/// Begins a sentence with a capital letter. A name such as `xAI` stays as it is.
pub(super) fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    if letters.clone().nth(1).is_some_and(char::is_uppercase) {
        return text.to_owned();
    }
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_uppercase(), letters.as_str()))
}
