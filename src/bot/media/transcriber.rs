//! The listener, a child process: transcribes the due recordings and ends, which frees the memory of the speech model. A
//! flock admits one listener at a time, and only the listener writes its results.

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
    Attachment, Store, StoreError, compute_retry_wait,
    wake_lock::{LockError, WakeLock},
};

use super::{engine::SpeechEngine, words};

/// Maximum tries for a recording that can't be transcribed.
const MAX_TRIES: u32 = 3;
/// Maximum recordings per listener. Each is settled or postponed, so the loop ends.
const MAX_RECORDINGS: usize = 500;
/// Time limit per recording for a program that replaces the speech model.
const PROGRAM_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10 * 60);

/// The reason the listener ended early. Earlier results are kept.
#[derive(Debug, thiserror::Error)]
pub enum TranscriberError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock file can't be used.
    #[error(transparent)]
    Lock(LockError),
    /// The speech program ended before it had loaded its model, for example for lack of memory. The recordings aren't
    /// at fault.
    #[error("{0}")]
    Engine(Unheard),
}

/// Transcribes the recording at a path.
pub type TranscribeFn = Box<dyn FnMut(&Path) -> Result<Transcript, Unheard>>;

/// Starts the speech model that the settings name.
///
/// # Errors
/// [`Unheard::SetUp`] if no model is set or the speech program can't be started.
pub fn start_engine(model: Option<&Path>) -> Result<TranscribeFn, Unheard> {
    let model = model.ok_or_else(|| Unheard::SetUp("WHISPER_MODEL isn't set".to_owned()))?;
    let mut engine = SpeechEngine::open(model)?;
    Ok(Box::new(move |recording| engine.transcribe(recording)))
}

/// Returns a transcriber that runs `program` with the recording's path and reads a [`Transcript`] as JSON from its output.
pub fn build_program_transcriber(program: PathBuf) -> TranscribeFn {
    Box::new(move |recording| {
        let spec = Spec::new(&program).args([recording]).timeout(PROGRAM_TIMEOUT);
        let output = process::run(&spec).map_err(|error| Unheard::Later(error.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(Unheard::Later(if said.is_empty() { process::describe_exit(output.status) } else { said }));
        }
        serde_json::from_slice(&output.stdout)
            .map_err(|error| Unheard::Never(format!("the speech program printed no transcript: {error}")))
    })
}

/// Transcribes all due recordings. Calls `open` only if there is one. Another listener at work is no error.
///
/// # Errors
/// If the store or the lock file fails, or the speech program ends before it has loaded its model.
pub fn transcribe_all(
    config: &Config,
    clock: &dyn Clock,
    redactor: &Redactor,
    open: impl FnOnce() -> Result<TranscribeFn, Unheard>,
) -> Result<(), TranscriberError> {
    let _one_at_a_time = match WakeLock::try_acquire(&config.voice_lock_path(), &Identity::current(), clock.now()) {
        Err(LockError::Held(_)) => return Ok(()),
        lock => lock.map_err(TranscriberError::Lock)?,
    };
    let mut store = reveille_cycle::workspace::open_database(config)?;
    if store.chats().find_stop_order()?.is_some() || store.attachments().find_next_recording(clock.now())?.is_none() {
        return Ok(());
    }
    let mut transcriber = match open() {
        Ok(transcriber) => {
            store.attachments_mut().retry_unheard_recordings(clock.now())?;
            Ok(transcriber)
        }
        Err(why @ Unheard::Later(_)) => return Err(TranscriberError::Engine(why)),
        Err(why) => Err(why),
    };
    for _ in 0..MAX_RECORDINGS {
        if store.chats().find_stop_order()?.is_some() {
            break;
        }
        let Some(file) = store.attachments().find_next_recording(clock.now())? else { break };
        let heard = match &mut transcriber {
            Ok(transcriber) => transcribe_file(config, clock, &mut store, transcriber, &file)?,
            Err(why) => Some(Err(why.clone())),
        };
        if let Some(heard) = heard {
            record_result(config, clock, redactor, &mut store, &file, heard)?;
        }
    }
    Ok(())
}

/// Transcribes one recording. `None` if it is given up after too many tries.
fn transcribe_file(
    config: &Config,
    clock: &dyn Clock,
    store: &mut Store,
    transcriber: &mut TranscribeFn,
    file: &Attachment,
) -> Result<Option<Result<Transcript, Unheard>>, StoreError> {
    let now = clock.now();
    if file.attempts >= MAX_TRIES {
        // The listener has died in every try.
        let why = file.error.as_deref().unwrap_or("the recording can't be processed");
        store.attachments_mut().give_up_recording(
            file,
            why,
            &words::build_unheard_notice(file, why, config.timezone),
            now,
        )?;
        return Ok(None);
    }
    store.attachments_mut().begin_transcription(
        file.id,
        std::process::id(),
        now + compute_retry_wait(file.attempts + 1),
        now,
    )?;
    let Some(path) = file.path.as_ref().map(|path| config.media_dir.join(path)) else {
        return Ok(Some(Err(Unheard::Never("the saved file is missing".to_owned()))));
    };
    Ok(Some(transcriber(&path)))
}

/// Records the result of a transcription.
fn record_result(
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
            tracing::info!(file = file.id, "a recording was transcribed");
            store.attachments_mut().save_transcript(file, &transcript, now)
        }
        Err(Unheard::SetUp(why)) => {
            tracing::warn!(file = file.id, why, "a recording can't be transcribed");
            store.attachments_mut().give_up_without_speech_model(
                file,
                Some(&why),
                &words::no_model(file, Some(&why)),
                now,
            )
        }
        Err(Unheard::Later(why)) if file.attempts + 1 < MAX_TRIES => {
            tracing::warn!(file = file.id, why, "a recording could not be transcribed; it is tried again");
            store.attachments_mut().record_failed_transcription(file.id, &redactor.redact(&why), now)
        }
        Err(Unheard::Later(why) | Unheard::Never(why)) => {
            let why = redactor.redact(&why);
            tracing::warn!(file = file.id, why, "a recording could not be transcribed");
            store.attachments_mut().give_up_recording(
                file,
                &why,
                &words::build_unheard_notice(file, &why, config.timezone),
                now,
            )
        }
    }
}
