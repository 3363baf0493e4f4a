//! Damage: malformed memory files, a database file with other content, a read-only workspace, and rows inserted by hand.
//! A wake works with the sound parts, reports the others, repairs nothing silently and loses no byte.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use super::support::{
    env::{CHAT, ProgramOutput, TestEnv},
    telegram::FakeTelegram,
};

const ACTIVE: &str = "memory/project-memory/active.md";
const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";
const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";

fn say(env: &TestEnv, text: &str) -> ProgramOutput {
    env.wake(&["--once", "--say", text]).ok()
}

fn env_with_a_fact() -> TestEnv {
    let env = TestEnv::new();
    say(&env, "remember that tea is at five");
    env
}

fn bytes(env: &TestEnv, path: &str) -> Vec<u8> {
    fs::read(env.brain().join(path)).unwrap()
}

/// Checks that the fact reached the branch that the person was told of, and no other.
#[track_caller]
fn check_parked(env: &TestEnv, ran: &ProgramOutput, path: &str, needle: &str) {
    let branch = env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/unwritten"]);
    assert_eq!(branch.lines().count(), 1, "{branch}");
    assert!(ran.stdout.contains(&format!("is kept on the branch `{branch}`")), "{ran:#?}");
    assert!(env.git(&["show", &format!("{branch}:{path}")]).contains(needle));
    // A kill right after the commit loses nothing, since the branch existed before it.
    assert_eq!(env.git(&["rev-parse", &format!("{branch}~1")]), env.git(&["rev-parse", "main~1"]));
    let message = env.git(&["log", "-1", "--format=%B", "main"]);
    assert!(message.contains(&format!("Not written: {path} won't be touched: ")), "{message}");
}

