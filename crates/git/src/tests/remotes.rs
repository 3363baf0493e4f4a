use std::{fs::File, os::unix::fs::PermissionsExt as _};

use super::*;

fn pull(repo: &Repo) -> Integrated {
    repo.remote().fetch(TIMEOUT).unwrap();
    repo.remote().integrate(now(), &both).unwrap()
}

fn publish_active(world: &World, repo: &Repo, content: &str) -> Oid {
    let base = world.read(ACTIVE);
    repo.publish(&wake(&[change(ACTIVE, Some(&base), Some(content))])).unwrap().commit
}

fn hook(world: &World, name: &str, script: &str) {
    let file = world.path("remote.git/hooks").join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn eventually(is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < 6 * TIMEOUT, "it never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn without_a_remote_there_is_nothing_to_do() {
    let world = World::new();
    let repo = world.local();
    assert_eq!(repo.remote().fetch(TIMEOUT), Err(RemoteError::NoRemote));
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::NoRemote));
    assert_eq!(repo.remote().integrate(now(), &both).unwrap(), Integrated::NoRemote);
    assert_eq!(repo.count_ahead_behind().unwrap(), None);
}

#[test]
fn ahead_then_pushed_then_up_to_date() {
    let world = World::new();
    let repo = world.shared();
    assert_eq!(pull(&repo), Integrated::UpToDate);
    let commit = publish_active(&world, &repo, "ours\n");
    assert_eq!(pull(&repo), Integrated::Ahead { commits: 1 });
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(commit));
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::UpToDate);
    assert_eq!(pull(&repo), Integrated::UpToDate);
    assert_eq!(world.git_in("remote.git", &["rev-parse", "main"]).trim(), commit.to_string());
    assert_eq!(world.status(), "");
}

/// On a remote on this machine, a push that was killed with all its children leaves a lock that only we can clear.
#[test]
fn a_dead_lock_in_a_remote_that_is_a_path_is_cleared_away_once_it_is_old() {
    let world = World::new();
    let repo = world.shared();
    let lock = world.path("remote.git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let commit = publish_active(&world, &repo, "ours\n");
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::Locked), "somebody may be pushing");
    assert!(lock.exists());
    File::options().write(true).open(&lock).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(commit));
    assert!(!lock.exists());
}

/// For example a push of ours that was killed a moment ago.
#[test]
fn a_lock_whose_holder_is_alive_in_a_remote_that_is_a_path_is_waited_for() {
    let world = World::new();
    let commit = publish_active(&world, &world.shared(), "ours\n");
    hook(&world, "reference-transaction", "test -e held || { touch held; until test -e let-go; do sleep 0.01; done; }");
    hook(&world, "pre-receive", "touch knocked");
    let remote = world.path("remote.git");
    let is_there = |name: &str| remote.join(name).exists();
    std::thread::scope(|scope| {
        scope.spawn(|| world.git_in("remote.git", &["update-ref", "refs/heads/main", "main"]));
        eventually(|| is_there("held"));
        let push = scope.spawn(|| Repo::open(&world.brain()).unwrap().remote().push(TIMEOUT, &never_secret));
        eventually(|| is_there("knocked") && !process::is_running_in("git", &world.brain()));
        fs::write(remote.join("let-go"), "").unwrap();
        assert_eq!(push.join().unwrap().unwrap(), Pushed::To(commit));
    });
}

/// A push that exceeds its time while the remote's branch is locked is first asked to end, so it removes its lock.
#[test]
fn a_push_that_is_ended_in_the_middle_leaves_no_lock_in_the_remote() {
    let world = World::new();
    let repo = world.shared();
    let commit = publish_active(&world, &repo, "ours\n");
    hook(&world, "reference-transaction", "test \"$1\" != prepared || { ls refs/heads >locked; sleep 1000; }");
    assert_eq!(repo.remote().push(Duration::from_secs(2), &never_secret), Err(RemoteError::TimedOut));
    assert_eq!(fs::read_to_string(world.path("remote.git/locked")).unwrap(), "main\nmain.lock\n");
    assert!(!world.path("remote.git/refs/heads/main.lock").exists());
    fs::remove_file(world.path("remote.git/hooks/reference-transaction")).unwrap();
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(commit));
}

