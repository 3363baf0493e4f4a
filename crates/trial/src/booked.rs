//! A model whose requests are charged to the workspace's real ledger, under a name of its own and within the budget. The trial's temporary
//! database isn't involved.

use std::cell::{Cell, RefCell};

use reveille_base::{clock::Clock, types::Usage};
use reveille_config::{Config, OFFLINE_MODEL, Provider};
use reveille_cycle::{decide::budget::Budget, workspace};
use reveille_model::{Conversation, Known, Model, ModelError, Progress, Turn, TurnFuture, create_model};
use reveille_store::{Reservation, Spent, Store, StoreError};

/// The reason a model can't be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialModelError {
    /// A required setting is missing or wrong: a person has to correct it.
    #[error("{0}")]
    Unset(String),
    /// The ledger can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A model under trial.
pub struct Booked<'a> {
    model: Box<dyn Model>,
    ledger: Option<Ledger<'a>>,
    spent: Cell<Spent>,
    requests: Cell<u32>,
    /// The limit on the total cost of its requests, in US dollars.
    cap_usd: Option<f64>,
}

struct Ledger<'a> {
    store: RefCell<Store>,
    config: &'a Config,
    clock: &'a dyn Clock,
    /// The name in the ledger, such as `replay:claude-sonnet-5-5`.
    name: String,
}

impl<'a> Booked<'a> {
    /// Creates the model `name` with a trial's `settings`. Its requests are charged to the ledger of `config`, at the time of `clock`,
    /// under the name `purpose:name`. The offline model costs nothing and has no ledger.
    ///
    /// # Errors
    /// A required setting is missing, or the ledger can't be opened.
    pub fn for_model(
        name: &str,
        purpose: &str,
        settings: &Config,
        (config, clock): (&'a Config, &'a dyn Clock),
    ) -> Result<Self, TrialModelError> {
        if !settings.can_use(name) {
            return Err(TrialModelError::Unset(format!(
                "The model {name} needs a key that isn't set. Set it (`wake init`), or try another model with --model."
            )));
        }
        let model = create_model(name, settings).map_err(TrialModelError::Unset)?;
        if Provider::from_model(name) == Provider::Offline {
            return Ok(Self::without_ledger(model));
        }
        let store = RefCell::new(workspace::open_database(config)?);
        let ledger = Some(Ledger { store, config, clock, name: format!("{purpose}:{name}") });
        Ok(Self { ledger, ..Self::without_ledger(model) })
    }

    /// Wraps a model that costs nothing.
    pub fn without_ledger(model: Box<dyn Model>) -> Self {
        Self { model, ledger: None, spent: Cell::default(), requests: Cell::default(), cap_usd: None }
    }

    /// Refuses requests that could raise the total cost above `cap_usd` US dollars.
    #[must_use]
    pub fn with_cap(self, cap_usd: f64) -> Self {
        Self { cap_usd: Some(cap_usd), ..self }
    }

    /// Returns the tokens used and their cost so far.
    pub fn spending(&self) -> Spent {
        self.spent.get()
    }

    /// Returns the number of requests so far, including those without an answer.
    pub fn requests(&self) -> u32 {
        self.requests.get()
    }

