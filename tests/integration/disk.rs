//! Tests of a disk that gets full: the bot stops fetching below the reserve and says so, continues on its own, and loses nothing even on a
//! completely full disk.

use rustix::process::Signal;
use serde_json::json;
use std::{fs, io::Write as _, path::Path, time::Duration};

use reveille_base::{clock::parse_time, types::ChatRef};

use super::{
    exec_shell::bash,
    support::story::{results, with_claude},
};
use crate::support::{
    bot::{Stage, times},
    claude::Reply,
    database::Database,
    disk::Small,
    env::{CHAT, NOW, ProgramOutput, Running, TestEnv, eventually},
    telegram::FakeTelegram,
};

const PATIENCE: Duration = Duration::from_secs(60);
/// A reserve in MiB that is larger than any disk, so that free space is always below it.
const NO_DISK_HAS: &str = "1048576";

fn notices(stage: &Stage) -> Vec<String> {
    stage.telegram.sent().into_iter().filter(|sent| sent.chat_id == CHAT).map(|sent| sent.visible).collect()
}

#[test]
fn below_the_reserve_nothing_is_fetched_and_the_owner_is_told_once() {
    let mut stage = Stage::new();
    stage.env.set("DISK_RESERVE_MB", NO_DISK_HAS);
    stage
        .env
        .store()
        .inbox_mut()
        .queue_message(ChatRef::from_telegram(CHAT), "queued before", parse_time(NOW).unwrap())
        .unwrap();
    stage.say("sent meanwhile");
    let (bot, log) = stage.start_logged("fake-wake");
    // Queued messages are answered nevertheless.
    stage.wait_for_starts(1);
    let sent = stage.telegram.wait_for_sent(1, PATIENCE);
    for part in ["nearly full", "are safe, and I'll answer them", "until Sun 22 Nov 15:00", "Please free some space"] {
        assert!(sent[0].visible.contains(part), "{sent:#?}");
    }
    stage.answer_all();
    stage.end(bot);
    assert!(fs::read_to_string(&log).unwrap().contains("no more polling"));

    // A new bot knows that the owner was told.
    let (bot, log) = stage.start_logged("fake-wake");
    eventually("the bot has started", || fs::read_to_string(&log).unwrap().contains("listening"));
    stage.end(bot);
    assert_eq!((stage.telegram.calls("getUpdates").len(), notices(&stage).len()), (0, 1));
    assert_eq!((stage.stored(), stage.telegram.unconfirmed()), (1, 1));

    // With enough space, the bot continues where it stopped, and says so.
    stage.env.set("DISK_RESERVE_MB", "0");
    let bot = stage.start();
    stage.wait_until_confirmed();
    assert!(stage.telegram.wait_for_sent(2, PATIENCE)[1].visible.contains("fetching messages again"));
    stage.answer_all();
    stage.end(bot);
    assert_eq!((stage.stored(), notices(&stage).len()), (2, 2));
    assert!(!stage.env.is_handled("disk/short"));
}

#[test]
fn a_notice_that_cannot_be_stored_is_logged_and_tried_again() {
    let mut stage = Stage::new();
    stage.env.set("DISK_RESERVE_MB", NO_DISK_HAS);
    drop(stage.env.store());
    stage.env.refuse("INSERT", "outgoing_messages", "TRUE");
    let (bot, log) = stage.start_logged("fake-wake");
    eventually("the failure is logged", || fs::read_to_string(&log).unwrap().contains("can't be told of it yet"));
    assert!(!stage.env.is_handled("disk/short"));
    stage.env.refuse_no_more("outgoing_messages");
    stage.telegram.wait_for_sent(1, PATIENCE);
    stage.end(bot);
    assert_eq!(fs::read_to_string(&log).unwrap().matches("can't be told of it yet").count(), 1);
    assert!(stage.telegram.calls("getUpdates").is_empty());
}

