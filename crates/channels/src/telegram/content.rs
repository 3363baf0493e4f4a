//! The content of a message as text: its words, or a short description of other content.

use serde::Serialize;
use serde_json::Value;
use teloxide_core::types::{
    Audio, ChecklistTask, Contact, Document, GiftInfo, Giveaway, Location, MediaKind, MessageKind, Poll, PollType,
    Seconds, SharedUser, User,
};

use super::said::{ReadMessage, chat_name, name as person_name, one_line, user_name};

/// The maximum length of a name, title or option in a description, in characters.
const NAME_CHARS_MAX: usize = 200;
/// The maximum number of listed poll options, checklist tasks or contacts.
const LISTED_MAX: usize = 100;

/// The content of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageContent {
    /// Content from a person.
    Said {
        /// `text`, `voice`, `photo` and so on, as named by the Bot API.
        kind: &'static str,
        /// The words, or a description in brackets with the caption below.
        text: String,
    },
    /// A service message about the chat.
    Service,
    /// Unknown content.
    Unknown,
}

/// The prefixes of service messages that the library doesn't know: newer ones, and messages about members and calls from old
/// self-hosted servers.
const SERVICE: [&str; 4] = ["suggested_post_", "voice_chat_", "new_chat_", "left_chat_"];

/// Reads the content of a message.
pub(super) fn read(said: &ReadMessage) -> MessageContent {
    use {MediaKind as Media, MessageKind as Kind};
    let text = |text: &str| MessageContent::Said { kind: "text", text: text.to_owned() };
    let (kind, description) = match &said.kind {
        Kind::Common(common) => match &common.media_kind {
            Media::Voice(it) => ("voice", format!("voice note{}", format_duration(it.voice.duration))),
            Media::VideoNote(it) => ("video_note", format!("video note{}", format_duration(it.video_note.duration))),
            Media::Video(it) => ("video", format!("video{}", format_duration(it.video.duration))),
            Media::Animation(it) => ("animation", format!("animation{}", format_duration(it.animation.duration))),
            Media::Audio(it) => ("audio", describe_audio(&it.audio)),
            Media::Photo(_) => ("photo", "photo".to_owned()),
            Media::Document(it) => ("document", describe_document(&it.document, said.around.mime.as_deref())),
            Media::Sticker(it) => ("sticker", format!("sticker {}", format_optional(it.sticker.emoji.as_ref()))),
            Media::Venue(it) => {
                let (title, address) = (shorten_name(&it.venue.title), shorten_name(&it.venue.address));
                ("venue", format!("place {title}, {address} ({})", format_point(&it.venue.location)))
            }
            Media::Location(it) => {
                let live = if it.location.live_period.is_some() { "live " } else { "" };
                ("location", format!("{live}location {}", format_point(&it.location)))
            }
            Media::Contact(it) => ("contact", describe_contact(&it.contact)),
            Media::Poll(it) => ("poll", describe_poll(&it.poll)),
            Media::Checklist(it) => (
                "checklist",
                format!("checklist {}: {}", shorten_name(&it.checklist.title), format_tasks(&it.checklist.tasks)),
            ),
            Media::Game(it) => {
                ("game", format!("game {}: {}", shorten_name(&it.game.title), shorten_name(&it.game.description)))
            }
            Media::Story(it) => ("story", format!("story of {}", chat_name(&it.story.chat))),
            Media::PaidMedia(it) => {
                let (count, stars) = (it.paid_media.paid_media.len(), it.paid_media.star_count);
                let items = if count == 1 { "1 item".to_owned() } else { format!("{count} items") };
                ("paid_media", format!("paid media: {items} for {stars} stars"))
            }
            Media::Text(it) => return text(&it.text),
            Media::Migration(_) => return MessageContent::Service,
        },
        Kind::Dice(it) => ("dice", format!("dice {}: {}", to_wire(&it.dice.emoji), it.dice.value)),
        Kind::ChecklistTasksDone(it) => {
            let (done, message) =
                (&it.checklist_tasks_done.marked_as_done_task_ids, &it.checklist_tasks_done.checklist_message);
            let tasks = message.as_ref().and_then(|message| message.checklist()).map_or(&[][..], |list| &list.tasks);
            let task = |id: i32| tasks.iter().find(|task| task.id.0 == id).map(|task| shorten_name(&task.text));
            let each = done.iter().flatten().map(|id| task(id.0).unwrap_or_else(|| format!("task {id}")));
            ("checklist_tasks_done", format!("checklist, done: {}", join_first(each, "; ")))
        }
        Kind::ChecklistTasksAdded(it) => (
            "checklist_tasks_added",
            format!("added to a checklist: {}", format_tasks(&it.checklist_tasks_added.tasks)),
        ),
        Kind::GiftInfo(it) => ("gift", describe_gift(&it.gift)),
        Kind::UniqueGiftInfo(it) => {
            let gift = &it.unique_gift.gift;
            ("unique_gift", format!("unique gift {} #{}", shorten_name(&gift.base_name), gift.number))
        }
        Kind::Giveaway(it) => ("giveaway", describe_giveaway(&it.giveaway)),
        Kind::GiveawayWinners(it) => (
            "giveaway_winners",
            format!("giveaway's winners: {}", join_first(it.giveaway_winners.winners.iter().map(format_user), ", ")),
        ),
        Kind::Invoice(it) => {
            let it = &it.invoice;
            let amount = format_amount(it.total_amount, &it.currency);
            ("invoice", format!("invoice {}: {}, {amount}", shorten_name(&it.title), shorten_name(&it.description)))
        }
        Kind::SuccessfulPayment(it) => {
            let it = &it.successful_payment;
            ("successful_payment", format!("payment of {}", format_amount(it.total_amount, &it.currency)))
        }
        Kind::RefundedPayment(it) => {
            let it = &it.refunded_payment;
            ("refunded_payment", format!("refund of {}", format_amount(it.total_amount, &it.currency)))
        }
        Kind::UsersShared(it) => (
            "users_shared",
            format!("shared people: {}", join_first(it.users_shared.users.iter().map(format_shared_user), ", ")),
        ),
        Kind::ChatShared(it) => (
            "chat_shared",
            format!("shared chat {} ({})", format_optional(it.chat_shared.title.as_ref()), it.chat_shared.chat_id),
        ),
        Kind::WebAppData(it) => {
            let it = &it.web_app_data;
            (
                "web_app_data",
                format!("sent by the button {}: {}", shorten_name(&it.button_text), shorten_name(&it.data)),
            )
        }
        Kind::Empty {} | Kind::PassportData(_) => {
            let is_service = said.find_field(|name, _| SERVICE.iter().any(|prefix| name.starts_with(prefix))).is_some();
            let unknown = if is_service { MessageContent::Service } else { MessageContent::Unknown };
            return said.text().map_or(unknown, text);
        }
        _ => return MessageContent::Service,
    };
    let description = one_line(description.trim(), usize::MAX);
    MessageContent::Said { kind, text: format_description(&description, said.around.caption.as_deref()) }
}