/// A fault because of which no text can be added to a file.
enum Bad {
    Bytes(&'static [u8]),
    Directory,
    Link,
}

#[track_caller]
fn check_bad_file(path: &str, bad: &Bad, why: &str) {
    let env = env_with_a_fact();
    let sound = env.git(&["rev-parse", "HEAD"]);
    let file = env.brain().join(path);
    fs::remove_file(&file).unwrap();
    let outside = env.path("outside.md");
    fs::write(&outside, "Outside.\n").unwrap();
    match bad {
        Bad::Bytes(bytes) => fs::write(&file, bytes).unwrap(),
        Bad::Directory => fs::create_dir(&file).unwrap(),
        Bad::Link => symlink(&outside, &file).unwrap(),
    }
    let ran = say(&env, "remember that the wifi code is 1234");
    assert!(ran.stdout.contains("Remembered: the wifi code is 1234"), "{ran:#?}");
    assert!(ran.stdout.contains(&format!("{path} won't be touched: {why}")), "{ran:#?}");
    check_parked(&env, &ran, path, "the wifi code is 1234");
    assert_eq!(env.count_queued(), 0);
    match bad {
        Bad::Bytes(bytes) => assert_eq!(fs::read(&file).unwrap(), *bytes),
        Bad::Directory => assert!(file.is_dir()),
        Bad::Link => assert_eq!(fs::read_link(&file).unwrap(), outside),
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "Outside.\n");

    // The other files are written, the next wake works, and the person is told once a day.
    let other = if path == SEMANTIC { EPISODIC } else { SEMANTIC };
    assert!(env.memory(other).contains("the wifi code is 1234"));
    let again = say(&env, "list reminders");
    assert!(again.stdout.starts_with("Reminders:"), "{again:#?}");
    assert!(!again.stdout.contains("won't be touched"), "{again:#?}");

    // Once the person has repaired the file, wakes write it again.
    if file.is_dir() {
        fs::remove_dir(&file).unwrap();
    } else {
        fs::remove_file(&file).unwrap();
    }
    env.git(&["checkout", "-q", &sound, "--", path]);
    say(&env, "remember that Anna has a dog");
    assert!(env.memory(path).contains("Anna has a dog"));
    env.check_sound();
}

#[test]
fn a_file_that_is_not_text_is_left_unchanged() {
    check_bad_file(SEMANTIC, &Bad::Bytes(b"\x00\xff\xfe## broken \x80\x81"), "it isn't text in UTF-8");
    check_bad_file(EPISODIC, &Bad::Bytes(b"# Log\n- caf\xe9\n"), "it isn't text in UTF-8");
}

/// Makes a cycle look as if it was killed after it changed the facts and before its commit.
fn lose_commit(env: &TestEnv, cycle: &str, before: &str, after: &str) {
    env.execute(&format!(
        "UPDATE cycles SET state = 'running', commit_id = NULL, ended_at = NULL WHERE id = '{cycle}';
         INSERT INTO cycle_files VALUES ('{cycle}', '{SEMANTIC}', '{before}', '{after}')"
    ));
}

/// The wake is killed between keeping the text and its commit. The next wake commits, and finds the text kept.
#[test]
fn unwritten_text_is_kept_once_even_if_the_wake_is_killed_before_its_commit() {
    let env = env_with_a_fact();
    let sound = env.memory(SEMANTIC);
    fs::write(env.brain().join(SEMANTIC), b"\x00\xff").unwrap();
    let before = env.git(&["rev-parse", "HEAD"]);
    let ran = say(&env, "remember that the wifi code is 1234");
    check_parked(&env, &ran, SEMANTIC, "the wifi code is 1234");
    let unwritten = env.git(&["for-each-ref", "refs/heads/unwritten"]);
    let told = || env.outbox_with("I couldn't write to my memory").len();
    assert_eq!(told(), 1);

    // The state before the commit.
    env.git(&["reset", "-q", "--keep", &before]);
    let cycle = unwritten.rsplit('/').next().unwrap().to_owned();
    let ours = env.git(&["show", &format!("unwritten/{cycle}:{SEMANTIC}")]) + "\n";
    lose_commit(&env, &cycle, &sound, &ours);
    env.once();
    assert_eq!(env.git(&["for-each-ref", "refs/heads/unwritten"]), unwritten);
    assert!(env.git(&["log", "-1", "--format=%B"]).contains(&format!("Wake-Id: {cycle}")));
    assert_eq!(told(), 1);
    assert_eq!(env.once()["outcome"], "idle");
    env.git(&["checkout", "-q", "--", SEMANTIC]);
    env.check_sound();
}

#[test]
fn a_directory_in_place_of_a_file_is_left_unchanged() {
    check_bad_file(SEMANTIC, &Bad::Directory, "it is neither a file nor a link");
}

#[test]
fn a_link_in_place_of_a_file_is_neither_followed_nor_replaced() {
    check_bad_file(SEMANTIC, &Bad::Link, "it is a link");
}

#[test]
fn a_document_that_cannot_be_read_is_named_in_the_log() {
    let env = env_with_a_fact();
    fs::write(env.brain().join(ACTIVE), b"## Caf\xe9\n- status: active\n").unwrap();
    let ran = say(&env, "list tasks");
    assert!(ran.stdout.contains("There's nothing in the active tasks"), "{ran:#?}");
    assert!(env.memory(EPISODIC).contains(&format!("Could not be read: {ACTIVE} won't be touched: it isn't text")));
    let ran = say(&env, "add task buy milk");
    assert!(ran.stdout.contains("buy milk"), "{ran:#?}");
    assert_eq!(bytes(&env, ACTIVE), b"## Caf\xe9\n- status: active\n");
    check_parked(&env, &ran, ACTIVE, "## buy milk");
}

#[test]
fn malformed_and_duplicate_tasks_keep_every_byte() {
    let env = env_with_a_fact();
    let odd = "## Half a task\n- status\n-\n- touched: last Tuesday\n- at: whenever\n\n## Twice\n- next: one\n\n## Twice\n- next: two\n\n\
               ### no task\n```\n## not a heading\n```\n<!-- never closed\n## Hidden\n";
    env.write_memory(ACTIVE, odd);
    let ran = say(&env, "add task buy milk");
    assert!(ran.stdout.contains("Added to the active tasks: buy milk"), "{ran:#?}");
    let text = env.memory(ACTIVE);
    for line in odd.lines() {
        assert!(text.lines().any(|kept| kept == line), "{line:?} is gone from {text}");
    }
    assert!(text.replacen(odd.trim_end(), "", 1).len() < text.len(), "its lines are together: {text}");
    let ran = say(&env, "list tasks");
    assert!(ran.stdout.contains("buy milk") && ran.stdout.contains("Half a task"), "{ran:#?}");
    env.check_sound();
}

#[test]
fn windows_line_endings_are_understood_and_kept() {
    let env = env_with_a_fact();
    let crlf = env.memory(SEMANTIC).replace('\n', "\r\n");
    fs::write(env.brain().join(SEMANTIC), &crlf).unwrap();
    let ran = say(&env, "what do you know about tea?");
    assert!(ran.stdout.contains("tea is at five"), "{ran:#?}");
    say(&env, "remember that Anna has a dog");
    let text = String::from_utf8(bytes(&env, SEMANTIC)).unwrap();
    assert!(text.starts_with(crlf.trim_end()), "{text:?}");
    assert!(text.contains("- Anna has a dog <!-- wake "), "{text:?}");
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count(), "one kind of line end: {text:?}");
    env.check_sound();
}

