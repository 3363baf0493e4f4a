//! Finds files that a message names by path, typed or dragged into the terminal, which quotes paths or escapes blanks.
//! A picture is attached in any place. Other files are attached only if the word is clearly a path without hidden
//! parts, so a question about `~/.ssh/id_ed25519` doesn't send the key. Paths without a file stay text.

use std::{
    fs::OpenOptions,
    io::Read as _,
    ops::Range,
    os::unix::fs::OpenOptionsExt as _,
    path::{Component, Path, PathBuf},
};

use rustix::fs::OFlags;

use reveille_base::{
    disk,
    random::{self, NoRandomness},
};
use reveille_media as media;
use reveille_media::{
    MAX_FILE_BYTES,
    content::{self, Content, HEAD_BYTES},
};
use reveille_store::{LandedFile, NewAttachment};

use crate::bot::media::{Landing, describe_landed_file};

/// Maximum files of one message.
const MAX_FILES: usize = 10;
/// Maximum bytes of a path.
const MAX_PATH_BYTES: usize = 4_096;
/// Characters that may follow a path in a sentence.
const PUNCTUATION: [char; 8] = ['.', ',', ';', ':', '!', '?', ')', '…'];
/// Random bytes in the name of a copied file.
const NAME_BYTES: usize = 8;
/// Files are sent as documents, never reduced in size.
const KIND: &str = "document";

/// A message with the files that it names.
#[derive(Debug, Default)]
pub(super) struct NamedFiles {
    text: String,
    files: Vec<FoundFile>,
    /// Notes for the person about files that weren't attached.
    pub(super) notes: Vec<String>,
}

#[derive(Debug)]
struct FoundFile {
    path: PathBuf,
    file: NewAttachment,
    bytes: Vec<u8>,
}

/// The reason why files couldn't be copied into the workspace.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyFailed {
    #[error("the file can't be copied into the workspace: {0}")]
    Unwritable(#[from] std::io::Error),
    #[error(transparent)]
    NoName(#[from] NoRandomness),
}

/// Finds the paths in a message. A command names none.
pub(super) fn find_files(text: &str, home: Option<&Path>) -> NamedFiles {
    let mut found = NamedFiles::default();
    let mut written = 0;
    for (at, token) in split_words(text).into_iter().enumerate() {
        let Token { range, word } = token;
        let found_file = [word.as_str(), word.trim_end_matches(PUNCTUATION)]
            .into_iter()
            .find_map(|word| Some((word, read_file(word, home, &mut found.notes)?)));
        let Some((path, file)) = found_file else {
            if at == 0 && text.starts_with('/') {
                break;
            }
            continue;
        };
        let rest = word.get(path.len()..).unwrap_or_default();
        let name = file.file.name.clone().unwrap_or_default();
        found.text.push_str(text.get(written..range.start).unwrap_or_default());
        found.text.push_str(&format!("{name}{rest}"));
        written = range.end;
        if found.files.iter().any(|other| other.path == file.path) {
            continue;
        }
        if found.files.len() == MAX_FILES {
            found.notes.push(format!("  {name} wasn't attached: a message takes at most {MAX_FILES} files."));
            continue;
        }
        found.files.push(file);
    }
    found.text.push_str(text.get(written..).unwrap_or_default());
    found
}

impl NamedFiles {
    /// Copies the files into the workspace. Returns the message's text with a line for each file above it.
    pub(super) fn copy_to_workspace(self, workspace: &Path) -> Result<(String, Vec<LandedFile>), CopyFailed> {
        let Self { text, files, .. } = self;
        let mut lines = Vec::new();
        let mut landed = Vec::new();
        for FoundFile { file, bytes, .. } in files {
            let name = format!("terminal-{}", random::format_hex(&random::generate_bytes::<NAME_BYTES>()?));
            let path = media::build_named_path(&name, KIND, file.mime.as_deref());
            let mut landing = Landing::begin(&workspace.join(&path))?;
            landing.write(&bytes)?;
            landing.move_into_place()?;
            lines.push(format!("[file {}]", describe_landed_file(&file)));
            landed.push(LandedFile { file, path });
        }
        lines.push(text);
        Ok((lines.join("\n"), landed))
    }
}

/// A word of a message.
#[derive(Debug, PartialEq, Eq)]
struct Token {
    /// Its place in the message, with quotes and backslashes.
    range: Range<usize>,
    /// Its text, without quotes and backslashes.
    word: String,
}

/// Splits a text into words. Quotes around words keep them together; a backslash escapes a quote or a blank.
fn split_words(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((start, c)) = rest.next() {
        if c.is_whitespace() {
            continue;
        }
        if let Some(end) = find_closing_quote(text, start, c) {
            let word = text.get(start + 1..end).unwrap_or_default().to_owned();
            while rest.next_if(|(at, _)| *at <= end).is_some() {}
            tokens.push(Token { range: start..end + 1, word });
            continue;
        }
        let (mut word, mut end, mut next) = (String::new(), start, Some((start, c)));
        while let Some((at, c)) = next {
            end = at + c.len_utf8();
            let is_escape = c == '\\' && rest.peek().is_some_and(|(_, next)| !next.is_alphanumeric() && *next != '\n');
            match (is_escape, rest.peek().copied()) {
                (true, Some((at, escaped))) => {
                    rest.next();
                    end = at + escaped.len_utf8();
                    word.push(escaped);
                }
                _ => word.push(c),
            }
            next = rest.next_if(|(_, c)| !c.is_whitespace());
        }
        tokens.push(Token { range: start..end, word });
    }
    tokens
}

/// Finds the end of a quotation. `None` if the mark is an apostrophe or is never closed.
fn find_closing_quote(text: &str, start: usize, quote: char) -> Option<usize> {
    if !matches!(quote, '\'' | '"') {
        return None;
    }
    let inside = text.get(start + 1..)?;
    let is_end = |at: usize| {
        let behind = inside.get(at + 1..).unwrap_or_default().chars().next();
        behind.is_none_or(|c| c.is_whitespace() || PUNCTUATION.contains(&c))
    };
    let (at, _) = inside.match_indices(quote).find(|(at, _)| is_end(*at))?;
    (!inside.get(..at)?.contains('\n')).then_some(start + 1 + at)
}

/// Reads the file at a path. `None` if it is missing or must not be attached.
fn read_file(word: &str, home: Option<&Path>, notes: &mut Vec<String>) -> Option<FoundFile> {
    if !word.contains(['/', '.']) || word.len() > MAX_PATH_BYTES || word.contains('\0') {
        return None;
    }
    let path = match word.strip_prefix("~/") {
        Some(below) => home?.join(below),
        None => PathBuf::from(word),
    };
    let name = path.file_name()?.to_string_lossy().into_owned();
    // Opening must not block on a pipe or a device.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(&path).ok()?;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() > 0)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).ok()?;
    let head = bytes.get(..bytes.len().min(HEAD_BYTES)).unwrap_or_default();
    let mime = match content::sniff(head) {
        Content::Image { mime, .. } => Some(mime),
        _ if !is_meant_as_path(word) || is_hidden(word) => return None,
        Content::Text => Some("text/plain"),
        Content::Pdf => Some("application/pdf"),
        Content::Other => None,
    };
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let (size, most) = (disk::format_size(metadata.len()), disk::format_size(MAX_FILE_BYTES));
        notes.push(format!("  {name} wasn't attached: it has {size}; the limit is {most}."));
        return None;
    }
    let length = i64::try_from(bytes.len()).ok();
    let file = NewAttachment {
        kind: KIND.to_owned(),
        name: Some(name),
        mime: mime.map(str::to_owned),
        bytes: length,
        ..NewAttachment::default()
    };
    Some(FoundFile { path, file, bytes })
}

