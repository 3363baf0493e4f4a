//! The day's overview: active tasks with their age, remaining reminders, and everything that waits.

use chrono::{DateTime, NaiveDate, Utc};

use reveille_base::{
    approval_text,
    types::ChatRef,
    words::{format_count, format_near_time, one_line, truncate_text},
    zone::Tz,
};
use reveille_config::Config;
use reveille_store::{Approval, Incoming, Store, StoreError};
use reveille_tools::{Documents, find_slot};

use super::{
    lists::{self, ListedTask},
    tasks,
};
use crate::overview::Overview;

/// Maximum displayed characters of a message.
const MAX_CHARS: usize = 80;

/// A person's day. Scripts rely on the JSON names.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Today {
    /// The date.
    pub day: NaiveDate,
    /// Active tasks and due tasks.
    pub tasks: Vec<ListedTask>,
    /// Number of other tasks in the backlog.
    pub waiting_tasks: usize,
    /// Reminders that are late or still to come today.
    pub reminders: Vec<TodayReminder>,
    /// Messages that wait for an answer.
    pub messages: Vec<WaitingMessage>,
    /// Questions that wait for a person.
    pub questions: Vec<WaitingQuestion>,
    /// The time when all work was stopped, if it is. The inner `None` means an unknown time.
    pub stopped: Option<Option<DateTime<Utc>>>,
}

/// A reminder of today.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TodayReminder {
    /// The number.
    pub id: i64,
    /// The local time.
    pub time: String,
    /// The text.
    pub text: String,
    /// `true` if its time has passed without delivery.
    pub is_late: bool,
}

/// A waiting message.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WaitingMessage {
    /// The number.
    pub id: i64,
    /// The chat.
    #[serde(rename = "chat_id")]
    pub chat: ChatRef,
    /// Time of arrival.
    pub at: Option<DateTime<Utc>>,
    /// The text.
    pub text: String,
    /// The source of the text, if it isn't the sender's own.
    pub taint: Option<String>,
}

/// A waiting question.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct WaitingQuestion {
    /// The number.
    pub id: i64,
    /// The tool that wants to run.
    pub tool: String,
    /// The action in one sentence.
    pub what: String,
    /// Time until which it can be answered.
    pub expires_at: Option<DateTime<Utc>>,
}

/// Builds the day from an overview, the tasks and the reminders. `shown` transforms texts before display.
///
/// # Errors
/// If the store fails.
pub fn build_day(
    overview: &Overview,
    store: &Store,
    config: &Config,
    now: DateTime<Utc>,
    shown: impl Fn(&str) -> String,
) -> Result<Today, StoreError> {
    let tz = config.timezone;
    let day = now.with_timezone(&tz).date_naive();
    let documents = Documents::new(&config.repo_dir(), Vec::new());
    let [active, backlog] = tasks::read_lists(&documents);
    let all = lists::list_tasks(&active, &backlog, day);
    // Waiting tasks that are due count as today's.
    let (tasks, waiting): (Vec<_>, Vec<_>) = all.into_iter().partition(|task| task.list == "active" || task.is_due);
    let mut slots: Vec<_> = store
        .reminders()
        .list_reminders()?
        .iter()
        .filter_map(|reminder| {
            let is_late = reminder.what.next_at <= now;
            let slot = if is_late { reminder.next() } else { find_slot(reminder, day, tz)? };
            let wall = slot.wall_time(reminder.what.rule.as_ref(), reminder.zone(tz));
            let time = wall.format(if wall.date() == day { "%H:%M" } else { "%a %-d %b %H:%M" }).to_string();
            Some((slot.at, TodayReminder { id: reminder.id, time, text: shown(&reminder.what.text), is_late }))
        })
        .collect();
    slots.sort_by_key(|(at, slot)| (*at, slot.id));
    let message = |message: &Incoming| WaitingMessage {
        id: message.id,
        chat: message.chat,
        at: message.received_at,
        taint: message.words_of_others(),
        text: shown(&message.text),
    };
    let question = |question: &Approval| WaitingQuestion {
        id: question.id,
        what: shown(&approval_text::describe_action(&question.tool, &question.action).plain_sentence()),
        tool: question.tool.clone(),
        expires_at: question.expires_at,
    };
    Ok(Today {
        day,
        tasks,
        waiting_tasks: waiting.len(),
        reminders: slots.into_iter().map(|(_, slot)| slot).collect(),
        messages: overview.messages.iter().map(message).collect(),
        questions: overview.questions.iter().map(question).collect(),
        stopped: overview.stopped.map(|stopped| stopped.at),
    })
}

