//! Who holds the wake lock: a holder that stopped is replaced, one that is at work never, and nothing of a dead one lives on.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, path::Path};

use reveille_base::process::Identity;
use reveille_store::wake_lock;

use super::{
    support::story::{commits, end_well, sent, start_wake, wait_for_request, with_claude},
    support::{
        claude::{Block, Reply},
        env::{CHAT, TestEnv, eventually},
        http::Gate,
    },
};
use rustix::process::Signal;
use serde_json::json;

/// Lets the holder seem to have shown no life since the machine was booted.
fn silence(env: &TestEnv) -> wake_lock::Holder {
    let path = env.workspace().join(".wake-lock");
    let holder = wake_lock::Holder { alive_at_s: Some(0), ..wake_lock::read_holder(&path).unwrap() };
    fs::write(&path, serde_json::to_string(&holder).unwrap()).unwrap();
    holder
}

fn line_of(identity: &Identity) -> String {
    let holder = json!({
        "pid": identity.pid, "boot_id": identity.boot_id, "process_started": identity.started,
        "started_at": "2026-11-21T13:00:00Z", "cycle_id": null, "alive_at_s": 0,
    });
    holder.to_string()
}

fn fence(env: &TestEnv) -> i64 {
    env.fence()
}

#[test]
fn a_wake_that_stopped_past_its_lease_is_ended_and_its_work_gone_on_with() {
    let (telegram, claude, mut env) = with_claude();
    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string()).set("STALE_LOCK_MIN", "1");
    env.receive(CHAT, "cats purr");
    claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Cats purr"}))]));
    claude.expect(Reply::text("Kept, I think.").stalled_after(4, &Gate::default()));
    let first = start_wake(&env);
    wait_for_request(&claude, 2);
    first.signal(Signal::STOP);
    let (held, before) = (silence(&env), fence(&env));
    assert_eq!(held.pid, first.pid());

    // Health tells, and leaves it to the next wake.
    let health = env.health(&["check", "--json"]).json();
    let told = health["checks"].as_array().unwrap().iter().find(|check| check["id"] == "lock").unwrap();
    assert_eq!(told["status"], "warn", "{health:#}");
    assert!(told["detail"].as_str().unwrap().contains("no activity"), "{health:#}");
    assert!(held.identity().is_alive() && fence(&env) == before);

    claude.expect(Reply::text("Kept."));
    let second = env.wake(&["--once", "--json"]).ok();
    second.assert_tells("no sign of life");
    assert!(!held.identity().is_alive());
    assert_eq!(first.end().code, -1, "it was killed");
    assert_eq!(fence(&env), before + 1);
    assert_eq!((&second.json()["answered"], &second.json()["pushed"]), (&json!(1), &json!(true)));
    assert_eq!(claude.requests()[2].raw, claude.requests()[1].raw);
    assert_eq!(sent(&telegram), ["Kept."]);
    assert_eq!(commits(&env), 2);
    assert_eq!(env.cycle().tries, 1);
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git(&["rev-parse", "HEAD"]));
    env.check_sound();
}

#[test]
fn a_holder_that_showed_life_is_never_touched() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    let gate = Gate::default();
    claude.expect(Reply::text("Hello.").stalled_after(2, &gate));
    let first = start_wake(&env);
    wait_for_request(&claude, 1);
    // Even if it is stopped: its lease isn't over.
    first.signal(Signal::STOP);
    let before = fence(&env);
    assert_eq!(env.once()["outcome"], "locked");
    assert_eq!(fence(&env), before);
    first.signal(Signal::CONT);
    gate.open();
    assert_eq!(end_well(first)["answered"], 1);
    assert_eq!(sent(&telegram), ["Hello."]);
    env.check_sound();
}

#[test]
fn who_is_not_surely_the_holder_is_left_alone() {
    let mut env = TestEnv::new();
    env.set("STALE_LOCK_MIN", "1");
    env.wake(&["--once"]).ok();
    env.receive(0, "list reminders");
    let bystander = env.start("sleep", &["1000"]);
    let it = Identity::for_pid(bystander.pid()).unwrap();
    let path = env.workspace().join(".wake-lock");
    let mut lock = fs::OpenOptions::new().write(true).open(&path).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    let mut lines = vec![
        // Its number was given away since; the machine was booted since; nobody can tell who it is.
        line_of(&Identity { started: "1".to_owned(), ..it.clone() }),
        line_of(&Identity { boot_id: "an earlier boot".to_owned(), ..it.clone() }),
        "{".to_owned(),
        String::new(),
    ];
    if cfg!(target_os = "linux") {
        // It lives, and somebody else has the lock.
        lines.push(line_of(&it));
    }
    for line in lines {
        lock.set_len(0).unwrap();
        std::io::Seek::rewind(&mut lock).unwrap();
        lock.write_all(line.as_bytes()).unwrap();
        let ran = env.wake(&["--once", "--json"]).ok();
        assert_eq!(ran.json()["outcome"], "locked", "{line}");
        assert!(it.is_alive(), "{line}");
        assert_eq!(fs::read_to_string(&path).unwrap(), line);
    }
    drop(lock);
    assert_eq!(env.once()["answered"], 1);
}