/// A kill while the remote's position is noted leaves a lock. Only we write there.
#[test]
fn a_dead_lock_on_what_was_seen_of_the_remote_is_cleared_away() {
    for reference in ["refs/reveille/remote/main", "refs/remotes/origin/main"] {
        let world = World::new();
        let repo = world.shared();
        let lock = world.file(&format!(".git/{reference}.lock"));
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(&lock, "").unwrap();
        let commit = publish_active(&world, &repo, "ours\n");
        assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(commit));
        assert_eq!(pull(&repo), Integrated::UpToDate);
        assert_eq!(world.git(&["rev-parse", reference]).trim(), commit.to_string());
        assert!(!lock.exists(), "{reference} is still locked");
    }
}

#[test]
fn a_remote_that_moved_alone_is_followed() {
    let world = World::new();
    let repo = world.shared();
    world.other_pushes("memory/neu und größer.md", "von anderswo\n".as_bytes());
    fs::remove_file(world.path("other/claude.md")).unwrap();
    world.other_pushes("run.sh", b"#!/bin/sh\n");
    let before = repo.head().unwrap();
    assert!(matches!(pull(&repo), Integrated::FastForward { from, .. } if from == before));
    assert_eq!(world.read("memory/neu und größer.md"), "von anderswo\n");
    assert!(!world.file("claude.md").exists());
    assert_eq!(world.status(), "");
    world.assert_sound();
}

#[test]
fn a_remote_that_moved_is_merged_and_pushed() {
    let world = World::new();
    let repo = world.shared();
    world.other_pushes("memory/theirs.md", b"theirs\n");
    publish_active(&world, &repo, "ours\n");
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::Moved));
    let Integrated::Merged { commit, conflicts } = pull(&repo) else { panic!("not merged") };
    assert_eq!(conflicts, Vec::<String>::new());
    assert_eq!((world.read(ACTIVE).as_str(), world.read("memory/theirs.md").as_str()), ("ours\n", "theirs\n"));
    assert_eq!(world.git(&["rev-list", "--parents", "-1", "HEAD"]).split_whitespace().count(), 3);
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(commit));
    assert_eq!(world.status(), "");
    world.assert_sound();
}

#[test]
fn a_conflict_in_a_text_goes_to_the_merge_and_in_anything_else_the_person_wins() {
    let world = World::new();
    let repo = world.shared();
    fs::write(world.file("photo.bin"), b"\0base").unwrap();
    world.git(&["add", "-A"]);
    world.git(&["commit", "--quiet", "-m", "a photo"]);
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    world.git_in("other", &["pull", "--quiet"]);

    fs::write(world.file("photo.bin"), b"\0ours").unwrap();
    fs::write(world.file("claude.md"), "ours, which they delete\n").unwrap();
    world.git(&["commit", "--quiet", "-am", "ours"]);
    publish_active(&world, &repo, "ours\n");
    fs::write(world.path("other/photo.bin"), b"\0theirs").unwrap();
    fs::remove_file(world.path("other/claude.md")).unwrap();
    world.other_pushes(ACTIVE, b"theirs\n");

    let Integrated::Merged { conflicts, .. } = pull(&repo) else { panic!("not merged") };
    assert_eq!(conflicts, ["claude.md", ACTIVE, "photo.bin"]);
    assert_eq!(world.read(ACTIVE), "theirs\n<ours>\nours\n");
    assert_eq!(fs::read(world.file("photo.bin")).unwrap(), b"\0theirs");
    assert_eq!(fs::read(world.file("photo.bin.ours")).unwrap(), b"\0ours");
    assert!(!world.file("claude.md").exists());
    assert_eq!(world.read("claude.md.ours"), "ours, which they delete\n");
    assert_eq!(world.status(), "");
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    world.assert_sound();
}

#[test]
fn an_uncommitted_file_in_the_way_stops_it_before_anything_changes() {
    let world = World::new();
    let repo = world.shared();
    world.other_pushes("draft.txt", b"theirs\n");
    world.write("draft.txt", "never committed\n");
    let head = repo.head().unwrap();
    repo.remote().fetch(TIMEOUT).unwrap();
    let error = repo.remote().integrate(now(), &both).unwrap_err();
    assert!(
        matches!(&error, RepoError::Blocked { path, obstacle: Obstacle::Uncommitted } if path == "draft.txt"),
        "{error}"
    );
    assert_eq!((repo.head().unwrap(), world.read("draft.txt").as_str()), (head, "never committed\n"));
    fs::remove_file(world.file("draft.txt")).unwrap();
    assert!(matches!(pull(&repo), Integrated::FastForward { .. }));
}

