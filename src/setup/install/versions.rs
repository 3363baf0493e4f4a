//! Builds stand beside each other, and one link says which of them is called. So an upgrade is one step, and so is its way back.
//!
//! ```text
//! PREFIX/bin/wake                    leads to lib/reveille/current/wake
//! PREFIX/lib/reveille/current        leads to the build that is called
//! PREFIX/lib/reveille/before         leads to the one that was called before it
//! PREFIX/lib/reveille/versions/NAME  the programs of a build; a file `reported-in` once they have shown that they work
//! ```
//!
//! 1. The new build is copied into a folder of its own. Nothing calls it yet.
//! 2. The database is copied, for a person's hand alone: no program ever puts it back.
//! 3. `before` is set, if the present build has reported in; then `current`, which starts the trial.
//! 4. Whoever installs waits until the new bot reports in (`store/intake/reported`). Then the build gets its mark.
//! 5. If it doesn't, `current` leads to `before` again, and that bot is started. It goes on with the database as it is by then.
//!
//! A kill leaves a build without its mark. The next installation sees that, and tries it or its own; its way back is the same.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ring::digest::{Context, SHA256};

use reveille_base::{
    process::{CURRENT, VERSIONS},
    random::hex,
};

use super::{Installation, PROGRAMS};

/// The link to the build that was called before.
const BEFORE: &str = "before";
/// What a build gets that has shown that it works.
const REPORTED_IN: &str = "reported-in";
/// What programs are called that were installed before builds stood beside each other.
pub(super) const EARLIER: &str = "earlier";
/// How much of a build's sum is part of its name, in hexadecimal digits.
const SUM_DIGITS: usize = 8;

/// The builds of one installation.
#[derive(Debug, Clone)]
pub struct Versions {
    dir: PathBuf,
}

impl Versions {
    /// Those of this installation.
    pub fn of(to: &Installation) -> Self {
        Self { dir: to.bin.parent().unwrap_or(&to.bin).join("lib/reveille") }
    }

    /// Those of the installation that has the programs of this folder for one of its builds, if one has.
    pub fn of_programs(folder: &Path) -> Option<Self> {
        let dir = folder.parent().filter(|dir| dir.ends_with(VERSIONS))?.parent()?.to_owned();
        fs::symlink_metadata(dir.join(CURRENT)).ok().map(|_| Self { dir })
    }

    /// Where that installation has its links.
    pub fn bin(&self) -> Option<PathBuf> {
        Some(self.dir.parent().filter(|dir| dir.ends_with("lib"))?.parent()?.join("bin"))
    }

    /// The link to the build that is called.
    pub fn current_link(&self) -> PathBuf {
        self.dir.join(CURRENT)
    }

    /// The link to the one before.
    pub fn before_link(&self) -> PathBuf {
        self.dir.join(BEFORE)
    }

    /// Where all builds are.
    pub fn all(&self) -> PathBuf {
        self.dir.join(VERSIONS)
    }

    /// Where the programs of a build are.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.all().join(name)
    }

    /// What a build gets once it has shown that it works.
    pub fn mark(&self, name: &str) -> PathBuf {
        self.folder(name).join(REPORTED_IN)
    }

    /// The build that is called.
    pub fn current(&self) -> Option<String> {
        leads_to(&self.current_link())
    }

    /// The build that was called before and works, if it is another one.
    pub fn before(&self) -> Option<String> {
        let before = leads_to(&self.before_link())?;
        let is_there = self.has_reported_in(&before) && self.folder(&before).join("wake").exists();
        (is_there && self.current().as_ref() != Some(&before)).then_some(before)
    }

    /// Whether a build has shown that it works.
    pub fn has_reported_in(&self, name: &str) -> bool {
        self.mark(name).exists()
    }

    /// The build that is called and hasn't shown yet that it works.
    pub fn on_trial(&self) -> Option<String> {
        self.current().filter(|name| !self.has_reported_in(name))
    }

    /// Since when the present build has been called.
    pub fn called_since(&self) -> Option<SystemTime> {
        fs::symlink_metadata(self.current_link()).ok()?.modified().ok()
    }

    /// Removes the builds that aren't called any more, but for the one before.
    ///
    /// # Errors
    /// The system's.
    pub fn prune(&self) -> io::Result<()> {
        let kept = [self.current(), leads_to(&self.before_link())];
        for entry in fs::read_dir(self.all())?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !kept.iter().flatten().any(|kept| *kept == name) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// What the build in this folder is called: its version, its commit, and a sum of its programs.
    ///
    /// # Errors
    /// The programs can't be read.
    pub(super) fn name_of(&self, programs: &Path) -> io::Result<String> {
        if let Some(name) = programs.file_name().filter(|_| programs.parent().is_some_and(|dir| dir == self.all())) {
            return Ok(name.to_string_lossy().into_owned());
        }
        let mut sum = Context::new(&SHA256);
        for name in PROGRAMS {
            sum.update(&fs::read(programs.join(name))?);
        }
        let version: String = crate::VERSION
            .split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'))
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("-");
        let sum: String = hex(sum.finish().as_ref()).chars().take(SUM_DIGITS).collect();
        Ok(format!("{version}-{sum}"))
    }
}

fn leads_to(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}
