//! Picks the branch that wakes use, here and at a remote: the remote's default branch. The default of a remote made by hand is often a
//! branch that was never pushed.

use git2::Repository;

use reveille_memory::outside::{Origin, Outside};

use super::{DEFAULT_BRANCH, REMOTE, RemoteError, RepoError, join};

/// The git arguments that list branches for [`pick_branch`]. The remote's address or name and [`LISTED`] follow them.
pub(super) const LIST: [&str; 4] = ["ls-remote", "--quiet", "--symref", "--"];
/// The listed references of a remote.
pub(super) const LISTED: [&str; 2] = ["HEAD", "refs/heads/*"];
/// Branches taken for the default if the remote names none.
const USUAL: [&str; 2] = [DEFAULT_BRANCH, "master"];
/// The maximum number of branches that an error names.
const MAX_NAMED: usize = 5;

/// Picks the branch to work on from the list of `git ls-remote`; `None` if the remote has no branch.
///
/// # Errors
/// Fails if the remote has several branches but no default: a person must set one.
pub(super) fn pick_branch(listed: &str) -> Result<Option<String>, RemoteError> {
    let lines = || listed.lines().filter_map(|line| line.split_once('\t'));
    let branches: Vec<(&str, &str)> =
        lines().filter_map(|(id, name)| Some((id, name.strip_prefix("refs/heads/")?))).collect();
    let named = lines().find_map(|(to, name)| to.strip_prefix("ref: refs/heads/").filter(|_| name == "HEAD"));
    if let Some(named) = named.filter(|named| branches.iter().any(|(_, branch)| branch == named)) {
        return Ok(Some(named.to_owned()));
    }
    // Old servers give HEAD's commit without its branch. HEAD may also be detached.
    let head = lines().find(|(id, name)| *name == "HEAD" && !id.starts_with("ref: ")).map(|(id, _)| id);
    let at_head: Vec<&str> = branches.iter().filter(|(id, _)| Some(*id) == head).map(|(_, branch)| *branch).collect();
    let all: Vec<&str> = branches.iter().map(|(_, branch)| *branch).collect();
    let candidates = if at_head.is_empty() { &all } else { &at_head };
    let usual = USUAL.iter().find(|usual| candidates.contains(usual));
    match (candidates.as_slice(), usual) {
        ([], _) => Ok(None),
        ([only], _) => Ok(Some((*only).to_owned())),
        (_, Some(usual)) => Ok(Some((*usual).to_owned())),
        (many, None) => {
            let names = many.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
            let why = format!(
                "its default branch isn't among its branches ({names}): set the default branch there, with `git symbolic-ref \
                 HEAD refs/heads/…` in its directory or in the settings of its host"
            );
            Err(RemoteError::Refused { why: Outside::new(Origin::Remote, &why) })
        }
    }
}

/// Returns our branch: the one stored when the repository was created or adopted, else the branch of the remote's HEAD, else `main`, else
/// the branch of HEAD. A rename to the remote's branch that was interrupted comes first.
pub(super) fn our_branch(git: &Repository) -> Result<String, RepoError> {
    let config = git.config()?;
    let at_head = |branch: &String| {
        git.find_reference("HEAD")
            .is_ok_and(|head| head.symbolic_target().ok().flatten() == Some(&format!("refs/heads/{branch}")))
    };
    if let Some(taken) = config.get_string(join::TAKING).ok().filter(at_head) {
        return Ok(taken);
    }
    if let Ok(stored) = config.get_string("reveille.branch") {
        return Ok(stored);
    }
    if let Ok(head) = git.find_reference(&format!("refs/remotes/{REMOTE}/HEAD"))
        && let Some(branch) =
            head.symbolic_target()?.and_then(|target| target.strip_prefix(&format!("refs/remotes/{REMOTE}/")))
    {
        return Ok(branch.to_owned());
    }
    if git.find_branch(DEFAULT_BRANCH, git2::BranchType::Local).is_ok() {
        return Ok(DEFAULT_BRANCH.to_owned());
    }
    let head = git.find_reference("HEAD")?;
    let here = head.symbolic_target()?.and_then(|target| target.strip_prefix("refs/heads/"));
    Ok(here.unwrap_or(DEFAULT_BRANCH).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new report is one line: the listing and the branch.
    #[test]
    fn the_default_branch_is_picked_or_else_the_only_plausible_one() {
        for (listed, branch) in [
            ("", Some(None)),
            ("ref: refs/heads/main\tHEAD\n", Some(None)),
            ("ref: refs/heads/dev\tHEAD\n1\tHEAD\n1\trefs/heads/dev\n1\trefs/heads/main\n", Some(Some("dev"))),
            ("1\trefs/heads/trunk\n", Some(Some("trunk"))),
            ("ref: refs/heads/gone\tHEAD\n1\trefs/heads/trunk\n", Some(Some("trunk"))),
            ("1\trefs/heads/main\n2\trefs/heads/trunk\n", Some(Some("main"))),
            ("1\trefs/heads/a/b\n2\trefs/heads/master\n", Some(Some("master"))),
            ("2\tHEAD\n1\trefs/heads/main\n2\trefs/heads/trunk\n", Some(Some("trunk"))),
            ("2\tHEAD\n2\trefs/heads/main\n2\trefs/heads/trunk\n", Some(Some("main"))),
            ("1\trefs/heads/a\n2\trefs/heads/b\n", None),
        ] {
            let picked = pick_branch(listed).ok();
            assert_eq!(picked.as_ref().map(Option::as_deref), branch, "{listed}");
        }
        let refused = pick_branch("1\trefs/heads/a\n2\trefs/heads/b\n").unwrap_err().to_string();
        assert!(refused.contains("a, b") && refused.contains("set the default branch"), "{refused}");
    }
}
