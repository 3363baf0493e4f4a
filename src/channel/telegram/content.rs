//! What a message says, as text: its words, or a short description of what was sent instead of words. Read from the raw JSON,
//! so that a field that a library lacks, or takes for granted, costs nobody a message.

use serde_json::Value;

use super::envelope::{list, one_line, person_name};

/// The longest name, title or option that is shown in a description, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Of a poll's options, a checklist's tasks or shared contacts, this many are listed.
const LISTED_MAX: usize = 100;

/// What a message's content is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageContent {
    /// Something that a person said.
    Said {
        /// `text`, `voice`, `photo` and so on, as the Bot API names the field.
        kind: &'static str,
        /// The words; for anything else its description in brackets, the caption below it.
        text: String,
    },
    /// Telegram's own note that something happened in the chat.
    Service,
    /// Nothing that this program knows.
    Unknown,
}

/// Describes the value of a field in words.
type Describe = fn(&Value) -> String;

/// The fields that carry what a person sent. Where two stand in one message (an animation is a document, too, a venue has a
/// location) the first counts.
const SAID: [(&str, Describe); 29] = [
    ("voice", |it| format!("voice note{}", length(it))),
    ("video_note", |it| format!("video note{}", length(it))),
    ("video", |it| format!("video{}", length(it))),
    ("animation", |it| format!("animation{}", length(it))),
    ("audio", audio),
    ("photo", |_| "photo".to_owned()),
    ("document", document),
    ("sticker", |it| format!("sticker {}", name(it, "emoji"))),
    ("venue", venue),
    ("location", |it| {
        format!("{} {}", if it["live_period"].is_null() { "location" } else { "live location" }, point(it))
    }),
    ("contact", contact),
    ("poll", poll),
    ("dice", |it| format!("dice {}: {}", name(it, "emoji"), number(it, "value"))),
    ("checklist", checklist),
    ("checklist_tasks_done", |it| checklist_change(it, "marked_as_done_task_ids", "done")),
    ("checklist_tasks_added", |it| format!("added to a checklist: {}", names(&it["tasks"], "text", "; "))),
    ("game", |it| format!("game {}: {}", name(it, "title"), name(it, "description"))),
    ("story", |it| format!("story of {}", person_name(&it["chat"]))),
    ("paid_media", |it| format!("paid media: {} for {} stars", media_count(it), number(it, "star_count"))),
    ("gift", gift),
    ("unique_gift", |it| format!("unique gift {} #{}", name(&it["gift"], "base_name"), number(&it["gift"], "number"))),
    ("giveaway", giveaway),
    ("giveaway_winners", |it| format!("giveaway's winners: {}", people(&it["winners"]))),
    ("invoice", |it| format!("invoice {}: {}, {}", name(it, "title"), name(it, "description"), amount(it))),
    ("successful_payment", |it| format!("payment of {}", amount(it))),
    ("refunded_payment", |it| format!("refund of {}", amount(it))),
    ("users_shared", |it| format!("shared people: {}", people(&it["users"]))),
    ("chat_shared", |it| format!("shared chat {} ({})", name(it, "title"), number(it, "chat_id"))),
    ("web_app_data", |it| format!("sent by the button {}: {}", name(it, "button_text"), name(it, "data"))),
];

/// The fields of Telegram's own notes.
const SERVICE: [&str; 43] = [
    "new_chat_members",
    "left_chat_member",
    "new_chat_title",
    "new_chat_photo",
    "delete_chat_photo",
    "group_chat_created",
    "supergroup_chat_created",
    "channel_chat_created",
    "message_auto_delete_timer_changed",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "pinned_message",
    "connected_website",
    "write_access_allowed",
    "proximity_alert_triggered",
    "boost_added",
    "chat_background_set",
    "direct_message_price_changed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_closed",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "giveaway_created",
    "giveaway_completed",
    "paid_message_price_changed",
    "suggested_post_approved",
    "suggested_post_approval_failed",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "video_chat_scheduled",
    "video_chat_started",
    "video_chat_ended",
    "video_chat_participants_invited",
    // As they were called before; servers of one's own can be old.
    "voice_chat_scheduled",
    "voice_chat_started",
    "voice_chat_ended",
    "voice_chat_participants_invited",
    "new_chat_participant",
    "left_chat_participant",
    "new_chat_member",
];

/// Reads the content of a message.
pub(super) fn read(message: &Value) -> MessageContent {
    if let Some(text) = message["text"].as_str() {
        return MessageContent::Said { kind: "text", text: text.to_owned() };
    }
    if let Some((kind, describe)) = SAID.iter().find(|(kind, _)| !message[*kind].is_null()) {
        let description = one_line(describe(&message[*kind]).trim(), usize::MAX);
        return MessageContent::Said { kind, text: described(&description, message["caption"].as_str()) };
    }
    if SERVICE.iter().any(|field| !message[*field].is_null()) {
        MessageContent::Service
    } else {
        MessageContent::Unknown
    }
}

