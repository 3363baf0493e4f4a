//! The speech model, in a program of its own: it is started for the first recording, spoken with by lines, and ends with this value.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout},
    thread::{self, JoinHandle},
};

use serde::de::DeserializeOwned;

use reveille_base::process::{self, Leashed, Pipes, Spec};
use reveille_media::Transcript;
use reveille_media::speech::Unheard;

/// The program that understands speech.
const TRANSCRIBER: &str = "reveille-transcriber";
/// How much is kept of what it complains of, in bytes.
const MAX_COMPLAINT_BYTES: u64 = 2_048;

/// The program with its model.
pub(super) struct SpeechEngine {
    model: PathBuf,
    child: Option<SpeechChild>,
}

struct SpeechChild {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// What it complained of, once it is over.
    complaint: JoinHandle<String>,
    _leashed: Leashed,
}

impl SpeechEngine {
    /// Has the model read.
    ///
    /// # Errors
    /// [`Unheard::SetUp`] where that can't be.
    pub(super) fn open(model: &Path) -> Result<Self, Unheard> {
        Ok(Self { model: model.to_owned(), child: Some(SpeechChild::start(model)?) })
    }

    /// What is said in a recording. One that kills the program is tried again like any other: the next begins with a new one.
    pub(super) fn transcribe(&mut self, recording: &Path) -> Result<Transcript, Unheard> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => SpeechChild::start(&self.model)?,
        };
        let line = serde_json::to_string(recording).map_err(|error| Unheard::Never(error.to_string()))?;
        // What a dead one can't take is noticed by its answer.
        writeln!(child.input, "{line}").ok();
        match child.answer() {
            Some(heard) => {
                self.child = Some(child);
                heard
            }
            None => Err(Unheard::Later(child.why_over())),
        }
    }
}

impl SpeechChild {
    fn start(model: &Path) -> Result<Self, Unheard> {
        // It needs nothing but the model and what it listens to.
        let spec = Spec::new(process::beside(TRANSCRIBER)).args([model]).only_inheriting(&["PATH", "LANG"]);
        let started = Leashed::start_piped(&spec).map_err(|error| Unheard::SetUp(error.to_string()))?;
        let (leashed, Pipes { stdin, stdout, stderr }) = started;
        let complaint = thread::spawn(move || {
            let mut kept = Vec::new();
            let mut stderr = stderr;
            stderr.by_ref().take(MAX_COMPLAINT_BYTES).read_to_end(&mut kept).ok();
            // The rest is read all the same: a full pipe would stop it.
            std::io::copy(&mut stderr, &mut std::io::sink()).ok();
            String::from_utf8_lossy(&kept).trim().to_owned()
        });
        let mut child = Self { input: stdin, output: BufReader::new(stdout), complaint, _leashed: leashed };
        match child.answer::<()>() {
            Some(opened) => opened.map(|()| child),
            None => Err(Unheard::Later(child.why_over())),
        }
    }

    /// Its next line; none if it is over, or says something else.
    fn answer<T: DeserializeOwned>(&mut self) -> Option<Result<T, Unheard>> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok().filter(|read| *read > 0)?;
        serde_json::from_str(&line).ok()
    }

    fn why_over(self) -> String {
        drop((self.input, self._leashed));
        let complaint = self.complaint.join().unwrap_or_default();
        let complaint = complaint.lines().last().unwrap_or("it said nothing").to_owned();
        format!("{TRANSCRIBER} ended: {complaint}")
    }
}
