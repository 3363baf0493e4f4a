//! Renders a statement of the conversation, with its files.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use reveille_base::{disk::format_size, words::SENT_AGAIN};
use reveille_media::{is_sound, words::describe_kind};
use reveille_store::{Attachment, Exchange, Incoming, names_others};

use super::{
    super::{
        markdown::{WrittenBy, render_markdown},
        parts::{render_moment, render_untrusted_badge},
        site::PageContext,
    },
    file::file_address,
};

/// The height of a picture above which it is shown smaller: 14 lines, as in the style sheet.
const FULL_PX: i64 = 224;

/// Renders statements.
pub(super) struct LineView<'a> {
    pub(super) desk: &'a PageContext<'a>,
    /// The files of each message.
    pub(super) files: &'a BTreeMap<i64, Vec<Attachment>>,
}

/// A person's message, apart from what describes it.
#[derive(Debug, PartialEq, Eq)]
struct ReadWords<'a> {
    is_sent_again: bool,
    /// The descriptions of its files.
    files: Vec<&'a str>,
    words: &'a str,
}

impl LineView<'_> {
    /// Renders a statement. `actions` are further buttons below an answer.
    pub(super) fn render_exchange(&self, said: &Exchange, actions: &Markup) -> Markup {
        if said.from.is_some() {
            return self.render_message(said.row, said.at, &said.text, "");
        }
        let by = if said.taint.is_some() { WrittenBy::Others } else { WrittenBy::Own };
        let text = self.desk.clean_text(&said.text);
        html! {
            li .me id=(said.format_number()) {
                p .meta {
                    (self.render_speaker("Reveille", said.at))
                    @if said.taint.as_deref().is_some_and(names_others) { " " (render_untrusted_badge()) }
                }
                (render_markdown(&text, by))
                div .actions.after {
                    button type="button" .quiet.copy data-copy=(text) { "Copy" }
                    (actions)
                }
            }
        }
    }

    /// Renders a message that waits for its answer.
    pub(super) fn render_waiting(&self, message: &Incoming, is_at_work: bool) -> Markup {
        let state = match (message.awaits_files, is_at_work) {
            (true, _) => "listening",
            (false, true) => "in hand",
            (false, false) => "waiting",
        };
        self.render_message(message.id, message.received_at, &message.text, state)
    }

    fn render_message(&self, row: i64, at: Option<DateTime<Utc>>, text: &str, state: &str) -> Markup {
        let text = self.desk.clean_text(text);
        let files = self.files.get(&row).map(Vec::as_slice).unwrap_or_default();
        let read = read_words(&text, files.len());
        html! {
            li .you id={ "m" (row) } {
                p .meta {
                    (self.render_speaker("You", at))
                    @if read.is_sent_again { " " span .badge { "sent again" } }
                    @if !state.is_empty() { " " span .badge { (state) } }
                }
                @if !files.is_empty() {
                    ul .files { @for (at, file) in files.iter().enumerate() { (render_file(file, read.files.get(at).copied())) } }
                }
                @if !read.words.is_empty() { p .words { (read.words) } }
            }
        }
    }

    /// Renders the speaker and the time.
    fn render_speaker(&self, who: &str, at: Option<DateTime<Utc>>) -> Markup {
        html! {
            (who)
            @if let Some(at) = at {
                " " (render_moment(at, self.desk.now, self.desk.config.timezone))
            }
        }
    }
}

/// Renders a file: a picture is shown, anything else can be saved. Sound is described as the model was told of it.
fn render_file(file: &Attachment, described: Option<&str>) -> Markup {
    let is_described = is_sound(&file.file.kind);
    let name = described.filter(|_| is_described).or(file.file.name.as_deref());
    let name = name.unwrap_or_else(|| describe_kind(&file.file.kind));
    let bytes = file.file.bytes.and_then(|bytes| u64::try_from(bytes).ok()).filter(|_| !is_described);
    html! {
        @match (&file.path, file.file.size) {
            (Some(_), Some((width, height))) if is_picture(file) => li .picture .tall[height > FULL_PX] {
                a href=(file_address(file)) {
                    img src=(file_address(file)) alt=(name) width=(width) height=(height) loading="lazy";
                }
            },
            (path, _) => li {
                @if path.is_some() { a href=(file_address(file)) { (name) } } @else { span { (name) } }
                @if let Some(bytes) = bytes { span .meta { (format_size(bytes)) } }
            },
        }
    }
}

fn is_picture(file: &Attachment) -> bool {
    file.file.mime.as_deref().is_some_and(|mime| mime.starts_with("image/"))
}

/// Takes the descriptions of at most `files` files off a message's beginning.
fn read_words(text: &str, files: usize) -> ReadWords<'_> {
    let again = text.strip_prefix(SENT_AGAIN).map(|rest| rest.trim_start_matches('\n'));
    let mut read = ReadWords { is_sent_again: again.is_some(), files: Vec::new(), words: again.unwrap_or(text) };
    while read.files.len() < files {
        let (line, rest) = read.words.split_once('\n').unwrap_or((read.words, ""));
        let Some(file) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) else { break };
        read.files.push(file);
        read.words = rest;
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_a_message_is_no_word_of_it() {
        let read = |text, files| {
            let ReadWords { is_sent_again, files, words } = read_words(text, files);
            (is_sent_again, files.join("|"), words)
        };
        assert_eq!(read("[a] b\nc", 2), (false, String::new(), "[a] b\nc"));
        assert_eq!(read("[file \"a\"]\n[mine]\nc", 1), (false, "file \"a\"".to_owned(), "[mine]\nc"));
        assert_eq!(read("[sent again]\n[voice note, 3 s]", 1), (true, "voice note, 3 s".to_owned(), ""));
        assert_eq!(read("[file]", 0), (false, String::new(), "[file]"));
    }
}
