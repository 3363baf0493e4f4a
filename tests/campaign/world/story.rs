//! The stories: what a world holds before it is harmed, and what an undisturbed run makes of it.

use rustix::process::Signal;
use serde_json::json;
use std::cell::Cell;

use reveille_base::clock;
use reveille_cycle as cycle;
use reveille_store::Order;

use super::{
    Program, STORY_BEGINS_MIN, Word, World,
    asks::{self, timeless},
    changes,
    check::Outcome,
    files::append,
    media,
};
use crate::support::{
    claude::{Block, ClaudeRequest, FakeClaude, Histories, Reply},
    env::{CHAT, NOW, TestEnv, eventually},
    http::Gate,
    telegram::FakeTelegram,
};

const SEMANTIC: &str = "memory/agent-memory/semantic-memory.md";
const CONTEXT: &str = "memory/project-memory/context.md";
const BACKLOG: &str = "memory/project-memory/backlog.md";
/// What a person has written into [`CONTEXT`] on this machine.
const HERE: &str = "- Ann is away on Fridays\n";

/// What a mind says to a conversation: a conversation that comes again gets the same turn.
type ModelState = fn(&ClaudeRequest) -> Reply;

/// A prepared world, and what an undisturbed run makes of it.
pub(crate) struct Story {
    program: Program,
    template: TestEnv,
    /// The mind, if it isn't the offline one.
    mind: Option<ModelState>,
    /// The conversations that are under way with it.
    histories: Histories,
    /// What the person answers, if the story is that of a question.
    pub(super) word: Option<Word>,
    /// Who said what to the bot.
    said: &'static [(i64, &'static str)],
    /// Whether a voice note and a photo come before that.
    pub(super) has_files: bool,
    pub(super) expected: Outcome,
    /// What people get to read.
    pub(super) texts: Vec<String>,
    /// What the log says was done.
    pub(super) log: Vec<String>,
}

impl Story {
    /// A wake that finds two messages beside all that a [`lived_in`] world has for it.
    pub(crate) fn wake() -> Self {
        Self::prepared(Program::Wake, Self::busy(), &[], 2)
    }

    /// The same with Claude for a mind, which takes its time and answers at length.
    pub(crate) fn talk() -> Self {
        let story = Self::unplayed(Program::Wake, Self::busy(), &[]);
        let story = Self { mind: Some(mind), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 3, "{:?}", story.texts);
        story
    }

    /// The same before a day that `live` plays in it; how many texts its work is told in may differ.
    pub(crate) fn day(live: impl Fn(&mut World)) -> Self {
        Self::unplayed(Program::Wake, Self::busy(), &[]).played(live)
    }

    /// The same on a machine that has the queue and must fetch the memory first: it is cloned while two messages wait.
    pub(crate) fn moved() -> Self {
        let env = Self::busy();
        // What the person wrote here is pushed from elsewhere instead.
        let laptop = env.path("laptop");
        append(&laptop.join(CONTEXT), HERE);
        env.git_in(&laptop, &["commit", "-qam", "Before the move"]);
        env.git_in(&laptop, &["push", "-q"]);
        std::fs::remove_dir_all(env.brain()).unwrap();
        Self::prepared(Program::Wake, env, &[], 2)
    }

    /// A wake that is to undo the one that has answered both messages, of which nothing has been sent yet.
    pub(crate) fn undo() -> Self {
        let mut env = Self::busy();
        env.wake(&["--once"]).ok();
        let mut store = env.store();
        let wake = store.all_undoable(&[], 1).unwrap().swap_remove(0).0;
        store.order(&Order::Undo { wake }, clock::parse_time(NOW).unwrap()).unwrap();
        drop(store);
        // Asked for in the chat, and told there.
        env.execute(&format!("UPDATE undos SET chat_id = {CHAT}"));
        // The deliveries' back-off is over.
        env.at("2026-11-21T14:20:00Z");
        Self::prepared(Program::Wake, env, &[], 2)
    }

    fn busy() -> TestEnv {
        let env = Self::lived_in();
        Self::ask_twice(&env);
        env
    }

