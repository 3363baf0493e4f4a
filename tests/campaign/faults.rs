//! Steers the preload library `faults.c`, which makes a chosen call of a program, or of its children, fail in a chosen way.
//!
//! The library and the campaign share a file of 64-bit words in the machine's byte order: calls so far, mode, the chosen call, the
//! error's number, the classes of counted calls, whether the fault has fired, and the living processes.
//!
//! The record is a file of entries in the order in which the calls ended: `u32` length of the entry, `u8` kind, `u8` flags (1: a rename
//! that exchanged the two), `u16` zero, `u32` pid, `u64` inode, `i64` offset, `u32` lengths of path, second path and data, followed by
//! those three, little-endian on the machines we know.

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal};

/// Words before the processes.
const HEAD_WORDS: usize = 6;
const MAX_PROCESSES: usize = 256;
/// Time allowed for children of a killed process to end.
const DEATH: Duration = Duration::from_secs(3);

/// Classes of calls, as bits.
pub(crate) mod class {
    /// Contents of files: writes and truncations.
    pub(crate) const DATA: u64 = 1;
    /// Names: creating, renaming, linking, making directories.
    pub(crate) const NAME: u64 = 2;
    /// Syncs.
    pub(crate) const SYNC: u64 = 4;
    /// Data sent over the network.
    pub(crate) const NET: u64 = 8;
    /// Calls that need a descriptor.
    pub(crate) const OPEN: u64 = 16;
    /// Removals of names.
    pub(crate) const REMOVE: u64 = 32;
    /// Every call that changes the world.
    pub(crate) const MUTATING: u64 = DATA | NAME | SYNC | NET | REMOVE;
}

/// The library's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Counts.
    Count,
    /// Kills every process of the trial before the nth call.
    Kill(u64),
    /// As [`Mode::Kill`], after the first half of the call if it is a write.
    Tear(u64),
    /// Kills only the program before the nth call; a child that makes this call stays blocked in it.
    KillFirst(u64),
    /// Makes the nth call fail with this error number.
    Once(u64, i32),
    /// Makes the nth call and all later ones fail with this error number.
    Sticky(u64, i32),
    /// Records writes, syncs and sends.
    Record,
}

/// One world's fault.
pub(crate) struct Faults {
    control: File,
    path: PathBuf,
    root: PathBuf,
    record: Option<PathBuf>,
}

impl Faults {
    /// Starts without a fault: counts calls of `classes` beneath `root`. The control file is made in `dir`.
    pub(crate) fn new(dir: &Path, root: &Path, classes: u64) -> Self {
        let path = dir.join("faults");
        let control = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        control.set_len(((HEAD_WORDS + MAX_PROCESSES) * 8) as u64).unwrap();
        let faults = Self { control, path, root: root.to_owned(), record: None };
        faults.set(4, classes);
        faults
    }

    /// Sets the mode from now on and restarts the count.
    pub(crate) fn set_mode(&mut self, mode: Mode) {
        let (number, target, error) = match mode {
            Mode::Count => (0, 0, 0),
            Mode::Kill(n) => (1, n, 0),
            Mode::Tear(n) => (2, n, 0),
            Mode::Once(n, error) => (3, n, error),
            Mode::Sticky(n, error) => (4, n, error),
            Mode::Record => (5, 0, 0),
            Mode::KillFirst(n) => (6, n, 0),
        };
        self.record = (mode == Mode::Record).then(|| self.path.with_extension("record"));
        for (word, value) in [(0, 0), (2, target), (3, error.unsigned_abs().into()), (5, 0), (1, number)] {
            self.set(word, value);
        }
    }

    /// The record's path.
    pub(crate) fn record(&self) -> Option<&Path> {
        self.record.as_deref()
    }

    /// Puts a program, and everything it starts, under the library.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.env("LD_PRELOAD", library()).env("FAULTS_CONTROL", &self.path).env("FAULTS_ROOT", &self.root);
        if let Some(record) = &self.record {
            command.env("FAULTS_RECORD", record);
        }
    }

    /// Calls counted so far.
    pub(crate) fn calls(&self) -> u64 {
        self.get(0)
    }

    /// Tells whether the fault has fired.
    pub(crate) fn has_fired(&self) -> bool {
        self.get(5) != 0
    }

    /// Waits until all processes have ended. Kills those that haven't after a while, and returns the first of them.
    pub(crate) fn kill_survivors(&self) -> Option<u64> {
        let begun = Instant::now();
        loop {
            let processes = (0..MAX_PROCESSES).map(|n| self.get(HEAD_WORDS + n));
            let living: Vec<u64> = processes.filter(|pid| *pid != 0 && is_alive(*pid)).collect();
            if living.is_empty() || begun.elapsed() > DEATH {
                let numbers = living.iter().filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
                numbers.for_each(|pid| {
                    // The process may have ended by itself just now.
                    rustix::process::kill_process(pid, Signal::KILL).ok();
                });
                return living.first().copied();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn set(&self, word: usize, value: u64) {
        self.control.write_all_at(&value.to_ne_bytes(), word as u64 * 8).unwrap();
    }

    fn get(&self, word: usize) -> u64 {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, word as u64 * 8).unwrap();
        u64::from_ne_bytes(bytes)
    }
}

/// Tells whether a process with this ID runs; a zombie doesn't.
fn is_alive(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The library, built once.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/campaign/faults.c");
        let program = std::env::current_exe().unwrap();
        let library = program.with_extension("faults.so");
        #[expect(clippy::disallowed_methods, reason = "the campaign's compiler")]
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o"])
            .args([&library, &source])
            .args(["-ldl", "-lpthread"])
            .output()
            .expect("the campaign needs a C compiler (cc)");
        assert!(output.status.success(), "faults.c: {}", String::from_utf8_lossy(&output.stderr));
        library
    })
}
