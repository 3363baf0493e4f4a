//! Rich messages: whether an answer goes as one, what the owner said about a sample, and what the channel's server refused.
//!
//! An answer that could be a rich message is planned as plain parts too. The form is decided when its first part is claimed, in the same
//! transaction, so that an attempt with an unknown outcome is repeated in the form it had.

use chrono::{DateTime, TimeDelta, Utc};

use reveille_base::{
    clock::format_rfc3339,
    types::{ChatRef, Question, SampleAnswer},
};
use reveille_memory::render::{self, Links};

use super::{attempts, planned};
use crate::{
    Claimed, NewOutgoing, OutgoingKind, Result,
    areas::{Outbox, ReadStore, WriteStore},
    odd_rows::read_text,
    sql::{self, OptionalExtension as _, Transaction},
};

/// The pause before a server without rich messages is tried again.
const REFUSED_FOR: TimeDelta = TimeDelta::days(1);

/// The sample, as Markdown.
const SAMPLE: &str = "## A sample\n\n\
    | Part | Looks like |\n|---|---|\n| Heading | the line above |\n| Table | these lines |\n\n\
    Your answer needs a layout like this. Do you see a heading and a table? Then I'll use them where they help.";

/// The chat that may get rich messages, and whether its person has to confirm a sample first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RichRule {
    /// The chat.
    pub chat: ChatRef,
    /// The consent of its person.
    pub consent: RichConsent,
}

/// The consent to rich messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RichConsent {
    /// By a sample.
    Sampled,
    /// By a setting.
    Given,
}

/// A refusal of a rich message, by what follows from it. Nothing was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RichRefusal {
    /// The server doesn't know the method yet.
    MethodMissing,
    /// The chat can't have rich messages.
    Unsupported,
    /// Something in this message is refused.
    Content,
}

/// An answered sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredSample {
    /// The chat.
    pub chat: ChatRef,
    /// The channel's id of the sample.
    pub message_id: i64,
    /// The answer.
    pub answer: SampleAnswer,
}

/// The form of a claimed message.
pub(crate) enum ChosenForm {
    /// The plain parts as planned.
    Plain,
    /// One rich message with this HTML.
    Rich(String),
    /// The plain parts, planned anew: the claim has to start over.
    Replanned,
}

/// Knowledge about a chat.
#[derive(Default)]
struct RichChat {
    has_sample: bool,
    answer: Option<String>,
    is_refused: bool,
}

impl<S: ReadStore> Outbox<S> {
    /// The sample whose message doesn't show its answer yet.
    pub fn find_unshown_sample(&self) -> Result<Option<AnsweredSample>> {
        let sql = "SELECT chat_id, message_id, answer FROM rich_chats
                   WHERE is_shown = 0 AND message_id IS NOT NULL AND answer IN ('well', 'badly') LIMIT 1";
        let row = self.0.conn().prepare(sql)?.query_row([], |row| {
            let answer = SampleAnswer::from_name(&row.get::<_, String>(2)?);
            Ok((row.get(0)?, row.get(1)?, answer.unwrap_or(SampleAnswer::ShowsBadly)))
        });
        Ok(row.optional()?.map(|(chat, message_id, answer)| AnsweredSample { chat, message_id, answer }))
    }
}

impl<S: WriteStore> Outbox<S> {
    /// Records that the sample shows its answer, or never will.
    pub fn record_shown_sample(&mut self, chat: ChatRef) -> Result<()> {
        self.0.write_relaxed(|tx| {
            tx.execute("UPDATE rich_chats SET is_shown = 1 WHERE chat_id = ?1", [chat])?;
            Ok(())
        })
    }
}

/// Notes that a message could go as one rich message.
pub(crate) fn note_candidate(tx: &Transaction<'_>, outgoing_id: i64) -> sql::QueryResult<()> {
    tx.execute("UPDATE outgoing_parts SET form = 'open' WHERE outgoing_id = ?1 AND part = 0", [outgoing_id])?;
    Ok(())
}

