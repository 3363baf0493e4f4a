//! The paths that git accepts. On every system, git refuses names that Windows or macOS would take for its own folder; libgit2 also
//! refuses paths that are nested too deep. One such path makes a whole operation of libgit2 fail. The program therefore checks each path by
//! the same rules first, so that a bad path affects no other files.

/// The maximum number of nested folders, which is libgit2's limit.
const MAX_FOLDERS: usize = 99;

/// A path that git or libgit2 refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused<'a> {
    /// The reason.
    pub(super) why: &'static str,
    /// The path up to the offending name; for a path that is too deep, its first folder.
    pub(super) begins: &'a str,
}

/// The reason for refusing a path out of the work tree.
const OUTSIDE: &str = "it leads out of the work tree";
/// The reason for refusing a name of git's own.
pub(super) const GITS_OWN: &str = "it has a name that git reserves on some systems";
/// The reason for refusing a path that is too deep.
pub(super) const TOO_DEEP: &str = "it is nested more than 99 folders deep";

/// Finds the part of a path that git would refuse on some system.
pub(super) fn find_refused_part(path: &str) -> Option<Refused<'_>> {
    let mut end = 0;
    for (depth, name) in path.split('/').enumerate() {
        end += name.len() + usize::from(depth > 0);
        let why = if name.is_empty() || [".", ".."].contains(&name) || name.contains('\0') {
            OUTSIDE
        } else if is_gits_own(name) {
            GITS_OWN
        } else if depth > MAX_FOLDERS {
            return Some(Refused { why: TOO_DEEP, begins: path.split('/').next().unwrap_or(path) });
        } else {
            continue;
        };
        return Some(Refused { why, begins: path.get(..end).unwrap_or(path) });
    }
    None
}

/// Returns `true` if Windows or macOS would take a name for `.git`. Windows ignores the part after a colon, and dots and spaces at the end;
/// macOS ignores some characters. A backslash is a slash on Windows.
fn is_gits_own(name: &str) -> bool {
    let for_windows = |name: &str| {
        let name = name.split(':').next().unwrap_or(name).trim_end_matches([' ', '.']);
        name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case("git~1")
    };
    let is_visible = |c: &char| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    name.split('\\').any(for_windows)
        || name.chars().filter(is_visible).collect::<String>().eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_refuses_is_refused_with_the_name_that_is_to_blame() {
        for (path, begins) in [
            (".git/config", ".git"),
            ("a/.GIT", "a/.GIT"),
            ("a/git~1/b.md", "a/git~1"),
            ("GIT~1", "GIT~1"),
            (".git./a.md", ".git."),
            (".git /a.md", ".git "),
            (".git . ./a.md", ".git . ."),
            (".git::$INDEX_ALLOCATION/a.md", ".git::$INDEX_ALLOCATION"),
            ("git~1:x/a.md", "git~1:x"),
            ("x\\.git\\a.md", "x\\.git\\a.md"),
            (".g\u{200c}it/a.md", ".g\u{200c}it"),
            ("a//b", "a/"),
            ("a/../b", "a/.."),
            ("/a", ""),
            ("", ""),
        ] {
            assert_eq!(find_refused_part(path).map(|refused| refused.begins), Some(begins), "{path}");
        }
        for path in ["a.md", ".gitignore", ".github/a.md", "git~2/a.md", "git~10", "agit~1", "a b/c .md", "größe.md"]
        {
            assert_eq!(find_refused_part(path), None, "{path}");
        }
    }

    #[test]
    fn so_many_folders_are_too_many() {
        let within = |folders: usize| "d/".repeat(folders) + "a.md";
        assert_eq!(find_refused_part(&within(MAX_FOLDERS)), None);
        assert_eq!(find_refused_part(&within(MAX_FOLDERS + 1)), Some(Refused { why: TOO_DEEP, begins: "d" }));
    }

    /// The rules are git's: a name passes here exactly if git takes it into an index.
    #[test]
    fn libgit2_agrees() {
        let takes = |path: &str| {
            let item = super::super::tree::Item { id: git2::Oid::ZERO_SHA1, mode: super::super::tree::FILE };
            git2::Index::new().unwrap().add(&super::super::tree::build_index_entry(path, item)).is_ok()
        };
        for name in ["git~1", ".git.", ".git ", ".git::$INDEX_ALLOCATION", ".git", "GiT~1 . ", ".git\\x"] {
            let path = format!("{name}/a.md");
            assert!(!takes(&path) && find_refused_part(&path).is_some(), "{path}");
        }
        for name in [".gitx", "git~2", "a.", "con", "x:y", ".. ", "a\\b"] {
            let path = format!("{name}/a.md");
            assert!(takes(&path) && find_refused_part(&path).is_none(), "{path}");
        }
    }
}
