//! Every command's text, from a store and a memory as they are.

use reveille_base::{
    clock::{FixedClock, parse_time},
    process::Identity,
    redact::Redactor,
    types::ChatRef,
};
use reveille_channels::telegram::{Me, RawUpdate, Speakers};
use reveille_config::Config;
use reveille_git as repo;
use reveille_git::{Publish, Repo};
use reveille_memory as memory;
use reveille_memory::templates::list_files;
use reveille_store::{
    Batch, Change, CycleEnd, CycleState, Entry, Fence, FencedStore, MessageOutcome, NewCycle, NewIncoming, NewOutgoing,
    Ordered, OutgoingKind, PartOutcome, Pick, StagedFile,
    wake_lock::{LockedWork, WakeLock},
};

use super::*;
use crate::bot::batch;

const ANA: ChatRef = ChatRef::from_telegram(4242);
const BOB: ChatRef = ChatRef::from_telegram(4343);

/// A world of a temporary directory at three in the afternoon in Berlin.
struct Scene {
    config: Config,
    store: Store,
    _dir: tempfile::TempDir,
}

fn now() -> DateTime<Utc> {
    parse_time("2026-11-21T14:00:00Z").unwrap()
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let sources = [
            ("HOME", dir.path().display().to_string()),
            ("WORKSPACE_DIR", dir.path().display().to_string()),
            ("ALLOWED_CHAT_IDS", format!("{ANA},{BOB}")),
        ];
        let sources = sources.map(|(name, value)| (name.to_owned(), value)).into();
        let config = Config::from_sources(&sources, None, Some("Europe/Berlin")).unwrap();
        let store = Store::open(&config.db_path()).unwrap();
        Self { config, store, _dir: dir }
    }

    /// What a chat's person is told, and what is ordered, without its being carried out.
    fn reply(&self, chat: ChatRef, text: &str) -> CommandReply {
        let mut desk = Desk::open(&self.store, &self.config, now()).unwrap();
        desk.answer(&asked(chat, 1, text)).unwrap()
    }

    fn says(&self, text: &str) -> String {
        self.reply(ANA, text).text
    }

    /// The command as the bot carries it out, with its answer.
    fn carry_out(&mut self, chat: ChatRef, update_id: i64, text: &str) -> String {
        let asked = asked(chat, update_id, text);
        let CommandReply { text, order } =
            Desk::open(&self.store, &self.config, now()).unwrap().answer(&asked).unwrap();
        let commands = vec![Ordered { answer: asked.build_answer(99, text.clone()), order, update_id: None }];
        let batch = Batch { bot_id: 99, next_offset: update_id + 1, commands, ..Batch::default() };
        self.store.inbox_mut().accept_batch(&batch, now()).unwrap();
        text
    }

    /// A wake that answered one message of a chat, remembered something and set a reminder.
    fn worked(&mut self, id: &str, chat: ChatRef, commits: bool) -> i64 {
        let message = NewIncoming { chat, text: "remember x".to_owned(), ..NewIncoming::default() };
        let batch = Batch { bot_id: 1, next_offset: 1, messages: vec![message], ..Batch::default() };
        let message = self.store.inbox_mut().accept_batch(&batch, now()).unwrap().stored[0];
        let fence = self.store.take_lease(&Identity::current(), now()).unwrap();
        FencedStore::new(&mut self.store, fence, &FixedClock(now()))
            .cycles_mut()
            .begin_cycle(&cycle(id, chat), &[], &[])
            .unwrap();
        let answered = Entry::Answered { messages: vec![message], receipt: "Answered".to_owned() };
        let done = Change::Done { messages: vec![message], outcome: MessageOutcome::Answered };
        let reply = NewOutgoing { chat, text: "Done.".to_owned(), kind: OutgoingKind::Reply, ..NewOutgoing::default() };
        let file = StagedFile { path: "notes.md".to_owned(), base: None, content: id.to_owned() };
        FencedStore::new(&mut self.store, fence, &FixedClock(now()))
            .journal_mut()
            .record_entry(id, &answered, &[done, Change::Send(reply), Change::File(file)])
            .unwrap();
        let commit = commits.then(|| self.commit(id));
        self.end(fence, id, commit.as_deref());
        message
    }

    fn end(&mut self, fence: Fence, id: &str, commit: Option<&str>) {
        let end = CycleEnd {
            commit_id: commit.or(Some("feedfacefeedfacefeedfacefeedfacefeedface")),
            ..CycleEnd::new(CycleState::Done)
        };
        FencedStore::new(&mut self.store, fence, &FixedClock(now())).cycles_mut().end_cycle(id, &end).unwrap();
    }

    fn commit(&self, id: &str) -> String {
        self.commit_with(id, &[])
    }

    fn commit_with(&self, id: &str, changes: &[repo::FileChange]) -> String {
        let (repo, _) = Repo::open_or_create(&self.config.repo_dir(), None, &list_files(), now()).unwrap();
        let publish = Publish {
            changes,
            message: &format!("Wake: remembered “x”\n\nWake-Id: {id}\n"),
            now: now(),
            merge: &|_, _, person, _, _| person.to_owned(),
            is_secret: &|_| false,
        };
        repo.publish(&publish).unwrap().commit.to_string()
    }
}

