//! The chat of the page: the terminal's own, stored before it is answered, shown once, and never posted twice.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use serde_json::json;

use super::{ServedPage, TestEnv};
use crate::support::{
    claude::{FakeClaude, Reply},
    env::eventually,
    http::Gate,
};

fn say(page: &ServedPage<'_>, text: &str, key: &str) {
    assert_eq!(page.post("/chat", &[("text", text), ("key", key)]).see_other(), "/chat");
}

#[track_caller]
fn shows(page: &ServedPage<'_>, text: &str) -> String {
    let mut html = String::new();
    eventually(text, || {
        html = page.get("/chat").ok();
        html.contains(text)
    });
    html
}

fn unshown(env: &TestEnv) -> usize {
    env.count_unsent()
}

/// An answer stands there before its wake has ended.
fn ended(env: &TestEnv) {
    env.wait_for_end_of_wake();
}

/// The rows that a page says it shows for the first time.
fn unseen(html: &str) -> &str {
    html.split_once("name=\"seen\" value=\"").map_or("", |(_, rest)| rest.split('"').next().unwrap())
}

#[test]
fn what_is_said_is_answered_once_however_often_it_is_posted() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let empty = page.get("/chat").ok();
    assert!(empty.contains("No messages yet") && empty.contains("No AI model is set"), "{empty}");
    assert!(!env.workspace().join("messages.db").exists(), "a look makes nothing");
    say(&page, "remember that <b>tea</b> is at five", "k1");
    say(&page, "remember that <b>tea</b> is at five", "k1");
    let html = shows(&page, "Remembered: ");
    assert!(html.contains("remember that &lt;b&gt;tea&lt;/b&gt; is at five"), "{html}");
    assert_eq!(env.count_received(), 1);
    // Another form may say the same again.
    say(&page, "/tasks", "k2");
    let html = shows(&page, "No tasks");
    assert!(!html.contains("involves untrusted text"), "it marks what nobody else said: {html}");
    for (text, why) in [("  \r\n", "is empty"), ("x".repeat(100_001).as_str(), "longer than 100000 bytes")] {
        let refused = page.post("/chat", &[("text", text), ("key", "k3")]);
        assert!(refused.status == 422 && refused.body.contains(why), "{}", refused.body);
    }
    assert_eq!(env.count_received(), 1);
    page.end();
    assert_eq!(env.count_sessions(), 0);
    ended(&env);
    env.check_sound();
}

#[test]
fn an_answer_is_shown_by_no_other_terminal_while_the_chat_is_open_and_by_the_next_one_after_it() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    say(&page, "remember that tea is at five", "k1");
    let html = shows(&page, "Remembered: tea is at five");
    let first = unseen(&html).to_owned();
    assert!(!first.is_empty(), "{html}");
    // A look marks nothing: a browser says what it has shown.
    assert_eq!((unshown(&env), page.get("/chat").ok().contains(&first)), (1, true));
    let said = env.wake(&["say", "/tasks"]).ok();
    assert!(!said.stdout.contains("tea"), "{said:?}");
    assert_eq!(page.post("/chat/seen", &[("seen", &format!("{first},999,x"))]).status, 204);
    assert_eq!((unshown(&env), unseen(&page.get("/chat").ok())), (0, ""));
    // The form below an answer says it too; without it the answer is the next terminal's.
    say(&page, "remember that soup is at one", "k2");
    let html = shows(&page, "Remembered: soup is at one");
    let seen = unseen(&html).to_owned();
    page.post("/chat", &[("text", "remember that bread is at two"), ("key", "k3"), ("seen", &seen)]).see_other();
    shows(&page, "Remembered: bread is at two");
    page.end();
    let said = env.wake(&["say", "/tasks"]).ok();
    assert!(said.stdout.contains("bread") && !said.stdout.contains("soup"), "{said:?}");
    ended(&env);
    env.check_sound();
}

#[test]
fn what_is_said_while_another_wake_works_is_answered_after_it() {
    let claude = FakeClaude::start();
    let mut env = TestEnv::new();
    env.think_with(&claude);
    let gate = Gate::default();
    let steps = json!({"understood": "u", "steps": [{"what": "Look <at> it", "tool": "reply"}]});
    claude.expect(Reply::tool("t1", "plan", steps));
    claude.expect(Reply::text("The first.").stalled_after(2, &gate));
    let page = ServedPage::open(&env);
    say(&page, "one", "k1");
    let html = shows(&page, "Step 1 of 1: Look &lt;at&gt; it");
    assert!(html.contains("in hand"), "{html}");
    say(&page, "two", "k2");
    claude.expect(Reply::text("The second."));
    gate.open();
    shows(&page, "The second.");
    let html = page.get("/chat").ok();
    assert!(html.contains("The first.") && !html.contains("Step 1 of 1"), "{html}");
    page.end();
    ended(&env);
    env.check_sound();
}