/// Its line is written after the fence is taken, which may wait for whoever writes to the database.
#[cfg(target_os = "linux")]
#[test]
fn who_was_stopped_before_it_wrote_its_line_holds_nobody_up() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let path = env.workspace().join(".wake-lock");
    let dead = Identity { started: "1".to_owned(), ..Identity::current() };
    for line in [String::new(), line_of(&dead)] {
        fs::write(&path, &line).unwrap();
        env.receive(0, "list reminders");
        let database = rusqlite::Connection::open(env.workspace().join("messages.db")).unwrap();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        let first = env.start(env!("CARGO_BIN_EXE_wake"), &["--once"]);
        eventually("it holds the lock", || wake_lock::is_held(&path));
        assert_eq!(env.wake(&["--once", "--json"]).ok().json()["outcome"], "locked", "it is at work");
        first.signal(Signal::STOP);
        database.execute_batch("ROLLBACK").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), line);
        let second = env.wake(&["--once", "--json"]).ok();
        assert_eq!(second.json()["answered"], 1, "{second:#?}");
        second.assert_tells("was stopped before");
        assert_eq!(first.end().code, -1, "it was killed");
    }
    env.check_sound();
}

/// A transport that says that it began and then neither answers nor looks at anything.
pub(crate) fn hanging_transport(env: &mut TestEnv) -> std::path::PathBuf {
    let (script, pid) = (env.path("hang"), env.path("hang.pid"));
    fs::write(
        &script,
        format!("#!/bin/sh\necho $$ >'{0}.new' && mv '{0}.new' '{0}'\nexec sleep 1000\n", pid.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    env.set("GIT_SSH_COMMAND", &script.display().to_string()).set("GIT_SSH_VARIANT", "simple");
    pid
}

pub(crate) fn identity_in(pid: &Path) -> Identity {
    eventually("the transport has begun", || pid.exists());
    let identity = Identity::for_pid(fs::read_to_string(pid).unwrap().trim().parse().unwrap()).unwrap();
    fs::remove_file(pid).unwrap();
    identity
}

#[test]
fn nothing_that_git_started_outlives_a_killed_wake() {
    // While it clones, while it fetches, while it pushes.
    let mut env = TestEnv::new();
    let pid = hanging_transport(&mut env);
    const NOWHERE: &str = "ssh://git@remote.invalid/memory.git";
    let check = |env: &TestEnv| {
        let wake = start_wake(env);
        let transport = identity_in(&pid);
        wake.signal(Signal::KILL);
        wake.end();
        eventually("the transport is dead", || !transport.is_alive());
    };
    env.set("REPO_URL", NOWHERE).receive(0, "list reminders");
    check(&env);

    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string());
    env.once();
    env.unset("REPO_URL");
    env.git(&["remote", "set-url", "origin", NOWHERE]);
    env.at("2026-11-21T15:00:00Z");
    check(&env);

    env.git(&["remote", "set-url", "origin", &remote.display().to_string()]);
    env.git(&["remote", "set-url", "--push", "origin", NOWHERE]);
    env.receive(0, "remember that tea is at five");
    check(&env);

    env.git(&["remote", "set-url", "--push", "origin", &remote.display().to_string()]);
    env.at("2026-11-21T17:00:00Z");
    env.once();
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git(&["rev-parse", "HEAD"]));
    env.check_sound();
}

#[test]
fn the_lock_file_is_the_same_one_for_ever() {
    use std::os::unix::fs::MetadataExt as _;
    let (_telegram, claude, env) = with_claude();
    env.receive(CHAT, "hello");
    claude.expect(Reply::text("Hello.").stalled_after(2, &Gate::default()));
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    let inode = || fs::metadata(env.workspace().join(".wake-lock")).unwrap().ino();
    let first = inode();
    wake.signal(Signal::KILL);
    wake.end();
    env.health(&["check"]);
    claude.expect(Reply::text("Hello."));
    env.once();
    assert_eq!(inode(), first);
}

#[test]
fn the_bot_does_not_wait_for_a_wake_of_its_own_that_stopped() {
    let (telegram, claude, mut env) = with_claude();
    env.set("STALE_LOCK_MIN", "1");
    claude.expect(Reply::text("Hello.").stalled_after(2, &Gate::default()));
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["run"]);
    telegram.push_text(CHAT, CHAT, "hello");
    wait_for_request(&claude, 1);
    let pid = wake_lock::read_holder(&env.workspace().join(".wake-lock")).unwrap().pid;
    let number = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(number, Signal::STOP).unwrap();
    let stopped = silence(&env).identity();
    claude.expect(Reply::text("Hello."));
    eventually("it is answered all the same", || telegram.standing() == ["Hello."]);
    assert!(!stopped.is_alive());
    eventually("all is written down", || {
        env.queued().is_empty() && !wake_lock::is_held(&env.workspace().join(".wake-lock"))
    });
    bot.signal(Signal::TERM);
    bot.end();
}
