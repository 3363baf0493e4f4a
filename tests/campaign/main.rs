//! The fault campaign. Real programs are killed, starved of resources, cut off and robbed of their last writes; the next run recovers,
//! and the result is checked. `scripts/campaign` runs it; docs/RELIABILITY.md reports the results.
//!
//! A layer (see [`layer`]) is one kind of harm. Each trial of a layer is one number, so a failure can be replayed. Broken variants
//! (see [`variants`]) show that the campaign detects mistakes: in a product with one line changed, some trial of the layer has to fail.

// All of this is test code; the explicit `cfg(test)` tells clippy so.
#[cfg(test)]
mod chaos;
#[cfg(test)]
#[expect(dead_code, reason = "its tests look at more of it")]
mod disk;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod histories;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod layer;
#[cfg(test)]
mod network;
#[cfg(test)]
mod power;
#[cfg(test)]
mod purge;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod size;
#[cfg(test)]
mod stories;
#[cfg(test)]
#[expect(dead_code, reason = "the tests need more of it than the campaign")]
#[path = "../integration/support/mod.rs"]
mod support;
#[cfg(test)]
mod table;
#[cfg(test)]
mod variants;
#[cfg(test)]
mod week;
#[cfg(test)]
mod world;

use std::{io::Write as _, process::ExitCode, sync::mpsc, thread};

use layer::{Layer, Part, Plain, Share};
use world::{Story, Word};

/// A layer's name and constructor; a layer's resources are only made when it runs.
type Opened = fn() -> Box<dyn Layer>;

/// Every layer, in the order of the table.
const LAYERS: &[(&str, Opened)] = &[
    ("histories", histories::open),
    #[cfg(feature = "postgres")]
    ("shared-histories", histories::open_shared),
    ("kills", || Box::new(kills::Kills::new([Story::wake()], 36))),
    ("lone-kills", || Box::new(kills::Kills::alone([Story::wake()], 6))),
    ("model-kills", || Box::new(kills::Kills::new([Story::talk()], 10))),
    ("first-kills", || Box::new(kills::Kills::new([Story::moved()], 8))),
    ("bot-kills", || Box::new(kills::Kills::new([Story::bot(), Story::files()], 16))),
    ("undo-kills", || Box::new(kills::Kills::new([Story::undo()], 8))),
    ("purge-kills", purge::open),
    ("ask-kills", || Box::new(kills::Kills::new([Word::Yes, Word::No, Word::Silence].map(Story::asks), 6))),
    ("allowed-kills", || Box::new(kills::Kills::new([Story::allowed()], 4))),
    ("copy-kills", || Box::new(kills::Kills::new([Story::changes()], 6))),
    ("trouble-kills", || Box::new(kills::Kills::new([Story::given_up(), Story::rewound()], 6))),
    ("errors", || Box::new(errors::Errors::new([Story::wake()], 14))),
    ("bot-errors", || Box::new(errors::Errors::new([Story::bot(), Story::files()], 8))),
    ("allowed-errors", || Box::new(errors::Errors::new([Story::allowed()], 4))),
    ("copy-errors", || Box::new(errors::Errors::new([Story::changes()], 4))),
    ("trouble-errors", || Box::new(errors::Errors::new([Story::given_up(), Story::rewound()], 4))),
    ("network", || Box::new(network::Network::open())),
    ("power", || Box::new(power::PowerLoss::new(STORIES.map(|story| story())))),
    ("chaos", || Box::new(chaos::Chaos::new())),
    ("hostile", || Box::new(hostile::Hostile::open())),
    ("stories", || {
        let space = stories::count();
        Box::new(Plain { space, cheap: space, sample: 1, trial: stories::trial })
    }),
    ("schedule", || Box::new(Plain { space: 24_000, cheap: 24_000, sample: 300, trial: schedule::trial })),
    ("week", || Box::new(week::Week)),
    ("size", || Box::new(Plain { space: 2, cheap: 1, sample: 1, trial: size::trial })),
];

/// The stories in which the power fails. Stories with a clone are left out, since the record misses some of git's writes there.
const STORIES: [fn() -> Story; 7] =
    [Story::wake, Story::talk, Story::bot, Story::chat, Story::files, || Story::asks(Word::Yes), Story::allowed];

const USAGE: &str = "\
Usage: campaign [--sample|--nightly] [--part K/N] [--seed N] [--trials N] [--variants all|one|none|since:COMMIT] [LAYER...]
       campaign --replay LAYER TRIAL
";

