//! Measures a wake with nothing due. Most wakes are like that, so this is the cost of an idle day. The yardstick is `git status`.

use super::{
    measure::{Pair, timed},
    rss,
    support::{env::TestEnv, telegram::FakeTelegram},
    table::{Bound, Row},
};

/// Commits in the repository before the measurement.
const HISTORY: usize = 20;
/// The limit for peak memory, in megabytes. On other systems no linker script groups the functions that run, so more of the program is
/// mapped.
const PEAK_MAX: f64 = if cfg!(all(target_os = "linux", target_env = "gnu")) { 11.0 } else { 16.0 };
const WAKE: &str = env!("CARGO_BIN_EXE_wake");

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    // A running clock, as in real use: a fixed one causes a warning, which would be the only line that an idle wake writes.
    env.unset("REVEILLE_NOW");
    env.wake(&["--once"]).ok();
    for n in 0..HISTORY {
        env.wake(&["--once", "--say", &format!("remember that book {n} stands on shelf {}", n % 7)]).ok();
    }
    assert_eq!(env.once()["outcome"], "idle");
    let wake = || timed(|| drop(env.wake(&["--once"]).ok()));
    let brain = env.brain().display().to_string();
    let status = || timed(|| drop(env.run("git", &["-C", &brain, "status"]).ok()));
    Pair::by_turns(3, wake, status);
    let pair = Pair::by_turns(rounds, wake, status);
    let peaks = (0..rounds.min(10)).map(|_| rss::peak_mb(&env, WAKE, &["--once"])).collect();
    assert!(telegram.calls("sendMessage").is_empty(), "an idle wake says nothing");
    vec![
        Row::pair("idle wake", "git status", pair, Bound::Ratio(2.0)),
        // Most of this memory is pages of the program's file. If the bound is missed without a change that explains it, run
        // scripts/order-code.
        Row::alone("idle wake, peak memory", "MB", Ok(peaks), Bound::Max(PEAK_MAX)),
    ]
}
