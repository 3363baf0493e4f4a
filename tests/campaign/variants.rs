//! Broken variants: the product with one place changed. Each is built in a copy of the sources, and trials of its layer run in that
//! build until one fails. A variant that survives shows a mistake the campaign misses.
//!
//! The place is marked in the source: `// fault: NAME` marks the line below it, or all lines up to `// fault end: NAME` if there is
//! one. The code can thus be reworded and moved, and the list only holds the replacement. A marker without a variant is a failure, as
//! is a variant without its marker.

mod list;
mod security;

use std::{
    collections::BTreeSet,
    fmt, fs, io,
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    Options,
    layer::Row,
    stories::{self, Ran},
};

/// The beginnings of the lines above and, for several lines, below a variant's place.
const MARKER: &str = "// fault: ";
const END_MARKER: &str = "// fault end: ";

/// The product's own sources.
const SOURCES: [&str; 2] = ["crates", "src"];

/// One broken place.
pub(crate) struct Variant {
    /// A short description of the mistake.
    pub(crate) name: &'static str,
    /// The layer that has to detect the mistake.
    pub(crate) layer: &'static str,
    /// The marker's name in the sources.
    pub(crate) marker: &'static str,
    /// The replacement, without the place's own indentation.
    pub(crate) broken: &'static str,
    /// The trials of its build.
    pub(crate) trials: Trials,
}

/// The trials that have to detect a variant.
#[derive(Clone, Copy)]
pub(crate) enum Trials {
    /// One of this many trials of its layer.
    UpTo(u64),
    /// This test of the suite, which is its layer's only trial for it.
    Story(&'static str),
}

impl Variant {
    /// The source with its marker, and the marked lines. Fails with the marker's count if that isn't one.
    fn place<'a>(&self, sources: &'a [Source]) -> Result<(&'a Source, Range<usize>), String> {
        let holders: Vec<_> =
            sources.iter().flat_map(|source| source.marked(self.marker).map(move |lines| (source, lines))).collect();
        match <[_; 1]>::try_from(holders) {
            Ok([place]) => Ok(place),
            Err(holders) => Err(format!("its marker {} is there {} times", self.marker, holders.len())),
        }
    }

    /// The source with the variant's change.
    fn applied(&self, source: &Source, lines: &Range<usize>) -> String {
        let old: Vec<&str> = source.text.lines().collect();
        let (before, rest) = old.split_at(lines.start);
        let indentation: String =
            rest.first().map_or("", |line| line).chars().take_while(|c| c.is_whitespace()).collect();
        let broken = self.broken.lines().map(|line| format!("{indentation}{line}"));
        let after = rest.get(lines.len()..).unwrap_or_default();
        let all = before.iter().map(|line| (*line).to_owned()).chain(broken);
        all.chain(after.iter().map(|line| (*line).to_owned())).map(|line| line + "\n").collect()
    }

    /// An error if the variant's test doesn't exist; `None` if all is well.
    fn missing_test(&self, sources: &[Source], tests: &[Source]) -> Option<String> {
        let Trials::Story(test) = self.trials else { return None };
        let (_, name) = test.rsplit_once("::")?;
        let is_told = sources.iter().chain(tests).any(|source| source.text.contains(&format!("fn {name}(")));
        (!is_told).then(|| format!("there is no test {name}"))
    }
}

/// A file below one of [`SOURCES`] or `tests/`.
#[derive(Clone)]
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// The lines marked by each marker of this name.
    fn marked(&self, name: &str) -> impl Iterator<Item = Range<usize>> {
        let lines: Vec<&str> = self.text.lines().map(str::trim).collect();
        let (marker, end_marker) = (format!("{MARKER}{name}"), format!("{END_MARKER}{name}"));
        let starts: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == marker).collect();
        starts.into_iter().map(move |marker| {
            let end = (marker..lines.len()).find(|at| lines[*at] == end_marker);
            let line = (marker + 1..lines.len()).find(|at| !lines[*at].starts_with(MARKER)).unwrap_or(lines.len());
            end.map_or(line..line + 1, |end| marker + 1..end)
        })
    }

    /// The names of its markers.
    fn markers(&self) -> impl Iterator<Item = &str> {
        self.text.lines().filter_map(|line| line.trim().strip_prefix(MARKER))
    }

    /// The names of end markers that have no marker above them.
    fn orphaned_ends(&self) -> impl Iterator<Item = &str> {
        let mut open = BTreeSet::new();
        self.text.lines().map(str::trim).filter_map(move |line| {
            open.extend(line.strip_prefix(MARKER));
            line.strip_prefix(END_MARKER).filter(|name| !open.remove(name))
        })
    }
}

