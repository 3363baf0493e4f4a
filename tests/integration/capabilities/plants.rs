//! A word of its own in every store that holds a person's words: rows as they stand once they are finished, and files.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use reveille_base::clock::parse_time;

use crate::support::env::{CHAT, NOW, TestEnv};

/// When what is planted was written: an hour before now.
const AT: &str = "2026-11-21T13:00:00.000Z";
/// How old files are: older than the oldest message that waits.
const FILES_AGE: Duration = Duration::from_secs(10 * 24 * 3_600);

/// How a word gets into a store. In texts `WORD`, `CHAT`, `AT` and `CYCLE` stand for the word, the chat whose it is, the time, and the id
/// of a cycle of its own.
enum How {
    /// Text at the end of a document of the memory.
    Document(&'static str, &'static str),
    /// Statements.
    Rows(&'static str),
    /// A file of the workspace that says this.
    File(&'static str, &'static str),
    /// A document that was committed and is empty since.
    History,
}

use How::{Document, File, History, Rows};

/// Every store with words, by its name in the table.
const PLANTS: [(&str, How); 42] = [
    ("facts", Document("memory/agent-memory/semantic-memory.md", "\n## WORD\n- The WORD is blue\n")),
    ("the log", Document("memory/agent-memory/episodic-memory.md", "\n## 2026-11-20\n- 10:00 Saw the WORD.\n")),
    ("summaries of days", Document("memory/agent-memory/days/2026-11.md", "## 2026-11-19\n- The WORD came up.\n")),
    ("archive", Document("memory/agent-memory/archive/2025-11.md", "## 2025-11-19\n- 10:00 The WORD came up.\n")),
    ("notes", Document("memory/agent-memory/working-memory.md", "\nThe WORD is on my mind.\n")),
    ("context", Document("memory/project-memory/context.md", "\nThey care for the WORD.\n")),
    (
        "tasks",
        Document(
            "memory/project-memory/active.md",
            "\n## Paint the WORD\n- status: active\n- touched: 2026-11-20\n",
        ),
    ),
    ("projects", Document("memory/project-memory/garden.md", "# garden\n\n## Goal\nA WORD by spring.\n")),
    ("steps of long tasks", Document("memory/project-memory/plans/photos.md", "# Photos\n\nAll of the WORD.\n")),
    (
        "job files",
        Document("memory/jobs/quiet.md", "---\nwhen: every day at 8\nstatus: paused\n---\nLook at the WORD.\n"),
    ),
    (
        "standing orders and skills",
        Document("skills/tea/SKILL.md", "---\nname: tea\ndescription: How to make WORD\n---\nBoil it.\n"),
    ),
    ("a guest's own memory", Document("memory/chats/5555/working-memory.md", "Bob likes WORD.\n")),
    ("imported documents", Document("memory/imported/notes.md", "# Notes\n\nThe WORD is old.\n")),
    ("other documents", Document("memory/people/anna.md", "# Anna\n\nShe has a WORD.\n")),
    ("the index", Document("memory/agent-memory/semantic-memory.md", "- A second WORD\n")),
    ("history of the memory", History),
    (
        "messages",
        Rows(
            "INSERT INTO incoming_messages (chat_id, message_text, received_at, processed, outcome, processed_at, sender_name)
             VALUES (CHAT, 'the WORD is gone', 'AT', 1, 'answered', 'AT', 'Ann')",
        ),
    ),
    (
        "waiting messages",
        Rows(
            "INSERT INTO incoming_messages (chat_id, message_text, received_at, sender_name, held_for)
             VALUES (77, 'and the WORD?', 'AT', 'Ann', 'claude-sonnet-5-5')",
        ),
    ),
    (
        "answers",
        Rows(
            "INSERT INTO outgoing_messages (id, chat_id, message_text, sent_at, created_at, kind, key)
             VALUES (9001, CHAT, 'The WORD is here.', 'AT', 'AT', 'tell', 'tell/about the WORD');
             INSERT INTO outgoing_parts (outgoing_id, part, html, plain, state, changed_at)
             VALUES (9001, 0, 'The WORD is here.', 'The WORD is here.', 'sent', 'AT')",
        ),
    ),
    (
        "records of files",
        Rows(
            "INSERT INTO incoming_messages (id, chat_id, message_text, received_at, processed, outcome, processed_at)
             VALUES (9003, CHAT, 'a file', 'AT', 1, 'answered', 'AT');
             INSERT INTO attachments (message_id, kind, file_id, name, state)
             VALUES (9003, 'document', 'f', 'WORD.txt', 'ready')",
        ),
    ),
    (
        "journals",
        Rows(
            "INSERT INTO cycles (id, state, trigger, reasons, chat_id, model, started_at, ended_at, fence)
             VALUES ('CYCLE', 'done', 'test', '[]', CHAT, 'offline', 'AT', 'AT', 1);
             INSERT INTO cycle_journal (cycle_id, seq, at, kind, body)
             VALUES ('CYCLE', 1, 'AT', 'noted', '{\"kind\":\"noted\",\"text\":\"WORD\"}')",
        ),
    ),
    (
        "questions",
        Rows(
            "INSERT INTO cycles (id, state, trigger, reasons, chat_id, model, started_at, ended_at, fence)
             VALUES ('CYCLE', 'done', 'test', '[]', CHAT, 'offline', 'AT', 'AT', 1);
             INSERT INTO approvals (cycle_id, call, tool, action, risk, reasons, chat_id, nonce, asked_at, expires_at, state, shown)
             VALUES ('CYCLE', 't1', 'tell', '{\"text\":\"WORD\"}', 'caution', '[]', CHAT, 'n', 'AT', 'AT', 'denied', 'denied')",
        ),
    ),
    (
        "proposals",
        Rows(
            "INSERT INTO cycles (id, state, trigger, reasons, chat_id, model, started_at, ended_at, fence)
             VALUES ('CYCLE', 'done', 'test', '[]', CHAT, 'offline', 'AT', 'AT', 1);
             INSERT INTO proposals (cycle_id, call, title, files, figure, aim, before_total, before_pieces, commit_id, asked_at)
             VALUES ('CYCLE', 't1', 'Ask about WORD', '[]', 'rounds', 'less', 1.0, 1, 'c', 'AT')",
        ),
    ),
    (
        "recordings",
        Rows(
            "INSERT INTO cycles (id, state, trigger, reasons, chat_id, model, started_at, ended_at, fence)
             VALUES ('CYCLE', 'done', 'test', '[]', CHAT, 'offline', 'AT', 'AT', 1);
             INSERT INTO recordings (cycle_id, chat_id, at, request, words, calls, narrative, rounds)
             VALUES ('CYCLE', CHAT, 'AT', 'Put the WORD away', 'away WORD', '[]', 'Did so.', 2)",
        ),
    ),
    (
        "reminders",
        Rows(
            "INSERT INTO reminders (chat_id, text, zone, slot, next_at, state, created_at)
             VALUES (CHAT, 'Feed the WORD', 'Europe/Berlin', '2029-11-21T09:00:00', '2029-11-21T08:00:00Z', 'active', 'AT')",
        ),
    ),
    (
        "past reminders",
        Rows(
            "INSERT INTO reminders (chat_id, text, zone, slot, next_at, state, created_at)
             VALUES (CHAT, 'Feed the WORD', 'Europe/Berlin', '2025-11-21T09:00:00', '2025-11-21T08:00:00Z', 'done', 'AT')",
        ),
    ),
    (
        "nudges",
        Rows(
            "INSERT INTO outgoing_messages (id, chat_id, message_text, sent_at, created_at, kind)
             VALUES (9002, CHAT, 'It rests.', 'AT', 'AT', 'tell');
             INSERT INTO nudges (outgoing_id, task, zone, is_shown) VALUES (9002, 'The WORD', 'Europe/Berlin', 1)",
        ),
    ),
    (
        "runs of jobs",
        Rows(
            "INSERT INTO job_runs (name, slot, started_at, ended_at, state, output)
             VALUES ('gone', '2026-11-21T14:00:00', 'AT', 'AT', 'told', 'The WORD is up.')",
        ),
    ),
    ("the undo line", Rows("INSERT INTO undo_line (chat_id, at, did) VALUES (CHAT, 'AT', 'Added the WORD')")),
    (
        "shown lists",
        Rows(
            "INSERT INTO shown_tasks (chat_id, number, path, title)
             VALUES (CHAT, 7, 'memory/project-memory/active.md', 'The WORD')",
        ),
    ),
    (
        "keys of work done once",
        Rows("INSERT INTO handled (key, at) VALUES ('decay/Paint the WORD/2026-11-10/nudge', 'AT')"),
    ),
    ("files of messages", File("files/note.txt", "WORD")),
    ("voice notes", File("voice/note.oga", "WORD")),
    ("rules", File("policy.toml", "# WORD")),
    ("settings with their secrets", File(".env", "# WORD")),
    ("logs", File("logs/planted.log", "WORD")),
    (
        "copies of changed files",
        File("copies/20261121T130000Z-9/1/before.json", "{\"taken_at\":\"AT\",\"bytes\":9,\"roots\":[],\"of\":\"WORD\"}"),
    ),
    ("scratch", File("scratch/outputs/planted.txt", "WORD")),
    ("lines typed in a terminal", File("chat-history", "WORD")),
    ("the database's copies", File("messages.db.before-upgrade", "WORD")),
    ("a receiver's inbox", File("inbox/planted.json", "WORD")),
    ("purged content", File("purged/20261121T130000Z-planted", "WORD")),
];

/// The stores that a word is planted in.
pub(super) fn names() -> Vec<&'static str> {
    PLANTS.iter().map(|(store, _)| *store).collect()
}

