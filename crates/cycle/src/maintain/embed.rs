//! Embeds new texts for the memory's search at the end of a wake that did something: after everything is sent, for a few seconds, and only
//! while no person waits. An idle wake doesn't embed.

use std::time::Duration;

use chrono::TimeDelta;

use reveille_git::Repo;
use reveille_index::{
    IndexError, Sources,
    embed::{self, BackfillError, Backfilled, EmbedContext, EmbedError, Embedder, TextRole},
};
use reveille_store::{EncoderPlace, SpendCap, UpkeepKind};

use crate::{
    context::{Terminal, WakeError},
    decide::budget::Budget,
    maintain::sync,
    session::Session,
};

/// The maximum embedding time of a wake.
pub(crate) const BOUND: Duration = Duration::from_secs(10);
/// The maximum embedding time while a person waits at a terminal.
const WATCHED_BOUND: Duration = Duration::from_secs(2);

/// The number of recorded requests embedded at once.
const REQUESTS: usize = 16;

/// Embeds new texts if there is an embedder. A failure is recorded and reported, but never fails a wake.
pub(crate) async fn embed_new_texts(session: &mut Session<'_>, repo: &Repo) -> Result<(), WakeError> {
    let config = session.context.config;
    let upkeep = || session.store.maintenance().read_upkeep(UpkeepKind::Embed);
    if config.embed_model.is_none() || !upkeep()?.may_try(session.now()) || sync::is_answer_awaited(session, repo)? {
        return Ok(());
    }
    let embedder = match embed::create_embedder(config) {
        Ok(Some(embedder)) => embedder,
        Ok(None) => return Ok(()),
        Err(error) => return record_failure(session, &BackfillError::Embed(error)),
    };
    if let Some(to) = embedder.destination()
        && session.store.maintenance().allowed_embedder()?.as_deref() != Some(embedder.id())
    {
        return ask_permission(session, embedder.id(), to);
    }
    match run_backfill(session, repo, embedder.as_ref()).await {
        Ok(done) => {
            if done.embedded > 0 {
                tracing::info!(texts = done.embedded, whole = done.is_whole, "embedded");
            }
            Ok(session.store.maintenance_mut().record_upkeep_recovery(UpkeepKind::Embed)?)
        }
        Err(Trouble::Wake(error)) => Err(error),
        Err(Trouble::Backfill(error)) => record_failure(session, &error),
    }
}

enum Trouble {
    Wake(WakeError),
    Backfill(BackfillError),
}

impl<T: Into<WakeError>> From<T> for Trouble {
    fn from(error: T) -> Self {
        Self::Wake(error.into())
    }
}

async fn run_backfill(session: &mut Session<'_>, repo: &Repo, embedder: &dyn Embedder) -> Result<Backfilled, Trouble> {
    let context = session.context;
    let bound = match context.terminal {
        Terminal::Unwatched | Terminal::Later => BOUND,
        Terminal::AtEnd | Terminal::AtOnce(_) => WATCHED_BOUND,
    };
    let end = tokio::time::Instant::now() + bound;
    let index = |error| Trouble::Backfill(BackfillError::Index(error));
    let brain = context.config.repo_dir();
    let sources = Sources { brain: &brain, store: Some(&session.store), zone: context.config.timezone };
    let mut ready = match session.index.prepare_index(&sources, Some(bound)) {
        // The process that writes to the index also embeds.
        Err(IndexError::Busy) => return Ok(Backfilled::default()),
        ready => ready.map_err(index)?,
    };
    let caps = Budget::read(&session.store, context.config, session.now())?.caps();
    let dims = ready.index.count_dimensions(embedder.id()).map_err(index)?;
    let requests = fill_requests(session, embedder, &caps, dims);
    match tokio::time::timeout_at(end, requests).await {
        Ok(filled) => filled?,
        Err(_) => return Ok(Backfilled::default()),
    }
    let mut done = Backfilled::default();
    // A batch starts only if it can end in time, judging by the longest so far.
    let (mut began, mut longest) = (tokio::time::Instant::now(), Duration::ZERO);
    loop {
        let now = tokio::time::Instant::now();
        longest = longest.max(now - began);
        began = now;
        if now + longest >= end || session.find_interrupt()?.is_some() || sync::is_answer_awaited(session, repo)? {
            return Ok(done);
        }
        let now = session.now();
        let mut desk =
            EmbedContext { store: Some(session.store.unfenced()), redactor: context.redactor, caps: &caps, now };
        let mut has_begun = false;
        let mut once = |_: &Backfilled| !std::mem::replace(&mut has_begun, true);
        let batch = embed::backfill_vectors(&mut ready.index, embedder, &mut desk, &mut once);
        match tokio::time::timeout_at(end, batch).await {
            Ok(batch) => {
                let batch = batch.map_err(Trouble::Backfill)?;
                done.embedded += batch.embedded;
                done.refused += batch.refused;
                done.is_whole = batch.is_whole;
                if batch.is_whole || batch.embedded + batch.refused == 0 {
                    return Ok(done);
                }
            }
            // The next wake repeats the batch. If even a full time limit is too short, the batch would never succeed.
            Err(_) if done.embedded + done.refused > 0 || bound < BOUND => return Ok(done),
            Err(_) => {
                let why = format!("embedding took longer than {} s", bound.as_secs());
                return Err(Trouble::Backfill(EmbedError::cut_off(why).into()));
            }
        }
    }
}

