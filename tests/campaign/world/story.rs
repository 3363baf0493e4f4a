//! The stories: a world's content before the harm, and the result of an undisturbed run.

use rustix::process::Signal;
use serde_json::json;
use std::cell::Cell;

use reveille_base::{clock, types::ApprovalAnswer};
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
/// A person's addition to [`CONTEXT`] on this machine.
const HERE: &str = "- Ann is away on Fridays\n";

/// A model's answer to a conversation; the same conversation gets the same turn.
type ModelState = fn(&ClaudeRequest) -> Reply;

/// A prepared world, and the result of an undisturbed run.
pub(crate) struct Story {
    program: Program,
    template: TestEnv,
    /// The model, unless the fallback grammar answers.
    mind: Option<ModelState>,
    /// The running conversations with the model.
    histories: Histories,
    /// The person's answer, in the story of a question.
    pub(super) word: Option<Word>,
    /// The messages to the bot, with their chats.
    said: &'static [(i64, &'static str)],
    /// A voice note and a photo come before them.
    pub(super) has_files: bool,
    pub(super) expected: Outcome,
    /// The texts people get.
    pub(super) texts: Vec<String>,
    /// The actions in the log.
    pub(super) log: Vec<String>,
}

impl Story {
    /// A wake with two messages, in a [`lived_in`] world.
    pub(crate) fn wake() -> Self {
        Self::prepared(Program::Wake, Self::busy(), &[], 2)
    }

    /// The same with Claude as the model, which takes its time and answers at length.
    pub(crate) fn talk() -> Self {
        let story = Self::unplayed(Program::Wake, Self::busy(), &[]);
        let story = Self { mind: Some(mind), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 3, "{:?}", story.texts);
        story
    }

    /// The same before a day that `live` plays in it; the number of texts may differ.
    pub(crate) fn day(live: impl Fn(&mut World)) -> Self {
        Self::unplayed(Program::Wake, Self::busy(), &[]).played(live)
    }

    /// The same on a machine that has the queue and must first clone the memory while two messages wait.
    pub(crate) fn moved() -> Self {
        let env = Self::busy();
        // The person's addition is pushed from elsewhere instead.
        let laptop = env.path("laptop");
        append(&laptop.join(CONTEXT), HERE);
        env.git_in(&laptop, &["commit", "-qam", "Before the move"]);
        env.git_in(&laptop, &["push", "-q"]);
        std::fs::remove_dir_all(env.brain()).unwrap();
        Self::prepared(Program::Wake, env, &[], 2)
    }

