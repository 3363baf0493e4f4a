//! What the bot answers itself, without a mind and while a wake may be running: one small file a command.
//!
//! Each gathers values, from the store and from the last commit of the memory, never from the half-written work tree, and makes
//! a text of them. What a command changes is an [`Order`]: it is carried out in the transaction that stores the batch of updates,
//! so nothing here writes.

mod cost;
mod help;
mod log;
mod memory;
mod remind;
mod retry;
mod seen;
mod status;
mod stop;
mod tasks;
mod undo;
mod wake;
mod whoami;

use chrono::{DateTime, Utc};

use super::batch::Asked;
use crate::{
    channel::telegram::Command,
    config::Config,
    queue::{Order, Result, Stopped, Store},
    repo::{Committed, RepoError},
    words,
};
use seen::Seen;

/// What a command comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Markdown.
    pub(super) text: String,
    /// What is to be done with it.
    pub(super) order: Option<Order>,
}

/// Where the commands of one batch are answered, in turn: a later one knows what an earlier one has ordered.
pub(super) struct Desk<'a> {
    store: &'a Store,
    config: &'a Config,
    now: DateTime<Utc>,
    stopped: Option<Stopped>,
    /// Wakes that this batch has asked to undo.
    undoing: Vec<String>,
}

impl Reply {
    fn says(text: impl Into<String>) -> Self {
        Self { text: text.into(), order: None }
    }

    fn orders(text: impl Into<String>, order: Order) -> Self {
        Self { text: text.into(), order: Some(order) }
    }
}

impl<'a> Desk<'a> {
    pub(super) fn open(store: &'a Store, config: &'a Config, now: DateTime<Utc>) -> Result<Self> {
        Ok(Self { store, config, now, stopped: store.stopped()?, undoing: Vec::new() })
    }

    /// Answers a command.
    pub(super) fn answer(&mut self, asked: &Asked) -> Result<Reply> {
        let help = || help::text(self.config, self.is_owners(asked.message.chat_id));
        let reply = match asked.command {
            Command::Start => Reply::says(format!("Hello! I am your assistant.\n\n{}", help())),
            Command::Help => Reply::says(help()),
            Command::Mistyped(meant) => Reply::says(help::did_you_mean(&asked.message.text, meant)),
            Command::Status => Reply::says(status::Status::gather(self, asked)?.text()),
            Command::Tasks => {
                let mut shown = None;
                let text = self.committed(asked, |memory| {
                    let (text, tasks) = tasks::answer(self, memory)?;
                    shown = Some(tasks);
                    Ok(text)
                });
                Reply { text, order: shown.map(Order::ShowTasks) }
            }
            Command::Memory => Reply::says(self.committed(asked, |memory| memory::answer(memory, &asked.args))),
            Command::Cost => Reply::says(cost::Cost::gather(self)?.text()),
            Command::Log => Reply::says(log::answer(self, asked)?),
            Command::Whoami => Reply::says(whoami::answer(self, asked)),
            Command::Remind => remind::answer(self, asked)?,
            Command::Stop => stop::stop(self, asked),
            Command::Resume => stop::resume(self, asked),
            Command::Undo => undo::answer(self, asked)?,
            Command::Retry => retry::answer(self, asked)?,
            Command::Wake => wake::answer(self)?,
        };
        match &reply.order {
            Some(Order::Stop { is_owners }) => {
                let chat_id = asked.message.chat_id;
                let first = self.stopped.unwrap_or(Stopped { at: Some(self.now), chat_id });
                self.stopped = Some(if *is_owners { Stopped { chat_id, ..first } } else { first });
            }
            Some(Order::Resume) => self.stopped = None,
            Some(Order::Undo { wake }) => self.undoing.push(wake.clone()),
            _ => {}
        }
        Ok(reply)
    }

    /// Whether a chat is the owner's: it may see and undo what was done for the console, too.
    fn is_owners(&self, chat_id: i64) -> bool {
        chat_id == self.config.owner_chat_id
    }

    /// Answers from what the asking chat may see of the memory's last commit; trouble with it is an answer, too.
    fn committed(
        &self,
        asked: &Asked,
        answer: impl FnOnce(&Seen<'_>) -> std::result::Result<String, RepoError>,
    ) -> String {
        let (chat_id, owner) = (asked.message.chat_id, self.config.owner_chat_id);
        let answered = Committed::open(&self.config.repo_dir()).and_then(|found| {
            let answer = |memory: &Committed| Seen::by(memory, chat_id, owner).and_then(|seen| answer(&seen));
            found.as_ref().map(answer).transpose()
        });
        match answered {
            Ok(Some(text)) => text,
            Ok(None) => "I have no memory yet: the first wake makes it.".to_owned(),
            Err(error) => format!("My memory couldn't be read: {error}"),
        }
    }

    /// A time for people: `today 14:03`, `Fri 2026-11-20 09:00`.
    fn local(&self, at: DateTime<Utc>) -> String {
        local(at, self.now, self.config.timezone)
    }
}

fn local(at: DateTime<Utc>, now: DateTime<Utc>, tz: chrono_tz::Tz) -> String {
    let (at, now) = (at.with_timezone(&tz), now.with_timezone(&tz));
    if at.date_naive() == now.date_naive() {
        at.format("today %H:%M").to_string()
    } else {
        words::local(at.to_utc(), tz)
    }
}

/// The first of these lines, and how many more there are.
fn bounded(mut lines: Vec<String>, max: usize) -> String {
    let more = lines.len().saturating_sub(max);
    lines.truncate(max);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// A text on one line, cut to so many characters.
fn brief(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default().trim_end()),
        None => line,
    }
}

#[cfg(test)]
mod tests;
