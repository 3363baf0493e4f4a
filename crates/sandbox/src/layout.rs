//! A confinement resolved against the real file system: every place without symbolic links, in mount order, checked for contradictions.
//!
//! The deepest place wins: an open path within a covered directory is visible, a hidden path within an open directory
//! isn't. A grant that would expose a hidden place is refused as a whole, with an explanation for the person who
//! granted it.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{ConfinedHome, Confinement, SandboxError, places};

/// A path and its treatment in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct MountPlace {
    /// The number of path components. Shallow places are mounted first.
    pub(super) depth: usize,
    /// The treatment; of two kinds for one path the later variant wins.
    pub(super) kind: PlaceKind,
    /// The path, without symbolic links.
    pub(super) path: PathBuf,
}

/// The treatment of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum PlaceKind {
    /// An empty writable directory, removed afterwards.
    Private,
    /// An empty directory.
    Covered,
    /// Visible and read-only.
    Readable,
    /// Visible and writable.
    Writable,
    /// A directory that can't be entered.
    HiddenDir,
    /// A file that can't be opened.
    HiddenFile,
    /// A missing path that stays out of reach should it appear.
    HiddenMissing,
}

impl PlaceKind {
    pub(super) fn is_hidden(self) -> bool {
        matches!(self, Self::HiddenDir | Self::HiddenFile | Self::HiddenMissing)
    }
}

/// All places of a confinement, shallow places first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// The scratch directory, without symbolic links.
    pub(super) work_dir: PathBuf,
    /// The places, in mount order.
    pub(super) places: Vec<MountPlace>,
    /// Files shown in place of others, mounted after all places.
    #[serde(skip)]
    pub(super) overlays: Vec<(PathBuf, PathBuf)>,
    /// The maximum size of a file, in bytes.
    pub(super) max_file_bytes: Option<u64>,
}

impl Layout {
    /// Resolves all paths of a confinement.
    ///
    /// # Errors
    /// A grant names a missing path, or would expose a hidden place.
    pub fn from_confinement(confinement: &Confinement) -> Result<Self, SandboxError> {
        let work_dir = resolve_existing(&confinement.work_dir)?;
        let mut places = Vec::new();
        let mut add =
            |kind: PlaceKind, path: PathBuf| places.push(MountPlace { depth: path.components().count(), kind, path });
        for path in places::PRIVATE.iter().filter_map(|path| Path::new(path).canonicalize().ok()) {
            add(PlaceKind::Private, path);
        }
        let of_system = places::COVERED.iter().map(Path::new);
        for path in of_system.chain(confinement.covered.iter().map(PathBuf::as_path)) {
            if let Ok(path) = path.canonicalize() {
                add(PlaceKind::Covered, path);
            }
        }
        for path in &confinement.readable {
            add(PlaceKind::Readable, resolve_existing(path)?);
        }
        add(PlaceKind::Writable, work_dir.clone());
        for path in &confinement.writable {
            let path = resolve_existing(path)?;
            for file in places::env_files(&path) {
                // fault: granted-folders-settings-arent
                add_hidden(&file, &mut add);
            }
            add(PlaceKind::Writable, path);
        }
        for path in &confinement.hidden {
            add_hidden(path, &mut add);
        }
        let home = match &confinement.home {
            ConfinedHome::Empty(home) => home.canonicalize().ok(),
            ConfinedHome::AsItIs(_) | ConfinedHome::WorkDir => None,
        };
        if let Some(home) = &home {
            add(PlaceKind::Private, home.clone());
        }
        let shown = list_visible_paths(confinement, &places);
        for path in &shown {
            places.push(MountPlace { depth: path.components().count(), kind: PlaceKind::Readable, path: path.clone() });
        }
        places.sort();
        places.dedup();
        let overlays = confinement.overlays.clone();
        let layout = Self { work_dir, places, overlays, max_file_bytes: confinement.max_file_bytes };
        layout.check_grants(confinement, &shown)?;
        let layout = match home {
            Some(home) => layout.without_home_hidden(&home),
            None => layout,
        };
        let layout = if confinement.is_read_only { layout.read_only() } else { layout };
        Ok(layout.simplify())
    }

