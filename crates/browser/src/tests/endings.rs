//! The end of a browser: nothing is left.

use std::{path::Path, process::Command};

use super::{World, options, program, site::Site};
use crate::{Browser, LaunchError};

/// The running processes whose command line names a folder.
fn processes_of(folder: &Path) -> Vec<String> {
    let wanted = folder.display().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&wanted).then(|| format!("{} {line}", entry.path().display()))
        })
        .collect()
}

/// Waits until no process of a folder runs.
#[track_caller]
fn assert_gone(folder: &Path) {
    let began = std::time::Instant::now();
    loop {
        let left = processes_of(folder);
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed().as_secs() < 30, "{left:#?}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn leftovers(folder: &Path) -> Vec<String> {
    let names = ["SingletonLock", "SingletonSocket", "SingletonCookie", "tmp"];
    let profile = folder.join("profile");
    names.iter().filter(|name| profile.join(name).symlink_metadata().is_ok()).map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn nothing_is_left_after_an_end_and_a_drop_and_cookies_are_kept() {
    let page = "<script>document.title = document.cookie || 'none'; document.cookie = 'seen=yes; max-age=9999'</script><h1>Hi</h1>";
    let Some(mut world) = World::start(&[("/", page)]).await else { return };
    let opened = world.open("/").await;
    assert!(opened.contains("Title: none"), "{opened}");
    assert!(!processes_of(world.folder.path()).is_empty());
    let World { browser, site, folder } = world;
    browser.end().await;
    assert_gone(folder.path());
    assert_eq!(leftovers(folder.path()), [] as [&str; 0]);

    let browser = Browser::start(options(program().unwrap(), &folder, &site)).await.unwrap();
    let mut world = World { browser, site, folder };
    let opened = world.open("/").await;
    assert!(opened.contains("Title: seen=yes"), "{opened}");
    let in_use = Browser::start(options(program().unwrap(), &world.folder, &world.site)).await.unwrap_err();
    assert!(matches!(in_use, LaunchError::ProfileInUse(_)), "{in_use}");
    let World { browser, folder, .. } = world;
    drop(browser);
    assert_gone(folder.path());
    assert_eq!(leftovers(folder.path()), [] as [&str; 0]);
}

/// Holds a browser until it is killed; started by the test below.
#[tokio::test]
#[ignore = "a helper of another test"]
async fn hold_a_browser() {
    let Ok(path) = std::fs::read_to_string("held-folder") else { return };
    let folder = Path::new(path.trim()).to_owned();
    let site = Site::serve(&[("/", "<h1>Held</h1>")]);
    let mut options = options(program().unwrap(), &tempfile::TempDir::new_in(&folder).unwrap(), &site);
    options.profile = folder.join("profile");
    let _browser = Browser::start(options).await.unwrap();
    std::fs::write(folder.join("started"), "").unwrap();
    std::future::pending::<()>().await;
}

#[test]
fn nothing_is_left_after_its_parent_was_killed() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("held-folder"), folder.path().display().to_string()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "this test once more, to be killed")]
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::endings::hold_a_browser", "--ignored"])
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    while !folder.path().join("started").exists() {
        assert!(began.elapsed().as_secs() < 60 && parent.try_wait().unwrap().is_none(), "it didn't start");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(processes_of(&folder.path().join("profile")).len() > 2);
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_gone(&folder.path().join("profile"));
}
