//! A Seatbelt profile for a layout, as pure text in Apple's profile language. Of two matching rules the later wins.

use std::{collections::BTreeSet, path::Path};

use super::layout::{Layout, PlaceKind};

/// The rules that every program needs to run. Signals and process information reach only processes of the same sandbox.
const BASE: &str = "\
(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow pseudo-tty)
(allow mach-lookup (global-name \"com.apple.system.opendirectoryd.libinfo\") (global-name \"com.apple.system.notification_center\"))
(allow ipc-posix-sem)
(allow file-read* file-test-existence)
(allow file-write-data file-ioctl (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\") (regex #\"^/dev/ttys[0-9]+$\"))
";

/// Builds the profile; `port` is the loopback port of our proxy.
pub(super) fn render_profile(layout: &Layout, port: Option<u16>) -> String {
    let mut text = BASE.to_owned();
    for place in &layout.places {
        let path = quote_path(&place.path);
        let rule = match place.kind {
            // Seatbelt has no private copies of directories. The shared directory is out of reach and the scratch serves instead.
            PlaceKind::Private
            | PlaceKind::Covered
            | PlaceKind::HiddenDir
            | PlaceKind::HiddenFile
            | PlaceKind::HiddenMissing => {
                format!("(deny file-read* file-write* file-link (subpath {path}))")
            }
            PlaceKind::Readable => format!("(allow file-read* (subpath {path}))\n(deny file-write* (subpath {path}))"),
            PlaceKind::Writable => format!("(allow file-read* file-write* (subpath {path}))"),
        };
        text.push_str(&rule);
        text.push('\n');
    }
    for folder in folders_of_hidden(layout) {
        text.push_str(&format!("(deny file-write-unlink (literal {}))\n", quote_path(folder)));
    }
    // A setuid file would outlive the sandbox.
    text.push_str("(deny file-write-setugid)\n(deny network*)\n");
    if let Some(port) = port {
        text.push_str(&format!("(allow network-outbound (remote ip \"localhost:{port}\"))\n"));
    }
    text
}

/// The folders between a writable place and the hidden places within it; the writable place is included. Rules go by
/// path, so moving such a folder would bring its hidden files to a path without a rule.
fn folders_of_hidden(layout: &Layout) -> BTreeSet<&Path> {
    let of_kind = |is_kind: fn(PlaceKind) -> bool| layout.places.iter().filter(move |place| is_kind(place.kind));
    let writable: Vec<&Path> = of_kind(|kind| kind == PlaceKind::Writable).map(|place| &*place.path).collect();
    let is_within = |folder: &&Path| writable.iter().any(|root| folder.starts_with(root));
    of_kind(PlaceKind::is_hidden).flat_map(|place| place.path.ancestors().skip(1).filter(is_within)).collect()
}

/// Quotes a path as a string of the profile language.
fn quote_path(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::layout::MountPlace;

    fn layout() -> Layout {
        let place = |depth, kind, path: &str| MountPlace { depth, kind, path: PathBuf::from(path) };
        let places = vec![
            place(3, PlaceKind::Covered, "/Users/ada/reveille"),
            place(4, PlaceKind::Readable, "/Users/ada/reveille/brain"),
            place(4, PlaceKind::Writable, "/Users/ada/a \"b\" c"),
            place(5, PlaceKind::HiddenDir, "/Users/ada/reveille/brain/.git"),
        ];
        Layout { work_dir: PathBuf::from("/Users/ada/a \"b\" c"), places, overlays: Vec::new(), max_file_bytes: None }
    }

    #[test]
    fn deeper_rules_come_later_and_the_network_is_shut() {
        let text = render_profile(&layout(), None);
        insta::assert_snapshot!(text.strip_prefix(BASE).unwrap(), @r#"
        (deny file-read* file-write* file-link (subpath "/Users/ada/reveille"))
        (allow file-read* (subpath "/Users/ada/reveille/brain"))
        (deny file-write* (subpath "/Users/ada/reveille/brain"))
        (allow file-read* file-write* (subpath "/Users/ada/a \"b\" c"))
        (deny file-read* file-write* file-link (subpath "/Users/ada/reveille/brain/.git"))
        (deny file-write-setugid)
        (deny network*)
        "#);
        let opened = render_profile(&layout(), Some(4242));
        assert!(opened.ends_with("(deny network*)\n(allow network-outbound (remote ip \"localhost:4242\"))\n"));
    }

    #[test]
    fn no_folder_of_a_hidden_file_can_be_moved_away_from_its_rule() {
        let place =
            |kind, path: &str| MountPlace { depth: path.matches('/').count() + 1, kind, path: PathBuf::from(path) };
        let places = vec![
            place(PlaceKind::Writable, "/Users/ada/work"),
            place(PlaceKind::HiddenDir, "/Users/ada/.ssh"),
            place(PlaceKind::HiddenFile, "/Users/ada/work/a/b/.env"),
            place(PlaceKind::HiddenFile, "/Users/ada/work/a/.env"),
        ];
        let text = render_profile(
            &Layout { work_dir: PathBuf::from("/Users/ada/work"), places, overlays: Vec::new(), max_file_bytes: None },
            None,
        );
        let last = text.strip_prefix(BASE).unwrap().lines().skip(4);
        insta::assert_snapshot!(last.collect::<Vec<_>>().join("\n"), @r#"
        (deny file-write-unlink (literal "/Users/ada/work"))
        (deny file-write-unlink (literal "/Users/ada/work/a"))
        (deny file-write-unlink (literal "/Users/ada/work/a/b"))
        (deny file-write-setugid)
        (deny network*)
        "#);
    }

    #[test]
    fn parentheses_are_balanced_and_nothing_is_allowed_by_default() {
        let text = render_profile(&layout(), Some(1));
        assert_eq!(text.matches('(').count(), text.matches(')').count());
        assert!(text.starts_with("(version 1)\n(deny default)\n") && !text.contains("(allow default)"));
    }
}
