//! Tests the decoders with generated sound: every accepted format, whole, damaged and cut off.

use std::{fs, path::Path};

use opusic_c::{Application, Channels, Encoder, SampleRate};
use tempfile::TempDir;

use super::{MAX_FILE_BYTES, RATE_HZ, Sound, Transcriber, VoiceError, decode::decode_at_most, decode_file};

/// One second of a 440 Hz tone with 15 video frames, like Telegram's video notes: H.264 and AAC in MP4. It was made with ffmpeg from
/// ffmpeg's own test signals, since nothing here can encode AAC.
const VIDEO_NOTE: &[u8] = include_bytes!("samples/tone.mp4");
/// One second of a 440 Hz tone as MP3.
const MP3: &[u8] = include_bytes!("samples/tone.mp3");

pub(super) mod sound {
    use super::super::RATE_HZ;

    fn samples(seconds: f64, mut one: impl FnMut(f64) -> f64) -> Vec<f32> {
        let count = (seconds * f64::from(RATE_HZ)) as usize;
        (0..count).map(|n| one(n as f64 / f64::from(RATE_HZ)) as f32).collect()
    }

    pub(in super::super) fn silence(seconds: f64) -> Vec<f32> {
        samples(seconds, |_| 0.0)
    }

    pub(in super::super) fn tone(hz: f64, seconds: f64, loudness: f64) -> Vec<f32> {
        samples(seconds, |t| loudness * (std::f64::consts::TAU * hz * t).sin())
    }

    /// White noise, the same each time.
    pub(in super::super) fn noise(seconds: f64, loudness: f64) -> Vec<f32> {
        let mut random = fastrand::Rng::with_seed(7);
        samples(seconds, |_| loudness * (random.f64() * 2.0 - 1.0))
    }

    /// A buzz that swells and fades like the syllables of speech.
    pub(in super::super) fn syllables(seconds: f64, loudness: f64) -> Vec<f32> {
        samples(seconds, |t| {
            let envelope = (std::f64::consts::PI * 5.0 * t).sin().powi(2);
            loudness * envelope * (std::f64::consts::TAU * 150.0 * t).sin()
        })
    }
}

/// A tone's frequency, from its upward zero crossings.
fn pitch_hz(samples: &[f32]) -> f64 {
    let rises = samples.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
    rises as f64 * f64::from(RATE_HZ) / samples.len() as f64
}

/// An OGG page with its checksum, of whole packets shorter than 255 bytes.
fn ogg_page(flags: u8, position: u64, serial: u32, sequence: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut page = b"OggS\0".to_vec();
    page.push(flags);
    page.extend(position.to_le_bytes());
    page.extend(serial.to_le_bytes());
    page.extend(sequence.to_le_bytes());
    page.extend([0; 4]);
    page.push(packets.len() as u8);
    page.extend(packets.iter().map(|packet| u8::try_from(packet.len()).unwrap()));
    page.extend(packets.iter().flatten());
    let checksum = page.iter().fold(0_u32, |crc, byte| {
        (0..8).fold(crc ^ (u32::from(*byte) << 24), |crc, _| (crc << 1) ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 })
    });
    page[22..26].copy_from_slice(&checksum.to_le_bytes());
    page
}

/// A voice note in Telegram's format: Opus at 48 kHz by the header, frames of 20 ms.
fn voice_note(samples: &[f32], channels: Channels, serial: u32) -> Vec<u8> {
    const PRE_SKIP: u16 = 312;
    let stereo = matches!(channels, Channels::Stereo);
    let mut head = b"OpusHead\x01".to_vec();
    head.push(if stereo { 2 } else { 1 });
    head.extend(PRE_SKIP.to_le_bytes());
    head.extend(RATE_HZ.to_le_bytes());
    head.extend([0; 3]);
    let tags = b"OpusTags\x04\0\0\0test\0\0\0\0".to_vec();
    let mut encoder = Encoder::new(channels, SampleRate::Hz16000, Application::Voip).unwrap();
    // Trailing silence flushes the samples the encoder holds back.
    let mut input = samples.to_vec();
    input.resize((samples.len() + usize::from(PRE_SKIP) / 3).next_multiple_of(320), 0.0);
    let packets = input.chunks(320).map(|frame| {
        let frame: Vec<f32> = if stereo { frame.iter().flat_map(|s| [*s, *s]).collect() } else { frame.to_vec() };
        let mut packet = vec![0; 250];
        let bytes = encoder.encode_float_to_slice(&frame, &mut packet).unwrap();
        packet.truncate(bytes);
        packet
    });
    let packets: Vec<Vec<u8>> = packets.collect();
    let mut file = ogg_page(2, 0, serial, 0, &[head]);
    file.extend(ogg_page(0, 0, serial, 1, &[tags]));
    let pages: Vec<_> = packets.chunks(50).collect();
    for (n, page) in pages.iter().enumerate() {
        let is_last = n + 1 == pages.len();
        let position = if is_last { samples.len() as u64 * 3 + u64::from(PRE_SKIP) } else { (n as u64 + 1) * 50 * 960 };
        file.extend(ogg_page(if is_last { 4 } else { 0 }, position, serial, n as u32 + 2, page));
    }
    file
}

