//! Tests of `health`: something real is broken, the report says so, repairable faults are repaired, and then all is well again.

use serde_json::Value;
use std::{
    fs,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use reveille_base::{clock::parse_time, process::Identity, types::ChatRef};
use reveille_store::{
    NewOutgoing, OutgoingKind, Pick, Store,
    wake_lock::{self, Holder},
};

use super::support::{
    disk::Small,
    env::{CHAT, NOW, Running, TestEnv},
};

const TOMORROW: &str = "2026-11-22T14:00:00Z";
const ACTIVE: &str = "memory/project-memory/active.md";
const EPISODIC: &str = "memory/agent-memory/episodic-memory.md";

/// An environment with a bot's token, in which a first wake has run and all is well.
fn healthy() -> TestEnv {
    let env = with_token();
    env.wake(&["--once", "--reason", "cron"]).ok();
    assert_all_well(&env);
    env
}

fn with_token() -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TELEGRAM_BOT_TOKEN", "99:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
        .set("ALLOWED_CHAT_IDS", "4242")
        .set("TELEGRAM_API_URL", "http://127.0.0.1:9");
    env
}

/// Runs `health check --json` and returns the report; the exit code must agree with it.
#[track_caller]
fn check(env: &TestEnv, args: &[&str]) -> Value {
    let args: Vec<&str> = ["check", "--json", "--offline"].iter().chain(args).copied().collect();
    let ran = env.health(&args);
    let report = ran.json();
    let expected = i32::from(report["status"] == "critical");
    assert_eq!(ran.code, expected, "{ran:#?}");
    report
}

/// Finds one check in a report.
#[track_caller]
fn of<'r>(report: &'r Value, id: &str) -> &'r Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap()
}

#[track_caller]
fn assert_all_well(env: &TestEnv) {
    let report = check(env, &[]);
    assert_eq!(report["status"], "ok", "{report:#}");
    assert_eq!(report["repaired"], serde_json::json!([]), "{report:#}");
}

/// Checks that a check has this status and that nothing was repaired. Returns the check's detail.
#[track_caller]
fn assert_found(env: &TestEnv, id: &str, status: &str) -> String {
    let report = check(env, &[]);
    assert_eq!(of(&report, id)["status"], status, "{report:#}");
    assert_eq!(report["repaired"], serde_json::json!([]), "{report:#}");
    assert!(of(&report, id)["fix"].is_string() || status == "ok", "{report:#}");
    of(&report, id)["detail"].as_str().unwrap().to_owned()
}

/// Checks that a dry run finds the fault without touching anything, that a check repairs it, and that all is well afterwards.
#[track_caller]
fn assert_repaired(env: &TestEnv, id: &str) {
    let before = everything(env);
    let report = check(env, &["--dry-run"]);
    assert_eq!(of(&report, id)["status"], "warn", "{report:#}");
    let detail = of(&report, id)["detail"].as_str().unwrap();
    assert!(detail.contains("would be repaired"), "{detail}");
    assert_eq!(report["repaired"], serde_json::json!([]));
    assert_eq!(everything(env), before, "the dry run touched something");

    let report = check(env, &[]);
    assert_eq!(report["repaired"], serde_json::json!([id]), "{report:#}");
    assert_eq!(of(&report, id)["status"], "ok", "{report:#}");
    let report = check(env, &[]);
    assert_eq!(report["repaired"], serde_json::json!([]), "{report:#}");
}

