//! `git` commands that destroy uncommitted work or history.

use super::destroy::{has_flag, has_long_option};

/// Returns the subcommand with its arguments, after any global options.
fn find_subcommand<'a>(arguments: &[&'a str]) -> Option<(&'a str, Vec<&'a str>)> {
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
    has_flag(rest, "f") || has_long_option(rest, "--force")
}

/// Describes the damage of a git command at a remote; `None` if it does none.
pub(super) fn destroys_remotely(arguments: &[&str]) -> Option<&'static str> {
    let (name, rest) = find_subcommand(arguments)?;
    let is_destructive_option = |word: &&str| {
        ["--mirror", "--delete", "--prune"].contains(word)
            || word.starts_with(['+', ':'])
            || word.starts_with("--force")
    };
    let destroys =
        name == "push" && (is_forced(&rest) || has_flag(&rest, "d") || rest.iter().any(is_destructive_option));
    destroys.then_some("rewrites or deletes what others may rely on")
}

/// Describes the damage of a git command in its repository or work tree; `None` if it does none.
pub(super) fn describe_file_damage(arguments: &[&str]) -> Option<&'static str> {
    let (name, rest) = find_subcommand(arguments)?;
    let has = |words: &[&str]| rest.iter().any(|word| words.contains(word));
    let is_forced = || is_forced(&rest);
    match name {
        "reset" if ["--hard", "--merge", "--keep"].iter().any(|mode| has_long_option(&rest, mode)) => {
            Some("discards uncommitted changes")
        }
        "clean" if !has_flag(&rest, "n") && !has_long_option(&rest, "--dry-run") => {
            Some("deletes files that aren't in the repository")
        }
        "checkout" if is_forced() || has(&["--", ".", "--ours", "--theirs"]) => Some("discards uncommitted changes"),
        "switch" if is_forced() || has_long_option(&rest, "--discard-changes") => Some("discards uncommitted changes"),
        "restore"
            if !has_long_option(&rest, "--staged") || has_long_option(&rest, "--worktree") || has_flag(&rest, "W") =>
        {
            Some("discards uncommitted changes")
        }
        "branch" if has_flag(&rest, "D") || has_long_option(&rest, "--delete") && is_forced() => {
            Some("deletes a branch that isn't merged")
        }
        "stash" if has(&["drop", "clear"]) => Some("discards stashed changes"),
        "reflog" if has(&["expire", "delete"]) => Some("deletes the reflog, the way back to earlier commits"),
        "gc" if rest.iter().any(|word| word.starts_with("--prune")) => Some("deletes commits that nothing refers to"),
        "prune" | "filter-branch" | "filter-repo" | "replace" => Some("rewrites or deletes history"),
        "update-ref" if has_flag(&rest, "d") || has(&["--stdin"]) => Some("deletes a reference"),
        "worktree" if has(&["remove"]) && is_forced() => Some("deletes a work tree"),
        "submodule" if has(&["deinit"]) && is_forced() => Some("deletes a submodule's files"),
        "rm" if has_flag(&rest, "r") || is_forced() => Some("deletes files"),
        "remote" if has(&["prune", "rm", "remove"]) => Some("deletes a remote or its branches here"),
        _ => None,
    }
}
