//! This machine's sandbox for one cycle, detected on first use.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{disk::Reserve, file::create_private_dirs};
use reveille_config::Config;
use reveille_policy::{Access, Rules};

use super::{
    copies::{Copies, CopyError, CopyScope, CopyTaken},
    folders::{self, CycleFolder},
    room::CommandRoom,
};
use crate::{ConfinedHome, Confinement, Layout, Sandbox, looks_empty};

/// The reason without a home directory.
const NO_HOME: &str = "it isn't known where your home directory is (HOME isn't set to an absolute path), so the keys in it can't be hidden from programs";

/// The reason if a rule denies everything: a sandbox without any file can't run a program.
const ALL_DENIED: &str = "a rule of policy.toml denies programs the whole machine (/**)";
/// The reason while `mcp.toml` can't be read.
const NO_MCP_TOML: &str = "mcp.toml can't be read, so the files of keys that it names can't be hidden from programs";

/// The scratch folder for work outside of a cycle: probes of standing jobs.
const NO_CYCLE: &str = "looks";

/// Key files named by other settings, to be hidden from programs.
#[derive(Debug, Clone, Default)]
pub struct KeyFiles {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Set if those settings couldn't be read. Then there is no sandbox.
    pub is_unknown: bool,
}

/// The part of the scratch folders that a cycle sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScratchView {
    /// Its own folder, and those of clean cycles.
    Clean,
    /// All folders, also those left by tainted cycles.
    All,
}

impl ScratchView {
    /// Returns the view of a cycle: only a tainted one sees what tainted ones left.
    pub fn for_cycle(is_tainted: bool) -> Self {
        if is_tainted { Self::All } else { Self::Clean }
    }
}

/// The place where programs run.
#[derive(Debug)]
pub struct Shelter {
    launcher: PathBuf,
    confinement: Confinement,
    /// The person's home directory from the settings.
    home: Option<PathBuf>,
    /// The folder of the current cycle.
    folder: CycleFolder,
    /// Folders of earlier cycles that ended untainted.
    clean: Vec<PathBuf>,
    /// Granted folders written to by tainted cycles, each with the time of the last write.
    tainted_writes: Vec<(PathBuf, DateTime<Utc>)>,
    /// Places that the rules deny to programs, whatever else is granted.
    denied: Vec<PathBuf>,
    /// Key files named by the settings and `mcp.toml`.
    key_files: Vec<PathBuf>,
    /// The directory of the MCP servers' folders.
    servers: PathBuf,
    /// The copies taken before commands change files.
    copies: Copies,
    /// The directory of file snapshots for approved commands.
    snapshots: PathBuf,
    /// The disk space that must stay free.
    reserve: Reserve,
    found: OnceCell<Sandbox>,
}

impl Shelter {
    /// Creates the shelter of this workspace; `launcher` is the program `wake`. Existing places denied by the rules are hidden.
    pub fn new(config: &Config, rules: &Rules, others: KeyFiles, launcher: PathBuf) -> Self {
        let mut confinement = Confinement::new(config, config.home.as_deref(), config.scratch_dir());
        let denied: Vec<PathBuf> = rules.hidden_places().into_iter().filter(|place| place.exists()).collect();
        // Includes our own readable places: a rule can deny the memory to programs.
        confinement.readable.retain(|path| !denied.iter().any(|place| path.starts_with(place)));
        // The working directory stays usable, even within a denied place.
        let (around, hidden): (Vec<_>, Vec<_>) =
            denied.iter().cloned().partition(|place| confinement.work_dir.starts_with(place));
        confinement.covered.extend(around);
        // fault: persons-rule-denies-read
        confinement.hidden.extend(hidden);
        let of_others: Vec<PathBuf> = others.files.into_iter().filter(|file| file.exists()).collect();
        // fault: files-servers-given-keys
        confinement.hidden.extend(of_others.iter().cloned());
        let key_files = config.env_file.iter().chain(&config.key_files).cloned().chain(of_others).collect();
        let why_none = if config.home.is_none() {
            Some(NO_HOME)
        } else if denied.iter().any(|place| place.parent().is_none()) {
            Some(ALL_DENIED)
        } else {
            others.is_unknown.then_some(NO_MCP_TOML)
        };
        let found = why_none.map(|why| Sandbox::None { why: why.to_owned() });
        let found = found.map_or_else(OnceCell::new, OnceCell::from);
        let copies = Copies::from_config(config);
        // A home at the root can't be separated from the rest of the machine.
        let home = config.home.clone().filter(|home| home.parent().is_some());
        let folder = CycleFolder::new(&confinement.work_dir, NO_CYCLE);
        let (clean, tainted_writes, servers) = (Vec::new(), Vec::new(), config.mcp_dir());
        let (snapshots, reserve) = (config.snapshots_dir(), config.disk_reserve);
        Self {
            launcher,
            confinement,
            home,
            folder,
            clean,
            tainted_writes,
            denied,
            key_files,
            servers,
            copies,
            snapshots,
            reserve,
            found,
        }
    }

