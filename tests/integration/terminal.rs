//! A terminal and its person: what counts as shown, who is answered where, what is read and printed how.

use std::{
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    process::Stdio,
};

use super::support::{
    env::{CHAT, ProgramOutput, TestEnv, eventually},
    telegram::FakeTelegram,
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");

/// A world with a memory, and a reminder at the terminal that is due.
fn due() -> TestEnv {
    let mut env = TestEnv::new();
    env.wake(&["say", "remind me to call Anna at 16:00"]).ok();
    env.at("2026-11-21T15:00:00Z");
    env
}

fn unshown(env: &TestEnv) -> usize {
    env.outbox().iter().filter(|message| message.chat_id == 0 && message.sent_at.is_none()).count()
}

#[test]
fn what_cron_prints_is_nothing_and_the_reminder_waits_for_a_terminal() {
    let env = due();
    assert_eq!(env.wake(&["--once"]).ok().stdout, "");
    assert_eq!(unshown(&env), 1);
    let seen = env.on_terminal(WAKE, &["--once"]).ok();
    assert_eq!(seen.stdout, "⏰ call Anna\n");
    assert_eq!(unshown(&env), 0);
    assert_eq!(env.on_terminal(WAKE, &["--once"]).ok().stdout, "");
}

#[test]
fn a_reminder_that_waits_is_shown_by_whatever_is_said_next() {
    let env = due();
    env.wake(&["--once"]).ok();
    let said = env.wake(&["say", "remember that tea is at five"]).ok();
    assert_eq!(said.stdout, "⏰ call Anna\nRemembered: tea is at five\n");
    assert_eq!(env.run_for_terminal_replies().stdout, "");
    env.check_sound();
}

#[test]
fn a_reminder_that_nobody_sees_at_the_terminal_goes_to_the_owners_chat() {
    let telegram = FakeTelegram::start();
    let mut env = due();
    env.hear(&telegram);
    env.wake(&["--once"]).ok();
    let sent = telegram.sent();
    assert_eq!((sent.len(), sent[0].chat_id, sent[0].visible.as_str()), (1, CHAT, "⏰ call Anna"));
    assert_eq!((unshown(&env), env.run_for_terminal_replies().stdout.as_str()), (0, ""));
    env.check_sound();
}

#[test]
fn what_somebody_sees_at_the_terminal_goes_nowhere_else() {
    let telegram = FakeTelegram::start();
    let mut env = due();
    env.hear(&telegram);
    assert_eq!(env.run_for_terminal_replies().stdout, "⏰ call Anna\n");
    env.wake(&["--once"]).ok();
    assert!(telegram.sent().is_empty());
}

/// A `notify-send` that writes down its arguments, a line each.
fn desktop(env: &mut TestEnv) -> std::path::PathBuf {
    let (dir, seen) = (env.path("desktop"), env.path("notified"));
    std::fs::create_dir(&dir).unwrap();
    let program = dir.join("notify-send");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> {}\n", seen.display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", dir.display(), super::support::env::search_path());
    env.set("PATH", &path).set("DISPLAY", ":9");
    seen
}

#[cfg(target_os = "linux")]
#[test]
fn a_desktop_is_told_once_and_the_reminder_waits_all_the_same() {
    let mut env = TestEnv::new();
    env.wake(&["say", "remind me to stretch -- $(touch pwned) <b>now</b> at 16:00"]).ok();
    env.at("2026-11-21T15:00:00Z");
    let seen = desktop(&mut env);
    env.wake(&["--once"]).ok();
    env.wake(&["--once"]).ok();
    let notified = std::fs::read_to_string(&seen).unwrap();
    assert_eq!(notified, "--app-name=Reveille\n--\nReveille\n⏰ stretch -- $(touch pwned) &lt;b&gt;now&lt;/b&gt;\n");
    assert_eq!(unshown(&env), 1);
    assert!(env.run_for_terminal_replies().stdout.starts_with("⏰ stretch -- $(touch pwned)"));
}

