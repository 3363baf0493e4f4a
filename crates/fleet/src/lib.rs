//! Many assistants on one machine, each with its own workspace and out of reach of the others.
//!
//! A fleet is a folder. Its list of assistants, in the PostgreSQL database that its `.env` may name or else in `fleet.db`, records who is
//! due for a turn. `assistants/NAME` is an ordinary workspace with its own settings, secrets, memory and messages. A worker (`work`) gives
//! each assistant a turn (`turn`), in a box without the others. The receiver (`receive`) puts Telegram's updates in the inbox of their
//! assistant, and starts a worker.

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
/// The file with a fleet's list of assistants, the registry.
const REGISTRY_FILE: &str = "fleet.db";
/// The file with an assistant's own password for the fleet's database.
#[cfg(feature = "postgres")]
const PASSWORD_FILE: &str = "database-password";

/// A fleet's folder, settings, and the place of its list.
#[derive(Debug, Clone)]
pub struct Fleet {
    dir: PathBuf,
    config: Config,
    place: StorePlace,
}

/// The reason an operation on a fleet failed.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The folder isn't a fleet.
    #[error("{} isn't a fleet: `wake fleet add` creates one", .0.display())]
    None(PathBuf),
    /// The settings of the fleet or of an assistant are wrong.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// The list failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The disk failed.
    #[error("{}: {source}", path.display())]
    Disk {
        /// The path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no such assistant.
    #[error("{0} isn't in this fleet: `wake fleet list` shows all")]
    Nobody(AssistantName),
    /// A program in a box failed.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The system provides no randomness for a secret.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// A box can't be made here, and no assistant runs without one.
    #[error("{0}. Without it, the assistants could reach each other, so nothing was started")]
    NoBox(String),
}

impl Fleet {
    /// Opens the fleet in this folder.
    ///
    /// # Errors
    /// The folder isn't a fleet, or its settings are wrong.
    pub fn open(dir: &Path) -> Result<Self, FleetError> {
        let is_fleet = dir.join("assistants").is_dir();
        if is_fleet { Self::at_path(dir) } else { Err(FleetError::None(dir.to_owned())) }
    }

    fn at_path(dir: &Path) -> Result<Self, FleetError> {
        let dir = fs::canonicalize(dir).map_err(to_disk_error(dir))?;
        let config = read_settings(&dir, &dir)?;
        let place = match database::locate_store(&config)? {
            StorePlace::File(_) => StorePlace::File(dir.join(REGISTRY_FILE)),
            #[cfg(feature = "postgres")]
            shared => shared,
        };
        Ok(Self { dir, config, place })
    }

    /// Returns the fleet's own settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the folder, without symbolic links.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Opens the fleet's list.
    ///
    /// # Errors
    /// The store's error.
    pub fn open_registry(&self) -> Result<FleetRegistry, StoreError> {
        FleetRegistry::open(&self.place)
    }

    /// Returns an assistant's workspace.
    pub fn workspace(&self, name: &AssistantName) -> PathBuf {
        self.dir.join("assistants").join(name.as_str())
    }

    /// Reads an assistant's settings, from its own `.env` alone.
    ///
    /// # Errors
    /// Settings are wrong; the error names all of them.
    pub fn read_config(&self, name: &AssistantName) -> Result<Config, FleetError> {
        let workspace = self.workspace(name);
        Ok(read_settings(&workspace, &home_path(&workspace))?)
    }

    /// Adds an assistant, with a copy of a settings file if given. Creates the folder of a new fleet. Returns `true` if the assistant is
    /// new.
    ///
    /// # Errors
    /// The assistant wasn't added to the list. Files that were created stay.
    pub fn add(
        dir: &Path,
        name: &AssistantName,
        env_file: Option<&Path>,
        now: DateTime<Utc>,
    ) -> Result<(Self, bool), FleetError> {
        let settings = env_file.map(|path| fs::read(path).map_err(to_disk_error(path))).transpose()?;
        make_dir(&dir.join("assistants"))?;
        let fleet = Self::at_path(dir)?;
        let workspace = fleet.workspace(name);
        make_dir(&home_path(&workspace))?;
        let own = workspace.join(".env");
        if let Some(settings) = settings.filter(|_| !own.exists()) {
            replace_file(&own, &settings)?;
        }
        #[cfg(feature = "postgres")]
        fleet.give_database(name, &own)?;
        let is_new = fleet.open_registry()?.add(name, now)?;
        Ok((fleet, is_new))
    }

