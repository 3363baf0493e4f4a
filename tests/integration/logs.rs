//! The log as files: what reaches them and what doesn't, two programs that write and cut at the same time, what can't be written, and
//! `wake logs`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use serde_json::{Value, json};

use super::{
    support::story::with_claude,
    support::{
        bot::Stage,
        claude::{API_KEY, Block, Reply},
        dialog::Dialog,
        env::{CHAT, TestEnv, eventually},
        spelled::{shown_in, spelled},
        telegram::TOKEN,
    },
};

fn log(env: &TestEnv, program: &str) -> PathBuf {
    env.workspace().join(format!("logs/{program}.log"))
}

fn text(env: &TestEnv, program: &str) -> String {
    fs::read_to_string(log(env, program)).unwrap_or_default()
}

/// A message, a plan, a fact, a failing call of a name that a model made up, an answer: not a word of any is in a file at info.
#[test]
fn no_word_of_a_message_or_a_model_and_no_secret_is_in_a_file() {
    for format in ["text", "json"] {
        let (telegram, claude, mut env) = with_claude();
        env.set("LOG_FORMAT", format);
        env.wake(&["--once"]).ok();
        let secret = spelled(API_KEY)[2].clone();
        env.receive(CHAT, &format!("Please keep that the zeppelin flies at noon. {secret} {TOKEN}"));
        claude.expect(Reply::tools(vec![
            Block::tool("r", "remember", json!({"fact": "the zeppelin flies at noon"})),
            Block::tool("x", "zeppelin_tool", json!({"zeppelin": "aloft"})),
            Block::tool("f", "forget", json!({"fact": "no such zeppelin", "why": "zeppelin"})),
            Block::tool("s", "reply", json!({"text": format!("The zeppelin is noted. {secret}")})),
        ]));
        claude.expect(Reply::text("Zeppelin noted."));
        env.wake(&["--once"]).ok();
        assert!(telegram.sent()[0].visible.contains("zeppelin"));

        let log = text(&env, "wake");
        // It does tell what was done, and how long it took.
        for told in ["cycle", "remember", "unknown", "the model answered", "the wake is over", "close"] {
            assert!(log.contains(told), "{told} in {log}");
        }
        assert!(!log.to_lowercase().contains("zeppelin"), "{log}");
        for secret in [API_KEY, TOKEN] {
            assert_eq!(shown_in(&log, secret), None, "{log}");
        }
        if format == "json" {
            let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let call = lines.iter().find(|line| line["message"] == "close").unwrap();
            assert_eq!(
                (&call["program"], &call["level"], &call["timestamp"]),
                (&json!("wake"), &json!("INFO"), &json!("2026-11-21T14:00:00.000Z"))
            );
            assert_eq!((&call["spans"][0]["chat"], &call["span"]["tool"]), (&json!(CHAT), &json!("remember")));
        }
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(self::log(&env, "wake")), mode(env.workspace().join("logs"))), (0o600, 0o700));
    }
}

#[test]
fn an_idle_wake_and_a_dry_run_write_no_line() {
    let mut env = TestEnv::new();
    // Notes about the settings would be written by each.
    env.set("MONTHLY_BUDGET_USD", "");
    env.wake(&["--once", "--say", "remember that tea is green"]).ok();
    let before = text(&env, "wake");
    assert!(before.contains("the wake is over"), "{before}");
    fs::remove_dir_all(env.workspace().join("logs")).unwrap();
    assert_eq!(env.once()["outcome"], "idle");
    env.health(&["check", "--dry-run", "--offline"]).ok();
    env.wake(&["logs"]).ok();
    assert!(!env.workspace().join("logs").exists());
}

#[test]
fn a_log_that_can_not_be_written_stops_nobody() {
    let env = TestEnv::new();
    env.wake(&["--once", "--say", "remember that milk is white"]).ok();
    fs::remove_dir_all(env.workspace().join("logs")).unwrap();
    fs::write(env.workspace().join("logs"), "a file in its place").unwrap();
    let ran = env.wake(&["--once", "--say", "remember that tea is green"]).ok();
    assert!(ran.stdout.contains("Remembered"), "{ran:?}");
    fs::remove_file(env.workspace().join("logs")).unwrap();
    // A link in its place isn't followed.
    fs::create_dir(env.workspace().join("logs")).unwrap();
    std::os::unix::fs::symlink("/dev/full", log(&env, "wake")).unwrap();
    env.wake(&["--once", "--say", "remember that coffee is black"]).ok();
    env.check_sound();
}

#[test]
fn standard_error_without_a_terminal_has_warnings_alone() {
    let mut env = TestEnv::new();
    let ran = env.wake(&["--once", "--say", "remember that milk is white"]).ok();
    ran.assert_never_tells("INFO");
    assert!(text(&env, "wake").contains(" INFO "), "{}", ran.notices());
    env.set("LOG_FORMAT", "off").at("2026-11-21T14:05:00Z");
    let before = text(&env, "wake");
    let ran = env.wake(&["--once", "--say", "remember that tea is green"]).ok();
    ran.assert_tells("INFO");
    assert_eq!(text(&env, "wake"), before);
    env.set("LOG_FORMAT", "text").set("RUST_LOG", "error,reveille_cycle::run=info");
    let ran = env.wake(&["--once", "--say", "remember that coffee is black"]).ok();
    ran.assert_tells("the wake is over").assert_never_tells("REVEILLE_NOW");
}

/// A bot and a wake that it starts, each with its own file; merged and followed in one place, across a rotation.
#[test]
fn wake_logs_shows_all_programs_and_follows_them() {
    let mut stage = Stage::new();
    stage.env.set("NO_COLOR", "1");
    stage.env.wake(&["--once", "--say", "remember that tea is green"]).ok();
    let bot = stage.start_polling();
    eventually("the bot has a log", || text(&stage.env, "bot").contains("listening"));
    let all = stage.env.wake(&["logs"]).ok().stdout;
    assert!(all.contains(" wake[") && all.contains(" bot[") && all.contains("listening"), "{all}");
    let some = stage.env.wake(&["logs", "--program", "wake", "--grep", "WAKE IS OVER", "-n", "1"]).ok().stdout;
    assert!(some.lines().count() == 1 && some.contains("the wake is over"), "{some}");
    let none = stage.env.wake(&["logs", "--since", "2026-11-22"]).ok();
    none.assert_tells("No such line");
    assert!(none.stdout.is_empty(), "{none:?}");
    let wrong = stage.env.wake(&["logs", "--program", "cron"]);
    wrong.assert_fails(2, "wake, bot, health, page, transcriber");

    let mut follower = Dialog::start(&stage.env, env!("CARGO_BIN_EXE_wake"), &["logs", "-f", "-n", "0"]);
    let path = log(&stage.env, "wake");
    // It has looked where the files end once it shows what comes then.
    eventually("it follows", || {
        stage.env.run("sh", &["-c", &format!("echo '2026-11-21T14:00:00.000Z probe' >>'{}'", path.display())]).ok();
        follower.shown().contains("probe")
    });
    fs::rename(&path, path.with_extension("log.1")).unwrap();
    stage.env.at("2026-11-21T14:10:00Z");
    stage.env.wake(&["--once", "--say", "remember that coffee is black"]).ok();
    follower.until("the wake is over");
    stage.end(bot);
    follower.until("asked to end");
    follower.interrupt();
    follower.end();
}
