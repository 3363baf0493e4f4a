//! Settings: each one wrong is named before anything starts, secrets stay secret, and `.env` is believed only where it may be.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::support::{
    env::{CHAT, ProgramOutput, TestEnv, eventually},
    telegram::{FakeTelegram, TOKEN},
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
const BOT: &str = env!("CARGO_BIN_EXE_bot");
const HEALTH: &str = env!("CARGO_BIN_EXE_health");
const KEY: &str = "sk-ant-api03-a-key-that-nobody-may-see-0123456789";

/// Each program as cron or a person starts it.
fn programs() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    vec![
        ("wake", WAKE, &["--once"]),
        ("wake log", WAKE, &["log"]),
        ("bot", BOT, &["run"]),
        ("health", HEALTH, &["check"]),
    ]
}

/// Wrong in every program: exit 78, the name, what was expected; nothing on stdout, nothing made.
#[track_caller]
fn check_refused(env: &TestEnv, name: &str, expected: &str) {
    for (program, path, args) in programs() {
        let ran = env.run(path, args);
        assert_eq!(ran.code, 78, "{program} with a wrong {name}: {ran:#?}");
        assert_eq!(ran.stdout, "", "{program}");
        let line = ran.notices().lines().find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("{program} doesn't name {name}: {ran:#?}"));
        assert!(line.contains(expected), "{program}: {line}");
    }
}

/// A world without a bot's settings, so that only the one in question is wrong.
fn with(name: &str, value: &str) -> TestEnv {
    let mut env = TestEnv::new();
    env.set("TELEGRAM_BOT_TOKEN", TOKEN).set("ALLOWED_CHAT_IDS", "42").set(name, value);
    env
}

