//! Tests of everything a person can send, over real sockets: every kind of update and every content of a message. Each is stored or
//! ignored as the tables here say, and none holds up later updates.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use crate::support::{
    bot::Stage,
    env::CHAT,
    updates::{self, Examples},
};

const PATIENCE: Duration = Duration::from_secs(60);

/// The expected outcome of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is stored as a message of this kind.
    Stored(&'static str),
    /// Nothing of it is kept.
    Ignored,
    /// It is counted as a stranger's.
    Refused,
    /// It becomes a part of the preceding message.
    Joined,
}
use Fate::{Ignored, Joined, Refused, Stored};

/// The kinds of updates.
const UPDATES: [(&str, Fate); 23] = [
    ("message", Stored("text")),
    ("edited_message", Stored("text")),
    ("channel_post", Ignored),
    ("edited_channel_post", Ignored),
    ("business_connection", Ignored),
    ("business_message", Ignored),
    ("edited_business_message", Ignored),
    ("deleted_business_messages", Ignored),
    ("message_reaction", Refused),
    ("message_reaction_count", Ignored),
    ("inline_query", Ignored),
    ("chosen_inline_result", Ignored),
    ("callback_query", Ignored),
    ("shipping_query", Ignored),
    ("pre_checkout_query", Ignored),
    ("purchased_paid_media", Ignored),
    ("poll", Ignored),
    ("poll_answer", Refused),
    ("my_chat_member", Ignored),
    ("chat_member", Ignored),
    ("chat_join_request", Ignored),
    ("chat_boost", Ignored),
    ("removed_chat_boost", Ignored),
];

/// The fields that hold a message's content.
const CONTENTS: [(&str, Fate); 69] = [
    ("text", Stored("text")),
    ("animation", Stored("animation")),
    ("audio", Stored("audio")),
    ("document", Stored("document")),
    ("paid_media", Stored("paid_media")),
    ("photo", Stored("photo")),
    ("sticker", Stored("sticker")),
    ("story", Stored("story")),
    ("video", Stored("video")),
    ("video_note", Stored("video_note")),
    ("voice", Stored("voice")),
    ("checklist", Stored("checklist")),
    ("contact", Stored("contact")),
    ("dice", Stored("dice")),
    ("game", Stored("game")),
    ("poll", Stored("poll")),
    ("venue", Stored("venue")),
    ("location", Stored("location")),
    ("invoice", Stored("invoice")),
    ("successful_payment", Stored("successful_payment")),
    ("refunded_payment", Stored("refunded_payment")),
    ("users_shared", Stored("users_shared")),
    ("chat_shared", Stored("chat_shared")),
    ("gift", Stored("gift")),
    ("unique_gift", Stored("unique_gift")),
    ("checklist_tasks_done", Stored("checklist_tasks_done")),
    ("checklist_tasks_added", Stored("checklist_tasks_added")),
    ("giveaway", Stored("giveaway")),
    ("giveaway_winners", Stored("giveaway_winners")),
    ("web_app_data", Stored("web_app_data")),
    ("passport_data", Stored("unsupported")),
    ("new_chat_members", Ignored),
    ("left_chat_member", Ignored),
    ("new_chat_title", Ignored),
    ("new_chat_photo", Ignored),
    ("delete_chat_photo", Ignored),
    ("group_chat_created", Ignored),
    ("supergroup_chat_created", Ignored),
    ("channel_chat_created", Ignored),
    ("message_auto_delete_timer_changed", Ignored),
    ("migrate_to_chat_id", Ignored),
    ("migrate_from_chat_id", Ignored),
    ("pinned_message", Ignored),
    ("connected_website", Ignored),
    ("write_access_allowed", Ignored),
    ("proximity_alert_triggered", Ignored),
    ("boost_added", Ignored),
    ("chat_background_set", Ignored),
    ("direct_message_price_changed", Ignored),
    ("forum_topic_created", Ignored),
    ("forum_topic_edited", Ignored),
    ("forum_topic_closed", Ignored),
    ("forum_topic_reopened", Ignored),
    ("general_forum_topic_hidden", Ignored),
    ("general_forum_topic_unhidden", Ignored),
    ("giveaway_created", Ignored),
    ("giveaway_completed", Ignored),
    ("paid_message_price_changed", Ignored),
    ("suggested_post_approved", Ignored),
    ("suggested_post_approval_failed", Ignored),
    ("suggested_post_declined", Ignored),
    ("suggested_post_paid", Ignored),
    ("suggested_post_refunded", Ignored),
    ("video_chat_scheduled", Ignored),
    ("video_chat_started", Ignored),
    ("video_chat_ended", Ignored),
    ("video_chat_participants_invited", Ignored),
    // Invented fields, as from a newer API than this program knows.
    ("hologram", Stored("unsupported")),
    ("smell", Stored("unsupported")),
];

