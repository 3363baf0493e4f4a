//! The sandbox of this machine as one cycle knows it: looked for when it is first asked for, and only then.

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

/// Why there is no sandbox for somebody without a home directory.
const NO_HOME: &str = "it isn't known where your home directory is (HOME isn't set to an absolute path), so the keys in it can't be hidden from programs";

/// Why there is no sandbox where everything is denied to programs: nothing can be left of a machine without any file.
const ALL_DENIED: &str = "a rule of policy.toml denies programs the whole machine (/**)";
/// Why there is no sandbox while `mcp.toml` can't be read.
const NO_MCP_TOML: &str = "mcp.toml can't be read, so the files of keys that it names can't be hidden from programs";

/// The folder of what belongs to no cycle: looks of standing jobs.
const NO_CYCLE: &str = "looks";

/// Files of keys that others' settings name, to be hidden from programs.
#[derive(Debug, Clone, Default)]
pub struct KeyFiles {
    /// Which.
    pub files: Vec<PathBuf>,
    /// Whether those settings couldn't be read. Then there is no sandbox.
    pub is_unknown: bool,
}

/// Where programs run.
#[derive(Debug)]
pub struct Shelter {
    launcher: PathBuf,
    confinement: Confinement,
    /// The person's home directory, as the settings name it.
    home: Option<PathBuf>,
    /// The folder of the cycle that it is for.
    folder: CycleFolder,
    /// Folders of cycles that have ended without having read untrusted text.
    clean: Vec<PathBuf>,
    /// Granted folders that a cycle has written to which had read untrusted text, each with when it last did.
    tainted_writes: Vec<(PathBuf, DateTime<Utc>)>,
    /// What the rules deny to programs, whatever else they grant.
    denied: Vec<PathBuf>,
    /// Files that hold keys, as the settings and `mcp.toml` name them.
    key_files: Vec<PathBuf>,
    /// Where MCP servers have their folders.
    servers: PathBuf,
    /// Where what commands could change is kept.
    copies: Copies,
    /// Where files are kept as they were, while the command runs that a yes has allowed.
    snapshots: PathBuf,
    /// What has to stay free on the disk.
    reserve: Reserve,
    found: OnceCell<Sandbox>,
}

