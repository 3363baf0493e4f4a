//! What all views share: the settings, the clock, what masks secrets, and a store for each request.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

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

use super::{chat::ChatSession, entrance::Entrance, error::PageError, guard::ENTER, live::MAX_LISTENERS, notes::Notes};

/// Random bytes in the page's own name.
const NAME_BYTES: usize = 10;

/// Makes what masks secrets; anew for each request, since secrets are added meanwhile.
pub type MakeRedactor = fn(&Config) -> Redactor;

/// What the page shows, by which settings, and to whom.
pub struct PageSite {
    config: Config,
    redactor: MakeRedactor,
    /// A name that nobody guesses and its port, as browsers name it in `Host`.
    host: String,
    entrance: Mutex<Entrance>,
    pub(super) chat: ChatSession,
    /// Asks for a wake.
    pub(super) nudge: Notify,
    /// The places of open pages that are renewed.
    pub(super) listeners: Arc<Semaphore>,
    pub(super) notes: Notes,
}

/// What one request looks at. It lives on a thread where waiting for a disk is allowed.
pub(super) struct PageDesk<'a> {
    pub(super) config: &'a Config,
    pub(super) redactor: &'a Redactor,
    pub(super) now: DateTime<Utc>,
}

impl PageSite {
    /// For one workspace, on a port of the loopback. It gets a name of its own: browsers send a cookie to all ports of a name, and
    /// every `*.localhost` leads to this machine.
    ///
    /// # Errors
    /// There is no randomness to make the name of.
    pub fn new(config: Config, redactor: MakeRedactor, port: u16) -> Result<Self, NoRandomness> {
        let name = random::hex(&random::bytes::<NAME_BYTES>()?);
        let host = format!("{name}.localhost:{port}");
        Ok(Self {
            config,
            redactor,
            host,
            entrance: Mutex::default(),
            chat: ChatSession::new()?,
            nudge: Notify::new(),
            notes: Notes::default(),
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
        })
    }

    /// An address that works once, soon.
    ///
    /// # Errors
    /// There is no randomness to make it of.
    pub fn mint(&self) -> Result<Secret, NoRandomness> {
        let token = self.entrance().mint(clock::awake())?;
        Ok(Secret::new(format!("http://{}{ENTER}{}", self.host, token.expose())))
    }

    /// The settings.
    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// The one name and port that it is asked by.
    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// The cookie for what an address ended in; none if that isn't good, or no more.
    ///
    /// # Errors
    /// There is no randomness to make it of.
    pub(super) fn enter(&self, ticket: &str) -> Result<Option<Secret>, NoRandomness> {
        self.entrance().enter(ticket, clock::awake())
    }

    /// Whether a cookie is known.
    pub(super) fn knows(&self, cookie: &str) -> bool {
        self.entrance().knows(cookie, clock::awake())
    }

    fn entrance(&self) -> MutexGuard<'_, Entrance> {
        self.entrance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `work` read or write on a thread of its own, and gives what it makes.
    ///
    /// # Errors
    /// Whatever `work` says; or it ended without a word.
    pub(super) async fn at_desk<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&PageDesk<'_>) -> Result<T, PageError> + Send + 'static,
    ) -> Result<T, PageError> {
        let site = Arc::clone(self);
        let worked = tokio::task::spawn_blocking(move || {
            let now = site.config.clock().now();
            let redactor = (site.redactor)(&site.config);
            work(&PageDesk { config: &site.config, redactor: &redactor, now })
        });
        worked.await.map_err(|_| PageError::Broken)?
    }
}

impl PageDesk<'_> {
    /// The database to read from; none before the first wake.
    pub(super) fn store(&self) -> Result<Option<Store>, StoreError> {
        database::look(self.config)
    }

    /// The memory's repository; none before the first wake.
    pub(super) fn repo(&self) -> Result<Option<Repo>, PageError> {
        let dir = self.config.repo_dir();
        if !dir.join(".git").exists() {
            return Ok(None);
        }
        Ok(Some(Repo::open(&dir)?))
    }

    /// A text as it may be shown: without secrets and unseen marks.
    pub(super) fn shown(&self, text: &str) -> String {
        self.redactor.redact(&outside::unmarked(text))
    }
}
