//! Measures the database's write-ahead log while a bot stores messages, a wake writes too, and readers overlap so that one is always
//! active. Under these conditions SQLite itself never restarts its log.

use std::{
    path::Path,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use reveille_base::{clock::FixedClock, clock::parse_time, process::Identity, types::ChatRef};
use reveille_store::{Batch, Entry, FencedStore, NewCycle, NewIncoming, Store, WAL_BOUND_BYTES};

/// Telegram's maximum of updates in one answer.
const MAX_BATCH: u64 = 100;
/// Telegram's longest text, in characters.
const LONGEST_TEXT: usize = 4_096;
/// One of this many messages has the maximum length.
const LONG_ONE_IN: u64 = 20;
/// The number of overlapping readers.
const READERS: u64 = 3;
/// The longest time a reader holds its transaction, in milliseconds.
const LONGEST_READ_MS: u64 = 30;
/// The number of bytes that a turn of the wake writes into the journal.
const TURN_BYTES: usize = 20_000;
const BOT_ID: i64 = 99;

/// The number of messages in trial 0, which the suite runs, and in trial 1.
const MESSAGES: [u64; 2] = [20_000, 1_000_000];

/// Runs the trial of one size.
pub(crate) fn trial(id: u64) -> Result<(), String> {
    let messages = usize::try_from(id).ok().and_then(|id| MESSAGES.get(id)).ok_or("there is no such trial")?;
    let told = stored(*messages, id)?;
    crate::say(&told);
    Ok(())
}

/// Stores this many messages, and returns a summary with the log's largest size.
///
/// # Errors
/// The log exceeded its bound, a message is missing, or a reader or the wake never had its turn.
fn stored(messages: u64, seed: u64) -> Result<String, String> {
    let dir = tempfile::tempdir().map_err(said)?;
    let path = dir.path().join("messages.db");
    let store = Store::open(&path).map_err(said)?;
    let (is_over, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let (reads, turns) = thread::scope(|scope| {
        let (path, is_over) = (&path, &is_over);
        let readers: Vec<_> = (1..=READERS).map(|n| scope.spawn(move || read_on(path, seed ^ n, is_over))).collect();
        let (first, has_begun) = mpsc::channel();
        let wake = scope.spawn(move || work_on(path, is_over, &first));
        // A fast machine could store all messages before the wake gets its first lock, so this waits for the wake. If the wake fails,
        // its channel closes.
        let _ = has_begun.recv();
        let fed = feed(store, messages, seed, &longest);
        is_over.store(true, Ordering::Relaxed);
        fed?;
        let mut reads = Vec::new();
        for reader in readers {
            reads.push(reader.join().map_err(|_| "a reader panicked".to_owned())??);
        }
        let turns = wake.join().map_err(|_| "the wake panicked".to_owned())??;
        Ok::<_, String>((reads, turns))
    })?;
    let longest = longest.into_inner();
    let summary = format!(
        "{messages} messages, {turns} turns of a wake, {} reads: the log was {:.1} MiB at most (bound {} MiB)",
        reads.iter().sum::<u64>(),
        longest as f64 / f64::from(1 << 20),
        WAL_BOUND_BYTES >> 20
    );
    let stored = count(&path)?;
    if messages == 0 || stored != messages || turns == 0 || reads.contains(&0) {
        return Err(format!("{summary}; {stored} messages are stored, reads by reader {reads:?}"));
    }
    if longest > WAL_BOUND_BYTES { Err(summary) } else { Ok(summary) }
}

/// Acts as the bot: stores batches of every size, some with the longest messages, and measures the log after each.
fn feed(mut store: Store, messages: u64, seed: u64, longest: &AtomicU64) -> Result<(), String> {
    let now = parse_time("2026-11-21T14:00:00Z").ok_or("no time")?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut next = 1;
    while next <= messages {
        let end = (next + random.u64(1..=MAX_BATCH)).min(messages + 1);
        let batch = Batch {
            bot_id: BOT_ID,
            next_offset: i64::try_from(end).map_err(said)?,
            messages: (next..end).map(|id| message(id, &mut random)).collect(),
            ..Batch::default()
        };
        store.inbox_mut().accept_batch(&batch, now).map_err(said)?;
        longest.fetch_max(store.log_bytes(), Ordering::Relaxed);
        next = end;
    }
    Ok(())
}

fn message(id: u64, random: &mut fastrand::Rng) -> NewIncoming {
    let chars = if random.u64(0..LONG_ONE_IN) == 0 { LONGEST_TEXT } else { random.usize(1..200) };
    let text: String = std::iter::repeat_with(|| random.char('a'..='ф')).take(chars).collect();
    NewIncoming {
        chat: ChatRef::from_telegram(4_242),
        raw: Some(format!(r#"{{"update_id":{id},"message":{{"from":{{"id":4242}},"text":"{text}"}}}}"#)),
        text,
        kind: "text".to_owned(),
        update_id: i64::try_from(id).ok(),
        ..NewIncoming::default()
    }
}

/// Acts as a wake that records turn after turn, and signals each. Returns the number of turns.
fn work_on(path: &Path, is_over: &AtomicBool, first: &mpsc::Sender<()>) -> Result<u64, String> {
    let now = parse_time("2026-11-21T14:00:00Z").ok_or("no time")?;
    let mut store = Store::open(path).map_err(said)?;
    let fence = store.take_lease(&Identity::current(), now).map_err(said)?;
    let cycle = NewCycle {
        id: "20261121T140000Z-1".to_owned(),
        trigger: "nudge".to_owned(),
        reasons: Vec::new(),
        chat: None,
        thread_id: None,
        model: "offline".to_owned(),
        system: "[]".to_owned(),
        tools: "[]".to_owned(),
        work: None,
    };
    FencedStore::new(&mut store, fence, &FixedClock(now)).cycles_mut().begin_cycle(&cycle, &[], &[]).map_err(said)?;
    let entry =
        Entry::Said { raw: "x".repeat(TURN_BYTES), messages: Vec::new(), handles: Vec::new(), head: None, taint: None };
    let mut turns = 0;
    while !is_over.load(Ordering::Relaxed) {
        FencedStore::new(&mut store, fence, &FixedClock(now))
            .journal_mut()
            .record_entry(&cycle.id, &entry, &[])
            .map_err(said)?;
        turns += 1;
        let _ = first.send(());
        // A model takes time to answer.
        thread::sleep(Duration::from_millis(5));
    }
    Ok(turns)
}

/// Acts as a repeated reader that holds each transaction for a while. Returns the number of reads.
fn read_on(path: &Path, seed: u64, is_over: &AtomicBool) -> Result<u64, String> {
    let conn = rusqlite::Connection::open(path).map_err(said)?;
    conn.busy_timeout(Duration::from_secs(10)).map_err(said)?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut reads = 0;
    while !is_over.load(Ordering::Relaxed) {
        conn.execute_batch("BEGIN; SELECT max(id) FROM incoming_messages").map_err(said)?;
        thread::sleep(Duration::from_millis(random.u64(1..=LONGEST_READ_MS)));
        conn.execute_batch("COMMIT").map_err(said)?;
        reads += 1;
    }
    Ok(reads)
}

fn count(path: &Path) -> Result<u64, String> {
    let conn = rusqlite::Connection::open(path).map_err(said)?;
    let n: i64 = conn.query_row("SELECT count(*) FROM incoming_messages", [], |row| row.get(0)).map_err(said)?;
    u64::try_from(n).map_err(said)
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
