use std::{collections::BTreeMap, os::unix::fs::symlink};

use reveille_base::{clock::parse_time, types::ChatRef};

use crate::look::retention::files::*;

struct Place {
    config: Config,
    store: Store,
    _dir: tempfile::TempDir,
}

fn now() -> DateTime<Utc> {
    parse_time("2026-11-21T14:00:00Z").unwrap()
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("WORKSPACE_DIR".to_owned(), dir.path().display().to_string())]);
        let config = Config::from_sources(&env, None, Some("UTC")).unwrap();
        for made in [config.logs_dir().join("plans"), config.voice_dir()] {
            fs::create_dir_all(made).unwrap();
        }
        let store = Store::open(&config.db_path()).unwrap();
        Self { config, store, _dir: dir }
    }

    /// A file of this size and age in days.
    fn file(&self, name: &str, bytes: usize, days: i64) -> PathBuf {
        let path = self.config.workspace_dir.join(name);
        fs::write(&path, vec![b'x'; bytes]).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified((now() - TimeDelta::days(days)).into()).unwrap();
        path
    }

    fn chores(&self) -> Vec<Chore> {
        list_chores(&self.config, &self.store, now() - TimeDelta::days(30), now()).unwrap()
    }
}

#[test]
fn old_logs_are_emptied_and_their_rotated_files_removed() {
    let place = Place::new();
    let old = place.file("logs/wake.log", 10, 31);
    let rotated = place.file("logs/wake.log.3", 10, 31);
    let beside = place.file("logs/wake.log.old", 10, 31);
    let half = place.file("logs/wake.log.old-new", 10, 31);
    let plan = place.file("logs/plans/plan-x.md", 10, 31);
    for (name, days) in [("logs/bot.log", 29), ("logs/bot.log.1", 29), ("logs/plans/plan-y.md", 29)] {
        place.file(name, 10, days);
    }
    for (name, days) in
        [("logs/notes.txt", 400), ("logs/mine.log.9", 400), ("logs/plans/mine.txt", 400), ("elsewhere.log", 400)]
    {
        place.file(name, 10, days);
    }
    place.file("logs/empty.log", 0, 400);
    let removed = [rotated, beside, half, plan.clone()].map(Chore::Remove);
    let expected: Vec<Chore> = [Chore::Empty(old.clone())].into_iter().chain(removed).collect();
    assert_eq!(place.chores(), expected);
    // A writer that holds the file open keeps appending to it.
    let mut appender = OpenOptions::new().append(true).open(&old).unwrap();
    for chore in expected {
        chore.run().unwrap();
    }
    appender.write_all(b"still here\n").unwrap();
    assert_eq!(fs::read(&old).unwrap(), b"still here\n");
    assert!(!plan.exists());
    assert_eq!(place.chores(), []);
}

#[test]
fn a_long_log_keeps_its_end_beside_it_and_begins_anew() {
    let place = Place::new();
    assert!(place.file("logs/short.log", LOG_BYTES as usize, 0).exists());
    let path = place.file("logs/bot.log", 0, 0);
    let mut appender = OpenOptions::new().append(true).open(&path).unwrap();
    let lines: String = (0..LOG_BYTES / 16 + 1).map(|n| format!("line {n:010}\n")).collect();
    appender.write_all(lines.as_bytes()).unwrap();
    assert_eq!(place.chores(), [Chore::Cut(path.clone())]);
    place.chores()[0].run().unwrap();
    appender.write_all(b"after\n").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"after\n");
    let kept = fs::read_to_string(add_ending(&path, ".old")).unwrap();
    assert!(lines.ends_with(&kept) && kept.starts_with("line "), "{} bytes", kept.len());
    assert!(kept.len() as u64 > TAIL_BYTES - 32 && kept.len() as u64 <= TAIL_BYTES);
    assert_eq!(place.chores(), []);
}

#[test]
fn a_voice_file_stays_as_long_as_its_message_and_some_days_longer() {
    let mut place = Place::new();
    let old = place.file("voice/7-1.ogg", 10, 8);
    place.file("voice/7-2.ogg", 10, 6);
    assert_eq!(place.chores(), [Chore::Remove(old.clone())]);
    // A message older than the file may be the one the file belongs to.
    let id = place
        .store
        .inbox_mut()
        .queue_message(ChatRef::from_telegram(7), "a voice message", now() - TimeDelta::days(8))
        .unwrap();
    assert_eq!(place.chores(), []);
    // A later message that names the file.
    place.store.inbox_mut().discard_message(id, now()).unwrap();
    let id = place.store.inbox_mut().queue_message(ChatRef::from_telegram(7), "voice: 7-1.ogg", now()).unwrap();
    assert_eq!(place.chores(), []);
    // A discarded message can still be restored.
    place.store.inbox_mut().discard_message(id, now()).unwrap();
    assert_eq!(place.chores(), []);
    let conn = rusqlite::Connection::open(place.store.path()).unwrap();
    conn.execute("UPDATE incoming_messages SET outcome = 'answered'", []).unwrap();
    assert_eq!(place.chores(), [Chore::Remove(old)]);
    conn.execute("INSERT INTO incoming_messages (chat_id, message_text, received_at) VALUES (7, 'x', 'once')", [])
        .unwrap();
    assert_eq!(place.chores(), []);
}

#[test]
fn links_and_directories_are_left_alone() {
    let place = Place::new();
    let outside = place.file("outside.ogg", 10, 400);
    symlink(&outside, place.config.voice_dir().join("link.ogg")).unwrap();
    fs::create_dir(place.config.voice_dir().join("dir.ogg")).unwrap();
    fs::remove_dir_all(place.config.logs_dir()).unwrap();
    let elsewhere = place.config.workspace_dir.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    place.file("elsewhere/person.log", 10, 400);
    symlink(&elsewhere, place.config.logs_dir()).unwrap();
    assert_eq!(place.chores(), []);
}

#[test]
fn files_of_messages_go_when_they_are_old_and_nobody_waits_for_them() {
    let mut place = Place::new();
    fs::create_dir(place.config.files_dir()).unwrap();
    let (old, named) = (place.file("files/1.txt", 10, 31), place.file("files/2.txt", 10, 31));
    place.file("files/3.txt", 10, 29);
    let message = reveille_store::NewIncoming {
        chat: ChatRef::from_telegram(7),
        text: "[file]".to_owned(),
        update_id: Some(1),
        attachments: vec![reveille_store::NewAttachment { kind: "document".to_owned(), ..Default::default() }],
        ..Default::default()
    };
    let batch = reveille_store::Batch { bot_id: 99, next_offset: 2, messages: vec![message], ..Default::default() };
    place.store.inbox_mut().accept_batch(&batch, now()).unwrap();
    let file = place.store.attachments().find_next_wanted_file(now()).unwrap().unwrap();
    place.store.attachments_mut().record_kept_file(file.id, "files/2.txt", 10, now()).unwrap();
    assert_eq!(place.chores(), [Chore::Remove(old)]);
    assert_eq!(Chore::Remove(named).find_file_to_remove(&place.config.workspace_dir).as_deref(), Some("files/2.txt"));
}