/// Returns `true` if a message could be rich: an answer in a private chat, without untrusted text, that a plain message can't show well.
pub(crate) fn is_candidate(message: &NewOutgoing, text: &str, links: Links, parts: usize) -> bool {
    let is_private = message.chat != ChatRef::TERMINAL && !message.chat.is_group();
    // fault: tainted-answer-goes-rich
    if message.kind != OutgoingKind::Reply || !is_private || links != Links::Clickable {
        return false;
    }
    // fault end: tainted-answer-goes-rich
    render::render_rich(text).is_some_and(|rich| rich.is_structured || parts > 1)
}

/// Decides the form of a claimed message, once. Plans the sample if an answer needs it and nobody was asked.
pub(crate) fn choose_form(
    tx: &Transaction<'_>,
    claimed: &Claimed,
    rule: Option<RichRule>,
    now: DateTime<Utc>,
) -> Result<ChosenForm> {
    let sql = "SELECT p.form, o.message_text FROM outgoing_parts p JOIN outgoing_messages o ON o.id = p.outgoing_id
               WHERE p.outgoing_id = ?1 AND p.part = ?2 AND p.form IS NOT NULL";
    let read = |row: &sql::Row<'_>| Ok((row.get::<_, String>(0)?, read_text(row, 1)?));
    let Some((form, text)) = tx.prepare(sql)?.query_row((claimed.outgoing_id, claimed.part), read).optional()? else {
        return Ok(ChosenForm::Plain);
    };
    let rich = render::render_rich(&text);
    if form == "rich" {
        return match rich {
            Some(rich) => Ok(ChosenForm::Rich(rich.html)),
            // Another version of this program has other limits.
            None => {
                planned::plan_plain_again(tx, claimed.outgoing_id, claimed.is_repeat, now)?;
                Ok(ChosenForm::Replanned)
            }
        };
    }
    let is_rich = rule.filter(|rule| rule.chat == claimed.chat).map(|rule| may_be_rich(tx, rule, now)).transpose()?;
    match rich.filter(|_| is_rich == Some(true)) {
        Some(rich) => {
            // A refusal plans the parts anew.
            tx.execute("DELETE FROM outgoing_parts WHERE outgoing_id = ?1 AND part > 0", [claimed.outgoing_id])?;
            set_form(tx, claimed.outgoing_id, Some("rich"))?;
            Ok(ChosenForm::Rich(rich.html))
        }
        None => {
            set_form(tx, claimed.outgoing_id, None)?;
            Ok(ChosenForm::Plain)
        }
    }
}

fn set_form(tx: &Transaction<'_>, outgoing_id: i64, form: Option<&str>) -> sql::QueryResult<()> {
    let sql = "UPDATE outgoing_parts SET form = ?2, as_file = CASE WHEN ?2 = 'rich' THEN 0 ELSE as_file END
               WHERE outgoing_id = ?1 AND part = 0";
    tx.execute(sql, (outgoing_id, form))?;
    Ok(())
}

/// Returns whether a rule lets a chat have a rich message now. Plans the sample if it is due.
fn may_be_rich(tx: &Transaction<'_>, rule: RichRule, now: DateTime<Utc>) -> Result<bool> {
    let known = read_chat(tx, rule.chat, now)?;
    if known.is_refused {
        return Ok(false);
    }
    match (rule.consent, known.answer.as_deref()) {
        (RichConsent::Given, _) | (RichConsent::Sampled, Some("well")) => Ok(true),
        (RichConsent::Sampled, Some(_)) => Ok(false),
        (RichConsent::Sampled, None) => {
            if !known.has_sample {
                plan_sample(tx, rule.chat, now)?;
            }
            Ok(false)
        }
    }
}

fn read_chat(tx: &Transaction<'_>, chat: ChatRef, now: DateTime<Utc>) -> Result<RichChat> {
    let sql = "SELECT outgoing_id IS NOT NULL, answer, COALESCE(refused_until > ?2, FALSE) FROM rich_chats WHERE chat_id = ?1";
    let read =
        |row: &sql::Row<'_>| Ok(RichChat { has_sample: row.get(0)?, answer: row.get(1)?, is_refused: row.get(2)? });
    Ok(tx.prepare(sql)?.query_row((chat, format_rfc3339(now)), read).optional()?.unwrap_or_default())
}

