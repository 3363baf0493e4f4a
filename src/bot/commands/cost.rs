//! `/cost`: what thinking has cost, today and this month, by model, of which budget.

use chrono::{DateTime, Datelike as _, NaiveTime, Utc};
use chrono_tz::Tz;

use super::Desk;
use crate::{
    cycle::day_begin,
    queue::{Result, Spent},
    schedule,
};

/// What was spent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cost {
    today: Spent,
    month: Vec<(String, Spent)>,
    month_name: String,
    budget_usd: f64,
}

impl Cost {
    pub(super) fn gather(desk: &Desk<'_>) -> Result<Self> {
        let (now, tz) = (desk.now, desk.config.timezone);
        let month = desk.store.spent_by_model(month_begin(now, tz))?;
        Ok(Self {
            today: desk.store.spent_since(day_begin(now, tz))?,
            month: month.into_iter().filter(|(_, spent)| *spent != Spent::default()).collect(),
            month_name: now.with_timezone(&tz).format("%B").to_string(),
            budget_usd: desk.config.daily_budget_usd,
        })
    }

    pub(super) fn text(&self) -> String {
        let total: f64 = self.month.iter().fold(0.0, |sum, (_, spent)| sum + spent.cost_usd);
        let mut lines = vec![
            format!("**Today**: ${:.2} of ${:.2} (DAILY_BUDGET_USD)", self.today.cost_usd, self.budget_usd),
            format!("**{}**: ${total:.2}", self.month_name),
        ];
        lines.extend(self.month.iter().map(|(model, spent)| format!("- {model}: {}", described(spent))));
        if self.month.is_empty() {
            lines.push("Nothing was asked of a mind that costs anything.".to_owned());
        }
        lines.join("\n")
    }
}

fn described(spent: &Spent) -> String {
    let tokens = spent.tokens;
    let read = tokens.input + tokens.cache_read + tokens.cache_write;
    let cached = if read == 0 { 0.0 } else { tokens.cache_read as f64 / read as f64 * 100.0 };
    format!(
        "${:.2}; {} tokens in, {cached:.0} % of them from the cache, {} out",
        spent.cost_usd,
        thousands(read),
        thousands(tokens.output)
    )
}

fn thousands(n: u64) -> String {
    match n {
        ..10_000 => n.to_string(),
        10_000..10_000_000 => format!("{} k", n / 1_000),
        _ => format!("{} M", n / 1_000_000),
    }
}

fn month_begin(now: DateTime<Utc>, tz: Tz) -> DateTime<Utc> {
    let today = now.with_timezone(&tz).date_naive();
    let first = today.with_day(1).unwrap_or(today);
    schedule::resolve(first.and_time(NaiveTime::MIN), tz).at.min(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{clock::parse_time, model::Usage};

    #[test]
    fn today_this_month_and_by_model() {
        let spent = |cost_usd, input, cache_read, output| Spent {
            tokens: Usage { input, output, cache_read, cache_write: 1_000 },
            cost_usd,
        };
        let cost = Cost {
            today: spent(0.5, 1, 1, 1),
            month: vec![
                ("claude-sonnet-5-5".to_owned(), spent(12.345, 99_000, 900_000, 12_345_678)),
                ("claude-haiku".to_owned(), spent(0.2, 0, 0, 5)),
            ],
            month_name: "November".to_owned(),
            budget_usd: 5.0,
        };
        insta::assert_snapshot!(cost.text(), @r"
        **Today**: $0.50 of $5.00 (DAILY_BUDGET_USD)
        **November**: $12.54
        - claude-sonnet-5-5: $12.35; 1000 k tokens in, 90 % of them from the cache, 12 M out
        - claude-haiku: $0.20; 1000 tokens in, 0 % of them from the cache, 5 out
        ");
        let none = Cost { today: Spent::default(), month: Vec::new(), ..cost };
        insta::assert_snapshot!(none.text(), @r"
        **Today**: $0.00 of $5.00 (DAILY_BUDGET_USD)
        **November**: $0.00
        Nothing was asked of a mind that costs anything.
        ");
    }

    #[test]
    fn a_month_begins_on_the_persons_first() {
        let begin = |now: &str, tz| month_begin(parse_time(now).unwrap(), tz).to_rfc3339();
        assert_eq!(begin("2026-11-21T14:00:00Z", Tz::Europe__Berlin), "2026-10-31T23:00:00+00:00");
        assert_eq!(begin("2026-11-01T02:00:00Z", Tz::America__New_York), "2026-10-01T04:00:00+00:00");
    }
}
