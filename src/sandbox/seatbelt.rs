//! A Seatbelt profile for a layout, in Apple's profile language. A pure text: of two rules that match, the later counts.

use std::path::Path;

use super::layout::{Kind, Layout};

/// What a program needs to run at all. Signals and looks reach what runs in the same sandbox alone.
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

/// The profile; `port` is where our proxy listens on loopback.
pub(super) fn profile(layout: &Layout, port: Option<u16>) -> String {
    let mut text = BASE.to_owned();
    for place in &layout.places {
        let path = quoted(&place.path);
        let rule = match place.kind {
            // There are no private copies of directories here: what others keep there is out of reach, the scratch serves instead.
            Kind::Private | Kind::Covered | Kind::HiddenDir | Kind::HiddenFile | Kind::HiddenMissing => {
                format!("(deny file-read* file-write* file-link (subpath {path}))")
            }
            Kind::Readable => format!("(allow file-read* (subpath {path}))\n(deny file-write* (subpath {path}))"),
            Kind::Writable => format!("(allow file-read* file-write* (subpath {path}))"),
        };
        text.push_str(&rule);
        text.push('\n');
    }
    text.push_str("(deny network*)\n");
    if let Some(port) = port {
        text.push_str(&format!("(allow network-outbound (remote ip \"localhost:{port}\"))\n"));
    }
    text
}

/// A string of the profile language.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::sandbox::layout::Place;

    fn layout() -> Layout {
        let place = |depth, kind, path: &str| Place { depth, kind, path: PathBuf::from(path) };
        let places = vec![
            place(3, Kind::Covered, "/Users/ada/reveille"),
            place(4, Kind::Readable, "/Users/ada/reveille/brain"),
            place(4, Kind::Writable, "/Users/ada/a \"b\" c"),
            place(5, Kind::HiddenDir, "/Users/ada/reveille/brain/.git"),
        ];
        Layout { work_dir: PathBuf::from("/Users/ada/a \"b\" c"), places }
    }

    #[test]
    fn deeper_rules_come_later_and_the_network_is_shut() {
        let text = profile(&layout(), None);
        insta::assert_snapshot!(text.strip_prefix(BASE).unwrap(), @r#"
        (deny file-read* file-write* file-link (subpath "/Users/ada/reveille"))
        (allow file-read* (subpath "/Users/ada/reveille/brain"))
        (deny file-write* (subpath "/Users/ada/reveille/brain"))
        (allow file-read* file-write* (subpath "/Users/ada/a \"b\" c"))
        (deny file-read* file-write* file-link (subpath "/Users/ada/reveille/brain/.git"))
        (deny network*)
        "#);
        let opened = profile(&layout(), Some(4242));
        assert!(opened.ends_with("(deny network*)\n(allow network-outbound (remote ip \"localhost:4242\"))\n"));
    }

    #[test]
    fn parentheses_are_balanced_and_nothing_is_allowed_by_default() {
        let text = profile(&layout(), Some(1));
        assert_eq!(text.matches('(').count(), text.matches(')').count());
        assert!(text.starts_with("(version 1)\n(deny default)\n") && !text.contains("(allow default)"));
    }
}
