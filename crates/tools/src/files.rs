//! What the tools that act on files have in common: which folders they may use, and how they say no.

use std::path::Path;

use reveille_memory::others;
use reveille_policy::Rules;
use reveille_sandbox::exec::{
    Exec,
    beneath::{PathError, Place, Roots, Whose},
};

use super::{Refusal, World};

/// The folders of this cycle. Another chat than the owner's has none (its calls are denied before): what lies in the scratch folder is
/// of what the owner had done, and no more its business than the memory is.
pub(super) fn roots(world: &World, exec: &Exec) -> Result<Roots, Refusal> {
    let brain = world.documents.root().ok_or_else(|| Refusal(format!("{} Nothing was done.", super::OWNERS_ALONE)))?;
    let roots = Roots::new(&exec.work_dir().map_err(Refusal::because)?, &world.attachments.dir);
    let roots = roots
        .with_left(world.shelter.seen(world.taint.is_some()))
        .with_brain(brain)
        .with_granted(&world.rules.readable(), &world.rules.writable());
    // fault: files-settings-name-keys-open
    Ok(roots.without(exec.key_files()))
}

/// What the person's rules keep from whoever looks around by itself: from the first of these tools, or from another whose look it is,
/// too. The call was judged by where it begins: who said yes to a place that a rule asks about is given what is in it, but for what is
/// denied.
pub(super) fn kept_back(
    rules: Rules,
    looks: &'static [&'static str],
    begins: Option<&str>,
) -> impl Fn(&Path) -> bool + use<> {
    let asked = looks.first().zip(begins);
    let is_agreed = asked.is_some_and(|(tool, begins)| rules.keeps_back(tool, Path::new(begins)));
    move |path| looks.iter().any(|tool| if is_agreed { rules.denies(tool, path) } else { rules.keeps_back(tool, path) })
}

/// Whose bytes a file holds. The memory's are our own, but for the parts of `text` that others may have had a hand in.
pub(super) fn origin(place: &Place, text: &str, world: &World) -> Option<String> {
    if place.whose() != Whose::Brain {
        return Some(format!("a file ({})", place.name()));
    }
    let path = below_brain(place.path(), world).unwrap_or_default();
    (!others::parts(path, text, world.foreign_chat()).is_empty()).then(|| others::ORIGIN.to_owned())
}

/// A path below the memory's folder.
pub(super) fn below_brain<'a>(path: &'a Path, world: &World) -> Option<&'a str> {
    path.strip_prefix(world.documents.root()?).ok()?.to_str()
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        Self(format!("{error} Nothing was done."))
    }
}