/// Every file of the workspace with its content, except those that SQLite manages for readers.
fn everything(env: &TestEnv) -> Vec<(String, Vec<u8>)> {
    fn walk(dir: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if !["messages.db-shm", "messages.db-wal"].iter().any(|name| path.ends_with(name)) {
                found.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&env.workspace(), &mut found);
    found.sort();
    found
}

/// The identity of a process that was killed.
fn dead() -> Identity {
    let env = TestEnv::new();
    let sleeping = env.start("sleep", &["1000"]);
    let identity = Identity::for_pid(sleeping.pid()).unwrap();
    sleeping.signal(rustix::process::Signal::KILL);
    sleeping.end();
    assert!(!identity.is_alive());
    identity
}

fn lock_line_of(identity: &Identity) -> String {
    let holder = Holder {
        pid: identity.pid,
        boot_id: identity.boot_id.clone(),
        started_at: NOW.to_owned(),
        cycle_id: None,
        process_started: identity.started.clone(),
        alive_at_s: None,
        chat: None,
        thread_id: None,
        messages: Vec::new(),
    };
    serde_json::to_string(&holder).unwrap()
}

/// A model that accepts a request and never answers.
struct Silent {
    listener: TcpListener,
}

impl Silent {
    fn think_with(env: &mut TestEnv) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        env.set("ANTHROPIC_API_KEY", "sk-ant-test-key-0123456789").set("ANTHROPIC_BASE_URL", &url);
        Self { listener }
    }

    /// Starts a wake, and returns it in the middle of its cycle. The caller must keep the connection.
    fn wake(&self, env: &TestEnv) -> (Running, TcpStream) {
        let wake = env.start(env!("CARGO_BIN_EXE_wake"), &["--once", "--say", "What is love?"]);
        let (asked, _) = self.listener.accept().unwrap();
        (wake, asked)
    }
}

fn offline(env: &mut TestEnv) {
    env.unset("ANTHROPIC_API_KEY").unset("ANTHROPIC_BASE_URL");
}

#[test]
fn before_the_first_wake_nothing_is_critical_and_nothing_is_created() {
    let env = with_token();
    let report = check(&env, &[]);
    assert_eq!(report["status"], "warn", "{report:#}");
    assert_eq!(of(&report, "workspace")["status"], "warn");
    assert!(!env.workspace().exists());
    let ids: Vec<&str> =
        report["checks"].as_array().unwrap().iter().map(|check| check["id"].as_str().unwrap()).collect();
    assert_eq!(ids, reveille::health::IDS);
}

#[test]
fn the_report_for_people_has_a_line_per_check_and_names_remedies() {
    let mut env = healthy();
    let ran = env.health(&["check"]).ok();
    assert!(ran.stdout.ends_with("\nAll is well.\n"), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.starts_with("ok  ") || line.is_empty() || line == "All is well."));
    env.unset("TELEGRAM_BOT_TOKEN");
    let ran = env.health(&["check"]).ok();
    assert!(ran.stdout.contains("\nwarn     token ") && ran.stdout.contains("-> ask @BotFather"), "{}", ran.stdout);
}

#[test]
fn a_killed_wake_is_cleaned_up_after_and_the_next_wake_logs_the_repair() {
    let mut env = healthy();
    let mind = Silent::think_with(&mut env);
    let (wake, asked) = mind.wake(&env);
    let pid = wake.pid();
    wake.signal(rustix::process::Signal::KILL);
    wake.end();
    drop(asked);
    assert!(env.is_locked());

    assert_repaired(&env, "lock");
    assert!(!env.is_locked());
    assert_eq!(fs::read_to_string(env.workspace().join(".wake-lock")).unwrap(), "");
    // The cycle that the next wake will resume is only reported.
    let report = check(&env, &[]);
    for id in ["plans", "cycles"] {
        assert_eq!(of(&report, id)["status"], "warn", "{report:#}");
        assert!(of(&report, id)["detail"].as_str().unwrap().contains("cut off"), "{report:#}");
    }

    offline(&mut env);
    env.wake(&["--once", "--say", "remember that the key is under the mat"]).ok();
    assert_all_well(&env);
    let log = env.memory(EPISODIC);
    assert!(log.contains(&format!("freed the lock of a wake that had died (pid {pid})")), "{log}");
}

#[test]
fn a_running_wake_is_never_taken_for_stale() {
    let mut env = healthy();
    let mind = Silent::think_with(&mut env);
    let (wake, _asked) = mind.wake(&env);
    let me = Identity::for_pid(wake.pid()).unwrap();
    let lock_path = env.workspace().join(".wake-lock");
    let holder = || wake_lock::read_holder(&lock_path).map(|holder| (holder.identity(), holder.cycle_id));
    let held_by = holder();
    let plan = env.workspace().join("plan-20261121T000000Z-1.md");
    fs::write(&plan, "nobody knows this one").unwrap();

    // Within its time limit the wake is fine; a day later it is reported. It is left alone both times, and nothing is repaired meanwhile.
    assert!(assert_found(&env, "lock", "ok").contains(&format!("pid {}", wake.pid())));
    env.at(TOMORROW);
    let report = check(&env, &[]);
    assert_eq!(of(&report, "lock")["status"], "warn", "{report:#}");
    assert_eq!(report["repaired"], serde_json::json!([]));
    for id in ["plans", "cycles"] {
        assert_eq!(of(&report, id)["status"], "ok", "{report:#}");
    }
    assert!(me.is_alive() && plan.exists());
    assert_eq!(holder(), held_by);
    assert!(env.is_locked());
}

