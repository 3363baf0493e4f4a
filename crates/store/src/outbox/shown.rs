//! The tasks behind the numbers of the last list shown in a chat. A person who names a number means that list, even if the tasks have
//! changed since.

use reveille_base::types::ChatRef;
use reveille_memory::outside;

use crate::{
    NewOutgoing, Result,
    areas::{Outbox, ReadStore, WriteStore},
    sql::{self, Transaction},
};

/// A task in a shown list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTask {
    /// The task's document.
    pub path: String,
    /// The task's heading.
    pub title: String,
}

impl<S: ReadStore> Outbox<S> {
    /// The tasks last shown in a chat, in the order of their numbers, from 1.
    pub fn shown_tasks(&self, chat: ChatRef) -> Result<Vec<ShownTask>> {
        let mut statement =
            self.0.conn().prepare("SELECT path, title FROM shown_tasks WHERE chat_id = ?1 ORDER BY number")?;
        let read = |row: &sql::Row<'_>| Ok(ShownTask { path: row.get(0)?, title: row.get(1)? });
        Ok(statement.query_map([chat], read)?.collect::<sql::QueryResult<_>>()?)
    }
}

impl<S: WriteStore> Outbox<S> {
    /// Records tasks shown in a chat, numbered from 1, by a list outside any message.
    pub fn show_tasks(&mut self, chat: ChatRef, tasks: &[ShownTask]) -> Result<()> {
        self.0.write(|tx| record_shown_tasks(tx, chat, tasks))
    }
}

/// Records a list within the transaction that plans its message.
pub(crate) fn record_shown_tasks(tx: &Transaction<'_>, chat: ChatRef, tasks: &[ShownTask]) -> Result<()> {
    tx.execute("DELETE FROM shown_tasks WHERE chat_id = ?1", [chat])?;
    let mut insert = tx.prepare("INSERT INTO shown_tasks (chat_id, number, path, title) VALUES (?1, ?2, ?3, ?4)")?;
    for (number, task) in (1_i64..).zip(tasks) {
        insert.execute((chat, number, &task.path, &task.title))?;
    }
    Ok(())
}

/// As [`record_shown_tasks`], for the list in a command's answer. An answer left out has shown nothing.
pub(crate) fn record_answer_tasks(tx: &Transaction<'_>, answer: &NewOutgoing, tasks: &[ShownTask]) -> Result<()> {
    let sql = "SELECT EXISTS (SELECT 1 FROM outgoing_messages WHERE key IS NOT DISTINCT FROM ?1 AND chat_id = ?2 AND message_text = ?3
               AND taken_back_at IS NULL)";
    let is_told: bool =
        tx.query_row(sql, (&answer.key, answer.chat, outside::strip_marks(&answer.text)), |row| row.get(0))?;
    if is_told { record_shown_tasks(tx, answer.chat, tasks) } else { Ok(()) }
}
