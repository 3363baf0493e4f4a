//! Tests the index alone: what guests find, marks of untrusted text, vectors, and that a refresh does nothing twice.

use std::path::Path;

use reveille_base::zone::Tz;
use reveille_memory::{EPISODIC_MEMORY, SEMANTIC_MEMORY};

use super::*;

fn docs(docs: &[(&str, &str)]) -> Vec<(String, String)> {
    docs.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn found(index: &mut Index, query: SearchQuery<'_>) -> Vec<(String, usize, bool)> {
    let hits = index.search(&SearchQuery { limit: 10, ..query }).unwrap();
    hits.into_iter()
        .filter(SearchHit::speaks_for_itself)
        .map(|hit| (hit.path.clone(), hit.line, hit.taint.is_some()))
        .collect()
}

fn write(brain: &Path, path: &str, text: &str) {
    let path = brain.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn refresh(index: &mut Index, brain: &Path) -> Refreshed {
    index.refresh(&Sources { brain, store: None, zone: Tz::UTC }, None).unwrap()
}

#[test]
fn a_guest_finds_their_own_and_shared_content_and_the_owner_finds_all_with_marks() {
    let facts = "## Home\n- the party is secret\n- Bob brings the party hats <!-- wake 1 message 2 chat 5 -->\n\n\
                 ## Open\n<!-- for: all -->\n- the party room is open\n\n## Unconfirmed\n- a party for Eve <!-- wake 2 after a page -->\n";
    let all = docs(&[
        (SEMANTIC_MEMORY, facts),
        ("memory/chats/5/context.md", "party of five\n"),
        ("memory/chats/6/context.md", "party of six\n"),
    ]);
    let mut index = Index::open_in_memory().unwrap();
    let mut ask = |reader: Option<i64>| {
        let reader = reader.map(ChatRef::from_telegram);
        let mut hits = index
            .with_documents(&all, OtherDocuments::Hidden, |index| {
                Ok(found(index, SearchQuery { text: "party", reader, ..SearchQuery::default() }))
            })
            .unwrap();
        hits.sort();
        hits
    };
    let hit = |path: &str, line, is_marked| (path.to_owned(), line, is_marked);
    assert_eq!(
        ask(None),
        [
            hit(SEMANTIC_MEMORY, 2, false),
            hit(SEMANTIC_MEMORY, 3, true),
            hit(SEMANTIC_MEMORY, 7, false),
            hit(SEMANTIC_MEMORY, 10, true),
            hit("memory/chats/5/context.md", 1, true),
            hit("memory/chats/6/context.md", 1, true),
        ]
    );
    assert_eq!(
        ask(Some(5)),
        [
            hit(SEMANTIC_MEMORY, 3, false),
            hit(SEMANTIC_MEMORY, 7, false),
            hit("memory/project-memory/context.md", 1, false),
        ]
    );
    assert_eq!(ask(Some(9)), [hit(SEMANTIC_MEMORY, 7, false)]);
}

#[test]
fn a_guest_sees_no_heading_or_line_hidden_from_their_view() {
    let facts = "# Notes\n\n## Family\n### Surgery of Anna\n- Bob drives <!-- wake 1 message 2 chat 5 -->\n";
    let tasks = "## Paint the gate\n- status: active\n- chat: 5\n- note: drives slowly <!-- wake 2 message 3 chat 7 -->\n- why: rust\n";
    let all = docs(&[(SEMANTIC_MEMORY, facts), (reveille_memory::ACTIVE, tasks)]);
    let mut index = Index::open_in_memory().unwrap();
    let mut ask = |text: &str, reader: Option<i64>| {
        let query =
            SearchQuery { text, limit: 10, reader: reader.map(ChatRef::from_telegram), ..SearchQuery::default() };
        index.with_documents(&all, OtherDocuments::Hidden, |index| index.search(&query)).unwrap()
    };
    let shown =
        |hits: &[SearchHit]| hits.iter().map(|hit| format!("{}: {}\n", hit.heading, hit.text)).collect::<String>();
    assert!(shown(&ask("slowly", None)).contains("slowly"));
    for word in ["drives", "surgery", "Notes", "gate", "slowly"] {
        let shown = shown(&ask(word, Some(5)));
        assert!(!shown.contains("Surgery") && !shown.contains("slowly"), "{word}: {shown}");
    }
    assert!(shown(&ask("drives", Some(5))).contains("Bob drives"));
    assert!(ask("surgery", Some(5)).iter().all(|hit| !hit.speaks_for_itself()));
}

#[test]
fn a_guest_learns_no_date_from_a_heading_hidden_from_their_view() {
    let facts =
        "# Notes\n\n## Family\n### Surgery on 2026-05-03\n- Bob drives <!-- wake 1 message 2 chat 5 -->\n- Ann cooks\n";
    let all = docs(&[(SEMANTIC_MEMORY, facts)]);
    let mut index = Index::open_in_memory().unwrap();
    let mut ask = |text: &str, reader: Option<i64>| {
        let query =
            SearchQuery { text, limit: 10, reader: reader.map(ChatRef::from_telegram), ..SearchQuery::default() };
        index.with_documents(&all, OtherDocuments::Hidden, |index| index.search(&query)).unwrap()
    };
    assert_eq!(ask("cooks", None)[0].date, NaiveDate::from_ymd_opt(2026, 5, 3));
    let hits = ask("drives", Some(5));
    assert_eq!((hits.len(), hits[0].date), (1, None));
    assert!(ask("what was on 3 May 2026?", Some(5)).is_empty());
}

#[test]
fn only_changes_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let lines: Vec<String> = (0..200).map(|n| format!("- book {n} is on shelf {}\n", n % 7)).collect();
    write(dir.path(), "memory/books.md", &lines.concat());
    write(dir.path(), "memory/other.md", "- a boat\n");
    assert_eq!(refresh(&mut index, dir.path()).added, 201);
    assert_eq!(refresh(&mut index, dir.path()), Refreshed::default());
    write(dir.path(), "memory/books.md", &format!("- first of all\n{}", lines[1..].concat()));
    assert_eq!(refresh(&mut index, dir.path()), Refreshed { added: 1, removed: 1, is_partial: false });
    write(dir.path(), "memory/books.md", &format!("- first of all\n- more\n{}", lines[1..].concat()));
    assert_eq!(refresh(&mut index, dir.path()), Refreshed { added: 1, removed: 0, is_partial: false });
    let query = SearchQuery { text: "book 199", ..SearchQuery::default() };
    assert_eq!(found(&mut index, query)[0], ("memory/books.md".to_owned(), 201, false));
    let words = index.stats().unwrap().words;
    // The same words as in an index built in one go.
    let mut rebuilt = Index::open_in_memory().unwrap();
    refresh(&mut rebuilt, dir.path());
    assert_eq!(rebuilt.stats().unwrap().words, words);
    assert!(!dir.path().join("index.db.old").exists());
}

#[test]
fn a_cycles_staged_documents_are_found_and_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    write(dir.path(), "memory/a.md", "- a blue boat\n");
    refresh(&mut index, dir.path());
    let query = SearchQuery { text: "boat", ..SearchQuery::default() };
    let staged = docs(&[("memory/a.md", "- a blue car\n"), ("memory/b.md", "- a red boat\n")]);
    let hits = index.with_documents(&staged, OtherDocuments::Shown, |index| Ok(found(index, query))).unwrap();
    assert_eq!(hits, [("memory/b.md".to_owned(), 1, false)]);
    assert_eq!(found(&mut index, query), [("memory/a.md".to_owned(), 1, false)]);
    assert_eq!(index.stats().unwrap().documents, 1);
}