#[test]
fn a_lock_that_outlived_its_wake_is_reported_with_its_holder_and_left() {
    let env = healthy();
    let path = env.workspace().join(".wake-lock");
    let line = lock_line_of(&dead());
    fs::write(&path, &line).unwrap();
    let inherited = fs::File::open(&path).unwrap();
    fs2::FileExt::lock_exclusive(&inherited).unwrap();
    let detail = assert_found(&env, "lock", "critical");
    if cfg!(target_os = "linux") {
        assert!(detail.contains(&format!("pid {}", std::process::id())), "{detail}");
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), line);
    drop(inherited);
    assert_repaired(&env, "lock");
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
}

#[test]
fn leftover_plans_of_finished_cycles_are_put_away() {
    let env = healthy();
    env.wake(&["--once", "--say", "remember that tea is green"]).ok();
    let done = env.cycles_in("done")[0].id.clone();
    for id in [done.as_str(), "20261121T000000Z-1"] {
        fs::write(env.workspace().join(format!("plan-{id}.md")), format!("# Wake {id}\n")).unwrap();
    }
    let theirs = env.workspace().join("plan-holiday.md");
    fs::write(&theirs, "Portugal\n").unwrap();
    assert_repaired(&env, "plans");
    for id in [done.as_str(), "20261121T000000Z-1"] {
        let kept = env.workspace().join(format!("logs/plans/plan-{id}.md"));
        assert_eq!(fs::read_to_string(kept).unwrap(), format!("# Wake {id}\n"));
        assert!(!env.workspace().join(format!("plan-{id}.md")).exists());
    }
    assert_eq!(fs::read_to_string(theirs).unwrap(), "Portugal\n");
    assert_eq!(env.open_repairs().iter().filter(|repair| repair.check_id == "plans").count(), 2);
    assert_all_well(&env);
}

#[test]
fn a_waiting_cycle_that_nobody_resumes_is_reported() {
    let env = healthy();
    let insert = |state: &str, not_before: &str| {
        env.forget_cycle("c1");
        env.put_cycle("c1", state, "m", "2026-11-21T13:00:00Z");
        env.alter_cycle("c1", "not_before", not_before);
    };
    insert("waiting", "2026-11-21T14:30:00Z");
    assert!(assert_found(&env, "cycles", "ok").contains("retry due in 30 min"));
    insert("waiting", "2026-11-21T13:10:00Z");
    assert!(assert_found(&env, "cycles", "warn").contains("could have continued"));
    env.forget_cycle("c1");
    assert_all_well(&env);
}

#[test]
fn a_damaged_database_is_critical_and_stops_no_other_check() {
    let env = healthy();
    let path = env.workspace().join("messages.db");
    let sound = fs::read(&path).unwrap();

    // Damages the file's head, then a page in its middle.
    let mut head = sound.clone();
    head[..100].fill(b'x');
    let mut page = sound.clone();
    page[3 * 4096..5 * 4096].fill(0xa5);
    for damaged in [head, page] {
        for log in ["-wal", "-shm"] {
            fs::remove_file(env.workspace().join(format!("messages.db{log}"))).ok();
        }
        fs::write(&path, &damaged).unwrap();
        let report = check(&env, &[]);
        assert_eq!(report["status"], "critical", "{report:#}");
        assert_eq!(of(&report, "database")["status"], "critical", "{report:#}");
        assert!(of(&report, "database")["fix"].as_str().unwrap().contains(".recover"));
        for id in ["workspace", "disk", "repository", "memory", "token"] {
            assert_eq!(of(&report, id)["status"], "ok", "{report:#}");
        }
        assert_eq!(fs::read(&path).unwrap(), damaged, "the repair is left to a person");
        env.health(&["status"]).ok();
        fs::write(&path, &sound).unwrap();
        assert_all_well(&env);
    }
}