/// Returns `true` if a word is clearly meant as a path.
fn is_meant_as_path(word: &str) -> bool {
    ["/", "~/", "./", "../"].iter().any(|begin| word.starts_with(begin))
}

fn is_hidden(word: &str) -> bool {
    Path::new(word).components().any(|part| match part {
        Component::Normal(name) => name.to_string_lossy().starts_with('.'),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x02";

    fn words(text: &str) -> Vec<String> {
        split_words(text).into_iter().map(|token| token.word).collect()
    }

    #[test]
    fn quotes_and_backslashes_hold_a_path_together() {
        assert_eq!(words("see '/a b/c.png' and \"d e.png\", ok"), ["see", "/a b/c.png", "and", "d e.png", ",", "ok"]);
        assert_eq!(words(r"/a\ b/c\(1\).png now"), ["/a b/c(1).png", "now"]);
        assert_eq!(words("don't say 'it's' so"), ["don't", "say", "it's", "so"]);
        assert_eq!(words(r"C:\temp 'open"), [r"C:\temp", "'open"]);
    }

    fn taken(text: &str) -> (String, Vec<String>) {
        let found = find_files(text, None);
        (found.text, found.files.into_iter().map(|file| file.file.name.unwrap()).collect())
    }

    #[test]
    fn existing_files_are_attached_and_other_words_stay_text() {
        let dir = tempfile::Builder::new().prefix("seen").tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::write(path("a cat.png"), PNG).unwrap();
        fs::write(path("list.txt"), "milk").unwrap();
        fs::create_dir(path(".ssh")).unwrap();
        fs::write(path(".ssh/key"), "secret").unwrap();
        fs::write(path("empty.txt"), "").unwrap();
        let cat = path("a cat.png");
        assert_eq!(
            taken(&format!("what is '{cat}'?")),
            ("what is a cat.png?".to_owned(), vec!["a cat.png".to_owned()])
        );
        let escaped = cat.replace(' ', "\\ ");
        assert_eq!(taken(&escaped), ("a cat.png".to_owned(), vec!["a cat.png".to_owned()]));
        let text = format!("read {}.", path("list.txt"));
        assert_eq!(taken(&text), ("read list.txt.".to_owned(), vec!["list.txt".to_owned()]));
        for words in [path(".ssh/key"), path("empty.txt"), path("gone.png"), dir.path().display().to_string()] {
            assert_eq!(taken(&words), (words, Vec::new()));
        }
        let command = format!("/memory {cat}");
        assert_eq!(taken(&command), (command.clone(), Vec::new()));
    }
}
