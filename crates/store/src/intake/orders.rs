//! What a person orders by a command, without a model. An order is carried out in the transaction that stores its answer,
//! and the answer is keyed by its update: a command that arrives twice has happened once.

use chrono::{DateTime, Utc};

use reveille_base::types::ChatRef;

use super::restarts;
use crate::{
    ChosenSetting, NewOutgoing, NewReminder, NewStep, Result, ShownTask, Store, UpkeepKind,
    chats::{chosen, local, stop},
    cycles::{rules, undo},
    messages::{fresh, queue},
    outbox::{attempts, planned, shown},
    reminders::rows,
    sql::Transaction,
    steps,
};

/// While so many answers wait to be sent to a chat it gets no more of them: a flood of commands would keep it busy for long after
/// its end. What they order is carried out.
const MAX_ANSWERS_WAITING: i64 = 20;
/// What stands in the place of the answers that are left out, once for as long as it waits itself.
const TOO_MANY: &str = "That is more than I can answer at once, so I leave out some answers. Whatever you order is done all the \
                        same, /stop too; ask again in a minute for what you miss.";

/// What is ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// No wake works, until [`Order::Resume`]; for its chat alone, unless the owner says so.
    Stop {
        /// Whether the owner says so.
        is_owners: bool,
    },
    /// Wakes work again: for its chat, and for all if the owner says so.
    Resume {
        /// Whether the owner says so.
        is_owners: bool,
    },
    /// This wake is to be undone by the next one.
    Undo {
        /// Its cycle's id.
        wake: String,
    },
    /// These messages are tried afresh.
    Retry {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
    },
    /// A reminder is set.
    Remind(NewReminder),
    /// A reminder is ended, and perhaps comes at another time.
    EndReminder {
        /// Its number.
        id: i64,
        /// What is set in its place.
        to: Option<NewReminder>,
    },
    /// What waits for the end of a back-off waits no longer: of its chat alone, unless the owner says so.
    Wake {
        /// Whether the owner says so.
        is_owners: bool,
    },
    /// A rule of ours goes from `policy.toml`: its text there. Its answer follows once that is done.
    RemoveRule(String),
    /// The answer shows these tasks, numbered from 1.
    ShowTasks(Vec<ShownTask>),
    /// What was said in the answer's chat, or topic, is left out of openings from now on.
    BeginAfresh,
    /// Its chat is kept on this machine, or no longer.
    KeepLocal {
        /// Whether it is from now on.
        is_kept: bool,
    },
    /// A setting is chosen.
    Choose(ChosenSetting),
    /// The bot starts anew.
    Restart,
}

impl Order {
    /// The same with the titles that it holds made fit to be kept.
    #[must_use]
    pub fn with_titles(self, fit: impl Fn(&str) -> String) -> Self {
        match self {
            Self::ShowTasks(tasks) => {
                Self::ShowTasks(tasks.into_iter().map(|task| ShownTask { title: fit(&task.title), ..task }).collect())
            }
            other => other,
        }
    }

    /// Whether a wake has something to do by it.
    pub(crate) fn is_work(&self) -> bool {
        !matches!(self, Self::ShowTasks(_) | Self::RemoveRule(_) | Self::BeginAfresh | Self::Restart)
    }
}

/// A command: what its chat is told, and what is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered {
    /// Its key tells a command that arrives twice.
    pub answer: NewOutgoing,
    /// None: it only asks.
    pub order: Option<Order>,
    /// The channel's key of its update. Where a row has taken in what it answers, it was the rest of a text, and is no order.
    pub update_id: Option<i64>,
}

impl Store {
    /// Carries out an order of this machine's person; nobody is told.
    pub fn order(&mut self, order: &Order, now: DateTime<Utc>) -> Result<()> {
        let here = NewOutgoing { chat: ChatRef::TERMINAL, ..NewOutgoing::default() };
        self.write(|tx| carry_out(tx, order, &here, now))
    }
}

/// What becomes of a command's answer.
pub(crate) enum AnswerState {
    /// It is planned, as this row.
    Planned(i64),
    /// It never leaves: others that wait are enough.
    LeftOut,
}

/// Plans the answer and carries the order out; none if that was done before.
pub(crate) fn accept(tx: &Transaction<'_>, ordered: &Ordered, now: DateTime<Utc>) -> Result<Option<AnswerState>> {
    let answer = match &ordered.order {
        Some(Order::RemoveRule(_)) => planned::leave_out(tx, &ordered.answer, now)?.map(|()| AnswerState::LeftOut),
        _ => plan_answer(tx, &ordered.answer, now)?,
    };
    if answer.is_some()
        && let Some(order) = &ordered.order
    {
        carry_out(tx, order, &ordered.answer, now)?;
    }
    Ok(answer)
}