#[test]
fn a_database_of_an_older_program_is_reported_and_migrated_by_a_wake() {
    let env = TestEnv::new();
    fs::create_dir_all(env.workspace()).unwrap();
    let first = include_str!("../../crates/store/src/tests/older/v1.sql").lines();
    env.execute(&first.filter(|line| line.starts_with("CREATE")).collect::<String>());
    env.put_version(1);
    env.queue_by_hand(0, "list tasks");
    for args in [&["--dry-run"][..], &[]] {
        let report = check(&env, args);
        let database = of(&report, "database");
        assert_eq!(database["status"], "warn", "{report:#}");
        assert!(database["detail"].as_str().unwrap().contains("schema version 1"), "{database}");
    }
    env.health(&["status"]).ok();
    assert_eq!(env.once()["answered"], 1);
    assert_eq!(of(&check(&env, &[]), "database")["status"], "ok");
}

#[test]
fn a_database_that_a_newer_program_has_changed_is_left_alone() {
    let env = healthy();
    let known = env.version();
    env.put_version(99);
    assert_all_well(&env);
    env.put_readable_from(99);
    assert!(assert_found(&env, "database", "critical").contains("99"));
    env.put_version(known);
    assert_all_well(&env);
}

#[test]
fn messages_that_wait_too_long_or_are_too_many_are_reported() {
    let env = healthy();
    let fill = |count: usize, at: &str| env.queue_many(CHAT, "hello", at, count);
    fill(50, "2026-11-21T13:30:00Z");
    assert!(assert_found(&env, "queue", "ok").contains("50 waiting"));
    fill(1, "2026-11-21T13:30:00Z");
    assert!(assert_found(&env, "queue", "warn").contains("51 waiting"));
    env.empty_queue();
    fill(1, "2026-11-21T12:30:00Z");
    assert!(assert_found(&env, "queue", "warn").contains("1 h ago"));
    // A message that this model can't answer waits as it should.
    env.keep_queued_for_another_than("offline");
    assert!(assert_found(&env, "queue", "ok").contains("1 kept until an AI model can answer"));
}

fn send(store: &mut Store) -> i64 {
    let message = NewOutgoing {
        chat: ChatRef::from_telegram(4242),
        text: "Hello".to_owned(),
        kind: OutgoingKind::Reply,
        ..NewOutgoing::default()
    };
    store.outbox_mut().plan_message(&message, parse_time(NOW).unwrap()).unwrap().unwrap()
}

#[test]
fn a_message_whose_sender_died_is_planned_once_more() {
    let env = healthy();
    let mut store = env.store();
    send(&mut store);
    // A living sender is left alone.
    let now = parse_time(NOW).unwrap();
    store.outbox_mut().claim_part(Pick::default(), &Identity::current(), now).unwrap().unwrap();
    assert_found(&env, "outbox", "ok");
    let sender = serde_json::to_string(&dead()).unwrap();
    env.put_sender(&sender);
    drop(store);
    assert_repaired(&env, "outbox");
    let parts = env.parts();
    assert_eq!((parts.len(), parts[0].state.as_str(), parts[0].repeats), (1, "planned", 1));
    assert_all_well(&env);
}

#[test]
fn undeliverable_messages_are_reported_with_the_reason() {
    let mut env = healthy();
    send(&mut env.store());
    env.fail_unsent("bot was blocked");
    let detail = assert_found(&env, "outbox", "warn");
    assert!(detail.contains("chat 4242") && detail.contains("bot was blocked"), "{detail}");
    env.put_parts("unknown", 1);
    assert!(assert_found(&env, "outbox", "warn").contains("sent twice"));
    // A message that nobody has tried to send for a long time.
    env.put_parts("planned", 0);
    assert_found(&env, "outbox", "ok");
    env.at("2026-11-21T14:16:00Z");
    assert!(assert_found(&env, "outbox", "warn").contains("isn't delivered"));
    env.empty_outbox();
    assert_all_well(&env);
}

#[test]
fn a_repository_that_wakes_cannot_commit_to_is_reported_with_the_remedy() {
    let env = healthy();
    env.git(&["checkout", "-q", "--detach"]);
    assert!(assert_found(&env, "repository", "warn").contains("detached HEAD"));
    env.git(&["switch", "-q", "-c", "elsewhere"]);
    assert!(assert_found(&env, "repository", "warn").contains("elsewhere"));
    env.git(&["switch", "-q", "main"]);
    fs::write(env.brain().join("photo.jpg"), [0xff, 0xd8]).unwrap();
    assert!(assert_found(&env, "repository", "ok").contains("photo.jpg"));
    assert_all_well(&env);
}

