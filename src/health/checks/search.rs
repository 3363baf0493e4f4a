//! `search`: a fact in the memory must be found by its own words, and the local encoder must rank a paraphrase above
//! another sentence. A paid embedder isn't asked; the result of its last call is reported.

use reveille_index::{
    IndexError, Ready, SearchQuery, Sources,
    embed::{self, EmbedContext, EmbedError, Embedder, TextRole},
};
use reveille_memory as memory;
use reveille_memory::facts::Facts;
use reveille_store::{Upkeep, UpkeepKind};

use crate::health::{
    finding::{Finding, Trouble},
    remedy::Remedy,
    scene::Scene,
};

/// A sentence, its paraphrase, and an unrelated sentence.
const CANARY: [&str; 3] =
    ["The cat sleeps in my house.", "A feline sleeps in my home.", "The doctor needs a new red car tomorrow."];
/// Time limit for the encoder, in seconds.
const BOUND_S: u64 = 20;
/// Number of hits among which the fact must be.
const HITS: usize = 10;
/// Minimum words of a fact to search for; a shorter one isn't distinctive enough.
const MIN_WORDS: usize = 3;
const REBUILD: &str =
    "wake memory reindex (nothing is lost: the index is rebuilt from the memory and the conversations)";

pub(super) fn check(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    Ok(check_words(scene)?.merge(check_meaning(scene)?))
}

/// Checks that a known fact is found.
fn check_words(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let (config, path) = (scene.config, scene.config.index_path());
    let (Some(repo), true) = (scene.repo()?, path.exists()) else {
        return Ok(Finding::ok("nothing is indexed yet"));
    };
    if scene.is_brief {
        return Ok(Finding::ok("the memory is indexed"));
    }
    if scene.is_dry {
        return Ok(Finding::ok("not searched in a dry run, because searching updates the index"));
    }
    let text = repo.read_work_tree(memory::SEMANTIC_MEMORY)?.unwrap_or_default();
    let sources = Sources { brain: &config.repo_dir(), store: scene.store()?, zone: config.timezone };
    let mut ready = match Ready::open(&path, &sources, None) {
        Ok(ready) => ready,
        Err(IndexError::Busy) => return Ok(Finding::ok("the index is being written")),
        Err(error) => return Ok(advise_rebuild(format!("{error}"))),
    };
    let facts = Facts::parse(&text).0;
    let fact =
        facts.iter().map(|(_, fact)| &fact.text).filter(|fact| fact.split_whitespace().count() >= MIN_WORDS).last();
    let Some(fact) = fact else {
        return Ok(Finding::ok("the memory is indexed"));
    };
    let query = SearchQuery {
        text: fact,
        limit: HITS,
        today: scene.now.with_timezone(&config.timezone).date_naive(),
        owner: config.owner_chat,
        ..SearchQuery::default()
    };
    Ok(match ready.index.search(&query) {
        Ok(hits) if hits.iter().any(|hit| hit.path == memory::SEMANTIC_MEMORY) => Finding::ok("a known fact is found"),
        Ok(_) => advise_rebuild("a fact in the memory isn't found by its own words"),
        Err(error) => advise_rebuild(format!("{error}")),
    })
}

fn advise_rebuild(what: impl Into<String>) -> Finding {
    Finding::warn(what, REBUILD).with_remedy(Remedy::RebuildIndex)
}

/// Checks that the configured embedder works.
fn check_meaning(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let embedder = match embed::create_embedder(scene.config) {
        Ok(None) => return Ok(Finding::ok("by keywords alone (EMBED_MODEL isn't set)")),
        Ok(Some(embedder)) => embedder,
        Err(error) => return Ok(report_unusable(&error.to_string())),
    };
    let store = scene.store()?;
    let upkeep = store.map(|store| store.maintenance().read_upkeep(UpkeepKind::Embed)).transpose()?.unwrap_or_default();
    let Some(to) = embedder.destination() else {
        if scene.is_brief {
            return Ok(Finding::ok("an encoder on this machine is set up"));
        }
        return Ok(judge_canary(measure_canary(scene, embedder.as_ref()), &upkeep));
    };
    let allowed = store.map(|store| store.maintenance().allowed_embedder()).transpose()?.flatten();
    Ok(judge_paid(to, allowed.as_deref() == Some(embedder.id()), &upkeep))
}

