//! What a wake looks at, and the reasons to work that it may find.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};

use reveille_base::{
    types::{ChatRef, NudgeAnswer, OwnWork},
    words::{count, day_and_time},
    zone::Tz,
};
use reveille_config::QuietHours;
use reveille_memory::{decay::Stage, reflect::REFLECTION, tasks::Task};
use reveille_store::{Cap, CycleRow, Incoming, OpenNudge, Proposal, Reminder, Undo};

use super::{initiative::DueInitiative, lineup::ModelState};

/// What was observed, and what settings say of it: all that is decided by.
pub struct Situation {
    /// Now.
    pub now: DateTime<Utc>,
    /// The person's zone.
    pub tz: Tz,
    /// The configured models.
    pub model: ModelState,
    /// The queue: the chats in their turn, of each the oldest first.
    pub messages: Vec<Incoming>,
    /// Cycles that didn't end.
    pub open_cycles: Vec<CycleRow>,
    /// Active reminders.
    pub reminders: Vec<Reminder>,
    /// Active and waiting tasks.
    pub tasks: Vec<Task>,
    /// Keys that are reasons no more.
    pub handled: BTreeSet<String>,
    /// How often the owner may still be spoken to unasked today.
    pub tells_left: usize,
    /// Whose tasks say nothing of a chat.
    pub owner_chat: ChatRef,
    /// The chats besides the owner's that may be spoken to, and how often each still may unasked today. Tasks of others are
    /// nobody's.
    pub guests: BTreeMap<ChatRef, usize>,
    /// When nothing is said unasked.
    pub quiet_hours: Option<QuietHours>,
    /// Whether nudges wait: the person has low energy, or wants none.
    pub holds_nudges: bool,
    /// Work of its own that is due, in its order.
    pub own_work: Vec<DueWork>,
    /// The time for something useful unasked that has come, with what was weighed.
    pub initiative: Option<DueInitiative>,
    /// The days to look back at, the last one excluded, if it is time to.
    pub to_reflect: Option<Range<NaiveDate>>,
    /// Commits of people since the last wake, newest first, as (id, what).
    pub person_commits: Vec<(String, String)>,
    /// The commit at which it was looked for them.
    pub head: Option<String>,
    /// Wakes that are to be undone, in the order in which that was asked for.
    pub undos: Vec<Undo>,
    /// What was answered to nudges, and is to be done.
    pub pressed: Vec<OpenNudge>,
    /// Changes of its own orders that were agreed to a week ago.
    pub proposals: Vec<Proposal>,
    /// Whether what comes by itself is this machine's to do.
    pub is_on_duty: bool,
    /// Whether all work is stopped.
    pub is_stopped: bool,
    /// Chats that have stopped what is done for them: their cycles are gone on with when they say so.
    pub stopped_chats: BTreeSet<ChatRef>,
}

impl Situation {
    /// A moment in which nothing waits and nothing may be said unasked, on a machine whose turn it is.
    pub const fn quiet(now: DateTime<Utc>, tz: Tz, owner_chat: ChatRef, model: ModelState) -> Self {
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

/// Work of its own that is due: nobody waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueWork {
    /// Which.
    pub work: OwnWork,
    /// What it is, in a few words for people.
    pub what: String,
}

impl DueWork {
    /// The key under which it is handled.
    pub fn key(&self) -> String {
        Self::key_of(&self.work)
    }

