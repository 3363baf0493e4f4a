//! The budgets for AI models: the limits per day and per month of the person's calendar, and the spending.
//!
//! A cap is reached once it is spent: messages then wait until the day or month ends, or until the cap is changed. If some money is left
//! but a request costs too much, only its chat waits ([`Budget::no_room`]), since other chats' requests may cost less.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike as _, NaiveDate, NaiveTime, TimeDelta, TimeZone as _, Utc};

use reveille_base::{schedule, types::ChatRef, zone::Tz};
use reveille_config::Config;
use reveille_store::{Cap, SpendCap, Store, StoreError};

/// Prefix of the keys, followed by a chat, that hold the cap without room for a request: see [`Budget::format_mark`].
const NO_ROOM: &str = "budget-no-room/";
/// The separator between a mark and the possible cost of its request.
const NEEDS: &str = " needs ";
/// Replaces the chat for background jobs.
const NO_CHAT: &str = "none";

/// The key for a cap without room for a request of this chat.
pub(crate) fn no_room_key(chat: Option<ChatRef>) -> String {
    format!("{NO_ROOM}{}", chat.map_or_else(|| NO_CHAT.to_owned(), |id| id.to_string()))
}

/// Parses the chat of such a key.
fn parse_chat(key: &str) -> Option<Option<ChatRef>> {
    match key.strip_prefix(NO_ROOM)? {
        NO_CHAT => Some(None),
        id => id.parse().ok().map(Some),
    }
}

/// The kind of work that waits for a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// An unanswered message.
    Message,
    /// Further work on an answered message, or a background job.
    Work,
}

impl Waits {
    /// Returns the beginning of a sentence about the waiting work, and its continuation.
    fn describe(self) -> (&'static str, &'static str) {
        match self {
            Self::Message => ("Your message is safe", "I'll answer it"),
            Self::Work => ("What I was working on is safe", "I'll continue it"),
        }
    }
}

/// The caps and the spending.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// The person's day.
    today: NaiveDate,
    day_begin: DateTime<Utc>,
    month_begin: DateTime<Utc>,
    /// Spent today, in US dollars, including reservations.
    pub today_usd: f64,
    /// Spent this month, in US dollars, including reservations.
    pub month_usd: f64,
    /// Reserved this month for requests with an unknown end, in US dollars.
    pub reserved_usd: f64,
    /// The daily cap, in US dollars.
    pub daily_usd: f64,
    /// The monthly cap, in US dollars. `None` if there is no cap.
    pub monthly_usd: Option<f64>,
    /// The chats whose request had no room, with the cap (chat `None`: background jobs).
    pub no_room: BTreeMap<Option<ChatRef>, Cap>,
    /// The possible cost of such a request, in US dollars, if it was noted.
    pub needs_usd: BTreeMap<Option<ChatRef>, f64>,
}

impl Budget {
    /// Builds a budget from today's and this month's spending and caps, in US dollars.
    pub fn from_spending(
        (now, tz): (DateTime<Utc>, Tz),
        (today_usd, daily_usd): (f64, f64),
        (month_usd, monthly_usd): (f64, Option<f64>),
    ) -> Self {
        Self {
            today: now.with_timezone(&tz).date_naive(),
            day_begin: day_begin(now, tz),
            month_begin: month_begin(now, tz),
            today_usd,
            month_usd,
            reserved_usd: 0.0,
            daily_usd,
            monthly_usd,
            no_room: BTreeMap::new(),
            needs_usd: BTreeMap::new(),
        }
    }

    /// Reads the budget.
    pub fn read(store: &Store, config: &Config, now: DateTime<Utc>) -> Result<Self, StoreError> {
        let tz = config.timezone;
        let today_usd = store.ledger().spent_since(day_begin(now, tz))?.cost_usd;
        let month_usd = store.ledger().spent_since(month_begin(now, tz))?.cost_usd;
        let of_day = (today_usd, config.daily_budget_usd);
        let mut budget = Self::from_spending((now, tz), of_day, (month_usd, config.monthly_budget_usd));
        budget.reserved_usd = store.ledger().reserved_since(budget.month_begin)?;
        let marks = store.maintenance().handled_values(NO_ROOM)?;
        budget.no_room = budget.list_chats_without_room(&marks);
        let needs = |mark: &String| mark.split_once(NEEDS).and_then(|(_, usd)| usd.parse().ok());
        budget.needs_usd = marks.iter().filter_map(|(key, mark)| parse_chat(key).zip(needs(mark))).collect();
        Ok(budget)
    }