#[test]
fn stopped_work_waits_and_what_asks_is_told_here() {
    let claude = FakeClaude::start();
    let mut env = TestEnv::new();
    env.think_with(&claude).set("AUTONOMY", "0");
    env.wake(&["--once"]).ok();
    let page = ServedPage::open(&env);
    say(&page, "/stop", "k1");
    shows(&page, "Stopped. New messages will wait.");
    say(&page, "remember the code", "k2");
    assert!(shows(&page, "remember the code").contains("waiting"));
    claude.expect(Reply::tool("t1", "remember", json!({"fact": "The code is 12"})));
    say(&page, "/resume", "k3");
    let html = shows(&page, "May I remember");
    assert_eq!(html.matches("<code>The code is 12</code>").count(), 1, "{html}");
    assert!(html.contains("aria-label=\"Allow once, question 1\""), "{html}");
    claude.expect(Reply::text("It is written down."));
    let unseen =
        html.split("name=\"seen\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned();
    page.post("/chat", &[("text", "yes"), ("key", "k4"), ("seen", &unseen)]).see_other();
    shows(&page, "It is written down.");
    page.end();
}

#[test]
fn whoever_comes_back_to_the_chat_is_shown_the_answers_there() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    assert_eq!(page.post("/chat/seen", &[("seen", "")]).status, 204);
    assert!(!env.workspace().join("messages.db").exists(), "a look makes nothing");
    say(&page, "remember that tea is at five", "k1");
    shows(&page, "Remembered: tea is at five");
    ended(&env);
    // As after two minutes in which nobody looked.
    env.forget_sessions();
    assert_eq!(page.post("/chat/seen", &[("seen", "")]).status, 204);
    assert_eq!(env.count_sessions(), 1);
    let said = env.wake(&["say", "/tasks"]).ok();
    assert!(!said.stdout.contains("tea"), "{said:?}");
    page.end();
    assert_eq!(env.count_sessions(), 0);
}

#[test]
fn what_was_mended_and_sent_again_is_taken_too() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    for text in ["remember that tea is at five", "remember that tea is at five", "remember that tea is at six"] {
        say(&page, text, "k1");
    }
    shows(&page, "Remembered: tea is at six");
    ended(&env);
    assert_eq!(env.count_received(), 2);
}

#[test]
fn what_could_not_be_stored_stays_in_the_field() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    let db = env.workspace().join("messages.db");
    std::fs::create_dir_all(&db).unwrap();
    let answered = page.post("/chat", &[("text", "buy <tea>"), ("key", "k1")]);
    assert_eq!(answered.status, 500, "{answered:#?}");
    for part in
        ["role=\"alert\">Your message wasn't saved: ", "buy &lt;tea&gt;</textarea>", "can't read this conversation"]
    {
        assert!(answered.body.contains(part), "{part}: {answered:#?}");
    }
    // Once it can be stored, the same form is taken.
    std::fs::remove_dir(&db).unwrap();
    say(&page, "buy <tea>", "k1");
    assert!(shows(&page, "buy &lt;tea&gt;").contains("buy &lt;tea&gt;"));
}

#[test]
fn what_is_sent_again_is_a_new_message_once_and_says_so() {
    let env = TestEnv::new();
    let page = ServedPage::open(&env);
    say(&page, "remember that tea is at five", "k1");
    shows(&page, "Remembered: tea is at five");
    ended(&env);
    let html = page.get("/chat").ok();
    let message = html.split_once("name=\"message\" value=\"").unwrap().1.split('"').next().unwrap();
    let key = html.split_once("value=\"again-").unwrap().1.split('"').next().unwrap();
    let fields = [("key", format!("again-{key}")), ("message", message.to_owned())];
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for _ in 0..2 {
        assert_eq!(page.post("/chat/again", &fields).see_other(), "/chat");
    }
    assert_eq!(env.count_received(), 2);
    let html = shows(&page, "sent again");
    assert_eq!(html.matches("<p class=\"words\">remember that tea is at five</p>").count(), 2, "{html}");
    ended(&env);
    eventually("it is understood", || page.get("/chat").ok().matches("class=\"me\"").count() == 2);
    assert!(!page.get("/chat").ok().contains("without an AI model"));
    for missing in ["999", "x"] {
        let refused = page.post("/chat/again", &[("message", missing)]);
        assert!(refused.status >= 400 && refused.body.contains("<h1>"), "{refused:#?}");
    }
    page.end();
    env.check_sound();
}

/// A page that listens.
fn listen(page: &ServedPage<'_>) -> TcpStream {
    let mut stream = page.connect();
    let head = format!(
        "GET /live?at=%2Fchat HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\nSec-Fetch-Site: same-origin\r\n\r\n",
        page.host, page.cookie
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

/// Reads until this has come.
fn hears(stream: &mut TcpStream, text: &str) -> String {
    let (mut heard, mut bytes) = (String::new(), [0; 512]);
    while !heard.contains(text) {
        let n = stream.read(&mut bytes).unwrap();
        assert!(n > 0, "it ended: {heard}");
        heard.push_str(&String::from_utf8_lossy(&bytes[..n]));
    }
    heard
}

#[test]
fn an_open_page_hears_of_changes_and_of_nothing_else() {
    let env = TestEnv::new();
    env.wake(&["say", "remember that tea is at five"]).ok();
    let page = ServedPage::open(&env);
    let mut stream = listen(&page);
    let head = hears(&mut stream, "retry: 2000");
    assert!(head.contains("200 OK") && head.contains("text/event-stream"), "{head}");
    // Looking is no change: nothing comes but the sign that the page is there.
    for path in ["/", "/chat", "/wakes", "/memory", "/health", "/charts"] {
        page.get(path).ok();
    }
    let heard = hears(&mut stream, ":\n\n");
    assert!(!heard.contains("changed"), "{heard}");
    env.wake(&["say", "remember that soup is at one"]).ok();
    hears(&mut stream, "event: changed");
    // So many may listen, and whoever leaves makes room.
    let mut others: Vec<TcpStream> = (0..15).map(|_| listen(&page)).collect();
    others.iter_mut().for_each(|other| drop(hears(other, "retry: 2000")));
    let refused = page.get("/live");
    assert!(refused.status == 503 && refused.body.contains("<h1>"), "{refused:#?}");
    drop(others);
    eventually("there is room again", || {
        let mut again = listen(&page);
        let mut bytes = [0; 12];
        again.read_exact(&mut bytes).unwrap();
        bytes.ends_with(b"200")
    });
    // The end of the server ends what listens.
    page.end();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).ok();
}
