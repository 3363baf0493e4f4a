//! whisper.cpp, tuned for short messages: the model is told the length of the sound, since it otherwise computes thirty seconds for any
//! input.

use std::{io::Read as _, path::Path, thread};

use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters, WhisperError, WhisperState};

use super::{
    RATE_HZ, Sound, Transcript, VoiceError, activity, decode_file,
    sift::{self, Heard},
};

/// The first bytes of a model file: "ggml", little-endian.
const MODEL_MAGIC: [u8; 4] = *b"lmgg";
/// The size of the magic and eleven 32-bit numbers; the second is the number of tokens, the seventh the decoder's width.
const HEADER_BYTES: usize = 48;
const TOKENS_AT: usize = 4;
const WIDTH_AT: usize = 28;
/// The maximum number of weights in a byte, at four bits each. A whole model is at least as large as its token embeddings packed this way.
const MOST_WEIGHTS_PER_BYTE: u64 = 2;
/// The most threads, to leave room for other programs; more gain little.
const MAX_THREADS: usize = 4;
/// The encoder's positions per second of sound.
const POSITIONS_PER_SECOND: f64 = 50.0;
/// The model's whole context, in positions: thirty seconds.
const MAX_POSITIONS: usize = 1500;
/// The context beyond the recording's own length, in positions.
const MARGIN_POSITIONS: usize = 32;
/// The minimum context, in positions: nine seconds. With less, the model misses the end of a short recording and repeats it. With 64
/// positions beyond the recording's length, a third of the words in clips of 2 to 5 s were wrong (tiny.en). With nine seconds, 1.3 % were
/// wrong in clips of 2 to 11 s, against 2.3 % with the whole context.
const MIN_POSITIONS: usize = 448;
/// The step to which contexts are rounded up, in positions: only matrices of such sizes are computed in tiles.
const STEP_POSITIONS: usize = 16;
/// The length to which shorter recordings are padded with silence, in samples: whisper.cpp refuses less than 100 ms.
const MIN_SAMPLES: usize = RATE_HZ as usize;
/// A span that whisper.cpp accepts but is too short to compute anything, in milliseconds.
const EMPTY_RUN_MS: i32 = 100;
/// The tolerance of a segment's times, in samples: half a second.
const SLACK_SAMPLES: usize = RATE_HZ as usize / 2;

/// A speech model in memory: some hundred megabytes, freed on drop.
#[derive(Debug)]
pub struct Transcriber {
    context: WhisperContext,
    threads: usize,
    is_context_fitted: bool,
}

impl Transcriber {
    /// Loads the model, a file in whisper.cpp's format.
    pub fn open(model: &Path) -> Result<Self, VoiceError> {
        check_model(model)?;
        // Otherwise whisper.cpp writes to stderr.
        whisper_rs::install_logging_hooks();
        let damaged = |error: WhisperError| VoiceError::ModelDamaged { path: model.to_owned(), why: error.to_string() };
        let context = WhisperContext::new_with_params(model, WhisperContextParameters::default()).map_err(damaged)?;
        let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MAX_THREADS));
        Ok(Self { context, threads, is_context_fitted: true })
    }

    /// Sets the number of threads; by default the machine's, but at most four.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads: threads.max(1), ..self }
    }

    /// Computes thirty seconds for any recording, as whisper.cpp does by default, for comparison.
    pub fn with_whole_context(self) -> Self {
        Self { is_context_fitted: false, ..self }
    }

    /// Transcribes a recording. Without speech the transcript has no text.
    pub fn transcribe(&self, recording: &Path) -> Result<Transcript, VoiceError> {
        self.transcribe_sound(&decode_file(recording)?)
    }

    /// Transcribes decoded sound.
    pub fn transcribe_sound(&self, sound: &Sound) -> Result<Transcript, VoiceError> {
        let without_speech = Transcript {
            seconds: round_to_thousandths(sound.seconds()),
            no_speech: 1.0,
            is_damaged: sound.is_damaged,
            ..Transcript::default()
        };
        if !activity::may_be_speech(&sound.samples) {
            return Ok(without_speech);
        }
        let (heard, language) = self.run_model(&activity::trim_silence(&sound.samples)).map_err(to_voice_error)?;
        let sifted = sift::sift_segments(heard);
        Ok(Transcript {
            language: (!sifted.text.is_empty()).then_some(language).flatten(),
            text: sifted.text,
            confidence: round_to_thousandths(sifted.confidence),
            no_speech: round_to_thousandths(sifted.no_speech),
            dropped: sifted.dropped,
            repeats_cut: sifted.rounds_cut,
            ..without_speech
        })
    }

    /// Returns the model's raw segments and their language.
    pub(super) fn run_model(&self, samples: &[f32]) -> Result<(Vec<Heard>, Option<String>), WhisperError> {
        let mut padded = Vec::new();
        let samples = if samples.len() < MIN_SAMPLES {
            padded.extend_from_slice(samples);
            padded.resize(MIN_SAMPLES, 0.0);
            &padded
        } else {
            samples
        };
        let positions = if self.is_context_fitted { fitted_positions(samples.len()) } else { 0 };
        let mut state = self.context.create_state()?;
        let language = if self.context.is_multilingual() {
            // Language detection uses the encoder context of the previous run: this run only sets the context.
            let mut params = self.build_parameters(positions);
            params.set_duration_ms(EMPTY_RUN_MS);
            state.full(params, samples)?;
            "auto"
        } else {
            "en"
        };
        let mut params = self.build_parameters(positions);
        params.set_language(Some(language));
        state.full(params, samples)?;
        let spoken = whisper_rs::get_lang_str(state.full_lang_id_from_state());
        let language = if language == "auto" { spoken } else { Some(language) };
        Ok((read_segments(&state, samples), language.map(str::to_owned)))
    }

    fn build_parameters(&self, positions: usize) -> FullParams<'static, 'static> {
        // A speaker is waiting, so each token is the likeliest. Only a part with a bad result is decoded again, with randomness.
        let mut params = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
        params.set_n_threads(i32::try_from(self.threads).unwrap_or(1));
        params.set_audio_ctx(i32::try_from(positions).unwrap_or(0));
        params.set_suppress_nst(true);
        params.set_print_progress(false);
        params.set_print_realtime(false);
        params.set_print_special(false);
        params.set_print_timestamps(false);
        params
    }
}

