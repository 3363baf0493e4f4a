//! `git`: what looks, what adds, and what destroys. Options before the subcommand can set configuration, and configuration can
//! run programs, so but for a few they make a command dangerous.

use super::{
    Rated, Risk,
    destroy::{flag, long},
    options::{Operands, Options},
};

const fn options(flags: &'static str, valued: &'static str, longs: &'static str, operands: Operands) -> Options {
    Options { flags, valued, longs, operands }
}

/// Shared by what shows commits and differences. Not `--output`, `--ext-diff`, `--textconv`, `--show-signature`.
const SHOWING: &str = "oneline graph decorate all branches tags remotes stat shortstat numstat name-only name-status patch no-patch raw cached staged summary author= committer= grep= since= until= after= before= max-count= skip= reverse follow merges no-merges first-parent pretty= format= abbrev-commit abbrev date= color no-color word-diff ignore-space-change ignore-all-space ignore-blank-lines diff-filter= unified= minimal patience histogram find-renames no-renames relative-date topo-order date-order no-pager quiet exit-code check full-history simplify-by-decoration left-right cherry-pick merge-base function-context no-ext-diff no-textconv source clear-decorations no-decorate dirstat compact-summary pickaxe-all pickaxe-regex";

/// Subcommands that look.
const LOOKING: &[(&[&str], Options)] = &[
    (
        &["status"],
        options(
            "sbuvzMno",
            "",
            "short branch porcelain long verbose untracked-files ignored ahead-behind no-ahead-behind show-stash column renames no-renames ignore-submodules",
            Operands::Any,
        ),
    ),
    (&["log", "show", "whatchanged"], options("pusigEFPz0123456789wbMCRrtcm", "nSGLU", SHOWING, Operands::Any)),
    (&["diff"], options("puszwbMCRa", "USGO", SHOWING, Operands::Any)),
    (
        &["blame", "annotate"],
        options(
            "ltfnseCMwbc",
            "L",
            "show-email show-name show-number date= porcelain line-porcelain root ignore-rev=",
            Operands::Any,
        ),
    ),
    (&["shortlog"], options("nsec", "", "numbered summary email all since= until= no-merges group=", Operands::Any)),
    (
        &["rev-parse"],
        options(
            "q",
            "",
            "show-toplevel abbrev-ref short verify is-inside-work-tree git-dir show-prefix show-cdup quiet symbolic symbolic-full-name all branches tags remotes is-bare-repository absolute-git-dir git-common-dir show-superproject-working-tree",
            Operands::Any,
        ),
    ),
    (
        &["rev-list"],
        options(
            "n0123456789",
            "n",
            "count all branches tags remotes max-count= since= until= author= reverse no-merges merges first-parent left-right objects oneline abbrev-commit",
            Operands::Any,
        ),
    ),
    (
        &["describe"],
        options("", "", "tags all always dirty long abbrev contains exact-match match= first-parent", Operands::Any),
    ),
    (
        &["ls-files"],
        options(
            "cdmostukzv",
            "x",
            "cached deleted modified others stage unmerged killed exclude-standard exclude= error-unmatch full-name directory",
            Operands::Any,
        ),
    ),
    (&["ls-tree"], options("rdtlz", "", "name-only name-status long full-name full-tree abbrev", Operands::Any)),
    (&["cat-file"], options("pte", "", "", Operands::Any)),
    (&["merge-base"], options("a", "", "all is-ancestor fork-point octopus independent", Operands::Any)),
    (
        &["name-rev", "count-objects", "cherry", "show-branch", "check-ignore", "diff-tree", "show-ref", "var"],
        options("vHr", "", "all tags heads verify name-only stat no-commit-id", Operands::Names),
    ),
    (
        &["grep"],
        options(
            "niwvlLcEFGPhHpWaI",
            "eABCm",
            "line-number ignore-case word-regexp files-with-matches files-without-match count extended-regexp fixed-strings perl-regexp show-function function-context cached untracked recursive heading break all-match and or not max-depth= color column",
            Operands::Any,
        ),
    ),
    (&["version"], options("", "", "", Operands::AtMost(0))),
];