/// Makes a world in which every store holds its own word, and gives these by their stores. What the memory holds is committed, as its
/// person would.
pub(super) fn world_of(env: &TestEnv, chat: i64) -> Vec<(&'static str, String)> {
    env.wake(&["--once"]).ok();
    let mut words = Vec::new();
    for (n, (store, how)) in PLANTS.iter().enumerate() {
        let word = word(n);
        let said = |text: &str| {
            let cycle = format!("20261121T130000Z-9{n:02}");
            let texts = [("WORD", word.as_str()), ("CHAT", &chat.to_string()), ("AT", AT), ("CYCLE", &cycle)];
            texts.iter().fold(text.to_owned(), |text, (stands, what)| text.replace(stands, what))
        };
        match how {
            Document(path, text) => append(env, path, &said(text)),
            Rows(sql) => env.execute(&said(sql)),
            File(path, text) => write(env, path, &said(text)),
            History => history(env, &word),
        }
        words.push((*store, word));
    }
    env.git(&["add", "-A"]);
    env.git(&["commit", "-q", "-m", "By hand"]);
    let head = env.git(&["rev-parse", "HEAD"]);
    env.put_handled("head", &head);
    // Makes the index.
    env.wake(&["memory", "search", "anything"]);
    words
}

/// A word that nothing else holds, and no other word resembles.
fn word(n: usize) -> String {
    let letter = |n: usize| char::from(b'a' + u8::try_from(n % 26).unwrap());
    let (one, other) = (letter(n), letter(n / 26 + 7));
    format!("{one}{one}quag{other}{one}mire{other}{one}")
}

