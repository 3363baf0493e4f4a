//! Orient: is anything due, why, and what is taken up first? Pure functions of what was observed. No reason, no model call.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;

use super::brief::MAX_MESSAGES;
use crate::{
    config::QuietHours,
    memory::{
        decay::{self, Stage},
        tasks::Task,
    },
    queue::{CycleRow, CycleState, Incoming, Reminder},
    schedule,
};

/// How `at:` is written in a task.
pub const AT_FORMATS: [&str; 3] = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"];

/// The mind that is configured, as the gate needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mind {
    /// Its name.
    pub name: String,
    /// Whether it can think of things that nobody asked for: the offline mind only answers.
    pub is_thinking: bool,
    /// Whether it may be asked now: not in back-off, and the day's budget isn't spent.
    pub is_available: bool,
    /// Whether the day's budget is spent.
    pub is_over_budget: bool,
}

/// What the gate looks at.
pub struct Observed<'a> {
    /// Now.
    pub now: DateTime<Utc>,
    /// The person's zone.
    pub tz: Tz,
    /// The configured mind.
    pub mind: &'a Mind,
    /// The queue, oldest first.
    pub messages: &'a [Incoming],
    /// Cycles that didn't end.
    pub open_cycles: &'a [CycleRow],
    /// Active reminders.
    pub reminders: &'a [Reminder],
    /// Active and waiting tasks.
    pub tasks: &'a [Task],
    /// Keys that are reasons no more.
    pub handled: &'a BTreeSet<String>,
    /// When nothing is said unasked.
    pub quiet_hours: Option<QuietHours>,
    /// Commits of people since the last wake, newest first, as (id, what).
    pub person_commits: &'a [(String, String)],
}

/// A reason to wake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
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
        chat_id: i64,
        /// Forum topic.
        thread_id: Option<i64>,
        /// Rows, oldest first.
        ids: Vec<i64>,
    },
    /// Messages of one chat wait because the day's budget is spent, and nobody was told so yet.
    OverBudget {
        /// The chat.
        chat_id: i64,
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
    /// A person committed to the memory.
    PersonCommits {
        /// What they say, newest first.
        subjects: Vec<String>,
    },
}

impl Reason {
    /// The messages that it is about.
    pub fn messages(&self) -> &[i64] {
        if let Self::Messages { ids, .. } = self {
            ids
        } else {
            &[]
        }
    }

    /// The key under which it is a reason no more once it was taken up.
    pub fn handled_key(&self) -> Option<String> {
        match self {
            Self::Task { key, .. } | Self::Decay { key, .. } => Some(key.clone()),
            _ => None,
        }
    }

    /// In a few words, for trailers, the plan file and people.
    pub fn describe(&self) -> String {
        match self {
            Self::Resume { cycle_id, .. } => format!("resume {cycle_id}"),
            Self::Messages { chat_id: 0, ids, .. } => format!("{} from the console", count(ids.len(), "message")),
            Self::Messages { chat_id, ids, .. } => format!("{} in chat {chat_id}", count(ids.len(), "message")),
            Self::OverBudget { chat_id, .. } => format!("chat {chat_id} waits for the budget"),
            Self::Reminder { id } => format!("reminder {id}"),
            Self::Task { title, .. } => format!("task {title:?} has its next step now"),
            Self::Decay { title, stage, .. } => format!("task {title:?} is quiet: {}", stage.name()),
            Self::PersonCommits { subjects } => count(subjects.len(), "commit by a person"),
        }
    }
}

/// `1 message`, `2 messages`.
pub fn count(n: usize, what: &str) -> String {
    match (n, what.split_once(' ')) {
        (1, _) => format!("1 {what}"),
        (n, Some((noun, rest))) => format!("{n} {noun}s {rest}"),
        (n, None) => format!("{n} {what}s"),
    }
}

/// All that is due, the most urgent first.
pub fn due(observed: &Observed<'_>) -> Vec<Reason> {
    let mut reasons = resumptions(observed);
    reasons.extend(due_reminders(observed));
    if observed.mind.is_available {
        reasons.extend(messages(observed));
    } else if observed.mind.is_over_budget {
        reasons.extend(waiting_for_budget(observed));
    }
    if observed.mind.is_available || !observed.mind.is_thinking {
        reasons.extend(due_tasks(observed));
        reasons.extend(decaying(observed));
        if !observed.person_commits.is_empty() {
            let subjects = observed
                .person_commits
                .iter()
                .map(|(_, subject)| subject.clone())
                .collect();
            reasons.push(Reason::PersonCommits { subjects });
        }
    }
    reasons
}