#[cfg(target_os = "linux")]
#[test]
fn where_there_is_no_desktop_nothing_is_started() {
    let mut env = due();
    let seen = desktop(&mut env);
    env.unset("DISPLAY").wake(&["--once"]).ok();
    assert!(!seen.exists());
}

/// Holds the lock as another wake does.
fn held(env: &TestEnv) -> std::fs::File {
    let lock = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(env.workspace().join(".wake-lock"))
        .unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    lock
}

#[test]
fn who_asks_while_another_wake_works_gets_the_answer_once_it_is_done() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let lock = held(&env);
    let asking = env.start(WAKE, &["say", "remember that tea is at five"]);
    eventually("the message is stored", || !env.queued().is_empty());
    drop(lock);
    let ran = asking.end().ok();
    assert_eq!(ran.stdout, "Remembered: tea is at five\n");
    env.check_sound();
}

#[test]
fn who_waits_no_longer_is_told_what_is_kept() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let lock = held(&env);
    let asking = env.start(WAKE, &["say", "remember that tea is at five"]);
    eventually("the message is stored", || !env.queued().is_empty());
    asking.signal(rustix::process::Signal::TERM);
    let ran = asking.end().ok();
    ran.assert_tells("Your message is stored. The answer appears with the next `wake say`");
    drop(lock);
    // The bot's wake, or cron's, answers it; the next terminal shows that.
    env.wake(&["--once"]).ok();
    assert_eq!(env.queued(), []);
    assert_eq!(env.wake(&["say", "list reminders"]).ok().stdout.lines().next(), Some("Remembered: tea is at five"));
}

#[test]
fn a_terminal_shows_no_answer_that_another_one_waits_for() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let mut store = env.store();
    let now = reveille_base::clock::parse_time(env.now()).unwrap();
    // A terminal of this process waits, and another one's wake answers both.
    let session = reveille_store::TerminalSession::generate().unwrap();
    store.terminals_mut().open_session(&session, &reveille_base::process::Identity::current(), now).unwrap();
    store.terminals_mut().say_at_terminal("remember that coffee is at nine", &[], &session, now).unwrap();
    let other = env.wake(&["say", "remember that tea is at five"]).ok();
    assert_eq!(other.stdout, "Remembered: tea is at five\n");
    let texts = |session| {
        store.terminals().console_unshown(session).unwrap().into_iter().map(|(_, text)| text).collect::<Vec<_>>()
    };
    assert_eq!(texts(None), Vec::<String>::new());
    assert_eq!(texts(Some(&session)), ["Remembered: coffee is at nine"]);
    store.terminals_mut().close_session(&session).unwrap();
    assert_eq!(env.run_for_terminal_replies().stdout, "Remembered: coffee is at nine\n");
    let asked = env.received().into_iter().find(|message| message.text.contains("tea")).unwrap();
    let told = env.outbox().into_iter().find(|message| message.text.contains("tea")).unwrap();
    assert_eq!((asked.channel.as_deref(), told.channel.as_deref()), (Some("terminal"), Some("terminal")));
}

#[test]
fn a_terminal_that_died_waits_for_nothing() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let lock = held(&env);
    let asking = env.start(WAKE, &["say", "remember that tea is at five"]);
    eventually("the message is stored", || !env.queued().is_empty());
    asking.signal(rustix::process::Signal::KILL);
    asking.end();
    drop(lock);
    assert_eq!(env.run_for_terminal_replies().stdout, "Remembered: tea is at five\n");
    assert_eq!(env.count_sessions(), 0);
}

#[test]
fn times_of_another_wake_are_on_the_persons_wall() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let lock = held(&env);
    let me = reveille_base::process::Identity::current();
    let holder = serde_json::json!({"pid": me.pid, "boot_id": me.boot_id, "process_started": me.started,
        "started_at": "2026-11-21T13:00:00Z", "cycle_id": null});
    std::fs::write(env.workspace().join(".wake-lock"), holder.to_string()).unwrap();
    env.receive(0, "list reminders");
    let ran = env.wake(&["--once"]).ok();
    ran.assert_tells("since Sat 2026-11-21 14:00).");
    drop(lock);
}