fn cycle(id: &str, chat: ChatRef) -> NewCycle {
    NewCycle {
        id: id.to_owned(),
        trigger: "nudge".to_owned(),
        reasons: vec![format!("1 message in chat {chat}")],
        chat: Some(chat),
        thread_id: None,
        model: "m".to_owned(),
        system: "[]".to_owned(),
        tools: "[]".to_owned(),
        work: None,
    }
}

fn asked(chat: ChatRef, update_id: i64, text: &str) -> Asked {
    let update = serde_json::json!({"update_id": update_id, "message": {"message_id": 7, "date": 1_795_000_000, "text": text,
        "from": {"id": chat, "is_bot": false, "first_name": "Ana"},
        "chat": {"id": chat, "type": "private", "first_name": "Ana"}}});
    let update = RawUpdate::parse(serde_json::value::to_raw_value(&update).unwrap()).unwrap();
    let access = Speakers {
        allowed: [ANA.id, BOB.id].into(),
        me: Me { id: 99, first_name: String::new(), username: "reveille_bot".to_owned() },
    };
    let mut reading = batch::parse_batch(99, &[update], &access, &BTreeSet::new(), &Redactor::new([])).unwrap();
    reading.commands.remove(0)
}

#[test]
fn who_is_not_the_owner_is_told_at_once_whose_memory_their_words_are_kept_in() {
    let scene = Scene::new();
    for command in ["/start", "/help"] {
        let said = scene.reply(BOB, command).text;
        assert!(said.contains("in their memory, and may tell them about it"), "{said}");
        assert!(!scene.says(command).contains("their memory"), "the owner's words are the owner's");
    }
}

