//! Today in a real browser: orders are carried out without leaving the view, by mouse, by keyboard, and without a script.

use serde_json::json;

use super::{
    ServedPage, TestEnv,
    browser::{at, enter},
};
use crate::{
    approvals::asked,
    support::{chromium::Chromium, claude::Reply, env::eventually},
};

const ACTIVE: &str = "memory/project-memory/active.md";

/// Clicks until the form is sent, once: right after a section was renewed, a click there decides nothing.
fn click(browser: &mut Chromium, button: &str) {
    browser.eval(
        "window.posts = 0; window.asked ??= fetch; window.fetch = (...args) => { window.posts += args[1]?.method === 'POST'; \
         return window.asked(...args); }; 0",
    );
    browser.until(&format!("posts > 0 || (document.querySelector({}).click(), posts > 0)", json!(button)));
}

#[test]
fn tasks_are_worked_on_without_leaving_today() {
    let Some(mut browser) = Chromium::start() else { return };
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.eval("window.isTheSame = true; document.querySelector('#task-line').focus()");
    for line in ["tea", "renew passport friday #home"] {
        browser.types(line);
        browser.press("Enter", 13, 0);
        browser.until("document.querySelector('#told').innerText.includes('Added') && !document.querySelector('#task-line').value");
        assert_eq!(browser.eval("document.activeElement.id"), "task-line", "the next one can be typed");
    }
    browser.until("document.querySelector('#told').innerText.includes('Renew passport · Friday 27 November · home')");
    // What can't be understood keeps what was typed.
    browser.types("paint 30 february");
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('#told').innerText.includes('not a day of the calendar')");
    assert_eq!(browser.eval("document.querySelector('#task-line').value"), "paint 30 february");
    browser.eval("document.querySelector('#task-line').value = ''");

    // By keyboard alone: open a task's form, change its day, save; the form closes and the focus stays with the task.
    browser.eval("[...document.querySelectorAll('.tasks summary')][0].focus()");
    browser.press("Enter", 13, 0);
    browser.press("Tab", 9, 0);
    browser.press("Tab", 9, 0);
    browser.types("tomorrow");
    // Others' changes don't take away what is being typed.
    env.wake(&["task", "add", "Shed"]).ok();
    browser.until("document.querySelector('#live-last').innerText.includes('Shed')");
    assert_eq!(browser.eval("document.activeElement.value"), "tomorrow");
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('#told').innerText.includes('is due Sun 22 Nov')");
    browser.until("document.querySelectorAll('.tasks > li').length === 3");
    assert_eq!(browser.eval("document.querySelector('.tasks details[open]')"), json!(null));
    browser.until("document.querySelector('#live-nav').innerText.includes('Today')");

    // Reordered, and undone by the note's own button.
    browser.eval("document.querySelector('[aria-label=\"Down: Tea\"]').closest('details').open = true");
    click(&mut browser, "[aria-label=\"Down: Tea\"]");
    browser.until("document.querySelectorAll('.tasks strong')[1].innerText === 'Tea'");
    click(&mut browser, "#told button");
    browser.until("document.querySelector('#told').innerText.includes('Undoing')");
    browser.until("document.querySelectorAll('.tasks strong')[0].innerText === 'Tea'");
    assert_eq!(browser.eval("window.isTheSame"), true, "it was loaded again");
    assert_eq!(browser.problems().into_iter().filter(|problem| !problem.contains("422")).collect::<Vec<_>>(), [""; 0]);
    assert!(env.memory(ACTIVE).contains("- due: 2026-11-22"));
    page.end();
}

#[test]
fn without_a_script_a_task_is_added_changed_and_finished() {
    let Some(mut browser) = Chromium::start() else { return };
    let env = TestEnv::new();
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    browser.call("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    enter(&mut browser, &page);
    browser.eval("document.querySelector('#task-line').focus()");
    browser.types("renew passport friday");
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('#told').innerText.includes('Renew passport · Friday 27 November')");
    browser.eval("document.querySelector('.tasks summary').click()");
    browser.eval("document.querySelector('.tasks [name=day]').focus()");
    browser.eval("document.querySelector('.tasks [name=day]').value = '2026-12-12'");
    browser.press("Enter", 13, 0);
    browser.until("document.querySelector('.tasks time').innerText === '12 December'");
    browser.eval("document.querySelector('[aria-label=\"Done: Renew passport\"]').click()");
    browser.until("document.body?.innerText.includes('Nothing in hand')");
    assert!(!env.memory(ACTIVE).contains("passport"));
}

#[test]
fn a_dangerous_question_is_shown_once_more_on_today_itself() {
    let Some(mut browser) = Chromium::start() else { return };
    let (_telegram, claude, env) = asked();
    env.alter_approvals("risk", "dangerous");
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    let shown = "document.querySelector('#live-waiting').innerText";
    browser.until(&format!("{shown}.includes('The wifi code is 1234')"));
    assert_eq!(
        browser.eval("document.querySelector('#live-waiting [value=allow]')"),
        json!(null),
        "not at the first look"
    );
    browser.eval("document.querySelector('#live-waiting a.button').click()");
    browser.until(&format!("{shown}.includes('Read again what would run')"));
    assert_eq!(browser.eval("location.pathname"), "/");
    assert_eq!(crate::approvals::state(&env), "pending");
    claude.expect(Reply::text("It is written down."));
    click(&mut browser, "[aria-label=\"Allow once, question 1\"]");
    browser.until("document.querySelector('#told').innerText.includes('Allowed, once.')");
    assert_eq!(browser.eval("location.pathname"), "/");
    assert_eq!(crate::approvals::state(&env), "approved");
    eventually("the work goes on", || env.memory("memory/agent-memory/semantic-memory.md").contains("1234"));
    env.wait_for_end_of_wake();
    assert_eq!(browser.eval(&format!("location.href = {}", json!(at(&page, "/more")))), at(&page, "/more"));
}
