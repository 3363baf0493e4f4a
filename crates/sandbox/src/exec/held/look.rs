//! Finds the files named by a command, before the person is asked.

use std::{
    collections::BTreeSet,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use reveille_base::types::{BoundFile, BoundFiles};
use reveille_policy as policy;
use reveille_policy::{Rules, find_named_words};

use super::{digest_file, fingerprint_folders, open_file};
use crate::exec::Shelter;

/// Maximum number of files bound to one approval.
const MAX_FILES: usize = 24;
/// Maximum number of named folders in which the command's other words are searched for.
const MAX_FOLDERS: usize = 16;
/// Maximum length of a text shown for one file, and for all files, in bytes.
const MAX_TEXT_BYTES: usize = 32 * 1024;
const MAX_TEXTS_BYTES: usize = 96 * 1024;

/// Programs that run a script file, by the beginning of their names.
const INTERPRETERS: [&str; 26] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "mksh",
    "ash",
    "fish",
    "csh",
    "tcsh",
    "source",
    ".",
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "tclsh",
    "osascript",
];
/// Option letters after which no script file follows: the program is inline or a module, or files are changed in place.
const NO_PROGRAM: [char; 4] = ['c', 'e', 'm', 'i'];
/// Programs that load files from the current folder, with the names of those files. Some programs write to these
/// files, so they are checked for changes instead of being mounted read-only.
const LOADERS: [(&str, &[&str]); 27] = [
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("cmake", &["CMakeLists.txt"]),
    ("ninja", &["build.ninja"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("rake", &["Rakefile"]),
    ("bundle", &["Gemfile"]),
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("tsc", &["tsconfig.json"]),
    ("cargo", &["Cargo.toml", "build.rs"]),
    ("go", &["go.mod"]),
    ("pytest", &["conftest.py"]),
    ("tox", &["tox.ini"]),
    ("nox", &["noxfile.py"]),
    ("pip", &["setup.py", "pyproject.toml"]),
    ("uv", &["pyproject.toml"]),
    ("poetry", &["pyproject.toml"]),
    ("ant", &["build.xml"]),
    ("mvn", &["pom.xml"]),
    ("gradle", &["build.gradle", "build.gradle.kts"]),
    ("docker", &["Dockerfile", "compose.yaml", "docker-compose.yml"]),
    ("terraform", &[]),
    ("gdb", &[".gdbinit"]),
    ("git", &[]),
];

/// The files named by a command, and warnings about those that an approval can't be bound to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundFiles {
    /// The files bound to the approval.
    pub named: BoundFiles,
    /// Warnings for the person about files that aren't bound.
    pub unheld: Vec<String>,
}

/// The writable places, and the hidden paths within them.
struct Places {
    scratch: PathBuf,
    home: Option<PathBuf>,
    granted: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
}

impl Places {
    fn collect(shelter: &Shelter, rules: &Rules) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let granted: Vec<PathBuf> = shelter.list_writable_folders(rules).iter().map(|path| real(path)).collect();
        let hidden = shelter.list_hidden_from_commands(rules);
        let home = shelter.home().map(Path::to_owned);
        Self { scratch: real(shelter.scratch()), home, granted, hidden }
    }

    fn contains(&self, path: &Path) -> bool {
        let roots = std::iter::once(&self.scratch).chain(&self.granted);
        let is_hidden = || self.hidden.iter().any(|place| path.starts_with(place));
        roots.into_iter().any(|root| path.starts_with(root))
            && !is_hidden()
            && !policy::is_private(&path.to_string_lossy())
    }

    /// Resolves a word to existing paths, relative to the home and to a folder where the command may be.
    fn find_word(&self, folder: Option<&Path>, word: &str) -> Vec<(PathBuf, PathBuf)> {
        let in_home = ["~/", "HOME/"].iter().find_map(|home| word.strip_prefix(home));
        let rest = word.strip_prefix("PWD/").or(in_home).unwrap_or(word);
        let mut literal = Vec::new();
        if rest.starts_with('/') {
            literal.push(PathBuf::from(rest));
        }
        // Words after a variable begin with a `/` too.
        let relative = rest.trim_start_matches('/');
        literal.extend(self.home.iter().map(|home| home.join(relative)));
        literal.extend(folder.map(|folder| folder.join(relative)));
        let found = literal.into_iter().filter_map(|named| {
            let path = named.canonicalize().ok().filter(|path| self.contains(path))?;
            Some((named, path))
        });
        found.collect()
    }

    /// Returns the folder of one cycle that contains a path. It lies directly below the scratch folder.
    fn find_enclosing_folder(&self, path: &Path) -> Option<PathBuf> {
        let first = path.strip_prefix(&self.scratch).ok()?.components().next();
        Some(first.map_or_else(|| self.scratch.clone(), |first| self.scratch.join(first)))
    }
}

