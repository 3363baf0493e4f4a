//! Creates a backup while a wake and the bot run.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::format_rfc3339,
    file::{create_private, parent_directory},
};
use reveille_config::{Config, GivenSettings, VARIABLES};
use reveille_git::{MadeBundle, Repo, RepoError, Uncommitted};
use reveille_store::Store;

use super::{
    BackupError, BackupManifest, BackupMember, LeftOut, MANIFEST, MANIFEST_SUM, SCRATCH, Scratch,
    container::{MEMBER_BYTES_MAX, Packer, measure_stream},
    manifest::{BUNDLE, DATABASE, EDITS, FOLDERS, FORMAT, MEDIA, SETTINGS, TOP, is_plain, name_in_file},
    restore, sync_folder,
};

/// The name of an incomplete backup.
const PARTIAL: &str = "backup.tar";
/// Name ending of a file that is still being fetched.
pub(super) const FETCHED_PART: &str = ".part";
/// Number of attempts, if files change while they are copied.
const MAX_ATTEMPTS: usize = 3;
/// Parts of a workspace that a person may miss, with the reasons why they are left out.
const LEFT_OUT_REASONS: [(&str, &str); 4] = [
    ("copies", "they undo changes in your folders, which only works on this machine"),
    ("scratch", "it holds only temporary files"),
    ("logs", "they are about this machine"),
    ("models", "they can be downloaded again"),
];
/// Parts that need no mention: they are recreated, or belong to this machine and moment.
const RECREATED: [&str; 15] = [
    SETTINGS,
    ".ballast",
    "snapshots",
    ".live",
    ".wake-lock",
    ".bot-lock",
    ".chat-lock",
    ".stay-lock",
    ".voice-lock",
    ".last-look",
    ".health-told",
    "mcp-token",
    "page",
    "claude-code",
    "mcp",
];
/// Name prefixes of further such parts: databases with their logs, and plans of wakes.
const RECREATED_PREFIXES: [&str; 3] = ["index.db", "messages.db", "plan-2"];

/// A created backup, verified by restoring it once.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct BackupMade {
    /// The file.
    pub file: PathBuf,
    /// The size.
    pub bytes: u64,
    /// The contents.
    pub manifest: BackupManifest,
}

/// Tells if a backup holds the settings, with all keys and tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretsInBackup {
    /// The settings are in it.
    Included,
    /// Only the names of the settings are in it.
    LeftOut,
}

/// A member and the file that holds its bytes.
struct Source {
    member: BackupMember,
    file: PathBuf,
}

/// Writes everything that can't be recreated into `file`, which must not exist. The file gets its name after a trial restore.
///
/// # Errors
/// If the backup can't be created; then no such file is left.
pub fn create(
    config: &Config,
    store: &Store,
    file: &Path,
    secrets: SecretsInBackup,
    now: DateTime<Utc>,
) -> Result<BackupMade, BackupError> {
    let file = std::path::absolute(file).map_err(BackupError::io("finding", file.display()))?;
    if file.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(file));
    }
    let scratch = Scratch::create_in(parent_directory(&file))?;
    let partial = scratch.path().join(PARTIAL);
    let manifest = gather_and_write(config, store, &partial, secrets, now)?;
    restore::verify(&partial, now)?;
    // Unlike a rename, a hard link never replaces another file.
    fs::hard_link(&partial, &file).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => BackupError::Exists(file.clone()),
        _ => BackupError::io("naming", file.display())(error),
    })?;
    sync_folder(parent_directory(&file))?;
    let bytes = fs::metadata(&file).map_err(BackupError::io("looking at", file.display()))?.len();
    Ok(BackupMade { file, bytes, manifest })
}