#[test]
fn a_text_comes_from_a_pipe_or_a_dash() {
    let env = TestEnv::new();
    for (n, args) in [&["say"][..], &["say", "-"], &["--once", "--say", "-"]].into_iter().enumerate() {
        let ran = env.run_with_input(WAKE, args, &format!("remember that box {n} is blue\n")).ok();
        assert_eq!(ran.stdout, format!("Remembered: box {n} is blue\n"));
    }
    for (args, input) in [(&["say"][..], " \n"), (&["say", "-"], "")] {
        let ran = env.run_with_input(WAKE, args, input);
        ran.assert_fails(2, "Nothing was queued");
    }
    let ran = env.run_with_input(WAKE, &["say"], &"x".repeat(100_001));
    ran.assert_fails(2, "longer than");
    let ran = env.on_terminal(WAKE, &["say"]);
    ran.assert_fails(2, "Say what?");
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_printed_fails_with_a_word_and_a_closed_pipe_ends_quietly() {
    let env = TestEnv::new();
    env.wake(&["say", "remember that tea is at five"]).ok();
    for (program, args) in [
        (WAKE, &["log"][..]),
        (WAKE, &["log", "--json"]),
        (WAKE, &["policy", "show"]),
        (WAKE, &["say", "list reminders"]),
        (WAKE, &["say", "--json", "list tasks"]),
        (env!("CARGO_BIN_EXE_health"), &["status"]),
        (env!("CARGO_BIN_EXE_bot"), &["send", "--chat", "0", "hello"]),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let written_to = |out: Stdio| {
            ProgramOutput::of(&env.command(program, args).stdout(out).stderr(Stdio::piped()).output().unwrap())
        };
        written_to(full.into()).assert_fails(1, "output is incomplete");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        written_to(writer.into()).ok().assert_never_tells("incomplete");
    }
    // What nobody could read is still to be shown.
    assert!(unshown(&env) >= 3);
}

#[test]
fn policy_prints_json_when_asked() {
    let env = TestEnv::new();
    let shown = env.wake(&["policy", "show", "--json"]).ok().json();
    assert_eq!((&shown["autonomy"], &shown["exists"]), (&serde_json::json!(1), &serde_json::json!(false)));
    assert_eq!(env.wake(&["--json", "policy"]).ok().json()["rules"], serde_json::json!([]));
    let example = env.wake(&["policy", "example", "--json"]).ok().json();
    assert!(example["policy_toml"].as_str().unwrap().contains('['));
}

#[test]
fn a_wrong_number_is_refused_in_words() {
    let env = TestEnv::new();
    for args in
        [&["queue", "retry", "x"][..], &["approvals", "deny", "x"], &["log", "-n", "x"], &["mcp", "--http", "x"]]
    {
        let ran = env.wake(args);
        ran.assert_fails(2, "such as").assert_never_tells("digit");
    }
    let ran = env.bot(&["unpair", "@anna"]);
    ran.assert_fails(2, "such as 123456789");
}

#[test]
fn each_command_has_help_with_an_example() {
    let env = TestEnv::new();
    let commands: [(&str, &[&[&str]]); 3] = [
        (
            WAKE,
            &[
                &["init"],
                &["say"],
                &["chat"],
                &["log"],
                &["show"],
                &["undo"],
                &["stop"],
                &["resume"],
                &["queue"],
                &["queue", "list"],
                &["queue", "retry"],
                &["queue", "drop"],
                &["approvals"],
                &["approvals", "list"],
                &["approvals", "bytes"],
                &["approvals", "approve"],
                &["approvals", "deny"],
                &["policy"],
                &["policy", "test"],
                &["policy", "show"],
                &["policy", "example"],
                &["mcp"],
                &["mcp", "list"],
                &["mcp", "refresh"],
                &["mcp", "try"],
            ],
        ),
        (env!("CARGO_BIN_EXE_bot"), &[&["send"], &["pair"], &["unpair"], &["webhook"]]),
        (env!("CARGO_BIN_EXE_health"), &[&["check"], &["status"]]),
    ];
    for (program, commands) in commands {
        for command in commands {
            let ran = env.run(program, &[*command, &["--help"]].concat()).ok();
            assert!(ran.stdout.contains("Example"), "{command:?}: {}", ran.stdout);
            assert!(!ran.stdout.contains("The others have nothing"), "{command:?}: {}", ran.stdout);
        }
    }
}

#[test]
fn commands_work_at_a_terminal_as_on_telegram() {
    let env = TestEnv::new();
    let say = |words: &[&str]| env.wake(&[&["say"], words].concat()).ok().stdout;
    say(&["remember that tea is at five"]);
    assert!(say(&["/remind", "call Anna tomorrow at 9"]).contains("call Anna"));
    assert_eq!(env.reminders()[0].chat_id, 0);
    assert!(say(&["/remind"]).contains("call Anna"));
    assert!(say(&["/memory", "tea"]).contains("tea is at five"));
    assert!(say(&["/whoami"]).contains("you're my owner"));
    assert!(say(&["/stop"]).starts_with("Stopped."));
    assert!(env.is_stopped());
    say(&["/resume"]);
    assert!(!env.is_stopped());
    let undone = say(&["/undo"]);
    assert!(undone.contains("I've undone what you did"), "{undone}");
    assert_eq!(env.active_reminders().len(), 0);
    let undone = say(&["/undo"]);
    assert!(undone.contains("I've undone what I did"), "{undone}");
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("tea is at five"));
    assert!(!env.received().iter().any(|message| message.text.starts_with('/')));
    env.check_sound();
}