/// Plans the sample, which is sent only as a rich message.
fn plan_sample(tx: &Transaction<'_>, chat: ChatRef, now: DateTime<Utc>) -> Result<()> {
    let Some(id) = planned::insert(tx, &NewOutgoing::notice(chat, SAMPLE.to_owned()), now)? else { return Ok(()) };
    set_form(tx, id, Some("rich"))?;
    let sql = "INSERT INTO rich_chats (chat_id, outgoing_id) VALUES (?1, ?2)
               ON CONFLICT (chat_id) DO UPDATE SET outgoing_id = excluded.outgoing_id";
    tx.execute(sql, (chat, id))?;
    Ok(())
}

/// The question under the sample, until answered.
pub(crate) fn find_sample_question(tx: &Transaction<'_>, outgoing_id: i64) -> sql::QueryResult<Option<Question>> {
    let sql = "SELECT 1 FROM rich_chats WHERE outgoing_id = ?1 AND answer IS NULL";
    tx.prepare(sql)?.query_row([outgoing_id], |_| Ok(Question::Sample { outgoing_id })).optional()
}

/// Records a press of a button under the sample. Returns whether it is the answer.
pub(crate) fn record_tap(
    tx: &Transaction<'_>,
    (chat, message_id): (ChatRef, i64),
    (outgoing_id, answer): (i64, SampleAnswer),
    now: DateTime<Utc>,
) -> Result<bool> {
    let sql = "UPDATE rich_chats SET answer = ?3, message_id = ?4, answered_at = ?5
               WHERE chat_id = ?1 AND outgoing_id = ?2 AND answer IS NULL";
    let n = tx.execute(sql, (chat, outgoing_id, answer.name(), message_id, format_rfc3339(now)))?;
    if n == 1 {
        attempts::record_arrival(tx, outgoing_id, message_id, now)?;
    }
    Ok(n == 1)
}

/// Records that a rich message was refused: it goes as plain parts, or not at all if it was the sample.
pub(crate) fn record_refusal(
    tx: &Transaction<'_>,
    claimed: &Claimed,
    (refusal, why): (RichRefusal, &str),
    now: DateTime<Utc>,
) -> Result<()> {
    let is_sample = matches!(claimed.question, Some(Question::Sample { .. }));
    let is_ours = "SELECT EXISTS (SELECT 1 FROM outgoing_parts WHERE outgoing_id = ?1 AND part = ?2
                   AND state IN ('attempting', 'unknown') AND attempts = ?3)";
    let values = (claimed.outgoing_id, claimed.part, claimed.attempts);
    if !tx.prepare(is_ours)?.query_row(values, |row| row.get::<_, bool>(0))? {
        return Ok(());
    }
    if is_sample {
        withdraw_sample(tx, claimed.outgoing_id, why, now)?;
    } else {
        planned::plan_plain_again(tx, claimed.outgoing_id, claimed.is_repeat, now)?;
    }
    // A refused sample may be a fault of this version alone.
    let is_remembered = refusal != RichRefusal::Content || is_sample;
    if is_remembered {
        let answer = (refusal == RichRefusal::Unsupported).then_some("unsupported");
        tx.execute(
            "INSERT INTO rich_chats (chat_id, answer, refused_until) VALUES (?1, ?2, ?3)
             ON CONFLICT (chat_id) DO UPDATE SET refused_until = excluded.refused_until,
                 answer = COALESCE(rich_chats.answer, excluded.answer)",
            (claimed.chat, answer, format_rfc3339(now + REFUSED_FOR)),
        )?;
    }
    Ok(())
}

/// Withdraws the sample, so that it can be sent again one day.
fn withdraw_sample(tx: &Transaction<'_>, outgoing_id: i64, why: &str, now: DateTime<Utc>) -> Result<()> {
    let now = format_rfc3339(now);
    tx.execute("UPDATE outgoing_messages SET sent_at = ?2, taken_back_at = ?2 WHERE id = ?1", (outgoing_id, &now))?;
    tx.execute(
        "UPDATE outgoing_parts SET state = 'failed', error = ?2, changed_at = ?3, sender = NULL WHERE outgoing_id = ?1",
        (outgoing_id, why, &now),
    )?;
    tx.execute("UPDATE rich_chats SET outgoing_id = NULL WHERE outgoing_id = ?1", [outgoing_id])?;
    Ok(())
}
