//! A world in the form of a workspace: documents in the work tree, messages in the database, and the index of both.

use rusqlite::Connection;
use std::{collections::BTreeMap, path::Path};

use reveille_base::zone::Tz;
use reveille_index::{Index, Sources};
use reveille_store::Store;

use super::worlds::{Evidence, World};

/// A chunk of the index, which the plain methods search too.
pub(crate) struct Piece {
    pub(crate) path: String,
    pub(crate) text: String,
    /// The text the index has embedded.
    pub(crate) embedded: String,
}

/// A world that can be searched.
pub(crate) struct Filled {
    pub(crate) index: Index,
    pub(crate) pieces: Vec<Piece>,
    /// The path of each turn.
    pub(crate) turns: Vec<String>,
}

/// Fills a workspace's files and tables, and indexes them.
pub(crate) fn fill(worlds: &[&World], workspace: &Path) -> Filled {
    let brain = workspace.join("brain");
    let mut turns = Vec::new();
    for world in worlds {
        for (path, text) in &world.documents {
            let path = if worlds.len() == 1 {
                brain.join(path)
            } else {
                brain.join(path.replace("memory/", &format!("memory/{}/", turns.len())))
            };
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        turns.extend(store(world, &workspace.join("messages.db")));
    }
    let mut index = Index::open(&workspace.join("index.db")).unwrap();
    refresh(&mut index, workspace);
    let pieces = pieces(&mut index, &workspace.join("index.db"));
    Filled { index, pieces, turns }
}

/// Brings the index up to date and returns the number of entries written.
pub(crate) fn refresh(index: &mut Index, workspace: &Path) -> usize {
    let store = Store::open(&workspace.join("messages.db")).unwrap();
    let sources = Sources { brain: &workspace.join("brain"), store: Some(&store), zone: Tz::UTC };
    index.refresh(&sources, None).unwrap().added
}

/// Stores the rows of a world's turns as after their answers, and returns the path of each.
pub(crate) fn store(world: &World, database: &Path) -> Vec<String> {
    drop(Store::open(database).unwrap());
    let mut conn = Connection::open(database).unwrap();
    let tx = conn.transaction().unwrap();
    let mut paths = Vec::new();
    for turn in &world.turns {
        let at = turn.at.format("%Y-%m-%dT%H:%M:%S.000Z").to_string();
        match &turn.speaker {
            Some(speaker) => {
                tx.prepare_cached(
                    "INSERT INTO incoming_messages (chat_id, message_text, received_at, processed, outcome, processed_at, sender_name)
                     VALUES (?1, ?2, ?3, 1, 'answered', ?3, ?4)",
                )
                .unwrap()
                .execute((turn.chat, &turn.text, &at, speaker))
                .unwrap();
                paths.push(format!("messages/{}", tx.last_insert_rowid()));
            }
            None => {
                tx.prepare_cached("INSERT INTO outgoing_messages (chat_id, message_text, sent_at, created_at) VALUES (?1, ?2, ?3, ?3)")
                    .unwrap()
                    .execute((turn.chat, &turn.text, &at))
                    .unwrap();
                paths.push(format!("answers/{}", tx.last_insert_rowid()));
            }
        }
    }
    tx.commit().unwrap();
    paths
}

fn pieces(index: &mut Index, file: &Path) -> Vec<Piece> {
    let embedded: BTreeMap<i64, String> =
        index.list_unembedded("none", usize::MAX).unwrap().into_iter().map(|(key, text)| (key.0, text)).collect();
    let conn = Connection::open(file).unwrap();
    let mut statement = conn
        .prepare(
            "SELECT CASE WHEN c.message IS NULL THEN d.path WHEN c.kind = 5 THEN 'answers/' || c.message ELSE 'messages/' || c.message END,
                 c.text, c.key FROM chunks c JOIN documents d ON d.id = c.document ORDER BY c.id",
        )
        .unwrap();
    let rows = statement.query_map([], |row| {
        Ok(Piece { path: row.get(0)?, text: row.get(1)?, embedded: embedded[&row.get(2)?].clone() })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

/// Tells whether a hit is an answer's place.
pub(crate) fn holds(filled: &Filled, evidence: &Evidence, path: &str, text: &str) -> bool {
    match evidence {
        Evidence::Turn(at) => filled.turns[*at] == path,
        Evidence::Line { path: document, text: line } => document == path && text.contains(line.as_str()),
    }
}
