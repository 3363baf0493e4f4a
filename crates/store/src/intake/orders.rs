//! Orders a person gives by a command, without a model. The transaction that stores an order's answer also carries the order out.
//! The answer is keyed by its update, so a command that arrives twice happens once.

use chrono::{DateTime, Utc};

use reveille_base::types::ChatRef;

use super::restarts;
use crate::{
    ChosenSetting, NewOutgoing, NewReminder, NewStep, Result, ShownTask, UpkeepKind,
    areas::{Inbox, WriteStore},
    chats::{chosen, local, stop},
    cycles::{rules, undo},
    messages::{fresh, queue},
    outbox::{attempts, planned, shown},
    reminders::rows,
    sql::Transaction,
    steps,
};

/// The maximum number of answers that wait for one chat; further answers are left out, so that a flood of commands doesn't fill the
/// chat long afterwards. The orders are carried out all the same.
const MAX_ANSWERS_WAITING: i64 = 20;
/// The text in place of the answers left out, planned only if no such text is waiting.
const TOO_MANY: &str = "That's more than I can answer at once, so I'm leaving out some answers. I still carry out \
                        every command, /stop too. If you miss an answer, ask again in a minute.";

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Stops all wakes until [`Order::Resume`]. A guest's order stops work for the guest's chat alone.
    Stop {
        /// Whether this is the owner's order.
        is_owners: bool,
    },
    /// Lets wakes work for the chat again. The owner's order also ends the stop of all wakes.
    Resume {
        /// Whether this is the owner's order.
        is_owners: bool,
    },
    /// Makes the next wake undo this wake.
    Undo {
        /// Its cycle's id.
        wake: String,
    },
    /// Retries these messages afresh.
    Retry {
        /// Rows of `incoming_messages`.
        messages: Vec<i64>,
    },
    /// Sets a reminder.
    Remind(NewReminder),
    /// Ends a reminder, and may set it for another time.
    EndReminder {
        /// Its number.
        id: i64,
        /// The new reminder.
        to: Option<NewReminder>,
    },
    /// Ends all back-offs. A guest's order ends those of the guest's chat alone.
    Wake {
        /// Whether this is the owner's order.
        is_owners: bool,
    },
    /// Removes one of our rules from `policy.toml`, by its text there. The answer follows once that is done.
    RemoveRule(String),
    /// The answer shows these tasks, numbered from 1.
    ShowTasks(Vec<ShownTask>),
    /// Starts the answer's chat or topic afresh: new cycles aren't shown its earlier conversation.
    BeginAfresh,
    /// Keeps the chat on this machine, or lets it use the cloud again.
    KeepLocal {
        /// Whether the chat stays on this machine.
        is_kept: bool,
    },
    /// Chooses a setting.
    Choose(ChosenSetting),
    /// Restarts the bot.
    Restart,
}

impl Order {
    /// The same order with each task title passed through `fit` for storage.
    #[must_use]
    pub fn with_titles(self, fit: impl Fn(&str) -> String) -> Self {
        match self {
            Self::ShowTasks(tasks) => {
                Self::ShowTasks(tasks.into_iter().map(|task| ShownTask { title: fit(&task.title), ..task }).collect())
            }
            other => other,
        }
    }

    /// Returns whether the order may give a wake something to do.
    pub(crate) fn is_work(&self) -> bool {
        !matches!(self, Self::ShowTasks(_) | Self::RemoveRule(_) | Self::BeginAfresh | Self::Restart)
    }
}

/// A command: its answer and its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ordered {
    /// The answer; its key identifies a command that arrives twice.
    pub answer: NewOutgoing,
    /// The order; `None` for a mere question.
    pub order: Option<Order>,
    /// The channel's key of its update. If a stored message has absorbed the update, the command was the rest of a long text, and isn't
    /// carried out.
    pub update_id: Option<i64>,
}

impl<S: WriteStore> Inbox<S> {
    /// Carries out the order of a person at this machine, without an answer.
    pub fn carry_out_order(&mut self, order: &Order, now: DateTime<Utc>) -> Result<()> {
        let here = NewOutgoing { chat: ChatRef::TERMINAL, ..NewOutgoing::default() };
        self.0.write(|tx| carry_out(tx, order, &here, now))
    }
}

/// The state of a command's answer.
pub(crate) enum AnswerState {
    /// Planned, as this row.
    Planned(i64),
    /// Stored but never sent: too many others wait, or another message answers later.
    LeftOut,
}

/// Plans the answer and carries out the order; `None` if the command is a repeat.
pub(crate) fn accept_order(tx: &Transaction<'_>, ordered: &Ordered, now: DateTime<Utc>) -> Result<Option<AnswerState>> {
    let answer = match &ordered.order {
        Some(Order::RemoveRule(_)) => planned::store_unsent(tx, &ordered.answer, now)?.map(|()| AnswerState::LeftOut),
        _ => plan_answer(tx, &ordered.answer, now)?,
    };
    if answer.is_some()
        && let Some(order) = &ordered.order
    {
        carry_out(tx, order, &ordered.answer, now)?;
    }
    Ok(answer)
}