#[test]
fn vectors_find_texts_without_a_common_word_and_only_the_querys_model_counts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.db");
    let mut index = Index::open(&path).unwrap();
    write(dir.path(), "memory/a.md", "- the vessel is blue\n- tea is green\n- the sky is grey\n");
    refresh(&mut index, dir.path());
    let missing = index.list_unembedded("m", 10).unwrap();
    assert_eq!(missing.len(), 3);
    let vector = |text: &str| match text {
        text if text.contains("vessel") => vec![1.0, 0.1, 0.0],
        text if text.contains("tea") => vec![0.0, 1.0, 0.1],
        _ => vec![-1.0, 0.0, 1.0],
    };
    let vectors: Vec<_> = missing.iter().map(|(key, text)| (*key, vector(text))).collect();
    index.put_vectors("m", 3, &vectors).unwrap();
    assert!(index.list_unembedded("m", 10).unwrap().is_empty());
    let ask = |index: &mut Index, model| {
        let vector = Some(QueryVector { model, values: &[2.0, 0.0, 0.0] });
        found(index, SearchQuery { text: "boat", vector, ..SearchQuery::default() })
    };
    assert_eq!(ask(&mut index, "m")[0], ("memory/a.md".to_owned(), 1, false));
    assert!(ask(&mut index, "another").is_empty());
    // Unusable vectors are refused.
    for (dims, values) in [(3, vec![1.0, f32::NAN, 0.0]), (3, vec![1.0]), (2, vec![1.0, 0.0]), (0, vec![])] {
        let kept = index.put_vectors("m", dims, &[(ChunkKey(1), values)]);
        assert!(matches!(kept, Err(IndexError::Vector(_))), "{kept:?}");
    }
    // A new model's vectors are built beside the old ones, and a rebuild keeps all, since they take hours to make.
    assert_eq!(index.list_unembedded("n", 10).unwrap().len(), 3);
    let mut index = index.clear().unwrap();
    assert_eq!(refresh(&mut index, dir.path()).added, 3);
    assert_eq!(ask(&mut index, "m")[0], ("memory/a.md".to_owned(), 1, false));
    assert!(index.list_unembedded("m", 10).unwrap().is_empty());
    index.forget_other_models("n").unwrap();
    assert!(ask(&mut index, "m").is_empty());
}

