//! Two machines, one memory: real programs in two workspaces over one bare remote, which take turns, die, stop and lose
//! the remote.

use rustix::process::Signal;
use serde_json::json;
use std::path::{Path, PathBuf};

use reveille_store::wake_lock;

use super::{
    support::story::{end_well, sent, start_wake, wait_for_request},
    support::{
        claude::{Block, FakeClaude, Reply},
        env::{CHAT, Running, TestEnv, eventually},
        http::Gate,
        telegram::FakeTelegram,
    },
};

const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
/// Nothing in the protocol is faster than its term; the tests wait by state.
const SHORT_TERM_S: &str = "1";

/// Two machines with one bot's token, one mind and one remote.
struct World {
    telegram: FakeTelegram,
    claude: FakeClaude,
    desk: TestEnv,
    laptop: TestEnv,
    remote: PathBuf,
}

impl World {
    fn new(term_s: &str) -> Self {
        let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
        let machine = || {
            let mut env = TestEnv::with_telegram(&telegram);
            env.think_with(&claude);
            env
        };
        let (mut desk, mut laptop) = (machine(), machine());
        let remote = desk.bare_remote("remote.git");
        for (env, name) in [(&mut desk, "desk"), (&mut laptop, "laptop")] {
            env.set("REPO_URL", &remote.display().to_string()).set("LEASE", "remote").set("LEASE_TERM_S", term_s);
            env.set("LEASE_NAME", name);
        }
        let world = Self { telegram, claude, desk, laptop, remote };
        world.desk.once();
        world.laptop.once();
        world
    }

    fn at_remote(&self) -> String {
        self.desk.git_in(&self.remote, &["rev-parse", "main"])
    }

    /// A wake of the desk that has remembered something and waits for its second turn.
    fn desk_at_work(&self, gate: &Gate) -> Running {
        self.desk.receive(CHAT, "cats purr");
        self.claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Cats purr"}))]));
        self.claude.expect(Reply::text("Kept.").stalled_after(4, gate));
        let wake = start_wake(&self.desk);
        wait_for_request(&self.claude, 2);
        wake
    }

    fn gone(&self) -> PathBuf {
        self.remote.with_extension("gone")
    }
}

fn is_locked(env: &TestEnv) -> bool {
    env.once()["outcome"] == "locked"
}

fn remembers(env: &TestEnv, what: &str) -> bool {
    env.memory(SEMANTIC).contains(what)
}

#[test]
fn machines_take_turns_and_an_idle_one_asks_nobody() {
    let world = World::new("300");
    let gate = Gate::default();
    let wake = world.desk_at_work(&gate);

    // A message that is typed on the other machine waits for its turn, and its wake says who works.
    world.laptop.receive(CHAT, "dogs bark");
    let ran = world.laptop.wake(&["--once", "--json"]).ok();
    assert_eq!(ran.json()["outcome"], "locked", "{ran:#?}");
    ran.assert_tells("The machine desk is working");
    assert_eq!(wake_lock::read_holder(&world.laptop.workspace().join(".wake-lock")), None, "it begins nothing");
    let status = world.laptop.health(&["status"]).stdout;
    assert!(status.contains("work: desk since"), "{status}");

    gate.open();
    assert_eq!(end_well(wake)["pushed"], true);
    assert_eq!(sent(&world.telegram), ["Kept."]);
    world.claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Dogs bark"}))]));
    world.claude.expect(Reply::text("Kept, too."));
    let report = world.laptop.once();
    assert_eq!((&report["answered"], &report["pushed"]), (&json!(1), &json!(true)), "{report}");
    assert_eq!(sent(&world.telegram), ["Kept.", "Kept, too."]);
    assert!(remembers(&world.laptop, "Cats purr") && remembers(&world.laptop, "Dogs bark"));
    assert_eq!(world.at_remote(), world.laptop.git(&["rev-parse", "HEAD"]));

    // With nothing due the remote isn't needed at all.
    std::fs::rename(&world.remote, world.gone()).unwrap();
    let idle = world.laptop.wake(&["--once", "--json"]).ok();
    assert_eq!(idle.json()["outcome"], "idle", "{idle:#?}");
    idle.assert_never_tells("lease");
    world.laptop.check_sound();
}

#[test]
fn a_machine_that_was_killed_is_followed_after_its_term() {
    let world = World::new(SHORT_TERM_S);
    let wake = world.desk_at_work(&Gate::default());
    wake.signal(Signal::KILL);
    wake.end();
    world.laptop.receive(CHAT, "dogs bark");
    assert!(is_locked(&world.laptop), "its term still runs");
    world.claude.expect(Reply::text("They do."));
    eventually("the laptop's turn", || !is_locked(&world.laptop));
    assert_eq!(sent(&world.telegram), ["They do."]);

    // The killed one goes on with what it had begun.
    world.claude.expect(Reply::text("Kept."));
    let report = world.desk.once();
    assert_eq!((&report["answered"], &report["pushed"]), (&json!(1), &json!(true)), "{report}");
    assert!(remembers(&world.desk, "Cats purr"));
    world.desk.check_sound();
}

