//! Writing down 11 seconds of human speech with tiny.en on two threads: what our code adds to whisper.cpp's own work, and what a
//! context that fits saves. Both hold the model in memory already.

use super::{support::speech, table::Row};

/// Told where the model or the recording isn't there.
const FIGURE: &str = "speech: 11 s voice note";

pub(crate) fn measure(rounds: usize) -> Vec<Row> {
    match speech::found("jfk.ogg") {
        Some((model, recording)) => measured(rounds, &model, &recording),
        None => not_run("not run: no model (REVEILLE_TEST_MODEL), recording (REVEILLE_TEST_SPEECH), or feature voice"),
    }
}

fn not_run(why: &str) -> Vec<Row> {
    vec![Row::alone(FIGURE, "ms", Err(why.to_owned()), super::table::Bound::None)]
}

#[cfg(not(feature = "voice"))]
fn measured(_rounds: usize, _model: &std::path::Path, _recording: &std::path::Path) -> Vec<Row> {
    not_run("not run: built without the feature voice")
}

#[cfg(feature = "voice")]
use with_voice::measured;

#[cfg(feature = "voice")]
mod with_voice {
    use std::path::Path;

    use reveille::voice::{self, Transcriber};
    use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters};

    use super::{FIGURE, speech};
    use crate::{
        measure::{Pair, timed},
        table::{Bound, Row},
    };

    const THREADS: usize = 2;

    pub(super) fn measured(rounds: usize, model: &Path, recording: &Path) -> Vec<Row> {
        let ours = Transcriber::open(model).unwrap().with_threads(THREADS);
        let whole = Transcriber::open(model).unwrap().with_threads(THREADS).with_whole_context();
        let bare = WhisperContext::new_with_params(model, WhisperContextParameters::default()).unwrap();
        let samples = voice::decode(recording).unwrap().samples;
        let transcribe = |transcriber: &Transcriber| timed(|| drop(transcriber.transcribe(recording).unwrap()));
        let (ours_timed, whole_timed) = (|| transcribe(&ours), || transcribe(&whole));
        let bare_timed = || timed(|| call(&bare, &samples));
        Pair::by_turns(2, ours_timed, bare_timed);
        let overhead = Pair::by_turns(rounds, ours_timed, bare_timed);
        let fitted = Pair::by_turns(rounds, ours_timed, whole_timed);
        let errors = |transcriber: &Transcriber| {
            speech::word_error_rate(speech::JFK, &transcriber.transcribe(recording).unwrap().text) * 100.0
        };
        let (errors_fitted, errors_whole) = (errors(&ours), errors(&whole));
        vec![
            Row::pair(FIGURE, "bare call, decoded audio", overhead, Bound::Ratio(1.1)),
            Row::pair("speech: context that fits", "30 s context", fitted, Bound::Ratio(0.333)),
            Row::alone("speech: word error rate, 30 s context", "%", Ok(vec![errors_whole]), Bound::None),
            Row::alone(
                "speech: word error rate, context that fits",
                "%",
                Ok(vec![errors_fitted]),
                Bound::Max(errors_whole),
            ),
        ]
    }

    /// The library's own call with the same parameters, on samples that are there.
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
