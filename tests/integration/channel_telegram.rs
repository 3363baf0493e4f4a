//! Tests of the Telegram client over a real socket: outgoing and incoming messages, and the classification of each failure.

use serde_json::json;
use std::{fmt::Debug, future::Future, net::TcpListener, time::Duration};
use teloxide_core::{
    payloads::SendMessage,
    types::{ChatId, ParseMode, Update, UpdateKind},
};

use reveille_base::{
    types::ChatRef,
    types::{Question, TextFile},
};
use reveille_channels::{
    Buttons as _, Channel as _, Form, Outgoing, Presence as _, SendError,
    telegram::{Command, RawUpdate, SetUpError, Telegram, TelegramError},
};
use reveille_memory::render;

use crate::support::telegram::{FakeTelegram, Fault, TOKEN};

const ANA: i64 = 4242;

fn run<T>(story: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(story)
}

fn client(server: &FakeTelegram) -> Telegram {
    Telegram::new(&server.url(), TOKEN.to_owned()).unwrap()
}

/// A client for calls that should run into their timeout.
fn hasty(server: &FakeTelegram) -> Telegram {
    client(server).with_timeouts(Duration::from_millis(300), Duration::from_millis(300))
}

fn hello() -> SendMessage {
    SendMessage::new(ChatId(ANA), "hello")
}

fn outgoing(markdown: &str) -> Outgoing {
    let part = render::render(markdown).remove(0);
    Outgoing {
        chat: ChatRef::from_telegram(ANA),
        thread_id: None,
        reply_to: None,
        html: part.html,
        plain: part.plain,
        silent: false,
        file: None,
        question: None,
        rich: None,
    }
}

/// Checks that neither the token nor its secret half would be printed or logged.
fn assert_token_hidden(shown: &(impl Debug + ToString)) {
    for text in [shown.to_string(), format!("{shown:?}"), format!("{shown:#?}")] {
        assert!(!text.contains("ecretSecret"), "{text}");
        assert!(!text.contains("/bot"), "{text}");
    }
}

async fn poll(telegram: &Telegram, offset: Option<i64>, timeout_s: u32) -> Result<Vec<RawUpdate>, TelegramError> {
    telegram.get_updates(offset, 100, timeout_s).await
}

#[test]
fn the_bot_learns_who_it_is() {
    let server = FakeTelegram::start();
    let telegram = client(&server);
    let me = run(telegram.get_me()).unwrap();
    assert_eq!((me.id, me.username.as_str(), telegram.bot_id()), (99, "reveille_bot", 99));
    assert_eq!(run(telegram.get_webhook_info()).unwrap().url, "");
    run(telegram.set_my_commands(&Command::menu())).unwrap();
    assert_eq!(server.calls("setMyCommands")[0]["commands"][0]["command"], "status");
}

#[test]
fn a_rendered_answer_arrives_formatted_and_without_previews() {
    let server = FakeTelegram::start();
    let part = Outgoing {
        thread_id: Some(3),
        reply_to: Some(7),
        silent: true,
        question: None,
        rich: None,
        ..outgoing("**Done**: [list](https://e.org?a&b) <3")
    };
    let sent = run(client(&server).send(&part)).unwrap();
    let got = &server.sent()[0];
    assert_eq!((sent.message_id, sent.form), (got.message_id, Form::Html));
    assert_eq!((got.visible.as_str(), got.html, got.preview, got.silent), ("Done: list <3", true, false, true));
    assert_eq!((got.chat_id, got.thread_id, got.reply_to), (ANA, Some(3), Some(7)));
}

#[test]
fn every_part_of_a_long_answer_is_accepted() {
    let server = FakeTelegram::start();
    let markdown =
        format!("# Log\n\n```rust\n{}```\n\n{}", "let a = \"<&>\";\n".repeat(700), "**many** `words` 😀 ".repeat(400));
    let parts = render::render(&markdown);
    let telegram = client(&server);
    for part in &parts {
        let marked = render::with_repeat_mark(part);
        let part = Outgoing { html: marked.html, plain: marked.plain, ..outgoing("x") };
        assert_eq!(run(telegram.send(&part)).unwrap().form, Form::Html);
    }
    let sent = server.wait_for_sent(parts.len(), Duration::from_secs(20));
    assert!(parts.len() > 3 && sent.len() == parts.len());
    assert!(sent.iter().all(|message| message.visible.ends_with("the first try wasn't confirmed.")));
}

