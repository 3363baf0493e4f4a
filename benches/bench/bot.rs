//! The bot with nothing to do but hold its long poll: the one part that is always there.

use std::time::{Duration, Instant};

use super::{
    support::{env::TestEnv, telegram::FakeTelegram},
    table::{Bound, Row},
};

const BOT: &str = env!("CARGO_BIN_EXE_bot");
/// How long it idles before it is measured.
const IDLE: Duration = Duration::from_secs(5);
/// How long it may take to ask Telegram for the first time.
const START: Duration = Duration::from_secs(30);

pub(crate) fn measure(_rounds: usize) -> Vec<Row> {
    vec![Row::alone("bot, idle memory", "MB", idle_mb().map(|mb| vec![mb]), Bound::Max(15.0))]
}

fn idle_mb() -> Result<f64, String> {
    let telegram = FakeTelegram::start();
    let env = TestEnv::with_telegram(&telegram);
    env.wake(&["--once"]).ok();
    let bot = env.start(BOT, &["run"]);
    let begun = Instant::now();
    while telegram.calls("getUpdates").is_empty() {
        match resident_bytes(&env, bot.pid()) {
            None if begun.elapsed() > START => return Err("it never polled".to_owned()),
            // A program that is over has no memory left.
            None => {
                let ran = bot.end();
                assert_eq!(ran.code, 0, "{ran:#?}");
                return Err("not there yet".to_owned());
            }
            Some(_) if begun.elapsed() > START => return Err("it never polled".to_owned()),
            Some(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    std::thread::sleep(IDLE);
    resident_bytes(&env, bot.pid()).map(|bytes| bytes / 1e6).ok_or_else(|| "it ended by itself".to_owned())
}

/// What a process holds in memory now; none once it is over.
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