fn wav(samples: &[f32], channels: u16, rate_hz: u32) -> Vec<u8> {
    let data: Vec<u8> = samples.iter().flat_map(|s| ((s * 32_767.0) as i16).to_le_bytes()).collect();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + data.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    file.extend(channels.to_le_bytes());
    file.extend(rate_hz.to_le_bytes());
    file.extend((rate_hz * u32::from(channels) * 2).to_le_bytes());
    file.extend((channels * 2).to_le_bytes());
    file.extend(b"\x10\0data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file
}

fn decoded(bytes: &[u8]) -> Result<Sound, VoiceError> {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("recording");
    fs::write(&path, bytes).unwrap();
    decode_file(&path)
}

#[track_caller]
fn assert_is_tone(sound: &Sound, seconds: f64) {
    assert!(!sound.is_damaged);
    assert!((sound.seconds() - seconds).abs() < 0.06, "{} s", sound.seconds());
    let middle = sound.samples.len() / 4..sound.samples.len() * 3 / 4;
    let pitch = pitch_hz(&sound.samples[middle]);
    assert!((pitch - 440.0).abs() < 8.0, "{pitch} Hz");
}

#[test]
fn a_voice_note_is_decoded_to_the_sample() {
    let tone = sound::tone(440.0, 3.0, 0.5);
    for channels in [Channels::Mono, Channels::Stereo] {
        let sound = decoded(&voice_note(&tone, channels, 1)).unwrap();
        assert_is_tone(&sound, 3.0);
        assert_eq!(sound.samples.len(), tone.len(), "pre-skip and end are cut off");
    }
}

#[test]
fn concatenated_streams_are_read_to_the_end() {
    let mut file = voice_note(&sound::tone(440.0, 1.0, 0.5), Channels::Mono, 1);
    file.extend(voice_note(&sound::tone(440.0, 2.0, 0.5), Channels::Stereo, 2));
    assert_is_tone(&decoded(&file).unwrap(), 3.0);
}

#[test]
fn wav_of_any_rate_and_channels_becomes_16_khz_mono() {
    for (rate_hz, channels) in [(8_000, 1), (16_000, 1), (44_100, 2), (48_000, 2)] {
        let frames =
            (0..rate_hz).map(|n| (std::f64::consts::TAU * 440.0 * f64::from(n) / f64::from(rate_hz)).sin() as f32);
        let samples: Vec<f32> = frames.flat_map(|s| std::iter::repeat_n(s * 0.5, usize::from(channels))).collect();
        assert_is_tone(&decoded(&wav(&samples, channels, rate_hz)).unwrap(), 1.0);
    }
}

#[test]
fn video_notes_and_mp3_are_read() {
    assert_is_tone(&decoded(VIDEO_NOTE).unwrap(), 1.0);
    assert_is_tone(&decoded(MP3).unwrap(), 1.0);
}

#[test]
fn a_truncated_file_yields_the_sound_before_the_cut() {
    let note = voice_note(&sound::tone(440.0, 2.0, 0.5), Channels::Mono, 1);
    let mut longest = 0;
    for end in (0..note.len()).step_by(97) {
        match decoded(&note[..end]) {
            Ok(sound) => longest = longest.max(sound.samples.len()),
            Err(VoiceError::Undecodable(_)) => {}
            Err(other) => panic!("{end}: {other}"),
        }
    }
    assert!(longest >= 16_000, "at least one second is recovered: {longest}");
}

#[test]
fn damage_anywhere_causes_no_panic() {
    let mut random = fastrand::Rng::with_seed(1);
    for file in [voice_note(&sound::tone(440.0, 2.0, 0.5), Channels::Mono, 1), VIDEO_NOTE.to_vec(), MP3.to_vec()] {
        for _ in 0..40 {
            let mut damaged = file.clone();
            for _ in 0..4 {
                let at = random.usize(..damaged.len());
                damaged[at] = random.u8(..);
            }
            match decoded(&damaged) {
                Ok(sound) => assert!(sound.seconds() < 60.0 && sound.samples.iter().all(|s| s.is_finite())),
                Err(VoiceError::Undecodable(_) | VoiceError::TooLong(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_damaged_packet_is_concealed_and_reported() {
    let tone = sound::tone(440.0, 2.0, 0.5);
    let note = voice_note(&tone, Channels::Mono, 1);
    // A packet that declares three frames in no bytes, which no decoder accepts. The page around it is rebuilt.
    let head_end = note.windows(4).rposition(|four| four == b"OggS").unwrap();
    let mut file = note[..head_end].to_vec();
    file.extend(ogg_page(4, 2 * 48_000 + 312, 1, 4, &[vec![0x4b, 0xff]]));
    let sound = decoded(&file).unwrap();
    assert!(sound.is_damaged && sound.seconds() >= 0.9, "{} s", sound.seconds());
}

#[test]
fn a_file_without_sound_is_refused_with_a_reason() {
    for (bytes, why) in [
        (Vec::new(), "the file is empty"),
        (vec![0x5a; 4_000], "the format isn't known"),
        (b"OggS".to_vec(), "the format isn't known"),
        (wav(&[], 1, 16_000), ""),
    ] {
        let error = decoded(&bytes).unwrap_err();
        assert!(matches!(&error, VoiceError::Undecodable(text) if text.contains(why)), "{error}");
        assert!(!error.is_worth_a_retry());
    }
    let missing = decode_file(Path::new("/nonexistent/note.ogg")).unwrap_err();
    assert!(missing.is_worth_a_retry(), "{missing}");
}

#[test]
fn limits_are_enforced_and_named() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("long.ogg");
    fs::write(&path, voice_note(&sound::silence(4.0), Channels::Mono, 1)).unwrap();
    assert_eq!(decode_at_most(&path, 4).unwrap().samples.len(), 64_000);
    let error = decode_at_most(&path, 3).unwrap_err();
    assert!(matches!(error, VoiceError::TooLong(_)), "{error}");
    let file = fs::File::create(&path).unwrap();
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    let error = decode_file(&path).unwrap_err();
    assert!(error.to_string().contains("20 MB"), "{error}");
}

#[test]
fn a_missing_or_damaged_model_is_a_setup_error() {
    let dir = TempDir::new().unwrap();
    let missing = Transcriber::open(&dir.path().join("ggml-base.bin")).unwrap_err();
    assert!(matches!(missing, VoiceError::ModelMissing { .. }), "{missing}");
    let directory = Transcriber::open(dir.path()).unwrap_err();
    assert!(matches!(directory, VoiceError::ModelMissing { .. }), "{directory}");
    let path = dir.path().join("model.bin");
    let mut cut_off = b"lmgg".to_vec();
    let header = [51_864_u32, 1500, 384, 6, 4, 448, 384, 6, 4, 80, 1];
    cut_off.extend(header.iter().flat_map(|number| number.to_le_bytes()));
    cut_off.resize(1_000_000, 0);
    // An empty file, a web page, the magic alone, and a model that ends early.
    for bytes in [&b""[..], b"<!doctype html>", b"lmgg", &cut_off] {
        fs::write(&path, bytes).unwrap();
        let damaged = Transcriber::open(&path).unwrap_err();
        assert!(matches!(damaged, VoiceError::ModelDamaged { .. }), "{damaged}");
        assert!(damaged.is_setup_fault() && damaged.to_string().contains("scripts/fetch-model"), "{damaged}");
    }
}
