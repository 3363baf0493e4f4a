//! A reader of our branch's last commit, for use while a wake may be writing. The reader takes no lock, never writes, and ignores the
//! work tree, which may be half written.

use std::path::Path;

use git2::{ObjectType, Repository, TreeWalkMode, TreeWalkResult};

use super::{Oid, RepoError, our_branch, tree};

/// The maximum number of files listed.
const MAX_LISTED: usize = 500;

/// The files of one commit.
pub struct Committed {
    git: Repository,
    tip: Oid,
}

/// A Markdown file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// Its path in the repository.
    pub path: String,
    /// Its size.
    pub bytes: usize,
}

impl Committed {
    /// Opens the last commit of the wakes' branch; `None` before the first commit.
    pub fn open(dir: &Path) -> Result<Option<Self>, RepoError> {
        let git = match Repository::open(dir) {
            Ok(git) => git,
            Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let reference = format!("refs/heads/{}", our_branch(&git)?);
        match git.refname_to_id(&reference) {
            Ok(tip) => Ok(Some(Self { git, tip })),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a text file; `None` if there is no such file.
    pub fn read(&self, path: &str) -> Result<Option<String>, RepoError> {
        let item = tree::find_item(&self.git, Some(self.tip), path)?;
        let bytes = tree::read_item(&self.git, item)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Returns the first line of a commit's message, on any branch.
    pub fn find_subject(&self, commit: &str) -> Option<String> {
        let commit = self.git.find_commit(Oid::from_str(commit).ok()?).ok()?;
        String::from_utf8_lossy(commit.message_bytes()).lines().next().map(str::to_owned)
    }

    /// Lists the Markdown files by path.
    pub fn list_markdown(&self) -> Result<Vec<CommittedFile>, RepoError> {
        let mut listed = Vec::new();
        let walked = self.git.find_commit(self.tip)?.tree()?.walk(TreeWalkMode::PreOrder, |dir, entry| {
            let name = String::from_utf8_lossy(entry.name_bytes());
            if name.starts_with('.') {
                return TreeWalkResult::Skip;
            }
            if entry.kind() == Some(ObjectType::Blob) && name.ends_with(".md") {
                let bytes = self.git.find_blob(entry.id()).map_or(0, |blob| blob.size());
                listed.push(CommittedFile { path: format!("{dir}{name}"), bytes });
            }
            if listed.len() < MAX_LISTED { TreeWalkResult::Ok } else { TreeWalkResult::Abort }
        });
        if listed.len() < MAX_LISTED {
            walked?;
        }
        Ok(listed)
    }
}