/// Lists the paths in the person's home that a command names but can't reach. These are hidden places, and with `is_given`
/// everything that isn't granted. Existence isn't checked. Read-only paths are left out, because a failed write reports itself.
pub fn out_of_reach(text: &str, is_given: bool, shelter: &Shelter, rules: &Rules) -> Vec<String> {
    let Some(home) = shelter.home() else { return Vec::new() };
    let places = Places::collect(shelter, rules);
    let reachable: Vec<PathBuf> =
        places.granted.iter().cloned().chain(rules.readable_folders()).chain([places.scratch.clone()]).collect();
    let in_home = |word: &str| -> Option<PathBuf> {
        let rest = ["~/", "HOME/"].iter().find_map(|name| word.strip_prefix(name));
        let path = rest.map_or_else(|| PathBuf::from(word), |rest| home.join(rest));
        (path.starts_with(home) && path != home).then_some(path)
    };
    let is_reached = |path: &PathBuf| {
        let is_hidden = places.hidden.iter().any(|hidden| path.starts_with(hidden));
        let is_there = || reachable.iter().any(|root| path.starts_with(root) || root.starts_with(path));
        !is_hidden && (!is_given || is_there())
    };
    let mut found: Vec<String> = Vec::new();
    for word in find_named_words(text).words {
        let shown = word.strip_prefix("HOME/").map_or_else(|| word.clone(), |rest| format!("~/{rest}"));
        if in_home(&word).is_some_and(|path| !is_reached(&path)) && !found.contains(&shown) {
            found.push(shown);
        }
    }
    found
}