#[test]
fn refused_formatting_is_sent_plain_at_once() {
    let server = FakeTelegram::start();
    server.fail_next("sendMessage", Fault::RefuseFormatting);
    let sent = run(client(&server).send(&outgoing("**bold** [a](https://e.org)"))).unwrap();
    assert_eq!(sent.form, Form::Plain);
    let got = &server.sent()[0];
    assert_eq!((got.text.as_str(), got.html, got.preview), ("bold a (https://e.org)", false, false));
    assert_eq!(server.calls("sendMessage").len(), 2);
}

/// To cover a newly reported refusal, add one line: the texts of the refusals, and the message that arrives.
#[test]
fn a_message_arrives_whichever_part_of_it_is_refused() {
    let approval = Some(Question::Approval { nonce: "n".to_owned(), may_stand: false });
    let whole =
        || Outgoing { reply_to: Some(7), question: approval.clone(), ..outgoing("**bold** [a](https://e.org)") };
    let (html, plain) = ("<b>bold</b> <a href=\"https://e.org\">a</a>", "bold a (https://e.org)");
    for (refusals, text, reply_to, has_buttons) in [
        (vec!["ENTITIES_TOO_LONG"], plain, Some(7), true),
        (vec!["can't parse entities: unsupported start tag"], plain, Some(7), true),
        (vec!["ENTITY_BOUNDS_INVALID"], plain, Some(7), true),
        (vec!["message text is empty"], plain, Some(7), true),
        (vec!["WEBPAGE_CURL_FAILED"], plain, Some(7), true),
        (vec!["message is too long"], plain, Some(7), true),
        (vec!["message to be replied not found"], html, None, true),
        (vec!["BUTTON_DATA_INVALID"], html, Some(7), false),
        (vec!["SOMETHING_NEW"], plain, None, true),
        (vec!["SOMETHING_NEW", "SOMETHING_NEW"], plain, None, false),
        (vec!["ENTITIES_TOO_LONG", "BUTTON_DATA_INVALID", "reply message not found"], plain, None, false),
    ] {
        let server = FakeTelegram::start();
        for words in &refusals {
            let words: &'static str = format!("Bad Request: {words}").leak();
            server.fail_next("sendMessage", Fault::Refuse(400, words, json!({})));
        }
        run(client(&server).send(&whole())).unwrap();
        let got = server.sent().remove(0);
        let elsewhere = "\n\nTelegram refused this message's buttons. You can answer the question in the terminal: wake approvals list";
        let text = format!("{text}{}", if has_buttons { "" } else { elsewhere });
        assert_eq!((got.text, got.reply_to, !got.buttons.is_empty()), (text, reply_to, has_buttons), "{refusals:?}");
        assert_eq!(server.calls("sendMessage").len(), refusals.len() + 1, "{refusals:?}");
    }
    let server = FakeTelegram::start();
    for _ in 0..2 {
        server.fail_next("sendMessage", Fault::Refuse(400, "Bad Request: MESSAGE_TOO_LONG", json!({})));
    }
    assert_eq!(run(client(&server).send(&whole())).unwrap().form, Form::Plain);
    let got = server.sent().remove(0);
    assert_eq!(got.file.as_deref(), Some(plain));
    assert!(got.text.starts_with(plain) && got.text.ends_with("The whole answer is in the file."), "{}", got.text);
}

#[test]
fn an_answer_of_many_long_links_arrives_with_its_links() {
    let server = FakeTelegram::start();
    let markdown: String = (0..80).map(|n| format!("- [link {n}](https://e.org/{n}/{})\n", "x".repeat(150))).collect();
    for part in render::render(&markdown) {
        let sent =
            run(client(&server).send(&Outgoing { html: part.html, plain: part.plain, ..outgoing("x") })).unwrap();
        assert_eq!(sent.form, Form::Html);
    }
    let links: usize = server.sent().iter().map(|message| message.text.matches("<a href").count()).sum();
    assert_eq!(links, 80);
}