    fn ask_twice(env: &TestEnv) {
        env.receive(CHAT, "remember that the wifi code is 1234");
        env.receive(CHAT, "remind me to stretch tomorrow at 9");
    }

    /// A bot that finds two messages, a command and a stranger's words at Telegram, in such a world.
    pub(crate) fn bot() -> Self {
        const SAID: &[(i64, &str)] = &[
            (CHAT, "remember that the wifi code is 1234"),
            (CHAT, "/help"),
            (CHAT + 1, "let me in"),
            (CHAT, "remind me to stretch tomorrow at 9"),
        ];
        Self::prepared(Program::Bot, Self::lived_in(), SAID, 3)
    }

    /// The same without a command: the bot has nothing to send between storing and confirming.
    pub(crate) fn chat() -> Self {
        const SAID: &[(i64, &str)] =
            &[(CHAT, "remember that the wifi code is 1234"), (CHAT, "remind me to stretch tomorrow at 9")];
        Self::prepared(Program::Bot, Self::lived_in(), SAID, 2)
    }

    /// A bot that finds a voice note and a photo, which it fetches and has listened to, before a message for Claude.
    pub(crate) fn files() -> Self {
        const AFTER: &[(i64, &str)] = &[(CHAT, media::SAID)];
        let env = Self::lived_in();
        media::prepare(&env);
        let story = Self::unplayed(Program::Bot, env, AFTER);
        let story = Self { mind: Some(media::mind), has_files: true, ..story }.played(|_| ());
        assert!(story.texts.iter().any(|text| text.contains(media::SHOWN)), "{:?}", story.texts);
        story
    }

    /// A bot that finds a message for Claude, which plans before it acts.
    pub(crate) fn plan() -> Self {
        const SAID: &[(i64, &str)] = &[(CHAT, media::SAID)];
        let story = Self::unplayed(Program::Bot, Self::lived_in(), SAID);
        let story = Self { mind: Some(media::planning_mind), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 2, "{:?}", story.texts);
        story
    }

    /// A wake whose mind has to ask, the person's answer, and the wake that goes on.
    pub(crate) fn asks(word: Word) -> Self {
        let (_telegram, env) = Self::at_rest();
        asks::say(&env);
        let story = Self::unplayed(Program::Asking, env, &[]);
        let story = Self { mind: Some(asks::mind), word: Some(word), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 2, "{:?}", story.texts);
        story
    }

    /// A bot whose wake has to ask, by more than a message holds; the person says yes.
    pub(crate) fn asks_at_length() -> Self {
        const SAID: &[(i64, &str)] = &[(CHAT, asks::SAID_AT_LENGTH)];
        let (_telegram, env) = Self::at_rest();
        asks::hold_back(&env);
        let story = Self::unplayed(Program::Bot, env, SAID);
        let story = Self { mind: Some(asks::mind), word: Some(Word::Yes), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 2, "{:?}", story.texts);
        story
    }

    /// The wake that goes on once the person has said yes.
    pub(crate) fn allowed() -> Self {
        let (_telegram, mut env) = Self::at_rest();
        asks::say(&env);
        let claude = FakeClaude::start();
        claude.answer_with(asks::mind);
        env.think_with(&claude);
        env.wake(&["--once"]).ok();
        let now = clock::parse_time("2026-11-21T14:10:00Z").unwrap();
        assert!(env.store().decide(1, true, now).unwrap(), "a question waits");
        let story = Self { histories: claude.histories(), ..Self::unplayed(Program::Wake, env, &[]) };
        let story = Self { mind: Some(asks::mind), word: Some(Word::Yes), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 1, "{:?}", story.texts);
        story
    }

    /// A wake whose command changes files of the person's, and is undone.
    pub(crate) fn changes() -> Self {
        let env = Self::lived_in();
        changes::say(&env);
        let story = Self::unplayed(Program::Changing, env, &[]);
        Self { mind: Some(changes::mind), ..story }.played(|_| ())
    }

