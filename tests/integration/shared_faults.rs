//! What a PostgreSQL, and the way to it, do to a wake: cut at every statement, its answer lost, the server killed, restarted and full.
//! After each nothing is lost, and nothing is there twice.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::Shutdown,
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::json;

use super::{
    support::story::{start_wake, wait_for_request},
    support::{
        claude::{Block, ClaudeRequest, FakeClaude, Reply},
        disk::Small,
        env::{CHAT, TestEnv},
        http::Gate,
        postgres::{self, OwnServer},
        telegram::FakeTelegram,
    },
};

/// What a socket of PostgreSQL's is called in its directory.
const SOCKET: &str = ".s.PGSQL.5432";
const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
/// Of the messages of a wake, every so many is a place to cut at; the nightly run takes all.
const EVERY: usize = 150;

/// What happens to the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The server never gets the message.
    Before,
    /// It gets it and does it, and its answer is lost.
    Answer,
    /// The same, and from then on nobody reaches the server.
    Down,
}

/// A way to the server that can be cut.
struct Way {
    state: Arc<Mutex<WayState>>,
    url: String,
}

#[derive(Default)]
struct WayState {
    /// Messages of clients so far.
    count: usize,
    cut: Option<(usize, Cut)>,
    is_down: bool,
}

impl Way {
    /// Listens in this directory, before the server behind `url`.
    fn new(dir: &Path, url: &str) -> Self {
        fs::create_dir(dir).unwrap();
        let listener = UnixListener::bind(dir.join(SOCKET)).unwrap();
        let host = url.split(['@', '/']).find(|part| part.starts_with("%2F")).unwrap();
        let server = PathBuf::from(host.replace("%2F", "/")).join(SOCKET);
        let state = Arc::new(Mutex::new(WayState::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                let server = (!state.lock().unwrap().is_down).then(|| UnixStream::connect(&server).ok()).flatten();
                thread::spawn(move || server.map(|server| carry(&client, &server, &state)));
            }
        });
        Self { state, url: url.replace(host, &dir.display().to_string().replace('/', "%2F")) }
    }

    /// Cuts at the n-th message from now on; says how many there were before.
    fn set(&self, cut: Option<(usize, Cut)>) -> usize {
        std::mem::replace(&mut *self.state.lock().unwrap(), WayState { cut, ..WayState::default() }).count
    }
}