#[test]
fn an_unknown_command_is_answered_with_the_nearest_and_costs_nothing() {
    let env = TestEnv::new();
    let ran = env.wake(&["say", "/reminder", "call Anna"]).ok();
    assert_eq!(
        ran.stdout,
        "There's no command `/reminder`, so nothing was done. Did you mean `/remind`? `/help` lists them all.\n"
    );
    assert_eq!(env.queued(), []);
    // A path is no command.
    env.wake(&["say", "/etc/hosts is broken"]).ok();
    assert_eq!(env.count_received(), 1);
}

#[test]
fn a_terminal_shows_markdown_laid_out_and_a_pipe_as_it_is() {
    let mut env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let store = |text: &str| env.bot(&["send", "--chat", "0", text]).ok();
    store("**Done**: `ls`");
    let seen = env.on_terminal(WAKE, &["--once"]).ok();
    assert_eq!(seen.stdout, "\x1b[1mDone\x1b[0m: \x1b[36mls\x1b[0m\n");
    store("**Done**: `ls`");
    assert_eq!(env.wake(&["say", "/whoami"]).ok().stdout.lines().next(), Some("**Done**: `ls`"));
    store("**Done**: \x1b[31m`ls`\x1b]0;title\x07");
    env.set("NO_COLOR", "1");
    assert_eq!(env.on_terminal(WAKE, &["--once"]).ok().stdout, "Done: ls\n");
    env.bot(&["send", "--chat", "0", "red: \x1b[31mhot"]).ok();
    assert_eq!(env.wake(&["say", "/whoami"]).ok().stdout.lines().next(), Some("red: hot"));
}

#[test]
fn a_terminal_says_that_it_works_and_tells_no_more_unless_asked() {
    // Deliveries are told of at the level of information.
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    let ran = env.on_terminal(WAKE, &["say", "remember that tea is at five"]).ok();
    assert_eq!(ran.stdout, "Remembered: tea is at five\n");
    ran.assert_tells("working…\r        \r").assert_never_tells("INFO");
    let ran = env.on_terminal(WAKE, &["say", "-v", "remember that coffee is at nine"]).ok();
    ran.assert_tells("INFO");
    let mut env = TestEnv::new();
    env.set("NO_COLOR", "1");
    let ran = env.on_terminal(WAKE, &["say", "remember that tea is at five"]).ok();
    ran.assert_never_tells("\x1b");
    assert!(!ran.stdout.contains('\x1b'), "{ran:#?}");
    let ran = env.wake(&["say", "remember that lunch is at one"]).ok();
    ran.assert_never_tells("working…").assert_never_tells("\x1b");
}
