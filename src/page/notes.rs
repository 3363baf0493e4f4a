//! What a form came to, said on the page that the browser goes to after it. It is kept here under a number that nobody guesses:
//! an address that held the words themselves would let anybody's link put words into our mouth.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::response::Redirect;
use maud::{Markup, html};

use reveille_base::{approval_text::sha256, random};

use super::site::PageSite;

/// Notes that are kept; the oldest goes.
const MAX_NOTES: usize = 16;
/// Random bytes in a note's number, and in a form's key.
const NUMBER_BYTES: usize = 8;

/// Texts by what finds them, the oldest first.
type Kept = VecDeque<(String, String)>;

/// What was done lately.
#[derive(Default)]
pub(super) struct Notes {
    /// The last notes, each with its number.
    notes: Mutex<Kept>,
    /// Forms that were carried out, each with the address that it led to.
    forms: Mutex<Kept>,
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(kept: &mut Kept, name: String, what: String) {
    if kept.len() >= MAX_NOTES {
        kept.pop_front();
    }
    kept.push_back((name, what));
}

/// A key for a form, so that sending it twice does its work once; empty without randomness, which counts as none.
pub(super) fn form_key() -> String {
    random::bytes::<NUMBER_BYTES>().map(|bytes| random::hex(&bytes)).unwrap_or_default()
}

/// Which form it is, with all that was typed; none without a key.
pub(super) fn form_name(key: &str, form: &impl std::fmt::Debug) -> Option<String> {
    (!key.is_empty()).then(|| sha256(&format!("{form:?}")))
}

/// The part of an address that names a note.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct NoteQuery {
    #[serde(default)]
    pub(super) said: String,
}

impl PageSite {
    /// Sends the browser to a page of ours, which says there what was done. `to` is a path without a query.
    pub(super) fn said(self: &Arc<Self>, to: &str, what: String) -> Redirect {
        Redirect::to(&self.noted(to, what))
    }

    /// The address of a page of ours, which says there what was done. `to` is a path without a query.
    fn noted(&self, to: &str, what: String) -> String {
        // Without randomness it isn't said; it is done all the same.
        let Ok(number) = random::bytes::<NUMBER_BYTES>() else { return to.to_owned() };
        let number = random::hex(&number);
        keep(&mut locked(&self.notes.notes), number.clone(), what);
        format!("{to}?said={number}")
    }

    /// Carries a form's order out once, and gives the address that says what was done. A repeat waits for the first one, and
    /// leads to the same.
    ///
    /// # Errors
    /// Those of `order`; the form can be sent again then.
    pub(super) fn once<E>(
        &self,
        form: Option<String>,
        to: &str,
        order: impl FnOnce() -> Result<String, E>,
    ) -> Result<String, E> {
        let Some(form) = form else { return Ok(self.noted(to, order()?)) };
        let mut forms = locked(&self.notes.forms);
        if let Some((_, address)) = forms.iter().find(|(known, _)| *known == form) {
            return Ok(address.clone());
        }
        let address = self.noted(to, order()?);
        keep(&mut forms, form, address.clone());
        Ok(address)
    }

    /// What was done, if the address names a note that is kept.
    pub(super) fn note(&self, query: &NoteQuery) -> Markup {
        let notes = locked(&self.notes.notes);
        let found = notes.iter().find(|(number, _)| *number == query.said);
        html! {
            @if let Some((_, what)) = found {
                p .note role="status" { (what) }
            }
        }
    }
}
