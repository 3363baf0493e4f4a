//! A model whose requests are booked in the workspace's ledger, under a name of their own and within the budget, whatever database the
//! trial itself works with.

use std::cell::{Cell, RefCell};

use reveille_base::{clock::Clock, types::Usage};
use reveille_config::{Config, OFFLINE_MODEL, Provider};
use reveille_cycle::{decide::budget::Budget, workspace};
use reveille_model::{Conversation, Known, Model, ModelError, Progress, Turn, TurnFuture, configured};
use reveille_store::{Reservation, Spent, Store, StoreError};

/// Why a model can't be tried.
#[derive(Debug, thiserror::Error)]
pub enum TrialModelError {
    /// What it needs isn't set, or is wrong: a person corrects it.
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
    /// What its requests may cost in all, in US dollars.
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
    /// The model of this name under the settings of a trial. `what` it is tried for stands before its name in the ledger, which is
    /// `config`'s by its `clock`. The offline one has no ledger: it costs nothing.
    ///
    /// # Errors
    /// It needs what isn't set, or the ledger can't be opened.
    pub fn named(
        name: &str,
        what: &str,
        settings: &Config,
        (config, clock): (&'a Config, &'a dyn Clock),
    ) -> Result<Self, TrialModelError> {
        if !settings.can_use(name) {
            return Err(TrialModelError::Unset(format!(
                "The model {name} needs a key that isn't set. Set it (`wake init`), or try another model with --model."
            )));
        }
        let model = configured(name, settings).map_err(TrialModelError::Unset)?;
        if Provider::of(name) == Provider::Offline {
            return Ok(Self::free(model));
        }
        let store = RefCell::new(workspace::open(config)?);
        let ledger = Some(Ledger { store, config, clock, name: format!("{what}:{name}") });
        Ok(Self { ledger, ..Self::free(model) })
    }

    /// A model that costs nothing.
    pub fn free(model: Box<dyn Model>) -> Self {
        Self { model, ledger: None, spent: Cell::default(), requests: Cell::default(), cap_usd: None }
    }

    /// The same, which asks for nothing that could cost more than so many US dollars in all.
    #[must_use]
    pub fn within(self, cap_usd: f64) -> Self {
        Self { cap_usd: Some(cap_usd), ..self }
    }

    /// What it has used and cost so far.
    pub fn spent(&self) -> Spent {
        self.spent.get()
    }

    /// Requests so far, those that had no answer among them.
    pub fn requests(&self) -> u32 {
        self.requests.get()
    }

    /// What of the budget is left, in US dollars; none: it costs nothing.
    ///
    /// # Errors
    /// The ledger can't be read.
    pub fn left_usd(&self) -> Result<Option<f64>, StoreError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let budget = Budget::look(&ledger.store.borrow(), ledger.config, ledger.clock.now())?;
        let month = budget.monthly_usd.map_or(f64::INFINITY, |usd| usd - budget.month_usd);
        Ok(Some((budget.daily_usd - budget.today_usd).min(month).max(0.0)))
    }

    fn set_aside(&self, most_usd: f64) -> Result<Option<Reservation>, ModelError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        if let Some(cap_usd) = self.cap_usd.filter(|cap| self.spent.get().cost_usd + most_usd > *cap) {
            let why = format!("a request may cost ${most_usd:.4}, and ${cap_usd:.4} was left for this case (--cap)");
            return Err(ModelError::Account { why });
        }
        let now = ledger.clock.now();
        let mut store = ledger.store.borrow_mut();
        let caps = Budget::look(&store, ledger.config, now).map_err(|error| out_of_reach(&error))?.caps();
        let reserved = store.reserve_apart(&ledger.name, most_usd, &caps, now).map_err(|error| out_of_reach(&error))?;
        reserved.map(Some).map_err(|cap| ModelError::Account {
            why: format!(
                "{} budget has no room for a request that may cost ${most_usd:.4}: raise {}, or wait until {}.",
                cap.whose(),
                cap.setting(),
                cap.until()
            ),
        })
    }

    /// Books what a request cost. One that is never settled, since this process was killed, stays counted with the most that it may cost.
    fn settle(&self, reservation: Option<Reservation>, usage: Usage, cost_usd: Option<f64>) -> Result<(), ModelError> {
        let spent = Spent { tokens: usage, cost_usd: cost_usd.unwrap_or_else(|| self.model.cost_usd(&usage)) };
        let mut all = self.spent.get();
        all.tokens += spent.tokens;
        all.cost_usd += spent.cost_usd;
        self.spent.set(all);
        match (&self.ledger, reservation) {
            (Some(ledger), Some(reservation)) => {
                let settled = ledger.store.borrow_mut().settle_apart(reservation, &spent);
                settled.map_err(|error| out_of_reach(&error))
            }
            _ => Ok(()),
        }
    }

    async fn asked(&self, conversation: &Conversation, progress: &Progress) -> Result<Turn, ModelError> {
        let reservation = self.set_aside(self.model.most_usd(conversation))?;
        self.requests.set(self.requests.get().saturating_add(1));
        let mut open = OpenRequest { booked: self, progress, reservation };
        let turn = self.model.turn(conversation, progress).await;
        let reservation = open.reservation.take();
        match &turn {
            Ok(turn) => self.settle(reservation, turn.usage, turn.cost_usd)?,
            Err(ModelError::Transient { spent, .. }) => self.settle(reservation, *spent, None)?,
            Err(_) => self.settle(reservation, Usage::default(), None)?,
        }
        turn
    }
}

/// A request under way. One that nobody waits for any more is booked as far as it got; where nothing is known of that, what was set
/// aside stays counted.
struct OpenRequest<'a, 'b> {
    booked: &'a Booked<'b>,
    progress: &'a Progress,
    reservation: Option<Reservation>,
}

impl Drop for OpenRequest<'_, '_> {
    fn drop(&mut self) {
        let Some(reservation) = self.reservation.take() else { return };
        let usage = match self.progress.known() {
            Known::Sent => return,
            Known::Unsent => Usage::default(),
            Known::Told(usage) => usage,
        };
        if let Err(error) = self.booked.settle(Some(reservation), usage, None) {
            tracing::warn!(%error, "what a request cost that was cut off is counted with the most that it may be");
        }
    }
}

/// No request leaves that can't be booked.
fn out_of_reach(error: &StoreError) -> ModelError {
    ModelError::Account { why: format!("what it costs can't be booked: {error}") }
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

    fn turn<'a>(&'a self, conversation: &'a Conversation, progress: &'a Progress) -> TurnFuture<'a> {
        Box::pin(self.asked(conversation, progress))
    }

    fn context_window(&self) -> Option<u64> {
        self.model.context_window()
    }

    fn rest(&self) {
        self.model.rest();
    }
}

/// Whether a model of this name costs nothing.
pub fn is_free(name: &str) -> bool {
    name == OFFLINE_MODEL
}