    /// Returns the hidden paths.
    pub fn list_hidden(&self) -> Vec<PathBuf> {
        self.places.iter().filter(|place| place.kind.is_hidden()).map(|place| place.path.clone()).collect()
    }

    /// Makes all writable places except the scratch read-only.
    fn read_only(mut self) -> Self {
        for place in self.places.iter_mut().filter(|place| place.path != self.work_dir) {
            place.kind = if place.kind == PlaceKind::Writable { PlaceKind::Readable } else { place.kind };
        }
        self
    }

    /// Drops the hidden places that lie directly in an empty home, because they don't exist there.
    fn without_home_hidden(self, home: &Path) -> Self {
        let is_open = |place: &&MountPlace| !place.kind.is_hidden();
        let lies_in = |path: &Path| self.places.iter().filter(is_open).rfind(|place| path.starts_with(&place.path));
        let is_gone = |place: &MountPlace| {
            place.kind.is_hidden()
                && lies_in(&place.path).is_some_and(|around| around.kind == PlaceKind::Private && around.path == home)
        };
        let places = self.places.iter().filter(|place| !is_gone(place)).cloned().collect();
        Self { places, ..self.clone() }
    }

    /// Drops the places within a hidden place, because nothing can be mounted there.
    fn simplify(self) -> Self {
        let hidden = self.places.iter().filter(|place| place.kind.is_hidden());
        let hidden: HashSet<&Path> = hidden.map(|place| &*place.path).collect();
        let is_within = |path: &Path| path.ancestors().skip(1).any(|folder| hidden.contains(folder));
        let places = self.places.iter().filter(|place| !is_within(&place.path)).cloned().collect();
        Self { places, ..self.clone() }
    }