#[test]
fn before_the_first_wake_each_has_an_answer() {
    let scene = Scene::new();
    let said: Vec<String> = Command::ALL
        .into_iter()
        // The environment of whoever runs the tests is among the settings, and Claude Code may be installed there.
        .filter(|command| !matches!(command, Command::Start | Command::Help | Command::Settings | Command::Model))
        .map(|command| format!("/{}\n{}", command.name(), scene.says(&format!("/{}", command.name()))))
        .collect();
    insta::assert_snapshot!(said.join("\n\n"), @r"
    /status
    - **Idle**.
    - I haven't done anything yet.
    - No messages waiting.
    - All replies delivered.
    - AI model: none (no key), $0.00 of $5.00 used today.

    /tasks
    I haven't written anything down yet.

    /memory
    I haven't written anything down yet.

    /remind
    No reminders are set.

    Say what and when, such as: /remind call Anna tomorrow at 9 · /remind every weekday at 8 stretch

    /jobs
    No jobs yet. To add one, create a file `memory/jobs/<name>.md`.

    /new
    Started afresh: from now on I leave out what we said here before.

    Nothing was deleted, and what I wrote down stays. Ask me about something from before and I'll look it up, or send /memory with a few words.

    /cost
    **Today**: $0.00 of $5.00 (DAILY_BUDGET_USD), $5.00 left
    **November**: $0.00
    No paid model use yet.

    /log
    I haven't done anything yet.

    /undo
    There's nothing to undo: everything saved or set here is already undone, or I only answered. /log lists what I did.

    /retry
    There's nothing to try again: nothing here was undone or given up.

    /rules
    There are no rules. “Always allow this” under a question adds one.

    /stop
    Stopped. New messages and reminders will wait. Send /resume to continue, or /undo to take back what I did last.

    /resume
    I'm not stopped: I work whenever something is due.

    /wake
    Checking now: nothing is due.

    /local
    This chat is now kept off the cloud, until you send /local off. So is everything I do for you unasked. But **no AI model is set up on this machine**, so I only answer the plain sentences that I understand without one (reminders, tasks, facts). I'll keep the rest until you send /local off or add a model here: install Ollama, then set MODEL=openai:NAME and OPENAI_BASE_URL=http://127.0.0.1:11434/v1 (`wake init` helps).

    What was already sent can't be unsent. What I write down from here (facts, tasks, the log) goes into the memory, which cloud models see in other chats. A web search still sends its words out.

    /restart
    Restarting…

    /whoami
    You're Ana (id 4242), my owner. You can use every command, and I may message you here first.
    ");
}

#[test]
fn help_names_every_command() {
    let help = Scene::new().says("/help");
    for entry in Command::menu() {
        assert!(help.contains(&format!("/{}: ", entry.command)), "{help}");
    }
    insta::assert_snapshot!(Scene::new().says("/memroy wifi"), @"I don't know /memroy. Did you mean /memory? /help lists the commands. If it's a message, send it without the slash.");
}

#[test]
fn a_reminder_is_set_once_by_its_update() {
    let mut scene = Scene::new();
    insta::assert_snapshot!(scene.carry_out(ANA, 1, "/remind call Anna tomorrow at 9"), @"Reminder set: call Anna — Sun 22 Nov 2026 at 09:00");
    scene.carry_out(ANA, 1, "/remind call Anna tomorrow at 9");
    assert_eq!(scene.store.reminders().list_reminders().unwrap().len(), 1);
    assert_eq!(scene.store.reminders().list_reminders().unwrap()[0].what.chat, ANA);
    scene.carry_out(ANA, 2, "/remind me every weekday at 8 to stretch");
    insta::assert_snapshot!(scene.says("/remind"), @r"
    1. call Anna — Sun 22 Nov 2026 at 09:00
    2. stretch — every weekday at 08:00, next Mon 23 Nov 2026 at 08:00

    Say what and when, such as: /remind call Anna tomorrow at 9 · /remind every weekday at 8 stretch
    ");
    // Another chat sees its own alone.
    assert!(scene.reply(BOB, "/remind list").text.starts_with("No reminders are set."));
    for unclear in
        ["/remind call Anna", "/remind tomorrow at 9", "/remind what she said", "/remind yesterday at 9 to run"]
    {
        let CommandReply { text, order } = scene.reply(ANA, unclear);
        assert!(order.is_none() && text.contains("set"), "{unclear}: {text}");
    }
}

#[test]
fn a_reply_that_nobody_sends_any_more_is_no_reply_that_waits() {
    let mut scene = Scene::new();
    let notice = NewOutgoing::notice(ANA, "Done.".to_owned());
    scene.store.outbox_mut().plan_message(&notice, now()).unwrap();
    let fence = scene.store.take_lease(&Identity::current(), now()).unwrap();
    for _ in 0..2 {
        FencedStore::new(&mut scene.store, fence, &FixedClock(now())).outbox_mut().recover_outbox().unwrap();
        let claimed =
            scene.store.outbox_mut().claim_part(Pick::default(), &Identity::current(), now()).unwrap().unwrap();
        scene.store.outbox_mut().settle_part(&claimed, &PartOutcome::Unknown("reset".to_owned()), now()).unwrap();
    }
    let status = scene.says("/status");
    assert!(
        status.contains("\n- 1 reply sent twice without Telegram's confirmation; it may have arrived.\n"),
        "{status}"
    );
}

#[test]
fn stop_and_resume_are_carried_out_once_and_known_to_what_follows() {
    let mut scene = Scene::new();
    scene.carry_out(ANA, 1, "/stop");
    let stopped = scene.store.chats().find_stop_order().unwrap().unwrap();
    assert_eq!((stopped.at, stopped.chat), (Some(now()), ANA));
    insta::assert_snapshot!(scene.says("/stop"), @"Already stopped since today 15:00. Send /resume to continue.");
    assert!(scene.says("/status").starts_with("- **Stopped** since today 15:00"));
    assert_eq!(scene.says("/wake"), "Stopped. Send /resume to continue.");
    scene.carry_out(ANA, 2, "/resume");
    assert_eq!(scene.store.chats().find_stop_order().unwrap(), None);
    // The update of the stop comes again: it was carried out.
    scene.carry_out(ANA, 1, "/stop");
    assert_eq!(scene.store.chats().find_stop_order().unwrap(), None);

    let mut desk = Desk::open(&scene.store, &scene.config, now()).unwrap();
    desk.answer(&asked(ANA, 3, "/stop")).unwrap();
    assert!(desk.answer(&asked(BOB, 4, "/resume")).unwrap().order.is_none(), "it is the owner's");
    assert_eq!(desk.answer(&asked(ANA, 5, "/resume")).unwrap().order, Some(Order::Resume { is_owners: true }));
    assert!(desk.answer(&asked(ANA, 6, "/resume")).unwrap().order.is_none());
}

#[test]
fn a_guests_orders_are_for_their_own_chat() {
    let mut scene = Scene::new();
    insta::assert_snapshot!(scene.carry_out(BOB, 1, "/stop"), @"Stopped for this chat. New messages here will wait; reminders still come. Send /resume to continue.");
    let is_stopped = |scene: &Scene, chat| scene.store.chats().is_work_stopped(Some(chat)).unwrap();
    assert!(
        is_stopped(&scene, BOB) && !is_stopped(&scene, ANA) && scene.store.chats().find_stop_order().unwrap().is_none()
    );
    let bob = |scene: &Scene, text: &str| scene.reply(BOB, text).text;
    assert_eq!(bob(&scene, "/stop"), "Already stopped since today 15:00. Send /resume to continue.");
    assert!(bob(&scene, "/status").starts_with("- **Stopped** since today 15:00"));
    assert_eq!(bob(&scene, "/wake"), "Stopped. Send /resume to continue.");
    assert!(!scene.says("/status").contains("Stopped") && scene.says("/wake").starts_with("Checking now"));
    assert!(scene.reply(ANA, "/resume").order.is_none(), "nothing of theirs is stopped");

    // The owner's goes above it, and nobody else lifts that.
    scene.carry_out(ANA, 2, "/stop");
    assert!(bob(&scene, "/stop").starts_with("My owner has stopped me since today 15:00."));
    assert!(scene.carry_out(BOB, 3, "/resume").starts_with("My owner has stopped me."));
    assert!(is_stopped(&scene, BOB) && scene.store.chats().find_stop_order().unwrap().is_some());
    scene.carry_out(ANA, 4, "/resume");
    assert!(!is_stopped(&scene, BOB), "what was their own they have lifted");
    scene.carry_out(BOB, 5, "/stop");
    insta::assert_snapshot!(scene.carry_out(BOB, 6, "/resume"), @"Resuming here, oldest work first.");
    assert!(!is_stopped(&scene, BOB));

    let message = scene.store.inbox_mut().queue_message(ANA, "surprise", now()).unwrap();
    assert_eq!(bob(&scene, "/wake"), "Checking now what waits in this chat.", "message {message} is not theirs");
}

#[test]
fn in_a_group_the_owners_orders_alone_are_for_all() {
    const GROUP: ChatRef = ChatRef::from_telegram(-77);
    let scene = Scene::new();
    let order = |user: ChatRef, text: &str| {
        let mut asked = asked(user, 1, text);
        asked.message.chat = GROUP;
        Desk::open(&scene.store, &scene.config, now()).unwrap().answer(&asked).unwrap().order
    };
    for (who, is_owners) in [(ANA, true), (BOB, false)] {
        assert_eq!(order(who, "/stop"), Some(Order::Stop { is_owners }));
        assert_eq!(order(who, "/wake"), Some(Order::Wake { is_owners }));
    }
}

#[test]
fn a_group_orders_no_model_and_no_restart_though_it_is_the_owners_chat() {
    const GROUP: ChatRef = ChatRef::from_telegram(-77);
    let mut scene = Scene::new();
    scene.config.owner_chat = GROUP;
    for name in ["model", "settings", "restart"] {
        let mut asked = asked(BOB, 1, &format!("/{name}"));
        asked.message.chat = GROUP;
        let reply = Desk::open(&scene.store, &scene.config, now()).unwrap().answer(&asked).unwrap();
        let why = format!("/{name} only works in a private chat, and this is a group. Nothing was done.");
        assert_eq!(reply, CommandReply::from_text(why));
    }
}

#[test]
fn a_choice_of_a_model_waits_for_a_restart_once_the_settings_say_another() {
    let mut scene = Scene::new();
    scene.config.model = "claude-opus-5".to_owned();
    let reply = scene.reply(ANA, "/model claude-haiku-5-5");
    assert_eq!(reply.order, None);
    assert_eq!(
        reply.text,
        "Nothing was chosen: MODEL has changed in the settings since I started. Send /restart first."
    );
}

#[test]
fn wake_promises_no_answer_to_what_is_kept_or_in_hand() {
    let mut scene = Scene::new();
    let message = scene.store.inbox_mut().queue_message(ANA, "why is the sky blue?", now()).unwrap();
    assert_eq!(scene.says("/wake"), "Checking now: 1 message to answer, nothing else due.");
    let fence = scene.store.take_lease(&Identity::current(), now()).unwrap();
    let opening =
        Entry::Said { messages: vec![message], raw: String::new(), handles: Vec::new(), head: None, taint: None };
    FencedStore::new(&mut scene.store, fence, &FixedClock(now()))
        .cycles_mut()
        .begin_cycle(&cycle("c1", ANA), &[opening], &[])
        .unwrap();
    let mut lock = WakeLock::try_acquire(&scene.config.lock_path(), &Identity::current(), now()).unwrap();
    let work = LockedWork { cycle_id: Some("c1"), chat: Some(ANA), ..LockedWork::default() };
    lock.write_holder(&Identity::current(), now(), work).unwrap();
    insta::assert_snapshot!(scene.says("/wake"), @"I'm working now, and I'll check again right after: 1 message to answer, nothing else due.");

    let held = Entry::Worked { ms: 1 };
    let hold = Change::Hold { messages: vec![message], model: "offline".to_owned() };
    FencedStore::new(&mut scene.store, fence, &FixedClock(now()))
        .journal_mut()
        .record_entry("c1", &held, &[hold])
        .unwrap();
    scene.end(fence, "c1", None);
    drop(lock);
    insta::assert_snapshot!(scene.says("/wake"), @"Checking now: nothing is due. 1 message waits for an AI model that can answer it.");
}

#[test]
fn undo_takes_the_last_wake_of_the_chat_and_never_the_same_twice() {
    let mut scene = Scene::new();
    scene.worked("20261121T120000Z-1", ANA, true);
    let id = scene.store.cycles().last_cycle().unwrap().unwrap().commit_id.unwrap();
    scene.worked("20261121T130000Z-1", ANA, false);
    scene.worked("20261121T135000Z-1", BOB, false);
    let wake = |reply: CommandReply| match reply.order {
        Some(Order::Undo { wake }) => wake,
        other => panic!("{other:?}: {}", reply.text),
    };
    assert_eq!(wake(scene.reply(BOB, "/undo")), "20261121T135000Z-1");
    assert_eq!(wake(scene.reply(ANA, "/undo")), "20261121T130000Z-1");
    insta::assert_snapshot!(scene.says("/undo 20261121T1200"), @"Undoing what I did at 15:00: remembered “x”. I'll tell you when it's done.");
    // The owner may take back anything by its id; others what was done for them.
    assert_eq!(wake(scene.reply(ANA, "/undo 20261121T1350")), "20261121T135000Z-1");
    assert!(scene.reply(BOB, "/undo 20261121T1300").order.is_none());
    insta::assert_snapshot!(scene.says("/undo 20261121T1"), @"Several ids begin like that. Please give me more characters. /log lists what I did.");
    assert_eq!(wake(scene.reply(BOB, "/undo 20261121T1")), "20261121T135000Z-1", "the only one of this chat");
    let mut desk = Desk::open(&scene.store, &scene.config, now()).unwrap();
    let twice = [2, 3, 4].map(|id| desk.answer(&asked(ANA, id, "/undo")).unwrap().order);
    assert_eq!(twice[1], Some(Order::Undo { wake: "20261121T120000Z-1".to_owned() }));
    assert_eq!(twice[2], None);
    scene.carry_out(ANA, 5, "/undo");
    assert_eq!(wake(scene.reply(ANA, "/undo")), "20261121T120000Z-1");
    insta::assert_snapshot!(scene.says("/undo 20261121T1300"), @"I'm already going to undo that, as soon as I finish my current work. /log lists what I did.");
    let log = scene.says("/log").replace(&id.chars().take(8).collect::<String>(), "01234567");
    insta::assert_snapshot!(log, @r"
    - today 15:00: 1 message in chat 4343 (feedface) · asked: “remember x”
    - today 15:00: 1 message in chat 4242 (feedface), to be undone · asked: “remember x”
    - today 15:00: remembered “x” (01234567) · asked: “remember x”

    To undo one, send /undo with its id. /log 20 shows more.
    ");
    assert_eq!(scene.reply(BOB, "/log").text.matches("- ").count(), 1);
}

#[test]
fn a_guest_sees_what_their_own_chat_cost_and_nothing_of_the_budget() {
    let mut scene = Scene::new();
    let wakes = [("20261121T120000Z-1", ANA, 1.0), ("20261121T130000Z-1", BOB, 0.25)];
    for (wake, chat, usd) in wakes {
        scene.worked(wake, chat, false);
        let conn = rusqlite::Connection::open(scene.config.db_path()).unwrap();
        conn.execute(
            "INSERT INTO ledger (cycle_id, at, model, input, output, cache_read, cache_write, cost_usd)
             VALUES (?1, '2026-11-21T13:00:00.000Z', 'm', 1, 1, 0, 0, ?2)",
            (wake, usd),
        )
        .unwrap();
    }
    insta::assert_snapshot!(scene.reply(BOB, "/cost").text, @r"
    **Today**: $0.25
    **November**: $0.25
    - m: $0.25; 1 tokens in, 1 out
    ");
    assert!(scene.says("/cost").starts_with("**Today**: $1.25 of $5.00 (DAILY_BUDGET_USD), $3.75 left\n"));
    let log = scene.reply(BOB, "/log").text;
    assert!(log.contains("chat 4343") && !log.contains("4242"), "{log}");
}

#[test]
fn retry_takes_what_was_given_up_here() {
    let mut scene = Scene::new();
    let id = scene.worked("20261121T120000Z-1", ANA, false);
    assert!(scene.reply(ANA, &format!("/retry {id}")).order.is_none(), "it is answered");
    let conn = rusqlite::Connection::open(scene.config.db_path()).unwrap();
    conn.execute("UPDATE incoming_messages SET outcome = 'dead'", []).unwrap();
    assert!(scene.reply(BOB, "/retry").order.is_none());
    assert!(scene.reply(BOB, &format!("/retry {id}")).order.is_none());
    assert_eq!(scene.carry_out(ANA, 1, "/retry"), "Trying 1 message again.");
    assert_eq!(scene.store.inbox().list_queued_messages().unwrap().len(), 1);
    // Answered again meanwhile, and the update comes once more.
    conn.execute("UPDATE incoming_messages SET processed = 1, outcome = 'answered'", []).unwrap();
    scene.carry_out(ANA, 1, "/retry");
    assert_eq!(scene.store.inbox().list_queued_messages().unwrap().len(), 0);
}

#[test]
fn the_memory_is_read_as_it_was_committed() {
    let mut scene = Scene::new();
    scene.worked("20261121T120000Z-1", ANA, true);
    let path = scene.config.repo_dir().join(memory::SEMANTIC_MEMORY);
    std::fs::write(path, "half-way").unwrap();
    assert!(scene.says("/memory").contains("semantic-memory.md"));
    assert_eq!(scene.says("/memory half-way"), "I have no notes about “half-way”.");
    assert!(scene.says("/tasks").starts_with("No tasks."));
}

#[test]
fn the_numbers_of_tasks_are_kept_as_they_were_shown_to_each_chat() {
    let mut scene = Scene::new();
    let change = |path: &str, content: &str| repo::FileChange {
        path: path.to_owned(),
        base: list_files().into_iter().find(|(template, _)| *template == path).map(|(_, text)| text.to_owned()),
        content: Some(content.to_owned()),
    };
    let (active, backlog) = ("## Call Anna\n\n## Old\n- status: done\n\n## Buy milk\n", "## Sail\n");
    scene.commit_with("w", &[change(memory::ACTIVE, active), change(memory::BACKLOG, backlog)]);
    assert!(scene.carry_out(ANA, 1, "/tasks").contains("2. Buy milk\n\n**Waiting** (1):\n3. Sail"));
    let shown = |scene: &Scene, chat: ChatRef| -> Vec<String> {
        scene.store.outbox().shown_tasks(chat).unwrap().into_iter().map(|task| task.title).collect()
    };
    assert_eq!(shown(&scene, ANA), ["Call Anna", "Buy milk", "Sail"]);
    assert_eq!(shown(&scene, BOB), [""; 0]);
    // Of a flood of commands some answers are left out, and have shown nothing.
    scene.commit_with(
        "v",
        &[repo::FileChange {
            path: memory::ACTIVE.to_owned(),
            base: Some(active.to_owned()),
            content: Some("## Other\n".to_owned()),
        }],
    );
    for n in 2..40 {
        scene.carry_out(ANA, n, "/help");
    }
    scene.carry_out(ANA, 40, "/tasks");
    assert_eq!(shown(&scene, ANA), ["Call Anna", "Buy milk", "Sail"]);
}

#[test]
fn another_chat_is_not_told_what_the_owners_said() {
    let mut scene = Scene::new();
    let facts = "## Home\n\n- The safe opens with 1234 <!-- wake w -->\n- The wifi is called attic\n";
    let tasks = "## Surprise for Bob\n- status: active\n";
    let change = |path: &str, content: &str| repo::FileChange {
        path: path.to_owned(),
        base: list_files().into_iter().find(|(template, _)| *template == path).map(|(_, text)| text.to_owned()),
        content: Some(content.to_owned()),
    };
    scene.commit_with("w", &[change(memory::SEMANTIC_MEMORY, facts), change(memory::ACTIVE, tasks)]);
    assert!(scene.says("/memory safe").contains("1234") && scene.says("/tasks").contains("Surprise"));
    let bob = |text: &str| scene.reply(BOB, text).text;
    assert_eq!(bob("/memory safe"), "I have no notes about “safe”.");
    assert!(!bob("/memory wifi").contains("attic"), "a person's own line is the owner's");
    assert!(bob("/tasks").starts_with("No tasks."));
    assert!(!bob("/memory").contains(".md"), "not even which files there are");
    let marked = facts.replace("## Home\n", "## Home\n<!-- for: all -->\n");
    let change = repo::FileChange {
        path: memory::SEMANTIC_MEMORY.to_owned(),
        base: Some(facts.to_owned()),
        content: Some(marked),
    };
    scene.commit_with("v", &[change]);
    let bob = |text: &str| scene.reply(BOB, text).text;
    assert!(bob("/memory wifi").contains("attic") && bob("/memory safe").contains("no notes"));
    let listed = bob("/memory");
    assert!(
        listed.contains("- memory/agent-memory/semantic-memory.md (54 B)") && listed.matches(".md").count() == 1,
        "{listed}"
    );
    scene.worked("20261121T120000Z-1", ANA, false);
    assert!(scene.says("/status").contains("Last: today 15:00, 1 message in chat 4242"));
    assert!(scene.reply(BOB, "/status").text.contains("\n- I haven't done anything yet.\n"), "none was for this chat");
}

#[test]
fn a_chat_is_kept_local_until_that_is_lifted() {
    let mut desk = Scene::new();
    let told = desk.carry_out(ANA, 1, "/local");
    assert!(told.contains("kept off the cloud") && told.contains("no AI model is set up on this machine"), "{told}");
    assert!(desk.store.chats().is_local_chat(ANA).unwrap() && !desk.store.chats().is_local_chat(BOB).unwrap());
    let again = desk.carry_out(ANA, 2, "/local");
    assert!(again.starts_with("This chat is kept off the cloud."), "{again}");
    assert!(desk.carry_out(BOB, 3, "/local off").contains("Nothing was changed"));
    assert!(desk.carry_out(ANA, 4, "/local maybe").contains("nothing was changed"));
    assert!(desk.store.chats().is_local_chat(ANA).unwrap());
    assert!(desk.carry_out(ANA, 5, "/local off").contains("what was said here in the meantime"));
    assert!(desk.store.chats().local_chats().unwrap().is_empty());
}
