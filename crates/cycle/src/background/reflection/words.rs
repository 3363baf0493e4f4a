//! The opening of a reflection's cycle: the request, the effects of the rules, the days' log and conversations. Untrusted text is left out.

use std::ops::Range;

use chrono::NaiveDate;

use reveille_base::{words::format_local_time, zone::Tz};
use reveille_memory as memory;
use reveille_memory::{others, reflect::LookedBack};
use reveille_store::Exchange;

use crate::decide::brief::{clip, escape, escape_attribute};

/// The maximum length of a shown entry, in characters.
const EXCHANGE_CHARS_MAX: usize = 600;

/// The maximum length of all shown entries, in characters.
const EXCHANGES_CHARS_MAX: usize = 40_000;

/// The maximum length of the days' log, in characters.
const LOG_CHARS_MAX: usize = 30_000;

/// The request to the model.
const ASKED: &str = "\
Nobody has asked for anything: look back at these days, and write down what will matter. The rules have already done what \
<done> lists. Now:
1. Sum up each day with `day_summary`: what it was about, what came of it, its key facts. It takes the place of the rule's list.
2. What was learnt and isn't known yet: `remember`. What you have seen three times or more is a pattern: remember it with its \
sources (days or message numbers). Twice is a coincidence.
3. What has changed: `forget` the old fact and `remember` the new one. What your person wrote by hand isn't yours to change.
4. Facts that can't both be so: `contradiction`, which asks your person. Never choose for them.
5. If a fact may stop being true, add the day as of which it holds: “… (as of 2026-05-03)”.
Don't write to your person. If there is nothing to add, end without a word.";

/// The days to reflect on, as the model sees them.
pub(crate) struct ReflectedDays<'a> {
    /// The days, without today.
    pub(crate) days: &'a Range<NaiveDate>,
    /// The effects and findings of the rules.
    pub(crate) found: &'a LookedBack,
    /// The logs that may hold entries of the days, the oldest first.
    pub(crate) logs: &'a [String],
    /// The exchanges of the owner's chats.
    pub(crate) exchanges: &'a [Exchange],
    /// The person's time zone.
    pub(crate) tz: Tz,
}

/// Renders the opening's block.
pub(crate) fn render_opening(reflected: &ReflectedDays<'_>) -> String {
    let mut text = format!("<reflection>\n{ASKED}\n<done>");
    for line in reflected.found.receipts.iter().chain(&reflected.found.health) {
        text.push_str(&format!("\n- {}", escape(line)));
    }
    text.push_str("\n</done>\n<log>");
    text.push_str(&clip(&render_log(reflected), LOG_CHARS_MAX));
    text.push_str("\n</log>\n<exchanges>");
    text.push_str(&clip(&render_exchanges(reflected), EXCHANGES_CHARS_MAX));
    text.push_str("\n</exchanges>\n</reflection>");
    text
}

fn render_log(reflected: &ReflectedDays<'_>) -> String {
    let mut text = String::new();
    for log in reflected.logs {
        let (log, _) = others::remove_untrusted(memory::EPISODIC_MEMORY, log, None);
        for day in memory::episodic::Log::parse(&log).0.days.iter().filter(|day| reflected.days.contains(&day.date)) {
            for entry in &day.entries {
                let at = entry.time.map(|time| time.format(" %H:%M").to_string()).unwrap_or_default();
                text.push_str(&format!("\n{}{at} {}", day.date, escape(&entry.text)));
            }
        }
    }
    text
}

fn render_exchanges(reflected: &ReflectedDays<'_>) -> String {
    let mut text = String::new();
    let is_reflected = |day: NaiveDate| reflected.days.contains(&day);
    for one in reflected.exchanges.iter().filter(|one| one.taint.is_none()) {
        let Some(at) = one.at.filter(|at| is_reflected(at.with_timezone(&reflected.tz).date_naive())) else { continue };
        let who = escape_attribute(one.from.as_deref().unwrap_or("you"));
        let words = escape(&clip(&one.text, EXCHANGE_CHARS_MAX));
        let (at, number) = (format_local_time(at, reflected.tz), one.format_number());
        text.push_str(&format!("\n<said by=\"{who}\" at=\"{at}\" entry=\"{number}\">{words}</said>"));
    }
    text
}
