//! Work that can't be published goes to a branch of its own: HEAD, the index and the work tree aren't touched.

use chrono::{DateTime, Utc};

use super::{
    Change, Oid, Repo, RepoError,
    tree::{self, FILE, Item},
    wake_signature,
};

/// How many branches of one name are told apart.
const MAX_PARKED: usize = 100;

impl Repo {
    /// Commits the changes on the branch `name`, on top of our branch's last commit; `name-2` and so on if it exists. Returns
    /// the branch and the commit. Works wherever HEAD is.
    pub fn park(
        &self,
        name: &str,
        changes: &[Change],
        message: &str,
        now: DateTime<Utc>,
    ) -> Result<(String, Oid), RepoError> {
        let parent = self.tip()?;
        let mut files = Vec::new();
        for Change { path, content, .. } in changes {
            let item = content
                .as_ref()
                .map(|text| Ok::<_, git2::Error>(Item { id: self.git.blob(text.as_bytes())?, mode: FILE }));
            files.push((path.as_str(), item.transpose()?));
        }
        let tree = tree::with_files(&self.git, parent, files)?;
        let parents: Vec<Oid> = parent.into_iter().collect();
        let commit = self.commit_object(&wake_signature(now)?, message, tree, &parents)?;
        for count in 1..=MAX_PARKED {
            let branch = if count == 1 { name.to_owned() } else { format!("{name}-{count}") };
            match self.git.reference(&format!("refs/heads/{branch}"), commit, false, "parked") {
                Err(error) if error.code() == git2::ErrorCode::Exists => {}
                made => {
                    made?;
                    return Ok((branch, commit));
                }
            }
        }
        Err(RepoError::Configuration(format!(
            "there are {MAX_PARKED} branches named {name}: delete those you don't need"
        )))
    }
}