/// What a cycle takes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// An interrupted cycle.
    Resume {
        /// The cycle.
        cycle_id: String,
        /// Whether it crashed.
        has_crashed: bool,
    },
    /// What needs no mind: these reasons are acted on by rule.
    Mechanical(Vec<Reason>),
    /// What the mind is asked for: one chat's messages at most, and other reasons if they are the owner's affair.
    Think {
        /// Messages first.
        reasons: Vec<Reason>,
    },
}

/// Chooses the next cycle's work among what is due: interrupted work first, then what needs no mind, then one chat.
pub fn choose(reasons: Vec<Reason>, mind: &Mind, owner_chat_id: i64) -> Option<Work> {
    if let Some(Reason::Resume { cycle_id, has_crashed }) = reasons.first() {
        return Some(Work::Resume {
            cycle_id: cycle_id.clone(),
            has_crashed: *has_crashed,
        });
    }
    let is_mechanical = |reason: &Reason| match reason {
        Reason::Reminder { .. } | Reason::OverBudget { .. } => true,
        Reason::Messages { .. } | Reason::Resume { .. } => false,
        Reason::Task { .. } | Reason::Decay { .. } | Reason::PersonCommits { .. } => !mind.is_thinking,
    };
    let (mechanical, rest): (Vec<_>, Vec<_>) = reasons.into_iter().partition(is_mechanical);
    if !mechanical.is_empty() {
        return Some(Work::Mechanical(mechanical));
    }
    let (messages, others): (Vec<_>, Vec<_>) = rest
        .into_iter()
        .partition(|reason| matches!(reason, Reason::Messages { .. }));
    let mut chosen: Vec<Reason> = messages.into_iter().take(1).collect();
    let is_owners = match chosen.first() {
        Some(Reason::Messages { chat_id, .. }) => *chat_id == owner_chat_id,
        _ => true,
    };
    if is_owners {
        chosen.extend(others);
    }
    (!chosen.is_empty()).then_some(Work::Think { reasons: chosen })
}

/// Whether the configured mind can be given this message now.
pub fn is_answerable(message: &Incoming, mind: &Mind, now: DateTime<Utc>) -> bool {
    message.held_for.as_deref() != Some(&mind.name) && message.not_before.is_none_or(|at| at <= now)
}

/// The key under which a task's own next step is handled.
pub fn task_key(title: &str, at: &str) -> String {
    format!("at/{title}/{at}")
}

/// The key under which a decay line is handled.
pub fn decay_key(title: &str, touched: Option<chrono::NaiveDate>, stage: Stage) -> String {
    let touched = touched.map(|day| day.to_string()).unwrap_or_default();
    format!("decay/{title}/{touched}/{}", stage.name())
}

/// The key under which a chat was told that its messages, from the oldest on, wait for the budget.
pub fn budget_key(chat_id: i64, oldest: i64) -> String {
    format!("budget/{chat_id}/{oldest}")
}

/// Reads a task's `at:` as an instant.
pub fn task_time(at: &str, tz: Tz) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(at.trim()) {
        return Some(at.with_timezone(&Utc));
    }
    let civil = AT_FORMATS.iter().find_map(|format| {
        NaiveDateTime::parse_from_str(at.trim(), format)
            .or_else(|_| {
                chrono::NaiveDate::parse_from_str(at.trim(), format)
                    .map(|day| day.and_time(schedule::when::DEFAULT_TIME))
            })
            .ok()
    })?;
    Some(schedule::resolve(civil, tz).at)
}

fn resumptions(observed: &Observed<'_>) -> Vec<Reason> {
    observed
        .open_cycles
        .iter()
        .filter(|cycle| cycle.not_before.is_none_or(|at| at <= observed.now))
        .filter(|cycle| cycle.state == CycleState::Running || observed.mind.is_available)
        .map(|cycle| Reason::Resume {
            cycle_id: cycle.cycle.id.clone(),
            has_crashed: cycle.state == CycleState::Running,
        })
        .collect()
}