#[test]
fn a_remote_that_went_back_is_refused_until_a_person_decides() {
    let world = World::new();
    let repo = world.shared();
    let first = repo.head().unwrap().unwrap();
    let lost = publish_active(&world, &repo, "published\n");
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    world.git_in("remote.git", &["update-ref", "refs/heads/main", &first.to_string()]);
    let newest = publish_active(&world, &repo, "newer\n");

    let rescue_ref = format!("refs/reveille/rescue/{lost}");
    assert_eq!(pull(&repo), Integrated::RewoundRemote { rescue_ref: rescue_ref.clone() });
    assert_eq!(
        repo.remote().push(TIMEOUT, &never_secret),
        Err(RemoteError::Rewound { rescue_ref: rescue_ref.clone() })
    );
    assert_eq!(world.git(&["rev-parse", &rescue_ref]).trim(), lost.to_string());
    assert_eq!(repo.head().unwrap(), Some(newest));
    assert_eq!(world.git_in("remote.git", &["rev-parse", "main"]).trim(), first.to_string());

    // The person follows the remote, which settles the matter.
    world.git(&["reset", "--quiet", "--hard", "origin/main"]);
    assert_eq!(pull(&repo), Integrated::UpToDate);
    publish_active(&world, &repo, "onwards\n");
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    world.assert_sound();
}

/// On top of the older commit, a push of ours would be a fast-forward that restores the removed commits.
#[test]
fn a_remote_that_went_back_or_lost_its_branch_since_the_last_fetch_is_not_restored_by_a_push() {
    for is_gone in [false, true] {
        let world = World::new();
        let repo = world.shared();
        let first = repo.head().unwrap().unwrap().to_string();
        let lost = publish_active(&world, &repo, "published\n");
        repo.remote().push(TIMEOUT, &never_secret).unwrap();
        let back = ["update-ref", "refs/heads/main", &first];
        world.git_in("remote.git", if is_gone { &["update-ref", "-d", "refs/heads/main"] } else { &back });
        let there = world.git_in("remote.git", &["for-each-ref"]);
        publish_active(&world, &repo, "newer\n");

        assert_eq!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::Moved));
        let rescue_ref = format!("refs/reveille/rescue/{lost}");
        assert_eq!(pull(&repo), Integrated::RewoundRemote { rescue_ref: rescue_ref.clone() });
        assert_eq!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::Rewound { rescue_ref }));
        assert_eq!(world.git_in("remote.git", &["for-each-ref"]), there);
        world.assert_sound();
    }
}

/// The answer to the first push was lost. The remote holds only our commits, so the next push succeeds after a fetch.
#[test]
fn a_push_that_arrived_unnoticed_holds_up_none() {
    let world = World::new();
    let repo = world.shared();
    let seen = repo.head().unwrap().unwrap();
    let first = publish_active(&world, &repo, "first\n");
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    repo.remote().record_remote_commit(seen).unwrap();
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(first));
    repo.remote().record_remote_commit(seen).unwrap();
    let second = publish_active(&world, &repo, "second\n");
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::Moved));
    assert_eq!(pull(&repo), Integrated::Ahead { commits: 1 });
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(second));
}

#[test]
fn a_remote_with_a_replaced_history_is_refused_even_if_the_person_fetched_first() {
    let world = World::new();
    let repo = world.shared();
    publish_active(&world, &repo, "published\n");
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    fs::write(world.path("other/claude.md"), "rewritten\n").unwrap();
    world.git_in("other", &["commit", "--quiet", "-a", "--amend", "-m", "rewritten"]);
    world.git_in("other", &["push", "--quiet", "--force", "origin", "HEAD"]);
    world.git(&["fetch", "--quiet"]);
    assert!(matches!(pull(&repo), Integrated::RewoundRemote { .. }));
    // Restored by hand at the remote, which settles the matter.
    world.git(&["push", "--quiet", "--force", "origin", "main"]);
    assert_eq!(pull(&repo), Integrated::UpToDate);
}

