//! Reads the files of messages for the model: the type of each by its bytes, and its form of display. Limits keep the request and its
//! journal line small enough.

use std::{
    fs,
    io::{self, Read as _},
    path::Path,
};

use reveille_base::{disk, words::format_count};
use reveille_config::{OFFLINE_MODEL, Provider};
use reveille_media as media;
use reveille_media::content::{self, Content, MAX_IMAGE_BYTES};
use reveille_store::{Attachment, FileState, Incoming};
use reveille_tools::pdf;

use crate::{
    context::WakeError,
    decide::brief::{File, FileView},
    session::Session,
};

/// The maximum size of all pictures in a cycle, in bytes, since they are journalled with their message.
const MAX_IMAGES_BYTES: u64 = 6_000_000;
/// The maximum number of PDFs shown as pages in a cycle.
const MAX_PDFS: usize = 2;
/// The maximum number of pages of a shown PDF: each costs as much as a picture and its text. Longer PDFs are read as text.
const MAX_PDF_PAGES: usize = 10;
/// The maximum number of PDFs whose pages are counted at the start of a cycle or when messages join, since each needs a process of its own.
const MAX_PDFS_COUNTED: usize = 6;
/// How a picture begins in a conversation. A person's words are escaped there and can't imitate it.
const IMAGE_BLOCK: &str = r#""type":"image""#;
/// The same for a PDF.
const PDF_BLOCK: &str = r#""type":"document""#;

/// The pictures and PDFs still allowed in a cycle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    images: usize,
    pdfs: usize,
    counted_pdfs: usize,
    bytes: u64,
}

impl Allowance {
    /// Computes the allowance left in this conversation, out of this many pictures.
    pub(crate) fn from_conversation(conversation: &[String], max_images: usize) -> Self {
        let count = |raw: &String, block: &str| raw.matches(block).count();
        let images: usize = conversation.iter().map(|raw| count(raw, IMAGE_BLOCK)).sum();
        let pdfs: usize = conversation.iter().map(|raw| count(raw, PDF_BLOCK)).sum();
        let showing = conversation.iter().filter(|raw| raw.contains(IMAGE_BLOCK) || raw.contains(PDF_BLOCK));
        let encoded: u64 = showing.map(|raw| raw.len() as u64).sum();
        Self {
            images: max_images.saturating_sub(images),
            pdfs: MAX_PDFS.saturating_sub(pdfs),
            counted_pdfs: MAX_PDFS_COUNTED,
            bytes: MAX_IMAGES_BYTES.saturating_sub(encoded / 4 * 3),
        }
    }

    /// Uses the allowance for a picture of this size, or returns the reason against it.
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

    /// Uses the allowance for counting a PDF's pages. `false` if it is used up.
    fn take_count(&mut self) -> bool {
        let left = self.counted_pdfs.checked_sub(1);
        self.counted_pdfs = left.unwrap_or(0);
        left.is_some()
    }

    /// Uses the allowance for a PDF. `false` if there is no room.
    fn take_pdf(&mut self, bytes: u64, pages: usize) -> bool {
        let fits = pages <= MAX_PDF_PAGES && self.pdfs > 0 && bytes <= MAX_IMAGE_BYTES.min(self.bytes);
        if fits {
            self.pdfs -= 1;
            self.bytes -= bytes;
        }
        fits
    }
}

