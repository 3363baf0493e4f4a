//! Handles two kinds of a person's git settings: line endings that differ between the work tree and the repository (`core.autocrlf`, the
//! attributes `text` and `eol`), and index formats that libgit2 can't read.

use std::{borrow::Cow, io::Write as _, path::Path};

use git2::Index;

use reveille_base::process;

use super::{Repo, RepoError, remote};

impl Repo {
    /// Returns a file's bytes as git stores them, with line endings converted by the person's settings.
    pub(super) fn to_stored_bytes<'a>(&self, path: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, RepoError> {
        if !bytes.contains(&b'\r') {
            return Ok(Cow::Borrowed(bytes));
        }
        let convert = || {
            let mut writer = self.git.blob_writer(Some(Path::new(path)))?;
            writer.write_all(bytes).map_err(|error| git2::Error::from_str(&error.to_string()))?;
            let id = writer.commit()?;
            Ok::<_, git2::Error>(self.git.find_blob(id)?.content().to_vec())
        };
        // `core.safecrlf` may refuse an irreversible conversion. Then git stores the bytes unchanged.
        Ok(convert().map_or(Cow::Borrowed(bytes), Cow::Owned))
    }

    /// Makes git rewrite the person's index in a format that libgit2 reads (neither split nor sparse). Staged changes stay staged. If the
    /// person's git is set to split the index, it splits it again by itself.
    pub(super) fn make_index_readable(&self) -> Result<(), RepoError> {
        const PLAIN: [&str; 9] = [
            "-c",
            "core.splitIndex=false",
            "-c",
            "index.sparse=false",
            "-c",
            "advice.sparseIndexExpanded=false",
            "update-index",
            "--no-split-index",
            "--force-write-index",
        ];
        if self.is_index_readable() {
            return Ok(());
        }
        let index_lock = self.git.path().join("index.lock");
        let output = process::run(&self.remote().git_command().args(PLAIN));
        if self.is_index_readable() {
            return Ok(());
        }
        if index_lock.exists() {
            return Err(RepoError::Locked { path: index_lock });
        }
        let why = match output {
            Ok(output) => remote::classify_failure(&output).to_string(),
            Err(error) => error.to_string(),
        };
        Err(RepoError::Configuration(format!(
            "the index in {} has a format that can't be read here ({why}). Nothing was changed. Run: git config core.splitIndex false; git \
             config index.sparse false; git update-index --no-split-index --force-write-index",
            self.root.display()
        )))
    }

    /// Returns `true` unless the index has an unknown mandatory extension. Other faults show only when the index is used.
    pub(super) fn is_index_readable(&self) -> bool {
        match Index::open(&self.git.path().join("index")) {
            Err(error) => !error.message().contains("mandatory extension"),
            Ok(_) => true,
        }
    }
}

/// Converts a stored text to the line endings of the file on disk.
pub(super) fn to_disk_bytes(stored: Vec<u8>, on_disk: &[u8]) -> Vec<u8> {
    let has_crlf = |bytes: &[u8]| bytes.windows(2).any(|pair| pair == b"\r\n");
    if !has_crlf(on_disk) || stored.contains(&b'\r') || stored.contains(&0) {
        return stored;
    }
    let mut converted = Vec::with_capacity(stored.len() + stored.len() / 16);
    for byte in stored {
        if byte == b'\n' {
            converted.push(b'\r');
        }
        converted.push(byte);
    }
    converted
}
