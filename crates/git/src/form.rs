//! Repository formats that git can open but libgit2 can't, and the commands to convert them.

use std::path::Path;

use super::REMOTE;

/// Extensions supported by libgit2.
const KNOWN: [&str; 5] = ["noop", "objectformat", "worktreeconfig", "preciousobjects", "relativeworktrees"];

/// The reason libgit2 can't open a repository that git opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableForm {
    /// The offending setting, such as `extensions.refstorage=reftable`.
    pub setting: String,
    /// The command with which a person can convert it.
    pub way_out: String,
}

/// Finds the unsupported format of the repository in `dir`; `None` if the format isn't to blame.
pub fn unreadable_form(dir: &Path) -> Option<UnreadableForm> {
    let config = git2::Config::open(&dir.join(".git/config")).ok()?;
    let place = dir.display();
    let mut settings = Vec::new();
    config
        .entries(Some(r"^extensions\."))
        .ok()?
        .for_each(|entry| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            settings.push((text(entry.name_bytes()), text(entry.value_bytes())));
        })
        .ok()?;
    let is_foreign = |(name, value): &(String, String)| match name.strip_prefix("extensions.") {
        Some("objectformat") => !value.eq_ignore_ascii_case("sha1"),
        Some(name) => !(KNOWN.contains(&name) || name == "refstorage" && value == "files"),
        None => false,
    };
    let (name, value) = settings.into_iter().find(is_foreign)?;
    let url = config.get_string(&format!("remote.{REMOTE}.url")).ok();
    let again = match url {
        Some(_) => {
            format!("git -C '{place}' remote add {REMOTE} \"$(git -C '{place}.old' remote get-url {REMOTE})\"; ")
        }
        None => String::new(),
    };
    let way_out = if name == "extensions.partialclone" {
        format!("git -C '{place}' fetch --refetch --no-filter {REMOTE} && git -C '{place}' config --unset {name}")
    } else {
        // Exports and imports the history, which converts any format to the one that all programs read.
        format!(
            "mv '{place}' '{place}.old' && git -c init.defaultRefFormat=files init --quiet --object-format=sha1 \
             --initial-branch=\"$(git -C '{place}.old' branch --show-current)\" '{place}' && git -C '{place}.old' fast-export --all | \
             git -C '{place}' fast-import --quiet && git -C '{place}' reset --quiet --hard; {again}what wasn't committed stays in \
             '{place}.old'"
        )
    };
    Some(UnreadableForm { setting: format!("{name}={value}"), way_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new report is one line: the settings and the obstructing one.
    #[test]
    fn the_setting_that_is_in_the_way_is_named() {
        for (settings, expected) in [
            ("[core]\n\trepositoryformatversion = 0\n", None),
            ("[extensions]\n\tworktreeConfig = true\n", None),
            ("[extensions]\n\tobjectFormat = sha1\n\trefStorage = files\n", None),
            ("[extensions]\n\tobjectFormat = sha256\n", Some("extensions.objectformat=sha256")),
            ("[extensions]\n\trefStorage = reftable\n", Some("extensions.refstorage=reftable")),
            ("[extensions]\n\tpartialClone = origin\n", Some("extensions.partialclone=origin")),
            ("[extensions]\n\tcompatObjectFormat = sha256\n", Some("extensions.compatobjectformat=sha256")),
        ] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join(".git")).unwrap();
            std::fs::write(dir.path().join(".git/config"), settings).unwrap();
            let found = unreadable_form(dir.path()).map(|form| form.setting);
            assert_eq!(found.as_deref(), expected, "{settings}");
        }
        assert_eq!(unreadable_form(Path::new("/nowhere")), None);
    }
}
