//! The cost of model calls: by day and month, by model, reason or tool, with a forecast for the month. `wake cost` and `/cost` show
//! the same report.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Datelike as _, Days, Months, NaiveDate, Utc};

use reveille_base::{types::ChatRef, words::format_count, zone::Tz};
use reveille_config::Config;
use reveille_cycle::{decide::budget::Budget, month_begin};
use reveille_memory::reflect::REFLECTION;
use reveille_model::{content::tool_calls, offered};
use reveille_store::{Entry, PaidRequest, Spent, Store, StoreError};
use reveille_tools::unwrap_call;

use super::{
    parts::{self, PromptParts},
    read::sum_spent,
    since::day_begin,
    units::{compute_share, format_large_number, format_tokens, format_usd},
};

/// The number of past full days that a forecast uses.
pub(super) const FORECAST_DAYS: u64 = 7;
/// The minimum number of full days of use for a forecast.
const MIN_FORECAST_DAYS: usize = 3;
/// The number of days whose questions are listed.
const ASKED_DAYS: usize = 7;
/// The maximum number of wakes whose prompts are analysed, latest first.
const MAX_ANALYSED_WAKES: usize = 50;

/// The grouping of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum CostBy {
    /// By the person's day.
    Day,
    /// By model.
    Model,
    /// By the reason of the wake.
    Reason,
    /// By called tool: the cost of a turn is shared among its calls.
    Tool,
}

/// A query for a cost report.
#[derive(Debug, Clone, Copy)]
pub struct CostQuery {
    /// The start of the report; `None` for the beginning of the month.
    pub since: Option<DateTime<Utc>>,
    /// The grouping.
    pub by: CostBy,
    /// Only this chat, for a guest.
    pub chat: Option<ChatRef>,
    /// True to analyse prompts, which reads journals.
    pub with_parts: bool,
}

/// A cost report. The names in its JSON are stable.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CostReport {
    /// The cost of today in US dollars, including reserved amounts.
    pub today_usd: f64,
    /// The cost of this month in US dollars, including reserved amounts.
    pub month_usd: f64,
    /// The name of the month.
    pub month: String,
    /// The budgets; `None` for guests.
    pub budget: Option<BudgetLeft>,
    /// The start of the period in `rows`.
    pub since: DateTime<Utc>,
    /// The grouping of `rows`.
    pub by: CostBy,
    /// The rows: days in order, other groups by falling cost.
    pub rows: Vec<CostRow>,
    /// The sum of all rows.
    pub total: Spent,
    /// The forecast for the month; `None` for guests.
    pub forecast: Option<Forecast>,
    /// The parts of the latest prompts.
    pub prompts: Option<PromptParts>,
    /// A remark on models with an unknown price; `None` for guests.
    pub unpriced: Option<String>,
    /// The number of questions on each day; empty for guests.
    pub questions: Vec<AskedOnDay>,
}

/// The questions of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct AskedOnDay {
    /// The person's day.
    pub day: NaiveDate,
    /// The number of questions.
    pub asked: usize,
}

/// The remaining budgets.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct BudgetLeft {
    /// `DAILY_BUDGET_USD`.
    pub daily_usd: f64,
    /// The rest of today's budget.
    pub left_today_usd: f64,
    /// `MONTHLY_BUDGET_USD`; `None` for no limit.
    pub monthly_usd: Option<f64>,
    /// The rest of this month's budget.
    pub left_this_month_usd: Option<f64>,
    /// The part of this month's cost that is only reserved.
    pub reserved_usd: f64,
}

/// A row of the report.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CostRow {
    /// The day, model, reason or tool.
    pub name: String,
    /// The number of requests, or of calls if grouped by tool.
    pub requests: usize,
    /// Tokens and cost.
    #[serde(flatten)]
    pub spent: Spent,
}

