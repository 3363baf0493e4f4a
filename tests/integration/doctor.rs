//! Tests of `health check` as a person's first help: the checks of Telegram, of the model's server, and of the timers, and `--fix`.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::Value;

use super::support::{
    claude::{API_KEY, FakeClaude},
    dialog::Dialog,
    env::{ProgramOutput, TestEnv},
    telegram::FakeTelegram,
};

const HEALTH: &str = env!("CARGO_BIN_EXE_health");

fn report(env: &TestEnv, args: &[&str]) -> Value {
    env.health(&[&["check", "--json"], args].concat()).json()
}

/// The status and the detail of a check.
#[track_caller]
fn found(report: &Value, id: &str) -> (String, String) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id} in {report:#}"));
    (check["status"].as_str().unwrap().to_owned(), check["detail"].as_str().unwrap().to_owned())
}

#[test]
fn telegram_and_the_model_are_asked_and_a_missing_network_is_reported() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = TestEnv::with_telegram(&telegram);
    env.think_with(&claude);
    env.wake(&["--once"]).ok();
    let well = report(&env, &[]);
    let (status, token) = found(&well, "token");
    assert!(status == "ok" && token.contains("Telegram knows it as @"), "{token}");
    let (status, key) = found(&well, "key");
    assert!(status == "ok" && key.contains("Claude accepts the key"), "{key}");
    assert!(found(&report(&env, &["--offline"]), "token").1.ends_with("allowed chats: 1"));

    // A webhook takes the messages, and the key is mistyped.
    telegram.set_webhook("https://hooks.example.org/secret-path");
    env.set("ANTHROPIC_API_KEY", &format!("{API_KEY}x"));
    let wrong = report(&env, &[]);
    let (status, token) = found(&wrong, "token");
    assert!(status == "critical" && token.contains("a webhook at hooks.example.org takes"), "{token}");
    assert!(!token.contains("secret-path"), "{token}");
    assert_eq!(found(&wrong, "key").0, "warn", "{wrong:#}");

    // Nobody answers, which isn't an error in the settings.
    env.set("TELEGRAM_API_URL", "http://127.0.0.1:9").set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let dead = report(&env, &[]);
    for (id, said) in [("token", "Telegram couldn't be reached"), ("key", "it couldn't be reached now")] {
        let (status, detail) = found(&dead, id);
        assert!(status == "ok" && detail.contains(said), "{id}: {detail}");
    }
}

