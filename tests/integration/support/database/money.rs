//! Access to the costs of models, and to the models paused after failures.

use serde::Deserialize;

use super::{Database, flag};

/// A request to a model with its price.
#[derive(Debug, Deserialize)]
pub(crate) struct Charge {
    pub(crate) model: String,
    pub(crate) input: i64,
    pub(crate) cost_usd: f64,
    #[serde(rename = "discarded", deserialize_with = "flag")]
    pub(crate) is_discarded: bool,
    /// `true` until the answer arrives: the cost is then the maximum.
    #[serde(rename = "reserved", deserialize_with = "flag")]
    pub(crate) is_reserved: bool,
}

/// A pause of a model after failures.
#[derive(Debug, Deserialize)]
pub(crate) struct Breaker {
    pub(crate) failures: i64,
    pub(crate) not_before: Option<String>,
}

impl Database {
    #[track_caller]
    pub(crate) fn ledger(&self) -> Vec<Charge> {
        self.table("ledger", "id")
    }

    /// The charges of requests without an answer yet.
    #[track_caller]
    pub(crate) fn reserved(&self) -> Vec<Charge> {
        self.ledger().into_iter().filter(|charge| charge.is_reserved).collect()
    }

    /// The charges of answered requests.
    #[track_caller]
    pub(crate) fn settled(&self) -> Vec<Charge> {
        self.ledger().into_iter().filter(|charge| !charge.is_reserved).collect()
    }

    /// The sum of all charges, in dollars.
    #[track_caller]
    pub(crate) fn total_cost(&self) -> f64 {
        self.ledger().iter().map(|charge| charge.cost_usd).sum()
    }

    /// Charges this many dollars to a cycle of the past.
    #[track_caller]
    pub(crate) fn spend(&self, at: &str, usd: f64) {
        self.execute(&format!(
            "INSERT INTO ledger (cycle_id, at, model, input, output, cache_read, cache_write, cost_usd)
             VALUES ('earlier', '{at}', 'm', 1, 1, 0, 0, {usd})"
        ));
    }

    #[track_caller]
    pub(crate) fn breakers(&self) -> Vec<Breaker> {
        self.table("model_breakers", "model")
    }

    #[track_caller]
    pub(crate) fn forget_breakers(&self) {
        self.execute("DELETE FROM model_breakers");
    }

    /// Ends the pauses of all models.
    #[track_caller]
    pub(crate) fn bring_breakers_forward(&self) {
        self.execute("UPDATE model_breakers SET not_before = NULL");
    }

    /// The total cost of a model's answers, in dollars.
    #[track_caller]
    pub(crate) fn cost_of(&self, model: &str) -> f64 {
        self.settled().iter().filter(|charge| charge.model == model).map(|charge| charge.cost_usd).sum()
    }

    /// Inserts a pause of a model until a time.
    #[track_caller]
    pub(crate) fn put_breaker(&self, model: &str, since: &str, not_before: &str) {
        self.execute(&format!(
            "INSERT INTO model_breakers (model, fault, failures, since, not_before, error)
             VALUES ('{model}', 'outage', 1, '{since}', '{not_before}', 'why')"
        ));
    }
}
