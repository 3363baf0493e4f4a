//! The sandbox of this machine as one cycle knows it: looked for when it is first asked for, and only then.

use std::{
    cell::OnceCell,
    fs::DirBuilder,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use crate::{
    config::Config,
    policy::Rules,
    sandbox::{Confinement, Sandbox},
};

/// Where programs run.
#[derive(Debug)]
pub struct Shelter {
    launcher: PathBuf,
    confinement: Confinement,
    found: OnceCell<Sandbox>,
}

impl Shelter {
    /// Of this workspace; `launcher` is the program `wake`. What the rules deny to programs is hidden in it, as far as it is there.
    pub fn new(config: &Config, rules: &Rules, launcher: PathBuf) -> Self {
        let mut confinement = Confinement::new(config, config.home.as_deref(), config.scratch_dir());
        let denied: Vec<PathBuf> = rules.hidden_places().into_iter().filter(|place| place.exists()).collect();
        // Of ours, too: the memory can be denied to programs.
        confinement.readable.retain(|path| !denied.iter().any(|place| path.starts_with(place)));
        confinement.hidden.extend(denied);
        Self { launcher, confinement, found: OnceCell::new() }
    }

    /// What is confined so, with the launcher that this program is.
    pub fn of(confinement: Confinement, launcher: PathBuf) -> Self {
        Self { launcher, confinement, found: OnceCell::new() }
    }

    /// One that is taken to be there, and confines nothing.
    #[cfg(test)]
    pub fn assumed() -> Self {
        let program = PathBuf::from("/nowhere");
        let found = Sandbox::Seatbelt { program: program.clone() };
        Self { launcher: program, confinement: Confinement::default(), found: OnceCell::from(found) }
    }

    /// The same with a scratch directory.
    #[cfg(test)]
    pub fn assumed_in(scratch: &Path) -> Self {
        let confinement = Confinement { work_dir: scratch.to_owned(), ..Confinement::default() };
        Self { confinement, ..Self::assumed() }
    }

    /// One that isn't there, with a scratch directory that is.
    #[cfg(test)]
    pub fn missing(scratch: &Path) -> Self {
        let confinement = Confinement { work_dir: scratch.to_owned(), ..Confinement::default() };
        let found = Sandbox::None { why: "a test has none".to_owned() };
        Self { launcher: PathBuf::new(), confinement, found: OnceCell::from(found) }
    }

    /// What this machine offers. The first call tries it out.
    pub fn sandbox(&self) -> &Sandbox {
        self.found.get_or_init(|| match make_private(self.scratch()) {
            Ok(()) => Sandbox::find(&self.launcher, self.scratch()),
            Err(error) => Sandbox::None { why: format!("{} can't be made: {error}", self.scratch().display()) },
        })
    }

    /// What this machine offers, for those who only ask: the scratch directory isn't made. Where it isn't there, it is tried out in
    /// the directory that it would be made in.
    pub fn look(&self) -> Sandbox {
        let place = self.scratch().ancestors().find(|path| path.is_dir());
        Sandbox::find(&self.launcher, place.unwrap_or(Path::new("/")))
    }

    /// Whether there is a sandbox.
    pub fn is_there(&self) -> bool {
        self.sandbox().is_there()
    }

    /// What is confined to what, before a person's grants.
    pub fn confinement(&self) -> Confinement {
        self.confinement.clone()
    }

    /// A directory of its own within [`Shelter::scratch`], made if need be.
    ///
    /// # Errors
    /// It can't be made.
    pub fn folder(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.scratch().join(name);
        make_private(&path).map(|()| path)
    }

    /// See [`super::Hands::keep_rest`].
    pub fn keep_rest(&self, name: &str, output: String) -> String {
        super::keep::keep_rest(self.scratch(), name, output)
    }

    /// The directory that programs may write to.
    pub fn scratch(&self) -> &Path {
        &self.confinement.work_dir
    }
}

/// Makes a directory that only its owner can look into.
pub(super) fn make_private(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}