#[test]
fn a_message_for_a_deleted_topic_goes_to_the_chat_with_a_note() {
    let server = FakeTelegram::start();
    let in_topic = Outgoing { thread_id: Some(3), reply_to: Some(100), ..outgoing("**bold**") };
    for words in ["Bad Request: message thread not found", "Bad Request: TOPIC_CLOSED", "Bad Request: TOPIC_DELETED"] {
        server.fail_next("sendMessage", Fault::Refuse(400, words, json!({})));
        assert_eq!(run(client(&server).send(&in_topic)).unwrap().form, Form::Html);
        let got = server.sent().pop().unwrap();
        assert_eq!((got.thread_id, got.reply_to), (None, None), "{words}");
        assert_eq!(got.visible, "bold\n\n↪ Its topic is closed or gone.");
    }
    // If there is no other place to send it, the refusal is final.
    let gone = || Fault::Refuse(400, "Bad Request: TOPIC_CLOSED", json!({}));
    for part in [in_topic, outgoing("hi")] {
        let calls = if part.thread_id.is_some() { 2 } else { 1 };
        (0..calls).for_each(|_| server.fail_next("sendMessage", gone()));
        assert!(matches!(run(client(&server).send(&part)), Err(SendError::Never { .. })));
    }
    assert_eq!((server.sent().len(), server.calls("sendMessage").len()), (3, 9));
}

#[test]
fn a_group_that_moved_is_reported_with_its_new_id() {
    let server = FakeTelegram::start();
    let moved = "Bad Request: group chat was upgraded to a supergroup chat";
    server.fail_next("sendMessage", Fault::Refuse(400, moved, json!({"migrate_to_chat_id": -1009})));
    let moved = run(client(&server).send(&outgoing("hi"))).unwrap_err();
    assert!(
        matches!(&moved, SendError::Moved { to: ChatRef { id: -1009, .. }, why } if why.contains("-1009")),
        "{moved:?}"
    );
}

#[test]
fn unreadable_formatting_is_distinguished_from_other_refusals() {
    let server = FakeTelegram::start();
    let broken = SendMessage { text: "<b>open".to_owned(), parse_mode: Some(ParseMode::Html), ..hello() };
    let refused = run(client(&server).send_message(&broken)).unwrap_err();
    assert!(matches!(&refused, TelegramError::Rejected { description, .. } if description.contains("can't parse")));
    let long = "x".repeat(4097);
    let too_long = run(client(&server).send_message(&SendMessage { text: long, ..hello() })).unwrap_err();
    assert!(
        matches!(&too_long, TelegramError::Rejected { code: 400, description } if description.contains("too long"))
    );
}

#[test]
fn a_required_wait_is_passed_on_in_full() {
    let server = FakeTelegram::start();
    server.fail_next("sendMessage", Fault::Status(429, Some(3601)));
    let later = run(client(&server).send(&outgoing("hi"))).unwrap_err();
    assert!(matches!(later, SendError::Later { after, .. } if after == Duration::from_secs(3601)));
    assert_eq!(
        (server.sent(), server.calls("sendMessage").len()),
        (vec![], 1),
        "the client itself neither waits nor retries"
    );
}

#[test]
fn refusals_are_sorted_by_what_to_do() {
    let server = FakeTelegram::start();
    let telegram = client(&server);
    type Is<E> = fn(&E) -> bool;
    let cases: [(Fault, Is<TelegramError>, Is<SendError>); 5] = [
        (
            Fault::Refuse(403, "Forbidden: bot was blocked by the user", json!({})),
            |error| matches!(error, TelegramError::ChatGone(_)),
            |error| matches!(error, SendError::Never { .. }),
        ),
        (
            Fault::Refuse(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                json!({"migrate_to_chat_id": -1009}),
            ),
            |error| matches!(error, TelegramError::MigratedTo(-1009)),
            |error| matches!(error, SendError::Never { why } if why.contains("-1009")),
        ),
        (
            Fault::Status(502, None),
            |error| matches!(error, TelegramError::Ambiguous { .. }),
            |error| matches!(error, SendError::Ambiguous { .. }),
        ),
        (
            Fault::Foreign(302),
            |error| matches!(error, TelegramError::NotSent { .. }),
            |error| matches!(error, SendError::NotSent { .. }),
        ),
        (
            Fault::Foreign(502),
            |error| matches!(error, TelegramError::Ambiguous { .. }),
            |error| matches!(error, SendError::Ambiguous { .. }),
        ),
    ];
    for (fault, expected, to_do) in cases {
        server.fail_next("sendMessage", fault.clone());
        let error = run(telegram.send_message(&hello())).unwrap_err();
        assert!(expected(&error), "{fault:?} gave {error:?}");
        assert_token_hidden(&error);
        let error = SendError::from(error);
        assert!(to_do(&error), "{fault:?} gave {error:?}");
    }
    assert_eq!(server.sent(), []);
}

