//! What was spent on models, and which are left alone for a while.

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
    /// The most that it may cost, while its answer isn't there.
    #[serde(rename = "reserved", deserialize_with = "flag")]
    pub(crate) is_reserved: bool,
}

/// A model that failed, and isn't asked before a time.
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

    /// The charges whose answer isn't there.
    #[track_caller]
    pub(crate) fn reserved(&self) -> Vec<Charge> {
        self.ledger().into_iter().filter(|charge| charge.is_reserved).collect()
    }

    /// The charges whose answer is there.
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

    /// Every model may be asked again.
    #[track_caller]
    pub(crate) fn bring_breakers_forward(&self) {
        self.execute("UPDATE model_breakers SET not_before = NULL");
    }

    /// The sum of what the answers of a model cost, in dollars.
    #[track_caller]
    pub(crate) fn cost_of(&self, model: &str) -> f64 {
        self.settled().iter().filter(|charge| charge.model == model).map(|charge| charge.cost_usd).sum()
    }

    /// A model failed, and is left alone until a time.
    #[track_caller]
    pub(crate) fn put_breaker(&self, model: &str, since: &str, not_before: &str) {
        self.execute(&format!(
            "INSERT INTO model_breakers (model, fault, failures, since, not_before, error)
             VALUES ('{model}', 'outage', 1, '{since}', '{not_before}', 'why')"
        ));
    }
}