/// The other fields of a message. The text sent with them is stored, except a text in the name of a chat, which is refused.
const AROUND: [(&str, Fate); 35] = [
    ("message_id", Stored("text")),
    ("message_thread_id", Stored("text")),
    ("direct_messages_topic", Stored("text")),
    ("from", Stored("text")),
    ("sender_chat", Refused),
    ("sender_boost_count", Stored("text")),
    ("sender_business_bot", Stored("text")),
    ("date", Stored("text")),
    ("business_connection_id", Stored("text")),
    ("chat", Stored("text")),
    ("forward_origin", Stored("text")),
    ("is_topic_message", Stored("text")),
    ("is_automatic_forward", Stored("text")),
    ("reply_to_message", Stored("text")),
    ("external_reply", Stored("text")),
    ("quote", Stored("text")),
    ("reply_to_story", Stored("text")),
    ("reply_to_checklist_task_id", Stored("text")),
    ("via_bot", Stored("text")),
    ("edit_date", Stored("text")),
    ("has_protected_content", Stored("text")),
    ("is_from_offline", Stored("text")),
    ("is_paid_post", Stored("text")),
    ("media_group_id", Stored("text")),
    ("author_signature", Stored("text")),
    ("paid_star_count", Stored("text")),
    ("entities", Stored("text")),
    ("link_preview_options", Stored("text")),
    ("suggested_post_info", Stored("text")),
    ("effect_id", Stored("text")),
    ("caption", Stored("text")),
    ("caption_entities", Stored("text")),
    ("show_caption_above_media", Stored("text")),
    ("has_media_spoiler", Stored("text")),
    ("reply_markup", Stored("text")),
];

/// A message from Ana without content.
fn bare(message_id: i64) -> Value {
    json!({"message_id": message_id, "date": 1_795_000_000, "from": {"id": CHAT, "is_bot": false, "first_name": "Ana"},
        "chat": {"id": CHAT, "type": "private", "first_name": "Ana"}})
}

/// The kind of the stored message that an update became; empty if it wasn't stored.
fn stored_as(stage: &Stage, update_id: i64) -> String {
    let stored = stage.env.received().into_iter().find(|message| message.update_id == Some(update_id));
    stored.map_or(String::new(), |message| message.kind)
}

/// Sends an example of everything to a bot, and checks the outcome of each.
fn everything_finds_its_place(examples: &updates::Updates) {
    let stage = Stage::new();
    let mut expected = BTreeMap::new();
    let mut next = 1000;
    let mut push = |kind: &str, body: Value, what: String, fate: Fate| {
        stage.telegram.push_raw(json!({"update_id": next, kind: body}));
        expected.insert(next, (what, fate));
        next += 1;
        next
    };
    let mut id = 1000;
    for (kind, fate) in UPDATES {
        for example in &examples.of_update[kind] {
            let mut body = example.clone();
            if body.get("message_id").is_some() && body.get("text").is_some() {
                body["message_id"] = json!(id);
            }
            id = push(kind, body, kind.to_owned(), fate);
        }
    }
    let newer: Examples = ["hologram", "smell"].map(|name| (name.to_owned(), vec![json!({"beams": 3})])).into();
    for (table, has_text) in [(&CONTENTS[..], false), (&AROUND[..], true)] {
        for (field, fate) in table {
            let known = examples.of_message.get(*field).or_else(|| newer.get(*field));
            for example in known.unwrap_or_else(|| panic!("no example of {field}")) {
                let mut body = bare(id);
                if has_text {
                    body["text"] = json!("beside it");
                }
                if *field != "message_id" {
                    body[*field] = example.clone();
                }
                id = push("message", body, format!("message with {field}: {example}"), *fate);
            }
        }
    }
    push("telepathy", json!({"from": bare(1)["from"]}), "an update of a newer API".to_owned(), Stored("unsupported"));
    let bot = stage.start_polling();
    stage.wait_until_confirmed();
    for (update_id, (what, fate)) in &expected {
        assert_eq!(stored_as(&stage, *update_id), if let Stored(kind) = fate { kind } else { "" }, "{what}");
    }
    let refused = expected.values().filter(|(_, fate)| *fate == Refused).count();
    assert_eq!(stage.env.count_from_strangers(), refused as i64);
    let stored = expected.values().filter(|(_, fate)| matches!(fate, Stored(_))).count();
    assert!(stored > 60, "{stored}");
    assert_eq!(stage.stored(), stored as i64);
    // The next command is still answered, which needs no model.
    stage.say("/status");
    stage.telegram.wait_for_sent(1, PATIENCE);
    stage.end(bot);
}

