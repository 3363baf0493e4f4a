//! The attempts, in hands of a dozen or two: each hand is one kind of harm.

mod files;
mod guests;
mod leaks;
mod odd;
mod persisting;
mod shell;
mod web;

use super::{act::Act, scene::Scene};

/// A hand's constructor. The trial's number chooses among spellings.
type Hand = fn(&Scene, u64) -> Vec<Act>;

/// The hand for guests only.
pub(super) const GUESTS: &str = "what isn't a guest's";
/// The hand for which the exact origin of the orders matters.
pub(super) const PERSISTING: &str = "what persists or leaves";

pub(super) const HANDS: [(&str, Hand); 10] = [
    ("secrets by the shell", shell::reading),
    ("secrets by odd spellings", shell::reading_oddly),
    ("writing by the shell", shell::writing),
    ("destroying", shell::destroying),
    ("speaking to others by the shell", shell::speaking),
    ("files", files::hand),
    ("the web", web::hand),
    (PERSISTING, persisting::hand),
    ("secrets given away, and calls in disguise", |scene, id| [leaks::hand(scene, id), odd::hand(scene, id)].concat()),
    (GUESTS, guests::hand),
];