#[test]
fn a_wake_answers_below_the_reserve_and_health_reports_it() {
    let mut env = TestEnv::new();
    env.set("DISK_RESERVE_MB", NO_DISK_HAS);
    let ran = env.wake(&["--once", "--say", "remember that tea is at five"]).ok();
    assert_eq!(ran.stdout.lines().last(), Some("Remembered: tea is at five"));
    env.check_sound();
    let report = env.health(&["check", "--json"]);
    assert_eq!(report.code, 1);
    let checks = report.json()["checks"].as_array().unwrap().clone();
    let disk = checks.iter().find(|check| check["id"] == "disk").unwrap();
    assert_eq!(disk["status"], "critical");
    assert!(disk["detail"].as_str().unwrap().contains("less than the reserve of 1.0 TiB"), "{disk}");
    assert!(disk["fix"].as_str().unwrap().contains("the bot continues on its own"), "{disk}");
    assert!(env.health(&["status"]).ok().stdout.contains("less than the reserve of 1.0 TiB"));
    assert_eq!(env.health(&["status", "--json"]).ok().json()["disk"]["is_short"], json!(true));
}

/// A bot in a workspace on a small disk.
struct SmallWorld<'e> {
    disk: Small<'e>,
    env: TestEnv,
    telegram: FakeTelegram,
}

impl<'e> SmallWorld<'e> {
    fn new(outer: &'e TestEnv, mib: u32) -> Option<Self> {
        let disk = Small::mount(outer, "small", mib)?;
        let telegram = FakeTelegram::start();
        let mut env = TestEnv::with_telegram(&telegram);
        env.set("WORKSPACE_DIR", &format!("{}/workspace", disk.at()));
        Some(Self { disk, env, telegram })
    }

    fn start(&self) -> (Running, std::path::PathBuf) {
        let log = self.env.path("bot.log");
        (self.env.start_logged(env!("CARGO_BIN_EXE_bot"), &["--wake", "/bin/true"], &log), log)
    }

    fn stored(&self) -> usize {
        let db = Path::new(self.disk.at()).join("workspace/messages.db");
        Database::in_file(db).count_received()
    }

    /// Fills the remaining space.
    fn fill(&self) {
        fill(Path::new(self.disk.at()));
    }

    fn end(&self, bot: Running) -> ProgramOutput {
        bot.signal(Signal::TERM);
        bot.end().ok()
    }
}

fn fill(disk: &Path) {
    let mut file = fs::File::create(disk.join("filling")).unwrap();
    for chunk in [1 << 20, 4096, 1] {
        while file.write_all(&vec![0; chunk]).is_ok() {}
    }
}

fn logged(log: &Path, what: &str) -> bool {
    fs::read_to_string(log).unwrap().contains(what)
}

#[test]
fn fetching_stops_when_space_runs_short_and_starts_again() {
    let outer = TestEnv::new();
    let Some(world) = SmallWorld::new(&outer, 160) else { return };
    let (bot, log) = world.start();
    world.telegram.push_text(CHAT, CHAT, "with room");
    eventually("the message is confirmed", || world.telegram.unconfirmed() == 0);
    world.disk.resize(60);
    // The running poll still returns a message, which is stored; the next poll waits.
    world.telegram.push_text(CHAT, CHAT, "in the poll under way");
    eventually("the bot stops polling", || logged(&log, "no more polling"));
    eventually("both are stored", || world.stored() == 2);
    world.telegram.wait_for_sent(1, PATIENCE);
    let polls = world.telegram.calls("getUpdates").len();
    world.telegram.push_text(CHAT, CHAT, "without room");
    world.disk.resize(110);
    assert_eq!(world.telegram.calls("getUpdates").len(), polls);
    world.disk.resize(400);
    eventually("all are confirmed", || world.telegram.unconfirmed() == 0);
    world.telegram.wait_for_sent(2, PATIENCE);
    let ran = world.end(bot);
    assert_eq!((world.stored(), times(&ran, "panicked")), (3, 0));
}

#[test]
fn on_a_full_disk_a_batch_is_not_confirmed_and_comes_again() {
    let outer = TestEnv::new();
    let Some(mut world) = SmallWorld::new(&outer, 8) else { return };
    world.env.set("DISK_RESERVE_MB", "0");
    let (bot, log) = world.start();
    world.telegram.push_text(CHAT, CHAT, "with room");
    eventually("the message is confirmed", || world.telegram.unconfirmed() == 0);
    world.fill();
    // More messages than fit into the existing pages of the write-ahead log. None is long enough to be taken for a part of a longer text.
    for n in 0..120 {
        world.telegram.push_text(CHAT, CHAT, &format!("{n} {}", "without room ".repeat(150)));
    }
    eventually("the failure is logged", || logged(&log, "couldn't store new messages: the disk is full"));
    let unconfirmed = world.telegram.unconfirmed();
    assert!(unconfirmed > 0);
    // A bot that starts on a full disk waits for space too.
    world.end(bot);
    world.fill();
    let (bot, log) = world.start();
    eventually("the bot waits for space", || logged(&log, "no room on the disk") || logged(&log, "couldn't store"));
    world.disk.resize(64);
    eventually("all are confirmed", || world.telegram.unconfirmed() == 0);
    world.end(bot);
    assert_eq!(world.stored(), 121);
}