fn messages(observed: &Observed<'_>) -> Vec<Reason> {
    // What an interrupted cycle has in its conversation is answered by that cycle.
    let is_taken = |message: &Incoming| {
        message
            .cycle_id
            .as_ref()
            .is_some_and(|id| observed.open_cycles.iter().any(|open| open.cycle.id == *id))
    };
    let mut chats: Vec<(i64, Option<i64>, Vec<i64>)> = Vec::new();
    for message in observed.messages {
        if !is_answerable(message, observed.mind, observed.now) || is_taken(message) {
            continue;
        }
        match chats
            .iter_mut()
            .find(|(chat, thread, _)| (*chat, *thread) == (message.chat_id, message.thread_id))
        {
            Some((_, _, ids)) if ids.len() >= MAX_MESSAGES => {}
            Some((_, _, ids)) => ids.push(message.id),
            None => chats.push((message.chat_id, message.thread_id, vec![message.id])),
        }
    }
    chats
        .into_iter()
        .map(|(chat_id, thread_id, ids)| Reason::Messages {
            chat_id,
            thread_id,
            ids,
        })
        .collect()
}

/// A chat is told once for as long as its oldest message waits, however many follow.
fn waiting_for_budget(observed: &Observed<'_>) -> Vec<Reason> {
    let mut chats = BTreeSet::new();
    let waiting = observed
        .messages
        .iter()
        .filter(|message| message.held_for.as_deref() != Some(&observed.mind.name) && chats.insert(message.chat_id));
    waiting
        .map(|oldest| (oldest, budget_key(oldest.chat_id, oldest.id)))
        .filter(|(_, key)| !observed.handled.contains(key))
        .map(|(oldest, key)| Reason::OverBudget {
            chat_id: oldest.chat_id,
            thread_id: oldest.thread_id,
            key,
        })
        .collect()
}

fn due_reminders(observed: &Observed<'_>) -> Vec<Reason> {
    let due = observed
        .reminders
        .iter()
        .filter(|reminder| reminder.what.next_at <= observed.now);
    due.map(|reminder| Reason::Reminder { id: reminder.id }).collect()
}

fn due_tasks(observed: &Observed<'_>) -> Vec<Reason> {
    let with_time = observed.tasks.iter().filter_map(|task| Some((task, task.at()?)));
    with_time
        .filter(|(_, at)| task_time(at, observed.tz).is_some_and(|at| at <= observed.now))
        .map(|(task, at)| Reason::Task {
            title: task.title.clone(),
            next: task.get("next").map(str::to_owned),
            key: task_key(&task.title, at),
        })
        .filter(|reason| matches!(reason, Reason::Task { key, .. } if !observed.handled.contains(key)))
        .collect()
}