impl Shelter {
    /// Of this workspace; `launcher` is the program `wake`. What the rules deny to programs is hidden in it, as far as it is there.
    pub fn new(config: &Config, rules: &Rules, others: KeyFiles, launcher: PathBuf) -> Self {
        let mut confinement = Confinement::new(config, config.home.as_deref(), config.scratch_dir());
        let denied: Vec<PathBuf> = rules.hidden_places().into_iter().filter(|place| place.exists()).collect();
        // Of ours, too: the memory can be denied to programs.
        confinement.readable.retain(|path| !denied.iter().any(|place| path.starts_with(place)));
        // What programs work in stays, wherever it lies.
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
        let copies = Copies::of(config);
        // In a home that is the whole machine nothing can be told from the machine.
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

    /// The same for a cycle, which sees the folders of these others: they have ended without having read untrusted text.
    #[must_use]
    pub fn for_cycle(self, cycle: &str, clean: impl IntoIterator<Item = String>) -> Self {
        let scratch = self.scratch();
        let clean = clean.into_iter().map(|cycle| CycleFolder::new(scratch, &cycle).path());
        let clean = clean.filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir())).collect();
        Self { folder: CycleFolder::new(scratch, cycle), clean, ..self }
    }

    /// What is confined so, with the launcher that this program is.
    pub fn of(confinement: Confinement, launcher: PathBuf) -> Self {
        let servers = confinement.work_dir.with_file_name("mcp");
        let copies = Copies::new(confinement.work_dir.with_file_name("copies"), Reserve::of_mib(0));
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
            reserve: Reserve::of_mib(0),
            found: OnceCell::new(),
        }
    }

    /// What is confined so, on a machine that offers this.
    pub fn on(sandbox: Sandbox, confinement: Confinement) -> Self {
        Self { found: OnceCell::from(sandbox), ..Self::of(confinement, PathBuf::from("/nowhere")) }
    }

    /// One that isn't there, with a scratch directory that is.
    #[cfg(test)]
    pub(crate) fn missing(scratch: &Path) -> Self {
        let confinement = Confinement { work_dir: scratch.to_owned(), ..Confinement::default() };
        Self {
            servers: scratch.join("mcp"),
            ..Self::on(Sandbox::None { why: "a test has none".to_owned() }, confinement)
        }
    }

    /// What this machine offers. The first call tries it out.
    pub fn sandbox(&self) -> &Sandbox {
        self.found.get_or_init(|| match create_private_dirs(self.scratch()) {
            Ok(()) => Sandbox::find(&self.launcher, self.scratch()),
            Err(error) => Sandbox::None { why: format!("{} can't be made: {error}", self.scratch().display()) },
        })
    }

    /// What this machine offers, for those who only ask: the scratch directory isn't made. Where it isn't there, it is tried out in
    /// the directory that it would be made in.
    pub fn look(&self) -> Sandbox {
        if let Some(found) = self.found.get() {
            return found.clone();
        }
        let place = self.scratch().ancestors().find(|path| path.is_dir());
        Sandbox::find(&self.launcher, place.unwrap_or(Path::new("/")))
    }

    /// Whether there is a sandbox.
    pub fn is_there(&self) -> bool {
        self.sandbox().is_there()
    }

    /// Whether a file can be put in another's place for one command.
    pub(super) fn puts_files_in_place(&self) -> bool {
        matches!(self.sandbox(), Sandbox::Bubblewrap { .. })
    }

    /// The room that a command has which begins now.
    pub(super) fn room(&self) -> CommandRoom {
        CommandRoom::look(self.scratch(), self.reserve)
    }

    /// Where files are kept as they were, while a command runs. No program reaches it.
    pub(super) fn snapshots(&self) -> &Path {
        &self.snapshots
    }

    /// What is confined to what, before a person's grants.
    pub fn confinement(&self) -> Confinement {
        self.confinement.clone()
    }

    /// What confines a command that starts in `dir` and is given so much. Only one that is given nothing has the person's home as it
    /// is. `sees_untrusted`: whether it reads what other cycles have left that had read untrusted text.
    pub fn of_command(&self, rules: &Rules, access: Access, sees_untrusted: bool, dir: PathBuf) -> Confinement {
        let mut confinement = self.confinement();
        confinement.work_dir = dir;
        confinement.writable.extend(self.writable(rules));
        // fault: granted-folders-writable-command
        confinement.is_read_only = !access.writes;
        confinement.shown = self.seen(sees_untrusted);
        // What is granted below a folder that looks empty inside. The workspace is no person's to grant.
        let is_ours = |path: &PathBuf| self.confinement.covered.iter().any(|covered| path.starts_with(covered));
        let below = rules.readable().into_iter().filter(|path| looks_empty(path) && !is_ours(path));
        confinement.shown.extend(self.granted(below));
        if let Some(home) = &self.home {
            confinement.home = match access.is_none() {
                true => ConfinedHome::AsItIs(home.clone()),
                // fault: home-command-change-something
                false => ConfinedHome::Empty(home.clone()),
            };
            if !access.is_none() {
                let in_home = rules.readable().into_iter().filter(|path| path != home && path.starts_with(home));
                confinement.shown.extend(self.granted(in_home));
            }
        }
        confinement
    }

    /// The folders of the scratch that may be read, beside what the cycle works in.
    pub fn seen(&self, sees_untrusted: bool) -> Vec<PathBuf> {
        // fault: misled-cycle-left-every
        if sees_untrusted {
            return vec![self.scratch().to_owned()];
        }
        std::iter::once(self.folder.path()).chain(self.clean.iter().cloned()).collect()
    }

    /// Whether a text names what another cycle has left in the scratch that had read untrusted text, or that isn't known to have
    /// read none.
    pub fn names_untrusted(&self, text: &str) -> bool {
        folders::names_unseen(text, self.scratch(), &self.seen(false), self.home.as_deref())
    }

    /// The same, with which granted folders a cycle has written to that had read untrusted text, and when each last was.
    #[must_use]
    pub fn with_tainted_writes(self, tainted_writes: Vec<(PathBuf, DateTime<Utc>)>) -> Self {
        Self { tainted_writes, ..self }
    }

    /// When a cycle that had read untrusted text last wrote to a folder that these rules grant; `None` if none did.
    pub fn tainted_write(&self, rules: &Rules) -> Option<DateTime<Utc>> {
        let granted = rules.granted();
        let is_granted = |path: &PathBuf| granted.iter().any(|root| path.starts_with(root) || root.starts_with(path));
        self.tainted_writes.iter().filter(|(path, _)| is_granted(path)).map(|(_, at)| *at).max()
    }

    /// Whether other cycles have left anything in the scratch.
    pub fn has_left(&self) -> bool {
        folders::has_others(&self.folder)
    }

    /// The person's home directory, if it is one that can be told from the machine.
    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The folder of the cycle.
    pub fn folder(&self) -> &CycleFolder {
        &self.folder
    }

    /// The directory of an MCP server, its home, made if need be. Whoever can write there runs what the server loads: so it lies
    /// outside of [`Shelter::scratch`], where no other program and no tool reaches it, and no link stands for it.
    ///
    /// # Errors
    /// It can't be made, or something else stands there.
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

    /// These grants, but for what lies where a rule denies it.
    pub fn granted(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let is_denied = |path: &PathBuf| self.denied.iter().any(|place| path.starts_with(place));
        paths.into_iter().filter(|path| !is_denied(path)).collect()
    }

    /// The folders of the person's that a command can be let write to.
    pub fn writable(&self, rules: &Rules) -> Vec<PathBuf> {
        self.granted(rules.granted().into_iter().filter(|path| path.is_dir()))
    }

    /// Why what a command can change there can't be copied before, if it can't.
    pub fn uncovered(&self, rules: &Rules) -> Option<String> {
        let looked_at = reach(self.let_write(rules)).and_then(|(roots, hidden)| {
            self.copies
                .uncovered(CopyScope { roots: &roots, hidden: &hidden })
                .map_or(Ok(()), |why| Err(CopyError::Uncovered(why)))
        });
        looked_at.err().map(|error| error.to_string())
    }

    /// Copies, for a wake, what a command can change there. On a thread of its own: it may take seconds.
    ///
    /// # Errors
    /// There is no copy then.
    pub async fn copy(&self, rules: &Rules, wake: &str, now: DateTime<Utc>) -> Result<CopyTaken, CopyError> {
        let (confinement, copies, wake) = (self.let_write(rules), self.copies.clone(), wake.to_owned());
        let taking = tokio::task::spawn_blocking(move || {
            let (roots, hidden) = reach(confinement)?;
            copies.take(&wake, CopyScope { roots: &roots, hidden: &hidden }, now)
        });
        taking.await.unwrap_or_else(|error| Err(CopyError::Uncovered(format!("copying broke off ({error})"))))
    }

    /// What confines a command that is let write to the person's folders.
    fn let_write(&self, rules: &Rules) -> Confinement {
        let mut confinement = self.confinement();
        confinement.writable.extend(self.writable(rules));
        confinement
    }

    /// What no command reaches, also not one that is let write to the person's folders. Where grants contradict that, no command runs.
    pub(super) fn hidden_from_writing(&self, rules: &Rules) -> Vec<PathBuf> {
        let confinement = self.let_write(rules);
        let hidden = Layout::of(&confinement).map_or_else(|_| confinement.hidden.clone(), |layout| layout.hidden());
        hidden.into_iter().chain(self.key_files.iter().cloned()).collect()
    }

    /// Files that hold keys: they are hidden from programs, and no tool for files opens them.
    pub fn key_files(&self) -> &[PathBuf] {
        &self.key_files
    }

    /// See [`super::Exec::keep_rest`].
    pub fn keep_rest(&self, name: &str, output: String) -> String {
        super::keep::keep_rest(&self.folder, name, output)
    }

    /// The directory of all cycles' folders.
    pub fn scratch(&self) -> &Path {
        &self.confinement.work_dir
    }
}

