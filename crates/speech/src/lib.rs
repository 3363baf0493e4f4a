//! Speech as text: a voice note, video note or audio file in, a [`Transcript`] out, all inside this process.
//!
//! The way of one file: `decode` makes 16 kHz mono of it, `activity` looks whether anybody can be speaking at all, whisper.cpp
//! (`listen`) writes down what it hears, and `sift` drops what it made up; `loops` cuts
//! what it repeats for ever. It takes hundreds of megabytes and all processors
//! for seconds: callers run it in a child process that ends afterwards.
//!
//! The decoders and whisper.cpp are the Cargo feature `voice`. Without it everything compiles, [`IS_BUILT`] is false, and
//! opening a model is [`VoiceError::NotBuilt`].

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
pub use decode::{Sound, decode};
pub use error::VoiceError;
#[cfg(feature = "voice")]
pub use listen::{Transcriber, fitted_positions};
#[cfg(not(feature = "voice"))]
pub use not_built::Transcriber;
pub use reveille_media::{
    Transcript,
    speech::{IS_BUILT, Unheard},
};

/// The longest recording that is written down, in seconds. An hour takes 230 MB as samples and, on a small machine, as long as
/// a coffee break; longer ones are lectures, not messages.
pub const MAX_SECONDS: u64 = 60 * 60;

/// The largest file that is read, in bytes: what a bot can get from Telegram.
pub const MAX_FILE_BYTES: u64 = 20 * 1024 * 1024;

/// Samples a second, as speech models take them.
pub const RATE_HZ: u32 = 16_000;
