//! Daily figures of the last days: cost by model, tokens, duration of turns, outcomes of wakes. The page draws charts of them.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};

use reveille_base::types::Usage;
use reveille_config::Config;
use reveille_cycle::decide::budget::Budget;
use reveille_store::{CycleState, ModelDay, StateDay, Store, StoreError, TurnTimes};

use super::{
    cost::{self, FORECAST_DAYS, Forecast},
    since::day_begin,
};

/// The maximum number of models in a chart. The cheapest ones beyond it are merged.
const MAX_MODELS: usize = 5;
/// The name for merged models.
const OTHERS: &str = "others";

/// The figures of the last days.
#[derive(Debug, Clone, PartialEq)]
pub struct DaysReport {
    /// The days, oldest first, ending today.
    pub days: Vec<DayFigures>,
    /// The models by cost, the most expensive first.
    pub models: Vec<String>,
    /// The setting `DAILY_BUDGET_USD`.
    pub daily_budget_usd: f64,
    /// The cost of today in US dollars, including reserved amounts.
    pub today_usd: f64,
    /// The setting `MONTHLY_BUDGET_USD`; `None` for no limit.
    pub monthly_budget_usd: Option<f64>,
    /// The cost of this month in US dollars, including reserved amounts.
    pub month_usd: f64,
    /// The name of the month.
    pub month: String,
    /// The forecast for the month.
    pub forecast: Forecast,
}

/// The figures of one day.
#[derive(Debug, Clone, PartialEq)]
pub struct DayFigures {
    /// The day in the person's time zone.
    pub day: NaiveDate,
    /// The cost in US dollars by model, in the order of [`DaysReport::models`].
    pub cost_usd: Vec<f64>,
    /// The tokens used.
    pub tokens: Usage,
    /// The durations of turns; `None` without turns, or if they are no longer kept.
    pub turns: Option<TurnTimes>,
    /// The outcomes of wakes.
    pub wakes: DayWakes,
}

/// The wakes of a day by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayWakes {
    /// Finished wakes.
    pub done: u32,
    /// Failed wakes.
    pub failed: u32,
    /// Abandoned wakes.
    pub given_up: u32,
    /// Wakes under way, or waiting for the model or for a person.
    pub open: u32,
}

impl DaysReport {
    /// Returns true if these days had neither wakes nor costs.
    pub fn is_empty(&self) -> bool {
        self.days.iter().all(|day| day.wakes == DayWakes::default() && day.tokens == Usage::default())
    }
}

/// Computes the figures of the last `n` days.
pub fn compute_report(store: &Store, config: &Config, now: DateTime<Utc>, n: u64) -> Result<DaysReport, StoreError> {
    let tz = config.timezone;
    let today = now.with_timezone(&tz).date_naive();
    let last_days =
        |n: u64| (0..n).rev().filter_map(|back| today.checked_sub_days(Days::new(back))).collect::<Vec<_>>();
    let bounds = |days: &[NaiveDate]| {
        let end = today.succ_opt().map(|day| day_begin(day, tz));
        days.iter().map(|day| day_begin(*day, tz)).chain(end).collect::<Vec<_>>()
    };
    store.with_snapshot(|| {
        let (days, week) = (last_days(n), last_days(FORECAST_DAYS + 1));
        let paid = store.history().spent_by_day(&bounds(&days))?;
        let of_week = store.history().spent_by_day(&bounds(&week))?;
        let mut by_day: BTreeMap<NaiveDate, f64> = BTreeMap::new();
        for paid in &of_week {
            if let Some(day) = week.get(paid.day as usize) {
                *by_day.entry(*day).or_default() += paid.spent.cost_usd;
            }
        }
        let first_day = store.history().find_first_request_time()?.map(|at| at.with_timezone(&tz).date_naive());
        let budget = Budget::read(store, config, now)?;
        let kept = Kept {
            paid,
            turns: store.history().turn_times_by_day(&bounds(&days))?,
            states: store.history().states_by_day(&bounds(&days))?,
        };
        let (models, days) = kept.compute_figures(&days);
        Ok(DaysReport {
            days,
            models,
            daily_budget_usd: budget.daily_usd,
            today_usd: budget.today_usd,
            monthly_budget_usd: budget.monthly_usd,
            month_usd: budget.month_usd,
            month: now.with_timezone(&tz).format("%B").to_string(),
            forecast: cost::forecast_month(&by_day, first_day, today, budget.month_usd),
        })
    })
}

