//! Layer 1: model histories. A history is 80 commands drawn from a seed: people speak, edit and repeat themselves; wakes work, die and
//! take over from each other at any step; senders die midway; clocks jump; machines reboot. A history runs on a real store beside a
//! plain model, and both are compared after every command. Thousands run in SQLite files. Some run on PostgreSQL, where wakes come from
//! several machines and connections are cut.
//!
//! A wake is played step by step ([`wake`]), each step being one transaction or one outside act; the product's own state machines
//! choose the next step. A failing history is shortened before it is shown.

mod check;
mod command;
mod home;
mod look;
mod model;
mod outside;
mod scene;
#[cfg(feature = "postgres")]
mod shared;
mod turns;
mod wake;

#[cfg(feature = "postgres")]
use std::sync::Arc;
use std::{
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use reveille_store::Store;

use super::layer::{self, Layer, Recovery, Share};
use command::{Command, Temper, history};
use home::Home;
use scene::Scene;

/// The reason given where no server is available.
#[cfg(feature = "postgres")]
const NO_SERVER: &str = "PostgreSQL isn't installed here";

/// The layer of histories, on either engine.
struct Histories {
    engine: Engine,
}

enum Engine {
    /// An empty database to copy, and the directory of its copies.
    Sqlite { home: tempfile::TempDir, template: PathBuf },
    /// The server; `None` if PostgreSQL isn't installed.
    #[cfg(feature = "postgres")]
    Postgres(Option<Arc<shared::Server>>),
}

/// Opens the layer whose databases are files.
pub(crate) fn open() -> Box<dyn Layer> {
    // In memory if possible: this layer has no power failures, and syncing would take most of its time.
    let memory = Path::new("/dev/shm");
    let home = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let home = home.expect("a temporary directory");
    let template = home.path().join("template");
    drop(Store::open(&template).expect("an empty database"));
    Box::new(Histories { engine: Engine::Sqlite { home, template } })
}

/// Opens the layer whose databases are shared.
#[cfg(feature = "postgres")]
pub(crate) fn open_shared() -> Box<dyn Layer> {
    Box::new(Histories { engine: Engine::Postgres(shared::Server::find().map(Arc::new)) })
}

impl Engine {
    fn new_home(&self) -> Result<Home, String> {
        match self {
            Self::Sqlite { home, template } => Home::file(template, home.path()),
            #[cfg(feature = "postgres")]
            Self::Postgres(server) => Ok(Home::Shared(Box::new(server.as_ref().ok_or(NO_SERVER)?.new_schema()?))),
        }
    }

    /// The maximum number of runs for shortening: seconds in files, a minute on PostgreSQL.
    fn max_shortening_runs(&self) -> u32 {
        match self {
            Self::Sqlite { .. } => 200,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => 40,
        }
    }
}

impl Layer for Histories {
    fn trials(&self, share: Share) -> u64 {
        match (&self.engine, share) {
            (Engine::Sqlite { .. }, Share::Sample) => 150,
            (Engine::Sqlite { .. }, Share::Nightly) => 10_000,
            #[cfg(feature = "postgres")]
            (Engine::Postgres(_), Share::Sample) => 10,
            #[cfg(feature = "postgres")]
            (Engine::Postgres(_), Share::Nightly) => 1_000,
        }
    }

    fn workers(&self) -> usize {
        let usual = layer::usual_workers();
        match &self.engine {
            Engine::Sqlite { .. } => usual,
            // A history has six connections at most, and the server takes 200.
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => usual.min(24),
        }
    }

    #[cfg(feature = "postgres")]
    fn missing(&self) -> Option<&'static str> {
        matches!(self.engine, Engine::Postgres(None)).then_some(NO_SERVER)
    }

    fn trial(&self, id: u64) -> Result<Recovery, String> {
        if let Some(missing) = self.missing() {
            return Err(missing.to_owned());
        }
        let (temper, commands) = history(id);
        let Err(why) = self.play(temper, &commands) else { return Ok(Recovery::default()) };
        let (shorter, why) = self.shorten_history(temper, commands, why);
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
            let mut scene = Scene::new(temper, self.engine.new_home()?)?;
            commands.iter().try_for_each(|command| scene.play(*command))?;
            scene.calm_down()
        };
        catch_unwind(AssertUnwindSafe(play)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned())
        })
    }

    /// Leaves out commands, first many at once and then fewer, as long as the rest still fails.
    fn shorten_history(&self, temper: Temper, mut commands: Vec<Command>, mut why: String) -> (Vec<Command>, String) {
        let mut tries = 0;
        let mut length = commands.len() / 2;
        while length > 0 {
            let mut at = 0;
            while at < commands.len() && tries < self.engine.max_shortening_runs() {
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
