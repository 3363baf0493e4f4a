//! Receives a message with files. Each file goes to the disk piece by piece, and is in its place, synced, before its message is queued. So a
//! crash leaves at most a file without a message, which retention removes.
//!
//! What is sent is read to its end even if it isn't taken: a browser shows an answer only if it could send everything.

use std::{path::PathBuf, time::Duration};

use axum::{
    body::Bytes,
    extract::{
        Multipart,
        multipart::{Field, MultipartError},
    },
};

use ring::digest::{Context, SHA256};

use reveille_base::{
    approval_text::remove_hidden,
    disk,
    random::{self, NoRandomness},
    words::{first_chars, format_count, one_line},
};
use reveille_config::Config;
use reveille_media::{
    MAX_FILE_BYTES, build_named_path,
    content::{self, Content, HEAD_BYTES},
};
use reveille_store::{LandedFile, NewAttachment};

use crate::bot::{
    MAX_SAID_BYTES,
    media::{Landing, describe_landed_file},
};

/// Maximum files of one message.
pub(super) const MAX_FILES: usize = 10;
/// Maximum bytes of a whole form: its files, and room for its text and the heads of its fields.
pub(super) const MAX_FORM_BYTES: u64 = MAX_FILES as u64 * MAX_FILE_BYTES + 1024 * 1024;
/// Longest wait for the next piece.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time for a whole form.
const FORM_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Maximum characters of a file's name.
const MAX_NAME_CHARS: usize = 128;
/// Random bytes in the name of a stored file.
const NAME_BYTES: usize = 8;
/// The longest recording whose length is believed, in seconds.
const MAX_SECONDS: i64 = 24 * 60 * 60;

/// The field of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileField {
    /// Files that the person has chosen, pasted or dropped.
    Chosen,
    /// What the microphone recorded.
    Recorded,
}

/// A received form, with its files on the disk but not yet in their places.
#[derive(Default)]
pub(super) struct Upload {
    pub(super) text: String,
    pub(super) key: String,
    pub(super) seen: String,
    /// The length of the recording.
    seconds: Option<i64>,
    files: Vec<StagedFile>,
    /// A file came, whether or not it was taken.
    pub(super) has_sent_files: bool,
    /// The first reason why the message can't be taken.
    pub(super) refused: Option<String>,
}

struct StagedFile {
    landing: Landing,
    kind: &'static str,
    name: Option<String>,
    /// The media type that the browser stated.
    stated: Option<String>,
    content: Content,
    bytes: u64,
    digest: String,
}

/// The connection ended, stalled or sent too much before the form's end.
#[derive(Debug)]
struct CutOff;