    /// Returns the valid marks.
    fn list_chats_without_room(&self, marks: &BTreeMap<String, String>) -> BTreeMap<Option<ChatRef>, Cap> {
        let cap = |mark: &str| {
            let mark = mark.split_once(NEEDS).map_or(mark, |(mark, _)| mark);
            [Cap::Month, Cap::Day].into_iter().find(|cap| self.format_mark(*cap).as_deref() == Some(mark))
        };
        marks.iter().filter_map(|(key, mark)| parse_chat(key).zip(cap(mark))).collect()
    }

    /// Explains why a budget prevents requests for this chat, as a sentence without its end: the budget is spent, or less is left than the
    /// next request may cost. `None` if no budget is in the way.
    pub fn find_obstacle(&self, chat: Option<ChatRef>) -> Option<String> {
        if let Some(cap) = self.find_reached_cap() {
            let (_, may_usd) = self.amounts(cap);
            return Some(match may_usd {
                Some(usd) if usd <= 0.0 => format!("{} is 0, so nothing may be asked", cap.setting_name()),
                _ => format!("{} budget is spent ({})", cap.possessive(), cap.setting_name()),
            });
        }
        let cap = *self.no_room.get(&chat)?;
        let (spent_usd, may_usd) = self.amounts(cap);
        let left_usd = (may_usd.unwrap_or(spent_usd) - spent_usd).max(0.0);
        Some(match self.needs_usd.get(&chat) {
            Some(needs_usd) => format!(
                "the next call may cost up to ${needs_usd:.2}, but only ${left_usd:.2} of {} budget is left ({})",
                cap.possessive(),
                cap.setting_name()
            ),
            None => {
                format!("{} budget has too little left for the next call ({})", cap.possessive(), cap.setting_name())
            }
        })
    }

    /// Returns the smallest value of the setting with room for the blocked request, rounded up to whole cents.
    pub fn enough_usd(&self, chat: Option<ChatRef>) -> Option<f64> {
        let cap = *self.no_room.get(&chat)?;
        let (spent_usd, _) = self.amounts(cap);
        Some(((spent_usd + self.needs_usd.get(&chat)?) * 100.0).ceil() / 100.0)
    }

    /// The mark for a request without room, with its possible cost.
    pub(crate) fn format_request_mark(&self, cap: Cap, needs_usd: f64) -> String {
        format!("{}{NEEDS}{needs_usd}", self.format_mark(cap).unwrap_or_default())
    }

    /// Returns the reached cap. The month's cap comes before the day's, because it lasts longer.
    pub fn find_reached_cap(&self) -> Option<Cap> {
        [Cap::Month, Cap::Day].into_iter().find(|cap| {
            let (spent_usd, most_usd) = self.amounts(*cap);
            most_usd.is_some_and(|most_usd| spent_usd >= most_usd)
        })
    }

    /// The caps, for a reservation.
    pub fn caps(&self) -> Vec<SpendCap> {
        let month = self.monthly_usd.map(|usd| SpendCap { cap: Cap::Month, since: self.month_begin, usd });
        month.into_iter().chain([SpendCap { cap: Cap::Day, since: self.day_begin, usd: self.daily_usd }]).collect()
    }

    /// The mark for a cap without room, made of its day or month and its amount. A changed amount may have room again.
    pub fn format_mark(&self, cap: Cap) -> Option<String> {
        let (_, most_usd) = self.amounts(cap);
        let day = match cap {
            Cap::Day => self.today,
            Cap::Month => self.today.with_day(1).unwrap_or(self.today),
        };
        most_usd.map(|usd| format!("{} {day} {usd}", cap.name()))
    }

    /// The key of the notice that work waits in a chat without an open message, so that the notice is sent once per mark.
    pub(crate) fn work_key(&self, chat: ChatRef, cap: Cap) -> String {
        format!("budget/{chat}/{}", self.format_mark(cap).unwrap_or_default())
    }

    /// Renders the notice for a chat. `most_usd` is the possible cost of the request without room.
    pub fn render_notice(&self, cap: Cap, most_usd: f64, waits: Waits) -> String {
        let (spent_usd, may_usd) = self.amounts(cap);
        let (setting, name, until) = (cap.setting_name(), cap.name(), cap.describe_end());
        let (kept, goes_on) = waits.describe();
        match may_usd {
            Some(usd) if usd <= 0.0 => {
                format!("I can't use the AI model, because {setting} is 0. {kept}; {goes_on} once you raise it.")
            }
            Some(usd) if most_usd > usd => format!(
                "This may cost up to ${most_usd:.2}, more than I may spend in a {name} ({setting} is {usd}). \
                 {kept}; {goes_on} once you raise it."
            ),
            Some(usd) if spent_usd < usd && spent_usd + most_usd > usd => {
                let whose = if cap == Cap::Day { "Today's" } else { "This month's" };
                format!(
                    "{whose} budget has ${:.2} left, and this may cost up to ${most_usd:.2} ({setting} is {usd}). {kept}; \
                     {goes_on} {until}, or once you raise it.",
                    usd - spent_usd
                )
            }
            _ => {
                let whose = if cap == Cap::Day { "Today's" } else { "This month's" };
                format!("{whose} budget is spent ({setting}). {kept}; {goes_on} {until}.")
            }
        }
    }

