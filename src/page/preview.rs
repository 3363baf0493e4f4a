//! The answer in the chat while it is written. It is replaced by the answer itself, and counts for nothing.

use std::path::{Path, PathBuf};

use axum::body::Bytes;
use maud::{Markup, html};

use reveille_base::{approval_text::escape_hidden, types::ChatRef};
use reveille_live::{LiveReader, Preview};
use reveille_store::wake_lock;

use super::{
    markdown::{WrittenBy, render_markdown},
    site::PageSite,
};

/// Follows the preview for one open page.
pub(super) struct ChatPreview {
    reader: LiveReader,
    lock_path: PathBuf,
    /// Whether a wake is alive that holds this lock. A killed one leaves its preview to the next.
    is_written: fn(&Path) -> bool,
    has_shown: bool,
}

impl ChatPreview {
    pub(super) fn new(site: &PageSite) -> Self {
        Self {
            reader: LiveReader::new(site.config().live_path()),
            lock_path: site.config().lock_path(),
            is_written: |path| wake_lock::read_holder(path).is_some_and(|holder| holder.identity().is_alive()),
            has_shown: false,
        }
    }

    /// Returns the event that shows what is new, or that nothing is written any more. `None` without news.
    pub(super) fn next_event(&mut self) -> Option<Bytes> {
        if !self.reader.refresh() {
            return None;
        }
        let preview = self
            .reader
            .preview()
            .filter(|preview| preview.watched.chat == ChatRef::TERMINAL && (self.is_written)(&self.lock_path));
        let html = preview.and_then(render_preview).map(Markup::into_string).unwrap_or_default();
        let had_shown = std::mem::replace(&mut self.has_shown, !html.is_empty());
        if html.is_empty() && !had_shown {
            return None;
        }
        let lines: Vec<String> = html.lines().map(|line| format!("data: {line}\n")).collect();
        Some(
            format!("event: preview\n{}\n", if lines.is_empty() { "data:\n".to_owned() } else { lines.concat() })
                .into(),
        )
    }
}

fn render_preview(preview: &Preview) -> Option<Markup> {
    let text = preview.words();
    let step = preview.running_step();
    let by = if preview.is_tainted { WrittenBy::Others } else { WrittenBy::Own };
    let is_empty = text.is_empty() && step.is_none() && preview.joined.is_none();
    (!is_empty).then(|| {
        html! {
            p .meta { "Reveille is writing…" }
            (render_markdown(text, by))
            @if let Some(joined) = &preview.joined { p .meta { "Added: " (escape_hidden(joined)) } }
            @if let Some(step) = step { p .meta { (escape_hidden(&step.what)) "…" } }
        }
    })
}

#[cfg(test)]
mod tests {
    use reveille_base::redact::Redactor;
    use reveille_live::{LiveFeed, WatchedCycle};

    use super::*;

    #[test]
    fn a_growing_answer_is_told_and_its_end_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("live");
        let mut chat = ChatPreview {
            reader: LiveReader::new(path.clone()),
            lock_path: PathBuf::new(),
            is_written: |_| true,
            has_shown: false,
        };
        let mut next = || chat.next_event().map(|event| String::from_utf8(event.to_vec()).unwrap());
        assert_eq!(next(), None);
        let cycle = WatchedCycle { cycle_id: "c".to_owned(), chat: ChatRef::TERMINAL, thread_id: None };
        let mut feed = LiveFeed::begin(&path, Some(cycle), &Redactor::default());
        feed.begin_turn();
        assert_eq!(next(), None, "nothing is written yet");
        feed.add_text("It is **blue** <b>and</b> ");
        let told = next().unwrap();
        assert!(told.starts_with("event: preview\ndata: <p") && told.ends_with("\n\n"), "{told}");
        assert!(told.contains("<strong>blue</strong> &lt;b&gt;and"), "{told}");
        assert_eq!(next(), None);
        drop(feed);
        assert_eq!(next().as_deref(), Some("event: preview\ndata:\n\n"));
        assert_eq!(next(), None);
    }
}