#[test]
fn a_branch_that_is_gone_or_a_remote_made_anew_is_refused_until_a_person_pushes() {
    for made_anew in [false, true] {
        let world = World::new();
        let repo = world.shared();
        let lost = publish_active(&world, &repo, "published\n");
        repo.remote().push(TIMEOUT, &never_secret).unwrap();
        if made_anew {
            fs::remove_dir_all(world.path("remote.git")).unwrap();
            world.empty_remote();
        } else {
            world.git_in("remote.git", &["update-ref", "-d", "refs/heads/main"]);
        }
        let newest = publish_active(&world, &repo, "newer\n");
        let rescue_ref = format!("refs/reveille/rescue/{lost}");
        for _ in 0..2 {
            assert_eq!(pull(&repo), Integrated::RewoundRemote { rescue_ref: rescue_ref.clone() });
            assert_eq!(
                repo.remote().push(TIMEOUT, &never_secret),
                Err(RemoteError::Rewound { rescue_ref: rescue_ref.clone() })
            );
        }
        assert_eq!(world.git_in("remote.git", &["for-each-ref"]), "");
        assert_eq!((repo.head().unwrap(), repo.count_ahead_behind().unwrap()), (Some(newest), None));
        world.git(&["push", "--quiet", "origin", "main"]);
        assert_eq!(pull(&repo), Integrated::UpToDate);
        let onwards = publish_active(&world, &repo, "onwards\n");
        assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(onwards));
        world.assert_sound();
    }
}

/// Each solution the alarm names.
#[test]
fn a_replaced_history_is_settled_by_merging_following_or_forcing() {
    for way in ["merge", "follow", "force"] {
        let world = World::new();
        let repo = world.shared();
        let lost = publish_active(&world, &repo, "published\n");
        repo.remote().push(TIMEOUT, &never_secret).unwrap();
        // An unrelated history.
        world.git_in("other", &["checkout", "--quiet", "--orphan", "fresh"]);
        fs::write(world.path("other/fresh.md"), "fresh\n").unwrap();
        world.git_in("other", &["add", "-A"]);
        world.git_in("other", &["commit", "--quiet", "-m", "fresh"]);
        world.git_in("other", &["push", "--quiet", "--force", "origin", "fresh:main"]);
        let newest = publish_active(&world, &repo, "newer\n");
        assert!(matches!(pull(&repo), Integrated::RewoundRemote { .. }));
        assert_eq!(world.git(&["rev-parse", &format!("refs/reveille/rescue/{lost}")]).trim(), lost.to_string());
        match way {
            "merge" => {
                let merge =
                    ["merge", "--quiet", "--allow-unrelated-histories", "--no-edit", "-X", "ours", "origin/main"];
                world.git(&merge);
                assert!(matches!(pull(&repo), Integrated::Ahead { .. }));
                assert_eq!(
                    repo.remote().push(TIMEOUT, &never_secret).unwrap(),
                    Pushed::To(repo.head().unwrap().unwrap())
                );
                assert_eq!(world.read("fresh.md"), "fresh\n");
            }
            "follow" => {
                world.git(&["branch", "before-reset"]);
                world.git(&["reset", "--quiet", "--keep", "origin/main"]);
                assert_eq!(pull(&repo), Integrated::UpToDate);
                assert_eq!(world.git(&["rev-parse", "before-reset"]).trim(), newest.to_string());
            }
            _ => {
                world.git(&["push", "--quiet", "--force", "origin", "main"]);
                assert_eq!(pull(&repo), Integrated::UpToDate);
            }
        }
        world.assert_sound();
    }
}

#[test]
fn an_unrelated_history_is_refused() {
    let world = World::new();
    world.local();
    let url = world.empty_remote();
    world.git_in("home", &["init", "--quiet", "--initial-branch=main", "../other"]);
    world.git_in("other", &["remote", "add", "origin", &url]);
    world.other_pushes("x.md", b"x\n");
    let (repo, _) = Repo::open_or_create(&world.brain(), Some(&url), &TEMPLATES, now()).unwrap();
    repo.remote().fetch(TIMEOUT).unwrap();
    assert!(matches!(repo.remote().integrate(now(), &both), Err(RepoError::Unrelated)));
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::Moved));
}