/// Embeds the requests of recorded wakes for the search for similar ones, saving each batch before the next. A request that the embedder
/// rejects is compared by words.
async fn fill_requests(
    session: &mut Session<'_>,
    embedder: &dyn Embedder,
    caps: &[SpendCap],
    dims: Option<usize>,
) -> Result<(), Trouble> {
    let place = if embedder.destination().is_some() { EncoderPlace::Elsewhere } else { EncoderPlace::Here };
    loop {
        let batch = session.store.recordings().requests_without_vector(embedder.id(), REQUESTS, place)?;
        if batch.is_empty() || session.find_interrupt()?.is_some() {
            return Ok(());
        }
        let texts: Vec<String> = batch.iter().map(|(_, request)| request.clone()).collect();
        let vectors = match embed_requests(session, embedder, caps, (&texts, dims)).await {
            Err(error) if embed::is_of_texts(&error) => {
                let mut each = Vec::new();
                for text in &texts {
                    match embed_requests(session, embedder, caps, (std::slice::from_ref(text), dims)).await {
                        Err(error) if embed::is_of_texts(&error) => each.push(Vec::new()),
                        vectors => each.extend(vectors.map_err(|error| Trouble::Backfill(error.into()))?),
                    }
                }
                // All texts were rejected, so the texts aren't the cause.
                if each.iter().all(Vec::is_empty) {
                    return Ok(());
                }
                each
            }
            vectors => vectors.map_err(|error| Trouble::Backfill(error.into()))?,
        };
        let kept: Vec<(i64, Vec<f32>)> = batch.iter().map(|(id, _)| *id).zip(vectors).collect();
        session.store.recordings_mut().put_request_vectors(embedder.id(), &kept)?;
    }
}

async fn embed_requests(
    session: &mut Session<'_>,
    embedder: &dyn Embedder,
    caps: &[SpendCap],
    (texts, dims): (&[String], Option<usize>),
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let (redactor, now) = (session.context.redactor, session.now());
    let mut desk = EmbedContext { store: Some(session.store.unfenced()), redactor, caps, now };
    // Requests are compared with requests, hence the same role.
    embed::embed_texts(embedder, &mut desk, texts, (TextRole::Query, dims)).await
}

/// Records a failure with a back-off, and reports once to the owner if only they can solve it.
fn record_failure(session: &mut Session<'_>, error: &BackfillError) -> Result<(), WakeError> {
    let why = session.context.redactor.redact(&error.to_string());
    tracing::warn!(%why, "the memory could not be embedded");
    let wait = match error {
        BackfillError::Embed(EmbedError::Later { retry_after, .. }) => *retry_after,
        _ => None,
    };
    let wait = wait.and_then(|wait| TimeDelta::from_std(wait).ok());
    let failures = session.store.maintenance_mut().record_upkeep_failure(UpkeepKind::Embed, &why, wait)?.failures;
    let is_persons = matches!(error, BackfillError::Embed(EmbedError::SetUp(_) | EmbedError::Unusable { .. }));
    if is_persons && failures == 1 {
        let text = format!(
            "I can't search my memory by meaning: {why}. Meanwhile I search by your words, and nothing is lost. To see what to do, run \
             `health check` on my machine."
        );
        session.alarm(&format!("embed/{why}"), text)?;
    }
    Ok(())
}

/// Asks the owner, once per embedder, for permission to send everything that is searched.
fn ask_permission(session: &mut Session<'_>, id: &str, to: &str) -> Result<(), WakeError> {
    let text = format!(
        "To search my memory by meaning, I'd send **all of it** to {to}: my notes, and everything that anyone has said to me. \
         Nothing has been sent. To allow it, run `wake memory embed allow` on my machine; otherwise I keep searching by your words."
    );
    session.alarm(&format!("embed/ask/{id}"), text).map(drop)
}
