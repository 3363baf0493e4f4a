//! Files attached to messages.

use teloxide_core::types::{
    MediaAnimation, MediaAudio, MediaDocument, MediaKind, MediaPhoto, MediaVideo, MediaVideoNote, MediaVoice,
};

use reveille_store::NewAttachment;

use super::{file::known_bytes, said::ReadMessage};

/// The maximum length of a kept name or media type in characters.
const NAME_CHARS_MAX: usize = 255;

/// Reads the attached file of a message. A sticker has none, because its emoji suffices. There is at most one file: an album comes
/// as several messages.
pub(super) fn read_attachment(said: &ReadMessage) -> Option<NewAttachment> {
    let (kind, file, name, duration, sides) = match said.media()? {
        MediaKind::Voice(MediaVoice { voice: it, .. }) => ("voice", &it.file, None, Some(it.duration), None),
        MediaKind::VideoNote(MediaVideoNote { video_note: it }) => {
            ("video_note", &it.file, None, Some(it.duration), None)
        }
        MediaKind::Audio(MediaAudio { audio: it, .. }) => {
            ("audio", &it.file, it.file_name.as_ref(), Some(it.duration), None)
        }
        MediaKind::Video(MediaVideo { video: it, .. }) => {
            ("video", &it.file, it.file_name.as_ref(), Some(it.duration), Some((it.width, it.height)))
        }
        MediaKind::Animation(MediaAnimation { animation: it, .. }) => {
            ("animation", &it.file, it.file_name.as_ref(), Some(it.duration), Some((it.width, it.height)))
        }
        MediaKind::Document(MediaDocument { document: it, .. }) => {
            ("document", &it.file, it.file_name.as_ref(), None, None)
        }
        // The same picture in several sizes.
        MediaKind::Photo(MediaPhoto { photo, .. }) => {
            let it = photo.iter().max_by_key(|it| u64::from(it.width) * u64::from(it.height))?;
            ("photo", &it.file, None, None, Some((it.width, it.height)))
        }
        _ => return None,
    };
    let text = |text: &String| text.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect();
    Some(NewAttachment {
        kind: kind.to_owned(),
        file_id: file.id.0.clone(),
        unique_id: Some(text(&file.unique_id.0)),
        name: name.map(text),
        mime: said.around.mime.as_ref().map(text),
        bytes: known_bytes(file).map(i64::from),
        seconds: duration.map(|duration| duration.seconds().into()),
        size: sides.map(|(width, height)| (width.into(), height.into())),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Reads the file of a message with these extra fields.
    fn of(fields: &serde_json::Value) -> Option<NewAttachment> {
        let mut message = json!({"message_id": 7, "date": 1, "chat": {"id": 1, "type": "private"}});
        message.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        read_attachment(&ReadMessage::from_value(message))
    }

    #[test]
    fn the_largest_of_a_photos_sizes_is_kept() {
        let photo = json!({"photo": [
            {"file_id": "s", "file_unique_id": "us", "width": 90, "height": 60, "file_size": 1000},
            {"file_id": "l", "file_unique_id": "ul", "width": 1280, "height": 853, "file_size": 150_000},
            {"file_id": "m", "file_unique_id": "um", "width": 320, "height": 213, "file_size": 20_000}]});
        let kept = of(&photo).unwrap();
        assert_eq!((kept.file_id.as_str(), kept.size, kept.bytes), ("l", Some((1280, 853)), Some(150_000)));
    }

    #[test]
    fn a_file_is_found_without_what_is_optional() {
        let voice = of(&json!({"voice": {"file_id": "v", "file_unique_id": "u", "duration": 7}})).unwrap();
        assert_eq!((voice.kind.as_str(), voice.seconds, voice.bytes, voice.name), ("voice", Some(7), None, None));
    }

    #[test]
    fn formatting_and_media_types_of_any_kind_cost_no_file() {
        let document = json!({"file_id": "d", "file_unique_id": "u", "mime_type": "no type at all"});
        let kept =
            of(&json!({"document": document, "caption": "hi", "caption_entities": [{"type": "sparkle"}]})).unwrap();
        assert_eq!((kept.file_id.as_str(), kept.mime.as_deref()), ("d", Some("no type at all")));
    }

    #[test]
    fn words_and_damage_carry_none() {
        for message in
            [json!({"text": "hi"}), json!({"photo": []}), json!({"voice": 3}), json!({"voice": {}}), json!({})]
        {
            assert_eq!(of(&message), None, "{message}");
        }
    }
}