    /// A wake that undoes an earlier one, which has answered both messages but sent nothing yet.
    pub(crate) fn undo() -> Self {
        let mut env = Self::busy();
        env.wake(&["--once"]).ok();
        let mut store = env.store();
        let wake = store.undos().all_undoable(&[], 1).unwrap().swap_remove(0).0;
        store.inbox_mut().carry_out_order(&Order::Undo { wake }, clock::parse_time(NOW).unwrap()).unwrap();
        drop(store);
        // Requested in the chat, and reported there.
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

    /// The same without a command: the bot sends nothing between storing and confirming.
    pub(crate) fn chat() -> Self {
        const SAID: &[(i64, &str)] =
            &[(CHAT, "remember that the wifi code is 1234"), (CHAT, "remind me to stretch tomorrow at 9")];
        Self::prepared(Program::Bot, Self::lived_in(), SAID, 2)
    }

    /// A bot that fetches a voice note and a photo, and has the note transcribed, before a message for Claude.
    pub(crate) fn files() -> Self {
        const AFTER: &[(i64, &str)] = &[(CHAT, media::SAID)];
        let env = Self::lived_in();
        media::prepare(&env);
        let story = Self::unplayed(Program::Bot, env, AFTER);
        let story = Self { mind: Some(media::mind), has_files: true, ..story }.played(|_| ());
        assert!(story.texts.iter().any(|text| text.contains(media::SHOWN)), "{:?}", story.texts);
        story
    }

    /// A bot with a message for Claude, which plans before it acts.
    pub(crate) fn plan() -> Self {
        const SAID: &[(i64, &str)] = &[(CHAT, media::SAID)];
        let story = Self::unplayed(Program::Bot, Self::lived_in(), SAID);
        let story = Self { mind: Some(media::planning_mind), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 2, "{:?}", story.texts);
        story
    }

    /// A wake whose model has to ask, the person's answer, and the following wake.
    pub(crate) fn asks(word: Word) -> Self {
        let (_telegram, env) = Self::at_rest();
        asks::say(&env);
        let story = Self::unplayed(Program::Asking, env, &[]);
        let story = Self { mind: Some(asks::mind), word: Some(word), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 2, "{:?}", story.texts);
        story
    }

    /// A bot whose wake has to ask a question longer than a message; the person says yes.
    pub(crate) fn asks_at_length() -> Self {
        const SAID: &[(i64, &str)] = &[(CHAT, asks::SAID_AT_LENGTH)];
        let (_telegram, env) = Self::at_rest();
        asks::hold_back(&env);
        let story = Self::unplayed(Program::Bot, env, SAID);
        let story = Self { mind: Some(asks::mind), word: Some(Word::Yes), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 2, "{:?}", story.texts);
        story
    }

    /// The wake after the person's yes.
    pub(crate) fn allowed() -> Self {
        let (_telegram, mut env) = Self::at_rest();
        asks::say(&env);
        let claude = FakeClaude::start();
        claude.answer_with(asks::mind);
        env.think_with(&claude);
        env.wake(&["--once"]).ok();
        let now = clock::parse_time("2026-11-21T14:10:00Z").unwrap();
        assert!(env.store().approvals_mut().decide_approval(1, ApprovalAnswer::Yes, now).unwrap(), "a question waits");
        let story = Self { histories: claude.histories(), ..Self::unplayed(Program::Wake, env, &[]) };
        let story = Self { mind: Some(asks::mind), word: Some(Word::Yes), ..story }.played(|_| ());
        assert_eq!(story.texts.len(), 1, "{:?}", story.texts);
        story
    }

    /// A wake whose command changes files of the person's, and its undo.
    pub(crate) fn changes() -> Self {
        let env = Self::lived_in();
        changes::say(&env);
        let story = Self::unplayed(Program::Changing, env, &[]);
        Self { mind: Some(changes::mind), ..story }.played(|_| ())
    }

    /// A wake with a conversation that reached the maximum of interruptions: it is given up, and its messages are started again.
    pub(crate) fn given_up() -> Self {
        let mut env = Self::busy();
        let claude = FakeClaude::start();
        claude.answer_with(|request| match mind(request) {
            // Both actions are done; the final answer never comes.
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

    /// A wake with two messages whose remote has lost commits.
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

    /// A world with a remote and nothing due.
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

    /// A world with a due reminder, a person's edit here, and a commit pushed from elsewhere.
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

    /// Determines the result of an undisturbed run, after `live`.
    fn played(self, live: impl Fn(&mut World)) -> Self {
        let mut story = self;
        let mut world = story.open();
        live(&mut world);
        world.recover().unwrap();
        story.expected = world.outcome();
        story.texts = world.telegram.sent().into_iter().map(|sent| story.read(&world, &sent.visible)).collect();
        story.log = world.log_lines();
        // The reference for all comparisons must not be empty.
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
        // A model sees commits, so the wake doesn't note them.
        assert_eq!(is_logged("Noted a person's commit: "), is_lived_in && story.mind.is_none(), "{:#?}", story.log);
        let is_done = |message: &String| message == "1 answered" || is_undone && message == "1 undone";
        assert!(story.expected.messages.iter().all(is_done), "{:?}", story.expected);
        assert_eq!(story.expected.people.len(), if is_lived_in { 2 } else { 0 }, "{:?}", story.expected);
        story.check(&world).unwrap();
        story
    }

    /// A text in comparable form, independent of the world's place and the time of a question.
    pub(super) fn read(&self, world: &World, text: &str) -> String {
        let text = text.replace(&world.env.root().display().to_string(), "");
        // Each interruption during the giving up adds one.
        let text = [4, 5].iter().fold(text, |text, n| text.replace(&format!("cut off {n} times"), "cut off 3 times"));
        if self.word.is_some() { timeless(&text) } else { text }
    }

    /// A fresh copy.
    pub(crate) fn open(&self) -> World {
        let telegram = FakeTelegram::start();
        let mut env = self.template.copy();
        env.set("TELEGRAM_API_URL", &telegram.url());
        // A sample would be one more text after the first long answer.
        env.set("TELEGRAM_RICH", "never");
        if self.program == Program::Bot {
            // Beyond the updates the world has already seen.
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

/// A model that remembers, sets a reminder, and then answers at length.
fn mind(request: &ClaudeRequest) -> Reply {
    // The person and the model take turns.
    match request.messages.len() / 2 {
        // A person's commit, which needs no answer.
        _ if !request.messages[0].contains("remind me to stretch") => Reply::text("Seen."),
        0 => {
            let fact = json!({"fact": "the wifi code is 1234"});
            Reply::thinking_then_tool("A fact first.", "toolu_1", "remember", fact)
        }
        // The abandoned wake had set the reminder, and the model is told.
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
