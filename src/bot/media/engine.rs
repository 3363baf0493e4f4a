//! The speech model as a child program: started for the first recording, driven by lines, and ended with this value.

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

/// The program that recognises speech.
const TRANSCRIBER: &str = "reveille-transcriber";
/// Maximum bytes of stderr to keep.
const MAX_COMPLAINT_BYTES: u64 = 2_048;

/// The speech program with its model.
pub(super) struct SpeechEngine {
    model: PathBuf,
    child: Option<SpeechChild>,
}

struct SpeechChild {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The kept stderr, available after the end.
    complaint: JoinHandle<String>,
    _leashed: Leashed,
}

impl SpeechEngine {
    /// Starts the program, which loads the model.
    ///
    /// # Errors
    /// [`Unheard::SetUp`] if the program can't be started; [`Unheard::Later`] if it ends before it has loaded the model.
    pub(super) fn open(model: &Path) -> Result<Self, Unheard> {
        Ok(Self { model: model.to_owned(), child: Some(SpeechChild::start(model)?) })
    }

    /// Transcribes a recording. If it kills the program, the next recording starts a new one, and this recording is
    /// retried as usual.
    pub(super) fn transcribe(&mut self, recording: &Path) -> Result<Transcript, Unheard> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => SpeechChild::start(&self.model)?,
        };
        let line = serde_json::to_string(recording).map_err(|error| Unheard::Never(error.to_string()))?;
        // A dead child is noticed by its missing answer.
        writeln!(child.input, "{line}").ok();
        match child.read_answer() {
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
        // The program needs only the model and the recordings.
        let spec =
            Spec::new(process::resolve_sibling_program(TRANSCRIBER)).args([model]).only_inheriting(&["PATH", "LANG"]);
        let started = Leashed::start_with_pipes(&spec).map_err(|error| Unheard::SetUp(error.to_string()))?;
        let (leashed, Pipes { stdin, stdout, stderr }) = started;
        let complaint = thread::spawn(move || {
            let mut kept = Vec::new();
            let mut stderr = stderr;
            stderr.by_ref().take(MAX_COMPLAINT_BYTES).read_to_end(&mut kept).ok();
            // The rest is read too: a full pipe would block the program.
            std::io::copy(&mut stderr, &mut std::io::sink()).ok();
            String::from_utf8_lossy(&kept).trim().to_owned()
        });
        let mut child = Self { input: stdin, output: BufReader::new(stdout), complaint, _leashed: leashed };
        match child.read_answer::<()>() {
            Some(opened) => opened.map(|()| child),
            None => Err(Unheard::Later(child.why_over())),
        }
    }

    /// Reads the next line. `None` if the program has ended or wrote something unexpected.
    fn read_answer<T: DeserializeOwned>(&mut self) -> Option<Result<T, Unheard>> {
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
