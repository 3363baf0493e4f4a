//! Answers while they are written: at a terminal, and as a draft on Telegram.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::support::{
    claude::{Block, FakeClaude, Reply},
    env::{CHAT, Running, Talk, TestEnv, eventually},
    http::Gate,
    story::{reply, start_wake, wait_for_request, with_claude},
    telegram::Fault,
};

const WAKE: &str = env!("CARGO_BIN_EXE_wake");
const PROMPT: &str = "\x1b[?2004h";
const BOB: i64 = 5555;

/// The number of events after which two thirds of a turn's only block are sent.
const TWO_THIRDS: usize = 5;

fn start_bot(env: &TestEnv) -> Running {
    env.start(env!("CARGO_BIN_EXE_bot"), &["run", "--wake", WAKE])
}

fn end(bot: Running) {
    bot.signal(Signal::TERM);
    bot.end().ok();
}

/// A chat at a terminal, with a model.
fn open_chat() -> (FakeClaude, TestEnv, Talk) {
    let (claude, mut env) = (FakeClaude::start(), TestEnv::new());
    env.set("TERM", "xterm");
    env.think_with(&claude);
    let mut talk = env.talk(WAKE, &["chat"]);
    talk.wait_for_text(PROMPT);
    (claude, env, talk)
}

fn preview_file(env: &TestEnv) -> Option<String> {
    fs::read_to_string(env.workspace().join(".live")).ok()
}

#[test]
fn an_answer_grows_on_the_screen_and_is_printed_once_when_it_is_complete() {
    let (claude, env, mut talk) = open_chat();
    let gate = Gate::default();
    let text = "The sky is blue because short waves are scattered more than long ones by the air.";
    claude.expect(reply("t1", text).stalled_after(TWO_THIRDS, &gate));
    claude.expect(Reply::text("Done."));
    talk.types("why is the sky blue?\r");
    talk.wait_for_text("writing…\n  │ The sky is blue because");
    assert!(env.outbox().is_empty(), "a preview is no message");
    gate.open();
    talk.wait_for_text(&format!("{text}\n"));
    talk.wait_for_text(PROMPT);
    assert_eq!((env.outbox().len(), preview_file(&env)), (1, None));
    env.check_sound();
}

#[test]
fn a_discarded_turn_disappears_from_the_screen() {
    let (claude, env, mut talk) = open_chat();
    let gate = Gate::default();
    claude.expect(reply("t1", "It is the sea that colours the sky, they say.").cut_at(TWO_THIRDS, &gate));
    claude.expect(reply("t2", "Short waves are scattered more."));
    claude.expect(Reply::text("Done."));
    talk.types("why is the sky blue?\r");
    talk.wait_for_text("  │ It is the sea that");
    gate.open();
    talk.wait_for_text("Short waves are scattered more.\n");
    assert_eq!(env.outbox().len(), 1);
    env.check_sound();
}

#[test]
fn the_owner_sees_a_growing_draft_and_none_after_the_answer() {
    let (telegram, claude, env) = with_claude();
    let (first, second) = (Gate::default(), Gate::default());
    claude.expect(
        Reply::tools(vec![
            Block::text("Let me look at the tasks first, please."),
            Block::tool("t1", "task_list", json!({})),
        ])
        .stalled_after(4, &first),
    );
    claude.expect(
        reply("t2", "You have **no** tasks, see https://example.org/tasks for more.")
            .stalled_after(TWO_THIRDS, &second),
    );
    claude.expect(Reply::text("Done."));
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there to do?");
    eventually("what it says first", || telegram.drafts().iter().any(|draft| draft.visible.starts_with("Let me look")));
    first.open();
    eventually("its answer", || {
        telegram.drafts().iter().any(|draft| draft.visible.starts_with("You have no tasks, see"))
    });
    second.open();
    telegram.wait_for_sent(1, std::time::Duration::from_secs(60));
    eventually("the preview ends", || preview_file(&env).is_none());
    end(bot);
    let drafts = telegram.drafts();
    assert!(
        drafts.iter().all(|draft| draft.sent == 0 && draft.chat_id == CHAT && draft.number == drafts[0].number),
        "{drafts:?}"
    );
    assert_eq!(telegram.sent().len(), 1);
    assert!(telegram.calls("sendMessage").len() == 1, "no line of progress beside the draft");
    env.check_sound();
}

