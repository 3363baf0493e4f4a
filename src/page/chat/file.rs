//! Serves the files of the chat, by their numbers: pictures are shown, anything else is saved.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path as FilePath,
    sync::Arc,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, State},
    http::{
        HeaderValue,
        header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    },
    response::{IntoResponse as _, Response},
    routing::get,
};
use tokio::sync::mpsc;

use reveille_media::content::{self, Content, HEAD_BYTES};
use reveille_store::Attachment;

use super::super::{
    error::PageError,
    live::PieceBody,
    site::{PageContext, PageSite},
};

/// Bytes read at a time, and pieces that wait for the browser.
const PIECE_BYTES: usize = 64 * 1024;
const WAITING_PIECES: usize = 4;

pub(super) fn routes() -> Router<Arc<PageSite>> {
    Router::new().route("/chat/file/{message}/{file}", get(serve_file))
}

/// The address of a message's file.
pub(super) fn file_address(file: &Attachment) -> String {
    format!("/chat/file/{}/{}", file.message_id, file.id)
}

/// A file to serve.
struct OpenFile {
    file: File,
    head: Vec<u8>,
    /// A name without a path or quotes.
    name: String,
}

async fn serve_file(
    State(site): State<Arc<PageSite>>,
    Path((message, file)): Path<(i64, i64)>,
) -> Result<Response, PageError> {
    let OpenFile { file, head, name } = site.run_blocking(move |desk| open_file(desk, message, file)).await?;
    let (kind, shown) = match content::sniff(&head) {
        Content::Image { mime, .. } => (mime, "inline".to_owned()),
        _ => ("application/octet-stream", format!("attachment; filename=\"{name}\"")),
    };
    let (sender, pieces) = mpsc::channel(WAITING_PIECES);
    tokio::task::spawn_blocking(move || send_pieces(file, head, &sender));
    let shown = HeaderValue::from_str(&shown).map_err(|_| PageError::Broken)?;
    let about = [(CONTENT_TYPE, HeaderValue::from_static(kind)), (CONTENT_DISPOSITION, shown)];
    Ok((about, Body::new(PieceBody(pieces))).into_response())
}

/// Opens a file of the terminals' chat.
fn open_file(desk: &PageContext<'_>, message: i64, file: i64) -> Result<OpenFile, PageError> {
    let missing = || PageError::Missing("That file isn't here any more.".to_owned());
    let store = desk.open_store()?.ok_or_else(missing)?;
    let files = store.attachments().list_message_attachments(&[message])?;
    let found = files.into_iter().find(|found| found.id == file && found.chat.is_terminal()).ok_or_else(missing)?;
    let path = found.path.ok_or_else(missing)?;
    let ending = FilePath::new(&path).extension().and_then(|ending| ending.to_str()).unwrap_or("bin");
    let name = format!("file-{file}.{ending}");
    let (file, head) = open_plain(&desk.config.media_dir.join(&path)).map_err(|_| missing())?;
    Ok(OpenFile { file, head, name })
}

/// Opens a file that is no link, and reads its beginning.
fn open_plain(path: &FilePath) -> io::Result<(File, Vec<u8>)> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok((file, head))
}

/// Sends a file until its end, or until nobody reads it any more.
fn send_pieces(mut file: File, head: Vec<u8>, to: &mpsc::Sender<Bytes>) {
    let mut piece = head;
    while !piece.is_empty() && to.blocking_send(Bytes::from(piece)).is_ok() {
        piece = Vec::with_capacity(PIECE_BYTES);
        if file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece).is_err() {
            return;
        }
    }
}
