//! Reads a backup from any source: first into a temporary folder, and to its destination once everything is verified.

use std::{
    ffi::OsStr,
    fs,
    io::BufReader,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    disk,
    file::{self, add_ending, create_private, create_private_dir, create_private_dirs, parent_directory},
};
use reveille_config::Config;
use reveille_git::{Repo, RepoError, UncommittedFile};
use reveille_store::{
    SetAside, Store, StoreError,
    wake_lock::{LockError, WakeLock},
};

use super::{
    BackupError, BackupManifest, MANIFEST, MANIFEST_BYTES_MAX, MANIFEST_SUM, Scratch,
    container::{Unpacker, measure_stream},
    create::FETCHED_PART,
    manifest::{BUNDLE, DATABASE, MEDIA, MemberPlace, SETTINGS, name_in_file},
    sync_folder,
};

/// Entries that a workspace may contain before a restore.
const ALLOWED_ENTRIES: [&str; 10] = [
    SETTINGS,
    "logs",
    ".live",
    ".wake-lock",
    ".bot-lock",
    ".chat-lock",
    ".stay-lock",
    ".last-look",
    ".health-told",
    ".voice-lock",
];

/// A restored backup.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RestoredBackup {
    /// The workspace.
    pub workspace: PathBuf,
    /// Items that don't simply continue after the restore.
    pub set_aside: SetAside,
    /// `true` if existing settings were kept and the backup's were left out.
    pub kept_settings: bool,
    /// The contents of the backup.
    pub manifest: BackupManifest,
}

/// Restores a backup into a temporary folder beside it, and returns its contents.
///
/// # Errors
/// If the backup is damaged or can't be restored.
pub fn verify(file: &Path, now: DateTime<Utc>) -> Result<(BackupManifest, SetAside), BackupError> {
    // Git runs in another directory, so the path must be absolute.
    let file = &std::path::absolute(file).map_err(BackupError::io("finding", file.display()))?;
    let scratch = Scratch::create_in(parent_directory(file))?;
    let manifest = unpack_members(file, scratch.path())?;
    let set_aside = prepare_workspace(&manifest, scratch.path(), now)?;
    Ok((manifest, set_aside))
}

/// Restores a backup into the workspace of `config`, which must be empty except for settings and logs. All work is
/// stopped there until a person resumes it.
///
/// # Errors
/// If something is in the way, or the backup is damaged.
pub fn restore(config: &Config, file: &Path, now: DateTime<Utc>) -> Result<RestoredBackup, BackupError> {
    let dir = &config.workspace_dir;
    let was_there = dir.is_dir();
    create_private_dirs(dir).map_err(BackupError::io("making", dir.display()))?;
    let restored = restore_into(config, file, now);
    if restored.is_err() && !was_there {
        // At most lock files are left in it.
        for path in [config.lock_path(), config.bot_lock_path()] {
            fs::remove_file(path).ok();
        }
        fs::remove_dir(dir).ok();
    }
    restored
}