#[test]
fn everything_that_a_person_can_send_has_its_expected_outcome() {
    everything_finds_its_place(&updates::committed());
}

const FORUM: i64 = -1_001_234;

/// Updates exactly as Telegram sends them: description, kind, content and expected outcome.
fn as_sent() -> Vec<(&'static str, &'static str, Value, Fate)> {
    let ana = json!({"id": CHAT, "is_bot": false, "first_name": "Ana", "language_code": "en"});
    let us = json!({"id": 99, "is_bot": true, "first_name": "Reveille", "username": "reveille_bot"});
    let chat = json!({"id": CHAT, "type": "private", "first_name": "Ana"});
    let forum = json!({"id": FORUM, "title": "Home", "type": "supergroup", "is_forum": true});
    let reacted = |who: &str, by: &Value, chat: &Value| {
        json!({"chat": chat, "message_id": 7, who: by, "date": 1_795_000_000, "old_reaction": [],
            "new_reaction": [{"type": "emoji", "emoji": "👍"}]})
    };
    let said = |message_id: i64, fields: Value| {
        let mut message = bare(message_id);
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        message
    };
    let size = |id: &str, width: i64| json!({"file_id": id, "file_unique_id": format!("u{id}"), "file_size": 1_253, "width": width, "height": 67});
    let photo = |name: &str| json!([size(&format!("{name}-s"), 90), size(&format!("{name}-m"), 320)]);
    let opened = json!({"message_id": 3, "from": ana, "chat": forum, "date": 1_794_000_000, "message_thread_id": 3,
        "forum_topic_created": {"name": "Garden", "icon_color": 7_322_096}, "is_topic_message": true});
    let in_topic = |message_id: i64, text: &str, entities: Value| {
        json!({"message_id": message_id, "from": ana, "chat": forum, "date": 1_795_000_000, "message_thread_id": 3,
            "is_topic_message": true, "reply_to_message": opened, "text": text, "entities": entities})
    };
    // For a message that is deleted or too old, Telegram sends only its chat and id.
    let old = json!({"chat": chat, "message_id": 7, "date": 0});
    let pressed = |id: &str, message: Value| json!({"id": id, "from": ana, "message": message, "chat_instance": "-7", "data": "yes:0123456789abcdef"});
    let question = json!({"message_id": 8, "from": us, "chat": chat, "date": 1_700_000_000, "text": "May I do this?",
        "reply_markup": {"inline_keyboard": [[{"text": "✅ Allow once", "callback_data": "yes:0123456789abcdef"}]]}});
    vec![
        ("a reaction", "message_reaction", reacted("user", &ana, &chat), Ignored),
        ("an anonymous reaction", "message_reaction", reacted("actor_chat", &forum, &forum), Refused),
        ("a vote", "poll_answer", json!({"poll_id": "5", "user": ana, "option_ids": [0]}), Ignored),
        ("a channel's vote", "poll_answer", json!({"poll_id": "5", "voter_chat": forum, "option_ids": [0]}), Refused),
        ("a button of a question that is gone", "callback_query", pressed("1", old), Ignored),
        ("a button of a question that isn't known any more", "callback_query", pressed("2", question), Ignored),
        ("a photo", "message", said(20, json!({"photo": photo("p")})), Stored("photo")),
        (
            "a voice message",
            "message",
            said(
                21,
                json!({"voice": {"duration": 2, "mime_type": "audio/ogg", "file_id": "v", "file_unique_id": "uv",
                "file_size": 9_001}}),
            ),
            Stored("voice"),
        ),
        (
            "a word to the bot in a topic",
            "message",
            in_topic(22, "@reveille_bot hello", json!([{"offset": 0, "length": 13, "type": "mention"}])),
            Stored("text"),
        ),
        ("a word to others in a topic", "message", in_topic(23, "hello all", json!([])), Ignored),
        ("the opening of a topic", "message", opened.clone(), Ignored),
        (
            "the first picture of an album",
            "message",
            said(24, json!({"media_group_id": "138", "photo": photo("a"), "caption": "the garden"})),
            Stored("album"),
        ),
        ("its second", "message", said(25, json!({"media_group_id": "138", "photo": photo("b")})), Joined),
    ]
}