impl Today {
    /// Renders the day as Markdown, without empty sections.
    pub fn render(&self, now: DateTime<Utc>, tz: Tz) -> String {
        let mut parts = Vec::new();
        if let Some(at) = self.stopped {
            let since = at.map(|at| format!(" since {}", format_near_time(at, now, tz))).unwrap_or_default();
            parts.push(format!("All work is stopped{since}. To continue, run `wake resume`."));
        }
        let tasks = |is_due| self.tasks.iter().filter(move |task| task.is_due == is_due).map(task_line).collect();
        parts.extend(render_section("Due", tasks(true)));
        parts.extend(render_section("In hand", tasks(false)));
        let slots = |is_late| {
            let slots = self.reminders.iter().filter(move |slot| slot.is_late == is_late);
            slots.map(|slot| format!("{} {} (reminder {})", slot.time, shorten_text(&slot.text), slot.id)).collect()
        };
        parts.extend(render_section("Late, not sent yet (`wake --once` sends them)", slots(true)));
        parts.extend(render_section("Still to come today", slots(false)));
        let messages = self.messages.iter().map(|message| {
            let at = message.at.map(|at| format!("{}: ", format_near_time(at, now, tz))).unwrap_or_default();
            format!("{at}{} (message {})", shorten_text(&message.text), message.id)
        });
        parts.extend(render_section("Waiting for an answer", messages.collect()));
        let questions = self.questions.iter().map(|question| {
            let until =
                question.expires_at.map(|at| format!(" Until {}.", format_near_time(at, now, tz))).unwrap_or_default();
            format!(
                "Question {}: {}{until} `wake approvals list` shows it in full",
                question.id,
                approval_text::render_inline_code(&question.what)
            )
        });
        parts.extend(render_section("Waiting for your answer", questions.collect()));
        if parts.is_empty() {
            parts.push("Nothing is due today.".to_owned());
        }
        if self.waiting_tasks > 0 {
            let waits = if self.waiting_tasks == 1 { "waits" } else { "wait" };
            parts.push(format!(
                "{} {waits} in the backlog: `wake task list`.",
                format_count(self.waiting_tasks, "task")
            ));
        }
        parts.join("\n\n")
    }
}

fn render_section(head: &str, lines: Vec<String>) -> Option<String> {
    let lines: Vec<String> = lines.into_iter().map(|line| format!("- {line}")).collect();
    (!lines.is_empty()).then(|| format!("**{head}**\n{}", lines.join("\n")))
}

fn task_line(task: &ListedTask) -> String {
    let mut line = shorten_text(&task.title);
    let details = [
        ("project", &task.project),
        ("priority", &task.priority),
        ("", &task.due_words),
        ("due", &task.due.clone().filter(|_| task.due_words.is_none())),
        ("next:", &task.next),
        ("at", &task.at),
    ];
    for (label, value) in details {
        if let Some(value) = value {
            line.push_str(&format!(", {}", format!("{label} {}", shorten_text(value)).trim_start()));
        }
    }
    match task.quiet_days {
        Some(0) => line.push_str(" (touched today)"),
        Some(days) if days > 0 => {
            line.push_str(&format!(" (untouched for {})", format_count(days.unsigned_abs() as usize, "day")));
        }
        _ => {}
    }
    line
}

fn shorten_text(text: &str) -> String {
    truncate_text(&one_line(text), MAX_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;
    use reveille_memory::tasks::TaskList;

    fn empty() -> Today {
        Today {
            day: NaiveDate::from_ymd_opt(2026, 11, 21).unwrap(),
            tasks: Vec::new(),
            waiting_tasks: 0,
            reminders: Vec::new(),
            messages: Vec::new(),
            questions: Vec::new(),
            stopped: None,
        }
    }

    #[test]
    fn a_day_leaves_out_empty_sections() {
        let (now, tz) = (parse_time("2026-11-21T14:00:00Z").unwrap(), "Europe/Berlin".parse::<Tz>().unwrap());
        assert_eq!(empty().render(now, tz), "Nothing is due today.");
        let active = "## Write the report\n- touched: 2026-11-13\n- due: 2026-11-23\n- next: an outline\n\n## Tea\n- touched: 2026-11-21\n";
        let tasks = lists::list_tasks(&TaskList::parse(active).0, &TaskList::parse("").0, empty().day);
        let today = Today {
            tasks,
            waiting_tasks: 1,
            reminders: vec![TodayReminder {
                id: 3,
                time: "18:00".to_owned(),
                text: "call\nAnna".to_owned(),
                is_late: false,
            }],
            messages: vec![WaitingMessage {
                id: 7,
                chat: ChatRef::TERMINAL,
                at: Some(now),
                text: "what is due?".to_owned(),
                taint: None,
            }],
            questions: vec![WaitingQuestion {
                id: 2,
                tool: "bash".to_owned(),
                what: "May I run this command?".to_owned(),
                expires_at: Some(now),
            }],
            stopped: Some(Some(now)),
            ..empty()
        };
        insta::assert_snapshot!(today.render(now, tz), @r"
        All work is stopped since today 15:00. To continue, run `wake resume`.

        **In hand**
        - Write the report, due Mon 23 Nov, next: an outline (untouched for 8 days)
        - Tea (touched today)

        **Still to come today**
        - 18:00 call Anna (reminder 3)

        **Waiting for an answer**
        - today 15:00: what is due? (message 7)

        **Waiting for your answer**
        - Question 2: `May I run this command?` Until today 15:00. `wake approvals list` shows it in full

        1 task waits in the backlog: `wake task list`.
        ");
    }
}