/// The forecast for the month.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Forecast {
    /// Too few full days of use.
    TooLittle {
        /// The number of full days so far.
        days: usize,
    },
    /// A forecast at the average of the last full days.
    Heading {
        /// The number of days in the average.
        days: usize,
        /// The average in US dollars a day.
        mean_usd: f64,
        /// The expected cost at the end of the month in US dollars.
        month_end_usd: f64,
    },
}

/// Computes a cost report.
pub fn compute_report(
    store: &Store,
    config: &Config,
    now: DateTime<Utc>,
    query: CostQuery,
) -> Result<CostReport, StoreError> {
    store.with_snapshot(|| {
        let tz = config.timezone;
        let (today, month_begin) = (now.with_timezone(&tz).date_naive(), month_begin(now, tz));
        let since = query.since.unwrap_or(month_begin);
        let week_begin = today.checked_sub_days(Days::new(FORECAST_DAYS)).map_or(month_begin, |day| day_begin(day, tz));
        let all = store.history().requests_since(since.min(month_begin).min(week_begin), query.chat)?;
        // A request with an unreadable time counts in every period, so that no cost is left out.
        let sum_since = |since| sum_spent(all.iter().filter(|paid| paid.at.is_none_or(|at| at >= since)));
        let days = sum_by_day(&all, tz);
        let month_usd = sum_since(month_begin).cost_usd;
        let paid: Vec<PaidRequest> = all.iter().filter(|paid| paid.at.is_none_or(|at| at >= since)).cloned().collect();
        let is_for_guest = query.chat.is_some();
        let first_day = store.history().find_first_request_time()?.map(|at| at.with_timezone(&tz).date_naive());
        Ok(CostReport {
            today_usd: sum_since(day_begin(today, tz)).cost_usd,
            month_usd,
            month: now.with_timezone(&tz).format("%B").to_string(),
            budget: if is_for_guest { None } else { Some(compute_budget_left(&Budget::read(store, config, now)?)) },
            since,
            by: query.by,
            rows: build_rows(store, &paid, query.by, tz)?,
            total: sum_spent(&paid),
            forecast: (!is_for_guest).then(|| forecast_month(&days, first_day, today, month_usd)),
            prompts: if query.with_parts { Some(sum_prompt_parts(store, &paid)?) } else { None },
            unpriced: if is_for_guest { None } else { offered::describe_unpriced_models(config) },
            questions: if is_for_guest {
                Vec::new()
            } else {
                count_questions_by_day(&store.approvals().asked_since(since)?, tz)
            },
        })
    })
}

fn count_questions_by_day(asked: &[DateTime<Utc>], tz: Tz) -> Vec<AskedOnDay> {
    let mut days: BTreeMap<NaiveDate, usize> = BTreeMap::new();
    for at in asked {
        *days.entry(at.with_timezone(&tz).date_naive()).or_default() += 1;
    }
    days.into_iter().map(|(day, asked)| AskedOnDay { day, asked }).collect()
}

fn compute_budget_left(budget: &Budget) -> BudgetLeft {
    let Budget { daily_usd, today_usd, monthly_usd, month_usd, reserved_usd, .. } = *budget;
    BudgetLeft {
        daily_usd,
        left_today_usd: (daily_usd - today_usd).max(0.0),
        monthly_usd,
        left_this_month_usd: monthly_usd.map(|monthly_usd| (monthly_usd - month_usd).max(0.0)),
        reserved_usd,
    }
}

fn sum_by_day(paid: &[PaidRequest], tz: Tz) -> BTreeMap<NaiveDate, f64> {
    let mut days = BTreeMap::new();
    for request in paid {
        if let Some(at) = request.at {
            *days.entry(at.with_timezone(&tz).date_naive()).or_default() += request.spent.cost_usd;
        }
    }
    days
}

