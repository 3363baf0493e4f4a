//! Measures storing updates from Telegram: full batches of 100, one transaction each. The yardstick is SQLite's minimum: the same bytes
//! in a table of two columns without an index, with the same durability.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rusqlite::Connection;

use reveille_base::types::ChatRef;
use reveille_store::{Batch, NewIncoming, Store};

use super::{
    measure::{Pair, Spread, timed},
    table::{Bound, Row},
};

/// Telegram's maximum of updates in one answer.
const BATCH: usize = 100;
/// The number of batches stored in one round.
const BATCHES: usize = 10;
const BOT_ID: i64 = 99;

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("messages.db")).unwrap();
    let mut bare = bare(&dir.path().join("bare.db"));
    let now = reveille_base::clock::parse_time(super::support::env::NOW).unwrap();
    let (mut next, mut next_bare) = (0, 0);
    let mut ours = || accept(&mut store, &mut next, now);
    let mut theirs = || insert(&mut bare, &mut next_bare);
    Pair::by_turns(2, &mut ours, &mut theirs);
    let pair = Pair::by_turns(rounds, &mut ours, &mut theirs);
    let rate = |spread: &Spread| {
        let per_second = |ms: f64| (BATCH * BATCHES) as f64 * 1e3 / ms;
        Spread::new([spread.max(), spread.median(), spread.min()].map(per_second).to_vec())
    };
    vec![Row {
        figure: "storing batches of 100",
        unit: "messages/s",
        measured: Ok(rate(&pair.ours)),
        compared: Some(("two bare columns".to_owned(), rate(&pair.theirs))),
        // The ratio compares times, as everywhere: above 1 is slower.
        ratios: Some(pair.ratios),
        bound: Bound::AtLeast(10_000.0),
    }]
}

/// A batch of private messages, as the bot parses them.
fn batch(next: &mut i64) -> Vec<NewIncoming> {
    (0..BATCH)
        .map(|_| {
            *next += 1;
            let n = *next;
            let text = format!("Message {n}: could you remind me to call the plumber about the kitchen tap?");
            NewIncoming {
                chat: ChatRef::from_telegram(4242),
                raw: Some(format!(
                    r#"{{"update_id":{n},"message":{{"message_id":{n},"from":{{"id":4242,"is_bot":false,"first_name":"Ann","language_code":"en"}},"chat":{{"id":4242,"type":"private","first_name":"Ann"}},"date":1795000000,"text":"{text}"}}}}"#
                )),
                text,
                kind: "text".to_owned(),
                sender_id: Some(4242),
                sender_name: Some("Ann".to_owned()),
                channel_message_id: Some(n),
                update_id: Some(n),
                ..NewIncoming::default()
            }
        })
        .collect()
}

fn accept(store: &mut Store, next: &mut i64, now: DateTime<Utc>) -> Duration {
    let batches: Vec<_> = (0..BATCHES)
        .map(|_| Batch { bot_id: BOT_ID, messages: batch(next), next_offset: *next + 1, ..Batch::default() })
        .collect();
    timed(|| {
        for batch in &batches {
            let accepted = store.inbox_mut().accept_batch(batch, now).unwrap();
            assert_eq!(accepted.stored.len(), BATCH);
        }
    })
}

fn bare(path: &std::path::Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.pragma_update(None, "journal_mode", "WAL").unwrap();
    conn.pragma_update(None, "synchronous", "FULL").unwrap();
    conn.pragma_update(None, "fullfsync", true).unwrap();
    conn.execute_batch("CREATE TABLE messages (text TEXT, raw TEXT)").unwrap();
    conn
}

fn insert(conn: &mut Connection, next: &mut i64) -> Duration {
    let batches: Vec<_> = (0..BATCHES).map(|_| batch(next)).collect();
    timed(|| {
        for batch in &batches {
            let tx = conn.transaction().unwrap();
            let mut statement = tx.prepare_cached("INSERT INTO messages (text, raw) VALUES (?1, ?2)").unwrap();
            for message in batch {
                statement.execute((&message.text, &message.raw)).unwrap();
            }
            drop(statement);
            tx.commit().unwrap();
        }
    })
}
