//! One file that holds all of it: made while the programs run, verified, restored elsewhere, and refused once it is damaged.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::support::{
    bot::Stage,
    env::{CHAT, ProgramOutput, Running, TestEnv, eventually, search_path},
};

fn create(env: &TestEnv, name: &str) -> PathBuf {
    let file = env.path(name);
    env.wake(&["backup", "create", &file.display().to_string()]).ok();
    file
}

fn restore(env: &TestEnv, file: &Path) -> ProgramOutput {
    env.wake(&["backup", "restore", &file.display().to_string()])
}

fn verify(env: &TestEnv, file: &Path) -> ProgramOutput {
    env.wake(&["backup", "verify", &file.display().to_string()])
}

/// A world that has worked, with edits that nobody has committed.
fn lived_in() -> TestEnv {
    let env = TestEnv::new();
    env.wake(&["say", "remember that the wifi code is 1234"]).ok();
    fs::write(env.workspace().join("policy.toml"), "").unwrap();
    fs::write(env.workspace().join("my-notes.txt"), "mine").unwrap();
    env.write_memory("draft.md", "A draft.\n");
    fs::remove_file(env.brain().join("memory/project-memory/backlog.md")).unwrap();
    // Neither of these may come along, or run.
    let hook = env.brain().join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", env.path("hooked").display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    env.git(&["config", "filter.evil.smudge", "false"]);
    env
}

#[test]
fn what_is_restored_is_what_was_there_and_stopped() {
    let env = lived_in();
    env.receive(CHAT, "remember that the tea is green");
    let file = create(&env, "backup.tar");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = env.run("tar", &["tf", &file.display().to_string()]).ok().stdout;
    assert!(listed.starts_with("manifest.json\n") && listed.contains("memory.bundle\n"), "{listed}");
    let found = verify(&env, &file).ok().stdout;
    for said in ["is good", "draft.md", "my-notes.txt (it isn't Reveille's)", "policy.toml (0 B)", "TIMEZONE"] {
        assert!(found.contains(said), "{said}: {found}");
    }

    let other = TestEnv::new();
    let ran = restore(&other, &file).ok();
    assert!(ran.stdout.contains("All work is stopped"), "{ran:#?}");
    assert_eq!(other.git(&["rev-parse", "--all"]), env.git(&["rev-parse", "--all"]));
    let status = env.git(&["status", "--porcelain"]);
    assert!(status.contains("D memory/project-memory/backlog.md"), "{status}");
    assert_eq!(other.git(&["status", "--porcelain"]), status);
    assert_eq!(other.memory("draft.md"), "A draft.\n");
    assert_eq!(other.count_received(), 2);
    assert!(!other.workspace().join(".env").exists(), "without its secrets");
    assert!(!other.brain().join(".git/hooks/post-checkout").exists() && !env.path("hooked").exists());
    assert!(!fs::read_to_string(other.brain().join(".git/config")).unwrap().contains("evil"));
    other.git(&["fsck", "--strict"]);
    // Nothing works before the person says so.
    other.wake(&["--once"]).ok();
    assert_eq!(other.queued().len(), 1);
    other.wake(&["resume"]).ok();
    other.wake(&["--once"]).ok();
    assert_eq!(other.queued().len(), 0);
    other.check_sound();

    // Neither a second restore nor a second backup takes anything's place.
    let (before, again) = (fs::read(&file).unwrap(), restore(&other, &file));
    again.assert_fails(1, "isn't empty");
    let again = env.wake(&["backup", "create", &file.display().to_string()]);
    again.assert_fails(1, "exists already");
    assert_eq!(fs::read(&file).unwrap(), before);
    let left: Vec<_> = fs::read_dir(env.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "the home, the workspace and the backup: {left:?}");
}

#[test]
fn a_damaged_backup_is_refused_wherever_the_damage_is_and_nothing_is_written() {
    let env = lived_in();
    let sound = fs::read(create(&env, "backup.tar")).unwrap();
    let other = TestEnv::new();
    let file = other.path("damaged.tar");
    let refuses = |what: &str, bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let ran = restore(&other, &file);
        assert_eq!(ran.code, 1, "{what}: {ran:#?}");
        ran.assert_tells("Nothing was written");
        assert!(!other.workspace().exists(), "{what}");
    };
    // A bit in each region: headers, padding, the list, contents, the end.
    let step = sound.len() / 40;
    for at in (0..sound.len()).step_by(step).chain([124, 257, 520, sound.len() - 1]) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        refuses(&format!("a bit at {at} of {}", sound.len()), &bytes);
    }
    for length in [0, 100, 512, 3_000, sound.len() / 2, sound.len() - 1] {
        refuses(&format!("only {length} bytes"), &sound[..length]);
    }
    refuses("more than it was", &[&sound[..], b"x"].concat());
    refuses("no backup at all", &[0; 4_096]);
}