#[test]
fn each_wrong_setting_is_named_with_what_was_expected() {
    const NO_FILE: &str = "/nonexistent/reveille-secret";
    for (name, value, expected) in [
        ("TELEGRAM_BOT_TOKEN", "no-token", "the token from @BotFather"),
        ("TELEGRAM_BOT_TOKEN_FILE", NO_FILE, "can't be read"),
        ("ALLOWED_CHAT_IDS", "@ann", "numeric chat ids"),
        ("OWNER_CHAT_ID", "43", "one of ALLOWED_CHAT_IDS"),
        ("TELEGRAM_API_URL", "http://example.org", "https"),
        ("ANTHROPIC_API_KEY", "two words", "one word without spaces"),
        ("ANTHROPIC_API_KEY_FILE", NO_FILE, "can't be read"),
        ("BRAVE_API_KEY", "two words", "one word without spaces"),
        ("BRAVE_API_KEY_FILE", NO_FILE, "can't be read"),
        ("ANTHROPIC_BASE_URL", "example.org", "a URL such as"),
        (
            "EMBED_MODEL",
            "minilm",
            "the absolute path of a folder with a sentence encoder, or openai:NAME or gemini:NAME",
        ),
        ("OPENAI_API_KEY", "two words", "one word without spaces"),
        ("OPENAI_API_KEY_FILE", NO_FILE, "can't be read"),
        ("OPENAI_BASE_URL", "http://example.org", "https"),
        ("OPENAI_PRICE", "0.28", "such as 0.28/0.42"),
        ("GEMINI_API_KEY", "two words", "one word without spaces"),
        ("GEMINI_API_KEY_FILE", NO_FILE, "can't be read"),
        ("GEMINI_BASE_URL", "example.org", "a URL such as"),
        ("DATABASE_URL", "mysql://example.org/b", "the address of a PostgreSQL database"),
        ("DATABASE_PASSWORD", "two\u{7}words", "a password on one line"),
        ("DATABASE_PASSWORD_FILE", NO_FILE, "can't be read"),
        ("MEDIA_DIR", "media", "an absolute path"),
        ("MODEL", "claude sonnet", "the id of a model"),
        ("AWS_REGION", "eu west", "an AWS region"),
        ("AWS_BEARER_TOKEN_BEDROCK", "two words", "one word without spaces"),
        ("AWS_BEARER_TOKEN_BEDROCK_FILE", NO_FILE, "can't be read"),
        ("AWS_ACCESS_KEY_ID", "a/b", "the id of an AWS access key"),
        ("AWS_SECRET_ACCESS_KEY", "two words", "one word without spaces"),
        ("AWS_SECRET_ACCESS_KEY_FILE", NO_FILE, "can't be read"),
        ("AWS_SESSION_TOKEN", "two words", "one word without spaces"),
        ("AWS_SESSION_TOKEN_FILE", NO_FILE, "can't be read"),
        ("BEDROCK_BASE_URL", "http://example.org", "https"),
        ("GOOGLE_CLOUD_PROJECT", "my/project", "the id of a Google Cloud project"),
        ("GOOGLE_CLOUD_LOCATION", "example.org", "a Google Cloud location"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "key.json", "an absolute path"),
        ("VERTEX_WORKSPACE", "a/b", "the id of a workspace"),
        ("VERTEX_BASE_URL", "example.org", "a URL such as"),
        ("IMAGES_MAX", "21", "a whole number from 0 (no pictures) to 20"),
        ("CLAUDE_CODE", "bin/claude", "an absolute path"),
        ("MODEL_SIMPLE", "a b", "the id of a model"),
        ("MODEL_REFLECT", "a b", "the id of a model"),
        ("CLAUDE_CODE_MODEL", "a b", "the id of a model"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "two words", "an API key"),
        ("CLAUDE_CODE_OAUTH_TOKEN_FILE", NO_FILE, "can't be read"),
        ("DAILY_BUDGET_USD", "-1", "an amount in US dollars"),
        ("MONTHLY_BUDGET_USD", "much", "an amount in US dollars"),
        ("WORKSPACE_DIR", "here", "an absolute path"),
        ("REPO_NAME", "../brain", "a plain directory name"),
        ("REPO_URL", "ext::sh -c evil", "a git remote"),
        ("WHISPER_MODEL", "model.bin", "an absolute path"),
        ("TIMEZONE", "CEST-ish", "an IANA time zone"),
        ("AUTONOMY", "3", "0 (ask before everything), 1 (smart) or 2 (full)"),
        ("INITIATIVE", "much", "off, low or high"),
        ("TELEGRAM_RICH", "sometimes", "auto, always or never"),
        ("WHILE_WORKING", "later", "join or wait"),
        ("QUIET_HOURS", "late", "22:00-07:00"),
        ("REFLECT_AT", "late", "03:30"),
        ("TELL_PER_DAY", "many", "a whole number from 0 to 100"),
        ("WAKE_TIMEOUT_MIN", "0", "whole minutes from 1"),
        ("STALE_LOCK_MIN", "1.5", "whole minutes from 1"),
        ("LEASE", "both", "local (one machine) or remote"),
        ("LEASE_REF", "lease", "a reference such as refs/reveille/lease"),
        ("LEASE_NAME", "my desk", "at most 40 letters"),
        ("LEASE_TERM_S", "0", "whole seconds from 1 to 3600"),
        ("LEASE_DUTY", "sometimes", "bot, always or never"),
        ("PULL_EVERY_MIN", "soon", "whole minutes from 1"),
        ("DISK_RESERVE_MB", "1 GB", "whole MiB from 0 (no reserve) to 1048576"),
        ("KEEP_DAYS", "ever", "whole days from 0 (for ever) to 3650"),
        ("REVEILLE_LOG", "loud", "error, warn, info or debug"),
        ("LOG_FORMAT", "xml", "text, json or off"),
        ("REVEILLE_NOW", "today", "a time in RFC 3339"),
    ] {
        let mut env = with(name, value);
        if let Some(secret) = name.strip_suffix("_FILE") {
            env.unset(secret);
        }
        check_refused(&env, name, expected);
        assert!(!env.workspace().exists(), "{name}: the workspace was made");
    }
}

/// The table above has a row for each; this fails when a setting comes that it lacks.
#[test]
fn the_table_of_wrong_settings_is_complete() {
    // Without blanks: a long row stands on several lines.
    let this: String = include_str!("settings.rs").split_whitespace().collect();
    for name in reveille_config::VARIABLES {
        assert!(this.contains(&format!("(\"{name}\",")), "{name} has no row");
    }
}