/// A description in brackets, and the caption below it.
pub(super) fn described(description: &str, caption: Option<&str>) -> String {
    match caption {
        Some(caption) if !caption.is_empty() => format!("[{description}]\n{caption}"),
        _ => format!("[{description}]"),
    }
}

fn name(of: &Value, field: &str) -> String {
    one_line(of[field].as_str().unwrap_or_default().trim(), NAME_CHARS_MAX)
}

fn number(of: &Value, field: &str) -> i64 {
    of[field].as_i64().unwrap_or_default()
}

/// The same field of each of a list.
fn names(all: &Value, field: &str, between: &str) -> String {
    list(all).iter().take(LISTED_MAX).map(|one| name(one, field)).collect::<Vec<_>>().join(between)
}

fn people(all: &Value) -> String {
    let each = list(all).iter().take(LISTED_MAX).map(|one| {
        let id = one["user_id"].as_i64().or(one["id"].as_i64()).unwrap_or_default();
        format!("{} ({id})", person_name(one)).trim().to_owned()
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A duration for people.
fn length(of: &Value) -> String {
    let Some(seconds) = of["duration"].as_i64() else { return String::new() };
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!(", {seconds} s"),
        (minutes, 0) => format!(", {minutes} min"),
        (minutes, seconds) => format!(", {minutes} min {seconds} s"),
    }
}

fn audio(it: &Value) -> String {
    let named = ["performer", "title", "file_name"].map(|field| name(it, field));
    let named: Vec<&str> = named.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let name = if named.is_empty() { String::new() } else { format!(" \"{}\"", named.join(" – ")) };
    format!("audio file{name}{}", length(it))
}

fn document(it: &Value) -> String {
    let name = match name(it, "file_name") {
        name if name.is_empty() => "without a name".to_owned(),
        name => format!("\"{name}\""),
    };
    let mime = it["mime_type"].as_str().map(|mime| format!(", {}", one_line(mime, NAME_CHARS_MAX)));
    let bytes = it["file_size"].as_i64().map(|bytes| format!(", {bytes} bytes"));
    format!("file {name}{}{}", mime.unwrap_or_default(), bytes.unwrap_or_default())
}

fn point(it: &Value) -> String {
    let degrees = |field: &str| it[field].as_f64().unwrap_or_default();
    format!("{:.5}, {:.5}", degrees("latitude"), degrees("longitude"))
}

fn venue(it: &Value) -> String {
    format!("place {}, {} ({})", name(it, "title"), name(it, "address"), point(&it["location"]))
}

fn contact(it: &Value) -> String {
    let named = format!("{} {}", name(it, "first_name"), name(it, "last_name"));
    format!("contact {}, {}", named.trim(), name(it, "phone_number"))
}

fn poll(it: &Value) -> String {
    let what = if it["type"] == "quiz" { "quiz" } else { "poll" };
    format!("{what}: {} ({})", name(it, "question"), names(&it["options"], "text", " / "))
}

fn checklist(it: &Value) -> String {
    format!("checklist {}: {}", name(it, "title"), names(&it["tasks"], "text", "; "))
}

/// Tasks of a checklist by their numbers, which stand in the message that is spoken of.
fn checklist_change(it: &Value, field: &str, what: &str) -> String {
    let tasks = list(it.pointer("/checklist_message/checklist/tasks").unwrap_or(&Value::Null));
    let of_number = |id: &Value| tasks.iter().find(|task| task["id"] == *id).map(|task| name(task, "text"));
    let each = list(&it[field]).iter().take(LISTED_MAX).map(|id| of_number(id).unwrap_or_else(|| format!("task {id}")));
    format!("checklist, {what}: {}", each.collect::<Vec<_>>().join("; "))
}

fn media_count(it: &Value) -> String {
    match list(&it["paid_media"]).len() {
        1 => "1 item".to_owned(),
        n => format!("{n} items"),
    }
}

fn gift(it: &Value) -> String {
    let said = name(it, "text");
    let said = if said.is_empty() { said } else { format!(": {said}") };
    let gift = &it["gift"];
    format!("gift {} for {} stars{said}", name(&gift["sticker"], "emoji"), number(gift, "star_count"))
}

fn giveaway(it: &Value) -> String {
    let prize = match (name(it, "prize_description"), it["prize_star_count"].as_i64()) {
        (prize, _) if !prize.is_empty() => format!(", {prize}"),
        (_, Some(stars)) => format!(", {stars} stars"),
        _ => String::new(),
    };
    format!("giveaway with {} winners{prize}", number(it, "winner_count"))
}

/// Money in the smallest unit of its currency, as the Bot API counts it.
fn amount(it: &Value) -> String {
    format!("{} {} (in its smallest unit)", number(it, "total_amount"), name(it, "currency"))
}
