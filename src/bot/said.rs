//! Takes statements from a terminal or the page: stores them as messages or answers them as commands, as on Telegram.

use chrono::{DateTime, Utc};

use reveille_base::{redact::Redactor, types::ChatRef};
use reveille_config::Config;
use reveille_store::{
    LandedFile, NewOutgoing, Order, Ordered, OutgoingKind, Store, StoreError, TerminalSession,
    in_force::load_effective_config,
};

use super::{AtTerminal, answer_at_terminal, plain_stop::is_plain_stop, rules::carry_out_rules};

/// The longest accepted text, in bytes.
pub const MAX_SAID_BYTES: u64 = 100_000;

/// The command that a plain "stop" stands for while a wake works.
const STOP: &str = "/stop";

/// The row that was stored for a statement.
#[derive(Debug)]
pub enum StoredStatement {
    /// A message, by its row id.
    Message(i64),
    /// A command. Its answer is in the outbox, and its order is carried out as far as the database alone allows.
    Command(Option<Order>),
    /// An answer to an open question.
    Answer {
        /// `true` if the answer has decided the question.
        has_decided: bool,
    },
}

/// The work that remains once a statement is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterPut {
    /// No work remains.
    Done,
    /// The programs of the running wake must end.
    EndPrograms,
    /// A wake must look for work.
    Wake,
}

impl StoredStatement {
    /// Returns the work that remains.
    pub fn remaining_work(&self) -> AfterPut {
        match self {
            Self::Command(
                None
                | Some(
                    Order::Remind(_)
                    | Order::EndReminder { .. }
                    | Order::ShowTasks(_)
                    | Order::RemoveRule(_)
                    | Order::BeginAfresh
                    | Order::Restart,
                ),
            ) => AfterPut::Done,
            Self::Answer { has_decided: false } => AfterPut::Done,
            Self::Answer { has_decided: true } => AfterPut::Wake,
            Self::Command(Some(Order::Stop { .. })) => AfterPut::EndPrograms,
            Self::Message(_)
            | Self::Command(Some(
                Order::Resume { .. }
                | Order::Undo { .. }
                | Order::Retry { .. }
                | Order::Wake { .. }
                | Order::KeepLocal { .. }
                | Order::Choose(_),
            )) => AfterPut::Wake,
        }
    }
}

/// Stores a statement of a terminal session.
///
/// # Errors
/// The store failed, and nothing was stored.
pub fn store_terminal_statement(
    (config, redactor): (&Config, &Redactor),
    store: &mut Store,
    session: &TerminalSession,
    (text, files): (&str, &[LandedFile]),
    now: DateTime<Utc>,
) -> Result<StoredStatement, StoreError> {
    let admitted = load_effective_config(config, store)?;
    let text = redactor.redact(text);
    if files.is_empty()
        && let Some((reply, has_decided)) = store.terminals_mut().answer_at_terminal(&text, now)?
    {
        let answer = NewOutgoing { text: reply.to_owned(), kind: OutgoingKind::Command, ..NewOutgoing::default() };
        store.terminals_mut().order_at_terminal(&Ordered { answer, order: None, update_id: None }, session, now)?;
        return Ok(StoredStatement::Answer { has_decided });
    }
    let is_stop =
        files.is_empty() && is_plain_stop(&text) && store.chats().list_working_chats()?.contains(&ChatRef::TERMINAL);
    match answer_at_terminal(store, &admitted, now, if is_stop { STOP } else { &text })? {
        AtTerminal::Words => {
            Ok(StoredStatement::Message(store.terminals_mut().say_at_terminal(&text, files, session, now)?))
        }
        AtTerminal::Command { answer, order } => {
            let order = order.map(|order| order.with_titles(|title| redactor.redact(title)));
            let answer = NewOutgoing {
                chat: ChatRef::TERMINAL,
                text: redactor.redact(&answer),
                kind: OutgoingKind::Command,
                ..NewOutgoing::default()
            };
            store.terminals_mut().order_at_terminal(
                &Ordered { answer, order: order.clone(), update_id: None },
                session,
                now,
            )?;
            if let Some(Order::RemoveRule(_)) = order {
                carry_out_rules(store, config, redactor, now)?;
            }
            Ok(StoredStatement::Command(order))
        }
    }
}