/// Forecasts with the average of the last seven full days, including idle days but no days before the first use.
pub(super) fn forecast_month(
    days: &BTreeMap<NaiveDate, f64>,
    first: Option<NaiveDate>,
    today: NaiveDate,
    month_usd: f64,
) -> Forecast {
    let full = (1..=FORECAST_DAYS).filter_map(|back| today.checked_sub_days(Days::new(back)));
    let full: Vec<NaiveDate> = full.filter(|day| first.is_some_and(|first| *day >= first)).collect();
    if full.len() < MIN_FORECAST_DAYS {
        return Forecast::TooLittle { days: full.len() };
    }
    let usd_of = |day: &NaiveDate| days.get(day).copied().unwrap_or_default();
    let mean_usd = full.iter().map(usd_of).sum::<f64>() / full.len() as f64;
    let month_end = today.with_day(1).and_then(|day| day.checked_add_months(Months::new(1)));
    let days_left = month_end.map_or(0, |end| end.signed_duration_since(today).num_days() - 1);
    let rest_of_today = (mean_usd - usd_of(&today)).max(0.0);
    Forecast::Heading {
        days: full.len(),
        mean_usd,
        month_end_usd: month_usd + rest_of_today + mean_usd * days_left as f64,
    }
}

fn build_rows(store: &Store, paid: &[PaidRequest], by: CostBy, tz: Tz) -> Result<Vec<CostRow>, StoreError> {
    let mut rows = match by {
        CostBy::Day => {
            let day = |paid: &PaidRequest| match paid.at {
                Some(at) => at.with_timezone(&tz).date_naive().to_string(),
                None => "unknown".to_owned(),
            };
            return Ok(group_by_name(paid, day));
        }
        CostBy::Model => group_by_name(paid, |paid| paid.model.clone()),
        CostBy::Reason => {
            let reasons = store.history().list_cycle_reasons(&list_cycles(paid))?;
            group_by_name(paid, |paid| describe_reason(&paid.cycle_id, reasons.get(&paid.cycle_id)))
        }
        CostBy::Tool => group_by_tool(store, paid)?,
    };
    rows.sort_by(|a, b| b.spent.cost_usd.total_cmp(&a.spent.cost_usd).then_with(|| a.name.cmp(&b.name)));
    Ok(rows)
}

fn list_cycles(paid: &[PaidRequest]) -> Vec<String> {
    let cycles: BTreeSet<&String> = paid.iter().map(|paid| &paid.cycle_id).filter(|id| !id.is_empty()).collect();
    cycles.into_iter().cloned().collect()
}

/// Groups requests by name, in the order of names.
fn group_by_name(paid: &[PaidRequest], name: impl Fn(&PaidRequest) -> String) -> Vec<CostRow> {
    let mut groups: BTreeMap<String, CostRow> = BTreeMap::new();
    for paid in paid {
        add_to_group(&mut groups, name(paid), 1, paid.spent);
    }
    groups.into_values().collect()
}

fn add_to_group(groups: &mut BTreeMap<String, CostRow>, name: String, requests: usize, spent: Spent) {
    let row = groups.entry(name.clone()).or_insert_with(|| CostRow { name, requests: 0, spent: Spent::default() });
    row.requests += requests;
    row.spent.tokens += spent.tokens;
    row.spent.cost_usd += spent.cost_usd;
}

/// Describes the kind of a wake by its first reason. A request outside any cycle embeds texts for the search.
fn describe_reason(cycle_id: &str, reasons: Option<&Vec<String>>) -> String {
    let Some(first) = reasons.and_then(|reasons| reasons.first()) else {
        return if cycle_id.is_empty() { "searching by meaning" } else { "no longer known" }.to_owned();
    };
    let kind = match first.as_str() {
        first if first.starts_with(REFLECTION) => "reflection",
        first if first.starts_with("task ") => "tasks",
        first if first.starts_with("reminder ") => "reminders",
        first if first.contains("by a person") => "your commits",
        first if first.contains(" message") => "messages",
        _ => "other",
    };
    kind.to_owned()
}