#[test]
fn splitting_a_large_file_takes_linear_time() {
    let text: String = (0..60_000).map(|n| format!("- line {n} of a long file\n")).collect();
    assert_eq!(chunk::split_document("memory/a.md", &text).len(), 60_000);
    let code = format!("```\n{}```\n", "x\n".repeat(200_000));
    assert!(!chunk::split_document("memory/a.md", &code).is_empty());
    let line = "word ".repeat(400_000);
    assert!(chunk::split_document("memory/a.md", &line).len() > 1_000);
}

/// Creates a store with this many messages.
fn store_with_messages(dir: &Path, messages: usize) -> reveille_store::Store {
    let path = dir.join("messages.db");
    drop(reveille_store::Store::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.execute(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
         INSERT INTO incoming_messages (chat_id, message_text, received_at, processed)
         SELECT 0, 'word ' || i, '2026-11-24T10:00:00Z', 1 FROM n",
        [i64::try_from(messages).unwrap()],
    )
    .unwrap();
    reveille_store::Store::open(&path).unwrap()
}

fn forget_first(dir: &Path, store: &mut reveille_store::Store) {
    let conn = Connection::open(dir.join("messages.db")).unwrap();
    conn.execute("DELETE FROM incoming_messages WHERE id = 1", []).unwrap();
    store.inbox_mut().note_spoken_change().unwrap();
}

#[test]
fn comparing_all_conversations_ends_however_little_time_each_refresh_has() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = store_with_messages(dir.path(), 4_500);
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let mut refresh_once = |store: &reveille_store::Store| {
        let sources = Sources { brain: dir.path(), store: Some(store), zone: Tz::UTC };
        let is_partial = index.refresh(&sources, Some(std::time::Duration::ZERO)).unwrap().is_partial;
        (is_partial, index.stats().unwrap().messages)
    };
    assert_eq!(refresh_once(&store), (true, 2_000));
    // A change between two parts of the first build is noticed, too.
    forget_first(dir.path(), &mut store);
    assert!(refresh_once(&store).0);
    assert!(refresh_once(&store).0);
    assert_eq!(refresh_once(&store), (false, 4_499));
    store.inbox_mut().note_spoken_change().unwrap();
    assert_eq!([refresh_once(&store).0, refresh_once(&store).0, refresh_once(&store).0], [true, true, false]);
}