    /// Sets the current cycle, and the earlier untainted cycles whose folders are visible.
    #[must_use]
    pub fn for_cycle(self, cycle: &str, clean: impl IntoIterator<Item = String>) -> Self {
        let scratch = self.scratch();
        let clean = clean.into_iter().map(|cycle| CycleFolder::new(scratch, &cycle).path());
        let clean = clean.filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir())).collect();
        Self { folder: CycleFolder::new(scratch, cycle), clean, ..self }
    }

    /// Creates a shelter from a confinement, with the launcher program.
    pub fn from_confinement(confinement: Confinement, launcher: PathBuf) -> Self {
        let servers = confinement.work_dir.with_file_name("mcp");
        let copies = Copies::new(confinement.work_dir.with_file_name("copies"), Reserve::from_mib(0));
        let folder = CycleFolder::new(&confinement.work_dir, NO_CYCLE);
        let snapshots = confinement.work_dir.with_file_name("snapshots");
        Self {
            launcher,
            confinement,
            home: None,
            folder,
            clean: Vec::new(),
            tainted_writes: Vec::new(),
            denied: Vec::new(),
            key_files: Vec::new(),
            servers,
            copies,
            snapshots,
            reserve: Reserve::from_mib(0),
            found: OnceCell::new(),
        }
    }

    /// Creates a shelter with a given sandbox.
    pub fn for_sandbox(sandbox: Sandbox, confinement: Confinement) -> Self {
        Self { found: OnceCell::from(sandbox), ..Self::from_confinement(confinement, PathBuf::from("/nowhere")) }
    }

    /// Creates a shelter without a sandbox, on an existing scratch directory.
    #[cfg(test)]
    pub(crate) fn missing(scratch: &Path) -> Self {
        let confinement = Confinement { work_dir: scratch.to_owned(), ..Confinement::default() };
        Self {
            servers: scratch.join("mcp"),
            ..Self::for_sandbox(Sandbox::None { why: "a test has none".to_owned() }, confinement)
        }
    }

    /// Returns this machine's sandbox. The first call tries the sandbox out.
    pub fn sandbox(&self) -> &Sandbox {
        self.found.get_or_init(|| match create_private_dirs(self.scratch()) {
            Ok(()) => Sandbox::detect(&self.launcher, self.scratch()),
            Err(error) => Sandbox::None { why: format!("{} can't be made: {error}", self.scratch().display()) },
        })
    }

    /// Detects the sandbox for status displays, without creating the scratch directory. If the directory is missing,
    /// the trial runs in its nearest existing parent.
    pub fn detect_sandbox(&self) -> Sandbox {
        if let Some(found) = self.found.get() {
            return found.clone();
        }
        let place = self.scratch().ancestors().find(|path| path.is_dir());
        Sandbox::detect(&self.launcher, place.unwrap_or(Path::new("/")))
    }

    /// Returns true if there is a sandbox.
    pub fn is_there(&self) -> bool {
        self.sandbox().is_there()
    }

    /// Returns true if the sandbox can mount a file over another for one command.
    pub(super) fn can_mount_files(&self) -> bool {
        matches!(self.sandbox(), Sandbox::Bubblewrap { .. })
    }

    /// Measures the disk space for a command that starts now.
    pub(super) fn measure_room(&self) -> CommandRoom {
        CommandRoom::measure(self.scratch(), self.reserve)
    }

    /// Returns the directory of file snapshots, out of reach of all programs.
    pub(super) fn snapshots(&self) -> &Path {
        &self.snapshots
    }

    /// Returns the base confinement, without a person's grants.
    pub fn confinement(&self) -> Confinement {
        self.confinement.clone()
    }

    /// Returns the confinement of a command that starts in `dir` with this access. Only a command without access sees
    /// the person's home unchanged.
    pub fn confine_command(&self, rules: &Rules, access: Access, view: ScratchView, dir: PathBuf) -> Confinement {
        let mut confinement = self.confinement();
        confinement.work_dir = dir;
        confinement.writable.extend(self.list_writable_folders(rules));
        // fault: granted-folders-writable-command
        confinement.is_read_only = !access.writes;
        confinement.shown = self.list_visible_folders(view);
        // Grants below a folder that looks empty inside. Grants within the workspace are ignored.
        let is_ours = |path: &PathBuf| self.confinement.covered.iter().any(|covered| path.starts_with(covered));
        let below = rules.readable_folders().into_iter().filter(|path| looks_empty(path) && !is_ours(path));
        confinement.shown.extend(self.drop_denied(below));
        if let Some(home) = &self.home {
            confinement.home = match access.is_none() {
                true => ConfinedHome::AsItIs(home.clone()),
                // fault: home-command-change-something
                false => ConfinedHome::Empty(home.clone()),
            };
            if !access.is_none() {
                let in_home =
                    rules.readable_folders().into_iter().filter(|path| path != home && path.starts_with(home));
                confinement.shown.extend(self.drop_denied(in_home));
            }
        }
        confinement
    }

    /// Returns the readable folders of the scratch besides the working directory.
    pub fn list_visible_folders(&self, view: ScratchView) -> Vec<PathBuf> {
        // fault: misled-cycle-left-every
        if view == ScratchView::All {
            return vec![self.scratch().to_owned()];
        }
        std::iter::once(self.folder.path()).chain(self.clean.iter().cloned()).collect()
    }

    /// Returns true if a text names scratch files of another cycle that was tainted, or isn't known to be untainted.
    pub fn has_untrusted_path(&self, text: &str) -> bool {
        folders::names_unseen(
            text,
            self.scratch(),
            &self.list_visible_folders(ScratchView::Clean),
            self.home.as_deref(),
        )
    }

    /// Sets the granted folders written to by tainted cycles, each with the time of the last write.
    #[must_use]
    pub fn with_tainted_writes(self, tainted_writes: Vec<(PathBuf, DateTime<Utc>)>) -> Self {
        Self { tainted_writes, ..self }
    }

    /// Returns the time of the last write by a tainted cycle to a granted folder; `None` without such a write.
    pub fn tainted_write(&self, rules: &Rules) -> Option<DateTime<Utc>> {
        let granted = rules.granted_folders();
        let is_granted = |path: &PathBuf| granted.iter().any(|root| path.starts_with(root) || root.starts_with(path));
        self.tainted_writes.iter().filter(|(path, _)| is_granted(path)).map(|(_, at)| *at).max()
    }

    /// Returns true if other cycles have left files in the scratch.
    pub fn has_leftovers(&self) -> bool {
        folders::has_others(&self.folder)
    }

    /// Returns the person's home directory; `None` if it can't be separated from the machine.
    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the folder of the cycle.
    pub fn folder(&self) -> &CycleFolder {
        &self.folder
    }

    /// Returns the directory and home of an MCP server, created if missing. A writer to this directory controls the
    /// server's code, so it lies outside of [`Shelter::scratch`], out of reach of other programs and tools, and must
    /// not be a link.
    ///
    /// # Errors
    /// The directory can't be created, or another kind of file has its path.
    pub fn server_folder(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.servers.join(name);
        create_private_dirs(&path)?;
        for place in [&self.servers, &path] {
            // fault: link-stand-servers-folder
            if !place.symlink_metadata()?.is_dir() {
                let why = format!("{} is a link", place.display());
                return Err(std::io::Error::new(std::io::ErrorKind::NotADirectory, why));
            }
        }
        Ok(path)
    }

    /// Drops grants within places denied by a rule.
    pub fn drop_denied(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let is_denied = |path: &PathBuf| self.denied.iter().any(|place| path.starts_with(place));
        paths.into_iter().filter(|path| !is_denied(path)).collect()
    }

    /// Returns the person's folders that a command may get write access to.
    pub fn list_writable_folders(&self, rules: &Rules) -> Vec<PathBuf> {
        self.drop_denied(rules.granted_folders().into_iter().filter(|path| path.is_dir()))
    }

    /// Returns the reason why the writable folders can't be copied beforehand; `None` if they can.
    pub fn find_copy_obstacle(&self, rules: &Rules) -> Option<String> {
        let looked_at = collect_reach(self.let_write(rules)).and_then(|(roots, hidden)| {
            self.copies
                .find_obstacle(CopyScope { roots: &roots, hidden: &hidden })
                .map_or(Ok(()), |why| Err(CopyError::Uncovered(why)))
        });
        looked_at.err().map(|error| error.to_string())
    }

    /// Copies the writable folders for a wake, on a blocking thread because this may take seconds.
    ///
    /// # Errors
    /// There is no copy.
    pub async fn copy_folders(&self, rules: &Rules, wake: &str, now: DateTime<Utc>) -> Result<CopyTaken, CopyError> {
        let (confinement, copies, wake) = (self.let_write(rules), self.copies.clone(), wake.to_owned());
        let taking = tokio::task::spawn_blocking(move || {
            let (roots, hidden) = collect_reach(confinement)?;
            copies.take(&wake, CopyScope { roots: &roots, hidden: &hidden }, now)
        });
        taking.await.unwrap_or_else(|error| Err(CopyError::Uncovered(format!("copying was interrupted ({error})"))))
    }

    /// Returns the confinement of a command with write access to the person's folders.
    fn let_write(&self, rules: &Rules) -> Confinement {
        let mut confinement = self.confinement();
        confinement.writable.extend(self.list_writable_folders(rules));
        confinement
    }

    /// Returns the paths hidden from all commands, even those with write access. If grants contradict a hidden path, no command runs.
    pub(super) fn list_hidden_from_commands(&self, rules: &Rules) -> Vec<PathBuf> {
        let confinement = self.let_write(rules);
        let hidden = Layout::from_confinement(&confinement)
            .map_or_else(|_| confinement.hidden.clone(), |layout| layout.list_hidden());
        hidden.into_iter().chain(self.key_files.iter().cloned()).collect()
    }

    /// Returns the files with keys, hidden from programs and refused by file tools.
    pub fn key_files(&self) -> &[PathBuf] {
        &self.key_files
    }

    /// See [`super::Exec::keep_rest`].
    pub fn keep_rest(&self, name: &str, output: String) -> String {
        super::keep::keep_rest(&self.folder, name, output)
    }

    /// Returns the directory of all cycles' folders.
    pub fn scratch(&self) -> &Path {
        &self.confinement.work_dir
    }
}

