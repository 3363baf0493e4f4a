//! Finds an unreadable file among git's own files of a repository, and the repair command. The check only reads, and doesn't rely on
//! git, which may be unable to open the repository.

use std::{fmt, fs, path::Path};

use git2::Index;

use reveille_base::words::quote_for_shell;

use super::DEFAULT_BRANCH;

/// An unreadable file among git's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ailment {
    /// The index, with the staged changes.
    Index,
    /// HEAD, with the current branch.
    Head {
        /// The branch of the wakes.
        branch: String,
    },
    /// The reference of the wakes' branch.
    Branch {
        /// The branch's name.
        branch: String,
    },
    /// The packed references.
    PackedRefs,
}

impl fmt::Display for Ailment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index => f.write_str(".git/index"),
            Self::Head { .. } => f.write_str(".git/HEAD"),
            Self::Branch { branch } => write!(f, ".git/refs/heads/{branch}"),
            Self::PackedRefs => f.write_str(".git/packed-refs"),
        }
    }
}

impl Ailment {
    /// Returns the repair command, for use in the repository's directory. Committed work stays.
    pub fn repair_command(&self) -> String {
        match self {
            Self::Index => "rm .git/index && git reset".to_owned(),
            Self::Head { branch } => {
                format!("echo {} > .git/HEAD", quote_for_shell(Path::new(&format!("ref: refs/heads/{branch}"))))
            }
            Self::Branch { branch } => {
                let log = quote_for_shell(Path::new(&format!(".git/logs/refs/heads/{branch}")));
                let name = quote_for_shell(Path::new(&format!(".git/refs/heads/{branch}")));
                format!("id=$(tail -n 1 {log} | cut -d ' ' -f 2) && [ -n \"$id\" ] && echo \"$id\" > {name}")
            }
            Self::PackedRefs => {
                "cp .git/packed-refs .git/packed-refs.bad && grep -aE '^(#.*|\\^[0-9a-f]+|[0-9a-f]+ refs/.+)$' .git/packed-refs.bad > \
                 .git/packed-refs"
                    .to_owned()
            }
        }
    }
}

/// Finds the first unreadable file among the repository's own; `None` if all are readable or there is no repository.
pub fn find_ailment(dir: &Path) -> Option<Ailment> {
    let git = dir.join(".git");
    if !git.is_dir() {
        return None;
    }
    let branch = git2::Config::open(&git.join("config")).and_then(|config| config.get_string("reveille.branch"));
    let branch = branch.unwrap_or_else(|_| DEFAULT_BRANCH.to_owned());
    let read = |name: &str| fs::read(git.join(name)).ok();
    let is_reference = |text: &[u8]| text.starts_with(b"ref: refs/") || is_id(text);
    if !read("HEAD").is_some_and(|text| is_reference(&text)) {
        return Some(Ailment::Head { branch });
    }
    if read("packed-refs").is_some_and(|text| !text.split(|byte| *byte == b'\n').all(is_packed_line)) {
        return Some(Ailment::PackedRefs);
    }
    if read(&format!("refs/heads/{branch}")).is_some_and(|text| !is_reference(&text)) {
        return Some(Ailment::Branch { branch });
    }
    // Git itself gives advice on an index with an extension that it doesn't know.
    let index = git.join("index");
    let is_bad = |error: git2::Error| !error.message().contains("mandatory extension");
    (index.exists() && Index::open(&index).err().is_some_and(is_bad)).then_some(Ailment::Index)
}

fn is_id(text: &[u8]) -> bool {
    let id = text.trim_ascii();
    matches!(id.len(), 40 | 64) && id.iter().all(u8::is_ascii_hexdigit)
}

fn is_packed_line(line: &[u8]) -> bool {
    match line.split_first() {
        None | Some((b'#', _)) => true,
        Some((b'^', id)) => is_id(id),
        Some(_) => {
            let mut words = line.splitn(2, |byte| *byte == b' ');
            words.next().is_some_and(is_id) && words.next().is_some_and(|name| name.starts_with(b"refs/"))
        }
    }
}