/// The reason why files couldn't be put in their places.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotPlaced {
    #[error("a file can't be written: {0}")]
    Unwritable(#[from] std::io::Error),
    #[error(transparent)]
    NoName(#[from] NoRandomness),
}

/// Reads a form to its end. One that doesn't arrive in full is refused: its files are removed, and its text is kept if it came.
pub(super) async fn receive_upload(config: &Config, form: Multipart) -> Upload {
    let mut upload = Upload::default();
    let read = tokio::time::timeout(FORM_TIMEOUT, upload.read_fields(config, form)).await;
    if !matches!(read, Ok(Ok(()))) {
        upload.files.clear();
        upload.refuse("Your message didn't arrive in full. Nothing was sent.".to_owned());
    }
    upload
}

impl Upload {
    /// A message without files.
    pub(super) fn from_text(text: String, key: String, seen: String) -> Self {
        Self { text, key, seen, ..Self::default() }
    }

    /// Says whether there are files.
    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Identifies the content, by which a form that is sent twice is known.
    pub(super) fn identity(&self) -> String {
        let digests: Vec<&str> = self.files.iter().map(|file| file.digest.as_str()).collect();
        format!("{}\n{}", digests.join(","), self.text)
    }

    /// Moves the files into their places. Returns the message's text, with a line for each file above it.
    pub(super) fn place_files(self, config: &Config) -> Result<(String, Vec<LandedFile>), NotPlaced> {
        let mut lines = Vec::new();
        let mut landed = Vec::new();
        for staged in self.files {
            let file = NewAttachment {
                kind: staged.kind.to_owned(),
                mime: staged.choose_mime(),
                bytes: i64::try_from(staged.bytes).ok(),
                seconds: self.seconds.filter(|_| staged.kind == "voice"),
                size: match staged.content {
                    Content::Image { size: (width, height), .. } => Some((width.into(), height.into())),
                    _ => None,
                },
                name: staged.name,
                ..NewAttachment::default()
            };
            let name = format!("page-{}", random::format_hex(&random::generate_bytes::<NAME_BYTES>()?));
            let path = build_named_path(&name, &file.kind, file.mime.as_deref());
            staged.landing.move_to(config.media_dir.join(&path))?;
            lines.push(describe_file(&file));
            landed.push(LandedFile { file, path });
        }
        lines.extend(Some(self.text).filter(|text| !text.is_empty()));
        Ok((lines.join("\n"), landed))
    }

    async fn read_fields(&mut self, config: &Config, mut form: Multipart) -> Result<(), CutOff> {
        while let Some(field) = wait_for(form.next_field()).await? {
            let name = field.name().unwrap_or_default().to_owned();
            match name.as_str() {
                "text" => self.text = read_text(field).await?,
                "key" => self.key = read_text(field).await?,
                "seen" => self.seen = read_text(field).await?,
                "seconds" => {
                    self.seconds = read_text(field).await?.parse().ok().filter(|n| (1..=MAX_SECONDS).contains(n));
                }
                "files" => self.read_file(config, field, FileField::Chosen).await?,
                "voice" => self.read_file(config, field, FileField::Recorded).await?,
                _ => drain(field).await?,
            }
        }
        Ok(())
    }

    fn refuse(&mut self, why: String) {
        self.refused.get_or_insert(why);
    }

    /// Reads a file. An empty field without a name is a form's unused one.
    async fn read_file(&mut self, config: &Config, mut field: Field<'_>, from: FileField) -> Result<(), CutOff> {
        let name = field.file_name().and_then(clean_name);
        let stated = field.content_type().map(|mime| first_chars(mime, MAX_NAME_CHARS).to_owned());
        self.has_sent_files |= name.is_some();
        let Some(first) = next_piece(&mut field).await? else {
            if let Some(name) = name {
                self.refuse(format!("{name} is empty, so nothing was sent."));
            }
            return Ok(());
        };
        self.refuse_more(config);
        if self.refused.is_some() {
            return drain(field).await;
        }
        match write_file(config, &mut field, first).await? {
            Ok(written) => self.files.push(written.finish(name, stated, from)),
            Err(why) => {
                self.refuse(format!("{} {why}, so nothing was sent.", name.as_deref().unwrap_or("The file")));
                return drain(field).await;
            }
        }
        Ok(())
    }

    /// Refuses a further file if there are too many, or if the disk has no room for it.
    fn refuse_more(&mut self, config: &Config) {
        if self.files.len() >= MAX_FILES {
            self.refuse(format!("A message takes at most {}, so nothing was sent.", format_count(MAX_FILES, "file")));
        } else if !has_room(config) {
            self.refuse("This machine's disk is almost full, so nothing was sent.".to_owned());
        }
    }
}

impl StagedFile {
    /// Chooses the media type: by the content, or for sound as stated.
    fn choose_mime(&self) -> Option<String> {
        match self.content {
            Content::Image { mime, .. } => Some(mime.to_owned()),
            _ if self.kind != "document" => self.stated.clone(),
            Content::Pdf => Some("application/pdf".to_owned()),
            Content::Text => Some("text/plain".to_owned()),
            Content::Other => None,
        }
    }
}

/// A file while it is written.
struct WrittenFile {
    landing: Landing,
    head: Vec<u8>,
    digest: Context,
    bytes: u64,
}

/// The reason why a file wasn't written.
#[derive(Debug, thiserror::Error)]
enum Unwritten {
    #[error("is larger than {}, which is the limit", disk::format_size(MAX_FILE_BYTES))]
    TooLarge,
    #[error("can't be saved ({0})")]
    Failed(#[from] NotPlaced),
}

/// Writes a file to the disk, piece by piece. The outer error is that of the connection.
async fn write_file(
    config: &Config,
    field: &mut Field<'_>,
    first: Bytes,
) -> Result<Result<WrittenFile, Unwritten>, CutOff> {
    let mut writing = match begin_file(config) {
        Ok(writing) => writing,
        Err(why) => return Ok(Err(why.into())),
    };
    let mut next = Some(first);
    while let Some(piece) = next {
        writing.bytes += piece.len() as u64;
        if writing.bytes > MAX_FILE_BYTES {
            return Ok(Err(Unwritten::TooLarge));
        }
        if let Err(error) = writing.write(&piece) {
            return Ok(Err(NotPlaced::Unwritable(error).into()));
        }
        next = next_piece(field).await?;
    }
    Ok(Ok(writing))
}

fn begin_file(config: &Config) -> Result<WrittenFile, NotPlaced> {
    let name = random::format_hex(&random::generate_bytes::<NAME_BYTES>()?);
    let landing = Landing::begin_upload(&config.files_dir(), &name)?;
    Ok(WrittenFile { landing, head: Vec::new(), digest: Context::new(&SHA256), bytes: 0 })
}

impl WrittenFile {
    fn write(&mut self, piece: &[u8]) -> std::io::Result<()> {
        let missing = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(piece.get(..missing.min(piece.len())).unwrap_or_default());
        self.digest.update(piece);
        self.landing.write(piece)
    }

    fn finish(self, name: Option<String>, stated: Option<String>, field: FileField) -> StagedFile {
        let content = content::sniff(&self.head);
        let is_sound = stated.as_deref().is_some_and(|mime| mime.starts_with("audio/")) && content == Content::Other;
        let kind = match (field, is_sound) {
            (FileField::Recorded, _) => "voice",
            (FileField::Chosen, true) => "audio",
            (FileField::Chosen, false) => "document",
        };
        let Self { landing, digest, bytes, .. } = self;
        let name = name.filter(|_| field == FileField::Chosen);
        StagedFile { landing, kind, name, stated, content, bytes, digest: random::format_hex(digest.finish().as_ref()) }
    }
}

/// Describes a file for the model, in the words that descriptions of Telegram's files have.
fn describe_file(file: &NewAttachment) -> String {
    match (file.kind.as_str(), file.seconds) {
        ("voice", Some(seconds)) => format!("[voice note, {seconds} s]"),
        ("voice", None) => "[voice note]".to_owned(),
        ("audio", _) => format!("[audio file {}]", describe_landed_file(file)),
        _ => format!("[file {}]", describe_landed_file(file)),
    }
}

/// Cleans a sender's name for a file, which is shown and never a path. `None` if nothing is left.
fn clean_name(name: &str) -> Option<String> {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    // Browsers write a quotation mark so.
    let shown = remove_hidden(last).replace("%22", "'").replace('"', "'");
    let shown = one_line(&shown);
    let shown = first_chars(shown.trim(), MAX_NAME_CHARS);
    (!shown.is_empty()).then(|| shown.to_owned())
}

fn has_room(config: &Config) -> bool {
    let place: PathBuf = config.files_dir();
    let existing = place.ancestors().find(|folder| folder.is_dir()).unwrap_or(&place);
    disk::free_bytes(existing)
        .map_or(true, |free| !config.disk_reserve.is_undercut_by(free.saturating_sub(MAX_FILE_BYTES)))
}

/// Reads a field of text. One that is too long is cut one byte after the limit, so that it is refused.
async fn read_text(mut field: Field<'_>) -> Result<String, CutOff> {
    let mut bytes = Vec::new();
    while let Some(piece) = wait_for(field.chunk()).await? {
        let room = usize::try_from(MAX_SAID_BYTES).unwrap_or(usize::MAX).saturating_add(1).saturating_sub(bytes.len());
        bytes.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the next piece that isn't empty.
async fn next_piece(field: &mut Field<'_>) -> Result<Option<Bytes>, CutOff> {
    loop {
        match wait_for(field.chunk()).await? {
            Some(piece) if piece.is_empty() => {}
            piece => return Ok(piece),
        }
    }
}

/// Reads a field to its end.
async fn drain(mut field: Field<'_>) -> Result<(), CutOff> {
    while wait_for(field.chunk()).await?.is_some() {}
    Ok(())
}

/// Waits for the next piece of the form.
async fn wait_for<T>(piece: impl Future<Output = Result<T, MultipartError>>) -> Result<T, CutOff> {
    tokio::time::timeout(PIECE_TIMEOUT, piece).await.map_err(|_| CutOff)?.map_err(|_| CutOff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_shown_and_never_a_path() {
        assert_eq!(clean_name("C:\\a\\b c.txt").as_deref(), Some("b c.txt"));
        assert_eq!(clean_name("../../etc/pass\nwd\"]").as_deref(), Some("pass wd']"));
        assert_eq!(clean_name("a %22b%22.png").as_deref(), Some("a 'b'.png"));
        assert_eq!(clean_name("a/"), None);
        assert_eq!(clean_name(&"ü".repeat(300)).map(|name| name.chars().count()), Some(MAX_NAME_CHARS));
    }
}
