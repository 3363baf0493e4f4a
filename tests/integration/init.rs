//! Tests of `wake init`: each answer is checked at once, nothing is written before the end, and at the end the assistant answers.

#![cfg(target_os = "linux")]

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::support::{
    claude::{API_KEY, FakeClaude, Reply},
    dialog::Dialog,
    disk::Small,
    env::{ProgramOutput, TestEnv, search_path},
    openai::{FakeOpenAi, OPENAI_KEY, text},
    telegram::{FakeTelegram, TOKEN},
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
/// A string shaped like a token, but not a real one.
const WRONG_TOKEN: &str = "99:AAwrongWrongWrongWrong-Wrong_xyz0123";
/// A string shaped like a key, but not a real one.
const WRONG_KEY: &str = "sk-ant-api03-wrong-key-0123456789";

/// An environment before its set-up.
pub(crate) fn fresh() -> TestEnv {
    let mut env = TestEnv::new();
    env.unset("TIMEZONE").set("TERM", "dumb").set("TZ", "Europe/Berlin");
    // The machine that runs the tests may have the Claude Code command, which would be an additional choice.
    let path = search_path();
    let dirs: Vec<&str> = path.split(':').filter(|dir| !Path::new(dir).join("claude").exists()).collect();
    // The machine's cron and systemd are hidden too: they would be offered, and its crontab mustn't be changed.
    let none = env.path("no-starter");
    fs::create_dir_all(&none).unwrap();
    for name in ["crontab", "systemctl"] {
        write(&none.join(name), "#!/bin/sh\nexit 1\n");
        fs::set_permissions(none.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    env.set("PATH", &format!("{}:{}", none.display(), dirs.join(":")));
    env
}

/// An environment before its set-up, with both servers.
pub(crate) fn with_servers(telegram: &FakeTelegram, claude: &FakeClaude) -> TestEnv {
    let mut env = fresh();
    env.set("TELEGRAM_API_URL", &telegram.url()).set("ANTHROPIC_BASE_URL", &claude.url());
    env
}

pub(crate) fn env_file(env: &TestEnv) -> PathBuf {
    env.workspace().join(".env")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Accepts all further proposals, up to the question whether to write the settings.
#[track_caller]
pub(crate) fn take_all(dialog: &mut Dialog) {
    if reveille_media::speech::IS_BUILT {
        dialog.answer("voice notes?", "");
    }
    dialog.answer("assistant called?", "");
    dialog.answer("call you?", "");
    dialog.until("Write this? [Y/n] ");
}

#[test]
fn each_answer_is_checked_at_once_and_the_assistant_answers_at_the_end() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let env = with_servers(&telegram, &claude);
    let remote = env.bare_remote("remote.git").display().to_string();
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);

    let opening = dialog.answer("[1] > ", "99");
    assert!(opening.contains("WORKSPACE_DIR is set in the environment") && opening.contains("✓ "), "{opening}");
    dialog.answer("Please type a number from 1 to ", "1");
    dialog.answer("API key?", "two words");
    dialog.answer("one word without spaces", WRONG_KEY);
    dialog.answer("your API key was rejected", "t");
    dialog.answer("(not shown while you type) > ", API_KEY);
    dialog.answer("✓ Claude accepts the key, and has claude-sonnet-5-5", "hunter2");
    dialog.answer("the token from @BotFather", WRONG_TOKEN);
    dialog.answer("Telegram doesn't know this token", "");
    dialog.answer("(not shown while you type) > ", TOKEN);
    dialog.answer("✓ @reveille_bot (Reveille)", "Mars");
    dialog.answer("an IANA time zone", "paris");
    dialog.answer("✓ Europe/Paris", &env.path("nothing").display().to_string());
    dialog.answer("nothing` creates an empty repository", "t");
    dialog.answer("[none] > ", "https://127.0.0.1:9/nothing.git");
    dialog.answer("? the remote can't be reached", "t");
    dialog.answer("[none] > ", &remote);
    dialog.answer("can be pushed to, and is empty", "-5");
    dialog.answer("an amount in US dollars", "2.50");
    dialog.answer("✓ at most 2.50 USD a day", "3");
    dialog.answer("✓ ask only before what can't be undone", "2");
    dialog.until("✓ one useful thing a day, or a proposal");
    if reveille_media::speech::IS_BUILT {
        write(&env.path("model.bin"), "no model");
        dialog.answer("voice notes?", &env.path("model.bin").display().to_string());
        dialog.answer("isn't a whisper.cpp speech model", "s");
    }
    dialog.answer("assistant called?", "**x**");
    dialog.answer("expected a name", "Jarvis");
    dialog.answer("call you?", "Ann");
    let summary = dialog.until("Write this? [Y/n] ");
    assert!(!env.workspace().exists(), "written before the yes");
    for part in ["ANTHROPIC_API_KEY    ***", "TELEGRAM_BOT_TOKEN   ***", "REPO_URL", "called Jarvis, and you are Ann"] {
        assert!(summary.contains(part), "{part} in {summary}");
    }
    assert!(!dialog.shown().contains('\x1b'), "a dumb terminal gets no sequences");

    claude.expect(Reply::text("Hello Ann, I'm Jarvis."));
    dialog.say("y");
    let invited = dialog.until("I'll listen to whoever sends it first");
    let code = invited.split("@reveille_bot").nth(1).unwrap().lines().find(|line| line.trim().len() == 9).unwrap();
    telegram.push_text(77, 77, code.trim());
    dialog.until("✓ paired with Ana");
    dialog.until("You say: hello");
    dialog.until("Hello Ann, I'm Jarvis.");
    let ran = dialog.end();
    assert_eq!(ran.code, 0, "{ran:#?}");
    for part in ["What comes next:", "*/5 * * * * WORKSPACE_DIR=", "wake chat"] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    for secret in [API_KEY, TOKEN, WRONG_KEY, WRONG_TOKEN, "hunter2"] {
        assert!(!ran.stdout.contains(secret), "{secret} was shown");
    }
    assert_eq!(
        fs::read_to_string(env_file(&env)).unwrap(),
        format!(
            "ANTHROPIC_API_KEY={API_KEY}\nAUTONOMY=2\nDAILY_BUDGET_USD=2.50\nINITIATIVE=low\nREPO_URL={remote}\nTELEGRAM_BOT_TOKEN={TOKEN}\nTIMEZONE=Europe/Paris\n"
        )
    );
    assert_eq!((mode(&env_file(&env)), mode(&env.workspace())), (0o600, 0o700));
    let orders = env.git(&["show", "HEAD:claude.md"]);
    assert!(orders.contains("You are Jarvis, Ann's assistant. Reveille is the program that runs you."), "{orders}");
    assert!(telegram.sent().iter().any(|sent| sent.chat_id == 77 && sent.text.contains("paired")));
    let request = claude.requests().pop().unwrap();
    assert!(request.system.contains("You are Jarvis, Ann's assistant"), "{}", request.system);
    let log = env.git_in(Path::new(&remote), &["log", "--format=%an"]);
    assert!(log.contains("Reveille"), "the memory wasn't pushed: {log}");
    env.check_sound();
}

#[test]
fn ctrl_c_at_each_question_leaves_everything_as_it_was() {
    let env = fresh();
    // Enter accepts the proposal of each question.
    let questions = if reveille_media::speech::IS_BUILT { 12 } else { 11 };
    for n in 0..questions {
        let mut dialog = Dialog::start(&env, WAKE, &["init"]);
        for _ in 0..n {
            dialog.answer("> ", "");
        }
        dialog.until(if n == questions - 1 { "[Y/n] " } else { "> " });
        dialog.interrupt();
        dialog.until("Cancelled: nothing was changed.");
        assert!(dialog.echoes(), "after question {n}");
        let ran = dialog.end();
        assert_eq!(ran.code, 1, "question {n}: {ran:#?}");
        assert!(!env.workspace().exists(), "question {n}");
    }
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    dialog.until("> ");
    dialog.keyboard_end();
    dialog.until("The input ended: nothing was changed.");
    assert_eq!(dialog.end().code, 1);
}

#[test]
fn without_a_model_and_a_bot_the_first_message_is_answered_offline() {
    let env = fresh();
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    dialog.answer("[1] > ", "2");
    dialog.answer("✓ no AI model", "");
    dialog.answer("Time zone", "");
    dialog.answer("[none] > ", "");
    dialog.answer("[2] > ", "");
    take_all(&mut dialog);
    dialog.say("");
    dialog.until("It answers:");
    let ran = dialog.end();
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(fs::read_to_string(env_file(&env)).unwrap(), "MODEL=offline\n");
    assert_eq!(env.received().iter().filter(|message| message.text == "hello").count(), 1);
    assert_eq!(env.queued(), []);
    env.check_sound();
}

#[test]
fn another_folder_is_named_in_the_commands_for_other_programs() {
    let mut env = fresh();
    env.unset("WORKSPACE_DIR");
    let usual = env.path("home/.local/share/reveille");
    write(&env.path("file"), "");
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    dialog.answer(&format!("[{}] > ", usual.display()), "here");
    dialog.answer("an absolute path", &env.path("file/below").display().to_string());
    dialog.answer("isn't a folder", "t");
    dialog.answer(&format!("[{}] > ", usual.display()), &env.path("mine").display().to_string());
    dialog.answer("it will be created", "2");
    for _ in 0..5 {
        dialog.answer("> ", "");
    }
    take_all(&mut dialog);
    dialog.say("y");
    let ran = dialog.end();
    assert_eq!(ran.code, 0, "{ran:#?}");
    let file = env.path("mine/.env");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, format!("MODEL=offline\nWORKSPACE_DIR={}\n", env.path("mine").display()));
    assert!(ran.stdout.contains(&format!("--env-file {}", file.display())), "{}", ran.stdout);
    assert!(env.path("mine/brain/claude.md").exists() && !usual.exists());
    env.wake(&["--once", "--env-file", &file.display().to_string()]).ok();
}

#[test]
fn a_second_run_shows_settings_and_failures_and_changes_only_chosen_ones() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let env = with_servers(&telegram, &claude);
    let text = format!(
        "# mine\nTELEGRAM_BOT_TOKEN={WRONG_TOKEN}\nCOLOUR=blue\nANTHROPIC_API_KEY={API_KEY} # work\nTELL_PER_DAY=many\nALLOWED_CHAT_IDS=77\nTIMEZONE=Mars\n"
    );
    write(&env_file(&env), &text);

    let ran = env.wake(&["init", "--check"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    for part in [
        "✓ API key     Claude accepts the key",
        "✗ Telegram    Telegram doesn't know this token",
        "✗ Time zone   TIMEZONE",
        "✗ TELL_PER_DAY",
        "✓ Git remote  none",
    ] {
        assert!(ran.stdout.contains(part), "{part} in {}", ran.stdout);
    }
    let lines = env.wake(&["init", "--check", "--json"]).stdout;
    let states: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(states.iter().any(|state| state["step"] == "Telegram" && state["state"] == "wrong"), "{lines}");
    assert_eq!(fs::read_to_string(env_file(&env)).unwrap(), text);

    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    let shown = dialog.until("Enter for nothing: ");
    let number = shown.lines().find(|line| line.contains("✗ Telegram")).unwrap().split_whitespace().next().unwrap();
    dialog.say("99");
    dialog.answer("isn't a list of numbers from 1 to", number);
    dialog.answer("[the current one] (not shown while you type) > ", TOKEN);
    dialog.until("✓ @reveille_bot");
    let summary = dialog.answer("Write this? [Y/n] ", "");
    assert!(!summary.contains("ANTHROPIC_API_KEY"), "{summary}");
    dialog.until("Written to ");
    // A setting that isn't asked about is still wrong, and is reported.
    let ran = dialog.end();
    assert!(ran.code == 78 && ran.stdout.contains("TELL_PER_DAY"), "{ran:#?}");
    assert_eq!(fs::read_to_string(env_file(&env)).unwrap(), text.replace(WRONG_TOKEN, TOKEN));

    let fixed = text.replace(WRONG_TOKEN, TOKEN).replace("many", "3").replace("Mars", "UTC");
    write(&env_file(&env), &fixed);
    env.wake(&["init", "--check"]).ok();
    env.wake(&["--once"]).ok();
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    dialog.answer("Enter for nothing: ", "");
    dialog.until("Nothing to change.");
    assert_eq!(dialog.end().code, 0);
    assert_eq!(fs::read_to_string(env_file(&env)).unwrap(), fixed);
}

/// Finds the number of the choice with these words.
fn number_of(offered: &str, words: &str) -> String {
    let line = offered.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} in {offered}"));
    line.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_server_of_another_provider_is_asked_for_by_address_key_and_model() {
    let server = FakeOpenAi::start();
    let env = fresh();
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    let offered = dialog.until("[1] > ");
    for name in ["OpenAI", "Google Gemini", "Mistral", "DeepSeek", "Groq", "xAI", "OpenRouter"] {
        number_of(&offered, &format!("{name}, with an API key"));
    }
    dialog.say(&number_of(&offered, "another OpenAI-compatible server"));
    dialog.answer("[https://models.example.com/v1] > ", "");
    dialog.answer("✗ this is only an example", "t");
    dialog.answer("[https://models.example.com/v1] > ", "http://models.example.com/v1");
    dialog.answer("over http, anyone on the network could read the secret", &server.url());
    dialog.answer("API key for this server?", "sk-wrong");
    dialog.answer("✗ ", "t");
    server.take_violations();
    dialog.answer("(not shown while you type) > ", OPENAI_KEY);
    dialog.until("✓ the server accepts the key, and has 1 model");
    dialog.answer("[model] > ", "test-7b");
    dialog.answer("doesn't list this model. It has test-70b", "t");
    dialog.answer("[model] > ", "test-70b");
    dialog.answer("What does this model cost?", "cheap");
    dialog.answer("such as 0.28/0.42", "0.28/0.42");
    dialog.answer("Telegram bot?", "");
    for _ in 0..5 {
        dialog.answer("> ", "");
    }
    take_all(&mut dialog);
    server.expect(text("Hello, I am your assistant."));
    dialog.say("y");
    dialog.until("Hello, I am your assistant.");
    assert_eq!(dialog.end().code, 0);
    let text = fs::read_to_string(env_file(&env)).unwrap();
    let url = format!("OPENAI_BASE_URL={}", server.url());
    for line in ["MODEL=openai:test-70b", &url, &format!("OPENAI_API_KEY={OPENAI_KEY}"), "OPENAI_PRICE=0.28/0.42"] {
        assert!(text.lines().any(|said| said == line), "{line} in {text}");
    }

    // A key from the environment belongs to the server that is set there.
    let mut elsewhere = fresh();
    elsewhere.set("OPENAI_API_KEY", OPENAI_KEY);
    let mut dialog = Dialog::start(&elsewhere, WAKE, &["init"]);
    let offered = dialog.until("[1] > ");
    dialog.say(&number_of(&offered, "Mistral"));
    dialog.until("✗ OPENAI_API_KEY is set in the environment, for https://api.openai.com/v1");
    dialog.interrupt();
    dialog.end();

    // For the example's address no key is asked, and nothing of it is kept.
    let mut dialog = Dialog::start(&fresh(), WAKE, &["init"]);
    let offered = dialog.until("[1] > ");
    dialog.say(&number_of(&offered, "another OpenAI-compatible server"));
    dialog.answer("[https://models.example.com/v1] > ", "");
    dialog.answer("✗ this is only an example", "s");
    dialog.until("Telegram bot?");
    dialog.interrupt();
    dialog.end();

    // The key was given for that server, and isn't sent to another.
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    let shown = dialog.until("Enter for nothing: ");
    assert!(shown.contains("✓ Its model   openai:test-70b"), "{shown}");
    dialog.say(&number_of(&shown, "AI model"));
    let offered = dialog.until("] > ");
    dialog.say(&number_of(&offered, "Mistral"));
    dialog.until("✓ Mistral at https://api.mistral.ai/v1");
    dialog.answer("API key for this server?", "");
    dialog.until("✗ none yet, and Mistral doesn't answer without one");
    dialog.interrupt();
    dialog.until("nothing was changed");
    dialog.end();
    assert_eq!(fs::read_to_string(env_file(&env)).unwrap(), text);
}

/// Answers mustn't be lost because the network is down.
#[test]
fn settings_of_unreachable_servers_may_be_kept() {
    let mut env = fresh();
    env.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9").set("TELEGRAM_API_URL", "http://127.0.0.1:9");
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    dialog.answer("[1] > ", "1");
    dialog.answer("(not shown while you type) > ", API_KEY);
    dialog.answer("? No connection to the Claude API", "k");
    dialog.answer("(not shown while you type) > ", TOKEN);
    dialog.answer("? Telegram can't be reached: Connection refused", "k");
    for _ in 0..5 {
        dialog.answer("> ", "");
    }
    take_all(&mut dialog);
    dialog.say("y");
    dialog.until("Written to ");
    dialog.until("Nobody was paired: `bot` will show a code once this works.");
    dialog.until("It answers:");
    let answer = dialog.until("What comes next:");
    assert!(
        answer.contains("I can't reach my AI model right now: No connection") && answer.contains("are safe"),
        "{answer}"
    );
    for noise in ["WARN", "failed:"] {
        assert!(!answer.contains(noise), "{noise} in {answer}");
    }
    assert_eq!(answer.matches("No connection").count(), 1, "{answer}");
    dialog.end();
    assert_eq!(
        fs::read_to_string(env_file(&env)).unwrap(),
        format!("ANTHROPIC_API_KEY={API_KEY}\nTELEGRAM_BOT_TOKEN={TOKEN}\n")
    );
    assert_eq!(env.count_received(), 1, "the first message is kept");
}

fn scripted(env: &TestEnv, args: &[&str]) -> ProgramOutput {
    env.wake(&[&["init", "--non-interactive"], args].concat())
}

#[test]
fn a_non_interactive_run_saves_the_environment_and_leaves_secrets_in_their_files() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = with_servers(&telegram, &claude);
    write(&env.path("token"), &format!("{TOKEN}\n"));
    env.set("TELEGRAM_BOT_TOKEN_FILE", &env.path("token").display().to_string());
    env.set("ANTHROPIC_API_KEY", API_KEY).set("TIMEZONE", "Europe/Paris");
    write(&env_file(&env), "# mine\nTELEGRAM_BOT_TOKEN=1:old\nTIMEZONE=UTC\nX=1\n");
    let ran = scripted(&env, &[]).ok();
    assert!(ran.stdout.contains("✓ Telegram    @reveille_bot"), "{ran:#?}");
    let text = fs::read_to_string(env_file(&env)).unwrap();
    let token = format!("TELEGRAM_BOT_TOKEN_FILE={}", env.path("token").display());
    for line in ["# mine", "X=1", "TIMEZONE=Europe/Paris", &token, &format!("ANTHROPIC_API_KEY={API_KEY}")] {
        assert!(text.lines().any(|said| said == line), "{line} in {text}");
    }
    assert!(!text.contains("1:old") && !text.contains("WORKSPACE_DIR") && !text.contains("REVEILLE_NOW"), "{text}");
    assert!(!ran.shown().contains(API_KEY));
    assert_eq!(mode(&env_file(&env)), 0o600);
}

#[test]
fn a_failed_non_interactive_run_exits_with_an_error_and_writes_nothing() {
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    let mut env = with_servers(&telegram, &claude);
    env.set("TELEGRAM_BOT_TOKEN", WRONG_TOKEN);
    let ran = scripted(&env, &[]);
    assert!(ran.code == 1 && ran.stdout.contains("✗ Telegram"), "{ran:#?}");
    env.set("TIMEZONE", "Mars");
    let ran = scripted(&env, &[]);
    ran.assert_fails(78, "TIMEZONE");
    assert!(!env.workspace().exists());
    env.unset("TIMEZONE");
    scripted(&env, &["--no-check"]).ok();
    assert!(fs::read_to_string(env_file(&env)).unwrap().contains(WRONG_TOKEN));
}

#[test]
fn without_a_terminal_nothing_is_asked_and_a_broken_file_is_named() {
    let env = fresh();
    let ran = env.wake(&["init"]);
    ran.assert_fails(2, "--non-interactive");
    write(&env_file(&env), "ANTHROPIC_API_KEY='half\n");
    for args in [&["init"][..], &["init", "--check"], &["init", "--non-interactive"]] {
        let ran = env.wake(args);
        ran.assert_fails(78, "line 1 can't be read");
    }
}

#[test]
fn a_full_disk_is_reported_and_the_old_settings_stay() {
    let env = fresh();
    let Some(small) = Small::mount(&env, "small", 1) else { return };
    let file = Path::new(small.at()).join(".env");
    let old = "# mine\nX=1\n";
    write(&file, old);
    let mut filling = fs::File::create(file.with_file_name("filling")).unwrap();
    while std::io::Write::write_all(&mut filling, &[0; 4096]).is_ok() {}
    drop(filling);
    for (reserve, said) in [("100", "it needs "), ("0", "the disk has no room for ")] {
        let mut command = env.command(WAKE, &["init", "--non-interactive", "--no-check"]);
        command.env("WORKSPACE_DIR", small.at()).env("DISK_RESERVE_MB", reserve);
        command.env("EMBED_MODEL", format!("/{}", "x".repeat(40_000)));
        let ran = ProgramOutput::of(&command.output().unwrap());
        assert!(ran.code == 1 && ran.shown().contains(said), "{ran:#?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), old);
        assert_eq!(fs::read_dir(small.at()).unwrap().count(), 2, "a new file was left");
    }
}

/// The person can free space and try again without repeating the answers.
#[test]
fn the_answers_survive_a_full_disk() {
    let (mut env, elsewhere) = (fresh(), TestEnv::new());
    let Some(small) = Small::mount(&elsewhere, "small", 4) else { return };
    let file = Path::new(small.at()).join(".env");
    write(&file, "# mine\nMODEL=offline\n");
    env.set("WORKSPACE_DIR", small.at()).set("DISK_RESERVE_MB", "0");
    let filling = file.with_file_name("filling");
    let mut writing = fs::File::create(&filling).unwrap();
    while std::io::Write::write_all(&mut writing, &[0; 4096]).is_ok() {}
    drop(writing);
    let mut dialog = Dialog::start(&env, WAKE, &["init"]);
    let shown = dialog.until("Enter for nothing: ");
    let number = shown.lines().find(|line| line.contains("Time zone")).unwrap().split_whitespace().next().unwrap();
    dialog.say(number);
    dialog.answer("a name such as Europe/Berlin.", "paris");
    dialog.answer("Write this? [Y/n] ", "");
    dialog.until("✗ the disk has no room for ");
    dialog.until("Try again? [Y/n] ");
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\nMODEL=offline\n");
    fs::remove_file(&filling).unwrap();
    dialog.say("");
    dialog.until("Written to ");
    dialog.end();
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\nMODEL=offline\nTIMEZONE=Europe/Paris\n");
}