fn restore_into(config: &Config, file: &Path, now: DateTime<Utc>) -> Result<RestoredBackup, BackupError> {
    let dir = &config.workspace_dir;
    // The locks keep wakes and the bot out meanwhile.
    let _wake = take_lock(&config.lock_path(), "A wake is running there.")?;
    let _bot = take_lock(&config.bot_lock_path(), "The bot is running there.")?;
    Scratch::sweep(dir);
    let entries = fs::read_dir(dir).map_err(BackupError::io("reading", dir.display()))?;
    for entry in entries {
        let entry = entry.map_err(BackupError::io("reading", dir.display()))?;
        let what = entry.file_name().to_string_lossy().into_owned();
        if !ALLOWED_ENTRIES.contains(&what.as_str()) {
            return Err(BackupError::NotEmpty { dir: dir.clone(), what });
        }
    }
    let scratch = Scratch::create_in(dir)?;
    let manifest = unpack_members(file, scratch.path())?;
    let set_aside = prepare_workspace(&manifest, scratch.path(), now)?;
    let ready = workspace_path(scratch.path());
    let mut names: Vec<_> = fs::read_dir(&ready)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>())
        .map_err(BackupError::io("reading", ready.display()))?;
    // Files of messages move first, since existing files may be in the way. The database moves last: a workspace with a
    // memory but without a database starts no work.
    let is_elsewhere = |name: &OsStr| config.media_dir != *dir && MEDIA.iter().any(|folder| name == *folder);
    names.sort_by_key(|name| (name == DATABASE, !is_elsewhere(name), name.clone()));
    for name in names.iter().filter(|name| is_elsewhere(name)) {
        refuse_foreign_files(&ready.join(name), &config.media_dir.join(name))?;
    }
    let mut kept_settings = false;
    for name in names {
        if name == SETTINGS && dir.join(SETTINGS).exists() {
            kept_settings = true;
            continue;
        }
        if is_elsewhere(&name) {
            copy_media(&ready.join(&name), &config.media_dir.join(&name))?;
            continue;
        }
        let to = dir.join(&name);
        fs::rename(ready.join(&name), &to).map_err(BackupError::io("moving", to.display()))?;
    }
    sync_folder(dir)?;
    Ok(RestoredBackup { workspace: dir.clone(), set_aside, kept_settings, manifest })
}