#[test]
fn a_hook_that_says_no_is_passed_on() {
    let world = World::new();
    let repo = world.shared();
    let commit = publish_active(&world, &repo, "ours\n");
    hook(&world, "pre-receive", "echo 'no commits on Sundays' >&2; exit 1");
    let error = repo.remote().push(TIMEOUT, &never_secret).unwrap_err();
    assert!(matches!(&error, RemoteError::Refused { why } if why.contains("no commits on Sundays")), "{error}");
    fs::remove_file(world.path("remote.git/hooks/pre-receive")).unwrap();
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(commit));
}

#[test]
fn a_remote_that_stalls_is_given_up() {
    let world = World::new();
    let repo = world.shared();
    publish_active(&world, &repo, "ours\n");
    hook(&world, "pre-receive", "sleep 1000");
    assert_eq!(repo.remote().push(Duration::from_millis(500), &never_secret), Err(RemoteError::TimedOut));
    world.assert_sound();
}

#[test]
fn a_remote_that_is_gone_is_unreachable_and_the_work_waits() {
    let world = World::new();
    let repo = world.shared();
    let commit = publish_active(&world, &repo, "ours\n");
    fs::rename(world.path("remote.git"), world.path("away.git")).unwrap();
    assert!(matches!(repo.remote().fetch(TIMEOUT), Err(RemoteError::Unreachable { .. })));
    assert!(matches!(repo.remote().push(TIMEOUT, &never_secret), Err(RemoteError::Unreachable { .. })));
    fs::rename(world.path("away.git"), world.path("remote.git")).unwrap();
    assert_eq!(repo.remote().push(TIMEOUT, &never_secret).unwrap(), Pushed::To(commit));
}

#[test]
fn the_repositorys_own_programs_are_not_run() {
    let world = World::new();
    let repo = world.shared();
    let ran = world.path("ran");
    let script = format!("touch '{}'", ran.display());
    for name in ["pre-push", "post-merge", "reference-transaction", "post-commit", "post-checkout"] {
        let file = world.file(".git/hooks").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    world.git(&["config", "core.fsmonitor", &script]);
    fs::remove_file(&ran).ok();
    world.other_pushes("memory/theirs.md", b"theirs\n");
    publish_active(&world, &repo, "ours\n");
    pull(&repo);
    world.write(ACTIVE, "edited\n");
    repo.commit_person_edits(now(), &never_secret, &both).unwrap();
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    assert!(!ran.exists());
}

#[test]
fn over_ssh_the_persons_own_command_is_used() {
    let world = World::new();
    let repo = world.shared();
    let ssh = world.path("ssh");
    let asked = world.path("asked");
    // Notes its arguments, then acts as the server would.
    fs::write(
        &ssh,
        format!("#!/bin/sh\necho \"$@\" >> '{}'\nfor last; do :; done\nexec sh -c \"$last\"\n", asked.display()),
    )
    .unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    world.git(&["config", "core.sshCommand", ssh.to_str().unwrap()]);
    world.git(&[
        "remote",
        "set-url",
        "origin",
        &format!("ssh://ann@example.org{}", world.path("remote.git").display()),
    ]);
    world.other_pushes("memory/theirs.md", b"theirs\n");
    publish_active(&world, &repo, "ours\n");
    assert!(matches!(pull(&repo), Integrated::Merged { .. }));
    repo.remote().push(TIMEOUT, &never_secret).unwrap();
    let asked = fs::read_to_string(asked).unwrap();
    assert!(asked.contains("git-upload-pack") && asked.contains("git-receive-pack"), "{asked}");
    assert!(asked.lines().all(|line| line.contains("ann@example.org")), "{asked}");

    fs::write(&ssh, "#!/bin/sh\necho 'ann@example.org: Permission denied (publickey).' >&2\nexit 255\n").unwrap();
    assert!(matches!(repo.remote().fetch(TIMEOUT), Err(RemoteError::Auth { .. })));
}

/// A web server that gives every request the same status line and headers. With an empty `answer` it never answers.
fn web_server(answer: &'static str) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if answer.is_empty() {
                held.push(stream);
                continue;
            }
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).unwrap();
            let closing = "Content-Length: 0\r\nConnection: close\r\n\r\n";
            write!(stream, "HTTP/1.1 {answer}\r\n{closing}").unwrap();
        }
    });
    format!("http://{address}/brain.git")
}

