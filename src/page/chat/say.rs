//! Takes messages: each is stored before it is answered, and once however often its form is sent.

use std::sync::Arc;

use axum::{
    Form, Router,
    extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request, State},
    http::{Method, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Redirect, Response},
    routing::post,
};
use serde::Deserialize;

use reveille_base::{process::Identity, words::SENT_AGAIN};
use reveille_cycle::stop;
use reveille_media::is_sound;
use reveille_store::{LandedFile, TerminalSession};

use super::{
    super::{
        error::PageError,
        site::{PageContext, PageSite},
    },
    FormMark, PATH, mark_seen, open_store,
    upload::{MAX_FORM_BYTES, Upload, receive_upload},
    view::{Composer, render_page},
};
use crate::bot::{AfterPut, MAX_SAID_BYTES, store_terminal_statement};

/// The address that sends a request again.
pub(super) const SAY_AGAIN: &str = "/chat/again";
pub(super) fn routes() -> Router<Arc<PageSite>> {
    // An upload limits each file by itself. This limits the rest, such as endless heads of fields.
    let limit = DefaultBodyLimit::max(usize::try_from(MAX_FORM_BYTES).unwrap_or(usize::MAX));
    let upload = Router::new().route(PATH, post(receive_message)).layer(limit);
    upload.route(SAY_AGAIN, post(send_again))
}

/// Returns true for a request whose body is read piece by piece, since it may hold files.
pub(in crate::page) fn is_upload(request: &Request) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    *request.method() == Method::POST && request.uri().path() == PATH && kind.starts_with("multipart/form-data")
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SayForm {
    text: String,
    key: String,
    /// Rows of the texts on the page with this form.
    seen: String,
}

/// A message to store.
struct SentMessage {
    text: String,
    files: Vec<LandedFile>,
    /// Rows of the texts on the page with its form.
    seen: String,
}

async fn receive_message(State(site): State<Arc<PageSite>>, request: Request) -> Result<Response, PageError> {
    site.chat.record_visit();
    let mut upload = read_form(&site, request).await?;
    upload.text = upload.text.replace("\r\n", "\n").trim().to_owned();
    let refused = match upload.text.len() as u64 {
        _ if upload.refused.is_some() => upload.refused.take(),
        0 if !upload.has_files() => Some("There is nothing to send: the text is empty.".to_owned()),
        MAX_SAID_BYTES.. => Some(format!("That is longer than {MAX_SAID_BYTES} bytes, so it wasn't sent.")),
        _ => None,
    };
    if let Some(why) = refused {
        let composer = Composer { why: Some(why), ..Composer::give_back(&upload) };
        return show_refusal(&site, composer).await;
    }
    let mark = FormMark { key: upload.key.clone(), content: upload.identity() };
    let of_site = Arc::clone(&site);
    let composer = Composer::give_back(&upload);
    // Done in one piece on its thread, since a reloading browser cancels what comes after an await.
    let kept = site.run_blocking(move |desk| of_site.chat.store_once(&mark, || keep_upload(desk, &of_site, upload)));
    if let Err(error) = kept.await {
        return show_failure(&site, composer, error).await;
    }
    Ok(Redirect::to(PATH).into_response())
}

/// Reads a form with or without files.
async fn read_form(site: &PageSite, request: Request) -> Result<Upload, PageError> {
    let unread = || PageError::Refused("I couldn't read what was sent. Nothing was sent on.".to_owned());
    if is_upload(&request) {
        let form = Multipart::from_request(request, &()).await.map_err(|_| unread())?;
        return Ok(receive_upload(site.config(), form).await);
    }
    let Form(SayForm { text, key, seen }) = Form::from_request(request, &()).await.map_err(|_| unread())?;
    Ok(Upload::from_text(text, key, seen))
}

/// Puts the files of a message in their places, and stores it.
fn keep_upload(desk: &PageContext<'_>, site: &PageSite, mut upload: Upload) -> Result<(), PageError> {
    let seen = std::mem::take(&mut upload.seen);
    let (text, files) = upload.place_files(desk.config).map_err(|why| PageError::Refused(why.to_string()))?;
    keep_message(desk, site, &SentMessage { text, files, seen })
}