/// Every Rust and SQL file below a directory.
fn sources(dir: &Path) -> io::Result<Vec<Source>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut sources(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "sql") {
            found.push(Source { text: fs::read_to_string(&path)?, path });
        }
    }
    Ok(found)
}

/// The whole list.
fn all() -> impl Iterator<Item = &'static Variant> {
    list::VARIANTS.iter().chain(security::VARIANTS)
}

/// The tests of the suite that some variant has to fail, each once.
pub(crate) fn stories() -> Vec<&'static str> {
    let named = all().filter_map(|variant| match variant.trials {
        Trials::Story(test) => Some(test),
        Trials::UpTo(_) => None,
    });
    named.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The text before the number of trials a catch took.
pub(crate) const CAUGHT: &str = "caught after ";
/// The output for a variant no trial caught.
pub(crate) const SURVIVED: &str = "survived\n";

/// The length of a variant's error message in the report, in characters.
const MAX_SAID_CHARS: usize = 500;
/// The days until each layer has had one of its variants run; at least the number of layers.
const DAYS: u64 = 28;

/// The choice of variants to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// None.
    None,
    /// One variant each day, of another layer every day, so the suite's share stays within four minutes. A layer that is run alone
    /// gets another one every day.
    OneEach,
    /// All.
    All,
    /// The variants that are new or changed since a commit.
    Since(BTreeSet<&'static str>),
}

impl Choice {
    /// Reads a choice; a commit is named by `since:COMMIT`. `None` for anything else, or for a commit without a list.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            "one" => Some(Self::OneEach),
            "all" => Some(Self::All),
            _ => text.strip_prefix("since:").and_then(changed_since).map(Self::Since),
        }
    }
}

/// The names of variants that were added or changed since a commit.
#[expect(clippy::disallowed_methods, reason = "the campaign's own children")]
fn changed_since(commit: &str) -> Option<BTreeSet<&'static str>> {
    let list = |file: &str| {
        let place = format!("{commit}:./tests/campaign/variants/{file}");
        let shown = Command::new("git").args(["show", &place]).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        shown.status.success().then(|| String::from_utf8_lossy(&shown.stdout).into_owned())
    };
    let before = list("list.rs")? + &list("security.rs")?;
    let is_there =
        |text: &str| before.contains(text) || before.contains(&text.escape_default().to_string().replace("\\'", "'"));
    let changed = all().filter(|variant| ![variant.name, variant.marker, variant.broken].into_iter().all(is_there));
    Some(changed.map(|variant| variant.name).collect())
}

/// A variant's line in the table.
pub(crate) struct Tried {
    pub(crate) name: &'static str,
    pub(crate) layer: &'static str,
    pub(crate) verdict: Verdict,
}

/// The result of a variant.
pub(crate) enum Verdict {
    /// A trial failed, as it should, with the number of trials and its error.
    Caught(String),
    /// Every trial passed.
    Survived,
    /// The variant couldn't be built or run.
    NotTried(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Caught(how) => f.write_str(how),
            Self::Survived => f.write_str("NOTHING: it survived"),
            Self::NotTried(why) => write!(f, "NOT TRIED: {why}"),
        }
    }
}

impl Tried {
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.verdict, Verdict::Caught(_))
    }
}

