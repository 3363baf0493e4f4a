//! Tests of `wake install`: the files for systemd and launchd are checked with their own checkers, and an installation with cron is made
//! and removed without a trace. A strict fake `crontab` keeps its table in a file, and refuses what the real one refuses.

#![cfg(target_os = "linux")]

use reveille::setup::install::{
    Installation, LaunchdAgent, PROGRAMS, add_our_lines, launchd_agents, remove_our_lines, systemd_units,
};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use reveille_base::process::{self, Identity};
use reveille_store::wake_lock;

use super::{
    init::{fresh, take_all, write},
    support::{
        dialog::Dialog,
        env::TestEnv,
        telegram::{FakeTelegram, TOKEN},
    },
    units::{plist, run},
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");

/// An installation whose directories contain characters that each format must escape.
fn odd(root: &Path) -> Installation {
    Installation {
        home: root.join("home"),
        bin: root.join("my programs/100%name/bin"),
        workspace: root.join("home/its memory & more"),
        env_file: Some(root.join("home/set tings.env")),
        with_bot: true,
    }
}

#[test]
fn crons_lines_are_added_once_and_leave_every_other_byte() {
    let to = odd(Path::new("/r"));
    for old in ["", "MAILTO=ann\n0 4 * * * backup # nightly\n", "# no end of line"] {
        let new = add_our_lines(old, &to);
        assert!(new.starts_with(old), "{new}");
        assert_eq!(add_our_lines(&new, &to), new);
        assert_eq!(remove_our_lines(&new).trim_end(), old.trim_end());
        let ours: Vec<&str> = new.lines().filter(|line| line.contains("# reveille: ")).collect();
        assert_eq!(ours.len(), 3, "{new}");
        for line in ours {
            assert!(line.contains("'/r/my programs/100\\%name/bin/"), "a bare % ends a line: {line}");
            assert!(line.contains("WORKSPACE_DIR='/r/home/its memory & more' "), "{line}");
            assert!(line.contains("--env-file '/r/home/set tings.env'"), "{line}");
        }
    }
    let without_bot = add_our_lines("", &Installation { with_bot: false, ..to });
    assert_eq!(without_bot.lines().count(), 2, "{without_bot}");
}

#[test]
fn paths_that_a_format_cannot_hold_are_refused() {
    for path in ["/a\nb", "/a'b", "/a\"b", "/a$b", "/a\\b", "/a`b"] {
        let to = Installation { bin: PathBuf::from(path), ..odd(Path::new("/r")) };
        assert_eq!(to.find_unwritable_path(), Some(Path::new(path)));
    }
    assert_eq!(odd(Path::new("/r")).find_unwritable_path(), None);
}

#[test]
fn systemd_accepts_the_installed_units_with_odd_paths() {
    let root = tempfile::tempdir().unwrap();
    let to = odd(root.path());
    fs::create_dir_all(&to.bin).unwrap();
    for name in PROGRAMS {
        program(&to.bin.join(name), "true");
    }
    let mut args = vec!["--user".to_owned(), "--man=no".to_owned(), "verify".to_owned()];
    for (path, text) in systemd_units(&to) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        args.push(path.display().to_string());
        assert!(!text.contains(".local/share/reveille"), "{text}");
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some(output) = run("systemd-analyze", &args) else { return };
    output.ok().assert_never_tells("reveille-");

    // The checker does report a missing program.
    fs::remove_file(to.bin.join("bot")).unwrap();
    run("systemd-analyze", &args).unwrap().assert_tells("reveille-bot.service");
}

#[test]
fn launchd_agents_contain_the_persons_own_paths() {
    let root = tempfile::tempdir().unwrap();
    let to = odd(root.path());
    for LaunchdAgent { short, path, text } in launchd_agents(&to) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let Some(agent) = plist(&path) else { return };
        let words: Vec<&str> =
            agent["ProgramArguments"].as_array().unwrap().iter().filter_map(|w| w.as_str()).collect();
        assert!(Path::new(words[0]).starts_with(&to.bin), "{words:?}");
        assert_eq!(words[words.len() - 2..], ["--env-file", to.env_file.as_ref().unwrap().to_str().unwrap()]);
        assert_eq!(agent["WorkingDirectory"], to.workspace.to_str().unwrap());
        assert_eq!(agent["StandardErrorPath"], to.logs().join(format!("{short}.err.log")).to_str().unwrap());
        assert!(!agent.to_string().contains("__HOME__"), "{agent}");
    }
}

