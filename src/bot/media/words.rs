//! Notices about files that couldn't be used: the event, what is kept, and what to do.

use reveille_base::zone::Tz;
use reveille_media::words::name;
use reveille_store::{Attachment, NewOutgoing};

/// The notice about a file that can't be fetched.
pub(super) fn unfetched(file: &Attachment, why: &str, tz: Tz) -> NewOutgoing {
    let what = called(file, tz);
    notice(
        file,
        format!(
            "I couldn't get {what} ({why}). Your message is safe. If you want me to look at the file, send it again, smaller if it is large."
        ),
    )
}

/// The notice about a recording that can't be transcribed.
pub(super) fn unheard(file: &Attachment, why: &str, tz: Tz) -> NewOutgoing {
    let what = called(file, tz);
    let place = file.path.as_deref().unwrap_or("an unknown place");
    notice(
        file,
        format!("I couldn't make out {what} ({why}). It is kept at {place}; send it once more, or write what it says."),
    )
}

/// The notice about a missing speech model. `why` explains a faulty setting.
pub(super) fn no_model(file: &Attachment, why: Option<&str>) -> NewOutgoing {
    let text = match why {
        None => {
            "I keep your voice notes, but I can't understand them yet: there is no speech model. On the machine I run on, \
             `scripts/fetch-model base` gets one. Put its path into `.env` as `WHISPER_MODEL` and restart the bot. I'll listen to \
             waiting notes then."
                .to_owned()
        }
        Some(why) => format!(
            "I keep your voice notes, but I can't understand them now: {why}. Once that is fixed, restart the bot. I'll \
             listen to waiting notes then."
        ),
    };
    notice(file, text)
}

/// Names a file, such as `your voice note from 14:03`.
fn called(file: &Attachment, tz: Tz) -> String {
    let at = file.received_at.map(|at| format!(" from {}", at.with_timezone(&tz).format("%H:%M"))).unwrap_or_default();
    format!("your {}{at}", name(&file.file.kind))
}

fn notice(file: &Attachment, text: String) -> NewOutgoing {
    NewOutgoing { thread_id: file.thread_id, reply_to: file.channel_message_id, ..NewOutgoing::notice(file.chat, text) }
}
