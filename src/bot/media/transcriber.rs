//! The child that listens: works through the recordings that are due and ends, which gives back the memory that a speech model
//! takes. One at a time, by a flock; what it writes nobody else does.

use std::path::{Path, PathBuf};

use reveille_base::{
    clock::Clock,
    process::{self, Identity, Spec},
    redact::Redactor,
};
use reveille_config::Config;
use reveille_media::Transcript;
use reveille_media::speech::Unheard;
use reveille_store::{
    Attachment, Store, StoreError, wait_after,
    wake_lock::{LockError, WakeLock},
};

use super::{engine::SpeechEngine, words};

/// A recording that can't be made out is tried so often.
const MAX_TRIES: u32 = 3;
/// Recordings that one child works through at most: each is decided upon or put off, so that there is an end.
const MAX_RECORDINGS: usize = 500;
/// How long a program in place of the speech model may take for one recording.
const PROGRAM_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// Why the child ended early. What it had done by then is kept.
#[derive(Debug, thiserror::Error)]
pub enum TranscriberError {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The flock's file.
    #[error(transparent)]
    Lock(LockError),
    /// The program that understands speech was over before it had read its model, as without memory for it. No recording is at fault.
    #[error("{0}")]
    Engine(Unheard),
}

/// What turns a recording, by its path, into words.
pub type TranscribeFn = Box<dyn FnMut(&Path) -> Result<Transcript, Unheard>>;

/// The speech model that the settings name.
///
/// # Errors
/// [`Unheard::SetUp`] where there is none, or none that can be read.
pub fn engine(model: Option<&Path>) -> Result<TranscribeFn, Unheard> {
    let model = model.ok_or_else(|| Unheard::SetUp("WHISPER_MODEL isn't set".to_owned()))?;
    let mut engine = SpeechEngine::open(model)?;
    Ok(Box::new(move |recording| engine.transcribe(recording)))
}

/// A program in place of the speech model: it is given the path, and prints a [`Transcript`] as JSON.
pub fn by_program(program: PathBuf) -> TranscribeFn {
    Box::new(move |recording| {
        let spec = Spec::new(&program).args([recording]).timeout(PROGRAM_TIMEOUT);
        let output = process::run(&spec).map_err(|error| Unheard::Later(error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Unheard::Later(if said.is_empty() { process::describe(output.status) } else { said }));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Unheard::Never(format!("it printed no transcript: {error}")))
    })
}

/// Works through all that is due. `open` is asked when there is something to listen to. Another one at work is no error.
///
/// # Errors
/// The store's, or the lock file's.
pub fn work(
    config: &Config,
    clock: &dyn Clock,
    redactor: &Redactor,
    open: impl FnOnce() -> Result<TranscribeFn, Unheard>,
) -> Result<(), TranscriberError> {
    let _one_at_a_time = match WakeLock::try_acquire(&config.voice_lock_path(), &Identity::current(), clock.now()) {
        Err(LockError::Held(_)) => return Ok(()),
        lock => lock.map_err(TranscriberError::Lock)?,
    };
    let mut store = reveille_cycle::workspace::open(config)?;
    if store.stopped()?.is_some() || store.next_unheard(clock.now())?.is_none() {
        return Ok(());
    }
    let mut transcriber = match open() {
        Ok(transcriber) => {
            store.can_listen(clock.now())?;
            Ok(transcriber)
        }
        Err(why @ Unheard::Later(_)) => return Err(TranscriberError::Engine(why)),
        Err(why) => Err(why),
    };
    for _ in 0..MAX_RECORDINGS {
        if store.stopped()?.is_some() {
            break;
        }
        let Some(file) = store.next_unheard(clock.now())? else { break };
        let heard = match &mut transcriber {
            Ok(transcriber) => listen(config, clock, &mut store, transcriber, &file)?,
            Err(why) => Some(Err(why.clone())),
        };
        if let Some(heard) = heard {
            settle(config, clock, redactor, &mut store, &file, heard)?;
        }
    }
    Ok(())
}

/// Listens to one recording. None when it has been tried too often, and is given up.
fn listen(
    config: &Config,
    clock: &dyn Clock,
    store: &mut Store,
    transcriber: &mut TranscribeFn,
    file: &Attachment,
) -> Result<Option<Result<Transcript, Unheard>>, StoreError> {
    let now = clock.now();
    if file.attempts >= MAX_TRIES {
        // Every try has ended with the end of its listener.
        let why = file.error.as_deref().unwrap_or("it can't be listened to");
        store.file_unhearable(file, why, &words::unheard(file, why, config.timezone), now)?;
        return Ok(None);
    }
    store.listening(file.id, std::process::id(), now + wait_after(file.attempts + 1), now)?;
    let Some(path) = file.path.as_ref().map(|path| config.media_dir.join(path)) else {
        return Ok(Some(Err(Unheard::Never("it isn't where it was kept".to_owned()))));
    };
    Ok(Some(transcriber(&path)))
}

/// Writes down what listening came to.
fn settle(
    config: &Config,
    clock: &dyn Clock,
    redactor: &Redactor,
    store: &mut Store,
    file: &Attachment,
    heard: Result<Transcript, Unheard>,
) -> Result<(), StoreError> {
    let now = clock.now();
    match heard {
        Ok(transcript) => {
            let transcript = Transcript { text: redactor.redact(&transcript.text), ..transcript };
            tracing::info!(file = file.id, "a recording was written down");
            store.file_heard(file, &transcript, now)
        }
        Err(Unheard::SetUp(why)) => {
            tracing::warn!(file = file.id, why, "a recording can't be listened to");
            store.cannot_listen(file, Some(&why), &words::no_model(file, Some(&why)), now)
        }
        Err(Unheard::Later(why)) if file.attempts + 1 < MAX_TRIES => {
            tracing::warn!(file = file.id, why, "a recording could not be made out; it is tried again");
            store.file_unheard(file.id, &redactor.redact(&why), now)
        }
        Err(Unheard::Later(why) | Unheard::Never(why)) => {
            let why = redactor.redact(&why);
            tracing::warn!(file = file.id, why, "a recording could not be made out");
            store.file_unhearable(file, &why, &words::unheard(file, &why, config.timezone), now)
        }
    }
}