#[test]
fn a_huge_line_is_harmless() {
    let env = env_with_a_fact();
    let huge = format!("## Notes\n- {}\n", "all work and no play ".repeat(45_000));
    env.write_memory(SEMANTIC, &huge);
    say(&env, "remember that Anna has a dog");
    let text = env.memory(SEMANTIC);
    assert!(text.starts_with(huge.trim_end()) && text.contains("Anna has a dog"));
    env.check_sound();
}

#[test]
fn missing_files_are_created_when_something_is_written_to_them() {
    let env = env_with_a_fact();
    fs::remove_dir_all(env.brain().join("memory")).unwrap();
    fs::remove_file(env.brain().join("claude.md")).unwrap();
    fs::remove_dir_all(env.brain().join("skills")).unwrap();
    say(&env, "remember that Anna has a dog");
    assert!(env.memory(SEMANTIC).contains("Anna has a dog") && env.memory(EPISODIC).contains("Anna has a dog"));
    assert!(!env.brain().join("claude.md").exists(), "what a person deleted stays deleted");
    let before = env.git(&["show", &format!("HEAD~2:{SEMANTIC}")]);
    assert!(before.contains("tea is at five"), "the history has it: {before}");
    env.check_sound();
}

#[test]
fn a_file_in_place_of_a_folder_stays_and_stops_no_wake() {
    let env = env_with_a_fact();
    fs::remove_dir_all(env.brain().join("memory/agent-memory")).unwrap();
    env.write_memory("memory/agent-memory", "no folder\n");
    for text in ["Anna has a dog", "Bob has a cat"] {
        let ran = say(&env, &format!("remember that {text}"));
        assert!(ran.stdout.contains(&format!("Remembered: {text}")), "{ran:#?}");
    }
    assert_eq!(env.memory("memory/agent-memory"), "no folder\n");
    assert_eq!(env.count_queued(), 0);
    let all = env.git(&["log", "--all", "-p"]);
    assert!(all.contains("+- Anna has a dog <!-- wake ") && all.contains("+- Bob has a cat <!-- wake "));
}

/// Git can't have a branch `unwritten/x` next to one named `unwritten`.
#[test]
fn a_persons_branches_may_have_the_names_of_our_branch_folders() {
    let env = env_with_a_fact();
    for name in ["parked", "recovered", "unwritten"] {
        env.git(&["branch", name]);
    }
    env.git(&["switch", "-q", "-c", "idea"]);
    let ran = say(&env, "remember that Anna has a dog");
    assert!(ran.stdout.contains("`parked-2/"), "{ran:#?}");
    env.git(&["switch", "-q", "main"]);
    env.once();
    assert!(env.memory(SEMANTIC).contains("Anna has a dog"));
    assert_eq!(env.git(&["for-each-ref", "refs/heads/parked-2"]), "");

    let sound = env.memory(SEMANTIC);
    fs::write(env.brain().join(SEMANTIC), b"\x00\xff").unwrap();
    let ran = say(&env, "remember that the wifi code is 1234");
    assert!(ran.stdout.contains("is kept on the branch `unwritten-2/"), "{ran:#?}");
    env.write_memory(SEMANTIC, &sound);

    // The health check reports the branch until it is merged or dropped.
    let branch = env.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads/unwritten-2"]);
    let repository = |env: &TestEnv| {
        let checked = env.health(&["check", "--json"]).json();
        checked["checks"].as_array().unwrap().iter().find(|check| check["id"] == "repository").unwrap().clone()
    };
    let found = repository(&env);
    assert_eq!(found["status"], "warn", "{found:#}");
    assert!(found["detail"].as_str().unwrap().contains(&branch), "{found:#}");
    assert!(found["fix"].as_str().unwrap().contains(&format!("`git merge {branch}`")), "{found:#}");
    env.git(&["merge", "-q", &branch]);
    assert_eq!(repository(&env)["status"], "ok");
    assert!(env.memory(SEMANTIC).contains("the wifi code is 1234"));
    env.check_sound();
}

