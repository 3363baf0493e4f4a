//! What the tools that act on files have in common: which folders they may use, and how they say no.

use super::{Refusal, World};
use crate::hands::{
    Hands,
    beneath::{PathError, Place, Roots, Whose},
};

/// The folders of this cycle. Another chat than the person's own has the scratch folder alone: what the person keeps is no more
/// its business than the memory is.
pub(super) fn roots(world: &World, hands: &Hands) -> Result<Roots, Refusal> {
    let roots = Roots::new(hands.scratch().map_err(Refusal::because)?, &world.attachments.dir);
    Ok(match world.documents.root() {
        Some(brain) => roots.with_brain(brain).with_granted(&world.rules.readable(), &world.rules.writable()),
        None => roots,
    })
}

/// Whose bytes a file holds. The memory's are our own.
pub(super) fn origin(place: &Place) -> Option<String> {
    (place.whose() != Whose::Brain).then(|| format!("a file ({})", place.name()))
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        Self(format!("{error} Nothing was done."))
    }
}
