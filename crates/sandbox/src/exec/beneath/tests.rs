//! Tests malicious paths of every kind, links that are swapped during a write, and the protection of files that appear meanwhile. Each
//! escape has a control: the same path does lead out when it is opened in the usual way.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use proptest::prelude::*;
use rustix::fs::{CWD, FileType as Special, RenameFlags, mknodat, renameat_with};

use super::*;

const SECRET: &str = "nobody's business";

/// A workspace with a scratch folder and our own state, a memory, two granted folders, and a secret outside of them all.
struct Scene {
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { dir: tempfile::tempdir().unwrap() };
        for folder in [
            "outside/deep",
            "ws/scratch/deep/er",
            "ws/brain/.git",
            "ws/brain/memory",
            "ws/logs",
            "home/read",
            "home/write",
        ] {
            fs::create_dir_all(scene.at(folder)).unwrap();
        }
        for file in [
            "outside/secret.txt",
            // Hard links lead to this file, while only symlinks lead to the one above.
            "outside/linked.txt",
            "outside/deep/secret.txt",
            "ws/messages.db",
            "ws/policy.toml",
            "ws/.env",
            "ws/logs/wake.log",
            "ws/brain/.git/config",
        ] {
            fs::write(scene.at(file), SECRET).unwrap();
        }
        for file in ["ws/scratch/deep/a.txt", "ws/brain/memory/a.md", "home/read/a.txt", "home/write/a.txt"] {
            fs::write(scene.at(file), "mine").unwrap();
        }
        scene
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn scratch(&self, path: &str) -> PathBuf {
        self.at("ws/scratch").join(path)
    }

    fn roots(&self) -> Roots {
        Roots::new(&self.at("ws/scratch"), &self.at("ws"))
            .with_brain(&self.at("ws/brain"))
            .with_granted_folders(&[self.at("home/read")], &[self.at("home/write")])
    }

    fn full(&self, path: &str) -> String {
        self.at(path).display().to_string()
    }