#[test]
fn a_lost_answer_may_mean_a_delivery() {
    for (fault, taken) in
        [(Fault::CloseBefore, 0), (Fault::CloseAfterTaking, 1), (Fault::Malformed, 1), (Fault::Stall, 0)]
    {
        let server = FakeTelegram::start();
        server.fail_next("sendMessage", fault.clone());
        let telegram = if matches!(fault, Fault::Stall) { hasty(&server) } else { client(&server) };
        let error = run(telegram.send(&outgoing("hi"))).unwrap_err();
        assert!(matches!(error, SendError::Ambiguous { .. }), "{fault:?} gave {error:?}");
        assert_token_hidden(&error);
        assert_eq!(server.sent().len(), taken, "{fault:?}");
    }
}

#[test]
fn a_message_that_never_left_counts_as_not_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for url in [format!("http://{closed}"), "http://nowhere.invalid".to_owned(), format!("https://{closed}")] {
        let error = run(Telegram::new(&url, TOKEN.to_owned()).unwrap().send(&outgoing("hi"))).unwrap_err();
        assert!(matches!(error, SendError::NotSent { .. }), "{url}: {error:?}");
        assert_token_hidden(&error);
    }
}

#[test]
fn no_error_shows_the_token() {
    let server = FakeTelegram::start();
    let wrong = Telegram::new(&server.url(), "99:AnotherSecretSecret".to_owned()).unwrap();
    let error = run(wrong.get_me()).unwrap_err();
    assert!(matches!(error, TelegramError::Unauthorized(_)));
    assert_token_hidden(&error);
    server.fail_next(
        "getMe",
        Fault::Refuse(400, "Bad Request: /bot99:AAsecretSecretSecretSecret-Secret_xyz/getMe", json!({})),
    );
    let echoed = run(client(&server).get_me()).unwrap_err();
    assert!(!format!("{echoed} {echoed:?}").contains("ecretSecret"), "{echoed}");
    assert!(!format!("{:?}", client(&server)).contains("ecretSecret"));
    for token in ["", "99", "99:", "abc:def", "99:with space", "99:a/../b", "99:a\n"] {
        assert_eq!(
            Telegram::new("https://api.telegram.org", token.to_owned()).unwrap_err(),
            SetUpError::Token,
            "{token:?}"
        );
    }
    for url in ["", "api.telegram.org", "ftp://e.org", "https://e.org/?x=AAsecretSecret"] {
        let error = Telegram::new(url, TOKEN.to_owned()).unwrap_err();
        assert_eq!(error, SetUpError::Url, "{url:?}");
        assert_token_hidden(&error);
    }
}

/// Every method that the program calls, and the download of a file.
const METHODS: [&str; 16] = [
    "getMe",
    "getUpdates",
    "sendMessage",
    "sendDocument",
    "sendChatAction",
    "setMessageReaction",
    "editMessageText",
    "editMessageCaption",
    "answerCallbackQuery",
    "deleteMessage",
    "setMyCommands",
    "getWebhookInfo",
    "setWebhook",
    "deleteWebhook",
    "getFile",
    "download",
];

async fn call(telegram: &Telegram, method: &str) -> Result<(), Box<dyn std::error::Error>> {
    let question = Question::Approval { nonce: "n".to_owned(), may_stand: false };
    let file = TextFile { name: "action.txt".to_owned(), text: "rm -r old".to_owned() };
    let document = Outgoing { file: Some(file), question: Some(question), ..outgoing("hello") };
    let chat = ChatRef::from_telegram(ANA);
    match method {
        "getMe" => drop(telegram.get_me().await?),
        "getUpdates" => drop(poll(telegram, None, 0).await?),
        "sendMessage" => drop(telegram.send(&outgoing("hello")).await?),
        "sendDocument" => drop(telegram.send(&document).await?),
        "sendChatAction" => telegram.show_typing(chat, None).await?,
        "setMessageReaction" => telegram.acknowledge(chat, 7).await?,
        "editMessageText" => telegram.edit_message(chat, 7, "hello").await?,
        "editMessageCaption" => telegram.edit_caption(chat, 7, "hello").await?,
        "answerCallbackQuery" => telegram.answer_tap("tap", "Allowed, once.").await?,
        "deleteMessage" => telegram.delete_message(chat, 7).await?,
        "setMyCommands" => telegram.set_my_commands(&Command::menu()).await?,
        "getWebhookInfo" => drop(telegram.get_webhook_info().await?),
        "setWebhook" => telegram.set_webhook("https://bots.example.org/telegram/ana".parse()?, "secret").await?,
        "deleteWebhook" => telegram.delete_webhook().await?,
        "getFile" => drop(telegram.get_file("voice").await?),
        "download" => drop(telegram.download(&telegram.get_file("voice").await?, |_| Ok(())).await?),
        other => panic!("{other} isn't called here"),
    }
    Ok(())
}

