//! The only sender: takes planned parts from the outbox in order, sends each once, and records the result.
//!
//! Delivery never sleeps and never repeats on its own. A wait demanded by the channel is stored with the part for the next
//! wake.

use std::time::{Duration, Instant};

use chrono::TimeDelta;

use reveille_base::{
    clock::Clock,
    process::Identity,
    redact::Redactor,
    types::{ChatRef, TextFile},
};
use reveille_memory::render;
use reveille_store::{Claimed, FencedStore, PartOutcome, Pick, RichRule, Store, StoreError, compute_retry_wait};

use crate::{Channel, Outgoing, SendError, Sent};

/// The time after which no new part is started. The channel itself bounds a single send.
pub const BOUND: Duration = Duration::from_secs(30);

/// The check before each send: returns true while the lease shared by machines allows sending.
pub type MaySend<'a> = &'a dyn Fn() -> bool;

/// The result of a delivery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// The number of confirmed parts.
    pub sent: usize,
    /// The number of parts that wait, are in doubt or have failed.
    pub left: usize,
}

/// The order of chats: the chat served longest ago goes first, so that one chat's many messages don't delay another. A chat that
/// asked for a pause gets no turn until the pause is over.
#[derive(Debug, Default)]
pub struct Turns {
    /// Served chats, latest last.
    served: Vec<ChatRef>,
    /// Paused chats, with the end of the pause.
    alone: Vec<(ChatRef, Instant)>,
}

impl Turns {
    /// The chats paused at present.
    fn list_paused(&mut self) -> Vec<ChatRef> {
        let now = Instant::now();
        self.alone.retain(|(_, until)| now < *until);
        self.alone.iter().map(|(chat, _)| *chat).collect()
    }

    /// Records a chat's turn.
    fn record_turn(&mut self, chat: ChatRef, tried: &Result<Sent, SendError>) {
        self.served.retain(|served| *served != chat);
        self.served.push(chat);
        if let Err(SendError::Later { after, .. }) = tried
            && let Some(until) = Instant::now().checked_add(*after)
        {
            self.alone.push((chat, until));
        }
    }
}

/// An attempted part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// The row of its message.
    pub outgoing_id: i64,
    /// True if confirmed.
    pub is_sent: bool,
}

/// Sends all parts that are due; `only` limits them to these messages.
///
/// # Errors
/// Returns errors of the store. Errors of the channel are recorded in the store instead.
pub async fn deliver_due(
    store: &mut Store,
    channel: &dyn Channel,
    only: Option<&[i64]>,
    me: &Identity,
    clock: &dyn Clock,
    redactor: &Redactor,
) -> Result<Delivered, StoreError> {
    let claim =
        |store: &mut Store, pick: Pick<'_>| store.outbox_mut().claim_part(Pick { only, ..pick }, me, clock.now());
    send_all(store, channel, clock, redactor, claim).await
}

/// Sends the next due part of these messages; `None` if nothing is due.
///
/// # Errors
/// As [`deliver_due`].
pub async fn deliver_next(
    store: &mut Store,
    channel: &dyn Channel,
    (only, may_send): (&[i64], MaySend<'_>),
    turns: &mut Turns,
    me: &Identity,
    clock: &dyn Clock,
    redactor: &Redactor,
) -> Result<Option<Tried>, StoreError> {
    let only = Some(only);
    let claim = |store: &mut Store, pick: Pick<'_>| match may_send() {
        true => store.outbox_mut().claim_part(Pick { only, ..pick }, me, clock.now()),
        false => Ok(None),
    };
    send_next(store, channel, clock, redactor, turns, claim).await
}