fn gather_and_write(
    config: &Config,
    store: &Store,
    partial: &Path,
    secrets: SecretsInBackup,
    now: DateTime<Utc>,
) -> Result<BackupManifest, BackupError> {
    let mut to = create_private(partial).map_err(BackupError::io("making", partial.display()))?;
    let scratch = Scratch::create_in(parent_directory(partial))?;
    let mut attempts = 0;
    let manifest = loop {
        attempts += 1;
        to.set_len(0).map_err(BackupError::io("writing", partial.display()))?;
        std::io::Seek::rewind(&mut to).map_err(BackupError::io("writing", partial.display()))?;
        let (manifest, sources) = gather_sources(config, store, scratch.path(), secrets, now)?;
        match write_backup(&to, &manifest, &sources, now) {
            Err(BackupError::Changing(_)) if attempts < MAX_ATTEMPTS => {}
            written => break written.map(|()| manifest)?,
        }
    };
    to.sync_all().map_err(BackupError::io("syncing", partial.display()))?;
    Ok(manifest)
}

/// Gathers the database first, then the memory, then files. A wake may commit between these moments, and the older
/// database doesn't know that commit yet. This looks like a crash right after the commit, which the next wake settles
/// by the commit's trailer. In the opposite order the database would claim a commit that the backup lacks. Likewise a
/// file exists before the database mentions it.
fn gather_sources(
    config: &Config,
    store: &Store,
    scratch: &Path,
    secrets: SecretsInBackup,
    now: DateTime<Utc>,
) -> Result<(BackupManifest, Vec<Source>), BackupError> {
    let mut sources = Vec::new();
    let database = scratch.join(DATABASE);
    fs::remove_file(&database).ok();
    store.save_copy(&database)?;
    sources.extend(find_source(DATABASE, database)?);
    let mut left_out = Vec::new();
    let mut deleted = Vec::new();
    let memory = match Repo::open(&config.repo_dir()) {
        Ok(repo) => {
            let bundle = scratch.join(BUNDLE);
            let MadeBundle { memory, uncommitted, has_history } =
                repo.bundle(&bundle).map_err(|error| match error {
                    RepoError::Moved => BackupError::MemoryChanging,
                    error => error.into(),
                })?;
            if has_history {
                sources.extend(find_source(BUNDLE, bundle)?);
            }
            add_uncommitted(uncommitted, scratch, &mut sources, &mut deleted, &mut left_out)?;
            Some(memory)
        }
        Err(RepoError::NotARepository { .. }) if !config.repo_dir().exists() => None,
        Err(error) => return Err(error.into()),
    };
    for name in TOP.into_iter().filter(|name| *name != SETTINGS) {
        sources.extend(find_source(name, config.workspace_dir.join(name))?);
    }
    let mut settings = Vec::new();
    match &config.env_file {
        Some(file) if secrets == SecretsInBackup::Included => sources.extend(find_source(SETTINGS, file.clone())?),
        Some(_) | None => {
            let given = GivenSettings::gather(config.env_file.as_deref());
            // A restore chooses the workspace itself.
            let is_set = |name: &&&str| given.get(name).is_some() && **name != "WORKSPACE_DIR";
            settings.extend(VARIABLES.iter().filter(is_set).map(|name| (*name).to_owned()));
        }
    }
    for folder in FOLDERS {
        let home = if MEDIA.contains(&folder) { &config.media_dir } else { &config.workspace_dir };
        for FolderEntry { name, path, is_file } in list_entries(&home.join(folder))? {
            if is_file && is_plain(&name) && !name.ends_with(FETCHED_PART) {
                sources.extend(find_source(&format!("{folder}/{name}"), path)?);
            }
        }
    }
    left_out.extend(list_left_out(config)?);
    let manifest = BackupManifest {
        format: FORMAT,
        created_at: format_rfc3339(now),
        program: format!("reveille {}", env!("CARGO_PKG_VERSION")),
        schema: Store::known_schema(),
        holds: store.size()?,
        repo_name: config.repo_name.clone(),
        memory,
        members: sources.iter().map(|source| source.member.clone()).collect(),
        deleted,
        settings,
        left_out,
    };
    Ok((manifest, sources))
}

fn add_uncommitted(
    uncommitted: Uncommitted,
    scratch: &Path,
    sources: &mut Vec<Source>,
    deleted: &mut Vec<String>,
    left_out: &mut Vec<LeftOut>,
) -> Result<(), BackupError> {
    for (at, file) in uncommitted.files.into_iter().enumerate() {
        let Some(bytes) = file.bytes else {
            deleted.push(file.path);
            continue;
        };
        let copy = scratch.join(format!("edit-{at}"));
        fs::write(&copy, bytes).map_err(BackupError::io("copying", &file.path))?;
        let found = find_source(&format!("{EDITS}{}", file.path), copy)?;
        sources.extend(found.map(|mut source| {
            source.member.is_executable = file.is_executable;
            source
        }));
    }
    left_out.extend(uncommitted.left_out.into_iter().map(|(what, why)| LeftOut { what, why }));
    Ok(())
}

