//! The situation observed by a wake, and its possible reasons to work.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

use reveille_base::{
    types::{ChatRef, NudgeAnswer, OwnWork},
    words::{day_and_time, format_count},
    zone::Tz,
};
use reveille_config::QuietHours;
use reveille_memory::{decay::Stage, reflect::REFLECTION, tasks::Task};
use reveille_store::{Cap, CycleRow, Incoming, OpenNudge, Proposal, Reminder, Undo};

use crate::{background::initiative::slot::DueInitiative, decide::lineup::ModelState};

/// The observations and settings behind all decisions.
pub struct Situation {
    /// The current time.
    pub now: DateTime<Utc>,
    /// The person's time zone.
    pub tz: Tz,
    /// The configured models.
    pub model: ModelState,
    /// The queue: chats in turn, each with its oldest message first.
    pub messages: Vec<Incoming>,
    /// Cycles without an end.
    pub open_cycles: Vec<CycleRow>,
    /// Active reminders.
    pub reminders: Vec<Reminder>,
    /// Active and waiting tasks.
    pub tasks: Vec<Task>,
    /// Keys of handled reasons.
    pub handled: BTreeSet<String>,
    /// The number of unasked messages to the owner left today.
    pub tells_left: usize,
    /// The owner's chat, which owns the tasks that name no chat.
    pub owner_chat: ChatRef,
    /// The allowed chats besides the owner's, each with its unasked messages left today. Tasks of other chats are ignored.
    pub guests: BTreeMap<ChatRef, usize>,
    /// The hours without unasked messages.
    pub quiet_hours: Option<QuietHours>,
    /// True if nudges wait because the person has low energy or wants none.
    pub holds_nudges: bool,
    /// Due background jobs, in order.
    pub own_work: Vec<DueWork>,
    /// The due slot for initiative, with its candidates.
    pub initiative: Option<DueInitiative>,
    /// The days to reflect on, without the last, if reflection is due.
    pub to_reflect: Option<Range<NaiveDate>>,
    /// People's commits since the last wake, newest first, as (id, subject).
    pub person_commits: Vec<(String, String)>,
    /// The commit at which they were collected.
    pub head: Option<String>,
    /// Wakes to be undone, in the order of the requests.
    pub undos: Vec<Undo>,
    /// Answers to nudges that need action.
    pub pressed: Vec<OpenNudge>,
    /// Changes of orders that a person agreed to a week ago.
    pub proposals: Vec<Proposal>,
    /// True if unasked work is this machine's duty.
    pub is_on_duty: bool,
    /// True if all work is stopped.
    pub is_stopped: bool,
    /// Chats that have stopped their work. Their cycles resume at the chat's request.
    pub stopped_chats: BTreeSet<ChatRef>,
}

impl Situation {
    /// Builds a situation without waiting work and without unasked messages, on a machine on duty.
    pub const fn new_quiet(now: DateTime<Utc>, tz: Tz, owner_chat: ChatRef, model: ModelState) -> Self {
        Self {
            now,
            tz,
            model,
            messages: Vec::new(),
            open_cycles: Vec::new(),
            reminders: Vec::new(),
            tasks: Vec::new(),
            handled: BTreeSet::new(),
            tells_left: 0,
            owner_chat,
            guests: BTreeMap::new(),
            quiet_hours: None,
            holds_nudges: false,
            own_work: Vec::new(),
            initiative: None,
            to_reflect: None,
            person_commits: Vec::new(),
            head: None,
            undos: Vec::new(),
            pressed: Vec::new(),
            proposals: Vec::new(),
            is_on_duty: true,
            is_stopped: false,
            stopped_chats: BTreeSet::new(),
        }
    }
}

/// A due background job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWork {
    /// The job.
    pub work: OwnWork,
    /// A short description for people.
    pub what: String,
}

impl DueWork {
    /// The key marking the job as handled.
    pub fn key(&self) -> String {
        Self::format_key(&self.work)
    }

    /// The key marking a job as handled.
    pub fn format_key(work: &OwnWork) -> String {
        format!("{OWN_WORK}{work}")
    }
}

/// The prefix of background jobs' keys.
pub const OWN_WORK: &str = "own/";

