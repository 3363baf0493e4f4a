//! Shows the outcome of a form on the page after it. The address contains only an unguessable number: with the words in it, anybody's link
//! could put words into our mouth.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::response::Redirect;
use maud::{Markup, html};

use reveille_base::{approval_text::hash_action, random};

use super::site::PageSite;

/// Maximum notes and forms kept; the oldest is dropped.
const MAX_NOTES: usize = 16;
/// Random bytes in a note's number and in a form's key.
const NUMBER_BYTES: usize = 8;

/// The outcome of a form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Note {
    /// The words for the person.
    pub(super) text: String,
    /// The step that the note's button undoes.
    pub(super) undo: Option<String>,
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self { text, undo: None }
    }
}

/// Values by key, oldest first.
type Kept<T> = VecDeque<(String, T)>;

/// Recent outcomes.
#[derive(Default)]
pub(super) struct Notes {
    /// Recent notes by number.
    notes: Mutex<Kept<Note>>,
    /// Executed forms, with the address of their outcome.
    forms: Mutex<Kept<String>>,
}

fn lock_entries<T>(kept: &Mutex<Kept<T>>) -> MutexGuard<'_, Kept<T>> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add_entry<T>(kept: &mut Kept<T>, name: String, what: T) {
    if kept.len() >= MAX_NOTES {
        kept.pop_front();
    }
    kept.push_back((name, what));
}

/// Creates a form's key, which makes a repeated submission harmless. Empty, meaning no key, without randomness.
pub(super) fn form_key() -> String {
    random::generate_bytes::<NUMBER_BYTES>().map(|bytes| random::format_hex(&bytes)).unwrap_or_default()
}

/// Identifies a submission by the form's key and content. `None` without a key.
pub(super) fn form_name(key: &str, form: &impl std::fmt::Debug) -> Option<String> {
    (!key.is_empty()).then(|| hash_action(&format!("{form:?}")))
}

/// The query that names a note.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct NoteQuery {
    #[serde(default)]
    pub(super) said: String,
}

impl PageSite {
    /// Redirects to one of our pages, which shows the outcome. `to` is a path without a query.
    pub(super) fn redirect_with_note(self: &Arc<Self>, to: &str, what: impl Into<Note>) -> Redirect {
        Redirect::to(&self.add_note(to, what.into()))
    }

    /// Returns the address of one of our pages, which shows the outcome. `to` is a path without a query.
    fn add_note(&self, to: &str, what: Note) -> String {
        // Without randomness the outcome isn't shown; the action is done anyway.
        let Ok(number) = random::generate_bytes::<NUMBER_BYTES>() else { return to.to_owned() };
        let number = random::format_hex(&number);
        add_entry(&mut lock_entries(&self.notes.notes), number.clone(), what);
        format!("{to}?said={number}")
    }

    /// Executes a form's order once and returns the address of its outcome. A repeated submission waits for the first one and gets the same
    /// address.
    ///
    /// # Errors
    /// The errors of `order`; the form can then be sent again.
    pub(super) fn run_once<N: Into<Note>, E>(
        &self,
        form: Option<String>,
        to: &str,
        order: impl FnOnce() -> Result<N, E>,
    ) -> Result<String, E> {
        let Some(form) = form else { return Ok(self.add_note(to, order()?.into())) };
        let mut forms = lock_entries(&self.notes.forms);
        if let Some((_, address)) = forms.iter().find(|(known, _)| *known == form) {
            return Ok(address.clone());
        }
        let address = self.add_note(to, order()?.into());
        add_entry(&mut forms, form, address.clone());
        Ok(address)
    }

    /// Renders a note if the query names an existing one.
    pub(super) fn render_note(&self, query: &NoteQuery) -> Markup {
        let notes = lock_entries(&self.notes.notes);
        let found = notes.iter().find(|(number, _)| *number == query.said);
        html! {
            @if let Some((_, Note { text, undo })) = found {
                div .note role="status" {
                    p { (text) }
                    @if let Some(step) = undo {
                        form method="post" action="/undo" {
                            input type="hidden" name="step" value=(step);
                            button type="submit" { "Undo" }
                        }
                    }
                }
            }
        }
    }
}