/// Returns the encoder's context for that many samples, in positions of 20 ms; 0 means the whole context.
pub fn fitted_positions(samples: usize) -> usize {
    let own = (samples as f64 / f64::from(RATE_HZ) * POSITIONS_PER_SECOND).ceil() as usize;
    let fitted = (own + MARGIN_POSITIONS).max(MIN_POSITIONS).next_multiple_of(STEP_POSITIONS);
    if fitted < MAX_POSITIONS { fitted } else { 0 }
}

/// Checks a model file before whisper.cpp reads it, which would take a truncated file for an empty model.
fn check_model(model: &Path) -> Result<(), VoiceError> {
    let missing = |why| VoiceError::ModelMissing { path: model.to_owned(), why };
    let damaged = |why: &str| Err(VoiceError::ModelDamaged { path: model.to_owned(), why: why.to_owned() });
    let mut file = std::fs::File::open(model).map_err(missing)?;
    let metadata = file.metadata().map_err(missing)?;
    if metadata.is_dir() {
        return Err(missing(std::io::Error::from(std::io::ErrorKind::IsADirectory)));
    }
    let mut header = [0; HEADER_BYTES];
    if file.read_exact(&mut header).is_err() || !header.starts_with(&MODEL_MAGIC) {
        return damaged("it doesn't begin as one of whisper.cpp's, which are called ggml-*.bin");
    }
    let number = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(bytes)))
    };
    let (tokens, width) = (number(TOKENS_AT), number(WIDTH_AT));
    if tokens == 0 || width == 0 || metadata.len() < tokens.saturating_mul(width) / MOST_WEIGHTS_PER_BYTE {
        return damaged("it ends early");
    }
    Ok(())
}

fn read_segments(state: &WhisperState, samples: &[f32]) -> Vec<Heard> {
    let sample_at = |centiseconds: i64| usize::try_from(centiseconds).unwrap_or(0) * RATE_HZ as usize / 100;
    let read_segment = |segment: whisper_rs::WhisperSegment<'_>| {
        let tokens = (0..segment.n_tokens()).filter_map(|n| segment.get_token(n));
        // Tokens such as `[_TT_50]` are times and other marks.
        let is_word =
            |token: &whisper_rs::WhisperToken<'_, '_>| !token.to_bytes().is_ok_and(|it| it.starts_with(b"[_"));
        let start = sample_at(segment.start_timestamp()).saturating_sub(SLACK_SAMPLES);
        let end = (sample_at(segment.end_timestamp()) + SLACK_SAMPLES).min(samples.len());
        Heard {
            text: segment.to_str_lossy().map(|text| text.trim().to_owned()).unwrap_or_default(),
            no_speech: f64::from(segment.no_speech_probability()),
            probabilities: tokens.filter(is_word).map(|token| f64::from(token.token_probability())).collect(),
            is_silent: samples.get(start..end).is_some_and(|span| !activity::may_be_speech(span)),
        }
    };
    state.as_iter().map(read_segment).collect()
}

fn to_voice_error(error: WhisperError) -> VoiceError {
    VoiceError::Failed(error.to_string())
}

/// Rounds to thousandths, the limit of precision.
fn round_to_thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_holds_the_recording_and_more() {
        let seconds = |n: usize| n * RATE_HZ as usize;
        assert_eq!(fitted_positions(seconds(1)), MIN_POSITIONS);
        assert_eq!(fitted_positions(seconds(11)), 592);
        assert_eq!(fitted_positions(seconds(28)), 1440);
        for too_long in [30, 31, 3600] {
            assert_eq!(fitted_positions(seconds(too_long)), 0, "the whole one");
        }
        for samples in (0..seconds(28)).step_by(777) {
            let positions = fitted_positions(samples);
            assert!(positions * RATE_HZ as usize >= samples * 50 && positions < MAX_POSITIONS, "{samples}");
        }
    }
}
