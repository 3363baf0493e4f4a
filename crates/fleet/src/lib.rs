//! Many assistants on one machine: each with a workspace of its own, none within reach of another.
//!
//! A fleet is a folder. `.env` in it names a database, if it is to be PostgreSQL; `fleet.db` else lists who is due; `assistants/NAME`
//! is an ordinary workspace, with its own settings, secrets, memory and messages. A worker (`work`) takes one after the other, and lets
//! each have a turn (`turn`) in a box where the others don't exist. The receiver (`receive`) leaves what Telegram brings in the inbox
//! of the assistant that it is for, and starts a worker.

mod bodies;
mod place;
pub mod receive;
mod turn;
pub mod work;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};

use reveille_base::{
    file::{create_private_dirs, replace_durably},
    process::{Output, ProcessError},
    random::NoRandomness,
    redact::Secret,
    types::AssistantName,
};
use reveille_config::{Config, ConfigError};
use reveille_store::{FleetRegistry, StoreError, StorePlace, database};

use self::turn::TurnBox;

/// Random bytes in a password.
#[cfg(feature = "postgres")]
const PASSWORD_BYTES: usize = 24;
/// The file that lists a fleet.
const REGISTRY_FILE: &str = "fleet.db";
/// An assistant's own password for the fleet's database.
#[cfg(feature = "postgres")]
const PASSWORD_FILE: &str = "database-password";

/// A fleet's folder, and where its list is.
#[derive(Debug, Clone)]
pub struct Fleet {
    dir: PathBuf,
    config: Config,
    place: StorePlace,
}

/// Why something wasn't done with a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The folder isn't one.
    #[error("{} is no fleet: `wake fleet add` makes one", .0.display())]
    None(PathBuf),
    /// Its settings, or an assistant's.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// Its list.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk.
    #[error("{}: {source}", path.display())]
    Disk {
        /// Where.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// No such assistant is there.
    #[error("{0} isn't here: `wake fleet list` shows who is")]
    Nobody(AssistantName),
    /// A program in its box.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// No secret can be made.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// There is no boundary around an assistant: without one none runs.
    #[error("{0}. Many assistants run on one machine only where none can reach another, so nothing was started")]
    NoBox(String),
}

impl Fleet {
    /// The fleet in this folder.
    ///
    /// # Errors
    /// It is none, or its settings are wrong.
    pub fn open(dir: &Path) -> Result<Self, FleetError> {
        let is_one = dir.join("assistants").is_dir();
        if is_one { Self::at(dir) } else { Err(FleetError::None(dir.to_owned())) }
    }

    fn at(dir: &Path) -> Result<Self, FleetError> {
        let dir = fs::canonicalize(dir).map_err(at(dir))?;
        let config = settings(&dir, &dir)?;
        let place = match database::place(&config)? {
            StorePlace::File(_) => StorePlace::File(dir.join(REGISTRY_FILE)),
            #[cfg(feature = "postgres")]
            shared => shared,
        };
        Ok(Self { dir, config, place })
    }

    /// Its own settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The folder, without symbolic links.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its list.
    ///
    /// # Errors
    /// The store's.
    pub fn registry(&self) -> Result<FleetRegistry, StoreError> {
        FleetRegistry::open(&self.place)
    }

    /// The workspace of an assistant.
    pub fn workspace(&self, name: &AssistantName) -> PathBuf {
        self.dir.join("assistants").join(name.as_str())
    }

    /// The settings of an assistant: what its own `.env` says, and nothing else.
    ///
    /// # Errors
    /// Every setting that is wrong.
    pub fn config_of(&self, name: &AssistantName) -> Result<Config, FleetError> {
        let workspace = self.workspace(name);
        Ok(settings(&workspace, &home_in(&workspace))?)
    }

    /// Adds an assistant, with a copy of a file of settings if there is one; the folder of a new fleet is made. Says whether it is new.
    ///
    /// # Errors
    /// Nothing was added to the list then; files that were made stay.
    pub fn add(
        dir: &Path,
        name: &AssistantName,
        env_file: Option<&Path>,
        now: DateTime<Utc>,
    ) -> Result<(Self, bool), FleetError> {
        let settings = env_file.map(|path| fs::read(path).map_err(at(path))).transpose()?;
        make_dir(&dir.join("assistants"))?;
        let fleet = Self::at(dir)?;
        let workspace = fleet.workspace(name);
        make_dir(&home_in(&workspace))?;
        let own = workspace.join(".env");
        if let Some(settings) = settings.filter(|_| !own.exists()) {
            replace(&own, &settings)?;
        }
        #[cfg(feature = "postgres")]
        fleet.give_database(name, &own)?;
        let is_new = fleet.registry()?.add(name, now)?;
        Ok((fleet, is_new))
    }