#[test]
fn an_unusable_repository_is_reported_once_and_every_message_is_kept() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.receive(CHAT, "remember that tea is at five");
    env.once();
    let before = telegram.sent().len();
    let head = env.brain().join(".git/refs/heads/main");
    let sound = fs::read(&head).unwrap();
    fs::write(&head, "nonsense\n").unwrap();
    env.receive(CHAT, "remember that Anna has a dog");
    for minute in 1..=5 {
        env.at(&format!("2026-11-21T14:0{minute}:00Z"));
        let ran = env.wake(&["--once"]);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert_eq!(telegram.sent().len() - before, usize::from(minute >= 3), "{ran:#?}");
    }
    let told = telegram.sent().pop().unwrap().text;
    assert!(told.contains("I can't use my memory") && told.contains("Your messages are safe"), "{told}");

    fs::write(&head, sound).unwrap();
    env.at("2026-11-21T14:09:00Z");
    assert_eq!(env.once()["answered"], 1);
    assert!(env.memory(SEMANTIC).contains("Anna has a dog"));
    env.check_sound();
}

#[test]
fn repeatedly_failing_wakes_are_critical_and_come_with_the_repair_command() {
    type Harm = fn(&TestEnv);
    let harms: [(&str, Harm); 4] = [
        ("rm .git/index && git reset", |env| fs::write(env.brain().join(".git/index"), "nonsense").unwrap()),
        ("> .git/HEAD", |env| fs::write(env.brain().join(".git/HEAD"), "nonsense").unwrap()),
        ("> .git/refs/heads/main", |env| fs::write(env.brain().join(".git/refs/heads/main"), "nonsense").unwrap()),
        ("> .git/packed-refs", |env| {
            env.git(&["pack-refs", "--all"]);
            let path = env.brain().join(".git/packed-refs");
            let sound = fs::read_to_string(&path).unwrap();
            fs::write(&path, format!("nonsense\n{sound}")).unwrap();
        }),
    ];
    for (command, harm) in harms {
        let env = env_with_a_fact();
        let check_of_wakes = |env: &TestEnv| {
            let report = env.health(&["check", "--json"]).json();
            report["checks"].as_array().unwrap().iter().find(|check| check["id"] == "wakes").unwrap().clone()
        };
        assert_eq!(check_of_wakes(&env)["status"], "ok");
        harm(&env);
        for n in 1..=3 {
            let ran = env.wake(&["--once", "--say", &format!("remember that box {n} is blue")]);
            assert_eq!(ran.code, 1, "{command}: {ran:#?}");
        }
        let found = check_of_wakes(&env);
        assert_eq!(found["status"], "critical", "{found}");
        assert!(found["detail"].as_str().unwrap().contains("3 in a row have failed"), "{found}");
        assert!(env.health(&["status"]).ok().stdout.contains("3 wakes in a row have failed"));
        let fix = found["fix"].as_str().unwrap();
        assert!(fix.contains(command), "{found}");
        env.run("sh", &["-c", fix.split("; then").next().unwrap()]).ok();
        env.wake(&["--once"]).ok();
        assert_eq!(check_of_wakes(&env)["status"], "ok", "{command}");
        let facts = env.memory(SEMANTIC);
        assert!((1..=3).all(|n| facts.contains(&format!("box {n} is blue"))), "{facts}");
        env.check_sound();
    }
}

#[test]
fn an_unreadable_database_fails_clearly_and_is_not_replaced() {
    let env = env_with_a_fact();
    env.write_back();
    let db = env.workspace().join("messages.db");
    let sound = fs::read(&db).unwrap();
    let mut damaged = sound.clone();
    damaged[..4_096].fill(0xAA);
    for bad in [b"this is no database, but it is long enough to be looked at".repeat(100), damaged] {
        for beside in ["messages.db-wal", "messages.db-shm"] {
            fs::remove_file(env.workspace().join(beside)).ok();
        }
        fs::write(&db, &bad).unwrap();
        for args in [vec!["--once"], vec!["--once", "--say", "hello"], vec!["--once", "--json"]] {
            let ran = env.wake(&args);
            assert_eq!(ran.code, 1, "{ran:#?}");
            ran.assert_tells("the database is damaged")
                .assert_never_tells("stays queued")
                .assert_tells_only_if(args.contains(&"--say"), "was NOT stored");
        }
        assert_eq!(fs::read(&db).unwrap(), bad, "it is left for a person");
    }
    fs::write(&db, &sound).unwrap();
    say(&env, "remember that Anna has a dog");
    env.check_sound();
}

