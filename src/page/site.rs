//! The state shared by all views: settings, clock and redactor, and a store for each request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, NaiveDate, Utc};

use tokio::sync::{Notify, Semaphore};

use reveille_base::{
    clock,
    random::{self, NoRandomness},
    redact::{Redactor, Secret},
};
use reveille_config::Config;
use reveille_git::Repo;
use reveille_memory::outside;
use reveille_store::{Store, StoreError, database};

use super::{
    chat::ChatSession, entrance::PageSessions, error::PageError, guard::ENTER, known_settings::KnownSettings,
    live::MAX_LISTENERS, nav::WaitingCounts, notes::Notes, settings::SettingsDesk,
};

/// Random bytes in the page's own host name.
const NAME_BYTES: usize = 10;

/// Creates the redactor for all these settings. Called for each request, since secrets are added meanwhile.
pub type MakeRedactor = fn(Vec<Config>) -> Redactor;

/// The page's state: settings, sessions, chat and notes.
pub struct PageSite {
    config: Config,
    redactor: MakeRedactor,
    known: KnownSettings,
    /// An unguessable name with the port, as browsers send it in `Host`.
    host: String,
    entrance: Mutex<PageSessions>,
    pub(super) chat: ChatSession,
    /// Requests a wake.
    pub(super) nudge: Notify,
    /// Permits for open pages that are refreshed.
    pub(super) listeners: Arc<Semaphore>,
    pub(super) notes: Notes,
    pub(super) settings: SettingsDesk,
}

/// The context of a request, on a thread that may block on the disk.
pub(super) struct PageContext<'a> {
    pub(super) config: &'a Config,
    pub(super) redactor: &'a Redactor,
    pub(super) now: DateTime<Utc>,
}

impl PageSite {
    /// Creates the page's state for one workspace on a loopback port. The page gets a host name of its own, since browsers send a cookie to
    /// all ports of a name; every `*.localhost` leads to this machine.
    ///
    /// # Errors
    /// No randomness for the name.
    pub fn new(config: Config, redactor: MakeRedactor, port: u16) -> Result<Self, NoRandomness> {
        let name = random::format_hex(&random::generate_bytes::<NAME_BYTES>()?);
        let host = format!("{name}.localhost:{port}");
        Ok(Self {
            known: KnownSettings::new(config.clone()),
            config,
            redactor,
            host,
            entrance: Mutex::default(),
            chat: ChatSession::new()?,
            nudge: Notify::new(),
            notes: Notes::default(),
            settings: SettingsDesk::default(),
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
        })
    }

    /// Creates an address that works once, for a limited time.
    ///
    /// # Errors
    /// No randomness for the address.
    pub fn create_address(&self) -> Result<Secret, NoRandomness> {
        let token = self.lock_entrance().create_ticket(clock::read_awake_time())?;
        Ok(Secret::new(format!("http://{}{ENTER}{}", self.host, token.expose())))
    }

    /// Masks the secrets of these settings, which may not be saved yet, and those of before.
    pub(super) fn build_redactor(&self, config: &Config) -> Redactor {
        let mut configs = self.known.list();
        configs.push(config.clone());
        (self.redactor)(configs)
    }

    /// Returns the settings.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the page's only valid host name and port.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Exchanges the ticket in an address for a cookie. `None` if the ticket is invalid or expired.
    ///
    /// # Errors
    /// No randomness for the cookie.
    pub(super) fn redeem_ticket(&self, ticket: &str) -> Result<Option<Secret>, NoRandomness> {
        self.lock_entrance().redeem_ticket(ticket, clock::read_awake_time())
    }

    /// Renews the session of a cookie. Returns false if the cookie is unknown or has expired.
    pub(super) fn renew_session(&self, cookie: &str) -> bool {
        self.lock_entrance().renew_session(cookie, clock::read_awake_time())
    }

    fn lock_entrance(&self) -> MutexGuard<'_, PageSessions> {
        self.entrance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on a blocking thread and returns its result.
    ///
    /// # Errors
    /// The error of `work`, or [`PageError::Broken`] if it panicked.
    pub(super) async fn run_blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&PageContext<'_>) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        let (site, counts) = (Arc::clone(self), WaitingCounts::current());
        let worked = tokio::task::spawn_blocking(move || {
            let now = site.config.clock().now();
            let redactor = (site.redactor)(site.known.list());
            counts.scope(|| work(&PageContext { config: &site.config, redactor: &redactor, now }))
        });
        worked.await.map_err(|_| PageError::Broken)?
    }
}

impl PageContext<'_> {
    /// Opens the database for reading. `None` before the first wake.
    pub(super) fn open_store(&self) -> Result<Option<Store>, StoreError> {
        database::open_read_only(self.config)
    }

    /// Returns the person's date.
    pub(super) fn local_date(&self) -> NaiveDate {
        self.now.with_timezone(&self.config.timezone).date_naive()
    }

    /// Opens the memory's repository. `None` before the first wake.
    pub(super) fn open_repo(&self) -> Result<Option<Repo>, PageError> {
        let dir = self.config.repo_dir();
        if !dir.join(".git").exists() {
            return Ok(None);
        }
        Ok(Some(Repo::open(&dir)?))
    }

    /// Cleans a text for display: masks secrets and removes invisible characters.
    pub(super) fn clean_text(&self, text: &str) -> String {
        self.redactor.redact(&outside::strip_marks(text))
    }
}