/// Plans an answer, or what stands in its place where too many wait. One that is left out is kept too: by its key the command is
/// known should it come again.
fn plan_answer(tx: &Transaction<'_>, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<AnswerState>> {
    let (waiting, is_told) = attempts::answers_waiting(tx, answer.chat, TOO_MANY)?;
    if is_told {
        return Ok(planned::leave_out(tx, answer, now)?.map(|()| AnswerState::LeftOut));
    }
    let too_many = || NewOutgoing { text: TOO_MANY.to_owned(), ..answer.clone() };
    let answer = if waiting < MAX_ANSWERS_WAITING {
        planned::insert(tx, answer, now)
    } else {
        planned::insert(tx, &too_many(), now)
    };
    Ok(answer?.map(AnswerState::Planned))
}

fn step(chat: ChatRef, did: String) -> NewStep {
    NewStep { chat, did, commit: None }
}

fn carry_out(tx: &Transaction<'_>, order: &Order, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<()> {
    match order {
        Order::Stop { is_owners } => stop::stop(tx, answer.chat, *is_owners, now),
        Order::Resume { is_owners } => stop::resume(tx, answer.chat, *is_owners),
        Order::Undo { wake } => undo::ask(tx, wake, answer, now),
        Order::Retry { messages } => messages.iter().try_for_each(|id| queue::retry(tx, *id).map(drop)),
        Order::Remind(reminder) => {
            let step = step(answer.chat, format!("set the reminder “{}”", reminder.text));
            rows::add(tx, reminder, Some(&steps::note(tx, &step, None, now)?), now)
        }
        Order::EndReminder { id, to } => {
            let did = if to.is_some() { "put off" } else { "ended" };
            let text = rows::text_of(tx, *id)?.unwrap_or_default();
            let step = steps::note(tx, &step(answer.chat, format!("{did} the reminder “{text}”")), None, now)?;
            rows::cancel(tx, *id, Some(&step))?;
            to.as_ref().map_or(Ok(()), |to| rows::add(tx, to, Some(&step), now))
        }
        Order::Wake { is_owners: true } => end_back_offs(tx),
        Order::Wake { is_owners: false } => end_back_offs_of(tx, answer.chat),
        Order::RemoveRule(rule) => rules::remove(tx, rule, answer),
        Order::ShowTasks(tasks) => shown::show_in(tx, answer, tasks),
        Order::BeginAfresh => {
            let before = fresh::before(tx, answer)?;
            steps::note(tx, &step(answer.chat, "started this chat afresh".to_owned()), Some(&before), now)?;
            fresh::begin(tx, answer, now)
        }
        Order::KeepLocal { is_kept } => {
            let did = if *is_kept { "kept this chat on this machine" } else { "let this chat use the cloud again" };
            let before = steps::local_before(tx, answer.chat)?;
            steps::note(tx, &step(answer.chat, did.to_owned()), Some(&before), now)?;
            local::keep(tx, answer.chat, *is_kept, now)?;
            end_back_offs_of(tx, answer.chat)
        }
        Order::Choose(setting) => {
            let did = format!("chose {} = {}", setting.name, setting.value);
            let before = steps::chosen_before(tx, setting)?;
            steps::note(tx, &step(answer.chat, did), Some(&before), now)?;
            chosen::choose(tx, setting, now)?;
            // Another model needn't wait for the end of this one's troubles.
            end_back_offs(tx)
        }
        Order::Restart => restarts::order(tx, answer, now),
    }
}

fn end_back_offs_of(tx: &Transaction<'_>, chat: ChatRef) -> Result<()> {
    tx.execute("UPDATE cycles SET not_before = NULL WHERE state = 'waiting' AND chat_id = ?1", [chat])?;
    tx.execute("UPDATE incoming_messages SET not_before = NULL WHERE processed = 0 AND chat_id = ?1", [chat])?;
    Ok(())
}

/// A rate limit of the channel isn't ours to shorten: deliveries keep theirs.
fn end_back_offs(tx: &Transaction<'_>) -> Result<()> {
    tx.execute("UPDATE model_breakers SET not_before = NULL", [])?;
    for kind in [UpkeepKind::Fetch, UpkeepKind::Push] {
        tx.execute("UPDATE upkeep SET not_before = NULL WHERE name = ?1", [kind.as_str()])?;
    }
    tx.execute("UPDATE cycles SET not_before = NULL WHERE state = 'waiting'", [])?;
    tx.execute("UPDATE incoming_messages SET not_before = NULL WHERE processed = 0", [])?;
    Ok(())
}