/// Carries both ways until either end is over, or the connection is to be cut.
fn carry(client: &UnixStream, server: &UnixStream, state: &Arc<Mutex<WayState>>) {
    let loses_answer = Arc::new(AtomicBool::new(false));
    let (mut back, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    let loses = Arc::clone(&loses_answer);
    thread::spawn(move || {
        let mut bytes = [0; 1 << 16];
        while let Ok(n @ 1..) = back.read(&mut bytes) {
            if loses.load(Ordering::SeqCst) || to_client.write_all(&bytes[..n]).is_err() {
                break;
            }
        }
        to_client.shutdown(Shutdown::Both).ok();
        back.shutdown(Shutdown::Both).ok();
    });
    let (mut client, mut server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let mut bytes = [0; 1 << 16];
    while let Ok(n @ 1..) = client.read(&mut bytes) {
        let cut = {
            let mut state = state.lock().unwrap();
            state.count += 1;
            let cut = state.cut.filter(|(at, _)| *at == state.count).map(|(_, cut)| cut);
            state.is_down |= cut == Some(Cut::Down);
            if state.is_down && cut.is_none() { Some(Cut::Before) } else { cut }
        };
        loses_answer.store(matches!(cut, Some(Cut::Answer | Cut::Down)), Ordering::SeqCst);
        if cut == Some(Cut::Before) || server.write_all(&bytes[..n]).is_err() {
            break;
        }
    }
    client.shutdown(Shutdown::Both).ok();
    server.shutdown(Shutdown::Both).ok();
}

/// A world whose person has said something, and what thinks about it.
struct Scene {
    telegram: FakeTelegram,
    _claude: FakeClaude,
    env: TestEnv,
}

impl Scene {
    fn new(url: &str) -> Self {
        let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
        claude.answer_with(think);
        let mut env = TestEnv::with_telegram(&telegram);
        env.think_with(&claude).set("DATABASE_URL", url);
        env.once();
        Self { telegram, _claude: claude, env }
    }

    /// Says it, and gives the wake that is disturbed.
    fn say(&self) {
        self.env.receive(CHAT, "cats purr");
    }

    /// Undisturbed wakes until nothing is left, and that all is as if nothing had been.
    fn settles(&self, what: &str) {
        for _ in 0..4 {
            self.env.wake(&["--once"]).ok();
            if self.env.queued().is_empty() && self.open() == 0 {
                break;
            }
        }
        let sent: Vec<String> = self.telegram.sent().into_iter().map(|message| message.visible).collect();
        let answers: Vec<&String> = sent.iter().filter(|text| text.contains("Kept.")).collect();
        // Whether a message arrived whose end wasn't written down, nobody knows: it is sent once more, and says so.
        let is_marked = |text: &String| text.contains("This may be a repeat");
        assert!(
            !answers.is_empty() && answers.iter().skip(1).all(|text| is_marked(text)) && answers.len() <= 2,
            "{what}: {sent:#?}"
        );
        let facts = self.env.memory(SEMANTIC);
        assert_eq!(facts.matches("Cats purr").count(), 1, "{what}: {facts}");
        assert!(self.env.queued().is_empty() && self.open() == 0, "{what}: something is left");
        let lines = self.env.git(&["log", "-p", "--format=", "--", SEMANTIC]);
        assert_eq!(lines.matches("\n+- Cats purr").count(), 1, "{what}: {lines}");
        // What a lost end of a wake leaves behind, the flag that one works, is the next one's to take over: its process is gone.
        self.env.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(self.env.git(&["status", "--short"]), "", "{what}");
    }

    fn open(&self) -> usize {
        self.env.cycles_in("running").len() + self.env.cycles_in("waiting").len()
    }
}

/// Queues a message in the one database of a server, as its administrator.
fn queue_in(server: &OwnServer) {
    server.ask(&format!("INSERT INTO incoming_messages (chat_id, message_text) VALUES ({CHAT}, 'cats purr')"));
}

/// What became of that message: its row.
fn is_processed_in(server: &OwnServer) -> bool {
    server.ask("SELECT processed FROM incoming_messages WHERE message_text = 'cats purr'") == "1"
}

/// A fact is kept, then that is said, whatever was asked before.
fn think(request: &ClaudeRequest) -> Reply {
    if request.messages.last().is_some_and(|last| last.contains("tool_result")) {
        return Reply::text("Kept.");
    }
    Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Cats purr"}))])
}

/// Cuts at every `every`-th message of a wake that answers one.
fn cut_at_every(every: usize) {
    let Some(url) = postgres::new_database() else { return eprintln!("NOT RUN: PostgreSQL isn't installed here") };
    let ways = TestEnv::new();
    let way = Way::new(&ways.path("w"), &url);
    let calm = Scene::new(&way.url);
    calm.say();
    way.set(None);
    calm.env.wake(&["--once"]).ok();
    let messages = way.set(None);
    calm.settles("undisturbed");
    assert!(messages > 50, "{messages}: the way was passed by");
    for (n, cut) in [Cut::Before, Cut::Answer, Cut::Down].into_iter().enumerate() {
        for at in (1 + n * every / 3..=messages).step_by(every) {
            let Some(url) = postgres::new_database() else { return };
            let way = Way::new(&ways.path(&format!("{n}-{at}")), &url);
            let scene = Scene::new(&way.url);
            scene.say();
            way.set(Some((at, cut)));
            let ran = scene.env.wake(&["--once"]);
            ran.assert_never_tells("panicked");
            way.set(None);
            scene.settles(&format!("{cut:?} at {at} of {messages}"));
        }
    }
}

#[test]
fn a_connection_that_is_cut_loses_nothing_and_doubles_nothing() {
    cut_at_every(EVERY);
}

#[test]
#[ignore = "minutes: every message of a wake; the nightly run takes it"]
fn a_connection_that_is_cut_anywhere_loses_nothing_and_doubles_nothing() {
    cut_at_every(1);
}

#[test]
fn a_server_that_is_killed_or_restarted_in_mid_wake_is_asked_again() {
    for mode in ["immediate", "fast"] {
        let Some(server) = OwnServer::start(OwnServer::place()) else {
            return eprintln!("NOT RUN: PostgreSQL isn't installed here");
        };
        let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
        let mut env = TestEnv::with_telegram(&telegram);
        env.think_with(&claude).set("DATABASE_URL", &server.url());
        env.once();
        queue_in(&server);
        let gate = Gate::default();
        claude.expect(Reply::tools(vec![Block::tool("t1", "remember", json!({"fact": "Cats purr"}))]));
        claude.expect(Reply::text("Kept.").stalled_after(4, &gate));
        let wake = start_wake(&env);
        wait_for_request(&claude, 2);
        assert!(server.stop(mode), "it ran");
        // While it is down: what to do is said, and nothing is made in its place.
        let down = env.wake(&["--once"]);
        down.assert_fails(1, "PostgreSQL");
        assert!(!env.workspace().join("messages.db").exists());
        server.start_again();
        gate.open();
        let ended = wake.end();
        assert_eq!((ended.code, ended.json()["outcome"].as_str()), (0, Some("worked")), "{mode}: {ended:#?}");
        assert_eq!(claude.requests().len(), 2, "{mode}: what was paid for isn't asked for again");
        claude.answer_with(think);
        for _ in 0..3 {
            env.wake(&["--once"]).ok();
        }
        assert!(is_processed_in(&server), "{mode}");
        assert_eq!(env.memory(SEMANTIC).matches("Cats purr").count(), 1, "{mode}");
        let sent: Vec<String> = telegram.sent().into_iter().map(|message| message.visible).collect();
        assert_eq!(sent.iter().filter(|text| text.contains("Kept.")).count(), 1, "{mode}: {sent:#?}");
    }
}

#[test]
fn a_server_whose_disk_is_full_keeps_what_it_has_and_goes_on_with_room() {
    let env = TestEnv::new();
    fs::set_permissions(env.root(), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(small) = Small::mount(&env, "small", 120) else { return };
    let Some(server) = OwnServer::start(PathBuf::from(small.at())) else {
        return eprintln!("NOT RUN: PostgreSQL isn't installed here");
    };
    let (telegram, claude) = (FakeTelegram::start(), FakeClaude::start());
    claude.answer_with(think);
    let mut world = TestEnv::with_telegram(&telegram);
    world.think_with(&claude).set("DATABASE_URL", &server.url());
    world.once();
    queue_in(&server);
    let filler = PathBuf::from(small.at()).join("filler");
    let mut file = fs::File::create(&filler).unwrap();
    while file.write_all(&[7; 1 << 12]).is_ok() {}
    // Some pages may still find room in what it has; then the server has written all of it.
    let mut failed = None;
    for n in 0..200 {
        let ran = world.wake(&["say", &format!("remember that note {n} is here: {}", "long ".repeat(2_000))]);
        if ran.code != 0 {
            failed = Some(ran);
            break;
        }
    }
    let failed = failed.expect("a disk without room");
    failed.assert_fails(1, "stored");
    drop(file);
    fs::remove_file(&filler).unwrap();
    // One that can't write its log ends itself.
    if !server.stop("fast") {
        server.stop("immediate");
    }
    server.start_again();
    for _ in 0..3 {
        world.wake(&["--once"]).ok();
    }
    assert!(is_processed_in(&server));
    assert_eq!(world.memory(SEMANTIC).matches("Cats purr").count(), 1);
    drop(server);
}