#[test]
fn lock_files_of_dead_git_programs_are_removed() {
    let env = healthy();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let locks = ["index.lock", "refs/heads/main.lock"].map(|name| env.brain().join(".git").join(name));
    for lock in &locks {
        fs::File::create(lock).unwrap().set_modified(long_ago).unwrap();
    }
    assert_repaired(&env, "repository");
    assert!(locks.iter().all(|lock| !lock.exists()));
    env.write_memory("memory/mine.md", "Mine.\n");
    env.git(&["add", "memory/mine.md"]);
    env.git(&["commit", "-q", "-m", "Not blocked"]);
    assert_all_well(&env);
}

#[test]
fn the_locks_of_a_dead_push_in_a_remote_on_this_machine_are_removed_once_they_are_old() {
    let env = healthy();
    let remote = env.bare_remote("remote.git");
    env.git(&["remote", "add", "origin", &remote.display().to_string()]);
    env.git(&["push", "-q", "origin", "main"]);
    env.git(&["fetch", "-q"]);
    let lock = remote.join("refs/heads/main.lock");
    let file = fs::File::create(&lock).unwrap();
    assert_found(&env, "repository", "ok");
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000)).unwrap();
    assert_repaired(&env, "repository");
    assert!(!lock.exists());
}

#[test]
fn a_commit_that_was_cut_off_is_cleared_up() {
    let env = healthy();
    let head = env.git(&["rev-parse", "HEAD"]);
    let prepared = env.git(&["commit-tree", "-p", &head, "-m", "Prepared", "HEAD^{tree}"]);
    let note = env.brain().join(".git/reveille/move.json");
    let planned = serde_json::json!({ "from": head, "to": prepared, "why": "commit: a wake", "files": [] });
    fs::write(&note, planned.to_string()).unwrap();
    assert_repaired(&env, "repository");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), head);

    // The same, cut off after the branch had moved.
    fs::write(&note, planned.to_string()).unwrap();
    env.git(&["update-ref", "refs/heads/main", &prepared]);
    assert_repaired(&env, "repository");
    assert_eq!(env.git(&["rev-parse", "HEAD"]), prepared);
    assert!(!note.exists());
    assert_all_well(&env);
}

#[test]
fn a_repository_with_missing_objects_is_critical() {
    let env = healthy();
    // A commit by git itself isn't packed, so a single object can be removed.
    env.write_memory(ACTIVE, "# Active\n\n## Boat\n- status: active\n- touched: 2026-11-21\n");
    env.git(&["commit", "-q", "-a", "-m", "Boat"]);
    env.wake(&["--once", "--reason", "cron"]).ok();
    let blob = env.git(&["rev-parse", &format!("HEAD:{ACTIVE}")]);
    let (folder, name) = blob.split_at(2);
    let object = env.brain().join(".git/objects").join(folder).join(name);
    let away = env.path("object");
    fs::rename(&object, &away).unwrap();
    assert!(assert_found(&env, "repository", "critical").contains(&blob));
    fs::rename(&away, &object).unwrap();
    assert_all_well(&env);

    let git = env.brain().join(".git");
    fs::rename(&git, env.path("git")).unwrap();
    assert!(assert_found(&env, "repository", "critical").contains("isn't a git repository"));
    fs::rename(env.path("git"), &git).unwrap();
    assert_all_well(&env);
}

#[test]
fn a_dead_remote_is_reported_with_its_error_until_it_is_back() {
    let mut env = with_token();
    let remote = env.bare_remote("remote.git");
    env.set("REPO_URL", &remote.display().to_string());
    env.wake(&["--once", "--reason", "cron"]).ok();
    assert_all_well(&env);
    fs::rename(&remote, env.path("gone.git")).unwrap();
    env.wake(&["--once", "--say", "remember that tea is green"]).ok();
    let detail = assert_found(&env, "remote", "warn");
    assert!(detail.contains("lacks 1 of our commits") && detail.contains("failed once"), "{detail}");
    fs::rename(env.path("gone.git"), &remote).unwrap();
    env.at("2026-11-21T16:00:00Z");
    env.wake(&["--once", "--reason", "cron"]).ok();
    assert!(assert_found(&env, "remote", "ok").contains("has everything"));
    assert_all_well(&env);
}