    /// A wake that finds a conversation which was cut off as often as it may be: it is given up, and its messages begun again.
    pub(crate) fn given_up() -> Self {
        let mut env = Self::busy();
        let claude = FakeClaude::start();
        claude.answer_with(|request| match mind(request) {
            // Both things are done; the last word never comes.
            _ if request.messages.len() > 4 => Reply::text("Both").stalled_after(1, &Gate::default()),
            reply => reply,
        });
        env.think_with(&claude);
        let wake = env.start(env!("CARGO_BIN_EXE_wake"), &["--once", "--no-console"]);
        eventually("the mind is asked for its last word", || claude.requests().len() > 2);
        wake.signal(Signal::KILL);
        wake.end();
        env.execute(&format!("UPDATE cycles SET tries = {} WHERE state = 'running'", cycle::MAX_TRIES - 1));
        let story = Self { histories: claude.histories(), ..Self::unplayed(Program::Wake, env, &[]) };
        let story = Self { mind: Some(mind), ..story }.played(|_| ());
        assert!(story.texts.iter().any(|text| text.contains("I gave up my unfinished work")), "{:?}", story.texts);
        assert_eq!(story.expected.kept.len(), 1, "{:?}", story.expected);
        story
    }

    /// A wake with two messages whose remote has lost what it once had.
    pub(crate) fn rewound() -> Self {
        let mut env = Self::lived_in();
        env.wake(&["--once"]).ok();
        let remote = env.path("remote.git");
        let back = env.git(&["rev-parse", "main~1"]);
        env.git_in(&remote, &["update-ref", "refs/heads/main", &back]);
        // A restored backup has no log of it.
        std::fs::remove_file(remote.join("logs/refs/heads/main")).unwrap();
        Self::ask_twice(&env);
        env.at("2026-11-21T14:20:00Z");
        let story = Self::unplayed(Program::Wake, env, &[]).played(|_| ());
        assert!(story.texts.iter().any(|text| text.contains("refs/reveille/rescue/")), "{:?}", story.texts);
        assert_eq!(story.expected.kept.len(), 1, "{:?}", story.expected);
        story
    }

    /// Nothing is due, and there is a remote.
    fn at_rest() -> (FakeTelegram, TestEnv) {
        let telegram = FakeTelegram::start();
        let mut env = TestEnv::with_telegram(&telegram);
        let remote = env.bare_remote("remote.git");
        env.git_in(&remote, &["config", "core.logAllRefUpdates", "true"]);
        env.set("REPO_URL", &remote.display().to_string());
        env.wake(&["--once"]).ok();
        env.at("2026-11-21T14:10:00Z");
        (telegram, env)
    }

    /// A reminder is due, a person has edited a file here and pushed a commit from elsewhere.
    fn lived_in() -> TestEnv {
        let telegram = FakeTelegram::start();
        let mut env = TestEnv::with_telegram(&telegram);
        let remote = env.bare_remote("remote.git");
        env.git_in(&remote, &["config", "core.logAllRefUpdates", "true"]);
        env.set("REPO_URL", &remote.display().to_string());
        env.receive(CHAT, "remind me to water the plants in 5 minutes");
        env.wake(&["--once"]).ok();
        let laptop = env.path("laptop");
        env.git_in(
            env.workspace().as_path(),
            &["clone", "-q", &remote.display().to_string(), &laptop.display().to_string()],
        );
        append(&laptop.join(BACKLOG), "\n## Paint the fence\n- status: waiting\n");
        env.git_in(&laptop, &["commit", "-qam", "From the laptop"]);
        env.git_in(&laptop, &["push", "-q"]);
        append(&env.brain().join(CONTEXT), HERE);
        env.at("2026-11-21T14:10:00Z");
        env
    }