/// The backup with another list, whose sum and sizes are right.
fn with_list(sound: &[u8], change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let octal = |bytes: &[u8]| usize::from_str_radix(std::str::from_utf8(bytes).unwrap(), 8).unwrap();
    let size = octal(&sound[124..135]);
    let padded = |size: usize| size.div_ceil(512) * 512;
    let mut list: serde_json::Value = serde_json::from_slice(&sound[512..512 + size]).unwrap();
    change(&mut list);
    let list = serde_json::to_vec(&list).unwrap();
    let mut header = sound[..512].to_vec();
    header[124..135].copy_from_slice(format!("{:011o}", list.len()).as_bytes());
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = header;
    bytes.extend(&list);
    bytes.resize(padded(bytes.len()), 0);
    let rest = &sound[512 + padded(size)..];
    bytes.extend(&rest[..512]);
    let digest = ring::digest::digest(&ring::digest::SHA256, &list);
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.extend(format!("{hex}  manifest.json\n").as_bytes());
    bytes.resize(padded(bytes.len()), 0);
    bytes.extend(&rest[1_024..]);
    bytes
}

#[test]
fn a_list_that_leads_elsewhere_or_lies_about_sizes_is_refused() {
    let env = lived_in();
    let sound = fs::read(create(&env, "backup.tar")).unwrap();
    let other = TestEnv::new();
    let file = other.path("hostile.tar");
    fs::write(&file, with_list(&sound, |_| ())).unwrap();
    verify(&other, &file).ok();
    let refuses = |said: &str, change: &dyn Fn(&mut serde_json::Value)| {
        fs::write(&file, with_list(&sound, change)).unwrap();
        let ran = restore(&other, &file);
        ran.assert_fails(1, said);
        assert!(!other.workspace().exists());
        let left: Vec<_> = fs::read_dir(other.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    };
    for path in
        ["../escaped", "/tmp/escaped", "files/../../escaped", "files/a/b", "brain/.git/hooks/post-commit", ".bashrc"]
    {
        refuses("isn't one of Reveille's files", &|list| list["members"][2]["path"] = path.into());
    }
    refuses("twice", &|list| list["members"][1]["path"] = "messages.db".into());
    refuses("larger than", &|list| list["members"][0]["bytes"] = u64::MAX.into());
    refuses("claims to hold more than it does", &|list| list["members"][0]["bytes"] = (1_u64 << 32).into());
    refuses("names no folder", &|list| list["repo_name"] = "../elsewhere".into());
    refuses("newer version", &|list| list["format"] = 2.into());
    refuses("names no branch", &|list| list["memory"]["branch"] = "../../x".into());
    refuses("won't be touched", &|list| list["deleted"] = serde_json::json!([".git/config"]));
}

#[test]
fn moving_to_another_machine_while_the_bot_runs_answers_nothing_twice() {
    let stage = Stage::new();
    let bot = stage.start_polling();
    stage.say("before");
    stage.wait_until_confirmed();
    let file = create(&stage.env, "backup.tar");
    stage.end(bot);
    let ran = restore(&stage.env, &file);
    ran.assert_fails(1, "isn't empty");

    let mut other = TestEnv::new();
    other.hear(&stage.telegram);
    restore(&other, &file).ok();
    assert_eq!(other.next_update(99), stage.env.next_update(99));
    other.wake(&["resume"]).ok();
    other.wake(&["--once"]).ok();
    let sent = stage.telegram.sent().len();
    other.wake(&["--once"]).ok();
    assert_eq!(stage.telegram.sent().len(), sent, "nothing is said twice");
}

/// Two parts of a message and two questions at work when the backup was made: all may have been sent and done since.
fn put_half_done(env: &TestEnv) {
    env.execute(
        "INSERT INTO outgoing_messages (id, chat_id, message_text) VALUES (900, 42, 'hi');
         INSERT INTO outgoing_parts (outgoing_id, part, html, plain, state) VALUES (900, 0, 'hi', 'hi', 'planned'),
             (900, 1, 'ho', 'ho', 'attempting');
         INSERT INTO cycles (id, state, trigger, reasons, model, started_at, fence)
             VALUES ('c1', 'done', 'test', '[]', 'offline', '2026-11-21T08:00:00Z', 1);
         INSERT INTO approvals (cycle_id, call, tool, action, risk, reasons, chat_id, nonce, asked_at, expires_at, state)
             VALUES ('c1', 'a', 'shell', '{}', 'safe', '[]', 0, 'n1', '2026-11-21T08:00:00Z', '2036-11-21T08:00:00Z', 'pending'),
                 ('c1', 'b', 'shell', '{}', 'safe', '[]', 0, 'n2', '2026-11-21T08:00:00Z', '2036-11-21T08:00:00Z', 'approved');",
    );
}

#[test]
fn nothing_is_taken_for_undone_that_may_have_been_done_since() {
    let env = lived_in();
    env.receive(CHAT, "hello");
    let mut store = env.store();
    put_half_done(&env);
    let now = reveille_base::clock::parse_time(env.now()).unwrap();
    let aside = store.settle_restored_store(now).unwrap();
    assert_eq!((aside.questions, aside.doubtful_parts), (2, 2), "{aside:?}");
    assert!(store.chats().find_stop_order().unwrap().is_some());
    assert_eq!(env.approvals_in("expired").len(), 2);
    let doubtful = env.parts().into_iter().filter(|part| part.outgoing_id == 900 && part.state == "unknown");
    assert_eq!(doubtful.count(), 2);
}

/// Begins a backup whose git waits in the middle of writing the bundle, until `go` is there or `die` is.
fn create_halfway(env: &mut TestEnv, file: &Path) -> Running {
    let (programs, plain) = (env.path("programs"), env.get("PATH").to_owned());
    let git = search_path().split(':').map(|dir| Path::new(dir).join("git")).find(|git| git.exists()).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *bundle\\ create*)\ntouch {begun}\nwhile [ -e {begun} ] && [ ! -e {go} ] && [ ! -e {die} ]; \
         do sleep 0.02; done\n[ ! -e {die} ] || exit 1;;\nesac\nexec {git} \"$@\"\n",
        begun = env.path("begun").display(),
        go = env.path("go").display(),
        die = env.path("die").display(),
        git = git.display()
    );
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("git"), script).unwrap();
    fs::set_permissions(programs.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    env.set("PATH", &format!("{}:{plain}", programs.display()));
    let running = env.start(env!("CARGO_BIN_EXE_wake"), &["backup", "create", &file.display().to_string()]);
    env.set("PATH", &plain);
    let begun = env.path("begun");
    eventually("the bundle is begun", || begun.exists());
    running
}

