use serde_json::{json, value::RawValue};

use super::*;

const ANA: i64 = 4_242;
const GROUP: i64 = -1_001_234;
const BOT: i64 = 99;

fn speakers() -> Speakers {
    let me = Me { id: BOT, first_name: "Reveille".to_owned(), username: "reveille_bot".to_owned() };
    Speakers { allowed: BTreeSet::from([ANA, GROUP]), me }
}

fn person(id: i64) -> Value {
    json!({"id": id, "is_bot": false, "first_name": "Ana", "last_name": "Lima", "username": "ana", "language_code": "en"})
}

fn private(id: i64) -> Value {
    json!({"id": id, "type": "private", "first_name": "Ana", "last_name": "Lima", "username": "ana"})
}

fn group(id: i64) -> Value {
    json!({"id": id, "type": "supergroup", "title": "Home", "is_forum": true})
}

/// A message of Ana's in her private chat, with fields added or replaced.
fn message(with: Value) -> Value {
    let mut message = json!({"message_id": 7, "from": person(ANA), "chat": private(ANA), "date": 1_795_000_000});
    let Value::Object(with) = with else { panic!("fields") };
    for (field, value) in with {
        message[field] = value;
    }
    message
}

fn sticker(emoji: &str) -> Value {
    json!({"file_id": "F", "file_unique_id": "U", "type": "regular", "width": 512, "height": 512, "is_animated": false,
        "is_video": false, "emoji": emoji})
}

fn update(kind: &str, body: &Value) -> RawUpdate {
    let json = json!({"update_id": 10_000_000_000_i64, kind: body});
    RawUpdate::parse(RawValue::from_string(json.to_string()).unwrap()).unwrap()
}

/// As [`update`], with an update id that the library accepts.
fn small_update(kind: &str, body: &Value) -> RawUpdate {
    let json = json!({"update_id": 5, kind: body});
    RawUpdate::parse(RawValue::from_string(json.to_string()).unwrap()).unwrap()
}

fn read(kind: &str, body: &Value) -> ReadUpdate {
    read_update(&small_update(kind, body), &speakers())
}

