//! Shared code of the file tools: the usable folders, and the refusals.

use std::path::Path;

use reveille_memory::others;
use reveille_policy::Rules;
use reveille_sandbox::exec::{
    Exec, ScratchView,
    beneath::{PathError, Place, Roots, Whose},
};

use super::{Refusal, World};

/// Returns the folders of this cycle. Chats other than the owner's have none (their calls are denied earlier), because
/// the scratch folder holds the owner's results, which are as private as the memory.
pub(super) fn list_roots(world: &World, exec: &Exec) -> Result<Roots, Refusal> {
    let brain = world
        .memory
        .documents
        .root()
        .ok_or_else(|| Refusal::new(format!("{} Nothing was done.", super::OWNERS_ALONE)))?;
    let roots = Roots::new(&exec.work_dir().map_err(Refusal::new)?, &world.conversation.attachments.dir);
    let roots = roots
        .with_scratch_folders(
            world.means.shelter.list_visible_folders(ScratchView::for_cycle(world.cycle.taint.is_some())),
        )
        .with_brain(brain)
        .with_granted_folders(&world.means.rules.readable_folders(), &world.means.rules.writable_folders());
    // fault: files-settings-name-keys-open
    Ok(roots.without_files(exec.key_files()))
}

/// Returns the test for paths excluded by the person's rules during a search or listing. `looks` are the tools whose
/// rules apply, the calling tool first. The call was judged by its starting path. If the person approved a starting
/// path that a rule asks about, only denied paths within remain excluded.
pub(super) fn build_exclusion(
    rules: Rules,
    looks: &'static [&'static str],
    begins: Option<&str>,
) -> impl Fn(&Path) -> bool + use<> {
    let asked = looks.first().zip(begins);
    let is_agreed = asked.is_some_and(|(tool, begins)| rules.keeps_back(tool, Path::new(begins)));
    move |path| {
        looks.iter().any(|tool| if is_agreed { rules.is_denied(tool, path) } else { rules.keeps_back(tool, path) })
    }
}

/// Returns the source of a file's text. The memory is trusted, except for possibly untrusted parts of `text`.
pub(super) fn find_origin(place: &Place, text: &str, world: &World) -> Option<String> {
    if place.folder_owner() != Whose::Brain {
        return Some(format!("a file ({})", place.name()));
    }
    let path = strip_memory_root(place.path(), world).unwrap_or_default();
    (!others::find_untrusted(path, text, world.foreign_chat()).is_empty()).then(|| others::ORIGIN.to_owned())
}

/// Returns a path relative to the memory's folder; `None` outside.
pub(super) fn strip_memory_root<'a>(path: &'a Path, world: &World) -> Option<&'a str> {
    path.strip_prefix(world.memory.documents.root()?).ok()?.to_str()
}

impl From<PathError> for Refusal {
    fn from(error: PathError) -> Self {
        Self::new(format!("{error} Nothing was done."))
    }
}
