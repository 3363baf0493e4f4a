//! The facts behind `/status`, `health status` and Today, read at one moment. Each of them renders the facts in its own
//! words.

use chrono::{DateTime, Utc};

use reveille_base::types::ChatRef;
use reveille_config::Config;
use reveille_cycle as cycle;
use reveille_cycle::decide::{budget::Budget, lineup::ModelState, orient::is_answerable};
use reveille_store::{
    Approval, Cap, CycleRow, Incoming, ModelBreaker, Outstanding, Stopped, Store, StoreError,
    in_force::load_effective_config,
};

/// The viewer, who limits the visible facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// A person at this machine, who sees everything.
    Console,
    /// The owner's chat, which sees everything. The model is the one that answers this chat.
    Owner(ChatRef),
    /// Another chat, which sees its own questions and its own last cycle.
    Chat(ChatRef),
}

/// The assistant's state at one moment.
pub struct Overview {
    /// The stop of all work, with its author and start.
    pub stopped: Option<Stopped>,
    /// The last started cycle.
    pub last_cycle: Option<CycleRow>,
    /// Messages that wait for an answer, in the order of a wake. At most as many as one read of the queue returns.
    pub messages: Vec<Incoming>,
    /// Numbers of all waiting messages.
    pub queue: Queue,
    /// Replies that aren't confirmed as delivered.
    pub outstanding: Outstanding,
    /// Questions that can still be answered, oldest first.
    pub questions: Vec<Approval>,
    /// Costs and remaining budget.
    pub budget: Budget,
    /// The model that answers now.
    pub model: CurrentModel,
}

/// Numbers of waiting messages, by the reason of the wait.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Queue {
    /// Messages that the present model can answer now.
    pub waiting: usize,
    /// Messages that wait for another model, for the model's return, or for a budget.
    pub held: usize,
    /// Messages that wait for a person's answer to a question.
    pub asking: usize,
    /// Messages that wait for a file to be fetched or transcribed.
    pub awaiting_files: usize,
    /// Messages that too many wakes failed on, left to a person's decision.
    pub given_up: usize,
    /// Arrival of the oldest waiting message.
    pub oldest_at: Option<DateTime<Utc>>,
    /// All waiting messages.
    #[serde(skip)]
    pub total: usize,
}

/// The model that answers a viewer now, or would if it could.
#[derive(Debug)]
pub struct CurrentModel {
    /// The name; the preferred model's if none can be asked.
    pub name: String,
    /// `true` if it may be asked now.
    pub is_available: bool,
    /// `true` if any model of the chain is more than the offline grammar.
    pub is_thinking: bool,
    /// The last failures, if it is in trouble.
    pub trouble: Option<ModelBreaker>,
    /// The exhausted budget, if any.
    pub over_budget: Option<Cap>,
    /// Number of chats whose last request was too large for the remaining budget.
    pub chats_without_room: usize,
    /// Preferred models that can't be asked now.
    pub passed_over: Vec<PassedOverModel>,
}

/// A model of the chain that a later one replaces.
#[derive(Debug)]
pub struct PassedOverModel {
    /// The name.
    pub name: String,
    /// The last failures. `None` if only the budget prevents a request.
    pub trouble: Option<ModelBreaker>,
}

impl Overview {
    /// Reads all facts without writing. Within [`Store::with_snapshot`] they are of one moment.
    ///
    /// # Errors
    /// If the store fails.
    pub fn read(store: &Store, config: &Config, now: DateTime<Utc>, viewer: Viewer) -> Result<Self, StoreError> {
        let state = cycle::read_model_state(store, &load_effective_config(config, store)?, now)?;
        let messages = store.inbox().list_queued_messages()?;
        let questions = store.approvals().pending_approvals(now)?;
        Ok(Self {
            stopped: store.chats().find_stop_order()?,
            last_cycle: store.history().cycles_since(None, viewer.only_chat(), 1)?.pop(),
            queue: Queue::read(store, &messages, &state, now)?,
            messages,
            outstanding: store.outbox().count_outstanding()?,
            questions: questions.into_iter().filter(|question| viewer.may_see(question.chat)).collect(),
            budget: Budget::read(store, config, now)?,
            model: CurrentModel::from_state(&state, &store.maintenance().list_breakers()?, viewer),
        })
    }
}

impl Viewer {
    /// Returns the chat that limits the visible cycles. `None` if all are visible.
    fn only_chat(self) -> Option<ChatRef> {
        match self {
            Self::Console | Self::Owner(_) => None,
            Self::Chat(chat) => Some(chat),
        }
    }

    fn may_see(self, chat: ChatRef) -> bool {
        self.only_chat().is_none_or(|only| only == chat)
    }

    /// Returns the chat that a model is chosen for.
    fn chat(self) -> Option<ChatRef> {
        match self {
            Self::Console => None,
            Self::Owner(chat) | Self::Chat(chat) => Some(chat),
        }
    }
}

impl Queue {
    /// Sorts the messages in `queued`, and counts the others.
    fn read(store: &Store, queued: &[Incoming], state: &ModelState, now: DateTime<Utc>) -> Result<Self, StoreError> {
        let parked = store.cycles().parked_cycles()?;
        let is_asking =
            |message: &&Incoming| parked.iter().any(|cycle| message.cycle_id.as_ref() == Some(&cycle.cycle_id));
        let (asking, queued): (Vec<&Incoming>, Vec<&Incoming>) = queued.iter().partition(is_asking);
        let waiting = queued.iter().filter(|message| is_answerable(message, state, now)).count();
        let awaiting_files = queued.iter().filter(|message| message.awaits_files).count();
        let (all, oldest_at) = store.inbox().queue_depth()?;
        let sorted = waiting + awaiting_files + asking.len();
        let total = usize::try_from(all).unwrap_or(0);
        let held = total.saturating_sub(sorted);
        let given_up = store.inbox().dead_letters()?.len();
        Ok(Self { waiting, held, asking: asking.len(), awaiting_files, given_up, oldest_at, total })
    }
}

impl CurrentModel {
    fn from_state(state: &ModelState, breakers: &[ModelBreaker], viewer: Viewer) -> Self {
        let trouble = |name: &str| breakers.iter().find(|breaker| breaker.model == name).cloned();
        let asked = viewer.chat().map_or_else(|| state.asked_at_all(), |chat| state.find_model(chat));
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
