//! Path rules by Landlock. Landlock can only allow access beneath a directory. So for each ancestor of a hidden place, its
//! other children are allowed one by one. Entries that appear in such an ancestor later stay forbidden.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, PathFdError, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};

use crate::layout::{Layout, PlaceKind};

/// Maximum number of paths that are allowed one by one. Few directories with a hidden place have more entries.
const MAX_PATHS: usize = 20_000;

#[derive(Debug, thiserror::Error)]
pub(super) enum PathsError {
    #[error("{0}")]
    Ruleset(#[from] RulesetError),
    #[error("{0}")]
    Path(#[from] PathFdError),
    #[error("this kernel has it switched off")]
    Off,
    #[error("more than {MAX_PATHS} paths lie beside the hidden ones")]
    TooMany,
}

/// Restricts this process, the programs that replace it, and all its children.
pub(super) fn restrict(layout: &Layout) -> Result<(), PathsError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))?
        // Later kernels' rules apply where supported: renaming across directories, truncating, devices; signals and sockets.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?;
    let reads = AccessFs::ReadFile | AccessFs::Execute;
    // Listing is allowed everywhere, because bubblewrap shows hidden directories as empty.
    rules = allow_path(rules, Path::new("/"), AccessFs::ReadDir.into())?;
    for path in list_readable_paths(layout)? {
        rules = match PathFd::new(&path) {
            Ok(fd) => rules.add_rule(PathBeneath::new(fd, reads))?,
            // The path has vanished or can't be opened.
            Err(_) => rules,
        };
    }
    rules = allow_path(rules, Path::new("/dev"), AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev)?;
    rules = allow_path(rules, Path::new("/dev/shm"), list_writable_rights())?;
    for place in layout.places.iter().filter(|place| matches!(place.kind, PlaceKind::Writable | PlaceKind::Private)) {
        rules = allow_path(rules, &place.path, list_writable_rights())?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(PathsError::Off),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Bars this process, the programs that replace it, and all its children from abstract Unix sockets of other processes.
pub(super) fn block_abstract_sockets() -> Result<(), PathsError> {
    let rules =
        Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::AbstractUnixSocket)?.create()?;
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err(PathsError::Off),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Returns the rights within writable places: everything except creating devices and sockets. Reading is included
/// because programs read their own files, so only bubblewrap hides a file within a writable place.
fn list_writable_rights() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI::V5) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock)
}

fn allow_path(rules: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> Result<RulesetCreated, PathsError> {
    Ok(rules.add_rule(PathBeneath::new(PathFd::new(path)?, access))?)
}

/// Lists the readable paths: everything except the hidden places.
fn list_readable_paths(layout: &Layout) -> Result<Vec<PathBuf>, PathsError> {
    let hidden = layout.places.iter().filter(|place| place.kind.is_hidden());
    let hidden: HashSet<&Path> = hidden.map(|place| place.path.as_path()).collect();
    let ancestors: HashSet<&Path> = hidden.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let (mut found, mut pending) = (Vec::new(), vec![PathBuf::from("/")]);
    while let Some(path) = pending.pop() {
        if hidden.contains(path.as_path()) {
            continue;
        }
        if !ancestors.contains(path.as_path()) {
            found.push(path);
        } else if let Ok(entries) = std::fs::read_dir(&path) {
            // A link is allowed through the real path of its target.
            let entries = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            pending.extend(entries.map(|entry| entry.path()));
        }
        if found.len() + pending.len() > MAX_PATHS {
            return Err(PathsError::TooMany);
        }
    }
    Ok(found)
}
