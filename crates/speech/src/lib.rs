//! Speech as text: a voice note, video note or audio file in, a [`Transcript`] out, within this process.
//!
//! Each file takes these steps: `decode` converts it to 16 kHz mono, `activity` looks for possible speech, whisper.cpp (`listen`)
//! transcribes, `sift` drops hallucinated text, and `loops` cuts endless repeats. These steps need hundreds of megabytes and, for seconds,
//! all processors: callers run them in a short-lived child process.
//!
//! The decoders and whisper.cpp are the Cargo feature `voice`. Without it everything compiles, [`IS_BUILT`] is false, and opening a model
//! fails with [`VoiceError::NotBuilt`].

#[cfg(feature = "voice")]
mod activity;
#[cfg(feature = "voice")]
mod decode;
mod error;
#[cfg(feature = "voice")]
mod listen;
#[cfg(feature = "voice")]
mod loops;
#[cfg(not(feature = "voice"))]
mod not_built;
#[cfg(feature = "voice")]
mod opus;
#[cfg(feature = "voice")]
mod resample;
#[cfg(feature = "voice")]
mod sift;
#[cfg(test)]
#[cfg(feature = "voice")]
mod tests;

#[cfg(feature = "voice")]
pub use decode::{Sound, decode_file};
pub use error::VoiceError;
#[cfg(feature = "voice")]
pub use listen::{Transcriber, fitted_positions};
#[cfg(not(feature = "voice"))]
pub use not_built::Transcriber;
pub use reveille_media::{
    Transcript,
    speech::{IS_BUILT, Unheard},
};

/// The longest recording transcribed, in seconds. An hour takes 230 MB as samples and, on a small machine, as long as a coffee break;
/// longer ones are lectures rather than messages.
pub const MAX_SECONDS: u64 = 60 * 60;

/// The largest file read, in bytes: Telegram's limit for bots.
pub const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

/// The sample rate of speech models, in Hz.
pub const RATE_HZ: u32 = 16_000;
