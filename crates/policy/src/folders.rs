//! Adds a folder to the `[files]` of a person's `policy.toml`, or removes one: text in, text out. All of their other bytes stay. The
//! result differs in meaning by exactly that folder, or there is an error.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::{Rules, amend::AmendError};

/// What a granted folder is granted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FolderAccess {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

impl FolderAccess {
    /// Returns the name in `policy.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A granted folder, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderGrant {
    /// What it is granted for.
    pub access: FolderAccess,
    /// Its path; it may begin with `~/`.
    pub path: String,
}

/// Lists the granted folders of a text.
///
/// # Errors
/// The text isn't in use.
pub fn list_folders(text: &str) -> Result<Vec<FolderGrant>, AmendError> {
    let rules = Rules::parse(text).map_err(AmendError::from_problems)?;
    let grants = |access: FolderAccess| {
        rules.folders(access).iter().map(move |path| FolderGrant { access, path: path.clone() }).collect::<Vec<_>>()
    };
    Ok([grants(FolderAccess::Read), grants(FolderAccess::Write)].concat())
}

/// Adds a folder; `None` if it is granted already.
///
/// # Errors
/// The text isn't in use, the path can't be granted, or the file is written in a way that can't be changed here.
pub fn add_folder(text: &str, grant: &FolderGrant) -> Result<Option<String>, AmendError> {
    let before = Rules::parse(text).map_err(AmendError::from_problems)?;
    if before.folders(grant.access).contains(&grant.path) {
        return Ok(None);
    }
    let name = grant.access.name();
    let item = quote_path(&grant.path)?;
    // A grant alone tells best what is wrong with its path.
    Rules::parse(&format!("[files]\n{name} = [{item}]\n"))
        .map_err(|problems| AmendError::Folder(problems.into_iter().next().map_or_else(String::new, |it| it.what)))?;
    let new = match find_list(text, name) {
        Some(list) => insert_item(text, &list, &item),
        None => match find_header(text) {
            Some(at) => splice(text, at..at, &format!("{name} = [{item}]\n")),
            None => {
                let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
                let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                format!("{text}{end}{gap}[files]\n{name} = [{item}]\n")
            }
        },
    };
    let mut wanted = before.folders(grant.access).to_vec();
    wanted.push(grant.path.clone());
    check_change(&before, new, grant.access, &wanted).map(Some)
}

/// Removes a folder.
///
/// # Errors
/// The text isn't in use, there is no such folder, or the file is written in a way that can't be changed here.
pub fn remove_folder(text: &str, grant: &FolderGrant) -> Result<String, AmendError> {
    let before = Rules::parse(text).map_err(AmendError::from_problems)?;
    let list = find_list(text, grant.access.name()).ok_or(AmendError::Gone)?;
    let at = list.items.iter().position(|(path, _)| *path == grant.path).ok_or(AmendError::Gone)?;
    let wanted: Vec<String> =
        before.folders(grant.access).iter().filter(|path| **path != grant.path).cloned().collect();
    let (_, item) = list.items.get(at).ok_or(AmendError::Gone)?;
    // The comma after it goes too; of the last one, the comma before it.
    let cut = match (list.items.get(at + 1), at.checked_sub(1).and_then(|before| list.items.get(before))) {
        (Some((_, next)), _) => item.start..next.start,
        (None, Some((_, previous))) => previous.end..item.end,
        (None, None) => item.clone(),
    };
    check_change(&before, splice(text, cut, ""), grant.access, &wanted)
}

/// A list in the file.
struct FolderList {
    /// Where it stands, with its brackets.
    span: Range<usize>,
    items: Vec<(String, Range<usize>)>,
}

fn find_list(text: &str, name: &str) -> Option<FolderList> {
    let (table, _) = DeTable::parse_recoverable(text);
    let files = table.get_ref().get("files")?.get_ref().as_table()?;
    let value = files.get(name)?;
    let items = value.get_ref().as_array()?.iter().filter_map(|item| match item.get_ref() {
        DeValue::String(path) => Some((path.to_string(), item.span())),
        _ => None,
    });
    Some(FolderList { span: value.span(), items: items.collect() })
}

/// Returns the place after the line `[files]`.
fn find_header(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if line.split('#').next().is_some_and(|line| line.trim() == "[files]") && line.ends_with('\n') {
            return Some(at);
        }
    }
    None
}

