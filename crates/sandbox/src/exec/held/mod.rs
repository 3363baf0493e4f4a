//! An approval covers the bytes present when the person was asked; later replacements don't run.
//!
//! [`find_named_files`] finds the files that a command names in writable places and describes them as [`BoundFiles`], which
//! the question keeps and shows. [`hold_files`] runs after the approval. A file that the command runs is mounted read-only
//! in its original state for that command; all other named files must be unchanged, or nothing runs. The question
//! mentions everything that can't be held.

mod look;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use ring::digest::SHA256;
use rustix::fs::OFlags;

use reveille_base::{
    file::create_private_dirs,
    random::{self, format_hex},
    types::{BoundFile, BoundFiles},
};

pub use self::look::{FoundFiles, find_named_files, out_of_reach};
use super::Shelter;

/// Maximum size of a file that is read, in bytes. A longer file is identified by size, change time and inode.
const MAX_READ_BYTES: u64 = 16 << 20;
/// Maximum number of entries fingerprinted beside the named files.
const MAX_BESIDE: usize = 5_000;
/// The folder of long outputs. Left out of the fingerprint because outputs aren't run and each command may add one.
const OUTPUTS: &str = "outputs";
/// Random bytes in the name of a snapshot folder.
const NAME_BYTES: usize = 8;

/// Snapshots of files for one command, removed on drop.
#[derive(Debug, Default)]
pub struct HeldFiles {
    dir: Option<PathBuf>,
    /// Each snapshot, and the path where it is mounted.
    overlays: Vec<(PathBuf, PathBuf)>,
}

impl HeldFiles {
    /// Returns each snapshot with the path where it is mounted.
    pub(super) fn overlays(&self) -> &[(PathBuf, PathBuf)] {
        &self.overlays
    }
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        if let Some(dir) = &self.dir {
            // Leftovers are removed before the next snapshots.
            fs::remove_dir_all(dir).ok();
        }
    }
}

/// Prepares the files of an approved call: snapshots of the files to be run, where the sandbox can mount them.
///
/// # Errors
/// A file has changed; the words for the model. Nothing may run then.
pub fn hold_files(named: &BoundFiles, shelter: &Shelter) -> Result<HeldFiles, String> {
    let mut held = HeldFiles::default();
    for (n, file) in named.files.iter().enumerate() {
        let is_there = file.named.canonicalize().is_ok_and(|path| path == file.path);
        let live = open_file(&file.path).ok().filter(|_| is_there).ok_or_else(|| describe_change(&file.named))?;
        if !(file.is_run && file.bytes <= MAX_READ_BYTES && shelter.can_mount_files()) {
            digest_file(live)
                .ok()
                .filter(|(_, digest)| *digest == file.sha256)
                .ok_or_else(|| describe_change(&file.named))?;
            continue;
        }
        let copied =
            ensure_folder(&mut held, shelter).and_then(|dir| write_snapshot(&dir.join(n.to_string()), file, live));
        match copied {
            Ok(Some(copy)) => held.overlays.push((copy, file.path.clone())),
            Ok(None) => return Err(describe_change(&file.named)),
            Err(error) => {
                return Err(format!(
                    "{} can't be kept as it was: {error}. Nothing was done.",
                    format_path(&file.named)
                ));
            }
        }
    }
    if let Some(beside) = &named.beside
        // fault: script-loads-exchanged-yes
        && fingerprint_folders(&named.folders, &named.files).as_ref() != Some(beside)
    {
        return Err(describe_change(named.folders.first().map_or(shelter.scratch(), PathBuf::as_path)));
    }
    Ok(held)
}

fn describe_change(path: &Path) -> String {
    format!(
        "{} has changed since your person was asked, and they had agreed to what was there then. Nothing was done. If it is still wanted, call \
         it again: they are asked about what is there now.",
        format_path(path)
    )
}

fn format_path(path: &Path) -> String {
    format!("`{}`", path.display())
}

/// Returns the folder of these snapshots, created on first use after removing the leftovers of a crash.
fn ensure_folder<'h>(held: &'h mut HeldFiles, shelter: &Shelter) -> io::Result<&'h Path> {
    if held.dir.is_none() {
        // Only one wake works at a time, with one command at a time.
        fs::remove_dir_all(shelter.snapshots()).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
        let name = random::generate_bytes::<NAME_BYTES>().map_err(io::Error::other)?;
        let dir = shelter.snapshots().join(format_hex(&name));
        create_private_dirs(&dir)?;
        held.dir = Some(dir);
    }
    held.dir.as_deref().ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Writes a file's original content; `None` if that content is no longer available.
fn write_snapshot(to: &Path, file: &BoundFile, live: File) -> io::Result<Option<PathBuf>> {
    let mode = if file.is_executable { 0o500 } else { 0o400 };
    let mut copy = OpenOptions::new().write(true).create_new(true).mode(mode).open(to)?;
    let bytes = match &file.text {
        Some(text) => text.clone().into_bytes(),
        None => match digest_file(live)? {
            (Some(bytes), _) => bytes,
            (None, _) => return Ok(None),
        },
    };
    copy.write_all(&bytes)?;
    let written = format_hex(ring::digest::digest(&SHA256, &bytes).as_ref());
    Ok((written == file.sha256).then(|| to.to_owned()))
}

/// Opens a plain file for reading. Links aren't followed, and a pipe doesn't block.
fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or(0)).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Returns a file's digest, with its bytes unless the file is too long.
fn digest_file(mut file: File) -> io::Result<(Option<Vec<u8>>, String)> {
    let found = file.metadata()?;
    if found.len() > MAX_READ_BYTES {
        let stamp = format!("{}:{}:{}:{}", found.len(), found.ctime(), found.ctime_nsec(), found.ino());
        return Ok((None, format_hex(ring::digest::digest(&SHA256, stamp.as_bytes()).as_ref())));
    }
    let mut bytes = Vec::new();
    (&mut file).take(MAX_READ_BYTES + 1).read_to_end(&mut bytes)?;
    let digest = format_hex(ring::digest::digest(&SHA256, &bytes).as_ref());
    Ok((Some(bytes), digest))
}

/// Returns the SHA-256 of a folder tree by name, mode, size, inode and change time, which programs can't set. The
/// named files are left out, because they are checked separately. `None` if there are too many entries.
fn fingerprint_folders(folders: &[PathBuf], named: &[BoundFile]) -> Option<String> {
    let (mut lines, mut open) = (Vec::new(), folders.to_vec());
    let outputs: Vec<PathBuf> = folders.iter().map(|folder| folder.join(OUTPUTS)).collect();
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound && folders.contains(&folder) => continue,
            Err(_) => return None,
        };
        for entry in entries {
            let path = entry.ok()?.path();
            if outputs.contains(&path) || named.iter().any(|file| file.path == path) {
                continue;
            }
            let found = fs::symlink_metadata(&path).ok()?;
            if found.is_dir() {
                // Empty folders don't matter.
                open.push(path);
            } else {
                let (size, second, part, number) = (found.len(), found.ctime(), found.ctime_nsec(), found.ino());
                lines.push(format!("{path:?} {:o} {size} {second}.{part} {number}", found.mode()));
            }
            if lines.len() + open.len() > MAX_BESIDE {
                return None;
            }
        }
    }
    lines.sort();
    Some(format_hex(ring::digest::digest(&SHA256, lines.join("\n").as_bytes()).as_ref()))
}
