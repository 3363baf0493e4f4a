//! Transcribes 11 seconds of human speech with tiny.en on two threads. Measures the overhead of our code over whisper.cpp's own work,
//! and the gain over whisper.cpp with its defaults (`benches/plain-whisper`, a separate program, since its build options differ). All of
//! them already hold the model in memory.

use super::{support::speech, table::Row};

/// The name of the main figure, which is also reported if the measurement can't run.
const FIGURE: &str = "speech: 11 s voice note";

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    match speech::found("jfk.ogg") {
        Some((model, recording)) => measure_speech(rounds, &model, &recording),
        None => not_run("not run: no model (REVEILLE_TEST_MODEL), recording (REVEILLE_TEST_SPEECH), or feature voice"),
    }
}

fn not_run(why: &str) -> Vec<Row> {
    vec![Row::alone(FIGURE, "ms", Err(why.to_owned()), super::table::Bound::None)]
}

#[cfg(not(feature = "voice"))]
fn measure_speech(_rounds: usize, _model: &std::path::Path, _recording: &std::path::Path) -> Vec<Row> {
    not_run("not run: built without the feature voice")
}

#[cfg(feature = "voice")]
use with_voice::measure_speech;

#[cfg(feature = "voice")]
mod with_voice {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        path::Path,
        process::{Child, ChildStdout, Command, Stdio},
        time::Duration,
    };

    use reveille_speech as voice;
    use reveille_speech::Transcriber;
    use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters};

    use super::{FIGURE, speech};
    use crate::{
        measure::{Pair, timed},
        table::{Bound, Row},
    };

    const THREADS: usize = 2;

    pub(super) fn measure_speech(rounds: usize, model: &Path, recording: &Path) -> Vec<Row> {
        let ours = Transcriber::open(model).unwrap().with_threads(THREADS);
        let whole = Transcriber::open(model).unwrap().with_threads(THREADS).with_whole_context();
        let bare = WhisperContext::new_with_params(model, WhisperContextParameters::default()).unwrap();
        let samples = voice::decode_file(recording).unwrap().samples;
        let transcribe = |transcriber: &Transcriber| timed(|| drop(transcriber.transcribe(recording).unwrap()));
        let (ours_timed, whole_timed) = (|| transcribe(&ours), || transcribe(&whole));
        let bare_timed = || timed(|| call(&bare, &samples));
        Pair::by_turns(2, ours_timed, bare_timed);
        let overhead = Pair::by_turns(rounds, ours_timed, bare_timed);
        let fitted = Pair::by_turns(rounds, ours_timed, whole_timed);
        let errors = |transcriber: &Transcriber| {
            speech::word_error_rate(speech::JFK, &transcriber.transcribe(recording).unwrap().text) * 100.0
        };
        let errors_ours = errors(&ours);
        let mut rows = vec![
            Row::pair(FIGURE, "bare call, decoded audio", overhead, Bound::Ratio(1.1)),
            Row::pair("speech: context that fits", "30 s context, the same build", fitted, Bound::None),
        ];
        match Plain::start(model, &samples) {
            Ok(mut plain) => {
                plain.call();
                let pair = Pair::by_turns(rounds, ours_timed, || plain.call());
                let errors_plain = speech::word_error_rate(speech::JFK, &plain.said) * 100.0;
                rows.extend([
                    Row::pair("speech: with our settings", "whisper.cpp with its defaults", pair, Bound::Ratio(0.333)),
                    Row::alone("speech: word error rate, whisper.cpp", "%", Ok(vec![errors_plain]), Bound::None),
                    Row::alone("speech: word error rate, ours", "%", Ok(vec![errors_ours]), Bound::Max(errors_plain)),
                ]);
            }
            Err(why) => rows.push(Row::alone("speech: with our settings", "ms", Err(why), Bound::None)),
        }
        rows
    }

    /// whisper.cpp with its defaults, in a process that holds the model.
    struct Plain {
        child: Child,
        answers: BufReader<ChildStdout>,
        said: String,
    }

    impl Plain {
        /// Starts the program that `PLAIN_WHISPER` names.
        ///
        /// # Errors
        /// The reason why it can't start.
        #[expect(clippy::disallowed_methods, reason = "a program of the benchmark's own")]
        fn start(model: &Path, samples: &[f32]) -> Result<Self, String> {
            let program =
                std::env::var_os("PLAIN_WHISPER").ok_or("not run: PLAIN_WHISPER names no benches/plain-whisper")?;
            let file = std::env::temp_dir().join("plain-whisper.f32");
            let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            std::fs::write(&file, bytes).map_err(|error| error.to_string())?;
            let mut child = Command::new(program)
                .arg(model)
                .arg(file)
                .arg(THREADS.to_string())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| error.to_string())?;
            let answers = BufReader::new(child.stdout.take().unwrap());
            Ok(Self { child, answers, said: String::new() })
        }

        /// Makes one call and returns the time the program reports.
        fn call(&mut self) -> Duration {
            writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
            let mut answer = String::new();
            self.answers.read_line(&mut answer).unwrap();
            let (took, said) = answer.trim().split_once(' ').unwrap();
            self.said = said.to_owned();
            Duration::from_secs_f64(took.parse::<f64>().unwrap() / 1e3)
        }
    }

    impl Drop for Plain {
        fn drop(&mut self) {
            // The program exits when its input ends.
            drop(self.child.stdin.take());
            self.child.wait().ok();
        }
    }

    /// The library's own call with the same parameters, on decoded samples.
    fn call(context: &WhisperContext, samples: &[f32]) {
        let mut params = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
        params.set_n_threads(THREADS as i32);
        params.set_audio_ctx(voice::fitted_positions(samples.len()) as i32);
        params.set_suppress_nst(true);
        params.set_print_progress(false);
        params.set_print_realtime(false);
        params.set_print_timestamps(false);
        let mut state = context.create_state().unwrap();
        state.full(params, samples).unwrap();
        assert!(state.full_n_segments() > 0);
    }
}