/// Reads the files of these messages for the model. If not all pictures have room, the newest are shown.
pub(crate) fn read_files(
    session: &Session<'_>,
    messages: &[&Incoming],
    mut allowance: Allowance,
) -> Result<Vec<File>, WakeError> {
    let ids: Vec<i64> = messages.iter().map(|message| message.id).collect();
    let is_shown = |id: i64| {
        // The server may have rejected the whole conversation because of an unreadable picture.
        messages.iter().any(|message| message.id == id && message.attempts == 0)
    };
    let model = session.context.model;
    let can_see = model.name() != OFFLINE_MODEL && !model.is_small();
    let attachments = session.store.attachments().list_message_attachments(&ids)?;
    let files = attachments.into_iter().rev().map(|attachment| {
        let unseen = match (can_see, is_shown(attachment.message_id)) {
            (false, _) => Some("a picture, which this AI model can't see"),
            (true, false) => Some("a picture, not shown since an earlier wake failed on this message"),
            (true, true) => None,
        };
        let reads_pdfs = matches!(
            Provider::from_model(session.context.model.name()),
            Provider::Anthropic | Provider::Bedrock | Provider::Vertex
        );
        let shows_pdf = reads_pdfs && is_shown(attachment.message_id);
        let (mime, view) = choose_view(session, &attachment, unseen, shows_pdf, &mut allowance)?;
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
    let mut files = files.collect::<Result<Vec<File>, WakeError>>()?;
    files.reverse();
    Ok(files)
}

/// Chooses a file's form of display, and its type if the bytes show it. `unseen` is the reason to show no picture; `shows_pdf` is true if a
/// PDF's pages may be shown.
fn choose_view(
    session: &Session<'_>,
    file: &Attachment,
    unseen: Option<&'static str>,
    shows_pdf: bool,
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
    let full = session.context.config.media_dir.join(path);
    let (bytes, head) = match read_head(&full) {
        Ok(found) => found,
        Err(source) if disk::is_machine_fault(&source) => return Err(WakeError::Workspace { path: full, source }),
        Err(_) => return Ok(described("no longer where it was kept")),
    };
    match content::sniff(&head) {
        Content::Image { mime, size } => {
            if let Err(why) = unseen.map_or_else(|| allowance.take(bytes, size), Err) {
                return Ok((Some(mime), FileView::Described(format!("{why}; kept at {path}"))));
            }
            let data = fs::read(&full).map_err(|source| WakeError::Workspace { path: full, source })?;
            Ok((Some(mime), FileView::Image { mime, data }))
        }
        Content::Pdf if !allowance.take_count() => {
            Ok((Some("application/pdf"), FileView::Described("a PDF: look_up attachment shows its text".to_owned())))
        }
        Content::Pdf => {
            let view = match pdf::read(&full) {
                Ok(text) if shows_pdf && allowance.take_pdf(bytes, text.pages) => {
                    let data = fs::read(&full).map_err(|source| WakeError::Workspace { path: full, source })?;
                    FileView::Document { data }
                }
                Ok(text) => FileView::Described(format!(
                    "a PDF of {}: look_up attachment shows its text",
                    format_count(text.pages, "page")
                )),
                Err(why) => FileView::Described(format!("{why}; kept at {path}")),
            };
            Ok((Some("application/pdf"), view))
        }
        Content::Text => Ok(described("text: look_up attachment shows it")),
        Content::Other => Ok(described(&format!("can't be read here; kept at {path}"))),
    }
}

/// Reads a plain file's length and first bytes.
fn read_head(path: &Path) -> io::Result<(u64, Vec<u8>)> {
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
        const MAX_IMAGES: usize = 8;
        let mut allowance = Allowance::from_conversation(&[], MAX_IMAGES);
        assert!(allowance.take(MAX_IMAGE_BYTES + 1, (10, 10)).is_err());
        assert!(allowance.take(10, (10, content::MAX_SIDE_PX + 1)).is_err());
        assert_eq!(allowance.take(MAX_IMAGE_BYTES, (10, content::MAX_SIDE_PX)), Ok(()));
        assert!(allowance.take(MAX_IMAGE_BYTES, (10, 10)).is_err(), "more than all may have");
        for _ in 1..MAX_IMAGES {
            assert_eq!(allowance.take(10, (10, 10)), Ok(()));
        }
        assert!(allowance.take(10, (10, 10)).is_err(), "more than there may be");
        assert!(!allowance.take_pdf(10, MAX_PDF_PAGES + 1));
        assert!(allowance.take_pdf(10, MAX_PDF_PAGES) && allowance.take_pdf(10, 1));
        assert!(!allowance.take_pdf(10, 1), "more than there may be");
        let counted = std::iter::repeat_with(|| allowance.take_count()).take(MAX_PDFS_COUNTED + 2);
        assert_eq!(counted.filter(|may| *may).count(), MAX_PDFS_COUNTED);
    }

    #[test]
    fn only_pictures_and_pdfs_in_the_conversation_count() {
        let image = format!(r#"{{"role":"user","content":[{{{IMAGE_BLOCK},"source":{{}}}}]}}"#);
        let pdf = image.replace(IMAGE_BLOCK, PDF_BLOCK);
        let left = Allowance::from_conversation(&[image.clone(), image, pdf], 8);
        assert_eq!((left.images, left.pdfs), (6, MAX_PDFS - 1));
        let words = serde_json::json!({"role": "user", "content": [{"type": "text", "text": IMAGE_BLOCK}]}).to_string();
        assert_eq!(Allowance::from_conversation(&[words], 8).images, 8);
    }
}
