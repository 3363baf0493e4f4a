//! The facts behind `/status`, `health status` and Today, read in one look. Each of them shows them in its own words.

use chrono::{DateTime, Utc};

use reveille_base::types::ChatRef;
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::decide::{budget::Budget, lineup::ModelState, orient::is_answerable};
use reveille_store::{
    Approval, Cap, CycleRow, Incoming, ModelBreaker, Outstanding, Stopped, Store, StoreError, in_force::in_force,
};

/// Who looks, which bounds the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// A person at this machine, who sees everything.
    Console,
    /// The owner's chat, which sees everything; a model is chosen for this chat.
    Owner(ChatRef),
    /// Another chat, which sees its own questions and its own last cycle.
    Chat(ChatRef),
}

/// How the assistant stands at one moment.
pub struct Overview {
    /// That all work was stopped, by whom and since when.
    pub stopped: Option<Stopped>,
    /// The cycle that began last.
    pub last_cycle: Option<CycleRow>,
    /// Messages that wait for an answer, in the order in which a wake takes them; those of one look.
    pub messages: Vec<Incoming>,
    /// The same in numbers, beyond one look.
    pub queue: Queue,
    /// Replies that aren't confirmed as delivered.
    pub outstanding: Outstanding,
    /// Questions that can still be answered, oldest first.
    pub questions: Vec<Approval>,
    /// Money spent and left.
    pub budget: Budget,
    /// The AI model that answers now.
    pub model: CurrentModel,
}

/// Messages that wait for an answer.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Queue {
    /// That the present model can answer now.
    pub waiting: usize,
    /// That wait for another model, for its return, or for a budget.
    pub held: usize,
    /// That wait for a person's answer to a question.
    pub asking: usize,
    /// That wait for a file of theirs to be fetched or listened to.
    pub awaiting_files: usize,
    /// That too many wakes failed on: a person decides on them.
    pub given_up: usize,
    /// When the oldest of all that wait came.
    pub oldest_at: Option<DateTime<Utc>>,
}

/// The AI model that answers a viewer now, or that would.
#[derive(Debug)]
pub struct CurrentModel {
    /// Its name; the preferred one's if none can be asked.
    pub name: String,
    /// Whether it may be asked now.
    pub is_available: bool,
    /// Whether it, or another of the chain, is more than the offline grammar.
    pub is_thinking: bool,
    /// Its last failures, if it is in trouble.
    pub trouble: Option<ModelBreaker>,
    /// The budget that is spent, if one is.
    pub over_budget: Option<Cap>,
    /// Number of chats whose last request had no room under what is left of a budget.
    pub chats_without_room: usize,
    /// The models that are preferred to it and can't be asked now.
    pub passed_over: Vec<PassedOverModel>,
}

/// A model of the chain that gives way to a later one.
#[derive(Debug)]
pub struct PassedOverModel {
    /// Its name.
    pub name: String,
    /// Its last failures; `None` if only money keeps it from being asked.
    pub trouble: Option<ModelBreaker>,
}

impl Overview {
    /// Reads all of it without writing; within [`Store::reading`], as of one moment.
    ///
    /// # Errors
    /// If the store fails.
    pub fn look(store: &Store, config: &Config, now: DateTime<Utc>, viewer: Viewer) -> Result<Self, StoreError> {
        let state = cycle::model_state(store, &in_force(config, store)?, now)?;
        let messages = store.queued()?;
        let questions = store.pending_approvals(now)?;
        Ok(Self {
            stopped: store.stopped()?,
            last_cycle: store.cycles_since(None, viewer.only_chat(), 1)?.pop(),
            queue: Queue::look(store, &messages, &state, now)?,
            messages,
            outstanding: store.outstanding()?,
            questions: questions.into_iter().filter(|question| viewer.may_see(question.chat)).collect(),
            budget: Budget::look(store, config, now)?,
            model: CurrentModel::find(&state, &store.breakers()?, viewer),
        })
    }
}

impl Viewer {
    /// The only chat whose cycles are shown, if they are bounded.
    fn only_chat(self) -> Option<ChatRef> {
        match self {
            Self::Console | Self::Owner(_) => None,
            Self::Chat(chat) => Some(chat),
        }
    }

    fn may_see(self, chat: ChatRef) -> bool {
        self.only_chat().is_none_or(|only| only == chat)
    }

    /// The chat that a model would be asked for.
    fn chat(self) -> Option<ChatRef> {
        match self {
            Self::Console => None,
            Self::Owner(chat) | Self::Chat(chat) => Some(chat),
        }
    }
}

impl Queue {
    /// Sorts `queued`, the messages of one look, and counts the rest.
    fn look(store: &Store, queued: &[Incoming], state: &ModelState, now: DateTime<Utc>) -> Result<Self, StoreError> {
        let parked = store.parked_cycles()?;
        let is_asking =
            |message: &&Incoming| parked.iter().any(|cycle| message.cycle_id.as_ref() == Some(&cycle.cycle_id));
        let (asking, queued): (Vec<&Incoming>, Vec<&Incoming>) = queued.iter().partition(is_asking);
        let waiting = queued.iter().filter(|message| is_answerable(message, state, now)).count();
        let awaiting_files = queued.iter().filter(|message| message.awaits_files).count();
        let (all, oldest_at) = store.queue_depth()?;
        let sorted = waiting + awaiting_files + asking.len();
        let held = usize::try_from(all).unwrap_or(0).saturating_sub(sorted);
        let given_up = store.dead_letters()?.len();
        Ok(Self { waiting, held, asking: asking.len(), awaiting_files, given_up, oldest_at })
    }

    /// Number of messages that wait, for whatever it is.
    pub fn total(&self) -> usize {
        self.waiting + self.held + self.asking + self.awaiting_files
    }
}

impl CurrentModel {
    fn find(state: &ModelState, breakers: &[ModelBreaker], viewer: Viewer) -> Self {
        let trouble = |name: &str| breakers.iter().find(|breaker| breaker.model == name).cloned();
        let asked = viewer.chat().map_or_else(|| state.asked_at_all(), |chat| state.asked(chat));
        let name = asked.map_or(state.name(), |asked| &asked.name).to_owned();
        let before = state.lineup.iter().take_while(|model| model.name != name);
        let passed_over = before.map(|it| PassedOverModel { name: it.name.clone(), trouble: trouble(&it.name) });
        Self {
            is_available: asked.is_some(),
            is_thinking: state.is_thinking(),
            trouble: trouble(&name),
            over_budget: state.over_budget,
            chats_without_room: state.no_room.len(),
            passed_over: passed_over.collect(),
            name,
        }
    }
}