    /// Gives an assistant its own role in the fleet's PostgreSQL, and writes the address to its settings.
    #[cfg(feature = "postgres")]
    fn give_database(&self, name: &AssistantName, env_file: &Path) -> Result<(), FleetError> {
        let (StorePlace::Shared(address), Some(url)) = (&self.place, &self.config.database_url) else {
            return Ok(());
        };
        let password_file = self.workspace(name).join(PASSWORD_FILE);
        if password_file.exists() {
            return Ok(());
        }
        let password =
            Secret::new(reveille_base::random::format_hex(&reveille_base::random::generate_bytes::<PASSWORD_BYTES>()?));
        let role = FleetRegistry::make_role(address, name, &password)?;
        let url = replace_user(url, &role);
        if env_file.is_symlink() {
            return Err(to_disk_error(env_file)(io::Error::other("it is a symbolic link, which could lead anywhere")));
        }
        let existing = fs::read(env_file).unwrap_or_default();
        let more = format!("DATABASE_URL={url}\nDATABASE_PASSWORD_FILE={}\n", password_file.display());
        let gap: &[u8] = if existing.is_empty() || existing.ends_with(b"\n") { b"" } else { b"\n" };
        replace_file(env_file, &[&existing, gap, more.as_bytes()].concat())?;
        // The password comes last: its file marks complete settings.
        replace_file(&password_file, password.expose().as_bytes())
    }

    /// Accepts an assistant's updates from Telegram under this secret, of which only a hash is stored. Returns `false` if there is no such
    /// assistant.
    ///
    /// # Errors
    /// The list can't be written.
    pub fn save_secret_hash(&self, name: &AssistantName, secret: &Secret) -> Result<bool, StoreError> {
        self.open_registry()?.set_secret_hash(name, Some(&receive::hash(secret.expose().as_bytes())))
    }

    /// Runs one of our programs in an assistant's box, with its settings. The model may have written them, and outside a box they could
    /// name other assistants' files.
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

/// Reads the settings of one workspace, ignoring the process environment.
fn read_settings(workspace: &Path, home: &Path) -> Result<Config, ConfigError> {
    let variables = [("WORKSPACE_DIR", workspace), ("HOME", home)];
    let variables: BTreeMap<String, String> =
        variables.into_iter().map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned())).collect();
    Config::from_sources(&variables, None, iana_time_zone::get_timezone().ok().as_deref())
}

/// Returns an assistant's home directory, where its programs keep their files.
fn home_path(workspace: &Path) -> PathBuf {
    workspace.join("home")
}

/// Returns a database's address with another role as its user.
#[cfg(feature = "postgres")]
fn replace_user(url: &str, role: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (user_and_host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = user_and_host.rsplit_once('@').map_or(user_and_host, |(_, host)| host);
    format!("{scheme}://{role}@{host}{path}")
}

fn to_disk_error(path: &Path) -> impl FnOnce(io::Error) -> FleetError + use<> {
    let path = path.to_owned();
    |source| FleetError::Disk { path, source }
}

fn make_dir(path: &Path) -> Result<(), FleetError> {
    create_private_dirs(path).map_err(to_disk_error(path))
}

fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    replace_durably(path, bytes).map_err(to_disk_error(path))
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn only_the_role_of_an_address_changes() {
        for (url, expected) in [
            (
                "postgres://admin@db.example.org/reveille?sslmode=require",
                "postgres://a@db.example.org/reveille?sslmode=require",
            ),
            ("postgres://%2Frun%2Fpg/postgres", "postgres://a@%2Frun%2Fpg/postgres"),
            ("postgresql://x@localhost:5433", "postgresql://a@localhost:5433"),
        ] {
            assert_eq!(replace_user(url, "a"), expected);
        }
    }
}
