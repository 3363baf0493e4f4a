//! Checks after every command, and at the end.

use std::collections::BTreeMap;

use reveille_store::{CycleState, StagedFile};

use super::{
    look::Look,
    model::{Message, Written, is_open},
    scene::Scene,
    wake::text,
};

/// Compares the database with the model.
pub(super) fn always(scene: &Scene) -> Result<(), String> {
    let Scene { look, model, store, .. } = scene;
    same("messages", &messages(look)?, &model.messages)?;
    same("outgoing messages", &written(look)?, &model.outgoing)?;
    let cycles: BTreeMap<_, _> =
        model.cycles.iter().map(|(id, cycle)| (id.clone(), (cycle.state.as_str().to_owned(), cycle.tries))).collect();
    same("cycles", &cycles_of(look)?, &cycles)?;
    for (id, cycle) in model.cycles.iter().filter(|(_, cycle)| is_open(cycle.state)) {
        let staged: Vec<StagedFile> = cycle.staged.values().cloned().collect();
        same("staged files", &store.journal().list_staged_files(id).map_err(text)?, &staged)?;
        same("the journal", &store.journal().read_journal(id).map_err(text)?, &cycle.journal)?;
    }
    let reminders: Vec<(i64, String, String)> =
        model.reminders.iter().map(|(id, (text, state))| (*id, text.clone(), (*state).to_owned())).collect();
    let found = look
        .rows("SELECT id, text, state FROM reminders ORDER BY id", |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    same("reminders", &found, &reminders)?;
    same("firings", &look.one("SELECT count(*) FROM reminder_firings")?, &(model.fired.len() as i64))?;
    same("the fence", &look.one("SELECT fence FROM processing_lock")?, &model.fence)?;
    let strangers = look.one("SELECT CAST(COALESCE(sum(n), 0) AS BIGINT) FROM counters WHERE name = 'strangers'")?;
    same("strangers", &strangers, &model.strangers)?;
    let offset = look.rows("SELECT next_offset FROM poll_state", |row| row.get(0))?.pop();
    same("the next offset", &offset, &model.next_offset)
}

/// Checks that after undisturbed wakes only messages held for another model are open.
pub(super) fn at_the_end(scene: &Scene) -> Result<(), String> {
    let Scene { look, model, .. } = scene;
    for (row, message) in &model.messages {
        let is_kept = message.held_for.as_deref() == Some(scene.model_name);
        if !message.is_processed && !is_kept {
            return Err(format!("the message {row} was left lying: {message:?}"));
        }
    }
    if let Some((id, cycle)) = model.cycles.iter().find(|(_, cycle)| is_open(cycle.state)) {
        return Err(format!("the cycle {id} is still {:?}", cycle.state));
    }
    for (id, cycle) in &model.cycles {
        same("a journal", &scene.store.journal().read_journal(id).map_err(text)?, &cycle.journal)?;
        if (cycle.state == CycleState::Done) != scene.outside.committed.contains(id) {
            return Err(format!("the cycle {id} is {:?}, and its commit says otherwise", cycle.state));
        }
    }
    if let Some(late) = scene
        .store
        .reminders()
        .list_reminders()
        .map_err(text)?
        .iter()
        .find(|reminder| reminder.what.next_at <= scene.now)
    {
        return Err(format!("a reminder is late: {late:?}"));
    }
    delivered(scene)?;
    // A server looks after its own files.
    if scene.home.is_shared() {
        return Ok(());
    }
    same("integrity_check", &look.rows("PRAGMA integrity_check", |row| row.get(0))?, &vec!["ok".to_owned()])
}

/// Checks that each part has arrived, was refused for good, or is in doubt and marked for a person.
fn delivered(scene: &Scene) -> Result<(), String> {
    let sql = "SELECT o.id, p.part, p.state, p.repeats, o.sent_at IS NOT NULL
               FROM outgoing_messages o LEFT JOIN outgoing_parts p ON p.outgoing_id = o.id WHERE o.chat_id != 0";
    type Part = (i64, i64, String, i64, bool);
    let parts: Vec<Part> =
        scene.look.rows(sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))?;
    for (message, part, state, repeats, is_sent) in parts {
        let is_right = match state.as_str() {
            "sent" => scene.outside.has_arrived(message, part),
            "failed" => !is_sent,
            "unknown" => repeats == 1 && scene.outside.was_doubted(message, part) && !is_sent,
            _ => false,
        };
        if !is_right {
            return Err(format!("part {part} of message {message} ended {state}, its message sent: {is_sent}"));
        }
    }
    let unsent = "SELECT count(*) FROM outgoing_messages o WHERE sent_at IS NULL AND NOT EXISTS (
                      SELECT 1 FROM outgoing_parts WHERE outgoing_id = o.id AND state IN ('failed', 'unknown'))";
    same("messages that were sent and aren't marked so", &scene.look.one(unsent)?, &0)
}

fn messages(look: &Look) -> Result<BTreeMap<i64, Message>, String> {
    let sql =
        "SELECT id, chat_id, message_text, outcome, processed, attempts, held_for, cycle_id FROM incoming_messages";
    let all = look.rows(sql, |row| {
        let message = Message {
            chat: row.get(1)?,
            text: row.get(2)?,
            outcome: row.get(3)?,
            is_processed: row.get(4)?,
            attempts: row.get(5)?,
            held_for: row.get(6)?,
            cycle_id: row.get(7)?,
        };
        Ok((row.get(0)?, message))
    })?;
    Ok(all.into_iter().collect())
}

fn written(look: &Look) -> Result<Vec<Written>, String> {
    look.rows("SELECT chat_id, message_text, kind, key, cycle_id FROM outgoing_messages ORDER BY id", |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    })
}

fn cycles_of(look: &Look) -> Result<BTreeMap<String, (String, u32)>, String> {
    let all = look.rows("SELECT id, state, tries FROM cycles", |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    Ok(all.into_iter().collect())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what} are\n  {found:?}\nand should be\n  {wanted:?}")) }
}
