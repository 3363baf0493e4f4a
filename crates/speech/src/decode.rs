//! Decodes a file to sound: containers by symphonia, Opus by libopus, everything to 16 kHz mono.
//!
//! Damaged parts are skipped, a truncated file ends early, and both are reported. Only the bytes count, regardless of the file's name and
//! the sender's claims.

use std::{fs::File, path::Path};

use symphonia::core::{
    codecs::{
        CodecParameters,
        audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions, well_known::CODEC_ID_OPUS},
    },
    errors::Error,
    formats::{FormatOptions, FormatReader, TrackType, probe::Hint},
    io::MediaSourceStream,
    meta::MetadataOptions,
    packet::Packet,
};

use super::{MAX_FILE_BYTES, MAX_SECONDS, RATE_HZ, VoiceError, opus::OpusStream, resample::Resampler};

/// The most channels mixed into one.
const MAX_CHANNELS: usize = 8;

/// Decoded sound.
#[derive(Debug, Clone, Default)]
pub struct Sound {
    /// Samples at 16 kHz mono, from -1 to 1.
    pub samples: Vec<f32>,
    /// `true` if parts of the file were damaged or missing.
    pub is_damaged: bool,
}

impl Sound {
    /// Returns the length in seconds.
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(RATE_HZ)
    }
}

/// Reads the first audio track of a file: OGG (Opus, Vorbis, FLAC), MP4 (AAC, ALAC), MP3, FLAC, WAV, AAC.
pub fn decode_file(path: &Path) -> Result<Sound, VoiceError> {
    decode_at_most(path, MAX_SECONDS)
}

pub(super) fn decode_at_most(path: &Path, max_seconds: u64) -> Result<Sound, VoiceError> {
    let mut reader = open_reader(path)?;
    let mut decoding = Decoding::default();
    decoding.choose_track(reader.as_ref())?;
    let max_samples = max_seconds * u64::from(RATE_HZ);
    loop {
        match reader.next_packet() {
            Ok(Some(packet)) => decoding.decode_packet(&packet)?,
            Ok(None) => break,
            // One stream ends and another begins, as in concatenated OGG files.
            Err(Error::ResetRequired) => decoding.choose_track(reader.as_ref())?,
            Err(error) => {
                decoding.record_fault(&error);
                break;
            }
        }
        if decoding.out.len() as u64 > max_samples {
            return Err(VoiceError::over_time_limit());
        }
    }
    decoding.finish()
}

fn open_reader(path: &Path) -> Result<Box<dyn FormatReader>, VoiceError> {
    let unreadable = |error: std::io::Error| VoiceError::Failed(format!("{} can't be read: {error}", path.display()));
    let file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    if bytes == 0 {
        return Err(VoiceError::Undecodable("the file is empty".to_owned()));
    }
    if bytes > MAX_FILE_BYTES {
        return Err(VoiceError::TooLong(format!("files of up to {} MB are read", MAX_FILE_BYTES / 1024 / 1024)));
    }
    let stream = MediaSourceStream::new(Box::new(file), Default::default());
    symphonia::default::get_probe()
        .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
        .map_err(|error| VoiceError::Undecodable(format!("the format isn't known ({error})")))
}

/// The decoder of one track's packets.
enum TrackDecoder {
    Opus(Box<OpusStream>),
    Other(Box<dyn AudioDecoder>),
}

#[derive(Default)]
struct Decoding {
    track: Option<(u32, TrackDecoder)>,
    /// The resampler, with its input rate.
    resampler: Option<(u32, Resampler)>,
    /// A reused buffer for one packet.
    interleaved: Vec<f32>,
    mono: Vec<f32>,
    out: Vec<f32>,
    /// The first fault.
    fault: Option<String>,
}

impl Decoding {
    fn choose_track(&mut self, reader: &dyn FormatReader) -> Result<(), VoiceError> {
        let track = reader.default_track(TrackType::Audio);
        let Some((track, CodecParameters::Audio(params))) = track.and_then(|it| Some((it, it.codec_params.as_ref()?)))
        else {
            return Err(VoiceError::Undecodable("there is no audio track".to_owned()));
        };
        self.flush();
        self.track = Some((track.id, TrackDecoder::new(params)?));
        Ok(())
    }

    fn decode_packet(&mut self, packet: &Packet) -> Result<(), VoiceError> {
        let Some((id, decoder)) = &mut self.track else { return Ok(()) };
        if packet.track_id != *id {
            return Ok(());
        }
        let decoded = match decoder {
            TrackDecoder::Opus(stream) => {
                if !stream.decode_packet(packet, &mut self.out) {
                    self.fault.get_or_insert_with(|| "a damaged Opus packet".to_owned());
                }
                return Ok(());
            }
            TrackDecoder::Other(decoder) => decoder.decode(packet),
        };
        let buffer = match decoded {
            Ok(buffer) => buffer,
            Err(error) => {
                self.record_fault(&error);
                return Ok(());
            }
        };
        let (rate_hz, channels) = (buffer.spec().rate(), buffer.spec().channels().count());
        if channels == 0 || channels > MAX_CHANNELS {
            return Err(VoiceError::Undecodable(format!("{channels} channels")));
        }
        buffer.copy_to_vec_interleaved(&mut self.interleaved);
        self.mono.clear();
        let mixed = self.interleaved.chunks_exact(channels).map(|frame| frame.iter().sum::<f32>() / channels as f32);
        // Damaged floats would spoil every sample within the filter's reach.
        self.mono.extend(mixed.map(|sample| if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 }));
        self.resample(rate_hz)
    }

    fn resample(&mut self, rate_hz: u32) -> Result<(), VoiceError> {
        if rate_hz == RATE_HZ {
            self.flush();
            self.out.append(&mut self.mono);
            return Ok(());
        }
        if self.resampler.as_ref().is_none_or(|(rate, _)| *rate != rate_hz) {
            self.flush();
            let resampler = Resampler::new(rate_hz);
            let resampler = resampler.ok_or_else(|| VoiceError::Undecodable(format!("a rate of {rate_hz} Hz")))?;
            self.resampler = Some((rate_hz, resampler));
        }
        if let Some((_, resampler)) = &mut self.resampler {
            resampler.push(&self.mono, &mut self.out);
        }
        Ok(())
    }

    /// Finishes the sound so far; the next part may have another rate.
    fn flush(&mut self) {
        if let Some((_, mut resampler)) = self.resampler.take() {
            resampler.finish(&mut self.out);
        }
    }

    fn record_fault(&mut self, error: &Error) {
        self.fault.get_or_insert_with(|| error.to_string());
    }

    fn finish(mut self) -> Result<Sound, VoiceError> {
        self.flush();
        match self.fault {
            Some(why) if self.out.is_empty() => Err(VoiceError::Undecodable(why)),
            None if self.out.is_empty() => Err(VoiceError::Undecodable("the track is empty".to_owned())),
            fault => Ok(Sound { samples: self.out, is_damaged: fault.is_some() }),
        }
    }
}

impl TrackDecoder {
    fn new(params: &AudioCodecParameters) -> Result<Self, VoiceError> {
        if params.codec == CODEC_ID_OPUS {
            return Ok(Self::Opus(Box::new(OpusStream::new(params)?)));
        }
        symphonia::default::get_codecs()
            .make_audio_decoder(params, &AudioDecoderOptions::default())
            .map(Self::Other)
            .map_err(|error| VoiceError::Undecodable(format!("its codec isn't known ({error})")))
    }
}
