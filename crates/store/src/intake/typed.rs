//! A yes or no typed by the owner. It answers the only open question, unless the assistant sent another message in between. A risky
//! action needs the button.
//!
//! The order of question and answer comes from the channel: from the growing message ids of a private chat, and from the channel's dates
//! of both messages. Our own clock may differ from the channel's. A question with an unknown date needs the button.

use chrono::{DateTime, Utc};

use reveille_base::{
    clock::{format_rfc3339, parse_time},
    types::{ApprovalAnswer, ButtonChoice, ChatRef},
};

use crate::{
    NewIncoming, NewOutgoing, OutgoingKind, Result, Tap,
    areas::{Terminals, WriteStore},
    cycles::approvals,
    outbox::planned,
    sql::{self, Transaction},
};

/// The reply if a typed yes answers a risky question.
const WANTS_THE_BUTTON: &str = "This one is risky, so a typed yes isn't enough, and nothing was done. To allow it, tap the button under the question.";

/// The same reply at the terminal or on the page.
const WANTS_A_COMMAND: &str = "This one is risky, so a typed yes isn't enough, and nothing was done. `wake approvals list` shows it. To allow it, run `wake approvals approve` with its number, or use its button on the page.";
/// The reply if several questions are open.
const WHICH_QUESTION: &str = "Several questions are open, so nothing was decided. `wake approvals list` shows them, and `wake approvals approve` takes their numbers. If they belong to one task, say yes to all.";

/// The result of a message that answered a question.
pub(crate) struct TypedAnswer {
    /// The row of the reply; `None` if an earlier delivery of the message planned it.
    pub(crate) reply_row: Option<i64>,
    /// Whether the answer decided the question.
    pub(crate) has_decided: bool,
}

/// A question that a typed answer can refer to.
struct OpenQuestion {
    nonce: String,
    is_risky: bool,
    message_id: i64,
    /// The time of sending, by the channel's clock.
    date: DateTime<Utc>,
}

/// Processes a typed answer; `None` if the message isn't one.
pub(crate) fn process_typed_answer(
    tx: &Transaction<'_>,
    (bot_id, owner): (i64, ChatRef),
    message: &NewIncoming,
    now: DateTime<Utc>,
) -> Result<Option<TypedAnswer>> {
    let (Some(typed), Some(message_id), Some(update_id), Some(sent_at)) =
        (yes_or_no(message, owner), message.channel_message_id, message.update_id, message.sent_at)
    else {
        return Ok(None);
    };
    let key = format!("typed/{bot_id}/{update_id}");
    if is_key_used(tx, &key)? {
        return Ok(Some(TypedAnswer { reply_row: None, has_decided: false }));
    }
    let questions = open_questions(tx, (owner, message_id), is_for_all(&message.text), now)?;
    // fault: typed-yes-counts-older
    let is_before = questions.iter().all(|question| question.date <= sent_at);
    let is_about = |question: &OpenQuestion| message.quotes == Some(question.message_id);
    let is_about_another = message.quoted.is_some() && !questions.iter().all(is_about);
    if questions.is_empty() || !is_before || is_about_another {
        return Ok(None);
    }
    let wants_button = typed == ApprovalAnswer::Yes && questions.iter().any(|question| question.is_risky);
    if !wants_button {
        let mut has_decided = false;
        for question in &questions {
            has_decided |= decide_question(tx, owner, question, typed, now)?;
        }
        if !has_decided {
            return Ok(None);
        }
    }
    let text = match (wants_button, typed) {
        (true, _) => WANTS_THE_BUTTON,
        (false, ApprovalAnswer::Yes) => "Allowed, once.",
        (false, ApprovalAnswer::No) => "Not done.",
    };
    let answer = NewOutgoing {
        chat: owner,
        text: text.to_owned(),
        kind: OutgoingKind::Command,
        key: Some(key),
        thread_id: message.thread_id,
        reply_to: Some(message_id),
        ..NewOutgoing::default()
    };
    Ok(Some(TypedAnswer { reply_row: planned::insert(tx, &answer, now)?, has_decided: !wants_button }))
}

/// Decides a question as its button would.
fn decide_question(
    tx: &Transaction<'_>,
    owner: ChatRef,
    question: &OpenQuestion,
    answer: ApprovalAnswer,
    now: DateTime<Utc>,
) -> Result<bool> {
    let tap = Tap {
        callback_id: String::new(),
        choice: ButtonChoice::Approval { nonce: question.nonce.clone(), answer },
        chat: owner,
        message_id: question.message_id,
        message_date: Some(question.date),
        sender_id: owner.number(),
    };
    approvals::record_tap(tx, &tap, (&question.nonce, answer), now)
}

/// The owner's answer, if the message is a plain yes or no that the owner wrote in the owner's own chat.
fn yes_or_no(message: &NewIncoming, owner: ChatRef) -> Option<ApprovalAnswer> {
    let is_owners = message.chat == owner
        && owner != ChatRef::TERMINAL
        && !owner.is_group()
        && message.sender_id == Some(owner.number());
    let is_plain = message.kind == "text"
        && message.forwarded_from.is_none()
        && message.attachments.is_empty()
        && !message.is_only_part;
    if !is_owners || !is_plain {
        return None;
    }
    parse_decision(&message.text)
}

/// The meaning of a text that is only a yes or a no.
fn parse_decision(text: &str) -> Option<ApprovalAnswer> {
    match text.trim().trim_end_matches(['.', '!']).to_lowercase().as_str() {
        "yes" | "y" | "yes to all" => Some(ApprovalAnswer::Yes),
        "no" | "n" | "no to all" => Some(ApprovalAnswer::No),
        _ => None,
    }
}