    /// Checks the grants against the hidden places. The paths in `seen` are only visible, and don't bar a writable grant.
    fn check_grants(&self, confinement: &Confinement, seen: &[PathBuf]) -> Result<(), SandboxError> {
        if let Some(place) = self.places.iter().find(|place| place.path.to_str().is_none()) {
            return Err(refuse_grant(format!("{}: a name that isn't UTF-8 can't be confined", place.path.display())));
        }
        let granted =
            self.places.iter().filter(|place| matches!(place.kind, PlaceKind::Readable | PlaceKind::Writable));
        for MountPlace { kind, path, .. } in granted {
            let shown = path.display();
            if path.parent().is_none() {
                return Err(refuse_grant(format!("{shown} can't be granted: it is the whole machine")));
            }
            for other in &self.places {
                let is_beneath = other.path.starts_with(path);
                let place = other.path.display();
                if other.kind.is_hidden() && path.starts_with(&other.path) {
                    return Err(refuse_grant(format!("{shown} can't be granted: {place} is always out of reach")));
                }
                if *kind != PlaceKind::Writable {
                    continue;
                }
                // A missing path can't be covered, and the program could create it.
                if other.kind == PlaceKind::HiddenMissing && is_beneath {
                    return Err(refuse_grant(format!(
                        "{shown} can't be granted for writing: {place} has to stay out of reach; grant a directory within it"
                    )));
                }
                let is_workspace = other.kind == PlaceKind::Covered && is_covered(confinement, &other.path);
                let is_own = other.kind == PlaceKind::Readable && !seen.contains(&other.path);
                if (is_workspace && is_beneath) || (is_own && path.starts_with(&other.path)) {
                    return Err(refuse_grant(format!(
                        "{shown} can't be granted for writing: {place} is the assistant's own"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Returns the additional readable paths that exist and aren't hidden. Includes an unchanged home if a system place would cover it.
fn list_visible_paths(confinement: &Confinement, places: &[MountPlace]) -> Vec<PathBuf> {
    let of_system = || places::PRIVATE.iter().chain(places::COVERED).map(Path::new);
    let home = match &confinement.home {
        ConfinedHome::AsItIs(home) => Some(home).filter(|home| of_system().any(|place| home.starts_with(place))),
        ConfinedHome::Empty(_) | ConfinedHome::WorkDir => None,
    };
    let is_hidden = |path: &PathBuf| places.iter().any(|place| place.kind.is_hidden() && path.starts_with(&place.path));
    let real = confinement.shown.iter().chain(home).filter_map(|path| path.canonicalize().ok());
    real.filter(|path| path.parent().is_some() && !is_hidden(path)).collect()
}

fn is_covered(confinement: &Confinement, path: &Path) -> bool {
    confinement.covered.iter().any(|covered| covered.canonicalize().is_ok_and(|covered| covered == path))
}

fn refuse_grant(why: String) -> SandboxError {
    SandboxError::Grant(why)
}

fn resolve_existing(path: &Path) -> Result<PathBuf, SandboxError> {
    if !path.is_absolute() {
        return Err(refuse_grant(format!("{} can't be granted: the path has to be absolute", path.display())));
    }
    path.canonicalize().map_err(|error| refuse_grant(format!("{} can't be granted: {error}", path.display())))
}

/// Adds a hidden place at its real path, so that links to it are closed too. A dangling link is missing at its own path and at its target.
fn add_hidden(path: &Path, add: &mut impl FnMut(PlaceKind, PathBuf)) {
    match path.canonicalize() {
        Ok(real) if real.is_dir() => add(PlaceKind::HiddenDir, real),
        Ok(real) => add(PlaceKind::HiddenFile, real),
        Err(_) => add(PlaceKind::HiddenMissing, real_parent(path)),
    }
}

/// Returns the path with the symbolic links in its existing directories resolved.
fn real_parent(path: &Path) -> PathBuf {
    for parent in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (parent.canonicalize(), path.strip_prefix(parent)) {
            return real.join(rest);
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Scene {
        root: tempfile::TempDir,
        confinement: Confinement,
    }

    fn scene() -> Scene {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for dir in ["home/.ssh", "home/project", "workspace/brain/.git", "workspace/work"] {
            std::fs::create_dir_all(at(dir)).unwrap();
        }
        std::fs::write(at("workspace/policy.toml"), "").unwrap();
        let confinement = Confinement {
            work_dir: at("workspace/work"),
            readable: vec![at("workspace/brain")],
            covered: vec![at("workspace")],
            hidden: ["home/.ssh", "home/.netrc", "workspace/brain/.git", "workspace/policy.toml"].map(at).to_vec(),
            ..Confinement::default()
        };
        Scene { root, confinement }
    }

    fn granting(scene: &Scene, path: &str) -> Result<Layout, String> {
        let writable = vec![scene.root.path().join(path)];
        let confinement = Confinement { writable, ..scene.confinement.clone() };
        Layout::from_confinement(&confinement).map_err(|error| error.to_string())
    }

    #[test]
    fn places_come_shallow_first_and_hidden_ones_last_at_their_depth() {
        let scene = scene();
        let layout = granting(&scene, "home/project").unwrap();
        assert!(layout.places.is_sorted());
        let root = scene.root.path().canonicalize().unwrap();
        let below: Vec<_> = layout
            .places
            .iter()
            .filter_map(|place| Some((place.kind, place.path.strip_prefix(&root).ok()?.to_str()?)))
            .collect();
        assert_eq!(
            below,
            [
                (PlaceKind::Covered, "workspace"),
                (PlaceKind::Readable, "workspace/brain"),
                (PlaceKind::Writable, "home/project"),
                (PlaceKind::Writable, "workspace/work"),
                (PlaceKind::HiddenDir, "home/.ssh"),
                (PlaceKind::HiddenFile, "workspace/policy.toml"),
                (PlaceKind::HiddenMissing, "home/.netrc"),
                (PlaceKind::HiddenDir, "workspace/brain/.git"),
            ]
        );
    }

    #[test]
    fn an_empty_home_has_nothing_to_hide_but_what_is_granted_in_it() {
        let scene = scene();
        let at = |path: &str| scene.root.path().join(path);
        std::fs::create_dir_all(at("home/read")).unwrap();
        std::fs::write(at("home/project/.env"), "KEY=1").unwrap();
        let confinement = Confinement {
            home: ConfinedHome::Empty(at("home")),
            writable: vec![at("home/project")],
            shown: ["home/read", "home/.ssh", "home/gone"].map(at).to_vec(),
            ..scene.confinement.clone()
        };
        let layout = Layout::from_confinement(&confinement).unwrap();
        let home = at("home").canonicalize().unwrap();
        let below: Vec<_> = layout
            .places
            .iter()
            .filter_map(|place| Some((place.kind, place.path.strip_prefix(&home).ok()?.to_str()?)))
            .collect();
        assert_eq!(
            below,
            [
                (PlaceKind::Private, ""),
                (PlaceKind::Readable, "read"),
                (PlaceKind::Writable, "project"),
                (PlaceKind::HiddenFile, "project/.env"),
            ]
        );
        // With a profile of paths only, the home is out of reach except for these.
        let profile = crate::seatbelt::render_profile(&layout, None);
        let rule = |verb: &str, path: &str| {
            profile.find(&format!("({verb} (subpath \"{}", at(path).canonicalize().unwrap().display()))
        };
        let (denied, read) =
            (rule("deny file-read* file-write* file-link", "home"), rule("allow file-read*", "home/read"));
        assert!(
            denied.is_some() && denied < read && rule("allow file-read* file-write*", "home/project") > denied,
            "{profile}"
        );
    }

    #[test]
    fn a_grant_that_would_undo_what_is_out_of_reach_is_refused_in_words() {
        let scene = scene();
        for (path, why) in [
            ("home/.ssh", "always out of reach"),
            ("home", ".netrc has to stay out of reach"),
            ("workspace", "the assistant's own"),
            ("", "can't be granted for writing"),
            ("workspace/brain", "the assistant's own"),
            ("workspace/brain/.git", "can't be granted for writing"),
            ("nowhere", "No such file"),
        ] {
            let error = granting(&scene, path).unwrap_err();
            assert!(error.contains(why), "{path}: {error}");
        }
        let error = granting(&scene, "/").unwrap_err();
        assert!(error.contains("the whole machine"), "{error}");
        let relative = Confinement { work_dir: PathBuf::from("here"), ..scene.confinement.clone() };
        assert!(Layout::from_confinement(&relative).unwrap_err().to_string().contains("absolute"));
    }

    #[test]
    fn a_link_is_hidden_where_it_leads_and_a_grant_is_judged_there() {
        let scene = scene();
        let at = |path: &str| scene.root.path().join(path);
        symlink(at("home/.ssh"), at("home/project/keys")).unwrap();
        assert!(granting(&scene, "home/project/keys").unwrap_err().contains("always out of reach"));
        symlink(at("home/project"), at("home/.aws")).unwrap();
        let hidden = vec![at("home/.aws/credentials")];
        let layout = Layout::from_confinement(&Confinement { hidden, ..scene.confinement.clone() }).unwrap();
        let real = at("home/project").canonicalize().unwrap().join("credentials");
        assert!(layout.places.iter().any(|place| place.kind == PlaceKind::HiddenMissing && place.path == real));
    }

    #[test]
    fn settings_within_a_granted_root_are_hidden() {
        let scene = scene();
        std::fs::write(scene.root.path().join("home/project/.env"), "KEY=1").unwrap();
        let layout = granting(&scene, "home/project").unwrap();
        let is_it = |place: &&MountPlace| place.kind == PlaceKind::HiddenFile && place.path.ends_with("project/.env");
        assert_eq!(layout.places.iter().filter(is_it).count(), 1);
    }
}