/// Groups costs by tool. The cost of a turn is shared evenly among its calls; a turn without calls is an answer.
fn group_by_tool(store: &Store, paid: &[PaidRequest]) -> Result<Vec<CostRow>, StoreError> {
    let mut groups = BTreeMap::new();
    let mut of_cycles: BTreeMap<&str, Vec<&PaidRequest>> = BTreeMap::new();
    for request in paid {
        of_cycles.entry(&request.cycle_id).or_default().push(request);
    }
    for (cycle, mut requests) in of_cycles {
        for turn in store.history().list_cycle_turns(cycle)? {
            let Entry::Turn { content, stop, usage } = turn else { continue };
            // Turns and requests are matched in order, since two of them may have used the same tokens.
            let Some(place) = requests.iter().position(|paid| paid.spent.tokens == usage && !paid.is_discarded) else {
                continue;
            };
            let request = requests.remove(place);
            let calls = tool_calls(&content, &stop);
            if calls.is_empty() {
                add_to_group(&mut groups, "(no call)".to_owned(), 1, request.spent);
            }
            for call in &calls {
                let name =
                    unwrap_call(&call.name, call.input.get()).map_or_else(|| call.name.clone(), |(name, _)| name);
                add_to_group(&mut groups, name, 1, divide_evenly(request.spent, calls.len() as u64));
            }
        }
        for request in requests {
            let name = match (cycle, request.is_discarded, request.is_reserved) {
                ("", ..) => "(searching by meaning)",
                (_, true, _) => "(cut off)",
                (_, _, true) => "(set aside)",
                _ => "(no longer known)",
            };
            add_to_group(&mut groups, name.to_owned(), 1, request.spent);
        }
    }
    Ok(groups.into_values().collect())
}

fn divide_evenly(mut spent: Spent, among: u64) -> Spent {
    let parts = [
        &mut spent.tokens.input,
        &mut spent.tokens.output,
        &mut spent.tokens.cache_read,
        &mut spent.tokens.cache_write,
    ];
    parts.into_iter().for_each(|part| *part /= among.max(1));
    spent.cost_usd /= among.max(1) as f64;
    spent
}

fn sum_prompt_parts(store: &Store, paid: &[PaidRequest]) -> Result<PromptParts, StoreError> {
    let mut all = PromptParts::default();
    for cycle in list_cycles(paid).iter().rev().take(MAX_ANALYSED_WAKES) {
        if let Some(row) = store.cycles().find_cycle(cycle)? {
            let journal = store.history().dated_journal(cycle)?;
            let entries = journal.iter().filter_map(|line| line.entry.as_ref());
            all += parts::estimate_parts(&row.cycle.system, &row.cycle.tools, entries);
        }
    }
    Ok(all)
}

impl CostReport {
    /// Renders the report as short Markdown for a chat.
    pub fn render_for_chat(&self) -> String {
        let mut lines = self.render_totals(|head| format!("**{head}**: "));
        lines.extend(self.paid_rows().map(|row| {
            format!("- {}: {}; {}", row.name, format_cents(row.spent.cost_usd), format_tokens(&row.spent.tokens))
        }));
        lines.extend(self.render_tail());
        lines.join("\n")
    }

    /// Renders the report for a terminal.
    pub fn render_for_terminal(&self, tz: Tz) -> String {
        let mut lines = self.render_totals(|head| format!("{head:<11}"));
        lines.extend(self.render_tail());
        let since = self.since.with_timezone(&tz).format("%a %-d %b %Y %H:%M");
        if self.paid_rows().next().is_some() {
            lines.push(format!("\nBy {}, since {since}:", self.by.name()));
            lines.push(self.render_table());
        }
        if let Some(prompts) = self.prompts.filter(|prompts| prompts.tokens() > 0) {
            let each = |tokens: u64| format_large_number(tokens / prompts.requests.max(1));
            let with_share = |part| format!("{} ({:.0} %)", each(part), compute_share(part, prompts.tokens()));
            lines.push(format!(
                "\nThe last {} had {} tokens on average: orders {}, tools {}, memory {}, exchange {}, estimated by their lengths.",
                format_count(prompts.requests as usize, "prompt"),
                each(prompts.tokens()),
                with_share(prompts.system),
                with_share(prompts.tools),
                with_share(prompts.memory),
                with_share(prompts.conversation)
            ));
        }
        lines.join("\n")
    }