/// The folders that a command can write to, the outermost alone, and what it doesn't reach in them.
fn reach(mut confinement: Confinement) -> Result<(Vec<PathBuf>, Vec<PathBuf>), CopyError> {
    let uncovered = |why: String| CopyError::Uncovered(why);
    // The scratch folder may not be there yet, and needn't be.
    confinement.work_dir = confinement.writable.first().cloned().unwrap_or(confinement.work_dir);
    let hidden = Layout::of(&confinement).map_err(|error| uncovered(error.to_string()))?.hidden();
    let roots: Result<Vec<PathBuf>, _> = confinement.writable.iter().map(|root| root.canonicalize()).collect();
    let mut roots = roots.map_err(|error| uncovered(error.to_string()))?;
    roots.sort();
    // One within another comes right behind it, or behind its siblings.
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
            let confinement = shelter.of_command(&rules, access, false, ours.clone());
            let shown: Vec<&PathBuf> =
                confinement.shown.iter().filter(|path| rules.readable().contains(path)).collect();
            assert_eq!(shown, [&granted], "{access:?}");
            assert!(Layout::of(&confinement).is_ok(), "{access:?}");
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
        // Nobody grants it by accident: what is covered is the assistant's own.
        let writable = vec![workspace.path().to_owned()];
        assert!(Layout::of(&Confinement { writable, ..confinement.clone() }).is_err());
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
            let rules = Rules::parse(&rule).unwrap().at_home(config.home.as_deref());
            Shelter::new(&config, &rules, KeyFiles::default(), PathBuf::from("/nowhere"))
        };
        // All of the home, and a folder with a grant in it: programs still have somewhere to work, and nothing else there.
        for denied in ["~/**", path] {
            let shelter = shelter(denied);
            assert!(shelter.confinement().readable.is_empty(), "{denied}");
            assert_eq!(shelter.granted([workspace.path().join("work"), PathBuf::from("/srv")]), [Path::new("/srv")]);
            assert!(Layout::of(&shelter.confinement()).is_ok(), "{denied}");
            assert!(shelter.confinement().covered.contains(&workspace.path().to_owned()));
        }
        assert!(matches!(shelter("/**").look(), Sandbox::None { why } if why == ALL_DENIED));
    }

    #[test]
    fn while_mcp_toml_cant_be_read_there_is_no_sandbox() {
        let workspace = tempfile::tempdir().unwrap();
        let (config, _) = shelter(workspace.path());
        let unknown = KeyFiles { is_unknown: true, ..KeyFiles::default() };
        let shelter = Shelter::new(&config, &Rules::default(), unknown, PathBuf::from("/nowhere"));
        assert_eq!(shelter.look(), Sandbox::None { why: NO_MCP_TOML.to_owned() });
    }

    #[test]
    fn without_a_home_directory_nothing_is_taken_for_confined() {
        let workspace = tempfile::tempdir().unwrap();
        for env in [[("HOME", "")], [("HOME", "here")], [("TZ", "UTC")]] {
            let (_, shelter) = shelter_of(workspace.path(), &env);
            assert!(!shelter.is_there(), "{env:?}");
            assert_eq!(shelter.look(), Sandbox::None { why: NO_HOME.to_owned() });
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