#[test]
fn a_machine_follows_its_own_killed_wake_at_once() {
    let world = World::new("300");
    let wake = world.desk_at_work(&Gate::default());
    wake.signal(Signal::KILL);
    wake.end();
    world.claude.expect(Reply::text("Kept."));
    let report = world.desk.once();
    assert_eq!((&report["answered"], &report["pushed"]), (&json!(1), &json!(true)), "{report}");
}

#[test]
fn a_machine_that_slept_past_its_term_pushes_nothing_and_sends_nothing() {
    let world = World::new(SHORT_TERM_S);
    let gate = Gate::default();
    let wake = world.desk_at_work(&gate);
    wake.signal(Signal::STOP);
    world.laptop.receive(CHAT, "dogs bark");
    world.claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Dogs bark"}))]));
    world.claude.expect(Reply::text("They do."));
    eventually("the laptop's turn", || !is_locked(&world.laptop));
    let at_remote = world.at_remote();
    assert_eq!(at_remote, world.laptop.git(&["rev-parse", "HEAD"]));

    gate.open();
    wake.signal(Signal::CONT);
    let ran = wake.end();
    assert_eq!(world.at_remote(), at_remote, "nothing was pushed: {ran:#?}");
    assert_eq!(sent(&world.telegram), ["They do."], "nothing was sent: {ran:#?}");

    // In its next turn it ends what it had begun, once.
    let before = world.claude.requests().len();
    world.claude.expect(Reply::text("Kept."));
    let report = world.desk.once();
    assert_eq!(report["pushed"], true, "{report}");
    assert_eq!(sent(&world.telegram), ["They do.", "Kept."]);
    assert!(world.claude.requests().len() <= before + 1);
    assert!(remembers(&world.desk, "Cats purr") && remembers(&world.desk, "Dogs bark"));
    world.desk.check_sound();
}

#[test]
fn without_the_remote_each_answers_and_both_are_merged_later() {
    let mut world = World::new("300");
    std::fs::rename(&world.remote, world.gone()).unwrap();
    for (env, fact) in [(&world.desk, "Cats purr"), (&world.laptop, "Dogs bark")] {
        env.receive(CHAT, fact);
        world.claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({ "fact": fact }))]));
        world.claude.expect(Reply::text("Kept."));
        let report = env.once();
        assert_eq!((&report["answered"], &report["pushed"]), (&json!(1), &json!(false)), "{report}");
        let health = env.health(&["check", "--json"]).json();
        let told = health["checks"].as_array().unwrap().iter().find(|check| check["id"] == "machines").unwrap();
        assert_eq!(told["status"], "warn", "{health:#}");
        assert!(told["detail"].as_str().unwrap().contains("asking for the lease failed"), "{health:#}");
    }
    std::fs::rename(world.gone(), &world.remote).unwrap();
    for hour in 18..21 {
        for env in [&mut world.desk, &mut world.laptop] {
            env.at(&format!("2026-11-21T{hour}:00:00Z"));
            env.once();
        }
    }
    for env in [&world.desk, &world.laptop] {
        assert!(remembers(env, "Cats purr") && remembers(env, "Dogs bark"));
        assert_eq!(env.git(&["rev-parse", "HEAD"]), world.at_remote());
    }
}

#[test]
fn what_comes_by_itself_is_the_machines_on_duty() {
    let mut world = World::new("300");
    let task = "# Active tasks\n\n## Garden\n- status: active\n- touched: 2026-11-20\n- at: 2026-11-21 14:00\n- next: look at the weather\n";
    world.desk.write_memory("memory/project-memory/active.md", task);
    for env in [&mut world.desk, &mut world.laptop] {
        env.set("MODEL", "offline").set("LEASE_DUTY", "never");
    }
    // The edit alone is committed and pushed; nobody is on duty.
    world.desk.receive(CHAT, "list reminders");
    world.desk.once();
    world.laptop.at("2026-11-21T15:00:00Z");
    world.laptop.once();
    assert!(world.laptop.memory("memory/project-memory/active.md").contains("Garden"));
    assert_eq!(world.laptop.once()["outcome"], "idle");
    assert!(!sent(&world.telegram).iter().any(|text| text.contains("Garden")));
    world.laptop.set("LEASE_DUTY", "always");
    world.laptop.once();
    assert_eq!(sent(&world.telegram).iter().filter(|text| text.contains("Garden")).count(), 1);
    world.desk.at("2026-11-21T15:00:00Z");
    world.desk.once();
    assert_eq!(sent(&world.telegram).iter().filter(|text| text.contains("Garden")).count(), 1);
}