    fn render_totals(&self, head: impl Fn(&str) -> String) -> Vec<String> {
        let describe_budget = |budget: Option<f64>, setting: &str, left: Option<f64>| match (budget, left) {
            (Some(usd), Some(left)) => format!(" of ${usd:.2} ({setting}), ${left:.2} left"),
            _ => String::new(),
        };
        let budget = self.budget.as_ref();
        let today = describe_budget(
            budget.map(|budget| budget.daily_usd),
            "DAILY_BUDGET_USD",
            budget.map(|budget| budget.left_today_usd),
        );
        let month = describe_budget(
            budget.and_then(|budget| budget.monthly_usd),
            "MONTHLY_BUDGET_USD",
            budget.and_then(|budget| budget.left_this_month_usd),
        );
        vec![
            format!("{}{}{today}", head("Today"), format_cents(self.today_usd)),
            format!("{}{}{month}", head(&self.month), format_cents(self.month_usd)),
        ]
    }

    fn render_tail(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.paid_rows().next().is_none() {
            lines.push("No paid model use yet.".to_owned());
        } else if let Some(forecast) = &self.forecast {
            lines.push(forecast.describe(&self.month));
        }
        if let Some(BudgetLeft { reserved_usd, .. }) = self.budget.filter(|budget| budget.reserved_usd > 0.0) {
            lines.push(format!(
                "${reserved_usd:.2} of it is set aside, for a request that is under way or was cut off."
            ));
        }
        lines.extend(self.unpriced.clone());
        lines.extend(self.describe_questions());
        lines
    }

    /// Describes how many questions there were on each of the last days that had any.
    fn describe_questions(&self) -> Option<String> {
        let all: usize = self.questions.iter().map(|day| day.asked).sum();
        let days = self
            .questions
            .iter()
            .rev()
            .take(ASKED_DAYS)
            .map(|on| format!("{} {}", on.day.format("%a %-d %b"), on.asked));
        let days: Vec<String> = days.collect();
        (all > 0).then(|| format!("I asked you {}: {}.", format_count(all, "question"), days.join(", ")))
    }

    fn paid_rows(&self) -> impl Iterator<Item = &CostRow> {
        self.rows.iter().filter(|row| row.spent != Spent::default())
    }