#[test]
fn memory_with_faults_is_reported_in_detail() {
    let env = healthy();
    let sound = env.memory(ACTIVE);
    let tasks: String = (1..=8).map(|n| format!("\n## Task {n}\n- touched: 2026-11-20\n")).collect();
    env.write_memory(ACTIVE, &format!("# Active\n{tasks}"));
    assert!(assert_found(&env, "memory", "warn").contains("8 tasks are active"));
    fs::remove_file(env.brain().join(ACTIVE)).unwrap();
    assert!(assert_found(&env, "memory", "warn").contains(&format!("{ACTIVE} is missing")));
    env.write_memory(ACTIVE, &sound);
    fs::create_dir_all(env.brain().join("skills/broken")).unwrap();
    env.write_memory("skills/broken/SKILL.md", "no front matter\n");
    assert!(assert_found(&env, "memory", "warn").contains("skills/broken/SKILL.md"));
    fs::remove_dir_all(env.brain().join("skills/broken")).unwrap();
    assert_all_well(&env);
}

#[test]
fn a_workspace_that_others_can_read_is_reported() {
    let env = healthy();
    let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let dot_env = env.workspace().join(".env");
    fs::write(&dot_env, "AUTONOMY=1\n").unwrap();
    chmod(&dot_env, 0o600);
    for (path, open, closed) in [(env.workspace(), 0o755, 0o750), (dot_env, 0o644, 0o600)] {
        chmod(&path, open);
        let detail = assert_found(&env, "workspace", "warn");
        assert!(detail.contains(&path.display().to_string()), "{detail}");
        chmod(&path, closed);
        assert_all_well(&env);
    }
}

#[test]
fn a_missing_token_a_failing_model_and_a_spent_budget_are_reported() {
    let mut env = healthy();
    env.unset("ALLOWED_CHAT_IDS");
    assert!(assert_found(&env, "token", "warn").contains("nobody may talk to the bot yet"));
    env.unset("TELEGRAM_BOT_TOKEN");
    assert!(assert_found(&env, "token", "ok").contains("none"));
    assert!(assert_found(&env, "key", "ok").contains("offline"));

    let mind = Silent::think_with(&mut env);
    drop(mind);
    assert!(assert_found(&env, "key", "ok").contains("not tried yet"));
    assert!(env.health(&["status"]).ok().stdout.contains("not tried yet"));
    env.wake(&["--once", "--say", "What is love?"]);
    assert!(assert_found(&env, "key", "warn").contains("failed once"));
    env.forget_breakers();
    assert_found(&env, "key", "ok");

    env.spend(NOW, 5.0);
    assert!(assert_found(&env, "budget", "warn").contains("today's budget is spent (DAILY_BUDGET_USD); 5.00 of 5.00"));
    env.at(TOMORROW);
    assert_found(&env, "budget", "ok");
}

#[test]
fn a_clock_that_went_back_is_reported() {
    let mut env = healthy();
    env.wake(&["--once", "--say", "remember that tea is green"]).ok();
    env.at("2026-11-20T14:00:00Z");
    assert!(assert_found(&env, "clock", "warn").contains("the clock went back"));
    env.at("1970-01-01T00:01:00Z");
    assert!(assert_found(&env, "clock", "warn").contains("1970"));
    env.at(NOW);
    assert_all_well(&env);
}

#[test]
fn free_space_on_the_disk_is_reported() {
    let env = healthy();
    let report = check(&env, &[]);
    let detail = of(&report, "disk")["detail"].as_str().unwrap();
    assert!(detail.contains("iB free at") && detail.contains(&env.workspace().display().to_string()), "{detail}");
}

