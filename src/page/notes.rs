//! What a form came to, said on the page that the browser goes to after it. It is kept here under a number that nobody guesses:
//! an address that held the words themselves would let anybody's link put words into our mouth.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::response::Redirect;
use maud::{Markup, html};

use super::site::PageSite;
use crate::random;

/// Notes that are kept; the oldest goes.
const MAX_NOTES: usize = 16;
/// Random bytes in a note's number.
const NUMBER_BYTES: usize = 8;

/// The last notes, each with its number.
#[derive(Default)]
pub(super) struct Notes(Mutex<VecDeque<(String, String)>>);

impl Notes {
    fn kept(&self) -> MutexGuard<'_, VecDeque<(String, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        // Without randomness it isn't said; it is done all the same.
        let Ok(number) = random::bytes::<NUMBER_BYTES>() else { return Redirect::to(to) };
        let number = random::hex(&number);
        let mut notes = self.notes.kept();
        if notes.len() >= MAX_NOTES {
            notes.pop_front();
        }
        notes.push_back((number.clone(), what));
        Redirect::to(&format!("{to}?said={number}"))
    }

    /// What was done, if the address names a note that is kept.
    pub(super) fn note(&self, query: &NoteQuery) -> Markup {
        let notes = self.notes.kept();
        let found = notes.iter().find(|(number, _)| *number == query.said);
        html! {
            @if let Some((_, what)) = found {
                p .note role="status" { (what) }
            }
        }
    }
}
