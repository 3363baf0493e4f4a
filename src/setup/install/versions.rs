//! Builds are installed beside each other, and one link selects the current one. Thus an upgrade is one step, and so is a rollback.
//!
//! ```text
//! PREFIX/bin/wake                    link to lib/reveille/current/wake
//! PREFIX/lib/reveille/current        link to the current build
//! PREFIX/lib/reveille/before         link to the previous build
//! PREFIX/lib/reveille/versions/NAME  the programs of a build; a file `reported-in` once they have proved to work
//! ```
//!
//! 1. The new build is copied into a directory of its own. Nothing calls it yet.
//! 2. The database is copied, for manual use only: no program ever restores it.
//! 3. `before` is pointed at the current build, if that has reported in. Then `current` is pointed at the new one: its trial starts.
//! 4. The installer waits until the new bot reports in (`store/intake/reported`). Then the build gets its mark.
//! 5. Otherwise `current` points to `before` again, and that bot is started. It continues with the database as it is by then.
//!
//! A kill leaves a build without its mark. The next installation notices, and tries that build or its own, with the same rollback.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use ring::digest::{Context, SHA256};

use reveille_base::{
    process::{CURRENT, VERSIONS},
    random::format_hex,
};

use super::{Installation, PROGRAMS};

/// The link to the previous build.
const BEFORE: &str = "before";
/// The mark of a build that has proved to work.
const REPORTED_IN: &str = "reported-in";
/// Name of the build made of programs that were installed before builds had directories of their own.
pub(super) const EARLIER: &str = "earlier";
/// Hexadecimal digits of a build's checksum in its name.
const SUM_DIGITS: usize = 8;

/// The builds of an installation.
#[derive(Debug, Clone)]
pub struct Versions {
    dir: PathBuf,
}

impl Versions {
    /// Returns the builds of this installation.
    pub fn for_installation(to: &Installation) -> Self {
        Self { dir: to.bin.parent().unwrap_or(&to.bin).join("lib/reveille") }
    }

    /// Returns the builds of the installation that contains this directory of programs. `None` if it isn't a build's directory.
    pub fn for_programs(folder: &Path) -> Option<Self> {
        let dir = folder.parent().filter(|dir| dir.ends_with(VERSIONS))?.parent()?.to_owned();
        fs::symlink_metadata(dir.join(CURRENT)).ok().map(|_| Self { dir })
    }

    /// Returns the directory of the installation's links.
    pub fn bin(&self) -> Option<PathBuf> {
        Some(self.dir.parent().filter(|dir| dir.ends_with("lib"))?.parent()?.join("bin"))
    }

    /// The link to the current build.
    pub fn current_link(&self) -> PathBuf {
        self.dir.join(CURRENT)
    }

    /// The link to the previous build.
    pub fn previous_link(&self) -> PathBuf {
        self.dir.join(BEFORE)
    }

    /// The directory of all builds.
    pub fn versions_dir(&self) -> PathBuf {
        self.dir.join(VERSIONS)
    }

    /// The directory of a build's programs.
    pub fn build_dir(&self, name: &str) -> PathBuf {
        self.versions_dir().join(name)
    }

    /// The mark of a build that has proved to work.
    pub fn mark(&self, name: &str) -> PathBuf {
        self.build_dir(name).join(REPORTED_IN)
    }

    /// Returns the current build.
    pub fn current_build(&self) -> Option<String> {
        read_link_name(&self.current_link())
    }

    /// Returns the previous build, if it differs from the current one and has proved to work.
    pub fn previous_build(&self) -> Option<String> {
        let before = read_link_name(&self.previous_link())?;
        let is_there = self.has_reported_in(&before) && self.build_dir(&before).join("wake").exists();
        (is_there && self.current_build().as_ref() != Some(&before)).then_some(before)
    }

    /// True if a build has reported in, and so has proved to work.
    pub fn has_reported_in(&self, name: &str) -> bool {
        self.mark(name).exists()
    }

    /// Returns the current build if it hasn't proved to work yet.
    pub fn find_trial_build(&self) -> Option<String> {
        self.current_build().filter(|name| !self.has_reported_in(name))
    }

    /// Returns the time of the switch to the current build.
    pub fn find_switch_time(&self) -> Option<SystemTime> {
        fs::symlink_metadata(self.current_link()).ok()?.modified().ok()
    }

    /// Removes all builds but the current and the previous one.
    ///
    /// # Errors
    /// A build can't be listed or removed.
    pub fn prune(&self) -> io::Result<()> {
        let kept = [self.current_build(), read_link_name(&self.previous_link())];
        for entry in fs::read_dir(self.versions_dir())?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !kept.iter().flatten().any(|kept| *kept == name) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    /// Returns the name of the build in this directory: version, commit, and a checksum of the programs.
    ///
    /// # Errors
    /// The programs can't be read.
    pub(super) fn compute_name(&self, programs: &Path) -> io::Result<String> {
        if let Some(name) =
            programs.file_name().filter(|_| programs.parent().is_some_and(|dir| dir == self.versions_dir()))
        {
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
        let sum: String = format_hex(sum.finish().as_ref()).chars().take(SUM_DIGITS).collect();
        Ok(format!("{version}-{sum}"))
    }
}

fn read_link_name(link: &Path) -> Option<String> {
    Some(fs::read_link(link).ok()?.file_name()?.to_string_lossy().into_owned())
}
