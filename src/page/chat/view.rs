//! Renders the chat: its head, the conversation, the work in hand, and the field for a message.

use maud::{Markup, html};

use reveille_base::{
    approval_text::escape_hidden,
    words::{one_line, truncate_text},
};
use reveille_config::OFFLINE_MODEL;
use reveille_media::MAX_FILE_BYTES;
use reveille_store::{Entry, TalkMark, TerminalSession};
use reveille_tools::Plan;

use super::{
    super::{
        error::PageError,
        frame::{PagePlace, render_frame},
        notes::form_key,
        parts::build_address,
        questions::render_card,
        site::PageContext,
    },
    PATH,
    line::LineView,
    say::SAY_AGAIN,
    talk::{ChatLine, NewestTalk, TalkPage, format_mark, read_earlier, read_talk},
    upload::{MAX_FILES, Upload},
};
use crate::bot::progress_line;

/// Maximum characters shown of a plan's step.
const STEP_CHARS: usize = 160;
/// The place before everything.
const BEGINNING: TalkMark = TalkMark { incoming_id: 0, outgoing_id: 0 };

/// What the field for a message shows.
#[derive(Default)]
pub(super) struct Composer {
    /// The outcome of an action elsewhere.
    pub(super) note: Markup,
    /// The text in the field.
    pub(super) typed: String,
    /// The reason why it wasn't sent.
    pub(super) why: Option<String>,
    /// The form's files, which no page can put back into their field.
    pub(super) has_lost_files: bool,
}

impl Composer {
    /// The field for a message that wasn't taken.
    pub(super) fn give_back(upload: &Upload) -> Self {
        Self { typed: upload.text.clone(), has_lost_files: upload.has_sent_files, ..Self::default() }
    }
}

/// Renders the newest part of the conversation, with the field for a message.
pub(super) fn render_page(
    desk: &PageContext<'_>,
    session: &TerminalSession,
    since: Option<TalkMark>,
    composer: &Composer,
) -> Result<Markup, PageError> {
    let read = read_talk(desk, session, since);
    // The typed text is shown again even if the chat is unreadable.
    let is_unread = composer.why.is_some() && read.is_err();
    let talk = if is_unread { NewestTalk::default() } else { read?.unwrap_or_default() };
    let said = talk.page.said.iter().filter(|said| said.from.is_none()).map(|said| said.row);
    let shown = said.chain(talk.asking.iter().copied());
    let unseen: Vec<String> = shown.filter(|row| talk.unshown.contains(row)).map(|row| row.to_string()).collect();
    // An open page keeps its beginning.
    let renewed = build_address(PATH, &[("since", &format_mark(talk.page.earlier.unwrap_or(BEGINNING)))]);
    let content = html! {
        (render_head(""))
        (render_older(talk.page.earlier))
        section #live-chat data-live=(renewed) {
            @if is_unread {
                p { "I can't read this conversation right now." }
            } @else if talk.page.said.is_empty() && talk.waiting.is_empty() {
                p { "No messages yet. I save what you write below first, then answer it here." }
                @if desk.config.effective_model() == OFFLINE_MODEL {
                    p .meta { "No AI model is set, so I understand only simple requests, such as “remind me to stretch at 5”." }
                }
            }
            ol .talk { (render_talk(desk, &talk)) }
            @if !unseen.is_empty() {
                input type="hidden" name="seen" value=(unseen.join(",")) form="say" data-unseen;
            }
        }
        div #preview .card hidden {}
        section #live-work data-live { (render_work(desk, &talk)) }
        div #told { (composer.note) }
        (render_composer(desk, composer))
    };
    Ok(render_frame(PagePlace::Chat, "Chat", &content))
}

/// Renders the work in hand, what may be undone, and what is asked.
fn render_work(desk: &PageContext<'_>, talk: &NewestTalk) -> Markup {
    html! {
        @if let Some(calls) = &talk.at_work { (render_progress(desk, calls)) }
        @if talk.at_work.is_some() && !talk.is_stopped { (render_order("/stop", "Stop")) }
        (talk.newest)
        @for question in &talk.questions { (render_card(desk, question, "chat")) }
        @if talk.is_stopped {
            div .note.stopped {
                p { "Stopped. New messages will wait." }
                (render_order("/resume", "Continue"))
            }
        }
    }
}

/// Renders an earlier part of the conversation.
pub(super) fn render_earlier(desk: &PageContext<'_>, before: TalkMark) -> Result<Markup, PageError> {
    let page = read_earlier(desk, before)?;
    let content = html! {
        (render_head(""))
        (render_older(page.earlier))
        @if page.said.is_empty() { p { "Nothing was said before that." } }
        ol #past .talk { (render_past(desk, &page)) }
        p .ways { a href=(PATH) { "Newest messages" } }
    };
    Ok(render_frame(PagePlace::Chat, "Earlier messages", &content))
}

/// Renders the search field, and the button that starts a new chat.
pub(super) fn render_head(words: &str) -> Markup {
    html! {
        div .chat-head {
            form method="get" action=(PATH) role="search" {
                input type="search" name="find" value=(words) placeholder="Search this chat" aria-label="Search this chat" maxlength="200";
                button type="submit" { "Search" }
            }
            form method="post" action=(PATH) {
                input type="hidden" name="key" value=(form_key());
                input type="hidden" name="text" value="/new";
                button type="submit" title="I leave out what we said before. Nothing is deleted." { "New chat" }
            }
        }
    }
}

