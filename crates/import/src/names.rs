//! Converts foreign names to safe ones, without special meaning to disks, git or tools: only letters, digits, dashes, underscores and dots.

use std::collections::BTreeSet;

use reveille_base::{disk, words::truncate_text};

/// The maximum length of a file or folder name, in characters.
const MAX_NAME_CHARS: usize = 60;
/// Device names reserved by Windows.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com1", "lpt1"];

/// Makes the name of one file or folder safe. `None` if no letter or digit is left.
pub(super) fn to_safe_step(name: &str) -> Option<String> {
    let mut safe = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if c.is_alphanumeric() => safe.push(c),
            '_' => safe.push('_'),
            '.' if !safe.is_empty() && !safe.ends_with(['.', '-']) => safe.push('.'),
            _ if !safe.is_empty() && !safe.ends_with(['.', '-']) => safe.push('-'),
            _ => {}
        }
    }
    let safe = truncate_text(&safe, MAX_NAME_CHARS).replace('…', "");
    let safe = safe.trim_matches(['.', '-']);
    let stem = safe.split('.').next().unwrap_or_default().to_lowercase();
    let is_device = DEVICES.contains(&stem.as_str());
    safe.chars().any(char::is_alphanumeric).then(|| if is_device { format!("{safe}-") } else { safe.to_owned() })
}

/// Converts a source path to a document's path below a folder: safe steps, ending in `.md`.
pub(super) fn to_document_path(folder: &str, path: &str) -> Option<String> {
    let path = path.trim_end_matches(['.', ' ']);
    let stem = path.rsplit_once('.').filter(|(_, ending)| !ending.contains('/')).map_or(path, |(stem, _)| stem);
    let steps: Option<Vec<String>> = stem.split('/').map(to_safe_step).collect();
    Some(format!("{folder}/{}.md", steps?.join("/")))
}

/// The taken names, as disks compare them.
#[derive(Debug, Default)]
pub(super) struct TakenNames(BTreeSet<String>);

impl TakenNames {
    /// Returns the path, with a number added if the name is taken, and marks it as taken.
    pub(super) fn reserve_path(&mut self, path: String) -> String {
        let stem = path.strip_suffix(".md").unwrap_or(&path).to_owned();
        let names = std::iter::once(path).chain((2..).map(|n| format!("{stem}-{n}.md")));
        let mut free = names.filter(|name| self.0.insert(disk::fold_name(name)));
        free.next().unwrap_or(stem)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_made_safe_and_stay_readable() {
        for (name, safe) in [
            ("Müller & Söhne", "Müller-Söhne"),
            ("2025-03-14 Trip", "2025-03-14-Trip"),
            ("..git~1", "git-1"),
            (".env", "env"),
            ("v1.2", "v1.2"),
            ("CON", "CON-"),
            ("a\u{202e}b\\c:d", "a-b-c-d"),
        ] {
            assert_eq!(to_safe_step(name).as_deref(), Some(safe), "{name}");
        }
        assert_eq!((to_safe_step("…"), to_safe_step(""), to_safe_step("--")), (None, None, None));
        assert_eq!(to_document_path("notes", "A b/c.d.md").as_deref(), Some("notes/A-b/c.d.md"));
        assert_eq!(to_document_path("notes", "a.md. ").as_deref(), Some("notes/a.md"));
        assert_eq!(to_document_path("notes", "a/🦀.md"), None);
    }

    #[test]
    fn two_files_never_share_a_name() {
        let mut taken = TakenNames::default();
        let names = ["a.md", "A.md", "a-2.md"].map(|name| taken.reserve_path(name.to_owned()));
        assert_eq!(names, ["a.md", "A-2.md", "a-2-2.md"]);
    }

    proptest! {
        #[test]
        fn no_path_leads_out_of_its_folder(path in any::<String>()) {
            if let Some(safe) = to_document_path("notes", &path) {
                prop_assert!(safe.split('/').all(|step| !step.is_empty() && !step.starts_with('.') && !step.contains('\\')), "{safe}");
            }
        }
    }
}
