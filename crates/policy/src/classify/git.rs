//! `git` commands that destroy uncommitted work or history.

use super::destroy::{flag, long};

/// Returns the subcommand with its arguments, after any global options.
fn subcommand<'a>(arguments: &[&'a str]) -> Option<(&'a str, Vec<&'a str>)> {
    let mut words = arguments.iter().copied();
    loop {
        match words.next()? {
            "-c" | "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" | "--config-env" => {
                words.next();
            }
            word if word.starts_with('-') => {}
            word => return Some((word, words.collect())),
        }
    }
}

fn is_forced(rest: &[&str]) -> bool {
    flag(rest, "f") || long(rest, "--force")
}

/// Describes the damage of a git command at a remote; `None` if it does none.
pub(super) fn destroys_remotely(arguments: &[&str]) -> Option<&'static str> {
    let (name, rest) = subcommand(arguments)?;
    let is_forcing = |word: &&str| {
        ["--mirror", "--delete", "--prune"].contains(word)
            || word.starts_with(['+', ':'])
            || word.starts_with("--force")
    };
    let destroys = name == "push" && (is_forced(&rest) || flag(&rest, "d") || rest.iter().any(is_forcing));
    destroys.then_some("rewrites or deletes what others may rely on")
}

/// Describes the damage of a git command in its repository or work tree; `None` if it does none.
pub(super) fn destroys_files(arguments: &[&str]) -> Option<&'static str> {
    let (name, rest) = subcommand(arguments)?;
    let has = |words: &[&str]| rest.iter().any(|word| words.contains(word));
    let is_forced = || is_forced(&rest);
    match name {
        "reset" if ["--hard", "--merge", "--keep"].iter().any(|mode| long(&rest, mode)) => {
            Some("throws away what isn't committed")
        }
        "clean" if !flag(&rest, "n") && !long(&rest, "--dry-run") => {
            Some("deletes files that aren't in the repository")
        }
        "checkout" if is_forced() || has(&["--", ".", "--ours", "--theirs"]) => {
            Some("throws away what isn't committed")
        }
        "switch" if is_forced() || long(&rest, "--discard-changes") => Some("throws away what isn't committed"),
        "restore" if !long(&rest, "--staged") || long(&rest, "--worktree") || flag(&rest, "W") => {
            Some("throws away what isn't committed")
        }
        "branch" if flag(&rest, "D") || long(&rest, "--delete") && is_forced() => {
            Some("deletes a branch that isn't merged")
        }
        "stash" if has(&["drop", "clear"]) => Some("throws away what was put aside"),
        "reflog" if has(&["expire", "delete"]) => Some("deletes the way back"),
        "gc" if rest.iter().any(|word| word.starts_with("--prune")) => Some("deletes what nothing points at"),
        "prune" | "filter-branch" | "filter-repo" | "replace" => Some("rewrites or deletes history"),
        "update-ref" if flag(&rest, "d") || has(&["--stdin"]) => Some("deletes a reference"),
        "worktree" if has(&["remove"]) && is_forced() => Some("deletes a work tree"),
        "submodule" if has(&["deinit"]) && is_forced() => Some("deletes a submodule's files"),
        "rm" if flag(&rest, "r") || is_forced() => Some("deletes files"),
        "remote" if has(&["prune", "rm", "remove"]) => Some("deletes what is known of a remote"),
        _ => None,
    }
}