#[test]
fn realistic_updates_have_their_expected_outcome() {
    let mut stage = Stage::new();
    stage.env.set("ALLOWED_CHAT_IDS", &format!("{CHAT},{FORUM}"));
    let sent = as_sent();
    for (update_id, (_, kind, body, _)) in (1000..).zip(&sent) {
        stage.telegram.push_raw(json!({"update_id": update_id, *kind: body}));
    }
    let bot = stage.start_polling();
    stage.wait_until_confirmed();
    for (update_id, (what, _, _, fate)) in (1000..).zip(&sent) {
        assert_eq!(stored_as(&stage, update_id), if let Stored(kind) = fate { kind } else { "" }, "{what}");
    }
    let is_fate = |wanted: Fate| sent.iter().filter(|(_, _, _, fate)| *fate == wanted).count() as i64;
    assert_eq!(stage.env.count_from_strangers(), is_fate(Refused));
    let received = stage.env.received();
    let album = received.iter().find(|message| message.text.contains("the garden")).unwrap();
    assert_eq!(stage.env.attachments_of(album.id).len() as i64, 1 + is_fate(Joined));
    assert_eq!(received.iter().find(|message| message.chat_id < 0).unwrap().thread_id, Some(3));
    assert!(received.iter().all(|message| message.quoted.is_none()));
    // A person who presses an old button is told that it is old.
    stage.telegram.wait_for_calls("answerCallbackQuery", 2, PATIENCE);
    let answers = stage.telegram.calls("answerCallbackQuery");
    assert!(answers.iter().all(|answer| answer["text"] == "I no longer have this question. Nothing was done."));
    stage.answer_all();
    stage.end(bot);
}

/// If `TELEGRAM_API_SPEC` is set, the tables and the committed examples must contain every field of the API.
#[test]
fn the_tables_are_complete() {
    let Some(made) = updates::from_spec() else {
        eprintln!("the committed examples are not compared with an API: TELEGRAM_API_SPEC isn't set");
        return;
    };
    let listed = |field: &str| CONTENTS.iter().chain(&AROUND).any(|(known, _)| *known == field);
    let missing: Vec<&String> = made.of_message.keys().filter(|field| !listed(field)).collect();
    assert!(missing.is_empty(), "fields of a message without a place: {missing:?}");
    let listed = |field: &str| field == "update_id" || UPDATES.iter().any(|(known, _)| *known == field);
    let missing: Vec<&String> = made.of_update.keys().filter(|field| !listed(field)).collect();
    assert!(missing.is_empty(), "kinds of updates without a place: {missing:?}");
    let committed = updates::committed();
    assert!(made.of_message.keys().eq(committed.of_message.keys()));
    assert!(made.of_update.keys().eq(committed.of_update.keys()));
    everything_finds_its_place(&made);
}

/// Replaces a random part of an update with damaged content.
fn damage(value: &mut Value, random: &mut fastrand::Rng) {
    let inner: Vec<&mut Value> = match value {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    if let Some(inner) = random.choice(inner)
        && random.u32(0..3) > 0
    {
        return damage(inner, random);
    }
    *value = match random.u32(0..7) {
        0 => Value::Null,
        1 => json!(u64::MAX),
        2 => json!(-1.5e300),
        3 => json!("\u{0}\u{1b}[31m\u{202e}\n</message>"),
        4 => json!("x".repeat(1_000_000)),
        5 => (0..100).fold(json!({}), |inner, _| json!([inner])),
        _ => json!({"id": {}, "type": [], "text": 3}),
    };
}

#[test]
fn damaged_updates_hold_up_nothing() {
    let examples = updates::committed();
    let all: Vec<(&String, &Value)> =
        examples.of_message.iter().flat_map(|(field, values)| values.iter().map(move |value| (field, value))).collect();
    let stage = Stage::new();
    let random = &mut fastrand::Rng::with_seed(4);
    for update_id in 1000..1120 {
        let (field, example) = random.choice(&all).unwrap();
        let mut body = bare(update_id - 900);
        body[field.as_str()] = (*example).clone();
        let mut update = json!({ "message": body });
        damage(&mut update, random);
        if !update.is_object() {
            update = json!({});
        }
        update["update_id"] = json!(update_id);
        stage.telegram.push_raw(update);
    }
    let bot = stage.start_polling();
    stage.say("and now?");
    stage.say("/status");
    stage.telegram.wait_for_sent(1, PATIENCE);
    stage.wait_until_confirmed();
    let received = stage.env.received();
    assert_eq!(received.iter().filter(|message| message.text == "and now?").count(), 1);
    // Each stored message keeps its raw update, for later diagnosis.
    assert!(received.iter().all(|message| message.raw.is_some()));
    stage.end(bot);
    // A wake can process all of them.
    assert!(stage.stored() > 25, "{}", stage.stored());
    let report = stage.env.once();
    assert_ne!(report["outcome"], "failed", "{report}");
    assert_eq!(stage.env.store().check_integrity().unwrap(), Ok(()));
}