pub(crate) fn program(path: &Path, line: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{line}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A machine with cron, without a systemd session, and with a build: the real `wake`, and fakes for the other programs.
pub(crate) fn machine() -> TestEnv {
    let mut env = fresh();
    let table = env.path("crontab");
    let crontab = format!(
        "table='{}'\ncase ${{1-}} in\n\
         -l) [ -e \"$table\" ] || {{ echo 'no crontab for ann' >&2; exit 1; }}; cat \"$table\" ;;\n\
         -r) rm \"$table\" ;;\n\
         -*) exit 2 ;;\n\
         *) [ -z \"$(tail -c 1 \"$1\")\" ] || {{ echo 'new crontab file is missing newline' >&2; exit 1; }}\n\
         awk '/^[ \\t]*(#|$)/ || /^[A-Za-z_]+ *=/ {{ next }} NF < 6 || $1 !~ /^[-0-9*,\\/]+$/ {{ exit 1 }}' \"$1\" \
         || {{ echo 'errors in crontab file' >&2; exit 1; }}\ncp \"$1\" \"$table\" ;;\nesac",
        table.display()
    );
    program(&env.path("tools/crontab"), &crontab);
    program(&env.path("tools/systemctl"), "echo 'Failed to connect to bus' >&2; exit 1");
    let path = format!("{}:{}", env.path("tools").display(), env.get("PATH"));
    env.set("PATH", &path);
    fs::create_dir_all(env.path("build")).unwrap();
    for name in PROGRAMS {
        program(&env.path("build").join(name), "exit 0");
    }
    fs::remove_file(env.path("build/wake")).unwrap();
    fs::copy(WAKE, env.path("build/wake")).unwrap();
    env
}

#[test]
fn cron_gets_its_lines_once_and_uninstalling_removes_all_but_the_memory() {
    let env = machine();
    let (wake, bin, table) = (env.path("build/wake"), env.path("home/.local/bin"), env.path("crontab"));
    let theirs = "0 4 * * * backup\n";
    fs::write(&table, theirs).unwrap();

    let planned = env.run(&wake, &["install", "--dry-run"]).ok();
    assert!(
        planned.stdout.contains(&format!("link     {}", bin.join("reveille-transcriber").display())),
        "{planned:#?}"
    );
    assert!(planned.stdout.contains("add: */5 * * * * PATH="), "{planned:#?}");
    assert_eq!(fs::read_to_string(&table).unwrap(), theirs);
    assert!(!bin.exists() && !env.workspace().exists());

    let installed = env.run(&wake, &["install"]).ok();
    for told in ["✓ a wake ran", "Logs ", "install --uninstall"] {
        installed.assert_tells(told);
    }
    let lines = fs::read_to_string(&table).unwrap();
    assert!(lines.starts_with(theirs) && lines.lines().count() == 3, "{lines}");
    for name in PROGRAMS {
        assert!(bin.join(name).is_file() && !bin.join(format!("{name}.old")).exists(), "{name}");
    }

    // Installs again with the installed program, then with a newer build.
    env.run(bin.join("wake"), &["install"]).ok();
    program(&env.path("build/health"), "exit 0 # newer");
    env.run(&wake, &["install"]).ok();
    assert_eq!(fs::read_to_string(&table).unwrap(), lines);
    assert!(fs::read_to_string(bin.join("health")).unwrap().contains("newer"));
    assert!(!bin.join("health.old").exists(), "the new program has started successfully");

    env.run(bin.join("wake"), &["install", "--uninstall"]).ok();
    assert_eq!(fs::read_to_string(&table).unwrap(), theirs);
    assert_eq!(fs::read_dir(&bin).unwrap().count(), 0);
    assert!(env.has_store());
    let again = env.run(&wake, &["install", "--uninstall"]).ok();
    again.assert_tells("Nothing was installed.");
}

/// The bot that an installation started; dropping the value ends it.
pub(crate) struct StartedBot(pub(crate) Identity);

impl StartedBot {
    pub(crate) fn find(env: &TestEnv) -> Option<Self> {
        let holder = wake_lock::read_holder(&env.workspace().join(".bot-lock"))?;
        Some(holder.identity()).filter(Identity::is_alive).map(Self)
    }
}

impl Drop for StartedBot {
    fn drop(&mut self) {
        process::ask_to_end(&self.0);
    }
}

#[test]
fn a_bot_is_started_once_restarted_for_new_programs_and_ended_when_uninstalled() {
    let mut env = machine();
    let telegram = FakeTelegram::start();
    env.set("TELEGRAM_API_URL", &telegram.url()).set("ALLOWED_CHAT_IDS", "4242");
    write(&env.workspace().join(".env"), &format!("TELEGRAM_BOT_TOKEN={TOKEN}\n"));
    fs::set_permissions(env.workspace(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_bot"), env.path("build/bot")).unwrap();
    let wake = env.path("build/wake");

    let installed = env.run(&wake, &["install"]).ok();
    installed.assert_tells("✓ the bot is running");
    let first = StartedBot::find(&env).unwrap();
    assert!(fs::read_to_string(env.path("crontab")).unwrap().contains("--unless-running"));
    env.run(&wake, &["install"]).ok();
    assert!(first.0.is_alive(), "without new programs the bot keeps running");

    program(&env.path("build/health"), "exit 0 # newer");
    env.run(&wake, &["install"]).ok();
    let second = StartedBot::find(&env).unwrap();
    assert!(!first.0.is_alive() && second.0 != first.0);

    env.run(&wake, &["install", "--uninstall"]).ok();
    assert!(!second.0.is_alive(), "no bot outlives its installation");
}

#[test]
fn wrong_settings_have_their_own_exit_code_and_a_foreign_program_stays() {
    let mut env = machine();
    let (wake, bin) = (env.path("build/wake"), env.path("home/.local/bin"));
    program(&bin.join("bot"), "echo another");
    let refused = env.run(&wake, &["install"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    refused.assert_tells("is a different program");
    assert!(!bin.join("wake").exists() && !env.path("crontab").exists());

    fs::remove_file(bin.join("bot")).unwrap();
    env.set("AUTONOMY", "9");
    let wrong = env.run(&wake, &["install"]);
    assert_eq!(wrong.code, 78, "{wrong:#?}");
    for told in ["AUTONOMY", "`wake init` corrects it; then run `wake install` again"] {
        wrong.assert_tells(told);
    }
}

/// Answers the questions of `wake init` without a model and a bot, until the settings are written.
fn set_up(env: &TestEnv) -> Dialog {
    let wake = env.path("build/wake").display().to_string();
    let mut dialog = Dialog::start(env, &wake, &["init"]);
    dialog.answer("[1] > ", "2");
    dialog.answer("✓ no AI model", "");
    for question in ["Time zone", "[none] > ", "[2] > "] {
        dialog.answer(question, "");
    }
    take_all(&mut dialog);
    dialog.say("");
    dialog
}

#[test]
fn init_offers_the_installation_and_a_yes_installs() {
    let env = machine();
    let mut dialog = set_up(&env);
    dialog.answer("Start it automatically? [Y/n] ", "what?");
    dialog.answer("Start it automatically? [Y/n] ", "");
    dialog.until("It answers:");
    let last = dialog.until("What comes next:");
    assert!(last.contains("✓ a wake ran"), "{last}");
    let ran = dialog.end();
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!ran.stdout.contains("Start on its own"), "{}", ran.stdout);
    assert_eq!(fs::read_to_string(env.path("crontab")).unwrap().lines().count(), 2);
    assert!(env.path("home/.local/bin/health").is_file());
}

#[test]
fn init_installs_nothing_after_a_no_and_explains_how() {
    let env = machine();
    let mut dialog = set_up(&env);
    dialog.answer("Start it automatically? [Y/n] ", "n");
    let ran = dialog.end();
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(ran.stdout.contains(&format!("{} install\n", env.path("build/wake").display())), "{}", ran.stdout);
    assert!(!env.path("crontab").exists() && !env.path("home/.local/bin").exists());
}

#[test]
fn ctrl_c_at_the_last_question_keeps_the_settings_and_installs_nothing() {
    let env = machine();
    let mut dialog = set_up(&env);
    dialog.until("Start it automatically? [Y/n] ");
    dialog.interrupt();
    dialog.until("Your settings are saved; nothing was installed.");
    assert!(dialog.echoes());
    assert_eq!(dialog.end().code, 1);
    assert!(env.workspace().join(".env").is_file());
    assert!(!env.path("crontab").exists() && !env.path("home/.local/bin").exists());
}

#[test]
fn an_unreadable_crontab_is_never_overwritten() {
    let env = machine();
    program(&env.path("tools/crontab"), "echo \"$*\" >> \"$HOME/asked\"; echo 'you are not allowed' >&2; exit 1");
    fs::create_dir_all(env.path("home")).unwrap();
    let refused = env.run(env.path("build/wake"), &["install", "--with", "cron"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    refused.assert_tells("you are not allowed");
    assert_eq!(fs::read_to_string(env.path("home/asked")).unwrap(), "-l\n");
    assert!(!env.path("home/.local/bin").exists());
}

#[test]
fn every_program_that_people_call_prints_its_version() {
    let env = TestEnv::new();
    for program in [WAKE, env!("CARGO_BIN_EXE_bot"), env!("CARGO_BIN_EXE_health")] {
        for option in ["--version", "-V"] {
            let told = env.run(program, &[option]).ok().stdout;
            let rest =
                told.strip_prefix(concat!("reveille ", env!("CARGO_PKG_VERSION"))).unwrap_or_else(|| panic!("{told}"));
            let commit = rest.trim_end();
            assert!(
                commit.is_empty() || commit.starts_with(" (") && commit.ends_with(')') && commit.len() >= 10,
                "{told}"
            );
        }
    }
}