#[test]
fn a_dead_letter_that_is_edited_is_found_by_its_new_text() {
    use reveille_store::{Batch, NewIncoming, Store};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.db");
    let mut store = Store::open(&path).unwrap();
    let run_sql = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let now = reveille_base::clock::parse_time("2026-11-24T10:00:00Z").unwrap();
    let says = |update, text: &str| NewIncoming {
        chat: ChatRef::from_telegram(7),
        text: text.to_owned(),
        kind: "text".to_owned(),
        sender_id: Some(7),
        channel_message_id: Some(100),
        update_id: Some(update),
        ..NewIncoming::default()
    };
    let edit = |store: &mut Store, update, text: &str| {
        let batch = Batch { bot_id: 1, next_offset: 1, edits: vec![says(update, text)], ..Batch::default() };
        assert_eq!(store.inbox_mut().accept_batch(&batch, now).unwrap().edited, 1);
    };
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let mut words = |store: &Store| -> Vec<&str> {
        index.refresh(&Sources { brain: dir.path(), store: Some(store), zone: Tz::UTC }, None).unwrap();
        let mut all = vec!["zeppelin", "airship", "balloon"];
        all.retain(|text| !found(&mut index, SearchQuery { text, ..SearchQuery::default() }).is_empty());
        all
    };
    let first = Batch { bot_id: 1, next_offset: 1, messages: vec![says(1, "the zeppelin")], ..Batch::default() };
    store.inbox_mut().accept_batch(&first, now).unwrap();
    run_sql("UPDATE incoming_messages SET processed = 1, outcome = 'dead'");
    assert_eq!(words(&store), ["zeppelin"]);
    edit(&mut store, 2, "the airship");
    assert_eq!(words(&store), ["airship"]);
    // The message is retried, and edited while it waits.
    assert!(store.inbox_mut().retry_message(1).unwrap());
    edit(&mut store, 3, "the balloon");
    run_sql("UPDATE incoming_messages SET processed = 1, outcome = 'answered'");
    assert_eq!(words(&store), ["balloon"]);
}

#[test]
fn an_error_that_ends_a_transaction_is_reported_unchanged_and_loses_no_vectors() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "memory/a.md", "- tea is green\n");
    let path = dir.path().join("index.db");
    let place = IndexPlace::new(path.clone(), dir.path().join("messages.db"));
    let mut index = Index::open(&path).unwrap();
    refresh(&mut index, dir.path());
    let (key, _) = index.list_unembedded("m", 1).unwrap().remove(0);
    index.put_vectors("m", 2, &[(key, vec![1.0, 0.0])]).unwrap();
    drop(index);
    let fill_the_disk = |index: &mut Index| {
        index.with_documents(&docs(&[("memory/b.md", "- more\n")]), OtherDocuments::Shown, |index| {
            // As SQLite does when the disk is full.
            index.conn.execute_batch("ROLLBACK")?;
            Err::<(), _>(IndexError::Full)
        })
    };
    let error = place.ask(dir.path(), Tz::UTC, fill_the_disk).unwrap_err();
    assert!(matches!(error, IndexError::Full), "{error}");
    let broken = place.ask(dir.path(), Tz::UTC, |index| Ok(index.conn.execute_batch("SELECT 1 FROM nowhere")?));
    assert!(matches!(broken, Err(IndexError::Sqlite(_))), "{broken:?}");
    let mut is_damaged = true;
    let (models, note) = place
        .ask(dir.path(), Tz::UTC, |index| {
            if std::mem::take(&mut is_damaged) {
                return Err(IndexError::Damaged("a page".to_owned()));
            }
            Ok(index.stats()?.models)
        })
        .unwrap();
    assert!(note.is_some() && models[0].embedded == 1, "{note:?} {models:?}");
}

#[test]
fn vectors_survive_a_new_version_and_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index.db");
    write(dir.path(), "memory/a.md", "- tea is green\n");
    let mut index = Index::open(&path).unwrap();
    refresh(&mut index, dir.path());
    let (key, _) = index.list_unembedded("m", 1).unwrap().remove(0);
    index.put_vectors("m", 2, &[(key, vec![1.0, 0.0])]).unwrap();
    index.conn.pragma_update(None, "user_version", 1).unwrap();
    drop(index);
    let reopened = |was_rebuilt| {
        let mut index = Index::open(&path).unwrap();
        refresh(&mut index, dir.path());
        assert_eq!(index.was_rebuilt(), was_rebuilt);
        let models = index.stats().unwrap().models;
        assert_eq!(models.iter().map(|model| (model.embedded, model.missing)).collect::<Vec<_>>(), [(1, 0)]);
        let vector = Some(QueryVector { model: "m", values: &[1.0, 0.0] });
        let query = SearchQuery { text: "drink", limit: 3, vector, ..SearchQuery::default() };
        assert_eq!(index.search(&query).unwrap().len(), 1);
        assert!(!dir.path().join("index.db.old").exists());
        index
    };
    let index = reopened(true);
    // Killed after the old index was moved aside, and once more after its vectors were copied.
    drop(index.set_aside().unwrap());
    drop(reopened(false));
    std::fs::copy(&path, dir.path().join("index.db.old")).unwrap();
    drop(reopened(false));
}