/// Returns the outermost writable folders, and the hidden paths.
fn collect_reach(mut confinement: Confinement) -> Result<(Vec<PathBuf>, Vec<PathBuf>), CopyError> {
    let uncovered = |why: String| CopyError::Uncovered(why);
    // The scratch folder may be missing, so a granted folder takes its place.
    confinement.work_dir = confinement.writable.first().cloned().unwrap_or(confinement.work_dir);
    let hidden = Layout::from_confinement(&confinement).map_err(|error| uncovered(error.to_string()))?.list_hidden();
    let roots: Result<Vec<PathBuf>, _> = confinement.writable.iter().map(|root| root.canonicalize()).collect();
    let mut roots = roots.map_err(|error| uncovered(error.to_string()))?;
    roots.sort();
    // Sorted, so an inner folder comes after its outer folder.
    let mut outermost: Vec<PathBuf> = Vec::new();
    for root in roots {
        if !outermost.iter().any(|outer| root.starts_with(outer)) {
            outermost.push(root);
        }
    }
    Ok((outermost, hidden))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, os::unix::fs::symlink};

    use super::*;

    fn shelter(workspace: &Path) -> (Config, Shelter) {
        shelter_of(workspace, &[("HOME", "/home/ann")])
    }

    fn shelter_of(workspace: &Path, env: &[(&str, &str)]) -> (Config, Shelter) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut env: BTreeMap<String, String> = env.iter().map(owned).collect();
        env.insert("WORKSPACE_DIR".to_owned(), workspace.display().to_string());
        let config = Config::from_sources(&env, None, None).unwrap();
        let shelter = Shelter::new(&config, &Rules::default(), KeyFiles::default(), PathBuf::from("/nowhere"));
        (config, shelter)
    }

    #[test]
    fn what_may_be_read_below_a_folder_that_looks_empty_is_seen() {
        let workspace = tempfile::tempdir().unwrap();
        let granted = tempfile::tempdir_in("/var/tmp").unwrap();
        let (_, shelter) = shelter(workspace.path());
        create_private_dirs(shelter.scratch()).unwrap();
        let (granted, ours) = (granted.path().canonicalize().unwrap(), shelter.scratch().to_owned());
        let rules = Rules::parse(&format!("[files]\nread = [{granted:?}, {ours:?}, \"/var/tmp\"]\n")).unwrap();
        for access in [Access::default(), Access { writes: true, network: false }] {
            let confinement = shelter.confine_command(&rules, access, ScratchView::Clean, ours.clone());
            let shown: Vec<&PathBuf> =
                confinement.shown.iter().filter(|path| rules.readable_folders().contains(path)).collect();
            assert_eq!(shown, [&granted], "{access:?}");
            assert!(Layout::from_confinement(&confinement).is_ok(), "{access:?}");
        }
    }

    #[test]
    fn a_servers_folder_is_out_of_every_other_programs_reach() {
        let workspace = tempfile::tempdir().unwrap();
        let (_, shelter) = shelter(workspace.path());
        create_private_dirs(shelter.scratch()).unwrap();
        let folder = shelter.server_folder("s").unwrap();
        let confinement = shelter.confinement();
        assert!(!folder.starts_with(&confinement.work_dir), "{}", folder.display());
        let mut open = confinement.writable.iter().chain(&confinement.readable);
        assert!(!open.any(|path| folder.starts_with(path)), "{}", folder.display());
        assert!(confinement.covered.iter().any(|path| folder.starts_with(path)));
        // The folder can't be granted by accident: covered places belong to the assistant.
        let writable = vec![workspace.path().to_owned()];
        assert!(Layout::from_confinement(&Confinement { writable, ..confinement.clone() }).is_err());
    }

    #[test]
    fn what_a_rule_denies_is_denied_whatever_lies_in_it_but_the_scratch() {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path().to_str().unwrap();
        let shelter = |denied: &str| {
            let env =
                BTreeMap::from([("HOME", path), ("WORKSPACE_DIR", path)].map(|(a, b)| (a.to_owned(), b.to_owned())));
            let config = Config::from_sources(&env, None, None).unwrap();
            std::fs::create_dir_all(config.repo_dir()).unwrap();
            create_private_dirs(&config.scratch_dir()).unwrap();
            let rule = format!("[[rule]]\npath = {denied:?}\ndecision = \"deny\"\nmatch = [{denied:?}]\n");
            let rules = Rules::parse(&rule).unwrap().with_home(config.home.as_deref());
            Shelter::new(&config, &rules, KeyFiles::default(), PathBuf::from("/nowhere"))
        };
        // For the whole home, or a folder with a grant in it, programs keep a place to work and lose everything else there.
        for denied in ["~/**", path] {
            let shelter = shelter(denied);
            assert!(shelter.confinement().readable.is_empty(), "{denied}");
            assert_eq!(
                shelter.drop_denied([workspace.path().join("work"), PathBuf::from("/srv")]),
                [Path::new("/srv")]
            );
            assert!(Layout::from_confinement(&shelter.confinement()).is_ok(), "{denied}");
            assert!(shelter.confinement().covered.contains(&workspace.path().to_owned()));
        }
        assert!(matches!(shelter("/**").detect_sandbox(), Sandbox::None { why } if why == ALL_DENIED));
    }

    #[test]
    fn while_mcp_toml_cant_be_read_there_is_no_sandbox() {
        let workspace = tempfile::tempdir().unwrap();
        let (config, _) = shelter(workspace.path());
        let unknown = KeyFiles { is_unknown: true, ..KeyFiles::default() };
        let shelter = Shelter::new(&config, &Rules::default(), unknown, PathBuf::from("/nowhere"));
        assert_eq!(shelter.detect_sandbox(), Sandbox::None { why: NO_MCP_TOML.to_owned() });
    }

    #[test]
    fn without_a_home_directory_nothing_is_taken_for_confined() {
        let workspace = tempfile::tempdir().unwrap();
        for env in [[("HOME", "")], [("HOME", "here")], [("TZ", "UTC")]] {
            let (_, shelter) = shelter_of(workspace.path(), &env);
            assert!(!shelter.is_there(), "{env:?}");
            assert_eq!(shelter.detect_sandbox(), Sandbox::None { why: NO_HOME.to_owned() });
        }
    }

    #[test]
    fn no_link_stands_for_a_servers_folder() {
        let workspace = tempfile::tempdir().unwrap();
        let (config, shelter) = shelter(workspace.path());
        let planted = workspace.path().join("scratch/planted");
        std::fs::create_dir_all(planted.join("t")).unwrap();
        symlink(&planted, config.mcp_dir()).unwrap();
        assert!(shelter.server_folder("t").is_err(), "the folder of all");
        std::fs::remove_file(config.mcp_dir()).unwrap();
        assert!(shelter.server_folder("s").unwrap().is_dir());
        symlink(&planted, config.mcp_dir().join("t")).unwrap();
        assert!(shelter.server_folder("t").unwrap_err().to_string().contains("is a link"));
    }
}
