//! The files of a message, read from the raw JSON: what the library can't parse may still be fetched.

use serde_json::Value;

use crate::store::NewAttachment;

/// The fields of a message that carry a file worth keeping. A sticker's emoji says it all; an animation comes with a second
/// copy of itself as `document`.
const KINDS: [&str; 7] = ["voice", "video_note", "audio", "video", "animation", "document", "photo"];
/// The longest name and media type that are kept, in characters.
const NAME_CHARS_MAX: usize = 255;

/// The file that a message carries; none, or one of them: an album comes as several messages.
pub(super) fn of_message(message: &Value) -> Option<NewAttachment> {
    let kind = KINDS.into_iter().find(|kind| !message[*kind].is_null())?;
    let file = match &message[kind] {
        // The same picture in several sizes.
        Value::Array(sizes) => sizes.iter().max_by_key(|size| area(size))?,
        file => file,
    };
    let text = |field: &str| {
        let value = file[field].as_str()?;
        Some(value.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect())
    };
    Some(NewAttachment {
        kind: kind.to_owned(),
        file_id: file["file_id"].as_str()?.to_owned(),
        unique_id: text("file_unique_id"),
        name: text("file_name"),
        mime: text("mime_type"),
        bytes: file["file_size"].as_i64(),
        seconds: file["duration"].as_i64(),
        size: file["width"].as_i64().zip(file["height"].as_i64()),
    })
}

fn area(size: &Value) -> i64 {
    let side = |field: &str| size[field].as_i64().unwrap_or_default();
    side("width").saturating_mul(side("height"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_of_a_photos_sizes_is_kept() {
        let photo = json!({"photo": [
            {"file_id": "s", "file_unique_id": "us", "width": 90, "height": 60, "file_size": 1000},
            {"file_id": "l", "file_unique_id": "ul", "width": 1280, "height": 853, "file_size": 150_000},
            {"file_id": "m", "file_unique_id": "um", "width": 320, "height": 213, "file_size": 20_000}]});
        let kept = of_message(&photo).unwrap();
        assert_eq!((kept.file_id.as_str(), kept.size, kept.bytes), ("l", Some((1280, 853)), Some(150_000)));
    }

    #[test]
    fn a_file_is_found_without_what_is_optional() {
        let voice = of_message(&json!({"voice": {"file_id": "v", "duration": 7}})).unwrap();
        assert_eq!((voice.kind.as_str(), voice.seconds, voice.bytes, voice.name), ("voice", Some(7), None, None));
    }

    #[test]
    fn words_and_damage_carry_none() {
        for message in
            [json!({"text": "hi"}), json!({"photo": []}), json!({"voice": 3}), json!({"voice": {}}), json!(null)]
        {
            assert_eq!(of_message(&message), None, "{message}");
        }
    }
}