/// Sends all parts that are due, as the wake that holds the lease. A holder that was replaced or whose term has ended starts no
/// further send. `rich` is the chat that may get rich messages.
///
/// # Errors
/// As [`deliver_due`].
pub async fn deliver_in_wake(
    store: &mut FencedStore<'_>,
    channel: &dyn Channel,
    (may_send, rich): (MaySend<'_>, Option<RichRule>),
    me: &Identity,
    clock: &dyn Clock,
    redactor: &Redactor,
) -> Result<Delivered, StoreError> {
    let fence = store.fence();
    let claim = |store: &mut Store, pick: Pick<'_>| match may_send() {
        true => FencedStore::new(store, fence, clock).outbox_mut().claim_part_of_wake(Pick { rich, ..pick }, me),
        false => Ok(None),
    };
    send_all(store.unfenced(), channel, clock, redactor, claim).await
}

async fn send_all(
    store: &mut Store,
    channel: &dyn Channel,
    clock: &dyn Clock,
    redactor: &Redactor,
    claim: impl Fn(&mut Store, Pick<'_>) -> Result<Option<Claimed>, StoreError>,
) -> Result<Delivered, StoreError> {
    let (mut delivered, mut turns) = (Delivered::default(), Turns::default());
    let begun = Instant::now();
    while begun.elapsed() < BOUND {
        match send_next(store, channel, clock, redactor, &mut turns, &claim).await? {
            Some(Tried { is_sent: true, .. }) => delivered.sent += 1,
            Some(_) => delivered.left += 1,
            None => break,
        }
    }
    Ok(delivered)
}

async fn send_next(
    store: &mut Store,
    channel: &dyn Channel,
    clock: &dyn Clock,
    redactor: &Redactor,
    turns: &mut Turns,
    claim: impl Fn(&mut Store, Pick<'_>) -> Result<Option<Claimed>, StoreError>,
) -> Result<Option<Tried>, StoreError> {
    let (claimed, outcome) = loop {
        let alone = turns.list_paused();
        let Some(claimed) = claim(store, Pick { served: &turns.served, alone: &alone, ..Pick::default() })? else {
            return Ok(None);
        };
        let tried = send_part(channel, &claimed, redactor).await;
        turns.record_turn(claimed.chat, &tried);
        let outcome = decide_outcome(tried, claimed.attempts, clock);
        let PartOutcome::RichRefused { why, .. } = &outcome else { break (claimed, outcome) };
        tracing::info!(message = claimed.outgoing_id, %why, "a rich message was refused; it goes as plain messages");
        // The plain parts are due at once. A crash before this leaves an attempt with an unknown outcome.
        store.outbox_mut().settle_part(&claimed, &outcome, clock.now())?;
    };
    if let PartOutcome::Later { why, .. }
    | PartOutcome::Moved { why, .. }
    | PartOutcome::Unknown(why)
    | PartOutcome::Failed(why) = &outcome
    {
        tracing::warn!(message = claimed.outgoing_id, part = claimed.part, %why, "not delivered");
    }
    store.outbox_mut().settle_part(&claimed, &outcome, clock.now())?;
    Ok(Some(Tried { outgoing_id: claimed.outgoing_id, is_sent: matches!(outcome, PartOutcome::Sent { .. }) }))
}

/// Sends a part. All messages pass here, even manually inserted rows, so secrets are masked here.
async fn send_part(channel: &dyn Channel, claimed: &Claimed, redactor: &Redactor) -> Result<Sent, SendError> {
    let part = render::RenderedPart { html: claimed.html.clone(), plain: claimed.plain.clone() };
    // fault: reply-sent-again-mark
    // fault: repeat-bears-mark
    let part = if claimed.is_repeat { render::with_repeat_mark(&part) } else { part };
    let mark_rich = |html: &String| if claimed.is_repeat { render::mark_rich_repeat(html) } else { html.clone() };
    let rich = claimed.rich.as_ref().map(mark_rich);
    let outgoing = Outgoing {
        chat: claimed.chat,
        thread_id: claimed.thread_id,
        reply_to: claimed.reply_to,
        html: redactor.redact(&part.html),
        plain: redactor.redact(&part.plain),
        // One sound for each message.
        silent: claimed.part > 0,
        file: claimed.file.clone().map(|file| TextFile { text: redactor.redact(&file.text), ..file }),
        question: claimed.question.clone(),
        rich: rich.map(|html| redactor.redact(&html)),
    };
    channel.send(&outgoing).await
}

fn decide_outcome(tried: Result<Sent, SendError>, attempts: u32, clock: &dyn Clock) -> PartOutcome {
    let later = |wait: TimeDelta, why: String| PartOutcome::Later { not_before: clock.now() + wait, why };
    match tried {
        Ok(sent) => PartOutcome::Sent { id: sent.message_id, date: sent.date },
        Err(SendError::Later { after, why }) => later(TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX), why),
        Err(SendError::NotSent { why }) => later(compute_retry_wait(attempts), why),
        Err(SendError::Moved { to, why }) => PartOutcome::Moved { to, why },
        Err(SendError::Ambiguous { why }) => PartOutcome::Unknown(why),
        Err(SendError::Never { why }) => PartOutcome::Failed(why),
        Err(SendError::RichRefused { refusal, why }) => PartOutcome::RichRefused { refusal, why },
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::VecDeque};

    use chrono::{DateTime, Utc};

    use super::*;
    use crate::{Form, SendFuture, Sent};
    use reveille_base::{clock::parse_time, redact::Secret};
    use reveille_store::{NewOutgoing, OutgoingKind, PartState};

    /// A channel with prepared answers, which fails the test if more is sent.
    #[derive(Default)]
    struct Door {
        answers: RefCell<VecDeque<Result<Sent, SendError>>>,
        got: RefCell<Vec<Outgoing>>,
    }

    impl Channel for Door {
        fn send<'a>(&'a self, part: &'a Outgoing) -> SendFuture<'a> {
            self.got.borrow_mut().push(part.clone());
            let answer = self.answers.borrow_mut().pop_front().expect("an unexpected send");
            Box::pin(async { answer })
        }
    }

    struct At(DateTime<Utc>);

    impl Clock for At {
        fn now(&self) -> DateTime<Utc> {
            self.0
        }
    }

    struct Scene {
        store: Store,
        door: Door,
        clock: At,
        redactor: Redactor,
        _dir: tempfile::TempDir,
    }

    fn sent() -> Result<Sent, SendError> {
        Ok(Sent { message_id: 5, date: None, form: Form::Html })
    }

    impl Scene {
        fn new(answers: impl IntoIterator<Item = Result<Sent, SendError>>) -> Self {
            let dir = tempfile::tempdir().unwrap();
            Self {
                store: Store::open(&dir.path().join("messages.db")).unwrap(),
                door: Door { answers: RefCell::new(answers.into_iter().collect()), ..Door::default() },
                clock: At(parse_time("2026-11-21T14:00:00Z").unwrap()),
                redactor: Redactor::new([&Secret::new("open sesame")]),
                _dir: dir,
            }
        }

        fn plan(&mut self, chat: ChatRef, text: &str) -> i64 {
            let message = NewOutgoing {
                chat,
                text: text.to_owned(),
                kind: OutgoingKind::Reply,
                reply_to: Some(100),
                ..NewOutgoing::default()
            };
            self.store.outbox_mut().plan_message(&message, self.clock.now()).unwrap().unwrap()
        }

        fn deliver(&mut self, only: Option<&[i64]>) -> Delivered {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let me = Identity::current();
            let delivery = deliver_due(&mut self.store, &self.door, only, &me, &self.clock, &self.redactor);
            let delivered = runtime.block_on(delivery).unwrap();
            assert!(self.door.answers.borrow().is_empty(), "more was expected to be sent");
            delivered
        }

        fn got(&self) -> Vec<String> {
            self.door.got.borrow().iter().map(|part| part.plain.clone()).collect()
        }

        fn advance_clock(&mut self, seconds: i64) {
            self.clock.0 += TimeDelta::seconds(seconds);
        }

        fn state(&self) -> (PartState, u64) {
            let left = self.store.outbox().list_undelivered_messages().unwrap();
            let wait = left[0].not_before.as_deref().and_then(parse_time);
            let seconds = wait.map_or(0, |at| (at - self.clock.now()).num_seconds().unsigned_abs());
            (left[0].state, seconds)
        }
    }

    #[test]
    fn planned_messages_are_sent_once_with_their_formatting() {
        let mut scene = Scene::new([sent(), sent()]);
        scene.plan(ChatRef::from_telegram(7), "**one**");
        scene.plan(ChatRef::from_telegram(8), "two");
        assert_eq!(scene.deliver(None), Delivered { sent: 2, left: 0 });
        assert_eq!(scene.got(), ["one", "two"]);
        let first = scene.door.got.borrow()[0].clone();
        assert_eq!((first.chat.id, first.reply_to, first.html.as_str()), (7, Some(100), "<b>one</b>"));
        assert_eq!(scene.deliver(None), Delivered::default());
        assert_eq!(scene.store.outbox().list_undelivered_messages().unwrap(), []);
    }

    #[test]
    fn secrets_are_masked_in_every_sent_message() {
        let mut scene = Scene::new([sent()]);
        scene.plan(ChatRef::from_telegram(7), "**say** open sesame, open%20sesame and b3BlbiBzZXNhbWU=");
        scene.deliver(None);
        let got = scene.door.got.borrow()[0].clone();
        assert_eq!(got.html, "<b>say</b> ***, *** and ***=");
        assert_eq!(got.plain, "say ***, *** and ***=");
    }

    #[test]
    fn a_requested_wait_is_kept_in_full_without_sleeping() {
        let later =
            SendError::Later { after: Duration::from_secs(37), why: "Too Many Requests: retry after 37".to_owned() };
        let mut scene = Scene::new([Err(later), sent()]);
        scene.plan(ChatRef::from_telegram(7), "one");
        scene.plan(ChatRef::from_telegram(7), "two");
        scene.plan(ChatRef::from_telegram(8), "elsewhere");
        assert_eq!(scene.deliver(None), Delivered { sent: 1, left: 1 });
        assert_eq!(scene.state(), (PartState::Planned, 37));
        scene.advance_clock(36);
        assert_eq!(scene.deliver(None), Delivered::default());
        scene.advance_clock(1);
        scene.door.answers.borrow_mut().extend([sent(), sent()]);
        assert_eq!(scene.deliver(None), Delivered { sent: 2, left: 0 });
        assert_eq!(scene.got(), ["one", "elsewhere", "one", "two"]);
    }

    #[test]
    fn chats_take_turns_however_many_messages_one_has() {
        let mut scene = Scene::new([sent(), sent(), sent(), sent()]);
        let texts = [(7, "one"), (7, "two"), (7, "three"), (8, "elsewhere")];
        let all = texts.map(|(chat, text)| scene.plan(ChatRef::from_telegram(chat), text));
        assert_eq!(scene.deliver(Some(&all)), Delivered { sent: 4, left: 0 });
        assert_eq!(scene.got(), ["one", "elsewhere", "two", "three"]);
    }

    #[test]
    fn a_paused_chat_gets_no_other_selected_message_either() {
        let later = SendError::Later { after: Duration::from_secs(37), why: "Too Many Requests".to_owned() };
        let mut scene = Scene::new([Err(later), sent()]);
        let all = [(7, "one"), (7, "two"), (8, "elsewhere")]
            .map(|(chat, text)| scene.plan(ChatRef::from_telegram(chat), text));
        assert_eq!(scene.deliver(Some(&all)), Delivered { sent: 1, left: 1 });
        assert_eq!(scene.got(), ["one", "elsewhere"]);
    }

    #[test]
    fn a_dead_network_is_tried_less_and_less() {
        let dead = || Err(SendError::NotSent { why: "no route".to_owned() });
        let mut scene = Scene::new([dead()]);
        scene.plan(ChatRef::from_telegram(7), "one");
        scene.deliver(None);
        assert_eq!(scene.state(), (PartState::Planned, 30));
        scene.advance_clock(30);
        scene.door.answers.borrow_mut().push_back(dead());
        scene.deliver(None);
        assert_eq!(scene.state(), (PartState::Planned, 60));
        assert_eq!(scene.store.outbox().list_undelivered_messages().unwrap()[0].error.as_deref(), Some("no route"));
    }

    #[test]
    fn a_doubtful_send_is_repeated_once_by_the_next_wake_with_a_mark() {
        let doubt = || Err(SendError::Ambiguous { why: "connection reset".to_owned() });
        let mut scene = Scene::new([doubt()]);
        scene.plan(ChatRef::from_telegram(7), "one");
        assert_eq!(scene.deliver(None), Delivered { sent: 0, left: 1 });
        assert_eq!(scene.deliver(None), Delivered::default(), "not by this one");
        let fence = scene.store.take_lease(&Identity::current(), scene.clock.now()).unwrap();
        assert_eq!(FencedStore::new(&mut scene.store, fence, &scene.clock).outbox_mut().recover_outbox().unwrap(), 1);
        scene.door.answers.borrow_mut().push_back(doubt());
        scene.deliver(None);
        assert_eq!(FencedStore::new(&mut scene.store, fence, &scene.clock).outbox_mut().recover_outbox().unwrap(), 0);
        assert_eq!(scene.deliver(None), Delivered::default());
        let got = scene.got();
        assert_eq!(got[0], "one");
        assert!(got[1].starts_with("one\n\n↻ This may be a repeat"), "{}", got[1]);
        assert_eq!(got.len(), 2);
        assert_eq!(scene.state().0, PartState::Unknown);
    }

    #[test]
    fn an_unrecorded_send_blocks_its_chat_for_minutes_only() {
        let mut scene = Scene::new([sent()]);
        scene.plan(ChatRef::from_telegram(7), "one");
        let disk = rusqlite::Connection::open(scene.store.path()).unwrap();
        disk.execute_batch(
            "CREATE TRIGGER fails BEFORE UPDATE ON outgoing_parts WHEN NEW.state = 'sent'
             BEGIN SELECT RAISE(ABORT, 'disk I/O error'); END",
        )
        .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let me = Identity::current();
        runtime
            .block_on(deliver_due(&mut scene.store, &scene.door, None, &me, &scene.clock, &scene.redactor))
            .unwrap_err();
        disk.execute_batch("DROP TRIGGER fails").unwrap();
        scene.plan(ChatRef::from_telegram(7), "two");
        assert_eq!(scene.deliver(None), Delivered::default());
        scene.advance_clock(360);
        // The sender (this process) is alive.
        let fence = scene.store.take_lease(&me, scene.clock.now()).unwrap();
        assert_eq!(FencedStore::new(&mut scene.store, fence, &scene.clock).outbox_mut().recover_outbox().unwrap(), 1);
        scene.door.answers.borrow_mut().extend([sent(), sent()]);
        assert_eq!(scene.deliver(None), Delivered { sent: 2, left: 0 });
        let got = scene.got();
        assert!(got[1].starts_with("one\n\n↻ This may be a repeat"), "{got:?}");
        assert_eq!((got[0].as_str(), got[2].as_str()), ("one", "two"));
    }

    #[test]
    fn a_permanently_refused_message_fails_with_its_reason() {
        let never = SendError::Never { why: "Forbidden: bot was blocked by the user".to_owned() };
        let mut scene = Scene::new([Err(never), sent()]);
        scene.plan(ChatRef::from_telegram(7), "one");
        scene.plan(ChatRef::from_telegram(7), "two");
        assert_eq!(scene.deliver(None), Delivered { sent: 1, left: 1 });
        let left = scene.store.outbox().list_undelivered_messages().unwrap();
        assert_eq!(left[0].state, PartState::Failed);
        assert_eq!(left[0].error.as_deref(), Some("Forbidden: bot was blocked by the user"));
    }

    #[test]
    fn only_the_first_part_of_a_message_makes_a_sound() {
        let mut scene = Scene::new([sent(), sent(), sent()]);
        scene.plan(ChatRef::from_telegram(7), &"What is long. ".repeat(600));
        scene.deliver(None);
        let silent: Vec<bool> = scene.door.got.borrow().iter().map(|part| part.silent).collect();
        assert_eq!(silent, [false, true, true]);
        assert!(scene.door.got.borrow().iter().all(|part| part.file.is_none()));
    }

    #[test]
    fn a_long_answer_goes_as_messages_if_the_chat_refuses_files() {
        let refused = |why: &str| Err(SendError::Never { why: why.to_owned() });
        let no_files = refused("Bad Request: not enough rights to send documents to the chat");
        let mut scene = Scene::new([no_files].into_iter().chain((0..9).map(|_| sent())));
        let text = format!("{}\nthe very end", "- one more line\n".repeat(2_000));
        scene.plan(ChatRef::from_telegram(7), &text);
        let tried = scene.deliver(None);
        assert!(tried.sent > 3, "{tried:?}");
        assert_eq!(scene.store.outbox().list_undelivered_messages().unwrap(), []);
        let got = scene.got();
        assert!(got.len() > 4 && got.last().unwrap().contains("the very end"), "{}", got.len());

        let mut scene = Scene::new([refused("Forbidden: bot was blocked by the user")]);
        scene.plan(ChatRef::from_telegram(7), &text);
        assert_eq!(scene.deliver(None), Delivered { sent: 0, left: 1 });
    }

    #[test]
    fn a_very_long_answer_goes_as_a_file_with_its_beginning_as_caption() {
        let doubt = Err(SendError::Ambiguous { why: "connection reset".to_owned() });
        let mut scene = Scene::new([doubt]);
        let text =
            format!("# Log of [us](https://e.org)\n\n{}\nopen sesame", "- **one** more line <&>\n".repeat(2_000));
        let tainted = NewOutgoing {
            chat: ChatRef::from_telegram(7),
            text: text.clone(),
            links_as_text: true,
            ..NewOutgoing::default()
        };
        scene.store.outbox_mut().plan_message(&tainted, scene.clock.now()).unwrap();
        assert_eq!(scene.deliver(None), Delivered { sent: 0, left: 1 });
        // In doubt, the whole message is repeated.
        let fence = scene.store.take_lease(&Identity::current(), scene.clock.now()).unwrap();
        FencedStore::new(&mut scene.store, fence, &scene.clock).outbox_mut().recover_outbox().unwrap();
        scene.door.answers.borrow_mut().push_back(sent());
        assert_eq!(scene.deliver(None), Delivered { sent: 1, left: 0 });
        assert_eq!(scene.store.outbox().list_undelivered_messages().unwrap(), []);
        let got = scene.door.got.borrow();
        assert_eq!(got.len(), 2);
        for part in got.iter() {
            let file = part.file.clone().unwrap();
            assert_eq!((file.name.as_str(), file.text), ("answer.md", text.replace("open sesame", "***")));
            assert!(part.html.contains("\n\n<i>… The whole answer is in the file.</i>"), "{}", part.html);
            assert!(part.plain.starts_with("Log of us (https:··e·org)") && !part.html.contains("<a "), "{}", part.html);
            let longest = render::visible_units(&part.html).max(part.plain.encode_utf16().count());
            assert!((700..=render::CAPTION_UNITS_MAX).contains(&longest), "{longest}");
        }
        assert!(got[1].plain.contains("↻ This may be a repeat") && !got[0].plain.contains('↻'));
    }

    #[test]
    fn sending_selected_messages_leaves_the_others() {
        let mut scene = Scene::new([sent()]);
        scene.plan(ChatRef::from_telegram(7), "waits for its wake");
        let answer = scene.plan(ChatRef::from_telegram(7), "a command's answer");
        assert_eq!(scene.deliver(Some(&[answer])), Delivered { sent: 1, left: 0 });
        assert_eq!(scene.got(), ["a command's answer"]);
        assert_eq!(scene.deliver(Some(&[])), Delivered::default());
    }
}