#[test]
fn a_workspace_that_cannot_be_written_fails_clearly() {
    let env = env_with_a_fact();
    env.write_back();
    let head = env.git(&["rev-parse", "HEAD"]);
    let modes = |mode: u32, file_mode: u32| {
        for entry in [env.path("home"), env.workspace(), env.path("")] {
            fs::set_permissions(&entry, fs::Permissions::from_mode(mode)).unwrap();
        }
        for entry in fs::read_dir(env.workspace()).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::set_permissions(&path, fs::Permissions::from_mode(file_mode)).unwrap();
            }
        }
    };
    // Root ignores permissions, so another user runs the wake in that case.
    let wake = env.path("wake");
    fs::copy(env!("CARGO_BIN_EXE_wake"), &wake).unwrap();
    modes(0o555, 0o444);
    let wake = wake.display().to_string();
    let run = |args: &[&str]| {
        if rustix::process::geteuid().is_root() {
            let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--", &wake];
            env.run("setpriv", &[&nobody, args].concat())
        } else {
            env.run(&wake, args)
        }
    };
    let ran = run(&["--once", "--say", "remember that Anna has a dog"]);
    modes(0o755, 0o644);
    assert_eq!(ran.code, 1, "{ran:#?}");
    ran.assert_tells("failed: ").assert_never_tells("panicked");
    assert!(!ran.stdout.contains("Remembered"), "{ran:#?}");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);
    say(&env, "remember that Anna has a dog");
    env.check_sound();
}