#[test]
fn wrong_settings_are_one_critical_check_and_exit_78() {
    let mut env = healthy();
    env.set("TIMEZONE", "Mars/Olympus").set("AUTONOMY", "9");
    let ran = env.health(&["check", "--json"]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    let report = ran.json();
    assert_eq!(report["status"], "critical");
    let detail = of(&report, "configuration")["detail"].as_str().unwrap();
    assert!(detail.contains("TIMEZONE") && detail.contains("AUTONOMY"), "{detail}");
    let ran = env.health(&["status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (78, ""));
    ran.assert_tells("TIMEZONE");
}

/// The mails that cron sends: each problem is reported once, and again if it returns after being solved.
#[test]
fn a_quiet_check_prints_only_new_problems() {
    let env = healthy();
    let quietly = |env: &TestEnv| {
        let ran = env.health(&["check", "--quiet"]);
        (ran.code, ran.stdout.clone(), ran.notices().to_owned())
    };
    // A note about the settings is printed only once too.
    let (code, said, notes) = quietly(&env);
    assert!(code == 0 && said.is_empty() && notes.contains("REVEILLE_NOW"), "{said}{notes}");
    assert_eq!(quietly(&env), (0, String::new(), String::new()));
    let open = |mode| fs::set_permissions(env.workspace(), fs::Permissions::from_mode(mode)).unwrap();
    open(0o755);
    let (code, said, _) = quietly(&env);
    assert!(code == 0 && said.starts_with("warn     workspace") && !said.contains("ok "), "{said}");
    assert_eq!(quietly(&env), (0, String::new(), String::new()));
    open(0o700);
    assert_eq!(quietly(&env), (0, String::new(), String::new()));
    open(0o755);
    assert!(quietly(&env).1.contains("workspace"));
    // A critical problem is printed only once too; monitoring sees it by the exit code each time.
    for log in ["-wal", "-shm"] {
        fs::remove_file(env.workspace().join(format!("messages.db{log}"))).ok();
    }
    fs::write(env.workspace().join("messages.db"), "nonsense".repeat(1_000)).unwrap();
    let (code, said, _) = quietly(&env);
    assert!(code == 1 && said.contains("critical database"), "{said}");
    let (code, said, _) = quietly(&env);
    assert_eq!((code, said.as_str()), (1, ""));
    // A check without `--quiet` neither reads nor changes the list of reported problems.
    assert_eq!(of(&check(&env, &[]), "database")["status"], "critical");
}

#[test]
fn the_command_line_explains_its_usage() {
    let env = TestEnv::new();
    let ran = env.health(&[]);
    assert_eq!(ran.code, 2);
    ran.assert_tells("health check --dry-run");
    assert!(env.health(&["--help"]).ok().stdout.contains("Exit codes"));
    assert_eq!(env.health(&["mend"]).code, 2);
}

#[test]
fn status_shows_the_present_state_on_one_screen() {
    let env = healthy();
    env.wake(&["--once", "--say", "remind me to stretch tomorrow at 9"]).ok();
    let ran = env.health(&["status"]).ok();
    for line in [
        "last wake  0 s ago, done (1 message from the terminal)",
        "now        asleep",
        "queue      empty",
        "reminder   Sun 2026-11-22 09:00 (in 18 h): stretch",
        "outbox     everything is delivered",
        "search     by words alone",
        "AI model   offline",
        "cost       0.00 of 5.00 USD today",
    ] {
        assert!(ran.stdout.contains(line), "{line} is missing in\n{}", ran.stdout);
    }
    assert!(ran.stdout.contains("memory     main, as it should be; no remote; "));
    let overview = env.health(&["status", "--json"]).ok().json();
    assert_eq!(overview["last_wake"]["state"], "done");
    assert_eq!(overview["git"]["commit"], env.git(&["rev-parse", "HEAD"]));
    assert_eq!(overview["lock"]["is_held"], false);
}

#[test]
fn a_full_disk_is_reported_and_fine_again_with_more_space() {
    let outer = TestEnv::new();
    let Some(disk) = Small::mount(&outer, "small", 64) else { return };
    let mut env = with_token();
    env.set("WORKSPACE_DIR", &format!("{}/workspace", disk.at()));
    env.wake(&["--once", "--reason", "cron"]).ok();
    let report = check(&env, &[]);
    assert_eq!((&report["status"], &of(&report, "disk")["status"]), (&"critical".into(), &"critical".into()));
    disk.resize(512);
    assert_eq!(of(&check(&env, &[]), "disk")["status"], "warn");
    disk.resize(2_048);
    assert_eq!(of(&check(&env, &[]), "disk")["status"], "ok");
}