/// Decay is spoken of in waking hours only, so it becomes due then.
fn decaying(observed: &Observed<'_>) -> Vec<Reason> {
    let local = observed.now.with_timezone(&observed.tz);
    if observed.quiet_hours.is_some_and(|hours| hours.contains(local.time())) {
        return Vec::new();
    }
    observed
        .tasks
        .iter()
        .filter_map(|task| {
            let stage = decay::stage_of(task, local.date_naive())?;
            let key = decay_key(&task.title, task.touched, stage);
            (!observed.handled.contains(&key)).then(|| Reason::Decay {
                title: task.title.clone(),
                stage,
                key,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use chrono::{NaiveTime, TimeDelta};

    use super::*;
    use crate::{
        clock::parse_time,
        memory::tasks::TaskList,
        queue::{NewCycle, NewReminder},
    };

    const ACTIVE: &str = "\
## Tax return\n- status: active\n- touched: 2026-11-11\n- next: find the letter\n\n\
## Garden\n- status: active\n- touched: 2026-11-20\n- at: 2026-11-21 15:00\n- next: look at the weather\n\n\
## Odd\n- touched: yesterday\n- at: when it rains\n";

    /// All that can be observed, owned; 15:00 on a Saturday in Berlin.
    struct Scene {
        now: DateTime<Utc>,
        tz: Tz,
        mind: Mind,
        messages: Vec<Incoming>,
        open_cycles: Vec<CycleRow>,
        reminders: Vec<Reminder>,
        tasks: Vec<Task>,
        handled: BTreeSet<String>,
        quiet_hours: Option<QuietHours>,
        person_commits: Vec<(String, String)>,
    }

    fn scene() -> Scene {
        Scene {
            now: parse_time("2026-11-21T14:00:00Z").unwrap(),
            tz: Tz::Europe__Berlin,
            mind: Mind {
                name: "claude".to_owned(),
                is_thinking: true,
                is_available: true,
                is_over_budget: false,
            },
            messages: Vec::new(),
            open_cycles: Vec::new(),
            reminders: Vec::new(),
            tasks: Vec::new(),
            handled: BTreeSet::new(),
            quiet_hours: None,
            person_commits: Vec::new(),
        }
    }

    impl Scene {
        fn due(&self) -> Vec<String> {
            self.reasons().iter().map(Reason::describe).collect()
        }

        fn reasons(&self) -> Vec<Reason> {
            due(&Observed {
                now: self.now,
                tz: self.tz,
                mind: &self.mind,
                messages: &self.messages,
                open_cycles: &self.open_cycles,
                reminders: &self.reminders,
                tasks: &self.tasks,
                handled: &self.handled,
                quiet_hours: self.quiet_hours,
                person_commits: &self.person_commits,
            })
        }

        fn later(&mut self, minutes: i64) -> &mut Self {
            self.now += TimeDelta::minutes(minutes);
            self
        }
    }

    fn message(id: i64, chat_id: i64) -> Incoming {
        Incoming {
            id,
            chat_id,
            text: "hello".to_owned(),
            received_at: None,
            kind: "text".to_owned(),
            sender_name: None,
            thread_id: None,
            channel_message_id: None,
            quoted: None,
            forwarded_from: None,
            attempts: 0,
            held_for: None,
            not_before: None,
            cycle_id: None,
        }
    }

    fn open_cycle(id: &str, state: CycleState, not_before: Option<DateTime<Utc>>) -> CycleRow {
        CycleRow {
            cycle: NewCycle {
                id: id.to_owned(),
                trigger: "cron".to_owned(),
                reasons: Vec::new(),
                chat_id: None,
                thread_id: None,
                model: "claude".to_owned(),
                system: String::new(),
                tools: String::new(),
            },
            state,
            started_at: None,
            tries: 0,
            not_before,
            ended_at: None,
            commit_id: None,
            error: None,
        }
    }

    fn reminder(id: i64, next_at: DateTime<Utc>) -> Reminder {
        Reminder {
            id,
            what: NewReminder {
                chat_id: 7,
                thread_id: None,
                text: "tea".to_owned(),
                rule: None,
                zone: "Europe/Berlin".to_owned(),
                slot: next_at.naive_utc(),
                next_at,
            },
        }
    }

    fn tasks(text: &str) -> Vec<Task> {
        TaskList::parse(text).0.tasks().to_vec()
    }

    #[test]
    fn with_nothing_there_nothing_is_due() {
        assert_eq!(scene().reasons(), []);
    }

    #[test]
    fn messages_are_due_by_chat_and_topic_in_their_order() {
        let mut scene = scene();
        scene.messages = vec![message(1, 7), message(2, 0), message(3, 7)];
        scene.messages.push(Incoming {
            thread_id: Some(5),
            ..message(4, 7)
        });
        assert_eq!(
            scene.due(),
            [
                "2 messages in chat 7",
                "1 message from the console",
                "1 message in chat 7"
            ]
        );
        let ids = scene.reasons().into_iter().map(|reason| match reason {
            Reason::Messages { thread_id, ids, .. } => (thread_id, ids),
            other => panic!("{other:?}"),
        });
        assert_eq!(
            ids.collect::<Vec<_>>(),
            [(None, vec![1, 3]), (None, vec![2]), (Some(5), vec![4])]
        );
        scene.mind.is_available = false;
        assert_eq!(scene.reasons(), []);
    }

    #[test]
    fn a_flood_is_taken_up_in_bounded_portions() {
        let mut scene = scene();
        scene.messages = (0..200).map(|id| message(id, 7)).collect();
        assert_eq!(scene.due(), [format!("{MAX_MESSAGES} messages in chat 7")]);
    }

    #[test]
    fn a_message_that_this_mind_cannot_answer_waits_for_another() {
        let mut scene = scene();
        scene.messages = vec![Incoming {
            held_for: Some("claude".to_owned()),
            ..message(1, 7)
        }];
        assert_eq!(scene.reasons(), []);
        scene.mind.name = "claude-next".to_owned();
        assert_eq!(scene.reasons().len(), 1);
    }

    #[test]
    fn a_message_in_back_off_is_due_when_that_ends() {
        let mut scene = scene();
        scene.messages = vec![Incoming {
            not_before: Some(scene.now + TimeDelta::minutes(1)),
            ..message(1, 7)
        }];
        assert_eq!(scene.reasons(), []);
        assert_eq!(scene.later(1).reasons().len(), 1);
    }

    #[test]
    fn what_an_open_cycle_has_in_its_conversation_is_left_to_it() {
        let mut scene = scene();
        scene.messages = vec![Incoming {
            cycle_id: Some("c1".to_owned()),
            ..message(1, 7)
        }];
        assert_eq!(scene.reasons().len(), 1, "that cycle has ended");
        let wait = scene.now + TimeDelta::minutes(5);
        scene.open_cycles = vec![open_cycle("c1", CycleState::Waiting, Some(wait))];
        assert_eq!(scene.reasons(), []);
    }

    #[test]
    fn a_crashed_cycle_is_resumed_at_once_and_a_waiting_one_when_the_mind_is_back() {
        let mut scene = scene();
        let wait = scene.now + TimeDelta::minutes(5);
        scene.mind.is_available = false;
        scene.open_cycles = vec![
            open_cycle("crashed", CycleState::Running, None),
            open_cycle("waits", CycleState::Waiting, Some(wait)),
        ];
        assert_eq!(scene.due(), ["resume crashed"]);
        assert_eq!(scene.later(5).due(), ["resume crashed"]);
        scene.mind.is_available = true;
        assert_eq!(scene.due(), ["resume crashed", "resume waits"]);
        let crashed: Vec<bool> = scene
            .reasons()
            .into_iter()
            .map(|reason| match reason {
                Reason::Resume { has_crashed, .. } => has_crashed,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(crashed, [true, false]);
    }

    #[test]
    fn a_reminder_is_due_at_its_instant_whatever_the_mind_does() {
        let mut scene = scene();
        scene.mind.is_available = false;
        scene.quiet_hours = Some(QuietHours {
            from: NaiveTime::MIN,
            until: NaiveTime::from_hms_opt(23, 59, 0).unwrap(),
        });
        scene.reminders = vec![reminder(4, scene.now + TimeDelta::minutes(1))];
        assert_eq!(scene.reasons(), []);
        assert_eq!(scene.later(1).due(), ["reminder 4"]);
    }

    #[test]
    fn a_tasks_own_time_and_its_decay_are_due_once_each() {
        let mut scene = scene();
        scene.tasks = tasks(ACTIVE);
        assert_eq!(
            scene.due(),
            [
                "task \"Garden\" has its next step now",
                "task \"Tax return\" is quiet: challenge"
            ]
        );
        let key = |reason: &Reason| match reason {
            Reason::Task { key, .. } | Reason::Decay { key, .. } => key.clone(),
            other => panic!("{other:?}"),
        };
        let keys: Vec<String> = scene.reasons().iter().map(key).collect();
        assert_eq!(
            keys,
            ["at/Garden/2026-11-21 15:00", "decay/Tax return/2026-11-11/challenge"]
        );
        scene.handled.extend(keys);
        assert_eq!(scene.reasons(), []);
        scene.later(4 * 24 * 60);
        assert_eq!(
            scene.due(),
            ["task \"Tax return\" is quiet: decide"],
            "the next line is another reason"
        );
        scene.tasks = tasks(
            &ACTIVE
                .replace("2026-11-21 15:00", "2026-11-22 08:00")
                .replace("2026-11-11", "2026-11-24"),
        );
        assert_eq!(
            scene.due(),
            ["task \"Garden\" has its next step now"],
            "a new time is another reason"
        );
        scene.mind.is_available = false;
        assert_eq!(scene.reasons(), []);
    }

    #[test]
    fn a_tasks_time_is_its_local_time() {
        let check = |at: &str, utc: Option<&str>| {
            assert_eq!(
                task_time(at, Tz::Europe__Berlin),
                utc.map(|utc| parse_time(utc).unwrap()),
                "{at}"
            );
        };
        check("2026-11-23 09:00", Some("2026-11-23T08:00:00Z"));
        check(" 2026-07-01T09:00 ", Some("2026-07-01T07:00:00Z"));
        check("2026-11-23", Some("2026-11-23T08:00:00Z"));
        check("2026-11-23T09:00:00Z", Some("2026-11-23T09:00:00Z"));
        check("2026-03-29 02:30", Some("2026-03-29T01:30:00Z")); // skipped: 03:30 there
        check("2026-10-25 02:30", Some("2026-10-25T00:30:00Z")); // doubled: the first
        for unclear in ["", "soon", "2026-02-30", "09:00", "2026-13-01 09:00"] {
            check(unclear, None);
        }
    }

    #[test]
    fn decay_waits_for_the_end_of_quiet_hours_over_midnight_too() {
        let mut scene = scene();
        scene.tasks = tasks("## Tax return\n- touched: 2026-11-11\n");
        let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap();
        scene.quiet_hours = Some(QuietHours {
            from: time(22),
            until: time(8),
        });
        // Berlin is an hour ahead of UTC: 15:00, 21:59, 22:00, 00:30, 07:59, 08:00.
        for (utc, is_due) in [
            ("2026-11-21T14:00:00Z", true),
            ("2026-11-21T20:59:00Z", true),
            ("2026-11-21T21:00:00Z", false),
            ("2026-11-21T23:30:00Z", false),
            ("2026-11-22T06:59:00Z", false),
            ("2026-11-22T07:00:00Z", true),
        ] {
            scene.now = parse_time(utc).unwrap();
            assert_eq!(!scene.reasons().is_empty(), is_due, "{utc}");
        }
    }

    #[test]
    fn days_are_counted_on_the_persons_calendar() {
        let mut scene = scene();
        scene.tasks = tasks("## Tax return\n- touched: 2026-11-15\n");
        scene.now = parse_time("2026-11-21T22:59:00Z").unwrap();
        assert_eq!(scene.reasons(), [], "23:59 in Berlin: six days");
        assert_eq!(scene.later(1).due(), ["task \"Tax return\" is quiet: nudge"]);
    }

    #[test]
    fn a_persons_commits_are_a_reason_for_a_mind_that_can_be_asked() {
        let mut scene = scene();
        let commit = |subject: &str| ("0123".to_owned(), subject.to_owned());
        scene.person_commits = vec![commit("tidy up (Ann)"), commit("more (Ann)")];
        assert_eq!(scene.due(), ["2 commits by a person"]);
        scene.mind.is_available = false;
        assert_eq!(scene.reasons(), []);
        scene.mind.is_thinking = false;
        assert_eq!(
            scene.due(),
            ["2 commits by a person"],
            "by rule they can be noted at any time"
        );
    }

    fn messages_of(chat_id: i64) -> Reason {
        Reason::Messages {
            chat_id,
            thread_id: None,
            ids: vec![1],
        }
    }

    fn decay() -> Reason {
        Reason::Decay {
            title: "t".to_owned(),
            stage: Stage::Nudge,
            key: "k".to_owned(),
        }
    }

    fn resume(id: &str) -> Reason {
        Reason::Resume {
            cycle_id: id.to_owned(),
            has_crashed: true,
        }
    }

    #[test]
    fn interrupted_work_comes_first_then_rules_then_one_chat() {
        const OWNER: i64 = 7;
        let thinking = scene().mind;
        let offline = Mind {
            name: "offline".to_owned(),
            is_thinking: false,
            is_available: true,
            is_over_budget: false,
        };
        let remind = || Reason::Reminder { id: 1 };
        assert_eq!(choose(Vec::new(), &thinking, OWNER), None);
        let work = choose(
            vec![resume("a"), resume("b"), remind(), messages_of(OWNER)],
            &thinking,
            OWNER,
        );
        assert!(matches!(work, Some(Work::Resume { cycle_id, has_crashed: true }) if cycle_id == "a"));
        assert_eq!(
            choose(vec![remind(), messages_of(OWNER), decay()], &thinking, OWNER),
            Some(Work::Mechanical(vec![remind()]))
        );
        assert_eq!(
            choose(vec![remind(), messages_of(OWNER), decay()], &offline, OWNER),
            Some(Work::Mechanical(vec![remind(), decay()])),
            "what nobody asked for is done by rule without a thinking mind"
        );
        assert_eq!(
            choose(vec![messages_of(OWNER), messages_of(8), decay()], &thinking, OWNER),
            Some(Work::Think {
                reasons: vec![messages_of(OWNER), decay()]
            })
        );
        assert_eq!(
            choose(vec![messages_of(8), messages_of(OWNER), decay()], &thinking, OWNER),
            Some(Work::Think {
                reasons: vec![messages_of(8)]
            }),
            "another chat never sees the owner's affairs"
        );
        assert_eq!(
            choose(vec![decay()], &thinking, OWNER),
            Some(Work::Think { reasons: vec![decay()] })
        );
    }

    #[test]
    fn counts_read_well() {
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(0, "message"), "0 messages");
        assert_eq!(count(2, "commit by a person"), "2 commits by a person");
    }
}