/// Stores a message, and has it listened to or answered.
fn keep_message(desk: &PageContext<'_>, site: &PageSite, said: &SentMessage) -> Result<(), PageError> {
    let after = store_message(desk, &site.chat.session, said)?;
    site.chat.opened.notify_one();
    if said.files.iter().any(|landed| is_sound(&landed.file.kind)) {
        site.chat.recorded.notify_one();
    } else if after == AfterPut::Wake {
        site.nudge.notify_one();
    }
    Ok(())
}

/// Stores a message under this session.
fn store_message(desk: &PageContext<'_>, session: &TerminalSession, said: &SentMessage) -> Result<AfterPut, PageError> {
    let mut store = open_store(desk)?;
    mark_seen(&mut store, session, &said.seen, desk.now)?;
    store.terminals_mut().open_session(session, &Identity::current(), desk.now)?;
    let put = (said.text.as_str(), said.files.as_slice());
    let after =
        store_terminal_statement((desk.config, desk.redactor), &mut store, session, put, desk.now)?.remaining_work();
    if after == AfterPut::EndPrograms {
        stop::end_children(&desk.config.lock_path());
    }
    Ok(after)
}

/// Shows why a message wasn't taken, and keeps the text in the field.
async fn show_refusal(site: &Arc<PageSite>, composer: Composer) -> Result<Response, PageError> {
    let of_site = Arc::clone(site);
    let page = site.run_blocking(move |desk| render_page(desk, &of_site.chat.session, None, &composer));
    Ok((StatusCode::UNPROCESSABLE_ENTITY, page.await?).into_response())
}

/// Shows the error and keeps the text in the field.
async fn show_failure(site: &Arc<PageSite>, composer: Composer, error: PageError) -> Result<Response, PageError> {
    let of_site = Arc::clone(site);
    let page = site.run_blocking(move |desk| {
        let why =
            format!("Your message wasn't saved: {}. The text is still below.", desk.clean_text(&error.to_string()));
        let composer = Composer { why: Some(why), ..composer };
        render_page(desk, &of_site.chat.session, None, &composer)
    });
    Ok((StatusCode::INTERNAL_SERVER_ERROR, page.await?).into_response())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgainForm {
    key: String,
    /// The row of the message.
    message: i64,
}

/// Sends a request again, as a new message that says so, with its files.
async fn send_again(State(site): State<Arc<PageSite>>, Form(form): Form<AgainForm>) -> Result<Response, PageError> {
    site.chat.record_visit();
    let of_site = Arc::clone(&site);
    let sent = site.run_blocking(move |desk| {
        let said = read_request(desk, form.message)?;
        let mark = FormMark { key: form.key, content: said.text.clone() };
        of_site.chat.store_once(&mark, || keep_message(desk, &of_site, &said))
    });
    sent.await?;
    Ok(Redirect::to(PATH).into_response())
}

/// Reads an earlier request from the terminals as a new one. A recording's words are part of its text already.
fn read_request(desk: &PageContext<'_>, row: i64) -> Result<SentMessage, PageError> {
    let store = open_store(desk)?;
    let messages = store.inbox().list_messages(&[row])?;
    let Some(message) = messages.into_iter().find(|message| message.chat.is_terminal()) else {
        return Err(PageError::Missing("That message isn't here any more. Nothing was sent.".to_owned()));
    };
    let words = message.text.strip_prefix(SENT_AGAIN).map_or(message.text.as_str(), str::trim_start);
    let files = store.attachments().list_message_attachments(&[row])?;
    let files = files.into_iter().filter(|file| !is_sound(&file.file.kind));
    let files = files.filter_map(|file| Some(LandedFile { path: file.path?, file: file.file })).collect();
    Ok(SentMessage { text: format!("{SENT_AGAIN}\n{words}"), files, seen: String::new() })
}