/// Lists the rest of the workspace, so that no file of the person is left out silently.
fn list_left_out(config: &Config) -> Result<Vec<LeftOut>, BackupError> {
    let mut rest = Vec::new();
    for FolderEntry { name, .. } in list_entries(&config.workspace_dir)? {
        let is_taken = TOP.contains(&name.as_str())
            || FOLDERS.contains(&name.as_str())
            || name == config.repo_name
            || name.starts_with(SCRATCH);
        let is_older_database = name.starts_with("messages.db.");
        let is_recreated = RECREATED.contains(&name.as_str())
            || !is_older_database && RECREATED_PREFIXES.iter().any(|begin| name.starts_with(begin));
        if is_taken || is_recreated {
            continue;
        }
        let why = LEFT_OUT_REASONS.iter().find(|(left_out_name, _)| *left_out_name == name).map(|(_, why)| *why);
        let why =
            why.unwrap_or(if is_older_database { "it is an older database" } else { "it isn't Reveille's" }).to_owned();
        rest.push(LeftOut { what: name, why });
    }
    Ok(rest)
}

/// An entry of a folder.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FolderEntry {
    name: String,
    path: PathBuf,
    is_file: bool,
}

/// Lists the entries of a folder, sorted by name. Empty if the folder is missing.
fn list_entries(dir: &Path) -> Result<Vec<FolderEntry>, BackupError> {
    let read = match fs::read_dir(dir) {
        Ok(read) => read,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(BackupError::io("reading", dir.display())(error)),
    };
    let mut found: Vec<_> = read
        .flatten()
        .map(|entry| {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            FolderEntry { name: entry.file_name().to_string_lossy().into_owned(), path: entry.path(), is_file }
        })
        .collect();
    found.sort();
    Ok(found)
}

/// Describes a file as a member. `None` if it doesn't exist.
fn find_source(path: &str, file: PathBuf) -> Result<Option<Source>, BackupError> {
    let mut open = match fs::File::open(&file) {
        Ok(open) => open,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(BackupError::io("reading", file.display())(error)),
    };
    let (bytes, sha256) = measure_stream(&mut open).map_err(BackupError::io("reading", file.display()))?;
    if bytes > MEMBER_BYTES_MAX {
        return Err(BackupError::TooLarge(path.to_owned()));
    }
    let member = BackupMember { path: path.to_owned(), bytes, sha256, is_executable: false };
    Ok(Some(Source { member, file }))
}

fn write_backup(
    to: &fs::File,
    manifest: &BackupManifest,
    sources: &[Source],
    now: DateTime<Utc>,
) -> Result<(), BackupError> {
    let io = |error| BackupError::io("writing", "the backup")(error);
    let list = serde_json::to_vec_pretty(manifest).map_err(|error| io(error.into()))?;
    let time = u64::try_from(now.timestamp()).unwrap_or(0);
    let mut packer = Packer::new(std::io::BufWriter::new(to), time);
    let sum = packer.add(MANIFEST, list.len() as u64, &mut list.as_slice()).map_err(io)?;
    let line = format!("{sum}  {MANIFEST}\n");
    packer.add(MANIFEST_SUM, line.len() as u64, &mut line.as_bytes()).map_err(io)?;
    for (at, Source { member, file }) in sources.iter().enumerate() {
        let changing = || BackupError::Changing(member.path.clone());
        let mut from = fs::File::open(file).map_err(|_| changing())?;
        let name = name_in_file(at, &member.path);
        let sum = packer.add(&name, member.bytes, &mut from).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => changing(),
            _ => io(error),
        })?;
        // A file that has grown has changed too.
        if sum != member.sha256 || from.read(&mut [0]).map_err(io)? > 0 {
            return Err(changing());
        }
    }
    packer.finish().and_then(|mut to| to.flush()).map_err(io)
}
