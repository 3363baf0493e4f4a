//! whisper.cpp with its own defaults, including thirty seconds of context for any length of recording. `scripts/bench` builds this with
//! the library's default options as a yardstick for our speech.
//!
//! `plain-whisper MODEL SAMPLES THREADS`: SAMPLES is a file of 32-bit floats, little-endian, 16 kHz, one channel. Each line on standard
//! input is one call; the answer is a line with its milliseconds and the text.

use std::{
    error::Error,
    io::{BufRead as _, Write as _},
    time::Instant,
};

use whisper_rs::{FullParams, SamplingStrategy, WhisperContext, WhisperContextParameters};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, samples, threads] = arguments.as_slice() else {
        return Err("plain-whisper MODEL SAMPLES THREADS".into());
    };
    whisper_rs::install_logging_hooks();
    let threads: i32 = threads.parse()?;
    let bytes = std::fs::read(samples)?;
    let (samples, _) = bytes.as_chunks::<4>();
    let samples: Vec<f32> = samples.iter().map(|sample| f32::from_le_bytes(*sample)).collect();
    let context = WhisperContext::new_with_params(model, WhisperContextParameters::default())?;
    for line in std::io::stdin().lock().lines() {
        line?;
        let begun = Instant::now();
        let mut params = FullParams::new(SamplingStrategy::Greedy { best_of: 1 });
        params.set_n_threads(threads);
        params.set_print_progress(false);
        params.set_print_realtime(false);
        params.set_print_timestamps(false);
        let mut state = context.create_state()?;
        state.full(params, &samples)?;
        let took = begun.elapsed();
        let said: Result<Vec<_>, _> = state.as_iter().map(|segment| segment.to_str_lossy().map(String::from)).collect();
        println!("{} {}", took.as_secs_f64() * 1e3, said?.concat().trim());
        std::io::stdout().flush()?;
    }
    Ok(())
}
