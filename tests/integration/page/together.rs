//! Two pages and Telegram at once, and a model that dies while it writes.

use super::{
    ServedPage, TestEnv, WAKE,
    browser::{at, enter},
};
use crate::support::{
    chromium::Chromium,
    claude::{ClaudeRequest, FakeClaude, Reply},
    env::{CHAT, eventually},
    http::Gate,
    story::{reply, with_claude},
};

/// Names the places of which the last message of a request speaks.
fn name_places(request: &ClaudeRequest) -> Reply {
    let said = request.last_text();
    let heard = ["kitchen", "garden", "street"].into_iter().filter(|place| said.contains(place));
    Reply::text(&format!("Heard in the {}.", heard.collect::<Vec<_>>().join(" and the ")))
}

fn say(browser: &mut Chromium, text: &str) {
    browser.eval("document.querySelector('#text').focus()");
    browser.types(text);
    browser.press("Enter", 13, 0);
}

#[test]
fn two_pages_and_telegram_speak_at_once_and_each_is_answered_where_it_spoke() {
    let (Some(mut first), Some(mut second)) = (Chromium::start(), Chromium::start()) else { return };
    let (telegram, claude, env) = with_claude();
    claude.answer_with(name_places);
    let page = ServedPage::open(&env);
    for browser in [&mut first, &mut second] {
        enter(browser, &page);
        browser.go(&at(&page, "/chat"));
    }
    let bot = env.start_logged(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", WAKE], &env.path("bot.log"));
    say(&mut first, "I am in the kitchen");
    telegram.push_text(CHAT, CHAT, "I am in the street");
    say(&mut second, "I am in the garden");
    for browser in [&mut first, &mut second] {
        for place in ["kitchen", "garden"] {
            browser.until(&format!(
                "[...document.querySelectorAll('#live-chat .me')].some((answer) => answer.innerText.includes('{place}'))"
            ));
        }
    }
    eventually("Telegram is answered", || telegram.sent().iter().any(|sent| sent.visible.contains("street")));
    env.wait_for_end_of_wake();
    bot.signal(rustix::process::Signal::TERM);
    bot.end().ok();
    let of_pages = |visible: &str| visible.contains("kitchen") || visible.contains("garden");
    let sent = telegram.sent();
    assert_eq!((sent.len(), sent.iter().filter(|sent| of_pages(&sent.visible)).count()), (1, 0), "{sent:#?}");
    assert_eq!((env.count_received(), env.count_queued()), (3, 0));
    for browser in [&mut first, &mut second] {
        assert_eq!(browser.problems(), [""; 0]);
    }
    page.end();
    env.check_sound();
}

#[test]
fn a_model_that_dies_while_it_writes_leaves_nothing_of_that_on_the_page() {
    let Some(mut browser) = Chromium::start() else { return };
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.think_with(&claude);
    let gate = Gate::default();
    claude.expect(reply("t1", "It is the sea that colours the sky, they say.").cut_at(5, &gate));
    claude.expect(reply("t2", "Short waves are scattered more."));
    claude.expect(Reply::text("Done."));
    let page = ServedPage::open(&env);
    enter(&mut browser, &page);
    browser.go(&at(&page, "/chat"));
    say(&mut browser, "why is the sky blue?");
    browser.until("document.querySelector('#preview').innerText.includes('It is the sea')");
    gate.open();
    browser.until("document.querySelector('#live-chat').innerText.includes('Short waves are scattered more.')");
    browser.until("document.querySelector('#preview').hidden");
    assert_eq!(browser.eval("document.body.innerText.includes('It is the sea')"), false);
    env.wait_for_end_of_wake();
    assert_eq!((env.count_received(), env.outbox().len()), (1, 1));
    page.end();
    env.check_sound();
}