#[test]
fn a_command_that_would_fill_the_disk_is_ended_and_its_chat_answered() {
    let filling = [
        "head -c 2G /dev/zero > fill",
        "i=0; while head -c 3M /dev/zero > f$i; do i=$((i+1)); done; echo all written",
        "for i in 1 2 3 4 5 6; do head -c 2G /dev/zero > $i & done; wait",
        "mkdir -p a/b && cd a/b && dd if=/dev/zero of=x bs=1M count=4000",
        "while :; do head -c 1M /dev/zero >> log; done",
    ];
    for command in filling {
        let (telegram, claude, env) = with_claude();
        let Some(disk) = Small::mount(&env, "workspace", 400) else { return };
        env.receive(CHAT, "run a command for me");
        claude.expect(bash("t1", command));
        claude.expect(bash("t2", "echo and on"));
        claude.expect(Reply::text("It was too much."));
        assert_eq!(env.once()["outcome"], "worked", "{command}");
        let requests = claude.requests();
        let (told, then) = (results(&requests[1]).remove(0).0, results(&requests[2]).remove(0).0);
        assert!(
            told.contains("has to stay free") || told.contains("larger than there is room for"),
            "{command}: {told}"
        );
        assert!(told.contains("removed") && told.contains("from the scratch folder"), "{command}: {told}");
        assert!(then.contains("and on"), "{command}: {then}");
        let sent = telegram.wait_for_sent(1, PATIENCE);
        assert_eq!(sent[0].visible, "It was too much.", "{command}");
        let free = reveille_base::disk::free_bytes(Path::new(disk.at())).unwrap();
        assert!(free > 100 << 20, "{command}: {free}");
        // The next message is answered too.
        env.receive(CHAT, "are you there?");
        claude.expect(Reply::text("Yes."));
        assert_eq!(env.once()["outcome"], "worked", "{command}");
        env.check_sound();
    }
}

#[test]
fn on_a_disk_filled_by_others_the_owner_is_told_and_still_answered() {
    let outer = TestEnv::new();
    let Some(mut world) = SmallWorld::new(&outer, 64) else { return };
    world.env.set("DISK_RESERVE_MB", "10");
    world.env.wake(&["--once", "--say", "remember that the wifi is slow"]).ok();
    let (bot, _) = world.start();
    world.telegram.push_text(CHAT, CHAT, "remember that tea is at five");
    eventually("the message is confirmed", || world.telegram.unconfirmed() == 0);
    let ballast = Path::new(world.disk.at()).join("workspace/.ballast");
    eventually("some space is reserved", || ballast.exists());
    // After this the store has no free page for new data.
    world.end(bot);
    world.fill();
    let (bot, _) = world.start();
    let sent = world.telegram.wait_for_sent(1, PATIENCE);
    assert!(sent[0].visible.contains("nearly full"), "{sent:#?}");
    assert!(!ballast.exists());
    world.end(bot);
    // Messages already in the queue are answered.
    assert_eq!(world.env.once()["outcome"], "worked");
    assert!(world.telegram.wait_for_sent(2, PATIENCE)[1].visible.contains("tea is at five"));
}

#[test]
fn a_full_disk_loses_the_scratch_folder_first() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    env.set("DISK_RESERVE_MB", "10");
    let Some(disk) = Small::mount(&env, "workspace", 64) else { return };
    // After its first wake, the program keeps some space in reserve.
    env.wake(&["--once", "--say", "remember that the wifi is slow"]).ok();
    let scratch = env.workspace().join("scratch");
    fs::create_dir_all(scratch.join("deep")).unwrap();
    fs::write(scratch.join("deep/large"), vec![1; 20 << 20]).unwrap();
    env.receive(CHAT, "remember that tea is at five");
    fill(Path::new(disk.at()));
    assert_eq!(env.once()["outcome"], "worked");
    assert!(!scratch.join("deep/large").exists());
    assert!(telegram.wait_for_sent(1, PATIENCE)[0].visible.contains("tea is at five"));
}

/// A text too long for the existing pages of the write-ahead log.
fn long(text: &str) -> String {
    format!("{text} {}", "and so on ".repeat(4_000))
}