    fn read(&self, path: &str) -> Result<String, PathError> {
        let (bytes, _) = self.roots().resolve(path, PathUse::Read)?.read(1000)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    fn write(&self, path: &str, text: &str) -> Result<(), PathError> {
        let place = self.roots().resolve(path, PathUse::Write)?;
        let expected = place.read(1000).ok().map(|(_, stamp)| stamp);
        place.write(text.as_bytes(), expected.as_ref())
    }

    /// All files outside the writable folders.
    fn outside(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for folder in ["outside", "ws/logs", "ws/brain", "home/read"] {
            let mut folders = vec![self.at(folder)];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                    if entry.file_type().unwrap().is_dir() {
                        folders.push(entry.path());
                    } else {
                        found.push((entry.path(), fs::read_to_string(entry.path()).unwrap_or_default()));
                    }
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn only_granted_files_are_read_and_written() {
    let scene = Scene::new();
    for path in ["deep/a.txt", "./deep//a.txt", "deep/./a.txt", &scene.full("ws/scratch/deep/a.txt")] {
        assert_eq!(scene.read(path).unwrap(), "mine", "{path}");
        scene.write(path, "mine").unwrap();
    }
    for path in ["ws/brain/memory/a.md", "home/read/a.txt", "home/read//./a.txt"] {
        assert_eq!(scene.read(&scene.full(path)).unwrap(), "mine", "{path}");
        assert!(matches!(scene.write(&scene.full(path), "x"), Err(PathError::Refused(_))), "{path}");
    }
    scene.write(&scene.full("home/write/new/er/b.txt"), "new").unwrap();
    assert_eq!(fs::read_to_string(scene.at("home/write/new/er/b.txt")).unwrap(), "new");
    assert!(matches!(scene.read("nothing/here"), Err(PathError::Missing(_))));
    let roots = Roots::new(&scene.at("ws/made/by/need"), &scene.at("ws"));
    roots.resolve("a.txt", PathUse::Write).unwrap().write(b"a", None).unwrap();
    assert_eq!(fs::metadata(scene.at("ws/made/by/need")).unwrap().permissions().mode() & 0o777, 0o700);
}

/// Each spelling names an existing file that can be opened, as the control shows.
#[test]
fn no_spelling_leads_out() {
    let scene = Scene::new();
    let (outside, scratch) = (scene.at("outside"), scene.at("ws/scratch"));
    symlink(&outside, scratch.join("link")).unwrap();
    symlink(outside.join("secret.txt"), scratch.join("secret")).unwrap();
    symlink("../../outside", scratch.join("relative")).unwrap();
    symlink("/", scratch.join("slash")).unwrap();
    symlink("link", scratch.join("chain")).unwrap();
    symlink(outside.join("deep"), scratch.join("deep/link")).unwrap();
    symlink(outside.join("deep"), scratch.join("deep/er/link")).unwrap();
    symlink(&outside, scene.at("home/write/link")).unwrap();
    symlink(&outside, scene.at("ws/brain/memory/link")).unwrap();
    fs::hard_link(outside.join("linked.txt"), scratch.join("hard.txt")).unwrap();
    fs::hard_link(outside.join("linked.txt"), scene.at("home/read/hard.txt")).unwrap();
    for name in [".env", ".ENV", "policy.toml", "Policy.TOML", "messages.db", "messages.db-wal", ".netrc", ".wake-lock"]
    {
        fs::write(scratch.join(name), SECRET).unwrap();
    }
    for folder in [
        ".git",
        ".ssh",
        ".SSH",
        ".Git",
        ".ſsh",
        ".\u{fb01}x",
        ".aws",
        ".gnupg",
        ".claude",
        ".g\u{200c}it",
        "\u{2024}\u{2024}",
    ] {
        fs::create_dir_all(scratch.join(folder)).unwrap();
        fs::write(scratch.join(folder).join("config"), SECRET).unwrap();
    }
    for name in
        ["a\u{202e}b", "line\nend", "bell\u{7}", "nul\u{ad}", "\u{feff}bom", "~", "~root", " ", ".reveille-1.tmp"]
    {
        fs::write(scratch.join(name), SECRET).unwrap();
    }
    let here = |path: &str| scene.full(path);
    let up = "../".repeat(20);
    let top = dir_to_root(&scratch);
    let out = outside.display().to_string();
    let deep = "d/".repeat(70);
    fs::create_dir_all(scratch.join(&deep)).unwrap();
    fs::write(scratch.join(&deep).join("f"), SECRET).unwrap();

    let mut paths: Vec<String> = [
        // Upwards.
        "../../outside/secret.txt",
        "deep/../../../outside/secret.txt",
        "deep/er/../../../../outside/secret.txt",
        "./../../outside/secret.txt",
        "..//..//outside//secret.txt",
        "deep/./../../../outside/./secret.txt",
        "../policy.toml",
        "../.env",
        "../messages.db",
        "../logs/wake.log",
        "../brain/.git/config",
        "../scratch/deep/a.txt",
        "deep/er/../a.txt",
        // Links, at each level.
        "secret",
        "link/secret.txt",
        "link/deep/secret.txt",
        "relative/secret.txt",
        "chain/secret.txt",
        "chain/deep/secret.txt",
        "deep/link/secret.txt",
        "deep/er/link/secret.txt",
        "deep/./link//secret.txt",
        "link/../outside/secret.txt",
        "slash/etc/passwd",
        // Hard links.
        "hard.txt",
        "./hard.txt",
        // Keys and state, in any case.
        ".env",
        ".ENV",
        "./.env",
        "policy.toml",
        "Policy.TOML",
        "messages.db",
        "messages.db-wal",
        ".netrc",
        ".wake-lock",
        ".git/config",
        ".Git/config",
        ".ssh/config",
        ".SSH/config",
        ".ſsh/config",
        ".aws/config",
        ".gnupg/config",
        ".claude/config",
        // Characters a screen doesn't show, and those a shell would expand.
        ".g\u{200c}it/config",
        "a\u{202e}b",
        "line\nend",
        "bell\u{7}",
        "nul\u{ad}",
        "\u{feff}bom",
        "~",
        "~root",
        " ",
        ".reveille-1.tmp",
        // Files of the machine.
        "/etc/passwd",
        "//etc/passwd",
        "/./etc/passwd",
        "/etc/../etc/passwd",
        "/dev/null",
        "/dev/zero",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.extend([
        out.clone() + "/secret.txt",
        format!("/{out}/secret.txt"),
        format!("{out}/./deep/secret.txt"),
        format!("{}/../../../outside/secret.txt", here("ws/scratch/deep")),
        format!("{}/../read/../../outside/secret.txt", here("home/write")),
        here("home/write/link/secret.txt"),
        here("home/read/hard.txt"),
        here("ws/brain/memory/link/secret.txt"),
        here("ws/brain/.git/config"),
        here("ws/policy.toml"),
        here("ws/logs/wake.log"),
        here("ws/messages.db"),
        format!("{up}etc/passwd"),
        format!("{top}etc/passwd"),
        format!("deep/{up}etc/passwd"),
        format!("{deep}f"),
    ]);
    #[cfg(target_os = "linux")]
    paths.extend([
        format!("/proc/self/root{out}/secret.txt"),
        format!("/proc/self/cwd/{}etc/passwd", dir_to_root(&std::env::current_dir().unwrap())),
        format!("slash/proc/self/root{out}/secret.txt"),
        "/proc/self/environ".to_owned(),
        "/proc/version".to_owned(),
        "/sys/kernel/uevent_seqnum".to_owned(),
    ]);
    assert!(paths.len() >= 60, "{}", paths.len());
    for path in &paths {
        let control = fs::File::open(scratch.join(path));
        // This holds whether the file system ignores case or not.
        assert!(control.is_ok(), "the control can't open {path:?}: {control:?}");
        match scene.read(path) {
            Err(PathError::Refused(_)) => {}
            other => panic!("{path:?}: {other:?}"),
        }
    }
    // Paths without a regular file behind them: refused, or reported as missing.
    let long = "a/".repeat(3000);
    for path in [
        "",
        "/",
        "\0",
        "a\0b",
        "deep/a.txt\0.md",
        "deep/a.txt/",
        "deep/a.txt/x",
        "secret/",
        "link",
        "link/",
        ".",
        "..",
        "deep",
        "deep/",
        "/proc/self/fd/0",
        "/dev/stdin",
        "/dev/fd/0",
        "/dev/tty",
        "%2e%2e/%2e%2e/outside/secret.txt",
        "..\\..\\outside",
        "\u{ff0e}\u{ff0e}/outside/secret.txt",
        "\u{2024}\u{2024}/outside/secret.txt",
        "file:///etc/passwd",
        "$HOME/a",
        "~/a",
        "deep/a.txt ",
        "...",
        "deep/.../a.txt",
        "C:\\a",
        "\\\\host\\share",
        "a/..namedfork/rsrc",
        "deep/a.txt/..namedfork/rsrc",
        ".meßages.db",
        ".SſH/x",
        &long,
        &"x".repeat(300),
    ] {
        let read = scene.read(path);
        assert!(
            matches!(read, Err(PathError::Refused(_) | PathError::Missing(_))) || path == "deep/a.txt/",
            "{path:?}: {read:?}"
        );
    }
}

/// Returns the relative path from a folder up to the root.
fn dir_to_root(dir: &Path) -> String {
    "../".repeat(dir.canonicalize().unwrap().components().count() - 1)
}

#[test]
fn no_write_leads_out() {
    let scene = Scene::new();
    let (outside, scratch) = (scene.at("outside"), scene.at("ws/scratch"));
    symlink(&outside, scratch.join("link")).unwrap();
    symlink(outside.join("new.txt"), scratch.join("dangling")).unwrap();
    symlink(outside.join("secret.txt"), scratch.join("secret")).unwrap();
    symlink(&outside, scene.at("home/write/link")).unwrap();
    fs::hard_link(outside.join("linked.txt"), scratch.join("hard.txt")).unwrap();
    let before = scene.outside();
    for path in [
        "link/new.txt",
        "link/deep/secret.txt",
        "link/new/folder/a.txt",
        "dangling",
        "secret",
        "hard.txt",
        "../logs/wake.log",
        "../../outside/secret.txt",
        &scene.full("home/write/link/secret.txt"),
        &scene.full("home/read/a.txt"),
        &scene.full("home/read/new.txt"),
        &scene.full("ws/brain/memory/a.md"),
        &scene.full("ws/policy.toml"),
        &scene.full("outside/new.txt"),
        ".git/hooks/post-commit",
        "deep/.SSH/authorized_keys",
        ".",
        "deep",
    ] {
        let written = scene.write(path, "owned");
        assert!(matches!(written, Err(PathError::Refused(_) | PathError::Exists(_))), "{path:?}: {written:?}");
    }
    assert_eq!(scene.outside(), before);
    assert!(!scratch.join(".git").exists() && !scratch.join("deep/.SSH").exists());
    // The controls.
    fs::write(scratch.join("link/new.txt"), "owned").unwrap();
    fs::write(scratch.join("dangling"), "owned").unwrap();
    fs::write(scratch.join("hard.txt"), "owned").unwrap();
    assert_eq!(fs::read_to_string(outside.join("linked.txt")).unwrap(), "owned");
    assert_ne!(scene.outside(), before);
}

#[test]
fn pipes_and_sockets_never_block() {
    let scene = Scene::new();
    let pipe = scene.scratch("pipe");
    mknodat(CWD, &pipe, Special::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scene.scratch("socket")).unwrap();
    for name in ["pipe", "socket"] {
        assert!(matches!(scene.read(name), Err(PathError::Refused(_))), "{name}");
        assert!(matches!(scene.write(name, "x"), Err(PathError::Exists(_))), "{name}");
    }
    assert_eq!(scene.roots().resolve("pipe", PathUse::Read).unwrap().kind().unwrap(), Some(BeneathKind::Other));
}

#[test]
fn our_own_state_is_unreachable_within_a_granted_folder() {
    let scene = Scene::new();
    let roots =
        Roots::new(&scene.at("ws/scratch"), &scene.at("ws")).with_granted_folders(&[], &[scene.dir.path().to_owned()]);
    let read = |path: &str| roots.resolve(&scene.full(path), PathUse::Read).and_then(|place| place.read(1000));
    for path in ["ws/logs/wake.log", "ws/brain/memory/a.md", "ws/messages.db"] {
        assert!(fs::read(scene.at(path)).is_ok());
        assert!(matches!(read(path), Err(PathError::Refused(_))), "{path}");
    }
    assert_eq!(read("outside/secret.txt").unwrap().0, SECRET.as_bytes(), "the granted file");
    assert_eq!(read("ws/scratch/deep/a.txt").unwrap().0, b"mine", "the scratch folder's own file");
    // Under another name as well.
    fs::rename(scene.at("ws"), scene.at("moved")).unwrap();
    symlink("moved", scene.at("ws")).unwrap();
    assert!(matches!(read("moved/logs/wake.log"), Err(PathError::Refused(_))));
}

#[test]
fn a_key_file_is_not_opened_within_a_granted_folder() {
    let scene = Scene::new();
    let (key, link) = (scene.at("home/write/key"), scene.at("key"));
    fs::write(&key, SECRET).unwrap();
    // The settings may name the key file through a link.
    symlink(&key, &link).unwrap();
    let roots = || scene.roots().without_files(std::slice::from_ref(&link));
    let read = |path: &str| roots().resolve(&scene.full(path), PathUse::Read).and_then(|place| place.read(1000));
    assert_eq!(read("home/write/a.txt").unwrap().0, b"mine");
    assert!(matches!(read("home/write/key"), Err(PathError::Refused(_))));
    let inner = roots().resolve(&scene.full("home/write"), PathUse::Read).unwrap().join("key").unwrap();
    assert!(matches!(inner.read(1000), Err(PathError::Refused(_))));
    // Under another name too, since the open file is compared.
    fs::rename(&key, scene.at("home/write/moved")).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(scene.at("home/write/moved"), &link).unwrap();
    assert!(matches!(read("home/write/moved"), Err(PathError::Refused(_))));
    assert_eq!(scene.read(&scene.full("home/write/moved")).unwrap(), SECRET, "the control");
}

#[test]
fn an_inner_folder_is_opened_through_the_outer_one() {
    let scene = Scene::new();
    fs::create_dir(scene.at("home/write/inner")).unwrap();
    let roots = || {
        Roots::new(&scene.at("ws/scratch"), &scene.at("ws"))
            .with_granted_folders(&[scene.at("home/write/inner")], &[scene.at("home/write")])
    };
    let read = || {
        roots().resolve(&scene.full("home/write/inner/secret.txt"), PathUse::Read).and_then(|place| place.read(1000))
    };
    assert!(matches!(read(), Err(PathError::Missing(_))));
    fs::remove_dir(scene.at("home/write/inner")).unwrap();
    symlink(scene.at("outside"), scene.at("home/write/inner")).unwrap();
    assert!(matches!(read(), Err(PathError::Refused(_))));
    assert!(fs::read(scene.at("home/write/inner/secret.txt")).is_ok(), "the control");
}

#[test]
fn a_file_is_replaced_in_full_and_keeps_its_permissions() {
    let scene = Scene::new();
    let path = scene.at("home/write/run.sh");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let place = scene.roots().resolve(path.to_str().unwrap(), PathUse::Write).unwrap();
    let (_, stamp) = place.read(1000).unwrap();
    assert!(stamp.is_executable());
    place.write(b"new", Some(&stamp)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    // The file has changed since it was read.
    assert!(matches!(place.write(b"third", Some(&stamp)), Err(PathError::Changed(_))));
    assert!(matches!(place.remove(&stamp), Err(PathError::Changed(_))));
    assert!(matches!(place.write(b"third", None), Err(PathError::Exists(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    let (_, stamp) = place.read(1000).unwrap();
    assert!(matches!(place.read(2), Err(PathError::Refused(_))), "a file above the limit was read");
    place.remove(&stamp).unwrap();
    assert!(matches!(place.remove(&stamp), Err(PathError::Missing(_))));
    assert_eq!(fs::read_dir(scene.at("home/write")).unwrap().count(), 1, "a temporary file is left");
}

/// The edit falls between the last look and the exchange. No timing can hit that moment, so the steps are called singly.
#[test]
fn a_file_changed_before_the_exchange_is_put_back() {
    let scene = Scene::new();
    fs::write(scene.scratch("a.txt"), "old").unwrap();
    let place = scene.roots().resolve("a.txt", PathUse::Write).unwrap();
    let (_, stamp) = place.read(1000).unwrap();
    let (directory, name) = place.open_parent(MissingFolders::Refuse).unwrap().unwrap();
    place.write_temporary(&directory, ".reveille-x", b"ours", 0o644).unwrap();
    fs::write(scene.scratch("b.txt"), "theirs, just now").unwrap();
    fs::rename(scene.scratch("b.txt"), scene.scratch("a.txt")).unwrap();
    assert!(matches!(
        place.rename_temporary(&directory, ".reveille-x", name, Some(&stamp)),
        Err(PathError::Changed(_))
    ));
    assert!(matches!(place.rename_temporary(&directory, ".reveille-x", name, None), Err(PathError::Exists(_))));
    assert!(matches!(place.exchange_files(&directory, ".reveille-x", name, &stamp), Err(PathError::Changed(_))));
    assert_eq!(fs::read_to_string(scene.scratch("a.txt")).unwrap(), "theirs, just now");
}

/// Starts a thread that keeps swapping the real `folder` and `link` for each other, until `end` is set.
fn swapping(folder: &Path, link: &Path, end: &Arc<AtomicBool>) -> thread::JoinHandle<()> {
    let (folder, link, end) = (folder.to_owned(), link.to_owned(), Arc::clone(end));
    thread::spawn(move || {
        while !end.load(Ordering::Relaxed) {
            renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        }
    })
}

#[test]
fn a_folder_swapped_for_a_link_during_a_write_leads_nowhere() {
    const ROUNDS: usize = 300;
    const AT_MOST: usize = 2_000_000;
    let scene = Scene::new();
    let folder = scene.scratch("folder");
    fs::create_dir(&folder).unwrap();
    let link = scene.scratch("link");
    symlink(scene.at("outside"), &link).unwrap();
    let before = scene.outside();
    let end = Arc::new(AtomicBool::new(false));
    let swapper = swapping(&folder, &link, &end);

    let (mut written, mut refused, mut rounds) = (0, 0, 0);
    while (written < ROUNDS || refused < ROUNDS) && rounds < AT_MOST {
        rounds += 1;
        match scene.write("folder/a.txt", &format!("round {rounds}")) {
            Ok(()) => written += 1,
            Err(PathError::Refused(_)) => refused += 1,
            Err(PathError::Exists(_) | PathError::Changed(_) | PathError::Missing(_)) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(scene.read("folder/secret.txt").is_err(), "a file outside was read");
        scene.roots().resolve("folder", PathUse::Read).unwrap().list().ok();
    }
    let after = scene.outside();
    // The control: opened by path, the same file is soon outside.
    let fooled = (0..AT_MOST).any(|_| {
        fs::write(folder.join("control.txt"), "x").ok();
        scene.at("outside/control.txt").exists()
    });
    end.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(after, before);
    assert!(written >= ROUNDS && refused >= ROUNDS, "{written} written, {refused} refused in {rounds} rounds");
    assert!(fooled, "the control wasn't fooled: the test proves nothing");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// For any mixture of parts: reads return our own text, and writes stay inside.
    #[test]
    fn no_random_path_leads_out(parts in prop::collection::vec(prop::sample::select(vec![
        "..", ".", "", "deep", "er", "link", "a.txt", "secret.txt", "outside", "ws", "scratch", ".git", "policy.toml", "etc", "passwd", "~",
    ]), 1..8), is_absolute in any::<bool>()) {
        let scene = Scene::new();
        symlink(scene.at("outside"), scene.scratch("link")).unwrap();
        symlink(scene.dir.path(), scene.scratch("deep/link")).unwrap();
        let before = scene.outside();
        let joined = parts.join("/");
        let path = if is_absolute { format!("{}/{joined}", scene.dir.path().display()) } else { joined };
        if let Ok(text) = scene.read(&path) {
            prop_assert_eq!(text, "mine");
        }
        scene.write(&path, "mine").ok();
        prop_assert_eq!(scene.outside(), before);
    }
}
