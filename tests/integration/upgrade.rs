//! Upgrades: one build takes another's place, under cron, with the real programs. A newer build is a copy of the same with a byte more; a
//! broken one has a bot that ends at once, or one that hangs. Whatever comes of it, one bot runs, on one database.

use reveille::setup::install::PROGRAMS;
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use reveille_base::process::Identity;
use reveille_store::Store;

use super::{
    init::write,
    install::{StartedBot, machine, program},
    support::{
        claude::API_KEY,
        database::Database,
        env::{CHAT, ProgramOutput, TestEnv, eventually},
        telegram::{FakeTelegram, TOKEN},
    },
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A machine with an installed build and its bot, which has answered once.
struct Upgraded {
    env: TestEnv,
    telegram: FakeTelegram,
    /// The bot that runs; it goes with the test.
    bot: StartedBot,
}

impl Upgraded {
    fn new() -> Self {
        let telegram = FakeTelegram::start();
        let env = prepared(&telegram.url());
        env.run(env.path("build/wake"), &["install"]).ok();
        let bot = StartedBot::find(&env).unwrap();
        let machine = Self { env, telegram, bot };
        machine.answers("remember that the boiler is from 2019");
        machine
    }

    /// The person writes, and is answered once.
    #[track_caller]
    fn answers(&self, text: &str) {
        let sent = self.telegram.sent().len();
        self.telegram.push_text(CHAT, CHAT, text);
        self.telegram.wait_for_sent(sent + 1, PATIENCE);
        eventually("it is answered", || self.env.count_queued() == 0);
        assert_eq!(self.telegram.sent().len(), sent + 1, "{:?}", self.telegram.sent());
    }

    /// Installs a build that stands in this folder of the world.
    fn install(&self, build: &str, arguments: &[&str]) -> ProgramOutput {
        self.env.run(self.env.path(build).join("wake"), &[&["install"], arguments].concat())
    }

    /// The bot that runs now, which takes the other's place here.
    #[track_caller]
    fn another_bot(&mut self) {
        let now = StartedBot::find(&self.env).expect("a bot runs");
        assert!(!self.bot.0.is_alive() && now.0 != self.bot.0, "one bot, and another one");
        self.bot = now;
    }

    fn lib(&self) -> PathBuf {
        self.env.path("home/.local/lib/reveille")
    }

    /// Which build is called.
    fn current(&self) -> PathBuf {
        fs::read_link(self.lib().join("current")).unwrap()
    }

    /// How many messages a database holds that say this.
    fn holds(&self, database: &str, text: &str) -> usize {
        let received = Database::in_file(self.env.workspace().join(database)).received();
        received.iter().filter(|message| message.text == text).count()
    }
}

/// A machine with a build that has a real bot, and a token.
fn prepared(telegram_url: &str) -> TestEnv {
    let mut env = machine();
    env.set("TELEGRAM_API_URL", telegram_url).set("ALLOWED_CHAT_IDS", &CHAT.to_string()).set("MODEL", "offline");
    write(&env.workspace().join(".env"), &format!("TELEGRAM_BOT_TOKEN={TOKEN}\n"));
    fs::set_permissions(env.workspace(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_bot"), env.path("build/bot")).unwrap();
    env
}

/// Another build: the same programs, but for a byte at the end of `wake`, and for the bot where one is given.
fn another_build(env: &TestEnv, name: &str, bot: Option<&str>) {
    let (from, to) = (env.path("build"), env.path(name));
    fs::create_dir_all(&to).unwrap();
    for program in PROGRAMS {
        let (from, to) = (from.join(program), to.join(program));
        let is_rewritten = program == "wake" || program == "bot" && bot.is_some();
        if is_rewritten || fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to).unwrap();
        }
    }
    let mut bytes = fs::read(to.join("wake")).unwrap();
    bytes.extend(name.as_bytes());
    fs::write(to.join("wake"), bytes).unwrap();
    if let Some(line) = bot {
        program(&to.join("bot"), line);
    }
}

#[test]
fn a_newer_build_takes_over_with_all_that_was_there_and_the_one_before_can_come_back() {
    let mut machine = Upgraded::new();
    let first = machine.current();
    another_build(&machine.env, "newer", None);
    let upgraded = machine.install("newer", &[]).ok();
    upgraded.assert_tells("✓ the new bot has reported in");
    machine.another_bot();
    assert_ne!(machine.current(), first);
    assert_eq!(fs::read_link(machine.lib().join("before")).unwrap(), first);
    assert!(machine.current().join("reported-in").exists());
    machine.answers("remember that the roof is from 2020");
    let read = machine.env.wake(&["memory", "search", "boiler"]).ok();
    assert!(read.stdout.contains("2019"), "{read:#?}");

    // The copy is whole, private, and of before.
    let copy = machine.env.workspace().join("messages.db.before-upgrade");
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(Store::open_read_only(&copy).unwrap().unwrap().check_integrity().unwrap(), Ok(()));
    let held = |database| {
        ["remember that the boiler is from 2019", "remember that the roof is from 2020"]
            .map(|text| machine.holds(database, text))
    };
    assert_eq!((held("messages.db.before-upgrade"), held("messages.db")), ([1, 0], [1, 1]));

    // The installed one again changes nothing.
    machine.env.run(machine.env.path("home/.local/bin/wake"), &["install"]).ok();
    assert!(machine.bot.0.is_alive());
    // By hand: the build before takes over.
    machine.env.run(machine.lib().join("before/wake"), &["install"]).ok();
    machine.another_bot();
    assert_eq!(machine.current(), first);
    machine.answers("remember that the door is from 2021");

    // No more than two builds stay.
    another_build(&machine.env, "third", None);
    machine.install("third", &[]).ok();
    machine.another_bot();
    assert_eq!(fs::read_dir(machine.lib().join("versions")).unwrap().count(), 2);
    machine.env.run(machine.env.path("home/.local/bin/wake"), &["install", "--uninstall"]).ok();
    assert!(!machine.bot.0.is_alive() && !machine.lib().join("versions").exists());
    assert!(fs::symlink_metadata(machine.lib().join("current")).is_err());
}

#[test]
fn a_bot_that_ends_at_once_yields_to_the_one_before_on_the_present_database() {
    let mut machine = Upgraded::new();
    let first = machine.current();
    // It writes before it fails: what was stored by then stays.
    let wake = env!("CARGO_BIN_EXE_wake");
    another_build(
        &machine.env,
        "broken",
        Some(&format!("'{wake}' say 'remember that it was said to the broken one'; exit 7")),
    );
    let refused = machine.install("broken", &[]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    for told in ["the bot ended at once (exit code 7)", "their bot is running", "Nothing stored or sent is lost"] {
        refused.assert_tells(told);
    }
    machine.another_bot();
    assert_eq!(machine.current(), first);
    let said = "remember that it was said to the broken one";
    assert_eq!((machine.holds("messages.db", said), machine.holds("messages.db.before-upgrade", said)), (1, 0));
    machine.answers("remember that the roof is from 2020");

    // Nor is the next good build kept from anything.
    another_build(&machine.env, "good", None);
    machine.install("good", &[]).ok();
    machine.another_bot();
    assert_eq!(fs::read_link(machine.lib().join("before")).unwrap(), first);
}

#[test]
fn a_bot_that_hangs_is_ended_and_the_one_before_takes_over() {
    let mut machine = Upgraded::new();
    let first = machine.current();
    let hung = machine.env.path("hung");
    let line = format!("trap '' TERM; echo $$ > '{}'; while :; do sleep 1; done", hung.display());
    another_build(&machine.env, "hanging", Some(&line));
    let refused = machine.install("hanging", &["--report-within", "10"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    refused.assert_tells("didn't report in within 10 s");
    assert!(Identity::for_pid(fs::read_to_string(&hung).unwrap().trim().parse().unwrap()).is_none(), "it is gone");
    machine.another_bot();
    assert_eq!(machine.current(), first);
    machine.answers("remember that the roof is from 2020");
}

/// The bot works, and its wakes don't: that is no build to keep either.
#[test]
fn a_build_whose_wakes_fail_yields_too() {
    let mut machine = Upgraded::new();
    let first = machine.current();
    // The build's own `wake` installs it, and is another by the time that it is tried.
    let bot = env!("CARGO_BIN_EXE_bot");
    let line = format!(
        "build=$(dirname \"$(readlink -f \"$0\")\"); mv \"$build/wake\" \"$build/moved\"\n\
         printf '#!/bin/sh\\nexit 9\\n' > \"$build/wake\"; chmod +x \"$build/wake\"; exec '{bot}' \"$@\""
    );
    another_build(&machine.env, "broken", Some(&line));
    let refused = machine.install("broken", &[]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    for told in ["✓ the new bot has reported in", "a test wake failed (exit code 9)", "their bot is running"] {
        refused.assert_tells(told);
    }
    machine.another_bot();
    assert_eq!(machine.current(), first);
    machine.answers("remember that the roof is from 2020");
}

/// A session's manager, in whose place stands a program that starts and ends the one bot, as it does.
#[test]
fn under_a_sessions_manager_the_bot_before_is_started_by_it_again() {
    let telegram = FakeTelegram::start();
    let env = prepared(&telegram.url());
    let manager = "pid=\"$HOME/bot.pid\"\n\
         [ \"$*\" = '--user restart reveille-bot.service' ] || exit 0\n\
         if [ -e \"$pid\" ]; then kill \"$(cat \"$pid\")\"; n=0\n\
         while [ $n -lt 200 ] && kill -0 \"$(cat \"$pid\")\" 2>/dev/null; do n=$((n + 1)); sleep 0.05; done; fi\n\
         setsid \"$HOME/.local/bin/bot\" >/dev/null 2>&1 & echo $! > \"$pid\"";
    program(&env.path("tools/systemctl"), manager);
    let installed = env.run(env.path("build/wake"), &["install"]).ok();
    installed.assert_tells("restart reveille-bot.service");
    let (first, current) = (StartedBot::find(&env).unwrap(), env.path("home/.local/lib/reveille/current"));
    let called = fs::read_link(&current).unwrap();

    another_build(&env, "newer", None);
    env.run(env.path("newer/wake"), &["install"]).ok();
    let second = StartedBot::find(&env).unwrap();
    assert!(!first.0.is_alive() && fs::read_link(&current).unwrap() != called);
    let called = fs::read_link(&current).unwrap();

    another_build(&env, "hanging", Some("exec sleep 600"));
    let refused = env.run(env.path("hanging/wake"), &["install", "--report-within", "2"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    for told in ["didn't report in within 2 s; journalctl", "their bot is running"] {
        refused.assert_tells(told);
    }
    let third = StartedBot::find(&env).unwrap();
    assert!(!second.0.is_alive() && fs::read_link(&current).unwrap() == called);
    assert_eq!(exe(third.0.pid), called.join("wake"));
}

/// A kill in the middle of a trial: no bot runs. Whoever installs next is told, and mends it.
#[test]
fn what_a_kill_broke_off_the_next_installation_mends() {
    let mut machine = Upgraded::new();
    let first = machine.current();
    let hung = machine.env.path("hung");
    another_build(&machine.env, "hanging", Some(&format!("echo $$ > '{}'; exec sleep 600", hung.display())));
    let installer = machine.env.path("hanging/wake").display().to_string();
    let installing = machine.env.start(&installer, &["install"]);
    eventually("its bot hangs", || fs::read_to_string(&hung).is_ok_and(|pid| pid.ends_with('\n')));
    installing.signal(rustix::process::Signal::KILL);
    installing.end();
    assert!(StartedBot::find(&machine.env).is_none());
    assert_ne!(machine.current(), first);

    let mended = machine.env.run(machine.lib().join("before/wake"), &["install"]).ok();
    mended.assert_tells("was interrupted before it had reported in");
    machine.another_bot();
    assert_eq!(machine.current(), first);
    machine.answers("remember that the roof is from 2020");
    let pid: i32 = fs::read_to_string(&hung).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), rustix::process::Signal::KILL).ok();
}

/// Programs that stand in `bin` themselves, as installations put them there before builds stood beside each other.
#[test]
fn programs_of_an_earlier_installation_are_kept_as_a_build() {
    let telegram = FakeTelegram::start();
    let env = prepared(&telegram.url());
    let bin = env.path("home/.local/bin");
    fs::create_dir_all(&bin).unwrap();
    for name in PROGRAMS {
        fs::copy(env.path("build").join(name), bin.join(name)).unwrap();
    }
    write(&env.path("home/.local/lib/reveille/programs"), &PROGRAMS.map(|name| format!("{name}\n")).concat());
    let bot = env.start(&bin.join("bot").display().to_string(), &[]);
    telegram.wait_for_calls("getUpdates", 1, PATIENCE);

    another_build(&env, "broken", Some("exit 7"));
    let refused = env.run(env.path("broken/wake"), &["install"]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    refused.assert_tells("their bot is running");
    bot.end();
    let back = StartedBot::find(&env).unwrap();
    let earlier = env.path("home/.local/lib/reveille/versions/earlier");
    assert_eq!(exe(back.0.pid), earlier.join("wake"));
    assert_eq!(bin.join("wake").canonicalize().unwrap(), earlier.join("wake"));
}

/// Another way has put programs in the place of the links: they are the ones of before, whatever the link says.
#[test]
fn programs_that_stand_in_the_place_of_the_links_are_kept_as_a_build() {
    let mut machine = Upgraded::new();
    let (first, bin) = (machine.current(), machine.env.path("home/.local/bin"));
    another_build(&machine.env, "own", None);
    for name in PROGRAMS {
        fs::remove_file(bin.join(name)).unwrap();
        fs::copy(machine.env.path("own").join(name), bin.join(name)).unwrap();
    }
    // The link leads to this very build, and yet it is an upgrade.
    machine.install("build", &[]).ok();
    machine.another_bot();
    assert_eq!((machine.current(), bin.join("wake").canonicalize().unwrap()), (first.clone(), first.join("wake")));
    let before = fs::read_link(machine.lib().join("before")).unwrap();
    assert_eq!(before, machine.lib().join("versions/earlier"));
    assert!(fs::read(before.join("wake")).unwrap() == fs::read(machine.env.path("own/wake")).unwrap());
    machine.answers("remember that the roof is from 2020");
}

/// What the trial's wake finds can wait for its model: that says nothing against the build.
#[test]
fn a_build_whose_wake_finds_the_model_away_stays() {
    let mut env = machine();
    env.set("ALLOWED_CHAT_IDS", &CHAT.to_string()).set("MODEL", "offline");
    env.run(env.path("build/wake"), &["install"]).ok();
    let link = env.path("home/.local/lib/reveille/current");
    let current = || fs::read_link(&link).unwrap();
    let first = current();
    another_build(&env, "newer", None);
    env.receive(CHAT, "is the boiler on?");
    // No timer has what the environment keeps secret.
    let (nobody, settings) = ("http://127.0.0.1:9", env.workspace().join(".env"));
    write(&settings, &format!("ANTHROPIC_API_KEY={API_KEY}\nANTHROPIC_BASE_URL={nobody}\nMODEL=claude-sonnet-5-5\n"));
    env.unset("MODEL");
    let upgraded = env.run(env.path("newer/wake"), &["install"]).ok();
    upgraded.assert_tells("✓ a wake ran, but its work has to wait");
    assert!(current() != first && current().join("reported-in").exists(), "{upgraded:#?}");
    assert_eq!(env.queued().len(), 1);
}

fn exe(pid: u32) -> PathBuf {
    fs::read_link(Path::new("/proc").join(pid.to_string()).join("exe")).unwrap()
}

/// Nobody can tell then whether the new bot reaches Telegram: it works, and no other would do better.
#[test]
fn without_a_network_a_bot_that_works_is_enough() {
    let env = prepared("http://127.0.0.1:9");
    let installed = env.run(env.path("build/wake"), &["install", "--report-within", "15"]).ok();
    installed.assert_tells("Telegram can't be reached at the moment");
    assert!(StartedBot::find(&env).is_some());
}

#[test]
fn settings_that_the_new_build_refuses_are_named_and_nothing_is_changed() {
    let mut machine = Upgraded::new();
    let first = machine.current();
    another_build(&machine.env, "newer", None);
    machine.env.set("AUTONOMY", "9");
    let refused = machine.install("newer", &[]);
    assert_eq!(refused.code, 1, "{refused:#?}");
    refused.assert_tells("AUTONOMY").assert_tells("the current programs stay");
    assert!(machine.bot.0.is_alive() && machine.current() == first);
}
