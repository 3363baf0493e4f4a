//! What is looked after without a mind: delivering, pushing, fetching. Each is bounded in time and backs off by itself, so
//! that a dead remote or a dead network never holds up an answer.

use std::time::Duration;

use super::{
    WakeError,
    observe::{self, FETCH, PUSH},
    verify::Account,
    wake::Wake,
};
use crate::{
    channel::deliver,
    memory::{DocKind, merge},
    queue::NewOutgoing,
    repo::{Integrated, REMOTE_TIMEOUT, RemoteError, Repo, RepoError},
};

/// How long a fetch may take that somebody's answer waits for. A remote that is slower is fetched from as upkeep.
const PULL_BOUND: Duration = Duration::from_secs(5);

impl Wake<'_> {
    /// Delivers, pushes and fetches what is due. Says whether anything was done. When somebody waits for an answer, only what
    /// is written is delivered: their cycle pulls and pushes anyway.
    pub(super) async fn upkeep(&mut self, repo: &Repo, is_waited_for: bool) -> Result<bool, WakeError> {
        let mut has_worked = false;
        if self.context.channel.is_some() && self.store.has_deliverable(self.now())? {
            self.deliver().await?;
            has_worked = true;
        }
        if is_waited_for {
            return Ok(has_worked);
        }
        if observe::is_fetch_due(self.store, repo, self.context)? {
            self.fetch_by_itself(repo)?;
            has_worked = true;
        }
        if observe::is_push_due(self.store, repo, self.now())? {
            self.push(repo)?;
            has_worked = true;
        }
        Ok(has_worked)
    }

    /// Sends what may be sent. What can't be sent waits in the outbox.
    pub(super) async fn deliver(&mut self) -> Result<(), WakeError> {
        if let Some(channel) = self.context.channel {
            let (fence, clock) = (self.fence, self.context.clock);
            let delivered = deliver::deliver_in_wake(self.store, channel, fence, &self.me, clock).await?;
            tracing::info!(sent = delivered.sent, left = delivered.left, "delivered");
        }
        Ok(())
    }

    /// Takes in what the remote has, once a wake, before the memory is read.
    pub(super) fn pull(&mut self, repo: &Repo, account: &mut Account) -> Result<(), WakeError> {
        let may_try = self.store.upkeep(FETCH)?.may_try(self.now());
        if repo.has_remote() && !self.has_fetched && may_try { self.fetch(repo, account, PULL_BOUND) } else { Ok(()) }
    }

    /// Fetches outside a cycle: what is to be known of it is said here, as no entry tells it.
    fn fetch_by_itself(&mut self, repo: &Repo) -> Result<(), WakeError> {
        let mut account = Account::default();
        self.fetch(repo, &mut account, REMOTE_TIMEOUT)?;
        self.report.notes.extend(account.notes);
        Ok(())
    }

    fn fetch(&mut self, repo: &Repo, account: &mut Account, bound: Duration) -> Result<(), WakeError> {
        self.has_fetched = true;
        let now = self.now();
        if let Err(error) = repo.fetch(bound) {
            return self.remote_trouble(FETCH, &error);
        }
        self.store.upkeep_ok(self.fence, FETCH, now)?;
        self.integrate(repo, account)
    }

    /// Brings our branch and the remote's together; nothing of either side is thrown away.
    fn integrate(&mut self, repo: &Repo, account: &mut Account) -> Result<(), WakeError> {
        // A person's edits come first: they are then merged like any commit, and never in the way.
        self.take_in_person_edits(repo, account)?;
        match repo.integrate(self.now(), &merge_texts) {
            Ok(Integrated::Merged { conflicts, .. }) => {
                account.notes.push("Merged with the remote.".to_owned());
                account.notes.extend(
                    conflicts.iter().map(|path| format!("Both sides had changed {path}; both are kept in it.")),
                );
            }
            Ok(Integrated::RewoundRemote { rescue_ref }) => self.alarm_of_rewound(&rescue_ref)?,
            Ok(_) => {}
            Err(
                error @ (RepoError::NotOnBranch { .. }
                | RepoError::Blocked { .. }
                | RepoError::Locked { .. }
                | RepoError::Unrelated),
            ) => {
                account.notes.push(format!("Could not take in the remote's commits: {error}"));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Sends our commits. A remote that moved is taken in first, once.
    pub(super) fn push(&mut self, repo: &Repo) -> Result<(), WakeError> {
        if !repo.has_remote() {
            return Ok(());
        }
        let mut pushed = repo.push(REMOTE_TIMEOUT);
        if matches!(pushed, Err(RemoteError::Moved)) {
            self.fetch_by_itself(repo)?;
            pushed = repo.push(REMOTE_TIMEOUT);
        }
        match pushed {
            Ok(_) => {
                self.report.pushed = true;
                Ok(self.store.upkeep_ok(self.fence, PUSH, self.now())?)
            }
            Err(error) => self.remote_trouble(PUSH, &error),
        }
    }

    /// A remote that can't be used is no error of the wake: it is noted and tried again later. What only a person can mend
    /// is told once.
    fn remote_trouble(&mut self, name: &str, error: &RemoteError) -> Result<(), WakeError> {
        let why = self.context.redactor.redact(&error.to_string());
        tracing::warn!(%why, "{name} did not work");
        self.report.notes.push(format!("{name}: {why}"));
        let now = self.now();
        let upkeep = self.store.upkeep_failed(self.fence, name, &why, None, now)?;
        if let RemoteError::Rewound { rescue_ref } = error {
            return self.alarm_of_rewound(rescue_ref);
        }
        let needs_person = matches!(error, RemoteError::Refused { .. } | RemoteError::Auth { .. });
        if needs_person && upkeep.failures == 1 {
            let today = now.date_naive();
            let text = format!(
                "My memory could not be sent to its remote: {why}. Everything is committed here and is sent as soon as that is mended."
            );
            self.alarm(&format!("{name}/{today}"), text)?;
        }
        Ok(())
    }

    /// Whoever sees it first, the fetch or the push: it is told once.
    fn alarm_of_rewound(&mut self, rescue_ref: &str) -> Result<(), WakeError> {
        let text = format!(
            "The remote of my memory went back behind commits it once had, so I neither follow it nor push to it. They are kept \
             here as `{rescue_ref}`. Please decide: `git push` by hand to bring them back, or `git reset --hard` to the remote's \
             branch to follow it."
        );
        self.alarm(&format!("rewound/{rescue_ref}"), text)
    }

    /// Tells the owner of something only they can mend, once per key.
    pub(super) fn alarm(&mut self, key: &str, text: String) -> Result<(), WakeError> {
        let message = NewOutgoing {
            chat_id: self.context.config.owner_chat_id,
            text,
            kind: "notice".to_owned(),
            key: Some(format!("alarm/{key}")),
            ..NewOutgoing::default()
        };
        self.store.tell(self.fence, &message, self.now())?;
        Ok(())
    }

    /// Commits a person's uncommitted edits as theirs, before anything of the wake's own.
    pub(super) fn take_in_person_edits(&mut self, repo: &Repo, account: &mut Account) -> Result<(), WakeError> {
        let redactor = self.context.redactor;
        match repo.commit_person_edits(self.now(), &|text| redactor.contains_secret(text)) {
            Ok(edits) => {
                for left in edits.left_alone {
                    account.notes.push(format!("Left alone, not committed: {} ({})", left.path, left.why));
                }
                Ok(())
            }
            Err(error @ (RepoError::NotOnBranch { .. } | RepoError::Locked { .. })) => {
                account.notes.push(error.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Joins a person's text and ours, by the kind of document. The person wins, the other side stays visible.
pub(super) fn merge_texts(path: &str, base: &str, persons: &str, ours: &str) -> String {
    merge::merge(DocKind::of(path), base, persons, ours).text
}
