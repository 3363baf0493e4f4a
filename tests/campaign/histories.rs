//! Layer 1: model histories. A history is 80 commands drawn from a seed: people speak, edit and repeat themselves, wakes work, die
//! and take over from each other at any step, senders die in the middle, clocks jump, machines reboot. It is played
//! against a real SQLite store with a plain model beside it, which says after every command what must hold.
//!
//! A wake is played a step at a time ([`wake`]), each step being one transaction or one act outside; what to do next is
//! asked of the product's own state machines. A failing history is shortened before it is shown.

mod check;
mod command;
mod mind;
mod model;
mod outside;
mod scene;
mod wake;

use std::{
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use reveille::store::Store;

use super::layer::{Layer, Recovery, Share};
use command::{Command, Temper, history};
use scene::Scene;

/// Histories that are tried at most to find a shorter one that fails.
const MAX_SHORTENING: u32 = 200;

/// The layer, with an empty database to copy.
struct Histories {
    home: tempfile::TempDir,
    template: PathBuf,
}

/// Opens the layer.
pub(crate) fn open() -> Box<dyn Layer> {
    // In memory where there is such a place: power is not cut in this layer, and syncing would be most of its time.
    let memory = Path::new("/dev/shm");
    let home = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let home = home.expect("a temporary directory");
    let template = home.path().join("template");
    drop(Store::open(&template).expect("an empty database"));
    Box::new(Histories { home, template })
}

impl Layer for Histories {
    fn trials(&self, share: Share) -> u64 {
        match share {
            Share::Sample => 150,
            Share::Nightly => 10_000,
        }
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        let (temper, commands) = history(id);
        let Err(why) = self.play(temper, &commands) else { return Ok(Recovery::default()) };
        let (shorter, why) = self.shortened(temper, commands, why);
        let mut text = format!("{why}\nThe history ({temper:?}), shortened:\n");
        for command in shorter {
            let _infallible = writeln!(text, "  {:?} ({})", command.act, command.seed);
        }
        Err(text)
    }
}

impl Histories {
    /// Plays a history to its end; a panic is a failure.
    fn play(&self, temper: Temper, commands: &[Command]) -> Result<(), String> {
        let play = || {
            let mut scene = Scene::new(temper, &self.template, self.home.path())?;
            commands.iter().try_for_each(|command| scene.play(*command))?;
            scene.calm_down()
        };
        catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned())
        })
    }

    /// Leaves out commands, many at once and then fewer, as long as what is left fails.
    fn shortened(&self, temper: Temper, mut commands: Vec<Command>, mut why: String) -> (Vec<Command>, String) {
        let mut tries = 0;
        let mut length = commands.len() / 2;
        while length > 0 {
            let mut at = 0;
            while at < commands.len() && tries < MAX_SHORTENING {
                let mut fewer = commands.clone();
                fewer.drain(at..(at + length).min(commands.len()));
                tries += 1;
                match self.play(temper, &fewer) {
                    Err(still) => (commands, why) = (fewer, still),
                    Ok(()) => at += length,
                }
            }
            length /= 2;
        }
        (commands, why)
    }
}
