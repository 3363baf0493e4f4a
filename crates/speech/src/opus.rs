//! Opus, straight to 16 kHz mono: libopus itself converts to this rate and to one channel.

use opusic_c::{Channels, Decoder, SampleRate};
use symphonia::core::{codecs::audio::AudioCodecParameters, packet::Packet};

use super::VoiceError;

/// The ratio of the container's clock, always 48 kHz, to our rate.
const CLOCK_PER_SAMPLE: u64 = 3;
/// The longest packet, 120 ms, in our samples.
const MAX_PACKET_SAMPLES: usize = 1920;
/// The header field with the number of 48 kHz samples in which the decoder settles.
const PRE_SKIP_AT: std::ops::Range<usize> = 10..12;

pub(super) struct OpusStream {
    decoder: Decoder,
    /// Samples still to be dropped at the start.
    skip: usize,
}

impl OpusStream {
    pub(super) fn new(params: &AudioCodecParameters) -> Result<Self, VoiceError> {
        if params.channels.as_ref().is_some_and(|channels| channels.count() > 2) {
            return Err(VoiceError::Undecodable("Opus of more than two channels".to_owned()));
        }
        let header = params.extra_data.as_deref().unwrap_or_default();
        let pre_skip = header.get(PRE_SKIP_AT).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes);
        let decoder = Decoder::new(Channels::Mono, SampleRate::Hz16000)
            .map_err(|error| VoiceError::Failed(format!("the Opus decoder didn't start: {}", error.message())))?;
        Ok(Self { decoder, skip: usize::from(pre_skip) / CLOCK_PER_SAMPLE as usize })
    }

    /// Adds a packet's samples to `out`. A damaged packet is concealed like a lost one. Returns `true` if it was whole.
    pub(super) fn decode_packet(&mut self, packet: &Packet, out: &mut Vec<f32>) -> bool {
        let mut samples = [0.0; MAX_PACKET_SAMPLES];
        let is_whole = !packet.data.is_empty();
        let decoded =
            if is_whole { self.decoder.decode_float_to_slice(&packet.data, &mut samples, false).ok() } else { None };
        let count = decoded.unwrap_or_else(|| {
            let lost = (packet.block_dur().get() / CLOCK_PER_SAMPLE).min(MAX_PACKET_SAMPLES as u64) as usize;
            let room = samples.get_mut(..lost).unwrap_or_default();
            // A refused length leaves silence, which will do.
            self.decoder.decode_float_to_slice(&[], room, false).ok();
            lost
        });
        let end = count.saturating_sub((packet.trim_end.get() / CLOCK_PER_SAMPLE) as usize);
        let start = self.skip.min(count);
        self.skip -= start;
        out.extend_from_slice(samples.get(start..end).unwrap_or_default());
        decoded.is_some()
    }
}
