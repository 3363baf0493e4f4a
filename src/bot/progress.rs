//! Shows the progress of a long cycle: one line in the waiting chat, edited now and then, and deleted once the answer
//! is there.
//!
//! The text is derived from the cycle's journal, by comparing the plan with the finished calls. [`Pace`] decides when
//! to send it. The line is no answer: it is silent, never sent twice, and nothing depends on it. Others may have
//! influenced the plan, so the line contains no links.

use std::{cell::RefCell, path::Path, time::Duration};

use tokio::{sync::watch, time::Instant};

use reveille_base::{
    redact::Redactor,
    words::{one_line, truncate_text},
};
use reveille_channels::{Outgoing, Presence, SendError};
use reveille_cycle::decide::verify;
use reveille_memory::render::{self, RenderedPart};
use reveille_store::{Entry, Store, StoreError};
use reveille_tools::Plan;

use super::draft::ShownDrafts;
use super::typing::{AtWork, read_running_cycle};

/// A shorter cycle needs no line.
const FIRST_AFTER: Duration = Duration::from_secs(8);
/// Minimum time between two edits. Telegram allows a chat about one message a second, and the answer needs room among them.
const CHANGE_EVERY: Duration = Duration::from_millis(1_500);
/// How often to look for progress.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Maximum delay of the bot's end for deleting a line.
const AT_THE_END: Duration = Duration::from_secs(3);
/// Maximum length of a displayed step, in characters.
const STEP_CHARS_MAX: usize = 120;

