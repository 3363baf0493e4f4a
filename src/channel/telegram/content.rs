//! What a message says, as text: its words, or a short description of what was sent instead of words.

use teloxide_core::types::{MediaKind, Message, MessageKind};

/// What the library knows of a message's content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
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

pub(super) fn read(message: &Message) -> Content {
    match &message.kind {
        MessageKind::Common(common) => said(&common.media_kind, message.caption()),
        MessageKind::Dice(dice) => {
            // The library has no accessor for the emoji, but writes it as Telegram does.
            let emoji = serde_json::to_value(dice.dice.emoji).ok();
            let emoji = emoji.as_ref().and_then(|emoji| emoji.as_str()).unwrap_or_default();
            Content::Said { kind: "dice", text: format!("[dice {emoji}: {}]", dice.dice.value) }
        }
        MessageKind::Empty {}
        | MessageKind::Invoice(_)
        | MessageKind::SuccessfulPayment(_)
        | MessageKind::RefundedPayment(_)
        | MessageKind::PassportData(_)
        | MessageKind::UsersShared(_)
        | MessageKind::ChatShared(_)
        | MessageKind::GiftInfo(_)
        | MessageKind::UniqueGiftInfo(_)
        | MessageKind::WebAppData(_) => Content::Unknown,
        _ => Content::Service,
    }
}

fn said(media: &MediaKind, caption: Option<&str>) -> Content {
    let (kind, description) = match media {
        MediaKind::Text(text) => {
            return Content::Said { kind: "text", text: text.text.clone() };
        }
        MediaKind::Migration(_) => return Content::Service,
        MediaKind::Voice(it) => ("voice", format!("voice note, {}", length(it.voice.duration.seconds()))),
        MediaKind::VideoNote(it) => ("video_note", format!("video note, {}", length(it.video_note.duration.seconds()))),
        MediaKind::Video(it) => ("video", format!("video, {}", length(it.video.duration.seconds()))),
        MediaKind::Animation(it) => ("animation", format!("animation, {}", length(it.animation.duration.seconds()))),
        MediaKind::Audio(it) => {
            let named = [&it.audio.performer, &it.audio.title, &it.audio.file_name].into_iter().flatten();
            let name = named.map(String::as_str).collect::<Vec<_>>().join(" – ");
            ("audio", format!("audio file {name:?}, {}", length(it.audio.duration.seconds())))
        }
        MediaKind::Photo(_) => ("photo", "photo".to_owned()),
        MediaKind::Document(it) => {
            let name = it.document.file_name.as_deref().unwrap_or("without a name");
            let mime = it.document.mime_type.as_ref().map(|mime| format!(", {mime}")).unwrap_or_default();
            ("document", format!("file {name:?}{mime}, {} bytes", it.document.file.size))
        }
        MediaKind::Sticker(it) => ("sticker", format!("sticker {}", it.sticker.emoji.as_deref().unwrap_or_default())),
        MediaKind::Location(it) => {
            ("location", format!("location {:.5}, {:.5}", it.location.latitude, it.location.longitude))
        }
        MediaKind::Venue(it) => {
            let (venue, at) = (&it.venue, &it.venue.location);
            ("venue", format!("place {}, {} ({:.5}, {:.5})", venue.title, venue.address, at.latitude, at.longitude))
        }
        MediaKind::Contact(it) => {
            let last_name = it.contact.last_name.as_deref().unwrap_or_default();
            let name = format!("{} {last_name}", it.contact.first_name);
            ("contact", format!("contact {}, {}", name.trim(), it.contact.phone_number))
        }
        MediaKind::Poll(it) => {
            let options: Vec<&str> = it.poll.options.iter().map(|option| option.text.as_str()).collect();
            ("poll", format!("poll: {} ({})", it.poll.question, options.join(" / ")))
        }
        MediaKind::Checklist(it) => {
            let tasks: Vec<&str> = it.checklist.tasks.iter().map(|task| task.text.as_str()).collect();
            ("checklist", format!("checklist {}: {}", it.checklist.title, tasks.join("; ")))
        }
        MediaKind::Game(it) => ("game", format!("game {}", it.game.title)),
        MediaKind::Story(_) => ("story", "story".to_owned()),
        MediaKind::PaidMedia(_) => ("paid_media", "paid media".to_owned()),
    };
    Content::Said { kind, text: described(description.trim(), caption) }
}

/// Content that the library couldn't read, by the name of its field: often a known one that lacks what the library
/// takes for granted, such as an audio file without a media type.
pub(super) fn by_name(name: &str, caption: Option<&str>) -> Content {
    const KINDS: [&str; 17] = [
        "voice",
        "video_note",
        "video",
        "animation",
        "audio",
        "photo",
        "document",
        "sticker",
        "location",
        "venue",
        "contact",
        "poll",
        "checklist",
        "game",
        "story",
        "paid_media",
        "dice",
    ];
    let kind = KINDS.into_iter().find(|kind| *kind == name);
    kind.map_or(Content::Unknown, |kind| Content::Said { kind, text: described(&kind.replace('_', " "), caption) })
}

/// A description in brackets, and the caption below it.
pub(super) fn described(description: &str, caption: Option<&str>) -> String {
    match caption {
        Some(caption) if !caption.is_empty() => format!("[{description}]\n{caption}"),
        _ => format!("[{description}]"),
    }
}

/// A duration for people.
fn length(seconds: u32) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}