fn read_message(with: Value) -> NewMessage {
    match read("message", &message(with)) {
        ReadUpdate::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_text_is_read_whole() {
    let got = read_message(json!({"text": "Buy milk\nand tea"}));
    assert_eq!(
        got,
        NewMessage {
            chat: ChatRef::from_telegram(ANA),
            thread_id: None,
            telegram_message_id: Some(7),
            sender_id: ANA,
            sender_name: "Ana Lima".to_owned(),
            text: "Buy milk\nand tea".to_owned(),
            kind: "text",
            reply_to: None,
            forwarded_from: None,
            album: None,
            attachment: None,
            is_for_us: true,
            date: DateTime::from_timestamp(1_795_000_000, 0).unwrap(),
        }
    );
}

#[test]
fn only_listed_people_are_heard() {
    let text = |with: Value| {
        let mut body = message(json!({"text": "hi"}));
        let Value::Object(with) = with else { panic!("fields") };
        for (field, value) in with {
            body[field] = value;
        }
        body
    };
    let refused = [
        json!({"from": person(1), "chat": private(1)}),
        json!({"from": person(ANA), "chat": private(1)}),
        json!({"from": person(1), "chat": private(ANA)}),
        json!({"from": person(ANA), "chat": group(-5)}),
        json!({"from": person(1), "chat": group(GROUP)}),
        json!({"from": person(1_087_968_824), "chat": group(GROUP), "sender_chat": group(GROUP)}),
        json!({"from": person(ANA), "chat": group(GROUP), "sender_chat": group(GROUP)}),
        json!({"from": null, "chat": group(GROUP), "sender_chat": group(GROUP)}),
        json!({"from": person(ANA), "chat": {"id": GROUP, "type": "channel", "title": "News"}}),
        json!({"from": person(ANA), "chat": {"id": ANA, "type": "something new"}}),
    ];
    for with in refused {
        for kind in ["message", "edited_message", "business_message", "callback_query", "something_new"] {
            assert_eq!(read(kind, &text(with.clone())), ReadUpdate::Stranger, "{kind} {with}");
        }
    }
    let mut all = speakers();
    all.allowed.insert(1_087_968_824);
    let hidden = text(json!({"from": person(1_087_968_824), "chat": group(GROUP)}));
    assert_eq!(read_update(&small_update("message", &hidden), &all), ReadUpdate::Stranger, "even if someone lists it");
    assert!(matches!(read("message", &text(json!({"chat": group(GROUP)}))), ReadUpdate::Message(_)));
}

#[test]
fn the_same_rule_holds_for_updates_that_the_library_cannot_read() {
    let body = message(json!({"text": "hi", "from": person(1), "chat": private(1)}));
    let unread = update("message", &body);
    serde_json::from_str::<teloxide_core::types::Update>(unread.raw.get()).unwrap_err();
    assert_eq!(read_update(&unread, &speakers()), ReadUpdate::Stranger);
    let known = update("message", &message(json!({"text": "/help"})));
    assert!(matches!(read_update(&known, &speakers()), ReadUpdate::Command { command: Command::Help, .. }));
}

#[test]
fn only_the_senders_own_new_messages_run_commands() {
    let ReadUpdate::Command { command, args, message: from } = read("message", &message(json!({"text": "/start now"})))
    else {
        panic!("no command")
    };
    assert_eq!((command, args.as_str(), from.sender_id), (Command::Start, "now", ANA));
    assert!(matches!(read("edited_message", &message(json!({"text": "/start"}))), ReadUpdate::Edited(_)));
    let forwarded =
        json!({"text": "/start", "forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Bo"}});
    assert_eq!(read_message(forwarded).forwarded_from.as_deref(), Some("Bo"));
    assert_eq!(read_message(json!({"text": "/unheard me"})).text, "/unheard me");
    let elsewhere = json!({"text": "/status@other_bot", "chat": group(GROUP)});
    assert!(matches!(read("message", &message(elsewhere)), ReadUpdate::Ignored(_)));
}

#[test]
fn an_edit_keeps_the_message_it_belongs_to() {
    let ReadUpdate::Edited(edit) = read("edited_message", &message(json!({"text": "tea", "edit_date": 1_795_000_060})))
    else {
        panic!("no edit")
    };
    assert_eq!((edit.telegram_message_id, edit.text.as_str()), (Some(7), "tea"));
}

#[test]
fn media_become_words() {
    let file = |mut fields: Value| {
        fields["file_id"] = json!("F");
        fields["file_unique_id"] = json!("U");
        fields["file_size"] = json!(1234);
        fields
    };
    let photo = json!([file(json!({"width": 90, "height": 60}))]);
    let cases = [
        (json!({"voice": file(json!({"duration": 11, "mime_type": "audio/ogg"}))}), "voice", "[voice note, 11 s]"),
        (
            json!({"audio": file(json!({"duration": 200, "title": "T", "performer": "P", "mime_type": "audio/mpeg"})), "caption": "listen"}),
            "audio",
            "[audio file \"P – T\", 3 min 20 s]\nlisten",
        ),
        (json!({"video_note": file(json!({"duration": 60, "length": 240}))}), "video_note", "[video note, 1 min]"),
        (json!({"photo": photo, "caption": "the leak", "media_group_id": "A1"}), "photo", "[photo]\nthe leak"),
        (
            json!({"document": file(json!({"file_name": "a.pdf", "mime_type": "application/pdf"}))}),
            "document",
            "[file \"a.pdf\", application/pdf, 1234 bytes]",
        ),
        // As some systems write names: letter and diacritic as separate characters.
        (
            json!({"document": {"file_id": "F", "file_unique_id": "U", "file_name": "U\u{308}ber ❤️.txt"}}),
            "document",
            "[file \"U\u{308}ber ❤️.txt\"]",
        ),
        (json!({"location": {"latitude": 52.5, "longitude": 13.4}}), "location", "[location 52.50000, 13.40000]"),
        (
            json!({"location": {"latitude": 52.5, "longitude": 13.4, "live_period": 900}}),
            "location",
            "[live location 52.50000, 13.40000]",
        ),
        (
            json!({"venue": {"location": {"latitude": 1, "longitude": 2.5}, "title": "Café", "address": "Main St 1"},
                "location": {"latitude": 1, "longitude": 2.5}}),
            "venue",
            "[place Café, Main St 1 (1.00000, 2.50000)]",
        ),
        (
            json!({"checklist": {"title": "Shop", "tasks": [{"id": 1, "text": "milk"}, {"id": 2, "text": "tea"}]}}),
            "checklist",
            "[checklist Shop: milk; tea]",
        ),
        (
            json!({"checklist_tasks_done": {"marked_as_done_task_ids": [2, 9], "checklist_message": message(
                json!({"checklist": {"title": "Shop", "tasks": [{"id": 1, "text": "milk"}, {"id": 2, "text": "tea"}]}}))}}),
            "checklist_tasks_done",
            "[checklist, done: tea; task 9]",
        ),
        (json!({"story": {"chat": private(8), "id": 3}}), "story", "[story of Ana Lima]"),
        (
            json!({"paid_media": {"star_count": 5, "paid_media": [{"type": "preview"}, {"type": "preview"}]}, "caption": "mine"}),
            "paid_media",
            "[paid media: 2 items for 5 stars]\nmine",
        ),
        (
            json!({"gift": {"gift": {"id": "1", "sticker": sticker("🎁"), "star_count": 25}, "text": "for you"}}),
            "gift",
            "[gift 🎁 for 25 stars: for you]",
        ),
        (
            json!({"unique_gift": {"origin": "transfer", "gift": {"base_name": "Cap", "name": "Cap-7", "number": 7,
                "model": {"name": "M", "sticker": sticker("🧢"), "rarity_per_mille": 5},
                "symbol": {"name": "S", "sticker": sticker("⭐"), "rarity_per_mille": 5},
                "backdrop": {"name": "B", "rarity_per_mille": 5,
                    "colors": {"center_color": 1, "edge_color": 2, "symbol_color": 3, "text_color": 4}}}}}),
            "unique_gift",
            "[unique gift Cap #7]",
        ),
        (
            json!({"giveaway": {"chats": [], "winners_selection_date": 1, "winner_count": 3, "prize_star_count": 500}}),
            "giveaway",
            "[giveaway with 3 winners, 500 stars]",
        ),
        (
            json!({"users_shared": {"request_id": 1, "users": [{"user_id": 8, "first_name": "Bo"}]}}),
            "users_shared",
            "[shared people: Bo (8)]",
        ),
        (
            json!({"invoice": {"title": "Tea", "description": "a pound\nof it", "start_parameter": "", "currency": "EUR", "total_amount": 450}}),
            "invoice",
            "[invoice Tea: a pound of it, 450 EUR (in its smallest unit)]",
        ),
        (json!({"contact": {"phone_number": "+491234", "first_name": "Bo"}}), "contact", "[contact Bo, +491234]"),
        (json!({"dice": {"emoji": "🎲", "value": 4}}), "dice", "[dice 🎲: 4]"),
        (json!({"sticker": sticker("👍")}), "sticker", "[sticker 👍]"),
        (
            json!({"poll": {"id": "1", "question": "When?", "options": [{"text": "Mon", "voter_count": 0, "persistent_id": "0"}, {"text": "Tue", "voter_count": 0}],
                "total_voter_count": 0, "is_closed": false, "is_anonymous": true, "type": "regular", "allows_multiple_answers": false}}),
            "poll",
            "[poll: When? (Mon / Tue)]",
        ),
    ];
    for (content, kind, text) in cases {
        let got = read_message(content.clone());
        assert_eq!((got.kind, got.text.as_str()), (kind, text), "{content}");
        assert_eq!(got.album.as_deref(), content["media_group_id"].as_str());
    }
}

#[test]
fn nothing_a_listed_person_sends_is_dropped() {
    let ReadUpdate::Unsupported(got) = read("message", &message(json!({"hologram": {"x": 1}, "caption": "look"})))
    else {
        panic!("dropped")
    };
    assert_eq!((got.kind, got.text.as_str()), ("unsupported", "[unsupported message: hologram]\nlook"));
    let new_formatting = json!({"text": "hi", "entities": [{"type": "sparkle", "offset": 0, "length": 2}]});
    assert_eq!(read_message(new_formatting).text, "hi", "an unknown kind of formatting doesn't lose the text");
    let untyped = json!({"audio": {"file_id": "F", "file_unique_id": "U", "duration": 2}, "caption": "listen"});
    let got = read_message(untyped);
    assert_eq!((got.kind, got.text.as_str()), ("audio", "[audio file, 2 s]\nlisten"), "without the optional fields");
    let ReadUpdate::Unsupported(got) = read("smell", &message(json!({}))) else { panic!("dropped") };
    assert_eq!((got.text.as_str(), got.sender_id), ("[unsupported update: smell]", ANA));
    let external = json!({"text": "and this?", "external_reply": {"origin": {"type": "user", "date": 1, "sender_user": person(8)}, "photo": []}});
    let got = read_message(external);
    assert_eq!((got.text.as_str(), got.reply_to.unwrap().text.as_str()), ("and this?", "Ana Lima: [photo]"));
}

#[test]
fn updates_without_a_persons_words_are_ignored() {
    for (kind, body) in [
        ("message", message(json!({"pinned_message": message(json!({"text": "x"}))}))),
        ("message", message(json!({"new_chat_title": "x"}))),
        ("message", message(json!({"text": "x", "from": person(BOT)}))),
        (
            "channel_post",
            json!({"message_id": 1, "date": 1, "chat": {"id": -7, "type": "channel", "title": "N"}, "text": "x"}),
        ),
        ("poll", json!({"id": "1"})),
        (
            "message_reaction",
            json!({"chat": private(ANA), "message_id": 1, "user": person(ANA), "date": 1, "old_reaction": [], "new_reaction": []}),
        ),
    ] {
        assert!(matches!(read(kind, &body), ReadUpdate::Ignored(_)), "{kind} {body}");
    }
}

#[test]
fn topics_and_quotes_are_read() {
    let topic = json!({"message_id": 3, "date": 1, "chat": group(GROUP), "forum_topic_created": {"name": "T", "icon_color": 7322096}});
    let in_topic = json!({"text": "hi", "chat": group(GROUP), "is_topic_message": true, "message_thread_id": 3, "reply_to_message": topic});
    let got = read_message(in_topic);
    assert_eq!((got.thread_id, got.reply_to), (Some(3), None));
    assert_eq!(
        read_message(json!({"text": "hi", "chat": group(GROUP), "message_thread_id": 3})).thread_id,
        None,
        "a chain of replies"
    );
    let original = json!({"message_id": 2, "date": 1, "chat": private(ANA), "from": person(BOT), "text": "one\ntwo"});
    let got =
        read_message(json!({"text": "why?", "reply_to_message": original, "quote": {"text": "two", "position": 4}}));
    assert_eq!(
        got.reply_to,
        Some(Quoted {
            message_id: Some(2),
            sender_id: Some(BOT),
            text: "two".to_owned(),
            is_description: false,
            is_from_elsewhere: false
        })
    );
    let got = read_message(json!({"text": "why?", "reply_to_message": original}));
    assert_eq!(got.reply_to.unwrap().text, "one\ntwo");
}

#[test]
fn damaged_updates_never_panic() {
    for raw in [
        "{\"update_id\":1}",
        "{\"update_id\":1,\"message\":null}",
        "{\"update_id\":1,\"message\":{\"from\":{\"id\":\"x\"}}}",
    ] {
        let update = RawUpdate::parse(RawValue::from_string(raw.to_owned()).unwrap()).unwrap();
        assert!(matches!(read_update(&update, &speakers()), ReadUpdate::Ignored(_)), "{raw}");
    }
    assert!(RawUpdate::parse(RawValue::from_string("{\"id\":1}".to_owned()).unwrap()).is_none());
}

#[test]
fn a_forward_names_the_original_author() {
    let channel = json!({"id": -5, "type": "channel", "title": "News"});
    for (origin, name) in [
        (json!({"type": "user", "date": 1, "sender_user": person(8)}), "Ana Lima"),
        (json!({"type": "hidden_user", "date": 1, "sender_user_name": "Bo\nB"}), "Bo B"),
        (json!({"type": "chat", "date": 1, "sender_chat": group(-8), "author_signature": "Cy"}), "Home (Cy)"),
        (json!({"type": "channel", "date": 1, "chat": channel, "message_id": 3}), "News"),
        (
            json!({"type": "channel", "date": 1, "chat": channel, "message_id": 3, "author_signature": "Di"}),
            "News (Di)",
        ),
        (json!({"type": "oracle", "date": 1}), "someone"),
    ] {
        assert_eq!(
            read_message(json!({"text": "buy!", "forward_origin": origin})).forwarded_from.as_deref(),
            Some(name)
        );
    }
    let inline = read_message(json!({"text": "buy!", "via_bot": {"id": 3, "is_bot": true, "first_name": "Gifs"}}));
    assert_eq!(inline.forwarded_from.as_deref(), Some("Gifs"));
}

#[test]
fn a_reply_includes_the_text_it_replies_to() {
    let original = |with: Value| {
        let mut original = json!({"message_id": 2, "date": 1, "chat": private(ANA), "from": person(BOT)});
        original.as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        original
    };
    let quoted = |with: Value| {
        let quoted = read_message(with).reply_to.unwrap();
        (quoted.text, quoted.is_description)
    };
    let voice = json!({"voice": {"file_id": "F", "file_unique_id": "U", "duration": 4}});
    let list = json!({"checklist": {"title": "Shop", "tasks": [{"id": 1, "text": "milk"}, {"id": 2, "text": "tea"}]}});
    for (with, text, is_description) in [
        (json!({"reply_to_message": original(json!({"text": "Done."}))}), "Done.", false),
        (json!({"reply_to_message": original(voice)}), "[voice note, 4 s]", true),
        (json!({"reply_to_message": original(json!({"hologram": {}}))}), "[hologram]", true),
        (json!({"reply_to_message": original(json!({}))}), "", true),
        (json!({"reply_to_message": original(list), "reply_to_checklist_task_id": 2}), "tea", false),
        (json!({"reply_to_story": {"chat": private(8), "id": 3}}), "[story of Ana Lima]", true),
        (
            json!({"external_reply": {"origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Bo"}},
                "quote": {"text": "two", "position": 4, "is_manual": true}}),
            "Bo: two",
            false,
        ),
    ] {
        let mut with = with;
        with["text"] = json!("why?");
        assert_eq!(quoted(with.clone()), (text.to_owned(), is_description), "{with}");
    }
}