/// Subcommands of which one form looks: the form's first words, if there must be some, and its options.
const LISTING: &[(&str, &[&str], Options)] = &[
    (
        "branch",
        &[],
        options(
            "arvl",
            "",
            "all remotes verbose list show-current merged no-merged contains= sort= format= column",
            Operands::AtMost(0),
        ),
    ),
    ("branch", &["--list"], options("arv", "", "all remotes verbose sort= format=", Operands::Any)),
    ("tag", &[], options("ln", "", "list sort= contains= merged format= column", Operands::AtMost(0))),
    ("tag", &["-l"], options("n", "", "sort= format=", Operands::Any)),
    ("tag", &["--list"], options("n", "", "sort= format=", Operands::Any)),
    ("remote", &[], options("v", "", "verbose", Operands::AtMost(0))),
    ("remote", &["get-url"], options("", "", "all push", Operands::Names)),
    ("stash", &["list"], options("p", "", SHOWING, Operands::AtMost(0))),
    ("stash", &["show"], options("pu", "", SHOWING, Operands::Any)),
    ("reflog", &[], options("n0123456789", "n", "all date= oneline", Operands::AtMost(0))),
    ("reflog", &["show"], options("n0123456789", "n", "all date= oneline", Operands::Any)),
    (
        "config",
        &["--list"],
        options("", "", "local global system show-origin show-scope name-only", Operands::AtMost(0)),
    ),
    ("config", &["-l"], options("", "", "local global system show-origin", Operands::AtMost(0))),
    ("config", &["--get"], options("", "", "local global system", Operands::AtMost(1))),
    ("config", &["get"], options("", "", "local global system all", Operands::AtMost(1))),
    ("worktree", &["list"], options("v", "", "porcelain verbose", Operands::AtMost(0))),
    ("submodule", &["status"], options("", "", "recursive cached", Operands::Any)),
    ("bisect", &["log"], options("", "", "", Operands::AtMost(0))),
    ("notes", &["list"], options("", "", "", Operands::AtMost(0))),
];

/// Subcommands that add and are easily undone. Not `commit`, whose hooks are programs.
const ADDING: &[(&str, Options)] = &[
    ("add", options("AunvN", "", "all update dry-run verbose intent-to-add", Operands::Any)),
    ("branch", options("", "", "track no-track", Operands::Names)),
    ("tag", options("a", "m", "annotate message=", Operands::Names)),
    ("switch", options("", "c", "create=", Operands::AtMost(0))),
    ("checkout", options("", "b", "", Operands::AtMost(0))),
    ("stash", options("", "", "", Operands::AtMost(0))),
];

pub(super) fn rate(arguments: &[&str]) -> Rated {
    let Some((subcommand, rest)) = subcommand(arguments) else {
        return match arguments {
            ["--version" | "--help"] | [] => Rated::safe(),
            _ => Rated::dangerous("Options before git's subcommand can make git run programs."),
        };
    };
    let looks = LOOKING.iter().any(|(names, options)| names.contains(&subcommand) && options.read(rest).is_ok());
    let lists = LISTING.iter().any(|(name, form, options)| {
        *name == subcommand && rest.strip_prefix(*form).is_some_and(|rest| options.read(rest).is_ok())
    });
    if looks || lists {
        return Rated::safe();
    }
    if ADDING.iter().any(|(name, options)| *name == subcommand && options.read(rest).is_ok()) {
        return Rated::new(
            Risk::Caution,
            format!("`git {subcommand}` adds to the repository, which is easily undone."),
        );
    }
    Rated::dangerous(format!("I don't know this form of `git {subcommand}` to be harmless."))
}

/// The subcommand and what follows, when nothing stands before it but options that change neither configuration nor place.
fn subcommand<'w>(arguments: &'w [&'w str]) -> Option<(&'w str, &'w [&'w str])> {
    match arguments {
        ["--no-pager" | "-P" | "--no-optional-locks" | "--literal-pathspecs", rest @ ..] => subcommand(rest),
        ["-C", folder, rest @ ..] if !folder.starts_with('-') => subcommand(rest),
        [name, rest @ ..] if !name.starts_with('-') => Some((name, rest)),
        _ => None,
    }
}

/// What a git command destroys, if it does; whatever options stand before the subcommand.
pub(super) fn destroys(arguments: &[&str]) -> Option<&'static str> {
    let mut words = arguments.iter().copied();
    let name = loop {
        match words.next()? {
            "-c" | "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" | "--config-env" => {
                words.next();
            }
            word if word.starts_with('-') => {}
            word => break word,
        }
    };
    let rest: Vec<&str> = words.collect();
    let has = |words: &[&str]| rest.iter().any(|word| words.contains(word));
    let is_forced = || flag(&rest, "f") || long(&rest, "--force");
    match name {
        "push" if is_forced() || flag(&rest, "d") || has(&["--mirror", "--delete", "--prune"]) => {
            Some("rewrites or deletes what others may rely on")
        }
        "push" if rest.iter().any(|word| word.starts_with(['+', ':']) || word.starts_with("--force")) => {
            Some("rewrites or deletes what others may rely on")
        }
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
