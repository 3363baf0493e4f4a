//! Notices about files that couldn't be used: the event, what is kept, and what to do.

use reveille_base::{disk, zone::Tz};
use reveille_media::words::name;
use reveille_store::{Attachment, NewAttachment, NewOutgoing};

/// The notice about a file that can't be fetched.
pub(super) fn build_unfetched_notice(file: &Attachment, why: &str, tz: Tz) -> NewOutgoing {
    let what = describe_file(file, tz);
    build_notice(
        file,
        format!(
            "I couldn't download {what} ({why}). Your message is safe. If you want me to look at the file, send it again, smaller if it's large."
        ),
    )
}

/// The notice about a recording that can't be transcribed.
pub(super) fn build_unheard_notice(file: &Attachment, why: &str, tz: Tz) -> NewOutgoing {
    let what = describe_file(file, tz);
    let place = file.path.as_deref().unwrap_or("an unknown place");
    build_notice(
        file,
        format!(
            "I couldn't transcribe {what} ({why}). It's saved at {place}. Please send it again, or write what it says."
        ),
    )
}

/// The notice about a missing speech model. `why` explains a faulty setting.
pub(super) fn no_model(file: &Attachment, why: Option<&str>) -> NewOutgoing {
    let text = match why {
        None => "Your voice notes are saved, but I can't understand them yet because there's no speech model. To get \
             one, run `scripts/fetch-model base` on my machine. Then set `WHISPER_MODEL` in `.env` to its path and \
             restart the bot. I'll listen to the saved notes then."
            .to_owned(),
        Some(why) => format!(
            "Your voice notes are saved, but I can't understand them right now: {why}. Once that's fixed, restart \
             the bot. I'll listen to the saved notes then."
        ),
    };
    build_notice(file, text)
}

/// Names a file, such as `your voice note from 14:03`.
fn describe_file(file: &Attachment, tz: Tz) -> String {
    let at = file.received_at.map(|at| format!(" from {}", at.with_timezone(&tz).format("%H:%M"))).unwrap_or_default();
    format!("your {}{at}", name(&file.file.kind))
}

/// Describes a file from this machine in a few words.
pub(crate) fn describe_landed_file(file: &NewAttachment) -> String {
    let name = file.name.as_deref().unwrap_or("without a name");
    let mime = file.mime.as_deref().map(|mime| format!(", {mime}")).unwrap_or_default();
    let bytes =
        file.bytes.and_then(|bytes| u64::try_from(bytes).ok()).map(|bytes| format!(", {}", disk::format_size(bytes)));
    format!("\"{name}\"{mime}{}", bytes.unwrap_or_default())
}

fn build_notice(file: &Attachment, text: String) -> NewOutgoing {
    NewOutgoing { thread_id: file.thread_id, reply_to: file.channel_message_id, ..NewOutgoing::notice(file.chat, text) }
}
