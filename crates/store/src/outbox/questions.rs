//! The questions in messages: their buttons, and the file for a long question.

use reveille_base::{
    approval_text,
    types::{BoundFiles, NudgeAnswer, Question, TextFile},
};

use crate::{
    NewNudge, OutgoingKind, Result,
    outbox::rich,
    sql::{self, OptionalExtension as _, Transaction},
};

/// The maximum length of an action, its named files and its reasons in a chat message, in characters as shown. Anything longer is shown
/// as a file, because a chat message shows them in full or not at all.
const SHOWN_CHARS_MAX: usize = 2_500;

/// Returns whether an action, its named files and its reasons need a file.
pub fn is_long(action: &str, named: &BoundFiles, reasons: &[String]) -> bool {
    let chars = |text: &str| approval_text::escape_hidden(text).chars().count();
    let of_files = approval_text::render_files(named).chars().count();
    chars(action) + of_files + reasons.iter().map(|reason| chars(reason)).sum::<usize>() > SHOWN_CHARS_MAX
}

/// The question to show with a part of a message of this kind, with its file if it is long.
pub(crate) fn find_part_question(
    tx: &Transaction<'_>,
    kind: &str,
    outgoing_id: i64,
    part: i64,
) -> sql::QueryResult<Option<(Question, Option<TextFile>)>> {
    let kinds = [
        OutgoingKind::Approval,
        OutgoingKind::Reminder,
        OutgoingKind::Command,
        OutgoingKind::Tell,
        OutgoingKind::Notice,
    ];
    let question = match kinds.into_iter().find(|known| known.as_str() == kind) {
        Some(OutgoingKind::Approval) => return find_question(tx, outgoing_id, part),
        Some(OutgoingKind::Reminder) => find_reminder_question(tx, outgoing_id, part)?,
        Some(OutgoingKind::Command) => find_rule_question(tx, outgoing_id, part)?,
        Some(OutgoingKind::Tell) => find_nudge_question(tx, outgoing_id, part)?,
        Some(OutgoingKind::Notice) => rich::find_sample_question(tx, outgoing_id)?,
        Some(OutgoingKind::Reply) | None => None,
    };
    Ok(question.map(|question| (question, None)))
}

/// The question to show with a part of a message, with its file if it is long. Only the last part of an open question shows it.
pub(crate) fn find_question(
    tx: &Transaction<'_>,
    outgoing_id: i64,
    part: i64,
) -> sql::QueryResult<Option<(Question, Option<TextFile>)>> {
    tx.prepare(
        "SELECT id, nonce, tool, action, reasons, rule IS NOT NULL, named FROM approvals a WHERE outgoing_id = ?1 AND state = 'pending'
           AND ?2 = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = ?1)",
    )?
    .query_row((outgoing_id, part), |row| {
        let (id, nonce, tool, action): (i64, String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let reasons: Vec<String> = serde_json::from_str(&row.get::<_, String>(4)?).unwrap_or_default();
        let named = BoundFiles::parse(row.get::<_, Option<String>>(6)?.as_deref());
        let file = is_long(&action, &named, &reasons).then(|| TextFile {
            name: format!("question-{id}.txt"),
            text: approval_text::render_question_file(id, (&tool, &action), &named, &reasons),
        });
        Ok((Question::Approval { nonce, may_stand: row.get(5)? }, file))
    })
    .optional()
}

/// The question to show with a proposed rule, until it is answered.
pub(crate) fn find_rule_question(
    tx: &Transaction<'_>,
    outgoing_id: i64,
    part: i64,
) -> sql::QueryResult<Option<Question>> {
    tx.prepare(
        "SELECT nonce FROM approvals WHERE rule_outgoing_id = ?1 AND rule_is_shown = 0 AND rule = 'shown' AND state = 'pending'
           AND ?2 = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = ?1)",
    )?
    .query_row((outgoing_id, part), |row| Ok(Question::Rule { nonce: row.get(0)? }))
    .optional()
}

/// The question to show with a part of a reminder: only the last part shows it, until it is answered.
pub(crate) fn find_reminder_question(
    tx: &Transaction<'_>,
    outgoing_id: i64,
    part: i64,
) -> sql::QueryResult<Option<Question>> {
    tx.prepare(
        "SELECT 1 FROM reminder_firings WHERE outgoing_id = ?1
           AND ?2 = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = ?1)
           AND NOT EXISTS (SELECT 1 FROM reminder_answers WHERE outgoing_id = ?1) LIMIT 1",
    )?
    .query_row((outgoing_id, part), |_| Ok(Question::Reminder { outgoing_id }))
    .optional()
}

/// The question to show with a part of a nudge: only the last part shows it, until it is answered.
pub(crate) fn find_nudge_question(
    tx: &Transaction<'_>,
    outgoing_id: i64,
    part: i64,
) -> sql::QueryResult<Option<Question>> {
    let sql = "SELECT ?2 = (SELECT max(part) FROM outgoing_parts WHERE outgoing_id = ?1)";
    if !tx.prepare(sql)?.query_row((outgoing_id, part), |row| row.get::<_, bool>(0))? {
        return Ok(None);
    }
    let answers = nudge_answers(tx, outgoing_id)?;
    Ok((!answers.is_empty()).then_some(Question::Nudge { outgoing_id, answers }))
}

/// The possible answers to a nudge, in the order of its buttons; empty once answered. A nudge with untrusted text can't be
/// repeated, because the repetition would look like the person's own reminder.
pub(crate) fn nudge_answers(tx: &Transaction<'_>, outgoing_id: i64) -> sql::QueryResult<Vec<NudgeAnswer>> {
    let offers = tx
        .prepare(
            "SELECT n.task IS NOT NULL, o.taint IS NULL AND n.proposal IS NULL, n.may_stop,
                 n.proposal IS NOT NULL AND NOT EXISTS (SELECT 1 FROM undos u JOIN proposals p ON p.id = n.proposal
                     WHERE u.wake IN (p.cycle_id, 'proposal/' || p.id))
             FROM nudges n JOIN outgoing_messages o ON o.id = n.outgoing_id WHERE n.outgoing_id = ?1 AND n.answer IS NULL",
        )?
        .query_row([outgoing_id], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, bool>(3)?]))
        .optional()?
        .unwrap_or_default();
    Ok(NudgeAnswer::ALL
        .into_iter()
        .zip(offers)
        .filter_map(|(answer, is_offered)| is_offered.then_some(answer))
        .collect())
}

/// Stores the data for the buttons under a message.
pub(crate) fn record_nudge(tx: &Transaction<'_>, outgoing_id: i64, nudge: &NewNudge) -> Result<()> {
    tx.prepare("INSERT INTO nudges (outgoing_id, task, zone, may_stop, proposal) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute((outgoing_id, &nudge.task, &nudge.zone, nudge.may_stop, nudge.proposal))?;
    Ok(())
}

/// Withdraws a question that its channel refuses for good. As nobody can see it, it counts as denied at once.
pub(crate) fn withdraw_question(tx: &Transaction<'_>, outgoing_id: i64) -> Result<()> {
    tx.execute("UPDATE approvals SET state = 'withdrawn' WHERE outgoing_id = ?1 AND state = 'pending'", [outgoing_id])?;
    Ok(())
}