    /// Renders the budget for people: `0.20 of 5.00 USD today, 3.10 of 50.00 this month; 0.15 of it set aside …`.
    pub fn describe(&self) -> String {
        describe_spending((self.today_usd, self.daily_usd), (self.month_usd, self.monthly_usd), self.reserved_usd)
    }

    /// Returns the spending under a cap, and the cap's amount.
    fn amounts(&self, cap: Cap) -> (f64, Option<f64>) {
        match cap {
            Cap::Day => (self.today_usd, Some(self.daily_usd)),
            Cap::Month => (self.month_usd, self.monthly_usd),
        }
    }
}

/// Renders spending, caps and reservations as [`Budget::describe`] does.
pub fn describe_spending(today: (f64, f64), month: (f64, Option<f64>), reserved_usd: f64) -> String {
    let (today_usd, daily_usd) = today;
    let month = match month {
        (usd, Some(most_usd)) => format!(", {usd:.2} of {most_usd:.2} this month"),
        (usd, None) => format!(", {usd:.2} this month"),
    };
    let reserved = if reserved_usd > 0.0 {
        format!("; {reserved_usd:.2} of it set aside for a request under way or cut off")
    } else {
        String::new()
    };
    format!("{today_usd:.2} of {daily_usd:.2} USD today{month}{reserved}")
}

/// The instant when the person's day began.
pub fn day_begin(now: DateTime<Utc>, tz: Tz) -> DateTime<Utc> {
    let today = now.with_timezone(&tz).date_naive();
    let begin = schedule::resolve_local_time(today.and_time(NaiveTime::MIN), tz).at;
    // On a day with two midnights the first counts; never later than now.
    if begin > now { tz.from_utc_datetime(&(now - TimeDelta::days(1)).naive_utc()).with_timezone(&Utc) } else { begin }
}

/// The instant when the person's month began; never later than now.
pub fn month_begin(now: DateTime<Utc>, tz: Tz) -> DateTime<Utc> {
    let today = now.with_timezone(&tz).date_naive();
    let first = today.with_day(1).unwrap_or(today);
    schedule::resolve_local_time(first.and_time(NaiveTime::MIN), tz).at.min(now)
}