/// Returns whether an answer is meant for several questions.
fn is_for_all(text: &str) -> bool {
    text.to_lowercase().contains("all")
}

impl<S: WriteStore> Terminals<S> {
    /// Processes a yes or no typed on this machine, at a terminal or on the page. It answers the open question there ("to all": all open
    /// questions of one task), unless the assistant sent a message after it. Returns the reply and whether a question was decided; `None`
    /// if the text is an ordinary message.
    pub fn answer_at_terminal(&mut self, text: &str, now: DateTime<Utc>) -> Result<Option<(&'static str, bool)>> {
        let Some(answer) = parse_decision(text) else { return Ok(None) };
        self.0.write(|tx| {
            let open = list_open_here(tx, now)?;
            let (Some(first), Some(last)) = (open.first(), open.last()) else { return Ok(None) };
            // An earlier reply that decided nothing doesn't count as intervening.
            let sql = "SELECT EXISTS (SELECT 1 FROM outgoing_messages WHERE chat_id = 0 AND id > ?1
                 AND taken_back_at IS NULL AND message_text NOT IN (?2, ?3))";
            let values = (last.outgoing, WHICH_QUESTION, WANTS_A_COMMAND);
            if tx.prepare(sql)?.query_row(values, |row| row.get(0))? {
                return Ok(None);
            }
            let is_one_task = open.iter().all(|other| other.cycle == first.cycle);
            if open.len() > 1 && !(is_for_all(text) && is_one_task) {
                return Ok(Some((WHICH_QUESTION, false)));
            }
            if answer == ApprovalAnswer::Yes && open.iter().any(|question| question.is_risky) {
                return Ok(Some((WANTS_A_COMMAND, false)));
            }
            for question in &open {
                approvals::decide_here(tx, question.id, answer, now)?;
            }
            let reply = match answer {
                ApprovalAnswer::Yes => "Allowed, once.",
                ApprovalAnswer::No => "Not done.",
            };
            Ok(Some((reply, true)))
        })
    }
}

/// A question that is open on this machine and was shown here.
struct OpenHere {
    id: i64,
    cycle: String,
    is_risky: bool,
    outgoing: i64,
}

fn list_open_here(tx: &Transaction<'_>, now: DateTime<Utc>) -> Result<Vec<OpenHere>> {
    let sql = "SELECT a.id, a.cycle_id, a.risk NOT IN ('safe', 'caution'), a.outgoing_id
         FROM approvals a JOIN outgoing_messages o ON o.id = a.outgoing_id
         WHERE a.chat_id = 0 AND a.state = 'pending' AND a.expires_at > ?1 AND o.sent_at IS NOT NULL ORDER BY a.id";
    let read = |row: &sql::Row<'_>| {
        Ok(OpenHere { id: row.get(0)?, cycle: row.get(1)?, is_risky: row.get(2)?, outgoing: row.get(3)? })
    };
    let mut statement = tx.prepare(sql)?;
    Ok(statement.query_map([format_rfc3339(now)], read)?.collect::<sql::QueryResult<_>>()?)
}

fn is_key_used(tx: &Transaction<'_>, key: &str) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM outgoing_messages WHERE key = ?1)";
    Ok(tx.prepare(sql)?.query_row([key], |row| row.get(0))?)
}

/// The questions that the message answers: the only open question in the chat, or with `is_for_all` all open questions, if they belong to
/// one task. Empty unless all were asked before the message, and the assistant sent nothing else in between.
fn open_questions(
    tx: &Transaction<'_>,
    (chat, message_id): (ChatRef, i64),
    is_for_all: bool,
    now: DateTime<Utc>,
) -> Result<Vec<OpenQuestion>> {
    let open = "FROM approvals WHERE chat_id = ?1 AND state = 'pending' AND expires_at > ?2";
    let sql = format!(
        "SELECT a.nonce, a.risk NOT IN ('safe', 'caution'), q.channel_message_id, q.channel_date
         FROM approvals a JOIN outgoing_parts q ON q.outgoing_id = a.outgoing_id
         WHERE a.chat_id = ?1 AND a.state = 'pending' AND a.expires_at > ?2 AND q.channel_message_id < ?3
           AND q.part = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = a.outgoing_id)
           AND 1 = (SELECT count(DISTINCT cycle_id) {open})
           AND NOT EXISTS (
             SELECT 1 FROM outgoing_messages o JOIN outgoing_parts p ON p.outgoing_id = o.id
             WHERE o.chat_id = ?1 AND o.id NOT IN (SELECT outgoing_id {open} AND outgoing_id IS NOT NULL)
               AND (p.channel_message_id > q.channel_message_id AND p.channel_message_id < ?3
                    OR p.state IN ('attempting', 'unknown')))
         ORDER BY a.id"
    );
    let read = |row: &sql::Row<'_>| {
        let date = row.get::<_, Option<String>>(3)?.as_deref().and_then(parse_time);
        let (nonce, is_risky, message_id) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(date.map(|date| OpenQuestion { nonce, is_risky, message_id, date }))
    };
    let mut statement = tx.prepare(&sql)?;
    let found =
        statement.query_map((chat, format_rfc3339(now), message_id), read)?.collect::<sql::QueryResult<Vec<_>>>()?;
    let count: i64 = tx.query_row(&format!("SELECT count(*) {open}"), (chat, format_rfc3339(now)), |row| row.get(0))?;
    let found: Vec<OpenQuestion> = found.into_iter().flatten().collect();
    // A question that came after the message, or has an unknown date, needs its button, and then so do the others.
    let is_meant = found.len() as i64 == count && (count == 1 || is_for_all);
    Ok(if is_meant { found } else { Vec::new() })
}
