//! Settings on the page: as they are now, where each comes from, and no secret.

use super::{ServedPage, TestEnv};
use crate::support::telegram::{FakeTelegram, TOKEN};

#[test]
fn the_settings_are_shown_with_where_they_come_from_and_no_secret() {
    let telegram = FakeTelegram::start();
    let mut env = TestEnv::with_telegram(&telegram);
    let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    env.wake(&["--once"]).ok();
    let file = env.workspace().join(".env");
    std::fs::write(&file, format!("ANTHROPIC_API_KEY={key}\nMODEL=offline\nREPO_URL=\n")).unwrap();
    env.set("TELL_PER_DAY", "7");
    let page = ServedPage::open(&env);
    let shown = page.get("/settings").ok();
    for told in ["TELL_PER_DAY", "from the environment", "the default", "wake init", "ANTHROPIC_API_KEY", "/.env"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(!shown.contains(key) && !shown.contains(TOKEN) && shown.contains("</code> set "), "{shown}");
    assert!(!shown.contains("Problems") && !shown.contains("Changed since"), "{shown}");
    assert!(!shown.contains("you chose"), "{shown}");
    env.wake(&["say", "/model claude-haiku-5-5"]).ok();
    let shown = page.get("/settings").ok();
    assert!(
        shown.contains("you chose <code>claude-haiku-5-5</code>") && shown.contains("<code>offline</code>"),
        "{shown}"
    );

    std::fs::write(&file, format!("ANTHROPIC_API_KEY={key}\nMODEL=offline\nKEEP_DAYS=many\nDAILY_BUDGET_USD=3\n"))
        .unwrap();
    let shown = page.get("/settings").ok();
    assert!(shown.contains("Problems") && shown.contains("&quot;many&quot;"), "{shown}");
    assert!(shown.contains("Changed since this page was started: DAILY_BUDGET_USD"), "{shown}");
}