/// Finds the files that a command names in writable places, and describes them. `is_given` means that the command has
/// extra access and starts in an empty folder. `may_show` decides if a text may be shown.
pub fn find_named_files(
    (text, is_given): (&str, bool),
    shelter: &Shelter,
    rules: &Rules,
    may_show: &dyn Fn(&str) -> bool,
) -> FoundFiles {
    let places = Places::collect(shelter, rules);
    let words = find_named_words(text);
    let start_folder = shelter.folder().work_path();
    let start_folder = (!is_given).then(|| start_folder.canonicalize().unwrap_or(start_folder));
    let mut folders: Vec<PathBuf> = Vec::new();
    for word in &words.words {
        let found = places.find_word(start_folder.as_deref(), word).into_iter().map(|(_, path)| path);
        for folder in found.filter(|path| path.is_dir()) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    let are_more_folders = folders.len() > MAX_FOLDERS;
    folders.truncate(MAX_FOLDERS);
    let mut files: Vec<(PathBuf, PathBuf)> = Vec::new();
    let bases: Vec<Option<&Path>> =
        std::iter::once(start_folder.as_deref()).chain(folders.iter().map(|folder| Some(folder.as_path()))).collect();
    let files_of = |word: &str| -> Vec<(PathBuf, PathBuf)> {
        let found = bases.iter().flat_map(|base| places.find_word(*base, word));
        found.filter(|(_, path)| path.is_file()).collect()
    };
    let mut run = BTreeSet::new();
    let names: Vec<&str> = words.commands.iter().filter_map(|words| words.first().map(String::as_str)).collect();
    for command in &words.commands {
        let Some((name, rest)) = command.split_first() else { continue };
        if INTERPRETERS.iter().any(|known| is_called(name, known)) {
            run.extend(find_script(rest, &files_of));
        }
        for (_, looked_for) in LOADERS.iter().filter(|(known, _)| is_called(name, known)) {
            files.extend(looked_for.iter().flat_map(|word| files_of(word)));
        }
    }
    for word in &words.words {
        let found = files_of(word);
        let is_command = word.contains('/') && word.rsplit('/').next().is_some_and(|name| names.contains(&name));
        if is_command {
            let may_run = |path: &Path| names.contains(&"chmod") || is_executable(path);
            run.extend(found.iter().map(|(_, path)| path.clone()).filter(|path| may_run(path)));
        }
        files.extend(found);
    }
    let mut seen = BTreeSet::new();
    files.retain(|named| seen.insert(named.clone()));
    // Files to be run come first, so that the limit never drops them.
    files.sort_by_key(|(_, path)| !run.contains(path));
    let are_more = words.are_more || are_more_folders || files.len() > MAX_FILES;
    files.truncate(MAX_FILES);

    let mut room = MAX_TEXTS_BYTES;
    let mut unheld = Vec::new();
    let mut found = Vec::new();
    for (named, path) in files {
        let is_run = run.contains(&path);
        match describe_file(named, path, is_run, &mut room, may_show) {
            Some(file) => found.push(file),
            None => {
                unheld.push("One of the files that it names can't be read, so I can't tell what is in it.".to_owned());
            }
        }
    }
    if are_more {
        unheld.push(format!(
            "It names more files than I can check: I only make sure that the first {MAX_FILES} don't change."
        ));
    }
    let loads = names.iter().any(|name| {
        INTERPRETERS.iter().chain(LOADERS.iter().map(|(known, _)| known)).any(|known| is_called(name, known))
    });
    let runs: Vec<&Path> = found.iter().filter(|file| file.is_run).map(|file| file.path.as_path()).collect();
    let begins = start_folder.iter().filter(|_| loads || !words.is_plain || !runs.is_empty() || !folders.is_empty());
    let around = runs.iter().copied().chain(folders.iter().chain(begins).map(PathBuf::as_path));
    let around: BTreeSet<PathBuf> = around.filter_map(|path| places.find_enclosing_folder(path)).collect();
    let around: Vec<PathBuf> = around.into_iter().collect();
    let beside = (!around.is_empty()).then(|| fingerprint_folders(&around, &found));
    if beside == Some(None) {
        unheld.push(
            "My scratch folder holds too much to be sure that the files it loads from there don't change.".to_owned(),
        );
    }
    let is_elsewhere = runs.iter().copied().chain(folders.iter().map(PathBuf::as_path));
    let is_elsewhere = is_elsewhere.into_iter().any(|path| places.find_enclosing_folder(path).is_none());
    let may_be_elsewhere = !words.is_plain && !places.granted.is_empty();
    if (is_elsewhere || may_be_elsewhere) && loads {
        unheld.push("Any other file that it loads from a granted folder may still change before it runs.".to_owned());
    }
    unheld.dedup();
    FoundFiles { named: BoundFiles { files: found, folders: around, beside: beside.flatten() }, unheld }
}

/// Finds the script of an interpreter: the first named file. Later files are its arguments.
fn find_script(arguments: &[String], files_of: &dyn Fn(&str) -> Vec<(PathBuf, PathBuf)>) -> Vec<PathBuf> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word.strip_prefix('-').is_some_and(|option| !option.starts_with('-') && option.contains(NO_PROGRAM)) {
            // A command of one word, such as `./x`. Longer commands are parsed on their own.
            let command = words.next().filter(|word| word.contains('/'));
            return command.map(|word| files_of(word)).into_iter().flatten().map(|(_, path)| path).collect();
        }
        let found = files_of(word);
        if !found.is_empty() {
            return found.into_iter().map(|(_, path)| path).collect();
        }
    }
    Vec::new()
}

/// Returns true if the file has an executable bit. In complex text, a file that the command writes can look like a command
/// itself, and a read-only snapshot of it would make the write fail.
fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

/// Returns true if `name` is the known program, possibly with a version: `python3.12`.
fn is_called(name: &str, known: &str) -> bool {
    name.strip_prefix(known).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-'))
}

fn describe_file(
    named: PathBuf,
    path: PathBuf,
    is_run: bool,
    room: &mut usize,
    may_show: &dyn Fn(&str) -> bool,
) -> Option<BoundFile> {
    // The store keeps both paths as text, so they must be valid UTF-8.
    let _ = (named.to_str()?, path.to_str()?);
    let file = open_file(&path).ok()?;
    let found = file.metadata().ok()?;
    let (bytes, sha256) = digest_file(file).ok()?;
    let text =
        bytes.filter(|bytes| bytes.len() <= MAX_TEXT_BYTES.min(*room)).and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.filter(|text| !text.contains('\0') && may_show(text));
    *room -= text.as_ref().map_or(0, String::len);
    let is_executable = found.permissions().mode() & 0o111 != 0;
    Some(BoundFile { named, path, bytes: found.len(), sha256, text, is_run, is_executable })
}
