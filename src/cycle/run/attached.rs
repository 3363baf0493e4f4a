//! Looks at the files of messages for the model: what each is by its bytes, and whether it is shown as a picture. Within bounds
//! that keep a request, and its line in the journal, small enough to be sent and written at all.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use crate::{
    config::OFFLINE_MODEL,
    cycle::{
        context::WakeError,
        decide::brief::{File, FileView},
        session::Session,
    },
    disk,
    media::{
        self,
        content::{self, Content, MAX_IMAGE_BYTES},
    },
    store::{Attachment, FileState, Incoming},
};

/// All pictures of one cycle, in bytes: they are journalled with the message that shows them.
const MAX_IMAGES_BYTES: u64 = 6_000_000;
/// Pictures that one cycle shows at most.
const MAX_IMAGES: usize = 8;
/// How a picture begins in a conversation. A person's words are escaped there and can't look like it.
const IMAGE_BLOCK: &str = r#""type":"image""#;

/// What a cycle may still show.
#[derive(Debug, Clone, Copy)]
pub(in crate::cycle) struct Allowance {
    images: usize,
    bytes: u64,
}

impl Allowance {
    /// What is left of it in this conversation.
    pub(in crate::cycle) fn left_by(conversation: &[String]) -> Self {
        let with_images = conversation.iter().filter(|raw| raw.contains(IMAGE_BLOCK));
        let (images, encoded) = with_images
            .fold((0, 0), |(images, bytes), raw| (images + raw.matches(IMAGE_BLOCK).count(), bytes + raw.len() as u64));
        Self { images: MAX_IMAGES.saturating_sub(images), bytes: MAX_IMAGES_BYTES.saturating_sub(encoded / 4 * 3) }
    }

    /// Takes a picture of that size out of it, or says why not.
    fn take(&mut self, bytes: u64, size: (u32, u32)) -> Result<(), &'static str> {
        if bytes > MAX_IMAGE_BYTES || size.0.max(size.1) > content::MAX_SIDE_PX {
            return Err("a picture too large to be shown");
        }
        if self.images == 0 || bytes > self.bytes {
            return Err("a picture, one too many to be shown now");
        }
        self.images -= 1;
        self.bytes -= bytes;
        Ok(())
    }
}

/// The files of these messages as the model is told of them.
pub(in crate::cycle) fn files_of(
    session: &Session<'_>,
    messages: &[&Incoming],
    mut allowance: Allowance,
) -> Result<Vec<File>, WakeError> {
    let ids: Vec<i64> = messages.iter().map(|message| message.id).collect();
    let is_shown = |id: i64| {
        // Its server may have refused the whole conversation for a picture that it couldn't read.
        messages.iter().any(|message| message.id == id && message.attempts == 0)
    };
    let can_see = session.context.model.name() != OFFLINE_MODEL;
    let attachments = session.store.attachments_of(&ids)?;
    let files = attachments.into_iter().map(|attachment| {
        let unseen = match (can_see, is_shown(attachment.message_id)) {
            (false, _) => Some("a picture, which this AI model can't see"),
            (true, false) => Some("a picture, not shown since an earlier wake failed on this message"),
            (true, true) => None,
        };
        let (mime, view) = view(session, &attachment, unseen, &mut allowance)?;
        let Attachment { id, message_id, file, .. } = attachment;
        Ok(File {
            id,
            message_id,
            kind: file.kind,
            name: file.name,
            mime: mime.map(str::to_owned).or(file.mime),
            bytes: file.bytes,
            view,
        })
    });
    files.collect()
}

/// How a file is shown, and its type where its bytes tell. `unseen`: why no picture is.
fn view(
    session: &Session<'_>,
    file: &Attachment,
    unseen: Option<&'static str>,
    allowance: &mut Allowance,
) -> Result<(Option<&'static str>, FileView), WakeError> {
    let described = |note: &str| (None, FileView::Described(note.to_owned()));
    let Some(path) = &file.path else {
        return Ok(described(match file.state {
            FileState::Wanted => "not here yet",
            _ => "not here, and it won't come",
        }));
    };
    if media::is_sound(&file.file.kind) {
        return Ok(described(&format!("a recording, kept at {path}")));
    }
    let full = session.context.config.workspace_dir.join(path);
    let (bytes, head) = match head_of(&full) {
        Ok(found) => found,
        Err(source) if disk::is_the_machines(&source) => return Err(WakeError::Workspace { path: full, source }),
        Err(_) => return Ok(described("not where it was kept any more")),
    };
    match content::sniff(&head) {
        Content::Image { mime, size } => {
            if let Err(why) = unseen.map_or_else(|| allowance.take(bytes, size), Err) {
                return Ok((Some(mime), FileView::Described(format!("{why}; kept at {path}"))));
            }
            let data = fs::read(&full).map_err(|source| WakeError::Workspace { path: full, source })?;
            Ok((Some(mime), FileView::Image { mime, data }))
        }
        Content::Text => Ok(described("text: look_up attachment shows it")),
        Content::Other => Ok(described(&format!("can't be read here; kept at {path}"))),
    }
}

/// A plain file's length and first bytes.
fn head_of(path: &Path) -> io::Result<(u64, Vec<u8>)> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let file = fs::File::open(path)?;
    let mut head = Vec::new();
    let bytes = file.metadata()?.len();
    file.take(content::HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok((bytes, head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_shown_within_the_bounds_of_a_cycle() {
        let mut allowance = Allowance::left_by(&[]);
        assert!(allowance.take(MAX_IMAGE_BYTES + 1, (10, 10)).is_err());
        assert!(allowance.take(10, (10, content::MAX_SIDE_PX + 1)).is_err());
        assert_eq!(allowance.take(MAX_IMAGE_BYTES, (10, content::MAX_SIDE_PX)), Ok(()));
        assert!(allowance.take(MAX_IMAGE_BYTES, (10, 10)).is_err(), "more than all may have");
        for _ in 1..MAX_IMAGES {
            assert_eq!(allowance.take(10, (10, 10)), Ok(()));
        }
        assert!(allowance.take(10, (10, 10)).is_err(), "more than there may be");
    }

    #[test]
    fn what_stands_in_the_conversation_counts_and_words_about_it_do_not() {
        let image = format!(r#"{{"role":"user","content":[{{{IMAGE_BLOCK},"source":{{}}}}]}}"#);
        let left = Allowance::left_by(&[image.clone(), image]);
        assert_eq!(left.images, MAX_IMAGES - 2);
        let words = serde_json::json!({"role": "user", "content": [{"type": "text", "text": IMAGE_BLOCK}]}).to_string();
        assert_eq!(Allowance::left_by(&[words]).images, MAX_IMAGES);
    }
}
