//! Measures the project's figures side by side with their yardsticks in one run: `scripts/bench`.
//!
//! The programs are real, each in a world of its own; Telegram and Claude are the integration tests' fakes on loopback. The measured
//! thing and its yardstick take turns, and a figure's ratio is the median of the rounds' ratios. A disturbance of the machine thus
//! affects both. A missed bound makes the run fail.

// All of this is test code; the explicit `cfg(test)` tells clippy so.
#[cfg(test)]
mod bot;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod live;
#[cfg(test)]
mod measure;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod message;
#[cfg(test)]
mod offering;
#[cfg(test)]
mod rss;
#[cfg(test)]
mod searching;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod storing;
#[cfg(test)]
#[expect(dead_code, reason = "the tests need more of it than the benchmark")]
#[path = "../../tests/integration/support/mod.rs"]
mod support;
#[cfg(test)]
mod table;
#[cfg(test)]
mod voice;

use std::{io::Write as _, process::ExitCode};

use table::{Row, Verdict};

/// Measures one figure, or several that come from the same rounds.
type Figure = fn(rounds: usize) -> Vec<Row>;

/// The figures by name, each with its default number of rounds.
const FIGURES: &[(&str, usize, Figure)] = &[
    ("idle", 40, idle::measure),
    ("message", 20, message::measure),
    ("bot", 1, bot::measure),
    ("commands", 10, commands::measure),
    ("stop", 5, stop::measure),
    ("live", 10, live::measure),
    ("storing", 20, storing::measure),
    ("memory", 20, memory::measure),
    ("searching", 50, searching::measure),
    ("offering", 1, offering::measure),
    ("sizes", 1, sizes::measure),
    ("voice", 10, voice::measure),
    ("fleet", 3, fleet::measure),
];

const USAGE: &str = "Usage: scripts/bench [--rounds N] [idle|message|bot|commands|stop|live|storing|memory|searching|offering|sizes|voice|fleet]...\n";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((first, rest)) = arguments.split_first()
        && first == rss::FLAG
    {
        return rss::run(rest);
    }
    // Cargo passes --bench for benchmarks, and no argument when it runs all targets as tests.
    if !arguments.iter().any(|argument| argument == "--bench") {
        print("The benchmark runs with `scripts/bench`.\n");
        return ExitCode::SUCCESS;
    }
    let Some((names, rounds)) = chosen(arguments) else {
        print(USAGE);
        return ExitCode::from(2);
    };
    let mut rows = Vec::new();
    for (name, its_rounds, figure) in FIGURES {
        if names.is_empty() || names.iter().any(|chosen| chosen == name) {
            // Progress for people; stdout is the table.
            writeln!(std::io::stderr(), "measuring: {name}").ok();
            rows.extend(figure(rounds.unwrap_or(*its_rounds)));
        }
    }
    print(&table::render(&rows));
    if rows.iter().any(|row| row.verdict() == Verdict::Missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The chosen figures and number of rounds; `None` if the arguments are invalid.
fn chosen(arguments: Vec<String>) -> Option<(Vec<String>, Option<usize>)> {
    let (mut names, mut rounds) = (Vec::new(), None);
    let mut arguments = arguments.into_iter().filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        if argument == "--rounds" {
            rounds = Some(arguments.next()?.parse().ok().filter(|n| *n > 0)?);
        } else if FIGURES.iter().any(|(name, ..)| *name == argument) {
            names.push(argument);
        } else {
            return None;
        }
    }
    Some((names, rounds))
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}