#[test]
fn a_remote_that_cannot_push_two_references_at_once_is_named() {
    let world = World::new("300");
    world.desk.git_in(&world.remote, &["config", "receive.advertiseAtomic", "false"]);
    world.desk.receive(CHAT, "hello");
    world.claude.expect(Reply::text("Hello."));
    let report = world.desk.once();
    assert_eq!((&report["answered"], &report["pushed"]), (&json!(1), &json!(false)), "{report}");
    let health = world.desk.health(&["check", "--json"]).json();
    let told = health["checks"].as_array().unwrap().iter().find(|check| check["id"] == "remote").unwrap();
    assert!(told["detail"].as_str().unwrap().contains("does not support --atomic"), "{health:#}");
}

/// A bot whose wakes do nothing, with its log in a file.
fn start_bot(env: &TestEnv) -> (Running, PathBuf) {
    let log = env.path("bot.log");
    (env.start_logged(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", "/bin/true"], &log), log)
}

fn says(log: &Path, what: &str) -> bool {
    std::fs::read_to_string(log).is_ok_and(|text| text.contains(what))
}

fn stored(env: &TestEnv) -> usize {
    env.count_received()
}

#[test]
fn one_bot_polls_and_the_next_one_follows_it() {
    let world = World::new(SHORT_TERM_S);
    let (desk, desk_log) = start_bot(&world.desk);
    eventually("the desk's bot polls", || !world.telegram.calls("getUpdates").is_empty());
    let (laptop, laptop_log) = start_bot(&world.laptop);
    eventually("the laptop's bot waits", || says(&laptop_log, "desk has the lease"));
    world.telegram.push_text(CHAT, CHAT, "one");
    eventually("the desk has it", || stored(&world.desk) == 1 && world.telegram.unconfirmed() == 0);

    // Who is stopped past its term doesn't look at what it polled for.
    desk.signal(Signal::STOP);
    eventually("the laptop's bot follows", || says(&laptop_log, "this machine has the lease now"));
    world.telegram.push_text(CHAT, CHAT, "two");
    eventually("the laptop has it", || stored(&world.laptop) == 1 && world.telegram.unconfirmed() == 0);
    desk.signal(Signal::CONT);
    eventually("the desk's bot knows", || says(&desk_log, "laptop has the lease"));
    assert_eq!((stored(&world.desk), stored(&world.laptop)), (1, 1));

    // One that is asked to end hands over in order.
    laptop.signal(Signal::TERM);
    laptop.end().ok();
    world.telegram.push_text(CHAT, CHAT, "three");
    eventually("the desk has it", || stored(&world.desk) == 2 && world.telegram.unconfirmed() == 0);

    // One that is killed is followed by itself at once, and the other waits.
    desk.signal(Signal::KILL);
    desk.end();
    let (desk, _) = start_bot(&world.desk);
    let (laptop, laptop_log) = start_bot(&world.laptop);
    eventually("the laptop's bot waits", || says(&laptop_log, "desk has the lease"));
    world.telegram.push_text(CHAT, CHAT, "four");
    eventually("the desk has it", || stored(&world.desk) == 3 && world.telegram.unconfirmed() == 0);
    assert_eq!(stored(&world.laptop), 1);
    for log in [&desk_log, &laptop_log] {
        assert!(!says(log, "Conflict"), "{}", std::fs::read_to_string(log).unwrap());
    }
    drop((desk, laptop));
}

#[test]
fn what_was_done_by_itself_is_not_done_again_by_the_next_machine() {
    let world = World::new(SHORT_TERM_S);
    let (desk, _) = start_bot(&world.desk);
    world.telegram.push_text(CHAT, CHAT, "good morning");
    eventually("the desk has heard", || stored(&world.desk) == 1 && world.telegram.unconfirmed() == 0);
    let shared = ["at/Garden/2026-11-21", "reflected/2026-11-21"];
    for key in [shared[0], shared[1], "alarm/here alone"] {
        world.desk.handle(key, "2026-11-21T14:00:00.000Z");
    }
    desk.signal(Signal::TERM);
    desk.end().ok();
    // It has heard nothing itself for days, and yet there was no silence.
    world.laptop.put_next_update(99, 0);
    world.laptop.put_last_poll("2026-11-17T14:00:00.000Z");
    let polls = world.telegram.calls("getUpdates").len();
    let (laptop, log) = start_bot(&world.laptop);
    eventually("the laptop's bot follows", || says(&log, "this machine has the lease now"));
    eventually("it knows what was handled", || shared.iter().all(|key| world.laptop.is_handled(key)));
    assert!(!world.laptop.is_handled("alarm/here alone"));
    world.telegram.push_text(CHAT, CHAT, "hello");
    eventually("it polls", || world.telegram.calls("getUpdates").len() > polls && stored(&world.laptop) == 1);
    assert_eq!(sent(&world.telegram), [""; 0], "nobody is told of a gap");
    drop(laptop);
}