#[test]
fn an_unknown_token_is_critical_with_its_reason_and_its_remedy() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.wake(&["--once"]).ok();
    env.set("TELEGRAM_BOT_TOKEN", "99:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB");
    let ran = env.health(&["check"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let told = ran.stdout.split("critical token").nth(1).unwrap();
    assert!(told.contains("Telegram rejects it") && told.contains("no Telegram messages arrive"), "{told}");
    assert!(told.contains("-> copy all of it again from @BotFather"), "{told}");
    assert!(!ran.stdout.contains("BBBB"), "{ran:?}");
}

fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Installs a systemd unit, and a fake `systemctl` that reports this state.
fn with_unit(env: &mut TestEnv, state: &str) {
    let wake = env!("CARGO_BIN_EXE_wake");
    let unit = env.path("home/.config/systemd/user/reveille-wake.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    let dirs = env.path("empty").display().to_string();
    fs::write(unit, format!("[Service]\nExecStart={wake} --once\nEnvironment=PATH=%h/.local/bin:{dirs}\n")).unwrap();
    program(&env.path("tools/systemctl"), &format!("echo {state}\n[ {state} = active ] || exit 3"));
    program(&env.path("tools/crontab"), "echo 'no crontab for ann' >&2; exit 1");
    let path = format!("{}:{}", env.path("tools").display(), env.get("PATH"));
    env.set("PATH", &path);
}

#[test]
fn missing_timers_and_programs_missing_from_their_path_are_reported() {
    let mut env = TestEnv::new();
    env.wake(&["--once", "--reason", "cron"]).ok();
    assert_eq!(found(&report(&env, &[]), "timers").0, "ok");
    with_unit(&mut env, "active");
    let (status, path) = found(&report(&env, &[]), "path");
    assert!(status == "warn" && path == "wake, when started by systemd, can't find git", "{path}");
    program(&env.path("home/.local/bin/git"), "exec git");
    assert_eq!(found(&report(&env, &[]), "path").0, "ok");

    env.at("2026-11-21T17:00:00Z");
    let (status, missed) = found(&report(&env, &[]), "timers");
    assert!(
        status == "warn" && missed.contains("systemd should start a wake every five minutes but doesn't"),
        "{missed}"
    );
    with_unit(&mut env, "inactive");
    assert!(found(&report(&env, &[]), "timers").1.contains("not running: reveille-wake.timer"));
    fs::remove_dir_all(env.path("home/.config")).unwrap();
    assert!(found(&report(&env, &[]), "timers").1.contains("nothing starts wakes automatically"));
}

#[test]
fn an_mcp_server_that_cannot_start_is_reported() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    assert_eq!(found(&report(&env, &[]), "mcp").1, "none set up");
    let path = env.workspace().join("mcp.toml");
    fs::write(&path, "[[server]]\nname = \"notes\"\ncommand = [\"no-such-program\"]\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let (status, detail) = found(&report(&env, &[]), "mcp");
    assert!(status == "warn" && detail.contains("the server notes can't start: no-such-program"), "{detail}");
}

/// An environment with three problems: a workspace that is open to others, a webhook, and no timers.
fn ailing() -> (FakeTelegram, TestEnv) {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.wake(&["--once"]).ok();
    telegram.set_webhook("https://hooks.example.org/x");
    env.at("2026-11-21T17:00:00Z");
    // A fake `crontab`, so that the real machine's timers aren't checked.
    program(&env.path("tools/crontab"), "echo 'no crontab for ann' >&2; exit 1");
    let path = format!("{}:{}", env.path("tools").display(), env.get("PATH"));
    env.set("PATH", &path);
    fs::set_permissions(env.workspace(), fs::Permissions::from_mode(0o755)).unwrap();
    (telegram, env)
}

fn mode(env: &TestEnv) -> u32 {
    fs::metadata(env.workspace()).unwrap().permissions().mode() & 0o777
}

#[test]
fn without_a_terminal_fix_makes_safe_repairs_and_names_the_rest() {
    let (telegram, env) = ailing();
    let ProgramOutput { code, stdout, .. } = env.health(&["check", "--fix"]);
    assert_eq!((code, mode(&env)), (1, 0o750), "{stdout}");
    assert!(telegram.has_webhook());
    assert!(stdout.contains("Done: Close ") && stdout.contains(": bot webhook delete\n"), "{stdout}");
    assert!(stdout.contains("For you to do: Install automatic wakes every five minutes: wake install"), "{stdout}");
    // A check without `--fix` doesn't change the permissions.
    fs::set_permissions(env.workspace(), fs::Permissions::from_mode(0o755)).unwrap();
    env.health(&["check"]);
    assert_eq!(mode(&env), 0o755);
}

#[test]
fn at_a_terminal_fix_asks_before_repairs_a_person_may_not_want() {
    let (telegram, env) = ailing();
    let mut dialog = Dialog::start(&env, HEALTH, &["check", "--fix"]);
    dialog.answer("every five minutes? [y/N] ", "");
    dialog.until("Left as it is. To do it yourself: wake install");
    dialog.answer("Remove the webhook at hooks.example.org, so that the bot gets its messages? [y/N] ", "yes");
    let ran = dialog.end();
    assert!(!telegram.has_webhook() && ran.code == 0, "{ran:?}");
    assert!(ran.stdout.contains("Telegram knows it as @"), "the checks ran again: {ran:?}");
    assert_eq!(mode(&env), 0o750);
}

#[test]
fn at_a_terminal_fix_offers_suggested_commands_and_a_wake_at_last() {
    let (_telegram, mut env) = ailing();
    env.at("2026-11-21T17:00:00Z");
    env.once();
    env.wake(&["remind", "--at", "18:30", "call mum"]).ok();
    env.at("2026-11-21T19:00:00Z");
    fs::write(env.workspace().join("brain/.git/index"), "no index").unwrap();
    let told = env.health(&["check"]).stdout;
    assert!(told.contains("rm .git/index && git reset") && told.contains("unsent reminders: 1"), "{told}");
    let mut dialog = Dialog::start(&env, HEALTH, &["check", "--fix"]);
    dialog.answer("every five minutes? [y/N] ", "");
    dialog.answer("Run `rm .git/index && git reset` in ", "yes");
    dialog.answer("Remove the webhook", "");
    dialog.answer("Run a wake now for the waiting work? [y/N] ", "yes");
    dialog.until("Done: Run a wake now for the waiting work.");
    let ran = dialog.end();
    assert_eq!(env.outbox_of("reminder").len(), 1, "{ran:?}");
    let told = env.health(&["check"]).stdout;
    assert!(!told.contains(".git/index") && told.contains("nothing is overdue"), "{told}");
}

#[test]
fn at_a_terminal_fix_offers_to_retry_messages_given_up() {
    let (_telegram, env) = ailing();
    env.once();
    env.queue_by_hand(77, "hello");
    env.give_up_message(env.received().len() as i64);
    let told = env.health(&["check"]).stdout;
    assert!(told.contains("1 message given up"), "{told}");
    let mut dialog = Dialog::start(&env, HEALTH, &["check", "--fix"]);
    dialog.answer("every five minutes? [y/N] ", "");
    dialog.answer("Retry message 1 at the next wake? [y/N] ", "y");
    dialog.until("Done: Retry message 1 at the next wake.");
    dialog.answer("Remove the webhook", "");
    dialog.end();
    assert_eq!(env.message(1).attempts, 0);
}