#[test]
fn a_text_that_replaces_an_embedded_one_is_embedded_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    write(dir.path(), "memory/a.md", "- tea is green\n");
    refresh(&mut index, dir.path());
    let (key, _) = index.list_unembedded("m", 9).unwrap().remove(0);
    index.put_vectors("m", 2, &[(key, vec![1.0, 0.0])]).unwrap();
    assert!(index.list_unembedded("m", 9).unwrap().is_empty());
    write(dir.path(), "memory/a.md", "- the sky is blue\n");
    refresh(&mut index, dir.path());
    assert_eq!(index.list_unembedded("m", 9).unwrap().len(), 1);
}

#[test]
fn only_a_few_of_many_unknown_words_are_compared_by_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let names: Vec<String> = ('a'..='t').map(|letter| format!("{letter}elanie")).collect();
    write(dir.path(), "memory/a.md", &format!("- {}\n", names.join(" ")));
    refresh(&mut index, dir.path());
    let slips: Vec<String> = names.iter().map(|name| name.replace("nie", "niex")).collect();
    let wanted = index.parse_query(&SearchQuery { text: &slips.join(" "), ..SearchQuery::default() }).unwrap();
    assert_eq!(wanted.words.iter().filter(|word| word.stems.len() > 1).count(), 8);
}

#[test]
fn among_many_similar_lines_the_one_with_the_pair_of_words_comes_first() {
    for shelves in [7, 400] {
        let text: String = (0..16_000).map(|n| format!("- book {n} stands on shelf {}\n", n % shelves)).collect();
        let mut index = Index::open_in_memory().unwrap();
        index
            .with_documents(&docs(&[("memory/books.md", &text)]), OtherDocuments::Hidden, |index| {
                for asked in [5, 3, 6, 105, 15_005] {
                    let text = format!("book {asked}");
                    let hits = index.search(&SearchQuery { text: &text, limit: 3, ..SearchQuery::default() })?;
                    assert_eq!(hits[0].line, asked + 1, "{shelves} shelves");
                }
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn a_log_line_that_only_repeats_a_fact_is_left_out_and_an_imported_chat_has_its_title() {
    let facts = "## Notes\n- the plumber is called Joe <!-- wake 20261128T203620Z-1 message 10 -->\n";
    let log = "# Log\n\n## 2026-11-28\n\
               - 21:36 Woke for 1 message from the terminal. <!-- wake 20261128T203620Z-1 own -->\n  Remembered “the plumber is called Joe”\n  Answered 1 message: Remembered: the plumber is cal…\n\
               - 21:40 Woke for 1 message. Finished the task “the plumber is called Joe” <!-- wake 2 own -->\n\
               ## 2026-11-27\n- 08:00 Woke for 1 message. Remembered “the plumber is called Joe” <!-- wake 0 own -->\n";
    let chat = "# Sourdough hydration\n\n## 2025-05-03\n\n**You** (00:30): How wet should the plumber's starter be?\n";
    let imported = "memory/imported/claude/2025-05/2025-05-03-76ecc36ca313.md";
    let all = docs(&[(SEMANTIC_MEMORY, facts), (EPISODIC_MEMORY, log), (imported, chat)]);
    let mut index = Index::open_in_memory().unwrap();
    let query = SearchQuery { text: "plumber", limit: 10, ..SearchQuery::default() };
    let hits = index.with_documents(&all, OtherDocuments::Hidden, |index| index.search(&query)).unwrap();
    let mut lines: Vec<(&str, usize)> = hits.iter().map(|hit| (hit.path.as_str(), hit.line)).collect();
    lines.sort_unstable();
    // The line of an earlier day stays: it tells when the fact was first said.
    assert_eq!(lines, [(EPISODIC_MEMORY, 7), (EPISODIC_MEMORY, 9), (SEMANTIC_MEMORY, 2), (imported, 5)], "{hits:#?}");
    let title = |path: &str| hits.iter().find(|hit| hit.path == path).map(|hit| hit.heading.as_str());
    assert_eq!((title(imported), title(EPISODIC_MEMORY)), (Some("Sourdough hydration"), Some("Log")));
}
