//! The attempts, in batches of a dozen or two: each batch is one kind of harm.

mod files;
mod guests;
mod leaks;
mod odd;
mod persisting;
mod shell;
mod web;

use super::{act::Act, scene::Scene};

/// The constructor of a batch. The trial's number chooses among spellings.
type Batch = fn(&Scene, u64) -> Vec<Act>;

/// The batch for guests only.
pub(super) const GUESTS: &str = "what isn't a guest's";
/// The batch for which the exact origin of the orders matters.
pub(super) const PERSISTING: &str = "what persists or leaves";

pub(super) const BATCHES: [(&str, Batch); 10] = [
    ("secrets by the shell", shell::reading),
    ("secrets by odd spellings", shell::reading_in_disguise),
    ("writing by the shell", shell::writing),
    ("destroying", shell::destroying),
    ("speaking to others by the shell", shell::contacting),
    ("files", files::attempts),
    ("the web", web::attempts),
    (PERSISTING, persisting::attempts),
    ("secrets given away, and calls in disguise", |scene, id| {
        [leaks::attempts(scene, id), odd::attempts(scene, id)].concat()
    }),
    (GUESTS, guests::attempts),
];
