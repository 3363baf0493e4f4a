//! `/cost`: what thinking has cost, today and this month, by model, of which budget.

use super::Desk;
use crate::{
    cycle::{decide::budget::Budget, month_begin},
    store::{Result, Spent},
};

/// What was spent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cost {
    budget: Budget,
    month: Vec<(String, Spent)>,
    month_name: String,
}

impl Cost {
    pub(super) fn gather(desk: &Desk<'_>) -> Result<Self> {
        let (now, tz) = (desk.now, desk.config.timezone);
        let month = desk.store.spent_by_model(month_begin(now, tz))?;
        Ok(Self {
            budget: Budget::look(desk.store, desk.config, now)?,
            month: month.into_iter().filter(|(_, spent)| *spent != Spent::default()).collect(),
            month_name: now.with_timezone(&tz).format("%B").to_string(),
        })
    }

    pub(super) fn text(&self) -> String {
        let Budget { today_usd, month_usd, daily_usd, monthly_usd, reserved_usd, .. } = &self.budget;
        let of_month = monthly_usd.map(|usd| format!(" of ${usd:.2} (MONTHLY_BUDGET_USD)")).unwrap_or_default();
        let mut lines = vec![
            format!("**Today**: ${today_usd:.2} of ${daily_usd:.2} (DAILY_BUDGET_USD)"),
            format!("**{}**: ${month_usd:.2}{of_month}", self.month_name),
        ];
        lines.extend(self.month.iter().map(|(model, spent)| format!("- {model}: {}", described(spent))));
        if self.month.is_empty() {
            lines.push("No paid model use yet.".to_owned());
        }
        if *reserved_usd > 0.0 {
            lines.push(format!(
                "${reserved_usd:.2} of it is set aside, for a request that is under way or was cut off."
            ));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cycle::decide::budget, types::Usage};

    #[test]
    fn today_this_month_and_by_model() {
        let spent = |cost_usd, input, cache_read, output| Spent {
            tokens: Usage { input, output, cache_read, cache_write: 1_000 },
            cost_usd,
        };
        let cost = Cost {
            budget: budget::of((0.5, 5.0), (12.545, None)),
            month: vec![
                ("claude-sonnet-5-5".to_owned(), spent(12.345, 99_000, 900_000, 12_345_678)),
                ("claude-haiku".to_owned(), spent(0.2, 0, 0, 5)),
            ],
            month_name: "November".to_owned(),
        };
        insta::assert_snapshot!(cost.text(), @r"
        **Today**: $0.50 of $5.00 (DAILY_BUDGET_USD)
        **November**: $12.54
        - claude-sonnet-5-5: $12.35; 1000 k tokens in, 90 % of them from the cache, 12 M out
        - claude-haiku: $0.20; 1000 tokens in, 0 % of them from the cache, 5 out
        ");
        let mut set_aside = budget::of((0.5, 5.0), (12.745, Some(50.0)));
        set_aside.reserved_usd = 0.2;
        let text = Cost { budget: set_aside, ..cost.clone() }.text();
        assert!(text.contains("**November**: $12.74 of $50.00 (MONTHLY_BUDGET_USD)"), "{text}");
        assert!(text.contains("$0.20 of it is set aside"), "{text}");
        let none = Cost { budget: budget::of((0.0, 5.0), (0.0, None)), month: Vec::new(), ..cost };
        insta::assert_snapshot!(none.text(), @r"
        **Today**: $0.00 of $5.00 (DAILY_BUDGET_USD)
        **November**: $0.00
        No paid model use yet.
        ");
    }
}