/// A budget on 21 November with these amounts spent and allowed.
#[cfg(test)]
pub(crate) fn of(of_day: (f64, f64), of_month: (f64, Option<f64>)) -> Budget {
    let now = reveille_base::clock::parse_time("2026-11-21T14:00:00Z").unwrap();
    Budget::from_spending((now, "Europe/Berlin".parse().unwrap()), of_day, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::parse_time;

    fn budget(daily_usd: f64, monthly_usd: Option<f64>) -> Budget {
        of((1.0, daily_usd), (20.0, monthly_usd))
    }

    #[test]
    fn a_cap_is_reached_when_it_is_spent_and_the_months_is_told_first() {
        assert_eq!(budget(5.0, None).find_reached_cap(), None);
        assert_eq!(budget(5.0, Some(20.1)).find_reached_cap(), None);
        assert_eq!(budget(1.0, None).find_reached_cap(), Some(Cap::Day));
        assert_eq!(budget(5.0, Some(20.0)).find_reached_cap(), Some(Cap::Month));
        assert_eq!(budget(1.0, Some(20.0)).find_reached_cap(), Some(Cap::Month));
        assert_eq!(budget(0.0, None).find_reached_cap(), Some(Cap::Day));
    }

    #[test]
    fn a_cap_has_no_room_for_one_chat_until_its_time_is_over_or_it_is_changed() {
        for cap in [Cap::Day, Cap::Month] {
            let full = budget(5.0, Some(50.0));
            let marks: BTreeMap<String, String> = [Some(ChatRef::from_telegram(7)), None]
                .map(|chat| (no_room_key(chat), full.format_mark(cap).unwrap()))
                .into();
            assert_eq!(
                (full.list_chats_without_room(&marks), full.find_reached_cap()),
                ([(Some(ChatRef::from_telegram(7)), cap), (None, cap)].into(), None)
            );
            let other = |change: &dyn Fn(&mut Budget)| {
                let mut other = full.clone();
                change(&mut other);
                other.list_chats_without_room(&marks).get(&Some(ChatRef::from_telegram(7))).copied()
            };
            let day = |month, day| NaiveDate::from_ymd_opt(2026, month, day).unwrap();
            assert_eq!(other(&|it| it.today = day(11, 22)), (cap == Cap::Month).then_some(cap));
            assert_eq!(other(&|it| it.today = day(12, 1)), None);
            assert_eq!(other(&|it| it.daily_usd = 5.5), (cap == Cap::Month).then_some(cap));
            assert_eq!(other(&|it| it.monthly_usd = Some(50.5)), (cap == Cap::Day).then_some(cap));
            assert_eq!(other(&|it| it.monthly_usd = None), (cap == Cap::Day).then_some(cap));
        }
        assert_eq!(budget(5.0, None).format_mark(Cap::Month), None);
    }

    #[test]
    fn a_chat_is_told_which_cap_and_until_when() {
        let both = budget(5.0, Some(50.0));
        insta::assert_snapshot!(both.render_notice(Cap::Day, 0.2, Waits::Message), @"Today's budget is spent (DAILY_BUDGET_USD). Your message is safe; I'll answer it tomorrow.");
        insta::assert_snapshot!(both.render_notice(Cap::Month, 0.2, Waits::Message), @"This month's budget is spent (MONTHLY_BUDGET_USD). Your message is safe; I'll answer it when the next month begins.");
        insta::assert_snapshot!(both.render_notice(Cap::Day, 5.25, Waits::Message), @"This may cost up to $5.25, more than I may spend in a day (DAILY_BUDGET_USD is 5). Your message is safe; I'll answer it once you raise it.");
        insta::assert_snapshot!(both.render_notice(Cap::Day, 0.2, Waits::Work), @"Today's budget is spent (DAILY_BUDGET_USD). What I was working on is safe; I'll continue it tomorrow.");
        assert!(
            budget(5.0, Some(0.0)).render_notice(Cap::Month, 0.2, Waits::Message).contains("MONTHLY_BUDGET_USD is 0")
        );
    }

    #[test]
    fn a_budget_with_too_little_left_is_not_called_spent() {
        let mut budget = of((0.0, 0.03), (0.0, None));
        budget.no_room = [(Some(ChatRef::from_telegram(7)), Cap::Day)].into();
        budget.needs_usd = [(Some(ChatRef::from_telegram(7)), 0.19)].into();
        insta::assert_snapshot!(budget.find_obstacle(Some(ChatRef::from_telegram(7))).unwrap(), @"the next call may cost up to $0.19, but only $0.03 of today's budget is left (DAILY_BUDGET_USD)");
        assert_eq!(
            (budget.enough_usd(Some(ChatRef::from_telegram(7))), budget.find_obstacle(None)),
            (Some(0.19), None)
        );
        let some_left = of((4.9, 5.0), (4.9, None));
        insta::assert_snapshot!(some_left.render_notice(Cap::Day, 0.19, Waits::Message), @"Today's budget has $0.10 left, and this may cost up to $0.19 (DAILY_BUDGET_USD is 5). Your message is safe; I'll answer it tomorrow, or once you raise it.");
        let spent = of((5.0, 5.0), (5.0, None));
        assert!(spent.find_obstacle(None).unwrap().contains("today's budget is spent"));
        // Marks from before the amount was noted still hold.
        let marks = |mark| BTreeMap::from([(no_room_key(Some(ChatRef::from_telegram(7))), mark)]);
        let of_mark =
            |mark| some_left.list_chats_without_room(&marks(mark)).get(&Some(ChatRef::from_telegram(7))).copied();
        assert_eq!(of_mark(some_left.format_mark(Cap::Day).unwrap()), Some(Cap::Day));
        assert_eq!(of_mark(some_left.format_request_mark(Cap::Day, 0.19)), Some(Cap::Day));
    }

    #[test]
    fn a_month_begins_on_the_persons_first() {
        let begin = |now: &str, tz| month_begin(parse_time(now).unwrap(), tz).to_rfc3339();
        assert_eq!(begin("2026-11-21T14:00:00Z", "Europe/Berlin".parse::<Tz>().unwrap()), "2026-10-31T23:00:00+00:00");
        assert_eq!(
            begin("2026-11-01T02:00:00Z", "America/New_York".parse::<Tz>().unwrap()),
            "2026-10-01T04:00:00+00:00"
        );
    }
}
