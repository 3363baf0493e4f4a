//! The encoder on this machine, in a helper. `reveille-embedder` starts with the first batch and ends with this value, which frees
//! its memory. Each line is a batch, and each answer is a line.

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use ring::digest::{Context, SHA256};
use tokio::sync::Mutex;

use reveille_base::process::{self, Lines, Spec};
use reveille_encoder::{EmbedderAnswer, EmbedderRequest, from_text};

use super::{EmbedError, EmbedFuture, Embedded, Embedder, MAX_BATCH, MAX_DIMS, TextRole};

/// The embedding program on this machine.
const EMBEDDER: &str = "reveille-embedder";
/// The maximum length of an answer line, in bytes: a full batch of the longest vectors in base64.
const MAX_LINE_BYTES: usize = MAX_BATCH * MAX_DIMS * 6;
/// The maximum time of a batch. A slow machine needs half a minute for the longest texts.
const BATCH_TIMEOUT: Duration = Duration::from_secs(120);
/// The bytes of the weights sampled at both ends of the file, to identify a model.
const SAMPLE_BYTES: u64 = 64 * 1024;
/// The bytes of a digest used as a model's id.
const ID_BYTES: usize = 8;

/// The encoder in a folder.
pub(super) struct LocalEmbedder {
    id: String,
    folder: PathBuf,
    program: PathBuf,
    child: Mutex<Option<Lines>>,
}

impl LocalEmbedder {
    /// Identifies the model in the folder. The helper starts later.
    pub(super) fn new(folder: &Path) -> Result<Self, EmbedError> {
        let missing = |error| {
            EmbedError::SetUp(format!(
                "EMBED_MODEL names no sentence encoder: {} can't be read ({error}). \
                 `scripts/fetch-model embed` gets one and prints its path",
                folder.display()
            ))
        };
        let id = format!("local:{}", hash_model(folder).map_err(missing)?);
        Ok(Self {
            id,
            folder: folder.to_owned(),
            program: process::resolve_sibling_program(EMBEDDER),
            child: Mutex::default(),
        })
    }

    async fn ask_helper(&self, texts: &[String]) -> Result<Embedded, EmbedError> {
        let mut child = self.child.lock().await;
        let mut lines = match child.take() {
            Some(lines) => lines,
            None => self.start_helper()?,
        };
        let request = EmbedderRequest { texts: texts.to_vec() };
        let request = serde_json::to_string(&request).map_err(|error| EmbedError::Refused(error.to_string()))?;
        // The fuse kills a helper that takes too long. If this call is dropped, `lines` kills the helper.
        let fuse = lines.kill_after(BATCH_TIMEOUT);
        lines.send_line(request);
        let Some(line) = lines.next().await else {
            let complaint = lines.find_error_line().await;
            let why = if complaint.is_empty() { "it said nothing" } else { &complaint };
            return Err(EmbedError::later(format!("{EMBEDDER} ended: {why}")));
        };
        drop(fuse);
        let line = line.map_err(|error| EmbedError::later(format!("{EMBEDDER} said {error}")))?;
        let answer: EmbedderAnswer =
            serde_json::from_str(&line).map_err(|_| EmbedError::later(format!("{EMBEDDER} returned no vectors")))?;
        if let Some(why) = answer.error {
            return Err(EmbedError::SetUp(why));
        }
        let vectors = answer.vectors.iter().map(|text| from_text(text)).collect::<Option<Vec<_>>>();
        let vectors = vectors.ok_or_else(|| EmbedError::later(format!("{EMBEDDER} returned damaged vectors")))?;
        *child = Some(lines);
        Ok(Embedded { vectors, tokens: None })
    }

    fn start_helper(&self) -> Result<Lines, EmbedError> {
        // The helper needs only the folder.
        let spec = Spec::new(&self.program).args([&self.folder]).only_inheriting(&["PATH", "LANG"]);
        Lines::start(&spec, MAX_LINE_BYTES).map_err(|error| EmbedError::SetUp(error.to_string()))
    }
}

impl Embedder for LocalEmbedder {
    fn id(&self) -> &str {
        &self.id
    }

    fn destination(&self) -> Option<&str> {
        None
    }

    fn usd_per_million(&self) -> f64 {
        0.0
    }

    fn embed<'a>(&'a self, texts: &'a [String], _role: TextRole) -> EmbedFuture<'a> {
        Box::pin(self.ask_helper(texts))
    }
}

/// Identifies a folder's model independently of its place: hashes its settings and both ends of its weights.
fn hash_model(folder: &Path) -> std::io::Result<String> {
    let mut digest = Context::new(&SHA256);
    digest.update(&std::fs::read(folder.join("config.json"))?);
    for may_be_missing in ["tokenizer_config.json", "sentence_bert_config.json", "1_Pooling/config.json"] {
        digest.update(&std::fs::read(folder.join(may_be_missing)).unwrap_or_default());
    }
    let weights = File::open(folder.join("model.safetensors"))?;
    let length = weights.metadata()?.len();
    digest.update(&length.to_le_bytes());
    for at in [0, length.saturating_sub(SAMPLE_BYTES)] {
        let mut sample = vec![0; usize::try_from(SAMPLE_BYTES.min(length)).unwrap_or(0)];
        weights.read_exact_at(&mut sample, at)?;
        digest.update(&sample);
    }
    Ok(digest.finish().as_ref().iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect())
}
