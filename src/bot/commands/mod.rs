//! Commands that the bot answers itself, without a model and even while a wake runs. Each has its own small file.
//!
//! A command reads values from the store and from the last commit of the memory, never from the half-written work tree,
//! and renders them. Changes are returned as an [`Order`], which the transaction that stores the batch carries out.
//! Nothing here writes.

mod cost;
mod help;
mod jobs;
mod local;
mod log;
mod memory;
mod model;
mod new;
mod remind;
mod restart;
mod retry;
mod rules;
mod seen;
mod settings;
mod status;
mod stop;
mod tasks;
pub(super) mod terminal;
mod undo;
mod wake;
mod whoami;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use reveille_base::{types::ChatRef, words};
use reveille_channels::telegram::Command;
use reveille_config::Config;
use reveille_git::{Committed, RepoError};
use reveille_store::{Order, Result, Stopped, Store};

use super::batch::Asked;
use seen::Seen;

/// The reply to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandReply {
    /// Markdown.
    pub(super) text: String,
    /// The change to carry out.
    pub(super) order: Option<Order>,
}

/// Answers the commands of one batch in turn. Later commands see the effects of earlier ones.
pub(super) struct Desk<'a> {
    store: &'a Store,
    config: &'a Config,
    now: DateTime<Utc>,
    stopped: Option<Stopped>,
    /// Chats that have stopped their own work.
    stopped_chats: BTreeMap<ChatRef, Option<DateTime<Utc>>>,
    /// Chats restricted to local models.
    local_chats: BTreeSet<ChatRef>,
    /// Wakes that this batch has asked to undo.
    undoing: Vec<String>,
}

impl CommandReply {
    fn from_text(text: impl Into<String>) -> Self {
        Self { text: text.into(), order: None }
    }

    fn with_order(text: impl Into<String>, order: Order) -> Self {
        Self { text: text.into(), order: Some(order) }
    }
}

impl<'a> Desk<'a> {
    pub(super) fn open(store: &'a Store, config: &'a Config, now: DateTime<Utc>) -> Result<Self> {
        let (stopped, stopped_chats, local_chats) =
            (store.chats().find_stop_order()?, store.chats().stopped_chats()?, store.chats().local_chats()?);
        Ok(Self { store, config, now, stopped, stopped_chats, local_chats, undoing: Vec::new() })
    }

    pub(super) fn answer(&mut self, asked: &Asked) -> Result<CommandReply> {
        if let Some(why) = asked.command.is_owners().then(|| self.why_not_owner(asked)).flatten() {
            return Ok(CommandReply::from_text(why));
        }
        let help = || help::render_help(self.config, self.is_owners(asked.message.chat));
        let reply = match asked.command {
            Command::Start => CommandReply::from_text(format!("Hello! I'm your assistant.\n\n{}", help())),
            Command::Help => CommandReply::from_text(help()),
            Command::Mistyped(meant) => CommandReply::from_text(help::did_you_mean(&asked.message.text, meant)),
            Command::Status => CommandReply::from_text(status::AssistantStatus::gather(self, asked)?.render()),
            Command::Tasks => {
                let mut shown = None;
                let text = self.answer_from_memory(asked, |memory| {
                    let (text, tasks) = tasks::answer(self, memory)?;
                    shown = Some(tasks);
                    Ok(text)
                });
                CommandReply { text, order: shown.map(Order::ShowTasks) }
            }
            Command::Memory => CommandReply::from_text(
                self.answer_from_memory(asked, |memory| memory::answer(self, memory, &asked.args)),
            ),
            Command::Cost => CommandReply::from_text(cost::answer(self, asked)?),
            Command::Jobs => CommandReply::from_text(jobs::answer(self)?),
            Command::Log => CommandReply::from_text(log::answer(self, asked)?),
            Command::New => new::answer(self, asked),
            Command::Model => model::answer(self, &asked.args),
            Command::Local => local::answer(self, asked),
            Command::Settings => CommandReply::from_text(settings::answer(self)),
            Command::Restart => restart::answer(self, asked),
            Command::Whoami => CommandReply::from_text(whoami::answer(self, asked)),
            Command::Remind => remind::answer(self, asked)?,
            Command::Stop => stop::answer_stop(self, asked),
            Command::Resume => stop::answer_resume(self, asked),
            Command::Undo => undo::answer(self, asked)?,
            Command::Retry => retry::answer(self, asked)?,
            Command::Rules => rules::answer(self, asked),
            Command::Wake => wake::answer(self, asked)?,
        };
        let chat = asked.message.chat;
        match &reply.order {
            Some(Order::Stop { is_owners: true }) => {
                let at = self.stopped.map_or(Some(self.now), |first| first.at);
                self.stopped = Some(Stopped { at, chat });
            }
            Some(Order::Stop { is_owners: false }) => {
                self.stopped_chats.entry(chat).or_insert(Some(self.now));
            }
            Some(Order::Resume { is_owners }) => {
                self.stopped = self.stopped.filter(|_| !is_owners);
                self.stopped_chats.remove(&chat);
            }
            Some(Order::KeepLocal { is_kept: true }) => {
                self.local_chats.insert(chat);
            }
            Some(Order::KeepLocal { is_kept: false }) => {
                self.local_chats.remove(&chat);
            }
            Some(Order::Undo { wake }) => self.undoing.push(wake.clone()),
            _ => {}
        }
        Ok(reply)
    }

