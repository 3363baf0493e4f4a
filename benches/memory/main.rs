//! Measures the quality of memory search: `scripts/bench-memory`. Its speed is a figure of `scripts/bench`.
//!
//! Worlds of dialogue and notes are made from hand-written banks and a seed ([`worlds`]) and stored like a workspace. The library's own
//! call indexes and searches them, beside plain BM25 and plain vectors over the same pieces. Each world is tested with weights that
//! were learned on the others. The weights in the source are learned on all.

// All of this is test code; the explicit `cfg(test)` tells clippy so.
#[cfg(test)]
mod bank;
#[cfg(test)]
mod draw;
#[cfg(test)]
mod evaluate;
#[cfg(test)]
mod fill;
#[cfg(test)]
mod measure;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod report;
#[cfg(test)]
mod train;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod words;
#[cfg(test)]
mod worlds;

use std::{io::Write as _, path::PathBuf, process::ExitCode};

const USAGE: &str = "Usage: scripts/bench-memory [--help] [--seed N] [--write | --show WORLD]\n";

/// The task from the command line.
struct Orders {
    seed: u64,
    /// Replaces the weights in the source.
    writes: bool,
    /// Prints this world instead.
    show: Option<String>,
    /// The sentence encoder's folder, and the folder for vectors.
    encoder: Option<PathBuf>,
    files: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo passes --bench for benchmarks, and no argument when it runs all targets as tests.
    if !arguments.iter().any(|argument| argument == "--bench") {
        print("The benchmark runs with `scripts/bench-memory`.\n");
        return ExitCode::SUCCESS;
    }
    let Some(orders) = orders(arguments) else {
        print(USAGE);
        return ExitCode::from(2);
    };
    if let Some(name) = &orders.show {
        return match worlds::worlds(orders.seed).iter().find(|world| world.name == name) {
            Some(world) => {
                print(&report::whole(world));
                ExitCode::SUCCESS
            }
            None => ExitCode::from(2),
        };
    }
    if evaluate::run(&orders) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn orders(arguments: Vec<String>) -> Option<Orders> {
    let mut orders = Orders { seed: worlds::SEED, writes: false, show: None, encoder: None, files: PathBuf::from(".") };
    let mut arguments = arguments.into_iter().filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seed" => orders.seed = arguments.next()?.parse().ok()?,
            "--write" => orders.writes = true,
            "--show" => orders.show = Some(arguments.next()?),
            "--encoder" => orders.encoder = Some(arguments.next()?.into()),
            "--files" => orders.files = arguments.next()?.into(),
            _ => return None,
        }
    }
    Some(orders)
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// Prints progress for people; stdout is the tables.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}