#[test]
fn a_workspace_below_a_file_fails_clearly() {
    let mut env = TestEnv::new();
    fs::write(env.path("file"), "").unwrap();
    let below = env.path("file/workspace").display().to_string();
    env.set("WORKSPACE_DIR", &below);
    let ran = env.wake(&["--once"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    ran.assert_tells(&below);
}

#[test]
fn other_files_in_place_of_the_repository_are_not_touched() {
    let env = TestEnv::new();
    fs::create_dir_all(env.brain()).unwrap();
    env.write_memory("thesis.txt", "mine");
    let ran = env.wake(&["--once", "--say", "hello"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    ran.assert_tells("isn't a git repository and isn't empty");
    assert_eq!(env.memory("thesis.txt"), "mine");
    assert_eq!(fs::read_dir(env.brain()).unwrap().count(), 1);
    assert_eq!(env.queued().len(), 1);
}

#[test]
fn a_workspace_path_may_contain_spaces_and_non_ascii_letters() {
    let mut env = TestEnv::new();
    let remote = env.bare_remote("räm ote.git");
    let odd = env.path("Mein Arbeits-Raum äöü 日本 'quoted' $HOME");
    env.set("WORKSPACE_DIR", &odd.display().to_string()).set("REPO_URL", &remote.display().to_string());
    let ran = say(&env, "remember that tea is at five");
    assert_eq!(ran.stdout, "Remembered: tea is at five\n");
    let brain = odd.join("brain");
    let facts = fs::read_to_string(brain.join(SEMANTIC)).unwrap();
    assert!(facts.contains("tea is at five"));
    assert_eq!(env.git_in(&remote, &["rev-parse", "main"]), env.git_in(&brain, &["rev-parse", "main"]));
    let note = "memory/Ünïcode nötes 日本.md";
    fs::write(brain.join(note), "# Ü\n").unwrap();
    say(&env, "remember that Anna has a dog");
    let listed = env.git_in(&brain, &["-c", "core.quotePath=false", "show", "--name-only", "--format=", "HEAD~1"]);
    assert_eq!(listed, note);
    assert_eq!(env.git_in(&brain, &["status", "--short"]), "");
}

/// Queues box 0 and following, one for each time, which is SQL. Adds box 90 without a time, 91 as a blob, 92 with a chat as text, 93
/// already processed, and rows without a usable text.
fn queue_odd(env: &TestEnv, times: &[&str]) {
    let put = |columns: &str, values: &str| {
        env.execute(&format!("INSERT INTO incoming_messages (chat_id, message_text{columns}) VALUES ({values})"));
    };
    for (n, time) in times.iter().enumerate() {
        put(", received_at, processed", &format!("0, 'remember that box {n} is blue', {time}, 0"));
    }
    put("", "0, 'remember that box 90 is blue'");
    put("", "0, CAST('remember that box 91 is blue' AS BLOB)");
    put("", "'0', 'remember that box 92 is blue'");
    put(", processed", "0, 'remember that box 93 is blue', 1");
    for odd in ["x'ff00fe'", "''", "42"] {
        put("", &format!("0, {odd}"));
    }
}

/// Counts the queued boxes, whatever their column types.
fn count_boxes_left(env: &TestEnv) -> i64 {
    env.query("SELECT count(*) FROM incoming_messages WHERE processed = 0 AND message_text LIKE 'remember%'")
}

/// Inserts rows with unreadable columns into the queue and the outbox, and one message that can be answered.
fn put_unreadable(env: &TestEnv) {
    env.execute(
        "INSERT INTO incoming_messages (chat_id, message_text, thread_id) VALUES (4242, 'one', 'the kitchen');
         INSERT INTO incoming_messages (chat_id, message_text) VALUES ('Ann', 'two');
         INSERT INTO incoming_messages (chat_id, message_text, channel_message_id) VALUES (4242, 'three', x'00ff');
         INSERT INTO incoming_messages (chat_id, message_text, sender_name, kind, quoted, received_at, processed)
             VALUES (4242, 'said before', x'ff41', x'ff', x'ff', x'ff', 1);
         INSERT INTO incoming_messages (chat_id, message_text, sender_name, received_at)
             VALUES (4242, 'remember that box 1 is blue', x'ff41', x'ff');
         INSERT INTO outgoing_messages (chat_id, message_text, thread_id) VALUES (4242, 'never', 'the kitchen');
         INSERT INTO outgoing_messages (chat_id, message_text) VALUES (4242, x'48ff')",
    );
}

/// Repairs the first unreadable message, as its sender may have meant it.
fn mend_first(env: &TestEnv) {
    let words = "remember that Anna has a dog";
    env.execute(&format!(
        "UPDATE incoming_messages SET thread_id = NULL, message_text = '{words}' WHERE message_text = 'one'"
    ));
}

#[test]
fn rows_inserted_by_hand_with_only_the_promised_columns_are_answered() {
    let mut env = TestEnv::new();
    env.set("ALLOWED_CHAT_IDS", &CHAT.to_string());
    env.wake(&["--once"]).ok();
    let times = [
        "'2026-11-21T13:59:00Z'",
        "'2026-11-21 13:59:00'",
        "'2026-11-21T14:59:00+01:00'",
        "'yesterday, I think'",
        "''",
        "1795269540",
        "1795269540.5",
        "CURRENT_TIMESTAMP",
    ];
    queue_odd(&env, &times);
    for _ in 0..3 {
        env.wake(&["--once"]).ok();
    }
    let facts = env.memory(SEMANTIC);
    for n in (0..times.len()).chain(90..=92) {
        assert_eq!(facts.matches(&format!("- box {n} is blue <!-- wake ")).count(), 1, "box {n} in {facts}");
    }
    assert!(!facts.contains("box 93"));
    assert_eq!(count_boxes_left(&env), 0);
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn rows_that_cannot_be_read_are_reported_and_block_no_others() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.once();
    put_unreadable(&env);
    env.receive(CHAT, "remember that tea is at five");
    for minute in 1..=2 {
        env.at(&format!("2026-11-21T14:0{minute}:00Z")).once();
    }
    let facts = env.memory(SEMANTIC);
    assert!(facts.contains("tea is at five") && facts.contains("box 1 is blue"), "{facts}");
    let said: Vec<String> = telegram.sent().into_iter().map(|sent| sent.visible).collect();
    assert!(said.iter().any(|text| text.contains("tea is at five")), "{said:?}");
    assert!(said.iter().any(|text| text.starts_with('H')) && !said.contains(&"never".to_owned()), "{said:?}");

    // The rows stay, and each is listed with its fault and its repair.
    let named = ["thread_id is text", "chat_id is text", "channel_message_id is blob"];
    let listed = env.wake(&["queue", "list"]).ok().stdout;
    let checked = env.health(&["check"]).ok().stdout;
    let status = env.health(&["status"]).ok().stdout;
    for name in named {
        for text in [&listed, &checked, &status] {
            assert!(text.contains(name), "{name} in {text}");
        }
    }
    let mend = "UPDATE incoming_messages SET chat_id = THE_CHATS_NUMBER WHERE id = 2";
    assert!(checked.contains(mend), "{checked}");
    assert_eq!(env.count_queued(), 3);

    mend_first(&env);
    env.wake(&["queue", "drop", "2"]).ok();
    env.once();
    assert!(env.memory(SEMANTIC).contains("Anna has a dog"));
    assert!(!env.wake(&["queue", "list"]).ok().stdout.contains("chat_id is text"));
    env.check_sound();
}
