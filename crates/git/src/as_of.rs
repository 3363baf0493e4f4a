//! The memory as of a past time: the files of our branch's last commit by then.

use std::path::Path;

use chrono::{DateTime, Utc};
use git2::{ObjectType, Repository, TreeWalkMode, TreeWalkResult};

use super::{RepoError, our_branch};

/// Returns the Markdown files of our branch before a time, with their paths; `None` without a commit by then.
///
/// # Errors
/// The repository can't be read.
pub fn read_texts_before(dir: &Path, before: DateTime<Utc>) -> Result<Option<Vec<(String, String)>>, RepoError> {
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
    walk.push(tip)?;
    // Only first parents count: commits merged later, however old, weren't on our branch yet.
    walk.simplify_first_parent()?;
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

#[cfg(test)]
mod tests {
    use git2::{Oid, Signature, Time};

    use super::*;

    #[test]
    fn a_commit_merged_later_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let git = Repository::init(dir.path()).unwrap();
        git.config().unwrap().set_str("reveille.branch", "main").unwrap();
        let commit = |branch: Option<&str>, day: i64, text: &str, parents: &[Oid]| {
            let mut tree = git.treebuilder(None).unwrap();
            tree.insert("a.md", git.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
            let tree = git.find_tree(tree.write().unwrap()).unwrap();
            let ann = Signature::new("Ann", "ann@example.org", &Time::new(day * 86_400, 0)).unwrap();
            let parents: Vec<_> = parents.iter().map(|id| git.find_commit(*id).unwrap()).collect();
            let parents: Vec<_> = parents.iter().collect();
            git.commit(branch, &ann, &ann, "x", &tree, &parents).unwrap()
        };
        let ours = Some("refs/heads/main");
        let first = commit(ours, 1, "ours", &[]);
        let elsewhere = commit(None, 3, "elsewhere", &[first]);
        let second = commit(ours, 2, "ours, more", &[first]);
        commit(ours, 5, "merged", &[second, elsewhere]);
        let texts =
            |day: i64| read_texts_before(dir.path(), DateTime::from_timestamp(day * 86_400, 0).unwrap()).unwrap();
        let text = |day| texts(day).map(|texts| texts[0].1.clone());
        assert_eq!(text(4).as_deref(), Some("ours, more"));
        assert_eq!((text(6).as_deref(), text(2).as_deref(), text(1)), (Some("merged"), Some("ours"), None));
    }
}