fn insert_item(text: &str, list: &FolderList, item: &str) -> String {
    match list.items.last() {
        Some((_, last)) => splice(text, last.end..last.end, &format!(", {item}")),
        None => splice(text, list.span.clone(), &format!("[{item}]")),
    }
}

fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    let (head, tail) = (text.get(..range.start).unwrap_or_default(), text.get(range.end..).unwrap_or_default());
    format!("{head}{new}{tail}")
}

fn quote_path(path: &str) -> Result<String, AmendError> {
    if path.chars().any(|c| c.is_control() || c == '"' || c == '\\' || reveille_base::approval_text::is_hidden(c)) {
        return Err(AmendError::Folder("its path has characters that can't be shown".to_owned()));
    }
    Ok(format!("\"{path}\""))
}

/// Accepts the new text only if it means what was wanted.
fn check_change(before: &Rules, new: String, access: FolderAccess, wanted: &[String]) -> Result<String, AmendError> {
    let other = match access {
        FolderAccess::Read => FolderAccess::Write,
        FolderAccess::Write => FolderAccess::Read,
    };
    let after = Rules::parse(&new).map_err(|_| AmendError::Unclear)?;
    let is_right = after.is_same_except_folders(before)
        && after.folders(access) == wanted
        && after.folders(other) == before.folders(other);
    if is_right { Ok(new) } else { Err(AmendError::Unclear) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(access: FolderAccess, path: &str) -> FolderGrant {
        FolderGrant { access, path: path.to_owned() }
    }

    #[test]
    fn a_folder_is_added_and_taken_out_and_all_else_stays() {
        for (text, added) in [
            ("", "[files]\nread = [\"~/a b\"]\n"),
            ("# mine", "# mine\n\n[files]\nread = [\"~/a b\"]\n"),
            ("[files]\n", "[files]\nread = [\"~/a b\"]\n"),
            ("[files] # mine\nwrite = [\"~/w\"]\n", "[files] # mine\nread = [\"~/a b\"]\nwrite = [\"~/w\"]\n"),
            ("[files]\nread = [] # none\n", "[files]\nread = [\"~/a b\"] # none\n"),
            (
                "[files]\nread = [\n  \"/x\", # x\n]\n[shell]\ntimeout_s = 9\n",
                "[files]\nread = [\n  \"/x\", \"~/a b\", # x\n]\n[shell]\ntimeout_s = 9\n",
            ),
            ("files.read = [\"/x\"]\n", "files.read = [\"/x\", \"~/a b\"]\n"),
        ] {
            let one = grant(FolderAccess::Read, "~/a b");
            let new = add_folder(text, &one).unwrap().unwrap();
            assert_eq!(new, added);
            assert_eq!(add_folder(&new, &one).unwrap(), None);
            let back = remove_folder(&new, &one).unwrap();
            assert!(!list_folders(&back).unwrap().contains(&one), "{back}");
            assert!(remove_folder(&back, &one).is_err());
        }
        let text = "[[rule]]\ncommand = [\"ls\"]\ndecision = \"allow\"\nmatch = [\"ls\"]\n[files]\nwrite = [\"/a\", \"/b\", \"/c\"]\n";
        for (path, left) in [("/a", "[\"/b\", \"/c\"]"), ("/b", "[\"/a\", \"/c\"]"), ("/c", "[\"/a\", \"/b\"]")] {
            let new = remove_folder(text, &grant(FolderAccess::Write, path)).unwrap();
            assert!(new.ends_with(&format!("write = {left}\n")), "{new}");
        }
    }

    #[test]
    fn what_cant_be_granted_is_refused_in_words() {
        for (access, path, why) in [
            (FolderAccess::Read, "notes", "notes"),
            (FolderAccess::Read, "~/*", "*"),
            (FolderAccess::Write, "/", "whole machine"),
            (FolderAccess::Read, "/a\"b", "shown"),
        ] {
            let error = add_folder("", &grant(access, path)).unwrap_err().to_string();
            assert!(error.contains(why), "{path}: {error}");
        }
        let broken = add_folder("[filez]\n", &grant(FolderAccess::Read, "/a")).unwrap_err();
        assert!(matches!(broken, AmendError::Invalid(_)), "{broken}");
    }
}