/// The name of the field with unknown content.
pub(super) fn find_unknown_field(said: &ReadMessage) -> Option<&str> {
    let is_content = |value: &Value| value.is_object() || value.is_array();
    said.find_field(|name, value| is_content(value) && !["chat", "from", "sender_chat"].contains(&name))
}

/// Formats a description in brackets, with the caption below.
pub(super) fn format_description(description: &str, caption: Option<&str>) -> String {
    match caption {
        Some(caption) if !caption.is_empty() => format!("[{description}]\n{caption}"),
        _ => format!("[{description}]"),
    }
}

fn shorten_name(text: &str) -> String {
    one_line(text.trim(), NAME_CHARS_MAX)
}

fn format_optional(text: Option<&String>) -> String {
    text.map(|text| shorten_name(text)).unwrap_or_default()
}

fn join_first(all: impl Iterator<Item = String>, between: &str) -> String {
    all.take(LISTED_MAX).collect::<Vec<_>>().join(between)
}

/// The wire format of a value that the Bot API writes as text.
fn to_wire(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(shorten_name)).unwrap_or_default()
}

fn format_tasks(all: &[ChecklistTask]) -> String {
    join_first(all.iter().map(|task| shorten_name(&task.text)), "; ")
}

fn format_user(user: &User) -> String {
    format!("{} ({})", user_name(user), user.id)
}