    fn render_table(&self) -> String {
        let what = if self.by == CostBy::Tool { "calls" } else { "requests" };
        let heads = [self.by.name(), "cost", what, "input", "cache read", "cache write", "output"].map(str::to_owned);
        let cells = |name: &str, requests: usize, spent: &Spent| {
            let tokens = spent.tokens;
            [
                name.to_owned(),
                format_usd(spent.cost_usd),
                requests.to_string(),
                format_large_number(tokens.input),
                format_large_number(tokens.cache_read),
                format_large_number(tokens.cache_write),
                format_large_number(tokens.output),
            ]
        };
        let mut rows = vec![heads];
        rows.extend(self.paid_rows().map(|row| cells(&row.name, row.requests, &row.spent)));
        if self.paid_rows().count() > 1 {
            let requests = self.paid_rows().map(|row| row.requests).sum();
            rows.push(cells("all", requests, &self.total));
        }
        let width =
            |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..7).map(width).collect();
        let line = |row: &[String; 7]| {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
                0 => format!("  {cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            cells.collect::<String>().trim_end().to_owned()
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Formats whole cents, to match the budget on the same line.
fn format_cents(usd: f64) -> String {
    format!("${usd:.2}")
}

impl CostBy {
    /// The name of the grouping.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Model => "model",
            Self::Reason => "reason",
            Self::Tool => "tool",
        }
    }
}

impl Forecast {
    /// Renders the forecast as a sentence; `month` is the name of the month.
    pub fn describe(&self, month: &str) -> String {
        match self {
            Self::TooLittle { days } => format!(
                "It's too early to forecast {month}: that takes {MIN_FORECAST_DAYS} full days of use, and there {} so far.",
                match days {
                    0 => "are none".to_owned(),
                    1 => "is one".to_owned(),
                    n => format!("are {n}"),
                }
            ),
            Self::Heading { days, mean_usd, month_end_usd } => format!(
                "About ${month_end_usd:.2} by the end of {month}, at the average of the last {} ({} a day).",
                format_full_days(*days),
                format_usd(*mean_usd)
            ),
        }
    }
}

fn format_full_days(n: usize) -> String {
    if n == 1 { "1 full day".to_owned() } else { format!("{n} full days") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::types::Usage;

    fn row(name: &str, cost_usd: f64, (input, cache_read, output): (u64, u64, u64)) -> CostRow {
        let tokens = Usage { input, output, cache_read, cache_write: 1_000 };
        CostRow { name: name.to_owned(), requests: 3, spent: Spent { tokens, cost_usd } }
    }

    fn costs() -> CostReport {
        let rows =
            vec![row("claude-sonnet-5-5", 12.345, (99_000, 900_000, 12_345_678)), row("claude-haiku", 0.2, (0, 0, 5))];
        let mut total = Spent::default();
        for row in &rows {
            total.tokens += row.spent.tokens;
            total.cost_usd += row.spent.cost_usd;
        }
        CostReport {
            today_usd: 0.5,
            month_usd: 12.545,
            month: "November".to_owned(),
            budget: Some(BudgetLeft {
                daily_usd: 5.0,
                left_today_usd: 4.5,
                monthly_usd: None,
                left_this_month_usd: None,
                reserved_usd: 0.0,
            }),
            since: reveille_base::clock::parse_time("2026-10-31T23:00:00Z").unwrap(),
            by: CostBy::Model,
            rows,
            total,
            forecast: Some(Forecast::Heading { days: 7, mean_usd: 0.61, month_end_usd: 18.04 }),
            prompts: None,
            unpriced: None,
            questions: Vec::new(),
        }
    }

    #[test]
    fn questions_are_counted_by_the_persons_day() {
        let at = |text| reveille_base::clock::parse_time(text).unwrap();
        let asked = [at("2026-11-20T22:30:00Z"), at("2026-11-20T23:30:00Z"), at("2026-11-21T09:00:00Z")];
        let questions = count_questions_by_day(&asked, "Europe/Berlin".parse::<Tz>().unwrap());
        let text = CostReport { questions, ..costs() }.render_for_chat();
        assert!(text.ends_with("\nI asked you 3 questions: Sat 21 Nov 2, Fri 20 Nov 1."), "{text}");
    }

    #[test]
    fn a_chat_gets_the_cost_of_today_the_month_and_each_model() {
        insta::assert_snapshot!(costs().render_for_chat(), @r"
        **Today**: $0.50 of $5.00 (DAILY_BUDGET_USD), $4.50 left
        **November**: $12.54
        - claude-sonnet-5-5: $12.35; 1000 k tokens in (90 % from the cache), 12 M out
        - claude-haiku: $0.20; 1000 tokens in, 5 out
        About $18.04 by the end of November, at the average of the last 7 full days ($0.6100 a day).
        ");
        let budget = BudgetLeft {
            monthly_usd: Some(50.0),
            left_this_month_usd: Some(37.26),
            reserved_usd: 0.2,
            ..costs().budget.unwrap()
        };
        let text = CostReport { budget: Some(budget), ..costs() }.render_for_chat();
        assert!(text.contains("**November**: $12.54 of $50.00 (MONTHLY_BUDGET_USD), $37.26 left"), "{text}");
        assert!(text.contains("$0.20 of it is set aside"), "{text}");
        let none =
            CostReport { rows: Vec::new(), today_usd: 0.0, month_usd: 0.0, budget: None, forecast: None, ..costs() };
        insta::assert_snapshot!(none.render_for_chat(), @r"
        **Today**: $0.00
        **November**: $0.00
        No paid model use yet.
        ");
    }

    #[test]
    fn a_terminal_also_gets_a_table_and_the_parts_of_prompts() {
        let prompts =
            Some(PromptParts { system: 10_000, tools: 50_000, memory: 30_000, conversation: 10_000, requests: 12 });
        insta::assert_snapshot!(CostReport { prompts, ..costs() }.render_for_terminal("Europe/Berlin".parse::<Tz>().unwrap()), @r"
        Today      $0.50 of $5.00 (DAILY_BUDGET_USD), $4.50 left
        November   $12.54
        About $18.04 by the end of November, at the average of the last 7 full days ($0.6100 a day).

        By model, since Sun 1 Nov 2026 00:00:
          model                 cost  requests  input  cache read  cache write  output
          claude-sonnet-5-5   $12.35         3   99 k       900 k         1000    12 M
          claude-haiku       $0.2000         3      0           0         1000       5
          all                 $12.54         6   99 k       900 k         2000    12 M

        The last 12 prompts had 8333 tokens on average: orders 833 (10 %), tools 4166 (50 %), memory 2500 (30 %), exchange 833 (10 %), estimated by their lengths.
        ");
    }

    #[test]
    fn the_forecast_averages_the_last_full_days_including_idle_ones() {
        let day = |day| NaiveDate::from_ymd_opt(2026, 11, day).unwrap();
        let days = BTreeMap::from([(day(14), 7.0), (day(20), 7.0), (day(21), 1.0)]);
        // Seven days, two of them with use: a mean of 2 USD a day. Another 1 USD is expected today, and nine days are left.
        let heading = |first| forecast_month(&days, Some(first), day(21), 15.0);
        assert_eq!(heading(day(1)), Forecast::Heading { days: 7, mean_usd: 2.0, month_end_usd: 15.0 + 1.0 + 18.0 });
        assert_eq!(heading(day(19)), Forecast::TooLittle { days: 2 });
        assert_eq!(heading(day(21)), Forecast::TooLittle { days: 0 });
        assert_eq!(forecast_month(&days, None, day(21), 0.0), Forecast::TooLittle { days: 0 });
        let last = forecast_month(&BTreeMap::new(), Some(day(1)), day(30), 3.0);
        assert_eq!(last, Forecast::Heading { days: 7, mean_usd: 0.0, month_end_usd: 3.0 });
        assert_eq!(
            Forecast::TooLittle { days: 1 }.describe("May"),
            "It's too early to forecast May: that takes 3 full days of use, and there is one so far."
        );
    }

    #[test]
    fn a_wake_is_counted_by_the_first_of_its_reasons() {
        for (reason, kind) in [
            ("2 messages in chat 4242", "messages"),
            ("1 message from the terminal", "messages"),
            ("task \"a message\" has its next step now", "tasks"),
            ("reminder 3", "reminders"),
            ("reflection on 2026-11-20", "reflection"),
            ("3 commits by a person", "your commits"),
            ("undo 20261121T140000Z-1", "other"),
        ] {
            assert_eq!(describe_reason("x", Some(&vec![reason.to_owned(), "reminder 1".to_owned()])), kind, "{reason}");
        }
        assert_eq!(
            (describe_reason("", None).as_str(), describe_reason("x", None).as_str()),
            ("searching by meaning", "no longer known")
        );
    }

    #[test]
    fn a_share_of_a_turn_is_even() {
        let spent = Spent { tokens: Usage { input: 10, output: 4, cache_read: 0, cache_write: 6 }, cost_usd: 1.0 };
        assert_eq!(
            divide_evenly(spent, 2),
            Spent { tokens: Usage { input: 5, output: 2, cache_read: 0, cache_write: 3 }, cost_usd: 0.5 }
        );
        assert_eq!(divide_evenly(spent, 0), spent);
    }
}