    /// Returns what is left of the budget, in US dollars; `None` if the model costs nothing.
    ///
    /// # Errors
    /// The ledger can't be read.
    pub fn left_usd(&self) -> Result<Option<f64>, StoreError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let budget = Budget::read(&ledger.store.borrow(), ledger.config, ledger.clock.now())?;
        let month = budget.monthly_usd.map_or(f64::INFINITY, |usd| usd - budget.month_usd);
        Ok(Some((budget.daily_usd - budget.today_usd).min(month).max(0.0)))
    }

    fn reserve_cost(&self, most_usd: f64) -> Result<Option<Reservation>, ModelError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        if let Some(cap_usd) = self.cap_usd.filter(|cap| self.spent.get().cost_usd + most_usd > *cap) {
            let why =
                format!("a request may cost ${most_usd:.4}, but only ${cap_usd:.4} was left for this case (--cap)");
            return Err(ModelError::Account { why });
        }
        let now = ledger.clock.now();
        let mut store = ledger.store.borrow_mut();
        let caps = Budget::read(&store, ledger.config, now).map_err(|error| build_ledger_error(&error))?.caps();
        let reserved = store
            .ledger_mut()
            .reserve_apart(&ledger.name, most_usd, &caps, now)
            .map_err(|error| build_ledger_error(&error))?;
        reserved.map(Some).map_err(|cap| ModelError::Account {
            why: format!(
                "{} budget is too small for a request that may cost ${most_usd:.4}: raise {}, or wait until {}.",
                cap.possessive(),
                cap.setting_name(),
                cap.describe_end()
            ),
        })
    }

    /// Charges the cost of a request. If this process is killed first, the request stays counted at its maximum cost.
    fn settle(&self, reservation: Option<Reservation>, usage: Usage, cost_usd: Option<f64>) -> Result<(), ModelError> {
        let spent = Spent { tokens: usage, cost_usd: cost_usd.unwrap_or_else(|| self.model.cost_usd(&usage)) };
        let mut total = self.spent.get();
        total.tokens += spent.tokens;
        total.cost_usd += spent.cost_usd;
        self.spent.set(total);
        match (&self.ledger, reservation) {
            (Some(ledger), Some(reservation)) => {
                let settled = ledger.store.borrow_mut().ledger_mut().settle_apart(reservation, &spent);
                settled.map_err(|error| build_ledger_error(&error))
            }
            _ => Ok(()),
        }
    }

    async fn run_request(&self, conversation: &Conversation, progress: &Progress) -> Result<Turn, ModelError> {
        let reservation = self.reserve_cost(self.model.most_usd(conversation))?;
        self.requests.set(self.requests.get().saturating_add(1));
        let mut open = OpenRequest { booked: self, progress, reservation };
        let turn = self.model.request_turn(conversation, progress).await;
        let reservation = open.reservation.take();
        match &turn {
            Ok(turn) => self.settle(reservation, turn.usage, turn.cost_usd)?,
            Err(ModelError::Transient { spent, .. }) => self.settle(reservation, *spent, None)?,
            Err(_) => self.settle(reservation, Usage::default(), None)?,
        }
        turn
    }
}

/// A request in progress. If it is abandoned, the cost known so far is charged; if none is known, the reservation stays counted.
struct OpenRequest<'a, 'b> {
    booked: &'a Booked<'b>,
    progress: &'a Progress,
    reservation: Option<Reservation>,
}

impl Drop for OpenRequest<'_, '_> {
    fn drop(&mut self) {
        let Some(reservation) = self.reservation.take() else { return };
        let usage = match self.progress.state() {
            Known::Sent => return,
            Known::Unsent => Usage::default(),
            Known::Told(usage) => usage,
        };
        if let Err(error) = self.booked.settle(Some(reservation), usage, None) {
            tracing::warn!(%error, "the cost of an abandoned request can't be recorded; its maximum stays counted");
        }
    }
}

/// Returns the error for a request that can't be charged; such a request is never sent.
fn build_ledger_error(error: &StoreError) -> ModelError {
    ModelError::Account { why: format!("its cost can't be recorded: {error}") }
}

impl Model for Booked<'_> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn most_usd(&self, conversation: &Conversation) -> f64 {
        self.model.most_usd(conversation)
    }

    fn cost_usd(&self, usage: &Usage) -> f64 {
        self.model.cost_usd(usage)
    }

    fn request_turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a> {
        Box::pin(self.run_request(conversation, progress))
    }

    fn context_window(&self) -> Option<u64> {
        self.model.context_window()
    }

    fn release(&self) {
        self.model.release();
    }
}

/// Returns `true` if a model of this name costs nothing.
pub fn is_free(name: &str) -> bool {
    name == OFFLINE_MODEL
}