/// A reason to wake.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A person's request to undo a wake.
    Undo {
        /// The request.
        undo: Undo,
    },
    /// An interrupted cycle.
    Resume {
        /// The cycle.
        cycle_id: String,
        /// True after a crash, which counts against the cycle's tries; false if it only waited.
        has_crashed: bool,
    },
    /// Unanswered messages of one chat (and topic).
    Messages {
        /// The chat.
        chat: ChatRef,
        /// The forum topic.
        thread_id: Option<i64>,
        /// The rows, oldest first.
        ids: Vec<i64>,
    },
    /// Stale messages of one chat, closed by rule.
    Stale {
        /// The chat.
        chat: ChatRef,
        /// The forum topic.
        thread_id: Option<i64>,
        /// The rows, oldest first.
        ids: Vec<i64>,
    },
    /// Messages of one chat waiting because a budget is spent, before the chat was told.
    OverBudget {
        /// The spent budget.
        cap: Cap,
        /// The chat.
        chat: ChatRef,
        /// The forum topic.
        thread_id: Option<i64>,
        /// The key marking the notice as sent.
        key: String,
    },
    /// A reminder is due.
    Reminder {
        /// The number.
        id: i64,
    },
    /// The assistant's own next step of a task is due.
    Task {
        /// The task.
        title: String,
        /// The next step, as the task states it.
        next: Option<String>,
        /// The due time, if it was missed and the step runs late.
        missed_at: Option<NaiveDateTime>,
        /// The key marking it as handled.
        key: String,
    },
    /// The time of a task's next step was missed, and the task rules out a late run.
    MissedTask {
        /// The task.
        title: String,
        /// The due time, as written.
        at: String,
        /// True if the person is told.
        is_told: bool,
        /// The key marking it as handled.
        key: String,
    },
    /// A task's deadline has come, or has passed.
    Due {
        /// The task.
        title: String,
        /// The deadline.
        day: NaiveDate,
        /// The next step, as the task states it.
        next: Option<String>,
        /// The key marking it as handled.
        key: String,
    },
    /// A neglected task.
    Decay {
        /// The task.
        title: String,
        /// The stage of neglect.
        stage: Stage,
        /// The key marking it as handled.
        key: String,
    },
    /// A reason from a task of another chat than the owner's, reported there by rule with any model.
    OfGuest {
        /// The chat.
        chat: ChatRef,
        /// The reason.
        what: Box<Reason>,
    },
    /// Reflection is due.
    Reflection {
        /// The first day.
        from: NaiveDate,
        /// The day after the last one, which is today.
        until: NaiveDate,
        /// The key marking it as handled.
        key: String,
    },
    /// A background job is due, in a cycle of its own.
    Own {
        /// The job.
        due: DueWork,
    },
    /// A slot for initiative passes without a model, which is recorded.
    InitiativePassed {
        /// The cause, and the candidates.
        told: String,
        /// The key marking it as handled.
        key: String,
    },
    /// A change of orders that a person agreed to a week ago: report its effect.
    AgreedChange {
        /// The change.
        proposal: Box<Proposal>,
    },
    /// A person has pressed a button under a nudge.
    Pressed {
        /// The nudge with the answer.
        nudge: OpenNudge,
    },
    /// A person has committed to the memory.
    PersonCommits {
        /// The commits' subjects, newest first.
        subjects: Vec<String>,
    },
}

impl Reason {
    /// The messages concerned.
    pub fn messages(&self) -> &[i64] {
        if let Self::Messages { ids, .. } | Self::Stale { ids, .. } = self { ids } else { &[] }
    }

    /// The key marking the reason as handled once a cycle has started on it.
    pub fn handled_key(&self) -> Option<String> {
        match self {
            Self::Task { key, .. }
            | Self::MissedTask { key, .. }
            | Self::Due { key, .. }
            | Self::Decay { key, .. }
            | Self::Reflection { key, .. }
            | Self::InitiativePassed { key, .. }
            | Self::OverBudget { key, .. } => Some(key.clone()),
            Self::Own { due } => Some(due.key()),
            Self::OfGuest { what, .. } => what.handled_key(),
            _ => None,
        }
    }

    /// Describes the reason in a few words, for trailers, the plan file and people.
    pub fn describe(&self) -> String {
        match self {
            Self::Undo { undo } => format!("undo {}", undo.wake),
            Self::Resume { cycle_id, .. } => format!("resume {cycle_id}"),
            Self::Messages { chat, ids, .. } => {
                format!("{} {}", format_count(ids.len(), "message"), describe_place(*chat))
            }
            Self::Stale { chat, ids, .. } => {
                format!("{} {} from back then", format_count(ids.len(), "message"), describe_place(*chat))
            }
            Self::OverBudget { chat: ChatRef::TERMINAL, .. } => "the terminal waits for the budget".to_owned(),
            Self::OverBudget { chat, .. } => format!("chat {chat} waits for the budget"),
            Self::Reminder { id } => format!("reminder {id}"),
            Self::Task { title, missed_at: None, .. } => format!("task {title:?} has its next step now"),
            Self::Task { title, missed_at: Some(at), .. } => {
                format!("task {title:?} has its next step now, late: it was due {}", day_and_time(*at))
            }
            Self::MissedTask { title, .. } => format!("task {title:?} missed its time"),
            Self::Due { title, day, .. } => format!("task {title:?} must be done by {day}"),
            Self::Decay { title, stage, .. } => format!("task {title:?} is quiet: {}", stage.name()),
            Self::OfGuest { chat, what } => format!("{} (chat {chat})", what.describe()),
            Self::Reflection { from, until, .. } => {
                let last = until.pred_opt().unwrap_or(*until);
                let days = if *from == last { last.to_string() } else { format!("the days from {from} to {last}") };
                format!("{REFLECTION} {days}")
            }
            Self::Own { due } => due.what.clone(),
            Self::InitiativePassed { .. } => "the time for something useful unasked".to_owned(),
            Self::AgreedChange { .. } => "a change of its orders is a week old".to_owned(),
            Self::Pressed { nudge } => match nudge.answer {
                NudgeAnswer::NoMore => "a button that turns nudges off".to_owned(),
                NudgeAnswer::Done | NudgeAnswer::InTheMorning | NudgeAnswer::TakeBack => {
                    "a button that finishes a task".to_owned()
                }
            },
            Self::PersonCommits { subjects } => format_count(subjects.len(), "commit by a person"),
        }
    }
}

/// Describes the origin of messages.
fn describe_place(chat: ChatRef) -> String {
    if chat == ChatRef::TERMINAL { "from the terminal".to_owned() } else { format!("in chat {chat}") }
}
