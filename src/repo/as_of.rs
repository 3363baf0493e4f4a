//! What the memory held at a time that is over: the files of the last commit from before.

use std::path::Path;

use chrono::{DateTime, Utc};
use git2::{ObjectType, Repository, Sort, TreeWalkMode, TreeWalkResult};

use super::{RepoError, our_branch};

/// The Markdown files below a folder of the memory, as the last commit before a time has them, by their paths; none if there was no
/// commit by then.
///
/// # Errors
/// The repository can't be read.
pub fn texts_as_of(dir: &Path, before: DateTime<Utc>) -> Result<Option<Vec<(String, String)>>, RepoError> {
    let git = match Repository::open(dir) {
        Ok(git) => git,
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let tip = match git.refname_to_id(&format!("refs/heads/{}", our_branch(&git)?)) {
        Ok(tip) => tip,
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut walk = git.revwalk()?;
    walk.set_sorting(Sort::TIME)?;
    walk.push(tip)?;
    for id in walk {
        let commit = git.find_commit(id?)?;
        if commit.time().seconds() >= before.timestamp() {
            continue;
        }
        let mut texts = Vec::new();
        let walked = commit.tree()?.walk(TreeWalkMode::PreOrder, |dir, entry| {
            let name = String::from_utf8_lossy(entry.name_bytes());
            if name.starts_with('.') {
                return TreeWalkResult::Skip;
            }
            if entry.kind() == Some(ObjectType::Blob)
                && name.ends_with(".md")
                && let Ok(blob) = git.find_blob(entry.id())
            {
                texts.push((format!("{dir}{name}"), String::from_utf8_lossy(blob.content()).into_owned()));
            }
            TreeWalkResult::Ok
        });
        walked?;
        return Ok(Some(texts));
    }
    Ok(None)
}