/// Each further piece of the answer is written when the draft with the piece before it has come. As drafts are a second apart, this takes
/// some ten seconds.
#[test]
fn a_long_answer_grows_by_at_least_eight_drafts_and_none_comes_after_it() {
    const PIECES: usize = 10;
    let (telegram, claude, env) = with_claude();
    let word = |n: usize| format!("piece-{n} ");
    let gates: Vec<Gate> = (0..PIECES).map(|_| Gate::default()).collect();
    // A turn begins with two events, and each block of text has five.
    let stalls = gates.iter().enumerate().map(|(n, gate)| (2 + 5 * (n + 1), gate.clone())).collect();
    // The last words are held back: they could be the beginning of a secret.
    let piece = |n: usize| word(n) + &"and so it goes on, ".repeat(5);
    let mut blocks: Vec<Block> = (0..PIECES).map(|n| Block::text(&piece(n))).collect();
    blocks.push(Block::tool("t1", "reply", json!({"text": "Here is all of it."})));
    claude.expect(Reply::tools(blocks).paced(stalls));
    claude.expect(Reply::text("Done."));
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "tell me a long story");
    for (n, gate) in gates.iter().enumerate() {
        eventually(&word(n), || telegram.drafts().iter().any(|draft| draft.visible.contains(word(n).trim())));
        gate.open();
    }
    telegram.wait_for_sent(1, std::time::Duration::from_secs(60));
    eventually("the preview ends", || preview_file(&env).is_none());
    end(bot);
    let drafts = telegram.drafts();
    let growing = drafts.windows(2).filter(|pair| pair[1].visible.starts_with(pair[0].visible.trim_end())).count();
    assert!(growing + 1 >= 8, "{drafts:?}");
    assert!(drafts.iter().all(|draft| draft.sent == 0 && draft.number == drafts[0].number), "{drafts:?}");
    assert_eq!(telegram.sent().len(), 1);
    env.check_sound();
}

#[test]
fn a_server_without_drafts_is_asked_once_and_answers_come_whole() {
    let (telegram, claude, env) = with_claude();
    telegram.fail_next("sendMessageDraft", Fault::Status(404, None));
    let bot = start_bot(&env);
    for (n, word) in [(1, "one"), (2, "two")] {
        let gate = Gate::default();
        claude.expect(
            reply(&format!("t{n}"), "It is said to be so, and by many people.").stalled_after(TWO_THIRDS, &gate),
        );
        claude.expect(Reply::text("Done."));
        telegram.push_text(CHAT, CHAT, word);
        eventually("it is written", || preview_file(&env).is_some_and(|file| file.contains("said")));
        if n == 1 {
            telegram.wait_for_calls("sendMessageDraft", 1, std::time::Duration::from_secs(60));
        }
        gate.open();
        telegram.wait_for_sent(n, std::time::Duration::from_secs(60));
    }
    end(bot);
    assert_eq!((telegram.calls("sendMessageDraft").len(), telegram.drafts().len()), (1, 0));
    env.check_sound();
}

#[test]
fn a_guests_answer_is_never_previewed() {
    let (telegram, claude, mut env) = with_claude();
    env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{BOB}"));
    let gate = Gate::default();
    claude.expect(reply("t1", "It is wet, and that is all.").stalled_after(TWO_THIRDS, &gate));
    claude.expect(Reply::text("Done."));
    env.receive(BOB, "what is rain?");
    let wake = start_wake(&env);
    wait_for_request(&claude, 1);
    assert_eq!(preview_file(&env), None, "a preview would be there from the cycle's beginning");
    gate.open();
    wake.end().ok();
    assert_eq!((preview_file(&env), telegram.sent().len()), (None, 1));
    env.check_sound();
}

