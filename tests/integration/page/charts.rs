//! Charts: the numbers of the database, drawn, and the same as tables.

use super::{ServedPage, TestEnv};

/// Cycles of so many days ago, each with a request that took its turn so many milliseconds.
fn worked(env: &TestEnv, day: u32, state: &str, model: &str, usd: f64, took_ms: &[u32]) {
    for (at, took_ms) in took_ms.iter().enumerate() {
        let id = format!("202611{day:02}T12{at:02}00Z-1");
        let asked = format!("2026-11-{day:02}T12:{at:02}:00.000Z");
        let came = format!("2026-11-{day:02}T12:{at:02}:{:02}.{:03}Z", took_ms / 1_000, took_ms % 1_000);
        env.put_cycle(&id, state, model, &asked);
        env.put_request(&id, model, usd, &asked, &came);
    }
}

#[test]
fn a_day_is_drawn_by_its_cost_tokens_latency_and_wakes() {
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    worked(&env, 20, "done", "claude<x>", 0.25, &[100, 200, 300, 9_000]);
    worked(&env, 21, "abandoned", "cheap", 0.01, &[1_500]);
    let page = ServedPage::open(&env);
    let html = page.get("/charts").ok();
    for part in [
        "<title>20 Nov, claude&lt;x&gt;: $1.00</title>",
        "<tr><th scope=\"row\">20 Nov</th><td>$1.00</td><td>$0.00</td></tr>",
        "<tr><th scope=\"row\">20 Nov</th><td>400</td><td>3600</td><td>80</td></tr>",
        "<title>20 Nov, half took at most: 200 ms</title>",
        "<title>20 Nov, 19 of 20 took at most: 9.0 s</title>",
        "<title>21 Nov, half took at most: 1.5 s</title>",
        "<tr><th scope=\"row\">20 Nov</th><td>4</td><td>0</td><td>0</td><td>0</td></tr>",
        "<tr><th scope=\"row\">21 Nov</th><td>0</td><td>0</td><td>1</td><td>0</td></tr>",
        "5 wakes, 1 of them failed or given up.",
        "Today: $0.0100 of $5.00, $4.99 left.",
        "November: $1.01.",
        "It's too early to forecast November",
        "5 turns, from the request",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(!html.contains("style="), "the guard forbids it: {html}");
    // A week back there was nothing else; what isn't a stretch is the usual one.
    assert!(page.get("/charts?days=7").ok().contains("aria-current=\"true\">7 days"));
    assert!(page.get("/charts?days=8000000").ok().contains("aria-current=\"true\">30 days"));
}

#[test]
fn a_day_is_the_persons_and_not_the_clocks() {
    let mut env = TestEnv::new();
    env.wake(&["--once"]).ok();
    // Midnight of the 20th is at 18:15 there, where it is 00:00.
    env.set("TIMEZONE", "Asia/Kathmandu");
    for (at, usd) in
        [("2026-11-19T18:14:59.999Z", 1.0), ("2026-11-19T18:15:00.000Z", 2.0), ("2026-11-20T18:14:59.999Z", 4.0)]
    {
        env.spend(at, usd);
    }
    let html = ServedPage::open(&env).get("/charts?days=7").ok();
    for part in ["19 Nov, m: $1.00", "20 Nov, m: $6.00"] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn without_any_work_it_says_what_will_be_drawn() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    assert!(page.get("/charts").ok().contains("I did nothing in the last 30 days."));
    env.wake(&["--once"]).ok();
    let html = page.get("/charts?days=90").ok();
    assert!(html.contains("appear here, day by day") && !html.contains("<svg class=\"chart\""), "{html}");
}
