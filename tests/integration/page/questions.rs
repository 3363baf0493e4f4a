//! Questions on the page: shown to the byte, and answered for exactly what was shown.

use serde_json::json;

use super::{Answered, ServedPage, TestEnv};
use crate::{
    approvals::{asked, state},
    support::story::with_claude,
    support::{
        claude::{Block, Reply},
        env::{NOW, eventually},
    },
};

/// A hidden field's value of the first form.
#[track_caller]
fn digest(html: &str) -> String {
    let from = html.split_once("name=\"digest\" value=\"").unwrap_or_else(|| panic!("no form in {html}")).1;
    from.split('"').next().unwrap().to_owned()
}

fn answer(page: &ServedPage<'_>, answer: &str, digest: &str) -> Answered {
    page.post("/questions/1", &[("answer", answer), ("digest", digest)])
}

#[track_caller]
fn is_refused(answered: &Answered, why: &str, env: &TestEnv, stays: &str) {
    assert_eq!(answered.status, 409, "{answered:#?}");
    assert!(answered.body.contains(why), "{answered:#?}");
    assert_eq!(state(env), stays);
}

/// Waits for the wake that goes on with the work, to its end.
fn goes_on(env: &TestEnv) {
    eventually("the wake has run", || env.cycles_in("done").len() == 1 && !env.is_locked());
}

#[test]
fn a_yes_runs_what_was_shown_and_the_work_goes_on_by_itself() {
    let (_telegram, claude, env) = asked();
    let page = ServedPage::open(&env);
    let open = page.get("/questions").ok();
    for shown in
        ["The wifi code is 1234", "Risk: none known", "You asked me to check before every action.", "Sat", "today"]
    {
        assert!(shown == "Sat" || open.contains(shown), "{shown}: {open}");
    }
    let bytes = env.wake(&["approvals", "bytes", "1"]).ok().stdout;
    assert!(open.contains(&reveille_base::approval_text::hash_action(&bytes)), "{open}");
    assert_eq!(state(&env), "pending", "looking decides nothing");

    claude.expect(Reply::text("It is written down."));
    let said = page.get(&answer(&page, "allow", &digest(&open)).see_other()).ok();
    assert!(said.contains("This was allowed, once."), "{said}");
    goes_on(&env);
    assert!(env.memory("memory/agent-memory/semantic-memory.md").contains("The wifi code is 1234"));
    env.wait_for_end_of_wake();
    env.check_sound();
}

#[test]
fn the_questions_of_one_task_are_answered_together_as_they_were_shown() {
    let (_telegram, claude, mut env) = with_claude();
    env.set("AUTONOMY", "0");
    let add = |id: &str, title: &str| Block::tool(id, "task_add", json!({ "title": title }));
    claude.expect(Reply::tools(vec![add("t1", "Call Anna"), add("t2", "Buy bread")]));
    env.wake(&["say", "please"]).ok();
    let page = ServedPage::open(&env);
    let open = page.get("/questions").ok();
    assert!(open.contains("Call Anna") && open.contains("Buy bread") && open.contains("Allow all of this task once"));
    let shown = open.split_once("name=\"shown\" value=\"").unwrap().1.split('"').next().unwrap();
    let together = |shown: &str| page.post("/questions/together", &[("answer", "allow"), ("shown", shown)]);
    // One that isn't what was read, and none is decided.
    let (first, _) = shown.split_once(' ').unwrap();
    assert_eq!(together(&format!("{first} 2:0")).status, 422);
    assert_eq!(env.approvals_in("pending").len(), 2);

    claude.expect(Reply::text("Both are there."));
    assert_eq!(together(shown).see_other(), "/questions");
    goes_on(&env);
    let active = env.memory("memory/project-memory/active.md");
    assert!(active.contains("Call Anna") && active.contains("Buy bread"), "{active}");
}