/// Lists the requests that a source file uses, by the library's names for their types.
fn requests_in(source: &str) -> impl Iterator<Item = &str> {
    let (_, names) = source.split_once("payloads::").unwrap();
    let named = names.strip_prefix('{').map_or_else(|| names.split([',', ';']).next(), |all| all.split('}').next());
    named.unwrap().split(',').map(str::trim).filter(|name| !name.is_empty())
}

#[test]
fn no_fault_at_any_method_shows_the_token() {
    let sources = [
        include_str!("../../crates/channels/src/telegram/api.rs"),
        include_str!("../../crates/channels/src/telegram/file.rs"),
        include_str!("../../crates/channels/src/telegram/mod.rs"),
        include_str!("../../crates/channels/src/telegram/sending.rs"),
    ];
    for request in sources.into_iter().flat_map(requests_in) {
        assert!(METHODS.iter().any(|method| method.eq_ignore_ascii_case(request)), "{request} isn't in the list");
    }
    let echo = "Bad Request: /bot99:AAsecretSecretSecretSecret-Secret_xyz/ and AAsecretSecretSecretSecret-Secret_xyz";
    let server = FakeTelegram::start();
    server.keep_file("voice", b"OggS");
    for method in METHODS {
        let malformed = (method != "download").then_some(Fault::Malformed);
        let refusals = [400, 401, 403, 404, 409, 429, 500].map(|code| Fault::Refuse(code, echo, json!({})));
        let broken = [Fault::CloseBefore, Fault::CloseAfterTaking, Fault::Foreign(404), Fault::Foreign(502)];
        for fault in broken.into_iter().chain(refusals).chain(malformed) {
            // After an unknown refusal, the client tries plainer forms of the message.
            let tries = match (method, &fault) {
                ("sendMessage", Fault::Refuse(400, ..)) => 2,
                ("sendDocument", Fault::Refuse(400, ..)) => 3,
                _ => 1,
            };
            (0..tries).for_each(|_| server.fail_next(method, fault.clone()));
            let telegram = client(&server);
            let error = run(call(&telegram, method)).expect_err(&format!("{method} with {fault:?}"));
            for text in [error.to_string(), format!("{error:?}"), format!("{error:#?}")] {
                assert!(!text.contains("ecretSecret") && !text.contains("/bot9"), "{method} with {fault:?}: {text}");
            }
        }
    }
}

#[test]
fn one_strange_update_neither_blocks_nor_drops_the_others() {
    let server = FakeTelegram::start();
    let first = server.push_text(ANA, ANA, "one");
    server.push_raw(json!({"update_id": first + 1, "hologram": {"from": {"id": ANA}}}));
    server.push_raw(json!({"update_id": 9_000_000_000_000_i64, "message": {"text": 5}}));
    let telegram = client(&server);
    let batch = run(poll(&telegram, None, 0)).unwrap();
    assert_eq!(batch.iter().map(|update| update.update_id).collect::<Vec<_>>(), [first, first + 1, 9_000_000_000_000]);
    let is_known = |update: &RawUpdate| match serde_json::from_str::<Update>(update.raw.get()) {
        Ok(update) => !matches!(update.kind, UpdateKind::Error(_)),
        Err(_) => false,
    };
    assert_eq!(batch.iter().map(is_known).collect::<Vec<_>>(), [true, false, false]);
    assert!(batch[1].raw.get().contains("\"hologram\":{\"from\":{\"id\":4242}}"), "the unknown update's JSON is kept");
    assert_eq!(server.unconfirmed(), 3, "reading confirms nothing");
    assert_eq!(run(poll(&telegram, Some(first + 1), 0)).unwrap().len(), 2);
    assert!(run(poll(&telegram, Some(9_000_000_000_001), 0)).unwrap().is_empty());
    assert_eq!(server.unconfirmed(), 0);
}