/// Renders the link to what was said before, which a script follows while the person scrolls.
fn render_older(earlier: Option<TalkMark>) -> Markup {
    html! {
        @if let Some(earlier) = earlier {
            div #older {
                p .ways { a #earlier href=(build_address(PATH, &[("before", &format_mark(earlier))])) { "Earlier messages" } }
                ol .talk {}
            }
        }
    }
}

fn render_talk(desk: &PageContext<'_>, talk: &NewestTalk) -> Markup {
    let view = LineView { desk, files: &talk.page.files };
    let is_at_work = talk.at_work.is_some();
    // What may be asked again: the last request, once it is answered.
    let may_repeat = talk.waiting.is_empty() && !is_at_work;
    let lines = talk.list_lines();
    let last_answer = talk.page.said.last().filter(|last| may_repeat && last.from.is_none()).map(|last| last.row);
    let last_asked = talk.page.said.iter().rev().find(|said| said.from.is_some()).map(|said| said.row);
    let again = last_answer.zip(last_asked);
    let mut was_old = false;
    html! {
        @for line in lines {
            @let is_old = talk.page.fresh.is_some_and(|fresh| match line {
                ChatLine::Said(said) => fresh.is_after(said),
                ChatLine::Waiting(message) => message.id <= fresh.incoming_id,
            });
            @if std::mem::replace(&mut was_old, is_old) && !is_old { (render_fresh_start()) }
            @match line {
                ChatLine::Said(said) => (view.render_exchange(said, &match again {
                    Some((answer, asked)) if said.from.is_none() && said.row == answer => render_again(asked, answer),
                    _ => Markup::default(),
                })),
                ChatLine::Waiting(message) => (view.render_waiting(message, is_at_work)),
            }
        }
        @if was_old { (render_fresh_start()) }
    }
}

fn render_past(desk: &PageContext<'_>, page: &TalkPage) -> Markup {
    let view = LineView { desk, files: &page.files };
    let mut was_old = false;
    html! {
        @for said in &page.said {
            @let is_old = page.fresh.is_some_and(|fresh| fresh.is_after(said));
            @if std::mem::replace(&mut was_old, is_old) && !is_old { (render_fresh_start()) }
            (view.render_exchange(said, &Markup::default()))
        }
    }
}

fn render_fresh_start() -> Markup {
    html! { li .fresh { span { "New chat" } } }
}

/// Renders the button that sends the last request again.
fn render_again(asked: i64, answer: i64) -> Markup {
    html! {
        form method="post" action=(SAY_AGAIN) {
            // The same for the same answer, so that a second click sends nothing.
            input type="hidden" name="key" value={ "again-" (asked) "-" (answer) };
            input type="hidden" name="message" value=(asked);
            button type="submit" .quiet { "Try again" }
        }
    }
}

/// Renders a button that gives a command.
fn render_order(command: &str, name: &str) -> Markup {
    html! {
        form method="post" action=(PATH) .actions {
            input type="hidden" name="text" value=(command);
            button type="submit" { (name) }
        }
    }
}

fn render_composer(desk: &PageContext<'_>, composer: &Composer) -> Markup {
    html! {
        form #say method="post" action=(PATH) enctype="multipart/form-data" data-max-bytes=(MAX_FILE_BYTES) data-max-files=(MAX_FILES) {
            @if let Some(why) = &composer.why {
                p #say-refused .note .bad role="alert" {
                    (why)
                    @if composer.has_lost_files { span #files-lost { " Only the text was kept: add your files again." } }
                }
            }
            p #say-note .note .bad role="alert" hidden {}
            input type="hidden" name="key" value=(form_key());
            div .field {
                label for="text" { "Your message" }
                textarea #text name="text" rows="2" autofocus aria-describedby="say-how" { (composer.typed) }
            }
            ul #chosen .files aria-label="Files to send" hidden {}
            div .actions {
                button type="submit" { "Send" }
                label .attach {
                    span .button { "Add files" }
                    input #files type="file" name="files" multiple;
                }
                @if desk.config.whisper_model.is_some() {
                    span #voice hidden {
                        input type="file" name="voice" aria-label="Recording" hidden;
                        input type="hidden" name="seconds";
                        button #record type="button" { "Record" }
                        button #discard type="button" hidden { "Discard" }
                        span #recorded .meta role="timer" hidden {}
                    }
                }
                span #say-how .meta {
                    code { "/help" } " lists the commands. "
                    span #enter-sends hidden { "Enter sends, Shift+Enter begins a new line." }
                }
            }
        }
    }
}

/// Renders the progress of the running wake, with its plan.
fn render_progress(desk: &PageContext<'_>, calls: &[Entry]) -> Markup {
    let planned = calls.iter().rev().find_map(|entry| match entry {
        Entry::Called { name, input, .. } if name == "plan" => serde_json::from_str::<Plan>(input).ok(),
        _ => None,
    });
    let step = |what: &str| desk.clean_text(&escape_hidden(&truncate_text(&one_line(what), STEP_CHARS)));
    html! {
        div .card .idle[planned.is_none()] {
            p { (step(&progress_line(calls))) }
            @if let Some(plan) = planned.filter(|plan| !plan.steps.is_empty()) {
                details {
                    summary { "The plan" }
                    ol { @for planned in &plan.steps { li { (step(&planned.what)) } } }
                }
            }
        }
    }
}