#[test]
fn a_no_is_taken_and_stands_below() {
    let (_telegram, claude, env) = asked();
    let page = ServedPage::open(&env);
    claude.expect(Reply::text("Then not."));
    answer(&page, "refuse", &digest(&page.get("/questions").ok())).see_other();
    assert_eq!(state(&env), "denied");
    let after = page.get("/questions").ok();
    assert!(after.contains("No open questions.") && after.contains("This was refused."), "{after}");
    goes_on(&env);
    assert!(!env.memory("memory/agent-memory/semantic-memory.md").contains("1234"));
}

#[test]
fn an_answer_to_something_else_or_too_late_changes_nothing() {
    let (_telegram, _claude, env) = asked();
    {
        let page = ServedPage::open(&env);
        let read = digest(&page.get("/questions").ok());
        is_refused(&answer(&page, "allow", "0"), "has changed since you read it", &env, "pending");
        let action = env.approval().action;
        env.replace_in_actions("1234", "9999");
        is_refused(&answer(&page, "allow", &read), "9999", &env, "pending");
        env.alter_approvals("action", &action);
        assert_eq!(page.post("/questions/1", &[("answer", "perhaps"), ("digest", &read)]).status, 422);
        assert_eq!(page.post("/questions/7", &[("answer", "allow"), ("digest", &read)]).status, 404);
        assert_eq!(page.get("/questions/1").ok().matches("<form").count(), 2);
        assert_eq!(state(&env), "pending");
    }
    let page = ServedPage::open(&env);
    let read = digest(&page.get("/questions").ok());
    for (column, text) in [("state", "denied"), ("decided_at", NOW), ("decided_by", "4242")] {
        env.alter_approvals(column, text);
    }
    is_refused(&answer(&page, "allow", &read), "This was refused.", &env, "denied");
}

#[test]
fn a_question_that_nobody_has_answered_in_time_is_closed() {
    let (_telegram, claude, mut env) = asked();
    claude.answer_with(|_| Reply::text("It was too late."));
    env.at("2027-11-21T14:00:00Z");
    let page = ServedPage::open(&env);
    let late = page.get("/questions/1").ok();
    // The page's own wake may have closed it already.
    let is_late = late.contains("This has expired") || late.contains("Nobody answered in time");
    assert!(is_late && !late.contains("<form"), "{late}");
    assert!(page.get("/questions").ok().contains("No open questions."));
}

#[test]
fn what_is_dangerous_is_shown_once_more_before_it_can_be_allowed() {
    let (_telegram, claude, env) = asked();
    env.alter_approvals("risk", "dangerous");
    let page = ServedPage::open(&env);
    let open = page.get("/questions").ok();
    assert!(open.contains("href=\"/questions/1\"") && !open.contains("value=\"allow\""), "{open}");
    assert_eq!(answer(&page, "allow", &digest(&open)).see_other(), "/questions/1");
    assert_eq!(state(&env), "pending", "not by the first page");

    let again = page.get("/questions/1").ok();
    assert!(again.contains("The wifi code is 1234") && again.contains("value=\"allow\""), "{again}");
    claude.expect(Reply::text("It is written down."));
    let fields = [("answer", "allow"), ("digest", &digest(&again)), ("again", "true")];
    page.post("/questions/1", &fields).see_other();
    assert_eq!(state(&env), "approved");
    goes_on(&env);
}

#[test]
fn nothing_in_an_action_is_hidden_nor_shown_as_html() {
    let (_telegram, _claude, env) = asked();
    let secret = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let action = format!("{{\"command\":\"rm \u{202e}x\u{2063} <script>alert(1)</script> {secret}\"}}");
    env.alter_approvals("action", &action);
    env.alter_approvals("origin", "<b>mail</b>");
    let page = ServedPage::open(&env);
    let open = page.get("/questions").ok();
    for written in [
        "\\u{202e}",
        "\\u{2063}",
        "&lt;script&gt;alert(1)",
        "&lt;b&gt;mail",
        "This may be its author's wish, not yours.",
    ] {
        assert!(open.contains(written), "{written}: {open}");
    }
    for hidden in ["\u{202e}", "\u{2063}", "<script>alert", "<b>", secret] {
        assert!(!open.contains(hidden), "{hidden}: {open}");
    }
}
