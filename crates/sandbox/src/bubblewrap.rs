//! The arguments of bubblewrap for a layout, as a pure list. Everything absent from the list is forbidden.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    confined::LauncherRules,
    layout::{Layout, PlaceKind},
};

/// The maximum size of each private directory, in bytes. They live in memory.
const MAX_PRIVATE_BYTES: u64 = 512 << 20;
/// The directory inside the sandbox for our launcher and socket; otherwise empty.
const OWN: &str = "/run/reveille";

/// Returns all arguments before the program's name. Everything after the last `--` belongs to the program.
pub(super) fn build_arguments(layout: &Layout, launcher: &Path, proxy: Option<&Path>) -> Vec<OsString> {
    let mut list = List::default();
    // Separate users, processes, network, names and messages. No capabilities, and no nested user namespace that could grant them.
    list.add([
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        // fault: shell-machines-network
        "--unshare-net",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]);
    list.add(["--disable-userns", "--cap-drop", "ALL", "--hostname", "sandbox", "--new-session", "--die-with-parent"]);
    list.add(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    let mut covered = Vec::new();
    for place in &layout.places {
        let path = place.path.as_path();
        match place.kind {
            PlaceKind::Private => {
                list.add(["--size", &MAX_PRIVATE_BYTES.to_string(), "--perms", "1777", "--tmpfs"]).add_path(path)
            }
            PlaceKind::Covered => {
                covered.push(path);
                list.add(["--perms", "0755", "--tmpfs"]).add_path(path)
            }
            PlaceKind::Readable => list.add(["--ro-bind"]).add_path(path).add_path(path),
            PlaceKind::Writable => list.add(["--bind"]).add_path(path).add_path(path),
            PlaceKind::HiddenDir => {
                list.add(["--perms", "0000", "--tmpfs"]).add_path(path).add(["--remount-ro"]).add_path(path)
            }
            // A device on a mount that forbids opening devices.
            PlaceKind::HiddenFile => list.add(["--ro-bind", "/dev/null"]).add_path(path),
            // The parent isn't writable, so the path can't be created. Landlock forbids reading.
            PlaceKind::HiddenMissing => &mut list,
        };
    }
    for (seen, place) in &layout.overlays {
        list.add(["--ro-bind"]).add_path(seen).add_path(place);
    }
    let own = PathBuf::from(OWN);
    let (program, socket) = (own.join("wake"), own.join("proxy.sock"));
    list.add(["--ro-bind"]).add_path(launcher).add_path(&program);
    if let Some(proxy) = proxy {
        list.add(["--ro-bind"]).add_path(proxy).add_path(&socket);
    }
    for path in covered {
        list.add(["--remount-ro"]).add_path(path);
    }
    list.add(["--chdir"]).add_path(&layout.work_dir);
    let rules = LauncherRules { layout: layout.clone(), proxy: proxy.map(|_| socket) };
    list.add(["--"]).add_path(&program).add(["confined", "--rules", &rules.to_text(), "--"]);
    list.0
}

#[derive(Default)]
struct List(Vec<OsString>);

impl List {
    fn add<const N: usize>(&mut self, words: [&str; N]) -> &mut Self {
        self.0.extend(words.map(OsString::from));
        self
    }

    fn add_path(&mut self, path: &Path) -> &mut Self {
        self.0.push(path.into());
        self
    }
}