    fn prepared(program: Program, template: TestEnv, said: &'static [(i64, &'static str)], texts: usize) -> Self {
        let story = Self::unplayed(program, template, said).played(|_| ());
        assert_eq!(story.texts.len(), texts, "{:?}", story.texts);
        story
    }

    fn unplayed(program: Program, template: TestEnv, said: &'static [(i64, &'static str)]) -> Self {
        let (expected, texts, log) = (Outcome::default(), Vec::new(), Vec::new());
        let (mind, histories, word) = (None, Histories::default(), None);
        Self { program, template, mind, histories, word, said, has_files: false, expected, texts, log }
    }

    /// Finds out what an undisturbed run leaves, after `live`.
    fn played(self, live: impl Fn(&mut World)) -> Self {
        let mut story = self;
        let mut world = story.open();
        live(&mut world);
        world.recover().unwrap();
        story.expected = world.outcome();
        story.texts = world.telegram.sent().into_iter().map(|sent| story.read(&world, &sent.visible)).collect();
        story.log = world.log_lines();
        // What the rest is compared with is no empty page.
        let memory = &story.expected.memory;
        let is_undone = story.expected.messages.last().is_some_and(|message| message == "1 undone");
        assert_eq!(memory[SEMANTIC].contains("- the wifi code is 1234"), !is_undone, "{memory:#?}");
        let is_lived_in = story.word.is_none();
        assert_eq!(
            memory[BACKLOG].contains("Paint the fence") && memory[CONTEXT].contains("away on Fridays"),
            is_lived_in
        );
        let is_logged = |what: &str| story.log.iter().any(|line| line.starts_with(what));
        assert!(is_logged("Remembered “the wifi code is 1234”"), "{:#?}", story.log);
        assert_eq!(is_logged("Reminded of “"), is_lived_in, "{:#?}", story.log);
        // A mind is shown commits, and has nothing to note of them.
        assert_eq!(is_logged("Noted a person's commit: "), is_lived_in && story.mind.is_none(), "{:#?}", story.log);
        let is_done = |message: &String| message == "1 answered" || is_undone && message == "1 undone";
        assert!(story.expected.messages.iter().all(is_done), "{:?}", story.expected);
        assert_eq!(story.expected.people.len(), if is_lived_in { 2 } else { 0 }, "{:?}", story.expected);
        story.check(&world).unwrap();
        story
    }

    /// A text as it is compared: wherever the world is, and whenever it was asked.
    pub(super) fn read(&self, world: &World, text: &str) -> String {
        let text = text.replace(&world.env.root().display().to_string(), "");
        // Each cut of the giving up is one more.
        let text = [4, 5].iter().fold(text, |text, n| text.replace(&format!("cut off {n} times"), "cut off 3 times"));
        if self.word.is_some() { timeless(&text) } else { text }
    }

    /// A fresh copy.
    pub(crate) fn open(&self) -> World {
        let telegram = FakeTelegram::start();
        let mut env = self.template.copy();
        env.set("TELEGRAM_API_URL", &telegram.url());
        if self.program == Program::Bot {
            // Beyond what the world has seen already.
            telegram.number_updates_from(2_000);
            if self.has_files {
                media::send(&telegram);
            }
            for (chat, text) in self.said {
                telegram.push_text(*chat, *chat, text);
            }
        }
        let claude = self.mind.map(|mind| {
            let claude = FakeClaude::start();
            claude.answer_with(mind).recall(&self.histories);
            env.think_with(&claude);
            claude
        });
        World {
            env,
            telegram,
            claude,
            program: self.program,
            word: self.word,
            minutes: STORY_BEGINS_MIN,
            is_next_day: Cell::new(false),
        }
    }
}

/// A mind that remembers, sets a reminder, and then has much to say.
fn mind(request: &ClaudeRequest) -> Reply {
    // The person and the mind take turns.
    match request.messages.len() / 2 {
        // A person's commit, which nobody waits to hear of.
        _ if !request.messages[0].contains("remind me to stretch") => Reply::text("Seen."),
        0 => {
            let fact = json!({"fact": "the wifi code is 1234"});
            Reply::thinking_then_tool("A fact first.", "toolu_1", "remember", fact)
        }
        // A wake that was given up had set it: the mind is told.
        1 if request.messages[0].contains("not to be done again: Set the reminder") => ending(),
        1 => {
            let reminder = json!({"text": "stretch", "when": "2026-11-22 09:00"});
            Reply::tools(vec![Block::text("And the reminder."), Block::tool("toolu_2", "reminder_set", reminder)])
        }
        _ => ending(),
    }
}

/// An answer in two parts.
fn ending() -> Reply {
    Reply::text(&format!("Both are done. {}", "I have thought about it for long. ".repeat(150).trim_end()))
}
