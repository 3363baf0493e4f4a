//! What is said at a terminal of this machine, or on its page: stored as a message, or answered as a command, as on Telegram.

use chrono::{DateTime, Utc};

use reveille_base::{redact::Redactor, types::ChatRef};
use reveille_config::Config;
use reveille_store::{
    LandedFile, NewOutgoing, Order, Ordered, OutgoingKind, Store, StoreError, TerminalSession, in_force::in_force,
};

use super::{AtTerminal, at_terminal, rules::carry_out_rules};

/// The longest text that is taken, in bytes.
pub const MAX_SAID_BYTES: u64 = 100_000;

/// What was stored of something said at a terminal.
#[derive(Debug)]
pub enum Put {
    /// A message, by its row.
    Message(i64),
    /// A command: its answer is planned, its order carried out as far as that is a row.
    Command(Option<Order>),
    /// A yes or a no to an open question.
    Answer {
        /// Whether it has decided something.
        has_decided: bool,
    },
}

/// What remains to be done once something is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterPut {
    /// Nothing: it is done.
    Done,
    /// What the wake at work has started must end.
    EndPrograms,
    /// A wake must look.
    Wake,
}

impl Put {
    /// What remains to be done.
    pub fn after(&self) -> AfterPut {
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

/// Stores what is said within a session.
///
/// # Errors
/// Nothing was stored.
pub fn put_said(
    (config, redactor): (&Config, &Redactor),
    store: &mut Store,
    session: &TerminalSession,
    (text, files): (&str, &[LandedFile]),
    now: DateTime<Utc>,
) -> Result<Put, StoreError> {
    let admitted = in_force(config, store)?;
    let text = redactor.redact(text);
    if files.is_empty()
        && let Some((told, has_decided)) = store.answer_at_terminal(&text, now)?
    {
        let answer = NewOutgoing { text: told.to_owned(), kind: OutgoingKind::Command, ..NewOutgoing::default() };
        store.order_at_terminal(&Ordered { answer, order: None, update_id: None }, session, now)?;
        return Ok(Put::Answer { has_decided });
    }
    match at_terminal(store, &admitted, now, &text)? {
        AtTerminal::Words => Ok(Put::Message(store.say_at_terminal(&text, files, session, now)?)),
        AtTerminal::Command { answer, order } => {
            let order = order.map(|order| order.with_titles(|title| redactor.redact(title)));
            let answer = NewOutgoing {
                chat: ChatRef::TERMINAL,
                text: redactor.redact(&answer),
                kind: OutgoingKind::Command,
                ..NewOutgoing::default()
            };
            store.order_at_terminal(&Ordered { answer, order: order.clone(), update_id: None }, session, now)?;
            if let Some(Order::RemoveRule(_)) = order {
                carry_out_rules(store, config, redactor, now)?;
            }
            Ok(Put::Command(order))
        }
    }
}
