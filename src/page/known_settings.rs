//! The settings whose secrets the page masks: those of its start, and those that were saved meanwhile.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use reveille_config::{Config, GivenSettings, SettingChanges, VARIABLES, file_setting};

/// Maximum settings whose secrets are masked, so that a page that is served for months stays small.
const MAX_KNOWN: usize = 8;

/// The settings that were in force while the page was served.
pub(super) struct KnownSettings {
    read: Mutex<ReadSettings>,
}

struct ReadSettings {
    /// Those of the start first, those of now last.
    configs: Vec<Config>,
    files: Vec<FileState>,
}

/// A file that settings come from, as it was when it was read.
struct FileState {
    path: PathBuf,
    state: Option<[i64; 4]>,
}

impl FileState {
    fn read(path: PathBuf) -> Self {
        Self { state: Self::look(&path), path }
    }

    fn look(path: &Path) -> Option<[i64; 4]> {
        let found = std::fs::metadata(path).ok()?;
        Some([found.mtime(), found.mtime_nsec(), found.ino().cast_signed(), found.size().cast_signed()])
    }
}

impl KnownSettings {
    /// Begins with the settings of the page's start.
    pub(super) fn new(config: Config) -> Self {
        Self { read: Mutex::new(ReadSettings { configs: vec![config], files: Vec::new() }) }
    }

    /// Lists the settings of the start, of now and some in between. The files are read again only if one has changed.
    pub(super) fn list(&self) -> Vec<Config> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |file: &FileState| FileState::look(&file.path) == file.state;
        if read.files.is_empty() || !read.files.iter().all(is_same) {
            read.renew();
        }
        read.configs.clone()
    }
}

impl ReadSettings {
    fn renew(&mut self) {
        let named = self.configs.first().and_then(|config| config.named_env_file.clone());
        // Looked at before they are read, so that a change in between is seen the next time.
        let before = list_files(&GivenSettings::gather(named.as_deref()));
        let given = GivenSettings::gather(named.as_deref());
        self.files = before;
        let Some(config) = given.with_valid_settings(&SettingChanges::new()).0 else { return };
        self.configs.push(config);
        if self.configs.len() > MAX_KNOWN {
            self.configs.remove(1);
        }
    }
}

fn list_files(given: &GivenSettings) -> Vec<FileState> {
    let of_secrets = VARIABLES.iter().filter_map(|name| given.get(file_setting(name)?));
    let of_secrets = of_secrets.map(|(path, _)| PathBuf::from(path));
    given.file_path().into_iter().chain(of_secrets).map(FileState::read).collect()
}