#[test]
fn a_killed_backup_leaves_nothing_under_its_name_and_the_next_one_clears_up() {
    let mut env = lived_in();
    let folder = env.path("backups");
    fs::create_dir(&folder).unwrap();
    let file = folder.join("backup.tar");
    let names = || -> Vec<_> { fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect() };
    let running = create_halfway(&mut env, &file);
    // One that lives keeps what is its own.
    let second = create(&env, "backups/second.tar");
    assert_eq!(names().len(), 2, "{:?}", names());
    running.signal(rustix::process::Signal::KILL);
    fs::write(env.path("die"), "").unwrap();
    assert_ne!(running.end().code, 0);
    assert!(!file.exists());
    assert_eq!(names().len(), 2, "a killed one can't clear up: {:?}", names());
    create(&env, "backups/backup.tar");
    verify(&env, &file).ok();
    verify(&env, &second).ok();
    assert_eq!(names().len(), 2, "{:?}", names());
}

#[test]
fn a_wake_that_works_meanwhile_is_in_the_memory_and_settled_after_the_restore() {
    let mut env = lived_in();
    env.receive(CHAT, "remember that the bins go out on Monday");
    let file = env.path("backup.tar");
    let running = create_halfway(&mut env, &file);
    env.wake(&["--once"]).ok();
    fs::write(env.path("go"), "").unwrap();
    running.end().ok();
    let other = TestEnv::new();
    restore(&other, &file).ok();
    assert_eq!(other.git(&["rev-parse", "HEAD"]), env.git(&["rev-parse", "HEAD"]));
    // The database is of the moment before.
    assert_eq!((env.queued().len(), other.queued().len()), (0, 1));
    other.wake(&["resume"]).ok();
    other.wake(&["--once"]).ok();
    assert_eq!(other.queued().len(), 0);
    other.check_sound();
}