/// The library's message types keep fewer fields and drop unknown ones. Each case shows the library's loss beside the kept text.
#[test]
fn what_the_library_would_lose_is_kept() {
    let from_bo = json!({"type": "hidden_user", "date": 1, "sender_user_name": "Bo"});
    let original = json!({"message_id": 2, "date": 1, "chat": private(ANA), "from": person(BOT), "text": "Roll?"});
    let dice = json!({"emoji": "🎲", "value": 4});
    let lost = |with: &Value, read: fn(&teloxide_core::types::Message) -> bool| {
        use teloxide_core::types::{Update, UpdateKind};
        let update: Update = serde_json::from_str(small_update("message", &message(with.clone())).raw.get()).unwrap();
        !matches!(update.kind, UpdateKind::Message(message) if read(&message))
    };
    let forwarded = json!({"dice": dice, "forward_origin": from_bo});
    assert!(lost(&forwarded, |message| message.forward_origin().is_some()));
    assert_eq!(read_message(forwarded).forwarded_from.as_deref(), Some("Bo"), "somebody else's throw");
    let quoted_forward =
        json!({"text": "why?", "reply_to_message": message(json!({"dice": dice, "forward_origin": from_bo}))});
    assert!(read_message(quoted_forward).reply_to.unwrap().is_from_elsewhere);
    let answer = json!({"dice": dice, "reply_to_message": original});
    assert!(lost(&answer, |message| message.reply_to_message().is_some()));
    assert_eq!(read_message(answer).reply_to.unwrap().text, "Roll?");
    // The text replied to is in another chat, and so the library loses the message.
    let elsewhere =
        json!({"text": "and this?", "external_reply": {"origin": from_bo}, "quote": {"text": "buy", "position": 0}});
    assert!(lost(&elsewhere, |message| message.text().is_some()));
    let got = read_message(elsewhere);
    let quoted = got.reply_to.unwrap();
    assert_eq!((got.text.as_str(), quoted.text.as_str(), quoted.is_from_elsewhere), ("and this?", "Bo: buy", true));
}

