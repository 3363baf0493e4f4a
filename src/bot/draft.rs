//! Shows the answer in the owner's private chat while it is written, as a draft that Telegram drops after half a minute.
//!
//! A draft counts for nothing: it makes no message, and the answer is delivered as if there were none. The wake waits a moment for a
//! draft on its way before it delivers, so that none comes after the answer.

use std::{
    cell::{Cell, RefCell},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::PathBuf,
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use reveille_base::words::{last_chars, one_line, truncate_text};
use reveille_channels::{DraftMessage, Presence, SendError};
use reveille_live::{LiveReader, Preview};
use reveille_memory::render::{self, Links};

/// How often to look for more text while a wake runs.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Minimum time between two drafts. Telegram allows a chat about one message a second.
const CHANGE_EVERY: Duration = Duration::from_secs(1);
/// The age at which an unchanged draft is sent again. Telegram drops it after 30 seconds.
const RENEW_AFTER: Duration = Duration::from_secs(20);
/// Maximum duration of a call. The answer waits for it.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum length of the shown text, in characters. Of a longer one the end is shown.
const MAX_CHARS: usize = 3_000;
/// Maximum length of a displayed step, in characters.
const MAX_STEP_CHARS: usize = 120;
/// The time after which a server that had no drafts is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// The drafts of a bot.
#[derive(Debug, Default)]
pub(super) struct ShownDrafts {
    /// The cycle whose draft is shown.
    cycle_id: RefCell<Option<String>>,
    /// When the server said that it has no drafts.
    refused_at: Cell<Option<Instant>>,
}

impl ShownDrafts {
    /// Returns `true` if the chat of this cycle sees a draft, and needs no other sign of progress.
    pub(super) fn has(&self, cycle_id: &str) -> bool {
        self.cycle_id.borrow().as_deref() == Some(cycle_id)
    }

    fn are_refused(&self, now: Instant) -> bool {
        self.refused_at.get().is_some_and(|at| now.duration_since(at) < ASK_AGAIN_AFTER)
    }
}

/// Shows drafts until the sender of `is_running` is dropped.
pub(super) async fn show(
    channel: &dyn Presence,
    live_path: PathBuf,
    shown: &ShownDrafts,
    mut is_running: watch::Receiver<bool>,
) {
    let mut reader = LiveReader::new(live_path);
    while is_running.wait_for(|is_running| *is_running).await.is_ok() {
        let mut pace = DraftPace::default();
        loop {
            reader.refresh();
            if !show_if_due(channel, &reader, &mut pace, shown).await {
                break;
            }
            tokio::select! {
                ended = is_running.wait_for(|is_running| !*is_running) => if ended.is_ok() { break } else { return },
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
        shown.cycle_id.take();
        // Without drafts, the end of the wake is waited for.
        if is_running.wait_for(|is_running| !*is_running).await.is_err() {
            return;
        }
    }
}

/// Shows the text by now if the time has come. Returns `false` if the server has no drafts.
async fn show_if_due(channel: &dyn Presence, reader: &LiveReader, pace: &mut DraftPace, shown: &ShownDrafts) -> bool {
    let Some(preview) = reader.preview() else { return true };
    let Some(html) = render_draft(preview).filter(|html| pace.is_due(html, Instant::now())) else { return true };
    if shown.are_refused(Instant::now()) {
        return false;
    }
    // The wake that ends this preview waits until the draft has left.
    let Some(held) = reader.hold() else { return true };
    let watched = &preview.watched;
    let draft = DraftMessage {
        chat: watched.chat,
        thread_id: watched.thread_id,
        number: number_draft(&watched.cycle_id),
        html,
    };
    let called = tokio::time::timeout(CALL_TIMEOUT, channel.show_draft(&draft)).await;
    drop(held);
    let Ok(called) = called else {
        pace.wait_until(Instant::now() + CHANGE_EVERY);
        return true;
    };
    match called {
        Ok(()) => {
            *shown.cycle_id.borrow_mut() = Some(watched.cycle_id.clone());
            pace.set_shown(draft.html, Instant::now());
            true
        }
        Err(SendError::Later { after, .. }) => {
            pace.wait_until(Instant::now() + after.max(CHANGE_EVERY));
            true
        }
        Err(SendError::NotSent { .. } | SendError::Ambiguous { .. }) => {
            pace.wait_until(Instant::now() + CHANGE_EVERY);
            true
        }
        Err(error @ (SendError::Never { .. } | SendError::Moved { .. } | SendError::RichRefused { .. })) => {
            tracing::info!(%error, "this server shows no drafts: answers appear when they are complete");
            shown.refused_at.set(Some(Instant::now()));
            false
        }
    }
}

/// Decides when to show a draft.
#[derive(Debug, Default)]
struct DraftPace {
    html: String,
    shown_at: Option<Instant>,
    not_before: Option<Instant>,
}

impl DraftPace {
    fn is_due(&self, html: &str, now: Instant) -> bool {
        let is_old = self.shown_at.is_none_or(|at| now.duration_since(at) >= RENEW_AFTER);
        self.not_before.is_none_or(|at| at <= now) && (is_old || self.html != html)
    }

    fn set_shown(&mut self, html: String, now: Instant) {
        self.html = html;
        self.shown_at = Some(now);
        self.wait_until(now + CHANGE_EVERY);
    }

    fn wait_until(&mut self, not_before: Instant) {
        self.not_before = Some(not_before);
    }
}

/// Renders the text by now with the running step. `None` without text: the line of progress says more then.
fn render_draft(preview: &Preview) -> Option<String> {
    let text = preview.words();
    let end = last_chars(text, MAX_CHARS);
    let text = if end.len() < text.len() { format!("…{end}") } else { text.to_owned() };
    let step = preview.running_step().map(|step| truncate_text(&one_line(&step.what), MAX_STEP_CHARS));
    let joined = preview.joined.as_ref().map(|joined| render::render_verbatim(&format!("➕ {joined}")).html);
    let step = step.map(|step| render::render_verbatim(&format!("⏳ {step}")).html);
    let links = if preview.is_tainted { Links::AsText } else { Links::Clickable };
    let text = render::render_with_links(&text, links).pop().map(|part| part.html);
    if text.is_none() && joined.is_none() {
        return None;
    }
    let parts: Vec<String> = text.into_iter().chain(joined).chain(step).collect();
    Some(parts.join("\n\n"))
}

/// Returns the number of a cycle's draft: the same for its whole length, and never 0.
fn number_draft(cycle_id: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    cycle_id.hash(&mut hasher);
    // Below 2^31, as some clients keep it in 32 bits.
    u32::try_from(hasher.finish() >> 33).unwrap_or_default().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_text_is_shown_once_a_second_and_an_unchanged_one_is_renewed() {
        let (mut pace, begun) = (DraftPace::default(), Instant::now());
        assert!(pace.is_due("a", begun));
        pace.set_shown("a".to_owned(), begun);
        assert!(!pace.is_due("ab", begun + CHANGE_EVERY / 2));
        assert!(pace.is_due("ab", begun + CHANGE_EVERY));
        assert!(!pace.is_due("a", begun + RENEW_AFTER / 2));
        assert!(pace.is_due("a", begun + RENEW_AFTER));
        pace.wait_until(begun + 2 * RENEW_AFTER);
        assert!(!pace.is_due("abc", begun + RENEW_AFTER));
    }

    #[test]
    fn a_cycle_has_one_number() {
        assert_eq!(number_draft("c1"), number_draft("c1"));
        assert_ne!(number_draft("c1"), number_draft("c2"));
    }
}