    /// Returns the stop that applies to a chat after this batch's commands: a stop of all work, or of that chat's alone.
    pub(super) fn find_stop(&self, chat: ChatRef) -> Option<Stopped> {
        let own = || self.stopped_chats.get(&chat).map(|at| Stopped { at: *at, chat });
        self.stopped.or_else(own)
    }

    /// Returns `true` if all work is stopped.
    pub(super) fn is_all_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Returns `true` for the owner's chat and for the terminal. Whoever uses the terminal is the owner, so the owner's chat
    /// may also see and undo the terminal's work.
    fn is_owners(&self, chat: ChatRef) -> bool {
        chat == self.config.owner_chat || chat == ChatRef::TERMINAL
    }

    /// Returns `true` if the owner asks, in their own chat or in a group.
    fn is_by_owner(&self, asked: &Asked) -> bool {
        self.is_owners(asked.message.chat) || self.is_owners(ChatRef::from_number(asked.message.sender_id))
    }

    /// Returns the reason to refuse an owner's command here. `None` if it is allowed.
    fn why_not_owner(&self, asked: &Asked) -> Option<String> {
        let name = asked.command.name();
        match (self.is_owners(asked.message.chat), self.is_by_owner(asked)) {
            (true, _) if asked.message.chat.is_group() => {
                Some(format!("/{name} only works in a private chat, and this is a group. Nothing was done."))
            }
            (true, _) => None,
            (false, true) => Some(format!(
                "/{name} only works in our private chat, because others can read this one. Nothing was done."
            )),
            (false, false) => Some(format!("Only my owner can use /{name}. Nothing was done.")),
        }
    }

    /// Returns when work for the asking chat was stopped, alone or with all work; the time itself may be unknown. `None` if
    /// it isn't stopped.
    fn find_stop_time(&self, asked: &Asked) -> Option<Option<DateTime<Utc>>> {
        self.find_stop(asked.message.chat).map(|stopped| stopped.at)
    }

    /// Answers from the asking chat's view of the memory's last commit. Failures become an answer too.
    fn answer_from_memory(
        &self,
        asked: &Asked,
        answer: impl FnOnce(&Seen<'_>) -> std::result::Result<String, RepoError>,
    ) -> String {
        let (chat, owner) = (asked.message.chat, self.config.owner_chat);
        let answered = Committed::open(&self.config.repo_dir()).and_then(|found| {
            let answer = |memory: &Committed| Seen::for_chat(memory, chat, owner).and_then(|seen| answer(&seen));
            found.as_ref().map(answer).transpose()
        });
        match answered {
            Ok(Some(text)) => text,
            Ok(None) => "I haven't written anything down yet.".to_owned(),
            Err(error) => format!("I couldn't read my memory: {error}"),
        }
    }

    /// Renders a time for people, such as `today 14:03` or `Fri 2026-11-20 09:00`.
    fn format_time(&self, at: DateTime<Utc>) -> String {
        words::format_near_time(at, self.now, self.config.timezone)
    }
}

/// Joins the first lines and appends the number of the others.
fn join_first_lines(mut lines: Vec<String>, max: usize) -> String {
    let more = lines.len().saturating_sub(max);
    lines.truncate(max);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// Shortens a text to one line of at most `max_chars` characters.
fn shorten_to_line(text: &str, max_chars: usize) -> String {
    words::truncate_text(&words::one_line(text), max_chars)
}

#[cfg(test)]
mod tests;
