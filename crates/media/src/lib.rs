//! The files of messages, described without opening them: the storage path, the content by its bytes (`content`), and the description in
//! the message (`words`). Pure values.
//!
//! `bot/media` fetches the files and has speech transcribed. A wake shows them to the model (`cycle/run/begin/attached`,
//! `tools/attachment`).

pub mod content;
pub mod speech;
mod transcript;
pub mod words;

pub use transcript::Transcript;

/// The largest file that Telegram lets a bot fetch, in bytes.
pub const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

/// Returns `true` if a file of this kind (the Bot API's field name) most likely holds speech.
pub fn is_sound(kind: &str) -> bool {
    matches!(kind, "voice" | "video_note" | "audio")
}

/// Returns a file's path below the workspace. The sender chooses no part of it: the name is the row's number, and the extension comes from
/// a small table by media type.
pub fn build_path(id: i64, kind: &str, mime: Option<&str>) -> String {
    build_named_path(&id.to_string(), kind, mime)
}

/// Returns the path of a file that has no row yet, under a unique `name`.
pub fn build_named_path(name: &str, kind: &str, mime: Option<&str>) -> String {
    let folder = if is_sound(kind) { "voice" } else { "files" };
    format!("{folder}/{name}.{}", choose_extension(kind, mime))
}

fn choose_extension(kind: &str, mime: Option<&str>) -> &'static str {
    let mime = mime.map(|mime| mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    match (kind, mime.as_deref()) {
        // Browsers record what they can encode.
        ("voice", Some("audio/mp4")) => "m4a",
        ("voice", Some("audio/webm")) => "webm",
        ("voice", Some("audio/wav")) => "wav",
        // Telegram's own formats are always the same.
        ("voice", _) => "ogg",
        ("video_note", _) => "mp4",
        ("photo", _) => "jpg",
        (_, Some("audio/ogg" | "audio/opus" | "application/ogg")) => "ogg",
        (_, Some("audio/mpeg" | "audio/mp3")) => "mp3",
        (_, Some("audio/mp4" | "audio/m4a" | "audio/x-m4a" | "audio/aac")) => "m4a",
        (_, Some("audio/wav" | "audio/x-wav" | "audio/vnd.wave")) => "wav",
        (_, Some("audio/flac" | "audio/x-flac")) => "flac",
        (_, Some("video/mp4")) => "mp4",
        (_, Some("image/jpeg")) => "jpg",
        (_, Some("image/png")) => "png",
        (_, Some("image/gif")) => "gif",
        (_, Some("image/webp")) => "webp",
        (_, Some("application/pdf")) => "pdf",
        (_, Some("application/json")) => "json",
        (_, Some("application/zip")) => "zip",
        (_, Some("text/csv")) => "csv",
        (_, Some("text/markdown")) => "md",
        (_, Some(mime)) if mime.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_stored_under_its_number_whatever_media_type_is_claimed() {
        assert_eq!(build_path(7, "voice", Some("audio/ogg")), "voice/7.ogg");
        assert_eq!(build_path(7, "voice", Some("audio/mp4;codecs=opus")), "voice/7.m4a");
        assert_eq!(build_path(8, "audio", Some("audio/mpeg")), "voice/8.mp3");
        assert_eq!(build_path(9, "photo", None), "files/9.jpg");
        assert_eq!(build_path(10, "document", Some("Text/Plain; charset=utf-8")), "files/10.txt");
        for mime in ["../../etc/passwd", "application/x-sh", "", "text"] {
            assert_eq!(build_path(11, "document", Some(mime)), "files/11.bin", "{mime}");
        }
    }
}