#[test]
fn over_http_each_failure_is_told_apart() {
    let world = World::new();
    let repo = world.shared();
    world.git(&["config", "credential.helper", ""]);
    let fetched = |answer| {
        world.git(&["remote", "set-url", "origin", &web_server(answer)]);
        repo.remote().fetch(if answer.is_empty() { Duration::from_millis(500) } else { TIMEOUT })
    };
    let denied = fetched("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"");
    assert!(matches!(denied, Err(RemoteError::Auth { .. })), "{denied:?}");
    let forbidden = fetched("403 Forbidden");
    assert!(matches!(forbidden, Err(RemoteError::Auth { .. })), "{forbidden:?}");
    let broken = fetched("503 Service Unavailable");
    assert!(matches!(broken, Err(RemoteError::Unreachable { .. })), "{broken:?}");
    assert_eq!(fetched(""), Err(RemoteError::TimedOut));
}

#[test]
fn credentials_are_redacted_wherever_they_stand() {
    use super::super::remote::redact_urls;
    for (said, passed_on) in [
        (
            "fatal: unable to access 'https://ann:hunter2@example.org/x.git/': no",
            "fatal: unable to access 'https://***@example.org/x.git/': no",
        ),
        ("https://token@a/b and http://u:p@q@b", "https://***@a/b and http://***@b"),
        ("ssh://git@example.org:22/x", "ssh://***@example.org:22/x"),
        ("https://example.org/a@b", "https://example.org/a@b"),
        ("git@example.org:x.git", "git@example.org:x.git"),
    ] {
        assert_eq!(redact_urls(said), passed_on);
    }
    let world = World::new();
    let url = "http://ann:hunter2@127.0.0.1:1/x.git";
    let (_, created) = Repo::open_or_create(&world.brain(), Some(url), &TEMPLATES, now()).unwrap();
    let Created::Unjoined(why) = created else { panic!("{created:?}") };
    let why = why.to_string();
    assert!(why.contains("127.0.0.1") && !why.contains("hunter2"), "{why}");
}

/// No part of the commit is taken: our branch never points to a commit the work tree can't show.
#[test]
fn a_commit_of_the_remotes_that_can_not_be_checked_out_does_not_advance_the_branch() {
    for (name, says) in
        [("git~1/a.md".to_owned(), "a name that git reserves"), ("d/".repeat(120) + "a.md", "99 folders")]
    {
        for has_own in [false, true] {
            let world = World::new();
            let repo = world.shared();
            world.git_in("other", &["config", "core.protectNTFS", "false"]);
            world.other_pushes(&name, b"odd\n");
            let before = if has_own { publish_active(&world, &repo, "ours\n") } else { repo.head().unwrap().unwrap() };
            repo.remote().fetch(TIMEOUT).unwrap();
            let error = repo.remote().integrate(now(), &both).unwrap_err();
            let is_named = matches!(&error, RepoError::Blocked { path, .. } if *path == name);
            assert!(is_named && error.to_string().contains(says), "{error}");
            assert_eq!(repo.head().unwrap(), Some(before));
            assert!(!world.file("git~1").exists() && !world.file("d").exists());
            publish_active(&world, &repo, "ours, still\n");

            world.git_in("other", &["rm", "-q", &name]);
            world.other_pushes("mended.md", b"mended\n");
            pull(&repo);
            assert_eq!(world.read("mended.md"), "mended\n");
            assert_eq!(world.status(), "");
        }
    }
}

#[test]
fn a_push_goes_with_the_move_of_another_reference_or_not_at_all() {
    for scheme in ["", "file://"] {
        let world = World::new();
        let repo = world.shared();
        let url = format!("{scheme}{}", world.path("remote.git").display());
        world.git(&["remote", "set-url", "origin", &url]);
        let lease =
            |own: &str| LeaseRef::new(&world.brain(), &world.path(own), &url, "refs/reveille/lease/wake".to_owned());
        let (ours, others) = (lease("ours.git"), lease("others.git"));
        let (first, second) = (ours.create_value("first").unwrap(), ours.create_value("second").unwrap());
        assert!(ours.swap(None, first, TIMEOUT).unwrap());
        assert!(!others.swap(None, others.create_value("theirs").unwrap(), TIMEOUT).unwrap(), "it is there by now");
        let tip = publish_active(&world, &repo, "# Active\n\nOne.\n");
        let theirs = others.create_value("theirs").unwrap();
        assert!(others.swap(Some(first), theirs, TIMEOUT).unwrap());
        let before = repo.count_ahead_behind().unwrap();
        let push =
            |old, new| repo.remote().push_with_reference(TIMEOUT, &never_secret, Some(&ours.plan_swap(old, new)));
        assert_eq!(push(first, second), Err(RemoteError::LeaseLost));
        assert_eq!(repo.count_ahead_behind().unwrap(), before, "nothing was pushed");
        assert_eq!(push(theirs, second), Ok(Pushed::To(tip)));
        let seen = others.read_value(TIMEOUT).unwrap().unwrap();
        assert_eq!((seen.id, seen.message.as_deref()), (second, Some("second")));
        // The memory's own repository is unaffected.
        assert!(git2::Repository::open(world.brain()).unwrap().find_object(second, None).is_err());
    }
}

/// Git fetches from the first address, even if libgit2 prefers the other one.
#[test]
fn of_two_addresses_the_first_is_fetched_from() {
    let world = World::new();
    let repo = world.shared();
    let [first, second] = ["remote.git", "second.git"].map(|name| world.path(name).display().to_string());
    world.git_in("home", &["clone", "--quiet", "--bare", &first, &second]);
    world.git(&["remote", "set-url", "--add", "origin", &second]);
    world.other_pushes("new.md", b"new\n");
    pull(&repo);
    assert_eq!(world.read("new.md"), "new\n");
}

/// A folder with extra git settings is left to git: its hooks run, and its settings count.
#[test]
fn a_swap_in_a_folder_goes_past_no_hook_and_no_setting_of_its_owner() {
    let world = World::new();
    let url = world.empty_remote();
    let lease = LeaseRef::new(&world.brain(), &world.path("own.git"), &url, "refs/reveille/lease/wake".to_owned());
    let value = |message: &str| lease.create_value(message).unwrap();
    let (first, second, third) = (value("first"), value("second"), value("third"));
    assert!(lease.swap(None, first, TIMEOUT).unwrap());
    let hook = world.path("remote.git/hooks/update");
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(lease.swap(Some(first), second, TIMEOUT), Err(RemoteError::Refused { .. })));
    assert_eq!(lease.read_value(TIMEOUT).unwrap().unwrap().id, first);
    fs::remove_file(hook).unwrap();
    assert!(lease.swap(Some(first), second, TIMEOUT).unwrap());

    world.git_in("remote.git", &["config", "core.sharedRepository", "0660"]);
    assert!(lease.swap(Some(second), third, TIMEOUT).unwrap());
    let id = third.to_string();
    let (folder, file) = id.split_at(2);
    let object = world.path("remote.git/objects").join(folder).join(file);
    assert_eq!(fs::metadata(object).unwrap().permissions().mode() & 0o777, 0o440, "as git writes it there");
}

#[test]
fn a_dead_lock_on_a_lease_in_a_remote_that_is_a_path_is_cleared_away_once_it_is_old() {
    for scheme in ["", "file://"] {
        let world = World::new();
        let url = format!("{scheme}{}", world.empty_remote());
        let lease = LeaseRef::new(&world.brain(), &world.path("own.git"), &url, "refs/reveille/lease/wake".to_owned());
        let value = lease.create_value("first").unwrap();
        let lock = world.path("remote.git/refs/reveille/lease/wake.lock");
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(&lock, "").unwrap();
        assert!(!lease.swap(None, value, TIMEOUT).unwrap(), "somebody may be pushing");
        assert!(lock.exists());
        File::options().write(true).open(&lock).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert!(!lease.swap(None, value, TIMEOUT).unwrap());
        assert!(!lock.exists());
        assert!(lease.swap(None, value, TIMEOUT).unwrap());
    }
}