    /// The key under which some work is handled.
    pub fn key_of(work: &OwnWork) -> String {
        format!("{OWN_WORK}{work}")
    }
}

/// How the keys of own work begin.
pub const OWN_WORK: &str = "own/";

/// A reason to wake.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// A person asked for a wake to be undone.
    Undo {
        /// Which.
        undo: Undo,
    },
    /// A cycle was interrupted.
    Resume {
        /// The cycle.
        cycle_id: String,
        /// Whether it crashed, which counts against its tries, or only waited.
        has_crashed: bool,
    },
    /// Messages of one chat (and topic) wait for an answer.
    Messages {
        /// The chat.
        chat: ChatRef,
        /// Forum topic.
        thread_id: Option<i64>,
        /// Rows, oldest first.
        ids: Vec<i64>,
    },
    /// Messages of one chat are about a time that is over: they are closed by rule.
    Stale {
        /// The chat.
        chat: ChatRef,
        /// Forum topic.
        thread_id: Option<i64>,
        /// Rows, oldest first.
        ids: Vec<i64>,
    },
    /// Messages of one chat wait because a budget is spent, and nobody was told so yet.
    OverBudget {
        /// Which.
        cap: Cap,
        /// The chat.
        chat: ChatRef,
        /// Forum topic.
        thread_id: Option<i64>,
        /// Told once under this key.
        key: String,
    },
    /// A reminder's slot has come.
    Reminder {
        /// Its number.
        id: i64,
    },
    /// The assistant's own next step of a task has come.
    Task {
        /// The task.
        title: String,
        /// What it says is next.
        next: Option<String>,
        /// When that was due, if it was missed: it is done late.
        missed_at: Option<NaiveDateTime>,
        /// Handled once under this key.
        key: String,
    },
    /// The time of a task's next step was missed, and by the task's own word it isn't done late.
    MissedTask {
        /// The task.
        title: String,
        /// When it was due, as written.
        at: String,
        /// Whether the person is told.
        is_told: bool,
        /// Handled once under this key.
        key: String,
    },
    /// The day until which a task is to be done has come, or is over.
    Due {
        /// The task.
        title: String,
        /// The day.
        day: NaiveDate,
        /// What it says is next.
        next: Option<String>,
        /// Handled once under this key.
        key: String,
    },
    /// A task was left untouched for long.
    Decay {
        /// The task.
        title: String,
        /// How long.
        stage: Stage,
        /// Handled once under this key.
        key: String,
    },
    /// Something of a task that belongs to a chat that isn't the owner's: told there by rule, whatever the model.
    OfGuest {
        /// The chat.
        chat: ChatRef,
        /// What it is about.
        what: Box<Reason>,
    },
    /// It is time to look back at some days.
    Reflection {
        /// The first day.
        from: NaiveDate,
        /// The day after the last one, which is today.
        until: NaiveDate,
        /// Handled once under this key.
        key: String,
    },
    /// Work of its own is due, which has a cycle of its own.
    Own {
        /// Which.
        due: DueWork,
    },
    /// The time for something useful unasked has come, and passes without a model: that is written down.
    InitiativePassed {
        /// Why, and what was weighed.
        told: String,
        /// Handled once under this key.
        key: String,
    },
    /// A change of its own orders was agreed to a week ago: its person is told what it did.
    AgreedChange {
        /// Which.
        proposal: Box<Proposal>,
    },
    /// A person has pressed a button under a nudge.
    Pressed {
        /// What they have answered.
        nudge: OpenNudge,
    },
    /// A person committed to the memory.
    PersonCommits {
        /// What they say, newest first.
        subjects: Vec<String>,
    },
}

impl Reason {
    /// The messages that it is about.
    pub fn messages(&self) -> &[i64] {
        if let Self::Messages { ids, .. } | Self::Stale { ids, .. } = self { ids } else { &[] }
    }

    /// The key under which it is a reason no more once it was taken up.
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

    /// In a few words, for trailers, the plan file and people.
    pub fn describe(&self) -> String {
        match self {
            Self::Undo { undo } => format!("undo {}", undo.wake),
            Self::Resume { cycle_id, .. } => format!("resume {cycle_id}"),
            Self::Messages { chat, ids, .. } => format!("{} {}", count(ids.len(), "message"), place_of(*chat)),
            Self::Stale { chat, ids, .. } => {
                format!("{} {} from back then", count(ids.len(), "message"), place_of(*chat))
            }
            Self::OverBudget { chat: ChatRef::TERMINAL, .. } => "the terminal waits for the budget".to_owned(),
            Self::OverBudget { chat, .. } => format!("chat {chat} waits for the budget"),
            Self::Reminder { id } => format!("reminder {id}"),
            Self::Task { title, missed_at: None, .. } => format!("task {title:?} has its next step now"),
            Self::Task { title, missed_at: Some(at), .. } => {
                format!("task {title:?} has its next step now, late: it was due {}", day_and_time(*at))
            }
            Self::MissedTask { title, .. } => format!("task {title:?} missed its time"),
            Self::Due { title, day, .. } => format!("task {title:?} is to be done until {day}"),
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
                NudgeAnswer::NoMore => "a button against more nudges".to_owned(),
                NudgeAnswer::Done | NudgeAnswer::InTheMorning | NudgeAnswer::TakeBack => {
                    "a button that a task is done".to_owned()
                }
            },
            Self::PersonCommits { subjects } => count(subjects.len(), "commit by a person"),
        }
    }
}

/// Where messages were said.
fn place_of(chat: ChatRef) -> String {
    if chat == ChatRef::TERMINAL { "from the terminal".to_owned() } else { format!("in chat {chat}") }
}