/// Fails if a different file exists under one of these names, since it belongs to another database. Runs before
/// anything is copied.
fn refuse_foreign_files(from: &Path, to: &Path) -> Result<(), BackupError> {
    for entry in fs::read_dir(from).map_err(BackupError::io("reading", from.display()))? {
        let entry = entry.map_err(BackupError::io("reading", from.display()))?;
        is_already_there(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns `true` if the same file exists already. Fails if a different file has its name.
fn is_already_there(file: &Path, place: &Path) -> Result<bool, BackupError> {
    if !place.exists() {
        return Ok(false);
    }
    let read = |path: &Path| fs::read(path).map_err(BackupError::io("reading", path.display()));
    if read(place)? == read(file)? { Ok(true) } else { Err(BackupError::OthersMedia(place.to_owned())) }
}

/// Copies files of messages to the folder shared by all machines. Existing files stay, since others may read them.
fn copy_media(from: &Path, to: &Path) -> Result<(), BackupError> {
    let copying = || BackupError::io("copying", to.display());
    create_private_dirs(to).map_err(copying())?;
    for entry in fs::read_dir(from).map_err(copying())? {
        let entry = entry.map_err(copying())?;
        let place = to.join(entry.file_name());
        if is_already_there(&entry.path(), &place)? {
            continue;
        }
        let part = add_ending(&place, FETCHED_PART);
        fs::copy(entry.path(), &part).map_err(copying())?;
        file::sync(&part).map_err(copying())?;
        fs::rename(&part, &place).map_err(copying())?;
    }
    sync_folder(to)
}

fn take_lock(path: &Path, who: &str) -> Result<WakeLock, BackupError> {
    WakeLock::take(path).map_err(|error| match error {
        LockError::Held(_) => BackupError::InUse(who.to_owned()),
        error => error.into(),
    })
}

/// Returns the path of an unpacked member, by its number, so no name from the file is used as a path.
fn member_path(scratch: &Path, at: usize) -> PathBuf {
    scratch.join(format!("member-{at}"))
}

fn workspace_path(scratch: &Path) -> PathBuf {
    scratch.join("workspace")
}

/// Verifies the whole file, and writes its members into an empty folder.
fn unpack_members(file: &Path, scratch: &Path) -> Result<BackupManifest, BackupError> {
    let io = |error| BackupError::io("reading", file.display())(error);
    let open = fs::File::open(file).map_err(io)?;
    let metadata = open.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(BackupError::NotOurs);
    }
    let (mut from, list) = Unpacker::open(BufReader::new(open), MANIFEST, MANIFEST_BYTES_MAX.min(metadata.len()))?;
    let (_, sum) = measure_stream(&mut list.as_slice()).map_err(io)?;
    let mut line = Vec::new();
    let expected = format!("{sum}  {MANIFEST}\n");
    from.next(MANIFEST_SUM, expected.len() as u64, &mut line)?;
    if line != expected.as_bytes() {
        return Err(BackupError::Damaged("its list was altered".to_owned()));
    }
    let manifest = BackupManifest::parse(&list)?;
    // Nothing is compressed, so a manifest with more bytes than the file is damaged or lying.
    if manifest.total_bytes() > metadata.len() {
        return Err(BackupError::Damaged("it claims to hold more than it does".to_owned()));
    }
    // Space for the members, and again for the memory's history and files.
    let needed = manifest.total_bytes().saturating_mul(2);
    let free = disk::free_bytes(scratch).map_err(BackupError::io("checking the free space of", scratch.display()))?;
    if needed > free {
        return Err(BackupError::NoRoom { dir: parent_directory(scratch).to_owned(), needed, free });
    }
    for (at, member) in manifest.members.iter().enumerate() {
        let to = member_path(scratch, at);
        let mut to = create_private(&to).map_err(BackupError::io("writing", to.display()))?;
        let sum = from.next(&name_in_file(at, &member.path), member.bytes, &mut to)?;
        if sum != member.sha256 {
            return Err(BackupError::Damaged(format!("{:?} was altered", member.path)));
        }
        to.sync_all().map_err(BackupError::io("syncing", &member.path))?;
    }
    from.finish()?;
    Ok(manifest)
}

/// Builds a usable workspace from the members.
fn prepare_workspace(manifest: &BackupManifest, scratch: &Path, now: DateTime<Utc>) -> Result<SetAside, BackupError> {
    let workspace = workspace_path(scratch);
    make_folder(&workspace)?;
    let mut bundle = None;
    let mut edits = Vec::new();
    for (at, member) in manifest.members.iter().enumerate() {
        let from = member_path(scratch, at);
        let to = match MemberPlace::from_path(&member.path) {
            Some(MemberPlace::Database) => workspace.join(DATABASE),
            Some(MemberPlace::Top(name)) => workspace.join(name),
            Some(MemberPlace::In(folder, name)) => {
                let folder = workspace.join(folder);
                if !folder.is_dir() {
                    make_folder(&folder)?;
                }
                folder.join(name)
            }
            Some(MemberPlace::Bundle) => {
                let named = scratch.join(BUNDLE);
                fs::rename(&from, &named).map_err(BackupError::io("moving", BUNDLE))?;
                bundle = Some(named);
                continue;
            }
            Some(MemberPlace::Edit(path)) => {
                edits.push((from, path.to_owned(), member.is_executable));
                continue;
            }
            None => return Err(BackupError::Damaged(format!("{:?} isn't one of Reveille's files", member.path))),
        };
        fs::rename(&from, &to).map_err(BackupError::io("moving", &member.path))?;
    }
    if let Some(memory) = &manifest.memory {
        let damaged = |error: RepoError| match error {
            RepoError::Configuration(_) | RepoError::UnsafePath { .. } | RepoError::Git(_) => {
                BackupError::Damaged(error.to_string())
            }
            error => error.into(),
        };
        let repo =
            Repo::from_bundle(&workspace.join(&manifest.repo_name), bundle.as_deref(), memory).map_err(damaged)?;
        for (file, path, is_executable) in edits {
            let bytes = Some(fs::read(&file).map_err(BackupError::io("reading", &path))?);
            repo.restore_uncommitted(&UncommittedFile { path, bytes, is_executable }).map_err(damaged)?;
        }
        for path in &manifest.deleted {
            let file = UncommittedFile { path: path.clone(), bytes: None, is_executable: false };
            repo.restore_uncommitted(&file).map_err(damaged)?;
        }
    }
    let mut store = Store::open_foreign(&workspace.join(DATABASE)).map_err(|error| match error {
        StoreError::Newer { .. } => BackupError::TooNew,
        StoreError::Damaged(why) => BackupError::Damaged(why),
        error => error.into(),
    })?;
    Ok(store.settle_restored_store(now)?)
}

fn make_folder(path: &Path) -> Result<(), BackupError> {
    create_private_dir(path).map_err(BackupError::io("making", path.display()))
}