#[test]
fn a_long_poll_ends_when_an_update_arrives() {
    let server = FakeTelegram::start();
    let telegram = client(&server);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(poll(&telegram, None, 50)).unwrap());
        server.wait_for_calls("getUpdates", 1, Duration::from_secs(20));
        server.push_text(ANA, ANA, "wake up");
        assert_eq!(waiting.join().unwrap().len(), 1);
    });
}

#[test]
fn a_conflict_with_a_second_poller_is_explained_to_the_first() {
    let server = FakeTelegram::start();
    let (first, second) = (client(&server), client(&server));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| run(poll(&first, None, 50)));
        server.wait_for_calls("getUpdates", 1, Duration::from_secs(20));
        assert!(run(poll(&second, None, 0)).unwrap().is_empty());
        let conflict = waiting.join().unwrap().unwrap_err();
        assert!(matches!(conflict, TelegramError::Conflict(_)));
        assert!(conflict.to_string().contains("Stop the other program"), "{conflict}");
    });
}

#[test]
fn a_poll_that_is_never_answered_ends_by_itself() {
    let server = FakeTelegram::start();
    for fault in
        [Fault::Stall, Fault::CloseBefore, Fault::Malformed, Fault::Status(500, None), Fault::Status(429, Some(7))]
    {
        server.fail_next("getUpdates", fault.clone());
        let telegram = if matches!(fault, Fault::Stall) { hasty(&server) } else { client(&server) };
        let error = run(poll(&telegram, None, 0)).unwrap_err();
        let expected = match fault {
            Fault::Status(429, _) => error == TelegramError::RetryAfter(Duration::from_secs(7)),
            _ => matches!(error, TelegramError::Ambiguous { .. }),
        };
        assert!(expected, "{fault:?} gave {error:?}");
        assert_token_hidden(&error);
    }
}

#[test]
fn typing_is_shown_in_the_topic() {
    let server = FakeTelegram::start();
    run(client(&server).show_typing(ChatRef::from_telegram(ANA), Some(3))).unwrap();
    run(client(&server).show_typing(ChatRef::from_telegram(ANA), None)).unwrap();
    assert_eq!(server.actions(), [(ANA, Some(3), "typing".to_owned()), (ANA, None, "typing".to_owned())]);
}

#[test]
fn a_shown_message_can_be_edited_and_deleted() {
    let server = FakeTelegram::start();
    let telegram = client(&server);
    let message_id = run(telegram.send_message(&hello())).unwrap().message_id;
    run(telegram.edit_message(ChatRef::from_telegram(ANA), message_id, "good <morning> & more")).unwrap();
    assert_eq!(server.standing(), ["good <morning> & more"]);
    run(telegram.delete_message(ChatRef::from_telegram(ANA), message_id)).unwrap();
    assert!(server.standing().is_empty());
    // A message that was deleted is gone for good, so there is no point in trying again.
    for gone in [
        run(telegram.edit_message(ChatRef::from_telegram(ANA), message_id, "again")),
        run(telegram.delete_message(ChatRef::from_telegram(ANA), message_id)),
    ] {
        assert!(matches!(gone, Err(SendError::Never { .. })), "{gone:?}");
    }
    run(telegram.acknowledge(ChatRef::from_telegram(ANA), 7)).unwrap();
    assert_eq!(server.calls("setMessageReaction")[0]["reaction"], json!([{"type": "emoji", "emoji": "👀"}]));
}

#[test]
fn the_fake_server_fails_a_test_that_the_real_one_would_refuse() {
    let post = |method: &str, request: serde_json::Value| {
        let server = FakeTelegram::start();
        let url = format!("{}/bot{TOKEN}/{method}", server.url());
        let status = run(async { reqwest::Client::new().post(url).json(&request).send().await.unwrap().status() });
        let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(server)));
        (status.as_u16(), verdict.is_ok())
    };
    assert_eq!(
        post("SendMessage", json!({"chat_id": 1, "text": "hi"})),
        (200, true),
        "either spelling of the method is accepted"
    );
    assert_eq!(
        post("sendMessage", json!({"chat_id": 1, "text": "hi", "disable_web_page_preview": true})),
        (400, false)
    );
    assert_eq!(post("sendMessage", json!({"chat_id": 1})), (400, false));
    assert_eq!(post("sendMessage", json!({"chat_id": true, "text": "hi"})), (400, false));
    assert_eq!(post("sendMassage", json!({})), (404, false));
}