/// The options from the command line.
struct Options {
    share: Share,
    part: Part,
    seed: u64,
    trials: Option<u64>,
    variants: variants::Choice,
    layers: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // Test runners ask for a list of tests. This program offers them none; `scripts/test` runs it by `scripts/campaign`.
        [] | ["--list", ..] => {
            if arguments.is_empty() {
                print("The campaign runs with `scripts/campaign`.\n");
            }
            ExitCode::SUCCESS
        }
        ["--replay", layer, id] => replay(layer, id),
        [flag, ..] if *flag == week::MEASURE => week::measure(arguments.get(1..).unwrap_or_default()),
        ["--judge", layer, seed, trials] => judge(layer, seed, trials),
        _ => match options(arguments) {
            Some(options) => run(&options),
            None => {
                print(USAGE);
                ExitCode::from(2)
            }
        },
    }
}

/// Runs the chosen layers and their broken variants, and prints the table.
fn run(options: &Options) -> ExitCode {
    say(&format!("seed {} (scripts/campaign --seed {} runs the same trials)", options.seed, options.seed));
    let is_chosen = |name: &str| options.layers.is_empty() || options.layers.iter().any(|chosen| chosen == name);
    let mut rows = Vec::new();
    thread::scope(|scope| {
        // Layers are opened while others run, since most of them first play their stories, one program after another.
        let (opened, layers) = mpsc::channel();
        scope.spawn(move || {
            for (name, open) in LAYERS.iter().filter(|(name, _)| is_chosen(name)) {
                if opened.send((name, open())).is_err() {
                    break;
                }
            }
        });
        for (name, layer) in layers {
            say(&format!("{name} …"));
            let row = layer::run(name, layer.as_ref(), options);
            say(&table::line(&row));
            rows.push(row);
        }
    });
    let tried = variants::run(&rows, options);
    print(&table::render(&rows, &tried));
    // In a run of all layers one may lack its requirements; a layer requested by name may not.
    let may_lack = options.layers.is_empty();
    if !may_lack && rows.iter().any(|row| row.missing.is_some()) {
        print("A layer that was asked for wasn't run: that is a failure.\n");
    }
    let is_well = |row: &layer::Row| row.is_good() || may_lack && row.missing.is_some();
    let is_good = !rows.is_empty() && rows.iter().all(is_well) && tried.iter().all(variants::Tried::is_good);
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Replays one trial and prints the result.
fn replay(name: &str, id: &str) -> ExitCode {
    let (Some(open), Ok(id)) = (find(name), id.parse()) else {
        print(USAGE);
        return ExitCode::from(2);
    };
    match layer::one(open().as_ref(), id) {
        Ok(_) => {
            print(&format!("{name} {id}: passed\n"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            print(&format!("{name} {id}: {why}\n"));
            ExitCode::FAILURE
        }
    }
}

/// For broken variants, which run this in a build of their own: stops at the first failing trial and prints it.
fn judge(name: &str, seed: &str, trials: &str) -> ExitCode {
    let (Some(open), Ok(seed), Ok(trials)) = (find(name), seed.parse(), trials.parse()) else {
        return ExitCode::from(2);
    };
    let layer = open();
    if layer.missing().is_some() {
        return ExitCode::from(2);
    }
    match layer::until_failure(layer.as_ref(), seed, trials) {
        Some((tried, why)) => print(&format!("{}{tried} {why}\n", variants::CAUGHT)),
        None => print(variants::SURVIVED),
    }
    ExitCode::SUCCESS
}

fn find(name: &str) -> Option<Opened> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, open)| *open)
}

/// Parses the options; `None` if they are invalid.
fn options(arguments: Vec<String>) -> Option<Options> {
    let seed = layer::todays_seed();
    let mut options = Options {
        share: Share::Sample,
        part: Part::ALL,
        seed,
        trials: None,
        variants: variants::Choice::OneEach,
        layers: Vec::new(),
    };
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--sample" => options.share = Share::Sample,
            "--nightly" => {
                options.share = Share::Nightly;
                options.variants = variants::Choice::All;
            }
            "--part" => options.part = Part::parse(&arguments.next()?)?,
            "--seed" => options.seed = arguments.next()?.parse().ok()?,
            "--trials" => options.trials = Some(arguments.next()?.parse().ok().filter(|n| *n > 0)?),
            "--variants" => options.variants = variants::Choice::parse(&arguments.next()?)?,
            name if find(name).is_some() => options.layers.push(argument),
            _ => return None,
        }
    }
    Some(options)
}

/// Prints progress for people; stdout is the table.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").ok();
}

fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}