/// Tries variants of these layers.
pub(crate) fn run(rows: &[Row], options: &Options) -> Vec<Tried> {
    let Options { variants: ref choice, seed, part, .. } = *options;
    let layers: Vec<_> = rows.iter().map(|row| row.layer).collect();
    // A list that doesn't fit the sources is found at once, even if it isn't the entry's turn or its layer isn't run.
    let mut tried = misfits(&layers);
    if *choice == Choice::None {
        return tried;
    }
    let workshop = match Workshop::open() {
        Ok(workshop) => workshop,
        Err(error) => {
            let verdict = Verdict::NotTried(format!("the copy of the sources couldn't be made: {error}"));
            return vec![Tried { name: "all", layer: "all", verdict }];
        }
    };
    let were_run: Vec<_> = rows.iter().filter(|row| row.missing.is_none()).map(|row| row.layer).collect();
    for variant in part.of(chosen(&were_run, choice, seed)) {
        super::say(&format!("broken variant: {} …", variant.name));
        let verdict = workshop.judge(variant, seed).unwrap_or_else(Verdict::NotTried);
        super::say(&format!("  {verdict}"));
        tried.push(Tried { name: variant.name, layer: variant.layer, verdict });
    }
    tried
}

/// The variants of these layers this choice selects.
fn chosen(layers: &[&'static str], choice: &Choice, seed: u64) -> Vec<&'static Variant> {
    let is_alone = layers.len() == 1;
    let day = if is_alone { seed } else { seed / DAYS };
    let of_layer = |(place, layer): (usize, &&str)| {
        let of_layer: Vec<_> = all().filter(|variant| variant.layer == *layer).collect();
        match choice {
            Choice::None => Vec::new(),
            Choice::All => of_layer,
            Choice::Since(names) => of_layer.into_iter().filter(|variant| names.contains(variant.name)).collect(),
            Choice::OneEach if is_alone || (place as u64).wrapping_add(seed).is_multiple_of(DAYS) => {
                let at = usize::try_from(day).unwrap_or_default().checked_rem(of_layer.len());
                at.and_then(|at| of_layer.get(at).copied()).into_iter().collect()
            }
            Choice::OneEach => Vec::new(),
        }
    };
    layers.iter().enumerate().flat_map(of_layer).collect()
}

/// Entries without their marker or test, markers without an entry, and layers without a variant.
fn misfits(layers: &[&'static str]) -> Vec<Tried> {
    let below = |folder: &str| sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap_or_default();
    let sources = SOURCES.iter().flat_map(|folder| below(folder)).collect::<Vec<_>>();
    let tests = below("tests");
    let bare = layers.iter().filter(|layer| all().all(|variant| variant.layer != **layer));
    let bare = bare.map(|layer| Tried {
        name: "(none)",
        layer,
        verdict: Verdict::NotTried("nothing shows that this layer would see a mistake".to_owned()),
    });
    let of_layers = all().filter(|variant| layers.contains(&variant.layer));
    let missing = of_layers.filter_map(|variant| {
        let why = variant.place(&sources).err().or_else(|| variant.missing_test(&sources, &tests))?;
        Some(Tried { name: variant.name, layer: variant.layer, verdict: Verdict::NotTried(why) })
    });
    let named: BTreeSet<&str> = all().map(|variant| variant.marker).collect();
    let misplaced = |why| Tried { name: "(a marker)", layer: "all", verdict: Verdict::NotTried(why) };
    let stray = sources.iter().flat_map(Source::markers).filter(|marker| !named.contains(marker));
    let stray = stray.map(|marker| misplaced(format!("no variant is called by the marker {marker}")));
    let orphaned = sources.iter().flat_map(Source::orphaned_ends);
    let orphaned = orphaned.map(|name| misplaced(format!("the end marker {name} has no marker above it")));
    bare.chain(missing).chain(stray).chain(orphaned).collect()
}

/// A copy of the sources that is built into a directory of its own.
struct Workshop {
    sources: PathBuf,
    target: PathBuf,
}

/// The build's inputs.
const PARTS: &[&str] = &[
    ".cargo",
    ".env.example",
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "clippy.toml",
    "crates",
    "src",
    "tests",
    "benches",
    "claude.md",
    "docs",
    "memory",
    "skills",
    "systemd",
    "launchd",
];

impl Workshop {
    /// Copies the sources, and takes over the built dependencies, so a variant only builds the project.
    fn open() -> io::Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        // `<target>/<profile>/deps/campaign-…`
        let profile = std::env::current_exe()?;
        let Some(profile) = profile.parent().and_then(Path::parent) else {
            return Err(io::Error::other("the campaign wasn't built by cargo"));
        };
        let Some(target) = profile.parent() else {
            return Err(io::Error::other("the campaign wasn't built by cargo"));
        };
        let home = target.join("campaign");
        let workshop = Self { sources: home.join("sources"), target: home.join("build") };
        if workshop.sources.exists() {
            fs::remove_dir_all(&workshop.sources)?;
        }
        for part in PARTS {
            copy(&here.join(part), &workshop.sources.join(part), &|from, to| fs::copy(from, to).map(drop))?;
        }
        if !workshop.target.exists() {
            for part in ["deps", "build", ".fingerprint"] {
                // Fingerprints are rewritten in place, and cargo compares their times. All other files are replaced, never written
                // into.
                let how: &How = if part == ".fingerprint" { &copy_with_time } else { &link };
                copy(&profile.join(part), &workshop.target.join("debug").join(part), how)?;
            }
        }
        Ok(workshop)
    }

    fn judge(&self, variant: &Variant, seed: u64) -> Result<Verdict, String> {
        let read = SOURCES.iter().map(|folder| sources(&self.sources.join(folder))).collect::<io::Result<Vec<_>>>();
        let sources = read.map_err(|error| format!("the copied sources: {error}"))?.concat();
        let (source, lines) = variant.place(&sources)?;
        let Source { path, text } = source;
        let write = |text: &str| fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()));
        write(&variant.applied(source, &lines))?;
        let verdict = match variant.trials {
            Trials::UpTo(trials) => self.build().and_then(|program| judged(&program, variant.layer, seed, trials)),
            Trials::Story(test) => stories::run(test, &self.sources, &self.target).map(|ran| match ran {
                Ran::Passed => Verdict::Survived,
                Ran::Failed => Verdict::Caught(test.to_owned()),
            }),
        };
        write(text)?;
        verdict
    }

    /// Builds the programs and the campaign, and returns the campaign's path.
    fn build(&self) -> Result<PathBuf, String> {
        let output = command("cargo")
            .args(["test", "--locked", "--offline", "--quiet", "--no-run", "--test", "campaign"])
            .args(["--message-format", "json"])
            .current_dir(&self.sources)
            .env("CARGO_TARGET_DIR", &self.target)
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!("it doesn't build: {}", String::from_utf8_lossy(&output.stderr)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        messages
            .filter(|message| message["target"]["name"] == "campaign")
            .find_map(|message| message["executable"].as_str().map(PathBuf::from))
            .ok_or_else(|| "cargo didn't say where the campaign is".to_owned())
    }
}

/// Runs the trials of a built variant.
fn judged(program: &Path, layer: &str, seed: u64, trials: u64) -> Result<Verdict, String> {
    let output = command(program)
        .args(["--judge", layer, &seed.to_string(), &trials.to_string()])
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text == SURVIVED {
        return Ok(Verdict::Survived);
    }
    let first = text.lines().next().unwrap_or_default();
    match first.strip_prefix(CAUGHT) {
        Some(how) => Ok(Verdict::Caught(how.chars().take(100).collect())),
        // Usually the undisturbed run already fails, which shows nothing about the trials.
        None => {
            let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(MAX_SAID_CHARS).collect();
            Err(format!("its run ended with {}: {said}", output.status))
        }
    }
}

/// A command without the variables that cargo sets for a package's tests. Build scripts look at these, so another cargo would rebuild
/// ring and all crates that need it.
#[expect(clippy::disallowed_methods, reason = "the campaign's own children")]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let is_told =
        |name: &str| name == "OUT_DIR" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_told)) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A way to copy one file.
type How = dyn Fn(&Path, &Path) -> io::Result<()>;

/// Copies a file or a directory with its content.
fn copy(from: &Path, to: &Path, how: &How) -> io::Result<()> {
    if !from.is_dir() {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        return how(from, to);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()), how)?;
    }
    Ok(())
}

/// Links a file that cargo replaces; copies a list of sources (`.d`), which cargo overwrites.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    if from.extension().is_some_and(|ending| ending == "d") {
        copy_with_time(from, to)
    } else {
        fs::hard_link(from, to)
    }
}

fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let changed = fs::metadata(from)?.modified()?;
    fs::File::options().write(true).open(to)?.set_modified(changed)
}
