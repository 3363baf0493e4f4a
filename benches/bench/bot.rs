//! An idle bot that holds its long poll: the only part that always runs.

use std::{
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    support::{
        env::{CHAT, TestEnv},
        telegram::FakeTelegram,
    },
    table::{Bound, Row},
};

const BOT: &str = env!("CARGO_BIN_EXE_bot");
/// Idle time before the measurement.
const IDLE: Duration = Duration::from_secs(5);
/// Time allowed until the first request to Telegram.
const START: Duration = Duration::from_secs(30);

/// Updates of an hour with much traffic: texts, commands, voice notes and photos in turn.
const AN_HOURS_UPDATES: usize = 240;
/// A voice note of half a minute, in bytes.
const NOTE_BYTES: usize = 120_000;
/// A photo, in bytes.
const PHOTO_BYTES: usize = 400_000;
/// Time allowed to store, fetch, transcribe and answer everything.
const PATIENCE: Duration = Duration::from_secs(300);
/// Replaces the speech model, which runs in another process anyway.
const TRANSCRIBER: &str = r#"#!/bin/sh
echo '{"text":"remember that tea is in the attic","language":"en","confidence":0.93,"seconds":30.0,"no_speech":0.01,"dropped":[],"is_damaged":false}'
"#;

pub(crate) fn measure(_rounds: usize) -> Vec<Row> {
    let row = |name, mb: Result<f64, String>| Row::alone(name, "MB", mb.map(|mb| vec![mb]), Bound::Max(16.0));
    vec![row("bot, idle memory", idle_mb(0)), row("bot, idle after an hour's traffic", idle_mb(AN_HOURS_UPDATES))]
}

/// Measures the memory of an idle bot after this many updates.
fn idle_mb(updates: usize) -> Result<f64, String> {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    env.wake(&["--once"]).ok();
    let transcriber = env.path("transcriber");
    std::fs::write(&transcriber, TRANSCRIBER).unwrap();
    std::fs::set_permissions(&transcriber, std::fs::Permissions::from_mode(0o700)).unwrap();
    let bot = env.start(BOT, &["run", "--transcriber", &transcriber.display().to_string()]);
    let begun = Instant::now();
    while telegram.calls("getUpdates").is_empty() {
        match resident_bytes(&env, bot.pid()) {
            None if begun.elapsed() > START => return Err("it never polled".to_owned()),
            // A process that has ended has no memory figure.
            None => {
                let ran = bot.end();
                assert_eq!(ran.code, 0, "{ran:#?}");
                return Err("not there yet".to_owned());
            }
            Some(_) if begun.elapsed() > START => return Err("it never polled".to_owned()),
            Some(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    if updates > 0 {
        traffic(&telegram, updates);
        wait_until_done(&telegram, &env)?;
    }
    std::thread::sleep(IDLE);
    resident_bytes(&env, bot.pid()).map(|bytes| bytes / 1e6).ok_or_else(|| "it ended by itself".to_owned())
}

/// Sends an hour's updates, one after the other.
fn traffic(telegram: &FakeTelegram, updates: usize) {
    telegram.keep_file("note", &vec![7; NOTE_BYTES]);
    let photo: Vec<u8> = b"\xff\xd8\xff".iter().copied().chain(std::iter::repeat_n(7, PHOTO_BYTES)).collect();
    telegram.keep_file("photo", &photo);
    for n in 0..updates {
        match n % 4 {
            0 => drop(telegram.push_text(CHAT, CHAT, &format!("remember that box {n} is in the attic"))),
            1 => drop(telegram.push_text(CHAT, CHAT, "/status")),
            2 => {
                let note = json!({"file_id": "note", "file_unique_id": "u", "duration": 30, "mime_type": "audio/ogg"});
                telegram.push_message(CHAT, &json!({ "voice": note }));
            }
            _ => {
                let size = json!({"file_id": "photo", "file_unique_id": "p", "width": 1280, "height": 853});
                telegram.push_message(CHAT, &json!({ "photo": [size] }));
            }
        }
        let begun = Instant::now();
        while telegram.unconfirmed() > 0 && begun.elapsed() < START {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Waits until every file is fetched, every note transcribed, and no wake runs.
fn wait_until_done(telegram: &FakeTelegram, env: &TestEnv) -> Result<(), String> {
    let open = "SELECT (SELECT count(*) FROM attachments WHERE state = 'wanted' OR state = 'kept' AND kind = 'voice')
                + (SELECT count(*) FROM incoming_messages WHERE processed = 0 AND held_for IS NULL)
                + (SELECT is_locked FROM processing_lock)";
    let begun = Instant::now();
    while telegram.unconfirmed() > 0 || env.query::<i64>(open) > 0 {
        if begun.elapsed() > PATIENCE {
            return Err(format!("{} things are open after {PATIENCE:?}", env.query::<i64>(open)));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The resident memory of a process in bytes; `None` once it has ended.
fn resident_bytes(env: &TestEnv, pid: u32) -> Option<f64> {
    let kib = match std::fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => {
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
            line.trim().strip_suffix(" kB")?.trim().to_owned()
        }
        Err(_) => env.run("ps", &["-o", "rss=", "-p", &pid.to_string()]).stdout,
    };
    let kib: f64 = kib.trim().parse().ok()?;
    (kib > 0.0).then_some(kib * 1024.0)
}