#[test]
fn ids_beyond_the_librarys_types_are_read() {
    let with = json!({"text": "hi", "message_id": 3_000_000_000_i64, "message_thread_id": 4_000_000_000_i64,
        "is_topic_message": true, "chat": group(GROUP), "reply_to_message": {"message_id": 5_000_000_000_i64,
        "date": 1, "chat": group(GROUP), "from": person(BOT), "text": "Done."}});
    let ReadUpdate::Message(got) = read_update(&update("message", &message(with)), &speakers()) else {
        panic!("dropped")
    };
    assert_eq!((got.telegram_message_id, got.thread_id), (Some(3_000_000_000), Some(4_000_000_000)));
    assert_eq!((got.text.as_str(), got.sender_id, got.is_for_us), ("hi", ANA, true));
    assert_eq!(got.reply_to.unwrap().message_id, Some(5_000_000_000));
}

#[test]
fn other_peoples_words_and_names_are_bounded() {
    let long = "é".repeat(9_000);
    let original = json!({"message_id": 2, "date": 1, "chat": private(ANA), "from": person(BOT), "text": long});
    let origin = json!({"type": "hidden_user", "date": 1, "sender_user_name": long});
    let got = read_message(json!({"text": "why?", "reply_to_message": original, "forward_origin": origin}));
    let chars = |text: Option<String>| text.unwrap().chars().count();
    assert_eq!((chars(got.reply_to.map(|quoted| quoted.text)), chars(got.forwarded_from)), (1_000, 128));
    assert!(read_message(json!({"sticker": sticker(&long)})).text.chars().count() < 300);
}