fn append(env: &TestEnv, path: &str, text: &str) {
    let full = env.brain().join(path);
    fs::create_dir_all(full.parent().unwrap()).unwrap();
    let before = fs::read_to_string(full).unwrap_or_default();
    env.write_memory(path, &format!("{before}{text}"));
}

fn history(env: &TestEnv, word: &str) {
    for text in [format!("The {word} is gone since.\n"), "Nothing.\n".to_owned()] {
        env.write_memory("memory/gone.md", &text);
        env.git(&["add", "memory/gone.md"]);
        env.git(&["commit", "-q", "-m", "By hand"]);
    }
}

fn write(env: &TestEnv, path: &str, text: &str) {
    let path = env.workspace().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let at: SystemTime = parse_time(NOW).unwrap().into();
    fs::File::options().write(true).open(&path).unwrap().set_modified(at - FILES_AGE).unwrap();
}

/// Whether the word stands anywhere in what a row of the table says that its store lies in: tables, files and folders of the workspace,
/// and git's history.
pub(super) fn holds(env: &TestEnv, lies_in: &[String], word: &str) -> bool {
    lies_in.iter().any(|place| match place.as_str() {
        "brain/.git/" => env.brain().exists() && env.git(&["log", "--all", "-p", "--format=%B"]).contains(word),
        table if is_table(table) => env.rows_as_text(table).iter().any(|row| row.contains(word)),
        path => files(&env.workspace(), path)
            .iter()
            .any(|file| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).contains(word)),
    })
}

/// Whether a place is a table of the database: what is a path or a file's name has a slash, a dot or a dash.
pub(super) fn is_table(place: &str) -> bool {
    !place.contains(['/', '.', '-', '*'])
}

/// The plain files at a path below the workspace: a file, all of a folder, or those whose names begin so (`name*`).
fn files(workspace: &Path, path: &str) -> Vec<PathBuf> {
    if let Some(begin) = path.strip_suffix('*') {
        let all = fs::read_dir(workspace).into_iter().flatten().flatten();
        return all
            .map(|entry| entry.path())
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(begin))
            .collect();
    }
    let mut found = Vec::new();
    let mut folders = vec![workspace.join(path)];
    while let Some(next) = folders.pop() {
        match fs::read_dir(&next) {
            Ok(entries) => folders.extend(entries.flatten().map(|entry| entry.path())),
            Err(_) if next.is_file() => found.push(next),
            Err(_) => {}
        }
    }
    found
}

/// The chat whose words they are by default.
pub(super) const OWNER: i64 = CHAT;