#[test]
fn all_wrong_settings_are_named_at_once() {
    let mut env = TestEnv::new();
    env.set("TIMEZONE", "Mars").set("AUTONOMY", "9").set("MODEL", "a b");
    let ran = env.wake(&["--once"]);
    assert_eq!(ran.code, 78);
    for part in ["3 settings need correcting", "TIMEZONE", "AUTONOMY", "MODEL", "got \"Mars\"", ".env.example"] {
        ran.assert_tells(part);
    }
}

#[test]
fn an_empty_setting_counts_as_none() {
    let mut env = TestEnv::new();
    for name in reveille_config::VARIABLES {
        if !["WORKSPACE_DIR", "REVEILLE_NOW", "TIMEZONE"].contains(&name) {
            env.set(name, "");
        }
    }
    assert_eq!(env.once()["outcome"], "worked");
}

#[test]
fn the_bot_never_runs_without_a_token() {
    let env = TestEnv::new();
    let ran = env.bot(&["run"]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    ran.assert_tells("TELEGRAM_BOT_TOKEN");
    // A wake doesn't need one.
    assert_eq!(env.once()["outcome"], "worked");
}

fn write(path: &Path, mode: u32, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The name of the repository tells which setting was heard.
#[track_caller]
fn check_heard(env: &TestEnv, name: &str) {
    env.wake(&["--once"]).ok();
    assert!(env.workspace().join(name).join(".git").exists(), "{name} wasn't made");
}

#[test]
fn settings_come_from_the_workspace_and_the_environment_wins() {
    let mut env = TestEnv::new();
    write(&env.workspace().join(".env"), 0o600, "# mine\nREPO_NAME='of-workspace'\n");
    check_heard(&env, "of-workspace");
    env.set("REPO_NAME", "of-environment");
    check_heard(&env, "of-environment");
    env.set("REPO_NAME", "");
    fs::remove_dir_all(env.workspace().join("of-workspace")).unwrap();
    check_heard(&env, "of-workspace");
}

/// A folder from elsewhere that is worked in must not choose where the key and the memory are sent.
#[test]
fn another_folders_file_is_named_and_not_read() {
    let env = TestEnv::new();
    let theirs = env.bare_remote("theirs.git");
    let text = format!("REPO_URL={}\n", theirs.display());
    write(&env.path(".env"), 0o600, &text);
    env.wake(&["say", "remember that the code is 1234"]).ok();
    assert_eq!(env.git_in(&theirs, &["for-each-ref"]), "", "the memory was sent there");
    write(&env.path(".env"), 0o600, &format!("{text}AUTONOMY=yes\nMODEL=resnet 50\nDATABASE=x\n"));
    for (program, path, args) in programs() {
        let ran = env.run(path, args);
        assert_eq!(ran.code, if program == "bot" { 78 } else { 0 }, "{program}: {ran:#?}");
        let named = format!("{} isn't read", env.path(".env").display());
        ran.assert_tells(&named)
            .assert_tells("MODEL, REPO_URL, AUTONOMY")
            .assert_never_tells("resnet")
            .assert_never_tells("DATABASE");
    }
    // What isn't about us isn't spoken of.
    write(&env.path(".env"), 0o600, "DATABASE=x\n");
    env.wake(&["--once"]).ok().assert_never_tells(".env");
}

#[test]
fn the_command_that_is_named_moves_the_file_to_where_it_counts() {
    let env = TestEnv::new();
    write(&env.path(".env"), 0o600, "REPO_NAME=mine\n");
    let ran = env.wake(&["queue", "list"]);
    let rest = ran.notices().split("your settings: ").nth(1).unwrap_or_else(|| panic!("{ran:#?}"));
    env.run("sh", &["-c", rest.lines().next().unwrap()]).ok();
    assert!(!env.path(".env").exists());
    check_heard(&env, "mine");
    env.wake(&["--once"]).ok().assert_never_tells(".env");
}

#[test]
fn a_file_of_settings_can_be_named_to_each_program_and_may_name_the_workspace() {
    let mut env = TestEnv::new();
    env.unset("WORKSPACE_DIR");
    let place = env.path("elsewhere").display().to_string();
    write(&env.path("mine.env"), 0o600, &format!("WORKSPACE_DIR={place}\nREPO_NAME=mind\n"));
    // The workspace's own file doesn't count beside it.
    write(&env.path("elsewhere/.env"), 0o600, "REPO_NAME=other\n");
    for args in [vec!["--env-file", "mine.env", "--once"], vec!["log", "--env-file", "mine.env"]] {
        env.wake(&args).ok();
    }
    assert!(env.path("elsewhere/mind/.git").exists() && !env.path("home/.local/share/reveille").exists());
    let status = env.health(&["status", "--env-file", "mine.env"]).ok();
    assert!(status.stdout.contains(&place), "{status:#?}");
    let sent = env.bot(&["--env-file", "mine.env", "send", "--chat", "0", "hello"]).ok();
    assert!(sent.stdout.contains("queued"), "{sent:#?}");
    for (program, path, args) in programs() {
        let ran = env.run(path, &[args, &["--env-file", "missing.env"]].concat());
        assert_eq!(ran.code, 78, "{program}: {ran:#?}");
        ran.assert_tells("missing.env: can't be read");
    }
}

#[test]
fn what_the_bot_starts_is_given_the_same_file() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::new();
    env.unset("WORKSPACE_DIR");
    let text = format!(
        "WORKSPACE_DIR={}\nTELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_API_URL={}\nALLOWED_CHAT_IDS={CHAT}\n",
        env.workspace().display(),
        telegram.url(),
    );
    write(&env.path("mine.env"), 0o600, &text);
    telegram.push_text(CHAT, CHAT, "help");
    let bot = env.start(BOT, &["--env-file", "mine.env"]);
    eventually("the message is answered", || !telegram.calls("sendMessage").is_empty());
    bot.signal(rustix::process::Signal::TERM);
    assert_eq!(bot.end().code, 0);
    assert!(env.brain().join(".git").exists());
}

#[test]
fn values_are_literal_and_money_may_have_its_sign() {
    let env = TestEnv::new();
    let limits = |text: &str| {
        write(&env.workspace().join(".env"), 0o600, text);
        env.health(&["status"]).ok()
    };
    let told = limits("DAILY_BUDGET_USD=$2\nMONTHLY_BUDGET_USD=$20\n").stdout;
    assert!(told.contains("of 2.00 USD today") && told.contains("of 20.00 this month"), "{told}");
    let told = limits("MONTHLY_BUDGET_USD=\n");
    told.assert_tells("MONTHLY_BUDGET_USD is empty: there is no monthly limit");
    write(&env.workspace().join(".env"), 0o600, "DAILY_BUDGET_USD=2 EUR\n");
    check_refused(&env, "DAILY_BUDGET_USD", "an amount in US dollars");
}

#[test]
fn without_a_workspace_setting_it_lies_in_the_data_home() {
    let mut env = TestEnv::new();
    env.unset("WORKSPACE_DIR");
    env.wake(&["--once"]).ok();
    assert!(env.path("home/.local/share/reveille/brain/claude.md").exists());
    let data = env.path("data").display().to_string();
    env.set("XDG_DATA_HOME", &data);
    env.wake(&["--once"]).ok();
    assert!(env.path("data/reveille/brain/claude.md").exists());
}

#[test]
fn a_file_that_others_could_have_written_is_refused() {
    for (place, mode, args) in [
        ("workspace/.env", 0o620, &["--once"][..]),
        ("workspace/.env", 0o602, &["--once"]),
        ("mine.env", 0o666, &["--once", "--env-file", "mine.env"]),
    ] {
        let env = TestEnv::new();
        write(&env.path(place), mode, &format!("ANTHROPIC_API_KEY={KEY}\n"));
        let ran = env.wake(args);
        assert_eq!(ran.code, 78, "{place} {mode:o}: {ran:#?}");
        ran.assert_tells("other users can write to it").assert_tells("chmod 600");
        assert!(!ran.shown().contains(KEY));
        assert!(!env.brain().exists());
    }
}

/// Giving a file away is root's privilege: elsewhere the unit test of the same rule has to do.
#[test]
fn a_file_of_somebody_else_is_refused() {
    let env = TestEnv::new();
    let path = env.workspace().join(".env");
    write(&path, 0o600, "REPO_NAME=theirs\n");
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("not run: only root can give a file to another user");
        return;
    }
    std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
    let ran = env.wake(&["--once"]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    ran.assert_tells("belongs to another user (uid 65534)");
    assert!(!env.workspace().join("theirs").exists());
}

#[test]
fn a_file_that_others_can_read_is_used_with_a_word_about_it() {
    let env = TestEnv::new();
    write(&env.workspace().join(".env"), 0o644, "REPO_NAME=mind\nCOLOUR=blue\nANTROPIC_API_KEY=\n");
    let ran = env.wake(&["--once"]).ok();
    ran.assert_tells("can be read by other users: run chmod 600").assert_tells("Unknown setting COLOUR, ignored.\n");
    let meant = "Unknown setting ANTROPIC_API_KEY, ignored. Did you mean ANTHROPIC_API_KEY?";
    ran.assert_tells(meant);
    assert!(env.workspace().join("mind").exists());
}

#[test]
fn a_damaged_line_is_named_by_its_number_and_not_shown() {
    let env = TestEnv::new();
    let text = format!("REPO_NAME=mind\nANTHROPIC_API_KEY='{KEY}\n");
    write(&env.workspace().join(".env"), 0o600, &text);
    let ran = env.wake(&["--once"]);
    assert_eq!(ran.code, 78, "{ran:#?}");
    assert!(!ran.shown().contains(KEY), "{ran:#?}");
    ran.assert_tells("line 2");
}

/// Everything that a run leaves, in its output and on the disk, secrets' own files aside.
#[track_caller]
fn check_secret(env: &TestEnv, ran: &[ProgramOutput], secret: &str) {
    for ran in ran {
        assert!(!ran.shown().contains(secret), "{ran:#?}");
    }
    let left = env.run("grep", &["-rlF", "--exclude=.env", "--exclude-dir=secrets", secret, "."]);
    assert_eq!((left.code, left.stdout.as_str()), (1, ""), "{left:#?}");
}

#[test]
fn secrets_come_from_files_and_are_never_shown() {
    let mut env = TestEnv::new();
    env.set("REVEILLE_LOG", "debug").set("MODEL", "offline");
    for (name, secret) in [("TELEGRAM_BOT_TOKEN", TOKEN), ("ANTHROPIC_API_KEY", KEY)] {
        let path = env.path(&format!("secrets/{name}"));
        write(&path, 0o600, &format!("{secret}\n"));
        env.set(&format!("{name}_FILE"), &path.display().to_string());
    }
    let unreachable = "http://127.0.0.1:9";
    env.set("TELEGRAM_API_URL", unreachable).set("ANTHROPIC_BASE_URL", unreachable).set("ALLOWED_CHAT_IDS", "42");
    let mut ran = vec![env.wake(&["--once", "--say", &format!("remember that my keys are {KEY} and {TOKEN}")]).ok()];
    assert!(ran[0].stdout.contains("Remembered: my keys are *** and ***"), "{ran:#?}");
    env.receive(42, "remember that tea is at five");
    ran.push(env.wake(&["--once"]).ok());
    let trying = env.parts().into_iter().filter(|part| part.attempts > 0 && part.state != "sent");
    assert_eq!(trying.count(), 1, "the token was used");
    ran.push(env.health(&["check"]));
    ran.push(env.health(&["status", "--json"]));
    ran.push(env.wake(&["log"]));
    // The mind's server is out of reach: its error is told.
    env.unset("MODEL");
    ran.push(env.wake(&["--once", "--say", "hello"]));
    check_secret(&env, &ran, TOKEN);
    check_secret(&env, &ran, TOKEN.split_once(':').unwrap().1);
    check_secret(&env, &ran, KEY);
}

#[test]
fn a_secret_is_said_once_and_from_a_file_of_ones_own() {
    let mut env = TestEnv::new();
    let path = env.path("secrets/key");
    write(&path, 0o622, KEY);
    env.set("ANTHROPIC_API_KEY_FILE", &path.display().to_string());
    let ran = env.wake(&["--once"]);
    assert_eq!(ran.code, 78);
    ran.assert_tells("ANTHROPIC_API_KEY_FILE").assert_tells("other users can write");
    write(&path, 0o600, "two words\n");
    let ran = env.wake(&["--once"]);
    assert_eq!(ran.code, 78);
    ran.assert_never_tells("two words");
}

#[test]
fn an_unknown_command_or_flag_is_wrong_usage_and_touches_nothing() {
    let env = TestEnv::new();
    for (program, args) in [
        (WAKE, vec!["sleep"]),
        (WAKE, vec!["--twice"]),
        (WAKE, vec!["--say", "hello"]),
        (WAKE, vec!["say"]),
        (WAKE, vec!["show", "--raw", "--json"]),
        (BOT, vec!["dance"]),
        (BOT, vec!["send", "--chat", "ann", "hello"]),
        (BOT, vec!["--token", TOKEN]),
        (HEALTH, vec!["guess"]),
        (HEALTH, vec!["check", "--yes"]),
    ] {
        let ran = env.run(program, &args);
        assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
        assert_eq!(ran.stdout, "");
        assert!(ran.notices().contains("--help") || ran.notices().contains("Usage"), "{ran:#?}");
    }
    assert!(!env.workspace().exists());
}

#[test]
fn help_and_version_need_no_settings() {
    let mut env = TestEnv::new();
    env.set("TIMEZONE", "Mars");
    for args in
        [vec!["--help"], vec!["say", "--help"], vec!["log", "--help"], vec!["show", "--help"], vec!["--version"]]
    {
        check_help(&env, WAKE, &args);
    }
    for args in [vec!["--help"], vec!["send", "--help"], vec!["--version"]] {
        check_help(&env, BOT, &args);
    }
    for args in [vec!["--help"], vec!["check", "--help"], vec!["status", "--help"], vec!["--version"]] {
        check_help(&env, HEALTH, &args);
    }
    assert!(!env.workspace().exists());
}

#[track_caller]
fn check_help(env: &TestEnv, program: &str, args: &[&str]) {
    let ran = env.run(program, args);
    assert_eq!((ran.code, ran.notices()), (0, ""), "{program} {args:?}");
    let is_version = args == ["--version"];
    assert_eq!(ran.stdout.contains("Usage:"), !is_version, "{ran:#?}");
    assert!(!is_version || ran.stdout.contains(env!("CARGO_PKG_VERSION")), "{ran:#?}");
}

#[test]
fn without_home_the_systems_word_for_it_counts() {
    let mut env = TestEnv::new();
    let name = format!("no-workspace-{}", std::process::id());
    env.unset("HOME").set("WORKSPACE_DIR", &format!("~/{name}"));
    let ran = env.wake(&["queue", "list"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    ran.assert_tells("There is no queue at /").assert_tells(&name);
    // An empty one isn't one.
    assert_eq!(env.set("HOME", "").wake(&["queue", "list"]).code, 78);
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let mut env = TestEnv::new();
    env.set("REVEILLE_LOG", "debug");
    let piped = env.wake(&["--once", "--say", "help"]).ok();
    piped.assert_never_tells("\u{1b}");
    assert!(!piped.notices().is_empty() && !piped.stdout.contains('\u{1b}'));
    // `script` gives it a terminal; there the log has colours, unless NO_COLOR asks for none.
    let on_terminal =
        |env: &TestEnv| env.run("script", &["-qec", &format!("{WAKE} --once --say help"), "/dev/null"]).ok().stdout;
    assert!(on_terminal(&env).contains('\u{1b}'));
    env.set("NO_COLOR", "1");
    assert!(!on_terminal(&env).contains('\u{1b}'));
}