#[test]
fn only_the_unreadable_field_is_lost() {
    let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
    for damage in [deep.as_str(), "1e999", "\"\\ud83d\"", "123456789012345678901234567890"] {
        let read = |field: &str| {
            let raw = format!(
                "{{\"update_id\":1,\"message\":{{\"message_id\":7,\"date\":1,\"from\":{},\"chat\":{},\"text\":\"hi\",{field:?}:{damage}}}}}",
                person(ANA),
                private(ANA)
            );
            read_update(&RawUpdate::parse(RawValue::from_string(raw).unwrap()).unwrap(), &speakers())
        };
        let ReadUpdate::Message(got) = read("effect") else { panic!("{damage:.20} cost a message") };
        assert_eq!(got.text, "hi");
        // A message whose text is unreadable is kept as unsupported.
        let raw = format!(
            "{{\"update_id\":1,\"message\":{{\"message_id\":7,\"date\":1,\"from\":{},\"chat\":{},\"text\":{damage}}}}}",
            person(ANA),
            private(ANA)
        );
        let unread = read_update(&RawUpdate::parse(RawValue::from_string(raw).unwrap()).unwrap(), &speakers());
        assert!(matches!(unread, ReadUpdate::Unsupported(_)), "{damage:.20}: {unread:?}");
    }
}