/// Returns the cosines of the sentence with its paraphrase and with the unrelated sentence.
fn measure_canary(scene: &Scene<'_>, embedder: &dyn Embedder) -> Result<(f32, f32), EmbedError> {
    let later = |error: std::io::Error| EmbedError::later(error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(later)?;
    let mut desk = EmbedContext { store: None, redactor: scene.redactor, caps: &[], now: scene.now };
    let texts = CANARY.map(str::to_owned);
    let asking = embed::embed_texts(embedder, &mut desk, &texts, (TextRole::Kept, None));
    let bound = std::time::Duration::from_secs(BOUND_S);
    let vectors = runtime
        .block_on(async { tokio::time::timeout(bound, asking).await })
        .map_err(|_| EmbedError::later(format!("three sentences took longer than {BOUND_S} s")))??;
    let mut vectors = vectors.into_iter();
    let (sentence, same, other) =
        (vectors.next().unwrap_or_default(), vectors.next().unwrap_or_default(), vectors.next().unwrap_or_default());
    let cosine = |vector: &[f32]| sentence.iter().zip(vector).map(|(left, right)| left * right).sum();
    Ok((cosine(&same), cosine(&other)))
}

fn judge_canary(cosines: Result<(f32, f32), EmbedError>, upkeep: &Upkeep) -> Finding {
    match (cosines, &upkeep.error) {
        (Err(error), _) => report_unusable(&error.to_string()),
        (Ok((same, other)), _) if same <= other => report_unusable(&format!(
            "it rates unrelated sentences as closer than paraphrases ({other:.2} to {same:.2})"
        )),
        (Ok(_), Some(why)) if upkeep.failures > 0 => Finding::warn(
            format!("the encoder works, but the last wake couldn't embed: {why}"),
            "the next wakes try again; wake memory reindex --embed does it now",
        )
        .with_remedy(Remedy::Embed),
        (Ok(_), _) => Finding::ok("the encoder on this machine works"),
    }
}

fn judge_paid(to: &str, is_allowed: bool, upkeep: &Upkeep) -> Finding {
    match &upkeep.error {
        _ if !is_allowed => Finding::warn(
            format!(
                "by keywords alone: {to} would embed, but you haven't allowed sending it everything that is searched"
            ),
            "wake memory embed allow, or remove EMBED_MODEL",
        ),
        Some(why) if upkeep.failures > 0 => report_unusable(why),
        _ => Finding::ok(format!("{to} embeds")),
    }
}

fn report_unusable(why: &str) -> Finding {
    Finding::warn(
        format!("by keywords alone, because the embedder can't be used: {why}"),
        "correct EMBED_MODEL or what it names (scripts/fetch-model embed downloads an encoder), or remove it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    #[test]
    fn an_encoder_that_cannot_tell_sentences_apart_is_reported() {
        let (fine, failed) =
            (Upkeep::default(), Upkeep { failures: 2, error: Some("cut".into()), ..Upkeep::default() });
        assert_eq!(judge_canary(Ok((0.7, 0.1)), &fine).status, Status::Ok);
        let blind = judge_canary(Ok((0.1, 0.1)), &fine);
        assert!(blind.status == Status::Warn && blind.detail.contains("0.10 to 0.10"), "{blind:?}");
        assert!(judge_canary(Ok((0.7, 0.1)), &failed).fix.unwrap().contains("reindex --embed"));
        assert!(judge_canary(Err(EmbedError::later("gone")), &fine).detail.contains("gone"));
    }

    #[test]
    fn a_paid_embedder_is_judged_by_its_last_call() {
        let failed = Upkeep { failures: 1, error: Some("HTTP 401".into()), ..Upkeep::default() };
        assert!(judge_paid("api.example.org", false, &failed).fix.unwrap().contains("wake memory embed allow"));
        assert!(judge_paid("api.example.org", true, &failed).detail.contains("HTTP 401"));
        assert_eq!(judge_paid("api.example.org", true, &Upkeep::default()).status, Status::Ok);
    }
}