/// Shows progress until the sender of `is_running` is dropped. First deletes the lines that a killed bot has left.
pub(super) async fn show(
    channel: &dyn Presence,
    store: &RefCell<Store>,
    lock_path: &Path,
    (redactor, drafts): (&Redactor, &ShownDrafts),
    mut is_running: watch::Receiver<bool>,
) {
    let mut not_before = None;
    loop {
        take_away(channel, store, None, &mut not_before).await;
        tokio::select! {
            begun = is_running.wait_for(|is_running| *is_running) => if begun.is_err() { return },
            () = sleep_until(not_before) => continue,
        }
        let bots_end = wait_past_end(is_running.clone());
        tokio::pin!(bots_end);
        let mut pace = Pace::default();
        let ended = loop {
            // The end of a wake doesn't cancel a look, or a line could be sent without its id being known.
            tokio::select! {
                () = show_if_due(channel, store, (lock_path, redactor, drafts), &mut pace, &mut not_before) => {}
                () = &mut bots_end => return,
            }
            tokio::select! {
                ended = is_running.wait_for(|is_running| !*is_running) => break ended.map(drop),
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        };
        if ended.is_err() {
            // The next bot deletes the lines that are left.
            tokio::time::timeout(AT_THE_END, take_away(channel, store, None, &mut not_before)).await.ok();
            return;
        }
    }
}

/// Waits for that time. `None` waits for ever.
async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until some time after the bot's end. Courtesies such as progress lines must not delay the end any longer.
pub(super) async fn wait_past_end(mut is_running: watch::Receiver<bool>) {
    while is_running.changed().await.is_ok() {}
    tokio::time::sleep(AT_THE_END).await;
}

/// Reads the progress of the running cycle and shows it if the time has come.
async fn show_if_due(
    channel: &dyn Presence,
    store: &RefCell<Store>,
    (lock_path, redactor, drafts): (&Path, &Redactor, &ShownDrafts),
    pace: &mut Pace,
    not_before: &mut Option<Instant>,
) {
    let at_work = read_running_cycle(lock_path);
    let cycle_id = at_work.as_ref().map(|at_work| at_work.cycle_id.as_str());
    if pace.switch_cycle(cycle_id, Instant::now()) {
        take_away(channel, store, cycle_id, not_before).await;
    }
    let Some(at_work) = at_work.filter(|_| pace.is_time(Instant::now())) else { return };
    if drafts.has(&at_work.cycle_id) {
        return;
    }
    // A guest whose pairing was revoked isn't told about steps either.
    if store.borrow().people().is_unpaired(at_work.chat.number()).unwrap_or(true) {
        return;
    }
    let news = read_progress(&store.borrow(), &at_work).map(|text| redactor.redact(&text));
    match news {
        Ok(text) if pace.is_news(&text) => {
            match show_line(channel, store, &at_work, render::render_verbatim(&text)).await {
                Ok(()) => pace.set_text(text, Instant::now()),
                Err(wait) => pace.wait_until(Instant::now() + wait.max(CHANGE_EVERY)),
            }
        }
        Ok(_) => {}
        // The next look reads it again. The bot's main loop reports a store in trouble.
        Err(error) => tracing::debug!(%error, "how far the cycle is could not be read"),
    }
}

/// Decides when to show a line and whether it is new.
#[derive(Debug, Default)]
struct Pace {
    cycle_id: Option<String>,
    not_before: Option<Instant>,
    text: String,
}

impl Pace {
    /// Turns to this cycle. Returns `true` if it differs from the previous one.
    fn switch_cycle(&mut self, cycle_id: Option<&str>, now: Instant) -> bool {
        if self.cycle_id.as_deref() == cycle_id {
            return false;
        }
        *self =
            Self { cycle_id: cycle_id.map(str::to_owned), not_before: Some(now + FIRST_AFTER), text: String::new() };
        true
    }

    fn is_time(&self, now: Instant) -> bool {
        self.cycle_id.is_some() && self.not_before.is_none_or(|at| at <= now)
    }

    fn is_news(&self, text: &str) -> bool {
        self.text != text
    }

    fn set_text(&mut self, text: String, now: Instant) {
        self.text = text;
        self.wait_until(now + CHANGE_EVERY);
    }

    fn wait_until(&mut self, not_before: Instant) {
        self.not_before = Some(not_before);
    }
}

fn read_progress(store: &Store, at_work: &AtWork) -> Result<String, StoreError> {
    Ok(render_line(&store.status_lines().list_cycle_calls(&at_work.cycle_id)?))
}

/// Renders the progress of a cycle as one line, from its calls.
pub fn render_line(calls: &[Entry]) -> String {
    let mut plan: Option<Plan> = None;
    let mut done = Vec::new();
    for entry in calls {
        match entry {
            Entry::Called { name, input, .. } if name == "plan" => plan = serde_json::from_str(input).ok(),
            Entry::Outcome { name, is_error: false, .. } => done.push(name.as_str()),
            _ => {}
        }
    }
    let Some(plan) = plan.filter(|plan| !plan.steps.is_empty()) else {
        return "⏳ I'm working on it.".to_owned();
    };
    match verify::find_first_missing(&plan, &done) {
        Some((at, step)) => {
            let what = truncate_text(&one_line(step), STEP_CHARS_MAX);
            format!("⏳ Step {} of {}: {what}", at + 1, plan.steps.len())
        }
        None => format!("⏳ All {} steps are done; I'm writing the answer.", plan.steps.len()),
    }
}

/// Shows the line, as an edit or as a new message. Other failures are ignored.
///
/// # Errors
/// The time after which another attempt makes sense.
async fn show_line(
    channel: &dyn Presence,
    store: &RefCell<Store>,
    at_work: &AtWork,
    line: RenderedPart,
) -> Result<(), Duration> {
    let cycle_id = &at_work.cycle_id;
    let standing = find_line(&store.borrow(), cycle_id);
    let said = match standing {
        Ok(Some(message_id)) => channel.edit_message(at_work.chat, message_id, &line.plain).await,
        Ok(None) => {
            let has_begun = store.borrow_mut().status_lines_mut().begin_status_line(cycle_id, at_work.chat);
            match has_begun {
                Ok(true) => send_line(channel, store, at_work, line).await,
                // Nobody knows if a line was sent, and another might be a duplicate.
                // fault: line-sent-sent-again
                Ok(false) | Err(_) => Ok(()),
            }
        }
        Err(_) => Ok(()),
    };
    let Err(error) = said else { return Ok(()) };
    tracing::debug!(%error, "how far the wake is was not shown");
    match error {
        SendError::Later { after, .. } => Err(after),
        SendError::NotSent { .. } => Err(Duration::ZERO),
        SendError::Moved { .. }
        | SendError::Ambiguous { .. }
        | SendError::Never { .. }
        | SendError::RichRefused { .. } => Ok(()),
    }
}

/// Sends a new line, already recorded as begun.
async fn send_line(
    channel: &dyn Presence,
    store: &RefCell<Store>,
    at_work: &AtWork,
    line: RenderedPart,
) -> Result<(), SendError> {
    match channel.send(&new_line(at_work, line)).await {
        Ok(sent) => {
            if let Err(error) =
                store.borrow_mut().status_lines_mut().record_sent_status_line(&at_work.cycle_id, sent.message_id)
            {
                tracing::warn!(%error, "the line that tells of a wake's progress may stay in the chat");
            }
            Ok(())
        }
        Err(error) => {
            if matches!(error, SendError::Later { .. } | SendError::NotSent { .. } | SendError::Moved { .. }) {
                // Certainly not sent, so it may begin again.
                store.borrow_mut().status_lines_mut().forget_status_line(&at_work.cycle_id).ok();
            }
            Err(error)
        }
    }
}

fn new_line(at_work: &AtWork, line: RenderedPart) -> Outgoing {
    Outgoing {
        chat: at_work.chat,
        thread_id: at_work.thread_id,
        reply_to: None,
        html: line.html,
        plain: line.plain,
        silent: true,
        file: None,
        question: None,
        rich: None,
    }
}

/// Returns the channel's id of the cycle's line, if a line was certainly sent.
fn find_line(store: &Store, cycle_id: &str) -> Result<Option<i64>, StoreError> {
    Ok(store
        .status_lines()
        .status_lines()?
        .into_iter()
        .find(|line| line.cycle_id == cycle_id)
        .and_then(|line| line.message_id))
}

/// Deletes all lines except that of the running cycle. The next wake retries failed deletions. If Telegram asks for a
/// pause, its end is stored in `not_before` and nothing is deleted until then.
async fn take_away(
    channel: &dyn Presence,
    store: &RefCell<Store>,
    but: Option<&str>,
    not_before: &mut Option<Instant>,
) {
    if not_before.is_some_and(|at| Instant::now() < at) {
        return;
    }
    *not_before = None;
    let lines = store.borrow().status_lines().status_lines().unwrap_or_default();
    for line in lines.into_iter().filter(|line| Some(line.cycle_id.as_str()) != but) {
        if let Some(message_id) = line.message_id
            && let Err(error) = channel.delete_message(line.chat, message_id).await
        {
            tracing::debug!(%error, "the line that tells of a wake's progress could not be taken away");
            match error {
                SendError::Later { after, .. } => {
                    *not_before = Some(Instant::now() + after);
                    return;
                }
                // fault: line-cant-taken-away
                SendError::NotSent { .. } | SendError::Ambiguous { .. } => continue,
                SendError::Moved { .. } | SendError::Never { .. } | SendError::RichRefused { .. } => {}
            }
        }
        store.borrow_mut().status_lines_mut().forget_status_line(&line.cycle_id).ok();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use reveille_base::types::ChatRef;
    use reveille_channels::{Channel, DoneFuture, SendFuture};

    fn called(name: &str, input: &serde_json::Value) -> Entry {
        Entry::Called { call: String::new(), name: name.to_owned(), input: input.to_string(), taint: None }
    }

    fn outcome(name: &str, is_error: bool) -> Entry {
        Entry::Outcome {
            call: String::new(),
            name: name.to_owned(),
            content: String::new(),
            is_error,
            receipt: None,
            closed: Vec::new(),
            taint: None,
            image: None,
        }
    }

    fn plan() -> Entry {
        called(
            "plan",
            &json!({"understood": "tidy", "steps": [
                {"what": "read the\nbacklog", "tool": "memory_read"},
                {"what": "drop what is done", "tool": "task_update"},
                {"what": "say so", "tool": "reply"}]}),
        )
    }

    #[test]
    fn the_first_step_that_is_not_done_is_told() {
        assert_eq!(render_line(&[]), "⏳ I'm working on it.");
        let mut calls = vec![plan(), outcome("plan", false)];
        assert_eq!(render_line(&calls), "⏳ Step 1 of 3: read the backlog");
        calls.extend([outcome("memory_read", true)]);
        assert_eq!(render_line(&calls), "⏳ Step 1 of 3: read the backlog");
        calls.extend([outcome("memory_read", false)]);
        assert_eq!(render_line(&calls), "⏳ Step 2 of 3: drop what is done");
        calls.extend([outcome("task_update", false), outcome("reply", false)]);
        assert_eq!(render_line(&calls), "⏳ All 3 steps are done; I'm writing the answer.");
    }

    /// A chat that wants to be left alone for this long, and how often it was asked to take a line away.
    struct Busy(Duration, std::cell::Cell<u32>);

    impl Channel for Busy {
        fn send<'a>(&'a self, _: &'a Outgoing) -> SendFuture<'a> {
            panic!("nothing is sent here")
        }
    }

    impl Presence for Busy {
        fn show_typing<'a>(&'a self, _: ChatRef, _: Option<i64>) -> DoneFuture<'a> {
            panic!("nothing is shown here")
        }

        fn acknowledge<'a>(&'a self, _: ChatRef, _: i64) -> DoneFuture<'a> {
            panic!("nothing has come here")
        }

        fn edit_message<'a>(&'a self, _: ChatRef, _: i64, _: &'a str) -> DoneFuture<'a> {
            panic!("nothing is changed here")
        }

        fn show_draft<'a>(&'a self, _: &'a reveille_channels::DraftMessage) -> DoneFuture<'a> {
            panic!("nothing is shown here")
        }

        fn delete_message<'a>(&'a self, _: ChatRef, _: i64) -> DoneFuture<'a> {
            self.1.set(self.1.get() + 1);
            let after = self.0;
            Box::pin(async move { Err(SendError::Later { after, why: String::new() }) })
        }
    }

    #[test]
    fn a_chat_that_wants_to_be_left_alone_is_left_alone_and_the_line_is_not_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let store = RefCell::new(Store::open(&dir.path().join("messages.db")).unwrap());
        for cycle_id in ["a", "b"] {
            store.borrow_mut().status_lines_mut().begin_status_line(cycle_id, ChatRef::from_telegram(7)).unwrap();
            store.borrow_mut().status_lines_mut().record_sent_status_line(cycle_id, 70).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for (wait, asked) in [(Duration::from_secs(3_600), 1), (Duration::ZERO, 2)] {
            let (channel, mut not_before) = (Busy(wait, std::cell::Cell::new(0)), None);
            for _ in 0..2 {
                runtime.block_on(take_away(&channel, &store, None, &mut not_before));
            }
            assert_eq!(channel.1.get(), asked);
        }
        assert_eq!(store.borrow().status_lines().status_lines().unwrap().len(), 2);
    }

    #[test]
    fn a_plan_that_can_not_be_read_is_none() {
        assert_eq!(render_line(&[called("plan", &json!("?"))]), "⏳ I'm working on it.");
    }

    #[test]
    fn a_short_cycle_has_no_line_and_a_long_one_is_not_hurried() {
        let (mut pace, begun) = (Pace::default(), Instant::now());
        assert!(!pace.is_time(begun), "nobody is at work");
        assert!(pace.switch_cycle(Some("a"), begun) && !pace.switch_cycle(Some("a"), begun));
        assert!(!pace.is_time(begun + FIRST_AFTER - Duration::from_millis(1)));
        let first = begun + FIRST_AFTER;
        assert!(pace.is_time(first) && pace.is_news("one"));
        pace.set_text("one".to_owned(), first);
        assert!(!pace.is_time(first + CHANGE_EVERY / 2) && !pace.is_news("one") && pace.is_news("two"));
        // Another cycle begins anew.
        assert!(pace.switch_cycle(Some("b"), first) && !pace.is_time(first) && pace.is_news("one"));
    }
}