/// Plans an answer, or the replacement text if too many wait. An answer left out is stored too: its key identifies the command if it
/// arrives again.
fn plan_answer(tx: &Transaction<'_>, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<Option<AnswerState>> {
    let (waiting, is_notice_waiting) = attempts::answers_waiting(tx, answer.chat, TOO_MANY)?;
    if is_notice_waiting {
        return Ok(planned::store_unsent(tx, answer, now)?.map(|()| AnswerState::LeftOut));
    }
    let too_many = || NewOutgoing { text: TOO_MANY.to_owned(), ..answer.clone() };
    let answer = if waiting < MAX_ANSWERS_WAITING {
        planned::insert(tx, answer, now)
    } else {
        planned::insert(tx, &too_many(), now)
    };
    Ok(answer?.map(AnswerState::Planned))
}

fn build_step(chat: ChatRef, did: String) -> NewStep {
    NewStep { chat, did, commit: None }
}

fn carry_out(tx: &Transaction<'_>, order: &Order, answer: &NewOutgoing, now: DateTime<Utc>) -> Result<()> {
    match order {
        Order::Stop { is_owners: true } => stop::stop_all_work(tx, answer.chat, now),
        Order::Stop { is_owners: false } => stop::stop_chat_work(tx, answer.chat, now),
        Order::Resume { is_owners } => stop::resume_work(tx, answer.chat, *is_owners),
        Order::Undo { wake } => undo::order_undo(tx, wake, answer, now),
        Order::Retry { messages } => messages.iter().try_for_each(|id| queue::requeue_message(tx, *id).map(drop)),
        Order::Remind(reminder) => {
            let step = build_step(answer.chat, format!("set the reminder “{}”", reminder.text));
            rows::insert_reminder(tx, reminder, Some(&steps::record_step(tx, &step, None, now)?), now)
        }
        Order::EndReminder { id, to } => {
            let did = if to.is_some() { "put off" } else { "ended" };
            let text = rows::find_reminder_text(tx, *id)?.unwrap_or_default();
            let step =
                steps::record_step(tx, &build_step(answer.chat, format!("{did} the reminder “{text}”")), None, now)?;
            rows::cancel_reminder(tx, *id, Some(&step))?;
            to.as_ref().map_or(Ok(()), |to| rows::insert_reminder(tx, to, Some(&step), now))
        }
        Order::Wake { is_owners: true } => end_back_offs(tx),
        Order::Wake { is_owners: false } => end_chat_back_offs(tx, answer.chat),
        Order::RemoveRule(rule) => rules::remove(tx, rule, answer),
        Order::ShowTasks(tasks) => shown::record_answer_tasks(tx, answer, tasks),
        Order::BeginAfresh => {
            let before = fresh::read_earlier_start(tx, answer)?;
            steps::record_step(
                tx,
                &build_step(answer.chat, "started this chat afresh".to_owned()),
                Some(&before),
                now,
            )?;
            fresh::begin_fresh_start(tx, answer, now)
        }
        Order::KeepLocal { is_kept } => {
            let did = if *is_kept { "kept this chat on this machine" } else { "let this chat use the cloud again" };
            let before = steps::read_local_setting(tx, answer.chat)?;
            steps::record_step(tx, &build_step(answer.chat, did.to_owned()), Some(&before), now)?;
            local::set_local_chat(tx, answer.chat, *is_kept, now)?;
            end_chat_back_offs(tx, answer.chat)
        }
        Order::Choose(setting) => {
            let did = format!("chose {} = {}", setting.name, setting.value);
            let before = steps::read_chosen_setting(tx, setting)?;
            steps::record_step(tx, &build_step(answer.chat, did), Some(&before), now)?;
            chosen::save_choice(tx, setting, now)?;
            // Another model needn't wait for the end of this model's back-off.
            end_back_offs(tx)
        }
        Order::Restart => restarts::order_restart(tx, answer, now),
    }
}

fn end_chat_back_offs(tx: &Transaction<'_>, chat: ChatRef) -> Result<()> {
    tx.execute("UPDATE cycles SET not_before = NULL WHERE state = 'waiting' AND chat_id = ?1", [chat])?;
    tx.execute("UPDATE incoming_messages SET not_before = NULL WHERE processed = 0 AND chat_id = ?1", [chat])?;
    Ok(())
}

/// Ends all back-offs of our own. Deliveries keep theirs: a channel's rate limit isn't ours to shorten.
fn end_back_offs(tx: &Transaction<'_>) -> Result<()> {
    tx.execute("UPDATE model_breakers SET not_before = NULL", [])?;
    for kind in [UpkeepKind::Fetch, UpkeepKind::Push] {
        tx.execute("UPDATE upkeep SET not_before = NULL WHERE name = ?1", [kind.as_str()])?;
    }
    tx.execute("UPDATE cycles SET not_before = NULL WHERE state = 'waiting'", [])?;
    tx.execute("UPDATE incoming_messages SET not_before = NULL WHERE processed = 0", [])?;
    Ok(())
}
