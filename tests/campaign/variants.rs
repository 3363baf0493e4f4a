//! Broken variants: the product with one place changed. Each is built in a copy of the sources, and trials of its layer are
//! run in that build until one fails. A variant that survives shows that the campaign can't see that mistake.
//!
//! The place is marked in the source: `// fault: NAME` stands for the line below it, and for all lines up to `// fault end: NAME` where
//! that is there. So the code may be reworded and moved, and the list says only what stands there instead. A marker without a variant
//! is a failure, as is a variant without its marker: the list can't rot.

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

/// How the line begins above what a variant changes, and the one below it where that is more than a line.
const MARKER: &str = "// fault: ";
const END_MARKER: &str = "// fault end: ";

/// Where the product's own sources are.
const SOURCES: [&str; 2] = ["crates", "src"];

/// One broken place.
pub(crate) struct Variant {
    /// What is broken, in a few words.
    pub(crate) name: &'static str,
    /// The layer that has to see it.
    pub(crate) layer: &'static str,
    /// The marker's name in the sources.
    pub(crate) marker: &'static str,
    /// What stands there instead, without the place's own indentation.
    pub(crate) broken: &'static str,
    /// What is tried in a build of it.
    pub(crate) trials: Trials,
}

/// In which trials a variant has to be seen.
#[derive(Clone, Copy)]
pub(crate) enum Trials {
    /// In one of so many of its layer's.
    UpTo(u64),
    /// In this test of the suite, which is its layer's only trial for it.
    Story(&'static str),
}

impl Variant {
    /// The one source that has its marker, and the lines that it marks; else how often the marker is there.
    fn place<'a>(&self, sources: &'a [Source]) -> Result<(&'a Source, Range<usize>), String> {
        let holders: Vec<_> =
            sources.iter().flat_map(|source| source.marked(self.marker).map(move |lines| (source, lines))).collect();
        match <[_; 1]>::try_from(holders) {
            Ok([place]) => Ok(place),
            Err(holders) => Err(format!("its marker {} is there {} times", self.marker, holders.len())),
        }
    }

    /// The source as it is broken.
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

    /// That its story is told by no test, if so.
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
    /// The lines that each marker of this name stands for.
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

/// Every program text and statement of SQL below a directory.
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

/// Stands before the number of trials that it took to catch a variant.
pub(crate) const CAUGHT: &str = "caught after ";
/// What a variant that no trial caught says.
pub(crate) const SURVIVED: &str = "survived\n";

/// How much is told of what a variant's run complained of, in characters.
const MAX_SAID_CHARS: usize = 500;
/// So many days it takes until each layer has had one of its variants run: there are no more layers than this.
const DAYS: u64 = 28;

/// Which variants are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// None.
    None,
    /// Of another layer every day one, so that the suite's share stays within four minutes; of a layer that is run alone another one
    /// every day.
    OneEach,
    /// All.
    All,
    /// Those that aren't in this commit's list as they are now.
    Since(BTreeSet<&'static str>),
}

impl Choice {
    /// Reads a choice; a commit is named by `since:COMMIT`. None for anything else, or a commit without a list.
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

/// What became of a variant.
pub(crate) enum Verdict {
    /// A trial failed, as it should: after how many, and what it said.
    Caught(String),
    /// Every trial passed.
    Survived,
    /// It couldn't be built or run.
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
    // A list that doesn't fit the sources is found at once: not on the day of the entry's turn, and also where its layer isn't run.
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

/// The variants of these layers that this choice means.
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

/// Entries whose marker or test isn't there, markers without an entry, and layers without any.
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

/// What the build reads.
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
    /// Copies the sources as they are. Dependencies are taken over as they are built: a variant only builds the project.
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
                // Fingerprints are rewritten in place, and cargo looks at their times; all else is replaced, never written into.
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

    /// Builds the programs and the campaign, and gives the campaign's path.
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
        // Mostly its undisturbed run fails already: then this line shows nothing about kills.
        None => {
            let said: String = String::from_utf8_lossy(&output.stderr).trim().chars().take(MAX_SAID_CHARS).collect();
            Err(format!("its run ended with {}: {said}", output.status))
        }
    }
}

/// A program as a person starts it: without what cargo tells a test of its package. Build scripts look at that, so that another
/// cargo would build ring anew, and whatever needs it.
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

/// How one file is copied.
type How = dyn Fn(&Path, &Path) -> io::Result<()>;

/// Copies a file or a directory with all that is in it.
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

/// What cargo writes anew is replaced; only its lists of sources (`.d`) are written over.
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