    /// Gives an assistant its own role in the fleet's PostgreSQL, and its settings the way there.
    #[cfg(feature = "postgres")]
    fn give_database(&self, name: &AssistantName, env_file: &Path) -> Result<(), FleetError> {
        let (StorePlace::Shared(address), Some(url)) = (&self.place, &self.config.database_url) else { return Ok(()) };
        let password_file = self.workspace(name).join(PASSWORD_FILE);
        if password_file.exists() {
            return Ok(());
        }
        let password = Secret::new(reveille_base::random::hex(&reveille_base::random::bytes::<PASSWORD_BYTES>()?));
        let role = FleetRegistry::make_role(address, name, &password)?;
        let url = as_role(url, &role);
        if env_file.is_symlink() {
            return Err(at(env_file)(io::Error::other("it is a link, which is nobody's word for where it leads")));
        }
        let said = fs::read(env_file).unwrap_or_default();
        let more = format!("DATABASE_URL={url}\nDATABASE_PASSWORD_FILE={}\n", password_file.display());
        let gap: &[u8] = if said.is_empty() || said.ends_with(b"\n") { b"" } else { b"\n" };
        replace(env_file, &[&said, gap, more.as_bytes()].concat())?;
        // Last: with it the settings are whole.
        replace(&password_file, password.expose().as_bytes())
    }

    /// Takes updates for an assistant that Telegram shows this secret with. What is kept is a hash of it.
    ///
    /// # Errors
    /// The list can't be written.
    pub fn take_secret(&self, name: &AssistantName, secret: &Secret) -> Result<bool, StoreError> {
        self.registry()?.set_secret_hash(name, Some(&receive::hash(secret.expose().as_bytes())))
    }

    /// Runs a program of ours in an assistant's box, by its settings. What they say may be its model's doing: outside a box they could
    /// name another's files.
    ///
    /// # Errors
    /// There is no box, or the program can't be run to its end.
    pub fn run(&self, name: &AssistantName, program: &str, arguments: &[&str]) -> Result<Output, FleetError> {
        if !self.workspace(name).is_dir() {
            return Err(FleetError::Nobody(name.clone()));
        }
        Ok(TurnBox::find(self)?.run(self, name, program, arguments)?)
    }
}

/// The settings of one workspace, of a process that has no others.
fn settings(workspace: &Path, home: &Path) -> Result<Config, ConfigError> {
    let said = [("WORKSPACE_DIR", workspace), ("HOME", home)];
    let said: BTreeMap<String, String> =
        said.into_iter().map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned())).collect();
    Config::from_sources(&said, None, iana_time_zone::get_timezone().ok().as_deref())
}

/// An assistant's home directory: what programs keep there is its own, too.
fn home_in(workspace: &Path) -> PathBuf {
    workspace.join("home")
}

/// The same address for another role.
#[cfg(feature = "postgres")]
fn as_role(url: &str, role: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (user_and_host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = user_and_host.rsplit_once('@').map_or(user_and_host, |(_, host)| host);
    format!("{scheme}://{role}@{host}{path}")
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FleetError + use<> {
    let path = path.to_owned();
    |source| FleetError::Disk { path, source }
}

fn make_dir(path: &Path) -> Result<(), FleetError> {
    create_private_dirs(path).map_err(at(path))
}

fn replace(path: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    replace_durably(path, bytes).map_err(at(path))
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_for_another_role() {
        for (url, told) in [
            (
                "postgres://admin@db.example.org/reveille?sslmode=require",
                "postgres://a@db.example.org/reveille?sslmode=require",
            ),
            ("postgres://%2Frun%2Fpg/postgres", "postgres://a@%2Frun%2Fpg/postgres"),
            ("postgresql://x@localhost:5433", "postgresql://a@localhost:5433"),
        ] {
            assert_eq!(as_role(url, "a"), told);
        }
    }
}