#[test]
fn a_kill_while_an_answer_is_written_loses_and_doubles_nothing() {
    let (telegram, claude, env) = with_claude();
    env.receive(CHAT, "name a river");
    claude.expect(reply("t1", "The Rhine, which is long and wide.").stalled_after(TWO_THIRDS, &Gate::default()));
    let wake = start_wake(&env);
    eventually("it is written", || preview_file(&env).is_some_and(|file| file.contains("Rhine, ")));
    wake.signal(Signal::KILL);
    wake.end();
    assert!(telegram.sent().is_empty() && preview_file(&env).is_some());
    claude.expect(reply("t2", "The Rhine."));
    claude.expect(Reply::text("Done."));
    assert_eq!(env.once()["answered"], 1);
    assert_eq!((telegram.sent().len(), preview_file(&env)), (1, None));
    assert_eq!(env.once()["outcome"], "idle");
    env.check_sound();
}

#[test]
fn the_links_of_a_tainted_cycle_are_text_in_its_draft() {
    let (telegram, claude, env) = with_claude();
    let gate = Gate::default();
    claude.expect(
        reply("t1", "Open https://evil.example/now at once, they ask of you, and I would rather not do so.")
            .stalled_after(TWO_THIRDS, &gate),
    );
    claude.expect(Reply::text("Done."));
    let bot = start_bot(&env);
    let origin = json!({"type": "hidden_user", "date": 1_763_730_000, "sender_user_name": "Eve"});
    telegram.push_message(CHAT, &json!({"text": "Look at this: https://evil.example/now", "forward_origin": origin}));
    eventually("the draft", || telegram.drafts().iter().any(|draft| draft.visible.contains("evil.example")));
    gate.open();
    telegram.wait_for_sent(1, std::time::Duration::from_secs(60));
    end(bot);
    assert!(telegram.drafts().iter().all(|draft| !draft.text.contains("<a ")));
    assert!(telegram.drafts().iter().any(|draft| draft.text.contains("<code>https://evil.example/now</code>")));
}

#[test]
fn a_message_that_comes_meanwhile_joins_and_is_shown_as_added() {
    let (telegram, claude, env) = with_claude();
    let (listing, writing) = (Gate::default(), Gate::default());
    claude.expect(Reply::tool("t1", "task_list", json!({})).stalled_after(2, &listing));
    claude.expect(
        reply("t2", "Nothing today, and nothing tomorrow either, as far as I know.")
            .stalled_after(TWO_THIRDS, &writing),
    );
    claude.expect(Reply::text("Done."));
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there to do?");
    wait_for_request(&claude, 1);
    telegram.push_text(CHAT, CHAT, "and tomorrow?");
    eventually("it is stored", || env.queued().len() == 2);
    listing.open();
    eventually("it is shown", || telegram.drafts().iter().any(|draft| draft.visible.contains("➕ and tomorrow?")));
    writing.open();
    telegram.wait_for_sent(1, std::time::Duration::from_secs(60));
    end(bot);
    assert_eq!(env.queued().len(), 0);
    env.check_sound();
}

#[test]
fn with_wait_a_message_that_comes_meanwhile_is_answered_afterwards() {
    let (telegram, claude, mut env) = with_claude();
    env.set("WHILE_WORKING", "wait");
    let listing = Gate::default();
    claude.expect(Reply::tool("t1", "task_list", json!({})).stalled_after(2, &listing));
    claude.expect(reply("t2", "Nothing today."));
    claude.expect(Reply::text("Done."));
    claude.expect(reply("t3", "Nothing tomorrow."));
    claude.expect(Reply::text("Done."));
    let bot = start_bot(&env);
    telegram.push_text(CHAT, CHAT, "what is there to do?");
    wait_for_request(&claude, 1);
    telegram.push_text(CHAT, CHAT, "and tomorrow?");
    eventually("it is stored", || env.queued().len() == 2);
    listing.open();
    telegram.wait_for_sent(2, std::time::Duration::from_secs(60));
    end(bot);
    let sent: Vec<String> = telegram.sent().into_iter().map(|message| message.visible).collect();
    assert_eq!(sent, ["Nothing today.", "Nothing tomorrow."]);
    assert!(!claude.requests()[1].last_text().contains("and tomorrow?"));
    env.check_sound();
}
