//! How well the memory is searched: `scripts/bench-memory`. How fast is a figure of `scripts/bench`.
//!
//! Worlds of dialogue and notes are made from hand-written banks and a seed ([`worlds`]) and kept as a workspace keeps them. The
//! library's own call indexes and searches them, beside plain BM25 and plain vectors over the same pieces. Weights that are tested
//! on one world were learned on the others. The weights in the source are learned on all.

// `cfg(test)` holds for all of this; said aloud, it tells clippy that this is test code.
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

/// What is to be done.
struct Orders {
    seed: u64,
    /// The weights in the source are replaced.
    writes: bool,
    /// A world is printed instead.
    show: Option<String>,
    /// The sentence encoder's folder, and where vectors are kept.
    encoder: Option<PathBuf>,
    files: PathBuf,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo says --bench when it runs benchmarks, and nothing when it runs all targets as tests.
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

/// For people, while they wait; stdout is the tables.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}