fn format_shared_user(it: &SharedUser) -> String {
    let [first, last, username] = [&it.first_name, &it.last_name, &it.username].map(|it| format_optional(it.as_ref()));
    format!("{} ({})", person_name(&[&format!("{first} {last}"), &username]), it.user_id).trim().to_owned()
}

/// Formats a duration for people.
fn format_duration(duration: Seconds) -> String {
    match (duration.seconds() / 60, duration.seconds() % 60) {
        (0, seconds) => format!(", {seconds} s"),
        (minutes, 0) => format!(", {minutes} min"),
        (minutes, seconds) => format!(", {minutes} min {seconds} s"),
    }
}

fn describe_audio(it: &Audio) -> String {
    let named = [&it.performer, &it.title, &it.file_name].map(|it| format_optional(it.as_ref()));
    let named: Vec<&str> = named.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let name = if named.is_empty() { String::new() } else { format!(" \"{}\"", named.join(" – ")) };
    format!("audio file{name}{}", format_duration(it.duration))
}

fn describe_document(it: &Document, mime: Option<&str>) -> String {
    let name = match format_optional(it.file_name.as_ref()) {
        name if name.is_empty() => "without a name".to_owned(),
        name => format!("\"{name}\""),
    };
    let mime = mime.map(|mime| format!(", {}", one_line(mime, NAME_CHARS_MAX)));
    let bytes = super::file::known_bytes(&it.file).map(|bytes| format!(", {bytes} bytes"));
    format!("file {name}{}{}", mime.unwrap_or_default(), bytes.unwrap_or_default())
}

fn format_point(it: &Location) -> String {
    format!("{:.5}, {:.5}", it.latitude, it.longitude)
}

fn describe_contact(it: &Contact) -> String {
    let named = format!("{} {}", shorten_name(&it.first_name), format_optional(it.last_name.as_ref()));
    format!("contact {}, {}", named.trim(), shorten_name(&it.phone_number))
}

fn describe_poll(it: &Poll) -> String {
    let what = if it.poll_type == PollType::Quiz { "quiz" } else { "poll" };
    format!(
        "{what}: {} ({})",
        shorten_name(&it.question),
        join_first(it.options.iter().map(|option| shorten_name(&option.text)), " / ")
    )
}

fn describe_gift(it: &GiftInfo) -> String {
    let said = it.text.as_deref().map(shorten_name).filter(|said| !said.is_empty());
    let said = said.map(|said| format!(": {said}")).unwrap_or_default();
    format!("gift {} for {} stars{said}", format_optional(it.gift.sticker.emoji.as_ref()), it.gift.star_count)
}

fn describe_giveaway(it: &Giveaway) -> String {
    let prize = match (it.prize_description.as_deref().map(shorten_name), it.prize_star_count) {
        (Some(prize), _) if !prize.is_empty() => format!(", {prize}"),
        (_, Some(stars)) => format!(", {stars} stars"),
        _ => String::new(),
    };
    format!("giveaway with {} winners{prize}", it.winner_count)
}

/// Formats an amount in the smallest unit of its currency, as the Bot API counts it.
fn format_amount(amount: u32, currency: &str) -> String {
    format!("{amount} {} (in its smallest unit)", shorten_name(currency))
}