/// The counts from the database. Each `day` in them is an index into the counted days.
struct Kept {
    paid: Vec<ModelDay>,
    turns: Vec<TurnTimes>,
    states: Vec<StateDay>,
}

impl Kept {
    /// Computes the models and the figures of each day.
    fn compute_figures(&self, days: &[NaiveDate]) -> (Vec<String>, Vec<DayFigures>) {
        let models = self.list_models();
        let figures = days.iter().zip(0_u32..).map(|(day, at)| {
            let mut figures = DayFigures {
                day: *day,
                cost_usd: vec![0.0; models.len()],
                tokens: Usage::default(),
                turns: self.turns.iter().find(|turns| turns.day == at).copied(),
                wakes: DayWakes::default(),
            };
            for paid in self.paid.iter().filter(|paid| paid.day == at) {
                figures.tokens += paid.spent.tokens;
                // A model without a name of its own was merged into the last one.
                let place =
                    models.iter().position(|model| *model == paid.model).unwrap_or(models.len().saturating_sub(1));
                if let Some(usd) = figures.cost_usd.get_mut(place) {
                    *usd += paid.spent.cost_usd;
                }
            }
            for state in self.states.iter().filter(|state| state.day == at) {
                *figures.wakes.counter_mut(state.state) += state.cycles;
            }
            figures
        });
        let figures = figures.collect();
        (models, figures)
    }

    /// Lists the models by cost, the most expensive first. Those beyond the maximum share the last name.
    fn list_models(&self) -> Vec<String> {
        let mut usd: BTreeMap<&str, f64> = BTreeMap::new();
        for paid in &self.paid {
            *usd.entry(&paid.model).or_default() += paid.spent.cost_usd;
        }
        let mut models: Vec<(&str, f64)> = usd.into_iter().collect();
        models.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        let mut names: Vec<String> = models.into_iter().map(|(name, _)| name.to_owned()).collect();
        if names.len() > MAX_MODELS {
            names.truncate(MAX_MODELS - 1);
            names.push(OTHERS.to_owned());
        }
        names
    }
}

impl DayWakes {
    fn counter_mut(&mut self, state: CycleState) -> &mut u32 {
        match state {
            CycleState::Done => &mut self.done,
            CycleState::Failed => &mut self.failed,
            CycleState::Abandoned => &mut self.given_up,
            CycleState::Running | CycleState::Waiting | CycleState::Parked => &mut self.open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_store::Spent;

    fn paid(day: u32, model: &str, cost_usd: f64) -> ModelDay {
        let tokens = Usage { input: 10, output: 1, cache_read: 5, cache_write: 0 };
        ModelDay { day, model: model.to_owned(), spent: Spent { tokens, cost_usd } }
    }

    #[test]
    fn a_day_has_its_costs_by_model_and_its_wakes_by_outcome() {
        let days = [20, 21].map(|day| NaiveDate::from_ymd_opt(2026, 11, day).unwrap());
        let state = |day, state, cycles| StateDay { day, state, cycles };
        let turns = TurnTimes { day: 1, turns: 3, median_ms: 900, p95_ms: 2_000 };
        let kept = Kept {
            paid: vec![paid(0, "cheap", 0.1), paid(0, "dear", 1.0), paid(1, "cheap", 0.2)],
            turns: vec![turns],
            states: vec![
                state(1, CycleState::Done, 4),
                state(1, CycleState::Waiting, 1),
                state(1, CycleState::Parked, 2),
            ],
        };
        let (models, figures) = kept.compute_figures(&days);
        assert_eq!(models, ["dear", "cheap"]);
        assert_eq!(figures.iter().map(|day| day.cost_usd.clone()).collect::<Vec<_>>(), [[1.0, 0.1], [0.0, 0.2]]);
        assert_eq!((figures[0].tokens.input, figures[0].turns, figures[1].turns), (20, None, Some(turns)));
        assert_eq!(figures[1].wakes, DayWakes { done: 4, failed: 0, given_up: 0, open: 3 });
    }

    #[test]
    fn the_cheapest_of_many_models_are_merged() {
        let usd = [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0];
        let paid = usd.iter().map(|usd| paid(0, &format!("m{usd}"), *usd)).collect();
        let kept = Kept { paid, turns: Vec::new(), states: Vec::new() };
        let (models, figures) = kept.compute_figures(&[NaiveDate::from_ymd_opt(2026, 11, 21).unwrap()]);
        assert_eq!(models, ["m7", "m6", "m5", "m4", "others"]);
        assert_eq!(figures[0].cost_usd, [7.0, 6.0, 5.0, 4.0, 6.0]);
    }
}
