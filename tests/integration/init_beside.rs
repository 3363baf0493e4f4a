//! `wake init` beside other programs: the Claude Code command, and a bot that runs.

#![cfg(target_os = "linux")]

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

use rustix::process::Signal;

use super::{
    init::{env_file, fresh, with_servers, write},
    support::{
        claude::{API_KEY, FakeClaude},
        dialog::Dialog,
        env::{Running, TestEnv, eventually},
        http::{HttpServer, Response},
        telegram::{FakeTelegram, TOKEN},
    },
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
const PATIENCE: Duration = Duration::from_secs(60);

/// Puts a `claude` first into the search path: it says its version, and runs this when it is asked whether it is logged in.
fn install_claude(env: &mut TestEnv, status: &str) -> PathBuf {
    let dir = env.path("claude-bin");
    let program = dir.join("claude");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n--version) echo '2.1.0 (Claude Code)' ;;\n'auth status') {status} ;;\n*) exit 9 ;;\nesac\n"
    );
    write(&program, &script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", dir.display(), env.get("PATH"));
    env.set("PATH", &path);
    program
}

#[test]
fn claude_code_that_is_logged_in_is_offered_and_needs_no_key() {
    let mut env = fresh();
    let program = install_claude(&mut env, r#"echo '{"loggedIn": true, "authMethod": "claude.ai"}'"#);
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    let offered = dialog.answer("[1] > ", "2");
    assert!(offered.contains(&format!("2  Claude Code, with its own login or subscription ({})", program.display())));
    dialog.until("✓ 2.1.0 (Claude Code), logged in");
    let next = dialog.answer("> ", "");
    assert!(next.contains("Telegram:") && !next.contains("API key?"), "{next}");
    for _ in 0..(if reveille_media::speech::IS_BUILT { 8 } else { 7 }) {
        dialog.answer("> ", "");
    }
    let summary = dialog.answer("Write this? [Y/n] ", "n");
    // Cron looks in few places.
    for line in ["MODEL                claude-code".to_owned(), format!("CLAUDE_CODE          {}", program.display())] {
        assert!(summary.contains(&line), "{line} in {summary}");
    }
    dialog.until("Nothing was changed.");
    assert_eq!(dialog.end().code, 1);
    assert!(!env.workspace().exists());
}

#[test]
fn a_server_of_models_at_its_usual_port_is_shown_and_never_proposed() {
    let Ok(listener) = TcpListener::bind(("127.0.0.1", 11434)) else {
        println!("NOT RUN: a_server_of_models_at_its_usual_port_is_shown_and_never_proposed: its port isn't free.");
        return;
    };
    let models = serde_json::json!({"object": "list", "data": [{"id": "gpt-oss:120b-cloud"}, {"id": "glm-4.6:cloud"}, {"id": "qwen3:8b"}, {"id": "evil\u{1b}[2J"}]});
    let _server = HttpServer::on(listener, move |request| match (request.method.as_str(), request.target.as_str()) {
        ("GET", "/v1/models") if request.header("authorization").is_none() => Response::json(200, &models),
        _ => Response::new(404, "404 page not found"),
    });
    let env = fresh();
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    let offered = dialog.answer("[1] > ", "3");
    assert!(
        offered.contains("3  qwen3:8b, from a server on this machine (probably Ollama at http://127.0.0.1:11434/v1"),
        "{offered}"
    );
    assert!(!offered.contains("evil") && !offered.contains("cloud"), "{offered}");
    dialog.until("✓ openai:qwen3:8b at http://127.0.0.1:11434/v1: free, and nothing leaves this machine");
    let next = dialog.answer("> ", "");
    assert!(next.contains("Telegram:") && !next.contains("API key?"), "{next}");
    for _ in 0..(if reveille_media::speech::IS_BUILT { 7 } else { 6 }) {
        dialog.answer("> ", "");
    }
    let summary = dialog.answer("Write this? [Y/n] ", "n");
    for line in ["MODEL                openai:qwen3:8b", "OPENAI_BASE_URL      http://127.0.0.1:11434/v1"] {
        assert!(summary.contains(line), "{line} in {summary}");
    }
    dialog.end();

    // Whoever listens there gets no key.
    let mut with_key = fresh();
    with_key.set("OPENAI_API_KEY", "sk-proj-0123456789abcdef");
    let mut dialog = Dialog::start(&with_key, WAKE, &["init"]);
    assert!(!dialog.until("[1] > ").contains("qwen3"), "{}", dialog.shown());
    dialog.interrupt();
    dialog.end();
}

#[test]
fn claude_code_that_nobody_is_logged_in_to_is_explained() {
    let mut env = fresh();
    install_claude(&mut env, r#"echo '{"loggedIn": false}'; exit 1"#);
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    dialog.answer("[1] > ", "2");
    dialog.answer("✗ 2.1.0 (Claude Code) is installed, but nobody is logged in: run `claude`, then /login", "t");
    dialog.answer("[1] > ", "3");
    dialog.until("✓ no AI model");
    dialog.until("Telegram:");
    dialog.interrupt();
    dialog.until("nothing was changed");
    dialog.end();

    // One that is too old to be asked shows it when it is first used.
    install_claude(&mut env, "echo 'unknown command auth' >&2; exit 1");
    write(&env_file(&env), "MODEL=claude-code\n");
    let told = env.wake(&["init", "--check"]);
    assert!(
        told.code == 1 && told.stdout.contains("? AI model    2.1.0 (Claude Code) is installed; its first use"),
        "{told:#?}"
    );
    // A key of ours is all that it needs.
    write(&env_file(&env), &format!("MODEL=claude-code\nANTHROPIC_API_KEY={API_KEY}\n"));
    let told = env.wake(&["init", "--check"]);
    assert!(told.stdout.contains("✓ AI model    2.1.0 (Claude Code), with the key or token that is set"), "{told:#?}");
}

#[test]
fn claude_code_that_is_absent_is_not_offered_and_is_missed_where_it_is_set() {
    let env = fresh();
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    let offered = dialog.until("[1] > ");
    assert!(!offered.contains("Claude Code"), "{offered}");
    dialog.interrupt();
    dialog.until("nothing was changed");
    dialog.end();
    write(&env_file(&env), "MODEL=claude-code\n");
    let told = env.wake(&["init", "--check"]);
    assert!(told.code == 1 && told.stdout.contains("✗ AI model    claude isn't installed: npm install"), "{told:#?}");
}

/// On a bare system git is there, and ssh isn't.
#[test]
fn a_remote_by_ssh_without_the_program_says_what_to_install() {
    let mut env = fresh();
    let bin = env.path("bin");
    fs::create_dir(&bin).unwrap();
    let git = env.get("PATH").split(':').map(|dir| PathBuf::from(dir).join("git")).find(|git| git.exists()).unwrap();
    std::os::unix::fs::symlink(git, bin.join("git")).unwrap();
    env.set("PATH", &bin.display().to_string());
    write(&env_file(&env), "REPO_URL=git@example.invalid:me/memory.git\n");
    let told = env.wake(&["init", "--check"]);
    assert!(told.code == 1 && told.stdout.contains("✗ Git remote  git needs the program ssh"), "{told:#?}");
    assert!(told.stdout.contains("apt-get install openssh-client"), "{told:#?}");
}

/// Where commands can't be confined each of them asks, whatever the autonomy; without an AI model there are none.
#[test]
fn what_may_be_done_alone_without_a_sandbox_is_said() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let env = with_servers(&telegram, &claude);
    write(&env_file(&env), &format!("ANTHROPIC_API_KEY={API_KEY}\n"));
    let told = env.wake(&["init", "--check"]).ok();
    let has_sandbox = !env.wake(&["policy"]).ok().stdout.contains("sandbox   none");
    let line = told.stdout.lines().find(|line| line.contains("Autonomy")).unwrap();
    assert_eq!(line.contains("and before each command"), !has_sandbox, "{line}");
    write(&env_file(&env), "MODEL=offline\n");
    let told = env.wake(&["init", "--check"]).ok();
    assert!(told.stdout.contains("✓ Autonomy    ask before what is risky\n"), "{told:#?}");
}

#[test]
fn who_keeps_keys_where_systemd_can_encrypt_them_is_told_so() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = with_servers(&telegram, &claude);
    let program = env.path("bin/systemd-creds");
    write(&program, "#!/bin/sh\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), env.get("PATH"));
    env.set("PATH", &path);
    env.wake(&["--once"]).ok();
    env.wake(&["say", "hello"]).ok();
    for (settings, is_told) in [(format!("ANTHROPIC_API_KEY={API_KEY}\n"), true), ("MODEL=offline\n".to_owned(), false)]
    {
        write(&env_file(&env), &settings);
        let mut dialog = Dialog::start(&env, WAKE, &["init"]);
        dialog.answer("Enter for nothing: ", "");
        dialog.until("What comes next:");
        let shown = dialog.end().stdout;
        assert_eq!(shown.contains("docs/SETTINGS.md, Secrets"), is_told, "{shown}");
    }
}

/// A world whose bot runs, and nobody has paired.
fn with_running_bot(telegram: &FakeTelegram, claude: &FakeClaude) -> (TestEnv, Running) {
    let env = with_servers(telegram, claude);
    write(&env_file(&env), &format!("TELEGRAM_BOT_TOKEN={TOKEN}\nMODEL=offline\n"));
    let bot = env.start(env!("CARGO_BIN_EXE_bot"), &["--wake", "/bin/true"]);
    telegram.wait_for_calls("getUpdates", 1, PATIENCE);
    (env, bot)
}

/// Runs the set-up again, changes nothing, and gives the code that it shows.
#[track_caller]
fn shown_code(env: &TestEnv) -> (Dialog, String) {
    let mut dialog = Dialog::start(env, WAKE, &["init"]);
    dialog.answer("Enter for nothing: ", "");
    dialog.until("Send this code to your bot within 10 minutes:\n\n    ");
    let code = dialog.until("\n").trim().to_owned();
    (dialog, code)
}

#[test]
fn a_bot_that_runs_pairs_by_its_own_poll() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let (env, bot) = with_running_bot(&telegram, &claude);
    let (mut dialog, code) = shown_code(&env);
    telegram.push_text(77, 77, "let me in");
    telegram.push_text(77, 77, &code);
    telegram.push_text(77, 77, "can you hear me?");
    dialog.until("✓ paired with Ana");
    dialog.until("What comes next:");
    assert_eq!(dialog.end().code, 0);
    eventually("every update is confirmed", || telegram.unconfirmed() == 0);
    assert_eq!(env.paired()[0], 77);
    // What was said before the code is a stranger's. What came after it is stored before it is confirmed.
    let texts: Vec<String> = env.received().into_iter().map(|message| message.text).collect();
    assert_eq!(texts, ["can you hear me?"]);
    bot.signal(Signal::TERM);
    bot.end().ok();
}

#[test]
fn a_code_that_is_skipped_pairs_nobody_any_more() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let (env, bot) = with_running_bot(&telegram, &claude);
    let (mut dialog, code) = shown_code(&env);
    dialog.say("");
    dialog.until("Skipped.");
    dialog.until("What comes next:");
    assert_eq!(dialog.end().code, 0);
    telegram.push_text(77, 77, &code);
    eventually("every update is confirmed", || telegram.unconfirmed() == 0);
    assert_eq!(env.paired().len(), 0);
    assert!(telegram.sent().is_empty());
    bot.signal(Signal::TERM);
    bot.end().ok();
}