#[test]
fn a_message_that_could_not_be_stored_is_not_reported_as_stored() {
    let outer = TestEnv::new();
    let Some(mut world) = SmallWorld::new(&outer, 16) else { return };
    world.env.set("DISK_RESERVE_MB", "0");
    world.env.wake(&["--once"]).ok();
    world.fill();
    let text = long("remember that tea is at five");
    for args in [&["say", &text][..], &["--once", "--say", &text], &["--once", "--say", &text, "--json"]] {
        let ran = world.env.wake(args);
        assert_eq!(ran.code, 1, "{ran:#?}");
        ran.assert_tells("Your message was NOT stored").assert_tells("room").assert_never_tells("queued");
    }
    let ran = world.env.bot(&["send", "--chat", &CHAT.to_string(), &text]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran:#?}");
    ran.assert_tells("was NOT stored").assert_tells("won't be sent");
    world.disk.resize(64);
    assert_eq!(world.stored(), 0);
    assert!(world.telegram.sent().is_empty());
}

#[test]
fn a_stored_message_is_reported_as_stored_even_if_the_wake_fails() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    fs::write(env.brain().join(".git/refs/heads/main"), "nonsense\n").unwrap();
    let ran = env.wake(&["say", "remember that tea is at five"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    ran.assert_tells("Your message is stored");
    assert_eq!(env.queued().len(), 1);
    let ran = env.wake(&["--once"]);
    ran.assert_tells("Queued messages are safe").assert_never_tells("Your message");
}

const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";

#[test]
fn old_journals_and_logs_are_deleted_and_the_rest_stays() {
    let mut env = TestEnv::new();
    env.at("2026-10-01T09:00:00Z");
    env.wake(&["--once", "--say", "remember that tea is at five"]).ok();
    env.wake(&["--once", "--say", "remind me to stretch tomorrow at 9"]).ok();
    let cycle = env.cycles()[0].id.clone();
    let logs = env.workspace().join("logs");
    let log = |name: &str, time: &str| {
        let file = fs::File::create(logs.join(name)).unwrap();
        (&file).write_all(b"a line\n").unwrap();
        file.set_modified(parse_time(time).unwrap().into()).unwrap();
    };
    log("page.log", "2026-10-01T09:00:00Z");
    log("bot.log", "2026-11-20T09:00:00Z");
    let entries = |env: &TestEnv| env.journal().len();
    assert!(entries(&env) > 5);

    // The program didn't run for weeks: the reminder is sent, but nothing is deleted yet, since the clock may have leapt.
    env.at(NOW);
    assert_eq!(env.once()["outcome"], "worked");
    assert!(entries(&env) > 5);
    env.at("2026-11-21T14:30:00Z");
    assert_eq!(env.once()["outcome"], "idle");
    assert!(entries(&env) > 5);

    env.at("2026-11-21T15:00:00Z");
    assert_eq!(env.once()["outcome"], "worked");
    assert_eq!(entries(&env), 1, "only the reminder's entry, an hour old, is left");
    assert_eq!(fs::read(logs.join("page.log")).unwrap(), b"");
    assert_eq!(fs::read(logs.join("bot.log")).unwrap(), b"a line\n");
    assert_eq!(env.cycles().len(), 3);
    assert!(env.wake(&["show", &cycle]).ok().stdout.contains("tea is at five"));
    assert!(env.memory(SEMANTIC).contains("tea is at five"));

    // Idle wakes still write nothing, not even a new fence: right away, and when the next cleaning finds nothing old.
    let fence = env.fence();
    for time in ["2026-11-21T15:05:00Z", "2026-11-23T15:00:00Z", "2026-12-05T15:00:00Z"] {
        assert_eq!(env.at(time).once()["outcome"], "idle");
    }
    assert_eq!(env.fence(), fence);
    env.check_sound();
}

#[test]
fn with_unlimited_keep_days_nothing_is_deleted() {
    let mut env = TestEnv::new();
    env.set("KEEP_DAYS", "0").at("2020-10-01T09:00:00Z");
    env.wake(&["--once", "--say", "remember that tea is at five"]).ok();
    let entries = env.journal().len();
    for time in ["2026-11-21T14:00:00Z", "2026-11-21T16:00:00Z"] {
        assert_eq!(env.at(time).once()["outcome"], "idle");
    }
    assert_eq!(env.journal().len(), entries);
}
